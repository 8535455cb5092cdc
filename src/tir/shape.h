/* SPDX-License-Identifier: Apache-2.0 */
/* Which literals of a function its caller might as well hand over: those that no pass, no intrinsic and no pattern of a
 * back end needs to know. Two functions have the same shape when nothing but such literals tells them apart, and sizes
 * of arrays (compare.c has their forms). */
#ifndef LATHE_TIR_SHAPE_H
#define LATHE_TIR_SHAPE_H
#include "base/arena.h"
#include "tir/tir.h"

/* What an expression is for. */
typedef enum tir_role {
    ROLE_FIXED, /* its literals steer code */
    ROLE_VALUE, /* data: zero points and scales are open */
    ROLE_INDEX  /* indices, bounds of loops, conditions on them: all its literals are open */
} tir_role;

/* Of argument i of e, which has that role itself. */
tir_role tir_role_of_arg(tir_expr_ref e, uint32_t i, tir_role role);
/* Of an expression that stands in s: what TIR_FOR's min and extent, a condition, a value and indices are for. */
tir_role tir_role_in(const tir_stmt *s, tir_expr_ref const *at);
tir_role tir_role_of_index(const tir_buffer *b);
/* e is argument i of `parent` (NULL: it stands in a statement). */
bool tir_is_open(tir_expr_ref e, tir_role role, tir_expr_ref parent, uint32_t i);
/* Steps that the function of an intrinsic takes in each round of its loop: open arguments have that in common. */
uint32_t tir_written_out(int64_t steps);
/* The size of this array is no part of a shape: it stands on the stack, where there is room for the largest. */
bool tir_is_open_array(const tir_buffer *b);

/* f as a list of words in which variables and buffers are numbered in order of appearance. */
typedef struct tir_form {
    const uint64_t *words;
    uint32_t n_words;
    const tir_expr_ref *literals; /* the open ones, in order */
    uint32_t n_literals;
    const int64_t *sizes; /* of open arrays, in order */
    uint32_t n_sizes;
} tir_form;
/* `open`: without its open literals and sizes, and without extents of operands that are accessed by one flat index. */
void tir_form_of(arena *a, const tir_func *f, bool open, tir_form *out);
bool tir_form_equal(const tir_form *a, const tir_form *b); /* words alone */
uint64_t tir_form_hash(const tir_form *f);
/* The body of f with values[i] in the place of its open literal i (NULL: it stays), and open arrays of `sizes`. */
tir_stmt *tir_put_literals(compiler *c, const tir_func *f, tir_expr_ref const *values, const int64_t *sizes);
#endif
