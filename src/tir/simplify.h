/* SPDX-License-Identifier: Apache-2.0 */
/* Expressions of the loop IR, simplified and decided by integer ranges (range.c, simplify.c, simplify_stmt.c). */
#ifndef LATHE_TIR_SIMPLIFY_H
#define LATHE_TIR_SIMPLIFY_H
#include "tir/tir.h"

typedef struct tir_range {
    bool known_min, known_max;
    int64_t min, max; /* inclusive */
} tir_range;
typedef struct tir_bounds tir_bounds; /* ranges of variables in scope */
tir_bounds *tir_bounds_new(compiler *c);
void tir_bounds_push(tir_bounds *b, const tir_var *v, tir_expr_ref min, tir_expr_ref extent); /* extent > 0 assumed */
void tir_bounds_pop(tir_bounds *b);
tir_range tir_range_of(tir_bounds *b, tir_expr_ref e);
/* Canonical form: sums of products sorted with constants last, floordiv/floormod of them split and cancelled by ranges,
 * comparisons and selects decided where provable. */
tir_expr_ref tir_simplify(tir_bounds *b, tir_expr_ref e);
bool tir_prove(tir_bounds *b, tir_expr_ref cond); /* true: holds for all values in range */
/* Pushes ranges while it walks; drops dead branches, loops of extent 1, empty loops. */
tir_stmt *tir_simplify_stmt(compiler *c, tir_stmt *s);
#endif
