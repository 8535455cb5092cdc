/* SPDX-License-Identifier: Apache-2.0 */
/* narrow-indices: loops and indices of 32 bits for targets whose pointers have as many. Each loop and each expression
 * for itself: what has 64 bits, and whose values, like those of all its parts, fit, is computed in 32; values that are
 * not known to fit keep their type, and what they take of narrow ones is widened again. C compilers do not see that,
 * and divide and compare numbers of 64 bits by several instructions, or by a call. */
#include "tir/build.h"
#include "tir/linear.h"
#include "tir/map.h"
#include "tir/node.h"
#include "tir/pass.h"
#include "tir/simplify.h"
#include "tir/walk.h"
#include "type/target.h"

typedef struct narrower {
    compiler *c;
    tir_bounds *bounds;
    tir_map vars;            /* loop variable -> the narrow one that takes its place */
    tir_map narrow, rebuilt; /* of the expression at hand: what became of its parts */
    uint32_t depth;          /* loops and conditions around */
} narrower;

/* In the map of narrow forms: there is none. */
static const char none;

static tir_expr_ref narrow_of(narrower *n, tir_expr_ref e);
static tir_expr_ref rebuilt(narrower *n, tir_expr_ref e);

/* --- expressions --- */

static bool fits(narrower *n, tir_expr_ref e)
{
    tir_range r = tir_range_of(n->bounds, e);
    return r.known_min && r.known_max && r.min >= INT32_MIN && r.max <= INT32_MAX;
}

/* Operations whose result in 32 bits is that in 64 where operands and result fit. */
static bool is_arithmetic(tir_op op)
{
    return op != TIR_SHL && op != TIR_SHR && op != TIR_BITAND && op != TIR_BITOR && op != TIR_BITXOR;
}

static tir_expr_ref narrow_var(narrower *n, tir_expr_ref e)
{
    const tir_var *v = tir_map_get(&n->vars, e->u.var);
    return v ? tir_varref(n->c, v) : tir_cast(n->c, DT_I32, e);
}

/* The other operand of a minimum or maximum with a number of 32 bits; NULL: e is none. */
static tir_expr_ref bounded(tir_expr_ref e, tir_op op, int64_t *bound)
{
    for (uint32_t i = 0; e->kind == TIR_BINOP && e->op == op && i < 2; i++)
        if (tir_is_int(e->args[i], bound) && *bound >= INT32_MIN && *bound <= INT32_MAX)
            return e->args[1 - i];
    return NULL;
}

/* A float as an index between two bounds: conversions saturate, so that it may do so in 32 bits. */
static tir_expr_ref narrow_clamp(narrower *n, tir_expr_ref e)
{
    const tir_op inside = e->op == TIR_MAX ? TIR_MIN : TIR_MAX;
    int64_t outer = 0, inner_bound = 0;
    tir_expr_ref middle = e->op == TIR_MAX || e->op == TIR_MIN ? bounded(e, e->op, &outer) : NULL;
    tir_expr_ref x = middle ? bounded(middle, inside, &inner_bound) : NULL;
    if (!x || x->kind != TIR_CAST || !dtype_is_float(x->args[0]->type.dt))
        return NULL;
    tir_expr_ref number = tir_cast(n->c, DT_I32, rebuilt(n, x->args[0]));
    return tir_binary(n->c, e->op, tir_binary(n->c, inside, number, tir_int(n->c, DT_I32, inner_bound)),
                      tir_int(n->c, DT_I32, outer));
}

static tir_expr_ref narrow_binary(narrower *n, tir_expr_ref e)
{
    tir_expr_ref a = is_arithmetic(e->op) ? narrow_of(n, e->args[0]) : NULL, b = a ? narrow_of(n, e->args[1]) : NULL;
    return b ? tir_binary(n->c, e->op, a, b) : narrow_clamp(n, e);
}

static tir_expr_ref narrow_select(narrower *n, tir_expr_ref e)
{
    tir_expr_ref a = narrow_of(n, e->args[1]), b = a ? narrow_of(n, e->args[2]) : NULL;
    return b ? tir_select(n->c, rebuilt(n, e->args[0]), a, b) : NULL;
}

/* Lanes count on from the base, whose own turn comes, too. */
static tir_expr_ref narrow_ramp(narrower *n, tir_expr_ref e)
{
    int64_t step = 0;
    tir_range base = tir_range_of(n->bounds, e->args[0]);
    if (!tir_is_int(e->args[1], &step) || step < 0 || step > INT16_MAX || !base.known_max ||
        base.max > INT32_MAX - step * e->type.lanes)
        return NULL;
    tir_expr_ref a = narrow_of(n, e->args[0]);
    return a ? tir_ramp(n->c, a, tir_int(n->c, DT_I32, step), e->type.lanes) : NULL;
}

