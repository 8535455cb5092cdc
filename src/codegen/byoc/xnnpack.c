/* SPDX-License-Identifier: Apache-2.0 */
/* XNNPACK, a library of f32 kernels for CPUs: a region becomes one of its subgraphs, made at the first run and kept.
 * The library works on NHWC; a region's operands are turned into that order and its results back, and between its
 * operators nothing is. Weights are turned when the state is made. Written for the interface that Debian 12 has. */
#include "codegen/byoc/flat.h"
#include "codegen/embedded.h"

#include <math.h>
#include <string.h>

typedef struct xnn {
    lathe_gen *g;
    compiler *c;
    const graph_func *f;
    flat_list list;
    writer w;                       /* body of the function that defines the subgraph */
    ptr_map ids;                    /* value -> 1 and the number of its variable v0, v1, ... */
    VEC(const graph_value *) outside; /* operands, then results, which the runtime is told of */
    VEC(const char *) constants;    /* their names */
    uint32_t n_values, n_zeros;
} xnn;

/* --- values --- */

/* N, H, W, C of a value of rank 4, or of one that is broadcast to rank 4. */
static void nhwc(const graph_value *v, int64_t out[4])
{
    int64_t nchw[4] = {1, 1, 1, 1};
    const int32_t rank = lathe_value_rank(v);
    for (int32_t i = 0; i < rank; i++)
        nchw[4 - rank + i] = lathe_value_extent(v, i);
    out[0] = nchw[0];
    out[1] = nchw[2];
    out[2] = nchw[3];
    out[3] = nchw[1];
}

/* "4, (const size_t[]){1, 7, 7, 32}": rank and extents as XNNPACK gets them. */
static const char *dims_text(xnn *x, const graph_value *v, bool image)
{
    writer w;
    int64_t d[4] = {0};
    const int32_t rank = image ? 4 : lathe_value_rank(v);
    writer_init(&w, &x->c->mem);
    if (image)
        nhwc(v, d);
    w_fmt(&w, "%d, (const size_t[]){", rank > 0 ? rank : 1);
    for (int32_t i = 0; i < rank; i++)
        w_fmt(&w, "%s%lld", i ? ", " : "", (long long)(image ? d[i] : lathe_value_extent(v, i)));
    w_str(&w, rank > 0 ? "}" : "1}");
    return w.data;
}

static uint32_t new_id(xnn *x, const graph_value *v)
{
    ptr_map_set(&x->ids, v, x->n_values + 1);
    return x->n_values++;
}

static bool has_id(const xnn *x, const graph_value *v, uint32_t *out)
{
    uint32_t id = 0;
    bool found = ptr_map_get(&x->ids, v, &id);
    *out = id - 1;
    return found;
}

/* v among those that the runtime is told of; UINT32_MAX: it is made and read inside. */
static uint32_t place_of(const xnn *x, const graph_value *v)
{
    for (uint32_t i = 0; i < x->outside.len; i++)
        if (x->outside.data[i] == v)
            return i;
    return UINT32_MAX;
}

static uint32_t define(xnn *x, const graph_value *v, const char *flags)
{
    uint32_t id, place = place_of(x, v);
    if (has_id(x, v, &id))
        return id;
    id = new_id(x, v);
    w_fmt(&x->w, "    const uint32_t v%u = lathe_xnn_value(x, %s, NULL, ", id, dims_text(x, v, flat_is_image(v)));
    if (place == UINT32_MAX)
        w_str(&x->w, "XNN_INVALID_VALUE_ID, 0);\n");
    else
        w_fmt(&x->w, "%u, %s);\n", place, flags);
    return id;
}

/* A constant, its n matrices of rows x columns transposed; returns its variable. */
static uint32_t define_constant(xnn *x, const graph_value *v, const char *dims, int64_t n, int64_t rows,
                                int64_t columns)
{
    const uint32_t id = x->n_values++;
    w_fmt(&x->w, "    const uint32_t v%u = lathe_xnn_constant(x, %s, constants[%u], %lld, %lld, %lld);\n", id, dims,
          x->constants.len, (long long)n, (long long)rows, (long long)columns);
    vec_push(&x->c->mem, &x->constants, lathe_gen_name(x->g, v));
    return id;
}

