/* SPDX-License-Identifier: Apache-2.0 */
/* Values of the program for those of the graph, and what the step to programs asks of a graph: what can be kept, what
 * is a view of what, what kernels are called. */
#include "graph/op.h"
#include "prog/lower.h"

#include <ctype.h>
#include <string.h>

static uint32_t value_of(const graph_value *v)
{
    return v->mark - 1; /* marks: 0 for none, else the number and 1 */
}

/* --- what can be lowered --- */

enum { MOST_OPEN = 6 };

/* The symbols in d that stop it from having a bound: those without one, or, where all have one, all of them, because
 * the bounds come to more than can be counted. At most MOST_OPEN in `out`, each once. */
static void open_symbols(dim d, bool bounded, uint32_t *n, dim *out)
{
    const dim *parts = NULL;
    uint32_t count = dim_operands(d, &parts), i = 0;
    for (uint32_t k = 0; k < count; k++)
        open_symbols(parts[k], bounded, n, out);
    if (!dim_symbol_name(d) || (dim_bound(d) >= 0) != bounded || dim_is_unknown(d))
        return;
    while (i < *n && out[i] != d)
        i++;
    if (i == *n && *n < MOST_OPEN)
        out[(*n)++] = d;
}

static bool is_stated(const lowering *l, dim symbol)
{
    bool found = false;
    for (uint32_t i = 0; i < l->f->params.len && !found; i++)
        found = type_mentions(&l->f->params.data[i]->type, dim_symbol_name(symbol));
    return found;
}

/* Extents with bounds, of which one is too large. */
static void hint_limits(lowering *l, const type *t)
{
    dim open[MOST_OPEN];
    uint32_t n = 0;
    for (int32_t i = 0; i < t->shape.rank; i++)
        open_symbols(t->shape.dims[i], true, &n, open);
    if (n > 0)
        diag_hint(&l->c->diags, "its dimensions are counted at their limits; give '%s' a smaller one",
                  dim_symbol_name(open[0]));
}

/* How the extents of t that have no bound get one. A graph's text states its shapes itself; a model's are given. */
static void hint_bounds(lowering *l, const type *t, bool model)
{
    dim open[MOST_OPEN];
    uint32_t n = 0;
    writer names, options;
    writer_init(&names, &l->c->mem);
    writer_init(&options, &l->c->mem);
    for (int32_t i = 0; i < t->shape.rank; i++)
        if (dim_bound(t->shape.dims[i]) < 0)
            open_symbols(t->shape.dims[i], false, &n, open);
    bool unbounded = n > 0;
    for (int32_t i = 0; i < t->shape.rank && !unbounded; i++)
        if (dim_bound(t->shape.dims[i]) < 0)
            open_symbols(t->shape.dims[i], true, &n, open);
    for (uint32_t i = 0; i < n; i++) {
        const char *symbol = dim_symbol_name(open[i]);
        w_fmt(&names, "%s%s", i ? ", " : "", symbol);
        if (is_stated(l, open[i]))
            w_fmt(&options, "%s--dim '%s<=N'", i ? " " : "", symbol);
        else
            w_fmt(&options, "%s--bound %s=N", i ? " " : "", symbol);
    }
    if (n == 0)
        return;
    const char *is = n > 1 ? "they are" : "it is", *can = n > 1 ? "each of them" : "it";
    if (!unbounded)
        diag_hint(&l->c->diags, "the bounds of %s are too large together: give smaller ones", names.data);
    else if (model && !is_stated(l, open[0]))
        diag_hint(&l->c->diags, "if %s always the same, give --dim %s=N; else give %s, the largest size that %s can "
                                "have", is,
                  dim_symbol_name(open[0]), options.data, can);
    else if (model)
        diag_hint(&l->c->diags, "give %s, the largest size that %s can have", options.data, can);
    else
        diag_hint(&l->c->diags, "write a number for %s in the text, or a bound: where %s <= N", names.data,
                  dim_symbol_name(open[0]));
}

