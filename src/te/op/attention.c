/* SPDX-License-Identifier: Apache-2.0 */
/* Compute definition of nn.attention: keys in blocks of neighboring positions side by side, scores, their softmax
 * without the division, products with the values, and the division. Rows of scores are whole vectors of `lanes`
 * elements: those behind the last position are minus infinity, which adds nothing to a row's sum. */
#include "graph/op/attention.h"
#include "te/op/util.h"

typedef struct attention_ctx {
    const te_tensor *q, *k, *v, *mask; /* mask NULL: there is none */
    uint32_t q_at[ATTENTION_RANK], k_at[ATTENTION_RANK], v_at[ATTENTION_RANK], out_at[ATTENTION_RANK];
    tir_expr_ref b, h, s, t, d, wide; /* extents; wide: of t, in whole vectors */
    bool filled;                      /* wide is above t */
    int64_t lanes;                    /* of a block of keys: rows of all positions would lie a power of two apart */
    double scale;
    const te_tensor *keys, *values, *bias, *products, *scores, *row_max, *row_exp, *row_sum, *row_scale, *sums;
    te_axis *reduce;
} attention_ctx;

static tir_expr_ref read_at(te_graph *g, const te_tensor *x, const uint32_t at[ATTENTION_RANK], tir_expr_ref b,
                            tir_expr_ref h, tir_expr_ref s, tir_expr_ref d)
{
    tir_expr_ref idx[ATTENTION_RANK];
    idx[at[ATTENTION_B]] = b;
    idx[at[ATTENTION_H]] = h;
    idx[at[ATTENTION_S]] = s;
    idx[at[ATTENTION_D]] = d;
    return te_read(g, x, idx);
}

static tir_expr_ref is_position(te_graph *g, const attention_ctx *x, tir_expr_ref j)
{
    return tir_binary(g->c, TIR_LT, j, x->t);
}

/* [b, h, block, d, position in it] */
static tir_expr_ref keys_body(te_graph *g, void *ctx, tir_expr_ref const *idx)
{
    const attention_ctx *x = ctx;
    tir_expr_ref j = tir_add(g->c, tir_mul(g->c, idx[2], te_i64(g, x->lanes)), idx[4]);
    tir_expr_ref k = read_at(g, x->k, x->k_at, idx[0], idx[1], j, idx[3]);
    return x->filled ? tir_select(g->c, is_position(g, x, j), k, tir_float(g->c, DT_F32, 0)) : k;
}

/* [b, h, j, d] */
static tir_expr_ref values_body(te_graph *g, void *ctx, tir_expr_ref const *idx)
{
    const attention_ctx *x = ctx;
    return read_at(g, x->v, x->v_at, idx[0], idx[1], idx[2], idx[3]);
}

/* The mask, and minus infinity behind the last position. Its axes of extent 1 stay so. */
static tir_expr_ref bias_body(te_graph *g, void *ctx, tir_expr_ref const *idx)
{
    const attention_ctx *x = ctx;
    compiler *c = g->c;
    const tir_expr_ref scores[4] = {x->b, x->h, x->s, x->t};
    tir_expr_ref value = x->mask ? te_read_broadcast(g, x->mask, 4, scores, idx) : tir_float(c, DT_F32, 0);
    return x->filled ? tir_select(c, is_position(g, x, idx[3]), value, te_lowest(c, DT_F32)) : value;
}

static tir_expr_ref products_body(te_graph *g, void *ctx, tir_expr_ref const *idx)
{
    const attention_ctx *x = ctx;
    tir_expr_ref k = te_var(g, x->reduce), lanes = te_i64(g, x->lanes);
    tir_expr_ref at[5] = {idx[0], idx[1], tir_binary(g->c, TIR_FLOORDIV, idx[3], lanes), k,
                          tir_binary(g->c, TIR_FLOORMOD, idx[3], lanes)};
    return tir_mul(g->c, read_at(g, x->q, x->q_at, idx[0], idx[1], idx[2], k), te_read(g, x->keys, at));
}

