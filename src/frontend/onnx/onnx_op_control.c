/* SPDX-License-Identifier: Apache-2.0 */
/* Importer of If. A constant condition picks its branch at once. Otherwise both become functions of the module, closed:
 * what they see of the graph around them comes in as explicit operands, the same list for both. */
#include "frontend/onnx/onnx_import.h"

#include <string.h>

typedef struct captures {
    onnx_node *n;
    onnx_map seen; /* outer names dealt with */
    VEC(const char *) names;
    VEC(graph_value *) values; /* constants are not passed but made again inside */
} captures;

static void capture(void *ctx, const char *name)
{
    captures *k = ctx;
    arena *a = &k->n->c->mem;
    if (onnx_map_get(&k->seen, name))
        return;
    onnx_map_set(a, &k->seen, name, "");
    graph_value *v = onnx_lookup(k->n->env, name);
    if (!v || v == &k->n->im->absent) {
        onnx_fail(k->n, DIAG_FORMAT, "the branch uses '%s', which nothing makes", name);
        return;
    }
    k->n->failed |= v == &k->n->im->poison; /* told where it failed */
    vec_push(a, &k->names, name);
    vec_push(a, &k->values, v);
}

static graph_func *import_region(onnx_node *n, const captures *k, const pb_graph *g, const char *tail)
{
    onnx_importer *im = n->im;
    onnx_scope outer = {0}, scope = {.parent = &outer};
    const char *stem = n->n_out && n->out_names[0] ? n->out_names[0] : "if";
    graph_func *f = graph_func_new(im->module, intern(n->c->names, arena_printf(&n->c->mem, "%s.%s", stem, tail)));
    onnx_env env = {.im = im, .f = f, .scope = &outer, .frame = n->env->frame};
    for (uint32_t i = 0; i < k->names.len; i++) {
        graph_value *v = k->values.data[i];
        const tensor_data *t = graph_constant(v);
        const char *name = k->names.data[i];
        onnx_define(&env, name, t ? graph_add_constant(f, t, name, n->loc) : graph_add_param(f, name, v->type));
    }
    env.scope = &scope;
    bool ok = onnx_import_names(&env, g) && onnx_import_nodes(&env, g->node.len, g->node.data);
    for (uint32_t i = 0; ok && i < g->output.len; i++) {
        graph_value *v = onnx_lookup(&env, onnx_name(im, g->output.data[i]->name));
        ok = v && v != &im->poison && v != &im->absent;
        if (ok)
            graph_add_result(f, v);
        else if (!v)
            onnx_fail(n, DIAG_FORMAT, "nothing in the branch makes its result '%s'",
                      onnx_name(im, g->output.data[i]->name));
    }
    return ok ? f : NULL;
}

static bool import_regions(onnx_node *n, graph_value *cond, const pb_graph *yes, const pb_graph *no)
{
    captures k = {.n = n};
    VEC(graph_value *) in = {0};
    onnx_visit_captures(n->im, yes, capture, &k);
    onnx_visit_captures(n->im, no, capture, &k);
    if (n->failed)
        return false;
    vec_push(&n->c->mem, &in, onnx_rank(cond) ? onnx_reshape_ints(n, cond, 0, NULL) : cond);
    for (uint32_t i = 0; i < k.values.len; i++)
        if (!graph_constant(k.values.data[i]))
            vec_push(&n->c->mem, &in, k.values.data[i]);
    graph_func *a = import_region(n, &k, yes, "then"), *b = import_region(n, &k, no, "else");
    if (!a || !b || n->failed)
        return false;
    attr at[2] = {attr_func(n->c, "then_branch", a), attr_func(n->c, "else_branch", b)};
    return onnx_results(n, (onnx_args){"if", in.len, in.data, 2, at}, n->n_out);
}

/* No kernel branches. While extents are open, the condition may still become constant. */
static bool refuse(onnx_node *n)
{
    if (!n->im->symbolic) {
        onnx_note_missing(n, n->row->domain, n->row->name, "its condition is known at run time only, ");
        onnx_note_bodies(n);
    }
    n->failed = true; /* reported for the whole model */
    return false;
}

bool onnx_op_if(onnx_node *n)
{
    graph_value *cond = onnx_in(n, 0);
    const pb_graph *yes = onnx_attr_graph(n, "then_branch"), *no = onnx_attr_graph(n, "else_branch");
    double c = 0;
    if (n->failed || !cond)
        return onnx_fail(n, DIAG_FORMAT, "an If without a condition");
    if (onnx_dtype(cond) != DT_BOOL || shape_count(cond->type.shape) != 1)
        return onnx_fail(n, DIAG_TYPE, "the condition must be one bool");
    if (yes->output.len != no->output.len || yes->output.len != n->n_out)
        return onnx_fail(n, DIAG_FORMAT, "the branches have %u and %u results, the node %u", yes->output.len,
                         no->output.len, n->n_out);
    if (onnx_float_of(cond, &c))
        return onnx_inline_branch(n, c != 0 ? yes : no);
    return n->im->o && n->im->o->fixed_shapes ? refuse(n) : import_regions(n, cond, yes, no);
}
