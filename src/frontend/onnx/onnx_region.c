/* SPDX-License-Identifier: Apache-2.0 */
/* Branches and bodies as functions of the module. They are closed: what they see of the graph around them comes in as
 * explicit operands, the same list for both branches of an If. */
#include "frontend/onnx/onnx_import.h"

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

/* A sequence inside is one of its values inside. */
static graph_value *list_inside(onnx_region *r, const char *name, const onnx_list *l)
{
    onnx_list inside = *l;
    onnx_part *parts = arena_array(&r->n->c->mem, onnx_part, l->n + 1u);
    for (uint32_t i = 0; i < l->n; i++) {
        parts[i] = l->parts[i];
        if (parts[i].v)
            parts[i].v = onnx_region_value(r, arena_printf(&r->n->c->mem, "%s_%u", name, i), parts[i].v);
        if (parts[i].sizes)
            parts[i].sizes = onnx_region_value(r, arena_printf(&r->n->c->mem, "%s_%u_sizes", name, i), parts[i].sizes);
    }
    inside.parts = parts;
    if (l->has)
        inside.has = onnx_region_value(r, arena_printf(&r->n->c->mem, "%s_present", name), l->has);
    return onnx_list_value(r->n->im, name, inside);
}

graph_value *onnx_region_value(onnx_region *r, const char *name, graph_value *v)
{
    const onnx_list *l = onnx_list_of(r->n->im, v);
    if (l)
        return list_inside(r, intern(r->n->c->names, name), l);
    const tensor_data *t = graph_constant(v);
    graph_value *inside = t ? graph_add_constant(r->f, t, name, r->n->loc) : graph_add_param(r->f, name, v->type);
    if (!t)
        vec_push(&r->n->c->mem, &r->operands, v);
    onnx_set_small(r->n->im, inside, onnx_small_of(r->n->im, v));
    onnx_keep_strings(r->n->im, v, inside);
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

onnx_node onnx_region_node(onnx_region *r)
{
    onnx_node inside = *r->n;
    inside.f = r->f;
    inside.env = &r->env;
    return inside;
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

/* What leaves a region is bytes where it is strings: tables stay inside. */
static graph_value *text_inside(onnx_region *r, graph_value *v)
{
    onnx_node inside = onnx_region_node(r);
    v = onnx_text(&inside, v);
    r->n->failed |= inside.failed;
    return v;
}

void onnx_region_widen(onnx_region *r, uint32_t i, int64_t width)
{
    onnx_node inside = onnx_region_node(r);
    r->f->results.data[i] = onnx_text_wider(&inside, r->f->results.data[i], width);
    r->n->failed |= inside.failed;
}

void onnx_region_spread(onnx_node *n, const onnx_region *r, uint32_t from, uint32_t count, const uint32_t *of)
{
    for (uint32_t i = 0; i < count && from + i < r->f->results.len; i++) {
        const uint32_t at = of ? of[i] : i;
        if (at < n->n_out && n->out[at] && onnx_is_text(n->im, r->f->results.data[from + i]))
            onnx_set_text(n->im, n->out[at]);
    }
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
        v = ok ? text_inside(r, v) : v;
        if (ok && r->made)
            r->made[i] = v;
        if (ok && !onnx_list_of(n->im, v))
            graph_add_result(r->f, v);
        else if (ok && !r->made)
            ok = onnx_fail(n, DIAG_UNSUPPORTED, "the body's result '%s' is a sequence, which this operator does not "
                                                "make",
                           name);
        else if (!v)
            onnx_fail(n, DIAG_FORMAT, "nothing in the body makes its result '%s'", name);
    }
    n->failed |= !ok;
    return ok;
}
