/* SPDX-License-Identifier: Apache-2.0 */
/* Passes on loops, as rows (pass.c): each runs alone through `lathe opt`. */
#ifndef LATHE_TIR_PASS_H
#define LATHE_TIR_PASS_H
#include "tir/tir.h"

typedef bool (*tir_pass_fn)(compiler *c, tir_func *f);
#define TIR_PASSES(X)                                                                                                \
    X(T_SIMPLIFY, "simplify-loops", tir_pass_simplify, "ranges, dead branches, loops of one iteration")              \
    X(T_PARTITION, "partition-loops", tir_pass_partition, "split loops where a guard changes, so that it goes away") \
    X(T_DOUBLE_BUFFER, "double-buffer", tir_pass_double_buffer, "marked buffers are filled one iteration ahead")     \
    X(T_TENSORIZE, "tensorize", tir_pass_tensorize, "marked regions become intrinsics")                              \
    X(T_FLATTEN, "flatten", tir_pass_flatten, "multi-dimensional accesses become one index")                         \
    X(T_VECTORIZE, "vectorize", tir_pass_vectorize, "vectorized loops become ramps and broadcasts")                  \
    X(T_ROUND, "round-in-lanes", tir_pass_round, "the end of a quantization as arithmetic that vectors have")        \
    X(T_MATH, "expand-math", tir_pass_math, "exp, log, tanh and others of float32 become arithmetic")   \
    X(T_UNROLL, "unroll", tir_pass_unroll, "unrolled loops are written out")                                         \
    X(T_HOIST, "hoist", tir_pass_hoist, "loop-invariant guards move out")                                            \
    X(T_UNSWITCH, "unswitch-loops", tir_pass_unswitch, "a guard that an inner loop does not decide chooses a loop")  \
    X(T_DEAD, "drop-dead-stores", tir_pass_dead_stores, "stores into private arrays that nothing reads go")          \
    X(T_BEGIN_SUMS, "begin-sums", tir_pass_begin_sums, "tiles of sums begin with what is added to them")             \
    X(T_JOIN_RUNS, "join-runs", tir_pass_join_runs, "loops over the rows of a window become one call")               \
    X(T_STORAGE, "rewrite-storage", tir_pass_storage,                                                                \
      "small allocations become locals, constant-index ones registers")                                              \
    X(T_REUSE, "reuse-in-place", tir_pass_reuse, "an element-wise result takes the place of what it is made from")   \
    X(T_NARROW, "narrow-indices", tir_pass_narrow, "loops and indices of 32 bits where pointers have as many")       \
    X(T_QUOTIENTS, "name-quotients", tir_pass_quotients, "divisions by open extents move out of loops")              \
    X(T_SHARE_SCRATCH, "share-scratch", tir_pass_share_scratch, "allocations that are never there together are one") \
    X(T_VTHREAD, "InjectVirtualThread", tir_pass_inject_virtual_thread, "virtual threads side by side")
#define X(id, name, fn, help) bool fn(compiler *c, tir_func *f);
TIR_PASSES(X)
#undef X
/* expand-math has arithmetic for this function of float32. */
bool tir_expands_math(tir_op op, uint16_t lanes);
/* names NULL: all in order; the name of a device: tir_device_passes. Verifies after each. */
bool tir_run_passes(compiler *c, tir_module *m, const char *names, bool print_after_all, writer *dump);

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
