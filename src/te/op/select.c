/* SPDX-License-Identifier: Apache-2.0 */
/* Compute definitions of operators that choose elements by their values. How many there are is computed by a kernel of
 * its own (te_extent_hook); the definitions fill results of that extent, and end with a status when the data chooses
 * more or fewer. */
#include "te/op/heap.h"

#include "abi/package.h"

#include <string.h>

static tir_expr_ref is_nonzero(te_graph *g, tir_expr_ref x)
{
    return tir_binary(g->c, TIR_NE, x, tir_const(g->c, x->type.dt, 0));
}

static tir_expr_ref one_if(te_graph *g, tir_expr_ref cond)
{
    return tir_select(g->c, cond, te_i64(g, 1), te_i64(g, 0));
}

tir_stmt *loops_counted(compiler *c, const tir_buffer *count, tir_stmt *loops, tir_expr_ref want, const char *message)
{
    tir_expr_ref fits = tir_binary(c, TIR_EQ, loops_get(c, count), want);
    tir_stmt *parts[3] = {loops_set(c, count, tir_i64(c, 0)), loops,
                          tir_assert(c, fits, PACKAGE_STATUS_SHAPE, message)};
    return tir_allocate(c, count, tir_seq(c, 3, parts));
}

/* --- NonZero --- */

typedef struct count_ctx {
    const te_tensor *x;
    tir_expr_ref at[TYPE_MAX_RANK];
} count_ctx;

static tir_expr_ref count_body(te_graph *g, void *ctx, tir_expr_ref const *idx)
{
    const count_ctx *v = ctx;
    (void)idx;
    return one_if(g, is_nonzero(g, te_read(g, v->x, v->at)));
}

te_tensor *loops_count(te_graph *g, const te_tensor *x)
{
    count_ctx v = {.x = x};
    te_axis *axes[TYPE_MAX_RANK];
    for (uint32_t i = 0; i < x->rank; i++) {
        axes[i] = te_numbered_axis(g, "r", i, x->shape[i]);
        v.at[i] = te_var(g, axes[i]);
    }
    return x->rank ? te_reduce(g, "count", DT_I64, 0, NULL, x->rank, axes, TE_SUM, count_body, &v)
                   : te_compute(g, "count", DT_I64, 0, NULL, count_body, &v);
}

bool extents_nonzero(te_graph *g, const graph_node *n, te_tensor *const *in, te_tensor **out)
{
    (void)n;
    out[0] = loops_count(g, in[0]);
    return true;
}

static tir_stmt *build_nonzero(te_graph *g, void *ctx, const tir_buffer *const *in, const tir_buffer *const *out)
{
    compiler *c = g->c;
    const tir_buffer *x = in[0], *y = out[0], *count = loops_number(c, "count", DT_I64);
    const tir_var *vars[TYPE_MAX_RANK];
    tir_expr_ref idx[TYPE_MAX_RANK], so_far = loops_get(c, count);
    tir_stmt *rows[TYPE_MAX_RANK];
    (void)ctx;
    loops_vars(c, "i", x->rank, vars, idx);
    for (uint32_t i = 0; i < x->rank; i++)
        rows[i] = tir_store(c, y, 2, (tir_expr_ref[]){te_i64(g, i), so_far}, idx[i]);
    tir_stmt *room = tir_if(c, tir_binary(c, TIR_LT, so_far, y->shape[1]), tir_seq(c, x->rank, rows), NULL);
    tir_stmt *found[2] = {room, loops_count_up(c, count)};
    tir_stmt *look = tir_if(c, is_nonzero(g, tir_load(c, x, x->rank, idx)), tir_seq(c, 2, found), NULL);
    return loops_counted(c, count, loops_nest(c, x->rank, vars, x->shape, look), y->shape[1],
                         "nonzero: the data has another number of elements that are not 0");
}

bool compute_nonzero(te_graph *g, const graph_node *n, te_tensor *const *in, te_tensor **out)
{
    return loops_extern(g, n, in, 1, build_nonzero, &(loops_ctx){0}, out);
}

/* --- Compress --- */

/* A condition that is longer than the axis counts as far as that goes, which is what onnxruntime makes of it. */
static tir_expr_ref compress_length(te_graph *g, tir_expr_ref condition, tir_expr_ref extent)
{
    return tir_min(g->c, condition, extent);
}

bool extents_compress(te_graph *g, const graph_node *n, te_tensor *const *in, te_tensor **out)
{
    count_ctx v = {.x = in[1]};
    int32_t axis = 0;
    if (!infer_axis(g->c, n, graph_attr_int(n, "axis"), (int32_t)in[0]->rank, &axis))
        return false;
    te_axis *r = te_reduce_axis(g, "r", compress_length(g, in[1]->shape[0], in[0]->shape[axis]));
    v.at[0] = te_var(g, r);
    out[0] = te_reduce(g, "count", DT_I64, 0, NULL, 1, &r, TE_SUM, count_body, &v);
    return true;
}

