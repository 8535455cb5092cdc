/* SPDX-License-Identifier: Apache-2.0 */
/* Functions as structures: a serial form in which variables and buffers are numbered in order of appearance, so that
 * names play no part. Two functions are equal when their serial forms are; the hash is that of the form. */
#include "tir/facts.h"
#include "tir/map.h"
#include "tir/tir.h"

#include <string.h>

typedef struct serial {
    arena *a;
    VEC(uint64_t) words;
    tir_map numbers; /* variable or buffer -> its number + 1 */
    uintptr_t next;
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

static void put_expr(serial *s, tir_expr_ref e);

static void put_exprs(serial *s, uint32_t n, tir_expr_ref const *list)
{
    put(s, n);
    for (uint32_t i = 0; i < n; i++)
        put_expr(s, list[i]);
}

static void put_buffer(serial *s, const tir_buffer *b)
{
    if (!put_number(s, b))
        return;
    put(s, b->dt);
    put(s, b->scope);
    put(s, b->align);
    put_text(s, b->scope == SCOPE_CUSTOM ? b->scope_name : NULL);
    put_exprs(s, b->rank, b->shape);
    put_exprs(s, b->strides ? b->rank : 0, b->strides);
    put_exprs(s, b->offset ? 1 : 0, &b->offset);
}

static void put_expr(serial *s, tir_expr_ref e)
{
    uint64_t bits;
    put(s, (uint64_t)e->kind | (uint64_t)e->op << 8 | (uint64_t)e->type.dt << 16 | (uint64_t)e->type.lanes << 32);
    switch (e->kind) {
    case TIR_INT:
    case TIR_FLOAT:
        memcpy(&bits, &e->u, sizeof bits);
        put(s, bits);
        break;
    case TIR_VAR: (void)put_number(s, e->u.var); break;
    case TIR_LOAD:
    case TIR_ADDRESS: put_buffer(s, e->u.buffer); break;
    case TIR_EXTERN: put_text(s, e->u.name); break;
    case TIR_BINOP:
    case TIR_NOT:
    case TIR_CAST:
    case TIR_SELECT:
    case TIR_CALL:
    case TIR_RAMP:
    case TIR_BROADCAST: break;
    }
    put_exprs(s, e->n_args, e->args);
}

static void put_stmt(serial *s, tir_stmt *t)
{
    tir_expr_ref direct[] = {t->min, t->extent, t->cond, t->value};
    put(s, (uint64_t)t->kind | (uint64_t)t->for_kind << 8 | (uint64_t)(uint32_t)t->code << 32);
    for (size_t i = 0; i < sizeof direct / sizeof *direct; i++)
        put_exprs(s, direct[i] ? 1 : 0, &direct[i]);
    if (t->var && put_number(s, t->var))
        put(s, (uint64_t)t->var->type.dt << 16 | t->var->type.lanes);
    if (t->buffer)
        put_buffer(s, t->buffer);
    put_exprs(s, t->n_indices, t->indices);
    if (t->kind == TIR_ATTR || t->kind == TIR_ASSERT)
        put_text(s, t->key);
    if (t->kind == TIR_ATTR)
        put_text(s, t->node);
    put(s, (uint64_t)(t->body != NULL) | (uint64_t)(t->orelse != NULL) << 1 | (uint64_t)t->n_stmts << 2);
    if (t->body)
        put_stmt(s, t->body);
    if (t->orelse)
        put_stmt(s, t->orelse);
    for (uint32_t i = 0; i < t->n_stmts; i++)
        put_stmt(s, t->stmts[i]);
}

static void serialise(serial *s, arena *a, const tir_func *f)
{
    *s = (serial){.a = a};
    tir_map_init(&s->numbers, a);
    put(s, (uint64_t)f->n_params << 32 | f->n_inputs);
    put(s, f->index_type);
    for (uint32_t i = 0; i < f->n_params; i++)
        put_buffer(s, f->params[i]);
    put_stmt(s, f->body);
}

uint64_t tir_hash(const compiler *c, const tir_func *f)
{
    arena a;
    serial s;
    uint64_t h = 0xCBF29CE484222325u;
    arena_init(&a, &c->mem);
    serialise(&s, &a, f);
    for (uint32_t i = 0; i < s.words.len; i++) {
        h ^= s.words.data[i];
        h *= 0x9E3779B97F4A7C15u;
        h ^= h >> 29;
    }
    arena_free(&a);
    return h;
}

bool tir_func_equal(const compiler *c, const tir_func *a, const tir_func *b)
{
    arena mem;
    serial x, y;
    arena_init(&mem, &c->mem);
    serialise(&x, &mem, a);
    serialise(&y, &mem, b);
    bool equal =
        x.words.len == y.words.len && memcmp(x.words.data, y.words.data, x.words.len * sizeof *x.words.data) == 0;
    arena_free(&mem);
    return equal;
}
