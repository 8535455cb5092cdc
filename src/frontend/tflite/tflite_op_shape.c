/* SPDX-License-Identifier: Apache-2.0 */
/* What moves elements: reshapes, transposes, slices, concatenations, pads. */
#include "frontend/tflite/tflite_import.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

/* --- shapes --- */

/* Operand 1 where it is constant, else the option. */
static bool given_shape(tflite_node *n, int64_t *dims, uint32_t *rank)
{
    const tfl_reshape_options *o = n->options;
    if (tflite_constant(n, 1))
        return tflite_ints(n, 1, "the shape", dims, rank);
    if (o->new_shape.len > TYPE_MAX_RANK)
        return tflite_fail(n, DIAG_FORMAT, "the shape has more than 16 dimensions");
    for (*rank = 0; *rank < o->new_shape.len; ++*rank)
        dims[*rank] = flat_i32(o->new_shape, *rank);
    return true;
}

/* Of complex numbers with the axis that the model does not have. Where nothing gives a shape it is the one that the
 * model declares for the result. */
static bool wanted_shape(tflite_node *n, int64_t *dims, uint32_t *rank)
{
    const tfl_reshape_options *o = n->options;
    const tflite_tensor *y = tflite_operand(n, TFLITE_RESULT);
    if (tflite_constant(n, 1) || (!tflite_operand(n, 1) && o->new_shape.len > 0)) {
        const bool ok = given_shape(n, dims, rank);
        if (ok && y->is_complex)
            dims[(*rank)++] = 2;
        return ok;
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
    if (tflite_operand(n, 0)->is_complex != tflite_operand(n, TFLITE_RESULT)->is_complex)
        return tflite_fail(n, DIAG_TYPE, "its data and its result have different types");
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
    int64_t at;
    uint32_t rank = 0;
    graph_value *x = tflite_in(n, 0);
    dim d[TYPE_MAX_RANK];
    if (n->failed || !tflite_one_int(n, 1, "the axis", &at))
        return false;
    if (x->type.shape.rank >= (int32_t)TYPE_MAX_RANK)
        return tflite_fail(n, DIAG_FORMAT, "there are too many dimensions");
    if (!tflite_axis(n, at, x->type.shape.rank + 1, &at))
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
            return tflite_fail(n, DIAG_TYPE, "the slice goes beyond axis %u", i);
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

/* What a strided slice says of one axis of the data; an axis that it does not name is taken whole. */
typedef struct strided {
    int64_t from, to, step;
    bool open_from, open_to, shrinks;
} strided;

/* The axes of the data in their order, and the result's: the numbers of those that it keeps, -1 for a new one. False:
 * there are too many. */
static bool strided_axes(tflite_node *n, uint32_t rank, uint32_t count, int64_t *const *given, strided *axes,
                         int32_t *kept, uint32_t *n_kept)
{
    const tfl_strided_slice_options *o = n->options;
    uint32_t named = 0, at = 0;
    *n_kept = 0;
    for (uint32_t i = 0; i < count; i++)
        named += !(o->ellipsis_mask >> i & 1) && !(o->new_axis_mask >> i & 1);
    if (named > rank || count > TYPE_MAX_RANK)
        return tflite_fail(n, DIAG_TYPE, "begin, end and strides do not fit data of %u dimensions", rank);
    uint32_t whole = rank - named; /* axes behind an ellipsis; more than one stands for none */
    for (uint32_t i = 0; i < count || at < rank; i++) {
        const bool ellipsis = i < count && o->ellipsis_mask >> i & 1;
        if (i < count && !ellipsis && o->new_axis_mask >> i & 1) {
            kept[(*n_kept)++] = -1;
            continue;
        }
        if (ellipsis || i >= count) {
            for (; whole > 0; whole--) {
                axes[at] = (strided){.step = 1, .open_from = true, .open_to = true};
                kept[(*n_kept)++] = (int32_t)at++;
            }
            continue;
        }
        axes[at] = (strided){given[0][i], given[1][i], given[2][i], o->begin_mask >> i & 1, o->end_mask >> i & 1,
                             o->shrink_axis_mask >> i & 1};
        axes[at].to += o->offset ? axes[at].from : 0;
        if (!axes[at].shrinks)
            kept[(*n_kept)++] = (int32_t)at;
        at++;
    }
    return true;
}

bool tflite_op_strided_slice(tflite_node *n)
{
    int64_t dims[TYPE_MAX_RANK], lists[3][TYPE_MAX_RANK * 2], from[TYPE_MAX_RANK], to[TYPE_MAX_RANK],
        steps[TYPE_MAX_RANK], numbers[TYPE_MAX_RANK];
    int64_t *const given[3] = {lists[0], lists[1], lists[2]};
    int32_t kept[2 * TYPE_MAX_RANK];
    strided axes[TYPE_MAX_RANK];
    uint32_t counts[3], n_kept;
    dim d[2 * TYPE_MAX_RANK];
    graph_value *x = tflite_in(n, 0);
    if (!get_shape(n, x, dims) || !tflite_ints(n, 1, "begin", lists[0], &counts[0]) ||
        !tflite_ints(n, 2, "end", lists[1], &counts[1]) || !tflite_ints(n, 3, "strides", lists[2], &counts[2]))
        return false;
    const uint32_t rank = (uint32_t)x->type.shape.rank;
    if (counts[1] != counts[0] || counts[2] != counts[0])
        return tflite_fail(n, DIAG_TYPE, "begin, end and strides have different lengths");
    if (!strided_axes(n, rank, counts[0], given, axes, kept, &n_kept))
        return false;
    for (uint32_t i = 0; i < rank; i++) {
        const strided *a = &axes[i];
        numbers[i] = i;
        from[i] = a->from;
        to[i] = a->to;
        steps[i] = a->step;
        if (a->shrinks) { /* one index, whatever the end says; an open beginning counts */
            const int64_t index = a->from < 0 ? a->from + dims[i] : a->from, first = a->step > 0 ? 0 : dims[i] - 1,
                          at = a->open_from ? first : index;
            if (at < 0 || at >= dims[i])
                return tflite_fail(n, DIAG_TYPE, "index %" PRId64 " is not in axis %u", a->from, i);
            from[i] = at;
            to[i] = at + 1;
            steps[i] = 1;
        } else if (!strided_axis(n, dims[i], a->step, a->open_from, a->open_to, &from[i], &to[i])) {
            return false;
        }
    }
    graph_value *y = slice(n, x, rank, from, to, numbers, steps);
    for (uint32_t i = 0; i < n_kept && !n->failed; i++)
        d[i] = kept[i] < 0 ? dim_const(n->c, 1) : y->type.shape.dims[kept[i]];
    if (n_kept > TYPE_MAX_RANK)
        return tflite_fail(n, DIAG_UNSUPPORTED, "more than 16 dimensions");
    bool same = n_kept == rank;
    for (uint32_t i = 0; i < n_kept; i++)
        same &= kept[i] == (int32_t)i;
    return !n->failed && (same ? tflite_result(n, 0, y) : reshape_to(n, y, n_kept, d));
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
    return !n->failed && tflite_one_int(n, operand, "the axis", axis) &&
           tflite_axis(n, *axis, x->type.shape.rank, axis) && tflite_extent(n, x, (uint32_t)*axis, extent);
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

typedef struct part_scale {
    float scale, bias;
    int64_t zero;
} part_scale;

static int64_t part_entry(const void *ctx, int32_t x)
{
    const part_scale *p = ctx;
    volatile float scaled = (float)x * p->scale;
    return tflite_rounded(scaled + p->bias) + p->zero;
}

/* Bytes without a sign may have scales of their own, which the kernel changes in floats. */
static graph_value *rescaled_part(tflite_node *n, graph_value *v, const tflite_scale *x, const tflite_scale *y)
{
    const volatile float inverse = 1.0f / y->scale, scale = x->scale * inverse;
    const part_scale p = {scale, -(float)x->zero * scale, y->zero};
    const tflite_scale codes = {.scale = 1, .dt = x->dt};
    return tflite_by_table(n, v, &codes, y, part_entry, &p);
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
        if (!tflite_read_scale(n, i, &s) || (s.dt != DT_U8 && !tflite_same_scale(&s, &first)))
            return tflite_fail(n, DIAG_UNSUPPORTED, "operand %u has another scale than the result", i);
    const int32_t rank = tflite_operand(n, 0)->type.shape.rank;
    for (uint32_t i = 1; i < n->n_in; i++)
        if (tflite_operand(n, i)->type.shape.rank != rank)
            return tflite_fail(n, DIAG_TYPE, "its operands have different numbers of dimensions");
    if (!tflite_axis(n, o->axis, rank, &axis) || !tflite_in_one_form(n, n->n_in, parts, &image))
        return false;
    for (uint32_t i = 0; i < n->n_in && is_int; i++)
        if (tflite_read_scale(n, i, &s) && !tflite_same_scale(&s, &first))
            parts[i] = rescaled_part(n, parts[i], &s, &first);
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

/* Rows of elements by lists of indices: what is beyond an end is mirrored there, the end itself again or not. */
bool tflite_op_mirror_pad(tflite_node *n)
{
    const tfl_mirror_pad_options *o = n->options;
    int64_t given[TYPE_MAX_RANK * 2], dims[TYPE_MAX_RANK];
    uint32_t count;
    graph_value *x = tflite_in(n, 0);
    const bool again = o->mode == 1;
    if (!get_shape(n, x, dims) || !tflite_ints(n, 1, "the paddings", given, &count))
        return false;
    const uint32_t rank = (uint32_t)x->type.shape.rank;
    if (count != 2 * rank)
        return tflite_fail(n, DIAG_TYPE, "there are not two paddings for each of %u dimensions", rank);
    for (uint32_t i = 0; i < rank; i++) {
        const int64_t before = given[2 * i], behind = given[2 * i + 1], most = again ? dims[i] : dims[i] - 1;
        if (before < 0 || behind < 0 || before > most || behind > most)
            return tflite_fail(n, DIAG_FORMAT, "a padding of axis %u is negative, or larger than what it mirrors", i);
        if (before == 0 && behind == 0)
            continue;
        const int64_t all = before + dims[i] + behind;
        int32_t *at = arena_array(&n->c->mem, int32_t, (size_t)all);
        for (int64_t k = 0; k < all; k++) {
            int64_t p = k - before;
            p = p < 0 ? -p - again : p >= dims[i] ? 2 * (dims[i] - 1) - p + again : p;
            at[k] = (int32_t)p;
        }
        const attr axis = attr_int(n->c, "axis", i);
        graph_value *in[2] = {x, tflite_const(n, tensor_dense(n->c, DT_I32, 1, &all, at), "places")};
        x = tflite_emit(n, "take", 2, in, 1, &axis);
    }
    return tflite_result(n, 0, tflite_unary(n, "copy", x));
}

/* --- the order of elements --- */

bool tflite_op_reverse(tflite_node *n)
{
    int64_t given[TYPE_MAX_RANK * 2], from[TYPE_MAX_RANK * 2], to[TYPE_MAX_RANK * 2], steps[TYPE_MAX_RANK * 2],
        dims[TYPE_MAX_RANK];
    uint32_t count;
    graph_value *x = tflite_in(n, 0);
    if (!get_shape(n, x, dims) || !tflite_ints(n, 1, "the axes", given, &count))
        return false;
    for (uint32_t i = 0; i < count; i++) {
        if (!tflite_axis(n, given[i], x->type.shape.rank, &given[i]))
            return false;
        for (uint32_t k = 0; k < i; k++)
            if (given[k] == given[i])
                return tflite_fail(n, DIAG_FORMAT, "axis %" PRId64 " is named twice", given[i]);
        from[i] = dims[given[i]] - 1;
        to[i] = INT64_MIN;
        steps[i] = -1;
    }
    return tflite_result(n, 0, slice(n, x, count, from, to, given, steps));
}

/* The graph's operator has its two axes in front, in any order. */
bool tflite_op_reverse_sequence(tflite_node *n)
{
    const tfl_reverse_sequence_options *o = n->options;
    graph_value *in[2] = {tflite_in(n, 0), tflite_cast(n, tflite_in(n, 1), DT_I64)};
    int64_t axes[2], perm[TYPE_MAX_RANK], back[TYPE_MAX_RANK] = {0};
    const int32_t rank = in[0]->type.shape.rank;
    if (n->failed || !tflite_axis(n, o->batch_dim, rank, &axes[0]) || !tflite_axis(n, o->seq_dim, rank, &axes[1]))
        return false;
    const bool in_front = axes[0] + axes[1] == 1;
    uint32_t count = 0;
    for (int32_t i = 0; i < 2; i++)
        perm[count++] = axes[i];
    for (int32_t i = 0; i < rank && axes[0] != axes[1]; i++)
        if (i != axes[0] && i != axes[1])
            perm[count++] = i;
    if (count != (uint32_t)rank)
        return tflite_fail(n, DIAG_FORMAT, "it reverses along the axis of its sequences, %" PRId64, axes[0]);
    for (uint32_t i = 0; i < count; i++)
        back[perm[i]] = i;
    in[0] = in_front ? in[0] : tflite_transpose(n, in[0], count, perm);
    const attr attrs[2] = {attr_int(n->c, "batch_axis", in_front ? axes[0] : 0),
                           attr_int(n->c, "time_axis", in_front ? axes[1] : 1)};
    graph_value *y = tflite_emit(n, "reverse_sequence", 2, in, 2, attrs);
    return tflite_result(n, 0, in_front ? y : tflite_transpose(n, y, count, back));
}

/* --- blocks of images --- */

bool tflite_op_space_depth(tflite_node *n)
{
    const tfl_space_to_depth_options *to = n->options;
    const tfl_depth_to_space_options *from = n->options;
    const bool is_depth = n->row->options == 94;
    const int64_t block = is_depth ? from->block_size : to->block_size;
    graph_value *x = tflite_image(n, 0);
    if (block < 1)
        return tflite_fail(n, DIAG_FORMAT, "its block size is below 1");
    const attr size = attr_int(n->c, "block_size", block);
    return tflite_result_image(n, 0, tflite_emit(n, is_depth ? "nn.depth_to_space" : "nn.space_to_depth", 1, &x, 1,
                                                 &size));
}

/* Blocks of the axes behind the first, and what is padded or cropped of each. */
typedef struct blocks {
    int64_t size[TYPE_MAX_RANK * 2], edges[TYPE_MAX_RANK * 2], dims[TYPE_MAX_RANK];
    uint32_t count, rank;
} blocks;

static bool read_blocks(tflite_node *n, const graph_value *x, blocks *b)
{
    uint32_t n_edges;
    if (!get_shape(n, x, b->dims) || !tflite_ints(n, 1, "the blocks", b->size, &b->count) ||
        !tflite_ints(n, 2, "the edges", b->edges, &n_edges))
        return false;
    b->rank = (uint32_t)x->type.shape.rank;
    if (b->count == 0 || b->count + 1 > b->rank || n_edges != 2 * b->count || b->rank + b->count > TYPE_MAX_RANK)
        return tflite_fail(n, DIAG_TYPE, "%u blocks with %u edges do not fit data of %u dimensions", b->count, n_edges,
                           b->rank);
    for (uint32_t i = 0; i < b->count; i++)
        if (b->size[i] < 1 || b->size[i] > INT32_MAX || b->edges[2 * i] < 0 || b->edges[2 * i + 1] < 0 ||
            b->edges[2 * i] > INT32_MAX || b->edges[2 * i + 1] > INT32_MAX)
            return tflite_fail(n, DIAG_FORMAT, "a block is below 1, or an edge is negative or too large");
    return true;
}

/* Each block's places become the outermost part of the batch. */
bool tflite_op_space_to_batch(tflite_node *n)
{
    blocks b;
    int64_t pads[2 * TYPE_MAX_RANK] = {0}, split[TYPE_MAX_RANK], perm[TYPE_MAX_RANK], out[TYPE_MAX_RANK];
    tflite_scale y;
    graph_value *x = tflite_in(n, 0);
    if (n->failed || !read_blocks(n, x, &b))
        return false;
    const uint32_t m = b.count;
    out[0] = split[0] = b.dims[0];
    for (uint32_t i = 0; i < m; i++) {
        pads[1 + i] = b.edges[2 * i];
        pads[b.rank + 1 + i] = b.edges[2 * i + 1];
        const int64_t whole = b.dims[1 + i] + b.edges[2 * i] + b.edges[2 * i + 1];
        if (whole % b.size[i] != 0 || !i64_mul(out[0], b.size[i], &out[0]))
            return tflite_fail(n, DIAG_TYPE, "blocks of %" PRId64 " do not divide an extent of %" PRId64, b.size[i],
                               whole);
        split[1 + 2 * i] = out[1 + i] = whole / b.size[i];
        split[2 + 2 * i] = b.size[i];
        perm[i] = 2 + 2 * i;
        perm[m + 1 + i] = 1 + 2 * i;
    }
    perm[m] = 0;
    for (uint32_t i = 1 + m; i < b.rank; i++) {
        out[i] = split[m + i] = b.dims[i];
        perm[m + i] = m + i;
    }
    graph_value *in[3] = {x, tflite_const(n, tensor_from_i64s(n->c, 2 * b.rank, pads), "pads")};
    /* TensorFlow Lite Micro pads with the number 0, whatever that stands for */
    const bool by_zero_point = tflite_is_int(n, 0) && (tflite_like_litert(n) || x->type.dt == DT_U8);
    if (by_zero_point && tflite_read_scale(n, TFLITE_RESULT, &y))
        in[2] = tflite_zero(n, &y);
    x = tflite_reshape(n, tflite_emit(n, "nn.pad", 3, in, 0, NULL), b.rank + m, split);
    x = tflite_reshape(n, tflite_transpose(n, x, b.rank + m, perm), b.rank, out);
    return tflite_result(n, 0, x);
}

bool tflite_op_batch_to_space(tflite_node *n)
{
    blocks b;
    int64_t split[TYPE_MAX_RANK], perm[TYPE_MAX_RANK], out[TYPE_MAX_RANK], from[TYPE_MAX_RANK], to[TYPE_MAX_RANK],
        axes[TYPE_MAX_RANK], ones[TYPE_MAX_RANK], batch;
    graph_value *x = tflite_in(n, 0);
    if (n->failed || !read_blocks(n, x, &b))
        return false;
    const uint32_t m = b.count;
    batch = b.dims[0];
    for (uint32_t i = 0; i < m; i++) {
        if (batch % b.size[i] != 0)
            return tflite_fail(n, DIAG_TYPE, "the batch of %" PRId64 " does not divide into its blocks", b.dims[0]);
        batch /= b.size[i];
        split[i] = b.size[i];
        split[m + 1 + i] = b.dims[1 + i];
        perm[1 + 2 * i] = m + 1 + i;
        perm[2 + 2 * i] = i;
        from[i] = b.edges[2 * i];
        if (!i64_mul(b.dims[1 + i], b.size[i], &out[1 + i]) || b.edges[2 * i] + b.edges[2 * i + 1] > out[1 + i])
            return tflite_fail(n, DIAG_TYPE, "the crop is larger than axis %u", 1 + i);
        to[i] = out[1 + i] - b.edges[2 * i + 1];
        axes[i] = 1 + i;
        ones[i] = 1;
    }
    out[0] = split[m] = batch;
    perm[0] = m;
    for (uint32_t i = 1 + m; i < b.rank; i++) {
        out[i] = split[m + i] = b.dims[i];
        perm[m + i] = m + i;
    }
    x = tflite_transpose(n, tflite_reshape(n, x, b.rank + m, split), b.rank + m, perm);
    return tflite_result(n, 0, slice(n, tflite_reshape(n, x, b.rank, out), m, from, to, axes, ones));
}

/* Sparse constants were unpacked when they were read. */
bool tflite_op_densify(tflite_node *n)
{
    if (!tflite_constant(n, 0))
        return tflite_fail(n, DIAG_UNSUPPORTED, "its data must be a constant");
    return tflite_result(n, 0, tflite_in(n, 0));
}
