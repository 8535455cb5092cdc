/* sim_x86.c: inner loops for SSE2, AVX2, AVX-512 and its VNNI, in one build: functions carry their level as a target
 * attribute, and the choice is made at run time.
 * SPDX-License-Identifier: Apache-2.0 */
#include "sim.h"

#if defined(__x86_64__) && defined(__GNUC__)
#include <immintrin.h>

/* --- weights, transposed ------------------------------------------------------------------------------------------ */

/* A tile of bytes is a matrix of quads, 32 bits each, [block][block / 4]; it is stored transposed. */

/* 4 x 4 quads, in each 128 bits. */
#define TRANSPOSE(r0, r1, r2, r3, type, lo32, hi32, lo64, hi64)                            \
    do {                                                                                   \
        const type a = lo32(r0, r1), b = hi32(r0, r1), c = lo32(r2, r3), d = hi32(r2, r3); \
        r0 = lo64(a, c);                                                                   \
        r1 = hi64(a, c);                                                                   \
        r2 = lo64(b, d);                                                                   \
        r3 = hi64(b, d);                                                                   \
    } while (0)

__attribute__((target("sse2"))) static inline __m128i four_quads(const int8_t *in)
{
    return _mm_loadu_si128((const __m128i *)(const void *)in);
}

__attribute__((target("sse2"))) static void unpack_sse2(int8_t *out, const int8_t *in, uint32_t n, uint32_t block)
{
    const size_t tile = (size_t)block * block, row = block;
    for (uint32_t e = 0; e < n; e++, in += tile, out += tile)
        for (size_t o = 0; o < block; o += 4)
            for (size_t k = 0; k < block; k += 16) {
                const int8_t *from = in + o * row + k;
                __m128i *to = (__m128i *)(void *)(out + k * row + o * 4);
                const size_t step = row / 4; /* from quad to quad */
                __m128i r0 = four_quads(from), r1 = four_quads(from + row), r2 = four_quads(from + 2 * row),
                        r3 = four_quads(from + 3 * row);
                TRANSPOSE(r0, r1, r2, r3, __m128i, _mm_unpacklo_epi32, _mm_unpackhi_epi32, _mm_unpacklo_epi64,
                          _mm_unpackhi_epi64);
                _mm_storeu_si128(to, r0);
                _mm_storeu_si128(to + step, r1);
                _mm_storeu_si128(to + 2 * step, r2);
                _mm_storeu_si128(to + 3 * step, r3);
            }
}

/* Of two rows that lie `apart`. */
__attribute__((target("avx2"))) static inline __m256i eight_quads(const int8_t *in, size_t apart)
{
    return _mm256_inserti128_si256(_mm256_castsi128_si256(four_quads(in)), four_quads(in + apart), 1);
}

/* Rows 0 to 3 in the low halves, 4 to 7 in the high ones. */
__attribute__((target("avx2"))) static void unpack_avx2(int8_t *out, const int8_t *in, uint32_t n, uint32_t block)
{
    const size_t tile = (size_t)block * block, row = block;
    for (uint32_t e = 0; e < n; e++, in += tile, out += tile)
        for (size_t o = 0; o < block; o += 8)
            for (size_t k = 0; k < block; k += 16) {
                const int8_t *from = in + o * row + k;
                int8_t *to = out + k * row + o * 4;
                __m256i r0 = eight_quads(from, 4 * row), r1 = eight_quads(from + row, 4 * row),
                        r2 = eight_quads(from + 2 * row, 4 * row), r3 = eight_quads(from + 3 * row, 4 * row);
                TRANSPOSE(r0, r1, r2, r3, __m256i, _mm256_unpacklo_epi32, _mm256_unpackhi_epi32, _mm256_unpacklo_epi64,
                          _mm256_unpackhi_epi64);
                _mm256_storeu_si256((__m256i *)(void *)to, r0);
                _mm256_storeu_si256((__m256i *)(void *)(to + 4 * row), r1);
                _mm256_storeu_si256((__m256i *)(void *)(to + 8 * row), r2);
                _mm256_storeu_si256((__m256i *)(void *)(to + 12 * row), r3);
            }
}

/* Tiles of 16 x 16 are four registers: quads (0, 1) and (2, 3) of eight rows each, then halves put together. */
__attribute__((target("avx512f"))) static void unpack_avx512(int8_t *out, const int8_t *in, uint32_t n, uint32_t block)
{
    const __m512i low = _mm512_setr_epi32(0, 4, 8, 12, 16, 20, 24, 28, 1, 5, 9, 13, 17, 21, 25, 29);
    const __m512i high = _mm512_setr_epi32(2, 6, 10, 14, 18, 22, 26, 30, 3, 7, 11, 15, 19, 23, 27, 31);
    if (block != 16) {
        unpack_avx2(out, in, n, block);
        return;
    }
    for (uint32_t e = 0; e < n; e++, in += 256, out += 256) {
        const __m512i r0 = _mm512_loadu_si512(in), r1 = _mm512_loadu_si512(in + 64), r2 = _mm512_loadu_si512(in + 128),
                      r3 = _mm512_loadu_si512(in + 192);
        const __m512i a = _mm512_permutex2var_epi32(r0, low, r1), b = _mm512_permutex2var_epi32(r2, low, r3),
                      c = _mm512_permutex2var_epi32(r0, high, r1), d = _mm512_permutex2var_epi32(r2, high, r3);
        _mm512_storeu_si512(out, _mm512_shuffle_i64x2(a, b, 0x44));
        _mm512_storeu_si512(out + 64, _mm512_shuffle_i64x2(a, b, 0xee));
        _mm512_storeu_si512(out + 128, _mm512_shuffle_i64x2(c, d, 0x44));
        _mm512_storeu_si512(out + 192, _mm512_shuffle_i64x2(c, d, 0xee));
    }
}

