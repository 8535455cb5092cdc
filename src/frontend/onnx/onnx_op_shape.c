/* SPDX-License-Identifier: Apache-2.0 */
/* Importers of operators that change shapes: those that become a reshape, and old versions whose attributes later
 * became operands. An operand that is not constant stays one; where IR has no operand for it, the declared shape of the
 * result says what is made. */
#include "frontend/onnx/onnx_import.h"

#include <string.h>

#define MAX_INTS (2 * TYPE_MAX_RANK)

/* --- reshapes --- */

static bool finish_reshape(onnx_node *n, graph_value *x, uint32_t rank, const dim *d)
{
    (void)onnx_make_reshape(n, 0, x, rank, d);
    return !n->failed;
}

/* Axes that are known at run time only: the bytes do not move, and the declared shape says what is made. The program
 * checks that they are axes of extent 1 of the longer shape, without which it is the shorter. */
static bool reshape_to_declared(onnx_node *n, bool squeeze)
{
    const type *t = onnx_declared(n, 0);
    graph_value *x = onnx_in(n, 0), *axes = onnx_optional(n, 1);
    int64_t in[TYPE_MAX_RANK], out[TYPE_MAX_RANK], sets[ONNX_MAX_SETS];
    uint32_t a = onnx_rank(x), b = t ? (uint32_t)t->shape.rank : 0, rank = squeeze ? a : b, less = squeeze ? b : a;
    if (!t || !shape_get(t->shape, out) || !shape_get(x->type.shape, in) || rank > 8 || onnx_rank(axes) != 1)
        return onnx_fail(
            n, DIAG_UNSUPPORTED,
            "axes that are not constant need static shapes of 8 dimensions at most, and a declared result");
    uint32_t n_sets =
        less < rank ? onnx_axis_sets(rank, squeeze ? in : out, less, squeeze ? out : in, rank - less, false, true, sets)
                    : 0;
    if (n_sets == 0 || !dim_is(onnx_dim(n, axes, 0), rank - less))
        return onnx_fail(n, DIAG_TYPE, "no axes give the declared shape");
    x = onnx_expect(n, x, onnx_axes_as_bits(n, axes, rank), n_sets, 1, sets);
    return finish_reshape(n, x, b, t->shape.dims);
}

bool onnx_op_reshape_1(onnx_node *n)
{
    const int64_t *v = NULL;
    uint32_t len = onnx_attr_ints(n, "shape", &v);
    onnx_result(n, 0, ONNX_ARGS("reshape", 0, NULL, onnx_in(n, 0), onnx_const_ints(n, len, v)));
    return !n->failed;
}

bool onnx_op_flatten(onnx_node *n)
{
    graph_value *x = onnx_in(n, 0);
    uint32_t rank = onnx_rank(x);
    int64_t axis = onnx_attr_int(n, "axis", 1);
    uint32_t at = axis == (int64_t)rank ? rank : onnx_axis(n, axis, rank);
    dim d[2] = {dim_const(n->c, 1), dim_const(n->c, 1)};
    for (uint32_t i = 0; i < rank; i++)
        d[i >= at] = dim_mul(n->c, d[i >= at], onnx_dim(n, x, i));
    return finish_reshape(n, x, 2, d);
}

/* axes: an attribute until version 12, operand 1 from 13. false: not constant. */
static bool read_axes(onnx_node *n, int64_t *out, uint32_t *out_n)
{
    const int64_t *v = NULL;
    if (n->version >= 13)
        return onnx_ints_of(onnx_optional(n, 1), out, out_n);
    *out_n = onnx_attr_ints(n, "axes", &v);
    if (*out_n > MAX_INTS)
        return onnx_fail(n, DIAG_FORMAT, "too many axes");
    if (*out_n)
        memcpy(out, v, *out_n * sizeof *v);
    return true;
}

/* x, provided that the extent of axis i, which only the data tells, is not 1 in this run. */
static graph_value *expect_several(onnx_node *n, graph_value *x, uint32_t i)
{
    const attr part[2] = {attr_int(n->c, "start", i), attr_int(n->c, "end", i + 1)};
    const int64_t no = 0;
    graph_value *extent = onnx_emit(n, ONNX_ARGS("shape_of", 2, part, x));
    graph_value *is_one = onnx_binary(n, "equal", extent, onnx_const_int(n, DT_I64, 1));
    return onnx_expect(n, x, onnx_cast(n, is_one, DT_I64), 1, 1, &no);
}

