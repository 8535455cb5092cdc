/* SPDX-License-Identifier: Apache-2.0 */
/* Compute definitions of operators that choose elements by their values. How many there are is computed by a kernel of
 * its own (te_extent_hook); the definitions fill results of that extent, and end with a status when the data chooses
 * more or fewer. */
#include "te/op/loops.h"

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

/* The order of floats with NaN above all numbers and equal to itself: sorting needs a total one. */
static tir_expr_ref below(compiler *c, tir_expr_ref a, tir_expr_ref b)
{
    tir_expr_ref less = tir_binary(c, TIR_LT, a, b);
    if (!dtype_is_float(a->type.dt))
        return less;
    tir_expr_ref number = tir_not(c, tir_call1(c, TIR_ISNAN, a));
    return tir_binary(c, TIR_OR, less, tir_and(c, number, tir_call1(c, TIR_ISNAN, b)));
}

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
    tir_expr_ref how = tir_select(c, below(c, p, q), te_i64(g, -1), tir_select(c, below(c, q, p), te_i64(g, 1), zero));
    tir_stmt *look = tir_if(c, tir_binary(c, TIR_EQ, loops_get(c, order), zero), loops_set(c, order, how), NULL);
    tir_stmt *parts[2] = {loops_set(c, order, zero), loops_nest(c, x->rank, vars, extents, look)};
    return tir_seq(c, 2, parts);
}

/* first = the first slice that equals slice i. */
static tir_stmt *find_first(te_graph *g, const tir_buffer *x, int32_t axis, tir_expr_ref i, const tir_buffer *order,
                            const tir_buffer *first)
{
    compiler *c = g->c;
    const tir_var *var = tir_new_var(c, "j", TIR_I64);
    tir_expr_ref j = tir_varref(c, var), open = tir_binary(c, TIR_EQ, loops_get(c, first), i);
    tir_stmt *hit = tir_if(c, tir_binary(c, TIR_EQ, loops_get(c, order), te_i64(g, 0)), loops_set(c, first, j), NULL);
    tir_stmt *both[2] = {compare_slices(g, x, axis, j, i, order), hit};
    tir_stmt *parts[2] = {loops_set(c, first, i),
                          tir_for(c, var, te_i64(g, 0), i, FOR_SERIAL, tir_if(c, open, tir_seq(c, 2, both), NULL))};
    return tir_seq(c, 2, parts);
}

