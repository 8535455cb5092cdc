/* SPDX-License-Identifier: Apache-2.0 */
/* Fusion: every function that is not primitive becomes calls of primitive functions, each lowered as one kernel,
 * with constants and views between them. A group has at most one anchor (out-fusable or reduction). It grows from
 * its tip to the tip's immediate post-dominator and takes all nodes between, so no path leaves a group and comes
 * back: no cycles. Grouping is here; outline.c builds the functions. */
#include "graph/pass/fuse.h"

#include "graph/pass.h"
#include "graph/pass/outline.h"
#include "graph/pass/rounded.h"

#include <string.h>

#define NONE      UINT32_MAX  /* no node: the end of the function */
#define UNSET     (NONE - 1)  /* not known yet */
#define IS_RESULT 0x80000000u /* in the mark of a value: a result of the function */

typedef VEC(uint32_t) index_list;

typedef struct node_info {
    uint32_t post;  /* immediate post-dominator */
    uint32_t depth; /* in the tree of post-dominators */
    uint32_t jump;  /* a post-dominator further on: from any node the way to any other takes few steps */
    uint32_t group; /* NONE: not in a group (yet) */
    uint32_t visit; /* number of the last search that came here */
    uint32_t first_user, n_users;
} node_info;

typedef struct grouper {
    compiler *c;
    bool fusing; /* level 0 leaves operators alone, and constants where the model has them */
    bool lanes;  /* the processor has vectors of floats */
    graph_func *f;
    arena scratch;
    node_info *info; /* one for each node of f, which has its position as mark */
    uint32_t *users;
    uint32_t searches;
    VEC(fuse_group) groups;
} grouper;

static graph_node *node_at(const grouper *g, uint32_t i)
{
    return g->f->nodes.data[i];
}

/* --- post-dominators --- */

static uint32_t depth_of(const grouper *g, uint32_t i)
{
    return i == NONE ? 0 : g->info[i].depth;
}

/* Jumps are as long as the two jumps behind them together, where these are equally long. */
static void set_depth(grouper *g, uint32_t i)
{
    node_info *x = &g->info[i];
    uint32_t p = x->post, j = p == NONE ? NONE : g->info[p].jump, k = j == NONE ? NONE : g->info[j].jump;
    x->depth = depth_of(g, p) + 1;
    x->jump = p != NONE && depth_of(g, p) - depth_of(g, j) == depth_of(g, j) - depth_of(g, k) ? k : p;
}

/* The post-dominator of i at a depth that it has or that is less. */
static uint32_t at_depth(const grouper *g, uint32_t i, uint32_t depth)
{
    while (depth_of(g, i) > depth)
        i = depth_of(g, g->info[i].jump) >= depth ? g->info[i].jump : g->info[i].post;
    return i;
}

static uint32_t common(const grouper *g, uint32_t a, uint32_t b)
{
    uint32_t least = depth_of(g, a) < depth_of(g, b) ? depth_of(g, a) : depth_of(g, b);
    a = at_depth(g, a, least);
    b = at_depth(g, b, least);
    while (a != b) { /* at one depth, where jumps are equally long */
        bool near = g->info[a].jump == g->info[b].jump;
        a = near ? g->info[a].post : g->info[a].jump;
        b = near ? g->info[b].post : g->info[b].jump;
    }
    return a;
}

static bool is_constant_node(const graph_node *n)
{
    return n->op->infer == infer_constant;
}

/* From the last node to the first: the users of a node are done before it. Constants take no part. */
static void find_post_dominators(grouper *g)
{
    for (uint32_t i = 0; i < g->f->nodes.len; i++) {
        g->info[i].post = UNSET;
        g->info[i].group = NONE;
    }
    for (uint32_t i = 0; i < g->f->results.len; i++)
        if (g->f->results.data[i]->def)
            g->info[g->f->results.data[i]->def->mark].post = NONE;
    for (uint32_t j = g->f->nodes.len; j-- > 0;) {
        node_info *x = &g->info[j];
        const graph_node *n = node_at(g, j);
        if (x->post == UNSET)
            x->post = NONE;
        set_depth(g, j);
        for (uint32_t k = 0; k < n->n_inputs; k++) {
            if (!n->inputs[k] || !n->inputs[k]->def || is_constant_node(n->inputs[k]->def))
                continue;
            node_info *p = &g->info[n->inputs[k]->def->mark];
            p->post = p->post == UNSET ? j : common(g, p->post, j);
        }
    }
}

