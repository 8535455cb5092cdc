/* SPDX-License-Identifier: Apache-2.0 */
/* LSTM layers with a matrix for each gate. Floats, also with weights of bytes; quantized ones as TensorFlow Lite Micro
 * computes them: sums and products become numbers of 16 bits by a multiplier that rounds twice, and the gates' curves
 * come from a table of 256 entries, with lines between them. Those of i8 may compute as LiteRT does: powers of two are
 * shifts that round once, and curves are fixed point, which becomes a table of all 65536 numbers here. Only LiteRT has
 * peepholes, projections, layer normalization and an input gate that is 1 less the forget gate. */
#include "frontend/tflite/tflite_fixed.h"
#include "frontend/tflite/tflite_lstm.h"

#include <math.h>
#include <string.h>

enum { GATE_IN, GATE_FORGET, GATE_CELL, GATE_OUT };

/* Where operands begin: of gates in their order, where there are not four, without the cell's. */
typedef struct lstm_places {
    uint32_t w, r, peephole, bias, projection, h, c;
    uint32_t norm; /* 0: none */
} lstm_places;

typedef struct lstm {
    tflite_node *n;
    const lstm_options *o;
    const lstm_places *at;
    recurrent_data data;
    int64_t cells, outputs; /* these are as many, but with a projection */
    bool is_int, like_litert, is_coupled, has_norm;
    tflite_scale x, h, c, given; /* given: what a step gives as its output is a number of that scale */
    int power; /* the scale of the cell is 2^power */
    float gate_scale[LSTM_GATES]; /* of sums */
    graph_value *table, *logistic, *tanh, *cell_tanh; /* the first for TensorFlow Lite Micro, the others for LiteRT */
} lstm;

static const tflite_scale sixteen_bits = {.dt = DT_I16}; /* with the zero point 0 */

/* --- curves --- */

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

static graph_value *curve(lstm *l, graph_value *v, bool is_tanh)
{
    if (!l->is_int)
        return tflite_unary(l->n, is_tanh ? "tanh" : "sigmoid", v);
    if (l->like_litert)
        return recurrent_in_curve(l->n, is_tanh ? l->tanh : l->logistic, v);
    return is_tanh ? tanh_of(l, v, -12) : logistic(l, v);
}

static graph_value *cell_curve(lstm *l, graph_value *cell)
{
    return l->like_litert ? recurrent_in_curve(l->n, l->cell_tanh, cell) : tanh_of(l, cell, l->power);
}

static graph_value *divided(const lstm *l, graph_value *x, int bits)
{
    return l->like_litert ? recurrent_halved(l->n, x, bits)
                          : tflite_rescaled(l->n, x, ldexp(1, -bits), 0x1p30, &sixteen_bits);
}

/* --- gates --- */

/* Operand i's weights times rows with the scale x. */
static graph_value *sums_of(lstm *l, graph_value *rows, uint32_t i, const tflite_scale *x)
{
    return l->is_int ? recurrent_times(l->n, rows, i, x) : recurrent_floats(l->n, rows, i, l->o->from_zero_point);
}

/* as: what the numbers become; NULL: of 32 bits. */
static graph_value *to_gate(lstm *l, graph_value *sums, uint32_t i, uint32_t gate, const tflite_scale *x, int64_t depth,
                            const tflite_scale *as)
{
    tflite_scale w;
    if (!l->is_int || l->n->failed || !tflite_read_scale(l->n, i, &w))
        return sums;
    if (w.zero != 0)
        (void)tflite_fail(l->n, DIAG_UNSUPPORTED, "weights (operand %u) have a zero point other than 0", i);
    const double most = (double)depth * 128 * (x->dt == DT_I16 ? 65536 : 255);
    const double real = tflite_factor(l->like_litert, x->scale, w.scale, l->gate_scale[gate]);
    return tflite_rescaled(l->n, sums, real, most, as);
}

