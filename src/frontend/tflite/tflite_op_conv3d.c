/* SPDX-License-Identifier: Apache-2.0 */
/* CONV_3D and CONV_3D_TRANSPOSE, of floats: data has its channels last, weights have the window first, then inputs,
 * then outputs, or for the latter outputs, then inputs. */
#include "frontend/tflite/tflite_import.h"

bool tflite_op_conv_3d(tflite_node *n)
{
    static const int64_t second[5] = {0, 4, 1, 2, 3}, last[5] = {0, 2, 3, 4, 1}, outputs_first[5] = {4, 3, 0, 1, 2};
    const tfl_conv3d_options *o = n->options;
    const tflite_tensor *t = tflite_operand(n, 1);
    const int64_t stride[3] = {o->stride_d, o->stride_h, o->stride_w},
                  dilation[3] = {o->dilation_d_factor, o->dilation_h_factor, o->dilation_w_factor};
    int64_t dims[TYPE_MAX_RANK], channels = 0, pads[6];
    graph_value *x = tflite_in(n, 0), *weights = tflite_in(n, 1);
    if (n->failed || x->type.shape.rank != 5 || t->type.shape.rank != 5 || !shape_get(t->type.shape, dims) ||
        t->type.dt != DT_F32)
        return tflite_fail(n, DIAG_TYPE, "data and weights must have five dimensions, and weights be f32");
    const tflite_window w = {o->padding, dims, stride, dilation};
    if (!tflite_check_padding(n, o->padding) || !tflite_window_pads(n, x, 1, 3, &w, pads) ||
        !tflite_extent(n, x, 4, &channels))
        return false;
    if (dims[3] < 1 || channels % dims[3] != 0 || channels == 0 || dims[4] % (channels / dims[3]) != 0)
        return tflite_fail(n, DIAG_TYPE, "the weights do not fit data of %lld channels", (long long)channels);
    const attr attrs[4] = {attr_ints(n->c, "strides", 3, stride), attr_ints(n->c, "pads", 6, pads),
                           attr_ints(n->c, "dilations", 3, dilation), attr_int(n->c, "groups", channels / dims[3])};
    graph_value *in[2] = {tflite_transpose(n, x, 5, second), tflite_transpose(n, weights, 5, outputs_first)};
    graph_value *y = tflite_transpose(n, tflite_emit(n, "nn.conv3d", 2, in, 4, attrs), 5, last);
    if (tflite_operand(n, 2))
        y = tflite_binary(n, "add", y, tflite_in(n, 2));
    return tflite_result(n, 0, tflite_activated(n, y, o->fused_activation_function));
}

bool tflite_op_conv_3d_transpose(tflite_node *n)
{
    static const int64_t second[5] = {0, 4, 1, 2, 3}, last[5] = {0, 2, 3, 4, 1}, inputs_first[5] = {4, 3, 0, 1, 2};
    const tfl_conv3d_options *o = n->options;
    const tflite_tensor *t = tflite_operand(n, 1);
    const int64_t stride[3] = {o->stride_d, o->stride_h, o->stride_w},
                  dilation[3] = {o->dilation_d_factor, o->dilation_h_factor, o->dilation_w_factor};
    int64_t kernel[TYPE_MAX_RANK], to[TYPE_MAX_RANK * 2], channels = 0, pads[6], out_pads[3];
    uint32_t rank;
    graph_value *x = tflite_in(n, 2), *weights = tflite_in(n, 1);
    if (n->failed || x->type.shape.rank != 5 || t->type.shape.rank != 5 || !shape_get(t->type.shape, kernel) ||
        t->type.dt != DT_F32 || x->type.dt != DT_F32)
        return tflite_fail(n, DIAG_TYPE, "data and weights must have five dimensions, and be f32");
    if (!tflite_ints(n, 0, "the result's shape", to, &rank) || rank != 5)
        return tflite_fail(n, DIAG_FORMAT, "the result's shape does not have five extents");
    if (dilation[0] != 1 || dilation[1] != 1 || dilation[2] != 1)
        return tflite_fail(n, DIAG_UNSUPPORTED, "a dilation is not supported yet");
    x = tflite_transpose(n, x, 5, second);
    const tflite_window w = {o->padding, kernel, stride, dilation};
    if (!tflite_check_padding(n, o->padding) || !tflite_extent(n, x, 1, &channels) ||
        !tflite_transposed_pads(n, x, 3, &w, to + 1, pads, out_pads))
        return false;
    if (channels != kernel[4])
        return tflite_fail(n, DIAG_TYPE, "the weights do not fit data of %lld channels", (long long)channels);
    const attr attrs[3] = {attr_ints(n->c, "strides", 3, stride), attr_ints(n->c, "pads", 6, pads),
                           attr_ints(n->c, "output_padding", 3, out_pads)};
    graph_value *in[2] = {x, tflite_transpose(n, weights, 5, inputs_first)};
    graph_value *y = tflite_transpose(n, tflite_emit(n, "nn.conv3d_transpose", 2, in, 3, attrs), 5, last);
    if (tflite_operand(n, 3))
        y = tflite_binary(n, "add", y, tflite_in(n, 3));
    return tflite_result(n, 0, tflite_activated(n, y, o->fused_activation_function));
}
