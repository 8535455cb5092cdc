/* SPDX-License-Identifier: Apache-2.0 */
/* CMSIS-NN, Arm's kernels for quantised networks on Cortex-M: convolutions, depthwise ones, products of i8 with their
 * bias and requantisation, and max pools. A region is a list of calls over NHWC images in the scratch memory; weights
 * lie in the package in the order that the library wants, once. Written for its documented interface from version 4
 * on; results may differ by one step, because it rounds twice. */
#include "codegen/byoc/flat.h"
#include "codegen/embedded.h"

#include <math.h>
#include <string.h>

/* A value in NHWC. */
typedef struct image {
    const graph_value *value;
    uint64_t at; /* in the scratch */
} image;

typedef struct arm {
    lathe_gen *g;
    const graph_func *f;
    flat_list list;
    VEC(image) images; /* that are still read */
    uint32_t n;        /* calls so far */
} arm;

/* An extent by its letter in NCHW; of a matrix N and C. */
static long long extent(const graph_value *v, char which)
{
    if (!flat_is_image(v))
        return which == 'N' ? lathe_value_extent(v, 0) : which == 'C' ? lathe_value_extent(v, 1) : 1;
    return lathe_value_extent(v, which == 'N' ? 0 : which == 'C' ? 1 : which == 'H' ? 2 : 3);
}

static const void *known(const arm *a, const graph_value *v)
{
    return v ? lathe_gen_constant(a->g, v) : NULL;
}

/* --- places --- */

static const char *place(arm *a, const graph_value *v)
{
    uint32_t i = 0;
    while (i < a->images.len && a->images.data[i].value != v)
        i++;
    if (i == a->images.len)
        vec_push(&a->g->c->mem, &a->images, ((image){v, gen_take(a->g, (uint64_t)lathe_value_count(v))}));
    return lathe_gen_text(a->g, "(int8_t *)(scratch + %llu)", (unsigned long long)a->images.data[i].at);
}

/* Whether v is a result, or an operator from number i on reads it. */
static bool is_needed(const arm *a, uint32_t i, const graph_value *v)
{
    for (uint32_t k = 0; k < a->f->results.len; k++)
        if (flat_value(&a->list, a->f->results.data[k]) == v)
            return true;
    for (; i < a->list.ops.len; i++)
        if (!a->list.ops.data[i].done && a->list.ops.data[i].in[0] == v)
            return true;
    return false;
}

/* Operators from number i on get the room of images that none of them reads. */
static void release(arm *a, uint32_t i)
{
    uint32_t kept = 0;
    for (uint32_t k = 0; k < a->images.len; k++)
        if (is_needed(a, i, a->images.data[k].value))
            a->images.data[kept++] = a->images.data[k];
        else
            gen_release(a->g, a->images.data[k].at);
    a->images.len = kept;
}

static void border(arm *a, const graph_value *v, bool in)
{
    const char *name = lathe_gen_name(a->g, v), *there = place(a, v);
    const long long pixels = extent(v, 'H') * extent(v, 'W'), channels = extent(v, 'C');
    lathe_gen_line(a->g, "lathe_arm_turn(%s, %s, %lld, %lld, %lld);", in ? there : name, in ? name : there,
                   extent(v, 'N'), in ? channels : pixels, in ? pixels : channels);
}

static const char *dims(arm *a, const char *name, long long n, long long h, long long w, long long c)
{
    const char *text = lathe_gen_text(a->g, "lathe_%s_%u", name, a->n);
    lathe_gen_line(a->g, "const cmsis_nn_dims %s = {%lld, %lld, %lld, %lld};", text, n, h, w, c);
    return text;
}

static const char *dims_of(arm *a, const char *name, const graph_value *v)
{
    return dims(a, name, extent(v, 'N'), extent(v, 'H'), extent(v, 'W'), extent(v, 'C'));
}

/* --- weights in another order --- */

/* O, I, H, W is kept as O, H, W, I; or, where each channel has filters of its own, as H, W, O. */
static bool move(arm *a, const graph_value *w, bool alone)
{
    const int64_t o = lathe_value_extent(w, 0), i = lathe_value_extent(w, 1), h = lathe_value_extent(w, 2);
    const int64_t x = lathe_value_extent(w, 3);
    const int64_t inside[4] = {h * x * i, 1, x * i, i}, apart[4] = {1, 1, x * o, o};
    return lathe_gen_move(a->g, w, alone ? apart : inside);
}

/* --- requantisation --- */

/* What follows the sums: an add of a bias for each channel, or none, and requantisation to i8. */
typedef struct ending {
    const graph_value *bias, *out;
    const flat_op *requantize;
    long long offset;
    uint32_t n_scales;
} ending;

