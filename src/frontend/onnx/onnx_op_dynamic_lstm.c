/* SPDX-License-Identifier: Apache-2.0 */
/* Importer of DynamicQuantizeLSTM: an LSTM whose products are of integers. All inputs are rounded to 8 bits at once,
 * the states of all samples in each step, with scales that the numbers decide. So it is a loop over the steps. */
#include "frontend/onnx/onnx_import.h"

#include <string.h>

enum { X, W, R, BIAS, LENGTHS, FIRST_H, FIRST_C, PEEPHOLES, W_SCALE, W_ZERO, R_SCALE, R_ZERO };
enum { GATES = 4, FUNCTIONS = 3 };

typedef struct quantized_lstm {
    onnx_node *n;
    graph_value *codes, *scale, *zero; /* of all inputs */
    graph_value *lengths;              /* or NULL */
    int64_t directions, hidden;
    double clip;
    bool coupled;
    const char *functions[2 * FUNCTIONS]; /* of each direction: gates, candidate, output */
} quantized_lstm;

/* Part d along the first axis of operand i, without that axis; NULL: it is left out. */
static graph_value *part_of(const quantized_lstm *q, uint32_t i, int64_t d)
{
    onnx_node *n = q->n;
    graph_value *v = onnx_optional(n, i);
    attr axis = attr_int(n->c, "axis", 0);
    if (!v || onnx_rank(v) == 0)
        return v;
    return onnx_emit(n, ONNX_ARGS("take", 1, &axis, v, onnx_const_int(n, DT_I64, d)));
}

/* Codes by weights (with their scale and zero point), as floats. */
static graph_value *product(onnx_node *n, graph_value *codes, graph_value *scale, graph_value *zero,
                            graph_value *const weights[3])
{
    attr last = attr_int(n->c, "axis", -1);
    graph_value *sums = onnx_emit(n, ONNX_ARGS("qnn.matmul", 0, NULL, codes, weights[0], zero, weights[2]));
    return onnx_emit(n, ONNX_ARGS("qnn.dequantize", 1, &last, sums, onnx_binary(n, "multiply", scale, weights[1])));
}

/* --- a step, in the body of the loop --- */

typedef struct step {
    const quantized_lstm *q;
    onnx_node *n; /* inside */
    graph_value *sums, *bias, *peepholes, *cell;
    const char *const *functions;
} step;

static graph_value *clipped(const step *s, graph_value *x)
{
    onnx_node *n = s->n;
    const double c = s->q->clip;
    return c > 0 ? onnx_emit(n, ONNX_ARGS("clip", 0, NULL, x, onnx_const_like(n, x, -c), onnx_const_like(n, x, c))) : x;
}

/* Gate g of i, o, f, c; what the peephole of that number (-1: none) sees of a cell is added. */
static graph_value *gate(const step *s, int64_t g, int64_t peephole, graph_value *cell, const char *function)
{
    onnx_node *n = s->n;
    const int64_t h = s->q->hidden;
    graph_value *x = onnx_slice(n, s->sums, 1, g * h, (g + 1) * h);
    if (s->peepholes && peephole >= 0) {
        graph_value *p = onnx_slice(n, s->peepholes, 0, peephole * h, (peephole + 1) * h);
        x = onnx_binary(n, "add", x, onnx_binary(n, "multiply", p, cell));
    }
    return onnx_unary(n, function, clipped(s, x));
}

/* The next cell and state. */
static void compute_step(const step *s, graph_value **out_h, graph_value **out_c)
{
    onnx_node *n = s->n;
    graph_value *i = gate(s, 0, 0, s->cell, s->functions[0]);
    graph_value *f = s->q->coupled ? onnx_binary(n, "subtract", onnx_const_like(n, i, 1), i)
                                   : gate(s, 2, 2, s->cell, s->functions[0]);
    graph_value *candidate = gate(s, 3, -1, NULL, s->functions[1]);
    *out_c = onnx_binary(n, "add", onnx_binary(n, "multiply", f, s->cell), onnx_binary(n, "multiply", i, candidate));
    graph_value *o = gate(s, 1, 1, *out_c, s->functions[0]);
    *out_h = onnx_binary(n, "multiply", o, onnx_unary(n, s->functions[2], *out_c));
}

/* --- one direction --- */

static graph_value *inside_or_null(onnx_region *r, const char *name, graph_value *v)
{
    return v ? onnx_region_value(r, name, v) : NULL;
}

/* onnxruntime takes states from the rows of results, where those of a sample are 0 behind its end. */
static graph_value *seen_by_scale(const quantized_lstm *q, onnx_node *in, graph_value *h, graph_value *lengths,
                                  graph_value *round)
{
    static const int64_t behind = 1;
    if (!lengths || q->n->n_out == 0 || !q->n->out_names[0])
        return h;
    graph_value *on = onnx_binary(in, "less_equal", onnx_cast(in, round, onnx_dtype(lengths)), lengths);
    return onnx_where(in, onnx_expand_dims(in, on, 1, &behind), h, onnx_const_like(in, h, 0));
}

