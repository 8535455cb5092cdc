/* SPDX-License-Identifier: Apache-2.0 */
/* SVDF and LSTM layers, whose states are variable tensors. Quantized ones compute as TensorFlow Lite Micro does: sums
 * and products become numbers of 16 bits by a multiplier that rounds twice, and the gates' curves come from a table of
 * 256 entries, with lines between them. LSTM layers of i8 may compute as LiteRT does: there powers of two are shifts
 * that round once, and curves are fixed point, which becomes a table of all 65536 numbers here. */
#include "frontend/tflite/tflite_fixed.h"
#include "frontend/tflite/tflite_import.h"

#include <math.h>
#include <string.h>

/* --- pieces --- */

static const tflite_scale sixteen_bits = {.dt = DT_I16}; /* with the zero point 0 */

static graph_value *as_i32(tflite_node *n, graph_value *v)
{
    return tflite_cast(n, v, DT_I32);
}

static graph_value *sum_of_two(tflite_node *n, graph_value *a, graph_value *b)
{
    graph_value *sum = tflite_binary(n, "add", as_i32(n, a), as_i32(n, b));
    return tflite_clipped(n, sum, INT16_MIN, INT16_MAX, DT_I32);
}

static graph_value *product(tflite_node *n, graph_value *a, graph_value *b)
{
    return tflite_binary(n, "multiply", as_i32(n, a), as_i32(n, b));
}

static graph_value *cut(tflite_node *n, graph_value *v, int64_t axis, int64_t from, int64_t to)
{
    graph_value *in[4] = {v, tflite_const(n, tensor_from_i64s(n->c, 1, &from), ""),
                          tflite_const(n, tensor_from_i64s(n->c, 1, &to), ""),
                          tflite_const(n, tensor_from_i64s(n->c, 1, &axis), "")};
    return tflite_emit(n, "strided_slice", 4, in, 0, NULL);
}

static graph_value *joined(tflite_node *n, uint32_t count, graph_value *const *parts, int64_t axis)
{
    const attr a = attr_int(n->c, "axis", axis);
    return count == 1 ? parts[0] : tflite_emit(n, "concatenate", count, parts, 1, &a);
}

/* Rows times the transposed weights of operand i: floats, or sums of numbers with the zero point of x, of 16 bits in
 * i64, else in i32. */
static graph_value *times(tflite_node *n, graph_value *rows, uint32_t i, const tflite_scale *x)
{
    const bool wide = x && x->dt == DT_I16;
    const attr attrs[2] = {attr_int(n->c, "transpose_b", 1), attr_dtype(n->c, "out_dtype", wide ? DT_I64 : DT_I32)};
    graph_value *in[3] = {rows, tflite_in(n, i), x ? tflite_zero(n, x) : NULL};
    return tflite_emit(n, x ? "qnn.matmul" : "nn.matmul", 3, in, x ? 2 : 1, attrs);
}

static bool extents(tflite_node *n, uint32_t i, uint32_t rank, int64_t *out)
{
    const tflite_tensor *t = tflite_operand(n, i);
    return (t->type.kind == TYPE_TENSOR && t->type.shape.rank == (int32_t)rank && shape_get(t->type.shape, out)) ||
           tflite_fail(n, DIAG_TYPE, "operand %u ('%s') needs %u dimensions that are known", i, t->name, rank);
}

/* --- SVDF --- */

typedef struct svdf {
    int64_t batch, inputs, filters, memory, rank, units;
    tflite_scale x, feature, time, state;
    bool is_int;
} svdf;

