/* SPDX-License-Identifier: Apache-2.0 */
/* Functions as structures: a serial form in which variables and buffers are numbered in order of appearance, so that
 * names play no part. Two functions are equal when their serial forms are; the hash is that of the form. The form of a
 * function's shape leaves out its open literals, sizes of its arrays and extents of its operands (shape.h). */
#include "tir/intrin.h"
#include "tir/build.h"
#include "tir/facts.h"
#include "tir/map.h"
#include "tir/shape.h"

#include <string.h>

typedef struct serial {
    arena *a;
    VEC(uint64_t) words;
    tir_map numbers; /* variable or buffer -> its number + 1 */
    uintptr_t next;
    bool open;
    VEC(tir_expr_ref) literals;
    VEC(int64_t) sizes;
    bool in_parallel;
} serial;

static void put(serial *s, uint64_t w)
{
    vec_push(s->a, &s->words, w);
}

static void put_text(serial *s, const char *text)
{
    size_t n = text ? strlen(text) : 0;
    put(s, text ? n : UINT64_MAX);
    for (size_t i = 0; i < n; i++)
        put(s, (unsigned char)text[i]);
}

/* true: seen for the first time */
static bool put_number(serial *s, const void *key)
{
    uintptr_t k = (uintptr_t)tir_map_get(&s->numbers, key);
    bool fresh = k == 0;
    if (fresh) {
        k = ++s->next;
        tir_map_put(&s->numbers, key, (const void *)k);
    }
    put(s, k);
    return fresh;
}

static void put_expr(serial *s, tir_expr_ref e, tir_role role, tir_expr_ref parent, uint32_t at);

static void put_exprs(serial *s, uint32_t n, tir_expr_ref const *list, tir_role role)
{
    put(s, n);
    for (uint32_t i = 0; i < n; i++)
        put_expr(s, list[i], role, NULL, 0);
}

/* Scratch is the plan's, and as large as it says; of parts it lies side by side, in steps that the code knows. */
static bool has_open_size(const serial *s, const tir_buffer *b)
{
    return s->open && !b->strides && !b->offset &&
           (tir_is_open_array(b) || (b->scope == SCOPE_GLOBAL && !s->in_parallel));
}

static void put_buffer(serial *s, const tir_buffer *b)
{
    if (!put_number(s, b))
        return;
    put(s, b->dt);
    put(s, b->scope);
    put(s, b->align);
    put_text(s, b->scope == SCOPE_CUSTOM ? b->scope_name : NULL);
    if (has_open_size(s, b)) {
        put(s, b->rank == 1);
        return;
    }
    put_exprs(s, b->rank, b->shape, ROLE_FIXED);
    put_exprs(s, b->strides ? b->rank : 0, b->strides, ROLE_FIXED);
    put_exprs(s, b->offset ? 1 : 0, &b->offset, ROLE_FIXED);
}

/* Indices by dimensions need the extents, which shapes leave out. */
static void put_access(serial *s, const tir_buffer *b, uint32_t n_indices)
{
    put_buffer(s, b);
    if (s->open && n_indices > 1)
        put_exprs(s, b->rank, b->shape, ROLE_FIXED);
}

static void put_expr(serial *s, tir_expr_ref e, tir_role role, tir_expr_ref parent, uint32_t at)
{
    uint64_t bits;
    if (s->open && tir_is_open(e, role, parent, at)) {
        put(s, UINT64_MAX - e->type.dt);
        if (parent && parent->kind == TIR_INSTR)
            put(s, tir_written_out(e->u.i));
        vec_push(s->a, &s->literals, e);
        return;
    }
    put(s, (uint64_t)e->kind | (uint64_t)e->op << 8 | (uint64_t)e->type.dt << 16 | (uint64_t)e->type.lanes << 32);
    switch (e->kind) {
    case TIR_INT:
    case TIR_FLOAT:
        memcpy(&bits, &e->u, sizeof bits);
        put(s, bits);
        break;
    case TIR_VAR: (void)put_number(s, e->u.var); break;
    case TIR_LOAD:
    case TIR_ADDRESS: put_access(s, e->u.buffer, e->n_args); break;
    case TIR_EXTERN: put_text(s, e->u.name); break;
    case TIR_INSTR: put_text(s, e->u.row->name); break;
    case TIR_BINOP:
    case TIR_NOT:
    case TIR_CAST:
    case TIR_SELECT:
    case TIR_CALL:
    case TIR_RAMP:
    case TIR_BROADCAST: break;
    }
    put(s, e->n_args);
    for (uint32_t i = 0; i < e->n_args; i++)
        put_expr(s, e->args[i], tir_role_of_arg(e, i, role), e, i);
}

