/* SPDX-License-Identifier: Apache-2.0 */
/* Rounding to 16 bits, and of the shares of a softmax. A result is the integer nearest to the exact quotient x * a / b
 * of integers and scales, ties to even. With vectors in f64, where a product of two scales is exact. Ties are exact
 * there, too: x * a is a half odd number times b then, of 42 bits at most. What is no tie, but nearer to one than
 * 2^-33, may be rounded to the other side; two quotients of such numbers are hardly ever so near. Without vectors
 * nothing is a double: the product is made in 64 bits, by 31 bits of the quotient of the scales, or by as many as
 * there is room for, and rounded. Where that is near to a tie, 62 bits of the quotient decide (TIR_SCALED), of sums
 * and means the scales themselves: numerator and denominator are integers, whose difference there is so small that 32
 * or 64 bits have it, whatever they are. */
#include "te/op/qnn_round.h"

#include <math.h>
#include <string.h>

#define TO_EVEN 6755399441055744.0 /* 1.5 * 2^52: behind this sum f64 has no fraction */
#define FAR     1073741824.0       /* 2^30: beyond every type's range and zero point */

/* A result of 16 bits less its zero point has 17: by a factor of so many bits it is off by 2^(17 - bits). */
#define RESULT_BITS 17
#define LEAST_BITS  22 /* of a factor */

static tir_expr_ref i64(te_graph *g, int64_t v)
{
    return tir_int(g->c, DT_I64, v);
}

static tir_expr_ref f64(te_graph *g, double v)
{
    return tir_float(g->c, DT_F64, v);
}

/* Within +-2^30, in i32. */
static tir_expr_ref near_range(te_graph *g, tir_expr_ref y)
{
    compiler *c = g->c;
    y = tir_min(c, tir_max(c, y, i64(g, -(int64_t)FAR)), i64(g, (int64_t)FAR));
    return tir_cast(c, DT_I32, y);
}

tir_expr_ref qnn_rounded_real(te_graph *g, tir_expr_ref y)
{
    compiler *c = g->c;
    y = tir_min(c, tir_max(c, y, f64(g, -FAR)), f64(g, FAR));
    return tir_cast(c, DT_I32, tir_sub(c, tir_add(c, y, f64(g, TO_EVEN)), f64(g, TO_EVEN)));
}

/* y * 2^-shift of i64; slow where it is near to a tie. */
static tir_expr_ref rounded_i64(te_graph *g, tir_expr_ref y, tir_expr_ref shift, tir_expr_ref reach, tir_expr_ref also,
                                tir_expr_ref slow)
{
    compiler *c = g->c;
    tir_expr_ref one = i64(g, 1), unit = tir_binary(c, TIR_SHL, one, shift);
    tir_expr_ref up = tir_add(c, y, tir_binary(c, TIR_SHR, unit, one));
    tir_expr_ref fast = near_range(g, tir_binary(c, TIR_SHR, up, shift));
    tir_expr_ref part = tir_binary(c, TIR_BITAND, tir_add(c, up, reach), tir_sub(c, unit, one));
    tir_expr_ref near = tir_binary(c, TIR_LE, part, tir_mul(c, reach, i64(g, 2)));
    near = also ? tir_binary(c, TIR_OR, also, near) : near;
    return tir_select(c, tir_call1(c, TIR_RARE, near), slow, fast);
}

/* y * 2^-shift of i64, which is exact. */
static tir_expr_ref rounded_exact(te_graph *g, tir_expr_ref y, int shift)
{
    compiler *c = g->c;
    const int64_t unit = (int64_t)1 << shift;
    tir_expr_ref up = tir_add(c, y, i64(g, unit / 2));
    tir_expr_ref fast = near_range(g, tir_binary(c, TIR_SHR, up, i64(g, shift)));
    tir_expr_ref tie = tir_binary(c, TIR_EQ, tir_binary(c, TIR_BITAND, up, i64(g, unit - 1)), i64(g, 0));
    return tir_select(c, tie, tir_binary(c, TIR_BITAND, fast, tir_int(c, DT_I32, -2)), fast);
}

/* Near the tie of n - 1 and n, both i32: n, where d = 2 * numerator - (2 * n - 1) * denominator is above 0, n - 1
 * below, at 0 the even one. That is n - 1 where d, less 1 if n is odd, is below 0. */
