/* SPDX-License-Identifier: Apache-2.0 */
/* Importers of normalisations through their versions. */
#include "frontend/onnx/onnx_import.h"

#include <string.h>

/* --- batch normalisation --- */

/* Training: mean and variance (of the whole population) are the batch's own; the running ones follow by momentum. Below
 * version 14 the batch's mean and, as onnxruntime has it, 1 over its deviation are results, too. */
static bool train(onnx_node *n, graph_value **in, const attr *eps)
{
    graph_value *x = in[0];
    int64_t axes[TYPE_MAX_RANK];
    uint32_t count = 0, rank = onnx_rank(x);
    double momentum = onnx_attr_float(n, "momentum", (double)0.9f);
    for (uint32_t i = 0; i < rank; i++)
        if (i != 1)
            axes[count++] = i;
    graph_value *m = onnx_reduce(n, "mean", x, count, axes, true);
    graph_value *d = onnx_binary(n, "subtract", x, m);
    graph_value *var = onnx_reduce(n, "mean", onnx_binary(n, "multiply", d, d), count, axes, false);
    dim c = onnx_dim(n, x, 1);
    m = onnx_reshape(n, m, 1, &c);
    onnx_result(n, 0, ONNX_ARGS("nn.batch_norm", 1, eps, x, in[1], in[2], m, var));
    graph_value *now[2] = {m, var};
    for (uint32_t i = 0; i < 2 && 1 + i < n->n_out; i++) {
        dtype dt = onnx_dtype(onnx_in(n, 3 + i));
        graph_value *old = onnx_binary(n, "multiply", in[3 + i], onnx_const_like(n, in[3 + i], momentum));
        graph_value *add = onnx_binary(n, "multiply", now[i], onnx_const_like(n, now[i], 1 - momentum));
        onnx_alias(n, 1 + i, onnx_cast(n, onnx_binary(n, "add", old, add), dt));
    }
    if (n->n_out > 3)
        onnx_alias(n, 3, m);
    if (n->n_out > 4) {
        var = onnx_unary(n, "sqrt", onnx_binary(n, "add", var, onnx_const_like(n, var, eps->u.f)));
        onnx_alias(n, 4, onnx_unary(n, "reciprocal", var));
    }
    return !n->failed;
}

/* Below version 9: each place of the data has numbers of its own. */
static bool normalize_places(onnx_node *n, graph_value **in, const attr *eps)
{
    graph_value *d = onnx_binary(n, "add", in[4], onnx_const_like(n, in[4], eps->u.f));
    graph_value *y = onnx_binary(n, "divide", onnx_binary(n, "subtract", in[0], in[3]), onnx_unary(n, "sqrt", d));
    return onnx_alias(n, 0, onnx_binary(n, "add", onnx_binary(n, "multiply", y, in[1]), in[2]));
}

/* Below version 14 a node trains if it has more results than one, and is not said to be a test. */
static bool trains(onnx_node *n)
{
    bool more = false;
    if (n->version >= 14)
        return onnx_attr_int(n, "training_mode", 0) != 0;
    for (uint32_t i = 1; i < n->n_out; i++)
        more |= n->out_names[i] != NULL;
    return more && onnx_attr_int(n, "is_test", 0) == 0;
}

bool onnx_op_batch_norm(onnx_node *n)
{
    graph_value *in[5];
    attr eps = attr_float(n->c, "epsilon", onnx_attr_float(n, "epsilon", (double)1e-5f));
    for (uint32_t i = 0; i < 5; i++) {
        in[i] = onnx_in(n, i);
        if (onnx_rank(in[0]) < 2)
            return onnx_fail(n, DIAG_FORMAT, "the data has no axis of channels");
        in[i] = onnx_cast(n, in[i], onnx_dtype(in[0])); /* from version 15 on types may differ */
    }
    if (n->version < 9 && onnx_attr_int(n, "spatial", 1) == 0) {
        if (trains(n))
            return onnx_fail(n, DIAG_UNSUPPORTED, "spatial = 0 while training is not supported");
        return normalize_places(n, in, &eps);
    }
    if (trains(n))
        return train(n, in, &eps);
    onnx_result(n, 0, (onnx_args){"nn.batch_norm", 5, in, 1, &eps});
    return !n->failed;
}

/* --- groups --- */

static bool group_norm(onnx_node *n, graph_value *scale, graph_value *bias, int64_t groups)
{
    attr a[2] = {attr_int(n->c, "num_groups", groups),
                 attr_float(n->c, "epsilon", onnx_attr_float(n, "epsilon", (double)1e-5f))};
    onnx_result(n, 0, ONNX_ARGS("nn.group_norm", 2, a, onnx_in(n, 0), scale, bias));
    return !n->failed;
}

