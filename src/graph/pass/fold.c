/* SPDX-License-Identifier: Apache-2.0 */
/* Constant folding in one walk. Values come from the compute definitions, through c->evaluate; nothing is computed
 * here but what needs no arithmetic: reshapes, splats, shapes. Splats stay splats. A constant takes the place, the
 * result names and the location of the node that it replaces. */
#include "base/ptr_map.h"
#include "graph/pass.h"
#include "graph/pass/rewrite.h"

#include <string.h>

#define MAX_RESULT_BYTES ((int64_t)256 << 20)
#define MAX_WORK         2e9 /* multiply-accumulates of one node: seconds in the interpreter */

/* --- what needs no arithmetic --- */

static bool static_dims(const type *t, int64_t *dims)
{
    return t->kind == TYPE_TENSOR && t->shape.rank >= 0 && shape_get(t->shape, dims) && shape_count(t->shape) >= 0;
}

static const tensor_data *splat_like(compiler *c, const type *t, const tensor_data *element)
{
    int64_t dims[TYPE_MAX_RANK];
    if (!static_dims(t, dims) || t->dt != element->dt)
        return NULL;
    return tensor_splat(c, t->dt, (uint32_t)t->shape.rank, dims, tensor_element(element, 0));
}

/* shape_of and size_of know their answer when the type does, whatever the operand. */
static const tensor_data *fold_shape(compiler *c, const graph_node *n)
{
    const type *t = &n->inputs[0]->type;
    int64_t dims[TYPE_MAX_RANK];
    if (!static_dims(t, dims))
        return NULL;
    if (strcmp(n->op->name, "size_of") == 0)
        return tensor_scalar_i64(c, DT_I64, shape_count(t->shape));
    int64_t rank = t->shape.rank, from = graph_attr_int(n, "start"), to = graph_attr_int(n, "end");
    from = from < 0 ? from + rank : from;
    to = to < 0 ? to + rank : to;
    from = from < 0 ? 0 : from > rank ? rank : from;
    to = to < from ? from : to > rank ? rank : to;
    return tensor_from_i64s(c, (uint32_t)(to - from), dims + from);
}

static const tensor_data *fold_reshape(compiler *c, const graph_node *n, const tensor_data *x)
{
    int64_t dims[TYPE_MAX_RANK];
    const type *t = &n->outputs[0]->type;
    if (!static_dims(t, dims) || shape_count(t->shape) != x->count)
        return NULL;
    return tensor_reshape(c, x, (uint32_t)t->shape.rank, dims);
}

/* The first result without computing; NULL: not one of these. All operands that matter are constants. */
static const tensor_data *fold_by_hand(compiler *c, const graph_node *n, const tensor_data *x)
{
    const char *op = n->op->name;
    const type *t = &n->outputs[0]->type;
    if (strcmp(op, "copy") == 0)
        return x;
    if (n->op->flags & OPF_VIEW)
        return fold_reshape(c, n, x);
    if (strcmp(op, "full") == 0)
        return splat_like(c, t, graph_attr(n, "value")->u.tensor);
    bool by_index = n->n_inputs > 1 && !(n->op->flags & OPF_SHAPE_ARGS); /* which may be out of range */
    if ((n->op->flags & OPF_MOVES) && !by_index && rewrite_is_uniform(x, NULL))
        return splat_like(c, t, x);
    return NULL;
}

/* --- by the compute definition --- */

/* One element of t under the same rank. */
static const tensor_data *one_of(compiler *c, const tensor_data *t)
{
    int64_t ones[TYPE_MAX_RANK];
    for (uint32_t i = 0; i < t->rank; i++)
        ones[i] = 1;
    return tensor_splat(c, t->dt, t->rank, ones, tensor_element(t, 0));
}

