/* SPDX-License-Identifier: Apache-2.0 */
/* Reading of layers for VTA: from a result backwards over limits and requantisation to the operator that computes. */
#include "target/vta/graph/vta_layer.h"

#include "graph/op.h"
#include "graph/op/nn.h"
#include "target/vta/vta_text.h"

#include <math.h>
#include <string.h>

typedef struct reader {
    compiler *c;
    vta_layer *out;
    bool inside; /* of a pattern's function: what its operands are was asked when it was made */
    const char *why;
} reader;

static bool no(reader *r, const char *why)
{
    r->why = r->why ? r->why : why;
    return false;
}

const char *vta_layer_text(vta_layer_kind k)
{
    static const char *const texts[] = {
#define X(id, text) text,
        VTA_LAYERS(X)
#undef X
    };
    return texts[k];
}

vta_geometry vta_layer_device(compiler *c)
{
    vta_geometry g;
    const char *why;
    (void)vta_config_derive(vta_text_config(c), &g, &why); /* was checked when it was read */
    return g;
}

int64_t vta_layer_groups(const vta_geometry *g, int64_t in_channels, int64_t out_channels, int64_t groups)
{
    const int64_t in_lanes = g->block_in, out_lanes = g->block_out;
    const int64_t in = (in_channels + in_lanes - 1) / in_lanes, out = (out_channels + out_lanes - 1) / out_lanes;
    const int64_t in_each = in_channels / groups, out_each = out_channels / groups;
    for (int64_t n = in < groups ? in : groups; n > 1; n--) {
        const int64_t reads = in / n * in_lanes, makes = out / n * out_lanes;
        if (in % n == 0 && out % n == 0 && reads % in_each == 0 && makes % out_each == 0 &&
            reads / in_each == makes / out_each)
            return n;
    }
    return 1;
}

int64_t vta_layer_half(const vta_layer *l)
{
    return l->bias && l->factor == 1 && l->shift > 0 && l->shift <= 15 ? (int64_t)1 << (l->shift - 1) : 0;
}

bool vta_layer_image(const graph_value *v, int64_t out[4])
{
    int64_t dims[TYPE_MAX_RANK];
    if (v->type.kind != TYPE_TENSOR || (v->type.shape.rank != 4 && v->type.shape.rank != 2) ||
        !shape_get(v->type.shape, dims))
        return false;
    for (int32_t i = 0; i < 4; i++)
        out[i] = i < v->type.shape.rank ? dims[i] : 1;
    return true;
}

static bool is_op(const graph_node *n, const char *name)
{
    return n && strcmp(n->op->name, name) == 0;
}

/* --- numbers --- */

/* The exponent of operand i, a scale: one number. */
static bool exponent(reader *r, const graph_node *n, uint32_t i, int64_t *out)
{
    const tensor_data *t = graph_constant(graph_operand(n, i));
    int e = 0;
    if (!t || t->count < 1)
        return no(r, "a scale is not a constant");
    if (t->count > 1 && t->kind != TENSOR_SPLAT)
        return no(r, "its channels have scales of their own");
    double s = tensor_get_f64(t, 0);
    if (!(s > 0) || frexp(s, &e) != 0.5)
        return no(r, "a scale is not a power of two");
    *out = e - 1;
    return true;
}

static bool zero_point(reader *r, const graph_node *n, uint32_t i)
{
    const graph_value *v = graph_operand(n, i);
    const tensor_data *t = graph_constant(v);
    if (!v)
        return true;
    for (int64_t k = 0; t && k < (t->kind == TENSOR_DENSE ? t->count : 1); k++)
        if (tensor_get_i64(t, k) != 0)
            return no(r, "a zero point is not 0");
    return t || no(r, "a zero point is not a constant");
}

static bool zero_points(reader *r, const graph_node *n, uint32_t from, uint32_t to)
{
    for (uint32_t i = from; i <= to; i++)
        if (!zero_point(r, n, i))
            return false;
    return true;
}

