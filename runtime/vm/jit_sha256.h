/* jit_sha256.h: SHA-256 (FIPS 180-4), for the names of cached objects and for their check before they are loaded.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef LATHE_VM_JIT_SHA256_H
#define LATHE_VM_JIT_SHA256_H
#include <stddef.h>
#include <stdint.h>

#define JIT_SHA256_BYTES 32

typedef struct jit_sha256 {
    uint32_t state[8];
    uint64_t bytes; /* taken so far */
    uint8_t block[64];
} jit_sha256;

void jit_sha256_init(jit_sha256 *s);
void jit_sha256_add(jit_sha256 *s, const void *data, size_t n);
void jit_sha256_end(jit_sha256 *s, uint8_t out[JIT_SHA256_BYTES]);
#endif
