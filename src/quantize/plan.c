/* SPDX-License-Identifier: Apache-2.0 */
/* Which values of a model are quantised. Convolutions, products, sums and average pools take and give quantised
 * values; what only moves elements, or chooses among them, hands its operand's scale on. A clip behind arithmetic is
 * part of it: the value between them has no scale. Results of the model stay as they are, unless options ask for scales
 * of its inputs and results. */
#include "quantize/quantize.h"

#include <math.h>
#include <string.h>

typedef enum node_kind { KIND_OTHER, KIND_WEIGHTS, KIND_SUM, KIND_AVERAGE, KIND_SAME, KIND_JOIN } node_kind;

static const struct {
    const char *op;
    node_kind kind;
} kinds[] = {
    {"Conv", KIND_WEIGHTS},   {"Gemm", KIND_WEIGHTS},        {"MatMul", KIND_WEIGHTS},
    {"ConvTranspose", KIND_WEIGHTS},
    {"Add", KIND_SUM},        {"AveragePool", KIND_AVERAGE}, {"GlobalAveragePool", KIND_AVERAGE},
    {"ReduceMean", KIND_AVERAGE},
    {"MaxPool", KIND_SAME},   {"GlobalMaxPool", KIND_SAME},  {"Relu", KIND_SAME},
    {"Clip", KIND_SAME},      {"Flatten", KIND_SAME},        {"Reshape", KIND_SAME},
    {"Transpose", KIND_SAME}, {"Squeeze", KIND_SAME},        {"Unsqueeze", KIND_SAME},
    {"Slice", KIND_SAME},     {"Identity", KIND_SAME},       {"DepthToSpace", KIND_SAME},
    {"Concat", KIND_JOIN},
};

static src_loc at_file(const char *path)
{
    src_loc loc = src_loc_none();
    loc.file = path;
    return loc;
}

/* A name of the model: who makes it, and who reads it. */
typedef struct use {
    int32_t maker;  /* node; -1: an input */
    int32_t reader; /* the last one, of the graph itself */
    uint32_t readers;
} use;

typedef struct planner {
    quantizer *q;
    onnx_edit *e;
    VEC(use) uses;
    ptr_map by_name; /* -> uses */
    ptr_map reads;   /* name -> how often it is read */
    ptr_map others;  /* names of values that are not of f32 */
    VEC(quantize_layer) layers;
    bool *done; /* by node: its operands are quantised, or it is a clip behind one */
} planner;

static use *use_of(planner *p, const char *name)
{
    uint32_t at = 0;
    if (!ptr_map_get(&p->by_name, name, &at)) {
        use u = {.maker = -1, .reader = -1};
        (void)ptr_map_get(&p->reads, name, &u.readers);
        at = p->uses.len;
        ptr_map_set(&p->by_name, name, at);
        vec_push(&p->q->c->mem, &p->uses, u);
    }
    return &p->uses.data[at];
}

static void find_uses(planner *p)
{
    const pb_graph *g = p->e->graph;
    ptr_map_init(&p->by_name, &p->q->c->mem);
    onnx_edit_count_reads(p->e, &p->reads);
    for (uint32_t i = 0; i < g->node.len; i++) {
        const pb_node *n = g->node.data[i];
        for (uint32_t k = 0; k < n->output.len; k++)
            use_of(p, onnx_edit_output(p->e, n, k))->maker = (int32_t)i;
        for (uint32_t k = 0; k < n->input.len; k++)
            use_of(p, onnx_edit_input(p->e, n, k))->reader = (int32_t)i;
    }
}

static node_kind kind_of(const planner *p, const pb_node *n)
{
    const char *op = onnx_edit_op(p->e, n);
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (strcmp(kinds[i].op, op) == 0)
            return n->output.len == 1 ? kinds[i].kind : KIND_OTHER;
    return KIND_OTHER;
}

