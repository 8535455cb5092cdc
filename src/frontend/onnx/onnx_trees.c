/* SPDX-License-Identifier: Apache-2.0 */
/* From a forest's nodes to the tables of tree_ensemble (graph/op/trees.h). They are as small as they can be: numbers as
 * narrow as they fit, equal leaves and weights once, weights of 0 left out (a sum is no other without them). */
#include "frontend/onnx/onnx_trees.h"
#include "graph/op/trees.h"

#include <string.h>

#define MOST_NODES (1u << 22)
#define MOST_DEPTH 4096u

typedef VEC(int64_t) numbers;
typedef VEC(double) reals;

typedef struct tables {
    onnx_node *n;
    arena *a;
    const forest *f;
    int64_t aggregate;
    bool ones;
    numbers roots, left, features, modes, leaves, lists, targets, weight_ids, tracks;
    reals thresholds, weights;
    onnx_map leaf_ids;   /* of weights that stand in an earlier leaf */
    onnx_map weight_map; /* of weights that are there already */
    uint32_t depth;
} tables;

/* --- nodes in preorder --- */

/* What is still to be laid out: a node, or, behind a left subtree, how many nodes it has. */
typedef struct task {
    uint32_t node, depth;
    bool closes; /* node: of the tables, whose left subtree is complete */
} task;
typedef VEC(task) tasks;

static void put_leaf(tables *t, const tree_node *leaf);

/* Two children that are one leaf are that leaf: files of version 5 write trees without branches so. */
static bool is_one_leaf(const tables *t, const tree_node *b)
{
    return b->yes == b->no && t->f->nodes[b->yes].leaf;
}

static bool put_branch(tables *t, const tree_node *b, uint32_t depth, tasks *todo)
{
    const uint32_t at = t->left.len;
    if (at == MOST_NODES)
        return onnx_fail(t->n, DIAG_UNSUPPORTED, "the trees have more than %u nodes", MOST_NODES);
    if (depth == MOST_DEPTH)
        return onnx_fail(t->n, DIAG_FORMAT, "a tree is deeper than %u, or a node is its own descendant", MOST_DEPTH);
    vec_push(t->a, &t->left, 0);
    vec_push(t->a, &t->features, b->feature);
    vec_push(t->a, &t->thresholds, b->threshold);
    vec_push(t->a, &t->modes, b->mode);
    vec_push(t->a, &t->tracks, b->tracks);
    vec_push(t->a, todo, ((task){b->no, depth + 1, false}));
    vec_push(t->a, todo, ((task){at, 0, true}));
    vec_push(t->a, todo, ((task){b->yes, depth + 1, false}));
    t->depth = depth + 1 > t->depth ? depth + 1 : t->depth;
    return true;
}

static bool put_tree(tables *t, uint32_t tree)
{
    tasks todo = {0};
    vec_push(t->a, &t->roots, t->left.len);
    vec_push(t->a, &todo, ((task){t->f->roots[tree], 0, false}));
    while (todo.len) {
        const task now = todo.data[--todo.len];
        if (now.closes) {
            t->left.data[now.node] = (int64_t)t->left.len - now.node - 1;
            continue;
        }
        const tree_node *b = &t->f->nodes[now.node];
        if (!b->leaf && is_one_leaf(t, b))
            b = &t->f->nodes[b->yes];
        if (b->leaf)
            put_leaf(t, b);
        else if (!put_branch(t, b, now.depth, &todo))
            return false;
    }
    return true;
}

/* --- leaves --- */

static bool adds(const tables *t)
{
    return t->aggregate == TREES_SUM || t->aggregate == TREES_AVERAGE;
}

static double value_of(const tables *t, const tree_weight *w)
{
    return t->ones ? 1 : t->f->dt == DT_F32 ? (double)(float)w->value : w->value;
}

/* The weights of a leaf that count; zeros do where the least or the largest does. */
static uint32_t leaf_weights(const tables *t, const tree_node *leaf, tree_weight *out)
{
    const tree_weight *all = t->f->weights + leaf->first;
    const uint32_t count = t->f->first_only && leaf->count > 1 ? 1 : leaf->count;
    uint32_t n = 0;
    for (uint32_t i = 0; i < count; i++)
        if (value_of(t, &all[i]) != 0 || !adds(t))
            out[n++] = (tree_weight){all[i].target, value_of(t, &all[i])};
    return n;
}

static const char *key_of(const tables *t, const void *bytes, size_t len)
{
    return intern_n(t->n->c->names, bytes, len);
}

