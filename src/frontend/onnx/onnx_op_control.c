/* SPDX-License-Identifier: Apache-2.0 */
/* Importers of If and Loop. A condition that constants decide picks its branch at once. Else branches and bodies become
 * functions of the module, closed: what they see of the graph around them comes in as explicit operands, the same list
 * for both branches of an If. A body is read again, with open extents, where a carried value comes out of it with
 * another shape than it went in. */
#include "frontend/onnx/onnx_import.h"

#include <string.h>

static void capture(void *ctx, const char *name)
{
    onnx_captures *k = ctx;
    arena *a = &k->n->c->mem;
    if (onnx_map_get(&k->seen, name))
        return;
    onnx_map_set(a, &k->seen, name, "");
    graph_value *v = onnx_lookup(k->n->env, name);
    if (!v || v == &k->n->im->absent) {
        onnx_fail(k->n, DIAG_FORMAT, "the body uses '%s', which nothing makes", name);
        return;
    }
    k->n->failed |= v == &k->n->im->poison; /* told where it failed */
    if (v->type.kind == TYPE_SEQUENCE)
        onnx_fail(k->n, DIAG_UNSUPPORTED, "the body uses '%s', a sequence, which is not supported yet", name);
    vec_push(a, &k->names, name);
    vec_push(a, &k->values, v);
}

void onnx_capture(onnx_captures *k, const pb_graph *g)
{
    onnx_visit_captures(k->n->im, g, capture, k);
}

void onnx_region_open(onnx_region *r, onnx_node *n, const pb_graph *g, const char *tail)
{
    const char *stem = n->n_out && n->out_names[0] ? n->out_names[0] : "body";
    *r = (onnx_region){.n = n, .g = g, .scope = {.parent = &r->outer}};
    r->f = graph_func_new(n->im->module, intern(n->c->names, arena_printf(&n->c->mem, "%s.%s", stem, tail)));
    r->env = (onnx_env){.im = n->im, .f = r->f, .scope = &r->outer, .frame = n->env->frame};
}

graph_value *onnx_region_value(onnx_region *r, const char *name, graph_value *v)
{
    const tensor_data *t = graph_constant(v);
    graph_value *inside = t ? graph_add_constant(r->f, t, name, r->n->loc) : graph_add_param(r->f, name, v->type);
    if (!t)
        vec_push(&r->n->c->mem, &r->operands, v);
    onnx_set_small(r->n->im, inside, onnx_small_of(r->n->im, v));
    return inside;
}

graph_value *onnx_region_emit(onnx_region *r, const char *op, uint32_t n_in, graph_value *const *in, uint32_t n_attrs,
                              const attr *attrs)
{
    graph_value *v = NULL;
    bool all = !r->n->failed;
    for (uint32_t i = 0; i < n_in; i++)
        all &= in[i] != NULL;
    if (all)
        v = graph_emit(r->f, NULL, op, n_in, in, n_attrs, attrs, r->n->loc);
    r->n->failed |= !v;
    return v ? v : onnx_nothing(r->n);
}

void onnx_region_input(onnx_region *r, uint32_t i, graph_value *v)
{
    const char *name = onnx_name(r->n->im, r->g->input.data[i]->name);
    type t = {0};
    if (v->type.kind == TYPE_TENSOR && v->type.shape.rank == 0 && r->g->input.data[i]->type &&
        onnx_type_read(r->n->im, r->g->input.data[i]->type, name, &t) && t.kind == TYPE_TENSOR && t.shape.rank == 1) {
        const int64_t one = 1; /* some exporters declare one number as a vector */
        graph_value *in[2] = {v, graph_add_constant(r->f, tensor_from_i64s(r->n->c, 1, &one), "", r->n->loc)};
        v = onnx_region_emit(r, "reshape", 2, in, 0, NULL);
    }
    r->env.scope = &r->scope;
    onnx_define(&r->env, name, v);
    r->env.scope = &r->outer;
}

