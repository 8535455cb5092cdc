/* SPDX-License-Identifier: Apache-2.0 */
/* TensorProto to constants. raw_data, packed float_data and external data stay where they are in the files in memory;
 * the narrow types that ONNX keeps in int32_data are converted. Sizes are checked before anything is touched. */
#include "frontend/onnx/onnx_import.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

enum { FIELD_SEGMENT = 3, FIELD_RAW = 9 }; /* of TensorProto */

typedef struct tensor_reader {
    onnx_importer *im;
    const pb_tensor *pb;
    src_loc loc;
    const char *name;
    dtype dt; /* of what is made: for small types a byte for each element */
    int64_t count;
    size_t bytes; /* count * element size */
} tensor_reader;

static const tensor_data *fail(tensor_reader *r, diag_code code, const char *what)
{
    diag_error(&r->im->c->diags, code, r->loc, "tensor '%s' (byte %" PRIu64 "): %s", r->name, r->pb->at, what);
    return NULL;
}

static const tensor_data *make(tensor_reader *r, const uint8_t *data, const char *file, uint64_t offset)
{
    compiler *c = r->im->c;
    tensor_data *t = arena_new(&c->mem, tensor_data);
    *t = *tensor_dense(c, r->dt, r->pb->dims.len, r->pb->dims.data, data);
    t->file = file;
    t->offset = offset;
    return t;
}

static bool read_head(tensor_reader *r)
{
    const pb_tensor *pb = r->pb;
    if (!dtype_from_onnx(pb->data_type, &r->dt) || r->dt == DT_NONE)
        return fail(r, DIAG_FORMAT, "it has no known element type") != NULL;
    if (pb->dims.len > TYPE_MAX_RANK)
        return fail(r, DIAG_UNSUPPORTED, "more than 16 dimensions") != NULL;
    r->dt = onnx_stored_dtype(r->dt);
    r->count = 1;
    bool overflow = false;
    for (uint32_t i = 0; i < pb->dims.len; i++) {
        if (pb->dims.data[i] < 0)
            return fail(r, DIAG_FORMAT, "a dimension is negative") != NULL;
        overflow |= !i64_mul(r->count, pb->dims.data[i], &r->count);
    }
    if (!dtype_usable(r->dt)) {
        diag_error(&r->im->c->diags, DIAG_UNSUPPORTED, r->loc, "tensor '%s': element type %s is not supported yet",
                   r->name, dtype_name(r->dt));
        return false;
    }
    if (overflow || !size_mul((size_t)r->count, dtype_bytes(r->dt), &r->bytes))
        return fail(r, DIAG_FORMAT, "its dimensions are too large") != NULL;
    return true;
}

/* --- external data --- */

static bool entry_number(tensor_reader *r, const pb_entry *e, uint64_t *out)
{
    char text[24] = {0}, *end = NULL;
    if (e->value.len == 0 || e->value.len >= sizeof text)
        return fail(r, DIAG_FORMAT, "offset or length of its external data is not a number") != NULL;
    memcpy(text, e->value.data, e->value.len);
    errno = 0;
    *out = strtoull(text, &end, 10);
    if (errno || *end || text[0] < '0' || text[0] > '9')
        return fail(r, DIAG_FORMAT, "offset or length of its external data is not a number") != NULL;
    return true;
}

/* By its text alone, names of other systems too; links are looked at when it is opened. */
static bool leaves_folder(const char *location)
{
    if (location[0] == '/' || location[0] == '\\' || location[0] == '\0' || (location[0] && location[1] == ':'))
        return true;
    for (const char *p = location; p; p = strchr(p, '/'), p = p ? p + 1 : NULL)
        if (strncmp(p, "..", 2) == 0 && (p[2] == '/' || p[2] == '\\' || p[2] == '\0'))
            return true;
    return false;
}

static bool open_external(onnx_importer *im, const char *location, src_loc loc, onnx_file *f)
{
    compiler *c = im->c;
    file_lack lack = leaves_folder(location) ? FILE_OUTSIDE : FILE_THERE;
    const char *dir = path_dir(&c->mem, im->path);
    if (lack == FILE_THERE && compiler_read_beneath(c, dir, location, &f->bytes, &lack)) {
        f->full = path_join(&c->mem, dir, location);
        return true;
    }
    if (lack == FILE_OUTSIDE)
        diag_error(&c->diags, DIAG_FORMAT, loc,
                   "external data '%s' is refused: it must be a file under the model's folder", location);
    if (lack == FILE_MISSING)
        vec_push(&c->mem, &im->lost, location);
    return false;
}

/* A file that cannot be had is reported for the first of its tensors. */
bool onnx_external_open(onnx_importer *im, const char *location, src_loc loc, onnx_file *out)
{
    const onnx_file *known = onnx_map_get(&im->files, location);
    if (!known) {
        onnx_file *f = arena_new(&im->c->mem, onnx_file);
        f->path = location;
        (void)open_external(im, location, loc, f);
        onnx_map_set(&im->c->mem, &im->files, location, f);
        known = f;
    }
    *out = *known;
    return known->full != NULL;
}

