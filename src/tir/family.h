/* SPDX-License-Identifier: Apache-2.0 */
/* What a folder of src/target brings to the loop IR: rows of instructions, operations in its text, passes. The tables
 * are made of src/target/targets.def where they are read: intrin.c, names.c, pass.c. */
#ifndef LATHE_TIR_FAMILY_H
#define LATHE_TIR_FAMILY_H
#include "base/pass.h"
#include "tir/intrin.h"
#include "tir/pass.h"

typedef struct tir_instructions {
    const tir_intrin *rows;
    uint32_t n;
} tir_instructions;

/* An operation that the text writes @name(...), with so many arguments. */
typedef struct tir_operation {
    const char *name;
    uint32_t n_args;
} tir_operation;

typedef struct tir_operations {
    const tir_operation *rows;
    uint32_t n;
    /* The argument of a call that it writes without reading what was there: the address of its result. NULL: none. */
    tir_expr_ref (*overwritten)(tir_expr_ref call);
} tir_operations;

typedef struct tir_pass_row {
    pass_row row;
    tir_pass_fn run;
    bool (*run_numbered)(compiler *c, tir_func *f, int64_t n); /* in the place of run, where the name has "(N)" */
} tir_pass_row;

/* The key of an annotation "pragma_KEY" that the passes act on. */
typedef struct tir_pragma {
    const char *key;
    bool is_whole; /* what it marks becomes one operation: its conditions are a part of that, and no pass splits it */
} tir_pragma;

/* The passes of a device, beside those of tir/pass.h. */
typedef struct tir_loops {
    const char *name;  /* stands for `order` among names of passes */
    const char *order; /* on loops as a schedule leaves them */
    const tir_pass_row *passes;
    uint32_t n;
    /* One more, with flags for debugging as its number, and the pass behind which they put it; NULL: none. */
    const tir_pass_row *flags;
    const char *flags_after;
    const tir_pragma *pragmas; /* key NULL at the end; NULL: none */
} tir_loops;

extern const tir_instructions tir_instructions_dot;   /* intrin_dot.c: products of bytes, on any processor */
extern const tir_instructions tir_instructions_round; /* intrin_round.c: rounding, on processors without vectors */
#define TARGET_INSTRUCTIONS(name) extern const tir_instructions tir_instructions_##name;
#define TARGET_OPERATIONS(name)   extern const tir_operations tir_operations_##name;
#define TARGET_LOOPS(name)        extern const tir_loops tir_loops_##name;
#include "target/targets.def"

/* Number of arguments of an operation of a device; -1: it is none. */
int tir_operation_arity(const char *name);
/* As tir_operations has it, of any device. */
tir_expr_ref tir_overwritten(tir_expr_ref call);
#endif
