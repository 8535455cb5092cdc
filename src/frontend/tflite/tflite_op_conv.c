/* SPDX-License-Identifier: Apache-2.0 */
/* Convolutions, fully connected layers and pools. Images become channels second, weights are put into the order of the
 * graph IR while reading. Quantised sums are exact in 32 bits, then tflite_requantised. */
#include "frontend/tflite/tflite_import.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

enum { PAD_SAME, PAD_VALID };

/* --- windows --- */

typedef struct window {
    int64_t padding, kernel[2], stride[2], dilation[2], pads[4]; /* rows, columns; pads as ONNX: begins, then ends */
} window;

/* SAME: as many results as strides; what is odd of the border is at the end. */
static bool set_pads(tflite_node *n, const graph_value *x, window *w)
{
    for (uint32_t i = 0; i < 2; i++) {
        int64_t in = 0, reach, total;
        if (w->stride[i] < 1 || w->dilation[i] < 1 || w->kernel[i] < 1)
            return tflite_fail(n, DIAG_FORMAT, "a stride, a dilation or an extent of the window is below 1");
        if (!tflite_extent(n, x, 2 + i, &in))
            return false;
        if (w->kernel[i] > INT32_MAX || w->dilation[i] > INT32_MAX || w->stride[i] > INT32_MAX)
            return tflite_fail(n, DIAG_FORMAT, "the window is too large");
        reach = (w->kernel[i] - 1) * w->dilation[i] + 1;
        total = w->padding == PAD_SAME ? ((in + w->stride[i] - 1) / w->stride[i] - 1) * w->stride[i] + reach - in : 0;
        total = total < 0 ? 0 : total;
        if (in + total < reach)
            return tflite_fail(n, DIAG_TYPE, "the window is larger than the image");
        w->pads[i] = total / 2;
        w->pads[2 + i] = total - total / 2;
    }
    return true;
}

static bool check_padding(tflite_node *n, int64_t padding)
{
    return padding == PAD_SAME || padding == PAD_VALID ||
           tflite_fail(n, DIAG_FORMAT, "no padding has the code %" PRId64, padding);
}

/* --- sums of products --- */

/* Weights as the graph has them, their scales, and what a sum of products can be at most. */
typedef struct layer {
    const tensor_data *w; /* outputs first; NULL: computed */
    graph_value *weights;
    int64_t outputs, w_axis; /* w_axis: of the outputs, in the model */
    bool is_conv;
} layer;

/* No sum with the bias is farther from 0: the sum of the weights' amounts, by 255, of the largest channel. */
static double most_sum(tflite_node *n, const layer *l)
{
    const tensor_data *bias = tflite_constant(n, 2);
    double most = 0;
    if (!l->w)
        return 0x1p31;
    const int64_t each = l->outputs ? l->w->count / l->outputs : 0;
    for (int64_t o = 0; o < l->outputs; o++) {
        double sum = bias ? fabs((double)tensor_get_i64(bias, bias->count == 1 ? 0 : o)) : 0;
        for (int64_t k = 0; k < each; k++)
            sum += 255.0 * fabs((double)tensor_get_i64(l->w, o * each + k));
        most = sum > most ? sum : most;
    }
    return most;
}

/* The bias, an axis for each of those behind the channels: of images two. NULL: none. */
static graph_value *read_bias(tflite_node *n, const layer *l, dtype dt)
{
    const tflite_tensor *t = tflite_operand(n, 2);
    const int64_t dims[3] = {l->outputs, 1, 1};
    if (!t)
        return NULL;
    if (t->type.dt != dt || shape_count(t->type.shape) != l->outputs) {
        (void)tflite_fail(n, DIAG_TYPE, "the bias is not %" PRId64 " numbers of %s", l->outputs, dtype_name(dt));
        return NULL;
    }
    return tflite_reshape(n, tflite_in(n, 2), l->is_conv ? 3 : 1, dims);
}

static graph_value *with_bias(tflite_node *n, const layer *l, graph_value *sums)
{
    graph_value *bias = n->failed ? NULL : read_bias(n, l, sums->type.dt);
    return bias ? tflite_binary(n, "add", sums, bias) : sums;
}

/* What the products of quantised numbers are scaled by: products and quotients of scales in 64 bits. */
static graph_value *requantised(tflite_node *n, const layer *l, graph_value *sums)
{
    tflite_scale x, y;
    flat_numbers w;
    if (!tflite_read_scale(n, 0, &x) || !tflite_read_scale(n, TFLITE_RESULT, &y) ||
        !tflite_read_scales(n, 1, l->w_axis, l->outputs, &w))
        return sums;
    double *real = arena_array(&n->c->mem, double, (size_t)w.len + 1);
    for (uint32_t i = 0; i < w.len; i++)
        real[i] = (double)x.scale * (double)flat_f32(w, i) / (double)y.scale;
    return tflite_requantised(n, sums, w.len, real, l->is_conv ? 1 : -1, most_sum(n, l));
}

