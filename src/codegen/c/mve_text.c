/* SPDX-License-Identifier: Apache-2.0 */
/* C for Cortex-M with vectors (Helium): the code of the intrinsics of tir/intrin_mve.c, and what quantised arithmetic
 * is in lanes of four numbers, by arm_mve.h, which gcc and clang have. Without such vectors it is plain C. */
#include "codegen/c/mve.h"
#include "type/target.h"

#include <string.h>

static const char setup_text[] =
    "#if defined(__GNUC__) && defined(__ARM_FEATURE_MVE) && (__ARM_FEATURE_MVE & 2) != 0 && defined(__OPTIMIZE__)\n"
    "#include <arm_mve.h>\n#define LATHE_MVE 1 /* integers and floats */\n"
    "#define LATHE_STILL(here, elsewhere) here\n"
    "#if defined(__clang__)\n#define LATHE_PREDICATE \"memory\" /* it has no name there */\n"
    "#else\n#define LATHE_PREDICATE \"p0\"\n#endif\n"
    "#else\n#define LATHE_MVE 0\n#define LATHE_STILL(here, elsewhere) elsewhere\n#endif\n"
    "/* Loops of a few vectors, written out, would ask for more registers than there are. */\n"
    "#if LATHE_MVE && defined(__clang__)\n#define LATHE_MVE_ROLLED _Pragma(\"clang loop unroll(disable)\")\n"
    "#elif LATHE_MVE\n#define LATHE_MVE_ROLLED _Pragma(\"GCC unroll 1\")\n"
    "#else\n#define LATHE_MVE_ROLLED\n#endif\n"
    "#if defined(__GNUC__)\n#define LATHE_HERE inline __attribute__((always_inline, unused))\n"
    "#else\n#define LATHE_HERE inline\n#endif\n\n";

/* Weights of r channels in registers; of 4 bits a byte has those of two: the first one's, and the second one's 16 times
 * as large as they are. */
static void write_tile_weights(writer *w, uint32_t r, bool nibbles)
{
    for (uint32_t j = 0; j < r && !nibbles; j++)
        w_fmt(w, "            \"vldrb.8 q%u, [%%[w%u]], #16\\n\"\n", j, j);
    for (uint32_t j = 0; j < r && nibbles; j += 2)
        w_fmt(w,
              "            \"vldrb.8 q%u, [%%[w%u]], #16\\n\"\n"
              "            \"vshl.i8 q%u, q%u, #4\\n vshr.s8 q%u, q%u, #4\\n\"\n",
              j, j / 2, j + 1, j, j, j);
}

#define BYTES_TILE   "lathe_tile"
#define NIBBLES_TILE "lathe_nibble_tile"

/* Sums of m pixels by r channels. They stand in even registers, which VMLADAVA asks for; the count is in LR, for which
 * no other register is left, and the last step has no lanes beyond the end. Where gcc makes a vector of the sums, it
 * would look for the instruction's operands in its lanes, and end. */
static void write_tile(writer *w, uint32_t m, uint32_t r, bool nibbles)
{
    const uint32_t rows = nibbles ? r / 2 : r;
    w_fmt(w,
          "static LATHE_HERE void %s_%ux%u(int32_t *s, const int8_t *a0, const int8_t *w0, int n,\n"
          "                                       int a_step, int w_step)\n{\n"
          "    register int left __asm__(\"lr\") = n;\n",
          nibbles ? NIBBLES_TILE : BYTES_TILE, m, r);
    for (uint32_t i = 1; i < m; i++)
        w_fmt(w, "    const int8_t *a%u = a0 + %u * a_step;\n", i, i);
    for (uint32_t j = 1; j < rows; j++)
        w_fmt(w, "    const int8_t *w%u = w0 + %u * w_step;\n", j, j);
    for (uint32_t k = 0; k < m * r; k++)
        w_fmt(w, "    int32_t s%u = s[%u];\n", k, k);
    for (uint32_t k = 0; k < m * r; k++)
        w_fmt(w, "    __asm__(\"\" : \"+r\"(s%u));\n", k);
    w_str(w, "    __asm__ volatile(\"dlstp.8 lr, lr\\n1:\\n\"\n");
    write_tile_weights(w, r, nibbles);
    for (uint32_t i = 0; i < m; i++) {
        w_fmt(w, "            \"vldrb.8 q%u, [%%[a%u]], #16\\n\"\n", r + i, i);
        for (uint32_t j = 0; j < r; j++)
            w_fmt(w, "            \"vmladava.s8 %%[s%u], q%u, q%u\\n\"\n", i * r + j, j, r + i);
    }
    w_str(w, "            \"letp lr, 1b\\n\"\n            : \"+r\"(left)");
    for (uint32_t k = 0; k < m * r; k++)
        w_fmt(w, ", [s%u] \"+Te\"(s%u)", k, k);
    w_str(w, "\n             ");
    for (uint32_t i = 0; i < m; i++)
        w_fmt(w, " , [a%u] \"+r\"(a%u)", i, i);
    for (uint32_t j = 0; j < rows; j++)
        w_fmt(w, " , [w%u] \"+r\"(w%u)", j, j);
    w_str(w, "\n            : : \"q0\", \"q1\", \"q2\", \"q3\", \"q4\", \"memory\");\n");
    for (uint32_t k = 0; k < m * r; k++)
        w_fmt(w, "    __asm__(\"\" : \"+r\"(s%u));\n    s[%u] = s%u;\n", k, k, k);
    w_str(w, "    (void)a_step;\n    (void)w_step;\n}\n\n");
}

/* Bytes and weights of 4 bits differ in names, in the distance of channels, and in that sums of the second one of two
 * channels are 16 times as large on the way. */
