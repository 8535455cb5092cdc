/* SPDX-License-Identifier: Apache-2.0 */
/* Copies of neighboring elements, which memcpy of the C library makes. Loops become them in pass/copies.c. */
#include "target/cortex_m/cost.h"
#include "tir/family.h"
#include "type/target.h"

#define LEAST 64 /* bytes; compilers move as many where they are */

#define COPY(end, type, bytes, length)                                                                                 \
    {.name = "copy_" end,                                                                                              \
     .help = "elements of " type " that lie somewhere else, too",                                                      \
     .nest = "primfn(from: handle, out: handle) -> ()\n"                                                               \
             "  attr = {\"global_symbol\": \"copy\", \"inputs\": 1}\n"                                                 \
             "  buffers = {from: Buffer(" type ", [n]), out: Buffer(" type ", [n])} {\n"                               \
             "  for (i: int64, 0, n) {\n"                                                                              \
             "    out[i] = (" type "*)from[i]\n"                                                                       \
             "  }\n"                                                                                                   \
             "}\n",                                                                                                    \
     .n_symbols = 1,                                                                                                   \
     .symbols = {{.name = "n", .min = LEAST / (bytes) + 1, .max = INT32_MAX / (bytes), .multiple = 1, .open = true}},  \
     .body = TIR_INSTRUCTION, .passed = "aa", .selected = true,                                                        \
     .call = "memcpy(out, from, " length ")",                                                                          \
     .kernel = "kernel/dsp/words.h",                                                                                   \
     .features = TARGET_DSP, .cost = cortex_m_cost_copy, .channels = (bytes)}

static const tir_intrin rows[] = {
    COPY("i8", "int8", 1, "n"),     COPY("u8", "uint8", 1, "n"),      COPY("bool", "bool", 1, "n"),
    COPY("i16", "int16", 2, "n*2"), COPY("u16", "uint16", 2, "n*2"),  COPY("f16", "float16", 2, "n*2"),
    COPY("i32", "int32", 4, "n*4"), COPY("u32", "uint32", 4, "n*4"),  COPY("f32", "float32", 4, "n*4"),
    COPY("i64", "int64", 8, "n*8"), COPY("u64", "uint64", 8, "n*8"),  COPY("f64", "float64", 8, "n*8"),
};

const tir_instructions tir_instructions_copies = {rows, sizeof rows / sizeof *rows};
