/* SPDX-License-Identifier: Apache-2.0 */
/* Importers of the steps of optimizers (ai.onnx.preview.training): element-wise arithmetic on tensors that come in
 * groups, X_1..X_k, then G_1..G_k, then one or two states each. R is the rate, T counts the steps so far. */
#include "frontend/onnx/onnx_import.h"

#include <string.h>

typedef struct step {
    onnx_node *n;
    uint32_t count;        /* tensors that are trained */
    graph_value *rate, *t; /* t as a number of the data's type */
    graph_value *first;    /* T > 0 does not hold: nothing has been learned yet */
} step;

static graph_value *num(const step *s, double v)
{
    return onnx_const_like(s->n, s->rate, v);
}

static graph_value *op2(const step *s, const char *op, graph_value *a, graph_value *b)
{
    return onnx_binary(s->n, op, a, b);
}

static graph_value *scaled(const step *s, graph_value *x, double by)
{
    return op2(s, "multiply", x, num(s, by));
}

/* groups: kinds of tensors in the inputs, X and G included. */
static bool read_step(onnx_node *n, uint32_t groups, step *s)
{
    if (n->n_in < 2 + groups || (n->n_in - 2) % groups != 0 || n->n_out != (n->n_in - 2) / groups * (groups - 1))
        return onnx_fail(n, DIAG_FORMAT, "%u inputs and %u results do not make groups of %u", n->n_in, n->n_out,
                         groups);
    *s = (step){.n = n, .count = (n->n_in - 2) / groups, .rate = onnx_in(n, 0)};
    for (uint32_t i = 0; i < n->n_in; i++)
        if (!onnx_in(n, i))
            return onnx_fail(n, DIAG_FORMAT, "input %u is missing", i);
    s->t = onnx_cast(n, onnx_in(n, 1), onnx_dtype(s->rate));
    s->first = onnx_binary(n, "equal", s->t, num(s, 0));
    return !n->failed;
}

static graph_value *input(const step *s, uint32_t group, uint32_t i)
{
    return onnx_in(s->n, 2 + group * s->count + i);
}

/* The gradient, with what pulls the weights to zero. */
static graph_value *gradient(const step *s, uint32_t i)
{
    graph_value *pull = scaled(s, input(s, 0, i), onnx_attr_float(s->n, "norm_coefficient", 0));
    return op2(s, "add", pull, input(s, 1, i));
}

bool onnx_op_momentum(onnx_node *n)
{
    step s;
    if (!read_step(n, 3, &s))
        return false;
    double alpha = onnx_attr_float(n, "alpha", 0), beta = onnx_attr_float(n, "beta", 0);
    bool nesterov = strcmp(onnx_attr_string(n, "mode", "standard"), "nesterov") == 0;
    graph_value *one = num(&s, 1), *damped = num(&s, beta), *weight = onnx_where(n, s.first, one, damped);
    for (uint32_t i = 0; i < s.count && !n->failed; i++) {
        graph_value *g = gradient(&s, i), *old = scaled(&s, input(&s, 2, i), alpha);
        graph_value *v = op2(&s, "add", old, op2(&s, "multiply", weight, g));
        graph_value *by = nesterov ? op2(&s, "add", g, scaled(&s, v, alpha)) : v;
        onnx_alias(n, i, op2(&s, "subtract", input(&s, 0, i), op2(&s, "multiply", s.rate, by)));
        onnx_alias(n, s.count + i, v);
    }
    return !n->failed;
}

bool onnx_op_adagrad(onnx_node *n)
{
    step s;
    if (!read_step(n, 3, &s))
        return false;
    graph_value *one = num(&s, 1), *decay = scaled(&s, s.t, onnx_attr_float(n, "decay_factor", 0));
    graph_value *rate = op2(&s, "divide", s.rate, op2(&s, "add", decay, one));
    for (uint32_t i = 0; i < s.count && !n->failed; i++) {
        graph_value *g = gradient(&s, i), *h = op2(&s, "add", input(&s, 2, i), op2(&s, "multiply", g, g));
        graph_value *root = onnx_unary(n, "sqrt", h);
        root = op2(&s, "add", root, num(&s, onnx_attr_float(n, "epsilon", 1e-6)));
        graph_value *by = op2(&s, "divide", op2(&s, "multiply", rate, g), root);
        onnx_alias(n, i, op2(&s, "subtract", input(&s, 0, i), by));
        onnx_alias(n, s.count + i, h);
    }
    return !n->failed;
}

/* 1 - b^T */
static graph_value *bias(const step *s, double b)
{
    graph_value *base = num(s, b), *one = num(s, 1);
    return op2(s, "subtract", one, op2(s, "power", base, s->t));
}

bool onnx_op_adam(onnx_node *n)
{
    step s;
    if (!read_step(n, 4, &s))
        return false;
    double alpha = onnx_attr_float(n, "alpha", (double)0.9f), beta = onnx_attr_float(n, "beta", (double)0.999f);
    double keep = 1 - onnx_attr_float(n, "norm_coefficient_post", 0);
    graph_value *up = onnx_unary(n, "sqrt", bias(&s, beta)), *down = bias(&s, alpha);
    graph_value *rate = op2(&s, "divide", op2(&s, "multiply", s.rate, up), down);
    rate = onnx_where(n, s.first, s.rate, rate);
    for (uint32_t i = 0; i < s.count && !n->failed; i++) {
        graph_value *g = gradient(&s, i), *old_v = scaled(&s, input(&s, 2, i), alpha);
        graph_value *v = op2(&s, "add", old_v, scaled(&s, g, 1 - alpha)), *old_h = scaled(&s, input(&s, 3, i), beta);
        graph_value *h = op2(&s, "add", old_h, scaled(&s, op2(&s, "multiply", g, g), 1 - beta));
        graph_value *root = onnx_unary(n, "sqrt", h);
        root = op2(&s, "add", root, num(&s, onnx_attr_float(n, "epsilon", 1e-6)));
        graph_value *by = op2(&s, "divide", op2(&s, "multiply", rate, v), root);
        graph_value *x = op2(&s, "subtract", input(&s, 0, i), by);
        onnx_alias(n, i, keep == 1.0 ? x : scaled(&s, x, keep));
        onnx_alias(n, s.count + i, v);
        onnx_alias(n, 2 * s.count + i, h);
    }
    return !n->failed;
}
