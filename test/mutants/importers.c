/* SPDX-License-Identifier: Apache-2.0 */
/* Compiles changed models of ONNX, many in one process, as far as the text of their C: each must be refused with a
 * message or compile; nothing may crash, end without a word, or call itself an internal error.
 *
 *     importers OUT MODELS SEED COUNT
 *
 * MODELS is a file with a path of a model on each line. COUNT models by chance are taken: one numbered change of a
 * model (onnx_mutate.h), two of them, or a few bytes of its file changed. COUNT 0: every numbered change of every
 * model; a line "base PATH ok" or "base PATH refused" tells what becomes of each model as it is. What fails lies in
 * OUT as a file, and is named on a line "FAILED file: why"; the last line counts. */
#include "driver/pipeline.h"
#include "mutate.h"
#include "onnx_mutate.h"
#include "type/target.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

enum { PROCESSOR_SECONDS = 60 }; /* of one model, against hangs */

/* What parent and child share: a child that dies leaves behind what it was at. */
typedef struct board {
    uint64_t item;    /* that is being compiled */
    uint64_t compiled, refused, failed;
    char change[64];
} board;

typedef struct campaign {
    const char *out;
    const char **models;
    uint32_t n_models;
    uint64_t seed, count;
    board *board;
    char path[4096]; /* of the changed model */
} campaign;

/* --- one model --- */

static bool is_our_fault(const compiler *c)
{
    for (const diag *d = c->diags.first; d; d = d->next)
        if (d->level == DIAG_ERROR && (d->code == DIAG_VERIFY || d->code == DIAG_INTERNAL))
            return true;
    return c->diags.errors == 0; /* refused without a word */
}

static void keep(const campaign *k, const char *why)
{
    char name[4096];
    snprintf(name, sizeof name, "%s/failed-%llu-%llu.onnx", k->out, (unsigned long long)k->seed,
             (unsigned long long)k->board->item);
    rename(k->path, name);
    printf("FAILED %s: %s: ", name, k->board->change);
    for (const char *s = why; *s; s++)
        putchar(*s == '\n' ? ' ' : *s);
    putchar('\n');
    fflush(stdout);
    k->board->failed++;
}

static bool compiles(const campaign *k, uint64_t how)
{
    static const compile_emit emits[] = {EMIT_C, EMIT_C, EMIT_C, EMIT_MODULE};
    static const char *const targets[] = {"generic", "cortex-m4", "x86-64-v3"};
    static const int levels[] = {3, 3, 2, 1, 0};
    compiler c;
    compile_options o;
    compile_result r;
    compiler_setup(&c);
    compile_options_init(&o);
    compile_set_emit(&o, emits[how % 4]);
    o.target = compile_makes(&o, BACKEND_MODULE) ? target_find("x86-64-v3") : target_find(targets[how / 4 % 3]);
    o.port = o.target->small ? port_find("baremetal") : port_default();
    o.opt_level = levels[how / 12 % 5];
    o.verify = true;
    bool ok = pipeline_compile(&c, k->path, &o, &r);
    if (ok)
        k->board->compiled++;
    else if (is_our_fault(&c))
        keep(k, c.diags.errors ? diags_print(&c.diags, &c.mem) : "refused without a message");
    else
        k->board->refused++;
    compiler_free(&c);
    return ok;
}

static bool write_bytes(const campaign *k, const uint8_t *data, size_t len)
{
    FILE *f = fopen(k->path, "wb");
    bool ok = f && fwrite(data, 1, len, f) == len;
    return f && fclose(f) == 0 && ok;
}

/* As it is: what fails is moved. */
static bool copy_model(const campaign *k, const char *path)
{
    compiler c;
    span bytes;
    compiler_setup(&c);
    bool ok = compiler_read_file(&c, path, &bytes) && write_bytes(k, bytes.data, bytes.len);
    compiler_free(&c);
    strcpy(k->board->change, "none");
    return ok;
}

/* Up to four places of the file. */
static bool change_bytes(const campaign *k, compiler *c, span bytes, uint64_t *state)
{
    uint8_t *data = arena_array(&c->mem, uint8_t, bytes.len + 1);
    memcpy(data, bytes.data, bytes.len);
    size_t len = bytes.len;
    for (uint32_t i = chance(state, 4) + 1; i > 0 && len > 0; i--) {
        size_t at = chance(state, (uint32_t)len);
        switch (chance(state, 4)) {
        case 0: data[at] ^= (uint8_t)(1u << chance(state, 8)); break;
        case 1: data[at] = (uint8_t)chance(state, 256); break;
        case 2: memmove(data + at, data + at + 1, len - at - 1); len--; break;
        default: len = chance(state, 8) ? len : at; break; /* cut */
        }
    }
    strcpy(k->board->change, "bytes");
    return write_bytes(k, data, len);
}

