/* SPDX-License-Identifier: Apache-2.0 */
/* Importers of random numbers: compositions over random_like, whose numbers are the same in each run. Where nothing
 * states a seed the node's name does. Dropout with a seed gives NumPy's numbers (RandomState), as ONNX's own reference
 * does, which are made when the model is read; then its shape has to be known. */
#include "frontend/onnx/onnx_import.h"

#include <string.h>

#define MOST_NUMBERS (1 << 24) /* of a dropout with a seed */

/* --- numbers from 0 to 1 --- */

int64_t onnx_seed_of(onnx_node *n)
{
    const double seed = onnx_attr_float(n, "seed", 0);
    uint64_t h = 14695981039346656037u;
    if (onnx_has_attr(n, "seed")) {
        int64_t bits = 0;
        memcpy(&bits, &seed, sizeof bits);
        return bits;
    }
    for (const char *s = n->n_out && n->out_names[0] ? n->out_names[0] : ""; *s; s++)
        h = (h ^ (uint8_t)*s) * 1099511628211u;
    return (int64_t)h;
}

static graph_value *uniform(onnx_node *n, graph_value *like, dtype dt, int64_t seed)
{
    attr a[2] = {attr_dtype(n->c, "dtype", dt), attr_int(n->c, "seed", seed)};
    return onnx_emit(n, ONNX_ARGS("random_like", 2, a, like));
}

/* By the method of Box and Muller, from two numbers each. */
static graph_value *normal(onnx_node *n, graph_value *like, dtype dt, int64_t seed)
{
    graph_value *one = onnx_const_float(n, dt, 1), *u = uniform(n, like, dt, seed);
    graph_value *radius = onnx_unary(n, "log", onnx_binary(n, "subtract", one, u));
    radius = onnx_unary(n, "sqrt", onnx_binary(n, "multiply", radius, onnx_const_float(n, dt, -2)));
    graph_value *turn = onnx_binary(n, "multiply", uniform(n, like, dt, seed ^ 0x5deece66d),
                                    onnx_const_float(n, dt, 6.283185307179586));
    return onnx_binary(n, "multiply", radius, onnx_unary(n, "cos", turn));
}

/* factor x + shift as result 0, of type dt. */
static bool placed(onnx_node *n, graph_value *x, double factor, double shift, dtype dt)
{
    x = onnx_binary(n, "multiply", x, onnx_const_like(n, x, factor));
    x = onnx_binary(n, "add", x, onnx_const_like(n, x, shift));
    return onnx_alias(n, 0, onnx_cast(n, x, dt));
}

/* The shape of the operand, or of the attribute. */
static graph_value *shaped(onnx_node *n)
{
    const int64_t *dims;
    if (onnx_optional(n, 0))
        return onnx_in(n, 0);
    const uint32_t rank = onnx_attr_ints(n, "shape", &dims);
    int64_t count = 0;
    if (rank > TYPE_MAX_RANK || !tensor_count(rank, dims, &count))
        return onnx_refuse(n, DIAG_FORMAT, "the shape is none");
    return onnx_constant(n, tensor_splat(n->c, DT_U8, rank, dims, arena_array(&n->c->mem, uint8_t, 1)));
}

static dtype asked_dtype(onnx_node *n)
{
    const graph_value *x = onnx_optional(n, 0);
    const dtype dt = onnx_attr_dtype(n, "dtype", x && dtype_is_float(onnx_dtype(x)) ? onnx_dtype(x) : DT_F32);
    if (!dtype_is_float(dt) || !dtype_usable(dt))
        onnx_fail(n, DIAG_TYPE, "random numbers of type %s are not supported", dtype_name(dt));
    return dt;
}

static dtype precise(dtype dt)
{
    return dt == DT_F64 ? DT_F64 : DT_F32;
}

bool onnx_op_random_uniform(onnx_node *n)
{
    const dtype dt = asked_dtype(n);
    const double low = onnx_attr_float(n, "low", 0), high = onnx_attr_float(n, "high", 1);
    graph_value *like = shaped(n);
    return !n->failed && placed(n, uniform(n, like, precise(dt), onnx_seed_of(n)), high - low, low, dt);
}

bool onnx_op_random_normal(onnx_node *n)
{
    const dtype dt = asked_dtype(n);
    const double mean = onnx_attr_float(n, "mean", 0), scale = onnx_attr_float(n, "scale", 1);
    graph_value *like = shaped(n);
    return !n->failed && placed(n, normal(n, like, precise(dt), onnx_seed_of(n)), scale, mean, dt);
}

bool onnx_op_bernoulli(onnx_node *n)
{
    graph_value *p = onnx_in(n, 0);
    const dtype dt = onnx_attr_dtype(n, "dtype", onnx_dtype(p)), by = precise(onnx_dtype(p));
    graph_value *u = uniform(n, p, by, onnx_seed_of(n));
    return onnx_alias(n, 0, onnx_cast(n, onnx_binary(n, "less", u, onnx_cast(n, p, by)), dt));
}

