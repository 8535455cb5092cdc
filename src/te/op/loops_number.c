/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers that loops read and count with: operands of one element, and buffers of one element in the scope of a loop
 * nest. The operators of loops.c and the heap that some of them sort by are made of these. */
#include "te/op/loops.h"

tir_expr_ref loops_one(compiler *c, const tir_buffer *b)
{
    tir_expr_ref at[TYPE_MAX_RANK];
    for (uint32_t i = 0; i < b->rank; i++)
        at[i] = tir_i64(c, 0);
    return tir_load(c, b, b->rank, at);
}

const tir_buffer *loops_number(compiler *c, const char *name, dtype dt)
{
    return tir_buffer_static(c, name, dt, 1, (int64_t[]){1}, SCOPE_LOCAL);
}

tir_expr_ref loops_get(compiler *c, const tir_buffer *number)
{
    tir_expr_ref zero[1] = {tir_i64(c, 0)};
    return tir_load(c, number, 1, zero);
}

tir_stmt *loops_set(compiler *c, const tir_buffer *number, tir_expr_ref value)
{
    tir_expr_ref zero[1] = {tir_i64(c, 0)};
    return tir_store(c, number, 1, zero, value);
}

tir_stmt *loops_count_up(compiler *c, const tir_buffer *number)
{
    return loops_set(c, number, tir_add(c, loops_get(c, number), tir_i64(c, 1)));
}
