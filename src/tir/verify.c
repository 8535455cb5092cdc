/* SPDX-License-Identifier: Apache-2.0 */
/* Checks of a function: types, definitions before uses, ranks, and indices that provably lie outside. Runs after every
 * pass; whatever it lets through, the printers and the interpreter accept. */
#include "tir/build.h"
#include "tir/family.h"
#include "tir/instr.h"
#include "tir/names.h"
#include "tir/node.h"
#include "tir/simplify.h"
#include "tir/text.h"
#include "tir/verify.h"
#include "tir/walk.h"

#include <inttypes.h>

typedef struct verifier {
    compiler *c;
    const tir_func *f;
    tir_bounds *bounds;
    tir_map vars;    /* variables in scope */
    tir_map defined; /* variables and buffers ever defined: one definition each, so that every one has its own name */
    tir_map buffers;
    tir_map checked; /* expressions found well-typed: shared parts are visited once */
    uint32_t guards; /* conditions between here and the function: what lies inside may never run */
    uint32_t maybe;  /* enclosing loops that may have no iteration */
    bool ok;
} verifier;

static bool fail(verifier *v, const char *what, tir_expr_ref e)
{
    writer w;
    writer_init(&w, &v->c->mem);
    if (e)
        tir_print_expr(&w, e);
    v->ok = false;
    return diag_error(&v->c->diags, DIAG_VERIFY, v->f->loc, "%s: %s%s%.200s", v->f->name, what, e ? ": " : "",
                      e ? w.data : "");
}

static bool is_index(tir_expr_ref e)
{
    return e->type.dt == DT_I32 || e->type.dt == DT_I64;
}
static bool same(tir_type a, tir_type b)
{
    return a.dt == b.dt && a.lanes == b.lanes;
}

/* --- expressions --- */

static void check_expr(verifier *v, tir_expr_ref e);

/* The largest and smallest value of an index that is a sum of multiples of loop variables are attained. */
static bool is_attained(tir_expr_ref e)
{
    int64_t k;
    if (e->kind == TIR_INT || e->kind == TIR_VAR)
        return true;
    if (e->kind != TIR_BINOP)
        return false;
    if (e->op == TIR_MUL)
        return (tir_is_int(e->args[0], &k) && is_attained(e->args[1])) ||
               (tir_is_int(e->args[1], &k) && is_attained(e->args[0]));
    return (e->op == TIR_ADD || e->op == TIR_SUB) && is_attained(e->args[0]) && is_attained(e->args[1]);
}

/* And so are those of its quotient by a number, which grows with it; in a sum it may share a variable with others. */
static bool is_attained_whole(tir_expr_ref e)
{
    int64_t k;
    bool quotient = tir_is_binary(e, TIR_FLOORDIV) && tir_is_int(e->args[1], &k) && k > 0;
    return is_attained(quotient ? e->args[0] : e);
}

static void check_bound(verifier *v, const tir_buffer *b, tir_expr_ref e, uint32_t d, bool is_flat)
{
    int64_t extent = is_flat ? tir_buffer_count(b) : -1;
    if (v->guards || v->maybe || e->type.lanes > 1 || (is_flat && b->strides))
        return;
    if (!is_flat && !tir_is_int(b->shape[d], &extent))
        return;
    if (is_flat && extent < 0)
        return;
    tir_range r = tir_range_of(v->bounds, e);
    bool attained = is_attained_whole(e); /* repeated variables are cancelled by the range's own normal form */
    bool low = attained ? r.known_min && r.min < 0 : r.known_max && r.max < 0;
    bool high = attained ? r.known_max && r.max >= extent : r.known_min && r.min >= extent;
    if (low || high)
        (void)fail(v,
                   arena_printf(&v->c->mem, "an index of '%s' (dimension %u of extent %" PRId64 ") lies outside",
                                b->name, d, extent),
                   e);
}

/* whole: the buffer is named without an element of it. */
static void check_access(verifier *v, const tir_buffer *b, uint32_t n, tir_expr_ref const *idx, bool whole)
{
    bool is_flat = tir_access_is_flat(b, n);
    if (!tir_map_get(&v->buffers, b))
        (void)fail(v, arena_printf(&v->c->mem, "buffer '%s' is used outside its scope", b->name), NULL);
    if (n != b->rank && !is_flat && !whole) {
        (void)fail(v,
                   arena_printf(&v->c->mem, "buffer '%s' has %u dimensions and is accessed with %u indices", b->name,
                                b->rank, n),
                   NULL);
        return;
    }
    for (uint32_t i = 0; i < n; i++) {
        check_expr(v, idx[i]);
        if (!is_index(idx[i]))
            (void)fail(v, "an index is not int32 or int64", idx[i]);
        else
            check_bound(v, b, idx[i], i, is_flat);
    }
}