static bool read_svdf(tflite_node *n, svdf *s)
{
    const tfl_svdf_options *o = n->options;
    int64_t x[2], feature[2], time[2], state[2];
    if (!extents(n, 0, 2, x) || !extents(n, 1, 2, feature) || !extents(n, 2, 2, time) || !extents(n, 4, 2, state))
        return false;
    *s = (svdf){x[0], x[1], feature[0], time[1], o->rank, 0, .is_int = tflite_is_int(n, 0)};
    if (s->rank < 1 || s->filters % s->rank != 0 || feature[1] != s->inputs || time[0] != s->filters || s->memory < 1 ||
        state[0] != s->batch || state[1] != s->filters * s->memory)
        return tflite_fail(n, DIAG_TYPE, "the shapes of its operands do not fit each other");
    s->units = s->filters / s->rank;
    if (!s->is_int)
        return true;
    const dtype kept = tflite_operand(n, 4)->type.dt;
    if (tflite_operand(n, 1)->type.dt != DT_I8 || tflite_operand(n, 2)->type.dt != kept ||
        (kept != DT_I16 && kept != DT_I8))
        return tflite_fail(n, DIAG_UNSUPPORTED, "these types of weights are not supported yet: those of features must "
                                                "be i8, and those of time i16 or i8, as the state is");
    return tflite_read_scale(n, 0, &s->x) && tflite_read_scale(n, 1, &s->feature) &&
           tflite_read_scale(n, 2, &s->time) && tflite_read_scale(n, 4, &s->state);
}

/* What the filters make of x, the newest number of each one's memory. */
static graph_value *newest(tflite_node *n, const svdf *s)
{
    graph_value *v = times(n, tflite_in(n, 0), 1, s->is_int ? &s->x : NULL);
    if (!s->is_int)
        return v;
    const double real = (double)(s->x.scale * s->feature.scale / s->state.scale);
    const tflite_scale bare = {.dt = s->state.dt};
    v = tflite_rescaled(n, v, real, (double)s->inputs * 255 * 128, &bare);
    if (s->state.dt == DT_I16 || s->state.zero == 0)
        return v;
    v = tflite_binary(n, "add", as_i32(n, v), tflite_i32(n, s->state.zero)); /* which wraps */
    return tflite_cast(n, v, DT_I8);
}

static graph_value *weighted(tflite_node *n, const svdf *s, graph_value *memory)
{
    const int64_t each = s->rank * s->memory, rows[3] = {s->batch, s->units, each}, two[2] = {s->units, each}, axis = 2;
    graph_value *time = tflite_in(n, 2);
    if (s->is_int) {
        time = as_i32(n, time);
        memory = as_i32(n, memory);
    }
    if (s->is_int && s->state.dt == DT_I8 && s->state.zero != 0)
        memory = tflite_binary(n, "subtract", memory, tflite_i32(n, s->state.zero));
    const attr attrs[2] = {attr_ints(n->c, "axes", 1, &axis), attr_int(n->c, "keepdims", 0)};
    graph_value *v = tflite_binary(n, "multiply", tflite_reshape(n, memory, 3, rows), tflite_reshape(n, time, 2, two));
    v = tflite_emit(n, "sum", 1, &v, 2, attrs);
    return tflite_operand(n, 3) ? tflite_binary(n, "add", v, tflite_in(n, 3)) : v;
}

/* The fused activation of quantized layers must be RELU, and is not applied. */
bool tflite_op_svdf(tflite_node *n)
{
    const tfl_svdf_options *o = n->options;
    svdf s;
    if (!read_svdf(n, &s))
        return false;
    const int64_t line[3] = {s.batch, s.filters, s.memory}, one[3] = {s.batch, s.filters, 1},
                  flat[2] = {s.batch, s.filters * s.memory};
    graph_value *parts[2] = {tflite_reshape(n, newest(n, &s), 3, one)};
    if (s.memory > 1) { /* behind what is kept, without the oldest */
        parts[1] = parts[0];
        parts[0] = cut(n, tflite_reshape(n, tflite_in(n, 4), 3, line), 2, 1, s.memory);
    }
    graph_value *memory = tflite_reshape(n, joined(n, s.memory > 1 ? 2 : 1, parts, 2), 2, flat);
    if (!tflite_write_state(n, 4, memory))
        return false;
    graph_value *v = weighted(n, &s, memory);
    if (!s.is_int)
        return tflite_result(n, 0, tflite_activated(n, v, o->fused_activation_function));
    tflite_scale y;
    if (!tflite_read_scale(n, TFLITE_RESULT, &y))
        return false;
    const double real = (double)(s.state.scale * s.time.scale / y.scale);
    return tflite_result(n, 0, tflite_rescaled(n, v, real, 0x1p31, &y));
}

/* --- LSTM --- */

enum { LSTM_X, LSTM_W, LSTM_R = 5, LSTM_BIAS = 12, LSTM_H = 18, LSTM_C, LSTM_OPERANDS = 24 };
enum { GATE_IN, GATE_FORGET, GATE_CELL, GATE_OUT, GATES };
#define MOST_STEPS 512 /* steps become nodes of the graph */
#define ACT_TANH   4   /* of fused activations */