static bool is_constant(const xnn *x, const graph_value *v)
{
    return v && lathe_gen_constant(x->g, v) != NULL;
}

/* Operand v of an elementwise operator, whose result is an image or not. */
static bool use(xnn *x, const graph_value *v, bool image, uint32_t *out)
{
    int64_t d[4] = {0};
    if (has_id(x, v, out))
        return flat_is_image(v) == image || lathe_gen_decline(x->g, "'%s' is broadcast to more dimensions", v->name);
    if (!is_constant(x, v))
        return lathe_gen_decline(x->g, "'%s' is not an operand that XNNPACK can have", v->name);
    if (lathe_value_rank(v) > 4)
        return lathe_gen_decline(x->g, "'%s' has more dimensions than XNNPACK is given here", v->name);
    if (image)
        nhwc(v, d);
    *out = image ? define_constant(x, v, dims_text(x, v, true), d[0], d[3], d[1] * d[2])
                 : define_constant(x, v, dims_text(x, v, false), 1, 1, lathe_value_count(v));
    return true;
}

/* --- operators --- */

static uint32_t result(xnn *x, const flat_op *op)
{
    return define(x, op->out, "XNN_VALUE_FLAG_EXTERNAL_OUTPUT");
}

static void call(xnn *x, const char *text)
{
    w_fmt(&x->w, "    LATHE_XNN(x, %s);\n", text);
}

static bool is_plain(const graph_node *n)
{
    const char *data = lathe_node_text(n, "data_layout"), *out = lathe_node_text(n, "out_layout");
    return strcmp(data, "NCHW") == 0 && (!out || strcmp(out, "NCHW") == 0);
}

/* "top, right, bottom, left, kernel h, w": what a window needs so that the result has its extents, which may be more
 * than the model's padding (ceil_mode). false: padding below 0, or a window out of reach. */
static bool window_text(xnn *x, const flat_op *op, const int64_t kernel[2], const char **out)
{
    int64_t before[2], after[2];
    for (uint32_t i = 0; i < 2; i++) {
        const int32_t axis = 2 + (int32_t)i;
        const int64_t in = lathe_value_extent(op->in[0], axis), n = lathe_value_extent(op->out, axis);
        const int64_t stride = flat_number(op->node, "strides", i, 1);
        const int64_t reach = (kernel[i] - 1) * flat_number(op->node, "dilations", i, 1);
        const int64_t pad = flat_number(op->node, "pads", i, 0), stated = flat_number(op->node, "pads", 2 + i, 0);
        const int64_t needed = (n - 1) * stride + reach + 1 - in - pad;
        before[i] = pad;
        after[i] = needed > stated ? needed : stated;
        if (pad < 0 || stated < 0 || in < 1 || n < 1 || kernel[i] > 10000 || stride > 10000)
            return lathe_gen_decline(x->g, "%s has a window that XNNPACK does not take", lathe_node_op(op->node));
    }
    *out = lathe_gen_text(x->g, "%lld, %lld, %lld, %lld, %lld, %lld", (long long)before[0], (long long)after[1],
                          (long long)after[0], (long long)before[1], (long long)kernel[0], (long long)kernel[1]);
    return true;
}

static const char *strides_text(xnn *x, const graph_node *n, bool dilated)
{
    const char *text = lathe_gen_text(x->g, "%lld, %lld", (long long)flat_number(n, "strides", 0, 1),
                                      (long long)flat_number(n, "strides", 1, 1));
    return !dilated ? text
                    : lathe_gen_text(x->g, "%s, %lld, %lld", text, (long long)flat_number(n, "dilations", 0, 1),
                                     (long long)flat_number(n, "dilations", 1, 1));
}

/* The bias of each channel, when an add of it is all that reads the sums; the add is done then. `axis` counts from the
 * end: -3 of NCHW. */
