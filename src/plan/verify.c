/* SPDX-License-Identifier: Apache-2.0 */
/* Checks a finished plan from the problem alone, sharing nothing with the planner but the notion of a root. */
#include "plan/plan.h"

#include <string.h>

typedef struct verify_piece {
    uint64_t from, to;    /* bytes of the workspace */
    uint32_t first, last; /* layers */
    uint32_t root;
    const char *name;
} verify_piece;

static bool fail(compiler *c, const char *what, const char *a, const char *b)
{
    return diag_error(&c->diags, DIAG_VERIFY, src_loc_none(), "plan: %s: '%s' and '%s'", what, a, b);
}

/* Values by their root: those of root r follow each other from first[r], to the one before first[r + 1]. */
typedef struct verify_tree {
    uint32_t *root, *first, *members;
    uint64_t *start; /* of each value, in its root */
    int64_t *writer; /* of each value: the operator that has it among its results; -1: comes from outside */
} verify_tree;

static void collect_tree(const plan_problem *p, arena *a, verify_tree *t)
{
    uint32_t n = p->values.len;
    *t = (verify_tree){.root = arena_array(a, uint32_t, n + 1),
                       .first = arena_array(a, uint32_t, n + 2),
                       .members = arena_array(a, uint32_t, n + 1),
                       .start = arena_array(a, uint64_t, n + 1),
                       .writer = arena_array(a, int64_t, n + 1)};
    for (uint32_t v = 0; v < n; v++) {
        t->root[v] = plan_root(p, v, &t->start[v]);
        t->first[t->root[v] + 2]++;
        t->writer[v] = -1;
    }
    for (uint32_t r = 2; r <= n + 1; r++)
        t->first[r] += t->first[r - 1];
    for (uint32_t v = 0; v < n; v++)
        t->members[t->first[t->root[v] + 1]++] = v;
    for (uint32_t op = p->ops.len; op-- > 0;)
        for (uint32_t i = p->ops.data[op].n_inputs; i < p->ops.data[op].n_args; i++)
            t->writer[p->ops.data[op].args[i]] = op;
}

static bool check_operand(compiler *c, const plan_problem *p, const verify_tree *t, uint32_t op, uint32_t operand)
{
    uint32_t root = t->root[operand];
    for (uint32_t k = t->first[root]; k < t->first[root + 1]; k++) {
        uint32_t v = t->members[k];
        int64_t w = t->writer[v];
        bool overlap = t->start[operand] < t->start[v] + p->values.data[v].bytes &&
                       t->start[v] < t->start[operand] + p->values.data[operand].bytes;
        if (w >= 0 && w != op && overlap && p->ops.data[w].layer >= p->ops.data[op].layer)
            return fail(c, "an operator does not come after what it depends on", p->ops.data[op].name,
                        p->ops.data[w].name);
    }
    return true;
}

static bool check_order(compiler *c, const plan_problem *p, const verify_tree *t)
{
    for (uint32_t op = 0; op < p->ops.len; op++)
        for (uint32_t i = 0; i < p->ops.data[op].n_inputs; i++)
            if (!check_operand(c, p, t, op, p->ops.data[op].args[i]))
                return false;
    return true;
}

static void collect_values(const plan_problem *p, const verify_tree *t, arena *a, verify_piece **pieces, uint32_t *n)
{
    uint32_t *first = arena_array(a, uint32_t, p->values.len + 1), *last = arena_array(a, uint32_t, p->values.len + 1);
    memset(first, 0xff, p->values.len * sizeof *first);
    for (uint32_t op = 0; op < p->ops.len; op++)
        for (uint32_t i = 0; i < p->ops.data[op].n_args; i++) {
            uint32_t r = t->root[p->ops.data[op].args[i]], layer = p->ops.data[op].layer;
            first[r] = layer < first[r] ? layer : first[r];
            last[r] = layer > last[r] ? layer : last[r];
        }
    *pieces = arena_array(a, verify_piece, p->values.len);
    *n = 0;
    for (uint32_t v = 0; v < p->values.len; v++) {
        const plan_value *x = &p->values.data[v];
        if (x->parent < 0 && x->storage == STORE_WORKSPACE && x->bytes > 0 && first[v] != UINT32_MAX)
            (*pieces)[(*n)++] = (verify_piece){x->offset, x->offset + x->bytes, first[v], last[v], v, x->name};
    }
}

