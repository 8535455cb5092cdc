/* SPDX-License-Identifier: Apache-2.0 */
/* RNN, GRU and LSTM (ONNX) as loop IR: for each direction and sample, the state h (and c) lives in scratch; every step
 * makes the gate sums W x + R h + bias, then the new state. Steps beyond a sample's length write zeros. */
#include "te/op/util.h"

#include <string.h>
#include <strings.h>

typedef enum rnn_kind { KIND_RNN, KIND_GRU, KIND_LSTM } rnn_kind;

enum { IN_X, IN_W, IN_R, IN_B, IN_LEN, IN_H, IN_C, IN_P, IN_COUNT };

typedef struct rnn_ctx {
    const graph_node *n;
    rnn_kind kind;
    const tir_buffer *in[IN_COUNT]; /* NULL: left out */
    const tir_buffer *const *out;
    tir_expr_ref t, b; /* steps and samples */
    int64_t i, h, dirs;
    bool batch_first;
    int64_t gates;
    dtype dt;
    compiler *c;
    const tir_buffer *state, *cell, *sum, *rec; /* h, c, W x + R h + bias per gate, R h + Rb of the candidate (GRU) */
    int64_t dir;
    tir_expr_ref sample; /* batch index */
} rnn_ctx;

/* --- vocabulary
 * ------------------------------------------------------------------------------------------------------------ */

static tir_expr_ref num(const rnn_ctx *v, double x)
{
    return tir_float(v->c, v->dt, x);
}
static tir_expr_ref at1(const rnn_ctx *v, const tir_buffer *b, tir_expr_ref i)
{
    return tir_load(v->c, b, 1, &i);
}
static tir_expr_ref at3(const rnn_ctx *v, const tir_buffer *b, tir_expr_ref i, tir_expr_ref j, tir_expr_ref k)
{
    tir_expr_ref idx[3] = {i, j, k};
    return tir_load(v->c, b, 3, idx);
}
static tir_stmt *set1(const rnn_ctx *v, const tir_buffer *b, tir_expr_ref i, tir_expr_ref x)
{
    return tir_store(v->c, b, 1, &i, x);
}
static tir_expr_ref offset(const rnn_ctx *v, tir_expr_ref i, int64_t by)
{
    return tir_add(v->c, i, tir_i64(v->c, by));
}
static tir_stmt *loop_to(const rnn_ctx *v, const tir_var *var, tir_expr_ref extent, tir_stmt *body)
{
    return tir_for(v->c, var, tir_i64(v->c, 0), extent, FOR_SERIAL, body);
}
static tir_stmt *loop(const rnn_ctx *v, const tir_var *var, int64_t extent, tir_stmt *body)
{
    return loop_to(v, var, tir_i64(v->c, extent), body);
}

/* --- activations
 * ------------------------------------------------------------------------------------------------------------- */

typedef struct activation_args {
    tir_expr_ref x, zero, one, alpha, beta;
} activation_args;
typedef tir_expr_ref (*activation_fn)(compiler *c, const activation_args *a);

