/* SPDX-License-Identifier: Apache-2.0 */
/* What importers build with: nodes that are typed as they are made, named after the model's own values. Integer nodes
 * whose inputs are constants are computed at once, because the shapes of what follows depend on them. */
#include "base/ptr_map.h"
#include "frontend/onnx/onnx_import.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#define FOLD_MAX_ELEMENTS 1024
#define FOLD_MAX_FLOATS   16 /* scales of Resize and the like; weights are left to the fold pass */

/* --- names --- */

static const char *base_name(const onnx_node *n)
{
    for (uint32_t i = 0; i < n->n_out; i++)
        if (n->out_names[i])
            return n->out_names[i];
    return "unused";
}

/* A name made up for an intermediate value: never one that the main graph uses itself. */
static const char *name_after(onnx_node *n, const char *base, const char *tail)
{
    const char *name = intern(n->c->names, arena_printf(&n->c->mem, "%s.%s", base, tail));
    while (onnx_map_get(&n->im->reserved, name))
        name = intern(n->c->names, arena_printf(&n->c->mem, "%s_", name));
    return name;
}

static const char *made_name(onnx_node *n, const char *tail)
{
    return name_after(n, base_name(n), tail);
}

static const char *result_name(onnx_node *n, uint32_t i)
{
    const char *name = i < n->n_out ? n->out_names[i] : NULL;
    return name ? name : made_name(n, "unused");
}

static const char *op_tail(const char *op)
{
    const char *dot = strrchr(op, '.');
    return dot ? dot + 1 : op;
}

/* --- declared types --- */

static bool is_function(const graph_module *m, const graph_func *f)
{
    bool found = false;
    for (uint32_t i = 0; i < m->funcs.len; i++)
        found |= m->funcs.data[i] == f;
    return found;
}

/* What the caller says that the extent is at most; -1: nothing. */
static int64_t bound_given(onnx_importer *im, const char *symbol)
{
    for (uint32_t i = 0; im->o && i < im->o->n_fixes; i++)
        if (im->o->fixes[i].is_bound && onnx_symbol(im, im->o->fixes[i].name) == symbol)
            return im->o->fixes[i].dims[0];
    return -1;
}

/* A branch or a body has extents of its own: that two of them give extents one name, as two copies of a body do, says
 * nothing. The first one keeps the name. */
static dim extent_inside(onnx_node *n, dim d)
{
    onnx_importer *im = n->im;
    const char *symbol = dim_symbol_name(d);
    if (!symbol || n->f == im->module->funcs.data[0] || onnx_map_get(&im->stated, symbol))
        return d;
    for (uint32_t i = 0; i < n->f->params.len; i++)
        if (type_mentions(&n->f->params.data[i]->type, symbol))
            return d;
    const graph_func *first = onnx_map_get(&im->named_in, symbol);
    if (!first || !is_function(im->module, first))
        onnx_map_set(&im->c->mem, &im->named_in, symbol, n->f);
    if (!first || first == n->f || !is_function(im->module, first))
        return d;
    const char *key = intern(im->c->names, arena_printf(&im->c->mem, "%s\n%p", symbol, (const void *)n->f));
    const dim *own = onnx_map_get(&im->named_in, key);
    if (own)
        return *own;
    const dim made = dim_fresh(im->c, symbol, bound_given(im, symbol));
    onnx_map_set(&im->c->mem, &im->named_in, key, arena_copy(&im->c->mem, &made, sizeof made, _Alignof(dim)));
    return made;
}

void onnx_set_declared(onnx_node *n, uint32_t i, graph_value *v)
{
    const char *name = i < n->n_out ? onnx_name(n->im, n->pb->output.data[i]) : NULL;
    const pb_type *pb = name ? onnx_map_get(&n->env->scope->declared, name) : NULL;
    bool hint = name && !pb;
    type t;
    if (hint)
        pb = onnx_map_get(&n->env->scope->hints, name);
    if (!pb || !onnx_type_read(n->im, pb, name, &t) || t.kind != TYPE_TENSOR || t.shape.rank < 0)
        return;
    if (t.dt == DT_STRING && !n->places) /* other values stand for them */
        return;
    if (t.dt == DT_STRING)
        t.dt = DT_I64;
    if (hint) /* the shape alone counts */
        t.dt = DT_NONE;
    dim d[TYPE_MAX_RANK];
    for (int32_t k = 0; k < t.shape.rank; k++)
        d[k] = extent_inside(n, t.shape.dims[k]);
    t.shape = shape_make(n->c, (uint32_t)t.shape.rank, d);
    v->declared = t;
}