static bool check_value(lowering *l, const graph_value *v, src_loc loc)
{
    diags *d = &l->c->diags;
    if (v->type.kind != TYPE_TENSOR)
        return diag_error(d, DIAG_UNSUPPORTED, loc,
                          "value '%s' is not a tensor; sequences and optionals are not supported yet", v->name);
    if (!dtype_usable(v->type.dt))
        return diag_error(d, DIAG_UNSUPPORTED, loc, "value '%s': kernels on %s are not supported yet", v->name,
                          dtype_name(v->type.dt));
    bool bounded = v->type.shape.rank >= 0;
    for (int32_t i = 0; i < v->type.shape.rank; i++)
        bounded &= dim_bound(v->type.shape.dims[i]) >= 0;
    int64_t bytes = type_most_bytes(&v->type);
    uint64_t most = prog_most_bytes(l->t);
    if ((bytes >= 0 && (uint64_t)bytes <= most) || (l->unbounded && v->type.shape.rank >= 0 && !bounded))
        return true;
    writer w;
    writer_init(&w, &l->c->mem);
    type_print(&w, &v->type);
    if (bounded) {
        diag_error(d, DIAG_UNSUPPORTED, loc,
                   "value '%s' of type %s is too large for the target %s: the most is 2^%d bytes", v->name, w.data,
                   l->t->name, most >> 40 ? 40 : 31);
        hint_limits(l, &v->type);
        return false;
    }
    diag_error(d, DIAG_UNBOUNDED, loc, "value '%s' has type %s, whose size has no upper bound", v->name, w.data);
    hint_bounds(l, &v->type, loc.op != NULL);
    return false;
}

bool lower_check(lowering *l)
{
    bool ok = true;
    for (uint32_t i = 0; i < l->f->params.len; i++)
        ok &= check_value(l, l->f->params.data[i], src_loc_none());
    for (uint32_t i = 0; ok && i < l->f->nodes.len; i++)
        for (uint32_t k = 0; k < l->f->nodes.data[i]->n_outputs; k++)
            ok &= check_value(l, l->f->nodes.data[i]->outputs[k], l->f->nodes.data[i]->loc);
    return ok;
}

/* --- what a node is --- */

const graph_node *lower_sole_node(const graph_node *n)
{
    const graph_func *f = graph_callee(n);
    const graph_node *found = NULL;
    if (!f)
        return n;
    if (graph_func_text(f, "compiler")) /* a whole, whatever is in it */
        return NULL;
    for (uint32_t i = 0; i < f->nodes.len; i++) {
        if (strcmp(f->nodes.data[i]->op->name, "constant") == 0)
            continue;
        if (found)
            return NULL;
        found = f->nodes.data[i];
    }
    return found;
}

graph_value *lower_operand_outside(const graph_node *call, const graph_node *inner, uint32_t i)
{
    const graph_func *f = graph_callee(call);
    if (!f)
        return inner->inputs[i];
    const graph_value *v = inner->inputs[i];
    return v && !v->def ? call->inputs[v->index] : NULL; /* a parameter, or made inside */
}

graph_value *lower_viewed(compiler *c, const graph_node *n)
{
    const graph_node *inner = n ? lower_sole_node(n) : NULL;
    if (!inner || !graph_is_view(c, inner))
        return NULL;
    return lower_operand_outside(n, inner, 0);
}

const graph_value *lower_base(compiler *c, const graph_value *v)
{
    while (lower_viewed(c, v->def))
        v = lower_viewed(c, v->def);
    return v;
}

static bool leaves(const lowering *l, const graph_value *v)
{
    for (uint32_t i = 0; i < l->f->results.len; i++)
        if (lower_base(l->c, l->f->results.data[i]) == v)
            return true;
    return false;
}

/* Where along its first axis n begins to take neighbors; -1: it is no such slice. */
static int64_t slice_start(const graph_node *n)
{
    int64_t start = 0, axis = 0, have = 0;
    uint32_t count = 0;
    if (strcmp(n->op->name, "strided_slice") != 0 || n->n_inputs < 4 || graph_operand(n, 4) ||
        !graph_constant_ints(n->inputs[1], 1, &start, &count) || count != 1 ||
        !graph_constant_ints(n->inputs[3], 1, &axis, &count) || count != 1 || axis != 0)
        return -1;
    const type *x = &n->inputs[0]->type;
    if (!shape_is_static(x->shape) || !dim_is_const(x->shape.dims[0], &have))
        return -1;
    start = start < 0 ? start + have : start;
    return start < have ? start : -1;
}

