/* SPDX-License-Identifier: Apache-2.0 */
/* Applying a schedule: every primitive changes the working copies of the stages, after its precondition was checked,
 * and says which stage and axis it stumbled over. At the end inlined stages are put into their readers, stages that no
 * result needs are dropped, and every placement is checked to stand where all of its readers can see it. */
#include "te/stage.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

bool te_sched_error(te_lowering *lw, diag_code code, src_loc loc, const char *fmt, ...)
{
    va_list ap, ap2;
    va_start(ap, fmt);
    va_copy(ap2, ap);
    int n = vsnprintf(NULL, 0, fmt, ap);
    va_end(ap);
    char *text = arena_alloc(&lw->c->mem, (size_t)(n < 0 ? 0 : n) + 1, 1);
    vsnprintf(text, (size_t)(n < 0 ? 0 : n) + 1, fmt, ap2);
    va_end(ap2);
    return diag_error(&lw->c->diags, code, loc, "schedule: %s", text);
}

static bool fail(te_lowering *lw, const te_prim *p, const char *axis, const char *why)
{
    const char *dot = axis ? "." : "";
    return te_sched_error(lw, DIAG_VERIFY, p->loc, "%s %s%s%s: %s", te_prim_text(p->kind), p->stage, dot,
                          axis ? axis : "", why);
}

/* --- stages --- */

static te_iter *new_iter(te_lowering *lw, const char *name, const te_axis *root, te_axis_kind kind)
{
    te_iter *it = arena_new(&lw->c->mem, te_iter);
    it->name = name;
    it->var = tir_new_var(lw->c, name, TIR_I64);
    it->root = root;
    it->kind = kind;
    return it;
}

static bool has_iter(const te_stage *st, const char *name)
{
    for (uint32_t i = 0; i < st->roots.len; i++)
        if (strcmp(st->roots.data[i]->name, name) == 0)
            return true;
    for (uint32_t i = 0; i < st->relations.len; i++) {
        const te_relation *r = &st->relations.data[i];
        if (strcmp(r->outer->name, name) == 0 || strcmp(r->inner->name, name) == 0 || strcmp(r->whole->name, name) == 0)
            return true;
    }
    return false;
}

/* Two axes of a computation may carry the same name; its schedule needs to tell them apart. */
static const char *iter_name(te_lowering *lw, const te_stage *st, const char *name)
{
    const char *try = name;
    for (uint32_t n = 1; has_iter(st, try); n++)
        try = arena_printf(&lw->c->mem, "%s_%u", name, n);
    return intern(lw->c->names, try);
}

static void add_roots(te_lowering *lw, te_stage *st, uint32_t n, te_axis *const *axes)
{
    for (uint32_t i = 0; i < n; i++) {
        te_iter *it = new_iter(lw, iter_name(lw, st, axes[i]->var->name), axes[i], axes[i]->kind);
        vec_push(&lw->c->mem, &st->roots, it);
        vec_push(&lw->c->mem, &st->leaves, it);
    }
}

static te_stage *new_stage(te_lowering *lw, const te_node *n)
{
    te_stage *st = arena_new(&lw->c->mem, te_stage);
    st->op = *n;
    st->name = n->name;
    st->loc = src_loc_none();
    if (n->kind == TE_COMPUTE) {
        add_roots(lw, st, n->n_axes, n->axes);
        add_roots(lw, st, n->n_reduce, n->reduce_axes);
    }
    return st;
}

static void insert_stage(te_lowering *lw, uint32_t at, te_stage *st)
{
    vec_push(&lw->c->mem, &lw->stages, st);
    for (uint32_t i = lw->stages.len - 1; i > at; i--)
        lw->stages.data[i] = lw->stages.data[i - 1];
    lw->stages.data[at] = st;
}

static uint32_t stage_index(const te_lowering *lw, const te_stage *st)
{
    uint32_t i = 0;
    while (i < lw->stages.len && lw->stages.data[i] != st)
        i++;
    return i;
}

te_stage *te_stage_of(const te_lowering *lw, const tir_buffer *b, uint32_t *out_index)
{
    for (uint32_t i = 0; i < lw->stages.len; i++) {
        te_stage *st = lw->stages.data[i];
        for (uint32_t k = 0; k < st->op.n_outputs; k++) {
            if (st->op.outputs[k]->buffer == b) {
                if (out_index)
                    *out_index = k;
                return st;
            }
        }
    }
    return NULL;
}

