/* SPDX-License-Identifier: Apache-2.0 */
/* Maps from interned names, whose keys compare by pointer, and the text for names and places of a model in messages.
 * All other files of the importer may use this one. */
#include "frontend/onnx/onnx_import.h"

#include <string.h>

static uint32_t slot_of(const onnx_map *m, const char *key)
{
    uint64_t h = (uint64_t)(uintptr_t)key * 0x9e3779b97f4a7c15u;
    uint32_t i = (uint32_t)(h >> 32) & (m->cap - 1);
    while (m->keys[i] && m->keys[i] != key)
        i = (i + 1) & (m->cap - 1);
    return i;
}

const void *onnx_map_get(const onnx_map *m, const char *key)
{
    if (m->cap == 0)
        return NULL;
    uint32_t i = slot_of(m, key);
    return m->keys[i] ? m->values[i] : NULL;
}

static void grow(arena *a, onnx_map *m)
{
    onnx_map old = *m;
    m->cap = old.cap ? old.cap * 2 : 16;
    m->keys = arena_array(a, const char *, m->cap);
    m->values = arena_array(a, const void *, m->cap);
    for (uint32_t i = 0; i < old.cap; i++)
        if (old.keys[i]) {
            uint32_t j = slot_of(m, old.keys[i]);
            m->keys[j] = old.keys[i];
            m->values[j] = old.values[i];
        }
}

void onnx_map_set(arena *a, onnx_map *m, const char *key, const void *value)
{
    if (m->len * 2 >= m->cap)
        grow(a, m);
    uint32_t i = slot_of(m, key);
    m->len += m->keys[i] == NULL;
    m->keys[i] = key;
    m->values[i] = value;
}

const char *onnx_name(onnx_importer *im, span s)
{
    const uint8_t *nul = s.len ? memchr(s.data, 0, s.len) : NULL; /* IR names are C strings */
    return s.len ? intern_n(im->c->names, (const char *)s.data, nul ? (size_t)(nul - s.data) : s.len)
                 : intern(im->c->names, "");
}

const char *onnx_domain(onnx_importer *im, span s)
{
    static const struct {
        const char *other, *name;
    } names[] = {{"ai.onnx", ""}, {"onnx.brevitas", "qonnx.custom_op.general"}};
    const char *d = onnx_name(im, s);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(d, names[i].other) == 0)
            return intern(im->c->names, names[i].name);
    return d;
}

src_loc onnx_loc(const onnx_importer *im)
{
    src_loc l = src_loc_none();
    l.file = im->path;
    return l;
}

void onnx_define(onnx_env *env, const char *name, graph_value *v)
{
    onnx_map_set(&env->im->c->mem, &env->scope->values, name, v);
}
