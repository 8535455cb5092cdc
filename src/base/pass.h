/* SPDX-License-Identifier: Apache-2.0 */
/* Passes on graphs, on programs and on loops are rows of one form, and one driver runs them. It finds the rows of a
 * list by name, checks the order before the first of them runs, and then runs, verifies, times and prints. A pass
 * contains none of that.
 *
 * An order is checked by facts: what is so of a graph, a program or loops, and what some pass relies on. A row says
 * which facts the pass needs, which ones hold behind it, and which ones it ends. Only what would otherwise give a wrong
 * result, an error elsewhere or a loss without a word is a fact. */
#ifndef LATHE_BASE_PASS_H
#define LATHE_BASE_PASS_H
#include "base/compiler.h"

typedef struct pass_row {
    const char *name; /* "NAME(N)": in a list a number stands in the place of N */
    const char *help;
    uint32_t needs, gives, breaks; /* sets of facts, a bit for each */
    int level;                     /* a default order has it from this optimization level on */
} pass_row;

typedef struct pass_level {
    const char *on; /* "graphs" */
    const pass_row *(*row)(uint32_t i); /* NULL: there are no more */
    const char *const *facts; /* in words, by the number of the bit: "a pass needs ..." */
    uint32_t n_facts;
    /* number: that of "NAME(N)". false after a diagnostic. */
    bool (*run)(compiler *c, void *ir, uint32_t row, int64_t number, const void *options);
    bool (*verify)(compiler *c, const void *ir);
    void (*print)(writer *w, const void *ir);
    bool tells; /* each pass is a step of the compile's progress */
} pass_level;

enum { PASS_NAMED = 100 }; /* above the level of every row: a list that was given by name runs as it is */

typedef struct pass_order {
    const char *names;   /* "a,b" */
    int opt_level;       /* rows of higher levels are left out */
    uint32_t holds;      /* before the first pass, of the facts that some pass gives; the others hold then */
    const void *options; /* of the passes */
    bool verify;         /* after each pass */
    bool print_after_all; /* into dump, where the text changed */
    writer *dump, *times; /* NULL: none */
    const char *dump_dir; /* NULL: none; a file for each pass that changed the text */
} pass_order;

/* The row's number for a name of a list; UINT32_MAX: there is none. out_number may be NULL. */
uint32_t pass_find(const pass_level *l, const char *name, size_t len, int64_t *out_number);
/* An error that names the passes there are; false. */
bool pass_unknown(compiler *c, const pass_level *l, const char *name, size_t len);
/* Whether the order can run. Else DIAG_USAGE: a name that no row has, or a pass that needs what does not hold where it
 * stands; the message says what, and which pass gives it or has ended it. */
bool pass_check(compiler *c, const pass_level *l, const pass_order *o);
/* Checks the order, then runs it. Errors: those of the check and of the passes; a pass whose result does not verify. */
bool pass_run(compiler *c, const pass_level *l, void *ir, const pass_order *o);
#endif
