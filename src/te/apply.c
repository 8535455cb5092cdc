/* SPDX-License-Identifier: Apache-2.0 */
/* Applying a schedule: every primitive changes the working copies of the stages, after its precondition was checked,
 * and says which stage and axis it stumbled over. At the end inlined stages are put into their readers, stages that no
 * result needs are dropped, and every placement is checked to stand where all of its readers can see it. */
#include "base/nearest.h"
#include "te/stage.h"
#include "tir/intrin.h"
#include "tir/pass.h"

#include <string.h>

/* --- loops --- */

static bool fresh_names(te_lowering *lw, const te_prim *p, const te_stage *st, const char *axis, uint32_t n,
                        const char *const *names)
{
    for (uint32_t i = 0; i < n; i++) {
        if (te_has_iter(st, names[i]))
            return te_prim_error(lw, p, axis, "a new axis has the name of another axis of the stage");
        for (uint32_t k = 0; k < i; k++)
            if (strcmp(names[k], names[i]) == 0)
                return te_prim_error(lw, p, axis, "the new axes have one name");
    }
    return true;
}

#define MAX_NOTES     64u  /* pragmas of one loop: they nest */
#define MAX_RELATIONS 128u /* splits and fusions of one stage: values of loops nest as deeply */

static bool has_room(te_lowering *lw, const te_prim *p, const te_stage *st, const char *axis)
{
    return st->relations.len + 2 <= MAX_RELATIONS ||
           te_prim_error(lw, p, axis, "the stage has been split and fused too often");
}

static bool check_factor(te_lowering *lw, const te_prim *p, const char *axis, int64_t factor)
{
    if (factor < 1)
        return te_prim_error(lw, p, axis, "the factor must be positive");
    return factor <= TE_MOST_EXTENT || te_prim_error(lw, p, axis, "the factor is above 2^40");
}

/* `whole` becomes two loops in its place; names and factor are checked. */
static void split(te_lowering *lw, te_stage *st, te_iter *whole, te_factor by, const char *outer, const char *inner)
{
    te_relation r = {.kind = RELATION_SPLIT, .whole = whole, .by = by};
    r.outer = te_new_iter(lw, outer, NULL, whole->kind);
    r.inner = te_new_iter(lw, inner, NULL, whole->kind);
    uint32_t at = te_leaf_position(st, whole);
    vec_push(&lw->c->mem, &st->relations, r);
    vec_push(&lw->c->mem, &st->leaves, r.inner);
    for (uint32_t i = st->leaves.len - 1; i > at + 1; i--)
        st->leaves.data[i] = st->leaves.data[i - 1];
    st->leaves.data[at] = r.outer;
    st->leaves.data[at + 1] = r.inner;
}

bool te_apply_split(te_lowering *lw, const te_prim *p, te_stage *st)
{
    const te_split_args *a = &p->u.split;
    te_iter *whole = te_find_leaf(lw, p, st, a->axis);
    if (!whole)
        return false;
    if (!has_room(lw, p, st, whole->name) || !check_factor(lw, p, whole->name, a->by.n) ||
        !fresh_names(lw, p, st, whole->name, 2, (const char *[]){a->outer, a->inner}))
        return false;
    split(lw, st, whole, a->by, a->outer, a->inner);
    return true;
}

/* The axes to be reordered, outermost first, in the places that they have now. */
static void set_order(te_stage *st, uint32_t n, te_iter *const *order)
{
    uint32_t next = 0;
    for (uint32_t i = 0; i < st->leaves.len; i++) {
        bool moved = false;
        for (uint32_t k = 0; k < n; k++)
            moved |= order[k] == st->leaves.data[i];
        if (moved)
            st->leaves.data[i] = order[next++];
    }
}