static tir_expr_ref scores_body(te_graph *g, void *ctx, tir_expr_ref const *idx)
{
    const attention_ctx *x = ctx;
    compiler *c = g->c;
    tir_expr_ref p = te_read(g, x->products, idx), extents[4] = {x->b, x->h, x->s, x->wide};
    if (x->scale != 1)
        p = tir_mul(c, p, tir_float(c, DT_F32, x->scale));
    return x->bias ? tir_add(c, p, te_read_broadcast(g, x->bias, 4, extents, idx)) : p;
}

static tir_expr_ref max_body(te_graph *g, void *ctx, tir_expr_ref const *idx)
{
    const attention_ctx *x = ctx;
    tir_expr_ref at[4] = {idx[0], idx[1], idx[2], te_var(g, x->reduce)};
    return te_read(g, x->scores, at);
}

static tir_expr_ref exp_body(te_graph *g, void *ctx, tir_expr_ref const *idx)
{
    const attention_ctx *x = ctx;
    return tir_call1(g->c, TIR_DECAY, tir_sub(g->c, te_read(g, x->scores, idx), te_read(g, x->row_max, idx)));
}

static tir_expr_ref sum_body(te_graph *g, void *ctx, tir_expr_ref const *idx)
{
    const attention_ctx *x = ctx;
    tir_expr_ref at[4] = {idx[0], idx[1], idx[2], te_var(g, x->reduce)};
    return te_read(g, x->row_exp, at);
}

/* Of no keys, as a run may have them where their number is open, the result is 0. */
static tir_expr_ref scale_body(te_graph *g, void *ctx, tir_expr_ref const *idx)
{
    const attention_ctx *x = ctx;
    compiler *c = g->c;
    tir_expr_ref scale = tir_binary(c, TIR_DIV, tir_float(c, DT_F32, 1), te_read(g, x->row_sum, idx));
    return x->t->kind == TIR_INT
               ? scale : tir_select(c, is_position(g, x, te_i64(g, 0)), scale, tir_float(c, DT_F32, 0));
}

static tir_expr_ref sums_body(te_graph *g, void *ctx, tir_expr_ref const *idx)
{
    const attention_ctx *x = ctx;
    tir_expr_ref j = te_var(g, x->reduce), e[4] = {idx[0], idx[1], idx[2], j}, v[4] = {idx[0], idx[1], j, idx[3]};
    return tir_mul(g->c, te_read(g, x->row_exp, e), te_read(g, x->values, v));
}

static tir_expr_ref out_body(te_graph *g, void *ctx, tir_expr_ref const *idx)
{
    const attention_ctx *x = ctx;
    tir_expr_ref at[4];
    for (uint32_t a = 0; a < ATTENTION_RANK; a++)
        at[a] = idx[x->out_at[a]];
    return tir_mul(g->c, te_read(g, x->sums, at), te_read(g, x->row_scale, at));
}

static te_tensor *stage(te_graph *g, attention_ctx *x, const char *name, uint32_t rank, tir_expr_ref const *dims,
                        te_body_fn body)
{
    te_tensor *t = te_compute(g, name, DT_F32, rank, dims, body, x);
    t->node->tag = arena_printf(&g->c->mem, "attention.%s", name);
    return t;
}

static te_tensor *reduction(te_graph *g, attention_ctx *x, const char *name, uint32_t rank, tir_expr_ref const *dims,
                            tir_expr_ref over, te_reduce_kind kind, te_body_fn body)
{
    x->reduce = te_reduce_axis(g, "k", over);
    te_tensor *t = te_reduce(g, name, DT_F32, rank, dims, 1, &x->reduce, kind, body, x);
    t->node->tag = arena_printf(&g->c->mem, "attention.%s", name);
    return t;
}

