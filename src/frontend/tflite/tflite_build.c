/* SPDX-License-Identifier: Apache-2.0 */
/* What importers build with: operands and results in both of their forms, nodes that are typed as they are made. */
#include "base/ptr_map.h"
#include "frontend/tflite/tflite_import.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static const int64_t to_image[4] = {0, 3, 1, 2}, to_plain[4] = {0, 2, 3, 1};

/* --- errors --- */

bool tflite_fail(tflite_node *n, diag_code code, const char *fmt, ...)
{
    char text[512];
    va_list ap;
    if (n->failed)
        return false;
    n->failed = true;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    return diag_error(&n->c->diags, code, n->loc, "%s", text);
}

static graph_value *nothing(tflite_node *n)
{
    n->failed = true; /* told by whoever found out */
    return &n->im->nothing;
}

/* --- nodes --- */

graph_value *tflite_emit(tflite_node *n, const char *op, uint32_t n_in, graph_value *const *in, uint32_t n_attrs,
                         const attr *attrs)
{
    if (n->failed)
        return nothing(n);
    while (n_in > 0 && !in[n_in - 1])
        n_in--;
    graph_value *v = graph_emit(n->f, NULL, op, n_in, in, n_attrs, attrs, n->loc);
    return v ? v : nothing(n);
}

graph_value *tflite_unary(tflite_node *n, const char *op, graph_value *x)
{
    return tflite_emit(n, op, 1, &x, 0, NULL);
}

graph_value *tflite_binary(tflite_node *n, const char *op, graph_value *a, graph_value *b)
{
    graph_value *in[2] = {a, b};
    return tflite_emit(n, op, 2, in, 0, NULL);
}

graph_value *tflite_const(tflite_node *n, const tensor_data *t, const char *name)
{
    return n->failed || !t ? nothing(n) : graph_add_constant(n->f, t, name, n->loc);
}

graph_value *tflite_number(tflite_node *n, dtype dt, double v)
{
    return tflite_const(n, tensor_scalar_f64(n->c, dt, v), "");
}

graph_value *tflite_zero(tflite_node *n, const tflite_scale *s)
{
    return s->zero == 0 ? NULL : tflite_const(n, tensor_scalar_i64(n->c, s->dt, s->zero), "zero_point");
}

graph_value *tflite_reshape(tflite_node *n, graph_value *x, uint32_t rank, const int64_t *dims)
{
    if (n->failed)
        return nothing(n);
    const attr zero = attr_int(n->c, "allowzero", 1);
    graph_value *in[2] = {x, tflite_const(n, tensor_from_i64s(n->c, rank, dims), "shape")};
    return tflite_emit(n, "reshape", 2, in, 1, &zero);
}

graph_value *tflite_transpose(tflite_node *n, graph_value *x, uint32_t rank, const int64_t *perm)
{
    const attr a = attr_ints(n->c, "perm", rank, perm);
    return tflite_emit(n, "transpose", 1, &x, 1, &a);
}

graph_value *tflite_cast(tflite_node *n, graph_value *x, dtype dt)
{
    const attr a = attr_dtype(n->c, "dtype", dt);
    return n->failed || x->type.dt == dt ? x : tflite_emit(n, "cast", 1, &x, 1, &a);
}

const tensor_data *tflite_permuted(compiler *c, const tensor_data *t, const int64_t *perm)
{
    int64_t dims[TYPE_MAX_RANK], step[TYPE_MAX_RANK], at[TYPE_MAX_RANK] = {0}, from = 0, stride = 1;
    const size_t size = dtype_bytes(t->dt);
    uint8_t *out = arena_alloc_array(&c->mem, (size_t)t->count + 1, size, 8);
    for (uint32_t i = t->rank; i-- > 0; stride *= t->dims[i])
        step[i] = stride;
    for (uint32_t i = 0; i < t->rank; i++)
        dims[i] = t->dims[perm[i]];
    for (int64_t k = 0; k < t->count; k++) {
        memcpy(out + (size_t)k * size, tensor_element(t, from), size);
        for (uint32_t i = t->rank; i-- > 0;) {
            from += step[perm[i]];
            if (++at[i] < dims[i])
                break;
            from -= step[perm[i]] * dims[i];
            at[i] = 0;
        }
    }
    return tensor_dense(c, t->dt, t->rank, dims, out);
}

/* --- operands --- */