const type *onnx_declared(onnx_node *n, uint32_t i)
{
    graph_value *v = arena_new(&n->c->mem, graph_value);
    onnx_set_declared(n, i, v);
    return v->declared.kind == TYPE_TENSOR && shape_is_static(v->declared.shape) ? &v->declared : NULL;
}

/* What the model states must not contradict what the operator gives: another element type is an error; another shape is
 * a warning, because exporters leave stale ones behind, and the statement is dropped. */
static bool check_declared(onnx_node *n, graph_value *v)
{
    const type *t = &v->type, *d = &v->declared;
    if (d->kind != TYPE_TENSOR || t->kind != TYPE_TENSOR)
        return true;
    if (t->dt != d->dt)
        return onnx_fail(n, DIAG_TYPE, "result '%s' is declared as %s but the operator gives %s", v->name,
                         dtype_name(d->dt), dtype_name(t->dt));
    bool same = t->shape.rank == d->shape.rank;
    for (int32_t i = 0; same && i < t->shape.rank; i++) {
        int64_t a = 0, b = 0;
        same = !dim_is_const(t->shape.dims[i], &a) || !dim_is_const(d->shape.dims[i], &b) || a == b;
    }
    if (!same) {
        writer w;
        writer_init(&w, &n->c->mem);
        type_print(&w, d);
        w_str(&w, " but computed as ");
        type_print(&w, t);
        diag_warning(&n->c->diags, DIAG_TYPE, n->loc, "result '%s' is declared as %s; the computed shape is "
                                                      "used", v->name,
                     w.data);
        v->declared = (type){0};
    }
    return true;
}

/* --- computing constants --- */

static bool is_small_constant(const graph_value *v, int64_t max)
{
    const tensor_data *t = graph_constant(v);
    return !v || (t && t->count <= max);
}

static bool may_compute(const onnx_node *n, const graph_node *g)
{
    const type *t = &g->outputs[0]->type;
    bool floats = dtype_is_float(t->dt);
    int64_t count = shape_count(t->shape);
    if (g->op->effect != EFFECT_PURE || (g->op->flags & (OPF_CALL | OPF_NO_FOLD)) || !n->c->evaluate)
        return false;
    if (strcmp(g->op->name, "qnn.dequantize") == 0)
        return false; /* what it belongs to may compute with the quantised numbers */
    if (count < 0 || count > (floats ? FOLD_MAX_FLOATS : FOLD_MAX_ELEMENTS) || (floats && n->im->o->keeps_floats))
        return false;
    for (uint32_t i = 0; i < g->n_inputs; i++)
        if (!is_small_constant(g->inputs[i], FOLD_MAX_ELEMENTS))
            return false;
    return true;
}

/* shape_of and size_of need only the type; the rest is the business of the compile's evaluator. */
static const tensor_data *compute(onnx_node *n, const graph_node *g)
{
    const graph_value *x = g->n_inputs ? g->inputs[0] : NULL;
    const tensor_data *out[1] = {NULL};
    int64_t d[TYPE_MAX_RANK];
    if (x && strcmp(g->op->name, "shape_of") == 0 && shape_get(x->type.shape, d)) {
        int64_t rank = x->type.shape.rank, from = graph_attr_int(g, "start"), to = graph_attr_int(g, "end");
        from = from < 0 ? from + rank : from;
        to = to < 0 ? to + rank : to;
        from = from < 0 ? 0 : from > rank ? rank : from;
        to = to < from ? from : to > rank ? rank : to;
        return tensor_from_i64s(n->c, (uint32_t)(to - from), d + from);
    }
    if (x && strcmp(g->op->name, "size_of") == 0 && shape_count(x->type.shape) >= 0)
        return tensor_scalar_i64(n->c, DT_I64, shape_count(x->type.shape));
    if (g->n_outputs != 1 || !may_compute(n, g) || !n->c->evaluate(n->c, g, out))
        return NULL;
    return out[0];
}

