/* SPDX-License-Identifier: Apache-2.0 */
/* Type relations of operators that change shapes and move data (ONNX Reshape, Transpose, Expand, Concat, Split, Slice,
 * Gather*, Scatter*, Tile, Pad, Shape, ...). Operands that give shapes, axes or sizes may be constants; where they are
 * not, the result's declared shape is taken as a checked assertion. */
#include "graph/op.h"

#include <math.h>
#include <string.h>

static bool ints_of(const graph_node *n, uint32_t i, int64_t *out, uint32_t *len)
{
    *len = 0;
    return i < n->n_inputs && n->inputs[i] && graph_constant_ints(n->inputs[i], TYPE_MAX_RANK, out, len);
}

static bool present(const graph_node *n, uint32_t i)
{
    return i < n->n_inputs && n->inputs[i];
}

/* The declared shape, which must have that rank (-1: any), or an error that says which operand should have been
 * constant. */
static bool from_declared(compiler *c, const graph_node *n, dtype dt, int32_t rank, const char *operand, type *out)
{
    const type *dec = infer_declared(n, 0);
    if (!dec)
        return infer_error(c, n, "%s is not a constant and the result's shape is not declared", operand);
    if (rank >= 0 && dec->shape.rank != rank)
        return infer_error(c, n, "the result is declared with rank %d, not %d", dec->shape.rank, rank);
    out[0] = type_tensor(dt, dec->shape);
    return true;
}

/* Whether operand i has so many entries, as far as that is known. */
static bool has_entries(compiler *c, const graph_node *n, uint32_t i, int64_t want)
{
    int64_t have = 0;
    return !present(n, i) || !dim_is_const(infer_in(n, i)->shape.dims[0], &have) || have == want ||
           infer_error(c, n, "operand %u, %s, has %lld entries; %lld are needed", i, operand_of(n->op, i)->name,
                       (long long)have, (long long)want);
}

/* The declared shape where it must hold as many elements as the data. */
static bool reshaped_as_declared(compiler *c, const graph_node *n, type *out)
{
    const type *x = infer_in(n, 0);
    if (!from_declared(c, n, x->dt, -1, "the shape operand", out))
        return false;
    int64_t a = shape_count(x->shape), b = shape_count(out->shape);
    if (a >= 0 && shape_is_static(out->shape) && a != b)
        return infer_error(c, n, "the declared result has %lld elements, the data %lld", (long long)b, (long long)a);
    return has_entries(c, n, 1, out->shape.rank);
}

/* The declared shape where the data is broadcast to it. */
static bool broadcast_as_declared(compiler *c, const graph_node *n, type *out)
{
    const type *x = infer_in(n, 0);
    shape s;
    if (!from_declared(c, n, x->dt, -1, "the shape operand", out))
        return false;
    int32_t rank = out->shape.rank;
    int64_t len = 0;
    if (dim_is_const(infer_in(n, 1)->shape.dims[0], &len) && (len > rank || rank > x->shape.rank) &&
        !has_entries(c, n, 1, rank))
        return false;
    bool ok = shape_broadcast(c, x->shape, out->shape, &s) && s.rank == rank;
    for (int32_t i = 0; ok && i < rank; i++) {
        int64_t a = 0, b = 0;
        ok = !dim_is_const(s.dims[i], &a) || !dim_is_const(out->shape.dims[i], &b) || a == b;
    }
    return ok || infer_no_broadcast_to(c, n, x, out);
}

/* The declared shape of a result of the data's rank. `within`: no extent is above the data's (a slice). An axis without
 * elements gives none. */
static bool moved_as_declared(compiler *c, const graph_node *n, bool within, const char *operand, type *out)
{
    const type *x = infer_in(n, 0);
    if (!from_declared(c, n, x->dt, x->shape.rank, operand, out))
        return false;
    for (int32_t i = 0; i < x->shape.rank; i++) {
        int64_t a = 0, b = 0;
        if (dim_is_const(x->shape.dims[i], &a) && dim_is_const(out->shape.dims[i], &b) && b > a && (within || a == 0))
            return infer_error(c, n, "the result is declared with extent %lld on axis %d, the data has %lld",
                               (long long)b, i, (long long)a);
    }
    return true;
}