/* A number for the weight, the same for equal ones. */
static int64_t weight_id(tables *t, double v)
{
    const char *key = key_of(t, &v, sizeof v);
    const int64_t *there = onnx_map_get(&t->weight_map, key);
    if (there)
        return *there;
    int64_t *id = arena_new(t->a, int64_t);
    *id = t->weights.len;
    onnx_map_set(t->a, &t->weight_map, key, id);
    vec_push(t->a, &t->weights, v);
    return *id;
}

/* lists: each leaf that differs from those before becomes a list of targets and weights. Else a leaf has one weight. */
static void put_leaf(tables *t, const tree_node *leaf)
{
    tree_weight *w = arena_array(t->a, tree_weight, leaf->count + 1u);
    const uint32_t n = leaf_weights(t, leaf, w);
    if (!t->lists.len) {
        vec_push(t->a, &t->weight_ids, weight_id(t, n ? w[0].value : 0));
        return;
    }
    const char *key = key_of(t, n ? (const void *)w : "", n * sizeof *w);
    const int64_t *there = onnx_map_get(&t->leaf_ids, key);
    if (!there) {
        int64_t *id = arena_new(t->a, int64_t);
        *id = (int64_t)t->lists.len - 1;
        there = id;
        onnx_map_set(t->a, &t->leaf_ids, key, id);
        for (uint32_t i = 0; i < n; i++) {
            vec_push(t->a, &t->targets, w[i].target);
            vec_push(t->a, &t->weight_ids, weight_id(t, w[i].value));
        }
        vec_push(t->a, &t->lists, t->targets.len);
    }
    vec_push(t->a, &t->leaves, *there);
}

/* The one target that the leaves of a tree have; -1: there are several, or one leaf has more than one weight. A leaf
 * without a weight counts for any, where sums are asked for. */
static int64_t target_of_tree(tables *t, uint32_t tree)
{
    VEC(uint32_t) todo = {0};
    int64_t target = -2;
    uint32_t seen = 0;
    vec_push(t->a, &todo, t->f->roots[tree]);
    while (todo.len && seen++ < MOST_NODES) {
        const tree_node *b = &t->f->nodes[todo.data[--todo.len]];
        if (!b->leaf) {
            vec_push(t->a, &todo, b->no);
            vec_push(t->a, &todo, b->yes);
            continue;
        }
        tree_weight *w = arena_array(t->a, tree_weight, b->count + 1u);
        const uint32_t n = leaf_weights(t, b, w);
        if (n > 1 || (n == 0 && !adds(t)) || (n == 1 && target >= 0 && w[0].target != target))
            return -1;
        target = n == 1 ? w[0].target : target;
    }
    return target == -2 ? 0 : target;
}

/* One target a tree, as boosters have it, needs no lists. */
static void choose_leaves(tables *t)
{
    bool alone = true, several = false;
    for (uint32_t i = 0; i < t->f->n_trees && alone; i++) {
        const int64_t target = target_of_tree(t, i);
        alone = target >= 0;
        several |= target > 0;
        vec_push(t->a, &t->targets, target);
    }
    if (!alone || !several)
        t->targets.len = 0;
    if (!alone)
        vec_push(t->a, &t->lists, 0);
}

/* --- constants --- */

/* As narrow as the numbers allow; NULL: there are none. */
static graph_value *narrow(tables *t, const numbers *v)
{
    int64_t most = 0;
    for (uint32_t i = 0; i < v->len; i++)
        most = v->data[i] > most ? v->data[i] : most;
    const dtype dt = most <= UINT8_MAX ? DT_U8 : most <= UINT16_MAX ? DT_U16 : DT_I32;
    const size_t size = dt == DT_U8 ? 1 : dt == DT_U16 ? 2 : 4;
    uint8_t *bytes = arena_array(t->a, uint8_t, (size_t)v->len * size + 1u);
    for (uint32_t i = 0; i < v->len; i++)
        dtype_store_i64(dt, bytes + i * size, v->data[i]);
    return onnx_constant(t->n, tensor_dense(t->n->c, dt, 1, (int64_t[]){v->len}, bytes));
}

static graph_value *narrow_or_none(tables *t, const numbers *v)
{
    return v->len ? narrow(t, v) : NULL;
}

static graph_value *exact(tables *t, const reals *v)
{
    return ml_vector(t->n, t->f->dt, v->len, v->data);
}

/* Weights by number where that is smaller than each in its place. */
static void unshare_weights(tables *t)
{
    const size_t size = t->f->dt == DT_F64 ? 8 : 4, wide = t->weights.len <= 256 ? 1 : t->weights.len <= 65536 ? 2 : 4;
    reals all = {0};
    if (t->weight_ids.len * wide + t->weights.len * size < t->weight_ids.len * size)
        return;
    for (uint32_t i = 0; i < t->weight_ids.len; i++)
        vec_push(t->a, &all, t->weights.data[t->weight_ids.data[i]]);
    t->weights.len = 0;
    for (uint32_t i = 0; i < all.len; i++)
        vec_push(t->a, &t->weights, all.data[i]);
    t->weight_ids.len = 0;
}

