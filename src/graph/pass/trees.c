/* SPDX-License-Identifier: Apache-2.0 */
/* choose-trees: which form an ensemble of decision trees gets (graph/op/trees.h). The table is the smallest mostly and
 * takes any tree. Links take about as much, and two thirds of the instructions, if a word holds those of a node. Nested
 * ifs take the fewest instructions for a row, and three times the memory or more. Complete trees need no numbers of
 * children and no comparison of where a walk is, and several rows can be walked side by side; nodes that only fill up
 * levels cost memory. Levels are complete trees whose nodes of a level are alike, so each level is stored once. Vectors
 * ask all nodes of a tree, and as many rows at a time as a vector has lanes: that pays where a tree is not large. */
#include "graph/op/trees.h"
#include "graph/op.h"
#include "graph/pass.h"
#include "graph/pass/rewrite.h"

#include <math.h>
#include <string.h>

#define SIDE_BY_SIDE    16         /* rows of complete trees where there are vectors */
#define BESIDE_WIDE     8          /* the same with vectors of 64 bytes: of 16, gcc keeps the places in
                                    * vectors, and each step moves them to general registers and back */
#define BESIDE_LEVELS   32         /* of levels; gcc unrolls loops over 16 lanes before it looks for vectors */
#define VECTORS         2          /* of rows, for each of which a node is read once */
#define MOST_DENSE      32         /* targets for which a list is a vector */
#define FEW_ROWS        8          /* below, a walk of a row alone is as fast */
#define MOST_FILL       8          /* times the nodes that there are */
#define MOST_BYTES      (1 << 19)  /* of complete trees, which lie in a second-level cache */
#define COLUMNS_BYTES   32768      /* of a block of rows in vectors, on the stack */
/* Instructions for a row and a tree: of a step of a walk in complete trees and in tables; of a node for a vector of
 * rows, where it selects and where it is asked in preorder; of a leaf that is looked up. */
#define COMPLETE_STEP   10
#define TABLE_STEP      15
#define SELECT_NODE     3
#define SWEEP_NODE      7
#define SWEEP_LEAF      4
#define SWEEP_LANES     8 /* with more, a step waits for its comparisons, whose result is a mask; with fewer, a walk of
                           * small trees takes fewer instructions (AArch64: 84 instead of 136) */
#define NODE_CODE       22         /* bytes of a comparison with its threshold and its branch in Thumb code */
#define LEAF_CODE       8          /* of an addition and a jump */
#define LIST_CODE       4          /* of a leaf that is a number */
#define ADD_CODE        48         /* of the loop over a list, which each tree has */
#define WALK_CODE       200        /* of the walk over tables */
#define LINKS_CODE      150        /* of the walk along links */

typedef struct trees {
    rewriter r;
    const pass_options *o;
    const graph_node *n;
    int64_t count, nodes, leaves, depth;
    int64_t bytes[GRAPH_TREES_COUNT]; /* of tables and code, by form; -1: the trees cannot have it */
    int64_t *levels;                  /* as find_levels says */
    int64_t lanes, beside;            /* of a vector; rows of a block of vectors */
    bool selects;                     /* vectors: of complete trees */
} trees;

static const char *const form_names[GRAPH_TREES_COUNT] = {"auto", "table", "branches", "complete", "links", "levels",
                                                          "vectors"};

static int64_t bytes_of(const graph_node *n, uint32_t i)
{
    const tensor_data *t = trees_table(n, i);
    return t ? t->count * (int64_t)(dtype_bits(t->dt) / 8) : 0;
}

/* The tables of leaves that every form has. */
static int64_t list_bytes(const graph_node *n)
{
    return trees_table(n, TREES_LISTS) ? bytes_of(n, TREES_LISTS) + bytes_of(n, TREES_TARGETS) +
                                             bytes_of(n, TREES_WEIGHTS) + bytes_of(n, TREES_WEIGHT_IDS)
                                       : 0;
}

/* What says of a leaf what it adds: a list, a weight, or the number of a weight. */
static uint32_t leaf_table(const graph_node *n)
{
    return trees_table(n, TREES_LISTS)        ? TREES_LEAVES
           : trees_table(n, TREES_WEIGHT_IDS) ? TREES_WEIGHT_IDS
                                              : TREES_WEIGHTS;
}

