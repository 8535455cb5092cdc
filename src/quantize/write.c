/* SPDX-License-Identifier: Apache-2.0 */
/* The quantised model: QuantizeLinear and DequantizeLinear behind each value that has a scale, weights as 8 bits and
 * biases as 32 behind a DequantizeLinear. */
#include "quantize/quantize.h"

#include <float.h>
#include <math.h>
#include <string.h>

#define MOST_BIAS 2147483520.0 /* the largest f32 below 2^31 */
#define LEAST_EXPONENT (-60) /* of scales that are powers of two: their products stay normal numbers of f32 */

/* The least power of two so that `most` is at most 127 of it. */
static int power_for(double most)
{
    int e = 0;
    double m = frexp(most / 127, &e);
    e -= m == 0.5; /* most / 127 is 2^(e - 1) itself */
    return most > 0 && e > LEAST_EXPONENT ? e : LEAST_EXPONENT;
}

/* A range that numbers are cut to may be better one power of two smaller. */
static int best_power(const quantizer *q, const histogram *h, double most)
{
    int e = power_for(most);
    if (q->o.method != HISTOGRAM_MSE)
        return e;
    int best = e;
    double least = INFINITY;
    for (int k = e; k > e - 4 && k > LEAST_EXPONENT; k--) {
        double reach = ldexp(127.0, k), error = histogram_error(h, -reach, reach, 254);
        best = error < least ? k : best;
        least = error < least ? error : least;
    }
    return best;
}

static void choose_scale(const quantizer *q, quantize_value *v)
{
    const histogram *h = &v->seen;
    const bool sign = q->o.numbers.with_sign;
    histogram_range(h, q->o.method, q->o.percentile, sign, sign ? 255 : 256, &v->lo, &v->hi);
    if (q->o.numbers.powers) {
        int e = q->o.method == HISTOGRAM_MSE ? best_power(q, h, fmax(h->greatest, -h->least)) : power_for(v->hi);
        v->scale = (float)ldexp(1.0, e);
        v->hi = ldexp(127.0, e);
        v->lo = -v->hi;
        return;
    }
    v->scale = (float)((v->hi - v->lo) / (sign ? 254 : 255));
    v->scale = v->scale > 0 ? fmaxf(v->scale, FLT_MIN) : 1.0f;
    v->zero = sign ? 0 : (int64_t)rint(-v->lo / (double)v->scale);
}

/* --- weights and biases --- */

static const char *scalar(quantizer *q, const char *want, dtype dt, double x)
{
    const tensor_data *t = dt == DT_F32 ? tensor_scalar_f64(q->c, dt, x) : tensor_scalar_i64(q->c, dt, (int64_t)x);
    return onnx_edit_add_constant(&q->e, want, t);
}

/* The largest number that a bias may be: with the sums of products it has to fit into 32 bits. */
static double most_bias(const quantizer *q, const quantize_layer *l)
{
    double products = (double)(l->weights->count / l->channels);
    return fmax(MOST_BIAS - products * (q->o.numbers.with_sign ? 128 : 255) * 128, MOST_BIAS / 2);
}

/* The least scale of weights with which a bias is at most `most`, and the product of the scales a normal number. */
static double least_scale(double bias, double most, float x_scale)
{
    return fmax(fabs(bias) / most, (double)FLT_MIN) / (double)x_scale;
}

static float at_least(double scale, double least)
{
    return (float)fmin(scale < least ? least * 1.000001 : scale, (double)FLT_MAX); /* behind the rounding, too */
}

/* Scales of the weights: one, a power of two, one of any size, or one for each
 * channel. `b`: the bias; NULL: none. */
static void weight_scales(const quantizer *q, const quantize_layer *l, const tensor_data *b, int64_t inner,
                          float x_scale, float *scale)
{
    const tensor_data *w = l->weights;
    double all = 0, most = most_bias(q, l);
    for (int64_t i = 0; i < l->channels; i++)
        scale[i] = 0;
    for (int64_t i = 0; i < w->count; i++) {
        int64_t channel = i / inner % l->channels;
        double x = fabs(tensor_get_f64(w, i));
        all = x > all ? x : all;
        scale[channel] = x > (double)scale[channel] ? (float)x : scale[channel];
    }
    double most_least = 0, same = all > 0 ? all / 127 : 1; /* same: of a channel of zeros, which has a bias still */
    for (int64_t i = 0; i < l->channels; i++) {
        double least = fmax(least_scale(b ? tensor_get_f64(b, i) : 0, most, x_scale), (double)FLT_MIN);
        most_least = fmax(most_least, least);
        scale[i] = at_least(scale[i] > 0 ? (double)(scale[i] / 127) : same, least);
    }
    float power = (float)ldexp(1.0, power_for(fmax(all, most_least * 127)));
    for (int64_t i = 0; i < l->channels && q->one_scale; i++)
        scale[i] = q->o.numbers.powers ? power : at_least(same, most_least);
}

