/* SPDX-License-Identifier: Apache-2.0 */
/* Rounding to 16 bits. A result is the integer nearest to the exact quotient x * a / b of integers and scales, ties to
 * even: in f64, where a product of two scales is exact. Ties are exact there, too: x * a is a half odd number times b
 * then, of 42 bits at most. What is no tie, but nearer to one than 2^-33, may be rounded to the other side; two
 * quotients of such numbers are hardly ever so near. Without vectors the product is made in 64 bits, by 31 bits of the
 * quotient of the scales, or by as many as there is room for; where that is near to a tie, f64 decides. */
#include "te/op/qnn_round.h"

#include <math.h>

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
    return tir_select(c, also ? tir_binary(c, TIR_OR, also, near) : near, slow, fast);
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

tir_expr_ref qnn_scaled_real(te_graph *g, tir_expr_ref x, int bits, tir_expr_ref k, const double *known,
                             tir_expr_ref slow)
{
    compiler *c = g->c;
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

tir_expr_ref qnn_mean_real(te_graph *g, tir_expr_ref sum, tir_expr_ref count, int64_t most, double k,
                           tir_expr_ref slow)
{
    compiler *c = g->c;
    const int shift = room_for(k, 30);
    const int64_t reach = most * 65536 + ((int64_t)1 << (shift > 20 ? shift - 20 : 0));
    if (shift < 16 || shift > 60 || reach >= (int64_t)1 << (shift - 2))
        return slow;
    tir_expr_ref half = tir_binary(c, TIR_SHR, count, tir_int(c, DT_I32, 1));
    tir_expr_ref factor = tir_add(c, half, tir_int(c, DT_I32, llrint(ldexp(k, shift))));
    factor = tir_binary(c, TIR_DIV, factor, count);
    tir_expr_ref y = tir_mul(c, tir_cast(c, DT_I64, sum), tir_cast(c, DT_I64, factor));
    return rounded_i64(g, y, i64(g, shift), i64(g, reach), NULL, slow);
}

/* --- sums and products --- */

tir_expr_ref qnn_sum_real(te_graph *g, const qnn_reals *v, tir_expr_ref a, tir_expr_ref b)
{
    compiler *c = g->c;
    tir_expr_ref s = tir_add(c, tir_mul(c, tir_cast(c, DT_F64, a), tir_cast(c, DT_F64, v->a_scale)),
                             tir_mul(c, tir_cast(c, DT_F64, b), tir_cast(c, DT_F64, v->b_scale)));
    tir_expr_ref slow = qnn_rounded_real(g, tir_binary(c, TIR_DIV, s, tir_cast(c, DT_F64, v->y_scale)));
    if (!v->in_integers || !v->known)
        return slow;
    const double ka = v->a / v->y, kb = v->b / v->y;
    const int shift = room_for(ka > kb ? ka : kb, 61 - 18);
    if (shift < 24 || shift > 61)
        return slow;
    tir_expr_ref y = tir_add(c, tir_mul(c, tir_cast(c, DT_I64, a), i64(g, llrint(ldexp(ka, shift)))),
                             tir_mul(c, tir_cast(c, DT_I64, b), i64(g, llrint(ldexp(kb, shift)))));
    return rounded_i64(g, y, i64(g, shift), i64(g, (int64_t)1 << 18), NULL, slow);
}

tir_expr_ref qnn_product_real(te_graph *g, const qnn_reals *v, tir_expr_ref a, tir_expr_ref b)
{
    compiler *c = g->c;
    tir_expr_ref x = tir_mul(c, tir_cast(c, DT_I64, a), tir_cast(c, DT_I64, b));
    tir_expr_ref p = tir_mul(c, tir_cast(c, DT_F64, v->a_scale), tir_cast(c, DT_F64, v->b_scale));
    tir_expr_ref y = tir_mul(c, tir_cast(c, DT_F64, x), p);
    tir_expr_ref slow = qnn_rounded_real(g, tir_binary(c, TIR_DIV, y, tir_cast(c, DT_F64, v->y_scale)));
    const double k = v->a * v->b / v->y;
    return v->in_integers && v->known ? qnn_scaled_real(g, x, 32, NULL, &k, slow) : slow;
}
