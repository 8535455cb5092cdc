/* SPDX-License-Identifier: Apache-2.0 */
/* Default schedules of element-wise operators, reductions and row-wise normalisations. They decide what runs in
 * parallel and how long intermediate results live. The innermost loop is cut into lanes where the C compiler would not
 * vectorize it: behind function calls, and along sums (lanes.c). */
#include "te/inline.h"
#include "te/merge.h"
#include "te/rule/rule.h"
#include "te/windows.h"
#include "tir/walk.h"
#include "type/target.h"

#include <string.h>

#define CUT_MULTIPLE  64        /* elements: whole vectors and cache lines of any type */
#define FEW_ROWS      8         /* up to which the shares of workers may differ much */
#define BESIDE        4         /* rows */
#define FEW_REGS      8         /* of vectors */
#define WHOLE_SUM     16        /* elements: of other sums in lanes the end goes through memory, */
#define LONG_SUM      128       /* which is worth it from here on */
#define KERNEL_UNROLL 16        /* window taps that are written out */

/* --- element-wise --- */

/* Rows of the last axis and those around it as one; NULL: something is read out of step. */
static te_graph *merge_innermost(te_graph *g)
{
    const te_node *n = vec_last(&g->params)->node;
    uint32_t inner = n->n_axes - 1, a = inner;
    while (a > 0 && te_axis_extent(n, a - 1) == 1)
        a--;
    for (; g && a > 0 && a <= inner; a++) { /* an axis passes those of extent 1 that stand between */
        n = vec_last(&g->params)->node;
        int64_t height = te_axis_extent(n, a - 1), width = te_axis_extent(n, a);
        g = height > 0 && width > 0 ? te_merge_rows(g, a - 1, height, width, height) : NULL;
    }
    return a > inner ? g : NULL;
}

/* Shared among workers, rows stay as many as keep them busy. Without lanes (0) a loop is better than several. */
static bool may_merge(const te_graph *g, const te_node *n, int64_t lanes)
{
    int64_t outer = 1, all = 1;
    for (uint32_t i = 0, open = 0; i < n->n_axes; i++) {
        int64_t extent = te_axis_extent(n, n->n_axes - 1 - i);
        if (extent <= 0 || !i64_mul(all, extent, &all))
            return false;
        open += i > 0 && extent > 1;
        if (open > 1)
            outer *= extent;
    }
    return g->params.len - g->n_inputs == 1 && n->n_axes > 1 &&
           (lanes == 0 || te_axis_extent(n, n->n_axes - 1) % lanes != 0) &&
           (all < PARALLEL_WORTH || outer >= PARALLEL_ENOUGH);
}

/* An image that only goes into blocks of channels: all of its rows as one, so that shuffles move whole blocks of it. */
static te_graph *merge_rows_of_blocks(te_graph *g)
{
    const te_node *n = vec_last(&g->params)->node;
    const uint32_t a = n->n_axes - 3; /* rows, columns, channels of a block */
    if (g->params.len - g->n_inputs != 1 || n->kind != TE_COMPUTE || n->reducer || n->n_axes < 5 ||
        n->body[0]->kind != TIR_LOAD || n->body[0]->n_args != n->n_axes - 1)
        return g;
    const int64_t height = te_axis_extent(n, a), width = te_axis_extent(n, a + 1);
    te_graph *merged = height > 1 && width > 0 ? te_merge_rows(g, a, height, width, height) : NULL;
    return merged ? merged : g;
}

te_graph *te_merge_elements(te_graph *g, const struct target *t)
{
    for (te_graph *next = g; next; next = merge_innermost(g)) {
        g = next;
        const te_node *n = vec_last(&g->params)->node;
        if (n->kind != TE_COMPUTE || n->reducer || !may_merge(g, n, t->vector_bytes / 4))
            break;
    }
    return t->vector_bytes / 4 > 1 ? merge_rows_of_blocks(g) : g;
}

/* Rows, of which there are too few for workers to have equal shares; 0: there are more, or it is not known. */
static int64_t few_rows(const te_node *n)
{
    int64_t rows = 1;
    for (uint32_t i = 0; i + 1 < n->n_axes && rows > 0 && rows <= FEW_ROWS; i++)
        rows *= te_axis_extent(n, i);
    return rows <= FEW_ROWS ? rows : 0;
}

