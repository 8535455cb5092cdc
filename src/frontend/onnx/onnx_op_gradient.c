/* SPDX-License-Identifier: Apache-2.0 */
/* Importer of Gradient (ai.onnx.preview.training): the nodes that lead from its inputs to y are walked backwards, and
 * each adds what it passes on to the gradients of its operands. Arithmetic and functions of one number have a rule. */
#include "frontend/onnx/onnx_import.h"
#include "graph/op.h"

#include <string.h>

typedef struct backward {
    onnx_node *n;
    onnx_map grads; /* value -> what y changes by when it changes */
} backward;

static graph_value *op2(const backward *b, const char *op, graph_value *x, graph_value *y)
{
    return onnx_binary(b->n, op, x, y);
}

static graph_value *op1(const backward *b, const char *op, graph_value *x)
{
    return onnx_unary(b->n, op, x);
}

/* g, which has the shape of a result, for an operand that was broadcast to it. */
static graph_value *narrowed(const backward *b, graph_value *g, const graph_value *x)
{
    onnx_node *n = b->n;
    int64_t axes[TYPE_MAX_RANK];
    uint32_t count = 0, rank = onnx_rank(g), own = onnx_rank(x);
    if (shape_equal(g->type.shape, x->type.shape))
        return g;
    for (uint32_t i = 0; i < rank; i++)
        if (i < rank - own || onnx_dim(n, x, i - (rank - own)) != onnx_dim(n, g, i))
            axes[count++] = i;
    g = count ? onnx_reduce(n, "sum", g, count, axes, true) : g;
    return onnx_reshape(n, g, own, x->type.shape.dims);
}

static void add_gradient(backward *b, const graph_value *x, graph_value *g)
{
    graph_value *before = (graph_value *)(uintptr_t)onnx_map_get(&b->grads, (const char *)x);
    g = narrowed(b, g, x);
    onnx_map_set(&b->n->c->mem, &b->grads, (const char *)x, before ? op2(b, "add", before, g) : g);
}

/* What operand i of the node gets of g, the gradient of its result y. */
typedef graph_value *(*rule_fn)(const backward *b, const graph_node *node, uint32_t i, graph_value *g);

static graph_value *rule_pass(const backward *b, const graph_node *node, uint32_t i, graph_value *g)
{
    (void)b;
    (void)node;
    (void)i;
    return g;
}

static graph_value *rule_negative(const backward *b, const graph_node *node, uint32_t i, graph_value *g)
{
    (void)node;
    (void)i;
    return op1(b, "negative", g);
}

static graph_value *rule_subtract(const backward *b, const graph_node *node, uint32_t i, graph_value *g)
{
    return i == 0 ? g : rule_negative(b, node, i, g);
}

static graph_value *rule_multiply(const backward *b, const graph_node *node, uint32_t i, graph_value *g)
{
    return op2(b, "multiply", g, node->inputs[1 - i]);
}

static graph_value *rule_divide(const backward *b, const graph_node *node, uint32_t i, graph_value *g)
{
    graph_value *first = op2(b, "divide", g, node->inputs[1]);
    return i == 0 ? first : op1(b, "negative", op2(b, "multiply", first, node->outputs[0]));
}

static graph_value *rule_exp(const backward *b, const graph_node *node, uint32_t i, graph_value *g)
{
    (void)i;
    return op2(b, "multiply", g, node->outputs[0]);
}

static graph_value *rule_log(const backward *b, const graph_node *node, uint32_t i, graph_value *g)
{
    return op2(b, "divide", g, node->inputs[i]);
}

static graph_value *rule_sqrt(const backward *b, const graph_node *node, uint32_t i, graph_value *g)
{
    (void)i;
    return op2(b, "divide", g, op2(b, "add", node->outputs[0], node->outputs[0]));
}

static graph_value *rule_tanh(const backward *b, const graph_node *node, uint32_t i, graph_value *g)
{
    graph_value *y = node->outputs[0], *one = onnx_const_like(b->n, y, 1);
    (void)i;
    return op2(b, "multiply", g, op2(b, "subtract", one, op2(b, "multiply", y, y)));
}

static graph_value *rule_sigmoid(const backward *b, const graph_node *node, uint32_t i, graph_value *g)
{
    graph_value *y = node->outputs[0], *one = onnx_const_like(b->n, y, 1);
    (void)i;
    return op2(b, "multiply", g, op2(b, "multiply", y, op2(b, "subtract", one, y)));
}

