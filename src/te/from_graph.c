/* SPDX-License-Identifier: Apache-2.0 */
/* From a graph function to a loop-IR function: the compute definitions of all nodes in one tensor graph, cheap
 * producers inlined, the default schedule of the most rigid operator, loops. Also the helpers that compute definitions
 * share. */
#include "te/from_graph.h"
#include "te/choose.h"
#include "abi/package.h"
#include "te/extreme.h"
#include "te/lower.h"
#include "te/records.h"
#include "te/inline.h"
#include "te/te_op.h"
#include "te/text.h"
#include "te/windows.h"
#include "tir/map.h"
#include "tir/walk.h"

#include <string.h>

/* --- helpers for compute definitions --- */

tir_expr_ref te_i64(te_graph *g, int64_t v)
{
    return tir_i64(g->c, v);
}

static tir_op dim_op(dim_kind k)
{
    switch (k) {
    case DIM_ADD: return TIR_ADD;
    case DIM_MUL: return TIR_MUL;
    case DIM_FLOORDIV: return TIR_FLOORDIV;
    case DIM_MOD: return TIR_FLOORMOD;
    case DIM_MIN: return TIR_MIN;
    case DIM_MAX: return TIR_MAX;
    case DIM_CONST:
    case DIM_SYMBOL: break;
    }
    return TIR_OP_NONE;
}

tir_expr_ref te_dim(te_graph *g, dim d)
{
    int64_t v = 0;
    const dim *ops = NULL;
    if (dim_is_const(d, &v))
        return te_i64(g, v);
    uint32_t n = dim_operands(d, &ops);
    if (n == 0)
        return tir_varref(g->c, te_add_symbol(g, dim_symbol_name(d) ? dim_symbol_name(d) : "unknown", dim_bound(d)));
    tir_expr_ref e = te_dim(g, ops[0]);
    for (uint32_t i = 1; i < n; i++)
        e = tir_binary(g->c, dim_op(dim_get_kind(d)), e, te_dim(g, ops[i]));
    return e;
}

tir_expr_ref const *te_shape(te_graph *g, const type *t)
{
    uint32_t rank = t->kind == TYPE_TENSOR && t->shape.rank > 0 ? (uint32_t)t->shape.rank : 0;
    tir_expr_ref *dims = arena_array(&g->c->mem, tir_expr_ref, rank);
    for (uint32_t i = 0; i < rank; i++)
        dims[i] = te_dim(g, t->shape.dims[i]);
    return dims;
}

const type *te_in_type(const graph_node *n, uint32_t i)
{
    return i < n->n_inputs && n->inputs[i] ? &n->inputs[i]->type : NULL;
}
const type *te_out_type(const graph_node *n, uint32_t i)
{
    return i < n->n_outputs ? &n->outputs[i]->type : NULL;
}

/* Whether axis i of the first `lead` ones of `in` is stretched: NULL when types tell that it is not. Axes beyond the
 * result's rank have extent 1. */
static tir_expr_ref stretched(te_graph *g, const te_tensor *in, uint32_t lead, uint32_t rank,
                              tir_expr_ref const *extents, uint32_t i)
{
    int64_t v = 0;
    if (rank + i < lead || tir_is_const(in->shape[i], 1))
        return tir_int(g->c, DT_BOOL, 1);
    if (tir_is_int(in->shape[i], &v) || tir_expr_equal(in->shape[i], extents[rank + i - lead]))
        return NULL;
    return tir_binary(g->c, TIR_EQ, in->shape[i], te_i64(g, 1));
}

void te_broadcast_lead(te_graph *g, const te_tensor *in, uint32_t lead, uint32_t rank, tir_expr_ref const *extents,
                       tir_expr_ref const *idx, tir_expr_ref *at)
{
    tir_expr_ref zero = te_i64(g, 0);
    for (uint32_t i = 0; i < lead; i++) {
        tir_expr_ref one = stretched(g, in, lead, rank, extents, i);
        at[i] = !one                   ? idx[rank + i - lead]
                : tir_is_const(one, 1) ? zero
                                       : tir_select(g->c, one, zero, idx[rank + i - lead]);
    }
}

