/* SPDX-License-Identifier: Apache-2.0 */
/* Curved functions of one number. Of a quantised byte each is a table of 256 entries, made here by the arithmetic that
 * a device has; of 16 bits the straight pieces between such entries. */
#include "frontend/tflite/tflite_compose.h"
#include "frontend/tflite/tflite_fixed.h"
#include "frontend/tflite/tflite_import.h"

#include <math.h>
#include <string.h>

/* --- tables of a byte --- */

graph_value *tflite_by_table(tflite_node *n, graph_value *v, const tflite_scale *x, const tflite_scale *y,
                             tflite_byte_fn fn, const void *ctx)
{
    const int64_t count = 256;
    uint8_t *t = arena_alloc(&n->c->mem, (size_t)count, 1);
    for (int64_t i = 0; i < count; i++) {
        const int64_t code = x->dt == DT_I8 ? (int8_t)(uint8_t)i : i, least = dtype_min_int(y->dt),
                      most = dtype_max_int(y->dt), r = fn(ctx, (int32_t)(code - x->zero));
        t[i] = (uint8_t)(r < least ? least : r > most ? most : r);
    }
    graph_value *in[2] = {v, tflite_const(n, tensor_dense(n->c, y->dt, 1, &count, t), "table")};
    return tflite_emit(n, "qnn.table", 2, in, 0, NULL);
}

/* A function of floats between two scales, as LiteRT makes a table of it. */
typedef struct float_curve {
    float (*fn)(float x);
    float in, steps, least; /* steps: of the result in 1; least: where the function has no number */
    int64_t zero;
} float_curve;

static int64_t float_entry(const void *ctx, int32_t x)
{
    const float_curve *k = ctx;
    volatile float v = k->in * (float)x, t = k->fn(v);
    t = isnan(t) ? k->least : t;
    volatile float scaled = t * k->steps;
    const float y = roundf(scaled) + (float)k->zero;
    return y < -40000 ? -40000 : y > 40000 ? 40000 : (int64_t)y;
}

static graph_value *by_floats(tflite_node *n, graph_value *v, const tflite_scale *x, const tflite_scale *y,
                              float (*fn)(float))
{
    const float_curve k = {fn, x->scale, 1.0f / y->scale, y->scale * (float)(dtype_min_int(y->dt) - y->zero), y->zero};
    return tflite_by_table(n, v, x, y, float_entry, &k);
}

static float logistic_of(float x)
{
    return 1.0f / (1.0f + expf(-x));
}

static float exp_of(float x)
{
    return expf(x);
}

static float log_of(float x)
{
    return x > 0 ? logf(x) : NAN;
}

static float elu_of(float x)
{
    return x < 0 ? expm1f(x) : x;
}

static float gelu_of(float x)
{
    return 0.5f * x * (1.0f + erff(x * 0.70710678118654752440f));
}

static float gelu_near_of(float x)
{
    return 0.5f * x * (1.0f + tanhf(0.7978845608028654f * (x + 0.044715f * x * x * x)));
}

static float tanh_of(float x)
{
    return tanhf(x);
}

/* --- in integers: ABS, SQRT, RSQRT --- */

typedef struct root {
    fixed_scale scale;
    float in, out;
    int64_t zero;
} root;

static int64_t abs_entry(const void *ctx, int32_t x)
{
    const root *r = ctx;
    return fixed_scaled(x < 0 ? -x : x, r->scale) + r->zero;
}

static int64_t sqrt_entry(const void *ctx, int32_t x)
{
    const root *r = ctx;
    const volatile float v = x < 0 ? 0 : r->in * (float)x, root_of = sqrtf(v), y = root_of / r->out;
    return y > 40000 ? 40000 : (int64_t)y + r->zero;
}

/* Of numbers below 0 the kernel ends the run; here they are as 0. */
static int64_t rsqrt_entry(const void *ctx, int32_t x)
{
    const root *r = ctx;
    if (x <= 0)
        return INT32_MAX;
    fixed_scale inverse = fixed_inverse_root(x), out = r->scale;
    inverse.shift += TFLITE_ROOT_BITS;
    out.shift -= TFLITE_ROOT_BITS;
    return fixed_scaled(fixed_scaled(1, inverse), out) + r->zero;
}

static double wide_exp(double x, bool narrow)
{
    (void)narrow;
    return (double)expf((float)x);
}

static double wide_log(double x, bool narrow)
{
    (void)narrow;
    return (double)log_of((float)x);
}

