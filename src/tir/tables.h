/* SPDX-License-Identifier: Apache-2.0 */
/* Rows of instructions that look bytes up in a table: one for each type of the bytes and of the table, whose C is one
 * function over bytes. */
#ifndef LATHE_TIR_TABLES_H
#define LATHE_TIR_TABLES_H
#include "tir/intrin.h"

extern const char tir_vectors_of_table[]; /* the prefix of those for any processor with vectors (intrin.c) */

/* The C takes all bytes as they are. */
#define TIR_TABLE(prefix, file, price, needs, of, type, place, end, from_as, table_as, as)                             \
    {.name = prefix end,                                                                                               \
     .help = "for each byte of " of " that of a table of " type,                                                       \
     .nest = "primfn(from: handle, table: handle, out: handle) -> ()\n"                                                \
             "  attr = {\"global_symbol\": \"table\", \"inputs\": 2}\n"                                                \
             "  buffers = {from: Buffer(" of ", [n]), table: Buffer(" type ", [256]), out: Buffer(" type ", [n])} {\n" \
             "  for (i: int64, 0, n) {\n"                                                                              \
             "    out[i] = (" type "*)table[cast(int64, " place ")]\n"                                                 \
             "  }\n"                                                                                                   \
             "}\n",                                                                                                    \
     .n_symbols = 1,                                                                                                   \
     .symbols = {TIR_OPEN_EXTENT("n", INT32_MAX)},                                                                     \
     .call = "lathe_" prefix "(" as "out, " from_as "from, " table_as "table, n)",                                    \
     .kernel = file,                                                                                                   \
     .body = TIR_INSTRUCTION, .passed = "aaa", .selected = true, .features = needs, .cost = price}
#define TIR_PLACE_U8 "(uint8*)from[i]"
#define TIR_AS_U8    "(const uint8_t *)"
#define TIR_PLACE_I8 "cast(uint8, (int8*)from[i])"
#define TIR_TABLES(prefix, file, price, needs)                                                                         \
    TIR_TABLE(prefix, file, price, needs, "int8", "int8", TIR_PLACE_I8, "", TIR_AS_U8, TIR_AS_U8, "(uint8_t *)"),      \
        TIR_TABLE(prefix, file, price, needs, "uint8", "int8", TIR_PLACE_U8, "_by_u8", "", TIR_AS_U8, "(uint8_t *)"),  \
        TIR_TABLE(prefix, file, price, needs, "int8", "uint8", TIR_PLACE_I8, "_u8", TIR_AS_U8, "", ""),                \
        TIR_TABLE(prefix, file, price, needs, "uint8", "uint8", TIR_PLACE_U8, "_u8_by_u8", "", "", "")
#endif