bool te_apply_tile(te_lowering *lw, const te_prim *p, te_stage *st)
{
    const te_tile_args *a = &p->u.tile;
    te_iter *y = te_find_leaf(lw, p, st, a->y), *x = y ? te_find_leaf(lw, p, st, a->x) : NULL;
    if (!x)
        return false;
    if (y == x)
        return te_prim_error(lw, p, y->name, "the axis is named twice");
    if (!has_room(lw, p, st, y->name) || !check_factor(lw, p, y->name, a->y_factor) ||
        !check_factor(lw, p, x->name, a->x_factor))
        return false;
    const char *names[] = {a->y_outer, a->x_outer, a->y_inner, a->x_inner};
    if (!fresh_names(lw, p, st, y->name, 4, names))
        return false;
    split(lw, st, y, (te_factor){a->y_factor, false}, a->y_outer, a->y_inner);
    split(lw, st, x, (te_factor){a->x_factor, false}, a->x_outer, a->x_inner);
    const te_relation *ry = &st->relations.data[st->relations.len - 2], *rx = &vec_last(&st->relations);
    set_order(st, 4, (te_iter *[]){ry->outer, rx->outer, ry->inner, rx->inner});
    return true;
}

bool te_apply_fuse(te_lowering *lw, const te_prim *p, te_stage *st)
{
    const te_fuse_args *args = &p->u.fuse;
    te_iter *a = te_find_leaf(lw, p, st, args->outer), *b = a ? te_find_leaf(lw, p, st, args->inner) : NULL;
    if (!b)
        return false;
    uint32_t at = te_leaf_position(st, a);
    if (te_leaf_position(st, b) != at + 1)
        return te_prim_error(lw, p, a->name, "the second axis must be directly inside the first one: reorder them "
                                             "first");
    if (a->kind != b->kind)
        return te_prim_error(lw, p, a->name, "a data axis and a reduction axis cannot be fused");
    if (!has_room(lw, p, st, a->name) || !fresh_names(lw, p, st, a->name, 1, &args->fused))
        return false;
    te_relation r = {.kind = RELATION_FUSE, .outer = a, .inner = b};
    r.whole = te_new_iter(lw, args->fused, NULL, a->kind);
    vec_push(&lw->c->mem, &st->relations, r);
    st->leaves.data[at] = r.whole;
    for (uint32_t i = at + 1; i + 1 < st->leaves.len; i++)
        st->leaves.data[i] = st->leaves.data[i + 1];
    st->leaves.len--;
    return true;
}

bool te_apply_reorder(te_lowering *lw, const te_prim *p, te_stage *st)
{
    te_names axes = p->u.reorder.axes;
    te_iter **order = arena_array(&lw->c->mem, te_iter *, axes.len);
    for (uint32_t i = 0; i < axes.len; i++) {
        order[i] = te_find_leaf(lw, p, st, axes.data[i]);
        if (!order[i])
            return false;
        for (uint32_t k = 0; k < i; k++)
            if (order[k] == order[i])
                return te_prim_error(lw, p, axes.data[i], "the axis is named twice");
    }
    set_order(st, axes.len, order);
    return true;
}

/* --- annotations --- */

static bool set_loop(te_lowering *lw, const te_prim *p, te_stage *st, const char *axis, tir_for_kind kind)
{
    te_iter *it = te_find_leaf(lw, p, st, axis);
    if (!it)
        return false;
    if (it->kind == AXIS_REDUCE && kind != FOR_UNROLLED)
        return te_prim_error(lw, p, it->name, "a reduction axis carries a value from one iteration to the next");
    it->loop = kind;
    it->loc = p->loc;
    return true;
}

bool te_apply_vectorize(te_lowering *lw, const te_prim *p, te_stage *st)
{
    return set_loop(lw, p, st, p->u.vectorize.axis, FOR_VECTORIZED);
}

bool te_apply_unroll(te_lowering *lw, const te_prim *p, te_stage *st)
{
    return set_loop(lw, p, st, p->u.unroll.axis, FOR_UNROLLED);
}

