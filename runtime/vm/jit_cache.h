/* jit_cache.h: compiled objects by what they were made from. An entry is one file, KEY.so: the object, and behind it
 * what it was made for and the hash of all that. The first half of a key stands for source and machine, the second for
 * the compiler.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef LATHE_VM_JIT_CACHE_H
#define LATHE_VM_JIT_CACHE_H
#include "jit_command.h"
#include "jit_file.h"
#include "abi/sha256.h"

enum {
    JIT_KEY_SOURCE = 2 * SHA256_BYTES,
    JIT_KEY_COMPILER = 16,
    JIT_KEY_SIZE = JIT_KEY_SOURCE + 1 + JIT_KEY_COMPILER + 1
};

typedef struct jit_cache {
    const lathe_options *options;
    char *path; /* of the folder; NULL: no cache is kept */
    int dir;
    char key[JIT_KEY_SIZE];
    uint32_t width; /* what objects for this machine are made for */
    int lock;       /* held; -1: not */
} jit_cache;

/* Opens the folder, and makes it when it is not there. c NULL: there is no compiler, and jit_cache_newest alone makes
 * sense. Without a cache, because the options want none or nothing says
 * where it could be, `path` is NULL. LATHE_E_FILE: a folder that others could write, or that cannot be used. To be
 * closed. */
int32_t jit_cache_open(const lathe_options *options, const jit_command *c, const char *source, size_t size,
                       jit_cache *out, lathe_error *error);
void jit_cache_close(jit_cache *cache);

/* Waits until nobody else makes this entry, but no longer than a compiler may take. */
void jit_cache_lock(jit_cache *cache);
void jit_cache_unlock(jit_cache *cache);

/* The object, in memory and checked; `hold` keeps its entry from being cleared away until it is closed. False: there is
 * none that can be used. */
bool jit_cache_get(const jit_cache *cache, jit_bytes *object, int *hold);
/* Of the objects of this source and machine, by whatever compiler, the one that was made or used last; its key is that
 * of the cache from then on. False: there is none, and the cache has the key that it had. */
bool jit_cache_newest(jit_cache *cache, jit_bytes *object, int *hold);
/* Stores it, and clears old entries away. What fails is only said: the object is there without it. */
void jit_cache_put(const jit_cache *cache, const jit_bytes *object, int *hold);
#endif
