/* SPDX-License-Identifier: Apache-2.0 */
/* Instructions of the family "dot" (type/dot.h): products of bytes, or of numbers of 16 bits, summed in lanes of i32,
 * for vectors of any processor. Which of its own instructions they are is for the C to say (kernel/lanes). */
#include "tir/family.h"

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

/* What instructions whose sums have 16 bits compute: vpmaddubsw saturates, AArch64's addp wraps. The rule that takes
 * such a row has seen to it that no sum gets there (needs_proof of type/dot.h). */
#define SATURATED(sum) "max(min(" sum ", 32767), -32768)"
#define WRAPPED(sum)   "cast(int32, cast(int16, " sum "))"
#define AS_IT_IS(sum)  sum
#define TERM(a_type, k) "(cast(int32, (" a_type "*)a[" k "])*cast(int32, (int8*)b[j, " k "]))"
#define PAIRS_NEST(name, a_type, kept)                                                                              \
    "primfn(a: handle, b: handle, out: handle) -> ()\n"                                                             \
    "  attr = {\"global_symbol\": \"" name "\", \"inputs\": 2}\n"                                                   \
    "  buffers = {a: Buffer(" a_type ", [2, 2]), b: Buffer(int8, [n, 2, 2]), out: Buffer(int32, [n])} {\n"          \
    "  for (j: int64, 0, n) {\n"                                                                                    \
    "    for (p: int64, 0, 2) {\n"                                                                                  \
    "      out[j] = ((int32*)out[j] + " kept("(" TERM(a_type, "p, 0") " + " TERM(a_type, "p, 1") ")") ")\n"         \
    "    }\n  }\n}\n"

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
/* By data of i8, whose neighbor above a weight below 0 multiplies. */
#define SIGNED_TERM(a, c, k)                                                                                        \
    "((cast(int32, (int8*)" a "[" k "]) - (cast(int32, (int8*)" c "[j, " k "]) >> 7))"                               \
    "*cast(int32, (int8*)" c "[j, " k "]))"
/* Two products of u8 saturate, those of i8 have room; both runs are added by vpaddw, which wraps. */
#define STEP_PAIR(term, a, c) "(" term(a, c, "p, 0") " + " term(a, c, "p, 1") ")"
#define STEPS_DO(name, a_type, term, kept)                                                                          \
    "primfn(a: handle, b: handle, c: handle, d: handle, out: handle) -> ()\n"                                       \
    "  attr = {\"global_symbol\": \"" name "\", \"inputs\": 4}\n"                                                   \
    "  buffers = {a: Buffer(" a_type ", [2, 2]), b: Buffer(" a_type ", [2, 2]), c: Buffer(int8, [n, 2, 2]),\n"      \
    "             d: Buffer(int8, [n, 2, 2]), out: Buffer(int32, [n])} {\n"                                         \
    "  for (j: int64, 0, n) {\n"                                                                                    \
    "    for (p: int64, 0, 2) {\n"                                                                                  \
    "      out[j] = ((int32*)out[j] + "                                                                             \
    WRAPPED("(" kept(STEP_PAIR(term, "a", "c")) " + " kept(STEP_PAIR(term, "b", "d")) ")") ")\n"                    \
    "    }\n  }\n}\n"

/* Sums in lanes, as many as the vectors of the region have. */
#define LANES(what) "for (j: int64, 0, n) \"vectorized\" { out[j] = " what " }"
#define IN_LANES(id, what, stands_for, computes, operands, text, file)                                              \
    {.name = id,                                                                                                    \
     .help = what,                                                                                                  \
     .nest = stands_for,                                                                                            \
     .does = computes,                                                                                              \
     .n_symbols = 1,                                                                                                \
     .symbols = {{.name = "n", .min = 2, .max = 64, .multiple = 2}},                                                \
     .reset = LANES("0"),                                                                                           \
     .update = TIR_INSTRUCTION,                                                                                     \
     .passed = operands,                                                                                            \
     .call = text,                                                                                                  \
     .kernel = "kernel/lanes/" file ".inc"}
