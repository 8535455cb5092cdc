/* SPDX-License-Identifier: Apache-2.0 */
/* Importers of TreeEnsemble, TreeEnsembleClassifier and TreeEnsembleRegressor: their attributes as nodes of a forest,
 * and what is done with its scores. What is odd here is onnxruntime's (docs/reference/ml-operators.md). */
#include "frontend/onnx/onnx_trees.h"
#include "graph/op/trees.h"

#include <math.h>
#include <string.h>

/* --- numbers of attributes --- */

/* name, or name_as_tensor, which may be f64. */
static ml_floats real_attr(onnx_node *n, const char *name)
{
    const char *as_tensor = arena_printf(&n->c->mem, "%s_as_tensor", name);
    const tensor_data *t = onnx_attr_tensor(n, n->version >= 5 ? name : as_tensor);
    if (!t)
        return n->version >= 5 ? (ml_floats){0} : ml_attr_floats(n, name);
    double *v = arena_array(&n->c->mem, double, (size_t)t->count + 1u);
    for (int64_t i = 0; i < t->count; i++)
        v[i] = tensor_get_f64(t, i);
    return (ml_floats){(uint32_t)t->count, v};
}

/* f64 with an input of f64, else f32. */
static dtype forest_dtype(onnx_node *n)
{
    return onnx_dtype(onnx_in(n, 0)) == DT_F64 ? DT_F64 : DT_F32;
}

static bool same_length(onnx_node *n, const char *what, uint32_t have, uint32_t want)
{
    return have == want ||
           onnx_fail(n, DIAG_FORMAT, "%s has %u entries, and %u are needed", what, have, want);
}

/* --- versions 1 to 4: nodes by tree and number --- */

static const char *const mode_names[] = {"BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE", "BRANCH_GT", "BRANCH_EQ",
                                         "BRANCH_NEQ"};

typedef struct listed {
    ml_ints trees, ids, features, yes, no, tracks;
    ml_strings modes;
    ml_floats values;
    onnx_map by_id; /* number + 1 of a node, by the text of tree and id */
} listed;

static const char *node_key(onnx_node *n, int64_t tree, int64_t id)
{
    const int64_t key[2] = {tree, id};
    return intern_n(n->c->names, (const char *)key, sizeof key);
}

static uint32_t find_node(onnx_node *n, const listed *l, int64_t tree, int64_t id)
{
    return (uint32_t)(uintptr_t)onnx_map_get(&l->by_id, node_key(n, tree, id));
}

static bool read_mode(onnx_node *n, const char *name, tree_node *out)
{
    out->leaf = strcmp(name, "LEAF") == 0;
    for (uint32_t m = 0; m < sizeof mode_names / sizeof *mode_names; m++)
        if (strcmp(name, mode_names[m]) == 0) {
            out->mode = m;
            return true;
        }
    return out->leaf || onnx_fail(n, DIAG_FORMAT, "nodes have no mode '%s'", name);
}

static bool read_branch(onnx_node *n, const listed *l, uint32_t i, int64_t width, tree_node *out)
{
    const int64_t tree = l->trees.v[i];
    const uint32_t yes = find_node(n, l, tree, l->yes.v[i]), no = find_node(n, l, tree, l->no.v[i]);
    if (l->features.v[i] < 0 || l->features.v[i] >= width)
        return onnx_fail(n, DIAG_TYPE, "node %lld of tree %lld reads feature %lld; there are %lld "
                                       "features", (long long)l->ids.v[i],
                         (long long)tree, (long long)l->features.v[i], (long long)width);
    if (!yes || !no || yes == i + 1 || no == i + 1)
        return onnx_fail(n, DIAG_FORMAT, "node %lld of tree %lld has no child %lld, or is its own child",
                         (long long)l->ids.v[i], (long long)tree, (long long)(yes ? l->no.v[i] : l->yes.v[i]));
    out->feature = l->features.v[i];
    out->threshold = l->values.v[i];
    out->tracks = l->tracks.n && l->tracks.v[i] != 0;
    out->yes = yes - 1;
    out->no = no - 1;
    return true;
}