static tir_expr_ref decided(te_graph *g, tir_expr_ref n, tir_expr_ref d)
{
    compiler *c = g->c;
    const dtype dt = d->type.dt;
    d = tir_sub(c, d, tir_cast(c, dt, tir_binary(c, TIR_BITAND, n, tir_int(c, DT_I32, 1))));
    d = tir_binary(c, TIR_SHR, d, tir_int(c, dt, dtype_bits(dt) - 1));
    return tir_add(c, n, tir_cast(c, DT_I32, d));
}

/* 2 * n - 1 */
static tir_expr_ref odd_of(te_graph *g, tir_expr_ref n, dtype dt)
{
    compiler *c = g->c;
    return tir_sub(c, tir_mul(c, tir_cast(c, dt, n), tir_int(c, dt, 2)), tir_int(c, dt, 1));
}

/* The type of d, which is at most `most`: it wraps on the way. DT_NONE: too large. */
static dtype type_of_difference(double most)
{
    return most <= 0x1p30 ? DT_I32 : most <= 0x1p62 ? DT_I64 : DT_NONE;
}

/* n of a y * 2^-shift that is near to a tie. */
static tir_expr_ref upper_of_tie(te_graph *g, tir_expr_ref y, int shift, int64_t reach)
{
    compiler *c = g->c;
    tir_expr_ref up = tir_add(c, y, i64(g, ((int64_t)1 << (shift - 1)) + reach));
    return tir_binary(c, TIR_SHR, up, i64(g, shift));
}

/* A scale as an integer times 2^exponent. */
typedef struct whole_scale {
    int64_t number;
    int exponent;
} whole_scale;

static whole_scale whole_of(double scale)
{
    whole_scale w;
    w.number = (int64_t)ldexp(frexp(scale, &w.exponent), 53);
    w.exponent -= 53;
    while (w.number != 0 && w.number % 2 == 0) {
        w.number /= 2;
        w.exponent++;
    }
    return w;
}

/* w * 2^-least, modulo 2^32 or 2^64. */
static tir_expr_ref from_exponent(te_graph *g, whole_scale w, int least, dtype dt)
{
    const int by = w.exponent - least;
    const uint64_t all = by > 63 ? 0 : (uint64_t)w.number << by;
    return tir_int(g->c, dt, dt == DT_I32 ? (int64_t)(int32_t)(uint32_t)all : (int64_t)all);
}

static int least_exponent(const whole_scale *w, uint32_t count)
{
    int least = w[0].exponent;
    for (uint32_t i = 1; i < count; i++)
        least = w[i].exponent < least ? w[i].exponent : least;
    return least;
}

#define ROUGH 256 /* half of the last bit of f64, in 62 bits of a factor */

/* x * k, where k is exact or rounded to f64 itself. */
static tir_expr_ref scaled_exactly(te_graph *g, tir_expr_ref x, tir_expr_ref k, bool exact)
{
    compiler *c = g->c;
    int64_t bits = 0;
    if (k->kind == TIR_FLOAT)
        memcpy(&bits, &k->u.f, sizeof bits);
    tir_expr_ref args[3] = {tir_cast(c, DT_I64, x), NULL, i64(g, exact ? 0 : ROUGH)};
    args[1] = k->kind == TIR_FLOAT ? i64(g, bits) : tir_cast(c, DT_I64, tir_call1(c, TIR_TO_BITS, k));
    return tir_cast(c, DT_I32, tir_call(c, TIR_SCALED, 3, args));
}

/* The largest shift by which k becomes an integer below 2^bits. */
static int room_for(double k, int bits)
{
    int exponent;
    (void)frexp(k, &exponent);
    return bits - exponent;
}

/* A product by a factor of 31 bits, cut off, is less than 2^(17 - 30) off where the result is in range: the fraction's
 * twelve upper bits tell. */
#define REACH ((int64_t)1 << 20)

/* Shifts for numbers of 31 and of MOST_BITS bits: beyond them the product is below 1/2. */
#define MOST_SHIFT      31
#define MOST_WIDE_SHIFT 47
#define MOST_BITS       47