#define TILED_TEXT(name, tile, rows, begin, end)                                                                     \
    "/* Tiles of m by `by` sums, as many as there are whole ones; the first channel that is left. */\n"             \
    "static LATHE_HERE int " name "(int32_t *out, const int8_t *a, const int8_t *w, int m, int by, int r,\n"        \
    "                                        int h, int n, int a_step, int a_row, int w_step, int w_row,\n"         \
    "                                        int out_step, int first)\n"                                            \
    "{\n"                                                                                                           \
    "    int i, j, k, y;\n"                                                                                         \
    "    for (j = 0; j + by <= r; j += by, w += " rows " * w_step) {\n"                                             \
    "        int32_t s[6];\n"                                                                                       \
    "        for (i = 0; i < m; i++)\n"                                                                             \
    "            for (k = 0; k < by; k++)\n"                                                                        \
    "                s[i * by + k] = first ? 0 : out[i * out_step + j + k]" begin ";\n"                             \
    "        for (y = 0; y < h; y++) {\n"                                                                           \
    "            if (m == 3)\n"                                                                                     \
    "                " tile "_3x2(s, a + y * a_row, w + y * w_row, n, a_step, w_step);\n"                           \
    "            else if (m == 2)\n"                                                                                \
    "                " tile "_2x2(s, a + y * a_row, w + y * w_row, n, a_step, w_step);\n"                           \
    "            else\n"                                                                                            \
    "                " tile "_1x4(s, a + y * a_row, w + y * w_row, n, a_step, w_step);\n"                           \
    "        }\n"                                                                                                   \
    "        for (i = 0; i < m; i++)\n"                                                                             \
    "            for (k = 0; k < by; k++)\n"                                                                        \
    "                out[i * out_step + j + k] = s[i * by + k]" end ";\n"                                           \
    "    }\n"                                                                                                       \
    "    return j;\n"                                                                                               \
    "}\n"                                                                                                           \
    "#endif\n\n"

static const char tiled_text[] = TILED_TEXT("lathe_dot_tiles", BYTES_TILE, "by", "", "");

static const char dot_text[] =
    "/* out[i * out_step + j] (first: from 0 on) += sum over y below h and n bytes from a + i * a_step + y * a_row\n"
    " * and w + j * w_step + y * w_row on of their products. */\n"
    "static LATHE_HERE void lathe_mve_dot(int32_t *out, const int8_t *a, const int8_t *w, int m, int r, int h,\n"
    "                                       int n, int a_step, int a_row, int w_step, int w_row, int out_step,\n"
    "                                       int first)\n"
    "{\n"
    "    int i, j = 0, y;\n"
    "#if LATHE_MVE\n"
    "    if (m <= 3)\n"
    "        j = lathe_dot_tiles(out, a, w, m, m == 1 ? 4 : 2, r, h, n, a_step, a_row, w_step, w_row, out_step,\n"
    "                            first);\n"
    "#endif\n"
    "    for (; j < r; j++)\n"
    "        for (i = 0; i < m; i++) {\n"
    "            int32_t s = first ? 0 : out[i * out_step + j];\n"
    "            for (y = 0; y < h; y++) {\n"
    "                const int8_t *b = a + i * a_step + y * a_row, *c = w + j * w_step + y * w_row;\n"
    "#if LATHE_MVE\n"
    "                lathe_tile_1x1(&s, b, c, n, 0, 0);\n"
    "#else\n"
    "                int k;\n"
    "                for (k = 0; k < n; k++)\n"
    "                    s += b[k] * c[k];\n"
    "#endif\n"
    "            }\n"
    "            out[i * out_step + j] = s;\n"
    "        }\n"
    "}\n\n";

static const char nibbles_text[] =
    TILED_TEXT("lathe_nibble_tiles", NIBBLES_TILE, "by / 2", " * (k % 2 ? 16 : 1)", " >> k % 2 * 4")
    "/* lathe_mve_dot by weights of 4 bits, r of them even: a byte has those of two channels, the first one in its\n"
    " * upper half; the second one's are taken 16 times as large, and so are its sums on the way. */\n"
    "static LATHE_HERE void lathe_mve_nibbles(int32_t *out, const int8_t *a, const int8_t *w, int m, int r, int h,\n"
    "                                         int n, int a_step, int a_row, int w_step, int w_row, int out_step,\n"
    "                                         int first)\n"
    "{\n"
    "    int i, j = 0, y;\n"
    "#if LATHE_MVE\n"
    "    if (m <= 3)\n"
    "        j = lathe_nibble_tiles(out, a, w, m, m == 1 ? 4 : 2, r, h, n, a_step, a_row, w_step, w_row, out_step,\n"
    "                               first);\n"
    "#endif\n"
    "    for (; j < r; j += 2)\n"
    "        for (i = 0; i < m; i++) {\n"
    "            int32_t *to = out + i * out_step + j, s[2];\n"
    "            s[0] = first ? 0 : to[0];\n"
    "            s[1] = first ? 0 : to[1] * 16;\n"
    "            for (y = 0; y < h; y++) {\n"
    "                const int8_t *b = a + i * a_step + y * a_row, *c = w + j / 2 * w_step + y * w_row;\n"
    "#if LATHE_MVE\n"
    "                " NIBBLES_TILE "_1x2(s, b, c, n, 0, 0);\n"
    "#else\n"
    "                int k;\n"
    "                for (k = 0; k < n; k++) {\n"
    "                    s[0] += b[k] * (c[k] >> 4);\n"
    "                    s[1] += b[k] * (int8_t)((uint32_t)c[k] << 4);\n"
    "                }\n"
    "#endif\n"
    "            }\n"
    "            to[0] = s[0];\n"
    "            to[1] = s[1] >> 4;\n"
    "        }\n"
    "}\n\n";

