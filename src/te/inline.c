/* SPDX-License-Identifier: Apache-2.0 */
/* Counts operations and reads of stages. */
#include "te/inline.h"
#include "te/te_op.h"

#include "tir/walk.h"

#include <string.h>

#define MOST (UINT32_MAX / 2)

typedef struct counter {
    const te_graph *g;
    const te_node *producer;
    const tir_map *inlined;
    uint32_t uses;
    te_operations sum;
} counter;

static void count_use(void *ctx, tir_expr_ref e)
{
    counter *u = ctx;
    if (e->kind != TIR_LOAD)
        return;
    const te_tensor *t = te_tensor_of(u->g, e->u.buffer);
    u->uses += t && t->node == u->producer;
}

static uint32_t sum_of(uint32_t a, uint32_t b)
{
    return a > MOST - b ? MOST : a + b;
}

static void count_cost(void *ctx, tir_expr_ref e)
{
    counter *u = ctx;
    if (e->type.dt == DT_I64 && e->kind == TIR_BINOP)
        return; /* index arithmetic */
    const te_tensor *t = e->kind == TIR_LOAD ? te_tensor_of(u->g, e->u.buffer) : NULL;
    if (e->kind == TIR_CALL && e->op == TIR_APART)
        return; /* no instruction */
    uint32_t here = e->kind == TIR_CALL ? 4 : e->kind == TIR_LOAD || e->kind == TIR_BINOP || e->kind == TIR_SELECT;
    u->sum.own = sum_of(u->sum.own, here);
    u->sum.whole = sum_of(u->sum.whole, here);
    if (t)
        u->sum.whole = sum_of(u->sum.whole, (uint32_t)(uintptr_t)tir_map_get(u->inlined, t->node));
}

te_operations te_count_operations(const te_graph *g, const te_node *n, const tir_map *inlined)
{
    counter u = {.g = g, .inlined = inlined};
    for (uint32_t k = 0; k < n->n_outputs; k++)
        tir_visit_expr(n->body[k], count_cost, &u);
    return u.sum;
}

void te_note_inlined(tir_map *inlined, const te_node *n, te_operations o)
{
    tir_map_put(inlined, n, (const void *)(uintptr_t)o.whole);
}

uint32_t te_uses_of(te_graph *g, const te_node *n)
{
    counter u = {.g = g, .producer = n};
    for (uint32_t i = 0; i < g->checks.len; i++)
        tir_visit_expr(g->checks.data[i].check->where, count_use, &u);
    for (uint32_t i = 0; i < g->nodes.len; i++) {
        const te_node *r = g->nodes.data[i];
        uint32_t before = u.uses;
        for (uint32_t k = 0; r->kind == TE_COMPUTE && k < r->n_outputs; k++)
            tir_visit_expr(r->body[k], count_use, &u);
        for (uint32_t k = 0; k < r->n_inputs; k++)
            if (r->inputs[k]->node == n)
                u.uses += 100;
        if (r->reducer && u.uses > before && r->n_axes + r->n_reduce > n->n_axes)
            u.uses++;
    }
    return u.uses;
}

bool te_is_literal(const te_node *n)
{
    return n->tag && strcmp(n->tag, TE_LITERAL) == 0;
}
