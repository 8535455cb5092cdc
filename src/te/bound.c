/* SPDX-License-Identifier: Apache-2.0 */
/* Bound inference. Stages are visited from the results back. A stage at the root computes its whole tensor; a stage
 * placed in a loop of its consumer computes the box that its readers touch during one iteration: their indices, with
 * the loops around the place held fixed and all others running over their range. The start of the box is symbolic in
 * the fixed loops, its extent is not, so buffers have a constant size. A box may reach beyond the tensor where a split
 * does not divide; guard.c says where that needs a guard. */
#include "te/stage.h"


/* --- extents of loops --- */

static int64_t at_least_one(int64_t v)
{
    return v < 1 ? 1 : v;
}

static void split_extents(te_lowering *lw, te_relation *r)
{
    compiler *c = lw->c;
    tir_expr_ref e = r->whole->extent;
    int64_t n = 0, f = r->by.n;
    if (tir_is_int(e, &n) && n < f)
        f = at_least_one(n); /* a factor above the extent is the extent */
    tir_expr_ref given = tir_i64(c, f), other = tir_floordiv(c, tir_add(c, e, tir_i64(c, f - 1)), given);
    r->outer->extent = r->by.is_parts ? given : other;
    r->inner->extent = r->by.is_parts ? other : given;
}

/* From the extents of what was split or fused to those of what came of it. */
static void relate_extents(te_lowering *lw, te_stage *st, te_axis_kind kind)
{
    for (uint32_t i = 0; i < st->relations.len; i++) {
        te_relation *r = &st->relations.data[i];
        if (r->whole->kind != kind)
            continue;
        if (r->kind == RELATION_SPLIT)
            split_extents(lw, r);
        else
            r->whole->extent = tir_mul(lw->c, r->outer->extent, r->inner->extent);
    }
}

void te_reduce_extents(te_lowering *lw, te_stage *st)
{
    for (uint32_t i = st->op.n_axes; i < st->roots.len; i++)
        st->roots.data[i]->extent = st->roots.data[i]->root->extent;
    relate_extents(lw, st, AXIS_REDUCE);
}

/* Extents of all loops from those of the roots; the leaves enter the table of ranges. */
static void infer_extents(te_lowering *lw, te_stage *st)
{
    compiler *c = lw->c;
    for (uint32_t i = 0; i < st->op.n_axes; i++)
        st->roots.data[i]->extent = st->extent[i];
    relate_extents(lw, st, AXIS_DATA);
    te_reduce_extents(lw, st);
    for (uint32_t i = 0; i < st->leaves.len; i++) {
        te_iter *it = st->leaves.data[i];
        it->extent = tir_simplify(lw->bounds, it->extent);
        tir_bounds_push(lw->bounds, it->var, tir_i64(c, 0), it->extent);
        vec_push(&c->mem, &lw->loops, it);
    }
}

/* --- intervals --- */

typedef struct interval {
    tir_expr_ref lo, hi; /* NULL: unbounded */
} interval;

typedef struct region_ctx {
    te_lowering *lw;
    const te_stage *producer;
} region_ctx;

static const te_iter *loop_of(const te_lowering *lw, const tir_var *v)
{
    for (uint32_t i = 0; i < lw->loops.len; i++)
        if (lw->loops.data[i]->var == v)
            return lw->loops.data[i];
    return NULL;
}

/* Loops around the place where `st` is computed keep their value during one of its computations. */
static bool is_fixed(const te_stage *st, const te_iter *it)
{
    for (; st->attach == ATTACH_AT; st = st->at) {
        uint32_t at = te_leaf_position(st->at, it);
        if (at < st->at->leaves.len)
            return at <= te_leaf_position(st->at, st->at_iter);
    }
    return false;
}

static interval point(tir_expr_ref e)
{
    return (interval){e, e};
}

static interval sweep(const region_ctx *x, tir_expr_ref e);

static interval sweep_mul(const region_ctx *x, interval a, interval b)
{
    compiler *c = x->lw->c;
    int64_t k = 0;
    if (tir_is_int(a.lo, &k) && a.lo == a.hi) {
        interval t = a;
        a = b;
        b = t;
    } else if (b.lo != b.hi || !tir_is_int(b.lo, &k)) {
        return (interval){NULL, NULL};
    }
    tir_expr_ref lo = tir_mul(c, a.lo, b.lo), hi = tir_mul(c, a.hi, b.lo);
    return k >= 0 ? (interval){lo, hi} : (interval){hi, lo};
}