static bool read_listed(onnx_node *n, listed *l)
{
    l->trees = ml_attr_ints(n, "nodes_treeids");
    l->ids = ml_attr_ints(n, "nodes_nodeids");
    l->features = ml_attr_ints(n, "nodes_featureids");
    l->yes = ml_attr_ints(n, "nodes_truenodeids");
    l->no = ml_attr_ints(n, "nodes_falsenodeids");
    l->tracks = ml_attr_ints(n, "nodes_missing_value_tracks_true");
    l->modes = ml_attr_strings(n, "nodes_modes");
    l->values = real_attr(n, "nodes_values");
    (void)onnx_attr_find(n, "nodes_hitrates");
    (void)onnx_attr_find(n, "nodes_hitrates_as_tensor");
    const uint32_t count = l->trees.n;
    if (n->failed || count == 0)
        return onnx_fail(n, DIAG_FORMAT, "nodes_treeids is missing: there are no trees");
    return same_length(n, "nodes_nodeids", l->ids.n, count) && same_length(n, "nodes_modes", l->modes.n, count) &&
           same_length(n, "nodes_featureids", l->features.n, count) &&
           same_length(n, "nodes_values", l->values.n, count) && same_length(n, "nodes_truenodeids", l->yes.n, count) &&
           same_length(n, "nodes_falsenodeids", l->no.n, count) &&
           (l->tracks.n == 0 || same_length(n, "nodes_missing_value_tracks_true", l->tracks.n, count));
}

/* The root of a tree is the first node that is listed of it. */
static bool read_nodes(onnx_node *n, listed *l, int64_t width, forest *out)
{
    arena *a = &n->c->mem;
    const uint32_t count = l->trees.n;
    tree_node *nodes = arena_array(a, tree_node, count);
    VEC(uint32_t) roots = {0};
    onnx_map trees = {0};
    for (uint32_t i = 0; i < count; i++) {
        const char *tree = node_key(n, l->trees.v[i], -1), *id = node_key(n, l->trees.v[i], l->ids.v[i]);
        if (find_node(n, l, l->trees.v[i], l->ids.v[i]))
            return onnx_fail(n, DIAG_FORMAT, "node %lld of tree %lld is there twice", (long long)l->ids.v[i],
                             (long long)l->trees.v[i]);
        if (!onnx_map_get(&trees, tree))
            vec_push(a, &roots, i);
        onnx_map_set(a, &trees, tree, tree);
        onnx_map_set(a, &l->by_id, id, (const void *)(uintptr_t)(i + 1));
    }
    for (uint32_t i = 0; i < count; i++)
        if (!read_mode(n, l->modes.v[i], &nodes[i]) || (!nodes[i].leaf && !read_branch(n, l, i, width, &nodes[i])))
            return false;
    out->nodes = nodes;
    out->n_nodes = count;
    out->roots = roots.data;
    out->n_trees = roots.len;
    return true;
}

/* A weight of -0 is 0: onnxruntime adds a base value of 0 to the least and the largest weight, too. */
static tree_weight weight_of(int64_t target, double value)
{
    return (tree_weight){target, value == 0 ? 0 : value};
}

