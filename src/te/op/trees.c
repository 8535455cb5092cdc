/* SPDX-License-Identifier: Apache-2.0 */
/* Ensembles of decision trees as a walk over tables (graph/op/trees.h says what they hold). A subtree is a range of
 * nodes: at a node the walk keeps its left part or its right part, until the range is empty; `leaf` counts the leaves
 * that it has passed by. Sums of a row go in the order of the trees, from 0. */
#include "graph/op/trees.h"
#include "te/op/loops.h"

#include <math.h>

typedef struct walk {
    te_graph *g;
    compiler *c;
    const graph_node *n;
    const tir_buffer *const *in; /* by TREES_...; NULL: left out */
    const tir_buffer *out;
    const tir_buffer *at, *end, *leaf; /* i32: the range of nodes that is left, and the number of its first leaf */
    const tir_buffer *member;          /* i32: whether a set has been found to hold the value */
    const tir_buffer *sum;             /* of one target; NULL: sums stand in the result */
    tir_expr_ref row, tree;
} walk;

static tir_expr_ref i32(const walk *v, int64_t k)
{
    return tir_int(v->c, DT_I32, k);
}

static tir_expr_ref index_of(const walk *v, tir_expr_ref i)
{
    return tir_cast(v->c, DT_I64, i);
}

static tir_expr_ref load(const walk *v, uint32_t table, tir_expr_ref i)
{
    const tir_expr_ref at = index_of(v, i);
    return tir_load(v->c, v->in[table], 1, &at);
}

/* An entry of a table of numbers, which may be narrow, as i32. */
static tir_expr_ref entry(const walk *v, uint32_t table, tir_expr_ref i)
{
    return tir_cast(v->c, DT_I32, load(v, table, i));
}

/* --- the walk --- */

/* Modes of nodes, as ai.onnx.ml numbers them; TREES_MEMBER is none of these. */
static const tir_op compares[] = {TIR_LE, TIR_LT, TIR_GE, TIR_GT, TIR_EQ, TIR_NE};

static tir_expr_ref by_mode(const walk *v, tir_expr_ref x, tir_expr_ref threshold, tir_expr_ref mode)
{
    compiler *c = v->c;
    tir_expr_ref holds = tir_int(c, DT_BOOL, 0);
    if (v->in[TREES_MEMBERS])
        holds = tir_binary(c, TIR_NE, loops_get(c, v->member), i32(v, 0));
    for (uint32_t m = 0; m < TREES_MEMBER; m++)
        holds = tir_select(c, tir_binary(c, TIR_EQ, mode, i32(v, m)), tir_binary(c, compares[m], x, threshold), holds);
    return holds;
}

/* Whether the walk goes left. NaN compares as C does, and goes left as well where a node tracks missing values. */
static tir_expr_ref goes_left(const walk *v, tir_expr_ref x, tir_expr_ref feature)
{
    compiler *c = v->c;
    tir_expr_ref at = loops_get(c, v->at), threshold = load(v, TREES_THRESHOLDS, at), holds;
    if (v->in[TREES_MODES])
        holds = by_mode(v, x, threshold, entry(v, TREES_MODES, at));
    else
        holds = tir_binary(c, compares[graph_attr_int(v->n, "mode")], x, threshold);
    if (graph_attr_int(v->n, "tracks") == TREES_TRACK_NONE)
        return holds;
    tir_expr_ref missing = tir_call1(c, TIR_ISNAN, x), odd = tir_binary(c, TIR_BITAND, feature, i32(v, 1));
    if (graph_attr_int(v->n, "tracks") == TREES_TRACK_SOME)
        missing = tir_and(c, missing, tir_binary(c, TIR_NE, odd, i32(v, 0)));
    return tir_binary(c, TIR_OR, holds, missing);
}

/* member = whether x is in the set of a node of that mode: the threshold says where its length and numbers stand. */
static tir_stmt *look_for_member(const walk *v, tir_expr_ref x)
{
    compiler *c = v->c;
    tir_expr_ref at = loops_get(c, v->at), first = tir_cast(c, DT_I32, load(v, TREES_THRESHOLDS, at));
    const tir_var *k = tir_new_var(c, "k", TIR_I64);
    tir_expr_ref count = tir_cast(c, DT_I64, load(v, TREES_MEMBERS, first));
    tir_expr_ref one = load(v, TREES_MEMBERS,
                            tir_add(c, tir_add(c, first, i32(v, 1)), tir_cast(c, DT_I32, tir_varref(c, k))));
    tir_stmt *found = tir_if(c, tir_binary(c, TIR_EQ, x, one), loops_set(c, v->member, i32(v, 1)), NULL);
    tir_stmt *look = tir_for(c, k, te_i64(v->g, 0), count, FOR_SERIAL, found);
    tir_expr_ref is_set = tir_binary(c, TIR_EQ, entry(v, TREES_MODES, at), i32(v, TREES_MEMBER));
    tir_stmt *both[2] = {loops_set(c, v->member, i32(v, 0)), tir_if(c, is_set, look, NULL)};
    return tir_seq(c, 2, both);
}

