/* wire.c: bytes to values and back.
 * SPDX-License-Identifier: Apache-2.0 */
#include "wire.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void rpc_say(const rpc_log *log, const char *format, ...)
{
    char line[512];
    va_list args;
    if (!log->line)
        return;
    va_start(args, format);
    (void)vsnprintf(line, sizeof line, format, args);
    va_end(args);
    log->line(log->user, line);
}

int32_t rpc_fail(lathe_error *error, int32_t code, const char *format, ...)
{
    va_list args;
    if (!error)
        return code;
    error->code = code;
    va_start(args, format);
    (void)vsnprintf(error->message, sizeof error->message, format, args);
    va_end(args);
    return code;
}

const char *rpc_code_name(int32_t code)
{
    switch (code) {
#define X(name, number, text) \
    case number: return text;
        RPC_CODES(X)
#undef X
    default: return "code";
    }
}

/* --- reading --- */

bool rpc_read_bytes(rpc_reader *r, size_t n, const uint8_t **out)
{
    *out = NULL;
    if (n > r->size - r->at)
        return false;
    *out = r->data + r->at;
    r->at += n;
    return true;
}

static bool read_number(rpc_reader *r, size_t n, uint64_t *out)
{
    const uint8_t *p;
    *out = 0;
    if (!rpc_read_bytes(r, n, &p))
        return false;
    for (size_t i = n; i-- > 0;)
        *out = *out << 8 | p[i];
    return true;
}

bool rpc_read_u64(rpc_reader *r, uint64_t *out)
{
    return read_number(r, 8, out);
}

bool rpc_read_u32(rpc_reader *r, uint32_t *out)
{
    uint64_t v;
    bool ok = read_number(r, 4, &v);
    *out = (uint32_t)v;
    return ok;
}

static bool read_i32(rpc_reader *r, int32_t *out)
{
    uint32_t v;
    bool ok = rpc_read_u32(r, &v);
    *out = (int32_t)v;
    return ok;
}

static int32_t cut_off(const char *what, lathe_error *error)
{
    return rpc_fail(error, LATHE_E_FORMAT, "the packet ends within %s", what);
}

static bool read_dtype(rpc_reader *r, lathe_dtype *out)
{
    const uint8_t *p;
    *out = (lathe_dtype){0, 0, 0};
    if (!rpc_read_bytes(r, 4, &p))
        return false;
    *out = (lathe_dtype){p[0], p[1], (uint16_t)(p[2] | p[3] << 8)};
    return true;
}

static bool read_device(rpc_reader *r, lathe_device *out)
{
    *out = (lathe_device){0, 0};
    return read_i32(r, &out->type) && read_i32(r, &out->id);
}

int32_t rpc_read_tensor(rpc_reader *r, rpc_tensor *out, lathe_error *error)
{
    memset(out, 0, sizeof *out);
    if (!rpc_read_u64(r, &out->data) || !read_device(r, &out->device) || !read_i32(r, &out->ndim) ||
        !read_dtype(r, &out->dtype))
        return cut_off("a tensor", error);
    if (out->ndim < 0 || out->ndim > RPC_RANK_MAX)
        return rpc_fail(error, LATHE_E_FORMAT, "a tensor of %d dimensions; %d are the most", out->ndim, RPC_RANK_MAX);
    for (int32_t i = 0; i < out->ndim; i++) {
        uint64_t v;
        if (!rpc_read_u64(r, &v))
            return cut_off("a tensor's shape", error);
        out->shape[i] = (int64_t)v;
    }
    return rpc_read_u64(r, &out->byte_offset) ? LATHE_OK : cut_off("a tensor", error);
}

bool rpc_tensor_bytes(lathe_dtype dtype, const int64_t *shape, int32_t ndim, uint64_t *out)
{
    const uint64_t most = INT64_MAX / 8;
    uint64_t n = 1, bits = (uint64_t)dtype.bits * dtype.lanes;
    bool empty = false;
    *out = 0;
    for (int32_t i = 0; i < ndim; i++) {
        if (shape[i] < 0)
            return false;
        empty |= shape[i] == 0;
    }
    for (int32_t i = 0; i < ndim && !empty; i++) {
        if (n > most / (uint64_t)shape[i])
            return false;
        n *= (uint64_t)shape[i];
    }
    if (empty || bits == 0)
        return true;
    if (n > most / bits)
        return false;
    *out = (n * bits + 7) / 8;
    return true;
}

