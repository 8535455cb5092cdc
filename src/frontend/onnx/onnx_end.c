/* SPDX-License-Identifier: Apache-2.0 */
/* One tensor among the inputs or results of the model: a parameter or the constant that it is bound to, a result by its
 * name. */
#include "frontend/onnx/onnx_import.h"
#include "base/ptr_map.h"

#include <string.h>

bool onnx_check_input_type(onnx_importer *im, const char *name, const type *t)
{
    diags *d = &im->c->diags;
    if (t->kind != TYPE_TENSOR)
        return diag_error(d, DIAG_UNSUPPORTED, onnx_loc(im),
                          "input '%s' is not a tensor, a sequence or an optional; only these are supported yet", name);
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
const char *onnx_bound_numbers(const onnx_importer *im, const char *name)
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
bool onnx_add_input(onnx_env *env, const char *name, type t, dtype element, graph_value **out)
{
    const char *numbers = onnx_bound_numbers(env->im, name);
    const tensor_data *data;
    type held = t;
    if (element == DT_STRING) {
        if (numbers)
            return diag_error(&env->im->c->diags, DIAG_USAGE, onnx_loc(env->im),
                              "--bind: '%s' is strings, which takes no number", name);
        *out = onnx_set_text(env->im, graph_add_param(env->f, name, t));
        onnx_note_text(env->im, *out, name, true);
        return true;
    }
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

/* --- results --- */

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
graph_value *onnx_named_result(onnx_env *env, const pb_graph *g, graph_value *v, const char *name)
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
