/* SPDX-License-Identifier: Apache-2.0 */
/* Element types that kernels do not have: floats of 8, 6 and 4 bits, integers of 4 and 2. A value of one is a byte for
 * each element here, the code of a float (u8), or the integer itself (i8 or u8), and beside it stands which type it is.
 * What moves elements moves the bytes; Cast, QuantizeLinear and DequantizeLinear know what they mean. Where the model's
 * inputs and results have several elements in a byte, so have the caller's: the border unpacks and packs. */
#include "frontend/onnx/onnx_import.h"
#include "graph/op.h"

#include <string.h>

/* --- who takes them: as the operator table says --- */

/* Codes are moved, and not added or compared. */
static bool adds_codes(onnx_node *n)
{
    return strncmp(n->row->target, "scatter", 7) == 0 && n->row->since >= 11 &&
           strcmp(onnx_attr_string(n, "reduction", "none"), "none") != 0;
}

bool onnx_check_small(onnx_node *n)
{
    const bool products = strcmp(n->row->target, "qnn.dequantize") == 0; /* operators with weights of 4 bits */
    dtype moved = DT_NONE;
    for (uint32_t i = 0; i < n->n_in; i++) {
        const dtype dt = onnx_small_of(n->im, n->in[i]);
        const char how = onnx_takes_small(n, i);
        if (dt != DT_NONE && !products && (!how || adds_codes(n))) {
            onnx_fail(n, DIAG_UNSUPPORTED, "input %u is of type %s, which this operator does not take", i,
                      dtype_name(dt));
            diag_hint(&n->c->diags, "DequantizeLinear and Cast make numbers of it");
            return false;
        }
        if (dt != DT_NONE && how == '$' && moved != DT_NONE && moved != dt)
            return onnx_fail(n, DIAG_TYPE, "inputs are of the types %s and %s", dtype_name(moved), dtype_name(dt));
        moved = how == '$' && dt != DT_NONE ? dt : moved;
    }
    return true;
}

void onnx_spread_small(onnx_node *n)
{
    dtype dt = DT_NONE;
    for (uint32_t i = 0; i < n->n_in && dt == DT_NONE; i++)
        if (onnx_takes_small(n, i) == '$')
            dt = onnx_small_of(n->im, n->in[i]);
    for (uint32_t i = 0; dt != DT_NONE && i < n->n_out; i++)
        onnx_set_small(n->im, n->out[i], dt);
}

/* --- numbers of codes, and back --- */

graph_value *onnx_small_numbers(onnx_node *n, graph_value *v, dtype to)
{
    const dtype dt = onnx_small_of(n->im, v);
    if (!dtype_is_float(dt))
        return v;
    attr a[2] = {attr_dtype(n->c, "format", dt), attr_dtype(n->c, "dtype", to)};
    return onnx_emit(n, ONNX_ARGS("decode_float", 2, a, v));
}

/* An integer as the low bits of another one: 8 becomes -8 in four bits. */
static graph_value *wrapped(onnx_node *n, graph_value *x, dtype dt)
{
    const int64_t most = ((int64_t)1 << dtype_bits(dt)) - 1, half = (most + 1) / 2;
    graph_value *y = onnx_binary(n, "bitwise_and", onnx_cast(n, x, DT_I32), onnx_const_int(n, DT_I32, most));
    if (dtype_is_signed(dt)) {
        graph_value *top = onnx_const_int(n, DT_I32, half);
        y = onnx_binary(n, "subtract", onnx_binary(n, "bitwise_xor", y, top), top);
    }
    return y;
}

bool onnx_small_result(onnx_node *n, graph_value *x, dtype dt)
{
    attr byte = attr_dtype(n->c, "dtype", onnx_stored_dtype(dt));
    graph_value *y;
    if (dtype_is_float(dt)) {
        attr a[3] = {attr_dtype(n->c, "format", dt), attr_int(n->c, "saturate", onnx_attr_int(n, "saturate", 1)),
                     attr_string(n->c, "round_mode", onnx_attr_string(n, "round_mode", "up"))};
        if (!dtype_is_float(onnx_dtype(x)))
            x = onnx_cast(n, x, dtype_bits(onnx_dtype(x)) > 16 ? DT_F64 : DT_F32);
        y = onnx_result(n, 0, ONNX_ARGS("encode_float", 3, a, x));
    } else {
        y = onnx_result(n, 0, ONNX_ARGS("cast", 1, &byte, wrapped(n, x, dt)));
    }
    if (!n->failed)
        onnx_set_small(n->im, y, dt);
    return !n->failed;
}

/* --- the model's inputs and results --- */