/* What a leaf of the trees adds, by the number that links have: a list, or an entry of the weights. */
static int64_t leaf_number(const graph_node *n, int64_t leaf)
{
    const tensor_data *t = leaf_table(n) == TREES_WEIGHTS ? NULL : trees_table(n, leaf_table(n));
    return t ? tensor_get_i64(t, leaf) : leaf;
}

/* Bits of a link, beside the column in a word; 0: a link would need more. */
static int64_t link_bits(const trees *v)
{
    const graph_node *n = v->n;
    int64_t most = 0, feature = 1, bits = TREES_MOST_LINK;
    for (int64_t i = 0; i < v->nodes; i++) {
        const int64_t f = tensor_get_i64(trees_table(n, TREES_FEATURES), i);
        const int64_t right = tensor_get_i64(trees_table(n, TREES_LEFT), i) + 1;
        feature = f > feature ? f : feature;
        most = right > most ? right : most;
    }
    for (int64_t i = 0; i < v->leaves; i++)
        most = leaf_number(n, i) > most ? leaf_number(n, i) : most;
    while (bits > 1 && feature >> (32 - 2 * bits) != 0)
        bits--;
    return most < (int64_t)1 << (bits - 1) ? bits : 0;
}

/* Each tree has a node, and all have one mode. */
static bool can_link(const trees *v)
{
    const tensor_data *roots = trees_table(v->n, TREES_ROOTS);
    for (int64_t t = 0; t < v->count; t++)
        if (tensor_get_i64(roots, t) == tensor_get_i64(roots, t + 1))
            return false;
    return !trees_table(v->n, TREES_MODES) && v->depth <= TREES_MOST_BRANCHES && link_bits(v) > 0;
}

static bool all_known(const graph_node *n)
{
    for (uint32_t i = TREES_ROOTS; i < n->n_inputs; i++)
        if (n->inputs[i] && !graph_constant(n->inputs[i]))
            return false;
    return true;
}

/* Whether the nodes at..end, which are a subtree, are like first[level], the first node of each level seen so far. */
static bool is_level_by_level(const trees *v, int64_t level, int64_t at, int64_t end, int64_t *first)
{
    static const uint32_t tables[] = {TREES_FEATURES, TREES_THRESHOLDS, TREES_MODES};
    if (at == end || level == v->depth)
        return true;
    first[level] = first[level] < 0 ? at : first[level];
    for (size_t i = 0; i < sizeof tables / sizeof *tables; i++) {
        const tensor_data *t = trees_table(v->n, tables[i]);
        if (t && !(tensor_get_f64(t, at) <= tensor_get_f64(t, first[level]) &&
                   tensor_get_f64(t, at) >= tensor_get_f64(t, first[level])))
            return false;
    }
    const int64_t middle = at + 1 + tensor_get_i64(trees_table(v->n, TREES_LEFT), at);
    return is_level_by_level(v, level + 1, at + 1, middle, first) &&
           is_level_by_level(v, level + 1, middle, end, first);
}

/* The node that says what level `level` of a tree asks, at level * count + tree; where there is none, -1. Whether all
 * trees have such levels. */
static bool find_levels(const trees *v, int64_t *out)
{
    int64_t first[TREES_MOST_LEVELS + 1];
    const tensor_data *roots = trees_table(v->n, TREES_ROOTS);
    for (int64_t t = 0; t < v->count; t++) {
        for (int64_t k = 0; k <= TREES_MOST_LEVELS; k++)
            first[k] = -1;
        if (!is_level_by_level(v, 0, tensor_get_i64(roots, t), tensor_get_i64(roots, t + 1), first))
            return false;
        for (int64_t k = 0; k < v->depth; k++)
            out[k * v->count + t] = first[k];
    }
    return true;
}

static double log2_of(int64_t n)
{
    double bits = 0;
    for (; n > 1; n = (n + 1) / 2)
        bits++;
    return bits;
}

/* About how many instructions a row takes for a tree, in vectors or, side by side with others, by a walk. */
static double work_in_vectors(const trees *v)
{
    const double all = (double)((int64_t)1 << v->depth), nodes = (double)v->nodes / (double)v->count;
    if (!v->selects)
        return v->lanes < SWEEP_LANES ? (double)INFINITY : nodes * SWEEP_NODE / SWEEP_LANES + SWEEP_LEAF;
    return all * SELECT_NODE / (double)v->lanes;
}

