/* SPDX-License-Identifier: Apache-2.0 */
/* What C compilers are not to contract, and what has to be one step, whatever -ffp-contract says: products that are
 * rounded by themselves (one alone: kernel/round/apart.inc), and fused multiply-adds. __builtin_assoc_barrier of gcc
 * is lost where a loop becomes vectors, __arithmetic_fence of clang does nothing without -ffast-math: assembly of no
 * instruction stands around a product. */
#include "codegen/c/emit.h"

/* x * y + z rounded once, whatever the compiler's flags say about contraction. */
const char *contract_fused(arena *a, const c_need *n, const char *v)
{
    const uint32_t bytes = needs_vector_bytes(n->dt, n->lanes);
    const char *kind = n->dt == DT_F32 ? "ps" : "pd", *x86 = NULL, *neon = "", *one = n->dt == DT_F32 ? "f" : "";
    if (bytes == 64)
        x86 = arena_printf(a, "__builtin_ia32_vfmadd%s512_mask(x, y, z, %s, 4)", kind,
                           n->lanes == 16 ? "65535" : "255");
    else if (bytes == 32 || bytes == 16)
        x86 = arena_printf(a, "__builtin_ia32_vfmadd%s%s(x, y, z)", kind, bytes == 32 ? "256" : "");
    if (bytes == 16)
        neon = arena_printf(a, "#elif defined(__aarch64__)\n"
                               "    __asm__(\"fmla %%0.%s, %%1.%s, %%2.%s\" : \"+w\"(z) : \"w\"(x), \"w\"(y));\n"
                               "    return z;\n", n->dt == DT_F32 ? "4s" : "2d", n->dt == DT_F32 ? "4s" : "2d",
                            n->dt == DT_F32 ? "4s" : "2d");
    if (x86)
        neon = arena_printf(a, "#elif defined(%s)\n    return %s;\n%s", bytes == 64 ? "__AVX512F__" : "__FMA__", x86,
                            neon);
    return arena_printf(a,
                        "\n#if defined(__clang__)\n    return __builtin_elementwise_fma(x, y, z);\n%s#else\n"
                        "    int i;\n    for (i = 0; i < %u; i++)\n        z[i] = __builtin_fma%s(x[i], y[i], z[i]);\n"
                        "    return (%s)z;\n#endif",
                        neon, n->lanes, one, v);
}

/* A register whose origin the compiler does not know; where vectors have no letter of their own, an unknown zero in
 * each lane. */
const char *contract_apart(arena *a, const c_need *n, const char *v)
{
    const uint32_t bytes = needs_vector_bytes(n->dt, n->lanes);
    const char *word = n->dt == DT_F32 ? "uint32_t" : "uint64_t", *by_letter = "#if 0\n";
    const char *x86 = bytes == 16 ? "__SSE2__" : bytes == 32 ? "__AVX__" : "__AVX512F__";
    if (bytes == 16 || bytes == 32 || bytes == 64)
        by_letter = arena_printf(a, "#if defined(%s)\n    __asm__(\"\" : \"+v\"(x));\n    return x;\n", x86);
    if (bytes == 16)
        by_letter = arena_printf(a, "%s#elif defined(__aarch64__) || defined(__ARM_FEATURE_MVE)\n"
                                    "    __asm__(\"\" : \"+w\"(x));\n    return x;\n", by_letter);
    return arena_printf(a, "\n%s#else\n    typedef %s mask __attribute__((vector_size(%u)));\n    %s zero = 0;\n"
                           "    __asm__(\"\" : \"+r\"(zero));\n    return (%s)((mask)x | zero);\n#endif",
                        by_letter, word, bytes, word, v);
}
