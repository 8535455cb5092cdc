/* SPDX-License-Identifier: Apache-2.0 */
/* A model to a module: versions, inputs, nodes, results. Bytes stay in memory: constants point into them. */
#include "frontend/onnx/onnx_import.h"
#include "base/ptr_map.h"

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

static bool check_input_type(onnx_importer *im, const char *name, const type *t)
{
    diags *d = &im->c->diags;
    if (t->kind != TYPE_TENSOR)
        return diag_error(d, DIAG_UNSUPPORTED, onnx_loc(im),
                          "input '%s' is not a tensor; only tensors are supported yet", name);
    if (!dtype_usable(t->dt))
        return diag_error(d, DIAG_UNSUPPORTED, onnx_loc(im), "input '%s': element type %s is not supported yet", name,
                          dtype_name(t->dt));
    if (t->shape.rank < 0 && !(im->o && im->o->inputs_only)) {
        diag_error(d, DIAG_UNSUPPORTED, onnx_loc(im), "input '%s' has no shape", name);
        diag_hint(d, "give it one: --shape %s=1x3x224x224", name);
        return false;
    }
    return true;
}

/* --- inputs that are constants --- */

/* The numbers that --bind gives an input; NULL: none. */
static const char *bound_numbers(const onnx_importer *im, const char *name)
{
    for (uint32_t i = 0; im->o && i < im->o->n_binds; i++)
        if (strcmp(im->o->binds[i].input, name) == 0)
            return im->o->binds[i].numbers;
    return NULL;
}

/* Axis `axis` of a type as i64[1]: a constant, or what another input has; NULL: no other one has it. */
static graph_value *extent_value(onnx_env *env, const type *t, int32_t axis)
{
    compiler *c = env->im->c;
    const graph_func *f = env->f;
    int64_t *n = arena_new(&c->mem, int64_t), one = 1;
    if (dim_is_const(t->shape.dims[axis], n))
        return graph_add_constant(env->f, tensor_dense(c, DT_I64, 1, &one, n), "", onnx_loc(env->im));
    for (uint32_t i = 0; i < f->params.len; i++)
        for (int32_t k = 0; k < f->params.data[i]->type.shape.rank; k++) {
            if (f->params.data[i]->type.shape.dims[k] != t->shape.dims[axis])
                continue;
            graph_value *x = f->params.data[i];
            const attr part[2] = {attr_int(c, "start", k), attr_int(c, "end", k + 1)};
            return graph_emit(env->f, NULL, "shape_of", 1, &x, 2, part, onnx_loc(env->im));
        }
    return NULL;
}

/* An input with open extents is filled in each run, where other inputs have them. */
static graph_value *fill_open(onnx_env *env, const char *name, const type *t, const char *numbers)
{
    compiler *c = env->im->c;
    graph_value *extents[TYPE_MAX_RANK];
    const tensor_data *data;
    int64_t one = 1;
    type element = type_static(c, t->dt, 1, &one);
    for (int32_t i = 0; i < t->shape.rank; i++) {
        const char *symbol = dim_symbol_name(t->shape.dims[i]);
        extents[i] = extent_value(env, t, i);
        if (extents[i])
            continue;
        diag_error(&c->diags, DIAG_USAGE, onnx_loc(env->im), "--bind: the extent %s of '%s' is unknown, because no "
                                                             "other input has it",
                   symbol ? symbol : "?", name);
        diag_hint(&c->diags, "fix it: --dim %s=N", symbol ? symbol : "NAME");
        return NULL;
    }
    if (strchr(numbers, ',')) {
        diag_error(&c->diags, DIAG_USAGE, onnx_loc(env->im), "--bind: '%s' has open extents, so it takes one number "
                                                             "for all elements",
                   name);
        diag_hint(&c->diags, "give one number, or fix the extents: --dim NAME=N");
        return NULL;
    }
    if (!tensor_from_numbers(c, &element, name, numbers, &data))
        return NULL;
    const attr axis = attr_int(c, "axis", 0), value = attr_tensor(c, "value", data);
    graph_value *to = graph_emit(env->f, NULL, "concatenate", (uint32_t)t->shape.rank, extents, 1, &axis,
                                 onnx_loc(env->im));
    graph_value *v = to ? graph_emit(env->f, NULL, "full", 1, &to, 1, &value, onnx_loc(env->im)) : NULL;
    if (v) {
        v->name = name;
        ptr_map_set(env->f->names, name, 1);
    }
    return v;
}

/* --- inputs --- */

/* A parameter, or the constant that it is bound to. From IR 4 on an initializer that is also an input is the input's
 * default, below it is the input's value: either way it is bound as a constant, and the input is no longer one. */
