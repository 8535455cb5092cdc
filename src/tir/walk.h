/* SPDX-License-Identifier: Apache-2.0 */
/* Trees of the loop IR, walked, rewritten, substituted in, compared (walk.c). */
#ifndef LATHE_TIR_WALK_H
#define LATHE_TIR_WALK_H
#include "tir/tir.h"

/* Rewrites bottom-up: `expr` and `stmt` see a node whose children are already rewritten and return it or another.
 * Either may be NULL. `enter` (may be NULL) sees a statement before its children. */
typedef struct tir_rewriter {
    compiler *c;
    void *ctx;
    tir_expr_ref (*expr)(struct tir_rewriter *r, tir_expr_ref e);
    tir_stmt *(*stmt)(struct tir_rewriter *r, tir_stmt *s);
    void (*enter)(struct tir_rewriter *r, tir_stmt *s);
} tir_rewriter;
tir_expr_ref tir_rewrite_expr(tir_rewriter *r, tir_expr_ref e);
tir_stmt *tir_rewrite_stmt(tir_rewriter *r, tir_stmt *s);
void tir_visit_expr(tir_expr_ref e, void (*fn)(void *ctx, tir_expr_ref e), void *ctx); /* pre-order */
void tir_visit_stmt(tir_stmt *s, void (*stmt)(void *ctx, tir_stmt *s), void (*expr)(void *ctx, tir_expr_ref e),
                    void *ctx);
tir_expr_ref tir_substitute(compiler *c, tir_expr_ref e, uint32_t n, const tir_var *const *vars,
                            tir_expr_ref const *values);
tir_stmt *tir_substitute_stmt(compiler *c, tir_stmt *s, uint32_t n, const tir_var *const *vars,
                              tir_expr_ref const *values);
bool tir_expr_equal(tir_expr_ref a, tir_expr_ref b); /* structure; variables and buffers by address */
bool tir_uses_var(tir_expr_ref e, const tir_var *v);
bool tir_stmt_uses_var(tir_stmt *s, const tir_var *v); /* also in the sizes of buffers (simplify_stmt.c) */
#endif
