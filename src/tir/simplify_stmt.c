/* SPDX-License-Identifier: Apache-2.0 */
/* Simplification of statements: ranges of loop variables and the conditions around a statement are known while it is
 * walked; what cannot run or does nothing goes away. */
#include "tir/build.h"
#include "tir/linear.h"
#include "tir/node.h"
#include "tir/walk.h"

static tir_stmt *simplify(tir_bounds *b, tir_stmt *s);

static tir_stmt *nothing(tir_bounds *b)
{
    return tir_seq(b->c, 0, NULL);
}
static bool is_nothing(tir_stmt *s)
{
    return s->kind == TIR_SEQ && s->n_stmts == 0;
}

typedef struct var_search {
    const tir_var *var;
    bool found;
} var_search;

static void look_for_var(void *ctx, tir_expr_ref e)
{
    var_search *s = ctx;
    s->found = s->found || (e->kind == TIR_VAR && e->u.var == s->var);
}

/* Sizes of buffers are not among a statement's expressions. */
static void look_for_size(void *ctx, tir_stmt *s)
{
    const tir_buffer *b = s->kind == TIR_ALLOCATE ? s->buffer : NULL;
    for (uint32_t i = 0; b && i < b->rank; i++) {
        tir_visit_expr(b->shape[i], look_for_var, ctx);
        if (b->strides)
            tir_visit_expr(b->strides[i], look_for_var, ctx);
    }
    if (b && b->offset)
        tir_visit_expr(b->offset, look_for_var, ctx);
}

bool tir_stmt_uses_var(tir_stmt *s, const tir_var *v)
{
    var_search search = {v, false};
    tir_visit_stmt(s, look_for_size, look_for_var, &search);
    return search.found;
}

/* Such a variable cannot be replaced: buffers are compared by address. */
static bool sizes_use_var(tir_stmt *s, const tir_var *v)
{
    var_search search = {v, false};
    tir_visit_stmt(s, look_for_size, NULL, &search);
    return search.found;
}

static bool writes(tir_stmt *s, const tir_buffer *buffer)
{
    if (!s)
        return false;
    if ((s->kind == TIR_STORE && s->buffer == buffer) || writes(s->body, buffer) || writes(s->orelse, buffer))
        return true;
    for (uint32_t i = 0; i < s->n_stmts; i++)
        if (writes(s->stmts[i], buffer))
            return true;
    return false;
}

static tir_stmt *replace_var(tir_bounds *b, tir_stmt *body, const tir_var *v, tir_expr_ref value)
{
    return simplify(b, tir_substitute_stmt(b->c, body, 1, &v, &value));
}

static tir_stmt *simplify_for(tir_bounds *b, tir_stmt *s)
{
    tir_expr_ref min = tir_simplify(b, s->min), extent = tir_simplify(b, s->extent);
    tir_range n = tir_range_of(b, extent);
    if (n.known_max && n.max <= 0)
        return nothing(b);
    if (tir_is_const(extent, 1) && s->for_kind != FOR_VTHREAD && !sizes_use_var(s->body, s->var))
        return replace_var(b, s->body, s->var, min);
    tir_bounds_push(b, s->var, min, extent);
    tir_stmt *body = simplify(b, s->body);
    tir_bounds_pop(b);
    if (is_nothing(body))
        return nothing(b);
    if (min == s->min && extent == s->extent && body == s->body)
        return s;
    return tir_for(b->c, s->var, min, extent, s->for_kind, body);
}

typedef struct stale_search {
    tir_stmt *s;
    bool found;
} stale_search;

/* A load of a buffer that s writes. */
static void find_stale(void *ctx, tir_expr_ref e)
{
    stale_search *f = ctx;
    f->found |= e->kind == TIR_LOAD && writes(f->s, e->u.buffer);
}

/* Whether what the condition reads may be another when s has run. */
static bool is_stale(tir_expr_ref cond, tir_stmt *s)
{
    stale_search f = {s, false};
    tir_visit_expr(cond, find_stale, &f);
    return f.found;
}

static tir_stmt *under(tir_bounds *b, tir_expr_ref cond, bool holds, tir_stmt *s)
{
    if (is_stale(cond, s))
        return simplify(b, s);
    bounds_push_cond(b, cond, holds);
    tir_stmt *out = simplify(b, s);
    tir_bounds_pop(b);
    return out;
}

