/* SPDX-License-Identifier: Apache-2.0 */
/* A target's hook for the tests: takes fused_nn_relu of one dimension, y[i] = max(x[i], LEAST), under an attribute that
 * shows whose loops these are. LEAST other than 0 is a fault; with SILENT it fails and does not say why. */
#include "lathe/op.h"

#include <string.h>

#ifndef LEAST
#define LEAST 0
#endif

static bool lower(compiler *c, const graph_func *f, const char *name, tir_func **out)
{
    int64_t n[TYPE_MAX_RANK];
    if (strcmp(f->name, "fused_nn_relu") != 0 || f->params.data[0]->type.shape.rank != 1 ||
        !shape_get(f->params.data[0]->type.shape, n))
        return true;
#ifdef SILENT
    return false;
#endif
    const tir_buffer **p = arena_array(&c->mem, const tir_buffer *, 2);
    p[0] = tir_buffer_static(c, "x", DT_F32, 1, n, SCOPE_GLOBAL);
    p[1] = tir_buffer_static(c, "y", DT_F32, 1, n, SCOPE_GLOBAL);
    const tir_var *i = tir_new_var(c, "i", TIR_I64);
    tir_expr_ref at[1] = {tir_varref(c, i)};
    tir_stmt *store = tir_store(c, p[1], 1, at, tir_max(c, tir_load(c, p[0], 1, at), tir_float(c, DT_F32, LEAST)));
    tir_stmt *loop = tir_for(c, i, tir_i64(c, 0), tir_i64(c, n[0]), FOR_SERIAL, store);
    *out = arena_new(&c->mem, tir_func);
    **out = (tir_func){.name = name, .params = p, .n_params = 2, .n_inputs = 1, .index_type = DT_I64};
    (*out)->loc = src_loc_none();
    (*out)->body = tir_attr(c, "demo", "lowered_by_hook", tir_i64(c, 1), loop);
    return true;
}

static const target demo = {.name = "demo", .cflags = "", .vector_regs = 16, .stack_limit = 4096, .workers = 1,
                            .address_bits = 64, .lower = lower,
                            .by_hand = "# make lib CC=demo-gcc\n"};