static bool is_skipped(const planner *p, const pb_node *n)
{
    const char *name = onnx_edit_name(p->e, n->name), *result = onnx_edit_output(p->e, n, 0);
    for (uint32_t i = 0; i < p->q->o.n_skips; i++)
        if (strcmp(p->q->o.skips[i], name) == 0 || strcmp(p->q->o.skips[i], result) == 0)
            return true;
    return false;
}

/* --- values --- */

static bool is_value(const planner *p, const char *name)
{
    uint32_t at;
    return ptr_map_get(&p->q->by_name, name, &at);
}

static void add_value(planner *p, const char *name)
{
    quantizer *q = p->q;
    if (is_value(p, name))
        return;
    int32_t maker = use_of(p, name)->maker;
    quantize_value v = {.name = name, .op = "", .group = q->values.len};
    if (maker >= 0)
        v.op = onnx_edit_name(p->e, p->e->graph->node.data[maker]->op_type);
    histogram_init(&v.seen, &q->c->mem);
    ptr_map_set(&q->by_name, name, q->values.len);
    vec_push(&q->c->mem, &q->values, v);
}

static uint32_t group_of(quantizer *q, uint32_t value)
{
    while (q->values.data[value].group != value)
        value = q->values.data[value].group = q->values.data[q->values.data[value].group].group;
    return value;
}

static void join(planner *p, const char *a, const char *b)
{
    uint32_t x = 0, y = 0;
    (void)ptr_map_get(&p->q->by_name, a, &x);
    (void)ptr_map_get(&p->q->by_name, b, &y);
    x = group_of(p->q, x);
    y = group_of(p->q, y);
    p->q->values.data[x > y ? x : y].group = x > y ? y : x;
}

static bool is_f32(const planner *p, const char *name)
{
    uint32_t unused;
    return !ptr_map_get(&p->others, name, &unused);
}

/* --- nodes --- */

static bool are_bounds(const planner *p, const pb_node *n)
{
    for (uint32_t i = 1; i < n->input.len; i++) {
        const char *name = onnx_edit_input(p->e, n, i);
        if (*name && !onnx_edit_constant(p->e, name))
            return false;
    }
    return true;
}

/* The softmax of a result that gets a scale computes in integers; others want floats. */
static bool only_to_softmax(planner *p, const char *name)
{
    const use *u = use_of(p, name);
    const pb_node *n = u->readers == 1 && u->reader >= 0 ? p->e->graph->node.data[u->reader] : NULL;
    const char *op = n ? onnx_edit_op(p->e, n) : "";
    if (strcmp(op, "Softmax") == 0 && p->q->o.ends && onnx_edit_is_result(p->e, onnx_edit_output(p->e, n, 0)))
        return false;
    return strcmp(op, "Softmax") == 0 || strcmp(op, "LogSoftmax") == 0 || strcmp(op, "ArgMax") == 0;
}

/* Follows the result through a bias that is added (of a product) and clips, each the only reader; the last value is
 * quantised, unless it is a result of the model or all that is left is to compare. */
static void add_tail(planner *p, uint32_t node, bool with_bias)
{
    const char *y = onnx_edit_output(p->e, p->e->graph->node.data[node], 0);
    p->done[node] = true;
    for (;;) {
        const use *u = use_of(p, y);
        if (u->readers != 1 || u->reader < 0 || onnx_edit_is_result(p->e, y))
            break;
        const pb_node *n = p->e->graph->node.data[u->reader];
        const char *op = onnx_edit_op(p->e, n);
        bool clip = strcmp(op, "Relu") == 0 || (strcmp(op, "Clip") == 0 && are_bounds(p, n));
        bool bias = false;
        for (uint32_t i = 0; with_bias && i < 2 && strcmp(op, "Add") == 0; i++) {
            const tensor_data *t = onnx_edit_constant(p->e, onnx_edit_input(p->e, n, i));
            bias |= t && t->dt == DT_F32 && t->rank == 1;
        }
        if ((!clip && !bias) || is_skipped(p, n))
            break;
        with_bias = false;
        p->done[u->reader] = true;
        y = onnx_edit_output(p->e, n, 0);
    }
    if ((p->q->o.ends || !onnx_edit_is_result(p->e, y)) && !only_to_softmax(p, y))
        add_value(p, y);
}

