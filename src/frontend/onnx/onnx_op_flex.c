/* SPDX-License-Identifier: Apache-2.0 */
/* Importers of FlexAttention (attention whose scores and weights the model changes by graphs of its own) and
 * LinearAttention (a state of [keys, values] for each head that each position changes and reads, one after the other:
 * a loop). Both are compositions of other operators. */
#include "frontend/onnx/onnx_import.h"

#include <math.h>
#include <string.h>

/* --- FlexAttention --- */

typedef struct flex {
    onnx_node *n;
    graph_value *q, *k, *v;
    dim batch, heads, rows, keys;
    int64_t q_heads, kv_heads;
} flex;

/* [batch, heads of keys, several heads' rows, extent]: heads of q that share keys stand side by side. */
static graph_value *fold_heads(const flex *x, graph_value *v, dim extent)
{
    compiler *c = x->n->c;
    const dim d[4] = {x->batch, dim_const(c, x->kv_heads),
                      dim_mul(c, dim_const(c, x->q_heads / x->kv_heads), x->rows), extent};
    return x->q_heads == x->kv_heads ? v : onnx_reshape(x->n, v, 4, d);
}

static graph_value *unfold_heads(const flex *x, graph_value *v, dim extent)
{
    const dim d[4] = {x->batch, dim_const(x->n->c, x->q_heads), x->rows, extent};
    return x->q_heads == x->kv_heads ? v : onnx_reshape(x->n, v, 4, d);
}

/* What the graph attribute makes of v; v without one. */
static graph_value *changed(onnx_node *n, const char *name, graph_value *v, dtype dt)
{
    if (!onnx_has_attr(n, name))
        return v;
    const pb_graph *g = onnx_attr_graph(n, name);
    return n->failed ? onnx_nothing(n) : onnx_cast(n, onnx_inline_body(n, g, v), dt);
}

static graph_value *scaled(onnx_node *n, graph_value *x, double by)
{
    return onnx_binary(n, "multiply", x, onnx_const_like(n, x, by));
}

bool onnx_op_flex_attention(onnx_node *n)
{
    flex x = {.n = n, .q = onnx_in(n, 0), .k = onnx_in(n, 1), .v = onnx_in(n, 2)};
    const dtype dt = onnx_dtype(x.q), usual = dt == DT_F64 ? DT_F64 : DT_F32;
    const dtype precise = onnx_attr_dtype(n, "softmax_precision", usual);
    if (onnx_rank(x.q) != 4 || onnx_rank(x.k) != 4 || onnx_rank(x.v) != 4)
        return onnx_fail(n, DIAG_TYPE, "Q, K and V must have four dimensions");
    x.batch = onnx_dim(n, x.q, 0);
    x.rows = onnx_dim(n, x.q, 2);
    x.keys = onnx_dim(n, x.k, 2);
    x.q_heads = onnx_static_dim(n, x.q, 1);
    x.kv_heads = onnx_static_dim(n, x.k, 1);
    const double size = (double)onnx_static_dim(n, x.q, 3), scale = onnx_attr_float(n, "scale", 1 / sqrt(size));
    if (n->failed || x.kv_heads < 1 || x.q_heads % x.kv_heads != 0)
        return onnx_fail(n, DIAG_TYPE, "%lld heads of queries do not share %lld of keys", (long long)x.q_heads,
                         (long long)x.kv_heads);
    const double root = (double)sqrtf((float)scale); /* as the specification has it */
    graph_value *q = fold_heads(&x, scaled(n, x.q, root), onnx_dim(n, x.q, 3));
    graph_value *scores = onnx_matmul(n, q, scaled(n, x.k, root), false, true, dt);
    scores = changed(n, "score_mod", onnx_cast(n, unfold_heads(&x, scores, x.keys), precise), precise);
    attr axis = attr_int(n->c, "axis", -1);
    graph_value *weights = onnx_emit(n, ONNX_ARGS("nn.softmax", 1, &axis, scores));
    weights = fold_heads(&x, changed(n, "prob_mod", weights, precise), x.keys);
    graph_value *y = onnx_matmul(n, weights, onnx_cast(n, x.v, precise), false, false, precise);
    return onnx_alias(n, 0, onnx_cast(n, unfold_heads(&x, y, onnx_dim(n, x.v, 3)), onnx_dtype(x.v)));
}

/* --- LinearAttention --- */

typedef struct linear {
    onnx_node *n;
    graph_value *q, *k, *v, *state, *decay, *beta; /* [time, batch, heads, size], f32; the last two may be NULL */
    int64_t q_heads, kv_heads, key_size, value_size;
    dim batch, time;
    double scale;
} linear;

