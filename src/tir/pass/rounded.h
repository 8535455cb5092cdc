/* SPDX-License-Identifier: Apache-2.0 */
/* What the loop IR says in steps of binary32 and binary64, or of fixed point, and processors do in an instruction or a
 * few, read from expressions of one number or of lanes (rounded.c). Operands of what commutes stand in any order. */
#ifndef LATHE_TIR_PASS_ROUNDED_H
#define LATHE_TIR_PASS_ROUNDED_H
#include "tir/pass/select.h"

/* cast(int, min(max(rint(v) + zero, least), most)) with the ends of the type. */
typedef struct tir_rounded {
    tir_expr_ref v;      /* f32 */
    tir_expr_ref acc, k; /* of a byte: v is the product of the i32 acc and k, a literal or loaded; NULL: it is not */
    tir_expr_ref zero;   /* an integer, the same for all lanes */
    bool sure;           /* v and what it is computed of are no NaN and not infinite */
} tir_rounded;
bool tir_read_rounded(const tir_selector *x, tir_expr_ref e, tir_rounded *out);
/* A small integer that a rounding of that kind has made (TIR_RINT, TIR_SHIFTED), in whatever form. */
bool tir_is_made_by(tir_expr_ref e, tir_op rounding);

/* cast(f32, x) of an x of f64: a * b + s; a * b, and s is NULL; or a + s, and b is NULL. */
typedef struct tir_once {
    tir_expr_ref a, b, s;
} tir_once;
bool tir_read_once(tir_expr_ref e, tir_once *out);

/* x, within the ends of `to`: min(max(x, least), most) of type dt. NULL: e is something else. */
tir_expr_ref tir_read_within(tir_expr_ref e, dtype dt, dtype to);

/* An i32 that is made of a product: the product of two sums where it is that, else e. */
tir_expr_ref tir_factored(const tir_selector *x, tir_expr_ref e);
bool tir_is_short(tir_expr_ref e); /* an i32 that binary32 has, by its types and literals */
#endif
