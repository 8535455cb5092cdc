/* sim_simd.h: inner loops of one vector level, for sim_x86.c, which includes this once per level after it has defined
 *   SIM_NAME(x)  x with the level's suffix          SIM_TARGET   the function attribute that turns the level on
 *   SIM_V        vector of 32-bit integers          SIM_LANES    how many
 *   SIM_LOAD, SIM_STORE, SIM_ADD, SIM_SET1, SIM_MADD(sum, a, b): sum of products of 16-bit pairs, added to sum
 *   SIM_LEFT8, SIM_RIGHT8: shifts of 16-bit lanes by 8, to the right with the sign
 * A tile's product is, per group of lanes: sum over pairs of (input pair, to all lanes) times (weight pairs, by lane).
 * SPDX-License-Identifier: Apache-2.0 */
#ifdef SIM_NAME

#define SIM_INLINE SIM_TARGET static inline __attribute__((always_inline))
typedef int32_t SIM_NAME(vector) __attribute__((vector_size(4 * SIM_LANES)));

SIM_INLINE SIM_V SIM_NAME(pair)(const int16_t *inp)
{
    int32_t v;
    memcpy(&v, inp, sizeof v);
    return SIM_SET1(v);
}

/* sum + eight pairs; two chains, so that additions overlap. */
SIM_INLINE SIM_V SIM_NAME(dot8)(SIM_V sum, const int16_t *inp, const SIM_V w[8])
{
    SIM_V odd = SIM_MADD(SIM_SET1(0), SIM_NAME(pair)(inp + 2), w[1]);
    sum = SIM_MADD(sum, SIM_NAME(pair)(inp), w[0]);
    odd = SIM_MADD(odd, SIM_NAME(pair)(inp + 6), w[3]);
    sum = SIM_MADD(sum, SIM_NAME(pair)(inp + 4), w[2]);
    odd = SIM_MADD(odd, SIM_NAME(pair)(inp + 10), w[5]);
    sum = SIM_MADD(sum, SIM_NAME(pair)(inp + 8), w[4]);
    odd = SIM_MADD(odd, SIM_NAME(pair)(inp + 14), w[7]);
    sum = SIM_MADD(sum, SIM_NAME(pair)(inp + 12), w[6]);
    return SIM_ADD(sum, odd);
}

/* Four quads of weights as eight pairs, for one group of lanes; `row` bytes from quad to quad. */
SIM_INLINE void SIM_NAME(weights)(SIM_V w[8], const int8_t *wgt, size_t row)
{
    const SIM_V q0 = SIM_LOAD(wgt), q1 = SIM_LOAD(wgt + row), q2 = SIM_LOAD(wgt + 2 * row),
                q3 = SIM_LOAD(wgt + 3 * row);
    w[0] = SIM_RIGHT8(SIM_LEFT8(q0));
    w[1] = SIM_RIGHT8(q0);
    w[2] = SIM_RIGHT8(SIM_LEFT8(q1));
    w[3] = SIM_RIGHT8(q1);
    w[4] = SIM_RIGHT8(SIM_LEFT8(q2));
    w[5] = SIM_RIGHT8(q2);
    w[6] = SIM_RIGHT8(SIM_LEFT8(q3));
    w[7] = SIM_RIGHT8(q3);
}

/* sum + all pairs of one row of inputs. */
SIM_INLINE SIM_V SIM_NAME(dot)(SIM_V sum, const int16_t *inp, const int8_t *wgt, uint32_t block, uint32_t quads)
{
    const size_t row = (size_t)block * 4;
    uint32_t q = 0;
    for (; q + 4 <= quads; q += 4, inp += 16, wgt += 4 * row) {
        SIM_V w[8];
        SIM_NAME(weights)(w, wgt, row);
        sum = SIM_NAME(dot8)(sum, inp, w);
    }
    for (; q < quads; q++, inp += 4, wgt += row) {
        const SIM_V v = SIM_LOAD(wgt);
        sum = SIM_MADD(sum, SIM_NAME(pair)(inp), SIM_RIGHT8(SIM_LEFT8(v)));
        sum = SIM_MADD(sum, SIM_NAME(pair)(inp + 2), SIM_RIGHT8(v));
    }
    return sum;
}

/* The innermost loop: n operations, steps in elements of the arrays. */
typedef struct SIM_NAME(run) {
    int32_t *acc;
    const int16_t *inp;
    const int8_t *wgt;
    uint32_t n;
    size_t dst, src, weight;
} SIM_NAME(run);

