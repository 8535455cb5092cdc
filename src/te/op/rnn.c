/* SPDX-License-Identifier: Apache-2.0 */
/* RNN, GRU and LSTM (ONNX) as loop IR: for each direction and sample, the state h (and c) lives in scratch; every step
 * makes the gate sums W x + R h + bias, then the new state. Steps beyond a sample's length write zeros.
 *
 * In the form of rnn-products (graph/pass/rnn.c) W x and the biases of all steps have been made by one product, and
 * what is left are the steps: some samples side by side (`rows`), and R in blocks of gates, each with all of its inputs
 * one behind the other, so that a block's sums stay in registers. */
#include "te/op/util.h"
#include "tir/walk.h"

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
    int64_t rows, block, lanes; /* of the steps alone; block 0: W x is made here, too, sample by sample */
    dtype dt;
    compiler *c;
    const tir_buffer *state, *cell, *sum, *rec; /* h, c, W x + R h + bias per gate, R h + Rb of the candidate (GRU) */
    int64_t dir;
    tir_expr_ref row;    /* of the state and the sums; NULL: there is one */
    tir_expr_ref sample; /* batch index */
    tir_expr_ref step;   /* of x and y */
} rnn_ctx;

/* --- vocabulary
 * ------------------------------------------------------------------------------------------------------------ */

