/* SPDX-License-Identifier: Apache-2.0 */
/* LowerIntrin: operations of the accelerator become calls of the run-time's C interface, the last step before code is
 * written. Until then they have names of their own, for which passes look. SetDebugMode puts one in front. */
#include "tir/build.h"
#include "target/vta/pass/vta.h"
#include "tir/walk.h"

/* Waits as long as the device takes. */
#define WAIT_CYCLES ((int64_t)1 << 31)

static const struct {
    const char *operation;
    uint32_t n_args;
    const char *function;
    bool queue, wait;
} rows[] = {
#define X(name, n, function, queue, wait) {name, n, function, queue, wait},
    VTA_OPERATIONS(X)
#undef X
};

static tir_expr_ref lower(tir_rewriter *r, tir_expr_ref e)
{
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        tir_expr_ref args[VTA_UOP_ARGS + 2];
        uint32_t n = 0;
        if (!vta_is_call(e, rows[i].operation))
            continue;
        if (rows[i].queue)
            args[n++] = tir_extern(r->c, "VTATLSCommandHandle", tir_scalar(DT_HANDLE), 0, NULL);
        for (uint32_t k = 0; k < rows[i].n_args && k < e->n_args; k++)
            args[n++] = e->args[k];
        if (rows[i].wait)
            args[n++] = tir_int(r->c, DT_U32, WAIT_CYCLES);
        return tir_extern(r->c, rows[i].function, e->type, n, args);
    }
    return e;
}

bool tir_pass_lower_intrin(compiler *c, tir_func *f)
{
    tir_rewriter r = {.c = c, .expr = lower};
    f->body = tir_rewrite_stmt(&r, f->body);
    return true;
}

bool tir_pass_set_debug_mode(compiler *c, tir_func *f, int64_t flags)
{
    tir_expr_ref flag = tir_int(c, f->index_type, flags);
    tir_expr_ref call = tir_extern(c, "tir.vta.set_debug_mode", tir_scalar(DT_I32), 1, &flag);
    f->body = tir_seq(c, 2, (tir_stmt *[]){tir_evaluate(c, call), f->body});
    return true;
}
