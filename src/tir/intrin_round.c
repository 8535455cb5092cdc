/* SPDX-License-Identifier: Apache-2.0 */
/* Instructions for processors without vectors that have registers of 32 bits: numbers that are rounded to bytes, steps
 * of binary64 of which binary32 has all bits that count, and upper words of products. What their C makes of them
 * depends on the processor (kernel/round): a Cortex-M has an instruction or a few, others have none, and integers do
 * it. The pass select puts them in the place of expressions (pass/select_round.c). */
#include "tir/family.h"
#include "tir/intrin.h"

/* With the features of the row, and without. */
#define COST(name, with, without)                                                                                      \
    static double cost_of_##name(const tir_intrin_use *use)                                                            \
    {                                                                                                                  \
        return use->fast ? (with) : (without);                                                                         \
    }
COST(rounded, 16, 300)
COST(scaled, 16, 900)
COST(two, 29, 1800)
COST(fused, 2, 4500)
COST(product, 2, 3500)
COST(high, 2, 70)
COST(shifted, 3, 20)
COST(word, 5, 90)
COST(word_by, 6, 95)
COST(weighted, 5, 25)

#define NEST(inputs, params, buffers, value)                                                                           \
    "primfn(" params ", out: handle) -> ()\n"                                                                          \
    "  attr = {\"global_symbol\": \"value\", \"inputs\": " inputs "}\n"                                                \
    "  buffers = {" buffers "} {\n  out[0] = " value "\n}\n"
#define ONE(name, type) name ": Buffer(" type ", [1])"
#define ROW(how, type, needs, price)                                                                                   \
    .body = TIR_INSTRUCTION, .passed = how, .makes = type, .selected = true, .features = needs, .cost = price
#define ZERO            .n_symbols = 1, .symbols = {TIR_OPEN_STRIDE("zero")}

/* v to the nearest integer, ties to even, plus zero, to the nearest that the type has. */
#define NEAREST(v, type, least, most)                                                                                  \
    "cast(" type ", min(max((rint(" v ") + cast(float32, zero)), float32(" least ")), float32(" most ")))"
#define OF_FLOAT(type, end, dt, least, most, sure, faster)                                                             \
    {.name = "rounded" sure "_" end,                                                                                   \
     .help = "a float that is rounded to " type ", and a zero point",                                                  \
     .nest = NEST("1", "v: handle", ONE("v", "float32") ", " ONE("out", type),                                         \
                  NEAREST("(float32*)v[0]", type, least, most)),                                                       \
     .call = "lathe_rounded" sure "_" end "(v, zero)",                                                                 \
     .kernel = "kernel/round/rounded_" end ".h",                                                                       \
     .by_two = faster, ZERO, ROW("vv", dt, TARGET_FPU, cost_of_rounded)}
#define OF_SUM(type, end, dt, least, most)                                                                             \
    {.name = "scaled_" end,                                                                                            \
     .help = "a sum times its scale that is rounded to " type ", and a zero point",                                    \
     .nest = NEST("2", "acc: handle, k: handle", ONE("acc", "int32") ", " ONE("k", "float32") ", " ONE("out", type),   \
                  NEAREST("(cast(float32, (int32*)acc[0])*(float32*)k[0])", type, least, most)),                       \
     .call = "lathe_scaled_" end "(acc, k, zero)",                                                                     \
     .kernel = "kernel/round/scaled_" end ".h",                                                                        \
     .by_two = true, ZERO, ROW("vvv", dt, TARGET_FPU, cost_of_scaled)}