bool infer_reshape(compiler *c, const graph_node *n, type *out)
{
    const type *x = infer_in(n, 0);
    int64_t want[TYPE_MAX_RANK];
    uint32_t len = 0;
    if (!ints_of(n, 1, want, &len))
        return reshaped_as_declared(c, n, out);
    bool allowzero = graph_attr_int(n, "allowzero") != 0;
    dim d[TYPE_MAX_RANK], known = dim_const(c, 1), all = shape_elements(c, x->shape);
    int32_t open = -1;
    for (uint32_t i = 0; i < len; i++) {
        if (want[i] == -1) {
            if (open >= 0)
                return infer_error(c, n, "two entries of the shape are -1");
            open = (int32_t)i;
            continue;
        }
        if (want[i] < 0 || (want[i] == 0 && !allowzero && (int32_t)i >= x->shape.rank))
            return infer_error(c, n, "entry %u of the shape is %lld", i, (long long)want[i]);
        d[i] = want[i] == 0 && !allowzero ? x->shape.dims[i] : dim_const(c, want[i]);
        known = dim_mul(c, known, d[i]);
    }
    if (open >= 0)
        d[open] = dim_is(known, 0) ? dim_const(c, 0) : dim_floordiv(c, all, known);
    shape s = shape_make(c, len, d);
    int64_t a = shape_count(x->shape), b = shape_count(s);
    if (a >= 0 && b >= 0 && a != b)
        return infer_error(c, n, "cannot reshape %lld elements into %lld", (long long)a, (long long)b);
    out[0] = type_tensor(x->dt, s);
    return true;
}

/* One row or more, each with as many entries as the value. */
bool infer_expect(compiler *c, const graph_node *n, type *out)
{
    const type *v = infer_in(n, 1);
    const tensor_data *rows = graph_attr(n, "rows")->u.tensor;
    if (v->shape.rank > 1 || rows->dt != DT_I64 || rows->rank != 2 || rows->count == 0 ||
        shape_count(v->shape) != rows->dims[1])
        return infer_error(c, n,
                           "the rows must be i64 with as many entries as the value, which is a vector or one number");
    return infer_same(c, n, out);
}

bool infer_transpose(compiler *c, const graph_node *n, type *out)
{
    const type *x = infer_in(n, 0);
    const int64_t *perm = NULL;
    uint32_t len = graph_attr_ints(n, "perm", &perm), seen = 0;
    dim d[TYPE_MAX_RANK];
    if (len && (int32_t)len != x->shape.rank)
        return infer_error(c, n, "perm has %u entries, the data rank %d", len, x->shape.rank);
    for (int32_t i = 0; i < x->shape.rank; i++) {
        int32_t p = x->shape.rank - 1 - i;
        if (len && !infer_axis(c, n, perm[i], x->shape.rank, &p))
            return false;
        seen |= 1u << p;
        d[i] = x->shape.dims[p];
    }
    if (seen != (1u << x->shape.rank) - 1u)
        return infer_error(c, n, "perm is not a permutation");
    out[0] = type_tensor(x->dt, shape_make(c, (uint32_t)x->shape.rank, d));
    return true;
}

bool infer_broadcast_to(compiler *c, const graph_node *n, type *out)
{
    const type *x = infer_in(n, 0);
    int64_t want[TYPE_MAX_RANK];
    uint32_t len = 0;
    shape s;
    if (!ints_of(n, 1, want, &len))
        return broadcast_as_declared(c, n, out);
    for (uint32_t i = 0; i < len; i++)
        if (want[i] < 0)
            return infer_error(c, n, "entry %u of the shape is %lld", i, (long long)want[i]);
    type to = type_tensor(x->dt, shape_const(c, len, want));
    if (!shape_broadcast(c, x->shape, to.shape, &s))
        return infer_no_broadcast_to(c, n, x, &to);
    out[0] = type_tensor(x->dt, s);
    return true;
}

bool infer_concatenate(compiler *c, const graph_node *n, type *out)
{
    const type *x = infer_in(n, 0);
    int32_t axis = 0;
    dim d[TYPE_MAX_RANK];
    if (!infer_axis(c, n, graph_attr_int(n, "axis"), x->shape.rank, &axis))
        return false;
    memcpy(d, x->shape.dims, (size_t)x->shape.rank * sizeof *d);
    for (uint32_t i = 1; i < n->n_inputs; i++) {
        const type *t = infer_in(n, i);
        if (t->dt != x->dt || t->shape.rank != x->shape.rank)
            return infer_error(c, n, "operand %u is %s of rank %d, operand 0 %s of rank %d", i, dtype_name(t->dt),
                               t->shape.rank, dtype_name(x->dt), x->shape.rank);
        for (int32_t k = 0; k < x->shape.rank; k++) {
            int64_t a = 0, b = 0;
            if (k == axis)
                d[k] = dim_add(c, d[k], t->shape.dims[k]);
            else if (dim_is_const(d[k], &a) && dim_is_const(t->shape.dims[k], &b) && a != b)
                return infer_error(c, n, "operand %u has extent %lld on axis %d, not %lld", i, (long long)b, k,
                                   (long long)a);
        }
    }
    out[0] = type_tensor(x->dt, shape_make(c, (uint32_t)x->shape.rank, d));
    return true;
}