/* Without axes every extent of 1 goes. Whether an open one is 1 decides the rank: one that inputs have must be known,
 * for a caller may well choose 1; one that is computed is taken for several, and the run ends where it is 1. */
static bool squeeze_ones(onnx_node *n, graph_value *x)
{
    dim d[TYPE_MAX_RANK];
    uint32_t rank = 0;
    for (uint32_t i = 0; i < onnx_rank(x) && !n->failed; i++) {
        dim e = onnx_dim(n, x, i);
        const bool open = !dim_is_const(e, &(int64_t){0}) && !dim_never_above(n->c, dim_const(n->c, 2), e);
        if (open && dim_is_fresh(e))
            x = expect_several(n, x, i);
        else if (open)
            (void)onnx_static_dim(n, x, i);
        if (!dim_is(e, 1))
            d[rank++] = e;
    }
    return finish_reshape(n, x, rank, d);
}

bool onnx_op_squeeze(onnx_node *n)
{
    graph_value *x = onnx_in(n, 0);
    int64_t axes[MAX_INTS];
    uint32_t count = 0, rank = onnx_rank(x), k = 0;
    bool gone[TYPE_MAX_RANK];
    dim d[TYPE_MAX_RANK];
    if (!(n->version >= 13 ? onnx_optional(n, 1) != NULL : onnx_has_attr(n, "axes")))
        return squeeze_ones(n, x);
    if (!read_axes(n, axes, &count))
        return !n->failed && reshape_to_declared(n, true);
    if (!onnx_axis_set(n, count, axes, rank, gone))
        return false;
    for (uint32_t i = 0; i < rank; i++) {
        int64_t e = 1;
        if (gone[i] && dim_is_const(onnx_dim(n, x, i), &e) && e != 1)
            return onnx_fail(n, DIAG_TYPE, "axis %u has extent %lld and cannot be squeezed", i, (long long)e);
        if (!gone[i])
            d[k++] = onnx_dim(n, x, i);
    }
    return finish_reshape(n, x, k, d);
}

bool onnx_op_unsqueeze(onnx_node *n)
{
    graph_value *x = onnx_in(n, 0);
    int64_t axes[MAX_INTS];
    uint32_t count = 0, from = 0;
    bool added[TYPE_MAX_RANK];
    dim d[TYPE_MAX_RANK];
    if (!read_axes(n, axes, &count))
        return !n->failed && reshape_to_declared(n, false);
    uint32_t rank = onnx_rank(x) + count;
    if (rank > TYPE_MAX_RANK)
        return onnx_fail(n, DIAG_UNSUPPORTED, "more than 16 dimensions");
    if (!onnx_axis_set(n, count, axes, rank, added))
        return false;
    for (uint32_t i = 0; i < rank; i++)
        d[i] = added[i] ? dim_const(n->c, 1) : onnx_dim(n, x, from++);
    return finish_reshape(n, x, rank, d);
}

/* --- constants --- */

static const tensor_data *list_constant(onnx_node *n)
{
    compiler *c = n->c;
    attr a;
    if (onnx_attr_convert(n, "value_ints", "value", ATTR_INTS, &a))
        return tensor_from_i64s(c, a.n, a.u.ints);
    if (!onnx_attr_convert(n, "value_floats", "value", ATTR_FLOATS, &a))
        return NULL;
    float *v = arena_array(&c->mem, float, a.n);
    for (uint32_t i = 0; i < a.n; i++)
        v[i] = (float)a.u.floats[i];
    return tensor_dense(c, DT_F32, 1, (int64_t[]){a.n}, v);
}

/* Sparse: values at positions, zero elsewhere. Positions count in the flattened tensor, or are one tuple a value. */
static bool sparse_position(const pb_sparse *s, const tensor_data *at, int64_t i, int64_t count, int64_t *out)
{
    int64_t p = at->rank == 2 ? 0 : tensor_get_i64(at, i);
    for (uint32_t k = 0; at->rank == 2 && k < s->dims.len; k++) {
        int64_t x = tensor_get_i64(at, i * s->dims.len + k);
        if (x < 0 || x >= s->dims.data[k])
            return false;
        p = p * s->dims.data[k] + x;
    }
    *out = p;
    return p >= 0 && p < count;
}

