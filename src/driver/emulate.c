/* SPDX-License-Identifier: Apache-2.0 */
/* A package for another machine, run by an emulator: a small program, runtime/board/caller.c, calls it once, with
 * tensors, extents and the answer in files. The structs of inputs and outputs are as in run.h: an address for each
 * tensor, then numbers. */
#include "driver/emulate.h"

#include <stdio.h>
#include <string.h>

#include "base/file.h"
#include "driver/build.h"

#define CALL   "call"
#define DATA   "call.bin"
#define ANSWER "answer.bin"

bool emulate_write_caller(compiler *c, const char *scratch)
{
    return build_write_embedded(c, scratch, "board", EMULATE_CALLER ".c") &&
           build_write_embedded(c, scratch, "board", "board.h");
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
        w_fmt(&text, "%lld\n", (long long)run_extent_stated(&m->extents[i]));
    for (uint32_t i = 0; i < m->n_outputs; i++)
        w_fmt(&text, "%zu\n", m->outputs[i].most_bytes);
    return compiler_write_file(c, path_join(&c->mem, m->scratch, CALL), text.data, text.len) && write_data(c, m);
}

/* Of this call: each one leaves a file of the same name. */
static bool take_answer(compiler *c, const run_model *m, span s, emulate_answer *out)
{
    int64_t state[2];
    size_t numbers = count_numbers(m) * sizeof(int64_t), at = sizeof state + numbers;
    size_t want = at;
    for (uint32_t i = 0; i < m->n_outputs; i++)
        want += m->outputs[i].most_bytes;
    if (s.len != want)
        return diag_error(&c->diags, DIAG_ENVIRONMENT, src_loc_none(),
                          "the program in the emulator wrote %zu bytes of outputs instead of %zu", s.len, want);
    memcpy(state, s.data, sizeof state);
    *out = (emulate_answer){(int32_t)state[0], (int32_t)state[1]};
    if (numbers > 0)
        memcpy(&m->out[m->n_outputs], s.data + sizeof state, numbers);
    for (uint32_t i = 0; i < m->n_outputs; at += m->outputs[i++].most_bytes)
        if (m->outputs[i].most_bytes > 0)
            memcpy(m->outputs[i].data, s.data + at, m->outputs[i].most_bytes);
    return true;
}

static bool read_answer(compiler *c, const run_model *m, emulate_answer *out)
{
    span s;
    file_id id;
    if (!file_read(&c->diags, path_join(&c->mem, m->scratch, ANSWER), &s, &id))
        return false;
    const bool ok = take_answer(c, m, s, out);
    file_free(s);
    return ok;
}

bool emulate_call(compiler *c, const run_model *m, emulate_answer *out)
{
    process_words a = {0};
    process_add_words(c, &a, m->emulator);
    process_add_words(c, &a, "./" EMULATE_CALLER);
    if (!m->board || board_is_hosted(m->board))
        process_add_words(c, &a, CALL " " DATA " " ANSWER);
    if (m->constants && (!m->board || board_is_hosted(m->board)))
        vec_push(&c->mem, &a, m->constants);
    vec_push(&c->mem, &a, NULL);
    const char *packages = m->board ? m->board->emulator_package : NULL;
    const char *hint = packages ? arena_printf(&c->mem, "install it: apt-get install %s", packages)
                                : "install it (package qemu-user), or name another one: --emulator";
    const char *why = packages ? "the memory may be too small, or the emulator may not have an instruction"
                               : "set CC to a compiler for the emulator's machine that links statically, as in "
                                 "CC='aarch64-linux-gnu-gcc -static'";
    return compiler_progress(c, arena_printf(&c->mem, "running the package in %s", a.data[0]), 0, 0) &&
           write_call(c, m) &&
           process_run(c, &(process_task){.argv = a.data,
                                          .dir = m->scratch,
                                          .what = "running the package in an emulator",
                                          .hint = hint,
                                          .whole_log = why,
                                          .name = "package",
                                          .path = m->dir}) &&
           read_answer(c, m, out);
}