static double work_of_walk(const trees *v)
{
    return v->bytes[GRAPH_TREES_COMPLETE] >= 0 && v->bytes[GRAPH_TREES_COMPLETE] <= MOST_BYTES
               ? (double)(v->depth * COMPLETE_STEP)
               : (log2_of(v->leaves / v->count) + 1) * TABLE_STEP;
}

/* NaN at a node that tracks is replaced by what goes left everywhere: less than each threshold. */
static bool has_finite_thresholds(const graph_node *n)
{
    const tensor_data *t = trees_table(n, TREES_THRESHOLDS);
    for (int64_t i = 0; i < t->count; i++)
        if (!isfinite(tensor_get_f64(t, i)))
            return false;
    return true;
}

/* Whether rows can be walked in vectors; how many rows a block has then, as far as there are so many. */
static bool can_be_vectors(trees *v)
{
    const graph_node *n = v->n;
    const type *x = &n->inputs[TREES_X]->type;
    const int64_t size = (int64_t)(dtype_bits(x->dt) / 8), tracks = graph_attr_int(n, "tracks");
    const int64_t how = graph_attr_int(n, "aggregate");
    int64_t width = 0, rows = 2 * TREES_MOST_ROWS;
    v->lanes = v->o->target->vector_bytes / (uint32_t)size;
    if (v->o->target->address_bits == 32 || v->lanes < 2 || v->leaves >= TREES_BASE || trees_table(n, TREES_MODES) ||
        (how != TREES_SUM && how != TREES_AVERAGE) || !dim_is_const(x->shape.dims[1], &width) ||
        (tracks != TREES_TRACK_NONE && (graph_attr_int(n, "mode") > TREES_GT || !has_finite_thresholds(n))))
        return false;
    (void)dim_is_const(x->shape.dims[0], &rows);
    for (v->beside = VECTORS * v->lanes; v->beside > v->lanes && v->beside > rows; v->beside -= v->lanes)
        ;
    return v->beside <= rows && v->beside <= TREES_MOST_ROWS &&
           width * (tracks == TREES_TRACK_SOME ? 2 : 1) * v->beside * size <= COLUMNS_BYTES;
}

/* Lists without a table of leaves, or such a table without lists, are written by nobody. */
static bool read_trees(trees *v, const graph_node *n)
{
    v->n = n;
    v->count = all_known(n) ? trees_count(n) : 0;
    if (v->count < 1 || !trees_table(n, TREES_LISTS) != !trees_table(n, TREES_LEAVES))
        return false;
    v->nodes = tensor_get_i64(trees_table(n, TREES_ROOTS), v->count);
    v->leaves = v->nodes + v->count;
    v->depth = graph_attr_int(n, "depth");
    const bool simple = v->nodes > 0 && !trees_table(n, TREES_MEMBERS);
    int64_t all = 0;
    for (uint32_t i = TREES_ROOTS; i < TREES_OPERANDS; i++)
        all += bytes_of(n, i);
    v->bytes[GRAPH_TREES_TABLE] = all + WALK_CODE;
    v->bytes[GRAPH_TREES_BRANCHES] = v->bytes[GRAPH_TREES_COMPLETE] = v->bytes[GRAPH_TREES_LINKS] = -1;
    v->bytes[GRAPH_TREES_LEVELS] = v->bytes[GRAPH_TREES_VECTORS] = -1;
    if (simple && can_link(v))
        v->bytes[GRAPH_TREES_LINKS] = bytes_of(n, TREES_ROOTS) + bytes_of(n, TREES_THRESHOLDS) + 4 * v->nodes +
                                      (trees_table(n, TREES_LISTS)
                                           ? list_bytes(n)
                                           : bytes_of(n, TREES_WEIGHTS) + bytes_of(n, TREES_TARGETS)) + LINKS_CODE;
    if (simple && v->depth <= TREES_MOST_BRANCHES)
        v->bytes[GRAPH_TREES_BRANCHES] =
            v->nodes * NODE_CODE +
            (trees_have_long_lists(n) ? v->leaves * LIST_CODE + v->count * ADD_CODE + list_bytes(n)
                                      : v->leaves * LEAF_CODE);
    const bool vectors = simple && v->depth <= TREES_MOST_BRANCHES && can_be_vectors(v);
    v->selects = vectors && v->depth <= TREES_MOST_SELECT && v->count << v->depth <= MOST_FILL * v->leaves;
    if (vectors)
        v->bytes[GRAPH_TREES_VECTORS] = v->bytes[GRAPH_TREES_TABLE] + 2 * bytes_of(n, TREES_THRESHOLDS);
    if (!simple || v->depth > TREES_MOST_LEVELS || v->count > INT32_MAX >> (TREES_MOST_LEVELS + 3))
        return true;
    const int64_t per_node = (bytes_of(n, TREES_FEATURES) + bytes_of(n, TREES_THRESHOLDS) + bytes_of(n, TREES_MODES)) /
                             v->nodes;
    const tensor_data *leaf = trees_table(n, leaf_table(n));
    const int64_t per_leaf = (int64_t)(dtype_bits(leaf->dt) / 8);
    const int64_t filled = (v->count << v->depth) * per_leaf + list_bytes(n) + WALK_CODE;
    v->bytes[GRAPH_TREES_COMPLETE] = v->count * (((int64_t)1 << v->depth) - 1) * per_node + filled;
    if (v->selects)
        v->bytes[GRAPH_TREES_VECTORS] = v->bytes[GRAPH_TREES_COMPLETE];
    v->levels = arena_array(&v->r.c->mem, int64_t, (size_t)(v->count * v->depth));
    if (find_levels(v, v->levels))
        v->bytes[GRAPH_TREES_LEVELS] = v->count * v->depth * per_node + filled;
    return true;
}

