/* SPDX-License-Identifier: Apache-2.0 */
/* The forms of an ensemble of trees whose walk does not read ranges of nodes (graph/op/trees.h): nested ifs, which hold
 * features, thresholds and leaves as constants; complete trees, where the place of a node says its children's, and
 * whose levels are written one behind another; and nodes that say where both children are. */
#include "te/op/trees.h"

/* --- nested ifs --- */

/* A range of nodes, the number of its first leaf, and how many levels are left. */
typedef struct subtree {
    int64_t at, end, leaf, depth, tree;
} subtree;

static int64_t number(const walk *v, uint32_t table, int64_t i)
{
    return tensor_get_i64(trees_table(v->n, table), i);
}

static walk_node known_node(const walk *v, int64_t at, int64_t feature)
{
    compiler *c = v->c;
    walk_node n = {.threshold = tir_float(c, v->out->dt, tensor_get_f64(trees_table(v->n, TREES_THRESHOLDS), at)),
                   .fixed_mode = trees_table(v->n, TREES_MODES) ? number(v, TREES_MODES, at)
                                                                : graph_attr_int(v->n, "mode")};
    if (graph_attr_int(v->n, "tracks") == TREES_TRACK_SOME && (feature & 1) != 0)
        n.tracks = tir_int(c, DT_BOOL, 1);
    return n;
}

static tir_stmt *add_entry(const walk *v, int64_t to, int64_t entry)
{
    const tensor_data *ids = trees_table(v->n, TREES_WEIGHT_IDS);
    const double w = tensor_get_f64(trees_table(v->n, TREES_WEIGHTS), ids ? tensor_get_i64(ids, entry) : entry);
    return walk_add_weight(v, walk_i32(v, to), tir_float(v->c, v->out->dt, w));
}

/* What a leaf does if its list has one entry at most; NULL: it has more, or they are not known here. Where lists follow
 * the tree, the leaf says that none does. */
static tir_stmt *add_short_list(const walk *v, int64_t list)
{
    const tensor_data *lists = trees_table(v->n, TREES_LISTS);
    if (!lists)
        return NULL;
    const int64_t entry = tensor_get_i64(lists, list), count = tensor_get_i64(lists, list + 1) - entry;
    tir_stmt *parts[2];
    uint32_t n = 0;
    if (v->in[TREES_LISTS])
        parts[n++] = loops_set(v->c, v->leaf, walk_i32(v, -1));
    if (count == 1)
        parts[n++] = add_entry(v, number(v, TREES_TARGETS, entry), entry);
    return count > 1 ? NULL : tir_seq(v->c, n, parts);
}

/* A weight is added there and then. A list of several is left for what follows the tree: the leaf sets its number. */
static tir_stmt *reach(const walk *v, const subtree *s)
{
    compiler *c = v->c;
    const tensor_data *leaves = trees_table(v->n, TREES_LEAVES);
    const int64_t leaf = leaves ? tensor_get_i64(leaves, s->leaf) : s->leaf;
    if (trees_table(v->n, TREES_LISTS) || v->in[TREES_LISTS]) {
        tir_stmt *now = add_short_list(v, leaf);
        return now ? now : loops_set(c, v->leaf, walk_i32(v, leaf));
    }
    return add_entry(v, trees_table(v->n, TREES_TARGETS) ? number(v, TREES_TARGETS, s->tree) : 0, leaf);
}

static tir_stmt *branch(const walk *v, const subtree *s)
{
    compiler *c = v->c;
    if (s->at == s->end || s->depth == 0)
        return reach(v, s);
    const bool some = graph_attr_int(v->n, "tracks") == TREES_TRACK_SOME;
    const int64_t feature = number(v, TREES_FEATURES, s->at), middle = s->at + 1 + number(v, TREES_LEFT, s->at);
    const tir_expr_ref place[2] = {v->row, te_i64(v->g, some ? feature / 2 : feature)};
    const subtree left = {s->at + 1, middle, s->leaf, s->depth - 1, s->tree};
    const subtree right = {middle, s->end, s->leaf + middle - s->at, s->depth - 1, s->tree};
    tir_expr_ref x = tir_load(c, v->in[TREES_X], 2, place);
    return tir_if(c, walk_goes_left(v, x, known_node(v, s->at, feature)), branch(v, &left), branch(v, &right));
}

/* Whether a leaf of the tree leaves a list for what follows; not known: it may. */
static bool leaves_lists(const walk *v, const subtree *s)
{
    const tensor_data *lists = trees_table(v->n, TREES_LISTS), *leaves = trees_table(v->n, TREES_LEAVES);
    for (int64_t i = s->leaf; lists && i <= s->leaf + s->end - s->at; i++) {
        const int64_t list = leaves ? tensor_get_i64(leaves, i) : i;
        if (tensor_get_i64(lists, list + 1) - tensor_get_i64(lists, list) > 1)
            return true;
    }
    return !lists && v->in[TREES_LISTS];
}

