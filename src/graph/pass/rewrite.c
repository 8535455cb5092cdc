/* SPDX-License-Identifier: Apache-2.0 */
/* Forwarding of values and rebuilding of node lists. */
#include "graph/pass/rewrite.h"

#include "base/ptr_map.h"

#include <assert.h>
#include <string.h>

static void clear(graph_value *v)
{
    v->mark = 0;
    v->forward = NULL;
}

void rewrite_begin(rewriter *r, compiler *c, graph_func *f)
{
    *r = (rewriter){.c = c, .f = f};
    for (uint32_t i = 0; i < f->params.len; i++)
        clear(f->params.data[i]);
    for (uint32_t i = 0; i < f->nodes.len; i++)
        for (uint32_t k = 0; k < f->nodes.data[i]->n_outputs; k++)
            clear(f->nodes.data[i]->outputs[k]);
    for (uint32_t i = 0; i < f->nodes.len; i++)
        for (uint32_t k = 0; k < f->nodes.data[i]->n_inputs; k++)
            if (f->nodes.data[i]->inputs[k])
                f->nodes.data[i]->inputs[k]->mark++;
    for (uint32_t i = 0; i < f->results.len; i++)
        f->results.data[i]->mark = (f->results.data[i]->mark + 1) | MARK_RESULT;
}

static graph_value *resolve(graph_value *v)
{
    graph_value *end = v;
    while (end->forward)
        end = end->forward;
    while (v->forward) { /* later look-ups take one step */
        graph_value *next = v->forward;
        v->forward = end;
        v = next;
    }
    return end;
}

void rewrite_operands(graph_node *n)
{
    for (uint32_t i = 0; i < n->n_inputs; i++)
        if (n->inputs[i])
            n->inputs[i] = resolve(n->inputs[i]);
}

void rewrite_keep(rewriter *r, graph_node *n)
{
    vec_push(&r->c->mem, &r->nodes, n);
}

void rewrite_end(rewriter *r)
{
    graph_func *f = r->f;
    for (uint32_t i = 0; i < f->results.len; i++)
        f->results.data[i] = resolve(f->results.data[i]);
    f->nodes.data = r->nodes.data;
    f->nodes.len = r->nodes.len;
    f->nodes.cap = r->nodes.cap;
}

static void swap_names(graph_value *a, graph_value *b)
{
    const char *name = a->name;
    a->name = b->name;
    b->name = name;
}

void rewrite_take_name(graph_value *to, graph_value *from)
{
    if (!(from->mark & MARK_RESULT))
        swap_names(to, from);
}

/* Made up, not the model's. */
static bool is_fresh(const char *name)
{
    return name[strspn(name, "0123456789")] == 0;
}

bool rewrite_replace(rewriter *r, graph_value *from, graph_value *to)
{
    to = resolve(to);
    assert(from != to && !from->forward);
    bool is_result = from->mark & MARK_RESULT;
    if (is_result && (!to->def || (to->mark & MARK_RESULT)))
        return false;
    if (is_result || (to->def && is_fresh(to->name) && !is_fresh(from->name)))
        swap_names(to, from);
    from->forward = to;
    to->mark = (to->mark + rewrite_uses(from)) | (is_result ? MARK_RESULT : 0);
    r->changed = true;
    return true;
}

bool rewrite_each(compiler *c, graph_func *f, graph_value *(*made)(rewriter *r, const graph_node *n))
{
    rewriter r;
    rewrite_begin(&r, c, f);
    for (uint32_t i = 0; i < f->nodes.len && !r.failed; i++) {
        graph_node *n = f->nodes.data[i];
        rewrite_operands(n);
        graph_value *y = made(&r, n);
        if (!y || !rewrite_replace(&r, n->outputs[0], y))
            rewrite_keep(&r, n);
    }
    rewrite_end(&r);
    return !r.failed;
}

uint32_t rewrite_uses(const graph_value *v)
{
    return v->mark & ~MARK_RESULT;
}

static graph_value *infer_and_keep(rewriter *r, graph_node *n)
{
    if (!graph_infer_node(r->c, n)) {
        r->failed = true;
        return NULL;
    }
    for (uint32_t i = 0; i < n->n_inputs; i++)
        if (n->inputs[i])
            n->inputs[i]->mark++;
    rewrite_keep(r, n);
    return n->outputs[0];
}

