/* SPDX-License-Identifier: Apache-2.0 */
/* Importers of what onnxruntime's optimiser makes of chains of operators, taken apart again: fusion here is the
 * compiler's own. */
#include "frontend/onnx/onnx_import.h"

#include <string.h>

/* target: how tanh approximates it, "none" or "tanh". */
bool onnx_op_bias_gelu(onnx_node *n)
{
    attr how = attr_string(n->c, "approximate", n->row->target);
    onnx_result(n, 0, ONNX_ARGS("gelu", 1, &how, onnx_plus(n, onnx_in(n, 0), onnx_in(n, 1))));
    return !n->failed;
}

bool onnx_op_quick_gelu(onnx_node *n)
{
    attr alpha = attr_float(n->c, "alpha", onnx_attr_float(n, "alpha", (double)1.702f));
    onnx_result(n, 0, ONNX_ARGS(n->row->target, 1, &alpha, onnx_in(n, 0)));
    return !n->failed;
}

/* [d0, d1, .., dk, last] as [d1, .., dk, d0, last]: rows stand before the batches. */
static graph_value *batches_first(onnx_node *n, graph_value *x)
{
    int64_t perm[TYPE_MAX_RANK];
    uint32_t rank = onnx_rank(x);
    for (uint32_t i = 0; i + 2 < rank; i++)
        perm[i] = i + 1;
    if (rank > 2) {
        perm[rank - 2] = 0;
        perm[rank - 1] = rank - 1;
    }
    return rank > 2 ? onnx_transpose(n, x, rank, perm) : x;
}

bool onnx_op_fused_matmul(onnx_node *n)
{
    static const char *const turn[2] = {"transA", "transB"}, *const batch[2] = {"transBatchA", "transBatchB"};
    graph_value *in[2] = {onnx_in(n, 0), onnx_in(n, 1)};
    double alpha = onnx_attr_float(n, "alpha", 1);
    bool t[2];
    for (uint32_t i = 0; i < 2; i++) {
        if (onnx_attr_int(n, batch[i], 0) != 0)
            in[i] = batches_first(n, in[i]);
        t[i] = onnx_attr_int(n, turn[i], 0) != 0 && onnx_rank(in[i]) > 1; /* a vector has nothing to turn */
    }
    graph_value *y = onnx_matmul(n, in[0], in[1], t[0], t[1], DT_NONE);
    return onnx_alias(n, 0, alpha != 1 ? onnx_binary(n, "multiply", y, onnx_const_like(n, y, alpha)) : y);
}

/* --- normalisations of sums --- */

/* Statistics that no kernel of onnxruntime for processors writes. */
static bool no_statistics(onnx_node *n)
{
    for (uint32_t i = 1; i < 3 && i < n->n_out; i++)
        if (n->out_names[i])
            return onnx_fail(n, DIAG_UNSUPPORTED, "mean and inv_std_var as results are not supported");
    return true;
}

/* target: the norm. Of x + skip + bias, which is the fourth result. */
bool onnx_op_skip_layer_norm(onnx_node *n)
{
    const bool simple = strcmp(n->row->target, "nn.rms_norm") == 0;
    attr eps = attr_float(n->c, "epsilon", onnx_attr_float(n, "epsilon", (double)1e-12f));
    graph_value *bias = onnx_in(n, simple ? 3 : 4), *beta = simple ? NULL : onnx_in(n, 3);
    if (!onnx_in(n, 0) || !onnx_in(n, 1) || !onnx_in(n, 2))
        return onnx_fail(n, DIAG_FORMAT, "input, skip and gamma are needed");
    if (!no_statistics(n))
        return false;
    graph_value *sum = onnx_plus(n, onnx_plus(n, onnx_in(n, 0), bias), onnx_in(n, 1));
    if (beta)
        onnx_result(n, 0, ONNX_ARGS(n->row->target, 1, &eps, sum, onnx_in(n, 2), beta));
    else
        onnx_result(n, 0, ONNX_ARGS(n->row->target, 1, &eps, sum, onnx_in(n, 2)));
    if (n->n_out > 3 && n->out_names[3])
        onnx_alias(n, 3, sum);
    return !n->failed;
}

static graph_value *rows_of(onnx_node *n, graph_value *table, graph_value *ids)
{
    attr axis = attr_int(n->c, "axis", 0);
    return onnx_emit(n, ONNX_ARGS("take", 1, &axis, table, ids));
}

/* How many positions of each sequence the mask shows; without a mask none. */
static graph_value *mask_index(onnx_node *n, graph_value *ids, graph_value *mask)
{
    static const int64_t last = 1;
    graph_value *is = mask ? onnx_binary(n, "equal", mask, onnx_const_like(n, mask, 1))
                           : onnx_binary(n, "not_equal", ids, ids);
    return onnx_reduce(n, "sum", onnx_cast(n, is, DT_I32), 1, &last, false);
}

bool onnx_op_embed_layer_norm(onnx_node *n)
{
    graph_value *ids = onnx_in(n, 0), *segment = onnx_in(n, 1), *at = onnx_in(n, 8), *position = onnx_in(n, 3);
    attr eps = attr_float(n->c, "epsilon", onnx_attr_float(n, "epsilon", (double)1e-12f));
    (void)onnx_attr_int(n, "mask_index_type", 0); /* for the inference of types alone */
    if (!ids || !onnx_in(n, 2) || !position || !onnx_in(n, 5) || !onnx_in(n, 6))
        return onnx_fail(n, DIAG_FORMAT, "input_ids, two embeddings, gamma and beta are needed");
    if (onnx_rank(ids) != 2)
        return onnx_fail(n, DIAG_TYPE, "input_ids must be [batch, sequence]");
    position = at ? rows_of(n, position, at) : onnx_slice(n, position, 0, 0, onnx_static_dim(n, ids, 1));
    graph_value *sum = rows_of(n, onnx_in(n, 2), ids);
    if (segment && onnx_in(n, 4))
        sum = onnx_binary(n, "add", sum, rows_of(n, onnx_in(n, 4), segment));
    sum = onnx_binary(n, "add", sum, position);
    onnx_result(n, 0, ONNX_ARGS(n->row->target, 1, &eps, sum, onnx_in(n, 5), onnx_in(n, 6)));
    if (n->n_out > 1 && n->out_names[1])
        onnx_alias(n, 1, mask_index(n, ids, onnx_in(n, 7)));
    if (n->n_out > 2 && n->out_names[2])
        onnx_alias(n, 2, sum);
    return !n->failed;
}
