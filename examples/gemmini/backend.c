/* SPDX-License-Identifier: Apache-2.0 */
/* A back end for Gemmini: parts of models that `lathe quantize --for gemmini` makes become calls of gemmini.h.
 *
 * It takes convolutions (also depthwise), products, sums and max pools of int8 without zero points and with one scale
 * for the weights. Then an element is what the CPU computes, bit for bit: a sum of int32, as a float times m =
 * f32(x_scale / y_scale), to the nearest integer with ties to even. Sums of two quantized values are products by
 * diagonal matrices, if all pairs of numbers give what the CPU gives (sum_factors). All else stays on the CPU. Inside
 * of a region images lie in NHWC; at its border they are turned.
 *
 * Tiles come from a search (choose_tile): a tile costs the cycles of the array, or those of the bus where they are
 * more. See gemmini.h for how a layer runs, and device.h for what the model of the accelerator checks. */
#include "lathe/codegen.h"

#include "gemmini.h"

#include <math.h>

#define BUS_BYTES 16 /* per cycle */

/* --- reading a layer --- */

typedef struct layer {
    const lathe_node *product, *add, *requantize; /* qnn.conv2d or qnn.matmul; NULL: there is none */
    const lathe_graph_value *x, *weights, *bias;  /* of a sum: both operands, and no bias */
    bool is_product, is_sum, transposed;
    int8_t factors[2];  /* of the operands of a sum */
    const lathe_gen *g; /* NULL: the layer is still a part of the graph */
    gemmini_conv c;    /* what gemmini.h runs */
} layer;

static bool is_op(const lathe_node *n, const char *op)
{
    return n && strcmp(lathe_node_op(n), op) == 0;
}

static const lathe_node *maker(const lathe_graph_value *v)
{
    return v ? lathe_value_node(v) : NULL;
}

/* Element i of a list that is an attribute. */
static int32_t number(const lathe_node *n, const char *attribute, uint32_t i, int32_t otherwise)
{
    uint32_t count;
    const int64_t *list = lathe_node_ints(n, attribute, &count);
    return i < count ? (int32_t)list[i] : otherwise;
}

static int32_t extent(const lathe_graph_value *v, int32_t axis)
{
    const int64_t n = lathe_value_extent(v, axis);
    return n < INT32_MAX ? (int32_t)n : INT32_MAX;
}

static int32_t parts(int32_t n, int32_t size)
{
    return (n + size - 1) / size;
}

/* From the last value back: ReLU, requantization, bias, product; or ReLU, sum. NULL, or why not. */
static const char *read_nodes(const lathe_graph_value *y, layer *l)
{
    const lathe_node *n = maker(y);
    l->c.relu = is_op(n, "nn.relu");
    n = l->c.relu ? maker(lathe_node_input(n, 0)) : n;
    l->requantize = is_op(n, "qnn.requantize") ? n : NULL;
    n = l->requantize ? maker(lathe_node_input(n, 0)) : n;
    l->add = is_op(n, "add") ? n : NULL;
    for (uint32_t i = 0; l->add && i < 2; i++) {
        const lathe_graph_value *v = lathe_node_input(l->add, i);
        if (is_op(maker(v), "qnn.conv2d") || is_op(maker(v), "qnn.matmul")) {
            n = maker(v);
            l->bias = lathe_node_input(l->add, 1 - i);
        }
    }
    l->product = n;
    l->is_product = is_op(n, "qnn.matmul");
    l->is_sum = is_op(n, "qnn.add");
    if (!l->is_product && !l->is_sum && !is_op(n, "qnn.conv2d"))
        return "it is no product";
    l->x = lathe_node_input(n, 0);
    l->weights = lathe_node_input(n, l->is_sum ? 2 : 1);
    return NULL;
}

/* Operand i, a scale for all channels. NULL, or why it has none. */
static const char *read_scale(lathe_compiler *c, const layer *l, const lathe_node *n, uint32_t i, float *out)
{
    const lathe_graph_value *v = lathe_node_input(n, i);
    const float *data = l->g ? lathe_gen_constant(l->g, lathe_gen_outer(l->g, v)) : lathe_value_constant(c, v);
    if (!data || strcmp(lathe_value_dtype(v), "f32") != 0)
        return "its scales are not known, or not f32";
    *out = *data;
    return lathe_value_count(v) == 1 ? NULL : "each channel has a scale of its own: the accelerator has one";
}