static const tensor_data *sparse_constant(onnx_node *n, const pb_sparse *s)
{
    const tensor_data *v = s->values ? onnx_tensor_read(n->im, s->values, n->loc) : NULL;
    const tensor_data *at = s->indices ? onnx_tensor_read(n->im, s->indices, n->loc) : NULL;
    int64_t count = 1, p = 0;
    bool ok = v && at && at->dt == DT_I64 && s->dims.len <= TYPE_MAX_RANK && v->rank == 1;
    for (uint32_t i = 0; ok && i < s->dims.len; i++)
        ok = s->dims.data[i] >= 0 && i64_mul(count, s->dims.data[i], &count);
    ok = ok && at->count == v->count * (at->rank == 2 ? (int64_t)s->dims.len : 1) && count <= 1 << 26;
    uint8_t *data = ok ? arena_try_alloc(&n->c->mem, (size_t)count * dtype_bytes(v->dt), 64) : NULL;
    for (int64_t i = 0; data && ok && i < v->count; i++) {
        ok = sparse_position(s, at, i, count, &p);
        if (ok)
            memcpy(data + (size_t)p * dtype_bytes(v->dt), tensor_element(v, i), dtype_bytes(v->dt));
    }
    if (ok && !data)
        return onnx_fail(n, DIAG_ENVIRONMENT, "no memory for the %lld elements of the value", (long long)count), NULL;
    if (!ok)
        return onnx_fail(n, DIAG_FORMAT, "the sparse value is not well formed"), NULL;
    return tensor_dense(n->c, v->dt, s->dims.len, s->dims.data, data);
}

/* Result 0 has the element type of the attribute `value`, where kernels have none of it. */
static bool set_element(onnx_node *n)
{
    const onnx_attr *a = onnx_attr_find(n, "value");
    dtype dt = DT_NONE;
    if (a && a->pb->t && dtype_from_onnx(a->pb->t->data_type, &dt) && n->n_out)
        onnx_set_small(n->im, n->out[0], dt);
    return true;
}

/* The strings that the node holds, as an index into them (onnx_labels.c); NULL: it holds numbers. */
static const tensor_data *strings_of_node(onnx_node *n, const char *const **out)
{
    const onnx_attr *a = onnx_attr_find(n, "value"), *one = onnx_attr_find(n, "value_string");
    const onnx_attr *list = one ? one : onnx_attr_find(n, "value_strings");
    dtype dt = DT_NONE;
    if (a && a->pb->t && dtype_from_onnx(a->pb->t->data_type, &dt) && dt == DT_STRING)
        return onnx_read_strings(n->im, n->out_names[0] ? n->out_names[0] : "", a->pb->t, out);
    if (!list)
        return NULL;
    pb_tensor t = {.data_type = dtype_onnx_code(DT_STRING)};
    int64_t count = list->pb->strings.len;
    t.string_data = list->pb->strings;
    if (one)
        vec_push(&n->c->mem, &t.string_data, one->pb->s);
    else
        vec_push(&n->c->mem, &t.dims, count);
    return onnx_read_strings(n->im, n->out_names[0] ? n->out_names[0] : "", &t, out);
}

bool onnx_op_constant(onnx_node *n)
{
    const onnx_attr *sparse = onnx_attr_find(n, "sparse_value");
    const char *const *strings = NULL;
    const tensor_data *t = strings_of_node(n, &strings);
    if (strings && (!t || !onnx_result_constant(n, 0, t)))
        return false;
    if (strings && n->n_out) {
        onnx_set_strings(n->im, n->out[0], (uint32_t)t->count, strings);
        return true;
    }
    if (sparse && sparse->pb->sparse_tensor)
        t = sparse_constant(n, sparse->pb->sparse_tensor);
    else if (onnx_has_attr(n, "value_int"))
        t = tensor_scalar_i64(n->c, DT_I64, onnx_attr_int(n, "value_int", 0));
    else if (onnx_has_attr(n, "value_float"))
        t = tensor_scalar_f64(n->c, DT_F32, onnx_attr_float(n, "value_float", 0));
    else if (onnx_has_attr(n, "value"))
        t = onnx_attr_tensor(n, "value");
    else
        t = list_constant(n);
    if (!t && !n->failed)
        return onnx_fail(n, DIAG_FORMAT, "a constant without a value");
    return onnx_result_constant(n, 0, t) && set_element(n);
}

