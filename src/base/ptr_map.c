/* SPDX-License-Identifier: Apache-2.0 */
/* Open addressing with linear probing, at most half full. */
#include "base/ptr_map.h"

#include <assert.h>

void ptr_map_init(ptr_map *m, arena *a)
{
    *m = (ptr_map){.a = a};
}

static uint32_t slot_of(const ptr_map *m, const void *key)
{
    uint32_t i = ptr_hash(key) & (m->cap - 1);
    while (m->keys[i] && m->keys[i] != key)
        i = (i + 1) & (m->cap - 1);
    return i;
}

bool ptr_map_get(const ptr_map *m, const void *key, uint32_t *out_value)
{
    if (m->cap == 0)
        return false;
    uint32_t i = slot_of(m, key);
    if (!m->keys[i])
        return false;
    *out_value = m->values[i];
    return true;
}

static void grow(ptr_map *m)
{
    ptr_map old = *m;
    m->cap = old.cap ? old.cap * 2 : 16;
    m->keys = arena_array(m->a, const void *, m->cap);
    m->values = arena_array(m->a, uint32_t, m->cap);
    for (uint32_t i = 0; i < old.cap; i++) {
        if (!old.keys[i])
            continue;
        uint32_t at = slot_of(m, old.keys[i]);
        m->keys[at] = old.keys[i];
        m->values[at] = old.values[i];
    }
}

void ptr_map_set(ptr_map *m, const void *key, uint32_t value)
{
    assert(key);
    if ((m->len + 1) * 2 > m->cap)
        grow(m);
    uint32_t i = slot_of(m, key);
    m->len += !m->keys[i];
    m->keys[i] = key;
    m->values[i] = value;
}
