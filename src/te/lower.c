/* SPDX-License-Identifier: Apache-2.0 */
/* From stages with known bounds to one loop-IR function. Every stage becomes a nest over its leaves; a placed producer
 * stands at the top of its loop's body; a reduction is initialised at its outermost reduction loop, over the data axes
 * that lie inside that loop (loops `x.init`); a guard stands right inside the innermost loop that it depends on.
 * Accesses keep their dimensions: flattening is a pass. */
#include "te/lower.h"
#include "te/stage.h"
#include "tir/clone.h"
#include "tir/node.h"

#include <assert.h>
#include <string.h>

/* One nest under construction. */
typedef struct nest {
    te_lowering *lw;
    te_stage *st;
    uint32_t first_reduce; /* position of the outermost reduction loop; leaves.len: none */
    bool tensorized;       /* one of its loops is */
    const tir_var **vars;  /* axes of the stage */
    tir_expr_ref *values;
    tir_expr_ref const *guards;
    int32_t *guard_at; /* leaf position after which a guard can stand; -1: before all loops */
    te_blocks blocks;
} nest;

/* --- expressions of a stage in its loops --- */

/* A load or address of another stage goes to that stage's buffer, counted from the start of its box. */
static tir_expr_ref place_load(tir_rewriter *r, tir_expr_ref e)
{
    te_lowering *lw = r->ctx;
    uint32_t k = 0;
    const te_stage *p = tir_is_access(e) ? te_stage_of(lw, e->u.buffer, &k) : NULL;
    if (!p || (p->buffers[k] == e->u.buffer && p->attach != ATTACH_AT))
        return e;
    tir_expr_ref *idx = arena_array(&r->c->mem, tir_expr_ref, e->n_args);
    for (uint32_t i = 0; i < e->n_args; i++) {
        bool boxed = p->attach == ATTACH_AT;
        idx[i] = boxed ? tir_simplify(lw->bounds, tir_sub(r->c, e->args[i], p->lo[i])) : e->args[i];
        if (p->roll.length && p->roll.axis == i)
            idx[i] = te_roll_slot(lw, p, e->args[i]);
    }
    const bool own = e->n_args > 0 && (p->attach == ATTACH_AT || p->tiles.ny); /* none: where the buffer begins */
    return tir_node_access(r->c, e, p->buffers[k], own ? te_buffer_rank(p) : e->n_args,
                           own ? te_buffer_index(lw, p, idx) : idx);
}

static tir_expr_ref place_expr(nest *n, tir_expr_ref e)
{
    te_lowering *lw = n->lw;
    tir_rewriter r = {.c = lw->c, .ctx = lw, .expr = place_load};
    return tir_rewrite_expr(&r, tir_substitute(lw->c, e, n->st->roots.len, n->vars, n->values));
}

/* Where the stage stores: indices within its box. */
static tir_expr_ref const *store_indices(nest *n)
{
    te_lowering *lw = n->lw;
    tir_expr_ref *idx = arena_array(&lw->c->mem, tir_expr_ref, n->st->op.n_axes);
    for (uint32_t i = 0; i < n->st->op.n_axes; i++)
        idx[i] = n->st->roll.length && n->st->roll.axis == i
                     ? te_roll_slot(lw, n->st, n->values[i])
                     : tir_simplify(lw->bounds, te_iter_value(lw, n->st, n->st->roots.data[i]));
    return te_buffer_index(lw, n->st, idx);
}

static tir_stmt *store(nest *n, uint32_t k, tir_expr_ref value)
{
    return tir_store(n->lw->c, n->st->buffers[k], te_buffer_rank(n->st), store_indices(n), value);
}

static tir_stmt *stores(nest *n, tir_expr_ref const *values)
{
    compiler *c = n->lw->c;
    tir_stmt **all = arena_array(&c->mem, tir_stmt *, n->st->op.n_outputs);
    for (uint32_t k = 0; k < n->st->op.n_outputs; k++)
        all[k] = store(n, k, values[k]);
    return tir_seq(c, n->st->op.n_outputs, all);
}