static tir_expr_ref act_relu(compiler *c, const activation_args *a)
{
    return tir_max(c, a->x, a->zero);
}
static tir_expr_ref act_tanh(compiler *c, const activation_args *a)
{
    return tir_call1(c, TIR_TANH, a->x);
}
static tir_expr_ref act_sigmoid(compiler *c, const activation_args *a)
{
    tir_expr_ref e = tir_call1(c, TIR_EXP, tir_mul(c, a->x, tir_sub(c, a->zero, a->one)));
    return tir_binary(c, TIR_DIV, a->one, tir_add(c, a->one, e));
}
static tir_expr_ref act_affine(compiler *c, const activation_args *a)
{
    return tir_add(c, tir_mul(c, a->alpha, a->x), a->beta);
}
static tir_expr_ref act_leaky_relu(compiler *c, const activation_args *a)
{
    return tir_select(c, tir_binary(c, TIR_LT, a->x, a->zero), tir_mul(c, a->alpha, a->x), a->x);
}
static tir_expr_ref act_thresholded_relu(compiler *c, const activation_args *a)
{
    return tir_select(c, tir_binary(c, TIR_GE, a->x, a->alpha), a->x, a->zero);
}
static tir_expr_ref act_scaled_tanh(compiler *c, const activation_args *a)
{
    return tir_mul(c, a->alpha, tir_call1(c, TIR_TANH, tir_mul(c, a->beta, a->x)));
}
static tir_expr_ref act_hard_sigmoid(compiler *c, const activation_args *a)
{
    return tir_max(c, a->zero, tir_min(c, a->one, act_affine(c, a)));
}
static tir_expr_ref act_elu(compiler *c, const activation_args *a)
{
    tir_expr_ref below = tir_mul(c, a->alpha, tir_call1(c, TIR_EXPM1, a->x));
    return tir_select(c, tir_binary(c, TIR_LT, a->x, a->zero), below, a->x);
}
static tir_expr_ref act_softsign(compiler *c, const activation_args *a)
{
    return tir_binary(c, TIR_DIV, a->x, tir_add(c, a->one, tir_call1(c, TIR_FABS, a->x)));
}
/* max(x, 0) + log1p(exp(-|x|)): exp never overflows */
static tir_expr_ref act_softplus(compiler *c, const activation_args *a)
{
    tir_expr_ref e = tir_call1(c, TIR_EXP, tir_sub(c, a->zero, tir_call1(c, TIR_FABS, a->x)));
    return tir_add(c, tir_max(c, a->x, a->zero), tir_call1(c, TIR_LOG1P, e));
}

static const struct activation {
    const char *name;
    double alpha, beta; /* defaults */
    activation_fn fn;
} activations[] = {{"Relu", 0, 0, act_relu},
                   {"Tanh", 0, 0, act_tanh},
                   {"Sigmoid", 0, 0, act_sigmoid},
                   {"Affine", 1, 0, act_affine},
                   {"LeakyRelu", 0.01, 0, act_leaky_relu},
                   {"ThresholdedRelu", 1, 0, act_thresholded_relu},
                   {"ScaledTanh", 1, 1, act_scaled_tanh},
                   {"HardSigmoid", 0.2, 0.5, act_hard_sigmoid},
                   {"Elu", 1, 0, act_elu},
                   {"Softsign", 0, 0, act_softsign},
                   {"Softplus", 0, 0, act_softplus}};

static const struct activation *find_activation(const char *name)
{
    for (size_t i = 0; i < sizeof activations / sizeof *activations; i++)
        if (strcasecmp(name, activations[i].name) == 0)
            return &activations[i];
    return NULL;
}

/* Name of activation k of this direction: the attribute, or the operator's defaults. */
static const char *activation_name(const rnn_ctx *v, uint32_t k)
{
    static const char *const defaults[3][3] = {{"Tanh", "", ""}, {"Sigmoid", "Tanh", ""}, {"Sigmoid", "Tanh", "Tanh"}};
    static const uint32_t per_dir[3] = {1, 2, 3};
    const attr *a = graph_attr(v->n, "activations");
    uint32_t at = (uint32_t)v->dir * per_dir[v->kind] + k;
    return at < a->n ? a->u.strings[at] : defaults[v->kind][k];
}

static double parameter(const rnn_ctx *v, const char *attr_name, uint32_t k, double dflt)
{
    static const uint32_t per_dir[3] = {1, 2, 3};
    const attr *a = graph_attr(v->n, attr_name);
    uint32_t at = (uint32_t)v->dir * per_dir[v->kind] + k;
    return at < a->n ? a->u.floats[at] : dflt;
}

static tir_expr_ref activate(const rnn_ctx *v, uint32_t k, tir_expr_ref x)
{
    const struct activation *f = find_activation(activation_name(v, k));
    activation_args a = {x, num(v, 0), num(v, 1), num(v, parameter(v, "activation_alpha", k, f->alpha)),
                         num(v, parameter(v, "activation_beta", k, f->beta))};
    return f->fn(v->c, &a);
}

