/* vta_config.h: a VTA device as data. vta_config holds the keys of vta_config.json; vta_geometry is everything that
 * follows from them; vta_config_derive computes it and checks every rule. Compiler passes, simulators and run-time
 * share this file; reading text or JSON is each caller's. Nothing here allocates or keeps state.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef ABI_VTA_CONFIG_H
#define ABI_VTA_CONFIG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "vta_config.def"

#ifdef __cplusplus
extern "C" {
#endif

/* Memories, by the id that instructions carry. */
enum vta_mem {
    VTA_MEM_UOP = 0,
    VTA_MEM_WGT = 1,
    VTA_MEM_INP = 2,
    VTA_MEM_ACC = 3,
    VTA_MEM_OUT = 4,      /* STORE only: the low bits of accumulators */
    VTA_MEM_ACC_8BIT = 5, /* LOAD only: bytes, sign-extended into accumulators */
    VTA_MEM_COUNT = 6
};

#define VTA_PAGE_BYTES 4096u
#define VTA_INSN_BYTES 16u
#define VTA_UOP_BYTES  4u
#define VTA_MAX_PAD    15u

typedef struct vta_config {
    char target[16]; /* a name of VTA_TARGETS */
#define X(member, key, value, least, most, help) uint8_t member;
    VTA_CONFIG_KEYS(X)
#undef X
} vta_config;

typedef struct vta_geometry {
    uint32_t batch, block_in, block_out;
    uint32_t width[VTA_MEM_COUNT];      /* bits of one scalar */
    uint32_t elem_bits[VTA_MEM_COUNT];  /* bits of one element: a tile, or a micro-op */
    uint32_t elem_bytes[VTA_MEM_COUNT]; /* in DRAM and in the scratchpad; ACC_8BIT: in DRAM */
    uint32_t lanes[VTA_MEM_COUNT];      /* scalars in an element */
    int32_t log_depth[VTA_MEM_COUNT];   /* ACC_8BIT and OUT: the accumulator's */
    uint32_t depth[VTA_MEM_COUNT];      /* elements in the scratchpad */
} vta_geometry;

/* A board: what the cycle model and drivers need besides the geometry. */
typedef struct vta_target {
    const char *name;
    uint32_t bus_bits, clock_mhz, burst_beats, register_base;
} vta_target;

static inline vta_config vta_config_default(void)
{
    vta_config c = {"sim",
#define X(member, key, value, least, most, help) value,
                    VTA_CONFIG_KEYS(X)
#undef X
    };
    return c;
}

/* The published target of this name; false: there is none. */
static inline bool vta_target_find(const char *name, vta_target *out)
{
    static const vta_target all[] = {
#define X(name, bus, clock, burst, base) {name, bus, clock, burst, base},
        VTA_TARGETS(X)
#undef X
    };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        if (strcmp(all[i].name, name) == 0) {
            *out = all[i];
            return true;
        }
    }
    return false;
}

static inline void vta_geometry_memory(vta_geometry *g, enum vta_mem m, uint32_t log_width, uint32_t log_lanes,
                                       uint32_t log_bytes)
{
    g->width[m] = 1u << log_width;
    g->lanes[m] = 1u << log_lanes;
    g->elem_bits[m] = 1u << (log_width + log_lanes);
    g->elem_bytes[m] = g->elem_bits[m] / 8u;
    g->log_depth[m] = (int32_t)log_bytes + 3 - (int32_t)(log_width + log_lanes);
    g->depth[m] = g->log_depth[m] >= 0 ? 1u << g->log_depth[m] : 0u;
}

/* Derives *g from *c and checks ranges and rules. Returns NULL when all hold; else the name of the rule that is broken,
 * or the JSON key that is out of range, with the explanation in *why. *g is then not to be used. */
static inline const char *vta_config_derive(const vta_config *c, vta_geometry *g, const char **why)
{
    memset(g, 0, sizeof *g);
#define X(member, key, value, least, most, help)                           \
    if ((int)c->member < (least) || c->member > (most)) {                  \
        *why = "must lie between " #least " and " #most ": log2 of " help; \
        return key;                                                        \
    }
    VTA_CONFIG_KEYS(X)
#undef X
    uint32_t batch = c->log_batch, block = c->log_block;
    g->batch = 1u << batch;
    g->block_in = g->block_out = 1u << block;
    vta_geometry_memory(g, VTA_MEM_UOP, 5, 0, c->log_uop_buff_size);
    vta_geometry_memory(g, VTA_MEM_WGT, c->log_wgt_width, 2 * block, c->log_wgt_buff_size);
    vta_geometry_memory(g, VTA_MEM_INP, c->log_inp_width, batch + block, c->log_inp_buff_size);
    vta_geometry_memory(g, VTA_MEM_ACC, c->log_acc_width, batch + block, c->log_acc_buff_size);
    vta_geometry_memory(g, VTA_MEM_OUT, c->log_inp_width, batch + block, c->log_acc_buff_size);
    vta_geometry_memory(g, VTA_MEM_ACC_8BIT, 3, batch + block, c->log_acc_buff_size);
    g->log_depth[VTA_MEM_OUT] = g->log_depth[VTA_MEM_ACC_8BIT] = g->log_depth[VTA_MEM_ACC];
    g->depth[VTA_MEM_OUT] = g->depth[VTA_MEM_ACC_8BIT] = g->depth[VTA_MEM_ACC];
    int32_t A = g->log_depth[VTA_MEM_ACC], I = g->log_depth[VTA_MEM_INP], W = g->log_depth[VTA_MEM_WGT],
            U = g->log_depth[VTA_MEM_UOP];
#define X(name, condition, text) \
    if (!(condition)) {          \
        *why = text;             \
        return name;             \
    }
    VTA_CONFIG_RULES(X)
#undef X
    *why = NULL;
    return NULL;
}

static inline bool vta_config_equal(const vta_config *a, const vta_config *b)
{
#define X(member, key, value, least, most, help) \
    if (a->member != b->member)                  \
        return false;
    VTA_CONFIG_KEYS(X)
#undef X
    return true;
}

#ifdef __cplusplus
}
#endif
#endif