static tir_expr_ref make_narrow(narrower *n, tir_expr_ref e)
{
    if (e->kind == TIR_RAMP)
        return narrow_ramp(n, e);
    if (e->type.lanes > 1 || !fits(n, e))
        return NULL;
    switch (e->kind) {
    case TIR_INT: return tir_int(n->c, DT_I32, e->u.i);
    case TIR_VAR: return narrow_var(n, e);
    case TIR_BINOP: return narrow_binary(n, e);
    case TIR_SELECT: return narrow_select(n, e);
    case TIR_CAST: return dtype_is_float(e->args[0]->type.dt) ? NULL : tir_cast(n->c, DT_I32, rebuilt(n, e->args[0]));
    case TIR_FLOAT:
    case TIR_NOT:
    case TIR_LOAD:
    case TIR_CALL:
    case TIR_ADDRESS:
    case TIR_EXTERN:
    case TIR_INSTR:
    case TIR_RAMP:
    case TIR_BROADCAST: break;
    }
    return NULL;
}

/* An i64 in 32 bits; NULL: it may not fit. */
static tir_expr_ref narrow_of(narrower *n, tir_expr_ref e)
{
    const void *known = tir_map_get(&n->narrow, e);
    if (known)
        return known == &none ? NULL : known;
    tir_expr_ref out = e->type.dt == DT_I64 ? make_narrow(n, e) : NULL;
    tir_map_put(&n->narrow, e, out ? (const void *)out : &none);
    return out;
}

/* Of the same type as e, out of what is narrow. Constants and conversions gain nothing, and stay. */
static tir_expr_ref widened(narrower *n, tir_expr_ref e, tir_expr_ref narrow)
{
    if (e->kind == TIR_INT || (e->kind == TIR_VAR && !tir_map_get(&n->vars, e->u.var)))
        return e;
    return tir_cast(n->c, DT_I64, e->kind == TIR_CAST ? rebuilt(n, e->args[0]) : narrow);
}

/* Strides and offsets have 64 bits, and indices of several dimensions one type. */
static bool access_takes_either(const tir_buffer *b, uint32_t n_indices)
{
    return !b->strides && !b->offset && n_indices <= 1;
}

static bool takes_either(tir_expr_ref e)
{
    if (tir_is_access(e))
        return access_takes_either(e->u.buffer, e->n_args);
    return e->kind == TIR_EXTERN || e->kind == TIR_INSTR || e->kind == TIR_CAST ||
           (e->kind == TIR_BINOP && tir_op_is_compare(e->op));
}

/* The parts of e, in 32 bits where e may take them so: operands of a comparison both, or none. */
static void rebuild_parts(narrower *n, tir_expr_ref e, tir_expr_ref *out)
{
    bool narrow = takes_either(e), all = true;
    for (uint32_t i = 0; i < e->n_args; i++) {
        tir_expr_ref a = narrow && e->args[i]->type.dt == DT_I64 ? narrow_of(n, e->args[i]) : NULL;
        all = all && a;
        out[i] = a ? a : rebuilt(n, e->args[i]);
    }
    for (uint32_t i = 0; i < e->n_args && e->kind == TIR_BINOP && !all; i++)
        out[i] = rebuilt(n, e->args[i]);
}

/* The same value, of the same type. */
static tir_expr_ref rebuilt(narrower *n, tir_expr_ref e)
{
    const void *known = tir_map_get(&n->rebuilt, e);
    tir_expr_ref narrow = known || e->type.dt != DT_I64 ? NULL : narrow_of(n, e), out = e;
    if (known)
        return known;
    if (narrow && e->type.lanes == 1) {
        out = widened(n, e, narrow);
    } else if (e->n_args > 0) {
        tir_expr_ref *args = arena_array(&n->c->mem, tir_expr_ref, e->n_args);
        bool changed = false;
        rebuild_parts(n, e, args);
        for (uint32_t i = 0; i < e->n_args; i++)
            changed |= args[i] != e->args[i];
        out = changed ? tir_node_rebuild(n->c, e, args) : e;
    }
    tir_map_put(&n->rebuilt, e, out);
    return out;
}

/* --- statements --- */

static tir_expr_ref outermost(narrower *n, tir_expr_ref e, bool narrow)
{
    tir_map_clear(&n->narrow); /* bounds are others by now */
    tir_map_clear(&n->rebuilt);
    tir_expr_ref out = e && narrow ? narrow_of(n, e) : NULL;
    return out || !e ? out : rebuilt(n, e);
}

static tir_stmt *in_stmt(narrower *n, tir_stmt *s);