/* Of a block: its data loops are the indices. */
static tir_expr_ref const *block_indices(nest *n)
{
    compiler *c = n->lw->c;
    tir_expr_ref *idx = arena_array(&c->mem, tir_expr_ref, n->blocks.sums->rank);
    uint32_t rank = 0;
    for (uint32_t i = n->blocks.at + 1; i < n->st->leaves.len; i++)
        if (n->st->leaves.data[i]->kind == AXIS_DATA)
            idx[rank++] = tir_varref(c, n->st->leaves.data[i]->var);
    if (rank == 0)
        idx[0] = tir_i64(c, 0);
    return idx;
}

static tir_stmt *store_block(nest *n, tir_expr_ref value)
{
    return tir_store(n->lw->c, n->blocks.sums, n->blocks.sums->rank, block_indices(n), value);
}

static tir_expr_ref load_block(nest *n)
{
    return tir_load(n->lw->c, n->blocks.sums, n->blocks.sums->rank, block_indices(n));
}

static tir_expr_ref load_result(nest *n, uint32_t k)
{
    return tir_load(n->lw->c, n->st->buffers[k], te_buffer_rank(n->st), store_indices(n));
}

static tir_expr_ref combined(nest *n, tir_expr_ref acc, tir_expr_ref x)
{
    const te_reducer *r = n->st->op.reducer;
    return tir_substitute(n->lw->c, r->combine[0], 2, (const tir_var *[]){r->acc[0], r->x[0]},
                          (tir_expr_ref[]){acc, x});
}

/* acc = combine(acc, x). A tuple's new values are all computed before the first is stored. */
static tir_stmt *update(nest *n)
{
    compiler *c = n->lw->c;
    const te_node *op = &n->st->op;
    const te_reducer *rd = op->reducer;
    uint32_t m = rd->n;
    if (n->blocks.sums)
        return store_block(n, combined(n, load_block(n), place_expr(n, op->body[0])));
    const tir_var **from = arena_array(&c->mem, const tir_var *, 2 * m);
    const tir_var **names = arena_array(&c->mem, const tir_var *, 2 * m);
    tir_expr_ref *to = arena_array(&c->mem, tir_expr_ref, 2 * m), *lets = arena_array(&c->mem, tir_expr_ref, 2 * m);
    tir_expr_ref *values = arena_array(&c->mem, tir_expr_ref, m);
    for (uint32_t k = 0; k < m; k++) {
        from[k] = rd->acc[k];
        from[m + k] = rd->x[k];
        lets[k] = load_result(n, k);
        lets[m + k] = place_expr(n, op->body[k]);
    }
    for (uint32_t k = 0; k < 2 * m; k++) {
        names[k] = tir_new_var(c, from[k]->name, from[k]->type);
        to[k] = m == 1 ? lets[k] : tir_varref(c, names[k]);
    }
    for (uint32_t k = 0; k < m; k++)
        values[k] = tir_substitute(c, rd->combine[k], 2 * m, from, to);
    if (m == 1)
        return stores(n, values);
    const tir_var **next = arena_array(&c->mem, const tir_var *, m);
    tir_expr_ref *refs = arena_array(&c->mem, tir_expr_ref, m);
    for (uint32_t k = 0; k < m; k++) {
        next[k] = tir_new_var(c, "next", rd->acc[k]->type);
        refs[k] = tir_varref(c, next[k]);
    }
    tir_stmt *s = stores(n, refs);
    for (uint32_t k = m; k-- > 0;)
        s = tir_let(c, next[k], values[k], s);
    for (uint32_t k = 2 * m; k-- > 0;)
        s = tir_let(c, names[k], lets[k], s);
    return s;
}

/* The innermost loop that e depends on; -1: none of the stage. */
static int32_t last_leaf(const nest *n, tir_expr_ref e)
{
    int32_t at = -1;
    for (uint32_t k = 0; k < n->st->leaves.len; k++)
        if (tir_uses_var(e, n->st->leaves.data[k]->var))
            at = (int32_t)k;
    return at;
}