/* An element-wise node of uniform operands is evaluated on one element. */
static const tensor_data *fold_uniform(compiler *c, const graph_node *n)
{
    if ((n->op->cls != CLASS_ELEMENTWISE && n->op->cls != CLASS_BROADCAST) || n->n_outputs != 1 ||
        (n->op->flags & OPF_SHAPE_ARGS))
        return NULL;
    for (uint32_t i = 0; i < n->n_inputs; i++)
        if (n->inputs[i] && !rewrite_is_uniform(graph_constant(n->inputs[i]), NULL))
            return NULL;
    graph_value out = {.name = intern(c->names, "y")}, *outs[1] = {&out};
    graph_node one = *n;
    one.inputs = arena_array(&c->mem, graph_value *, n->n_inputs);
    one.outputs = outs;
    out.def = &one;
    for (uint32_t i = 0; i < n->n_inputs; i++)
        if (n->inputs[i])
            one.inputs[i] = graph_detached_constant(c, one_of(c, graph_constant(n->inputs[i])), n->inputs[i]->name);
    const tensor_data *result = NULL;
    diags_mark mark = diags_get_mark(&c->diags);
    bool typed = graph_infer_node(c, &one);
    diags_reset(&c->diags, mark); /* nothing but this attempt has failed */
    if (!typed || !c->evaluate(c, &one, &result) || !result || result->count != 1)
        return NULL;
    return splat_like(c, &n->outputs[0]->type, result);
}

/* Results that are hardly larger than the constants they are made of replace them, whatever their size: else weights
 * would be transformed, and kept twice, in every run. */
static bool small_enough(const graph_node *n)
{
    int64_t sum = 0, from = 0;
    for (uint32_t i = 0; i < n->n_inputs; i++) {
        const tensor_data *t = n->inputs[i] ? graph_constant(n->inputs[i]) : NULL;
        if (t && t->kind == TENSOR_DENSE && !i64_add(from, (int64_t)tensor_size(t), &from))
            return false;
    }
    int64_t most = from / 8 * 9 > MAX_RESULT_BYTES ? from / 8 * 9 : MAX_RESULT_BYTES;
    for (uint32_t i = 0; i < n->n_outputs; i++) {
        int64_t bytes = type_bytes(&n->outputs[i]->type);
        if (bytes < 0 || !i64_add(sum, bytes, &sum) || sum > most)
            return false;
    }
    return true;
}

/* Whether a product or a reduction is soon computed. The multiply-accumulates of a matrix product are the root of the
 * product of its three element counts; those of a convolution are a little more, of anything else less. */
static bool soon_done(const graph_node *n)
{
    if ((n->op->cls != CLASS_OUT_FUSABLE && n->op->cls != CLASS_REDUCTION) || n->n_inputs < 2)
        return true;
    double squared = (double)shape_count(n->outputs[0]->type.shape);
    for (uint32_t i = 0; i < 2; i++)
        squared *= n->inputs[i] ? (double)graph_constant(n->inputs[i])->count : 1;
    return squared <= MAX_WORK * MAX_WORK;
}

static bool is_candidate(const graph_node *n)
{
    if (n->op->effect != EFFECT_PURE || (n->op->flags & (OPF_NO_FOLD | OPF_CALL)) || n->n_outputs == 0)
        return false;
    return rewrite_reads_constants(n);
}

/* out: one tensor for each result. */
static bool evaluate(compiler *c, const graph_node *n, const tensor_data **out)
{
    if (c->evaluate && n->n_inputs) {
        out[0] = fold_uniform(c, n);
        if (out[0])
            return true;
    }
    if (!c->evaluate || !small_enough(n) || !soon_done(n) || !c->evaluate(c, n, out))
        return false;
    for (uint32_t i = 0; i < n->n_outputs; i++)
        if (!out[i])
            return false;
    return true;
}