static tir_stmt *build_compress(te_graph *g, void *ctx, const tir_buffer *const *in, const tir_buffer *const *out)
{
    const loops_ctx *v = ctx;
    compiler *c = g->c;
    const tir_buffer *x = in[0], *y = out[0], *count = loops_number(c, "count", DT_I64);
    const tir_var *vars[TYPE_MAX_RANK], *row = tir_new_var(c, "s", TIR_I64);
    tir_expr_ref idx[TYPE_MAX_RANK], from[TYPE_MAX_RANK], extents[TYPE_MAX_RANK], at = tir_varref(c, row);
    tir_expr_ref so_far = loops_get(c, count);
    loops_vars(c, "i", x->rank, vars, idx);
    memcpy(from, idx, x->rank * sizeof *from);
    memcpy(extents, x->shape, x->rank * sizeof *extents);
    from[v->axis] = at;
    idx[v->axis] = so_far;
    extents[v->axis] = te_i64(g, 1);
    tir_stmt *copy =
        loops_nest(c, x->rank, vars, extents, tir_store(c, y, y->rank, idx, tir_load(c, x, x->rank, from)));
    tir_expr_ref room = tir_binary(c, TIR_LT, so_far, y->shape[v->axis]);
    tir_expr_ref length = compress_length(g, in[1]->shape[0], x->shape[v->axis]);
    tir_stmt *found[2] = {tir_if(c, room, copy, NULL), loops_count_up(c, count)};
    tir_stmt *look = tir_if(c, tir_load(c, in[1], 1, &at), tir_seq(c, 2, found), NULL);
    return loops_counted(c, count, tir_for(c, row, te_i64(g, 0), length, FOR_SERIAL, look), y->shape[v->axis],
                         "compress: the condition holds for another number of elements");
}

bool compute_compress(te_graph *g, const graph_node *n, te_tensor *const *in, te_tensor **out)
{
    loops_ctx v = {0};
    return infer_axis(g->c, n, graph_attr_int(n, "axis"), (int32_t)in[0]->rank, &v.axis) &&
           loops_extern(g, n, in, 2, build_compress, &v, out);
}

/* --- Unique --- */

/* order = -1, 0 or 1: how slice a of the axis compares with slice b. */
static tir_stmt *compare_slices(te_graph *g, const tir_buffer *x, int32_t axis, tir_expr_ref a, tir_expr_ref b,
                                const tir_buffer *order)
{
    compiler *c = g->c;
    const tir_var *vars[TYPE_MAX_RANK];
    tir_expr_ref idx[TYPE_MAX_RANK], extents[TYPE_MAX_RANK], zero = te_i64(g, 0);
    loops_vars(c, "e", x->rank, vars, idx);
    memcpy(extents, x->shape, x->rank * sizeof *extents);
    extents[axis] = te_i64(g, 1);
    idx[axis] = a;
    tir_expr_ref p = tir_load(c, x, x->rank, idx);
    idx[axis] = b;
    tir_expr_ref q = tir_load(c, x, x->rank, idx);
    tir_expr_ref above = tir_select(c, te_beats(c, TIR_GT, p, q), te_i64(g, 1), zero);
    tir_expr_ref how = tir_select(c, te_beats(c, TIR_GT, q, p), te_i64(g, -1), above);
    tir_stmt *look = tir_if(c, tir_binary(c, TIR_EQ, loops_get(c, order), zero), loops_set(c, order, how), NULL);
    tir_stmt *parts[2] = {loops_set(c, order, zero), loops_nest(c, x->rank, vars, extents, look)};
    return tir_seq(c, 2, parts);
}

typedef struct unique_ctx {
    te_graph *g;
    int32_t axis;
    bool sorted;
    const tir_buffer *x, *y, *where, *inverse, *counts, *order, *number, *sum; /* sum: kinds so far */
    loops_heap heap; /* its places are the slices in order */
} unique_ctx;

/* Equal slices stand in the order of their places, so that the first of them is the first in the data. */
static tir_stmt *compare_places(const loops_heap *h, tir_expr_ref a, tir_expr_ref b)
{
    const unique_ctx *u = h->ctx;
    compiler *c = h->g->c;
    tir_expr_ref one = te_i64(h->g, 1), zero = te_i64(h->g, 0), how = loops_get(c, u->order);
    tir_expr_ref tie = tir_and(c, tir_binary(c, TIR_EQ, how, zero), tir_binary(c, TIR_GT, a, b));
    tir_expr_ref behind = tir_binary(c, TIR_OR, tir_binary(c, TIR_GT, how, zero), tie);
    tir_stmt *parts[2] = {compare_slices(h->g, u->x, u->axis, a, b, u->order),
                          loops_set(c, h->behind, tir_select(c, behind, one, zero))};
    return tir_seq(c, 2, parts);
}

