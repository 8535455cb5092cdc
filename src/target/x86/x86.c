/* SPDX-License-Identifier: Apache-2.0 */
/* x86-64: its targets, processors, and products of small integers. */
#include "target/flags.h"
#include "type/family.h"

#include <string.h>
#if defined(__x86_64__)
#include <cpuid.h>
#endif

#define V4_FLAGS "-march=x86-64-v4 -mprefer-vector-width=512"
#define GCC      "x86_64-linux-gnu-gcc"
#define SHARED   .has_medium = true, .cc = GCC, HOST
#define V2       .vector_bytes = 16, .vector_regs = 16, SHARED
#define V3       .vector_bytes = 32, .vector_regs = 16, .fma = true, SHARED
#define V4       .vector_bytes = 64, .vector_regs = 32, .fma = true, SHARED

/* Of one processor the flags are its level and features, which gcc 12 and clang 19 both know. */
static const target targets[] = {
    {.name = "x86-64-v2", .cflags = "-march=x86-64-v2" QUIET, V2, .cpu = "x86-64-v2", .features = TARGET_MADD},
    {.name = "x86-64-v3", .cflags = "-march=x86-64-v3" FLOATS, V3, .cpu = "x86-64-v3", .features = TARGET_MADD,
     .integers = true},
    {.name = "x86-64-v3-vnni", .cflags = "-march=x86-64-v3 -mavxvnni" FLOATS, V3, .cpu = "x86-64-v3",
     .features = TARGET_MADD | TARGET_AVX_VNNI, .integers = true},
    {.name = "x86-64-v4", .cflags = V4_FLAGS FLOATS, V4, .cpu = "x86-64-v4", .features = TARGET_MADD,
     .integers = true},
    {.name = "x86-64-v4-vnni", .cflags = V4_FLAGS " -mavx512vnni" FLOATS, V4, .cpu = "x86-64-v4",
     .features = TARGET_MADD | TARGET_AVX512_VNNI, .integers = true},
    /* One processor's numbers; flags are its level and features, which gcc 12 and clang 19 both know. */
    {.name = "haswell", .cflags = "-march=x86-64-v3" FLOATS, V3, .cpu = "haswell", .features = TARGET_MADD,
     .integers = true},
    {.name = "znver2", .cflags = "-march=x86-64-v3" FLOATS, V3, .cpu = "znver2", .features = TARGET_MADD,
     .integers = true},
    {.name = "znver3", .cflags = "-march=x86-64-v3" FLOATS, V3, .cpu = "znver3", .features = TARGET_MADD,
     .integers = true},
    {.name = "znver4", .cflags = V4_FLAGS " -mavx512vnni" FLOATS, V4, .cpu = "znver4",
     .features = TARGET_MADD | TARGET_AVX512_VNNI, .integers = true},
    {.name = "znver5", .cflags = V4_FLAGS " -mavx512vnni" FLOATS, V4, .cpu = "znver5",
     .features = TARGET_MADD | TARGET_AVX512_VNNI, .integers = true},
    {.name = "skylake-avx512", .cflags = V4_FLAGS FLOATS, V4, .cpu = "skylake-avx512", .features = TARGET_MADD,
     .integers = true},
    {.name = "sapphirerapids", .cflags = V4_FLAGS " -mavx512vnni -mamx-tile -mamx-int8" FLOATS, V4,
     .cpu = "sapphirerapids", .features = TARGET_MADD | TARGET_AVX512_VNNI | TARGET_AMX, .integers = true},
};

static const cpu_model models[] = {
    /* Levels: what code for all machines of one can count on. Memory of v3 and v4 lies between their processors', where
     * the wrong form of a deep convolution costs as much on the slowest as on the fastest. */
    {"x86-64-v2", 2, 2, 4, 4, 16, KB(32), KB(256), MB(8), 12, 3, 8},
    {"x86-64-v3", 2, 2, 4, 4, 16, KB(32), KB(512), MB(16), 12, 5, 8},
    {"x86-64-v4", 2, 2, 4, 4, 32, KB(32), MB(1), MB(32), 12, 5.5, 8},
    /* AVX2: two units; the latency decides how many sums hide it. Far: Intel's manual gives 14 bytes a cycle sustained
     * (Broadwell), AMD's guides a path of 32, of which one core's reading gets two thirds. */
    {"haswell", 2, 2, 4, 5, 16, KB(32), KB(256), MB(8), 14, 4, 8},
    {"znver2", 2, 2, 4, 5, 16, KB(32), KB(512), MB(16), 20, 6, 8},
    {"znver3", 2, 2, 6, 4, 16, KB(32), KB(512), MB(32), 20, 6, 8},
    /* AVX-512 */
    {"znver4", 1, 1, 6, 4, 32, KB(32), MB(1), MB(32), 12, 3, 8},
    {"znver5", 2, 2, 8, 4, 32, KB(48), MB(1), MB(32), 12, 8, 8},
    {"skylake-avx512", 2, 2, 4, 4, 32, KB(32), MB(1), MB(16), 15, 3, 8},
    {"sapphirerapids", 2, 2, 6, 4, 32, KB(48), MB(2), MB(30), 8, 3, 8},
};

