/* SPDX-License-Identifier: Apache-2.0 */
/* Importers of MoE and QMoE: each token goes through the few experts that a router gives most to. A loop over all
 * choices of all tokens takes the weights of one expert at a time, so only those are read that a token needs. */
#include "frontend/onnx/onnx_import.h"

#include <string.h>

/* Operands by number; QMoE has scales and zero points beside the weights. -1: it has none. */
enum { WEIGHTS, SCALES, BIAS, ZEROS, N_OPERANDS };
static const int operands[2][2][N_OPERANDS] = {{{2, -1, 3, -1}, {4, -1, 5, -1}}, {{2, 3, 4, 11}, {5, 6, 7, 12}}};

typedef struct experts {
    onnx_node *n;
    bool quantized;
    const char *activation;
    double alpha, beta, limit; /* of swiglu; limit 0: none */
    int64_t k, hidden, bits, block; /* block 0: one scale for each row of weights */
    dtype dt;
    dim tokens;
    graph_value *x, *chosen, *share; /* [tokens, hidden]; i64[tokens * k]; [tokens, k, 1] */
} experts;

static bool is_known_activation(const char *name)
{
    static const char *const known[] = {"relu", "gelu", "silu", "identity", "swiglu"};
    bool found = false;
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        found |= strcmp(known[i], name) == 0;
    return found;
}

static bool refuse_operands(onnx_node *n, bool quantized)
{
    static const uint32_t first[2] = {6, 8}, beyond[2] = {8, 11};
    for (uint32_t i = first[quantized]; i < n->n_in; i++)
        if (onnx_optional(n, i) && (i < beyond[quantized] || i > 12))
            return onnx_fail(n, DIAG_UNSUPPORTED, "operand %u is not supported: onnxruntime has a third layer of "
                                                  "experts and weights of the router only for GPUs", i);
    return true;
}

static bool read_experts(experts *e)
{
    onnx_node *n = e->n;
    e->activation = onnx_attr_string(n, "activation_type", "relu");
    e->k = onnx_attr_int(n, "k", 1);
    e->alpha = onnx_attr_float(n, "activation_alpha", 1);
    e->beta = onnx_attr_float(n, "activation_beta", 0);
    e->limit = onnx_attr_float(n, "swiglu_limit", 0);
    e->bits = onnx_attr_int(n, "expert_weight_bits", 4);
    e->block = onnx_attr_int(n, "block_size", 0);
    (void)onnx_attr_int(n, "accuracy_level", 0); /* how to compute, not what */
    e->dt = onnx_dtype(onnx_in(n, 0));
    if (!is_known_activation(e->activation))
        return onnx_fail(n, DIAG_UNSUPPORTED, "activation_type is '%.40s', none of relu, gelu, silu, identity, swiglu",
                         e->activation);
    if (strcmp(e->activation, "swiglu") == 0 && onnx_attr_int(n, "swiglu_fusion", 0) != 1)
        return onnx_fail(n, DIAG_UNSUPPORTED, "swiglu needs swiglu_fusion = 1, gates and values in turns, as "
                                              "onnxruntime's kernel for CPUs does");
    if (onnx_attr_int(n, "use_sparse_mixer", 0) != 0 || onnx_attr_int(n, "swiglu_limit_after_activation", 0) != 0 ||
        strcmp(onnx_attr_string(n, "quant_type", "int"), "int") != 0 || onnx_attr_int(n, "weights_prepacked", 0) > 0)
        return onnx_fail(n, DIAG_UNSUPPORTED, "use_sparse_mixer, swiglu_limit_after_activation, weights_prepacked and "
                                              "other types than 'int' are not supported: export the model for CPUs");
    if (e->quantized && e->bits != 4 && e->bits != 8)
        return onnx_fail(n, DIAG_UNSUPPORTED, "weights of %lld bits; 4 and 8 are supported", (long long)e->bits);
    return refuse_operands(n, e->quantized);
}

/* The experts of each token, and how much each of them counts. MoE's shares are parts of all, unless they are to be
 * normalized; those of QMoE always are. */
