/* SPDX-License-Identifier: Apache-2.0 */
/* Passes on loops, as rows (pass.c): each runs alone through `lathe opt`. */
#ifndef LATHE_TIR_PASS_H
#define LATHE_TIR_PASS_H
#include "tir/tir.h"

typedef bool (*tir_pass_fn)(compiler *c, tir_func *f);
/* For the VTA accelerator, under the names that TVM gave them (src/tir/pass/vta, docs/explanation/vta.md). */
#define TIR_VTA_PASSES(X)                                                                                             \
    X(T_TRANSPOSE, "InjectConv2DTransposeSkip", tir_pass_inject_conv2d_transpose_skip, "taps on zeros cost nothing") \
    X(T_DMA, "InjectDMAIntrin", tir_pass_inject_dma_intrin, "a dma_copy nest becomes a transfer of rows")             \
    X(T_SKIP_COPY, "InjectSkipCopy", tir_pass_inject_skip_copy, "a skip_dma_copy nest goes away")                     \
    X(T_ANNOTATE_ALU, "AnnotateALUCoProcScope", tir_pass_annotate_alu_coproc_scope, "an alu nest is a kernel")        \
    X(T_LIFT_UOP, "LiftAttrScope(coproc_uop_scope)", tir_pass_lift_uop_scope, "kernels take in loops around them")    \
    X(T_LIFT_ALLOC, "LiftAllocToScopeBegin", tir_pass_lift_alloc_to_scope_begin, "allocations open their loop")       \
    X(T_LIFT_COPROC, "LiftAttrScope(coproc_scope)", tir_pass_lift_coproc_scope, "neighbors in one queue are a task")  \
    X(T_SYNC, "InjectCoProcSync", tir_pass_inject_coproc_sync,                                                        \
      "tokens between queues, waits and barriers of the host")                                                        \
    X(T_EARLY_REWRITE, "EarlyRewrite", tir_pass_early_rewrite, "in place, then one checked allocation a scratchpad")  \
    X(T_VTA_STORAGE, "StorageRewrite", tir_pass_vta_storage_rewrite, "one checked allocation a scratchpad")           \
    X(T_ALU, "InjectALUIntrin", tir_pass_inject_alu_intrin, "an alu nest becomes loops around a micro-op")            \
    X(T_LOWER_DEVICE, "LowerDeviceStorageAccessInfo", tir_pass_lower_device_storage, "addresses become indices")      \
    X(T_FOLD_UOP, "FoldUopLoop", tir_pass_fold_uop_loop, "loops around micro-ops become hardware loops")             \
    X(T_CPU_ACCESS, "CPUAccessRewrite", tir_pass_cpu_access_rewrite, "the host goes through the run-time's pointers") \
    X(T_LOWER_INTRIN, "LowerIntrin", tir_pass_lower_intrin, "operations become calls of the run-time")
#define TIR_PASSES(X)                                                                                                \
    X(T_SIMPLIFY, "simplify-loops", tir_pass_simplify, "ranges, dead branches, loops of one iteration")              \
    X(T_PARTITION, "partition-loops", tir_pass_partition, "split loops where a guard changes, so that it goes away") \
    X(T_DOUBLE_BUFFER, "double-buffer", tir_pass_double_buffer, "marked buffers are filled one iteration ahead")     \
    X(T_TENSORIZE, "tensorize", tir_pass_tensorize, "marked regions become intrinsics")                              \
    X(T_FLATTEN, "flatten", tir_pass_flatten, "multi-dimensional accesses become one index")                         \
    X(T_VECTORIZE, "vectorize", tir_pass_vectorize, "vectorized loops become ramps and broadcasts")                  \
    X(T_ROUND, "round-in-lanes", tir_pass_round, "the end of a quantization as arithmetic that vectors have")        \
    X(T_MATH, "expand-math", tir_pass_math, "exp, log, erf, tanh of float32 become arithmetic, for any lanes")   \
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
    X(T_VTHREAD, "InjectVirtualThread", tir_pass_inject_virtual_thread, "virtual threads side by side")              \
    TIR_VTA_PASSES(X)
/* Passes with a number behind their names, "NAME(N)". */
#define TIR_NUMBERED_PASSES(X) \
    X("SetDebugMode", tir_pass_set_debug_mode, "the function begins with the debug flags of VTA's run-time")
#define X(id, name, fn, help) bool fn(compiler *c, tir_func *f);
TIR_PASSES(X)
#undef X
#define X(name, fn, help) bool fn(compiler *c, tir_func *f, int64_t n);
TIR_NUMBERED_PASSES(X)
#undef X
/* names NULL: all in order; "vta": tir_vta_passes. Verifies after each. */
bool tir_run_passes(compiler *c, tir_module *m, const char *names, bool print_after_all, writer *dump);

/* What a run of passes is made of: names in order (NULL or "vta" as above), of which `disabled` are left out, and, when
 * debug_flag is not 0, the pass "SetDebugMode(FLAG)" behind EarlyRewrite, or last: the function then begins with the
 * run-time's VTASetDebugMode (dump_insn 2, dump_uop 4, skip_read_barrier 8, skip_write_barrier 16, force_serial 32). */
typedef struct tir_build_config {
    const char *passes, *disabled; /* disabled NULL: none */
    int64_t debug_flag;
} tir_build_config;
/* The names that tir_run_passes takes; false after DIAG_USAGE: a name that is no pass, or that is not among them. */
bool tir_build_config_passes(compiler *c, const tir_build_config *b, const char **out);

/* Loops as a schedule says them, with guards cut away, accesses flattened and nothing else decided. */
extern const char *const tir_plain_passes;
/* The passes of the VTA back end in order, on loops as a schedule leaves them. */
extern const char *const tir_vta_passes;
#endif
