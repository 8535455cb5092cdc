/* SPDX-License-Identifier: Apache-2.0 */
/* Branches and loops of the graph as steps with blocks. What a region makes as its result is made in the place of the
 * result where nothing stands in the way, else copied there. A carried value is written at the end of a round; sooner
 * when all that read it come before. Where its shape changes its extents are carried beside it, in cells. What types do
 * not say of extents is compared by the copies. */
#include "abi/package.h"
#include "graph/op.h"
#include "prog/lower.h"
#include "te/from_graph.h"
#include "te/te.h"
#include "tir/build.h"
#include "tir/walk.h"

#include <ctype.h>
#include <string.h>

static const graph_func *region_of(const graph_node *n, const char *name)
{
    return graph_attr(n, name)->u.func;
}

graph_value *lower_copy_into(lowering *l, graph_value *v, uint32_t to, src_loc loc)
{
    graph_node *n = graph_new_node(l->f, graph_find_op(l->c, "copy"), 1, &v, 0, NULL, 1, NULL, loc);
    if (!graph_infer_node(l->c, n))
        return NULL;
    if (to != PROG_NONE)
        ptr_map_set(&l->into, n->outputs[0], to);
    return l->add_node(l, n) ? n->outputs[0] : NULL;
}

/* Puts a step for kernel k at the end of the block: the cells that its loops ask for, then `in`, and the result. */
static bool add_plain_step(lowering *l, const graph_node *n, prog_kernel *k, uint32_t n_in, const uint32_t *in,
                           uint32_t out)
{
    const char *unused;
    prog_step s = {.kind = STEP_KERNEL, .kernel = k, .loc = n->loc};
    s.args = arena_array(&l->c->mem, uint32_t, k->plain->n_symbols + n_in + 1u);
    lower_describe(l, n, &unused, &s);
    for (uint32_t i = 0; i < k->plain->n_symbols; i++) {
        s.args[s.n_in] = prog_find_extent(l->to, k->plain->symbols[i]);
        if (s.args[s.n_in++] == PROG_NONE)
            return diag_error(&l->c->diags, DIAG_UNSUPPORTED, n->loc, "%s needs the extent %s, which nothing gives",
                              n->op->name, k->plain->symbols[i]);
    }
    memcpy(s.args + s.n_in, in, n_in * sizeof *in);
    s.n_in += n_in;
    s.args[s.n_in] = out;
    s.n_args = s.n_in + 1;
    vec_push(&l->c->mem, l->block, s);
    return true;
}

/* The kind of a kernel that compares extents has their names, for the record of a run that ends there. */
static const char *comparing(lowering *l, const graph_node *n, uint32_t count, const dim *have, const dim *want)
{
    writer w;
    writer_init(&w, &l->c->mem);
    w_fmt(&w, "%s_extent", n->op->name);
    for (uint32_t i = 0; i < count; i++) {
        const char *symbol = have && dim_equal(have[i], want[i]) ? NULL : dim_symbol_name(want[i]);
        w_str(&w, symbol ? "_" : "");
        for (; symbol && *symbol; symbol++)
            w_fmt(&w, "%c", isalnum((unsigned char)*symbol) ? *symbol : '_');
    }
    return w.data;
}

/* v, whose shape types do not say to be `want`, copied into value `to` of that type: see te_lower_fitted. */
static bool fit_into(lowering *l, const graph_node *n, graph_value *v, uint32_t to, const type *want, uint32_t grows)
{
    uint32_t in;
    if (type_equal(&v->type, want))
        return lower_copy_into(l, v, to, n->loc) != NULL;
    if (v->type.shape.rank != want->shape.rank)
        return diag_error(&l->c->diags, DIAG_UNSUPPORTED, n->loc,
                          "%%%s has %d dimensions where %d are needed; only extents may differ, not their count",
                          v->name, v->type.shape.rank, want->shape.rank);
    prog_kernel *k = lower_new_kernel(l, comparing(l, n, (uint32_t)want->shape.rank, v->type.shape.dims,
                                                   want->shape.dims));
    return te_lower_fitted(l->c, v, want, grows, k->name, n->loc, &k->plain) && lower_operand(l, v, n->loc, &in) &&
           add_plain_step(l, n, k, 1, &in, to);
}

