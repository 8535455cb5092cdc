/* reference.h: VTA's semantics a second time, from the formulas, without regard to speed, and without the library's
 * code: fields by bit position, every scalar a number in an array, one operation after the other. A fault leaves what
 * happened before the row or operation at fault.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef REFERENCE_H
#define REFERENCE_H

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "vta_config.h"

typedef struct reference {
    const vta_geometry *g;
    int64_t *cell[VTA_MEM_COUNT]; /* UOP, WGT, INP, ACC: scalars as numbers */
    uint8_t *dram;                /* device addresses [base, base + bytes) */
    uint64_t base, bytes;
} reference;

static inline void reference_init(reference *r, const vta_geometry *g, uint64_t base, const uint8_t *dram, size_t bytes)
{
    memset(r, 0, sizeof *r);
    r->g = g;
    for (int m = VTA_MEM_UOP; m <= VTA_MEM_ACC; m++)
        r->cell[m] = calloc((size_t)g->depth[m] * g->lanes[m], sizeof(int64_t));
    r->dram = malloc(bytes);
    memcpy(r->dram, dram, bytes);
    r->base = base;
    r->bytes = bytes;
}

static inline void reference_free(reference *r)
{
    for (int m = 0; m < VTA_MEM_COUNT; m++)
        free(r->cell[m]);
    free(r->dram);
}

static inline int64_t reference_signed(uint64_t v, unsigned bits)
{
    v &= ((uint64_t)1 << bits) - 1;
    return v >> (bits - 1) ? (int64_t)v - ((int64_t)1 << bits) : (int64_t)v;
}

/* Bits [at, at + n) of memory, the lowest first. */
static inline uint64_t reference_bits(const uint8_t *p, uint64_t at, unsigned n)
{
    uint64_t v = 0;
    for (unsigned i = 0; i < n; i++)
        v |= (uint64_t)(p[(at + i) / 8] >> (at + i) % 8 & 1) << i;
    return v;
}

static inline void reference_put(uint8_t *p, uint64_t at, unsigned n, uint64_t v)
{
    for (unsigned i = 0; i < n; i++) {
        uint8_t bit = (uint8_t)(1u << (at + i) % 8);
        p[(at + i) / 8] = (uint8_t)((p[(at + i) / 8] & ~bit) | (v >> i & 1 ? bit : 0));
    }
}

/* Takes the next `n` bits of a word. */
static inline uint64_t reference_take(uint64_t *word, unsigned n)
{
    uint64_t v = *word & (((uint64_t)1 << n) - 1);
    *word >>= n;
    return v;
}

/* The fields of an instruction: one that does not fit in what is left of a word begins the next. */
typedef struct reference_cursor {
    const uint64_t *word;
    unsigned at;
} reference_cursor;

static inline uint64_t reference_next(reference_cursor *c, unsigned n)
{
    if (c->at + n > 64) {
        c->word++;
        c->at = 0;
    }
    uint64_t v = n ? *c->word >> c->at & (((uint64_t)1 << n) - 1) : 0;
    c->at += n;
    return v;
}

static inline uint8_t *reference_row(reference *r, uint64_t address, uint64_t bytes)
{
    return address >= r->base && address + bytes <= r->base + r->bytes ? r->dram + (address - r->base) : NULL;
}

static inline bool reference_load(reference *r, unsigned type, uint64_t sram, uint64_t dram, uint64_t ys, uint64_t xs,
                                  uint64_t stride, uint64_t yp0, uint64_t yp1, uint64_t xp0, uint64_t xp1)
{
    const vta_geometry *g = r->g;
    unsigned to = type == VTA_MEM_ACC_8BIT ? VTA_MEM_ACC : type, lanes = g->lanes[to], width = g->width[type];
    if (sram + (xp0 + xs + xp1) * (yp0 + ys + yp1) > g->depth[to])
        return false;
    for (uint64_t y = 0; y < yp0 + ys + yp1; y++) {
        bool pad = y < yp0 || y >= yp0 + ys;
        const uint8_t *row =
            pad ? NULL : reference_row(r, (dram + (y - yp0) * stride) * g->elem_bytes[type], xs * g->elem_bytes[type]);
        if (!pad && !row)
            return false;
        for (uint64_t x = 0; x < xp0 + xs + xp1; x++, sram++)
            for (unsigned i = 0; i < lanes; i++) {
                bool zero = pad || x < xp0 || x >= xp0 + xs;
                uint64_t at = zero ? 0 : (x - xp0) * g->elem_bits[type] + (uint64_t)i * width;
                r->cell[to][sram * lanes + i] = zero ? 0 : reference_signed(reference_bits(row, at, width), width);
            }
    }
    return true;
}

static inline bool reference_store(reference *r, uint64_t sram, uint64_t dram, uint64_t ys, uint64_t xs,
                                   uint64_t stride)
{
    const vta_geometry *g = r->g;
    unsigned lanes = g->lanes[VTA_MEM_ACC], width = g->width[VTA_MEM_OUT];
    if (sram + xs * ys > g->depth[VTA_MEM_ACC])
        return false;
    for (uint64_t y = 0; y < ys; y++) {
        uint64_t bytes = g->elem_bytes[VTA_MEM_OUT];
        uint8_t *row = reference_row(r, (dram + y * stride) * bytes, xs * bytes);
        if (!row)
            return false;
        for (uint64_t x = 0; x < xs; x++, sram++)
            for (unsigned i = 0; i < lanes; i++)
                reference_put(row, x * g->elem_bits[VTA_MEM_OUT] + (uint64_t)i * width, width,
                              (uint64_t)r->cell[VTA_MEM_ACC][sram * lanes + i]);
    }
    return true;
}