/* The largest of logarithms with noise of Gumbel's distribution is a draw by their weights. */
bool onnx_op_multinomial(onnx_node *n)
{
    graph_value *x = onnx_cast(n, onnx_in(n, 0), DT_F32);
    const int64_t count = onnx_attr_int(n, "sample_size", 1);
    const dtype dt = onnx_attr_dtype(n, "dtype", DT_I32);
    if (onnx_rank(x) != 2 || count < 1)
        return onnx_fail(n, DIAG_TYPE, "the logarithms must have two dimensions, and samples be taken");
    const int64_t axis = 1, d[3] = {onnx_static_dim(n, x, 0), count, onnx_static_dim(n, x, 1)};
    x = onnx_expand_dims(n, x, 1, &axis);
    graph_value *y = onnx_emit(n, ONNX_ARGS("broadcast_to", 0, NULL, x, onnx_const_ints(n, 3, d)));
    graph_value *u = onnx_binary(n, "subtract", onnx_const_float(n, DT_F32, 1), uniform(n, y, DT_F32, onnx_seed_of(n)));
    graph_value *e = onnx_unary(n, "negative", onnx_unary(n, "log", u));
    y = onnx_binary(n, "subtract", y, onnx_unary(n, "log", e));
    attr a[2] = {attr_int(n->c, "axis", -1), attr_int(n->c, "keepdims", 0)};
    return onnx_alias(n, 0, onnx_cast(n, onnx_emit(n, ONNX_ARGS("argmax", 2, a, y)), dt));
}

/* --- NumPy's legacy generator --- */

#define STATE 624

typedef struct twister {
    uint32_t state[STATE];
    uint32_t at;
} twister;

static void twister_seed(twister *t, uint32_t seed)
{
    for (uint32_t i = 0; i < STATE; i++) {
        t->state[i] = seed;
        seed = 1812433253u * (seed ^ seed >> 30) + i + 1;
    }
    t->at = STATE;
}

static uint32_t twister_next(twister *t)
{
    if (t->at == STATE) {
        for (uint32_t i = 0; i < STATE; i++) {
            uint32_t y = (t->state[i] & 0x80000000u) | (t->state[(i + 1) % STATE] & 0x7fffffffu);
            t->state[i] = t->state[(i + 397) % STATE] ^ y >> 1 ^ (y & 1u ? 0x9908b0dfu : 0u);
        }
        t->at = 0;
    }
    uint32_t y = t->state[t->at++];
    y ^= y >> 11;
    y ^= y << 7 & 0x9d2c5680u;
    y ^= y << 15 & 0xefc60000u;
    return y ^ y >> 18;
}

static graph_value *numpy_uniform(onnx_node *n, const shape *s, int64_t seed)
{
    int64_t d[TYPE_MAX_RANK], count = shape_count(*s);
    if (!shape_get(*s, d) || count > MOST_NUMBERS)
        return onnx_refuse(n, DIAG_UNSUPPORTED, "a dropout with a seed needs a shape that is known, of at most %d "
                                                "elements; fix it with --dim", MOST_NUMBERS);
    double *u = arena_try_alloc(&n->c->mem, (size_t)count * sizeof *u + 1, 64);
    if (!u)
        return onnx_refuse(n, DIAG_ENVIRONMENT, "not enough memory");
    twister *t = arena_new(&n->c->mem, twister);
    twister_seed(t, (uint32_t)seed);
    for (int64_t i = 0; i < count; i++) {
        uint32_t a = twister_next(t) >> 5, b = twister_next(t) >> 6;
        u[i] = (a * 67108864.0 + b) / 9007199254740992.0;
    }
    return onnx_constant(n, tensor_dense(n->c, DT_F64, (uint32_t)s->rank, d, u));
}

/* --- dropout while training --- */

/* What is kept is scaled by 1 / (1 - ratio); `training` NULL: it is on. */
bool onnx_dropout_training(onnx_node *n, graph_value *training, graph_value *ratio)
{
    graph_value *x = onnx_in(n, 0), *one, *u;
    const dtype dt = onnx_dtype(x), by = precise(dt);
    u = onnx_has_attr(n, "seed") ? numpy_uniform(n, &x->type.shape, onnx_attr_int(n, "seed", 0))
                                 : uniform(n, x, DT_F32, onnx_seed_of(n));
    ratio = ratio ? onnx_reshape_ints(n, ratio, 0, NULL) : onnx_const_float(n, DT_F32, 0.5);
    graph_value *keep = onnx_unary(n, "logical_not", onnx_binary(n, "less", u, onnx_cast(n, ratio, onnx_dtype(u))));
    one = onnx_const_float(n, by, 1);
    graph_value *scale = onnx_binary(n, "divide", one, onnx_binary(n, "subtract", one, onnx_cast(n, ratio, by)));
    if (training) {
        training = onnx_cast(n, onnx_reshape_ints(n, training, 0, NULL), DT_BOOL);
        keep = onnx_binary(n, "logical_or", keep, onnx_unary(n, "logical_not", training));
        scale = onnx_where(n, training, scale, one);
    }
    graph_value *y = onnx_binary(n, "multiply", onnx_cast(n, x, by), onnx_cast(n, keep, by));
    onnx_alias(n, 0, onnx_cast(n, onnx_binary(n, "multiply", y, scale), dt));
    return onnx_alias(n, 1, keep);
}
