/* SPDX-License-Identifier: Apache-2.0 */
/* Ensembles of decision trees as a walk over tables (graph/op/trees.h says what they hold). A subtree is a range of
 * nodes: at a node the walk keeps its left part or its right part, until the range is empty; `leaf` counts the leaves
 * that it has passed by. Sums of a row go in the order of the trees, from 0. */
#include "te/op/trees.h"

#include <math.h>

#define UNROLLED 16 /* targets */

tir_expr_ref walk_load(const walk *v, uint32_t table, tir_expr_ref i)
{
    const tir_expr_ref at = tir_cast(v->c, DT_I64, i);
    return tir_load(v->c, v->in[table], 1, &at);
}

tir_expr_ref walk_entry(const walk *v, uint32_t table, tir_expr_ref i)
{
    return tir_cast(v->c, DT_I32, walk_load(v, table, i));
}

/* --- a node --- */

/* Modes of nodes, as ai.onnx.ml numbers them; TREES_MEMBER is none of these. */
static const tir_op compares[] = {TIR_LE, TIR_LT, TIR_GE, TIR_GT, TIR_EQ, TIR_NE};

tir_expr_ref walk_compare(const walk *v, tir_expr_ref x, tir_expr_ref threshold, int64_t mode)
{
    return tir_binary(v->c, compares[mode], x, threshold);
}

static tir_expr_ref by_mode(const walk *v, tir_expr_ref x, tir_expr_ref threshold, tir_expr_ref mode)
{
    compiler *c = v->c;
    tir_expr_ref holds = tir_int(c, DT_BOOL, 0);
    if (v->in[TREES_MEMBERS])
        holds = tir_binary(c, TIR_NE, loops_get(c, v->member), walk_i32(v, 0));
    for (uint32_t m = 0; m < TREES_MEMBER; m++)
        holds = tir_select(c, tir_binary(c, TIR_EQ, mode, walk_i32(v, m)), tir_binary(c, compares[m], x, threshold),
                           holds);
    return holds;
}

tir_expr_ref walk_goes_left(const walk *v, tir_expr_ref x, walk_node at)
{
    compiler *c = v->c;
    tir_expr_ref holds = at.mode ? by_mode(v, x, at.threshold, at.mode)
                                 : walk_compare(v, x, at.threshold, at.fixed_mode);
    if (!at.tracks && graph_attr_int(v->n, "tracks") != TREES_TRACK_ALL)
        return holds;
    tir_expr_ref missing = tir_call1(c, TIR_ISNAN, x);
    return tir_binary(c, TIR_OR, holds, at.tracks ? tir_and(c, missing, at.tracks) : missing);
}

walk_node walk_node_of(const walk *v, tir_expr_ref at, tir_expr_ref feature)
{
    compiler *c = v->c;
    walk_node n = {.threshold = walk_load(v, TREES_THRESHOLDS, at), .fixed_mode = graph_attr_int(v->n, "mode")};
    if (v->in[TREES_MODES])
        n.mode = walk_entry(v, TREES_MODES, at);
    if (graph_attr_int(v->n, "tracks") == TREES_TRACK_SOME)
        n.tracks = tir_binary(c, TIR_NE, tir_binary(c, TIR_BITAND, feature, walk_i32(v, 1)), walk_i32(v, 0));
    return n;
}

tir_expr_ref walk_column(const walk *v, tir_expr_ref feature)
{
    const bool some = graph_attr_int(v->n, "tracks") == TREES_TRACK_SOME;
    return tir_cast(v->c, DT_I64, some ? tir_binary(v->c, TIR_SHR, feature, walk_i32(v, 1)) : feature);
}

/* --- the walk --- */

/* member = whether x is in the set of a node of that mode: the threshold says where its length and numbers stand. */
static tir_stmt *look_for_member(const walk *v, tir_expr_ref x)
{
    compiler *c = v->c;
    tir_expr_ref at = loops_get(c, v->at), first = tir_cast(c, DT_I32, walk_load(v, TREES_THRESHOLDS, at));
    const tir_var *k = tir_new_var(c, "k", TIR_I64);
    tir_expr_ref count = tir_cast(c, DT_I64, walk_load(v, TREES_MEMBERS, first));
    tir_expr_ref one = walk_load(v, TREES_MEMBERS,
                            tir_add(c, tir_add(c, first, walk_i32(v, 1)), tir_cast(c, DT_I32, tir_varref(c, k))));
    tir_stmt *found = tir_if(c, tir_binary(c, TIR_EQ, x, one), loops_set(c, v->member, walk_i32(v, 1)), NULL);
    tir_stmt *look = tir_for(c, k, te_i64(v->g, 0), count, FOR_SERIAL, found);
    tir_expr_ref is_set = tir_binary(c, TIR_EQ, walk_entry(v, TREES_MODES, at), walk_i32(v, TREES_MEMBER));
    tir_stmt *both[2] = {loops_set(c, v->member, walk_i32(v, 0)), tir_if(c, is_set, look, NULL)};
    return tir_seq(c, 2, both);
}

