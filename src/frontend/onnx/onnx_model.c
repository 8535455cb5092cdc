/* SPDX-License-Identifier: Apache-2.0 */
/* A model to a module: versions, inputs, nodes, results. Bytes stay in memory: constants point into them. */
#include "frontend/onnx/onnx_import.h"

#include <string.h>

static bool check_versions(onnx_importer *im)
{
    const pb_model *m = im->model;
    diags *d = &im->c->diags;
    if (!m->graph) {
        diag_error(d, DIAG_FORMAT, onnx_loc(im), "not an ONNX model: it holds no graph");
        diag_hint(d, "is it an ONNX model, and was it copied as a whole?");
        return false;
    }
    if (m->ir_version < ONNX_MIN_IR) {
        diag_error(d, DIAG_UNSUPPORTED, onnx_loc(im), "IR version %lld is too old; version %d and later are read",
                   (long long)m->ir_version, ONNX_MIN_IR);
        diag_hint(d, "convert the model with onnx.version_converter");
        return false;
    }
    if (m->opset_import.len == 0)
        return diag_error(d, DIAG_FORMAT, onnx_loc(im), "the model imports no operator set");
    return onnx_read_opsets(im, m->opset_import.len, m->opset_import.data, &im->opsets);
}

/* Names that made-up names must keep clear of. */
static void reserve_names(onnx_importer *im, const pb_graph *g)
{
    arena *a = &im->c->mem;
    for (uint32_t i = 0; i < g->input.len; i++)
        onnx_map_set(a, &im->reserved, onnx_name(im, g->input.data[i]->name), "");
    for (uint32_t i = 0; i < g->output.len; i++)
        onnx_map_set(a, &im->reserved, onnx_name(im, g->output.data[i]->name), "");
    for (uint32_t i = 0; i < g->initializer.len; i++)
        onnx_map_set(a, &im->reserved, onnx_name(im, g->initializer.data[i]->name), "");
    for (uint32_t i = 0; i < g->node.len; i++)
        for (uint32_t k = 0; k < g->node.data[i]->output.len; k++)
            onnx_map_set(a, &im->reserved, onnx_name(im, g->node.data[i]->output.data[k]), "");
}

/* --- inputs --- */

static bool check_binds(onnx_importer *im, const pb_graph *g)
{
    for (uint32_t i = 0; im->o && i < im->o->n_binds; i++) {
        bool found = false;
        for (uint32_t k = 0; k < g->input.len; k++)
            found |= strcmp(onnx_name(im, g->input.data[k]->name), im->o->binds[i].input) == 0;
        if (!found)
            return diag_error(&im->c->diags, DIAG_USAGE, onnx_loc(im), "--bind: the model has no input '%s'",
                              im->o->binds[i].input);
    }
    return true;
}

/* Reads input i's type; one that is there already or has none of its own makes poison. */
static bool read_input(onnx_env *env, const pb_value_info *from, type *out)
{
    onnx_importer *im = env->im;
    const char *name = onnx_name(im, from->name);
    if (!*name || onnx_map_get(&env->scope->values, name))
        return diag_error(&im->c->diags, DIAG_FORMAT, onnx_loc(im),
                          *name ? "two inputs are named '%s'" : "an input has no name%s", name);
    if (onnx_is_list_type(from->type) || (from->type && from->type->map_type))
        return true;
    if (onnx_type_read_input(im, from->type, name, out) &&
        (out->dt != DT_STRING || onnx_text_input(im, name, out)) && onnx_check_input_type(im, name, out))
        return true;
    onnx_define(env, name, &im->poison);
    return false;
}

/* The element type that the model states; types that kernels have none of are bytes in `type`. */
static dtype declared_element(const pb_value_info *v)
{
    dtype dt = DT_NONE;
    return v->type && v->type->tensor_type && dtype_from_onnx(v->type->tensor_type->elem_type, &dt) ? dt : DT_NONE;
}

/* Bound inputs with open extents come behind the others, which tell them. */
static bool add_inputs(onnx_env *env, const pb_graph *g)
{
    onnx_importer *im = env->im;
    struct late {
        const char *name;
        type t;
        dtype element;
    } *late = arena_array(&im->c->mem, struct late, g->input.len + 1u);
    uint32_t n_late = 0, place = 0;
    bool ok = true;
    for (uint32_t i = 0; i < g->input.len; i++) {
        const char *name = onnx_name(im, g->input.data[i]->name);
        graph_value *v = NULL;
        type t = {0};
        if (onnx_map_get(&env->scope->initializers, name))
            continue;
        if (!read_input(env, g->input.data[i], &t)) {
            ok = false;
            continue;
        }
        bool waits = onnx_bound_numbers(im, name) && t.kind == TYPE_TENSOR && !shape_is_static(t.shape);
        if (waits)
            late[n_late++] = (struct late){name, t, declared_element(g->input.data[i])};
        const bool list = onnx_is_list_type(g->input.data[i]->type), map = t.kind != TYPE_TENSOR && !list;
        bool good = waits || (list  ? onnx_list_input(env, g->input.data[i], place, &v)
                              : map ? onnx_map_input(env, g->input.data[i], place, &v)
                                    : onnx_add_input(env, name, t, declared_element(g->input.data[i]), &v));
        place += list || map || !onnx_bound_numbers(im, name);
        ok = ok && good;
        onnx_define(env, name, good && !waits ? v : &im->poison);
    }
    for (uint32_t i = 0; ok && i < n_late; i++) {
        graph_value *v = NULL;
        ok = onnx_add_input(env, late[i].name, late[i].t, late[i].element, &v);
        onnx_define(env, late[i].name, ok ? v : &im->poison);
    }
    return ok && check_binds(im, g);
}

