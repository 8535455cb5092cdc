/* SPDX-License-Identifier: Apache-2.0 */
/* Building tensor computations: placeholders, computes, reductions, externs. Every operation goes to the end of the
 * graph's node list, so producers stand before consumers, and its name is made unique there. Reading a tensor is a load
 * from its buffer; te_tensor_of finds the way back. */
#include "te/te.h"
#include "tir/names.h"
#include "tir/simplify.h"
#include "tir/walk.h"

#include <assert.h>
#include <math.h>
#include <string.h>

te_graph *te_graph_new(compiler *c)
{
    te_graph *g = arena_new(&c->mem, te_graph);
    g->c = c;
    ptr_map_init(&g->tensor_of, &c->mem);
    ptr_map_init(&g->tensor_names, &c->mem);
    ptr_map_init(&g->axis_names, &c->mem);
    return g;
}

/* --- names --- */

/* Computations and schedules are text: no word of the language, and axes may share a name with each other only. */
static bool is_free(const te_graph *g, const char *name, bool axis)
{
    uint32_t ignored;
    return !tir_is_reserved(name) && !ptr_map_get(&g->tensor_names, name, &ignored) &&
           (axis || !ptr_map_get(&g->axis_names, name, &ignored));
}

/* The name, or with the first number behind it that makes it free. */
static const char *take_name(te_graph *g, const char *wanted, bool axis)
{
    compiler *c = g->c;
    ptr_map *own = axis ? &g->axis_names : &g->tensor_names;
    const char *base = intern(c->names, wanted), *name = base;
    uint32_t n = 1;
    bool again = ptr_map_get(own, base, &n);
    while (!is_free(g, name, axis))
        name = intern(c->names, arena_printf(&c->mem, "%s_%u", base, n++));
    if (again)
        ptr_map_set(own, base, n);
    ptr_map_set(own, name, name == base ? n : 1);
    return name;
}

/* Schedules are text, so a name must be one identifier. */
static const char *unique_name(te_graph *g, const char *name)
{
    compiler *c = g->c;
    char *base = arena_strdup(&c->mem, name && *name ? name : "t");
    for (char *p = base; *p; p++)
        if (!((*p >= 'a' && *p <= 'z') || (*p >= 'A' && *p <= 'Z') || (*p >= '0' && *p <= '9') || *p == '_'))
            *p = '_';
    if (*base >= '0' && *base <= '9')
        base = arena_printf(&c->mem, "_%s", base);
    return take_name(g, base, false);
}

static te_node *new_node(te_graph *g, te_kind kind, const char *name)
{
    te_node *n = arena_new(&g->c->mem, te_node);
    n->kind = kind;
    n->name = unique_name(g, name);
    if (kind == TE_CHECK)
        vec_push(&g->c->mem, &g->checks, ((te_check_at){n, g->nodes.len}));
    else
        vec_push(&g->c->mem, &g->nodes, n);
    return n;
}

static te_tensor *new_tensor(te_graph *g, te_node *n, uint32_t index, const char *name, dtype dt, uint32_t rank,
                             tir_expr_ref const *dims)
{
    compiler *c = g->c;
    te_tensor *t = arena_new(&c->mem, te_tensor);
    tir_expr_ref *own = arena_array(&c->mem, tir_expr_ref, rank);
    if (rank)
        memcpy(own, dims, rank * sizeof *own);
    *t = (te_tensor){.node = n, .index = index, .dt = dt, .rank = rank, .shape = own};
    t->buffer = tir_new_buffer(c, name, dt, rank, own, SCOPE_GLOBAL);
    ptr_map_set(&g->tensor_of, t->buffer, g->by_buffer.len);
    vec_push(&c->mem, &g->by_buffer, t);
    return t;
}

static void add_outputs(te_graph *g, te_node *n, uint32_t n_out, const dtype *dts, const uint32_t *ranks,
                        tir_expr_ref const *const *shapes, te_tensor **out)
{
    te_tensor **own = arena_array(&g->c->mem, te_tensor *, n_out);
    for (uint32_t i = 0; i < n_out; i++) {
        const char *name = n_out == 1 ? n->name : arena_printf(&g->c->mem, "%s_v%u", n->name, i);
        own[i] = new_tensor(g, n, i, name, dts[i], ranks[i], shapes[i]);
        if (out)
            out[i] = own[i];
    }
    n->outputs = own;
    n->n_outputs = n_out;
}

const tir_var *te_add_symbol(te_graph *g, const char *name, int64_t max)
{
    for (uint32_t i = 0; i < g->symbols.len; i++)
        if (strcmp(g->symbols.data[i].var->name, name) == 0)
            return g->symbols.data[i].var;
    te_symbol s = {tir_new_var(g->c, intern(g->c->names, name), TIR_I64), max};
    vec_push(&g->c->mem, &g->symbols, s);
    return s.var;
}

