/* SPDX-License-Identifier: Apache-2.0 */
/* AArch64's SMMLA and USMMLA (I8MM): tiles of two rows by two columns in one vector. */
#include "tir/family.h"

/* Two rows by two columns of weights, eight products each, in two pieces: lane 2 i + j has row i and column j. */
#define TILE_NEST(name, a_type)                                                                                     \
    "primfn(a: handle, b: handle, out: handle) -> ()\n"                                                             \
    "  attr = {\"global_symbol\": \"" name "\", \"inputs\": 2}\n"                                                   \
    "  buffers = {a: Buffer(" a_type ", [m, 2, 4], strides=[row, half, 1]), b: Buffer(int8, [2, 2, 4]),\n"          \
    "             out: Buffer(int32, [m, 2])} {\n"                                                                  \
    "  for (i: int64, 0, m) {\n"                                                                                    \
    "    for (j: int64, 0, 2) {\n"                                                                                  \
    "      out[i, j] = 0\n"                                                                                         \
    "      for (h: int64, 0, 2) {\n"                                                                                \
    "        for (k: int64, 0, 4) {\n"                                                                              \
    "          out[i, j] = ((int32*)out[i, j] + (cast(int32, (" a_type "*)a[i, h, k])\n"                            \
    "                                            *cast(int32, (int8*)b[j, h, k])))\n"                               \
    "        }\n"                                                                                                   \
    "      }\n"                                                                                                     \
    "    }\n"                                                                                                       \
    "  }\n"                                                                                                         \
    "}\n"
/* A row that is not there has lanes all the same, which nobody reads. */
#define TILE_LANES(what) "for (l: int64, 0, 4) \"vectorized\" { out[l] = " what " }"
#define TILE(id, what, a_type, text, file)                                                                          \
    {.name = id,                                                                                                    \
     .help = what,                                                                                                  \
     .nest = TILE_NEST(id, a_type),                                                                                 \
     .n_symbols = 3,                                                                                                \
     .symbols = {TIR_EXTENT("m", 2), TIR_STRIDE("row"), TIR_STRIDE("half")},                                        \
     .reset = TILE_LANES("0"),                                                                                      \
     .update = TIR_INSTRUCTION,                                                                                     \
     .passed = "amv",                                                                                               \
     .call = text,                                                                                                  \
     .kernel = "kernel/lanes/" file ".inc",                                                                         \
     .attribute = "LATHE_NEON_TILE",                                                                                \
     .lanes = 4}

static const tir_intrin rows[] = {
    TILE("dot_tile_u8s8", "out[i, j] += a[i, 0] * b[j, 0] + ... + a[i, 7] * b[j, 7], two rows of uint8 by two of int8",
         "uint8", "$v_tile_u8(out, &a, row, half, &b)", "tile"),
    TILE("dot_tile_s8s8", "the same, int8 by int8", "int8", "$v_tile_i8(out, &a, row, half, &b)", "tile"),
};

const tir_instructions tir_instructions_mmla = {rows, sizeof rows / sizeof *rows};
