/* SPDX-License-Identifier: Apache-2.0 */
/* State of the interpreter's compiler, shared by its two files (expressions, statements). Internal to the folder. */
#ifndef LATHE_TIR_INTERP_COMPILE_H
#define LATHE_TIR_INTERP_COMPILE_H
#include "tir/interp.h"

/* Where an expression's value is. */
typedef struct ic_value {
    uint32_t reg;
    uint32_t lanes;
    uint32_t depth; /* level whose prologue makes it */
    bool stable;    /* made in a prologue; else where it stands */
} ic_value;

/* Lanes that are on; values that were made under it. */
typedef struct ic_mask {
    uint32_t reg; /* NO_REG: all */
    tir_map values;
    struct ic_mask *up;
} ic_mask;

typedef struct ic_const {
    uint32_t reg, lanes;
    reg_class kind;
    int64_t i;
    double f;
} ic_const;

typedef struct ic_strip {
    const tir_var *var;
    code_list *entry;         /* once per loop */
    code_list *lane_prologue; /* once per strip, before the statements */
    tir_map lets;             /* variable -> lanes */
    tir_map uniform;          /* expression -> lanes made at entry */
    tir_map varying;          /* expression -> yes or no */
} ic_strip;

typedef struct ic {
    compiler *c;
    arena *mem;
    const tir_func *func;
    size_t reg_bytes;
    VEC(ic_const) constants;
    VEC(code_list *) levels; /* prologues of the open levels */
    code_list *here;         /* where loads and stores go now */
    code_block *block;       /* being filled */
    tir_map vars;            /* variable -> value */
    tir_map values;          /* expression without loads -> value */
    tir_map loads;           /* expression -> whether it has loads */
    tir_map slots;           /* buffer -> slot */
    tir_map programs;        /* nest of an instruction -> what it was compiled to */
    ic_mask *mask;
    ic_strip *strip; /* NULL outside */
    bool ok;
    bool (*compile)(compiler *c, arena *mem, const tir_func *f, uint32_t n_given, const tir_var *const *given,
                    interp_program *out); /* interp_compile, for the nests of instructions */
} ic;

uint32_t ic_reg(ic *k, uint32_t lanes);
instr *ic_emit(ic *k, code_list *to, instr_fn fn, dtype dt, uint32_t lanes);
/* The value of e where the compiler stands: one value, or the lanes of a vector type. */
ic_value *ic_scalar(ic *k, tir_expr_ref e);
/* One value per lane of the open strip. */
ic_value *ic_lanes(ic *k, tir_expr_ref e);
/* Whether e is base + lane * step in the open strip. */
bool ic_affine(ic *k, tir_expr_ref e, int64_t *out_step);
mem_access *ic_access(ic *k, const tir_buffer *b, uint32_t n, tir_expr_ref const *idx, uint32_t lanes);
slot *ic_slot(ic *k, const tir_buffer *b);
void ic_push_mask(ic *k, ic_mask *m, uint32_t reg);
void ic_pop_mask(ic *k);
uint32_t ic_masked(ic *k, uint32_t mask, uint32_t cond, bool holds, uint32_t lanes);
#endif
