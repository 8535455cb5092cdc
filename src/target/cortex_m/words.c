/* SPDX-License-Identifier: Apache-2.0 */
/* Cortex-M's instructions on four bytes in a word: loads and stores wherever they begin, the larger and the smaller
 * bytes of two words (SSUB8, SEL), and sums of bytes in halves of words (SXTAB16). Their C is in kernel/dsp. Loops over
 * bytes are made of them in pass/words.c. */
#include "target/cortex_m/cost.h"
#include "tir/family.h"
#include "type/target.h"

/* The byte of a word that begins at bit k, as a number, and a number as that byte. */
#define BYTE(type, word, k) "cast(" type ", ((uint32*)" word "[0] >> uint32(" k ")))"
#define AS_BYTE(number, k)  "(cast(uint32, cast(uint8, " number ")) << uint32(" k "))"
#define EXTREME(op, type, k) AS_BYTE(op "(" BYTE(type, "a", k) ", " BYTE(type, "b", k) ")", k)
#define LOADED(type, i, k)  AS_BYTE("(" type "*)from[" i "]", k)
/* A byte added to half a word, which keeps 16 bits. */
#define LOW(type, k)                                                                                                   \
    "(((uint32*)sums[0] + cast(uint32, cast(int32, " BYTE(type, "word", k) "))) & uint32(65535))"
#define HIGH(type, k)                                                                                                  \
    "(((uint32*)sums[0] & uint32(4294901760)) + (cast(uint32, cast(int32, " BYTE(type, "word", k) ")) << uint32(16)))"

#define NEST(inputs, params, buffers, body)                                                                            \
    "primfn(" params ") -> ()\n"                                                                                       \
    "  attr = {\"global_symbol\": \"word\", \"inputs\": " inputs "}\n"                                                 \
    "  buffers = {" buffers "} {\n  " body "\n}\n"
#define WORD(name) name ": Buffer(uint32, [1])"
#define INSTR(how, price)                                                                                              \
    .body = TIR_INSTRUCTION, .passed = how, .selected = true, .few = true,                                             \
    .features = TARGET_DSP, .cost = price

#define OF_MEMORY(type, end, what, in_front)                                                                           \
    {.name = "word_of" what end,                                                                                       \
     .help = "four bytes of " type " in memory",                                                                       \
     .nest = NEST("1", "from: handle, out: handle", "from: Buffer(" type ", [4]), " WORD("out"),                       \
                  "out[0] = ((" LOADED(type, "0", "0") " | " LOADED(type, "1", "8") ") | ("                            \
                      LOADED(type, "2", "16") " | " LOADED(type, "3", "24") "))"),                                     \
     .call = "lathe_get_word(from)",                                                                                   \
     .kernel = "kernel/dsp/words.h",                                                                                   \
     .attribute = in_front,                                                                                            \
     .makes = DT_U32, INSTR("av", cortex_m_cost_word)}
#define OF_TWO(op, type, end, word)                                                                                    \
    {.name = op "_of_words" end,                                                                                       \
     .help = op " of the four bytes of " type " in two words",                                                         \
     .nest = NEST("2", "a: handle, b: handle, out: handle", WORD("a") ", " WORD("b") ", " WORD("out"),                 \
                  "out[0] = ((" EXTREME(op, type, "0") " | " EXTREME(op, type, "8") ") | ("                            \
                      EXTREME(op, type, "16") " | " EXTREME(op, type, "24") "))"),                                     \
     .call = "lathe_" op "_word_" word "(a, b)",                                                                       \
     .kernel = "kernel/dsp/words.h",                                                                                   \
     .makes = DT_U32, INSTR("vvv", cortex_m_cost_word)}
#define SUMS(of, type, end, word, low, high)                                                                           \
    {.name = "sum_" of end,                                                                                            \
     .help = "two sums of 16 bits, and two bytes of " type " in a word",                                               \
     .nest = NEST("2", "sums: handle, word: handle, out: handle", WORD("sums") ", " WORD("word") ", " WORD("out"),     \
                  "out[0] = (" LOW(type, low) " | " HIGH(type, high) ")"),                                             \
     .call = "lathe_sum_" of "_" word "(sums, word)",                                                                  \
     .kernel = "kernel/dsp/sum_words.h",                                                                               \
     .makes = DT_U32, INSTR("vvv", cortex_m_cost_word)}
#define TO_MEMORY(type, end)                                                                                           \
    {.name = "put_word" end,                                                                                           \
     .help = "four bytes of " type " into memory",                                                                     \
     .nest = NEST("1", "word: handle, out: handle", WORD("word") ", out: Buffer(" type ", [4])",                       \
                  "for (i: int64, 0, 4) {\n    out[i] = cast(" type                                                    \
                  ", ((uint32*)word[0] >> cast(uint32, (i*8))))\n  }"),                                                \
     .call = "lathe_put_word(out, word)",                                                                              \
     .kernel = "kernel/dsp/words.h",                                                                                   \
     INSTR("va", cortex_m_cost_word)}
#define ROWS(type, end, word)                                                                                          \
    OF_MEMORY(type, end, "", NULL), OF_MEMORY(type, end, "_in_window", "LATHE_WINDOWS"),                               \
        OF_TWO("max", type, end, word), OF_TWO("min", type, end, word),                                                \
        SUMS("even", type, end, word, "0", "16"), SUMS("odd", type, end, word, "8", "24"), TO_MEMORY(type, end)

static const tir_intrin rows[] = {ROWS("int8", "", "i8"), ROWS("uint8", "_u8", "u8")};

const tir_instructions tir_instructions_words = {rows, sizeof rows / sizeof *rows};
