/* SPDX-License-Identifier: Apache-2.0 */
/* Type relations of operators that cut pieces off, repeat them or put a border around (ONNX Split, Slice, Tile, Pad).
 */
#include "graph/op/shape.h"

#include <string.h>

/* Extent of part i of `whole` cut into parts of `chunk`: the last ones get what is left, which may be nothing. */
static dim even_part(compiler *c, dim whole, dim chunk, uint32_t i)
{
    dim from = dim_min(c, whole, dim_mul(c, chunk, dim_const(c, i)));
    return dim_min(c, chunk, dim_sub(c, whole, from));
}

/* Where the operand says the sizes: part i. */
static dim said_part(compiler *c, const graph_node *n, const shape_value *sizes, uint32_t i, int32_t axis, dim whole)
{
    int32_t rank = infer_in(n, 0)->shape.rank;
    return i < sizes->n && sizes->at[i] ? sizes->at[i] : infer_open(c, n, i, rank, axis, "part", dim_bound(whole));
}

bool infer_split(compiler *c, const graph_node *n, type *out)
{
    const type *x = infer_in(n, 0);
    int64_t total = 0, sum = 0;
    int32_t axis = 0;
    if (!infer_axis(c, n, graph_attr_int(n, "axis"), x->shape.rank, &axis))
        return false;
    dim d[TYPE_MAX_RANK], whole = x->shape.dims[axis], parts = dim_const(c, n->n_outputs);
    memcpy(d, x->shape.dims, (size_t)x->shape.rank * sizeof *d);
    const tensor_data *given = infer_has(n, 1) ? graph_constant(n->inputs[1]) : NULL;
    bool counted = true; /* every extent is known */
    shape_value sizes;
    if (!infer_entries(c, n, 1, n->n_outputs))
        return false;
    if (!infer_elements(c, n, 1, &sizes))
        sizes.n = 0;
    dim chunk = dim_ceildiv(c, whole, parts);
    for (uint32_t i = 0; i < n->n_outputs; i++) {
        const type *dec = infer_declared(n, i);
        if (given) /* of any length */
            d[axis] = dim_const(c, tensor_get_i64(given, i));
        else if (infer_has(n, 1) && dec && dec->shape.rank != x->shape.rank)
            return infer_error(c, n, "result %u is declared with rank %d, not %d", i, dec->shape.rank, x->shape.rank);
        else if (infer_has(n, 1))
            d[axis] = said_part(c, n, &sizes, i, axis, whole);
        else
            d[axis] = even_part(c, whole, chunk, i);
        int64_t v = 0;
        counted = counted && dim_is_const(d[axis], &v);
        if (dim_is_const(d[axis], &v) && (v < 0 || !i64_add(sum, v, &sum)))
            return infer_error(c, n, "part %u has extent %lld", i, (long long)v);
        out[i] = type_tensor(x->dt, shape_make(c, (uint32_t)x->shape.rank, d));
    }
    if (counted && dim_is_const(whole, &total) && total != sum)
        return infer_error(c, n, "the sizes add up to %lld, the axis has %lld", (long long)sum, (long long)total);
    return true;
}

/* ONNX Slice-13: extent of start:end:step on an axis of `extent` elements. */
static int64_t slice_extent(int64_t extent, int64_t start, int64_t end, int64_t step)
{
    int64_t lo = step > 0 ? 0 : -1, hi = step > 0 ? extent : extent - 1;
    start = start < 0 ? start + extent : start;
    start = start < 0 ? 0 : start;
    start = start > hi ? hi : start;
    if (end < 0)
        end = end < -extent ? lo : end + extent;
    end = end < lo ? lo : end > extent ? extent : end;
    int64_t reach = step > 0 ? end - start : start - end, mag = step > 0 ? step : -step;
    return reach <= 0 ? 0 : (reach - 1) / mag + 1;
}

/* Axes that are constant, where starts or ends are not. */
static bool slice_axes(compiler *c, const graph_node *n)
{
    int64_t axes[TYPE_MAX_RANK];
    uint32_t count = 0;
    int32_t unused;
    if (!infer_has(n, 3) || !infer_ints(n, 3, axes, &count))
        return true;
    for (uint32_t i = 0; i < count; i++)
        if (!infer_axis(c, n, axes[i], infer_in(n, 0)->shape.rank, &unused))
            return false;
    return true;
}

