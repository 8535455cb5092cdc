/* SPDX-License-Identifier: Apache-2.0 */
/* The helper for sums of products of i8 by numbers of 4 bits, eight of which a word of each lane holds (the row
 * dot_s8u4 of tir/intrin_dot.c). A word is taken apart in registers: the low halves of its bytes are numbers 0 to 3,
 * the high ones 4 to 7, each below 16, so that sums of four products by i8 fit into 16 bits. */
#include "codegen/c/emit.h"

#define CODES 8

/* What a compiler for such a processor returns; low, high: the codes, x, y: the data they are multiplied by. */
typedef struct nibble_code {
    uint32_t lanes;
    const char *test, *body;
} nibble_code;

#define TWICE(dpbusd) "return " dpbusd "(" dpbusd "(acc, low, x), high, y);"
#define PAIRS(madd, maddubs) \
    "const half sums = (half)" maddubs "((byte)low, (byte)x) + (half)" maddubs "((byte)high, (byte)y);\n"  \
    "    return acc + " madd "(sums, (half){0} + 1);"
/* Even and odd bytes as numbers of 16 bits. */
#define HALVES(madd) \
    "acc += " madd "((half)low & 255, (half)((uhalf)x << 8) >> 8) + "                                      \
    madd "((half)((uhalf)low >> 8), (half)x >> 8);\n"                                                     \
    "    return acc + " madd "((half)high & 255, (half)((uhalf)y << 8) >> 8) + "                                       \
    madd "((half)((uhalf)high >> 8), (half)y >> 8);"
#define ARM_DOT                                                                                  \
    "__asm__(\"sdot %0.4s, %1.16b, %2.16b\" : \"+w\"(acc) : \"w\"(low), \"w\"(x));\n"           \
    "    __asm__(\"sdot %0.4s, %1.16b, %2.16b\" : \"+w\"(acc) : \"w\"(high), \"w\"(y));\n    return acc;"
#define NEON                                                                                     \
    "half even, odd;\n"                                                                         \
    "    __asm__(\"smull %0.8h, %1.8b, %2.8b\" : \"=w\"(even) : \"w\"(low), \"w\"(x));\n"        \
    "    __asm__(\"smull2 %0.8h, %1.16b, %2.16b\" : \"=w\"(odd) : \"w\"(low), \"w\"(x));\n"      \
    "    __asm__(\"smlal %0.8h, %1.8b, %2.8b\" : \"+w\"(even) : \"w\"(high), \"w\"(y));\n"       \
    "    __asm__(\"smlal2 %0.8h, %1.16b, %2.16b\" : \"+w\"(odd) : \"w\"(high), \"w\"(y));\n"     \
    "    __asm__(\"addp %0.8h, %0.8h, %1.8h\" : \"+w\"(even) : \"w\"(odd));\n"                   \
    "    __asm__(\"sadalp %0.4s, %1.8h\" : \"+w\"(acc) : \"w\"(even));\n    return acc;"

static const nibble_code codes[] = {
    {16, "defined(__AVX512VNNI__)", TWICE("LATHE_DPBUSD512")},
    {16, "defined(__AVX512BW__)", PAIRS("LATHE_MADD512", "LATHE_MADDUBS512")},
    {8, "defined(__AVXVNNI__) || (defined(__AVX512VNNI__) && defined(__AVX512VL__))", TWICE("LATHE_DPBUSD256")},
    {8, "defined(__AVX2__)", PAIRS("__builtin_ia32_pmaddwd256", "__builtin_ia32_pmaddubsw256")},
    {4, "defined(__SSSE3__)", PAIRS("__builtin_ia32_pmaddwd128", "__builtin_ia32_pmaddubsw128")},
    {4, "defined(__SSE2__)", HALVES("__builtin_ia32_pmaddwd128")},
    {4, "defined(__AARCH64EL__) && defined(__ARM_FEATURE_DOTPROD)", ARM_DOT},
    {4, "defined(__AARCH64EL__)", NEON},
};

static const char operands_text[] =
    "    const word mask = (word){0} + 252645135; /* 0x0f0f0f0f */\n"
    "    const word low = w & mask, high = (word)((uword)w >> 4) & mask;\n"
    "    const word x = *(const lathe_word *)(const void *)a - (word){0};\n"
    "    const word y = *(const lathe_word *)(const void *)(a + 4) - (word){0};\n";

/* Vectors without such an instruction: each number by itself. */
static void write_lanes(writer *w)
{
    w_str(w, "    uword sum = (uword)acc;\n");
    for (uint32_t k = 0; k < CODES; k++)
        w_fmt(w, "    sum += ((uword)w >> %u & 15) * (uint32_t)(int32_t)a[%u];\n", 8 * (k % 4) + 4 * (k / 4), k);
    w_str(w, "    return (word)sum;\n");
}

void needs_write_dot_nibbles(arena *a, writer *w, const c_needs *all, const c_need *n)
{
    const char *v = needs_vector_name(a, DT_I32, n->lanes);
    const uint32_t bytes = n->lanes * 4;
    static const char *const views[] = {"int16_t half", "uint16_t uhalf", "char byte", "int32_t word",
                                        "uint32_t uword"};
    bool any = false;
    dot_write_names(w, all, n);
    w_fmt(w, "LATHE_INLINE %s %s_nibbles(%s acc, const int8_t *a, const int32_t *b)\n{\n", v, v, v);
    w_str(w, "#if LATHE_VECTORS\n");
    for (size_t i = 0; i < sizeof views / sizeof *views; i++)
        w_fmt(w, "    typedef %s __attribute__((vector_size(%u), unused));\n", views[i], bytes);
    w_fmt(w, "    typedef int32_t weights __attribute__((vector_size(%u), aligned(4), may_alias));\n", bytes);
    w_str(w, "    const word w = *(const weights *)(const void *)b;\n");
    for (size_t i = 0; i < sizeof codes / sizeof *codes; i++) {
        if (codes[i].lanes != n->lanes)
            continue;
        w_fmt(w, "#%s %s\n%s    %s\n", any ? "elif" : "if", codes[i].test, operands_text, codes[i].body);
        any = true;
    }
    w_str(w, any ? "#else\n" : "");
    write_lanes(w);
    w_str(w, any ? "#endif\n#else\n" : "#else\n");
    w_str(w, "    int i, k;\n");
    w_fmt(w, "    for (i = 0; i < %u; i++)\n        for (k = 0; k < %d; k++)\n", n->lanes, CODES);
    w_str(w, "            LATHE_LANE(acc, i) += a[k] * (int32_t)((uint32_t)b[i] >> (8 * (k % 4) + 4 * (k / 4)) & 15);\n"
             "    return acc;\n#endif\n}\n\n");
}
