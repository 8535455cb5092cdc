/* SPDX-License-Identifier: Apache-2.0 */
/* Tensors of a model: names, types, constants and scales, all of them checked before anybody reads them. */
#include "frontend/tflite/tflite_import.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

/* --- element types --- */

static const struct tensor_type {
    const char *name; /* where there is no dtype for it */
    dtype dt;
} types[] = {{"", DT_F32}, {"", DT_F16}, {"", DT_I32}, {"", DT_U8}, {"", DT_I64}, {"string", DT_NONE},
             {"", DT_BOOL}, {"", DT_I16}, {"", DT_C64}, {"", DT_I8}, {"", DT_F64}, {"", DT_C128}, {"", DT_U64},
             {"resource", DT_NONE}, {"variant", DT_NONE}, {"", DT_U32}, {"", DT_U16}, {"", DT_I4}, {"", DT_BF16},
             {"", DT_I2}, {"", DT_U4}};

bool tflite_dtype(int64_t code, dtype *out)
{
    *out = DT_NONE;
    if (code < 0 || code >= (int64_t)(sizeof types / sizeof *types))
        return false;
    *out = types[code].dt;
    return true;
}

src_loc tflite_loc(const tflite_importer *im)
{
    src_loc loc = src_loc_none();
    loc.file = im->path;
    return loc;
}

static bool wrong(const tflite_importer *im, const tflite_tensor *t, const char *what)
{
    return diag_error(&im->c->diags, DIAG_FORMAT, tflite_loc(im), "tensor %u '%s' (byte %" PRIu64 "): %s",
                      (unsigned)(t - im->tensors), t->name, t->t->at, what);
}

/* --- shapes --- */

/* An extent that the model leaves open has the symbol NAME_AXIS, where the user opens it. */
static const char *symbol_of(tflite_importer *im, const char *name, uint32_t axis)
{
    writer w;
    writer_init(&w, &im->c->mem);
    for (const char *s = name; *s; s++) {
        const bool letter = (*s >= 'a' && *s <= 'z') || (*s >= 'A' && *s <= 'Z') || *s == '_';
        const bool digit = *s >= '0' && *s <= '9';
        w_fmt(&w, "%s%c", digit && s == name ? "_" : "", letter || digit ? *s : '_');
    }
    w_fmt(&w, "_%u", axis);
    return intern(im->c->names, w.data);
}

static bool is_open(const tfl_tensor *t, uint32_t axis)
{
    return axis < t->shape_signature.len && flat_i32(t->shape_signature, axis) == -1;
}

/* The shape that the converter wrote: 1 stands there for an extent that is open, and a device runs with that. */
static bool read_shape(tflite_importer *im, tflite_tensor *t)
{
    int64_t dims[TYPE_MAX_RANK], count;
    uint32_t rank = t->t->shape.len;
    if (rank + t->is_complex > TYPE_MAX_RANK)
        return wrong(im, t, "it has more than 16 dimensions");
    for (uint32_t i = 0; i < rank; i++) {
        dims[i] = flat_i32(t->t->shape, i);
        if (dims[i] < 0)
            return wrong(im, t, "an extent is negative");
    }
    if (t->is_complex)
        dims[rank++] = 2;
    if (!tensor_count(rank, dims, &count))
        return wrong(im, t, "its dimensions are too large");
    t->type = type_static(im->c, t->type.dt, rank, dims);
    return true;
}

static tflite_tensor *find_input(tflite_importer *im, const char *name)
{
    for (uint32_t i = 0; i < im->graph->inputs.len; i++) {
        const int32_t k = flat_i32(im->graph->inputs, i);
        if (k >= 0 && (uint32_t)k < im->n_tensors && strcmp(im->tensors[k].name, name) == 0)
            return &im->tensors[k];
    }
    return NULL;
}

