/* SPDX-License-Identifier: Apache-2.0 */
/* Helium's instructions on four numbers of 32 bits: bytes that are widened as they are read, arithmetic in binary32
 * that is rounded once, and the ends of quantizations, which round, saturate and narrow. Their C is in kernel/mve.
 * Expressions and stores in lanes become these in pass/lanes.c. */
#include "target/cortex_m/cost.h"
#include "tir/family.h"
#include "type/target.h"

#define FOUR(name, type) name ": Buffer(" type ", [4])"
#define NEST(inputs, params, buffers, value)                                                                           \
    "primfn(" params ", out: handle) -> ()\n"                                                                          \
    "  attr = {\"global_symbol\": \"lanes\", \"inputs\": " inputs "}\n"                                                \
    "  buffers = {" buffers "} {\n"                                                                                    \
    "  for (i: int64, 0, 4) \"vectorized\" {\n    out[i] = " value "\n  }\n}\n"
#define INSTR(how, file, price)                                                                                        \
    .body = TIR_INSTRUCTION, .passed = how, .lanes = 4, .kernel = "kernel/mve/" file ".inc", .selected = true,         \
    .few = true, .features = TARGET_MVE, .cost = price
#define ZERO            .n_symbols = 1, .symbols = {TIR_OPEN_STRIDE("zero")}

#define REAL(name)      "cast(float64, (float32*)" name ")"
#define V               FOUR("v", "float32") ", "
#define SUMS            FOUR("acc", "int32") ", " FOUR("k", "float32") ", "
#define SUM_BY_SCALE    "(cast(float32, (int32*)acc[i])*(float32*)k[i])"
/* v to the nearest integer, ties to even, plus zero, to the nearest that the type has. */
#define NEAREST(v, type, least, most)                                                                                  \
    "cast(" type ", min(max((rint(" v ") + cast(float32, zero)), float32(" least ")), float32(" most ")))"
#define TWICE(type, least, most)                                                                                       \
    "cast(" type ", min(max((rounded_shift(doubled_product((int32*)acc[i], (int32*)multiplier[i]), "                   \
    "(0 - (int32*)shift[i])) + cast(int32, zero)), " least "), " most "))"

/* Bytes: stored, or in lanes of i32. */
#define PUT(end, dt, how, help_text, inputs, params, buffers, type, value, text, file, ...)                            \
    {.name = "put_" end,                                                                                               \
     .help = help_text ", stored",                                                                                     \
     .nest = NEST(inputs, params, buffers FOUR("out", type), value),                                                   \
     .call = "lathe_" text,                                                                                            \
     .bytes = dt, .of_lane = __VA_ARGS__, ZERO, INSTR(how "a", file, cortex_m_cost_put_lanes)}
#define STAY(end, dt, how, help_text, inputs, params, buffers, value, text, file, ...)                                 \
    {.name = "lanes_" end,                                                                                             \
     .help = help_text ", as numbers",                                                                                 \
     .nest = NEST(inputs, params, buffers FOUR("out", "int32"), "cast(int32, " value ")"),                             \
     .call = "lathe_i32x4_" text,                                                                                      \
     .makes = DT_I32, .bytes = dt, .of_lane = __VA_ARGS__, ZERO, INSTR(how "v", file, cortex_m_cost_put_lanes)}
#define FILES(end) {"kernel/round/rounded_" end ".h", "kernel/round/scaled_" end ".h"}
#define IN_BOTH(name, dt, end, how, help_text, inputs, params, buffers, type, value, args, file, ...)                  \
    PUT(name "_" end, dt, how, help_text, inputs, params, buffers, type, value,                                        \
        end "x4_" name "(out, " args ", zero)", file, __VA_ARGS__),                                                    \
        STAY(name "_" end, dt, how, help_text, inputs, params, buffers, value, name "_" end "(" args ", zero)", file,  \
             __VA_ARGS__)
#define BOTH(name, dt, end, how, help_text, inputs, params, buffers, type, value, args)                                \
    IN_BOTH(name, dt, end, how, help_text, inputs, params, buffers, type, value, args, "rounded", FILES(end))