static void begin_unique(te_graph *g, unique_ctx *u)
{
    compiler *c = g->c;
    tir_expr_ref all = u->x->shape[u->axis], *idx = arena_new(&c->mem, tir_expr_ref);
    *idx = te_i64(g, 0);
    u->g = g;
    u->order = loops_number(c, "order", DT_I64);
    u->number = loops_number(c, "number", DT_I64);
    u->sum = loops_number(c, "sum", DT_I64);
    u->heap = (loops_heap){.g = g,
                           .places = te_scratch(g, "places", DT_I64, 1, &all),
                           .idx = idx,
                           .most = te_most(g, all),
                           .compare = compare_places,
                           .ctx = u};
    loops_heap_begin(&u->heap);
}

static tir_stmt *end_unique(const unique_ctx *u, tir_stmt *s)
{
    compiler *c = u->g->c;
    s = tir_allocate(c, u->order, tir_allocate(c, u->number, s));
    return tir_allocate(c, u->heap.places, loops_heap_end(&u->heap, s));
}

/* Sorts the slices; then `first` where one comes that differs from the one before, and `each` for all: i is the
 * slice. */
static tir_stmt *walk_in_order(const unique_ctx *u, tir_expr_ref i, const tir_var *var, tir_stmt *first, tir_stmt *each)
{
    te_graph *g = u->g;
    compiler *c = g->c;
    const tir_var *vars[2];
    tir_expr_ref at[2], zero = te_i64(g, 0), all = u->x->shape[u->axis];
    loops_vars(c, "t", 2, vars, at);
    tir_expr_ref before = loops_heap_get(&u->heap, tir_sub(c, at[1], te_i64(g, 1)));
    tir_stmt *compare = tir_if(c, tir_binary(c, TIR_EQ, at[1], zero), loops_set(c, u->order, te_i64(g, 1)),
                               compare_slices(g, u->x, u->axis, i, before, u->order));
    tir_stmt *step[3] = {compare, tir_if(c, tir_binary(c, TIR_NE, loops_get(c, u->order), zero), first, NULL), each};
    tir_stmt *body = tir_let(c, var, loops_heap_get(&u->heap, at[1]), tir_seq(c, each ? 3 : 2, step));
    tir_stmt *parts[4] = {tir_for(c, vars[0], zero, all, FOR_SERIAL, loops_heap_set(&u->heap, at[0], at[0])),
                          loops_heap_make(&u->heap, all), loops_heap_sort(&u->heap, all),
                          tir_for(c, vars[1], zero, all, FOR_SERIAL, body)};
    return tir_seq(c, 4, parts);
}

static tir_stmt *build_unique_count(te_graph *g, void *ctx, const tir_buffer *const *in, const tir_buffer *const *out)
{
    const loops_ctx *v = ctx;
    compiler *c = g->c;
    unique_ctx u = {.x = in[0], .axis = v->axis};
    const tir_var *var = tir_new_var(c, "i", TIR_I64);
    tir_expr_ref more = tir_add(c, tir_load(c, out[0], 0, NULL), te_i64(g, 1));
    begin_unique(g, &u);
    tir_stmt *count = walk_in_order(&u, tir_varref(c, var), var, tir_store(c, out[0], 0, NULL, more), NULL);
    tir_stmt *parts[2] = {tir_store(c, out[0], 0, NULL, te_i64(g, 0)), count};
    return end_unique(&u, tir_seq(c, 2, parts));
}

bool extents_unique(te_graph *g, const graph_node *n, te_tensor *const *in, te_tensor **out)
{
    loops_ctx v = {.n = n, .in = in};
    dtype dt = DT_I64;
    uint32_t rank = 0;
    tir_expr_ref const *none = NULL;
    if (!infer_axis(g->c, n, graph_attr_int(n, "axis"), (int32_t)in[0]->rank, &v.axis))
        return false;
    te_extern(g, "count", 1, in, 1, &dt, &rank, &none, build_unique_count, &v, out);
    return true;
}