/* Weights in the order of their leaves, of one leaf as they are listed; those of branches do not count. */
static bool read_weights(onnx_node *n, const listed *l, const char *what, forest *f)
{
    arena *a = &n->c->mem;
    const ml_ints trees = ml_attr_ints(n, arena_printf(a, "%s_treeids", what));
    const ml_ints ids = ml_attr_ints(n, arena_printf(a, "%s_nodeids", what));
    const ml_ints targets = ml_attr_ints(n, arena_printf(a, "%s_ids", what));
    const ml_floats values = real_attr(n, arena_printf(a, "%s_weights", what));
    tree_node *nodes = arena_copy(a, f->nodes, f->n_nodes * sizeof *nodes, _Alignof(tree_node));
    tree_weight *w = arena_array(a, tree_weight, targets.n + 1u);
    uint32_t *leaf = arena_array(a, uint32_t, targets.n + 1u), at = 0;
    if (n->failed || !same_length(n, "the list of leaves' nodes", ids.n, targets.n) ||
        !same_length(n, "the list of leaves' trees", trees.n, targets.n) ||
        !same_length(n, "the list of weights", values.n, targets.n))
        return false;
    for (uint32_t i = 0; i < targets.n; i++) {
        leaf[i] = find_node(n, l, trees.v[i], ids.v[i]);
        if (!leaf[i])
            return onnx_fail(n, DIAG_FORMAT, "weight %u is for node %lld of tree %lld, which is missing", i,
                             (long long)ids.v[i], (long long)trees.v[i]);
        if (targets.v[i] < 0 || targets.v[i] >= f->targets)
            return onnx_fail(n, DIAG_FORMAT, "weight %u is for %s %lld; there are %lld", i, what,
                             (long long)targets.v[i], (long long)f->targets);
        nodes[leaf[i] - 1].count += nodes[leaf[i] - 1].leaf;
    }
    for (uint32_t k = 0; k < f->n_nodes; k++) {
        nodes[k].first = at;
        at += nodes[k].count;
        nodes[k].count = 0;
    }
    for (uint32_t i = 0; i < targets.n; i++) {
        tree_node *of = &nodes[leaf[i] - 1];
        if (of->leaf)
            w[of->first + of->count++] = weight_of(targets.v[i], values.v[i]);
    }
    f->nodes = nodes;
    f->weights = w;
    f->n_weights = at;
    return true;
}

/* The forest of versions 1 to 4, and the rows that it reads. */
static bool read_forest(onnx_node *n, const char *what, int64_t targets, forest *out, graph_value **rows)
{
    listed l = {0};
    int64_t width = 0;
    *out = (forest){.dt = forest_dtype(n), .targets = targets, .first_only = targets == 1};
    *rows = ml_rows(n, onnx_in(n, 0), out->dt, &width);
    if (!n->failed && (targets < 1 || targets > INT32_MAX))
        onnx_fail(n, DIAG_FORMAT, "the number of targets cannot be %lld", (long long)targets);
    return !n->failed && read_listed(n, &l) && read_nodes(n, &l, width, out) && read_weights(n, &l, what, out);
}

/* --- regressors --- */

typedef enum aggregate { AVERAGE, SUM, LEAST, LARGEST } aggregate;

static graph_value *add_base(onnx_node *n, graph_value *s, dtype dt, ml_floats base)
{
    return base.n ? onnx_binary(n, "add", s, ml_vector(n, dt, base.n, base.v)) : s;
}

/* bool [rows, targets]: whether a leaf of the row has the target. NULL: every row has every target. */
static graph_value *targets_of_rows(onnx_node *n, const forest *f, graph_value *x)
{
    int64_t k = 0;
    while (k < f->targets && forest_always(n, f, k))
        k++;
    if (k == f->targets)
        return NULL;
    graph_value *one = forest_scores(n, f, x, TREES_MAX, true);
    return onnx_binary(n, "greater", one, onnx_const_like(n, one, 0));
}

/* Of several targets, one that no leaf of a row has is 0 there, whatever its base value. */
static graph_value *regress(onnx_node *n, const forest *f, graph_value *x, aggregate how, ml_floats base)
{
    static const int64_t kinds[] = {TREES_AVERAGE, TREES_SUM, TREES_MIN, TREES_MAX};
    graph_value *s = add_base(n, forest_scores(n, f, x, kinds[how], false), f->dt, base);
    graph_value *there = base.n > 1 ? targets_of_rows(n, f, x) : NULL;
    return there ? onnx_where(n, there, s, onnx_const_like(n, s, 0)) : s;
}

/* Of one target no transform but PROBIT does anything. */
static graph_value *transformed(onnx_node *n, graph_value *s, int64_t targets, ml_post post)
{
    return targets > 1 || post == ML_PROBIT ? ml_post_transform(n, s, post) : s;
}