graph_value *rewrite_emit(rewriter *r, const char *op, uint32_t n_in, graph_value *const *in, uint32_t n_attr,
                          const attr *attrs, src_loc loc)
{
    const graph_op *row = graph_find_op(r->c, op);
    assert(row);
    return infer_and_keep(r, graph_new_node(r->f, row, n_in, in, n_attr, attrs, 1, NULL, loc));
}

graph_value *rewrite_reshape(rewriter *r, graph_value *x, uint32_t rank, const dim *dims, src_loc loc)
{
    int64_t numbers[TYPE_MAX_RANK];
    bool open = false;
    for (uint32_t i = 0; i < rank; i++)
        open |= !dim_is_const(dims[i], &numbers[i]);
    graph_value *in[2] = {x, open ? NULL : rewrite_constant(r, tensor_from_i64s(r->c, rank, numbers), "shape", loc)};
    if (!open)
        return in[1] ? rewrite_emit(r, "reshape", 2, in, 0, NULL, loc) : NULL;
    graph_node *n = graph_new_node(r->f, graph_find_op(r->c, "reshape"), 1, in, 0, NULL, 1, NULL, loc);
    n->outputs[0]->declared = type_tensor(x->type.dt, shape_make(r->c, rank, dims));
    return infer_and_keep(r, n);
}

dim rewrite_rows(compiler *c, const type *t)
{
    const int32_t rank = t->shape.rank;
    dim rows[2] = {dim_const(c, 1), t->shape.dims[rank - 1]};
    for (int32_t i = 0; i + 1 < rank; i++)
        rows[0] = dim_mul(c, rows[0], t->shape.dims[i]);
    const type flat = type_tensor(t->dt, shape_make(c, 2, rows));
    return !dim_is(rows[0], 0) && type_most_bytes(&flat) == type_most_bytes(t) ? rows[0] : NULL;
}

graph_value *rewrite_constant(rewriter *r, const tensor_data *t, const char *name, src_loc loc)
{
    attr value = attr_tensor(r->c, "value", t);
    graph_node *n = graph_new_node(r->f, graph_find_op(r->c, "constant"), 0, NULL, 1, &value, 1, &name, loc);
    n->outputs[0]->type = tensor_type(r->c, t);
    rewrite_keep(r, n);
    return n->outputs[0];
}

graph_value *rewrite_pad(rewriter *r, graph_value *x, const int64_t *pads, const tensor_data *fill, src_loc loc)
{
    const uint32_t n = 2 * (uint32_t)x->type.shape.rank;
    graph_value *in[3] = {x, rewrite_constant(r, tensor_from_i64s(r->c, n, pads), "pads", loc),
                          fill ? rewrite_constant(r, fill, "fill", loc) : NULL};
    return rewrite_emit(r, "nn.pad", fill ? 3 : 2, in, 0, NULL, loc);
}

graph_value *rewrite_slice(rewriter *r, graph_value *x, uint32_t n, const int64_t *from, const int64_t *to,
                           const int64_t *axes, const int64_t *steps, src_loc loc)
{
    const int64_t *lists[] = {from, to, axes, steps};
    graph_value *in[5] = {x};
    const uint32_t n_in = steps ? 5 : 4;
    for (uint32_t i = 1; in[i - 1] && i < n_in; i++)
        in[i] = rewrite_constant(r, tensor_from_i64s(r->c, n, lists[i - 1]), "", loc);
    return in[n_in - 1] ? rewrite_emit(r, "strided_slice", n_in, in, 0, NULL, loc) : NULL;
}

void rewrite_to_constant(compiler *c, graph_node *n, const tensor_data *t)
{
    attr value = attr_tensor(c, "value", t);
    assert(n->n_outputs == 1);
    n->op = graph_find_op(c, "constant");
    n->n_inputs = 0;
    n->attrs = arena_copy(&c->mem, &value, sizeof value, _Alignof(attr));
    n->n_attrs = 1;
    n->outputs[0]->type = tensor_type(c, t);
}

graph_value *rewrite_shift(rewriter *r, graph_value *x, int64_t by, dtype dt)
{
    compiler *c = r->c;
    src_loc loc = x->def ? x->def->loc : src_loc_none();
    attr wide = attr_dtype(c, "dtype", DT_I32), narrow = attr_dtype(c, "dtype", dt);
    graph_value *in[2] = {rewrite_emit(r, "cast", 1, &x, 1, &wide, loc),
                          rewrite_constant(r, tensor_scalar_i64(c, DT_I32, by), "offset", loc)};
    graph_value *sum = in[0] ? rewrite_emit(r, "add", 2, in, 0, NULL, loc) : NULL;
    return sum ? rewrite_emit(r, "cast", 1, &sum, 1, &narrow, loc) : NULL;
}

