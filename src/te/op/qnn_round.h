/* SPDX-License-Identifier: Apache-2.0 */
/* From exact sums in i32 to 8 or 16 bits: the steps that rows of qnn.* share. */
#ifndef LATHE_TE_OP_QNN_ROUND_H
#define LATHE_TE_OP_QNN_ROUND_H
#include "graph/op/nn.h"
#include "te/op/util.h"

/* v, which is rounded and has its zero point, within the range of dt. */
tir_expr_ref qnn_saturated(te_graph *g, tir_expr_ref v, dtype from, dtype dt);
/* x + zero, where there is one. */
tir_expr_ref qnn_moved(te_graph *g, dtype dt, tir_expr_ref x, tir_expr_ref zero);

/* rint(f32(acc) * k) + zero, or with the zero point inside rint(acc * k + zero), in i32 for a result of type dt:
 * exact wherever the type's range has it, beyond it on the same side. acc: i32, with `inside` of 24 bits at most; k:
 * f32; known: what k is, NULL where only the run knows; zero: an integer, NULL for 0. */
tir_expr_ref qnn_scaled_exactly(te_graph *g, tir_expr_ref acc, tir_expr_ref k, const float *known, tir_expr_ref zero,
                                bool inside, dtype dt);
/* A factor: multiplier * 2^-(32 + shift), the multiplier in 2^30..2^31, the shift in 1..31. All i32. */
typedef struct qnn_factor {
    tir_expr_ref multiplier, shift, large; /* large: bool, where the factor is none of these; NULL: it is one */
} qnn_factor;
/* A known k above 0 and below 1/4; bits of it behind the multiplier's 31 are cut off. */
qnn_factor qnn_known_factor(te_graph *g, double k);
/* acc * k rounded, and the zero point added (NULL: none), in i32; `slow` where the fraction of 32 bits is within
 * `reach` of the middle, or k is large. */
tir_expr_ref qnn_scaled_by(te_graph *g, tir_expr_ref acc, qnn_factor k, int64_t reach, tir_expr_ref zero,
                           tir_expr_ref slow);
/* The f32 x rounded to the nearest even number in i32 without a call; beyond 2^18 on the same side. */
tir_expr_ref qnn_rounded_near(te_graph *g, tir_expr_ref x);
/* y * 2^-bits, y of i32, is within reach of the middle of two integers. */
tir_expr_ref qnn_is_near_half(te_graph *g, tir_expr_ref y, int bits, int64_t reach);
/* y * 2^-bits rounded in i32; `slow` where it is near. */
tir_expr_ref qnn_rounded_fixed(te_graph *g, tir_expr_ref y, int bits, int64_t reach, tir_expr_ref slow);
/* A factor as TensorFlow Lite has it: multiplier * 2^(shift - 31), both i32. least and most: of the shift; twice:
 * rounded behind the product as well; up: the result may leave +-2^30, and stays there, beyond every type's range and
 * zero point. */
typedef struct qnn_fixed_factor {
    tir_expr_ref multiplier, shift; /* the multiplier is above -2^31 */
    int32_t least, most;
    bool twice, up;
} qnn_fixed_factor;
qnn_fixed_factor qnn_fixed_by(te_graph *g, bool twice, bool up, int32_t multiplier, int32_t shift);
/* acc times that factor, rounded. All i32. */
tir_expr_ref qnn_scaled_fixed(te_graph *g, const qnn_fixed_factor *f, tir_expr_ref acc);
/* The same of a factor below 1/2, rounded twice, as multiplier * power * 2^-(32 + right): by the upper word of one
 * product. The power of two is above 2, acc * power has 32 bits, the result 9 or so. */
typedef struct qnn_word_factor {
    tir_expr_ref multiplier, power; /* i32 */
    int64_t right;
    bool positive; /* what is below 0 may be any number below 1 */
} qnn_word_factor;
/* acc times that factor, rounded, and the zero point added (NULL: none), in i32. */
tir_expr_ref qnn_scaled_by_word(te_graph *g, const qnn_word_factor *f, tir_expr_ref acc, tir_expr_ref zero);
/* --- to 16 bits (qnn_wide.c): the exact quotient, ties to even --- */
/* y, of f64, rounded in i32; beyond 2^30 on the same side. */
tir_expr_ref qnn_rounded_real(te_graph *g, tir_expr_ref y);
/* x * k rounded in integers: |x| is at most 2^bits; k: f64; known: what k is, NULL where only the run knows; exact: k
 * is the quotient of the scales, it is not rounded. */
