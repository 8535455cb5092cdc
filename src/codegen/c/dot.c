/* SPDX-License-Identifier: Apache-2.0 */
/* The helpers for sums of products of bytes, or of 16 bits, in lanes (tir/intrin_dot.c): the instruction of the
 * processor, by the names that gcc and clang give it, an exact form for other vectors, and plain C. */
#include "codegen/c/emit.h"

static uint32_t granule_of(dtype dt)
{
    return 32 / dtype_bits(dt);
}

/* One name for what gcc and clang call differently. */
static const char names_text[] =
    "typedef int32_t lathe_word __attribute__((may_alias, aligned(1)));\n"
    "#if defined(__clang__)\n"
    "#define LATHE_DPBUSD512   __builtin_ia32_vpdpbusd512\n"
    "#define LATHE_DPBUSD256   __builtin_ia32_vpdpbusd256\n"
    "#define LATHE_DPWSSD512   __builtin_ia32_vpdpwssd512\n"
    "#define LATHE_DPWSSD256   __builtin_ia32_vpdpwssd256\n"
    "#define LATHE_MADD512     __builtin_ia32_pmaddwd512\n"
    "#define LATHE_MADDUBS512  __builtin_ia32_pmaddubsw512\n"
    "#if __has_builtin(__builtin_elementwise_abs)\n"
    "typedef signed char lathe_i8x64 __attribute__((vector_size(64)));\n"
    "typedef signed char lathe_i8x32 __attribute__((vector_size(32)));\n"
    "typedef signed char lathe_i8x16 __attribute__((vector_size(16)));\n"
    "#define LATHE_ABS512(a)   __builtin_elementwise_abs((lathe_i8x64)(a))\n"
    "#define LATHE_ABS256(a)   __builtin_elementwise_abs((lathe_i8x32)(a))\n"
    "#define LATHE_ABS128(a)   __builtin_elementwise_abs((lathe_i8x16)(a))\n"
    "#else\n"
    "#define LATHE_ABS512      __builtin_ia32_pabsb512\n"
    "#define LATHE_ABS256      __builtin_ia32_pabsb256\n"
    "#define LATHE_ABS128      __builtin_ia32_pabsb128\n"
    "#endif\n"
    "#else\n"
    "#define LATHE_ABS512(a)   __builtin_ia32_pabsb512_mask((a), (a), -1LL)\n"
    "#define LATHE_ABS256      __builtin_ia32_pabsb256\n"
    "#define LATHE_ABS128      __builtin_ia32_pabsb128\n"
    "#define LATHE_DPBUSD512   __builtin_ia32_vpdpbusd_v16si\n"
    "#define LATHE_DPBUSD256   __builtin_ia32_vpdpbusd_v8si\n"
    "#define LATHE_DPWSSD512   __builtin_ia32_vpdpwssd_v16si\n"
    "#define LATHE_DPWSSD256   __builtin_ia32_vpdpwssd_v8si\n"
    "#define LATHE_MADD512(a, b)    __builtin_ia32_pmaddwd512_mask((a), (b), (i32x16){0}, 0xffff)\n"
    "#define LATHE_MADDUBS512(a, b) __builtin_ia32_pmaddubsw512_mask((a), (b), (lathe_i16x32){0}, 0xffffffffu)\n"
    "#endif\n"
    "typedef int16_t lathe_i16x32 __attribute__((vector_size(64)));\n\n";

/* What a compiler for such a processor returns. x: the word of a in all lanes, w: the weights, both as lanes of i32;
 * half, uhalf, byte: vectors of as many bytes. */
typedef struct dot_code {
    uint32_t lanes;
    dtype a;
    tir_op op;
    const char *test, *body;
} dot_code;

/* Bytes as numbers of 16 bits, the even and the odd ones, and their products summed in twos. gcc would make the
 * products of a whole tile before it adds them, and store them for want of registers: each sum is made where it stands.
 */
#define HERE "__asm__(\"\" : \"+v\"(acc));\n"
#define HALVES(madd)                                                                                                 \
    "const half even = (half)((uhalf)w << 8) >> 8, odd = (half)w >> 8;\n"                                            \
    "    acc += " madd "((half)((uhalf)x & 255), even);\n    " HERE                                                  \
    "    acc += " madd "((half)((uhalf)x >> 8), odd);\n    " HERE "    return acc;"
/* The same of signed data. */
#define SIGNED_HALVES(madd)                                                                                          \
    "const half even = (half)((uhalf)w << 8) >> 8, odd = (half)w >> 8;\n"                                            \
    "    acc += " madd "((half)((uhalf)x << 8) >> 8, even);\n    " HERE                                              \
    "    acc += " madd "((half)x >> 8, odd);\n    " HERE "    return acc;"
