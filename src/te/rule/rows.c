/* SPDX-License-Identifier: Apache-2.0 */
/* Default schedule of operators with several stages (softmax, normalisations, separable resampling). A stage need not
 * be kept whole when it can be computed piece by piece where it is read: along every axis of the result that all
 * stages have in common, read at the same index, nothing is computed twice. Those axes become one parallel loop
 * around all stages; the innermost axis of the result stays inside, so that there are rows to vectorize. */
#include "te/rule/rule.h"
#include "tir/walk.h"

#include <string.h>

#define FREE_AGAIN 16 /* elements that may be computed again for every row */
#define TOGETHER   4  /* rows whose sums are made side by side: the end of one waits for a chain of additions */
#define SHORT_ROW  1024 /* elements up to which so many rows stay in the first cache with what is made of them */
#define OPEN_ROWS  16 /* rows for each table, where their number is open */
#define WHOLE      16 /* elements: of other rows the last sums go through memory, where nothing overlaps */

#define NOT_READ UINT32_MAX       /* no read seen yet */
#define NO_AXIS  (UINT32_MAX - 1) /* the index follows no axis of the result, or several */

typedef struct row_search {
    te_sched *s;
    const te_graph *g;
    const te_node *last;
    uint32_t **axis_of; /* by position of the node, by dimension: the result's axis that has the same index */
    uint32_t reader;    /* whose body is looked at */
} row_search;

static uint32_t node_position(const te_graph *g, const te_node *n)
{
    uint32_t i = 0;
    while (g->nodes.data[i] != n)
        i++;
    return i;
}

/* The result's axis that index `at` of the reader follows. */
static uint32_t followed_axis(const row_search *x, tir_expr_ref at)
{
    const te_node *reader = x->g->nodes.data[x->reader];
    for (uint32_t i = 0; at->kind == TIR_VAR && i < reader->n_axes; i++)
        if (reader->axes[i]->var == at->u.var)
            return x->axis_of[x->reader][i];
    return NO_AXIS;
}

static void note_read(void *ctx, tir_expr_ref e)
{
    row_search *x = ctx;
    const te_tensor *t = e->kind == TIR_LOAD ? te_tensor_of(x->g, e->u.buffer) : NULL;
    if (!t || t->node->kind != TE_COMPUTE)
        return;
    uint32_t *axes = x->axis_of[node_position(x->g, t->node)];
    for (uint32_t i = 0; i < e->n_args; i++) {
        uint32_t a = followed_axis(x, e->args[i]);
        axes[i] = axes[i] == NOT_READ || axes[i] == a ? a : NO_AXIS;
    }
}

static void note_reads_of(row_search *x, uint32_t reader)
{
    const te_node *n = x->g->nodes.data[reader];
    x->reader = reader;
    for (uint32_t k = 0; n->kind == TE_COMPUTE && k < n->n_outputs; k++)
        tir_visit_expr(n->body[k], note_read, x);
    if (n->kind == TE_COMPUTE && n->where)
        tir_visit_expr(n->where, note_read, x);
    for (uint32_t k = 0; k < n->n_inputs; k++) /* an extern reads whole tensors */
        for (uint32_t i = 0; n->inputs[k]->node->kind == TE_COMPUTE && i < n->inputs[k]->rank; i++)
            x->axis_of[node_position(x->g, n->inputs[k]->node)][i] = NO_AXIS;
}

/* Readers first: what a producer's index follows is known when its readers are. */
static void find_axes(row_search *x)
{
    const te_graph *g = x->g;
    x->axis_of = arena_array(&x->s->c->mem, uint32_t *, g->nodes.len);
    for (uint32_t p = 0; p < g->nodes.len; p++) {
        const te_node *n = g->nodes.data[p];
        x->axis_of[p] = arena_array(&x->s->c->mem, uint32_t, n->outputs[0]->rank);
        for (uint32_t i = 0; i < n->outputs[0]->rank; i++)
            x->axis_of[p][i] = n == x->last ? i : NOT_READ;
    }
    for (uint32_t p = g->nodes.len; p-- > 0;)
        note_reads_of(x, p);
}

static bool has_axis(const row_search *x, uint32_t node, uint32_t axis)
{
    const te_node *n = x->g->nodes.data[node];
    for (uint32_t i = 0; i < n->n_axes; i++)
        if (x->axis_of[node][i] == axis)
            return true;
    return false;
}

/* Numbers along one axis, which a worker computes once for many rows. */
static bool is_table(const te_node *n)
{
    return n->tag && strcmp(n->tag, TE_TABLE) == 0;
}