/* --- data that stays in registers --- */

/* Where a few pixels' bytes fit into STILL registers, they stay there while the weights of all channels pass by. What
 * differs in the text is in the bits of c_need.lanes. */
const char *mve_still_name(arena *a, uint32_t key)
{
    return arena_printf(a, "lathe_still_%ux%u%s%s%s%s%s", key & MVE_PIXELS, key >> MVE_VECTORS & 0xf,
                        key & MVE_TAIL ? "_tail" : "", key & MVE_FAR ? "_far" : "", key & MVE_ADDS ? "_add" : "",
                        key & MVE_SHARED ? "_near" : "", key & MVE_NIBBLES ? "_nibbles" : "");
}

/* Vector v of a channel's weights, or of two channels', into register q; behind the last one the next ones begin. */
static void load_still_weights(writer *w, uint32_t v, uint32_t vectors, uint32_t key, uint32_t q)
{
    const bool last = v + 1 == vectors, tail = last && key & MVE_TAIL;
    w_fmt(w, "        \"%s %s q%u, [%%[w]]%s\\n\"\n", tail ? "vpst\\n" : "", tail ? "vldrbt.u8" : "vldrb.8", q,
          last ? key & MVE_FAR ? "\\n add %[w], %[w], %[on]" : ", %[on]" : ", #16");
}

/* Register q by vector v of all pixels; sums from number `first` on. */
static void multiply_still(writer *w, uint32_t v, uint32_t key, uint32_t q, uint32_t first)
{
    const uint32_t pixels = key & MVE_PIXELS, vectors = key >> MVE_VECTORS & 0xf;
    for (uint32_t i = 0; i < pixels; i++)
        w_fmt(w, "        \"vmladav%s.s8 %%[s%u], q%u, q%u\\n\"\n", v || key & MVE_ADDS ? "a" : "", first + i,
              key & MVE_SHARED ? i + v : i * vectors + v, q);
}

static void write_still_stores(writer *w, uint32_t pixels)
{
    for (uint32_t i = pixels; i-- > 1;)
        w_fmt(w, "        \"str %%[s%u], [%%[out], %%[o%u]]\\n\"\n", i, i);
    w_str(w, "        \"str %[s0], [%[out]], #4\\n\"\n");
}

/* One channel: its weights, vector after vector, by those of all pixels. */
static void write_still_channel(writer *w, uint32_t pixels, uint32_t vectors, uint32_t key)
{
    for (uint32_t i = 0; key & MVE_ADDS && i < pixels; i++)
        w_fmt(w, "        \"ldr %%[s%u], [%%[out], %%[o%u]]\\n\"\n", i, i);
    for (uint32_t v = 0; v < vectors; v++) {
        load_still_weights(w, v, vectors, key, v % 2 ? 6 : 7);
        multiply_still(w, v, key, v % 2 ? 6 : 7, 0);
    }
    write_still_stores(w, pixels);
}

/* Two channels, whose weights of 4 bits share bytes, at once. Those of the second one are taken 16 times as large where
 * shifting the sums costs less. */
static void write_still_pair(writer *w, uint32_t pixels, uint32_t vectors, uint32_t key)
{
    const bool larger = vectors > pixels;
    for (uint32_t i = 0; key & MVE_ADDS && i < pixels; i++)
        w_fmt(w, "        \"ldrd %%[s%u], %%[s%u], [%%[out], %%[o%u]]\\n\"\n", i, pixels + i, i);
    for (uint32_t i = 0; key & MVE_ADDS && larger && i < pixels; i++)
        w_fmt(w, "        \"lsl %%[s%u], %%[s%u], #4\\n\"\n", pixels + i, pixels + i);
    for (uint32_t v = 0; v < vectors; v++) {
        load_still_weights(w, v, vectors, key, 7);
        w_str(w, "        \"vshr.s8 q6, q7, #4\\n\"\n");
        multiply_still(w, v, key, 6, 0);
        w_fmt(w, "        \"vshl.i8 q7, q7, #4\\n%s\"\n", larger ? "" : " vshr.s8 q7, q7, #4\\n");
        multiply_still(w, v, key, 7, pixels);
    }
    for (uint32_t i = pixels; i-- > 0;) {
        if (larger)
            w_fmt(w, "        \"asr %%[s%u], %%[s%u], #4\\n\"\n", pixels + i, pixels + i);
        w_fmt(w, i ? "        \"strd %%[s%u], %%[s%u], [%%[out], %%[o%u]]\\n\"\n"
                   : "        \"strd %%[s%u], %%[s%u], [%%[out]], #8\\n\"\n", i, pixels + i, i);
    }
}

/* The same, one channel after the other: there are registers for the sums of one. */
static void write_still_halves(writer *w, uint32_t pixels, uint32_t vectors, uint32_t key)
{
    for (uint32_t half = 0; half < 2; half++) {
        for (uint32_t i = 0; key & MVE_ADDS && i < pixels; i++)
            w_fmt(w, "        \"ldr %%[s%u], [%%[out], %%[o%u]]\\n\"\n", i, i);
        for (uint32_t v = 0; v < vectors; v++) {
            if (half == 0 && vectors > 1) /* read again for the second one */
                w_fmt(w, "        \"vldrb.8 q7, [%%[w], #%u]\\n\"\n", v * 16);
            else if (half == 0 || vectors > 1)
                load_still_weights(w, v, vectors, key, 7);
            w_str(w, half == 0 ? "        \"vshr.s8 q6, q7, #4\\n\"\n"
                               : "        \"vshl.i8 q6, q7, #4\\n vshr.s8 q6, q6, #4\\n\"\n");
            multiply_still(w, v, key, 6, 0);
        }
        write_still_stores(w, pixels);
    }
}

