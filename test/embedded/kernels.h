/* SPDX-License-Identifier: Apache-2.0 */
/* What a program that tests kernels does (unit/test_kernels.c writes it, test_kernels.sh runs it): it calls each kernel
 * with random operands a few times, and compares a sum over the bytes of the result with that of the interpreter, which
 * had the same operands. So the numbers here are what both have in common: the first half of the file is the
 * compiler's, too. */
#ifndef KERNELS_H
#define KERNELS_H
#include <stdint.h>
#include <string.h>

enum { KERNEL_OPERANDS = 8, KERNEL_MARGIN = 64, KERNEL_BEHIND = 1024, KERNEL_MOST = 1 << 14 };

/* What an operand's elements are. */
enum kernel_data {
    KERNEL_BITS,       /* any bits; in the second round those of the largest products of bytes */
    KERNEL_TRUTH,      /* true or false, in bytes */
    KERNEL_SPARSE,     /* bytes in which one bit is set, or none */
    KERNEL_SUMS,       /* sums that have room for more */
    KERNEL_ENDS,       /* any sums; in the second round the largest and the least */
    KERNEL_INTEGERS,   /* of so many bits, and of fewer */
    KERNEL_POSITIVE,   /* the same, none below 0 */
    KERNEL_SHIFTS,     /* 0 to -31 */
    KERNEL_FINITE,     /* floats: halves, their neighbors, and what is larger and smaller than any type's numbers */
    KERNEL_NUMBERS,    /* and infinities */
    KERNEL_FLOATS      /* and NaN */
};

typedef struct kernel_operand {
    uint32_t bytes;
    uint8_t size;  /* of an element */
    uint8_t align; /* of the first one */
    uint8_t data, bits;
} kernel_operand;

static uint32_t kernel_random(uint32_t *seed)
{
    *seed = *seed * 1664525u + 1013904223u;
    return *seed >> 8;
}

static uint32_t kernel_float(uint32_t *seed, unsigned data)
{
    const uint32_t kind = kernel_random(seed) % 8, sign = kernel_random(seed) % 2 << 31;
    const int32_t near = (int32_t)(kernel_random(seed) % 601) - 300;
    const uint32_t exponent = 87u + kernel_random(seed) % 81, mantissa = kernel_random(seed) % (1u << 23);
    union {
        float f;
        uint32_t u;
    } v;
    if (kind == 7 && data != KERNEL_FINITE)
        return sign | (data == KERNEL_FLOATS && mantissa % 2 ? 0x7fc00000u : 0x7f800000u);
    v.f = kind < 4 ? (float)near + 0.5f : kind == 4 ? (float)near : 0.25f * (float)near;
    if (kind == 1 || kind == 2)
        v.u += kind == 1 ? 1u : (uint32_t)-1;
    else if (kind > 5) /* from 2 to the power of -40 to 2 to the power of 40 */
        v.u = sign | exponent << 23 | mantissa;
    return v.u;
}

static uint32_t kernel_integer(uint32_t *seed, const kernel_operand *o, int ends)
{
    const uint32_t most = ((uint32_t)1 << (o->bits - 1)) - 1, flip = kernel_random(seed) % 2 ? 0 : ~(uint32_t)0;
    const uint32_t bits = kernel_random(seed) * 257u, less = kernel_random(seed) % o->bits;
    const uint32_t size = ends ? most : (most & bits) >> less;
    return o->data == KERNEL_POSITIVE ? size : size ^ flip;
}

static uint32_t kernel_element(uint32_t *seed, const kernel_operand *o, unsigned round)
{
    const int ends = round % 8 == 1;
    const uint32_t r = kernel_random(seed), more = kernel_random(seed);
    switch (o->data) {
    case KERNEL_BITS:
        return ends ? ((r & 1 ? 0x80u : 0x7fu) | (r & 2 ? 0x8000u : 0x7f00u) | (r & 4 ? 0x800000u : 0x7f0000u) |
                       (r & 8 ? 0x80000000u : 0x7f000000u))
                    : r ^ more << 16;
    case KERNEL_TRUTH: return (r | more << 8) & 0x1010101u;
    case KERNEL_SPARSE: return r % 2 ? 0 : (uint32_t)1 << more % 32;
    case KERNEL_SUMS: return (r ^ 0x800000u) - 0x800000u;
    case KERNEL_ENDS: return ends ? (r & 1 ? 0x7fffffffu : 0x80000000u) : r << 8 ^ more;
    case KERNEL_SHIFTS: return 0 - (ends ? r % 2 * 31 : r % 32);
    case KERNEL_INTEGERS:
    case KERNEL_POSITIVE: return kernel_integer(seed, o, ends);
    default: return kernel_float(seed, o->data);
    }
}