/* So little work that every row may do it anew: numbers along one axis would be computed in the row otherwise. */
static bool is_tiny(const te_graph *g, const te_node *n)
{
    if (is_table(n))
        return true;
    int64_t count = n->n_reduce ? te_reduce_most(g, n) : 1;
    for (uint32_t i = 0; i < n->n_axes && count > 0 && count <= FREE_AGAIN; i++)
        count *= te_axis_most(g, n, i);
    return count > 0 && count <= FREE_AGAIN;
}

static bool is_stage(const row_search *x, uint32_t node)
{
    const te_node *n = x->g->nodes.data[node];
    return n->kind != TE_PLACEHOLDER && n != x->last && !te_is_inlined(x->s, n);
}

/* Axes of the result that all stages share, tiny ones aside; not the innermost. */
static uint32_t find_shared(const row_search *x, uint32_t *out_shared)
{
    uint32_t count = 0, n = x->last->n_axes;
    for (uint32_t a = 0; a + 1 < n; a++) {
        bool all = true;
        for (uint32_t p = 0; p < x->g->nodes.len && all; p++)
            all = !is_stage(x, p) || is_tiny(x->g, x->g->nodes.data[p]) || has_axis(x, p, a);
        if (all)
            out_shared[count++] = a;
    }
    return count;
}

/* A sum along a row in lanes ends in a chain of a few dependent steps, in which another row's can run. The innermost
 * shared axis of which a few iterations are a whole share; n_axes: none, or rows are not worth it. */
static uint32_t axis_of_rows(const row_search *x, const struct target *t, uint32_t count, const uint32_t *shared)
{
    int64_t rows = 1, length = te_axis_extent(x->last, x->last->n_axes - 1);
    bool sums = false, whole = true;
    for (uint32_t p = 0; p < x->g->nodes.len; p++) {
        const te_node *n = x->g->nodes.data[p];
        bool row = n->n_axes > 0 && x->axis_of[p][n->n_axes - 1] == x->last->n_axes - 1;
        bool is_sum = is_stage(x, p) && n->n_reduce > 0 && !row && !is_tiny(x->g, n);
        sums |= is_sum;
        whole = whole && (!is_sum || (n->n_reduce == 1 ? te_reduce_most(x->g, n) : length) % WHOLE == 0);
    }
    for (uint32_t i = 0; i < count; i++)
        rows *= te_axis_extent(x->last, shared[i]);
    bool fit = length > 0 && whole && length <= SHORT_ROW && t->vector_bytes / 4 > 1;
    if (!sums || !fit || rows < TOGETHER * PARALLEL_ENOUGH)
        return x->last->n_axes;
    for (uint32_t i = count; i-- > 0;)
        if (te_axis_extent(x->last, shared[i]) % TOGETHER == 0)
            return shared[i];
    return x->last->n_axes;
}

static bool has_tables(const row_search *x)
{
    for (uint32_t p = 0; p < x->g->nodes.len; p++)
        if (is_stage(x, p) && is_table(x->g->nodes.data[p]))
            return true;
    return false;
}

const char *te_cut_rows(te_sched *s, const te_node *last, const char *row, int64_t rows)
{
    int64_t block = rows > 0 ? rows / PARALLEL_ENOUGH : OPEN_ROWS;
    for (int64_t least = block / 2; rows > 0 && block > least + 1 && rows % block != 0;)
        block--;
    if (block < 2)
        return row;
    te_sched_split(s, last->name, row, block, "block", "line");
    return "block";
}

/* The shared axes first, fused and parallel, of axis `several` (n_axes: none) a few iterations inside; the loop's
 * name, and, where there are tables, that of a loop around it. */
static const char *make_rows(te_sched *s, const te_node *last, uint32_t count, const uint32_t *shared,
                             uint32_t several, bool tables, const char **out_around)
{
    const char **order = arena_array(&s->c->mem, const char *, last->n_axes + 1u), *name = NULL;
    uint32_t n = 0;
    if (several < last->n_axes)
        te_sched_split(s, last->name, te_axis_name(last, several), TOGETHER, "rows", "row");
    for (uint32_t i = 0; i < count; i++)
        order[n++] = shared[i] == several ? "rows" : te_axis_name(last, shared[i]);
    if (several < last->n_axes)
        order[n++] = "row";
    for (uint32_t a = 0, k = 0; a < last->n_axes; a++) {
        if (k < count && shared[k] == a)
            k++;
        else
            order[n++] = te_axis_name(last, a);
    }
    te_sched_reorder(s, last->name, n, order);
    name = order[0];
    for (uint32_t i = 1; i < count; i++) {
        const char *fused = arena_printf(&s->c->mem, "f%u", i);
        te_sched_fuse(s, last->name, name, order[i], fused);
        name = fused;
    }
    int64_t rows = 1;
    for (uint32_t i = 0; i < count; i++)
        rows *= te_axis_extent(last, shared[i]);
    *out_around = tables ? te_cut_rows(s, last, name, rows) : name;
    te_sched_annotate(s, TE_PARALLEL, last->name, *out_around);
    return *out_around == name ? name : "line";
}

