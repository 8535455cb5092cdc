/* SPDX-License-Identifier: Apache-2.0 */
/* Test vectors of VTA streams for a hardware test bench: instructions with their addresses, micro-ops, and every buffer
 * before and behind the run, as files, and vectors.json, which says where each of them lies in DRAM. */
#ifndef LATHE_DRIVER_VTA_VECTORS_H
#define LATHE_DRIVER_VTA_VECTORS_H
#include "target/vta/code/vta_code.h"

typedef struct vta_vectors_buffer {
    const char *name;
    vta_memory memory;
} vta_vectors_buffer;

typedef struct vta_vectors {
    const vta_config *config;
    const vta_insn *insns;
    const uint32_t *uops;
    uint64_t uop_address;
    const vta_vectors_buffer *buffers;
    uint32_t n_insns, n_uops, n_buffers;
} vta_vectors;

/* instructions.bin, micro_ops.bin and vectors.json in the folder `dir`. */
bool vta_vectors_stream(compiler *c, const vta_vectors *v, const char *dir);
/* NAME SUFFIX of each buffer: ".before.bin", ".after.bin". */
bool vta_vectors_memory(compiler *c, const vta_vectors *v, const char *dir, const char *suffix);
/* All of f, a lowered function, on a simulator of its own: dir/NAME, which is made. params[i]: bytes of parameter i;
 * nothing there is changed. */
bool vta_vectors_write(compiler *c, const tir_func *f, void *const *params, const char *dir);
#endif