bool te_apply_parallel(te_lowering *lw, const te_prim *p, te_stage *st)
{
    return set_loop(lw, p, st, p->u.parallel.axis, FOR_PARALLEL);
}

bool te_apply_vthread(te_lowering *lw, const te_prim *p, te_stage *st)
{
    return set_loop(lw, p, st, p->u.vthread.axis, FOR_VTHREAD);
}

bool te_apply_pragma(te_lowering *lw, const te_prim *p, te_stage *st)
{
    te_iter *it = te_find_leaf(lw, p, st, p->u.pragma.axis);
    if (!it)
        return false;
    if (!tir_is_pragma(p->u.pragma.key)) {
        const char *known = tir_pragmas(lw->c);
        (void)te_prim_error(lw, p, it->name,
                            arena_printf(&lw->c->mem, "no pass knows the pragma \"%s\"", p->u.pragma.key));
        diag_hint(&lw->c->diags, "%spragmas are:%s", nearest_in(p->u.pragma.key, known, &lw->c->mem), known);
        return false;
    }
    if (it->notes.len == MAX_NOTES)
        return te_prim_error(lw, p, it->name, "the loop has 64 pragmas already");
    te_note note = {p->u.pragma.key, p->u.pragma.value};
    vec_push(&lw->c->mem, &it->notes, note);
    return true;
}

bool te_apply_tensorize(te_lowering *lw, const te_prim *p, te_stage *st)
{
    const te_tensorize_args *a = &p->u.tensorize;
    te_iter *it = te_find_leaf(lw, p, st, a->axis);
    if (!it)
        return false;
    if (!tir_find_intrin(lw->c, a->intrin)) {
        (void)te_prim_error(lw, p, it->name, arena_printf(&lw->c->mem, "there is no intrinsic %s", a->intrin));
        diag_hint(&lw->c->diags, "%sintrinsics are: %s", nearest_in(a->intrin, tir_list_intrins(lw->c), &lw->c->mem),
                  tir_list_intrins(lw->c));
        return false;
    }
    for (uint32_t i = 0; i < st->leaves.len; i++)
        if (st->leaves.data[i]->intrin)
            return te_prim_error(lw, p, it->name, "a loop of the stage is tensorized already");
    it->intrin = a->intrin;
    return true;
}

bool te_apply_double_buffer(te_lowering *lw, const te_prim *p, te_stage *st)
{
    if (st->attach != ATTACH_AT)
        return te_prim_error(lw, p, NULL,
                             "place it in a loop first (compute_at): there the next piece is computed ahead");
    st->double_buffer = true;
    return true;
}

bool te_apply_rolling_buffer(te_lowering *lw, const te_prim *p, te_stage *st)
{
    if (st->attach != ATTACH_AT)
        return te_prim_error(lw, p, NULL, "place it in a loop first (compute_at): its pieces follow that loop");
    st->rolling = true;
    st->loc = p->loc;
    return true;
}

/* Alignments stand in the order of their axes. */
static void add_alignment(te_lowering *lw, te_stage *st, te_alignment a)
{
    vec_push(&lw->c->mem, &st->alignments, a);
    for (uint32_t i = st->alignments.len - 1; i > 0 && st->alignments.data[i - 1].axis > a.axis; i--) {
        st->alignments.data[i] = st->alignments.data[i - 1];
        st->alignments.data[i - 1] = a;
    }
}

