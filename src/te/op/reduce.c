/* SPDX-License-Identifier: Apache-2.0 */
/* Compute definitions of reductions along axes: sum, product, extrema, mean, arg-reductions, softmax. */
#include "te/op/util.h"

#include <math.h>
#include <string.h>

typedef struct reduce_ctx {
    const te_tensor *x, *row, *sum;
    bool is_reduced[TYPE_MAX_RANK];
    te_axis *axes[TYPE_MAX_RANK]; /* one per reduced axis, in order */
    uint32_t n_reduce;
    bool keepdims;
    dtype acc, out;
    tir_expr_ref count;
} reduce_ctx;

/* Index of x from the output index and the reduction axes. */
static void reduce_at(te_graph *g, const reduce_ctx *v, tir_expr_ref const *idx, tir_expr_ref *at)
{
    uint32_t r = 0, o = 0;
    for (uint32_t i = 0; i < v->x->rank; i++) {
        if (v->is_reduced[i]) {
            at[i] = te_var(g, v->axes[r++]);
            o += v->keepdims;
        } else {
            at[i] = idx[o++];
        }
    }
}

static tir_expr_ref reduce_body(te_graph *g, void *ctx, tir_expr_ref const *idx)
{
    const reduce_ctx *v = ctx;
    tir_expr_ref at[TYPE_MAX_RANK];
    reduce_at(g, v, idx, at);
    return tir_cast(g->c, v->acc, te_read(g, v->x, at));
}

static bool reduce_setup(te_graph *g, const graph_node *n, te_tensor *x, reduce_ctx *v)
{
    const int64_t *axes = NULL;
    uint32_t len = graph_attr_ints(n, "axes", &axes);
    dtype acc = x->dt == DT_BOOL ? DT_U8 : te_acc_dtype(x->dt); /* of bool: max is "any", min is "all" */
    *v = (reduce_ctx){.x = x, .keepdims = graph_attr_int(n, "keepdims") != 0, .acc = acc, .out = x->dt};
    for (uint32_t i = 0; i < len; i++) {
        int32_t a = 0;
        if (!infer_axis(g->c, n, axes[i], (int32_t)x->rank, &a))
            return false;
        v->is_reduced[a] = true;
    }
    v->count = te_i64(g, 1);
    for (uint32_t i = 0; i < x->rank; i++) {
        v->is_reduced[i] |= len == 0;
        if (!v->is_reduced[i])
            continue;
        v->axes[v->n_reduce] = te_numbered_axis(g, "k", v->n_reduce, x->shape[i]);
        v->n_reduce++;
        v->count = tir_mul(g->c, v->count, x->shape[i]);
    }
    return true;
}

static te_tensor *reduce_stage(te_graph *g, const graph_node *n, const reduce_ctx *v, te_reduce_kind kind,
                               const char *name)
{
    const type *t = te_out_type(n, 0);
    return te_reduce(g, name, v->acc, (uint32_t)t->shape.rank, te_shape(g, t), v->n_reduce, v->axes, kind, reduce_body,
                     (void *)v);
}

static bool simple_reduce(te_graph *g, const graph_node *n, te_tensor *const *in, te_tensor **out, te_reduce_kind kind)
{
    reduce_ctx v;
    if (!reduce_setup(g, n, in[0], &v))
        return false;
    if (v.n_reduce == 0) { /* rank 0: nothing to reduce */
        te_tensor *same = te_compute(g, n->op->name, v.acc, in[0]->rank, in[0]->shape, reduce_body, &v);
        out[0] = te_cast_to(g, "reduced", same, v.out);
        return true;
    }
    out[0] = te_cast_to(g, "reduced", reduce_stage(g, n, &v, kind, n->op->name), v.out);
    return true;
}

bool compute_sum(te_graph *g, const graph_node *n, te_tensor *const *in, te_tensor **out)
{
    return simple_reduce(g, n, in, out, TE_SUM);
}
bool compute_prod(te_graph *g, const graph_node *n, te_tensor *const *in, te_tensor **out)
{
    return simple_reduce(g, n, in, out, TE_PROD);
}
bool compute_max(te_graph *g, const graph_node *n, te_tensor *const *in, te_tensor **out)
{
    return simple_reduce(g, n, in, out, TE_MAX);
}
bool compute_min(te_graph *g, const graph_node *n, te_tensor *const *in, te_tensor **out)
{
    return simple_reduce(g, n, in, out, TE_MIN);
}