static void put_stmt(serial *s, tir_stmt *t)
{
    tir_expr_ref const *const direct[] = {&t->min, &t->extent, &t->cond, &t->value};
    const bool before = s->in_parallel;
    put(s, (uint64_t)t->kind | (uint64_t)t->for_kind << 8 | (uint64_t)(uint32_t)t->code << 32);
    if (s->open && t->kind == TIR_ALLOCATE && tir_is_open_array(t->buffer))
        vec_push(s->a, &s->sizes, tir_buffer_count(t->buffer));
    for (size_t i = 0; i < sizeof direct / sizeof *direct; i++)
        put_exprs(s, *direct[i] ? 1 : 0, direct[i], tir_role_in(t, direct[i]));
    if (t->var && put_number(s, t->var))
        put(s, (uint64_t)t->var->type.dt << 16 | t->var->type.lanes);
    if (t->buffer)
        put_access(s, t->buffer, t->n_indices);
    put_exprs(s, t->n_indices, t->indices, t->buffer ? tir_role_of_index(t->buffer) : ROLE_FIXED);
    if (t->kind == TIR_ATTR || t->kind == TIR_ASSERT)
        put_text(s, t->key);
    if (t->kind == TIR_ATTR)
        put_text(s, t->node);
    put(s, (uint64_t)(t->body != NULL) | (uint64_t)(t->orelse != NULL) << 1 | (uint64_t)t->n_stmts << 2);
    s->in_parallel |= t->kind == TIR_FOR && t->for_kind == FOR_PARALLEL;
    if (t->body)
        put_stmt(s, t->body);
    if (t->orelse)
        put_stmt(s, t->orelse);
    for (uint32_t i = 0; i < t->n_stmts; i++)
        put_stmt(s, t->stmts[i]);
    s->in_parallel = before;
}

void tir_form_of(arena *a, const tir_func *f, bool open, tir_form *out)
{
    serial s = {.a = a, .open = open};
    tir_map_init(&s.numbers, a);
    put(&s, (uint64_t)f->n_params << 32 | f->n_inputs);
    put(&s, f->index_type);
    for (uint32_t i = 0; i < f->n_params; i++)
        put_buffer(&s, f->params[i]);
    put_stmt(&s, f->body);
    *out = (tir_form){s.words.data, s.words.len, s.literals.data, s.literals.len, s.sizes.data, s.sizes.len};
}

uint64_t tir_form_hash(const tir_form *f)
{
    uint64_t h = 0xCBF29CE484222325u;
    for (uint32_t i = 0; i < f->n_words; i++) {
        h ^= f->words[i];
        h *= 0x9E3779B97F4A7C15u;
        h ^= h >> 29;
    }
    return h;
}

bool tir_form_equal(const tir_form *a, const tir_form *b)
{
    return a->n_words == b->n_words && memcmp(a->words, b->words, a->n_words * sizeof *a->words) == 0;
}

uint64_t tir_hash(const compiler *c, const tir_func *f)
{
    arena a;
    tir_form form;
    arena_init(&a, &c->mem);
    tir_form_of(&a, f, false, &form);
    const uint64_t h = tir_form_hash(&form);
    arena_free(&a);
    return h;
}

bool tir_func_equal(const compiler *c, const tir_func *a, const tir_func *b)
{
    arena mem;
    tir_form x, y;
    arena_init(&mem, &c->mem);
    tir_form_of(&mem, a, false, &x);
    tir_form_of(&mem, b, false, &y);
    const bool equal = tir_form_equal(&x, &y);
    arena_free(&mem);
    return equal;
}
