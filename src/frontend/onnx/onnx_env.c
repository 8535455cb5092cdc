/* SPDX-License-Identifier: Apache-2.0 */
/* What is known around a node: the names in scope, initializers that become constants when somebody asks for them, and
 * the operator sets, functions of the model. */
#include "frontend/onnx/onnx_import.h"

#include <string.h>

src_loc onnx_node_loc(const onnx_env *env, const pb_node *p, uint32_t index)
{
    src_loc l = onnx_loc(env->im);
    if (env->frame)
        return env->frame->loc;
    l.node = onnx_name(env->im, p->name);
    l.op = onnx_name(env->im, p->op_type);
    l.node_index = (int32_t)index;
    return l;
}

/* --- names --- */

const char *onnx_clear_of_main(const onnx_env *env, const char *name)
{
    while (!env->scope->top && *name && onnx_map_get(&env->im->reserved, name))
        name = intern(env->im->c->names, arena_printf(&env->im->c->mem, "%s_", name));
    return name;
}

static graph_value *make_initializer(onnx_env *env, const char *name, const pb_tensor *pb)
{
    const src_loc loc = env->frame ? env->frame->loc : onnx_loc(env->im);
    const char *const *strings = NULL;
    const tensor_data *t;
    dtype dt;
    if (dtype_from_onnx(pb->data_type, &dt) && dt == DT_STRING)
        t = onnx_read_strings(env->im, name, pb, &strings);
    else
        t = onnx_tensor_read(env->im, pb, loc);
    graph_value *v = &env->im->poison;
    if (t)
        v = graph_add_constant(env->f, t, onnx_clear_of_main(env, name), onnx_loc(env->im));
    if (t && strings)
        onnx_set_strings(env->im, v, (uint32_t)t->count, strings);
    if (t)
        onnx_set_small(env->im, v, dt);
    onnx_define(env, name, v);
    return v;
}

graph_value *onnx_lookup(onnx_env *env, const char *name)
{
    for (onnx_scope *s = env->scope; s; s = s->parent) {
        const void *v = onnx_map_get(&s->values, name);
        if (v)
            return (graph_value *)(uintptr_t)v;
        const pb_tensor *pb = onnx_map_get(&s->initializers, name);
        if (pb) {
            onnx_env outer = *env;
            outer.scope = s;
            return make_initializer(&outer, name, pb);
        }
    }
    return NULL;
}

/* Tools that merge models leave initializers behind that are there twice: equal ones are one. */
static bool is_other_tensor(onnx_env *env, const char *name, const pb_tensor *pb)
{
    const pb_tensor *first = onnx_map_get(&env->scope->initializers, name);
    if (!first)
        return false;
    const src_loc loc = onnx_loc(env->im);
    const tensor_data *a = onnx_tensor_read(env->im, first, loc), *b = onnx_tensor_read(env->im, pb, loc);
    const bool differ = first->data_type != pb->data_type; /* small types share bytes */
    return a && b && (differ || !tensor_equal(a, b)); /* one that cannot be read is reported by the reader */
}

bool onnx_import_names(onnx_env *env, const pb_graph *g)
{
    onnx_importer *im = env->im;
    arena *a = &im->c->mem;
    bool ok = true;
    for (uint32_t i = 0; i < g->initializer.len; i++) {
        const char *name = onnx_name(im, g->initializer.data[i]->name);
        if (is_other_tensor(env, name, g->initializer.data[i]))
            ok = diag_error(&im->c->diags, DIAG_FORMAT, onnx_loc(im), "two initializers are named '%s'", name);
        onnx_map_set(a, &env->scope->initializers, name, g->initializer.data[i]);
    }
    if (g->sparse_initializer.len > 0)
        ok = diag_error(&im->c->diags, DIAG_UNSUPPORTED, onnx_loc(im),
                        "sparse initializers are not supported yet (the model has %u)", g->sparse_initializer.len);
    for (uint32_t i = 0; i < g->value_info.len; i++)
        onnx_map_set(a, &env->scope->declared, onnx_name(im, g->value_info.data[i]->name), g->value_info.data[i]->type);
    for (uint32_t i = 0; i < g->output.len; i++) {
        onnx_map_set(a, &env->scope->declared, onnx_name(im, g->output.data[i]->name), g->output.data[i]->type);
        onnx_map_set(a, &env->scope->outputs, onnx_name(im, g->output.data[i]->name), g->output.data[i]);
    }
    return ok;
}

/* --- operator sets --- */

bool onnx_read_opsets(onnx_importer *im, uint32_t n, pb_opset *const *list, onnx_opsets *out)
{
    bool ok = true;
    for (uint32_t i = 0; i < n; i++) {
        onnx_opset o = {onnx_domain(im, list[i]->domain), list[i]->version};
        if (!*o.domain && (o.version < 1 || o.version > ONNX_MAX_OPSET)) {
            ok = diag_error(&im->c->diags, DIAG_UNSUPPORTED, onnx_loc(im),
                            "operator set version %lld of ai.onnx is not known; versions 1 to %d are",
                            (long long)o.version, ONNX_MAX_OPSET);
            diag_hint(&im->c->diags, "export the model for operator set %d, or convert it (onnx.version_converter)",
                      ONNX_MAX_OPSET);
        }
        vec_push(&im->c->mem, out, o);
    }
    return ok;
}

/* The version of a set that a model uses; 0: it is not imported. Sets that onnxruntime has itself need no import. */
int64_t onnx_opset_version(const onnx_env *env, const char *domain)
{
    static const onnx_opset always[] = {{"com.microsoft", 1}, {"com.microsoft.nchwc", 1}, {"ai.onnx.ml", 5},
                                        {"ai.onnx.preview.training", 1}};
    const onnx_opsets *o = env->frame ? &env->frame->opsets : &env->im->opsets;
    for (uint32_t i = 0; i < o->len; i++)
        if (o->data[i].domain == domain)
            return o->data[i].version;
    for (size_t i = 0; i < sizeof always / sizeof *always; i++)
        if (strcmp(always[i].domain, domain) == 0)
            return always[i].version;
    return 0;
}

const char *onnx_metadata(onnx_importer *im, const char *key)
{
    const pb_model *m = im->model;
    for (uint32_t i = 0; m && i < m->metadata_props.len; i++)
        if (strcmp(onnx_name(im, m->metadata_props.data[i]->key), key) == 0)
            return onnx_name(im, m->metadata_props.data[i]->value);
    return NULL;
}

/* --- functions of the model --- */

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