static tir_expr_ref num(const rnn_ctx *v, double x)
{
    return tir_float(v->c, v->dt, x);
}
/* Of a state or sums. */
static tir_expr_ref at1(const rnn_ctx *v, const tir_buffer *b, tir_expr_ref i)
{
    tir_expr_ref idx[2] = {v->row, i};
    return v->row ? tir_load(v->c, b, 2, idx) : tir_load(v->c, b, 1, &i);
}
static tir_expr_ref at3(const rnn_ctx *v, const tir_buffer *b, tir_expr_ref i, tir_expr_ref j, tir_expr_ref k)
{
    tir_expr_ref idx[3] = {i, j, k};
    return tir_load(v->c, b, 3, idx);
}
static tir_stmt *set1(const rnn_ctx *v, const tir_buffer *b, tir_expr_ref i, tir_expr_ref x)
{
    tir_expr_ref idx[2] = {v->row, i};
    return v->row ? tir_store(v->c, b, 2, idx, x) : tir_store(v->c, b, 1, &i, x);
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
static tir_stmt *loop_as(const rnn_ctx *v, const tir_var *var, int64_t extent, tir_for_kind kind, tir_stmt *body)
{
    return tir_for(v->c, var, tir_i64(v->c, 0), tir_i64(v->c, extent), kind, body);
}

/* Elements that do not depend on each other: vectors, and the rest one by one. */
static tir_stmt *each(const rnn_ctx *v, const tir_var *var, int64_t extent, tir_stmt *body)
{
    compiler *c = v->c;
    const int64_t whole = v->block > 0 ? extent / v->lanes * v->lanes : 0;
    if (whole == 0)
        return loop(v, var, extent, body);
    const tir_var *out = tir_new_var(c, "vector", TIR_I64), *in = tir_new_var(c, "lane", TIR_I64),
                  *rest = tir_new_var(c, "rest", TIR_I64);
    tir_expr_ref at = tir_add(c, tir_mul(c, tir_varref(c, out), tir_i64(c, v->lanes)), tir_varref(c, in)),
                 behind = tir_add(c, tir_varref(c, rest), tir_i64(c, whole));
    tir_stmt *main = loop(v, out, whole / v->lanes, loop_as(v, in, v->lanes, FOR_VECTORIZED,
                                                            tir_substitute_stmt(c, body, 1, &var, &at)));
    tir_stmt *both[2] = {main, extent == whole ? NULL : loop(v, rest, extent - whole,
                                                             tir_substitute_stmt(c, body, 1, &var, &behind))};
    return tir_seq(c, 2, both);
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

#define BESIDE 4 /* rows that share what they load of x */

/* to[row] += sum over k of m[dir, row, k] * x(k), for rows first..first+rows */
static tir_stmt *accumulate(const rnn_ctx *v, const tir_buffer *to, const tir_buffer *m, int64_t extent, int64_t first,
                            int64_t rows, tir_expr_ref step, const tir_buffer *vec, const tir_buffer *scale)
{
    compiler *c = v->c;
    const tir_var *row = tir_new_var(c, "row", TIR_I64), *k = tir_new_var(c, "k", TIR_I64);
    tir_expr_ref kr = tir_varref(c, k), x;
    tir_stmt *sums[BESIDE];
    if (vec)
        x = at1(v, vec, kr);
    else
        x = v->batch_first ? at3(v, v->in[IN_X], v->sample, step, kr) : at3(v, v->in[IN_X], step, v->sample, kr);
    if (scale) /* GRU: the reset gate, already activated, scales h */
        x = tir_mul(c, x, at1(v, scale, offset(v, kr, v->h)));
    const int64_t beside = rows % BESIDE == 0 ? BESIDE : 1;
    for (int64_t i = 0; i < beside; i++) {
        tir_expr_ref r = offset(v, tir_mul(c, tir_varref(c, row), tir_i64(c, beside)), first + i);
        tir_expr_ref product = tir_mul(c, at3(v, m, tir_i64(c, v->dir), r, kr), x);
        sums[i] = set1(v, to, r, tir_add(c, at1(v, to, r), product));
    }
    return loop(v, row, rows / beside, loop(v, k, extent, tir_seq(c, (uint32_t)beside, sums)));
}

/* Rb of the candidate, where it stands alone. */
static tir_expr_ref recurrent_bias(const rnn_ctx *v, tir_expr_ref j)
{
    tir_expr_ref idx[2] = {tir_i64(v->c, v->dir), j};
    return v->in[IN_B] ? tir_load(v->c, v->in[IN_B], 2, idx) : num(v, 0);
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

/* A GRU whose reset gate scales R h, which needs a place of its own for that. */
static bool is_linear(const rnn_ctx *v)
{
    return v->kind == KIND_GRU && graph_attr_int(v->n, "linear_before_reset") != 0;
}

/* Where gate g's sums begin: R's blocks hold what is multiplied by one vector, the GRU's candidate apart. */
static int64_t gate_at(const rnn_ctx *v, int64_t g)
{
    const bool apart = v->block > 0 && v->kind == KIND_GRU && g == 2;
    return apart ? (2 * v->h + v->block - 1) / v->block * v->block : g * v->h;
}

static tir_expr_ref sum_of(const rnn_ctx *v, int64_t g, tir_expr_ref j)
{
    return at1(v, v->sum, offset(v, j, gate_at(v, g)));
}

/* W x + biases of gate g, made before. */
static tir_expr_ref given(const rnn_ctx *v, int64_t g, tir_expr_ref j)
{
    tir_expr_ref at = offset(v, j, (v->dir * v->gates + g) * v->h);
    return v->batch_first ? at3(v, v->in[IN_X], v->sample, v->step, at) : at3(v, v->in[IN_X], v->step, v->sample, at);
}

static tir_expr_ref gate(const rnn_ctx *v, int64_t g, tir_expr_ref j)
{
    return v->block > 0 ? tir_add(v->c, given(v, g, j), sum_of(v, g, j)) : sum_of(v, g, j);
}

/* Activates the sums of the GRU's z and r in place. */
static tir_stmt *activate_gates(const rnn_ctx *v)
{
    const tir_var *row = tir_new_var(v->c, "row", TIR_I64);
    tir_expr_ref r = tir_varref(v->c, row);
    return each(v, row, 2 * v->h, set1(v, v->sum, r, activate(v, 0, clipped(v, gate(v, 0, r)))));
}

static tir_stmt *rnn_update(const rnn_ctx *v)
{
    const tir_var *j = tir_new_var(v->c, "j", TIR_I64);
    tir_expr_ref jr = tir_varref(v->c, j);
    return each(v, j, v->h, set1(v, v->state, jr, activate(v, 0, clipped(v, gate(v, 0, jr)))));
}

/* z, r, candidate: h = (1 - z) * candidate + z * h; z and r are activated. */
static tir_stmt *gru_state(const rnn_ctx *v, bool linear)
{
    compiler *c = v->c;
    const tir_var *j = tir_new_var(c, "j", TIR_I64);
    tir_expr_ref jr = tir_varref(c, j), z = sum_of(v, 0, jr), cand = gate(v, 2, jr);
    if (linear) { /* r * (R h + Rb), with R h + Rb, or R h, in rec */
        tir_expr_ref rec = at1(v, v->rec, offset(v, jr, v->block > 0 ? 0 : 2 * v->h));
        rec = v->block > 0 ? tir_add(c, rec, recurrent_bias(v, jr)) : rec;
        cand = v->block > 0 ? given(v, 2, jr) : cand;
        cand = tir_add(c, cand, tir_mul(c, sum_of(v, 1, jr), rec));
    }
    tir_expr_ref fresh = tir_mul(c, tir_sub(c, num(v, 1), z), activate(v, 1, clipped(v, cand)));
    return each(v, j, v->h, set1(v, v->state, jr, tir_add(c, fresh, tir_mul(c, z, at1(v, v->state, jr)))));
}

static tir_stmt *gru_update(const rnn_ctx *v, bool linear)
{
    compiler *c = v->c;
    const tir_var *q = tir_new_var(c, "q", TIR_I64);
    tir_expr_ref qr = offset(v, tir_varref(c, q), 2 * v->h);
    tir_stmt *s[4] = {activate_gates(v)};
    if (linear) {
        s[1] = loop(v, q, v->h, set1(v, v->rec, qr, bias(v, qr, true)));
        s[2] = accumulate(v, v->rec, v->in[IN_R], v->h, 2 * v->h, v->h, NULL, v->state, NULL);
    } else {
        s[1] = accumulate(v, v->sum, v->in[IN_R], v->h, 2 * v->h, v->h, NULL, v->state, v->sum);
    }
    s[3] = gru_state(v, linear);
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
    const tir_var *j = tir_new_var(c, "j", TIR_I64);
    tir_expr_ref jr = tir_varref(c, j), old = at1(v, v->cell, jr), now = old; /* as it is stored meanwhile */
    tir_expr_ref i = activate(v, 0, clipped(v, tir_add(c, gate(v, 0, jr), peephole(v, 0, jr, old))));
    tir_expr_ref f = activate(v, 0, clipped(v, tir_add(c, gate(v, 2, jr), peephole(v, 2, jr, old))));
    if (graph_attr_int(v->n, "input_forget"))
        f = tir_sub(c, num(v, 1), i);
    tir_expr_ref cand = activate(v, 1, clipped(v, gate(v, 3, jr)));
    tir_expr_ref o = activate(v, 0, clipped(v, tir_add(c, gate(v, 1, jr), peephole(v, 1, jr, now))));
    tir_expr_ref next = tir_add(c, tir_mul(c, f, old), tir_mul(c, i, cand));
    tir_stmt *set[2] = {set1(v, v->cell, jr, next), set1(v, v->state, jr, tir_mul(c, o, activate(v, 2, now)))};
    return each(v, j, v->h, tir_seq(c, 2, set));
}

static tir_stmt *store_y(const rnn_ctx *v, tir_expr_ref step, const tir_buffer *from)
{
    const tir_var *j = tir_new_var(v->c, "j", TIR_I64);
    tir_expr_ref jr = tir_varref(v->c, j), d = tir_i64(v->c, v->dir);
    tir_expr_ref idx[4] = {step, d, v->sample, jr}, idx1[4] = {v->sample, step, d, jr};
    return each(v, j, v->h,
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
    return each(v, j, v->h, set1(v, to, jr, init));
}

static tir_stmt *save_state(const rnn_ctx *v, const tir_buffer *from, const tir_buffer *to)
{
    const tir_var *j = tir_new_var(v->c, "j", TIR_I64);
    tir_expr_ref jr = tir_varref(v->c, j), d = tir_i64(v->c, v->dir);
    tir_expr_ref idx[3] = {d, v->sample, jr}, idx1[3] = {v->sample, d, jr};
    return each(v, j, v->h, tir_store(v->c, to, 3, v->batch_first ? idx1 : idx, at1(v, from, jr)));
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

/* --- steps alone: some samples side by side ----------------------------------------------------------------------- */

/* What row i of each tile works on. */
static rnn_ctx in_row(const rnn_ctx *v, tir_expr_ref i)
{
    rnn_ctx row = *v;
    row.row = i;
    row.sample = tir_add(v->c, v->sample, i);
    return row;
}

static tir_stmt *each_row(const rnn_ctx *v, tir_stmt *(*body)(const rnn_ctx *row, void *ctx), void *ctx)
{
    const tir_var *i = tir_new_var(v->c, "i", TIR_I64);
    const rnn_ctx row = in_row(v, tir_varref(v->c, i));
    return loop(v, i, v->rows, body(&row, ctx));
}

/* One block's sums, in registers: to[row, column] = the sum over k of r[dir, number, k, column] * vec[row, k]. */
typedef struct block_product {
    const tir_buffer *to, *vec, *scale, *acc; /* scale: the GRU's reset gate; NULL: none */
    tir_expr_ref block, first;              /* of R, and its first column in `to` */
    const tir_var *k, *i, *vector, *lane;
} block_product;

/* body for each sum of the tile, in loops of its own. */
static tir_stmt *over_acc(const rnn_ctx *v, const block_product *p, tir_stmt *body)
{
    compiler *c = v->c;
    const tir_var *old[3] = {p->i, p->vector, p->lane}, *own[3];
    tir_expr_ref to[3];
    for (uint32_t i = 0; i < 3; i++) {
        own[i] = tir_new_var(c, old[i]->name, TIR_I64);
        to[i] = tir_varref(c, own[i]);
    }
    tir_stmt *s = loop_as(v, own[2], v->lanes, FOR_VECTORIZED, tir_substitute_stmt(c, body, 3, old, to));
    return loop_as(v, own[0], v->rows, FOR_UNROLLED, loop_as(v, own[1], v->block / v->lanes, FOR_UNROLLED, s));
}

static tir_stmt *block_sums(const rnn_ctx *v, const block_product *p)
{
    compiler *c = v->c;
    rnn_ctx row = *v;
    row.row = tir_varref(c, p->i);
    tir_expr_ref begin = tir_mul(c, tir_varref(c, p->vector), tir_i64(c, v->lanes)),
                 column = tir_add(c, begin, tir_varref(c, p->lane)), kr = tir_varref(c, p->k),
                 weight[4] = {tir_i64(c, v->dir), p->block, kr, column};
    tir_expr_ref x = at1(&row, p->vec, kr);
    if (p->scale)
        x = tir_mul(c, x, at1(&row, p->scale, offset(v, kr, v->h)));
    tir_expr_ref product = tir_mul(c, x, tir_load(c, v->in[IN_R], 4, weight)), sum = at1(&row, p->acc, column);
    tir_stmt *s[3] = {over_acc(v, p, set1(&row, p->acc, column, num(v, 0))),
                      loop(v, p->k, v->h, over_acc(v, p, set1(&row, p->acc, column, tir_add(c, sum, product)))),
                      over_acc(v, p, set1(&row, p->to, tir_add(c, p->first, column), sum))};
    return tir_allocate(c, p->acc, tir_seq(c, 3, s));
}

/* Blocks [first, first + n) of R times vec, to columns [at, ...) of `to`. */
static tir_stmt *multiply(const rnn_ctx *v, const tir_buffer *to, int64_t at, int64_t first, int64_t n,
                          const tir_buffer *vec, const tir_buffer *scale)
{
    compiler *c = v->c;
    const int64_t dims[2] = {v->rows, v->block};
    const tir_var *q = tir_new_var(c, "block", TIR_I64);
    tir_expr_ref qr = tir_varref(c, q);
    const block_product p = {.to = to,
                             .vec = vec,
                             .scale = scale,
                             .acc = tir_buffer_static(c, "acc", v->dt, 2, dims, SCOPE_REG),
                             .block = offset(v, qr, first),
                             .first = offset(v, tir_mul(c, qr, tir_i64(c, v->block)), at),
                             .k = tir_new_var(c, "k", TIR_I64),
                             .i = tir_new_var(c, "i", TIR_I64),
                             .vector = tir_new_var(c, "vector", TIR_I64),
                             .lane = tir_new_var(c, "lane", TIR_I64)};
    return loop(v, q, n, block_sums(v, &p));
}

static int64_t blocks_of(const rnn_ctx *v, int64_t gates)
{
    return (gates * v->h + v->block - 1) / v->block;
}

/* What a row does in a step, where it has that step. */
typedef struct step_part {
    tir_expr_ref t;
    bool reverse, is_last; /* the last part stores y, or zeros behind the sample's end */
    tir_stmt *(*update)(const rnn_ctx *row);
} step_part;

static tir_stmt *row_step(const rnn_ctx *v, void *ctx)
{
    const step_part *p = ctx;
    compiler *c = v->c;
    rnn_ctx row = *v;
    tir_expr_ref len = v->t;
    if (v->in[IN_LEN])
        len = tir_cast(c, DT_I64, tir_load(c, v->in[IN_LEN], 1, &v->sample));
    row.step = p->reverse ? tir_sub(c, tir_sub(c, len, tir_i64(c, 1)), p->t) : p->t;
    tir_stmt *s[2] = {p->update(&row), p->is_last ? store_y(&row, row.step, v->state) : NULL}, *body = tir_seq(c, 2, s);
    if (!v->in[IN_LEN])
        return body;
    return tir_if(c, tir_binary(c, TIR_LT, p->t, len), body, p->is_last ? store_y(&row, p->t, NULL) : NULL);
}

static tir_stmt *gru_state_linear(const rnn_ctx *v)
{
    return gru_state(v, true);
}
static tir_stmt *gru_state_plain(const rnn_ctx *v)
{
    return gru_state(v, false);
}

static tir_stmt *tile_step(const rnn_ctx *v, tir_expr_ref t, bool reverse)
{
    const bool gru = v->kind == KIND_GRU, linear = is_linear(v);
    const int64_t direct = blocks_of(v, gru ? 2 : v->gates), apart = blocks_of(v, 1), at = direct * v->block;
    step_part first = {t, reverse, false, activate_gates}, last = {t, reverse, true, lstm_update};
    last.update = v->kind == KIND_RNN ? rnn_update : !gru ? lstm_update : linear ? gru_state_linear : gru_state_plain;
    tir_stmt *s[4] = {multiply(v, v->sum, 0, 0, direct, v->state, NULL), gru ? each_row(v, row_step, &first) : NULL};
    if (gru)
        s[2] = linear ? multiply(v, v->rec, 0, direct, apart, v->state, NULL)
                      : multiply(v, v->sum, at, direct, apart, v->state, v->sum);
    s[3] = each_row(v, row_step, &last);
    return tir_seq(v->c, 4, s);
}

static tir_stmt *row_begin(const rnn_ctx *v, void *ctx)
{
    (void)ctx;
    tir_stmt *s[2] = {set_state(v, v->state, v->in[IN_H]), v->cell ? set_state(v, v->cell, v->in[IN_C]) : NULL};
    return tir_seq(v->c, 2, s);
}

static tir_stmt *row_end(const rnn_ctx *v, void *ctx)
{
    (void)ctx;
    tir_stmt *s[2] = {v->n->n_outputs > 1 ? save_state(v, v->state, v->out[1]) : NULL,
                      v->n->n_outputs > 2 ? save_state(v, v->cell, v->out[2]) : NULL};
    return tir_seq(v->c, 2, s);
}

static bool is_reverse(const rnn_ctx *v)
{
    return v->dir == 1 || strcmp(graph_attr_string(v->n, "direction"), "reverse") == 0;
}

/* A row for each sample of a tile. */
static const tir_buffer *scratch(const rnn_ctx *v, const char *name, int64_t extent)
{
    const int64_t dims[2] = {v->rows, extent};
    return tir_buffer_static(v->c, name, v->dt, v->block > 0 ? 2 : 1, v->block > 0 ? dims : dims + 1, SCOPE_GLOBAL);
}

/* Columns of sums, blocks filled up. */
static int64_t sums_of(const rnn_ctx *v)
{
    const bool gru = v->kind == KIND_GRU;
    return (blocks_of(v, gru ? 2 : v->gates) + (gru && !is_linear(v) ? blocks_of(v, 1) : 0)) * v->block;
}

/* The states and sums, for as long as body runs. */
static tir_stmt *with_scratch(const rnn_ctx *v, tir_stmt *body)
{
    compiler *c = v->c;
    body = tir_allocate(c, v->state, tir_allocate(c, v->sum, body));
    body = v->rec ? tir_allocate(c, v->rec, body) : body;
    return v->cell ? tir_allocate(c, v->cell, body) : body;
}

static void make_scratch(rnn_ctx *v)
{
    v->state = scratch(v, "h", v->h);
    v->cell = v->kind == KIND_LSTM ? scratch(v, "cell", v->h) : NULL;
    v->sum = scratch(v, "gates", v->block > 0 ? sums_of(v) : v->gates * v->h);
    v->rec = is_linear(v) ? scratch(v, "recurrent", v->block > 0 ? blocks_of(v, 1) * v->block : v->gates * v->h) : NULL;
}

static tir_stmt *one_direction_tiled(rnn_ctx *v)
{
    compiler *c = v->c;
    const tir_var *b = tir_new_var(c, "b", TIR_I64), *t = tir_new_var(c, "t", TIR_I64);
    tir_expr_ref rows = tir_i64(c, v->rows);
    v->sample = tir_mul(c, tir_varref(c, b), rows);
    make_scratch(v); /* of each worker */
    tir_stmt *s[3] = {each_row(v, row_begin, NULL), loop_to(v, t, v->t, tile_step(v, tir_varref(c, t), is_reverse(v))),
                      v->n->n_outputs > 1 ? each_row(v, row_end, NULL) : NULL};
    return tir_for(c, b, tir_i64(c, 0), tir_floordiv(c, v->b, rows), FOR_PARALLEL,
                   with_scratch(v, tir_seq(c, 3, s)));
}

static tir_stmt *one_direction(rnn_ctx *v)
{
    compiler *c = v->c;
    bool reverse = is_reverse(v);
    const tir_var *b = tir_new_var(c, "b", TIR_I64), *t = tir_new_var(c, "t", TIR_I64);
    v->sample = tir_varref(c, b);
    tir_expr_ref tr = tir_varref(c, t), len = v->t;
    if (v->in[IN_LEN])
        len = tir_cast(c, DT_I64, tir_load(c, v->in[IN_LEN], 1, &v->sample));
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
    for (uint32_t i = 0; i < v->n->n_inputs; i++) /* the steps alone have no W */
        v->in[i > 0 && v->block > 0 ? i + 1 : i] = v->n->inputs[i] ? in[given++] : NULL;
    if (v->block == 0)
        make_scratch(v);
    tir_stmt *s[2] = {NULL, NULL};
    for (v->dir = 0; v->dir < v->dirs; v->dir++)
        s[v->dir] = v->block > 0 ? one_direction_tiled(v) : one_direction(v);
    tir_stmt *body = tir_seq(g->c, 2, s);
    return v->block > 0 ? body : with_scratch(v, body);
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

/* The operands that are there, in order, and the results. */
static bool add_extern(te_graph *g, te_tensor *const *in, te_tensor **out, rnn_ctx *v)
{
    const graph_node *n = v->n;
    te_tensor *given[IN_COUNT];
    dtype dts[3];
    uint32_t ranks[3], n_given = 0;
    tir_expr_ref const *shapes[3];
    if (!check_activations(g, v))
        return false;
    for (uint32_t i = 0; i < n->n_inputs; i++)
        if (in[i])
            given[n_given++] = in[i];
    for (uint32_t i = 0; i < n->n_outputs; i++) {
        dts[i] = v->dt;
        ranks[i] = (uint32_t)te_out_type(n, i)->shape.rank;
        shapes[i] = te_shape(g, te_out_type(n, i));
    }
    const uint32_t lengths = v->block > 0 ? IN_LEN - 1 : IN_LEN;
    if (te_has_operand(n, lengths))
        te_check_lengths(g, n, in[lengths], v->t);
    te_extern(g, n->op->name, n_given, given, n->n_outputs, dts, ranks, shapes, build_rnn, v, out);
    te_count_macs(g, 6, (int64_t[]){te_most(g, v->t), te_most(g, v->b), v->dirs, v->gates, v->h, v->i + v->h});
    return true;
}

static const int64_t gates_of[] = {1, 3, 4};

static bool recurrent(te_graph *g, const graph_node *n, te_tensor *const *in, te_tensor **out, rnn_kind kind)
{
    int64_t width, r[TYPE_MAX_RANK];
    if (!dim_is_const(te_in_type(n, 0)->shape.dims[2], &width) || !shape_get(te_in_type(n, 2)->shape, r) ||
        dtype_bits(te_in_type(n, 0)->dt) < 32)
        return diag_error(&g->c->diags, DIAG_UNSUPPORTED, n->loc, "%s needs weights of constant shape, and f32 or f64",
                          n->op->name);
    rnn_ctx v = {.n = n, .kind = kind, .gates = gates_of[kind], .dirs = r[0], .h = r[2], .i = width};
    v.rows = 1;
    v.dt = te_in_type(n, 0)->dt;
    v.batch_first = graph_attr_int(n, "layout") != 0;
    v.t = in[0]->shape[v.batch_first ? 1 : 0];
    v.b = in[0]->shape[v.batch_first ? 0 : 1];
    return add_extern(g, in, out, &v);
}

/* The steps alone. */
static bool steps(te_graph *g, const graph_node *n, te_tensor *const *in, te_tensor **out, rnn_kind kind)
{
    int64_t r[TYPE_MAX_RANK];
    if (!shape_get(te_in_type(n, 1)->shape, r))
        return diag_error(&g->c->diags, DIAG_UNSUPPORTED, n->loc, "%s needs weights of constant shape", n->op->name);
    rnn_ctx v = {.n = n, .kind = kind, .gates = gates_of[kind], .dirs = r[0], .h = r[2], .block = r[3]};
    v.rows = graph_attr_int(n, "rows");
    v.lanes = graph_attr_int(n, "lanes");
    v.dt = te_in_type(n, 0)->dt;
    v.batch_first = graph_attr_int(n, "layout") != 0;
    v.t = in[0]->shape[v.batch_first ? 1 : 0];
    v.b = in[0]->shape[v.batch_first ? 0 : 1];
    return add_extern(g, in, out, &v);
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
bool compute_rnn_steps(te_graph *g, const graph_node *n, te_tensor *const *in, te_tensor **out)
{
    return steps(g, n, in, out, KIND_RNN);
}
bool compute_gru_steps(te_graph *g, const graph_node *n, te_tensor *const *in, te_tensor **out)
{
    return steps(g, n, in, out, KIND_GRU);
}
bool compute_lstm_steps(te_graph *g, const graph_node *n, te_tensor *const *in, te_tensor **out)
{
    return steps(g, n, in, out, KIND_LSTM);
}