static bool add_input(onnx_env *env, const char *name, type t, dtype element, graph_value **out)
{
    const char *numbers = bound_numbers(env->im, name);
    const tensor_data *data;
    type held = t;
    if (!numbers && onnx_is_small(element)) {
        if (!onnx_small_packed(env->im, name, element, &held))
            return false;
        *out = onnx_small_input(env, graph_add_param(env->f, name, held), element, &t);
        return *out != NULL;
    }
    if (!numbers) {
        *out = graph_add_param(env->f, name, t);
        return true;
    }
    if (onnx_is_small(element))
        return diag_error(&env->im->c->diags, DIAG_USAGE, onnx_loc(env->im),
                          "--bind: '%s' is of type %s, which takes no number", name, dtype_name(element));
    if (!shape_is_static(t.shape))
        return (*out = fill_open(env, name, &t, numbers)) != NULL;
    if (!tensor_from_numbers(env->im->c, &t, name, numbers, &data))
        return false;
    *out = graph_add_constant(env->f, data, name, onnx_loc(env->im));
    return true;
}

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
    if (onnx_type_read_input(im, from->type, name, out) && check_input_type(im, name, out))
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
    } *late = arena_array(&im->c->mem, struct late, g->input.len + 1u);
    uint32_t n_late = 0;
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
        bool waits = bound_numbers(im, name) && !shape_is_static(t.shape);
        if (waits)
            late[n_late++] = (struct late){name, t};
        bool good = waits || add_input(env, name, t, declared_element(g->input.data[i]), &v);
        ok = ok && good;
        onnx_define(env, name, good && !waits ? v : &im->poison);
    }
    for (uint32_t i = 0; ok && i < n_late; i++) {
        graph_value *v = NULL;
        ok = add_input(env, late[i].name, late[i].t, late[i].t.dt, &v);
        onnx_define(env, late[i].name, ok ? v : &im->poison);
    }
    return ok && check_binds(im, g);
}

static bool is_result(const graph_func *f, const graph_value *v)
{
    for (uint32_t i = 0; i < f->results.len; i++)
        if (f->results.data[i] == v)
            return true;
    return false;
}

static bool is_result_name(onnx_importer *im, const pb_graph *g, const char *name)
{
    for (uint32_t i = 0; i < g->output.len; i++)
        if (onnx_name(im, g->output.data[i]->name) == name)
            return true;
    return false;
}

/* A result carries the model's name. A value that has another one (behind an Identity, say) is renamed; an input, a
 * constant, or a value that is another result too, is copied. */
static graph_value *named_result(onnx_env *env, const pb_graph *g, graph_value *v, const char *name)
{
    onnx_importer *im = env->im;
    if (v->name == name)
        return v;
    if (v->def && !graph_constant(v) && !is_result(env->f, v) && !is_result_name(im, g, v->name)) {
        v->name = name;
        ptr_map_set(env->f->names, name, 1);
        return v;
    }
    graph_node *n = graph_add_node(env->f, graph_find_op(im->c, "copy"), 1, &v, 0, NULL, 1, &name,
                                   v->def ? v->def->loc : onnx_loc(im));
    return graph_infer_node(im->c, n) ? n->outputs[0] : NULL;
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
        if (v && v->type.kind == TYPE_SEQUENCE) {
            ok = diag_error(&im->c->diags, DIAG_UNSUPPORTED, onnx_loc(im),
                            "output '%s' is not a tensor; only tensors are supported yet", name);
            diag_hint(&im->c->diags, "make its elements outputs of the model, or join them with ConcatFromSequence");
        }
        if (!v || v == &im->poison || v->type.kind == TYPE_SEQUENCE)
            continue;
        const dtype element = declared_element(g->output.data[i]), have = onnx_small_of(im, v);
        if (onnx_is_small(element) && element != have) {
            ok = diag_error(&im->c->diags, DIAG_TYPE, onnx_loc(im), "output '%s' is declared as %s, and is %s", name,
                            dtype_name(element), dtype_name(have == DT_NONE ? v->type.dt : have));
            continue;
        }
        onnx_note_labels(im, v, name);
        v = onnx_small_output(env, v, name);
        v = v ? named_result(env, g, v, name) : NULL;
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

bool onnx_read_tensor(compiler *c, span bytes, const char *path, const char **out_name, const tensor_data **out)
{
    onnx_importer im = {.c = c, .path = path, .bytes = bytes};
    pb_tensor *t = NULL;
    *out = NULL;
    *out_name = "";
    if (!onnx_wire_tensor(c, path, bytes, &t))
        return false;
    *out_name = onnx_name(&im, t->name);
    diags_mark mark = diags_get_mark(&c->diags);
    *out = onnx_tensor_read_packed(&im, t, onnx_loc(&im));
    return onnx_report_lost(&im, mark) && *out != NULL;
}