static bool find_ending(arm *a, flat_op *op, int64_t channels, ending *out)
{
    flat_op *next = flat_reader(&a->list, a->f, op->out);
    *out = (ending){0};
    if (next && strcmp(lathe_node_op(next->node), "add") == 0) {
        out->bias = next->in[0] == op->out ? next->in[1] : next->in[0];
        if (!known(a, out->bias) || lathe_value_count(out->bias) != channels ||
            lathe_value_extent(out->bias, flat_is_image(op->out) ? -3 : -1) != channels)
            return lathe_gen_decline(a->g, "the added value is not one bias for each channel");
        next->done = true;
        next = flat_reader(&a->list, a->f, next->out);
    }
    if (!next || strcmp(lathe_node_op(next->node), "qnn.requantize") != 0 || next->out->type.dt != DT_I8 ||
        next->in[1]->type.dt != DT_F32 || !known(a, next->in[1]) || !known(a, next->in[2]))
        return lathe_gen_decline(a->g, "the sums are not requantized to i8 by scales that are known");
    const int8_t *zero = next->n_in > 3 ? known(a, next->in[3]) : NULL;
    if (next->n_in > 3 && next->in[3] && !zero)
        return lathe_gen_decline(a->g, "the zero point of the result is not known");
    out->n_scales = (uint32_t)lathe_value_count(next->in[1]);
    if ((out->n_scales != 1 && out->n_scales != channels) || lathe_value_rank(next->in[1]) > 1)
        return lathe_gen_decline(a->g, "scales are one, or one for each channel");
    out->offset = zero ? *zero : 0;
    out->requantize = next;
    out->out = next->out;
    next->done = true;
    return true;
}

/* Tables of multipliers of 31 bits and shifts for n channels: scale = multiplier / 2^31 * 2^shift. */
static void scales(arm *a, const ending *e, int64_t n, const char **out_multipliers, const char **out_shifts)
{
    int32_t *both = arena_array(&a->g->c->mem, int32_t, 2 * (size_t)n + 1), *shifts = both + n;
    const float *x = known(a, e->requantize->in[1]), *y = known(a, e->requantize->in[2]);
    for (int64_t i = 0; i < n; i++) {
        int shift;
        double q = frexp((double)x[e->n_scales > 1 ? i : 0] / (double)*y, &shift) * 2147483648.0;
        int64_t whole = isfinite(q) ? llround(q) : 0;
        shift += whole == INT64_C(1) << 31;
        whole = whole == INT64_C(1) << 31 ? whole / 2 : whole;
        both[i] = (int32_t)whole;
        shifts[i] = shift < -31 ? -31 : shift > 30 ? 30 : shift;
    }
    *out_multipliers = lathe_gen_table(a->g, lathe_gen_text(a->g, "multipliers_%u", a->n), "i32", both, n);
    *out_shifts = lathe_gen_table(a->g, lathe_gen_text(a->g, "shifts_%u", a->n), "i32", shifts, n);
}

/* --- operators --- */

static bool zero_point(const arm *a, const flat_op *op, uint32_t i, long long *out)
{
    const int8_t *zero = op->n_in > i ? known(a, op->in[i]) : NULL;
    *out = zero ? *zero : 0;
    return zero || op->n_in <= i || !op->in[i];
}

static bool check_weights(const arm *a, const flat_op *op)
{
    long long zero;
    const bool same = zero_point(a, op, 3, &zero);
    const bool one = op->n_in <= 3 || !op->in[3] || lathe_value_count(op->in[3]) == 1;
    return known(a, op->in[1]) && same && zero == 0 && one &&
           op->in[0]->type.dt == DT_I8 && op->in[1]->type.dt == DT_I8;
}

/* The scratch of a call: as much as any version's kernel asks for; the call is not made if it is too little. */
static void context(arm *a, const char *size, uint64_t bytes)
{
    const uint64_t from = gen_take(a->g, bytes);
    lathe_gen_line(a->g, "const cmsis_nn_context lathe_context_%u = {scratch + %llu, %llu};", a->n,
                   (unsigned long long)from, (unsigned long long)bytes);
    gen_release(a->g, from); /* the values of the call have their places by now */
    lathe_gen_check(a->g, lathe_gen_text(a->g, "%s <= lathe_context_%u.size", size, a->n), -1);
}