#define STEPS(id, what, a_type, term, kept, text, file)                                                             \
    IN_LANES(id, what, STEPS_NEST(id, a_type, term), STEPS_DO(id, a_type, term, kept), "mmmmv", text, file)

/* A word has the numbers 0..3 in the low halves of its bytes, 4..7 in the high ones. */
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
/* Words of two numbers of 16 bits each. */
#define LOW(x)  "cast(int32, cast(int16, (int32*)" x "[j]))"
#define HIGH(x) "((int32*)" x "[j] >> 16)"
#define WORDS_NEST                                                                                                  \
    "primfn(a: handle, b: handle, out: handle) -> ()\n"                                                             \
    "  attr = {\"global_symbol\": \"dot_words\", \"inputs\": 2}\n"                                                   \
    "  buffers = {a: Buffer(int32, [n]), b: Buffer(int32, [n]), out: Buffer(int32, [n])} {\n"                       \
    "  for (j: int64, 0, n) {\n"                                                                                    \
    "    out[j] = 0\n"                                                                                              \
    "    out[j] = ((int32*)out[j] + ((" LOW("a") "*" LOW("b") ") + (" HIGH("a") "*" HIGH("b") ")))\n"               \
    "  }\n}\n"
#define BYTES(id, what, a_type, text, file) \
    IN_LANES(id, what, NEST(id, a_type, "int8", "4"), NULL, "mmv", text, file)
#define PAIRS(id, what, a_type, kept, text, file) \
    IN_LANES(id, what, NEST(id, a_type, "int8", "4"), PAIRS_NEST(id, a_type, kept), "mmv", text, file)

static const tir_intrin rows[] = {
    BYTES("dot_u8s8", "out[j] += a[0] * b[j, 0] + ... + a[3] * b[j, 3], uint8 by int8", "uint8",
          "$v_dot_u8(out, &a, &b)", "dot"),
    BYTES("dot_s8s8", "the same, int8 by int8", "int8", "$v_dot_i8(out, &a, &b)", "dot"),
    PAIRS("dot_u8s8_pairs", "as dot_u8s8; sums of two products saturate in 16 bits, which the weights must not reach",
          "uint8", SATURATED, "$v_pairs_u8(out, &a, &b)", "pairs"),
    PAIRS("dot_s8s8_pairs", "as dot_s8s8 in the same way; sums of two wrap", "int8", WRAPPED,
          "$v_pairs_i8(out, &a, &b)", "pairs"),
    STEPS("dot_u8s8_steps",
          "out[j] += a[0] * c[j, 0] + b[0] * d[j, 0] + ..., uint8 by int8; sums of four products have 16 bits", "uint8",
          STEP_TERM, SATURATED, "$v_steps_u8(out, &a, &b, &c, &d)", "steps"),
    STEPS("dot_s8s8_steps", "the same, int8 by int8; weights below 0 multiply what is one more", "int8", SIGNED_TERM,
          AS_IT_IS, "$v_steps_i8(out, &a, &b, &c, &d)", "steps"),
    IN_LANES("dot_s16s16", "out[j] += a[0] * b[j, 0] + a[1] * b[j, 1], int16 by int16",
             NEST("dot_s16s16", "int16", "int16", "2"), NULL, "mmv", "$v_dot_i16(out, &a, &b)", "dot_i16"),
    IN_LANES("dot_s8u4", "out[j] += a[0] * code 0 of the word b[j] + ... + a[7] * code 7, int8 by numbers of 4 bits",
             NIBBLES_NEST, NULL, "mmv", "$v_nibbles(out, &a, &b)", "nibbles"),
    IN_LANES("dot_words", "out[j] += low a[j] * low b[j] + high a[j] * high b[j], halves of words as int16", WORDS_NEST,
             NULL, "vvv", "$v_dot_words(out, a, b)", "dot_words"),
};

const tir_instructions tir_instructions_dot = {rows, sizeof rows / sizeof *rows};
