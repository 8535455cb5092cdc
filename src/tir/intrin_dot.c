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
/* Beyond 16 bits as the instructions have it, vpmaddubsw and addp. Whoever takes these rows sees to it that no sum gets
 * there; but a computation written by hand in such a form becomes the same instructions, for whatever numbers. */
#define SATURATED(sum) "max(min(" sum ", 32767), -32768)"
#define WRAPPED(sum)   "cast(int32, cast(int16, " sum "))"
#define PAIR(a_type, k, next) "(" PRODUCT(a_type, k) " + " PRODUCT(a_type, next) ")"
#define PAIRS(a_type, kept)                                                                                         \
    "(((int32*)out[j] + " kept(PAIR(a_type, "0", "1")) ") + " kept(PAIR(a_type, "2", "3")) ")"
#define WIDE(k)        TERM("int16", "int16", k)

/* Two runs of data, each by weights of its own; a term is one product. */
#define STEPS_NEST(name, a_type, term)                                                                              \
    "primfn(a: handle, b: handle, c: handle, d: handle, out: handle) -> ()\n"                                       \
    "  attr = {\"global_symbol\": \"" name "\", \"inputs\": 4}\n"                                                   \
    "  buffers = {a: Buffer(" a_type ", [4]), b: Buffer(" a_type ", [4]),\n"                                        \
    "             c: Buffer(int8, [n, 4]), d: Buffer(int8, [n, 4]), out: Buffer(int32, [n])} {\n"                   \
    "  for (j: int64, 0, n) {\n"                                                                                    \
    "    out[j] = 0\n"                                                                                              \
    "    for (k: int64, 0, 4) {\n"                                                                                  \
    "      out[j] = ((int32*)out[j] + (" term("a", "c", "k") " + " term("b", "d", "k") "))\n"                       \
    "    }\n  }\n}\n"
#define STEP_TERM(a, c, k) "(cast(int32, (uint8*)" a "[" k "])*cast(int32, (int8*)" c "[j, " k "]))"
/* By data of i8, whose neighbour above a weight below 0 multiplies. */
#define SIGNED_TERM(a, c, k)                                                                                        \
    "((cast(int32, (int8*)" a "[" k "]) - (cast(int32, (int8*)" c "[j, " k "]) >> 7))"                               \
    "*cast(int32, (int8*)" c "[j, " k "]))"
/* Two products of u8 saturate, those of i8 have room; both runs are added by vpaddw, which wraps. */
#define STEP_PAIR(term, a, c, k, next) "(" term(a, c, k) " + " term(a, c, next) ")"
#define STEP_FOUR(term, kept, k, next)                                                                              \
    WRAPPED("(" kept(STEP_PAIR(term, "a", "c", k, next)) " + " kept(STEP_PAIR(term, "b", "d", k, next)) ")")
#define STEPS_UPDATE(term, kept)                                                                                    \
    "(((int32*)out[j] + " STEP_FOUR(term, kept, "0", "1") ") + " STEP_FOUR(term, kept, "2", "3") ")"
#define AS_IT_IS(sum) sum
#define STEPS(id, what, a_type, term, kept)                                                                         \
    {.name = id,                                                                                                    \
     .help = what,                                                                                                  \
     .nest = STEPS_NEST(id, a_type, term),                                                                          \
     .n_symbols = 1,                                                                                                \
     .symbols = {{"n", 2, 64, 2}},                                                                                  \
     .reset = LANES("0"),                                                                                           \
     .update = LANES(STEPS_UPDATE(term, kept))}

/* A word has the numbers 0..3 in the low halves of its bytes, 4..7 in the high ones. */
#define NIBBLE(h, k, code)  "(cast(int32, (int8*)a[" h ", " k "])*(" code " & 15))"
#define NIBBLES \
    "(((((((((int32*)out[j] + " NIBBLE("0", "0", "(int32*)b[j]") ") + " NIBBLE("0", "1", "((int32*)b[j] >> 8)") ") + " \
    NIBBLE("0", "2", "((int32*)b[j] >> 16)") ") + " NIBBLE("0", "3", "((int32*)b[j] >> 24)") ") + "                    \
    NIBBLE("1", "0", "((int32*)b[j] >> 4)") ") + " NIBBLE("1", "1", "((int32*)b[j] >> 12)") ") + "                     \
    NIBBLE("1", "2", "((int32*)b[j] >> 20)") ") + " NIBBLE("1", "3", "((int32*)b[j] >> 28)") ")"
