/* SPDX-License-Identifier: Apache-2.0 */
/* Attribute values. */
#include "type/attr.h"

#include <string.h>

static attr make(compiler *c, const char *name, attr_kind kind, uint32_t n)
{
    return (attr){.name = intern(c->names, name), .kind = kind, .n = n};
}

attr attr_int(compiler *c, const char *name, int64_t v)
{
    attr a = make(c, name, ATTR_INT, 1);
    a.u.i = v;
    return a;
}

attr attr_float(compiler *c, const char *name, double v)
{
    attr a = make(c, name, ATTR_FLOAT, 1);
    a.u.f = v;
    return a;
}

attr attr_string(compiler *c, const char *name, const char *v)
{
    attr a = make(c, name, ATTR_STRING, 1);
    a.u.s = intern(c->names, v);
    return a;
}

attr attr_dtype(compiler *c, const char *name, dtype v)
{
    attr a = make(c, name, ATTR_DTYPE, 1);
    a.u.dt = v;
    return a;
}

attr attr_ints(compiler *c, const char *name, uint32_t n, const int64_t *v)
{
    attr a = make(c, name, ATTR_INTS, n);
    a.u.ints = arena_copy(&c->mem, v, n * sizeof *v, _Alignof(int64_t));
    return a;
}

attr attr_floats(compiler *c, const char *name, uint32_t n, const double *v)
{
    attr a = make(c, name, ATTR_FLOATS, n);
    a.u.floats = arena_copy(&c->mem, v, n * sizeof *v, _Alignof(double));
    return a;
}

attr attr_strings(compiler *c, const char *name, uint32_t n, const char *const *v)
{
    attr a = make(c, name, ATTR_STRINGS, n);
    const char **s = arena_array(&c->mem, const char *, n);
    for (uint32_t i = 0; i < n; i++)
        s[i] = intern(c->names, v[i]);
    a.u.strings = s;
    return a;
}

attr attr_tensor(compiler *c, const char *name, const tensor_data *t)
{
    attr a = make(c, name, ATTR_TENSOR, 1);
    a.u.tensor = t;
    return a;
}

attr attr_func(compiler *c, const char *name, struct graph_func *f)
{
    attr a = make(c, name, ATTR_FUNC, 1);
    a.u.func = f;
    return a;
}

bool attr_equal(const attr *a, const attr *b)
{
    if (a->name != b->name || a->kind != b->kind || a->n != b->n)
        return false;
    switch (a->kind) {
    case ATTR_INT: return a->u.i == b->u.i;
    case ATTR_FLOAT: return memcmp(&a->u.f, &b->u.f, sizeof a->u.f) == 0;
    case ATTR_STRING: return a->u.s == b->u.s;
    case ATTR_DTYPE: return a->u.dt == b->u.dt;
    case ATTR_INTS: return a->n == 0 || memcmp(a->u.ints, b->u.ints, a->n * sizeof *a->u.ints) == 0;
    case ATTR_FLOATS: return a->n == 0 || memcmp(a->u.floats, b->u.floats, a->n * sizeof *a->u.floats) == 0;
    case ATTR_STRINGS: return a->n == 0 || memcmp(a->u.strings, b->u.strings, a->n * sizeof *a->u.strings) == 0;
    case ATTR_TENSOR: return tensor_equal(a->u.tensor, b->u.tensor);
    case ATTR_FUNC: return a->u.func == b->u.func;
    }
    return false;
}

static uint64_t mix(uint64_t h, uint64_t v)
{
    h ^= v + 0x9E3779B97F4A7C15u + (h << 6) + (h >> 2);
    return h * 0xFF51AFD7ED558CCDu;
}

uint64_t attr_hash(const attr *a)
{
    uint64_t h = mix((uint64_t)(uintptr_t)a->name, a->n);
    switch (a->kind) {
    case ATTR_INT: return mix(h, (uint64_t)a->u.i);
    case ATTR_STRING: return mix(h, (uint64_t)(uintptr_t)a->u.s);
    case ATTR_DTYPE: return mix(h, (uint64_t)a->u.dt);
    case ATTR_TENSOR: return mix(h, tensor_hash(a->u.tensor));
    case ATTR_FUNC: return mix(h, (uint64_t)(uintptr_t)a->u.func);
    case ATTR_INTS:
        for (uint32_t i = 0; i < a->n; i++)
            h = mix(h, (uint64_t)a->u.ints[i]);
        return h;
    case ATTR_FLOAT:
    case ATTR_FLOATS:
    case ATTR_STRINGS: return h; /* rare, and equality decides */
    }
    return h;
}
