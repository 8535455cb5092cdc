/* SPDX-License-Identifier: Apache-2.0 */
/* C of what expr.c makes of quantised arithmetic for small processors: rounding to codes, and sums of products with one
 * rounding, by the instructions of their floating-point unit where they have one. */
#include "codegen/c/emit.h"

void small_write_setup(writer *w)
{
    w_str(w, "#if defined(__GNUC__) && defined(__ARM_FP) && (__ARM_FP & 4) != 0 && defined(__ARM_FEATURE_DSP) && \\\n"
             "    defined(__ARM_FEATURE_FMA) && defined(__thumb2__)\n"
             "#define LATHE_SMALL_FPU 1 /* Cortex-M: VCVTR, VFMA, QADD, SSAT */\n"
             "#else\n#define LATHE_SMALL_FPU 0\n#endif\n"
             "#if defined(__GNUC__)\n#define LATHE_APART __attribute__((noinline))\n"
             "#else\n#define LATHE_APART\n#endif\n\n");
}

/* Behind VCVTR, which saturates as do the two here. */
static void write_saturation(writer *w, dtype to)
{
    w_fmt(w,
          "    __asm__(\"vcvtr.s32.f32 %%0, %%1\" : \"=t\"(q) : \"t\"(v));\n"
          "    __asm__(\"qadd %%0, %%1, %%2\" : \"=r\"(q) : \"r\"(q), \"r\"(zero));\n"
          "    __asm__(\"%ssat %%0, #%u, %%1\" : \"=r\"(q) : \"r\"(q));\n"
          "    return (%s)q;\n",
          dtype_is_signed(to) ? "s" : "u", (unsigned)dtype_bits(to), dtype_c_name(to));
}

void small_write_rounded(writer *w, dtype to)
{
    const char *ctype = dtype_c_name(to);
    long long least = dtype_min_int(to), most = dtype_max_int(to);
    w_fmt(w,
          "/* To the nearest integer, ties to even, plus zero, to the nearest that there is; 0 of a NaN. */\n"
          "static inline %s lathe_rounded_%s(float v, int32_t zero)\n{\n"
          "#if LATHE_SMALL_FPU\n"
          "    int32_t q;\n"
          "    if (v != v)\n        return 0;\n",
          ctype, dtype_name(to));
    write_saturation(w, to);
    w_fmt(w,
          "#else\n"
          "    v = rintf(v) + (float)zero;\n"
          "    if (v != v)\n        return 0;\n"
          "    return (%s)(v < %lld.0f ? %lld.0f : v > %lld.0f ? %lld.0f : v);\n"
          "#endif\n}\n\n",
          ctype, least, least, most, most);
}

/* Without a floating-point unit in integers: k is a multiplier of 31 bits and a shift, and the fraction of 32 bits
 * below the product decides, unless it is so near to 1/2 that the two roundings of binary32 may go the other way; then,
 * and for scales that are large, tiny or no numbers, the float formula does. */
void small_write_scaled(writer *w, dtype to)
{
    const char *ctype = dtype_c_name(to), *name = dtype_name(to);
    w_fmt(w,
          "#if !LATHE_SMALL_FPU\n"
          "static LATHE_APART %s lathe_scaled_%s_slow(int32_t acc, float k, int32_t zero)\n{\n"
          "    return lathe_rounded_%s((float)acc * k, zero);\n}\n#endif\n\n",
          ctype, name, name);
    w_fmt(w,
          "/* acc * k, both as binary32, rounded as above. */\n"
          "static inline %s lathe_scaled_%s(int32_t acc, float k, int32_t zero)\n{\n"
          "    int32_t q;\n"
          "#if LATHE_SMALL_FPU\n"
          "    const float v = (float)acc * k;\n",
          ctype, name);
    write_saturation(w, to);
    w_fmt(w,
          "#else\n"
          "    union {\n        float f;\n        uint32_t u;\n    } bits;\n"
          "    bits.f = k;\n"
          "    const uint32_t shift = 125u - (bits.u >> 23);\n"
          "    const int32_t multiplier = (int32_t)(((bits.u << 7) & 0x3fffff80u) | 0x40000000u);\n"
          "    if (shift < 1u || shift > 31u)\n        return lathe_scaled_%s_slow(acc, k, zero);\n"
          "    const uint64_t product = (uint64_t)((int64_t)acc * multiplier);\n"
          "    const uint32_t high = (uint32_t)(product >> 32);\n"
          "    const uint32_t fraction = (high << (32u - shift)) | ((uint32_t)product >> shift);\n"
          "    if (fraction - 0x7ffe0000u <= 0x40000u)\n        return lathe_scaled_%s_slow(acc, k, zero);\n"
          "    q = ((int32_t)high >> shift) + (int32_t)(fraction >> 31) + zero;\n"
          "    return (%s)(q < %lld ? %lld : q > %lld ? %lld : q);\n"
          "#endif\n}\n\n",
          name, name, ctype, (long long)dtype_min_int(to), (long long)dtype_min_int(to), (long long)dtype_max_int(to),
          (long long)dtype_max_int(to));
}

