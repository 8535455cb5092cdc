/* SPDX-License-Identifier: Apache-2.0 */
/* A map from pointers (interned names, values, rows) to small numbers: open addressing, in an arena. It is looked up,
 * never walked, so that no output depends on addresses. */
#ifndef LATHE_BASE_PTR_MAP_H
#define LATHE_BASE_PTR_MAP_H
#include "base/arena.h"

typedef struct ptr_map {
    arena *a;
    const void **keys;
    uint32_t *values;
    uint32_t len, cap; /* cap: zero or a power of two */
} ptr_map;

/* Addresses of one arena are nearly an arithmetic progression, which one multiplication leaves in heaps (the finalizer
 * of MurmurHash3). */
static inline uint32_t ptr_hash(const void *key)
{
    uint64_t h = (uint64_t)(uintptr_t)key;
    h = (h ^ h >> 33) * 0xff51afd7ed558ccdu;
    h = (h ^ h >> 33) * 0xc4ceb9fe1a85ec53u;
    return (uint32_t)(h ^ h >> 33);
}

void ptr_map_init(ptr_map *m, arena *a);
bool ptr_map_get(const ptr_map *m, const void *key, uint32_t *out_value);
void ptr_map_set(ptr_map *m, const void *key, uint32_t value); /* adds or replaces; key is not NULL */
#endif