/* [batch, time, heads * size] as [time, batch, heads, size] in f32. */
static graph_value *by_time(const linear *x, graph_value *v, int64_t heads, int64_t size)
{
    onnx_node *n = x->n;
    const dim d[4] = {x->batch, x->time, dim_const(n->c, heads), dim_const(n->c, size)};
    const int64_t perm[4] = {1, 0, 2, 3};
    return onnx_transpose(n, onnx_reshape(n, onnx_cast(n, v, DT_F32), 4, d), 4, perm);
}

static graph_value *op2(onnx_region *r, const char *op, graph_value *a, graph_value *b)
{
    return onnx_region_emit(r, op, 2, (graph_value *[]){a, b}, 0, NULL);
}

/* x[batch, heads, size] with an axis of 1 more. */
static graph_value *widened(onnx_region *r, graph_value *x, uint32_t axis)
{
    compiler *c = r->n->c;
    int64_t d[4];
    uint32_t from = 0, open = 0;
    for (uint32_t i = 0; i < 4; i++) {
        d[i] = 1;
        if (i != axis && !dim_is_const(x->type.shape.dims[from++], &d[i])) {
            d[i] = -1;
            open++;
        }
    }
    if (open > 1)
        return onnx_refuse(r->n, DIAG_UNSUPPORTED, "the heads of LinearAttention must be known");
    return op2(r, "reshape", x, graph_add_constant(r->f, tensor_from_i64s(c, 4, d), "", r->n->loc));
}

/* The slice of a round, which the body gets from outside. */
static graph_value *slice_of(onnx_region *r, graph_value *v, const char *name, graph_value *round)
{
    if (!v || r->n->failed)
        return NULL;
    attr axis = attr_int(r->n->c, "axis", 0);
    return onnx_region_emit(r, "take", 2, (graph_value *[]){onnx_region_value(r, name, v), round}, 1, &axis);
}

static graph_value *sum_over(onnx_region *r, graph_value *x, int64_t axis)
{
    attr a[2] = {attr_ints(r->n->c, "axes", 1, &axis), attr_int(r->n->c, "keepdims", 0)};
    return onnx_region_emit(r, "sum", 1, &x, 2, a);
}

/* Heads of q that share a state, read together: q [batch, heads, size] by the state [batch, states, size, values]. */
static graph_value *read_state(const linear *x, onnx_region *r, graph_value *q, graph_value *state)
{
    compiler *c = r->n->c;
    int64_t batch = -1, shared = x->q_heads / x->kv_heads;
    (void)dim_is_const(x->batch, &batch);
    const int64_t in[4] = {batch, x->kv_heads, shared, x->key_size}, out[3] = {batch, x->q_heads, x->value_size};
    q = op2(r, "reshape", q, graph_add_constant(r->f, tensor_from_i64s(c, 4, in), "", r->n->loc));
    graph_value *y = op2(r, "nn.matmul", q, state);
    y = op2(r, "reshape", y, graph_add_constant(r->f, tensor_from_i64s(c, 3, out), "", r->n->loc));
    return op2(r, "multiply", y, graph_add_constant(r->f, tensor_scalar_f64(c, DT_F32, x->scale), "", r->n->loc));
}

/* One position: the state fades, takes in key and value, and is read. */
static void make_round(const linear *x, onnx_region *r)
{
    onnx_node *n = r->n;
    graph_value *round = graph_add_param(r->f, "round", type_static(n->c, DT_I64, 0, NULL));
    graph_value *state = graph_add_param(r->f, "state", x->state->type);
    graph_add_result(r->f, graph_add_constant(r->f, tensor_scalar_i64(n->c, DT_BOOL, 1), "go", n->loc));
    graph_value *q = slice_of(r, x->q, "queries", round), *k = slice_of(r, x->k, "keys", round);
    graph_value *v = slice_of(r, x->v, "values", round), *g = slice_of(r, x->decay, "decay", round);
    graph_value *beta = slice_of(r, x->beta, "beta", round);
    if (n->failed)
        return;
    graph_value *key = widened(r, k, 3);
    if (g)
        state = op2(r, "multiply", state, widened(r, onnx_region_emit(r, "exp", 1, &g, 0, NULL), 3));
    if (beta)
        v = op2(r, "multiply", beta, op2(r, "subtract", v, sum_over(r, op2(r, "multiply", state, key), 2)));
    state = op2(r, "add", state, op2(r, "multiply", key, widened(r, v, 2)));
    graph_add_result(r->f, state);
    graph_add_result(r->f, read_state(x, r, q, state));
}