tir_expr_ref te_read_broadcast(te_graph *g, const te_tensor *in, uint32_t rank, tir_expr_ref const *extents,
                               tir_expr_ref const *idx)
{
    tir_expr_ref at[TYPE_MAX_RANK];
    te_broadcast_lead(g, in, in->rank, rank, extents, idx, at);
    return te_read(g, in, at);
}

/* --- a graph function as a tensor graph --- */

typedef struct builder {
    compiler *c;
    te_graph *g;
    tir_map bound;           /* value -> its tensor */
    const graph_node *rigid; /* the most rigid operator and the range of its stages */
    uint32_t first, end;
    bool region;             /* a function that passes have not made groups of */
    bool several;            /* a region: more operators than one that rules are for, which know of one */
    te_records *records;     /* schedules that stand before the rules; NULL: none */
} builder;

static builder new_builder(compiler *c)
{
    builder b = {.c = c, .g = te_graph_new(c)};
    b.g->unbounded = true; /* what has to have bounds is told before */
    tir_map_init(&b.bound, &c->mem);
    return b;
}

static te_tensor *lookup(const builder *b, const graph_value *v)
{
    return v ? (te_tensor *)(uintptr_t)tir_map_get(&b->bound, v) : NULL;
}

static void bind(builder *b, const graph_value *v, te_tensor *t)
{
    tir_map_put(&b->bound, v, t);
}

static bool check_type(builder *b, const graph_value *v, src_loc loc)
{
    if (v->type.kind != TYPE_TENSOR || v->type.shape.rank < 0)
        return diag_error(&b->c->diags, DIAG_UNSUPPORTED, loc, "value %%%s: kernels need tensors of known rank",
                          v->name);
    if (!dtype_usable(v->type.dt))
        return diag_error(&b->c->diags, DIAG_UNSUPPORTED, loc, "value %%%s: kernels on %s are not supported "
                                                               "yet", v->name,
                          dtype_name(v->type.dt));
    return true;
}

static bool add_input(builder *b, const graph_value *v, src_loc loc)
{
    if (!check_type(b, v, loc))
        return false;
    const char *name = arena_printf(&b->c->mem, "p%u", b->g->n_inputs); /* the same in every layer of the shape */
    te_tensor *t =
        te_placeholder(b->g, name, v->type.dt, (uint32_t)v->type.shape.rank, te_shape(b->g, &v->type));
    t->node->label = v->name;
    bind(b, v, t);
    return true;
}

#define TABLE_LIMIT 256 /* elements of a constant that is written out as a choice */

static tir_expr_ref element_literal(compiler *c, const tensor_data *t, int64_t i)
{
    if (dtype_is_float(t->dt))
        return tir_float(c, t->dt, tensor_get_f64(t, i));
    return tir_int(c, t->dt, tensor_get_i64(t, i));
}

/* The element at idx: a literal, or a choice among a few by the row-major index. */
static tir_expr_ref literal_body(te_graph *g, void *ctx, tir_expr_ref const *idx)
{
    const tensor_data *t = ctx;
    compiler *c = g->c;
    if (t->kind == TENSOR_SPLAT || t->count <= 1)
        return t->count > 0 ? element_literal(c, t, 0) : tir_const(c, t->dt, 0);
    tir_expr_ref at = te_i64(g, 0), e = element_literal(c, t, t->count - 1);
    for (uint32_t i = 0; i < t->rank; i++)
        at = tir_add(c, tir_mul(c, at, te_i64(g, t->dims[i])), idx[i]);
    for (int64_t i = t->count - 2; i >= 0; i--)
        e = tir_select(c, tir_binary(c, TIR_EQ, at, te_i64(g, i)), element_literal(c, t, i), e);
    return e;
}