static void write_still_data(writer *w, uint32_t pixels, uint32_t vectors, uint32_t key)
{
    for (uint32_t v = 0; key & MVE_SHARED && v < pixels + vectors - 1; v++)
        w_fmt(w, "        \"vldrb.8 q%u, [%%[a], #%u]\\n\"\n", v, v * 16);
    for (uint32_t i = 0; !(key & MVE_SHARED) && i < pixels; i++) {
        for (uint32_t v = 0; v < vectors; v++)
            if (v + 1 == vectors && key & MVE_TAIL)
                w_fmt(w, "        \"vpst\\n vldrbt.u8 q%u, [%%[a], #%u]\\n\"\n", i * vectors + v, v * 16);
            else
                w_fmt(w, "        \"vldrb.8 q%u, [%%[a], #%u]\\n\"\n", i * vectors + v, v * 16);
        if (i + 1 < pixels)
            w_str(w, "        \"add %[a], %[a], %[step]\\n\"\n");
    }
}

void mve_write_still(arena *a, writer *w, uint32_t key)
{
    const uint32_t pixels = key & MVE_PIXELS, vectors = key >> MVE_VECTORS & 0xf, done = (vectors - 1) * 16;
    const bool nibbles = (key & MVE_NIBBLES) != 0, pair = nibbles && pixels <= MVE_PAIRED;
    const uint32_t sums = pair ? 2 * pixels : pixels;
    w_fmt(w,
          "#if LATHE_MVE\n"
          "/* out[i * out_step + j] %s the products of n bytes from a + i * step and w + j%s * on on, j below r. */\n"
          "static LATHE_HERE void %s(int32_t *out, const int8_t *a, const int8_t *w, int r, int n,\n"
          "                         int step, int on, int out_step)\n{\n    int32_t s0",
          key & MVE_ADDS ? "+=" : "=", nibbles ? " / 2" : "", mve_still_name(a, key));
    for (uint32_t i = 1; i < sums; i++)
        w_fmt(w, ", s%u", i);
    w_str(w, ";\n    __asm__ volatile(\n");
    if (key & MVE_TAIL)
        w_str(w, "        \"vctp.8 %[n]\\n\"\n");
    write_still_data(w, pixels, vectors, key);
    w_str(w, "        \"dls lr, %[r]\\n1:\\n\"\n");
    (pair ? write_still_pair : nibbles ? write_still_halves : write_still_channel)(w, pixels, vectors, key);
    w_str(w, "        \"le lr, 1b\\n\"\n        : [out] \"+r\"(out), [a] \"+r\"(a), [w] \"+r\"(w)");
    for (uint32_t i = 0; i < sums; i++)
        w_fmt(w, ", [s%u] \"=&Te\"(s%u)", i, i);
    w_fmt(w, "\n        : [n] \"r\"(n - %u), [r] \"r\"(r%s), [step] \"rI\"(step), [on] \"i\"(on - %u)", done,
          nibbles ? " / 2" : "", done);
    for (uint32_t i = 0; i < pixels; i++)
        w_fmt(w, ", [o%u] \"i\"(%u * out_step)", i, 4 * i);
    w_str(w, "\n        : \"lr\", \"memory\", \"q0\", \"q1\", \"q2\", \"q3\", \"q4\", \"q5\", \"q6\", \"q7\"");
    w_str(w, key & MVE_TAIL ? ", LATHE_PREDICATE);\n" : ");\n");
    w_str(w, "    (void)n;\n}\n#endif\n\n");
}

/* Four words of a vector are four columns; a column that the window has not is its first one again, by weights of 0. */
static const char dot_words_text[] =
    "#if LATHE_MVE\n"
    "/* Lane 4 * x + y: the weight of row y and column x; 0 where the window has none. */\n"
    "static LATHE_HERE int8x16_t lathe_window(const int8_t *w, int p, int q, int w_row)\n"
    "{\n"
    "    const uint8x16_t lane = vidupq_n_u8(0, 1), x = vshrq_n_u8(lane, 2), y = vandq_u8(lane, vdupq_n_u8(3));\n"
    "    const uint32_t rows = ((1u << (uint32_t)p) - 1u) * 0x1111u, columns = (1u << (4u * (uint32_t)q)) - 1u;\n"
    "    const mve_pred16_t in = (mve_pred16_t)(rows & columns);\n"
    "    return vldrbq_gather_offset_z_s8(w, vaddq_u8(x, vmulq_n_u8(y, (uint8_t)w_row)), in);\n"
    "}\n\n"
    "static LATHE_HERE uint32x4_t lathe_columns(const int8_t *a, int q, int a_tap)\n"
    "{\n"
    "    const uint32_t step = (uint32_t)a_tap;\n"
    "    const uint32x4_t v = {0, q > 1 ? step : 0, q > 2 ? 2 * step : 0, q > 3 ? 3 * step : 0};\n"
    "    return vaddq_n_u32(v, (uint32_t)(uintptr_t)a);\n"
    "}\n\n"
    "#endif\n\n";

