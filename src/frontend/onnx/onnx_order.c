/* SPDX-License-Identifier: Apache-2.0 */
/* Sorts the nodes of a graph so that each follows what it depends on, bodies of control flow included: files may have
 * them in any order. Finds out what bodies take from the graph around them. */
#include "frontend/onnx/onnx_import.h"

#include <string.h>

/* Names that a body makes itself, and those of the bodies around it. */
typedef struct own_names {
    onnx_map names;
    const struct own_names *outer;
} own_names;

static void note_own(onnx_importer *im, const pb_graph *g, onnx_map *own)
{
    arena *a = &im->c->mem;
    for (uint32_t i = 0; i < g->initializer.len; i++)
        onnx_map_set(a, own, onnx_name(im, g->initializer.data[i]->name), "");
    for (uint32_t i = 0; i < g->input.len; i++)
        onnx_map_set(a, own, onnx_name(im, g->input.data[i]->name), "");
    for (uint32_t i = 0; i < g->node.len; i++)
        for (uint32_t k = 0; k < g->node.data[i]->output.len; k++)
            onnx_map_set(a, own, onnx_name(im, g->node.data[i]->output.data[k]), "");
}

static void visit_name(onnx_importer *im, span s, const own_names *own, onnx_visit visit, void *ctx)
{
    const char *name = onnx_name(im, s);
    if (!*name)
        return;
    for (; own; own = own->outer)
        if (onnx_map_get(&own->names, name))
            return;
    visit(ctx, name);
}

static void visit_body(onnx_importer *im, const pb_graph *g, const own_names *outer, onnx_visit visit, void *ctx)
{
    own_names own = {.outer = outer};
    note_own(im, g, &own.names);
    for (uint32_t i = 0; i < g->node.len; i++) {
        const pb_node *p = g->node.data[i];
        for (uint32_t k = 0; k < p->input.len; k++)
            visit_name(im, p->input.data[k], &own, visit, ctx);
        for (uint32_t k = 0; k < p->attribute.len; k++) {
            const pb_attribute *a = p->attribute.data[k];
            if (a->g)
                visit_body(im, a->g, &own, visit, ctx);
            for (uint32_t m = 0; m < a->graphs.len; m++)
                visit_body(im, a->graphs.data[m], &own, visit, ctx);
        }
    }
    for (uint32_t i = 0; i < g->output.len; i++)
        visit_name(im, g->output.data[i]->name, &own, visit, ctx);
}

void onnx_visit_captures(onnx_importer *im, const pb_graph *g, onnx_visit visit, void *ctx)
{
    visit_body(im, g, NULL, visit, ctx);
}

typedef struct order {
    onnx_importer *im;
    pb_node *const *nodes;
    uint32_t n;
    onnx_map makers; /* name -> address in `marks` of the node that makes it */
    uint8_t *marks;  /* 0 new, 1 on the way, 2 placed */
    bool *again;     /* a Constant whose name another constant has already */
    uint32_t *list;  /* the order */
    uint32_t len;
    VEC(uint32_t) stack;
    VEC(uint32_t) needs; /* makers that the node at hand waits for */
} order;

static void need_name(void *ctx, const char *name)
{
    order *o = ctx;
    const uint8_t *mark = onnx_map_get(&o->makers, name);
    if (mark && *mark != 2)
        vec_push(&o->im->c->mem, &o->needs, (uint32_t)(mark - o->marks));
}

static void collect_needs(order *o, const pb_node *p)
{
    o->needs.len = 0;
    for (uint32_t k = 0; k < p->input.len; k++)
        if (p->input.data[k].len)
            need_name(o, onnx_name(o->im, p->input.data[k]));
    for (uint32_t k = 0; k < p->attribute.len; k++) {
        const pb_attribute *a = p->attribute.data[k];
        if (a->g)
            onnx_visit_captures(o->im, a->g, need_name, o);
        for (uint32_t m = 0; m < a->graphs.len; m++)
            onnx_visit_captures(o->im, a->graphs.data[m], need_name, o);
    }
}

static bool report_cycle(onnx_env *env, order *o, uint32_t index)
{
    const pb_node *p = o->nodes[index];
    return diag_error(&env->im->c->diags, DIAG_FORMAT, onnx_node_loc(env, p, index),
                      "the node depends on its own result '%s' (a cycle)",
                      p->output.len ? onnx_name(env->im, p->output.data[0]) : "");
}