static interval sweep_div(const region_ctx *x, tir_op op, tir_expr_ref divisor, interval a)
{
    te_lowering *lw = x->lw;
    compiler *c = lw->c;
    int64_t d = 0;
    if (!tir_is_int(divisor, &d) || d <= 0)
        return (interval){NULL, NULL};
    tir_expr_ref lo = tir_simplify(lw->bounds, tir_floordiv(c, a.lo, divisor)),
                 hi = tir_simplify(lw->bounds, tir_floordiv(c, a.hi, divisor));
    if (op == TIR_FLOORDIV)
        return (interval){lo, hi};
    if (tir_expr_equal(lo, hi)) /* within one period */
        return (interval){tir_floormod(c, a.lo, divisor), tir_floormod(c, a.hi, divisor)};
    return (interval){tir_i64(c, 0), tir_i64(c, d - 1)};
}

static interval sweep_binary(const region_ctx *x, tir_expr_ref e)
{
    compiler *c = x->lw->c;
    interval a = sweep(x, e->args[0]), b = sweep(x, e->args[1]), none = {NULL, NULL};
    if (!a.lo || !b.lo) {
        int64_t d = 0; /* x mod d is bounded whatever x is */
        if (e->op == TIR_FLOORMOD && tir_is_int(e->args[1], &d) && d > 0)
            return (interval){tir_i64(c, 0), tir_i64(c, d - 1)};
        return none;
    }
    if (a.lo == a.hi && b.lo == b.hi) /* as it stands: `n + 1` is one value, whatever is asked of it next */
        return point(e);
    if (e->op == TIR_ADD)
        return (interval){tir_add(c, a.lo, b.lo), tir_add(c, a.hi, b.hi)};
    if (e->op == TIR_SUB)
        return (interval){tir_sub(c, a.lo, b.hi), tir_sub(c, a.hi, b.lo)};
    if (e->op == TIR_MUL)
        return sweep_mul(x, a, b);
    if (e->op == TIR_FLOORDIV || e->op == TIR_FLOORMOD)
        return sweep_div(x, e->op, e->args[1], a);
    if (e->op == TIR_MIN)
        return (interval){tir_min(c, a.lo, b.lo), tir_min(c, a.hi, b.hi)};
    if (e->op == TIR_MAX)
        return (interval){tir_max(c, a.lo, b.lo), tir_max(c, a.hi, b.hi)};
    return none;
}

/* Range of an index while the loops that are not fixed run. */
static interval sweep(const region_ctx *x, tir_expr_ref e)
{
    compiler *c = x->lw->c;
    if (e->type.dt != DT_I64)
        return (interval){NULL, NULL};
    if (e->kind == TIR_INT)
        return point(e);
    if (e->kind == TIR_VAR) {
        const te_iter *it = loop_of(x->lw, e->u.var);
        if (!it || is_fixed(x->producer, it))
            return point(e);
        return (interval){tir_i64(c, 0), tir_sub(c, it->extent, tir_i64(c, 1))};
    }
    if (e->kind == TIR_BINOP)
        return sweep_binary(x, e);
    if (e->kind == TIR_SELECT) {
        interval a = sweep(x, e->args[1]), b = sweep(x, e->args[2]);
        return a.lo && b.lo ? (interval){tir_min(c, a.lo, b.lo), tir_max(c, a.hi, b.hi)} : (interval){NULL, NULL};
    }
    return (interval){NULL, NULL};
}

/* --- the box of a placed stage --- */

typedef struct box_ctx {
    region_ctx r;
    const te_stage *source; /* whose tensor is read */
    te_stage *reader;
    const tir_var *const *vars; /* the reader's axes */
    tir_expr_ref const *values;
    interval *dims;
    bool *whole;
    bool any;
} box_ctx;

/* The smaller (or larger) of two bounds, decided where their difference has a known sign. */
static tir_expr_ref pick(te_lowering *lw, tir_expr_ref a, tir_expr_ref b, bool smaller)
{
    tir_range d = tir_range_of(lw->bounds, tir_simplify(lw->bounds, tir_sub(lw->c, b, a)));
    if (d.known_min && d.min >= 0)
        return smaller ? a : b;
    if (d.known_max && d.max <= 0)
        return smaller ? b : a;
    return smaller ? tir_min(lw->c, a, b) : tir_max(lw->c, a, b);
}