/* The node that was just appended gives way to a constant of the same name. */
static graph_value *replace_by_constant(onnx_node *n, graph_node *g, const tensor_data *t)
{
    const char *name = g->outputs[0]->name;
    assert(vec_last(&n->f->nodes) == g);
    (void)vec_pop(&n->f->nodes);
    graph_value *k = graph_add_constant(n->f, t, name, n->loc);
    g->outputs[0]->name = k->name;
    k->name = name;
    k->declared = g->outputs[0]->declared;
    return k;
}

/* --- emitting --- */

static bool check_usable(onnx_node *n, const graph_node *g)
{
    for (uint32_t i = 0; i < g->n_outputs; i++) {
        const type *t = &g->outputs[i]->type;
        if (t->kind == TYPE_TENSOR && t->shape.rank > (int32_t)TYPE_MAX_RANK)
            return onnx_fail(n, DIAG_UNSUPPORTED, "more than 16 dimensions");
        if (t->kind == TYPE_TENSOR && !dtype_usable(t->dt))
            return onnx_fail(n, DIAG_UNSUPPORTED, "element type %s is not supported yet", dtype_name(t->dt));
    }
    return true;
}

/* Checks what the row demands of the operands, so that type relations see no surprise. */
static const graph_op *check_args(onnx_node *n, const onnx_args *a)
{
    const graph_op *op = graph_find_op(n->c, a->op);
    if (!op) {
        onnx_fail(n, DIAG_INTERNAL, "the operator table has no '%s'", a->op);
        return NULL;
    }
    if (a->n_in < (uint32_t)op->min_in || (op->max_in >= 0 && a->n_in > (uint32_t)op->max_in)) {
        onnx_fail(n, DIAG_FORMAT, "%u inputs do not fit this operator", a->n_in);
        return NULL;
    }
    for (uint32_t i = 0; i < a->n_in; i++) {
        if (!a->in[i] && i < (uint32_t)op->min_in) {
            onnx_fail(n, DIAG_FORMAT, "input %u is missing", i);
            return NULL;
        }
        if (a->in[i] && (a->in[i]->type.kind != TYPE_TENSOR || a->in[i]->type.shape.rank < 0)) {
            onnx_fail(n, DIAG_UNSUPPORTED, "input %u is not a tensor of known rank", i);
            return NULL;
        }
    }
    return op;
}

/* A shape that is only a hint serves operators whose result depends on an operand, and has its first operand's type. */
static void settle_hint(graph_value *v, const onnx_args *a)
{
    static const char *const ops[] = {"reshape", "broadcast_to", "strided_slice", "nn.pad", "tile", "resize"};
    bool used = false;
    if (v->declared.dt != DT_NONE)
        return;
    for (size_t i = 0; i < sizeof ops / sizeof ops[0]; i++)
        used |= strcmp(ops[i], a->op) == 0;
    if (used)
        v->declared.dt = a->in[0]->type.dt;
    else
        v->declared = (type){0};
}

/* A number that the model declares where only the data decides is what a sample had, as exporters write it. Behind a
 * result of the model nobody relies on it: the extent is what a run finds, and the model is told to be wrong there. */
