/* SPDX-License-Identifier: Apache-2.0 */
/* Products of two operands of bytes as those of numbers of 16 bits, less their zero points. Four numbers along the sum
 * are a step. Of the left operand the steps of two rows stand side by side, [.., pair of rows, step, row, 4]; of the
 * right one those of all columns, [.., step, column, 4], whichever way it is stored. What a last step or pair lacks
 * is 0. */
#include "te/op/product_pairs.h"

#include "te/op/util.h"

#include <string.h>

typedef struct operand {
    const te_tensor *x, *zero; /* zero NULL: 0 */
    uint32_t lead;             /* axes of batches */
    bool along;                /* the last axis is the sum's, else the one before it */
    tir_expr_ref lines, count; /* rows of the left one, columns of the right one; numbers that are added up */
    const te_tensor *steps;
} operand;

typedef struct product {
    operand a, b;
    uint32_t out_rank;
    tir_expr_ref const *extents; /* of the result */
    te_axis *step, *number;
} product;

static tir_expr_ref rounded_up(te_graph *g, tir_expr_ref n, int64_t by)
{
    return tir_floordiv(g->c, tir_add(g->c, n, te_i64(g, by - 1)), te_i64(g, by));
}

/* Whether place i of n may lie behind the last one, where n is made a multiple of so many. */
static tir_expr_ref there(te_graph *g, tir_expr_ref i, tir_expr_ref n, int64_t multiple)
{
    int64_t known = 0;
    return tir_is_int(n, &known) && known % multiple == 0 ? NULL : tir_binary(g->c, TIR_LT, i, n);
}

/* Number k of a line, as 16 bits less the zero point; 0 where `inside` does not hold. */
static tir_expr_ref number_at(te_graph *g, const operand *v, tir_expr_ref const *idx, tir_expr_ref line, tir_expr_ref k,
                              tir_expr_ref inside)
{
    tir_expr_ref at[TYPE_MAX_RANK];
    for (uint32_t i = 0; i < v->lead; i++)
        at[i] = idx[i];
    at[v->lead] = v->along ? line : k;
    at[v->lead + 1] = v->along ? k : line;
    tir_expr_ref x = te_centred(g, DT_I16, te_read(g, v->x, at), te_read_one(g, v->zero));
    return inside ? tir_select(g->c, inside, x, tir_int(g->c, DT_I16, 0)) : x;
}

static tir_expr_ref left_steps(te_graph *g, void *ctx, tir_expr_ref const *idx)
{
    const operand *v = &((const product *)ctx)->a;
    compiler *c = g->c;
    tir_expr_ref const *own = idx + v->lead;
    tir_expr_ref row = tir_add(c, tir_mul(c, own[0], te_i64(g, PAIRS_ROWS)), own[2]),
                 k = tir_add(c, tir_mul(c, own[1], te_i64(g, PAIRS_STEP)), own[3]);
    tir_expr_ref inside = tir_and(c, there(g, row, v->lines, PAIRS_ROWS), there(g, k, v->count, PAIRS_STEP));
    return number_at(g, v, idx, row, k, inside);
}

static tir_expr_ref right_steps(te_graph *g, void *ctx, tir_expr_ref const *idx)
{
    const operand *v = &((const product *)ctx)->b;
    tir_expr_ref const *own = idx + v->lead;
    tir_expr_ref k = tir_add(g->c, tir_mul(g->c, own[0], te_i64(g, PAIRS_STEP)), own[2]);
    return number_at(g, v, idx, own[1], k, there(g, k, v->count, PAIRS_STEP));
}

static tir_expr_ref product_of_steps(te_graph *g, void *ctx, tir_expr_ref const *idx)
{
    const product *v = ctx;
    compiler *c = g->c;
    const uint32_t lead = v->out_rank - 2;
    tir_expr_ref at[TYPE_MAX_RANK + 2], bt[TYPE_MAX_RANK + 2], step = te_var(g, v->step), k = te_var(g, v->number),
                 rows = te_i64(g, PAIRS_ROWS);
    te_broadcast_lead(g, v->a.x, v->a.lead, lead, v->extents, idx, at);
    te_broadcast_lead(g, v->b.x, v->b.lead, lead, v->extents, idx, bt);
    at[v->a.lead] = tir_floordiv(c, idx[lead], rows);
    at[v->a.lead + 1] = bt[v->b.lead] = step;
    at[v->a.lead + 2] = tir_floormod(c, idx[lead], rows);
    bt[v->b.lead + 1] = idx[lead + 1];
    at[v->a.lead + 3] = bt[v->b.lead + 2] = k;
    return tir_mul(c, tir_cast(c, DT_I32, te_read(g, v->a.steps, at)), tir_cast(c, DT_I32, te_read(g, v->b.steps, bt)));
}

static const te_tensor *steps_of(te_graph *g, const char *tag, const operand *v, bool left, te_body_fn body, void *ctx)
{
    tir_expr_ref dims[TYPE_MAX_RANK + 2];
    uint32_t n = v->lead;
    memcpy(dims, v->x->shape, n * sizeof *dims);
    if (left)
        dims[n++] = rounded_up(g, v->lines, PAIRS_ROWS);
    dims[n++] = rounded_up(g, v->count, PAIRS_STEP);
    dims[n++] = left ? te_i64(g, PAIRS_ROWS) : v->lines;
    dims[n++] = te_i64(g, PAIRS_STEP);
    te_tensor *y = te_compute(g, tag, DT_I16, n, arena_copy(&g->c->mem, dims, n * sizeof *dims, _Alignof(tir_expr_ref)),
                              body, ctx);
    y->node->tag = tag;
    return y;
}

static operand read_operand(const te_tensor *x, const te_tensor *zero, bool along)
{
    const uint32_t lead = x->rank - 2;
    return (operand){x, zero, lead, along, x->shape[along ? lead : lead + 1], x->shape[along ? lead + 1 : lead], NULL};
}

te_tensor *te_product_pairs(te_graph *g, const graph_node *n, te_tensor *const *in)
{
    const type *t = te_out_type(n, 0);
    product *v = arena_new(&g->c->mem, product);
    v->a = read_operand(in[0], n->n_inputs > 2 ? in[2] : NULL, graph_attr_int(n, "transpose_a") == 0);
    v->b = read_operand(in[1], n->n_inputs > 3 ? in[3] : NULL, graph_attr_int(n, "transpose_b") != 0);
    v->out_rank = (uint32_t)t->shape.rank;
    v->extents = te_shape(g, t);
    v->a.steps = steps_of(g, "wide_data", &v->a, true, left_steps, v);
    v->b.steps = steps_of(g, "wide_weights", &v->b, false, right_steps, v);
    v->step = te_reduce_axis(g, "step", rounded_up(g, v->a.count, PAIRS_STEP));
    v->number = te_reduce_axis(g, "k", te_i64(g, PAIRS_STEP));
    return te_reduce(g, "matmul", DT_I32, v->out_rank, v->extents, 2, (te_axis *[]){v->step, v->number}, TE_SUM,
                     product_of_steps, v);
}
