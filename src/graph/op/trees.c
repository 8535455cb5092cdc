/* SPDX-License-Identifier: Apache-2.0 */
/* Type relations of tree_ensemble and its forms. Tables that are constants are looked through, so that no walk leaves
 * them. */
#include "graph/op/trees.h"

#include "graph/op.h"

static const char *const names[TREES_MOST_OPERANDS] = {"x",       "roots",   "left",       "features", "thresholds",
                                                       "weights", "modes",   "members",    "leaves",   "lists",
                                                       "targets", "weight_ids", "firsts",  "rights"};

const char *trees_table_name(uint32_t i)
{
    return names[i];
}

const tensor_data *trees_table(const graph_node *n, uint32_t i)
{
    const attr *a = graph_attr(n, names[i]);
    if (a && a->kind == ATTR_TENSOR && a->u.tensor->count > 0)
        return a->u.tensor;
    return i < n->n_inputs && n->inputs[i] ? graph_constant(n->inputs[i]) : NULL;
}

int64_t trees_count(const graph_node *n)
{
    const tensor_data *roots = trees_table(n, TREES_ROOTS);
    return roots ? roots->count - 1 : graph_attr_int(n, "trees");
}

static bool is_set(const graph_node *n, const char *name)
{
    const attr *a = graph_attr(n, name);
    return a && a->u.i != 0;
}

bool trees_are_dense(const graph_node *n)
{
    return is_set(n, "dense");
}

bool trees_have_levels(const graph_node *n)
{
    return is_set(n, "levels");
}

bool trees_have_lists(const graph_node *n)
{
    return trees_are_dense(n) || (TREES_LISTS < n->n_inputs && n->inputs[TREES_LISTS]);
}

static bool has(const graph_node *n, uint32_t i)
{
    return trees_table(n, i) || (i < n->n_inputs && n->inputs[i]);
}