tflite_tensor *tflite_operand(const tflite_node *n, uint32_t i)
{
    const bool is_result = i >= TFLITE_RESULT;
    const uint32_t k = is_result ? i - TFLITE_RESULT : i;
    if (k >= (is_result ? n->n_out : n->n_in))
        return NULL;
    const int32_t at = flat_i32(is_result ? n->op->outputs : n->op->inputs, k);
    return at < 0 ? NULL : &n->im->tensors[at];
}

tflite_given *tflite_given_of(tflite_node *n, uint32_t first)
{
    tflite_given *all = arena_array(&n->c->mem, tflite_given, n->n_in + 1u);
    for (uint32_t i = first; i < n->n_in; i++) {
        const tflite_tensor *t = tflite_operand(n, i);
        if (!t)
            return tflite_fail(n, DIAG_FORMAT, "operand %u is missing", i), NULL;
        all[i - first] = (tflite_given){t->type, t->plain, t->image, t->data, t->variable};
    }
    return all;
}

const tfl_subgraph *tflite_graph_at(tflite_node *n, int64_t at)
{
    const tfl_model *m = n->im->model;
    if (at >= 1 && (uint64_t)at < m->subgraphs.len)
        return m->subgraphs.data[at];
    (void)tflite_fail(n, DIAG_FORMAT, "graph %lld is not in the model", (long long)at);
    return NULL;
}

/* A constant that is a result, too, leaves its name to the copy that is handed over. */
static const char *constant_name(const tflite_tensor *t)
{
    return t->is_result ? "" : t->name;
}

graph_value *tflite_plain(tflite_importer *im, tflite_tensor *t, src_loc loc)
{
    if (!t->plain && t->data)
        t->plain = graph_add_constant(im->f, t->data, constant_name(t), loc);
    if (!t->plain && t->image) {
        const attr a = attr_ints(im->c, "perm", 4, to_plain);
        t->plain = graph_emit(im->f, NULL, "transpose", 1, &t->image, 1, &a, loc);
    }
    return t->plain;
}

graph_value *tflite_in(tflite_node *n, uint32_t i)
{
    tflite_tensor *t = n->failed ? NULL : tflite_operand(n, i);
    graph_value *v = t ? tflite_plain(n->im, t, n->loc) : NULL;
    return v ? v : nothing(n);
}

graph_value *tflite_image(tflite_node *n, uint32_t i)
{
    tflite_tensor *t = n->failed ? NULL : tflite_operand(n, i);
    if (!t)
        return nothing(n);
    if (!t->image && t->data && t->data->rank == 4)
        t->image = graph_add_constant(n->f, tflite_permuted(n->c, t->data, to_image), constant_name(t), n->loc);
    if (t->image)
        return t->image;
    graph_value *x = tflite_in(n, i);
    if (!n->failed && x->type.shape.rank != 4) {
        (void)tflite_fail(n, DIAG_TYPE, "operand %u has %d dimensions; four are needed", i, x->type.shape.rank);
        return nothing(n);
    }
    return t->image = tflite_transpose(n, x, 4, to_image);
}

bool tflite_is_image(tflite_node *n, uint32_t i)
{
    const tflite_tensor *t = tflite_operand(n, i);
    return t && t->image && !t->plain;
}

const tensor_data *tflite_constant(tflite_node *n, uint32_t i)
{
    const tflite_tensor *t = tflite_operand(n, i);
    return t ? t->data : NULL;
}

bool tflite_is_int(tflite_node *n, uint32_t i)
{
    const tflite_tensor *t = tflite_operand(n, i);
    return t && dtype_is_int(t->type.dt) && dtype_bits(t->type.dt) <= 16;
}

const tensor_data *tflite_int_constant(tflite_node *n, uint32_t i, const char *what)
{
    const tensor_data *t = tflite_constant(n, i);
    if (t && dtype_is_int(t->dt))
        return t;
    (void)tflite_fail(n, DIAG_UNSUPPORTED, "%s (operand %u) must be constant integers", what, i);
    return NULL;
}

bool tflite_ints(tflite_node *n, uint32_t i, const char *what, int64_t *out, uint32_t *out_n)
{
    const tensor_data *t = tflite_int_constant(n, i, what);
    *out_n = 0;
    if (!t)
        return false;
    if (t->rank > 2 || t->count > (int64_t)TYPE_MAX_RANK * 2)
        return tflite_fail(n, DIAG_FORMAT, "%s (operand %u): there are too many", what, i);
    for (int64_t k = 0; k < t->count; k++)
        out[(*out_n)++] = tensor_get_i64(t, k);
    return true;
}

