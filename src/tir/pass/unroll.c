/* SPDX-License-Identifier: Apache-2.0 */
/* unroll: loops marked "unrolled" are written out. A loop whose extent is not constant, or whose copies would be too
 * many statements, becomes serial. */
#include "tir/build.h"
#include "tir/clone.h"
#include "tir/pass.h"
#include "tir/simplify.h"
#include "tir/walk.h"

#define MAX_STATEMENTS 16384

static tir_stmt *unroll(tir_rewriter *r, tir_stmt *s)
{
    int64_t n, total;
    if (s->kind != TIR_FOR || s->for_kind != FOR_UNROLLED)
        return s;
    if (!tir_is_int(s->extent, &n) || !i64_mul(n, (int64_t)tir_count_stmts(s->body), &total) || total > MAX_STATEMENTS)
        return tir_for(r->c, s->var, s->min, s->extent, FOR_SERIAL, s->body);
    uint32_t copies = n > 0 ? (uint32_t)n : 0;
    tir_stmt **all = arena_array(&r->c->mem, tir_stmt *, copies);
    for (uint32_t i = 0; i < copies; i++)
        all[i] =
            tir_clone_stmt(r->c, s->body, s->var, tir_add(r->c, s->min, tir_int(r->c, s->var->type.dt, (int64_t)i)));
    return tir_seq(r->c, copies, all);
}

bool tir_pass_unroll(compiler *c, tir_func *f)
{
    tir_rewriter r = {.c = c, .stmt = unroll};
    f->body = tir_simplify_stmt(c, tir_rewrite_stmt(&r, f->body));
    return true;
}
