/* SPDX-License-Identifier: Apache-2.0 */
/* The border between graph and loops: a graph function becomes a program. Operators and fused groups become kernels
 * with the plain loops of their compute definitions; what only gives another shape becomes a view. Nothing is placed
 * here, and no kernel shared, but for the plain loops of equal ones (lower_plain.c): passes on programs do that. */
#include "graph/op.h"
#include "prog/lower.h"
#include "te/from_graph.h"
#include "te/te_op.h"

#include <string.h>

static uint32_t value_of(const graph_value *v)
{
    return v->mark - 1; /* marks: 0 for none, else the number and 1 */
}

/* --- what a node is --- */

/* A concatenation whose operands lie one behind the other in the result, each of them an operand of n. */
static bool joins(const graph_node *n)
{
    const graph_node *inner = lower_sole_node(n);
    int64_t dims[TYPE_MAX_RANK];
    if (!inner || strcmp(inner->op->name, "concatenate") != 0 || n->n_outputs != 1 ||
        !shape_get(inner->outputs[0]->type.shape, dims))
        return false;
    int64_t axis = graph_attr_int(inner, "axis");
    axis = axis < 0 ? axis + inner->outputs[0]->type.shape.rank : axis;
    for (int64_t i = 0; i < axis; i++)
        if (dims[i] != 1)
            return false;
    uint32_t k = 0;
    for (uint32_t i = 0; i < n->n_inputs; i++) /* in this order, none twice */
        if (n->inputs[i] && (k >= inner->n_inputs || lower_operand_outside(n, inner, k++) != n->inputs[i]))
            return false;
    return k == inner->n_inputs;
}

uint32_t prog_least_kernels(compiler *c, const graph_module *g)
{
    const graph_func *f = graph_module_find(g, "main");
    uint32_t count = 0, unused;
    arena tmp;
    ptr_map read;
    arena_init(&tmp, &c->mem);
    ptr_map_init(&read, &tmp);
    for (uint32_t i = 0; f && i < f->results.len; i++)
        ptr_map_set(&read, f->results.data[i], 1);
    for (uint32_t i = f ? f->nodes.len : 0; i-- > 0;) { /* what nobody reads may be dropped */
        graph_node *n = f->nodes.data[i];
        bool kept = n->op->effect != EFFECT_PURE;
        for (uint32_t k = 0; k < n->n_outputs && !kept; k++)
            kept = ptr_map_get(&read, n->outputs[k], &unused);
        for (uint32_t k = 0; k < n->n_inputs && kept; k++)
            if (n->inputs[k])
                ptr_map_set(&read, n->inputs[k], 1);
        count += kept && strcmp(n->op->name, "constant") != 0 && !(n->op->flags & OPF_CALL && !graph_callee(n)) &&
                 !lower_viewed(c, n) && !joins(n);
    }
    arena_free(&tmp);
    return count;
}

/* --- steps --- */

static prog_step *add_step(lowering *l, prog_step_kind kind, const graph_node *n, uint32_t most)
{
    prog_step s = {.kind = kind, .loc = n->loc, .source = "", .args = arena_array(&l->c->mem, uint32_t, most + 1u)};
    vec_push(&l->c->mem, l->block, s);
    return &vec_last(l->block);
}

static bool add_view(lowering *l, graph_node *n, graph_value *from, uint64_t offset)
{
    uint32_t base;
    if (!lower_operand(l, from, n->loc, &base))
        return false;
    int64_t bytes = type_most_bytes(&from->type);
    if (bytes >= 0 && type_most_bytes(&n->outputs[0]->type) > bytes)
        return diag_error(&l->c->diags, DIAG_TYPE, n->loc, "'%s' is a view of '%s', but has more elements",
                          n->outputs[0]->name, from->name);
    uint32_t v = lower_value_in(l, n->outputs[0], l->to->values.data[base].space, 0, NULL);
    l->to->values.data[v].base = base;
    l->to->values.data[v].offset = offset;
    prog_step *s = add_step(l, STEP_VIEW, n, 2);
    s->args[0] = base;
    s->args[1] = v;
    s->n_in = 1;
    s->n_args = 2;
    return true;
}

/* The cells of the extents that the kernel's loops ask for, then n's operands. */
static bool add_operands(lowering *l, const graph_node *n, const prog_kernel *k, prog_step *s)
{
    for (uint32_t i = 0; k->plain && i < k->plain->n_symbols; i++) {
        uint32_t cell = prog_find_extent(l->to, k->plain->symbols[i]);
        if (cell == PROG_NONE)
            return diag_error(&l->c->diags, DIAG_UNSUPPORTED, n->loc,
                              "operator %s needs the extent %s, which no input and no earlier operator gives",
                              k->kind, k->plain->symbols[i]);
        s->args[s->n_in++] = cell;
    }
    for (uint32_t i = 0; i < n->n_inputs; i++)
        if (n->inputs[i] && !lower_operand(l, n->inputs[i], n->loc, &s->args[s->n_in++]))
            return false;
    s->n_args = s->n_in;
    return true;
}