static graph_value *emit(onnx_env *env, const char *op, graph_value *a, graph_value *b, uint32_t n_attrs,
                         const attr *attrs)
{
    graph_value *in[2] = {a, b};
    return a ? graph_emit(env->f, NULL, op, b ? 2 : 1, in, n_attrs, attrs, onnx_loc(env->im)) : NULL;
}

static graph_value *reshaped(onnx_env *env, graph_value *x, uint32_t rank, const int64_t *dims)
{
    const attr zero = attr_int(env->im->c, "allowzero", 1);
    const tensor_data *t = tensor_from_i64s(env->im->c, rank, dims);
    return x ? emit(env, "reshape", x, graph_add_constant(env->f, t, "", onnx_loc(env->im)), 1, &zero) : NULL;
}

/* How elements fill bytes: `parts` of them as many whole bytes, which are one number of type `word`. */
typedef struct packing {
    int64_t parts, bytes;
    dtype word;
} packing;

static packing packing_of(dtype dt)
{
    return dtype_bits(dt) == 6 ? (packing){4, 3, DT_I32} : (packing){8 / dtype_bits(dt), 1, DT_U8};
}

/* word[count]: how far each of so many pieces is shifted, the first not at all. */
static graph_value *shifts(onnx_env *env, dtype word, int64_t count, int64_t bits)
{
    compiler *c = env->im->c;
    int32_t *by = arena_array(&c->mem, int32_t, (uint32_t)count);
    uint8_t *bytes = arena_array(&c->mem, uint8_t, (uint32_t)count);
    for (int64_t i = 0; i < count; i++) {
        by[i] = (int32_t)(i * bits);
        bytes[i] = (uint8_t)(i * bits);
    }
    const void *data = word == DT_U8 ? (const void *)bytes : by;
    return graph_add_constant(env->f, tensor_dense(c, word, 1, &count, data), "", onnx_loc(env->im));
}

static graph_value *number(onnx_env *env, dtype dt, int64_t v)
{
    return graph_add_constant(env->f, tensor_scalar_i64(env->im->c, dt, v), "", onnx_loc(env->im));
}

static graph_value *as(onnx_env *env, graph_value *x, dtype dt)
{
    const attr a = attr_dtype(env->im->c, "dtype", dt);
    return x && x->type.dt != dt ? emit(env, "cast", x, NULL, 1, &a) : x;
}

/* The first `count` of x, which is a vector. */
static graph_value *first(onnx_env *env, graph_value *x, int64_t count)
{
    const int64_t from = 0;
    graph_value *in[3] = {x, graph_add_constant(env->f, tensor_from_i64s(env->im->c, 1, &from), "", onnx_loc(env->im)),
                          graph_add_constant(env->f, tensor_from_i64s(env->im->c, 1, &count), "", onnx_loc(env->im))};
    return x ? graph_emit(env->f, NULL, "strided_slice", 3, in, 0, NULL, onnx_loc(env->im)) : NULL;
}

/* x, which is a vector of u8, with so many zeros behind it. */
static graph_value *with_zeros(onnx_env *env, graph_value *x, int64_t count)
{
    compiler *c = env->im->c;
    const attr axis = attr_int(c, "axis", 0);
    const uint8_t none = 0;
    if (count == 0)
        return x;
    const tensor_data *zeros = tensor_splat(c, DT_U8, 1, &count, arena_copy(&c->mem, &none, 1, 1));
    return emit(env, "concatenate", x, graph_add_constant(env->f, zeros, "", onnx_loc(env->im)), 1, &axis);
}

/* word[rows] or word[rows, 1] of word[rows, n], whose columns lie beside each other, `bits` apart. */
static graph_value *joined(onnx_env *env, graph_value *x, dtype word, int64_t n, int64_t bits, bool keep)
{
    const int64_t axis = 1;
    const attr sum[2] = {attr_ints(env->im->c, "axes", 1, &axis), attr_int(env->im->c, "keepdims", keep)};
    return n == 1 ? x : emit(env, "sum", emit(env, "left_shift", x, shifts(env, word, n, bits), 0, NULL), NULL, 2, sum);
}

/* word[rows, n] of word[rows, 1]. */
static graph_value *split(onnx_env *env, graph_value *x, dtype word, int64_t n, int64_t bits)
{
    if (n == 1)
        return x;
    x = emit(env, "right_shift", x, shifts(env, word, n, bits), 0, NULL);
    return emit(env, "bitwise_and", x, number(env, word, ((int64_t)1 << bits) - 1), 0, NULL);
}

