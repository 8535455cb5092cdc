/* SPDX-License-Identifier: Apache-2.0 */
/* Rounding of sums without floats. Exactly: what onnxruntime makes of the sum acc and its scale k in f32,
 * rint(f32(acc) * k), has two roundings, which move a number below 2^b by less than 2^(b-23), whatever bits acc has; so
 * do the product and the sum of rint(acc * k + zero), where acc has 24 bits and is not rounded itself. So the product
 * of acc and k's 24 bits of mantissa in 64 bits, which is exact, is rounded, unless it lies so close to the middle of
 * two integers that the two could differ: then the float formula decides, which is rare. 2.4e8 sums for 8 and 16 bits
 * and 1e8 products, scales of all sizes, ties and their neighbors among them: no difference. */
#include "te/op/qnn_round.h"

#include <math.h>
#include <string.h>

#define LEAST_SHIFT 1
#define MOST_SHIFT  31
/* k as 32 bits, from here on (1/4, negative, no number): the fraction is not in the product's low word. */
#define LARGE_SCALE 0x3e800000
#define FAR         262144.0 /* 2^18: beyond every type's range and zero point */
#define MOST_SUM    (1 << 30) /* beyond every type's range; with a zero point still within 32 bits */
#define TO_EVEN     12582912.0 /* 1.5 * 2^23: behind this sum f32 has no fraction */

static tir_expr_ref i32(te_graph *g, int64_t v)
{
    return tir_int(g->c, DT_I32, v);
}

static tir_expr_ref u32(te_graph *g, int64_t v)
{
    return tir_int(g->c, DT_U32, v);
}

tir_expr_ref qnn_saturated(te_graph *g, tir_expr_ref v, dtype from, dtype dt)
{
    compiler *c = g->c;
    bool real = dtype_is_float(from);
    int64_t lo = dtype_min_int(dt), hi = dtype_max_int(dt);
    v = tir_max(c, v, real ? tir_float(c, from, (double)lo) : tir_int(c, from, lo));
    v = tir_min(c, v, real ? tir_float(c, from, (double)hi) : tir_int(c, from, hi));
    return tir_cast(c, dt, v);
}

tir_expr_ref qnn_moved(te_graph *g, dtype dt, tir_expr_ref x, tir_expr_ref zero)
{
    return zero ? tir_add(g->c, x, tir_cast(g->c, dt, zero)) : x;
}

static tir_expr_ref not_far(te_graph *g, tir_expr_ref x)
{
    compiler *c = g->c;
    return tir_min(c, tir_max(c, x, tir_float(c, DT_F32, -FAR)), tir_float(c, DT_F32, FAR));
}

tir_expr_ref qnn_rounded_near(te_graph *g, tir_expr_ref x)
{
    compiler *c = g->c;
    x = not_far(g, x);
    tir_expr_ref even = tir_float(c, DT_F32, TO_EVEN);
    return tir_cast(c, DT_I32, tir_sub(c, tir_add(c, x, even), even));
}

/* --- exactly --- */

/* A shift above 31 counts as 31: the product is below 1/2 then as well. */
static qnn_factor parts_of(te_graph *g, tir_expr_ref k)
{
    compiler *c = g->c;
    tir_expr_ref bits = tir_call1(c, TIR_TO_BITS, k), exponent = tir_binary(c, TIR_SHR, bits, u32(g, 23));
    tir_expr_ref mantissa = tir_binary(c, TIR_BITAND, tir_binary(c, TIR_SHL, bits, u32(g, 7)), u32(g, 0x3fffff80));
    tir_expr_ref shift = tir_sub(c, i32(g, 125), tir_cast(c, DT_I32, exponent));
    shift = tir_min(c, tir_max(c, shift, i32(g, LEAST_SHIFT)), i32(g, MOST_SHIFT));
    return (qnn_factor){tir_cast(c, DT_I32, tir_binary(c, TIR_BITOR, mantissa, u32(g, 0x40000000))), shift,
                   tir_binary(c, TIR_GE, bits, u32(g, LARGE_SCALE))};
}

qnn_factor qnn_known_factor(te_graph *g, double k)
{
    int exponent;
    const int64_t multiplier = (int64_t)ldexp(frexp(k, &exponent), 31), shift = -(int64_t)exponent - 1;
    return (qnn_factor){i32(g, multiplier), i32(g, shift > MOST_SHIFT ? MOST_SHIFT : shift), NULL};
}

