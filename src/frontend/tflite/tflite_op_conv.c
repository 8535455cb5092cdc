/* SPDX-License-Identifier: Apache-2.0 */
/* Convolutions, fully connected layers and pools. Images become channels second, weights are put into the order of the
 * graph IR while reading. Quantised sums are exact in 32 bits, then tflite_requantised. */
#include "frontend/tflite/tflite_fixed.h"
#include "frontend/tflite/tflite_import.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

enum { PAD_SAME, PAD_VALID };

/* --- windows --- */

typedef struct window {
    int64_t padding, kernel[2], stride[2], dilation[2], pads[4]; /* rows, columns; pads as ONNX: begins, then ends */
} window;

bool tflite_window_pads(tflite_node *n, const graph_value *x, uint32_t axis, uint32_t count, const tflite_window *w,
                        int64_t *pads)
{
    for (uint32_t i = 0; i < count; i++) {
        int64_t in = 0, reach, total;
        if (w->stride[i] < 1 || w->dilation[i] < 1 || w->kernel[i] < 1)
            return tflite_fail(n, DIAG_FORMAT, "a stride, a dilation or an extent of the window is below 1");
        if (!tflite_extent(n, x, axis + i, &in))
            return false;
        if (w->kernel[i] > INT32_MAX || w->dilation[i] > INT32_MAX || w->stride[i] > INT32_MAX)
            return tflite_fail(n, DIAG_FORMAT, "the window is too large");
        reach = (w->kernel[i] - 1) * w->dilation[i] + 1;
        total = w->padding == PAD_SAME ? ((in + w->stride[i] - 1) / w->stride[i] - 1) * w->stride[i] + reach - in : 0;
        total = total < 0 ? 0 : total;
        if (in + total < reach)
            return tflite_fail(n, DIAG_TYPE, "the window is larger than the image");
        pads[i] = total / 2;
        pads[count + i] = total - total / 2;
    }
    return true;
}

static bool set_pads(tflite_node *n, const graph_value *x, window *w)
{
    const tflite_window all = {w->padding, w->kernel, w->stride, w->dilation};
    return tflite_window_pads(n, x, 2, 2, &all, w->pads);
}

bool tflite_check_padding(tflite_node *n, int64_t padding)
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
    uint32_t x_at, bias_at;  /* operands */
    bool is_conv;
    flat_numbers scales; /* of the weights, one or one for each output; quantised layers only */
    int64_t w_zero;
    double *real;            /* what sums are scaled by, as many as scales; quantised layers only */
    const tensor_data *bias; /* instead of the model's; NULL: none */
} layer;

/* No sum with the bias is farther from 0: the sum of the weights' amounts, by the range of the data, of the largest
 * channel. */
static double most_sum(tflite_node *n, const layer *l)
{
    const tensor_data *bias = l->bias ? l->bias : tflite_constant(n, l->bias_at);
    const double range = dtype_bits(tflite_operand(n, l->x_at)->type.dt) == 16 ? 65535 : 255;
    double most = 0;
    if (!l->w)
        return 0x1p62;
    const int64_t each = l->outputs ? l->w->count / l->outputs : 0;
    for (int64_t o = 0; o < l->outputs; o++) {
        double sum = bias ? fabs((double)tensor_get_i64(bias, bias->count == 1 ? 0 : o)) : 0;
        for (int64_t k = 0; k < each; k++)
            sum += range * fabs((double)(tensor_get_i64(l->w, o * each + k) - l->w_zero));
        most = sum > most ? sum : most;
    }
    return most;
}

/* The bias, an axis for each of those behind the channels: of images two. NULL: none. */
static graph_value *read_bias(tflite_node *n, const layer *l, dtype dt)
{
    const tflite_tensor *t = tflite_operand(n, l->bias_at);
    const int64_t dims[3] = {l->outputs, 1, 1};
    if (!t)
        return NULL;
    if (t->type.dt != dt || shape_count(t->type.shape) != l->outputs) {
        (void)tflite_fail(n, DIAG_TYPE, "the bias is not %" PRId64 " numbers of %s", l->outputs, dtype_name(dt));
        return NULL;
    }
    graph_value *v = l->bias ? tflite_const(n, l->bias, t->name) : tflite_in(n, l->bias_at);
    return tflite_reshape(n, v, l->is_conv ? 3 : 1, dims);
}