static uint16_t widest(uint32_t n, tir_expr_ref const *e)
{
    uint16_t lanes = 1;
    for (uint32_t i = 0; i < n; i++)
        lanes = e[i]->type.lanes > lanes ? e[i]->type.lanes : lanes;
    return lanes;
}

static bool lanes_agree(uint32_t n, tir_expr_ref const *e)
{
    uint16_t lanes = widest(n, e);
    for (uint32_t i = 0; i < n; i++)
        if (e[i]->type.lanes != 1 && e[i]->type.lanes != lanes)
            return false;
    return true;
}

static bool binary_ok(tir_expr_ref e)
{
    dtype dt = tir_op_is_compare(e->op) ? DT_BOOL : e->args[0]->type.dt;
    return e->n_args == 2 && same(e->args[0]->type, e->args[1]->type) && tir_op_fits(e->op, e->args[0]->type.dt) &&
           same(e->type, (tir_type){dt, e->args[0]->type.lanes});
}

static bool call_ok(tir_expr_ref e)
{
    if (e->n_args != tir_op_arity(e->op) || tir_op_is_binary(e->op))
        return false;
    for (uint32_t i = 0; i < e->n_args; i++)
        if (!same(e->args[i]->type, e->args[0]->type))
            return false;
    return tir_op_fits(e->op, e->args[0]->type.dt) &&
           same(e->type, (tir_type){tir_op_result(e->op, e->args[0]->type.dt),
                                    tir_op_lanes(e->op, e->args[0]->type.lanes)});
}

static bool select_ok(tir_expr_ref e)
{
    uint16_t lanes = e->args[0]->type.lanes;
    return e->args[0]->type.dt == DT_BOOL && (lanes == 1 || lanes == e->type.lanes) &&
           same(e->type, e->args[1]->type) && same(e->type, e->args[2]->type);
}

static bool vector_ok(tir_expr_ref e)
{
    if (e->type.lanes < 2 || e->type.lanes > TIR_MAX_LANES || widest(e->n_args, e->args) > 1)
        return false;
    for (uint32_t i = 0; i < e->n_args; i++)
        if (e->args[i]->type.dt != e->type.dt)
            return false;
    return e->kind == TIR_BROADCAST || dtype_is_int(e->type.dt);
}

static bool extern_ok(tir_expr_ref e)
{
    int arity = e->type.dt == DT_STRING ? -1 : tir_operation_arity(e->u.name);
    return arity < 0 || (uint32_t)arity == e->n_args;
}

static bool instr_ok(verifier *v, tir_expr_ref e)
{
    const char *why = tir_instr_fault(v->c, e);
    return !why || fail(v, why, e);
}

static bool type_ok(verifier *v, tir_expr_ref e)
{
    switch (e->kind) {
    case TIR_INT: return !dtype_is_float(e->type.dt) && e->type.lanes == 1;
    case TIR_FLOAT: return dtype_is_float(e->type.dt) && e->type.lanes == 1;
    case TIR_VAR:
        if (!tir_map_get(&v->vars, e->u.var))
            return fail(v, arena_printf(&v->c->mem, "variable '%s' is not defined here", e->u.var->name), NULL);
        return same(e->type, e->u.var->type);
    case TIR_BINOP: return binary_ok(e);
    case TIR_NOT: return e->type.dt == DT_BOOL && same(e->type, e->args[0]->type);
    case TIR_CAST:
        return e->type.lanes == e->args[0]->type.lanes && dtype_usable(e->type.dt) && dtype_usable(e->args[0]->type.dt);
    case TIR_SELECT: return select_ok(e);
    case TIR_LOAD:
        return lanes_agree(e->n_args, e->args) &&
               same(e->type, (tir_type){e->u.buffer->dt, widest(e->n_args, e->args)});
    case TIR_CALL: return call_ok(e);
    case TIR_ADDRESS: return widest(e->n_args, e->args) == 1 && same(e->type, tir_scalar(DT_HANDLE));
    case TIR_EXTERN: return e->type.lanes == 1 && extern_ok(e);
    case TIR_INSTR: return instr_ok(v, e);
    case TIR_RAMP:
    case TIR_BROADCAST: return vector_ok(e);
    }
    return false;
}