static tir_stmt *inner(narrower *n, tir_stmt *s)
{
    n->depth++;
    tir_stmt *out = s ? in_stmt(n, s) : NULL;
    n->depth--;
    return out;
}

/* Whether an array below has a size that names the variable: it keeps its type, as those of lets do. */
static bool sizes_name(const tir_stmt *s, const tir_var *v)
{
    if (!s)
        return false;
    if (s->kind == TIR_ALLOCATE)
        for (uint32_t i = 0; i < s->buffer->rank; i++)
            if (tir_uses_var(s->buffer->shape[i], v))
                return true;
    for (uint32_t i = 0; s->kind == TIR_SEQ && i < s->n_stmts; i++)
        if (sizes_name(s->stmts[i], v))
            return true;
    return sizes_name(s->body, v) || (s->kind == TIR_IF && sizes_name(s->orelse, v));
}

static void in_loop(narrower *n, tir_stmt *s, struct tir_stmt *out)
{
    tir_expr_ref end = outermost(n, tir_add(n->c, s->min, s->extent), true);
    tir_expr_ref min = outermost(n, s->min, true), extent = outermost(n, s->extent, true);
    bool narrow = s->var->type.dt == DT_I64 && end->type.dt == DT_I32 && min->type.dt == DT_I32 &&
                  extent->type.dt == DT_I32 && !sizes_name(s->body, s->var);
    out->min = narrow ? min : outermost(n, s->min, false);
    out->extent = narrow ? extent : outermost(n, s->extent, false);
    if (narrow) {
        out->var = tir_new_var(n->c, s->var->name, tir_scalar(DT_I32));
        tir_map_put(&n->vars, s->var, out->var);
    }
    tir_bounds_push(n->bounds, s->var, s->min, s->extent);
    out->body = inner(n, s->body);
    tir_bounds_pop(n->bounds);
}

/* The variable keeps its type: sizes of arrays may name it. */
static void in_let(narrower *n, tir_stmt *s, struct tir_stmt *out)
{
    out->value = outermost(n, s->value, false);
    bounds_push_range(n->bounds, s->var, tir_range_of(n->bounds, s->value), true);
    out->body = in_stmt(n, s->body);
    tir_bounds_pop(n->bounds);
}

static void in_seq(narrower *n, tir_stmt *s, struct tir_stmt *out)
{
    tir_stmt **all = arena_array(&n->c->mem, tir_stmt *, s->n_stmts);
    for (uint32_t i = 0; i < s->n_stmts; i++)
        all[i] = in_stmt(n, s->stmts[i]);
    out->stmts = all;
}

static void in_store(narrower *n, tir_stmt *s, struct tir_stmt *out)
{
    bool narrow = access_takes_either(s->buffer, s->n_indices);
    tir_expr_ref *indices = arena_array(&n->c->mem, tir_expr_ref, s->n_indices + 1u);
    for (uint32_t i = 0; i < s->n_indices; i++)
        indices[i] = outermost(n, s->indices[i], narrow);
    out->indices = indices;
    out->value = outermost(n, s->value, false);
}

static tir_stmt *in_stmt(narrower *n, tir_stmt *s)
{
    struct tir_stmt *out = tir_node_copy(n->c, s);
    switch (s->kind) {
    case TIR_FOR: in_loop(n, s, out); break;
    case TIR_LET: in_let(n, s, out); break;
    case TIR_SEQ: in_seq(n, s, out); break;
    case TIR_STORE: in_store(n, s, out); break;
    case TIR_IF:
        out->cond = outermost(n, s->cond, false);
        out->body = inner(n, s->body);
        out->orelse = inner(n, s->orelse);
        break;
    case TIR_ASSERT:
        out->cond = outermost(n, s->cond, false);
        if (n->depth == 0) /* the bounds of open extents hold from here on */
            bounds_push_cond(n->bounds, s->cond, true);
        break;
    case TIR_ALLOCATE:
    case TIR_ATTR:
    case TIR_EVALUATE:
        out->value = outermost(n, s->value, false);
        out->body = s->body ? in_stmt(n, s->body) : NULL;
        break;
    }
    return out;
}

bool tir_pass_narrow(compiler *c, tir_func *f)
{
    if (!f->target || f->target->address_bits != 32 || f->index_type != DT_I64)
        return true;
    narrower n = {.c = c, .bounds = tir_bounds_new(c)};
    tir_map_init(&n.vars, &c->mem);
    tir_map_init(&n.narrow, &c->mem);
    tir_map_init(&n.rebuilt, &c->mem);
    f->body = in_stmt(&n, f->body);
    f->index_type = DT_I32;
    return true;
}