/* Cuts a few long rows into blocks, of which the last one of a row is shorter, and makes all blocks one parallel loop;
 * the name of the innermost loop. NULL: rows are shared whole. */
static const char *cut_rows(te_sched *s, const struct target *t, const te_node *n)
{
    const uint32_t inner = n->n_axes - 1;
    const int64_t rows = few_rows(n), len = te_axis_extent(n, inner);
    if (rows == 0 || rows * len < PARALLEL_WORTH || len <= CUT_MULTIPLE)
        return NULL;
    if (inner > 0 && (t->workers <= 1 || !te_reads_lines(n, inner)))
        return NULL;
    const int64_t blocks = (PARALLEL_ENOUGH + rows - 1) / rows, part = (len + blocks - 1) / blocks,
                  f = (part + CUT_MULTIPLE - 1) / CUT_MULTIPLE * CUT_MULTIPLE;
    te_sched_split(s, n->name, te_axis_name(n, inner), f, "block", "lane");
    const char *shared = "block";
    if (inner > 0) {
        shared = "part";
        te_sched_fuse(s, n->name, te_fuse_axes(s, n, inner), "block", shared);
    }
    te_sched_annotate(s, TE_PARALLEL, n->name, shared);
    return "lane";
}

typedef struct choice_search {
    const te_sched *s;
    const tir_var *lane;
    uint32_t n;
    bool beside; /* a number that all lanes share is read: under a condition, that stays one lane's */
} choice_search;

static void count_choice(void *ctx, tir_expr_ref e)
{
    choice_search *x = ctx;
    const te_tensor *t = e->kind == TIR_LOAD ? te_tensor_of(x->s->g, e->u.buffer) : NULL;
    bool bound = e->kind == TIR_BINOP && (e->op == TIR_MIN || e->op == TIR_MAX);
    if (e->type.dt == DT_F32 && (bound || e->kind == TIR_SELECT))
        x->n += bound ? 1 : 2;
    x->beside |= t && !te_is_literal(t->node) && !tir_uses_var(e, x->lane);
}

/* A choice, of which C compilers may make a jump, or several bounds: each is one instruction of vectors, where C asks
 * twice because of NaN. */
static bool has_choices(const te_sched *s, const te_node *last)
{
    choice_search all = {s, last->axes[last->n_axes - 1]->var, 0, false};
    for (uint32_t i = 0; i < s->g->nodes.len; i++) {
        const te_node *x = s->g->nodes.data[i];
        all.lane = x->n_axes > 0 ? x->axes[x->n_axes - 1]->var : all.lane;
        bool is_read = x == last || (te_is_inlined(s, x) && te_uses_of(s->g, x) > 0);
        if (x->kind == TE_COMPUTE && !te_is_literal(x) && is_read)
            tir_visit_expr(x->body[0], count_choice, &all);
    }
    return all.n > 1 && !all.beside;
}

static bool by_stages(te_sched *s, const struct target *t, te_node *last)
{
    const te_graph *g = s->g;
    bool alone = true; /* a parallel loop must hold all stores of the function */
    for (uint32_t i = 0; i < g->nodes.len; i++) {
        const te_node *x = g->nodes.data[i];
        alone &= x == last || x->kind == TE_PLACEHOLDER || te_is_inlined(s, x);
    }
    if (!alone)
        return te_schedule_rows(s, t, last);
    if (last->kind != TE_COMPUTE || last->reducer)
        return true;
    if (last->n_axes == 0 || te_move_in_tiles(s, t, last))
        return true;
    const char *block = cut_rows(s, t, last), *inner = block ? block : te_axis_name(last, last->n_axes - 1);
    const uint32_t count = block ? 0 : te_parallel_axes(s->g, last);
    if (count > 0)
        te_fuse_parallel(s, last, count);
    const bool calls = te_calls_functions(s, NULL, last);
    const bool pays = calls || has_choices(s, last) || te_converts_halves(s, t, last);
    const bool lanes = pays && te_row_in_lanes(s, t, last, inner);
    if (!lanes && !calls && !block && last->n_axes > 1)
        te_cut_phases(s, last);
    return true;
}

/* --- reductions --- */