static bool find_bias(xnn *x, flat_op *op, int32_t axis, int64_t channels, uint32_t *out)
{
    flat_op *add = flat_reader(&x->list, x->f, op->out);
    if (!add || strcmp(lathe_node_op(add->node), "add") != 0 || lathe_value_rank(add->out) != lathe_value_rank(op->out))
        return false;
    const graph_value *bias = add->in[0] == op->out ? add->in[1] : add->in[0];
    if (!is_constant(x, bias) || lathe_value_count(bias) != channels ||
        (lathe_value_extent(bias, axis) != channels && lathe_value_count(bias) != 1))
        return false;
    *out = define_constant(x, bias, lathe_gen_text(x->g, "1, (const size_t[]){%lld}", (long long)channels), 1, 1,
                           channels);
    add->done = true;
    op->out = add->out;
    return true;
}

/* The variable of the bias; convolutions want one. */
static uint32_t bias_of(xnn *x, flat_op *op, int32_t axis, int64_t channels)
{
    uint32_t bias;
    if (find_bias(x, op, axis, channels, &bias))
        return bias;
    x->n_zeros++;
    bias = x->n_values++;
    w_fmt(&x->w, "    const uint32_t v%u = lathe_xnn_zeros(x, %lld);\n", bias, (long long)channels);
    return bias;
}

/* Weights O, I/groups, H, W become O, H, W, I/groups, or H, W, O where each channel has filters of its own. */
static bool conv(xnn *x, flat_op *op)
{
    const graph_value *w = op->in[1];
    uint32_t in;
    if (!is_constant(x, w) || !flat_is_image(op->in[0]) || !is_plain(op->node))
        return lathe_gen_decline(x->g, "XNNPACK supports convolutions of images with constant weights");
    const int64_t o = lathe_value_extent(w, 0), i = lathe_value_extent(w, 1);
    const int64_t groups = lathe_node_int(op->node, "groups");
    const int64_t kernel[2] = {lathe_value_extent(w, 2), lathe_value_extent(w, 3)}, taps = kernel[0] * kernel[1];
    const bool alone = i == 1 && groups > 1;
    const char *window, *dims = lathe_gen_text(x->g, "4, (const size_t[]){%lld, %lld, %lld, %lld}",
                                               (long long)(alone ? 1 : o), (long long)kernel[0], (long long)kernel[1],
                                               (long long)(alone ? o : i));
    if (!use(x, op->in[0], true, &in) || !window_text(x, op, kernel, &window))
        return false;
    const uint32_t filter = define_constant(x, w, dims, alone ? 1 : o, alone ? o : i, taps);
    const char *strides = strides_text(x, op->node, true);
    const uint32_t bias = bias_of(x, op, -3, o), out = result(x, op);
    const char *channels = alone ? lathe_gen_text(x->g, "%lld, %lld", (long long)(o / groups), (long long)groups)
                                 : lathe_gen_text(x->g, "%lld, %lld, %lld", (long long)groups, (long long)i,
                                                  (long long)(o / groups));
    call(x, lathe_gen_text(x->g, "xnn_define_%s(x->graph, %s, %s, %s, -INFINITY, INFINITY, v%u, v%u, v%u, v%u, 0)",
                           alone ? "depthwise_convolution_2d" : "convolution_2d", window, strides, channels, in,
                           filter, bias, out));
    return true;
}

