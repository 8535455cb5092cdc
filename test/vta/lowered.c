/* lowered.c: lowered loop IR on a simulated device; see lowered.h.
 * SPDX-License-Identifier: Apache-2.0 */
#include "lowered.h"

#include "runtime_test.h"
#include "te/lower.h"
#include "tir/pass.h"

size_t lowered_bytes(const tir_buffer *b)
{
    return (size_t)tir_buffer_count(b) * dtype_bytes(b->dt);
}

void **lowered_params(compiler *c, const tir_func *f)
{
    void **params = arena_array(&c->mem, void *, f->n_params);
    uint32_t state = 12345;
    for (uint32_t i = 0; i < f->n_params; i++) {
        uint8_t *at = arena_alloc(&c->mem, lowered_bytes(f->params[i]) + 1, 64);
        memset(at, 0x55, lowered_bytes(f->params[i]));
        for (size_t k = 0; i < f->n_inputs && k < lowered_bytes(f->params[i]); k++) {
            state = state * 1664525u + 1013904223u;
            at[k] = (uint8_t)(state >> 24);
        }
        params[i] = at;
    }
    return params;
}

void lowered_run(compiler *c, const tir_func *f, void *const *params, run_vta_report *report)
{
    const run_vta_options o = {.cycle = report != NULL, .sim = {.seed = 7}};
    run_vta_report r;
    if (!run_vta_call(c, f, params, &o, report ? report : &r))
        fail_msg("%s", diags_print(&c->diags, &c->mem));
    assert_true((report ? report : &r)->runs > 0);
}

bool lowered_make(te_graph *g, const char *schedule, const char *passes, tir_func **out)
{
    te_sched *s = NULL;
    compiler *c = g->c;
    tir_module m = {.c = c};
    if (!te_sched_parse(g, "schedule", schedule, strlen(schedule), &s) || !te_lower(g, s, "main", out))
        return false;
    vec_push(&c->mem, &m.funcs, *out);
    return tir_run_passes(c, &m, passes, false, NULL);
}