static const tensor_data *read_external(tensor_reader *r)
{
    const char *location = NULL;
    uint64_t offset = 0, length = r->bytes;
    for (uint32_t i = 0; i < r->pb->external_data.len; i++) {
        const pb_entry *e = r->pb->external_data.data[i];
        const char *key = onnx_name(r->im, e->key);
        if (strcmp(key, "location") == 0)
            location = onnx_name(r->im, e->value);
        else if (strcmp(key, "offset") == 0 && !entry_number(r, e, &offset))
            return NULL;
        else if (strcmp(key, "length") == 0 && !entry_number(r, e, &length))
            return NULL;
    }
    if (!location)
        return fail(r, DIAG_FORMAT, "its external data names no file");
    onnx_file f;
    if (!onnx_external_open(r->im, location, r->loc, &f))
        return NULL;
    if (length != r->bytes)
        return fail(r, DIAG_FORMAT, "its external data does not have the length that its dimensions need");
    if (offset > f.bytes.len || length > f.bytes.len - offset)
        return fail(r, DIAG_FORMAT, "its external data goes beyond the end of the file");
    return make(r, f.bytes.data + offset, f.full, offset);
}

/* --- data inside the model --- */

static const tensor_data *read_numbers(tensor_reader *r, pb_numbers v, size_t width, const char *file,
                                       const uint8_t *base, size_t len)
{
    if (v.len / width != (size_t)r->count)
        return fail(r, DIAG_FORMAT, "the number of values does not fit its dimensions");
    bool in_file = v.data >= base && v.data < base + len;
    return make(r, v.data, in_file ? file : NULL, in_file ? (uint64_t)(v.data - base) : 0);
}

static const tensor_data *read_ints(tensor_reader *r, const pb_ints *v)
{
    if ((int64_t)v->len != r->count)
        return fail(r, DIAG_FORMAT, "the number of values does not fit its dimensions");
    size_t width = dtype_bytes(r->dt);
    bool bits = r->dt == DT_F16 || r->dt == DT_BF16; /* int32_data holds their bit patterns */
    uint8_t *data = arena_try_alloc(&r->im->c->mem, r->bytes, 64);
    if (!data)
        return fail(r, DIAG_ENVIRONMENT, "not enough memory");
    for (uint32_t i = 0; i < v->len; i++) {
        uint16_t u = (uint16_t)v->data[i];
        if (bits)
            memcpy(data + i * width, &u, 2);
        else
            dtype_store_i64(r->dt, data + i * width, r->dt == DT_BOOL ? v->data[i] != 0 : v->data[i]);
    }
    return make(r, data, NULL, 0);
}

static const tensor_data *wrong_length(tensor_reader *r, size_t bytes)
{
    (void)fail(r, DIAG_FORMAT, arena_printf(&r->im->c->mem, "raw_data has %zu bytes, and its type and dimensions need "
                                                            "%zu", bytes, r->bytes));
    diag_hint(&r->im->c->diags, "the file was edited or cut: export the model again");
    return NULL;
}

static const tensor_data *read_inside(tensor_reader *r, span file)
{
    const pb_tensor *pb = r->pb;
    const uint8_t *base = file.data;
    if (pb_has(pb->has, FIELD_RAW) && (pb->raw_data.len > 0 || r->count == 0)) {
        if (pb->raw_data.len != r->bytes)
            return wrong_length(r, pb->raw_data.len);
        return make(r, pb->raw_data.data, r->im->path, base ? (uint64_t)(pb->raw_data.data - base) : 0);
    }
    switch (r->dt) {
    case DT_F32: return read_numbers(r, pb->float_data, 4, r->im->path, base, file.len);
    case DT_F64: return read_numbers(r, pb->double_data, 8, r->im->path, base, file.len);
    case DT_I64: return read_ints(r, &pb->int64_data);
    case DT_U32:
    case DT_U64: return read_ints(r, &pb->uint64_data);
    case DT_U8:
    case DT_I8:
    case DT_U16:
    case DT_I16:
    case DT_I32:
    case DT_BOOL:
    case DT_F16:
    case DT_BF16: return read_ints(r, &pb->int32_data);
    case DT_NONE:
    case DT_STRING:
    case DT_C64:
    case DT_C128:
    case DT_F8E4M3FN:
    case DT_F8E4M3FNUZ:
    case DT_F8E5M2:
    case DT_F8E5M2FNUZ:
    case DT_U4:
    case DT_I4:
    case DT_F4E2M1:
    case DT_F8E8M0:
    case DT_U2:
    case DT_I2:
    case DT_F6E2M3:
    case DT_F6E3M2:
    case DT_HANDLE:
    case DT_COUNT: break; /* not usable: read_head has said so */
    }
    return NULL;
}

static const tensor_data *read_data(tensor_reader *r)
{
    if (pb_has(r->pb->has, FIELD_SEGMENT))
        return fail(r, DIAG_UNSUPPORTED, "tensors in segments are not supported");
    return r->pb->data_location == 1 ? read_external(r) : read_inside(r, r->im->bytes);
}