static bool product(xnn *x, flat_op *op)
{
    const graph_value *a = op->in[0], *b = op->in[1];
    uint32_t in;
    const bool turned = lathe_node_int(op->node, "transpose_b") != 0;
    if (lathe_value_rank(a) != 2 || lathe_value_rank(b) != 2 || !is_constant(x, b) ||
        lathe_node_int(op->node, "transpose_a") || strcmp(lathe_node_text(op->node, "weight_layout"), "KN") != 0)
        return lathe_gen_decline(x->g, "XNNPACK takes products of matrices with constant ones");
    if (!use(x, a, false, &in))
        return false;
    const int64_t rows = lathe_value_extent(b, 0), columns = lathe_value_extent(b, 1);
    const int64_t outputs = turned ? rows : columns, inputs = turned ? columns : rows;
    const char *dims =
        lathe_gen_text(x->g, "2, (const size_t[]){%lld, %lld}", (long long)outputs, (long long)inputs);
    const uint32_t filter = turned ? define_constant(x, b, dims, 1, 1, rows * columns)
                                   : define_constant(x, b, dims, 1, rows, columns);
    const uint32_t bias = bias_of(x, op, -1, outputs), out = result(x, op);
    call(x, lathe_gen_text(x->g, "xnn_define_fully_connected(x->graph, -INFINITY, INFINITY, v%u, v%u, v%u, v%u, 0)", in,
                           filter, bias, out));
    return true;
}

static bool pool(xnn *x, flat_op *op)
{
    const bool max = strcmp(lathe_node_op(op->node), "nn.max_pool2d") == 0;
    const int64_t kernel[2] = {flat_number(op->node, "pool_size", 0, 1), flat_number(op->node, "pool_size", 1, 1)};
    const bool dilated = flat_number(op->node, "dilations", 0, 1) != 1 || flat_number(op->node, "dilations", 1, 1) != 1;
    const char *window;
    uint32_t in;
    if (!flat_is_image(op->in[0]) || !is_plain(op->node) || kernel[0] * kernel[1] < 2 || (!max && dilated) ||
        (!max && lathe_node_int(op->node, "count_include_pad")))
        return lathe_gen_decline(x->g, "XNNPACK has no such pool: %s", lathe_node_op(op->node));
    if (!use(x, op->in[0], true, &in) || !window_text(x, op, kernel, &window))
        return false;
    const uint32_t out = result(x, op);
    call(x, lathe_gen_text(x->g, "xnn_define_%s_pooling_2d(x->graph, %s, %s, -INFINITY, INFINITY, v%u, v%u, 0)",
                           max ? "max" : "average", window, strides_text(x, op->node, max), in, out));
    return true;
}

/* The mean over rows and columns. */
static bool mean(xnn *x, flat_op *op)
{
    uint32_t in;
    const int64_t a = flat_number(op->node, "axes", 0, 0), b = flat_number(op->node, "axes", 1, 0);
    const bool spatial = (a == 2 || a == -2) && (b == 3 || b == -1) && flat_number(op->node, "axes", 2, 99) == 99;
    if (!flat_is_image(op->in[0]) || !flat_is_image(op->out) || !spatial)
        return lathe_gen_decline(x->g, "XNNPACK takes means of images over rows and columns");
    if (!use(x, op->in[0], true, &in))
        return false;
    const uint32_t out = result(x, op);
    call(x, lathe_gen_text(x->g, "xnn_define_global_average_pooling_2d(x->graph, -INFINITY, INFINITY, v%u, v%u, 0)",
                           in, out));
    return true;
}

static bool binary(xnn *x, flat_op *op)
{
    static const char *const names[][2] = {
        {"add", "add2"}, {"subtract", "subtract"}, {"multiply", "multiply2"}, {"divide", "divide"}};
    uint32_t a, b, k = 0;
    while (strcmp(names[k][0], lathe_node_op(op->node)) != 0)
        k++;
    if (!use(x, op->in[0], flat_is_image(op->out), &a) || !use(x, op->in[1], flat_is_image(op->out), &b))
        return false;
    const uint32_t out = result(x, op);
    call(x, lathe_gen_text(x->g, "xnn_define_%s(x->graph, -INFINITY, INFINITY, v%u, v%u, v%u, 0)", names[k][1], a, b,
                           out));
    return true;
}