static te_stage *find_stage(te_lowering *lw, const te_prim *p, const char *name)
{
    for (uint32_t i = 0; i < lw->stages.len; i++)
        if (strcmp(lw->stages.data[i]->name, name) == 0)
            return lw->stages.data[i];
    te_sched_error(lw, DIAG_VERIFY, p->loc, "%s: there is no stage %s", te_prim_text(p->kind), name);
    return NULL;
}

uint32_t te_leaf_position(const te_stage *st, const te_iter *it)
{
    uint32_t i = 0;
    while (i < st->leaves.len && st->leaves.data[i] != it)
        i++;
    return i;
}

static te_iter *find_leaf(te_lowering *lw, const te_prim *p, te_stage *st, const char *axis)
{
    for (uint32_t i = 0; i < st->leaves.len; i++)
        if (strcmp(st->leaves.data[i]->name, axis) == 0)
            return st->leaves.data[i];
    fail(lw, p, axis, has_iter(st, axis) ? "the axis was split or fused before" : "the stage has no such axis");
    return NULL;
}

/* --- loops --- */

static const char *result_name(te_lowering *lw, const te_prim *p, uint32_t i, const char *base, const char *suffix)
{
    return p->n_results > i ? p->results[i] : intern(lw->c->names, arena_printf(&lw->c->mem, "%s%s", base, suffix));
}

static bool fresh_names(te_lowering *lw, const te_prim *p, const te_stage *st, const char *axis, const char *a,
                        const char *b)
{
    if (has_iter(st, a) || (b && has_iter(st, b)))
        return fail(lw, p, axis, "a new axis has the name of another axis of the stage");
    if (b && strcmp(a, b) == 0)
        return fail(lw, p, axis, "the new axes have one name");
    return true;
}

static bool apply_split(te_lowering *lw, const te_prim *p, te_stage *st)
{
    te_iter *whole = find_leaf(lw, p, st, p->axes[0]);
    if (!whole)
        return false;
    if (p->factor < 1 && p->nparts < 1)
        return fail(lw, p, whole->name, "the factor must be positive");
    const char *on = result_name(lw, p, 0, whole->name, ".outer"), *in = result_name(lw, p, 1, whole->name, ".inner");
    if (!fresh_names(lw, p, st, whole->name, on, in))
        return false;
    te_relation r = {.kind = RELATION_SPLIT, .whole = whole, .factor = p->factor, .nparts = p->nparts};
    r.outer = new_iter(lw, on, NULL, whole->kind);
    r.inner = new_iter(lw, in, NULL, whole->kind);
    uint32_t at = te_leaf_position(st, whole);
    vec_push(&lw->c->mem, &st->relations, r);
    vec_push(&lw->c->mem, &st->leaves, r.inner);
    for (uint32_t i = st->leaves.len - 1; i > at + 1; i--)
        st->leaves.data[i] = st->leaves.data[i - 1];
    st->leaves.data[at] = r.outer;
    st->leaves.data[at + 1] = r.inner;
    return true;
}

static bool apply_fuse(te_lowering *lw, const te_prim *p, te_stage *st)
{
    te_iter *a = find_leaf(lw, p, st, p->axes[0]), *b = a ? find_leaf(lw, p, st, p->axes[1]) : NULL;
    if (!b)
        return false;
    uint32_t at = te_leaf_position(st, a);
    if (te_leaf_position(st, b) != at + 1)
        return fail(lw, p, a->name, "the second axis must stand right inside the first: reorder them before");
    if (a->kind != b->kind)
        return fail(lw, p, a->name, "a data axis and a reduction axis cannot be fused");
    const char *name = result_name(lw, p, 0, a->name, ".fused");
    if (!fresh_names(lw, p, st, a->name, name, NULL))
        return false;
    te_relation r = {.kind = RELATION_FUSE, .outer = a, .inner = b, .whole = new_iter(lw, name, NULL, a->kind)};
    vec_push(&lw->c->mem, &st->relations, r);
    st->leaves.data[at] = r.whole;
    for (uint32_t i = at + 1; i + 1 < st->leaves.len; i++)
        st->leaves.data[i] = st->leaves.data[i + 1];
    st->leaves.len--;
    return true;
}