bool te_is_data(const graph_value *v)
{
    const tensor_data *t = graph_constant(v);
    return t && t->kind != TENSOR_SPLAT && t->count > TABLE_LIMIT;
}

/* A constant of one value is that value wherever it is read; a shape operand has a few. */
static bool add_constant(builder *b, const graph_node *n)
{
    const graph_value *v = n->outputs[0];
    const tensor_data *t = graph_constant(v);
    if (!check_type(b, v, n->loc))
        return false;
    if (b->region && te_is_data(v))
        return add_input(b, v, n->loc);
    if (!t || te_is_data(v))
        return diag_error(&b->c->diags, DIAG_INTERNAL, n->loc, "constant %%%s inside a kernel must be an operand of it",
                          v->name);
    tensor_data *own = arena_new(&b->c->mem, tensor_data);
    *own = *t;
    te_tensor *x = te_compute(b->g, "constant", t->dt, t->rank, te_shape(b->g, &v->type), literal_body, own);
    x->node->inline_hint = true;
    x->node->tag = t->kind == TENSOR_SPLAT || t->count <= 1 ? TE_LITERAL : NULL;
    bind(b, v, x);
    return true;
}

static void note_rigid(builder *b, const graph_node *n, uint32_t first)
{
    b->several |= b->region && b->rigid && b->rigid->op->cls >= CLASS_REDUCTION && n->op->cls >= CLASS_REDUCTION;
    if (b->rigid && n->op->cls <= b->rigid->op->cls)
        return;
    b->rigid = n;
    b->first = first;
    b->end = b->g->nodes.len;
}

/* What subtraction makes of an extent may lie below 0, and then products of it hold for nothing. */
static void check_extents(builder *b, const graph_node *n)
{
    compiler *c = b->c;
    for (uint32_t i = 0; i < n->n_outputs; i++) {
        shape s = n->outputs[i]->type.shape;
        for (int32_t a = 0; a < s.rank; a++)
            if (!dim_never_above(c, dim_const(c, 0), s.dims[a]))
                te_check(b->g, arena_printf(&c->mem, "%s_extent", n->op->name), 0, NULL,
                         tir_binary(c, TIR_GE, te_dim(b->g, s.dims[a]), te_i64(b->g, 0)), PACKAGE_STATUS_SHAPE,
                         arena_printf(&c->mem, "%s: an extent of the result is below 0", n->op->name));
    }
}

/* What a relation asks of extents, which only a run can tell. */
static tir_expr_ref demanded(te_graph *g, const extent_demand *d)
{
    compiler *c = g->c;
    tir_expr_ref a = te_dim(g, d->a), b = te_dim(g, d->b);
    switch (d->rule) {
    case EXTENTS_EQUAL: break;
    case EXTENTS_WITHIN: return tir_binary(c, TIR_LE, a, b);
    case EXTENTS_STRETCHED:
        return tir_binary(c, TIR_OR, tir_binary(c, TIR_EQ, a, te_i64(g, 1)), tir_binary(c, TIR_EQ, a, b));
    case EXTENTS_MULTIPLE: return tir_binary(c, TIR_EQ, tir_floormod(c, a, b), te_i64(g, 0));
    }
    return tir_binary(c, TIR_EQ, a, b);
}

/* Whether an extent that the operands' values decide is in it. */
static bool is_of_results(const graph_node *n, const extent_demand *d)
{
    const char *own[TYPE_MAX_RANK];
    const uint32_t count = graph_own_symbols(n, TYPE_MAX_RANK, own);
    bool found = false;
    for (uint32_t i = 0; i < count; i++)
        found |= dim_mentions(d->a, own[i]) || dim_mentions(d->b, own[i]);
    return found;
}

