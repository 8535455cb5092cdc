/* SPDX-License-Identifier: Apache-2.0 */
/* Importers of Resize, Upsample, GridSample and AffineGrid through their versions. */
#include "frontend/onnx/onnx_import.h"

#include <string.h>

/* From 11 to 12 an operand of no elements means that it is left out. */
static graph_value *drop_empty(graph_value *v)
{
    return v && shape_count(v->type.shape) == 0 ? NULL : v;
}

bool onnx_op_resize(onnx_node *n)
{
    const graph_op *op = graph_find_op(n->c, "resize");
    attr *a = arena_array(&n->c->mem, attr, op->n_attrs + 1);
    uint32_t count = onnx_row_attrs(n, n->row->attrs, op, a);
    graph_value *in[4] = {onnx_in(n, 0), drop_empty(onnx_optional(n, 1)), drop_empty(onnx_optional(n, 2)),
                          drop_empty(onnx_optional(n, 3))};
    if (!in[2] && !in[3])
        return onnx_fail(n, DIAG_FORMAT, "neither scales nor sizes are given");
    onnx_result(n, 0, (onnx_args){"resize", 4, in, count, a});
    return !n->failed;
}

/* Before version 11 coordinates were scaled without an offset and rounded down. */
static bool resize_old(onnx_node *n, const char *mode, graph_value *scales)
{
    bool linear = strcmp(mode, "linear") == 0 || strcmp(mode, "bilinear") == 0;
    attr a[3] = {attr_string(n->c, "mode", linear ? "linear" : mode),
                 attr_string(n->c, "coordinate_transformation_mode", "asymmetric"),
                 attr_string(n->c, "nearest_mode", "floor")};
    graph_value *in[3] = {onnx_in(n, 0), NULL, scales};
    onnx_result(n, 0, (onnx_args){"resize", 3, in, 3, a});
    return !n->failed;
}

bool onnx_op_resize_10(onnx_node *n)
{
    return resize_old(n, onnx_attr_string(n, "mode", "nearest"), onnx_in(n, 1));
}

static graph_value *float_list(onnx_node *n, uint32_t count, const double *v)
{
    float *f = arena_array(&n->c->mem, float, count);
    for (uint32_t i = 0; i < count; i++)
        f[i] = (float)v[i];
    return onnx_constant(n, tensor_dense(n->c, DT_F32, 1, (int64_t[]){count}, f));
}

bool onnx_op_upsample(onnx_node *n)
{
    const char *mode = onnx_attr_string(n, "mode", "nearest");
    attr scales;
    if (n->version >= 9)
        return resize_old(n, mode, onnx_in(n, 1));
    if (onnx_attr_convert(n, "scales", "scales", ATTR_FLOATS, &scales))
        return resize_old(n, mode, float_list(n, scales.n, scales.u.floats));
    double v[4] = {1, 1, onnx_attr_float(n, "height_scale", 1), onnx_attr_float(n, "width_scale", 1)};
    return !n->failed && resize_old(n, mode, float_list(n, 4, v));
}

/* Version 16 says bilinear and bicubic for what 20 calls linear and cubic. */
bool onnx_op_grid_sample(onnx_node *n)
{
    const char *mode = onnx_attr_string(n, "mode", "linear");
    mode = strcmp(mode, "bilinear") == 0 ? "linear" : strcmp(mode, "bicubic") == 0 ? "cubic" : mode;
    attr a[3] = {attr_string(n->c, "mode", mode),
                 attr_string(n->c, "padding_mode", onnx_attr_string(n, "padding_mode", "zeros")),
                 attr_int(n->c, "align_corners", onnx_attr_int(n, "align_corners", 0))};
    onnx_result(n, 0, ONNX_ARGS("grid_sample", 3, a, onnx_in(n, 0), onnx_in(n, 1)));
    return !n->failed;
}

/* --- AffineGrid: points of a unit grid, homogeneous, times the transposed matrices --- */

static double grid_point(int64_t i, int64_t n, bool corners)
{
    if (corners)
        return n > 1 ? -1 + 2 * (double)i / (double)(n - 1) : 0;
    return (2 * (double)i + 1) / (double)n - 1;
}

/* [points, spatial + 1]: x first, 1 last. */
static const tensor_data *grid_points(onnx_node *n, dtype dt, uint32_t spatial, const int64_t *size, bool corners)
{
    int64_t count = 1;
    for (uint32_t i = 0; i < spatial; i++)
        if (size[i] < 1 || !i64_mul(count, size[i], &count) || count > 1 << 24)
            return onnx_fail(n, DIAG_UNSUPPORTED, "the grid is empty or too large"), NULL;
    size_t width = dtype_bytes(dt);
    uint8_t *data = arena_alloc(&n->c->mem, (size_t)count * (spatial + 1) * width, 64), *p = data;
    for (int64_t k = 0; k < count; k++) {
        int64_t rest = k;
        for (uint32_t i = spatial; i-- > 0; p += width) { /* the last axis is x */
            dtype_store_f64(dt, p, grid_point(rest % size[i], size[i], corners));
            rest /= size[i];
        }
        dtype_store_f64(dt, p, 1);
        p += width;
    }
    return tensor_dense(n->c, dt, 2, (int64_t[]){count, spatial + 1}, data);
}

bool onnx_op_affine_grid(onnx_node *n)
{
    graph_value *theta = onnx_in(n, 0);
    int64_t size[2 * TYPE_MAX_RANK];
    uint32_t len = 0, spatial = onnx_rank(theta) == 3 ? (uint32_t)onnx_static_dim(n, theta, 1) : 0;
    const type *want = onnx_declared(n, 0);
    if (spatial != 2 && spatial != 3)
        return onnx_fail(n, DIAG_TYPE, "theta must be [N, 2, 3] or [N, 3, 4]");
    if (onnx_ints_of(onnx_in(n, 1), size, &len) ? len != spatial + 2
                                                : !want || want->shape.rank != (int32_t)spatial + 2)
        return onnx_fail(n, DIAG_UNSUPPORTED, "size must be constant or the result declared");
    static const int64_t extents[4] = {0, 2, 3, 4}; /* all but the channels */
    attr first = attr_int(n->c, "axis", 0);
    for (uint32_t i = 0; len == 0 && i < spatial; i++)
        dim_is_const(want->shape.dims[1 + i], &size[2 + i]);
    if (len == 0) {
        size[1] = onnx_static_dim(n, theta, 0);
        graph_value *given =
            onnx_emit(n, ONNX_ARGS("take", 1, &first, onnx_in(n, 1), onnx_const_ints(n, spatial + 1, extents)));
        theta = onnx_expect(n, theta, given, 1, spatial + 1, size + 1);
    }
    const tensor_data *points =
        grid_points(n, onnx_dtype(theta), spatial, size + 2, onnx_attr_int(n, "align_corners", 0) != 0);
    graph_value *g = onnx_matmul(n, onnx_constant(n, points), theta, false, true, DT_NONE);
    dim d[5] = {onnx_dim(n, theta, 0)};
    for (uint32_t i = 0; i < spatial; i++)
        d[1 + i] = dim_const(n->c, size[2 + i]);
    d[1 + spatial] = dim_const(n->c, spatial);
    (void)onnx_make_reshape(n, 0, g, spatial + 2, d);
    return !n->failed;
}
