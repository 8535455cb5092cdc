/* SPDX-License-Identifier: Apache-2.0 */
/* C of the intrinsic dot_rows. The tiles that its rule makes most are written in assembly for processors with the DSP
 * extension: gcc 12 loads ahead until it runs out of registers, and takes half as many instructions again. */
#include "codegen/c/emit.h"

/* Steps are written out in twos where they are even: gcc counts lines to know how long the text is. The end lies in
 * memory: no register is left for it. */
static const char steps[] =
    "#if defined(__GNUC__)\n#define LATHE_INLINE static inline __attribute__((always_inline))\n"
    "#else\n#define LATHE_INLINE static inline\n#endif\n"
    "#if defined(__GNUC__) && defined(__ARM_FEATURE_DSP) && defined(__thumb2__) && defined(__OPTIMIZE__)\n"
    "#define LATHE_DOT_TILES 1\n"
    "/* Four weights of two channels, widened: e, f hold those for the first word of data, u, v for the second. */\n"
    "#define LATHE_WEIGHTS                                                                          \\\n"
    "    \"ldr %[u], [%[w]], #4\\n ldr %[v], [%[w]], #4\\n sxtb16 %[e], %[u]\\n sxtb16 %[f], %[v]\\n\" \\\n"
    "    \"sxtb16 %[u], %[u], ror #8\\n sxtb16 %[v], %[v], ror #8\\n\"\n"
    "#define LATHE_BY(at, x, y, s, t)                                                               \\\n"
    "    \"ldr %[t], [%[a]\" at \"\\n smlad %\" s \", %[t], %[\" x \"], %\" s \"\\n\"                           \\\n"
    "    \"smlad %\" t \", %[t], %[\" y \"], %\" t \"\\n\"\n"
    "#define LATHE_FIRST  LATHE_BY(\", #4]\", \"u\", \"v\", \"0\", \"1\") \\\n"
    "    LATHE_BY(\"], #8\", \"e\", \"f\", \"0\", \"1\")\n"
    "#define LATHE_SECOND LATHE_BY(\", %[r1]]\", \"e\", \"f\", \"2\", \"3\") \\\n"
    "    LATHE_BY(\", %[r2]]\", \"u\", \"v\", \"2\", \"3\")\n"
    "#define LATHE_THIRD  LATHE_BY(\", %[r3]]\", \"e\", \"f\", \"4\", \"5\") \\\n"
    "    LATHE_BY(\", %[r4]]\", \"u\", \"v\", \"4\", \"5\")\n"
    "#define LATHE_1X2    LATHE_WEIGHTS LATHE_FIRST\n"
    "#define LATHE_2X2    LATHE_WEIGHTS LATHE_SECOND LATHE_FIRST\n"
    "#define LATHE_3X2    LATHE_WEIGHTS LATHE_SECOND LATHE_THIRD LATHE_FIRST\n"
    "#define LATHE_ROWS_1\n"
    "#define LATHE_ROWS_2 , [r1] \"i\"(row * 2), [r2] \"i\"(row * 2 + 4)\n"
    "#define LATHE_ROWS_3 LATHE_ROWS_2, [r3] \"i\"(row * 4), [r4] \"i\"(row * 4 + 4)\n"
    "#define LATHE_SUMS_1 \"+r\"(s0), \"+r\"(s1)\n"
    "#define LATHE_SUMS_2 LATHE_SUMS_1, \"+r\"(s2), \"+r\"(s3)\n"
    "#define LATHE_SUMS_3 LATHE_SUMS_2, \"+r\"(s4), \"+r\"(s5)\n";