static bool choose(experts *e)
{
    onnx_node *n = e->n;
    graph_value *p = onnx_in(n, 1), *best[2];
    const attr last = attr_int(n->c, "axis", 1);
    const int64_t behind = 2;
    const bool parts = !e->quantized && onnx_attr_int(n, "normalize_routing_weights", 0) == 0;
    if (onnx_rank(p) != 2 || e->k < 1 || e->k > onnx_static_dim(n, p, 1))
        return onnx_fail(n, DIAG_TYPE, "the router must give each token a number for each expert, and k = %lld of them "
                                       "are chosen", (long long)e->k);
    if (parts)
        p = onnx_emit(n, ONNX_ARGS("nn.softmax", 1, &last, p));
    onnx_best_of_rows(n, p, e->k, best);
    if (n->failed)
        return false;
    const dim all = dim_mul(n->c, e->tokens, dim_const(n->c, e->k));
    graph_value *share = parts ? best[0] : onnx_emit(n, ONNX_ARGS("nn.softmax", 1, &last, best[0]));
    e->share = onnx_expand_dims(n, share, 1, &behind);
    e->chosen = onnx_reshape(n, best[1], 1, &all);
    return !n->failed;
}

/* --- one expert --- */

static graph_value *take_row(onnx_node *m, graph_value *x, graph_value *at)
{
    const attr axis = attr_int(m->c, "axis", 0);
    return onnx_emit(m, ONNX_ARGS("take", 1, &axis, x, at));
}

/* Operand `which` of layer 0 or 1, inside of the body, of the expert; NULL: it is left out. */
static graph_value *part_of(const experts *e, onnx_region *r, onnx_node *m, uint32_t layer, uint32_t which,
                            graph_value *at)
{
    static const char *const names[2][N_OPERANDS] = {{"weights_1", "scales_1", "bias_1", "zeros_1"},
                                                     {"weights_2", "scales_2", "bias_2", "zeros_2"}};
    const int i = operands[e->quantized][layer][which];
    graph_value *v = i < 0 ? NULL : onnx_optional(e->n, (uint32_t)i);
    return v && !m->failed ? take_row(m, onnx_region_value(r, names[layer][which], v), at) : NULL;
}

/* Codes [rows, columns] as floats: (code - zero) * scale, each row or block of columns by its own. */
static graph_value *decoded(const experts *e, onnx_node *m, graph_value *codes, graph_value *scales, graph_value *zeros)
{
    const int64_t last = onnx_rank(scales);
    if (e->bits == 4)
        codes = onnx_halves(m, codes);
    const int64_t rows = onnx_static_dim(m, codes, 0), columns = onnx_static_dim(m, codes, 1);
    const int64_t block = e->block > 0 ? e->block : columns;
    if (m->failed || block < 1 || columns % block != 0)
        return onnx_refuse(m, DIAG_TYPE, "rows of %lld weights do not have blocks of %lld", (long long)columns,
                           (long long)block);
    const int64_t wide[3] = {rows, columns / block, block}, flat[2] = {rows, columns};
    const int64_t each[3] = {rows, columns / block, 1};
    if (zeros && e->bits == 4)
        zeros = onnx_slice(m, onnx_halves(m, zeros), last - 1, 0, last == 1 ? rows : columns / block);
    graph_value *zero = zeros ? onnx_reshape_ints(m, onnx_cast(m, zeros, e->dt), 3, each)
                              : onnx_const_float(m, e->dt, (double)(1 << (e->bits - 1)));
    graph_value *w = onnx_reshape_ints(m, onnx_cast(m, codes, e->dt), 3, wide);
    w = onnx_binary(m, "multiply", onnx_binary(m, "subtract", w, zero),
                    onnx_reshape_ints(m, onnx_cast(m, scales, e->dt), 3, each));
    return onnx_reshape_ints(m, w, 2, flat);
}

/* A row by layer 0 or 1 of the expert. */
static graph_value *layer_of(const experts *e, onnx_region *r, onnx_node *m, uint32_t layer, graph_value *at,
                             graph_value *row)
{
    graph_value *w = part_of(e, r, m, layer, WEIGHTS, at), *bias = part_of(e, r, m, layer, BIAS, at);
    if (e->quantized) {
        graph_value *scales = part_of(e, r, m, layer, SCALES, at), *zeros = part_of(e, r, m, layer, ZEROS, at);
        w = w && scales ? decoded(e, m, w, scales, zeros)
                        : onnx_refuse(m, DIAG_TYPE, "weights and scales of the experts must be there");
    }
    return onnx_plus(m, onnx_matmul(m, row, w, false, true, DT_NONE), bias);
}

