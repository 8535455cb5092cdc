/* SPDX-License-Identifier: Apache-2.0 */
/* Unique dim expressions: the table that makes equal ones one pointer, and what can be read off an expression.
 * Arithmetic is in dim_arith.c, text in dim_text.c. */
#include "type/dim_expr.h"

#include <assert.h>
#include <inttypes.h>
#include <string.h>

/* Prefix of the symbols that stand for results which cannot be expressed, negative ones included. */
#define UNKNOWN "unknown_"

struct dim_table {
    dim_expr **slots; /* open addressing; n_slots is a power of two */
    size_t n_slots, n;
};

static struct dim_table *table_of(compiler *c)
{
    if (!c->dims) {
        c->dims = arena_new(&c->mem, struct dim_table);
        c->dims->n_slots = 256;
        c->dims->slots = arena_array(&c->mem, dim_expr *, c->dims->n_slots);
    }
    return c->dims;
}

static uint64_t mix(uint64_t h, uint64_t v)
{
    h = (h ^ v) * 0x9e3779b97f4a7c15u;
    return h ^ h >> 29;
}

static uint64_t hash_of(const dim_expr *e)
{
    uint64_t h = mix(0x6c617468u, (uint64_t)e->kind);
    h = mix(h, (uint64_t)e->value);
    for (const char *s = e->name; s && *s; s++)
        h = mix(h, (unsigned char)*s);
    for (uint32_t i = 0; i < e->n_ops; i++)
        h = mix(h, e->ops[i]->hash);
    return h;
}

static bool same(const dim_expr *a, const dim_expr *b)
{
    return a->hash == b->hash && a->kind == b->kind && a->value == b->value && a->name == b->name &&
           a->n_ops == b->n_ops && (a->n_ops == 0 || memcmp(a->ops, b->ops, a->n_ops * sizeof *a->ops) == 0);
}

static dim_expr **slot_of(struct dim_table *t, const dim_expr *e)
{
    size_t i = e->hash & (t->n_slots - 1);
    while (t->slots[i] && !same(t->slots[i], e))
        i = (i + 1) & (t->n_slots - 1);
    return &t->slots[i];
}

static void grow(compiler *c, struct dim_table *t)
{
    dim_expr **old = t->slots;
    size_t n = t->n_slots;
    t->n_slots = n * 2;
    t->slots = arena_array(&c->mem, dim_expr *, t->n_slots);
    for (size_t i = 0; i < n; i++)
        if (old[i])
            *slot_of(t, old[i]) = old[i];
}

/* The expression in the table that equals `key`, made when there is none. */
static dim_expr *unique(compiler *c, dim_expr *key)
{
    struct dim_table *t = table_of(c);
    key->hash = hash_of(key);
    dim_expr **slot = slot_of(t, key);
    if (*slot)
        return *slot;
    key->ops = key->n_ops ? arena_copy(&c->mem, key->ops, key->n_ops * sizeof *key->ops, _Alignof(dim)) : NULL;
    dim_expr *made = arena_copy(&c->mem, key, sizeof *key, _Alignof(dim_expr));
    *slot = made;
    if (++t->n * 4 > t->n_slots * 3)
        grow(c, t);
    return made;
}

dim dim_make(compiler *c, dim_kind kind, uint32_t n, const dim *ops)
{
    dim_expr key = {.kind = kind, .n_ops = n, .ops = ops, .bound = -1, .size = 1};
    for (uint32_t i = 0; i < n; i++) {
        key.size += ops[i]->size;
        key.depth = key.depth > ops[i]->depth ? key.depth : ops[i]->depth + 1;
    }
    assert(key.size <= DIM_MAX_SIZE && key.depth <= DIM_MAX_DEPTH + 2);
    return unique(c, &key);
}

dim dim_make_atom(compiler *c, dim_kind kind, char op, dim a, dim b)
{
    dim ops[2] = {a, b};
    bool fits = a->size + b->size < DIM_MAX_SIZE / 2 && a->depth < DIM_MAX_DEPTH && b->depth < DIM_MAX_DEPTH;
    return fits ? dim_make(c, kind, 2, ops) : dim_unknown(c, op, a, b);
}

dim dim_const(compiler *c, int64_t v)
{
    dim_expr key = {.kind = DIM_CONST, .value = v, .bound = -1, .size = 1};
    return unique(c, &key);
}

