/* SPDX-License-Identifier: Apache-2.0 */
/* Intrinsics of processors without vectors for weights of 4 bits, two in a byte: dot_rows and dot_bytes of intrin.c, by
 * four bytes for a step of a pair of channels. A byte has weights of one channel; its upper half is multiplied by what
 * an instruction takes from the first word of data, its lower one by what it takes from the second. */
#include "target/cortex_m/cost.h"
#include "tir/family.h"
#include "type/target.h"

/* The half of a byte, with its sign: the upper one at 0. */
#define HALF_OF(byte, at) \
    "(cast(int32, cast(int8, (cast(int32, (int8*)" byte ") << cast(int32, (" at "*4))))) >> 4)"

#define NIBBLE_ROWS(name, where)                                                                                      \
    "primfn(a: handle, w: handle, out: handle) -> ()\n"                                                               \
    "  attr = {\"global_symbol\": \"" name "\", \"inputs\": 2}\n"                                                     \
    "  buffers = {a: Buffer(int16, [m, n, 2, 2], strides=[a_row, a_step, 2, 1]" where "),\n"                          \
    "             w: Buffer(int8, [n, r, 2, 2], align=4),\n"                                                          \
    "             out: Buffer(int32, [m, r, 2])} {\n"                                                                 \
    "  for (i: int64, 0, m) {\n"                                                                                      \
    "    for (q: int64, 0, r) {\n"                                                                                    \
    "      for (j: int64, 0, 2) {\n"                                                                                  \
    "        out[i, q, j] = 0\n"                                                                                      \
    "        for (k: int64, 0, n) {\n"                                                                                \
    "          for (pair: int64, 0, 2) {\n"                                                                           \
    "            for (half: int64, 0, 2) {\n"                                                                         \
    "              out[i, q, j] = ((int32*)out[i, q, j] + (cast(int32, (int16*)a[i, k, pair, half])\n"                \
    "                                                      *" HALF_OF("w[k, q, half, j]", "pair") "))\n"              \
    "            }\n"                                                                                                 \
    "          }\n"                                                                                                   \
    "        }\n"                                                                                                     \
    "      }\n"                                                                                                       \
    "    }\n"                                                                                                         \
    "  }\n"                                                                                                           \
    "}\n"
#define NIBBLE_ROWS_SYMBOLS(STRIDE) {TIR_EXTENT("m", 3), TIR_EXTENT("r", 2), TIR_OPEN_EXTENT("n", 1 << 16), \
                             STRIDE("a_row"), STRIDE("a_step")}
#define NIBBLE_ROWS_RESET                                                                                             \
    "for (i: int64, 0, m) \"unrolled\" { for (q: int64, 0, r) \"unrolled\" { for (j: int64, 0, 2) \"unrolled\" { "    \
    "out[i, q, j] = 0 } } }"
#define NIBBLE_ROWS_INSTR(by_words)                                                                                    \
    .reset = NIBBLE_ROWS_RESET, .update = TIR_INSTRUCTION, .passed = "aaa", .words = true,                             \
    .features = TARGET_DSP, .cost = cortex_m_cost_rows, .widen = 6, .channels = 2,                                     \
    .call = "lathe_nibble_rows(out, a, w, m, r*2, n, a_row, a_step, " by_words ")",                                    \
    .runs = "lathe_nibble_runs(out, $starts, $count, w, m, r*2, n, a_row, a_step, " by_words ")",                      \
    .kernel = "kernel/dsp/nibble_rows.h", .runs_kernel = "kernel/dsp/nibble_runs.h"

#define NIBBLE_BYTES(type)                                                                                            \
    "primfn(a: handle, w: handle, out: handle) -> ()\n"                                                               \
    "  attr = {\"global_symbol\": \"nibble_bytes\", \"inputs\": 2}\n"                                                 \
    "  buffers = {a: Buffer(" type ", [n, 2, 2]), w: Buffer(int8, [n, r, 2, 2], align=4),\n"                          \
    "             out: Buffer(int32, [r, 2])} {\n"                                                                    \
    "  for (q: int64, 0, r) {\n"                                                                                      \
    "    for (j: int64, 0, 2) {\n"                                                                                    \
    "      out[q, j] = 0\n"                                                                                           \
    "      for (k: int64, 0, n) {\n"                                                                                  \
    "        for (pair: int64, 0, 2) {\n"                                                                             \
    "          for (half: int64, 0, 2) {\n"                                                                           \
    "            out[q, j] = ((int32*)out[q, j] + (cast(int32, (" type "*)a[k, pair, half])\n"                        \
    "                                              *" HALF_OF("w[k, q, pair, j]", "half") "))\n"                      \
    "          }\n"                                                                                                   \
    "        }\n"                                                                                                     \
    "      }\n"                                                                                                       \
    "    }\n"                                                                                                         \
    "  }\n"                                                                                                           \
    "}\n"
