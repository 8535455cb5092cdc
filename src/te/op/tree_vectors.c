/* SPDX-License-Identifier: Apache-2.0 */
/* Ensembles of trees for many rows, with a row in each lane of a vector (graph/op/trees.h): all nodes of a tree are
 * asked, and the answers say which leaf a row is in. No lane reads from a place that its row decides, so there is
 * nothing to gather, and lanes never part. Of complete trees of few levels, each answer selects one of two results.
 * Otherwise the nodes are asked in preorder: `place` is the first leaf of the subtree that a row is in, a node is
 * meant if that is its own first leaf too, and if its answer is no, `place` becomes the first leaf to its right. */
#include "te/op/trees.h"

#include <math.h>

typedef struct lanes {
    walk v;
    int64_t lanes, rows;
    tir_expr_ref first;        /* row of the block */
    const tir_buffer *columns; /* features of the block, so that those of a column are one behind another */
    const tir_buffer *sums;    /* of each target, so that those of a target are one behind another; NULL: of lists */
    const tir_buffer *place;   /* where a row is in the tree: a number as a float, as comparing floats selects floats */
    const tir_buffer *leaves;  /* the leaf that it has come to, or the list that this adds, in the same way */
    const tir_var **features, **thresholds, **values; /* of a node: its own, and what the row has in that column */
    const tir_var **results;   /* by leaf: what it adds, a weight or a list */
    const tir_var *leaf, *right; /* of a node: its first leaf, and the first one of its right subtree */
    const tir_var *to;           /* target */
    tir_expr_ref at;             /* of the row, in the block */
} lanes;

/* do_row for all rows of the block, in vectors. */
static tir_stmt *each_vector(const lanes *from, tir_stmt *(*do_row)(const lanes *))
{
    lanes p = *from;
    compiler *c = p.v.c;
    const tir_var *vector = tir_new_var(c, "vector", TIR_I64), *lane = tir_new_var(c, "lane", TIR_I64);
    p.at = tir_add(c, tir_mul(c, tir_varref(c, vector), te_i64(p.v.g, p.lanes)), tir_varref(c, lane));
    tir_stmt *inner = tir_for(c, lane, te_i64(p.v.g, 0), te_i64(p.v.g, p.lanes), FOR_VECTORIZED, do_row(&p));
    return tir_for(c, vector, te_i64(p.v.g, 0), te_i64(p.v.g, p.rows / p.lanes), FOR_UNROLLED, inner);
}

/* do_row for one row of the block after another; NULL where it does nothing. */
static tir_stmt *each_row(const lanes *from, tir_stmt *(*do_row)(const lanes *))
{
    lanes p = *from;
    compiler *c = p.v.c;
    const tir_var *row = tir_new_var(c, "row", TIR_I64);
    p.at = tir_varref(c, row);
    p.v.row = tir_add(c, p.first, p.at);
    tir_stmt *body = do_row(&p);
    return body ? tir_for(c, row, te_i64(p.v.g, 0), te_i64(p.v.g, p.rows), FOR_SERIAL, body) : NULL;
}

/* --- a node --- */

/* left where the row goes left, else right. NaN goes right or, where all nodes track missing values, left: there the
 * opposite is asked, which does not hold for NaN either. */
static tir_expr_ref answer(const lanes *p, int64_t node, tir_expr_ref left, tir_expr_ref right)
{
    static const int64_t opposite[] = {
        [TREES_LEQ] = TREES_GT, [TREES_LT] = TREES_GTE, [TREES_GTE] = TREES_LT, [TREES_GT] = TREES_LEQ};
    compiler *c = p->v.c;
    const int64_t mode = graph_attr_int(p->v.n, "mode");
    tir_expr_ref x = tir_varref(c, p->values[node]), t = tir_varref(c, p->thresholds[node]);
    if (graph_attr_int(p->v.n, "tracks") == TREES_TRACK_ALL)
        return tir_select(c, walk_compare(&p->v, x, t, opposite[mode]), right, left);
    return tir_select(c, walk_compare(&p->v, x, t, mode), left, right);
}