typedef struct lstm {
    tflite_node *n;
    int64_t batch, steps, inputs, cells;
    bool time_major, is_int, like_litert;
    tflite_scale x, h, c, given; /* given: what a step gives as its output is a number of that scale */
    int power; /* the scale of the cell is 2^power */
    float clip;
    graph_value *table, *logistic, *tanh, *cell_tanh; /* the first for TensorFlow Lite Micro, the others for LiteRT */
} lstm;

/* The steps of the table are 1/24 wide; its entries lie a little below the curve, so that lines between them fit it. */
static graph_value *curve_table(tflite_node *n)
{
    int32_t *t = arena_array(&n->c->mem, int32_t, 257);
    const int64_t dims = 257;
    for (int i = 0; i < 255; i++) {
        const double g = 65536 / (1 + exp(-i / 24.0)), before = 65536 / (1 + exp(-(i - 1) / 24.0)),
                     after = 65536 / (1 + exp(-(i + 1) / 24.0));
        t[i] = (int32_t)floor(g - ((before + after) / 2 - g) / 8 + 0.5);
    }
    t[255] = t[256] = 65535;
    return tflite_const(n, tensor_dense(n->c, DT_I32, 1, &dims, t), "curve");
}

/* The table's entry at a / 2^bits, with the line to the next one, times 2^bits. a is not below 0. */
static graph_value *on_curve(lstm *l, graph_value *a, int bits, int64_t end)
{
    tflite_node *n = l->n;
    graph_value *u = tflite_binary(n, "right_shift", a, tflite_i32(n, bits));
    graph_value *at = tflite_clipped(n, u, 0, 254, DT_I32);
    graph_value *here[2] = {l->table, at}, *next[2] = {l->table, tflite_binary(n, "add", at, tflite_i32(n, 1))};
    graph_value *low = tflite_emit(n, "take", 2, here, 0, NULL), *high = tflite_emit(n, "take", 2, next, 0, NULL);
    graph_value *part = tflite_binary(n, "bitwise_and", a, tflite_i32(n, (1 << bits) - 1));
    graph_value *line = tflite_binary(n, "multiply", part, tflite_binary(n, "subtract", high, low));
    graph_value *v = tflite_binary(n, "add", tflite_binary(n, "multiply", low, tflite_i32(n, 1 << bits)), line);
    graph_value *in[3] = {tflite_binary(n, "greater_equal", u, tflite_i32(n, 255)), tflite_i32(n, end), v};
    return tflite_emit(n, "where", 3, in, 0, NULL);
}

static graph_value *choose(tflite_node *n, graph_value *x, graph_value *if_negative, graph_value *otherwise)
{
    graph_value *in[3] = {tflite_binary(n, "less", x, tflite_i32(n, 0)), if_negative, otherwise};
    return tflite_emit(n, "where", 3, in, 0, NULL);
}

/* Of Q3.12, as Q0.15. */
static graph_value *logistic(lstm *l, graph_value *x)
{
    tflite_node *n = l->n;
    graph_value *v = tflite_binary(n, "multiply", x, tflite_i32(n, 3));
    graph_value *r = on_curve(l, tflite_unary(n, "abs", v), 9, INT64_C(32767) << 10);
    graph_value *up = tflite_binary(n, "add", r, tflite_i32(n, 512));
    graph_value *down = tflite_binary(n, "subtract", tflite_i32(n, (1 << 25) + 511), r);
    return tflite_binary(n, "right_shift", choose(n, v, down, up), tflite_i32(n, 10));
}

/* Of numbers whose scale is 2^power, as Q0.15. */
static graph_value *tanh_of(lstm *l, graph_value *x, int power)
{
    tflite_node *n = l->n;
    const int left = 12 + power;
    graph_value *v = tflite_binary(n, "multiply", x, tflite_i32(n, left > 0 ? INT64_C(3) << left : 3));
    if (left < 0)
        v = tflite_binary(n, "right_shift", tflite_binary(n, "add", v, tflite_i32(n, INT64_C(1) << (-left - 1))),
                          tflite_i32(n, -left));
    graph_value *r = on_curve(l, tflite_unary(n, "abs", v), 8, INT64_C(65535) << 8);
    r = tflite_binary(n, "right_shift", tflite_binary(n, "add", r, tflite_i32(n, 128 - (1 << 23))), tflite_i32(n, 8));
    return choose(n, v, tflite_unary(n, "negative", r), r);
}