static void find_users(grouper *g)
{
    uint32_t total = 0, last = g->f->nodes.len;
    for (uint32_t pass = 0; pass < 2; pass++) {
        for (uint32_t j = 0; j < last; j++) {
            const graph_node *n = node_at(g, j);
            for (uint32_t k = 0; k < n->n_inputs; k++) {
                if (!n->inputs[k] || !n->inputs[k]->def)
                    continue;
                node_info *p = &g->info[n->inputs[k]->def->mark];
                if (pass == 1)
                    g->users[p->first_user + p->n_users] = j;
                p->n_users++;
                total += pass == 0;
            }
        }
        if (pass == 1)
            return;
        g->users = arena_array(&g->scratch, uint32_t, total);
        for (uint32_t i = 0, at = 0; i < last; i++) {
            g->info[i].first_user = at;
            at += g->info[i].n_users;
            g->info[i].n_users = 0;
        }
    }
}

/* --- what may be fused --- */

/* A view that can be an alias stays a node: its input is the result of some kernel, and it is no result of the
 * function. */
static bool stays_view(const grouper *g, const graph_node *n)
{
    if (!graph_is_view(g->c, n))
        return false;
    const graph_value *x = n->inputs[0];
    return x->def && !is_constant_node(x->def) && !(n->outputs[0]->mark & IS_RESULT);
}

/* Extents that n's own operands tell are computed by a kernel in front of its own, of the same operands: both must see
 * the node. */
static bool tells_extents(const graph_node *n)
{
    const char *own[1];
    return graph_own_symbols(n, 1, own) > 0;
}

static bool is_kernel(const grouper *g, const graph_node *n)
{
    return !is_constant_node(n) && !(n->op->flags & OPF_CALL) && !stays_view(g, n) && !tells_extents(n);
}

static bool may_fuse(const grouper *g, const graph_node *n)
{
    return is_kernel(g, n) && n->op->effect == EFFECT_PURE && !(n->op->flags & (OPF_NO_FUSE | OPF_VIEW));
}

static bool is_anchor(const grouper *g, const graph_node *n)
{
    return may_fuse(g, n) && (n->op->cls == CLASS_OUT_FUSABLE || n->op->cls == CLASS_REDUCTION);
}

static bool is_elementwise(const grouper *g, const graph_node *n)
{
    return may_fuse(g, n) && n->n_outputs == 1 && (n->op->cls == CLASS_ELEMENTWISE || n->op->cls == CLASS_BROADCAST);
}

/* Moves elements about without operands that say how: transpose, take, depth_to_space. Slices, splits and
 * concatenations stay kernels of their own, which may one day be aliases. */
static bool is_mover(const grouper *g, const graph_node *n)
{
    return may_fuse(g, n) && n->n_outputs == 1 && n->op->cls == CLASS_INJECTIVE && (n->op->flags & OPF_MOVES) &&
           !(n->op->flags & OPF_SHAPE_ARGS);
}

/* Only the first result is used, so that a consumer of it is the one way out. */
static bool has_one_exit(const graph_node *n)
{
    for (uint32_t i = 1; i < n->n_outputs; i++)
        if (n->outputs[i]->mark)
            return false;
    return true;
}

static bool same_shape(const graph_node *a, const graph_node *b)
{
    const type *x = &a->outputs[0]->type, *y = &b->outputs[0]->type;
    return x->kind == TYPE_TENSOR && y->kind == TYPE_TENSOR && shape_equal(x->shape, y->shape);
}

/* --- limits --- */

static bool contains(const index_list *l, uint32_t i)
{
    for (uint32_t k = 0; k < l->len; k++)
        if (l->data[k] == i)
            return true;
    return false;
}

/* --- what is better apart --- */

#define SHORT_ROW      128  /* elements that a reduction takes together; longer rows convert whole vectors */
#define SEARCHED_TWICE 1024 /* elements of a row, of which a search in parts (te/extreme.c) reads more than once */