/* The body: round, state and cell in; go on, state, cell, and the row of results out. products: [time, batch, 4 hidden]
 * of the inputs. */
static void make_body(const quantized_lstm *q, onnx_region *r, int64_t d, graph_value *const *first,
                      graph_value *products)
{
    onnx_node *n = q->n, in;
    graph_value *round = graph_add_param(r->f, "round", type_static(n->c, DT_I64, 0, NULL));
    graph_value *h = graph_add_param(r->f, "state", first[0]->type), *c = graph_add_param(r->f, "cell", first[1]->type);
    graph_add_result(r->f, graph_add_constant(r->f, tensor_scalar_i64(n->c, DT_BOOL, 1), "go", n->loc));
    graph_value *weights[3] = {inside_or_null(r, "weights", part_of(q, R, d)),
                               inside_or_null(r, "weights_scale", part_of(q, R_SCALE, d)),
                               inside_or_null(r, "weights_zero", part_of(q, R_ZERO, d))};
    graph_value *all = onnx_region_value(r, "products", products);
    graph_value *bias = inside_or_null(r, "bias", part_of(q, BIAS, d));
    graph_value *peepholes = inside_or_null(r, "peepholes", part_of(q, PEEPHOLES, d));
    graph_value *lengths = inside_or_null(r, "lengths", q->lengths), *scale, *zero, *next[2];
    in = onnx_region_node(r);
    attr axis = attr_int(n->c, "axis", 0);
    graph_value *codes = onnx_quantize_dynamically(&in, seen_by_scale(q, &in, h, lengths, round), &scale, &zero);
    graph_value *sums = onnx_emit(&in, ONNX_ARGS("take", 1, &axis, all, round));
    sums = onnx_binary(&in, "add", sums, product(&in, codes, scale, zero, weights));
    if (bias) {
        graph_value *wb = onnx_slice(&in, bias, 0, 0, GATES * q->hidden);
        sums = onnx_binary(&in, "add", sums, onnx_binary(&in, "add", wb, onnx_slice(&in, bias, 0, GATES * q->hidden,
                                                                                  2 * GATES * q->hidden)));
    }
    const step s = {q, &in, sums, bias, peepholes, c, q->functions + d * FUNCTIONS};
    compute_step(&s, &next[0], &next[1]);
    graph_value *row = next[0];
    if (lengths) { /* behind its end a sample keeps its state, and has no results */
        static const int64_t behind = 1;
        graph_value *on = onnx_binary(&in, "less", onnx_cast(&in, round, onnx_dtype(lengths)), lengths);
        on = onnx_expand_dims(&in, on, 1, &behind);
        row = onnx_where(&in, on, next[0], onnx_const_like(&in, next[0], 0));
        next[0] = onnx_where(&in, on, next[0], h);
        next[1] = onnx_where(&in, on, next[1], c);
    }
    n->failed |= in.failed;
    for (uint32_t i = 0; i < 2; i++)
        graph_add_result(r->f, next[i]);
    graph_add_result(r->f, row);
}

/* A number in a tensor [batch], or [batch, hidden] of rank 2. */
static graph_value *for_samples(const quantized_lstm *q, graph_value *number, uint32_t rank)
{
    return onnx_stretch(q->n, number, onnx_in(q->n, X), 1, rank - 1, &q->hidden);
}

/* x[time, batch, ..] from its end, or from each sample's. */
static graph_value *turned(const quantized_lstm *q, graph_value *x)
{
    onnx_node *n = q->n;
    graph_value *lengths = q->lengths ? q->lengths : for_samples(q, onnx_extent(n, x, 0), 1);
    return onnx_emit(n, ONNX_ARGS("reverse_sequence", 0, NULL, x, lengths));
}

static graph_value *first_of(const quantized_lstm *q, uint32_t i, int64_t d)
{
    graph_value *v = part_of(q, i, d);
    return v ? v : for_samples(q, onnx_const_float(q->n, DT_F32, 0), 2);
}

/* out: results [time, batch, hidden], last state and cell [batch, hidden]. */
static bool run_direction(const quantized_lstm *q, int64_t d, bool back, graph_value *out[3])
{
    onnx_node *n = q->n;
    onnx_region r;
    graph_value *weights[3] = {part_of(q, W, d), part_of(q, W_SCALE, d), part_of(q, W_ZERO, d)};
    graph_value *x = back ? turned(q, q->codes) : q->codes;
    graph_value *products = product(n, x, q->scale, q->zero, weights);
    graph_value *first[2] = {first_of(q, FIRST_H, d), first_of(q, FIRST_C, d)};
    if (n->failed)
        return false;
    onnx_region_open(&r, n, NULL, back ? "step_back" : "step");
    make_body(q, &r, d, first, products);
    onnx_loop l = {.trips = onnx_extent(n, x, 0), .carried = first, .n_carried = 2};
    graph_node *loop = n->failed ? NULL : onnx_emit_loop(n, n->f, &l, &r);
    if (!loop)
        return false;
    out[0] = back ? turned(q, loop->outputs[2]) : loop->outputs[2];
    out[1] = loop->outputs[0];
    out[2] = loop->outputs[1];
    return !n->failed;
}