/* One step down: the left part of the range begins behind the node, the right part behind that. */
static tir_stmt *step(const walk *v)
{
    compiler *c = v->c;
    const tir_var *middle = tir_new_var(c, "middle", (tir_type){DT_I32, 1});
    const tir_var *feature = tir_new_var(c, "feature", (tir_type){DT_I32, 1});
    const tir_var *value = tir_new_var(c, "value", (tir_type){v->in[TREES_X]->dt, 1});
    tir_expr_ref at = loops_get(c, v->at), next = tir_add(c, at, walk_i32(v, 1)), m = tir_varref(c, middle);
    tir_expr_ref f = tir_varref(c, feature);
    const tir_expr_ref place[2] = {v->row, walk_column(v, f)};
    tir_stmt *left[2] = {loops_set(c, v->end, m), loops_set(c, v->at, next)};
    tir_stmt *right[2] = {loops_set(c, v->leaf, tir_add(c, loops_get(c, v->leaf), tir_sub(c, m, at))),
                          loops_set(c, v->at, m)};
    tir_expr_ref is_left = walk_goes_left(v, tir_varref(c, value), walk_node_of(v, at, f));
    tir_stmt *go = tir_if(c, is_left, tir_seq(c, 2, left), tir_seq(c, 2, right));
    if (v->in[TREES_MEMBERS]) {
        tir_stmt *both[2] = {look_for_member(v, tir_varref(c, value)), go};
        go = tir_seq(c, 2, both);
    }
    go = tir_let(c, middle, tir_add(c, next, walk_entry(v, TREES_LEFT, at)), go);
    go = tir_let(c, value, tir_load(c, v->in[TREES_X], 2, place), go);
    return tir_let(c, feature, walk_entry(v, TREES_FEATURES, at), go);
}

tir_stmt *walk_down(const walk *v, tir_expr_ref cond, tir_stmt *step)
{
    compiler *c = v->c;
    const tir_var *depth = tir_new_var(c, "depth", TIR_I64);
    return tir_for(c, depth, te_i64(v->g, 0), te_i64(v->g, graph_attr_int(v->n, "depth")), FOR_SERIAL,
                   tir_if(c, cond, step, NULL));
}

static tir_stmt *find_leaf(const walk *v)
{
    compiler *c = v->c;
    tir_expr_ref tree = tir_cast(c, DT_I32, v->tree), at = loops_get(c, v->at), end = loops_get(c, v->end);
    tir_stmt *parts[4] = {
        loops_set(c, v->at, walk_entry(v, TREES_ROOTS, tree)),
        loops_set(c, v->end, walk_entry(v, TREES_ROOTS, tir_add(c, tree, walk_i32(v, 1)))),
        loops_set(c, v->leaf, tir_add(c, at, tree)), /* a tree has one leaf more than nodes */
        walk_down(v, tir_binary(c, TIR_LT, at, end), step(v))};
    return tir_seq(c, 4, parts);
}

/* --- the leaf --- */

static bool adds(const walk *v)
{
    const int64_t how = graph_attr_int(v->n, "aggregate");
    return how == TREES_SUM || how == TREES_AVERAGE;
}

static tir_expr_ref nothing_yet(const walk *v)
{
    return tir_float(v->c, v->out->dt, adds(v) ? 0 : (double)NAN);
}

/* The result so far and the weight w. The least and the largest begin with NaN, which is no weight. */
static tir_expr_ref combined(const walk *v, tir_expr_ref so_far, tir_expr_ref w)
{
    compiler *c = v->c;
    const bool least = graph_attr_int(v->n, "aggregate") == TREES_MIN;
    if (adds(v))
        return tir_add(c, so_far, w);
    tir_expr_ref better = tir_binary(c, least ? TIR_LT : TIR_GT, w, so_far);
    return tir_select(c, tir_binary(c, TIR_OR, tir_call1(c, TIR_ISNAN, so_far), better), w, so_far);
}