/* Extent of part i of `whole` cut into parts of `chunk`: the last ones get what is left, which may be nothing. */
static dim even_part(compiler *c, dim whole, dim chunk, uint32_t i)
{
    dim from = dim_min(c, whole, dim_mul(c, chunk, dim_const(c, i)));
    return dim_min(c, chunk, dim_sub(c, whole, from));
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
    const tensor_data *given = present(n, 1) ? graph_constant(n->inputs[1]) : NULL;
    bool counted = true; /* every extent is known */
    if (!has_entries(c, n, 1, n->n_outputs))
        return false;
    dim chunk = dim_ceildiv(c, whole, parts);
    for (uint32_t i = 0; i < n->n_outputs; i++) {
        const type *dec = infer_declared(n, i);
        if (given)
            d[axis] = dim_const(c, tensor_get_i64(given, i));
        else if (present(n, 1) && dec && dec->shape.rank != x->shape.rank)
            return infer_error(c, n, "result %u is declared with rank %d, not %d", i, dec->shape.rank, x->shape.rank);
        else if (present(n, 1) && dec)
            d[axis] = dec->shape.dims[axis];
        else if (present(n, 1))
            return infer_error(c, n, "the sizes are not constant and result %u is not declared", i);
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

static bool sliced_as_declared(compiler *c, const graph_node *n, type *out)
{
    int64_t len = 0, rank = infer_in(n, 0)->shape.rank;
    bool known = dim_is_const(infer_in(n, 1)->shape.dims[0], &len);
    if (known && (!has_entries(c, n, 2, len) || !has_entries(c, n, 3, len) || !has_entries(c, n, 4, len)))
        return false;
    if (known && len > rank)
        return infer_error(c, n, "%lld starts for rank %lld", (long long)len, (long long)rank);
    return moved_as_declared(c, n, true, "starts, ends, axes or steps", out);
}

bool infer_strided_slice(compiler *c, const graph_node *n, type *out)
{
    const type *x = infer_in(n, 0);
    int64_t starts[TYPE_MAX_RANK], ends[TYPE_MAX_RANK], axes[TYPE_MAX_RANK], steps[TYPE_MAX_RANK];
    uint32_t len = 0, n_ends = 0, n_axes = 0, n_steps = 0;
    bool known = ints_of(n, 1, starts, &len) && ints_of(n, 2, ends, &n_ends);
    known =
        known && (!present(n, 3) || ints_of(n, 3, axes, &n_axes)) && (!present(n, 4) || ints_of(n, 4, steps, &n_steps));
    if (!known)
        return sliced_as_declared(c, n, out);
    if (n_ends != len || (present(n, 3) && n_axes != len) || (present(n, 4) && n_steps != len) ||
        (int32_t)len > x->shape.rank)
        return infer_error(c, n, "starts, ends, axes and steps have different lengths");
    dim d[TYPE_MAX_RANK];
    memcpy(d, x->shape.dims, (size_t)x->shape.rank * sizeof *d);
    for (uint32_t i = 0; i < len; i++) {
        int32_t a = (int32_t)i;
        int64_t extent = 0, step = present(n, 4) ? steps[i] : 1;
        if (present(n, 3) && !infer_axis(c, n, axes[i], x->shape.rank, &a))
            return false;
        if (step == 0 || step == INT64_MIN)
            return infer_error(c, n, "step %lld", (long long)step);
        if (!dim_is_const(d[a], &extent)) {
            if (starts[i] == 0 && step == 1 && ends[i] >= INT32_MAX)
                continue;
            return moved_as_declared(c, n, true, "the sliced axis", out);
        }
        d[a] = dim_const(c, slice_extent(extent, starts[i], ends[i], step));
    }
    out[0] = type_tensor(x->dt, shape_make(c, (uint32_t)x->shape.rank, d));
    return true;
}

bool infer_take(compiler *c, const graph_node *n, type *out)
{
    const type *x = infer_in(n, 0), *idx = infer_in(n, 1);
    int32_t axis = 0;
    uint32_t r = 0;
    dim d[2 * TYPE_MAX_RANK];
    if (!infer_axis(c, n, graph_attr_int(n, "axis"), x->shape.rank, &axis))
        return false;
    if (dim_is(x->shape.dims[axis], 0) && shape_count(idx->shape) != 0)
        return infer_error(c, n, "axis %d has no elements to take", axis);
    for (int32_t i = 0; i < axis; i++)
        d[r++] = x->shape.dims[i];
    for (int32_t i = 0; i < idx->shape.rank; i++)
        d[r++] = idx->shape.dims[i];
    for (int32_t i = axis + 1; i < x->shape.rank; i++)
        d[r++] = x->shape.dims[i];
    if (r > TYPE_MAX_RANK)
        return infer_error(c, n, "result of rank %u; at most %u is supported", r, TYPE_MAX_RANK);
    out[0] = type_tensor(x->dt, shape_make(c, r, d));
    return true;
}

bool infer_gather_elements(compiler *c, const graph_node *n, type *out)
{
    const type *x = infer_in(n, 0), *idx = infer_in(n, 1);
    int32_t axis = 0;
    if (!infer_axis(c, n, graph_attr_int(n, "axis"), x->shape.rank, &axis))
        return false;
    if (idx->shape.rank != x->shape.rank)
        return infer_error(c, n, "indices have rank %d, the data %d", idx->shape.rank, x->shape.rank);
    for (int32_t i = 0; i < x->shape.rank; i++) {
        int64_t a = 0, b = 0;
        if (dim_is_const(x->shape.dims[i], &a) && dim_is_const(idx->shape.dims[i], &b) && b > a &&
            (i != axis || a == 0))
            return infer_error(c, n, "indices have extent %lld on axis %d, the data %lld", (long long)b, i,
                               (long long)a);
    }
    out[0] = type_tensor(x->dt, idx->shape);
    return true;
}

bool infer_gather_nd(compiler *c, const graph_node *n, type *out)
{
    const type *x = infer_in(n, 0), *idx = infer_in(n, 1);
    int64_t batch = graph_attr_int(n, "batch_dims"), last = 0;
    if (!dim_is_const(idx->shape.dims[idx->shape.rank - 1], &last))
        return infer_error(c, n, "the last extent of the indices must be a constant");
    if (batch < 0 || batch >= idx->shape.rank || last < 1 || last > x->shape.rank || batch + last > x->shape.rank)
        return infer_error(c, n, "%lld indices after %lld batch axes into rank %d", (long long)last, (long long)batch,
                           x->shape.rank);
    for (int32_t i = 0; i < batch; i++) {
        int64_t a = 0, b = 0;
        if (dim_is_const(x->shape.dims[i], &a) && dim_is_const(idx->shape.dims[i], &b) && a != b)
            return infer_error(c, n, "indices have extent %lld on batch axis %d, the data %lld", (long long)b, i,
                               (long long)a);
    }
    dim d[2 * TYPE_MAX_RANK];
    uint32_t r = 0;
    for (int32_t i = 0; i + 1 < idx->shape.rank; i++)
        d[r++] = idx->shape.dims[i];
    for (int32_t i = (int32_t)(batch + last); i < x->shape.rank; i++)
        d[r++] = x->shape.dims[i];
    if (r > TYPE_MAX_RANK)
        return infer_error(c, n, "result of rank %u; at most %u is supported", r, TYPE_MAX_RANK);
    out[0] = type_tensor(x->dt, shape_make(c, r, d));
    return true;
}

/* Updates of scatter_elements have the indices' shape, within the data off the axis; those of scatter_nd the indices'
 * leading axes and then the data's from the depth on. */
static bool updates_fit(const graph_node *n, bool elements, int32_t axis)
{
    shape x = infer_in(n, 0)->shape, ix = infer_in(n, 1)->shape, u = infer_in(n, 2)->shape;
    int64_t depth = 0, a = 0, b = 0;
    if (!elements && (!dim_is_const(ix.dims[ix.rank - 1], &depth) || depth < 0 || depth > x.rank))
        return false;
    int32_t lead = elements ? ix.rank : ix.rank - 1;
    if (u.rank != (elements ? x.rank : lead + x.rank - (int32_t)depth) || (elements && ix.rank != x.rank))
        return false;
    for (int32_t i = 0; i < u.rank; i++) {
        dim want = i < lead ? ix.dims[i] : x.dims[i - lead + (int32_t)depth];
        if (!dim_is_const(u.dims[i], &b))
            continue;
        if (dim_is_const(want, &a) && (i < lead && elements ? b > a : b != a))
            return false;
        if (elements && i != axis && dim_is_const(x.dims[i], &a) && b > a)
            return false;
    }
    return true;
}

bool infer_scatter(compiler *c, const graph_node *n, type *out)
{
    bool elements = strcmp(n->op->name, "scatter_elements") == 0;
    int32_t axis = 0;
    if (elements && !infer_axis(c, n, graph_attr_int(n, "axis"), infer_in(n, 0)->shape.rank, &axis))
        return false;
    if (!updates_fit(n, elements, axis))
        return infer_error(c, n, "the shapes of data, indices and updates do not fit together");
    return infer_same(c, n, out);
}

bool infer_tensor_scatter(compiler *c, const graph_node *n, type *out)
{
    const type *x = infer_in(n, 0), *u = infer_in(n, 1);
    int32_t axis = 0;
    if (!infer_axis(c, n, graph_attr_int(n, "axis"), x->shape.rank, &axis))
        return false;
    if (axis == 0 || u->shape.rank != x->shape.rank)
        return infer_error(c, n, "an update of rank %d for a cache of rank %d on axis %d", u->shape.rank, x->shape.rank,
                           axis);
    for (int32_t i = 0; i < x->shape.rank; i++) {
        int64_t a = 0, b = 0;
        if (dim_is_const(x->shape.dims[i], &a) && dim_is_const(u->shape.dims[i], &b) && (i == axis ? b > a : a != b))
            return infer_error(c, n, "the update has extent %lld on axis %d, the cache %lld", (long long)b, i,
                               (long long)a);
    }
    return infer_same(c, n, out);
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
    return has_entries(c, n, 1, x->shape.rank);
}

bool infer_tile(compiler *c, const graph_node *n, type *out)
{
    const type *x = infer_in(n, 0);
    int64_t rep[TYPE_MAX_RANK];
    uint32_t len = 0;
    dim d[TYPE_MAX_RANK];
    if (!ints_of(n, 1, rep, &len))
        return moved_as_declared(c, n, false, "repeats", out) && tiled_as_declared(c, n, out);
    if ((int32_t)len != x->shape.rank)
        return infer_error(c, n, "%u repeats for rank %d", len, x->shape.rank);
    for (uint32_t i = 0; i < len; i++) {
        if (rep[i] < 0)
            return infer_error(c, n, "repeat %lld", (long long)rep[i]);
        d[i] = dim_mul(c, x->shape.dims[i], dim_const(c, rep[i]));
    }
    out[0] = type_tensor(x->dt, shape_make(c, len, d));
    return true;
}

bool infer_pad(compiler *c, const graph_node *n, type *out)
{
    const type *x = infer_in(n, 0);
    int64_t axes[TYPE_MAX_RANK];
    uint32_t n_axes = 0;
    const tensor_data *pads = graph_constant(n->inputs[1]);
    int64_t entries = x->shape.rank;
    if (present(n, 3) && dim_is_const(infer_in(n, 3)->shape.dims[0], &entries) && entries > x->shape.rank)
        return infer_error(c, n, "%lld axes for rank %d", (long long)entries, x->shape.rank);
    if (!has_entries(c, n, 1, 2 * entries))
        return false;
    if (!pads || (present(n, 3) && !ints_of(n, 3, axes, &n_axes)))
        return from_declared(c, n, x->dt, x->shape.rank, "pads or axes", out) &&
               (strcmp(graph_attr_string(n, "mode"), "constant") == 0 ||
                moved_as_declared(c, n, false, "pads or axes", out));
    uint32_t len = present(n, 3) ? n_axes : (uint32_t)x->shape.rank;
    dim d[TYPE_MAX_RANK];
    memcpy(d, x->shape.dims, (size_t)x->shape.rank * sizeof *d);
    for (uint32_t i = 0; i < len; i++) {
        int32_t a = (int32_t)i;
        int64_t v = 0;
        if (present(n, 3) && !infer_axis(c, n, axes[i], x->shape.rank, &a))
            return false;
        if (!i64_add(tensor_get_i64(pads, i), tensor_get_i64(pads, (int64_t)i + len), &v))
            return infer_error(c, n, "pads of axis %d are out of range", a);
        d[a] = dim_add(c, d[a], dim_const(c, v));
        v = 0;
        if (dim_is_const(d[a], &v) && v < 0)
            return infer_error(c, n, "pads leave extent %lld on axis %d", (long long)v, a);
    }
    out[0] = type_tensor(x->dt, shape_make(c, (uint32_t)x->shape.rank, d));
    return true;
}

static int64_t clamp_axis(int64_t a, int32_t rank)
{
    a = a < 0 ? a + rank : a;
    return a < 0 ? 0 : a > rank ? rank : a;
}

bool infer_shape_of(compiler *c, const graph_node *n, type *out)
{
    int32_t rank = infer_in(n, 0)->shape.rank;
    int64_t a = clamp_axis(graph_attr_int(n, "start"), rank), b = clamp_axis(graph_attr_int(n, "end"), rank),
            len = b > a ? b - a : 0;
    out[0] = type_static(c, DT_I64, 1, &len);
    return true;
}

bool infer_size_of(compiler *c, const graph_node *n, type *out)
{
    (void)n;
    out[0] = type_static(c, DT_I64, 0, NULL);
    return true;
}

bool infer_full(compiler *c, const graph_node *n, type *out)
{
    dtype dt = graph_attr(n, "value")->u.tensor->dt;
    if (graph_attr(n, "value")->u.tensor->count != 1)
        return infer_error(c, n, "the value must have one element");
    int64_t want[TYPE_MAX_RANK];
    uint32_t len = 0;
    if (!ints_of(n, 0, want, &len))
        return from_declared(c, n, dt, -1, "the shape operand", out) && has_entries(c, n, 0, out->shape.rank);
    for (uint32_t i = 0; i < len; i++)
        if (want[i] < 0)
            return infer_error(c, n, "extent %lld", (long long)want[i]);
    out[0] = type_static(c, dt, len, want);
    return true;
}

bool infer_arange(compiler *c, const graph_node *n, type *out)
{
    const tensor_data *s = graph_constant(n->inputs[0]), *e = graph_constant(n->inputs[1]),
                      *d = graph_constant(n->inputs[2]);
    dtype dt = infer_in(n, 0)->dt;
    if (!s || !e || !d)
        return from_declared(c, n, dt, 1, "start, limit or delta", out);
    double delta = tensor_get_f64(d, 0), way = tensor_get_f64(e, 0) - tensor_get_f64(s, 0);
    if (dtype_is_float(dt) && dt != DT_F64)
        way = (float)tensor_get_f64(e, 0) - (float)tensor_get_f64(s, 0); /* as the kernel checks it */
    double reach = way / delta;
    if (!(delta < 0 || delta > 0) || !(reach < 1e12))
        return infer_error(c, n, "range of %g steps with delta %g", reach, delta);
    int64_t len = reach <= 0 ? 0 : (int64_t)reach;
    len += reach > (double)len;
    out[0] = type_static(c, dt, 1, &len);
    return true;
}

bool infer_one_hot(compiler *c, const graph_node *n, type *out)
{
    const type *idx = infer_in(n, 0);
    const tensor_data *depth = graph_constant(n->inputs[1]);
    dtype dt = infer_in(n, 2)->dt;
    int32_t axis = 0;
    dim d[TYPE_MAX_RANK + 1];
    if (!infer_axis(c, n, graph_attr_int(n, "axis"), idx->shape.rank + 1, &axis))
        return false;
    if (idx->shape.rank >= (int32_t)TYPE_MAX_RANK)
        return infer_error(c, n, "result of rank %d; at most %u is supported", idx->shape.rank + 1, TYPE_MAX_RANK);
    if (!dim_is(infer_in(n, 2)->shape.dims[0], 2))
        return infer_error(c, n, "values must be two numbers, off and on");
    bool known = depth && dtype_usable(depth->dt);
    if (!known && !from_declared(c, n, dt, idx->shape.rank + 1, "depth", out))
        return false;
    dim wide = known ? dim_const(c, tensor_get_i64(depth, 0)) : out[0].shape.dims[axis];
    for (int32_t i = 0; i <= idx->shape.rank; i++)
        d[i] = i == axis ? wide : idx->shape.dims[i - (i > axis)];
    out[0] = type_tensor(dt, shape_make(c, (uint32_t)idx->shape.rank + 1, d));
    return true;
}

bool infer_eye_like(compiler *c, const graph_node *n, type *out)
{
    (void)c;
    dtype dt = graph_attr_dtype(n, "dtype");
    out[0] = type_tensor(dt == DT_NONE ? infer_in(n, 0)->dt : dt, infer_in(n, 0)->shape);
    return true;
}

#define MAX_BLOCK 32768 /* its square is an int */

bool infer_depth_to_space(compiler *c, const graph_node *n, type *out)
{
    const type *x = infer_in(n, 0);
    int64_t b = graph_attr_int(n, "block_size"), ch = 0;
    const char *mode = graph_attr_string(n, "mode");
    if (strcmp(mode, "DCR") != 0 && strcmp(mode, "CRD") != 0)
        return infer_error(c, n, "unknown mode '%s'; DCR and CRD are supported", mode);
    if (b < 1 || b > MAX_BLOCK || (dim_is_const(x->shape.dims[1], &ch) && ch % (b * b) != 0))
        return infer_error(c, n, "%lld channels, block size %lld", (long long)ch, (long long)b);
    dim k = dim_const(c, b), d[4] = {x->shape.dims[0], dim_floordiv(c, x->shape.dims[1], dim_mul(c, k, k)),
                                     dim_mul(c, x->shape.dims[2], k), dim_mul(c, x->shape.dims[3], k)};
    out[0] = type_tensor(x->dt, shape_make(c, 4, d));
    return true;
}

bool infer_space_to_depth(compiler *c, const graph_node *n, type *out)
{
    const type *x = infer_in(n, 0);
    int64_t b = graph_attr_int(n, "block_size"), h = 0, w = 0;
    if (b < 1 || b > MAX_BLOCK || (dim_is_const(x->shape.dims[2], &h) && h % b) ||
        (dim_is_const(x->shape.dims[3], &w) && w % b))
        return infer_error(c, n, "%lld x %lld elements, block size %lld", (long long)h, (long long)w, (long long)b);
    dim k = dim_const(c, b), d[4] = {x->shape.dims[0], dim_mul(c, x->shape.dims[1], dim_mul(c, k, k)),
                                     dim_floordiv(c, x->shape.dims[2], k), dim_floordiv(c, x->shape.dims[3], k)};
    out[0] = type_tensor(x->dt, shape_make(c, 4, d));
    return true;
}

/* reverse_sequence: one length for each entry of the batch axis. */
bool infer_same1(compiler *c, const graph_node *n, type *out)
{
    const type *x = infer_in(n, 0), *len = infer_in(n, 1);
    int64_t axis = graph_attr_int(n, "batch_axis"), a = 0, b = 0;
    if (axis < 0 || axis >= x->shape.rank ||
        (dim_is_const(x->shape.dims[axis], &a) && dim_is_const(len->shape.dims[0], &b) && a != b))
        return infer_error(c, n, "lengths must be one for each entry of the batch axis");
    return infer_same(c, n, out);
}

bool infer_col2im(compiler *c, const graph_node *n, type *out)
{
    const type *x = infer_in(n, 0);
    int64_t image[TYPE_MAX_RANK], block[TYPE_MAX_RANK], k = 1;
    uint32_t len = 0, n_block = 0;
    if (!ints_of(n, 1, image, &len) || !ints_of(n, 2, block, &n_block))
        return from_declared(c, n, x->dt, -1, "image_shape or block_shape", out) &&
               has_entries(c, n, 1, out->shape.rank - 2) && has_entries(c, n, 2, out->shape.rank - 2);
    if (len != n_block || len + 2 > TYPE_MAX_RANK)
        return infer_error(c, n, "image of rank %u, block of rank %u", len, n_block);
    dim d[TYPE_MAX_RANK] = {x->shape.dims[0]};
    for (uint32_t i = 0; i < len; i++) {
        if (block[i] < 1 || !i64_mul(k, block[i], &k))
            return infer_error(c, n, "block extent %lld", (long long)block[i]);
        if (image[i] < 0)
            return infer_error(c, n, "image extent %lld", (long long)image[i]);
        d[2 + i] = dim_const(c, image[i]);
    }
    d[1] = dim_floordiv(c, x->shape.dims[1], dim_const(c, k));
    out[0] = type_tensor(x->dt, shape_make(c, len + 2, d));
    return true;
}

/* Whether the string attribute is one of the names (the last is NULL). */
static bool one_of(compiler *c, const graph_node *n, const char *attr_name, const char *const *names)
{
    const char *given = graph_attr_string(n, attr_name);
    for (size_t i = 0; names[i]; i++)
        if (strcmp(given, names[i]) == 0)
            return true;
    return infer_error(c, n, "unknown %s '%s'", attr_name, given);
}

static bool resize_modes(compiler *c, const graph_node *n, uint32_t len)
{
    static const char *const modes[] = {"nearest", "linear", "cubic", NULL};
    static const char *const transforms[] = {
        "half_pixel", "half_pixel_symmetric", "pytorch_half_pixel", "align_corners",
        "asymmetric", "tf_half_pixel_for_nn", "tf_crop_and_resize", NULL};
    static const char *const rounds[] = {"round_prefer_floor", "round_prefer_ceil", "floor", "ceil", NULL};
    static const char *const policies[] = {"stretch", "not_larger", "not_smaller", NULL};
    if (!one_of(c, n, "mode", modes) || !one_of(c, n, "coordinate_transformation_mode", transforms) ||
        !one_of(c, n, "nearest_mode", rounds) || !one_of(c, n, "keep_aspect_ratio_policy", policies))
        return false;
    if (strcmp(graph_attr_string(n, "coordinate_transformation_mode"), "tf_crop_and_resize") == 0 &&
        (!present(n, 1) || !dim_is(infer_in(n, 1)->shape.dims[0], 2 * (int64_t)len)))
        return infer_error(c, n, "tf_crop_and_resize needs a roi of %u numbers", 2 * len);
    for (uint32_t i = 2; i < 4; i++) {
        int64_t entries = 0;
        if (present(n, i) && dim_is_const(infer_in(n, i)->shape.dims[0], &entries) && entries && entries != len)
            return infer_error(c, n, "operand %u must have one entry for each of %u axes", i, len);
    }
    return true;
}

/* The scale of all axes by which constant sizes keep the proportions of x; 0: each axis has its own. */
static double common_scale(const graph_node *n, const tensor_data *sizes, uint32_t n_axes, const int64_t *axes)
{
    const char *policy = graph_attr_string(n, "keep_aspect_ratio_policy");
    const type *x = infer_in(n, 0);
    float common = 0;
    for (uint32_t i = 0; sizes && strcmp(policy, "stretch") != 0 && i < (uint32_t)sizes->count; i++) {
        int64_t a = n_axes ? axes[i] : i, extent = 0;
        a = a < 0 ? a + x->shape.rank : a;
        if (a < 0 || a >= x->shape.rank || !dim_is_const(x->shape.dims[a], &extent) || extent == 0)
            return 0;
        float scale = (float)tensor_get_i64(sizes, i) / (float)extent;
        bool first = i == 0, better = strcmp(policy, "not_larger") == 0 ? scale < common : scale > common;
        common = first || better ? scale : common;
    }
    return (double)common;
}

/* sizes, or floor(extent * scale), on `axes` (empty: all); ONNX Resize-18. f32 throughout, as onnxruntime has it. */
bool infer_resize(compiler *c, const graph_node *n, type *out)
{
    const type *x = infer_in(n, 0);
    const int64_t *axes = NULL;
    uint32_t n_axes = graph_attr_ints(n, "axes", &axes), len = n_axes ? n_axes : (uint32_t)x->shape.rank;
    const tensor_data *scales = present(n, 2) ? graph_constant(n->inputs[2]) : NULL,
                      *sizes = present(n, 3) ? graph_constant(n->inputs[3]) : NULL;
    const tensor_data *given = sizes ? sizes : scales;
    if (!resize_modes(c, n, len))
        return false;
    if (!given || given->count == 0)
        return moved_as_declared(c, n, false, "scales or sizes", out);
    if (given->count != (int64_t)len)
        return infer_error(c, n, "%lld entries for %u axes", (long long)given->count, len);
    dim d[TYPE_MAX_RANK];
    double common = common_scale(n, sizes, n_axes, axes);
    memcpy(d, x->shape.dims, (size_t)x->shape.rank * sizeof *d);
    for (uint32_t i = 0; i < len; i++) {
        int32_t a = (int32_t)i;
        int64_t extent = 0;
        if (n_axes && !infer_axis(c, n, axes[i], x->shape.rank, &a))
            return false;
        if (!dim_is_const(d[a], &extent))
            return moved_as_declared(c, n, false, "a resized axis", out);
        double v = sizes ? tensor_get_f64(sizes, i) : (double)((float)extent * (float)tensor_get_f64(scales, i));
        if (common > 0)
            v = floor((double)((float)extent * (float)common + 0.5f));
        if (!(v >= 0 && v < 2147483648.0))
            return infer_error(c, n, "extent %g on axis %d", v, a);
        d[a] = dim_const(c, (int64_t)v);
    }
    out[0] = type_tensor(x->dt, shape_make(c, (uint32_t)x->shape.rank, d));
    return true;
}

bool infer_grid_sample(compiler *c, const graph_node *n, type *out)
{
    const type *x = infer_in(n, 0), *grid = infer_in(n, 1);
    int32_t r = x->shape.rank;
    dim d[TYPE_MAX_RANK];
    static const char *const modes[] = {"linear", "bilinear", "nearest", "cubic", "bicubic", NULL};
    static const char *const paddings[] = {"zeros", "border", "reflection", NULL};
    if (!one_of(c, n, "mode", modes) || !one_of(c, n, "padding_mode", paddings))
        return false;
    if (r < 3 || grid->shape.rank != r || !dim_is(grid->shape.dims[r - 1], r - 2))
        return infer_error(c, n, "data of rank %d needs a grid of the same rank whose last extent is %d", r, r - 2);
    d[0] = x->shape.dims[0];
    d[1] = x->shape.dims[1];
    for (int32_t i = 2; i < r; i++)
        d[i] = grid->shape.dims[i - 1];
    out[0] = type_tensor(x->dt, shape_make(c, (uint32_t)r, d));
    return true;
}
