/* SPDX-License-Identifier: Apache-2.0 */
/* The interpreter of the loop IR (interp.c): the oracle, and what folds constants. */
#ifndef LATHE_TIR_INTERPRET_H
#define LATHE_TIR_INTERPRET_H
#include "tir/tir.h"

/* Compiles the function to register bytecode, then runs it. params: one address per parameter (any alignment for
 * inputs), row-major. false after a diagnostic; an ASSERT gives its code in out_status. */
bool tir_interpret(compiler *c, const tir_func *f, void *const *params, int32_t *out_status);
/* The same for a function from elsewhere: bytes[i] may be touched at params[i]; one that wants more is an error. */
bool tir_interpret_within(compiler *c, const tir_func *f, void *const *params, const size_t *bytes,
                          int32_t *out_status);
/* Whether all of it can be run: operations of hardware and external functions but memcpy, memmove and memset cannot. */
bool tir_can_interpret(compiler *c, const tir_func *f);
#endif
