/* SPDX-License-Identifier: Apache-2.0 */
/* Rows that are gathered by numbers: sums and products of segments, dense tensors of sparse ones, buckets; and
 * diagonals of matrices. */
#include "frontend/tflite/tflite_compose.h"

#include <float.h>
#include <string.h>

#define MOST_DIAGONAL ((int64_t)1 << 20)

/* A tensor of these extents, filled with one number. */
static graph_value *filled(tflite_node *n, graph_value *one, uint32_t rank, const int64_t *dims)
{
    return tflite_binary(n, "broadcast_to", one, tflite_const(n, tensor_from_i64s(n->c, rank, dims), "shape"));
}

static graph_value *scattered(tflite_node *n, graph_value *into, graph_value *at, graph_value *rows, const char *how)
{
    graph_value *in[3] = {into, at, rows};
    const attr by = attr_string(n->c, "reduction", how);
    return tflite_emit(n, "scatter_nd", 3, in, 1, &by);
}

/* --- segments --- */

/* What a segment without rows holds. */
static graph_value *first_of(tflite_node *n, dtype dt, const char *how)
{
    const bool max = strcmp(how, "max") == 0, is_float = dtype_is_float(dt);
    if (!max && strcmp(how, "min") != 0)
        return tflite_number(n, dt, strcmp(how, "mul") == 0 ? 1 : 0);
    if (is_float)
        return tflite_number(n, dt, max ? -(double)FLT_MAX : (double)FLT_MAX);
    return tflite_const(n, tensor_scalar_i64(n->c, dt, max ? dtype_min_int(dt) : dtype_max_int(dt)), "");
}

/* Operand 0 in `count` segments: its first axes are those of the numbers, operand 1. A row whose number is below 0 goes
 * into one more segment, which is left out. */
static bool in_segments(tflite_node *n, int64_t count, const char *how)
{
    graph_value *x = tflite_in(n, 0), *at = tflite_in(n, 1);
    int64_t dims[TYPE_MAX_RANK + 1], ids[TYPE_MAX_RANK], rows = 1, flat[TYPE_MAX_RANK + 1], to[TYPE_MAX_RANK + 1];
    if (n->failed)
        return false;
    const int32_t rank = x->type.shape.rank, lead = at->type.shape.rank;
    if (!shape_get(x->type.shape, dims) || !shape_get(at->type.shape, ids))
        return tflite_fail(n, DIAG_UNSUPPORTED, "an extent of its data is open; it must be known");
    if (lead > rank || count < 0 || count >= INT32_MAX)
        return tflite_fail(n, DIAG_FORMAT, "its numbers have more axes than its data, or there are too many segments");
    for (int32_t i = 0; i < lead; i++) {
        if (ids[i] != dims[i] || !i64_mul(rows, dims[i], &rows))
            return tflite_fail(n, DIAG_TYPE, "its data and the numbers of segments have different extents");
    }
    const uint32_t more = (uint32_t)(rank - lead);
    memcpy(flat + 1, dims + lead, more * sizeof *flat);
    memcpy(to + 1, dims + lead, more * sizeof *to);
    flat[0] = rows;
    to[0] = count + 1;
    graph_value *none = tflite_number(n, at->type.dt, (double)count);
    at = compose_chosen(n, compose_by(n, "less", at, 0), none, at);
    at = tflite_reshape(n, at, 2, (int64_t[]){rows, 1});
    graph_value *into = filled(n, first_of(n, x->type.dt, how), more + 1, to);
    graph_value *y = scattered(n, into, at, tflite_reshape(n, x, more + 1, flat), how);
    return tflite_result(n, 0, compose_slice(n, y, 0, 0, count));
}

bool tflite_op_unsorted_segment(tflite_node *n)
{
    int64_t count;
    return tflite_one_int(n, 2, "the number of segments", &count) && in_segments(n, count, n->row->target);
}

/* There are as many segments as the last number says. */
bool tflite_op_segment_sum(tflite_node *n)
{
    const tensor_data *t = tflite_int_constant(n, 1, "the numbers of segments");
    if (!t)
        return false;
    return in_segments(n, t->count ? tensor_get_i64(t, t->count - 1) + 1 : 0, "add");
}

/* --- sparse to dense --- */

bool tflite_op_sparse_to_dense(tflite_node *n)
{
    graph_value *at = tflite_in(n, 0), *values = tflite_in(n, 2), *none = tflite_in(n, 3);
    int64_t dims[TYPE_MAX_RANK * 2], of_at[TYPE_MAX_RANK], count;
    uint32_t rank;
    if (n->failed || !tflite_ints(n, 1, "the shape", dims, &rank))
        return false;
    if (!shape_get(at->type.shape, of_at))
        return tflite_fail(n, DIAG_UNSUPPORTED, "an extent of its indices is open; it must be known");
    const int32_t of = at->type.shape.rank;
    count = of == 0 ? 1 : of_at[0];
    if (of > 2 || (of == 2 ? of_at[1] : 1) != rank || shape_count(none->type.shape) != 1 || rank > TYPE_MAX_RANK)
        return tflite_fail(n, DIAG_TYPE, "its indices do not fit a result of %u dimensions", rank);
    at = tflite_reshape(n, at, 2, (int64_t[]){count, rank});
    values = values->type.shape.rank == 0 ? filled(n, values, 1, &count) : values;
    return tflite_result(n, 0, scattered(n, filled(n, none, rank, dims), at, values, "none"));
}

