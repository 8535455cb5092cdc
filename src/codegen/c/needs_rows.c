/* SPDX-License-Identifier: Apache-2.0 */
/* C of the intrinsic dot_rows. The tiles that its rule makes most are written in assembly for processors with the DSP
 * extension: gcc 12 loads ahead until it runs out of registers, and takes half as many instructions again. */
#include "codegen/c/emit.h"

/* Said twice where both are needed: the same words are no redefinition. */
static const char always[] = "#if defined(__GNUC__)\n#define LATHE_ALWAYS inline __attribute__((always_inline))\n"
                             "#else\n#define LATHE_ALWAYS inline\n#endif\n";

/* Steps are written out in twos where they are even: gcc counts lines to know how long the text is. The end lies in
 * memory: no register is left for it. */
static const char steps[] =
    "#if defined(__GNUC__) && defined(__ARM_FEATURE_DSP) && defined(__thumb2__) && defined(__OPTIMIZE__)\n"
    "#define LATHE_DOT_TILES 1\n"
    "/* Four weights of two channels, widened: e, f hold those for the first word of data, u, v for the second. */\n"
    "#define LATHE_WEIGHTS                                                                          \\\n"
    "    \"ldrd %[u], %[v], [%[w]], #8\\n sxtb16 %[e], %[u]\\n sxtb16 %[f], %[v]\\n\" \\\n"
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
    "#define LATHE_PAIR(s, t)                                                                       \\\n"
    "    \"ldrd %[u], %[v], [%[w]], #8\\n sxtb16 %[f], %[u]\\n sxtb16 %[u], %[u], ror #8\\n\"            \\\n"
    "    \"smlad %\" s \", %[t], %[f], %\" s \"\\n smlad %\" s \", %[e], %[u], %\" s \"\\n\"                \\\n"
    "    \"sxtb16 %[f], %[v]\\n sxtb16 %[v], %[v], ror #8\\n\"                                         \\\n"
    "    \"smlad %\" t \", %[t], %[f], %\" t \"\\n smlad %\" t \", %[e], %[v], %\" t \"\\n\"\n"
    "#define LATHE_1X4    \"ldr %[t], [%[a]], #4\\n ldr %[e], [%[a]], #4\\n\" \\\n"
    "    LATHE_PAIR(\"0\", \"1\") LATHE_PAIR(\"2\", \"3\")\n"
    "#define LATHE_2X2    LATHE_WEIGHTS LATHE_SECOND LATHE_FIRST\n"
    "#define LATHE_3X2    LATHE_WEIGHTS LATHE_SECOND LATHE_THIRD LATHE_FIRST\n"
    "#define LATHE_ROWS_1\n"
    "#define LATHE_ROWS_2 , [r1] \"i\"(row * 2), [r2] \"i\"(row * 2 + 4)\n"
    "#define LATHE_ROWS_3 LATHE_ROWS_2, [r3] \"i\"(row * 4), [r4] \"i\"(row * 4 + 4)\n"
    "#define LATHE_ROWS_4\n"
    "#define LATHE_SUMS_4 LATHE_SUMS_2\n"
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
    "static LATHE_ALWAYS void lathe_dot_3x2(int32_t *out, const int16_t *a, const int8_t *w, int n, int row)\n"
    "{\n"
    "    const int8_t *end = w + 8 * n;\n"
    "    int32_t s0 = out[0], s1 = out[1], s2 = out[2], s3 = out[3], s4 = out[4], s5 = out[5], t, u, v, e, f;\n"
    "    LATHE_DOT_EVEN(LATHE_3X2, 3);\n"
    "    out[0] = s0, out[1] = s1, out[2] = s2, out[3] = s3, out[4] = s4, out[5] = s5;\n"
    "}\n\n"
    "static LATHE_ALWAYS void lathe_dot_2x2(int32_t *out, const int16_t *a, const int8_t *w, int n, int row)\n"
    "{\n"
    "    const int8_t *end = w + 8 * n;\n"
    "    int32_t s0 = out[0], s1 = out[1], s2 = out[2], s3 = out[3], t, u, v, e, f;\n"
    "    LATHE_DOT_EVEN(LATHE_2X2, 2);\n"
    "    out[0] = s0, out[1] = s1, out[2] = s2, out[3] = s3;\n"
    "}\n\n"
    "static LATHE_ALWAYS void lathe_dot_1x2(int32_t *out, const int16_t *a, const int8_t *w, int n)\n"
    "{\n"
    "    const int8_t *end = w + 8 * n;\n"
    "    int32_t s0 = out[0], s1 = out[1], t, u, v, e, f;\n"
    "    LATHE_DOT_EVEN(LATHE_1X2, 1);\n"
    "    out[0] = s0, out[1] = s1;\n"
    "}\n"
    "\nstatic LATHE_ALWAYS void lathe_dot_1x4(int32_t *out, const int16_t *a, const int8_t *w, int n)\n"
    "{\n"
    "    const int8_t *end = w + 16 * n;\n"
    "    int32_t s0 = out[0], s1 = out[1], s2 = out[2], s3 = out[3], t, u, v, e, f;\n"
    "    LATHE_DOT_EVEN(LATHE_1X4, 4);\n"
    "    out[0] = s0, out[1] = s1, out[2] = s2, out[3] = s3;\n"
    "}\n"
    "#else\n#define LATHE_DOT_TILES 0\n#endif\n\n";

