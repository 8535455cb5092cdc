/* SPDX-License-Identifier: Apache-2.0 */
/* Address maps: linear while small, open addressing with linear probing after that. */
#include "tir/map.h"

#include "base/ptr_map.h"

#include <string.h>

void tir_map_init(tir_map *m, arena *a)
{
    m->a = a;
    m->table = NULL;
    m->len = m->cap = 0;
}

static uint32_t slot_of(const void *key, uint32_t cap)
{
    return ptr_hash(key) & (cap - 1);
}

static tir_map_entry *find(tir_map_entry *table, uint32_t cap, const void *key)
{
    uint32_t i = slot_of(key, cap);
    while (table[i].key && table[i].key != key)
        i = (i + 1) & (cap - 1);
    return &table[i];
}

const void *tir_map_get(const tir_map *m, const void *key)
{
    if (m->table)
        return find(m->table, m->cap, key)->value;
    for (uint32_t i = 0; i < m->len; i++)
        if (m->first[i].key == key)
            return m->first[i].value;
    return NULL;
}

static void grow(tir_map *m)
{
    uint32_t cap = m->table ? m->cap * 2 : TIR_MAP_INLINE * 4, n = m->table ? m->cap : m->len;
    const tir_map_entry *old = m->table ? m->table : m->first;
    tir_map_entry *table = arena_array(m->a, tir_map_entry, cap);
    for (uint32_t i = 0; i < n; i++)
        if (old[i].key)
            *find(table, cap, old[i].key) = old[i];
    m->table = table;
    m->cap = cap;
}

void tir_map_put(tir_map *m, const void *key, const void *value)
{
    if (!m->table) {
        for (uint32_t i = 0; i < m->len; i++) {
            if (m->first[i].key == key) {
                m->first[i].value = value;
                return;
            }
        }
        if (m->len < TIR_MAP_INLINE) {
            m->first[m->len++] = (tir_map_entry){key, value};
            return;
        }
        grow(m);
    } else if (m->len * 2 >= m->cap) {
        grow(m);
    }
    tir_map_entry *e = find(m->table, m->cap, key);
    m->len += !e->key;
    *e = (tir_map_entry){key, value};
}

void tir_map_clear(tir_map *m)
{
    if (m->table)
        memset(m->table, 0, m->cap * sizeof *m->table);
    m->len = 0;
}