/* b may lie on a when one operator reads a for the last time, alone in its layer, and writes b over it in place. */
static bool on_purpose(const plan_problem *p, const verify_piece *a, const verify_piece *b)
{
    if (a->from != b->from || a->to != b->to || a->last != b->first)
        return false;
    bool written = false;
    for (uint32_t op = 0; op < p->ops.len; op++) {
        const plan_op *o = &p->ops.data[op];
        bool reads = false, writes = false, pair = false;
        uint64_t start;
        for (uint32_t i = 0; i < o->n_inputs; i++)
            reads |= plan_root(p, o->args[i], &start) == a->root;
        for (uint32_t i = o->n_inputs; i < o->n_args; i++)
            writes |= plan_root(p, o->args[i], &start) == b->root;
        for (uint32_t k = 0; k < o->n_inplace; k++)
            pair |= plan_root(p, o->args[o->inplace[k].in], &start) == a->root &&
                    plan_root(p, o->args[o->inplace[k].out], &start) == b->root;
        if (o->layer == a->last && reads && !writes)
            return false;
        if (writes && (!pair || written || o->layer != b->first))
            return false;
        written |= writes;
    }
    return written;
}

static bool check_overlaps(compiler *c, const plan *pl, const verify_piece *x, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        if (x[i].to > pl->workspace_bytes)
            return fail(c, "a value reaches beyond the workspace", x[i].name, "workspace");
        for (uint32_t k = 0; k < n; k++) {
            bool meet =
                x[i].first <= x[k].last && x[k].first <= x[i].last && x[i].from < x[k].to && x[k].from < x[i].to;
            if (i < k && meet && !on_purpose(pl->problem, &x[i], &x[k]) && !on_purpose(pl->problem, &x[k], &x[i]))
                return fail(c, "values that live at the same time overlap", x[i].name, x[k].name);
        }
    }
    return true;
}

static bool check_scratch(compiler *c, const plan *pl, const verify_piece *x, uint32_t n)
{
    const plan_problem *p = pl->problem;
    for (uint32_t op = 0; op < p->ops.len; op++) {
        const plan_op *o = &p->ops.data[op];
        for (uint32_t s = 0; s < o->n_scratch; s++) {
            int64_t count = tir_buffer_count(o->scratch[s].buffer);
            uint64_t bytes = (uint64_t)(count > 0 ? count : 0) * dtype_bytes(o->scratch[s].buffer->dt);
            uint64_t from = o->scratch_offset[s], to = from + bytes * (o->scratch[s].per_part ? o->parts : 1);
            if (to > pl->workspace_bytes)
                return fail(c, "scratch reaches beyond the workspace", o->name, "workspace");
            for (uint32_t i = 0; i < n; i++)
                if (x[i].first <= o->layer && o->layer <= x[i].last && from < x[i].to && x[i].from < to)
                    return fail(c, "scratch overlaps a value", o->name, x[i].name);
        }
    }
    return true;
}

bool plan_verify(compiler *c, const plan *pl)
{
    arena tmp;
    arena_init(&tmp);
    verify_piece *pieces;
    uint32_t n;
    verify_tree tree;
    collect_tree(pl->problem, &tmp, &tree);
    collect_values(pl->problem, &tree, &tmp, &pieces, &n);
    bool ok = check_order(c, pl->problem, &tree) && check_overlaps(c, pl, pieces, n) && check_scratch(c, pl, pieces, n);
    for (uint32_t op = 0; ok && op < pl->problem->ops.len; op++)
        if (pl->problem->ops.data[op].parts == 0)
            ok = fail(c, "an operator has no part", pl->problem->ops.data[op].name, "");
    arena_free(&tmp);
    return ok;
}
