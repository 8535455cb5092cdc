/* SPDX-License-Identifier: Apache-2.0 */
/* What must hold of the loop IR (verify.c). */
#ifndef LATHE_TIR_VERIFY_H
#define LATHE_TIR_VERIFY_H
#include "tir/tir.h"

/* Types, definition before use, buffer ranks, and index bounds: an access that provably lies outside is an error. */
bool tir_verify(compiler *c, const tir_func *f);
/* The same for an expression that is evaluated for all values of n variables, from 0 to below their extents, where
 * `where` holds (NULL: everywhere). Other variables and buffers are the caller's. Messages start with loc and name. */
bool tir_verify_expr(compiler *c, src_loc loc, const char *name, uint32_t n, const tir_var *const *vars,
                     tir_expr_ref const *extents, tir_expr_ref where, tir_expr_ref e);
#endif
