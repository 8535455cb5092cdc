/* SPDX-License-Identifier: Apache-2.0 */
/* Instructions of the loop IR: nodes TIR_INSTR, each of a row of tir/intrin.h that is passed operands. The arguments
 * are the result's operand unless the instruction makes a value, the others in the order of the row's nest, the row's
 * symbols, and further first operands where the row takes several. The row says all that passes ask: an operand by
 * address is memory that is read, the result's is written. */
#ifndef LATHE_TIR_INSTR_H
#define LATHE_TIR_INSTR_H
#include "tir/intrin.h"

#include <string.h>

/* A row's nest, read once for each compiler. */
typedef struct tir_instr_form {
    const tir_intrin *row;
    tir_func *whole;  /* what the instruction computes; NULL: only `update` is there */
    tir_func *update; /* the same without its first store, which puts the identity; NULL: only `whole` is there */
    const tir_var *symbols[TIR_INTRIN_SYMBOLS];
    const tir_buffer *const *params; /* the operands, as the row's nest declares them */
    uint32_t n_operands;
    /* Elements of an operand by value: so many for each unit of the first symbol, and so many beside. */
    uint32_t per_lane[TIR_INTRIN_OPERANDS], fixed[TIR_INTRIN_OPERANDS];
} tir_instr_form;

/* NULL after a diagnostic: the row is no instruction, or contradicts itself. */
const tir_instr_form *tir_instr_form_of(compiler *c, const tir_intrin *row);

static inline bool tir_intrin_is_instr(const tir_intrin *row)
{
    return row->passed != NULL;
}
/* Operands of the nest, the result last. */
static inline uint32_t tir_instr_params(const tir_intrin *row)
{
    return (uint32_t)strlen(row->passed);
}
/* Whether the result is a value, so that nothing is written. */
static inline bool tir_instr_gives_value(const tir_intrin *row)
{
    return row->passed[tir_instr_params(row) - 1] != 'a';
}
/* Whether the instruction makes this value out of others; else it adds to one, which is its first argument. */
static inline bool tir_instr_makes_value(const tir_intrin *row)
{
    return tir_instr_gives_value(row) && !row->update;
}
/* Of a node of the row with these arguments. */
static inline tir_type tir_instr_type(const tir_intrin *row, uint32_t n_args, tir_expr_ref const *args)
{
    const tir_type status = {DT_I32, 1}, made = {row->makes, (uint16_t)(row->lanes ? row->lanes : 1)};
    return tir_instr_makes_value(row) ? made : tir_instr_gives_value(row) && n_args > 0 ? args[0]->type : status;
}
/* Arguments that are operands; symbols follow. */
static inline uint32_t tir_instr_operands(const tir_intrin *row)
{
    return tir_instr_params(row) - tir_instr_makes_value(row);
}
/* The number of argument i among the operands of the nest. */
static inline uint32_t tir_instr_param(const tir_intrin *row, uint32_t i)
{
    return tir_instr_makes_value(row) ? i : i == 0 ? tir_instr_params(row) - 1 : i - 1;
}
static inline bool tir_instr_by_address(const tir_intrin *row, uint32_t i)
{
    return row->passed[tir_instr_param(row, i)] == 'a';
}
/* Whether argument i is a vector that the instruction itself reads from memory. */
static inline bool tir_instr_in_memory(const tir_intrin *row, uint32_t i)
{
    return i < tir_instr_operands(row) && row->passed[tir_instr_param(row, i)] == 'm';
}
/* Whether e is one that writes memory: it must run once, where it stands. */
static inline bool tir_instr_writes(tir_expr_ref e)
{
    return e->kind == TIR_INSTR && !tir_instr_gives_value(e->u.row);
}
/* Whether e may read or write memory that its arguments only point at, as a call of a function may. */
static inline bool tir_is_call(tir_expr_ref e)
{
    return e->kind == TIR_EXTERN || (e->kind == TIR_INSTR && strchr(e->u.row->passed, 'a'));
}
/* All arguments, but for further first operands (row->runs) behind them. A first symbol that the lanes tell is none. */
static inline uint32_t tir_instr_args(const tir_intrin *row)
{
    const bool tells = tir_instr_gives_value(row) && !tir_instr_makes_value(row) && row->n_symbols > 0;
    return tir_instr_operands(row) + row->n_symbols - tells;
}
/* The symbol that argument i is. */
static inline const tir_intrin_symbol *tir_instr_symbol(const tir_intrin *row, uint32_t i)
{
    return &row->symbols[i + row->n_symbols - tir_instr_args(row)];
}
/* The addresses of first operands, one after the other. */
static inline uint32_t tir_instr_runs(tir_expr_ref e)
{
    return 1 + e->n_args - tir_instr_args(e->u.row);
}
static inline tir_expr_ref tir_instr_run(tir_expr_ref e, uint32_t i)
{
    return e->args[i == 0 ? 1 : tir_instr_args(e->u.row) + i - 1];
}
/* Elements of an operand of e; -1: a run decides. */
int64_t tir_instr_elements(compiler *c, tir_expr_ref e, uint32_t param);
/* The argument that this symbol is; NULL: the row has no such symbol, or it is no argument. */
tir_expr_ref tir_instr_arg(tir_expr_ref e, const char *symbol);
/* Units of the first symbol in a result of so many lanes. */
int64_t tir_instr_units(const tir_instr_form *f, uint32_t lanes);

/* What is wrong with a node, as a sentence; NULL: nothing. */
const char *tir_instr_fault(compiler *c, tir_expr_ref e);
#endif