static const char any_tile[] =
    "/* out[i * r + j] += sums of products of run i of a, from a + i * row on, and row j of w: n steps of 4;\n"
    " * elements 1 and 2 of each step of w have changed places, and steps of r rows lie side by side. */\n"
    "static LATHE_ALWAYS void lathe_dot_rows(int32_t *out, const int16_t *a, const int8_t *w, int m, int r, int n,\n"
    "                                        int row)\n"
    "{\n"
    "    int i, j, k, e;\n"
    "#if LATHE_DOT_TILES\n"
    "    if (r == 2 && m == 3 && row < 1020) {\n"
    "        lathe_dot_3x2(out, a, w, n, row);\n        return;\n    }\n"
    "    if (r == 2 && m == 2 && row < 2040) {\n"
    "        lathe_dot_2x2(out, a, w, n, row);\n        return;\n    }\n"
    "    if (r == 4 && m == 1) {\n"
    "        lathe_dot_1x4(out, a, w, n);\n        return;\n    }\n"
    "    if (r == 2 && m == 1) {\n"
    "        lathe_dot_1x2(out, a, w, n);\n        return;\n    }\n"
    "#endif\n"
    "    for (k = 0; k < n; k++, a += 4, w += 4 * r)\n"
    "        for (e = 0; e < 4; e++)\n"
    "            for (i = 0; i < m; i++)\n"
    "                for (j = 0; j < r; j++)\n"
    "                    out[i * r + j] += a[i * row + e] * w[4 * j + e % 2 * 2 + e / 2];\n"
    "}\n\n";

void needs_write_dot_rows(writer *w)
{
    w_str(w, always);
    w_str(w, steps);
    w_str(w, tiles);
    w_str(w, any_tile);
}