graph_value *lower_sliced(const lowering *l, const graph_node *n, uint64_t *out_offset)
{
    const int64_t start = slice_start(n);
    if (start < 0 || l->f != l->main || l->main->states.len > 0 || leaves(l, n->outputs[0]))
        return NULL;
    const graph_value *base = lower_base(l->c, n->inputs[0]);
    if (graph_constant(base) || (l->unbounded && !base->def)) /* a module has no name for the middle of an input */
        return NULL;
    const type *x = &n->inputs[0]->type, *y = &n->outputs[0]->type;
    int64_t have = 0;
    (void)dim_is_const(x->shape.dims[0], &have);
    if (!shape_is_static(y->shape) || type_bytes(y) <= 0 || type_bytes(x) <= 0)
        return NULL;
    *out_offset = (uint64_t)(type_bytes(x) / have * start);
    return n->inputs[0];
}

/* --- names --- */

static void append(writer *w, const char *text, const char *separator)
{
    if (w->len > 0)
        w_str(w, separator);
    w_item(w, text);
}

typedef struct description {
    compiler *c;
    writer kind, source;
    VEC(src_loc) nodes;
    ptr_map known; /* of them, by place and name as one text */
} description;

static void add_place(description *d, src_loc loc)
{
    uint32_t number;
    const char *key = intern(d->c->names, arena_printf(&d->c->mem, "%d %u %s", (int)loc.node_index,
                                                       (unsigned)loc.line, loc.node ? loc.node : ""));
    if (ptr_map_get(&d->known, key, &number))
        return;
    ptr_map_set(&d->known, key, d->nodes.len);
    vec_push(&d->c->mem, &d->nodes, loc);
}

static void describe_node(const graph_node *n, description *d)
{
    const graph_func *f = graph_callee(n);
    for (uint32_t i = 0; f && i < f->nodes.len; i++)
        describe_node(f->nodes.data[i], d);
    if (f || strcmp(n->op->name, "constant") == 0)
        return;
    append(&d->kind, n->op->name, "+");
    if (n->loc.node_index >= 0 || n->loc.line > 0)
        add_place(d, n->loc);
    const char *from = n->loc.node && *n->loc.node ? n->loc.node : n->loc.op;
    if (from && d->source.len < 300)
        append(&d->source, from, ", ");
}

void lower_describe(lowering *l, const graph_node *n, const char **out_kind, prog_step *s)
{
    description d = {.c = l->c};
    ptr_map_init(&d.known, &l->c->mem);
    writer_init(&d.kind, &l->c->mem);
    writer_init(&d.source, &l->c->mem);
    describe_node(n, &d);
    *out_kind = d.kind.data ? d.kind.data : "";
    s->source = d.source.data ? d.source.data : "";
    s->nodes = d.nodes.data;
    s->n_nodes = d.nodes.len;
}

/* --- values --- */

/* Names of main are its own; those of what is inside of it keep clear of them. */
const char *lower_name(lowering *l, const char *want)
{
    return l->f == l->main ? want : graph_new_name(l->main, want);
}

uint32_t lower_value_in(lowering *l, graph_value *v, prog_space space, uint32_t index, const tensor_data *data)
{
    uint32_t id;
    if (!ptr_map_get(&l->into, v, &id)) /* it has its place already */
        id = prog_add_value(l->m, l->to,
                            (prog_value){.name = lower_name(l, v->name),
                                         .type = v->type,
                                         .space = space,
                                         .index = index,
                                         .data = data,
                                         .base = PROG_NONE});
    v->mark = id + 1;
    return id;
}

uint32_t lower_value(lowering *l, graph_value *v)
{
    return lower_value_in(l, v, SPACE_WORKSPACE, 0, NULL);
}

