/* SPDX-License-Identifier: Apache-2.0 */
/* Type relations of operators that sample images at other positions (ONNX Resize, GridSample). */
#include "graph/op/shape.h"

#include <math.h>
#include <string.h>

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
        (!infer_has(n, 1) || !dim_is(infer_in(n, 1)->shape.dims[0], 2 * (int64_t)len)))
        return infer_error(c, n, "tf_crop_and_resize needs a roi of %u numbers", 2 * len);
    for (uint32_t i = 2; i < 4; i++) {
        int64_t entries = 0;
        if (infer_has(n, i) && dim_is_const(infer_in(n, i)->shape.dims[0], &entries) && entries && entries != len)
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
    const tensor_data *scales = infer_has(n, 2) ? graph_constant(n->inputs[2]) : NULL,
                      *sizes = infer_has(n, 3) ? graph_constant(n->inputs[3]) : NULL;
    const tensor_data *given = sizes ? sizes : scales;
    if (!resize_modes(c, n, len))
        return false;
    if (!given || given->count == 0)
        return infer_moved_as_declared(c, n, false, "scales or sizes", out);
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
            return infer_moved_as_declared(c, n, false, "a resized axis", out);
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
