/* SPDX-License-Identifier: Apache-2.0 */
/* Long copies are calls of memcpy (../copies.c). C compilers call memmove, which takes longer, because they lose sight
 * of what `restrict` says. */
#include "target/cortex_m/units.h"
#include "tir/build.h"
#include "tir/instr.h"
#include "tir/pass/bytes.h"
#include "tir/pass/loop_work.h"
#include "tir/walk.h"
#include "type/target.h"

#define LEAST 4 /* iterations of the outermost loop */

/* Elements of one run in both places, by the loop and those inside of it, which are counted from the innermost one; 0:
 * there are gaps. */
static int64_t run_of(const tir_selector *x, const tir_stmt *loop, tir_expr_ref to, tir_expr_ref from)
{
    int64_t n = 0, inner = loop->body->kind == TIR_FOR ? run_of(x, loop->body, to, from) : 1;
    if (inner == 0 || loop->for_kind != FOR_SERIAL || !tir_is_int(loop->extent, &n) || n <= 0 || n > INT32_MAX / inner)
        return 0;
    if (loop->body->kind == TIR_FOR && tir_uses_var(loop->body->min, loop->var)) /* each run begins elsewhere */
        return 0;
    const bool beside = loop_step(x, to, loop->var) == inner && loop_step(x, from, loop->var) == inner;
    return beside ? n * inner : 0;
}

/* Where both lie in the same memory, memcpy is not defined. */
static bool is_shared(const tir_selector *x, const tir_buffer *b)
{
    const tir_func *f = x->f;
    for (uint32_t i = 0; f->shared && i < f->n_params; i++)
        if (f->params[i] == b)
            return f->shared[i];
    return false;
}

static bool is_copy(const tir_stmt *store)
{
    tir_expr_ref from = store->kind == TIR_STORE ? store->value : NULL;
    return from && from->kind == TIR_LOAD && from->type.lanes == 1 && from->u.buffer != store->buffer &&
           from->u.buffer->dt == store->buffer->dt &&
           from->u.buffer->scope != SCOPE_REG && store->buffer->scope != SCOPE_REG;
}

static tir_expr_ref first(const tir_selector *x, const tir_buffer *b, tir_expr_ref at, const tir_stmt *loop)
{
    for (; loop->kind == TIR_FOR; loop = loop->body)
        at = tir_substitute(x->c, at, 1, &loop->var, &loop->min);
    return tir_address(x->c, b, 1, &at);
}

static tir_stmt *copy_at_once(const tir_selector *x, tir_stmt *loop)
{
    const tir_stmt *store = loop;
    int64_t n = LEAST;
    while (store->kind == TIR_FOR)
        store = store->body;
    if (!is_copy(store) || (tir_is_int(loop->extent, &n) && n < LEAST))
        return NULL;
    const tir_buffer *source = store->value->u.buffer;
    tir_expr_ref to = tir_select_flat(x, store->buffer, store->n_indices, store->indices),
                 from = tir_select_flat(x, source, store->value->n_args, store->value->args);
    const dtype dt = store->buffer->dt;
    const tir_intrin *row = tir_find_intrin(x->c, tir_select_row(x->c, "copy", dt));
    n = run_of(x, loop, to, from);
    if (!row || n < row->symbols[0].min || is_shared(x, source) || is_shared(x, store->buffer))
        return NULL;
    tir_expr_ref args[] = {first(x, store->buffer, to, loop), first(x, source, from, loop), tir_int(x->c, DT_I32, n)};
    return tir_evaluate(x->c, tir_instr(x->c, row, TIR_OP_NONE, 3, args));
}

static bool is_meant(const tir_selector *x, tir_stmt *loop)
{
    loop_work w;
    if (!loop_work_of(x, loop, &w) || !w.store || !w.steps || w.inner > 0 || w.rows != 1 || w.others > 0 ||
        w.looked_up > 0 || w.kinds != 0 || is_shared(x, w.store->buffer))
        return false;
    const tir_intrin *row = tir_find_intrin(x->c, tir_select_row(x->c, "copy", w.store->buffer->dt));
    return row && w.rounds >= row->symbols[0].min && w.rounds < INT64_MAX; /* of a length that a run decides: any */
}

const tir_selection tir_selection_copies = {
    .fits = cortex_m_has_only_words, .loop = copy_at_once, .meant_loop = is_meant};