/* Names of the inputs, or of their open extents. */
static const char *list_inputs(tflite_importer *im, bool extents)
{
    writer w;
    writer_init(&w, &im->c->mem);
    for (uint32_t i = 0; i < im->graph->inputs.len && w.len < 500; i++) {
        const int32_t k = flat_i32(im->graph->inputs, i);
        const tflite_tensor *t = k >= 0 && (uint32_t)k < im->n_tensors ? &im->tensors[k] : NULL;
        if (t && !extents)
            w_fmt(&w, "%s%s", w.len ? ", " : "", t->name);
        for (uint32_t a = 0; t && extents && a < t->t->shape.len; a++)
            if (is_open(t->t, a))
                w_fmt(&w, "%s%s", w.len ? ", " : "", symbol_of(im, t->name, a));
    }
    return w.data ? w.data : "";
}

static bool fix_input(tflite_importer *im, const frontend_dim_fix *fix)
{
    tflite_tensor *t = find_input(im, fix->name);
    dim d[TYPE_MAX_RANK];
    if (!t)
        return diag_error(&im->c->diags, DIAG_USAGE, tflite_loc(im),
                          "the model has no input '%s'; its inputs are: %s", fix->name, list_inputs(im, false));
    const shape s = t->type.shape;
    if ((uint32_t)s.rank != fix->rank)
        return diag_error(&im->c->diags, DIAG_USAGE, tflite_loc(im),
                          "input '%s' has rank %d; the shape given has rank %u", fix->name, s.rank, fix->rank);
    for (uint32_t i = 0; i < fix->rank; i++) {
        if (fix->dims[i] < 0)
            return diag_error(&im->c->diags, DIAG_USAGE, tflite_loc(im), "'%s': an extent cannot be negative",
                              fix->name);
        d[i] = dim_const(im->c, fix->dims[i]);
        if (!is_open(t->t, i) && !dim_is(s.dims[i], fix->dims[i])) {
            diag_error(&im->c->diags, DIAG_USAGE, tflite_loc(im),
                       "input '%s' has extent %d at axis %u; the shape given says %" PRId64, fix->name,
                       flat_i32(t->t->shape, i), i, fix->dims[i]);
            diag_hint(&im->c->diags, FRONTEND_FIXED_AXIS);
            return false;
        }
    }
    t->type.shape = shape_make(im->c, fix->rank, d);
    return true;
}

static bool fix_symbol(tflite_importer *im, const frontend_dim_fix *fix)
{
    bool found = false;
    if (fix->dims[0] < 0)
        return diag_error(&im->c->diags, DIAG_USAGE, tflite_loc(im), "'%s': an extent cannot be negative", fix->name);
    for (uint32_t i = 0; i < im->graph->inputs.len; i++) {
        const int32_t k = flat_i32(im->graph->inputs, i);
        tflite_tensor *t = k >= 0 && (uint32_t)k < im->n_tensors ? &im->tensors[k] : NULL;
        for (uint32_t a = 0; t && a < t->t->shape.len; a++) {
            dim d[TYPE_MAX_RANK];
            if (!is_open(t->t, a) || strcmp(symbol_of(im, t->name, a), fix->name) != 0)
                continue;
            memcpy(d, t->type.shape.dims, (size_t)t->type.shape.rank * sizeof *d);
            d[a] = fix->is_bound ? dim_symbol(im->c, intern(im->c->names, fix->name), fix->dims[0])
                                 : dim_const(im->c, fix->dims[0]);
            t->type.shape = shape_make(im->c, (uint32_t)t->type.shape.rank, d);
            found = true;
        }
    }
    return found || frontend_no_dimension(im->c, tflite_loc(im), fix->name, list_inputs(im, true));
}

bool tflite_fix_shapes(tflite_importer *im)
{
    bool ok = true;
    for (uint32_t i = 0; im->o && i < im->o->n_fixes; i++)
        ok &= (im->o->fixes[i].is_input ? fix_input : fix_symbol)(im, &im->o->fixes[i]);
    return ok;
}

/* --- constants --- */