static const char *dequantize(quantizer *q, const char *want, const tensor_data *t, const tensor_data *scale,
                              int64_t axis, pb_node **out)
{
    arena *a = &q->c->mem;
    const char *in[3] = {onnx_edit_add_constant(&q->e, arena_printf(a, "%s_quantized", want), t),
                         onnx_edit_add_constant(&q->e, arena_printf(a, "%s_scale", want), scale), NULL};
    static const uint8_t nothing[8] = {0};
    const tensor_data *zero = tensor_splat(q->c, t->dt, scale->rank, scale->dims, nothing);
    in[2] = onnx_edit_add_constant(&q->e, arena_printf(a, "%s_zero_point", want), zero);
    const char *result = onnx_edit_fresh(&q->e, arena_printf(a, "%s_dequantized", want));
    *out = onnx_edit_node(&q->e, "DequantizeLinear", 3, in, result);
    if (scale->rank)
        onnx_edit_set_int(&q->e, *out, "axis", axis);
    return result;
}

typedef VEC(pb_node *) node_list;

static void quantize_weights(quantizer *q, quantize_layer *l, float x_scale, node_list *before)
{
    compiler *c = q->c;
    const tensor_data *w = l->weights, *b = *l->bias ? onnx_edit_constant(&q->e, l->bias) : NULL;
    int64_t inner = 1, n = q->one_scale ? 1 : l->channels;
    for (uint32_t i = (uint32_t)l->axis + 1; i < w->rank; i++)
        inner *= w->dims[i];
    float *scale = arena_array(&c->mem, float, (size_t)l->channels), *sums = arena_array(&c->mem, float, (size_t)n);
    int8_t *numbers = arena_array(&c->mem, int8_t, (size_t)w->count);
    double error = 0, power = 0;
    weight_scales(q, l, b, inner, x_scale, scale);
    for (int64_t i = 0; i < w->count; i++) {
        double x = tensor_get_f64(w, i), s = (double)scale[i / inner % l->channels], v = rint(x / s);
        numbers[i] = (int8_t)(v > 127 ? 127 : v < -127 ? -127 : v);
        error += (x - numbers[i] * s) * (x - numbers[i] * s);
        power += x * x;
    }
    l->weight_error = power > 0 ? sqrt(error / power) : 0;
    pb_node *node;
    const tensor_data *scales = q->one_scale ? tensor_scalar_f64(c, DT_F32, (double)scale[0])
                                             : tensor_dense(c, DT_F32, 1, &n, scale);
    const char *name = onnx_edit_input(&q->e, l->node, 1);
    onnx_edit_set_input(&q->e, l->node, 1,
                        dequantize(q, name, tensor_dense(c, DT_I8, w->rank, w->dims, numbers), scales, l->axis, &node));
    vec_push(&c->mem, before, node);
    if (!b)
        return;
    const double most = most_bias(q, l);
    int32_t *biases = arena_array(&c->mem, int32_t, (size_t)l->channels);
    for (int64_t i = 0; i < n; i++)
        sums[i] = x_scale * scale[i];
    for (int64_t i = 0; i < l->channels; i++) {
        double v = rint(tensor_get_f64(b, i) / (double)sums[n == 1 ? 0 : i]);
        biases[i] = (int32_t)(v > most ? most : v < -most ? -most : v);
    }
    scales = q->one_scale ? tensor_scalar_f64(c, DT_F32, (double)sums[0]) : tensor_dense(c, DT_F32, 1, &n, sums);
    onnx_edit_set_input(&q->e, l->node, 2,
                        dequantize(q, l->bias, tensor_dense(c, DT_I32, 1, &l->channels, biases), scales, 0, &node));
    vec_push(&c->mem, before, node);
}

/* --- values --- */

/* Behind what makes it (`maker`; NULL: an input); readers get the dequantised one, and so do those of a result of the
 * model: it keeps its name. */
static void quantize_one(quantizer *q, quantize_value *v, pb_node *maker, node_list *behind)
{
    arena *a = &q->c->mem;
    const quantize_value *group = &q->values.data[v->group];
    dtype dt = q->o.numbers.with_sign ? DT_I8 : DT_U8;
    v->scale = group->scale;
    v->zero = group->zero;
    v->lo = group->lo;
    v->hi = group->hi;
    const bool is_result = maker && onnx_edit_is_result(&q->e, v->name);
    const char *x = is_result ? onnx_edit_fresh(&q->e, arena_printf(a, "%s_float", v->name)) : v->name;
    const char *in[3] = {x, scalar(q, arena_printf(a, "%s_scale", v->name), DT_F32, (double)v->scale),
                         scalar(q, arena_printf(a, "%s_zero_point", v->name), dt, (double)v->zero)};
    const char *numbers = onnx_edit_fresh(&q->e, arena_printf(a, "%s_quantized", v->name));
    v->dequantized = is_result ? v->name : onnx_edit_fresh(&q->e, arena_printf(a, "%s_dequantized", v->name));
    if (is_result)
        onnx_edit_set_output(&q->e, maker, v->name, x);
    vec_push(a, behind, onnx_edit_node(&q->e, "QuantizeLinear", 3, in, numbers));
    in[0] = numbers;
    vec_push(a, behind, onnx_edit_node(&q->e, "DequantizeLinear", 3, in, v->dequantized));
}

