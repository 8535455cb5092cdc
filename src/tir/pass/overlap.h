/* SPDX-License-Identifier: Apache-2.0 */
/* The last tile of an open extent (overlap.c), for partition-loops. */
#ifndef LATHE_TIR_PASS_OVERLAP_H
#define LATHE_TIR_PASS_OVERLAP_H
#include "tir/simplify.h"
#include "tir/tir.h"

/* The loop runs from 0, and from `to` = n / F on, rounded down, at most one iteration is left: `end` is
 * (n + F - 1) / F. */
bool tir_is_one_tile(tir_bounds *b, tir_stmt *loop, tir_expr_ref to, tir_expr_ref end, int64_t *factor,
                     tir_expr_ref *n);
/* That iteration of a loop for which tir_is_one_tile holds, moved back to where its tile is whole, from n - F on;
 * `whole` is the body without its guards. It is meant for n >= F. NULL: the body may not run again, or an iteration
 * depends on more than its place. */
tir_stmt *tir_overlap_end(tir_bounds *b, tir_stmt *loop, tir_expr_ref to, tir_expr_ref end, int64_t factor,
                          tir_expr_ref n, tir_stmt *whole);
#endif