/* The accumulator of an output element lives in a register; the name of its stage. */
static const char *accumulate_inside(te_sched *s, te_node *anchor, te_node *last)
{
    const char *acc = anchor->name;
    if (anchor == last) {
        acc = arena_printf(&s->c->mem, "%s_acc", anchor->name);
        te_sched_cache_write(s, anchor->name, "local.reg", acc);
    } else {
        te_sched_set_scope(s, acc, "local.reg");
    }
    return acc;
}

static void look_for_last(void *ctx, tir_expr_ref e)
{
    tir_expr_ref *last = ctx;
    if (e->kind == TIR_LOAD && e->n_args > 0)
        *last = e->args[e->n_args - 1];
}

/* Where an extreme lies: a comparison and two choices, of which each waits for the one before. The results of a few
 * neighbors grow side by side; all of a line where neighbors lie side by side in memory. `a`: axes up to the innermost
 * one that has several iterations, of which a loop stays outside of the reduction: its name, or NULL. */
static const char *reduce_beside(te_sched *s, const struct target *t, const te_node *n, uint32_t a)
{
    uint32_t count = 0;
    const char **order = arena_array(&s->c->mem, const char *, n->n_axes + 2u), *inner = te_axis_name(n, a - 1);
    if (n->n_reduce != 1 || t->vector_bytes == 0)
        return inner;
    tir_expr_ref last = NULL;
    tir_visit_expr(n->body[0], look_for_last, &last);
    bool along = last && tir_uses_var(last, n->reduce_axes[0]->var);
    if (along && te_axis_extent(n, a - 1) < BESIDE)
        return inner;
    const char *outside = along ? "row_o" : NULL;
    bool alone = true; /* there is one line, which workers share */
    for (uint32_t i = 0; i + 1 < a; i++) {
        alone &= te_axis_extent(n, i) == 1;
        order[count++] = te_axis_name(n, i);
    }
    if (along) {
        te_sched_split(s, n->name, inner, BESIDE, outside, "row_i");
        inner = "row_i";
    } else if (alone && t->workers > 1 && te_axis_extent(n, a - 1) >= 2 * CUT_MULTIPLE) {
        outside = "block";
        te_sched_split(s, n->name, inner, CUT_MULTIPLE, outside, "lane");
        inner = "lane";
    }
    if (outside)
        order[count++] = outside;
    order[count++] = n->reduce_axes[0]->var->name;
    order[count++] = inner;
    te_sched_reorder(s, n->name, count, order);
    if (along)
        te_sched_annotate(s, TE_UNROLL, n->name, inner);
    return outside;
}

/* A search, whose outer loops workers share if they are worth it. */
static void search_beside(te_sched *s, const struct target *t, const te_node *n)
{
    int64_t work = te_reduce_most(s->g, n), outer = 1;
    uint32_t a = n->n_axes, count = 0;
    while (a > 0 && te_axis_most(s->g, n, a - 1) == 1)
        a--;
    if (a == 0)
        return;
    const char *outside = reduce_beside(s, t, n, a);
    for (uint32_t i = 0; i < a; i++)
        if (!i64_mul(work, te_axis_most(s->g, n, i), &work))
            return;
    if (work < PARALLEL_WORTH)
        return;
    while (count + 1 < a && outer < PARALLEL_ENOUGH)
        outer *= te_axis_most(s->g, n, count++);
    if (outer > 1)
        te_fuse_parallel(s, n, count);
    else if (outside)
        te_sched_annotate(s, TE_PARALLEL, n->name, outside);
}

/* Vectors of a line that go side by side, so that fewer than one are left at its end, which goes through memory. With
 * few registers there is one: C compilers write the loop out around it. */
static int64_t vectors_beside(const struct target *t, int64_t width, int64_t lanes)
{
    int64_t n = t->vector_regs > FEW_REGS ? BESIDE : 1;
    while (width % lanes != 0 && width > lanes && width / lanes % n != 0)
        n--;
    return n;
}