/* One step down: the left part of the range begins behind the node, the right part behind that. */
static tir_stmt *step(const walk *v)
{
    compiler *c = v->c;
    const tir_var *middle = tir_new_var(c, "middle", (tir_type){DT_I32, 1});
    const tir_var *feature = tir_new_var(c, "feature", (tir_type){DT_I32, 1});
    const tir_var *value = tir_new_var(c, "value", (tir_type){v->in[TREES_X]->dt, 1});
    tir_expr_ref at = loops_get(c, v->at), next = tir_add(c, at, i32(v, 1)), m = tir_varref(c, middle);
    tir_expr_ref f = tir_varref(c, feature);
    const bool some = graph_attr_int(v->n, "tracks") == TREES_TRACK_SOME;
    tir_expr_ref column = index_of(v, some ? tir_binary(c, TIR_SHR, f, i32(v, 1)) : f);
    const tir_expr_ref place[2] = {v->row, column};
    tir_stmt *left[2] = {loops_set(c, v->end, m), loops_set(c, v->at, next)};
    tir_stmt *right[2] = {loops_set(c, v->leaf, tir_add(c, loops_get(c, v->leaf), tir_sub(c, m, at))),
                          loops_set(c, v->at, m)};
    tir_stmt *go = tir_if(c, goes_left(v, tir_varref(c, value), f), tir_seq(c, 2, left), tir_seq(c, 2, right));
    if (v->in[TREES_MEMBERS]) {
        tir_stmt *both[2] = {look_for_member(v, tir_varref(c, value)), go};
        go = tir_seq(c, 2, both);
    }
    go = tir_let(c, middle, tir_add(c, next, entry(v, TREES_LEFT, at)), go);
    go = tir_let(c, value, tir_load(c, v->in[TREES_X], 2, place), go);
    return tir_let(c, feature, entry(v, TREES_FEATURES, at), go);
}