static bool half_up(reader *r, const graph_node *n)
{
    return strcmp(graph_attr_string(n, "rounding"), "half_up") == 0 || no(r, "it rounds half to even, not half up");
}

static bool is_i8(const graph_value *v)
{
    return v && v->type.kind == TYPE_TENSOR && v->type.dt == DT_I8;
}

/* (x + half) >> n as the operators define it: counts are cut at 30. */
static int64_t cut(int64_t n)
{
    return n > 30 ? 30 : n < -30 ? -30 : n;
}

/* --- what follows the operator, from behind --- */

/* Limits that stand in front of a requantisation hold, requantised, behind it: that is monotone. */
static int64_t requantized(int64_t v, int64_t n)
{
    int64_t y = n > 0 ? (v + ((int64_t)1 << (n - 1))) >> n : v * ((int64_t)1 << -n);
    return y < INT8_MIN ? INT8_MIN : y > INT8_MAX ? INT8_MAX : y;
}

static bool limit(reader *r, const graph_value *v, int64_t *out)
{
    const tensor_data *t = graph_constant(v);
    if (v && (!t || t->count != 1))
        return no(r, "a limit is not a constant");
    if (t)
        *out = tensor_get_i64(t, 0);
    return true;
}

/* The limits of n, a ReLU or a clip; in units of its operand. */
static bool limits_of(reader *r, const graph_node *n, int64_t *low, int64_t *high)
{
    *low = INT32_MIN, *high = INT32_MAX;
    if (is_op(n, "nn.relu")) {
        *low = 0;
        return true;
    }
    return limit(r, graph_operand(n, 1), low) && limit(r, graph_operand(n, 2), high);
}

static bool is_limit(const graph_node *n)
{
    return is_op(n, "nn.relu") || is_op(n, "clip");
}

/* Limits behind the requantisation; the value in front of them. */
static bool read_limits(reader *r, graph_value **v)
{
    int64_t low, high;
    while (is_limit((*v)->def)) {
        if (!limits_of(r, (*v)->def, &low, &high))
            return false;
        nn_clip_behind(low, high, &r->out->low, &r->out->high);
        *v = (*v)->def->inputs[0];
    }
    return true;
}

/* What makes 8 bits of sums; *v becomes the sums. */
static bool read_requantize(reader *r, graph_value **v)
{
    const graph_node *n = (*v)->def;
    int64_t from, to, low, high;
    if (!is_op(n, "qnn.requantize"))
        return no(r, "its sums are not requantized");
    if (!half_up(r, n) || !exponent(r, n, 1, &from) || !exponent(r, n, 2, &to) || !zero_point(r, n, 3))
        return false;
    r->out->shift = cut(to - from);
    *v = n->inputs[0];
    while (is_limit((*v)->def)) {
        if (!limits_of(r, (*v)->def, &low, &high))
            return false;
        nn_clip_behind(requantized(low, r->out->shift), requantized(high, r->out->shift), &r->out->low, &r->out->high);
        *v = (*v)->def->inputs[0];
    }
    return true;
}

/* --- operators --- */

/* Whether v, an operand of a sum with `channels` on axis `axis` of rank `rank`, is one number for each of them. */
static bool is_bias(const graph_value *v, const graph_value *sum, int32_t axis)
{
    int64_t dims[TYPE_MAX_RANK], all[TYPE_MAX_RANK];
    if (!v || v->type.kind != TYPE_TENSOR || !shape_get(v->type.shape, dims) || !shape_get(sum->type.shape, all))
        return false;
    int32_t lead = sum->type.shape.rank - v->type.shape.rank;
    bool fits = lead >= 0;
    for (int32_t i = 0; fits && i < v->type.shape.rank; i++)
        fits = dims[i] == (i + lead == axis ? all[axis] : 1);
    return fits && axis >= lead;
}

