/* SPDX-License-Identifier: Apache-2.0 */
/* What this machine reaches in loops of nothing else: bench_operators.py compares operators with them. A loop returns
 * how many numbers it copied, or how many multiply-adds it did. */
#include <stdint.h>
#include <string.h>
#if defined(__AVX2__)
#include <immintrin.h>
#endif

#if defined(__AVX512F__)
#define BYTES 64
#elif defined(__AVX__)
#define BYTES 32
#else
#define BYTES 16
#endif
#define SUMS 12 /* as many as two units with a latency of four or five cycles have under way */

/* The sums are variables, because gcc keeps an array of them in memory. They begin with different numbers, and each step
 * needs the sum before it, so none is left out. */
#define EACH(DO) DO(0) DO(1) DO(2) DO(3) DO(4) DO(5) DO(6) DO(7) DO(8) DO(9) DO(10) DO(11)
#define BEGIN(i)                               \
    values sum##i;                             \
    memcpy(&sum##i, from + i, sizeof sum##i);
#define NEXT(i)  sum##i = STEP(sum##i);
#define KEEP(i)  memcpy((char *)to + i * sizeof a, &sum##i, sizeof a);

/* Not memcpy, which takes other ways for small and large copies. */
int64_t bound_copy(char *restrict to, const char *restrict from, int64_t n)
{
    typedef char bytes __attribute__((vector_size(BYTES), aligned(1), may_alias));
    int64_t i = 0;
    for (; i + BYTES <= n; i += BYTES) {
        *(bytes *)(void *)(to + i) = *(const bytes *)(const void *)(from + i);
        __asm__ volatile("" ::: "memory");
    }
    for (; i < n; i++)
        to[i] = from[i];
    return n;
}

int64_t bound_floats(float *to, const float *from, int64_t rounds)
{
    typedef float values __attribute__((vector_size(BYTES)));
    values a, b;
    memcpy(&a, from, sizeof a);
    memcpy(&b, from + 32, sizeof b);
#define STEP(sum) (sum) * a + b
    EACH(BEGIN)
    for (int64_t k = 0; k < rounds; k++) {
        EACH(NEXT)
    }
    EACH(KEEP)
    return rounds * SUMS * (int64_t)(sizeof a / sizeof *from);
#undef STEP
}

/* Exact sums of products of bytes: by VNNI, or by products of 16 bits whose pairs are added. */
int64_t bound_bytes(int32_t *to, const int32_t *from, int64_t rounds)
{
#if defined(__AVX512VNNI__) && defined(__AVX512F__)
    typedef __m512i values;
#define STEP(sum) _mm512_dpbusd_epi32(sum, sum, b)
#elif defined(__AVX2__)
    typedef __m256i values;
#define STEP(sum) _mm256_add_epi32(a, _mm256_madd_epi16(sum, b))
#else
    typedef int32_t values;
#define STEP(sum) (sum) * b + a
#endif
    values a, b;
    memcpy(&a, from, sizeof a);
    memcpy(&b, from + 32, sizeof b);
    EACH(BEGIN)
    for (int64_t k = 0; k < rounds; k++) {
        EACH(NEXT)
    }
    EACH(KEEP)
    return rounds * SUMS * (int64_t)(sizeof a == 64 ? 64 : sizeof a == 32 ? 16 : 1);
}
