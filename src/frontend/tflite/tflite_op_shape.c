/* SPDX-License-Identifier: Apache-2.0 */
/* What moves elements: reshapes, transposes, slices, concatenations, pads; and means. */
#include "frontend/tflite/tflite_fixed.h"
#include "frontend/tflite/tflite_import.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

/* --- shapes --- */

/* Operand 1 where it is constant, else the option, else the shape that the model declares for the result. */
static bool wanted_shape(tflite_node *n, int64_t *dims, uint32_t *rank)
{
    const tfl_reshape_options *o = n->options;
    const tflite_tensor *y = tflite_operand(n, TFLITE_RESULT);
    if (tflite_constant(n, 1))
        return tflite_ints(n, 1, "the shape", dims, rank);
    if (!tflite_operand(n, 1) && o->new_shape.len > 0) {
        if (o->new_shape.len > TYPE_MAX_RANK)
            return tflite_fail(n, DIAG_FORMAT, "the shape has more than 16 dimensions");
        for (*rank = 0; *rank < o->new_shape.len; ++*rank)
            dims[*rank] = flat_i32(o->new_shape, *rank);
        return true;
    }
    *rank = (uint32_t)y->type.shape.rank;
    return shape_get(y->type.shape, dims);
}

bool tflite_op_reshape(tflite_node *n)
{
    int64_t dims[TYPE_MAX_RANK * 2], count = 1, whole;
    uint32_t rank = 0, unknown = 0;
    graph_value *x = tflite_in(n, 0);
    if (n->failed || !wanted_shape(n, dims, &rank))
        return false;
    if (rank > TYPE_MAX_RANK)
        return tflite_fail(n, DIAG_FORMAT, "the shape has more than 16 dimensions");
    for (uint32_t i = 0; i < rank; i++) {
        unknown += dims[i] == -1;
        if (dims[i] < -1 || unknown > 1 || (dims[i] >= 0 && !i64_mul(count, dims[i], &count)))
            return tflite_fail(n, DIAG_FORMAT, "the shape has an extent that is not possible");
    }
    whole = shape_count(x->type.shape);
    if (whole >= 0 && (unknown ? count == 0 || whole % count != 0 : count != whole))
        return tflite_fail(n, DIAG_TYPE, "%" PRId64 " elements do not fit the requested shape", whole);
    return tflite_result(n, 0, tflite_reshape(n, x, rank, dims));
}

static bool reshape_to(tflite_node *n, graph_value *x, uint32_t rank, const dim *dims)
{
    int64_t numbers[TYPE_MAX_RANK];
    for (uint32_t i = 0; i < rank; i++)
        if (!dim_is_const(dims[i], &numbers[i]))
            return tflite_fail(n, DIAG_UNSUPPORTED, "an extent is open; it must be known");
    return tflite_result(n, 0, tflite_reshape(n, x, rank, numbers));
}

bool tflite_op_squeeze(tflite_node *n)
{
    const tfl_squeeze_options *o = n->options;
    graph_value *x = tflite_in(n, 0);
    const shape s = x->type.shape;
    bool goes[TYPE_MAX_RANK] = {false};
    dim d[TYPE_MAX_RANK];
    uint32_t rank = 0;
    for (uint32_t i = 0; i < o->squeeze_dims.len && !n->failed; i++) {
        int64_t axis;
        if (!tflite_axis(n, flat_i32(o->squeeze_dims, i), s.rank, &axis))
            return false;
        goes[axis] = true;
    }
    for (int32_t i = 0; i < s.rank && !n->failed; i++) {
        const bool one = dim_is(s.dims[i], 1);
        if (goes[i] && !one)
            return tflite_fail(n, DIAG_TYPE, "axis %d, which is removed, does not have the extent 1", i);
        if (!goes[i] && !(one && o->squeeze_dims.len == 0))
            d[rank++] = s.dims[i];
    }
    return !n->failed && reshape_to(n, x, rank, d);
}