bool onnx_op_instance_norm(onnx_node *n)
{
    return group_norm(n, onnx_in(n, 1), onnx_in(n, 2), onnx_static_dim(n, onnx_in(n, 0), 1));
}

/* Version 18 has one scale and bias per group: each is repeated for the group's channels. */
static graph_value *per_channel(onnx_node *n, graph_value *v, int64_t groups, int64_t channels)
{
    int64_t two[2] = {groups, groups ? channels / groups : 0};
    v = onnx_reshape_ints(n, v, 2, (int64_t[]){groups, 1});
    v = onnx_binary(n, "broadcast_to", v, onnx_const_ints(n, 2, two));
    return onnx_reshape_ints(n, v, 1, &channels);
}

bool onnx_op_group_norm(onnx_node *n)
{
    graph_value *scale = onnx_in(n, 1), *bias = onnx_in(n, 2);
    int64_t groups = onnx_attr_int(n, "num_groups", 0), channels = onnx_static_dim(n, onnx_in(n, 0), 1);
    if (groups < 1 || channels % groups != 0)
        return onnx_fail(n, DIAG_TYPE, "%lld channels do not divide into %lld groups", (long long)channels,
                         (long long)groups);
    if (n->version < 21) {
        scale = per_channel(n, scale, groups, channels);
        bias = per_channel(n, bias, groups, channels);
    }
    return group_norm(n, scale, bias, groups);
}

bool onnx_op_layer_norm(onnx_node *n)
{
    const graph_op *op = graph_find_op(n->c, "nn.layer_norm");
    attr a[4];
    uint32_t count = onnx_row_attrs(n, n->row->attrs, op, a), outs = n->n_out;
    while (outs > 1 && !n->out_names[outs - 1])
        outs--;
    if (outs < 1 || outs > 3)
        return onnx_fail(n, DIAG_FORMAT, "one to three results are possible");
    return onnx_results(n, (onnx_args){"nn.layer_norm", n->n_in, n->in, count, a}, outs);
}

/* --- compositions --- */

/* x / |x| along an axis; a norm of zero gives zeros. */
bool onnx_op_lp_norm(onnx_node *n)
{
    graph_value *x = onnx_in(n, 0);
    int64_t axis = onnx_axis(n, onnx_attr_int(n, "axis", -1), onnx_rank(x)), p = onnx_attr_int(n, "p", 2);
    if (p != 1 && p != 2)
        return onnx_fail(n, DIAG_FORMAT, "p must be 1 or 2");
    graph_value *s = p == 1 ? onnx_unary(n, "abs", x) : onnx_binary(n, "multiply", x, x);
    s = onnx_reduce(n, "sum", s, 1, &axis, true);
    s = p == 1 ? s : onnx_unary(n, "sqrt", s);
    graph_value *zero = onnx_binary(n, "equal", s, onnx_const_like(n, s, 0));
    onnx_result(n, 0, ONNX_ARGS("divide", 0, NULL, x, onnx_where(n, zero, onnx_const_like(n, s, 1), s)));
    return !n->failed;
}

/* (x - mean) / (deviation + 1e-9), or x - mean alone */
static bool mean_variance(onnx_node *n, uint32_t count, const int64_t *axes, bool divide)
{
    graph_value *x = onnx_in(n, 0), *mean = onnx_reduce(n, "mean", x, count, axes, true);
    if (!divide) {
        onnx_result(n, 0, ONNX_ARGS("subtract", 0, NULL, x, mean));
        return !n->failed;
    }
    graph_value *d = onnx_binary(n, "subtract", x, mean);
    graph_value *v = onnx_reduce(n, "mean", onnx_binary(n, "multiply", d, d), count, axes, true);
    v = onnx_unary(n, "sqrt", v);
    onnx_result(n, 0, ONNX_ARGS("divide", 0, NULL, d, onnx_binary(n, "add", v, onnx_const_like(n, v, 1e-9))));
    return !n->failed;
}

bool onnx_op_mean_variance_norm(onnx_node *n)
{
    static const int64_t usual[3] = {0, 2, 3};
    const int64_t *axes = NULL;
    uint32_t count = onnx_attr_ints(n, "axes", &axes);
    return count ? mean_variance(n, count, axes, true) : mean_variance(n, 3, usual, true);
}

/* Before version 9: channels one by one or together. */
bool onnx_op_mean_variance_norm_1(onnx_node *n)
{
    static const int64_t axes[4] = {1, 0, 2, 3};
    bool across = onnx_attr_int(n, "across_channels", 0) != 0;
    bool divide = onnx_attr_int(n, "normalize_variance", 1) != 0;
    return mean_variance(n, across ? 4 : 3, across ? axes : axes + 1, divide);
}