/* What all steps of x give a gate: rows in the order of x. Layer normalization has the bias behind it. */
static graph_value *from_input(lstm *l, graph_value *rows, uint32_t gate)
{
    tflite_node *n = l->n;
    graph_value *v = sums_of(l, rows, l->at->w + gate, &l->x);
    if (!l->has_norm && tflite_operand(n, l->at->bias + gate))
        v = tflite_binary(n, "add", v, tflite_in(n, l->at->bias + gate));
    return to_gate(l, v, l->at->w + gate, gate, &l->x, l->data.inputs, &sixteen_bits);
}

static uint32_t peephole(const lstm *l, uint32_t gate)
{
    return l->at->peephole + (gate == GATE_OUT ? 2 : gate);
}

/* The weights of a peephole of numbers. The kernel takes as many as there are outputs, which behind a projection may be
 * fewer than there are cells. Rows of a batch that it computes at once then lie behind each other without a gap: the
 * weights of the second row begin at cells of the first one. */
static graph_value *peephole_numbers(lstm *l, uint32_t i)
{
    tflite_node *n = l->n;
    const tensor_data *t = l->outputs < l->cells ? tflite_int_constant(n, i, "weights of a peephole") : NULL;
    if (!t)
        return tflite_in(n, i);
    const int64_t dims[2] = {l->data.time_major ? l->data.batch : 1, l->cells}, count = dims[0] * l->cells;
    int32_t *w = arena_array(&n->c->mem, int32_t, (size_t)count);
    for (int64_t k = 0; k < count; k++)
        w[k] = k < dims[0] * l->outputs ? (int32_t)tensor_get_i64(t, k % l->outputs) : 0;
    return tflite_const(n, tensor_dense(n->c, DT_I32, 2, dims, w), "peephole");
}

static graph_value *with_peephole(lstm *l, graph_value *v, uint32_t gate, graph_value *c)
{
    tflite_node *n = l->n;
    const uint32_t i = peephole(l, gate);
    const dtype dt = tflite_operand(n, i)->type.dt;
    tflite_scale s;
    if (!l->is_int && dt == DT_F32)
        return tflite_binary(n, "add", v, tflite_binary(n, "multiply", c, tflite_in(n, i)));
    if (!tflite_read_scale(n, i, &s))
        return v;
    if (!l->is_int) {
        graph_value *w = tflite_binary(n, "multiply", tflite_cast(n, tflite_in(n, i), DT_F32),
                                       tflite_number(n, DT_F32, (double)s.scale));
        return tflite_binary(n, "add", v, tflite_binary(n, "multiply", c, w));
    }
    const double real = ldexp((double)s.scale, l->power) / (double)l->gate_scale[gate];
    graph_value *p = recurrent_product(n, peephole_numbers(l, i), c);
    return recurrent_sum(n, v, tflite_rescaled(n, p, real, 0x1p30, NULL));
}

static graph_value *normalized_floats(lstm *l, graph_value *v, uint32_t gate)
{
    tflite_node *n = l->n;
    graph_value *d = tflite_binary(n, "subtract", v, compose_reduced(n, "mean", v, -1, true));
    graph_value *square = compose_reduced(n, "mean", tflite_binary(n, "multiply", d, d), -1, true);
    square = tflite_binary(n, "add", square, tflite_number(n, DT_F32, (double)1e-8f));
    graph_value *root = tflite_binary(n, "divide", tflite_number(n, DT_F32, 1), tflite_unary(n, "sqrt", square));
    d = tflite_binary(n, "multiply", tflite_binary(n, "multiply", d, root), tflite_in(n, l->at->norm + gate));
    return tflite_binary(n, "add", d, tflite_in(n, l->at->bias + gate));
}