static tir_expr_ref value_of(const lanes *p, int64_t node)
{
    const tir_expr_ref here[2] = {tir_cast(p->v.c, DT_I64, tir_varref(p->v.c, p->features[node])), p->at};
    return tir_load(p->v.c, p->columns, 2, here);
}

static tir_stmt *let_node(const lanes *p, int64_t node, tir_expr_ref at, tir_stmt *body)
{
    body = tir_let(p->v.c, p->thresholds[node], walk_load(&p->v, TREES_THRESHOLDS, at), body);
    return tir_let(p->v.c, p->features[node], walk_entry(&p->v, TREES_FEATURES, at), body);
}

/* --- sums --- */

static tir_expr_ref sum_of(const lanes *p, tir_expr_ref *at)
{
    at[0] = p->sums->shape[0]->kind == TIR_INT && tir_is_const(p->sums->shape[0], 1) ? te_i64(p->v.g, 0)
                                                                                       : tir_varref(p->v.c, p->to);
    at[1] = p->at;
    return tir_load(p->v.c, p->sums, 2, at);
}

static tir_stmt *add(const lanes *p, tir_expr_ref w)
{
    tir_expr_ref at[2], sum = sum_of(p, at);
    return tir_store(p->v.c, p->sums, 2, at, tir_add(p->v.c, sum, w));
}

static tir_stmt *begin_sums(const lanes *p)
{
    tir_expr_ref at[2];
    (void)sum_of(p, at);
    return tir_store(p->v.c, p->sums, 2, at, tir_float(p->v.c, p->v.out->dt, 0));
}

static tir_stmt *end_sums(const lanes *p)
{
    tir_expr_ref at[2], sum = sum_of(p, at);
    const tir_expr_ref to[2] = {p->v.row, at[0]};
    return tir_store(p->v.c, p->v.out, 2, to, walk_ended(&p->v, sum));
}

/* do_row for all rows of the block, for each target. */
static tir_stmt *each_sum(const lanes *from, tir_stmt *(*each)(const lanes *, tir_stmt *(*)(const lanes *)),
                          tir_stmt *(*do_row)(const lanes *))
{
    lanes p = *from;
    p.to = tir_new_var(p.v.c, "to", TIR_I64);
    return tir_for(p.v.c, p.to, te_i64(p.v.g, 0), p.sums->shape[0], FOR_SERIAL, each(&p, do_row));
}

static tir_stmt *begin_lists(const lanes *p)
{
    return walk_begin_row(&p->v);
}

static tir_stmt *end_lists(const lanes *p)
{
    return walk_end_row(&p->v);
}

/* A number as a float whose low bits it is, and back. */
static tir_expr_ref as_float(const lanes *p, tir_expr_ref number)
{
    compiler *c = p->v.c;
    const bool wide = p->v.out->dt == DT_F64;
    const dtype bits = wide ? DT_U64 : DT_U32;
    tir_expr_ref base = wide ? tir_int(c, bits, (int64_t)1075 << 52) : tir_int(c, bits, (int64_t)150 << 23);
    return tir_call1(c, TIR_FROM_BITS, tir_binary(c, TIR_BITOR, tir_cast(c, bits, number), base));
}

static tir_expr_ref leaf_of(const lanes *p)
{
    compiler *c = p->v.c;
    tir_expr_ref bits = tir_call1(c, TIR_TO_BITS, tir_load(c, p->leaves, 1, &p->at));
    tir_expr_ref low = tir_int(c, bits->type.dt, (int64_t)TREES_BASE - 1);
    return tir_cast(c, DT_I32, tir_binary(c, TIR_BITAND, bits, low));
}

/* --- complete trees --- */

