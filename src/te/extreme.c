/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the place of the extreme in a row that has a few vectors. With a comparison and two choices for each element,
 * each element waits for the one before it. Vectors that look for the extreme alone are many times as fast. So each
 * part of the row gets its extreme; then the row of these extremes is searched, and then one part. The last part
 * begins so that it is whole. It overlaps with the part before it. This does not change which place is first, but it
 * would change which is last, so the last place is not searched like this. The result is that of the original stage:
 * NaN is the extreme of its part and of the row.
 *
 * In a shorter row, without vectors, or where elements do not lie side by side, a short test for each element is all
 * that counts. */
#include "te/extreme.h"
#include "te/op/util.h"
#include "tir/walk.h"

#define LONG_ROW 64 /* elements */
#define LEAST    64 /* elements of a part */

typedef struct search {
    te_graph *g;
    const te_node *from; /* the stage as it was */
    bool most;           /* the largest */
    int64_t length, part;
} search;

bool te_is_extreme(const te_reducer *r)
{
    const tir_expr_ref e = r ? r->combine[0] : NULL;
    return e && r->n == 1 && e->kind == TIR_BINOP && (e->op == TIR_MAX || e->op == TIR_MIN);
}

bool te_reads_row(const te_graph *g, const te_node *n)
{
    tir_expr_ref e = n->body[0];
    const tir_var *k = n->reduce_axes[0]->var;
    const te_tensor *t = e->kind == TIR_LOAD && e->type.dt == DT_F32 ? te_tensor_of(g, e->u.buffer) : NULL;
    if (!t || t->node->kind != TE_PLACEHOLDER)
        return false;
    for (uint32_t i = 0; i + 1 < e->n_args; i++)
        if (tir_uses_var(e->args[i], k))
            return false;
    tir_expr_ref at = e->args[e->n_args - 1];
    return at->kind == TIR_VAR && at->u.var == k;
}

static bool fits(const te_graph *g, const te_node *n, int64_t *out_length)
{
    return n->n_reduce == 1 && n->n_outputs == 2 && !n->where && g->params.len == g->n_inputs + 1 &&
           g->params.data[g->n_inputs] == n->outputs[1] && g->nodes.data[g->nodes.len - 1] == n &&
           tir_is_int(n->reduce_axes[0]->extent, out_length) && *out_length >= LONG_ROW && te_reads_row(g, n);
}

static tir_expr_ref const *indices(te_graph *g, uint32_t n, te_axis *const *axes, tir_expr_ref last)
{
    tir_expr_ref *idx = arena_array(&g->c->mem, tir_expr_ref, n + 1);
    for (uint32_t i = 0; i < n; i++)
        idx[i] = te_var(g, axes[i]);
    idx[n] = last;
    return idx;
}

/* Element `at` of the row that `axes` say. */
static tir_expr_ref element(const search *x, te_axis *const *axes, tir_expr_ref at)
{
    compiler *c = x->g->c;
    uint32_t n = x->from->n_axes;
    const tir_var **vars = arena_array(&c->mem, const tir_var *, n + 1);
    for (uint32_t i = 0; i < n; i++)
        vars[i] = x->from->axes[i]->var;
    vars[n] = x->from->reduce_axes[0]->var;
    return tir_substitute(c, x->from->body[0], n + 1, vars, indices(x->g, n, axes, at));
}

static tir_expr_ref first_of(const search *x, tir_expr_ref part)
{
    compiler *c = x->g->c;
    return tir_binary(c, TIR_MIN, tir_mul(c, part, tir_i64(c, x->part)), tir_i64(c, x->length - x->part));
}