static const quantize_value *value_of(const quantizer *q, const char *name)
{
    uint32_t at = 0;
    return *name && ptr_map_get(&q->by_name, name, &at) ? &q->values.data[at] : NULL;
}

static void insert(quantizer *q)
{
    arena *a = &q->c->mem;
    pb_graph *g = q->e.graph;
    node_list all = {0};
    ptr_map layers;
    uint32_t at = 0;
    ptr_map_init(&layers, a);
    for (uint32_t i = 0; i < q->n_layers; i++)
        ptr_map_set(&layers, q->layers[i].node, i);
    for (uint32_t i = 0; i < q->values.len; i++)
        if (!*q->values.data[i].op)
            quantize_one(q, &q->values.data[i], NULL, &all);
    for (uint32_t i = 0; i < g->node.len; i++) {
        pb_node *n = g->node.data[i];
        const quantize_value *x = value_of(q, onnx_edit_input(&q->e, n, 0));
        if (x && ptr_map_get(&layers, n, &at))
            quantize_weights(q, &q->layers[at], x->scale, &all);
        for (uint32_t k = 0; k < n->input.len; k++) {
            const quantize_value *v = value_of(q, onnx_edit_input(&q->e, n, k));
            if (v)
                onnx_edit_set_input(&q->e, n, k, v->dequantized);
        }
        vec_push(a, &all, n);
        for (uint32_t k = 0; k < n->output.len; k++) {
            const quantize_value *v = value_of(q, onnx_edit_output(&q->e, n, k));
            if (v)
                quantize_one(q, &q->values.data[v - q->values.data], n, &all);
        }
    }
    g->node.data = all.data;
    g->node.len = all.len;
    g->node.cap = all.cap;
}

/* Initializers that nobody reads any more: the weights as they were. */
static void drop_unread(quantizer *q)
{
    pb_graph *g = q->e.graph;
    ptr_map read;
    uint32_t kept = 0, unused;
    onnx_edit_count_reads(&q->e, &read);
    for (uint32_t i = 0; i < g->input.len; i++)
        ptr_map_set(&read, onnx_edit_name(&q->e, g->input.data[i]->name), 1);
    for (uint32_t i = 0; i < g->initializer.len; i++)
        if (ptr_map_get(&read, onnx_edit_name(&q->e, g->initializer.data[i]->name), &unused))
            g->initializer.data[kept++] = g->initializer.data[i];
    g->initializer.len = kept;
}

static bool all_seen(const quantizer *q)
{
    for (uint32_t i = 0; i < q->values.len; i++) {
        const quantize_value *v = &q->values.data[i];
        if (v->group != i)
            continue;
        if (v->seen.not_finite) {
            diag_error(&q->c->diags, DIAG_DATA, src_loc_none(),
                       "on these samples, value '%s' of the float model has %llu elements that are infinite or NaN",
                       v->name, (unsigned long long)v->seen.not_finite);
            diag_hint(&q->c->diags, "--skip NODE leaves the operator that makes it in float; or remove the samples "
                                    "that lead to it");
            return false;
        }
        if (v->seen.seen == 0)
            return diag_error(&q->c->diags, DIAG_DATA, src_loc_none(),
                              "value '%s' was never computed: there is no data for it", v->name);
    }
    return true;
}

bool quantize_write(quantizer *q, span *out, span *shown)
{
    pb_graph *g = q->e.graph;
    if (!all_seen(q))
        return false;
    for (uint32_t i = 0; i < q->values.len; i++)
        if (q->values.data[i].group == i)
            choose_scale(q, &q->values.data[i]);
    insert(q);
    drop_unread(q);
    q->e.model->ir_version = q->e.model->ir_version < 4 ? 4 : q->e.model->ir_version;
    onnx_edit_set_metadata(&q->e, "lathe.rounding", q->o.numbers.powers ? "half_up" : "nearest_even");
    if (!onnx_edit_bytes(&q->e, out))
        return false;
    const uint32_t own = g->output.len;
    for (uint32_t i = 0; i < q->values.len; i++)
        (void)onnx_edit_add_result(&q->e, q->values.data[i].dequantized);
    bool ok = onnx_edit_bytes(&q->e, shown);
    g->output.len = own;
    return ok;
}
