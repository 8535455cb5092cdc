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
        if (infer_has(n, i) && !dim_is(infer_in(n, i)->shape.dims[0], 0) &&
            !infer_extents(c, infer_in(n, i)->shape.dims[0], EXTENTS_EQUAL, dim_const(c, len), "axes and sizes"))
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

/* Numbers of f32 that are whole and their products with such: exact up to here. */
#define MOST_EXACT 16777216.0

dim infer_scaled(compiler *c, dim extent, double scale)
{
    int64_t n = 0, most = dim_bound(extent);
    int exponent = 0;
    if (dim_is_const(extent, &n)) {
        double v = (double)((float)n * (float)scale);
        return v >= 0 && v < 2147483648.0 ? dim_const(c, (int64_t)v) : NULL;
    }
    bool small = most < 0 || ((double)most < MOST_EXACT && (double)most * scale < MOST_EXACT);
    if (small && scale >= 1 && scale == floor(scale) && scale < MOST_EXACT)
        return dim_mul(c, extent, dim_const(c, (int64_t)scale));
    if (small && scale > 0 && frexp(scale, &exponent) == 0.5 && exponent > -30 && exponent < 1)
        return dim_floordiv(c, extent, dim_const(c, (int64_t)1 << (1 - exponent)));
    return NULL;
}

/* What the operands of a resize are known to say. */
typedef struct resize_say {
    shape_value sizes;        /* entries; none where scales decide */
    const tensor_data *scales; /* NULL: not constant */
    bool by_size, keeps;      /* keeps: one scale of all axes, which sizes decide together */
    double common;            /* that scale; 0: not known */
} resize_say;

/* The extent of axis a that entry i says, where x has d; NULL after an error. */
static dim resized_extent(compiler *c, const graph_node *n, const resize_say *r, uint32_t i, int32_t a, dim d)
{
    int32_t rank = infer_in(n, 0)->shape.rank;
    int64_t extent = 0, most = -1, size = 0;
    bool fixed = dim_is_const(d, &extent);
    dim out = NULL;
    if (r->keeps) {
        double v = fixed && r->common > 0 ? floor((double)((float)extent * (float)r->common + 0.5f)) : -1;
        out = v >= 0 && v < 2147483648.0 ? dim_const(c, (int64_t)v) : NULL;
        bool within = strcmp(graph_attr_string(n, "keep_aspect_ratio_policy"), "not_larger") == 0;
        most = within && r->sizes.at[i] ? dim_bound(r->sizes.at[i]) : -1;
    } else if (r->by_size) {
        out = r->sizes.at[i];
    } else if (r->scales) {
        double scale = tensor_get_f64(r->scales, i);
        double far = (double)((float)dim_bound(d) * (float)scale);
        out = infer_scaled(c, d, scale);
        most = dim_bound(d) >= 0 && far >= 0 && far < 2147483648.0 ? (int64_t)far : -1;
        if (!out && !(scale >= 0 && (far < 2147483648.0 || dim_bound(d) < 0)))
            out = dim_const(c, -1);
    }
    if (out && dim_is_const(out, &size) && (size < 0 || size >= 2147483648)) {
        (void)infer_error(c, n, "the extent on axis %d is out of range", a);
        return NULL;
    }
    return out ? out : infer_open(c, n, 0, rank, a, "resize", most);
}

/* The declared shape; of an axis that is not resized, the data's extent. */
static bool resized_as_declared(compiler *c, const graph_node *n, uint32_t n_axes, const int32_t *axes, type *out)
{
    const type *x = infer_in(n, 0);
    dim d[TYPE_MAX_RANK];
    if (!infer_moved_as_declared(c, n, false, "scales or sizes", out))
        return false;
    memcpy(d, x->shape.dims, (size_t)x->shape.rank * sizeof *d);
    for (uint32_t i = 0; i < n_axes; i++)
        d[axes[i]] = out->shape.dims[axes[i]];
    for (int32_t i = 0; i < x->shape.rank; i++) {
        int64_t have = 0, stated = 0;
        if (dim_is_const(d[i], &have) && dim_is_const(out->shape.dims[i], &stated) && have != stated)
            return infer_error(c, n, "the result is declared with extent %lld on axis %d, which keeps its %lld",
                               (long long)stated, i, (long long)have);
    }
    out->shape = shape_make(c, (uint32_t)x->shape.rank, d);
    return true;
}

/* The axes that are resized, counted from the front: those of the attribute, or all. */
static bool resize_axes(compiler *c, const graph_node *n, int32_t *out, uint32_t *out_n)
{
    const int64_t *axes = NULL;
    const int32_t rank = infer_in(n, 0)->shape.rank;
    uint32_t n_axes = graph_attr_ints(n, "axes", &axes), seen = 0;
    *out_n = n_axes ? n_axes : (uint32_t)rank;
    if (n_axes > (uint32_t)rank)
        return infer_error(c, n, "%u axes for rank %d", n_axes, rank);
    for (uint32_t i = 0; i < *out_n; i++) {
        out[i] = (int32_t)i;
        if (n_axes && !infer_axis(c, n, axes[i], rank, &out[i]))
            return false;
        if (seen >> out[i] & 1)
            return infer_error(c, n, "axis %d is given twice", out[i]);
        seen |= 1u << out[i];
    }
    return true;
}