bool te_check_demands(te_graph *g, const graph_node *n, bool results)
{
    compiler *c = g->c;
    extent_demands asked = {0};
    if (!graph_demands(c, n, &asked))
        return false;
    for (uint32_t i = 0; i < asked.all.len; i++) {
        const extent_demand *d = &asked.all.data[i];
        if (!results && is_of_results(n, d))
            continue;
        te_check(g, arena_printf(&c->mem, "%s_agrees", n->op->name), 0, NULL, demanded(g, d),
                 PACKAGE_STATUS_SHAPE,
                 arena_printf(&c->mem, d->rule == EXTENTS_STRETCHED ? "%s: the shapes of %s do not broadcast"
                                                                    : "%s: %s have extents that do not agree",
                              n->op->name, d->what));
    }
    return true;
}

static bool add_node(builder *b, const graph_node *n);

/* The nodes of the function that n calls, in its place: a part of a region. */
static bool add_call(builder *b, const graph_node *n)
{
    const graph_func *f = graph_attr(n, "callee")->u.func;
    for (uint32_t i = 0; i < f->params.len; i++)
        bind(b, f->params.data[i], lookup(b, n->inputs[i]));
    for (uint32_t i = 0; i < f->nodes.len; i++)
        if (!add_node(b, f->nodes.data[i]))
            return false;
    for (uint32_t i = 0; i < n->n_outputs; i++)
        bind(b, n->outputs[i], lookup(b, f->results.data[i]));
    return true;
}

static bool add_node(builder *b, const graph_node *n)
{
    if (strcmp(n->op->name, "constant") == 0)
        return add_constant(b, n);
    if (strcmp(n->op->name, "call") == 0)
        return add_call(b, n);
    if (!n->op->te || !n->op->te->compute)
        return diag_error(&b->c->diags, DIAG_UNSUPPORTED, n->loc, "operator %s cannot be compiled yet", n->op->name);
    te_tensor **in = arena_array(&b->c->mem, te_tensor *, n->n_inputs),
              **out = arena_array(&b->c->mem, te_tensor *, n->n_outputs);
    for (uint32_t i = 0; i < n->n_inputs; i++)
        in[i] = lookup(b, n->inputs[i]);
    for (uint32_t i = 0; i < n->n_outputs; i++)
        if (!check_type(b, n->outputs[i], n->loc))
            return false;
    uint32_t first = b->g->nodes.len;
    check_extents(b, n);
    if (!te_check_demands(b->g, n, true) || !n->op->te->compute(b->g, n, in, out))
        return false;
    for (uint32_t i = 0; i < n->n_outputs; i++)
        bind(b, n->outputs[i], out[i]);
    note_rigid(b, n, first);
    return true;
}

/* --- inlining --- */

#define CHEAP 6u /* operations that may be repeated rather than stored */
#define MOST_REPEATED                                                                              \
    100u /* the same with all that is inlined in them: y = f(x) + x, again and again, would double \
          */

static bool is_output(const te_graph *g, const te_node *n)
{
    for (uint32_t i = g->n_inputs; i < g->params.len; i++)
        if (g->params.data[i]->node == n)
            return true;
    return false;
}

/* A compute that may stand where it is read; wanted: whatever its operator says. */
static bool may_be_inlined(const te_graph *g, const te_node *n, bool wanted, bool tables)
{
    if (n->kind != TE_COMPUTE || n->reducer || (!n->inline_hint && !wanted) || is_output(g, n))
        return false;
    return !n->tag || (strcmp(n->tag, TE_UNPACKED) != 0 && (!tables || strcmp(n->tag, TE_TABLE) != 0));
}

/* Without a target only literals, which must never be stored: a splat of 500 MB is one number. The first `weights`
 * nodes belong to weights that a convolution or product reads quantised: they are dequantised at each read, as storing
 * them would take what their type saves. */