static bool open_results(onnx_node *n, graph_node *g)
{
    static const char *const ops[] = {"nonzero", "compress", "unique", "nn.nms_rows"};
    type declared[4] = {{0}};
    bool chosen = false, again = false;
    for (size_t i = 0; i < sizeof ops / sizeof ops[0]; i++)
        chosen |= strcmp(ops[i], g->op->name) == 0;
    if (!chosen || !n->env->scope->top)
        return true;
    for (uint32_t i = 0; i < g->n_outputs && i < 4; i++)
        if (onnx_map_get(&n->env->scope->outputs, g->outputs[i]->name)) {
            declared[i] = g->outputs[i]->declared;
            g->outputs[i]->declared = (type){0};
        }
    if (!graph_infer_node(n->c, g))
        return false;
    for (uint32_t i = 0; i < g->n_outputs && i < 4; i++) {
        const shape *d = &declared[i].shape, *s = &g->outputs[i]->type.shape;
        int64_t number = 0;
        bool open = false;
        for (int32_t k = 0; declared[i].kind == TYPE_TENSOR && d->rank == s->rank && k < s->rank; k++)
            open |= dim_is_fresh(s->dims[k]) && dim_is_const(d->dims[k], &number);
        if (open) {
            diag_warning(&n->c->diags, DIAG_TYPE, n->loc,
                         "result '%s' is declared with an extent of %lld, but it depends on the data; each run "
                         "computes it", g->outputs[i]->name, (long long)number);
        } else if (declared[i].kind == TYPE_TENSOR) {
            g->outputs[i]->declared = declared[i];
            again = true;
        }
    }
    return !again || graph_infer_node(n->c, g);
}

/* first: the result of the model's node that output 0 is; -1: outputs are intermediate values. */
static graph_node *add_node(onnx_node *n, onnx_args a, uint32_t n_out, const char *const *names, int32_t first)
{
    while (!n->failed && a.n_in > 0 && !a.in[a.n_in - 1])
        a.n_in--; /* optional operands at the end */
    const graph_op *op = n->failed ? NULL : check_args(n, &a);
    if (op && (n_out < (uint32_t)op->min_out || (op->max_out >= 0 && n_out > (uint32_t)op->max_out)))
        onnx_fail(n, DIAG_FORMAT, "%u results do not fit this operator", n_out);
    if (!op || n->failed)
        return NULL;
    graph_node *g = graph_add_node(n->f, op, a.n_in, a.in, a.n_attrs, a.attrs, n_out, names, n->loc);
    for (uint32_t i = 0; first >= 0 && i < n_out; i++) {
        onnx_set_declared(n, (uint32_t)first + i, g->outputs[i]);
        settle_hint(g->outputs[i], &a);
    }
    if (n->expect && (first < 0 || a.n_in == 1)) /* of a reshape without a shape operand it is what is made */
        g->outputs[0]->declared = type_tensor(a.in[0]->type.dt, *n->expect);
    if (!open_results(n, g) || !graph_infer_node(n->c, g)) {
        n->failed = true;
        return NULL;
    }
    return check_usable(n, g) && !n->failed ? g : NULL;
}

static graph_value *emit(onnx_node *n, onnx_args a, const char *name, int32_t result)
{
    graph_node *g = add_node(n, a, 1, &name, result);
    const tensor_data *t = g ? compute(n, g) : NULL;
    if (t)
        return replace_by_constant(n, g, t);
    return g ? g->outputs[0] : onnx_nothing(n);
}

graph_value *onnx_emit(onnx_node *n, onnx_args a)
{
    return n->failed ? onnx_nothing(n) : emit(n, a, made_name(n, op_tail(a.op)), -1);
}

void onnx_emit_all(onnx_node *n, onnx_args a, uint32_t n_out, graph_value **out)
{
    const char **names = arena_array(&n->c->mem, const char *, n_out);
    for (uint32_t i = 0; i < n_out; i++)
        names[i] = made_name(n, op_tail(a.op));
    graph_node *g = n->failed ? NULL : add_node(n, a, n_out, names, -1);
    for (uint32_t i = 0; i < n_out; i++)
        out[i] = g ? g->outputs[i] : onnx_nothing(n);
}

graph_value *onnx_result(onnx_node *n, uint32_t i, onnx_args a)
{
    if (n->failed)
        return onnx_nothing(n);
    graph_value *v = i < n->n_out ? emit(n, a, result_name(n, i), (int32_t)i) : onnx_emit(n, a);
    if (i < n->n_out)
        n->out[i] = v;
    return v;
}

