/* SPDX-License-Identifier: Apache-2.0 */
/* Reading of QDQ patterns for the pass use-integers. */
#include "graph/pass/qnn.h"

#include <math.h>
#include <string.h>

#define MAX_STEPS 64u /* operators that move elements, one behind the other */

/* --- parameters --- */

bool qnn_is_single(const qnn_params *p)
{
    return p->scale->count == 1 && (!p->zero || p->zero->count == 1);
}

bool qnn_is_wide(const qnn_params *p)
{
    return p->dt == DT_I16 || p->dt == DT_U16;
}

float qnn_scale(const qnn_params *p, int64_t i)
{
    return (float)tensor_get_f64(p->scale, p->scale->count == 1 ? 0 : i);
}

int64_t qnn_zero(const qnn_params *p, int64_t i)
{
    return p->zero ? tensor_get_i64(p->zero, p->zero->count == 1 ? 0 : i) : 0;
}

bool qnn_same_params(const qnn_params *a, const qnn_params *b)
{
    return a->dt == b->dt && qnn_is_single(a) && qnn_is_single(b) && qnn_scale(a, 0) == qnn_scale(b, 0) &&
           qnn_zero(a, 0) == qnn_zero(b, 0);
}

bool qnn_powers_of_two(const qnn_params *p)
{
    int exponent;
    for (int64_t i = 0; i < p->scale->count; i++)
        if (frexp(tensor_get_f64(p->scale, i), &exponent) != 0.5 || tensor_get_f64(p->scale, i) < 0x1p-126)
            return false;
    return true;
}

int64_t qnn_quantized(const qnn_params *p, double x, bool half_up)
{
    double least = (double)dtype_min_int(p->dt), most = (double)dtype_max_int(p->dt);
    float q = (float)x / qnn_scale(p, 0);
    double v = (half_up ? floor((double)q + 0.5) : rint((double)q)) + (double)qnn_zero(p, 0);
    return v >= most ? dtype_max_int(p->dt) : v >= least ? (int64_t)v : dtype_min_int(p->dt);
}

const tensor_data *qnn_centred(compiler *c, dtype to, const tensor_data *w, const tensor_data *zeros, int64_t lines,
                               int64_t apart, int64_t *sums)
{
    const size_t size = dtype_bytes(to);
    uint8_t *out = arena_alloc_array(&c->mem, (size_t)w->count, size, size);
    for (int64_t i = 0; sums && i < lines; i++)
        sums[i] = 0;
    for (int64_t i = 0; i < w->count; i++) {
        const int64_t line = i / apart % lines, zero = zeros ? tensor_get_i64(zeros, zeros->count > 1 ? line : 0) : 0;
        const int64_t x = tensor_get_i64(w, i) - zero;
        if (x < dtype_min_int(to) || x > dtype_max_int(to))
            return NULL;
        dtype_store_i64(to, out + (size_t)i * size, x);
        if (sums)
            sums[line] += x;
    }
    return tensor_dense(c, to, w->rank, w->dims, out);
}

/* What the quantised number q stands for. */
static double number_of(const qnn_params *p, int64_t q)
{
    return (double)((float)(q - qnn_zero(p, 0)) * qnn_scale(p, 0));
}

static bool is_positive(const tensor_data *scale)
{
    for (int64_t i = 0; i < scale->count; i++)
        if (!(tensor_get_f64(scale, i) > 0) || isinf(tensor_get_f64(scale, i)))
            return false;
    return scale->count > 0;
}

/* Whether numbers of f32, and integers that such scales are for, meet in the node. */
static bool types_fit(const graph_node *n, bool back, bool wide, const qnn_params *p)
{
    const dtype plain = back ? n->outputs[0]->type.dt : n->inputs[0]->type.dt;
    return plain == DT_F32 && (dtype_is_byte(p->dt) || qnn_is_wide(p) || (wide && p->dt == DT_I32));
}

bool qnn_read_params(const graph_node *n, bool wide, qnn_params *out)
{
    bool back = strcmp(n->op->name, "qnn.dequantize") == 0;
    const graph_value *x = n->inputs[0], *zero = graph_operand(n, 2);
    *out = (qnn_params){.scale = graph_constant(n->inputs[1]), .zero = graph_constant(zero)};
    out->dt = back ? x->type.dt : n->outputs[0]->type.dt;
    if (!types_fit(n, back, wide, out) || (zero && !out->zero) || graph_attr_int(n, "block_size") != 0)
        return false;
    if (!out->scale || out->scale->dt != DT_F32 || out->scale->rank > 1 || !is_positive(out->scale))
        return false;
    int32_t rank = x->type.shape.rank;
    int64_t axis = graph_attr_int(n, "axis");
    out->axis = (int32_t)(axis < 0 ? axis + rank : axis);
    return out->scale->count == 1 || (out->axis >= 0 && out->axis < rank);
}

bool qnn_dequantized(const graph_value *v, bool wide, qnn_params *out)
{
    return rewrite_is_op(v, "qnn.dequantize") && qnn_read_params(v->def, wide, out);
}

/* --- what works on quantised numbers as it is --- */

static bool is_any(const char *op, const char *const *list)
{
    for (; *list; list++)
        if (strcmp(op, *list) == 0)
            return true;
    return false;
}

static bool all_static(const graph_node *n)
{
    for (uint32_t i = 0; i < n->n_outputs; i++)
        if (n->outputs[i]->type.kind != TYPE_TENSOR || !shape_is_static(n->outputs[i]->type.shape))
            return false;
    return true;
}

