/* SPDX-License-Identifier: Apache-2.0 */
/* Dimensions: constants, symbols, and arithmetic on them. A dim is a pointer to a unique expression kept in normal form
 * (a sum of products with constant coefficients, over atoms: symbols, floordiv, mod, min, max), so equal values that
 * the normal form can see are equal pointers. A symbol may have an upper bound: storage is planned at the bound, the
 * actual extent lives in an i64 cell at run time. Symbols are extents: 0 and more. Arithmetic that overflows int64, or
 * an expression larger than any shape needs, gives an unknown dim: a symbol that equals only the same operation on the
 * same operands. */
#ifndef LATHE_TYPE_DIM_H
#define LATHE_TYPE_DIM_H
#include "base/compiler.h"

typedef const struct dim_expr *dim; /* never NULL in a shape */

dim dim_const(compiler *c, int64_t v);
/* The same name always gives the same symbol; bound < 0: none. A bound given once stays (the smaller one wins). */
dim dim_symbol(compiler *c, const char *name, int64_t bound);
dim dim_fresh(compiler *c, const char *prefix, int64_t bound); /* new symbol "prefix_N" */
/* For work that is done once more: the bounds that symbols have, and back to them. Symbols made since have none. */
typedef struct dim_mark {
    const struct dim_expr **symbols;
    int64_t *bounds;
    uint32_t n;
} dim_mark;
dim_mark dim_get_mark(compiler *c);
void dim_reset(compiler *c, const dim_mark *b);
bool dim_is_fresh(dim d);                                      /* a symbol that dim_fresh made */
dim dim_add(compiler *c, dim a, dim b);
dim dim_sub(compiler *c, dim a, dim b);
dim dim_mul(compiler *c, dim a, dim b);
dim dim_floordiv(compiler *c, dim a, dim b); /* by constant 0: unknown */
/* The same where b is an extent, or a product of extents: whatever is cut off at 0 there is not below it. */
dim dim_divide_extents(compiler *c, dim a, dim b);
dim dim_ceildiv(compiler *c, dim a, dim b);  /* a symbolic b is taken as positive */
dim dim_mod(compiler *c, dim a, dim b);      /* result has the divisor's sign */
dim dim_min(compiler *c, dim a, dim b);
dim dim_max(compiler *c, dim a, dim b);
bool dim_is_const(dim d, int64_t *out);
static inline bool dim_equal(dim a, dim b)
{
    return a == b;
}
bool dim_is(dim d, int64_t v);
int64_t dim_bound(dim d);           /* largest possible value, 0 for negative ones, -1 when unknown */
const char *dim_symbol_name(dim d); /* NULL when d is not a lone symbol */
bool dim_mentions(dim d, const char *symbol);
/* Whether a <= b whatever the symbols are, within their upper bounds. */
bool dim_never_above(compiler *c, dim a, dim b);
/* Whether d is made of results that could not be expressed: of those no kernel finds the value. */
bool dim_is_unknown(dim d);
/* d with every symbol that `lookup` knows replaced (lookup returns NULL for others). */
dim dim_substitute(compiler *c, dim d, dim (*lookup)(void *ctx, const char *symbol), void *ctx);
/* "n", "2*n + 1", "floordiv(n, 2)", "\"batch size\" - 1": parsed back by dim_parse to the same pointer. Symbols come
 * out in the order of their names, never of their making. */
void dim_print(writer *w, dim d);
bool dim_parse(compiler *c, lexer *l, dim *out);
/* Walk for lowering: kind, operands. DIM_ADD: terms, the constant last; DIM_MUL: an optional constant, then atoms. */
typedef enum dim_kind { DIM_CONST, DIM_SYMBOL, DIM_ADD, DIM_MUL, DIM_FLOORDIV, DIM_MOD, DIM_MIN, DIM_MAX } dim_kind;
dim_kind dim_get_kind(dim d);
uint32_t dim_operands(dim d, const dim **out); /* ADD and MUL: two or more; others two; leaves zero */
#endif