/* A row of sums lies beside a row of the result: reduce outside of it, in lanes. */
static void reduce_outside(te_sched *s, const struct target *t, const te_node *n)
{
    const char **order = arena_array(&s->c->mem, const char *, n->n_reduce + 1u);
    for (uint32_t i = 0; i < n->n_reduce; i++)
        order[i] = n->reduce_axes[i]->var->name;
    order[n->n_reduce] = te_axis_name(n, n->n_axes - 1);
    te_sched_reorder(s, n->name, n->n_reduce + 1u, order);
    te_row_in_lanes(s, t, n, order[n->n_reduce]);
}

/* The stage's axis of the rows that are made together, where registers hold their sums; n_axes: none. */
static uint32_t axis_beside(const row_search *x, const struct target *t, uint32_t node, uint32_t several)
{
    const te_node *n = x->g->nodes.data[node];
    uint32_t a = 0;
    while (a < n->n_axes && x->axis_of[node][a] != several)
        a++;
    bool fit = several < x->last->n_axes && TOGETHER * WHOLE * 4 / (int64_t)t->vector_bytes <= te_tile_regs(t) / 2;
    return fit ? a : n->n_axes;
}

/* An extern is computed at the root, and no parallel loop may stand beside it. */
static bool has_extern(const te_graph *g)
{
    for (uint32_t i = 0; i < g->nodes.len; i++)
        if (g->nodes.data[i]->kind == TE_EXTERN)
            return true;
    return false;
}

/* Every stage keeps the result's innermost axis: what is reduced lies across its rows, as in a softmax over the first
 * of two axes. */
static bool all_in_rows(const row_search *x)
{
    for (uint32_t p = 0; p < x->g->nodes.len; p++) {
        const te_node *n = x->g->nodes.data[p];
        bool in_row = n->n_axes > 0 && x->axis_of[p][n->n_axes - 1] == x->last->n_axes - 1;
        if (is_stage(x, p) && !is_tiny(x->g, n) && !in_row)
            return false;
    }
    return true;
}

bool te_schedule_rows(te_sched *s, const struct target *t, te_node *last)
{
    const te_graph *g = s->g;
    row_search x = {.s = s, .g = g, .last = last};
    if (g->params.len - g->n_inputs != 1 || last->kind != TE_COMPUTE || last->reducer || last->n_axes < 1)
        return true;
    find_axes(&x);
    uint32_t *shared = arena_array(&s->c->mem, uint32_t, last->n_axes), count = find_shared(&x, shared);
    if ((count == 0 && last->n_axes > 1 && !all_in_rows(&x)) || has_extern(g))
        return true;
    const uint32_t several = count > 0 ? axis_of_rows(&x, t, count, shared) : last->n_axes;
    /* one row, or none whole: stage by stage */
    const char *around = NULL, *row = NULL;
    if (count > 0)
        row = make_rows(s, last, count, shared, several, has_tables(&x), &around);
    for (uint32_t p = 0; p < g->nodes.len; p++) {
        const te_node *n = g->nodes.data[p];
        if (!is_stage(&x, p))
            continue;
        if (row)
            te_sched_compute_at(s, n->name, last->name, is_table(n) ? around : row);
        bool has_row = n->n_axes > 0 && x.axis_of[p][n->n_axes - 1] == last->n_axes - 1;
        if (n->n_reduce > 0 && has_row)
            reduce_outside(s, t, n);
        else if (n->n_reduce > 0)
            te_sum_in_lanes(s, t, n, n->name, last->name, row, axis_beside(&x, t, p, several));
        else if (n->n_axes > 0 && !te_cut_phases(s, n))
            te_row_in_lanes(s, t, n, te_axis_name(n, n->n_axes - 1));
    }
    if (!te_cut_phases(s, last))
        te_row_in_lanes(s, t, last, te_axis_name(last, last->n_axes - 1));
    return true;
}