/* Ends, axes and steps are as many as starts. */
static bool lists_fit(compiler *c, const graph_node *n, int64_t *out)
{
    *out = 0;
    (void)dim_is_const(infer_in(n, 1)->shape.dims[0], out);
    return infer_entries(c, n, 2, *out) && infer_entries(c, n, 3, *out) && infer_entries(c, n, 4, *out);
}

/* Whether what the model declares can come of any starts and ends. */
static bool may_be_declared(compiler *c, const graph_node *n)
{
    type unused;
    int64_t len = 0, rank = infer_in(n, 0)->shape.rank;
    if (!lists_fit(c, n, &len))
        return false;
    if (len > rank)
        return infer_error(c, n, "%lld starts for rank %lld", (long long)len, (long long)rank);
    return infer_moved_as_declared(c, n, true, "starts, ends, axes or steps", &unused);
}

/* Where a start or an end of the axis lies, counted from the end when it is negative; NULL: its sign is not known. */
static dim position(compiler *c, dim v, dim extent)
{
    int64_t number = 0;
    dim zero = dim_const(c, 0);
    if (dim_is_const(v, &number) && number < 0)
        return dim_max(c, zero, dim_add(c, extent, v));
    if (dim_is_const(v, &number) && number >= INT32_MAX && !dim_is_const(extent, &number))
        return extent;
    if (!dim_never_above(c, zero, v))
        return NULL;
    return dim_never_above(c, v, extent) ? v : dim_never_above(c, extent, v) ? extent : dim_min(c, v, extent);
}

/* Elements of start:end:step on an axis; NULL: not known. */
static dim sliced_extent(compiler *c, dim extent, dim start, dim end, int64_t step)
{
    int64_t whole = 0, from = 0, to = 0;
    if (!start || !end)
        return NULL;
    bool numbers = dim_is_const(start, &from) && dim_is_const(end, &to);
    if (numbers && dim_is_const(extent, &whole))
        return dim_const(c, slice_extent(whole, from, to, step));
    if (step < 0) /* all of it from the end */
        return numbers && (from == -1 || from >= INT32_MAX) && to <= -INT32_MAX
                   ? dim_ceildiv(c, extent, dim_const(c, -step))
                   : NULL;
    start = position(c, start, extent);
    end = position(c, end, extent);
    if (!start || !end)
        return NULL;
    dim reach = dim_sub(c, end, start), zero = dim_const(c, 0);
    reach = dim_never_above(c, start, end) ? reach : dim_max(c, zero, reach);
    return dim_ceildiv(c, reach, dim_const(c, step));
}

typedef struct slice_args {
    shape_value starts, ends, steps;
    int64_t axes[TYPE_MAX_RANK];
    uint32_t n_axes;
} slice_args;

/* false: how many entries there are, or which axes they name, is not known. */
static bool slice_read(compiler *c, const graph_node *n, slice_args *a)
{
    bool named = infer_has(n, 3), stepped = infer_has(n, 4);
    *a = (slice_args){0};
    if (!infer_elements(c, n, 1, &a->starts) || !infer_elements(c, n, 2, &a->ends) ||
        (named && !infer_ints(n, 3, a->axes, &a->n_axes)) || (stepped && !infer_elements(c, n, 4, &a->steps)))
        return false;
    for (uint32_t i = 0; !stepped && i < a->starts.n; i++)
        a->steps.at[i] = dim_const(c, 1);
    for (uint32_t i = 0; !named && i < a->starts.n && i < TYPE_MAX_RANK; i++)
        a->axes[i] = i;
    a->steps.n = stepped ? a->steps.n : a->starts.n;
    a->n_axes = named ? a->n_axes : a->starts.n;
    return true;
}

