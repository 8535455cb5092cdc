/* SPDX-License-Identifier: Apache-2.0 */
/* Tensor intrinsics: operations of the hardware that stand for a whole loop nest. A row declares the nest, as loop IR,
 * and what takes its place; the pass `tensorize` finds the nest in a marked region and puts it there
 * (tir/pass/tensorize.c, docs/reference/schedule.md). That is code, statements of the loop IR, or an instruction: one
 * node, TIR_INSTR, that names the row (tir/instr.h). A row is a family when its extents are symbols: a remainder tile
 * is then a smaller member. */
#ifndef LATHE_TIR_INTRIN_H
#define LATHE_TIR_INTRIN_H
#include "tir/tir.h"

#define TIR_INTRIN_SYMBOLS  10u
#define TIR_INTRIN_OPERANDS 8u

/* A name in the texts of a row that stands for a number of the region. */
typedef struct tir_intrin_symbol {
    const char *name;
    int64_t min, max, multiple; /* an extent that the code can do; max 0: a stride (multiple 0: whatever it is) */
    bool open; /* of an instruction: the call takes any number for it, not just a constant */
} tir_intrin_symbol;
/* Of rows that are built in: an extent from 1 to most, the same where any number may be passed, and a stride. */
#define TIR_EXTENT(symbol, most)      {.name = (symbol), .min = 1, .max = (most), .multiple = 1}
#define TIR_OPEN_EXTENT(symbol, most) {.name = (symbol), .min = 1, .max = (most), .multiple = 1, .open = true}
#define TIR_STRIDE(symbol)            {.name = (symbol)}
#define TIR_OPEN_STRIDE(symbol)       {.name = (symbol), .open = true}
#define TIR_EVEN_STRIDE(symbol)       {.name = (symbol), .multiple = 2}

/* The weights of an instruction whose data may stay in registers: bytes, or two of 4 bits in each byte. */
typedef enum tir_stays { TIR_STAYS_NOT, TIR_STAYS_BYTES, TIR_STAYS_NIBBLES } tir_stays;

struct tir_intrin_use;

typedef struct tir_intrin {
    const char *name;
    const char *help;
    /* A function over the operands, inputs first, results last. Its body is a loop nest with one store, or for a
     * reduction two, of which the first puts the identity; extents are numbers or symbols. A buffer's strides
     * (row-major when absent) are the layout that the code wants, its align what the first element's address is a
     * multiple of. */
    const char *nest;
    const char *scopes[TIR_INTRIN_OPERANDS]; /* of the operands' memory; NULL: any */
    uint32_t n_symbols;
    tir_intrin_symbol symbols[TIR_INTRIN_SYMBOLS];
    /* Statements over operands and symbols. A region holds the identity and the sum, one of them alone, or, when the
     * nest has one store, just that (body). NULL: the hardware has no such code. */
    const char *body, *reset, *update;
    /* Only of an instruction: how each operand of the nest is passed, the result last. 'v': by value, in registers;
     * 'm': the same, read from a run of elements in memory; 'a': by the address of its first element. A result by value
     * is an operand too, and its lanes say what the first symbol is. NULL: the row is code. */
    const char *passed;
    /* The nest of what the instruction computes, where that is less than what it stands for: a sum that has 16 bits on
     * the way. The rule that takes the row has proved that they are enough. NULL: `nest`. */
    const char *does;
    /* The instruction in C. The names of operands and symbols stand for them, &a for where the elements of operand a
     * are read, &a+s for where the one is that is s elements behind the first, $v for the vector type of the result,
     * $begins for 1 where it makes the result and 0 where it adds to it; "n*2" is twice the symbol n. */
    const char *call;
    /* The same for several first operands by address, each by the elements of the second one that follow the former's
     * (pass join-runs): $starts is the array of the addresses, $count their number. NULL: there is no such function. */
    const char *runs;
    /* The files that define `call` and `runs`, from the top of the tree; NULL: no C of ours is needed. A row from
     * elsewhere can only name files of this tree: its own header is for the flags of its target to include. */
    const char *kernel, *runs_kernel;
    /* A macro of the kernel's file that stands before functions that call it, instead of LATHE_TILE: what a C compiler
     * must be told of their loops. NULL: nothing of its own. */
    const char *attribute;
    dtype makes;    /* of an instruction that makes a value of others, one number or `lanes`: its type */
    /* Of an instruction in `lanes` whose kernel is a template: the type of few bits that it is about, DT_NONE: of none;
     * files that its C calls for one lane after the other, where compilers have no vectors. */
    dtype bytes;
    const char *of_lane[2];
    /* It has a form in C in which a few pixels stay in registers while all weights pass by (the C writer's
     * part in the folder of its processors). */
    tir_stays stays;
    bool selected; /* the pass select puts it where loops compute the same; no schedule asks for it */
    bool by_two;   /* two of them, of neighbors in a loop, take less than twice the time */
    bool few;      /* its C is a few instructions, which stand where they are called */
    bool inside;  /* select puts it only into other expressions: a statement that is its nest alone keeps its form */
    bool guarded; /* it reads operands under a condition of its own: they may begin outside of their buffers */
    bool words; /* arrays of small elements that it gets the address of should begin at a word */
    uint32_t lanes; /* of a result by value, whatever the region has, or of operands; 0: as many as the region has, in
                     * powers of two, or one */
    uint32_t features; /* of target_feature: what its kernel is written for; other processors run it as plain C */
    /* Instructions of one call of the kernel, at most (such as target/cortex_m/cost.c). NULL: nobody counts them;
     * of instructions in lanes type/dot.h has the costs. */
    double (*cost)(const struct tir_intrin_use *use);
    double widen;      /* of its cost: instructions that widen a channel's weights, for each step or vector */
    uint32_t channels; /* of its cost: channels for each unit of the symbol r, or bytes of an element */
    /* Fills in what depends on the configuration of the target, in a copy of the row. NULL: nothing does. */
    bool (*configure)(compiler *c, struct tir_intrin *row);
    const char *device; /* from `configure`: what the nest's extents are of, for messages */
} tir_intrin;

/* A call of an instruction whose cost is asked for. */
typedef struct tir_intrin_use {
    const tir_intrin *row;
    int64_t of[TIR_INTRIN_SYMBOLS]; /* what its symbols are, at most */
    uint32_t runs;                  /* first operands that it takes */
    bool words;                     /* the first operand begins at a word */
    bool fast;                      /* the processor has the row's features */
} tir_intrin_use;

/* As `body` or `update`: the instruction itself. */
#define TIR_INSTRUCTION "@"

/* Registers a copy of the row; its texts must live as long as c. DIAG_USAGE: the name is not new, or the row is not
 * whole. */
bool tir_register_intrin(compiler *c, const tir_intrin *row);
/* Built-in rows and those of c. NULL: unknown. */
const tir_intrin *tir_find_intrin(const compiler *c, const char *name);
/* What tir/instr.c has read of a row's nest, kept for the whole compile. NULL: nothing yet. */
struct tir_instr_form;
const struct tir_instr_form *tir_known_form(const compiler *c, const tir_intrin *row);
void tir_keep_form(compiler *c, const struct tir_instr_form *f);
/* "a, b, c": all names, for messages. */
const char *tir_list_intrins(compiler *c);
/* Memories that a buffer can live in: those of every target, and of the operands of intrinsics. */
bool tir_is_memory(const compiler *c, const char *scope);
const char *tir_list_memories(compiler *c); /* as tir_list_intrins */
#endif