/* A sum with one number for each channel; *v becomes the other operand. */
static bool read_bias(reader *r, graph_value **v, int32_t axis)
{
    graph_node *n = (*v)->def;
    if (!is_op(n, "add"))
        return true;
    for (uint32_t i = 0; i < 2; i++) {
        graph_node *other = n->inputs[1 - i]->def;
        bool sums = is_op(other, "qnn.conv2d") || is_op(other, "qnn.conv2d_transpose") || is_op(other, "qnn.matmul");
        if (!sums || !is_bias(n->inputs[i], *v, axis))
            continue;
        r->out->bias = n->inputs[i];
        *v = n->inputs[1 - i];
        return true;
    }
    return no(r, "what is added to its sums is not one number for each channel");
}

/* Kernel extents are in out->kernel. */
static bool read_window(reader *r, const graph_node *n)
{
    nn_window w = {0};
    diags_mark mark = diags_get_mark(&r->c->diags);
    memcpy(w.kernel, r->out->kernel, sizeof r->out->kernel);
    bool ok = nn_window_read(r->c, n, 2, &w);
    diags_reset(&r->c->diags, mark);
    for (uint32_t i = 0; ok && i < 2; i++) {
        if (w.dilation[i] != 1)
            return no(r, "its kernel is dilated");
        r->out->stride[i] = w.stride[i];
        r->out->pads[i] = w.pad_begin[i];
        r->out->pads[2 + i] = w.pad_end[i];
    }
    return ok || no(r, "the size of its window is not known");
}

static bool read_conv(reader *r, graph_node *n)
{
    vta_layer *l = r->out;
    int64_t w[TYPE_MAX_RANK];
    l->kind = VTA_LAYER_CONV;
    l->data[0] = n->inputs[0];
    l->weights = n->inputs[1];
    l->groups = graph_attr_int(n, "groups");
    if (!shape_get(l->weights->type.shape, w) || l->weights->type.shape.rank != 4 ||
        strcmp(graph_attr_string(n, "kernel_layout"), "OIHW") != 0 || nn_data_block(n, "data_layout"))
        return no(r, "its weights are not O, I, rows, columns");
    l->kernel[0] = w[2];
    l->kernel[1] = w[3];
    return zero_points(r, n, 2, 3) && read_window(r, n);
}

static bool read_conv_transpose(reader *r, graph_node *n)
{
    vta_layer *l = r->out;
    nn_transpose_window t;
    int64_t x[4];
    l->kind = VTA_LAYER_CONV_TRANSPOSE;
    l->data[0] = n->inputs[0];
    l->weights = n->inputs[1];
    l->groups = graph_attr_int(n, "groups");
    diags_mark mark = diags_get_mark(&r->c->diags);
    bool ok = vta_layer_image(l->data[0], x) && nn_transpose_window_read(r->c, n, &t) && t.w.n == 2;
    diags_reset(&r->c->diags, mark);
    if (!ok)
        return no(r, "the size of its window is not known");
    for (uint32_t i = 0; i < 2; i++) {
        int64_t out = 0;
        if (t.w.dilation[i] != 1)
            return no(r, "its kernel is dilated");
        (void)dim_is_const(t.out[i], &out); /* as the image's extents are */
        l->kernel[i] = t.w.kernel[i];
        l->stride[i] = t.w.stride[i];
        l->pads[i] = t.w.pad_begin[i];
        l->pads[2 + i] = (x[2 + i] - 1) * l->stride[i] + l->kernel[i] - l->pads[i] - out;
    }
    return zero_points(r, n, 2, 3);
}

static bool read_dense(reader *r, graph_node *n)
{
    vta_layer *l = r->out;
    l->kind = VTA_LAYER_DENSE;
    l->data[0] = n->inputs[0];
    l->weights = n->inputs[1];
    l->transposed = graph_attr_int(n, "transpose_b") != 0;
    if (graph_attr_int(n, "transpose_a") || l->data[0]->type.shape.rank != 2 || l->weights->type.shape.rank != 2 ||
        strcmp(graph_attr_string(n, "weight_layout"), "KN") != 0)
        return no(r, "it is not a product of a matrix and weights");
    return zero_points(r, n, 2, 3);
}

