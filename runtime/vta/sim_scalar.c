/* sim_scalar.c: inner loops in plain C.
 * SPDX-License-Identifier: Apache-2.0 */
#include "sim.h"

/* A row of accumulators. */
#define ROW(name, type)                                                                                 \
    static void name(int32_t *acc, const int16_t *inp, const type *wgt, uint32_t block, uint32_t quads) \
    {                                                                                                   \
        const size_t next = (size_t)block * 4;                                                          \
        for (uint32_t o = 0; o < block; o++, wgt += 4) {                                                \
            uint32_t sum = (uint32_t)acc[o];                                                            \
            for (uint32_t q = 0; q < quads; q++) {                                                      \
                const int16_t *i = inp + 4 * (size_t)q;                                                 \
                const type *w = wgt + q * next;                                                         \
                sum += (uint32_t)(i[0] * w[0]) + (uint32_t)(i[2] * w[1]) + (uint32_t)(i[1] * w[2]) +    \
                       (uint32_t)(i[3] * w[3]);                                                         \
            }                                                                                           \
            acc[o] = (int32_t)sum;                                                                      \
        }                                                                                               \
    }
ROW(row_narrow, int8_t)
ROW(row_wide, int16_t)

static void tile(const sim_gemm *w, size_t dst, size_t src, size_t weight)
{
    const size_t acc = (size_t)w->batch * w->block, inp = (size_t)w->batch * 4 * w->quads,
                 wgt = (size_t)w->block * 4 * w->quads;
    for (uint32_t b = 0; b < w->batch; b++) {
        int32_t *to = w->acc + acc * dst + (size_t)b * w->block;
        const int16_t *from = w->inp + inp * src + (size_t)b * 4 * w->quads;
        if (w->wide)
            row_wide(to, from, (const int16_t *)w->wgt + wgt * weight, w->block, w->quads);
        else
            row_narrow(to, from, (const int8_t *)w->wgt + wgt * weight, w->block, w->quads);
    }
}

static void gemm(const sim_gemm *w)
{
    for (uint32_t u = 0; u < w->n_uops; u++)
        for (uint32_t y = 0; y < w->outer; y++)
            for (uint32_t x = 0; x < w->inner; x++)
                tile(w, w->uops[u].dst + y * w->dst_outer + x * w->dst_inner,
                     w->uops[u].src + y * w->src_outer + x * w->src_inner,
                     w->uops[u].wgt + y * w->wgt_outer + x * w->wgt_inner);
}

/* Counts beyond the width shift everything out. */
static int32_t shift(int32_t a, int32_t count)
{
    if (count >= 0)
        return count > 31 ? (a < 0 ? -1 : 0)
                          : (int32_t)(((int64_t)a - (a & (((int64_t)1 << count) - 1))) / ((int64_t)1 << count));
    return count < -31 ? 0 : (int32_t)((uint32_t)a << -count);
}

static int32_t apply(enum vta_alu_opcode op, int32_t a, int32_t b)
{
    switch (op) {
    case VTA_ALU_MIN: return a < b ? a : b;
    case VTA_ALU_MAX: return a > b ? a : b;
    case VTA_ALU_ADD: return (int32_t)((uint32_t)a + (uint32_t)b);
    case VTA_ALU_SHR: return shift(a, b);
    case VTA_ALU_MUL: return (int32_t)((uint32_t)a * (uint32_t)b);
    }
    return a;
}

static void alu(const sim_alu *w)
{
    for (uint32_t y = 0; y < w->outer; y++)
        for (uint32_t x = 0; x < w->inner; x++)
            for (uint32_t u = 0; u < w->n_uops; u++) {
                int32_t *dst = w->acc + (size_t)w->lanes * (w->uops[u].dst + y * w->dst_outer + x * w->dst_inner);
                int32_t *src = w->acc + (size_t)w->lanes * (w->uops[u].src + y * w->src_outer + x * w->src_inner);
                for (uint32_t i = 0; i < w->lanes; i++)
                    dst[i] = vta_sim_wrap(apply(w->op, dst[i], w->use_imm ? w->imm : src[i]), w->width);
            }
}

const sim_kernels vta_sim_scalar = {VTA_SIM_SCALAR, gemm, alu, NULL};