/* One weight tile for all n: eight pairs of it stay in registers. */
SIM_INLINE void SIM_NAME(same_weight)(const SIM_NAME(run) * r, uint32_t batch, uint32_t block, uint32_t quads)
{
    for (uint32_t g = 0; g < block; g += SIM_LANES)
        for (uint32_t q = 0; q < quads; q += 4) {
            const int16_t *inp = r->inp + 4 * (size_t)q;
            int32_t *acc = r->acc + g;
            SIM_V w[8];
            SIM_NAME(weights)(w, r->wgt + ((size_t)q * block + g) * 4, (size_t)block * 4);
            for (uint32_t i = 0; i < r->n; i++, acc += r->dst, inp += r->src)
                for (uint32_t b = 0; b < batch; b++) {
                    int32_t *to = acc + (size_t)b * block;
                    SIM_STORE(to, SIM_NAME(dot8)(SIM_LOAD(to), inp + (size_t)b * 4 * quads, w));
                }
        }
}

/* One accumulator for all n: it stays in a register. */
SIM_INLINE void SIM_NAME(same_acc)(const SIM_NAME(run) * r, uint32_t batch, uint32_t block, uint32_t quads)
{
    for (uint32_t b = 0; b < batch; b++)
        for (uint32_t g = 0; g < block; g += SIM_LANES) {
            const int16_t *inp = r->inp + (size_t)b * 4 * quads;
            const int8_t *wgt = r->wgt + (size_t)g * 4;
            int32_t *acc = r->acc + (size_t)b * block + g;
            SIM_V sum = SIM_LOAD(acc);
            for (uint32_t i = 0; i < r->n; i++, inp += r->src, wgt += r->weight)
                sum = SIM_NAME(dot)(sum, inp, wgt, block, quads);
            SIM_STORE(acc, sum);
        }
}

SIM_INLINE void SIM_NAME(each)(const SIM_NAME(run) * r, uint32_t batch, uint32_t block, uint32_t quads)
{
    const int16_t *inp = r->inp;
    const int8_t *wgt = r->wgt;
    int32_t *acc = r->acc;
    for (uint32_t i = 0; i < r->n; i++, acc += r->dst, inp += r->src, wgt += r->weight)
        for (uint32_t b = 0; b < batch; b++)
            for (uint32_t g = 0; g < block; g += SIM_LANES) {
                int32_t *to = acc + (size_t)b * block + g;
                SIM_STORE(to,
                          SIM_NAME(dot)(SIM_LOAD(to), inp + (size_t)b * 4 * quads, wgt + (size_t)g * 4, block, quads));
            }
}

SIM_INLINE void SIM_NAME(loops)(const sim_gemm *w, uint32_t batch, uint32_t block, uint32_t quads)
{
    const size_t acc = (size_t)batch * block, inp = (size_t)batch * 4 * quads, wgt = (size_t)block * 4 * quads;
    /* Additions commute: the loop that keeps a weight goes inside; and a longer one, when none does. */
    const bool swap = w->wgt_inner != 0 && (w->wgt_outer == 0 || (w->inner == 1 && w->outer > 1));
    const uint32_t outer = swap ? w->inner : w->outer;
    const SIM_NAME(run) step = {.n = swap ? w->outer : w->inner,
                                .dst = acc * (swap ? w->dst_outer : w->dst_inner),
                                .src = inp * (swap ? w->src_outer : w->src_inner),
                                .weight = wgt * (swap ? w->wgt_outer : w->wgt_inner)};
    const size_t dst = acc * (swap ? w->dst_inner : w->dst_outer), src = inp * (swap ? w->src_inner : w->src_outer),
                 weight = wgt * (swap ? w->wgt_inner : w->wgt_outer);
    for (uint32_t u = 0; u < w->n_uops; u++) {
        SIM_NAME(run) r = step;
        r.acc = w->acc + acc * w->uops[u].dst;
        r.inp = w->inp + inp * w->uops[u].src;
        r.wgt = (const int8_t *)w->wgt + wgt * w->uops[u].wgt;
        for (uint32_t y = 0; y < outer; y++, r.acc += dst, r.inp += src, r.wgt += weight) {
            if (r.n > 1 && r.dst == 0)
                SIM_NAME(same_acc)(&r, batch, block, quads);
            else if (r.n > 1 && r.weight == 0 && quads % 4 == 0)
                SIM_NAME(same_weight)(&r, batch, block, quads);
            else
                SIM_NAME(each)(&r, batch, block, quads);
        }
    }
}