/* Sums, and what follows them. */
static bool read_sums(reader *r, graph_value *v)
{
    int32_t axis = 1;
    if (!read_requantize(r, &v) || !read_bias(r, &v, axis))
        return false;
    graph_node *n = v->def;
    r->out->anchor = n;
    if (is_op(n, "qnn.conv2d"))
        return read_conv(r, n);
    if (is_op(n, "qnn.conv2d_transpose"))
        return read_conv_transpose(r, n);
    return is_op(n, "qnn.matmul") ? read_dense(r, n) : no(r, "its sums are neither a convolution's nor a product's");
}

static bool read_add(reader *r, graph_node *n)
{
    int64_t a, b, y, same[TYPE_MAX_RANK], other[TYPE_MAX_RANK];
    vta_layer *l = r->out;
    l->kind = VTA_LAYER_ADD;
    l->data[0] = n->inputs[0];
    l->data[1] = n->inputs[2];
    if (graph_attr_int(n, "minus"))
        return no(r, "it is a difference");
    if (!half_up(r, n) || !exponent(r, n, 1, &a) || !exponent(r, n, 3, &b) || !exponent(r, n, 4, &y) ||
        !zero_points(r, n, 5, 7))
        return false;
    if (!shape_get(l->data[0]->type.shape, same) || !shape_get(l->data[1]->type.shape, other) ||
        l->data[0]->type.shape.rank != l->data[1]->type.shape.rank ||
        memcmp(same, other, (size_t)l->data[0]->type.shape.rank * sizeof *same) != 0)
        return no(r, "its operands have different shapes");
    int64_t least = a < b ? a : b;
    l->left[0] = cut(a - least);
    l->left[1] = cut(b - least);
    l->shift = cut(y - least);
    return (l->left[0] <= 15 && l->left[1] <= 15) || no(r, "the scales of its operands are too far apart");
}

static bool has_no_zero(const graph_node *n, uint32_t from, uint32_t to)
{
    reader unheard = {0};
    return zero_points(&unheard, n, from, to);
}

/* A resize whose results are elements of its operand: no sums with weights below 0, no number for what is outside. */
static bool takes_elements(const graph_node *n)
{
    return is_op(n, "resize") && strcmp(graph_attr_string(n, "mode"), "nearest") == 0 &&
           strcmp(graph_attr_string(n, "coordinate_transformation_mode"), "tf_crop_and_resize") != 0;
}

/* The calls that lead into a function. */
typedef struct calls {
    const struct calls *outer;
    const graph_node *call;
} calls;

static bool is_positive(const graph_value *v, const calls *in, uint32_t depth);

static bool is_positive_result(const graph_value *v, const graph_func *f, const calls *in, uint32_t depth)
{
    const calls here = {in, v->def};
    uint32_t i = 0;
    while (i < v->def->n_outputs && v->def->outputs[i] != v)
        i++;
    return i < f->results.len && is_positive(f->results.data[i], &here, depth);
}

/* Whether no element of v is below 0, as far as the nodes say: then zeros around it are no greater than any. */
/* Above 0 where its first operand is. */
static bool keeps_positive(const graph_node *n)
{
    static const char *const always[] = {"clip", "nn.max_pool2d", "reshape"};
    for (size_t i = 0; i < sizeof always / sizeof *always; i++)
        if (is_op(n, always[i]))
            return true;
    if (is_op(n, "qnn.requantize"))
        return has_no_zero(n, 3, 3);
    if (is_op(n, "qnn.avg_pool2d") || is_op(n, "qnn.global_avg_pool2d"))
        return has_no_zero(n, 3, 4);
    return takes_elements(n);
}