/* --- which form --- */

static bool is_single_row(const graph_node *n)
{
    int64_t rows = 0;
    return dim_is_const(n->inputs[TREES_X]->type.shape.dims[0], &rows) && rows < FEW_ROWS;
}

static bool is_within(const trees *v, graph_trees form, int64_t most)
{
    return v->bytes[form] >= 0 && v->bytes[form] <= most;
}

/* Memory is dear. */
static graph_trees for_board(const trees *v)
{
    const int64_t table = v->bytes[GRAPH_TREES_TABLE], levels = v->bytes[GRAPH_TREES_LEVELS];
    const bool code = (v->o->target->features & TARGET_FPU) != 0 && is_within(v, GRAPH_TREES_BRANCHES, table);
    if (code && (levels < 0 || v->bytes[GRAPH_TREES_BRANCHES] <= levels))
        return GRAPH_TREES_BRANCHES;
    if (is_within(v, GRAPH_TREES_LEVELS, table + table / 8))
        return GRAPH_TREES_LEVELS;
    if (code)
        return GRAPH_TREES_BRANCHES;
    if (is_within(v, GRAPH_TREES_COMPLETE, table + table / 8))
        return GRAPH_TREES_COMPLETE;
    return is_within(v, GRAPH_TREES_LINKS, table + table / 8) ? GRAPH_TREES_LINKS : GRAPH_TREES_TABLE;
}

static graph_trees by_size(const trees *v)
{
    if (v->o->target->address_bits == 32)
        return for_board(v);
    const bool several = is_within(v, GRAPH_TREES_COMPLETE, MOST_BYTES) && !is_single_row(v->n) &&
                         v->count << v->depth <= MOST_FILL * v->leaves;
    if (is_within(v, GRAPH_TREES_LEVELS, several ? MOST_BYTES : v->bytes[GRAPH_TREES_TABLE]))
        return GRAPH_TREES_LEVELS;
    if (is_within(v, GRAPH_TREES_VECTORS, MOST_BYTES) && !is_single_row(v->n) && work_in_vectors(v) < work_of_walk(v))
        return GRAPH_TREES_VECTORS;
    return several ? GRAPH_TREES_COMPLETE : GRAPH_TREES_TABLE;
}

static graph_trees choose(const trees *v)
{
    const graph_trees asked = v->o->trees;
    if (asked == GRAPH_TREES_AUTO)
        return by_size(v);
    return v->bytes[asked] < 0 ? GRAPH_TREES_TABLE : asked;
}

static void note(trees *v, graph_trees form)
{
    compiler *c = v->r.c;
    const bool other = v->o->trees != GRAPH_TREES_AUTO && v->o->trees != form;
    const char *why = other ? ", because these trees cannot have the form asked for" : "";
    const char *text = arena_printf(&c->mem, "trees as %s: about %lld bytes%s", form_names[form],
                                    (long long)v->bytes[form], why);
    const graph_note n = {"choose-trees", v->n->op->name, v->n->outputs[0]->name, text, v->n->loc};
    vec_push(&c->mem, &v->r.f->module->notes, n);
}