static tir_stmt *find_leaf(const walk *v)
{
    compiler *c = v->c;
    tir_expr_ref tree = tir_cast(c, DT_I32, v->tree), at = loops_get(c, v->at), end = loops_get(c, v->end);
    const tir_var *depth = tir_new_var(c, "depth", TIR_I64);
    tir_stmt *down = tir_if(c, tir_binary(c, TIR_LT, at, end), step(v), NULL);
    tir_stmt *parts[4] = {
        loops_set(c, v->at, entry(v, TREES_ROOTS, tree)),
        loops_set(c, v->end, entry(v, TREES_ROOTS, tir_add(c, tree, i32(v, 1)))),
        loops_set(c, v->leaf, tir_add(c, at, tree)), /* a tree has one leaf more than nodes */
        tir_for(c, depth, te_i64(v->g, 0), te_i64(v->g, graph_attr_int(v->n, "depth")), FOR_SERIAL, down)};
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

static tir_stmt *add_weight(const walk *v, tir_expr_ref to, tir_expr_ref number)
{
    compiler *c = v->c;
    if (v->in[TREES_WEIGHT_IDS])
        number = entry(v, TREES_WEIGHT_IDS, number);
    tir_expr_ref w = load(v, TREES_WEIGHTS, number);
    const tir_expr_ref place[2] = {v->row, index_of(v, to)};
    if (v->sum)
        return loops_set(c, v->sum, combined(v, loops_get(c, v->sum), w));
    return tir_store(c, v->out, 2, place, combined(v, tir_load(c, v->out, 2, place), w));
}

static tir_stmt *add_leaf(const walk *v)
{
    compiler *c = v->c;
    tir_expr_ref leaf = loops_get(c, v->leaf), tree = tir_cast(c, DT_I32, v->tree), zero = i32(v, 0);
    if (v->in[TREES_LEAVES])
        leaf = entry(v, TREES_LEAVES, leaf);
    if (!v->in[TREES_LISTS])
        return add_weight(v, v->in[TREES_TARGETS] ? entry(v, TREES_TARGETS, tree) : zero, leaf);
    const tir_var *k = tir_new_var(c, "k", TIR_I64), *id = tir_new_var(c, "id", (tir_type){DT_I32, 1});
    tir_expr_ref first = entry(v, TREES_LISTS, tir_varref(c, id));
    tir_expr_ref last = entry(v, TREES_LISTS, tir_add(c, tir_varref(c, id), i32(v, 1)));
    tir_expr_ref number = tir_cast(c, DT_I32, tir_varref(c, k));
    tir_stmt *all = tir_for(c, k, index_of(v, first), index_of(v, tir_sub(c, last, first)), FOR_SERIAL,
                            add_weight(v, entry(v, TREES_TARGETS, number), number));
    return tir_let(c, id, leaf, all);
}

/* --- rows --- */

static tir_stmt *each_target(const walk *v, tir_expr_ref (*value)(const walk *, tir_expr_ref))
{
    compiler *c = v->c;
    const tir_var *k = tir_new_var(c, "k", TIR_I64);
    const tir_expr_ref place[2] = {v->row, tir_varref(c, k)};
    tir_stmt *set = tir_store(c, v->out, 2, place, value(v, tir_load(c, v->out, 2, place)));
    return tir_for(c, k, te_i64(v->g, 0), v->out->shape[1], FOR_SERIAL, set);
}

static tir_expr_ref begun(const walk *v, tir_expr_ref was)
{
    (void)was;
    return nothing_yet(v);
}

static tir_expr_ref tree_count(const walk *v)
{
    return tir_sub(v->c, v->in[TREES_ROOTS]->shape[0], te_i64(v->g, 1));
}

/* An average is divided here and not by an operator behind this one, which may multiply by the reciprocal. Of the least
 * and the largest, a target that no leaf has is 0. */
static tir_expr_ref ended(const walk *v, tir_expr_ref is)
{
    if (adds(v))
        return tir_binary(v->c, TIR_DIV, is, tir_cast(v->c, v->out->dt, tree_count(v)));
    return tir_select(v->c, tir_call1(v->c, TIR_ISNAN, is), tir_float(v->c, v->out->dt, 0), is);
}

static tir_stmt *row_of(const walk *v, const tir_var *tree)
{
    compiler *c = v->c;
    const bool sums = graph_attr_int(v->n, "aggregate") == TREES_SUM;
    const tir_expr_ref place[2] = {v->row, te_i64(v->g, 0)};
    tir_stmt *body[2] = {find_leaf(v), add_leaf(v)};
    tir_stmt *all = tir_for(c, tree, te_i64(v->g, 0), tree_count(v), FOR_SERIAL, tir_seq(c, 2, body));
    tir_stmt *parts[3] = {each_target(v, begun), all, sums ? NULL : each_target(v, ended)};
    if (!v->sum)
        return tir_seq(c, 3, parts);
    tir_expr_ref got = loops_get(c, v->sum);
    parts[0] = loops_set(c, v->sum, nothing_yet(v));
    parts[2] = tir_store(c, v->out, 2, place, sums ? got : ended(v, got));
    return tir_allocate(c, v->sum, tir_seq(c, 3, parts));
}

static tir_stmt *build_trees(te_graph *g, void *ctx, const tir_buffer *const *in, const tir_buffer *const *out)
{
    const loops_ctx *l = ctx;
    compiler *c = g->c;
    const tir_var *vars[2] = {tir_new_var(c, "row", TIR_I64), tir_new_var(c, "tree", TIR_I64)};
    walk v = {.g = g,
              .c = c,
              .n = l->n,
              .in = in,
              .out = out[0],
              .at = loops_number(c, "at", DT_I32),
              .end = loops_number(c, "end", DT_I32),
              .leaf = loops_number(c, "leaf", DT_I32),
              .member = loops_number(c, "member", DT_I32),
              .sum = graph_attr_int(l->n, "n_targets") == 1 ? loops_number(c, "sum", out[0]->dt) : NULL,
              .row = tir_varref(c, vars[0]),
              .tree = tir_varref(c, vars[1])};
    tir_stmt *body = row_of(&v, vars[1]);
    if (in[TREES_MEMBERS])
        body = tir_allocate(c, v.member, body);
    body = tir_allocate(c, v.at, tir_allocate(c, v.end, tir_allocate(c, v.leaf, body)));
    return tir_for(c, vars[0], te_i64(g, 0), out[0]->shape[0], FOR_SERIAL, body);
}

bool compute_tree_ensemble(te_graph *g, const graph_node *n, te_tensor *const *in, te_tensor **out)
{
    te_tensor *all[TREES_OPERANDS] = {NULL};
    for (uint32_t i = 0; i < n->n_inputs; i++)
        all[i] = in[i];
    return loops_extern(g, n, all, TREES_OPERANDS, build_trees, &(loops_ctx){0}, out);
}