uint32_t qnn_moved_operands(const graph_node *n)
{
    static const char *const choosing[] = {"nn.max_pool1d", "nn.max_pool2d", "nn.max_pool3d", "max", "min", NULL};
    const char *op = n->op->name;
    if (strcmp(op, "split") == 0)
        return all_static(n) ? 1 : 0;
    if (n->n_outputs != 1)
        return 0;
    if (strcmp(op, "concatenate") == 0)
        return n->n_inputs <= QNN_MAX_PARTS ? n->n_inputs : 0;
    if (strcmp(op, "resize") == 0)
        return strcmp(graph_attr_string(n, "mode"), "nearest") == 0 &&
                       strcmp(graph_attr_string(n, "coordinate_transformation_mode"), "tf_crop_and_resize") != 0
                   ? 1
                   : 0;
    if (strcmp(op, "nn.pad") == 0 && strcmp(graph_attr_string(n, "mode"), "constant") == 0)
        return graph_operand(n, 2) && !rewrite_is_uniform(graph_constant(n->inputs[2]), NULL) ? 0 : 1;
    return (n->op->flags & OPF_MOVES) || strcmp(op, "nn.pad") == 0 || is_any(op, choosing) ? 1 : 0;
}

bool qnn_source(const graph_value *v, qnn_params *out)
{
    qnn_params other;
    for (uint32_t step = 0; v && step < MAX_STEPS; step++) {
        if (qnn_dequantized(v, false, out))
            return true;
        uint32_t moved = v->def ? qnn_moved_operands(v->def) : 0;
        if (moved == 0)
            return false;
        for (uint32_t i = 1; i < moved; i++) /* parts of a concatenation: directly */
            if (!qnn_dequantized(v->def->inputs[0], false, out) ||
                !qnn_dequantized(v->def->inputs[i], false, &other) || !qnn_same_params(out, &other))
                return false;
        v = v->def->inputs[0];
    }
    return false;
}

bool qnn_pads_by_constant(const graph_node *n, double *fill)
{
    *fill = 0;
    return strcmp(n->op->name, "nn.pad") == 0 && strcmp(graph_attr_string(n, "mode"), "constant") == 0 &&
           (n->n_inputs < 3 || !n->inputs[2] || rewrite_is_uniform(graph_constant(n->inputs[2]), fill));
}

/* Whether a quantised number says what the pad says. In front of a max pool what is below all numbers may be the least
 * of them. */
static bool fill_fits(const qnn_params *p, double fill, bool is_pooled)
{
    return qnn_is_single(p) && (number_of(p, qnn_quantized(p, fill, false)) == fill ||
                                (is_pooled && fill < number_of(p, dtype_min_int(p->dt))));
}

bool qnn_is_quantised(const graph_value *v, qnn_params *out)
{
    double fill;
    const char *reader = "";
    if (!qnn_source(v, out))
        return false;
    for (; v->def && qnn_moved_operands(v->def) == 1; reader = v->def->op->name, v = v->def->inputs[0])
        if (qnn_pads_by_constant(v->def, &fill) && !fill_fits(out, fill, strncmp(reader, "nn.max_pool", 11) == 0))
            return false;
    return true;
}

bool qnn_is_global_mean(const graph_node *n)
{
    const int64_t *axes = NULL;
    if (strcmp(n->op->name, "mean") != 0)
        return false;
    int32_t rank = n->inputs[0]->type.shape.rank;
    uint32_t len = graph_attr_ints(n, "axes", &axes);
    int64_t dims[TYPE_MAX_RANK];
    bool all = rank >= 3 && len == (uint32_t)rank - 2 && shape_get(n->inputs[0]->type.shape, dims);
    for (uint32_t i = 0; all && i < len; i++) {
        const int64_t axis = axes[i] < 0 ? axes[i] + rank : axes[i]; /* not given twice: the relation says so */
        all = axis >= 2 && dims[axis] > 0;
    }
    return all;
}

/* --- biases --- */

/* One element, or `channels` of them on the axis that stands `behind` from the last. */
static bool lies_on_axis(const type *t, int64_t channels, uint32_t behind)
{
    int64_t dims[TYPE_MAX_RANK];
    if (t->kind != TYPE_TENSOR || t->shape.rank < 0 || !shape_get(t->shape, dims))
        return false;
    for (int32_t i = 0; i < t->shape.rank; i++) {
        bool on_axis = (uint32_t)(t->shape.rank - 1 - i) == behind;
        if (dims[i] != 1 && !(on_axis && dims[i] == channels))
            return false;
    }
    return true;
}

bool qnn_get_bounds(shape s, int64_t *out)
{
    for (int32_t i = 0; i < s.rank; i++)
        if ((out[i] = dim_bound(s.dims[i])) < 0)
            return false;
    return s.rank >= 0;
}

bool qnn_read_bias(const graph_value *v, int64_t channels, uint32_t behind, qnn_bias *out)
{
    *out = (qnn_bias){0};
    if (!lies_on_axis(&v->type, channels, behind))
        return false;
    while (rewrite_is_op(v, "reshape"))
        v = v->def->inputs[0];
    if (qnn_dequantized(v, true, &out->params) && out->params.dt == DT_I32) {
        out->is_integer = true;
        out->numbers = graph_constant(v->def->inputs[0]);
        for (int64_t i = 0; out->params.zero && i < out->params.zero->count; i++)
            if (qnn_zero(&out->params, i) != 0)
                return false;
    } else {
        out->numbers = graph_constant(v);
    }
    return out->numbers && out->numbers->dt == (out->is_integer ? DT_I32 : DT_F32) &&
           (out->numbers->count == 1 || out->numbers->count == channels);
}