/* Depth first without recursion; a node is placed when all that it needs is. */
static bool place(onnx_env *env, order *o, uint32_t root)
{
    arena *a = &env->im->c->mem;
    vec_push(a, &o->stack, root);
    while (o->stack.len > 0) {
        uint32_t i = vec_last(&o->stack);
        if (o->marks[i] != 2)
            collect_needs(o, o->nodes[i]);
        if (o->marks[i] == 2 || o->needs.len == 0) {
            if (o->marks[i] != 2)
                o->list[o->len++] = i;
            o->marks[i] = 2;
            (void)vec_pop(&o->stack);
            continue;
        }
        o->marks[i] = 1;
        for (uint32_t k = o->needs.len; k-- > 0;) {
            if (o->marks[o->needs.data[k]] == 1)
                return report_cycle(env, o, o->needs.data[k]);
            vec_push(a, &o->stack, o->needs.data[k]);
        }
    }
    return true;
}

static bool is_constant(onnx_importer *im, const pb_node *p)
{
    return p->output.len == 1 && strcmp(onnx_name(im, p->op_type), "Constant") == 0 && !*onnx_domain(im, p->domain);
}

static bool has_constant(const onnx_env *env, const order *o, const char *name)
{
    const uint8_t *maker = onnx_map_get(&o->makers, name);
    return maker ? is_constant(o->im, o->nodes[maker - o->marks])
                 : onnx_map_get(&env->scope->initializers, name) != NULL;
}

static bool note_makers(onnx_env *env, order *o)
{
    onnx_importer *im = env->im;
    bool ok = true;
    for (uint32_t i = 0; i < o->n; i++)
        for (uint32_t k = 0; k < o->nodes[i]->output.len; k++) {
            const char *name = onnx_name(im, o->nodes[i]->output.data[k]);
            if (!*name)
                continue;
            o->again[i] = is_constant(im, o->nodes[i]) && has_constant(env, o, name);
            if (o->again[i])
                continue;
            if (onnx_map_get(&o->makers, name) || onnx_map_get(&env->scope->values, name) ||
                onnx_map_get(&env->scope->initializers, name))
                ok = diag_error(&im->c->diags, DIAG_FORMAT, onnx_node_loc(env, o->nodes[i], i),
                                "the name '%s' is given to two values", name);
            onnx_map_set(&im->c->mem, &o->makers, name, o->marks + i);
        }
    return ok;
}

static bool keeps_shape(const char *op)
{
    static const char *const ops[] = {"Cast", "CastLike", "Identity", "Sqrt", "Exp", "Log", "Neg", "Abs", "Reciprocal"};
    for (size_t i = 0; i < sizeof ops / sizeof ops[0]; i++)
        if (strcmp(ops[i], op) == 0)
            return true;
    return false;
}

/* A declared shape holds as well for the operand of a node that keeps shapes: from the last node to the first. */
static void spread_shapes(onnx_env *env, const order *o)
{
    onnx_importer *im = env->im;
    onnx_scope *s = env->scope;
    for (uint32_t i = o->len; i-- > 0;) {
        const pb_node *p = o->nodes[o->list[i]];
        if (p->input.len == 0 || p->output.len == 0 || !keeps_shape(onnx_name(im, p->op_type)) || p->domain.len)
            continue;
        const char *in = onnx_name(im, p->input.data[0]), *out = onnx_name(im, p->output.data[0]);
        const void *t = onnx_map_get(&s->declared, out);
        t = t ? t : onnx_map_get(&s->hints, out);
        if (t && !onnx_map_get(&s->declared, in))
            onnx_map_set(&im->c->mem, &s->hints, in, t);
    }
}

bool onnx_order_nodes(onnx_env *env, uint32_t n_nodes, pb_node *const *nodes, onnx_order *out)
{
    arena *a = &env->im->c->mem;
    order o = {.im = env->im, .nodes = nodes, .n = n_nodes};
    o.marks = arena_array(a, uint8_t, n_nodes);
    o.again = arena_array(a, bool, n_nodes);
    o.list = arena_array(a, uint32_t, n_nodes);
    *out = (onnx_order){o.list, o.again};
    if (!note_makers(env, &o))
        return false;
    for (uint32_t i = 0; i < n_nodes; i++)
        if (!place(env, &o, i))
            return false;
    spread_shapes(env, &o);
    return true;
}