#define PRODUCT(acc, k) "(cast(float32, (int32*)" acc "[0])*(float32*)" k "[0])"
#define OF_TWO_SUMS(type, end, least, most)                                                                            \
    {.name = "scaled_two_" end,                                                                                        \
     .help = "two sums times their scales that are rounded to " type ", and a zero point",                             \
     .nest = "primfn(acc: handle, k: handle, next: handle, by: handle, out: handle) -> ()\n"                           \
             "  attr = {\"global_symbol\": \"values\", \"inputs\": 4}\n"                                               \
             "  buffers = {" ONE("acc", "int32") ", " ONE("k", "float32") ", " ONE("next", "int32") ",\n"              \
             "             " ONE("by", "float32") ", out: Buffer(" type ", [2], strides=[step])} {\n"                 \
             "  for (i: int64, 0, 2) {\n"                                                                              \
             "    out[i] = " NEAREST("select((i == int64(0)), " PRODUCT("acc", "k") ", " PRODUCT("next", "by") ")",    \
                                     type, least, most) "\n"                                                           \
             "  }\n"                                                                                                   \
             "}\n",                                                                                                    \
     .n_symbols = 2,                                                                                                   \
     .symbols = {TIR_OPEN_STRIDE("step"), TIR_OPEN_STRIDE("zero")},                                                   \
     .call = "lathe_scaled_two_" end "(out, &out+step, acc, k, next, by, zero)",                                       \
     .kernel = "kernel/round/scaled_two_" end ".h",                                                                    \
     .few = true,                                                                                                      \
     ROW("vvvva", DT_NONE, TARGET_FPU, cost_of_two)}
/* The first forms are of any number; those that follow are of what is known to be one. */
#define ROUNDED(type, end, dt, least, most)                                                                            \
    OF_FLOAT(type, end, dt, least, most, "", false), OF_FLOAT(type, end, dt, least, most, "_number", true)

#define REAL(name) "cast(float64, (float32*)" name "[0])"
#define HIGH       "(high_product((int32*)x[0], (int32*)y[0]) + (int32*)more[0])"
#define MORE       ONE("y", "int32") ", " ONE("more", "int32") ", " ONE("out", "int32")
#define THREE      ONE("x", "int32") ", " MORE
#define RIGHT      .n_symbols = 1, .symbols = {{.name = "right", .min = 0, .max = 31, .multiple = 1, .open = true}}
#define WORD(type, end, least, most)                                                                                   \
    {.name = "word_" end,                                                                                              \
     .help = "the upper word of a product and a number, shifted, as far as " type " goes",                             \
     .nest = NEST("3", "x: handle, y: handle, more: handle", THREE,                                                    \
                  "min(max((" HIGH " >> cast(int32, right)), " least "), " most ")"),                                  \
     RIGHT,                                                                                                            \
     .call = "lathe_word_" end "(x, y, more, right)",                                                                  \
     .kernel = "kernel/round/word_" end ".h",                                                                          \
     ROW("vvvv", DT_I32, TARGET_DSP, cost_of_word)},                                                                   \
    {.name = "word_by_" end,                                                                                           \
     .help = "the same of a number that is a product",                                                                 \
     .nest = NEST("4", "x: handle, by: handle, y: handle, more: handle",                                               \
                  ONE("x", "int32") ", " ONE("by", "int32") ", " MORE,                                                 \
                  "min(max(((high_product(((int32*)x[0]*(int32*)by[0]), (int32*)y[0]) + (int32*)more[0]) >> "          \
                  "cast(int32, right)), " least "), " most ")"),                                                       \
     RIGHT,                                                                                                            \
     .call = "lathe_word_by_" end "(x, by, y, more, right)",                                                           \
     .kernel = "kernel/round/word_by_" end ".h",                                                                       \
     ROW("vvvvv", DT_I32, TARGET_DSP, cost_of_word_by)}

#define SHIFTED(type, end, least, most)                                                                                \
    {.name = "shifted_" end,                                                                                           \
     .help = "a number, shifted, as far as " type " goes",                                                             \
     .nest = NEST("1", "x: handle", ONE("x", "int32") ", " ONE("out", "int32"),                                        \
                  "min(max(((int32*)x[0] >> cast(int32, right)), " least "), " most ")"),                              \
     RIGHT,                                                                                                            \
     .call = "lathe_shifted_" end "(x, right)",                                                                        \
     .kernel = "kernel/round/shifted_" end ".h",                                                                       \
     ROW("vv", DT_I32, TARGET_DSP, cost_of_shifted)}