static graph_value *with_bias(tflite_node *n, const layer *l, graph_value *sums)
{
    graph_value *bias = n->failed ? NULL : read_bias(n, l, sums->type.dt);
    return bias ? tflite_binary(n, "add", sums, bias) : sums;
}

static bool is_by_litert(const tflite_node *n, const layer *l)
{
    return tflite_like_litert(n) && !l->is_conv;
}

/* What the products of quantised numbers are scaled by. The kernels multiply the scales of bytes without a sign in 32
 * bits, all others in 64. */
static bool read_factors(tflite_node *n, layer *l)
{
    tflite_scale x, y;
    if (!tflite_read_scale(n, l->x_at, &x) || !tflite_read_scale(n, TFLITE_RESULT, &y))
        return false;
    const bool narrow = !is_by_litert(n, l) && x.dt == DT_U8;
    l->real = arena_array(&n->c->mem, double, (size_t)l->scales.len + 1);
    for (uint32_t i = 0; i < l->scales.len; i++) {
        const float w = flat_f32(l->scales, i), product = x.scale * w;
        l->real[i] = (narrow ? (double)product : (double)x.scale * (double)w) / (double)y.scale;
    }
    return true;
}

/* Whether all weights of output o are 0. */
static bool is_still(const layer *l, int64_t o)
{
    const int64_t each = l->w->count / l->outputs;
    for (int64_t k = 0; k < each; k++)
        if (tensor_get_i64(l->w, o * each + k) != 0)
            return false;
    return true;
}

#define MOST_RESULT 1023 /* beyond the range of 8 bits, with any zero point */
#define MOST_RIGHT  19   /* MOST_RESULT << (MOST_RIGHT + 1) has 32 bits */

/* An output without weights is a constant, whose bias may be 2^30 and whose scale 2^-30: it gets a bias and a scale
 * near those of the others, with the same result. So all sums have a bound that tells something. */
static void settle_still(tflite_node *n, layer *l)
{
    const tensor_data *bias = tflite_constant(n, l->bias_at);
    tflite_scale y;
    if (!tflite_read_scale(n, TFLITE_RESULT, &y) || !l->w || !bias || bias->dt != DT_I32 || bias->count != l->outputs ||
        l->scales.len != l->outputs || l->w_zero != 0 || dtype_bits(y.dt) != 8)
        return;
    bool *still = arena_array(&n->c->mem, bool, (size_t)l->outputs);
    int32_t *own = arena_array(&n->c->mem, int32_t, (size_t)l->outputs), top = INT32_MIN;
    for (int64_t o = 0; o < l->outputs; o++) {
        const fixed_scale f = fixed_of(l->real[o]);
        own[o] = (int32_t)tensor_get_i64(bias, o);
        still[o] = is_still(l, o) && f.shift <= 0;
        top = !still[o] && f.shift > top ? f.shift : top;
    }
    if (top > 0 || top < -MOST_RIGHT)
        return;
    for (int64_t o = 0; o < l->outputs; o++) {
        int32_t v = still[o] ? fixed_scaled(own[o], fixed_of(l->real[o])) : 0;
        v = v > MOST_RESULT ? MOST_RESULT : v < -MOST_RESULT ? -MOST_RESULT : v;
        own[o] = still[o] ? v * (1 << (1 - top)) : own[o];
        l->real[o] = still[o] ? ldexp(1, top - 1) : l->real[o];
    }
    l->bias = tensor_dense(n->c, DT_I32, bias->rank, bias->dims, own);
}

static graph_value *requantised(tflite_node *n, const layer *l, graph_value *sums)
{
    return is_by_litert(n, l)
               ? tflite_requantised_real(n, sums, l->scales.len, l->real)
               : tflite_requantised(n, sums, l->scales.len, l->real, l->is_conv ? 1 : -1, most_sum(n, l));
}

/* Sums of 16-bit data have 64 bits, unless a bias of 32 says otherwise. */
static dtype sums_of(const tflite_node *n, const layer *l)
{
    const tflite_tensor *bias = tflite_operand(n, l->bias_at);
    const bool wide = tflite_operand(n, l->x_at)->type.dt == DT_I16 && !(bias && bias->type.dt == DT_I32);
    return wide ? DT_I64 : DT_I32;
}