static tir_expr_ref clipped(const rnn_ctx *v, tir_expr_ref x)
{
    double limit = graph_attr_float(v->n, "clip");
    return limit > 0 ? tir_max(v->c, num(v, -limit), tir_min(v->c, x, num(v, limit))) : x;
}

/* --- one step
 * ------------------------------------------------------------------------------------------------------------------ */

static tir_expr_ref bias(const rnn_ctx *v, tir_expr_ref row, bool recurrent)
{
    if (!v->in[IN_B])
        return num(v, 0);
    tir_expr_ref idx[2] = {tir_i64(v->c, v->dir), offset(v, row, recurrent ? v->gates * v->h : 0)};
    return tir_load(v->c, v->in[IN_B], 2, idx);
}

/* to[row] += sum over k of m[dir, row, k] * x(k), for rows first..first+rows */
static tir_stmt *accumulate(const rnn_ctx *v, const tir_buffer *to, const tir_buffer *m, int64_t extent, int64_t first,
                            int64_t rows, tir_expr_ref step, const tir_buffer *vec, const tir_buffer *scale)
{
    compiler *c = v->c;
    const tir_var *row = tir_new_var(c, "row", TIR_I64), *k = tir_new_var(c, "k", TIR_I64);
    tir_expr_ref r = offset(v, tir_varref(c, row), first), kr = tir_varref(c, k), x;
    if (vec)
        x = at1(v, vec, kr);
    else
        x = v->batch_first ? at3(v, v->in[IN_X], v->sample, step, kr) : at3(v, v->in[IN_X], step, v->sample, kr);
    if (scale) /* GRU: the reset gate, already activated, scales h */
        x = tir_mul(c, x, at1(v, scale, offset(v, kr, v->h)));
    tir_expr_ref product = tir_mul(c, at3(v, m, tir_i64(c, v->dir), r, kr), x);
    return loop(v, row, rows, loop(v, k, extent, set1(v, to, r, tir_add(c, at1(v, to, r), product))));
}

static tir_stmt *start_sums(const rnn_ctx *v, bool with_recurrent_candidate)
{
    compiler *c = v->c;
    const tir_var *row = tir_new_var(c, "row", TIR_I64);
    tir_expr_ref r = tir_varref(c, row), both = tir_add(c, bias(v, r, false), bias(v, r, true));
    if (v->kind == KIND_GRU && with_recurrent_candidate) /* its recurrent bias goes inside the reset product */
        both = tir_select(c, tir_binary(c, TIR_LT, r, tir_i64(c, 2 * v->h)), both, bias(v, r, false));
    return loop(v, row, v->gates * v->h, set1(v, v->sum, r, both));
}

static tir_expr_ref gate(const rnn_ctx *v, int64_t g, tir_expr_ref j)
{
    return at1(v, v->sum, offset(v, j, g * v->h));
}

/* Activates gate sums [first, first+gates) in place with activation k. */
static tir_stmt *activate_gates(const rnn_ctx *v, int64_t first, int64_t gates, uint32_t k)
{
    const tir_var *row = tir_new_var(v->c, "row", TIR_I64);
    tir_expr_ref r = offset(v, tir_varref(v->c, row), first * v->h);
    return loop(v, row, gates * v->h, set1(v, v->sum, r, activate(v, k, clipped(v, at1(v, v->sum, r)))));
}

static tir_stmt *rnn_update(const rnn_ctx *v)
{
    const tir_var *j = tir_new_var(v->c, "j", TIR_I64);
    tir_expr_ref jr = tir_varref(v->c, j);
    return loop(v, j, v->h, set1(v, v->state, jr, activate(v, 0, clipped(v, gate(v, 0, jr)))));
}