static tir_stmt *simplify_if(tir_bounds *b, tir_stmt *s)
{
    tir_expr_ref cond = tir_simplify(b, s->cond);
    int64_t v;
    if (tir_is_int(cond, &v))
        return v ? simplify(b, s->body) : s->orelse ? simplify(b, s->orelse) : nothing(b);
    tir_stmt *body = under(b, cond, true, s->body), *orelse = s->orelse ? under(b, cond, false, s->orelse) : NULL;
    if (orelse && is_nothing(orelse))
        orelse = NULL;
    if (is_nothing(body) && !tir_has_extern(cond))
        return orelse ? tir_if(b->c, tir_not(b->c, cond), orelse, NULL) : nothing(b);
    if (cond == s->cond && body == s->body && orelse == s->orelse)
        return s;
    return tir_if(b->c, cond, body, orelse);
}

static tir_stmt *simplify_let(tir_bounds *b, tir_stmt *s)
{
    tir_expr_ref value = tir_simplify(b, s->value);
    bool plain = value->kind == TIR_INT || value->kind == TIR_FLOAT || value->kind == TIR_VAR;
    if (plain && !sizes_use_var(s->body, s->var))
        return replace_var(b, s->body, s->var, value);
    bool is_value = !bounds_is_index_type(value->type) || !bounds_is_exact(b, value) || value->kind == TIR_LOAD ||
                    value->kind == TIR_CAST;
    bounds_push_range(b, s->var, tir_range_of(b, value), is_value);
    tir_stmt *body = simplify(b, s->body);
    tir_bounds_pop(b);
    if (!tir_has_extern(value) && (is_nothing(body) || !tir_stmt_uses_var(body, s->var)))
        return body;
    return value == s->value && body == s->body ? s : tir_let(b->c, s->var, value, body);
}

static tir_stmt *simplify_store(tir_bounds *b, tir_stmt *s)
{
    tir_expr_ref idx[TIR_MAX_RANK], value = tir_simplify(b, s->value);
    bool changed = value != s->value;
    for (uint32_t i = 0; i < s->n_indices; i++) {
        idx[i] = tir_simplify(b, s->indices[i]);
        changed |= idx[i] != s->indices[i];
    }
    return changed ? tir_store(b->c, s->buffer, s->n_indices, idx, value) : s;
}

static tir_stmt *simplify_seq(tir_bounds *b, tir_stmt *s)
{
    tir_stmt **all = arena_array(&b->c->mem, tir_stmt *, s->n_stmts);
    bool changed = false;
    uint32_t asserted = 0;
    for (uint32_t i = 0; i < s->n_stmts; i++) {
        all[i] = simplify(b, s->stmts[i]);
        changed |= all[i] != s->stmts[i];
        bool stale = false;
        for (uint32_t k = i + 1; all[i]->kind == TIR_ASSERT && k < s->n_stmts; k++)
            stale |= is_stale(all[i]->cond, s->stmts[k]);
        if (all[i]->kind != TIR_ASSERT || stale)
            continue;
        bounds_push_cond(b, all[i]->cond, true); /* what follows runs only when it holds */
        asserted++;
    }
    while (asserted-- > 0)
        tir_bounds_pop(b);
    return changed ? tir_seq(b->c, s->n_stmts, all) : s;
}

/* ALLOCATE and ATTR: the body alone. */
static tir_stmt *simplify_body(tir_bounds *b, tir_stmt *s)
{
    tir_expr_ref value = s->value ? tir_simplify(b, s->value) : NULL;
    tir_stmt *body = simplify(b, s->body);
    if (is_nothing(body))
        return body;
    if (body == s->body && value == s->value)
        return s;
    struct tir_stmt *copy = tir_node_copy(b->c, s);
    copy->value = value;
    copy->body = body;
    return copy;
}

static tir_stmt *simplify(tir_bounds *b, tir_stmt *s)
{
    switch (s->kind) {
    case TIR_FOR: return simplify_for(b, s);
    case TIR_IF: return simplify_if(b, s);
    case TIR_LET: return simplify_let(b, s);
    case TIR_STORE: return simplify_store(b, s);
    case TIR_ALLOCATE:
    case TIR_ATTR: return simplify_body(b, s);
    case TIR_EVALUATE: {
        tir_expr_ref value = tir_simplify(b, s->value);
        return !tir_has_extern(value) ? nothing(b) : value == s->value ? s : tir_evaluate(b->c, value);
    }
    case TIR_ASSERT: {
        tir_expr_ref cond = tir_simplify(b, s->cond);
        return tir_is_const(cond, 1) ? nothing(b) : cond == s->cond ? s : tir_assert(b->c, cond, s->code, s->key);
    }
    case TIR_SEQ: return simplify_seq(b, s);
    }
    return s;
}

tir_stmt *tir_simplify_stmt(compiler *c, tir_stmt *s)
{
    return simplify(tir_bounds_new(c), s);
}
