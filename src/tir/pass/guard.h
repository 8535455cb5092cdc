/* SPDX-License-Identifier: Apache-2.0 */
/* The iterations of a loop that a guard lets through. */
#ifndef LATHE_TIR_PASS_GUARD_H
#define LATHE_TIR_PASS_GUARD_H
#include "tir/tir.h"

typedef struct tir_behind_guard {
    tir_expr_ref min, extent; /* at least 0 */
    tir_expr_ref left;        /* what is still to be tested; NULL: nothing */
} tir_behind_guard;

/* Comparisons of the loop's variable, plus or minus what it does not decide, become the loop's bounds. What reads
 * memory stays a test: the loop may write it. */
tir_behind_guard tir_behind(compiler *c, const tir_stmt *loop, tir_expr_ref guard);
#endif