bool onnx_op_tree_ensemble_regressor(onnx_node *n)
{
    static const char *const names[] = {"AVERAGE", "SUM", "MIN", "MAX"};
    const char *given = onnx_attr_string(n, "aggregate_function", "SUM");
    const int64_t targets = onnx_attr_int(n, "n_targets", 1);
    const ml_post post = ml_attr_post(n);
    const ml_floats base = real_attr(n, "base_values");
    forest f;
    graph_value *x;
    int how = -1;
    for (int i = 0; i < 4; i++)
        how = strcmp(given, names[i]) == 0 ? i : how;
    if (how < 0)
        return onnx_fail(n, DIAG_FORMAT, "there is no aggregate_function '%s'", given);
    if (!read_forest(n, "target", targets, &f, &x) ||
        (base.n && !same_length(n, "base_values", base.n, (uint32_t)targets)))
        return false;
    graph_value *s = onnx_cast(n, regress(n, &f, x, (aggregate)how, base), DT_F32);
    return onnx_alias(n, 0, transformed(n, s, targets, post));
}

/* --- version 5: children by place --- */

typedef struct placed {
    ml_ints features, yes, no, yes_is_leaf, no_is_leaf, tracks, roots, targets;
    ml_floats splits, weights, modes, members;
} placed;

static bool read_placed(onnx_node *n, placed *p)
{
    p->features = ml_attr_ints(n, "nodes_featureids");
    p->yes = ml_attr_ints(n, "nodes_truenodeids");
    p->no = ml_attr_ints(n, "nodes_falsenodeids");
    p->yes_is_leaf = ml_attr_ints(n, "nodes_trueleafs");
    p->no_is_leaf = ml_attr_ints(n, "nodes_falseleafs");
    p->tracks = ml_attr_ints(n, "nodes_missing_value_tracks_true");
    p->roots = ml_attr_ints(n, "tree_roots");
    p->targets = ml_attr_ints(n, "leaf_targetids");
    p->splits = real_attr(n, "nodes_splits");
    p->modes = real_attr(n, "nodes_modes");
    p->weights = real_attr(n, "leaf_weights");
    p->members = real_attr(n, "membership_values");
    (void)onnx_attr_find(n, "nodes_hitrates");
    const uint32_t count = p->features.n;
    if (n->failed)
        return false;
    return same_length(n, "nodes_splits", p->splits.n, count) && same_length(n, "nodes_modes", p->modes.n, count) &&
           same_length(n, "nodes_truenodeids", p->yes.n, count) &&
           same_length(n, "nodes_falsenodeids", p->no.n, count) &&
           same_length(n, "nodes_trueleafs", p->yes_is_leaf.n, count) &&
           same_length(n, "nodes_falseleafs", p->no_is_leaf.n, count) &&
           same_length(n, "leaf_weights", p->weights.n, p->targets.n) &&
           (p->tracks.n == 0 || same_length(n, "nodes_missing_value_tracks_true", p->tracks.n, count));
}

/* A set for each node of mode MEMBER, in their order, a NaN behind each in the file. */
static bool read_members(onnx_node *n, const placed *p, tree_node *nodes, forest *f)
{
    VEC(double) all = {0};
    uint32_t from = 0;
    for (uint32_t i = 0; i < p->features.n; i++) {
        if (nodes[i].mode != TREES_MEMBER)
            continue;
        uint32_t to = from;
        while (to < p->members.n && !isnan(p->members.v[to]))
            to++;
        if (to == from || all.len > 1u << 23)
            return onnx_fail(n, DIAG_FORMAT, "membership_values has no set for node %u", i);
        nodes[i].threshold = all.len;
        vec_push(&n->c->mem, &all, to - from);
        for (uint32_t k = from; k < to; k++)
            vec_push(&n->c->mem, &all, p->members.v[k]);
        from = to + 1;
    }
    f->members = all.data;
    f->n_members = all.len;
    return true;
}

/* Leaves stand behind the branches. */
static bool read_child(onnx_node *n, const placed *p, int64_t at, bool leaf, uint32_t *out)
{
    const uint32_t count = leaf ? p->targets.n : p->features.n;
    if (at < 0 || at >= (int64_t)count)
        return onnx_fail(n, DIAG_FORMAT, "a node has %s %lld as a child; there are "
                                         "%u", leaf ? "leaf" : "node", (long long)at, count);
    *out = (uint32_t)at + (leaf ? p->features.n : 0);
    return true;
}