/* The number v, copied into `to`: see te_lower_told. */
static bool tell_number(lowering *l, const graph_node *n, graph_value *v, uint32_t to, dim extent, bool grows)
{
    uint32_t in;
    prog_kernel *k = lower_new_kernel(l, comparing(l, n, 1, NULL, &extent));
    return te_lower_told(l->c, v, extent, grows, k->name, n->loc, &k->plain) && lower_operand(l, v, n->loc, &in) &&
           add_plain_step(l, n, k, 1, &in, to);
}

bool lower_can_be_made_in(lowering *l, const graph_value *v, const type *t)
{
    uint32_t other;
    return v->def && !graph_constant(v) && !lower_viewed(l->c, v->def) && !ptr_map_get(&l->into, v, &other) &&
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
    lower_describe(l, n, &unused, &s);
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
    uint32_t result, axis; /* where it is a dimension first */
    uint32_t cell;
} told;
typedef VEC(told) told_list;

/* Symbols of n's results that nothing tells yet, each with a cell from now on. */
static void find_told(lowering *l, const graph_node *n, told_list *out)
{
    for (uint32_t i = 0; i < n->n_outputs; i++)
        for (int32_t k = 0; k < n->outputs[i]->type.shape.rank; k++) {
            const char *symbol = dim_symbol_name(n->outputs[i]->type.shape.dims[k]);
            if (!symbol || lower_is_told(l, symbol))
                continue;
            told t = {symbol, i, (uint32_t)k, lower_extent(l, symbol, SPACE_WORKSPACE, 0)};
            vec_push(&l->c->mem, out, t);
        }
}

/* A kernel in l->f that writes an extent of v into a cell, or with PROG_NONE into one of its own: what it made. NULL
 * after an error. */
static graph_value *tell_extent(lowering *l, graph_value *v, uint32_t axis, uint32_t cell, src_loc loc)
{
    attr at[2] = {attr_int(l->c, "start", axis), attr_int(l->c, "end", (int64_t)axis + 1)};
    graph_node *n = graph_new_node(l->f, graph_find_op(l->c, "shape_of"), 1, &v, 2, at, 1, NULL, loc);
    if (!graph_infer_node(l->c, n))
        return NULL;
    if (cell != PROG_NONE)
        ptr_map_set(&l->into, n->outputs[0], cell);
    return l->add_node(l, n) ? n->outputs[0] : NULL;
}

/* --- branches --- */

static bool add_branch(lowering *l, const graph_node *n, const graph_func *f, const uint32_t *operands,
                       const prog_step *s, const told_list *tells, prog_block *to)
{
    inner was;
    if (!enter(l, n, f, to, &was))
        return false;
    for (uint32_t i = 0; i < f->params.len; i++)
        f->params.data[i]->mark = operands[1 + i] + 1;
    bool *direct = arena_array(&l->c->mem, bool, n->n_outputs + 1u);
    for (uint32_t i = 0; i < n->n_outputs; i++) {
        direct[i] = lower_can_be_made_in(l, f->results.data[i], &n->outputs[i]->type);
        if (direct[i])
            ptr_map_set(&l->into, f->results.data[i], s->args[s->n_in + i]);
    }
    for (uint32_t i = 0; i < tells->len; i++)
        lower_expect_extent(l, tells->data[i].cell);
    bool ok = add_nodes(l);
    for (uint32_t i = 0; ok && i < tells->len; i++) {
        const told *t = &tells->data[i];
        ok = !lower_take_extent(l, t->cell) ||
             tell_extent(l, f->results.data[t->result], t->axis, t->cell, n->loc) != NULL;
    }
    for (uint32_t i = 0; ok && i < n->n_outputs; i++)
        ok = direct[i] ||
             fit_into(l, n, f->results.data[i], s->args[s->n_in + i], &n->outputs[i]->type, 0);
    leave(l, &was);
    return ok;
}