static void box_load(void *ctx, tir_expr_ref e)
{
    box_ctx *x = ctx;
    te_lowering *lw = x->r.lw;
    if (e->kind != TIR_LOAD || te_stage_of(lw, e->u.buffer, NULL) != x->source)
        return;
    for (uint32_t i = 0; i < e->n_args; i++) {
        tir_expr_ref at = tir_substitute(lw->c, e->args[i], x->reader->roots.len, x->vars, x->values);
        interval v = sweep(&x->r, tir_simplify(lw->bounds, at));
        if (!v.lo) {
            x->whole[i] = true;
            continue;
        }
        v.lo = tir_simplify(lw->bounds, v.lo);
        v.hi = tir_simplify(lw->bounds, v.hi);
        interval *d = &x->dims[i];
        *d = d->lo ? (interval){pick(lw, d->lo, v.lo, true), pick(lw, d->hi, v.hi, false)} : v;
    }
    x->any = true;
}

static void set_whole(te_lowering *lw, te_stage *st, uint32_t i)
{
    st->lo[i] = tir_i64(lw->c, 0);
    st->extent[i] = st->op.n_outputs ? st->op.outputs[0]->shape[i] : st->op.axes[i]->extent;
    st->whole[i] = true;
}

/* Does the expression mention a loop variable? Then it is no size. */
static void note_loop(void *ctx, tir_expr_ref e)
{
    region_ctx *x = ctx;
    if (e->kind == TIR_VAR && loop_of(x->lw, e->u.var))
        x->producer = NULL;
}

static void set_box(te_lowering *lw, te_stage *st, uint32_t i, interval v)
{
    compiler *c = lw->c;
    tir_expr_ref dims = st->op.outputs[0]->shape[i],
                 extent = tir_simplify(lw->bounds, tir_add(c, tir_sub(c, v.hi, v.lo), tir_i64(c, 1)));
    int64_t n = 0, full = 0, lo = 0;
    bool fixed = tir_is_int(dims, &full);
    if (tir_is_int(v.lo, &lo) && fixed && tir_is_int(extent, &n)) {
        int64_t end = lo + n < full ? lo + n : full;
        lo = lo > 0 ? lo : 0;
        v.lo = tir_i64(c, lo);
        extent = tir_i64(c, end > lo ? end - lo : 0);
    }
    if (!tir_is_int(extent, &n)) {
        tir_range r = tir_range_of(lw->bounds, extent);
        region_ctx x = {lw, st};
        tir_visit_expr(extent, note_loop, &x);
        if (!x.producer && !(r.known_max && r.max < TE_MOST_EXTENT)) {
            set_whole(lw, st, i);
            return;
        }
        if (!x.producer) /* a size does not change from one iteration to the next */
            extent = tir_i64(c, r.max > 0 ? r.max : 0);
    }
    if (tir_expr_equal(extent, dims) || (fixed && tir_is_int(extent, &n) && n >= full)) {
        set_whole(lw, st, i);
        return;
    }
    st->lo[i] = v.lo;
    st->extent[i] = extent;
}

static void box_of_reader(box_ctx *x)
{
    const tir_var **vars;
    tir_expr_ref *values;
    te_stage *reader = x->reader;
    te_root_values(x->r.lw, reader, &vars, &values);
    x->vars = vars;
    x->values = values;
    for (uint32_t k = 0; k < reader->op.n_outputs; k++)
        tir_visit_expr(reader->op.body[k], box_load, x);
    if (reader->op.where)
        tir_visit_expr(reader->op.where, box_load, x);
}

bool te_region_read(te_lowering *lw, te_stage *reader, const te_stage *source, const te_stage *at,
                    const te_iter *at_iter, tir_expr_ref *lo, tir_expr_ref *hi)
{
    te_stage placed = *source; /* as if it stood in that loop: the loops around it are fixed */
    placed.attach = ATTACH_AT;
    placed.at = (te_stage *)at;
    placed.at_iter = (te_iter *)at_iter;
    box_ctx x = {.r = {lw, &placed}, .source = source, .reader = reader};
    uint32_t rank = source->op.outputs[0]->rank;
    x.dims = arena_array(&lw->c->mem, interval, rank);
    x.whole = arena_array(&lw->c->mem, bool, rank);
    box_of_reader(&x);
    for (uint32_t i = 0; i < rank; i++) {
        if (!x.any || x.whole[i])
            return false;
        lo[i] = x.dims[i].lo;
        hi[i] = x.dims[i].hi;
    }
    return x.any;
}

static void infer_box(te_lowering *lw, te_stage *st)
{
    box_ctx x = {.r = {lw, st}, .source = st};
    x.dims = arena_array(&lw->c->mem, interval, st->op.n_axes);
    x.whole = arena_array(&lw->c->mem, bool, st->op.n_axes);
    for (uint32_t i = 0; i < lw->stages.len; i++) {
        te_stage *reader = lw->stages.data[i];
        if (!reader->live || reader->attach == ATTACH_INLINE || !reader->lo || reader == st)
            continue;
        x.reader = reader;
        box_of_reader(&x);
    }
    for (uint32_t i = 0; i < st->op.n_axes; i++) {
        if (!x.any || x.whole[i])
            set_whole(lw, st, i);
        else
            set_box(lw, st, i, x.dims[i]);
    }
}