static tir_stmt *branches_of(const walk *v, int64_t tree)
{
    const int64_t at = number(v, TREES_ROOTS, tree);
    const subtree s = {at, number(v, TREES_ROOTS, tree + 1), at + tree, graph_attr_int(v->n, "depth"), tree};
    tir_stmt *both[2] = {branch(v, &s), NULL};
    tir_expr_ref list = loops_get(v->c, v->leaf);
    if (leaves_lists(v, &s))
        both[1] = tir_if(v->c, tir_binary(v->c, TIR_GE, list, walk_i32(v, 0)), walk_add_list(v, list), NULL);
    return tir_seq(v->c, 2, both);
}

static tir_stmt *build_branches(te_graph *g, void *ctx, const tir_buffer *const *in, const tir_buffer *const *out)
{
    const loops_ctx *l = ctx;
    compiler *c = g->c;
    const tir_var *row = tir_new_var(c, "row", TIR_I64);
    const walk v = {.g = g,
                    .c = c,
                    .n = l->n,
                    .in = in,
                    .out = out[0],
                    .leaf = loops_number(c, "leaf", DT_I32),
                    .sum = graph_attr_int(l->n, "n_targets") == 1 ? loops_number(c, "sum", out[0]->dt) : NULL,
                    .lane = te_i64(g, 0),
                    .row = tir_varref(c, row)};
    const int64_t trees = trees_count(l->n);
    tir_stmt **all = arena_array(&c->mem, tir_stmt *, (size_t)trees + 1u);
    for (int64_t t = 0; t < trees; t++)
        all[t] = branches_of(&v, t);
    tir_stmt *body = walk_row(&v, tir_seq(c, (uint32_t)trees, all));
    if (in[TREES_LISTS])
        body = tir_allocate(c, v.leaf, body);
    return tir_for(c, row, te_i64(g, 0), out[0]->shape[0], FOR_SERIAL, body);
}

bool compute_tree_branches(te_graph *g, const graph_node *n, te_tensor *const *in, te_tensor **out)
{
    return walk_extern(g, n, in, out, build_branches);
}

/* --- complete trees --- */

#define MOST_COLUMNS 32768 /* bytes of a block of rows on the stack */

/* The lanes of a block of rows, or of one row, which is its own lane. */
typedef struct block {
    walk v;
    int64_t lanes;
    tir_expr_ref first; /* row */
    int64_t above;      /* nodes of the levels above the one at hand */
    const tir_buffer *columns; /* features of the lanes, so that those of a column are one behind another; NULL: none */
} block;

/* do_row for each lane; NULL where it does nothing. */
static tir_stmt *each_lane(const block *b, tir_stmt *(*do_row)(const block *, walk *))
{
    compiler *c = b->v.c;
    const tir_var *lane = tir_new_var(c, "lane", TIR_I64);
    walk v = b->v;
    v.lane = b->lanes == 1 ? te_i64(v.g, 0) : tir_varref(c, lane);
    v.row = b->lanes == 1 ? b->first : tir_add(c, b->first, v.lane);
    tir_stmt *body = do_row(b, &v);
    return !body || b->lanes == 1 ? body : tir_for(c, lane, te_i64(v.g, 0), te_i64(v.g, b->lanes), FOR_SERIAL, body);
}

static tir_expr_ref place(const walk *v)
{
    return tir_load(v->c, v->at, 1, &v->lane);
}

static tir_stmt *begin_tree(const block *b, walk *v)
{
    (void)b;
    return tir_store(v->c, v->at, 1, &v->lane, tir_cast(v->c, DT_I32, v->tree));
}

/* The children of node i of a level are 2i and 2i + 1 of the next one. */
static tir_stmt *step_down(const block *b, walk *v)
{
    compiler *c = v->c;
    tir_expr_ref i = place(v), two = walk_i32(v, 2);
    tir_expr_ref among = trees_have_levels(v->n) ? tir_cast(c, DT_I32, v->tree) : i;
    tir_expr_ref at = tir_add(c, walk_i32(v, b->above), among), feature = walk_entry(v, TREES_FEATURES, at);
    const tir_expr_ref column = walk_column(v, feature), from[2] = {v->row, column}, here[2] = {column, v->lane};
    tir_expr_ref x = b->columns ? tir_load(c, b->columns, 2, here) : tir_load(c, v->in[TREES_X], 2, from);
    tir_expr_ref left = walk_goes_left(v, x, walk_node_of(v, at, feature));
    if (b->lanes == 1) { /* one instruction that is skipped or not */
        tir_expr_ref yes = tir_mul(c, i, two), no = tir_add(c, yes, walk_i32(v, 1));
        return tir_store(c, v->at, 1, &v->lane, tir_select(c, left, yes, no));
    }
    tir_expr_ref child = tir_select(c, left, walk_i32(v, 0), walk_i32(v, 1));
    return tir_store(c, v->at, 1, &v->lane, tir_add(c, tir_mul(c, i, two), child));
}

