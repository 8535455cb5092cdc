/* SPDX-License-Identifier: Apache-2.0 */
/* How long loop IR would run: what tests ask before they interpret what they did not write. */
#ifndef LATHE_TEST_LOOP_STEPS_H
#define LATHE_TEST_LOOP_STEPS_H
#include "tir/build.h"
#include "tir/tir.h"

/* Iterations in all; a loop whose extent is not constant counts as `unknown` of them. */
static inline double loop_steps(const tir_stmt *s, double unknown)
{
    int64_t n;
    double sum = 1;
    for (uint32_t i = 0; i < s->n_stmts; i++)
        sum += loop_steps(s->stmts[i], unknown);
    if (s->body)
        sum += loop_steps(s->body, unknown);
    if (s->orelse)
        sum += loop_steps(s->orelse, unknown);
    if (s->kind == TIR_FOR)
        sum *= !tir_is_int(s->extent, &n) ? unknown : n > 0 ? (double)n : 0;
    return sum;
}
#endif
