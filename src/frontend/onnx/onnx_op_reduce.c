/* SPDX-License-Identifier: Apache-2.0 */
/* Importers of reductions, of softmax as it was before operator set 13, and of TopK. */
#include "frontend/onnx/onnx_import.h"

#include <string.h>

/* --- Reduce* --- */

typedef struct reduction {
    const char *kind; /* the row's target */
    bool keep, none;  /* none: no axis is reduced (noop_with_empty_axes) */
    uint32_t n_axes;  /* 0: all */
    int64_t axes[TYPE_MAX_RANK * 2];
} reduction;

static graph_value *plain_reduce(onnx_node *n, const reduction *r, const char *op, graph_value *x, bool keep)
{
    return r->none ? x : onnx_reduce(n, op, x, r->n_axes, r->axes, keep);
}

/* log(sum(exp(x - m))) + m with m the maximum, or 0 where that is infinite. */
static graph_value *log_sum_exp(onnx_node *n, const reduction *r, graph_value *x)
{
    graph_value *m = plain_reduce(n, r, "max", x, true);
    graph_value *zero = onnx_const_like(n, m, 0), *infinite = onnx_unary(n, "isinf", m);
    m = onnx_where(n, infinite, zero, m);
    graph_value *e = onnx_unary(n, "exp", onnx_binary(n, "subtract", x, m));
    graph_value *s = onnx_unary(n, "log", plain_reduce(n, r, "sum", e, true));
    s = onnx_binary(n, "add", s, m);
    return r->keep || r->none ? s : onnx_reduce(n, "sum", s, r->n_axes, r->axes, false); /* axes of extent 1 go */
}

static graph_value *float_reduce(onnx_node *n, const reduction *r, graph_value *x)
{
    if (strcmp(r->kind, "log_sum_exp") == 0)
        return log_sum_exp(n, r, x);
    if (strcmp(r->kind, "log_sum") == 0)
        return onnx_unary(n, "log", plain_reduce(n, r, "sum", x, r->keep));
    return onnx_unary(n, "sqrt", plain_reduce(n, r, "sum", onnx_binary(n, "multiply", x, x), r->keep)); /* l2 */
}

static graph_value *reduce(onnx_node *n, const reduction *r, graph_value *x)
{
    if (strcmp(r->kind, "l1") == 0)
        return plain_reduce(n, r, "sum", onnx_unary(n, "abs", x), r->keep);
    if (strcmp(r->kind, "sum_square") == 0)
        return plain_reduce(n, r, "sum", onnx_binary(n, "multiply", x, x), r->keep);
    if (strcmp(r->kind, "l2") == 0 || strncmp(r->kind, "log", 3) == 0) {
        dtype dt = onnx_dtype(x); /* integers: computed as floats, cut off at the end */
        bool is_float = dtype_is_float(dt);
        graph_value *y = float_reduce(n, r, is_float ? x : onnx_cast(n, x, DT_F64));
        return is_float ? y : onnx_cast(n, y, dt);
    }
    return plain_reduce(n, r, r->kind, x, r->keep);
}

/* The simple kinds end in one node, which takes the model's name and its declared type. */
static bool finish_reduce(onnx_node *n, const reduction *r, graph_value *x)
{
    bool simple = !strchr(r->kind, '_') && r->kind[0] != 'l';
    if (!simple || r->none)
        return onnx_alias(n, 0, reduce(n, r, x));
    attr a[2] = {attr_ints(n->c, "axes", r->n_axes, r->axes), attr_int(n->c, "keepdims", r->keep)};
    onnx_result(n, 0, ONNX_ARGS(r->kind, 2, a, x));
    return !n->failed;
}

/* --- axes that are known only at run time --- */

/* The declared shape of the result leaves a few sets of axes possible. One: that is it. Several: all are computed, and
 * the operand chooses. The program checks that the operand names one of them. */

static graph_value *reduce_set(onnx_node *n, reduction r, graph_value *x, int64_t set)
{
    r.n_axes = 0;
    for (uint32_t i = 0; i < onnx_rank(x); i++)
        if (set >> i & 1)
            r.axes[r.n_axes++] = i;
    return reduce(n, &r, x);
}

static bool reduce_by_operand(onnx_node *n, const reduction *r, graph_value *x, graph_value *axes)
{
    const type *want = onnx_declared(n, 0);
    int64_t in[TYPE_MAX_RANK], out[TYPE_MAX_RANK], sets[ONNX_MAX_SETS], count = 0;
    uint32_t rank = onnx_rank(x);
    if (!want || !shape_get(want->shape, out) || !shape_get(x->type.shape, in) || onnx_rank(axes) != 1 || rank > 8 ||
        rank == 0 || !dim_is_const(onnx_dim(n, axes, 0), &count))
        return onnx_fail(n, DIAG_UNSUPPORTED, "axes that are not constant need static shapes and a declared result");
    uint32_t n_sets = onnx_axis_sets(rank, in, (uint32_t)want->shape.rank, out, count, r->keep, false, sets);
    if (n_sets == 0)
        return onnx_fail(n, DIAG_TYPE, "no set of %lld axes gives the declared shape", (long long)count);
    graph_value *bits = onnx_axes_as_bits(n, axes, rank);
    graph_value *y = reduce_set(n, *r, onnx_expect(n, x, bits, n_sets, 1, sets), sets[0]);
    for (uint32_t i = 1; i < n_sets; i++) {
        graph_value *chosen = onnx_binary(n, "equal", bits, onnx_const_int(n, DT_I64, sets[i]));
        y = onnx_where(n, chosen, reduce_set(n, *r, x, sets[i]), y);
    }
    return onnx_alias(n, 0, y);
}