/* A mean of x that x - mean reads, or one of squares: of a normalization. Such small numbers have no room in 8 bits. */
static bool is_of_norm(planner *p, const pb_node *n)
{
    const pb_graph *g = p->e->graph;
    const char *x = onnx_edit_input(p->e, n, 0), *mean = onnx_edit_output(p->e, n, 0);
    const int32_t maker = use_of(p, x)->maker;
    const pb_node *m = maker >= 0 ? g->node.data[maker] : NULL;
    if (strcmp(onnx_edit_op(p->e, n), "ReduceMean") != 0)
        return false;
    const char *by = m ? onnx_edit_op(p->e, m) : "";
    if (strcmp(by, "Pow") == 0 ||
        (strcmp(by, "Mul") == 0 && onnx_edit_input(p->e, m, 0) == onnx_edit_input(p->e, m, 1)))
        return true;
    for (uint32_t i = 0; i < g->node.len; i++)
        if (strcmp(onnx_edit_op(p->e, g->node.data[i]), "Sub") == 0 &&
            onnx_edit_input(p->e, g->node.data[i], 0) == x && onnx_edit_input(p->e, g->node.data[i], 1) == mean)
            return true;
    return false;
}

static bool all_finite(const tensor_data *t)
{
    for (int64_t i = 0; i < t->count; i++)
        if (!isfinite(tensor_get_f64(t, i)))
            return false;
    return true;
}

/* One number for each entry of the last axis, whatever stands in front of it: a Gemm's may be [1, N]. */
static bool is_for_channels(const tensor_data *t, int64_t channels)
{
    return t->count == channels && (t->rank == 0 || t->dims[t->rank - 1] == channels);
}

/* A convolution or product whose weights are a constant of f32; the axis of its output channels. */
static bool read_layer(planner *p, pb_node *n, quantize_layer *out)
{
    onnx_edit *e = p->e;
    const char *op = onnx_edit_op(e, n), *x = onnx_edit_input(e, n, 0), *bias = onnx_edit_input(e, n, 2);
    *out = (quantize_layer){.node = n, .bias = bias, .result = onnx_edit_output(e, n, 0)};
    out->weights = onnx_edit_constant(e, onnx_edit_input(e, n, 1));
    out->name = *onnx_edit_name(e, n->name) ? onnx_edit_name(e, n->name) : out->result;
    const tensor_data *b = *bias ? onnx_edit_constant(e, bias) : NULL;
    if (onnx_edit_constant(e, x) || !out->weights || out->weights->dt != DT_F32 || out->weights->rank < 2 ||
        out->weights->count == 0)
        return false;
    if (strcmp(op, "Gemm") == 0) {
        bool plain = onnx_edit_float(e, n, "alpha", 1) == 1 && onnx_edit_float(e, n, "beta", 1) == 1 &&
                     onnx_edit_int(e, n, "transA", 0) == 0;
        out->axis = onnx_edit_int(e, n, "transB", 0) ? 0 : 1;
        if (!plain)
            return false;
    } else if (strcmp(op, "ConvTranspose") == 0) {
        out->axis = 1;
        if (onnx_edit_int(e, n, "group", 1) != 1)
            return false; /* the axis has the channels of one group: several channels would share a bias and a scale */
    } else {
        out->axis = strcmp(op, "MatMul") == 0 ? (int64_t)out->weights->rank - 1 : 0;
    }
    out->channels = out->weights->dims[out->axis];
    return all_finite(out->weights) &&
           (!*bias || (b && b->dt == DT_F32 && is_for_channels(b, out->channels) && all_finite(b)));
}