/* LiteRT's curve of each number of 16 bits. bits: before the point, of tanh; -1: logistic. */
static graph_value *full_table(tflite_node *n, int bits)
{
    const int64_t dims = 1 << 16;
    int16_t *t = arena_array(&n->c->mem, int16_t, (size_t)dims);
    for (int32_t i = 0; i < dims; i++) {
        const int16_t x = (int16_t)(i + INT16_MIN);
        t[i] = bits < 0 ? fixed_logistic16(x) : fixed_tanh16(x, bits);
    }
    return tflite_const(n, tensor_dense(n->c, DT_I16, 1, &dims, t), "curve");
}

/* v: in i32. */
static graph_value *in_table(tflite_node *n, graph_value *table, graph_value *v)
{
    graph_value *in[2] = {table, tflite_binary(n, "subtract", v, tflite_i32(n, INT16_MIN))};
    return as_i32(n, tflite_emit(n, "take", 2, in, 0, NULL));
}

static graph_value *curve(lstm *l, graph_value *v, bool is_tanh)
{
    if (!l->is_int)
        return tflite_unary(l->n, is_tanh ? "tanh" : "sigmoid", v);
    if (l->like_litert)
        return in_table(l->n, is_tanh ? l->tanh : l->logistic, v);
    return is_tanh ? tanh_of(l, v, -12) : logistic(l, v);
}

static graph_value *cell_curve(lstm *l, graph_value *cell)
{
    return l->like_litert ? in_table(l->n, l->cell_tanh, cell) : tanh_of(l, cell, l->power);
}

/* A product, in i32, times 2^-bits, as a number of 16 bits. */
static graph_value *divided(const lstm *l, graph_value *x, int bits)
{
    tflite_node *n = l->n;
    if (!l->like_litert)
        return tflite_rescaled(n, x, ldexp(1, -bits), 0x1p30, &sixteen_bits);
    graph_value *up = tflite_binary(n, "right_shift", x, tflite_i32(n, 31)); /* halves away from 0 */
    up = tflite_binary(n, "add", up, tflite_i32(n, INT64_C(1) << (bits - 1)));
    x = tflite_binary(n, "right_shift", tflite_binary(n, "add", x, up), tflite_i32(n, bits));
    return tflite_clipped(n, x, INT16_MIN, INT16_MAX, DT_I32);
}

/* Sums of operand i's weights as numbers of a gate, Q3.12. */
static graph_value *to_gate(lstm *l, graph_value *sums, uint32_t i, const tflite_scale *x, int64_t depth)
{
    tflite_scale w;
    if (!l->is_int || l->n->failed || !tflite_read_scale(l->n, i, &w))
        return sums;
    if (w.zero != 0)
        (void)tflite_fail(l->n, DIAG_UNSUPPORTED, "weights (operand %u) have a zero point other than 0", i);
    const double most = (double)depth * 128 * (x->dt == DT_I16 ? 65536 : 255);
    return tflite_rescaled(l->n, sums, (double)(x->scale * w.scale) * 4096, most, &sixteen_bits);
}

/* What all steps of x give a gate: rows in the order of x. */
static graph_value *from_input(lstm *l, uint32_t gate)
{
    tflite_node *n = l->n;
    const int64_t dims[2] = {l->batch * l->steps, l->inputs};
    graph_value *rows = tflite_reshape(n, tflite_in(n, LSTM_X), 2, dims);
    graph_value *v = times(n, rows, LSTM_W + gate, l->is_int ? &l->x : NULL);
    if (tflite_operand(n, LSTM_BIAS + gate))
        v = tflite_binary(n, "add", v, tflite_in(n, LSTM_BIAS + gate));
    return to_gate(l, v, LSTM_W + gate, &l->x, l->inputs);
}