/* Entries of a constant table lie in least..most; a table that is no constant is not looked at. */
static bool in_range(compiler *c, const graph_node *n, uint32_t i, int64_t least, int64_t most)
{
    const tensor_data *t = trees_table(n, i);
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
    const tensor_data *roots = trees_table(n, TREES_ROOTS), *left = trees_table(n, TREES_LEFT);
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

static bool entries_of(const graph_node *n, uint32_t i, int64_t *out)
{
    const tensor_data *t = trees_table(n, i);
    *out = t ? t->count : -1;
    return t || dim_is_const(infer_in(n, i)->shape.dims[0], out);
}

/* What is said of each node is said of as many; nodes below 0: not known. */
static bool check_lengths(compiler *c, const graph_node *n, int64_t nodes)
{
    static const uint32_t tables[] = {TREES_FEATURES, TREES_THRESHOLDS, TREES_MODES};
    int64_t b = 0;
    for (size_t i = 0; i < sizeof tables / sizeof *tables; i++)
        if (nodes >= 0 && has(n, tables[i]) && entries_of(n, tables[i], &b) && nodes != b)
            return infer_error(c, n, "operand %u has %lld entries for %lld nodes", tables[i], (long long)b,
                               (long long)nodes);
    return true;
}

/* The set of a node lies among the members. */
static bool check_members(compiler *c, const graph_node *n)
{
    const tensor_data *modes = trees_table(n, TREES_MODES), *at = trees_table(n, TREES_THRESHOLDS);
    const tensor_data *members = trees_table(n, TREES_MEMBERS);
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
    const tensor_data *t = trees_table(n, i);
    return t ? t->count : INT64_MAX;
}

/* leaves: how many the trees have; trees below 0: not known. */
static bool check_leaves(compiler *c, const graph_node *n, int64_t trees, int64_t leaves)
{
    const uint32_t by_entry = has(n, TREES_WEIGHT_IDS) ? TREES_WEIGHT_IDS : TREES_WEIGHTS;
    const uint32_t by_leaf = has(n, TREES_LISTS) ? TREES_LISTS : by_entry;
    const int64_t targets = graph_attr_int(n, "n_targets") - 1;
    const int64_t ids = trees_are_dense(n) ? count_of(n, TREES_WEIGHTS) / (targets + 1)
                                           : count_of(n, by_leaf) - (has(n, TREES_LISTS) ? 1 : 0);
    if (leaves > (has(n, TREES_LEAVES) ? count_of(n, TREES_LEAVES) : ids))
        return infer_error(c, n, "there are %lld leaves, but fewer weights", (long long)leaves);
    const bool entries = has(n, TREES_LISTS);
    const int64_t to = count_of(n, TREES_TARGETS), of = count_of(n, by_entry), listed = to < of ? to : of;
    if (trees >= 0 && has(n, TREES_TARGETS) && !entries && count_of(n, TREES_TARGETS) < trees)
        return infer_error(c, n, "there are more trees than targets of trees");
    return in_range(c, n, TREES_LEAVES, 0, ids - 1) && (!entries || in_range(c, n, TREES_LISTS, 0, listed)) &&
           in_range(c, n, TREES_TARGETS, 0, targets) &&
           in_range(c, n, TREES_WEIGHT_IDS, 0, count_of(n, TREES_WEIGHTS) - 1);
}

/* What all forms have in common: attributes, columns, modes. */
static bool check_walk(compiler *c, const graph_node *n, int64_t width)
{
    const int64_t targets = graph_attr_int(n, "n_targets"), mode = graph_attr_int(n, "mode");
    const int64_t tracks = graph_attr_int(n, "tracks"), how = graph_attr_int(n, "aggregate");
    if (width < 0 || targets < 1 || mode < 0 || mode > TREES_NEQ || tracks < 0 || tracks > TREES_TRACK_SOME ||
        how < 0 || how > TREES_AVERAGE || graph_attr_int(n, "depth") < 0)
        return infer_error(c, n, "the number of features is open, or an attribute is out of range");
    if (has(n, TREES_LISTS) && !has(n, TREES_TARGETS))
        return infer_error(c, n, "lists have no targets");
    return in_range(c, n, TREES_MODES, 0, has(n, TREES_MEMBERS) ? TREES_MEMBER : TREES_NEQ);
}

static int64_t most_feature(const graph_node *n, int64_t width)
{
    return graph_attr_int(n, "tracks") == TREES_TRACK_SOME ? 2 * width - 1 : width - 1;
}

static bool check_features(compiler *c, const graph_node *n, int64_t width)
{
    return in_range(c, n, TREES_FEATURES, 0, most_feature(n, width));
}

static int64_t width_of(const graph_node *n)
{
    int64_t width = -1;
    (void)dim_is_const(infer_in(n, TREES_X)->shape.dims[1], &width);
    return width;
}

static bool result(compiler *c, const graph_node *n, type *out)
{
    const type *x = infer_in(n, TREES_X);
    const dim d[2] = {x->shape.dims[0], dim_const(c, graph_attr_int(n, "n_targets"))};
    out[0] = type_tensor(x->dt, shape_make(c, 2, d));
    return true;
}

bool infer_tree_ensemble(compiler *c, const graph_node *n, type *out)
{
    const tensor_data *roots = trees_table(n, TREES_ROOTS);
    const int64_t trees = roots ? roots->count - 1 : -1;
    const int64_t leaves = roots && trees >= 0 ? tensor_get_i64(roots, trees) + trees : 0;
    int64_t nodes = -1;
    (void)entries_of(n, TREES_LEFT, &nodes);
    return check_lengths(c, n, nodes) && check_nodes(c, n) && check_members(c, n) &&
           check_leaves(c, n, trees, leaves) && check_walk(c, n, width_of(n)) &&
           check_features(c, n, width_of(n)) && result(c, n, out);
}

static bool is_operand(const graph_node *n, uint32_t i)
{
    return i < n->n_inputs && n->inputs[i];
}

/* The operands that a form has are of these, as a set of bits. */
static bool check_operands(compiler *c, const graph_node *n, uint32_t needed, uint32_t allowed)
{
    for (uint32_t i = TREES_ROOTS; i < TREES_MOST_OPERANDS; i++)
        if ((!is_operand(n, i) && (needed & 1u << i)) || (is_operand(n, i) && !(allowed & 1u << i)))
            return infer_error(c, n, is_operand(n, i) ? "operand '%s' has no place here" : "operand '%s' is missing",
                               names[i]);
    return true;
}

bool trees_have_long_lists(const graph_node *n)
{
    const tensor_data *lists = trees_table(n, TREES_LISTS);
    for (int64_t i = 0; lists && i + 1 < lists->count; i++)
        if (tensor_get_i64(lists, i + 1) - tensor_get_i64(lists, i) > 1)
            return true;
    return false;
}

/* The tables of the walk are attributes, and there are no sets. */
bool infer_tree_branches(compiler *c, const graph_node *n, type *out)
{
    static const uint32_t needed[] = {TREES_ROOTS, TREES_LEFT, TREES_FEATURES, TREES_THRESHOLDS};
    const uint32_t listed = 1u << TREES_LISTS | 1u << TREES_TARGETS | 1u << TREES_WEIGHTS;
    const bool lists = is_operand(n, TREES_LISTS);
    if (!check_operands(c, n, lists ? listed : 0, lists ? listed | 1u << TREES_WEIGHT_IDS : 0))
        return false;
    for (size_t i = 0; i < sizeof needed / sizeof *needed; i++)
        if (!trees_table(n, needed[i]) || trees_table(n, needed[i])->rank != 1)
            return infer_error(c, n, "attribute '%s' has to be a vector that is not empty", names[needed[i]]);
    if (trees_table(n, TREES_THRESHOLDS)->dt != infer_in(n, TREES_X)->dt)
        return infer_error(c, n, "the thresholds have another type than the features");
    if (!lists &&
        (!trees_table(n, TREES_WEIGHTS) || trees_table(n, TREES_WEIGHTS)->dt != infer_in(n, TREES_X)->dt))
        return infer_error(c, n, "leaves have neither lists nor weights of the features' type");
    if (!lists && trees_have_long_lists(n))
        return infer_error(c, n, "operand 'lists' is missing: a list has several entries");
    if (graph_attr_int(n, "depth") > TREES_MOST_BRANCHES)
        return infer_error(c, n, "branches may be nested %d deep", TREES_MOST_BRANCHES);
    return infer_tree_ensemble(c, n, out);
}

/* Rows side by side; with lanes the modes are such that all nodes can be asked. */
static bool check_rows(compiler *c, const graph_node *n)
{
    const int64_t rows = graph_attr_int(n, "rows"), lanes = graph_attr_int(n, "lanes");
    if (rows < 1 || rows > TREES_MOST_ROWS || lanes < 1 || rows % lanes != 0)
        return infer_error(c, n, "rows or lanes is out of range");
    if (lanes > 1 && (has(n, TREES_MODES) || (graph_attr_int(n, "aggregate") != TREES_SUM &&
                                              graph_attr_int(n, "aggregate") != TREES_AVERAGE) ||
                      (graph_attr_int(n, "tracks") != TREES_TRACK_NONE && graph_attr_int(n, "mode") > TREES_GT)))
        return infer_error(c, n, "lanes take nodes of one mode and sums");
    return true;
}

bool infer_tree_complete(compiler *c, const graph_node *n, type *out)
{
    const int64_t trees = graph_attr_int(n, "trees"), depth = graph_attr_int(n, "depth");
    const int64_t most = graph_attr_int(n, "lanes") > 1 ? TREES_MOST_SELECT : TREES_MOST_LEVELS;
    if (trees < 1 || trees > INT32_MAX >> TREES_MOST_LEVELS || depth < 1 || depth > most ||
        (graph_attr_int(n, "lanes") > 1 && trees_have_levels(n)))
        return infer_error(c, n, "trees or depth is out of range");
    const uint32_t needed = 1u << TREES_FEATURES | 1u << TREES_THRESHOLDS | 1u << TREES_WEIGHTS;
    const uint32_t lists = 1u << TREES_LISTS | 1u << TREES_TARGETS | 1u << TREES_WEIGHT_IDS;
    const uint32_t no = 1u << TREES_ROOTS | 1u << TREES_LEFT | 1u << TREES_MEMBERS | (trees_are_dense(n) ? lists : 0);
    if (graph_attr_int(n, "n_targets") < 1)
        return infer_error(c, n, "there is no target");
    if (!check_operands(c, n, needed, ~no) || !check_rows(c, n))
        return false;
    const int64_t questions = trees_have_levels(n) ? depth : (1 << depth) - 1;
    return check_lengths(c, n, trees * questions) && check_leaves(c, n, trees, trees << depth) &&
           check_walk(c, n, width_of(n)) && check_features(c, n, width_of(n)) && result(c, n, out);
}

/* A link leads to a node further on, on one of `depth` levels, or to one of so many leaves. */
static bool check_link(compiler *c, const graph_node *n, int64_t at, int64_t link, int64_t leaves, int32_t *levels)
{
    const int64_t leaf = (int64_t)1 << (graph_attr_int(n, "link_bits") - 1), nodes = count_of(n, TREES_FEATURES);
    const bool is_leaf = link >= leaf;
    const int32_t level = levels[at] + 1;
    if (is_leaf ? link - leaf >= leaves : link < 1 || link >= nodes - at || level >= graph_attr_int(n, "depth"))
        return infer_error(c, n, "node %lld has a link that leads nowhere", (long long)at);
    if (!is_leaf && levels[at + link] < level)
        levels[at + link] = level;
    return true;
}

static bool check_links(compiler *c, const graph_node *n, int64_t width)
{
    const tensor_data *words = trees_table(n, TREES_FEATURES);
    const uint32_t bits = (uint32_t)graph_attr_int(n, "link_bits"), low = 32 - 2 * bits;
    const uint64_t mask = ((uint64_t)1 << bits) - 1;
    const int64_t leaves = has(n, TREES_LISTS) ? count_of(n, TREES_LISTS) - 1 : count_of(n, TREES_WEIGHTS);
    if (!words)
        return true;
    int32_t *levels = arena_array(&c->mem, int32_t, (size_t)words->count + 1u);
    for (int64_t i = 0; i < words->count; i++) {
        const uint64_t word = (uint64_t)tensor_get_i64(words, i);
        if ((int64_t)(word & (((uint64_t)1 << low) - 1)) > most_feature(n, width))
            return infer_error(c, n, "node %lld has a column that is not there", (long long)i);
        if (!check_link(c, n, i, (int64_t)(word >> low & mask), leaves, levels) ||
            !check_link(c, n, i, (int64_t)(word >> (low + bits) & mask), leaves, levels))
            return false;
    }
    return in_range(c, n, TREES_ROOTS, 0, words->count);
}

bool infer_tree_links(compiler *c, const graph_node *n, type *out)
{
    const int64_t bits = graph_attr_int(n, "link_bits"), width = width_of(n);
    const uint32_t needed = 1u << TREES_ROOTS | 1u << TREES_FEATURES | 1u << TREES_THRESHOLDS | 1u << TREES_WEIGHTS;
    const uint32_t no = 1u << TREES_LEFT | 1u << TREES_MODES | 1u << TREES_MEMBERS | 1u << TREES_LEAVES;
    int64_t nodes = -1;
    if (bits < 2 || bits > TREES_MOST_LINK || graph_attr_int(n, "depth") < 1)
        return infer_error(c, n, "link_bits or depth is out of range");
    if (!check_operands(c, n, needed, ~no) || !check_walk(c, n, width))
        return false;
    if (infer_in(n, TREES_FEATURES)->dt != DT_U32)
        return infer_error(c, n, "the features have to be u32");
    (void)entries_of(n, TREES_FEATURES, &nodes);
    const tensor_data *roots = trees_table(n, TREES_ROOTS);
    return check_lengths(c, n, nodes) && check_leaves(c, n, roots ? roots->count - 1 : -1, 0) &&
           check_links(c, n, width) && result(c, n, out);
}

/* Whatever the answers are, the leaf that they lead to is one of the tree's. */
static bool check_sweep(compiler *c, const graph_node *n)
{
    const tensor_data *roots = trees_table(n, TREES_ROOTS), *rights = trees_table(n, TREES_RIGHTS);
    for (int64_t t = 0; roots && rights && t + 1 < roots->count; t++)
        for (int64_t i = tensor_get_i64(roots, t); i < tensor_get_i64(roots, t + 1); i++) {
            const double leaf = i < rights->count ? tensor_get_f64(rights, i) - trees_base(rights->dt) : -1;
            if (!(leaf >= 0 && leaf <= (double)(tensor_get_i64(roots, t + 1) - tensor_get_i64(roots, t))))
                return infer_error(c, n, "node %lld leads to a leaf that its tree does not have", (long long)i);
        }
    return true;
}

bool infer_tree_sweep(compiler *c, const graph_node *n, type *out)
{
    const uint32_t lists = 1u << TREES_LISTS | 1u << TREES_TARGETS | 1u << TREES_WEIGHT_IDS;
    const uint32_t no = 1u << TREES_MODES | 1u << TREES_MEMBERS | (trees_are_dense(n) ? lists : 0);
    const uint32_t needed = 1u << TREES_ROOTS | 1u << TREES_LEFT | 1u << TREES_FEATURES | 1u << TREES_THRESHOLDS |
                            1u << TREES_WEIGHTS | 1u << TREES_FIRSTS | 1u << TREES_RIGHTS;
    if (graph_attr_int(n, "n_targets") < 1)
        return infer_error(c, n, "there is no target");
    int64_t nodes = -1, firsts = -1;
    return check_operands(c, n, needed, ~no) && check_rows(c, n) && infer_tree_ensemble(c, n, out) &&
           check_sweep(c, n) &&
           (!entries_of(n, TREES_FEATURES, &nodes) || !entries_of(n, TREES_FIRSTS, &firsts) || nodes == firsts ||
            infer_error(c, n, "there are %lld first leaves for %lld nodes", (long long)firsts, (long long)nodes));
}