static const char *read_scales(lathe_compiler *c, layer *l)
{
    const lathe_node *n = l->requantize;
    float from, to;
    l->c.scale = 1;
    l->c.wide = !n;
    if (!n)
        return NULL;
    if (lathe_node_input(n, 3) || strcmp(lathe_value_dtype(lathe_node_output(n, 0)), "i8") != 0)
        return "its result is not i8 without a zero point";
    const char *why = read_scale(c, l, n, 1, &from);
    why = why ? why : read_scale(c, l, n, 2, &to);
    l->c.scale = why ? 1 : from / to;
    return why;
}

static void read_product(layer *l)
{
    const int32_t rows = extent(l->x, 0);
    l->transposed = lathe_node_int(l->product, "transpose_b") != 0;
    l->c = (gemmini_conv){.images = 1, .height = 1, .width = rows, .channels = extent(l->x, 1), .out_height = 1,
                          .out_width = rows, .outs = extent(l->weights, l->transposed ? 0 : 1), .kernel_height = 1,
                          .kernel_width = 1, .stride = 1, .dilation = 1, .repeats = 1,
                          .relu = l->c.relu, .wide = l->c.wide, .scale = l->c.scale};
}

static const char *read_conv(layer *l)
{
    const lathe_node *n = l->product;
    const lathe_graph_value *x = l->x, *y = lathe_node_output(n, 0), *w = l->weights;
    const int64_t groups = lathe_node_int(n, "groups");
    gemmini_conv *v = &l->c;
    *v = (gemmini_conv){.images = extent(x, 0), .channels = extent(x, 1), .height = extent(x, 2), .width = extent(x, 3),
                        .outs = extent(y, 1), .out_height = extent(y, 2), .out_width = extent(y, 3),
                        .kernel_height = extent(w, 2), .kernel_width = extent(w, 3), .repeats = 1,
                        .stride = number(n, "strides", 0, 1), .dilation = number(n, "dilations", 0, 1),
                        .top = number(n, "pads", 0, 0), .left = number(n, "pads", 1, 0),
                        .relu = v->relu, .wide = v->wide, .scale = v->scale};
    v->separate = groups == v->channels && groups == v->outs && groups > 1;
    if (groups != 1 && !v->separate)
        return "it has groups: the accelerator takes one, or one for each channel";
    if (number(n, "strides", 1, 1) != v->stride || number(n, "dilations", 1, 1) != v->dilation)
        return "its strides or dilations are not the same along both axes";
    if (v->kernel_height * v->kernel_width == 1 && v->stride == 1 && v->height == v->out_height &&
        v->width == v->out_width && !v->top && !v->left) { /* lines do not matter */
        v->width = v->out_width = (int32_t)((int64_t)v->height * v->width > 65535 ? INT32_MAX : v->height * v->width);
        v->height = v->out_height = 1;
    }
    /* Few channels: neighboring taps of a line share 16 rows of weights. */
    if (!v->separate && v->dilation == 1 && v->channels > 0 && v->channels <= 8)
        v->repeats = gemmini_min(v->kernel_width, 16 / v->channels);
    return NULL;
}

/* --- sums of two quantized values --- */

static float rounded(float x)
{
    return x >= 127 ? 127 : x > -128 ? rintf(x) : -128;
}

/* Whether (a * A + b * B) * m is what the CPU has for each a and b: in steps (two numbers are added and divided), or
 * with the scales by that of the result, as kernels of onnxruntime do. */
static bool is_sum(const float scales[3], bool in_steps, int32_t A, int32_t B, float m)
{
    const float ra = scales[0] / scales[2], rb = scales[1] / scales[2];
    for (int32_t a = -128; a < 128; a++)
        for (int32_t b = -128; b < 128; b++) {
            const float left = (float)a * scales[0], right = (float)b * scales[1], second = (float)b * rb;
            const float sum = left + right, cpu = in_steps ? sum / scales[2] : fmaf((float)a, ra, second);
            const float own = (float)(a * A + b * B) * m;
            if (rounded(cpu) != rounded(own))
                return false;
        }
    return true;
}