static graph_value *first_state(const linear *x, graph_value *past)
{
    onnx_node *n = x->n;
    int64_t d[4] = {0, x->kv_heads, x->key_size, x->value_size};
    if (past)
        return onnx_cast(n, past, DT_F32);
    uint8_t *zero = arena_array(&n->c->mem, uint8_t, 4);
    d[0] = onnx_static_dim(n, x->q, 1);
    return onnx_constant(n, tensor_splat(n->c, DT_F32, 4, d, zero));
}

/* Which operands the rule of the update needs. */
static bool check_rule(onnx_node *n, bool has_decay, bool has_beta)
{
    static const struct {
        const char *name;
        bool decay, beta;
    } rules[] = {{"linear", false, false}, {"gated", true, false}, {"delta", false, true}, {"gated_delta", true, true}};
    const char *rule = onnx_attr_string(n, "update_rule", "gated_delta");
    for (size_t i = 0; i < sizeof rules / sizeof *rules; i++)
        if (strcmp(rules[i].name, rule) == 0)
            return (rules[i].decay == has_decay && rules[i].beta == has_beta) ||
                   onnx_fail(n, DIAG_FORMAT, "the operands decay and beta do not fit the rule '%s'", rule);
    return onnx_fail(n, DIAG_FORMAT, "update_rule is '%.40s', none of linear, gated, delta, gated_delta", rule);
}

static bool read_linear(linear *x)
{
    onnx_node *n = x->n;
    graph_value *q = onnx_in(n, 0), *k = onnx_in(n, 1), *v = onnx_in(n, 2), *decay = onnx_optional(n, 4);
    graph_value *beta = onnx_optional(n, 5);
    x->q_heads = onnx_attr_int(n, "q_num_heads", 0);
    x->kv_heads = onnx_attr_int(n, "kv_num_heads", 0);
    (void)onnx_attr_int(n, "chunk_size", 64); /* how to compute, not what */
    if (x->q_heads < 1 || x->kv_heads < 1 || x->q_heads % x->kv_heads != 0)
        return onnx_fail(n, DIAG_FORMAT, "%lld heads of queries do not share %lld states", (long long)x->q_heads,
                         (long long)x->kv_heads);
    if (onnx_rank(q) != 3 || onnx_rank(k) != 3 || onnx_rank(v) != 3)
        return onnx_fail(n, DIAG_TYPE, "query, key and value must have three dimensions");
    x->batch = onnx_dim(n, q, 0);
    x->time = onnx_dim(n, q, 1);
    x->key_size = onnx_static_dim(n, k, 2) / x->kv_heads;
    x->value_size = onnx_static_dim(n, v, 2) / x->kv_heads;
    x->scale = onnx_attr_float(n, "scale", 0);
    if (!n->failed && (x->key_size < 1 || x->value_size < 1))
        return onnx_fail(n, DIAG_TYPE, "key and value have too few elements for %lld heads", (long long)x->kv_heads);
    if (n->failed || !check_rule(n, decay != NULL, beta != NULL))
        return false;
    if (x->scale == 0)
        x->scale = 1 / sqrt((double)x->key_size);
    x->q = by_time(x, q, x->q_heads, x->key_size);
    x->k = by_time(x, k, x->kv_heads, x->key_size);
    x->v = by_time(x, v, x->kv_heads, x->value_size);
    x->state = first_state(x, onnx_optional(n, 3));
    if (decay)
        x->decay = by_time(x, decay, x->kv_heads, onnx_static_dim(n, decay, 2) / x->kv_heads);
    if (beta)
        x->beta = by_time(x, beta, onnx_static_dim(n, beta, 2) == 1 ? 1 : x->kv_heads, 1);
    return !n->failed;
}

bool onnx_op_linear_attention(onnx_node *n)
{
    linear x = {.n = n};
    onnx_region r;
    if (!read_linear(&x))
        return false;
    graph_value *past = onnx_optional(n, 3), *trips = onnx_extent(n, x.q, 0);
    onnx_region_open(&r, n, NULL, "position");
    make_round(&x, &r);
    onnx_loop l = {.trips = trips, .carried = &x.state, .n_carried = 1};
    graph_node *loop = n->failed ? NULL : onnx_emit_loop(n, n->f, &l, &r);
    if (!loop)
        return false;
    const dim d[3] = {x.batch, x.time, dim_const(n->c, x.q_heads * x.value_size)};
    const int64_t perm[4] = {1, 0, 2, 3};
    graph_value *y = onnx_reshape(n, onnx_transpose(n, loop->outputs[1], 4, perm), 3, d);
    onnx_alias(n, 0, onnx_cast(n, y, onnx_dtype(onnx_in(n, 0))));
    return onnx_alias(n, 1, onnx_cast(n, loop->outputs[0], onnx_dtype(past ? past : onnx_in(n, 0))));
}
