/* SPDX-License-Identifier: Apache-2.0 */
/* report.json of a package: what was compiled, how large it is, and where everything lies. */
#include "codegen/c/package.h"

#include <jansson.h>
#include <stdlib.h>

static json_t *number(uint64_t v)
{
    return json_integer((json_int_t)v);
}

/* Names from a model may hold bytes that are no UTF-8; JSON may not. */
static json_t *text(arena *a, const char *s)
{
    json_t *j = json_string(s ? s : "");
    if (j)
        return j;
    char *clean = arena_strdup(a, s);
    for (char *p = clean; *p; p++)
        if ((unsigned char)*p > 126)
            *p = '?';
    return json_string(clean);
}

static json_t *tensors(const package *p, const unit_io *io, uint32_t n)
{
    json_t *list = json_array();
    for (uint32_t i = 0; i < n; i++) {
        json_t *o = json_object(), *dims = json_array();
        int64_t d[TYPE_MAX_RANK] = {0};
        shape_get(io[i].type.shape, d);
        for (int32_t k = 0; k < io[i].type.shape.rank; k++)
            json_array_append_new(dims, json_integer(d[k]));
        json_object_set_new(o, "name", text(&p->c->mem, io[i].name));
        json_object_set_new(o, "c_name", json_string(io[i].c_name));
        json_object_set_new(o, "dtype", json_string(package_dtype(io[i].type.dt)));
        json_object_set_new(o, "shape", dims);
        json_object_set_new(o, "bytes", number(p->pl->problem->values.data[io[i].value].bytes));
        json_array_append_new(list, o);
    }
    return list;
}

static json_t *value_list(const uint32_t *args, uint32_t from, uint32_t to)
{
    json_t *list = json_array();
    for (uint32_t i = from; i < to; i++)
        json_array_append_new(list, json_integer(args[i]));
    return list;
}

static json_t *operators(const package *p)
{
    json_t *list = json_array();
    for (uint32_t i = 0; i < p->pl->problem->ops.len; i++) {
        const plan_op *op = &p->pl->problem->ops.data[i];
        const unit_op *u = &p->u->ops[i];
        json_t *o = json_object();
        json_object_set_new(o, "name", text(&p->c->mem, u->name));
        json_object_set_new(o, "kernel", json_string(u->kernel));
        json_object_set_new(o, "kind", text(&p->c->mem, u->kind));
        json_object_set_new(o, "source", text(&p->c->mem, u->source));
        json_object_set_new(o, "macs", json_integer(u->macs));
        json_object_set_new(o, "tasks", json_integer(op->parts));
        json_object_set_new(o, "layer", json_integer(op->layer));
        json_object_set_new(o, "inputs", value_list(op->args, 0, op->n_inputs));
        json_object_set_new(o, "outputs", value_list(op->args, op->n_inputs, op->n_args));
        uint64_t scratch = 0;
        for (uint32_t k = 0; k < op->n_scratch; k++) {
            int64_t count = tir_buffer_count(op->scratch[k].buffer);
            scratch += (uint64_t)(count > 0 ? count : 0) * dtype_bytes(op->scratch[k].buffer->dt) *
                       (op->scratch[k].per_part ? op->parts : 1);
        }
        json_object_set_new(o, "scratch_bytes", number(scratch));
        json_object_set_new(o, "stack_bytes", number(package_stack_bytes(op->func)));
        json_array_append_new(list, o);
    }
    return list;
}

static json_t *values(const package *p)
{
    static const char *const storage[] = {"input", "output", "constant", "workspace"};
    json_t *list = json_array();
    for (uint32_t i = 0; i < p->pl->problem->values.len; i++) {
        const plan_value *v = &p->pl->problem->values.data[i];
        json_t *o = json_object();
        json_object_set_new(o, "name", text(&p->c->mem, v->name));
        json_object_set_new(o, "storage", json_string(storage[v->storage]));
        json_object_set_new(o, "offset", number(v->offset));
        json_object_set_new(o, "bytes", number(v->bytes));
        if (v->parent >= 0)
            json_object_set_new(o, "in", json_integer(v->parent));
        json_array_append_new(list, o);
    }
    return list;
}

static json_t *layers(const package *p, uint64_t *out_tasks)
{
    json_t *list = json_array();
    *out_tasks = 0;
    for (uint32_t l = 0; l < p->pl->n_layers; l++) {
        json_array_append_new(list, value_list(p->pl->layers[l], 0, p->pl->layer_len[l]));
        for (uint32_t i = 0; i < p->pl->layer_len[l]; i++)
            *out_tasks += p->pl->problem->ops.data[p->pl->layers[l][i]].parts;
    }
    return list;
}

static json_t *head(const package *p)
{
    json_t *o = json_object();
    json_object_set_new(o, "generator", json_string("lathe"));
    json_object_set_new(o, "format", json_integer(1));
    json_object_set_new(o, "module_name", json_string(p->u->module_name));
    json_object_set_new(o, "model", text(&p->c->mem, p->u->model_file));
    json_object_set_new(o, "target", json_string(p->u->target->name));
    json_object_set_new(o, "target_cflags", json_string(p->u->target_cflags));
    json_object_set_new(o, "port", json_string(p->u->port));
    json_object_set_new(o, "opt_level", json_integer(p->u->opt_level));
    json_object_set_new(o, "workers", json_integer(p->u->workers));
    return o;
}

bool report_write(const package *p, writer *w)
{
    json_t *o = head(p);
    uint64_t tasks, macs = 0;
    for (uint32_t i = 0; i < p->pl->problem->ops.len; i++)
        macs += (uint64_t)p->u->ops[i].macs;
    json_t *layer_list = layers(p, &tasks);
    json_object_set_new(o, "inputs", tensors(p, p->u->inputs, p->u->n_inputs));
    json_object_set_new(o, "outputs", tensors(p, p->u->outputs, p->u->n_outputs));
    json_object_set_new(o, "workspace_bytes", number(p->pl->workspace_bytes));
    json_object_set_new(o, "workspace_lower_bound_bytes", number(p->pl->lower_bound_bytes));
    json_object_set_new(o, "constant_bytes", number(p->pl->constant_bytes));
    json_object_set_new(o, "kernel_stack_bytes", number(p->stack_bytes));
    json_object_set_new(o, "constant_file", p->constant_file ? json_string(p->constant_file) : json_null());
    json_object_set_new(o, "macs", number(macs));
    json_object_set_new(o, "tasks", number(tasks));
    json_object_set_new(o, "plan", json_pack("{s:s, s:s}", "order", p->pl->order, "placement", p->pl->heuristic));
    json_object_set_new(o, "layers", layer_list);
    json_object_set_new(o, "operators", operators(p));
    json_object_set_new(o, "values", values(p));
    char *dump = json_dumps(o, JSON_INDENT(1) | JSON_PRESERVE_ORDER);
    json_decref(o);
    if (!dump)
        return diag_error(&p->c->diags, DIAG_INTERNAL, src_loc_none(), "report.json could not be written");
    w_str(w, dump);
    w_str(w, "\n");
    free(dump);
    return true;
}