/* A constant shape gives one element that stands for all: nothing of that size is ever made. */
bool onnx_op_constant_of_shape(onnx_node *n)
{
    int64_t d[MAX_INTS];
    uint32_t rank = 0;
    uint8_t zero[4] = {0};
    const tensor_data *v = onnx_attr_tensor(n, "value");
    if (n->failed)
        return false;
    if (v && v->count != 1)
        return onnx_fail(n, DIAG_FORMAT, "the value must have one element");
    if (!v)
        v = tensor_splat(n->c, DT_F32, 1, (int64_t[]){1}, zero);
    int64_t count = 1;
    bool fits = onnx_ints_of(onnx_in(n, 0), d, &rank) && rank <= TYPE_MAX_RANK;
    for (uint32_t i = 0; fits && i < rank; i++)
        fits = d[i] >= 0 && i64_mul(count, d[i], &count);
    if (fits)
        return onnx_result_constant(n, 0, tensor_splat(n->c, v->dt, rank, d, tensor_element(v, 0))) && set_element(n);
    attr a = attr_tensor(n->c, "value", v);
    onnx_result(n, 0, ONNX_ARGS("full", 1, &a, onnx_in(n, 0)));
    return !n->failed && set_element(n);
}

/* --- pieces --- */

bool onnx_op_concat(onnx_node *n)
{
    if (n->version >= 4 && !onnx_has_attr(n, "axis"))
        return onnx_fail(n, DIAG_FORMAT, "attribute 'axis' is missing");
    attr a = attr_int(n->c, "axis", onnx_attr_int(n, "axis", 1));
    onnx_result(n, 0, (onnx_args){"concatenate", n->n_in, n->in, 1, &a});
    return !n->failed;
}

/* One kernel has so many results at most; each of more is a slice. */
#define MOST_SPLIT 64u

/* Extents of the parts along the axis: as given, or equal ones, the last of them smaller. false: not known. */
static bool split_extents(onnx_node *n, const graph_value *given, int64_t extent, int64_t *out)
{
    const tensor_data *t = graph_constant(given);
    if (given && (!t || t->count != (int64_t)n->n_out || !dtype_is_int(t->dt)))
        return false;
    int64_t each = (extent + n->n_out - 1) / n->n_out, left = extent;
    if (!given && n->version < 18 && extent % n->n_out != 0)
        return false;
    for (uint32_t i = 0; i < n->n_out; i++) {
        out[i] = t ? tensor_get_i64(t, i) : each < left ? each : left;
        if (out[i] < 0 || out[i] > left)
            return false;
        left -= out[i];
    }
    return left == 0;
}

/* false: for the operator itself, which also finds what is wrong. */
static bool split_by_slices(onnx_node *n, const graph_value *given, int64_t raw_axis)
{
    graph_value *x = onnx_in(n, 0);
    int64_t extent, at = 0, axis = raw_axis < 0 ? raw_axis + (int64_t)onnx_rank(x) : raw_axis;
    int64_t *extents = arena_array(&n->c->mem, int64_t, n->n_out);
    if (n->n_out <= MOST_SPLIT || axis < 0 || axis >= (int64_t)onnx_rank(x) ||
        !dim_is_const(onnx_dim(n, x, (uint32_t)axis), &extent) || !split_extents(n, given, extent, extents))
        return false;
    graph_value *axes = onnx_const_ints(n, 1, &axis);
    for (uint32_t i = 0; i < n->n_out && !n->failed; at += extents[i++]) {
        int64_t end = at + extents[i];
        graph_value *from = onnx_const_ints(n, 1, &at), *to = onnx_const_ints(n, 1, &end);
        onnx_result(n, i, ONNX_ARGS("strided_slice", 0, NULL, x, from, to, axes));
    }
    return true;
}