static tir_stmt *build_unique_count(te_graph *g, void *ctx, const tir_buffer *const *in, const tir_buffer *const *out)
{
    const loops_ctx *v = ctx;
    compiler *c = g->c;
    const tir_buffer *order = loops_number(c, "order", DT_I64), *first = loops_number(c, "first", DT_I64);
    const tir_var *var = tir_new_var(c, "i", TIR_I64);
    tir_expr_ref i = tir_varref(c, var), sum = tir_add(c, tir_load(c, out[0], 0, NULL), te_i64(g, 1));
    tir_stmt *up = tir_if(c, tir_binary(c, TIR_EQ, loops_get(c, first), i), tir_store(c, out[0], 0, NULL, sum), NULL);
    tir_stmt *both[2] = {find_first(g, in[0], v->axis, i, order, first), up};
    tir_stmt *parts[2] = {tir_store(c, out[0], 0, NULL, te_i64(g, 0)),
                          tir_for(c, var, te_i64(g, 0), in[0]->shape[v->axis], FOR_SERIAL, tir_seq(c, 2, both))};
    return tir_allocate(c, order, tir_allocate(c, first, tir_seq(c, 2, parts)));
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

typedef struct unique_ctx {
    te_graph *g;
    int32_t axis;
    bool sorted;
    const tir_buffer *x, *y, *where, *inverse, *counts, *order, *number, *count;
} unique_ctx;

/* number = how many different slices stand before slice i. */
static tir_stmt *find_rank(const unique_ctx *u, tir_expr_ref i)
{
    te_graph *g = u->g;
    compiler *c = g->c;
    const tir_var *var = tir_new_var(c, "k", TIR_I64);
    tir_expr_ref k = tir_varref(c, var), first = tir_binary(c, TIR_EQ, tir_load(c, u->inverse, 1, &k), k);
    tir_stmt *up = loops_count_up(c, u->number);
    tir_stmt *before = tir_if(c, tir_binary(c, TIR_LT, k, i), up, NULL);
    if (u->sorted) {
        tir_expr_ref less = tir_binary(c, TIR_LT, loops_get(c, u->order), te_i64(g, 0));
        tir_stmt *both[2] = {compare_slices(g, u->x, u->axis, k, i, u->order), tir_if(c, less, up, NULL)};
        before = tir_seq(c, 2, both);
    }
    tir_stmt *parts[2] = {loops_set(c, u->number, te_i64(g, 0)), tir_for(c, var, te_i64(g, 0), u->x->shape[u->axis],
                                                                         FOR_SERIAL, tir_if(c, first, before, NULL))};
    return tir_seq(c, 2, parts);
}

/* Slice i, the first of its kind, takes its place among the results. */
static tir_stmt *put_unique(const unique_ctx *u, tir_expr_ref i)
{
    te_graph *g = u->g;
    compiler *c = g->c;
    const tir_var *vars[TYPE_MAX_RANK];
    tir_expr_ref idx[TYPE_MAX_RANK], from[TYPE_MAX_RANK], extents[TYPE_MAX_RANK], at = loops_get(c, u->number);
    loops_vars(c, "e", u->x->rank, vars, idx);
    memcpy(from, idx, u->x->rank * sizeof *from);
    memcpy(extents, u->x->shape, u->x->rank * sizeof *extents);
    extents[u->axis] = te_i64(g, 1);
    from[u->axis] = i;
    idx[u->axis] = at;
    tir_stmt *copy = tir_store(c, u->y, u->y->rank, idx, tir_load(c, u->x, u->x->rank, from));
    tir_stmt *put[3] = {tir_store(c, u->where, 1, &at, i), tir_store(c, u->counts, 1, &at, te_i64(g, 0)),
                        loops_nest(c, u->x->rank, vars, extents, copy)};
    tir_expr_ref room = tir_binary(c, TIR_LT, at, u->where->shape[0]);
    tir_stmt *parts[3] = {find_rank(u, i), tir_if(c, room, tir_seq(c, 3, put), NULL), loops_count_up(c, u->count)};
    return tir_if(c, tir_binary(c, TIR_EQ, tir_load(c, u->inverse, 1, &i), i), tir_seq(c, 3, parts), NULL);
}

/* From the first slice that equals slice i to its place among the results; one more of that kind. */
static tir_stmt *number_slice(const unique_ctx *u, tir_expr_ref i)
{
    te_graph *g = u->g;
    compiler *c = g->c;
    const tir_var *var = tir_new_var(c, "k", TIR_I64);
    tir_expr_ref k = tir_varref(c, var), at = loops_get(c, u->number);
    tir_expr_ref found = tir_binary(c, TIR_EQ, tir_load(c, u->where, 1, &k), tir_load(c, u->inverse, 1, &i));
    tir_stmt *search = tir_for(c, var, te_i64(g, 0), u->where->shape[0], FOR_SERIAL,
                               tir_if(c, found, loops_set(c, u->number, k), NULL));
    tir_expr_ref more = tir_add(c, tir_load(c, u->counts, 1, &at), te_i64(g, 1));
    tir_stmt *parts[4] = {loops_set(c, u->number, te_i64(g, 0)), search, tir_store(c, u->inverse, 1, &i, at),
                          tir_store(c, u->counts, 1, &at, more)};
    return tir_seq(c, 4, parts);
}

/* The inverse indices first hold, for each slice, the first one that equals it. */
static tir_stmt *build_unique(te_graph *g, void *ctx, const tir_buffer *const *in, const tir_buffer *const *out)
{
    const loops_ctx *v = ctx;
    compiler *c = g->c;
    unique_ctx u = {.g = g,
                    .axis = v->axis,
                    .sorted = graph_attr_int(v->n, "sorted") != 0,
                    .x = in[0],
                    .y = out[0],
                    .where = out[1],
                    .inverse = out[2],
                    .counts = out[3],
                    .order = loops_number(c, "order", DT_I64),
                    .number = loops_number(c, "number", DT_I64),
                    .count = loops_number(c, "count", DT_I64)};
    const tir_var *vars[3];
    tir_expr_ref i[3], all = in[0]->shape[v->axis], zero = te_i64(g, 0);
    loops_vars(c, "i", 3, vars, i);
    tir_stmt *first[2] = {find_first(g, u.x, u.axis, i[0], u.order, u.number),
                          tir_store(c, u.inverse, 1, &i[0], loops_get(c, u.number))};
    tir_stmt *pass[2] = {tir_for(c, vars[0], zero, all, FOR_SERIAL, tir_seq(c, 2, first)),
                         tir_for(c, vars[1], zero, all, FOR_SERIAL, put_unique(&u, i[1]))};
    tir_stmt *parts[2] = {loops_counted(c, u.count, tir_seq(c, 2, pass), u.where->shape[0],
                                        "unique: the data has another number of different elements"),
                          tir_for(c, vars[2], zero, all, FOR_SERIAL, number_slice(&u, i[2]))};
    return tir_allocate(c, u.order, tir_allocate(c, u.number, tir_seq(c, 2, parts)));
}

bool compute_unique(te_graph *g, const graph_node *n, te_tensor *const *in, te_tensor **out)
{
    loops_ctx v = {0};
    return infer_axis(g->c, n, graph_attr_int(n, "axis"), (int32_t)in[0]->rank, &v.axis) &&
           loops_extern(g, n, in, 1, build_unique, &v, out);
}