static void tell(onnx_env *env, const char *what, const char *name, dtype dt, const type *t)
{
    writer w;
    compiler *c = env->im->c;
    type told = *t;
    const packing p = packing_of(dt);
    told.dt = dt;
    writer_init(&w, &c->mem);
    type_print(&w, &told);
    if (p.bytes > 1)
        w_fmt(&w, ", %d in %d bytes, the first in the lowest bits", (int)p.parts, (int)p.bytes);
    else if (p.parts > 1)
        w_fmt(&w, ", %d in a byte, the first in the lowest bits", (int)p.parts);
    else
        w_str(&w, ", a byte each");
    vec_push(&c->mem, &env->im->module->facts,
             (model_fact){arena_printf(&c->mem, "%s %s", what, name), arena_strndup(&c->mem, w.data, w.len)});
}

static int64_t packed_bytes(int64_t count, dtype dt)
{
    return count / 8 * dtype_bits(dt) + (count % 8 * dtype_bits(dt) + 7) / 8;
}

bool onnx_small_packed(onnx_importer *im, const char *name, dtype dt, type *t)
{
    int64_t count = shape_count(t->shape);
    if (dtype_bits(dt) >= 8)
        return true;
    if (count < 0)
        return diag_error(&im->c->diags, DIAG_UNSUPPORTED, onnx_loc(im),
                          "'%s' has elements of %u bits: its extents must be known; fix them with --dim or --shape",
                          name, dtype_bits(dt));
    if (count > INT64_MAX / 64)
        return diag_error(&im->c->diags, DIAG_UNSUPPORTED, onnx_loc(im), "'%s' has too many elements", name);
    count = packed_bytes(count, dt);
    *t = type_static(im->c, DT_U8, 1, &count);
    return true;
}

graph_value *onnx_small_input(onnx_env *env, graph_value *v, dtype dt, const type *t)
{
    const uint32_t bits = dtype_bits(dt);
    int64_t dims[TYPE_MAX_RANK], rows[2], flat, count = shape_count(t->shape);
    tell(env, "input", v->name, dt, t);
    if (bits < 8) {
        const packing p = packing_of(dt);
        const int64_t bytes = packed_bytes(count, dt);
        (void)shape_get(t->shape, dims);
        rows[0] = (bytes + p.bytes - 1) / p.bytes;
        rows[1] = p.bytes;
        flat = rows[0] * p.parts;
        v = with_zeros(env, v, rows[0] * p.bytes - bytes);
        v = joined(env, as(env, reshaped(env, v, 2, rows), p.word), p.word, p.bytes, 8, true);
        v = as(env, split(env, v, p.word, p.parts, bits), DT_U8);
        v = reshaped(env, first(env, reshaped(env, v, 1, &flat), count), (uint32_t)t->shape.rank, dims);
        if (dtype_is_signed(dt) && !dtype_is_float(dt)) {
            graph_value *top = number(env, DT_I8, (int64_t)1 << (bits - 1));
            v = emit(env, "subtract", emit(env, "bitwise_xor", as(env, v, DT_I8), top, 0, NULL), top, 0, NULL);
        }
    }
    onnx_set_small(env->im, v, dt);
    return v;
}

graph_value *onnx_small_output(onnx_env *env, graph_value *v, const char *name)
{
    compiler *c = env->im->c;
    const dtype dt = onnx_small_of(env->im, v);
    if (dt == DT_NONE)
        return v;
    const uint32_t bits = dtype_bits(dt);
    type packed = v->type;
    tell(env, "output", name, dt, &v->type);
    if (bits >= 8)
        return v;
    if (!onnx_small_packed(env->im, name, dt, &packed))
        return NULL;
    const packing p = packing_of(dt);
    const int64_t count = shape_count(v->type.shape), bytes = packed_bytes(count, dt);
    const int64_t rows[2] = {(bytes + p.bytes - 1) / p.bytes, p.parts}, all = rows[0] * p.bytes;
    if (v->name == name) /* the bytes have it */
        v->name = graph_new_name(env->f, arena_printf(&c->mem, "%s.codes", name));
    v = emit(env, "bitwise_and", as(env, v, DT_U8), number(env, DT_U8, (1 << bits) - 1), 0, NULL);
    v = with_zeros(env, reshaped(env, v, 1, &count), rows[0] * p.parts - count);
    v = joined(env, as(env, reshaped(env, v, 2, rows), p.word), p.word, p.parts, bits, p.bytes > 1);
    if (p.bytes == 1)
        return v;
    v = reshaped(env, as(env, split(env, v, p.word, p.bytes, 8), DT_U8), 1, &all);
    return all > bytes ? first(env, v, bytes) : v;
}