static const char dot_words_tile_text[] =
    "#if LATHE_MVE\n"
    "#define LATHE_MVE_WORDS(add)                                                                       \\\n"
    "    \"vldrw.u32 q6, [%q[at]]\\n\" \"vmladav\" add \".s8 %[s0], q6, %q[w0]\\n\"                         \\\n"
    "    \"vldrw.u32 q7, [%q[at], #4]\\n\" \"vmladav\" add \".s8 %[s1], q7, %q[w1]\\n\"                     \\\n"
    "    \"vldrw.u32 q6, [%q[at], #8]\\n\" \"vmladav\" add \".s8 %[s2], q6, %q[w2]\\n\"                     \\\n"
    "    \"vldrw.u32 q7, [%q[at], #12]\\n\" \"vadd.i32 %q[at], %q[at], %[step]\\n\"                       \\\n"
    "    \"vmladav\" add \".s8 %[s3], q7, %q[w3]\\n\"                                                     \\\n"
    "    \"strd %[s0], %[s1], [%[out]], #8\\n strd %[s2], %[s3], [%[out]], #8\\n\"\n"
    "#define LATHE_MVE_WORDS_END                                                                        \\\n"
    "    : [out] \"+r\"(out), [at] \"+w\"(at), [s0] \"=&Te\"(s0), [s1] \"=&Te\"(s1), [s2] \"=&Te\"(s2),       \\\n"
    "      [s3] \"=&Te\"(s3)                                                                          \\\n"
    "    : [m] \"r\"(m), [step] \"r\"(a_step), [w0] \"w\"(w0), [w1] \"w\"(w1), [w2] \"w\"(w2), [w3] \"w\"(w3) \\\n"
    "    : \"lr\", \"memory\", \"q6\", \"q7\"\n"
    "static LATHE_HERE void lathe_windows_4(int32_t *out, uint32x4_t at, int8x16_t w0, int8x16_t w1, int8x16_t w2,\n"
    "                                       int8x16_t w3, int m, int a_step, int first)\n"
    "{\n"
    "    int32_t s0, s1, s2, s3;\n"
    "    if (first)\n"
    "        __asm__ volatile(\"dls lr, %[m]\\n1:\\n\" LATHE_MVE_WORDS(\"\") \"le lr, 1b\\n\" LATHE_MVE_WORDS_END);\n"
    "    else\n"
    "        __asm__ volatile(\"dls lr, %[m]\\n1:\\n\"\n"
    "                         \"ldrd %[s0], %[s1], [%[out]]\\n ldrd %[s2], %[s3], [%[out], #8]\\n\"\n"
    "                         LATHE_MVE_WORDS(\"a\") \"le lr, 1b\\n\" LATHE_MVE_WORDS_END);\n"
    "}\n"
    "#endif\n\n";

/* `many`: the weights of channels 0 to 3; `one`: those of channel j; `weight`: its weight of row y and column x. */
#define WINDOW_TEXT(name, many, one, weight)                                                                         \
    "static LATHE_HERE void " name "(int32_t *out, const int8_t *a, const int8_t *w, int m, int r, int p,\n"        \
    "                                          int q, int a_step, int a_tap, int w_step, int w_row, int out_step,\n" \
    "                                          int first)\n"                                                        \
    "{\n"                                                                                                           \
    "    int i, j, x, y;\n"                                                                                         \
    "#if LATHE_MVE\n"                                                                                               \
    "    if (((uintptr_t)a & 3u) == 0 && w_row <= 64) {\n"                                                          \
    "        uint32x4_t at = lathe_columns(a, q, a_tap);\n"                                                         \
    "        if (r == 4 && out_step == 4) {\n" many                                                                 \
    "            lathe_windows_4(out, at, w0, w1, w2, w3, m, a_step, first);\n"                                     \
    "            return;\n"                                                                                         \
    "        }\n"                                                                                                   \
    "        for (j = 0; j < r; j++) {\n"                                                                           \
    "            const int8x16_t weights = " one ";\n"                                                              \
    "            at = lathe_columns(a + 4 * j, q, a_tap);\n"                                                        \
    "            for (i = 0; i < m; i++) {\n"                                                                       \
    "                int8x16_t window; /* the builtin says nothing of the memory that it reads */\n"                \
    "                __asm__ volatile(\"vldrw.u32 %q0, [%q1]\" : \"=&w\"(window) : \"w\"(at) : \"memory\");\n"       \
    "                out[i * out_step + j] = vmladavaq_s8(first ? 0 : out[i * out_step + j], window, weights);\n"   \
    "                at = vaddq_n_u32(at, (uint32_t)a_step);\n"                                                     \
    "            }\n"                                                                                               \
    "        }\n"                                                                                                   \
    "        return;\n"                                                                                             \
    "    }\n"                                                                                                       \
    "#endif\n"                                                                                                      \
    "    for (i = 0; i < m; i++)\n"                                                                                 \
    "        for (j = 0; j < r; j++) {\n"                                                                           \
    "            int32_t sum = first ? 0 : out[i * out_step + j];\n"                                                \
    "            for (y = 0; y < p; y++)\n"                                                                         \
    "                for (x = 0; x < q; x++)\n"                                                                     \
    "                    sum += a[i * a_step + x * a_tap + 4 * j + y] * " weight ";\n"                              \
    "            out[i * out_step + j] = sum;\n"                                                                    \
    "        }\n"                                                                                                   \
    "}\n\n"

static const char window_text[] =
    "/* out[i * out_step + j] (first: from 0 on) += sum over x, y of a[i * a_step + x * a_tap + 4 * j + y] by\n"
    " * w[j * w_step + y * w_row + x], y below p and x below q. */\n"
    WINDOW_TEXT("lathe_mve_window",
                "            const int8x16_t w0 = lathe_window(w, p, q, w_row);\n"
                "            const int8x16_t w1 = lathe_window(w + w_step, p, q, w_row);\n"
                "            const int8x16_t w2 = lathe_window(w + 2 * w_step, p, q, w_row);\n"
                "            const int8x16_t w3 = lathe_window(w + 3 * w_step, p, q, w_row);\n",
                "lathe_window(w + j * w_step, p, q, w_row)", "w[j * w_step + y * w_row + x]");