bool onnx_results(onnx_node *n, onnx_args a, uint32_t n_out)
{
    const char **names = arena_array(&n->c->mem, const char *, n_out);
    for (uint32_t i = 0; i < n_out; i++)
        names[i] = result_name(n, i);
    graph_node *g = add_node(n, a, n_out, names, 0);
    for (uint32_t i = 0; g && i < n_out && i < n->n_out; i++)
        n->out[i] = g->outputs[i];
    return g != NULL;
}

bool onnx_alias(onnx_node *n, uint32_t i, graph_value *v)
{
    if (i < n->n_out)
        n->out[i] = v;
    return !n->failed && (v || onnx_fail(n, DIAG_FORMAT, "an input is missing"));
}

bool onnx_result_constant(onnx_node *n, uint32_t i, const tensor_data *t)
{
    if (n->failed || !t)
        return false;
    return i >= n->n_out || onnx_alias(n, i, graph_add_constant(n->f, t, result_name(n, i), n->loc));
}

bool onnx_settle_result(onnx_node *n, uint32_t i)
{
    graph_value *v = n->out[i];
    uint32_t suffix = 0;
    bool own = false;
    if (!v->def || v->name == n->out_names[i] || ptr_map_get(n->f->names, n->out_names[i], &suffix))
        return true;
    for (uint32_t k = n->f->nodes.len; !own && k-- > n->first;)
        own = n->f->nodes.data[k] == v->def;
    if (!own)
        return true;
    v->name = n->out_names[i];
    ptr_map_set(n->f->names, v->name, 1);
    onnx_set_declared(n, i, v);
    if (v->declared.dt == DT_NONE)
        v->declared = (type){0};
    return check_declared(n, v);
}

/* --- shorthands --- */

graph_value *onnx_unary(onnx_node *n, const char *op, graph_value *x)
{
    return onnx_emit(n, ONNX_ARGS(op, 0, NULL, x));
}

graph_value *onnx_binary(onnx_node *n, const char *op, graph_value *a, graph_value *b)
{
    return onnx_emit(n, ONNX_ARGS(op, 0, NULL, a, b));
}

graph_value *onnx_where(onnx_node *n, graph_value *cond, graph_value *a, graph_value *b)
{
    return onnx_emit(n, ONNX_ARGS("where", 0, NULL, cond, a, b));
}

graph_value *onnx_cast(onnx_node *n, graph_value *x, dtype dt)
{
    if (n->failed || !x || x->type.dt == dt)
        return x;
    attr a = attr_dtype(n->c, "dtype", dt);
    return onnx_emit(n, ONNX_ARGS("cast", 1, &a, x));
}

graph_value *onnx_reduce(onnx_node *n, const char *op, graph_value *x, uint32_t n_axes, const int64_t *axes, bool keep)
{
    attr a[2] = {attr_ints(n->c, "axes", n_axes, axes), attr_int(n->c, "keepdims", keep)};
    return onnx_emit(n, ONNX_ARGS(op, 2, a, x));
}

void onnx_best_of_rows(onnx_node *n, graph_value *x, int64_t count, graph_value *out[2])
{
    const attr axis = attr_int(n->c, "axis", 1);
    graph_value *number = onnx_const_ints(n, 1, &count);
    onnx_emit_all(n, ONNX_ARGS("topk", 1, &axis, x, number), 2, out);
}

graph_value *onnx_transpose(onnx_node *n, graph_value *x, uint32_t rank, const int64_t *perm)
{
    attr a = attr_ints(n->c, "perm", rank, perm);
    return onnx_emit(n, ONNX_ARGS("transpose", 1, &a, x));
}

graph_value *onnx_concat(onnx_node *n, uint32_t count, graph_value *const *v, int64_t axis)
{
    attr a = attr_int(n->c, "axis", axis);
    return onnx_emit(n, (onnx_args){"concatenate", count, v, 1, &a});
}

graph_value *onnx_slice(onnx_node *n, graph_value *x, int64_t axis, int64_t from, int64_t to)
{
    graph_value *f = onnx_const_ints(n, 1, &from), *t = onnx_const_ints(n, 1, &to), *k = onnx_const_ints(n, 1, &axis);
    return onnx_emit(n, ONNX_ARGS("strided_slice", 0, NULL, x, f, t, k));
}