bool lower_if(lowering *l, graph_node *n)
{
    uint32_t *operands = arena_array(&l->c->mem, uint32_t, n->n_inputs);
    told_list tells = {0};
    if (!operands_of(l, n, 0, operands))
        return false;
    for (uint32_t i = 0; i < n->n_outputs; i++)
        (void)lower_value(l, n->outputs[i]);
    find_told(l, n, &tells);
    prog_step s = new_step(l, STEP_IF, n, 1 + n->n_outputs + tells.len, 2);
    s.args[s.n_in++] = operands[0];
    s.n_args = s.n_in;
    for (uint32_t i = 0; i < n->n_outputs; i++)
        s.args[s.n_args++] = n->outputs[i]->mark - 1;
    for (uint32_t i = 0; i < tells.len; i++)
        s.args[s.n_args++] = tells.data[i].cell;
    if (!add_branch(l, n, region_of(n, "then_branch"), operands, &s, &tells, &s.blocks[0]) ||
        !add_branch(l, n, region_of(n, "else_branch"), operands, &s, &tells, &s.blocks[1]))
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
    const int64_t most = dim_bound(rows->type.shape.dims[0]);
    tir_expr_ref dims[TYPE_MAX_RANK + 1] = {tir_i64(c, most < 0 ? TE_MOST_EXTENT : most)};
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

/* known: values in front of the loop. Rows are of one shape, which those must tell. */
static bool add_row(lowering *l, const graph_node *n, graph_value *row, uint32_t round, uint32_t rows, uint32_t known)
{
    uint32_t in[2] = {0, round};
    graph_node *copy = graph_new_node(l->f, graph_find_op(l->c, "copy"), 1, &row, 0, NULL, 1, NULL, n->loc);
    prog_kernel *k = lower_new_kernel(l, "stack_row");
    k->stacks = true;
    if (!graph_infer_node(l->c, copy) || !te_lower_node(l->c, copy, k->name, NULL, NULL, &k->plain))
        return false;
    for (uint32_t i = 0; i < k->plain->n_symbols; i++) {
        uint32_t cell = prog_find_extent(l->to, k->plain->symbols[i]);
        if (cell != PROG_NONE && cell < known)
            continue;
        diag_error(&l->c->diags, DIAG_UNSUPPORTED, n->loc,
                   "rows of '%s' have the extent %s, which depends on the round; all rows must have one "
                   "shape", row->name,
                   k->plain->symbols[i]);
        diag_hint(&l->c->diags, "declare that extent of the body's result '%s' as a number, or pad the rows",
                  row->name);
        return false;
    }
    row_loops(l, k->plain, &l->to->values.data[rows]);
    return lower_operand(l, row, n->loc, &in[0]) && add_plain_step(l, n, k, 2, in, rows);
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

/* An extent that is carried: that of an axis of a carried value, in a cell of its own. */
typedef struct carried_extent {
    const char *symbol;
    uint32_t value, axis; /* where it is a dimension first */
    uint32_t cell;
    graph_value *next; /* what it is behind the round */
    dim last;          /* of a result: told, or compared */
} carried_extent;

typedef struct loop {
    const graph_node *n;
    const graph_func *body;
    const uint32_t *operands; /* of n */
    carry *list;
    uint32_t carried; /* without the condition */
    uint32_t known;   /* values in front of the loop */
    VEC(carried_extent) extents;
} loop;

uint32_t lower_last_reader(compiler *c, const graph_func *body, const graph_value *v)
{
    uint32_t last = 0;
    for (uint32_t i = 0; i < body->nodes.len; i++)
        for (uint32_t k = 0; k < body->nodes.data[i]->n_inputs; k++)
            if (body->nodes.data[i]->inputs[k] && lower_base(c, body->nodes.data[i]->inputs[k]) == v)
                last = i;
    for (uint32_t i = 0; i < body->results.len; i++)
        if (lower_base(c, body->results.data[i]) == v)
            last = UINT32_MAX;
    return last;
}

uint32_t lower_position(const graph_func *f, const graph_node *n)
{
    uint32_t i = 0;
    while (f->nodes.data[i] != n)
        i++;
    return i;
}

/* Rows go where the first carried value says, the round: it stays until they are written. */
static bool counts_rows(const loop *p, uint32_t i)
{
    return i == 0 && p->n->n_outputs > p->carried;
}

static void choose_direct(lowering *l, loop *p)
{
    for (uint32_t i = 0; i <= p->carried; i++) {
        carry *k = &p->list[i];
        if (k->kept || counts_rows(p, i) || !lower_can_be_made_in(l, k->next, &l->to->values.data[k->value].type))
            continue;
        uint32_t made = lower_position(p->body, k->next->def);
        uint32_t read = k->param ? lower_last_reader(l->c, p->body, k->param) : 0;
        k->direct = !k->param || read < made;
        if (k->direct)
            ptr_map_set(&l->into, k->next, k->value);
    }
}

/* The axes of carried value i, as bits, whose extents change from round to round. */
static uint32_t changing_axes(const loop *p, uint32_t i)
{
    uint32_t axes = 0;
    for (int32_t k = 0; k < p->body->params.data[1 + i]->type.shape.rank; k++)
        axes |= graph_carried_symbol(p->n, i, k) ? 1u << k : 0;
    return axes;
}

/* What shows a carried value as it was is put aside before any of them is written. Data first, in the extents of this
 * round; the cells of the next one last. */
static bool write_carried(lowering *l, loop *p)
{
    bool ok = true;
    for (uint32_t i = 0; ok && i < p->extents.len; i++) {
        carried_extent *e = &p->extents.data[i];
        e->next = p->list[e->value].kept ? NULL
                                         : tell_extent(l, p->list[e->value].next, e->axis, PROG_NONE, p->n->loc);
        ok = e->next || p->list[e->value].kept;
    }
    for (uint32_t i = 0; ok && i <= p->carried; i++) {
        carry *k = &p->list[i];
        const graph_value *base = lower_base(l->c, k->next);
        if (k->kept || k->direct || base->def)
            continue;
        k->next = lower_copy_into(l, k->next, PROG_NONE, p->n->loc);
        ok = k->next != NULL;
    }
    for (uint32_t i = 0; ok && i <= p->carried; i++) {
        const carry *k = &p->list[i];
        if (!k->kept && !k->direct)
            ok = k->param ? fit_into(l, p->n, k->next, k->value, &k->param->type, changing_axes(p, i))
                          : lower_copy_into(l, k->next, k->value, p->n->loc) != NULL;
    }
    for (uint32_t i = 0; ok && i < p->extents.len; i++)
        if (p->extents.data[i].next)
            ok = lower_copy_into(l, p->extents.data[i].next, p->extents.data[i].cell, p->n->loc) != NULL;
    return ok;
}

static bool add_body(lowering *l, loop *p, const prog_step *s)
{
    inner was;
    graph_func *f = (graph_func *)(uintptr_t)p->body;
    if (!enter(l, p->n, f, &s->blocks[0], &was))
        return false;
    for (uint32_t i = 1; i < f->params.len; i++)
        f->params.data[i]->mark = (i <= p->carried ? p->list[i - 1].value : p->operands[1 + i]) + 1;
    choose_direct(l, p);
    bool ok = add_nodes(l);
    for (uint32_t i = p->carried; ok && i < p->n->n_outputs; i++)
        ok = add_row(l, p->n, f->results.data[1 + i], p->list[0].value, s->args[s->n_in + i - p->carried], p->known);
    ok = ok && write_carried(l, p);
    leave(l, &was);
    return ok;
}

/* --- what is carried, before and behind --- */

static carried_extent *extent_of(const loop *p, const char *symbol)
{
    for (uint32_t i = 0; symbol && i < p->extents.len; i++)
        if (strcmp(p->extents.data[i].symbol, symbol) == 0)
            return &p->extents.data[i];
    return NULL;
}

/* The cells of the extents of value i that change from round to round, with those before the first one. */
static bool begin_extents(lowering *l, loop *p, uint32_t i)
{
    for (int32_t k = 0; k < p->body->params.data[1 + i]->type.shape.rank; k++) {
        carried_extent e = {.symbol = graph_carried_symbol(p->n, i, k), .value = i, .axis = (uint32_t)k};
        uint32_t cell = e.symbol ? prog_find_extent(l->to, e.symbol) : PROG_NONE;
        if (!e.symbol || extent_of(p, e.symbol))
            continue;
        if (cell != PROG_NONE)
            return diag_error(&l->c->diags, DIAG_UNSUPPORTED, p->n->loc,
                              "two things decide the extent %s: a value that @%s carries, and another one",
                              e.symbol, p->body->name);
        e.cell = lower_extent(l, e.symbol, SPACE_WORKSPACE, 0);
        vec_push(&l->c->mem, &p->extents, e);
        if (!tell_extent(l, p->n->inputs[2 + i], e.axis, e.cell, p->n->loc))
            return false;
    }
    return true;
}

/* Where the shape changes the value is none of the results: those have the shape of the last round. */
static uint32_t carried_value(lowering *l, const loop *p, uint32_t i)
{
    const graph_value *param = p->body->params.data[1 + i];
    if (changing_axes(p, i) == 0)
        return lower_value(l, p->n->outputs[i]);
    return prog_add_value(l->m, l->to,
                          (prog_value){.name = graph_new_name(l->main, param->name),
                                       .type = param->type,
                                       .space = SPACE_WORKSPACE,
                                       .base = PROG_NONE});
}

/* Carried values begin as copies, so that what they begin as stays what it is. */
static bool begin_carried(lowering *l, loop *p)
{
    for (uint32_t i = 0; i < p->carried; i++) {
        carry *k = &p->list[i];
        *k = (carry){.param = p->body->params.data[1 + i], .next = p->body->results.data[1 + i]};
        k->kept = k->next == k->param;
        if (!begin_extents(l, p, i))
            return false;
        k->value = carried_value(l, p, i);
        if (!fit_into(l, p->n, p->n->inputs[2 + i], k->value, &k->param->type, changing_axes(p, i)))
            return false;
    }
    carry *go = &p->list[p->carried];
    go->next = p->body->results.data[0];
    go->value = prog_add_value(l->m, l->to,
                               (prog_value){.name = graph_new_name(l->main, "go"),
                                            .type = type_static(l->c, DT_BOOL, 0, NULL),
                                            .space = SPACE_WORKSPACE,
                                            .base = PROG_NONE});
    return lower_copy_into(l, p->n->inputs[1], go->value, p->n->loc) != NULL;
}

/* The number v, which the loop leaves, is the extent d of a result: told where d is a symbol that nothing tells, else
 * compared with it. */
static bool settle_extent(lowering *l, const loop *p, graph_value *v, dim d)
{
    const char *symbol = dim_symbol_name(d);
    bool open = symbol && !lower_is_told(l, symbol);
    uint32_t cell = lower_extent(l, symbol ? symbol : "extent", SPACE_WORKSPACE, 0);
    if (!symbol)
        l->to->values.data[cell].extent = NULL;
    return tell_number(l, p->n, v, cell, d, open);
}

/* The carried cell as a value of the graph, which kernels can be made for. */
static graph_value *cell_value(lowering *l, const carried_extent *e)
{
    graph_value *v = arena_new(&l->c->mem, graph_value);
    *v = (graph_value){.name = e->symbol, .type = type_static(l->c, DT_I64, 0, NULL), .mark = e->cell + 1};
    return v;
}

/* Result i is what was carried last: the same bytes where there are as many at most, else a copy. */
static bool end_carried(lowering *l, const loop *p, uint32_t i)
{
    graph_value *y = p->n->outputs[i];
    const prog_value *from = &l->to->values.data[p->list[i].value];
    uint32_t v;
    bool same = !prog_is_unbounded(from) && prog_bytes(from) == (uint64_t)type_most_bytes(&y->type) &&
                !ptr_map_get(&l->into, y, &v);
    for (int32_t k = 0; k < y->type.shape.rank; k++) {
        carried_extent *e = extent_of(p, graph_carried_symbol(p->n, i, k));
        if (!e || e->last == y->type.shape.dims[k])
            continue;
        e->last = y->type.shape.dims[k];
        if (!settle_extent(l, p, cell_value(l, e), e->last))
            return false;
    }
    v = lower_value(l, y);
    if (!same)
        return fit_into(l, p->n, p->list[i].param, v, &y->type, 0);
    l->to->values.data[v].base = p->list[i].value;
    prog_step s = {.kind = STEP_VIEW, .loc = p->n->loc, .source = "", .n_in = 1, .n_args = 2};
    s.args = arena_array(&l->c->mem, uint32_t, 2);
    s.args[0] = p->list[i].value;
    s.args[1] = v;
    vec_push(&l->c->mem, l->block, s);
    return true;
}

/* Rows are as many as there were rounds, which the first carried value says. A number that the model declares is
 * compared with it, unless it follows from the loop. */
static bool end_rows(lowering *l, const loop *p)
{
    bool counted = graph_attr_int(p->n, "closed") == 1;
    dim last = NULL;
    for (uint32_t i = p->carried; i < p->n->n_outputs; i++) {
        dim d = p->n->outputs[i]->type.shape.dims[0];
        const char *symbol = dim_symbol_name(d);
        bool open = symbol && !lower_is_told(l, symbol);
        if ((!open && counted) || d == last)
            continue;
        last = d;
        if (!settle_extent(l, p, p->n->outputs[0], d))
            return false;
    }
    return true;
}

bool lower_loop(lowering *l, graph_node *n)
{
    loop p = {.n = n, .body = region_of(n, "body"), .carried = (uint32_t)graph_attr_int(n, "carried")};
    uint32_t *operands = arena_array(&l->c->mem, uint32_t, n->n_inputs);
    if (graph_attr_int(n, "closed") == 0)
        return diag_error(&l->c->diags, DIAG_INTERNAL, n->loc, "a loop that the pass close-loops has not seen");
    p.list = arena_array(&l->c->mem, carry, p.carried + 1u);
    p.operands = operands;
    if (!operands_of(l, n, 1, operands))
        return false;
    p.known = l->to->values.len;
    if (!begin_carried(l, &p))
        return false;
    prog_step s = new_step(l, STEP_LOOP, n, 1 + n->n_outputs + p.extents.len, 1);
    s.args[s.n_in++] = p.list[p.carried].value;
    for (uint32_t i = 0; i < p.carried; i++)
        if (!p.list[i].kept)
            s.args[s.n_in++] = p.list[i].value;
    for (uint32_t i = 0; i < p.extents.len; i++)
        if (!p.list[p.extents.data[i].value].kept)
            s.args[s.n_in++] = p.extents.data[i].cell;
    s.n_args = s.n_in;
    for (uint32_t i = p.carried; i < n->n_outputs; i++)
        s.args[s.n_args++] = lower_value(l, n->outputs[i]);
    if (!add_body(l, &p, &s))
        return false;
    vec_push(&l->c->mem, l->block, s);
    bool ok = true;
    for (uint32_t i = 0; ok && i < p.carried; i++)
        ok = changing_axes(&p, i) == 0 || end_carried(l, &p, i);
    return ok && end_rows(l, &p);
}
