/* SPDX-License-Identifier: Apache-2.0 */
/* Arenas: memory by lifetime. A block is freed with its arena, never alone. Node-sized requests cannot fail for the
 * caller: when the system has no memory the arena calls its out-of-memory handler, which must not return (default:
 * message and abort). Every arena of a compile has the handler of the compiler's own, so that a program decides once
 * how it ends; `lathe` says so, removes its temporary folders and ends with status 3. Requests whose size comes from a
 * file use arena_try_alloc, which may return NULL. */
#ifndef LATHE_BASE_ARENA_H
#define LATHE_BASE_ARENA_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct arena {
    struct arena_block *head;                            /* newest block first */
    size_t bytes;             /* bytes reserved from the system, for reports */
    void (*out_of_memory)(void *context, size_t size); /* must not return; NULL: message and abort */
    void *context;
    struct arena_block **all; /* list of the blocks of a family of arenas, NULL: none is kept; see arena_free_family */
} arena;

typedef struct arena_mark {
    struct arena_block *block;
    size_t used;
} arena_mark;

/* Empty, with the out-of-memory handler and the family of `parent`; NULL: with the default one, and none. */
void arena_init(arena *a, const arena *parent);
void arena_free(arena *a); /* releases everything; the arena may be used again */
/* Releases what all arenas have that were made under `root`, whose `all` points at a list: for a handler that leaves
 * their users in the middle. None of them is used again. */
void arena_free_family(const arena *root);

/* Zeroed memory of `size` bytes aligned to `align` (a power of two, at most 64). Never NULL; size 0 gives a unique
 * pointer. */
void *arena_alloc(arena *a, size_t size, size_t align);
/* The same for sizes that come from a file: NULL when the system refuses. */
void *arena_try_alloc(arena *a, size_t size, size_t align);
/* Calls the out-of-memory handler; 0: nobody knows for how many bytes. */
void arena_refuse(arena *a, size_t size) __attribute__((noreturn));
void *arena_copy(arena *a, const void *data, size_t size, size_t align);
char *arena_strdup(arena *a, const char *s);
char *arena_strndup(arena *a, const char *s, size_t n);
char *arena_printf(arena *a, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

arena_mark arena_get_mark(const arena *a);
void arena_reset(arena *a, arena_mark mark); /* frees all that was allocated after the mark */

#define arena_new(a, T)      ((T *)arena_alloc((a), sizeof(T), _Alignof(T)))
#define arena_array(a, T, n) ((T *)arena_alloc_array((a), (n), sizeof(T), _Alignof(T)))
void *arena_alloc_array(arena *a, size_t n, size_t size, size_t align); /* checks the product */

#ifdef __cplusplus
}
#endif
#endif