static const char window_nibbles_text[] =
    "#define LATHE_HALF(byte, low) ((low) ? (int8_t)((uint32_t)(byte) << 4) >> 4 : (byte) >> 4)\n"
    "#if LATHE_MVE\n"
    "/* Of vectors the same. */\n"
    "static LATHE_HERE int8x16_t lathe_half(int8x16_t pair, int low)\n"
    "{\n"
    "    return vshrq_n_s8(low ? vshlq_n_s8(pair, 4) : pair, 4);\n"
    "}\n"
    "#endif\n\n"
    "/* lathe_mve_window by weights of 4 bits: a byte has those of two channels, the first one in its upper half. */\n"
    WINDOW_TEXT("lathe_mve_window_nibbles",
                "            const int8x16_t u = lathe_window(w, p, q, w_row);\n"
                "            const int8x16_t v = lathe_window(w + w_step, p, q, w_row);\n"
                "            const int8x16_t w0 = lathe_half(u, 0), w1 = lathe_half(u, 1);\n"
                "            const int8x16_t w2 = lathe_half(v, 0), w3 = lathe_half(v, 1);\n",
                "lathe_half(lathe_window(w + j / 2 * w_step, p, q, w_row), j % 2)",
                "LATHE_HALF(w[j / 2 * w_step + y * w_row + x], j % 2)");

static const char side_by_side_text[] =
    "#if LATHE_MVE\n"
    "/* Sixteen channels of each column. */\n"
    "#define LATHE_SIDES(loads, steps)                                                                  \\\n"
    "    __asm__ volatile(\"dls lr, %[n]\\n1:\\n\" loads \"vst40.8 {q0, q1, q2, q3}, [%[o]]\\n\"              \\\n"
    "                     \"vst41.8 {q0, q1, q2, q3}, [%[o]]\\n vst42.8 {q0, q1, q2, q3}, [%[o]]\\n\"       \\\n"
    "                     \"vst43.8 {q0, q1, q2, q3}, [%[o]]\\n add %[o], %[o], %[out_step]\\n\"            \\\n"
    "                     steps \"le lr, 1b\\n\"                                                          \\\n"
    "                     : [o] \"+r\"(o), [a] \"+r\"(a), [b] \"+r\"(b), [c] \"+r\"(c), [d] \"+r\"(d)             \\\n"
    "                     : [n] \"r\"(columns), [step] \"rI\"(step), [out_step] \"rI\"(out_step)              \\\n"
    "                     : \"lr\", \"memory\", \"q0\", \"q1\", \"q2\", \"q3\")\n"
    "static LATHE_HERE void lathe_sides_16(int8_t *o, const int8_t *a, const int8_t *b, const int8_t *c,\n"
    "                                      const int8_t *d, int m, int columns, int step, int out_step)\n"
    "{\n"
    "    if (m == 4)\n"
    "        LATHE_SIDES(\"vldrb.8 q0, [%[a]]\\n vldrb.8 q1, [%[b]]\\n vldrb.8 q2, [%[c]]\\n vldrb.8 q3, [%[d]]\\n\",\n"
    "                    \"add %[a], %[a], %[step]\\n add %[b], %[b], %[step]\\n\"\n"
    "                    \"add %[c], %[c], %[step]\\n add %[d], %[d], %[step]\\n\");\n"
    "    else /* what stands in the words' last byte is multiplied by 0 */\n"
    "        LATHE_SIDES(\"vldrb.8 q0, [%[a]]\\n vldrb.8 q1, [%[b]]\\n vldrb.8 q2, [%[c]]\\n\",\n"
    "                    \"add %[a], %[a], %[step]\\n add %[b], %[b], %[step]\\n add %[c], %[c], %[step]\\n\");\n"
    "}\n"
    "#endif\n\n";

static const char side_text[] =
    "/* out[x * out_step + 4 * i + j] = a[j * row + x * step + i], i below n, j below m, x below columns. */\n"
    "static LATHE_HERE void lathe_mve_words(int8_t *out, const int8_t *a, int n, int m, int columns, int row,\n"
    "                                       int step, int out_step)\n"
    "{\n"
    "    int i, j, x;\n"
    "#if LATHE_MVE\n"
    "    const int8_t *b = m > 1 ? a + row : a, *c = m > 2 ? b + row : a, *d = m > 3 ? c + row : a;\n"
    "    if (step == n && out_step == 4 * n) { /* one run */\n"
    "        n *= columns;\n"
    "        columns = 1;\n"
    "    }\n"
    "    for (i = 0; columns > 1 && n - i >= 16; i += 16)\n"
    "        lathe_sides_16(out + 4 * i, a + i, b + i, c + i, d + i, m, columns, step, out_step);\n"
    "    if (columns == 1 && n >= 16) {\n"
    "        lathe_sides_16(out, a, b, c, d, m, n / 16, 16, 64);\n"
    "        i = n / 16 * 16;\n"
    "    }\n"
    "    for (; i < n && (((uintptr_t)out | (unsigned)out_step) & 3u) == 0; i += 4) {\n"
    "        const mve_pred16_t in = vctp32q((uint32_t)(n - i));\n"
    "        for (x = 0; x < columns; x++) {\n"
    "            const int at = x * step + i;\n"
    "            uint32x4_t v = vldrbq_z_u32((const uint8_t *)a + at, in);\n"
    "            v = vsliq_n_u32(v, vldrbq_z_u32((const uint8_t *)b + at, in), 8);\n"
    "            v = vsliq_n_u32(v, vldrbq_z_u32((const uint8_t *)c + at, in), 16);\n"
    "            v = vsliq_n_u32(v, vldrbq_z_u32((const uint8_t *)d + at, in), 24);\n"
    "            vstrwq_p_u32((uint32_t *)(void *)(out + x * out_step + 4 * i), v, in);\n"
    "        }\n"
    "    }\n"
    "#else\n"
    "    i = 0;\n"
    "#endif\n"
    "    for (; i < n; i++)\n"
    "        for (x = 0; x < columns; x++)\n"
    "            for (j = 0; j < m; j++)\n"
    "                out[x * out_step + 4 * i + j] = a[j * row + x * step + i];\n"
    "}\n\n";

