/* SPDX-License-Identifier: Apache-2.0 */
/* Branches and loops of the graph as steps with blocks. What a region makes as its result is made in the place of the
 * result where nothing stands in the way, else copied there. A carried value is written at the end of a round; sooner
 * when all that read it come before. */
#include "abi/package.h"
#include "graph/op.h"
#include "prog/lower.h"
#include "te/from_graph.h"
#include "tir/build.h"
#include "tir/walk.h"

#include <string.h>

static const graph_func *region_of(const graph_node *n, const char *name)
{
    return graph_attr(n, name)->u.func;
}

/* A kernel in l->f that copies v into value `to` of the program, or with PROG_NONE into one of its own. NULL after an
 * error. */
static graph_value *copy_into(lowering *l, graph_value *v, uint32_t to, src_loc loc)
{
    graph_node *n = graph_new_node(l->f, graph_find_op(l->c, "copy"), 1, &v, 0, NULL, 1, NULL, loc);
    if (!graph_infer_node(l->c, n))
        return NULL;
    if (to != PROG_NONE)
        ptr_map_set(&l->into, n->outputs[0], to);
    return l->add_node(l, n) ? n->outputs[0] : NULL;
}

/* Whether v is made by a step of its own in the function, so that it can be made elsewhere. */
static bool can_be_made_in(lowering *l, const graph_value *v, const type *t)
{
    uint32_t other;
    return v->def && !graph_constant(v) && !lower_viewed(v->def) && !ptr_map_get(&l->into, v, &other) &&
           type_equal(&v->type, t);
}

typedef struct inner {
    graph_func *f;
    prog_block *block;
} inner;

/* From now on steps are those of f, and go to `to`. */
static bool enter(lowering *l, const graph_node *n, const graph_func *f, prog_block *to, inner *was)
{
    *was = (inner){l->f, l->block};
    if (l->depth == PROG_MAX_DEPTH)
        return diag_error(&l->c->diags, DIAG_UNSUPPORTED, n->loc, "branches and loops are nested more than %u deep",
                          PROG_MAX_DEPTH);
    l->depth++;
    l->f = (graph_func *)(uintptr_t)f;
    l->block = to;
    lower_clear_marks(l->f);
    return lower_check(l);
}

static void leave(lowering *l, const inner *was)
{
    l->f = was->f;
    l->block = was->block;
    l->depth--;
}

static bool add_nodes(lowering *l)
{
    for (uint32_t i = 0; i < l->f->nodes.len; i++)
        if (!l->add_node(l, l->f->nodes.data[i]))
            return false;
    return true;
}

static prog_step new_step(lowering *l, prog_step_kind kind, const graph_node *n, uint32_t most, uint32_t blocks)
{
    prog_step s = {.kind = kind, .loc = n->loc, .n_blocks = blocks};
    const char *unused;
    lower_describe(l, n, &unused, &s.source);
    s.args = arena_array(&l->c->mem, uint32_t, most + 1u);
    s.blocks = arena_array(&l->c->mem, prog_block, blocks);
    return s;
}

/* Values of n's operands from `first` on. They are made known here so that constants stand in front of the step. */
static bool operands_of(lowering *l, const graph_node *n, uint32_t first, uint32_t *out)
{
    for (uint32_t i = first; i < n->n_inputs; i++)
        if (!lower_operand(l, n->inputs[i], n->loc, &out[i]))
            return false;
    return true;
}

/* --- extents that are known behind the step only --- */

typedef struct told {
    const char *symbol;
    uint32_t result, axis; /* where it is a dimension */
    uint32_t cell;
} told;

/* Symbols of n's results that nothing tells yet. */
static uint32_t find_told(lowering *l, const graph_node *n, told *out)
{
    const char *symbols[TYPE_MAX_RANK];
    uint32_t all = graph_own_symbols(n, TYPE_MAX_RANK, symbols), found = 0;
    for (uint32_t s = 0; s < all; s++) {
        told t = {.symbol = symbols[s], .result = UINT32_MAX};
        for (uint32_t i = n->n_outputs; i-- > 0;)
            for (int32_t k = 0; k < n->outputs[i]->type.shape.rank; k++) {
                const char *name = dim_symbol_name(n->outputs[i]->type.shape.dims[k]);
                if (name && strcmp(name, t.symbol) == 0) {
                    t.result = i;
                    t.axis = (uint32_t)k;
                }
            }
        if (t.result != UINT32_MAX && prog_find_extent(l->to, t.symbol) == PROG_NONE)
            out[found++] = t;
    }
    return found;
}