static void inline_producers(te_sched *s, const struct target *t, uint32_t weights)
{
    const bool plain = !t, tables = t && t->vector_bytes >= 8;
    te_graph *g = s->g;
    tir_map inlined;
    tir_map_init(&inlined, &g->c->mem);
    for (uint32_t i = 0; i < g->nodes.len; i++) {
        const te_node *n = g->nodes.data[i];
        if (!may_be_inlined(g, n, i < weights, tables))
            continue;
        uint32_t uses = plain ? 100 : te_uses_of(g, n);
        const te_operations u = te_count_operations(g, n, &inlined);
        if (!te_is_literal(n) && i >= weights && uses > 1 && (uses >= 100 || u.own > CHEAP || u.whole > MOST_REPEATED))
            continue;
        te_sched_compute_inline(s, n->name);
        te_note_inlined(&inlined, n, u);
    }
}

/* --- lowering --- */

static te_node *anchor_of(const builder *b)
{
    te_node *found = NULL;
    if (!b->rigid || b->rigid->op->cls < CLASS_REDUCTION)
        return NULL;
    for (uint32_t i = b->first; i < b->end; i++) {
        te_node *n = b->g->nodes.data[i];
        if (n->reducer && (!found || !found->tag || (n->tag && strcmp(n->tag, b->rigid->op->name) == 0)))
            found = n;
    }
    return found;
}

/* --- the form that the rules of a family ask for --- */

static void merge_conv(builder *b, const struct target *t, te_node *anchor)
{
    b->g = te_merge_conv(b->g, t, b->rigid, anchor);
}

static void split_windows(builder *b, const struct target *t, te_node *anchor)
{
    (void)t;
    b->end += te_window_columns(b->g, anchor);
    te_drop_unread(b->g, 2, (uint32_t *const[]){&b->first, &b->end});
}

static void merge_reduced(builder *b, const struct target *t, te_node *anchor)
{
    (void)t;
    b->g = te_merge_reduced(b->g, anchor);
    te_whole_rows(b->g, anchor_of(b));
}

static const struct {
    te_family family;
    bool lanes; /* only for processors with vectors */
    void (*make)(builder *b, const struct target *t, te_node *anchor);
} forms[] = {{TE_CONV, false, merge_conv},
             {TE_POOL, true, split_windows},
             {TE_REDUCTION, true, merge_reduced},
             {TE_ROWS, true, merge_reduced}};

/* What a target's schedule is for, records included, is the computation in the form that its rule asks for. */
static void shape_graph(builder *b, const struct target *t)
{
    if (!t || t->line_axis != 0 || b->several)
        return;
    const bool lanes = t->vector_bytes / 4 > 1;
    te_node *anchor = b->rigid ? anchor_of(b) : NULL;
    if (!anchor && (lanes || t->small) && (!b->rigid || b->rigid->op->cls < CLASS_REDUCTION))
        b->g = te_merge_elements(b->g, t);
    if (!anchor)
        return;
    if (anchor->n_outputs == 2) {
        if (!lanes || !te_search_in_parts(b->g, b->rigid, anchor))
            te_search_in_order(b->g, b->rigid, anchor);
        return;
    }
    const te_family family = te_family_of(b->rigid->op->te->schedule);
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++)
        if (forms[i].family == family && (lanes || !forms[i].lanes))
            forms[i].make(b, t, anchor);
}

/* t NULL: the empty schedule. */
/* The rules' entry for what the kernel computes; NULL: none, or several operators that need one. */
static te_schedule_hook hook_of(const builder *b, const struct target *t)
{
    te_schedule_hook hook = b->rigid && t && !b->several ? b->rigid->op->te->schedule : NULL;
    const bool lines = b->rigid && t && t->line_axis > 0 && !te_keeps_lines(te_family_of(hook));
    return lines ? te_schedule_lines : hook;
}

static bool default_schedule(builder *b, const struct target *t, te_sched **out)
{
    shape_graph(b, t);
    if (t && t->line_axis == 0 && b->records && (!te_records_find(b->records, b->g, t, out) || *out))
        return *out != NULL;
    te_sched *s = te_sched_new(b->g);
    const te_schedule_hook hook = hook_of(b, t);
    bool reads_weights = t && b->rigid && b->rigid->op->cls == CLASS_OUT_FUSABLE && !b->region;
    inline_producers(s, t, reads_weights ? b->first : 0);
    if (hook && !hook(s, t, b->rigid, anchor_of(b), vec_last(&b->g->params)->node))
        return false;
    if (reads_weights)
        te_inline_unpacked(s);
    *out = s;
    return true;
}

