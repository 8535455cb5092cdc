/* SPDX-License-Identifier: Apache-2.0 */
/* What chooses elements: gathers, comparisons and choices by them, the place of the largest, one-hot rows; and what is
 * made of shapes. */
#include "frontend/tflite/tflite_compose.h"

#include <inttypes.h>
#include <string.h>

/* --- gathers --- */

static graph_value *axis_op(tflite_node *n, const char *op, uint32_t n_in, graph_value *const *in, const char *name,
                            int64_t axis)
{
    const attr a = attr_int(n->c, name, axis);
    return tflite_emit(n, op, n_in, in, 1, &a);
}

/* Of axes 0 to batch - 1 each entry has indices of its own: the axis stands behind these for gather_nd, which leaves
 * the axes of the indices there. */
static bool gather_in_batches(tflite_node *n, graph_value *x, graph_value *at, int64_t axis, int64_t batch)
{
    const int32_t rank = at->type.shape.rank, of_x = x->type.shape.rank;
    int64_t dims[TYPE_MAX_RANK + 1], to[TYPE_MAX_RANK], back[2 * TYPE_MAX_RANK];
    uint32_t m = 0, k = 0;
    if (batch < 0 || batch > axis || batch > rank || rank + of_x - batch - 1 > TYPE_MAX_RANK)
        return tflite_fail(n, DIAG_FORMAT, "axis %" PRId64 " with %" PRId64 " axes in common is out of range", axis,
                           batch);
    if (!shape_get(at->type.shape, dims))
        return tflite_fail(n, DIAG_UNSUPPORTED, "an extent of its indices is open; it must be known");
    dims[rank] = 1;
    for (int64_t i = 0; i < of_x; i++)
        to[m++] = i < batch || i > axis ? i : i == batch ? axis : i - 1;
    for (int64_t i = 0; i < rank + of_x - batch - 1; i++)
        back[k++] = i < batch ? i : i < axis ? i + rank - batch : i < axis + rank - batch ? i - axis + batch : i;
    graph_value *in[2] = {axis > batch ? tflite_transpose(n, x, m, to) : x,
                          tflite_reshape(n, at, (uint32_t)rank + 1, dims)};
    graph_value *y = axis_op(n, "gather_nd", 2, in, "batch_dims", batch);
    return tflite_result(n, 0, axis > batch ? tflite_transpose(n, y, k, back) : y);
}

bool tflite_op_gather(tflite_node *n)
{
    const tfl_gather_options *o = n->options;
    graph_value *in[2] = {tflite_in(n, 0), tflite_in(n, 1)};
    int64_t axis;
    if (n->failed || !tflite_axis(n, o->axis, in[0]->type.shape.rank, &axis))
        return false;
    const int64_t batch = o->batch_dims < 0 ? o->batch_dims + in[1]->type.shape.rank : o->batch_dims;
    if (batch != 0)
        return gather_in_batches(n, in[0], in[1], axis, batch);
    return tflite_result(n, 0, axis_op(n, "take", 2, in, "axis", axis));
}

bool tflite_op_gather_nd(tflite_node *n)
{
    graph_value *in[2] = {tflite_in(n, 0), tflite_in(n, 1)};
    return tflite_result(n, 0, tflite_emit(n, "gather_nd", 2, in, 0, NULL));
}

/* Rows of a table; numbers of 8 bits become floats. */
bool tflite_op_embedding_lookup(tflite_node *n)
{
    const tflite_tensor *y = tflite_operand(n, TFLITE_RESULT);
    graph_value *in[2] = {tflite_in(n, 1), tflite_in(n, 0)};
    tflite_scale s;
    graph_value *rows = tflite_emit(n, "take", 2, in, 0, NULL);
    if (n->failed || rows->type.dt == y->type.dt)
        return tflite_result(n, 0, rows);
    if (!tflite_read_scale(n, 1, &s))
        return false;
    graph_value *q[3] = {rows, tflite_number(n, DT_F32, (double)s.scale), tflite_zero(n, &s)};
    return tflite_result(n, 0, tflite_emit(n, "qnn.dequantize", 3, q, 0, NULL));
}

bool tflite_op_scatter_nd(tflite_node *n)
{
    int64_t dims[TYPE_MAX_RANK * 2];
    uint32_t rank;
    graph_value *updates = tflite_in(n, 1);
    if (n->failed || !tflite_ints(n, 2, "the shape", dims, &rank))
        return false;
    const int64_t none[2] = {0, 0};
    const attr value = attr_tensor(n->c, "value", tensor_splat(n->c, updates->type.dt, 0, NULL, none));
    graph_value *extents = tflite_const(n, tensor_from_i64s(n->c, rank, dims), "shape");
    graph_value *in[3] = {tflite_emit(n, "full", 1, &extents, 1, &value), tflite_in(n, 0), updates};
    const attr how = attr_string(n->c, "reduction", "add");
    return tflite_result(n, 0, tflite_emit(n, "scatter_nd", 3, in, 1, &how));
}

