/* SPDX-License-Identifier: Apache-2.0 */
/* Passes on loops, as rows (pass.c): each runs alone through `lathe opt`. */
#ifndef LATHE_TIR_PASS_H
#define LATHE_TIR_PASS_H
#include "tir/tir.h"

typedef bool (*tir_pass_fn)(compiler *c, tir_func *f);
/* What a pass may need of loops: X(id, in words) */
#define TIR_FACTS(X)                                                      \
    X(TIR_FACT_FLAT, "allocations that are read by one index")            \
    X(TIR_FACT_ROLLED, "loops that are not written out")                  \
    X(TIR_FACT_SCALAR, "loops that may still get lanes")                  \
    X(TIR_FACT_WIDE, "indices of one width")                              \
    X(TIR_FACT_UNPLACED, "allocations that have no place yet")            \
    X(TIR_FACT_STORES, "loops whose stores no instruction hides")         \
    /* of devices that run tasks */                                           \
    X(TIR_FACT_NESTS, "nests that are in no task yet")                    \
    X(TIR_FACT_UNSYNCED, "tasks without tokens")                          \
    X(TIR_FACT_THREADS, "loops over virtual threads")                     \
    X(TIR_FACT_UOP_LOOPS, "loops around micro-operations")
enum {
#define X(id, text) id##_BIT,
    TIR_FACTS(X)
#undef X
#define X(id, text) id = 1 << id##_BIT,
    TIR_FACTS(X)
#undef X
    TIR_FACTS_EARLY = TIR_FACT_WIDE | TIR_FACT_UNPLACED,
    TIR_FACTS_LOOPS = TIR_FACTS_EARLY | TIR_FACT_ROLLED, /* the loops are as a schedule left them */
    TIR_FACTS_TASKS = TIR_FACT_UNSYNCED | TIR_FACT_THREADS
};
/* X(id, name, function, needs, gives, breaks, help) */
#define TIR_PASSES(X)                                                                                             \
    X(T_SIMPLIFY, "simplify-loops", tir_pass_simplify, 0, 0, 0, "ranges, dead branches, loops of one iteration")  \
    X(T_PARTITION, "partition-loops", tir_pass_partition, TIR_FACTS_LOOPS, 0, 0,                                  \
      "split loops where a guard changes, so that it goes away")                                                  \
    X(T_DOUBLE_BUFFER, "double-buffer", tir_pass_double_buffer, TIR_FACTS_LOOPS, 0, 0,                            \
      "marked buffers are filled one iteration ahead")                                                            \
    X(T_TENSORIZE, "tensorize", tir_pass_tensorize, TIR_FACTS_LOOPS, 0, 0, "marked regions become intrinsics")    \
    X(T_FLATTEN, "flatten", tir_pass_flatten, TIR_FACT_UNPLACED, TIR_FACT_FLAT, 0,                                \
      "multi-dimensional accesses become one index")                                                              \
    X(T_VECTORIZE, "vectorize", tir_pass_vectorize, TIR_FACTS_EARLY | TIR_FACT_SCALAR, 0, TIR_FACT_ROLLED,        \
      "vectorized loops become ramps and broadcasts")                                                             \
    X(T_ROUND, "round-in-lanes", tir_pass_round, 0, 0, TIR_FACT_SCALAR,                                           \
      "the end of a quantization as arithmetic that vectors have")                                                \
    X(T_MATH, "expand-math", tir_pass_math, 0, 0, TIR_FACT_SCALAR,                                                \
      "exp, log, tanh and others of float32 become arithmetic")                                                   \
    X(T_UNROLL, "unroll", tir_pass_unroll, TIR_FACT_UNPLACED, 0, TIR_FACT_ROLLED,                                 \
      "unrolled loops are written out")                                                                           \
    X(T_HOIST, "hoist", tir_pass_hoist, 0, 0, 0, "loop-invariant guards move out")                                \
    X(T_UNSWITCH, "unswitch-loops", tir_pass_unswitch, 0, 0, 0,                                                   \
      "a guard that an inner loop does not decide chooses a loop")                                                \
    X(T_DEAD, "drop-dead-stores", tir_pass_dead_stores, 0, 0, 0,                                                  \
      "stores into private arrays that nothing reads go")                                                         \
    X(T_BEGIN_SUMS, "begin-sums", tir_pass_begin_sums, 0, 0, 0,                                                   \
      "tiles of sums begin with what is added to them")                                                           \
    X(T_JOIN_RUNS, "join-runs", tir_pass_join_runs, 0, 0, 0, "loops over the rows of a window become one call")   \
    X(T_JOIN_CHECKS, "join-checks", tir_pass_join_checks, TIR_FACT_FLAT, 0, 0,                                    \
      "what a loop asserts of each element is asserted once behind it")                                           \
    X(T_STORAGE, "rewrite-storage", tir_pass_storage, TIR_FACT_FLAT, 0, TIR_FACT_UNPLACED,                        \
      "small allocations become locals, constant-index ones registers")                                           \
    X(T_REUSE, "reuse-in-place", tir_pass_reuse, TIR_FACT_STORES, 0, 0,                                           \
      "an element-wise result takes the place of what it is made from")                                           \
    X(T_NARROW, "narrow-indices", tir_pass_narrow, 0, 0, TIR_FACT_WIDE,                                           \
      "loops and indices of 32 bits where pointers have as many")                                                 \
    X(T_QUOTIENTS, "name-quotients", tir_pass_quotients, 0, 0, 0, "divisions by open extents move out of loops")  \
    X(T_SELECT, "select", tir_pass_select, 0, 0, TIR_FACT_STORES,                                                 \
      "loops become instructions of the processor")                                                               \
    X(T_HOIST_STARTS, "hoist-starts", tir_pass_hoist_starts, 0, 0, 0,                                             \
      "where the operands of one call begin is noted in front of a loop")                                         \
    X(T_HOIST_LOADS, "hoist-loads", tir_pass_hoist_loads, 0, 0, 0,                                                \
      "vectors that a loop reads again and again are read in front of it")                                        \
    X(T_SAY_ROUNDS, "say-rounds", tir_pass_say_rounds, 0, 0, 0,                                                   \
      "what C compilers are told of loops that they should not write out is noted")                               \
    X(T_SHARE_SCRATCH, "share-scratch", tir_pass_share_scratch, TIR_FACT_FLAT, 0, 0,                              \
      "allocations that are never there together are one")                                                        \
    X(T_VTHREAD, "InjectVirtualThread", tir_pass_inject_virtual_thread, 0, 0, TIR_FACT_THREADS,                   \
      "virtual threads side by side")