bool tflite_op_expand_dims(tflite_node *n)
{
    int64_t axis[TYPE_MAX_RANK * 2], at;
    uint32_t count, rank = 0;
    graph_value *x = tflite_in(n, 0);
    dim d[TYPE_MAX_RANK];
    if (n->failed || !tflite_ints(n, 1, "the axis", axis, &count))
        return false;
    if (count != 1 || x->type.shape.rank >= (int32_t)TYPE_MAX_RANK)
        return tflite_fail(n, DIAG_FORMAT, "the axis is not one number, or there are too many dimensions");
    if (!tflite_axis(n, axis[0], x->type.shape.rank + 1, &at))
        return false;
    for (int32_t i = 0; i <= x->type.shape.rank; i++)
        d[rank++] = i == at ? dim_const(n->c, 1) : x->type.shape.dims[i - (i > at)];
    return reshape_to(n, x, rank, d);
}

bool tflite_op_transpose(tflite_node *n)
{
    int64_t perm[TYPE_MAX_RANK * 2];
    uint32_t count;
    bool seen[TYPE_MAX_RANK] = {false};
    graph_value *x = tflite_in(n, 0);
    if (n->failed || !tflite_ints(n, 1, "the permutation", perm, &count))
        return false;
    if ((int32_t)count != x->type.shape.rank)
        return tflite_fail(n, DIAG_TYPE, "the permutation has %u entries for %d dimensions", count, x->type.shape.rank);
    for (uint32_t i = 0; i < count; i++) {
        if (!tflite_axis(n, perm[i], (int32_t)count, &perm[i]))
            return false;
        if (seen[perm[i]])
            return tflite_fail(n, DIAG_FORMAT, "the permutation names an axis twice");
        seen[perm[i]] = true;
    }
    return tflite_result(n, 0, tflite_transpose(n, x, count, perm));
}

/* --- parts and joins --- */

static graph_value *slice(tflite_node *n, graph_value *x, uint32_t count, const int64_t *from, const int64_t *to,
                          const int64_t *axes, const int64_t *steps)
{
    const int64_t *lists[4] = {from, to, axes, steps};
    static const char *const names[4] = {"starts", "ends", "axes", "steps"};
    graph_value *in[5] = {x};
    for (uint32_t i = 0; i < 4; i++)
        in[1 + i] = tflite_const(n, tensor_from_i64s(n->c, count, lists[i]), names[i]);
    return tflite_emit(n, "strided_slice", 5, in, 0, NULL);
}

static bool get_shape(tflite_node *n, const graph_value *x, int64_t *dims)
{
    return !n->failed && (shape_get(x->type.shape, dims) ||
                          tflite_fail(n, DIAG_UNSUPPORTED, "an extent of its data is open; it must be known"));
}

bool tflite_op_slice(tflite_node *n)
{
    int64_t dims[TYPE_MAX_RANK], from[TYPE_MAX_RANK * 2], size[TYPE_MAX_RANK * 2], axes[TYPE_MAX_RANK],
        ones[TYPE_MAX_RANK];
    uint32_t n_from, n_size;
    graph_value *x = tflite_in(n, 0);
    if (!get_shape(n, x, dims) || !tflite_ints(n, 1, "begin", from, &n_from) ||
        !tflite_ints(n, 2, "size", size, &n_size))
        return false;
    const uint32_t rank = (uint32_t)x->type.shape.rank;
    if (n_from != rank || n_size != rank)
        return tflite_fail(n, DIAG_TYPE, "begin and size do not have %u entries", rank);
    for (uint32_t i = 0; i < rank; i++) {
        if (from[i] < 0 || from[i] > dims[i] || size[i] < -1 || size[i] > dims[i] - from[i])
            return tflite_fail(n, DIAG_TYPE, "the slice leaves axis %u", i);
        size[i] = size[i] == -1 ? dims[i] : from[i] + size[i];
        axes[i] = i;
        ones[i] = 1;
    }
    return tflite_result(n, 0, slice(n, x, rank, from, size, axes, ones));
}