void onnx_region_captures(onnx_region *r, const onnx_captures *k)
{
    for (uint32_t i = 0; i < k->names.len; i++)
        onnx_define(&r->env, k->names.data[i], onnx_region_value(r, k->names.data[i], k->values.data[i]));
}

bool onnx_region_import(onnx_region *r)
{
    onnx_node *n = r->n;
    r->env.scope = &r->scope;
    bool ok = onnx_import_names(&r->env, r->g) && onnx_import_nodes(&r->env, r->g->node.len, r->g->node.data);
    for (uint32_t i = 0; ok && i < r->g->output.len; i++) {
        const char *name = onnx_name(n->im, r->g->output.data[i]->name);
        graph_value *v = onnx_lookup(&r->env, name);
        ok = v && v != &n->im->poison && v != &n->im->absent;
        if (ok && v->type.kind == TYPE_SEQUENCE)
            ok = onnx_fail(n, DIAG_UNSUPPORTED, "the body's result '%s' is a sequence, which is not supported yet",
                           name);
        else if (ok)
            graph_add_result(r->f, v);
        else if (!v)
            onnx_fail(n, DIAG_FORMAT, "nothing in the body makes its result '%s'", name);
    }
    n->failed |= !ok;
    return ok;
}

/* --- If --- */

#define MOST_FOLDED   200u /* nodes on the way to a condition */
#define MOST_ELEMENTS (1 << 22)

static graph_value *detached(compiler *c, const tensor_data *t)
{
    attr value = attr_tensor(c, "value", t);
    graph_value *v = arena_new(&c->mem, graph_value);
    graph_node *n = arena_new(&c->mem, graph_node);
    *n = (graph_node){.op = graph_find_op(c, "constant"), .n_outputs = 1, .n_attrs = 1, .loc = src_loc_none()};
    n->attrs = arena_copy(&c->mem, &value, sizeof value, _Alignof(attr));
    n->outputs = arena_copy(&c->mem, &v, sizeof v, _Alignof(graph_value *));
    *v = (graph_value){.name = intern(c->names, "k"), .def = n, .type = tensor_type(c, t)};
    return v;
}

/* What v is when all that it is made of is constant; NULL: it is not, or too much of it. */
static const tensor_data *folded(compiler *c, const graph_value *v, uint32_t *left)
{
    const tensor_data *t = graph_constant(v), *few[8] = {NULL};
    const graph_node *n = v->def;
    if (t || !n || !c->evaluate || *left == 0)
        return t;
    --*left;
    if (n->op->effect != EFFECT_PURE || (n->op->flags & OPF_CALL) || n->n_outputs > 8 ||
        shape_count(v->type.shape) < 0 || shape_count(v->type.shape) > MOST_ELEMENTS)
        return NULL;
    graph_node one = *n;
    one.inputs = arena_array(&c->mem, graph_value *, n->n_inputs);
    for (uint32_t i = 0; i < n->n_inputs; i++) {
        const tensor_data *in = n->inputs[i] ? folded(c, n->inputs[i], left) : NULL;
        if (n->inputs[i] && !in)
            return NULL;
        one.inputs[i] = in ? detached(c, in) : NULL;
    }
    return c->evaluate(c, &one, few) ? few[v->index] : NULL;
}

/* The importer leaves arithmetic on weights to the passes; what decides a branch it must know before it looks at the
 * other one, which need not even be sound. */
static bool is_known(onnx_node *n, const graph_value *condition, double *out)
{
    uint32_t left = MOST_FOLDED;
    const tensor_data *t = folded(n->c, condition, &left);
    if (!t || t->count != 1)
        return false;
    *out = tensor_get_f64(t, 0);
    return true;
}

/* The input that alone decides v; NULL: none, several, or one of more than a few numbers. */
static const graph_value *sole_input(const graph_value *v, uint32_t *left)
{
    const graph_node *n = v->def;
    const graph_value *found = NULL;
    if (!n || *left == 0)
        return !n && shape_count(v->type.shape) == 1 ? v : NULL;
    --*left;
    for (uint32_t i = 0; i < n->n_inputs; i++) {
        if (!n->inputs[i] || graph_constant(n->inputs[i]))
            continue;
        const graph_value *one = sole_input(n->inputs[i], left);
        if (!one || (found && found != one))
            return NULL;
        found = one;
    }
    return found;
}

