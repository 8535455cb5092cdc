/* SPDX-License-Identifier: Apache-2.0 */
/* Rows of quantised numbers in vector lanes: what ends in a rounding to 8 bits, which C compilers do not vectorize. */
#include "te/inline.h"
#include "te/rule/rule.h"
#include "tir/instr.h"
#include "tir/walk.h"

#include <string.h>

typedef struct byte_check {
    bool fits, rounds;
} byte_check;

static bool is_lane_type(dtype dt)
{
    return dt == DT_U8 || dt == DT_I8 || dt == DT_I32 || dt == DT_F32 || dt == DT_F64;
}

/* What vectors of integers have an instruction for. */
static bool has_lanes(tir_op op, dtype dt)
{
    const bool always = op == TIR_ADD || op == TIR_SUB || op == TIR_MUL || op == TIR_MIN || op == TIR_MAX;
    const bool shifts = op == TIR_SHL || op == TIR_SHR;
    return always || (shifts && dt == DT_I32) || (op == TIR_DIV && dtype_is_float(dt));
}

/* Arithmetic between such types; no choice between loads. */
static void look(void *ctx, tir_expr_ref e)
{
    byte_check *k = ctx;
    const bool index = e->type.dt == DT_I64;
    const bool rounds = e->kind == TIR_CALL && (e->op == TIR_RINT || tir_op_is_fixed(e->op));
    if (e->kind == TIR_SELECT || tir_is_call(e) || (!index && !is_lane_type(e->type.dt)))
        k->fits = false;
    if (e->kind == TIR_CALL && !rounds && e->op != TIR_APART)
        k->fits = false;
    if (e->kind == TIR_BINOP && !index)
        k->fits &= has_lanes(e->op, e->type.dt);
    k->rounds |= rounds;
}

/* At the stage and what is inlined (into whatever stage). */
static byte_check look_at(const te_sched *s, const te_node *n)
{
    byte_check k = {.fits = true};
    tir_visit_expr(n->body[0], look, &k);
    for (uint32_t i = 0; k.fits && i < s->g->nodes.len; i++) {
        const te_node *x = s->g->nodes.data[i];
        if (x->kind == TE_COMPUTE && te_is_inlined(s, x) && !te_is_literal(x) && te_uses_of(s->g, x) > 0)
            tir_visit_expr(x->body[0], look, &k);
    }
    return k;
}

bool te_bytes_fit(const te_sched *s, const te_node *n)
{
    if (n->n_outputs != 1 || dtype_bits(n->outputs[0]->dt) != 8 || n->reducer)
        return false;
    const byte_check k = look_at(s, n);
    return k.fits && k.rounds;
}

bool te_numbers_fit(const te_sched *s, const te_node *n)
{
    const dtype dt = n->outputs[0]->dt;
    return n->n_outputs == 1 && (dt == DT_F32 || dt == DT_I32) && look_at(s, n).fits;
}
