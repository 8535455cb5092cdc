/* SPDX-License-Identifier: Apache-2.0 */
/* C of the intrinsic dot_rows. The tiles that its rule makes most are written in assembly for processors with the DSP
 * extension: gcc 12 loads ahead until it runs out of registers, and takes half as many instructions again. */
#include "codegen/c/emit.h"
#include "codegen/c/needs_tiles.h"

/* Said twice where both are needed: the same words are no redefinition. */
static const char always[] = "#if defined(__GNUC__)\n#define LATHE_ALWAYS inline __attribute__((always_inline))\n"
                             "#else\n#define LATHE_ALWAYS inline\n#endif\n";

static const char words[] = "#if defined(__GNUC__)\n#define LATHE_WORDS __attribute__((aligned(4)))\n"
                            "#else\n#define LATHE_WORDS\n#endif\n";

#define BYTE_PAIR \
    "#define LATHE_PAIR(s, t)                                                      \\\n"                  \
    "    \"ldrd %[u], %[v], [%[w]], #8\\n sxtb16 %[e], %[u]\\n sxtb16 %[u], %[u], ror #8\\n\" \\\n"       \
    "    \"smlad %\" s \", %[x], %[e], %\" s \"\\n smlad %\" s \", %[f], %[u], %\" s \"\\n\"   \\\n"      \
    "    \"sxtb16 %[e], %[v]\\n sxtb16 %[v], %[v], ror #8\\n\"                         \\\n"              \
    "    \"smlad %\" t \", %[x], %[e], %\" t \"\\n smlad %\" t \", %[f], %[v], %\" t \"\\n\"\n"

/* Steps are written out in twos, threes or, in long runs, fours. */
static const char steps[] =
    "#if defined(__GNUC__) && defined(__ARM_FEATURE_DSP) && defined(__thumb2__) && defined(__OPTIMIZE__)\n"
    "#define LATHE_DOT_TILES 1\n"
    "/* gcc gives out 14 registers: with -fno-omit-frame-pointer less, which wants -DLATHE_FRAME_POINTER here. */\n"
    "#if defined(__clang__) || defined(__PIC__) || defined(LATHE_FRAME_POINTER)\n"
    "#define LATHE_ALL_REGISTERS 0\n"
    "#else\n"
    "#define LATHE_ALL_REGISTERS 1\n"
    "#endif\n"
    "/* Four weights of two channels, widened: e, f hold those for the first word of data, u, v for the second. */\n"
    BYTE_WEIGHTS
    "#define LATHE_SUM(x, e, f, s, t)                                              \\\n"
    "    \"smlad %\" s \", %[\" x \"], %[\" e \"], %\" s \"\\n smlad %\" t "
    "\", %[\" x \"], %[\" f \"], %\" t \"\\n\"\n"
    "#define LATHE_LOW(s, t)  LATHE_SUM(\"x\", \"e\", \"f\", s, t)\n"
    "#define LATHE_HIGH(s, t) LATHE_SUM(\"x\", \"u\", \"v\", s, t)\n"
    "#define LATHE_BOTH(s, t) LATHE_LOW(s, t) LATHE_SUM(\"y\", \"u\", \"v\", s, t)\n"
    "/* Both words of data at once, where they lie at a word's boundary, and one after the other. */\n"
    "#define LATHE_NEXT(s, t)   \"ldrd %[x], %[y], [%[a]], %[s]\\n\" LATHE_BOTH(s, t)\n"
    "#define LATHE_BY(at, s, t) \"ldrd %[x], %[y], [%[a], %[\" at \"]]\\n\" LATHE_BOTH(s, t)\n"
    "#define LATHE_NEXT_A(s, t)                                                    \\\n"
    "    \"ldr %[x], [%[a], #4]\\n\" LATHE_HIGH(s, t) \"ldr %[x], [%[a]], %[s]\\n\" LATHE_LOW(s, t)\n"
    "#define LATHE_BY_A(at, s, t)                                                  \\\n"
    "    \"ldr %[x], [%[a], %[\" at \"]]\\n\" LATHE_LOW(s, t) \"ldr %[x], "
    "[%[a], %[\" at \"]+4]\\n\" LATHE_HIGH(s, t)\n"
    "#define LATHE_2X2   LATHE_WEIGHTS LATHE_BY(\"p\", \"2\", \"3\") LATHE_NEXT(\"0\", \"1\")\n"
    "#define LATHE_2X2_A LATHE_WEIGHTS LATHE_BY_A(\"p\", \"2\", \"3\") LATHE_NEXT_A(\"0\", \"1\")\n"
    "#define LATHE_3X2   LATHE_WEIGHTS LATHE_BY(\"q\", \"0\", \"1\") "
    "LATHE_BY(\"p\", \"4\", \"5\") LATHE_NEXT(\"2\", \"3\")\n"
    "#define LATHE_3X2_A LATHE_WEIGHTS LATHE_BY_A(\"p\", \"2\", \"3\") "
    "LATHE_BY_A(\"q\", \"4\", \"5\") LATHE_NEXT_A(\"0\", \"1\")\n"
    "#define LATHE_1X2   LATHE_WEIGHTS LATHE_NEXT(\"0\", \"1\")\n"
    "#define LATHE_1X2_A LATHE_WEIGHTS LATHE_NEXT_A(\"0\", \"1\")\n"
    BYTE_PAIR
    "#define LATHE_1X4   \"ldrd %[x], %[f], [%[a]], %[s]\\n\" LATHE_PAIR(\"0\", \"1\") LATHE_PAIR(\"2\", \"3\")\n"
    "#define LATHE_1X4_A \"ldr %[f], [%[a], #4]\\n ldr %[x], [%[a]], %[s]\\n\" "
    "LATHE_PAIR(\"0\", \"1\") LATHE_PAIR(\"2\", \"3\")\n"
    "#define LATHE_SUMS_1 \"+r\"(s0), \"+r\"(s1)\n"
    "#define LATHE_SUMS_2 LATHE_SUMS_1, \"+r\"(s2), \"+r\"(s3)\n"
    "#define LATHE_SUMS_3 LATHE_SUMS_2, \"+r\"(s4), \"+r\"(s5)\n"
    "#define LATHE_SUMS_3_W LATHE_SUMS_3, [y] \"=&r\"(y)\n"
    "#define LATHE_SUMS_2_W LATHE_SUMS_2, [y] \"=&r\"(y)\n"
    "#define LATHE_SUMS_1_W LATHE_SUMS_1, [y] \"=&r\"(y)\n";