dim dim_symbol(compiler *c, const char *name, int64_t bound)
{
    dim_expr key = {.kind = DIM_SYMBOL, .name = intern(c->names, name), .bound = -1, .size = 1};
    key.any_sign = strncmp(name, UNKNOWN, sizeof UNKNOWN - 1) == 0;
    dim_expr *s = unique(c, &key);
    if (bound >= 0 && (s->bound < 0 || bound < s->bound))
        s->bound = bound;
    return s;
}

dim dim_fresh(compiler *c, const char *prefix, int64_t bound)
{
    dim_expr key = {.kind = DIM_SYMBOL, .bound = -1, .size = 1};
    do {
        const char *name = arena_printf(&c->mem, "%s_%" PRIu32, prefix, c->next_id++);
        key.name = intern(c->names, name);
        key.hash = hash_of(&key);
    } while (*slot_of(table_of(c), &key)); /* the model may use such a name itself */
    dim_expr *s = (dim_expr *)(uintptr_t)dim_symbol(c, key.name, bound);
    s->fresh = true;
    return s;
}

dim_mark dim_get_mark(compiler *c)
{
    const struct dim_table *t = table_of(c);
    dim_mark b = {arena_array(&c->mem, dim, t->n), arena_array(&c->mem, int64_t, t->n), 0};
    for (size_t i = 0; i < t->n_slots; i++)
        if (t->slots[i] && t->slots[i]->kind == DIM_SYMBOL && t->slots[i]->bound >= 0) {
            b.symbols[b.n] = t->slots[i];
            b.bounds[b.n++] = t->slots[i]->bound;
        }
    return b;
}

void dim_reset(compiler *c, const dim_mark *b)
{
    struct dim_table *t = table_of(c);
    for (size_t i = 0; i < t->n_slots; i++)
        if (t->slots[i] && t->slots[i]->kind == DIM_SYMBOL)
            t->slots[i]->bound = -1;
    for (uint32_t i = 0; i < b->n; i++)
        ((dim_expr *)(uintptr_t)b->symbols[i])->bound = b->bounds[i];
}

bool dim_is_fresh(dim d)
{
    return d->kind == DIM_SYMBOL && d->fresh;
}

dim dim_unknown(compiler *c, char op, dim a, dim b)
{
    bool swap = strchr("+*<>", op) && dim_compare(a, b) > 0;
    uint64_t h = mix(mix((unsigned char)op, swap ? b->hash : a->hash), swap ? a->hash : b->hash);
    return dim_symbol(c, arena_printf(&c->mem, UNKNOWN "%016" PRIx64, h), -1);
}

bool dim_is_const(dim d, int64_t *out)
{
    if (d->kind != DIM_CONST)
        return false;
    *out = d->value;
    return true;
}

bool dim_is(dim d, int64_t v)
{
    return d->kind == DIM_CONST && d->value == v;
}

const char *dim_symbol_name(dim d)
{
    return d->kind == DIM_SYMBOL ? d->name : NULL;
}

dim_kind dim_get_kind(dim d)
{
    return d->kind;
}

uint32_t dim_operands(dim d, const dim **out)
{
    *out = d->ops;
    return d->n_ops;
}

int dim_compare(dim a, dim b)
{
    if (a == b)
        return 0;
    if (a->kind != b->kind)
        return a->kind < b->kind ? -1 : 1;
    if (a->kind == DIM_CONST)
        return a->value < b->value ? -1 : 1;
    if (a->kind == DIM_SYMBOL)
        return strcmp(a->name, b->name);
    for (uint32_t i = 0; i < a->n_ops && i < b->n_ops; i++)
        if (a->ops[i] != b->ops[i])
            return dim_compare(a->ops[i], b->ops[i]);
    return a->n_ops < b->n_ops ? -1 : 1;
}

/* --- ranges --- */

static const dim_range anything = {INT64_MIN, INT64_MAX};

static int64_t sum(int64_t a, int64_t b)
{
    int64_t r;
    if (a == INT64_MIN || a == INT64_MAX)
        return a;
    if (b == INT64_MIN || b == INT64_MAX)
        return b;
    return i64_add(a, b, &r) ? r : b < 0 ? INT64_MIN : INT64_MAX;
}

