/* SPDX-License-Identifier: Apache-2.0 */
/* Cortex-M's products of bytes and 16-bit numbers, two in an instruction and four in a step. Their C is in kernel/dsp;
 * processors without these instructions run it as plain C. */
#include "target/cortex_m/cost.h"
#include "tir/family.h"
#include "type/target.h"

/* Elements 1 and 2 of a step of weights have changed places: widening every second byte makes neighbors of them
 * again. */
#define DOT_ROWS(where)\
    "primfn(a: handle, w: handle, out: handle) -> ()\n"                                                               \
    "  attr = {\"global_symbol\": \"dot_rows\", \"inputs\": 2}\n"                                                     \
    "  buffers = {a: Buffer(int16, [m, n, 2, 2], strides=[a_row, a_step, 2, 1]" where "),\n"                          \
    "             w: Buffer(int8, [n, r, 2, 2], align=4),\n"                                                          \
    "             out: Buffer(int32, [m, r])} {\n"                                                                    \
    "  for (i: int64, 0, m) {\n"                                                                                      \
    "    for (j: int64, 0, r) {\n"                                                                                    \
    "      out[i, j] = 0\n"                                                                                           \
    "      for (k: int64, 0, n) {\n"                                                                                  \
    "        for (pair: int64, 0, 2) {\n"                                                                             \
    "          for (half: int64, 0, 2) {\n"                                                                           \
    "            out[i, j] = ((int32*)out[i, j] + (cast(int32, (int16*)a[i, k, pair, half])\n"                        \
    "                                              *cast(int32, (int8*)w[k, j, half, pair])))\n"                      \
    "          }\n"                                                                                                   \
    "        }\n"                                                                                                     \
    "      }\n"                                                                                                       \
    "    }\n"                                                                                                         \
    "  }\n"                                                                                                           \
    "}\n"
#define DOT_ROWS_SYMBOLS(STRIDE) \
    {TIR_EXTENT("m", 3), TIR_EXTENT("r", 4), TIR_OPEN_EXTENT("n", 1 << 16), STRIDE("a_row"), STRIDE("a_step")}
#define DOT_ROWS_RESET   "for (i: int64, 0, m) \"unrolled\" { for (j: int64, 0, r) \"unrolled\" { out[i, j] = 0 } }"
#define DOT_ROWS_INSTR(by_words)                                                                                       \
    .reset = DOT_ROWS_RESET, .update = TIR_INSTRUCTION, .passed = "aaa", .words = true,                                \
    .features = TARGET_DSP, .cost = cortex_m_cost_rows, .widen = 3, .channels = 1,                                     \
    .call = "lathe_dot_rows(out, a, w, m, r, n, a_row, a_step, " by_words ")",                                         \
    .runs = "lathe_dot_runs(out, $starts, $count, w, m, r, n, a_row, a_step, " by_words ")",                           \
    .kernel = "kernel/dsp/dot_rows.h", .runs_kernel = "kernel/dsp/dot_runs.h"

/* One run of bytes by a few rows; both stand as they are. */
#define DOT_BYTES(type)                                                                                               \
    "primfn(a: handle, w: handle, out: handle) -> ()\n"                                                               \
    "  attr = {\"global_symbol\": \"dot_bytes\", \"inputs\": 2}\n"                                                    \
    "  buffers = {a: Buffer(" type ", [n, 2, 2]), w: Buffer(int8, [n, r, 2, 2], align=4),\n"                          \
    "             out: Buffer(int32, [r])} {\n"                                                                       \
    "  for (j: int64, 0, r) {\n"                                                                                      \
    "    out[j] = 0\n"                                                                                                \
    "    for (k: int64, 0, n) {\n"                                                                                    \
    "      for (pair: int64, 0, 2) {\n"                                                                               \
    "        for (half: int64, 0, 2) {\n"                                                                             \
    "          out[j] = ((int32*)out[j] + (cast(int32, (" type "*)a[k, pair, half])\n"                                \
    "                                      *cast(int32, (int8*)w[k, j, pair, half])))\n"                              \
    "        }\n"                                                                                                     \
    "      }\n"                                                                                                       \
    "    }\n"                                                                                                         \
    "  }\n"                                                                                                           \
    "}\n"
#define DOT_BYTES_SYMBOLS {TIR_EXTENT("r", 4), TIR_EXTENT("n", 1 << 16)}
#define DOT_BYTES_RESET   "for (j: int64, 0, r) \"unrolled\" { out[j] = 0 }"
#define DOT_BYTES_INSTR(is_signed)                                                                                     \
    .reset = DOT_BYTES_RESET, .update = TIR_INSTRUCTION, .passed = "aaa",                                              \
    .features = TARGET_DSP, .cost = cortex_m_cost_bytes, .widen = 3, .channels = 1,                                    \
    .call = "lathe_dot_bytes(out, a, w, r, n, " is_signed ")", .kernel = "kernel/dsp/dot_bytes.h"