/* k of f64 in the same words as one of f32 (qnn_round.c), by halves of its bits. */
static qnn_factor factor_of(te_graph *g, tir_expr_ref k, int64_t most)
{
    compiler *c = g->c;
    tir_expr_ref bits = tir_call1(c, TIR_TO_BITS, k), one = tir_int(c, DT_U32, 0x40000000);
    tir_expr_ref low = tir_cast(c, DT_U32, bits);
    tir_expr_ref high = tir_cast(c, DT_U32, tir_binary(c, TIR_SHR, bits, tir_int(c, DT_U64, 32)));
    tir_expr_ref mantissa = tir_binary(c, TIR_BITAND, tir_binary(c, TIR_SHL, high, tir_int(c, DT_U32, 10)),
                                       tir_int(c, DT_U32, 0x3ffffc00));
    mantissa = tir_binary(c, TIR_BITOR, mantissa, tir_binary(c, TIR_SHR, low, tir_int(c, DT_U32, 22)));
    tir_expr_ref shift = tir_cast(c, DT_I32, tir_binary(c, TIR_SHR, high, tir_int(c, DT_U32, 20)));
    shift = tir_sub(c, tir_int(c, DT_I32, 1021), shift);
    shift = tir_min(c, tir_max(c, shift, tir_int(c, DT_I32, 1)), tir_int(c, DT_I32, most));
    return (qnn_factor){tir_cast(c, DT_I32, tir_binary(c, TIR_BITOR, mantissa, one)), shift,
                        tir_binary(c, TIR_GE, high, tir_int(c, DT_U32, 0x3fd00000))};
}

/* x of i64 by such a factor, from the products of its halves, without the low word: less than 1, and 2^(17 - 30) of
 * a result, is lost. */
static tir_expr_ref scaled_wide(te_graph *g, tir_expr_ref x, qnn_factor k, tir_expr_ref slow)
{
    compiler *c = g->c;
    tir_expr_ref word = tir_int(c, DT_U64, 32), low = tir_cast(c, DT_U64, tir_cast(c, DT_U32, x));
    tir_expr_ref high = tir_cast(c, DT_I64, tir_cast(c, DT_I32, tir_binary(c, TIR_SHR, x, i64(g, 32))));
    low = tir_mul(c, low, tir_cast(c, DT_U64, tir_cast(c, DT_U32, k.multiplier)));
    tir_expr_ref y = tir_add(c, tir_mul(c, high, tir_cast(c, DT_I64, k.multiplier)),
                             tir_cast(c, DT_I64, tir_binary(c, TIR_SHR, low, word)));
    tir_expr_ref shift = tir_cast(c, DT_I64, k.shift), unit = tir_binary(c, TIR_SHL, i64(g, 1), shift);
    tir_expr_ref reach = tir_add(c, tir_binary(c, TIR_SHR, unit, i64(g, 12)), i64(g, 2));
    return rounded_i64(g, y, shift, reach, k.large, slow);
}

/* Sums by such a factor are ties often, and exact. */
static bool few_bits(double k)
{
    int exponent;
    const double m = ldexp(frexp(k, &exponent), LEAST_BITS);
    return m == rint(m);
}

tir_expr_ref qnn_scaled_real(te_graph *g, tir_expr_ref x, int bits, tir_expr_ref k, const double *known, bool exact)
{
    compiler *c = g->c;
    if (known && !(*known > 0))
        return tir_int(c, DT_I32, 0);
    tir_expr_ref slow = scaled_exactly(g, x, known ? f64(g, *known) : k, exact);
    if (known && bits <= 31 && *known < 0.25 && *known > 0x1p-63 && !few_bits(*known))
        return qnn_scaled_by(g, x, qnn_known_factor(g, *known), REACH, NULL, slow);
    if (known) {
        x = tir_cast(c, DT_I64, x);
        const int enough = RESULT_BITS + 3 + room_for(*known, 0); /* beyond 2^enough the result is out of range */
        if (enough < bits) {
            bits = enough > 0 ? enough : 0;
            x = tir_max(c, tir_min(c, x, i64(g, (int64_t)1 << bits)), i64(g, -((int64_t)1 << bits)));
        }
        const int shift = room_for(*known, 61 - bits), off = 61 - bits - RESULT_BITS - 1;
        if (shift < 20 || shift > 61 || 61 - bits < LEAST_BITS)
            return slow;
        const double factor = ldexp(*known, shift);
        tir_expr_ref y = tir_mul(c, x, i64(g, llrint(factor)));
        if (factor == rint(factor))
            return rounded_exact(g, y, shift);
        return rounded_i64(g, y, i64(g, shift), i64(g, ((int64_t)1 << shift) >> (off < 20 ? off : 20)), NULL, slow);
    }
    return bits > MOST_BITS ? slow
           : bits > 31      ? scaled_wide(g, x, factor_of(g, k, MOST_WIDE_SHIFT), slow)
                            : qnn_scaled_by(g, x, factor_of(g, k, MOST_SHIFT), REACH, NULL, slow);
}