/* The bytes of a buffer: in its table, or, in files of more than 2 GB, behind all tables. */
static bool buffer_bytes(tflite_importer *im, const tflite_tensor *t, span *out)
{
    *out = (span){NULL, 0};
    if ((uint64_t)t->t->buffer >= im->model->buffers.len)
        return wrong(im, t, "its buffer is not in the model");
    const tfl_buffer *b = im->model->buffers.data[t->t->buffer];
    if (b->offset > 1 || b->size > 0) {
        if (b->offset > im->bytes.len || b->size > im->bytes.len - b->offset)
            return wrong(im, t, "its buffer lies beyond the end of the file");
        *out = (span){im->bytes.data + b->offset, (size_t)b->size};
        return true;
    }
    *out = b->data;
    return true;
}

/* Bits of numbers that share a byte; 0: they have bytes of their own. */
static uint32_t packed_bits(dtype dt)
{
    return dt == DT_I4 ? 4 : dt == DT_I2 ? 2 : 0;
}

/* Numbers of 4 or 2 bits, the first in the low bits of a byte, are numbers of 8 bits from here on. */
static bool read_packed(tflite_importer *im, tflite_tensor *t, span bytes, const int64_t *dims, int64_t count)
{
    const uint32_t bits = packed_bits(t->type.dt), each = 8 / bits;
    if ((uint64_t)count > (uint64_t)bytes.len * each)
        return wrong(im, t, "its buffer has fewer bytes than its shape needs");
    int8_t *out = arena_alloc_array(&im->c->mem, (size_t)count + 1, 1, 1);
    for (int64_t i = 0; i < count; i++) {
        const uint32_t code = (uint32_t)bytes.data[i / each] >> (bits * (uint32_t)(i % each)) & ((1u << bits) - 1);
        out[i] = (int8_t)((int)code - (code >> (bits - 1) ? 1 << bits : 0));
    }
    t->type.dt = DT_I8;
    t->data = tensor_dense(im->c, DT_I8, (uint32_t)t->type.shape.rank, dims, out);
    return true;
}

static bool read_sparse(tflite_importer *im, tflite_tensor *t, span bytes, const int64_t *dims, int64_t count)
{
    int64_t size = 0;
    if (dtype_bytes(t->type.dt) == 0)
        return true; /* who needs it says that it is not read */
    if (!i64_mul(count, (int64_t)dtype_bytes(t->type.dt), &size) || (uint64_t)size > *im->unpacked)
        return wrong(im, t, "the sparse constants of the model are too large");
    *im->unpacked -= (uint64_t)size;
    t->data = tflite_unpack(im->c, t->t->sparsity, bytes, t->type.dt, (uint32_t)t->type.shape.rank, dims);
    return t->data || wrong(im, t, "it is sparse, and its lists of places do not fit its shape or its numbers");
}

static bool read_constant(tflite_importer *im, tflite_tensor *t)
{
    span bytes;
    int64_t dims[TYPE_MAX_RANK], count = shape_count(t->type.shape), size;
    if (!buffer_bytes(im, t, &bytes))
        return false;
    if (bytes.len == 0 || t->type.kind != TYPE_TENSOR)
        return true;
    if (t->t->is_variable)
        return wrong(im, t, "it is a variable, and has constant data");
    if (!shape_get(t->type.shape, dims))
        return true; /* who needs it says that it is not read */
    if (t->t->sparsity)
        return read_sparse(im, t, bytes, dims, count);
    if (packed_bits(t->type.dt))
        return read_packed(im, t, bytes, dims, count);
    if (dtype_bytes(t->type.dt) == 0)
        return true;
    if (!i64_mul(count, (int64_t)dtype_bytes(t->type.dt), &size) || (uint64_t)size > bytes.len)
        return wrong(im, t, "its buffer has fewer bytes than its shape needs");
    t->data = tensor_dense(im->c, t->type.dt, (uint32_t)t->type.shape.rank, dims, bytes.data);
    return true;
}

/* --- all of them --- */

static const char *name_of(tflite_importer *im, const tfl_tensor *t, uint32_t i)
{
    size_t len = 0;
    while (len < t->name.len && t->name.data[len])
        len++;
    if (len == 0)
        return intern(im->c->names, arena_printf(&im->c->mem, "tensor_%u", i));
    return intern_n(im->c->names, (const char *)t->name.data, len);
}

