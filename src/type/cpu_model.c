/* SPDX-License-Identifier: Apache-2.0 */
/* The table of processors, and which of them this machine has, by its identification register. */
#include "type/cpu_model.h"

#include <stddef.h>
#include <string.h>

#if defined(__x86_64__)
#include <cpuid.h>
#elif defined(__aarch64__) && defined(__linux__)
#include <sys/auxv.h>
#endif

#define KB(n) ((n) * 1024u)
#define MB(n) ((n) * 1024u * 1024u)

/* CPU(name, multiply-adds, loads, issue, latency, registers, L1, L2, L3, far bytes, memory bytes,
 * transform) */
#define CPU(name, f, l, i, lat, regs, l1, l2, l3, far, mem, tf) \
    {name, f, l, i, lat, regs, l1, l2, l3, far, mem, tf},

static const cpu_model table[] = {
    /* levels: what code for all machines of one can count on; the model of the first rules. Memory of v3 and v4 lies
     * between their processors', where the wrong form of a deep convolution costs as much on the slowest as on the
     * fastest */
    CPU("generic", 1, 1, 4, 4, 16, KB(32), MB(1), MB(2), 12, 3, 8)
    CPU("x86-64-v2", 2, 2, 4, 4, 16, KB(32), KB(256), MB(8), 12, 3, 8)
    CPU("x86-64-v3", 2, 2, 4, 4, 16, KB(32), KB(512), MB(16), 12, 5, 8)
    CPU("x86-64-v4", 2, 2, 4, 4, 32, KB(32), MB(1), MB(32), 12, 5.5, 8)
    CPU("aarch64", 2, 2, 4, 4, 32, KB(32), KB(512), MB(2), 12, 3, 8)
    CPU("rv64gcv", 2, 2, 4, 4, 32, KB(32), KB(512), MB(2), 12, 3, 8)
    /* AVX2: two units; the latency decides how many sums hide it. Far: Intel's manual gives 14 bytes a cycle sustained
     * (Broadwell), AMD's guides a path of 32, of which one core's reading gets two thirds */
    CPU("haswell", 2, 2, 4, 5, 16, KB(32), KB(256), MB(8), 14, 4, 8)
    CPU("znver2", 2, 2, 4, 5, 16, KB(32), KB(512), MB(16), 20, 6, 8)
    CPU("znver3", 2, 2, 6, 4, 16, KB(32), KB(512), MB(32), 20, 6, 8)
    /* AVX-512 */
    CPU("znver4", 1, 1, 6, 4, 32, KB(32), MB(1), MB(32), 12, 3, 8)
    CPU("znver5", 2, 2, 8, 4, 32, KB(48), MB(1), MB(32), 12, 8, 8)
    CPU("skylake-avx512", 2, 2, 4, 4, 32, KB(32), MB(1), MB(16), 15, 3, 8)
    CPU("sapphirerapids", 2, 2, 6, 4, 32, KB(48), MB(2), MB(30), 8, 3, 8)
    /* NEON, 128 bits */
    CPU("cortex-a53", 1, 0.5, 2, 8, 32, KB(32), KB(128), KB(512), 4, 2, 8)
    CPU("cortex-a72", 1, 1, 3, 7, 32, KB(32), KB(256), MB(1), 8, 3, 8)
    CPU("cortex-a76", 2, 2, 4, 4, 32, KB(64), KB(512), MB(2), 12, 3, 8)
    CPU("neoverse-n1", 2, 2, 4, 4, 32, KB(64), MB(1), MB(32), 12, 3, 8)
    CPU("neoverse-v1", 4, 3, 8, 4, 32, KB(64), MB(1), MB(32), 12, 4, 8)
    /* RISC-V, 256 bits */
    CPU("spacemit-x60", 1, 1, 2, 4, 32, KB(32), KB(128), KB(512), 4, 2, 8)
};
#undef CPU

const cpu_model *cpu_model_find(const char *name)
{
    for (size_t i = 0; i < sizeof table / sizeof *table; i++)
        if (strcmp(table[i].name, name) == 0)
            return &table[i];
    return NULL;
}

#if defined(__x86_64__) || defined(__aarch64__)
/* Who made it, the family (x86) or nothing, the first and the last model, or part. */
typedef struct cpu_id {
    char maker; /* 'A'MD, 'I'ntel, a'r'm */
    uint32_t family, first, last;
    const char *name;
} cpu_id;

static const cpu_id ids[] = {
    {'A', 0x17, 0x30, 0xff, "znver2"},      {'A', 0x19, 0x10, 0x1f, "znver4"},
    {'A', 0x19, 0x60, 0x7f, "znver4"},      {'A', 0x19, 0xa0, 0xaf, "znver4"},
    {'A', 0x19, 0x00, 0xff, "znver3"},      {'A', 0x1a, 0x00, 0xff, "znver5"},
    {'I', 6, 0x3c, 0x3d, "haswell"},        {'I', 6, 0x3f, 0x3f, "haswell"},
    {'I', 6, 0x45, 0x47, "haswell"},        {'I', 6, 0x4f, 0x4f, "haswell"},
    {'I', 6, 0x56, 0x56, "haswell"},        {'I', 6, 0x55, 0x55, "skylake-avx512"},
    {'I', 6, 0x8f, 0x8f, "sapphirerapids"}, {'I', 6, 0xcf, 0xcf, "sapphirerapids"},
    {'r', 0, 0xd03, 0xd03, "cortex-a53"},   {'r', 0, 0xd08, 0xd08, "cortex-a72"},
    {'r', 0, 0xd0b, 0xd0b, "cortex-a76"},   {'r', 0, 0xd0c, 0xd0c, "neoverse-n1"},
    {'r', 0, 0xd40, 0xd40, "neoverse-v1"},
};

static const char *find_id(char maker, uint32_t family, uint32_t model)
{
    for (size_t i = 0; i < sizeof ids / sizeof *ids; i++)
        if (ids[i].maker == maker && ids[i].family == family && ids[i].first <= model && model <= ids[i].last)
            return ids[i].name;
    return NULL;
}
#endif

const char *cpu_model_here(void)
{
#if defined(__x86_64__)
    uint32_t a, b, c, d, text[3];
    if (!__get_cpuid(0, &a, &text[0], &text[2], &text[1]) || !__get_cpuid(1, &a, &b, &c, &d))
        return NULL;
    char maker = memcmp(text, "AuthenticAMD", 12) == 0 ? 'A' : memcmp(text, "GenuineIntel", 12) == 0 ? 'I' : '?';
    uint32_t family = a >> 8 & 0xf, model = (a >> 4 & 0xf) | (a >> 12 & 0xf0);
    return find_id(maker, family == 0xf ? family + (a >> 20 & 0xff) : family, model);
#elif defined(__aarch64__) && defined(__linux__)
    uint64_t midr;
    if (!(getauxval(AT_HWCAP) >> 11 & 1)) /* HWCAP_CPUID: the kernel lets programs read it */
        return NULL;
    __asm__("mrs %0, MIDR_EL1" : "=r"(midr));
    return midr >> 24 == 0x41 ? find_id('r', 0, midr >> 4 & 0xfff) : NULL;
#else
    return NULL;
#endif
}