/* Strings, bytes and remote objects: a tag says which of them follows. */
static int32_t read_object(rpc_reader *r, rpc_item *item, lathe_error *error)
{
    uint32_t tag;
    uint64_t size;
    if (!rpc_read_u32(r, &tag) || !rpc_read_u64(r, &size))
        return cut_off("an object", error);
    if (tag == RPC_OBJECT_REF) {
        item->u.v_handle = size;
        return LATHE_OK;
    }
    if (tag != LATHE_STRING && tag != RPC_BYTES)
        return rpc_fail(error, LATHE_E_FORMAT, "an object with the unknown tag %u", tag);
    item->type = tag == LATHE_STRING ? LATHE_RAW_STRING : RPC_BYTE_ARRAY;
    if (size > SIZE_MAX || !rpc_read_bytes(r, (size_t)size, &item->bytes))
        return cut_off("a string", error);
    item->size = (size_t)size;
    return LATHE_OK;
}

static int32_t read_text(rpc_reader *r, rpc_item *item, lathe_error *error)
{
    uint64_t size;
    if (!rpc_read_u64(r, &size) || size > SIZE_MAX || !rpc_read_bytes(r, (size_t)size, &item->bytes))
        return cut_off("a string", error);
    item->size = (size_t)size;
    return LATHE_OK;
}

static int32_t read_dtype_item(rpc_reader *r, rpc_item *item, lathe_error *error)
{
    uint32_t padding;
    if (!read_dtype(r, &item->u.v_dtype) || !rpc_read_u32(r, &padding))
        return cut_off("a data type", error);
    return LATHE_OK;
}

static int32_t read_item(rpc_reader *r, rpc_item *item, rpc_tensor **next, lathe_error *error)
{
    memset(item, 0, sizeof *item);
    if (!read_i32(r, &item->type))
        return cut_off("a sequence of values", error);
    switch (item->type) {
    case LATHE_NONE: return LATHE_OK;
    case LATHE_INT:
    case LATHE_BOOL:
    case LATHE_FLOAT:
    case LATHE_POINTER:
    case LATHE_FUNCTION:
    case LATHE_MODULE: return rpc_read_u64(r, &item->u.v_handle) ? LATHE_OK : cut_off("a number", error);
    case LATHE_DEVICE: return read_device(r, &item->u.v_device) ? LATHE_OK : cut_off("a device", error);
    case LATHE_DTYPE: return read_dtype_item(r, item, error);
    case LATHE_DLTENSOR: item->tensor = (*next)++; return rpc_read_tensor(r, item->tensor, error);
    case LATHE_RAW_STRING:
    case RPC_BYTE_ARRAY: return read_text(r, item, error);
    default:
        if (item->type >= LATHE_OBJECT || item->type == LATHE_SMALL_STRING || item->type == RPC_SMALL_BYTES)
            return read_object(r, item, error);
        return rpc_fail(error, LATHE_E_FORMAT, "a value of the unknown type %d", item->type);
    }
}

/* Tensors among the next n values, at most: each takes 36 bytes. */
static size_t most_tensors(const rpc_reader *r, uint32_t n)
{
    size_t by_bytes = (r->size - r->at) / 36 + 1;
    return by_bytes < n ? by_bytes : n;
}

int32_t rpc_read_items(rpc_reader *r, rpc_items *out, lathe_error *error)
{
    uint32_t n;
    *out = (rpc_items){NULL, 0, NULL};
    if (!rpc_read_u32(r, &n))
        return cut_off("the number of values", error);
    if (n > RPC_ITEMS_MAX || n > (r->size - r->at) / 4)
        return rpc_fail(error, LATHE_E_FORMAT, "%u values in a packet of %zu bytes; %d are the most", n, r->size,
                        RPC_ITEMS_MAX);
    size_t tensors = most_tensors(r, n);
    out->data = calloc(n + 1u, sizeof *out->data);
    out->tensors = calloc(tensors + 1u, sizeof *out->tensors);
    if (!out->data || !out->tensors)
        return rpc_fail(error, LATHE_E_MEMORY, "no memory for %u values", n);
    rpc_tensor *next = out->tensors;
    for (; out->count < n; out->count++) {
        int32_t status = next == out->tensors + tensors + 1
                             ? cut_off("a tensor", error)
                             : read_item(r, &out->data[out->count], &next, error);
        if (status != LATHE_OK)
            return status;
    }
    return LATHE_OK;
}