/* One axis of a strided slice: the first index that is taken, the end of the indices as strided_slice has it, and how
 * many there are. What is out of range is clamped. */
static bool strided_axis(tflite_node *n, int64_t extent, int64_t step, bool open_begin, bool open_end, int64_t *begin,
                         int64_t *end)
{
    if (step == 0)
        return tflite_fail(n, DIAG_FORMAT, "a stride is 0");
    const int64_t low = step > 0 ? 0 : -1, high = step > 0 ? extent : extent - 1;
    int64_t b = *begin < 0 ? *begin + extent : *begin, e = *end < 0 ? *end + extent : *end;
    b = open_begin ? (step > 0 ? low : high) : b < low ? low : b > high ? high : b;
    e = open_end ? (step > 0 ? high : low) : e < low ? low : e > high ? high : e;
    const bool nothing = b == -1; /* backwards from before the first one */
    *begin = nothing ? 0 : b;
    *end = nothing ? 0 : e == -1 ? INT64_MIN : e; /* -1 would count from the end */
    return true;
}

bool tflite_op_strided_slice(tflite_node *n)
{
    const tfl_strided_slice_options *o = n->options;
    int64_t dims[TYPE_MAX_RANK], from[TYPE_MAX_RANK * 2], to[TYPE_MAX_RANK * 2], steps[TYPE_MAX_RANK * 2],
        axes[TYPE_MAX_RANK];
    uint32_t counts[3], kept = 0;
    dim d[TYPE_MAX_RANK];
    graph_value *x = tflite_in(n, 0);
    if (!get_shape(n, x, dims) || !tflite_ints(n, 1, "begin", from, &counts[0]) ||
        !tflite_ints(n, 2, "end", to, &counts[1]) || !tflite_ints(n, 3, "strides", steps, &counts[2]))
        return false;
    if (o->ellipsis_mask || o->new_axis_mask || o->offset)
        return tflite_fail(n, DIAG_UNSUPPORTED, "an ellipsis, a new axis or an offset is not supported yet");
    const uint32_t rank = (uint32_t)x->type.shape.rank, count = counts[0];
    if (count > rank || counts[1] != count || counts[2] != count)
        return tflite_fail(n, DIAG_TYPE, "begin, end and strides do not fit data of %u dimensions", rank);
    for (uint32_t i = 0; i < count; i++) {
        const bool shrinks = o->shrink_axis_mask >> i & 1;
        axes[i] = i;
        if (shrinks) { /* one index, whatever the end says; an open beginning counts */
            const int64_t given = from[i] < 0 ? from[i] + dims[i] : from[i], first = steps[i] > 0 ? 0 : dims[i] - 1,
                          at = o->begin_mask >> i & 1 ? first : given;
            if (at < 0 || at >= dims[i])
                return tflite_fail(n, DIAG_TYPE, "index %" PRId64 " is not in axis %u", from[i], i);
            from[i] = at;
            to[i] = at + 1;
            steps[i] = 1;
        } else if (!strided_axis(n, dims[i], steps[i], o->begin_mask >> i & 1, o->end_mask >> i & 1, &from[i],
                                 &to[i])) {
            return false;
        }
    }
    graph_value *y = slice(n, x, count, from, to, axes, steps);
    for (uint32_t i = 0; i < rank && !n->failed; i++)
        if (!(i < count && o->shrink_axis_mask >> i & 1))
            d[kept++] = y->type.shape.dims[i];
    return !n->failed && (kept == rank ? tflite_result(n, 0, y) : reshape_to(n, y, kept, d));
}

/* Parts of x along an axis, as many as there are results. */
static bool split(tflite_node *n, graph_value *x, int64_t axis, const int64_t *sizes)
{
    int64_t from = 0;
    const int64_t one = 1;
    for (uint32_t i = 0; i < n->n_out && !n->failed; i++) {
        const int64_t to = from + sizes[i];
        if (!tflite_result(n, i, slice(n, x, 1, &from, &to, &axis, &one)))
            return false;
        from = to;
    }
    return !n->failed;
}

