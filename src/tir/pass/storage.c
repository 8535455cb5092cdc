/* SPDX-License-Identifier: Apache-2.0 */
/* rewrite-storage: allocations find their place. Small global ones become arrays on the kernel's stack, as long as the
 * target's stack limit allows and no parallel loop stands between allocation and use (each worker would get its own
 * copy). What a schedule puts on the stack stays there as long as the arrays around it leave room (MOST_STACK): threads
 * of many systems have little more, and an array of rows grows with the model. Arrays whose indices are all constant
 * become registers; those marked so whose indices are not become arrays again. */
#include "tir/build.h"
#include "tir/instr.h"
#include "tir/lane.h"
#include "tir/map.h"
#include "tir/node.h"
#include "tir/pass.h"
#include "tir/walk.h"

#define MAX_REGISTER_ELEMENTS 1024
#define MOST_STACK            65536 /* bytes of the arrays of a kernel that are there at one time */

/* What is known about one allocated buffer. */
typedef struct use {
    const tir_buffer *buffer;
    uint32_t parallel_depth; /* parallel loops around the allocation */
    bool crosses;            /* used inside a parallel loop that the allocation is outside of */
    bool constant;           /* all indices constant, vectors aligned and equally wide */
    uint16_t lanes;          /* of vector accesses; 0: none yet */
    const tir_buffer *replacement;
    const struct use *around; /* the allocation that this one stands in */
    int64_t stack;            /* once decided: bytes on the stack, with those around */
} use;

typedef struct storage {
    compiler *c;
    tir_bounds *bounds; /* of no variable: indices of registers are numbers */
    tir_map uses; /* buffer -> use */
    VEC(use *) all;
    uint32_t parallel_depth;
    const use *around; /* the innermost allocation at the statement that is gathered */
    int64_t stack_left, bytes_limit;
} storage;

/* --- gathering --- */

/* A constant element, or a whole aligned vector of elements. */
static bool is_register_index(use *u, tir_expr_ref e)
{
    int64_t base;
    uint16_t lanes = e->type.lanes;
    if (e->kind == TIR_RAMP && (!tir_is_const(e->args[1], 1) || !tir_is_int(e->args[0], &base) || base % lanes != 0))
        return false;
    if (e->kind != TIR_RAMP && (lanes > 1 || !tir_is_int(e, &base)))
        return false;
    if (u->lanes == 0)
        u->lanes = lanes;
    return u->lanes == lanes;
}

static void note_access(storage *st, const tir_buffer *b, uint32_t n, tir_expr_ref const *idx)
{
    use *u = (use *)(uintptr_t)tir_map_get(&st->uses, b);
    if (!u)
        return;
    u->crosses |= st->parallel_depth > u->parallel_depth;
    u->constant = u->constant && n == 1 && is_register_index(u, idx[0]);
}

/* A row of two tiles that are vectors of this buffer of registers. */
static bool is_row_of_tiles(storage *st, use *u, tir_expr_ref e)
{
    int64_t tile;
    uint32_t row;
    if (u->buffer->scope != SCOPE_REG || e->type.lanes != TIR_TILE_LANES || u->lanes != TIR_TILE_LANES ||
        !tir_constant_row_of_tiles(st->bounds, st->c, e, &tile, &row))
        return false;
    u->crosses |= st->parallel_depth > u->parallel_depth;
    return true;
}

/* What an instruction reads from memory stands there. */
static void note_instr(storage *st, tir_expr_ref e)
{
    for (uint32_t i = 1; i < e->n_args; i++) {
        tir_expr_ref a = e->args[i];
        const bool reads = a->kind == TIR_LOAD && tir_instr_in_memory(e->u.row, i);
        use *u = reads ? (use *)(uintptr_t)tir_map_get(&st->uses, a->u.buffer) : NULL;
        if (u)
            u->constant = false;
    }
}

static void note_expr(void *ctx, tir_expr_ref e)
{
    storage *st = ctx;
    if (e->kind == TIR_INSTR)
        note_instr(st, e);
    if (!tir_is_access(e))
        return;
    use *u = (use *)(uintptr_t)tir_map_get(&st->uses, e->u.buffer);
    if (u && is_row_of_tiles(st, u, e))
        return;
    note_access(ctx, e->u.buffer, e->n_args, e->args);
    if (u && e->kind == TIR_ADDRESS)
        u->constant = false; /* registers have no address */
}

static void note_exprs(void *ctx, tir_expr_ref e)
{
    tir_visit_expr(e, note_expr, ctx);
}