bool te_apply_storage_align(te_lowering *lw, const te_prim *p, te_stage *st)
{
    const te_storage_align_args *a = &p->u.storage_align;
    if (st->is_param || st->op.kind != TE_COMPUTE)
        return te_prim_error(lw, p, a->axis, "only buffers of computations that are not parameters can be padded");
    if (a->factor < 1 || a->factor > TE_MOST_ALIGN || a->offset < 0 || a->offset >= a->factor)
        return te_prim_error(
            lw, p, a->axis,
            arena_printf(&lw->c->mem, "the factor must be from 1 to %d, the offset from 0 to below the factor",
                         TE_MOST_ALIGN));
    if (st->tiles.ny)
        return te_prim_error(lw, p, a->axis, "the buffer's layout is given already");
    for (uint32_t i = 0; i < st->op.n_axes; i++) {
        if (strcmp(st->roots.data[i]->name, a->axis) != 0)
            continue;
        add_alignment(lw, st, (te_alignment){i, a->factor, a->offset, p});
        return true;
    }
    return te_prim_error(lw, p, a->axis, "the stage has no such data axis");
}

bool te_apply_storage_tile(te_lowering *lw, const te_prim *p, te_stage *st)
{
    const te_storage_tile_args *a = &p->u.storage_tile;
    te_storage_tiles t = {UINT32_MAX, UINT32_MAX, a->y_factor, a->x_factor};
    if (st->is_param || st->op.kind != TE_COMPUTE)
        return te_prim_error(lw, p, a->y, "only buffers of computations that are not parameters can have tiles");
    if (a->y_factor < 1 || a->y_factor > 256 || a->x_factor < 1 || a->x_factor > 256)
        return te_prim_error(lw, p, a->y, "a tile has 1 to 256 elements along each axis");
    for (uint32_t i = 0; i < st->op.n_axes; i++) {
        t.y = strcmp(st->roots.data[i]->name, a->y) == 0 ? i : t.y;
        t.x = strcmp(st->roots.data[i]->name, a->x) == 0 ? i : t.x;
    }
    if (t.y == UINT32_MAX || t.x == UINT32_MAX || t.x == t.y)
        return te_prim_error(lw, p, t.y == UINT32_MAX ? a->y : a->x, "a tile has two data axes of the stage");
    if (st->alignments.len > 0 || st->tiles.ny)
        return te_prim_error(lw, p, a->y, "the buffer's layout is given already");
    st->tiles = t;
    return true;
}

/* --- placement --- */

bool te_apply_compute_at(te_lowering *lw, const te_prim *p, te_stage *st)
{
    te_place place = p->u.compute_at.at;
    te_stage *at = te_find_stage(lw, p, place.stage);
    if (!at)
        return false;
    if (st->op.kind != TE_COMPUTE)
        return te_prim_error(lw, p, NULL, "only computations can be placed in a loop of another stage");
    if (st->is_result)
        return te_prim_error(lw, p, NULL, "a result of the function is computed at the root");
    if (te_stage_index(lw, at) <= te_stage_index(lw, st))
        return te_prim_error(lw, p, NULL, "the consumer must come after the stage");
    te_prim look = *p;
    look.u.stage = place.stage;
    te_iter *it = te_find_leaf(lw, &look, at, place.axis);
    if (!it)
        return false;
    st->attach = ATTACH_AT;
    st->at = at;
    st->at_iter = it;
    st->loc = p->loc;
    return true;
}

bool te_apply_compute_inline(te_lowering *lw, const te_prim *p, te_stage *st)
{
    if (st->op.kind != TE_COMPUTE || st->op.reducer)
        return te_prim_error(lw, p, NULL, "only a computation without reduction can be put into its readers");
    if (st->is_result)
        return te_prim_error(lw, p, NULL, "a result of the function must be stored");
    st->attach = ATTACH_INLINE;
    st->loc = p->loc;
    return true;
}

bool te_apply_compute_root(te_lowering *lw, const te_prim *p, te_stage *st)
{
    (void)lw;
    (void)p;
    st->attach = ATTACH_ROOT;
    return true;
}

bool te_apply_set_scope(te_lowering *lw, const te_prim *p, te_stage *st)
{
    if (st->is_param)
        return te_prim_error(lw, p, NULL, "parameters of the function live in global memory");
    return te_set_scope(lw, p, st, p->u.set_scope.scope);
}

/* --- one primitive --- */