void mve_write_setup(writer *w)
{
    w_str(w, setup_text);
}

void mve_write_dot(writer *w, bool nibbles)
{
    const uint8_t tiles[][2] = {{3, 2}, {2, 2}, {1, 4}, {1, nibbles ? 2 : 1}};
    w_str(w, "#if LATHE_MVE\n");
    for (size_t i = 0; i < sizeof tiles / sizeof *tiles; i++)
        write_tile(w, tiles[i][0], tiles[i][1], nibbles);
    w_str(w, nibbles ? "" : tiled_text);
    w_str(w, nibbles ? nibbles_text : dot_text);
}

void mve_write_windows(writer *w)
{
    w_str(w, dot_words_text);
    w_str(w, dot_words_tile_text);
}

void mve_write_window(writer *w, bool nibbles)
{
    w_str(w, nibbles ? window_nibbles_text : window_text);
}

void mve_write_words(writer *w)
{
    w_str(w, side_by_side_text);
    w_str(w, side_text);
}

/* --- lanes of four --- */

void mve_write_lanes(writer *w)
{
    w_str(w, "static LATHE_HERE f32x4 lathe_f32x4_of(i32x4 x)\n{\n"
             "#if LATHE_MVE && LATHE_VECTORS\n    return (f32x4)vcvtq_f32_s32((int32x4_t)x);\n#else\n"
             "    f32x4 r;\n    int i;\n    for (i = 0; i < 4; i++)\n"
             "        LATHE_LANE(r, i) = (float)LATHE_LANE(x, i);\n    return r;\n#endif\n}\n\n"
             "/* a * b + s and a * b, rounded once. */\n"
             "static LATHE_HERE f32x4 lathe_f32x4_fma_once(f32x4 a, f32x4 b, f32x4 s)\n{\n"
             "#if LATHE_MVE && LATHE_VECTORS\n"
             "    return (f32x4)vfmaq_f32((float32x4_t)s, (float32x4_t)a, (float32x4_t)b);\n#else\n"
             "    int i;\n    for (i = 0; i < 4; i++)\n"
             "        LATHE_LANE(s, i) = (float)((double)LATHE_LANE(a, i) * (double)LATHE_LANE(b, i) +\n"
             "                                   (double)LATHE_LANE(s, i));\n    return s;\n#endif\n}\n\n"
             "static LATHE_HERE f32x4 lathe_f32x4_fma_by(f32x4 a, float k, f32x4 s)\n{\n"
             "#if LATHE_MVE && LATHE_VECTORS\n"
             "    return (f32x4)vfmaq_n_f32((float32x4_t)s, (float32x4_t)a, k);\n#else\n"
             "    int i;\n    for (i = 0; i < 4; i++)\n"
             "        LATHE_LANE(s, i) = (float)((double)LATHE_LANE(a, i) * (double)k + (double)LATHE_LANE(s, i));\n"
             "    return s;\n#endif\n}\n\n"
             "static LATHE_HERE f32x4 lathe_f32x4_product_once(f32x4 a, f32x4 b)\n{\n"
             "#if LATHE_MVE && LATHE_VECTORS\n"
             "    float32x4_t p = vmulq_f32((float32x4_t)a, (float32x4_t)b);\n"
             "    __asm__(\"\" : \"+w\"(p)); /* no part of a sum */\n    return (f32x4)p;\n#else\n"
             "    int i;\n    for (i = 0; i < 4; i++)\n"
             "        LATHE_LANE(a, i) = (float)((double)LATHE_LANE(a, i) * (double)LATHE_LANE(b, i));\n"
             "    return a;\n#endif\n}\n\n");
}

void mve_write_load(writer *w, dtype dt)
{
    w_fmt(w,
          "static LATHE_HERE i32x4 lathe_i32x4_of_%s(const %s *p)\n{\n"
          "#if LATHE_MVE && LATHE_VECTORS\n    return (i32x4)vldrbq_%s32(p);\n#else\n"
          "    i32x4 r;\n    int i;\n    for (i = 0; i < 4; i++)\n        LATHE_LANE(r, i) = p[i];\n    return r;\n"
          "#endif\n}\n\n",
          dtype_name(dt), dtype_c_name(dt), dt == DT_I8 ? "s" : "u");
}

/* Rounded, with the zero point, and within the type's range: bytes are stored, or stay in lanes of i32. Narrowing goes
 * through 16 bits, in assembly because the compilers would keep a copy of what they narrow. */
static void write_end(writer *w, dtype to, bool in_lanes)
{
    const char *u = to == DT_I8 ? "" : "u", *sign = to == DT_I8 ? "s" : "u";
    if (in_lanes)
        w_fmt(w,
              "    __asm__(\"vqmovnb.s32 %%q0, %%q0\\n vqmov%snb.s16 %%q0, %%q0\\n vmovlb.%s8 %%q0, %%q0\\n\"\n"
              "            \"vmovlb.%s16 %%q0, %%q0\" : \"+w\"(q));\n"
              "    return (i32x4)q;\n",
              u, sign, sign);
    else
        w_fmt(w,
              "    __asm__(\"vqmovnb.s32 %%q0, %%q0\\n vqmov%snb.s16 %%q0, %%q0\" : \"+w\"(q));\n"
              "    vstrbq_%s32(p, %s);\n",
              u, sign, to == DT_I8 ? "q" : "vreinterpretq_u32_s32(q)");
}

