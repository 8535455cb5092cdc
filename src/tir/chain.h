/* SPDX-License-Identifier: Apache-2.0 */
/* Chains of kernels that run line by line (lines.c, chain.c): each makes a line of its result when the next one wants
 * it, and of the values between them only the lines that are still read are kept, in slots by line modulo their number.
 * A kernel takes part when one loop goes through the lines of its operands in order, and of its result if that has
 * lines; what that loop needs is known line by line, so the run of a chain is known before there are loops of it. */
#ifndef LATHE_TIR_CHAIN_H
#define LATHE_TIR_CHAIN_H
#include "tir/tir.h"

#define LINES_NO_AXIS (-1)

/* How one kernel goes through lines. */
typedef struct tir_lines {
    const tir_func *f; /* simplified; accesses have their dimensions */
    tir_stmt *loop;
    int64_t n;     /* iterations of the loop, which starts at 0 */
    int32_t *axis; /* of each parameter: the dimension that moves with the loop; LINES_NO_AXIS: none */
    int64_t *from, *to; /* [parameter * n + line]: lines of it that are read or written; to < from: none */
} tir_lines;
/* flows: parameters that come from or go to other kernels, as against weights. false: it does not go through lines, and
 * *out_why says why. */
bool tir_find_lines(compiler *c, tir_func *f, const bool *flows, tir_lines *out, const char **out_why);

/* One kernel of a chain. */
typedef struct tir_link {
    const tir_lines *lines;
    const uint32_t *value; /* of each parameter: the chain's value */
    uint32_t driver;       /* the link whose lines ask for this one's; the last one: itself */
} tir_link;

/* A value that kernels of a chain read or write. */
typedef struct tir_chain_value {
    const tir_buffer *param; /* the chain's parameter; NULL: it lives inside the chain */
    uint32_t writer;         /* link; UINT32_MAX: comes from outside */
    int64_t lines, kept;     /* of one that lives inside: all its lines, and those that are kept at a time */
    int64_t pitch;           /* bytes of a line */
} tir_chain_value;

typedef struct tir_chain {
    VEC(tir_link) links; /* in an order in which they could run one after the other; the last one drives all */
    VEC(tir_chain_value) values;
    uint32_t *order;     /* links as they stand in the loop that drives them */
    const char *why;     /* it cannot run: the reason */
} tir_chain;

/* Who drives whom, and how many lines are kept; false: x->why. */
bool tir_chain_plan(compiler *c, tir_chain *x);
/* Bytes of the lines that are kept, of what links keep through all their lines, and of the largest scratch of a line:
 * what the function will allocate. */
int64_t tir_chain_bytes(const tir_chain *x);
/* The function: params, of which the first n_inputs are inputs; a planned chain. */
tir_func *tir_chain_make(compiler *c, const tir_chain *x, const char *name, uint32_t n_params,
                         const tir_buffer *const *params, uint32_t n_inputs);
/* Axes a and b of two parameters for one value show the same lines. */
bool tir_lines_agree(const tir_buffer *made, int32_t a, const tir_buffer *read, int32_t b);
/* Bytes of operands that are copied for a line although the line before had them, in all of one run; 0 where copies are
 * kept. */
int64_t tir_lines_copied_again(const tir_lines *l);
#endif