bool rewrite_reads_constants(const graph_node *n)
{
    for (uint32_t i = 0; i < n->n_inputs; i++)
        if (n->inputs[i] && !graph_constant(n->inputs[i]))
            return false;
    return true;
}

graph_value *rewrite_evaluate(rewriter *r, graph_value *v)
{
    const tensor_data *t = NULL;
    if (v && r->c->evaluate && rewrite_reads_constants(v->def) && r->c->evaluate(r->c, v->def, &t) && t)
        rewrite_to_constant(r->c, v->def, t);
    return v;
}

bool rewrite_is_uniform(const tensor_data *t, double *out)
{
    if (!t || t->count == 0 || !dtype_usable(t->dt) || (t->kind == TENSOR_DENSE && t->count > 4096))
        return false;
    size_t one = dtype_bytes(t->dt);
    for (int64_t i = 1; t->kind == TENSOR_DENSE && i < t->count; i++)
        if (memcmp(tensor_element(t, 0), tensor_element(t, i), one) != 0)
            return false;
    if (out)
        *out = tensor_get_f64(t, 0);
    return true;
}

bool rewrite_is_op(const graph_value *v, const char *op)
{
    return v && v->def && strcmp(v->def->op->name, op) == 0;
}

bool rewrite_is_read_once(const graph_value *v)
{
    return rewrite_uses(v) == 1 && !(v->mark & MARK_RESULT);
}

graph_node *rewrite_rounded_sums(const graph_node *n, graph_value **out_bias)
{
    const bool rounds = strcmp(n->op->name, "qnn.requantize") == 0 || strcmp(n->op->name, "qnn.rescale") == 0;
    *out_bias = NULL;
    if (!rounds || n->n_inputs > REWRITE_ROUNDING_OPERANDS || graph_attr_int(n, "axis") != 1 ||
        !rewrite_is_read_once(n->inputs[0]))
        return NULL;
    graph_value *sums = n->inputs[0];
    if (rewrite_is_op(sums, "add")) {
        const uint32_t k = graph_constant(sums->def->inputs[0]) ? 0 : 1;
        *out_bias = sums->def->inputs[k];
        sums = sums->def->inputs[1 - k];
    }
    return sums->def && rewrite_is_read_once(sums) ? sums->def : NULL;
}

void rewrite_inline(rewriter *r, const graph_func *f, graph_value *const *args, graph_value **out_results)
{
    arena *a = &r->c->mem;
    ptr_map at;
    VEC(graph_value *) values = {0};
    uint32_t i = 0;
    ptr_map_init(&at, a);
    for (uint32_t p = 0; p < f->params.len; p++) {
        ptr_map_set(&at, f->params.data[p], values.len);
        vec_push(a, &values, args[p]);
    }
    for (uint32_t n = 0; n < f->nodes.len; n++) {
        const graph_node *from = f->nodes.data[n];
        graph_value **in = arena_array(a, graph_value *, from->n_inputs);
        const char **names = arena_array(a, const char *, from->n_outputs);
        for (uint32_t k = 0; k < from->n_inputs; k++) {
            if (from->inputs[k] && ptr_map_get(&at, from->inputs[k], &i))
                in[k] = values.data[i];
            if (in[k])
                in[k]->mark++;
        }
        for (uint32_t k = 0; k < from->n_outputs; k++)
            names[k] = from->outputs[k]->name;
        graph_node *to = graph_new_node(r->f, from->op, from->n_inputs, in, from->n_attrs, from->attrs,
                                        from->n_outputs, names, from->loc);
        for (uint32_t k = 0; k < from->n_outputs; k++) {
            to->outputs[k]->type = from->outputs[k]->type;
            to->outputs[k]->declared = from->outputs[k]->declared;
            to->outputs[k]->mark = 0;
            ptr_map_set(&at, from->outputs[k], values.len);
            vec_push(a, &values, to->outputs[k]);
        }
        rewrite_keep(r, to);
    }
    for (uint32_t k = 0; k < f->results.len; k++)
        out_results[k] = ptr_map_get(&at, f->results.data[k], &i) ? values.data[i] : NULL;
}

bool rewrite_stand_for(rewriter *r, graph_value *from, graph_value *to, src_loc loc)
{
    if (!to)
        return false;
    r->changed = true;
    if (rewrite_replace(r, from, to))
        return true;
    to = rewrite_emit(r, "copy", 1, &to, 0, NULL, loc);
    return to && rewrite_replace(r, from, to);
}