/* --- the largest and the least --- */

bool tflite_op_arg_choice(tflite_node *n)
{
    const tflite_tensor *y = tflite_operand(n, TFLITE_RESULT);
    int64_t axis;
    graph_value *x = tflite_in(n, 0);
    if (n->failed || !tflite_one_int(n, 1, "the axis", &axis) || !tflite_axis(n, axis, x->type.shape.rank, &axis))
        return false;
    const attr attrs[2] = {attr_int(n->c, "axis", axis), attr_int(n->c, "keepdims", 0)};
    return tflite_result(n, 0, tflite_cast(n, tflite_emit(n, n->row->target, 1, &x, 2, attrs), y->type.dt));
}

bool tflite_op_top_k(tflite_node *n)
{
    int64_t k;
    graph_value *x = tflite_in(n, 0), *both[2];
    if (n->failed || !tflite_one_int(n, 1, "the number of results", &k))
        return false;
    if (n->n_out != 2)
        return tflite_fail(n, DIAG_FORMAT, "it must have two results, and has %u", n->n_out);
    return compose_top_k(n, x, k, true, both) && tflite_result(n, 0, both[0]) &&
           tflite_result(n, 1, tflite_cast(n, both[1], tflite_operand(n, TFLITE_RESULT + 1)->type.dt));
}

/* --- comparisons, choices --- */

/* Quantised numbers are compared with 8 more bits, each by its own scale. */
bool tflite_op_compare(tflite_node *n)
{
    graph_value *x[2];
    bool image;
    tflite_scale s;
    if (!tflite_in_one_form(n, 2, x, &image))
        return false;
    for (uint32_t i = 0; i < 2 && tflite_is_int(n, 0); i++) {
        if (!tflite_read_scale(n, i, &s))
            return false;
        x[i] = tflite_binary(n, "multiply", tflite_centered(n, x[i], &s), tflite_i32(n, 256));
        x[i] = tflite_rescaled(n, x[i], (double)s.scale, 0x1p24, NULL);
    }
    return tflite_result_as(n, 0, tflite_binary(n, n->row->target, x[0], x[1]), image);
}

bool tflite_op_logical(tflite_node *n)
{
    graph_value *x[2];
    bool image;
    return tflite_in_one_form(n, 2, x, &image) &&
           tflite_result_as(n, 0, tflite_binary(n, n->row->target, x[0], x[1]), image);
}

/* SELECT's condition may be a vector, which then chooses along the first axis. */
bool tflite_op_select(tflite_node *n)
{
    graph_value *in[3] = {tflite_in(n, 0), tflite_in(n, 1), tflite_in(n, 2)};
    int64_t dims[TYPE_MAX_RANK];
    if (n->failed || in[0]->type.dt != DT_BOOL)
        return tflite_fail(n, DIAG_TYPE, "its condition is not of bools");
    const int32_t rank = in[1]->type.shape.rank;
    if (strcmp(n->row->target, "rows") == 0 && in[0]->type.shape.rank == 1 && rank > 1) {
        for (int32_t i = 0; i < rank; i++)
            dims[i] = 1;
        if (!tflite_extent(n, in[0], 0, &dims[0]))
            return false;
        in[0] = tflite_reshape(n, in[0], (uint32_t)rank, dims);
    }
    return tflite_result(n, 0, tflite_emit(n, "where", 3, in, 0, NULL));
}

bool tflite_op_one_hot(tflite_node *n)
{
    const tfl_one_hot_options *o = n->options;
    graph_value *x = tflite_in(n, 0), *on = tflite_in(n, 2), *off = tflite_in(n, 3);
    int64_t depth, axis;
    const int64_t one = 1;
    if (n->failed || !tflite_one_int(n, 1, "the depth", &depth))
        return false;
    if (depth < 0)
        return tflite_fail(n, DIAG_FORMAT, "the depth is below 0");
    const int32_t rank = x->type.shape.rank;
    if (!tflite_axis(n, o->axis == -1 ? rank : o->axis, rank + 1, &axis))
        return false;
    /* an index from before 0 counts from the end there, and stands for none here */
    graph_value *below = tflite_binary(n, "less", x, tflite_number(n, x->type.dt, 0));
    graph_value *index[3] = {below, tflite_number(n, x->type.dt, (double)depth), x};
    graph_value *ends[2] = {tflite_reshape(n, off, 1, &one), tflite_reshape(n, on, 1, &one)};
    graph_value *in[3] = {tflite_emit(n, "where", 3, index, 0, NULL), tflite_number(n, DT_I64, (double)depth),
                          axis_op(n, "concatenate", 2, ends, "axis", 0)};
    return tflite_result(n, 0, axis_op(n, "one_hot", 3, in, "axis", axis));
}

