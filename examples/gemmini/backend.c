/* SPDX-License-Identifier: Apache-2.0 */
/* A back end for Gemmini: parts of models that `lathe quantize --for gemmini` makes become calls of gemmini.h.
 *
 * It takes convolutions (also depthwise), products and max pools of int8 without zero points and with one scale for the
 * weights. Then an element is what the CPU computes, bit for bit: a sum of int32, as a float times m = f32(x_scale /
 * y_scale), to the nearest integer with ties to even. All else stays on the CPU, sums of two quantized values too: the
 * accelerator would round each of them. Inside of a region images lie in NHWC; at its border they are turned.
 *
 * Tiles come from a search (choose_tile): a tile costs the cycles of the array, or those of the bus where they are
 * more. See gemmini.h for how a layer runs, and device.h for what the model of the accelerator checks. */
#include "lathe/codegen.h"

#include <string.h>

#define BANK 4096  /* rows of the scratchpad for the data of a step, and for its weights */
#define SUM_ROWS 512 /* of a tile, in one bank of the accumulator */
#define BUS_BYTES 16 /* per cycle */

/* --- reading a layer --- */

typedef struct layer {
    const lathe_node *product, *add, *requantize; /* qnn.conv2d or qnn.matmul; NULL: there is none */
    const lathe_graph_value *x, *weights, *bias;
    int64_t images, height, width, channels, out_height, out_width, outs;
    int64_t kernel_height, kernel_width, stride, dilation, top, left, repeats;
    bool relu, separate, is_product, transposed;
    float scale;
    int64_t tile_height, tile_width, tile_outs, tile_blocks;
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
static int64_t number(const lathe_node *n, const char *attribute, uint32_t i, int64_t otherwise)
{
    uint32_t count;
    const int64_t *list = lathe_node_ints(n, attribute, &count);
    return i < count ? list[i] : otherwise;
}

static int64_t smaller(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static int64_t parts(int64_t n, int64_t size)
{
    return (n + size - 1) / size;
}

/* From the last value back: ReLU, requantization, bias, product. NULL, or why not. */
static const char *read_nodes(const lathe_graph_value *y, layer *l)
{
    const lathe_node *n = maker(y);
    l->relu = is_op(n, "nn.relu");
    n = l->relu ? maker(lathe_node_input(n, 0)) : n;
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
    if (!l->is_product && !is_op(n, "qnn.conv2d"))
        return "it is no product";
    l->x = lathe_node_input(n, 0);
    l->weights = lathe_node_input(n, 1);
    return NULL;
}

static const char *read_scale(lathe_compiler *c, layer *l)
{
    const lathe_node *n = l->requantize;
    l->scale = 1;
    if (!n)
        return NULL;
    if (lathe_node_input(n, 3) || strcmp(lathe_value_dtype(lathe_node_output(n, 0)), "i8") != 0)
        return "its result is not i8 without a zero point";
    const float *from = lathe_value_constant(c, lathe_node_input(n, 1));
    const float *to = lathe_value_constant(c, lathe_node_input(n, 2));
    if (strcmp(lathe_value_dtype(lathe_node_input(n, 1)), "f32") != 0 || !from || !to)
        return "its scales are not known, or not f32";
    if (lathe_value_count(lathe_node_input(n, 1)) != 1)
        return "each channel has a scale of its own: the accelerator has one";
    l->scale = *from / *to;
    return NULL;
}

static void read_product(layer *l)
{
    l->transposed = lathe_node_int(l->product, "transpose_b") != 0;
    l->images = l->height = l->out_height = l->kernel_height = l->kernel_width = l->stride = l->dilation = 1;
    l->width = l->out_width = lathe_value_extent(l->x, 0);
    l->channels = lathe_value_extent(l->x, 1);
    l->outs = lathe_value_extent(l->weights, l->transposed ? 0 : 1);
}

static const char *read_conv(layer *l)
{
    const lathe_node *n = l->product;
    const lathe_graph_value *y = lathe_node_output(n, 0);
    const int64_t groups = lathe_node_int(n, "groups");
    l->images = lathe_value_extent(l->x, 0);
    l->channels = lathe_value_extent(l->x, 1);
    l->height = lathe_value_extent(l->x, 2);
    l->width = lathe_value_extent(l->x, 3);
    l->outs = lathe_value_extent(y, 1);
    l->out_height = lathe_value_extent(y, 2);
    l->out_width = lathe_value_extent(y, 3);
    l->kernel_height = lathe_value_extent(l->weights, 2);
    l->kernel_width = lathe_value_extent(l->weights, 3);
    l->stride = number(n, "strides", 0, 1);
    l->dilation = number(n, "dilations", 0, 1);
    l->top = number(n, "pads", 0, 0);
    l->left = number(n, "pads", 1, 0);
    l->separate = groups == l->channels && groups == l->outs && groups > 1;
    if (groups != 1 && !l->separate)
        return "it has groups: the accelerator takes one, or one for each channel";
    if (number(n, "strides", 1, 1) != l->stride || number(n, "dilations", 1, 1) != l->dilation)
        return "its strides or dilations are not the same along both axes";
    if (l->kernel_height * l->kernel_width == 1 && l->stride == 1 && l->height == l->out_height &&
        l->width == l->out_width && !l->top && !l->left) { /* lines do not matter */
        l->width = l->out_width = l->height * l->width;
        l->height = l->out_height = 1;
    }
    /* Few channels: neighboring taps of a line share 16 rows of weights. */
    if (!l->separate && l->dilation == 1 && l->channels <= 8)
        l->repeats = smaller(l->kernel_width, 16 / l->channels);
    return NULL;
}

/* --- tiles --- */

static int64_t span(const layer *l, int64_t pixels, int64_t taps)
{
    return (pixels - 1) * l->stride + (taps - 1) * l->dilation + 1;
}

static int64_t entries_for(const layer *l, int64_t blocks)
{
    return l->kernel_height * parts(l->kernel_width, l->repeats) * blocks;
}

/* Cycles of a tile: entries along K, each with new weights for every 16 output channels, 16 cycles for the first piece
 * and max(rows, 4) for each other one, as the hardware's controller has it; or bytes that the bus brings. */
static double tile_cost(const layer *l, int64_t height, int64_t width, int64_t outs, bool keeps_weights)
{
    const int64_t blocks = l->separate ? 1 : parts(l->channels, 16), k = entries_for(l, blocks), rest = width % 16;
    const int64_t line = width / 16 * 16 + (rest ? (rest < 4 ? 4 : rest) : 0);
    const int64_t first = width < 16 ? (rest < 4 ? 4 : rest) : 16;
    const double cycles = (double)(k * parts(outs, 16)) * (double)(16 + height * line - first);
    const int64_t data = span(l, height, l->kernel_height) * span(l, width, l->kernel_width) *
                         (l->separate ? outs : l->channels);
    const int64_t weights = keeps_weights ? 0 : k * 16 * outs;
    const int64_t bias = 4 * height * parts(width, 16) * outs;
    const double bus = (double)(data + weights + height * width * outs + bias) / BUS_BYTES;
    return (cycles > bus ? cycles : bus) + bus / 1000; /* of equal ones that with less to load */
}

/* All tiles of that size: whole ones, and those at the ends. */
static double layer_cost(const layer *l)
{
    const bool keeps = l->separate || l->tile_blocks >= parts(l->channels, 16);
    const int64_t extents[3] = {l->out_height, l->out_width, l->outs};
    const int64_t sizes[3] = {l->tile_height, l->tile_width, l->tile_outs};
    double all = 0;
    for (uint32_t end = 0; end < 8; end++) {
        double n = (double)l->images;
        int64_t size[3];
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
static int64_t blocks_for(const layer *l)
{
    const int64_t outs = parts(l->tile_outs, 16), pieces = l->tile_height * parts(l->tile_width, 16);
    const int64_t area = span(l, l->tile_height, l->kernel_height) * span(l, l->tile_width, l->kernel_width);
    const int64_t data = (BANK - l->repeats) / area, weights = BANK / (entries_for(l, 1) * outs * 16);
    if (pieces * outs * 16 > SUM_ROWS || (l->separate && data < outs))
        return 0;
    return l->separate ? (weights > 0) : smaller(smaller(data, weights), parts(l->channels, 16));
}

static bool choose_tile(layer *l)
{
    layer best = *l;
    double least = 0;
    for (l->tile_outs = 16; l->tile_outs <= 64; l->tile_outs += 16)
        for (l->tile_width = smaller(16, l->out_width);; l->tile_width = smaller(l->tile_width + 16, l->out_width)) {
            for (l->tile_height = 1; l->tile_height <= smaller(l->out_height, 32); l->tile_height++) {
                l->tile_blocks = blocks_for(l);
                const double cost = l->tile_blocks > 0 ? layer_cost(l) : 0;
                if (l->tile_blocks > 0 && (least <= 0 || cost < least)) {
                    best = *l;
                    least = cost;
                }
            }
            if (l->tile_width == l->out_width || l->tile_width >= SUM_ROWS)
                break;
        }
    *l = best;
    return least > 0;
}

/* NULL, or why the accelerator does not take what ends in y. */
static const char *read_layer(lathe_compiler *c, const lathe_graph_value *y, layer *l)
{
    memset(l, 0, sizeof *l);
    l->repeats = 1;
    const char *why = read_nodes(y, l);
    why = why ? why : read_scale(c, l);
    if (!why && l->is_product)
        read_product(l);
    else if (!why)
        why = read_conv(l);
    if (why)
        return why;
    if (l->bias && lathe_value_count(l->bias) != l->outs)
        return "it adds something else than a number for each channel";
    if (l->images < 1 || l->channels < 1 || l->outs < 1 || l->out_height < 1 || l->out_width < 1)
        return "it has no elements";
    if (l->channels > 65535 || l->outs > 65535 || l->width > 65535 || l->stride > 255)
        return "its extents are too large";
    return choose_tile(l) ? NULL : "no tile of it fits into the scratchpad";
}

/* --- writing a layer --- */

/* The function that the node is in. */
static const lathe_func *func_of(const lathe_gen *g, const lathe_node *n)
{
    for (uint32_t i = 0; i < lathe_gen_funcs(g); i++)
        for (uint32_t k = 0; k < lathe_func_nodes(lathe_gen_func(g, i)); k++)
            if (lathe_func_node(lathe_gen_func(g, i), k) == n)
                return lathe_gen_func(g, i);
    return NULL;
}

/* Whether an image is turned for the node n: it crosses the border of the function, and the order matters. */
static bool is_turned(const lathe_gen *g, const lathe_node *n, const lathe_graph_value *v)
{
    const lathe_func *f = func_of(g, n);
    bool outside = !lathe_value_node(v);
    for (uint32_t i = 0; i < lathe_func_results(f); i++)
        outside |= lathe_func_result(f, i) == v;
    return outside && lathe_value_rank(v) == 4 && lathe_value_extent(v, 1) > 1 &&
           lathe_value_extent(v, 2) * lathe_value_extent(v, 3) > 1;
}

static void turn(lathe_gen *g, const char *to, const char *from, const lathe_graph_value *v, bool in)
{
    const long long channels = lathe_value_extent(v, 1), pixels = lathe_value_extent(v, 2) * lathe_value_extent(v, 3);
    lathe_gen_line(g, "gemmini_turn(%s, %s, %lld, %lld, %lld);", to, from, (long long)lathe_value_extent(v, 0),
                   in ? channels : pixels, in ? pixels : channels);
}

/* Where an operand lies in NHWC. */
static const char *operand(lathe_gen *g, const lathe_node *n, const lathe_graph_value *v)
{
    v = lathe_gen_outer(g, v);
    const char *name = lathe_gen_name(g, v);
    if (!is_turned(g, n, v))
        return name;
    const char *to = lathe_gen_scratch(g, (size_t)lathe_value_count(v));
    turn(g, to, name, v, true);
    return to;
}

/* Writes a check that `call`, with a place for the result in it, returns 0, and brings the result to where the node
 * has it. */
static void finish(lathe_gen *g, const lathe_node *n, const char *call)
{
    const lathe_graph_value *v = lathe_node_output(n, 0);
    const bool turned = is_turned(g, n, v);
    const char *name = lathe_gen_name(g, v);
    const char *to = turned ? lathe_gen_scratch(g, (size_t)lathe_value_count(v)) : name;
    lathe_gen_check(g, lathe_gen_text(g, "%s, %s) == 0", call, to), -1);
    if (turned)
        turn(g, name, to, v, false);
}

/* Weights HWIO, of which rows of 16 input channels are read. */
static bool move_weights(lathe_gen *g, const layer *l)
{
    const int64_t o = l->outs, i = lathe_value_extent(l->weights, 1), w = l->kernel_width;
    const int64_t conv[4] = {1, o, w * i * o, i * o}, product[2] = {1, o};
    return l->is_product ? !l->transposed || lathe_gen_move(g, l->weights, product)
                         : lathe_gen_move(g, l->weights, conv);
}

static bool write_layer(lathe_gen *g, const lathe_node *n, const layer *l)
{
    if (!move_weights(g, l))
        return false;
    const char *x = operand(g, n, l->x), *w = lathe_gen_name(g, l->weights);
    const long long taps = (long long)(l->kernel_height * l->kernel_width);
    if (l->separate)
        w = lathe_gen_text(g, "gemmini_diagonal(%s, %s, %lld, %lld)",
                           lathe_gen_scratch(g, (size_t)taps * 16 * (size_t)l->outs), w, taps, (long long)l->outs);
#define INT(member) (long long)l->member
    const char *numbers = lathe_gen_text(
        g, "&(const gemmini_conv){%lld, %lld, %lld, %lld, %lld, %lld, %lld, .kernel_height = %lld, "
           ".kernel_width = %lld, .stride = %lld, .dilation = %lld, .top = %lld, .left = %lld,\n"
           "        .repeats = %lld, .separate = %d, "
           ".relu = %d, .wide = %d, .scale = %aF, .tile_height = %lld, .tile_width = %lld, .tile_outs = %lld, "
           ".tile_blocks = %lld}",
        INT(images), INT(height), INT(width), INT(channels), INT(out_height), INT(out_width), INT(outs),
        INT(kernel_height), INT(kernel_width), INT(stride), INT(dilation), INT(top), INT(left), INT(repeats),
        l->separate, l->relu, !l->requantize, (double)l->scale, INT(tile_height), INT(tile_width), INT(tile_outs),
        INT(tile_blocks));
    finish(g, n, lathe_gen_text(g, "gemmini_run_conv(%s,\n        %s, %s, %s", numbers, x, w,
                                l->bias ? lathe_gen_name(g, l->bias) : "NULL"));
    return true;
}

/* --- max pools --- */

typedef struct pool {
    int64_t size, stride, top, left, lines, height, width, out_height, out_width;
} pool;

/* Whether a value is the result of a ReLU, so that a border of zeros is as good as none. */
static bool is_positive(const lathe_graph_value *v)
{
    const lathe_node *n = maker(v);
    const lathe_func *f = n ? lathe_node_composite(n) : NULL;
    return is_op(f ? maker(lathe_func_result(f, 0)) : n, "nn.relu");
}

static const char *read_pool(const lathe_node *n, pool *p)
{
    const lathe_graph_value *x = lathe_node_input(n, 0), *y = lathe_node_output(n, 0);
    *p = (pool){.size = number(n, "pool_size", 0, 1), .stride = number(n, "strides", 0, 1),
                .top = number(n, "pads", 0, 0), .left = number(n, "pads", 1, 0), .height = lathe_value_extent(x, 2),
                .width = lathe_value_extent(x, 3), .out_height = lathe_value_extent(y, 2),
                .out_width = lathe_value_extent(y, 3)};
    if (number(n, "pool_size", 1, 1) != p->size || number(n, "strides", 1, 1) != p->stride || p->size > 3 ||
        p->stride > 3 || p->top > 3 || p->left > 3)
        return "its windows are not square, or larger than 3 x 3";
    p->lines = (BANK / 4 / (p->width ? p->width : 1) - p->size) / p->stride + 1;
    p->lines = smaller(smaller(p->lines, p->out_height), (255 - p->size) / p->stride + 1);
    return p->width > 255 || p->out_width > 255 || p->lines < 1 || p->out_height < 1 ? "its image is too wide" : NULL;
}

static bool write_pool(lathe_gen *g, const lathe_node *n)
{
    pool p;
    const lathe_graph_value *x = lathe_node_input(n, 0);
    const char *why = read_pool(n, &p), *from = operand(g, n, x);
    if (why)
        return lathe_gen_decline(g, "%s", why);
    finish(g, n, lathe_gen_text(g, "gemmini_run_pool(&(const gemmini_pool){%lld, %lld, %lld, %lld, %lld, %lld, "
                                ".size = %lld, .stride = %lld, .top = %lld, .left = %lld, .lines = %lld}, %s",
                                (long long)lathe_value_extent(x, 0), (long long)p.height, (long long)p.width,
                                (long long)lathe_value_extent(x, 1), (long long)p.out_height, (long long)p.out_width,
                                (long long)p.size, (long long)p.stride, (long long)p.top, (long long)p.left,
                                (long long)p.lines, from));
    return true;
}

/* --- the row --- */

static const char *check_layer(lathe_compiler *c, uint32_t n, lathe_graph_value *const *values)
{
    layer l;
    return n == 1 && values[0] ? read_layer(c, values[0], &l) : "gemmini_layer takes one value";
}

static const char *check_pool(lathe_compiler *c, uint32_t n, lathe_graph_value *const *values)
{
    pool p;
    const lathe_node *node = n == 1 ? maker(values[0]) : NULL;
    (void)c;
    if (!node)
        return "gemmini_pool takes one value";
    const char *why = read_pool(node, &p);
    const bool inside = p.top == 0 && p.left == 0 && (p.out_height - 1) * p.stride + p.size <= p.height &&
                        (p.out_width - 1) * p.stride + p.size <= p.width;
    return why || inside || is_positive(lathe_node_input(node, 0))
               ? why : "its border counts as 0 on the accelerator, and its image may have numbers below that";
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
    const char *why = read_layer(lathe_gen_compiler(g), lathe_func_result(f, 0), &l);
    return why ? lathe_gen_decline(g, "%s", why) : write_layer(g, n, &l);
}

#define CONV                                                                                                          \
    " %c = qnn.conv2d(%x, %w) {data_layout = \"NCHW\", out_layout = \"NCHW\", kernel_layout = \"OIHW\"}"
#define DENSE " %c = qnn.matmul(%x, %w) {transpose_a = 0, weight_layout = \"KN\"} : i32"
#define ROUND                                                                                                         \
    " %q = qnn.requantize(%s, *) {rounding = \"nearest_even\", method = \"float\" | \"integer\"}"                     \
    " %y = optional nn.relu(%q) return %y } where static(%x), gemmini_layer(%y)\n"
#define IMAGES "(%x: i8[_, _, _, _], %w: constant i8[_, _, _, _]"
#define ROWS   "(%x: i8[_, _], %w: constant i8[_, _]"
#define BIAS   " %s = add(%c, %b)"

static const char patterns[] =
    "pattern gemmini.conv2d" IMAGES ", %b: constant i32) {" CONV BIAS ROUND
    "pattern gemmini.dense" ROWS ", %b: constant i32) {" DENSE BIAS ROUND
    "pattern gemmini.conv2d" IMAGES ") { %s = qnn.conv2d(%x, %w) {data_layout = \"NCHW\", out_layout = \"NCHW\","
    " kernel_layout = \"OIHW\"}" ROUND
    "pattern gemmini.dense" ROWS ") { %s = qnn.matmul(%x, %w) {transpose_a = 0, weight_layout = \"KN\"} : i32" ROUND
    "pattern gemmini.sums" ROWS ", %b: constant i32) {" DENSE BIAS " return %s } where static(%x), gemmini_layer(%s)\n"
    "pattern gemmini.sums" ROWS ") {" DENSE " return %c } where static(%x), gemmini_layer(%c)\n"
    "operator gemmini.max_pool2d(%x: i8[_, _, _, _]) { %y = nn.max_pool2d(%x) {data_layout = \"NCHW\", dilations = 1}"
    " return %y } where static(%x), gemmini_pool(%y)\n";

bool lathe_register_codegen(lathe_compiler *c, int api)
{
    static const lathe_numbers numbers = {.with_sign = true, .one_scale = true};
    static const lathe_check checks[] = {{"gemmini_layer", check_layer}, {"gemmini_pool", check_pool}, {NULL, NULL}};
    static const lathe_codegen own = {
        .api = LATHE_CODEGEN_API,
        .name = "gemmini",
        .patterns = patterns,
        .checks = checks,
        .numbers = &numbers,
        .ldflags = "-lgemmini -lm",
        .begin = begin,
        .node = node,
    };
    return api == LATHE_CODEGEN_API && lathe_register(c, &own);
}