/* Of numbers that are not above 0 as much as 16 bits hold. */
static double wide_rsqrt(double x, bool narrow)
{
    const volatile float root_of = sqrtf((float)x);
    return x > 0 ? tflite_as_wide(1 / (double)root_of, narrow) : HUGE_VAL;
}

static const struct {
    const char *target;
    float (*fn)(float);   /* of bytes; NULL: in integers */
    tflite_piece_fn wide; /* of 16 bits, in LiteRT */
} curves[] = {{"exp", exp_of, wide_exp}, {"log", log_of, wide_log}, {"elu", elu_of, NULL},
              {"sqrt reciprocal", NULL, wide_rsqrt}};

/* Numbers of 16 bits to such; inverse: of RSQRT's scales. */
static graph_value *curve_of_halves(tflite_node *n, graph_value *v, const tflite_scale *x, const tflite_scale *y,
                                    double inverse)
{
    tflite_pieces p = {NULL, (double)x->scale, (double)x->zero, (double)y->scale, (double)y->zero, true};
    for (size_t i = 0; i < sizeof curves / sizeof *curves; i++)
        if (strcmp(n->row->target, curves[i].target) == 0)
            p.fn = curves[i].wide;
    if (!p.fn || (p.fn == wide_rsqrt && !tflite_like_litert(n)))
        return tflite_wide_rsqrt(n, v, x, y, inverse);
    return tflite_cast(n, tflite_on_pieces(n, &p, tflite_cast(n, v, DT_I32)), y->dt);
}

graph_value *tflite_curve_of_numbers(tflite_node *n, graph_value *v)
{
    const char *target = n->row->target;
    tflite_scale x, y;
    if (!tflite_read_pair(n, &x, &y))
        return v;
    const bool is_abs = strcmp(target, "abs") == 0, is_sqrt = strcmp(target, "sqrt") == 0;
    const double ratio = tflite_factor(tflite_like_litert(n), x.scale, 1, y.scale);
    if (is_abs && dtype_bits(x.dt) == 16)
        return tflite_rescaled(n, tflite_unary(n, "abs", tflite_centered(n, v, &x)), ratio, 65536, &y);
    const float narrow = 1.0f / (sqrtf(x.scale) * y.scale); /* LiteRT's, in 32 bits */
    const double inverse = tflite_like_litert(n) ? (double)narrow : 1 / (sqrt((double)x.scale) * (double)y.scale);
    if (dtype_bits(x.dt) == 16 && y.dt == x.dt)
        return curve_of_halves(n, v, &x, &y, inverse);
    if (dtype_bits(x.dt) != 8 || dtype_bits(y.dt) != 8) {
        (void)tflite_fail(n, DIAG_UNSUPPORTED, "%s to %s is not supported", dtype_name(x.dt), dtype_name(y.dt));
        return v;
    }
    for (size_t i = 0; i < sizeof curves / sizeof *curves; i++)
        if (strcmp(target, curves[i].target) == 0 && curves[i].fn)
            return by_floats(n, v, &x, &y, curves[i].fn);
    const root r = {fixed_of(is_abs ? ratio : inverse), x.scale, y.scale, y.zero};
    return tflite_by_table(n, v, &x, &y, is_abs ? abs_entry : is_sqrt ? sqrt_entry : rsqrt_entry, &r);
}

bool tflite_op_gelu(tflite_node *n)
{
    const tfl_gelu_options *o = n->options;
    graph_value *v;
    bool image;
    tflite_scale x, y;
    if (!tflite_in_one_form(n, 1, &v, &image))
        return false;
    if (tflite_is_int(n, 0))
        return tflite_read_pair(n, &x, &y) &&
               tflite_result_as(n, 0, by_floats(n, v, &x, &y, o->approximate ? gelu_near_of : gelu_of), image);
    const attr how = attr_string(n->c, "approximate", o->approximate ? "tanh" : "none");
    return tflite_result_as(n, 0, tflite_emit(n, "gelu", 1, &v, 1, &how), image);
}

/* --- LOGISTIC and TANH of 16 bits --- */