/* Indices of what is true, as rows. */
bool tflite_op_where(tflite_node *n)
{
    const int64_t turned[2] = {1, 0};
    return tflite_result(n, 0, tflite_transpose(n, tflite_unary(n, "nonzero", tflite_in(n, 0)), 2, turned));
}

/* --- a part in the place of another --- */

/* The extent of the axis in the part, which moves along it: where the part is read, and where it is. */
static void place_along(tflite_node *n, graph_value *start, uint32_t axis, int64_t whole, int64_t part,
                        graph_value **at, graph_value **inside)
{
    graph_value *in[2] = {start, compose_number(n, DT_I64, axis)};
    graph_value *first = tflite_cast(n, axis_op(n, "take", 2, in, "axis", 0), DT_I32);
    first = compose_by(n, "minimum", compose_by(n, "maximum", first, 0), whole - part);
    graph_value *place = tflite_binary(n, "subtract", compose_positions(n, whole), first);
    *at = compose_by(n, "minimum", compose_by(n, "maximum", place, 0), part - 1);
    *inside = tflite_binary(n, "equal", *at, place);
}

/* Numbers of x where the part is not, those of the part where it is, which does not leave x. */
bool tflite_op_dynamic_update_slice(tflite_node *n)
{
    graph_value *x = tflite_in(n, 0), *part = tflite_in(n, 1), *start = tflite_in(n, 2), *inside = NULL;
    int64_t whole[TYPE_MAX_RANK], of_part[TYPE_MAX_RANK], dims[TYPE_MAX_RANK];
    if (n->failed)
        return false;
    const int32_t rank = x->type.shape.rank;
    if (!shape_get(x->type.shape, whole) || !shape_get(part->type.shape, of_part))
        return tflite_fail(n, DIAG_UNSUPPORTED, "an extent of its data is open; it must be known");
    if (part->type.shape.rank != rank || part->type.dt != x->type.dt || shape_count(start->type.shape) != rank)
        return tflite_fail(n, DIAG_TYPE, "its operands have different ranks or types");
    for (int32_t i = 0; i < rank; i++) {
        if (of_part[i] > whole[i])
            return tflite_fail(n, DIAG_TYPE, "the part is larger than what it is put into");
        if (of_part[i] == 0)
            return tflite_result(n, 0, tflite_unary(n, "copy", x));
        dims[i] = 1;
    }
    graph_value *y = part;
    for (int32_t i = 0; i < rank; i++) {
        if (of_part[i] == whole[i])
            continue;
        graph_value *in[2] = {y, NULL}, *here;
        place_along(n, start, (uint32_t)i, whole[i], of_part[i], &in[1], &here);
        y = axis_op(n, "take", 2, in, "axis", i);
        dims[i] = whole[i];
        here = tflite_reshape(n, here, (uint32_t)rank, dims);
        dims[i] = 1;
        inside = inside ? tflite_binary(n, "logical_and", inside, here) : here;
    }
    return tflite_result(n, 0, inside ? compose_chosen(n, inside, y, x) : tflite_unary(n, "copy", y));
}

/* --- sums along an axis --- */

bool tflite_op_cumsum(tflite_node *n)
{
    const tfl_cumsum_options *o = n->options;
    const bool is_int = tflite_is_int(n, 0);
    tflite_scale s = {0}, y = {0};
    int64_t axis;
    graph_value *x = tflite_in(n, 0);
    if (n->failed || !tflite_one_int(n, 1, "the axis", &axis) || (is_int && !tflite_read_pair(n, &s, &y)))
        return false;
    x = is_int ? tflite_in_sums(n, x, &s) : x;
    graph_value *in[2] = {x, tflite_const(n, tensor_scalar_i64(n->c, DT_I64, axis), "axis")};
    const attr attrs[2] = {attr_int(n->c, "exclusive", o->exclusive), attr_int(n->c, "reverse", o->reverse)};
    graph_value *sums = tflite_emit(n, "cumsum", 2, in, 2, attrs);
    return tflite_result(n, 0, is_int ? tflite_of_sums(n, sums, &s, &y) : sums);
}

/* --- shapes as data --- */

static bool result_of_ints(tflite_node *n, uint32_t rank, int64_t count, const int64_t *v)
{
    const dtype dt = tflite_operand(n, TFLITE_RESULT)->type.dt;
    int32_t *narrow = arena_array(&n->c->mem, int32_t, (size_t)count + 1);
    for (int64_t i = 0; i < count; i++)
        narrow[i] = (int32_t)v[i];
    if (dt != DT_I32 && dt != DT_I64)
        return tflite_fail(n, DIAG_TYPE, "its result is %s", dtype_name(dt));
    const void *data = dt == DT_I32 ? (const void *)narrow : arena_copy(&n->c->mem, v, ((size_t)count + 1) * 8, 8);
    const tensor_data *t = tensor_dense(n->c, dt, rank, &count, data);
    return tflite_result(n, 0, tflite_const(n, t, "shape"));
}