/* Data and weights through `op`, or of numbers "qnn" and the rest of its name. */
static graph_value *layer_value(tflite_node *n, layer *l, const char *op, graph_value *x, uint32_t n_attrs,
                                const attr *attrs, int64_t activation)
{
    const bool is_int = tflite_is_int(n, l->x_at);
    tflite_scale s = {0};
    attr all[8];
    if (is_int && (!tflite_read_scale(n, l->x_at, &s) || !read_factors(n, l)))
        return x;
    if (is_int && !is_by_litert(n, l))
        settle_still(n, l);
    const tflite_scale w = {.zero = l->w_zero, .dt = n->failed ? DT_I8 : l->weights->type.dt};
    graph_value *in[4] = {x, l->weights, is_int ? tflite_zero(n, &s) : NULL, is_int ? tflite_zero(n, &w) : NULL};
    for (uint32_t i = 0; i < n_attrs; i++)
        all[i] = attrs[i];
    if (is_int && sums_of(n, l) == DT_I64)
        all[n_attrs++] = attr_dtype(n->c, "out_dtype", DT_I64);
    op = is_int ? arena_printf(&n->c->mem, "qnn.%s", op + strlen("nn.")) : op;
    graph_value *y = with_bias(n, l, tflite_emit(n, op, 4, in, n_attrs, all));
    y = is_int && !n->failed ? requantised(n, l, y) : y;
    return tflite_activated(n, y, activation);
}

/* Whether the weights' type goes with the data's, and their scales. is_hybrid: floats by bytes. */
static bool check_weights(tflite_node *n, uint32_t w_at, layer *l, bool *is_hybrid)
{
    const dtype x = tflite_operand(n, l->x_at)->type.dt, w = tflite_operand(n, w_at)->type.dt;
    *is_hybrid = x == DT_F32 && w == DT_I8;
    if (x != w && !(x == DT_I16 && w == DT_I8) && !*is_hybrid)
        return tflite_fail(n, DIAG_UNSUPPORTED, "weights of %s with data of %s are not supported",
                           w == DT_NONE ? "another type" : dtype_name(w), dtype_name(x));
    if (x == DT_F32 && !*is_hybrid)
        return true;
    if (!tflite_read_scales(n, w_at, l->w_axis, l->outputs, &l->scales, &l->w_zero))
        return false;
    return l->w_zero == 0 || w == DT_U8 || (!l->is_conv && !*is_hybrid) ||
           tflite_fail(n, DIAG_UNSUPPORTED, "weights '%s' have a zero point other than 0",
                       tflite_operand(n, w_at)->name);
}

/* Weights of a convolution in the order of the graph: outputs, inputs of a group, window. */
static bool read_weights(tflite_node *n, uint32_t w_at, const int64_t *perm, layer *l, window *w, bool *is_hybrid)
{
    const tflite_tensor *t = tflite_operand(n, w_at);
    int64_t dims[TYPE_MAX_RANK];
    if (t->type.shape.rank != 4 || !shape_get(t->type.shape, dims))
        return tflite_fail(n, DIAG_TYPE, "weights have %d dimensions; four are needed", t->type.shape.rank);
    l->outputs = dims[l->w_axis];
    w->kernel[0] = dims[1];
    w->kernel[1] = dims[2];
    if (!check_weights(n, w_at, l, is_hybrid))
        return false;
    l->w = t->data ? tflite_permuted(n->c, t->data, perm) : NULL;
    l->weights = t->data ? tflite_const(n, l->w, t->name) : tflite_transpose(n, tflite_in(n, w_at), 4, perm);
    return !n->failed;
}

/* --- floats by weights of 8 bits --- */

/* Data as numbers of 8 bits, made of floats while the model runs: one scale for each of the first axis's entries. */
typedef struct numbers {
    graph_value *q, *scale; /* q: i8, or less its zero point i16; scale: an axis of 1 for each but the first */
} numbers;

