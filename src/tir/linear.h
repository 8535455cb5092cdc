/* SPDX-License-Identifier: Apache-2.0 */
/* Integer expressions as sums of products with constant coefficients, over atoms (variables and whatever is not a sum
 * or product), and what is known about variables. Internal to the simplifier. Sums have a fixed capacity: an expression
 * with more terms is left as it is. */
#ifndef LATHE_TIR_LINEAR_H
#define LATHE_TIR_LINEAR_H
#include "tir/map.h"
#include "tir/simplify.h"
#include "tir/tir.h"

#define LINEAR_MAX_TERMS 24u
#define LINEAR_MAX_ATOMS 3u

typedef struct linear_term {
    int64_t coeff;
    uint32_t n;
    tir_expr_ref atoms[LINEAR_MAX_ATOMS]; /* ordered */
} linear_term;

typedef struct linear {
    int64_t constant;
    uint32_t len;
    linear_term terms[LINEAR_MAX_TERMS]; /* distinct products, coefficients not 0 */
} linear;

typedef struct bounds_entry {
    const tir_var *var;
    tir_range range;
    bool is_value; /* holds value arithmetic, which may wrap: nothing is concluded from sums with it */
} bounds_entry;

typedef struct bounds_mark {
    uint32_t vars, facts;
} bounds_mark;

struct tir_bounds {
    compiler *c;
    VEC(bounds_entry) vars;    /* innermost last; a later entry of a variable narrows an earlier one */
    VEC(const linear *) facts; /* each is known to be >= 0 */
    VEC(bounds_mark) marks;
    tir_map simplified, ranges; /* results under what is known now */
};

/* All: false when the capacity or int64 is exceeded. */
bool linear_add_term(tir_bounds *b, linear *l, const linear_term *t);
bool linear_add(tir_bounds *b, linear *l, const linear *m, int64_t factor);
bool linear_mul(tir_bounds *b, const linear *x, const linear *y, linear *out);
/* e, whose parts are in normal form already, as a sum. */
bool linear_of(tir_bounds *b, tir_expr_ref e, linear *out);
/* x - y */
bool linear_diff(tir_bounds *b, tir_expr_ref x, tir_expr_ref y, linear *out);
/* The sum as an expression: larger products first, negative terms after positive ones, the constant last. */
tir_expr_ref linear_build(tir_bounds *b, dtype dt, linear *l);
tir_range linear_range(tir_bounds *b, const linear *l);
int64_t linear_gcd(const linear *l); /* of the coefficients; 0 without terms */
int64_t linear_common(int64_t a, int64_t b); /* greatest common divisor, not negative */
/* Provably >= 0 (prove.c). */
bool linear_is_nonnegative(tir_bounds *b, const linear *l);

const bounds_entry *bounds_find(const tir_bounds *b, const tir_var *v);
void bounds_push_range(tir_bounds *b, const tir_var *v, tir_range r, bool is_value);
/* From here to the matching pop, cond holds (or does not). */
void bounds_push_cond(tir_bounds *b, tir_expr_ref cond, bool holds);
/* Whether sums in e keep their mathematical value: index arithmetic, or value arithmetic with ranges that fit the type.
 */
bool bounds_is_exact(tir_bounds *b, tir_expr_ref e);
static inline bool bounds_is_index_type(tir_type t)
{
    return t.lanes == 1 && (t.dt == DT_I64 || t.dt == DT_I32);
}
static inline tir_range bounds_known(int64_t min, int64_t max)
{
    return (tir_range){true, true, min, max};
}
#endif
