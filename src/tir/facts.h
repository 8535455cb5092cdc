/* SPDX-License-Identifier: Apache-2.0 */
/* What plan, programs and reports ask of a function of the loop IR (analysis.c, compare.c). */
#ifndef LATHE_TIR_FACTS_H
#define LATHE_TIR_FACTS_H
#include "tir/simplify.h"
#include "tir/tir.h"

/* May parameter `out` share storage with parameter `in`? True when every element is read (by any load of `in`) no later
 * than the iteration that writes it, at the same flat index, in a single nest. Equal byte sizes are the caller's
 * business. */
bool tir_can_alias(compiler *c, const tir_func *f, uint32_t in, uint32_t out);
/* The same where the outermost loop takes some of the channels, the last dimension, and leaves the others alone, and
 * within each of its iterations results are written behind what is read. */
bool tir_can_alias_in_lanes(compiler *c, const tir_func *f, uint32_t in, uint32_t out);
/* Where output `out` may begin without its elements being written over those of input `in` that are still read: `below`
 * bytes or more before the input begins, or `above` bytes or more behind that. Holds for one part. false: nothing is
 * gained. */
typedef struct tir_distance {
    uint64_t below, above;
} tir_distance;
bool tir_find_distance(compiler *c, const tir_func *f, uint32_t in, uint32_t out, tir_distance *result);
/* Extent, at its bound, of the one parallel loop that encloses all stores to outputs and global allocations; 1: there
 * is none. */
int64_t tir_parallel_extent(compiler *c, const tir_func *f);
/* Allocations in SCOPE_GLOBAL, in order of appearance: the scratch the plan must provide. per_part: inside the parallel
 * loop. */
typedef struct tir_scratch {
    const tir_buffer *buffer;
    bool per_part;
} tir_scratch;
uint32_t tir_find_scratch(compiler *c, const tir_func *f, const tir_scratch **out);
/* min(max(x, low), high) that e rounds as the pass round-in-lanes does, which sees to it that x is not NaN; NULL: e is
 * something else. */
tir_expr_ref tir_clamped_and_rounded(tir_expr_ref e);
/* What operations are counted as. `expr`: one expression without its operands; `stmt`: one statement without its
 * expressions and those in it, of a loop each time around; `call`: an external function or an instruction, -1 where it
 * has no bound. */
typedef struct tir_prices {
    const void *ctx;
    int64_t (*expr)(const void *ctx, tir_expr_ref e);
    int64_t (*stmt)(const void *ctx, const tir_stmt *s);
    int64_t (*call)(const void *ctx, compiler *c, tir_bounds *b, tir_expr_ref e);
} tir_prices;
/* The sum of one run, at most (cost.c). -1: none is known; out_why says what has no bound, else it is NULL. */
int64_t tir_most_operations(compiler *c, const tir_func *f, const tir_prices *p, const char **out_why);
/* Adds the elements that one run reads and writes, each time counted: of each parameter, and of scratch together.
 * false: addresses are handed to other code, and what that reads and writes is not among them. */
bool tir_count_accesses(compiler *c, const tir_func *f, double *params, double *scratch);
/* Sets what innermost loops have left undone (TIR_LEFT): guards, products and other loops without lanes, calls, vectors
 * beyond the registers of f's target. */
void tir_count_left(compiler *c, tir_func *f);
/* A function of floats that takes no time to speak of, beside its code. What moves bytes alone is as short when it is
 * written out. */
bool tir_takes_few_steps(const tir_func *f);
/* All that a round of this loop does is under a condition in which the loop's variable does not stand: once it is false
 * it stays so, and the loop may end. */
bool tir_ends_early(const tir_stmt *loop);
/* Of the structure: names of vars and buffers are left out. */
uint64_t tir_hash(const compiler *c, const tir_func *f);
bool tir_func_equal(const compiler *c, const tir_func *a, const tir_func *b);
#endif