static graph_value *extreme(tflite_node *n, const char *op, graph_value *x)
{
    int64_t axes[TYPE_MAX_RANK];
    const int32_t rank = n->failed ? 1 : x->type.shape.rank;
    for (int32_t i = 1; i < rank; i++)
        axes[i - 1] = i;
    const attr attrs[2] = {attr_ints(n->c, "axes", (uint32_t)rank - 1, axes), attr_int(n->c, "keepdims", 1)};
    return tflite_emit(n, op, 1, &x, 2, attrs);
}

static graph_value *number(tflite_node *n, double v)
{
    return tflite_number(n, DT_F32, v);
}

/* Halves away from 0, saturated. */
static graph_value *rounded(tflite_node *n, graph_value *x)
{
    graph_value *in[2] = {x, number(n, 1)};
    const attr attrs[2] = {attr_dtype(n->c, "out_dtype", DT_I8), attr_string(n->c, "rounding", "half_away")};
    return tflite_emit(n, "qnn.quantize", 2, in, 2, attrs);
}

/* 127 steps for what is farthest from 0. Where all is 0 any scale will do. */
static numbers symmetric(tflite_node *n, graph_value *x)
{
    graph_value *most = extreme(n, "max", tflite_unary(n, "abs", x));
    most = tflite_emit(n, "where", 3, (graph_value *[]){tflite_binary(n, "equal", most, number(n, 0)), number(n, 127),
                                                        most}, 0, NULL);
    graph_value *steps = tflite_binary(n, "divide", number(n, 127), most);
    return (numbers){rounded(n, tflite_binary(n, "multiply", x, steps)),
                     tflite_binary(n, "divide", most, number(n, 127))};
}

/* 255 steps from the least to the most, 0 among them; the zero point is counted from the end where it is more exact. */
static numbers asymmetric(tflite_node *n, graph_value *x)
{
    graph_value *zero = number(n, 0), *least = tflite_binary(n, "minimum", extreme(n, "min", x), zero),
                *most = tflite_binary(n, "maximum", extreme(n, "max", x), zero);
    graph_value *scale = tflite_binary(n, "divide", tflite_binary(n, "subtract", most, least), number(n, 255));
    graph_value *none = tflite_binary(n, "equal", scale, zero);
    scale = tflite_emit(n, "where", 3, (graph_value *[]){none, number(n, 1), scale}, 0, NULL);
    graph_value *low = tflite_binary(n, "divide", least, scale), *high = tflite_binary(n, "divide", most, scale);
    graph_value *error_low = tflite_binary(n, "add", number(n, 128), tflite_unary(n, "abs", low)),
                *error_high = tflite_binary(n, "add", number(n, 127), tflite_unary(n, "abs", high));
    graph_value *from_low = tflite_binary(n, "subtract", number(n, -128), low),
                *from_high = tflite_binary(n, "subtract", number(n, 127), high);
    graph_value *nearer[3] = {tflite_binary(n, "less", error_low, error_high), from_low, from_high};
    graph_value *place = tflite_emit(n, "where", 3, nearer, 0, NULL);
    graph_value *at = rounded(n, place);
    graph_value *scaled = tflite_binary(n, "multiply", x, tflite_binary(n, "divide", number(n, 1), scale));
    graph_value *q = rounded(n, tflite_binary(n, "add", tflite_cast(n, at, DT_F32), scaled));
    q = tflite_binary(n, "subtract", tflite_cast(n, q, DT_I16), tflite_cast(n, at, DT_I16));
    return (numbers){q, scale};
}

/* The scales of the weights, one or with an axis for each of those behind the outputs. */
static graph_value *weight_scales(tflite_node *n, const layer *l)
{
    const int64_t dims[3] = {l->scales.len, 1, 1};
    const uint32_t rank = l->scales.len == 1 ? 0 : l->is_conv ? 3 : 1;
    return tflite_const(n, tensor_dense(n->c, DT_F32, rank, dims, l->scales.data), "scale");
}