static bool unary(xnn *x, flat_op *op)
{
    static const char *const names[][2] = {{"sigmoid", "sigmoid"}, {"hard_swish", "hardswish"}, {"abs", "abs"},
                                           {"negative", "negate"}, {"nn.softmax", "softmax"}};
    uint32_t in, k = 0;
    while (strcmp(names[k][0], lathe_node_op(op->node)) != 0)
        k++;
    const int64_t axis = lathe_node_int(op->node, "axis"), rank = lathe_value_rank(op->out);
    if (k == 4 && (axis + rank) % rank != (rank == 4 ? 1 : rank - 1))
        return lathe_gen_decline(x->g, "XNNPACK's softmax goes along the channels");
    if (!use(x, op->in[0], flat_is_image(op->out), &in))
        return false;
    const uint32_t out = result(x, op);
    call(x, lathe_gen_text(x->g, "xnn_define_%s(x->graph, v%u, v%u, 0)", names[k][1], in, out));
    return true;
}

/* NULL: it is no number that is known. */
static const char *bound_text(xnn *x, const graph_value *v, const char *otherwise)
{
    const float *number = v ? lathe_gen_constant(x->g, v) : NULL;
    writer w;
    writer_init(&w, &x->c->mem);
    if (!v || (number && isinf(*number) && (*number < 0) == (*otherwise == '-')))
        return otherwise;
    if (!number || !isfinite(*number))
        return NULL;
    w_float(&w, (double)*number, 32);
    w_str(&w, "F");
    return w.data;
}

static bool clamp(xnn *x, flat_op *op)
{
    uint32_t in;
    const bool relu = strcmp(lathe_node_op(op->node), "nn.relu") == 0;
    const char *low = relu ? "0.0F" : bound_text(x, op->n_in > 1 ? op->in[1] : NULL, "-INFINITY");
    const char *high = relu ? "INFINITY" : bound_text(x, op->n_in > 2 ? op->in[2] : NULL, "INFINITY");
    if (!low || !high)
        return lathe_gen_decline(x->g, "the bounds of clip are not known, or leave no number");
    const float *least = op->n_in > 2 && op->in[1] ? lathe_gen_constant(x->g, op->in[1]) : NULL;
    const float *most = least && op->in[2] ? lathe_gen_constant(x->g, op->in[2]) : NULL;
    if (most && !(*least < *most))
        return lathe_gen_decline(x->g, "XNNPACK's clip wants a lower bound below the upper one");
    if (!use(x, op->in[0], flat_is_image(op->out), &in))
        return false;
    const uint32_t out = result(x, op);
    call(x, lathe_gen_text(x->g, "xnn_define_clamp(x->graph, %s, %s, v%u, v%u, 0)", low, high, in, out));
    return true;
}

/* Of an image with one pixel, whose elements stand in the same order either way; or between values that are none. */
static bool reshape(xnn *x, flat_op *op)
{
    int64_t d[4] = {1, 1, 1, 1};
    const graph_value *v = flat_is_image(op->out) ? op->out : op->in[0];
    uint32_t in;
    if (flat_is_image(v))
        nhwc(v, d);
    if (flat_is_image(op->in[0]) && flat_is_image(op->out))
        return lathe_gen_decline(x->g, "XNNPACK reshapes no images");
    if (d[1] * d[2] != 1)
        return lathe_gen_decline(x->g, "XNNPACK keeps the channels of '%s' last", v->name);
    if (!use(x, op->in[0], flat_is_image(op->in[0]), &in))
        return false;
    const uint32_t out = result(x, op);
    call(x, lathe_gen_text(x->g, "xnn_define_static_reshape(x->graph, %s, v%u, v%u, 0)",
                           dims_text(x, op->out, flat_is_image(op->out)), in, out));
    return true;
}

static const struct {
    const char *op;
    bool (*write)(xnn *x, flat_op *op);
} rows[] = {
    {"nn.conv2d", conv},     {"nn.matmul", product},  {"nn.max_pool2d", pool}, {"nn.avg_pool2d", pool},
    {"mean", mean},          {"add", binary},         {"subtract", binary},    {"multiply", binary},
    {"divide", binary},      {"nn.relu", clamp},      {"clip", clamp},         {"sigmoid", unary},
    {"hard_swish", unary},   {"abs", unary},          {"negative", unary},     {"nn.softmax", unary},
    {"reshape", reshape},
};