static int64_t product(int64_t a, int64_t b)
{
    int64_t r;
    if (a == 0 || b == 0)
        return 0;
    if (a == INT64_MIN || a == INT64_MAX || b == INT64_MIN || b == INT64_MAX || !i64_mul(a, b, &r))
        return (a < 0) != (b < 0) ? INT64_MIN : INT64_MAX;
    return r;
}

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static int64_t greatest(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

static dim_range range_product(dim_range a, dim_range b)
{
    int64_t p = product(a.lo, b.lo), q = product(a.lo, b.hi), r = product(a.hi, b.lo), s = product(a.hi, b.hi);
    return (dim_range){least(least(p, q), least(r, s)), greatest(greatest(p, q), greatest(r, s))};
}

/* a / b rounded down, b > 0, an unlimited a staying unlimited */
static int64_t quotient(int64_t a, int64_t b)
{
    if (a == INT64_MIN || a == INT64_MAX)
        return a;
    return a / b - (a % b < 0);
}

/* By 0 it is 0, as when it runs. By what may be negative it is no further from 0 than a is. */
static dim_range range_floordiv(dim_range a, dim_range b)
{
    if (b.lo < 0) {
        int64_t least_a = a.lo == INT64_MIN ? INT64_MAX : -a.lo, most = greatest(a.hi, least_a);
        return most == INT64_MAX ? anything : (dim_range){least(-most, a.lo), most};
    }
    if (b.lo == 0)
        return (dim_range){least(a.lo, 0), greatest(a.hi, 0)};
    return (dim_range){quotient(a.lo, a.lo < 0 ? b.lo : b.hi), quotient(a.hi, a.hi < 0 ? b.hi : b.lo)};
}

static dim_range range_mod(dim_range a, dim_range b)
{
    if (b.lo < 0)
        return anything;
    dim_range r = {0, b.hi == INT64_MAX ? INT64_MAX : greatest(b.hi - 1, 0)};
    if (a.lo >= 0)
        r.hi = least(r.hi, a.hi);
    return r;
}

static dim_range range_of_operation(dim d, bool bounds)
{
    dim_range r = dim_get_range(d->ops[0], bounds);
    for (uint32_t i = 1; i < d->n_ops; i++) {
        dim_range o = dim_get_range(d->ops[i], bounds);
        switch (d->kind) {
        case DIM_ADD: r = (dim_range){sum(r.lo, o.lo), sum(r.hi, o.hi)}; break;
        case DIM_MUL: r = range_product(r, o); break;
        case DIM_FLOORDIV: r = range_floordiv(r, o); break;
        case DIM_MOD: r = range_mod(r, o); break;
        case DIM_MIN: r = (dim_range){least(r.lo, o.lo), least(r.hi, o.hi)}; break;
        case DIM_MAX: r = (dim_range){greatest(r.lo, o.lo), greatest(r.hi, o.hi)}; break;
        case DIM_CONST:
        case DIM_SYMBOL: break;
        }
    }
    return r;
}

dim_range dim_get_range(dim d, bool bounds)
{
    if (d->kind == DIM_CONST)
        return (dim_range){d->value, d->value};
    if (d->kind == DIM_SYMBOL && d->any_sign)
        return anything;
    if (d->kind == DIM_SYMBOL)
        return (dim_range){0, bounds && d->bound >= 0 ? d->bound : INT64_MAX};
    return range_of_operation(d, bounds);
}

int64_t dim_bound(dim d)
{
    int64_t hi = dim_get_range(d, true).hi;
    if (d->kind != DIM_CONST && hi == INT64_MAX)
        return -1;
    return hi < 0 ? 0 : hi;
}

bool dim_mentions(dim d, const char *symbol)
{
    const dim *parts = NULL;
    uint32_t n = dim_operands(d, &parts);
    if (n == 0)
        return dim_symbol_name(d) && strcmp(dim_symbol_name(d), symbol) == 0;
    for (uint32_t i = 0; i < n; i++)
        if (dim_mentions(parts[i], symbol))
            return true;
    return false;
}

bool dim_is_unknown(dim d)
{
    bool unknown = d->kind == DIM_SYMBOL && d->any_sign;
    for (uint32_t i = 0; i < d->n_ops && !unknown; i++)
        unknown = dim_is_unknown(d->ops[i]);
    return unknown;
}
