/* SPDX-License-Identifier: Apache-2.0 */
/* The passes of VTA on loops, and their order. */
#include "target/vta/pass/passes.h"
#include "tir/family.h"

static const tir_pass_row rows[] = {
#define X(id, name, fn, needs, gives, breaks, help) {{name, help, needs, gives, breaks, 0}, fn, NULL},
    VTA_PASSES(X)
#undef X
};

static const tir_pass_row debug_flags = {.row = {.name = "SetDebugMode(N)",
                                                 .help = "the function begins with debug flags of the run-time"},
                                         .run_numbered = tir_pass_set_debug_mode};

static const char order[] =
    "simplify-loops,double-buffer,partition-loops,tensorize,flatten,simplify-loops,"
    "InjectConv2DTransposeSkip,unroll,"
    "InjectDMAIntrin,InjectSkipCopy,AnnotateALUCoProcScope,LiftAttrScope(coproc_uop_scope),LiftAllocToScopeBegin,"
    "LiftAttrScope(coproc_scope),InjectCoProcSync,EarlyRewrite,"
    "InjectVirtualThread,StorageRewrite,simplify-loops,"
    "InjectALUIntrin,"
    "LowerDeviceStorageAccessInfo,FoldUopLoop,CPUAccessRewrite,simplify-loops";

/* The condition of a copy is padding, that of an operation on accumulators a part of them. */
static const tir_pragma pragmas[] = {
    {"dma_copy", true},     {"skip_dma_copy", false},        {"alu", true}, {"skip_alu", false},
    {"coproc_sync", false}, {"conv2d_transpose_gemm", false}, {NULL, false},
};

const tir_loops tir_loops_vta = {.name = "vta",
                                 .order = order,
                                 .passes = rows,
                                 .n = sizeof rows / sizeof *rows,
                                 .flags = &debug_flags,
                                 .flags_after = "EarlyRewrite",
                                 .pragmas = pragmas};