static bool is_positive(const graph_value *v, const calls *in, uint32_t depth)
{
    const graph_node *n = v->def;
    if (depth == 0)
        return false;
    if (!n)
        return in && v->index < in->call->n_inputs && is_positive(in->call->inputs[v->index], in->outer, depth - 1);
    if (graph_callee(n))
        return is_positive_result(v, graph_callee(n), in, depth - 1);
    if (is_op(n, "nn.relu"))
        return true;
    if (is_op(n, "clip") && graph_constant(graph_operand(n, 1)) && tensor_get_i64(graph_constant(n->inputs[1]), 0) >= 0)
        return true;
    return keeps_positive(n) && is_positive(n->inputs[0], in, depth - 1);
}

enum { FAR = 64 }; /* nodes that are asked: those that keep a sign, one behind the other */

bool vta_layer_is_positive(const graph_value *v, const graph_node *call)
{
    const calls in = {NULL, call};
    return is_positive(v, call ? &in : NULL, FAR);
}

static bool read_pool_window(reader *r, const graph_node *n)
{
    const int64_t *k = NULL;
    vta_layer *l = r->out;
    if (graph_attr_ints(n, "pool_size", &k) != 2)
        return no(r, "the size of its window is not known");
    memcpy(l->kernel, k, sizeof l->kernel);
    return read_window(r, n);
}

static bool is_padded(const vta_layer *l)
{
    return l->pads[0] || l->pads[1] || l->pads[2] || l->pads[3];
}

/* With ceil_mode, or pads found by auto_pad, the last windows may reach beyond the pads: these cover what they read. */
static bool cover_windows(reader *r, const graph_value *x, const graph_value *y)
{
    int64_t in[4], out[4];
    vta_layer *l = r->out;
    if (!vta_layer_image(x, in) || !vta_layer_image(y, out))
        return no(r, "its shapes are not known");
    for (uint32_t i = 0; i < 2; i++) {
        int64_t need = (out[2 + i] - 1) * l->stride[i] + l->kernel[i] - in[2 + i] - l->pads[i];
        if (need > l->pads[2 + i])
            l->pads[2 + i] = need;
    }
    return true;
}

static bool read_max_pool(reader *r, graph_node *n)
{
    vta_layer *l = r->out;
    l->kind = VTA_LAYER_MAX_POOL;
    l->data[0] = n->inputs[0];
    if (!read_pool_window(r, n) || !cover_windows(r, n->inputs[0], n->outputs[0]))
        return false;
    for (uint32_t i = 0; i < 2; i++) /* the CPU has the least number there, the device zero */
        if (l->pads[i] >= l->kernel[i] || l->pads[2 + i] >= l->kernel[i])
            return no(r, "its padding is as large as its window, so a window may read nothing else");
    l->wants_positive = is_padded(l);
    return !l->wants_positive || r->inside || vta_layer_is_positive(l->data[0], NULL) ||
           no(r, "its padding is less than any number, and the device pads with zeros");
}

/* The factor and the shift behind it, as the CPU has them. Of a power of two they are a shift alone, which has room for
 * any sum. */
static bool set_average(reader *r, int64_t count, int64_t from, int64_t to)
{
    vta_layer *l = r->out;
    const nn_mean m = nn_mean_of(count, true, to - from);
    int64_t bits = 0;
    while ((int64_t)1 << bits < count && bits < 30)
        bits++;
    const int64_t rest = bits + to - from;
    if ((int64_t)1 << bits == count && rest >= 0 && rest <= 30 && (m.wide || m.k + to - from <= 30)) {
        l->shift = rest;
        return true;
    }
    l->factor = (((int64_t)1 << m.k) + count / 2) / count;
    l->shift = cut(to - from + m.k);
    if (m.wide)
        return no(r, "its sums by its factor have more than 32 bits");
    return l->factor <= INT16_MAX || no(r, "its factor has more than 15 bits");
}