/* --- the other forms --- */

#define SAME_ATTRS 5

static void copy_attrs(const trees *v, attr *out)
{
    static const char *const same[SAME_ATTRS] = {"depth", "n_targets", "mode", "tracks", "aggregate"};
    for (uint32_t i = 0; i < SAME_ATTRS; i++)
        out[i] = attr_int(v->r.c, same[i], graph_attr_int(v->n, same[i]));
}

static graph_value *as_branches(trees *v)
{
    static const uint32_t code[] = {TREES_ROOTS, TREES_LEFT, TREES_FEATURES, TREES_THRESHOLDS, TREES_MODES,
                                    TREES_LEAVES, TREES_LISTS, TREES_WEIGHTS, TREES_TARGETS, TREES_WEIGHT_IDS};
    static const uint32_t listed[] = {TREES_LISTS, TREES_WEIGHTS, TREES_TARGETS, TREES_WEIGHT_IDS};
    enum { TABLES = sizeof code / sizeof *code };
    compiler *c = v->r.c;
    const graph_node *n = v->n;
    const bool lists = trees_have_long_lists(n);
    graph_value *in[TREES_OPERANDS] = {[TREES_X] = n->inputs[TREES_X]};
    attr attrs[SAME_ATTRS + TABLES];
    copy_attrs(v, attrs);
    for (size_t i = 0; lists && i < sizeof listed / sizeof *listed; i++)
        in[listed[i]] = listed[i] < n->n_inputs ? n->inputs[listed[i]] : NULL;
    for (uint32_t i = 0; i < TABLES; i++) {
        const tensor_data *t = trees_table(n, code[i]);
        attrs[SAME_ATTRS + i] = attr_tensor(c, trees_table_name(code[i]),
                                            t ? t : tensor_dense(c, DT_U8, 1, (int64_t[]){0}, ""));
    }
    return rewrite_emit(&v->r, "tree_branches", TREES_OPERANDS, in, SAME_ATTRS + TABLES, attrs, n->loc);
}

/* Where an entry of a table of complete trees comes from; of a node that only fills up: -1. */
typedef struct filling {
    const trees *v;
    int64_t *nodes, *leaves;
} filling;

static void fill(const filling *f, int64_t level, int64_t i, int64_t at, int64_t end, int64_t leaf)
{
    if (level == f->v->depth) {
        f->leaves[i] = leaf;
        return;
    }
    const bool is_node = at < end;
    const int64_t left = is_node ? tensor_get_i64(trees_table(f->v->n, TREES_LEFT), at) : 0;
    const int64_t middle = is_node ? at + 1 + left : at;
    f->nodes[f->v->count * (((int64_t)1 << level) - 1) + i] = is_node ? at : -1;
    fill(f, level + 1, 2 * i, is_node ? at + 1 : at, middle, leaf);
    fill(f, level + 1, 2 * i + 1, middle, end, is_node ? leaf + left + 1 : leaf);
}

/* The entries `from` of a table, 0 where there is none. */
static graph_value *rearranged(trees *v, uint32_t table, const int64_t *from, int64_t count)
{
    compiler *c = v->r.c;
    const tensor_data *t = trees_table(v->n, table);
    if (!t)
        return NULL;
    const size_t size = dtype_bits(t->dt) / 8;
    uint8_t *bytes = arena_array(&c->mem, uint8_t, (size_t)count * size);
    for (int64_t i = 0; i < count; i++) {
        uint8_t *to = bytes + (size_t)i * size;
        if (dtype_is_float(t->dt))
            dtype_store_f64(t->dt, to, from[i] < 0 ? 0 : tensor_get_f64(t, from[i]));
        else
            dtype_store_i64(t->dt, to, from[i] < 0 ? 0 : tensor_get_i64(t, from[i]));
    }
    return rewrite_constant(&v->r, tensor_dense(c, t->dt, 1, &count, bytes), trees_table_name(table), v->n->loc);
}