static const tir_intrin rows[] = {
    {.name = "dot_rows",
     .help = "a few runs of int16 by a few rows of int8: out[i, j] += a[i, k] * w[j, k], k in steps of 4",
     .nest = DOT_ROWS(", align=4"),
     .n_symbols = 5,
     .symbols = DOT_ROWS_SYMBOLS(TIR_EVEN_STRIDE),
     DOT_ROWS_INSTR("1")},
    {.name = "dot_rows_anywhere",
     .help = "dot_rows where runs need not begin at words of memory",
     .nest = DOT_ROWS(""),
     .n_symbols = 5,
     .symbols = DOT_ROWS_SYMBOLS(TIR_STRIDE),
     DOT_ROWS_INSTR("0")},
    {.name = "dot_bytes",
     .help = "a run of int8 by a few rows of int8: out[j] += a[k] * w[j, k], k in steps of 4",
     .nest = DOT_BYTES("int8"),
     .n_symbols = 2,
     .symbols = DOT_BYTES_SYMBOLS,
     DOT_BYTES_INSTR("1")},
    {.name = "dot_bytes_u8",
     .help = "dot_bytes with a run of uint8",
     .nest = DOT_BYTES("uint8"),
     .n_symbols = 2,
     .symbols = DOT_BYTES_SYMBOLS,
     DOT_BYTES_INSTR("0")},
    /* Steps of two rows of a stand side by side. */
    {.name = "dot_pairs",
     .help = "up to two runs of int16 by up to two others: out[i, j] += a[i, k] * b[j, k], k in steps of 4",
     .nest = "primfn(a: handle, b: handle, out: handle) -> ()\n"
             "  attr = {\"global_symbol\": \"dot_pairs\", \"inputs\": 2}\n"
             "  buffers = {a: Buffer(int16, [m, n, 4], strides=[4, 8, 1], align=4),\n"
             "             b: Buffer(int16, [r, n, 4], strides=[4, step, 1], align=4),\n"
             "             out: Buffer(int32, [m, r], strides=[row, 1])} {\n"
             "  for (i: int64, 0, m) {\n"
             "    for (j: int64, 0, r) {\n"
             "      out[i, j] = 0\n"
             "      for (k: int64, 0, n) {\n"
             "        for (e: int64, 0, 4) {\n"
             "          out[i, j] = ((int32*)out[i, j] + (cast(int32, (int16*)a[i, k, e])\n"
             "                                            *cast(int32, (int16*)b[j, k, e])))\n"
             "        }\n"
             "      }\n"
             "    }\n"
             "  }\n"
             "}\n",
     .n_symbols = 5,
     .symbols = {TIR_EXTENT("m", 2), TIR_EXTENT("r", 2), TIR_OPEN_EXTENT("n", 1 << 16), TIR_EVEN_STRIDE("step"),
                 TIR_STRIDE("row")},
     .body = TIR_INSTRUCTION,
     .reset = DOT_ROWS_RESET,
     .update = TIR_INSTRUCTION,
     .passed = "aaa",
     .words = true,
     .call = "lathe_dot_pairs(out, a, b, m, r, n, step, row, $begins)",
     .kernel = "kernel/dsp/dot_pairs.h",
     .features = TARGET_DSP,
     .cost = cortex_m_cost_pairs},
    /* Neighbors of one channel under one row of its window. */
    {.name = "taps_row",
     .help = "a few windows over one row, int16 by int8: out[i] += a[i * step + k * tap] * w[k]",
     .nest = "primfn(a: handle, w: handle, out: handle) -> ()\n"
             "  attr = {\"global_symbol\": \"taps_row\", \"inputs\": 2}\n"
             "  buffers = {a: Buffer(int16, [m, n], strides=[a_step, a_tap]), w: Buffer(int8, [n], strides=[1]),\n"
             "             out: Buffer(int32, [m], strides=[1])} {\n"
             "  for (i: int64, 0, m) {\n"
             "    out[i] = 0\n"
             "    for (k: int64, 0, n) {\n"
             "      out[i] = ((int32*)out[i] + (cast(int32, (int16*)a[i, k])*cast(int32, (int8*)w[k])))\n"
             "    }\n"
             "  }\n"
             "}\n",
     .n_symbols = 4,
     .symbols = {TIR_EXTENT("m", 6), TIR_EXTENT("n", 1 << 16), TIR_STRIDE("a_step"), TIR_STRIDE("a_tap")},
     .reset = "for (i: int64, 0, m) \"unrolled\" { out[i] = 0 }",
     .update = TIR_INSTRUCTION,
     .passed = "aaa",
     .call = "lathe_taps_row(out, a, w, m, n, a_step, a_tap)",
     .kernel = "kernel/dsp/taps_row.h",
     .features = TARGET_DSP,
     .cost = cortex_m_cost_taps,
     .widen = 3,
     .channels = 1},
};

const tir_instructions tir_instructions_dsp = {rows, sizeof rows / sizeof *rows};