static void plan_arithmetic(planner *p, uint32_t i)
{
    pb_node *n = p->e->graph->node.data[i];
    node_kind kind = kind_of(p, n);
    const char *a = onnx_edit_input(p->e, n, 0), *b = onnx_edit_input(p->e, n, 1);
    quantize_layer layer;
    if (p->done[i] || is_skipped(p, n))
        return;
    if (kind == KIND_WEIGHTS && read_layer(p, n, &layer)) {
        vec_push(&p->q->c->mem, &p->layers, layer);
        add_value(p, a);
        add_tail(p, i, strcmp(onnx_edit_op(p->e, n), "MatMul") == 0);
    } else if (is_f32(p, a) &&
               ((kind == KIND_AVERAGE && !is_of_norm(p, n)) ||
                (kind == KIND_SUM && !onnx_edit_constant(p->e, a) && !onnx_edit_constant(p->e, b)))) {
        add_value(p, a);
        if (kind == KIND_SUM)
            add_value(p, b);
        if (kind == KIND_SUM && p->q->o.numbers.sum_scale)
            join(p, a, b);
        add_tail(p, i, false);
    }
}

/* Hands scales on, from operands to results. */
static void plan_moved(planner *p, uint32_t i)
{
    const pb_node *n = p->e->graph->node.data[i];
    node_kind kind = kind_of(p, n);
    const char *y = onnx_edit_output(p->e, n, 0);
    if ((kind != KIND_SAME && kind != KIND_JOIN) || p->done[i] || is_skipped(p, n) ||
        (onnx_edit_is_result(p->e, y) && !p->q->o.ends) ||
        (kind == KIND_SAME && !are_bounds(p, n)))
        return;
    uint32_t count = kind == KIND_JOIN ? n->input.len : 1;
    for (uint32_t k = 0; k < count; k++)
        if (!is_value(p, onnx_edit_input(p->e, n, k)))
            return;
    p->done[i] = true;
    add_value(p, y);
    for (uint32_t k = 0; k < count; k++)
        join(p, y, onnx_edit_input(p->e, n, k));
}

/* Inputs and results, each with a scale of its own where no operator hands one on. */
static void plan_ends(planner *p)
{
    const pb_graph *g = p->e->graph;
    for (uint32_t i = 0; i < g->input.len; i++) {
        const char *name = onnx_edit_name(p->e, g->input.data[i]->name);
        if (!onnx_edit_constant(p->e, name) && is_f32(p, name) && !onnx_edit_is_result(p->e, name))
            add_value(p, name);
    }
    for (uint32_t i = 0; i < g->output.len; i++) {
        const char *name = onnx_edit_name(p->e, g->output.data[i]->name);
        if (use_of(p, name)->maker >= 0 && is_f32(p, name))
            add_value(p, name);
    }
}

static bool check_skips(const planner *p)
{
    for (uint32_t s = 0; s < p->q->o.n_skips; s++) {
        bool found = false;
        for (uint32_t i = 0; i < p->e->graph->node.len && !found; i++) {
            const pb_node *n = p->e->graph->node.data[i];
            found = strcmp(p->q->o.skips[s], onnx_edit_name(p->e, n->name)) == 0 ||
                    strcmp(p->q->o.skips[s], onnx_edit_output(p->e, n, 0)) == 0;
        }
        if (!found) {
            diag_error(&p->q->c->diags, DIAG_USAGE, src_loc_none(), "--skip: the model has no node '%s'",
                       p->q->o.skips[s]);
            diag_hint(&p->q->c->diags, "name a node, or its first result; lathe inspect lists them");
            return false;
        }
    }
    return true;
}

/* Of any domain: onnxruntime has more of them in its own. DequantizeLinear alone is a way to store weights. */
static bool is_quantised(const char *op)
{
    static const char *const names[] = {"QuantizeLinear", "DynamicQuantizeLinear", "ConvInteger", "MatMulInteger"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(op, names[i]) == 0)
            return true;
    return strncmp(op, "QLinear", 7) == 0;
}

