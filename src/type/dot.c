/* SPDX-License-Identifier: Apache-2.0 */
/* The rows of products of small integers, the cheapest first. */
#include "type/dot.h"

#define ONE_INSTRUCTION 1, 1, 0, 0, 1, 1, 0
#define PAIRS           2, 3, 0, 0, 1, 3, 0 /* vpmaddubsw, vpmaddwd, vpaddd; the data, a sum, ones */
#define STEPS           3, 5, 0, 1, 2, 6, 0 /* vpmaddubsw twice, vpaddw, vpmaddwd, vpaddd; both runs, sums, ones */
#define SIGNED_STEPS    3, 7, 4, 1, 4, 5, 0 /* vpxor beside each vpmaddubsw; weights without their signs, and these */
#define HALVES          2, 4, 3, 2, 2, 4, 0 /* vpmaddwd and vpaddd of even and of odd bytes, which are widened */
#define WIDE_READERS    16               /* of each weight that is widened first */
#define MULTIPLY_ADD    1, 2, 0, 0, 1, 2, 0 /* vpmaddwd, vpaddd */
#define NEON_PAIRS      2, 4, 0, 0, 1, 7, 0 /* smull and smull2, addp, sadalp; the data, products */
#define NEON_EXACT      2, 6, 0, 0, 1, 3, 0 /* smull and smull2, saddlp of both, addp, add */
#define NEON_UNSIGNED   2, 6, 2, 1, 2, 3, 0 /* the same by mul, of numbers that are widened */
#define NEON_LANES      2, 2, 2, 0, 2, 1, 0 /* smlal by each number of the data; uzp1 and uzp2 of the weights */
#define TILES           1, 1, 0, 0.5, 1, 3, 2 /* smmla, of eight products; data of two rows is put together */
#define SCALAR_LANES    4, 4, 7, 3, 4, 1, 0 /* vmacc.vx; what one lane has side by side, apart */
#define SCALAR_PAIRS    2, 2, 3, 1, 2, 1, 0 /* the same of two numbers of 16 bits */

#define NIBBLES         2, 2, 3, 0, 2, 1, 0 /* data by four codes, twice; a word is taken apart: masks, a shift */

static const target_dot rows[] = {
    {"dot_u8s8", TARGET_AVX512_VNNI, 64, 4, DT_U8, DT_I8, false, ONE_INSTRUCTION},
    {"dot_u8s8", TARGET_AVX_VNNI, 32, 4, DT_U8, DT_I8, false, ONE_INSTRUCTION},
    {"dot_tile_u8s8", TARGET_I8MM, 16, 8, DT_U8, DT_I8, false, TILES},
    {"dot_tile_s8s8", TARGET_I8MM, 16, 8, DT_I8, DT_I8, false, TILES},
    {"dot_u8s8", TARGET_I8MM, 16, 4, DT_U8, DT_I8, false, ONE_INSTRUCTION},
    {"dot_s8s8", TARGET_DOTPROD, 16, 4, DT_I8, DT_I8, false, ONE_INSTRUCTION},
    {"dot_s8s8_pairs", TARGET_NEON, 16, 4, DT_I8, DT_I8, true, NEON_PAIRS},
    {"dot_s8s8", TARGET_NEON, 16, 4, DT_I8, DT_I8, false, NEON_EXACT},
    {"dot_u8s8", TARGET_NEON, 16, 4, DT_U8, DT_I8, false, NEON_UNSIGNED},
    {"dot_u8s8", TARGET_RVV, 16, 4, DT_U8, DT_I8, false, SCALAR_LANES},
    {"dot_s8s8", TARGET_RVV, 16, 4, DT_I8, DT_I8, false, SCALAR_LANES},
    {"dot_u8s8_pairs", 0, 32, 4, DT_U8, DT_I8, true, PAIRS},
    {"dot_u8s8", 0, 16, 4, DT_U8, DT_I8, false, HALVES},
    {"dot_s8s8", 0, 16, 4, DT_I8, DT_I8, false, HALVES},
    {"dot_s16s16", TARGET_AVX512_VNNI, 64, 2, DT_I16, DT_I16, false, ONE_INSTRUCTION},
    {"dot_s16s16", TARGET_AVX_VNNI, 32, 2, DT_I16, DT_I16, false, ONE_INSTRUCTION},
    {"dot_s16s16", TARGET_NEON, 16, 2, DT_I16, DT_I16, false, NEON_LANES},
    {"dot_s16s16", TARGET_RVV, 16, 2, DT_I16, DT_I16, false, SCALAR_PAIRS},
    {"dot_s16s16", TARGET_MADD, 16, 2, DT_I16, DT_I16, false, MULTIPLY_ADD},
    {"dot_s8u4", 0, 16, 8, DT_I8, DT_U4, false, NIBBLES},
};

/* Weights are packed otherwise than for a row above. */
static const target_dot steps = {"dot_u8s8_steps", TARGET_MADD, 32, 8, DT_U8, DT_I8, true, STEPS},
                        signed_steps = {"dot_s8s8_steps", TARGET_MADD, 32, 8, DT_I8, DT_I8, true, SIGNED_STEPS};

static const target_dot *find(const target *t, dtype a, dtype b, bool proved, bool tiles)
{
    for (uint32_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const target_dot *r = &rows[i];
        if (r->a == a && r->b == b && (t->features & r->features) == r->features &&
            r->vector_bytes <= t->vector_bytes && (proved || !r->needs_proof) && tiles == (r->tile > 0))
            return r;
    }
    return NULL;
}

const target_dot *target_find_dot(const target *t, dtype a, dtype b, bool proved)
{
    return find(t, a, b, proved, false);
}

int64_t target_dot_weights(const target_dot *d)
{
    return (int64_t)(d->granule * dtype_bits(d->b) / 32);
}

static double operations(const target_dot *d, int64_t k)
{
    return d->operations * (double)((k + d->granule - 1) / d->granule);
}

const target_dot *target_find_tile_dot(const target *t, const target_dot *d, int64_t height, int64_t k)
{
    const target_dot *r = find(t, d->a, d->b, false, true);
    return r && height >= r->tile && operations(r, k) < operations(d, k) ? r : NULL;
}

const target_dot *target_find_packed_dot(const target *t, dtype a, dtype b, bool proved, int64_t granule)
{
    const target_dot *d = find(t, a, b, proved, false), *tiles = find(t, a, b, proved, true);
    return d && d->granule == granule ? d : tiles && tiles->granule == granule ? tiles : NULL;
}

const target_dot *target_find_wide_dot(const target *t, const target_dot *bytes)
{
    const target_dot *r = target_find_dot(t, DT_I16, DT_I16, false);
    const bool saves = r && bytes->weight_work > 0 && r->weight_work == 0;
    return saves && r->operations * bytes->granule <= bytes->operations * r->granule ? r : NULL;
}

const target_dot *target_find_wide_dot_for(const target *t, const target_dot *bytes, int64_t readers)
{
    return readers >= WIDE_READERS ? target_find_wide_dot(t, bytes) : NULL;
}

const target_dot *target_find_steps_dot(const target *t, dtype a)
{
    const target_dot *r = a == DT_I8 ? &signed_steps : &steps, *bytes = target_find_dot(t, DT_U8, DT_I8, false);
    return bytes && (a == DT_U8 || a == DT_I8) && (t->features & r->features) == r->features &&
           r->vector_bytes <= t->vector_bytes && target_find_wide_dot(t, bytes) ? r : NULL;
}
