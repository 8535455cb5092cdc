/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels that differ only in numbers share one function (prog/pass/shapes.c). Which numbers these can be, and a
 * function's body with others in their places. A literal is open by the place where it stands; the walk over them is
 * that of compare.c: a statement's min, extent, condition, value, indices, then its parts. */
#include "tir/shape.h"

#include <math.h>

#include "tir/build.h"
#include "tir/instr.h"
#include "tir/map.h"
#include "tir/node.h"

tir_role tir_role_of_index(const tir_buffer *b)
{
    return b->scope == SCOPE_REG ? ROLE_FIXED : ROLE_INDEX; /* registers have no addresses */
}

/* Divisors and shifts by a constant are other instructions than those by a variable. */
static bool steers(tir_expr_ref e, uint32_t i)
{
    return i == 1 && !dtype_is_float(e->type.dt) &&
           (e->op == TIR_FLOORDIV || e->op == TIR_FLOORMOD || e->op == TIR_DIV || e->op == TIR_MOD ||
            e->op == TIR_SHL || e->op == TIR_SHR);
}

/* Symbols of instructions whose C takes any number for them; others are immediates of assembly, tiles. */
static bool takes_number(tir_expr_ref e, uint32_t i)
{
    const tir_intrin *row = e->u.row;
    return i >= tir_instr_operands(row) && i < tir_instr_args(row) && tir_instr_symbol(row, i)->open;
}

tir_role tir_role_of_arg(tir_expr_ref e, uint32_t i, tir_role role)
{
    switch (e->kind) {
    case TIR_LOAD:
    case TIR_ADDRESS: return tir_role_of_index(e->u.buffer);
    case TIR_EXTERN: return ROLE_FIXED;
    case TIR_INSTR: return takes_number(e, i) ? ROLE_INDEX : ROLE_FIXED;
    case TIR_RAMP: return i == 0 ? role : ROLE_FIXED;
    case TIR_BROADCAST: return ROLE_FIXED;
    case TIR_SELECT: return i == 0 && role == ROLE_VALUE ? ROLE_INDEX : role;
    case TIR_BINOP: return steers(e, i) ? ROLE_FIXED : role;
    case TIR_INT:
    case TIR_FLOAT:
    case TIR_VAR:
    case TIR_NOT:
    case TIR_CAST: break;
    case TIR_CALL: return e->op == TIR_HIGH && role == ROLE_VALUE ? ROLE_INDEX : role; /* factors of a product */
    }
    return role;
}

/* C compilers write short inner loops out, which saves much of their time where they only move numbers. */
#define WRITTEN_OUT 4

static bool does_more(const tir_stmt *s)
{
    bool found = s->kind == TIR_FOR || (s->kind == TIR_EVALUATE && tir_has_extern(s->value)) ||
                 (s->body && does_more(s->body)) || (s->orelse && does_more(s->orelse));
    for (uint32_t i = 0; i < s->n_stmts && !found; i++)
        found = does_more(s->stmts[i]);
    return found;
}

static bool is_open_loop(const tir_stmt *s)
{
    int64_t n = INT64_MAX;
    return (s->for_kind == FOR_SERIAL || s->for_kind == FOR_PARALLEL) &&
           (!tir_is_int(s->extent, &n) || n > WRITTEN_OUT || does_more(s->body));
}

tir_role tir_role_in(const tir_stmt *s, tir_expr_ref const *at)
{
    if (s->kind == TIR_FOR && (at == &s->min || at == &s->extent))
        return is_open_loop(s) ? ROLE_INDEX : ROLE_FIXED;
    if (s->kind == TIR_IF)
        return ROLE_INDEX;
    return s->kind == TIR_STORE || s->kind == TIR_LET || s->kind == TIR_EVALUATE ? ROLE_VALUE : ROLE_FIXED;
}

static bool fits_number(tir_expr_ref e)
{
    return e->u.i >= INT32_MIN && e->u.i <= INT32_MAX;
}

/* rint(x) + -128.0: the zero point of a byte. */
static bool is_zero_point(tir_expr_ref e, tir_expr_ref parent, uint32_t i)
{
    return parent->op == TIR_ADD && i == 1 && parent->args[0]->kind == TIR_CALL && parent->args[0]->op == TIR_RINT &&
           e->u.f == nearbyint(e->u.f) && fabs(e->u.f) <= 32767.0;
}

