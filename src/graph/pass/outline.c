/* SPDX-License-Identifier: Apache-2.0 */
/* From a group of nodes to a primitive function and a call of it. The nodes are copied with their locations; values
 * keep their names inside the function, and what leaves the group stays the same value object outside. */
#include "graph/pass/fuse.h"
#include "base/ptr_map.h"

#include <stdlib.h>
#include <string.h>

#define MAX_NAME      80u
#define MAX_SHAPE_ARG 64

bool fuse_takes_constant(bool literals, const graph_node *n, uint32_t i)
{
    const tensor_data *t = graph_constant(n->inputs[i]);
    if (!t)
        return false;
    if (i > 0 && (n->op->flags & OPF_SHAPE_ARGS) && t->count <= MAX_SHAPE_ARG)
        return true;
    return literals &&
           (t->count == 1 || t->kind == TENSOR_SPLAT); /* level 0 leaves constants where the model has them */
}

typedef struct outliner {
    compiler *c;
    bool literals;
    graph_func *prim;
    arena scratch;
    ptr_map at; /* outer value -> position in inner */
    VEC(graph_value *) inner;
    VEC(graph_value *) operands; /* of the call, one for each parameter */
} outliner;

static void map(outliner *o, const graph_value *outer, graph_value *inner)
{
    ptr_map_set(&o->at, outer, o->inner.len);
    vec_push(&o->scratch, &o->inner, inner);
}

static graph_value *operand(outliner *o, const graph_node *n, uint32_t i)
{
    graph_value *v = n->inputs[i], *inner;
    uint32_t at = 0;
    if (!v)
        return NULL;
    if (ptr_map_get(&o->at, v, &at))
        return o->inner.data[at];
    if (fuse_takes_constant(o->literals, n, i)) {
        inner = graph_add_constant(o->prim, graph_constant(v), v->name, v->def->loc);
    } else {
        inner = graph_add_param(o->prim, v->name, v->type);
        vec_push(&o->scratch, &o->operands, v);
    }
    map(o, v, inner);
    return inner;
}

/* The declared type is what a relation falls back on when an operand that was constant outside is a parameter here. */
static void copy_node(outliner *o, const graph_node *n)
{
    graph_value **in = arena_array(&o->scratch, graph_value *, n->n_inputs);
    const char **names = arena_array(&o->scratch, const char *, n->n_outputs);
    for (uint32_t i = 0; i < n->n_inputs; i++)
        in[i] = operand(o, n, i);
    for (uint32_t i = 0; i < n->n_outputs; i++)
        names[i] = n->outputs[i]->name;
    graph_node *k = graph_add_node(o->prim, n->op, n->n_inputs, in, n->n_attrs, n->attrs, n->n_outputs, names, n->loc);
    for (uint32_t i = 0; i < n->n_outputs; i++) {
        k->outputs[i]->type = n->outputs[i]->type;
        k->outputs[i]->declared =
            n->outputs[i]->declared.kind == TYPE_NONE ? n->outputs[i]->type : n->outputs[i]->declared;
        map(o, n->outputs[i], k->outputs[i]);
    }
}

/* --- names --- */

/* fused_nn_conv2d_add_nn_relu; long ones are cut and get a hash of the whole. */
static const char *group_name(compiler *c, const graph_func *f, const fuse_group *g)
{
    writer w;
    writer_init(&w, &c->mem);
    w_str(&w, "fused");
    for (uint32_t i = 0; i < g->nodes.len; i++)
        w_fmt(&w, "_%s", f->nodes.data[g->nodes.data[i]]->op->name);
    for (size_t i = 0; i < w.len; i++)
        if (w.data[i] == '.')
            w.data[i] = '_';
    if (w.len <= MAX_NAME)
        return w.data;
    uint64_t h = 14695981039346656037u; /* FNV-1a */
    for (size_t i = 0; i < w.len; i++)
        h = (h ^ (unsigned char)w.data[i]) * 1099511628211u;
    return arena_printf(&c->mem, "%.*s_%016llx", (int)MAX_NAME, w.data, (unsigned long long)h);
}

/* --- functions --- */

static int by_position(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return x < y ? -1 : x > y;
}

/* Results that nobody uses are left out, unless the kernel makes them all anyway, or none is used. */
static bool leaves(const graph_node *tip, const graph_value *v)
{
    bool any = false;
    for (uint32_t i = 0; i < tip->n_outputs; i++)
        any |= tip->outputs[i]->mark != 0;
    return v->mark != 0 || !any || tip->op->cls == CLASS_OPAQUE;
}

static graph_node *make_call(outliner *o, graph_func *f, graph_node *tip, src_loc loc)
{
    compiler *c = o->c;
    attr callee = attr_func(c, "callee", o->prim);
    graph_node *call =
        graph_new_node(f, graph_find_op(c, "call"), o->operands.len, o->operands.data, 1, &callee, 0, NULL, loc);
    call->outputs = arena_array(&c->mem, graph_value *, tip->n_outputs);
    for (uint32_t i = 0; i < tip->n_outputs; i++) {
        graph_value *v = tip->outputs[i];
        uint32_t at = 0;
        if (!leaves(tip, v) || !ptr_map_get(&o->at, v, &at))
            continue;
        graph_add_result(o->prim, o->inner.data[at]);
        call->outputs[call->n_outputs++] = v;
    }
    for (uint32_t i = 0; i < call->n_outputs; i++) {
        call->outputs[i]->def = call;
        call->outputs[i]->index = i;
    }
    return call;
}

graph_node *fuse_outline(compiler *c, graph_func *f, const fuse_group *g, bool literals)
{
    outliner o = {.c = c, .literals = literals};
    arena_init(&o.scratch, &c->mem);
    ptr_map_init(&o.at, &o.scratch);
    qsort(g->nodes.data, g->nodes.len, sizeof *g->nodes.data, by_position);
    o.prim = graph_func_new(f->module, group_name(c, f, g));
    vec_push(&c->mem, &o.prim->attrs, attr_int(c, "primitive", 1));
    for (uint32_t i = 0; i < g->nodes.len; i++)
        copy_node(&o, f->nodes.data[g->nodes.data[i]]);
    graph_node *tip = f->nodes.data[g->tip];
    graph_node *call = make_call(&o, f, tip, g->anchor ? g->anchor->loc : tip->loc);
    arena_free(&o.scratch);
    return call;
}