#define BYTES(type, end, dt, least, most)                                                                              \
    {.name = "lanes_of_" end,                                                                                          \
     .help = "four bytes of " type " in memory, as numbers",                                                           \
     .nest = NEST("1", "from: handle", FOUR("from", type) ", " FOUR("out", "int32"),                                   \
                  "cast(int32, (" type "*)from[i])"),                                                                  \
     .call = "lathe_i32x4_of_" end "(from)",                                                                           \
     .makes = DT_I32, .bytes = dt, INSTR("av", "load", cortex_m_cost_lanes)},                                          \
    BOTH("rounded", dt, end, "v", "floats that are rounded to " type ", and a zero point", "1",                        \
         "v: handle", V, type, NEAREST("(float32*)v[i]", type, least, most), "v"),                                     \
    BOTH("rounded_number", dt, end, "v",                                                                               \
         "floats, none of them NaN, that are rounded to " type ", and a zero point", "1", "v: handle", V, type,        \
         NEAREST("(float32*)v[i]", type, least, most), "v"),                                                           \
    BOTH("scaled", dt, end, "vv", "sums times scales that are rounded to " type ", and a zero point", "2",             \
         "acc: handle, k: handle", SUMS, type, NEAREST(SUM_BY_SCALE, type, least, most), "acc, k"),                    \
    IN_BOTH("twice", dt, end, "vvv", "sums by multipliers and shifts, rounded behind both, as " type, "3",             \
            "acc: handle, multiplier: handle, shift: handle",                                                          \
            FOUR("acc", "int32") ", " FOUR("multiplier", "int32") ", " FOUR("shift", "int32") ", ", type,              \
            TWICE(type, least, most), "acc, multiplier, shift", "twice", {NULL}),                                      \
    {.name = "put_shifted_" end,                                                                                       \
     .help = "numbers, shifted, as far as " type " goes, stored",                                                      \
     .nest = NEST("1", "x: handle", FOUR("x", "int32") ", " FOUR("out", type),                                         \
                  "cast(" type ", min(max(((int32*)x[i] >> cast(int32, right)), " least "), " most "))"),              \
     .call = "lathe_" end "x4_shifted(out, x, right)",                                                                 \
     .bytes = dt, .n_symbols = 1,                                                                                      \
     .symbols = {{.name = "right", .min = 0, .max = 31, .multiple = 1, .open = true}},                                 \
     INSTR("va", "shifted", cortex_m_cost_lanes)}

#define BY_NUMBER(end, ends, type, dt, file, help_text, op)                                                            \
    {.name = "lanes_" end,                                                                                             \
     .help = help_text,                                                                                                \
     .nest = NEST("2", "a: handle, k: handle",                                                                         \
                  FOUR("a", type) ", k: Buffer(" type ", [1]), " FOUR("out", type),                                    \
                  "((" type "*)a[i] " op " (" type "*)k[0])"),                                                         \
     .call = "lathe_" ends "(a, k)",                                                                                   \
     .inside = true, .makes = dt, INSTR("vvv", file, cortex_m_cost_lanes)}

/* What is left of a division, times the reciprocal, twice. */
#define WIDE(e)            "cast(float64, " e ")"
#define FIRST              "((float32*)a[i]*(float32*)by[0])"
#define MORE(q)                                                                                                        \
    "cast(float32, ((" WIDE("cast(float32, ((" WIDE(q) "*" REAL("minus[0]") ") + " REAL("a[i]") "))") "*"              \
    REAL("by[0]") ") + " WIDE(q) "))"
#define QUOTIENT           MORE(MORE(FIRST))