/* The library's asserts hold for what has elements: it ends the program where an image has no pixels. */
static bool is_usable(const flat_op *op)
{
    bool good = op->node->n_outputs == 1 && op->out->type.dt == DT_F32 && lathe_value_count(op->out) > 0;
    for (uint32_t i = 0; i < op->n_in; i++)
        good &= !op->in[i] || lathe_value_count(op->in[i]) > 0;
    return good && op->in[0] && op->in[0]->type.dt == DT_F32;
}

static bool write_op(xnn *x, flat_op *op)
{
    const char *name = lathe_node_op(op->node);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (strcmp(rows[i].op, name) == 0)
            return is_usable(op)
                       ? rows[i].write(x, op)
                       : lathe_gen_decline(x->g, "XNNPACK takes f32 tensors that are not empty");
    return lathe_gen_decline(x->g, "XNNPACK has no %s", name);
}

/* --- the functions around it --- */

/* Text in which @s is the symbol, @c the number of constants (1 at least: C has no empty arrays), @o that of blocks of
 * memory, @v that of values. */
static const char *fill(xnn *x, const char *text)
{
    writer w;
    writer_init(&w, &x->c->mem);
    for (const char *p; (p = strchr(text, '@')) != NULL; text = p + 2) {
        w_fmt(&w, "%.*s", (int)(p - text), text);
        if (p[1] == 's')
            w_str(&w, lathe_gen_symbol(x->g));
        else
            w_fmt(&w, "%u", p[1] == 'v'   ? x->outside.len
                            : p[1] == 'o' ? x->constants.len + x->n_zeros + 1
                                          : x->constants.len + (x->constants.len == 0));
    }
    w_str(&w, text);
    return w.data;
}

static bool is_read_inside(const xnn *x, const graph_value *v)
{
    for (uint32_t i = 0; i < x->list.ops.len; i++)
        for (uint32_t k = 0; k < x->list.ops.data[i].n_in; k++)
            if (x->list.ops.data[i].in[k] == v)
                return true;
    return false;
}

static void find_outside(xnn *x, uint32_t *out_inputs)
{
    for (uint32_t i = 0; i < x->f->params.len; i++)
        if (!is_constant(x, x->f->params.data[i]) && is_read_inside(x, x->f->params.data[i]))
            vec_push(&x->c->mem, &x->outside, x->f->params.data[i]);
    *out_inputs = x->outside.len;
    for (uint32_t i = 0; i < x->f->results.len; i++) {
        const graph_value *v = x->f->results.data[i];
        if (v->def && !graph_constant(v) && place_of(x, v) == UINT32_MAX)
            vec_push(&x->c->mem, &x->outside, v);
    }
}

/* Where XNNPACK finds or leaves a value: operands are copied, because it reads beyond the end. */
static const char *write_place(xnn *x, uint32_t i, bool is_input)
{
    const graph_value *v = x->outside.data[i];
    int64_t d[4] = {1, 1, 1, lathe_value_count(v)};
    if (flat_is_image(v))
        nhwc(v, d);
    const bool turned = d[3] > 1 && d[1] * d[2] > 1;
    if (!is_input && !turned && !is_read_inside(x, v))
        return lathe_gen_name(x->g, v);
    const char *room = lathe_gen_scratch(x->g, (size_t)lathe_value_count(v) * sizeof(float) + 64);
    lathe_gen_line(x->g, "float *const lathe_at_%u = %s;", i, room);
    return lathe_gen_text(x->g, "lathe_at_%u", i);
}