/* Neighbors of the result in lanes, a few vectors of them side by side, where they read neighbors. */
static bool reduce_lines(te_sched *s, const struct target *t, const te_node *anchor, const te_node *last,
                         const char *acc)
{
    uint32_t line = last->n_axes - 1;
    int64_t lanes = te_lanes(t), width = te_axis_extent(last, line);
    const char **order = arena_array(&s->c->mem, const char *, anchor->n_axes + anchor->n_reduce + 2u);
    uint32_t n = 0;
    if (lanes < LEAST_LINE || width < LEAST_LINE || anchor->where || !te_reads_lines(anchor, line) ||
        !te_row_fits(s, t, anchor) || !te_row_fits(s, t, last))
        return false;
    te_sched_split(s, last->name, te_axis_name(last, line), vectors_beside(t, width, lanes) * lanes, "lane_o",
                   "lane_i");
    te_sched_split(s, last->name, "lane_i", lanes, "lane_m", "lane_v");
    te_sched_annotate(s, TE_UNROLL, last->name, "lane_m");
    te_sched_annotate(s, TE_VECTORIZE, last->name, "lane_v");
    te_sched_compute_at(s, acc, last->name, "lane_o");
    te_sched_split(s, acc, te_axis_name(anchor, line), lanes, "lane_m", "lane_v");
    for (uint32_t i = 0; i < line; i++)
        order[n++] = te_axis_name(anchor, i);
    for (uint32_t i = 0; i < anchor->n_reduce; i++)
        order[n++] = anchor->reduce_axes[i]->var->name;
    order[n++] = "lane_m";
    order[n++] = "lane_v";
    te_sched_reorder(s, acc, n, order);
    te_sched_annotate(s, TE_UNROLL, acc, "lane_m");
    te_sched_annotate(s, TE_VECTORIZE, acc, "lane_v");
    return true;
}

typedef struct image_search {
    te_axis *const *k; /* rows and columns that are reduced */
    tir_expr_ref found;
} image_search;

static void note_image(void *ctx, tir_expr_ref e)
{
    image_search *x = ctx;
    bool image = e->kind == TIR_LOAD && e->n_args >= 2;
    for (uint32_t i = 0; image && i < 2; i++) {
        tir_expr_ref at = e->args[e->n_args - 2 + i];
        image = at->kind == TIR_VAR && at->u.var == x->k[i]->var;
    }
    if (image)
        x->found = e;
}

te_graph *te_merge_reduced(te_graph *g, const te_node *stage)
{
    int64_t height = 0, width = 0, count = 0;
    if (stage->n_reduce < 2)
        return g;
    image_search x = {.k = stage->reduce_axes + stage->n_reduce - 2};
    tir_visit_expr(stage->body[0], note_image, &x);
    if (!x.found || !tir_is_int(x.k[0]->extent, &height) || !tir_is_int(x.k[1]->extent, &width) || height < 2 ||
        width < 2 || !i64_mul(height, width, &count) ||
        (count < LONG_SUM && count % WHOLE_SUM != 0 && !te_takes_rows_twice(g, stage, count)))
        return g;
    te_graph *merged = te_merge_rows(g, x.found->n_args - 2, height, width, height);
    return merged ? merged : g;
}

/* A search in parts (te/extreme.c): the extreme of each part in lanes. What else there is is short. */
static bool search_in_parts(te_sched *s, const struct target *t, te_node *extremes)
{
    const char *acc = arena_printf(&s->c->mem, "%s_acc", extremes->name),
               *part = te_axis_name(extremes, extremes->n_axes - 1);
    te_sched_cache_write(s, extremes->name, "local.reg", acc);
    te_sched_compute_at(s, acc, extremes->name, part);
    te_sum_in_lanes(s, t, extremes, acc, extremes->name, part, extremes->n_axes);
    return true;
}

#define COLUMNS_IN_CACHE 2048 /* of a few rows of windows */

/* Rows of windows whose columns are made together: what was just stored cannot be loaded at once where vectors of the
 * two overlap. The loop around them. */
static const char *cut_windows(te_sched *s, const te_node *last, int64_t width)
{
    int64_t height = te_axis_extent(last, 2), rows = width > 0 ? COLUMNS_IN_CACHE / width : 1;
    if (height < 1 || rows < 2)
        return te_axis_name(last, 2);
    while (height % rows != 0)
        rows--;
    te_sched_split(s, last->name, te_axis_name(last, 2), rows, "rows", "row");
    return "rows";
}

