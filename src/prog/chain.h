/* SPDX-License-Identifier: Apache-2.0 */
/* Chains of kernels that run line by line (tir/chain.h), made of the steps of a program: which steps could be part of
 * one, what a chain of neighbors takes, and the program in which chosen chains are one kernel each. */
#ifndef LATHE_PROG_CHAIN_H
#define LATHE_PROG_CHAIN_H
#include "prog/prog.h"
#include "tir/chain.h"

/* A kernel's step of the function, in order. */
typedef struct prog_link {
    uint32_t step;        /* in the function's block */
    bool ok;              /* it goes through lines, */
    tir_lines lines[2];   /* copying what a line needs once, or for each line again */
    const char *why;      /* or why it does not */
} prog_link;

/* Steps between which the bytes of a value are used, views aside; first > last: by none. */
typedef struct prog_uses {
    uint32_t first, last; /* by the caller, in a branch or a loop: 0, UINT32_MAX */
} prog_uses;

typedef struct prog_links {
    prog_module *m;
    prog_func *f;
    VEC(prog_link) list;
    prog_uses *uses; /* of each root */
} prog_links;

/* Steps that branches and loops hold are left out. */
void prog_find_links(compiler *c, prog_module *m, prog_func *f, prog_links *out);

/* Links first to last as one kernel. */
typedef struct prog_chain {
    uint32_t first, last;
    uint64_t again;       /* bit i: link first + i copies what a line needs for each line again */
    int64_t bytes;        /* of scratch */
    int64_t copied_again; /* bytes that are copied more than once */
    tir_chain lines;
    VEC(uint32_t) args;   /* values: operands, then results */
    VEC(const tir_buffer *) params; /* for them, as the first kernel that uses each has it */
    uint32_t n_in;
} prog_chain;
/* false: it cannot be, for the reason *out_why. */
#define PROG_MOST_LINKS 40u /* in one chain: its loops stand inside of each other, and C compilers have limits */
bool prog_plan_chain(compiler *c, const prog_links *l, uint32_t first, uint32_t last, uint64_t again, prog_chain *out,
                     const char **out_why);
/* The value lives inside of the chain: no memory of its own. */
bool prog_chain_hides(const prog_links *l, const prog_chain *x, uint32_t root);

/* A program like l's, in which each of the chains, in order and apart from each other, is one kernel. */
bool prog_with_chains(compiler *c, const prog_links *l, uint32_t n, const prog_chain *chains, prog_module **out);
#endif
