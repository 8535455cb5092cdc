/* SPDX-License-Identifier: Apache-2.0 */
/* C of what expr.c makes of quantised arithmetic for small processors: rounding to bytes, and sums of products with one
 * rounding, by the instructions of their floating-point unit where they have one. */
#include "codegen/c/emit.h"

void small_write_setup(writer *w)
{
    w_str(w, "#if defined(__GNUC__) && defined(__ARM_FP) && (__ARM_FP & 4) != 0 && defined(__ARM_FEATURE_DSP) && \\\n"
             "    defined(__ARM_FEATURE_FMA) && defined(__thumb2__)\n"
             "#define LATHE_SMALL_FPU 1 /* Cortex-M: VCVTR, VFMA, QADD, SSAT */\n"
             "#else\n#define LATHE_SMALL_FPU 0\n#endif\n\n");
}

void small_write_rounded(writer *w, dtype to)
{
    const char *ctype = dtype_c_name(to), *name = dtype_name(to), *letter = to == DT_I8 ? "s" : "u";
    w_fmt(w,
          "/* To the nearest integer, ties to even, plus zero, to the nearest that there is; 0 of a NaN. */\n"
          "static inline %s lathe_rounded_%s(float v, int32_t zero, int nan)\n{\n"
          "#if LATHE_SMALL_FPU\n"
          "    int32_t q;\n"
          "    if (nan && v != v)\n        return 0;\n"
          "    __asm__(\"vcvtr.s32.f32 %%0, %%1\" : \"=t\"(q) : \"t\"(v)); /* saturates, as do the two behind it */\n"
          "    __asm__(\"qadd %%0, %%1, %%2\" : \"=r\"(q) : \"r\"(q), \"r\"(zero));\n"
          "    __asm__(\"%ssat %%0, #8, %%1\" : \"=r\"(q) : \"r\"(q));\n"
          "    return (%s)q;\n"
          "#else\n"
          "    v = rintf(v) + (float)zero;\n"
          "    if (nan && v != v)\n        return 0;\n"
          "    return (%s)(v < %lld.0f ? %lld.0f : v > %lld.0f ? %lld.0f : v);\n"
          "#endif\n}\n\n",
          ctype, name, letter, ctype, ctype, (long long)dtype_min_int(to), (long long)dtype_min_int(to),
          (long long)dtype_max_int(to), (long long)dtype_max_int(to));
}

void small_write_single(writer *w)
{
    w_str(w, "/* a * b + s and a * b, rounded once. */\n"
             "static inline float lathe_fma_once(float a, float b, float s)\n{\n"
             "#if LATHE_SMALL_FPU\n"
             "    __asm__(\"vfma.f32 %0, %1, %2\" : \"+t\"(s) : \"t\"(a), \"t\"(b));\n"
             "    return s;\n"
             "#else\n    return (float)((double)a * (double)b + (double)s);\n#endif\n}\n\n"
             "static inline float lathe_product_once(float a, float b)\n{\n"
             "#if LATHE_SMALL_FPU\n"
             "    float p = a * b;\n"
             "    __asm__(\"\" : \"+t\"(p)); /* no part of a sum */\n"
             "    return p;\n"
             "#else\n    return (float)((double)a * (double)b);\n#endif\n}\n\n");
}