/* A pool in two stages (te/windows.c): the extremes of the columns of a row of windows, then these windows. */
static bool pool_columns(const te_case *x)
{
    te_sched *s = x->s;
    const struct target *t = x->t;
    te_node *anchor = x->anchor, *last = x->last, *columns = te_find_tag(s->g, TE_COLUMNS);
    const te_node *pad = te_find_tag(s->g, "pad"), *beside[1] = {columns};
    if (!te_is_one_nest_with(s, anchor, last, "pad", 1, beside))
        return false;
    const char *acc = accumulate_inside(s, anchor, last), *inner = te_axis_name(last, last->n_axes - 1);
    const uint32_t count = te_parallel_axes(s->g, last) > 2 ? 3 : 2;
    const char *outer = te_fuse_parallel(s, last, count);
    const char *row = count > 2 ? outer : cut_windows(s, last, te_axis_extent(columns, 3));
    if (pad && !te_is_inlined(s, pad))
        te_sched_compute_at(s, pad->name, last->name, row);
    te_sched_compute_at(s, columns->name, last->name, row);
    const char *column = accumulate_inside(s, columns, columns);
    if (!reduce_lines(s, t, columns, columns, column))
        te_sched_compute_at(s, column, columns->name, te_axis_name(columns, 3));
    if (reduce_lines(s, t, anchor, last, acc))
        return true;
    te_sched_compute_at(s, acc, last->name, inner);
    if (te_reduce_most(s->g, anchor) <= KERNEL_UNROLL)
        te_sched_annotate(s, TE_UNROLL, acc, anchor->reduce_axes[0]->var->name);
    return true;
}

#define SUMS_BESIDE 8 /* short ones, each of which waits for its additions */

/* Short sums of neighbors, one row after the other: a few rows side by side, each in its order. Axes around them have
 * one iteration. */
static bool sums_beside(te_sched *s, const struct target *t, const te_node *anchor, const te_node *last,
                        const char *acc)
{
    uint32_t a = 0, n = 0;
    while (a + 1 < last->n_axes && te_axis_extent(last, a) == 1)
        a++;
    int64_t all = te_axis_extent(last, a), taps = te_reduce_most(s->g, anchor);
    bool one = all >= SUMS_BESIDE && all % SUMS_BESIDE == 0 && t->vector_bytes >= 8 && taps > 1;
    for (uint32_t i = a + 1; i < last->n_axes; i++)
        one &= te_axis_extent(last, i) == 1;
    if (!one || anchor->where || anchor->outputs[0]->dt != DT_F32 || te_reads_lines(anchor, a))
        return false;
    const char **order = arena_array(&s->c->mem, const char *, anchor->n_axes + anchor->n_reduce), *name;
    te_sched_split(s, last->name, te_axis_name(last, a), SUMS_BESIDE, "beside_o", "beside_i");
    if (all * taps >= PARALLEL_WORTH)
        te_sched_annotate(s, TE_PARALLEL, last->name, "beside_o");
    te_sched_compute_at(s, acc, last->name, "beside_o");
    for (uint32_t i = 0; i < anchor->n_reduce; i++)
        order[n++] = anchor->reduce_axes[i]->var->name;
    order[n++] = name = te_axis_name(anchor, a);
    for (uint32_t i = a + 1; i < anchor->n_axes; i++)
        order[n++] = te_axis_name(anchor, i);
    te_sched_reorder(s, acc, n, order);
    te_sched_annotate(s, TE_UNROLL, acc, name);
    te_sched_annotate(s, TE_UNROLL, last->name, "beside_i");
    return true;
}

static bool takes_columns(const te_case *x)
{
    return te_find_tag(x->s->g, TE_COLUMNS) != NULL;
}

static double cost_columns(const te_case *x)
{
    return te_cost_in_c(x->t, 1);
}

/* A search whose results grow side by side. */
static bool is_search(const te_case *x)
{
    return x->anchor == x->last && x->anchor->reducer && x->anchor->n_outputs == 2 &&
           te_is_one_nest(x->s, x->anchor, x->last, NULL);
}

static bool is_in_parts(const te_case *x)
{
    return x->anchor->tag && strcmp(x->anchor->tag, "extremes") == 0;
}

bool te_takes_one_by_one(const te_case *x)
{
    const te_node *table[1] = {te_find_tag(x->s->g, TE_TABLE)};
    return x->anchor &&
           (is_in_parts(x) || is_search(x) ||
            (x->anchor->n_outputs == 1 && te_is_one_nest_with(x->s, x->anchor, x->last, "pad", 1, table)));
}

