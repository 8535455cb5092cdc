/* SPDX-License-Identifier: Apache-2.0 */
/* What layers with states share, and SVDF and RNN layers, whose states are variable tensors. Quantized ones compute as
 * TensorFlow Lite Micro does: sums and products become numbers of 16 bits by a multiplier that rounds twice. */
#include "frontend/tflite/tflite_fixed.h"
#include "frontend/tflite/tflite_recurrent.h"

/* --- arithmetic --- */

graph_value *recurrent_i32(tflite_node *n, graph_value *v)
{
    return tflite_cast(n, v, DT_I32);
}

graph_value *recurrent_sum(tflite_node *n, graph_value *a, graph_value *b)
{
    graph_value *sum = tflite_binary(n, "add", recurrent_i32(n, a), recurrent_i32(n, b));
    return tflite_clipped(n, sum, INT16_MIN, INT16_MAX, DT_I32);
}

graph_value *recurrent_product(tflite_node *n, graph_value *a, graph_value *b)
{
    return tflite_binary(n, "multiply", recurrent_i32(n, a), recurrent_i32(n, b));
}

graph_value *recurrent_times(tflite_node *n, graph_value *rows, uint32_t i, const tflite_scale *x)
{
    const bool wide = x && x->dt == DT_I16;
    const attr attrs[2] = {attr_int(n->c, "transpose_b", 1), attr_dtype(n->c, "out_dtype", wide ? DT_I64 : DT_I32)};
    graph_value *in[3] = {rows, tflite_in(n, i), x ? tflite_zero(n, x) : NULL};
    return tflite_emit(n, x ? "qnn.matmul" : "nn.matmul", 3, in, x ? 2 : 1, attrs);
}

graph_value *recurrent_floats(tflite_node *n, graph_value *rows, uint32_t i, bool from_zero_point)
{
    const bool by_bytes = tflite_operand(n, i)->type.dt == DT_I8;
    return by_bytes ? tflite_hybrid_product(n, rows, i, from_zero_point) : recurrent_times(n, rows, i, NULL);
}

graph_value *recurrent_curve(tflite_node *n, int bits)
{
    const int64_t dims = 1 << 16;
    int16_t *t = arena_array(&n->c->mem, int16_t, (size_t)dims);
    for (int32_t i = 0; i < dims; i++) {
        const int16_t x = (int16_t)(i + INT16_MIN);
        t[i] = bits < 0 ? fixed_logistic16(x) : fixed_tanh16(x, bits);
    }
    return tflite_const(n, tensor_dense(n->c, DT_I16, 1, &dims, t), "curve");
}

graph_value *recurrent_in_curve(tflite_node *n, graph_value *table, graph_value *v)
{
    graph_value *in[2] = {table, tflite_binary(n, "subtract", v, tflite_i32(n, INT16_MIN))};
    return recurrent_i32(n, tflite_emit(n, "take", 2, in, 0, NULL));
}

graph_value *recurrent_halved(tflite_node *n, graph_value *x, int bits)
{
    graph_value *up = tflite_binary(n, "right_shift", x, tflite_i32(n, 31)); /* halves away from 0 */
    up = tflite_binary(n, "add", up, tflite_i32(n, INT64_C(1) << (bits - 1)));
    x = tflite_binary(n, "right_shift", tflite_binary(n, "add", x, up), tflite_i32(n, bits));
    return tflite_clipped(n, x, INT16_MIN, INT16_MAX, DT_I32);
}

/* --- data over steps --- */

bool recurrent_extents(tflite_node *n, uint32_t i, uint32_t rank, int64_t *out)
{
    const tflite_tensor *t = tflite_operand(n, i);
    return (t->type.kind == TYPE_TENSOR && t->type.shape.rank == (int32_t)rank && shape_get(t->type.shape, out)) ||
           tflite_fail(n, DIAG_TYPE, "operand %u ('%s') needs %u dimensions that are known", i, t->name, rank);
}