/* The weights of each list for all targets. */
static graph_value *dense_lists(trees *v, int64_t targets)
{
    compiler *c = v->r.c;
    const tensor_data *lists = trees_table(v->n, TREES_LISTS), *to = trees_table(v->n, TREES_TARGETS);
    const tensor_data *w = trees_table(v->n, TREES_WEIGHTS), *ids = trees_table(v->n, TREES_WEIGHT_IDS);
    const int64_t count = (lists->count - 1) * targets;
    const size_t size = dtype_bits(w->dt) / 8;
    uint8_t *bytes = arena_array(&c->mem, uint8_t, (size_t)count * size);
    for (int64_t i = 0; i < count; i++)
        dtype_store_f64(w->dt, bytes + (size_t)i * size, 0);
    for (int64_t i = 0; i + 1 < lists->count; i++)
        for (int64_t k = tensor_get_i64(lists, i); k < tensor_get_i64(lists, i + 1); k++)
            dtype_store_f64(w->dt, bytes + (size_t)(i * targets + tensor_get_i64(to, k)) * size,
                            tensor_get_f64(w, ids ? tensor_get_i64(ids, k) : k));
    return rewrite_constant(&v->r, tensor_dense(c, w->dt, 1, &count, bytes), "weights", v->n->loc);
}

/* With several rows side by side, additions for all targets are vectors, and no list is as long as another. */
static bool wants_dense(const trees *v, int64_t targets)
{
    const tensor_data *lists = trees_table(v->n, TREES_LISTS), *to = trees_table(v->n, TREES_TARGETS);
    const int64_t how = graph_attr_int(v->n, "aggregate");
    if (!lists || targets > MOST_DENSE || lists->count * targets > MOST_BYTES / 8 ||
        (how != TREES_SUM && how != TREES_AVERAGE))
        return false;
    for (int64_t i = 0; i + 1 < lists->count; i++)
        for (int64_t k = tensor_get_i64(lists, i) + 1; k < tensor_get_i64(lists, i + 1); k++)
            if (tensor_get_i64(to, k) <= tensor_get_i64(to, k - 1)) /* a target twice would be added twice */
                return false;
    return true;
}

/* Of levels each is stored once. */
static graph_value *as_complete(trees *v, graph_trees form)
{
    compiler *c = v->r.c;
    const bool levels = form == GRAPH_TREES_LEVELS, vectors = form == GRAPH_TREES_VECTORS;
    const graph_node *n = v->n;
    const int64_t leaves = v->count << v->depth, all = leaves - v->count, nodes = levels ? v->count * v->depth : all;
    filling f = {v, arena_array(&c->mem, int64_t, (size_t)all), arena_array(&c->mem, int64_t, (size_t)leaves)};
    const tensor_data *roots = trees_table(n, TREES_ROOTS);
    for (int64_t t = 0; t < v->count; t++) {
        const int64_t at = tensor_get_i64(roots, t);
        fill(&f, 0, t, at, tensor_get_i64(roots, t + 1), at + t);
    }
    graph_value *in[TREES_OPERANDS] = {NULL};
    for (uint32_t i = 0; i < n->n_inputs; i++)
        in[i] = n->inputs[i];
    in[TREES_ROOTS] = in[TREES_LEFT] = NULL;
    const int64_t *from = levels ? v->levels : f.nodes;
    in[TREES_FEATURES] = rearranged(v, TREES_FEATURES, from, nodes);
    in[TREES_THRESHOLDS] = rearranged(v, TREES_THRESHOLDS, from, nodes);
    in[TREES_MODES] = rearranged(v, TREES_MODES, from, nodes);
    in[leaf_table(n)] = rearranged(v, leaf_table(n), f.leaves, leaves);
    const bool side_by_side = vectors || (v->o->target->address_bits > 32 && !is_single_row(n));
    const int64_t targets = graph_attr_int(n, "n_targets");
    const bool dense = side_by_side && wants_dense(v, targets);
    if (dense) {
        in[TREES_WEIGHTS] = dense_lists(v, targets);
        in[TREES_LISTS] = in[TREES_TARGETS] = in[TREES_WEIGHT_IDS] = NULL;
    }
    const int64_t beside = v->o->target->vector_bytes >= 64 ? BESIDE_WIDE : SIDE_BY_SIDE;
    const int64_t rows = !side_by_side ? 1 : vectors ? v->beside : levels ? BESIDE_LEVELS : beside;
    attr attrs[SAME_ATTRS + 5] = {attr_int(c, "trees", v->count), attr_int(c, "rows", rows),
                                  attr_int(c, "dense", dense), attr_int(c, "levels", levels),
                                  attr_int(c, "lanes", vectors ? v->lanes : 1)};
    copy_attrs(v, attrs + 5);
    return rewrite_emit(&v->r, "tree_complete", TREES_OPERANDS, in, SAME_ATTRS + 5, attrs, n->loc);
}