static bool split_axis(tflite_node *n, uint32_t operand, const graph_value *x, int64_t *axis, int64_t *extent)
{
    int64_t given[TYPE_MAX_RANK * 2];
    uint32_t count;
    if (n->failed || !tflite_ints(n, operand, "the axis", given, &count))
        return false;
    if (count != 1)
        return tflite_fail(n, DIAG_FORMAT, "the axis is not one number");
    return tflite_axis(n, given[0], x->type.shape.rank, axis) && tflite_extent(n, x, (uint32_t)*axis, extent);
}

bool tflite_op_split(tflite_node *n)
{
    int64_t axis, extent, *sizes = arena_array(&n->c->mem, int64_t, (size_t)n->n_out + 1);
    graph_value *x = tflite_in(n, 1);
    if (!split_axis(n, 0, x, &axis, &extent))
        return false;
    if (extent % n->n_out != 0)
        return tflite_fail(n, DIAG_TYPE, "an extent of %" PRId64 " does not divide into %u parts", extent, n->n_out);
    for (uint32_t i = 0; i < n->n_out; i++)
        sizes[i] = extent / n->n_out;
    return split(n, x, axis, sizes);
}

bool tflite_op_split_v(tflite_node *n)
{
    int64_t axis, extent, sum = 0, *sizes = arena_array(&n->c->mem, int64_t, (size_t)n->n_out + 1);
    uint32_t open = UINT32_MAX;
    graph_value *x = tflite_in(n, 0);
    const tensor_data *given = split_axis(n, 2, x, &axis, &extent) ? tflite_int_constant(n, 1, "the sizes") : NULL;
    if (!given)
        return false;
    if (given->count != (int64_t)n->n_out)
        return tflite_fail(n, DIAG_TYPE, "there are %" PRId64 " sizes and %u results", given->count, n->n_out);
    for (uint32_t i = 0; i < n->n_out; i++) {
        sizes[i] = tensor_get_i64(given, i);
        if (sizes[i] < -1 || sizes[i] > extent || (sizes[i] == -1 && open != UINT32_MAX))
            return tflite_fail(n, DIAG_FORMAT, "a size is out of range, or two are -1");
        open = sizes[i] == -1 ? i : open;
        sum += sizes[i] == -1 ? 0 : sizes[i];
    }
    if (open != UINT32_MAX)
        sizes[open] = extent - sum;
    if (sum > extent || (open == UINT32_MAX && sum != extent))
        return tflite_fail(n, DIAG_TYPE, "the sizes do not fit the axis");
    return split(n, x, axis, sizes);
}

bool tflite_op_concatenation(tflite_node *n)
{
    const tfl_concatenation_options *o = n->options;
    graph_value **parts = arena_array(&n->c->mem, graph_value *, (size_t)n->n_in + 1);
    tflite_scale first = {0}, s;
    bool image;
    int64_t axis;
    const bool is_int = tflite_is_int(n, 0);
    if (is_int && !tflite_read_scale(n, TFLITE_RESULT, &first))
        return false;
    for (uint32_t i = 0; i < n->n_in && is_int; i++)
        if (!tflite_read_scale(n, i, &s) || !tflite_same_scale(&s, &first))
            return tflite_fail(n, DIAG_UNSUPPORTED, "operand %u has another scale than the result", i);
    const int32_t rank = tflite_operand(n, 0)->type.shape.rank;
    for (uint32_t i = 1; i < n->n_in; i++)
        if (tflite_operand(n, i)->type.shape.rank != rank)
            return tflite_fail(n, DIAG_TYPE, "its operands have different numbers of dimensions");
    if (!tflite_axis(n, o->axis, rank, &axis) || !tflite_in_one_form(n, n->n_in, parts, &image))
        return false;
    const attr at = attr_int(n->c, "axis", image ? tflite_image_axis(axis) : axis);
    graph_value *y = tflite_emit(n, "concatenate", n->n_in, parts, 1, &at);
    return tflite_result_as(n, 0, tflite_activated(n, y, o->fused_activation_function), image);
}