static tir_expr_ref mean_body(te_graph *g, void *ctx, tir_expr_ref const *idx)
{
    const reduce_ctx *v = ctx;
    return tir_cast(g->c, v->out, tir_binary(g->c, TIR_DIV, te_read(g, v->sum, idx), tir_cast(g->c, v->acc, v->count)));
}

bool compute_mean(te_graph *g, const graph_node *n, te_tensor *const *in, te_tensor **out)
{
    reduce_ctx v;
    if (!reduce_setup(g, n, in[0], &v))
        return false;
    if (v.n_reduce == 0)
        return simple_reduce(g, n, in, out, TE_SUM);
    v.sum = reduce_stage(g, n, &v, TE_SUM, "mean_sum");
    out[0] = te_compute(g, "mean", v.out, v.sum->rank, v.sum->shape, mean_body, &v);
    return true;
}

/* --- arg-reductions: (value, index) pairs
 * ----------------------------------------------------------------------------------- */

/* NaN is better than every number. Of several NaN the first counts, or the last, when they come in order, as under all
 * schedules that rules make: a comparison of their places would keep gcc from making vectors of this. So would the
 * identity's test in front of the others. */
const te_reducer *te_arg_reducer(te_graph *g, dtype dt, bool want_max, bool last)
{
    compiler *c = g->c;
    const tir_var **v = arena_array(&c->mem, const tir_var *, 4);
    v[0] = tir_new_var(c, "acc_value", tir_scalar(dt));
    v[1] = tir_new_var(c, "acc_index", TIR_I64);
    v[2] = tir_new_var(c, "value", tir_scalar(dt));
    v[3] = tir_new_var(c, "index", TIR_I64);
    tir_expr_ref a = tir_varref(c, v[0]), ai = tir_varref(c, v[1]), x = tir_varref(c, v[2]), xi = tir_varref(c, v[3]);
    tir_expr_ref better = tir_binary(c, want_max ? TIR_GT : TIR_LT, x, a), nan = tir_binary(c, TIR_NE, x, x);
    if (dtype_is_float(dt))
        better = tir_binary(c, TIR_OR, better, last ? nan : tir_and(c, nan, tir_binary(c, TIR_EQ, a, a)));
    tir_expr_ref tie = tir_and(c, tir_binary(c, TIR_EQ, x, a), tir_binary(c, last ? TIR_GT : TIR_LT, xi, ai));
    tir_expr_ref unset =
        tir_binary(c, TIR_LT, ai, tir_i64(c, 0)); /* the identity loses to everything, infinities included */
    tir_expr_ref set = tir_binary(c, TIR_GE, xi, tir_i64(c, 0));
    tir_expr_ref take = tir_and(c, set, tir_binary(c, TIR_OR, tir_binary(c, TIR_OR, better, tie), unset));
    tir_expr_ref *e = arena_array(&c->mem, tir_expr_ref, 4);
    e[0] = tir_select(c, take, x, a);
    e[1] = tir_select(c, take, xi, ai);
    e[2] = tir_const(c, dt, 0);
    e[3] = tir_i64(c, -1);
    te_reducer *r = arena_new(&c->mem, te_reducer);
    *r = (te_reducer){2, v, v + 2, e, e + 2};
    return r;
}

static bool arg_reduce(te_graph *g, const graph_node *n, te_tensor *const *in, te_tensor **out, bool want_max)
{
    const te_tensor *x = in[0];
    int32_t axis = 0;
    if (!infer_axis(g->c, n, graph_attr_int(n, "axis"), (int32_t)x->rank, &axis))
        return false;
    reduce_ctx v = {.x = x, .keepdims = graph_attr_int(n, "keepdims") != 0, .n_reduce = 1};
    v.is_reduced[axis] = true;
    v.axes[0] = te_reduce_axis(g, "k", x->shape[axis]);
    const type *t = te_out_type(n, 0);
    uint32_t rank = (uint32_t)t->shape.rank;
    tir_expr_ref const *dims = te_shape(g, t);
    te_axis *const *axes = te_data_axes(g, rank, dims);
    tir_expr_ref idx[TYPE_MAX_RANK], at[TYPE_MAX_RANK];
    for (uint32_t i = 0; i < rank; i++)
        idx[i] = te_var(g, axes[i]);
    reduce_at(g, &v, idx, at);
    dtype dt = te_acc_dtype(x->dt);
    const te_reducer *r = te_arg_reducer(g, dt, want_max, graph_attr_int(n, "select_last_index") != 0);
    te_tensor *pair[2];
    te_compute_n(g, n->op->name, rank, dims, axes, 1, v.axes, r, NULL, 2, (dtype[]){dt, DT_I64},
                 (tir_expr_ref[]){tir_cast(g->c, dt, te_read(g, x, at)), te_var(g, v.axes[0])}, pair);
    out[0] = pair[1];
    return true;
}