/* Signed data is 128 more as unsigned: 128 times the sum of the weights is taken off. */
#define SIGNED_DPBUSD(dpbusd)                                                                                        \
    "const word sign = (word){0} - 2139062144; /* 0x80808080 */\n"                                                   \
    "    return " dpbusd "(acc - " dpbusd "((word){0}, sign, w), x ^ sign, w);"
#define PAIRS(madd, maddubs, ones)                                                                                   \
    "acc += " madd "((half)" maddubs "((byte)x, (byte)w), " ones ");\n    " HERE "    return acc;"
/* Sums wrap. */
#define MADD(madd) "acc = (word)((uword)acc + (uword)" madd "((half)x, (half)w));\n    " HERE "    return acc;"
#define ONES "((half){0} + 1)"
#define ARM_DOT(name) "__asm__(\"" name " %0.4s, %1.16b, %2.16b\" : \"+w\"(acc) : \"w\"(x), \"w\"(w));\n    return acc;"

/* Products as numbers of 16 bits, summed in twos: by the weights of two lanes, and of two more. */
#define NEON_PRODUCTS \
    "half even, odd;\n" \
    "    __asm__(\"smull %0.8h, %1.8b, %2.8b\" : \"=w\"(even) : \"w\"(x), \"w\"(w));\n" \
    "    __asm__(\"smull2 %0.8h, %1.16b, %2.16b\" : \"=w\"(odd) : \"w\"(x), \"w\"(w));\n    "
/* Sums of two that fit into 16 bits. */
#define NEON_PAIRS \
    NEON_PRODUCTS "__asm__(\"addp %0.8h, %0.8h, %1.8h\" : \"+w\"(even) : \"w\"(odd));\n" \
    "    __asm__(\"sadalp %0.4s, %1.8h\" : \"+w\"(acc) : \"w\"(even));\n    return acc;"
#define NEON_WIDE \
    "word low, high;\n" \
    "    __asm__(\"saddlp %0.4s, %1.8h\" : \"=w\"(low) : \"w\"(even));\n" \
    "    __asm__(\"saddlp %0.4s, %1.8h\" : \"=w\"(high) : \"w\"(odd));\n" \
    "    __asm__(\"addp %0.4s, %0.4s, %1.4s\" : \"+w\"(low) : \"w\"(high));\n" \
    "    return (word)((uword)acc + (uword)low);"
/* There is no product of u8 by i8: both are widened, and each product has its 16 bits. */
#define NEON_UNSIGNED \
    "half wide, even, odd;\n" \
    "    __asm__(\"uxtl %0.8h, %1.8b\" : \"=w\"(wide) : \"w\"(x));\n" \
    "    __asm__(\"sxtl %0.8h, %1.8b\" : \"=w\"(even) : \"w\"(w));\n" \
    "    __asm__(\"sxtl2 %0.8h, %1.16b\" : \"=w\"(odd) : \"w\"(w));\n" \
    "    even *= wide;\n    odd *= wide;\n    " NEON_WIDE

/* Products by one number of the data, in place: gcc would else load the data of a whole tile first, and store it for
 * want of registers. The weights of lanes are taken apart once for the rows of a tile. bytes: of the register, of
 * which clang takes whole ones, where gcc would clear the rest. */
#define NEON_LANES(bytes) \
    "typedef int32_t one __attribute__((vector_size(" bytes ")));\n" \
    "    const one data = {*(const lathe_word *)(const void *)a};\n" \
    "    half even, odd;\n" \
    "    (void)x;\n" \
    "    __asm__(\"uzp1 %0.8h, %1.8h, %1.8h\" : \"=w\"(even) : \"w\"(w));\n" \
    "    __asm__(\"uzp2 %0.8h, %1.8h, %1.8h\" : \"=w\"(odd) : \"w\"(w));\n" \
    "    __asm__ __volatile__(\"smlal %0.4s, %1.4h, %2.h[0]\" : \"+w\"(acc) : \"w\"(even), \"x\"(data));\n" \
    "    __asm__ __volatile__(\"smlal %0.4s, %1.4h, %2.h[1]\" : \"+w\"(acc) : \"w\"(odd), \"x\"(data));\n" \
    "    return acc;"

#define VNNI256 "defined(__AVXVNNI__) || (defined(__AVX512VNNI__) && defined(__AVX512VL__))"