static bool conv(arm *a, flat_op *op)
{
    const graph_value *x = op->in[0], *w = op->in[1];
    const graph_node *n = op->node;
    long long zero;
    ending e;
    if (!flat_is_image(x) || known(a, x) || !check_weights(a, op) || !zero_point(a, op, 2, &zero) ||
        strcmp(lathe_node_text(n, "data_layout"), "NCHW") != 0)
        return lathe_gen_decline(a->g, "CMSIS-NN takes i8 convolutions whose weights, and nothing else, are constant "
                                       "and have the zero point 0");
    const int64_t o = lathe_value_extent(w, 0), i = lathe_value_extent(w, 1), groups = lathe_node_int(n, "groups");
    const long long h = lathe_value_extent(w, 2), k = lathe_value_extent(w, 3);
    const bool alone = i == 1 && groups == extent(x, 'C') && groups > 1;
    if (groups != 1 && !alone)
        return lathe_gen_decline(a->g, "convolutions have one group, or one for each channel");
    if (!find_ending(a, op, o, &e) || !move(a, w, alone))
        return false;
    const char *multipliers, *shifts, *what = alone ? "depthwise_conv" : "convolve", *from = place(a, x);
    scales(a, &e, o, &multipliers, &shifts);
    const char *to = place(a, e.out), *bias = e.bias ? lathe_gen_name(a->g, e.bias) : "NULL";
    const char *in = dims_of(a, "in", x), *out = dims_of(a, "out", e.out), *one = dims(a, "bias", 1, 1, 1, o);
    const char *filter = dims(a, "filter", alone ? 1 : o, h, k, alone ? o : i);
    lathe_gen_line(a->g, "const cmsis_nn_%s_params lathe_params_%u = {%lld, %lld, %s{%lld, %lld}, {%lld, %lld}, "
                   "{%lld, %lld}, {-128, 127}};", alone ? "dw_conv" : "conv", a->n, -zero, e.offset,
                   alone ? lathe_gen_text(a->g, "%lld, ", (long long)(o / groups)) : "",
                   (long long)flat_number(n, "strides", 1, 1), (long long)flat_number(n, "strides", 0, 1),
                   (long long)flat_number(n, "pads", 1, 0),
                   (long long)flat_number(n, "pads", 0, 0), (long long)flat_number(n, "dilations", 1, 1),
                   (long long)flat_number(n, "dilations", 0, 1));
    lathe_gen_line(a->g, "const cmsis_nn_per_channel_quant_params lathe_scales_%u = {(int32_t *)(uintptr_t)%s, "
                   "(int32_t *)(uintptr_t)%s};", a->n, multipliers, shifts);
    context(a, lathe_gen_text(a->g, "arm_%s_wrapper_s8_get_buffer_size(&lathe_params_%u, &%s, &%s, &%s)", what, a->n,
                              in, filter, out),
            (uint64_t)(8 * (i * h * k + 16) + (alone ? 8 * o * h * k : 0)));
    lathe_gen_check(a->g, lathe_gen_text(a->g, "arm_%s_wrapper_s8(&lathe_context_%u, &lathe_params_%u, "
                    "&lathe_scales_%u, &%s, %s, &%s, %s, &%s, %s, &%s, %s) == ARM_CMSIS_NN_SUCCESS", what, a->n, a->n,
                    a->n, in, from, filter, lathe_gen_name(a->g, w), one, bias, out, to), -1);
    return true;
}

static bool pool(arm *a, flat_op *op)
{
    const graph_node *n = op->node;
    if (!flat_is_image(op->in[0]) || known(a, op->in[0]) || op->in[0]->type.dt != DT_I8 ||
        flat_number(n, "dilations", 0, 1) != 1 ||
        flat_number(n, "dilations", 1, 1) != 1 || strcmp(lathe_node_text(n, "data_layout"), "NCHW") != 0)
        return lathe_gen_decline(a->g, "CMSIS-NN takes pools of i8 images that are not constant");
    const char *from = place(a, op->in[0]), *to = place(a, op->out), *in = dims_of(a, "in", op->in[0]);
    const char *out = dims_of(a, "out", op->out);
    const char *filter = dims(a, "filter", 1, flat_number(n, "pool_size", 0, 1), flat_number(n, "pool_size", 1, 1), 1);
    lathe_gen_line(a->g, "const cmsis_nn_context lathe_context_%u = {NULL, 0};", a->n);
    lathe_gen_line(a->g, "const cmsis_nn_pool_params lathe_params_%u = {{%lld, %lld}, {%lld, %lld}, {-128, 127}};",
                   a->n, (long long)flat_number(n, "strides", 1, 1), (long long)flat_number(n, "strides", 0, 1),
                   (long long)flat_number(n, "pads", 1, 0), (long long)flat_number(n, "pads", 0, 0));
    lathe_gen_check(a->g, lathe_gen_text(a->g, "arm_max_pool_s8(&lathe_context_%u, &lathe_params_%u, &%s, %s, &%s, "
                    "&%s, %s) == ARM_CMSIS_NN_SUCCESS", a->n, a->n, in, from, filter, out, to), -1);
    return true;
}

/* --- the function --- */