/* An image of two lines, the operands, by a depthwise kernel of 2 x 1, integers whose ratio is that of the scales. */
static const char *read_sum(lathe_compiler *c, layer *l)
{
    const lathe_node *n = l->product;
    const int64_t count = lathe_value_count(l->x);
    float scales[3];
    for (uint32_t i = 0; i < 3; i++) {
        const char *why = read_scale(c, l, n, i == 2 ? 4 : 2 * i + 1, &scales[i]);
        if (why || lathe_node_input(n, 5 + i))
            return why ? why : "it has zero points";
    }
    if (count != lathe_value_count(l->weights) || count != lathe_value_count(lathe_node_output(n, 0)) || count < 1)
        return "an operand is smaller than the result";
    for (int32_t b = 1; b < 128 && !l->factors[0]; b++) {
        const float a = rintf(scales[0] / scales[1] * (float)b);
        const float m = scales[0] / scales[2] / a;
        if (a >= 1 && a < 128 && is_sum(scales, lathe_node_int(n, "in_steps") != 0, (int32_t)a, b, m)) {
            l->factors[0] = (int8_t)a;
            l->factors[1] = (int8_t)b;
            l->c.scale = m;
        }
    }
    int32_t side = 64; /* by side: channels that divide the numbers */
    while (count % side != 0)
        side--;
    const int32_t width = count / side > 65535 ? INT32_MAX : (int32_t)(count / side);
    l->c = (gemmini_conv){.images = 1, .height = 2, .width = width, .channels = side, .out_height = 1,
                          .out_width = width, .outs = side, .kernel_height = 2, .kernel_width = 1, .stride = 1,
                          .dilation = 1, .repeats = 1, .separate = 1, .relu = l->c.relu, .scale = l->c.scale};
    return l->factors[0] ? NULL : "some of its sums would be rounded in another way";
}

/* --- tiles --- */

static int32_t entries_for(const gemmini_conv *l, int32_t blocks)
{
    return l->kernel_height * parts(l->kernel_width, l->repeats) * blocks;
}

/* Cycles of a tile: entries along K, each with new weights for every 16 output channels, 16 cycles for the first piece
 * and max(rows, 4) for each other one, as the hardware's controller has it; or bytes that the bus brings. */
static double tile_cost(const gemmini_conv *l, int32_t height, int32_t width, int32_t outs, bool keeps_weights)
{
    const int32_t k = entries_for(l, gemmini_all_blocks(l)), rest = width % 16;
    const int32_t line = width / 16 * 16 + (rest ? (rest < 4 ? 4 : rest) : 0);
    const int32_t first = width < 16 ? (rest < 4 ? 4 : rest) : 16;
    const double cycles = (double)(k * parts(outs, 16)) * (double)(16 + height * line - first);
    const double data = (double)gemmini_span(l, height, l->kernel_height) * gemmini_span(l, width, l->kernel_width) *
                        (l->separate ? outs : l->channels);
    const double weights = keeps_weights ? 0 : (double)k * 16 * outs;
    const double bias = 4.0 * height * parts(width, 16) * outs;
    const double bus = (data + weights + (double)height * width * outs + bias) / BUS_BYTES;
    return (cycles > bus ? cycles : bus) + bus / 1000; /* of equal ones that with less to load */
}

/* All tiles of that size: whole ones, and those at the ends. */
static double layer_cost(const gemmini_conv *l)
{
    const bool keeps = l->separate || l->tile_blocks >= gemmini_all_blocks(l);
    const int32_t extents[3] = {l->out_height, l->out_width, l->outs};
    const int32_t sizes[3] = {l->tile_height, l->tile_width, l->tile_outs};
    double all = 0;
    for (uint32_t end = 0; end < 8; end++) {
        double n = (double)l->images;
        int32_t size[3];
        for (uint32_t i = 0; i < 3; i++) {
            const bool is_end = end >> i & 1;
            size[i] = is_end ? extents[i] % sizes[i] : sizes[i];
            n *= is_end ? extents[i] % sizes[i] != 0 : (double)(extents[i] / sizes[i]);
        }
        if (n > 0)
            all += n * tile_cost(l, size[0], size[1], size[2], keeps);
    }
    return all;
}

/* How many blocks of input channels a step of that tile has room for; 0: none. */
static int32_t blocks_for(const gemmini_conv *l)
{
    const int32_t outs = parts(l->tile_outs, 16), pieces = l->tile_height * parts(l->tile_width, 16);
    const int32_t weights = GEMMINI_BANK / (entries_for(l, 1) * outs * 16);
    const int64_t lines = gemmini_span(l, l->tile_height, l->kernel_height);
    const int32_t data = (int32_t)((GEMMINI_BANK - l->repeats) / (lines * gemmini_line(l)));
    if (pieces > GEMMINI_MOST_PIECES / outs || (l->separate && data < outs))
        return 0;
    return l->separate ? (weights > 0) : gemmini_min(gemmini_min(data, weights), gemmini_all_blocks(l));
}