bool tflite_op_pack(tflite_node *n)
{
    const tfl_pack_options *o = n->options;
    graph_value **parts = arena_array(&n->c->mem, graph_value *, (size_t)n->n_in + 1);
    int64_t dims[TYPE_MAX_RANK], axis;
    for (uint32_t i = 0; i < n->n_in; i++) {
        graph_value *x = tflite_in(n, i);
        if (!get_shape(n, x, dims))
            return false;
        const uint32_t rank = (uint32_t)x->type.shape.rank;
        if (rank >= TYPE_MAX_RANK)
            return tflite_fail(n, DIAG_UNSUPPORTED, "more than 16 dimensions");
        if (!tflite_axis(n, o->axis, (int32_t)rank + 1, &axis))
            return false;
        memmove(dims + axis + 1, dims + axis, (rank - (size_t)axis) * sizeof *dims);
        dims[axis] = 1;
        parts[i] = tflite_reshape(n, x, rank + 1, dims);
    }
    const attr at = attr_int(n->c, "axis", axis);
    return tflite_result(n, 0, tflite_emit(n, "concatenate", n->n_in, parts, 1, &at));
}

bool tflite_op_unpack(tflite_node *n)
{
    const tfl_unpack_options *o = n->options;
    int64_t dims[TYPE_MAX_RANK], axis;
    const int64_t one = 1;
    graph_value *x = tflite_in(n, 0);
    if (!get_shape(n, x, dims) || !tflite_axis(n, o->axis, x->type.shape.rank, &axis))
        return false;
    const uint32_t rank = (uint32_t)x->type.shape.rank;
    if (dims[axis] != n->n_out)
        return tflite_fail(n, DIAG_TYPE, "an extent of %" PRId64 " does not make %u results", dims[axis], n->n_out);
    memmove(dims + axis, dims + axis + 1, (rank - (size_t)axis - 1) * sizeof *dims);
    for (int64_t i = 0; i < n->n_out; i++) {
        const int64_t to = i + 1;
        graph_value *part = slice(n, x, 1, &i, &to, &axis, &one);
        if (!tflite_result(n, (uint32_t)i, tflite_reshape(n, part, rank - 1, dims)))
            return false;
    }
    return true;
}

/* --- pads --- */

/* Quantised numbers are padded with the zero point of the result, PADV2 with operand 2. */
bool tflite_op_pad(tflite_node *n)
{
    int64_t given[TYPE_MAX_RANK * 2], pads[TYPE_MAX_RANK * 2];
    uint32_t count;
    graph_value *in[3] = {NULL};
    bool image;
    tflite_scale y;
    if (!tflite_in_one_form(n, 1, in, &image) || !tflite_ints(n, 1, "the paddings", given, &count))
        return false;
    const uint32_t rank = (uint32_t)in[0]->type.shape.rank;
    if (count != 2 * rank)
        return tflite_fail(n, DIAG_TYPE, "there are not two paddings for each of %u dimensions", rank);
    for (uint32_t i = 0; i < rank; i++) {
        const uint32_t at = image ? (uint32_t)tflite_image_axis(i) : i;
        pads[at] = given[2 * i];
        pads[rank + at] = given[2 * i + 1];
        if (given[2 * i] < 0 || given[2 * i + 1] < 0 || given[2 * i] > INT32_MAX || given[2 * i + 1] > INT32_MAX)
            return tflite_fail(n, DIAG_FORMAT, "a padding is negative, or too large");
    }
    in[1] = tflite_const(n, tensor_from_i64s(n->c, 2 * rank, pads), "pads");
    if (tflite_operand(n, 2))
        in[2] = tflite_in(n, 2);
    else if (tflite_is_int(n, 0) && tflite_read_scale(n, TFLITE_RESULT, &y))
        in[2] = tflite_zero(n, &y);
    return tflite_result_as(n, 0, tflite_emit(n, "nn.pad", 3, in, 0, NULL), image);
}