static bool is_named(const graph_node *n, uint32_t count, const char *const *names)
{
    for (uint32_t i = 0; i < count; i++)
        if (strncmp(n->op->name, names[i], strlen(names[i])) == 0)
            return true;
    return false;
}

static bool is_pool(const graph_node *n)
{
    static const char *const pools[] = {"nn.max_pool", "nn.avg_pool", "nn.lp_pool"};
    return is_named(n, 3, pools);
}

static bool is_search(const graph_node *n)
{
    static const char *const searches[] = {"argmax", "argmin"};
    return is_named(n, 2, searches);
}

static bool is_conversion(const graph_node *n, dtype from, dtype to)
{
    return strcmp(n->op->name, "cast") == 0 && n->inputs[0]->type.dt == from && n->outputs[0]->type.dt == to;
}

/* How many elements a reduction takes together where neighbors lie side by side: their axis is not one of the results.
 * 0: it is, or it is not known. */
static int64_t row_taken(const graph_node *n)
{
    int64_t in[TYPE_MAX_RANK], out[TYPE_MAX_RANK];
    const shape whole = n->inputs[0]->type.shape, rest = n->outputs[0]->type.shape;
    if (n->op->cls != CLASS_REDUCTION || !shape_get(whole, in) || !shape_get(rest, out) || whole.rank < 1 ||
        (rest.rank > 0 && in[whole.rank - 1] == out[rest.rank - 1]))
        return 0;
    const int64_t results = shape_count(rest);
    return results > 0 ? shape_count(whole) / results : 0;
}

static bool takes_short_rows(const graph_node *n)
{
    const int64_t taken = row_taken(n);
    return taken > 1 && taken < SHORT_ROW;
}

/* A whole vector of f16 is converted by one instruction, a single number by three. Schedules of pools, searches and
 * short rows leave single numbers, which C compilers put into vectors where they are floats. */
static bool keeps_apart(const grouper *g, const graph_node *anchor, const graph_node *producer)
{
    const bool widens = is_conversion(producer, DT_F16, DT_F32),
               twice = is_search(anchor) && row_taken(anchor) >= SEARCHED_TWICE;
    return g->lanes && (twice || (widens && (is_search(anchor) || takes_short_rows(anchor))));
}

/* Distinct values that come from outside and are no literals. */
static bool fits(const grouper *g, const index_list *nodes)
{
    const graph_value *seen[FUSE_MAX_PARAMS];
    uint32_t len = 0;
    if (nodes->len > FUSE_MAX_NODES)
        return false;
    for (uint32_t i = 0; i < nodes->len; i++) {
        const graph_node *n = node_at(g, nodes->data[i]);
        for (uint32_t k = 0; k < n->n_inputs; k++) {
            const graph_value *v = n->inputs[k];
            bool known = !v || fuse_takes_constant(g->fusing, n, k) || (v->def && contains(nodes, v->def->mark));
            for (uint32_t s = 0; s < len && !known; s++)
                known = seen[s] == v;
            if (known)
                continue;
            if (len == FUSE_MAX_PARAMS)
                return false;
            seen[len++] = v;
        }
    }
    return true;
}

/* --- growing --- */

/* All nodes on paths from `from` to its post-dominator `sink`, these two not included. false: more than a group
 * holds. */
static bool between(grouper *g, uint32_t from, uint32_t sink, index_list *out)
{
    uint32_t search = ++g->searches;
    index_list stack = {0};
    vec_push(&g->scratch, &stack, from);
    while (stack.len) {
        const node_info *x = &g->info[vec_pop(&stack)];
        for (uint32_t k = 0; k < x->n_users; k++) {
            uint32_t u = g->users[x->first_user + k];
            if (u == sink || g->info[u].visit == search)
                continue;
            g->info[u].visit = search;
            vec_push(&g->scratch, out, u);
            vec_push(&g->scratch, &stack, u);
            if (out->len > FUSE_MAX_NODES)
                return false;
        }
    }
    return true;
}

