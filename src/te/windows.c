/* SPDX-License-Identifier: Apache-2.0 */
/* Extremes of windows in two stages: of each column of a window, and then of these. Neighboring windows share their
 * columns, so that each number is compared once for each axis. The order does not matter to an extreme. A number may be
 * taken twice, too: the row next to the border stands for rows of the border, and no image with a border is made. */
#include "te/extreme.h"
#include "te/op/util.h"
#include "te/te_op.h"
#include "tir/simplify.h"
#include "tir/walk.h"

#include <assert.h>
#include <string.h>

#define LEAST_TAPS 6 /* of windows that are worth a second stage */

/* The window's read of planes: rows follow axis 2 and the first reduction, columns axis 3 and the second. */
static tir_expr_ref read_of(const te_node *n)
{
    tir_expr_ref e = n->body[0];
    if (e->kind != TIR_LOAD || e->n_args != 4)
        return NULL;
    for (uint32_t i = 0; i < 4; i++) {
        bool own = i >= 2;
        if (!own && (e->args[i]->kind != TIR_VAR || e->args[i]->u.var != n->axes[i]->var))
            return NULL;
        for (uint32_t k = 0; k < 4; k++)
            if (k != i && tir_uses_var(e->args[i], n->axes[k]->var))
                return NULL;
        for (uint32_t k = 0; k < 2; k++)
            if (k + 2 != i && tir_uses_var(e->args[i], n->reduce_axes[k]->var))
                return NULL;
    }
    return e;
}

static bool fits(const te_node *n)
{
    int64_t high = 0, wide = 0;
    return n->kind == TE_COMPUTE && te_is_extreme(n->reducer) && n->n_axes == 4 && n->n_reduce == 2 &&
           n->n_outputs == 1 && !n->where && n->outputs[0]->dt == DT_F32 &&
           tir_is_int(n->reduce_axes[0]->extent, &high) && tir_is_int(n->reduce_axes[1]->extent, &wide) && high > 1 &&
           wide > 1 && high * wide >= LEAST_TAPS;
}

/* The stage of the columns, made behind all others, goes before its reader. */
static void move_before(te_graph *g, const te_node *reader)
{
    te_node *made = vec_last(&g->nodes);
    uint32_t i = g->nodes.len - 1;
    for (; i > 0 && g->nodes.data[i] != reader; i--)
        g->nodes.data[i] = g->nodes.data[i - 1];
    assert(g->nodes.data[i] == reader);
    g->nodes.data[i] = made;
    g->nodes.data[i + 1] = (te_node *)(uintptr_t)reader;
}

/* An image and its border, of which a pool reads a place. */
typedef struct bordered {
    const te_tensor *image;
    tir_expr_ref row, column; /* of the place in the image; outside of it: in the border */
} bordered;

/* `at` of the border's stage is `row` and `column`. Only of an image that is in memory: what computes it would do so
 * for each window. */
static bool find_border(const te_graph *g, tir_expr_ref read, bordered *out)
{
    const te_node *pad = te_tensor_of(g, read->u.buffer)->node;
    if (!pad->tag || strcmp(pad->tag, "pad") != 0 || pad->n_axes != 4 || pad->body[0]->kind != TIR_SELECT ||
        pad->body[0]->args[1]->kind != TIR_LOAD)
        return false;
    const tir_expr_ref load = pad->body[0]->args[1];
    const te_tensor *image = te_tensor_of(g, load->u.buffer);
    if (load->n_args != 4 || image->node->kind != TE_PLACEHOLDER)
        return false;
    const tir_var *vars[2] = {pad->axes[2]->var, pad->axes[3]->var};
    *out = (bordered){.image = image,
                      .row = tir_substitute(g->c, load->args[2], 2, vars, read->args + 2),
                      .column = tir_substitute(g->c, load->args[3], 2, vars, read->args + 2)};
    return true;
}

/* What `e` is for those values of two axes; false: not a number. */
static bool number_at(compiler *c, tir_expr_ref e, const te_axis *a, int64_t i, const te_axis *b, int64_t k,
                      int64_t *out)
{
    const tir_var *vars[2] = {a->var, b->var};
    tir_expr_ref values[2] = {tir_int(c, DT_I64, i), tir_int(c, DT_I64, k)};
    return tir_is_int(tir_simplify(tir_bounds_new(c), tir_substitute(c, e, 2, vars, values)), out);
}

/* Whether each window has a row of the image, and rows without gaps: then the row next to a border is in each window
 * that has rows of this border. Windows side by side fill vectors where no column depends on a condition: they keep the
 * image with a border. */