/* Operand i of test t; processors with the most significant byte first are not there. */
static void kernel_fill(unsigned char *to, const kernel_operand *o, unsigned t, unsigned i, unsigned round)
{
    uint32_t seed = 7919u * t + 104729u * round + 31u * i + 1, at, k;
    for (at = 0; at < o->bytes; at += 4) {
        uint32_t v = kernel_element(&seed, o, round);
        if (o->size == 2 && o->data == KERNEL_INTEGERS)
            v = (v & 0xffffu) | kernel_element(&seed, o, round) << 16;
        for (k = 0; k < 4 && at + k < o->bytes; k++, v >>= 8)
            to[at + k] = (unsigned char)v;
    }
}

static uint32_t kernel_sum(uint32_t sum, const unsigned char *p, uint32_t n)
{
    for (; n > 0; n--)
        sum = (sum ^ *p++) * 16777619u;
    return sum;
}

/* Few bytes are different ones more often. */
static unsigned kernel_rounds(const kernel_operand *of, unsigned n)
{
    uint32_t bytes = 0, i;
    for (i = 0; i < n; i++)
        bytes += of[i].bytes;
    return bytes <= 32 ? 256 : bytes <= 128 ? 64 : 4;
}
#endif

#if defined(KERNEL_TESTS)
#include <stdio.h>

/* An operand has a margin on both sides, which nobody may write: behind a result as much as one more run of it. */
static union {
    double align;
    unsigned char bytes[KERNEL_MOST];
} memory[KERNEL_OPERANDS], before[KERNEL_OPERANDS];
static int32_t zero[1];

#if defined(TIMES)
#if defined(__arm__)
uint64_t board_instructions(void);
static double now(void)
{
    return (double)board_instructions();
}
#else
#include <time.h>
static double now(void) /* in nanoseconds */
{
    return (double)clock() * (1e9 / CLOCKS_PER_SEC);
}
#endif

static double takes(void (*fn)(void *const *), void *const *m)
{
    double start;
    long k;
    fn(m);
    start = now();
    for (k = 0; k < TIMES; k++)
        fn(m);
    return (now() - start) / TIMES;
}

int main(void) /* all operands are 0 */
{
    unsigned t, i;
    void *m[1 + KERNEL_OPERANDS];
    m[0] = zero;
    for (i = 0; i < KERNEL_OPERANDS; i++)
        m[1 + i] = memory[i].bytes + KERNEL_MARGIN;
    for (t = 0; t < sizeof tests / sizeof *tests; t++)
        printf("%10.1f %10.1f %10.1f  %s\n", takes(tests[t].kernel, m + !tests[t].zero),
               takes(tests[t].nest, m + !tests[t].zero), tests[t].cost, tests[t].row);
    return 0;
}
#else
static uint32_t whole(unsigned t, unsigned i)
{
    return tests[t].of[i].bytes + KERNEL_MARGIN + (i + 1 == tests[t].n ? KERNEL_BEHIND : 2 * KERNEL_MARGIN);
}

/* One call; whether it wrote nothing but its result. That is added to the sum. */
static int runs_well(unsigned t, unsigned round, uint32_t *sum)
{
    void *m[1 + KERNEL_OPERANDS];
    const unsigned out = tests[t].n - 1;
    unsigned i, k, bad = 0, at = 0;
    m[0] = zero;
    for (i = 0; i < tests[t].n; i++) {
        const kernel_operand *o = &tests[t].of[i];
        at = KERNEL_MARGIN + (round + i * t) % 4 * o->align;
        memset(memory[i].bytes, 0x5a, whole(t, i));
        kernel_fill(memory[i].bytes + at, o, t, i, round);
        memcpy(before[i].bytes, memory[i].bytes, whole(t, i));
        m[1 + i] = memory[i].bytes + at;
    }
    tests[t].kernel(m + !tests[t].zero);
    for (i = 0; i < tests[t].n; i++)
        for (k = 0; k < whole(t, i); k++)
            bad += memory[i].bytes[k] != before[i].bytes[k] &&
                   (i != out || k < at || k >= at + tests[t].of[i].bytes);
    for (k = 0; tests[t].gap && k < tests[t].of[out].bytes; k++) /* what nobody reads */
        memory[out].bytes[at + k] = k % 4 < tests[t].gap ? memory[out].bytes[at + k] : 0;
    *sum = kernel_sum(*sum, memory[out].bytes + at, tests[t].of[out].bytes);
    return bad == 0;
}

int main(void)
{
    unsigned t, round, wrong = 0;
    for (t = 0; t < sizeof tests / sizeof *tests; t++) {
        uint32_t sum = 1;
        int well = 1;
        for (round = 0; round < kernel_rounds(tests[t].of, tests[t].n); round++) {
            well &= runs_well(t, round, &sum);
            if (round < 4 && sum != tests[t].want[round])
                break;
        }
        if (well && sum == tests[t].want[4])
            continue;
        wrong++;
        printf("FAILED %s, number %u, round %u: %s\n", tests[t].row, t, round,
               well ? "not what the interpreter computes" : "it writes what is not its result");
    }
    printf("%u kernels, %u wrong\n", t, wrong);
    return wrong != 0;
}
#endif
#endif
