/* SPDX-License-Identifier: Apache-2.0 */
/* Cortex-M's widening of bytes: into numbers of 16 bits, less a zero point, four of them in a step (SXTB16). Their C is
 * in kernel/dsp. Loops become these instructions in pass/widen.c. */
#include "target/cortex_m/cost.h"
#include "tir/family.h"
#include "type/target.h"

/* from, out: shapes and strides; value: what an element is. */
#define NEST(type, from, out, loops, ends, at, value)                                                                  \
    "primfn(from: handle, out: handle) -> ()\n"                                                                        \
    "  attr = {\"global_symbol\": \"widen\", \"inputs\": 1}\n"                                                         \
    "  buffers = {from: Buffer(" type ", " from "),\n"                                                                 \
    "             out: Buffer(int16, " out ")} {\n" loops "        out[" at "] = " value "\n" ends                     \
    "}\n"
#define OF(type, at) "(cast(int16, (" type "*)from[" at "]) - cast(int16, zero))"
#define WHERE(condition, value) "select(" condition ", " value ", cast(int16, 0))"

/* A few runs of neighbors. `read`: how many of them are read. */
#define RUNS(type, read, value)                                                                                        \
    NEST(type, "[" read ", n], strides=[from_run, 1]", "[runs, n], strides=[out_run, 1]",                              \
         "  for (r: int64, 0, runs) {\n    for (i: int64, 0, n) {\n", "    }\n  }\n", "r, i", value)
/* The same by fours, which begin `step` behind each other where they are put. */
#define FOURS(type, read, value)                                                                                       \
    NEST(type, "[" read ", n, 4], strides=[from_run, 4, 1]", "[runs, n, 4], strides=[out_run, step, 1]",               \
         "  for (r: int64, 0, runs) {\n    for (i: int64, 0, n) {\n      for (k: int64, 0, 4) {\n",                    \
         "      }\n    }\n  }\n", "r, i, k", value)
/* Channels that stand beside each other become rows of columns. */
#define PLANES(type, read, value)                                                                                      \
    NEST(type, "[" read ", channels], strides=[from_column, 1]", "[channels, columns], strides=[out_channel, 1]",      \
         "  for (c: int64, 0, channels) {\n    for (i: int64, 0, columns) {\n", "    }\n  }\n", "c, i", value)

#define COUNT_OF(symbol)  TIR_OPEN_EXTENT(symbol, INT32_MAX)
#define RUNS_SYMBOLS      COUNT_OF("runs"), COUNT_OF("n"), TIR_OPEN_STRIDE("out_run"), TIR_OPEN_STRIDE("from_run")
#define FOURS_SYMBOLS     RUNS_SYMBOLS, TIR_OPEN_STRIDE("step")
#define PLANES_SYMBOLS                                                                                                 \
    COUNT_OF("channels"), COUNT_OF("columns"), TIR_OPEN_STRIDE("out_channel"), TIR_OPEN_STRIDE("from_column")
#define ZERO              TIR_OPEN_STRIDE("zero")
#define INSIDE            {.name = "inside", .min = 0, .max = 1, .multiple = 1, .open = true}
#define SOME              TIR_OPEN_STRIDE("some")
#define INSTR(file)                                                                                                    \
    .body = TIR_INSTRUCTION, .passed = "aa", .selected = true, .features = TARGET_DSP,                                 \
    .kernel = "kernel/dsp/" file ".h"

/* Rows of a type: those that read all; those that give zeros unless `inside`; those that give zeros from run `some`
 * on. */