bool onnx_op_split(onnx_node *n)
{
    const int64_t *v = NULL;
    graph_value *in[2] = {onnx_in(n, 0), onnx_optional(n, 1)};
    uint32_t len = n->version < 13 ? onnx_attr_ints(n, "split", &v) : 0;
    attr a = attr_int(n->c, "axis", onnx_attr_int(n, "axis", 0));
    int64_t parts = onnx_attr_int(n, "num_outputs", n->n_out);
    if (parts != n->n_out)
        return onnx_fail(n, DIAG_FORMAT, "num_outputs is %lld, but the node has %u results", (long long)parts,
                         n->n_out);
    if (len)
        in[1] = onnx_const_ints(n, len, v);
    if (!n->failed && split_by_slices(n, in[1], a.u.i))
        return !n->failed;
    return onnx_results(n, (onnx_args){"split", in[1] ? 2u : 1u, in, 1, &a}, n->n_out);
}

bool onnx_op_slice_1(onnx_node *n)
{
    const int64_t *from = NULL, *to = NULL, *axes = NULL;
    uint32_t nf = onnx_attr_ints(n, "starts", &from), nt = onnx_attr_ints(n, "ends", &to),
             na = onnx_attr_ints(n, "axes", &axes);
    if (!n->failed && (nf != nt || (na && na != nf)))
        return onnx_fail(n, DIAG_FORMAT, "starts, ends and axes differ in length");
    graph_value *a = na ? onnx_const_ints(n, na, axes) : NULL;
    graph_value *f = onnx_const_ints(n, nf, from), *t = onnx_const_ints(n, nt, to);
    onnx_result(n, 0, ONNX_ARGS("strided_slice", 0, NULL, onnx_in(n, 0), f, t, a));
    return !n->failed;
}

/* How many starts, ends, axes and steps there are must be known. One that may be none is one: the run compares. */
bool onnx_op_slice(onnx_node *n)
{
    for (uint32_t i = 1; i < n->n_in && !n->failed; i++) {
        const attr none[2] = {attr_int(n->c, "start", 0), attr_int(n->c, "end", 1)};
        const int64_t one = 1;
        graph_value *v = onnx_optional(n, i);
        if (!v || onnx_rank(v) != 1 || dim_bound(onnx_dim(n, v, 0)) != 1 || dim_is(onnx_dim(n, v, 0), 1))
            continue;
        graph_value *count = onnx_emit(n, ONNX_ARGS("shape_of", 2, none, v));
        n->in[i] = onnx_reshape_ints(n, onnx_expect(n, v, count, 1, 1, &one), 1, &one);
    }
    return !n->failed && onnx_op_direct(n);
}

/* Version 1 calls the attribute paddings, version 2 pads. */
bool onnx_op_pad_1(onnx_node *n)
{
    const int64_t *v = NULL;
    graph_value *x = onnx_in(n, 0);
    uint32_t len = onnx_attr_ints(n, onnx_has_attr(n, "pads") ? "pads" : "paddings", &v);
    attr mode = attr_string(n->c, "mode", onnx_attr_string(n, "mode", "constant"));
    graph_value *value = onnx_const_like(n, x, onnx_attr_float(n, "value", 0));
    onnx_result(n, 0, ONNX_ARGS("nn.pad", 1, &mode, x, onnx_const_ints(n, len, v), value));
    return !n->failed;
}

/* Pads as one row of a matrix are what onnxruntime takes too. */
bool onnx_op_pad(onnx_node *n)
{
    graph_value *in[4] = {onnx_in(n, 0), onnx_in(n, 1), onnx_optional(n, 2), onnx_optional(n, 3)};
    uint32_t n_in = in[3] ? 4 : in[2] ? 3 : 2;
    attr mode = attr_string(n->c, "mode", onnx_attr_string(n, "mode", "constant"));
    if (onnx_rank(in[1]) == 2 && dim_is(onnx_dim(n, in[1], 0), 1)) {
        dim entries = onnx_dim(n, in[1], 1);
        in[1] = onnx_reshape(n, in[1], 1, &entries);
    }
    const dtype small = onnx_small_of(n->im, in[0]);
    if (in[2] && onnx_small_of(n->im, in[2]) != small)
        return onnx_fail(n, DIAG_TYPE, "constant_value is not of the type of the input");
    graph_value *y = onnx_result(n, 0, (onnx_args){"nn.pad", n_in, in, 1, &mode});
    if (!n->failed && small != DT_NONE)
        onnx_set_small(n->im, y, small);
    return !n->failed;
}