static bool apply_prim(te_lowering *lw, const te_prim *p)
{
    static bool (*const apply[])(te_lowering *lw, const te_prim *p, te_stage *st) = {
#define PRIMITIVE(id, name, fields) [id] = te_apply_##name,
#include "te/primitives.def"
#undef PRIMITIVE
    };
    te_stage *st = te_find_stage(lw, p, p->u.stage);
    return st && apply[p->kind](lw, p, st);
}

/* --- inlining --- */

static tir_expr_ref inline_load(tir_rewriter *r, tir_expr_ref e)
{
    te_lowering *lw = r->ctx;
    uint32_t k = 0;
    const te_stage *st = e->kind == TIR_LOAD ? te_stage_of(lw, e->u.buffer, &k) : NULL;
    if (!st || st->attach != ATTACH_INLINE)
        return e;
    const tir_var **vars = arena_array(&r->c->mem, const tir_var *, st->op.n_axes);
    for (uint32_t i = 0; i < st->op.n_axes; i++)
        vars[i] = st->op.axes[i]->var;
    return tir_substitute(r->c, st->op.body[k], st->op.n_axes, vars, e->args);
}

#define MAX_INLINED ((uint32_t)1 << 20) /* nodes of an expression, counted as often as they occur */

static void count_nodes(tir_expr_ref e, uint32_t *left)
{
    *left -= *left > 0;
    for (uint32_t i = 0; *left > 0 && i < e->n_args; i++)
        count_nodes(e->args[i], left);
}

/* An expression that reads a stage several times doubles with every stage that is put into it. */
static bool check_size(te_lowering *lw, const te_stage *st)
{
    uint32_t left = MAX_INLINED;
    for (uint32_t i = 0; st->op.kind == TE_COMPUTE && i < st->op.n_outputs; i++)
        count_nodes(st->op.body[i], &left);
    return left > 0 || te_sched_error(lw, DIAG_VERIFY, st->loc,
                                      "compute_inline: the expression of %s becomes too large: keep some of the stages "
                                      "that it reads",
                                      st->name);
}

/* Producers come first, so a body that is put into another holds no inlined load any more. */
static bool inline_stages(te_lowering *lw)
{
    tir_rewriter r = {.c = lw->c, .ctx = lw, .expr = inline_load};
    bool any = false;
    for (uint32_t i = 0; i < lw->stages.len; i++) {
        te_stage *st = lw->stages.data[i];
        if (any)
            te_rewrite_bodies(lw, st, &r);
        if (any && !check_size(lw, st))
            return false;
        any |= st->attach == ATTACH_INLINE;
    }
    return true;
}

/* --- liveness and placement check --- */

typedef struct reader_ctx {
    te_lowering *lw;
    te_stage *reader;
    bool ok;
    void (*fn)(struct reader_ctx *x, te_stage *producer);
} reader_ctx;

static void on_load(void *ctx, tir_expr_ref e)
{
    reader_ctx *x = ctx;
    te_stage *p = tir_is_access(e) ? te_stage_of(x->lw, e->u.buffer, NULL) : NULL;
    if (p && p != x->reader)
        x->fn(x, p);
}

static void each_producer(reader_ctx *x, te_stage *st)
{
    x->reader = st;
    for (uint32_t i = 0; st->op.kind == TE_COMPUTE && i < st->op.n_outputs; i++)
        tir_visit_expr(st->op.body[i], on_load, x);
    if (st->op.where)
        tir_visit_expr(st->op.where, on_load, x);
    if (st->op.stmt)
        tir_visit_stmt(st->op.stmt, NULL, on_load, x);
}

static void mark_live(reader_ctx *x, te_stage *producer)
{
    (void)x;
    producer->live = true;
}

