/* SPDX-License-Identifier: Apache-2.0 */
/* Importers of the two classification losses. Scores are [N, C, d...], targets [N, d...], weights [C]. */
#include "frontend/onnx/onnx_import.h"

#include <string.h>

typedef struct loss {
    graph_value *target, *weight, *valid; /* valid: target is not the ignored index; NULL: all are */
} loss;

/* Targets without the ignored index, which may lie outside of 0..C-1. */
static loss read_loss(onnx_node *n)
{
    loss l = {.target = onnx_cast(n, onnx_in(n, 1), DT_I64), .weight = onnx_optional(n, 2)};
    if (!onnx_has_attr(n, "ignore_index"))
        return l;
    graph_value *ignored = onnx_const_int(n, DT_I64, onnx_attr_int(n, "ignore_index", -1));
    l.valid = onnx_binary(n, "not_equal", l.target, ignored);
    l.target = onnx_where(n, l.valid, l.target, onnx_const_int(n, DT_I64, 0));
    return l;
}

/* What each target counts; NULL: one. */
static graph_value *target_weights(onnx_node *n, const loss *l, dtype dt)
{
    attr axis = attr_int(n->c, "axis", 0);
    graph_value *w = l->weight ? onnx_emit(n, ONNX_ARGS("take", 1, &axis, l->weight, l->target)) : NULL;
    if (!l->valid)
        return w;
    return w ? onnx_where(n, l->valid, w, onnx_const_float(n, dt, 0)) : onnx_cast(n, l->valid, dt);
}

static bool reduce_loss(onnx_node *n, graph_value *each, graph_value *w)
{
    const char *how = onnx_attr_string(n, "reduction", "mean");
    if (strcmp(how, "none") == 0)
        return onnx_alias(n, 0, each);
    if (strcmp(how, "sum") == 0)
        return onnx_alias(n, 0, onnx_reduce(n, "sum", each, 0, NULL, false));
    if (strcmp(how, "mean") != 0)
        return onnx_fail(n, DIAG_FORMAT, "reduction '%s' is not known", how);
    if (!w)
        return onnx_alias(n, 0, onnx_reduce(n, "mean", each, 0, NULL, false));
    graph_value *s = onnx_reduce(n, "sum", each, 0, NULL, false), *total = onnx_reduce(n, "sum", w, 0, NULL, false);
    return onnx_alias(n, 0, onnx_binary(n, "divide", s, total));
}

static bool nll(onnx_node *n, graph_value *log_prob)
{
    static const int64_t channel = 1;
    if (onnx_rank(onnx_in(n, 0)) != onnx_rank(onnx_in(n, 1)) + 1)
        return onnx_fail(n, DIAG_TYPE, "the target must have one dimension less than the scores");
    loss l = read_loss(n);
    attr axis = attr_int(n->c, "axis", 1);
    graph_value *picked =
        onnx_emit(n, ONNX_ARGS("gather_elements", 1, &axis, log_prob, onnx_expand_dims(n, l.target, 1, &channel)));
    if (n->failed)
        return false;
    picked = onnx_reshape(n, picked, onnx_rank(l.target), l.target->type.shape.dims);
    graph_value *w = target_weights(n, &l, onnx_dtype(log_prob)), *each = onnx_unary(n, "negative", picked);
    return reduce_loss(n, w ? onnx_binary(n, "multiply", each, w) : each, w);
}

bool onnx_op_nll_loss(onnx_node *n)
{
    return nll(n, onnx_in(n, 0));
}

bool onnx_op_softmax_loss(onnx_node *n)
{
    attr axis = attr_int(n->c, "axis", 1);
    graph_value *lp = onnx_emit(n, ONNX_ARGS("nn.log_softmax", 1, &axis, onnx_in(n, 0)));
    if (n->n_out > 1)
        onnx_alias(n, 1, lp);
    return nll(n, lp);
}