static tir_expr_ref selected(const lanes *p, int64_t level, int64_t i)
{
    if (level == graph_attr_int(p->v.n, "depth"))
        return tir_varref(p->v.c, p->results[i]);
    tir_expr_ref left = selected(p, level + 1, 2 * i), right = selected(p, level + 1, 2 * i + 1);
    return answer(p, ((int64_t)1 << level) - 1 + i, left, right);
}

static tir_stmt *select_result(const lanes *p)
{
    const int64_t nodes = ((int64_t)1 << graph_attr_int(p->v.n, "depth")) - 1;
    tir_expr_ref result = selected(p, 0, 0);
    tir_stmt *s = p->sums ? add(p, result) : tir_store(p->v.c, p->leaves, 1, &p->at, result);
    for (int64_t i = nodes; i-- > 0;)
        s = tir_let(p->v.c, p->values[i], value_of(p, i), s);
    return s;
}

static tir_stmt *add_list(const lanes *p)
{
    return walk_add_list(&p->v, leaf_of(p));
}

static tir_expr_ref result_of(const lanes *p, tir_expr_ref leaf)
{
    if (p->sums)
        return walk_weight(&p->v, leaf);
    return as_float(p, p->v.in[TREES_LEAVES] ? walk_entry(&p->v, TREES_LEAVES, leaf) : leaf);
}

/* The tables of a tree are read once for all rows. */
static tir_stmt *select_of_tree(lanes *p)
{
    compiler *c = p->v.c;
    const walk *v = &p->v;
    const int64_t depth = graph_attr_int(v->n, "depth"), count = trees_count(v->n), leaves = (int64_t)1 << depth;
    tir_expr_ref tree = tir_cast(c, DT_I32, v->tree);
    tir_stmt *both[2] = {each_vector(p, select_result), p->sums ? NULL : each_row(p, add_list)};
    tir_stmt *s = tir_seq(c, 2, both);
    for (int64_t i = leaves; i-- > 0;)
        s = tir_let(c, p->results[i],
                    result_of(p, tir_add(c, tir_mul(c, tree, walk_i32(v, leaves)), walk_i32(v, i))), s);
    for (int64_t level = depth; level-- > 0;)
        for (int64_t width = (int64_t)1 << level, i = width; i-- > 0;)
            s = let_node(p, width - 1 + i, tir_add(c, tir_mul(c, tree, walk_i32(v, width)),
                                                   walk_i32(v, count * (width - 1) + i)), s);
    return s;
}

/* --- nodes in preorder --- */

static tir_expr_ref place_of(const lanes *p)
{
    return tir_load(p->v.c, p->place, 1, &p->at);
}

static tir_stmt *begin_tree(const lanes *p)
{
    return tir_store(p->v.c, p->place, 1, &p->at, as_float(p, walk_i32(&p->v, 0)));
}

static tir_stmt *ask(const lanes *p)
{
    compiler *c = p->v.c;
    const tir_var *was = tir_new_var(c, "was", (tir_type){p->v.out->dt, 1});
    tir_expr_ref is_here = tir_binary(c, TIR_EQ, tir_varref(c, was), tir_varref(c, p->leaf));
    tir_expr_ref moved = tir_select(c, is_here, tir_varref(c, p->right), tir_varref(c, was));
    tir_stmt *s = tir_store(c, p->place, 1, &p->at, answer(p, 0, tir_varref(c, was), moved));
    return tir_let(c, p->values[0], value_of(p, 0), tir_let(c, was, place_of(p), s));
}

static tir_stmt *end_tree(const lanes *p)
{
    return tir_store(p->v.c, p->leaves, 1, &p->at, place_of(p));
}

static tir_stmt *add_leaf(const lanes *p)
{
    const walk *v = &p->v;
    tir_expr_ref tree = tir_cast(v->c, DT_I32, v->tree), root = walk_entry(v, TREES_ROOTS, tree);
    tir_expr_ref leaf = tir_add(v->c, tir_add(v->c, root, tree), leaf_of(p));
    return p->sums ? add(p, walk_weight(v, leaf)) : walk_add_leaf(v, leaf);
}

