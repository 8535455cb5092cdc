/* SPDX-License-Identifier: Apache-2.0 */
/* Attributes of the node at hand, with references to a function's attributes resolved before. A value of another kind
 * than asked for fails the node. Each reading marks the attribute as used, so that the rest can be warned about. */
#include "frontend/onnx/onnx_import.h"

#include <string.h>

/* AttributeProto.AttributeType */
enum { AT_NONE, AT_FLOAT, AT_INT, AT_STRING, AT_TENSOR, AT_GRAPH, AT_FLOATS, AT_INTS, AT_STRINGS };
/* Field numbers of AttributeProto that hold the values: writers below IR 3 leave `type` out. */
enum { AF_F = 2, AF_I = 3, AF_S = 4, AF_T = 5, AF_G = 6, AF_FLOATS = 7, AF_INTS = 8, AF_STRINGS = 9 };

static bool wrong_kind(onnx_node *n, const char *name, const char *want)
{
    return onnx_fail(n, DIAG_FORMAT, "attribute '%s' must be %s", name, want);
}

/* type, when it is given, decides; else the field that is present. */
static bool is_kind(const pb_attribute *a, int64_t kind, uint32_t field)
{
    return a->type == AT_NONE ? pb_has(a->has, field) : a->type == kind;
}

const onnx_attr *onnx_attr_find(onnx_node *n, const char *name)
{
    for (uint32_t i = 0; i < n->n_attrs; i++)
        if (strcmp(n->attrs[i].name, name) == 0) {
            n->attrs[i].used = true;
            return &n->attrs[i];
        }
    return NULL;
}

bool onnx_has_attr(onnx_node *n, const char *name)
{
    return onnx_attr_find(n, name) != NULL;
}

int64_t onnx_attr_int(onnx_node *n, const char *name, int64_t dflt)
{
    const onnx_attr *a = onnx_attr_find(n, name);
    if (!a)
        return dflt;
    if (!is_kind(a->pb, AT_INT, AF_I))
        return wrong_kind(n, name, "an integer"), dflt;
    return a->pb->i;
}

double onnx_attr_float(onnx_node *n, const char *name, double dflt)
{
    const onnx_attr *a = onnx_attr_find(n, name);
    if (!a)
        return dflt;
    if (!is_kind(a->pb, AT_FLOAT, AF_F))
        return wrong_kind(n, name, "a float"), dflt;
    return (double)a->pb->f;
}

const char *onnx_attr_string(onnx_node *n, const char *name, const char *dflt)
{
    const onnx_attr *a = onnx_attr_find(n, name);
    if (!a)
        return dflt;
    if (!is_kind(a->pb, AT_STRING, AF_S))
        return wrong_kind(n, name, "a string"), dflt;
    return onnx_name(n->im, a->pb->s);
}

uint32_t onnx_attr_ints(onnx_node *n, const char *name, const int64_t **out)
{
    const onnx_attr *a = onnx_attr_find(n, name);
    *out = NULL;
    if (!a)
        return 0;
    if (!is_kind(a->pb, AT_INTS, AF_INTS))
        return wrong_kind(n, name, "a list of integers"), 0u;
    *out = a->pb->ints.data;
    return a->pb->ints.len;
}

const pb_graph *onnx_attr_graph(onnx_node *n, const char *name)
{
    const onnx_attr *a = onnx_attr_find(n, name);
    if (!a || !a->pb->g)
        return wrong_kind(n, name, "a graph"), NULL;
    return a->pb->g;
}

const tensor_data *onnx_attr_tensor(onnx_node *n, const char *name)
{
    const onnx_attr *a = onnx_attr_find(n, name);
    if (!a)
        return NULL;
    if (!a->pb->t)
        return wrong_kind(n, name, "a tensor"), NULL;
    const tensor_data *t = onnx_tensor_read(n->im, a->pb->t, n->loc);
    n->failed = n->failed || !t;
    return t;
}