/* A result that is one line of sums or extremes of `length` elements each: workers share it by groups of neighbors. */
static void share_line(te_sched *s, const struct target *t, const te_node *last, int64_t length)
{
    int64_t work = length;
    for (uint32_t i = 0; i < last->n_axes; i++) {
        const bool around = i + 1 < last->n_axes && te_axis_extent(last, i) != 1;
        if (around || !i64_mul(work, te_axis_most(s->g, last, i), &work))
            return;
    }
    if (t->workers > 1 && work >= PARALLEL_WORTH)
        te_sched_annotate(s, TE_PARALLEL, last->name, "lane_o");
}

/* The loop over images, or a few axes of the result, with the image and its border that windows read, and around some
 * of its iterations the table for all of them. */
static void share_images(te_sched *s, const te_node *last, uint32_t count, const te_node *pad)
{
    const te_node *table = te_find_tag(s->g, TE_TABLE);
    const char *outer = te_fuse_axes(s, last, count), *around = outer;
    int64_t rows = 1;
    if (table && !te_is_inlined(s, table)) {
        for (uint32_t i = 0; i < count; i++)
            rows *= te_axis_extent(last, i);
        around = te_cut_rows(s, last, outer, rows);
        te_sched_compute_at(s, table->name, last->name, around);
    }
    te_sched_annotate(s, TE_PARALLEL, last->name, around);
    if (pad)
        te_sched_compute_at(s, pad->name, last->name, around == outer ? outer : "line");
}

bool te_one_by_one(const te_case *x)
{
    te_sched *s = x->s;
    const struct target *t = x->t;
    te_node *anchor = x->anchor, *last = x->last;
    if (!te_takes_one_by_one(x))
        return by_stages(s, t, last);
    if (is_in_parts(x))
        return search_in_parts(s, t, anchor);
    if (is_search(x)) {
        search_beside(s, t, anchor);
        return true;
    }
    if (anchor->n_axes == 0) {
        te_sum_in_lanes(s, t, anchor, accumulate_inside(s, anchor, last), NULL, NULL, 0);
        return true;
    }
    te_node *pad = te_find_tag(s->g, "pad");
    const char *acc = accumulate_inside(s, anchor, last), *inner = te_axis_name(last, last->n_axes - 1);
    int64_t length = te_reduce_most(s->g, anchor);
    bool is_short = length > 0 && length < LONG_SUM && length % WHOLE_SUM != 0;
    if (!pad && is_short && sums_beside(s, t, anchor, last, acc))
        return true;
    uint32_t count = te_shared_axes(s->g, last, t->workers > 1 && !pad ? length : 1);
    if (pad && te_is_inlined(s, pad))
        pad = NULL;
    if (pad && count == 0 && last->n_axes > 2)
        count = 2;
    if (count > 0)
        share_images(s, last, count, pad);
    if (reduce_lines(s, t, anchor, last, acc)) {
        if (count == 0)
            share_line(s, t, last, length);
    } else {
        te_sched_compute_at(s, acc, last->name, inner);
        if (te_sum_in_lanes(s, t, anchor, acc, last->name, inner, anchor->n_axes))
            return true;
    }
    int64_t taps = te_reduce_most(s->g, anchor);
    for (uint32_t i = 0; pad && taps > 0 && taps <= KERNEL_UNROLL && i < anchor->n_reduce; i++)
        te_sched_annotate(s, TE_UNROLL, acc, anchor->reduce_axes[i]->var->name);
    return true;
}

/* --- rows --- */

/* Rows run in parallel, and what lies between the stages is one row long. */
static bool along_rows(const te_case *x)
{
    return te_schedule_rows(x->s, x->t, x->last);
}

static double cost_along_rows(const te_case *x)
{
    return te_cost_in_c(x->t, 3);
}

static bool stages(const te_case *x)
{
    return by_stages(x->s, x->t, x->last);
}

static const te_rule rows[] = {
    {"columns of windows", TE_POOL, "the extremes of columns, then those of windows of them", takes_columns,
     cost_columns, pool_columns},
    {"rows", TE_ROWS, "stages along rows, a row at a time", NULL, cost_along_rows, along_rows},
    {"one by one", TE_REDUCTION, "the sum of each result in a register, or in lanes along a row", te_takes_one_by_one,
     te_cost_one_by_one, te_one_by_one},
    {"stage by stage", TE_ANY, "each stage by itself, or all along rows that they share", NULL, te_cost_of_stages,
     stages},
};
const te_rules te_rules_plain = {rows, sizeof rows / sizeof *rows};