/* --- levels ------------------------------------------------------------------------------------------------------- */

#define SIM_NAME(x)         x##_sse2
#define SIM_TARGET          __attribute__((target("sse2")))
#define SIM_V               __m128i
#define SIM_LANES           4
#define SIM_LOAD(p)         _mm_loadu_si128((const __m128i *)(const void *)(p))
#define SIM_STORE(p, v)     _mm_storeu_si128((__m128i *)(void *)(p), v)
#define SIM_ADD(a, b)       _mm_add_epi32(a, b)
#define SIM_SET1(v)         _mm_set1_epi32(v)
#define SIM_MADD(sum, a, b) _mm_add_epi32(sum, _mm_madd_epi16(a, b))
#define SIM_LEFT8(v)        _mm_slli_epi16(v, 8)
#define SIM_RIGHT8(v)       _mm_srai_epi16(v, 8)
#include "sim_simd.h"

#define SIM_NAME(x)         x##_avx2
#define SIM_TARGET          __attribute__((target("avx2")))
#define SIM_V               __m256i
#define SIM_LANES           8
#define SIM_LOAD(p)         _mm256_loadu_si256((const __m256i *)(const void *)(p))
#define SIM_STORE(p, v)     _mm256_storeu_si256((__m256i *)(void *)(p), v)
#define SIM_ADD(a, b)       _mm256_add_epi32(a, b)
#define SIM_SET1(v)         _mm256_set1_epi32(v)
#define SIM_MADD(sum, a, b) _mm256_add_epi32(sum, _mm256_madd_epi16(a, b))
#define SIM_LEFT8(v)        _mm256_slli_epi16(v, 8)
#define SIM_RIGHT8(v)       _mm256_srai_epi16(v, 8)
#include "sim_simd.h"

#define SIM_NAME(x)         x##_avx512
#define SIM_TARGET          __attribute__((target("avx512f,avx512bw")))
#define SIM_V               __m512i
#define SIM_LANES           16
#define SIM_LOAD(p)         _mm512_loadu_si512((const void *)(p))
#define SIM_STORE(p, v)     _mm512_storeu_si512((void *)(p), v)
#define SIM_ADD(a, b)       _mm512_add_epi32(a, b)
#define SIM_SET1(v)         _mm512_set1_epi32(v)
#define SIM_MADD(sum, a, b) _mm512_add_epi32(sum, _mm512_madd_epi16(a, b))
#define SIM_LEFT8(v)        _mm512_slli_epi16(v, 8)
#define SIM_RIGHT8(v)       _mm512_srai_epi16(v, 8)
#include "sim_simd.h"

#define SIM_NAME(x)         x##_vnni
#define SIM_TARGET          __attribute__((target("avx512f,avx512bw,avx512vnni")))
#define SIM_V               __m512i
#define SIM_LANES           16
#define SIM_LOAD(p)         _mm512_loadu_si512((const void *)(p))
#define SIM_STORE(p, v)     _mm512_storeu_si512((void *)(p), v)
#define SIM_ADD(a, b)       _mm512_add_epi32(a, b)
#define SIM_SET1(v)         _mm512_set1_epi32(v)
#define SIM_MADD(sum, a, b) _mm512_dpwssd_epi32(sum, a, b)
#define SIM_LEFT8(v)        _mm512_slli_epi16(v, 8)
#define SIM_RIGHT8(v)       _mm512_srai_epi16(v, 8)
#include "sim_simd.h"

static const sim_kernels levels[] = {
    {VTA_SIM_VNNI, gemm_vnni, alu_vnni, unpack_avx512},
    {VTA_SIM_AVX512, gemm_avx512, alu_avx512, unpack_avx512},
    {VTA_SIM_AVX2, gemm_avx2, alu_avx2, unpack_avx2},
    {VTA_SIM_SSE2, gemm_sse2, alu_sse2, unpack_sse2},
};

static const uint32_t level_lanes[] = {16, 16, 8, 4};

static bool has_level(vta_sim_level level)
{
    switch (level) {
    case VTA_SIM_VNNI: return __builtin_cpu_supports("avx512vnni") && __builtin_cpu_supports("avx512bw");
    case VTA_SIM_AVX512: return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw");
    case VTA_SIM_AVX2: return __builtin_cpu_supports("avx2");
    case VTA_SIM_SSE2: return __builtin_cpu_supports("sse2");
    case VTA_SIM_AUTO:
    case VTA_SIM_SCALAR: break;
    }
    return false;
}

const sim_kernels *vta_sim_vector(vta_sim_level level, uint32_t block)
{
    for (size_t i = 0; i < sizeof levels / sizeof *levels; i++)
        if ((level == VTA_SIM_AUTO || level == levels[i].level) && block >= level_lanes[i] &&
            has_level(levels[i].level))
            return &levels[i];
    return NULL;
}

#else

const sim_kernels *vta_sim_vector(vta_sim_level level, uint32_t block)
{
    (void)level;
    (void)block;
    return NULL;
}
#endif