static te_tensor *extremes(const search *x, int64_t parts)
{
    te_graph *g = x->g;
    uint32_t n = x->from->n_axes;
    tir_expr_ref *dims = arena_array(&g->c->mem, tir_expr_ref, n + 1);
    for (uint32_t i = 0; i < n; i++)
        dims[i] = x->from->axes[i]->extent;
    dims[n] = tir_i64(g->c, parts);
    te_axis *const *axes = te_data_axes(g, n + 1, dims), *k = te_reduce_axis(g, "k", tir_i64(g->c, x->part));
    tir_expr_ref at = tir_add(g->c, first_of(x, te_var(g, axes[n])), te_var(g, k)), body = element(x, axes, at);
    te_tensor *out = NULL;
    const te_reducer *r = te_simple_reducer(g->c, x->most ? TE_MAX : TE_MIN, DT_F32);
    te_compute_n(g, "extremes", n + 1, dims, axes, 1, &k, r, NULL, 1, (dtype[]){DT_F32}, &body, &out);
    out->node->tag = "extremes";
    return out;
}

/* Which of them is that of the row; in order, as the stage did with elements. */
static void part_of(const search *x, const te_tensor *extremes, int64_t parts, te_tensor *pair[2])
{
    te_graph *g = x->g;
    uint32_t n = x->from->n_axes;
    tir_expr_ref const *dims = x->from->outputs[0]->shape;
    te_axis *const *axes = te_data_axes(g, n, dims), *k = te_reduce_axis(g, "k", tir_i64(g->c, parts));
    tir_expr_ref body[2] = {te_read(g, extremes, indices(g, n, axes, te_var(g, k))), te_var(g, k)};
    te_compute_n(g, "part", n, dims, axes, 1, &k, x->from->reducer, NULL, 2, (dtype[]){DT_F32, DT_I64}, body, pair);
}

/* The first place of the extreme within the part. */
static te_tensor *place_of(const search *x, te_tensor *pair[2])
{
    te_graph *g = x->g;
    compiler *c = g->c;
    uint32_t n = x->from->n_axes;
    tir_expr_ref const *dims = x->from->outputs[0]->shape, *idx;
    te_axis *const *axes = te_data_axes(g, n, dims), *k = te_reduce_axis(g, "k", tir_i64(g->c, x->part));
    idx = indices(g, n, axes, NULL);
    tir_expr_ref at = tir_add(c, first_of(x, te_read(g, pair[1], idx)), te_var(g, k));
    tir_expr_ref here = te_ties(c, element(x, axes, at), te_read(g, pair[0], idx));
    tir_expr_ref body = tir_select(c, here, te_var(g, k), tir_i64(g->c, x->part));
    te_tensor *out = NULL;
    te_compute_n(g, "place", n, dims, axes, 1, &k, te_simple_reducer(c, TE_MIN, DT_I64), NULL, 1,
                 (dtype[]){DT_I64}, &body, &out);
    return out;
}

static te_tensor *result_of(const search *x, const te_tensor *part, const te_tensor *place)
{
    te_graph *g = x->g;
    compiler *c = g->c;
    uint32_t n = x->from->n_axes;
    tir_expr_ref const *dims = x->from->outputs[0]->shape, *idx;
    te_axis *const *axes = te_data_axes(g, n, dims);
    idx = indices(g, n, axes, NULL);
    tir_expr_ref body = tir_add(c, first_of(x, te_read(g, part, idx)), te_read(g, place, idx));
    te_tensor *out = NULL;
    te_compute_n(g, x->from->name, n, dims, axes, 0, NULL, NULL, NULL, 1, (dtype[]){DT_I64}, &body, &out);
    return out;
}

/* The comparison that an element takes: it beats all before it. */
static tir_expr_ref beats(compiler *c, bool most, tir_expr_ref x, tir_expr_ref a)
{
    if (!dtype_is_float(x->type.dt))
        return tir_binary(c, most ? TIR_GT : TIR_LT, x, a);
    return tir_and(c, tir_not(c, tir_binary(c, most ? TIR_LE : TIR_GE, x, a)), tir_not(c, tir_call1(c, TIR_ISNAN, a)));
}