/* What went wrong in a branch need not matter: a model for two rates has a branch for each, and one fits the data. */
static void hint_bind(onnx_node *n, const graph_value *condition, uint32_t errors)
{
    diags *d = &n->c->diags;
    uint32_t left = MOST_FOLDED;
    const graph_value *v = sole_input(condition, &left);
    const char *before = d->last && d->last->hint ? arena_printf(&n->c->mem, "%s; ", d->last->hint) : "";
    if (v && n->env->scope->top && d->errors > errors)
        diag_hint(d, "%sinput '%s' decides whether this branch is taken: --bind %s=NUMBER removes the other one",
                  before, v->name, v->name);
}

static bool import_regions(onnx_node *n, graph_value *cond, const pb_graph *yes, const pb_graph *no)
{
    onnx_captures k = {.n = n};
    onnx_region a, b;
    VEC(graph_value *) in = {0};
    onnx_capture(&k, yes);
    onnx_capture(&k, no);
    if (n->failed)
        return false;
    onnx_region_open(&a, n, yes, "then");
    onnx_region_captures(&a, &k);
    onnx_region_open(&b, n, no, "else");
    onnx_region_captures(&b, &k);
    uint32_t errors = n->c->diags.errors;
    bool good = onnx_region_import(&a);
    good = onnx_region_import(&b) && good;
    if (!good) {
        hint_bind(n, cond, errors);
        return false;
    }
    vec_push(&n->c->mem, &in, onnx_rank(cond) ? onnx_reshape_ints(n, cond, 0, NULL) : cond);
    for (uint32_t i = 0; i < a.operands.len; i++)
        vec_push(&n->c->mem, &in, a.operands.data[i]);
    attr at[2] = {attr_func(n->c, "then_branch", a.f), attr_func(n->c, "else_branch", b.f)};
    return onnx_results(n, (onnx_args){"if", in.len, in.data, 2, at}, n->n_out);
}

bool onnx_op_if(onnx_node *n)
{
    graph_value *cond = onnx_in(n, 0);
    const pb_graph *yes = onnx_attr_graph(n, "then_branch"), *no = onnx_attr_graph(n, "else_branch");
    double c = 0;
    if (n->failed)
        return false;
    if (onnx_dtype(cond) != DT_BOOL || shape_count(cond->type.shape) != 1)
        return onnx_fail(n, DIAG_TYPE, "the condition must be one bool");
    if (yes->output.len != no->output.len || yes->output.len != n->n_out)
        return onnx_fail(n, DIAG_FORMAT, "the branches have %u and %u results, the node %u", yes->output.len,
                         no->output.len, n->n_out);
    return is_known(n, cond, &c) ? onnx_inline_branch(n, c != 0 ? yes : no) : import_regions(n, cond, yes, no);
}

/* --- Loop --- */

graph_node *onnx_emit_loop(onnx_node *n, graph_func *f, const onnx_loop *l, const onnx_region *r)
{
    VEC(graph_value *) in = {0};
    arena *a = &n->c->mem;
    uint32_t n_out = r->f->results.len - 1;
    const char **names = arena_array(a, const char *, n_out + 1u);
    if (n->failed)
        return NULL;
    vec_push(a, &in, l->trips);
    vec_push(a, &in, l->condition);
    for (uint32_t i = 0; i < l->n_carried; i++)
        vec_push(a, &in, l->carried[i]);
    for (uint32_t i = 0; i < r->operands.len; i++)
        vec_push(a, &in, r->operands.data[i]);
    for (uint32_t i = 0; i < n_out; i++)
        names[i] = i < l->n_names && l->names[i] ? l->names[i] : "";
    attr at[2] = {attr_func(n->c, "body", r->f), attr_int(n->c, "carried", l->n_carried)};
    graph_node *g = graph_add_node(f, graph_find_op(n->c, "loop"), in.len, in.data, 2, at, n_out, names, n->loc);
    for (uint32_t i = 0; i < n_out; i++)
        if (l->declared && i < n->n_out && l->names[i]) {
            onnx_set_declared(n, i, g->outputs[i]);
            if (g->outputs[i]->declared.dt == DT_NONE) /* a hint: a shape alone */
                g->outputs[i]->declared.dt = r->f->results.data[1 + i]->type.dt;
        }
    n->failed |= !graph_infer_node(n->c, g);
    return n->failed ? NULL : g;
}