static void add_where(nest *n, int32_t at, tir_expr_ref e, tir_expr_ref *cond)
{
    if (tir_is_binary(e, TIR_AND)) {
        add_where(n, at, e->args[0], cond);
        add_where(n, at, e->args[1], cond);
    } else if (last_leaf(n, e) == at) {
        *cond = tir_and(n->lw->c, *cond, e);
    }
}

/* s under what of the reduction's condition is decided right after leaf `at`; behind all leaves: under all of it. With
 * a tensorized loop the parts stand as far out as they can, because nothing may stand in it. */
static tir_stmt *where_after(nest *n, int32_t at, tir_stmt *s)
{
    tir_expr_ref all = place_expr(n, n->st->op.where), cond = NULL;
    if (at == (int32_t)n->st->leaves.len)
        cond = all;
    else
        add_where(n, at, tir_simplify(n->lw->bounds, all), &cond);
    return cond ? tir_if(n->lw->c, cond, s, NULL) : s;
}

static tir_stmt *innermost(nest *n)
{
    const te_node *op = &n->st->op;
    compiler *c = n->lw->c;
    if (op->kind == TE_CHECK)
        return tir_assert(c, place_expr(n, op->where), op->status, op->message);
    if (op->reducer) {
        tir_stmt *s = update(n);
        return op->where && !n->tensorized ? where_after(n, (int32_t)n->st->leaves.len, s) : s;
    }
    tir_expr_ref *values = arena_array(&c->mem, tir_expr_ref, op->n_outputs);
    for (uint32_t k = 0; k < op->n_outputs; k++)
        values[k] = place_expr(n, op->body[k]);
    return stores(n, values);
}

/* --- guards --- */

static void find_guards(nest *n)
{
    const te_stage *st = n->st;
    uint32_t count = 0;
    n->guards = te_stage_guards(n->lw, n->st);
    while (n->guards[count])
        count++;
    n->guard_at = arena_array(&n->lw->c->mem, int32_t, count);
    for (uint32_t i = 0; i < count; i++) {
        n->guard_at[i] = -1;
        for (uint32_t k = 0; k < st->leaves.len; k++)
            if (tir_uses_var(n->guards[i], st->leaves.data[k]->var))
                n->guard_at[i] = (int32_t)k;
    }
}

/* The conjunction of the guards that stand right after leaf `at`. */
static tir_expr_ref guard_after(const nest *n, int32_t at)
{
    tir_expr_ref cond = NULL;
    for (uint32_t i = 0; n->guards[i]; i++)
        if (n->guard_at[i] == at)
            cond = tir_and(n->lw->c, cond, n->guards[i]);
    return cond;
}

static tir_stmt *guarded(const nest *n, int32_t at, tir_stmt *body)
{
    tir_expr_ref cond = guard_after(n, at);
    return cond ? tir_if(n->lw->c, cond, body, NULL) : body;
}

/* --- loops --- */

static tir_stmt *loop(nest *n, const te_iter *it, const tir_var *v, tir_for_kind kind, tir_stmt *body)
{
    compiler *c = n->lw->c;
    return tir_for(c, v, tir_i64(c, 0), it->extent, kind, body);
}

/* The mark for the pass `tensorize`: the loop and what is inside it. */
static tir_stmt *tensorized(nest *n, const te_iter *it, tir_stmt *s)
{
    compiler *c = n->lw->c;
    return it->intrin ? tir_attr(c, it->name, "tensorize", tir_string(c, it->intrin), s) : s;
}

/* The pragmas of the loop around s. */
static tir_stmt *annotated(nest *n, const te_iter *it, tir_stmt *s)
{
    compiler *c = n->lw->c;
    for (uint32_t i = it->notes.len; i-- > 0;)
        s = tir_attr(c, it->name, arena_printf(&c->mem, "pragma_%s", it->notes.data[i].key),
                     tir_i64(c, it->notes.data[i].value), s);
    return s;
}

/* s for all data axes inside the loop at position `from`, in loops of their own. Guards on reduction loops do not
 * concern it; a guard after a data loop speaks of data axes only. */