static bool apply_reorder(te_lowering *lw, const te_prim *p, te_stage *st)
{
    te_iter **order = arena_array(&lw->c->mem, te_iter *, p->n_axes);
    bool *moved = arena_array(&lw->c->mem, bool, st->leaves.len);
    for (uint32_t i = 0; i < p->n_axes; i++) {
        order[i] = find_leaf(lw, p, st, p->axes[i]);
        if (!order[i])
            return false;
        uint32_t at = te_leaf_position(st, order[i]);
        if (moved[at])
            return fail(lw, p, p->axes[i], "the axis is named twice");
        moved[at] = true;
    }
    uint32_t next = 0;
    for (uint32_t i = 0; i < st->leaves.len; i++)
        if (moved[i])
            st->leaves.data[i] = order[next++];
    return true;
}

static bool apply_annotation(te_lowering *lw, const te_prim *p, te_stage *st, tir_for_kind kind)
{
    te_iter *it = find_leaf(lw, p, st, p->axes[0]);
    if (!it)
        return false;
    if (it->kind == AXIS_REDUCE && kind != FOR_UNROLLED)
        return fail(lw, p, it->name, "a reduction axis carries a value from one iteration to the next");
    it->loop = kind;
    return true;
}

static bool apply_pragma(te_lowering *lw, const te_prim *p, te_stage *st)
{
    te_iter *it = find_leaf(lw, p, st, p->axes[0]);
    if (!it)
        return false;
    te_note note = {p->word, p->factor};
    vec_push(&lw->c->mem, &it->notes, note);
    return true;
}

/* --- placement --- */

static bool apply_compute_at(te_lowering *lw, const te_prim *p, te_stage *st)
{
    te_stage *at = find_stage(lw, p, p->other);
    if (!at)
        return false;
    if (st->op.kind != TE_COMPUTE)
        return fail(lw, p, NULL, "only computations can be placed in a loop of another stage");
    if (st->is_result)
        return fail(lw, p, NULL, "a result of the function is computed at the root");
    if (stage_index(lw, at) <= stage_index(lw, st))
        return fail(lw, p, NULL, "the consumer must come after the stage");
    te_prim look = *p;
    look.stage = p->other;
    te_iter *it = find_leaf(lw, &look, at, p->other_axis);
    if (!it)
        return false;
    st->attach = ATTACH_AT;
    st->at = at;
    st->at_iter = it;
    st->loc = p->loc;
    return true;
}

static bool apply_inline(te_lowering *lw, const te_prim *p, te_stage *st)
{
    if (st->op.kind != TE_COMPUTE || st->op.reducer)
        return fail(lw, p, NULL, "only a computation without reduction can be put into its readers");
    if (st->is_result)
        return fail(lw, p, NULL, "a result of the function must be stored");
    st->attach = ATTACH_INLINE;
    st->loc = p->loc;
    return true;
}

static void set_scope(te_lowering *lw, te_stage *st, const char *scope)
{
    static const char *const texts[] = {
#define X(id, text) [id] = text,
        TIR_SCOPES(X)
#undef X
    };
    st->has_scope = true;
    st->scope = SCOPE_CUSTOM;
    st->scope_name = intern(lw->c->names, scope);
    for (uint32_t i = 0; i < SCOPE_CUSTOM; i++)
        if (strcmp(scope, texts[i]) == 0)
            st->scope = (tir_scope)i;
    if (st->scope != SCOPE_CUSTOM)
        st->scope_name = NULL;
}

static bool apply_scope(te_lowering *lw, const te_prim *p, te_stage *st)
{
    if (st->is_param)
        return fail(lw, p, NULL, "parameters of the function live in global memory");
    set_scope(lw, st, p->word);
    return true;
}

/* --- caches --- */

static te_tensor *cache_tensor(te_lowering *lw, te_node *n, const te_tensor *like, uint32_t index)
{
    te_tensor *t = arena_new(&lw->c->mem, te_tensor);
    *t = (te_tensor){n, index, NULL, like->dt, like->rank, like->shape};
    const char *name = n->n_outputs == 1 ? n->name : arena_printf(&lw->c->mem, "%s_v%u", n->name, index);
    t->buffer = tir_new_buffer(lw->c, name, like->dt, like->rank, like->shape, SCOPE_GLOBAL);
    return t;
}

static void cache_tensors(te_lowering *lw, te_node *n, const te_node *like)
{
    te_tensor **out = arena_array(&lw->c->mem, te_tensor *, like->n_outputs);
    n->n_outputs = like->n_outputs;
    for (uint32_t i = 0; i < like->n_outputs; i++)
        out[i] = cache_tensor(lw, n, like->outputs[i], i);
    n->outputs = out;
}

