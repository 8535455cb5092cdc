/* SPDX-License-Identifier: Apache-2.0 */
/* Fixed point in lanes and of one number, beside its definition as TensorFlow Lite's kernels have it: powers of two and
 * their neighbors, numbers of every size, all shifts. The last line says how many numbers there were. */
#include "kernel/lanes/doubled_product.inc"
#include "kernel/lanes/high_product.inc"
#include "kernel/lanes/rounded_shift.inc"
#include <stdio.h>

#ifndef ROUNDS
#define ROUNDS 100000
#endif

/* SaturatingRoundingDoublingHighMul and RoundingDivideByPOT of gemmlowp. */
static int32_t doubled(int32_t a, int32_t b)
{
    const int64_t p = (int64_t)a * b;
    return (int32_t)((p + (p >= 0 ? 1 << 30 : 1 - (1 << 30))) / ((int64_t)1 << 31));
}

static int32_t shifted(int32_t x, int32_t n)
{
    const uint32_t mask = ((uint32_t)1 << n) - 1, rest = (uint32_t)x & mask, half = (mask >> 1) + (x < 0);
    return (x >> n) + (rest > half);
}

static uint32_t random_bits(void)
{
    static uint64_t state = 88172645463325252u;
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return (uint32_t)(state >> 16);
}

static int32_t pick(void)
{
    const uint32_t power = (uint32_t)1 << random_bits() % 32, near = random_bits() % 3 - 1;
    switch (random_bits() % 4) {
    case 0: return (int32_t)(power + near);
    case 1: return (int32_t)(0 - power + near);
    case 2: return (int32_t)random_bits() >> random_bits() % 32;
    default: return (int32_t)random_bits();
    }
}

int main(void)
{
    long wrong = 0, round;
    for (round = 0; round < ROUNDS; round++) {
        LATHE_V x, y, n, p, h, s;
        int i;
        for (i = 0; i < LATHE_LANES; i++) {
            LATHE_LANE(x, i) = pick();
            do
                LATHE_LANE(y, i) = pick();
            while (LATHE_LANE(y, i) == INT32_MIN);
            LATHE_LANE(n, i) = (int32_t)(random_bits() % 32);
        }
        p = LATHE_OF(doubled_product)(x, y);
        h = LATHE_OF(high_product)(x, y);
        s = LATHE_OF(rounded_shift)(x, n);
        for (i = 0; i < LATHE_LANES; i++) {
            const int32_t a = LATHE_LANE(x, i), b = LATHE_LANE(y, i), by = LATHE_LANE(n, i);
            const int32_t high = (int32_t)(((int64_t)a * b) >> 32);
            if (LATHE_LANE(p, i) == doubled(a, b) && lathe_doubled_product(a, b) == doubled(a, b) &&
                LATHE_LANE(h, i) == high && lathe_high_product(a, b) == high && LATHE_LANE(s, i) == shifted(a, by) &&
                lathe_rounded_shift(a, by) == shifted(a, by))
                continue;
            if (wrong++ < 5)
                printf("%d by %d: %d, %d; shifted by %d: %d\n", (int)a, (int)b, (int)LATHE_LANE(p, i),
                       (int)LATHE_LANE(h, i), (int)by, (int)LATHE_LANE(s, i));
        }
    }
    printf("%ld numbers, %ld wrong\n", (long)ROUNDS * LATHE_LANES, wrong);
    return wrong != 0;
}