/* z, r, candidate: h = (1 - z) * candidate + z * h */
static tir_stmt *gru_update(const rnn_ctx *v, bool linear)
{
    compiler *c = v->c;
    const tir_var *j = tir_new_var(c, "j", TIR_I64), *q = tir_new_var(c, "q", TIR_I64);
    tir_expr_ref jr = tir_varref(c, j), qr = tir_varref(c, q), z = gate(v, 0, jr), cand = gate(v, 2, jr);
    tir_stmt *s[5] = {activate_gates(v, 0, 2, 0)};
    if (linear) { /* r * (R h + Rb), with R h + Rb in rec */
        s[1] = loop(v, q, v->h, set1(v, v->rec, offset(v, qr, 2 * v->h), bias(v, offset(v, qr, 2 * v->h), true)));
        s[2] = accumulate(v, v->rec, v->in[IN_R], v->h, 2 * v->h, v->h, NULL, v->state, NULL);
        cand = tir_add(c, cand, tir_mul(c, gate(v, 1, jr), at1(v, v->rec, offset(v, jr, 2 * v->h))));
    } else {
        s[1] = accumulate(v, v->sum, v->in[IN_R], v->h, 2 * v->h, v->h, NULL, v->state, v->sum);
    }
    tir_expr_ref fresh = tir_mul(c, tir_sub(c, num(v, 1), z), activate(v, 1, clipped(v, cand)));
    s[3] = loop(v, j, v->h, set1(v, v->state, jr, tir_add(c, fresh, tir_mul(c, z, at1(v, v->state, jr)))));
    return tir_seq(c, 4, s);
}

static tir_expr_ref peephole(const rnn_ctx *v, int64_t which, tir_expr_ref j, tir_expr_ref cell)
{
    if (!v->in[IN_P])
        return num(v, 0);
    tir_expr_ref idx[2] = {tir_i64(v->c, v->dir), offset(v, j, which * v->h)};
    return tir_mul(v->c, tir_load(v->c, v->in[IN_P], 2, idx), cell);
}

/* Gates i, o, f, c: c = f*c + i*g(c~), h = o*h(c); peepholes i, o, f. */
static tir_stmt *lstm_update(const rnn_ctx *v)
{
    compiler *c = v->c;
    const tir_var *j = tir_new_var(c, "j", TIR_I64), *fresh = tir_new_var(c, "fresh", tir_scalar(v->dt));
    tir_expr_ref jr = tir_varref(c, j), old = at1(v, v->cell, jr), now = tir_varref(c, fresh);
    tir_expr_ref i = activate(v, 0, clipped(v, tir_add(c, gate(v, 0, jr), peephole(v, 0, jr, old))));
    tir_expr_ref f = activate(v, 0, clipped(v, tir_add(c, gate(v, 2, jr), peephole(v, 2, jr, old))));
    if (graph_attr_int(v->n, "input_forget"))
        f = tir_sub(c, num(v, 1), i);
    tir_expr_ref cand = activate(v, 1, clipped(v, gate(v, 3, jr)));
    tir_expr_ref o = activate(v, 0, clipped(v, tir_add(c, gate(v, 1, jr), peephole(v, 1, jr, now))));
    tir_stmt *set[2] = {set1(v, v->cell, jr, now), set1(v, v->state, jr, tir_mul(c, o, activate(v, 2, now)))};
    tir_expr_ref next = tir_add(c, tir_mul(c, f, old), tir_mul(c, i, cand));
    return loop(v, j, v->h, tir_let(c, fresh, next, tir_seq(c, 2, set)));
}

static tir_stmt *store_y(const rnn_ctx *v, tir_expr_ref step, const tir_buffer *from)
{
    const tir_var *j = tir_new_var(v->c, "j", TIR_I64);
    tir_expr_ref jr = tir_varref(v->c, j), d = tir_i64(v->c, v->dir);
    tir_expr_ref idx[4] = {step, d, v->sample, jr}, idx1[4] = {v->sample, step, d, jr};
    return loop(v, j, v->h,
                tir_store(v->c, v->out[0], 4, v->batch_first ? idx1 : idx, from ? at1(v, from, jr) : num(v, 0)));
}

/* --- one direction
 * --------------------------------------------------------------------------------------------------------------- */