static graph_value *step_of(lstm *l, graph_value *all, int64_t t)
{
    const int64_t dims[3] = {l->time_major ? l->steps : l->batch, l->time_major ? l->batch : l->steps, l->cells},
                  two[2] = {l->batch, l->cells};
    if (l->steps > 1)
        all = cut(l->n, tflite_reshape(l->n, all, 3, dims), l->time_major ? 0 : 1, t, t + 1);
    return tflite_reshape(l->n, all, 2, two);
}

static graph_value *clipped_cell(lstm *l, graph_value *c)
{
    tflite_node *n = l->n;
    if (!(l->clip > 0))
        return c;
    if (l->is_int) {
        const float most = l->clip / l->c.scale;
        const int64_t bound = (int64_t)(most > 32767 ? 32767 : most);
        return tflite_clipped(n, c, -bound, bound, DT_I32);
    }
    graph_value *in[3] = {c, tflite_number(n, DT_F32, -(double)l->clip), tflite_number(n, DT_F32, (double)l->clip)};
    return tflite_emit(n, "clip", 3, in, 0, NULL);
}

/* One step: the new cell and the new output from the old ones. */
static void step(lstm *l, graph_value *const *from_x, graph_value **h, graph_value **c)
{
    tflite_node *n = l->n;
    graph_value *g[GATES], *kept, *added;
    for (uint32_t i = 0; i < GATES; i++) {
        graph_value *r = to_gate(l, times(n, *h, LSTM_R + i, l->is_int ? &l->h : NULL), LSTM_R + i, &l->h, l->cells);
        r = l->is_int ? sum_of_two(n, from_x[i], r) : tflite_binary(n, "add", from_x[i], r);
        g[i] = curve(l, r, i == GATE_CELL);
    }
    if (!l->is_int) {
        kept = tflite_binary(n, "multiply", g[GATE_FORGET], *c);
        added = tflite_binary(n, "multiply", g[GATE_IN], g[GATE_CELL]);
        *c = clipped_cell(l, tflite_binary(n, "add", kept, added));
        *h = tflite_binary(n, "multiply", g[GATE_OUT], tflite_unary(n, "tanh", *c));
        return;
    }
    kept = divided(l, product(n, g[GATE_FORGET], *c), 15);
    added = divided(l, product(n, g[GATE_IN], g[GATE_CELL]), 30 + l->power);
    graph_value *cell = clipped_cell(l, sum_of_two(n, kept, added));
    *c = tflite_cast(n, cell, DT_I16);
    graph_value *given = product(n, g[GATE_OUT], cell_curve(l, cell));
    *h = tflite_rescaled(n, given, 0x1p-30 / (double)l->given.scale, 0x1p30, &l->given);
}

static bool check_parts(tflite_node *n)
{
    static const struct {
        uint32_t from, to;
        const char *what;
    } parts[] = {{9, 11, "peepholes"}, {16, 17, "a projection"}, {20, 23, "layer normalization"}};
    for (size_t k = 0; k < sizeof parts / sizeof *parts; k++)
        for (uint32_t i = parts[k].from; i <= parts[k].to; i++)
            if (tflite_operand(n, i))
                return tflite_fail(n, DIAG_UNSUPPORTED, "an LSTM with %s is not supported yet", parts[k].what);
    return (tflite_operand(n, LSTM_W) && tflite_operand(n, LSTM_R)) ||
           tflite_fail(n, DIAG_UNSUPPORTED, "an LSTM that couples its input gate and its forget gate is not supported "
                                            "yet");
}

/* The output takes the scale of the last intermediate tensor. */
static bool read_like_litert(lstm *l)
{
    tflite_node *n = l->n;
    const flat_numbers parts = n->op->intermediates;
    const int32_t k = parts.len > 4 ? flat_i32(parts, 4) : -1;
    if (k < 0 || (uint32_t)k >= n->im->n_tensors || !tflite_find_scale(&n->im->tensors[k], &l->given))
        return tflite_fail(n, DIAG_FORMAT, "its five intermediate tensors, of which the last has the scale of the "
                                           "output, are missing");
    if (l->power < -15 || l->power > -9)
        return tflite_fail(n, DIAG_UNSUPPORTED, "LiteRT takes cells with scales from 2^-15 to 2^-9");
    l->given.dt = DT_I8;
    l->logistic = full_table(n, -1);
    l->tanh = full_table(n, 3);
    l->cell_tanh = l->power == -12 ? l->tanh : full_table(n, 15 + l->power);
    return true;
}