bool compute_argmax(te_graph *g, const graph_node *n, te_tensor *const *in, te_tensor **out)
{
    return arg_reduce(g, n, in, out, true);
}
bool compute_argmin(te_graph *g, const graph_node *n, te_tensor *const *in, te_tensor **out)
{
    return arg_reduce(g, n, in, out, false);
}

/* --- softmax: max, sum of exp(x - max), quotient
 * ------------------------------------------------------------------------------ */

/* The statistics of a row have x's rank with extent 1 on the axis. */
static void row_of(te_graph *g, const reduce_ctx *v, tir_expr_ref const *idx, tir_expr_ref *at)
{
    for (uint32_t i = 0; i < v->x->rank; i++)
        at[i] = v->is_reduced[i] ? te_i64(g, 0) : idx[i];
}

static tir_expr_ref shifted(te_graph *g, const reduce_ctx *v, tir_expr_ref const *at)
{
    tir_expr_ref row[TYPE_MAX_RANK];
    row_of(g, v, at, row);
    return tir_sub(g->c, tir_cast(g->c, v->acc, te_read(g, v->x, at)), te_read(g, v->row, row));
}

static tir_expr_ref exp_sum_body(te_graph *g, void *ctx, tir_expr_ref const *idx)
{
    const reduce_ctx *v = ctx;
    tir_expr_ref at[TYPE_MAX_RANK];
    reduce_at(g, v, idx, at);
    return tir_call1(g->c, TIR_DECAY, shifted(g, v, at));
}

static tir_expr_ref exp_body(te_graph *g, void *ctx, tir_expr_ref const *idx)
{
    return tir_call1(g->c, TIR_DECAY, shifted(g, ctx, idx));
}

static tir_expr_ref read_reduced_body(te_graph *g, void *ctx, tir_expr_ref const *idx)
{
    const reduce_ctx *v = ((void **)ctx)[0];
    const te_tensor *e = ((void **)ctx)[1];
    tir_expr_ref at[TYPE_MAX_RANK];
    reduce_at(g, v, idx, at);
    return te_read(g, e, at);
}

static tir_expr_ref softmax_body(te_graph *g, void *ctx, tir_expr_ref const *idx)
{
    const reduce_ctx *v = ((void **)ctx)[0];
    const te_tensor *e = ((void **)ctx)[1];
    tir_expr_ref row[TYPE_MAX_RANK];
    row_of(g, v, idx, row);
    return tir_cast(g->c, v->out, tir_mul(g->c, te_read(g, e, idx), te_read(g, v->sum, row)));
}

/* Once for a row rather than for each of its elements. */
static tir_expr_ref inverse_body(te_graph *g, void *ctx, tir_expr_ref const *idx)
{
    const reduce_ctx *v = ctx;
    return tir_binary(g->c, TIR_DIV, tir_float(g->c, v->acc, 1.0), te_read(g, v->sum, idx));
}

static tir_expr_ref log_body(te_graph *g, void *ctx, tir_expr_ref const *idx)
{
    return tir_call1(g->c, TIR_LOG, te_read(g, ((reduce_ctx *)ctx)->sum, idx));
}

static tir_expr_ref log_softmax_body(te_graph *g, void *ctx, tir_expr_ref const *idx)
{
    const reduce_ctx *v = ctx;
    tir_expr_ref row[TYPE_MAX_RANK];
    row_of(g, v, idx, row);
    tir_expr_ref y = tir_sub(g->c, shifted(g, v, idx), te_read(g, v->sum, row));
    return tir_cast(g->c, v->out, y);
}