static void write_turn(xnn *x, uint32_t i, bool is_input)
{
    const graph_value *v = x->outside.data[i];
    const char *name = lathe_gen_name(x->g, v);
    int64_t d[4] = {1, 1, 1, lathe_value_count(v)};
    if (flat_is_image(v))
        nhwc(v, d);
    const long long n = (long long)d[0], channels = (long long)d[3], pixels = (long long)(d[1] * d[2]);
    if (is_input)
        lathe_gen_line(x->g, "lathe_xnn_turn(lathe_at_%u, %s, %lld, %lld, %lld);", i, name, n, channels, pixels);
    else
        lathe_gen_line(x->g, "lathe_xnn_turn(%s, lathe_at_%u, %lld, %lld, %lld);", name, i, n, pixels, channels);
}

static void write_list(xnn *x, const char *element, const char *name, uint32_t n, const char *const *texts)
{
    writer w;
    writer_init(&w, &x->c->mem);
    for (uint32_t i = 0; i < n; i++)
        w_fmt(&w, "%s%s", i ? ", " : "", texts[i]);
    lathe_gen_line(x->g, "%s const %s[] = {%s};", element, name, n ? w.data : "NULL");
}

static bool write_body(xnn *x, uint32_t n_inputs)
{
    const char **places = arena_array(&x->c->mem, const char *, x->outside.len + 1u);
    for (uint32_t i = 0; i < x->outside.len; i++)
        places[i] = write_place(x, i, i < n_inputs);
    write_list(x, "const float *", "lathe_constants", x->constants.len, x->constants.data);
    write_list(x, "void *", "lathe_places", x->outside.len, places);
    lathe_gen_line(x->g, "enum xnn_status lathe_status;");
    for (uint32_t i = 0; i < n_inputs; i++)
        write_turn(x, i, true);
    lathe_gen_line(x->g, "(void)pthread_mutex_lock(&lathe_xnn_lock);");
    lathe_gen_line(x->g, "lathe_status = %s_run(lathe_constants, lathe_places);", lathe_gen_symbol(x->g));
    lathe_gen_line(x->g, "(void)pthread_mutex_unlock(&lathe_xnn_lock);");
    lathe_gen_line(x->g, "if (lathe_status != xnn_status_success)\n    return (int32_t)lathe_status;");
    for (uint32_t i = n_inputs; i < x->outside.len; i++)
        if (strncmp(places[i], "lathe_at_", 9) == 0)
            write_turn(x, i, false);
    return lathe_gen_finish(x->g, x->f);
}

static bool begin(lathe_gen *g)
{
    static const char *const headers[] = {"math.h", "pthread.h", "stdlib.h", "string.h"};
    for (size_t i = 0; i < sizeof headers / sizeof *headers; i++)
        lathe_gen_header(g, headers[i]);
    lathe_gen_library_header(g, "xnnpack.h", "install XNNPACK, in Debian the package libxnnpack-dev");
    lathe_gen_library_header(g, "pthreadpool.h", "it comes with XNNPACK, in Debian in the package libpthreadpool-dev");
    lathe_gen_declare(g, "%s", embedded_text("src/codegen/byoc/text/xnnpack.c.in"));
    return true;
}

static bool func(lathe_gen *g, const lathe_func *f)
{
    xnn x = {.g = g, .c = g->c, .f = f};
    const graph_node *bad;
    uint32_t n_inputs;
    writer_init(&x.w, &x.c->mem);
    ptr_map_init(&x.ids, &x.c->mem);
    if (!flat_make(&x.c->mem, f, &x.list, &bad))
        return lathe_gen_decline(g, "XNNPACK has no %s of so many operands", lathe_node_op(bad));
    find_outside(&x, &n_inputs);
    if (x.outside.len == n_inputs)
        return lathe_gen_decline(g, "nothing is computed");
    for (uint32_t i = 0; i < n_inputs; i++)
        (void)define(&x, x.outside.data[i], "XNN_VALUE_FLAG_EXTERNAL_INPUT");
    for (uint32_t i = 0; i < x.list.ops.len; i++)
        if (!x.list.ops.data[i].done && !write_op(&x, &x.list.ops.data[i]))
            return false;
    lathe_gen_declare(g, "%s", fill(&x, embedded_text("src/codegen/byoc/text/xnnpack_state.c.in")));
    lathe_gen_declare(g, "static void %s_define(lathe_xnn *x, const float *const *constants)\n{\n"
                      "    (void)constants;\n%s}\n", lathe_gen_symbol(g), x.w.data);
    lathe_gen_declare(g, "%s", fill(&x, embedded_text("src/codegen/byoc/text/xnnpack_make.c.in")));
    return write_body(&x, n_inputs);
}