static bool read_place(onnx_node *n, const placed *p, uint32_t i, int64_t width, tree_node *out)
{
    if (p->features.v[i] < 0 || p->features.v[i] >= width)
        return onnx_fail(n, DIAG_TYPE, "node %u reads feature %lld; there are %lld "
                                       "features", i, (long long)p->features.v[i],
                         (long long)width);
    if (!(p->modes.v[i] >= 0 && p->modes.v[i] <= (double)(int)TREES_MEMBER))
        return onnx_fail(n, DIAG_FORMAT, "no mode of nodes has the code %g", p->modes.v[i]);
    *out = (tree_node){.feature = p->features.v[i],
                       .mode = (int64_t)p->modes.v[i],
                       .threshold = p->splits.v[i],
                       .tracks = p->tracks.n && p->tracks.v[i]};
    return read_child(n, p, p->yes.v[i], p->yes_is_leaf.v[i] != 0, &out->yes) &&
           read_child(n, p, p->no.v[i], p->no_is_leaf.v[i] != 0, &out->no);
}

static bool read_places(onnx_node *n, const placed *p, int64_t width, forest *f)
{
    const uint32_t count = p->features.n, leaves = p->targets.n;
    tree_node *nodes = arena_array(&n->c->mem, tree_node, (size_t)count + leaves + 1u);
    tree_weight *w = arena_array(&n->c->mem, tree_weight, leaves + 1u);
    uint32_t *roots = arena_array(&n->c->mem, uint32_t, p->roots.n + 1u);
    for (uint32_t i = 0; i < count; i++)
        if (!read_place(n, p, i, width, &nodes[i]))
            return false;
    for (uint32_t i = 0; i < leaves; i++) {
        if (p->targets.v[i] < 0 || p->targets.v[i] >= f->targets)
            return onnx_fail(n, DIAG_FORMAT, "leaf %u is for target %lld; there are "
                                             "%lld", i, (long long)p->targets.v[i],
                             (long long)f->targets);
        nodes[count + i] = (tree_node){.leaf = true, .first = i, .count = 1};
        w[i] = weight_of(p->targets.v[i], p->weights.v[i]);
    }
    for (uint32_t i = 0; i < p->roots.n; i++)
        if (!read_child(n, p, p->roots.v[i], false, &roots[i]))
            return false;
    f->nodes = nodes;
    f->n_nodes = count + leaves;
    f->roots = roots;
    f->n_trees = p->roots.n;
    f->weights = w;
    f->n_weights = leaves;
    return read_members(n, p, nodes, f);
}

/* The text of ai.onnx.ml numbers SOFTMAX 1 and LOGISTIC 2; onnxruntime has them the other way round. */
bool onnx_op_tree_ensemble(onnx_node *n)
{
    static const ml_post posts[] = {ML_NONE, ML_LOGISTIC, ML_SOFTMAX, ML_SOFTMAX_ZERO, ML_PROBIT};
    const int64_t how = onnx_attr_int(n, "aggregate_function", SUM), post = onnx_attr_int(n, "post_transform", 0);
    placed p = {0};
    int64_t width = 0;
    forest f = {.dt = forest_dtype(n), .targets = onnx_attr_int(n, "n_targets", 1)};
    graph_value *x = ml_rows(n, onnx_in(n, 0), f.dt, &width);
    f.first_only = f.targets == 1;
    if (how < AVERAGE || how > LARGEST || post < 0 || post > 4 || f.targets < 1 || f.targets > INT32_MAX)
        return onnx_fail(n, DIAG_FORMAT, "aggregate_function, post_transform or n_targets is out of range");
    if (!read_placed(n, &p) || !read_places(n, &p, width, &f))
        return false;
    graph_value *s = regress(n, &f, x, (aggregate)how, (ml_floats){0});
    return onnx_alias(n, 0, transformed(n, s, f.targets, posts[post]));
}

/* --- the classifier's end ---
 * A class counts in a row only where a leaf of the row has it: that is mostly known of all rows. */

typedef struct seen {
    bool always, never;
    graph_value *now; /* bool [rows, 1], where it depends on the row */
} seen;

typedef struct ends {
    onnx_node *n;
    const forest *f;
    graph_value *x;
    ml_labels labels;
    ml_floats base;
    ml_post post;
    graph_value *mask; /* bool [rows, classes]; NULL: not asked for yet */
} ends;