tir_expr_ref qnn_mean_real(te_graph *g, tir_expr_ref sum, tir_expr_ref count, int64_t most, double xs, double ys)
{
    compiler *c = g->c;
    const double k = xs / ys;
    const whole_scale w[2] = {whole_of(xs), whole_of(ys)};
    const int shift = room_for(k, 30), least = least_exponent(w, 2);
    const int64_t reach = most * 65536 + ((int64_t)1 << (shift > 20 ? shift - 20 : 0));
    const double far = 2.0 * (double)reach * (double)most * (double)w[1].number;
    const dtype dt = type_of_difference(ldexp(far, w[1].exponent - least - shift));
    int64_t n;
    if (shift < 16 || shift > 60 || reach >= (int64_t)1 << (shift - 2) || dt == DT_NONE) {
        const double each = tir_is_int(count, &n) && n > 0 ? xs / (ys * (double)n) : 0;
        return each > 0 ? qnn_scaled_real(g, sum, 31, NULL, &each, false) : NULL;
    }
    tir_expr_ref half = tir_binary(c, TIR_SHR, count, tir_int(c, DT_I32, 1));
    tir_expr_ref factor = tir_add(c, half, tir_int(c, DT_I32, llrint(ldexp(k, shift))));
    factor = tir_binary(c, TIR_DIV, factor, count);
    tir_expr_ref y = tir_mul(c, tir_cast(c, DT_I64, sum), tir_cast(c, DT_I64, factor));
    tir_expr_ref above = upper_of_tie(g, y, shift, reach);
    tir_expr_ref numerator = tir_mul(c, tir_mul(c, tir_cast(c, dt, sum), tir_int(c, dt, 2)),
                                     from_exponent(g, w[0], least, dt));
    tir_expr_ref denominator = tir_mul(c, tir_cast(c, dt, count), from_exponent(g, w[1], least, dt));
    tir_expr_ref d = tir_sub(c, numerator, tir_mul(c, odd_of(g, above, dt), denominator));
    tir_expr_ref slow = decided(g, near_range(g, above), d);
    return rounded_i64(g, y, i64(g, shift), i64(g, reach), NULL, slow);
}

/* --- shares of a sum --- */

#define SHARE_ROUNDER 12582912.0 /* 1.5 * 2^23: behind this sum the low bits of f32 are an integer */

static tir_expr_ref mantissa_of(te_graph *g, tir_expr_ref x)
{
    compiler *c = g->c;
    tir_expr_ref bits = tir_binary(c, TIR_BITAND, tir_call1(c, TIR_TO_BITS, x), tir_int(c, DT_U32, 0x7fffff));
    return tir_cast(c, DT_I64, tir_binary(c, TIR_BITOR, bits, tir_int(c, DT_U32, 0x800000)));
}

static tir_expr_ref exponent_of(te_graph *g, tir_expr_ref x)
{
    compiler *c = g->c;
    return tir_cast(c, DT_I32, tir_binary(c, TIR_SHR, tir_call1(c, TIR_TO_BITS, x), tir_int(c, DT_U32, 23)));
}

/* Near a tie part and whole are normal numbers, no more than 2^25 apart. The quotient of their mantissas q and a tie
 * differ by 2^-50 * q or more, where they do: a double tells them apart. */