static bool reads_in_place(const te_graph *g, const te_node *pool, const bordered *x)
{
    const te_axis *row = pool->axes[2], *column = pool->axes[3], *down = pool->reduce_axes[0],
                  *along = pool->reduce_axes[1];
    int64_t height = 0, windows = 0, taps = 0, first = 0, next = 0, last = 0, left = 0, right = 0;
    return tir_is_int(x->image->shape[2], &height) && tir_is_int(row->extent, &windows) &&
           tir_is_int(down->extent, &taps) && number_at(g->c, x->row, row, 0, down, 0, &first) &&
           number_at(g->c, x->row, row, 0, down, 1, &next) &&
           number_at(g->c, x->row, row, windows - 1, down, 0, &last) &&
           number_at(g->c, x->column, column, 0, along, 0, &left) &&
           number_at(g->c, x->column, column, 1, along, 0, &right) && next == first + 1 && first + taps > 0 &&
           last < height && right > left + 1;
}

bool te_window_columns(te_graph *g, te_node *pool)
{
    compiler *c = g->c;
    tir_expr_ref read = fits(pool) ? read_of(pool) : NULL;
    if (!read)
        return false;
    bordered b = {.image = te_tensor_of(g, read->u.buffer), .row = read->args[2], .column = read->args[3]};
    bordered image;
    const bool in_place = find_border(g, read, &image) && reads_in_place(g, pool, &image);
    b = in_place ? image : b;
    tir_expr_ref dims[4] = {pool->axes[0]->extent, pool->axes[1]->extent, pool->axes[2]->extent, b.image->shape[3]};
    te_axis *const *axes = te_data_axes(g, 4, dims), *tap = te_reduce_axis(g, "row", pool->reduce_axes[0]->extent);
    const tir_var *vars[2] = {pool->axes[2]->var, pool->reduce_axes[0]->var};
    tir_expr_ref values[2] = {te_var(g, axes[2]), te_var(g, tap)}, at[4];
    at[0] = te_var(g, axes[0]);
    at[1] = te_var(g, axes[1]);
    at[2] = tir_substitute(c, b.row, 2, vars, values);
    at[2] = in_place ? te_clamp_index(g, at[2], b.image->shape[2]) : at[2];
    at[3] = te_var(g, axes[3]);
    tir_expr_ref body = te_read(g, b.image, at);
    te_tensor *columns = NULL;
    te_compute_n(g, TE_COLUMNS, 4, dims, axes, 1, &tap, pool->reducer, NULL, 1, (dtype[]){DT_F32}, &body, &columns);
    columns->node->tag = TE_COLUMNS;
    move_before(g, pool);
    tir_expr_ref *bodies = arena_array(&c->mem, tir_expr_ref, 1);
    for (uint32_t i = 0; i < 3; i++)
        at[i] = te_var(g, pool->axes[i]);
    at[3] = b.column;
    bodies[0] = te_read(g, columns, at);
    pool->body = bodies;
    pool->where = in_place ? te_in_bounds(g, b.column, b.image->shape[3]) : NULL;
    pool->reduce_axes++;
    pool->n_reduce = 1;
    return true;
}

#define BESIDE 16  /* extremes side by side (te/rule/lanes.c) */
#define LONGEST 512 /* elements; what is left over of a longer row is a small part of it */

bool te_takes_rows_twice(const te_graph *g, const te_node *n, int64_t length)
{
    return n->kind == TE_COMPUTE && te_is_extreme(n->reducer) && n->n_outputs == 1 && !n->where &&
           n->outputs[0]->dt == DT_F32 && length > BESIDE && length < LONGEST && n->body[0]->kind == TIR_LOAD &&
           te_tensor_of(g, n->body[0]->u.buffer)->node->kind == TE_PLACEHOLDER;
}

void te_whole_rows(te_graph *g, te_node *n)
{
    compiler *c = g->c;
    int64_t length = 0;
    if (n->n_reduce != 1 || !tir_is_int(n->reduce_axes[0]->extent, &length) || length % BESIDE == 0 ||
        !te_takes_rows_twice(g, n, length) || !te_reads_row(g, n))
        return;
    te_axis **axes = arena_array(&c->mem, te_axis *, 2);
    axes[0] = te_reduce_axis(g, "part", tir_i64(c, (length + BESIDE - 1) / BESIDE));
    axes[1] = te_reduce_axis(g, "k", tir_i64(c, BESIDE));
    tir_expr_ref first = tir_mul(c, te_var(g, axes[0]), tir_i64(c, BESIDE)),
                 at = tir_add(c, tir_min(c, first, tir_i64(c, length - BESIDE)), te_var(g, axes[1]));
    tir_expr_ref *body = arena_array(&c->mem, tir_expr_ref, 1);
    const tir_var *k = n->reduce_axes[0]->var;
    body[0] = tir_substitute(c, n->body[0], 1, &k, &at);
    n->body = body;
    n->reduce_axes = axes;
    n->n_reduce = 2;
}
