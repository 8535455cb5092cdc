/* SPDX-License-Identifier: Apache-2.0 */
/* Compute definition of layout_transform: an element of the result has a coordinate on every axis that the layouts
 * name, and these lead to the element of the source. */
#include "graph/op/layout.h"

#include "te/op/util.h"

typedef struct layout_ctx {
    const te_tensor *x;
    tensor_layout from, to;
    int64_t extent; /* of source axes with blocks; 0: all that there is room for */
} layout_ctx;

/* idx of `l` as a coordinate on the whole axis. */
static tir_expr_ref coordinate(te_graph *g, const tensor_layout *l, char letter, tir_expr_ref const *idx)
{
    tir_expr_ref whole = NULL;
    for (uint32_t i = 0; i < l->n; i++) {
        if (l->letter[i] != letter)
            continue;
        int64_t step = layout_step(l, i);
        tir_expr_ref part = step == 1 ? idx[i] : tir_mul(g->c, idx[i], te_i64(g, step));
        whole = whole ? tir_add(g->c, whole, part) : part;
    }
    return whole;
}

/* What the source has on this axis; NULL: as much as the result asks for. */
static tir_expr_ref limit(te_graph *g, const layout_ctx *v, char letter)
{
    int64_t block = layout_block(&v->to, letter), n = 0;
    if (layout_block(&v->from, letter))
        return v->extent && block && v->extent % block ? te_i64(g, v->extent) : NULL;
    tir_expr_ref extent = v->x->shape[layout_find(&v->from, letter, false)];
    return block && !(tir_is_int(extent, &n) && n % block == 0) ? extent : NULL;
}

static tir_expr_ref layout_body(te_graph *g, void *ctx, tir_expr_ref const *idx)
{
    const layout_ctx *v = ctx;
    compiler *c = g->c;
    tir_expr_ref at[TYPE_MAX_RANK] = {NULL}, inside = NULL;
    for (uint32_t i = 0; i < v->from.n; i++) {
        char letter = v->from.letter[i];
        int64_t step = layout_step(&v->from, i);
        tir_expr_ref whole = coordinate(g, &v->to, letter, idx), end = limit(g, v, letter);
        at[i] = whole;
        if (step > 1)
            at[i] = tir_floordiv(c, whole, te_i64(g, step));
        if (v->from.block[i])
            at[i] = tir_floormod(c, at[i], te_i64(g, v->from.block[i]));
        if (end && !v->from.block[i])
            inside = tir_and(c, inside, tir_binary(c, TIR_LT, whole, end));
    }
    tir_expr_ref value = te_read(g, v->x, at);
    return inside ? tir_select(c, inside, value, tir_const(c, v->x->dt, 0)) : value;
}

bool compute_layout_transform(te_graph *g, const graph_node *n, te_tensor *const *in, te_tensor **out)
{
    layout_ctx v = {.x = in[0], .extent = graph_attr_int(n, "extent")};
    if (!layout_parse(graph_attr_string(n, "src_layout"), &v.from) ||
        !layout_parse(graph_attr_string(n, "dst_layout"), &v.to))
        return false; /* the type relation has refused it */
    out[0] = te_compute(g, "packed", in[0]->dt, v.to.n, te_shape(g, te_out_type(n, 0)), layout_body, &v);
    return true;
}