static const dot_code codes[] = {
    {16, DT_U8, TIR_ADD, "defined(__AVX512VNNI__)", "return LATHE_DPBUSD512(acc, x, w);"},
    {16, DT_U8, TIR_ADD, "defined(__AVX512BW__)", HALVES("LATHE_MADD512")},
    {8, DT_U8, TIR_ADD, VNNI256, "return LATHE_DPBUSD256(acc, x, w);"},
    {8, DT_U8, TIR_ADD, "defined(__AVX2__)", HALVES("__builtin_ia32_pmaddwd256")},
    {4, DT_U8, TIR_ADD, "defined(__SSE2__)", HALVES("__builtin_ia32_pmaddwd128")},
    {4, DT_U8, TIR_ADD, "defined(__aarch64__) && defined(__ARM_FEATURE_MATMUL_INT8)", ARM_DOT("usdot")},
    {4, DT_U8, TIR_ADD, "defined(__aarch64__)", NEON_UNSIGNED},
    {16, DT_I8, TIR_ADD, "defined(__AVX512VNNI__)", SIGNED_DPBUSD("LATHE_DPBUSD512")},
    {16, DT_I8, TIR_ADD, "defined(__AVX512BW__)", SIGNED_HALVES("LATHE_MADD512")},
    {8, DT_I8, TIR_ADD, VNNI256, SIGNED_DPBUSD("LATHE_DPBUSD256")},
    {8, DT_I8, TIR_ADD, "defined(__AVX2__)", SIGNED_HALVES("__builtin_ia32_pmaddwd256")},
    {4, DT_I8, TIR_ADD, "defined(__SSE2__)", SIGNED_HALVES("__builtin_ia32_pmaddwd128")},
    {4, DT_I8, TIR_ADD, "defined(__aarch64__) && defined(__ARM_FEATURE_DOTPROD)", ARM_DOT("sdot")},
    {4, DT_I8, TIR_ADD, "defined(__aarch64__)", NEON_PRODUCTS NEON_WIDE},
    {4, DT_I8, TIR_MIN, "defined(__aarch64__)", NEON_PAIRS},
    {16, DT_I16, TIR_ADD, "defined(__AVX512VNNI__)", "return LATHE_DPWSSD512(acc, x, w);"},
    {16, DT_I16, TIR_ADD, "defined(__AVX512BW__)", MADD("LATHE_MADD512")},
    {8, DT_I16, TIR_ADD, VNNI256, "return LATHE_DPWSSD256(acc, x, w);"},
    {8, DT_I16, TIR_ADD, "defined(__AVX2__)", MADD("__builtin_ia32_pmaddwd256")},
    {4, DT_I16, TIR_ADD, "defined(__SSE2__)", MADD("__builtin_ia32_pmaddwd128")},
    {4, DT_I16, TIR_ADD, "defined(__aarch64__) && defined(__clang__)", NEON_LANES("16")},
    {4, DT_I16, TIR_ADD, "defined(__aarch64__)", NEON_LANES("8")},
    {16, DT_U8, TIR_MIN, "defined(__AVX512BW__)", PAIRS("LATHE_MADD512", "LATHE_MADDUBS512", ONES)},
    {8, DT_U8, TIR_MIN, "defined(__AVX2__)",
     PAIRS("__builtin_ia32_pmaddwd256", "__builtin_ia32_pmaddubsw256", ONES)},
    {4, DT_U8, TIR_MIN, "defined(__SSSE3__)",
     PAIRS("__builtin_ia32_pmaddwd128", "__builtin_ia32_pmaddubsw128", ONES)},
};

/* For vectors without such an instruction: each number of a lane by itself. */
static void write_lanes(writer *w, const c_need *n)
{
    const uint32_t granule = granule_of(n->dt), bits = 32 / granule;
    const char *x = n->dt == DT_U8 ? "((uword)x << %u >> %u)" : "(uword)((word)((uword)x << %u) >> %u)";
    w_str(w, "    uword sum = (uword)acc;\n");
    for (uint32_t k = 0; k < granule; k++) {
        w_str(w, "    sum += ");
        w_fmt(w, x, 32 - bits - bits * k, 32 - bits);
        w_fmt(w, " * (uword)((word)((uword)w << %u) >> %u);\n", 32 - bits - bits * k, 32 - bits);
    }
    w_str(w, "    return (word)sum;\n");
}

/* RISC-V multiplies a vector by a number that stands in a register of the other kind. */
static void write_scalar_lanes(writer *w, const c_need *n)
{
    const uint32_t granule = granule_of(n->dt), bits = 32 / granule;
    w_str(w, "    uword sum = (uword)acc;\n");
    for (uint32_t k = 0; k < granule; k++)
        w_fmt(w, "    sum += (uword)((word)((uword)w << %u) >> %u) * (uint32_t)(int32_t)a[%u];\n",
              32 - bits - bits * k, 32 - bits, k);
    w_str(w, "    return (word)sum;\n");
}