/* --- buffers --- */

/* The data axis behind a vectorized loop; op.n_axes: none. */
static uint32_t vector_axis(const te_stage *st)
{
    const te_iter *it = NULL;
    for (uint32_t i = 0; i < st->leaves.len; i++)
        if (st->leaves.data[i]->loop == FOR_VECTORIZED)
            it = st->leaves.data[i];
    for (uint32_t i = st->relations.len; it && i-- > 0;)
        if (st->relations.data[i].inner == it || st->relations.data[i].outer == it)
            it = st->relations.data[i].kind == RELATION_SPLIT ? st->relations.data[i].whole : NULL;
    for (uint32_t i = 0; i < st->op.n_axes; i++)
        if (st->roots.data[i] == it)
            return i;
    return st->op.n_axes;
}

/* Indices or extents of a box in the order of its buffer. */
static tir_expr_ref *box_order(te_lowering *lw, const te_stage *st, tir_expr_ref const *idx)
{
    uint32_t n = st->op.outputs[0]->rank, next = 0, v = st->attach == ATTACH_AT ? vector_axis(st) : n;
    tir_expr_ref *out = arena_array(&lw->c->mem, tir_expr_ref, n);
    for (uint32_t i = 0; i < n; i++)
        if (i != v)
            out[next++] = idx[i];
    if (v < n)
        out[next] = idx[v];
    return out;
}

uint32_t te_buffer_rank(const te_stage *st)
{
    return st->op.outputs[0]->rank + (st->tiles.ny ? 2u : 0u);
}

/* Tiles of two axes go last: which one it is, and the place in it; of extents: how many there are, and a tile's. */
static tir_expr_ref *in_tiles(te_lowering *lw, const te_stage *st, tir_expr_ref const *idx, bool extents)
{
    compiler *c = lw->c;
    const uint32_t n = st->op.outputs[0]->rank, axes[2] = {st->tiles.y, st->tiles.x};
    const int64_t sizes[2] = {st->tiles.ny, st->tiles.nx};
    tir_expr_ref *out = arena_array(&c->mem, tir_expr_ref, n + 2u);
    uint32_t next = 0;
    for (uint32_t i = 0; i < n; i++)
        if (i != axes[0] && i != axes[1])
            out[next++] = idx[i];
    for (uint32_t k = 0; k < 2; k++) {
        tir_expr_ref at = idx[axes[k]], size = tir_i64(c, sizes[k]);
        if (extents)
            at = tir_add(c, at, tir_i64(c, sizes[k] - 1));
        out[next + k] = tir_simplify(lw->bounds, tir_floordiv(c, at, size));
        out[next + 2 + k] = extents ? size : tir_simplify(lw->bounds, tir_floormod(c, at, size));
    }
    return out;
}

tir_expr_ref *te_buffer_index(te_lowering *lw, const te_stage *st, tir_expr_ref const *idx)
{
    return st->tiles.ny ? in_tiles(lw, st, idx, false) : box_order(lw, st, idx);
}

/* Extents of a buffer for that many elements. */
static tir_expr_ref *buffer_extents(te_lowering *lw, const te_stage *st, tir_expr_ref const *dims)
{
    return st->tiles.ny ? in_tiles(lw, st, dims, true) : box_order(lw, st, dims);
}

/* Pads the dimension behind the axis until its stride, the product of all behind it, is as asked for. */
static bool align_axis(te_lowering *lw, const te_stage *st, const te_alignment *a, tir_expr_ref *dims)
{
    uint32_t n = st->op.n_axes, at = 0;
    int64_t inner = 1, len = 0, v = 0;
    tir_expr_ref *numbers = arena_array(&lw->c->mem, tir_expr_ref, n);
    const char *axis = st->roots.data[a->axis]->name;
    for (uint32_t i = 0; i < n; i++)
        numbers[i] = tir_i64(lw->c, i);
    tir_expr_ref const *order = box_order(lw, st, numbers); /* where each axis lies in the buffer */
    while (at < n && !tir_is_const(order[at], a->axis))
        at++;
    if (at + 1 >= n)
        return te_prim_error(lw, a->prim, axis, "the stride of the buffer's last axis is 1");
    for (uint32_t i = at + 2; i < n; i++)
        if (!tir_is_int(dims[i], &v) || !i64_mul(inner, v, &inner))
            return te_prim_error(lw, a->prim, axis, "its stride is not constant");
    if (!tir_is_int(dims[at + 1], &len))
        return te_prim_error(lw, a->prim, axis, "its stride is not constant");
    for (int64_t pad = 0; pad < a->factor; pad++) {
        int64_t stride;
        if (i64_add(len, pad, &v) && i64_mul(v, inner, &stride) && stride % a->factor == a->offset) {
            dims[at + 1] = tir_i64(lw->c, v);
            return true;
        }
    }
    return te_prim_error(lw, a->prim, axis, "no padding of the axis behind it gives that stride");
}

