/* SPDX-License-Identifier: Apache-2.0 */
/* The helpers for steps of two runs of bytes by weights (the rows dot_u8s8_steps and dot_s8s8_steps of
 * tir/intrin_dot.c): products summed in twos, both runs added in 16 bits, which the weights do not leave, and then
 * widened. */
#include "codegen/c/emit.h"

/* What a compiler for such a processor returns; x, y: the words of both runs in all lanes, w, z: their weights. gcc
 * would make the products of a whole tile before it adds them: each sum is made where it stands. */
#define STEPS(madd, maddubs)                                                                                         \
    "acc += " madd "((half)((uhalf)" maddubs "((byte)x, (byte)w) + (uhalf)" maddubs "((byte)y, (byte)z)), "           \
    "(half){0} + 1);\n    __asm__(\"\" : \"+v\"(acc));\n    return acc;"
/* Weights without their signs, which the rows of a tile share, by x or its complement. All ones are cheaper to make
 * than ones. */
#define SIGNED_RUN(maddubs, abs, x, w) \
    "(uhalf)" maddubs "((byte)" abs "((byte)" w "), (byte)((sbyte)" x " ^ ((sbyte)" w " < 0)))"
#define SIGNED_STEPS(madd, maddubs, abs)                                                                             \
    "acc -= " madd "((half)(" SIGNED_RUN(maddubs, abs, "x", "w") "\n        + " SIGNED_RUN(maddubs, abs, "y", "z")  \
    "), (half){0} - 1);\n    __asm__(\"\" : \"+v\"(acc));\n    return acc;"

static const struct steps_code {
    uint32_t lanes;
    const char *test, *body, *signed_body;
} codes[] = {
#define CODE(lanes, test, madd, maddubs, abs) {lanes, test, STEPS(madd, maddubs), SIGNED_STEPS(madd, maddubs, abs)}
    CODE(16, "defined(__AVX512BW__)", "LATHE_MADD512", "LATHE_MADDUBS512", "LATHE_ABS512"),
    CODE(8, "defined(__AVX2__)", "__builtin_ia32_pmaddwd256", "__builtin_ia32_pmaddubsw256", "LATHE_ABS256"),
    CODE(4, "defined(__SSSE3__)", "__builtin_ia32_pmaddwd128", "__builtin_ia32_pmaddubsw128", "LATHE_ABS128"),
#undef CODE
};

/* Two products of a run, by name. */
static void write_plain_run(writer *w, const char *sum, const char *data, const char *weights, bool is_signed)
{
    for (int k = 0; k < 2; k++) {
        w_fmt(w, k == 0 ? "            const int32_t %s = " : "\n                + ", sum);
        w_fmt(w, is_signed ? "(%s[k + %d] + (%s[4 * i + k + %d] < 0)) * " : "%s[k + %d] * ", data, k, weights, k);
        w_fmt(w, "%s[4 * i + k + %d]", weights, k);
    }
    w_str(w, ";\n");
}

/* For other vectors, with the same 16 bits. */
static void write_plain_steps(writer *w, uint32_t lanes, bool is_signed)
{
    w_fmt(w, "    int i, k;\n    for (i = 0; i < %u; i++)\n        for (k = 0; k < 4; k += 2) {\n", lanes);
    write_plain_run(w, "s", "a", "c", is_signed);
    write_plain_run(w, "t", "b", "d", is_signed);
    w_str(w, is_signed ? "            LATHE_LANE(acc, i) += (int16_t)(s + t);\n"
                       : "            LATHE_LANE(acc, i) += (int16_t)((s > 32767 ? 32767 : s < -32768 ? -32768 : s)\n"
                         "                + (t > 32767 ? 32767 : t < -32768 ? -32768 : t));\n");
    w_str(w, "        }\n    return acc;\n");
}

void needs_write_dot_steps(arena *a, writer *w, const c_needs *all, const c_need *n)
{
    const char *v = needs_vector_name(a, DT_I32, n->lanes), *data = dtype_name(n->dt);
    const uint32_t bytes = n->lanes * 4;
    static const char *const views[] = {"int16_t half", "uint16_t uhalf", "char byte", "signed char sbyte",
                                        "int32_t word"};
    const struct steps_code *k = codes;
    while (k < codes + sizeof codes / sizeof *codes && k->lanes != n->lanes)
        k++;
    const bool known = k < codes + sizeof codes / sizeof *codes, is_signed = n->dt == DT_I8;
    const char *byte = is_signed ? "int8_t" : "uint8_t";
    dot_write_names(w, all, n);
    w_fmt(w, "LATHE_INLINE %s %s_steps_%s(%s acc, const %s *a, const %s *b,\n", v, v, data, v, byte, byte);
    w_str(w, "    const int8_t *c, const int8_t *d)\n{\n");
    if (known) {
        w_fmt(w, "#if LATHE_VECTORS && %s\n", k->test);
        for (size_t i = 0; i < sizeof views / sizeof *views; i++)
            w_fmt(w, "    typedef %s __attribute__((vector_size(%u), unused));\n", views[i], bytes);
        w_fmt(w, "    typedef int32_t weights __attribute__((vector_size(%u), aligned(1), may_alias));\n", bytes);
        w_str(w, "    const word w = *(const weights *)(const void *)c, z = *(const weights *)(const void *)d;\n"
                 "    const word x = *(const lathe_word *)(const void *)a - (word){0};\n"
                 "    const word y = *(const lathe_word *)(const void *)b - (word){0};\n");
        w_fmt(w, "    %s\n#else\n", is_signed ? k->signed_body : k->body);
    }
    write_plain_steps(w, n->lanes, is_signed);
    w_str(w, known ? "#endif\n}\n\n" : "}\n\n");
}