/* Result i of the body, whose shape is known at run time only, must have the one of `want`: the program compares. */
static void settle_result(onnx_region *r, uint32_t i, const type *want)
{
    compiler *c = r->n->c;
    graph_value *v = r->f->results.data[i];
    int64_t dims[TYPE_MAX_RANK], rank = want->shape.rank;
    if (want->kind != TYPE_TENSOR || v->type.kind != TYPE_TENSOR || v->type.dt != want->dt || rank <= 0 ||
        v->type.shape.rank != rank || shape_is_static(v->type.shape) || !shape_get(want->shape, dims))
        return;
    const int64_t rows[2] = {1, rank};
    attr a = attr_tensor(c, "rows",
                         tensor_dense(c, DT_I64, 2, rows,
                                      arena_copy(&c->mem, dims, (size_t)rank * sizeof *dims, _Alignof(int64_t))));
    graph_value *in[2] = {v, onnx_region_emit(r, "shape_of", 1, &v, 0, NULL)};
    in[0] = onnx_region_emit(r, "expect", 2, in, 1, &a);
    in[1] = graph_add_constant(r->f, tensor_from_i64s(c, (uint32_t)rank, dims), "", r->n->loc);
    v = onnx_region_emit(r, "reshape", 2, in, 0, NULL);
    if (!r->n->failed)
        r->f->results.data[i] = v;
}

/* What the body declares of its rows. */
static void settle_rows(onnx_region *r, uint32_t carried)
{
    for (uint32_t i = 1 + carried; i < r->g->output.len; i++) {
        type t = {0};
        const char *name = onnx_name(r->n->im, r->g->output.data[i]->name);
        if (r->g->output.data[i]->type && onnx_type_read(r->n->im, r->g->output.data[i]->type, name, &t))
            settle_result(r, i, &t);
    }
}

/* --- carried values whose shape changes --- */

/* An extent of a carried value that is another one behind a round. */
typedef struct changing {
    uint32_t value, axis;
    dim d;           /* what it is in the body: a symbol, or where it is compared what it begins with */
    dim first, next; /* before the loop, and behind a round when it was seen first */
    enum { CHANGES_OPEN, CHANGES_WITHIN, CHANGES_UNBOUNDED, CHANGES_NEVER } kind;
} changing;

/* Kept for each body: where a loop around it is read again, what changes in it is known from the start, else nests of
 * loops would be read more often with each level. */
typedef struct carrying {
    onnx_node *n;
    const pb_graph *g;
    uint32_t carried;
    dim trips; /* NULL: not known */
    VEC(changing) list;
} carrying;

static changing *find_changing(const carrying *k, uint32_t value, uint32_t axis)
{
    for (uint32_t i = 0; i < k->list.len; i++)
        if (k->list.data[i].value == value && k->list.data[i].axis == axis)
            return &k->list.data[i];
    return NULL;
}

static type type_carried(const carrying *k, uint32_t value)
{
    type t = k->n->in[2 + value]->type;
    dim d[TYPE_MAX_RANK];
    for (int32_t i = 0; i < t.shape.rank; i++) {
        const changing *x = find_changing(k, value, (uint32_t)i);
        d[i] = x ? x->d : t.shape.dims[i];
    }
    t.shape = shape_make(k->n->c, (uint32_t)t.shape.rank, d);
    return t;
}