bool tflite_op_shape(tflite_node *n)
{
    const tflite_tensor *x = tflite_operand(n, 0), *y = tflite_operand(n, TFLITE_RESULT);
    int64_t dims[TYPE_MAX_RANK + 1] = {0};
    if (shape_get(x->type.shape, dims))
        return result_of_ints(n, 1, x->type.shape.rank, dims);
    return tflite_result(n, 0, tflite_cast(n, tflite_unary(n, "shape_of", tflite_in(n, 0)), y->type.dt));
}

bool tflite_op_rank(tflite_node *n)
{
    const int64_t rank[2] = {tflite_operand(n, 0)->type.shape.rank, 0};
    return result_of_ints(n, 0, 1, rank);
}

/* A shape that an operand gives; one that is not constant has come from shapes, and the model says what it is. */
static bool given_shape(tflite_node *n, uint32_t i, int64_t *dims, uint32_t *rank)
{
    const tflite_tensor *y = tflite_operand(n, TFLITE_RESULT);
    if (tflite_constant(n, i))
        return tflite_ints(n, i, "the shape", dims, rank);
    *rank = (uint32_t)y->type.shape.rank;
    return shape_get(y->type.shape, dims);
}

bool tflite_op_broadcast_to(tflite_node *n)
{
    int64_t dims[TYPE_MAX_RANK * 2];
    uint32_t rank;
    graph_value *x = tflite_in(n, 0);
    const uint32_t at = strcmp(n->row->target, "fill") == 0 ? 0 : 1; /* FILL has its shape first */
    x = at == 0 ? tflite_in(n, 1) : x;
    if (n->failed || !given_shape(n, at, dims, &rank))
        return false;
    for (uint32_t i = 0; i < rank; i++)
        if (dims[i] < 0)
            return tflite_fail(n, DIAG_FORMAT, "the shape has a negative extent");
    graph_value *in[2] = {x, tflite_const(n, tensor_from_i64s(n->c, rank, dims), "shape")};
    return tflite_result(n, 0, tflite_emit(n, "broadcast_to", 2, in, 0, NULL));
}

bool tflite_op_broadcast_args(tflite_node *n)
{
    int64_t a[TYPE_MAX_RANK * 2], b[TYPE_MAX_RANK * 2], *longer = a;
    uint32_t n_a, n_b;
    if (!tflite_ints(n, 0, "a shape", a, &n_a) || !tflite_ints(n, 1, "a shape", b, &n_b))
        return false;
    const uint32_t less = n_a < n_b ? n_a : n_b, rank = n_a < n_b ? n_b : n_a;
    longer = n_a < n_b ? b : a;
    for (uint32_t i = 1; i <= less; i++) {
        const int64_t x = a[n_a - i], y = b[n_b - i];
        if (x != y && x != 1 && y != 1)
            return tflite_fail(n, DIAG_TYPE, "the extents %" PRId64 " and %" PRId64 " do not broadcast", x, y);
        longer[rank - i] = x == 1 ? y : x;
    }
    return result_of_ints(n, 1, rank, longer);
}

bool tflite_op_tile(tflite_node *n)
{
    int64_t times[TYPE_MAX_RANK * 2];
    uint32_t count;
    graph_value *x = tflite_in(n, 0);
    if (n->failed || !tflite_ints(n, 1, "the repeats", times, &count))
        return false;
    if ((int32_t)count != x->type.shape.rank)
        return tflite_fail(n, DIAG_TYPE, "there are %u repeats for %d dimensions", count, x->type.shape.rank);
    graph_value *in[2] = {x, tflite_const(n, tensor_from_i64s(n->c, count, times), "repeats")};
    return tflite_result(n, 0, tflite_emit(n, "tile", 2, in, 0, NULL));
}

bool tflite_op_zeros_like(tflite_node *n)
{
    const tflite_tensor *x = tflite_operand(n, 0);
    int64_t dims[TYPE_MAX_RANK];
    const int64_t none[2] = {0, 0};
    if (!shape_get(x->type.shape, dims))
        return tflite_fail(n, DIAG_UNSUPPORTED, "an extent of its data is open; it must be known");
    return tflite_result(n, 0, tflite_const(n, tensor_splat(n->c, x->type.dt, (uint32_t)x->type.shape.rank, dims, none),
                                            "zeros"));
}

bool tflite_op_range(tflite_node *n)
{
    graph_value *in[3] = {tflite_in(n, 0), tflite_in(n, 1), tflite_in(n, 2)};
    return tflite_result(n, 0, tflite_emit(n, "arange", 3, in, 0, NULL));
}
