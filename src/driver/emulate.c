/* SPDX-License-Identifier: Apache-2.0 */
/* A package for another machine, run by an emulator: a small program calls it once, with tensors, extents and the
 * answer in files. The structs of inputs and outputs are as in run.h: an address for each tensor, then numbers. */
#include "driver/emulate.h"

#include <stdio.h>
#include <string.h>

#include "base/file.h"

#define CALL   "call"
#define DATA   "call.bin"
#define ANSWER "answer.bin"

/* The call file: how many inputs, extents, outputs and numbers behind outputs; bytes of each input; the extents; bytes
 * of each output. The answer: status, operator, the numbers, the outputs; both in the order of bytes of the machine. */
static const char caller_text[] =
    "#include <inttypes.h>\n#include <stdbool.h>\n#include <stdio.h>\n#include <stdlib.h>\n#include <string.h>\n"
    "int32_t CALLED(void *inputs, void *outputs);\n"
    "struct record {\n    int32_t level, code, op_id;\n};\nbool tvmrt_log_pop(struct record *out);\n"
    "#ifdef CONSTANTS\nint32_t CONSTANTS(const void *data, size_t size);\n#endif\n"
    "enum { ALIGN = 64, NO_CALL = 3 };\n"
    "static uint64_t number(FILE *f)\n{\n    uint64_t v = 0;\n"
    "    if (fscanf(f, \"%\" SCNu64, &v) != 1)\n        exit(NO_CALL);\n    return v;\n}\n"
    "static void *room(uint64_t bytes)\n{\n    char *p = calloc((size_t)bytes + ALIGN, 1);\n"
    "    if (p == NULL)\n        exit(NO_CALL);\n"
    "    return p + (ALIGN - (uintptr_t)p % ALIGN) % ALIGN;\n}\n"
    "static FILE *file(const char *name, const char *mode)\n{\n    FILE *f = fopen(name, mode);\n"
    "    if (f == NULL)\n        exit(NO_CALL);\n    return f;\n}\n"
    "static void give_constants(const char *name)\n{\n#ifdef CONSTANTS\n    FILE *f = file(name, \"rb\");\n"
    "    void *bytes;\n    long n;\n    fseek(f, 0, SEEK_END);\n    n = ftell(f);\n    rewind(f);\n"
    "    bytes = room((uint64_t)n);\n"
    "    if (fread(bytes, 1, (size_t)n, f) != (size_t)n || CONSTANTS(bytes, (size_t)n) != 0)\n        exit(NO_CALL);\n"
    "#else\n    (void)name;\n#endif\n}\n"
    "int main(int argc, char **argv)\n{\n"
    "    FILE *call = file(argv[1], \"r\"), *data = file(argv[2], \"rb\"), *answer = file(argv[3], \"wb\");\n"
    "    uint64_t n_in = number(call), n_extents = number(call), n_out = number(call), n_numbers = number(call), i;\n"
    "    size_t wide = sizeof(int64_t) / sizeof(void *); /* slots of a number */\n"
    "    void **in = room((n_in + n_extents + 1) * sizeof(int64_t));\n"
    "    void **out = room((n_out + n_numbers + 1) * sizeof(int64_t));\n"
    "    uint64_t *bytes = room((n_out + 1) * sizeof *bytes);\n    int64_t state[2] = {0, -1};\n"
    "    struct record r;\n"
    "    if (argc > 4)\n        give_constants(argv[4]);\n"
    "    if (wide != 1 && n_extents + n_numbers != 0)\n        return NO_CALL;\n"
    "    for (i = 0; i < n_in; i++) {\n        uint64_t n = number(call);\n        in[i] = room(n);\n"
    "        if (fread(in[i], 1, (size_t)n, data) != n)\n            return NO_CALL;\n    }\n"
    "    for (i = 0; i < n_extents; i++) {\n        int64_t v = (int64_t)number(call);\n"
    "        memcpy(&in[n_in + i], &v, sizeof v);\n    }\n"
    "    for (i = 0; i < n_out; i++)\n        out[i] = room(bytes[i] = number(call));\n"
    "    state[0] = CALLED(in, out);\n"
    "    while (state[0] != 0 && tvmrt_log_pop(&r))\n        if (r.code == state[0] && r.op_id >= 0 && state[1] < 0)\n"
    "            state[1] = r.op_id;\n"
    "    fwrite(state, sizeof state, 1, answer);\n"
    "    fwrite(&out[n_out], sizeof(int64_t), (size_t)n_numbers, answer);\n"
    "    for (i = 0; i < n_out; i++)\n        fwrite(out[i], 1, (size_t)bytes[i], answer);\n"
    "    return fclose(answer) != 0 ? NO_CALL : 0;\n}\n";