/* A node over `axes` that copies `from`, element by element. */
static te_node *copy_node(te_lowering *lw, const char *name, te_axis *const *axes, te_tensor *const *from,
                          uint32_t n_from)
{
    te_node *n = arena_new(&lw->c->mem, te_node);
    uint32_t rank = from[0]->rank;
    n->kind = TE_COMPUTE;
    n->name = name;
    n->axes = axes;
    n->n_axes = rank;
    tir_expr_ref *idx = arena_array(&lw->c->mem, tir_expr_ref, rank),
                 *body = arena_array(&lw->c->mem, tir_expr_ref, n_from);
    for (uint32_t i = 0; i < rank; i++)
        idx[i] = te_var(lw->g, n->axes[i]);
    for (uint32_t i = 0; i < n_from; i++)
        body[i] = te_read(lw->g, from[i], idx);
    n->body = body;
    return n;
}

static bool new_stage_name(te_lowering *lw, const te_prim *p)
{
    for (uint32_t i = 0; i < lw->stages.len; i++)
        if (strcmp(lw->stages.data[i]->name, p->results[0]) == 0)
            return fail(lw, p, NULL, "the new stage has the name of another");
    return strchr(p->results[0], '.') == NULL || fail(lw, p, NULL, "the name of a stage has no dot");
}

/* C becomes a copy of a new stage that computes what C did. */
static bool apply_cache_write(te_lowering *lw, const te_prim *p, te_stage *st)
{
    if (st->op.kind != TE_COMPUTE)
        return fail(lw, p, NULL, "only a computation can be cached before it is written");
    if (st->relations.len > 0)
        return fail(lw, p, NULL, "cache_write must come before the stage's axes are split or fused");
    if (!new_stage_name(lw, p))
        return false;
    te_node *n = arena_new(&lw->c->mem, te_node);
    *n = st->op;
    n->name = p->results[0];
    cache_tensors(lw, n, &st->op);
    te_stage *cache = new_stage(lw, n);
    set_scope(lw, cache, p->word);
    cache->live = st->live;
    /* the old axes: the schedule goes on speaking of them */
    te_node *copy = copy_node(lw, st->name, st->op.axes, n->outputs, n->n_outputs);
    copy->outputs = st->op.outputs;
    copy->n_outputs = st->op.n_outputs;
    copy->tag = st->op.tag;
    te_stage fresh = *new_stage(lw, copy);
    st->op = fresh.op;
    st->roots.len = st->leaves.len = 0;
    for (uint32_t i = 0; i < fresh.roots.len; i++) {
        vec_push(&lw->c->mem, &st->roots, fresh.roots.data[i]);
        vec_push(&lw->c->mem, &st->leaves, fresh.leaves.data[i]);
    }
    insert_stage(lw, stage_index(lw, st), cache);
    return true;
}

typedef struct redirect {
    const te_stage *from;
    const te_node *to;
} redirect;

static tir_expr_ref redirect_load(tir_rewriter *r, tir_expr_ref e)
{
    const redirect *rd = r->ctx;
    if (e->kind != TIR_LOAD)
        return e;
    for (uint32_t i = 0; i < rd->from->op.n_outputs; i++)
        if (rd->from->op.outputs[i]->buffer == e->u.buffer)
            return tir_load(r->c, rd->to->outputs[i]->buffer, e->n_args, e->args);
    return e;
}

static void rewrite_bodies(te_lowering *lw, te_stage *st, tir_rewriter *r)
{
    tir_expr_ref *body = arena_array(&lw->c->mem, tir_expr_ref, st->op.n_outputs);
    if (st->op.kind == TE_COMPUTE) {
        for (uint32_t i = 0; i < st->op.n_outputs; i++)
            body[i] = tir_rewrite_expr(r, st->op.body[i]);
        st->op.body = body;
        if (st->op.where)
            st->op.where = tir_rewrite_expr(r, st->op.where);
    } else if (st->op.kind == TE_EXTERN) {
        st->op.stmt = tir_rewrite_stmt(r, st->op.stmt);
    }
}

