/* SPDX-License-Identifier: Apache-2.0 */
/* The passes of VTA on loops, and their order. */
#include "target/vta/pass/passes.h"
#include "tir/family.h"

static const tir_pass_row rows[] = {
#define X(id, name, fn, help) {name, fn, help},
    VTA_PASSES(X)
#undef X
};

static const char order[] =
    "simplify-loops,double-buffer,partition-loops,tensorize,flatten,simplify-loops,"
    "InjectConv2DTransposeSkip,unroll,"
    "InjectDMAIntrin,InjectSkipCopy,AnnotateALUCoProcScope,LiftAttrScope(coproc_uop_scope),LiftAllocToScopeBegin,"
    "LiftAttrScope(coproc_scope),InjectCoProcSync,EarlyRewrite,"
    "InjectVirtualThread,StorageRewrite,simplify-loops,"
    "InjectALUIntrin,"
    "LowerDeviceStorageAccessInfo,FoldUopLoop,CPUAccessRewrite,simplify-loops";

const tir_loops tir_loops_vta = {.name = "vta",
                                 .order = order,
                                 .passes = rows,
                                 .n = sizeof rows / sizeof *rows,
                                 .numbered = "SetDebugMode",
                                 .numbered_after = "EarlyRewrite",
                                 .run_numbered = tir_pass_set_debug_mode};