/* Of quantised numbers: types and scales. */
static bool read_numbers(lstm *l)
{
    tflite_node *n = l->n;
    const dtype dt = tflite_operand(n, LSTM_X)->type.dt;
    if (tflite_operand(n, LSTM_C)->type.dt != DT_I16 || (dt != DT_I8 && dt != DT_I16) ||
        tflite_operand(n, LSTM_H)->type.dt != dt)
        return tflite_fail(n, DIAG_UNSUPPORTED, "an LSTM is supported only with data and output of i8, or both of i16, "
                           "and a cell of i16");
    for (uint32_t g = 0; g < GATES; g++) {
        const tflite_tensor *bias = tflite_operand(n, LSTM_BIAS + g);
        if (bias && bias->type.dt != (dt == DT_I16 ? DT_I64 : DT_I32))
            return tflite_fail(n, DIAG_UNSUPPORTED, "the biases of an LSTM of %s must be of %s", dtype_name(dt),
                               dt == DT_I16 ? "i64" : "i32");
    }
    if (!tflite_read_scale(n, LSTM_X, &l->x) || !tflite_read_scale(n, LSTM_H, &l->h) ||
        !tflite_read_scale(n, LSTM_C, &l->c))
        return false;
    if (frexp((double)l->c.scale, &l->power) != 0.5 || l->power < -27 || l->power > 1)
        return tflite_fail(n, DIAG_FORMAT, "the scale of the cell must be a power of two");
    l->power--;
    l->given = l->h;
    l->like_litert = tflite_like_litert(n) && dt == DT_I8;
    if (!l->like_litert)
        l->table = curve_table(n);
    return !l->like_litert || read_like_litert(l);
}

/* rank: of the data; 2: a single step. */
static bool read_lstm(lstm *l, uint32_t rank, int64_t activation)
{
    tflite_node *n = l->n;
    int64_t x[3] = {1}, w[2], r[2];
    if (!check_parts(n) || !tflite_operand(n, LSTM_H) || !tflite_operand(n, LSTM_C) ||
        !extents(n, LSTM_X, rank, x + 3 - rank))
        return !n->failed && tflite_fail(n, DIAG_FORMAT, "its states are missing");
    l->steps = x[l->time_major ? 0 : 1];
    l->batch = x[l->time_major ? 1 : 0];
    l->inputs = x[2];
    for (uint32_t g = 0; g < GATES; g++) {
        if (!extents(n, LSTM_W + g, 2, w) || !extents(n, LSTM_R + g, 2, r))
            return false;
        l->cells = g == 0 ? w[0] : l->cells;
        if (w[0] != l->cells || w[1] != l->inputs || r[0] != l->cells || r[1] != l->cells)
            return tflite_fail(n, DIAG_TYPE, "the shapes of its weights do not fit each other");
    }
    if (activation != ACT_TANH) /* of the cell's gate and of what is given out */
        return tflite_fail(n, DIAG_UNSUPPORTED, "an LSTM is supported only with the activation tanh");
    if (l->steps < 1 || l->steps > MOST_STEPS)
        return tflite_fail(n, DIAG_UNSUPPORTED, "an LSTM over %lld steps; from 1 to %d are supported",
                           (long long)l->steps, MOST_STEPS);
    return !l->is_int || read_numbers(l);
}

static bool run_lstm(lstm l, uint32_t rank, int64_t activation)
{
    tflite_node *n = l.n;
    if (!read_lstm(&l, rank, activation))
        return false;
    graph_value *all[GATES], *now[GATES], *h = tflite_in(n, LSTM_H), *c = tflite_in(n, LSTM_C),
                **outputs = arena_array(&n->c->mem, graph_value *, (size_t)l.steps);
    const int64_t row[4] = {l.time_major ? 1 : l.batch, l.time_major ? l.batch : 1, l.cells, l.cells};
    for (uint32_t g = 0; g < GATES; g++)
        all[g] = from_input(&l, g);
    for (int64_t t = 0; t < l.steps && !n->failed; t++) {
        for (uint32_t g = 0; g < GATES; g++)
            now[g] = step_of(&l, all[g], t);
        step(&l, now, &h, &c);
        outputs[t] = tflite_reshape(n, h, rank, row + 3 - rank);
    }
    return tflite_write_state(n, LSTM_H, h) && tflite_write_state(n, LSTM_C, c) &&
           tflite_result(n, 0, joined(n, (uint32_t)l.steps, outputs, l.time_major ? 0 : 1));
}