static bool read_avg_pool(reader *r, graph_node *n)
{
    vta_layer *l = r->out;
    int64_t from, to, image[4], pads[4];
    l->kind = VTA_LAYER_AVG_POOL;
    l->data[0] = n->inputs[0];
    if (!half_up(r, n) || !exponent(r, n, 1, &from) || !exponent(r, n, 2, &to) || !zero_points(r, n, 3, 4))
        return false;
    if (!vta_layer_image(l->data[0], image))
        return no(r, "its shapes are not known");
    if (is_op(n, "qnn.global_avg_pool2d"))
        l->kernel[0] = image[2], l->kernel[1] = image[3];
    else if (!read_pool_window(r, n))
        return false;
    memcpy(pads, l->pads, sizeof pads);
    if (!cover_windows(r, n->inputs[0], n->outputs[0]))
        return false;
    if (memcmp(pads, l->pads, sizeof pads) != 0 || (is_padded(l) && !graph_attr_int(n, "count_include_pad")))
        return no(r, "its windows at the border have fewer elements than those inside");
    return set_average(r, l->kernel[0] * l->kernel[1], from, to);
}

static bool read_upsample(reader *r, graph_node *n)
{
    vta_layer *l = r->out;
    int64_t in[4], out[4];
    l->kind = VTA_LAYER_UPSAMPLE;
    l->data[0] = n->inputs[0];
    const char *how = graph_attr_string(n, "coordinate_transformation_mode"),
               *nearest = graph_attr_string(n, "nearest_mode");
    bool floors = strcmp(how, "asymmetric") == 0 && strcmp(nearest, "floor") == 0;
    bool centred = strcmp(how, "half_pixel") == 0 && strncmp(nearest, "round_prefer", 12) == 0;
    if (strcmp(graph_attr_string(n, "mode"), "nearest") != 0 || (!floors && !centred))
        return no(r, "it does not repeat the nearest pixel");
    if (!vta_layer_image(l->data[0], in) || !vta_layer_image(n->outputs[0], out) || in[0] != out[0] ||
        in[1] != out[1] || in[2] < 1 || in[3] < 1 || out[2] % in[2] || out[3] % in[3])
        return no(r, "its scale is not a whole number");
    l->scale[0] = out[2] / in[2];
    l->scale[1] = out[3] / in[3];
    return true;
}

/* [N, C] beside [N, C, 1, 1]. */
static bool read_view(reader *r, graph_node *n)
{
    int64_t in[4], out[4];
    r->out->kind = VTA_LAYER_VIEW;
    r->out->data[0] = n->inputs[0];
    bool same = vta_layer_image(n->inputs[0], in) && vta_layer_image(n->outputs[0], out);
    for (uint32_t i = 0; same && i < 4; i++)
        same = in[i] == out[i];
    return same || no(r, "it moves more than extents of 1");
}

/* Blocks of channels lie one behind the other, those of one operand together, as long as one tile has all images. */
static bool read_concat(reader *r, graph_node *n)
{
    const vta_geometry g = vta_layer_device(r->c);
    int64_t image[4];
    r->out->kind = VTA_LAYER_CONCAT;
    if (n->n_inputs > VTA_LAYER_DATA)
        return no(r, "it has more than four operands");
    for (uint32_t i = 0; i < n->n_inputs; i++) {
        r->out->data[i] = n->inputs[i];
        if (n->inputs[i]->type.kind != TYPE_TENSOR || n->inputs[i]->type.shape.rank != 4 ||
            graph_attr_int(n, "axis") != 1)
            return no(r, "it is not along the channels of images");
        if (!vta_layer_image(n->inputs[i], image) || image[1] % g.block_out != 0 || image[1] < 1)
            return no(r, "its operands are not whole blocks of channels");
        if (image[0] > (int64_t)g.batch)
            return no(r, "its images are more than the rows of a tile");
    }
    return g.block_in == g.block_out || no(r, "the device's blocks of inputs and outputs differ");
}