static const char tile_text[] =
    "#define LATHE_DOT(before, text, behind, r1, r2, ...)                                   \\\n"
    "    __asm__ volatile(before text behind                                                \\\n"
    "                     : __VA_ARGS__, [a] \"+r\"(a), [w] \"+r\"(w), [x] \"=&r\"(x),       \\\n"
    "                       [u] \"=&r\"(u), [v] \"=&r\"(v), [e] \"=&r\"(e), [f] \"=&r\"(f)          \\\n"
    "                     : [end] \"m\"(end), [p] \"i\"(r1), [q] \"i\"(r2), [s] \"i\"(2 * step)       \\\n"
    "                     : \"cc\", \"memory\")\n"
    "#define LATHE_KNOWN(n) __builtin_constant_p(n)\n"
    "/* The end lies in memory: no register is left for it. gcc counts lines to know how long the text is. */\n"
    "#define LATHE_LOOP(text, r1, r2, ...)                                                  \\\n"
    "    LATHE_DOT(\"1:\\n\", text, \"ldr %[x], %[end]\\n cmp %[w], %[x]\\n bne 1b\\n\", r1, r2, __VA_ARGS__)\n"
    "#define LATHE_DOT_N(text, r1, r2, ...)                                                 \\\n"
    "    do {                                                                               \\\n"
    "        if (!LATHE_KNOWN(n) && n % 4 == 0)                                             \\\n"
    "            LATHE_LOOP(text text text text, r1, r2, __VA_ARGS__);                      \\\n"
    "        else if (!LATHE_KNOWN(n) && n % 2 == 0)                                        \\\n"
    "            LATHE_LOOP(text text, r1, r2, __VA_ARGS__);                                \\\n"
    "        else if (!LATHE_KNOWN(n))                                                      \\\n"
    "            LATHE_LOOP(text, r1, r2, __VA_ARGS__);                                     \\\n"
    "        else if (n == 1)                                                               \\\n"
    "            LATHE_DOT(\"\", text, \"\", r1, r2, __VA_ARGS__);                              \\\n"
    "        else if (n == 2)                                                               \\\n"
    "            LATHE_DOT(\"\", text text, \"\", r1, r2, __VA_ARGS__);                         \\\n"
    "        else if (n == 3)                                                               \\\n"
    "            LATHE_DOT(\"\", text text text, \"\", r1, r2, __VA_ARGS__);                    \\\n"
    "        else if (n % 16 == 0)                                                          \\\n"
    "            LATHE_LOOP(text text text text, r1, r2, __VA_ARGS__);                      \\\n"
    "        else if (n % 2 == 0)                                                           \\\n"
    "            LATHE_LOOP(text text, r1, r2, __VA_ARGS__);                                \\\n"
    "        else if (n % 3 == 0)                                                           \\\n"
    "            LATHE_LOOP(text text text, r1, r2, __VA_ARGS__);                           \\\n"
    "        else                                                                           \\\n"
    "            LATHE_LOOP(text, r1, r2, __VA_ARGS__);                                     \\\n"
    "    } while (0)\n";

