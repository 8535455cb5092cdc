/* SPDX-License-Identifier: Apache-2.0 */
/* Type relations of operators that change shapes and move data (ONNX Reshape, Transpose, Expand, Concat, Gather*,
 * Scatter*, Shape, ...). Operands that give shapes may be computed from shapes; where nothing is known of them, the
 * result's declared shape is taken as a checked assertion, and where there is none, its extents are symbols. */
#include "graph/op/shape.h"

#include <string.h>

/* The declared shape where it must hold as many elements as the data. */
static bool reshaped_as_declared(compiler *c, const graph_node *n, type *out)
{
    const type *x = infer_in(n, 0);
    if (!infer_as_declared(c, n, x->dt, -1, "the shape operand", out))
        return false;
    int64_t a = shape_count(x->shape), b = shape_count(out->shape);
    if (a >= 0 && shape_is_static(out->shape) && a != b)
        return infer_error(c, n, "the declared result has %lld elements, the data %lld", (long long)b, (long long)a);
    return infer_entries(c, n, 1, out->shape.rank);
}

/* The declared shape where the data is broadcast to it. */
static bool broadcast_as_declared(compiler *c, const graph_node *n, type *out)
{
    const type *x = infer_in(n, 0);
    if (!infer_as_declared(c, n, x->dt, -1, "the shape operand", out))
        return false;
    int32_t rank = out->shape.rank;
    int64_t len = 0;
    if (!infer_counted(c, n, 1))
        return false;
    if (infer_has(n, 1) && dim_is_const(infer_in(n, 1)->shape.dims[0], &len) && (len > rank || rank > x->shape.rank) &&
        !infer_entries(c, n, 1, rank))
        return false;
    return infer_stretched(c, n, 0, out->shape);
}

/* Whether data decides a part of d that s does not have: a later pass has found the extent that it stood for. */
static bool is_stale(dim d, shape s)
{
    const dim *parts = NULL;
    uint32_t count = dim_operands(d, &parts);
    bool found = dim_is_fresh(d);
    for (int32_t i = 0; found && i < s.rank; i++)
        found = !dim_mentions(s.dims[i], dim_symbol_name(d));
    for (uint32_t i = 0; i < count && !found; i++)
        found = is_stale(parts[i], s);
    return found;
}

/* The extents of s but those that are 1. */
static int32_t without_ones(shape s, dim *out)
{
    int32_t n = 0;
    for (int32_t i = 0; i < s.rank; i++)
        if (!dim_is(s.dims[i], 1))
            out[n++] = s.dims[i];
    return n;
}

/* Extents of *out that are stale become the data's: in order, where the view adds and takes away ones alone; else the
 * only one is what the others leave. */
static void renew(compiler *c, shape x, shape *out)
{
    dim d[TYPE_MAX_RANK], a[TYPE_MAX_RANK], b[TYPE_MAX_RANK], known = dim_const(c, 1);
    int32_t stale = 0, at = 0, n = without_ones(x, a);
    bool same = n == without_ones(*out, b);
    for (int32_t i = 0; i < n && same; i++)
        same = dim_equal(a[i], b[i]) || is_stale(b[i], x);
    for (int32_t i = 0, k = 0; i < out->rank; i++) {
        d[i] = out->dims[i];
        if (is_stale(d[i], x)) {
            stale++;
            at = i;
        } else
            known = dim_mul(c, known, d[i]);
        if (same && !dim_is(d[i], 1))
            d[i] = a[k++];
    }
    dim all = shape_elements(c, x);
    if (!same && stale == 1 && dim_is(dim_mod(c, all, known), 0))
        d[at] = dim_divide_extents(c, all, known);
    *out = shape_make(c, (uint32_t)out->rank, d);
}

/* Without the operand: the declared shape, which surely has the data's elements. It was right when it was declared;
 * where a pass has since found an extent of the data, the shape is declared anew. */
