/* SPDX-License-Identifier: Apache-2.0 */
/* C of lathe_dot_runs, which adds the products of all rows of a window to a tile of sums: the tiles of lathe_dot_rows
 * in a loop over these rows. */
#include "codegen/c/emit.h"
#include "codegen/c/needs_tiles.h"

/* The starts of runs, and what changes from one to the next, lie in memory: no register is left. */
static const char run_tiles[] =
    "#if LATHE_DOT_TILES && LATHE_ALL_REGISTERS\n"
    "#define LATHE_RUNS_ASM(before, text, r1, r2, ...)                                      \\\n"
    "    __asm__ volatile(\"2:\\n ldr %[x], %[t]\\n ldr %[a], [%[x]], #4\\n str %[x], %[t]\\n\" before      \\\n"
    "                     \"1:\\n\" text \"ldr %[x], %[end]\\n cmp %[w], %[x]\\n bne 1b\\n\"            \\\n"
    "                     \"ldr %[e], %[by]\\n add %[x], %[x], %[e]\\n str %[x], %[end]\\n\"         \\\n"
    "                     \"ldr %[e], %[last]\\n cmp %[w], %[e]\\n bne 2b\\n\"                      \\\n"
    "                     : __VA_ARGS__, [a] \"=&r\"(a), [w] \"+r\"(w), [x] \"=&r\"(x),              \\\n"
    "                       [u] \"=&r\"(u), [v] \"=&r\"(v), [e] \"=&r\"(e), [f] \"=&r\"(f),               \\\n"
    "                       [t] \"+m\"(t), [end] \"+m\"(end)                                      \\\n"
    "                     : [by] \"m\"(by), [last] \"m\"(last), [p] \"i\"(r1), [q] \"i\"(r2),           \\\n"
    "                       [s] \"i\"(2 * step)                                                \\\n"
    "                     : \"cc\", \"memory\")\n"
    "#define LATHE_RUNS_FLAT(before, text, r1, r2, ...) /* of a few steps */                \\\n"
    "    __asm__ volatile(\"2:\\n ldr %[x], %[t]\\n ldr %[a], [%[x]], #4\\n str %[x], %[t]\\n\" before      \\\n"
    "                     text \"ldr %[e], %[last]\\n cmp %[w], %[e]\\n bne 2b\\n\"                   \\\n"
    "                     : __VA_ARGS__, [a] \"=&r\"(a), [w] \"+r\"(w), [x] \"=&r\"(x),              \\\n"
    "                       [u] \"=&r\"(u), [v] \"=&r\"(v), [e] \"=&r\"(e), [f] \"=&r\"(f),               \\\n"
    "                       [t] \"+m\"(t)                                                       \\\n"
    "                     : [last] \"m\"(last), [p] \"i\"(r1), [q] \"i\"(r2), [s] \"i\"(2 * step)     \\\n"
    "                     : \"cc\", \"memory\")\n"
    "#define LATHE_RUNS_N(before, text, r1, r2, ...)                                        \\\n"
    "    do {                                                                               \\\n"
    "        if (LATHE_KNOWN(n) && n == 1)                                                  \\\n"
    "            LATHE_RUNS_FLAT(before, text, r1, r2, __VA_ARGS__);                        \\\n"
    "        else if (LATHE_KNOWN(n) && n == 2)                                             \\\n"
    "            LATHE_RUNS_FLAT(before, text text, r1, r2, __VA_ARGS__);                   \\\n"
    "        else if (LATHE_KNOWN(n) && n == 3)                                             \\\n"
    "            LATHE_RUNS_FLAT(before, text text text, r1, r2, __VA_ARGS__);              \\\n"
    "        else if (LATHE_KNOWN(n) ? n % 16 == 0 : n % 4 == 0)                                 \\\n"
    "            LATHE_RUNS_ASM(before, text text text text, r1, r2, __VA_ARGS__);          \\\n"
    "        else if (n % 2 == 0)                                                           \\\n"
    "            LATHE_RUNS_ASM(before, text text, r1, r2, __VA_ARGS__);                    \\\n"
    "        else if (LATHE_KNOWN(n) && n % 3 == 0)                                         \\\n"
    "            LATHE_RUNS_ASM(before, text text text, r1, r2, __VA_ARGS__);               \\\n"
    "        else                                                                           \\\n"
    "            LATHE_RUNS_ASM(before, text, r1, r2, __VA_ARGS__);                         \\\n"
    "    } while (0)\n";