static const char *name_carried(const carrying *k, uint32_t value)
{
    return onnx_name(k->n->im, k->g->input.data[2 + value]->name);
}

static dim fresh_extent(const carrying *k, uint32_t value, uint32_t axis)
{
    arena *a = &k->n->c->mem;
    return dim_fresh(k->n->c, onnx_symbol(k->n->im, arena_printf(a, "%s_%u", name_carried(k, value), axis)), -1);
}

/* The extent of that result of the loop that the model declares; NULL: none. */
static dim declared_last(const carrying *k, uint32_t value, uint32_t axis)
{
    graph_value *v = arena_new(&k->n->c->mem, graph_value);
    int32_t rank = k->n->in[2 + value]->type.shape.rank;
    onnx_set_declared(k->n, value, v);
    return v->declared.kind == TYPE_TENSOR && v->declared.shape.rank == rank ? v->declared.shape.dims[axis] : NULL;
}

/* The node that the body is read for now. What is known to change begins with the extents of this one. */
static void open_carrying(carrying *k, onnx_node *n, uint32_t carried)
{
    *k = (carrying){n, k->g, carried, graph_most_rounds(n->c, onnx_optional(n, 0)), k->list};
    changing *was = arena_copy(&n->c->mem, k->list.data, k->list.len * sizeof *was, _Alignof(changing));
    for (uint32_t i = 0; i < k->list.len; i++) {
        changing *x = &k->list.data[i];
        int64_t v = 0;
        if (x->value >= carried || x->axis >= onnx_rank(n->in[2 + x->value])) {
            k->list.len = 0; /* a function that is called with other ranks */
            return;
        }
        x->first = onnx_dim(n, n->in[2 + x->value], x->axis);
        if (x->kind == CHANGES_NEVER && !dim_is_const(x->first, &v))
            x->kind = CHANGES_OPEN;
        x->d = x->kind == CHANGES_NEVER ? x->first : NULL;
        for (uint32_t j = 0; j < i && !x->d; j++)
            if (was[j].d == was[i].d && k->list.data[j].kind == x->kind && dim_equal(k->list.data[j].first, x->first))
                x->d = k->list.data[j].d;
        if (!x->d)
            x->d = fresh_extent(k, x->value, x->axis);
    }
}

/* Values that grow in step, as keys and values of a cache do, share their extent: their shapes must agree inside. */
static bool add_changing(carrying *k, uint32_t value, uint32_t axis, dim first, dim next)
{
    changing x = {.value = value, .axis = axis, .first = first, .next = next};
    for (uint32_t i = 0; i < k->list.len && !x.d; i++)
        if (dim_equal(k->list.data[i].first, first) && dim_equal(k->list.data[i].next, next)) {
            x.d = k->list.data[i].d;
            x.kind = k->list.data[i].kind;
        }
    if (!x.d)
        x.d = fresh_extent(k, value, axis);
    vec_push(&k->n->c->mem, &k->list, x);
    return true;
}

static dim next_extent(const onnx_region *r, const changing *x)
{
    return r->f->results.data[1 + x->value]->type.shape.dims[x->axis];
}

/* Values with one symbol that come out of the round with several extents are not in step. */
static bool part(carrying *k, const onnx_region *r)
{
    for (uint32_t i = 0; i < k->list.len; i++) {
        const changing *a = &k->list.data[i];
        dim own = NULL;
        for (uint32_t j = i + 1; j < k->list.len && dim_symbol_name(a->d); j++) {
            changing *b = &k->list.data[j];
            if (b->d != a->d || dim_equal(next_extent(r, a), next_extent(r, b)))
                continue;
            own = own ? own : fresh_extent(k, b->value, b->axis);
            b->d = own;
            b->kind = CHANGES_OPEN;
        }
        if (own)
            return true;
    }
    return false;
}

/* A symbol that nothing bounds by now: whether it stays below what it begins with is seen with that bound. Where it
 * does not, and where the model does not say that it changes, the program compares. */