/* Whether all entries are the first one. */
static bool uniform(const numbers *v)
{
    for (uint32_t i = 1; i < v->len; i++)
        if (v->data[i] != v->data[0])
            return false;
    return true;
}

static graph_value *emit(tables *t, graph_value *x)
{
    compiler *c = t->n->c;
    const bool one_mode = uniform(&t->modes) && (t->modes.len == 0 || t->modes.data[0] != TREES_MEMBER);
    const int64_t mode = one_mode && t->modes.len ? t->modes.data[0] : TREES_LEQ;
    int64_t tracks = t->tracks.len ? t->tracks.data[0] : 0;
    if (!uniform(&t->tracks)) {
        tracks = TREES_TRACK_SOME;
        for (uint32_t i = 0; i < t->features.len; i++)
            t->features.data[i] = 2 * t->features.data[i] + t->tracks.data[i];
    }
    unshare_weights(t);
    reals members = {0};
    for (uint32_t i = 0; i < t->f->n_members; i++)
        vec_push(t->a, &members, t->f->members[i]);
    graph_value *in[TREES_OPERANDS] = {[TREES_X] = x,
                                       [TREES_ROOTS] = narrow(t, &t->roots),
                                       [TREES_LEFT] = narrow(t, &t->left),
                                       [TREES_FEATURES] = narrow(t, &t->features),
                                       [TREES_THRESHOLDS] = exact(t, &t->thresholds),
                                       [TREES_WEIGHTS] = exact(t, &t->weights),
                                       [TREES_MODES] = one_mode ? NULL : narrow(t, &t->modes),
                                       [TREES_MEMBERS] = members.len ? exact(t, &members) : NULL,
                                       [TREES_LEAVES] = narrow_or_none(t, &t->leaves),
                                       [TREES_LISTS] = narrow_or_none(t, &t->lists),
                                       [TREES_TARGETS] = t->lists.len ? narrow(t, &t->targets)
                                                                      : narrow_or_none(t, &t->targets),
                                       [TREES_WEIGHT_IDS] = narrow_or_none(t, &t->weight_ids)};
    const attr a[5] = {attr_int(c, "depth", t->depth), attr_int(c, "n_targets", t->f->targets),
                       attr_int(c, "mode", mode), attr_int(c, "tracks", tracks),
                       attr_int(c, "aggregate", t->aggregate)};
    return onnx_emit(t->n, (onnx_args){"tree_ensemble", TREES_OPERANDS, in, 5, a});
}

graph_value *forest_scores(onnx_node *n, const forest *f, graph_value *x, int64_t aggregate, bool ones)
{
    tables t = {.n = n, .a = &n->c->mem, .f = f, .aggregate = aggregate, .ones = ones};
    if (n->failed)
        return onnx_nothing(n);
    choose_leaves(&t);
    for (uint32_t i = 0; i < f->n_trees; i++)
        if (!put_tree(&t, i))
            return onnx_nothing(n);
    vec_push(t.a, &t.roots, t.left.len);
    return emit(&t, x);
}

/* --- which targets rows have --- */

static bool leaf_has(const forest *f, const tree_node *leaf, int64_t target)
{
    for (uint32_t i = 0; i < leaf->count; i++)
        if (f->weights[leaf->first + i].target == target)
            return true;
    return false;
}

static bool tree_always(onnx_node *n, const forest *f, uint32_t tree, int64_t target)
{
    VEC(uint32_t) todo = {0};
    uint32_t seen = 0;
    vec_push(&n->c->mem, &todo, f->roots[tree]);
    while (todo.len && seen++ < MOST_NODES) {
        const tree_node *b = &f->nodes[todo.data[--todo.len]];
        if (b->leaf && !leaf_has(f, b, target))
            return false;
        if (!b->leaf) {
            vec_push(&n->c->mem, &todo, b->no);
            vec_push(&n->c->mem, &todo, b->yes);
        }
    }
    return todo.len == 0;
}

bool forest_always(onnx_node *n, const forest *f, int64_t target)
{
    for (uint32_t i = 0; i < f->n_trees; i++)
        if (tree_always(n, f, i, target))
            return true;
    return false;
}

bool forest_ever(const forest *f, int64_t target)
{
    for (uint32_t i = 0; i < f->n_weights; i++)
        if (f->weights[i].target == target)
            return true;
    return false;
}