#define NO_FRACTION UINT32_MAX

/* How many bits behind the point the positions have from one extent to another in that coordinate_transformation_mode;
 * NO_FRACTION: too many. */
static uint32_t fraction_bits(double from, double to, const char *transform)
{
    int exponent = 0;
    const double ratio = to / from;
    if (strcmp(transform, "align_corners") == 0) {
        const double parts = (from - 1) / (to - 1) * (1 << RESIZE_MOST_FRACTION);
        if (!(to > 1 && from > 1 && parts == floor(parts)))
            return NO_FRACTION;
        uint32_t bits = RESIZE_MOST_FRACTION;
        for (double left = parts; bits > 0 && left == 2 * floor(left / 2); left /= 2)
            bits--;
        return bits;
    }
    const bool centres = strcmp(transform, "half_pixel") == 0 || strcmp(transform, "pytorch_half_pixel") == 0;
    if ((!centres && strcmp(transform, "asymmetric") != 0) || frexp(ratio, &exponent) != 0.5)
        return NO_FRACTION;
    const int bits = centres ? (exponent > 1 ? exponent : exponent < 1) : exponent > 1 ? exponent - 1 : 0;
    return bits > (int)RESIZE_MOST_FRACTION || exponent < -16 ? NO_FRACTION : (uint32_t)bits;
}

bool resize_is_linear(const graph_node *n)
{
    return strcmp(graph_attr_string(n, "mode"), "linear") == 0 && graph_attr_int(n, "antialias") == 0 &&
           graph_attr_int(n, "exclude_outside") == 0;
}

bool resize_whole_weights(const graph_node *n, shape to, uint32_t *bits, uint32_t *axes)
{
    const char *transform = graph_attr_string(n, "coordinate_transformation_mode");
    const shape from = infer_in(n, 0)->shape;
    *bits = *axes = 0;
    for (int32_t i = 0; i < from.rank; i++) {
        int64_t a = 0, b = 0;
        if (!dim_is_const(from.dims[i], &a) || !dim_is_const(to.dims[i], &b) || a < 1 || b < 1)
            return false;
        if (a == b)
            continue;
        const uint32_t own = fraction_bits((double)a, (double)b, transform);
        if (own == NO_FRACTION)
            return false;
        *bits = own > *bits ? own : *bits;
        *axes += 1;
    }
    return *axes > 0 && *bits * *axes <= RESIZE_MOST_BITS;
}

/* Whether the attribute fraction_bits says what holds of a linear resize of 8 bits. */
static bool has_whole_weights(const graph_node *n, shape to)
{
    const int64_t said = graph_attr_int(n, "fraction_bits");
    const dtype dt = infer_in(n, 0)->dt;
    uint32_t bits = 0, axes = 0;
    if ((dt != DT_I8 && dt != DT_U8) || !resize_is_linear(n) || said < 1 || said > RESIZE_MOST_FRACTION)
        return false;
    return resize_whole_weights(n, to, &bits, &axes) && bits <= said && axes * said <= RESIZE_MOST_BITS;
}

/* sizes, or floor(extent * scale), on `axes` (empty: all); ONNX Resize-18. f32 throughout, as onnxruntime has it. */
bool infer_resize(compiler *c, const graph_node *n, type *out)
{
    const type *x = infer_in(n, 0);
    const int64_t *axes = NULL;
    uint32_t n_axes = graph_attr_ints(n, "axes", &axes), len = 0;
    int32_t at[TYPE_MAX_RANK];
    resize_say r = {.scales = infer_has(n, 2) ? graph_constant(n->inputs[2]) : NULL};
    if (!resize_axes(c, n, at, &len) || !resize_modes(c, n, len))
        return false;
    r.by_size = infer_elements(c, n, 3, &r.sizes) && r.sizes.n > 0;
    r.scales = r.scales && r.scales->count > 0 ? r.scales : NULL;
    r.keeps = r.by_size && strcmp(graph_attr_string(n, "keep_aspect_ratio_policy"), "stretch") != 0;
    r.common = r.by_size ? common_scale(n, graph_constant(n->inputs[3]), n_axes, axes) : 0;
    bool told = r.by_size ? infer_knows_any(&r.sizes) : r.scales != NULL;
    if (!told && infer_declared(n, 0))
        return resized_as_declared(c, n, len, at, out);
    int64_t entries = r.by_size ? r.sizes.n : r.scales ? r.scales->count : (int64_t)len;
    if (entries != (int64_t)len)
        return infer_error(c, n, "%lld entries for %u axes", (long long)entries, len);
    dim d[TYPE_MAX_RANK];
    memcpy(d, x->shape.dims, (size_t)x->shape.rank * sizeof *d);
    for (uint32_t i = 0; i < len; i++) {
        d[at[i]] = resized_extent(c, n, &r, i, at[i], d[at[i]]);
        if (!d[at[i]])
            return false;
    }
    const bool sums = strcmp(n->op->name, "qnn.resize") == 0;
    if (sums && !has_whole_weights(n, shape_make(c, (uint32_t)x->shape.rank, d)))
        return infer_error(c, n, "its weights are not whole numbers of so many bits, or its data is not of 8 bits");
    out[0] = type_tensor(sums ? DT_I32 : x->dt, shape_make(c, (uint32_t)x->shape.rank, d));
    return true;
}