static tir_stmt *set_state(const rnn_ctx *v, const tir_buffer *to, const tir_buffer *from)
{
    const tir_var *j = tir_new_var(v->c, "j", TIR_I64);
    tir_expr_ref jr = tir_varref(v->c, j), d = tir_i64(v->c, v->dir), init = num(v, 0);
    if (from)
        init = v->batch_first ? at3(v, from, v->sample, d, jr) : at3(v, from, d, v->sample, jr);
    return loop(v, j, v->h, set1(v, to, jr, init));
}

static tir_stmt *save_state(const rnn_ctx *v, const tir_buffer *from, const tir_buffer *to)
{
    const tir_var *j = tir_new_var(v->c, "j", TIR_I64);
    tir_expr_ref jr = tir_varref(v->c, j), d = tir_i64(v->c, v->dir);
    tir_expr_ref idx[3] = {d, v->sample, jr}, idx1[3] = {v->sample, d, jr};
    return loop(v, j, v->h, tir_store(v->c, to, 3, v->batch_first ? idx1 : idx, at1(v, from, jr)));
}

/* A GRU whose reset gate scales R h, which needs a place of its own for that. */
static bool is_linear(const rnn_ctx *v)
{
    return v->kind == KIND_GRU && graph_attr_int(v->n, "linear_before_reset") != 0;
}

static tir_stmt *one_step(const rnn_ctx *v, tir_expr_ref step)
{
    bool linear = is_linear(v);
    int64_t direct = v->kind == KIND_GRU ? 2 : v->gates; /* gates whose recurrent part is plain R h */
    tir_stmt *s[5] = {start_sums(v, linear),
                      accumulate(v, v->sum, v->in[IN_W], v->i, 0, v->gates * v->h, step, NULL, NULL),
                      accumulate(v, v->sum, v->in[IN_R], v->h, 0, direct * v->h, NULL, v->state, NULL),
                      v->kind == KIND_RNN   ? rnn_update(v)
                      : v->kind == KIND_GRU ? gru_update(v, linear)
                                            : lstm_update(v),
                      store_y(v, step, v->state)};
    return tir_seq(v->c, 5, s);
}

static tir_stmt *one_direction(rnn_ctx *v)
{
    compiler *c = v->c;
    const char *dir = graph_attr_string(v->n, "direction");
    bool reverse = v->dir == 1 || strcmp(dir, "reverse") == 0;
    const tir_var *b = tir_new_var(c, "b", TIR_I64), *t = tir_new_var(c, "t", TIR_I64);
    v->sample = tir_varref(c, b);
    tir_expr_ref tr = tir_varref(c, t), len = v->t;
    if (v->in[IN_LEN])
        len = tir_cast(c, DT_I64, at1(v, v->in[IN_LEN], v->sample));
    tir_expr_ref step = reverse ? tir_sub(c, tir_sub(c, len, tir_i64(c, 1)), tr) : tr;
    tir_stmt *body = one_step(v, step);
    if (v->in[IN_LEN])
        body = tir_if(c, tir_binary(c, TIR_LT, tr, len), body, store_y(v, tr, NULL));
    tir_stmt *s[5] = {set_state(v, v->state, v->in[IN_H]), v->cell ? set_state(v, v->cell, v->in[IN_C]) : NULL,
                      loop_to(v, t, v->t, body), v->n->n_outputs > 1 ? save_state(v, v->state, v->out[1]) : NULL,
                      v->n->n_outputs > 2 ? save_state(v, v->cell, v->out[2]) : NULL};
    return loop_to(v, b, v->b, tir_seq(c, 5, s));
}