/* A helper's head, and its form without vectors: `lane` is a byte of the result. */
static void write_rounding(writer *w, dtype to, bool in_lanes, const char *name, const char *args, const char *fast,
                           const char *lane)
{
    const char *byte = dtype_name(to), *one = strncmp(name, "rounded", 7) == 0 ? "rounded" : name;
    if (in_lanes)
        w_fmt(w, "static LATHE_HERE i32x4 lathe_i32x4_%s_%s(%s, int32_t zero)\n{\n", name, byte, args);
    else
        w_fmt(w, "static LATHE_HERE void lathe_%sx4_%s(%s *p, %s, int32_t zero)\n{\n", byte, name, dtype_c_name(to),
              args);
    w_fmt(w, "#if LATHE_MVE && LATHE_VECTORS\n%s", fast);
    write_end(w, to, in_lanes);
    w_fmt(w, "#else\n    int i;\n%s    for (i = 0; i < 4; i++)\n        %s = lathe_%s_%s(%s, zero);\n%s#endif\n}\n\n",
          in_lanes ? "    i32x4 r;\n" : "", in_lanes ? "LATHE_LANE(r, i)" : "p[i]", one, byte, lane,
          in_lanes ? "    return r;\n" : "");
}

void mve_write_rounded(writer *w, dtype to, bool in_lanes, bool sure)
{
    static const char round[] = "    int32x4_t q = vqaddq_n_s32(vcvtnq_s32_f32((float32x4_t)v), zero);\n";
    static const char checked[] = "    const float32x4_t x = (float32x4_t)v;\n"
                                  "    int32x4_t q = vqaddq_n_s32(vcvtnq_s32_f32(x), zero);\n"
                                  "    __asm__(\"vcmp.f32 ne, %q1, %q1\\n vpsel %q0, %q2, %q0\"\n"
                                  "            : \"+w\"(q) : \"w\"(x), \"w\"(vdupq_n_s32(0)) : LATHE_PREDICATE);\n";
    w_str(w, "/* To the nearest integers, ties to even, plus zero, to the nearest that there are");
    w_str(w, sure ? ". */\n" : "; 0 of a NaN. */\n");
    write_rounding(w, to, in_lanes, sure ? "rounded_number" : "rounded", "f32x4 v", sure ? round : checked,
                   "LATHE_LANE(v, i)");
}

void mve_write_scaled(writer *w, dtype to, bool in_lanes)
{
    w_str(w, "/* acc * k, both as binary32, rounded as above. */\n");
    write_rounding(w, to, in_lanes, "scaled", "i32x4 acc, f32x4 k",
                   "    const float32x4_t x = vmulq_f32(vcvtq_f32_s32((int32x4_t)acc), (float32x4_t)k);\n"
                   "    int32x4_t q = vqaddq_n_s32(vcvtnq_s32_f32(x), zero);\n",
                   "LATHE_LANE(acc, i), LATHE_LANE(k, i)");
}

/* p where x compares with y, else q: names of the helper's parameters. The conditions lt and le are the opposites of
 * ge and gt, and true of a NaN: these are asked the other way round. */
static const char *choice_text(arena *a, tir_op test, const char *x, const char *y, const char *p, const char *q)
{
    const bool turned = test == TIR_LT || test == TIR_LE;
    const tir_op asked = test == TIR_LT ? TIR_GT : test == TIR_LE ? TIR_GE : test;
    return arena_printf(a,
                        "    f32x4 r;\n    __asm__(\"vcmp.f32 %s, %%q1, %%q2\\n vpsel %%q0, %%q3, %%q4\"\n"
                        "            : \"=w\"(r) : \"w\"(%s), \"w\"(%s), \"w\"(%s), \"w\"(%s) : LATHE_PREDICATE);\n",
                        needs_op_name(asked), turned ? y : x, turned ? x : y, p, q);
}

const char *mve_choice(arena *a, const c_need *n)
{
    const bool least = n->op == TIR_MIN;
    const char *text, *keep = "";
    if (n->dt != DT_F32 || n->lanes != MVE_LANES)
        return NULL;
    if (n->kind == NEED_VCHOOSE)
        text = choice_text(a, n->op, "a", "b", "x", "y");
    else if (n->kind == NEED_VBOUND)
        text = choice_text(a, least ? TIR_GE : TIR_LE, "x", "y", "y", "x");
    else if (n->kind == NEED_VEXTREME || (n->kind == NEED_VOP && (least || n->op == TIR_MAX)))
        text = choice_text(a, least ? TIR_LT : TIR_GT, "x", "y", "x", "y");
    else
        return NULL;
    if (n->kind == NEED_VOP)
        keep = "    __asm__(\"vcmp.f32 ne, %q1, %q1\\n vpsel %q0, %q1, %q0\"\n"
               "            : \"+w\"(r) : \"w\"(x) : LATHE_PREDICATE);\n";
    return arena_printf(a, "%s%s    return r;", text, keep);
}

void mve_need_lanes(c_emit *e)
{
    const dtype types[2] = {DT_I32, DT_F32};
    needs_add(e->needs, (c_need){.kind = NEED_MVE});
    for (uint32_t i = 0; i < 2; i++)
        needs_add(e->needs, (c_need){.kind = NEED_VECTOR, .dt = types[i], .lanes = MVE_LANES});
    needs_add(e->needs, (c_need){.kind = NEED_MVE_LANES});
    e->vector_bytes = e->vector_bytes > 16 ? e->vector_bytes : 16;
}

bool mve_vectors(const c_emit *e)
{
    const target *t = e->f->target;
    return t && (t->features & TARGET_MVE) != 0;
}
