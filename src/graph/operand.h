/* SPDX-License-Identifier: Apache-2.0 */
/* What an operator row asks of its operands: one text a row, read when the row is registered and checked in one place
 * before the type relation runs.
 *
 *   operands = { operand }            separated by blanks, in order
 *   operand  = name [ mark ] [ ":" [ types ] [ shape ] ]
 *   mark     = "?"  may be left out       "*"  any number of them       "+"  one or more of them
 *   types    = class | dtype | "~" name   a class of element types, one type, or that of an earlier operand
 *   shape    = "[" [ "..," ] [ "_" { "," "_" } ] "]"   that rank; with ".." that rank or more
 *            | "(1)"                      one element, whatever the rank
 *
 * "data starts:index[_] value?:~data(1)". Classes are the rows of OPERAND_CLASSES. */
#ifndef LATHE_GRAPH_OPERAND_H
#define LATHE_GRAPH_OPERAND_H
#include "graph/graph.h"

/* X(id, name in rows, words in messages, which dtypes dt) */
#define OPERAND_CLASSES(X)                                                                   \
    X(OPERAND_ANY, "any", "any element type", true)                                          \
    X(OPERAND_INDEX, "index", "i32 or i64", dt == DT_I32 || dt == DT_I64)                    \
    X(OPERAND_INT, "int", "an integer type", dtype_is_int(dt))                               \
    X(OPERAND_BITS, "bits", "bool or an integer type", dt == DT_BOOL || dtype_is_int(dt))    \
    X(OPERAND_FLOAT, "float", "a floating-point type", dtype_is_float(dt))                   \
    X(OPERAND_NUMBER, "number", "a type of numbers", dtype_is_int(dt) || dtype_is_float(dt)) \
    X(OPERAND_DTYPE, NULL, NULL, false) /* one dtype by its name */                          \
    X(OPERAND_LIKE, NULL, NULL, false)  /* the element type of another operand */

typedef enum operand_class {
#define X(id, name, words, has) id,
    OPERAND_CLASSES(X)
#undef X
} operand_class;

typedef enum operand_shape { OPERAND_ANY_SHAPE, OPERAND_RANK, OPERAND_RANK_OR_MORE, OPERAND_ONE_ELEMENT } operand_shape;

typedef struct operand_def {
    const char *name;
    bool optional, repeated; /* repeated: the last one, which stands for all that follow */
    operand_class cls;
    dtype dt;      /* OPERAND_DTYPE */
    uint32_t like; /* OPERAND_LIKE: which operand */
    operand_shape shape;
    int32_t rank; /* OPERAND_RANK, OPERAND_RANK_OR_MORE */
} operand_def;

/* Reads the text of the row of operator `op`; max -1: any number. false: not a list of operands. */
bool operands_parse(compiler *c, const char *op, const char *text, const operand_def **out, uint32_t *n, int32_t *min,
                    int32_t *max);
/* The row's definition of operand i; NULL: the row says nothing of it. */
const operand_def *operand_of(const struct graph_op *op, uint32_t i);
/* Whether operand i must be there: those that the row does not let be left out, and all of a repeated one. */
bool operand_is_required(const struct graph_op *op, uint32_t i);
/* Whether the operands, which are typed, are what the row asks for; else an error at the node that names operator and
 * operand, what was found and what is needed. */
bool operands_check(compiler *c, const graph_node *n);
#endif