/* The float formula. What lies between the product and the sum keeps C compilers from contracting them. */
static tir_expr_ref scaled_in_floats(te_graph *g, tir_expr_ref acc, tir_expr_ref k, tir_expr_ref zero, bool inside)
{
    compiler *c = g->c;
    tir_expr_ref y = tir_mul(c, tir_cast(c, DT_F32, acc), k);
    return inside ? qnn_rounded_near(g, qnn_moved(g, DT_F32, not_far(g, y), zero))
                  : qnn_moved(g, DT_I32, qnn_rounded_near(g, y), zero);
}

tir_expr_ref qnn_scaled_exactly(te_graph *g, tir_expr_ref acc, tir_expr_ref k, const float *known, tir_expr_ref zero,
                                bool inside, dtype dt)
{
    tir_expr_ref slow = scaled_in_floats(g, acc, k, zero, inside);
    if (known && !(*known >= 0x1p-126f && *known < 0.25f))
        return slow;
    const int64_t reach = (int64_t)1 << (dtype_bits(dt) + 9); /* of a fraction of 32 bits: 2^(bits - 23) */
    return qnn_scaled_by(g, acc, known ? qnn_known_factor(g, (double)*known) : parts_of(g, k), reach, zero, slow);
}

tir_expr_ref qnn_scaled_by(te_graph *g, tir_expr_ref acc, qnn_factor p, int64_t reach, tir_expr_ref zero,
                           tir_expr_ref slow)
{
    compiler *c = g->c;
    tir_expr_ref product = tir_mul(c, tir_cast(c, DT_I64, acc), tir_cast(c, DT_I64, p.multiplier));
    tir_expr_ref high = tir_cast(c, DT_I32, tir_binary(c, TIR_SHR, product, tir_int(c, DT_I64, 32)));
    tir_expr_ref low = tir_cast(c, DT_U32, product), right = tir_cast(c, DT_U32, p.shift);
    tir_expr_ref left = tir_sub(c, u32(g, 32), right);
    tir_expr_ref fraction = tir_binary(c, TIR_BITOR, tir_binary(c, TIR_SHL, tir_cast(c, DT_U32, high), left),
                                       tir_binary(c, TIR_SHR, low, right));
    tir_expr_ref fast = tir_add(c, tir_binary(c, TIR_SHR, high, p.shift),
                                tir_cast(c, DT_I32, tir_binary(c, TIR_SHR, fraction, u32(g, 31))));
    tir_expr_ref close = tir_binary(c, TIR_LE, tir_sub(c, fraction, u32(g, ((int64_t)1 << 31) - reach)),
                                    u32(g, 2 * reach));
    return tir_select(c, p.large ? tir_binary(c, TIR_OR, p.large, close) : close, slow,
                      qnn_moved(g, DT_I32, fast, zero));
}

tir_expr_ref qnn_is_near_half(te_graph *g, tir_expr_ref y, int bits, int64_t reach)
{
    compiler *c = g->c;
    const int64_t half = (int64_t)1 << (bits - 1);
    tir_expr_ref near = tir_binary(c, TIR_BITAND, tir_add(c, y, i32(g, reach - half)), i32(g, 2 * half - 1));
    return tir_binary(c, TIR_LE, near, i32(g, 2 * reach));
}

tir_expr_ref qnn_rounded_fixed(te_graph *g, tir_expr_ref y, int bits, int64_t reach, tir_expr_ref slow)
{
    compiler *c = g->c;
    tir_expr_ref half = i32(g, (int64_t)1 << (bits - 1));
    tir_expr_ref fast = tir_binary(c, TIR_SHR, tir_add(c, y, half), i32(g, bits));
    return tir_select(c, qnn_is_near_half(g, y, bits, reach), slow, fast);
}

/* --- as TensorFlow Lite --- */

/* x within -most..most: what is beyond stays beyond the range of 16 bits, on its side, with a zero point as well. */
static tir_expr_ref within(te_graph *g, tir_expr_ref x, tir_expr_ref most)
{
    compiler *c = g->c;
    return tir_min(c, tir_max(c, x, tir_sub(c, tir_int(c, x->type.dt, 0), most)), most);
}

/* n within least..most, which numbers of `known` are anyway. */
static tir_expr_ref limited(te_graph *g, tir_expr_ref n, const qnn_fixed_factor *known, int64_t least, int64_t most)
{
    compiler *c = g->c;
    n = known->least < least ? tir_max(c, n, i32(g, least)) : n;
    return known->most > most ? tir_min(c, n, i32(g, most)) : n;
}