/* A kernel in l->f that writes an extent of v. */
static bool tell_extent(lowering *l, graph_value *v, uint32_t axis, uint32_t cell, src_loc loc)
{
    attr at[2] = {attr_int(l->c, "start", axis), attr_int(l->c, "end", (int64_t)axis + 1)};
    graph_node *n = graph_new_node(l->f, graph_find_op(l->c, "shape_of"), 1, &v, 2, at, 1, NULL, loc);
    if (!graph_infer_node(l->c, n))
        return false;
    ptr_map_set(&l->into, n->outputs[0], cell);
    return l->add_node(l, n);
}

/* --- branches --- */

static bool add_branch(lowering *l, const graph_node *n, const graph_func *f, const uint32_t *operands,
                       const prog_step *s, const told *tells, uint32_t n_tells, prog_block *to)
{
    inner was;
    if (!enter(l, n, f, to, &was))
        return false;
    for (uint32_t i = 0; i < f->params.len; i++)
        f->params.data[i]->mark = operands[1 + i] + 1;
    bool *direct = arena_array(&l->c->mem, bool, n->n_outputs + 1u);
    for (uint32_t i = 0; i < n->n_outputs; i++) {
        direct[i] = can_be_made_in(l, f->results.data[i], &n->outputs[i]->type);
        if (direct[i])
            ptr_map_set(&l->into, f->results.data[i], s->args[s->n_in + i]);
    }
    bool ok = add_nodes(l);
    for (uint32_t i = 0; ok && i < n->n_outputs; i++)
        ok = direct[i] || copy_into(l, f->results.data[i], s->args[s->n_in + i], n->loc);
    for (uint32_t i = 0; ok && i < n_tells; i++)
        ok = tell_extent(l, f->results.data[tells[i].result], tells[i].axis, tells[i].cell, n->loc);
    leave(l, &was);
    return ok;
}

bool lower_if(lowering *l, graph_node *n)
{
    prog_step s = new_step(l, STEP_IF, n, 1 + n->n_outputs + TYPE_MAX_RANK, 2);
    uint32_t *operands = arena_array(&l->c->mem, uint32_t, n->n_inputs);
    told tells[TYPE_MAX_RANK];
    if (!operands_of(l, n, 0, operands))
        return false;
    s.args[s.n_in++] = operands[0];
    s.n_args = s.n_in;
    for (uint32_t i = 0; i < n->n_outputs; i++)
        s.args[s.n_args++] = lower_value(l, n->outputs[i]);
    uint32_t n_tells = find_told(l, n, tells);
    for (uint32_t i = 0; i < n_tells; i++)
        s.args[s.n_args++] = tells[i].cell = lower_extent(l, tells[i].symbol, SPACE_WORKSPACE, 0);
    if (!add_branch(l, n, region_of(n, "then_branch"), operands, &s, tells, n_tells, &s.blocks[0]) ||
        !add_branch(l, n, region_of(n, "else_branch"), operands, &s, tells, n_tells, &s.blocks[1]))
        return false;
    vec_push(&l->c->mem, l->block, s);
    return true;
}

/* --- rows --- */

typedef struct row_store {
    const tir_buffer *from, *rows;
    tir_expr_ref round;
} row_store;

/* What is stored in the copy is stored in a row. */
static tir_stmt *store_in_row(tir_rewriter *r, tir_stmt *s)
{
    const row_store *x = r->ctx;
    tir_expr_ref at[TYPE_MAX_RANK + 1];
    if (s->kind != TIR_STORE || s->buffer != x->from)
        return s;
    at[0] = x->round;
    memcpy(at + 1, s->indices, s->n_indices * sizeof *at);
    return tir_store(r->c, x->rows, s->n_indices + 1, at, s->value);
}