bool tflite_one_int(tflite_node *n, uint32_t i, const char *what, int64_t *out)
{
    int64_t given[TYPE_MAX_RANK * 2];
    uint32_t count;
    if (!tflite_ints(n, i, what, given, &count))
        return false;
    if (count != 1)
        return tflite_fail(n, DIAG_FORMAT, "%s is not one number", what);
    *out = given[0];
    return true;
}

bool tflite_axis(tflite_node *n, int64_t axis, int32_t rank, int64_t *out)
{
    *out = axis < 0 ? axis + rank : axis;
    return (*out >= 0 && *out < rank) ||
           tflite_fail(n, DIAG_TYPE, "axis %lld is out of range for %d dimensions", (long long)axis, rank);
}

int64_t tflite_image_axis(int64_t axis)
{
    static const int64_t place[4] = {0, 2, 3, 1};
    return place[axis & 3];
}

bool tflite_extent(tflite_node *n, const graph_value *v, uint32_t axis, int64_t *out)
{
    *out = 0;
    return !n->failed && ((axis < (uint32_t)v->type.shape.rank && dim_is_const(v->type.shape.dims[axis], out)) ||
                          tflite_fail(n, DIAG_UNSUPPORTED, "extent %u of an operand is open; it must be known", axis));
}

/* A constant that broadcasts to images: [C] or less. */
static graph_value *image_of_small(tflite_node *n, uint32_t i)
{
    const tensor_data *t = tflite_constant(n, i);
    const int64_t dims[3] = {t->count, 1, 1};
    return t->count == 1 ? tflite_in(n, i) : tflite_const(n, tensor_reshape(n->c, t, 3, dims), "");
}

bool tflite_in_one_form(tflite_node *n, uint32_t count, graph_value **out, bool *image)
{
    *image = false;
    bool may = true;
    for (uint32_t i = 0; i < count && !n->failed; i++) {
        const tflite_tensor *t = tflite_operand(n, i);
        const int32_t rank = t->type.shape.rank;
        *image |= tflite_is_image(n, i);
        may &= rank == 4 || (t->data && (rank < 2 || t->data->count == 1));
    }
    *image &= may;
    for (uint32_t i = 0; i < count && !n->failed; i++)
        out[i] = !*image                                               ? tflite_in(n, i)
                 : tflite_operand(n, i)->type.shape.rank == 4 ? tflite_image(n, i)
                                                              : image_of_small(n, i);
    return !n->failed;
}

/* --- results --- */

/* What the operator made gets the tensor's name, unless another value has it. */
static void take_name(tflite_node *n, graph_value *v, const char *name)
{
    uint32_t suffix = 0;
    bool own = false;
    for (uint32_t k = n->f->nodes.len; v->def && !own && k-- > n->first;)
        own = n->f->nodes.data[k] == v->def;
    if (!own || graph_constant(v) || ptr_map_get(n->f->names, name, &suffix))
        return;
    v->name = name;
    ptr_map_set(n->f->names, name, 1);
}

bool tflite_result_as(tflite_node *n, uint32_t i, graph_value *v, bool is_image)
{
    tflite_tensor *t = n->failed ? NULL : tflite_operand(n, TFLITE_RESULT + i);
    if (!t)
        return !n->failed;
    if (v->type.dt != t->type.dt)
        return tflite_fail(n, DIAG_TYPE, "result '%s' is %s in the model, but the operator gives %s", t->name,
                           dtype_name(t->type.dt), dtype_name(v->type.dt));
    *(is_image ? &t->image : &t->plain) = v;
    t->data = is_image ? NULL : graph_constant(v);
    if (!is_image || !t->is_result) /* a result of the model is handed over as the model has it */
        take_name(n, v, t->name);
    /* from here on its shape is what the operator gives */
    dim d[4];
    for (uint32_t k = 0; is_image && k < 4; k++)
        d[k] = v->type.shape.dims[tflite_image_axis(k)];
    t->type.shape = is_image ? shape_make(n->c, 4, d) : v->type.shape;
    return true;
}

bool tflite_result(tflite_node *n, uint32_t i, graph_value *v)
{
    return tflite_result_as(n, i, v, false);
}

bool tflite_result_image(tflite_node *n, uint32_t i, graph_value *v)
{
    return tflite_result_as(n, i, v, true);
}