static graph_value *rule_relu(const backward *b, const graph_node *node, uint32_t i, graph_value *g)
{
    graph_value *x = node->inputs[i], *zero = onnx_const_like(b->n, x, 0);
    return onnx_where(b->n, op2(b, "greater", x, zero), g, zero);
}

static const struct {
    const char *op;
    rule_fn rule;
} rules[] = {
    {"add", rule_pass},     {"copy", rule_pass}, {"divide", rule_divide}, {"exp", rule_exp},
    {"log", rule_log},      {"multiply", rule_multiply}, {"negative", rule_negative}, {"nn.relu", rule_relu},
    {"sigmoid", rule_sigmoid}, {"sqrt", rule_sqrt}, {"subtract", rule_subtract}, {"tanh", rule_tanh},
};

/* Whether the value is made of one of xs. */
static bool depends(const onnx_map *on, const graph_value *v)
{
    return v && onnx_map_get(on, (const char *)v) != NULL;
}

static bool step_back(backward *b, const onnx_map *on, const graph_node *node)
{
    graph_value *g = (graph_value *)(uintptr_t)onnx_map_get(&b->grads, (const char *)node->outputs[0]);
    rule_fn rule = NULL;
    if (!g)
        return true;
    for (size_t i = 0; i < sizeof rules / sizeof *rules; i++)
        rule = strcmp(rules[i].op, node->op->name) == 0 ? rules[i].rule : rule;
    for (uint32_t i = 0; i < node->n_inputs; i++) {
        if (!depends(on, node->inputs[i]))
            continue;
        if (!rule)
            return onnx_fail(b->n, DIAG_UNSUPPORTED, "the gradient of '%s' is not supported yet", node->op->name);
        add_gradient(b, node->inputs[i], rule(b, node, i, g));
    }
    return !b->n->failed;
}

/* Everything that xs lead to; the values are the keys. */
static void mark_dependents(onnx_node *n, uint32_t count, onnx_map *on)
{
    for (uint32_t k = 0; k < count; k++) {
        const graph_node *node = n->f->nodes.data[k];
        bool any = false;
        for (uint32_t i = 0; i < node->n_inputs; i++)
            any |= depends(on, node->inputs[i]);
        for (uint32_t i = 0; any && i < node->n_outputs; i++)
            onnx_map_set(&n->c->mem, on, (const char *)node->outputs[i], "");
    }
}

bool onnx_op_gradient(onnx_node *n)
{
    const onnx_attr *xs = onnx_attr_find(n, "xs");
    graph_value *y = onnx_lookup(n->env, onnx_attr_string(n, "y", ""));
    const uint32_t count = n->f->nodes.len, many = xs ? xs->pb->strings.len : 0;
    backward b = {.n = n};
    onnx_map on = {0};
    (void)onnx_attr_find(n, "zs"); /* what stays as it is */
    if (!y || y->type.kind != TYPE_TENSOR || many == 0 || n->n_out > many || n->n_in < many)
        return onnx_fail(n, DIAG_FORMAT, "y, xs and the node's operands and results do not fit");
    for (uint32_t i = 0; i < many; i++) {
        if (onnx_lookup(n->env, onnx_name(n->im, xs->pb->strings.data[i])) != onnx_in(n, i))
            return onnx_fail(n, DIAG_UNSUPPORTED, "a gradient elsewhere than where the graph is computed");
        onnx_map_set(&n->c->mem, &on, (const char *)onnx_in(n, i), "");
    }
    mark_dependents(n, count, &on);
    graph_value *one = onnx_const_float(n, y->type.dt, 1), *all = onnx_emit(n, ONNX_ARGS("shape_of", 0, NULL, y));
    add_gradient(&b, y, onnx_emit(n, ONNX_ARGS("broadcast_to", 0, NULL, one, all)));
    for (uint32_t k = count; k-- > 0;)
        if (!step_back(&b, &on, n->f->nodes.data[k]))
            return false;
    for (uint32_t i = 0; i < n->n_out; i++) {
        graph_value *g = (graph_value *)(uintptr_t)onnx_map_get(&b.grads, (const char *)onnx_in(n, i));
        graph_value *zero = onnx_const_like(n, onnx_in(n, i), 0);
        if (g) /* several may be one value */
            onnx_result(n, i, ONNX_ARGS("copy", 0, NULL, g));
        else
            onnx_result(n, i, ONNX_ARGS("multiply", 0, NULL, onnx_in(n, i), zero));
    }
    return !n->failed;
}
