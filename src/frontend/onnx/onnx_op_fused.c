/* SPDX-License-Identifier: Apache-2.0 */
/* Importers of what onnxruntime's optimizer makes of chains of operators. They are taken apart again, because
 * the compiler fuses by its own rules. */
#include "frontend/onnx/onnx_import.h"

#include <string.h>

/* target: how tanh approximates it, "none" or "tanh". */
bool onnx_op_bias_gelu(onnx_node *n)
{
    attr how = attr_string(n->c, "approximate", n->row->target);
    onnx_result(n, 0, ONNX_ARGS("gelu", 1, &how, onnx_plus(n, onnx_in(n, 0), onnx_optional(n, 1))));
    return !n->failed;
}

bool onnx_op_quick_gelu(onnx_node *n)
{
    attr alpha = attr_float(n->c, "alpha", onnx_attr_float(n, "alpha", (double)1.702f));
    onnx_result(n, 0, ONNX_ARGS(n->row->target, 1, &alpha, onnx_in(n, 0)));
    return !n->failed;
}

/* swish(A) B */
bool onnx_op_swiglu(onnx_node *n)
{
    const attr alpha = attr_float(n->c, "alpha", onnx_attr_float(n, "alpha", 1));
    graph_value *gate = onnx_emit(n, ONNX_ARGS("swish", 1, &alpha, onnx_in(n, 0)));
    onnx_result(n, 0, ONNX_ARGS("multiply", 0, NULL, gate, onnx_in(n, 1)));
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

/* --- layers with their activations --- */

#define MOST_PARAMS 2

/* What onnxruntime's kernels for processors take, and the IR's operator for it; params by its attributes. */
typedef struct activation {
    const char *name, *op, *params[MOST_PARAMS];
    bool of_conv, of_gemm;
} activation;

static const activation activations[] = {
    {"Celu", "celu", {"alpha"}, false, true},
    {"Clip", "clip", {"min", "max"}, true, false},
    {"Elu", "elu", {"alpha"}, false, true},
    {"HardSigmoid", "hard_sigmoid", {"alpha", "beta"}, true, true},
    {"HardSwish", "hard_swish", {NULL}, true, false},
    {"LeakyRelu", "nn.leaky_relu", {"alpha"}, true, true},
    {"Relu", "nn.relu", {NULL}, true, true},
    {"Selu", "selu", {"alpha", "gamma"}, false, true},
    {"Sigmoid", "sigmoid", {NULL}, true, true},
    {"Softplus", "softplus", {NULL}, false, true},
    {"Softsign", "softsign", {NULL}, false, true},
    {"Tanh", "tanh", {NULL}, true, true},
    {"ThresholdedRelu", "thresholded_relu", {"alpha"}, false, true},
};

/* NULL after a diagnostic that lists those that are read. */
static const activation *find_activation(onnx_node *n, bool of_conv)
{
    const char *name = onnx_attr_string(n, "activation", "");
    writer w;
    writer_init(&w, &n->c->mem);
    for (size_t i = 0; i < sizeof activations / sizeof *activations; i++) {
        const activation *a = &activations[i];
        if (of_conv ? !a->of_conv : !a->of_gemm)
            continue;
        if (strcmp(a->name, name) == 0)
            return a;
        w_fmt(&w, "%s%s", w.len > 0 ? ", " : "", a->name);
    }
    return onnx_fail(n, DIAG_UNSUPPORTED, "activation '%.100s' is not one of these: %s", name, w.data), NULL;
}

static uint32_t count_params(const activation *a)
{
    uint32_t count = 0;
    while (count < MOST_PARAMS && a->params[count])
        count++;
    return count;
}

/* All at once of a convolution; others are left alone where the activation has none, as onnxruntime does. */
static bool read_list(onnx_node *n, const activation *a, double *out)
{
    attr list = {0};
    const uint32_t count = count_params(a);
    if (onnx_has_attr(n, n->row->target) && !onnx_attr_convert(n, n->row->target, "params", ATTR_FLOATS, &list))
        return false;
    if (count > 0 && list.n != count)
        return onnx_fail(n, DIAG_FORMAT, "%s needs %u numbers in %s, not %u", a->name, count, n->row->target, list.n);
    for (uint32_t i = 0; i < count; i++)
        out[i] = list.u.floats[i];
    return true;
}

/* Each in an attribute of its own, of a product. */
static bool read_each(onnx_node *n, const activation *a, double *out)
{
    for (uint32_t i = 0; i < count_params(a); i++) {
        const char *name = arena_printf(&n->c->mem, "%s%s", n->row->target, a->params[i]);
        if (!onnx_has_attr(n, name))
            return onnx_fail(n, DIAG_FORMAT, "%s needs the attribute %s", a->name, name);
        out[i] = onnx_attr_float(n, name, 0);
    }
    return !n->failed;
}

static graph_value *activated(onnx_node *n, const activation *a, const double *params, graph_value *y)
{
    attr attrs[MOST_PARAMS];
    const uint32_t count = count_params(a);
    if (strcmp(a->op, "clip") == 0)
        return onnx_emit(n, ONNX_ARGS(a->op, 0, NULL, y, onnx_const_like(n, y, params[0]),
                                      onnx_const_like(n, y, params[1])));
    for (uint32_t i = 0; i < count; i++)
        attrs[i] = attr_float(n->c, a->params[i], params[i]);
    return onnx_emit(n, ONNX_ARGS(a->op, count, attrs, y));
}

/* onnxruntime adds Z into the sums: it is no operand that is repeated. */
static bool sum_fits(onnx_node *n, const graph_value *z, const graph_value *y)
{
    bool fits = onnx_rank(z) == onnx_rank(y);
    for (uint32_t i = 0; fits && i < onnx_rank(y); i++) {
        int64_t a, b;
        fits = !dim_is_const(z->type.shape.dims[i], &a) || !dim_is_const(y->type.shape.dims[i], &b) || a == b;
    }
    return fits || onnx_fail(n, DIAG_TYPE, "Z must have the shape of the result");
}

bool onnx_fused_conv(onnx_node *n, graph_value *weights)
{
    const activation *a = onnx_has_attr(n, "activation") ? find_activation(n, true) : NULL;
    graph_value *in[2] = {onnx_in(n, 0), weights}, *z = onnx_optional(n, 3);
    double params[MOST_PARAMS] = {0};
    if (n->failed || (a && !read_list(n, a, params)))
        return false;
    graph_value *y = onnx_conv(n, "nn.conv", 2, in, onnx_optional(n, 2));
    if (n->failed || (z && !sum_fits(n, z, y)))
        return false;
    y = z ? onnx_binary(n, "add", y, z) : y;
    return onnx_alias(n, 0, a ? activated(n, a, params, y) : y);
}

bool onnx_op_fused_conv(onnx_node *n)
{
    return onnx_fused_conv(n, onnx_in(n, 1));
}

bool onnx_op_fused_gemm(onnx_node *n)
{
    const activation *a = find_activation(n, false);
    double params[MOST_PARAMS] = {0};
    if (!a || !read_each(n, a, params))
        return false;
    graph_value *y = onnx_gemm(n);
    return y && onnx_alias(n, 0, activated(n, a, params, y));
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
    graph_value *bias = onnx_optional(n, simple ? 3 : 4), *beta = simple ? NULL : onnx_optional(n, 3);
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

typedef struct embedding {
    graph_value *words, *positions, *segments; /* tables; the last may be NULL */
    graph_value *gamma, *beta, *mask, *at;     /* the last two may be NULL */
} embedding;

/* Of the identities in operand 0 and the segments in operand 1. */
static bool embed(onnx_node *n, const embedding *e)
{
    graph_value *ids = onnx_in(n, 0), *segment = onnx_optional(n, 1), *position = e->positions;
    attr eps = attr_float(n->c, "epsilon", onnx_attr_float(n, "epsilon", (double)1e-12f));
    (void)onnx_attr_int(n, "mask_index_type", 0); /* for the inference of types alone */
    if (onnx_rank(ids) != 2)
        return onnx_fail(n, DIAG_TYPE, "input_ids must be [batch, sequence]");
    position = e->at ? rows_of(n, position, e->at) : onnx_slice(n, position, 0, 0, onnx_static_dim(n, ids, 1));
    graph_value *sum = rows_of(n, e->words, ids);
    if (segment && e->segments)
        sum = onnx_binary(n, "add", sum, rows_of(n, e->segments, segment));
    sum = onnx_binary(n, "add", sum, position);
    onnx_result(n, 0, ONNX_ARGS(n->row->target, 1, &eps, sum, e->gamma, e->beta));
    if (n->n_out > 1 && n->out_names[1])
        onnx_alias(n, 1, mask_index(n, ids, e->mask));
    if (n->n_out > 2 && n->out_names[2])
        onnx_alias(n, 2, sum);
    return !n->failed;
}

bool onnx_op_embed_layer_norm(onnx_node *n)
{
    const embedding e = {onnx_in(n, 2), onnx_in(n, 3), onnx_optional(n, 4), onnx_in(n, 5), onnx_in(n, 6),
                         onnx_optional(n, 7), onnx_optional(n, 8)};
    return embed(n, &e);
}

/* A table of codes with its scale, behind which its zero point stands by five; NULL: there is none. */
static graph_value *decoded(onnx_node *n, uint32_t i, uint32_t scale)
{
    graph_value *x = onnx_optional(n, i), *zero = onnx_optional(n, scale + 5);
    return x && onnx_optional(n, scale) ? onnx_emit(n, ONNX_ARGS("qnn.dequantize", 0, NULL, x,
                                                                 onnx_optional(n, scale), zero)) : NULL;
}

bool onnx_op_qembed_layer_norm(onnx_node *n)
{
    const embedding e = {decoded(n, 2, 8), decoded(n, 3, 9), decoded(n, 4, 10), decoded(n, 5, 11), decoded(n, 6, 12),
                         onnx_optional(n, 7), NULL};
    return embed(n, &e);
}

/* CDist: sums of squares of both rows, less twice their product, as onnxruntime has it. Rounding may leave it below
 * 0. */
bool onnx_op_distances(onnx_node *n)
{
    static const int64_t last = 1;
    const char *metric = onnx_attr_string(n, "metric", "sqeuclidean");
    const bool root = strcmp(metric, "euclidean") == 0;
    graph_value *a = onnx_in(n, 0), *b = onnx_in(n, 1);
    if (!n->failed && !root && strcmp(metric, "sqeuclidean") != 0)
        return onnx_fail(n, DIAG_UNSUPPORTED, "metric '%s'; euclidean and sqeuclidean are supported", metric);
    if (!n->failed && (onnx_rank(a) != 2 || onnx_rank(b) != 2))
        return onnx_fail(n, DIAG_TYPE, "both inputs must be matrices");
    graph_value *aa = onnx_reduce(n, "sum", onnx_binary(n, "multiply", a, a), 1, &last, true);
    graph_value *bb = onnx_reduce(n, "sum", onnx_binary(n, "multiply", b, b), 1, &last, false);
    graph_value *ab = onnx_matmul(n, a, b, false, true, onnx_dtype(a));
    graph_value *y = onnx_binary(n, "subtract", onnx_binary(n, "add", aa, bb),
                                 onnx_binary(n, "multiply", ab, onnx_const_like(n, ab, 2)));
    y = onnx_binary(n, "maximum", y, onnx_const_like(n, y, 0));
    return onnx_alias(n, 0, root ? onnx_unary(n, "sqrt", y) : y);
}
