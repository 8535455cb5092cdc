/* SPDX-License-Identifier: Apache-2.0 */
/* What code generators ask of functions, nodes and values (include/lathe/codegen.h). */
#include "codegen/byoc/byoc.h"
#include "graph/op.h"

#include <string.h>

/* --- functions --- */

const char *lathe_func_name(const lathe_func *f)
{
    return f->name;
}

const char *lathe_func_text(const lathe_func *f, const char *attribute)
{
    return graph_func_text(f, attribute);
}

uint32_t lathe_func_params(const lathe_func *f)
{
    return f->params.len;
}

const lathe_graph_value *lathe_func_param(const lathe_func *f, uint32_t i)
{
    return i < f->params.len ? f->params.data[i] : NULL;
}

uint32_t lathe_func_results(const lathe_func *f)
{
    return f->results.len;
}

const lathe_graph_value *lathe_func_result(const lathe_func *f, uint32_t i)
{
    return i < f->results.len ? f->results.data[i] : NULL;
}

uint32_t lathe_func_nodes(const lathe_func *f)
{
    return f->nodes.len;
}

const lathe_node *lathe_func_node(const lathe_func *f, uint32_t i)
{
    return i < f->nodes.len ? f->nodes.data[i] : NULL;
}

const lathe_node *lathe_func_find(const lathe_func *f, const char *op)
{
    for (uint32_t i = 0; i < f->nodes.len; i++)
        if (strcmp(f->nodes.data[i]->op->name, op) == 0)
            return f->nodes.data[i];
    return NULL;
}

/* --- nodes --- */

const lathe_func *lathe_node_composite(const lathe_node *n)
{
    const attr *a = strcmp(n->op->name, "call") == 0 ? graph_attr(n, "callee") : NULL;
    return a ? a->u.func : NULL;
}

const char *lathe_node_op(const lathe_node *n)
{
    const lathe_func *f = lathe_node_composite(n);
    const char *name = f ? graph_func_text(f, "composite") : NULL;
    return name ? name : n->op->name;
}

uint32_t lathe_node_inputs(const lathe_node *n)
{
    return n->n_inputs;
}

const lathe_graph_value *lathe_node_input(const lathe_node *n, uint32_t i)
{
    return i < n->n_inputs ? n->inputs[i] : NULL;
}

uint32_t lathe_node_outputs(const lathe_node *n)
{
    return n->n_outputs;
}

const lathe_graph_value *lathe_node_output(const lathe_node *n, uint32_t i)
{
    return i < n->n_outputs ? n->outputs[i] : NULL;
}

static const attr *attr_of(const lathe_node *n, const char *name, attr_kind kind)
{
    const attr *a = graph_attr(n, name);
    return a && a->kind == kind ? a : NULL;
}

int64_t lathe_node_int(const lathe_node *n, const char *attribute)
{
    const attr *a = attr_of(n, attribute, ATTR_INT);
    return a ? a->u.i : 0;
}

double lathe_node_float(const lathe_node *n, const char *attribute)
{
    const attr *a = attr_of(n, attribute, ATTR_FLOAT);
    return a ? a->u.f : 0;
}

const char *lathe_node_text(const lathe_node *n, const char *attribute)
{
    const attr *a = attr_of(n, attribute, ATTR_STRING), *dt = attr_of(n, attribute, ATTR_DTYPE);
    return a ? a->u.s : dt ? dtype_name(dt->u.dt) : NULL;
}

const int64_t *lathe_node_ints(const lathe_node *n, const char *attribute, uint32_t *out_count)
{
    const attr *a = attr_of(n, attribute, ATTR_INTS);
    *out_count = a ? a->n : 0;
    return a ? a->u.ints : NULL;
}

/* --- values --- */

const char *lathe_value_name(const lathe_graph_value *v)
{
    return v->name;
}

const char *lathe_value_dtype(const lathe_graph_value *v)
{
    return dtype_name(v->type.dt);
}

const char *lathe_value_c_type(const lathe_graph_value *v)
{
    return dtype_c_name(v->type.dt);
}

size_t lathe_value_element_bytes(const lathe_graph_value *v)
{
    return dtype_bytes(v->type.dt);
}

int32_t lathe_value_rank(const lathe_graph_value *v)
{
    return v->type.shape.rank;
}

int64_t lathe_value_extent(const lathe_graph_value *v, int32_t axis)
{
    int64_t n = -1;
    const int32_t rank = v->type.shape.rank;
    axis += axis < 0 ? rank : 0;
    return axis >= 0 && axis < rank && dim_is_const(v->type.shape.dims[axis], &n) ? n : -1;
}

int64_t lathe_value_count(const lathe_graph_value *v)
{
    return shape_count(v->type.shape);
}

const lathe_node *lathe_value_node(const lathe_graph_value *v)
{
    return v->def;
}

const void *gen_bytes(compiler *c, const tensor_data *t)
{
    const uint8_t *bytes = tensor_bytes(&c->mem, t);
    if (!bytes)
        arena_refuse(&c->mem, tensor_size(t));
    return bytes;
}

const void *lathe_value_constant(lathe_compiler *c, const lathe_graph_value *v)
{
    const tensor_data *t = v ? graph_constant(v) : NULL;
    return t ? gen_bytes(c, t) : NULL;
}