/* The first leaves of the nodes at..end and of their right subtrees; leaf: the first one of all. */
static void find_leaves(const trees *v, int64_t at, int64_t end, int64_t leaf, uint8_t *firsts, uint8_t *rights)
{
    if (at == end)
        return;
    const dtype dt = trees_table(v->n, TREES_THRESHOLDS)->dt;
    const size_t size = dtype_bits(dt) / 8;
    const int64_t left = tensor_get_i64(trees_table(v->n, TREES_LEFT), at), middle = at + 1 + left;
    dtype_store_f64(dt, firsts + (size_t)at * size, trees_base(dt) + (double)leaf);
    dtype_store_f64(dt, rights + (size_t)at * size, trees_base(dt) + (double)(leaf + left + 1));
    find_leaves(v, at + 1, middle, leaf, firsts, rights);
    find_leaves(v, middle, end, leaf + left + 1, firsts, rights);
}

static graph_value *as_sweep(trees *v)
{
    compiler *c = v->r.c;
    const graph_node *n = v->n;
    const tensor_data *roots = trees_table(n, TREES_ROOTS);
    const dtype dt = trees_table(n, TREES_THRESHOLDS)->dt;
    uint8_t *firsts = arena_array(&c->mem, uint8_t, (size_t)v->nodes * dtype_bits(dt) / 8);
    uint8_t *rights = arena_array(&c->mem, uint8_t, (size_t)v->nodes * dtype_bits(dt) / 8);
    for (int64_t t = 0; t < v->count; t++)
        find_leaves(v, tensor_get_i64(roots, t), tensor_get_i64(roots, t + 1), 0, firsts, rights);
    graph_value *in[TREES_MOST_OPERANDS] = {NULL};
    for (uint32_t i = 0; i < n->n_inputs; i++)
        in[i] = n->inputs[i];
    const bool dense = wants_dense(v, graph_attr_int(n, "n_targets"));
    if (dense) {
        in[TREES_WEIGHTS] = dense_lists(v, graph_attr_int(n, "n_targets"));
        in[TREES_LISTS] = in[TREES_TARGETS] = in[TREES_WEIGHT_IDS] = NULL;
    }
    in[TREES_FIRSTS] = rewrite_constant(&v->r, tensor_dense(c, dt, 1, &v->nodes, firsts),
                                        trees_table_name(TREES_FIRSTS), n->loc);
    in[TREES_RIGHTS] = rewrite_constant(&v->r, tensor_dense(c, dt, 1, &v->nodes, rights),
                                        trees_table_name(TREES_RIGHTS), n->loc);
    attr attrs[SAME_ATTRS + 3] = {attr_int(c, "rows", v->beside), attr_int(c, "lanes", v->lanes),
                                  attr_int(c, "dense", dense)};
    copy_attrs(v, attrs + 3);
    return rewrite_emit(&v->r, "tree_sweep", TREES_MOST_OPERANDS, in, SAME_ATTRS + 3, attrs, n->loc);
}

/* The words of the nodes at..end, which are a subtree; leaf: its first one. */
static void put_links(const trees *v, int64_t bits, int64_t at, int64_t end, int64_t leaf, uint8_t *words)
{
    const graph_node *n = v->n;
    if (at == end)
        return;
    const int64_t last = (int64_t)1 << (bits - 1), left = tensor_get_i64(trees_table(n, TREES_LEFT), at);
    const int64_t middle = at + 1 + left, right_leaf = leaf + left + 1;
    const int64_t yes = left ? 1 : last + leaf_number(n, leaf);
    const int64_t no = middle < end ? middle - at : last + leaf_number(n, right_leaf);
    const int64_t feature = tensor_get_i64(trees_table(n, TREES_FEATURES), at);
    const int64_t word = feature | no << (32 - 2 * bits) | yes << (32 - bits);
    dtype_store_i64(DT_U32, words + at * 4, word);
    put_links(v, bits, at + 1, middle, leaf, words);
    put_links(v, bits, middle, end, right_leaf, words);
}