static bool write_op(arm *a, flat_op *op)
{
    const char *name = lathe_node_op(op->node);
    a->n++;
    if (lathe_value_count(op->out) == 0)
        return lathe_gen_decline(a->g, "'%s' has no elements", op->out->name);
    if (strcmp(name, "qnn.conv2d") == 0)
        return conv(a, op);
    if (strcmp(name, "nn.max_pool2d") == 0)
        return pool(a, op);
    return lathe_gen_decline(a->g, "CMSIS-NN is not used for %s here", name);
}

static bool is_read(const arm *a, const graph_value *v)
{
    for (uint32_t i = 0; i < a->list.ops.len; i++)
        if (a->list.ops.data[i].in[0] == v)
            return true;
    return false;
}

static bool func(lathe_gen *g, const lathe_func *f)
{
    arm a = {.g = g, .f = f};
    const graph_node *bad;
    if (!flat_make(&g->c->mem, f, &a.list, &bad))
        return lathe_gen_decline(g, "%s has too many operands", lathe_node_op(bad));
    for (uint32_t i = 0; i < f->params.len; i++)
        if (is_read(&a, f->params.data[i]) && !known(&a, f->params.data[i]))
            border(&a, f->params.data[i], true);
    for (uint32_t i = 0; i < a.list.ops.len; i++)
        if (!a.list.ops.data[i].done) {
            if (!write_op(&a, &a.list.ops.data[i]))
                return false;
            release(&a, i + 1);
        }
    for (uint32_t i = 0; i < f->results.len; i++)
        if (f->results.data[i]->def && !graph_constant(f->results.data[i]))
            border(&a, f->results.data[i], false);
    return lathe_gen_finish(g, f);
}

static bool begin(lathe_gen *g)
{
    lathe_gen_library_header(g, "arm_nnfunctions.h",
                             "install CMSIS-NN from Arm, and tell the compiler where it is, for example "
                             "CPU='-I.../CMSIS-NN/Include'");
    lathe_gen_declare(g, "%s", embedded_text("src/codegen/byoc/text/cmsis_nn.c.in"));
    return true;
}

/* --- what it takes --- */

#define IMAGE "i8[_, _, _, _]"
#define CONV  "{data_layout = \"NCHW\", out_layout = \"NCHW\", kernel_layout = \"OIHW\"}"

static const char patterns[] =
    "pattern cmsis_nn.conv2d_bias(%x: " IMAGE ", %w: constant " IMAGE ", %b: constant i32) {\n"
    "  %c = qnn.conv2d(%x, %w, *) " CONV " %s = add(%c, %b) %y = qnn.requantize(%s, *) return %y\n"
    "} where static(%x), per_channel(%b, %c), cmsis_nn_conv(%c, %y)\n"
    "pattern cmsis_nn.conv2d(%x: " IMAGE ", %w: constant " IMAGE ") {\n"
    "  %c = qnn.conv2d(%x, %w, *) " CONV " %y = qnn.requantize(%c, *) return %y\n"
    "} where static(%x), cmsis_nn_conv(%c, %y)\n"
    "operator cmsis_nn.max_pool2d(%x: " IMAGE ") { %y = nn.max_pool2d(%x) {data_layout = \"NCHW\", dilations = 1}"
    " return %y } where static(%x)\n";

/* values: the sums of a convolution, and what they are requantised to. */
static const char *check_conv(lathe_compiler *c, uint32_t n, lathe_graph_value *const *values)
{
    const graph_node *conv = n > 0 && values[0] ? values[0]->def : NULL;
    (void)c;
    if (!conv || n < 2 || !values[1] || values[1]->type.dt != DT_I8)
        return "the result is not i8";
    const int64_t groups = lathe_node_int(conv, "groups"), inputs = lathe_value_extent(conv->inputs[1], 1);
    if (groups != 1 && (groups != lathe_value_extent(conv->inputs[0], 1) || inputs != 1))
        return "CMSIS-NN has one group, or one for each channel";
    for (uint32_t i = 2; i < conv->n_inputs; i++)
        if (conv->inputs[i] &&
            (!graph_constant(conv->inputs[i]) || (i == 3 && lathe_value_count(conv->inputs[i]) > 1)))
            return "its zero points are not known";
    for (uint32_t i = 1; i < values[1]->def->n_inputs; i++)
        if (values[1]->def->inputs[i] && !graph_constant(values[1]->def->inputs[i]))
            return "its scales are not known";
    return NULL;
}

static const lathe_check checks[] = {{"cmsis_nn_conv", check_conv}, {NULL, NULL}};

const lathe_codegen byoc_cmsis_nn = {
    .api = LATHE_CODEGEN_API,
    .name = "cmsis_nn",
    .patterns = patterns,
    .checks = checks,
    .ldflags = "-lcmsis-nn",
    .begin = begin,
    .func = func,
};