tir_expr_ref qnn_share(te_graph *g, tir_expr_ref y, int bits, tir_expr_ref part, int64_t steps, tir_expr_ref whole)
{
    compiler *c = g->c;
    const int64_t reach = 1;
    y = tir_call1(c, TIR_TO_BITS, tir_add(c, y, tir_float(c, DT_F32, SHARE_ROUNDER)));
    y = tir_cast(c, DT_I32, tir_binary(c, TIR_BITAND, y, tir_int(c, DT_U32, 0x3fffff)));
    tir_expr_ref above = tir_add(c, y, tir_int(c, DT_I32, ((int64_t)1 << (bits - 1)) + reach));
    above = tir_binary(c, TIR_SHR, above, tir_int(c, DT_I32, bits));
    tir_expr_ref apart = tir_sub(c, exponent_of(g, whole), exponent_of(g, part));
    apart = tir_min(c, tir_max(c, apart, tir_int(c, DT_I32, 0)), tir_int(c, DT_I32, 31));
    tir_expr_ref denominator = tir_binary(c, TIR_SHL, mantissa_of(g, whole), tir_cast(c, DT_I64, apart));
    tir_expr_ref d = tir_sub(c, tir_mul(c, mantissa_of(g, part), i64(g, 2 * steps)),
                             tir_mul(c, odd_of(g, above, DT_I64), denominator));
    return qnn_rounded_fixed(g, y, bits, reach, decided(g, above, d));
}

/* --- sums and products --- */

tir_expr_ref qnn_sum_real(te_graph *g, const qnn_reals *v, tir_expr_ref a, tir_expr_ref b)
{
    compiler *c = g->c;
    tir_expr_ref s = tir_add(c, tir_mul(c, tir_cast(c, DT_F64, a), tir_cast(c, DT_F64, v->a_scale)),
                             tir_mul(c, tir_cast(c, DT_F64, b), tir_cast(c, DT_F64, v->b_scale)));
    tir_expr_ref slow = qnn_rounded_real(g, tir_binary(c, TIR_DIV, s, tir_cast(c, DT_F64, v->y_scale)));
    const double ka = v->a / v->y, kb = v->b / v->y;
    const int shift = room_for(ka > kb ? ka : kb, 61 - 18);
    if (!v->in_integers || !v->known || shift < 24 || shift > 61)
        return slow;
    const int64_t reach = (int64_t)1 << 18;
    const whole_scale w[3] = {whole_of(v->a), whole_of(v->b), whole_of(v->y)};
    const int least = least_exponent(w, 3);
    const dtype dt = type_of_difference(ldexp(2.0 * (double)reach * (double)w[2].number,
                                              w[2].exponent - least - shift));
    if (dt == DT_NONE)
        return slow;
    tir_expr_ref y = tir_add(c, tir_mul(c, tir_cast(c, DT_I64, a), i64(g, llrint(ldexp(ka, shift)))),
                             tir_mul(c, tir_cast(c, DT_I64, b), i64(g, llrint(ldexp(kb, shift)))));
    tir_expr_ref numerator = tir_add(c, tir_mul(c, tir_cast(c, dt, a), from_exponent(g, w[0], least - 1, dt)),
                                     tir_mul(c, tir_cast(c, dt, b), from_exponent(g, w[1], least - 1, dt)));
    tir_expr_ref above = upper_of_tie(g, y, shift, reach);
    tir_expr_ref denominator = from_exponent(g, w[2], least, dt);
    tir_expr_ref d = tir_sub(c, numerator, tir_mul(c, odd_of(g, above, dt), denominator));
    slow = decided(g, near_range(g, above), d);
    return rounded_i64(g, y, i64(g, shift), i64(g, reach), NULL, slow);
}

tir_expr_ref qnn_product_real(te_graph *g, const qnn_reals *v, tir_expr_ref a, tir_expr_ref b)
{
    compiler *c = g->c;
    tir_expr_ref x = tir_mul(c, tir_cast(c, DT_I64, a), tir_cast(c, DT_I64, b));
    tir_expr_ref p = tir_mul(c, tir_cast(c, DT_F64, v->a_scale), tir_cast(c, DT_F64, v->b_scale));
    tir_expr_ref y = tir_mul(c, tir_cast(c, DT_F64, x), p);
    tir_expr_ref slow = qnn_rounded_real(g, tir_binary(c, TIR_DIV, y, tir_cast(c, DT_F64, v->y_scale)));
    const double scale = v->a * v->b, k = scale / v->y;
    const bool exact = fma(k, v->y, -scale) == 0;
    return v->in_integers && v->known ? qnn_scaled_real(g, x, 32, NULL, &k, exact) : slow;
}