static tir_stmt *build_rnn(te_graph *g, void *ctx, const tir_buffer *const *in, const tir_buffer *const *out)
{
    rnn_ctx *v = ctx;
    uint32_t given = 0;
    v->c = g->c;
    v->out = out;
    for (uint32_t i = 0; i < v->n->n_inputs; i++)
        v->in[i] = v->n->inputs[i] ? in[given++] : NULL;
    int64_t hd[1] = {v->h}, gd[1] = {v->gates * v->h};
    v->state = tir_buffer_static(g->c, "h", v->dt, 1, hd, SCOPE_GLOBAL);
    v->cell = v->kind == KIND_LSTM ? tir_buffer_static(g->c, "cell", v->dt, 1, hd, SCOPE_GLOBAL) : NULL;
    v->sum = tir_buffer_static(g->c, "gates", v->dt, 1, gd, SCOPE_GLOBAL);
    v->rec = is_linear(v) ? tir_buffer_static(g->c, "recurrent", v->dt, 1, gd, SCOPE_GLOBAL) : NULL;
    tir_stmt *s[2] = {NULL, NULL};
    for (v->dir = 0; v->dir < v->dirs; v->dir++)
        s[v->dir] = one_direction(v);
    tir_stmt *body = tir_allocate(g->c, v->state, tir_allocate(g->c, v->sum, tir_seq(g->c, 2, s)));
    body = v->rec ? tir_allocate(g->c, v->rec, body) : body;
    return v->cell ? tir_allocate(g->c, v->cell, body) : body;
}

static bool check_activations(te_graph *g, rnn_ctx *v)
{
    static const uint32_t per_dir[3] = {1, 2, 3};
    for (v->dir = 0; v->dir < v->dirs; v->dir++)
        for (uint32_t k = 0; k < per_dir[v->kind]; k++)
            if (!find_activation(activation_name(v, k)))
                return infer_error(g->c, v->n, "unknown activation '%s'", activation_name(v, k));
    return true;
}

static bool recurrent(te_graph *g, const graph_node *n, te_tensor *const *in, te_tensor **out, rnn_kind kind)
{
    static const int64_t gates[] = {1, 3, 4};
    int64_t width, r[TYPE_MAX_RANK];
    if (!dim_is_const(te_in_type(n, 0)->shape.dims[2], &width) || !shape_get(te_in_type(n, 2)->shape, r) ||
        dtype_bits(te_in_type(n, 0)->dt) < 32)
        return diag_error(&g->c->diags, DIAG_UNSUPPORTED, n->loc, "%s needs weights of constant shape, and f32 or f64",
                          n->op->name);
    rnn_ctx v = {
        .n = n, .kind = kind, .gates = gates[kind], .dirs = r[0], .h = r[2], .i = width, .dt = te_in_type(n, 0)->dt};
    v.batch_first = graph_attr_int(n, "layout") != 0;
    v.t = in[0]->shape[v.batch_first ? 1 : 0];
    v.b = in[0]->shape[v.batch_first ? 0 : 1];
    if (!check_activations(g, &v))
        return false;
    te_tensor *given[IN_COUNT];
    dtype dts[3];
    uint32_t ranks[3], n_given = 0;
    tir_expr_ref const *shapes[3];
    for (uint32_t i = 0; i < n->n_inputs; i++)
        if (in[i])
            given[n_given++] = in[i];
    for (uint32_t i = 0; i < n->n_outputs; i++) {
        dts[i] = v.dt;
        ranks[i] = (uint32_t)te_out_type(n, i)->shape.rank;
        shapes[i] = te_shape(g, te_out_type(n, i));
    }
    if (te_has_operand(n, IN_LEN))
        te_check_lengths(g, n, in[IN_LEN], v.t);
    te_extern(g, n->op->name, n_given, given, n->n_outputs, dts, ranks, shapes, build_rnn, &v, out);
    g->macs += v.dirs * te_most(g, v.t) * te_most(g, v.b) * v.gates * v.h * (v.i + v.h);
    return true;
}

bool compute_rnn(te_graph *g, const graph_node *n, te_tensor *const *in, te_tensor **out)
{
    return recurrent(g, n, in, out, KIND_RNN);
}
bool compute_gru(te_graph *g, const graph_node *n, te_tensor *const *in, te_tensor **out)
{
    return recurrent(g, n, in, out, KIND_GRU);
}
bool compute_lstm(te_graph *g, const graph_node *n, te_tensor *const *in, te_tensor **out)
{
    return recurrent(g, n, in, out, KIND_LSTM);
}
