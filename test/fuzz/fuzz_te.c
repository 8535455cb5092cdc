/* SPDX-License-Identifier: Apache-2.0 */
/* Fuzz target: any bytes as a computation and, behind a line "--- schedule", its schedule. What is accepted must print
 * and read back to the same text. What also lowers must verify, before and after the passes of `--lower plain`, and,
 * when it is small and its sums are exact, give the numbers of the computation without a schedule. */
#include "../loop_steps.h"
#include "te/lower.h"
#include "te/te.h"
#include "te/text.h"
#include "tir/interpret.h"
#include "tir/pass.h"
#include "tir/text.h"
#include "tir/verify.h"
#include "tir/walk.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_STEPS  20000.0
#define MAX_BYTES  ((int64_t)1 << 13)
#define MAX_PARAMS 8

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void give_up(compiler *c, const char *what, const char *text)
{
    fprintf(stderr, "%s:\n%s\n%s\n", what, text, diags_print(&c->diags, &c->mem));
    abort();
}

static const char *print_graph(compiler *c, const te_graph *g)
{
    writer w;
    writer_init(&w, &c->mem);
    te_print(&w, g);
    return w.data;
}

static const char *print_schedule(compiler *c, const te_sched *s)
{
    writer w;
    writer_init(&w, &c->mem);
    te_sched_print(&w, s);
    return w.data ? w.data : "";
}

static const char *print_func(compiler *c, const tir_func *f)
{
    writer w;
    writer_init(&w, &c->mem);
    tir_print_func(&w, f);
    return w.data;
}

static void round_trip(compiler *c, const te_graph *g, const te_sched *s)
{
    te_graph *again = NULL;
    te_sched *same = NULL;
    const char *text = print_graph(c, g), *schedule = print_schedule(c, s);
    if (!te_parse(c, "again", text, strlen(text), &again) || strcmp(print_graph(c, again), text) != 0)
        give_up(c, "a computation does not read back", text);
    if (!te_sched_parse(again, "again", schedule, strlen(schedule), &same) ||
        strcmp(print_schedule(c, same), schedule) != 0)
        give_up(c, "a schedule does not read back", schedule);
}

/* Left out: calls, which the interpreter does not run, and floats, whose sums depend on their order. */
static void scan(void *ctx, tir_expr_ref e)
{
    bool *ok = ctx;
    *ok = *ok && e->kind != TIR_EXTERN && e->kind != TIR_ADDRESS && !dtype_is_float(e->type.dt);
}

static void scan_stmt(void *ctx, tir_stmt *s)
{
    bool *ok = ctx;
    *ok = *ok && (s->kind != TIR_ALLOCATE || (tir_buffer_count(s->buffer) >= 0 && tir_buffer_count(s->buffer) < 65536));
}

static bool is_small(const tir_func *f)
{
    bool ok = f->n_params <= MAX_PARAMS && loop_steps(f->body, 1e300) < MAX_STEPS;
    for (uint32_t i = 0; ok && i < f->n_params; i++) {
        int64_t n = tir_buffer_count(f->params[i]);
        ok = n >= 0 && n < MAX_BYTES / 8;
    }
    if (ok)
        tir_visit_stmt(f->body, scan_stmt, scan, &ok);
    return ok;
}

/* Runs f on fixed data; false: it reported an error, which is an access outside. */
static bool run(compiler *c, const tir_func *f, uint8_t memory[][MAX_BYTES], int32_t *status)
{
    void *params[MAX_PARAMS];
    for (uint32_t i = 0; i < f->n_params; i++) {
        int64_t n = tir_buffer_count(f->params[i]);
        dtype dt = f->params[i]->dt;
        params[i] = memory[i];
        for (int64_t k = 0; k < n; k++)
            dtype_store_i64(dt, memory[i] + (size_t)k * dtype_bytes(dt), (k * 7 + (int64_t)i) % 9 - 3);
    }
    return tir_interpret(c, f, params, status);
}

static void compare(compiler *c, const tir_func *plain, const tir_func *f, const char *schedule)
{
    static uint8_t want[MAX_PARAMS][MAX_BYTES], got[MAX_PARAMS][MAX_BYTES];
    int32_t status = 0;
    if (!is_small(plain) || !is_small(f) || !run(c, plain, want, &status) || status != 0)
        return; /* it reads outside without a schedule, too */
    if (!run(c, f, got, &status))
        give_up(c, "what ran without a schedule does not run with it", print_func(c, f));
    for (uint32_t i = f->n_inputs; i < f->n_params; i++)
        if (memcmp(want[i], got[i], (size_t)tir_buffer_count(f->params[i]) * dtype_bytes(f->params[i]->dt)) != 0)
            give_up(c, arena_printf(&c->mem, "a schedule changes the result:\n%s", schedule), print_func(c, f));
}

static void lower(compiler *c, te_graph *g, const te_sched *s)
{
    tir_func *f = NULL, *plain = NULL;
    tir_module m = {.c = c};
    if (!te_lower(g, NULL, "plain", &plain) || !tir_verify(c, plain) || !te_lower(g, s, "main", &f)) {
        if (c->diags.errors == 0)
            give_up(c, "refused without a word", print_graph(c, g));
        return; /* what reads outside of a tensor without a schedule is the text's fault */
    }
    const char *schedule = print_schedule(c, s);
    if (!tir_verify(c, f))
        give_up(c, arena_printf(&c->mem, "a schedule breaks what verified:\n%s", schedule), print_func(c, f));
    compare(c, plain, f, schedule);
    f->target = target_find("generic");
    vec_push(&c->mem, &m.funcs, f);
    if (tir_run_passes(c, &m, tir_plain_passes, false, NULL))
        compare(c, plain, f, schedule);
    else if (c->diags.errors == 0)
        give_up(c, "a pass refuses without a word", schedule);
}

/* Work grows with the number of operations and of primitives; texts of a size that people write are enough. */
static bool is_modest(const te_graph *g, const te_sched *s)
{
    double most = 1;
    for (uint32_t i = 0; i < s->prims.len; i++)
        most *= s->prims.data[i].kind == TE_UNROLL ? 4 : 1.2;
    return g->nodes.len <= 20 && most < 1000;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char mark[] = "\n--- schedule\n";
    compiler c;
    te_graph *g = NULL;
    te_sched *s = NULL;
    const char *text = (const char *)data;
    size_t at = 0, n = strlen(mark);
    while (at + n <= size && memcmp(text + at, mark, n) != 0)
        at++;
    size_t len = at + n <= size ? at + 1 : size, rest = at + n <= size ? at + n : size;
    compiler_init(&c);
    bool ok = te_parse(&c, "computation", text, len, &g) && te_sched_parse(g, "schedule", text + rest, size - rest, &s);
    if (!ok && c.diags.errors == 0)
        give_up(&c, "refused without a word", "");
    if (ok && is_modest(g, s)) {
        round_trip(&c, g, s);
        lower(&c, g, s);
    }
    compiler_free(&c);
    return 0;
}
