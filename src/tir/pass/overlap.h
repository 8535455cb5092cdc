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
/* What is left of the loop from iteration `to` on, when that is one tile that may be moved back to where it is whole;
 * `whole` is the body without its guards. *out_enough: the condition under which there is a whole tile. NULL: the loop
 * is not like that. */
tir_stmt *tir_overlap_end(tir_bounds *b, tir_stmt *loop, tir_expr_ref to, tir_expr_ref end, tir_stmt *whole,
                          tir_expr_ref *out_enough);
#endif