static void write_plain(writer *w, const c_need *n)
{
    const int granule = (int)granule_of(n->dt);
    w_str(w, "    int i, k;\n");
    w_fmt(w, "    for (i = 0; i < %u; i++)\n", n->lanes);
    if (n->op == TIR_MIN) {
        w_fmt(w, "        for (k = 0; k < %d; k += 2) {\n", granule);
        w_fmt(w, "            const int32_t s = a[k] * b[%d * i + k] + a[k + 1] * b[%d * i + k + 1];\n", granule,
              granule);
        w_str(w, n->dt == DT_I8 ? "            LATHE_LANE(acc, i) += (int16_t)s;\n        }\n"
                                : "            LATHE_LANE(acc, i) += s > 32767 ? 32767 : s < -32768 ? -32768 : s;\n"
                                  "        }\n");
    } else {
        w_fmt(w, "        for (k = 0; k < %d; k++)\n", granule);
        w_str(w, "            LATHE_LANE(acc, i) = (int32_t)((uint32_t)LATHE_LANE(acc, i) + (uint32_t)(a[k] * ");
        w_fmt(w, "b[%d * i + k]));\n", granule);
    }
    w_str(w, "    return acc;\n");
}

static void write_plain_words(writer *w, const c_need *n)
{
    w_str(w, "    int i;\n");
    w_fmt(w, "    for (i = 0; i < %u; i++)\n", n->lanes);
    w_str(w, "        LATHE_LANE(acc, i) = (int32_t)((uint32_t)LATHE_LANE(acc, i) +\n"
             "            (uint32_t)((int16_t)LATHE_LANE(a, i) * (int16_t)LATHE_LANE(b, i)) +\n"
             "            (uint32_t)((LATHE_LANE(a, i) >> 16) * (LATHE_LANE(b, i) >> 16)));\n"
             "    return acc;\n");
}

void dot_write_names(writer *w, const c_needs *n, const c_need *need)
{
    const c_need *x = n->list.data;
    while (x->kind != NEED_DOT && x->kind != NEED_DOT_STEPS && x->kind != NEED_DOT_NIBBLES)
        x++;
    if (x == need)
        w_fmt(w, "#if LATHE_VECTORS\n%s#endif\n", names_text);
}

void needs_write_dot(arena *a, writer *w, const c_needs *all, const c_need *n)
{
    const char *v = needs_vector_name(a, DT_I32, n->lanes), *a_type = dtype_c_name(n->dt);
    uint32_t bytes = n->lanes * 4;
    static const char *const views[] = {"int16_t half", "uint16_t uhalf", "char byte", "int32_t word",
                                        "uint32_t uword"};
    bool any = false;
    const bool words = n->op == TIR_SHR;
    dot_write_names(w, all, n);
    if (words)
        w_fmt(w, "LATHE_INLINE %s %s_dot_words(%s acc, %s a, %s b)\n{\n", v, v, v, v, v);
    else
        w_fmt(w, "LATHE_INLINE %s %s_%s_%s(%s acc, const %s *a, const %s *b)\n{\n", v, v,
              n->op == TIR_MIN ? "pairs" : "dot", dtype_name(n->dt), v, a_type, dtype_c_name(n->to));
    w_str(w, "#if LATHE_VECTORS\n");
    for (size_t i = 0; i < sizeof views / sizeof *views; i++)
        w_fmt(w, "    typedef %s __attribute__((vector_size(%u), unused));\n", views[i], bytes);
    if (words) {
        w_str(w, "    const word w = b, x = a;\n");
    } else {
        w_fmt(w, "    typedef int32_t weights __attribute__((vector_size(%u), aligned(1), may_alias));\n", bytes);
        w_str(w, "    const word w = *(const weights *)(const void *)b;\n");
        w_str(w, "    const word x = *(const lathe_word *)(const void *)a - (word){0};\n");
    }
    for (size_t i = 0; i < sizeof codes / sizeof *codes; i++) {
        const dot_code *k = &codes[i];
        if (k->lanes != n->lanes || k->a != n->dt || k->op != (words ? TIR_ADD : n->op))
            continue;
        w_fmt(w, "#%s %s\n    %s\n", any ? "elif" : "if", k->test, k->body);
        any = true;
    }
    if (all->riscv && n->op == TIR_ADD) {
        w_fmt(w, "#%s defined(__riscv)\n    (void)x;\n", any ? "elif" : "if");
        write_scalar_lanes(w, n);
        any = true;
    }
    if (any)
        w_str(w, "#else\n");
    if (n->op == TIR_MIN)
        write_plain(w, n);
    else
        write_lanes(w, n);
    w_str(w, any ? "#endif\n#else\n" : "#else\n");
    if (words)
        write_plain_words(w, n);
    else
        write_plain(w, n);
    w_str(w, "#endif\n}\n\n");
}