static void append(grouper *g, index_list *to, const index_list *from)
{
    for (uint32_t i = 0; i < from->len; i++)
        vec_push(&g->scratch, to, from->data[i]);
}

static void set_members(grouper *g, uint32_t group, const index_list *members, uint32_t tip)
{
    fuse_group *x = &g->groups.data[group];
    x->nodes.len = 0;
    for (uint32_t i = 0; i < members->len; i++) {
        vec_push(&g->scratch, &x->nodes, members->data[i]);
        g->info[members->data[i]].group = group;
    }
    x->tip = tip;
}

/* The group as a list that is about to grow. */
static index_list members_of(grouper *g, uint32_t group)
{
    index_list l = {0};
    for (uint32_t i = 0; i < g->groups.data[group].nodes.len; i++)
        vec_push(&g->scratch, &l, g->groups.data[group].nodes.data[i]);
    return l;
}

/* A row of a resize is stored number by number, in steps of its factor. A vector of it that is read at once waits for
 * these stores. */
static bool is_read_later(const grouper *g, const graph_node *tip)
{
    return g->lanes && strcmp(tip->op->name, "qnn.resize") == 0;
}

/* Whether the free node j may follow the tip of the group: element by element, in the same shape. */
static bool may_follow(const grouper *g, uint32_t j, const graph_node *tip)
{
    const bool rounds = g->lanes && (is_pool(tip) || takes_short_rows(tip)) &&
                        is_conversion(node_at(g, j), DT_F32, DT_F16);
    return g->info[j].group == NONE && is_elementwise(g, node_at(g, j)) && same_shape(node_at(g, j), tip) && !rounds &&
           !is_read_later(g, tip);
}

/* A free mover after a group without anchor, when it reads the tip as data and makes no more elements than there
 * are. */
static bool may_move(const grouper *g, uint32_t group, uint32_t j, const graph_node *tip)
{
    const graph_node *n = node_at(g, j);
    if (g->info[j].group != NONE || g->groups.data[group].anchor || !is_mover(g, n) || n->inputs[0] != tip->outputs[0])
        return false;
    for (uint32_t k = 1; k < n->n_inputs; k++)
        if (n->inputs[k] == tip->outputs[0])
            return false;
    int64_t have = shape_count(tip->outputs[0]->type.shape), makes = shape_count(n->outputs[0]->type.shape);
    return makes >= 0 && makes <= have;
}

/* One step towards the post-dominator; false: the group is complete. */
static bool grow(grouper *g, uint32_t group)
{
    uint32_t tip = g->groups.data[group].tip, sink = g->info[tip].post;
    const graph_node *t = node_at(g, tip);
    index_list way = {0};
    if (sink == NONE || !has_one_exit(t) || !between(g, tip, sink, &way))
        return false;
    for (uint32_t i = 0; i < way.len; i++)
        if (!may_follow(g, way.data[i], t))
            return false;
    if (!may_follow(g, sink, t) && !(way.len == 0 && may_move(g, group, sink, t)))
        return false;
    index_list all = members_of(g, group);
    append(g, &all, &way);
    vec_push(&g->scratch, &all, sink);
    if (!fits(g, &all))
        return false;
    set_members(g, group, &all, sink);
    return true;
}

static bool all_elementwise(const grouper *g, uint32_t group)
{
    for (uint32_t i = 0; i < g->groups.data[group].nodes.len; i++)
        if (!is_elementwise(g, node_at(g, g->groups.data[group].nodes.data[i])))
            return false;
    return true;
}

/* Only as the data of a reduction that reads each element a few times. */
static bool feeds_reduction(const graph_node *tip, const graph_node *n)
{
    if (!(n->op->flags & OPF_STREAMS) || n->inputs[0] != tip->outputs[0])
        return false;
    for (uint32_t k = 1; k < n->n_inputs; k++)
        if (n->inputs[k] == tip->outputs[0])
            return false;
    return true;
}

/* Weights of 4 bits, two in a byte. */
static bool is_unpacking(const graph_node *n)
{
    return strcmp(n->op->name, "unpack_nibbles") == 0;
}

/* A constant that stays quantised. */
static bool is_stored(const graph_node *n)
{
    return strcmp(n->op->name, "qnn.dequantize") == 0 && graph_constant(n->inputs[0]);
}