#define X(id, name, fn, needs, gives, breaks, help) bool fn(compiler *c, tir_func *f);
TIR_PASSES(X)
#undef X
/* expand-math has arithmetic for this function of float32. */
bool tir_expands_math(tir_op op, uint16_t lanes);
bool tir_widens_math(tir_op op); /* and computes in f64, in lanes alone */
/* names NULL: all in order; the name of a device: tir_device_passes. Verifies after each. */
bool tir_run_passes(compiler *c, tir_module *m, const char *names, bool print_after_all, writer *dump);
/* Keys of annotations "pragma_KEY" that some pass acts on, of all processors or of a device; a list: " KEY KEY". */
bool tir_is_pragma(const char *key);
/* Whether "pragma_KEY" marks what becomes one operation of an accelerator. */
bool tir_pragma_is_whole(const char *annotation);
const char *tir_pragmas(compiler *c);
/* What holds of functions as they are, of the facts that some pass gives. */
uint32_t tir_facts(const tir_module *m);
extern const struct pass_level tir_passes; /* base/pass.h */
extern const char *const tir_default_passes;

/* What a run of passes is made of: names in order (as above), of which `disabled` are left out, and, where `flags` is
 * not 0, the pass with a number that a device puts flags of debugging in front with. */
typedef struct tir_build_config {
    const char *passes, *disabled; /* disabled NULL: none */
    int64_t flags;
} tir_build_config;
/* The names that tir_run_passes takes; false after DIAG_USAGE: a name that is no pass, or that is not among them. */
bool tir_build_config_passes(compiler *c, const tir_build_config *b, const char **out);

/* Loops as a schedule says them, with guards cut away, accesses flattened and nothing else decided. */
extern const char *const tir_plain_passes;
/* The passes of a device in order, on loops as a schedule leaves them; NULL: there is none of that name. */
const char *tir_device_passes(const char *device);
#endif