static graph_value *every_other(onnx_node *m, graph_value *x, int64_t from)
{
    const int64_t end = INT64_MAX, axis = 1, step = 2;
    return onnx_emit(m, ONNX_ARGS("strided_slice", 0, NULL, x, onnx_const_ints(m, 1, &from),
                                  onnx_const_ints(m, 1, &end), onnx_const_ints(m, 1, &axis),
                                  onnx_const_ints(m, 1, &step)));
}

static graph_value *activated(const experts *e, onnx_node *m, graph_value *x)
{
    const attr tanh = attr_string(m->c, "approximate", "tanh"), alpha = attr_float(m->c, "alpha", e->alpha);
    const char *a = e->activation;
    if (strcmp(a, "identity") == 0)
        return x;
    if (strcmp(a, "relu") == 0)
        return onnx_unary(m, "nn.relu", x);
    if (strcmp(a, "gelu") == 0)
        return onnx_emit(m, ONNX_ARGS("gelu", 1, &tanh, x));
    if (strcmp(a, "silu") == 0)
        return onnx_unary(m, "swish", x);
    graph_value *gate = every_other(m, x, 0), *value = every_other(m, x, 1);
    if (e->limit > 0) {
        graph_value *high = onnx_const_float(m, e->dt, e->limit), *low = onnx_const_float(m, e->dt, -e->limit);
        gate = onnx_binary(m, "minimum", gate, high);
        value = onnx_binary(m, "maximum", onnx_binary(m, "minimum", value, high), low);
    }
    value = onnx_binary(m, "add", value, onnx_const_float(m, e->dt, e->beta));
    return onnx_binary(m, "multiply", onnx_emit(m, ONNX_ARGS("swish", 1, &alpha, gate)), value);
}

/* A choice: the token's row through its expert. */
static void make_round(const experts *e, onnx_region *r)
{
    onnx_node m = onnx_region_node(r);
    const int64_t row[2] = {1, e->hidden};
    graph_value *round = graph_add_param(r->f, "round", type_static(m.c, DT_I64, 0, NULL));
    graph_add_result(r->f, graph_add_constant(r->f, tensor_scalar_i64(m.c, DT_BOOL, 1), "go", m.loc));
    graph_value *x = onnx_region_value(r, "tokens", e->x), *at = onnx_region_value(r, "chosen", e->chosen);
    graph_value *own = onnx_binary(&m, "divide", round, onnx_const_int(&m, DT_I64, e->k));
    at = take_row(&m, at, round);
    x = onnx_reshape_ints(&m, take_row(&m, x, own), 2, row);
    x = activated(e, &m, layer_of(e, r, &m, 0, at, x));
    x = onnx_reshape_ints(&m, layer_of(e, r, &m, 1, at, x), 1, &e->hidden);
    if (!m.failed)
        graph_add_result(r->f, x);
    e->n->failed |= m.failed;
}

static bool import_experts(onnx_node *n, bool quantized)
{
    experts e = {.n = n, .quantized = quantized};
    graph_value *x = onnx_in(n, 0);
    const uint32_t rank = onnx_rank(x);
    const int64_t axis = 1;
    onnx_region r;
    if (rank < 2 || rank > 3)
        return onnx_fail(n, DIAG_TYPE, "the tokens must have two or three dimensions");
    e.hidden = onnx_static_dim(n, x, rank - 1);
    e.tokens = rank == 2 ? onnx_dim(n, x, 0) : dim_mul(n->c, onnx_dim(n, x, 0), onnx_dim(n, x, 1));
    e.x = onnx_reshape(n, x, 2, (dim[]){e.tokens, dim_const(n->c, e.hidden)});
    if (n->failed || !read_experts(&e) || !choose(&e))
        return false;
    graph_value *trips = onnx_extent(n, e.chosen, 0);
    onnx_region_open(&r, n, NULL, "expert");
    make_round(&e, &r);
    const onnx_loop l = {.trips = trips};
    graph_node *loop = n->failed ? NULL : onnx_emit_loop(n, n->f, &l, &r);
    if (!loop)
        return false;
    graph_value *y = onnx_reshape(n, loop->outputs[0], 3,
                                  (dim[]){e.tokens, dim_const(n->c, e.k), dim_const(n->c, e.hidden)});
    y = onnx_reduce(n, "sum", onnx_binary(n, "multiply", y, e.share), 1, &axis, false);
    return onnx_alias(n, 0, onnx_reshape(n, y, rank, x->type.shape.dims));
}

bool onnx_op_moe(onnx_node *n)
{
    return import_experts(n, false);
}

bool onnx_op_q_moe(onnx_node *n)
{
    return import_experts(n, true);
}
