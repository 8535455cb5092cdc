/* SPDX-License-Identifier: Apache-2.0 */
/* The operations of VTA in the text of loops. */
#include "target/vta/pass/vta.h"
#include "tir/build.h"
#include "tir/family.h"

static const tir_operation rows[] = {
#define X(name, n, function, queue, wait) {name, n},
    VTA_OPERATIONS(X)
#undef X
};

static tir_expr_ref overwritten(tir_expr_ref call)
{
    if (vta_is_call(call, "VTALoadBuffer2D") && call->n_args == VTA_LOAD_ARGS)
        return call->args[VTA_LOAD_SRAM];
    if (vta_is_call(call, "tir.vta.uop_push") && call->n_args == VTA_UOP_ARGS &&
        tir_is_const(call->args[VTA_UOP_RESET], 1))
        return call->args[VTA_UOP_DST];
    return NULL;
}

const tir_operations tir_operations_vta = {rows, sizeof rows / sizeof *rows, overwritten};
