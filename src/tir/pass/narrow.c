/* SPDX-License-Identifier: Apache-2.0 */
/* narrow-indices: loops and indices of 32 bits for targets whose pointers have as many, in functions where everything
 * that has 64 bits is an index whose values, and those of all its parts, fit. C compilers do not see that, and divide
 * and compare numbers of 64 bits by several instructions, or by a call. */
#include "tir/build.h"
#include "tir/map.h"
#include "tir/node.h"
#include "tir/pass.h"
#include "tir/simplify.h"
#include "tir/walk.h"
#include "type/target.h"

typedef struct narrower {
    compiler *c;
    tir_bounds *bounds;
    tir_map vars; /* loop variable -> the narrow one that takes its place */
    bool ok;
} narrower;

/* --- whether it can be done --- */

static bool is_arithmetic(tir_expr_ref e)
{
    if (e->kind == TIR_INT || e->kind == TIR_VAR || e->kind == TIR_SELECT)
        return true;
    return e->kind == TIR_BINOP && e->op != TIR_SHL && e->op != TIR_SHR && e->op != TIR_BITAND &&
           e->op != TIR_BITOR && e->op != TIR_BITXOR;
}

static void check_expr(void *ctx, tir_expr_ref e)
{
    narrower *n = ctx;
    if (!n->ok || e->type.dt != DT_I64) {
        n->ok = n->ok && e->type.dt != DT_U64;
        return;
    }
    int64_t step = 0;
    if (e->kind == TIR_RAMP && tir_is_int(e->args[1], &step) && step >= 0 && step <= INT16_MAX) {
        tir_range base = tir_range_of(n->bounds, e->args[0]); /* whose own turn comes, too */
        n->ok = base.known_max && base.max <= INT32_MAX - step * e->type.lanes;
        return;
    }
    tir_range r = is_arithmetic(e) && e->type.lanes == 1 ? tir_range_of(n->bounds, e) : (tir_range){0};
    bool known = e->kind != TIR_VAR || tir_map_get(&n->vars, e->u.var);
    n->ok = known && r.known_min && r.known_max && r.min >= INT32_MIN && r.max <= INT32_MAX;
}

static void check_access(narrower *n, const tir_buffer *b, uint32_t n_indices)
{
    n->ok = n->ok && !b->strides && !b->offset && n_indices <= 1;
}

static void check_accesses(void *ctx, tir_expr_ref e)
{
    if (e->kind == TIR_LOAD || e->kind == TIR_ADDRESS)
        check_access(ctx, e->u.buffer, e->n_args);
}

static void check_exprs(void *ctx, tir_expr_ref e)
{
    tir_visit_expr(e, check_expr, ctx);
    tir_visit_expr(e, check_accesses, ctx);
}

static void check_stmt(narrower *n, tir_stmt *s)
{
    bool loop = s->kind == TIR_FOR;
    if (!n->ok)
        return;
    tir_stmt_exprs(s, check_exprs, n);
    if (s->kind == TIR_STORE) {
        check_access(n, s->buffer, s->n_indices);
        n->ok = n->ok && s->value->type.dt != DT_I64; /* a result, which keeps its type, and no index */
    }
    if (s->kind == TIR_LET)
        n->ok = n->ok && s->var->type.dt != DT_I64;
    if (loop) {
        tir_expr_ref end = tir_add(n->c, s->min, s->extent);
        tir_visit_expr(end, check_expr, n);
        tir_map_put(&n->vars, s->var, tir_new_var(n->c, s->var->name, (tir_type){DT_I32, 1}));
        tir_bounds_push(n->bounds, s->var, s->min, s->extent);
    }
    if (s->body)
        check_stmt(n, s->body);
    if (s->orelse)
        check_stmt(n, s->orelse);
    for (uint32_t i = 0; i < s->n_stmts; i++)
        check_stmt(n, s->stmts[i]);
    if (loop)
        tir_bounds_pop(n->bounds);
}

/* --- doing it --- */

static tir_expr_ref narrow_expr(tir_rewriter *r, tir_expr_ref e)
{
    narrower *n = r->ctx;
    if (e->type.dt != DT_I64)
        return e;
    switch (e->kind) {
    case TIR_INT: return tir_int(n->c, DT_I32, e->u.i);
    case TIR_VAR: return tir_varref(n->c, tir_map_get(&n->vars, e->u.var));
    case TIR_RAMP: return tir_ramp(n->c, e->args[0], e->args[1], e->type.lanes);
    case TIR_SELECT: return tir_select(n->c, e->args[0], e->args[1], e->args[2]);
    default: return tir_binary(n->c, e->op, e->args[0], e->args[1]);
    }
}

static tir_stmt *narrow_stmt(tir_rewriter *r, tir_stmt *s)
{
    narrower *n = r->ctx;
    if (s->kind != TIR_FOR)
        return s;
    struct tir_stmt *copy = tir_node_copy(n->c, s);
    copy->var = tir_map_get(&n->vars, s->var);
    return copy;
}

bool tir_pass_narrow(compiler *c, tir_func *f)
{
    if (!f->target || f->target->address_bits != 32 || f->index_type != DT_I64)
        return true;
    narrower n = {.c = c, .bounds = tir_bounds_new(c), .ok = true};
    tir_map_init(&n.vars, &c->mem);
    check_stmt(&n, f->body);
    if (!n.ok)
        return true;
    tir_rewriter r = {.c = c, .ctx = &n, .expr = narrow_expr, .stmt = narrow_stmt};
    f->body = tir_rewrite_stmt(&r, f->body);
    f->index_type = DT_I32;
    return true;
}