static bool choose_tile(gemmini_conv *l)
{
    gemmini_conv best = *l;
    double least = 0;
    for (l->tile_outs = 16; l->tile_outs <= 64; l->tile_outs += 16)
        for (int32_t width = 16; width < gemmini_min(l->out_width, 512) + 16; width += 16)
            for (l->tile_height = 1; l->tile_height <= gemmini_min(l->out_height, 32); l->tile_height++) {
                l->tile_width = gemmini_min(width, l->out_width);
                l->tile_blocks = blocks_for(l);
                const double cost = l->tile_blocks > 0 ? layer_cost(l) : 0;
                if (l->tile_blocks > 0 && (least <= 0 || cost < least)) {
                    best = *l;
                    least = cost;
                }
            }
    *l = best;
    return least > 0;
}

/* NULL, or why the accelerator does not take what ends in y. */
static const char *read_layer(lathe_compiler *c, const lathe_gen *g, const lathe_graph_value *y, layer *l)
{
    *l = (layer){.g = g, .c = {.repeats = 1}};
    const char *why = read_nodes(y, l);
    why = why ? why : read_scales(c, l);
    if (!why && l->is_product)
        read_product(l);
    else if (!why)
        why = l->is_sum ? read_sum(c, l) : read_conv(l);
    const gemmini_conv *v = &l->c;
    if (why)
        return why;
    if (l->bias && lathe_value_count(l->bias) != v->outs)
        return "it adds something else than a number for each channel";
    if (v->images < 1 || v->channels < 1 || v->outs < 1 || v->out_height < 1 || v->out_width < 1)
        return "it has no elements";
    if (v->channels > 65535 || v->outs > 65535 || v->width > 65535 || v->height > 65535 || v->stride > 255 ||
        v->kernel_height > 255 || v->kernel_width > 255)
        return "its extents are too large";
    return choose_tile(&l->c) ? NULL : "no tile of it fits into the scratchpad";
}

/* --- writing a layer --- */

/* Whether an image is turned: it crosses the border of its function, and the order matters. */
static bool is_turned(const lathe_gen *g, const lathe_graph_value *v)
{
    bool outside = !lathe_value_node(v);
    for (uint32_t i = 0; i < lathe_gen_funcs(g); i++)
        for (uint32_t k = 0; k < lathe_func_results(lathe_gen_func(g, i)); k++)
            outside |= lathe_func_result(lathe_gen_func(g, i), k) == v;
    return outside && lathe_value_rank(v) == 4 && extent(v, 1) > 1 && lathe_value_extent(v, 2) * extent(v, 3) > 1;
}

static void turn(lathe_gen *g, const char *to, const char *from, const lathe_graph_value *v, bool in)
{
    const long long channels = lathe_value_extent(v, 1), pixels = lathe_value_extent(v, 2) * lathe_value_extent(v, 3);
    lathe_gen_line(g, "gemmini_turn(%s, %s, %lld, %lld, %lld);", to, from, (long long)lathe_value_extent(v, 0),
                   in ? channels : pixels, in ? pixels : channels);
}

/* Where an operand lies in NHWC. */
static const char *operand(lathe_gen *g, const lathe_graph_value *v)
{
    v = lathe_gen_outer(g, v);
    const char *name = lathe_gen_name(g, v);
    if (!is_turned(g, v))
        return name;
    const char *to = lathe_gen_scratch(g, (size_t)lathe_value_count(v));
    turn(g, to, name, v, true);
    return to;
}

/* Writes a check that `call`, with a place for the result in it, returns 0, and brings the result to where the node
 * has it. */
static bool finish(lathe_gen *g, const lathe_node *n, const char *call)
{
    const lathe_graph_value *v = lathe_node_output(n, 0);
    const bool turned = is_turned(g, v);
    const char *name = lathe_gen_name(g, v);
    const char *to = turned ? lathe_gen_scratch(g, (size_t)lathe_value_count(v)) : name;
    lathe_gen_check(g, lathe_gen_text(g, "%s, %s) == 0", call, to), -1);
    if (turned)
        turn(g, name, to, v, false);
    return true;
}

