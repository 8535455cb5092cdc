/* SPDX-License-Identifier: Apache-2.0 */
/* A map from addresses to addresses, for remembering what was done to a node. Small ones live in the struct. Nothing
 * depends on its order: there is no way to list it. */
#ifndef LATHE_TIR_MAP_H
#define LATHE_TIR_MAP_H
#include "base/arena.h"

typedef struct tir_map_entry {
    const void *key, *value;
} tir_map_entry;

#define TIR_MAP_INLINE 8u
typedef struct tir_map {
    arena *a;
    tir_map_entry *table; /* open addressing, capacity a power of two; NULL while the inline entries are enough */
    uint32_t len, cap;
    tir_map_entry first[TIR_MAP_INLINE];
} tir_map;

void tir_map_init(tir_map *m, arena *a);
const void *tir_map_get(const tir_map *m, const void *key); /* NULL: absent */
void tir_map_put(tir_map *m, const void *key, const void *value);
void tir_map_clear(tir_map *m);
#endif
