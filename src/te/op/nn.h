/* SPDX-License-Identifier: Apache-2.0 */
/* Pools, for compute definitions of more than one family: the window's axes and border, a reduction over it, and how
 * many elements it covers. */
#ifndef LATHE_TE_OP_NN_H
#define LATHE_TE_OP_NN_H
#include "graph/op/nn.h"
#include "te/op/util.h"

typedef struct te_pool {
    const te_tensor *x; /* padded, except for max_pool_indices and in blocks of channels */
    const nn_window *w;
    te_axis *const *reduce;
    dtype acc;
    double p;
    bool include_pad;
    bool skips[NN_MAX_SPATIAL]; /* on these axes what the window reaches beside the image is left out */
    bool unpadded;
    tir_expr_ref const *extent; /* of the unpadded input */
    const te_tensor *sum;
    const te_tensor *columns; /* the taps of windows along the last axis that are inside, as f32; NULL: no table */
    te_body_fn only; /* of what windows the reduction is wanted; NULL: of all */
    const void *more; /* what else the body and what follows it want to know */
} te_pool;

/* Reads the window (a row without pool_size pools all of the image), pads with `fill` (reach beyond the end padding in
 * ceil mode included) and makes the kernel axes. */
bool te_pool_setup(te_graph *g, const graph_node *n, te_tensor *x, tir_expr_ref fill, nn_window *w, te_axis **reduce,
                   te_pool *p);
/* What the window reads at idx, as p->acc; ctx is the te_pool. */
tir_expr_ref te_pool_body(te_graph *g, void *ctx, tir_expr_ref const *idx);
/* A reduction of `body` over the windows, of type p->acc. */
te_tensor *te_pool_reduce(te_graph *g, const graph_node *n, const char *name, te_pool *p, te_reduce_kind kind,
                          te_body_fn body);
/* Elements that the window at idx covers: of the image, or with p->include_pad of its border as well. i64. */
tir_expr_ref te_pool_count(te_graph *g, const te_pool *p, tir_expr_ref const *idx);
#endif