te_tensor *te_tensor_of(const te_graph *g, const tir_buffer *b)
{
    uint32_t at = 0;
    return b && ptr_map_get(&g->tensor_of, b, &at) ? g->by_buffer.data[at] : NULL;
}

te_tensor *te_placeholder(te_graph *g, const char *name, dtype dt, uint32_t rank, tir_expr_ref const *dims)
{
    te_node *n = new_node(g, TE_PLACEHOLDER, name);
    te_tensor *t = NULL;
    add_outputs(g, n, 1, &dt, &rank, &dims, &t);
    vec_push(&g->c->mem, &g->params, t);
    g->n_inputs++;
    return t;
}

/* --- axes --- */

static te_axis *new_axis(te_graph *g, const char *name, tir_expr_ref extent, te_axis_kind kind)
{
    te_axis *a = arena_new(&g->c->mem, te_axis);
    *a = (te_axis){tir_new_var(g->c, take_name(g, name, true), TIR_I64), extent, kind};
    return a;
}

te_axis *te_reduce_axis(te_graph *g, const char *name, tir_expr_ref extent)
{
    return new_axis(g, name, extent, AXIS_REDUCE);
}

te_axis *const *te_data_axes(te_graph *g, uint32_t rank, tir_expr_ref const *dims)
{
    te_axis **axes = arena_array(&g->c->mem, te_axis *, rank);
    for (uint32_t i = 0; i < rank; i++)
        axes[i] = new_axis(g, arena_printf(&g->c->mem, "i%u", i), dims[i], AXIS_DATA);
    return axes;
}

tir_expr_ref te_var(te_graph *g, const te_axis *a)
{
    return tir_varref(g->c, a->var);
}

static tir_expr_ref const *axis_indices(te_graph *g, uint32_t n, te_axis *const *axes)
{
    tir_expr_ref *idx = arena_array(&g->c->mem, tir_expr_ref, n);
    for (uint32_t i = 0; i < n; i++)
        idx[i] = te_var(g, axes[i]);
    return idx;
}

/* --- computes --- */

static te_axis *const *copy_axes(te_graph *g, uint32_t n, te_axis *const *axes)
{
    te_axis **own = arena_array(&g->c->mem, te_axis *, n);
    for (uint32_t i = 0; i < n; i++)
        own[i] = axes[i];
    return own;
}

void te_compute_n(te_graph *g, const char *name, uint32_t rank, tir_expr_ref const *dims, te_axis *const *axes,
                  uint32_t n_reduce, te_axis *const *reduce_axes, const te_reducer *reducer, tir_expr_ref where,
                  uint32_t n_out, const dtype *dts, tir_expr_ref const *bodies, te_tensor **out)
{
    compiler *c = g->c;
    assert((reducer != NULL) || n_reduce == 0);
    assert(!reducer || reducer->n == n_out);
    te_node *n = new_node(g, TE_COMPUTE, name);
    n->axes = copy_axes(g, rank, axes);
    n->n_axes = rank;
    n->reduce_axes = copy_axes(g, n_reduce, reduce_axes);
    n->n_reduce = n_reduce;
    n->reducer = reducer;
    n->where = where;
    tir_expr_ref *own = arena_array(&c->mem, tir_expr_ref, n_out);
    uint32_t *ranks = arena_array(&c->mem, uint32_t, n_out);
    tir_expr_ref const **shapes = arena_array(&c->mem, tir_expr_ref const *, n_out);
    for (uint32_t i = 0; i < n_out; i++) {
        own[i] = tir_cast(c, dts[i], bodies[i]);
        ranks[i] = rank;
        shapes[i] = dims;
    }
    n->body = own;
    add_outputs(g, n, n_out, dts, ranks, shapes, out);
}

static tir_expr_ref product_apart(tir_rewriter *r, tir_expr_ref e)
{
    const bool is_apart = e->kind == TIR_CALL && e->op == TIR_APART;
    if (is_apart && e->args[0]->kind == TIR_CALL && e->args[0]->op == TIR_APART)
        return e->args[0];
    const bool product = tir_is_binary(e, TIR_MUL) && dtype_is_float(e->type.dt);
    return product ? tir_call1(r->c, TIR_APART, e) : e;
}

te_tensor *te_compute(te_graph *g, const char *name, dtype dt, uint32_t rank, tir_expr_ref const *dims, te_body_fn body,
                      void *ctx)
{
    te_axis *const *axes = te_data_axes(g, rank, dims);
    tir_expr_ref value = body(g, ctx, axis_indices(g, rank, axes));
    tir_rewriter apart = {.c = g->c, .expr = product_apart};
    if (g->products_apart)
        value = tir_rewrite_expr(&apart, value);
    te_tensor *out = NULL;
    te_compute_n(g, name, rank, dims, axes, 0, NULL, NULL, NULL, 1, &dt, &value, &out);
    return out;
}