static bool is_open_operand(tir_expr_ref e, tir_expr_ref parent, uint32_t i)
{
    if (e->kind == TIR_INT)
        return i == 1 && (parent->op == TIR_ADD || parent->op == TIR_SUB) && fits_number(e) &&
               (e->type.dt == DT_I16 || e->type.dt == DT_I32);
    return e->kind == TIR_FLOAT && e->type.dt == DT_F32 &&
           (parent->op == TIR_MUL || parent->op == TIR_DIV || is_zero_point(e, parent, i));
}

bool tir_is_open(tir_expr_ref e, tir_role role, tir_expr_ref parent, uint32_t i)
{
    if (e->type.lanes != 1 || role == ROLE_FIXED)
        return false;
    if (e->kind == TIR_INT && role == ROLE_INDEX)
        return (e->type.dt == DT_I32 || e->type.dt == DT_I64) && fits_number(e);
    return parent && parent->kind == TIR_BINOP && role == ROLE_VALUE && is_open_operand(e, parent, i);
}

uint32_t tir_written_out(int64_t steps)
{
    return steps % 4 == 0 ? 4 : steps % 2 == 0 ? 2 : 1;
}

bool tir_is_open_array(const tir_buffer *b)
{
    return b->scope == SCOPE_LOCAL && b->rank == 1 && tir_buffer_count(b) >= 0;
}

/* --- others in their places --- */

typedef struct putter {
    compiler *c;
    tir_expr_ref const *values;
    const int64_t *sizes;
    uint32_t value, size; /* next ones */
    tir_map arrays;       /* of f -> of the size that is asked for */
} putter;

static const tir_buffer *array_of(const putter *p, const tir_buffer *b)
{
    const tir_buffer *other = tir_map_get(&p->arrays, b);
    return other ? other : b;
}

static tir_expr_ref put_expr(putter *p, tir_expr_ref e, tir_role role, tir_expr_ref parent, uint32_t at)
{
    if (tir_is_open(e, role, parent, at)) {
        tir_expr_ref v = p->values[p->value++];
        return v ? v : e;
    }
    if (e->n_args == 0 && !tir_is_access(e))
        return e;
    tir_expr_ref *args = arena_array(&p->c->mem, tir_expr_ref, e->n_args + 1u);
    bool changed = false;
    for (uint32_t i = 0; i < e->n_args; i++) {
        args[i] = put_expr(p, e->args[i], tir_role_of_arg(e, i, role), e, i);
        changed |= args[i] != e->args[i];
    }
    if (tir_is_access(e) && array_of(p, e->u.buffer) != e->u.buffer)
        return tir_node_access(p->c, e, array_of(p, e->u.buffer), e->n_args, args);
    return changed ? tir_node_rebuild(p->c, e, args) : e;
}

static void put_array(putter *p, const tir_buffer *b)
{
    if (!tir_is_open_array(b))
        return;
    const int64_t size = p->sizes[p->size++];
    if (size != tir_buffer_count(b))
        tir_map_put(&p->arrays, b, tir_buffer_static(p->c, b->name, b->dt, 1, &size, b->scope));
}

static tir_stmt *put_stmt(putter *p, tir_stmt *s)
{
    if (!s)
        return NULL;
    struct tir_stmt *n = tir_node_copy(p->c, s);
    if (s->kind == TIR_ALLOCATE)
        put_array(p, s->buffer);
    tir_expr_ref *const direct[] = {&n->min, &n->extent, &n->cond, &n->value};
    tir_expr_ref const *const from[] = {&s->min, &s->extent, &s->cond, &s->value};
    for (size_t i = 0; i < sizeof direct / sizeof *direct; i++)
        if (*from[i])
            *direct[i] = put_expr(p, *from[i], tir_role_in(s, from[i]), NULL, 0);
    tir_expr_ref *indices = arena_array(&p->c->mem, tir_expr_ref, s->n_indices + 1u);
    for (uint32_t i = 0; i < s->n_indices; i++)
        indices[i] = put_expr(p, s->indices[i], tir_role_of_index(s->buffer), NULL, 0);
    n->indices = indices;
    n->buffer = s->buffer ? array_of(p, s->buffer) : NULL;
    n->body = put_stmt(p, s->body);
    n->orelse = put_stmt(p, s->orelse);
    tir_stmt **stmts = arena_array(&p->c->mem, tir_stmt *, s->n_stmts + 1u);
    for (uint32_t i = 0; i < s->n_stmts; i++)
        stmts[i] = put_stmt(p, s->stmts[i]);
    n->stmts = stmts;
    return n;
}

tir_stmt *tir_put_literals(compiler *c, const tir_func *f, tir_expr_ref const *values, const int64_t *sizes)
{
    putter p = {.c = c, .values = values, .sizes = sizes};
    tir_map_init(&p.arrays, &c->mem);
    return put_stmt(&p, f->body);
}