#define ROWS(type, end, word)                                                                                          \
    {.name = "widen_runs" end,                                                                                         \
     .help = "runs of " type " as int16, less a zero point",                                                           \
     .nest = RUNS(type, "runs", OF(type, "r, i")),                                                                     \
     .n_symbols = 5,                                                                                                   \
     .symbols = {RUNS_SYMBOLS, ZERO},                                                                                  \
     .call = "lathe_widen_runs_" word "(out, from, zero, runs, out_run, from_run, n, 4)",                              \
     .cost = cortex_m_cost_widen,                                                                                      \
     INSTR("widen_runs_" word)},                                                                                       \
    {.name = "widen_runs_inside" end,                                                                                  \
     .help = "widen_runs" end ", or zeros",                                                                            \
     .nest = RUNS(type, "(runs*inside)", WHERE("(inside != 0)", OF(type, "r, i"))),                                    \
     .n_symbols = 6,                                                                                                   \
     .symbols = {RUNS_SYMBOLS, ZERO, INSIDE},                                                                          \
     .call = "lathe_widen_runs_" word "(out, inside ? from : NULL, zero, runs, out_run, from_run, n, 4)",              \
     .cost = cortex_m_cost_widen, .guarded = true,                                                                     \
     INSTR("widen_runs_" word)},                                                                                       \
    {.name = "widen_some_runs" end,                                                                                    \
     .help = "widen_runs" end " of the first runs, zeros in those behind them",                                        \
     .nest = RUNS(type, "min(runs, some)", WHERE("(r < some)", OF(type, "r, i"))),                                     \
     .n_symbols = 6,                                                                                                   \
     .symbols = {RUNS_SYMBOLS, ZERO, SOME},                                                                            \
     .call = "lathe_widen_some_runs_" word "(out, from, zero, some, runs, out_run, from_run, n, 4)",                   \
     .cost = cortex_m_cost_widen, .guarded = true,                                                                     \
     INSTR("widen_runs_" word)},                                                                                       \
    {.name = "widen_fours" end,                                                                                        \
     .help = "widen_runs" end " by fours, with gaps between them",                                                     \
     .nest = FOURS(type, "runs", OF(type, "r, i, k")),                                                                 \
     .n_symbols = 6,                                                                                                   \
     .symbols = {FOURS_SYMBOLS, ZERO},                                                                                 \
     .call = "lathe_widen_runs_" word "(out, from, zero, runs, out_run, from_run, n*4, step)",                         \
     .cost = cortex_m_cost_widen_fours,                                                                                \
     INSTR("widen_runs_" word)},                                                                                       \
    {.name = "widen_fours_inside" end,                                                                                 \
     .help = "widen_fours" end ", or zeros",                                                                           \
     .nest = FOURS(type, "(runs*inside)", WHERE("(inside != 0)", OF(type, "r, i, k"))),                                \
     .n_symbols = 7,                                                                                                   \
     .symbols = {FOURS_SYMBOLS, ZERO, INSIDE},                                                                         \
     .call = "lathe_widen_runs_" word "(out, inside ? from : NULL, zero, runs, out_run, from_run, n*4, step)",         \
     .cost = cortex_m_cost_widen_fours, .guarded = true,                                                               \
     INSTR("widen_runs_" word)},                                                                                       \
    {.name = "widen_some_fours" end,                                                                                   \
     .help = "widen_fours" end " of the first runs, zeros in those behind them",                                       \
     .nest = FOURS(type, "min(runs, some)", WHERE("(r < some)", OF(type, "r, i, k"))),                                 \
     .n_symbols = 7,                                                                                                   \
     .symbols = {FOURS_SYMBOLS, ZERO, SOME},                                                                           \
     .call = "lathe_widen_some_runs_" word "(out, from, zero, some, runs, out_run, from_run, n*4, step)",              \
     .cost = cortex_m_cost_widen_fours, .guarded = true,                                                               \
     INSTR("widen_runs_" word)},                                                                                       \
    {.name = "widen_planes" end,                                                                                       \
     .help = "channels of " type " that stand beside each other, as rows of int16, less a zero point",                 \
     .nest = PLANES(type, "columns", OF(type, "i, c")),                                                                \
     .n_symbols = 5,                                                                                                   \
     .symbols = {PLANES_SYMBOLS, ZERO},                                                                                \
     .call = "lathe_widen_planes_" word "(out, from, zero, channels, out_channel, columns, from_column)",              \
     .cost = cortex_m_cost_widen,                                                                                      \
     INSTR("widen_planes_" word)},                                                                                     \
    {.name = "widen_planes_inside" end,                                                                                \
     .help = "widen_planes" end ", or zeros",                                                                          \
     .nest = PLANES(type, "(columns*inside)", WHERE("(inside != 0)", OF(type, "i, c"))),                               \
     .n_symbols = 6,                                                                                                   \
     .symbols = {PLANES_SYMBOLS, ZERO, INSIDE},                                                                        \
     .call = "lathe_widen_planes_" word                                                                                \
             "(out, inside ? from : NULL, zero, channels, out_channel, columns, from_column)",                         \
     .cost = cortex_m_cost_widen, .guarded = true,                                                                     \
     INSTR("widen_planes_" word)}

static const tir_intrin rows[] = {ROWS("int8", "", "i8"), ROWS("uint8", "_u8", "u8")};

const tir_instructions tir_instructions_widen = {rows, sizeof rows / sizeof *rows};