static const char tiles[] =
    "#define LATHE_DOT(text, m)                                                        \\\n"
    "    __asm__ volatile(\"1:\\n\" text \"ldr %[t], %[end]\\n cmp %[w], %[t]\\n bne 1b\\n\"     \\\n"
    "                     : LATHE_SUMS_##m, [a] \"+r\"(a), [w] \"+r\"(w), [t] \"=&r\"(t),    \\\n"
    "                       [u] \"=&r\"(u), [v] \"=&r\"(v), [e] \"=&r\"(e), [f] \"=&r\"(f)    \\\n"
    "                     : [end] \"m\"(end) LATHE_ROWS_##m                              \\\n"
    "                     : \"cc\", \"memory\")\n"
    "#define LATHE_DOT_EVEN(text, m)           \\\n"
    "    do {                                           \\\n"
    "        if (n % 2 == 0)                            \\\n"
    "            LATHE_DOT(text text, m);      \\\n"
    "        else                                       \\\n"
    "            LATHE_DOT(text, m);           \\\n"
    "    } while (0)\n\n"
    "LATHE_INLINE void lathe_dot_3x2(int32_t *out, const int16_t *a, const int8_t *w, int n, int row)\n"
    "{\n"
    "    const int8_t *end = w + 8 * n;\n"
    "    int32_t s0 = out[0], s1 = out[1], s2 = out[2], s3 = out[3], s4 = out[4], s5 = out[5], t, u, v, e, f;\n"
    "    LATHE_DOT_EVEN(LATHE_3X2, 3);\n"
    "    out[0] = s0, out[1] = s1, out[2] = s2, out[3] = s3, out[4] = s4, out[5] = s5;\n"
    "}\n\n"
    "LATHE_INLINE void lathe_dot_2x2(int32_t *out, const int16_t *a, const int8_t *w, int n, int row)\n"
    "{\n"
    "    const int8_t *end = w + 8 * n;\n"
    "    int32_t s0 = out[0], s1 = out[1], s2 = out[2], s3 = out[3], t, u, v, e, f;\n"
    "    LATHE_DOT_EVEN(LATHE_2X2, 2);\n"
    "    out[0] = s0, out[1] = s1, out[2] = s2, out[3] = s3;\n"
    "}\n\n"
    "LATHE_INLINE void lathe_dot_1x2(int32_t *out, const int16_t *a, const int8_t *w, int n)\n"
    "{\n"
    "    const int8_t *end = w + 8 * n;\n"
    "    int32_t s0 = out[0], s1 = out[1], t, u, v, e, f;\n"
    "    LATHE_DOT_EVEN(LATHE_1X2, 1);\n"
    "    out[0] = s0, out[1] = s1;\n"
    "}\n"
    "#else\n#define LATHE_DOT_TILES 0\n#endif\n\n";

static const char any_tile[] =
    "/* out[i * r + j] += sums of products of run i of a, from a + i * row on, and row j of w: n steps of 4;\n"
    " * elements 1 and 2 of each step of w have changed places, and steps of r rows lie side by side. */\n"
    "LATHE_INLINE void lathe_dot_rows(int32_t *out, const int16_t *a, const int8_t *w, int m, int r, int n, int row)\n"
    "{\n"
    "    int i, j, k;\n"
    "#if LATHE_DOT_TILES\n"
    "    if (r == 2 && m == 3 && row < 1020) {\n"
    "        lathe_dot_3x2(out, a, w, n, row);\n        return;\n    }\n"
    "    if (r == 2 && m == 2 && row < 2040) {\n"
    "        lathe_dot_2x2(out, a, w, n, row);\n        return;\n    }\n"
    "    if (r == 2 && m == 1) {\n"
    "        lathe_dot_1x2(out, a, w, n);\n        return;\n    }\n"
    "#endif\n"
    "    for (k = 0; k < n; k++, a += 4)\n"
    "        for (j = 0; j < r; j++, w += 4)\n"
    "            for (i = 0; i < m; i++)\n"
    "                out[i * r + j] += a[i * row] * w[0] + a[i * row + 1] * w[2] + a[i * row + 2] * w[1] +\n"
    "                                  a[i * row + 3] * w[3];\n"
    "}\n\n";

void needs_write_dot_rows(writer *w)
{
    w_str(w, steps);
    w_str(w, tiles);
    w_str(w, any_tile);
}