graph_value *onnx_matmul(onnx_node *n, graph_value *a, graph_value *b, bool ta, bool tb, dtype out)
{
    attr at[3] = {attr_int(n->c, "transpose_a", ta), attr_int(n->c, "transpose_b", tb),
                  attr_dtype(n->c, "out_dtype", out)};
    return onnx_emit(n, ONNX_ARGS("nn.matmul", 3, at, a, b));
}

graph_value *onnx_constant(onnx_node *n, const tensor_data *t)
{
    return n->failed || !t ? onnx_nothing(n) : graph_add_constant(n->f, t, made_name(n, "const"), n->loc);
}

graph_value *onnx_const_ints(onnx_node *n, uint32_t count, const int64_t *v)
{
    return onnx_constant(n, tensor_from_i64s(n->c, count, v));
}

graph_value *onnx_const_int(onnx_node *n, dtype dt, int64_t v)
{
    return onnx_constant(n, tensor_scalar_i64(n->c, dt, v));
}

graph_value *onnx_const_float(onnx_node *n, dtype dt, double v)
{
    return onnx_constant(n, tensor_scalar_f64(n->c, dt, v));
}

graph_value *onnx_const_like(onnx_node *n, graph_value *x, double v)
{
    return onnx_const_float(n, x->type.dt, v);
}

/* The shape operand of a reshape: symbols need none when there are several (NULL), for then the type says it all. */
static graph_value *shape_operand(onnx_node *n, uint32_t rank, const dim *dims)
{
    int64_t v[TYPE_MAX_RANK];
    uint32_t unknown = 0;
    for (uint32_t i = 0; i < rank; i++)
        if (!dim_is_const(dims[i], &v[i])) {
            v[i] = -1;
            unknown++;
        }
    return unknown > 1 ? NULL : onnx_const_ints(n, rank, v);
}

graph_value *onnx_make_reshape(onnx_node *n, int32_t result, graph_value *x, uint32_t rank, const dim *dims)
{
    attr zero = attr_int(n->c, "allowzero", 1); /* a zero is an extent here, never "copy" */
    bool zeros = false;
    if (n->failed)
        return onnx_nothing(n);
    if (rank > TYPE_MAX_RANK)
        return onnx_refuse(n, DIAG_UNSUPPORTED, "more than 16 dimensions");
    graph_value *s = shape_operand(n, rank, dims);
    shape to = shape_make(n->c, rank, dims);
    for (uint32_t i = 0; i < rank; i++)
        zeros |= dim_is(dims[i], 0);
    onnx_args a = ONNX_ARGS("reshape", zeros ? 1u : 0u, &zero, x, s);
    const shape *before = n->expect;
    if (!s)
        n->expect = &to;
    graph_value *y = result < 0 ? onnx_emit(n, a) : onnx_result(n, (uint32_t)result, a);
    n->expect = before;
    return y;
}

/* A constant takes its new shape at once: its bytes stay where they are. */
static graph_value *reshape_constant(onnx_node *n, const graph_value *x, uint32_t rank, const dim *dims)
{
    const tensor_data *t = graph_constant(x);
    int64_t d[TYPE_MAX_RANK], count = 1;
    bool ok = t && rank <= TYPE_MAX_RANK && !n->failed;
    for (uint32_t i = 0; ok && i < rank; i++)
        ok = dim_is_const(dims[i], &d[i]) && d[i] >= 0 && i64_mul(count, d[i], &count);
    if (!ok || count != t->count)
        return NULL;
    return graph_add_constant(n->f, tensor_reshape(n->c, t, rank, d), name_after(n, x->name, "reshape"), n->loc);
}

graph_value *onnx_reshape(onnx_node *n, graph_value *x, uint32_t rank, const dim *dims)
{
    graph_value *k = reshape_constant(n, x, rank, dims);
    if (k)
        return k;
    return onnx_make_reshape(n, -1, x, rank, dims);
}