/* One axis, so many times. */
bool onnx_op_tile_1(onnx_node *n)
{
    int64_t times[MAX_INTS], axis[MAX_INTS], r[TYPE_MAX_RANK];
    uint32_t nt = 0, na = 0, rank = onnx_rank(onnx_in(n, 0));
    if (!onnx_need_ints(n, onnx_in(n, 1), "tiles", times, &nt) || !onnx_need_ints(n, onnx_in(n, 2), "axis", axis, &na))
        return false;
    uint32_t at = onnx_axis(n, na ? axis[0] : 0, rank);
    for (uint32_t i = 0; i < rank; i++)
        r[i] = i == at && nt ? times[0] : 1;
    onnx_result(n, 0, ONNX_ARGS("tile", 0, NULL, onnx_in(n, 0), onnx_const_ints(n, rank, r)));
    return !n->failed;
}

/* --- centre crop and pad --- */

/* Extents wanted at `axes`; a shape that is not constant is taken from the declared result. */
static bool read_target(onnx_node *n, uint32_t rank, uint32_t *out_n, int64_t *axes, int64_t *want)
{
    const int64_t *v = NULL;
    uint32_t given = onnx_attr_ints(n, "axes", &v), len = 0;
    *out_n = given ? given : rank;
    if (*out_n > rank)
        return onnx_fail(n, DIAG_FORMAT, "more axes than dimensions");
    for (uint32_t i = 0; i < *out_n; i++)
        axes[i] = given ? onnx_axis(n, v[i], rank) : i;
    if (onnx_ints_of(onnx_in(n, 1), want, &len))
        return len == *out_n || onnx_fail(n, DIAG_FORMAT, "shape has %u entries for %u axes", len, *out_n);
    const type *t = onnx_declared(n, 0);
    if (!t || (uint32_t)t->shape.rank != rank)
        return onnx_fail(n, DIAG_UNSUPPORTED, "a shape that is not constant needs a declared shape of the result");
    for (uint32_t i = 0; i < *out_n; i++)
        dim_is_const(t->shape.dims[axes[i]], &want[i]);
    return true;
}

bool onnx_op_center_crop_pad(onnx_node *n)
{
    graph_value *x = onnx_in(n, 0);
    int64_t axes[MAX_INTS], want[MAX_INTS], from[TYPE_MAX_RANK], to[TYPE_MAX_RANK], pads[MAX_INTS];
    uint32_t count = 0, rank = onnx_rank(x);
    bool crop = false, pad = false;
    if (!read_target(n, rank, &count, axes, want))
        return false;
    if (!graph_constant(onnx_in(n, 1)))
        x = onnx_expect(n, x, onnx_in(n, 1), 1, count, want);
    for (uint32_t i = 0; i < count; i++) {
        int64_t have = onnx_static_dim(n, x, (uint32_t)axes[i]), more = want[i] > have ? want[i] - have : 0;
        from[i] = have > want[i] ? (have - want[i]) / 2 : 0;
        to[i] = have > want[i] ? from[i] + want[i] : have;
        pads[i] = more / 2;
        pads[count + i] = more - more / 2;
        crop |= have > want[i];
        pad |= more > 0;
    }
    graph_value *ax = onnx_const_ints(n, count, axes);
    if (crop) {
        graph_value *f = onnx_const_ints(n, count, from), *t = onnx_const_ints(n, count, to);
        onnx_args a = ONNX_ARGS("strided_slice", 0, NULL, x, f, t, ax);
        x = pad ? onnx_emit(n, a) : onnx_result(n, 0, a);
    }
    if (pad)
        onnx_result(n, 0, ONNX_ARGS("nn.pad", 0, NULL, x, onnx_const_ints(n, 2 * count, pads), NULL, ax));
    else if (!crop)
        return onnx_alias(n, 0, x);
    return !n->failed;
}