/* Of numbers of 16 bits: 10 bits are added for the mean, 20 for the variance. */
static graph_value *normalized_numbers(lstm *l, graph_value *v, uint32_t gate)
{
    tflite_node *n = l->n;
    const uint32_t i = l->at->norm + gate;
    const int64_t count = l->cells;
    tflite_scale s;
    if (!tflite_read_scale(n, i, &s))
        return v;
    const double least = 10000 * (double)s.scale;
    v = tflite_cast(n, v, DT_I64);
    graph_value *mean = compose_by(n, "multiply", compose_reduced(n, "sum", v, -1, true), 1024);
    mean = compose_by(n, "divide", mean, count);
    graph_value *squares = compose_reduced(n, "sum", tflite_binary(n, "multiply", v, v), -1, true);
    graph_value *variance = compose_by(n, "multiply", squares, (1 << 20) / count);
    variance = tflite_binary(n, "subtract", variance, tflite_binary(n, "multiply", mean, mean));
    variance = compose_by(n, "divide", variance, 1 << 20);
    variance = compose_chosen(n, compose_by(n, "less", variance, 1),
                              compose_number(n, DT_I64, least > 1 ? (int64_t)least : 1), variance);
    const compose_root root = compose_inverse_root(n, variance, true);
    v = tflite_binary(n, "subtract", compose_by(n, "multiply", v, 1024), mean);
    v = compose_scaled(n, v, root.multiplier, root.exponent);
    v = tflite_binary(n, "multiply", v, tflite_cast(n, tflite_in(n, i), DT_I64));
    v = tflite_binary(n, "add", v, tflite_cast(n, tflite_in(n, l->at->bias + gate), DT_I64));
    graph_value *up = compose_chosen(n, compose_by(n, "less", v, 1), compose_number(n, DT_I64, -512),
                                     compose_number(n, DT_I64, 512));
    v = compose_by(n, "divide", tflite_binary(n, "add", v, up), 1024);
    return tflite_rescaled(n, tflite_cast(n, v, DT_I32), (double)s.scale * 4096, 0x1p31, &sixteen_bits);
}

static graph_value *gate(lstm *l, uint32_t i, graph_value *from_x, graph_value *h, graph_value *c)
{
    tflite_node *n = l->n;
    const uint32_t r = l->at->r + i;
    const tflite_scale *as = l->like_litert ? NULL : &sixteen_bits; /* LiteRT saturates only the new sum */
    graph_value *v = to_gate(l, sums_of(l, h, r, &l->h), r, i, &l->h, l->outputs, as);
    v = l->is_int ? recurrent_sum(n, from_x, v) : tflite_binary(n, "add", from_x, v);
    if (i != GATE_CELL && tflite_operand(n, peephole(l, i)))
        v = with_peephole(l, v, i, c);
    if (l->has_norm)
        v = l->is_int ? recurrent_i32(n, normalized_numbers(l, v, i)) : normalized_floats(l, v, i);
    return curve(l, v, i == GATE_CELL);
}

/* --- a step --- */

/* v less than so far from 0, where clip says how far. */
static graph_value *clipped(lstm *l, graph_value *v, float clip, const tflite_scale *s)
{
    tflite_node *n = l->n;
    const int64_t end = l->is_int ? dtype_max_int(s->dt) : 0;
    if (!(clip > 0))
        return v;
    if (l->is_int) {
        const float most = clip / s->scale;
        const int64_t bound = most > (float)end ? end : (int64_t)most;
        return tflite_clipped(n, v, -bound, bound, DT_I32);
    }
    graph_value *in[3] = {v, tflite_number(n, DT_F32, -(double)clip), tflite_number(n, DT_F32, (double)clip)};
    return tflite_emit(n, "clip", 3, in, 0, NULL);
}

/* What the cells give as the layer's output. */
static graph_value *projected(lstm *l, graph_value *v)
{
    tflite_node *n = l->n;
    const uint32_t i = l->at->projection;
    tflite_scale s;
    if (!tflite_operand(n, i))
        return v;
    v = sums_of(l, v, i, &l->given);
    if (tflite_operand(n, i + 1))
        v = tflite_binary(n, "add", v, tflite_in(n, i + 1));
    if (!l->is_int)
        return clipped(l, v, l->o->projection_clip, NULL);
    if (!tflite_read_scale(n, i, &s))
        return v;
    const double real = tflite_factor(true, s.scale, l->given.scale, l->h.scale);
    v = tflite_rescaled(n, v, real, (double)l->cells * 128 * 255, &l->h);
    return l->o->projection_clip > 0 ? tflite_cast(n, clipped(l, recurrent_i32(n, v), l->o->projection_clip, &l->h),
                                                   l->h.dt) : v;
}

