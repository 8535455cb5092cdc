/* SPDX-License-Identifier: Apache-2.0 */
/* The upper word of a product, with something added, as it is known again by the writer of expressions: an instruction
 * of a Cortex-M. Its bits but the last ones as a byte are another one. */
#include "codegen/c/emit.h"

bool expr_high_sum(tir_expr_ref x, c_high_sum *out)
{
    for (uint32_t i = 0; i < 2 && x->type.lanes == 1 && expr_is_binary(x, TIR_ADD); i++) {
        tir_expr_ref high = x->args[i];
        if (high->kind == TIR_CALL && high->op == TIR_HIGH) {
            *out = (c_high_sum){.x = high->args[0], .y = high->args[1], .more = x->args[1 - i]};
            return true;
        }
    }
    return false;
}

static bool is_bound(tir_expr_ref x, int64_t v)
{
    return x->kind == TIR_INT && x->u.i == v;
}

bool expr_high_byte(tir_expr_ref top, dtype to, c_high_sum *out)
{
    tir_expr_ref low = expr_is_binary(top, TIR_MIN) ? top->args[0] : NULL;
    if (!dtype_is_int(to) || dtype_bits(to) != 8 || top->type.dt != DT_I32 || !low || !expr_is_binary(low, TIR_MAX) ||
        !is_bound(top->args[1], dtype_max_int(to)) || !is_bound(low->args[1], dtype_min_int(to)))
        return false;
    tir_expr_ref shifted = low->args[0];
    if (!expr_is_binary(shifted, TIR_SHR) || !expr_high_sum(shifted->args[0], out))
        return false;
    out->right = shifted->args[1];
    return true;
}