/* target: the kind; attrs "input": axes are operand 1. */
bool onnx_op_reduce(onnx_node *n)
{
    graph_value *x = onnx_in(n, 0), *axes = onnx_optional(n, 1);
    bool operand = strcmp(n->row->attrs, "input") == 0,
         noop = operand && onnx_attr_int(n, "noop_with_empty_axes", 0) != 0;
    reduction r = {.kind = n->row->target, .keep = onnx_attr_int(n, "keepdims", 1) != 0};
    const int64_t *list = NULL;
    uint32_t len = onnx_attr_ints(n, "axes", &list);
    if (len > TYPE_MAX_RANK)
        return onnx_fail(n, DIAG_FORMAT, "too many axes");
    if (len)
        memcpy(r.axes, list, len * sizeof *list);
    r.n_axes = len;
    if (operand && axes && shape_count(axes->type.shape) != 0 && !onnx_ints_of(axes, r.axes, &r.n_axes))
        return reduce_by_operand(n, &r, x, axes);
    r.none = (noop && r.n_axes == 0) || onnx_rank(x) == 0;
    return finish_reduce(n, &r, x);
}

/* --- softmax and its kin --- */

static graph_value *hardmax(onnx_node *n, graph_value *x, int64_t axis, bool result)
{
    uint32_t at = onnx_axis(n, axis, onnx_rank(x));
    attr arg[2] = {attr_int(n->c, "axis", at), attr_int(n->c, "keepdims", 0)};
    graph_value *i = onnx_emit(n, ONNX_ARGS("argmax", 2, arg, x));
    graph_value *depth = onnx_const_int(n, DT_I64, onnx_static_dim(n, x, at));
    if (n->failed)
        return onnx_nothing(n);
    uint8_t *v = arena_alloc(&n->c->mem, 2 * dtype_bytes(onnx_dtype(x)), 8);
    dtype_store_i64(onnx_dtype(x), v + dtype_bytes(onnx_dtype(x)), 1);
    graph_value *values = onnx_constant(n, tensor_dense(n->c, onnx_dtype(x), 1, (int64_t[]){2}, v));
    attr a = attr_int(n->c, "axis", at);
    onnx_args args = ONNX_ARGS("one_hot", 1, &a, i, depth, values);
    return result ? onnx_result(n, 0, args) : onnx_emit(n, args);
}

bool onnx_op_hardmax(onnx_node *n)
{
    hardmax(n, onnx_in(n, 0), onnx_attr_int(n, "axis", -1), true);
    return !n->failed;
}

static dim product(onnx_node *n, graph_value *x, uint32_t from, uint32_t to)
{
    dim d = dim_const(n->c, 1);
    for (uint32_t i = from; i < to; i++)
        d = dim_mul(n->c, d, onnx_dim(n, x, i));
    return d;
}

/* Before operator set 13 the axes from `axis` on were one: softmax over the rows of a matrix. target: the operator. */
bool onnx_op_softmax_1(onnx_node *n)
{
    graph_value *x = onnx_in(n, 0);
    uint32_t rank = onnx_rank(x);
    int64_t given = onnx_attr_int(n, "axis", 1);
    uint32_t at = given == (int64_t)rank ? rank : onnx_axis(n, given, rank);
    bool hard = strcmp(n->row->target, "hardmax") == 0, whole = at + 1 == rank;
    attr a = attr_int(n->c, "axis", -1);
    if (n->failed)
        return false;
    dim rows[2] = {product(n, x, 0, at), product(n, x, at, rank)};
    graph_value *m = whole ? x : onnx_reshape(n, x, 2, rows);
    if (whole) {
        if (hard)
            hardmax(n, m, -1, true);
        else
            onnx_result(n, 0, ONNX_ARGS(n->row->target, 1, &a, m));
        return !n->failed;
    }
    m = hard ? hardmax(n, m, -1, false) : onnx_emit(n, ONNX_ARGS(n->row->target, 1, &a, m));
    if (!n->failed)
        (void)onnx_make_reshape(n, 0, m, rank, x->type.shape.dims);
    return !n->failed;
}

/* --- TopK --- */

static bool topk(onnx_node *n, graph_value *k)
{
    const graph_op *op = graph_find_op(n->c, "topk");
    attr a[8];
    uint32_t count = onnx_row_attrs(n, n->row->attrs, op, a);
    graph_value *in[2] = {onnx_in(n, 0), k};
    return onnx_results(n, (onnx_args){"topk", 2, in, count, a}, 2);
}

bool onnx_op_topk_1(onnx_node *n)
{
    int64_t k = onnx_attr_int(n, "k", 0);
    return topk(n, onnx_const_ints(n, 1, &k));
}

bool onnx_op_topk(onnx_node *n)
{
    return topk(n, onnx_in(n, 1));
}