/* logistic at 24ths, from 0, in steps of 2^-16; halfway between the curve and its chords. */
static const tensor_data *logistic_pieces(compiler *c)
{
    const int64_t count = 257;
    int32_t *t = arena_array(&c->mem, int32_t, (size_t)count);
    double g[258];
    for (int i = 0; i < 258; i++)
        g[i] = 65536.0 / (1.0 + exp(-(double)(i - 1) / 24.0));
    for (int i = 0; i < 255; i++)
        t[i] = (int32_t)floor(g[i + 1] - ((g[i] + g[i + 2]) / 2 - g[i + 1]) / 8 + 0.5);
    t[255] = t[256] = 65535;
    return tensor_dense(c, DT_I32, 1, &count, t);
}

static graph_value *chosen(tflite_node *n, graph_value *condition, graph_value *yes, graph_value *no)
{
    return tflite_emit(n, "where", 3, (graph_value *[]){condition, yes, no}, 0, NULL);
}

/* The data in 12ths of 2^-12, or for tanh, of which logistic has twice the argument, half of it; then the piece, and
 * what is left of the way along it. */
static graph_value *wide_curve(tflite_node *n, graph_value *v, const tflite_scale *x, bool is_tanh)
{
    const int exponent = ilogb((double)x->scale) + 12;
    const bool power = ldexp(1.0, exponent - 12) == (double)x->scale && (exponent == 0 || (is_tanh && exponent == 1));
    int left = power ? exponent : 0, factor = 3, down = 0;
    double m = (double)x->scale * 4096.0 * 3.0;
    if (power) {
        factor = 3 << left;
    } else {
        for (; m <= 32767.0 / 2.0 && down <= 30; down++)
            m *= 2.0;
        factor = (int)m;
    }
    graph_value *zero = tflite_i32(n, 0);
    v = tflite_binary(n, "multiply", tflite_centered(n, v, x), tflite_i32(n, factor));
    if (down > 0)
        v = compose_down(n, tflite_binary(n, "add", v, tflite_i32(n, (int64_t)1 << (down - 1))), down);
    const int bits = is_tanh ? 8 : 9;
    graph_value *from_zero = tflite_binary(n, "greater_equal", v, zero), *amount = tflite_unary(n, "abs", v);
    graph_value *piece = tflite_binary(n, "minimum", compose_down(n, amount, bits), tflite_i32(n, 255));
    graph_value *pieces = tflite_const(n, logistic_pieces(n->c), "pieces");
    graph_value *first[2] = {pieces, piece}, *last[2] = {pieces, tflite_binary(n, "add", piece, tflite_i32(n, 1))};
    graph_value *a = tflite_emit(n, "take", 2, first, 0, NULL), *b = tflite_emit(n, "take", 2, last, 0, NULL);
    graph_value *way = tflite_binary(n, "bitwise_and", amount, tflite_i32(n, (1 << bits) - 1));
    graph_value *r = tflite_binary(n, "multiply", a, tflite_i32(n, 1 << bits));
    r = tflite_binary(n, "add", r, tflite_binary(n, "multiply", way, tflite_binary(n, "subtract", b, a)));
    graph_value *beyond = tflite_binary(n, "equal", piece, tflite_i32(n, 255));
    r = chosen(n, beyond, tflite_i32(n, is_tanh ? (int64_t)65535 << 8 : (int64_t)32767 << 10), r);
    graph_value *above, *below;
    if (is_tanh) {
        above = compose_down(n, tflite_binary(n, "subtract", r, tflite_i32(n, (1 << 23) - 128)), 8);
        below = compose_down(n, tflite_binary(n, "subtract", tflite_i32(n, (1 << 23) + 127), r), 8);
    } else {
        above = compose_down(n, tflite_binary(n, "add", r, tflite_i32(n, 512)), 10);
        below = compose_down(n, tflite_binary(n, "subtract", tflite_i32(n, (1 << 25) + 511), r), 10);
    }
    return tflite_clipped(n, chosen(n, from_zero, above, below), INT16_MIN, INT16_MAX, DT_I16);
}

/* --- LOGISTIC, TANH, HARD_SWISH --- */

typedef struct curve {
    fixed_scale in; /* to Q4.27 */
    int32_t radius; /* beyond it the result is at its end */
    bool is_tanh;
} curve;

static int64_t curve_entry(const void *ctx, int32_t x)
{
    const curve *k = ctx;
    if (x <= -k->radius)
        return INT8_MIN;
    if (x >= k->radius)
        return INT8_MAX;
    const int32_t q = fixed_scaled(x, k->in);
    return k->is_tanh ? fixed_divided(fixed_tanh(q), 24) : fixed_divided(fixed_logistic(q), 23) - 128;
}

