/* SPDX-License-Identifier: Apache-2.0 */
/* Fuzz target: any bytes as loop text. What is accepted must print and read back to the same text. What also verifies
 * goes through every pass, and, when it is small, runs before and after: the results must agree. */
#include "../loop_steps.h"
#include "target/vta/pass/passes.h"
#include "tir/interpret.h"
#include "tir/pass.h"
#include "tir/text.h"
#include "tir/tir.h"
#include "tir/verify.h"
#include "tir/walk.h"
#include "type/target.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_STEPS  20000.0
#define MAX_BYTES  ((int64_t)1 << 13)
#define MAX_PARAMS 8

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char *print(compiler *c, const tir_module *m)
{
    writer w;
    writer_init(&w, &c->mem);
    tir_print(&w, m);
    return w.data;
}

static void give_up(compiler *c, const char *what, const char *text)
{
    fprintf(stderr, "%s:\n%s\n%s\n", what, text, diags_print(&c->diags, &c->mem));
    abort();
}

static void round_trip(compiler *c, const tir_module *m)
{
    tir_module *again = NULL;
    const char *text = print(c, m);
    if (!tir_parse(c, "again", text, strlen(text), &again))
        give_up(c, "printed text does not read back", text);
    if (strcmp(print(c, again), text) != 0)
        give_up(c, "text changes when read and printed", text);
}

typedef struct small_scan {
    const tir_func *f;
    bool ok;
} small_scan;

/* Left out: what no two runs share (external calls, undefined contents) and vector loops, whose promise of independent
 * lanes a random text does not keep. */
static void scan_stmt(void *ctx, tir_stmt *s)
{
    small_scan *k = ctx;
    k->ok = k->ok && s->kind != TIR_ALLOCATE && s->kind != TIR_ASSERT && s->for_kind == FOR_SERIAL;
}

static void scan_expr(void *ctx, tir_expr_ref e)
{
    small_scan *k = ctx;
    k->ok = k->ok && e->kind != TIR_EXTERN;
}

static bool is_small(const tir_func *f)
{
    small_scan k = {f, f->n_params <= MAX_PARAMS && loop_steps(f->body, 1e300) < MAX_STEPS};
    for (uint32_t i = 0; k.ok && i < f->n_params; i++) {
        int64_t n = tir_buffer_count(f->params[i]);
        k.ok = n >= 0 && n * 8 <= MAX_BYTES && !f->params[i]->strides && !f->params[i]->offset;
    }
    if (k.ok)
        tir_visit_stmt(f->body, scan_stmt, scan_expr, &k);
    return k.ok;
}

/* Runs f on fixed data; false: it reported an error (an access outside). */
static bool run(compiler *c, const tir_func *f, uint8_t *const *memory, int32_t *status)
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

static void compare(compiler *c, const tir_func *f, uint8_t *const *a, uint8_t *const *b, const char *text)
{
    for (uint32_t i = 0; i < f->n_params; i++)
        if (memcmp(a[i], b[i], (size_t)tir_buffer_count(f->params[i]) * dtype_bytes(f->params[i]->dt)) != 0)
            give_up(c, "passes change the result", text);
}

static void passes(compiler *c, tir_module *m)
{
    static uint8_t before[MAX_PARAMS][MAX_BYTES + 8], after[MAX_PARAMS][MAX_BYTES + 8];
    uint8_t *first[MAX_PARAMS], *second[MAX_PARAMS];
    const char *text = print(c, m);
    tir_func *f = m->funcs.data[0];
    int32_t status;
    for (int i = 0; i < MAX_PARAMS; i++) {
        first[i] = before[i];
        second[i] = after[i];
    }
    bool ran = m->funcs.len == 1 && is_small(f) && run(c, f, first, &status);
    bool passed = tir_run_passes(c, m, NULL, false, NULL);
    /* an access that a guard hid from the verifier, and that is outside when the guard has gone, is the text's fault */
    if (!passed && !ran && strstr(diags_print(&c->diags, &c->mem), "lies outside"))
        return;
    if (!passed)
        give_up(c, "a pass breaks what verified", text);
    round_trip(c, m);
    if (!ran)
        return;
    if (!run(c, f, second, &status))
        give_up(c, "what ran does not run after the passes", text);
    compare(c, f, first, second, text);
}

/* The passes of VTA, one by one on the text and all in a row: they may refuse, but what they leave verifies. */
static void device_passes(const char *text)
{
    static const char *const names[] = {
#define X(id, name, fn, needs, gives, breaks, help) name,
        VTA_PASSES(X)
#undef X
            "InjectVirtualThread",
        "reuse-in-place", "vta"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        compiler c;
        tir_module *m = NULL;
        compiler_init(&c);
        if (!tir_parse(&c, "again", text, strlen(text), &m))
            give_up(&c, "printed text does not read back", text);
        bool ok = tir_run_passes(&c, m, names[i], false, NULL);
        const char *said = diags_print(&c.diags, &c.mem);
        if (ok)
            round_trip(&c, m);
        else if (c.diags.errors == 0 || (strstr(said, "this is what the pass") && !strstr(said, "lies outside")))
            give_up(&c, names[i], text);
        compiler_free(&c);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    compiler c;
    tir_module *m = NULL;
    compiler_init(&c);
    if (tir_parse(&c, "fuzz", (const char *)data, size, &m)) {
        bool ok = m->funcs.len > 0;
        round_trip(&c, m);
        for (uint32_t i = 0; i < m->funcs.len; i++) {
            m->funcs.data[i]->target = target_find("generic");
            ok = tir_verify(&c, m->funcs.data[i]) && ok;
        }
        const char *text = ok ? print(&c, m) : "";
        if (strstr(text, "vta") || strstr(text, "pragma_") || strstr(text, "vthread"))
            device_passes(text);
        if (ok)
            passes(&c, m);
    } else if (c.diags.errors == 0) {
        give_up(&c, "refused without a word", "");
    }
    compiler_free(&c);
    return 0;
}