/* Words of two neighbours by the taps 0, 1 (p) and 1, 2 (q): every second result begins in the upper half of a word. */
static const char taps[] =
    "#if defined(__GNUC__) && defined(__ARM_FEATURE_DSP) && defined(__thumb2__) && defined(__OPTIMIZE__)\n"
    "#define LATHE_TAPS_3 1\n"
    "#define LATHE_TAPS \"ldrsb %[p], [%[w]]\\n ldrsb %[q], [%[w], #1]\\n ldrsb %[y], [%[w], #2]\\n\" \\\n"
    "    \"pkhbt %[p], %[p], %[q], lsl #16\\n pkhbt %[q], %[q], %[y], lsl #16\\n\"\n"
    "#define LATHE_TWO(at, s, t, x, y)                                                            \\\n"
    "    \"smlad %\" s \", %[\" x \"], %[p], %\" s \"\\n smlatb %\" t \", %[\" x \"], %[p], %\" t \"\\n\"       \\\n"
    "    \"ldr %[\" y \"], [%[a], #\" at \"]\\n smlabt %\" s \", %[\" y \"], %[q], %\" s \"\\n\"             \\\n"
    "    \"smlad %\" t \", %[\" y \"], %[q], %\" t \"\\n\"\n"
    "#define LATHE_ONE(at, s, x, y)                                                               \\\n"
    "    \"smlad %\" s \", %[\" x \"], %[p], %\" s \"\\n ldrsh %[\" y \"], [%[a], #\" at \"]\\n\"             \\\n"
    "    \"smlabt %\" s \", %[\" y \"], %[q], %\" s \"\\n\"\n"
    "#define LATHE_STEP(at, s, x, y) /* windows two apart */                                      \\\n"
    "    \"smlad %\" s \", %[\" x \"], %[p], %\" s \"\\n ldr %[\" y \"], [%[a], #\" at \"]\\n\"               \\\n"
    "    \"smlabt %\" s \", %[\" y \"], %[q], %\" s \"\\n\"\n"
    "#define LATHE_BEGIN LATHE_TAPS \"ldr %[x], [%[a]]\\n\"\n"
    "#define LATHE_TAPS_END(...)                                                                  \\\n"
    "    : __VA_ARGS__, [x] \"=&r\"(x), [y] \"=&r\"(y), [p] \"=&r\"(p), [q] \"=&r\"(q)                   \\\n"
    "    : [a] \"r\"(a), [w] \"r\"(w)                                                               \\\n"
    "    : \"memory\"\n"
    "#define LATHE_S(i) \"+r\"(s[i])\n"
    "#else\n#define LATHE_TAPS_3 0\n#endif\n\n";

static const char taps_dense[] =
    "#if LATHE_TAPS_3\n"
    "static LATHE_ALWAYS int lathe_taps_near(int32_t *s, const int16_t *a, const int8_t *w, int m)\n"
    "{\n"
    "    int32_t x, y, p, q;\n"
    "    if (m == 6)\n"
    "        __asm__(LATHE_BEGIN LATHE_TWO(\"4\", \"0\", \"1\", \"x\", \"y\")\n"
    "                LATHE_TWO(\"8\", \"2\", \"3\", \"y\", \"x\")\n"
    "                LATHE_TWO(\"12\", \"4\", \"5\", \"x\", \"y\")\n"
    "                LATHE_TAPS_END(LATHE_S(0), LATHE_S(1), LATHE_S(2), LATHE_S(3), LATHE_S(4), LATHE_S(5)));\n"
    "    else if (m == 5)\n"
    "        __asm__(LATHE_BEGIN LATHE_TWO(\"4\", \"0\", \"1\", \"x\", \"y\")\n"
    "                LATHE_TWO(\"8\", \"2\", \"3\", \"y\", \"x\")\n"
    "                LATHE_ONE(\"12\", \"4\", \"x\", \"y\")\n"
    "                LATHE_TAPS_END(LATHE_S(0), LATHE_S(1), LATHE_S(2), LATHE_S(3), LATHE_S(4)));\n"
    "    else if (m == 4)\n"
    "        __asm__(LATHE_BEGIN LATHE_TWO(\"4\", \"0\", \"1\", \"x\", \"y\")\n"
    "                LATHE_TWO(\"8\", \"2\", \"3\", \"y\", \"x\")\n"
    "                LATHE_TAPS_END(LATHE_S(0), LATHE_S(1), LATHE_S(2), LATHE_S(3)));\n"
    "    else if (m == 3)\n"
    "        __asm__(LATHE_BEGIN LATHE_TWO(\"4\", \"0\", \"1\", \"x\", \"y\") LATHE_ONE(\"8\", \"2\", \"y\", \"x\")\n"
    "                LATHE_TAPS_END(LATHE_S(0), LATHE_S(1), LATHE_S(2)));\n"
    "    else if (m == 2)\n"
    "        __asm__(LATHE_BEGIN LATHE_TWO(\"4\", \"0\", \"1\", \"x\", \"y\")\n"
    "                LATHE_TAPS_END(LATHE_S(0), LATHE_S(1)));\n"
    "    else\n"
    "        return 0;\n"
    "    return 1;\n"
    "}\n\n";