static tir_stmt *sweep_of_tree(lanes *p)
{
    compiler *c = p->v.c;
    const walk *v = &p->v;
    const tir_var *node = tir_new_var(c, "node", TIR_I64);
    tir_expr_ref tree = tir_cast(c, DT_I32, v->tree), i = tir_varref(c, node);
    tir_expr_ref begin = tir_cast(c, DT_I64, walk_load(v, TREES_ROOTS, tree));
    tir_expr_ref end = tir_cast(c, DT_I64, walk_load(v, TREES_ROOTS, tir_add(c, tree, walk_i32(v, 1))));
    tir_stmt *one = let_node(p, 0, i, each_vector(p, ask));
    one = tir_let(c, p->right, walk_load(v, TREES_RIGHTS, i), one);
    one = tir_let(c, p->leaf, walk_load(v, TREES_FIRSTS, i), one);
    tir_stmt *all = tir_for(c, node, begin, tir_sub(c, end, begin), FOR_SERIAL, one);
    tir_stmt *parts[4] = {each_vector(p, begin_tree), all, each_vector(p, end_tree), each_row(p, add_leaf)};
    return tir_allocate(c, p->place, tir_seq(c, 4, parts));
}

/* --- a block of rows --- */

static int64_t width_of(const graph_node *n)
{
    int64_t width = 0;
    (void)dim_is_const(n->inputs[TREES_X]->type.shape.dims[1], &width);
    return width;
}

/* A column stands twice where some nodes track missing values: for these NaN is what goes left everywhere. */
static tir_stmt *fill_columns(const lanes *p)
{
    compiler *c = p->v.c;
    const tir_var *column = tir_new_var(c, "column", TIR_I64);
    const bool some = graph_attr_int(p->v.n, "tracks") == TREES_TRACK_SOME;
    const bool less = graph_attr_int(p->v.n, "mode") == TREES_LEQ || graph_attr_int(p->v.n, "mode") == TREES_LT;
    const tir_expr_ref from[2] = {p->v.row, tir_varref(c, column)};
    tir_expr_ref x = tir_load(c, p->v.in[TREES_X], 2, from);
    tir_expr_ref even = some ? tir_mul(c, from[1], te_i64(p->v.g, 2)) : from[1];
    const tir_expr_ref to[2] = {even, p->at}, behind[2] = {tir_add(c, even, te_i64(p->v.g, 1)), p->at};
    tir_expr_ref goes_left = tir_float(c, p->v.out->dt, less ? -(double)INFINITY : (double)INFINITY);
    tir_stmt *both[2] = {tir_store(c, p->columns, 2, to, x), NULL};
    if (some)
        both[1] = tir_store(c, p->columns, 2, behind, tir_select(c, tir_call1(c, TIR_ISNAN, x), goes_left, x));
    return tir_for(c, column, te_i64(p->v.g, 0), te_i64(p->v.g, width_of(p->v.n)), FOR_SERIAL, tir_seq(c, 2, both));
}

static void name_nodes(lanes *p, int64_t nodes)
{
    compiler *c = p->v.c;
    const tir_type number = {DT_I32, 1}, value = {p->v.out->dt, 1};
    const tir_var **all = arena_array(&c->mem, const tir_var *, (size_t)nodes * 4u);
    p->features = all;
    p->thresholds = all + nodes;
    p->values = all + 2 * nodes;
    p->results = all + 3 * nodes;
    for (int64_t i = 0; i < nodes; i++) {
        p->features[i] = tir_new_var(c, "feature", number);
        p->thresholds[i] = tir_new_var(c, "threshold", value);
        p->values[i] = tir_new_var(c, "value", value);
        p->results[i] = tir_new_var(c, "result", value);
    }
    p->leaf = tir_new_var(c, "leaf", value);
    p->right = tir_new_var(c, "right", value);
    p->to = tir_new_var(c, "to", TIR_I64);
}