/* v as another value and a number that is added to it: *base is v itself where nothing is. */
static int64_t without_sum(compiler *c, const graph_value *v, const graph_value **base)
{
    int64_t sum = 0;
    bool more = true;
    for (uint32_t depth = 0; more && depth < 8 && v->def && strcmp(v->def->op->name, "add") == 0; depth++) {
        more = false;
        for (uint32_t i = 0; i < 2 && !more; i++) {
            shape_value k = {0};
            int64_t number = 0;
            bool one = graph_shape_value(c, v->def->inputs[i], &k) && k.n == 1 && k.at[0];
            more = one && dim_is_const(k.at[0], &number) && i64_add(sum, number, &sum);
            v = more ? v->def->inputs[1 - i] : v;
        }
    }
    *base = v;
    return sum;
}

/* The most elements of an axis; of one start and an end that is so much further on, whatever they are, no more than
 * that. -1: not known. */
static int64_t most_sliced(compiler *c, const graph_node *n, dim extent, bool by_one)
{
    const graph_value *from = NULL, *to = NULL;
    int64_t most = dim_bound(extent), many = 0;
    if (!by_one || shape_count(infer_in(n, 1)->shape) != 1)
        return most;
    int64_t start = without_sum(c, n->inputs[1], &from), end = without_sum(c, n->inputs[2], &to);
    if (from != to || end <= start || start == INT64_MIN || !i64_add(end, -start, &many))
        return most;
    return most < 0 || many < most ? many : most;
}

/* Any axis may be cut. */
static bool sliced_anyhow(compiler *c, const graph_node *n, type *out)
{
    const type *x = infer_in(n, 0);
    dim d[TYPE_MAX_RANK];
    for (int32_t i = 0; i < x->shape.rank; i++)
        d[i] = infer_open(c, n, 0, x->shape.rank, i, "slice", dim_bound(x->shape.dims[i]));
    out[0] = type_tensor(x->dt, shape_make(c, (uint32_t)x->shape.rank, d));
    return true;
}

bool infer_strided_slice(compiler *c, const graph_node *n, type *out)
{
    const type *x = infer_in(n, 0);
    slice_args v;
    if (!infer_counted(c, n, 1))
        return false;
    bool read = slice_read(c, n, &v);
    if (!slice_axes(c, n))
        return false;
    if ((!read || !infer_knows_any(&v.starts) || !infer_knows_any(&v.ends)) && infer_declared(n, 0) &&
        !may_be_declared(c, n))
        return false;
    int64_t lists = 0;
    if (!read)
        return lists_fit(c, n, &lists) && sliced_anyhow(c, n, out);
    uint32_t len = v.starts.n;
    if (v.ends.n != len || v.n_axes != len || v.steps.n != len || (int32_t)len > x->shape.rank)
        return infer_error(c, n, "starts, ends, axes and steps have different lengths");
    dim d[TYPE_MAX_RANK];
    memcpy(d, x->shape.dims, (size_t)x->shape.rank * sizeof *d);
    for (uint32_t i = 0; i < len; i++) {
        int32_t a = 0;
        int64_t step = 0;
        bool stepped = v.steps.at[i] && dim_is_const(v.steps.at[i], &step);
        if (!infer_axis(c, n, v.axes[i], x->shape.rank, &a))
            return false;
        if (stepped && (step == 0 || step == INT64_MIN))
            return infer_error(c, n, "step %lld", (long long)step);
        dim extent = x->shape.dims[a];
        d[a] = stepped ? sliced_extent(c, extent, v.starts.at[i], v.ends.at[i], step) : NULL;
        if (!d[a])
            d[a] = infer_open(c, n, 0, x->shape.rank, a, "slice", most_sliced(c, n, extent, step == 1));
    }
    out[0] = type_tensor(x->dt, shape_make(c, (uint32_t)x->shape.rank, d));
    return true;
}

/* The declared extents are multiples of the data's. */
static bool tiled_as_declared(compiler *c, const graph_node *n, const type *out)
{
    const type *x = infer_in(n, 0);
    int64_t a = 0, b = 0;
    for (int32_t i = 0; i < x->shape.rank; i++)
        if (dim_is_const(x->shape.dims[i], &a) && dim_is_const(out->shape.dims[i], &b) && a > 0 && b % a != 0)
            return infer_error(c, n, "the result is declared with extent %lld on axis %d, the data has %lld",
                               (long long)b, i, (long long)a);
    return infer_entries(c, n, 1, x->shape.rank);
}