/* --- means --- */

/* The axes in rising order, each once. */
static bool reduced_axes(tflite_node *n, int32_t rank, int64_t *axes, uint32_t *count)
{
    int64_t given[TYPE_MAX_RANK * 2], at;
    bool marked[TYPE_MAX_RANK] = {false};
    uint32_t n_given;
    *count = 0;
    if (!tflite_ints(n, 1, "the axes", given, &n_given))
        return false;
    for (uint32_t i = 0; i < n_given; i++) {
        if (!tflite_axis(n, given[i], rank, &at))
            return false;
        marked[at] = true;
    }
    for (int32_t i = 0; i < rank; i++)
        if (marked[i])
            axes[(*count)++] = i;
    return true;
}

/* The mean of numbers: their sum less the zero points, by a multiplier that is divided by the count first. */
static graph_value *mean_of_numbers(tflite_node *n, graph_value *x, const attr *attrs, int64_t count)
{
    tflite_scale s, y;
    compiler *c = n->c;
    if (!tflite_read_scale(n, 0, &s) || !tflite_read_scale(n, TFLITE_RESULT, &y))
        return x;
    fixed_scale f = fixed_of((double)s.scale / (double)y.scale);
    int up = 0;
    while (count >> (up + 1) && up < 32 && up < 31 + f.shift)
        up++;
    const int32_t multiplier = (int32_t)((((int64_t)f.multiplier) << up) / count);
    graph_value *sum = tflite_emit(n, "sum", 1, (graph_value *[]){tflite_cast(n, x, DT_I32)}, 2, attrs);
    if (s.zero != 0)
        sum = tflite_binary(n, "subtract", sum, tflite_number(n, DT_I32, (double)(s.zero * count)));
    graph_value *in[4] = {sum, tflite_const(n, tensor_scalar_i64(c, DT_I32, multiplier), "multiplier"),
                          tflite_const(n, tensor_scalar_i64(c, DT_I32, f.shift - up), "shift"), tflite_zero(n, &y)};
    const attr how[2] = {attr_dtype(c, "out_dtype", y.dt),
                         attr_int(c, "up", ldexp(255.0 * (double)count, f.shift - up) > 0x1p30)};
    return tflite_emit(n, "qnn.rescale", 4, in, 2, how);
}

bool tflite_op_mean(tflite_node *n)
{
    const tfl_reducer_options *o = n->options;
    int64_t axes[TYPE_MAX_RANK], count = 1, extent;
    uint32_t n_axes;
    graph_value *x;
    bool image;
    if (!tflite_in_one_form(n, 1, &x, &image) || !reduced_axes(n, x->type.shape.rank, axes, &n_axes))
        return false;
    if (n_axes == 0)
        return tflite_result_as(n, 0, tflite_unary(n, "copy", x), image);
    /* over rows and columns both forms give the same without these axes; over others the plain one is taken */
    const bool whole = n_axes == 2 && axes[0] == 1 && axes[1] == 2;
    if (image && !whole && !o->keep_dims) {
        x = tflite_in(n, 0);
        image = false;
    }
    for (uint32_t i = 0; i < n_axes; i++) {
        axes[i] = image ? tflite_image_axis(axes[i]) : axes[i];
        if (!tflite_extent(n, x, (uint32_t)axes[i], &extent))
            return false;
        if (extent < 1 || !i64_mul(count, extent, &count) || count > 1 << 23)
            return tflite_fail(n, DIAG_UNSUPPORTED, "the mean of %s elements", extent < 1 ? "no" : "too many");
    }
    const attr attrs[2] = {attr_ints(n->c, "axes", n_axes, axes), attr_int(n->c, "keepdims", o->keep_dims)};
    graph_value *y = tflite_is_int(n, 0) ? mean_of_numbers(n, x, attrs, count)
                                         : tflite_emit(n, "mean", 1, &x, 2, attrs);
    return tflite_result_as(n, 0, y, image && o->keep_dims);
}