/* Asked for only where a class is not in every row. */
static graph_value *mask_of(ends *e)
{
    if (!e->mask)
        e->mask = targets_of_rows(e->n, e->f, e->x);
    return e->mask;
}

static seen seen_of(ends *e, int64_t k)
{
    seen s = {.always = forest_always(e->n, e->f, k), .never = !forest_ever(e->f, k)};
    if (!s.always && !s.never)
        s.now = ml_column(e->n, mask_of(e), k);
    return s;
}

static graph_value *choose(onnx_node *n, const seen *s, graph_value *yes, graph_value *no)
{
    return s->always ? yes : s->never ? no : onnx_where(n, s->now, yes, no);
}

static graph_value *negated(onnx_node *n, graph_value *x)
{
    return onnx_unary(n, "negative", x);
}

static graph_value *side_by_side(onnx_node *n, graph_value *a, graph_value *b)
{
    graph_value *both[2] = {a, b};
    return onnx_concat(n, 2, both, 1);
}

/* Three classes or more, or one: the first largest of those that are seen. */
static bool end_many(ends *e, graph_value *s)
{
    onnx_node *n = e->n;
    graph_value *mask = e->base.n ? NULL : mask_of(e);
    s = add_base(n, s, e->f->dt, e->base);
    graph_value *ranked = mask ? onnx_where(n, mask, s, onnx_const_like(n, s, -INFINITY)) : s;
    return ml_result_labels(n, 0, ml_argmax(n, ranked), &e->labels) &&
           onnx_alias(n, 1, ml_post_transform(n, onnx_cast(n, s, DT_F32), e->post));
}

static bool end_one(ends *e, graph_value *s)
{
    onnx_node *n = e->n;
    s = add_base(n, s, e->f->dt, e->base);
    graph_value *label = onnx_cast(n, onnx_binary(n, "greater", s, onnx_const_like(n, s, 0)), DT_I64);
    label = onnx_reshape(n, label, 1, s->type.shape.dims);
    if (e->labels.strings)
        onnx_set_strings(n->im, label, e->labels.n, e->labels.strings);
    s = onnx_cast(n, s, DT_F32);
    return onnx_alias(n, 0, label) && onnx_alias(n, 1, e->post == ML_PROBIT ? ml_probit(n, s) : s);
}

/* What two classes know besides the scores: whether all weights are for one of them, and none is negative. */
static bool is_binary(const forest *f)
{
    return !forest_ever(f, 0) || !forest_ever(f, 1);
}

static bool is_positive(const forest *f)
{
    for (uint32_t i = 0; i < f->n_weights; i++)
        if ((float)f->weights[i].value < 0)
            return false;
    return true;
}

/* Two scores of one, for rows without class 1. Beside a base value and both classes nothing defines the second. */
static graph_value *spread(ends *e, graph_value *s)
{
    onnx_node *n = e->n;
    const bool binary = is_binary(e->f), minus = !(binary && is_positive(e->f));
    if (e->post == ML_PROBIT) {
        s = ml_probit(n, onnx_cast(n, s, DT_F32));
        return side_by_side(n, s, s);
    }
    if (e->base.n == 1 && !binary) {
        s = onnx_cast(n, s, DT_F32);
        return side_by_side(n, s, s);
    }
    if (e->post == ML_LOGISTIC) {
        s = onnx_cast(n, s, DT_F32);
        return side_by_side(n, ml_logistic(n, negated(n, s)), ml_logistic(n, s));
    }
    graph_value *first = minus ? negated(n, s) : onnx_binary(n, "subtract", onnx_const_like(n, s, 1), s);
    return onnx_cast(n, side_by_side(n, first, s), DT_F32);
}