/* Constants become values when something reads them. */
bool lower_operand(lowering *l, graph_value *v, src_loc loc, uint32_t *out)
{
    if (v->mark == 0 && graph_constant(v))
        (void)lower_value_in(l, v, SPACE_CONSTANT, 0, graph_constant(v));
    *out = v->mark ? value_of(v) : 0;
    return v->mark || diag_error(&l->c->diags, DIAG_INTERNAL, loc, "value '%s' is read before it is made", v->name);
}

void lower_clear_marks(graph_func *f)
{
    for (uint32_t i = 0; i < f->params.len; i++)
        f->params.data[i]->mark = 0;
    for (uint32_t i = 0; i < f->nodes.len; i++)
        for (uint32_t k = 0; k < f->nodes.data[i]->n_outputs; k++)
            f->nodes.data[i]->outputs[k]->mark = 0;
}

prog_kernel *lower_new_kernel(lowering *l, const char *kind)
{
    prog_kernel *k = arena_new(&l->c->mem, prog_kernel);
    k->name = arena_printf(&l->c->mem, "kernel_%u", l->m->kernels.len); /* until the names are given */
    k->kind = kind;
    k->target = l->t;
    vec_push(&l->c->mem, &l->m->kernels, k);
    return k;
}

/* Names of kernels are parts of names in C. */
static const char *region_name(compiler *c, const char *wanted)
{
    char *name = arena_printf(&c->mem, "%.80s", wanted);
    for (char *s = name; *s; s++)
        if (!isalnum((unsigned char)*s) || (unsigned char)*s > 127)
            *s = '_';
    return intern(c->names, name);
}

bool lower_region(lowering *l, const graph_node *n, prog_kernel *k)
{
    compiler *c = l->c;
    const char *who = k->func ? graph_func_text(k->func, "compiler") : NULL;
    if (!who)
        return true;
    k->host = k->target;
    k->target = target_lookup(c, who);
    if (!k->target) {
        diag_error(&c->diags, DIAG_UNSUPPORTED, n->loc, "the region @%s cannot be compiled: no code generator for '%s' "
                                                        "is loaded", k->func->name, who);
        diag_hint(&c->diags, "--load-codegen FILE loads one; %s have theirs", target_region_names(c));
        return false;
    }
    const char *name = graph_func_text(k->func, "global_symbol");
    k->region = region_name(c, name ? name : k->func->name);
    const tensor_data **constants = arena_array(&c->mem, const tensor_data *, n->n_inputs + 1u);
    for (uint32_t i = 0; i < n->n_inputs; i++)
        constants[i] = graph_constant(n->inputs[i]);
    k->constants = constants;
    return true;
}

static uint32_t find_due(const lowering *l, uint32_t cell)
{
    for (uint32_t i = 0; i < l->due.len; i++)
        if (l->due.data[i].cell == cell && l->due.data[i].depth == l->depth)
            return i;
    return PROG_NONE;
}

bool lower_is_told(const lowering *l, const char *symbol)
{
    uint32_t cell = prog_find_extent(l->to, symbol);
    return cell != PROG_NONE && find_due(l, cell) == PROG_NONE;
}

void lower_expect_extent(lowering *l, uint32_t cell)
{
    vec_push(&l->c->mem, &l->due, ((lower_due){cell, l->depth}));
}

bool lower_take_extent(lowering *l, uint32_t cell)
{
    uint32_t at = find_due(l, cell);
    if (at != PROG_NONE)
        l->due.data[at] = l->due.data[--l->due.len];
    return at != PROG_NONE;
}

uint32_t lower_extent(lowering *l, const char *symbol, prog_space space, uint32_t index)
{
    uint32_t there = prog_find_extent(l->to, symbol);
    bool again = there != PROG_NONE;
    if (again && lower_take_extent(l, there))
        return there;
    dim extent = dim_symbol(l->c, symbol, -1);
    return prog_add_value(l->m, l->to,
                          (prog_value){.name = graph_new_name(l->main, symbol),
                                       .type = type_static(l->c, DT_I64, 0, NULL),
                                       .extent = again ? NULL : extent,
                                       .space = space,
                                       .index = index,
                                       .base = PROG_NONE});
}