static tir_stmt *end_tree(const block *b, walk *v)
{
    (void)b;
    return walk_add_leaf(v, place(v));
}

static tir_stmt *begin_row(const block *b, walk *v)
{
    compiler *c = v->c;
    tir_stmt *both[2] = {walk_begin_row(v), NULL};
    if (!b->columns)
        return both[0];
    const tir_var *column = tir_new_var(c, "column", TIR_I64);
    const tir_expr_ref from[2] = {v->row, tir_varref(c, column)}, to[2] = {from[1], v->lane};
    both[1] = tir_for(c, column, te_i64(v->g, 0), b->columns->shape[0], FOR_SERIAL,
                      tir_store(c, b->columns, 2, to, tir_load(c, v->in[TREES_X], 2, from)));
    return tir_seq(c, 2, both);
}

static tir_stmt *end_row(const block *b, walk *v)
{
    (void)b;
    return walk_end_row(v);
}

/* Where all lanes ask for the same column, it pays to have them side by side. */
static const tir_buffer *columns_of(const walk *v, int64_t lanes)
{
    int64_t width = 0;
    if (lanes == 1 || !trees_have_levels(v->n) || !dim_is_const(v->n->inputs[TREES_X]->type.shape.dims[1], &width) ||
        width > MOST_COLUMNS / (int64_t)(dtype_bits(v->in[TREES_X]->dt) / 8) / lanes)
        return NULL;
    return tir_buffer_static(v->c, "columns", v->in[TREES_X]->dt, 2, (int64_t[2]){width, lanes}, SCOPE_LOCAL);
}

static tir_stmt *rows_of(const walk *from, int64_t lanes, tir_expr_ref first)
{
    compiler *c = from->c;
    const tir_var *tree = tir_new_var(c, "tree", TIR_I64);
    const int64_t depth = graph_attr_int(from->n, "depth");
    tir_stmt *one[TREES_MOST_LEVELS + 2];
    block b = {.v = *from, .lanes = lanes, .first = first, .columns = columns_of(from, lanes)};
    b.v.tree = tir_varref(c, tree);
    b.v.at = tir_buffer_static(c, "at", DT_I32, 1, &lanes, SCOPE_LOCAL);
    if (graph_attr_int(from->n, "n_targets") == 1)
        b.v.sum = tir_buffer_static(c, "sum", from->out->dt, 1, &lanes, SCOPE_LOCAL);
    one[0] = each_lane(&b, begin_tree);
    for (int64_t level = 0; level < depth; level++) {
        b.above = trees_count(from->n) * (trees_have_levels(from->n) ? level : (1 << level) - 1);
        one[level + 1] = each_lane(&b, step_down);
    }
    one[depth + 1] = each_lane(&b, end_tree);
    tir_stmt *whole = tir_seq(c, (uint32_t)depth + 2, one);
    tir_stmt *all = tir_for(c, tree, te_i64(from->g, 0), walk_trees(&b.v), FOR_SERIAL, whole);
    tir_stmt *parts[3] = {each_lane(&b, begin_row), all, each_lane(&b, end_row)};
    tir_stmt *body = tir_allocate(c, b.v.at, tir_seq(c, 3, parts));
    body = b.columns ? tir_allocate(c, b.columns, body) : body;
    return b.v.sum ? tir_allocate(c, b.v.sum, body) : body;
}

/* Whole blocks of rows, and what is left row by row. */
static tir_stmt *build_complete(te_graph *g, void *ctx, const tir_buffer *const *in, const tir_buffer *const *out)
{
    const loops_ctx *l = ctx;
    compiler *c = g->c;
    const int64_t lanes = graph_attr_int(l->n, "rows");
    const walk v = {.g = g, .c = c, .n = l->n, .in = in, .out = out[0]};
    const tir_var *several = tir_new_var(c, "block", TIR_I64), *row = tir_new_var(c, "row", TIR_I64);
    tir_expr_ref rows = out[0]->shape[0], zero = te_i64(g, 0), size = te_i64(g, lanes);
    tir_expr_ref blocks = tir_floordiv(c, rows, size), done = tir_mul(c, blocks, size);
    tir_stmt *both[2] = {NULL, NULL};
    if (lanes > 1)
        both[0] = tir_for(c, several, zero, blocks, FOR_SERIAL,
                          graph_attr_int(l->n, "lanes") > 1
                              ? walk_vectors(&v, lanes, tir_mul(c, tir_varref(c, several), size))
                              : rows_of(&v, lanes, tir_mul(c, tir_varref(c, several), size)));
    both[1] = tir_for(c, row, lanes > 1 ? done : zero, lanes > 1 ? tir_sub(c, rows, done) : rows, FOR_SERIAL,
                      rows_of(&v, 1, tir_varref(c, row)));
    return tir_seq(c, 2, both);
}