/* Slice i, the first of its kind, is number `at` of the results. */
static tir_stmt *put_unique(const unique_ctx *u, tir_expr_ref i, tir_expr_ref at)
{
    te_graph *g = u->g;
    compiler *c = g->c;
    const tir_var *vars[TYPE_MAX_RANK];
    tir_expr_ref idx[TYPE_MAX_RANK], from[TYPE_MAX_RANK], extents[TYPE_MAX_RANK];
    loops_vars(c, "e", u->x->rank, vars, idx);
    memcpy(from, idx, u->x->rank * sizeof *from);
    memcpy(extents, u->x->shape, u->x->rank * sizeof *extents);
    extents[u->axis] = te_i64(g, 1);
    from[u->axis] = i;
    idx[u->axis] = at;
    tir_stmt *copy = tir_store(c, u->y, u->y->rank, idx, tir_load(c, u->x, u->x->rank, from));
    tir_stmt *put[3] = {tir_store(c, u->where, 1, &at, i), tir_store(c, u->counts, 1, &at, te_i64(g, 0)),
                        loops_nest(c, u->x->rank, vars, extents, copy)};
    return tir_if(c, tir_binary(c, TIR_LT, at, u->where->shape[0]), tir_seq(c, 3, put), NULL);
}

/* One more of the kind of number `at`. */
static tir_stmt *count_kind(const unique_ctx *u, tir_expr_ref at)
{
    compiler *c = u->g->c;
    tir_expr_ref more = tir_add(c, tir_load(c, u->counts, 1, &at), te_i64(u->g, 1));
    return tir_if(c, tir_binary(c, TIR_LT, at, u->where->shape[0]), tir_store(c, u->counts, 1, &at, more), NULL);
}

/* The results in order: kind number `sum` - 1 is the one that is at hand. */
static tir_stmt *unique_in_order(const unique_ctx *u)
{
    te_graph *g = u->g;
    compiler *c = g->c;
    const tir_var *var = tir_new_var(c, "i", TIR_I64);
    tir_expr_ref i = tir_varref(c, var), last = tir_sub(c, loops_get(c, u->sum), te_i64(g, 1));
    tir_stmt *first[2] = {put_unique(u, i, loops_get(c, u->sum)), loops_count_up(c, u->sum)};
    tir_stmt *each[2] = {tir_store(c, u->inverse, 1, &i, last), count_kind(u, last)};
    return walk_in_order(u, i, var, tir_seq(c, 2, first), tir_seq(c, 2, each));
}

/* The results as they come: the inverse indices first hold the first slice of the kind, which stands before all others
 * and has its number when they ask for it. */
static tir_stmt *unique_as_it_comes(const unique_ctx *u)
{
    te_graph *g = u->g;
    compiler *c = g->c;
    const tir_var *vars[2];
    tir_expr_ref i[2], at = loops_get(c, u->number);
    loops_vars(c, "i", 2, vars, i);
    tir_stmt *kinds = walk_in_order(u, i[0], vars[0], loops_set(c, u->number, i[0]),
                                    tir_store(c, u->inverse, 1, &i[0], loops_get(c, u->number)));
    tir_expr_ref first = tir_load(c, u->inverse, 1, &i[1]);
    tir_stmt *new_kind[3] = {put_unique(u, i[1], loops_get(c, u->sum)), loops_set(c, u->number, loops_get(c, u->sum)),
                             loops_count_up(c, u->sum)};
    tir_stmt *old_kind = loops_set(c, u->number, tir_load(c, u->inverse, 1, &first));
    tir_stmt *step[3] = {tir_if(c, tir_binary(c, TIR_EQ, first, i[1]), tir_seq(c, 3, new_kind), old_kind),
                         tir_store(c, u->inverse, 1, &i[1], at), count_kind(u, at)};
    tir_stmt *parts[2] = {kinds, tir_for(c, vars[1], te_i64(g, 0), u->x->shape[u->axis], FOR_SERIAL,
                                         tir_seq(c, 3, step))};
    return tir_seq(c, 2, parts);
}

static tir_stmt *build_unique(te_graph *g, void *ctx, const tir_buffer *const *in, const tir_buffer *const *out)
{
    const loops_ctx *v = ctx;
    compiler *c = g->c;
    unique_ctx u = {.axis = v->axis, .x = in[0], .y = out[0], .where = out[1], .inverse = out[2], .counts = out[3]};
    begin_unique(g, &u);
    tir_stmt *fill = graph_attr_int(v->n, "sorted") != 0 ? unique_in_order(&u) : unique_as_it_comes(&u);
    return end_unique(&u, loops_counted(c, u.sum, fill, u.where->shape[0],
                                        "unique: the data has another number of different elements"));
}

bool compute_unique(te_graph *g, const graph_node *n, te_tensor *const *in, te_tensor **out)
{
    loops_ctx v = {0};
    return infer_axis(g->c, n, graph_attr_int(n, "axis"), (int32_t)in[0]->rank, &v.axis) &&
           loops_extern(g, n, in, 1, build_unique, &v, out);
}