static te_reducer *in_order(compiler *c, bool most, dtype dt, dtype place)
{
    const tir_var **v = arena_array(&c->mem, const tir_var *, 4);
    static const char *const names[4] = {"acc_value", "acc_index", "value", "index"};
    for (uint32_t i = 0; i < 4; i++)
        v[i] = tir_new_var(c, names[i], tir_scalar(i % 2 ? place : dt));
    tir_expr_ref *e = arena_array(&c->mem, tir_expr_ref, 4);
    tir_expr_ref a = tir_varref(c, v[0]), x = tir_varref(c, v[2]), take = beats(c, most, x, a);
    e[0] = tir_select(c, take, x, a);
    e[1] = tir_select(c, take, tir_varref(c, v[3]), tir_varref(c, v[1]));
    e[2] = te_simple_reducer(c, most ? TE_MAX : TE_MIN, dt)->identity[0];
    e[3] = tir_int(c, place, 0);
    te_reducer *r = arena_new(&c->mem, te_reducer);
    *r = (te_reducer){2, v, v + 2, e, e + 2};
    return r;
}

/* Whether the place in one row is all that g returns, and 32 bits hold it. */
static bool returns_place(const te_graph *g, const te_node *stage, int64_t length)
{
    for (uint32_t i = 0; i < stage->n_axes; i++)
        if (!tir_is_const(stage->axes[i]->extent, 1))
            return false;
    return length <= INT32_MAX && g->params.len == g->n_inputs + 1 &&
           g->params.data[g->n_inputs] == stage->outputs[1] && g->nodes.data[g->nodes.len - 1] == stage &&
           !stage->where && stage->n_reduce == 1;
}

void te_search_in_order(te_graph *g, const graph_node *n, te_node *stage)
{
    compiler *c = g->c;
    const bool most = n->op->te->compute == compute_argmax;
    int64_t length = 0;
    if ((!most && n->op->te->compute != compute_argmin) || graph_attr_int(n, "select_last_index") != 0 ||
        !tir_is_int(stage->reduce_axes[0]->extent, &length) || length < 1)
        return;
    const dtype dt = stage->reducer->acc[0]->type.dt;
    if (!returns_place(g, stage, length)) {
        stage->reducer = in_order(c, most, dt, DT_I64);
        return;
    }
    const search x = {.g = g, .from = stage, .most = most, .length = length};
    const uint32_t rank = stage->n_axes;
    tir_expr_ref const *dims = stage->outputs[0]->shape;
    te_axis *const *axes = te_data_axes(g, rank, dims), *k = te_reduce_axis(g, "k", stage->reduce_axes[0]->extent);
    tir_expr_ref body[2] = {element(&x, axes, te_var(g, k)), tir_cast(c, DT_I32, te_var(g, k))};
    te_tensor *pair[2], *out = NULL;
    g->nodes.len--;
    te_compute_n(g, "place", rank, dims, axes, 1, &k, in_order(c, most, dt, DT_I32), NULL, 2, (dtype[]){dt, DT_I32},
                 body, pair);
    te_axis *const *to = te_data_axes(g, rank, dims);
    tir_expr_ref place = tir_cast(c, DT_I64, te_read(g, pair[1], indices(g, rank, to, NULL)));
    te_compute_n(g, stage->name, rank, dims, to, 0, NULL, NULL, NULL, 1, (dtype[]){DT_I64}, &place, &out);
    g->params.data[g->n_inputs] = out;
}

bool te_search_in_parts(te_graph *g, const graph_node *n, const te_node *stage)
{
    search x = {.g = g, .from = stage, .most = n->op->te->compute == compute_argmax, .part = LEAST};
    te_tensor *pair[2];
    if ((!x.most && n->op->te->compute != compute_argmin) || graph_attr_int(n, "select_last_index") != 0 ||
        !fits(g, stage, &x.length))
        return false;
    while (x.part * x.part < x.length) /* both that are searched element by element are as short as they can be */
        x.part *= 2;
    int64_t parts = (x.length + x.part - 1) / x.part;
    g->nodes.len--;
    const te_tensor *best = extremes(&x, parts);
    part_of(&x, best, parts, pair);
    g->params.data[g->n_inputs] = result_of(&x, pair[1], place_of(&x, pair));
    return true;
}