static const tir_intrin rows[] = {
    {.name = "lanes_of_i32",
     .help = "numbers of i32 as floats",
     .nest = NEST("1", "a: handle", FOUR("a", "int32") ", " FOUR("out", "float32"), "cast(float32, (int32*)a[i])"),
     .call = "lathe_f32x4_of(a)",
     .makes = DT_F32, INSTR("vv", "lanes", cortex_m_cost_lanes)},
    {.name = "lanes_fma",
     .help = "products of floats and floats, rounded once",
     .nest = NEST("3", "a: handle, b: handle, s: handle",
                  FOUR("a", "float32") ", " FOUR("b", "float32") ", " FOUR("s", "float32") ", " FOUR("out", "float32"),
                  "cast(float32, ((" REAL("a[i]") "*" REAL("b[i]") ") + " REAL("s[i]") "))"),
     .call = "lathe_f32x4_fma_once(a, b, s)",
     .makes = DT_F32, INSTR("vvvv", "lanes", cortex_m_cost_lanes)},
    {.name = "lanes_fma_by",
     .help = "products of floats by a number, and floats, rounded once",
     .nest = NEST("3", "a: handle, k: handle, s: handle",
                  FOUR("a", "float32") ", k: Buffer(float32, [1]), " FOUR("s", "float32") ", " FOUR("out", "float32"),
                  "cast(float32, ((" REAL("a[i]") "*" REAL("k[0]") ") + " REAL("s[i]") "))"),
     .call = "lathe_f32x4_fma_by(a, k, s)",
     .makes = DT_F32, INSTR("vvvv", "lanes", cortex_m_cost_lanes)},
    {.name = "lanes_product",
     .help = "products of floats that are no part of sums",
     .nest = NEST("2", "a: handle, b: handle",
                  FOUR("a", "float32") ", " FOUR("b", "float32") ", " FOUR("out", "float32"),
                  "cast(float32, (" REAL("a[i]") "*" REAL("b[i]") "))"),
     .call = "lathe_f32x4_product_once(a, b)",
     .makes = DT_F32, INSTR("vvv", "lanes", cortex_m_cost_lanes)},
    {.name = "lanes_weighted",
     .help = "numbers by a number, others by another, and a number",
     .nest = NEST("5", "a: handle, ka: handle, b: handle, kb: handle, more: handle",
                  FOUR("a", "int32") ", ka: Buffer(int32, [1]), " FOUR("b", "int32") ", kb: Buffer(int32, [1]), "
                  "more: Buffer(int32, [1]), " FOUR("out", "int32"),
                  "((((int32*)a[i]*(int32*)ka[0]) + ((int32*)b[i]*(int32*)kb[0])) + (int32*)more[0])"),
     .call = "lathe_i32x4_weighted(a, ka, b, kb, more)",
     .makes = DT_I32, INSTR("vvvvvv", "lanes", cortex_m_cost_lanes)},
    BY_NUMBER("plus", "i32x4_plus", "int32", DT_I32, "lanes", "numbers and a number", "+"),
    BY_NUMBER("times", "f32x4_times", "float32", DT_F32, "lanes", "floats by a number", "*"),
    {.name = "lanes_least",
     .help = "the least of four numbers, in each lane",
     .nest = NEST("1", "a: handle", FOUR("a", "int32") ", " FOUR("out", "int32"),
                  "min(min((int32*)a[0], (int32*)a[1]), min((int32*)a[2], (int32*)a[3]))"),
     .call = "lathe_i32x4_least(a)",
     .inside = true, .makes = DT_I32, INSTR("vv", "lanes", cortex_m_cost_lanes)},
    {.name = "lanes_quotient",
     .help = "floats by a number, from minus that and its reciprocal",
     .nest = NEST("3", "a: handle, minus: handle, by: handle",
                  FOUR("a", "float32") ", minus: Buffer(float32, [1]), by: Buffer(float32, [1]), "
                  FOUR("out", "float32"), QUOTIENT),
     .call = "lathe_f32x4_quotient(a, minus, by)",
     .inside = true, .makes = DT_F32, INSTR("vvvv", "lanes", cortex_m_cost_lanes)},
    BYTES("int8", "i8", DT_I8, "-128", "127"),
    BYTES("uint8", "u8", DT_U8, "0", "255"),
};

const tir_instructions tir_instructions_lanes = {rows, sizeof rows / sizeof *rows};