bool infer_tile(compiler *c, const graph_node *n, type *out)
{
    const type *x = infer_in(n, 0);
    shape_value times;
    int32_t rank = x->shape.rank;
    dim d[TYPE_MAX_RANK];
    bool counted = infer_elements(c, n, 1, &times);
    if (infer_declared(n, 0) && (!counted || !infer_knows_any(&times)))
        return infer_moved_as_declared(c, n, false, "repeats", out) && tiled_as_declared(c, n, out);
    if (counted && (int32_t)times.n != rank)
        return infer_error(c, n, "%u repeats for rank %d", times.n, rank);
    for (int32_t i = 0; i < rank; i++) {
        int64_t v = 0;
        if (counted && times.at[i] && dim_is_const(times.at[i], &v) && v < 0)
            return infer_error(c, n, "repeat %lld", (long long)v);
        d[i] = counted && times.at[i] ? dim_mul(c, x->shape.dims[i], times.at[i])
                                      : infer_open(c, n, 0, rank, i, "tile", dim_is(x->shape.dims[i], 0) ? 0 : -1);
    }
    out[0] = type_tensor(x->dt, shape_make(c, (uint32_t)rank, d));
    return true;
}

/* The data's extent and what the two pads add to it; NULL: one is not known. */
static bool padded_extent(compiler *c, const graph_node *n, int32_t axis, dim extent, dim begin, dim end, dim *out)
{
    int64_t v = 0, a = 0, b = 0;
    *out = NULL;
    if (!begin || !end)
        return true;
    if (dim_is_const(begin, &a) && dim_is_const(end, &b) && !i64_add(a, b, &v))
        return infer_error(c, n, "pads of axis %d are out of range", axis);
    *out = dim_add(c, extent, dim_add(c, begin, end));
    v = 0;
    return !dim_is_const(*out, &v) || v >= 0 ||
           infer_error(c, n, "pads leave extent %lld on axis %d", (long long)v, axis);
}

static bool padded_as_declared(compiler *c, const graph_node *n, type *out)
{
    const type *x = infer_in(n, 0);
    return infer_as_declared(c, n, x->dt, x->shape.rank, "pads or axes", out) &&
           (strcmp(graph_attr_string(n, "mode"), "constant") == 0 ||
            infer_moved_as_declared(c, n, false, "pads or axes", out));
}

bool infer_pad(compiler *c, const graph_node *n, type *out)
{
    const type *x = infer_in(n, 0);
    int64_t axes[TYPE_MAX_RANK], entries = x->shape.rank;
    uint32_t n_axes = 0;
    shape_value pads;
    if (!infer_counted(c, n, 3))
        return false;
    if (infer_has(n, 3) && dim_is_const(infer_in(n, 3)->shape.dims[0], &entries) && entries > x->shape.rank)
        return infer_error(c, n, "%lld axes for rank %d", (long long)entries, x->shape.rank);
    if (!infer_entries(c, n, 1, 2 * entries))
        return false;
    bool counted = infer_elements(c, n, 1, &pads), named = !infer_has(n, 3) || infer_ints(n, 3, axes, &n_axes);
    if (infer_declared(n, 0) && (!counted || !named || !infer_knows_any(&pads)))
        return padded_as_declared(c, n, out);
    uint32_t len = infer_has(n, 3) ? n_axes : (uint32_t)x->shape.rank;
    dim d[TYPE_MAX_RANK];
    for (int32_t i = 0; i < x->shape.rank; i++)
        d[i] = counted && named ? x->shape.dims[i] : NULL;
    for (uint32_t i = 0; counted && named && i < len; i++) {
        int32_t a = (int32_t)i;
        if ((infer_has(n, 3) && !infer_axis(c, n, axes[i], x->shape.rank, &a)) ||
            !padded_extent(c, n, a, x->shape.dims[a], pads.at[i], pads.at[i + len], &d[a]))
            return false;
    }
    for (int32_t i = 0; i < x->shape.rank; i++)
        if (!d[i])
            d[i] = infer_open(c, n, 0, x->shape.rank, i, "pad", -1);
    out[0] = type_tensor(x->dt, shape_make(c, (uint32_t)x->shape.rank, d));
    return true;
}