static inline void reference_tile(reference *r, uint64_t dst, uint64_t src, uint64_t wgt, bool reset)
{
    const vta_geometry *g = r->g;
    unsigned n = g->block_in, m = g->block_out;
    for (unsigned b = 0; b < g->batch; b++)
        for (unsigned o = 0; o < m; o++) {
            int64_t *acc = &r->cell[VTA_MEM_ACC][dst * g->batch * m + b * m + o], sum = *acc;
            for (unsigned k = 0; !reset && k < n; k++)
                sum += r->cell[VTA_MEM_INP][src * g->batch * n + b * n + k] *
                       r->cell[VTA_MEM_WGT][wgt * m * n + o * n + k];
            *acc = reset ? 0 : reference_signed((uint64_t)sum, g->width[VTA_MEM_ACC]);
        }
}

static inline int64_t reference_alu(unsigned op, int64_t a, int64_t b)
{
    switch (op) {
    case 0: return a < b ? a : b;
    case 1: return a > b ? a : b;
    case 2: return a + b;
    case 3: /* one bit at a time; after 64 nothing changes any more */
        for (int i = 0; i < 64 && b > 0; i++, b--)
            a = (a - (a & 1)) / 2;
        for (int i = 0; i < 64 && b < 0; i++, b++)
            a = reference_signed((uint64_t)a * 2, 32);
        return a;
    default: return a * b;
    }
}

static inline bool reference_compute(reference *r, const uint64_t insn[2])
{
    const vta_geometry *g = r->g;
    unsigned A = (unsigned)g->log_depth[VTA_MEM_ACC], I = (unsigned)g->log_depth[VTA_MEM_INP],
             W = (unsigned)g->log_depth[VTA_MEM_WGT], U = (unsigned)g->log_depth[VTA_MEM_UOP];
    reference_cursor c = {insn, 0};
    bool gemm = reference_next(&c, 3) == 2;
    reference_next(&c, 4);
    bool reset = reference_next(&c, 1);
    uint64_t begin = reference_next(&c, U), end = reference_next(&c, U + 1), ny = reference_next(&c, 14),
             nx = reference_next(&c, 14);
    uint64_t dy = reference_next(&c, A), dx = reference_next(&c, A), sy = reference_next(&c, gemm ? I : A),
             sx = reference_next(&c, gemm ? I : A), wy = 0, wx = 0;
    unsigned op = 0, lanes = g->lanes[VTA_MEM_ACC], width = g->width[VTA_MEM_ACC];
    bool use_imm = false;
    int64_t imm = 0;
    if (gemm) {
        wy = reference_next(&c, W);
        wx = reference_next(&c, W);
    } else {
        op = (unsigned)reference_next(&c, 3);
        use_imm = reference_next(&c, 1);
        imm = reference_signed(reference_next(&c, 16), 16); /* whatever the accumulators' width */
        if (op > 4)
            return false;
    }
    if (begin < end && ny && nx && end > g->depth[VTA_MEM_UOP])
        return false;
    for (uint64_t y = 0; y < ny; y++)
        for (uint64_t x = 0; x < nx; x++)
            for (uint64_t u = begin; u < end; u++) {
                uint64_t word = (uint64_t)r->cell[VTA_MEM_UOP][u] & UINT32_MAX;
                uint64_t dst = reference_take(&word, A) + y * dy + x * dx,
                         src = reference_take(&word, A > I ? A : I) + y * sy + x * sx,
                         wgt = reference_take(&word, W) + y * wy + x * wx;
                if (dst >= g->depth[VTA_MEM_ACC])
                    return false;
                if (!(gemm && reset) && src >= g->depth[gemm ? VTA_MEM_INP : VTA_MEM_ACC])
                    return false;
                if (gemm && !reset && wgt >= g->depth[VTA_MEM_WGT])
                    return false;
                if (gemm)
                    reference_tile(r, dst, src, wgt, reset);
                for (unsigned i = 0; !gemm && i < lanes; i++) {
                    int64_t *acc = r->cell[VTA_MEM_ACC];
                    int64_t v = reference_alu(op, acc[dst * lanes + i], use_imm ? imm : acc[src * lanes + i]);
                    acc[dst * lanes + i] = reference_signed((uint64_t)v, width);
                }
            }
    return true;
}

/* One instruction; false: it is at fault. */
static inline bool reference_execute(reference *r, const uint64_t insn[2])
{
    const vta_geometry *g = r->g;
    reference_cursor c = {insn, 0};
    unsigned opcode = (unsigned)reference_next(&c, 3);
    if (opcode == 3)
        return true;
    if (opcode == 2 || opcode == 4)
        return reference_compute(r, insn);
    if (opcode > 4)
        return false;
    reference_next(&c, 4);
    unsigned type = (unsigned)reference_next(&c, 3);
    uint64_t sram = reference_next(&c, 16), dram = reference_next(&c, 32);
    uint64_t ys = reference_next(&c, 16), xs = reference_next(&c, 16), stride = reference_next(&c, 16);
    uint64_t yp0 = reference_next(&c, 4), yp1 = reference_next(&c, 4), xp0 = reference_next(&c, 4),
             xp1 = reference_next(&c, 4);
    if (opcode == 1) {
        if (type != VTA_MEM_OUT || yp0 || yp1 || xp0 || xp1)
            return false;
        return xs == 0 || reference_store(r, sram, dram, ys, xs, stride);
    }
    if (type == VTA_MEM_OUT || type > VTA_MEM_ACC_8BIT ||
        (type == VTA_MEM_ACC_8BIT && (g->width[VTA_MEM_ACC] != 32 || g->width[VTA_MEM_INP] != 8)))
        return false;
    return xs == 0 || reference_load(r, type, sram, dram, ys, xs, stride, yp0, yp1, xp0, xp1);
}

#endif