bool tflite_read_tensors(tflite_importer *im)
{
    bool ok = true;
    im->n_tensors = im->graph->tensors.len;
    im->tensors = arena_array(&im->c->mem, tflite_tensor, (size_t)im->n_tensors + 1);
    for (uint32_t i = 0; i < im->n_tensors; i++) {
        tflite_tensor *t = &im->tensors[i];
        dtype dt;
        t->t = im->graph->tensors.data[i];
        t->name = name_of(im, t->t, i);
        if (!tflite_dtype(t->t->type, &dt)) {
            ok = wrong(im, t, "no element type has its code");
            continue;
        }
        t->is_complex = dt == DT_C64;
        t->type = type_tensor(t->is_complex ? DT_F32 : dt, (shape){.rank = -1});
        ok = read_shape(im, t) && read_constant(im, t) && ok;
    }
    return ok;
}

/* --- scales --- */

static bool is_good_scale(float s)
{
    return s >= 0x1p-126f && isfinite(s);
}

static bool zero_fits(const tflite_tensor *t, int64_t zero)
{
    return dtype_is_int(t->type.dt) && zero >= dtype_min_int(t->type.dt) && zero <= dtype_max_int(t->type.dt);
}

bool tflite_find_scale(const tflite_tensor *t, tflite_scale *out)
{
    const tfl_quantization *q = t->t->quantization;
    *out = (tflite_scale){.dt = t->type.dt};
    if (!q || q->scale.len != 1 || q->zero_point.len > 1 || q->details_type != 0)
        return false;
    out->scale = flat_f32(q->scale, 0);
    out->zero = q->zero_point.len ? flat_i64(q->zero_point, 0) : 0;
    return is_good_scale(out->scale) && zero_fits(t, out->zero);
}

bool tflite_read_scale(tflite_node *n, uint32_t i, tflite_scale *out)
{
    const tflite_tensor *t = tflite_operand(n, i);
    if (t && tflite_find_scale(t, out))
        return true;
    return tflite_fail(n, DIAG_FORMAT, "tensor '%s' needs one scale above 0 and one zero point in its range",
                       t ? t->name : "?");
}

bool tflite_read_scales(tflite_node *n, uint32_t i, int64_t axis, int64_t count, flat_numbers *out, int64_t *zero)
{
    const tflite_tensor *t = tflite_operand(n, i);
    const tfl_quantization *q = t ? t->t->quantization : NULL;
    *out = (flat_numbers){0};
    *zero = 0;
    if (!q || q->details_type != 0 || (q->scale.len != 1 && (int64_t)q->scale.len != count) ||
        (q->scale.len > 1 && q->quantized_dimension != axis) ||
        (q->zero_point.len > 1 && q->zero_point.len != q->scale.len))
        return tflite_fail(n, DIAG_FORMAT, "tensor '%s' needs one scale, or one for each of %" PRId64
                           " entries of axis %" PRId64, t ? t->name : "?", count, axis);
    for (uint32_t k = 0; k < q->scale.len; k++)
        if (!is_good_scale(flat_f32(q->scale, k)))
            return tflite_fail(n, DIAG_FORMAT, "tensor '%s' has a scale that is not above 0", t->name);
    for (uint32_t k = 0; k < q->zero_point.len; k++) {
        const int64_t z = flat_i64(q->zero_point, k);
        if ((k > 0 && z != *zero) || !zero_fits(t, z))
            return tflite_fail(n, DIAG_UNSUPPORTED, "tensor '%s' has several zero points, or one out of range",
                               t->name);
        *zero = z;
    }
    *out = q->scale;
    return true;
}

bool tflite_read_pair(tflite_node *n, tflite_scale *x, tflite_scale *y)
{
    return tflite_read_scale(n, 0, x) && tflite_read_scale(n, TFLITE_RESULT, y);
}

bool tflite_same_scale(const tflite_scale *a, const tflite_scale *b)
{
    return a->scale == b->scale && a->zero == b->zero && a->dt == b->dt;
}