/* Weights HWIO, of which rows of 16 input channels are read. */
static bool move_weights(lathe_gen *g, const layer *l)
{
    const int64_t o = l->c.outs, i = lathe_value_extent(l->weights, 1), w = l->c.kernel_width;
    const int64_t conv[4] = {1, o, w * i * o, i * o}, product[2] = {1, o};
    return l->is_product ? !l->transposed || lathe_gen_move(g, l->weights, product)
                         : lathe_gen_move(g, l->weights, conv);
}

static bool write_layer(lathe_gen *g, const lathe_node *n, const layer *l)
{
    const gemmini_conv *c = &l->c;
    if (!l->is_sum && !move_weights(g, l))
        return false;
    int8_t factors[128];
    for (int32_t i = 0; l->is_sum && i < 2 * c->outs; i++)
        factors[i] = l->factors[i >= c->outs];
    const char *x = operand(g, l->x), *second = l->is_sum ? operand(g, l->weights) : "NULL";
    const char *w = l->is_sum ? lathe_gen_table(g, "factors", "i8", factors, 2 * c->outs)
                              : lathe_gen_name(g, l->weights);
    const int taps = c->kernel_height * c->kernel_width;
    if (c->separate)
        w = lathe_gen_text(g, "gemmini_diagonal(%s, %s, %d, %d)",
                           lathe_gen_scratch(g, (size_t)taps * 16 * (size_t)c->outs), w, taps, c->outs);
    const char *numbers = lathe_gen_text(
        g, "&(const gemmini_conv){%d, %d, %d, %d, %d, %d, %d, .kernel_height = %d, .kernel_width = %d, .stride = %d, "
           ".dilation = %d, .top = %d, .left = %d,\n"
           "        .repeats = %d, .separate = %d, .relu = %d, .wide = %d, .second = %s, .scale = %aF,\n"
           "        .tile_height = %d, .tile_width = %d, .tile_outs = %d, .tile_blocks = %d}",
        c->images, c->height, c->width, c->channels, c->out_height, c->out_width, c->outs, c->kernel_height,
        c->kernel_width, c->stride, c->dilation, c->top, c->left, c->repeats, c->separate, c->relu, c->wide, second,
        (double)c->scale, c->tile_height, c->tile_width, c->tile_outs, c->tile_blocks);
    return finish(g, n, lathe_gen_text(g, "gemmini_run_conv(%s,\n        %s, %s, %s", numbers, x, w,
                                       l->bias ? lathe_gen_name(g, l->bias) : "NULL"));
}

/* --- max pools --- */

static const char *read_pool(const lathe_node *n, gemmini_pool *p)
{
    const lathe_graph_value *x = lathe_node_input(n, 0), *y = lathe_node_output(n, 0);
    *p = (gemmini_pool){.images = extent(x, 0), .height = extent(x, 2), .width = extent(x, 3), .channels = extent(x, 1),
                        .out_height = extent(y, 2), .out_width = extent(y, 3), .size = number(n, "pool_size", 0, 1),
                        .stride = number(n, "strides", 0, 1), .top = number(n, "pads", 0, 0),
                        .left = number(n, "pads", 1, 0)};
    if (number(n, "pool_size", 1, 1) != p->size || number(n, "strides", 1, 1) != p->stride || p->size > 3 ||
        p->stride > 3 || p->top > 3 || p->left > 3)
        return "its windows are not square, or larger than 3 x 3";
    p->lines = (GEMMINI_BANK / 4 / (p->width ? p->width : 1) - p->size) / p->stride + 1;
    p->lines = gemmini_min(gemmini_min(p->lines, p->out_height), (255 - p->size) / p->stride + 1);
    return p->width > 255 || p->out_width > 255 || p->lines < 1 || p->out_height < 1 ? "its image is too wide" : NULL;
}

static bool write_pool(lathe_gen *g, const lathe_node *n)
{
    gemmini_pool p;
    const char *why = read_pool(n, &p), *from = operand(g, lathe_node_input(n, 0));
    if (why)
        return lathe_gen_decline(g, "%s", why);
    return finish(g, n, lathe_gen_text(g, "gemmini_run_pool(&(const gemmini_pool){%d, %d, %d, %d, %d, %d, "
                                       ".size = %d, .stride = %d, .top = %d, .left = %d, .lines = %d}, %s",
                                       p.images, p.height, p.width, p.channels, p.out_height, p.out_width, p.size,
                                       p.stride, p.top, p.left, p.lines, from));
}

/* --- the row --- */

static const char *check_layer(lathe_compiler *c, uint32_t n, lathe_graph_value *const *values)
{
    layer l;
    return n == 1 && values[0] ? read_layer(c, NULL, values[0], &l) : "gemmini_layer takes one value";
}