tir_stmt *walk_vectors(const walk *from, int64_t rows, tir_expr_ref first)
{
    compiler *c = from->c;
    const dtype dt = from->out->dt;
    const tir_var *tree = tir_new_var(c, "tree", TIR_I64);
    const bool sweeps = from->in[TREES_ROOTS] != NULL, lists = trees_have_lists(from->n);
    const int64_t twice = graph_attr_int(from->n, "tracks") == TREES_TRACK_SOME ? 2 : 1;
    const int64_t table[2] = {twice * width_of(from->n), rows}, all[2] = {graph_attr_int(from->n, "n_targets"), rows};
    lanes p = {.v = *from, .lanes = graph_attr_int(from->n, "lanes"), .rows = rows, .first = first};
    p.v.tree = tir_varref(c, tree);
    p.v.sum = NULL;
    name_nodes(&p, sweeps ? 1 : (int64_t)1 << graph_attr_int(from->n, "depth"));
    p.columns = tir_buffer_static(c, "columns", dt, 2, table, SCOPE_LOCAL);
    p.place = tir_buffer_static(c, "place", dt, 1, &rows, SCOPE_LOCAL);
    p.leaves = tir_buffer_static(c, "leaves", dt, 1, &rows, SCOPE_LOCAL);
    p.sums = lists ? NULL : tir_buffer_static(c, "sums", dt, 2, all, SCOPE_LOCAL);
    tir_stmt *one = sweeps ? sweep_of_tree(&p) : select_of_tree(&p);
    if (!lists) {
        tir_expr_ref to = from->in[TREES_TARGETS] ? walk_load(&p.v, TREES_TARGETS, p.v.tree) : te_i64(from->g, 0);
        one = tir_let(c, p.to, tir_cast(c, DT_I64, to), one);
    }
    tir_stmt *parts[4] = {each_row(&p, fill_columns), NULL, NULL, NULL};
    parts[1] = lists ? each_row(&p, begin_lists) : each_sum(&p, each_vector, begin_sums);
    parts[2] = tir_for(c, tree, te_i64(from->g, 0), walk_trees(&p.v), FOR_SERIAL, one);
    parts[3] = lists ? each_row(&p, end_lists) : each_sum(&p, each_row, end_sums);
    tir_stmt *body = tir_allocate(c, p.columns, tir_seq(c, 4, parts));
    body = sweeps || lists ? tir_allocate(c, p.leaves, body) : body;
    return lists ? body : tir_allocate(c, p.sums, body);
}

/* Whole blocks of rows, all nodes of which are asked, and what is left row by row. */
static tir_stmt *build_sweep(te_graph *g, void *ctx, const tir_buffer *const *in, const tir_buffer *const *out)
{
    const loops_ctx *l = ctx;
    compiler *c = g->c;
    const int64_t side_by_side = graph_attr_int(l->n, "rows");
    const walk v = {.g = g, .c = c, .n = l->n, .in = in, .out = out[0]};
    const tir_var *block = tir_new_var(c, "block", TIR_I64);
    tir_expr_ref rows = out[0]->shape[0], size = te_i64(g, side_by_side), blocks = tir_floordiv(c, rows, size);
    tir_expr_ref done = tir_mul(c, blocks, size);
    tir_stmt *both[2] = {
        tir_for(c, block, te_i64(g, 0), blocks, FOR_SERIAL,
                walk_vectors(&v, side_by_side, tir_mul(c, tir_varref(c, block), size))),
        NULL};
    both[1] = walk_rows(&v, done, tir_sub(c, rows, done));
    return tir_seq(c, 2, both);
}

bool compute_tree_sweep(te_graph *g, const graph_node *n, te_tensor *const *in, te_tensor **out)
{
    return walk_extern(g, n, in, out, build_sweep);
}
