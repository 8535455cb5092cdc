/* SPDX-License-Identifier: Apache-2.0 */
/* Type relation of tree_ensemble. Tables that are constants are looked through, so that no walk leaves them. */
#include "graph/op/trees.h"

#include "graph/op.h"

static const tensor_data *table_of(const graph_node *n, uint32_t i)
{
    return i < n->n_inputs && n->inputs[i] ? graph_constant(n->inputs[i]) : NULL;
}

static bool has(const graph_node *n, uint32_t i)
{
    return i < n->n_inputs && n->inputs[i];
}

/* Entries of a constant table lie in least..most; a table that is no constant is not looked at. */
static bool in_range(compiler *c, const graph_node *n, uint32_t i, int64_t least, int64_t most)
{
    const tensor_data *t = table_of(n, i);
    for (int64_t k = 0; t && k < t->count; k++) {
        const int64_t v = tensor_get_i64(t, k);
        if (v < least || v > most)
            return infer_error(c, n, "operand %u: entry %lld is %lld; %lld to %lld can be", i, (long long)k,
                               (long long)v, (long long)least, (long long)most);
    }
    return true;
}

/* The nodes of a tree are one behind another: the subtrees of a node lie in its own range. */
static bool check_nodes(compiler *c, const graph_node *n)
{
    const tensor_data *roots = table_of(n, TREES_ROOTS), *left = table_of(n, TREES_LEFT);
    for (int64_t t = 0; roots && left && t + 1 < roots->count; t++) {
        const int64_t first = tensor_get_i64(roots, t), end = tensor_get_i64(roots, t + 1);
        if (first < 0 || end < first || end > left->count)
            return infer_error(c, n, "tree %lld has the nodes %lld to %lld of %lld", (long long)t, (long long)first,
                               (long long)end, (long long)left->count);
        for (int64_t i = first; i < end; i++)
            if (tensor_get_i64(left, i) < 0 || tensor_get_i64(left, i) > end - i - 1)
                return infer_error(c, n, "node %lld has %lld nodes to its left, more than its tree has", (long long)i,
                                   (long long)tensor_get_i64(left, i));
    }
    return true;
}

/* What is said of each node is said of as many. */
static bool check_lengths(compiler *c, const graph_node *n)
{
    static const uint32_t tables[] = {TREES_FEATURES, TREES_THRESHOLDS, TREES_MODES};
    const dim nodes = infer_in(n, TREES_LEFT)->shape.dims[0];
    int64_t a = 0, b = 0;
    for (size_t i = 0; i < sizeof tables / sizeof *tables; i++)
        if (has(n, tables[i]) && dim_is_const(nodes, &a) &&
            dim_is_const(infer_in(n, tables[i])->shape.dims[0], &b) && a != b)
            return infer_error(c, n, "operand %u has %lld entries for %lld nodes", tables[i], (long long)b,
                               (long long)a);
    return true;
}

/* The set of a node lies among the members. */
static bool check_members(compiler *c, const graph_node *n)
{
    const tensor_data *modes = table_of(n, TREES_MODES), *at = table_of(n, TREES_THRESHOLDS);
    const tensor_data *members = table_of(n, TREES_MEMBERS);
    for (int64_t i = 0; modes && at && members && i < modes->count; i++) {
        const double first = tensor_get_f64(at, i);
        if (tensor_get_i64(modes, i) != TREES_MEMBER)
            continue;
        if (!(first >= 0 && first < (double)members->count) ||
            !(tensor_get_f64(members, (int64_t)first) >= 0 &&
              tensor_get_f64(members, (int64_t)first) < (double)members->count - first))
            return infer_error(c, n, "the set of node %lld is not among the members", (long long)i);
    }
    return true;
}

static int64_t count_of(const graph_node *n, uint32_t i)
{
    const tensor_data *t = table_of(n, i);
    return t ? t->count : INT64_MAX;
}

static bool check_leaves(compiler *c, const graph_node *n)
{
    const tensor_data *roots = table_of(n, TREES_ROOTS);
    const int64_t leaves = roots && roots->count ? tensor_get_i64(roots, roots->count - 1) + roots->count - 1 : 0;
    const uint32_t by_entry = has(n, TREES_WEIGHT_IDS) ? TREES_WEIGHT_IDS : TREES_WEIGHTS;
    const uint32_t by_leaf = has(n, TREES_LISTS) ? TREES_LISTS : by_entry;
    const int64_t ids = count_of(n, by_leaf) - (has(n, TREES_LISTS) ? 1 : 0);
    const int64_t targets = graph_attr_int(n, "n_targets") - 1;
    if (leaves > (has(n, TREES_LEAVES) ? count_of(n, TREES_LEAVES) : ids))
        return infer_error(c, n, "there are %lld leaves, but fewer weights", (long long)leaves);
    const bool entries = has(n, TREES_LISTS);
    const int64_t to = count_of(n, TREES_TARGETS), of = count_of(n, by_entry), listed = to < of ? to : of;
    if (roots && has(n, TREES_TARGETS) && !entries && count_of(n, TREES_TARGETS) + 1 < roots->count)
        return infer_error(c, n, "there are more trees than targets of trees");
    return in_range(c, n, TREES_LEAVES, 0, ids - 1) && (!entries || in_range(c, n, TREES_LISTS, 0, listed)) &&
           in_range(c, n, TREES_TARGETS, 0, targets) &&
           in_range(c, n, TREES_WEIGHT_IDS, 0, count_of(n, TREES_WEIGHTS) - 1);
}

bool infer_tree_ensemble(compiler *c, const graph_node *n, type *out)
{
    const type *x = infer_in(n, TREES_X);
    int64_t width = 0;
    const int64_t targets = graph_attr_int(n, "n_targets"), mode = graph_attr_int(n, "mode");
    const int64_t tracks = graph_attr_int(n, "tracks"), how = graph_attr_int(n, "aggregate");
    if (!dim_is_const(x->shape.dims[1], &width) || targets < 1 || mode < 0 || mode > TREES_NEQ || tracks < 0 ||
        tracks > TREES_TRACK_SOME || how < 0 || how > TREES_AVERAGE || graph_attr_int(n, "depth") < 0)
        return infer_error(c, n, "the number of features is open, or an attribute is out of range");
    if (has(n, TREES_LISTS) && !has(n, TREES_TARGETS))
        return infer_error(c, n, "lists have no targets");
    const int64_t columns = tracks == TREES_TRACK_SOME ? 2 * width - 1 : width - 1;
    if (!check_lengths(c, n) || !check_nodes(c, n) || !check_members(c, n) || !check_leaves(c, n) ||
        !in_range(c, n, TREES_FEATURES, 0, columns) ||
        !in_range(c, n, TREES_MODES, 0, has(n, TREES_MEMBERS) ? TREES_MEMBER : TREES_NEQ))
        return false;
    const dim d[2] = {x->shape.dims[0], dim_const(c, targets)};
    out[0] = type_tensor(x->dt, shape_make(c, 2, d));
    return true;
}
