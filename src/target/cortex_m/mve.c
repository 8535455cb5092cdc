/* SPDX-License-Identifier: Apache-2.0 */
/* Intrinsics for Cortex-M with vectors (Helium): products of bytes, 16 of them added to one sum in a general register.
 * Their C is in kernel/mve. */
#include "target/cortex_m/cost.h"
#include "tir/family.h"
#include "type/target.h"

#define SUMS_RESET "for (i: int64, 0, m) { for (j: int64, 0, r) { out[i, j] = 0 } }"
/* The function begins the sums, or adds to them. */
#define INSTR(zeros, file, text)                                                                                      \
    .features = TARGET_MVE,                                                                                           \
    .body = TIR_INSTRUCTION, .reset = zeros, .update = TIR_INSTRUCTION, .passed = "aaa", .call = text,               \
    .kernel = "kernel/mve/" file ".h"

/* The same by weights of 4 bits: a byte has those of two channels, the first one in its upper half. */
#define HALF_OF(byte, at) \
    "(cast(int32, cast(int8, (cast(int32, (int8*)" byte ") << cast(int32, (" at "*4))))) >> 4)"
#define PAIRS_RESET \
    "for (i: int64, 0, m) { for (q: int64, 0, r) { for (j: int64, 0, 2) { out[i, q, j] = 0 } } }"