bool recurrent_read(tflite_node *n, recurrent_data *d)
{
    int64_t x[3] = {1};
    d->time_major |= d->rank == 2;
    if (!recurrent_extents(n, 0, d->rank, x + 3 - d->rank))
        return false;
    d->steps = x[d->time_major ? 0 : 1];
    d->batch = x[d->time_major ? 1 : 0];
    d->inputs = x[2];
    return (d->steps >= 1 && d->steps <= RECURRENT_MOST_STEPS) ||
           tflite_fail(n, DIAG_UNSUPPORTED, "a layer over %lld steps; from 1 to %d are supported",
                       (long long)d->steps, RECURRENT_MOST_STEPS);
}

graph_value *recurrent_rows(tflite_node *n, const recurrent_data *d)
{
    const int64_t dims[2] = {d->batch * d->steps, d->inputs};
    return tflite_reshape(n, tflite_in(n, 0), 2, dims);
}

graph_value *recurrent_step(tflite_node *n, const recurrent_data *d, graph_value *all, int64_t width, int64_t t)
{
    const int64_t dims[3] = {d->time_major ? d->steps : d->batch, d->time_major ? d->batch : d->steps, width},
                  two[2] = {d->batch, width};
    t = d->backward ? d->steps - 1 - t : t;
    if (d->steps > 1)
        all = compose_slice(n, tflite_reshape(n, all, 3, dims), d->time_major ? 0 : 1, t, t + 1);
    return tflite_reshape(n, all, 2, two);
}

static graph_value *joined(tflite_node *n, uint32_t count, graph_value *const *parts, int64_t axis)
{
    const attr a = attr_int(n->c, "axis", axis);
    return count == 1 ? parts[0] : tflite_emit(n, "concatenate", count, parts, 1, &a);
}

graph_value *recurrent_result(tflite_node *n, const recurrent_data *d, graph_value *const *given, int64_t width)
{
    const int64_t row[3] = {d->time_major ? 1 : d->batch, d->time_major ? d->batch : 1, width};
    graph_value **parts = arena_array(&n->c->mem, graph_value *, (size_t)d->steps);
    for (int64_t t = 0; t < d->steps; t++)
        parts[d->backward ? d->steps - 1 - t : t] = tflite_reshape(n, given[t], d->rank, row + 3 - d->rank);
    return joined(n, (uint32_t)d->steps, parts, d->time_major ? 0 : 1);
}

/* --- SVDF --- */

typedef struct svdf {
    int64_t batch, inputs, filters, memory, rank, units;
    tflite_scale x, feature, time, state;
    bool is_int;
} svdf;

static bool read_svdf_shapes(tflite_node *n, svdf *s)
{
    const tfl_svdf_options *o = n->options;
    int64_t x[2], feature[2], time[2], state[2];
    if (!recurrent_extents(n, 0, 2, x) || !recurrent_extents(n, 1, 2, feature) ||
        !recurrent_extents(n, 2, 2, time) || !recurrent_extents(n, 4, 2, state))
        return false;
    *s = (svdf){x[0], x[1], feature[0], time[1], o->rank, 0, .is_int = tflite_is_int(n, 0)};
    if (s->rank < 1 || s->filters % s->rank != 0 || feature[1] != s->inputs || time[0] != s->filters || s->memory < 1 ||
        state[0] != s->batch || state[1] != s->filters * s->memory)
        return tflite_fail(n, DIAG_TYPE, "the shapes of its operands do not fit each other");
    s->units = s->filters / s->rank;
    return true;
}

static bool read_svdf(tflite_node *n, svdf *s)
{
    if (!read_svdf_shapes(n, s))
        return false;
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
    graph_value *v = recurrent_times(n, tflite_in(n, 0), 1, s->is_int ? &s->x : NULL);
    if (!s->is_int)
        return v;
    const double real = tflite_factor(tflite_like_litert(n), s->x.scale, s->feature.scale, s->state.scale);
    const tflite_scale bare = {.dt = s->state.dt};
    v = tflite_rescaled(n, v, real, (double)s->inputs * 255 * 128, &bare);
    if (s->state.dt == DT_I16 || s->state.zero == 0)
        return v;
    v = tflite_binary(n, "add", recurrent_i32(n, v), tflite_i32(n, s->state.zero)); /* which wraps */
    return tflite_cast(n, v, DT_I8);
}