static bool make_buffers(te_lowering *lw, te_stage *st)
{
    compiler *c = lw->c;
    bool boxed = st->attach == ATTACH_AT, laid_out = st->alignments.len > 0 || st->tiles.ny > 0;
    st->buffers = arena_array(&c->mem, const tir_buffer *, st->op.n_outputs);
    for (uint32_t i = 0; i < st->op.n_outputs; i++) {
        const te_tensor *t = st->op.outputs[i];
        const tir_buffer *param = te_param_of(lw, t);
        const uint32_t rank = t->rank + (st->tiles.ny ? 2u : 0u);
        tir_expr_ref *dims = boxed            ? buffer_extents(lw, st, st->extent)
                             : st->tiles.ny ? buffer_extents(lw, st, t->shape)
                                              : arena_array(&c->mem, tir_expr_ref, t->rank);
        for (uint32_t k = 0; !boxed && !st->tiles.ny && k < t->rank; k++) /* results of an extern differ in rank */
            dims[k] = t->shape[k];
        bool symbolic = false;
        st->buffers[i] = param ? param : t->buffer;
        for (uint32_t k = 0; !param && k < rank; k++) {
            symbolic |= dims[k]->kind != TIR_INT;
            if (!(dims[k] = te_static_extent(lw, st, dims[k])))
                return false;
        }
        if (param || (!boxed && !st->has_scope && !laid_out && !symbolic))
            continue;
        for (uint32_t k = st->alignments.len; k-- > 0;) /* the last axis first: outer strides follow from inner ones */
            if (!align_axis(lw, st, &st->alignments.data[k], dims))
                return false;
        tir_buffer *b = arena_new(&c->mem, tir_buffer);
        *b = *tir_new_buffer(c, t->buffer->name, t->dt, rank, dims, st->has_scope ? st->scope : SCOPE_GLOBAL);
        b->scope_name = st->has_scope ? st->scope_name : NULL;
        st->buffers[i] = b;
    }
    return true;
}

static bool check_vthreads(te_lowering *lw)
{
    for (uint32_t i = 0; i < lw->loops.len; i++) {
        const te_iter *it = lw->loops.data[i];
        if (it->loop == FOR_VTHREAD && it->extent->kind != TIR_INT)
            return te_sched_error(lw, DIAG_VERIFY, it->loc, "vthread %s: the number of virtual threads is not constant",
                                  it->name);
    }
    return true;
}

bool te_infer_bounds(te_lowering *lw)
{
    lw->bounds = te_new_bounds(lw);
    te_declare_symbols(lw);
    for (uint32_t i = lw->stages.len; i-- > 0;) {
        te_stage *st = lw->stages.data[i];
        if (!st->live || st->attach == ATTACH_INLINE)
            continue;
        if (st->op.kind == TE_COMPUTE || st->op.kind == TE_CHECK) {
            st->lo = arena_array(&lw->c->mem, tir_expr_ref, st->op.n_axes);
            st->extent = arena_array(&lw->c->mem, tir_expr_ref, st->op.n_axes);
            st->whole = arena_array(&lw->c->mem, bool, st->op.n_axes);
            for (uint32_t k = 0; st->attach == ATTACH_ROOT && k < st->op.n_axes; k++)
                set_whole(lw, st, k);
            if (st->attach == ATTACH_AT)
                infer_box(lw, st);
            infer_extents(lw, st);
            if (st->rolling && st->attach == ATTACH_AT && !te_infer_roll(lw, st))
                return false;
        }
    }
    if (!check_vthreads(lw))
        return false;
    for (uint32_t i = 0; i < lw->stages.len; i++) /* producers first: numbers of buffers follow the text */
        if (lw->stages.data[i]->live && lw->stages.data[i]->attach != ATTACH_INLINE &&
            !make_buffers(lw, lw->stages.data[i]))
            return false;
    return true;
}