/* --- what it takes --- */

#define IMAGE   "f32[_, _, _, _]"
#define PLAIN   "data_layout = \"NCHW\""
#define CONV    "{" PLAIN ", out_layout = \"NCHW\", kernel_layout = \"OIHW\"}"
#define PRODUCT "{transpose_a = 0, weight_layout = \"KN\"}"
#define ALONE(name, asks) \
    "operator xnnpack." name "(%x: " IMAGE ") { %y = " name "(%x, *) " asks " return %y } where static(%x)"

static const char patterns[] =
    "pattern xnnpack.conv2d_bias(%x: " IMAGE ", %w: constant " IMAGE ", %b: constant f32) {\n"
    "  %c = nn.conv2d(%x, %w) " CONV " %a = add(%c, %b) %y = optional nn.relu|clip(%a, *) return %y\n"
    "} where static(%x), per_channel(%b, %c), xnnpack_window(%c)\n"
    "pattern xnnpack.conv2d(%x: " IMAGE ", %w: constant " IMAGE ") {\n"
    "  %c = nn.conv2d(%x, %w) " CONV " %y = optional nn.relu|clip(%c, *) return %y\n"
    "} where static(%x), xnnpack_window(%c)\n"
    "pattern xnnpack.dense_bias(%a: f32[_, _], %w: constant f32[_, _], %b: constant f32[_]) {\n"
    "  %m = nn.matmul(%a, %w) " PRODUCT " %s = add(%m, %b) %y = optional nn.relu|clip(%s, *) return %y\n"
    "} where static(%a)\n"
    "pattern xnnpack.dense(%a: f32[_, _], %w: constant f32[_, _]) {\n"
    "  %m = nn.matmul(%a, %w) " PRODUCT " %y = optional nn.relu|clip(%m, *) return %y\n"
    "} where static(%a)\n"
    ALONE("nn.max_pool2d", "{" PLAIN "}") ", xnnpack_window(%y)\n"
    ALONE("nn.avg_pool2d", "{" PLAIN ", count_include_pad = 0, dilations = 1}") ", xnnpack_window(%y)\n"
    ALONE("mean", "{axes = [2, 3], keepdims = 1}") "\n"
    ALONE("nn.relu", "") "\n" ALONE("clip", "") "\n" ALONE("sigmoid", "") "\n" ALONE("hard_swish", "") "\n"
    "operator xnnpack.binary(%a: " IMAGE ", %b: " IMAGE ") { %y = add|subtract|multiply|divide(%a, %b) return %y }"
    " where static(%a), static(%b)\n";

/* The window of the operator that makes values[0]. */
static const char *check_window(lathe_compiler *c, uint32_t n, lathe_graph_value *const *values)
{
    const graph_node *op = n > 0 && values[0] ? values[0]->def : NULL;
    int64_t taps = 1;
    bool fits = op != NULL;
    (void)c;
    for (uint32_t i = 0; op && i < 4; i++)
        fits &= flat_number(op, "pads", i, 0) >= 0;
    for (uint32_t i = 0; op && i < 2; i++)
        taps *= flat_number(op, "pool_size", i, 2);
    return !fits ? "XNNPACK takes no negative padding" : taps < 2 ? "XNNPACK takes no pool of one element" : NULL;
}

static const lathe_check checks[] = {{"xnnpack_window", check_window}, {NULL, NULL}};

const lathe_codegen byoc_xnnpack = {
    .api = LATHE_CODEGEN_API,
    .name = "xnnpack",
    .patterns = patterns,
    .checks = checks,
    .ldflags = "-lXNNPACK -lpthreadpool -lpthread",
    .begin = begin,
    .func = func,
};
