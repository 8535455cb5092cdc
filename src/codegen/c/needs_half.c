/* SPDX-License-Identifier: Apache-2.0 */
/* Helpers that read, write and round floats of 16 bits, one at a time: an instruction where the processor has it. */
#include "codegen/c/emit.h"

/* Vectors may have instructions for all that is converted. */
#define MAYBE "#if defined(__GNUC__)\n__attribute__((unused))\n#endif\n"

static const char f16_load_text[] = MAYBE "static inline float lathe_f16_load(uint16_t h)\n"
                               "{\n"
                               "#if defined(__F16C__) && defined(__GNUC__)\n"
                               "    typedef short halves __attribute__((vector_size(16)));\n"
                               "    const halves v = {(short)h};\n"
                               "    return __builtin_ia32_vcvtph2ps(v)[0];\n"
                               "#elif defined(__ARM_FP16_FORMAT_IEEE)\n"
                               "    union {\n        uint16_t u;\n        __fp16 f;\n    } v;\n"
                               "    v.u = h;\n"
                               "    return (float)v.f;\n"
                               "#else\n"
                               "    union {\n        uint32_t u;\n        float f;\n    } v;\n"
                               "    const uint32_t sign = (uint32_t)(h & 0x8000u) << 16, rest = h & 0x7fffu;\n"
                               "    if (rest >= 0x7c00u)\n"
                               "        v.u = 0x7f800000u | ((rest & 0x3ffu) << 13);\n"
                               "    else if (rest >= 0x400u)\n"
                               "        v.u = (rest << 13) + 0x38000000u;\n"
                               "    else\n"
                               "        v.f = (float)rest * 5.9604644775390625e-8f;\n"
                               "    v.u |= sign;\n"
                               "    return v.f;\n"
                               "#endif\n"
                               "}\n\n";

static const char f16_store_text[] = MAYBE "static inline uint16_t lathe_f16_store(float x)\n"
                               "{\n"
                               "#if defined(__F16C__) && defined(__GNUC__)\n"
                               "    typedef float floats __attribute__((vector_size(16)));\n"
                               "    const floats v = {x};\n"
                               "    return (uint16_t)__builtin_ia32_vcvtps2ph(v, 0)[0];\n"
                               "#elif defined(__ARM_FP16_FORMAT_IEEE)\n"
                               "    union {\n        uint16_t u;\n        __fp16 f;\n    } v;\n"
                               "    v.f = (__fp16)x;\n"
                               "    return v.u;\n"
                               "#else\n"
                               "    union {\n        float f;\n        uint32_t u;\n    } v, small;\n"
                               "    uint32_t sign, rest;\n"
                               "    v.f = x;\n"
                               "    sign = (v.u >> 16) & 0x8000u;\n"
                               "    rest = v.u & 0x7fffffffu;\n"
                               "    if (rest > 0x7f800000u)\n"
                               "        return (uint16_t)(sign | 0x7e00u);\n"
                               "    if (rest >= 0x477ff000u)\n"
                               "        return (uint16_t)(sign | 0x7c00u);\n"
                               "    if (rest < 0x38800000u) { /* subnormal: let the addition round */\n"
                               "        v.u = rest;\n"
                               "        small.f = v.f + 0.5f;\n"
                               "        return (uint16_t)(sign | (small.u - 0x3f000000u));\n"
                               "    }\n"
                               "    rest += 0xfffu + ((rest >> 13) & 1u);\n"
                               "    return (uint16_t)(sign | ((rest - 0x38000000u) >> 13));\n"
                               "#endif\n"
                               "}\n\n";

static const char bf16_load_text[] = "static float lathe_bf16_load(uint16_t h)\n"
                                "{\n"
                                "    union {\n        uint32_t u;\n        float f;\n    } v;\n"
                                "    v.u = (uint32_t)h << 16;\n"
                                "    return v.f;\n"
                                "}\n\n";

static const char bf16_store_text[] = "static uint16_t lathe_bf16_store(float x)\n"
                                "{\n"
                                "    union {\n        float f;\n        uint32_t u;\n    } v;\n"
                                "    v.f = x;\n"
                                "    if ((v.u & 0x7fffffffu) > 0x7f800000u)\n"
                                "        return (uint16_t)((v.u >> 16) | 0x40u);\n"
                                "    return (uint16_t)((v.u + 0x7fffu + ((v.u >> 16) & 1u)) >> 16);\n"
                                "}\n\n";

void half_write_load(writer *w, dtype dt)
{
    w_str(w, dt == DT_F16 ? f16_load_text : bf16_load_text);
}

void half_write_store(writer *w, dtype dt)
{
    w_str(w, dt == DT_F16 ? f16_store_text : bf16_store_text);
}

void half_write_round(writer *w, dtype dt)
{
    const char *t = dtype_name(dt);
    w_fmt(w, MAYBE "static inline float lathe_%s_round(float x)\n{\n", t);
    w_fmt(w, "    return lathe_%s_load(lathe_%s_store(x));\n}\n\n", t, t);
}