static bool bound_changing(carrying *k, const onnx_region *r)
{
    bool again = false;
    for (uint32_t i = 0; i < k->list.len; i++) {
        changing *x = &k->list.data[i];
        dim next = next_extent(r, x), last = declared_last(k, x->value, x->axis);
        int64_t first = dim_bound(x->first), v = 0;
        if (x->d != r->f->params.data[1 + x->value]->type.shape.dims[x->axis] ||
            dim_is_const(dim_sub(k->n->c, next, x->d), &v))
            continue; /* seen to with another one; of a steady growth no bound can be seen */
        if (x->kind == CHANGES_OPEN && graph_carried_bound(k->n->c, x->d, x->first, next, k->trips, last) < 0 &&
            first >= 0)
            x->kind = CHANGES_WITHIN;
        else if (x->kind == CHANGES_WITHIN && (dim_bound(next) < 0 || dim_bound(next) > first))
            x->kind = dim_bound(next) < 0 && dim_is_const(x->first, &v) && (!last || dim_is_const(last, &v))
                          ? CHANGES_NEVER
                          : CHANGES_UNBOUNDED;
        else
            continue;
        dim was = x->d, now = x->kind == CHANGES_NEVER ? x->first : fresh_extent(k, x->value, x->axis);
        for (uint32_t m = 0; m < k->list.len; m++)
            if (k->list.data[m].d == was) {
                k->list.data[m].kind = x->kind;
                k->list.data[m].d = now;
            }
        again = true;
    }
    return again;
}

/* The shape that the body declares for a result, all of it numbers: what only a run knows is compared with it. */
static bool is_declared(const carrying *k, uint32_t value, const type *t)
{
    const pb_value_info *v = k->g->output.data[1 + value];
    type declared = {0};
    return v->type && onnx_type_read(k->n->im, v->type, onnx_name(k->n->im, v->name), &declared) &&
           declared.kind == TYPE_TENSOR && declared.shape.rank >= 0 && shape_is_static(declared.shape) &&
           type_equal(&declared, t);
}

/* What is carried must come out of a round as it went in, or with extents that are open. *again: the body is to be read
 * with other extents. */
static bool check_carried(carrying *k, onnx_region *r, bool *again)
{
    onnx_node *n = k->n;
    for (uint32_t i = 0; i < k->carried; i++) {
        const type *before = &r->f->params.data[1 + i]->type, *after = &r->f->results.data[1 + i]->type;
        bool same_rank = after->kind == TYPE_TENSOR && after->dt == before->dt &&
                         after->shape.rank == before->shape.rank, never = is_declared(k, i, before);
        for (int32_t a = 0; same_rank && a < before->shape.rank; a++) {
            const changing *x = find_changing(k, i, (uint32_t)a);
            never |= x && x->kind == CHANGES_NEVER;
        }
        if (never)
            settle_result(r, 1 + i, before);
        after = &r->f->results.data[1 + i]->type;
        for (int32_t a = 0; same_rank && a < before->shape.rank; a++)
            if (!dim_equal(before->shape.dims[a], after->shape.dims[a]) && !find_changing(k, i, (uint32_t)a))
                *again = add_changing(k, i, (uint32_t)a, before->shape.dims[a], after->shape.dims[a]);
        if (same_rank)
            continue;
        writer w;
        writer_init(&w, &n->c->mem);
        type_print(&w, before);
        w_str(&w, " before the body and ");
        type_print(&w, after);
        return onnx_fail(n, DIAG_UNSUPPORTED, "carried value '%s' is %s after it; only extents may change",
                         name_carried(k, i), w.data);
    }
    *again = *again || part(k, r) || bound_changing(k, r);
    return true;
}