static tir_stmt *data_nest(nest *n, uint32_t from, const char *name, tir_stmt *s)
{
    compiler *c = n->lw->c;
    te_stage *st = n->st;
    const tir_var **old = arena_array(&c->mem, const tir_var *, st->leaves.len);
    const tir_var **vars = arena_array(&c->mem, const tir_var *, st->leaves.len);
    tir_expr_ref *to = arena_array(&c->mem, tir_expr_ref, st->leaves.len);
    uint32_t m = 0;
    for (uint32_t k = from; k < st->leaves.len; k++) {
        te_iter *it = st->leaves.data[k];
        old[m] = it->var;
        vars[m] = tir_new_var(c, arena_printf(&c->mem, "%s.%s", it->name, name), TIR_I64);
        to[m] = tir_varref(c, vars[m]);
        m++;
    }
    s = tir_substitute_stmt(c, s, m, old, to);
    for (uint32_t k = st->leaves.len; k-- > from;) {
        te_iter *it = st->leaves.data[k];
        if (it->kind == AXIS_REDUCE) {
            s = tensorized(n, it, s);
            continue;
        }
        tir_expr_ref cond = guard_after(n, (int32_t)k);
        if (cond)
            s = tir_if(c, tir_substitute(c, cond, m, old, to), s, NULL);
        s = loop(n, it, vars[k - from], it->loop == FOR_PARALLEL ? FOR_SERIAL : it->loop, s);
        s = annotated(n, it, tensorized(n, it, s));
    }
    return s;
}

/* Identity into the accumulators of all data axes inside the outermost reduction loop. */
static tir_stmt *init_nest(nest *n)
{
    return data_nest(n, n->first_reduce, "init", stores(n, n->st->op.reducer->identity));
}

/* One block: s adds to its sums, which are added to the result's. */
static tir_stmt *block(nest *n, tir_stmt *s)
{
    const uint32_t inside = n->blocks.at + 1;
    tir_stmt *clear = data_nest(n, inside, "first", store_block(n, n->st->op.reducer->identity[0])),
             *add = data_nest(n, inside, "sum", store(n, 0, combined(n, load_result(n, 0), load_block(n))));
    return tir_seq(n->lw->c, 3, (tir_stmt *[]){clear, s, add});
}

/* A block's share of the loop: `count` iterations from `from` on. */
static tir_stmt *block_of(nest *n, const te_iter *it, tir_expr_ref from, tir_expr_ref count, tir_stmt *s)
{
    compiler *c = n->lw->c;
    const tir_var *v = tir_new_var(c, it->name, TIR_I64);
    tir_expr_ref at = tir_add(c, from, tir_varref(c, v));
    return block(n, tir_for(c, v, tir_i64(c, 0), count, it->loop, tir_clone_stmt(c, s, it->var, at)));
}

/* Loop `it` around s in blocks of as many iterations; the last one has less where that does not divide them. */
static tir_stmt *in_blocks(nest *n, const te_iter *it, tir_stmt *s)
{
    compiler *c = n->lw->c;
    const tir_var *v = tir_new_var(c, arena_printf(&c->mem, "%s.block", it->name), TIR_I64);
    tir_expr_ref steps = tir_i64(c, n->blocks.steps), from = tir_mul(c, tir_varref(c, v), steps), count = steps,
                 blocks = NULL;
    tir_stmt *last = NULL;
    int64_t extent = 0;
    if (n->blocks.last_apart && tir_is_int(it->extent, &extent)) {
        const int64_t before = (extent - 1) / n->blocks.steps, done = before * n->blocks.steps;
        blocks = tir_i64(c, before);
        last = block_of(n, it, tir_i64(c, done), tir_i64(c, extent - done), s);
    } else {
        blocks = tir_floordiv(c, tir_add(c, it->extent, tir_i64(c, n->blocks.steps - 1)), steps);
        if (!tir_is_int(it->extent, &extent) || extent % n->blocks.steps != 0)
            count = tir_min(c, steps, tir_sub(c, it->extent, from));
    }
    s = tir_for(c, v, tir_i64(c, 0), blocks, FOR_SERIAL, block_of(n, it, from, count, s));
    return tir_allocate(c, n->blocks.sums, last ? tir_seq(c, 2, (tir_stmt *[]){s, last}) : s);
}