bool emulate_write_caller(compiler *c, const char *scratch)
{
    return compiler_write_file(c, path_join(&c->mem, scratch, EMULATE_CALLER ".c"), caller_text,
                               sizeof caller_text - 1);
}

/* --- the call --- */

static uint32_t count_numbers(const run_model *m)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < m->n_outputs; i++)
        n += m->outputs[i].open ? m->outputs[i].rank : 0;
    return n;
}

static bool write_data(compiler *c, const run_model *m)
{
    size_t all = 0, at = 0;
    for (uint32_t i = 0; i < m->n_inputs; i++)
        all += m->inputs[i].bytes;
    uint8_t *data = arena_try_alloc(&c->mem, all + 1, 1);
    if (!data)
        return diag_error(&c->diags, DIAG_ENVIRONMENT, src_loc_none(), "no memory for %zu bytes of inputs", all);
    for (uint32_t i = 0; i < m->n_inputs; at += m->inputs[i++].bytes)
        if (m->inputs[i].bytes > 0)
            memcpy(data + at, m->inputs[i].data, m->inputs[i].bytes);
    return compiler_write_file(c, path_join(&c->mem, m->scratch, DATA), data, all);
}

static bool write_call(compiler *c, const run_model *m)
{
    writer text;
    writer_init(&text, &c->mem);
    w_fmt(&text, "%u %u %u %u\n", m->n_inputs, m->n_extents, m->n_outputs, count_numbers(m));
    for (uint32_t i = 0; i < m->n_inputs; i++)
        w_fmt(&text, "%zu\n", m->inputs[i].bytes);
    for (uint32_t i = 0; i < m->n_extents; i++)
        w_fmt(&text, "%lld\n", (long long)m->extents[i].value);
    for (uint32_t i = 0; i < m->n_outputs; i++)
        w_fmt(&text, "%zu\n", m->outputs[i].most_bytes);
    return compiler_write_file(c, path_join(&c->mem, m->scratch, CALL), text.data, text.len) && write_data(c, m);
}

static bool read_answer(compiler *c, const run_model *m, emulate_answer *out)
{
    span s;
    int64_t state[2];
    size_t numbers = count_numbers(m) * sizeof(int64_t), at = sizeof state + numbers;
    if (!compiler_read_file(c, path_join(&c->mem, m->scratch, ANSWER), &s))
        return false;
    size_t want = at;
    for (uint32_t i = 0; i < m->n_outputs; i++)
        want += m->outputs[i].most_bytes;
    if (s.len != want)
        return diag_error(&c->diags, DIAG_ENVIRONMENT, src_loc_none(),
                          "the program in the emulator left %zu bytes of an answer, where %zu belong", s.len, want);
    memcpy(state, s.data, sizeof state);
    *out = (emulate_answer){(int32_t)state[0], (int32_t)state[1]};
    if (numbers > 0)
        memcpy(&m->out[m->n_outputs], s.data + sizeof state, numbers);
    for (uint32_t i = 0; i < m->n_outputs; at += m->outputs[i++].most_bytes)
        if (m->outputs[i].most_bytes > 0)
            memcpy(m->outputs[i].data, s.data + at, m->outputs[i].most_bytes);
    return true;
}

bool emulate_call(compiler *c, const run_model *m, emulate_answer *out)
{
    process_words a = {0};
    process_add_words(c, &a, m->emulator);
    process_add_words(c, &a, "./" EMULATE_CALLER " " CALL " " DATA " " ANSWER);
    if (m->constants)
        vec_push(&c->mem, &a, m->constants);
    vec_push(&c->mem, &a, NULL);
    compiler_progress(c, arena_printf(&c->mem, "running the package in %s", a.data[0]), 0, 0);
    return write_call(c, m) &&
           process_run(c, &(process_task){.argv = a.data,
                                          .dir = m->scratch,
                                          .what = "running the package in an emulator",
                                          .hint = "install it (package qemu-user), or name another one: --emulator",
                                          .whole_log = "does $CC compile for the machine that the emulator has, and "
                                                       "statically, as in CC='aarch64-linux-gnu-gcc -static'?",
                                          .name = "package",
                                          .path = m->dir}) &&
           read_answer(c, m, out);
}