#define WEIGHTED(type, end, least, most)                                                                               \
    {.name = "weighted_" end,                                                                                          \
     .help = "two numbers by factors and a third one, shifted, as far as " type " goes",                               \
     .nest = NEST("5", "a: handle, f: handle, b: handle, g: handle, more: handle",                                     \
                  ONE("a", "int32") ", " ONE("f", "int32") ", " ONE("b", "int32") ", " ONE("g", "int32") ", "          \
                  ONE("more", "int32") ", " ONE("out", "int32"),                                                       \
                  "min(max((((((int32*)a[0]*(int32*)f[0]) + ((int32*)b[0]*(int32*)g[0])) + (int32*)more[0]) >> "       \
                  "cast(int32, right)), " least "), " most ")"),                                                       \
     RIGHT,                                                                                                            \
     .call = "lathe_weighted_" end "(a, f, b, g, more, right)",                                                        \
     .kernel = "kernel/round/weighted_" end ".h",                                                                      \
     ROW("vvvvvv", DT_I32, TARGET_DSP, cost_of_weighted)}

static const tir_intrin rows[] = {
    ROUNDED("int8", "i8", DT_I8, "-128", "127"),
    ROUNDED("uint8", "u8", DT_U8, "0", "255"),
    ROUNDED("int16", "i16", DT_I16, "-32768", "32767"),
    ROUNDED("uint16", "u16", DT_U16, "0", "65535"),
    OF_SUM("int8", "i8", DT_I8, "-128", "127"),
    OF_SUM("uint8", "u8", DT_U8, "0", "255"),
    OF_TWO_SUMS("int8", "i8", "-128", "127"),
    OF_TWO_SUMS("uint8", "u8", "0", "255"),
    /* Its nest rounds the sum to f64 and then to f32, which differs from one rounding where the former is a tie. */
    {.name = "fma_once",
     .help = "a product of floats and a float, rounded once",
     .nest = NEST("3", "a: handle, b: handle, s: handle",
                  ONE("a", "float32") ", " ONE("b", "float32") ", " ONE("s", "float32") ", " ONE("out", "float32"),
                  "cast(float32, ((" REAL("a") "*" REAL("b") ") + " REAL("s") "))"),
     .call = "lathe_fma_once(a, b, s)",
     .kernel = "kernel/round/fma_once.h",
     ROW("vvvv", DT_F32, TARGET_FPU, cost_of_fused)},
    {.name = "product_once",
     .help = "a product of floats that is no part of a sum",
     .nest = NEST("2", "a: handle, b: handle", ONE("a", "float32") ", " ONE("b", "float32") ", " ONE("out", "float32"),
                  "cast(float32, (" REAL("a") "*" REAL("b") "))"),
     .call = "lathe_product_once(a, b)",
     .kernel = "kernel/round/product_once.h",
     ROW("vvv", DT_F32, TARGET_FPU, cost_of_product)},
    {.name = "high_sum",
     .help = "the upper word of a product, and a number",
     .nest = NEST("3", "x: handle, y: handle, more: handle", THREE, HIGH),
     .call = "lathe_high_sum(x, y, more)",
     .kernel = "kernel/round/high_sum.h",
     ROW("vvvv", DT_I32, TARGET_DSP, cost_of_high)},
    WORD("int8", "i8", "-128", "127"),
    WORD("uint8", "u8", "0", "255"),
    SHIFTED("int8", "i8", "-128", "127"),
    SHIFTED("uint8", "u8", "0", "255"),
    WEIGHTED("int8", "i8", "-128", "127"),
    WEIGHTED("uint8", "u8", "0", "255"),
};

const tir_instructions tir_instructions_round = {rows, sizeof rows / sizeof *rows};
