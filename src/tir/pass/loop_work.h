/* SPDX-License-Identifier: Apache-2.0 */
/* What a loop does by the types of what it reads, computes and writes, in whatever form: for counts of the loops that
 * instructions are meant for and that got none (tir_selection.meant). */
#ifndef LATHE_TIR_PASS_LOOP_WORK_H
#define LATHE_TIR_PASS_LOOP_WORK_H
#include "tir/pass/select.h"

/* Arithmetic on what is read. */
typedef enum loop_work_kind {
    WORK_EXTREMES = 1, /* min, max of bytes */
    WORK_SUMS = 2,     /* of integers */
    WORK_PRODUCTS = 4, /* of integers */
    WORK_CASTS = 8,
    WORK_CHOICES = 16, /* by conditions */
    WORK_MORE = 32
} loop_work_kind;

typedef struct loop_work {
    int64_t rounds;        /* INT64_MAX: nobody knows */
    int64_t inner;         /* rounds of the loops inside; 0: there are none */
    const tir_stmt *store; /* the only one into memory; NULL: there is none, or several */
    bool steps;            /* it goes on by one element in each round */
    uint32_t kinds;        /* of arithmetic: in the loops inside, where there are some, else of what is stored */
    /* Loads of memory: those that go on by one element, those from a place that such a byte says, other ones that
     * change from round to round. */
    uint32_t rows, looked_up, others;
    dtype widest; /* of these; DT_NONE: there are none */
} loop_work;

/* What an index grows by with v; 0: no number that is known. */
int64_t loop_step(const tir_selector *x, tir_expr_ref at, const tir_var *v);

/* false: it is no serial loop over single numbers. */
bool loop_work_of(const tir_selector *x, tir_stmt *loop, loop_work *out);
/* Bytes of a table, each at the place that a byte of a row says. */
bool loop_is_table(const tir_selector *x, tir_stmt *loop);
/* Products of integers of at most 16 bits, added up in the loop. */
bool loop_is_dot(const tir_selector *x, tir_stmt *loop);
#endif