static tir_expr_ref get_sum(const walk *v)
{
    return tir_load(v->c, v->sum, 1, &v->lane);
}

static tir_stmt *set_sum(const walk *v, tir_expr_ref value)
{
    return tir_store(v->c, v->sum, 1, &v->lane, value);
}

tir_stmt *walk_add_weight(const walk *v, tir_expr_ref to, tir_expr_ref w)
{
    compiler *c = v->c;
    const tir_expr_ref place[2] = {v->row, tir_cast(c, DT_I64, to)};
    if (v->sum)
        return set_sum(v, combined(v, get_sum(v), w));
    return tir_store(c, v->out, 2, place, combined(v, tir_load(c, v->out, 2, place), w));
}

/* Entry `number` of the weights, or of the table that says which is meant. */
tir_expr_ref walk_weight(const walk *v, tir_expr_ref number)
{
    return walk_load(v, TREES_WEIGHTS, v->in[TREES_WEIGHT_IDS] ? walk_entry(v, TREES_WEIGHT_IDS, number) : number);
}

static tir_stmt *add_sparse(const walk *v, tir_expr_ref list)
{
    compiler *c = v->c;
    const tir_var *k = tir_new_var(c, "k", TIR_I64), *id = tir_new_var(c, "id", (tir_type){DT_I32, 1});
    tir_expr_ref first = walk_entry(v, TREES_LISTS, tir_varref(c, id));
    tir_expr_ref last = walk_entry(v, TREES_LISTS, tir_add(c, tir_varref(c, id), walk_i32(v, 1)));
    tir_expr_ref number = tir_cast(c, DT_I32, tir_varref(c, k));
    tir_stmt *all = tir_for(c, k, tir_cast(c, DT_I64, first), tir_cast(c, DT_I64, tir_sub(c, last, first)), FOR_SERIAL,
                            walk_add_weight(v, walk_entry(v, TREES_TARGETS, number), walk_weight(v, number)));
    return tir_let(c, id, list, all);
}

/* Weights of 0 change no sum: it begins as +0, so it never is -0. */
static tir_stmt *add_dense(const walk *v, tir_expr_ref list)
{
    compiler *c = v->c;
    const tir_var *k = tir_new_var(c, "k", TIR_I64), *first = tir_new_var(c, "first", (tir_type){DT_I32, 1});
    tir_expr_ref to = tir_cast(c, DT_I32, tir_varref(c, k));
    tir_stmt *one = walk_add_weight(v, to, walk_load(v, TREES_WEIGHTS, tir_add(c, tir_varref(c, first), to)));
    tir_stmt *all = tir_for(c, k, te_i64(v->g, 0), v->out->shape[1], FOR_SERIAL, one);
    return tir_let(c, first, tir_mul(c, list, walk_i32(v, graph_attr_int(v->n, "n_targets"))), all);
}

tir_stmt *walk_add_list(const walk *v, tir_expr_ref list)
{
    return trees_are_dense(v->n) ? add_dense(v, list) : add_sparse(v, list);
}

tir_stmt *walk_add_leaf(const walk *v, tir_expr_ref leaf)
{
    tir_expr_ref to = walk_i32(v, 0);
    if (v->in[TREES_LEAVES])
        leaf = walk_entry(v, TREES_LEAVES, leaf);
    if (trees_have_lists(v->n))
        return walk_add_list(v, leaf);
    if (v->in[TREES_TARGETS])
        to = walk_entry(v, TREES_TARGETS, tir_cast(v->c, DT_I32, v->tree));
    return walk_add_weight(v, to, walk_weight(v, leaf));
}

/* --- rows --- */

/* A few targets of one row are stores, not a loop: to clear them by a call of the C library takes longer. */
static tir_for_kind by_target(const walk *v)
{
    int64_t rows = 0, targets = 0;
    const bool few = tir_is_int(v->out->shape[1], &targets) && targets <= UNROLLED;
    return few && tir_is_int(v->out->shape[0], &rows) && rows == 1 ? FOR_UNROLLED : FOR_SERIAL;
}

static tir_stmt *each_target(const walk *v, tir_expr_ref (*value)(const walk *, tir_expr_ref))
{
    compiler *c = v->c;
    const tir_var *k = tir_new_var(c, "k", TIR_I64);
    const tir_expr_ref place[2] = {v->row, tir_varref(c, k)};
    tir_stmt *set = tir_store(c, v->out, 2, place, value(v, tir_load(c, v->out, 2, place)));
    return tir_for(c, k, te_i64(v->g, 0), v->out->shape[1], by_target(v), set);
}

