/* SPDX-License-Identifier: Apache-2.0 */
/* Symbolic dimensions. A function with symbols gets one more input for each, a cell that holds its value; parameters
 * are as large as the cells say, everything that is allocated is as large as the declared upper bounds allow. */
#include "abi/package.h"
#include "te/stage.h"
#include "tir/linear.h"

#include <inttypes.h>

/* Where symbols may have no bound, a size that can be as large has none either: it is made of TE_MOST_EXTENT. */
#define UNBOUNDED_FROM ((int64_t)1 << 32)

static tir_expr_ref cell_value(te_lowering *lw, uint32_t i)
{
    return tir_load(lw->c, lw->cells[i], 0, NULL);
}

/* A new one whatever changes: products are ordered by the age of buffers, and a computation that is read from text has
 * to give the loops of the model's, whose parameters have other names. */
static const tir_buffer *sized_by_cells(te_lowering *lw, const tir_buffer *b, const char *name)
{
    compiler *c = lw->c;
    tir_expr_ref *dims = arena_array(&c->mem, tir_expr_ref, b->rank);
    for (uint32_t i = 0; i < b->rank; i++) {
        dims[i] = b->shape[i];
        for (uint32_t k = 0; k < lw->g->symbols.len; k++) {
            tir_expr_ref value = cell_value(lw, k);
            dims[i] = tir_substitute(c, dims[i], 1, &lw->g->symbols.data[k].var, &value);
        }
    }
    return tir_new_buffer(c, name, b->dt, b->rank, dims, SCOPE_GLOBAL);
}

tir_bounds *te_new_bounds(te_lowering *lw)
{
    tir_bounds *b = tir_bounds_new(lw->c);
    for (uint32_t i = 0; i < lw->g->symbols.len; i++) {
        const te_symbol *s = &lw->g->symbols.data[i];
        tir_range r = {true, true, 0, s->max < 0 ? TE_MOST_EXTENT : s->max};
        bounds_push_range(b, s->var, r, false);
    }
    return b;
}

void te_declare_symbols(te_lowering *lw)
{
    te_graph *g = lw->g;
    const tir_buffer **cells = arena_array(&lw->c->mem, const tir_buffer *, g->symbols.len),
                     **params = arena_array(&lw->c->mem, const tir_buffer *, g->params.len);
    lw->cells = cells;
    lw->params = params;
    for (uint32_t i = 0; i < g->symbols.len; i++) {
        const te_symbol *s = &g->symbols.data[i];
        cells[i] =
            tir_new_buffer(lw->c, arena_printf(&lw->c->mem, "%s_cell", s->var->name), DT_I64, 0, NULL, SCOPE_GLOBAL);
    }
    for (uint32_t i = 0; i < g->params.len; i++) {
        const te_tensor *t = g->params.data[i];
        params[i] = sized_by_cells(lw, t->buffer, t->node->label ? t->node->label : t->buffer->name);
        tir_map_put(&lw->param_of, g->params.data[i]->buffer, params[i]);
    }
}

const tir_buffer *te_param_of(const te_lowering *lw, const te_tensor *t)
{
    return tir_map_get(&lw->param_of, t->buffer);
}

tir_expr_ref te_static_extent(te_lowering *lw, const te_stage *st, tir_expr_ref e)
{
    if (e->kind == TIR_INT)
        return e;
    tir_range r = tir_range_of(lw->bounds, e);
    if (r.known_max && r.max < (lw->g->unbounded ? UNBOUNDED_FROM : TE_MOST_EXTENT))
        return tir_i64(lw->c, r.max > 0 ? r.max : 0);
    if (lw->g->unbounded)
        return e;
    const char *name = "?";
    for (uint32_t i = 0; i < lw->g->symbols.len; i++)
        if (lw->g->symbols.data[i].max < 0 && tir_uses_var(e, lw->g->symbols.data[i].var))
            name = lw->g->symbols.data[i].var->name;
    te_sched_error(lw, DIAG_VERIFY, st->loc, "the buffer of %s cannot be allocated: its size depends on %s", st->name,
                   name);
    diag_hint(&lw->c->diags, "declare an upper bound, symbol %s <= N, or place the stage in a loop (compute_at)", name);
    return NULL;
}

tir_stmt *te_read_symbols(te_lowering *lw, tir_stmt *body)
{
    compiler *c = lw->c;
    for (uint32_t i = lw->g->symbols.len; i-- > 0;) {
        const te_symbol *s = &lw->g->symbols.data[i];
        int64_t max = s->max < 0 ? TE_MOST_EXTENT : s->max;
        tir_expr_ref v = tir_varref(c, s->var);
        tir_expr_ref ok =
            tir_and(c, tir_binary(c, TIR_GE, v, tir_i64(c, 0)), tir_binary(c, TIR_LE, v, tir_i64(c, max)));
        const char *text = arena_printf(&c->mem, "%s is not between 0 and %" PRId64, s->var->name, max);
        body = tir_seq(c, 2, (tir_stmt *[]){tir_assert(c, ok, PACKAGE_STATUS_SHAPE, text), body});
    }
    for (uint32_t i = lw->g->symbols.len; i-- > 0;)
        body = tir_let(c, lw->g->symbols.data[i].var, cell_value(lw, i), body);
    return body;
}
