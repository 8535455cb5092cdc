/* SPDX-License-Identifier: Apache-2.0 */
/* Arenas: a chain of blocks from the system, filled upwards. */
#include "base/arena.h"

#include "base/vec.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BLOCK_SIZE ((size_t)64 * 1024)

typedef struct arena_block {
    struct arena_block *prev;
    size_t size, used; /* of the payload that follows the header */
} block;

#define HEADER ((sizeof(block) + 63) & ~(size_t)63)

static unsigned char *payload(block *b) { return (unsigned char *)b + HEADER; }

void arena_init(arena *a) { *a = (arena){0}; }

static void free_until(arena *a, block *stop)
{
    while (a->head != stop) {
        block *prev = a->head->prev;
        a->bytes -= a->head->size;
        free(a->head);
        a->head = prev;
    }
}

void arena_free(arena *a) { free_until(a, NULL); }

static void *bump(block *b, size_t size, size_t align)
{
    size_t at = (b->used + align - 1) & ~(align - 1);
    if (at > b->size || size > b->size - at)
        return NULL;
    b->used = at + size;
    return payload(b) + at;
}

void *arena_try_alloc(arena *a, size_t size, size_t align)
{
    void *p = a->head ? bump(a->head, size ? size : 1, align) : NULL;
    if (!p) {
        if (size > SIZE_MAX / 2)
            return NULL;
        size_t room = size + 64 > BLOCK_SIZE ? size + 64 : BLOCK_SIZE;
        block *b = aligned_alloc(64, (HEADER + room + 63) & ~(size_t)63);
        if (!b)
            return NULL;
        *b = (block){a->head, room, 0};
        a->head = b;
        a->bytes += room;
        p = bump(b, size ? size : 1, align);
    }
    return memset(p, 0, size);
}

void *arena_alloc(arena *a, size_t size, size_t align)
{
    void *p = arena_try_alloc(a, size, align);
    if (!p) {
        (void)fprintf(stderr, "lathe: out of memory (%zu bytes)\n", size);
        abort();
    }
    return p;
}

void *arena_alloc_array(arena *a, size_t n, size_t size, size_t align)
{
    size_t total;
    if (__builtin_mul_overflow(n, size, &total))
        total = SIZE_MAX; /* refused below */
    return arena_alloc(a, total, align);
}

void *arena_copy(arena *a, const void *data, size_t size, size_t align)
{
    void *p = arena_alloc(a, size, align);
    return size ? memcpy(p, data, size) : p;
}

char *arena_strndup(arena *a, const char *s, size_t n)
{
    char *p = arena_alloc(a, n + 1, 1);
    if (n)
        memcpy(p, s, n);
    return p;
}

char *arena_strdup(arena *a, const char *s) { return arena_strndup(a, s, strlen(s)); }

char *arena_printf(arena *a, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    int n = vsnprintf(NULL, 0, fmt, ap);
    va_end(ap);
    char *p = arena_alloc(a, (size_t)n + 1, 1);
    va_start(ap, fmt);
    (void)vsnprintf(p, (size_t)n + 1, fmt, ap);
    va_end(ap);
    return p;
}

arena_mark arena_get_mark(const arena *a) { return (arena_mark){a->head, a->head ? a->head->used : 0}; }

void arena_reset(arena *a, arena_mark mark)
{
    free_until(a, mark.block);
    if (a->head)
        a->head->used = mark.used;
}

void vec_grow(arena *a, void **data, uint32_t len, uint32_t *cap, size_t size)
{
    if (len < *cap)
        return;
    uint32_t grown = *cap ? *cap * 2 : 8;
    void *p = arena_alloc_array(a, grown, size, _Alignof(max_align_t));
    if (len)
        memcpy(p, *data, len * size);
    *data = p;
    *cap = grown;
}