static bool softmax_setup(te_graph *g, const graph_node *n, te_tensor *x, reduce_ctx *v, tir_expr_ref *row_shape)
{
    int32_t axis = 0;
    *v = (reduce_ctx){.x = x, .keepdims = true, .acc = te_acc_dtype(x->dt), .out = x->dt};
    memcpy(row_shape, x->shape, x->rank * sizeof *row_shape);
    if (x->rank == 0)
        return true; /* one element: no axis to reduce */
    if (!infer_axis(g->c, n, graph_attr_int(n, "axis"), (int32_t)x->rank, &axis))
        return false;
    v->is_reduced[axis] = true;
    v->n_reduce = 1;
    row_shape[axis] = te_i64(g, 1);
    return true;
}

static tir_expr_ref one_body(te_graph *g, void *ctx, tir_expr_ref const *idx)
{
    (void)idx;
    const reduce_ctx *v = ctx;
    return tir_const(g->c, v->out, v->keepdims ? 1 : 0);
}

/* x's rows in whole vectors: what lies behind their end adds nothing to a maximum, nor to a sum of exponentials. */
static tir_expr_ref filled_body(te_graph *g, void *ctx, tir_expr_ref const *idx)
{
    const te_tensor *x = ctx;
    uint32_t last = x->rank - 1;
    return tir_select(g->c, tir_binary(g->c, TIR_LT, idx[last], x->shape[last]), te_read(g, x, idx),
                      te_lowest(g->c, x->dt));
}

/* As n's attribute `lanes` asks for, where rows are not whole by themselves. */
static te_tensor *filled_rows(te_graph *g, const graph_node *n, te_tensor *x)
{
    int64_t lanes = graph_attr_int(n, "lanes"), v = 0;
    tir_expr_ref dims[TYPE_MAX_RANK];
    if (lanes <= 1 || x->rank == 0 || (tir_is_int(x->shape[x->rank - 1], &v) && v % lanes == 0))
        return x;
    memcpy(dims, x->shape, x->rank * sizeof *dims);
    dims[x->rank - 1] = tir_mul(g->c, te_ceildiv(g, x->shape[x->rank - 1], lanes), te_i64(g, lanes));
    return te_compute(g, "row", x->dt, x->rank, dims, filled_body, x);
}

static bool softmax_like(te_graph *g, const graph_node *n, te_tensor *const *in, te_tensor **out, bool log_form)
{
    reduce_ctx v;
    tir_expr_ref row_shape[TYPE_MAX_RANK];
    te_tensor *x = filled_rows(g, n, in[0]);
    if (!softmax_setup(g, n, x, &v, row_shape))
        return false;
    if (v.n_reduce == 0) { /* softmax of one element is 1, its logarithm 0 */
        v.keepdims = !log_form;
        out[0] = te_compute(g, n->op->name, v.out, 0, NULL, one_body, &v);
        return true;
    }
    uint32_t axis = 0;
    while (!v.is_reduced[axis])
        axis++;
    v.axes[0] = te_reduce_axis(g, "k", x->shape[axis]);
    v.row = te_reduce(g, "row_max", v.acc, x->rank, row_shape, 1, v.axes, TE_MAX, reduce_body, &v);
    v.axes[0] = te_reduce_axis(g, "k", x->shape[axis]);
    if (log_form) {
        v.sum = te_reduce(g, "row_sum", v.acc, x->rank, row_shape, 1, v.axes, TE_SUM, exp_sum_body, &v);
        v.sum = te_compute(g, "row_log", v.acc, x->rank, row_shape, log_body, &v);
        out[0] = te_compute(g, "log_softmax", v.out, x->rank, in[0]->shape, log_softmax_body, &v);
        return true;
    }
    te_tensor *e = te_compute(g, "row_exp", v.acc, x->rank, x->shape, exp_body, &v); /* kept: exp is dear */
    void *ctx[2] = {&v, e};
    v.sum = te_reduce(g, "row_sum", v.acc, x->rank, row_shape, 1, v.axes, TE_SUM, read_reduced_body, ctx);
    v.sum = te_compute(g, "row_scale", v.acc, x->rank, row_shape, inverse_body, &v);
    out[0] = te_compute(g, "softmax", v.out, x->rank, in[0]->shape, softmax_body, ctx);
    return true;
}

bool compute_softmax(te_graph *g, const graph_node *n, te_tensor *const *in, te_tensor **out)
{
    return softmax_like(g, n, in, out, false);
}
bool compute_log_softmax(te_graph *g, const graph_node *n, te_tensor *const *in, te_tensor **out)
{
    return softmax_like(g, n, in, out, true);
}