/* Weights that stay quantised are dequantised in the kernel that reads them, those of 4 bits are taken apart there. */
static bool feeds_weights(const graph_node *tip, const graph_node *n)
{
    const bool left = strcmp(n->op->name, "nn.matmul") == 0 && n->inputs[0] == tip->outputs[0];
    return (is_stored(tip) || is_unpacking(tip)) && graph_constant(tip->inputs[0]) && n->n_inputs > 1 &&
           n->inputs[left ? 0 : 1] == tip->outputs[0] && n->inputs[left ? 1 : 0] != tip->outputs[0];
}

/* What the tip of a group makes is weights of that anchor, or the data that it reduces. */
static bool feeds_anchor(const graph_node *tip, const graph_node *anchor)
{
    return feeds_weights(tip, anchor) || (anchor->op->cls == CLASS_REDUCTION && feeds_reduction(tip, anchor));
}

/* What the tip of the group makes is an operand beside others of an element-wise node. */
static bool feeds_elementwise(const grouper *g, uint32_t group, const graph_node *tip, const graph_node *n)
{
    return is_elementwise(g, n) && (same_shape(tip, n) || is_stored(tip)) && all_elementwise(g, group);
}

/* A group without anchor joins the group that all its uses lead to: as producer of a reduction, as weights, or beside
 * the other operands of an element-wise node. */
static void join(grouper *g, uint32_t group)
{
    uint32_t tip = g->groups.data[group].tip, sink = g->info[tip].post;
    const graph_node *t = node_at(g, tip);
    if (g->groups.data[group].anchor || sink == NONE)
        return;
    uint32_t host = g->info[sink].group;
    if (host == NONE || host == group)
        return;
    const graph_node *s = node_at(g, sink);
    const bool producer = s == g->groups.data[host].anchor && feeds_anchor(t, s) && !keeps_apart(g, s, t);
    index_list way = {0};
    if (!producer && !feeds_elementwise(g, group, t, s))
        return;
    if (!between(g, tip, sink, &way) || (producer && way.len))
        return;
    index_list all = members_of(g, host);
    append(g, &all, &(index_list){g->groups.data[group].nodes.data, g->groups.data[group].nodes.len, 0});
    for (uint32_t i = 0; i < way.len; i++) {
        if (g->info[way.data[i]].group == host)
            continue;
        if (!may_follow(g, way.data[i], t))
            return;
        vec_push(&g->scratch, &all, way.data[i]);
    }
    if (!fits(g, &all))
        return;
    set_members(g, host, &all, g->groups.data[host].tip);
    g->groups.data[group].nodes.len = 0;
}

static uint32_t new_group(grouper *g, uint32_t i)
{
    fuse_group x = {.tip = i, .anchor = is_anchor(g, node_at(g, i)) ? node_at(g, i) : NULL};
    vec_push(&g->scratch, &x.nodes, i);
    g->info[i].group = g->groups.len;
    vec_push(&g->scratch, &g->groups, x);
    return g->groups.len - 1;
}

static void make_group(grouper *g, uint32_t i)
{
    uint32_t group = new_group(g, i);
    const graph_node *n = node_at(g, i);
    if (!g->fusing || !(is_elementwise(g, n) || is_mover(g, n) || is_unpacking(n)))
        return;
    while (grow(g, group))
        ;
    join(g, group);
}

/* Anchors choose their consumers first; what is left over forms groups of its own or joins. */
static void find_groups(grouper *g)
{
    for (uint32_t i = 0; i < g->f->nodes.len && g->fusing; i++) {
        if (g->info[i].group != NONE || !is_anchor(g, node_at(g, i)))
            continue;
        uint32_t group = new_group(g, i);
        while (grow(g, group))
            ;
    }
    for (uint32_t stored = 0; stored < 2; stored++) /* these last: what reads them is a group by then */
        for (uint32_t i = 0; i < g->f->nodes.len; i++)
            if (g->info[i].group == NONE && is_kernel(g, node_at(g, i)) && is_stored(node_at(g, i)) == (stored == 1))
                make_group(g, i);
}