/* --- different numbers --- */

/* In the order in which they come first, and which of them each number is. */
bool tflite_op_unique(tflite_node *n)
{
    const tflite_tensor *places = tflite_operand(n, TFLITE_RESULT + 1);
    graph_value *x = tflite_in(n, 0), *out[4];
    const attr sorted = attr_int(n->c, "sorted", 0);
    if (!n->failed && x->type.shape.rank != 1)
        return tflite_fail(n, DIAG_TYPE, "its data must be a vector");
    if (!n->failed && !places)
        return tflite_fail(n, DIAG_FORMAT, "it must have two results, and has %u", n->n_out);
    return compose_several(n, "unique", 1, &x, &sorted, 4, out) && tflite_result(n, 0, out[0]) &&
           tflite_result(n, 1, tflite_cast(n, out[2], places->type.dt));
}

/* --- buckets --- */

/* How many of the boundaries, which are sorted, are not above x. */
bool tflite_op_bucketize(tflite_node *n)
{
    const tfl_bucketize_options *o = n->options;
    graph_value *x = tflite_cast(n, tflite_in(n, 0), DT_F32);
    const int64_t count = o->boundaries.len;
    int64_t dims[TYPE_MAX_RANK + 1];
    if (n->failed)
        return false;
    const int32_t rank = x->type.shape.rank;
    if (!shape_get(x->type.shape, dims) || (uint32_t)rank >= TYPE_MAX_RANK)
        return tflite_fail(n, DIAG_UNSUPPORTED, "an extent of its data is open; it must be known");
    float *ends = arena_array(&n->c->mem, float, (size_t)count + 1);
    for (uint32_t i = 0; i < o->boundaries.len; i++)
        ends[i] = flat_f32(o->boundaries, i);
    dims[rank] = 1;
    graph_value *bounds = tflite_const(n, tensor_dense(n->c, DT_F32, 1, &count, ends), "boundaries");
    graph_value *above = tflite_binary(n, "less", tflite_reshape(n, x, (uint32_t)rank + 1, dims), bounds);
    graph_value *not_above = tflite_unary(n, "logical_not", above);
    return tflite_result(n, 0, compose_reduced(n, "sum", tflite_cast(n, not_above, DT_I32), rank, false));
}

/* --- diagonals --- */

/* y[.., i, i] = diagonal[.., i] in matrices of rows and columns, one of which there are as many as numbers; beside the
 * diagonal y is `other`. */
static graph_value *with_diagonal(tflite_node *n, graph_value *diagonal, int64_t rows, int64_t columns,
                                  graph_value *other)
{
    const int64_t extents[2] = {rows, columns};
    int64_t dims[TYPE_MAX_RANK + 1], all;
    const int32_t rank = diagonal->type.shape.rank;
    if (n->failed)
        return other;
    if (!i64_mul(rows, columns, &all) || all > MOST_DIAGONAL || (uint32_t)rank >= TYPE_MAX_RANK ||
        !shape_get(diagonal->type.shape, dims)) {
        (void)tflite_fail(n, DIAG_UNSUPPORTED, "its matrices are too large, or an extent of its data is open");
        return other;
    }
    uint8_t *is_on = arena_array(&n->c->mem, uint8_t, (size_t)all + 1);
    memset(is_on, 0, (size_t)all);
    for (int64_t i = 0; i < rows && i < columns; i++)
        is_on[i * columns + i] = 1;
    dims[rank] = columns > rows ? 1 : dims[rank - 1];
    dims[rank - 1] = columns > rows ? dims[rank - 1] : 1;
    graph_value *on = tflite_const(n, tensor_dense(n->c, DT_BOOL, 2, extents, is_on), "diagonal");
    return compose_chosen(n, on, tflite_reshape(n, diagonal, (uint32_t)rank + 1, dims), other);
}

bool tflite_op_matrix_diag(tflite_node *n)
{
    graph_value *x = tflite_in(n, 0);
    int64_t length;
    if (!compose_last_extent(n, x, &length))
        return false;
    return tflite_result(n, 0, with_diagonal(n, x, length, length, tflite_number(n, x->type.dt, 0)));
}

bool tflite_op_matrix_set_diag(tflite_node *n)
{
    graph_value *x = tflite_in(n, 0), *diagonal = tflite_in(n, 1);
    const int32_t rank = x->type.shape.rank;
    int64_t rows, columns, length;
    if (!n->failed && (rank < 2 || diagonal->type.shape.rank != rank - 1))
        return tflite_fail(n, DIAG_TYPE, "its data must be matrices, and its diagonals have a dimension less");
    if (n->failed || !tflite_extent(n, x, (uint32_t)rank - 2, &rows) ||
        !tflite_extent(n, x, (uint32_t)rank - 1, &columns) || !compose_last_extent(n, diagonal, &length))
        return false;
    if (length != (rows < columns ? rows : columns))
        return tflite_fail(n, DIAG_TYPE, "a diagonal has %lld numbers, and the matrices are %lld x %lld",
                           (long long)length, (long long)rows, (long long)columns);
    return tflite_result(n, 0, with_diagonal(n, diagonal, rows, columns, x));
}