/* The new cell and the new output from the old ones. */
static void step(lstm *l, graph_value *const *from_x, graph_value **h, graph_value **c)
{
    tflite_node *n = l->n;
    graph_value *g[LSTM_GATES], *kept, *added, *give = NULL;
    const bool looks = tflite_operand(n, peephole(l, GATE_OUT)); /* at the new cell */
    for (uint32_t i = l->is_coupled ? GATE_FORGET : GATE_IN; i < (looks ? GATE_OUT : LSTM_GATES); i++)
        g[i] = gate(l, i, from_x[i], *h, *c);
    if (l->is_coupled)
        g[GATE_IN] = tflite_binary(n, "subtract", l->is_int ? tflite_i32(n, INT16_MAX) : tflite_number(n, DT_F32, 1),
                                   g[GATE_FORGET]);
    if (!l->is_int) {
        kept = tflite_binary(n, "multiply", g[GATE_FORGET], *c);
        added = tflite_binary(n, "multiply", g[GATE_IN], g[GATE_CELL]);
        *c = clipped(l, tflite_binary(n, "add", kept, added), l->o->cell_clip, NULL);
        give = looks ? gate(l, GATE_OUT, from_x[GATE_OUT], *h, *c) : g[GATE_OUT];
        *h = projected(l, tflite_binary(n, "multiply", give, tflite_unary(n, "tanh", *c)));
        return;
    }
    kept = divided(l, recurrent_product(n, g[GATE_FORGET], *c), 15);
    added = divided(l, recurrent_product(n, g[GATE_IN], g[GATE_CELL]), 30 + l->power);
    graph_value *cell = clipped(l, recurrent_sum(n, kept, added), l->o->cell_clip, &l->c);
    *c = tflite_cast(n, cell, DT_I16);
    give = looks ? gate(l, GATE_OUT, from_x[GATE_OUT], *h, *c) : g[GATE_OUT];
    give = recurrent_product(n, give, cell_curve(l, cell));
    *h = projected(l, tflite_rescaled(n, give, 0x1p-30 / (double)l->given.scale, 0x1p30, &l->given));
}

/* --- what the operands are --- */

/* Intermediate tensor k. */
static bool read_intermediate(lstm *l, uint32_t k, tflite_scale *out)
{
    tflite_node *n = l->n;
    const flat_numbers parts = n->op->intermediates;
    const int32_t t = k < parts.len ? flat_i32(parts, k) : -1;
    return (t >= 0 && (uint32_t)t < n->im->n_tensors && tflite_find_scale(&n->im->tensors[t], out)) ||
           tflite_fail(n, DIAG_FORMAT, "its five intermediate tensors with their scales are missing");
}

/* The output takes the scale of the last intermediate tensor, and its zero point, which a projection takes off. */
static bool read_like_litert(lstm *l)
{
    tflite_node *n = l->n;
    tflite_scale s;
    if (!read_intermediate(l, 4, &l->given))
        return false;
    for (uint32_t g = l->is_coupled ? 1 : 0; l->has_norm && g < LSTM_GATES; g++) {
        if (!read_intermediate(l, g, &s))
            return false;
        l->gate_scale[g] = s.scale;
    }
    if (l->power < -15 || l->power > -9)
        return tflite_fail(n, DIAG_UNSUPPORTED, "LiteRT takes cells with scales from 2^-15 to 2^-9");
    l->given.dt = DT_I8;
    l->given.zero *= tflite_operand(n, l->at->projection) ? -1 : 1;
    l->logistic = recurrent_curve(n, -1);
    l->tanh = recurrent_curve(n, 3);
    l->cell_tanh = l->power == -12 ? l->tanh : recurrent_curve(n, 15 + l->power);
    return true;
}

static bool is_micro(const lstm *l)
{
    bool more = l->is_coupled || l->has_norm || tflite_operand(l->n, l->at->projection);
    for (uint32_t i = 0; i < 3; i++)
        more |= tflite_operand(l->n, l->at->peephole + i) != NULL;
    return !more;
}

