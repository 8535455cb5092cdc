/* SPDX-License-Identifier: Apache-2.0 */
/* Which helper functions the kernels need, and what those of vectors are called; needs.c writes them. */
#include "codegen/c/emit.h"

#include <string.h>

const char *needs_vector_name(arena *a, dtype dt, uint32_t lanes)
{
    return arena_printf(a, "%sx%u", dtype_name(dt), lanes);
}

/* Elements are held in the ctype of arithmetic. */
static uint32_t lane_bytes(dtype dt)
{
    return dt == DT_F16 || dt == DT_BF16 ? 4 : (uint32_t)dtype_bytes(dt);
}

uint32_t needs_vector_bytes(dtype dt, uint32_t lanes)
{
    return lane_bytes(dt) * lanes;
}

/* A word for a function's name: "add", "lt", "exp". */
const char *needs_op_name(tir_op op)
{
    static const struct {
        tir_op op;
        const char *name;
    } words[] = {
        {TIR_ADD, "add"},  {TIR_SUB, "sub"},    {TIR_MUL, "mul"}, {TIR_DIV, "div"}, {TIR_MOD, "mod"},
        {TIR_EQ, "eq"},    {TIR_NE, "ne"},      {TIR_LT, "lt"},   {TIR_LE, "le"},   {TIR_GT, "gt"},
        {TIR_GE, "ge"},    {TIR_AND, "both"},   {TIR_OR, "any"},  {TIR_SHL, "shl"}, {TIR_BITAND, "and"},
        {TIR_BITOR, "or"}, {TIR_BITXOR, "xor"}, {TIR_SHR, "shr"},
    };
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (words[i].op == op)
            return words[i].name;
    return tir_op_text(op);
}

static bool same(const c_need *x, const c_need *y)
{
    return x->kind == y->kind && x->op == y->op && x->dt == y->dt && x->to == y->to && x->lanes == y->lanes &&
           x->form == y->form && (x->file == y->file || (x->file && y->file && strcmp(x->file, y->file) == 0));
}

void needs_add(c_needs *n, c_need need)
{
    for (uint32_t i = 0; i < n->list.len; i++) {
        c_need *known = &n->list.data[i];
        if (!same(known, &need))
            continue;
        known->fallback = known->fallback && n->fallback;
        return;
    }
    need.fallback = n->fallback;
    vec_push(n->a, &n->list, need);
}

void needs_add_kernel(c_needs *n, const char *file)
{
    const bool fallback = n->fallback; /* a file is for all that call it */
    n->fallback = false;
    needs_add(n, (c_need){.kind = NEED_KERNEL, .file = file});
    n->fallback = fallback;
}

void needs_add_lanes_kernel(c_needs *n, const char *file, dtype dt, dtype of, uint32_t lanes)
{
    needs_add(n, (c_need){.kind = NEED_KERNEL, .file = file, .dt = dt, .to = of, .lanes = lanes});
}