#define DOT_TILES(K) \
    "static LATHE_ALWAYS void " K##_TILE "3x2(int32_t *out, const int16_t *a, const int8_t *w, int n, int row,\n"    \
    "                                       int step, int words)\n"                                                  \
    "{\n"                                                                                                            \
    "    const int8_t *end = w + " K##_PAIR " * n;\n"                                                                \
    "    int32_t " SUMS_6(K##_GET) ", x, y, u, v, e, f;\n"                                                           \
    "    a += words ? row : 0;\n"                                                                                    \
    "    if (words)\n"                                                                                               \
    "        LATHE_DOT_N(LATHE_3X2, row * 2, row * -2, LATHE_SUMS_3_W);\n"                                           \
    "    else\n"                                                                                                     \
    "        LATHE_DOT_N(LATHE_3X2_A, row * 2, row * 4, LATHE_SUMS_3);\n"                                            \
    "    " SUMS_6(K##_PUT) ";\n"                                                                                     \
    "}\n"                                                                                                            \
    "\n"                                                                                                             \
    "static LATHE_ALWAYS void " K##_TILE "2x2(int32_t *out, const int16_t *a, const int8_t *w, int n, int row,\n"    \
    "                                       int step, int words)\n"                                                  \
    "{\n"                                                                                                            \
    "    const int8_t *end = w + " K##_PAIR " * n;\n"                                                                \
    "    int32_t " SUMS_4(K##_GET) ", x, y, u, v, e, f;\n"                                                           \
    "    if (words)\n"                                                                                               \
    "        LATHE_DOT_N(LATHE_2X2, row * 2, 0, LATHE_SUMS_2_W);\n"                                                  \
    "    else\n"                                                                                                     \
    "        LATHE_DOT_N(LATHE_2X2_A, row * 2, 0, LATHE_SUMS_2);\n"                                                  \
    "    " SUMS_4(K##_PUT) ";\n"                                                                                     \
    "}\n"                                                                                                            \
    "\n"                                                                                                             \
    "static LATHE_ALWAYS void " K##_TILE "1x2(int32_t *out, const int16_t *a, const int8_t *w, int n, int row,\n"    \
    "                                       int step, int words)\n"                                                  \
    "{\n"                                                                                                            \
    "    const int8_t *end = w + " K##_PAIR " * n;\n"                                                                \
    "    int32_t " SUMS_2(K##_GET) ", x, y, u, v, e, f;\n"                                                           \
    "    (void)row;\n"                                                                                               \
    "    if (words)\n"                                                                                               \
    "        LATHE_DOT_N(LATHE_1X2, 0, 0, LATHE_SUMS_1_W);\n"                                                        \
    "    else\n"                                                                                                     \
    "        LATHE_DOT_N(LATHE_1X2_A, 0, 0, LATHE_SUMS_1);\n"                                                        \
    "    " SUMS_2(K##_PUT) ";\n"                                                                                     \
    "}\n"                                                                                                            \
    "\n"                                                                                                             \
    "static LATHE_ALWAYS void " K##_TILE "1x4(int32_t *out, const int16_t *a, const int8_t *w, int n, int row,\n"    \
    "                                       int step, int words)\n"                                                  \
    "{\n"                                                                                                            \
    "    const int8_t *end = w + " K##_FOUR " * n;\n"                                                                \
    "    int32_t " SUMS_4(K##_GET) ", x, u, v, e, f;\n"                                                              \
    "    (void)row;\n"                                                                                               \
    "    if (words)\n"                                                                                               \
    "        LATHE_DOT_N(LATHE_1X4, 0, 0, LATHE_SUMS_2);\n"                                                          \
    "    else\n"                                                                                                     \
    "        LATHE_DOT_N(LATHE_1X4_A, 0, 0, LATHE_SUMS_2);\n"                                                        \
    "    " SUMS_4(K##_PUT) ";\n"                                                                                     \
    "}\n"

static const char tiles[] = DOT_TILES(BYTES);

static const char no_tiles[] =
    "#else\n"
    "#define LATHE_DOT_TILES 0\n"
    "#define LATHE_ALL_REGISTERS 0\n"
    "#endif\n";

#define DOT_TILE_CALLS(K) \
    "#if LATHE_DOT_TILES\n"                                                                                          \
    "#if defined(__clang__) || defined(LATHE_FRAME_POINTER) /* no 13 registers for one statement */\n"               \
    "    if (r == 2 && m == 3 && row < 2040) {\n"                                                                    \
    "        " K##_TILE "2x2(out, a, w, n, row, step, 0);\n"                                                         \
    "        " K##_TILE "1x2(out + 4, a + 2 * row, w, n, row, step, 0);\n"                                           \
    "        return;\n"                                                                                              \
    "    }\n"                                                                                                        \
    "#endif\n"                                                                                                       \
    "    if (r == 2 && m == 3 && row < (LATHE_ALL_REGISTERS && words ? 510 : 1020)) {\n"                             \
    "        " K##_TILE "3x2(out, a, w, n, row, step, LATHE_ALL_REGISTERS && words);\n"                              \
    "        return;\n"                                                                                              \
    "    }\n"                                                                                                        \
    "    if (r == 2 && m == 2 && row < (words ? 510 : 2040)) {\n"                                                    \
    "        " K##_TILE "2x2(out, a, w, n, row, step, words);\n"                                                     \
    "        return;\n"                                                                                              \
    "    }\n"                                                                                                        \
    "    if (r == 4 && m == 1) {\n"                                                                                  \
    "        " K##_TILE "1x4(out, a, w, n, row, step, words);\n"                                                     \
    "        return;\n"                                                                                              \
    "    }\n"                                                                                                        \
    "    if (r == 2 && m == 1) {\n"                                                                                  \
    "        " K##_TILE "1x2(out, a, w, n, row, step, words);\n"                                                     \
    "        return;\n"                                                                                              \
    "    }\n"                                                                                                        \
    "#endif\n"

static const char any_tile[] =
    "/* out[i * r + j] += sums of products of run i of a, from a + i * row on, and row j of w: n steps of 4;\n"
    " * elements 1 and 2 of each step of w have changed places, and steps of r "
    "rows lie side by side. words: runs begin at\n"
    " * words of memory. */\n"
    "static LATHE_ALWAYS void lathe_dot_rows(int32_t *out, const int16_t *a, const int8_t *w, int m, int r, int n,\n"
    "                                        int row, int step, int words)\n"
    "{\n"
    "    int i, j, k, e;\n"
    DOT_TILE_CALLS(BYTES)
    "    (void)words;\n"
    "    for (k = 0; k < n; k++, a += step, w += 4 * r)\n"
    "        for (e = 0; e < 4; e++)\n"
    "            for (i = 0; i < m; i++)\n"
    "                for (j = 0; j < r; j++)\n"
    "                    out[i * r + j] += a[i * row + e] * w[4 * j + e % 2 * 2 + e / 2];\n"
    "}\n";

void needs_write_dot_rows(writer *w, bool macros)
{
    w_str(w, always);
    w_str(w, words);
    w_str(w, steps);
    w_str(w, tile_text);
    w_str(w, macros ? "" : tiles);
    w_str(w, no_tiles);
    w_str(w, macros ? "" : any_tile);
}

/* Of a byte one half is for the first word of data, the other for the second; both are made 16 times as large, so that
 * their sign is that of a byte. */
static const char nibble_tiles[] =
    "#if LATHE_DOT_TILES\n"
    "/* Numbers of 4 bits, 16 times as large: four weights of two channels from four bytes, as LATHE_WEIGHTS. */\n"
    "#define LATHE_NIBBLES                                                         \\\n"
    "    \"ldr %[v], [%[w]], #4\\n and %[f], %[v], #0xf0f0f0f0\\n lsl %[v], %[v], #4\\n\" \\\n"
    "    \"and %[v], %[v], #0xf0f0f0f0\\n sxtb16 %[e], %[f]\\n sxtb16 %[f], %[f], ror #8\\n\" \\\n"
    "    \"sxtb16 %[u], %[v]\\n sxtb16 %[v], %[v], ror #8\\n\"\n"
    NIBBLE_WEIGHTS
    "#undef LATHE_PAIR\n"
    "#define LATHE_PAIR(s, t) LATHE_NIBBLES_BY(\"x\", \"f\", s, t)\n"
    DOT_TILES(NIBBLES)
    "#undef LATHE_WEIGHTS\n" BYTE_WEIGHTS
    "#undef LATHE_PAIR\n"
    BYTE_PAIR
    "#endif\n";

static const char four_nibbles[] =
    "#if defined(__GNUC__) && defined(__ARM_FEATURE_DSP) && defined(__thumb2__) && defined(__OPTIMIZE__)\n"
    "/* Four bytes of weights of 4 bits, of two channels, by two words of data. */\n"
    "#define LATHE_NIBBLES_BY(x, y, s, t)                                          \\\n"
    "    \"ldr %[u], [%[w]], #4\\n lsl %[v], %[u], #4\\n and %[u], %[u], #0xf0f0f0f0\\n\" \\\n"
    "    \"and %[v], %[v], #0xf0f0f0f0\\n sxtb16 %[e], %[u]\\n sxtb16 %[u], %[u], ror #8\\n\" \\\n"
    "    \"smlad %\" s \", %[\" x \"], %[e], %\" s \"\\n smlad %\" t \", %[\" x \"], %[u], %\" t \"\\n\" \\\n"
    "    \"sxtb16 %[e], %[v]\\n sxtb16 %[v], %[v], ror #8\\n\"                         \\\n"
    "    \"smlad %\" s \", %[\" y \"], %[e], %\" s \"\\n smlad %\" t \", %[\" y \"], %[v], %\" t \"\\n\"\n"
    "#endif\n";

/* Elsewhere shifts with a sign: one instruction for each half where there are bit fields, else two. */
static const char half_of[] =
    "/* A number of 4 bits: the upper half of a byte, or the lower one. */\n"
    "#define LATHE_HALF(byte, low) ((low) ? (int8_t)((uint32_t)(byte) << 4) >> 4 : (byte) >> 4)\n";

static const char any_nibbles[] =
    "/* lathe_dot_rows by weights of 4 bits, r of them even. A step of two channels is four bytes: 2 * h + c has\n"
    " * elements h and h + 2 of channel c. */\n"
    "static LATHE_ALWAYS void lathe_nibble_rows(int32_t *out, const int16_t *a, const int8_t *w, int m, int r, int n,\n"
    "                                           int row, int step, int words)\n"
    "{\n"
    "    int i, j, k, e;\n"
    DOT_TILE_CALLS(NIBBLES)
    "    (void)words;\n"
    "    for (k = 0; k < n; k++, a += step, w += 2 * r)\n"
    "        for (e = 0; e < 4; e++) /* the elements 0, 2, 1, 3: both halves of a byte */\n"
    "            for (i = 0; i < m; i++)\n"
    "                for (j = 0; j < r; j++)\n"
    "                    out[i * r + j] += a[i * row + e % 2 * 2 + e / 2] *\n"
    "                                      LATHE_HALF(w[j / 2 * 4 + e / 2 * 2 + j % 2], e % 2);\n"
    "}\n";

void needs_write_nibble_rows(writer *w)
{
    w_str(w, four_nibbles);
    w_str(w, nibble_tiles);
    w_str(w, half_of);
    w_str(w, any_nibbles);
}

#define BYTE_FOUR_BY \
    "#define LATHE_FOUR_BY(s, t)                                                   \\\n"                  \
    "    \"ldrd %[u], %[v], [%[w]], #8\\n sxtb16 %[e], %[u]\\n sxtb16 %[u], %[u], ror #8\\n\" \\\n"       \
    "    \"smlad %\" s \", %[x], %[e], %\" s \"\\n smlad %\" s \", %[y], %[u], %\" s \"\\n\"   \\\n"      \
    "    \"sxtb16 %[e], %[v]\\n sxtb16 %[v], %[v], ror #8\\n\"                         \\\n"              \
    "    \"smlad %\" t \", %[x], %[e], %\" t \"\\n smlad %\" t \", %[y], %[v], %\" t \"\\n\"\n"

static const char four_bytes[] =
    "#if defined(__GNUC__) && defined(__ARM_FEATURE_DSP) && defined(__thumb2__) && defined(__OPTIMIZE__)\n"
    "#define LATHE_BYTE_TILES 1\n"
    "/* Every second byte, then the others: of four numbers of data, x and y, "
    "and of four weights of two channels. */\n"
    "#define LATHE_FOUR(wider) \"ldr %[y], [%[a]], #4\\n \" wider \" %[x], "
    "%[y]\\n \" wider \" %[y], %[y], ror #8\\n\"\n"
    BYTE_FOUR_BY
    "#define LATHE_BYTES_2(wider) LATHE_FOUR(wider) LATHE_FOUR_BY(\"0\", \"1\")\n"
    "#define LATHE_BYTES_4(wider) LATHE_BYTES_2(wider) LATHE_FOUR_BY(\"2\", \"3\")\n"
    "#define LATHE_BYTES(text, ...)                                                \\\n"
    "    __asm__ volatile(\"1:\\n\" text \"cmp %[w], %[end]\\n bne 1b\\n\"                \\\n"
    "                     : __VA_ARGS__, [a] \"+r\"(a), [w] \"+r\"(w), [x] \"=&r\"(x), [y] \"=&r\"(y), \\\n"
    "                       [u] \"=&r\"(u), [v] \"=&r\"(v), [e] \"=&r\"(f)               \\\n"
    "                     : [end] \"r\"(end)                                         \\\n"
    "                     : \"cc\", \"memory\")\n"
    "#define LATHE_BYTES_BY(wider)                                                 \\\n"
    "    do {                                                                      \\\n"
    "        if (r == 2)                                                           \\\n"
    "            LATHE_BYTES(LATHE_BYTES_2(wider), \"+r\"(s0), \"+r\"(s1));            \\\n"
    "        else if (n % 2 != 0)                                                  \\\n"
    "            LATHE_BYTES(LATHE_BYTES_4(wider), \"+r\"(s0), \"+r\"(s1), \"+r\"(s2), \"+r\"(s3)); \\\n"
    "        else                                                                  \\\n"
    "            LATHE_BYTES(LATHE_BYTES_4(wider) LATHE_BYTES_4(wider), \"+r\"(s0), \"+r\"(s1), \\\n"
    "                        \"+r\"(s2), \"+r\"(s3));                                  \\\n"
    "    } while (0)\n"
    "#else\n"
    "#define LATHE_BYTE_TILES 0\n"
    "#endif\n";

/* bytes: of four weights; begin: of the sums; two, one: what becomes of those of the upper channels, of the others. */
#define DOT_BYTES_TILES(bytes, begin, two, one) \
    "#if LATHE_BYTE_TILES\n"                                                                                          \
    "    if (r == 4 || r == 2) {\n"                                                                                   \
    "        const int8_t *const end = w + " bytes " * r * n;\n"                                                      \
    "        int32_t " begin ", x, y, u, v, f;\n"                                                                     \
    "        if (is_signed)\n"                                                                                        \
    "            LATHE_BYTES_BY(\"sxtb16\");\n"                                                                       \
    "        else\n"                                                                                                  \
    "            LATHE_BYTES_BY(\"uxtb16\");\n"                                                                       \
    "        if (r == 4)\n"                                                                                           \
    "            " two ";\n"                                                                                          \
    "        " one ";\n"                                                                                              \
    "        return;\n"                                                                                               \
    "    }\n"                                                                                                         \
    "#endif\n"

static const char dot_bytes[] =
    "/* out[j] += sums of products of the bytes a and row j of w: n steps of "
    "4; steps of r rows lie side by side. */\n"
    "static LATHE_ALWAYS void lathe_dot_bytes(int32_t *out, const void *data, "
    "const int8_t *w, int r, int n, int is_signed)\n"
    "{\n"
    "    const uint8_t *a = (const uint8_t *)data;\n"
    "    int j, k, e;\n"
    DOT_BYTES_TILES("4", "s0 = out[0], s1 = out[1], s2 = out[r - 2], s3 = out[r - 1]", "out[2] = s2, out[3] = s3",
                    SUMS_2(BYTES_PUT))
    "    for (k = 0; k < n; k++, a += 4, w += 4 * r)\n"
    "        for (e = 0; e < 4; e++)\n"
    "            for (j = 0; j < r; j++)\n"
    "                out[j] += (is_signed ? (int8_t)a[e] : a[e]) * w[4 * j + e];\n"
    "}\n";

/* LATHE_FOUR_BY by four bytes, in the same assembly. */
static const char nibble_bytes[] =
    "#if LATHE_BYTE_TILES\n"
    "#undef LATHE_FOUR_BY\n"
    "#define LATHE_FOUR_BY(s, t) LATHE_NIBBLES_BY(\"x\", \"y\", s, t)\n"
    "#endif\n"
    "/* lathe_dot_bytes by weights of 4 bits, r of them even: of a step's four bytes 2 * h + c has elements 2 * h and\n"
    " * 2 * h + 1 of channel c. */\n"
    "static LATHE_ALWAYS void lathe_nibble_bytes(int32_t *out, const void *data, const int8_t *w, int r, int n,\n"
    "                                            int is_signed)\n"
    "{\n"
    "    const uint8_t *a = (const uint8_t *)data;\n"
    "    int j, k, e;\n"
    DOT_BYTES_TILES("2", SUMS_4(NIBBLES_GET), "out[2] += s2 >> 4, out[3] += s3 >> 4", SUMS_2(NIBBLES_PUT))
    "    for (k = 0; k < n; k++, a += 4, w += 2 * r)\n"
    "        for (e = 0; e < 4; e++)\n"
    "            for (j = 0; j < r; j++)\n"
    "                out[j] += (is_signed ? (int8_t)a[e] : a[e]) *\n"
    "                          LATHE_HALF(w[j / 2 * 4 + e / 2 * 2 + j % 2], e % 2);\n"
    "}\n"
    "#if LATHE_BYTE_TILES\n"
    "#undef LATHE_FOUR_BY\n"
    BYTE_FOUR_BY
    "#endif\n";

void needs_write_nibble_bytes(writer *w)
{
    w_str(w, four_nibbles);
    w_str(w, half_of);
    w_str(w, nibble_bytes);
}

void needs_write_dot_bytes(writer *w, bool macros)
{
    w_str(w, always);
    w_str(w, four_bytes);
    w_str(w, macros ? "" : dot_bytes);
}

#define BYTE_TAPS \
    "#define LATHE_TAPS \"ldrsb %[p], [%[w]]\\n ldrsb %[q], [%[w], #1]\\n ldrsb %[y], [%[w], #2]\\n\" \\\n"           \
    "    \"pkhbt %[p], %[p], %[q], lsl #16\\n pkhbt %[q], %[q], %[y], lsl #16\\n\"\n"

/* Words of two neighbours by the taps 0, 1 (p) and 1, 2 (q): every second result begins in the upper half of a word. */
static const char taps[] =
    "#if defined(__GNUC__) && defined(__ARM_FEATURE_DSP) && defined(__thumb2__) && defined(__OPTIMIZE__) && \\\n"
    "    !defined(LATHE_FRAME_POINTER)\n"
    "#define LATHE_TAPS_3 1\n"
    BYTE_TAPS
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

#define TAPS_DENSE(name, type) \
    "static LATHE_ALWAYS int lathe_" name "_near(int32_t *s, const int16_t *a, " type "w, int m)\n"                   \
    "{\n"                                                                                                             \
    "    int32_t x, y, p, q;\n"                                                                                       \
    "    if (m == 6)\n"                                                                                               \
    "        __asm__(LATHE_BEGIN LATHE_TWO(\"4\", \"0\", \"1\", \"x\", \"y\")\n"                                      \
    "                LATHE_TWO(\"8\", \"2\", \"3\", \"y\", \"x\")\n"                                                  \
    "                LATHE_TWO(\"12\", \"4\", \"5\", \"x\", \"y\")\n"                                                 \
    "                LATHE_TAPS_END(LATHE_S(0), LATHE_S(1), LATHE_S(2), LATHE_S(3), LATHE_S(4), LATHE_S(5)));\n"      \
    "    else if (m == 5)\n"                                                                                          \
    "        __asm__(LATHE_BEGIN LATHE_TWO(\"4\", \"0\", \"1\", \"x\", \"y\")\n"                                      \
    "                LATHE_TWO(\"8\", \"2\", \"3\", \"y\", \"x\")\n"                                                  \
    "                LATHE_ONE(\"12\", \"4\", \"x\", \"y\")\n"                                                        \
    "                LATHE_TAPS_END(LATHE_S(0), LATHE_S(1), LATHE_S(2), LATHE_S(3), LATHE_S(4)));\n"                  \
    "    else if (m == 4)\n"                                                                                          \
    "        __asm__(LATHE_BEGIN LATHE_TWO(\"4\", \"0\", \"1\", \"x\", \"y\")\n"                                      \
    "                LATHE_TWO(\"8\", \"2\", \"3\", \"y\", \"x\")\n"                                                  \
    "                LATHE_TAPS_END(LATHE_S(0), LATHE_S(1), LATHE_S(2), LATHE_S(3)));\n"                              \
    "    else if (m == 3)\n"                                                                                          \
    "        __asm__(LATHE_BEGIN LATHE_TWO(\"4\", \"0\", \"1\", \"x\", \"y\") LATHE_ONE(\"8\", \"2\", \"y\", \"x\")\n" \
    "                LATHE_TAPS_END(LATHE_S(0), LATHE_S(1), LATHE_S(2)));\n"                                          \
    "    else if (m == 2)\n"                                                                                          \
    "        __asm__(LATHE_BEGIN LATHE_TWO(\"4\", \"0\", \"1\", \"x\", \"y\")\n"                                      \
    "                LATHE_TAPS_END(LATHE_S(0), LATHE_S(1)));\n"                                                      \
    "    else\n"                                                                                                      \
    "        return 0;\n"                                                                                             \
    "    return 1;\n"                                                                                                 \
    "}\n\n"

#define TAPS_APART(name, type) \
    "static LATHE_ALWAYS int lathe_" name "_apart(int32_t *s, const int16_t *a, " type "w, int m)\n"                  \
    "{\n"                                                                                                             \
    "    int32_t x, y, p, q;\n"                                                                                       \
    "    if (m == 6)\n"                                                                                               \
    "        __asm__(LATHE_BEGIN LATHE_STEP(\"4\", \"0\", \"x\", \"y\") LATHE_STEP(\"8\", \"1\", \"y\", \"x\")\n"     \
    "                LATHE_STEP(\"12\", \"2\", \"x\", \"y\") LATHE_STEP(\"16\", \"3\", \"y\", \"x\")\n"               \
    "                LATHE_STEP(\"20\", \"4\", \"x\", \"y\") LATHE_ONE(\"24\", \"5\", \"y\", \"x\")\n"                \
    "                LATHE_TAPS_END(LATHE_S(0), LATHE_S(1), LATHE_S(2), LATHE_S(3), LATHE_S(4), LATHE_S(5)));\n"      \
    "    else if (m == 4)\n"                                                                                          \
    "        __asm__(LATHE_BEGIN LATHE_STEP(\"4\", \"0\", \"x\", \"y\") LATHE_STEP(\"8\", \"1\", \"y\", \"x\")\n"     \
    "                LATHE_STEP(\"12\", \"2\", \"x\", \"y\") LATHE_ONE(\"16\", \"3\", \"y\", \"x\")\n"                \
    "                LATHE_TAPS_END(LATHE_S(0), LATHE_S(1), LATHE_S(2), LATHE_S(3)));\n"                              \
    "    else if (m == 3)\n"                                                                                          \
    "        __asm__(LATHE_BEGIN LATHE_STEP(\"4\", \"0\", \"x\", \"y\") LATHE_STEP(\"8\", \"1\", \"y\", \"x\")\n"     \
    "                LATHE_ONE(\"12\", \"2\", \"x\", \"y\") LATHE_TAPS_END(LATHE_S(0), LATHE_S(1), LATHE_S(2)));\n"   \
    "    else\n"                                                                                                      \
    "        return 0;\n"                                                                                             \
    "    return 1;\n"                                                                                                 \
    "}\n"

/* In pieces: C99 promises room for 4095 characters in one. */
static const char taps_dense[] = "#if LATHE_TAPS_3\n" TAPS_DENSE("taps", "const int8_t *");

static const char taps_apart[] = TAPS_APART("taps", "const int8_t *") "#endif\n\n";

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

void needs_write_taps_row(writer *w, bool macros)
{
    w_str(w, always);
    w_str(w, taps);
    if (macros)
        return;
    w_str(w, taps_dense);
    w_str(w, taps_apart);
    w_str(w, any_taps);
}

/* The taps of a row from one number. */
static const char number_taps[] =
    "#if LATHE_TAPS_3\n"
    "#undef LATHE_TAPS\n"
    "#define LATHE_TAPS \"sbfx %[p], %[w], #0, #4\\n sbfx %[q], %[w], #4, #4\\n sbfx %[y], %[w], #8, #4\\n\" \\\n"
    "    \"pkhbt %[p], %[p], %[q], lsl #16\\n pkhbt %[q], %[q], %[y], lsl #16\\n\"\n"
    TAPS_DENSE("nibble_taps", "int32_t ");

static const char number_taps_apart[] =
    TAPS_APART("nibble_taps", "int32_t ")
    "#undef LATHE_TAPS\n"
    BYTE_TAPS
    "#endif\n\n";

static const char any_number[] =
    "/* lathe_taps_row by weights of 4 bits: number k of the row in bits 4 * k on of w. */\n"
    "static LATHE_ALWAYS void lathe_nibble_taps(int32_t *out, const int16_t *a, int32_t w, int m, int n, int step,\n"
    "                                           int tap)\n"
    "{\n"
    "    int i, k;\n"
    "#if LATHE_TAPS_3\n"
    "    if (n == 3 && tap == 1 && step == 1 && lathe_nibble_taps_near(out, a, w, m))\n        return;\n"
    "    if (n == 3 && tap == 1 && step == 2 && lathe_nibble_taps_apart(out, a, w, m))\n        return;\n"
    "#endif\n"
    "    for (k = 0; k < n; k++)\n"
    "        for (i = 0; i < m; i++)\n"
    "            out[i] += a[i * step + k * tap] * ((int32_t)((uint32_t)(w >> 4 * k) << 28) >> 28);\n"
    "}\n\n";

void needs_write_nibble_taps(writer *w)
{
    w_str(w, number_taps);
    w_str(w, number_taps_apart);
    w_str(w, any_number);
}