static bool fold_node(compiler *c, const graph_node *n, const tensor_data **out)
{
    if (strcmp(n->op->name, "shape_of") == 0 || strcmp(n->op->name, "size_of") == 0)
        return (out[0] = fold_shape(c, n)) != NULL;
    if (!is_candidate(n))
        return false;
    const tensor_data *x = n->n_inputs ? graph_constant(n->inputs[0]) : NULL;
    if (x && n->n_outputs == 1 && (out[0] = fold_by_hand(c, n, x)) != NULL)
        return true;
    return evaluate(c, n, out);
}

/* --- numbers that stay quantised --- */

/* Constants of so few bytes in f32 become floats wherever they are read; with vectors, whose layouts and rewrites see
 * constants and no dequantize, more do. */
#define FEW_BYTES         1024
#define FEW_VECTOR_BYTES 16384

typedef struct folder {
    rewriter r;
    const pass_options *o;
    ptr_map floats;   /* dequantised value -> position of a reader that takes nothing but floats */
    ptr_map operands; /* the same of one that is no convolution or product */
} folder;

/* Convolutions and products read operand 1 as it is stored, products the other one as well; not where weights are
 * packed for vectors: a conversion for each product costs more time than their memory is worth. */
static bool is_weights(const folder *x, const graph_node *n, uint32_t i)
{
    const char *op = n->op->name;
    const target *t = x->o->target;
    if (!t || t->vector_bytes > 0 || t->address_bits > 32 || n->n_inputs < 2 || n->inputs[0] == n->inputs[1])
        return false;
    return (i < 2 && strcmp(op, "nn.matmul") == 0) || (i == 1 && strncmp(op, "nn.conv", 7) == 0);
}

/* Element by element beside a value of the run: part of that kernel. */
static bool is_operand(const folder *x, const graph_node *n, uint32_t i)
{
    bool alone = x->o->offload != NULL; /* patterns of other targets look for constants */
    for (uint32_t k = 0; k < n->n_inputs; k++)
        alone = alone && (k == i || !n->inputs[k] || graph_constant(n->inputs[k]) || n->inputs[k] == n->inputs[i]);
    return (n->op->cls == CLASS_ELEMENTWISE || n->op->cls == CLASS_BROADCAST) && n->n_outputs == 1 && !alone &&
           !(n->op->flags & (OPF_NO_FUSE | OPF_SHAPE_ARGS)) && n->op->effect == EFFECT_PURE;
}

/* One part of values that kernels make where they stand in the result: so does its own. */
static bool is_part(const graph_node *n, uint32_t i)
{
    bool all = strcmp(n->op->name, "concatenate") == 0;
    for (uint32_t k = 0; k < n->n_inputs && all; k++) {
        const graph_value *v = n->inputs[k];
        all = k == i || (v != n->inputs[i] && v->def && !graph_constant(v) && rewrite_uses(v) == 1 &&
                         !(v->def->op->flags & OPF_VIEW));
    }
    return all;
}

static void find_readers(folder *x, const graph_func *f)
{
    ptr_map_init(&x->floats, &x->r.c->mem);
    ptr_map_init(&x->operands, &x->r.c->mem);
    for (uint32_t i = 0; i < f->nodes.len; i++) {
        const graph_node *n = f->nodes.data[i];
        for (uint32_t k = 0; k < n->n_inputs; k++)
            if (rewrite_is_op(n->inputs[k], "qnn.dequantize") && !is_weights(x, n, k))
                ptr_map_set(is_operand(x, n, k) || is_part(n, k) ? &x->operands : &x->floats, n->inputs[k], i);
    }
    for (uint32_t i = 0; i < f->results.len; i++)
        if (f->results.data[i]->def)
            ptr_map_set(&x->operands, f->results.data[i], 0);
}

static bool is_stored(const folder *x, const graph_node *n)
{
    const tensor_data *w = strcmp(n->op->name, "qnn.dequantize") == 0 ? graph_constant(n->inputs[0]) : NULL;
    return x->o->target && w && w->kind == TENSOR_DENSE && w->count > 1 && dtype_bits(w->dt) <= 16;
}