bool compute_tree_complete(te_graph *g, const graph_node *n, te_tensor *const *in, te_tensor **out)
{
    return walk_extern(g, n, in, out, build_complete);
}

/* --- links --- */

static tir_expr_ref bits_of(const walk *v, tir_expr_ref word, int64_t first, int64_t count)
{
    compiler *c = v->c;
    tir_expr_ref high = first ? tir_binary(c, TIR_SHR, word, tir_int(c, DT_U32, first)) : word;
    return first + count == 32 ? high : tir_binary(c, TIR_BITAND, high, tir_int(c, DT_U32, ((int64_t)1 << count) - 1));
}

/* One step: to the node of the link, whose word has the next two. */
static tir_stmt *follow(const walk *v)
{
    compiler *c = v->c;
    const int64_t bits = graph_attr_int(v->n, "link_bits"), low = 32 - 2 * bits;
    const tir_var *node = tir_new_var(c, "node", (tir_type){DT_U32, 1});
    const tir_var *value = tir_new_var(c, "value", (tir_type){v->in[TREES_X]->dt, 1});
    tir_expr_ref at = loops_get(c, v->at), word = tir_varref(c, node);
    tir_expr_ref feature = tir_cast(c, DT_I32, bits_of(v, word, 0, low));
    const tir_expr_ref place[2] = {v->row, walk_column(v, feature)};
    tir_expr_ref is_left = walk_goes_left(v, tir_varref(c, value), walk_node_of(v, at, feature));
    tir_expr_ref link = tir_select(c, is_left, bits_of(v, word, low + bits, bits), bits_of(v, word, low, bits));
    tir_stmt *set = tir_let(c, value, tir_load(c, v->in[TREES_X], 2, place),
                            loops_set(c, v->leaf, tir_cast(c, DT_I32, link)));
    tir_stmt *both[2] = {loops_set(c, v->at, tir_add(c, at, loops_get(c, v->leaf))),
                         tir_let(c, node, walk_load(v, TREES_FEATURES, at), set)};
    return tir_seq(c, 2, both);
}

static tir_stmt *links_of_tree(const walk *v)
{
    compiler *c = v->c;
    const int64_t first = (int64_t)1 << (graph_attr_int(v->n, "link_bits") - 1);
    tir_expr_ref link = loops_get(c, v->leaf), leaf = walk_i32(v, first);
    tir_stmt *down = walk_down(v, tir_binary(c, TIR_LT, link, leaf), follow(v));
    tir_stmt *parts[4] = {
        loops_set(c, v->at, walk_entry(v, TREES_ROOTS, tir_cast(c, DT_I32, v->tree))),
        loops_set(c, v->leaf, walk_i32(v, 0)),
        graph_attr_int(v->n, "checked") ? tir_attr(c, "depth", TIR_ENDS, te_i64(v->g, 1), down) : down,
        walk_add_leaf(v, tir_sub(c, link, leaf))};
    return tir_seq(c, 4, parts);
}

static tir_stmt *build_links(te_graph *g, void *ctx, const tir_buffer *const *in, const tir_buffer *const *out)
{
    const loops_ctx *l = ctx;
    compiler *c = g->c;
    const tir_var *row = tir_new_var(c, "row", TIR_I64), *tree = tir_new_var(c, "tree", TIR_I64);
    const walk v = {.g = g,
                    .c = c,
                    .n = l->n,
                    .in = in,
                    .out = out[0],
                    .at = loops_number(c, "at", DT_I32),
                    .leaf = loops_number(c, "link", DT_I32),
                    .sum = graph_attr_int(l->n, "n_targets") == 1 ? loops_number(c, "sum", out[0]->dt) : NULL,
                    .lane = te_i64(g, 0),
                    .row = tir_varref(c, row),
                    .tree = tir_varref(c, tree)};
    tir_stmt *body = walk_row(&v, tir_for(c, tree, te_i64(g, 0), walk_trees(&v), FOR_SERIAL, links_of_tree(&v)));
    body = tir_allocate(c, v.at, tir_allocate(c, v.leaf, body));
    return tir_for(c, row, te_i64(g, 0), out[0]->shape[0], FOR_SERIAL, body);
}

bool compute_tree_links(te_graph *g, const graph_node *n, te_tensor *const *in, te_tensor **out)
{
    return walk_extern(g, n, in, out, build_links);
}