#define NIBBLE_BYTES_SYMBOLS {TIR_EXTENT("r", 2), TIR_EXTENT("n", 1 << 16)}
#define NIBBLE_BYTES_RESET \
    "for (q: int64, 0, r) \"unrolled\" { for (j: int64, 0, 2) \"unrolled\" { out[q, j] = 0 } }"
#define NIBBLE_BYTES_INSTR(is_signed)                                                                                  \
    .reset = NIBBLE_BYTES_RESET, .update = TIR_INSTRUCTION, .passed = "aaa",                                           \
    .features = TARGET_DSP, .cost = cortex_m_cost_bytes, .widen = 6, .channels = 2,                                    \
    .call = "lathe_nibble_bytes(out, a, w, r*2, n, " is_signed ")", .kernel = "kernel/dsp/nibble_bytes.h"

/* A row of a window in one number, the first weight in its lowest bits. */
#define NIBBLE_TAPS(type, row)                                                                                        \
    "primfn(a: handle, w: handle, out: handle) -> ()\n"                                                               \
    "  attr = {\"global_symbol\": \"nibble_taps\", \"inputs\": 2}\n"                                                  \
    "  buffers = {a: Buffer(int16, [m, n], strides=[a_step, a_tap]), w: Buffer(" type ", [1]),\n"                     \
    "             out: Buffer(int32, [m], strides=[1])} {\n"                                                          \
    "  for (i: int64, 0, m) {\n"                                                                                      \
    "    out[i] = 0\n"                                                                                                \
    "    for (k: int64, 0, n) {\n"                                                                                    \
    "      out[i] = ((int32*)out[i] + (cast(int32, (int16*)a[i, k])*(((" row " >> cast(int32, (k*4))) << 28) "        \
    ">> 28)))\n"                                                                                                      \
    "    }\n"                                                                                                         \
    "  }\n"                                                                                                           \
    "}\n"
#define TAPS(id, type, row, wide, what)                                                                               \
    {.name = id,                                                                                                      \
     .help = what,                                                                                                    \
     .nest = NIBBLE_TAPS(type, row),                                                                                  \
     .n_symbols = 4,                                                                                                  \
     .symbols = {TIR_EXTENT("m", 6), TIR_EXTENT("n", 8), TIR_STRIDE("a_step"), TIR_STRIDE("a_tap")},                   \
     .reset = "for (i: int64, 0, m) \"unrolled\" { out[i] = 0 }",                                                     \
     .update = TIR_INSTRUCTION,                                                                                       \
     .passed = "ava",                                                                                                 \
     .call = "lathe_nibble_taps(out, a, " wide "w, m, n, a_step, a_tap)", .kernel = "kernel/dsp/nibble_taps.h",       \
     .features = TARGET_DSP, .cost = cortex_m_cost_taps, .widen = 6, .channels = 1}

static const tir_intrin rows[] = {
    {.name = "nibble_rows",
     .help = "dot_rows by weights of 4 bits: four bytes for four products of a pair of channels",
     .nest = NIBBLE_ROWS("nibble_rows", ", align=4"),
     .n_symbols = 5,
     .symbols = NIBBLE_ROWS_SYMBOLS(TIR_EVEN_STRIDE),
     NIBBLE_ROWS_INSTR("1")},
    {.name = "nibble_rows_anywhere",
     .help = "nibble_rows where runs need not begin at words of memory",
     .nest = NIBBLE_ROWS("nibble_rows_anywhere", ""),
     .n_symbols = 5,
     .symbols = NIBBLE_ROWS_SYMBOLS(TIR_STRIDE),
     NIBBLE_ROWS_INSTR("0")},
    {.name = "nibble_bytes",
     .help = "dot_bytes by weights of 4 bits",
     .nest = NIBBLE_BYTES("int8"),
     .n_symbols = 2,
     .symbols = NIBBLE_BYTES_SYMBOLS,
     NIBBLE_BYTES_INSTR("1")},
    {.name = "nibble_bytes_u8",
     .help = "nibble_bytes with a run of uint8",
     .nest = NIBBLE_BYTES("uint8"),
     .n_symbols = 2,
     .symbols = NIBBLE_BYTES_SYMBOLS,
     NIBBLE_BYTES_INSTR("0")},
    TAPS("nibble_taps", "int16", "cast(int32, (int16*)w[0])", "(int32_t)",
         "taps_row by up to 4 weights of 4 bits in a number"),
    TAPS("nibble_taps_i32", "int32", "(int32*)w[0]", "", "taps_row by up to 8 weights of 4 bits in a number"),
};

const tir_instructions tir_instructions_nibbles = {rows, sizeof rows / sizeof *rows};
