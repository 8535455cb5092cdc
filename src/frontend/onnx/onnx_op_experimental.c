/* SPDX-License-Identifier: Apache-2.0 */
/* Importers of the experimental operators of ONNX's first years, by what onnxruntime does with them. */
#include "frontend/onnx/onnx_import.h"

#include <string.h>

/* alpha * x + beta; Scale has the factor alone. */
bool onnx_op_affine(onnx_node *n)
{
    bool scale = strcmp(n->row->name, "Scale") == 0;
    graph_value *x = onnx_in(n, 0);
    graph_value *factor = onnx_const_like(n, x, onnx_attr_float(n, scale ? "scale" : "alpha", 1));
    graph_value *term = onnx_const_like(n, x, scale ? 0 : onnx_attr_float(n, "beta", 0));
    if (scale)
        onnx_result(n, 0, ONNX_ARGS("multiply", 0, NULL, x, factor));
    else
        onnx_result(n, 0, ONNX_ARGS("add", 0, NULL, onnx_binary(n, "multiply", x, factor), term));
    return !n->failed;
}

/* alpha * f(beta * x) */
bool onnx_op_scaled(onnx_node *n)
{
    graph_value *x = onnx_in(n, 0);
    graph_value *inner = onnx_binary(n, "multiply", x, onnx_const_like(n, x, onnx_attr_float(n, "beta", 1)));
    graph_value *alpha = onnx_const_like(n, x, onnx_attr_float(n, "alpha", 1));
    onnx_result(n, 0, ONNX_ARGS("multiply", 0, NULL, onnx_unary(n, n->row->target, inner), alpha));
    return !n->failed;
}

/* scale * x + bias, one bias for each channel */
bool onnx_op_image_scaler(onnx_node *n)
{
    graph_value *x = onnx_in(n, 0);
    const onnx_attr *bias = onnx_attr_find(n, "bias");
    size_t count = bias ? bias->pb->floats.len / sizeof(float) : 0;
    if (onnx_rank(x) != 4 || (int64_t)count != onnx_static_dim(n, x, 1))
        return onnx_fail(n, DIAG_FORMAT, "an image of four axes and one bias for each channel are needed");
    int64_t dims[3] = {(int64_t)count, 1, 1};
    float *values = arena_copy(&n->c->mem, bias->pb->floats.data, count * sizeof(float), _Alignof(float));
    graph_value *b = onnx_constant(n, tensor_dense(n->c, DT_F32, 3, dims, values));
    graph_value *scaled = onnx_binary(n, "multiply", x, onnx_const_like(n, x, onnx_attr_float(n, "scale", 1)));
    onnx_result(n, 0, ONNX_ARGS("add", 0, NULL, scaled, onnx_cast(n, b, onnx_dtype(x))));
    return !n->failed;
}

/* border: left, top, right, bottom; scale: height and width that are kept, in place of the right and lower borders. */
bool onnx_op_crop(onnx_node *n)
{
    graph_value *x = onnx_in(n, 0);
    const int64_t *border = NULL, *scale = NULL;
    uint32_t n_scale = onnx_attr_ints(n, "scale", &scale);
    if (onnx_attr_ints(n, "border", &border) != 4 || onnx_rank(x) != 4 || (n_scale && n_scale != 2))
        return onnx_fail(n, DIAG_FORMAT, "an image of four axes, four borders and no or two scales are needed");
    int64_t to[2], from[2] = {border[1], border[0]};
    for (uint32_t i = 0; i < 2; i++) {
        int64_t extent = onnx_static_dim(n, x, 2 + i);
        if (n->failed)
            return false;
        if (from[i] < 0 || from[i] > extent || border[3 - i] < 0 || border[3 - i] > extent - from[i] ||
            (n_scale && (scale[i] < 0 || scale[i] > extent - from[i])))
            return onnx_fail(n, DIAG_TYPE, "the borders leave nothing of an extent of %lld", (long long)extent);
        to[i] = n_scale ? from[i] + scale[i] : extent - border[3 - i];
    }
    return onnx_alias(n, 0, onnx_slice(n, onnx_slice(n, x, 2, from[0], to[0]), 3, from[1], to[1]));
}
