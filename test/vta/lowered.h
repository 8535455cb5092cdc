/* lowered.h: what tests of the compiler's VTA passes share: numbers for a function, and the driver's run of it on a
 * simulated device. SPDX-License-Identifier: Apache-2.0 */
#ifndef VTA_TEST_LOWERED_H
#define VTA_TEST_LOWERED_H
#include "target/vta/code/vta_code.h"
#include "driver/computation.h"
#include "driver/vta/run_vta.h"
#include "runtime_test.h"

/* Parameters of f in c's memory: inputs hold numbers that are the same every time, outputs a pattern. */
static inline void **lowered_params(compiler *c, const tir_func *f)
{
    void **params = arena_array(&c->mem, void *, f->n_params);
    uint32_t state = 12345;
    for (uint32_t i = 0; i < f->n_params; i++) {
        const size_t bytes = vta_code_bytes(f->params[i]);
        uint8_t *at = arena_alloc(&c->mem, bytes + 1, 64);
        memset(at, 0x55, bytes);
        for (size_t k = 0; i < f->n_inputs && k < bytes; k++) {
            state = state * 1664525u + 1013904223u;
            at[k] = (uint8_t)(state >> 24);
        }
        params[i] = at;
    }
    return params;
}

/* Inputs from params, outputs into them, on a device of c's configuration; with a report on the cycle model as well.
 * Fails the test when a call is refused. */
static inline void lowered_run(compiler *c, const tir_func *f, void *const *params, run_vta_report *report)
{
    const run_vta_options o = {.cycle = report != NULL, .sim = {.seed = 7}};
    run_vta_report own;
    report = report ? report : &own;
    if (!run_vta_call(c, f, params, &o, report))
        fail_msg("%s", diags_print(&c->diags, &c->mem));
    assert_true(report->runs > 0);
}
#endif