static bool read_operator(reader *r, graph_value *v)
{
    graph_node *n = v->def;
    r->out->anchor = n;
    if (!n)
        return no(r, "it computes nothing");
    if (is_op(n, "qnn.add"))
        return read_add(r, n);
    if (is_op(n, "nn.max_pool2d"))
        return read_max_pool(r, n);
    if (is_op(n, "qnn.avg_pool2d") || is_op(n, "qnn.global_avg_pool2d"))
        return read_avg_pool(r, n);
    if (is_op(n, "resize"))
        return read_upsample(r, n);
    if (is_op(n, "reshape"))
        return read_view(r, n);
    if (is_op(n, "concatenate"))
        return read_concat(r, n);
    return read_sums(r, v);
}

/* Sizes that are known, numbers of 8 bits. */
static bool check_values(reader *r)
{
    const vta_layer *l = r->out;
    vta_geometry g = vta_layer_device(r->c);
    int64_t image[4], least = -((int64_t)1 << (g.width[VTA_MEM_WGT] - 1));
    if (g.width[VTA_MEM_INP] != 8 || g.width[VTA_MEM_ACC] != 32)
        return no(r, "the device's numbers are not 8 bits and its sums 32");
    for (uint32_t i = 0; i < VTA_LAYER_DATA; i++)
        if (l->data[i] && (!is_i8(l->data[i]) || !vta_layer_image(l->data[i], image) || image[0] < 1))
            return no(r, "its data are not i8 of a known shape with 4 or 2 axes");
    if (!is_i8(l->result) || !vta_layer_image(l->result, image))
        return no(r, "its result is not i8 of a known shape with 4 or 2 axes");
    if (l->weights && !is_i8(l->weights))
        return no(r, "its weights are not i8");
    const tensor_data *t = graph_constant(l->weights);
    for (int64_t i = 0; t && g.width[VTA_MEM_WGT] < 8 && i < t->count; i++)
        if (tensor_get_i64(t, i) < least || tensor_get_i64(t, i) >= -least)
            return no(r, "its weights have more bits than the device's");
    return true;
}

static void start(vta_layer *out, graph_value *result)
{
    *out = (vta_layer){.result = result, .groups = 1, .factor = 1, .low = INT8_MIN, .high = INT8_MAX};
    for (uint32_t i = 0; i < 2; i++)
        out->kernel[i] = out->stride[i] = out->scale[i] = 1;
}

static bool set_clip(reader *r, graph_value *v)
{
    r->out->kind = VTA_LAYER_CLIP;
    r->out->data[0] = v;
    return true;
}

static bool read_layer(compiler *c, graph_value *result, bool inside, vta_layer *out, const char **why)
{
    reader r = {.c = c, .out = out, .inside = inside};
    graph_value *v = result;
    start(out, result);
    bool ok = read_limits(&r, &v);
    if (ok && v->def)
        ok = read_operator(&r, v);
    else if (ok)
        ok = v != result ? set_clip(&r, v) : no(&r, "it computes nothing");
    ok = ok && check_values(&r);
    *why = r.why;
    return ok;
}

bool vta_layer_read(compiler *c, graph_value *result, vta_layer *out, const char **why)
{
    return read_layer(c, result, false, out, why);
}

bool vta_layer_limits(compiler *c, graph_value *result, vta_layer *out, const char **why)
{
    reader r = {.c = c, .out = out};
    int64_t low, high;
    start(out, result);
    out->anchor = result->def;
    bool ok = limits_of(&r, result->def, &low, &high);
    if (ok)
        nn_clip_behind(low, high, &out->low, &out->high);
    ok = ok && set_clip(&r, result->def->inputs[0]) && check_values(&r);
    *why = r.why;
    return ok;
}

bool vta_layer_of(compiler *c, const graph_func *composite, vta_layer *out, const char **why)
{
    *why = "a layer has one result";
    return composite->results.len == 1 && read_layer(c, composite->results.data[0], true, out, why);
}
