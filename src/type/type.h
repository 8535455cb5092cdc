/* SPDX-License-Identifier: Apache-2.0 */
/* The type of a value: dtype and logical shape, or a sequence or optional of a type. Layout, scale and axis are not
 * part of a type. Printed "f32[1, 3, n]", "i64[]" (rank 0), "f32[*]" (rank unknown), "seq<f32[*]>", "opt<i64[2]>"; "?"
 * for TYPE_NONE. */
#ifndef LATHE_TYPE_TYPE_H
#define LATHE_TYPE_TYPE_H
#include "type/dim.h"
#include "type/dtype.h"

#define TYPE_MAX_RANK 16u

typedef struct shape {
    int32_t rank; /* -1: unknown */
    const dim *dims;
} shape;

typedef enum type_kind { TYPE_NONE, TYPE_TENSOR, TYPE_SEQUENCE, TYPE_OPTIONAL } type_kind;

typedef struct type {
    type_kind kind;
    dtype dt;                /* tensor */
    struct shape shape;      /* tensor */
    const struct type *elem; /* sequence, optional */
} type;

shape shape_make(compiler *c, uint32_t rank, const dim *dims);      /* copies */
shape shape_const(compiler *c, uint32_t rank, const int64_t *dims); /* copies */
bool shape_equal(shape a, shape b);                                 /* known ranks, equal dims */
bool shape_is_static(shape s);                                      /* rank known, all dims constant and >= 0 */
/* dims[0..rank) as numbers; false when not static. `out` holds TYPE_MAX_RANK. */
bool shape_get(shape s, int64_t *out);
dim shape_elements(compiler *c, shape s); /* product; 1 for rank 0 */
int64_t shape_count(shape s);             /* static product; -1 when not static or above INT64_MAX */
/* Multidirectional broadcasting (ONNX Broadcasting.md). A constant 1 yields to the other; equal symbols unify; a symbol
 * against a constant > 1 takes the constant; two expressions of which nothing is known give their maximum. An unknown
 * rank gives an unknown rank. false: incompatible. */
bool shape_broadcast(compiler *c, shape a, shape b, shape *out);

type type_tensor(dtype dt, shape s);
type type_static(compiler *c, dtype dt, uint32_t rank, const int64_t *dims);
bool type_equal(const type *a, const type *b); /* two unknown ranks are equal here */
int64_t type_bytes(const type *t);             /* of a static tensor of numbers; -1 otherwise, and above INT64_MAX */
/* The same with every dimension as large as its bound allows; -1 also where one has none. */
int64_t type_most_bytes(const type *t);
bool type_mentions(const type *t, const char *symbol); /* in a dimension */
void type_print(writer *w, const type *t);
bool type_parse(compiler *c, lexer *l, type *out);
#endif
