/* SPDX-License-Identifier: Apache-2.0 */
/* Cortex-M's loops over neighboring bytes: bounds, four bytes in a word (SSUB8, SEL), tables, and bytes that are stored
 * twice. Their C is in kernel/dsp and kernel/mve. Loops become these instructions in pass/bytes.c. */
#include "target/cortex_m/cost.h"
#include "tir/family.h"
#include "tir/tables.h"
#include "type/target.h"

#define COUNT             TIR_OPEN_EXTENT("n", INT32_MAX)
#define INSTR(operands, price)                                                                                         \
    .body = TIR_INSTRUCTION, .passed = operands, .selected = true, .features = TARGET_DSP, .cost = price

#define BOUNDS_NEST(type, value)                                                                                       \
    "primfn(from: handle, out: handle) -> ()\n"                                                                        \
    "  attr = {\"global_symbol\": \"bounds\", \"inputs\": 1}\n"                                                        \
    "  buffers = {from: Buffer(" type ", [n]), out: Buffer(" type ", [n])} {\n"                                        \
    "  for (i: int64, 0, n) {\n"                                                                                       \
    "    out[i] = " value "\n"                                                                                         \
    "  }\n"                                                                                                            \
    "}\n"
#define ABOVE(type) "max((" type "*)from[i], cast(" type ", least))"
#define BOUNDS(type, end, word)                                                                                        \
    {.name = "bytes_above" end,                                                                                        \
     .help = "bytes of " type ", none of them below a bound",                                                          \
     .nest = BOUNDS_NEST(type, ABOVE(type)),                                                                           \
     .n_symbols = 2,                                                                                                   \
     .symbols = {COUNT, TIR_OPEN_STRIDE("least")},                                                                     \
     .call = "lathe_above_" word "(out, from, n, least)",                                                              \
     .kernel = "kernel/dsp/above_" word ".h",                                                                          \
     INSTR("aa", cortex_m_cost_bounds)},                                                                               \
    {.name = "bytes_between" end,                                                                                      \
     .help = "bytes of " type " between two bounds",                                                                   \
     .nest = BOUNDS_NEST(type, "min(" ABOVE(type) ", cast(" type ", most))"),                                          \
     .n_symbols = 3,                                                                                                   \
     .symbols = {COUNT, TIR_OPEN_STRIDE("least"), TIR_OPEN_STRIDE("most")},                                            \
     .call = "lathe_clip_" word "(out, from, n, least, most)",                                                         \
     .kernel = "kernel/dsp/clip_" word ".h",                                                                           \
     INSTR("aa", cortex_m_cost_bounds)}

#define TWICE(type, end, to, from)                                                                                     \
    {.name = "bytes_twice" end,                                                                                        \
     .help = "each byte of " type " twice, one behind the other",                                                      \
     .nest = "primfn(from: handle, out: handle) -> ()\n"                                                               \
             "  attr = {\"global_symbol\": \"twice\", \"inputs\": 1}\n"                                               \
             "  buffers = {from: Buffer(" type ", [n]), out: Buffer(" type ", [n, 2])} {\n"                            \
             "  for (i: int64, 0, n) {\n"                                                                              \
             "    out[i, 0] = (" type "*)from[i]\n"                                                                    \
             "    out[i, 1] = (" type "*)from[i]\n"                                                                    \
             "  }\n"                                                                                                   \
             "}\n",                                                                                                    \
     .n_symbols = 1,                                                                                                   \
     .symbols = {COUNT},                                                                                               \
     .call = "lathe_bytes_twice(" to "out, " from "from, n)",                                                          \
     .kernel = "kernel/dsp/twice_bytes.h",                                                                             \
     INSTR("aa", cortex_m_cost_bounds)}

static const tir_intrin rows[] = {
    BOUNDS("int8", "", "i8"),
    BOUNDS("uint8", "_u8", "u8"),
    TIR_TABLES("bytes_of_table", "kernel/dsp/table.h", cortex_m_cost_table, TARGET_DSP),
    TIR_TABLES("gathered_bytes_of_table", "kernel/mve/table.h", cortex_m_cost_table, TARGET_MVE),
    TWICE("int8", "", "(uint8_t *)", "(const uint8_t *)"),
    TWICE("uint8", "_u8", "", ""),
};

const tir_instructions tir_instructions_bytes = {rows, sizeof rows / sizeof *rows};