#define NIBBLES_NEST                                                                                                \
    "primfn(a: handle, b: handle, out: handle) -> ()\n"                                                             \
    "  attr = {\"global_symbol\": \"dot_s8u4\", \"inputs\": 2}\n"                                                    \
    "  buffers = {a: Buffer(int8, [2, 4]), b: Buffer(int32, [n]), out: Buffer(int32, [n])} {\n"                     \
    "  for (j: int64, 0, n) {\n"                                                                                    \
    "    out[j] = 0\n"                                                                                              \
    "    for (h: int64, 0, 2) {\n"                                                                                  \
    "      for (k: int64, 0, 4) {\n"                                                                                \
    "        out[j] = ((int32*)out[j] + (cast(int32, (int8*)a[h, k])*((((int32*)b[j] >> cast(int32, (h*4))) >> "    \
    "cast(int32, (k*8))) & 15)))\n"                                                                                 \
    "      }\n    }\n  }\n}\n"
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
#define TILE_TERM(a_type, h, k) \
    " + (cast(int32, (" a_type "*)a[floordiv(l, 2), " h ", " k "])"                                                  \
    "*cast(int32, (int8*)b[floormod(l, 2), " h ", " k "])))"
#define TILE_FOUR(a_type, h)                                                                                        \
    TILE_TERM(a_type, h, "0") TILE_TERM(a_type, h, "1") TILE_TERM(a_type, h, "2") TILE_TERM(a_type, h, "3")
/* A row that is not there has lanes all the same, which nobody reads. */
#define TILE_LANES(what) "for (l: int64, 0, 4) \"vectorized\" { out[l] = " what " }"
#define TILE(id, what, a_type)                                                                                      \
    {.name = id,                                                                                                    \
     .help = what,                                                                                                  \
     .nest = TILE_NEST(id, a_type),                                                                                 \
     .n_symbols = 3,                                                                                                \
     .symbols = {{"m", 1, 2, 1}, {"row", 0, 0, 0}, {"half", 0, 0, 0}},                                              \
     .reset = TILE_LANES("0"),                                                                                      \
     .update = TILE_LANES("((((((((" "(int32*)out[l]" TILE_FOUR(a_type, "0") TILE_FOUR(a_type, "1"))}

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
        "uint8", PAIRS("uint8", SATURATED)),
    BYTES("dot_s8s8_pairs", "as dot_s8s8 in the same way; sums of two wrap", "int8", PAIRS("int8", WRAPPED)),
    STEPS("dot_u8s8_steps",
        "out[j] += a[0] * c[j, 0] + b[0] * d[j, 0] + ..., uint8 by int8; sums of four products have 16 bits", "uint8",
        STEP_TERM, SATURATED),
    STEPS("dot_s8s8_steps", "the same, int8 by int8; weights below 0 multiply what is one more", "int8", SIGNED_TERM,
        AS_IT_IS),
    ROW("dot_s16s16", "out[j] += a[0] * b[j, 0] + a[1] * b[j, 1], int16 by int16", "int16", "int16", "2",
        "(((int32*)out[j] + " WIDE("0") ") + " WIDE("1") ")"),
    {.name = "dot_s8u4",
     .help = "out[j] += a[0] * code 0 of the word b[j] + ... + a[7] * code 7, int8 by numbers of 4 bits",
     .nest = NIBBLES_NEST,
     .n_symbols = 1,
     .symbols = {{"n", 2, 64, 2}},
     .reset = LANES("0"),
     .update = LANES(NIBBLES)},
    TILE("dot_tile_u8s8", "out[i, j] += a[i, 0] * b[j, 0] + ... + a[i, 7] * b[j, 7], two rows of uint8 by two of int8",
        "uint8"),
    TILE("dot_tile_s8s8", "the same, int8 by int8", "int8"),
};

const tir_intrin *tir_intrins_dot(uint32_t *out_n)
{
    *out_n = sizeof rows / sizeof *rows;
    return rows;
}
