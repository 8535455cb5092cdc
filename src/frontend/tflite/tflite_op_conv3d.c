/* SPDX-License-Identifier: Apache-2.0 */
/* CONV_3D, of floats: data has its channels last, weights have the window first, then inputs, then outputs. */
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