/* Whole images share a scale. Where the outputs' scales differ the kernel counts from a zero point. */
static graph_value *hybrid_conv(tflite_node *n, const layer *l, graph_value *x, uint32_t n_attrs, const attr *attrs,
                                int64_t activation)
{
    bool differ = l->w_axis == 3;
    for (uint32_t i = 1; i < l->scales.len; i++)
        differ |= flat_f32(l->scales, i) != flat_f32(l->scales, 0);
    const numbers v = differ ? asymmetric(n, x) : symmetric(n, x);
    graph_value *in[2] = {v.q, l->weights}, *scales = weight_scales(n, l);
    graph_value *sums = tflite_cast(n, tflite_emit(n, "qnn.conv2d", 2, in, n_attrs, attrs), DT_F32), *y;
    if (differ && l->w_axis == 0)
        y = tflite_binary(n, "multiply", tflite_binary(n, "multiply", sums, scales), v.scale);
    else
        y = tflite_binary(n, "multiply", sums, tflite_binary(n, "multiply", v.scale, scales));
    return tflite_activated(n, with_bias(n, l, y), activation);
}

static graph_value *hybrid_sums(tflite_node *n, const layer *l, graph_value *x, bool from_zero_point)
{
    const numbers v = from_zero_point ? asymmetric(n, x) : symmetric(n, x);
    const attr turned = attr_int(n->c, "transpose_b", 1);
    graph_value *in[2] = {v.q, l->weights};
    graph_value *sums = tflite_cast(n, tflite_emit(n, "qnn.matmul", 2, in, 1, &turned), DT_F32);
    return tflite_binary(n, "multiply", sums, tflite_binary(n, "multiply", v.scale, weight_scales(n, l)));
}

static graph_value *hybrid_rows(tflite_node *n, const layer *l, graph_value *x, bool from_zero_point,
                                int64_t activation)
{
    return tflite_activated(n, with_bias(n, l, hybrid_sums(n, l, x, from_zero_point)), activation);
}

graph_value *tflite_hybrid_product(tflite_node *n, graph_value *rows, uint32_t i, bool from_zero_point)
{
    const tflite_tensor *t = tflite_operand(n, i);
    int64_t dims[2];
    layer l = {.weights = tflite_in(n, i)};
    bool is_hybrid;
    if (t->type.shape.rank != 2 || !shape_get(t->type.shape, dims)) {
        (void)tflite_fail(n, DIAG_TYPE, "weights have %d dimensions; two are needed", t->type.shape.rank);
        return rows;
    }
    l.outputs = dims[0];
    return check_weights(n, i, &l, &is_hybrid) ? hybrid_sums(n, &l, rows, from_zero_point) : rows;
}

/* --- convolutions --- */