static bool read_ctx(te_graph *g, const graph_node *n, te_tensor *const *in, attention_ctx *x)
{
    *x = (attention_ctx){.q = in[0], .k = in[1], .v = in[2], .mask = n->n_inputs > 3 ? in[3] : NULL};
    if (!attention_order(graph_attr_string(n, "q_layout"), x->q_at) ||
        !attention_order(graph_attr_string(n, "k_layout"), x->k_at) ||
        !attention_order(graph_attr_string(n, "v_layout"), x->v_at) ||
        !attention_order(graph_attr_string(n, "out_layout"), x->out_at))
        return false;
    int64_t lanes = graph_attr_int(n, "lanes"), t = 0;
    x->b = x->q->shape[x->q_at[ATTENTION_B]];
    x->h = x->q->shape[x->q_at[ATTENTION_H]];
    x->s = x->q->shape[x->q_at[ATTENTION_S]];
    x->t = x->k->shape[x->k_at[ATTENTION_S]];
    x->d = x->q->shape[x->q_at[ATTENTION_D]];
    x->filled = lanes > 1 && !(tir_is_int(x->t, &t) && t % lanes == 0);
    x->wide = x->filled ? tir_mul(g->c, te_ceildiv(g, x->t, lanes), te_i64(g, lanes)) : x->t;
    x->scale = graph_attr_float(n, "scale");
    x->lanes = lanes;
    return true;
}

/* Extents of the mask under those of the scores: rank 4, 1 where it is stretched. */
static te_tensor *make_bias(te_graph *g, attention_ctx *x)
{
    tir_expr_ref dims[4] = {te_i64(g, 1), te_i64(g, 1), te_i64(g, 1), x->wide};
    if (!x->mask && !x->filled)
        return NULL;
    for (uint32_t i = 0; x->mask && i + 1 < x->mask->rank; i++)
        dims[4 - x->mask->rank + i] = x->mask->shape[i];
    te_tensor *t = stage(g, x, "bias", 4, dims, bias_body);
    t->node->inline_hint = !x->filled;
    return t;
}

bool compute_attention(te_graph *g, const graph_node *n, te_tensor *const *in, te_tensor **out)
{
    attention_ctx x;
    if (!read_ctx(g, n, in, &x))
        return false;
    const tir_expr_ref features = x.v->shape[x.v_at[ATTENTION_D]], rows[3] = {x.b, x.h, x.s},
                       wide[4] = {x.b, x.h, x.s, x.wide};
    const tir_expr_ref blocks[5] = {x.b, x.h, te_ceildiv(g, x.t, x.lanes), x.d, te_i64(g, x.lanes)};
    x.keys = stage(g, &x, "keys", 5, blocks, keys_body);
    x.values = stage(g, &x, "values", 4, (tir_expr_ref[]){x.b, x.h, x.t, features}, values_body);
    x.bias = make_bias(g, &x);
    x.products = reduction(g, &x, "products", 4, wide, x.d, TE_SUM, products_body);
    x.scores = stage(g, &x, "scores", 4, wide, scores_body);
    x.row_max = reduction(g, &x, "row_max", 3, rows, x.wide, TE_MAX, max_body);
    x.row_exp = stage(g, &x, "row_exp", 4, wide, exp_body);
    x.row_sum = reduction(g, &x, "row_sum", 3, rows, x.wide, TE_SUM, sum_body);
    x.row_scale = te_compute(g, "row_scale", DT_F32, 3, rows, scale_body, &x);
    x.row_scale->node->tag = "attention.row_scale";
    x.sums = reduction(g, &x, "sums", 4, (tir_expr_ref[]){x.b, x.h, x.s, features}, x.t, TE_SUM, sums_body);
    out[0] = te_compute(g, "attention", DT_F32, 4, te_shape(g, te_out_type(n, 0)), out_body, &x);
    te_count_macs(g, 6, (int64_t[]){2, te_most(g, x.b), te_most(g, x.h), te_most(g, x.s), te_most(g, x.t),
                                    te_most(g, x.d)});
    return true;
}
