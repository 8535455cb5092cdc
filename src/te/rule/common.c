/* SPDX-License-Identifier: Apache-2.0 */
/* What rules share: questions about the tensor graph and a few moves. */
#include "te/rule/rule.h"
#include "tir/walk.h"
#include "type/target.h"

#include <assert.h>
#include <string.h>

/* --- questions --- */

bool te_is_inlined(const te_sched *s, const te_node *n)
{
    for (uint32_t i = 0; i < s->prims.len; i++)
        if (s->prims.data[i].kind == TE_INLINE && strcmp(s->prims.data[i].u.stage, n->name) == 0)
            return true;
    return false;
}

int64_t te_axis_extent(const te_node *n, uint32_t i)
{
    int64_t v = 0;
    return i < n->n_axes && tir_is_int(n->axes[i]->extent, &v) ? v : 0;
}

int64_t te_axis_most(const te_graph *g, const te_node *n, uint32_t i)
{
    return i < n->n_axes ? te_most(g, n->axes[i]->extent) : 0;
}

int64_t te_reduce_most(const te_graph *g, const te_node *n)
{
    int64_t product = 1;
    for (uint32_t i = 0; i < n->n_reduce; i++)
        if (!i64_mul(product, te_most(g, n->reduce_axes[i]->extent), &product))
            return 0;
    return product;
}

const char *te_axis_name(const te_node *n, uint32_t i)
{
    assert(i < n->n_axes);
    return n->axes[i]->var->name;
}

bool te_weights_stay(const struct target *t, int64_t bytes)
{
    return bytes <= (int64_t)target_cpu(t)->l2_bytes / PART_IN_CACHE;
}

te_node *te_find_tag(const te_graph *g, const char *tag)
{
    for (uint32_t i = 0; i < g->nodes.len; i++)
        if (g->nodes.data[i]->tag && strcmp(g->nodes.data[i]->tag, tag) == 0)
            return g->nodes.data[i];
    return NULL;
}

const char *te_find_parameter(const te_graph *g, const char *value)
{
    for (uint32_t i = 0; i < g->nodes.len; i++) {
        const te_node *n = g->nodes.data[i];
        if (n->kind == TE_PLACEHOLDER && strcmp(n->label ? n->label : n->name, value) == 0)
            return n->name;
    }
    return NULL;
}

bool te_is_one_nest_with(const te_sched *s, const te_node *anchor, const te_node *last, const char *also,
                         uint32_t n_beside, const te_node *const *beside)
{
    const te_graph *g = s->g;
    if (!anchor || g->params.len - g->n_inputs != 1 || last->kind != TE_COMPUTE || anchor->n_axes != last->n_axes)
        return false;
    for (uint32_t i = 0; i < last->n_axes; i++)
        if (!tir_expr_equal(anchor->axes[i]->extent, last->axes[i]->extent))
            return false;
    for (uint32_t i = 0; i < g->nodes.len; i++) {
        const te_node *n = g->nodes.data[i];
        bool known = n == anchor || n == last || (also && n->tag && strcmp(n->tag, also) == 0);
        for (uint32_t k = 0; k < n_beside && !known; k++)
            known = n == beside[k];
        known |= n->tag && strcmp(n->tag, TE_UNPACKED) == 0; /* placed, or inlined at last */
        if (n->kind == TE_EXTERN || (n->kind == TE_COMPUTE && !known && !te_is_inlined(s, n)))
            return false;
    }
    return true;
}

bool te_is_one_nest(const te_sched *s, const te_node *anchor, const te_node *last, const char *also)
{
    return te_is_one_nest_with(s, anchor, last, also, 0, NULL);
}

bool te_adds_var(tir_expr_ref e, const tir_var *v)
{
    if (e->kind == TIR_VAR)
        return e->u.var == v;
    if (!tir_is_binary(e, TIR_ADD))
        return false;
    bool first = tir_uses_var(e->args[0], v);
    return first != tir_uses_var(e->args[1], v) && te_adds_var(e->args[first ? 0 : 1], v);
}

typedef struct line_check {
    const tir_var *v;
    bool contiguous;
} line_check;

static void check_read(void *ctx, tir_expr_ref e)
{
    line_check *x = ctx;
    for (uint32_t i = 0; e->kind == TIR_LOAD && i < e->n_args; i++)
        if (tir_uses_var(e->args[i], x->v))
            x->contiguous = x->contiguous && i + 1 == e->n_args && te_adds_var(e->args[i], x->v);
}

bool te_reads_lines(const te_node *n, uint32_t axis)
{
    assert(axis < n->n_axes && n->body);
    line_check x = {n->axes[axis]->var, true};
    tir_visit_expr(n->body[0], check_read, &x);
    return x.contiguous;
}

/* --- moves --- */

uint32_t te_shared_axes(const te_graph *g, const te_node *n, int64_t each)
{
    int64_t outer = 1, all = each;
    for (uint32_t i = 0; i < n->n_axes; i++)
        if (!i64_mul(all, te_axis_most(g, n, i), &all))
            return 0;
    if (all < PARALLEL_WORTH)
        return 0;
    uint32_t count = 0;
    while (count + 1 < n->n_axes && outer < PARALLEL_ENOUGH)
        outer *= te_axis_most(g, n, count++);
    return outer > 1 ? count : 0;
}

uint32_t te_parallel_axes(const te_graph *g, const te_node *n)
{
    return te_shared_axes(g, n, 1);
}

const char *te_fuse_axes(te_sched *s, const te_node *n, uint32_t count)
{
    assert(count <= n->n_axes);
    const char *name = te_axis_name(n, 0);
    for (uint32_t i = 1; i < count; i++) {
        const char *fused = arena_printf(&s->c->mem, "f%u", i);
        te_sched_fuse(s, n->name, name, te_axis_name(n, i), fused);
        name = fused;
    }
    return name;
}

const char *te_fuse_parallel(te_sched *s, const te_node *n, uint32_t count)
{
    const char *name = te_fuse_axes(s, n, count);
    te_sched_annotate(s, TE_PARALLEL, n->name, name);
    return name;
}

const char *te_sums_stage(te_sched *s, const te_node *anchor, const te_node *last, const char *scope)
{
    if (anchor != last) {
        te_sched_set_scope(s, anchor->name, scope);
        return anchor->name;
    }
    const char *acc = arena_printf(&s->c->mem, "%s_acc", anchor->name);
    te_sched_cache_write(s, anchor->name, scope, acc);
    return acc;
}

const char *te_sums_beside_tile(te_sched *s, const te_node *anchor, const te_node *last, const char **tile)
{
    *tile = anchor->name;
    if (anchor == last) {
        *tile = arena_printf(&s->c->mem, "%s_tile", anchor->name);
        te_sched_cache_write(s, anchor->name, "local", *tile);
    }
    const char *acc = arena_printf(&s->c->mem, "%s_acc", anchor->name);
    te_sched_cache_write(s, *tile, "local.reg", acc);
    te_sched_set_scope(s, *tile, "local");
    return acc;
}

const char *te_cut_lines(te_sched *s, const struct target *t, const te_node *last)
{
    const char *line = te_axis_name(last, 1);
    if (t->workers <= 1) {
        te_sched_pragma(s, last->name, line, "whole", 1); /* flash: the lines at the border are no code of their own */
        return line;
    }
    te_sched_fuse(s, last->name, te_axis_name(last, 0), line, "part");
    te_sched_annotate(s, TE_PARALLEL, last->name, "part");
    return "part";
}