static tir_expr_ref reduce_identity(compiler *c, te_reduce_kind kind, dtype dt)
{
    bool real = dtype_is_float(dt);
    switch (kind) {
    case TE_SUM: return tir_const(c, dt, 0);
    case TE_PROD: return tir_const(c, dt, 1);
    case TE_MAX: return real ? tir_float(c, dt, -INFINITY) : tir_int(c, dt, dtype_min_int(dt));
    case TE_MIN:
        if (dt == DT_U64)
            return tir_int(c, dt, -1); /* the bit pattern of the largest value */
        return real ? tir_float(c, dt, INFINITY) : tir_int(c, dt, dtype_max_int(dt));
    }
    return NULL;
}

static tir_op reduce_op(te_reduce_kind kind)
{
    switch (kind) {
    case TE_SUM: return TIR_ADD;
    case TE_PROD: return TIR_MUL;
    case TE_MAX: return TIR_MAX;
    case TE_MIN: return TIR_MIN;
    }
    return TIR_OP_NONE;
}

const te_reducer *te_simple_reducer(compiler *c, te_reduce_kind kind, dtype dt)
{
    const tir_var **v = arena_array(&c->mem, const tir_var *, 2);
    tir_expr_ref *e = arena_array(&c->mem, tir_expr_ref, 2);
    v[0] = tir_new_var(c, "acc", tir_scalar(dt));
    v[1] = tir_new_var(c, "x", tir_scalar(dt));
    e[0] = tir_binary(c, reduce_op(kind), tir_varref(c, v[0]), tir_varref(c, v[1]));
    e[1] = reduce_identity(c, kind, dt);
    te_reducer *r = arena_new(&c->mem, te_reducer);
    *r = (te_reducer){1, v, v + 1, e, e + 1};
    return r;
}

te_tensor *te_reduce(te_graph *g, const char *name, dtype dt, uint32_t rank, tir_expr_ref const *dims,
                     uint32_t n_reduce, te_axis *const *axes, te_reduce_kind kind, te_body_fn body, void *ctx)
{
    te_axis *const *data = te_data_axes(g, rank, dims);
    tir_expr_ref value = body(g, ctx, axis_indices(g, rank, data));
    te_tensor *out = NULL;
    te_compute_n(g, name, rank, dims, data, n_reduce, axes, te_simple_reducer(g->c, kind, dt), NULL, 1, &dt, &value,
                 &out);
    return out;
}

/* --- externs --- */

void te_extern(te_graph *g, const char *name, uint32_t n_in, te_tensor *const *in, uint32_t n_out, const dtype *dts,
               const uint32_t *ranks, tir_expr_ref const *const *shapes, te_build_fn build, void *ctx, te_tensor **out)
{
    compiler *c = g->c;
    te_node *n = new_node(g, TE_EXTERN, name);
    add_outputs(g, n, n_out, dts, ranks, shapes, out);
    te_tensor **inputs = arena_array(&c->mem, te_tensor *, n_in);
    const tir_buffer **ib = arena_array(&c->mem, const tir_buffer *, n_in);
    const tir_buffer **ob = arena_array(&c->mem, const tir_buffer *, n_out);
    uint32_t present = 0;
    for (uint32_t i = 0; i < n_in; i++) {
        ib[i] = in[i] ? in[i]->buffer : NULL; /* an operand that is left out */
        if (in[i])
            inputs[present++] = in[i];
    }
    for (uint32_t i = 0; i < n_out; i++)
        ob[i] = n->outputs[i]->buffer;
    n->inputs = inputs;
    n->n_inputs = present;
    n->stmt = build(g, ctx, ib, ob);
}

/* --- checks --- */

void te_check(te_graph *g, const char *name, uint32_t n_axes, te_axis *const *axes, tir_expr_ref holds, int32_t status,
              const char *message)
{
    tir_bounds *b = tir_bounds_new(g->c);
    for (uint32_t i = 0; i < n_axes; i++)
        tir_bounds_push(b, axes[i]->var, tir_i64(g->c, 0), axes[i]->extent);
    holds = tir_simplify(b, holds);
    if (tir_is_const(holds, 1))
        return;
    te_node *n = new_node(g, TE_CHECK, name);
    n->axes = copy_axes(g, n_axes, axes);
    n->n_axes = n_axes;
    n->where = holds;
    n->status = status;
    n->message = message;
}

/* --- reading, outputs --- */

tir_expr_ref te_read(te_graph *g, const te_tensor *t, tir_expr_ref const *idx)
{
    assert(t->rank == t->buffer->rank);
    return tir_load(g->c, t->buffer, t->rank, idx);
}