/* --- the node --- */

/* The IR's operator for each activation; those with parameters are none of a quantized network. */
static bool read_functions(quantized_lstm *q)
{
    static const struct {
        const char *name, *op;
    } known[] = {{"Relu", "nn.relu"}, {"Sigmoid", "sigmoid"}, {"Softplus", "softplus"}, {"Softsign", "softsign"},
                 {"Tanh", "tanh"}};
    static const char *const usual[FUNCTIONS] = {"Sigmoid", "Tanh", "Tanh"};
    onnx_node *n = q->n;
    attr given = {0};
    const bool has = onnx_has_attr(n, "activations") && onnx_attr_convert(n, "activations", "activations", ATTR_STRINGS,
                                                                          &given);
    if (n->failed || (has && given.n != FUNCTIONS * q->directions))
        return onnx_fail(n, DIAG_FORMAT, "three activations are needed for each direction");
    for (uint32_t i = 0; i < FUNCTIONS * q->directions; i++) {
        const char *name = has ? given.u.strings[i] : usual[i % FUNCTIONS];
        q->functions[i] = NULL;
        for (size_t k = 0; k < sizeof known / sizeof *known; k++)
            if (strcmp(known[k].name, name) == 0)
                q->functions[i] = known[k].op;
        if (!q->functions[i])
            return onnx_fail(n, DIAG_UNSUPPORTED,
                             "activation '%.40s' is none of Relu, Sigmoid, Softplus, Softsign, Tanh", name);
    }
    return true;
}

/* What lies behind the end of the longest sample has no part in the scale. */
static graph_value *up_to_longest(const quantized_lstm *q, graph_value *x)
{
    static const int64_t behind[2] = {1, 2};
    onnx_node *n = q->n;
    if (!q->lengths)
        return x;
    graph_value *longest = onnx_reduce(n, "max", onnx_cast(n, q->lengths, DT_I64), 0, NULL, false);
    graph_value *at = onnx_expand_dims(n, onnx_list_places(n, x), 2, behind);
    return onnx_where(n, onnx_binary(n, "less", at, longest), x, onnx_const_like(n, x, 0));
}

static bool read_lstm(quantized_lstm *q)
{
    onnx_node *n = q->n;
    graph_value *x = onnx_in(n, X), *r = onnx_in(n, R);
    const char *direction = onnx_attr_string(n, "direction", "forward");
    if (onnx_rank(x) != 3 || onnx_rank(r) != 3 || onnx_rank(onnx_in(n, W)) != 3)
        return onnx_fail(n, DIAG_TYPE, "X, W and R must have three dimensions");
    q->hidden = onnx_static_dim(n, r, 1);
    q->directions = strcmp(direction, "bidirectional") == 0 ? 2 : 1;
    q->clip = onnx_attr_float(n, "clip", 0);
    q->coupled = onnx_attr_int(n, "input_forget", 0) != 0;
    q->lengths = onnx_optional(n, LENGTHS);
    if (!n->failed && (onnx_attr_int(n, "hidden_size", q->hidden) != q->hidden ||
                       onnx_static_dim(n, r, 2) != GATES * q->hidden || onnx_static_dim(n, r, 0) != q->directions ||
                       onnx_static_dim(n, onnx_in(n, W), 0) != q->directions))
        return onnx_fail(n, DIAG_TYPE, "W and R do not fit %s and hidden_size", direction);
    if (n->failed || !read_functions(q))
        return false;
    q->codes = onnx_quantize_dynamically(n, up_to_longest(q, x), &q->scale, &q->zero);
    return !n->failed;
}

bool onnx_op_dynamic_quantize_lstm(onnx_node *n)
{
    quantized_lstm q = {.n = n};
    graph_value *out[2][3], *both[2];
    if (!read_lstm(&q))
        return false;
    const bool reverse = strcmp(onnx_attr_string(n, "direction", "forward"), "reverse") == 0;
    for (int64_t d = 0; d < q.directions; d++)
        if (!run_direction(&q, d, reverse || d == 1, out[d]))
            return false;
    for (uint32_t i = 0; i < 3 && i < n->n_out; i++) {
        const int64_t axis = i == 0 ? 1 : 0;
        for (int64_t d = 0; d < q.directions; d++)
            both[d] = onnx_expand_dims(n, out[d][i], 1, &axis);
        onnx_alias(n, i, q.directions > 1 ? onnx_concat(n, 2, both, axis) : both[0]);
    }
    return !n->failed;
}