/* Data and weights through `op`, or of numbers "qnn" and the rest of its name. */
static graph_value *layer_value(tflite_node *n, const layer *l, const char *op, graph_value *x, uint32_t n_attrs,
                                const attr *attrs, int64_t activation)
{
    const bool is_int = tflite_is_int(n, 0);
    tflite_scale s = {0};
    if (is_int && !tflite_read_scale(n, 0, &s))
        return x;
    graph_value *in[3] = {x, l->weights, is_int ? tflite_zero(n, &s) : NULL};
    op = is_int ? arena_printf(&n->c->mem, "qnn.%s", op + strlen("nn.")) : op;
    graph_value *y = with_bias(n, l, tflite_emit(n, op, 3, in, n_attrs, attrs));
    y = is_int && !n->failed ? requantised(n, l, y) : y;
    return tflite_activated(n, y, activation);
}

/* Weights of a convolution in the order of the graph: outputs, inputs of a group, window. */
static bool read_weights(tflite_node *n, const int64_t *perm, layer *l, window *w)
{
    const tflite_tensor *t = tflite_operand(n, 1);
    const tflite_tensor *x = tflite_operand(n, 0);
    int64_t dims[TYPE_MAX_RANK];
    if (t->type.dt != x->type.dt)
        return tflite_fail(n, DIAG_UNSUPPORTED, "weights of %s with data of %s are not supported yet",
                           t->type.dt == DT_NONE ? "another type" : dtype_name(t->type.dt), dtype_name(x->type.dt));
    if (t->type.shape.rank != 4 || !shape_get(t->type.shape, dims))
        return tflite_fail(n, DIAG_TYPE, "weights have %d dimensions; four are needed", t->type.shape.rank);
    l->w = t->data ? tflite_permuted(n->c, t->data, perm) : NULL;
    l->weights = t->data ? tflite_const(n, l->w, t->name) : tflite_transpose(n, tflite_in(n, 1), 4, perm);
    l->outputs = dims[perm[0]];
    w->kernel[0] = dims[1];
    w->kernel[1] = dims[2];
    return !n->failed;
}

/* channels: of a group's data, in the weights. */
static bool convolution(tflite_node *n, const int64_t *perm, int64_t w_axis, window *w, int64_t activation)
{
    layer l = {.is_conv = true, .w_axis = w_axis};
    int64_t channels = 0, per_group = 0;
    graph_value *x = tflite_image(n, 0);
    if (n->failed || !read_weights(n, perm, &l, w) || !check_padding(n, w->padding) || !set_pads(n, x, w) ||
        !tflite_extent(n, x, 1, &channels) || !tflite_extent(n, l.weights, 1, &per_group))
        return false;
    if (per_group < 1 || channels % per_group != 0 || channels == 0 || l.outputs % (channels / per_group) != 0)
        return tflite_fail(n, DIAG_TYPE, "%" PRId64 " channels and %" PRId64 " results do not fit weights for %" PRId64,
                           channels, l.outputs, per_group);
    compiler *c = n->c;
    const attr attrs[4] = {attr_ints(c, "strides", 2, w->stride), attr_ints(c, "pads", 4, w->pads),
                           attr_ints(c, "dilations", 2, w->dilation), attr_int(c, "groups", channels / per_group)};
    return tflite_result_image(n, 0, layer_value(n, &l, "nn.conv2d", x, 4, attrs, activation));
}

bool tflite_op_conv(tflite_node *n)
{
    static const int64_t perm[4] = {0, 3, 1, 2};
    const tfl_conv2d_options *o = n->options;
    window w = {.padding = o->padding,
                .stride = {o->stride_h, o->stride_w},
                .dilation = {o->dilation_h_factor, o->dilation_w_factor}};
    return convolution(n, perm, 0, &w, o->fused_activation_function);
}

/* Each channel has as many results as the shapes say; the option may be wrong. */
bool tflite_op_depthwise(tflite_node *n)
{
    static const int64_t perm[4] = {3, 0, 1, 2};
    const tfl_depthwise_options *o = n->options;
    window w = {.padding = o->padding,
                .stride = {o->stride_h, o->stride_w},
                .dilation = {o->dilation_h_factor, o->dilation_w_factor}};
    return convolution(n, perm, 3, &w, o->fused_activation_function);
}