graph_value *onnx_reshape_ints(onnx_node *n, graph_value *x, uint32_t rank, const int64_t *dims)
{
    dim d[TYPE_MAX_RANK];
    if (n->failed)
        return onnx_nothing(n);
    if (rank > TYPE_MAX_RANK)
        return onnx_refuse(n, DIAG_UNSUPPORTED, "more than 16 dimensions");
    for (uint32_t i = 0; i < rank; i++)
        d[i] = dim_const(n->c, dims[i]);
    return onnx_reshape(n, x, rank, d);
}

/* By an operator that takes the extents as an operand. */
static graph_value *with_extent_of(onnx_node *n, const char *op, graph_value *v, graph_value *x, int64_t axis,
                                   uint32_t count, const int64_t *others)
{
    dim d[TYPE_MAX_RANK] = {onnx_dim(n, x, (uint32_t)axis)};
    for (uint32_t i = 0; i < count; i++)
        d[i + 1] = dim_const(n->c, others[i]);
    const shape to = shape_make(n->c, count + 1, d);
    const attr part[2] = {attr_int(n->c, "start", axis), attr_int(n->c, "end", axis + 1)};
    graph_value *extents = onnx_emit(n, ONNX_ARGS("shape_of", 2, part, x));
    if (count > 0) {
        graph_value *parts[2] = {extents, onnx_const_ints(n, count, others)};
        extents = onnx_concat(n, 2, parts, 0);
    }
    const shape *before = n->expect;
    n->expect = &to;
    graph_value *y = onnx_binary(n, op, v, extents);
    n->expect = before;
    return y;
}

graph_value *onnx_stretch(onnx_node *n, graph_value *v, graph_value *x, int64_t axis, uint32_t count,
                          const int64_t *others)
{
    return with_extent_of(n, "broadcast_to", v, x, axis, count, others);
}

graph_value *onnx_one_for_each(onnx_node *n, graph_value *v, graph_value *x, int64_t axis, uint32_t count)
{
    static const int64_t ones[TYPE_MAX_RANK] = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1};
    return with_extent_of(n, "reshape", v, x, axis, count, ones);
}

graph_value *onnx_expand_dims(onnx_node *n, graph_value *x, uint32_t count, const int64_t *axes)
{
    dim d[TYPE_MAX_RANK];
    uint32_t rank = onnx_rank(x) + count, next = 0, from = 0;
    if (rank > TYPE_MAX_RANK)
        return onnx_refuse(n, DIAG_UNSUPPORTED, "more than 16 dimensions");
    for (uint32_t i = 0; i < rank; i++) {
        bool one = next < count && axes[next] == (int64_t)i;
        next += one;
        d[i] = one ? dim_const(n->c, 1) : onnx_dim(n, x, from++);
    }
    return count == 0 ? x : onnx_reshape(n, x, rank, d);
}

/* --- reading values --- */

uint32_t onnx_rank(const graph_value *v)
{
    return v && v->type.kind == TYPE_TENSOR && v->type.shape.rank > 0 ? (uint32_t)v->type.shape.rank : 0;
}

dtype onnx_dtype(const graph_value *v)
{
    return v ? v->type.dt : DT_NONE;
}

dim onnx_dim(onnx_node *n, const graph_value *v, uint32_t axis)
{
    return axis < onnx_rank(v) ? v->type.shape.dims[axis] : dim_const(n->c, 1);
}

int64_t onnx_static_dim(onnx_node *n, const graph_value *v, uint32_t axis)
{
    int64_t d = 1;
    if (!n->failed && v && !dim_is_const(onnx_dim(n, v, axis), &d))
        onnx_fail(n, DIAG_UNSUPPORTED,
                  "the extent of axis %u must be known; fix it with --dim or --shape, or fix the input that states it "
                  "with --bind",
                  axis);
    if (d > INT32_MAX) /* importers multiply two of them */
        onnx_fail(n, DIAG_UNSUPPORTED, "the extent %lld of axis %u is too large", (long long)d, axis);
    return n->failed ? 1 : d;
}

graph_value *onnx_extent(onnx_node *n, graph_value *v, uint32_t axis)
{
    const attr part[2] = {attr_int(n->c, "start", axis), attr_int(n->c, "end", axis + 1)};
    int64_t known = 0;
    if (dim_is_const(onnx_dim(n, v, axis), &known))
        return onnx_const_int(n, DT_I64, known);
    return onnx_reshape_ints(n, onnx_emit(n, ONNX_ARGS("shape_of", 2, part, v)), 0, &known);
}