/* --- functions --- */

/* Marks: uses of values, with the top bit for results; positions of nodes. */
static void mark(graph_func *f)
{
    for (uint32_t i = 0; i < f->nodes.len; i++) {
        f->nodes.data[i]->mark = i;
        for (uint32_t k = 0; k < f->nodes.data[i]->n_outputs; k++)
            f->nodes.data[i]->outputs[k]->mark = 0;
    }
    for (uint32_t i = 0; i < f->params.len; i++)
        f->params.data[i]->mark = 0;
    for (uint32_t i = 0; i < f->nodes.len; i++)
        for (uint32_t k = 0; k < f->nodes.data[i]->n_inputs; k++)
            if (f->nodes.data[i]->inputs[k])
                f->nodes.data[i]->inputs[k]->mark++;
    for (uint32_t i = 0; i < f->results.len; i++)
        f->results.data[i]->mark |= IS_RESULT;
}

/* Each reader of a constant that stays quantised gets a dequantize of its own, which its kernel holds: between kernels
 * the constant would lie in floats. */
static void give_each_its_own(compiler *c, graph_func *f)
{
    VEC(graph_node *) list = {0};
    for (uint32_t i = 0; i < f->nodes.len; i++) {
        graph_node *n = f->nodes.data[i];
        for (uint32_t k = 0; k < n->n_inputs; k++) {
            const graph_node *from = n->inputs[k] ? n->inputs[k]->def : NULL;
            if (!from || !is_stored(from) || n->inputs[k]->mark <= 1)
                continue;
            graph_node *own = graph_new_node(f, from->op, from->n_inputs, from->inputs, from->n_attrs, from->attrs, 1,
                                             &n->inputs[k]->name, from->loc);
            own->outputs[0]->type = n->inputs[k]->type;
            n->inputs[k]->mark--;
            for (uint32_t again = n->n_inputs; again-- > k + 1;)
                if (n->inputs[again] == n->inputs[k]) {
                    n->inputs[again]->mark--;
                    n->inputs[again] = own->outputs[0];
                }
            n->inputs[k] = own->outputs[0];
            vec_push(&c->mem, &list, own);
        }
        vec_push(&c->mem, &list, n);
    }
    f->nodes.data = list.data;
    f->nodes.len = list.len;
    f->nodes.cap = list.cap;
    graph_remove_dead(f);
}

static void outline_groups(grouper *g)
{
    VEC(graph_node *) list = {0};
    graph_func *f = g->f;
    ptr_map rounded;
    rounded_find(g->c, f, &rounded);
    for (uint32_t i = 0; i < f->nodes.len; i++) {
        uint32_t group = g->info[i].group;
        if (group == NONE)
            vec_push(&g->c->mem, &list, f->nodes.data[i]);
        else if (g->groups.data[group].tip == i)
            vec_push(&g->c->mem, &list, fuse_outline(g->c, f, &g->groups.data[group], &rounded, g->fusing));
    }
    f->nodes.data = list.data;
    f->nodes.len = list.len;
    f->nodes.cap = list.cap;
    graph_drop_constants(f); /* those that went into the primitives */
}

static void fuse(compiler *c, graph_func *f, bool fusing, bool lanes)
{
    grouper g = {.c = c, .f = f, .fusing = fusing, .lanes = lanes};
    arena_init(&g.scratch, &c->mem);
    mark(f);
    if (fusing)
        give_each_its_own(c, f);
    mark(f);
    g.info = arena_array(&g.scratch, node_info, f->nodes.len);
    find_post_dominators(&g);
    find_users(&g);
    find_groups(&g);
    outline_groups(&g);
    arena_free(&g.scratch);
}

bool graph_pass_fuse(compiler *c, graph_module *m, const pass_options *o)
{
    const bool lanes = o->target && o->target->vector_bytes >= 8 && (o->target->features & TARGET_MVE) == 0;
    uint32_t count = m->funcs.len; /* those that fusion adds are primitive */
    for (uint32_t i = 0; i < count; i++)
        if (!graph_is_fixed(m->funcs.data[i]))
            fuse(c, m->funcs.data[i], o->opt_level > 0, lanes);
    return true;
}