/* --- fully connected --- */

/* x as rows of `depth` numbers. */
static graph_value *as_rows(tflite_node *n, graph_value *x, int64_t depth)
{
    const int64_t dims[2] = {-1, depth}, count = shape_count(x->type.shape);
    const shape s = x->type.shape;
    if (n->failed || (s.rank == 2 && dim_is(s.dims[1], depth)))
        return x;
    if (depth < 1 || (count >= 0 && count % depth != 0))
        (void)tflite_fail(n, DIAG_TYPE, "data does not divide into rows of %" PRId64, depth);
    return tflite_reshape(n, x, 2, dims);
}

bool tflite_op_fully_connected(tflite_node *n)
{
    const tfl_fully_connected_options *o = n->options;
    const tflite_tensor *t = tflite_operand(n, 1), *x = tflite_operand(n, 0);
    int64_t dims[TYPE_MAX_RANK], shape_of[TYPE_MAX_RANK];
    layer l = {0};
    if (t->type.dt != x->type.dt || o->weights_format != 0)
        return tflite_fail(n, DIAG_UNSUPPORTED, "weights of %s with data of %s, or in another order, are not supported "
                           "yet", t->type.dt == DT_NONE ? "another type" : dtype_name(t->type.dt),
                           dtype_name(x->type.dt));
    if (t->type.shape.rank != 2 || !shape_get(t->type.shape, dims))
        return tflite_fail(n, DIAG_TYPE, "weights have %d dimensions; two are needed", t->type.shape.rank);
    graph_value *in = tflite_in(n, 0);
    l = (layer){.w = t->data, .weights = tflite_in(n, 1), .outputs = dims[0]};
    const attr turned = attr_int(n->c, "transpose_b", 1);
    const shape s = in->type.shape;
    graph_value *y = layer_value(n, &l, "nn.matmul", as_rows(n, in, dims[1]), 1, &turned, o->fused_activation_function);
    if (!n->failed && o->keep_num_dims && s.rank != 2) {
        if (s.rank < 1 || !dim_is(s.dims[s.rank - 1], dims[1]) || !shape_get(s, shape_of))
            return tflite_fail(n, DIAG_TYPE, "keep_num_dims: the last extent of the data is not %" PRId64, dims[1]);
        shape_of[s.rank - 1] = l.outputs;
        y = tflite_reshape(n, y, (uint32_t)s.rank, shape_of);
    }
    return tflite_result(n, 0, y);
}

/* --- pools --- */

static bool pool_window(tflite_node *n, graph_value *x, window *w)
{
    const tfl_pool_options *o = n->options;
    *w = (window){.padding = o->padding,
                  .kernel = {o->filter_height, o->filter_width},
                  .stride = {o->stride_h, o->stride_w},
                  .dilation = {1, 1}};
    return !n->failed && check_padding(n, w->padding) && set_pads(n, x, w);
}

bool tflite_op_average_pool(tflite_node *n)
{
    const tfl_pool_options *o = n->options;
    window w;
    graph_value *x = tflite_image(n, 0);
    if (!pool_window(n, x, &w))
        return false;
    const attr attrs[4] = {attr_ints(n->c, "pool_size", 2, w.kernel), attr_ints(n->c, "strides", 2, w.stride),
                           attr_ints(n->c, "pads", 4, w.pads), attr_string(n->c, "method", "tflite")};
    if (!tflite_is_int(n, 0)) {
        graph_value *y = tflite_emit(n, "nn.avg_pool2d", 1, &x, 3, attrs);
        return tflite_result_image(n, 0, tflite_activated(n, y, o->fused_activation_function));
    }
    /* the mean of the numbers as they are: scales, which ought to be equal, do not count */
    graph_value *one = tflite_number(n, DT_F32, 1), *in[3] = {x, one, one};
    graph_value *y = tflite_emit(n, "qnn.avg_pool2d", 3, in, 4, attrs);
    return tflite_result_image(n, 0, tflite_activated(n, y, o->fused_activation_function));
}

bool tflite_op_max_pool(tflite_node *n)
{
    const tfl_pool_options *o = n->options;
    window w;
    graph_value *x = tflite_image(n, 0);
    if (!pool_window(n, x, &w))
        return false;
    const attr attrs[3] = {attr_ints(n->c, "pool_size", 2, w.kernel), attr_ints(n->c, "strides", 2, w.stride),
                           attr_ints(n->c, "pads", 4, w.pads)};
    graph_value *y = tflite_emit(n, "nn.max_pool2d", 1, &x, 3, attrs);
    return tflite_result_image(n, 0, tflite_activated(n, y, o->fused_activation_function));
}