/* The sums and what becomes of them travel in pairs between the two sets of registers. */
void small_write_two_scaled(writer *w, dtype to)
{
    const char *ctype = dtype_c_name(to), *name = dtype_name(to), *saturate = to == DT_I8 ? "ssat" : "usat";
    w_fmt(w,
          "static inline void lathe_scaled_two_%s(%s *y, %s *z, int32_t a, float k, int32_t b, float l,\n"
          "                                       int32_t zero)\n{\n"
          "#if LATHE_SMALL_FPU && !defined(__clang__) /* gcc's names for the halves of a pair: %%2 and %%p2 */\n"
          "    double pair;\n"
          "    __asm__(\"vmov %%P2, %%0, %%1\\n vcvt.f32.s32 %%2, %%2\\n vcvt.f32.s32 %%p2, %%p2\\n\"\n"
          "            \"vmul.f32 %%2, %%2, %%3\\n vmul.f32 %%p2, %%p2, %%4\\n\"\n"
          "            \"vcvtr.s32.f32 %%2, %%2\\n vcvtr.s32.f32 %%p2, %%p2\\n vmov %%0, %%1, %%P2\"\n"
          "            : \"+r\"(a), \"+r\"(b), \"=&w\"(pair)\n"
          "            : \"t\"(k), \"t\"(l));\n"
          "    __asm__(\"qadd %%0, %%1, %%2\" : \"=r\"(a) : \"r\"(a), \"r\"(zero));\n"
          "    __asm__(\"qadd %%0, %%1, %%2\" : \"=r\"(b) : \"r\"(b), \"r\"(zero));\n"
          "    __asm__(\"%s %%0, #8, %%1\" : \"=r\"(a) : \"r\"(a));\n"
          "    __asm__(\"%s %%0, #8, %%1\" : \"=r\"(b) : \"r\"(b));\n"
          "    *y = (%s)a;\n    *z = (%s)b;\n"
          "#else\n"
          "    *y = lathe_scaled_%s(a, k, zero);\n    *z = lathe_scaled_%s(b, l, zero);\n"
          "#endif\n}\n\n",
          name, ctype, ctype, saturate, saturate, ctype, ctype, name, name);
}

void small_write_single(writer *w, bool sum)
{
    if (sum)
        w_str(w, "/* a * b + s, rounded once. */\n"
                 "static inline float lathe_fma_once(float a, float b, float s)\n{\n"
                 "#if LATHE_SMALL_FPU\n"
                 "    __asm__(\"vfma.f32 %0, %1, %2\" : \"+t\"(s) : \"t\"(a), \"t\"(b));\n"
                 "    return s;\n"
                 "#else\n    return (float)((double)a * (double)b + (double)s);\n#endif\n}\n\n");
    else
        w_str(w, "/* a * b, rounded once: no part of a sum. */\n"
                 "static inline float lathe_product_once(float a, float b)\n{\n"
                 "#if LATHE_SMALL_FPU\n"
                 "    float p = a * b;\n"
                 "    __asm__(\"\" : \"+t\"(p));\n"
                 "    return p;\n"
                 "#else\n    return (float)((double)a * (double)b);\n#endif\n}\n\n");
}

/* eval_scaled (tir/eval.h), by products of 32 bits; a function, for it is called once in a thousand times. */
void small_write_exact(writer *w)
{
    w_str(w, "/* x * k, k the bits of a double above 0, rounded exactly, ties to even, within 2^30. rough: how\n"
             " * far k is from the factor that it stands for. */\n"
             "#if defined(__GNUC__)\n__attribute__((noinline, unused))\n#endif\n");
    w_str(w, "static int64_t lathe_rounded_product(int64_t x, int64_t k, int64_t rough)\n{\n"
             "    const uint64_t size = x < 0 ? (uint64_t)0 - (uint64_t)x : (uint64_t)x, mask = 0xffffffffu;\n"
             "    const uint64_t most = (uint64_t)1 << 24, one = (uint64_t)1 << 52;\n"
             "    const uint64_t number = (((uint64_t)k & (one - 1)) | one) << 9;\n"
             "    const int32_t all = 62 + 1022 - (int32_t)((uint64_t)k >> 52 & 2047u);\n"
             "    const int32_t by = all < 32 ? 32 : all > 127 ? 127 : all, down = by < 65 ? 1 : by - 64;\n"
             "    const uint64_t n = by < 65 ? (size < most ? size : most) << (65 - by) : size;\n"
             "    const uint64_t off = n * (uint64_t)rough, k0 = number & mask, k1 = number >> 32;\n"
             "    const uint64_t first = (n & mask) * k0, middle = (n >> 32) * k0 + (first >> 32);\n"
             "    const uint64_t cross = (n & mask) * k1 + (middle & mask), low = cross << 32 | (first & mask);\n"
             "    const uint64_t high = (n >> 32) * k1 + (middle >> 32) + (cross >> 32);\n"
             "    const int64_t part = (int64_t)(high & (((uint64_t)1 << down) - 1)) - ((int64_t)1 << (down - 1));\n"
             "    uint64_t y = high >> down;\n"
             "    if ((part == 0 && low <= off) ||\n"
             "        (part == -1 && low != 0 && (uint64_t)0 - low <= off))\n"
             "        y += y & 1u;\n"
             "    else\n"
             "        y += part >= 0 ? 1u : 0u;\n"
             "    y = y < (uint64_t)1 << 30 ? y : (uint64_t)1 << 30;\n"
             "    return x < 0 ? -(int64_t)y : (int64_t)y;\n}\n\n");
}