/* Constants that are bound inside of a region are operands of its loops (te_is_data). */
static void add_bound(lowering *l, const graph_func *f, prog_kernel *k, prog_step *s)
{
    for (uint32_t i = 0; i < f->nodes.len && k->plain; i++) {
        const graph_node *n = f->nodes.data[i];
        const graph_func *inner = graph_callee(n);
        if (inner)
            add_bound(l, inner, k, s);
        if (inner || n->op->infer != infer_constant || !te_is_data(n->outputs[0]))
            continue;
        const graph_value *v = n->outputs[0];
        const prog_value own = {.name = graph_new_name(l->main, v->name),
                                .type = v->type,
                                .space = SPACE_CONSTANT,
                                .data = graph_constant(v),
                                .base = PROG_NONE};
        s->args[s->n_in++] = prog_add_value(l->m, l->to, own);
        vec_push(&l->c->mem, &k->bound, own.data);
    }
    s->n_args = s->n_in;
}

static uint32_t count_constants(const graph_func *f)
{
    uint32_t n = 0;
    for (uint32_t i = 0; f && i < f->nodes.len; i++) {
        const graph_func *inner = graph_callee(f->nodes.data[i]);
        n += inner ? count_constants(inner) : f->nodes.data[i]->op->infer == infer_constant;
    }
    return n;
}

static uint32_t most_operands(const graph_node *n, const prog_kernel *k)
{
    return n->n_inputs + n->n_outputs + (k->plain ? k->plain->n_symbols : 0) + TYPE_MAX_RANK +
           (k->region ? count_constants(k->func) : 0);
}

/* Whether operands are left that may say extents: those that are proven to say what the type says are gone. */
static bool says_extents(const graph_node *n)
{
    bool any = !(n->op->flags & OPF_SHAPE_ARGS);
    for (uint32_t i = 1; i < n->n_inputs; i++)
        any |= n->inputs[i] != NULL;
    return any && n->op->te && n->op->te->extents;
}

/* A kernel of its own computes the extents that the values of n's operands decide. */
static bool add_extents(lowering *l, const graph_node *n)
{
    const char *symbols[TYPE_MAX_RANK], *unused;
    uint32_t count = says_extents(n) ? graph_own_symbols(n, TYPE_MAX_RANK, symbols) : 0;
    if (count == 0)
        return true;
    prog_kernel *k = lower_new_kernel(l, arena_printf(&l->c->mem, "%s_extents", n->op->name));
    prog_step s = {.kind = STEP_KERNEL, .kernel = k, .loc = n->loc};
    lower_describe(l, n, &unused, &s);
    if (!te_lower_extents(l->c, n, k->name, &k->plain))
        return false;
    s.args = arena_array(&l->c->mem, uint32_t, most_operands(n, k));
    if (!add_operands(l, n, k, &s))
        return false;
    for (uint32_t i = 0; i < count; i++)
        s.args[s.n_args++] = lower_extent(l, symbols[i], SPACE_WORKSPACE, 0);
    vec_push(&l->c->mem, l->block, s);
    return true;
}

static bool add_kernel(lowering *l, graph_node *n)
{
    const char *kind;
    prog_step s = {.kind = STEP_KERNEL, .loc = n->loc};
    if (!add_extents(l, n))
        return false;
    lower_describe(l, n, &kind, &s);
    prog_kernel *k = s.kernel = lower_new_kernel(l, kind);
    k->func = graph_callee(n);
    k->node = k->func ? NULL : n;
    k->joins = joins(n);
    if (!lower_region(l, n, k) || !lower_plain(l, k))
        return false;
    s.args = arena_array(&l->c->mem, uint32_t, most_operands(n, k));
    if (!add_operands(l, n, k, &s))
        return false;
    if (k->region)
        add_bound(l, k->func, k, &s);
    for (uint32_t i = 0; i < n->n_outputs; i++)
        s.args[s.n_args++] = lower_value_in(l, n->outputs[i], SPACE_WORKSPACE, 0, NULL);
    vec_push(&l->c->mem, l->block, s);
    return true;
}