uint32_t onnx_axis(onnx_node *n, int64_t axis, uint32_t rank)
{
    int64_t a = axis < 0 ? axis + (int64_t)rank : axis;
    if (a < 0 || a >= (int64_t)rank) {
        onnx_fail(n, DIAG_TYPE, "axis %lld is out of range for %u dimensions", (long long)axis, rank);
        return 0;
    }
    return (uint32_t)a;
}

bool onnx_ints_of(const graph_value *v, int64_t *out, uint32_t *out_n)
{
    return v && graph_constant_ints(v, TYPE_MAX_RANK * 2, out, out_n);
}

bool onnx_float_of(const graph_value *v, double *out)
{
    const tensor_data *t = graph_constant(v);
    if (!t || t->count != 1)
        return false;
    *out = tensor_get_f64(t, 0);
    return true;
}

bool onnx_need_ints(onnx_node *n, graph_value *v, const char *what, int64_t *out, uint32_t *out_n)
{
    *out_n = 0;
    return onnx_ints_of(v, out, out_n) || onnx_fail(n, DIAG_UNSUPPORTED, "%s must be a constant for now", what);
}

bool onnx_axis_set(onnx_node *n, uint32_t count, const int64_t *axes, uint32_t rank, bool *set)
{
    memset(set, 0, rank * sizeof *set);
    for (uint32_t i = 0; i < count; i++) {
        uint32_t a = onnx_axis(n, axes[i], rank);
        if (!n->failed && set[a])
            onnx_fail(n, DIAG_TYPE, "axis %lld is given twice", (long long)axes[i]);
        if (n->failed)
            return false;
        set[a] = true;
    }
    return !n->failed;
}

/* --- operands that are known at run time only
 * ---------------------------------------------------------------------------------- */

graph_value *onnx_expect(onnx_node *n, graph_value *x, graph_value *operand, int64_t n_rows, int64_t width,
                         const int64_t *rows)
{
    const int64_t dims[2] = {n_rows, width};
    attr a = attr_tensor(
        n->c, "rows",
        tensor_dense(n->c, DT_I64, 2, dims,
                     arena_copy(&n->c->mem, rows, (size_t)(n_rows * width) * sizeof *rows, _Alignof(int64_t))));
    return onnx_emit(n, ONNX_ARGS("expect", 1, &a, x, operand));
}

graph_value *onnx_axes_as_bits(onnx_node *n, graph_value *axes, uint32_t rank)
{
    int64_t bits[TYPE_MAX_RANK];
    for (uint32_t i = 0; i < rank; i++)
        bits[i] = (int64_t)1 << i;
    attr axis = attr_int(n->c, "axis", 0);
    graph_value *b = onnx_emit(n, ONNX_ARGS("take", 1, &axis, onnx_const_ints(n, rank, bits), axes));
    return onnx_reduce(n, "sum", b, 0, NULL, false);
}

static bool set_gives(int64_t set, uint32_t rank, const int64_t *in, uint32_t out_rank, const int64_t *out, bool keep,
                      bool ones)
{
    uint32_t k = 0;
    for (uint32_t i = 0; i < rank; i++) {
        bool gone = (set >> i & 1) != 0;
        if (gone && ones && in[i] != 1)
            return false;
        if (gone && !keep)
            continue;
        if (k == out_rank || out[k++] != (gone ? 1 : in[i]))
            return false;
    }
    return k == out_rank;
}

uint32_t onnx_axis_sets(uint32_t rank, const int64_t *in, uint32_t out_rank, const int64_t *out, int64_t count,
                        bool keep, bool ones, int64_t *sets)
{
    uint32_t n = 0;
    for (int64_t set = 1; set < (int64_t)1 << rank && n < ONNX_MAX_SETS; set++)
        if (__builtin_popcountll((unsigned long long)set) == count &&
            set_gives(set, rank, in, out_rank, out, keep, ones))
            sets[n++] = set;
    return n;
}
