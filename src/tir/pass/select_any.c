/* SPDX-License-Identifier: Apache-2.0 */
/* Whether any of four or eight neighboring bytes in memory is not 0: one word (intrin.c), on any processor. Sums of
 * products get their instructions by schedules: here those are counted that no rule has given one. */
#include "tir/build.h"
#include "tir/instr.h"
#include "tir/pass/loop_work.h"
#include "tir/pass/rounded.h"
#include "type/dot.h"

#define MOST_BYTES 8

/* The bytes that a chain of `|` reads of one buffer; false: something else, or more than MOST_BYTES. */
static bool bytes_of(tir_expr_ref e, tir_expr_ref *bytes, uint32_t *n)
{
    if (tir_is_binary(e, TIR_BITOR))
        return bytes_of(e->args[0], bytes, n) && bytes_of(e->args[1], bytes, n);
    if (e->kind != TIR_LOAD || e->type.dt != DT_U8 || e->type.lanes > 1 || e->n_args != 1 || *n == MOST_BYTES ||
        e->u.buffer->scope == SCOPE_REG || (*n > 0 && e->u.buffer != bytes[0]->u.buffer))
        return false;
    bytes[(*n)++] = e;
    return true;
}

/* Where the first of n bytes is that lie next to each other in any order; NULL: they do not. */
static tir_expr_ref first_of(const tir_selector *x, tir_expr_ref const *bytes, uint32_t n)
{
    tir_expr_ref at[MOST_BYTES];
    int64_t apart[MOST_BYTES] = {0};
    uint32_t first = 0, places = 0;
    for (uint32_t i = 0; i < n; i++) {
        at[i] = tir_select_flat(x, bytes[i]->u.buffer, 1, bytes[i]->args);
        if (at[i]->type.dt != at[0]->type.dt ||
            !tir_is_int(tir_simplify(x->bounds, tir_sub(x->c, at[i], at[0])), &apart[i]) || apart[i] <= -MOST_BYTES ||
            apart[i] >= MOST_BYTES)
            return NULL;
        first = apart[i] < apart[first] ? i : first;
    }
    for (uint32_t i = 0; i < n; i++)
        places |= apart[i] - apart[first] < n ? 1u << (apart[i] - apart[first]) : 0;
    return places == (1u << n) - 1 ? tir_address(x->c, bytes[0]->u.buffer, 1, &at[first]) : NULL;
}

static tir_expr_ref value(const tir_selector *x, tir_expr_ref e)
{
    tir_expr_ref bytes[MOST_BYTES], at;
    uint32_t n = 0;
    if (!tir_is_binary(e, TIR_NE) || e->type.lanes > 1)
        return NULL;
    const uint32_t zero = tir_is_const(e->args[1], 0) ? 1 : 0;
    if (!tir_is_const(e->args[zero], 0) || !bytes_of(e->args[1 - zero], bytes, &n) ||
        (n != MOST_BYTES / 2 && n != MOST_BYTES))
        return NULL;
    at = first_of(x, bytes, n);
    return at ? tir_select_instr(x->c, n == MOST_BYTES ? "any_of_8" : "any_of_4", 1, &at) : NULL;
}

/* Bytes of one buffer, or of several, joined by `|`, as many as a word may have. */
static bool is_meant(const tir_selector *x, tir_expr_ref e)
{
    tir_expr_ref bytes[MOST_BYTES];
    (void)x;
    for (uint32_t i = 0; i < 2 && tir_is_binary(e, TIR_NE); i++) {
        uint32_t n = 0;
        if (tir_is_const(e->args[1 - i], 0) && bytes_of(e->args[i], bytes, &n) && n >= MOST_BYTES / 2)
            return true;
    }
    return false;
}

/* On processors that have an instruction for such products. */
static bool is_dot(const tir_selector *x, tir_stmt *loop)
{
    const struct target *t = x->f->target;
    return ((t->features & TARGET_DSP) != 0 || target_find_dot(t, DT_U8, DT_I8, false)) &&
           loop_is_dot(x, loop);
}

static bool fits(const struct target *t)
{
    return t != NULL;
}

const tir_selection tir_selection_any = {
    .fits = fits, .expr = value, .meant_loop = is_dot, .meant_expr = is_meant};