static bool check_loop(onnx_node *n, const pb_graph *g, uint32_t carried)
{
    graph_value *trips = onnx_optional(n, 0), *cond = onnx_optional(n, 1);
    if ((trips && (onnx_dtype(trips) != DT_I64 || shape_count(trips->type.shape) != 1)) ||
        (cond && (onnx_dtype(cond) != DT_BOOL || shape_count(cond->type.shape) != 1)))
        return onnx_fail(n, DIAG_TYPE, "the number of rounds must be one int64, the condition one bool");
    if (g->input.len != 2 + carried || g->output.len < 1 + carried || n->n_out > g->output.len - 1)
        return onnx_fail(n, DIAG_FORMAT, "a body with %u inputs and %u results does not fit a node with %u values and "
                                         "%u results",
                         g->input.len, g->output.len, carried, n->n_out);
    for (uint32_t i = 0; i < carried; i++)
        if (n->in[2 + i]->type.kind != TYPE_TENSOR || n->in[2 + i]->type.shape.rank < 0)
            return onnx_fail(n, DIAG_UNSUPPORTED, "carried value %u is not a tensor of known rank", i);
    return true;
}

/* The condition that the body sees is true whenever it runs. */
static bool import_body(carrying *k, const onnx_captures *captures, onnx_region *r)
{
    onnx_node *n = k->n;
    const pb_graph *g = k->g;
    onnx_region_open(r, n, g, "body");
    onnx_region_input(r, 0, graph_add_param(r->f, onnx_name(n->im, g->input.data[0]->name),
                                            type_static(n->c, DT_I64, 0, NULL)));
    onnx_region_input(r, 1, graph_add_constant(r->f, tensor_scalar_i64(n->c, DT_BOOL, 1),
                                               onnx_name(n->im, g->input.data[1]->name), n->loc));
    for (uint32_t i = 0; i < k->carried; i++)
        onnx_region_input(r, 2 + i, graph_add_param(r->f, name_carried(k, i), type_carried(k, i)));
    onnx_region_captures(r, captures);
    return !n->failed && onnx_region_import(r);
}

/* The body with the types that its carried values have in all rounds. What an earlier reading has said and bounded is
 * taken back. */
static bool import_rounds(carrying *k, const onnx_captures *captures, onnx_region *r)
{
    graph_module *m = k->n->im->module;
    for (bool again = true; again;) {
        diags_mark mark = diags_get_mark(&k->n->c->diags);
        dim_mark bounds = dim_get_mark(k->n->c);
        uint32_t funcs = m->funcs.len;
        again = false;
        for (uint32_t i = 0; i < k->list.len; i++)
            if (k->list.data[i].kind == CHANGES_WITHIN)
                (void)dim_symbol(k->n->c, dim_symbol_name(k->list.data[i].d), dim_bound(k->list.data[i].first));
        if (!import_body(k, captures, r) || !check_carried(k, r, &again))
            return false;
        if (!again)
            break;
        diags_reset(&k->n->c->diags, mark);
        m->funcs.len = funcs;
        dim_reset(k->n->c, &bounds);
    }
    settle_rows(r, k->carried);
    return !k->n->failed;
}

bool onnx_op_loop(onnx_node *n)
{
    const pb_graph *g = onnx_attr_graph(n, "body");
    uint32_t carried = n->n_in > 2 ? n->n_in - 2 : 0;
    onnx_captures captures = {.n = n};
    onnx_region r;
    if (n->failed || !check_loop(n, g, carried))
        return false;
    onnx_capture(&captures, g);
    carrying *k = (carrying *)(uintptr_t)onnx_map_get(&n->im->bodies, (const char *)g);
    if (!k) {
        k = arena_new(&n->c->mem, carrying);
        k->g = g;
        onnx_map_set(&n->c->mem, &n->im->bodies, (const char *)g, k);
    }
    open_carrying(k, n, carried);
    if (n->failed || !import_rounds(k, &captures, &r))
        return false;
    onnx_loop l = {.trips = onnx_optional(n, 0), .condition = onnx_optional(n, 1),
                   .carried = carried ? n->in + 2 : NULL, .n_carried = carried, .names = n->out_names,
                   .n_names = n->n_out, .declared = true};
    graph_node *node = onnx_emit_loop(n, n->f, &l, &r);
    for (uint32_t i = 0; node && i < n->n_out; i++)
        n->out[i] = node->outputs[i];
    return node != NULL;
}