static void gather(storage *st, tir_stmt *s)
{
    bool parallel = s->kind == TIR_FOR && s->for_kind == FOR_PARALLEL;
    const use *around = st->around;
    tir_stmt_exprs(s, note_exprs, st);
    if (s->kind == TIR_STORE)
        note_access(st, s->buffer, s->n_indices, s->indices);
    if (s->kind == TIR_ALLOCATE) {
        use *u = arena_new(&st->c->mem, use);
        *u = (use){.buffer = s->buffer, .parallel_depth = st->parallel_depth, .constant = true, .around = around};
        st->around = u;
        tir_map_put(&st->uses, s->buffer, u);
        vec_push(&st->c->mem, &st->all, u);
    }
    st->parallel_depth += parallel;
    if (s->body)
        gather(st, s->body);
    if (s->orelse)
        gather(st, s->orelse);
    for (uint32_t i = 0; i < s->n_stmts; i++)
        gather(st, s->stmts[i]);
    st->parallel_depth -= parallel;
    st->around = around;
}

/* --- deciding --- */

static int64_t bytes_of(const tir_buffer *b)
{
    int64_t n = tir_buffer_count(b), bytes;
    return n >= 0 && i64_mul(n, (int64_t)dtype_bytes(b->dt), &bytes) ? bytes : -1;
}

static bool fits_registers(const use *u)
{
    const tir_buffer *b = u->buffer;
    const int64_t count = tir_buffer_count(b);
    return u->constant && u->lanes && !u->crosses && count >= 0 && count <= MAX_REGISTER_ELEMENTS && !b->strides &&
           !b->offset;
}

/* asked: a schedule wants it on the stack. What only a run can size is nowhere near it. */
static bool fits_stack(const storage *st, const use *u, bool asked)
{
    const int64_t bytes = bytes_of(u->buffer), around = u->around ? u->around->stack : 0;
    if (bytes < 0 || bytes > MOST_STACK - around)
        return false;
    const bool limited = st->bytes_limit > 0 && dtype_bits(u->buffer->dt) < 32;
    return asked || (bytes <= st->stack_left && (!limited || bytes <= st->bytes_limit));
}

static tir_scope choose(storage *st, const use *u)
{
    const tir_buffer *b = u->buffer;
    const bool asked = b->scope == SCOPE_LOCAL || b->scope == SCOPE_REG;
    if (b->scope == SCOPE_CUSTOM || (b->scope == SCOPE_GLOBAL && u->crosses))
        return b->scope;
    if (fits_registers(u) && (asked || bytes_of(b) <= st->stack_left))
        return SCOPE_REG;
    return fits_stack(st, u, asked) ? SCOPE_LOCAL : SCOPE_GLOBAL;
}

static void decide(storage *st, use *u)
{
    tir_scope scope = choose(st, u);
    if (scope == SCOPE_LOCAL || scope == SCOPE_REG) {
        int64_t bytes = bytes_of(u->buffer);
        st->stack_left -= bytes > 0 ? bytes : 0;
        u->stack = scope == SCOPE_LOCAL ? bytes : 0;
    }
    u->stack += u->around ? u->around->stack : 0;
    if (scope == u->buffer->scope)
        return;
    tir_buffer *b = arena_new(&st->c->mem, tir_buffer);
    *b = *u->buffer;
    b->scope = scope;
    u->replacement = b;
}

/* --- rewriting --- */

static const tir_buffer *replaced(storage *st, const tir_buffer *b)
{
    const use *u = b ? tir_map_get(&st->uses, b) : NULL;
    return u ? u->replacement : NULL;
}

static tir_expr_ref replace_access(tir_rewriter *r, tir_expr_ref e)
{
    const tir_buffer *b = tir_is_access(e) ? replaced(r->ctx, e->u.buffer) : NULL;
    return b ? tir_node_access(r->c, e, b, e->n_args, e->args) : e;
}

static tir_stmt *replace_stmt(tir_rewriter *r, tir_stmt *s)
{
    const tir_buffer *b = replaced(r->ctx, s->buffer);
    if (!b)
        return s;
    struct tir_stmt *copy = tir_node_copy(r->c, s);
    copy->buffer = b;
    return copy;
}

bool tir_pass_storage(compiler *c, tir_func *f)
{
    const target *t = f->target ? f->target : target_default();
    storage st = {.c = c,
                  .bounds = tir_bounds_new(c),
                  .stack_left = (int64_t)t->stack_limit,
                  .bytes_limit = (int64_t)t->bytes_limit};
    tir_rewriter r = {.c = c, .ctx = &st, .expr = replace_access, .stmt = replace_stmt};
    tir_map_init(&st.uses, &c->mem);
    gather(&st, f->body);
    for (uint32_t i = 0; i < st.all.len; i++)
        decide(&st, st.all.data[i]);
    f->body = tir_rewrite_stmt(&r, f->body);
    return true;
}