#define RUN_TILES(K) \
    "static LATHE_ALWAYS void " K##_RUNS "3x2(int32_t *out, const int16_t *const *runs, int count, const int8_t *w,\n" \
    "                                        int n, int row, int step, int words)\n"                                  \
    "{\n"                                                                                                             \
    "    LATHE_RUNS_BEGIN(" K##_EACH ");\n"                                                                           \
    "    int32_t " SUMS_6(K##_GET) ", y;\n"                                                                           \
    "    if (words)\n"                                                                                                \
    "        LATHE_RUNS_N(\"add %[a], %[a], %[p]\\n\", LATHE_3X2, row * 2, row * -2, LATHE_SUMS_3_W);\n"              \
    "    else\n"                                                                                                      \
    "        LATHE_RUNS_N(\"\", LATHE_3X2_A, row * 2, row * 4, LATHE_SUMS_3);\n"                                      \
    "    " SUMS_6(K##_PUT) ";\n"                                                                                      \
    "}\n"                                                                                                             \
    "\n"                                                                                                              \
    "static LATHE_ALWAYS void " K##_RUNS "2x2(int32_t *out, const int16_t *const *runs, int count, const int8_t *w,\n" \
    "                                        int n, int row, int step, int words)\n"                                  \
    "{\n"                                                                                                             \
    "    LATHE_RUNS_BEGIN(" K##_EACH ");\n"                                                                           \
    "    int32_t " SUMS_4(K##_GET) ", y;\n"                                                                           \
    "    if (words)\n"                                                                                                \
    "        LATHE_RUNS_N(\"\", LATHE_2X2, row * 2, 0, LATHE_SUMS_2_W);\n"                                            \
    "    else\n"                                                                                                      \
    "        LATHE_RUNS_N(\"\", LATHE_2X2_A, row * 2, 0, LATHE_SUMS_2);\n"                                            \
    "    " SUMS_4(K##_PUT) ";\n"                                                                                      \
    "}\n"                                                                                                             \
    "\n"                                                                                                              \
    "static LATHE_ALWAYS void " K##_RUNS "1x2(int32_t *out, const int16_t *const *runs, int count, const int8_t *w,\n" \
    "                                        int n, int step, int words)\n"                                           \
    "{\n"                                                                                                             \
    "    LATHE_RUNS_BEGIN(" K##_EACH ");\n"                                                                           \
    "    int32_t " SUMS_2(K##_GET) ", y;\n"                                                                           \
    "    if (words)\n"                                                                                                \
    "        LATHE_RUNS_N(\"\", LATHE_1X2, 0, 0, LATHE_SUMS_1_W);\n"                                                  \
    "    else\n"                                                                                                      \
    "        LATHE_RUNS_N(\"\", LATHE_1X2_A, 0, 0, LATHE_SUMS_1);\n"                                                  \
    "    " SUMS_2(K##_PUT) ";\n"                                                                                      \
    "}\n"

static const char runs_begin[] =
    "#define LATHE_RUNS_BEGIN(r)                                                            \\\n"
    "    const int16_t *const *t = runs, *a;                                                \\\n"
    "    const int32_t by = 4 * (r) * n;                                                    \\\n"
    "    const int8_t *end = w + by, *const last = w + count * by;                          \\\n"
    "    int32_t x, u, v, e, f\n"
    "\n";

static const char run_functions[] = RUN_TILES(BYTES);

#define RUN_TILE_CALLS(K) \
    "#if LATHE_DOT_TILES && LATHE_ALL_REGISTERS\n"                                                                    \
    "    if (r == 2 && m == 3 && row < (words ? 510 : 1020)) {\n"                                                     \
    "        " K##_RUNS "3x2(out, runs, count, w, n, row, step, words);\n"                                            \
    "        return;\n"                                                                                               \
    "    }\n"                                                                                                         \
    "    if (r == 2 && m == 2 && row < (words ? 510 : 2040)) {\n"                                                     \
    "        " K##_RUNS "2x2(out, runs, count, w, n, row, step, words);\n"                                            \
    "        return;\n"                                                                                               \
    "    }\n"                                                                                                         \
    "    if (r == 2 && m == 1) {\n"                                                                                   \
    "        " K##_RUNS "1x2(out, runs, count, w, n, step, words);\n"                                                 \
    "        return;\n"                                                                                               \
    "    }\n"                                                                                                         \
    "#endif\n"

static const char any_runs[] =
    "/* lathe_dot_rows of `count` runs, whose weights stand one behind the other. */\n"
    "static LATHE_ALWAYS void lathe_dot_runs(int32_t *out, const int16_t *const *runs, int count, const int8_t *w,\n"
    "                                        int m, int r, int n, int row, int step, int words)\n"
    "{\n"
    "    int i;\n"
    RUN_TILE_CALLS(BYTES)
    "    LATHE_ROLLED\n"
    "    for (i = 0; i < count; i++)\n"
    "        lathe_dot_rows(out, runs[i], w + i * 4 * r * n, m, r, n, row, step, words);\n"
    "}\n";

void needs_write_dot_runs(writer *w, bool macros)
{
    w_str(w, run_tiles);
    w_str(w, runs_begin);
    w_str(w, macros ? "" : run_functions);
    w_str(w, "#endif\n");
    w_str(w, macros ? "" : any_runs);
}

static const char nibble_runs[] =
    "#if LATHE_DOT_TILES && LATHE_ALL_REGISTERS\n"
    NIBBLE_WEIGHTS
    RUN_TILES(NIBBLES)
    "#undef LATHE_WEIGHTS\n" BYTE_WEIGHTS
    "#endif\n"
    "/* lathe_nibble_rows of `count` runs, whose weights stand one behind the other. */\n"
    "static LATHE_ALWAYS void lathe_nibble_runs(int32_t *out, const int16_t *const *runs, int count, const int8_t *w,\n"
    "                                           int m, int r, int n, int row, int step, int words)\n"
    "{\n"
    "    int i;\n"
    RUN_TILE_CALLS(NIBBLES)
    "    LATHE_ROLLED\n"
    "    for (i = 0; i < count; i++)\n"
    "        lathe_nibble_rows(out, runs[i], w + i * 2 * r * n, m, r, n, row, step, words);\n"
    "}\n";

void needs_write_nibble_runs(writer *w)
{
    w_str(w, nibble_runs);
}