/* The columns with their base values. Of two base values the first counts only where class 1 is not seen. */
static void add_two_bases(ends *e, const seen *one, graph_value **s0, graph_value **s1)
{
    onnx_node *n = e->n;
    const dtype dt = e->f->dt;
    graph_value *b0 = onnx_const_float(n, dt, e->base.v[0]);
    if (e->base.n == 1) {
        *s0 = onnx_binary(n, "add", *s0, b0);
        return;
    }
    graph_value *b1 = onnx_const_float(n, dt, e->base.v[1]), *both = onnx_binary(n, "add", b1, *s0);
    graph_value *alone0 = onnx_binary(n, "add", *s0, b0), *alone1 = onnx_binary(n, "add", *s1, b1);
    *s1 = choose(n, one, both, alone1);
    *s0 = choose(n, one, negated(n, both), alone0);
}

/* The forest of weights for one class of two alone, as one of one target: a sum that needs no place in memory. */
static forest of_one_class(onnx_node *n, const forest *f)
{
    tree_weight *w = arena_array(&n->c->mem, tree_weight, f->n_weights + 1u);
    forest one = *f;
    for (uint32_t i = 0; i < f->n_weights; i++)
        w[i] = (tree_weight){0, f->weights[i].value};
    one.weights = w;
    one.targets = 1;
    return one;
}

/* 0 for each row. A product with 0 would be -0 for a score below 0, and NaN for one that is infinite. */
static graph_value *zero_like(onnx_node *n, graph_value *s)
{
    return onnx_cast(n, onnx_binary(n, "greater", s, onnx_const_like(n, s, INFINITY)), onnx_dtype(s));
}

/* The score of class k; s has one column where the weights are for one class alone. */
static graph_value *score_of(ends *e, graph_value *s, int64_t k)
{
    onnx_node *n = e->n;
    if (!is_binary(e->f))
        return ml_column(n, s, k);
    return forest_ever(e->f, k) ? s : zero_like(n, s);
}

static bool end_two(ends *e, graph_value *s)
{
    onnx_node *n = e->n;
    const seen zero = seen_of(e, 0), one = seen_of(e, 1);
    graph_value *s0 = score_of(e, s, 0), *s1 = score_of(e, s, 1);
    graph_value *nothing = zero_like(n, s0);
    const dim rows[1] = {onnx_dim(n, s, 0)};
    if (e->base.n)
        add_two_bases(e, &one, &s0, &s1);
    s0 = choose(n, &zero, s0, nothing);
    s1 = choose(n, &one, s1, nothing);
    const bool binary = is_binary(e->f);
    const double limit = binary && is_positive(e->f) ? 0.5 : 0;
    graph_value *p = choose(n, &one, s1, s0);
    graph_value *label = onnx_cast(n, onnx_binary(n, "greater", p, onnx_const_like(n, p, limit)), DT_I64);
    label = onnx_reshape(n, label, 1, rows);
    /* where weights are for both classes, onnxruntime returns 1 or 0, whatever integers the labels are */
    const ml_labels named = binary || e->labels.strings ? e->labels : (ml_labels){0};
    graph_value *pair = ml_post_transform(n, onnx_cast(n, side_by_side(n, s0, s1), DT_F32), e->post);
    if (e->base.n != 2)
        pair = choose(n, &one, pair, one.always ? NULL : spread(e, s0));
    return ml_result_labels(n, 0, label, &named) && onnx_alias(n, 1, pair);
}

bool onnx_op_tree_ensemble_classifier(onnx_node *n)
{
    forest f;
    ends e = {.n = n, .f = &f, .labels = ml_attr_labels(n, "classlabels_int64s", "classlabels_strings"),
              .base = real_attr(n, "base_values"), .post = ml_attr_post(n)};
    const uint32_t count = e.labels.n;
    if (count == 0)
        return onnx_fail(n, DIAG_FORMAT, "classlabels_int64s or classlabels_strings is missing");
    if (!read_forest(n, "class", count, &f, &e.x))
        return false;
    if (e.base.n && e.base.n != count && !(count == 2 && e.base.n == 1))
        return onnx_fail(n, DIAG_FORMAT, "there are %u base_values for %u classes", e.base.n, count);
    const bool alone = count == 2 && is_binary(&f);
    const forest one = alone ? of_one_class(n, &f) : f;
    graph_value *s = forest_scores(n, &one, e.x, TREES_SUM, false);
    if (n->failed)
        return false;
    return count == 1 ? end_one(&e, s) : count == 2 ? end_two(&e, s) : end_many(&e, s);
}
