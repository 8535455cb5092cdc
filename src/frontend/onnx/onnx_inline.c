/* SPDX-License-Identifier: Apache-2.0 */
/* Bodies that are imported in place: model-local functions and the branch of an If that is known to be taken. Inside,
 * names are the body's own; its results take the names of the node that is replaced. */
#include "frontend/onnx/onnx_import.h"

#include <string.h>

static const char *function_key(onnx_importer *im, const char *domain, const char *name, const char *overload)
{
    return intern(im->c->names, arena_printf(&im->c->mem, "%s\n%s\n%s", domain, name, overload));
}

/* Of functions that are called the same, the first counts. */
static void index_functions(onnx_importer *im)
{
    for (uint32_t i = 0; i < im->model->functions.len; i++) {
        const pb_function *f = im->model->functions.data[i];
        const char *key =
            function_key(im, onnx_domain(im, f->domain), onnx_name(im, f->name), onnx_name(im, f->overload));
        if (!onnx_map_get(&im->functions, key))
            onnx_map_set(&im->c->mem, &im->functions, key, f);
    }
}

const pb_function *onnx_find_function(onnx_importer *im, const char *domain, const pb_node *node)
{
    if (!im->model || im->model->functions.len == 0)
        return NULL;
    if (im->functions.len == 0)
        index_functions(im);
    const char *name = onnx_name(im, node->op_type), *overload = onnx_name(im, node->overload);
    return onnx_map_get(&im->functions, function_key(im, domain, name, overload));
}

static bool enter(onnx_node *n)
{
    if (n->im->nesting == ONNX_MAX_NESTING)
        return onnx_fail(n, DIAG_UNSUPPORTED, "functions and branches are nested more than %u deep", ONNX_MAX_NESTING);
    n->im->nesting++;
    return true;
}

/* Result i of the node is `inner` of the body. */
static void rename_result(onnx_node *n, onnx_scope *s, uint32_t i, const char *inner)
{
    arena *a = &n->c->mem;
    const char *outer = i < n->n_out ? onnx_name(n->im, n->pb->output.data[i]) : "";
    const void *declared = *outer ? onnx_map_get(&n->env->scope->declared, outer) : NULL;
    if (*outer && !onnx_map_get(&s->renamed, inner))
        onnx_map_set(a, &s->renamed, inner, n->out_names[i]);
    if (declared)
        onnx_map_set(a, &s->declared, inner, declared);
}

static void take_result(onnx_node *n, onnx_env *body, uint32_t i, const char *inner, bool *ok)
{
    if (i >= n->n_out || !n->out_names[i])
        return;
    graph_value *v = onnx_lookup(body, inner);
    if (!v || v == &n->im->absent)
        *ok = onnx_fail(n, DIAG_FORMAT, "nothing in the body makes its result '%s'", inner);
    else if (v == &n->im->poison)
        *ok = false; /* told where it failed */
    else
        n->out[i] = v;
}

bool onnx_inline_branch(onnx_node *n, const pb_graph *g)
{
    onnx_scope scope = {.parent = n->env->scope};
    onnx_env body = {.im = n->im, .f = n->f, .scope = &scope, .frame = n->env->frame};
    if (g->output.len < n->n_out)
        return onnx_fail(n, DIAG_FORMAT, "the branch has %u results, the node %u", g->output.len, n->n_out);
    if (!enter(n))
        return false;
    bool ok = onnx_import_names(&body, g);
    for (uint32_t i = 0; i < g->output.len; i++)
        rename_result(n, &scope, i, onnx_name(n->im, g->output.data[i]->name));
    ok = ok && onnx_import_nodes(&body, g->node.len, g->node.data);
    for (uint32_t i = 0; ok && i < g->output.len; i++)
        take_result(n, &body, i, onnx_name(n->im, g->output.data[i]->name), &ok);
    n->im->nesting--;
    return ok;
}

/* A body that imports no operator sets takes those of its caller. */
static bool read_frame(onnx_node *n, const pb_function *fn, onnx_frame *out)
{
    *out = (onnx_frame){.fn = fn, .attrs = n->attrs, .n_attrs = n->n_attrs, .loc = n->loc, .caller = n->env->frame};
    for (const onnx_frame *f = n->env->frame; f; f = f->caller)
        if (f->fn == fn)
            return onnx_fail(n, DIAG_FORMAT, "function '%s' calls itself", onnx_name(n->im, fn->name));
    if (n->n_in > fn->input.len || n->n_out > fn->output.len)
        return onnx_fail(n, DIAG_FORMAT, "function '%s' has %u inputs and %u results; the node has %u and %u",
                         onnx_name(n->im, fn->name), fn->input.len, fn->output.len, n->n_in, n->n_out);
    if (fn->opset_import.len == 0)
        out->opsets = n->env->frame ? n->env->frame->opsets : n->im->opsets;
    return onnx_read_opsets(n->im, fn->opset_import.len, fn->opset_import.data, &out->opsets);
}

bool onnx_inline_call(onnx_node *n, const pb_function *fn)
{
    onnx_scope scope = {0};
    onnx_frame frame;
    onnx_env body = {.im = n->im, .f = n->f, .scope = &scope, .frame = &frame};
    if (!read_frame(n, fn, &frame) || !enter(n))
        return false;
    for (uint32_t i = 0; i < fn->input.len; i++)
        onnx_define(&body, onnx_name(n->im, fn->input.data[i]), onnx_in(n, i) ? onnx_in(n, i) : &n->im->absent);
    for (uint32_t i = 0; i < fn->value_info.len; i++)
        onnx_map_set(&n->c->mem, &scope.declared, onnx_name(n->im, fn->value_info.data[i]->name),
                     fn->value_info.data[i]->type);
    for (uint32_t i = 0; i < fn->output.len; i++)
        rename_result(n, &scope, i, onnx_name(n->im, fn->output.data[i]));
    bool ok = onnx_import_nodes(&body, fn->node.len, fn->node.data);
    for (uint32_t i = 0; ok && i < fn->output.len; i++)
        take_result(n, &body, i, onnx_name(n->im, fn->output.data[i]), &ok);
    n->im->nesting--;
    return ok;
}