static bool add_results(onnx_env *env, const pb_graph *g)
{
    onnx_importer *im = env->im;
    bool ok = true;
    for (uint32_t i = 0; i < g->output.len; i++) {
        const char *name = onnx_name(im, g->output.data[i]->name);
        graph_value *v = onnx_lookup(env, name);
        if (!v)
            ok = diag_error(&im->c->diags, DIAG_FORMAT, onnx_loc(im), "nothing makes the model's output '%s'", name);
        if (v == &im->poison && im->c->diags.errors == 0 && im->missing.len == 0) /* a model of less is none */
            ok = diag_error(&im->c->diags, DIAG_INTERNAL, onnx_loc(im), "output '%s' was not read", name);
        if (!v || v == &im->poison)
            continue;
        const pb_type *declared = g->output.data[i]->type; /* a sequence of maps is a tensor here (ZipMap) */
        if (onnx_list_of(im, v) || (onnx_is_list_type(declared) && onnx_tensor_inside(declared))) {
            ok = onnx_list_output(env, g, i, v) && ok;
            continue;
        }
        const dtype element = declared_element(g->output.data[i]), have = onnx_small_of(im, v);
        if (onnx_is_small(element) && element != have) {
            ok = diag_error(&im->c->diags, DIAG_TYPE, onnx_loc(im), "output '%s' is declared as %s, and is %s", name,
                            dtype_name(element), dtype_name(have == DT_NONE ? v->type.dt : have));
            continue;
        }
        onnx_note_labels(im, v, name);
        if (onnx_is_text(im, v))
            onnx_note_text(im, v, name, false);
        v = onnx_small_output(env, v, name);
        v = v ? onnx_named_result(env, g, v, name) : NULL;
        if (v)
            graph_add_result(env->f, v);
        ok = ok && v;
    }
    if (g->output.len == 0)
        ok = diag_error(&im->c->diags, DIAG_FORMAT, onnx_loc(im), "the model has no outputs");
    return ok;
}

/* Whoever looks at it by mistake finds a number, with as many dimensions behind it as a shape can have. */
static void make_poison(onnx_importer *im)
{
    dim *ones = arena_array(&im->c->mem, dim, TYPE_MAX_RANK);
    for (uint32_t i = 0; i < TYPE_MAX_RANK; i++)
        ones[i] = dim_const(im->c, 1);
    im->poison = (graph_value){.name = "", .type = {.kind = TYPE_TENSOR, .dt = DT_F32, .shape = {.dims = ones}}};
}

bool onnx_import(compiler *c, span bytes, const char *path, const frontend_options *o, graph_module **out)
{
    onnx_importer im = {.c = c, .o = o, .path = path, .bytes = bytes, .find_op = onnx_ops_find};
    uint32_t errors = c->diags.errors;
    pb_model *model = NULL;
    *out = NULL;
    make_poison(&im);
    if (!onnx_wire_model(c, path, bytes, &model))
        return false;
    im.model = model;
    if (!check_versions(&im) || !onnx_type_fix(&im, model->graph))
        return false;
    const pb_graph *g = model->graph;
    onnx_scope scope = {.top = true};
    im.module = graph_module_new(c);
    im.module->n_operators = g->node.len;
    onnx_env env = {.im = &im, .f = graph_func_new(im.module, "main"), .scope = &scope};
    reserve_names(&im, g);
    bool ok = onnx_import_names(&env, g);
    ok &= add_inputs(&env, g);
    if (o && o->inputs_only) {
        *out = ok ? im.module : NULL;
        return ok;
    }
    im.symbolic = o && o->fixed_shapes && onnx_is_symbolic(env.f);
    const bool keeps_unread = o && o->keeps_unread;
    diags_mark mark = diags_get_mark(&c->diags);
    if (onnx_import_nodes(&env, g->node.len, g->node.data))
        ok = add_results(&env, g) && ok;
    else
        ok = false;
    if (keeps_unread)
        diags_reset(&c->diags, mark);
    else if (!onnx_report_needs(&im, env.f, mark) || !ok || c->diags.errors != errors)
        return false;
    /* Initializers and shapes that were read at import and that no node needs. The model's own dead nodes stay. */
    for (uint32_t i = 0; i < im.module->funcs.len; i++)
        graph_drop_constants(im.module->funcs.data[i]);
    *out = im.module;
    return true;
}