#define ONE_INSTRUCTION 1, 1, 0, 0, 1, 1, 0, false
#define STEPS           3, 5, 0, 1, 2, 6, 0, true /* vpmaddubsw twice, vpaddw, vpmaddwd, vpaddd; runs, sums, ones */
#define SIGNED_STEPS    3, 7, 4, 1, 4, 5, 0, true /* vpxor beside each vpmaddubsw; weights without signs, and signs */
#define MULTIPLY_ADD    1, 2, 0, 0, 1, 2, 0, false /* vpmaddwd, vpaddd */

static const target_dot dots[] = {
    {"dot_u8s8", TARGET_AVX512_VNNI, 64, 4, DT_U8, DT_I8, false, ONE_INSTRUCTION},
    {"dot_u8s8", TARGET_AVX_VNNI, 32, 4, DT_U8, DT_I8, false, ONE_INSTRUCTION},
    {"dot_s16s16", TARGET_AVX512_VNNI, 64, 2, DT_I16, DT_I16, false, ONE_INSTRUCTION},
    {"dot_s16s16", TARGET_AVX_VNNI, 32, 2, DT_I16, DT_I16, false, ONE_INSTRUCTION},
    {"dot_s16s16", TARGET_MADD, 16, 2, DT_I16, DT_I16, false, MULTIPLY_ADD},
    {"dot_u8s8_steps", TARGET_MADD, 32, 8, DT_U8, DT_I8, true, STEPS},
    {"dot_s8s8_steps", TARGET_MADD, 32, 8, DT_I8, DT_I8, true, SIGNED_STEPS},
};

#if defined(__x86_64__)
/* Not AMX, which has to be asked for: its kernel was run as a model of the instructions only. */
static const char *level(uint32_t *out_features)
{
    uint32_t word[4] = {0};
    *out_features |= TARGET_MADD;
    if (__get_cpuid_count(7, 1, &word[0], &word[1], &word[2], &word[3]) && (word[0] >> 4 & 1))
        *out_features |= TARGET_AVX_VNNI;
    *out_features |= __builtin_cpu_supports("avx512vnni") ? TARGET_AVX512_VNNI : 0u;
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512cd") &&
        __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl"))
        return "x86-64-v4";
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi2"))
        return "x86-64-v3";
    return __builtin_cpu_supports("sse4.2") && __builtin_cpu_supports("popcnt") ? "x86-64-v2" : NULL;
}

/* Who made it, the family, the first and the last model. */
static const struct cpu_id {
    char maker; /* 'A'MD, 'I'ntel */
    uint32_t family, first, last;
    const char *name;
} ids[] = {
    {'A', 0x17, 0x30, 0xff, "znver2"},      {'A', 0x19, 0x10, 0x1f, "znver4"},
    {'A', 0x19, 0x60, 0x7f, "znver4"},      {'A', 0x19, 0xa0, 0xaf, "znver4"},
    {'A', 0x19, 0x00, 0xff, "znver3"},      {'A', 0x1a, 0x00, 0xff, "znver5"},
    {'I', 6, 0x3c, 0x3d, "haswell"},        {'I', 6, 0x3f, 0x3f, "haswell"},
    {'I', 6, 0x45, 0x47, "haswell"},        {'I', 6, 0x4f, 0x4f, "haswell"},
    {'I', 6, 0x56, 0x56, "haswell"},        {'I', 6, 0x55, 0x55, "skylake-avx512"},
    {'I', 6, 0x8f, 0x8f, "sapphirerapids"}, {'I', 6, 0xcf, 0xcf, "sapphirerapids"},
};

static const char *model(void)
{
    uint32_t a, b, c, d, text[3];
    if (!__get_cpuid(0, &a, &text[0], &text[2], &text[1]) || !__get_cpuid(1, &a, &b, &c, &d))
        return NULL;
    const char maker = memcmp(text, "AuthenticAMD", 12) == 0 ? 'A' : memcmp(text, "GenuineIntel", 12) == 0 ? 'I' : '?';
    const uint32_t base = a >> 8 & 0xf, family = base == 0xf ? base + (a >> 20 & 0xff) : base;
    const uint32_t number = (a >> 4 & 0xf) | (a >> 12 & 0xf0);
    for (size_t i = 0; i < COUNT(ids); i++)
        if (ids[i].maker == maker && ids[i].family == family && ids[i].first <= number && number <= ids[i].last)
            return ids[i].name;
    return NULL;
}
#define MACHINE .usual = "x86-64-v3", .cc = GCC, .level = level, .model = model
#else
#define MACHINE .usual = NULL
#endif

const target_family target_family_x86 = {targets, COUNT(targets), models, COUNT(models), dots, COUNT(dots), MACHINE};