bool infer_grid_sample(compiler *c, const graph_node *n, type *out)
{
    const type *x = infer_in(n, 0), *grid = infer_in(n, 1);
    int32_t r = x->shape.rank;
    int64_t batch = 0, grids = 0;
    dim d[TYPE_MAX_RANK];
    static const char *const modes[] = {"linear", "bilinear", "nearest", "cubic", "bicubic", NULL};
    static const char *const paddings[] = {"zeros", "border", "reflection", NULL};
    if (!one_of(c, n, "mode", modes) || !one_of(c, n, "padding_mode", paddings))
        return false;
    if (r < 3 || grid->shape.rank != r || !dim_is(grid->shape.dims[r - 1], r - 2))
        return infer_error(c, n, "data of rank %d needs a grid of the same rank whose last extent is %d", r, r - 2);
    (void)dim_is_const(x->shape.dims[0], &batch);
    (void)dim_is_const(grid->shape.dims[0], &grids);
    if (!infer_extents(c, grid->shape.dims[0], EXTENTS_EQUAL, x->shape.dims[0], "images and grids"))
        return infer_error(c, n, "%lld grids for %lld images", (long long)grids, (long long)batch);
    d[0] = x->shape.dims[0];
    d[1] = x->shape.dims[1];
    for (int32_t i = 2; i < r; i++)
        d[i] = grid->shape.dims[i - 1];
    out[0] = type_tensor(x->dt, shape_make(c, (uint32_t)r, d));
    return true;
}

/* rois: [regions, 4], x0 y0 x1 y1 in x's scale; batches: [regions] */
bool infer_roi_align(compiler *c, const graph_node *n, type *out)
{
    const type *x = infer_in(n, 0), *rois = infer_in(n, 1), *batches = infer_in(n, 2);
    static const char *const modes[] = {"avg", "max", NULL};
    static const char *const transforms[] = {"half_pixel", "output_half_pixel", NULL};
    const int64_t h = graph_attr_int(n, "output_height"), w = graph_attr_int(n, "output_width");
    int64_t regions = 0, named = 0;
    if (!one_of(c, n, "mode", modes) || !one_of(c, n, "coordinate_transformation_mode", transforms))
        return false;
    if (h < 1 || w < 1 || h > INT32_MAX || w > INT32_MAX || graph_attr_int(n, "sampling_ratio") < 0)
        return infer_error(c, n, "cells of %lld by %lld", (long long)h, (long long)w);
    if (!dim_is(rois->shape.dims[1], 4))
        return infer_error(c, n, "a region has four numbers");
    (void)dim_is_const(rois->shape.dims[0], &regions);
    (void)dim_is_const(batches->shape.dims[0], &named);
    if (!infer_extents(c, batches->shape.dims[0], EXTENTS_EQUAL, rois->shape.dims[0], "regions and indices"))
        return infer_error(c, n, "%lld regions with %lld indices of a batch", (long long)regions, (long long)named);
    const dim d[4] = {rois->shape.dims[0], x->shape.dims[1], dim_const(c, h), dim_const(c, w)};
    out[0] = type_tensor(x->dt, shape_make(c, 4, d));
    return true;
}

/* rois: [regions, 5], the index of the picture, then x0 y0 x1 y1 in x's scale, all of which are in the region */
bool infer_max_roi_pool(compiler *c, const graph_node *n, type *out)
{
    const type *x = infer_in(n, 0), *rois = infer_in(n, 1);
    const int64_t *cells;
    if (graph_attr_ints(n, "pooled_shape", &cells) != 2)
        return infer_error(c, n, "pooled_shape is not two numbers");
    if (cells[0] < 1 || cells[1] < 1 || cells[0] > INT32_MAX || cells[1] > INT32_MAX)
        return infer_error(c, n, "cells of %lld by %lld", (long long)cells[0], (long long)cells[1]);
    if (!(graph_attr_float(n, "spatial_scale") > 0))
        return infer_error(c, n, "spatial_scale is not above 0");
    if (!dim_is(rois->shape.dims[1], 5))
        return infer_error(c, n, "a region has five numbers");
    const dim d[4] = {rois->shape.dims[0], x->shape.dims[1], dim_const(c, cells[0]), dim_const(c, cells[1])};
    out[0] = type_tensor(x->dt, shape_make(c, 4, d));
    return true;
}
