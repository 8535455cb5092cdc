/* SPDX-License-Identifier: Apache-2.0 */
/* The operations of VTA in the text of loops, and its passes, as rows. */
#ifndef LATHE_TARGET_VTA_PASS_PASSES_H
#define LATHE_TARGET_VTA_PASS_PASSES_H
#include "tir/pass.h"

/* X(name, arguments, function, queue, wait): operations of the VTA accelerator, written @name(...), and the function of
 * the run-time that each becomes (pass LowerIntrin); queue: the command queue goes in front of its arguments; wait: how
 * long goes behind. A call of any other name is written @tir.call_extern("name", ...). */
#define VTA_OPERATIONS(X)                                                                             \
    X("tir.vta.command_handle", 0, "VTATLSCommandHandle", false, false)                              \
    /* mode, reset_out, dst, src, wgt, opcode, use_imm, imm */                                       \
    X("tir.vta.uop_push", 8, "VTAUopPush", false, false)                                             \
    /* from queue, to queue: 1 load, 2 compute, 3 store */                                           \
    X("tir.vta.coproc_dep_push", 2, "VTADepPush", true, false)                                       \
    X("tir.vta.coproc_dep_pop", 2, "VTADepPop", true, false)                                         \
    /* debug flags of the run-time */                                                                \
    X("tir.vta.set_debug_mode", 1, "VTASetDebugMode", true, false)                                   \
    /* the host waits for the accelerator */                                                         \
    X("tir.vta.coproc_sync", 0, "VTASynchronize", true, true)                                        \
    /* buffer, bits of an element, start, extent: what the host wrote; what the accelerator wrote */ \
    X("tir.vta.coproc_read_barrier", 4, "VTAReadBarrier", true, false)                               \
    X("tir.vta.coproc_write_barrier", 4, "VTAWriteBarrier", true, false)

/* Passes on loops for the accelerator, under the names that TVM gave them (docs/explanation/vta.md). */
/* X(id, name, function, needs, gives, breaks, help), as TIR_PASSES has them */
#define VTA_PASSES(X)                                                                                             \
    X(T_TRANSPOSE, "InjectConv2DTransposeSkip", tir_pass_inject_conv2d_transpose_skip, TIR_FACT_NESTS, 0, 0,      \
      "taps on zeros cost nothing")                                                                               \
    X(T_DMA, "InjectDMAIntrin", tir_pass_inject_dma_intrin, TIR_FACT_NESTS, 0, 0,                                 \
      "a dma_copy nest becomes a transfer of rows")                                                               \
    X(T_SKIP_COPY, "InjectSkipCopy", tir_pass_inject_skip_copy, TIR_FACT_NESTS, 0, 0,                             \
      "a skip_dma_copy nest goes away")                                                                           \
    X(T_ANNOTATE_ALU, "AnnotateALUCoProcScope", tir_pass_annotate_alu_coproc_scope, TIR_FACT_NESTS, 0, 0,         \
      "an alu nest is a kernel")                                                                                  \
    X(T_LIFT_UOP, "LiftAttrScope(coproc_uop_scope)", tir_pass_lift_uop_scope,                                     \
      TIR_FACT_NESTS | TIR_FACT_THREADS, 0, 0, "kernels take in loops around them")                               \
    X(T_LIFT_ALLOC, "LiftAllocToScopeBegin", tir_pass_lift_alloc_to_scope_begin, TIR_FACTS_TASKS, 0, 0,           \
      "allocations open their loop")                                                                              \
    X(T_LIFT_COPROC, "LiftAttrScope(coproc_scope)", tir_pass_lift_coproc_scope,                                   \
      TIR_FACTS_TASKS, 0, TIR_FACT_NESTS, "neighbors in one queue are a task")                                    \
    X(T_SYNC, "InjectCoProcSync", tir_pass_inject_coproc_sync, TIR_FACT_THREADS, 0,                               \
      TIR_FACT_NESTS | TIR_FACT_UNSYNCED, "tokens between queues, waits and barriers of the host")                \
    X(T_EARLY_REWRITE, "EarlyRewrite", tir_pass_early_rewrite, 0, 0, 0,                                           \
      "in place, then one checked allocation a scratchpad")                                                       \
    X(T_VTA_STORAGE, "StorageRewrite", tir_pass_vta_storage_rewrite, 0, 0, 0,                                     \
      "one checked allocation a scratchpad")                                                                      \
    X(T_ALU, "InjectALUIntrin", tir_pass_inject_alu_intrin, TIR_FACT_UOP_LOOPS, 0, 0,                             \
      "an alu nest becomes loops around a micro-op")                                                              \
    X(T_LOWER_DEVICE, "LowerDeviceStorageAccessInfo", tir_pass_lower_device_storage, TIR_FACT_UOP_LOOPS, 0, 0,    \
      "addresses become indices")                                                                                 \
    X(T_FOLD_UOP, "FoldUopLoop", tir_pass_fold_uop_loop, 0, 0, TIR_FACT_UOP_LOOPS,                                \
      "loops around micro-ops become hardware loops")                                                             \
    X(T_CPU_ACCESS, "CPUAccessRewrite", tir_pass_cpu_access_rewrite, 0, 0, 0,                                     \
      "the host goes through the run-time's pointers")                                                            \
    X(T_LOWER_INTRIN, "LowerIntrin", tir_pass_lower_intrin, 0, 0, 0, "operations become calls of the run-time")
#define X(id, name, fn, needs, gives, breaks, help) bool fn(compiler *c, tir_func *f);
VTA_PASSES(X)
#undef X
bool tir_pass_set_debug_mode(compiler *c, tir_func *f, int64_t n); /* SetDebugMode(n) */
#endif