/* rows[round, ...] = row[...], from the loops of a copy; more rounds than there is room for end the run. */
static void row_loops(lowering *l, tir_func *f, const prog_value *rows)
{
    compiler *c = l->c;
    const tir_buffer **params = arena_array(&c->mem, const tir_buffer *, f->n_params + 1u), *round,
                     *to = f->params[f->n_inputs];
    tir_expr_ref dims[TYPE_MAX_RANK + 1] = {tir_i64(c, dim_bound(rows->type.shape.dims[0]))};
    memcpy(dims + 1, to->shape, to->rank * sizeof *dims);
    memcpy(params, f->params, f->n_inputs * sizeof *params);
    params[f->n_inputs] = round = tir_buffer_static(c, "round", DT_I64, 0, NULL, SCOPE_GLOBAL);
    params[f->n_inputs + 1] = tir_new_buffer(c, "rows", to->dt, to->rank + 1, dims, SCOPE_GLOBAL);
    row_store x = {to, params[f->n_inputs + 1], tir_load(c, round, 0, NULL)};
    tir_rewriter r = {.c = c, .ctx = &x, .stmt = store_in_row};
    tir_stmt *stmts[3] = {
        tir_assert(c, tir_binary(c, TIR_LE, tir_i64(c, 0), x.round), PACKAGE_STATUS_SHAPE, "a round before the first"),
        tir_assert(c, tir_binary(c, TIR_LT, x.round, dims[0]), PACKAGE_STATUS_SHAPE, "more rounds than rows"),
        tir_rewrite_stmt(&r, f->body)};
    f->body = tir_seq(c, 3, stmts);
    f->params = params;
    f->n_params++;
    f->n_inputs++;
}

static bool add_row(lowering *l, const graph_node *n, graph_value *row, uint32_t round, uint32_t rows)
{
    const char *unused;
    graph_node *copy = graph_new_node(l->f, graph_find_op(l->c, "copy"), 1, &row, 0, NULL, 1, NULL, n->loc);
    prog_step s = {.kind = STEP_KERNEL, .loc = n->loc, .args = arena_array(&l->c->mem, uint32_t, TYPE_MAX_RANK + 4u)};
    lower_describe(l, n, &unused, &s.source);
    s.kernel = lower_new_kernel(l, "stack_row");
    if (!graph_infer_node(l->c, copy) || !te_lower_node(l->c, copy, s.kernel->name, NULL, &s.kernel->plain))
        return false;
    row_loops(l, s.kernel->plain, &l->to->values.data[rows]);
    for (uint32_t i = 0; i < s.kernel->plain->n_symbols; i++) {
        s.args[s.n_in] = prog_find_extent(l->to, s.kernel->plain->symbols[i]);
        if (s.args[s.n_in++] == PROG_NONE)
            return diag_error(&l->c->diags, DIAG_UNSUPPORTED, n->loc, "rows are stacked whose extent %s nothing tells",
                              s.kernel->plain->symbols[i]);
    }
    if (!lower_operand(l, row, n->loc, &s.args[s.n_in++]))
        return false;
    s.args[s.n_in++] = round;
    s.args[s.n_in] = rows;
    s.n_args = s.n_in + 1;
    vec_push(&l->c->mem, l->block, s);
    return true;
}

/* --- loops --- */

/* The condition comes last. */
typedef struct carry {
    graph_value *param; /* of the body; NULL: nothing in it reads this one */
    graph_value *next;  /* what the body makes of it */
    uint32_t value;
    bool kept;   /* the body hands it on as it is */
    bool direct; /* made in the value */
} carry;

/* The last node of the body that reads v or a view of it; what its results read counts as behind all of them. */
static uint32_t last_reader(const graph_func *body, const graph_value *v)
{
    uint32_t last = 0;
    for (uint32_t i = 0; i < body->nodes.len; i++)
        for (uint32_t k = 0; k < body->nodes.data[i]->n_inputs; k++)
            if (body->nodes.data[i]->inputs[k] && lower_base(body->nodes.data[i]->inputs[k]) == v)
                last = i;
    for (uint32_t i = 0; i < body->results.len; i++)
        if (lower_base(body->results.data[i]) == v)
            last = UINT32_MAX;
    return last;
}

static uint32_t position(const graph_func *f, const graph_node *n)
{
    uint32_t i = 0;
    while (f->nodes.data[i] != n)
        i++;
    return i;
}

static void choose_direct(lowering *l, const graph_func *body, carry *list, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        carry *k = &list[i];
        if (k->kept || !can_be_made_in(l, k->next, &l->to->values.data[k->value].type))
            continue;
        uint32_t made = position(body, k->next->def), read = k->param ? last_reader(body, k->param) : 0;
        k->direct = !k->param || read < made;
        if (k->direct)
            ptr_map_set(&l->into, k->next, k->value);
    }
}