static bool decides(tir_expr_ref e)
{
    return e->kind == TIR_SELECT || (e->kind == TIR_BINOP && (e->op == TIR_AND || e->op == TIR_OR)) ||
           (e->kind == TIR_INSTR && e->u.row->guarded);
}

static void check_expr(verifier *v, tir_expr_ref e)
{
    const void *seen = tir_map_get(&v->checked, e);
    if (seen && (v->guards || seen == e)) /* seen under a guard: its types are right, its bounds were not looked at */
        return;
    if (tir_is_access(e)) {
        check_access(v, e->u.buffer, e->n_args, e->args, e->kind == TIR_ADDRESS && e->n_args == 0);
    } else {
        bool guard = decides(e);
        for (uint32_t i = 0; i < e->n_args; i++) {
            v->guards += guard && i == 1;
            check_expr(v, e->args[i]);
        }
        v->guards -= guard;
    }
    if (v->ok && !type_ok(v, e) && v->ok)
        (void)fail(v, "wrong types", e);
    if (e->kind != TIR_VAR && e->n_args)
        tir_map_put(&v->checked, e, v->guards ? (const void *)v : e);
}

/* --- statements --- */

static void check_stmt(verifier *v, tir_stmt *s);

static void define(verifier *v, const tir_var *var)
{
    if (tir_map_get(&v->defined, var))
        (void)fail(v, arena_printf(&v->c->mem, "variable '%s' is defined twice", var->name), NULL);
    tir_map_put(&v->defined, var, var);
    tir_map_put(&v->vars, var, var);
    tir_map_clear(&v->checked);
}

static void leave(verifier *v, const tir_var *var)
{
    tir_map_put(&v->vars, var, NULL);
    tir_map_clear(&v->checked);
}

static void check_buffer(verifier *v, const tir_buffer *b)
{
    if (!dtype_usable(b->dt))
        (void)fail(v, arena_printf(&v->c->mem, "buffer '%s' has a type that kernels cannot hold", b->name), NULL);
    if (tir_map_get(&v->defined, b))
        (void)fail(v, arena_printf(&v->c->mem, "buffer '%s' is defined twice", b->name), NULL);
    tir_map_put(&v->defined, b, b);
    if (b->rank > TIR_MAX_RANK) {
        (void)fail(v, arena_printf(&v->c->mem, "buffer '%s' has too many dimensions", b->name), NULL);
        return;
    }
    for (uint32_t i = 0; i < 2 * b->rank; i++) {
        bool is_stride = i >= b->rank;
        if (is_stride && !b->strides)
            break;
        tir_expr_ref e = is_stride ? b->strides[i - b->rank] : b->shape[i];
        check_expr(v, e);
        if (!is_index(e) || e->type.lanes > 1)
            (void)fail(v, "a shape or stride is not int32 or int64", e);
    }
    if (b->offset)
        check_expr(v, b->offset);
    if (b->offset && (!is_index(b->offset) || b->offset->type.lanes > 1))
        (void)fail(v, "an offset is not int32 or int64", b->offset);
    tir_map_put(&v->buffers, b, b);
}

static void check_for(verifier *v, tir_stmt *s)
{
    tir_type t = s->var->type;
    check_expr(v, s->min);
    check_expr(v, s->extent);
    if (t.lanes > 1 || (t.dt != DT_I32 && t.dt != DT_I64) || !same(s->min->type, t) || !same(s->extent->type, t)) {
        (void)fail(v, arena_printf(&v->c->mem, "the loop over '%s' has wrong types", s->var->name), NULL);
        return;
    }
    tir_range r = tir_range_of(v->bounds, s->extent);
    bool maybe = !(r.known_min && r.min > 0 && s->extent->kind == TIR_INT && s->min->kind == TIR_INT);
    define(v, s->var);
    tir_bounds_push(v->bounds, s->var, s->min, s->extent);
    v->maybe += maybe;
    check_stmt(v, s->body);
    v->maybe -= maybe;
    tir_bounds_pop(v->bounds);
    leave(v, s->var);
}