static bool reshaped_silently(compiler *c, const graph_node *n, type *out)
{
    const type *x = infer_in(n, 0);
    if (!infer_as_declared(c, n, x->dt, -1, "the shape operand", out))
        return false;
    dim all = shape_elements(c, x->shape);
    if (dim_equal(all, shape_elements(c, out->shape)))
        return true;
    renew(c, x->shape, &out->shape);
    if (!dim_equal(all, shape_elements(c, out->shape)))
        return infer_error(c, n, "without a shape operand the declared shape must have the data's elements");
    n->outputs[0]->declared.shape = out->shape;
    return true;
}

/* What each entry says of the extent; NULL: nothing, or that it is what is left (*left: the entry that is -1). */
static bool reshape_extents(compiler *c, const graph_node *n, const shape_value *want, dim *d, int32_t *left)
{
    shape x = infer_in(n, 0)->shape;
    bool allowzero = graph_attr_int(n, "allowzero") != 0;
    for (uint32_t i = 0; i < want->n; i++) {
        int64_t v = 0;
        d[i] = want->at[i];
        if (!d[i] || !dim_is_const(d[i], &v))
            continue;
        if (v == -1 && *left >= 0)
            return infer_error(c, n, "two entries of the shape are -1");
        if (v < -1 || (v == 0 && !allowzero && (int32_t)i >= x.rank))
            return infer_error(c, n, "entry %u of the shape is %lld", i, (long long)v);
        if (v == -1)
            *left = (int32_t)i;
        d[i] = v == -1 ? NULL : v == 0 && !allowzero ? x.dims[i] : d[i];
    }
    return true;
}