void rpc_items_free(rpc_items *items)
{
    free(items->data);
    free(items->tensors);
    *items = (rpc_items){NULL, 0, NULL};
}

/* --- writing --- */

void rpc_buffer_free(rpc_buffer *b)
{
    free(b->data);
    *b = (rpc_buffer){NULL, 0, 0, false};
}

uint8_t *rpc_put_room(rpc_buffer *b, size_t n)
{
    if (n > SIZE_MAX / 2 - b->size)
        b->full = true;
    if (!b->full && (!b->data || n > b->capacity - b->size)) {
        size_t capacity = b->capacity < 256 ? 256 : b->capacity;
        while (capacity < b->size + n)
            capacity *= 2;
        uint8_t *data = realloc(b->data, capacity);
        b->full = !data;
        if (data) {
            b->data = data;
            b->capacity = capacity;
        }
    }
    return b->full ? NULL : b->data + b->size;
}

void rpc_put_bytes(rpc_buffer *b, const void *bytes, size_t n)
{
    uint8_t *room = rpc_put_room(b, n);
    if (!room || n == 0)
        return;
    memcpy(room, bytes, n);
    b->size += n;
}

static void put_number(rpc_buffer *b, uint64_t v, size_t n)
{
    uint8_t bytes[8];
    for (size_t i = 0; i < n; i++)
        bytes[i] = (uint8_t)(v >> (8 * i));
    rpc_put_bytes(b, bytes, n);
}

void rpc_put_u32(rpc_buffer *b, uint32_t v)
{
    put_number(b, v, 4);
}

void rpc_put_u64(rpc_buffer *b, uint64_t v)
{
    put_number(b, v, 8);
}

void rpc_put_tensor(rpc_buffer *b, const rpc_tensor *t)
{
    rpc_put_u64(b, t->data);
    rpc_put_u32(b, (uint32_t)t->device.type);
    rpc_put_u32(b, (uint32_t)t->device.id);
    rpc_put_u32(b, (uint32_t)t->ndim);
    rpc_put_u32(b, t->dtype.code | (uint32_t)t->dtype.bits << 8 | (uint32_t)t->dtype.lanes << 16);
    for (int32_t i = 0; i < t->ndim; i++)
        rpc_put_u64(b, (uint64_t)t->shape[i]);
    rpc_put_u64(b, t->byte_offset);
}

void rpc_packet_begin(rpc_buffer *b, int32_t code)
{
    b->size = 0;
    b->full = false;
    rpc_put_u64(b, 0);
    rpc_put_u32(b, (uint32_t)code);
}

void rpc_packet_end(rpc_buffer *b, uint64_t bytes_behind)
{
    if (b->full)
        return;
    uint64_t v = b->size - 8 + bytes_behind;
    for (size_t i = 0; i < 8; i++)
        b->data[i] = (uint8_t)(v >> (8 * i));
}

void rpc_put_none(rpc_buffer *b)
{
    rpc_put_u32(b, LATHE_NONE);
}

void rpc_put_64(rpc_buffer *b, int32_t type, uint64_t v)
{
    rpc_put_u32(b, (uint32_t)type);
    rpc_put_u64(b, v);
}

void rpc_put_int(rpc_buffer *b, int64_t v)
{
    rpc_put_64(b, LATHE_INT, (uint64_t)v);
}

void rpc_put_string(rpc_buffer *b, const void *text, size_t n)
{
    rpc_put_64(b, LATHE_RAW_STRING, n);
    rpc_put_bytes(b, text, n);
}

void rpc_put_byte_array(rpc_buffer *b, const void *bytes, size_t n)
{
    rpc_put_64(b, RPC_BYTE_ARRAY, n);
    rpc_put_bytes(b, bytes, n);
}

void rpc_put_return_none(rpc_buffer *b)
{
    rpc_packet_begin(b, RPC_RETURN);
    rpc_put_u32(b, 1);
    rpc_put_none(b);
    rpc_packet_end(b, 0);
}

void rpc_put_return_64(rpc_buffer *b, int32_t type, uint64_t v)
{
    rpc_packet_begin(b, RPC_RETURN);
    rpc_put_u32(b, 1);
    rpc_put_64(b, type, v);
    rpc_packet_end(b, 0);
}

void rpc_put_exception(rpc_buffer *b, const char *text)
{
    rpc_packet_begin(b, RPC_EXCEPTION);
    rpc_put_u32(b, 1);
    rpc_put_string(b, text, strlen(text));
    rpc_packet_end(b, 0);
}