/* channels: of a group's data, in the weights. */
static bool convolution(tflite_node *n, const int64_t *perm, int64_t w_axis, window *w, int64_t activation)
{
    layer l = {.is_conv = true, .w_axis = w_axis, .bias_at = 2};
    int64_t channels = 0, per_group = 0;
    bool is_hybrid;
    graph_value *x = tflite_image(n, 0);
    if (n->failed || !read_weights(n, 1, perm, &l, w, &is_hybrid) || !tflite_check_padding(n, w->padding) ||
        !set_pads(n, x, w) || !tflite_extent(n, x, 1, &channels) || !tflite_extent(n, l.weights, 1, &per_group))
        return false;
    if (per_group < 1 || channels % per_group != 0 || channels == 0 || l.outputs % (channels / per_group) != 0)
        return tflite_fail(n, DIAG_TYPE, "%" PRId64 " channels and %" PRId64 " results do not fit weights for %" PRId64,
                           channels, l.outputs, per_group);
    compiler *c = n->c;
    const attr attrs[4] = {attr_ints(c, "strides", 2, w->stride), attr_ints(c, "pads", 4, w->pads),
                           attr_ints(c, "dilations", 2, w->dilation), attr_int(c, "groups", channels / per_group)};
    if (is_hybrid)
        return tflite_result_image(n, 0, hybrid_conv(n, &l, x, 4, attrs, activation));
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

bool tflite_transposed_pads(tflite_node *n, const graph_value *x, uint32_t count, const tflite_window *w,
                            const int64_t *out, int64_t *pads, int64_t *out_pads)
{
    for (uint32_t i = 0; i < count; i++) {
        const int64_t stride = w->stride[i], kernel = w->kernel[i];
        int64_t in = 0;
        if (stride < 1 || kernel < 1 || kernel > INT32_MAX || stride > INT32_MAX || out[i] < 1)
            return tflite_fail(n, DIAG_FORMAT, "a stride, an extent of the window or of the result is out of range");
        if (!tflite_extent(n, x, 2 + i, &in))
            return false;
        const int64_t steps = (out[i] + stride - 1) / stride;
        const int64_t over = w->padding == PAD_SAME ? (steps - 1) * stride + kernel - out[i] : 0;
        pads[i] = over > 0 ? over / 2 : 0;
        const int64_t end = (in - 1) * stride + kernel - pads[i] - out[i];
        out_pads[i] = end < 0 ? -end : 0;
        pads[count + i] = end < 0 ? 0 : end;
    }
    return true;
}

bool tflite_op_transpose_conv(tflite_node *n)
{
    static const int64_t perm[4] = {3, 0, 1, 2}; /* inputs first */
    const tfl_transpose_conv_options *o = n->options;
    const tflite_tensor *y = tflite_operand(n, TFLITE_RESULT);
    layer l = {.is_conv = true, .x_at = 2, .bias_at = 3};
    window w = {.padding = o->padding, .stride = {o->stride_h, o->stride_w}, .dilation = {1, 1}};
    int64_t dims[TYPE_MAX_RANK * 2], out_pads[2];
    uint32_t count = 4;
    bool is_hybrid;
    graph_value *x = tflite_image(n, 2);
    const tflite_window all = {w.padding, w.kernel, w.stride, w.dilation};
    if (tflite_constant(n, 0) ? !tflite_ints(n, 0, "the result's shape", dims, &count)
                              : y->type.shape.rank != 4 || !shape_get(y->type.shape, dims))
        return tflite_fail(n, DIAG_UNSUPPORTED, "the result's shape is not known");
    if (n->failed || count != 4 || !read_weights(n, 1, perm, &l, &w, &is_hybrid) ||
        !tflite_check_padding(n, w.padding) ||
        !tflite_transposed_pads(n, x, 2, &all, dims + 1, w.pads, out_pads))
        return tflite_fail(n, DIAG_FORMAT, "the result's shape does not have four extents");
    if (is_hybrid)
        return tflite_fail(n, DIAG_UNSUPPORTED, "floats by weights of i8 are not supported yet");
    l.w = NULL; /* the sums' bound counts weights by outputs, which are not first here */
    const attr attrs[4] = {attr_ints(n->c, "strides", 2, w.stride), attr_ints(n->c, "pads", 4, w.pads),
                           attr_ints(n->c, "output_padding", 2, out_pads), attr_ints(n->c, "dilations", 2, w.dilation)};
    graph_value *v = layer_value(n, &l, "nn.conv2d_transpose", x, 4, attrs, o->fused_activation_function);
    return tflite_result_image(n, 0, v);
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
    const tflite_tensor *t = tflite_operand(n, 1);
    int64_t dims[TYPE_MAX_RANK], shape_of[TYPE_MAX_RANK];
    bool is_hybrid;
    if (o->weights_format != 0)
        return tflite_fail(n, DIAG_UNSUPPORTED, "weights in another order are not supported");
    if (t->type.shape.rank != 2 || !shape_get(t->type.shape, dims))
        return tflite_fail(n, DIAG_TYPE, "weights have %d dimensions; two are needed", t->type.shape.rank);
    graph_value *in = tflite_in(n, 0);
    layer l = {.w = t->data, .weights = tflite_in(n, 1), .outputs = dims[0], .bias_at = 2};
    if (!check_weights(n, 1, &l, &is_hybrid))
        return false;
    const attr turned = attr_int(n->c, "transpose_b", 1);
    const shape s = in->type.shape;
    graph_value *rows = as_rows(n, in, dims[1]);
    graph_value *y = is_hybrid ? hybrid_rows(n, &l, rows, o->asymmetric_quantize_inputs, o->fused_activation_function)
                               : layer_value(n, &l, "nn.matmul", rows, 1, &turned, o->fused_activation_function);
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
    return !n->failed && tflite_check_padding(n, w->padding) && set_pads(n, x, w);
}

/* target: "squares", of which L2_POOL_2D takes the root behind the mean. */
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
        const bool of_squares = *n->row->target;
        x = of_squares ? tflite_binary(n, "multiply", x, x) : x;
        graph_value *y = tflite_emit(n, "nn.avg_pool2d", 1, &x, 3, attrs);
        y = of_squares ? tflite_unary(n, "sqrt", y) : y;
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
