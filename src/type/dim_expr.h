/* SPDX-License-Identifier: Apache-2.0 */
/* What the dim files share: the unique expression and its makers. Nobody else includes this; others walk a dim through
 * dim_get_kind and dim_operands.
 *
 * Normal form. A sum is DIM_ADD of terms, the constant last; a term is a constant, an atom, or DIM_MUL of a constant
 * other than 0 and 1 (first, when present) and atoms. Atoms are symbols and floordiv, mod, min, max of sums. Terms
 * stand in graded order (more atoms first, then by structure), so the order never depends on what was made first. */
#ifndef LATHE_TYPE_DIM_EXPR_H
#define LATHE_TYPE_DIM_EXPR_H
#include "type/dim.h"

typedef struct dim_expr {
    dim_kind kind;
    uint32_t n_ops;
    const dim *ops;
    int64_t value;    /* DIM_CONST */
    const char *name; /* DIM_SYMBOL, interned */
    int64_t bound;    /* DIM_SYMBOL, -1: none */
    bool any_sign;    /* DIM_SYMBOL: not an extent, may be negative */
    bool fresh;       /* DIM_SYMBOL: of dim_fresh */
    uint64_t hash;    /* of the structure: the same in every run */
    uint32_t size;    /* leaves and operations when written out as a tree */
    uint32_t depth;   /* of that tree */
} dim_expr;

/* Sums, products and trees beyond these become unknown dims: shapes of real models stay far below, and every walk over
 * a dim may be a plain recursion. */
#define DIM_MAX_TERMS  64u
#define DIM_MAX_DEGREE 8u
#define DIM_MAX_SIZE   4096u
#define DIM_MAX_DEPTH  96u

typedef struct dim_range {
    int64_t lo, hi; /* INT64_MIN, INT64_MAX: unlimited */
} dim_range;

/* The one expression with this kind and these operands (copied), which are in normal form already. */
dim dim_make(compiler *c, dim_kind kind, uint32_t n, const dim *ops);
/* The same, or an unknown when it would pass the limits; `op` names the operation for dim_unknown. */
dim dim_make_atom(compiler *c, dim_kind kind, char op, dim a, dim b);
/* A symbol named after an operation (one of + - * / % < >) that int64 or the limits above cannot express: the same for
 * the same operands, another one for others. */
dim dim_unknown(compiler *c, char op, dim a, dim b);
/* Total order by structure. */
int dim_compare(dim a, dim b);
/* Symbols are extents: 0 and more. `bounds`: count on their upper bounds too. Normal forms must not, for a bound may
 * become known after the expression was made. */
dim_range dim_get_range(dim d, bool bounds);
#endif