SIM_TARGET static void SIM_NAME(gemm)(const sim_gemm *w)
{
    if (w->batch == 1 && w->block == 16)
        SIM_NAME(loops)(w, 1, 16, 4); /* constants: everything unrolls */
    else
        SIM_NAME(loops)(w, w->batch, w->block, w->quads);
}

/* --- ALU ---------------------------------------------------------------------------------------------------------- */

SIM_INLINE SIM_NAME(vector) SIM_NAME(apply)(enum vta_alu_opcode op, SIM_NAME(vector) a, SIM_NAME(vector) b, int32_t imm)
{
    typedef uint32_t unsigned_vector __attribute__((vector_size(4 * SIM_LANES)));
    SIM_NAME(vector) less = a < b;
    switch (op) {
    case VTA_ALU_MIN: return (a & less) | (b & ~less);
    case VTA_ALU_MAX: return (b & less) | (a & ~less);
    case VTA_ALU_ADD: return (SIM_NAME(vector))((unsigned_vector)a + (unsigned_vector)b);
    case VTA_ALU_SHR: /* by an immediate; counts are in range */
        return imm >= 0 ? a >> imm : (SIM_NAME(vector))((unsigned_vector)a << -imm);
    case VTA_ALU_MUL: return (SIM_NAME(vector))((unsigned_vector)a * (unsigned_vector)b);
    }
    return a;
}

SIM_INLINE void SIM_NAME(alu_loops)(const sim_alu *w, enum vta_alu_opcode op, bool use_imm)
{
    const SIM_NAME(vector) imm = w->imm - (SIM_NAME(vector)){0};
    for (uint32_t y = 0; y < w->outer; y++)
        for (uint32_t x = 0; x < w->inner; x++)
            for (uint32_t u = 0; u < w->n_uops; u++) {
                int32_t *dst = w->acc + (size_t)w->lanes * (w->uops[u].dst + y * w->dst_outer + x * w->dst_inner);
                int32_t *src = w->acc + (size_t)w->lanes * (w->uops[u].src + y * w->src_outer + x * w->src_inner);
                for (uint32_t i = 0; i < w->lanes; i += SIM_LANES) {
                    SIM_NAME(vector) a, b = imm;
                    memcpy(&a, dst + i, sizeof a);
                    if (!use_imm)
                        memcpy(&b, src + i, sizeof b);
                    a = SIM_NAME(apply)(op, a, b, w->imm);
                    memcpy(dst + i, &a, sizeof a);
                }
            }
}

/* Narrow accumulators, shifts by other accumulators or by more than 31 are rare: they take the plain loops. */
SIM_TARGET static void SIM_NAME(alu)(const sim_alu *w)
{
    if (w->width != 32 || (w->op == VTA_ALU_SHR && (!w->use_imm || w->imm < -31 || w->imm > 31))) {
        vta_sim_scalar.alu(w);
        return;
    }
    switch (w->op) {
    case VTA_ALU_MIN:
        w->use_imm ? SIM_NAME(alu_loops)(w, VTA_ALU_MIN, true) : SIM_NAME(alu_loops)(w, VTA_ALU_MIN, false);
        break;
    case VTA_ALU_MAX:
        w->use_imm ? SIM_NAME(alu_loops)(w, VTA_ALU_MAX, true) : SIM_NAME(alu_loops)(w, VTA_ALU_MAX, false);
        break;
    case VTA_ALU_ADD:
        w->use_imm ? SIM_NAME(alu_loops)(w, VTA_ALU_ADD, true) : SIM_NAME(alu_loops)(w, VTA_ALU_ADD, false);
        break;
    case VTA_ALU_MUL:
        w->use_imm ? SIM_NAME(alu_loops)(w, VTA_ALU_MUL, true) : SIM_NAME(alu_loops)(w, VTA_ALU_MUL, false);
        break;
    case VTA_ALU_SHR: SIM_NAME(alu_loops)(w, VTA_ALU_SHR, true); break;
    }
}

#undef SIM_INLINE
#undef SIM_NAME
#undef SIM_TARGET
#undef SIM_V
#undef SIM_LANES
#undef SIM_LOAD
#undef SIM_STORE
#undef SIM_ADD
#undef SIM_SET1
#undef SIM_MADD
#undef SIM_LEFT8
#undef SIM_RIGHT8
#endif