bool tflite_op_sequence_lstm(tflite_node *n)
{
    const tfl_sequence_lstm_options *o = n->options;
    const lstm l = {.n = n, .time_major = o->time_major, .is_int = tflite_is_int(n, 0), .clip = o->cell_clip};
    return run_lstm(l, 3, o->fused_activation_function);
}

/* --- LSTM: one step, as a layer like those above, or with all weights in one matrix --- */

enum { CELL_X, CELL_H, CELL_W, CELL_BIAS, CELL_C, CELL_OPERANDS };

typedef struct cell {
    int64_t cells;
    graph_value *both, *sums; /* data beside the old output, and what the weights make of them */
    graph_value *given, *now; /* the new output and the new state */
} cell;

/* Rows of the weights are the input gate, the new value, the forget gate and the output gate. */
static graph_value *cell_gate(tflite_node *n, const cell *l, graph_value *sums, int64_t i)
{
    return cut(n, sums, 1, i * l->cells, (i + 1) * l->cells);
}

static void cell_of_floats(tflite_node *n, cell *l)
{
    graph_value *g[GATES];
    l->sums = tflite_binary(n, "add", times(n, l->both, CELL_W, NULL), tflite_in(n, CELL_BIAS));
    for (int64_t i = 0; i < GATES; i++)
        g[i] = tflite_unary(n, i == 1 ? "tanh" : "sigmoid", cell_gate(n, l, l->sums, i));
    graph_value *kept = tflite_binary(n, "multiply", g[2], tflite_in(n, CELL_C));
    l->now = tflite_binary(n, "add", tflite_binary(n, "multiply", g[0], g[1]), kept);
    l->given = tflite_binary(n, "multiply", g[3], tflite_unary(n, "tanh", l->now));
}

/* The product of two numbers of Q0.15, with halves up. */
static graph_value *high_product(tflite_node *n, graph_value *a, graph_value *b)
{
    graph_value *p = tflite_binary(n, "add", product(n, a, b), tflite_i32(n, 1 << 14));
    return tflite_binary(n, "right_shift", p, tflite_i32(n, 15));
}

/* Sums times real as numbers of 16 bits, with halves up behind the product and behind the shift: for this layer the
 * reference kernels of LiteRT take the product of matrices of the fast ones. */
static graph_value *halves_up(tflite_node *n, graph_value *sums, double real)
{
    const fixed_scale f = fixed_of(real);
    const int right = f.shift < 0 ? -f.shift : 0;
    graph_value *v = tflite_rescaled(n, sums, ldexp((double)f.multiplier, f.shift + right - 31), 0x1p31, NULL);
    if (right > 0)
        v = tflite_binary(n, "right_shift", tflite_binary(n, "add", v, tflite_i32(n, INT64_C(1) << (right - 1))),
                          tflite_i32(n, right));
    return tflite_clipped(n, v, INT16_MIN, INT16_MAX, DT_I16);
}

