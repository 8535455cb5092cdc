/* SPDX-License-Identifier: Apache-2.0 */
/* rolling_buffer: a placed stage whose box moves by a few rows with each iteration of its loop keeps the rows that the
 * next iteration needs again. The buffer stands outside of the loop and is as long as the box, row r lies in slot r mod
 * length, and only the first iteration computes the whole box. */
#include "te/stage.h"


static bool refuse(te_lowering *lw, const te_stage *st, const char *why)
{
    return te_sched_error(lw, DIAG_VERIFY, st->loc, "rolling_buffer %s at %s.%s: %s", st->name, st->at->name,
                          st->at_iter->name, why);
}

/* How far e moves from one iteration of the loop to the next. */
static tir_expr_ref step_of(te_lowering *lw, tir_expr_ref e, const tir_var *v)
{
    tir_expr_ref next = tir_add(lw->c, tir_varref(lw->c, v), tir_i64(lw->c, 1));
    return tir_simplify(lw->bounds, tir_sub(lw->c, tir_substitute(lw->c, e, 1, &v, &next), e));
}

/* Iterations of the loop that do not run are the last ones: the first one that runs is number 0. */
static bool starts_at_first(te_lowering *lw, te_stage *st)
{
    const tir_var *v = st->at_iter->var;
    for (tir_expr_ref const *g = te_stage_guards(lw, st->at); *g; g++) {
        int64_t step = -1;
        if (!tir_uses_var(*g, v))
            continue;
        if ((*g)->kind != TIR_BINOP || (*g)->op != TIR_LT || tir_uses_var((*g)->args[1], v) ||
            !tir_is_int(step_of(lw, (*g)->args[0], v), &step) || step < 0)
            return false;
    }
    return true;
}

bool te_infer_roll(te_lowering *lw, te_stage *st)
{
    const tir_var *v = st->at_iter->var;
    uint32_t n = st->op.n_axes, moving = n;
    int64_t step = 0, length = 0;
    if (st->at_iter->loop != FOR_SERIAL)
        return refuse(lw, st, "the loop is not serial");
    if (st->double_buffer)
        return refuse(lw, st, "the buffer has two halves already");
    for (uint32_t i = 0; i < n; i++) {
        if (!tir_uses_var(st->lo[i], v))
            continue;
        if (moving < n)
            return refuse(lw, st, "its piece moves along two axes");
        moving = i;
    }
    if (moving == n)
        return refuse(lw, st, "its piece does not move with the loop");
    if (!tir_is_int(step_of(lw, st->lo[moving], v), &step) || step < 1 || !tir_is_int(st->extent[moving], &length))
        return refuse(lw, st, "its piece does not move by a constant number of rows");
    if (step >= length)
        return refuse(lw, st, "its pieces do not overlap");
    if (!starts_at_first(lw, st))
        return refuse(lw, st, "the first iteration may not run");
    st->roll = (te_roll){moving, step, length};
    return true;
}

tir_expr_ref te_roll_slot(te_lowering *lw, const te_stage *st, tir_expr_ref row)
{
    return tir_simplify(lw->bounds, tir_floormod(lw->c, row, tir_i64(lw->c, st->roll.length)));
}