tir_expr_ref qnn_scaled_real(te_graph *g, tir_expr_ref x, int bits, tir_expr_ref k, const double *known, bool exact);
/* sum * xs / (ys * count) in the same way: a sum of at most `most` numbers less their zero point, count in i32. NULL:
 * not by such scales. */
tir_expr_ref qnn_mean_real(te_graph *g, tir_expr_ref sum, tir_expr_ref count, int64_t most, double xs, double ys);
/* part * steps / whole in i32, the nearest integer, ties to even: what f64 gives, whose quotient of such numbers is
 * never a tie unless the exact one is. y: f32, the quotient times 2^bits, from 0 to 2^22 and off by less than 1/2
 * where the result is below 257; part and whole: f32, part <= whole; steps: at most 2^24. */
tir_expr_ref qnn_share(te_graph *g, tir_expr_ref y, int bits, tir_expr_ref part, int64_t steps, tir_expr_ref whole);
typedef struct qnn_reals {
    tir_expr_ref a_scale, b_scale, y_scale;
    double a, b, y; /* what they are, where they are known */
    bool known, in_integers;
} qnn_reals;
/* Sum and product of two numbers of 16 bits less their zero points, by their scales, rounded in i32. */
tir_expr_ref qnn_sum_real(te_graph *g, const qnn_reals *v, tir_expr_ref a, tir_expr_ref b);
tir_expr_ref qnn_product_real(te_graph *g, const qnn_reals *v, tir_expr_ref a, tir_expr_ref b);

/* --- fewer steps (qnn_merged.c) --- */
/* A sum or product of two codes, in f32: as operators between DequantizeLinear and QuantizeLinear have it, or as
 * onnxruntime's kernel, of codes with an offset (qnn_code_offset). */
typedef struct qnn_steps {
    dtype dt;
    bool product, in_steps;
    float a, b, y; /* scales; that of b is below 0 where it is subtracted, in steps */
    int64_t a_zero, b_zero, y_zero, offset;
} qnn_steps;
/* rint(fma(x, a, fma(y, b, offset))) + zero of codes x and y; swapped: x is in the inner sum. Of a product
 * rint(a * p) + zero, p that of codes less their zero points. */
typedef struct qnn_merged {
    float a, b, offset;
    bool swapped;
} qnn_merged;
/* The form that gives the code of that for each pair. False: none is known. */
bool qnn_merge_steps(const qnn_steps *s, qnn_merged *out);

/* Operand i of n, where it is one known number of f32. */
bool qnn_known_scale(const graph_node *n, uint32_t i, float *out);
/* Operand i, where it is one known number; left out: 0. */
bool qnn_known_zero(const graph_node *n, uint32_t i, int64_t *out);
/* The exponent of operand i, a scale that is a power of two: its bits say it. A constant's is a literal. */
tir_expr_ref qnn_log2_of(te_graph *g, const graph_node *n, uint32_t i, tir_expr_ref scale);
/* (x + 2^(n-1)) >> n: the sum has to fit into i32; for n <= 0 x << -n, which stays beyond 2^30 on its side. */
tir_expr_ref qnn_shifted(te_graph *g, tir_expr_ref x, tir_expr_ref n);
/* The same of an i64 below 2^61, in i32; n < 0 counts as 0. */
tir_expr_ref qnn_shifted_wide(te_graph *g, tir_expr_ref x, tir_expr_ref n);
tir_expr_ref qnn_within_shift(te_graph *g, tir_expr_ref n, int64_t least); /* least..30 */

/* What is to be added to numbers of type dt before n computes with them: onnxruntime makes u8 of i8 first on x86-64,
 * with zero points that are 128 more, where they lie between DequantizeLinear and QuantizeLinear (as_u8). Where a
 * zero point is added before the rounding, sums lie where f32 is coarser, and that shows. */
int64_t qnn_code_offset(const graph_node *n, dtype dt);
/* A code or a zero point (NULL: 0) with that offset, in i32. */
tir_expr_ref qnn_offset_code(te_graph *g, int64_t offset, tir_expr_ref code);
/* y, which has it, rounded and back as dt. */
tir_expr_ref qnn_rounded_code(te_graph *g, int64_t offset, dtype dt, tir_expr_ref y);
/* The product, rounded by itself: no part of a sum. */
tir_expr_ref qnn_product(te_graph *g, tir_expr_ref a, tir_expr_ref b);
#endif