/* Of quantized numbers: types and scales. */
static bool read_numbers(lstm *l)
{
    tflite_node *n = l->n;
    const dtype dt = tflite_operand(n, 0)->type.dt;
    if (tflite_operand(n, l->at->c)->type.dt != DT_I16 || (dt != DT_I8 && dt != DT_I16) ||
        tflite_operand(n, l->at->h)->type.dt != dt)
        return tflite_fail(n, DIAG_UNSUPPORTED, "an LSTM is supported only with data and output of i8, or both of i16, "
                           "and a cell of i16");
    for (uint32_t g = 0; g < LSTM_GATES; g++) {
        const tflite_tensor *bias = tflite_operand(n, l->at->bias + g);
        if (bias && bias->type.dt != (dt == DT_I16 ? DT_I64 : DT_I32))
            return tflite_fail(n, DIAG_UNSUPPORTED, "the biases of an LSTM of %s must be of %s", dtype_name(dt),
                               dt == DT_I16 ? "i64" : "i32");
    }
    if (!tflite_read_scale(n, 0, &l->x) || !tflite_read_scale(n, l->at->h, &l->h) ||
        !tflite_read_scale(n, l->at->c, &l->c))
        return false;
    if (frexp((double)l->c.scale, &l->power) != 0.5 || l->power < -27 || l->power > 1)
        return tflite_fail(n, DIAG_FORMAT, "the scale of the cell must be a power of two");
    l->power--;
    l->given = l->h;
    l->like_litert = dt == DT_I8 && (tflite_like_litert(n) || !is_micro(l));
    if (!l->like_litert && !is_micro(l))
        return tflite_fail(n, DIAG_UNSUPPORTED, "an LSTM of i16 with peepholes, a projection, layer normalization or "
                           "coupled gates is not supported");
    if (!l->like_litert)
        l->table = curve_table(n);
    return !l->like_litert || read_like_litert(l);
}

static bool check_shape(lstm *l, uint32_t i, uint32_t rank, int64_t rows, int64_t columns)
{
    int64_t dims[2] = {0};
    if (!tflite_operand(l->n, i))
        return tflite_fail(l->n, DIAG_FORMAT, "operand %u is missing", i);
    if (!recurrent_extents(l->n, i, rank, dims))
        return false;
    return (dims[0] == rows && (rank == 1 || dims[1] == columns)) ||
           tflite_fail(l->n, DIAG_TYPE, "operand %u ('%s') does not fit the shapes of the others", i,
                       tflite_operand(l->n, i)->name);
}

static bool check_shapes(lstm *l)
{
    const lstm_places *at = l->at;
    const uint32_t first = l->is_coupled ? 1 : 0;
    bool ok = true;
    for (uint32_t g = first; g < LSTM_GATES && ok; g++) {
        ok = check_shape(l, at->w + g, 2, l->cells, l->data.inputs) &&
             check_shape(l, at->r + g, 2, l->cells, l->outputs);
        if (ok && tflite_operand(l->n, at->bias + g))
            ok = check_shape(l, at->bias + g, 1, l->cells, 0);
        if (ok && l->has_norm)
            ok = check_shape(l, at->norm + g, 1, l->cells, 0) && check_shape(l, at->bias + g, 1, l->cells, 0);
    }
    for (uint32_t i = 0; i < 3 && ok; i++)
        if (tflite_operand(l->n, at->peephole + i))
            ok = check_shape(l, at->peephole + i, 1, l->cells, 0);
    if (ok && tflite_operand(l->n, at->projection))
        ok = check_shape(l, at->projection, 2, l->outputs, l->cells);
    return ok && check_shape(l, at->h, 2, l->data.batch, l->outputs) &&
           check_shape(l, at->c, 2, l->data.batch, l->cells);
}

