/* sim_scalar.c: inner loops in plain C, and the choice among the levels.
 * SPDX-License-Identifier: Apache-2.0 */
#include "sim.h"

static void tile(const sim_gemm *w, int32_t *acc, const int16_t *inp, const int16_t *wgt)
{
    for (uint32_t b = 0; b < w->batch; b++, acc += w->block, inp += 2 * w->pairs)
        for (uint32_t p = 0; p < w->pairs; p++)
            for (uint32_t o = 0; o < w->block; o++) {
                const int16_t *pair = wgt + ((size_t)p * w->block + o) * 2;
                uint32_t low = (uint32_t)(inp[2 * p] * pair[0]), high = (uint32_t)(inp[2 * p + 1] * pair[1]);
                acc[o] = (int32_t)((uint32_t)acc[o] + low + high);
            }
}

static void gemm(const sim_gemm *w)
{
    const size_t acc = (size_t)w->batch * w->block, inp = (size_t)w->batch * 2 * w->pairs,
                 wgt = (size_t)w->block * 2 * w->pairs;
    for (uint32_t u = 0; u < w->n_uops; u++)
        for (uint32_t y = 0; y < w->outer; y++)
            for (uint32_t x = 0; x < w->inner; x++)
                tile(w, w->acc + acc * (w->uops[u].dst + y * w->dst_outer + x * w->dst_inner),
                     w->inp + inp * (w->uops[u].src + y * w->src_outer + x * w->src_inner),
                     w->wgt + wgt * (w->uops[u].wgt + y * w->wgt_outer + x * w->wgt_inner));
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

const sim_kernels *vta_sim_kernels(vta_sim_level level, uint32_t block)
{
    (void)block;
    return level == VTA_SIM_AUTO || level == VTA_SIM_SCALAR ? &vta_sim_scalar : NULL;
}
