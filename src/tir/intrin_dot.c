/* SPDX-License-Identifier: Apache-2.0 */
/* Intrinsics of the family "dot" (type/dot.h): products of bytes, or of numbers of 16 bits, summed in lanes of i32.
 * Their code is the sum written out over vector lanes; the C writer knows it again and has the processor's instruction
 * for it (codegen/c/dot.c). */
#include "tir/intrin.h"

/* --- texts of rows --- */

#define NEST(name, a_type, b_type, granule)                                                                         \
    "primfn(a: handle, b: handle, out: handle) -> ()\n"                                                             \
    "  attr = {\"global_symbol\": \"" name "\", \"inputs\": 2}\n"                                                   \
    "  buffers = {a: Buffer(" a_type ", [" granule "]), b: Buffer(" b_type ", [n, " granule "]),\n"                 \
    "             out: Buffer(int32, [n])} {\n"                                                                     \
    "  for (j: int64, 0, n) {\n"                                                                                    \
    "    out[j] = 0\n"                                                                                              \
    "    for (k: int64, 0, " granule ") {\n"                                                                        \
    "      out[j] = ((int32*)out[j] + (cast(int32, (" a_type "*)a[k])*cast(int32, (" b_type "*)b[j, k])))\n"        \
    "    }\n"                                                                                                       \
    "  }\n"                                                                                                         \
    "}\n"

#define TERM(a_type, b_type, k) "(cast(int32, (" a_type "*)a[" k "])*cast(int32, (" b_type "*)b[j, " k "]))"
#define PRODUCT(a_type, k)      TERM(a_type, "int8", k)
#define SUM(a_type)                                                                                                 \
    "((((int32*)out[j] + " PRODUCT(a_type, "0") ") + " PRODUCT(a_type, "1") ") + " PRODUCT(a_type, "2") ") + "      \
    PRODUCT(a_type, "3")
#define PAIR(a_type, k, next) \
    "max(min((" PRODUCT(a_type, k) " + " PRODUCT(a_type, next) "), 32767), -32768)"
#define PAIRS(a_type)  "(((int32*)out[j] + " PAIR(a_type, "0", "1") ") + " PAIR(a_type, "2", "3") ")"
#define WIDE(k)        TERM("int16", "int16", k)

#define LANES(what) "for (j: int64, 0, n) \"vectorized\" { out[j] = " what " }"

#define ROW(id, what, a_type, b_type, granule, update_text)                                                         \
    {.name = id,                                                                                                    \
     .help = what,                                                                                                  \
     .nest = NEST(id, a_type, b_type, granule),                                                                     \
     .n_symbols = 1,                                                                                                \
     .symbols = {{"n", 2, 64, 2}},                                                                                  \
     .reset = LANES("0"),                                                                                           \
     .update = LANES(update_text)}
#define BYTES(id, what, a_type, update_text) ROW(id, what, a_type, "int8", "4", update_text)

static const tir_intrin rows[] = {
    BYTES("dot_u8s8", "out[j] += a[0] * b[j, 0] + ... + a[3] * b[j, 3], uint8 by int8", "uint8", "(" SUM("uint8") ")"),
    BYTES("dot_s8s8", "the same, int8 by int8", "int8", "(" SUM("int8") ")"),
    BYTES("dot_u8s8_pairs", "as dot_u8s8; sums of two products saturate in 16 bits, which the weights must not reach",
        "uint8", PAIRS("uint8")),
    BYTES("dot_s8s8_pairs", "as dot_s8s8 in the same way", "int8", PAIRS("int8")),
    ROW("dot_s16s16", "out[j] += a[0] * b[j, 0] + a[1] * b[j, 1], int16 by int16", "int16", "int16", "2",
        "(((int32*)out[j] + " WIDE("0") ") + " WIDE("1") ")"),
};

const tir_intrin *tir_intrins_dot(uint32_t *out_n)
{
    *out_n = sizeof rows / sizeof *rows;
    return rows;
}
