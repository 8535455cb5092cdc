/* SPDX-License-Identifier: Apache-2.0 */
/* x86's AMX: products of bytes in registers of 16 rows by 64 bytes. The kernel keeps the sums there over all steps of
 * the reduction, so a row stands for as much of a product as a schedule leaves to it. */
#include "tir/family.h"
#include "type/target.h"

#define NEST(name, type)                                                                                            \
    "primfn(a: handle, w: handle, out: handle) -> ()\n"                                                             \
    "  attr = {\"global_symbol\": \"" name "\", \"inputs\": 2}\n"                                                   \
    "  buffers = {a: Buffer(" type ", [m, n, 4], strides=[a_row, 4, 1]),\n"                                         \
    "             w: Buffer(int8, [c, n, 16, 4], strides=[w_block, 64, 4, 1]),\n"                                   \
    "             out: Buffer(int32, [m, c, 16], strides=[out_row, 16, 1])} {\n"                                    \
    "  for (i: int64, 0, m) {\n"                                                                                    \
    "    for (b: int64, 0, c) {\n"                                                                                  \
    "      for (j: int64, 0, 16) {\n"                                                                               \
    "        out[i, b, j] = 0\n"                                                                                    \
    "        for (k: int64, 0, n) {\n"                                                                              \
    "          for (g: int64, 0, 4) {\n"                                                                            \
    "            out[i, b, j] = ((int32*)out[i, b, j] + (cast(int32, (" type "*)a[i, k, g])\n"                      \
    "                                                    *cast(int32, (int8*)w[b, k, j, g])))\n"                    \
    "          }\n"                                                                                                 \
    "        }\n"                                                                                                   \
    "      }\n"                                                                                                     \
    "    }\n"                                                                                                       \
    "  }\n"                                                                                                         \
    "}\n"
#define ROW(id, what, type, function)                                                                               \
    {.name = id,                                                                                                    \
     .help = what,                                                                                                  \
     .nest = NEST(id, type),                                                                                        \
     .n_symbols = 6,                                                                                                \
     .symbols = {TIR_OPEN_EXTENT("m", 1 << 16), TIR_EXTENT("c", 2), TIR_OPEN_EXTENT("n", 1 << 16),                  \
                 TIR_STRIDE("a_row"), TIR_STRIDE("w_block"), TIR_STRIDE("out_row")},                                \
     .reset = "for (i: int64, 0, m) { for (b: int64, 0, c) { for (j: int64, 0, 16) \"vectorized\" {\n"              \
              "  out[i, b, j] = 0 } } }",                                                                           \
     .body = TIR_INSTRUCTION,                                                                                       \
     .update = TIR_INSTRUCTION,                                                                                     \
     .passed = "aaa",                                                                                               \
     .call = function "(out, a, w, m, c, n, a_row, w_block, out_row, $begins)",                                     \
     .kernel = "kernel/x86/amx.h",                                                                                  \
     .features = TARGET_AMX}

static const tir_intrin rows[] = {
    ROW("amx_u8s8", "rows of uint8 by one or two blocks of 16 columns of int8, four numbers side by side", "uint8",
        "lathe_amx_u8"),
    ROW("amx_s8s8", "the same, int8 by int8", "int8", "lathe_amx_i8"),
};

const tir_instructions tir_instructions_amx = {rows, sizeof rows / sizeof *rows};