/* --- elements of 6, 4 and 2 bits: the first is in the lowest bits of the first byte --- */

static uint32_t bits_of(const pb_tensor *t, dtype *small)
{
    return dtype_from_onnx(t->data_type, small) && onnx_is_small(*small) ? dtype_bits(*small) : 8;
}

/* The bytes, as a vector; out_count: the elements in them. r->pb is a copy of the tensor. */
static const tensor_data *read_packed(tensor_reader *r, pb_tensor *bytes, uint32_t bits, int64_t *out_count)
{
    bytes->data_type = dtype_onnx_code(DT_U8);
    if (!read_head(r))
        return NULL;
    *out_count = r->count;
    r->count = r->count / 8 * bits + (r->count % 8 * bits + 7) / 8;
    r->bytes = (size_t)r->count;
    bytes->dims.len = 1;
    bytes->dims.data = &r->count;
    return read_data(r);
}

static int code_at(const tensor_data *packed, int64_t i, uint32_t bits)
{
    const int64_t at = i * bits, byte = at / 8, shift = at % 8;
    const int next = shift + bits > 8 ? packed->data[byte + 1] << 8 : 0;
    return (packed->data[byte] | next) >> shift & ((1 << bits) - 1);
}

/* Elements of 6 bits have an integer each in int32_data: codes in bytes. NULL: this tensor is packed, or an error. */
static const tensor_data *read_own_integers(onnx_importer *im, const pb_tensor *t, src_loc loc, uint32_t bits)
{
    pb_tensor codes = *t;
    tensor_reader r = {.im = im, .pb = &codes, .loc = loc, .name = onnx_name(im, t->name)};
    codes.data_type = dtype_onnx_code(DT_U8);
    return bits == 6 && t->int32_data.len > 0 && read_head(&r) ? read_data(&r) : NULL;
}

static const tensor_data *pack(compiler *c, const tensor_data *codes, uint32_t bits)
{
    const int64_t bytes = codes->count / 8 * bits + (codes->count % 8 * bits + 7) / 8;
    uint8_t *out = arena_array(&c->mem, uint8_t, (size_t)bytes + 1u);
    for (int64_t i = 0; i < codes->count; i++) {
        const int64_t at = i * bits;
        const unsigned code = (codes->data[i] & ((1u << bits) - 1u)) << at % 8;
        out[at / 8] = (uint8_t)(out[at / 8] | code);
        if (code > 255)
            out[at / 8 + 1] = (uint8_t)(code >> 8);
    }
    return tensor_dense(c, DT_U8, 1, &bytes, out);
}

const tensor_data *onnx_tensor_read_packed(onnx_importer *im, const pb_tensor *t, src_loc loc)
{
    dtype small = DT_NONE;
    int64_t count = 0;
    pb_tensor bytes = *t;
    tensor_reader r = {.im = im, .pb = &bytes, .loc = loc, .name = onnx_name(im, t->name)};
    const uint32_t bits = bits_of(t, &small);
    const tensor_data *codes = read_own_integers(im, t, loc, bits);
    if (codes)
        return pack(im->c, codes, bits);
    return bits < 8 ? read_packed(&r, &bytes, bits, &count) : onnx_tensor_read(im, t, loc);
}

static const tensor_data *read_unpacked(onnx_importer *im, const pb_tensor *t, src_loc loc, dtype small, uint32_t bits)
{
    const dtype byte = onnx_stored_dtype(small);
    const int most = (1 << bits) - 1;
    pb_tensor bytes = *t;
    int64_t count = 0;
    tensor_reader r = {.im = im, .pb = &bytes, .loc = loc, .name = onnx_name(im, t->name)};
    const tensor_data *codes = read_own_integers(im, t, loc, bits);
    if (codes)
        return codes;
    const tensor_data *packed = read_packed(&r, &bytes, bits, &count); /* first: extents that no bytes stand for ask
                                                                         * for no memory */
    uint8_t *out = packed ? arena_try_alloc(&im->c->mem, count > 0 ? (size_t)count : 1, 64) : NULL;
    if (!out)
        return packed ? fail(&r, DIAG_ENVIRONMENT, "not enough memory") : NULL;
    for (int64_t i = 0; i < count; i++) {
        int code = code_at(packed, i, bits);
        out[i] = (uint8_t)(dtype_is_signed(byte) && code > most / 2 ? code - most - 1 : code);
    }
    return small == DT_I4 || small == DT_U4 ? tensor_nibbles(im->c, byte, t->dims.len, t->dims.data, out)
                                            : tensor_dense(im->c, byte, t->dims.len, t->dims.data, out);
}

const tensor_data *onnx_tensor_read(onnx_importer *im, const pb_tensor *t, src_loc loc)
{
    dtype small = DT_NONE;
    tensor_reader r = {.im = im, .pb = t, .loc = loc, .name = onnx_name(im, t->name)};
    const uint32_t bits = bits_of(t, &small);
    return bits < 8 ? read_unpacked(im, t, loc, small, bits) : read_head(&r) ? read_data(&r) : NULL;
}