dtype onnx_attr_dtype(onnx_node *n, const char *name, dtype dflt)
{
    if (!onnx_has_attr(n, name))
        return dflt;
    dtype dt = DT_NONE;
    int64_t code = onnx_attr_int(n, name, 0);
    /* TensorProto.DataType; opset 1 of Cast writes the name instead and is handled where it is read */
    if (!n->failed && (!dtype_from_onnx(code, &dt) || dt == DT_NONE))
        onnx_fail(n, DIAG_FORMAT, "attribute '%s': no element type has the code %lld", name, (long long)code);
    return dt;
}

static attr convert_list(onnx_node *n, const pb_attribute *a, const char *from, const char *to, attr_kind kind)
{
    compiler *c = n->c;
    if (kind == ATTR_INTS && is_kind(a, AT_INTS, AF_INTS))
        return attr_ints(c, to, a->ints.len, a->ints.data);
    if (kind == ATTR_FLOATS && is_kind(a, AT_FLOATS, AF_FLOATS)) {
        uint32_t len = (uint32_t)(a->floats.len / sizeof(float));
        double *v = arena_array(&c->mem, double, len);
        for (uint32_t i = 0; i < len; i++)
            v[i] = (double)pb_float(a->floats, i);
        return attr_floats(c, to, len, v);
    }
    if (kind == ATTR_STRINGS && is_kind(a, AT_STRINGS, AF_STRINGS)) {
        const char **v = arena_array(&c->mem, const char *, a->strings.len);
        for (uint32_t i = 0; i < a->strings.len; i++)
            v[i] = onnx_name(n->im, a->strings.data[i]);
        return attr_strings(c, to, a->strings.len, v);
    }
    wrong_kind(n, from, "a list of the right kind");
    return (attr){0};
}

bool onnx_attr_convert(onnx_node *n, const char *from, const char *to, attr_kind kind, attr *out)
{
    const onnx_attr *a = onnx_attr_find(n, from);
    const tensor_data *t = NULL;
    if (!a)
        return false;
    switch (kind) {
    case ATTR_INT: *out = attr_int(n->c, to, onnx_attr_int(n, from, 0)); break;
    case ATTR_FLOAT: *out = attr_float(n->c, to, onnx_attr_float(n, from, 0)); break;
    case ATTR_STRING: *out = attr_string(n->c, to, onnx_attr_string(n, from, "")); break;
    case ATTR_DTYPE:
        if (a->pb->type != AT_NONE && a->pb->i == 0)
            return false; /* UNDEFINED, written out: the operator's default */
        *out = attr_dtype(n->c, to, onnx_attr_dtype(n, from, DT_NONE));
        break;
    case ATTR_INTS:
    case ATTR_FLOATS:
    case ATTR_STRINGS: *out = convert_list(n, a->pb, from, to, kind); break;
    case ATTR_TENSOR:
        t = onnx_attr_tensor(n, from);
        *out = attr_tensor(n->c, to, t);
        break;
    case ATTR_FUNC: return wrong_kind(n, from, "a value other than a graph");
    }
    return !n->failed;
}

/* Written by old or careful exporters, and without meaning for a compiled graph. */
static bool is_harmless(const char *name)
{
    static const char *const names[] = {"consumed_inputs", "is_test",        "saturate",  "round_mode",
                                        "stash_type",      "seed",           "precision", "momentum",
                                        "spatial",         "output_sequence"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (strcmp(names[i], name) == 0)
            return true;
    return false;
}

void onnx_attr_warn_unused(onnx_node *n)
{
    for (uint32_t i = 0; i < n->n_attrs; i++)
        if (!n->attrs[i].used && !is_harmless(n->attrs[i].name))
            diag_warning(&n->c->diags, DIAG_FORMAT, n->loc,
                         "attribute '%s' is not one of this operator's and is ignored", n->attrs[i].name);
}