/* Data and outputs are u8 with the scale 1/128 and the zero point 128, the state is i16 with the scale 2^-11. */
static bool cell_of_numbers(tflite_node *n, cell *l)
{
    tflite_scale x, h, w, bias, c;
    if (!tflite_read_scale(n, CELL_X, &x) || !tflite_read_scale(n, CELL_H, &h) || !tflite_read_scale(n, CELL_W, &w) ||
        !tflite_read_scale(n, CELL_BIAS, &bias) || !tflite_read_scale(n, CELL_C, &c))
        return false;
    if (x.zero != 128 || h.zero != 128 || x.scale != 0x1p-7f || h.scale != 0x1p-7f || c.scale != 0x1p-11f)
        return tflite_fail(n, DIAG_FORMAT, "its data and its output must have the scale 1/128 and the zero point 128, "
                                           "and its state the scale 1/2048");
    const attr attrs[2] = {attr_int(n->c, "transpose_b", 1), attr_dtype(n->c, "out_dtype", DT_I32)};
    graph_value *in[4] = {l->both, tflite_in(n, CELL_W), tflite_zero(n, &x), tflite_zero(n, &w)}, *g[GATES];
    graph_value *curves[2] = {full_table(n, -1), full_table(n, 3)};
    graph_value *sums = tflite_binary(n, "add", tflite_emit(n, "qnn.matmul", 4, in, 2, attrs), tflite_in(n, CELL_BIAS));
    l->sums = halves_up(n, sums, (double)(4096 * bias.scale));
    sums = as_i32(n, l->sums);
    for (int64_t i = 0; i < GATES; i++)
        g[i] = in_table(n, curves[i == 1], cell_gate(n, l, sums, i));
    const lstm once = {.n = n, .is_int = true, .like_litert = true};
    graph_value *added = divided(&once, high_product(n, g[0], g[1]), 4);
    graph_value *now = sum_of_two(n, added, high_product(n, g[2], tflite_in(n, CELL_C)));
    l->now = tflite_cast(n, now, DT_I16);
    graph_value *given = divided(&once, high_product(n, g[3], in_table(n, full_table(n, 4), now)), 8);
    given = tflite_binary(n, "add", tflite_clipped(n, given, INT8_MIN, INT8_MAX, DT_I32), tflite_i32(n, 128));
    l->given = tflite_cast(n, given, DT_U8);
    return !n->failed;
}

static bool check_cell(tflite_node *n, cell *l, bool is_int)
{
    static const dtype numbers[CELL_OPERANDS] = {DT_U8, DT_U8, DT_U8, DT_I32, DT_I16};
    int64_t x[2], h[2], w[2], c[2];
    for (uint32_t i = 0; i < CELL_OPERANDS; i++)
        if (!tflite_operand(n, i) || tflite_operand(n, i)->type.dt != (is_int ? numbers[i] : DT_F32))
            return tflite_fail(n, DIAG_UNSUPPORTED, "it must have %d operands, of f32, or data, output and weights of "
                               "u8, biases of i32 and a state of i16", CELL_OPERANDS);
    if (!extents(n, CELL_X, 2, x) || !extents(n, CELL_H, 2, h) || !extents(n, CELL_W, 2, w) ||
        !extents(n, CELL_C, 2, c))
        return false;
    l->cells = h[1];
    return (h[0] == x[0] && c[0] == x[0] && c[1] == h[1] && w[0] == GATES * h[1] && w[1] == x[1] + h[1]) ||
           tflite_fail(n, DIAG_TYPE, "the shapes of its operands do not fit each other");
}

static bool run_cell(tflite_node *n)
{
    const bool is_int = tflite_is_int(n, CELL_X);
    cell l = {0};
    if (!check_cell(n, &l, is_int))
        return false;
    graph_value *both[2] = {tflite_in(n, CELL_X), tflite_in(n, CELL_H)};
    l.both = joined(n, 2, both, 1);
    if (!is_int)
        cell_of_floats(n, &l);
    else if (!cell_of_numbers(n, &l))
        return false;
    graph_value *results[4] = {l.given, l.now, l.both, l.sums};
    for (uint32_t i = 0; i < n->n_out && i < 4 && !n->failed; i++)
        (void)tflite_result(n, i, results[i]);
    const uint32_t states[2] = {CELL_H, CELL_C};
    for (uint32_t i = 0; i < 2 && !n->failed; i++)
        if (tflite_operand(n, states[i])->t->is_variable)
            (void)tflite_write_state(n, states[i], results[i]);
    return !n->failed;
}

bool tflite_op_lstm(tflite_node *n)
{
    const tfl_lstm_options *o = n->options;
    const lstm l = {.n = n, .time_major = true, .clip = o->cell_clip};
    if (o->kernel_type == 0 && tflite_is_int(n, 0))
        return tflite_fail(n, DIAG_UNSUPPORTED, "an LSTM of u8 with a matrix for each gate is not supported yet");
    if (o->kernel_type == 0)
        return run_lstm(l, 2, o->fused_activation_function);
    if (o->kernel_type != 1 || o->fused_activation_function != ACT_TANH || o->cell_clip != 0 || o->proj_clip != 0)
        return tflite_fail(n, DIAG_UNSUPPORTED, "an LSTM with one matrix of weights is supported only with the "
                           "activation tanh, and without clipping");
    return run_cell(n);
}