static graph_value *weighted(tflite_node *n, const svdf *s, graph_value *memory)
{
    const int64_t each = s->rank * s->memory, rows[3] = {s->batch, s->units, each}, two[2] = {s->units, each}, axis = 2;
    graph_value *time = tflite_in(n, 2);
    if (s->is_int) {
        time = recurrent_i32(n, time);
        memory = recurrent_i32(n, memory);
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
        parts[0] = compose_slice(n, tflite_reshape(n, tflite_in(n, 4), 3, line), 2, 1, s.memory);
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
    const double real = tflite_factor(tflite_like_litert(n), s.state.scale, s.time.scale, y.scale);
    return tflite_result(n, 0, tflite_rescaled(n, v, real, 0x1p31, &y));
}

/* --- RNN --- */

/* Where a layer's operands begin. */
typedef struct rnn_places {
    uint32_t w, r, bias, h;
} rnn_places;

/* act(W x + R h + b) for each step. */
static graph_value *run_rnn(tflite_node *n, const recurrent_data *d, const rnn_places *at, int64_t activation,
                            bool from_zero_point)
{
    int64_t w[2], r[2], h[2];
    if (!recurrent_extents(n, at->w, 2, w) || !recurrent_extents(n, at->r, 2, r) || !recurrent_extents(n, at->h, 2, h))
        return NULL;
    if (w[1] != d->inputs || r[0] != w[0] || r[1] != w[0] || h[0] != d->batch || h[1] != w[0]) {
        (void)tflite_fail(n, DIAG_TYPE, "the shapes of its operands do not fit each other");
        return NULL;
    }
    graph_value *all = recurrent_floats(n, recurrent_rows(n, d), at->w, from_zero_point), *state = tflite_in(n, at->h),
                **given = arena_array(&n->c->mem, graph_value *, (size_t)d->steps);
    all = tflite_binary(n, "add", all, tflite_in(n, at->bias));
    for (int64_t t = 0; t < d->steps && !n->failed; t++) {
        graph_value *v = recurrent_step(n, d, all, w[0], t);
        v = tflite_binary(n, "add", v, recurrent_floats(n, state, at->r, from_zero_point));
        given[t] = state = tflite_activated(n, v, activation);
    }
    return n->failed || !tflite_write_state(n, at->h, state) ? NULL : recurrent_result(n, d, given, w[0]);
}

bool tflite_op_rnn(tflite_node *n)
{
    const tfl_rnn_options *o = n->options;
    recurrent_data d = {.rank = 2};
    graph_value *y = recurrent_read(n, &d) ? run_rnn(n, &d, &(rnn_places){1, 2, 3, 4}, o->fused_activation_function,
                                                     o->asymmetric_quantize_inputs) : NULL;
    return y && tflite_result(n, 0, y);
}

bool tflite_op_sequence_rnn(tflite_node *n)
{
    const tfl_sequence_rnn_options *o = n->options;
    recurrent_data d = {.rank = 3, .time_major = o->time_major};
    graph_value *y = recurrent_read(n, &d) ? run_rnn(n, &d, &(rnn_places){1, 2, 3, 4}, o->fused_activation_function,
                                                     o->asymmetric_quantize_inputs) : NULL;
    return y && tflite_result(n, 0, y);
}

bool recurrent_both(tflite_node *n, graph_value *const *ways, bool merged)
{
    if (!ways[0] || !ways[1] || n->failed)
        return false;
    if (merged)
        return tflite_result(n, 0, joined(n, 2, ways, 2));
    if (n->n_out != 2)
        return tflite_fail(n, DIAG_FORMAT, "it needs two results, one for each direction");
    return tflite_result(n, 0, ways[0]) && tflite_result(n, 1, ways[1]);
}

bool tflite_op_bidirectional_rnn(tflite_node *n)
{
    static const rnn_places places[2] = {{1, 2, 3, 4}, {5, 6, 7, 8}};
    const tfl_bidirectional_rnn_options *o = n->options;
    graph_value *ways[2] = {NULL};
    for (uint32_t i = 0; i < 2; i++) {
        recurrent_data d = {.rank = 3, .time_major = o->time_major, .backward = i == 1};
            if (!recurrent_read(n, &d))
            return false;
        ways[i] = run_rnn(n, &d, &places[i], o->fused_activation_function, o->asymmetric_quantize_inputs);
    }
    return recurrent_both(n, ways, o->merge_outputs);
}