static bool finish(builder *b, const char *name, const struct target *t, src_loc loc, tir_func **out)
{
    te_sched *s = NULL;
    if (!default_schedule(b, t, &s) || !te_lower(b->g, s, name, out))
        return false;
    (*out)->loc = loc;
    (*out)->target = t;
    return true;
}

static bool set_results(builder *b, uint32_t n, graph_value *const *values)
{
    te_tensor **outs = arena_array(&b->c->mem, te_tensor *, n);
    for (uint32_t i = 0; i < n; i++)
        outs[i] = lookup(b, values[i]);
    te_set_outputs(b->g, n, outs);
    te_drop_unread(b->g, 2, (uint32_t *const[]){&b->first, &b->end});
    return true;
}

static bool build_func(builder *b, const graph_func *f)
{
    b->region = graph_func_text(f, "compiler") != NULL;
    b->g->products_apart = graph_func_attr(f, "apart") != NULL;
    for (uint32_t i = 0; i < f->params.len; i++)
        if (!add_input(b, f->params.data[i], src_loc_none()))
            return false;
    for (uint32_t i = 0; i < f->nodes.len; i++)
        if (!add_node(b, f->nodes.data[i]))
            return false;
    return set_results(b, f->results.len, f->results.data);
}

static bool build_node(builder *b, const graph_node *n)
{
    for (uint32_t i = 0; i < n->n_inputs; i++)
        if (n->inputs[i] && !add_input(b, n->inputs[i], n->loc))
            return false;
    return add_node(b, n) && set_results(b, n->n_outputs, n->outputs);
}

bool te_lower_extents(compiler *c, const graph_node *n, const char *name, tir_func **out)
{
    builder b = new_builder(c);
    te_tensor *cells[TYPE_MAX_RANK] = {NULL}, **in = arena_array(&c->mem, te_tensor *, n->n_inputs);
    const char *symbols[TYPE_MAX_RANK];
    uint32_t count = graph_own_symbols(n, TYPE_MAX_RANK, symbols);
    *out = NULL;
    for (uint32_t i = 0; i < n->n_inputs; i++) {
        if (n->inputs[i] && !add_input(&b, n->inputs[i], n->loc))
            return false;
        in[i] = lookup(&b, n->inputs[i]);
    }
    if (!te_check_demands(b.g, n, false) || !n->op->te->extents(b.g, n, in, cells))
        return false;
    te_set_outputs(b.g, count, cells);
    return finish(&b, name, NULL, n->loc, out);
}

static src_loc func_loc(const graph_func *f)
{
    return f->nodes.len ? f->nodes.data[0]->loc : src_loc_none();
}

bool te_lower_func(compiler *c, const graph_func *f, const char *name, const struct target *t, te_records *records,
                   tir_func **out)
{
    builder b = new_builder(c);
    b.records = records;
    *out = NULL;
    return build_func(&b, f) && finish(&b, name, t, func_loc(f), out);
}

bool te_lower_node(compiler *c, const graph_node *n, const char *name, const struct target *t, te_records *records,
                   tir_func **out)
{
    builder b = new_builder(c);
    b.records = records;
    *out = NULL;
    return build_node(&b, n) && finish(&b, name, t, n->loc, out);
}

/* --- copies that compare --- */

static tir_expr_ref copied(te_graph *g, void *ctx, tir_expr_ref const *idx)
{
    return te_read(g, ctx, idx);
}