static tir_stmt *realize(te_lowering *lw, te_stage *st, tir_stmt *body);

/* Producers placed in this loop, in order, in front of its body. */
static tir_stmt *with_producers(nest *n, const te_iter *it, tir_stmt *body)
{
    te_lowering *lw = n->lw;
    for (uint32_t i = n->st->hosts ? lw->stages.len : 0; i-- > 0;) {
        te_stage *p = lw->stages.data[i];
        if (p->live && p->attach == ATTACH_AT && p->at == n->st && p->at_iter == it)
            body = realize(lw, p, body);
    }
    return body;
}

/* Declares the on-chip buffers from number `from` on around s. */
static tir_stmt *allocate_hoisted(te_lowering *lw, uint32_t from, tir_stmt *s)
{
    for (uint32_t i = from; i < lw->hoisted.len; i++) /* noted from the inside out */
        s = tir_allocate(lw->c, lw->hoisted.data[i], s);
    lw->hoisted.len = from;
    return s;
}

/* Buffers of the producers that keep rows from one iteration of the loop to the next. */
static tir_stmt *allocate_rolling(te_lowering *lw, const te_stage *st, const te_iter *it, tir_stmt *s)
{
    for (uint32_t i = st->hosts ? lw->stages.len : 0; i-- > 0;) {
        const te_stage *p = lw->stages.data[i];
        bool rolls = p->live && p->attach == ATTACH_AT && p->at == st && p->at_iter == it && p->roll.length;
        for (uint32_t k = p->op.n_outputs; rolls && k-- > 0;)
            if (p->buffers[k]->scope != SCOPE_CUSTOM)
                s = tir_allocate(lw->c, p->buffers[k], s);
    }
    return s;
}

static tir_stmt *build_nest(nest *n, uint32_t pos)
{
    compiler *c = n->lw->c;
    te_stage *st = n->st;
    tir_stmt *s;
    if (pos == st->leaves.len) {
        s = innermost(n);
    } else {
        te_iter *it = st->leaves.data[pos];
        uint32_t outside = n->lw->hoisted.len;
        s = with_producers(n, it, build_nest(n, pos + 1));
        if (n->tensorized && st->op.where && pos >= n->first_reduce)
            s = where_after(n, (int32_t)pos, s);
        s = guarded(n, (int32_t)pos, s);
        s = te_with_prefetch(n->lw, st, it, s);
        if (it->loop == FOR_VTHREAD) /* each virtual thread has memory of its own */
            s = allocate_hoisted(n->lw, outside, s);
        s = pos == n->blocks.at ? in_blocks(n, it, s) : loop(n, it, it->var, it->loop, s);
        s = allocate_rolling(n->lw, st, it, s);
        s = annotated(n, it, tensorized(n, it, s));
    }
    for (int32_t at = (int32_t)pos; n->tensorized && st->op.where && pos == n->first_reduce && at-- > -1;)
        s = where_after(n, at, s); /* of data axes: the identity is stored all the same */
    if (st->op.reducer && pos == n->first_reduce)
        s = tir_seq(c, 2, (tir_stmt *[]){init_nest(n), s});
    return s;
}

/* --- stages --- */

static tir_stmt *rebase_store(tir_rewriter *r, tir_stmt *s)
{
    te_lowering *lw = r->ctx;
    uint32_t k = 0;
    const te_stage *st = s->kind == TIR_STORE ? te_stage_of(lw, s->buffer, &k) : NULL;
    return st && st->buffers[k] != s->buffer ? tir_store(r->c, st->buffers[k], s->n_indices, s->indices, s->value) : s;
}

