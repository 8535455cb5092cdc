/* SPDX-License-Identifier: Apache-2.0 */
/* AArch64: its targets, processors, and products of small integers. */
#include "target/flags.h"
#include "type/family.h"

#if defined(__aarch64__) && defined(__linux__)
#include <sys/auxv.h>
#endif

#define GCC "aarch64-linux-gnu-gcc"
#define A64 .vector_bytes = 16, .vector_regs = 32, .fma = true, .reach_bits = 32 /* pages of 4 KB */, .cc = GCC, HOST

/* Of one processor the flags are its level and features, which gcc 12 and clang 19 both know. */
static const target targets[] = {
    {.name = "aarch64", .cflags = "-march=armv8-a" FLOATS, A64, .cpu = "aarch64",
     .integers = true, .features = TARGET_NEON},
    {.name = "aarch64-dotprod", .cflags = "-march=armv8.2-a+dotprod" FLOATS, A64, .cpu = "aarch64",
     .integers = true, .features = TARGET_NEON | TARGET_DOTPROD},
    {.name = "aarch64-i8mm", .cflags = "-march=armv8.2-a+dotprod+i8mm" FLOATS, A64, .cpu = "aarch64",
     .integers = true, .features = TARGET_NEON | TARGET_DOTPROD | TARGET_I8MM},
    {.name = "cortex-a53", .cflags = "-march=armv8-a" FLOATS, A64, .cpu = "cortex-a53",
     .integers = true, .features = TARGET_NEON},
    {.name = "cortex-a72", .cflags = "-march=armv8-a" FLOATS, A64, .cpu = "cortex-a72",
     .integers = true, .features = TARGET_NEON},
    {.name = "cortex-a76", .cflags = "-march=armv8.2-a+dotprod" FLOATS, A64, .cpu = "cortex-a76",
     .integers = true, .features = TARGET_NEON | TARGET_DOTPROD},
    {.name = "neoverse-n1", .cflags = "-march=armv8.2-a+dotprod" FLOATS, A64, .cpu = "neoverse-n1",
     .integers = true, .features = TARGET_NEON | TARGET_DOTPROD},
    {.name = "neoverse-v1", .cflags = "-march=armv8.2-a+dotprod+i8mm" FLOATS, A64, .cpu = "neoverse-v1",
     .integers = true, .features = TARGET_NEON | TARGET_DOTPROD | TARGET_I8MM},
};

/* NEON, 128 bits; in front what code for all machines can count on. */
static const cpu_model models[] = {
    {"aarch64", 2, 2, 4, 4, 32, KB(32), KB(512), MB(2), 12, 3, 8},
    {"cortex-a53", 1, 0.5, 2, 8, 32, KB(32), KB(128), KB(512), 4, 2, 8},
    {"cortex-a72", 1, 1, 3, 7, 32, KB(32), KB(256), MB(1), 8, 3, 8},
    {"cortex-a76", 2, 2, 4, 4, 32, KB(64), KB(512), MB(2), 12, 3, 8},
    {"neoverse-n1", 2, 2, 4, 4, 32, KB(64), MB(1), MB(32), 12, 3, 8},
    {"neoverse-v1", 4, 3, 8, 4, 32, KB(64), MB(1), MB(32), 12, 4, 8},
};

#define ONE_INSTRUCTION 1, 1, 0, 0, 1, 1, 0, false
#define TILES           1, 1, 0, 0.5, 1, 3, 2, false /* smmla, of eight products; data of two rows is put together */
#define PAIRS           2, 4, 0, 0, 1, 7, 0, false   /* smull and smull2, addp, sadalp; the data, products */
#define EXACT           2, 6, 0, 0, 1, 3, 0, false   /* smull and smull2, saddlp of both, addp, add */
#define UNSIGNED        2, 6, 2, 1, 2, 3, 0, false   /* the same by mul, of numbers that are widened */
#define LANES           2, 2, 2, 0, 2, 1, 0, false   /* smlal by each number of the data; uzp1, uzp2 of weights */

static const target_dot dots[] = {
    {"dot_tile_u8s8", TARGET_I8MM, 16, 8, DT_U8, DT_I8, false, TILES},
    {"dot_tile_s8s8", TARGET_I8MM, 16, 8, DT_I8, DT_I8, false, TILES},
    {"dot_u8s8", TARGET_I8MM, 16, 4, DT_U8, DT_I8, false, ONE_INSTRUCTION},
    {"dot_s8s8", TARGET_DOTPROD, 16, 4, DT_I8, DT_I8, false, ONE_INSTRUCTION},
    {"dot_s8s8_pairs", TARGET_NEON, 16, 4, DT_I8, DT_I8, true, PAIRS},
    {"dot_s8s8", TARGET_NEON, 16, 4, DT_I8, DT_I8, false, EXACT},
    {"dot_u8s8", TARGET_NEON, 16, 4, DT_U8, DT_I8, false, UNSIGNED},
    {"dot_s16s16", TARGET_NEON, 16, 2, DT_I16, DT_I16, false, LANES},
};

#if defined(__aarch64__)
static const char *level(uint32_t *out_features)
{
    *out_features |= TARGET_NEON;
#if defined(__linux__)
    *out_features |= getauxval(AT_HWCAP) >> 20 & 1 ? TARGET_DOTPROD : 0u; /* HWCAP_ASIMDDP */
    *out_features |= getauxval(AT_HWCAP2) >> 13 & 1 ? TARGET_I8MM : 0u;   /* HWCAP2_I8MM */
#endif
    return "aarch64";
}

#if defined(__linux__)
/* Parts of Arm, maker 0x41. */
static const struct cpu_id {
    uint32_t part;
    const char *name;
} ids[] = {
    {0xd03, "cortex-a53"},  {0xd08, "cortex-a72"},  {0xd0b, "cortex-a76"},
    {0xd0c, "neoverse-n1"}, {0xd40, "neoverse-v1"},
};
#endif

static const char *model(void)
{
#if defined(__linux__)
    uint64_t midr;
    if (!(getauxval(AT_HWCAP) >> 11 & 1)) /* HWCAP_CPUID: the kernel lets programs read it */
        return NULL;
    __asm__("mrs %0, MIDR_EL1" : "=r"(midr));
    for (size_t i = 0; i < COUNT(ids); i++)
        if (midr >> 24 == 0x41 && (midr >> 4 & 0xfff) == ids[i].part)
            return ids[i].name;
#endif
    return NULL;
}
#define MACHINE .usual = "aarch64", .cc = GCC, .level = level, .model = model
#else
#define MACHINE .usual = NULL
#endif

const target_family target_family_aarch64 = {targets, COUNT(targets), models, COUNT(models), dots, COUNT(dots),
                                             MACHINE};