/* DequantizeLinear is of operator set 10, with an axis of 13: an older model keeps its operator set, since operators
 * that it has may mean something else in a newer one, and its layers get one scale each. */
static bool check_model(quantizer *q)
{
    int64_t opset = onnx_edit_opset(&q->e);
    for (uint32_t i = 0; i < q->e.graph->node.len; i++) {
        const char *op = onnx_edit_name(&q->e, q->e.graph->node.data[i]->op_type);
        if (is_quantised(op)) {
            diag_error(&q->c->diags, DIAG_UNSUPPORTED, at_file(q->e.path),
                       "the model is quantized already: it has a %.60s", op);
            diag_hint(&q->c->diags, "compile it as it is: lathe compile %s -o out", q->e.path);
            return false;
        }
    }
    q->one_scale = q->o.numbers.one_scale || opset < 13;
    if (opset >= 10 && (q->o.numbers.one_scale || opset >= 13))
        return true;
    if (opset >= 10 && q->o.n_others > 0)
        return true; /* said already */
    if (opset >= 10)
        (void)diag_note(&q->c->diags, DIAG_UNSUPPORTED, at_file(q->e.path),
                        "the model has operator set %lld, and scales for each channel need 13: the weights of each "
                        "layer get one scale", (long long)opset);
    else
        (void)diag_error(&q->c->diags, DIAG_UNSUPPORTED, at_file(q->e.path),
                         "the model has operator set %lld; QuantizeLinear needs 10", (long long)opset);
    diag_hint(&q->c->diags, "onnx.version_converter makes it newer");
    return opset >= 10;
}

bool quantize_open(compiler *c, span bytes, const char *path, const quantize_options *o, quantizer *out)
{
    *out = (quantizer){.c = c, .o = *o};
    if (!onnx_edit_open(c, bytes, path, &out->e) || !check_model(out))
        return false;
    out->n_folded = onnx_edit_fold_batch_norms(&out->e);
    ptr_map_init(&out->by_name, &c->mem);
    planner p = {.q = out, .e = &out->e};
    uint32_t n = out->e.graph->node.len;
    p.done = arena_array(&c->mem, bool, n + 1u);
    memset(p.done, 0, n + 1u);
    find_uses(&p);
    ptr_map_init(&p.others, &c->mem);
    for (uint32_t i = 0; i < o->n_others; i++)
        ptr_map_set(&p.others, o->others[i].name, 1);
    if (!check_skips(&p))
        return false;
    for (uint32_t i = 0; i < n; i++)
        plan_arithmetic(&p, i);
    if (o->ends)
        plan_ends(&p);
    for (uint32_t i = 0; i < n; i++)
        plan_moved(&p, i);
    for (uint32_t i = 0; i < n; i++)
        out->n_quantized += p.done[i];
    for (uint32_t i = 0; i < out->values.len; i++)
        out->values.data[i].group = group_of(out, i);
    out->n_nodes = n;
    out->layers = p.layers.data;
    out->n_layers = p.layers.len;
    if (out->values.len > 0)
        return true;
    if (o->n_others > 0)
        return diag_error(&c->diags, DIAG_UNSUPPORTED, at_file(path),
                          "nothing in the model can be quantized: '%s' is %s, and only f32 is quantized",
                          o->others[0].name, dtype_name(o->others[0].dt));
    return diag_error(&c->diags, DIAG_UNSUPPORTED, at_file(path), "nothing in the model can be quantized");
}

bool quantize_calibration(quantizer *q, span *out)
{
    pb_graph *g = q->e.graph;
    const uint32_t own = g->output.len;
    for (uint32_t i = 0; i < q->values.len; i++)
        q->values.data[i].result = onnx_edit_add_result(&q->e, q->values.data[i].name);
    const bool ok = onnx_edit_bytes(&q->e, out);
    g->output.len = own;
    return ok;
}

void quantize_observe(quantizer *q, uint32_t value, const float *x, int64_t count)
{
    histogram_add(&q->values.data[q->values.data[value].group].seen, x, count);
}