static tir_expr_ref copy_body(te_graph *g, void *ctx, tir_expr_ref const *idx)
{
    return te_read(g, ctx, idx);
}

void te_set_outputs(te_graph *g, uint32_t n, te_tensor *const *outs)
{
    assert(g->params.len == g->n_inputs);
    for (uint32_t i = 0; i < n; i++) {
        te_tensor *t = outs[i];
        bool copy = t->node->kind == TE_PLACEHOLDER;
        for (uint32_t k = g->n_inputs; k < g->params.len; k++)
            copy |= g->params.data[k] == t;
        if (copy)
            t = te_compute(g, arena_printf(&g->c->mem, "%s_copy", t->node->name), t->dt, t->rank, t->shape, copy_body,
                           t);
        vec_push(&g->c->mem, &g->params, t);
    }
}

typedef struct reads {
    const te_graph *g;
    ptr_map nodes; /* read, by a result in the end */
} reads;

static void note_read(void *ctx, tir_expr_ref e)
{
    reads *r = ctx;
    const te_tensor *t = tir_is_access(e) ? te_tensor_of(r->g, e->u.buffer) : NULL;
    if (t)
        ptr_map_set(&r->nodes, t->node, 1);
}

static void note_reads_of(reads *r, const te_node *n)
{
    for (uint32_t k = 0; n->kind == TE_COMPUTE && k < n->n_outputs; k++)
        tir_visit_expr(n->body[k], note_read, r);
    if (n->where)
        tir_visit_expr(n->where, note_read, r);
    for (uint32_t k = 0; k < n->n_inputs; k++)
        ptr_map_set(&r->nodes, n->inputs[k]->node, 1);
}

/* Which nodes a result, a check or an extent needs. Readers stand behind what they read. */
static void find_reads(reads *r)
{
    const te_graph *g = r->g;
    for (uint32_t i = g->n_inputs; i < g->params.len; i++)
        ptr_map_set(&r->nodes, g->params.data[i]->node, 1);
    for (uint32_t i = 0; i < g->checks.len; i++)
        note_reads_of(r, g->checks.data[i].check);
    for (uint32_t i = g->nodes.len; i-- > 0;) {
        uint32_t ignored = 0;
        if (ptr_map_get(&r->nodes, g->nodes.data[i], &ignored))
            note_reads_of(r, g->nodes.data[i]);
    }
}

void te_drop_unread(te_graph *g, uint32_t n, uint32_t *const *places)
{
    reads r = {.g = g};
    uint32_t kept = 0, ignored = 0, *now = arena_array(&g->c->mem, uint32_t, g->nodes.len + 1);
    ptr_map_init(&r.nodes, &g->c->mem);
    find_reads(&r);
    for (uint32_t i = 0; i < g->nodes.len; i++) {
        te_node *node = g->nodes.data[i];
        now[i] = kept;
        if (node->kind == TE_PLACEHOLDER || node->inline_hint || ptr_map_get(&r.nodes, node, &ignored))
            g->nodes.data[kept++] = node;
    }
    now[g->nodes.len] = kept;
    g->nodes.len = kept;
    for (uint32_t i = 0; i < g->checks.len; i++)
        g->checks.data[i].before = now[g->checks.data[i].before];
    for (uint32_t i = 0; i < n; i++)
        *places[i] = now[*places[i]];
}

/* Of an extent whose symbols are at most as large as they say, or, where they say nothing, at most `open`; -1: no
 * bound. */
static tir_range range_of_extent(const te_graph *g, tir_expr_ref extent, int64_t open)
{
    tir_bounds *b = tir_bounds_new(g->c);
    for (uint32_t i = 0; i < g->symbols.len; i++) {
        const te_symbol *s = &g->symbols.data[i];
        const int64_t most = s->max < 0 ? open : s->max;
        if (most >= 0)
            tir_bounds_push(b, s->var, tir_i64(g->c, 0), tir_i64(g->c, most + 1));
    }
    return tir_range_of(b, extent);
}

int64_t te_most(const te_graph *g, tir_expr_ref extent)
{
    int64_t v = 0;
    if (tir_is_int(extent, &v))
        return v;
    tir_range r = range_of_extent(g, extent, TE_USUAL_EXTENT);
    return r.known_max && r.max > 0 ? r.max : 0;
}

const tir_buffer *te_scratch(te_graph *g, const char *name, dtype dt, uint32_t rank, tir_expr_ref const *extents)
{
    tir_expr_ref dims[TYPE_MAX_RANK];
    for (uint32_t i = 0; i < rank; i++) {
        tir_range r = range_of_extent(g, extents[i], -1);
        dims[i] = r.known_max ? tir_i64(g->c, r.max > 0 ? r.max : 0) : extents[i];
    }
    return tir_new_buffer(g->c, name, dt, rank, dims, SCOPE_GLOBAL);
}