static bool add_node(lowering *l, graph_node *n)
{
    if (strcmp(n->op->name, "constant") == 0)
        return true;
    if (strcmp(n->op->name, "if") == 0)
        return lower_if(l, n);
    if (strcmp(n->op->name, "loop") == 0)
        return lower_loop(l, n);
    uint64_t offset = 0;
    graph_value *from = lower_viewed(l->c, n);
    from = from ? from : lower_sliced(l, n, &offset);
    return from ? add_view(l, n, from, offset) : add_kernel(l, n);
}

/* --- results --- */

/* A result must be written by a step, and no two results share bytes: others get a copy. */
static bool separate_results(lowering *l)
{
    ptr_map written;
    ptr_map_init(&written, &l->c->mem);
    for (uint32_t i = 0; i < l->results.len; i++) {
        graph_value *v = l->results.data[i];
        const graph_value *base = lower_base(l->c, v);
        uint32_t unused;
        if (base->def && !graph_constant(base) && !ptr_map_get(&written, base, &unused)) {
            ptr_map_set(&written, base, 1);
            continue;
        }
        graph_value *made = graph_emit(l->f, NULL, "copy", 1, &v, 0, NULL, v->def ? v->def->loc : src_loc_none());
        if (!made)
            return false;
        l->results.data[i] = made;
    }
    return true;
}

/* A result with open dimensions tells its shape in another one. */
static bool add_shapes(lowering *l)
{
    uint32_t n = l->results.len;
    for (uint32_t i = 0; i < n; i++) {
        graph_value *v = l->results.data[i];
        if (shape_is_static(v->type.shape))
            continue;
        graph_value *tells = graph_emit(l->f, NULL, "shape_of", 1, &v, 0, NULL, v->def ? v->def->loc : src_loc_none());
        if (!tells)
            return false;
        vec_push(&l->c->mem, &l->results, tells);
        const char *name = arena_printf(&l->c->mem, "%s_shape", l->to->results.data[i].name);
        vec_push(&l->c->mem, &l->to->results, ((prog_result){name, PROG_NONE, i}));
    }
    return true;
}

/* The parameters, then the extents that they have; states follow. */
static void add_inputs(lowering *l)
{
    uint32_t n = l->f->params.len;
    for (uint32_t i = 0; i < n; i++)
        if (!graph_state_of_param(l->f, i))
            (void)lower_value_in(l, l->f->params.data[i], SPACE_INPUT, l->to->n_inputs++, NULL);
    for (uint32_t i = 0; i < n; i++) {
        const type *t = &l->f->params.data[i]->type;
        for (int32_t k = 0; k < t->shape.rank; k++) {
            const char *symbol = dim_symbol_name(t->shape.dims[k]);
            if (symbol && prog_find_extent(l->to, symbol) == PROG_NONE)
                (void)lower_extent(l, symbol, SPACE_INPUT, l->to->n_inputs++);
        }
    }
    lower_states(l);
}

/* The names are the model's, copies or not. */
static void collect_results(lowering *l)
{
    for (uint32_t i = 0; i < l->f->results.len; i++)
        if (!graph_state_of_result(l->f, i)) {
            vec_push(&l->c->mem, &l->results, l->f->results.data[i]);
            vec_push(&l->c->mem, &l->to->results, ((prog_result){l->f->results.data[i]->name, PROG_NONE, PROG_NONE}));
        }
}

bool prog_from_graph(compiler *c, graph_module *g, const target *t, bool unbounded, prog_module **out)
{
    lowering l = {
        .c = c, .f = graph_module_find(g, "main"), .t = t, .m = prog_module_new(c), .unbounded = unbounded};
    *out = NULL;
    if (!l.f)
        return diag_error(&c->diags, DIAG_FORMAT, src_loc_none(), "the graph has no function @main");
    l.main = l.f;
    l.add_node = add_node;
    l.to = arena_new(&c->mem, prog_func);
    l.to->name = l.f->name;
    l.block = &l.to->steps;
    ptr_map_init(&l.into, &c->mem);
    vec_push(&c->mem, &l.m->funcs, l.to);
    collect_results(&l);
    if (!lower_check(&l) || !separate_results(&l) || !add_shapes(&l))
        return false;
    lower_clear_marks(l.f);
    add_inputs(&l);
    for (uint32_t i = 0; i < l.f->nodes.len; i++)
        if (!add_node(&l, l.f->nodes.data[i]))
            return false;
    if (!lower_write_states(&l))
        return false;
    for (uint32_t i = 0; i < l.results.len; i++)
        l.to->results.data[i].value = value_of(l.results.data[i]);
    prog_place_results(l.to);
    prog_name_kernels(l.m);
    *out = l.m;
    return true;
}