static bool import_curve(tflite_node *n, const char *op, bool is_tanh, float scale, int64_t zero)
{
    graph_value *v;
    bool image;
    tflite_scale x, y;
    if (!tflite_in_one_form(n, 1, &v, &image))
        return false;
    if (!tflite_is_int(n, 0))
        return tflite_result_as(n, 0, tflite_unary(n, op, v), image);
    if (!tflite_read_pair(n, &x, &y))
        return false;
    zero += x.dt == DT_U8 ? 128 : 0;
    scale = x.dt == DT_I16 ? 1.0f / 32768 : scale;
    zero = x.dt == DT_I16 ? 0 : zero;
    if (y.dt != x.dt || y.scale != scale || y.zero != zero)
        return tflite_fail(n, DIAG_FORMAT, "its result must be %s with the scale %g and the zero point %lld",
                           dtype_name(x.dt), (double)scale, (long long)zero);
    if (x.dt == DT_I16)
        return tflite_result_as(n, 0, wide_curve(n, v, &x, is_tanh), image);
    if (x.dt == DT_U8 || tflite_like_litert(n))
        return tflite_result_as(n, 0, by_floats(n, v, &x, &y, is_tanh ? tanh_of : logistic_of), image);
    curve k = {.in = fixed_of((double)x.scale * 0x1p27), .is_tanh = is_tanh};
    const double radius = floor(ldexp(15.0, 27 - k.in.shift));
    k.radius = radius > 1000 ? 1000 : (int32_t)radius; /* no number of a byte is farther from its zero point */
    return tflite_result_as(n, 0, tflite_by_table(n, v, &x, &y, curve_entry, &k), image);
}

bool tflite_op_logistic(tflite_node *n)
{
    return import_curve(n, "sigmoid", false, 1.0f / 256, -128);
}

bool tflite_op_tanh(tflite_node *n)
{
    return import_curve(n, "tanh", true, 1.0f / 128, 0);
}

typedef struct swish {
    int16_t out, relu; /* multipliers of 16 bits */
    int out_shift, relu_shift;
    int64_t zero;
} swish;

static int16_t saturated_shift(int32_t x, int left)
{
    const int64_t y = (int64_t)x * ((int64_t)1 << left);
    return (int16_t)(y > INT16_MAX ? INT16_MAX : y < INT16_MIN ? INT16_MIN : y);
}

/* x * relu6(x + 3) / 6, the second factor from -1 to 1 first. */
static int64_t swish_entry(const void *ctx, int32_t x)
{
    const swish *s = ctx;
    const int16_t high = (int16_t)(x * 128);
    const int16_t on_out = fixed_product16(high, s->out);
    int16_t r = high;
    if (s->relu_shift > 0)
        r = saturated_shift(r, s->relu_shift - 1);
    r = fixed_product16(r, s->relu);
    if (s->relu_shift > 0)
        r = saturated_shift(r, 1);
    if (s->relu_shift < 0)
        r = (int16_t)fixed_divided(r, -s->relu_shift);
    r = (int16_t)((r + (1 << 15)) >> 1);
    const int16_t product = (int16_t)((int32_t)r * on_out / (1 << 15));
    return fixed_divided(product, -s->out_shift) + s->zero;
}

bool tflite_op_hard_swish(tflite_node *n)
{
    graph_value *v;
    bool image;
    tflite_scale x, y;
    if (!tflite_in_one_form(n, 1, &v, &image))
        return false;
    if (!tflite_is_int(n, 0))
        return tflite_result_as(n, 0, tflite_unary(n, "hard_swish", v), image);
    if (!tflite_read_pair(n, &x, &y))
        return false;
    const bool narrow = tflite_like_litert(n);
    const fixed_scale out = fixed_of(tflite_factor(narrow, x.scale, 0x1p-7f, y.scale)),
                      relu = fixed_of(tflite_factor(narrow, x.scale, 0x1p-7f, 3 * 0x1p-15f));
    const swish s = {fixed_narrow(out.multiplier), fixed_narrow(relu.multiplier), out.shift, relu.shift, y.zero};
    if (out.shift > 0 || relu.shift > 15 || relu.shift < -31)
        return tflite_fail(n, DIAG_UNSUPPORTED, "the scales %g and %g are too far apart", (double)x.scale,
                           (double)y.scale);
    return tflite_result_as(n, 0, tflite_by_table(n, v, &x, &y, swish_entry, &s), image);
}