static tir_expr_ref rounded_twice(te_graph *g, const qnn_fixed_factor *f, tir_expr_ref acc)
{
    compiler *c = g->c;
    const qnn_fixed_factor minus = {.least = -f->most, .most = -f->least};
    tir_expr_ref left = f->most > 0 ? limited(g, f->shift, f, 0, 30) : i32(g, 0);
    tir_expr_ref right = f->least < 0 ? limited(g, tir_sub(c, i32(g, 0), f->shift), &minus, 0, 31) : i32(g, 0);
    acc = f->up ? within(g, acc, tir_binary(c, TIR_SHR, i32(g, MOST_SUM), left)) : acc;
    acc = f->most > 0 ? tir_binary(c, TIR_SHL, acc, left) : acc;
    acc = tir_call(c, TIR_DOUBLED, 2, (tir_expr_ref[]){acc, f->multiplier});
    return f->least < 0 ? tir_call(c, TIR_SHIFTED, 2, (tir_expr_ref[]){acc, right}) : acc;
}

/* The two roundings add half of the product's unit and half of the result's, which is one unit less below 0; all of
 * them are powers of two, and so is the zero point's, so that floors of floors are one floor. */
tir_expr_ref qnn_scaled_by_word(te_graph *g, const qnn_word_factor *f, tir_expr_ref acc, tir_expr_ref zero)
{
    compiler *c = g->c;
    tir_expr_ref half = i32(g, (int64_t)1 << (f->right - 1));
    half = zero ? tir_add(c, half, tir_mul(c, tir_cast(c, DT_I32, zero), i32(g, (int64_t)1 << f->right))) : half;
    tir_expr_ref more = tir_add(c, half, tir_binary(c, TIR_SHR, f->power, i32(g, 2)));
    if (!f->positive) {
        tir_expr_ref below = tir_binary(c, TIR_BITAND, f->power, tir_binary(c, TIR_SHR, acc, i32(g, 31)));
        more = tir_sub(c, more, tir_binary(c, TIR_SHR, below, i32(g, 1)));
    }
    tir_expr_ref high = tir_call(c, TIR_HIGH, 2, (tir_expr_ref[]){tir_mul(c, acc, f->power), f->multiplier});
    return tir_binary(c, TIR_SHR, tir_add(c, high, more), i32(g, f->right));
}

/* Below 1/2 the product's high word has all that counts. */
static tir_expr_ref rounded_by_word(te_graph *g, const qnn_fixed_factor *f, tir_expr_ref acc)
{
    compiler *c = g->c;
    const qnn_fixed_factor rest = {.least = -2 - f->most, .most = -2 - f->least};
    tir_expr_ref high = tir_call(c, TIR_HIGH, 2, (tir_expr_ref[]){acc, f->multiplier});
    tir_expr_ref right = limited(g, tir_sub(c, i32(g, -2), f->shift), &rest, 0, 31);
    high = tir_add(c, tir_binary(c, TIR_SHR, high, right), i32(g, 1));
    return tir_binary(c, TIR_SHR, high, i32(g, 1));
}

static tir_expr_ref rounded_once(te_graph *g, const qnn_fixed_factor *f, tir_expr_ref acc)
{
    compiler *c = g->c;
    if (f->most < -1)
        return rounded_by_word(g, f, acc);
    tir_expr_ref product = tir_mul(c, tir_cast(c, DT_I64, acc), tir_cast(c, DT_I64, f->multiplier));
    tir_expr_ref wide = tir_sub(c, tir_int(c, DT_I64, 31), tir_cast(c, DT_I64, f->shift));
    wide = tir_min(c, tir_max(c, wide, tir_int(c, DT_I64, 1)), tir_int(c, DT_I64, 62));
    tir_expr_ref half = tir_binary(c, TIR_SHL, tir_int(c, DT_I64, 1), tir_sub(c, wide, tir_int(c, DT_I64, 1)));
    tir_expr_ref all = tir_binary(c, TIR_SHR, tir_add(c, product, half), wide);
    all = tir_cast(c, DT_I32, f->up ? within(g, all, tir_int(c, DT_I64, MOST_SUM)) : all);
    if (f->least >= -1)
        return all;
    return tir_select(c, tir_binary(c, TIR_LT, f->shift, i32(g, -1)), rounded_by_word(g, f, acc), all);
}

qnn_fixed_factor qnn_fixed_by(te_graph *g, bool twice, bool up, int32_t multiplier, int32_t shift)
{
    return (qnn_fixed_factor){i32(g, multiplier), i32(g, shift), shift, shift, twice, up};
}

tir_expr_ref qnn_scaled_fixed(te_graph *g, const qnn_fixed_factor *f, tir_expr_ref acc)
{
    return f->twice ? rounded_twice(g, f, acc) : rounded_once(g, f, acc);
}

/* --- steps that rows share --- */

