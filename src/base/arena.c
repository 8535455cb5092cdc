/* SPDX-License-Identifier: Apache-2.0 */
/* Arenas: a chain of blocks from the system, filled upwards. Under AddressSanitizer what is not handed out is poisoned,
 * with a gap after every piece, so that arena memory is checked like the heap's. */
#include "base/arena.h"

#include "base/vec.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define POISONED
#endif
#elif defined(__SANITIZE_ADDRESS__)
#define POISONED
#endif
#ifdef POISONED
#include <sanitizer/asan_interface.h>
#define GAP     ((size_t)16)
#define LARGEST ((size_t)1 << 38) /* above its own limit the sanitizer stops the program where malloc gives NULL */
#else
#define ASAN_POISON_MEMORY_REGION(p, n)   ((void)(p), (void)(n))
#define ASAN_UNPOISON_MEMORY_REGION(p, n) ((void)(p), (void)(n))
#define GAP                               ((size_t)0)
#define LARGEST                           (SIZE_MAX / 2)
#endif

#define BLOCK_SIZE ((size_t)64 * 1024)

typedef struct arena_block {
    struct arena_block *prev;
    struct arena_block *before, *after; /* in the list of the family */
    size_t size, used; /* of the payload that follows the header */
} block;

#define HEADER ((sizeof(block) + 63) & ~(size_t)63)

static unsigned char *payload(block *b)
{
    return (unsigned char *)b + HEADER;
}

void arena_init(arena *a, const arena *parent)
{
    *a = (arena){0};
    if (parent) {
        a->out_of_memory = parent->out_of_memory;
        a->context = parent->context;
        a->all = parent->all;
    }
}

static void join(block **all, block *b)
{
    b->after = *all;
    if (*all)
        (*all)->before = b;
    *all = b;
}

static void leave(block **all, block *b)
{
    if (b->before)
        b->before->after = b->after;
    else
        *all = b->after;
    if (b->after)
        b->after->before = b->before;
}

static void free_block(block *b)
{
    ASAN_UNPOISON_MEMORY_REGION(payload(b), b->size);
    free(b);
}

static void free_until(arena *a, block *stop)
{
    while (a->head != stop) {
        block *prev = a->head->prev;
        a->bytes -= a->head->size;
        if (a->all)
            leave(a->all, a->head);
        free_block(a->head);
        a->head = prev;
    }
}

void arena_free_family(const arena *root)
{
    while (*root->all) {
        block *b = *root->all;
        *root->all = b->after;
        free_block(b);
    }
}

void arena_free(arena *a)
{
    free_until(a, NULL);
}

static void *bump(block *b, size_t size, size_t align)
{
    size_t at = (b->used + align - 1) & ~(align - 1);
    if (at > b->size || size > b->size - at)
        return NULL;
    size_t left = b->size - at - size;
    b->used = b->size - (left > GAP ? left - GAP : 0);
    ASAN_UNPOISON_MEMORY_REGION(payload(b) + at, size);
    return payload(b) + at;
}

static bool add_block(arena *a, size_t size)
{
    if (size > LARGEST)
        return false;
    size_t room = (size + 63) & ~(size_t)63;
    if (room < BLOCK_SIZE)
        room = BLOCK_SIZE;
    block *b = aligned_alloc(64, HEADER + room);
    if (!b)
        return false;
    *b = (block){.prev = a->head, .size = room};
    if (a->all)
        join(a->all, b);
    ASAN_POISON_MEMORY_REGION(payload(b), room);
    a->head = b;
    a->bytes += room;
    return true;
}

void *arena_try_alloc(arena *a, size_t size, size_t align)
{
    assert(align > 0 && align <= 64 && (align & (align - 1)) == 0);
    size_t wanted = size ? size : 1;
    void *p = a->head ? bump(a->head, wanted, align) : NULL;
    if (!p && add_block(a, wanted)) /* a payload starts aligned to 64: the piece fits */
        p = bump(a->head, wanted, align);
    return p ? memset(p, 0, wanted) : NULL;
}

void arena_refuse(arena *a, size_t size)
{
    if (a->out_of_memory)
        a->out_of_memory(a->context, size);
    (void)fprintf(stderr, "lathe: out of memory (%zu bytes)\n", size);
    abort();
}

void *arena_alloc(arena *a, size_t size, size_t align)
{
    void *p = arena_try_alloc(a, size, align);
    if (!p)
        arena_refuse(a, size);
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

char *arena_strdup(arena *a, const char *s)
{
    return arena_strndup(a, s, strlen(s));
}

char *arena_printf(arena *a, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    int n = vsnprintf(NULL, 0, fmt, ap);
    va_end(ap);
    if (n < 0) /* %ls, which nobody uses, apart: no memory */
        arena_refuse(a, strlen(fmt));
    char *p = arena_alloc(a, (size_t)n + 1, 1);
    va_start(ap, fmt);
    (void)vsnprintf(p, (size_t)n + 1, fmt, ap);
    va_end(ap);
    return p;
}

arena_mark arena_get_mark(const arena *a)
{
    return (arena_mark){a->head, a->head ? a->head->used : 0};
}

void arena_reset(arena *a, arena_mark mark)
{
    free_until(a, mark.block);
    if (!a->head)
        return;
    ASAN_POISON_MEMORY_REGION(payload(a->head) + mark.used, a->head->size - mark.used);
    a->head->used = mark.used;
}

void vec_grow(arena *a, void **data, uint32_t len, uint32_t *cap, size_t size)
{
    if (len < *cap)
        return;
    uint64_t grown = *cap ? (uint64_t)*cap * 2 : 8;
    bool fits = grown <= UINT32_MAX; /* a length is 32 bits wide: beyond it is out of memory */
    void *p = arena_alloc_array(a, fits ? (size_t)grown : SIZE_MAX, size, _Alignof(max_align_t));
    if (len)
        memcpy(p, *data, len * size);
    *data = p;
    *cap = (uint32_t)grown;
}