static const tir_intrin rows[] = {
    /* A window of one row is n bytes, not n rows: k stands first. */
    {.name = "mve_dot",
     .help = "windows of a few rows by weights of a few channels, int8 by int8: out[i, j] += a[i, y, k] * w[j, y, k]",
     .nest = "primfn(a: handle, w: handle, out: handle) -> ()\n"
             "  attr = {\"global_symbol\": \"mve_dot\", \"inputs\": 2}\n"
             "  buffers = {a: Buffer(int8, [m, h, n], strides=[a_step, a_row, 1]),\n"
             "             w: Buffer(int8, [r, h, n], strides=[w_step, w_row, 1]),\n"
             "             out: Buffer(int32, [m, r], strides=[out_step, 1])} {\n"
             "  for (i: int64, 0, m) {\n"
             "    for (j: int64, 0, r) {\n"
             "      out[i, j] = 0\n"
             "      for (k: int64, 0, n) {\n"
             "        for (y: int64, 0, h) {\n"
             "          out[i, j] = ((int32*)out[i, j] + (cast(int32, (int8*)a[i, y, k])\n"
             "                                            *cast(int32, (int8*)w[j, y, k])))\n"
             "        }\n"
             "      }\n"
             "    }\n"
             "  }\n"
             "}\n",
     .n_symbols = 9,
     .symbols = {TIR_EXTENT("m", 6), TIR_EXTENT("r", 1 << 16), TIR_EXTENT("h", 1 << 16), TIR_EXTENT("n", 1 << 16),
                 TIR_STRIDE("a_step"), TIR_STRIDE("a_row"), TIR_STRIDE("w_step"), TIR_STRIDE("w_row"),
                 TIR_STRIDE("out_step")},
     INSTR(SUMS_RESET, "dot",
           "lathe_mve_dot(out, a, w, m, r, h, n, a_step, a_row, w_step, w_row, out_step, $begins)"),
     .stays = TIR_STAYS_BYTES,
     .cost = cortex_m_cost_sums,
     .channels = 1},
    /* A word of a channel and a column holds its rows of the window: four columns are a vector. */
    {.name = "mve_window",
     .help = "windows of a few channels whose rows stand side by side, int8 by int8: "
             "out[i, j] += a[i, x, j, y] * w[j, y, x]",
     .nest = "primfn(a: handle, w: handle, out: handle) -> ()\n"
             "  attr = {\"global_symbol\": \"mve_window\", \"inputs\": 2}\n"
             "  buffers = {a: Buffer(int8, [m, q, r, p], strides=[a_step, a_tap, 4, 1]),\n"
             "             w: Buffer(int8, [r, p, q], strides=[w_step, w_row, 1]),\n"
             "             out: Buffer(int32, [m, r], strides=[out_step, 1])} {\n"
             "  for (i: int64, 0, m) {\n"
             "    for (j: int64, 0, r) {\n"
             "      out[i, j] = 0\n"
             "      for (y: int64, 0, p) {\n"
             "        for (x: int64, 0, q) {\n"
             "          out[i, j] = ((int32*)out[i, j] + (cast(int32, (int8*)a[i, x, j, y])\n"
             "                                            *cast(int32, (int8*)w[j, y, x])))\n"
             "        }\n"
             "      }\n"
             "    }\n"
             "  }\n"
             "}\n",
     .n_symbols = 9,
     .symbols = {TIR_EXTENT("m", 1 << 16), TIR_EXTENT("r", 4), TIR_EXTENT("p", 4), TIR_EXTENT("q", 4),
                 TIR_STRIDE("a_step"), TIR_STRIDE("a_tap"), TIR_STRIDE("w_step"), TIR_STRIDE("w_row"),
                 TIR_STRIDE("out_step")},
     INSTR(SUMS_RESET, "window",
           "lathe_mve_window(out, a, w, m, r, p, q, a_step, a_tap, w_step, w_row, out_step, $begins)"),
     .cost = cortex_m_cost_window,
     .channels = 1},
    {.name = "mve_nibbles",
     .help = "mve_dot by weights of 4 bits: a byte for two channels",
     .nest = "primfn(a: handle, w: handle, out: handle) -> ()\n"
             "  attr = {\"global_symbol\": \"mve_nibbles\", \"inputs\": 2}\n"
             "  buffers = {a: Buffer(int8, [m, h, n], strides=[a_step, a_row, 1]),\n"
             "             w: Buffer(int8, [r, h, n], strides=[w_step, w_row, 1]),\n"
             "             out: Buffer(int32, [m, r, 2], strides=[out_step, 2, 1])} {\n"
             "  for (i: int64, 0, m) {\n"
             "    for (q: int64, 0, r) {\n"
             "      for (j: int64, 0, 2) {\n"
             "        out[i, q, j] = 0\n"
             "        for (k: int64, 0, n) {\n"
             "          for (y: int64, 0, h) {\n"
             "            out[i, q, j] = ((int32*)out[i, q, j] + (cast(int32, (int8*)a[i, y, k])\n"
             "                                                    *" HALF_OF("w[q, y, k]", "j") "))\n"
             "          }\n"
             "        }\n"
             "      }\n"
             "    }\n"
             "  }\n"
             "}\n",
     .n_symbols = 9,
     .symbols = {TIR_EXTENT("m", 6), TIR_EXTENT("r", 1 << 15), TIR_EXTENT("h", 1 << 16), TIR_EXTENT("n", 1 << 16),
                 TIR_STRIDE("a_step"), TIR_STRIDE("a_row"), TIR_STRIDE("w_step"), TIR_STRIDE("w_row"),
                 TIR_STRIDE("out_step")},
     INSTR(PAIRS_RESET, "nibbles",
           "lathe_mve_nibbles(out, a, w, m, r*2, h, n, a_step, a_row, w_step, w_row, out_step, $begins)"),
     .stays = TIR_STAYS_NIBBLES,
     .cost = cortex_m_cost_sums,
     .widen = 2,
     .channels = 2},
    {.name = "mve_window_nibbles",
     .help = "mve_window by weights of 4 bits: a byte for two channels",
     .nest = "primfn(a: handle, w: handle, out: handle) -> ()\n"
             "  attr = {\"global_symbol\": \"mve_window_nibbles\", \"inputs\": 2}\n"
             "  buffers = {a: Buffer(int8, [m, e, r, 2, d], strides=[a_step, a_tap, 8, 4, 1]),\n"
             "             w: Buffer(int8, [r, d, e], strides=[w_step, w_row, 1]),\n"
             "             out: Buffer(int32, [m, r, 2], strides=[out_step, 2, 1])} {\n"
             "  for (i: int64, 0, m) {\n"
             "    for (q: int64, 0, r) {\n"
             "      for (j: int64, 0, 2) {\n"
             "        out[i, q, j] = 0\n"
             "        for (y: int64, 0, d) {\n"
             "          for (x: int64, 0, e) {\n"
             "            out[i, q, j] = ((int32*)out[i, q, j] + (cast(int32, (int8*)a[i, x, q, j, y])\n"
             "                                                    *" HALF_OF("w[q, y, x]", "j") "))\n"
             "          }\n"
             "        }\n"
             "      }\n"
             "    }\n"
             "  }\n"
             "}\n",
     .n_symbols = 9,
     .symbols = {TIR_EXTENT("m", 1 << 16), TIR_EXTENT("r", 2), TIR_EXTENT("d", 4), TIR_EXTENT("e", 4),
                 TIR_STRIDE("a_step"), TIR_STRIDE("a_tap"), TIR_STRIDE("w_step"), TIR_STRIDE("w_row"),
                 TIR_STRIDE("out_step")},
     INSTR(PAIRS_RESET, "window_nibbles",
           "lathe_mve_window_nibbles(out, a, w, m, r*2, d, e, a_step, a_tap, w_step, w_row, out_step, $begins)"),
     .cost = cortex_m_cost_window,
     .channels = 2},
    {.name = "mve_words",
     .help = "up to four rows of int8 side by side, in words: out[x, i, j] = a[j, x, i]",
     .nest = "primfn(a: handle, out: handle) -> ()\n"
             "  attr = {\"global_symbol\": \"mve_words\", \"inputs\": 1}\n"
             "  buffers = {a: Buffer(int8, [m, c, n], strides=[a_row, a_step, 1]),\n"
             "             out: Buffer(int8, [c, n, 4], strides=[out_step, 4, 1])} {\n"
             "  for (x: int64, 0, c) {\n"
             "    for (i: int64, 0, n) {\n"
             "      for (j: int64, 0, m) {\n"
             "        out[x, i, j] = (int8*)a[j, x, i]\n"
             "      }\n"
             "    }\n"
             "  }\n"
             "}\n",
     .n_symbols = 6,
     .symbols = {TIR_EXTENT("n", 1 << 16), TIR_EXTENT("m", 4), TIR_EXTENT("c", 1 << 16), TIR_STRIDE("a_row"),
                 TIR_STRIDE("a_step"), {.name = "out_step", .multiple = 4}},
     .body = TIR_INSTRUCTION,
     .passed = "aa",
     .call = "lathe_mve_words(out, a, n, m, c, a_row, a_step, out_step)",
     .kernel = "kernel/mve/words.h",
     .features = TARGET_MVE,
     .cost = cortex_m_cost_words},
};

const tir_instructions tir_instructions_mve = {rows, sizeof rows / sizeof *rows};