static tir_expr_ref begun(const walk *v, tir_expr_ref was)
{
    (void)was;
    return nothing_yet(v);
}

tir_expr_ref walk_trees(const walk *v)
{
    if (!v->in[TREES_ROOTS])
        return te_i64(v->g, trees_count(v->n));
    return tir_sub(v->c, v->in[TREES_ROOTS]->shape[0], te_i64(v->g, 1));
}

/* An average is divided here and not by an operator behind this one, which may multiply by the reciprocal. Of the least
 * and the largest, a target that no leaf has is 0. */
tir_expr_ref walk_ended(const walk *v, tir_expr_ref is)
{
    if (graph_attr_int(v->n, "aggregate") == TREES_SUM)
        return is;
    if (adds(v))
        return tir_binary(v->c, TIR_DIV, is, tir_cast(v->c, v->out->dt, walk_trees(v)));
    return tir_select(v->c, tir_call1(v->c, TIR_ISNAN, is), tir_float(v->c, v->out->dt, 0), is);
}

tir_stmt *walk_begin_row(const walk *v)
{
    return v->sum ? set_sum(v, nothing_yet(v)) : each_target(v, begun);
}

tir_stmt *walk_end_row(const walk *v)
{
    const bool sums = graph_attr_int(v->n, "aggregate") == TREES_SUM;
    const tir_expr_ref place[2] = {v->row, te_i64(v->g, 0)};
    if (v->sum)
        return tir_store(v->c, v->out, 2, place, walk_ended(v, get_sum(v)));
    return sums ? NULL : each_target(v, walk_ended);
}

tir_stmt *walk_row(const walk *v, tir_stmt *trees)
{
    tir_stmt *parts[3] = {walk_begin_row(v), trees, walk_end_row(v)}, *all = tir_seq(v->c, 3, parts);
    return v->sum ? tir_allocate(v->c, v->sum, all) : all;
}

static tir_stmt *row_of(const walk *v, const tir_var *tree)
{
    compiler *c = v->c;
    tir_stmt *body[2] = {find_leaf(v), walk_add_leaf(v, loops_get(c, v->leaf))};
    return walk_row(v, tir_for(c, tree, te_i64(v->g, 0), walk_trees(v), FOR_SERIAL, tir_seq(c, 2, body)));
}

tir_stmt *walk_rows(const walk *from, tir_expr_ref first, tir_expr_ref count)
{
    compiler *c = from->c;
    const tir_var *vars[2] = {tir_new_var(c, "row", TIR_I64), tir_new_var(c, "tree", TIR_I64)};
    walk v = *from;
    v.at = loops_number(c, "at", DT_I32);
    v.end = loops_number(c, "end", DT_I32);
    v.leaf = loops_number(c, "leaf", DT_I32);
    v.member = loops_number(c, "member", DT_I32);
    v.sum = graph_attr_int(v.n, "n_targets") == 1 ? loops_number(c, "sum", v.out->dt) : NULL;
    v.row = tir_varref(c, vars[0]);
    v.lane = te_i64(v.g, 0);
    v.tree = tir_varref(c, vars[1]);
    tir_stmt *body = row_of(&v, vars[1]);
    if (v.in[TREES_MEMBERS])
        body = tir_allocate(c, v.member, body);
    body = tir_allocate(c, v.at, tir_allocate(c, v.end, tir_allocate(c, v.leaf, body)));
    return tir_for(c, vars[0], first, count, FOR_SERIAL, body);
}

static tir_stmt *build_trees(te_graph *g, void *ctx, const tir_buffer *const *in, const tir_buffer *const *out)
{
    const loops_ctx *l = ctx;
    const walk v = {.g = g, .c = g->c, .n = l->n, .in = in, .out = out[0]};
    return walk_rows(&v, te_i64(g, 0), out[0]->shape[0]);
}

bool walk_extern(te_graph *g, const graph_node *n, te_tensor *const *in, te_tensor **out, te_build_fn fn)
{
    te_tensor *all[TREES_MOST_OPERANDS] = {NULL};
    for (uint32_t i = 0; i < n->n_inputs; i++)
        all[i] = in[i];
    return loops_extern(g, n, all, TREES_MOST_OPERANDS, fn, &(loops_ctx){0}, out);
}

bool compute_tree_ensemble(te_graph *g, const graph_node *n, te_tensor *const *in, te_tensor **out)
{
    return walk_extern(g, n, in, out, build_trees);
}