static bool read_lstm(lstm *l)
{
    tflite_node *n = l->n;
    int64_t h[2], c[2];
    l->is_coupled = !tflite_operand(n, l->at->w);
    l->has_norm = l->at->norm && tflite_operand(n, l->at->norm + GATE_FORGET);
    l->is_int = tflite_is_int(n, 0);
    for (uint32_t g = 0; g < LSTM_GATES; g++)
        l->gate_scale[g] = 0x1p-12f;
    if (!tflite_operand(n, l->at->h) || !tflite_operand(n, l->at->c))
        return tflite_fail(n, DIAG_FORMAT, "its states are missing");
    if (!recurrent_read(n, &l->data) || !recurrent_extents(n, l->at->h, 2, h) || !recurrent_extents(n, l->at->c, 2, c))
        return false;
    l->outputs = h[1];
    l->cells = c[1];
    if (!check_shapes(l))
        return false;
    if (l->cells != l->outputs && !tflite_operand(n, l->at->projection))
        return tflite_fail(n, DIAG_FORMAT, "it has other numbers of cells and outputs, and no projection");
    if (l->o->activation != RECURRENT_TANH) /* of the cell's gate and of what is given out */
        return tflite_fail(n, DIAG_UNSUPPORTED, "an LSTM is supported only with the activation tanh");
    return !l->is_int || read_numbers(l);
}

static graph_value *run_lstm(tflite_node *n, const recurrent_data *d, const lstm_places *at, const lstm_options *o)
{
    lstm l = {.n = n, .o = o, .at = at, .data = *d};
    if (!read_lstm(&l))
        return NULL;
    graph_value *all[LSTM_GATES] = {NULL}, *now[LSTM_GATES] = {NULL};
    graph_value *h = tflite_in(n, at->h), *c = tflite_in(n, at->c),
                **given = arena_array(&n->c->mem, graph_value *, (size_t)l.data.steps);
    const uint32_t first = l.is_coupled ? 1 : 0;
    for (uint32_t g = first; g < LSTM_GATES; g++)
        all[g] = from_input(&l, recurrent_rows(n, &l.data), g);
    for (int64_t t = 0; t < l.data.steps && !n->failed; t++) {
        for (uint32_t g = first; g < LSTM_GATES; g++)
            now[g] = recurrent_step(n, &l.data, all[g], l.cells, t);
        step(&l, now, &h, &c);
        given[t] = h;
    }
    if (n->failed || !tflite_write_state(n, at->h, h) || !tflite_write_state(n, at->c, c))
        return NULL;
    return recurrent_result(n, &l.data, given, l.outputs);
}

bool lstm_layer(tflite_node *n, uint32_t rank, bool time_major, const lstm_options *o)
{
    static const lstm_places places = {1, 5, 9, 12, 16, 18, 19, 20};
    graph_value *y = run_lstm(n, &(recurrent_data){.rank = rank, .time_major = time_major}, &places, o);
    return y && tflite_result(n, 0, y);
}

bool tflite_op_sequence_lstm(tflite_node *n)
{
    const tfl_sequence_lstm_options *o = n->options;
    return lstm_layer(n, 3, o->time_major, &(lstm_options){o->cell_clip, o->proj_clip, o->fused_activation_function,
                                                           o->asymmetric_quantize_inputs});
}

#define FIRST_AUXILIARY 39

bool tflite_op_bidirectional_lstm(tflite_node *n)
{
    static const lstm_places places[2] = {{1, 5, 9, 12, 16, 35, 36, 0}, {18, 22, 26, 29, 33, 37, 38, 0}};
    const tfl_bidirectional_lstm_options *o = n->options;
    const lstm_options each = {o->cell_clip, o->proj_clip, o->fused_activation_function, o->asymmetric_quantize_inputs};
    graph_value *ways[2];
    for (uint32_t i = FIRST_AUXILIARY; i < n->n_in; i++)
        if (tflite_operand(n, i))
            return tflite_fail(n, DIAG_UNSUPPORTED, "auxiliary data are not supported yet");
    for (uint32_t i = 0; i < 2; i++)
        ways[i] = run_lstm(n, &(recurrent_data){.rank = 3, .time_major = o->time_major, .backward = i == 1}, &places[i],
                           &each);
    return recurrent_both(n, ways, o->merge_outputs);
}