static tir_stmt *produce(te_lowering *lw, te_stage *st)
{
    if (st->op.kind == TE_EXTERN) {
        tir_rewriter r = {.c = lw->c, .ctx = lw, .expr = place_load, .stmt = rebase_store};
        return tir_rewrite_stmt(&r, st->op.stmt);
    }
    nest n = {.lw = lw, .st = st, .first_reduce = st->leaves.len};
    for (uint32_t i = st->leaves.len; i-- > 0;) {
        n.tensorized |= st->leaves.data[i]->intrin != NULL;
        if (st->leaves.data[i]->kind == AXIS_REDUCE)
            n.first_reduce = i;
    }
    te_root_values(lw, st, &n.vars, &n.values);
    find_guards(&n);
    n.blocks = n.tensorized ? (te_blocks){.at = st->leaves.len} : te_find_blocks(lw, st, n.guards);
    return guarded(&n, -1, build_nest(&n, 0));
}

/* The stage, then `body`, which may read it. */
static tir_stmt *realize(te_lowering *lw, te_stage *st, tir_stmt *body)
{
    tir_stmt *s = produce(lw, st);
    if (st->double_buffer)
        s = tir_attr(lw->c, st->name, "double_buffer", tir_i64(lw->c, 1), s);
    s = tir_seq(lw->c, 2, (tir_stmt *[]){s, body});
    for (uint32_t k = st->op.n_outputs; k-- > 0;) {
        const tir_buffer *b = st->buffers[k];
        if (te_param_of(lw, st->op.outputs[k]))
            continue;
        if (b->scope == SCOPE_CUSTOM) /* on-chip memory is the whole function's */
            vec_push(&lw->c->mem, &lw->hoisted, b);
        else if (!st->roll.length)
            s = tir_allocate(lw->c, b, s);
    }
    return s;
}

static tir_func *make_func(te_lowering *lw, const char *name, tir_stmt *body)
{
    compiler *c = lw->c;
    te_graph *g = lw->g;
    tir_func *f = arena_new(&c->mem, tir_func);
    uint32_t n_cells = g->symbols.len;
    const tir_buffer **params = arena_array(&c->mem, const tir_buffer *, n_cells + g->params.len);
    const char **symbols = arena_array(&c->mem, const char *, n_cells);
    for (uint32_t i = 0; i < n_cells; i++) {
        params[i] = lw->cells[i];
        symbols[i] = g->symbols.data[i].var->name;
    }
    for (uint32_t i = 0; i < g->params.len; i++)
        params[n_cells + i] = lw->params[i];
    *f = (tir_func){.name = intern(c->names, name),
                    .params = params,
                    .n_params = n_cells + g->params.len,
                    .n_inputs = n_cells + g->n_inputs,
                    .symbols = symbols,
                    .n_symbols = n_cells,
                    .body = body,
                    .index_type = DT_I64,
                    .loc = g->loc,
                    .macs = g->macs};
    if (lw->s && lw->s->prims.len > 0) {
        writer w;
        writer_init(&w, &c->mem);
        const te_sched s = te_without_idle(lw);
        te_sched_print(&w, &s);
        f->schedule = w.data;
        f->schedule_from = lw->s->origin;
    }
    return f;
}

bool te_lower(te_graph *g, const te_sched *s, const char *name, tir_func **out)
{
    te_lowering lw = {.c = g->c, .g = g, .s = s};
    tir_map_init(&lw.param_of, &g->c->mem);
    tir_map_init(&lw.stage_of, &g->c->mem);
    *out = NULL;
    if (!te_apply(&lw) || !te_infer_bounds(&lw))
        return false;
    tir_stmt *body = tir_seq(g->c, 0, NULL);
    for (uint32_t i = lw.stages.len; i-- > 0;) {
        te_stage *st = lw.stages.data[i];
        if (st->live && st->attach == ATTACH_ROOT && st->op.kind != TE_PLACEHOLDER)
            body = realize(&lw, st, body);
    }
    body = te_read_symbols(&lw, allocate_hoisted(&lw, 0, body));
    *out = make_func(&lw, name, tir_simplify_stmt(g->c, body));
    return true;
}