/* `text` says what the extent is of. */
static void check_extent(te_graph *g, tir_expr_ref have, const char *text, dim want, bool grows)
{
    compiler *c = g->c;
    int64_t most = dim_bound(want);
    if (grows && most < 0) /* memory is made for it when it is known */
        return;
    writer w;
    writer_init(&w, &c->mem);
    w_fmt(&w, "%s is ", text);
    if (!grows)
        w_str(&w, "not ");
    else
        w_fmt(&w, "above %lld, the bound of ", (long long)most);
    dim_print(&w, want);
    tir_expr_ref holds = grows ? tir_binary(c, TIR_LE, have, te_i64(g, most))
                               : tir_binary(c, TIR_EQ, have, te_dim(g, want));
    te_check(g, arena_printf(&c->mem, "extent_%u", g->nodes.len), 0, NULL, holds, PACKAGE_STATUS_SHAPE, w.data);
}

static tir_expr_ref nothing(te_graph *g, void *ctx, tir_expr_ref const *idx)
{
    (void)idx;
    return tir_const(g->c, ((const te_tensor *)ctx)->dt, 0);
}

/* to: what there is room for where x never has it, so that a check ends the kernel; else NULL. */
static bool finish_copy(builder *b, te_tensor *x, const type *to, const char *name, src_loc loc, tir_func **out)
{
    tir_expr_ref const *dims = to ? te_shape(b->g, to) : x->shape;
    te_tensor *y = te_compute(b->g, "copy", x->dt, x->rank, dims, to ? nothing : copied, x);
    te_set_outputs(b->g, 1, &y);
    return finish(b, name, NULL, loc, out);
}

bool te_lower_fitted(compiler *c, const graph_value *v, const type *to, uint32_t grows, const char *name, src_loc loc,
                     tir_func **out)
{
    builder b = new_builder(c);
    *out = NULL;
    if (!add_input(&b, v, loc))
        return false;
    bool never = false;
    for (int32_t i = 0; i < v->type.shape.rank; i++) {
        dim have = v->type.shape.dims[i], want = to->shape.dims[i];
        int64_t n = 0;
        never |= dim_is_const(have, &n) && dim_bound(want) >= 0 && n > dim_bound(want);
        writer w;
        writer_init(&w, &c->mem);
        w_fmt(&w, "%s: extent ", v->name);
        dim_print(&w, have);
        if (!dim_equal(have, want))
            check_extent(b.g, te_dim(b.g, have), w.data, want, grows >> i & 1);
    }
    return finish_copy(&b, lookup(&b, v), never ? to : NULL, name, loc, out);
}

bool te_lower_told(compiler *c, const graph_value *v, dim extent, bool grows, const char *name, src_loc loc,
                   tir_func **out)
{
    builder b = new_builder(c);
    *out = NULL;
    if (!add_input(&b, v, loc))
        return false;
    tir_expr_ref first[TYPE_MAX_RANK];
    for (int32_t i = 0; i < v->type.shape.rank; i++)
        first[i] = te_i64(b.g, 0);
    check_extent(b.g, te_read(b.g, lookup(&b, v), first), v->name, extent, grows);
    return finish_copy(&b, lookup(&b, v), NULL, name, loc, out);
}

bool te_schedule_graph(compiler *c, const graph_func *f, const graph_node *n, const struct target *t,
                       te_records *records, te_sched **out)
{
    builder b = new_builder(c);
    b.records = records;
    return (f ? build_func(&b, f) : build_node(&b, n)) && default_schedule(&b, t, out);
}

bool te_print_scheduled(compiler *c, const graph_func *f, const graph_node *n, const struct target *t,
                        te_records *records, writer *w)
{
    te_sched *s = NULL;
    tir_func *loops = NULL;
    if (!te_schedule_graph(c, f, n, t, records, &s) || !te_lower(s->g, s, "printed", &loops))
        return false;
    te_print(w, s->g);
    w_fmt(w, "--- schedule for %s\n", t->name);
    te_print_tried(w, s);
    w_str(w, loops->schedule ? loops->schedule : "");
    return true;
}