/* What shows a carried value as it was is put aside before any of them is written. */
static bool write_carried(lowering *l, const graph_node *n, carry *list, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        const graph_value *base = lower_base(list[i].next);
        if (list[i].kept || list[i].direct || base->def)
            continue;
        list[i].next = copy_into(l, list[i].next, PROG_NONE, n->loc);
        if (!list[i].next)
            return false;
    }
    for (uint32_t i = 0; i < count; i++)
        if (!list[i].kept && !list[i].direct && !copy_into(l, list[i].next, list[i].value, n->loc))
            return false;
    return true;
}

static bool add_body(lowering *l, const graph_node *n, const graph_func *f, const uint32_t *operands, carry *list,
                     uint32_t carried, const prog_step *s)
{
    inner was;
    if (!enter(l, n, f, &s->blocks[0], &was))
        return false;
    for (uint32_t i = 1; i < f->params.len; i++)
        f->params.data[i]->mark = (i <= carried ? list[i - 1].value : operands[1 + i]) + 1;
    choose_direct(l, f, list, carried + 1);
    bool ok = add_nodes(l);
    for (uint32_t i = carried; ok && i < n->n_outputs; i++)
        ok = add_row(l, n, f->results.data[1 + i], list[0].value, s->args[s->n_in + i - carried]);
    ok = ok && write_carried(l, n, list, carried + 1);
    leave(l, &was);
    return ok;
}

/* Carried values begin as copies, so that what they begin as stays what it is. */
static bool begin_carried(lowering *l, graph_node *n, carry *list, uint32_t carried)
{
    for (uint32_t i = 0; i < carried; i++) {
        list[i].value = lower_value(l, n->outputs[i]);
        if (!copy_into(l, n->inputs[2 + i], list[i].value, n->loc))
            return false;
    }
    list[carried].value =
        prog_add_value(l->m, l->to,
                       (prog_value){.name = graph_new_name(l->main, "go"),
                                    .type = type_static(l->c, DT_BOOL, 0, NULL),
                                    .space = SPACE_WORKSPACE,
                                    .base = PROG_NONE});
    return copy_into(l, n->inputs[1], list[carried].value, n->loc) != NULL;
}

/* Where the number of rows is open it is the number of rounds, which is the first of what was carried. */
static bool tell_rounds(lowering *l, graph_node *n, uint32_t carried)
{
    told tells[TYPE_MAX_RANK];
    uint32_t n_tells = find_told(l, n, tells);
    for (uint32_t i = 0; i < n_tells; i++) {
        if (tells[i].result < carried || tells[i].axis != 0)
            return diag_error(&l->c->diags, DIAG_UNSUPPORTED, n->loc,
                              "the extent %s of result %u changes from round to round", tells[i].symbol,
                              tells[i].result);
        if (!copy_into(l, n->outputs[0], lower_extent(l, tells[i].symbol, SPACE_WORKSPACE, 0), n->loc))
            return false;
    }
    return true;
}

bool lower_loop(lowering *l, graph_node *n)
{
    const graph_func *body = region_of(n, "body");
    uint32_t carried = (uint32_t)graph_attr_int(n, "carried"), *operands;
    if (graph_attr_int(n, "closed") == 0)
        return diag_error(&l->c->diags, DIAG_INTERNAL, n->loc, "a loop that the pass close-loops has not seen");
    prog_step s = new_step(l, STEP_LOOP, n, 1 + n->n_outputs, 1);
    carry *list = arena_array(&l->c->mem, carry, carried + 1u);
    operands = arena_array(&l->c->mem, uint32_t, n->n_inputs);
    if (!operands_of(l, n, 1, operands) || !begin_carried(l, n, list, carried))
        return false;
    s.args[s.n_in++] = list[carried].value;
    list[carried].next = body->results.data[0];
    for (uint32_t i = 0; i < carried; i++) {
        list[i].param = body->params.data[1 + i];
        list[i].next = body->results.data[1 + i];
        list[i].kept = list[i].next == list[i].param;
        if (!list[i].kept)
            s.args[s.n_in++] = list[i].value;
    }
    s.n_args = s.n_in;
    for (uint32_t i = carried; i < n->n_outputs; i++)
        s.args[s.n_args++] = lower_value(l, n->outputs[i]);
    if (!add_body(l, n, body, operands, list, carried, &s))
        return false;
    vec_push(&l->c->mem, l->block, s);
    return tell_rounds(l, n, carried);
}