/* One reader reads a copy of A in another scope. */
static bool apply_cache_read(te_lowering *lw, const te_prim *p, te_stage *st)
{
    te_stage *reader = find_stage(lw, p, p->other);
    if (!reader || !new_stage_name(lw, p))
        return false;
    if (reader->op.kind != TE_COMPUTE)
        return fail(lw, p, NULL, "the reader must be a computation");
    te_node *n = copy_node(lw, p->results[0], te_data_axes(lw->g, st->op.outputs[0]->rank, st->op.outputs[0]->shape),
                           st->op.outputs, st->op.n_outputs);
    cache_tensors(lw, n, &st->op);
    te_stage *cache = new_stage(lw, n);
    set_scope(lw, cache, p->word);
    insert_stage(lw, stage_index(lw, st) + 1, cache);
    redirect rd = {st, n};
    tir_rewriter r = {.c = lw->c, .ctx = &rd, .expr = redirect_load};
    rewrite_bodies(lw, reader, &r);
    return true;
}

/* --- one primitive --- */

static bool not_built(te_lowering *lw, const te_prim *p)
{
    const char *axis = p->n_axes ? p->axes[0] : NULL, *dot = axis ? "." : "";
    return te_sched_error(lw, DIAG_UNSUPPORTED, p->loc, "%s %s%s%s: this primitive is not built yet",
                          te_prim_text(p->kind), p->stage, dot, axis ? axis : "");
}

static bool apply_prim(te_lowering *lw, const te_prim *p)
{
    te_stage *st = find_stage(lw, p, p->stage);
    if (!st)
        return false;
    switch (p->kind) {
    case TE_SPLIT: return apply_split(lw, p, st);
    case TE_FUSE: return apply_fuse(lw, p, st);
    case TE_REORDER: return apply_reorder(lw, p, st);
    case TE_COMPUTE_AT: return apply_compute_at(lw, p, st);
    case TE_INLINE: return apply_inline(lw, p, st);
    case TE_ROOT: st->attach = ATTACH_ROOT; return true;
    case TE_CACHE_READ: return apply_cache_read(lw, p, st);
    case TE_CACHE_WRITE: return apply_cache_write(lw, p, st);
    case TE_SET_SCOPE: return apply_scope(lw, p, st);
    case TE_PRAGMA: return apply_pragma(lw, p, st);
    case TE_VECTORIZE: return apply_annotation(lw, p, st, FOR_VECTORIZED);
    case TE_UNROLL: return apply_annotation(lw, p, st, FOR_UNROLLED);
    case TE_PARALLEL: return apply_annotation(lw, p, st, FOR_PARALLEL);
    case TE_VTHREAD:
    case TE_TENSORIZE:
    case TE_RFACTOR:
    case TE_DOUBLE_BUFFER:
    case TE_STORAGE_ALIGN: return not_built(lw, p);
    }
    return false;
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

/* Producers come first, so a body that is put into another holds no inlined load any more. */
static void inline_stages(te_lowering *lw)
{
    tir_rewriter r = {.c = lw->c, .ctx = lw, .expr = inline_load};
    bool any = false;
    for (uint32_t i = 0; i < lw->stages.len; i++) {
        if (any)
            rewrite_bodies(lw, lw->stages.data[i], &r);
        any |= lw->stages.data[i]->attach == ATTACH_INLINE;
    }
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
    te_stage *p = e->kind == TIR_LOAD ? te_stage_of(x->lw, e->u.buffer, NULL) : NULL;
    if (p && p != x->reader)
        x->fn(x, p);
}

static void each_producer(reader_ctx *x, te_stage *st)
{
    x->reader = st;
    if (st->op.kind == TE_COMPUTE) {
        for (uint32_t i = 0; i < st->op.n_outputs; i++)
            tir_visit_expr(st->op.body[i], on_load, x);
        if (st->op.where)
            tir_visit_expr(st->op.where, on_load, x);
    } else if (st->op.kind == TE_EXTERN) {
        tir_visit_stmt(st->op.stmt, NULL, on_load, x);
    }
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
        lw->stages.data[i]->live = lw->stages.data[i]->is_result;
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
                               "compute_at %s: its reader %s is no tensor expression: compute it at the root", p->name,
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

bool te_apply(te_lowering *lw)
{
    for (uint32_t i = 0; i < lw->g->nodes.len; i++)
        vec_push(&lw->c->mem, &lw->stages, new_stage(lw, lw->g->nodes.data[i]));
    mark_params(lw);
    for (uint32_t i = 0; lw->s && i < lw->s->prims.len; i++)
        if (!apply_prim(lw, &lw->s->prims.data[i]))
            return false;
    inline_stages(lw);
    find_live(lw);
    return check_placement(lw);
}