bool infer_reshape(compiler *c, const graph_node *n, type *out)
{
    const type *x = infer_in(n, 0);
    shape_value want;
    if (!infer_has(n, 1))
        return reshaped_silently(c, n, out);
    bool counted = infer_elements(c, n, 1, &want);
    if (!counted || (infer_declared(n, 0) && !infer_knows_any(&want)))
        return reshaped_as_declared(c, n, out);
    dim d[SHAPE_VALUE_MOST], known = dim_const(c, 1), all = shape_elements(c, x->shape);
    int32_t left = -1, open = 0, rank = (int32_t)want.n;
    if (!reshape_extents(c, n, &want, d, &left))
        return false;
    for (int32_t i = 0; i < rank; i++) {
        open += d[i] == NULL;
        known = d[i] ? dim_mul(c, known, d[i]) : known;
    }
    bool rest = open == 1 && (left >= 0 || dim_is(dim_mod(c, all, known), 0));
    for (int32_t i = 0; i < rank; i++) {
        if (!d[i] && rest)
            d[i] = dim_is(known, 0) ? dim_const(c, 0) : dim_divide_extents(c, all, known);
        else if (!d[i])
            d[i] = infer_open(c, n, 0, rank, i, "reshape", dim_bound(all));
    }
    shape s = shape_make(c, want.n, d);
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

/* The extent of an axis that is x (NULL: the data has no such axis) where the operand says `want` (NULL: not known). */
static dim broadcast_extent(compiler *c, const graph_node *n, int32_t rank, int32_t axis, dim x, dim want)
{
    int64_t v = 0;
    if (!want && x && dim_is_const(x, &v) && v != 1)
        return x;
    return want ? want : infer_open(c, n, 0, rank, axis, "expand", -1);
}

bool infer_broadcast_to(compiler *c, const graph_node *n, type *out)
{
    const type *x = infer_in(n, 0);
    shape_value want;
    shape s;
    if (!infer_elements(c, n, 1, &want) || (infer_declared(n, 0) && !infer_knows_any(&want)))
        return broadcast_as_declared(c, n, out);
    if (want.n > TYPE_MAX_RANK)
        return infer_error(c, n, "result of rank %u; at most %u is supported", want.n, TYPE_MAX_RANK);
    dim d[TYPE_MAX_RANK];
    int32_t len = (int32_t)want.n, rank = len > x->shape.rank ? len : x->shape.rank;
    bool open[TYPE_MAX_RANK] = {false};
    for (int32_t i = 0; i < len; i++) {
        int64_t v = 0;
        int32_t axis = rank - len + i, at = axis - (rank - x->shape.rank);
        if (want.at[i] && dim_is_const(want.at[i], &v) && v < 0)
            return infer_error(c, n, "entry %d of the shape is %lld", i, (long long)v);
        d[i] = broadcast_extent(c, n, rank, axis, at < 0 ? NULL : x->shape.dims[at], want.at[i]);
        open[axis] = !want.at[i];
    }
    type to = type_tensor(x->dt, shape_make(c, want.n, d));
    if (!shape_broadcast(c, x->shape, to.shape, &s))
        return infer_no_broadcast_to(c, n, x, &to);
    dim e[TYPE_MAX_RANK];
    for (int32_t i = 0; i < rank; i++) /* what the entry will say is the extent itself */
        e[i] = open[i] ? d[i - (rank - len)] : s.dims[i];
    out[0] = type_tensor(x->dt, shape_make(c, (uint32_t)rank, e));
    infer_leads_to(c, x->shape, out[0].shape);
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
            if (k == axis)
                d[k] = dim_add(c, d[k], t->shape.dims[k]);
            else if (!infer_extents(c, t->shape.dims[k], EXTENTS_EQUAL, d[k], "the operands"))
                return infer_error(c, n, "operand %u has extent %lld on axis %d, not %lld", i,
                                   (long long)dim_bound(t->shape.dims[k]), k, (long long)dim_bound(d[k]));
        }
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
        const dim have = idx->shape.dims[i], most = x->shape.dims[i];
        if ((i != axis || dim_is(most, 0)) && !infer_extents(c, have, EXTENTS_WITHIN, most, "indices and data"))
            return infer_error(c, n, "indices have extent %lld on axis %d, the data %lld", (long long)dim_bound(have),
                               i, (long long)dim_bound(most));
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
        const dim have = idx->shape.dims[i], want = x->shape.dims[i];
        if (!infer_extents(c, have, EXTENTS_EQUAL, want, "data and indices"))
            return infer_error(c, n, "indices have extent %lld on batch axis %d, the data %lld",
                               (long long)dim_bound(have), i, (long long)dim_bound(want));
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
static bool updates_fit(compiler *c, const graph_node *n, bool elements, int32_t axis)
{
    shape x = infer_in(n, 0)->shape, ix = infer_in(n, 1)->shape, u = infer_in(n, 2)->shape;
    int64_t depth = 0;
    if (!elements && (!dim_is_const(ix.dims[ix.rank - 1], &depth) || depth < 0 || depth > x.rank))
        return false;
    int32_t lead = elements ? ix.rank : ix.rank - 1;
    if (u.rank != (elements ? x.rank : lead + x.rank - (int32_t)depth) || (elements && ix.rank != x.rank))
        return false;
    for (int32_t i = 0; i < u.rank; i++) {
        dim want = i < lead ? ix.dims[i] : x.dims[i - lead + (int32_t)depth];
        if (!infer_extents(c, u.dims[i], elements ? EXTENTS_WITHIN : EXTENTS_EQUAL, want, "updates and indices"))
            return false;
        if (elements && i != axis && !infer_extents(c, u.dims[i], EXTENTS_WITHIN, x.dims[i], "updates and data"))
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
    if (!updates_fit(c, n, elements, axis))
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
        const dim have = u->shape.dims[i], want = x->shape.dims[i];
        if (!infer_extents(c, have, i == axis ? EXTENTS_WITHIN : EXTENTS_EQUAL, want, "update and cache"))
            return infer_error(c, n, "the update has extent %lld on axis %d, the cache %lld",
                               (long long)dim_bound(have), i, (long long)dim_bound(want));
    }
    if (infer_has(n, 2) && !infer_extents(c, infer_in(n, 2)->shape.dims[0], EXTENTS_EQUAL, x->shape.dims[0],
                                          "caches and first positions"))
        return infer_error(c, n, "there must be one first position for each of %lld caches",
                           (long long)dim_bound(x->shape.dims[0]));
    return infer_same(c, n, out);
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
    shape_value want;
    if (!infer_elements(c, n, 0, &want) || (infer_declared(n, 0) && !infer_knows_any(&want)))
        return infer_as_declared(c, n, dt, -1, "the shape operand", out) && infer_entries(c, n, 0, out->shape.rank);
    if (want.n > TYPE_MAX_RANK)
        return infer_error(c, n, "result of rank %u; at most %u is supported", want.n, TYPE_MAX_RANK);
    for (uint32_t i = 0; i < want.n; i++) {
        int64_t v = 0;
        if (!want.at[i])
            want.at[i] = infer_open(c, n, 0, (int32_t)want.n, (int32_t)i, "full", -1);
        if (dim_is_const(want.at[i], &v) && v < 0)
            return infer_error(c, n, "extent %lld", (long long)v);
    }
    out[0] = type_tensor(dt, shape_make(c, want.n, want.at));
    return true;
}

/* The number of steps from start towards limit; NULL: not known. */
static dim range_length(compiler *c, const graph_node *n)
{
    shape_value start, limit, delta;
    int64_t by = 0;
    if (!infer_elements(c, n, 0, &start) || !infer_elements(c, n, 1, &limit) || !infer_elements(c, n, 2, &delta) ||
        !start.at[0] || !limit.at[0] || !delta.at[0] || !dim_is_const(delta.at[0], &by) || by == 0 || by == INT64_MIN)
        return NULL;
    dim way = by > 0 ? dim_sub(c, limit.at[0], start.at[0]) : dim_sub(c, start.at[0], limit.at[0]);
    return dim_max(c, dim_const(c, 0), dim_ceildiv(c, way, dim_const(c, by > 0 ? by : -by)));
}

bool infer_arange(compiler *c, const graph_node *n, type *out)
{
    const tensor_data *s = graph_constant(n->inputs[0]), *e = graph_constant(n->inputs[1]),
                      *d = graph_constant(n->inputs[2]);
    dtype dt = infer_in(n, 0)->dt;
    if (!s || !e || !d) {
        const type *dec = infer_declared(n, 0);
        dim steps = range_length(c, n);
        if (dec && dec->shape.rank != 1)
            return infer_error(c, n, "the result is declared with rank %d, not 1", dec->shape.rank);
        steps = steps ? steps : infer_open(c, n, 0, 1, 0, "range", -1);
        out[0] = type_tensor(dt, shape_make(c, 1, &steps));
        return true;
    }
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
    int32_t rank = idx->shape.rank + 1;
    shape_value computed;
    const type *dec = infer_declared(n, 0);
    if (!known && dec && dec->shape.rank != rank)
        return infer_error(c, n, "the result is declared with rank %d, not %d", dec->shape.rank, rank);
    dim wide = known ? dim_const(c, tensor_get_i64(depth, 0)) : NULL;
    if (!wide && infer_elements(c, n, 1, &computed))
        wide = computed.at[0];
    if (!wide)
        wide = infer_open(c, n, 0, rank, axis, "depth", -1);
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

/* DCR: the place in the block is the outer part of a channel's number; CRD: the inner part. */
static bool block_mode_is_known(compiler *c, const graph_node *n)
{
    const char *mode = graph_attr_string(n, "mode");
    return strcmp(mode, "DCR") == 0 || strcmp(mode, "CRD") == 0 ||
           infer_error(c, n, "unknown mode '%s'; DCR and CRD are supported", mode);
}

bool infer_depth_to_space(compiler *c, const graph_node *n, type *out)
{
    const type *x = infer_in(n, 0);
    int64_t b = graph_attr_int(n, "block_size"), ch = 0;
    if (!block_mode_is_known(c, n))
        return false;
    (void)dim_is_const(x->shape.dims[1], &ch);
    if (b < 1 || b > MAX_BLOCK ||
        !infer_extents(c, x->shape.dims[1], EXTENTS_MULTIPLE, dim_const(c, b * b), "channels and blocks"))
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
    if (!block_mode_is_known(c, n))
        return false;
    (void)dim_is_const(x->shape.dims[2], &h);
    (void)dim_is_const(x->shape.dims[3], &w);
    if (b < 1 || b > MAX_BLOCK ||
        !infer_extents(c, x->shape.dims[2], EXTENTS_MULTIPLE, dim_const(c, b), "rows and blocks") ||
        !infer_extents(c, x->shape.dims[3], EXTENTS_MULTIPLE, dim_const(c, b), "columns and blocks"))
        return infer_error(c, n, "%lld x %lld elements, block size %lld", (long long)h, (long long)w, (long long)b);
    dim k = dim_const(c, b), d[4] = {x->shape.dims[0], dim_mul(c, x->shape.dims[1], dim_mul(c, k, k)),
                                     dim_floordiv(c, x->shape.dims[2], k), dim_floordiv(c, x->shape.dims[3], k)};
    out[0] = type_tensor(x->dt, shape_make(c, 4, d));
    return true;
}

bool infer_sliding_window(compiler *c, const graph_node *n, type *out)
{
    const type *x = infer_in(n, 0);
    const int64_t *window = NULL, *strides = NULL;
    uint32_t count = graph_attr_ints(n, "window_shape", &window);
    int32_t axis = 0;
    dim d[TYPE_MAX_RANK];
    if (!infer_axis(c, n, graph_attr_int(n, "axis"), x->shape.rank, &axis))
        return false;
    if (count != (uint32_t)(x->shape.rank - axis) || graph_attr_ints(n, "strides", &strides) != count)
        return infer_error(c, n, "window_shape and strides must have a number for each axis from %d on", axis);
    if ((uint32_t)x->shape.rank + count > TYPE_MAX_RANK)
        return infer_error(c, n, "the result would have more than %d dimensions", TYPE_MAX_RANK);
    for (int32_t i = 0; i < axis; i++)
        d[i] = x->shape.dims[i];
    for (uint32_t i = 0; i < count; i++) {
        dim whole = x->shape.dims[axis + (int32_t)i], size = dim_const(c, window[i]);
        int64_t extent = 0;
        if (window[i] < 1 || strides[i] < 1 || (dim_is_const(whole, &extent) && extent < window[i]))
            return infer_error(c, n, "no window of %lld every %lld elements along axis %d", (long long)window[i],
                               (long long)strides[i], axis + (int32_t)i);
        d[axis + (int32_t)i] = dim_add(c, dim_floordiv(c, dim_sub(c, whole, size), dim_const(c, strides[i])),
                                       dim_const(c, 1));
        d[x->shape.rank + (int32_t)i] = size;
    }
    out[0] = type_tensor(x->dt, shape_make(c, (uint32_t)x->shape.rank + count, d));
    return true;
}

/* reverse_sequence: one length for each entry of the batch axis. */
bool infer_same1(compiler *c, const graph_node *n, type *out)
{
    const type *x = infer_in(n, 0), *len = infer_in(n, 1);
    const int64_t axis = graph_attr_int(n, "batch_axis");
    if (axis < 0 || axis >= x->shape.rank ||
        !infer_extents(c, len->shape.dims[0], EXTENTS_EQUAL, x->shape.dims[axis], "sequences and lengths"))
        return infer_error(c, n, "lengths must be one for each entry of the batch axis");
    return infer_same(c, n, out);
}

bool infer_col2im(compiler *c, const graph_node *n, type *out)
{
    const type *x = infer_in(n, 0);
    int64_t image[TYPE_MAX_RANK], block[TYPE_MAX_RANK], k = 1;
    uint32_t len = 0, n_block = 0;
    if (!infer_ints(n, 1, image, &len) || !infer_ints(n, 2, block, &n_block))
        return infer_as_declared(c, n, x->dt, -1, "image_shape or block_shape", out) &&
               infer_entries(c, n, 1, out->shape.rank - 2) && infer_entries(c, n, 2, out->shape.rank - 2);
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
