/* SPDX-License-Identifier: Apache-2.0 */
/* Compute definition of Einsum: the sum over all labels that the output lacks of the product of the operands. */
#include "graph/op/einsum.h"

#include "te/op/util.h"

typedef struct einsum_ctx {
    const einsum *e;
    te_tensor *const *in;
    te_axis *axis[EINSUM_LABELS]; /* summed labels */
    dtype acc;
} einsum_ctx;

static tir_expr_ref einsum_body(te_graph *g, void *ctx, tir_expr_ref const *idx)
{
    const einsum_ctx *v = ctx;
    tir_expr_ref at_label[EINSUM_LABELS] = {0}, at[TYPE_MAX_RANK], product = NULL;
    for (uint32_t i = 0; i < EINSUM_LABELS; i++)
        if (v->axis[i])
            at_label[i] = te_var(g, v->axis[i]);
    for (uint32_t i = 0; i < v->e->out_rank; i++)
        at_label[v->e->out[i]] = idx[i];
    for (uint32_t i = 0; i < v->e->n_operands; i++) {
        tir_expr_ref of[TYPE_MAX_RANK], extents[TYPE_MAX_RANK];
        for (uint32_t k = 0; k < v->e->rank[i]; k++) {
            of[k] = at_label[v->e->label[i][k]];
            extents[k] = te_dim(g, v->e->extent[v->e->label[i][k]]);
        }
        te_broadcast_lead(g, v->in[i], v->e->rank[i], v->e->rank[i], extents, of, at);
        tir_expr_ref x = tir_cast(g->c, v->acc, te_read(g, v->in[i], at));
        product = product ? tir_mul(g->c, product, x) : x;
    }
    return product;
}

bool compute_einsum(te_graph *g, const graph_node *n, te_tensor *const *in, te_tensor **out)
{
    einsum e;
    if (!einsum_read(g->c, n, &e))
        return false;
    const type *t = te_out_type(n, 0);
    einsum_ctx v = {.e = &e, .in = in, .acc = te_acc_dtype(t->dt)};
    te_axis *reduce[EINSUM_LABELS];
    uint32_t n_reduce = 0;
    for (uint32_t l = 0; l < EINSUM_LABELS; l++) {
        bool kept = !e.extent[l];
        for (uint32_t i = 0; i < e.out_rank; i++)
            kept |= e.out[i] == l;
        if (!kept)
            reduce[n_reduce++] = v.axis[l] = te_numbered_axis(g, "k", l, te_dim(g, e.extent[l]));
    }
    te_tensor *y =
        n_reduce ? te_reduce(g, "einsum", v.acc, e.out_rank, te_shape(g, t), n_reduce, reduce, TE_SUM, einsum_body, &v)
                 : te_compute(g, "einsum", v.acc, e.out_rank, te_shape(g, t), einsum_body, &v);
    out[0] = te_cast_to(g, "einsum_cast", y, t->dt);
    return true;
}
