/* SPDX-License-Identifier: Apache-2.0 */
/* Copies of statements with variables and allocations of their own, for passes that write a body out more than once:
 * every variable and buffer of a function is defined exactly once. */
#ifndef LATHE_TIR_CLONE_H
#define LATHE_TIR_CLONE_H
#include "tir/tir.h"

/* s with `var` replaced by `value` (var may be NULL) and everything that s defines made anew. */
tir_stmt *tir_clone_stmt(compiler *c, tir_stmt *s, const tir_var *var, tir_expr_ref value);
uint32_t tir_count_stmts(tir_stmt *s);
#endif
