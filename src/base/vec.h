/* SPDX-License-Identifier: Apache-2.0 */
/* Growable arrays in an arena, typed by macro: `VEC(int) v = {0}; vec_push(a, &v, 3);`. Old storage stays in the
 * arena until the arena goes. Elements are reached as v.data[i], i < v.len. */
#ifndef LATHE_BASE_VEC_H
#define LATHE_BASE_VEC_H
#include "base/arena.h"

#define VEC(T)        \
    struct {          \
        T *data;      \
        uint32_t len; \
        uint32_t cap; \
    }

#define vec_push(a, v, ...)                                                      \
    (vec_grow((a), (void **)&(v)->data, (v)->len, &(v)->cap, sizeof *(v)->data), \
     (void)((v)->data[(v)->len++] = __VA_ARGS__))
#define vec_last(v) ((v)->data[(v)->len - 1])
#define vec_pop(v)  ((v)->data[--(v)->len])

/* Makes room for one more element of `size` bytes. */
void vec_grow(arena *a, void **data, uint32_t len, uint32_t *cap, size_t size);
#endif