static bool is_large(const folder *x, const graph_node *n)
{
    return type_bytes(&n->outputs[0]->type) > (x->o->target->vector_bytes > 0 ? FEW_VECTOR_BYTES : FEW_BYTES);
}

/* Constants that are stored in less than 32 bits stay so: they are dequantised where they are read, in the kernels of
 * the nodes that read them. */
static bool stays_quantised(const folder *x, const graph_node *n)
{
    uint32_t at;
    if (!is_stored(x, n) || ptr_map_get(&x->floats, n->outputs[0], &at))
        return false;
    return !ptr_map_get(&x->operands, n->outputs[0], &at) || is_large(x, n);
}

/* A note of a large constant that becomes floats. */
static void tell(const folder *x, const graph_node *n)
{
    uint32_t at;
    compiler *c = x->r.c;
    if (!is_stored(x, n) || !is_large(x, n) || !ptr_map_get(&x->floats, n->outputs[0], &at))
        return;
    const graph_node *reader = x->r.f->nodes.data[at];
    const char *why = arena_printf(&c->mem, "its constant of %u bits becomes floats, which its kernel reads",
                                   dtype_bits(graph_constant(n->inputs[0])->dt));
    graph_note note = {"fold-constants", reader->op->name, reader->outputs[0]->name, why, reader->loc};
    vec_push(&c->mem, &x->r.f->module->notes, note);
}

/* A zero point that is 0 everywhere is no operand of what stays. */
static void drop_zero_point(graph_node *n)
{
    double zero = 1;
    if (n->n_inputs == 3 && n->inputs[2] && rewrite_is_uniform(graph_constant(n->inputs[2]), &zero) && zero == 0)
        n->n_inputs = 2;
}

/* --- the walk --- */

/* Each result keeps its value and gets a constant node of its own. */
static void replace(rewriter *r, graph_node *n, const tensor_data *const *values)
{
    for (uint32_t i = 0; i < n->n_outputs; i++) {
        graph_node *k = arena_new(&r->c->mem, graph_node);
        graph_value *v = n->outputs[i];
        *k = (graph_node){.n_outputs = 1, .loc = n->loc};
        k->outputs = arena_copy(&r->c->mem, &v, sizeof v, _Alignof(graph_value *));
        rewrite_to_constant(r->c, k, values[i]);
        v->def = k;
        v->index = 0;
        rewrite_keep(r, k);
    }
}

static bool is_static(const graph_node *n)
{
    for (uint32_t i = 0; i < n->n_outputs; i++)
        if (n->outputs[i]->type.kind != TYPE_TENSOR || !shape_is_static(n->outputs[i]->type.shape))
            return false;
    return true;
}

static void run(compiler *c, graph_func *f, const pass_options *o, bool *ok)
{
    folder x = {.o = o};
    rewriter *r = &x.r;
    rewrite_begin(r, c, f);
    find_readers(&x, f);
    for (uint32_t i = 0; i < f->nodes.len; i++) {
        graph_node *n = f->nodes.data[i];
        const tensor_data *few[4] = {NULL}, **out = few;
        if (n->n_outputs > sizeof few / sizeof *few)
            out = arena_array(&c->mem, const tensor_data *, n->n_outputs);
        /* operands that have become constants may settle a shape that depended on data */
        if (!is_static(n) && !graph_infer_node(c, n))
            *ok = false;
        bool stays = stays_quantised(&x, n);
        if (stays)
            drop_zero_point(n);
        if (n->op->infer != infer_constant && !stays && fold_node(c, n, out)) {
            tell(&x, n);
            replace(r, n, out);
        } else
            rewrite_keep(r, n);
    }
    rewrite_end(r);
}

bool graph_pass_fold(compiler *c, graph_module *m, const pass_options *o)
{
    bool ok = true;
    for (uint32_t i = 0; i < m->funcs.len; i++)
        if (!graph_is_fixed(m->funcs.data[i]))
            run(c, m->funcs.data[i], o, &ok);
    return ok;
}