static void check_let(verifier *v, tir_stmt *s)
{
    check_expr(v, s->value);
    if (!same(s->value->type, s->var->type))
        (void)fail(v, arena_printf(&v->c->mem, "the value of '%s' has another type", s->var->name), s->value);
    define(v, s->var);
    v->maybe++; /* a let's value is not tracked here: bounds through it are not attained */
    check_stmt(v, s->body);
    v->maybe--;
    leave(v, s->var);
}

static void check_store(verifier *v, tir_stmt *s)
{
    check_access(v, s->buffer, s->n_indices, s->indices, false);
    check_expr(v, s->value);
    if (!lanes_agree(s->n_indices, s->indices) ||
        !same(s->value->type, (tir_type){s->buffer->dt, widest(s->n_indices, s->indices)}))
        (void)fail(v, arena_printf(&v->c->mem, "the value stored to '%s' has another type", s->buffer->name), s->value);
}

static void check_cond(verifier *v, tir_expr_ref cond)
{
    check_expr(v, cond);
    if (!same(cond->type, TIR_BOOL))
        (void)fail(v, "a condition is not a bool", cond);
}

static void check_if(verifier *v, tir_stmt *s)
{
    check_cond(v, s->cond);
    v->guards++;
    check_stmt(v, s->body);
    if (s->orelse)
        check_stmt(v, s->orelse);
    v->guards--;
}

static void check_stmt(verifier *v, tir_stmt *s)
{
    switch (s->kind) {
    case TIR_FOR: check_for(v, s); break;
    case TIR_IF: check_if(v, s); break;
    case TIR_LET: check_let(v, s); break;
    case TIR_STORE: check_store(v, s); break;
    case TIR_ALLOCATE:
        check_buffer(v, s->buffer);
        check_stmt(v, s->body);
        tir_map_put(&v->buffers, s->buffer, NULL);
        tir_map_clear(&v->checked);
        break;
    case TIR_ATTR:
        check_expr(v, s->value);
        check_stmt(v, s->body);
        break;
    case TIR_EVALUATE: check_expr(v, s->value); break;
    case TIR_ASSERT:
        check_cond(v, s->cond);
        v->guards++; /* for what follows; never undone: the kernel may end here */
        break;
    case TIR_SEQ:
        for (uint32_t i = 0; i < s->n_stmts; i++)
            check_stmt(v, s->stmts[i]);
        break;
    }
}

static verifier start(compiler *c, const tir_func *f)
{
    verifier v = {.c = c, .f = f, .bounds = tir_bounds_new(c), .ok = true};
    tir_map_init(&v.vars, &c->mem);
    tir_map_init(&v.defined, &c->mem);
    tir_map_init(&v.buffers, &c->mem);
    tir_map_init(&v.checked, &c->mem);
    return v;
}

/* What an expression alone names is defined around it. */
static void admit(void *ctx, tir_expr_ref e)
{
    verifier *v = ctx;
    if (e->kind == TIR_VAR)
        tir_map_put(&v->vars, e->u.var, e->u.var);
    if (tir_is_access(e))
        tir_map_put(&v->buffers, e->u.buffer, e->u.buffer);
}

bool tir_verify_expr(compiler *c, src_loc loc, const char *name, uint32_t n, const tir_var *const *vars,
                     tir_expr_ref const *extents, tir_expr_ref where, tir_expr_ref e)
{
    const tir_func place = {.name = name, .loc = loc};
    verifier v = start(c, &place);
    for (uint32_t i = 0; i < n; i++) {
        int64_t extent = 0;
        v.maybe += !tir_is_int(extents[i], &extent) || extent < 1;
        tir_bounds_push(v.bounds, vars[i], tir_i64(c, 0), extents[i]);
    }
    tir_visit_expr(e, admit, &v);
    if (where) {
        tir_visit_expr(where, admit, &v);
        check_expr(&v, where);
        v.guards++;
    }
    check_expr(&v, e);
    return v.ok;
}

bool tir_verify(compiler *c, const tir_func *f)
{
    verifier v = start(c, f);
    if (f->n_inputs > f->n_params)
        (void)fail(&v, "more inputs than parameters", NULL);
    for (uint32_t i = 0; i < f->n_params; i++)
        check_buffer(&v, f->params[i]);
    check_stmt(&v, f->body);
    return v.ok;
}