/* A border of zeros is as good as none behind a ReLU only. */
static const char *check_pool(lathe_compiler *c, uint32_t n, lathe_graph_value *const *values)
{
    gemmini_pool p;
    const lathe_node *pool = n == 1 ? maker(values[0]) : NULL;
    const lathe_node *before = pool ? maker(lathe_node_input(pool, 0)) : NULL;
    const lathe_func *f = before ? lathe_node_composite(before) : NULL;
    const char *why = pool ? read_pool(pool, &p) : "gemmini_pool takes one value";
    (void)c;
    if (why || is_op(f ? maker(lathe_func_result(f, 0)) : before, "nn.relu"))
        return why;
    return p.top == 0 && p.left == 0 && (p.out_height - 1) * p.stride + p.size <= p.height &&
                   (p.out_width - 1) * p.stride + p.size <= p.width
               ? NULL : "its border counts as 0 on the accelerator, and its image may have numbers below that";
}

static bool begin(lathe_gen *g)
{
    lathe_gen_library_header(g, "gemmini.h", "it is in examples/gemmini of Lathe's tree: CPU=-I.../examples/gemmini");
    return true;
}

static bool node(lathe_gen *g, const lathe_node *n)
{
    layer l;
    const lathe_func *f = lathe_node_composite(n);
    if (is_op(n, "nn.max_pool2d"))
        return write_pool(g, n);
    if (!f)
        return lathe_gen_decline(g, "Gemmini has no %s", lathe_node_op(n));
    const char *why = read_layer(lathe_gen_compiler(g), g, lathe_func_result(f, 0), &l);
    return why ? lathe_gen_decline(g, "%s", why) : write_layer(g, n, &l);
}

#define CONV  " %c = qnn.conv2d(%x, %w) {data_layout = \"NCHW\", out_layout = \"NCHW\", kernel_layout = \"OIHW\"}"
#define DENSE " %c = qnn.matmul(%x, %w) {transpose_a = 0, weight_layout = \"KN\"} : i32"
#define EVEN  "rounding = \"nearest_even\", method = \"float\" | \"integer\"}"
#define END   " %y = optional nn.relu(%q) return %y } where static(%x), gemmini_layer(%y)\n"
#define ROUND(sums) " %q = qnn.requantize(" sums ", *) {" EVEN END
#define IMAGES "(%x: i8[_, _, _, _], %w: constant i8[_, _, _, _]"
#define ROWS   "(%x: i8[_, _], %w: constant i8[_, _]"
#define BIAS   " %s = add(%c, %b)"

static const char patterns[] =
    "pattern gemmini.conv2d" IMAGES ", %b: constant i32) {" CONV BIAS ROUND("%s")
    "pattern gemmini.dense" ROWS ", %b: constant i32) {" DENSE BIAS ROUND("%s")
    "pattern gemmini.conv2d" IMAGES ") {" CONV ROUND("%c")
    "pattern gemmini.dense" ROWS ") {" DENSE ROUND("%c")
    "pattern gemmini.sums" ROWS ", %b: constant i32) {" DENSE BIAS " return %s } where static(%x), gemmini_layer(%s)\n"
    "pattern gemmini.sums" ROWS ") {" DENSE " return %c } where static(%x), gemmini_layer(%c)\n"
    "pattern gemmini.add(%x: i8[_, _, _, _], %s: constant f32, %w: i8[_, _, _, _]) {"
    " %q = qnn.add(%x, %s, %w, *) {minus = 0, " EVEN END
    "operator gemmini.max_pool2d(%x: i8[_, _, _, _]) { %y = nn.max_pool2d(%x) {data_layout = \"NCHW\", dilations = 1}"
    " return %y } where static(%x), gemmini_pool(%y)\n";

bool lathe_register_codegen(lathe_compiler *c, int api)
{
    static const lathe_numbers numbers = {.with_sign = true, .one_scale = true, .sum_scale = true};
    static const lathe_check checks[] = {{"gemmini_layer", check_layer}, {"gemmini_pool", check_pool}, {NULL, NULL}};
    static const lathe_codegen own = {.api = LATHE_CODEGEN_API, .name = "gemmini", .patterns = patterns,
                                      .checks = checks, .numbers = &numbers, .ldflags = "-lgemmini -lm",
                                      .begin = begin, .node = node};
    return api == LATHE_CODEGEN_API && lathe_register(c, &own);
}