/* number: of the change; UINT32_MAX: by chance, sometimes two. false: the model has no such change. */
static bool change_model(const campaign *k, const char *path, uint32_t number, uint64_t *state)
{
    compiler c;
    span bytes, written;
    pb_model *m = NULL;
    bool by_chance = number == UINT32_MAX;
    uint32_t count = 0, unused;
    compiler_setup(&c);
    bool ok = compiler_read_file(&c, path, &bytes);
    if (ok && by_chance && chance(state, 6) == 0) {
        ok = change_bytes(k, &c, bytes, state);
        compiler_free(&c);
        return ok;
    }
    ok = ok && onnx_wire_model(&c, path, bytes, &m);
    if (ok && by_chance) {
        (void)onnx_mutate(&c, m, UINT32_MAX, &count);
        number = chance(state, count);
    }
    const char *change = ok ? onnx_mutate(&c, m, number, &unused) : NULL;
    ok = change != NULL;
    if (ok) {
        snprintf(k->board->change, sizeof k->board->change, "%s", change);
        if (by_chance && chance(state, 3) == 0)
            (void)onnx_mutate(&c, m, chance(state, count), &unused);
        ok = onnx_wire_write(&c, m, &written) && write_bytes(k, written.data, written.len);
    }
    compiler_free(&c);
    return ok;
}

static void limit_time(void)
{
    struct itimerval t = {.it_value = {.tv_sec = PROCESSOR_SECONDS}};
    setitimer(ITIMER_PROF, &t, NULL);
}

/* --- many --- */

/* By chance: item is the number of the model to make. */
static void run_by_chance(campaign *k)
{
    for (; k->board->item < k->count; k->board->item++) {
        uint64_t state = (k->seed * 1000003u + k->board->item) * 0x9e3779b97f4a7c15u;
        limit_time();
        if (change_model(k, k->models[chance(&state, k->n_models)], UINT32_MAX, &state))
            (void)compiles(k, chance(&state, 60));
    }
}

/* All changes: item is model << 32 | change. */
static void run_all(campaign *k)
{
    while ((k->board->item >> 32) < k->n_models) {
        const char *path = k->models[k->board->item >> 32];
        uint32_t number = (uint32_t)k->board->item;
        uint64_t state = 0;
        limit_time();
        if (number == 0 && copy_model(k, path)) {
            printf("base %s %s\n", path, compiles(k, 0) ? "ok" : "refused");
            fflush(stdout);
        }
        if (change_model(k, path, number, &state)) {
            (void)compiles(k, number + (uint64_t)(k->board->item >> 32));
            k->board->item++;
        } else {
            k->board->item = ((k->board->item >> 32) + 1) << 32;
        }
    }
}

static const char **read_list(const char *path, uint32_t *out_n)
{
    char line[4096];
    const char **list = NULL;
    FILE *f = fopen(path, "r");
    *out_n = 0;
    while (f && fgets(line, sizeof line, f)) {
        line[strcspn(line, "\n")] = '\0';
        list = realloc(list, (*out_n + 1) * sizeof *list);
        list[(*out_n)++] = strdup(line);
    }
    if (f)
        fclose(f);
    return list;
}

int main(int argc, char **argv)
{
    campaign k = {0};
    if (argc != 5) {
        fprintf(stderr, "usage: importers OUT MODELS SEED COUNT\n");
        return 2;
    }
    k.out = argv[1];
    k.models = read_list(argv[2], &k.n_models);
    k.seed = strtoull(argv[3], NULL, 10);
    k.count = strtoull(argv[4], NULL, 10);
    snprintf(k.path, sizeof k.path, "%s/board-%ld", k.out, (long)getpid());
    int shared = open(k.path, O_RDWR | O_CREAT | O_TRUNC, 0600);
    if (shared < 0 || ftruncate(shared, sizeof *k.board) != 0)
        return 2;
    k.board = mmap(NULL, sizeof *k.board, PROT_READ | PROT_WRITE, MAP_SHARED, shared, 0);
    remove(k.path);
    snprintf(k.path, sizeof k.path, "%s/changed-%ld.onnx", k.out, (long)getpid());
    if (k.n_models == 0 || k.board == MAP_FAILED)
        return 2;
    for (bool died = true; died; k.board->item++) { /* a child that dies is followed by one that goes on behind it */
        int status = 0;
        fflush(stdout);
        pid_t pid = fork();
        if (pid == 0) {
            (k.count ? run_by_chance : run_all)(&k);
            _exit(0);
        }
        died = pid < 0 || waitpid(pid, &status, 0) != pid || status != 0;
        if (died) {
            char why[64];
            snprintf(why, sizeof why, "the compiler died, wait status %d", status);
            keep(&k, why);
        }
        if (pid < 0)
            return 1;
    }
    remove(k.path);
    printf("%llu compiled, %llu refused\n%llu passed, %llu failed\n", (unsigned long long)k.board->compiled,
           (unsigned long long)k.board->refused, (unsigned long long)(k.board->compiled + k.board->refused),
           (unsigned long long)k.board->failed);
    return k.board->failed != 0;
}
