/* sim.h: inside the functional simulator. Scratchpads are kept unpacked, whatever the configuration's widths, so that
 * one set of inner loops serves all: inputs and weights as 16-bit integers, weights with the two inputs of a pair side
 * by side (what multiply-add of pairs eats), accumulators as 32-bit integers that stay within their width.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef VTA_SIM_H
#define VTA_SIM_H

#include "vta.h"

typedef struct sim_uop {
    uint16_t dst, src, wgt;
} sim_uop;

/* GEMM for inner loops: for every micro-op, for y < outer, for x < inner: one tile product. Additions wrap, so that the
 * order is free. Indices are checked before. */
typedef struct sim_gemm {
    int32_t *acc;       /* [index][batch][block] */
    const int16_t *inp; /* [index][batch][4 * quads], in the order of vta_sim_lane */
    const void *wgt;    /* [index][quads][block][4], int8_t, or int16_t when `wide` */
    const sim_uop *uops;
    uint32_t n_uops, outer, inner;
    uint32_t dst_outer, dst_inner, src_outer, src_inner, wgt_outer, wgt_inner;
    uint32_t batch, block, quads;
    bool wide;
} sim_gemm;

/* ALU for inner loops: y, x, micro-op, in this order. */
typedef struct sim_alu {
    int32_t *acc;
    const sim_uop *uops;
    uint32_t n_uops, outer, inner;
    uint32_t dst_outer, dst_inner, src_outer, src_inner;
    uint32_t lanes, width; /* accumulators in a row; their bits */
    enum vta_alu_opcode op;
    bool use_imm;
    int32_t imm; /* of 16 bits, whatever the width: only the result is wrapped */
} sim_alu;

/* Inner loops of one level. `unpack_wgt` takes `n` tiles of bytes [block][block] to quads, block a multiple of 16;
 * NULL: the plain way. */
typedef struct sim_kernels {
    vta_sim_level level;
    void (*gemm)(const sim_gemm *w);
    void (*alu)(const sim_alu *w);
    void (*unpack_wgt)(int8_t *out, const int8_t *in, uint32_t n, uint32_t block);
} sim_kernels;

/* The loops of `level`, or of the best one that the CPU and the tiles allow; NULL: one of them does not. */
const sim_kernels *vta_sim_kernels(vta_sim_level level, const vta_geometry *g);
extern const sim_kernels vta_sim_scalar;
const sim_kernels *vta_sim_vector(vta_sim_level level, uint32_t block); /* sim_x86.c; NULL: none */

/* Place of input k in a row: of the four of a quad, the middle two change places. Then a quad of weights needs shifts
 * only to become two pairs of 16 bits, (0, 2) and (1, 3). */
static inline uint32_t vta_sim_lane(uint32_t k)
{
    return (k & ~3u) | (k & 1u) << 1 | (k >> 1 & 1u);
}

/* What a profile's hardware has; streams that need more are refused. */
typedef struct sim_caps {
    bool strict;
    bool mul, acc8;
    int32_t shift_least, shift_most;   /* immediate */
    int32_t tensor_least, tensor_most; /* shift counts out of accumulators */
    bool pad_wgt, pad_acc;
    bool uop_2d;        /* micro-ops load with rows and padding */
    bool alu_batch;     /* ALU works on all rows of a tile */
    bool empty_range;   /* a GEMM or ALU without operations is harmless */
    bool reset_writes;  /* a reset leaves the product in OUT, and so reads its operands */
    uint32_t uop_depth; /* micro-ops that the memory really holds */
} sim_caps;
const sim_caps *vta_sim_caps(vta_profile p);
/* Configurations that a profile's hardware cannot be built for. */
vta_status vta_sim_check_profile(vta_profile p, const vta_geometry *g, vta_error *e);

/* Distances of past instructions, so that a kernel that comes again is not walked through again. */
typedef struct sim_distance {
    uint64_t word0, factors;
    uint32_t generation, distance;
} sim_distance;

enum { SIM_DISTANCES = 64 };

typedef struct sim_queue {
    uint32_t *insn;
    uint32_t len, cap, next;
} sim_queue;

/* Token counters, by the direction in which tokens go. */
enum { SIM_L2G, SIM_G2L, SIM_G2S, SIM_S2G, SIM_TOKENS };

struct vta_sim {
    vta_config config;
    vta_geometry g;
    vta_sim_options o;
    const sim_caps *caps;
    const sim_kernels *kernels;
    vta_dram *dram;
    vta_field layout[VTA_ALU + 1][VTA_MAX_FIELDS], uop_layout[VTA_MAX_FIELDS];
    uint32_t n_layout[VTA_ALU + 1], n_uop_layout;

    uint32_t quads;                           /* of inputs in a row */
    uint32_t inp_lanes, wgt_lanes, acc_lanes; /* of one element, unpacked */
    uint32_t *uop_words;
    sim_uop *uops;
    int16_t *inp;
    void *wgt;
    bool wide_wgt; /* weights of 16 bits */
    int32_t *acc;
    int16_t *out; /* what hardware's OUT memory holds; NULL in compatible mode */
    bool *out_valid;
    vta_counters counters;

    uint32_t least_distance, uop_generation;
    uint64_t operations, *last_write; /* operation that wrote an accumulator last */
    sim_distance distances[SIM_DISTANCES];

    uint32_t tokens[SIM_TOKENS];
    uint64_t work[VTA_STAGE_COUNT], most_work; /* cycles that each stage needs at least, of this run; what is allowed */
    uint32_t random;
    sim_queue queue[VTA_STAGE_COUNT];
};

/* An instruction while it executes: for messages. */
typedef struct sim_at {
    uint32_t index;
    const vta_fields *f;
    vta_error *e;
} sim_at;

/* "instruction 5 (load wgt): " and the message. */
vta_status vta_sim_fault(const sim_at *at, vta_status s, const char *fmt, ...)
#if defined(__GNUC__)
    __attribute__((format(printf, 3, 4)))
#endif
    ;
bool vta_sim_decode(const vta_sim *s, const vta_insn *insn, vta_fields *f);
/* "load wgt", "gemm", "alu shr" */
const char *vta_sim_insn_name(const vta_fields *f);

/* vta_sim_run that gives up (VTA_TIMEOUT) before a stage has more work than `most_work`. */
vta_status vta_sim_run_within(vta_sim *s, const vta_insn *insns, uint32_t count, uint64_t most_work, vta_error *e);

vta_status vta_sim_transfer(vta_sim *s, const sim_at *at); /* sim_mem.c: LOAD and STORE */
void vta_sim_pack(const vta_sim *s, enum vta_mem m, uint32_t index, uint32_t count, uint8_t *out);
vta_status vta_sim_compute(vta_sim *s, const sim_at *at, const vta_insn *insn); /* sim_compute.c: GEMM and ALU */

/* The low `width` bits of v, sign-extended. */
static inline int32_t vta_sim_wrap(int64_t v, uint32_t width)
{
    uint64_t m = (uint64_t)1 << (width - 1), low = (uint64_t)v & (2 * m - 1);
    return (int32_t)((int64_t)(low ^ m) - (int64_t)m);
}

#endif