bool qnn_known_scale(const graph_node *n, uint32_t i, float *out)
{
    const tensor_data *t = graph_constant(n->inputs[i]);
    if (!t || t->dt != DT_F32 || t->count < 1 || (t->count > 1 && t->kind != TENSOR_SPLAT))
        return false;
    *out = (float)tensor_get_f64(t, 0);
    return true;
}

bool qnn_known_zero(const graph_node *n, uint32_t i, int64_t *out)
{
    const tensor_data *t = i < n->n_inputs ? graph_constant(n->inputs[i]) : NULL;
    *out = 0;
    if (i >= n->n_inputs || !n->inputs[i])
        return true;
    if (!t || t->count < 1 || (t->count > 1 && t->kind != TENSOR_SPLAT))
        return false;
    *out = tensor_get_i64(t, 0);
    return true;
}

tir_expr_ref qnn_product(te_graph *g, tir_expr_ref a, tir_expr_ref b)
{
    compiler *c = g->c;
    /* gcc makes a product of f32 of the one of f64, and that part of a sum */
    return tir_call1(c, TIR_APART,
                     tir_cast(c, DT_F32, tir_mul(c, tir_cast(c, DT_F64, a), tir_cast(c, DT_F64, b))));
}

int64_t qnn_code_offset(const graph_node *n, dtype dt)
{
    return dt == DT_I8 && graph_attr_int(n, "as_u8") ? 128 : 0;
}

tir_expr_ref qnn_offset_code(te_graph *g, int64_t offset, tir_expr_ref code)
{
    tir_expr_ref x = code ? tir_cast(g->c, DT_I32, code) : i32(g, 0);
    return offset ? tir_add(g->c, x, i32(g, offset)) : x;
}

tir_expr_ref qnn_rounded_code(te_graph *g, int64_t offset, dtype dt, tir_expr_ref y)
{
    compiler *c = g->c;
    y = tir_call1(c, TIR_RINT, y);
    if (offset)
        y = tir_sub(c, y, tir_float(c, DT_F32, (double)offset));
    return qnn_saturated(g, y, DT_F32, dt);
}

/* --- shifts --- */

tir_expr_ref qnn_log2_of(te_graph *g, const graph_node *n, uint32_t i, tir_expr_ref scale)
{
    compiler *c = g->c;
    const tensor_data *t = graph_constant(n->inputs[i]);
    if (t && t->count > 0 && (t->count == 1 || t->kind == TENSOR_SPLAT))
        return i32(g, ilogb(tensor_get_f64(t, 0)));
    tir_expr_ref bits = tir_binary(c, TIR_SHR, tir_call1(c, TIR_TO_BITS, scale), tir_int(c, DT_U32, 23));
    return tir_sub(c, tir_cast(c, DT_I32, tir_binary(c, TIR_BITAND, bits, tir_int(c, DT_U32, 255))), i32(g, 127));
}

tir_expr_ref qnn_within_shift(te_graph *g, tir_expr_ref n, int64_t least)
{
    return tir_max(g->c, i32(g, least), tir_min(g->c, n, i32(g, 30))); /* so that 1 << n is a number */
}

tir_expr_ref qnn_shifted(te_graph *g, tir_expr_ref x, tir_expr_ref n)
{
    compiler *c = g->c;
    tir_expr_ref right = qnn_within_shift(g, n, 0), left = qnn_within_shift(g, tir_sub(c, i32(g, 0), n), 0);
    int64_t known;
    if (!tir_is_int(n, &known) || known <= 0)
        x = within(g, x, tir_binary(c, TIR_SHR, i32(g, MOST_SUM), left));
    tir_expr_ref half = tir_binary(c, TIR_SHR, tir_binary(c, TIR_SHL, i32(g, 1), right), i32(g, 1));
    return tir_binary(c, TIR_SHR, tir_add(c, tir_binary(c, TIR_SHL, x, left), half), right);
}

tir_expr_ref qnn_shifted_wide(te_graph *g, tir_expr_ref x, tir_expr_ref n)
{
    compiler *c = g->c;
    tir_expr_ref right = tir_cast(c, DT_I64, tir_max(c, i32(g, 0), tir_min(c, n, i32(g, 61))));
    tir_expr_ref one = tir_int(c, DT_I64, 1), half = tir_binary(c, TIR_SHR, tir_binary(c, TIR_SHL, one, right), one);
    tir_expr_ref y = tir_binary(c, TIR_SHR, tir_add(c, x, half), right);
    return tir_cast(c, DT_I32, within(g, y, tir_int(c, DT_I64, MOST_SUM)));
}