static const char taps_apart[] =
    "static LATHE_ALWAYS int lathe_taps_apart(int32_t *s, const int16_t *a, const int8_t *w, int m)\n"
    "{\n"
    "    int32_t x, y, p, q;\n"
    "    if (m == 6)\n"
    "        __asm__(LATHE_BEGIN LATHE_STEP(\"4\", \"0\", \"x\", \"y\") LATHE_STEP(\"8\", \"1\", \"y\", \"x\")\n"
    "                LATHE_STEP(\"12\", \"2\", \"x\", \"y\") LATHE_STEP(\"16\", \"3\", \"y\", \"x\")\n"
    "                LATHE_STEP(\"20\", \"4\", \"x\", \"y\") LATHE_ONE(\"24\", \"5\", \"y\", \"x\")\n"
    "                LATHE_TAPS_END(LATHE_S(0), LATHE_S(1), LATHE_S(2), LATHE_S(3), LATHE_S(4), LATHE_S(5)));\n"
    "    else if (m == 4)\n"
    "        __asm__(LATHE_BEGIN LATHE_STEP(\"4\", \"0\", \"x\", \"y\") LATHE_STEP(\"8\", \"1\", \"y\", \"x\")\n"
    "                LATHE_STEP(\"12\", \"2\", \"x\", \"y\") LATHE_ONE(\"16\", \"3\", \"y\", \"x\")\n"
    "                LATHE_TAPS_END(LATHE_S(0), LATHE_S(1), LATHE_S(2), LATHE_S(3)));\n"
    "    else if (m == 3)\n"
    "        __asm__(LATHE_BEGIN LATHE_STEP(\"4\", \"0\", \"x\", \"y\") LATHE_STEP(\"8\", \"1\", \"y\", \"x\")\n"
    "                LATHE_ONE(\"12\", \"2\", \"x\", \"y\") LATHE_TAPS_END(LATHE_S(0), LATHE_S(1), LATHE_S(2)));\n"
    "    else\n"
    "        return 0;\n"
    "    return 1;\n"
    "}\n"
    "#endif\n\n";

static const char any_taps[] =
    "/* out[i] += sum over k of a[i * step + k * tap] * w[k]. */\n"
    "static LATHE_ALWAYS void lathe_taps_row(int32_t *out, const int16_t *a, const int8_t *w, int m, int n, int step,\n"
    "                                        int tap)\n"
    "{\n"
    "    int i, k;\n"
    "#if LATHE_TAPS_3\n"
    "    if (n == 3 && tap == 1 && step == 1 && lathe_taps_near(out, a, w, m))\n        return;\n"
    "    if (n == 3 && tap == 1 && step == 2 && lathe_taps_apart(out, a, w, m))\n        return;\n"
    "#endif\n"
    "    for (k = 0; k < n; k++)\n"
    "        for (i = 0; i < m; i++)\n"
    "            out[i] += a[i * step + k * tap] * w[k];\n"
    "}\n\n";

void needs_write_taps_row(writer *w)
{
    w_str(w, always);
    w_str(w, taps);
    w_str(w, taps_dense);
    w_str(w, taps_apart);
    w_str(w, any_taps);
}