/* A weight for each entry of lists, not its number: fewer steps for a leaf, where that is not much larger. */
static bool spells_weights(const trees *v)
{
    const tensor_data *w = trees_table(v->n, TREES_WEIGHTS), *ids = trees_table(v->n, TREES_WEIGHT_IDS);
    const int64_t table = v->bytes[GRAPH_TREES_TABLE], bytes = v->bytes[GRAPH_TREES_LINKS];
    return ids && trees_table(v->n, TREES_LISTS) &&
           bytes - bytes_of(v->n, TREES_WEIGHTS) - bytes_of(v->n, TREES_WEIGHT_IDS) +
                   ids->count * (int64_t)(dtype_bits(w->dt) / 8) <= table + table / 8;
}

static graph_value *spelled_weights(trees *v)
{
    const tensor_data *ids = trees_table(v->n, TREES_WEIGHT_IDS);
    int64_t *from = arena_array(&v->r.c->mem, int64_t, (size_t)ids->count + 1u);
    for (int64_t i = 0; i < ids->count; i++)
        from[i] = tensor_get_i64(ids, i);
    return rearranged(v, TREES_WEIGHTS, from, ids->count);
}

static graph_value *as_links(trees *v)
{
    compiler *c = v->r.c;
    const graph_node *n = v->n;
    const tensor_data *roots = trees_table(n, TREES_ROOTS);
    const int64_t bits = link_bits(v);
    uint8_t *words = arena_array(&c->mem, uint8_t, (size_t)v->nodes * 4u);
    for (int64_t t = 0; t < v->count; t++)
        put_links(v, bits, tensor_get_i64(roots, t), tensor_get_i64(roots, t + 1), tensor_get_i64(roots, t) + t, words);
    graph_value *in[TREES_OPERANDS] = {NULL};
    for (uint32_t i = 0; i < n->n_inputs; i++)
        in[i] = n->inputs[i];
    in[TREES_LEFT] = in[TREES_LEAVES] = NULL;
    if (spells_weights(v))
        in[TREES_WEIGHTS] = spelled_weights(v);
    if (!trees_table(n, TREES_LISTS) || in[TREES_WEIGHTS] != n->inputs[TREES_WEIGHTS])
        in[TREES_WEIGHT_IDS] = NULL; /* links have them, or none are needed */
    in[TREES_FEATURES] = rewrite_constant(&v->r, tensor_dense(c, DT_U32, 1, &v->nodes, words),
                                          trees_table_name(TREES_FEATURES), n->loc);
    attr attrs[SAME_ATTRS + 2] = {attr_int(c, "link_bits", bits), attr_int(c, "checked", 1)};
    copy_attrs(v, attrs + 2);
    return rewrite_emit(&v->r, "tree_links", TREES_OPERANDS, in, SAME_ATTRS + 2, attrs, n->loc);
}

static graph_value *changed(trees *v, const graph_node *n)
{
    if (strcmp(n->op->name, "tree_ensemble") != 0 || !read_trees(v, n))
        return NULL;
    const graph_trees form = choose(v);
    note(v, form);
    switch (form) {
    case GRAPH_TREES_BRANCHES: return as_branches(v);
    case GRAPH_TREES_COMPLETE:
    case GRAPH_TREES_LEVELS: return as_complete(v, form);
    case GRAPH_TREES_VECTORS: return v->selects ? as_complete(v, form) : as_sweep(v);
    case GRAPH_TREES_LINKS: return as_links(v);
    case GRAPH_TREES_AUTO:
    case GRAPH_TREES_TABLE:
    case GRAPH_TREES_COUNT: break;
    }
    return NULL;
}

static bool run(compiler *c, graph_func *f, const pass_options *o)
{
    trees v = {.o = o};
    rewrite_begin(&v.r, c, f);
    for (uint32_t i = 0; i < f->nodes.len && !v.r.failed; i++) {
        graph_node *n = f->nodes.data[i];
        rewrite_operands(n);
        graph_value *y = changed(&v, n);
        if (!y || !rewrite_replace(&v.r, n->outputs[0], y))
            rewrite_keep(&v.r, n);
    }
    rewrite_end(&v.r);
    graph_remove_dead(f);
    return !v.r.failed;
}

bool graph_pass_trees(compiler *c, graph_module *m, const pass_options *o)
{
    bool ok = true;
    for (uint32_t i = 0; i < m->funcs.len; i++)
        if (!graph_is_fixed(m->funcs.data[i]))
            ok &= run(c, m->funcs.data[i], o);
    return ok;
}