static void find_live(te_lowering *lw)
{
    reader_ctx x = {.lw = lw, .ok = true, .fn = mark_live};
    for (uint32_t i = 0; i < lw->stages.len; i++)
        lw->stages.data[i]->live = lw->stages.data[i]->is_result || lw->stages.data[i]->op.kind == TE_CHECK;
    for (uint32_t i = lw->stages.len; i-- > 0;)
        if (lw->stages.data[i]->live)
            each_producer(&x, lw->stages.data[i]);
}

/* Does `reader` run inside loop `it` of `at`, or is it that stage? */
static bool runs_inside(const te_stage *reader, const te_stage *at, const te_iter *it)
{
    while (reader != at) {
        if (reader->attach != ATTACH_AT)
            return false;
        if (reader->at == at)
            return te_leaf_position(at, reader->at_iter) >= te_leaf_position(at, it);
        reader = reader->at;
    }
    return true;
}

static void check_reader(reader_ctx *x, te_stage *p)
{
    if (p->attach != ATTACH_AT)
        return;
    if (x->reader->op.kind == TE_EXTERN)
        x->ok = te_sched_error(x->lw, DIAG_VERIFY, p->loc,
                               "compute_at %s: its reader %s is not a tensor expression: compute it at the "
                               "root", p->name,
                               x->reader->name);
    else if (!runs_inside(x->reader, p->at, p->at_iter))
        x->ok = te_sched_error(x->lw, DIAG_VERIFY, p->loc,
                               "compute_at %s at %s.%s: its reader %s runs outside of that loop", p->name, p->at->name,
                               p->at_iter->name, x->reader->name);
}

static bool check_placement(te_lowering *lw)
{
    reader_ctx x = {.lw = lw, .ok = true, .fn = check_reader};
    for (uint32_t i = 0; i < lw->stages.len; i++) {
        te_stage *st = lw->stages.data[i];
        if (!st->live || st->attach == ATTACH_INLINE)
            continue;
        if (st->attach == ATTACH_AT && (st->at->attach == ATTACH_INLINE || !st->at->live))
            return te_sched_error(lw, DIAG_VERIFY, st->loc,
                                  "compute_at %s: the consumer %s has no loops: it is inlined", st->name, st->at->name);
        if (st->attach == ATTACH_AT && te_leaf_position(st->at, st->at_iter) == st->at->leaves.len)
            return te_sched_error(lw, DIAG_VERIFY, st->loc,
                                  "compute_at %s at %s.%s: the axis was split or fused afterwards", st->name,
                                  st->at->name, st->at_iter->name);
        each_producer(&x, st);
    }
    return x.ok;
}

static void mark_params(te_lowering *lw)
{
    for (uint32_t i = 0; i < lw->g->params.len; i++) {
        te_stage *st = te_stage_of(lw, lw->g->params.data[i]->buffer, NULL);
        st->is_param = true;
        st->is_result |= i >= lw->g->n_inputs;
    }
}

/* One stage for each operation, checks where they stand. */
static void make_stages(te_lowering *lw)
{
    const te_graph *g = lw->g;
    for (uint32_t i = 0, k = 0; i < g->nodes.len || k < g->checks.len;) {
        bool check = k < g->checks.len && (i == g->nodes.len || g->checks.data[k].before <= i);
        vec_push(&lw->c->mem, &lw->stages, te_new_stage(lw, check ? g->checks.data[k++].check : g->nodes.data[i++]));
        te_note_stage(lw, vec_last(&lw->stages));
    }
}

bool te_apply(te_lowering *lw)
{
    make_stages(lw);
    mark_params(lw);
    for (uint32_t i = 0; lw->s && i < lw->s->prims.len; i++)
        if (!apply_prim(lw, &lw->s->prims.data[i]))
            return false;
    if (!inline_stages(lw))
        return false;
    find_live(lw);
    for (uint32_t i = 0; i < lw->stages.len; i++)
        if (lw->stages.data[i]->attach == ATTACH_AT)
            lw->stages.data[i]->at->hosts = true;
    return check_placement(lw);
}
