/* SPDX-License-Identifier: Apache-2.0 */
/* Protobuf wire writer: the structs of onnx_proto.h as bytes, by the same table that the reader has. Repeated numbers
 * are packed; a field that is neither said to be there nor anything but 0 is left out; fields that the table does not
 * list follow as they were read. Lengths are computed before anything is written, so that bytes are copied once. */
#include "frontend/onnx/onnx_table.h"

#include <string.h>

#define MOST_BYTES ((size_t)0x7fffffff) /* of a message */

typedef struct out {
    uint8_t *data;
    size_t len;
} out;

static size_t varint_size(uint64_t v)
{
    size_t n = 1;
    while (v >>= 7)
        n++;
    return n;
}

static void put_varint(out *o, uint64_t v)
{
    for (; v > 127; v >>= 7)
        o->data[o->len++] = (uint8_t)(v | 0x80u);
    o->data[o->len++] = (uint8_t)v;
}

static void put_bytes(out *o, const void *data, size_t len)
{
    if (len > 0)
        memcpy(o->data + o->len, data, len);
    o->len += len;
}

static size_t message_size(const pb_message *m, const void *msg);
static void put_message(out *o, const pb_message *m, const void *msg);

static size_t ints_size(const pb_ints *v)
{
    size_t n = 0;
    for (uint32_t i = 0; i < v->len; i++)
        n += varint_size((uint64_t)v->data[i]);
    return n;
}

static uint32_t wire_type(pb_kind k)
{
    return k == PB_INT ? 0u : k == PB_FLOAT ? 5u : 2u;
}

static uint64_t key_of(const pb_field *f)
{
    return (uint64_t)f->number << 3 | wire_type(f->kind);
}

/* A field with one length and its bytes. */
static size_t delimited(const pb_field *f, size_t len)
{
    return varint_size(key_of(f)) + varint_size(len) + len;
}

/* --- sizes --- */

static size_t field_size(const pb_field *f, const uint8_t *at, bool present)
{
    size_t key = varint_size(key_of(f)), n = 0;
    switch (f->kind) {
    case PB_INT: {
        uint64_t v = (uint64_t) * (const int64_t *)(const void *)at;
        return present || v != 0 ? key + varint_size(v) : 0;
    }
    case PB_FLOAT: return present ? key + 4 : 0;
    case PB_STR: {
        const span *s = (const span *)(const void *)at;
        return present || s->len > 0 ? delimited(f, s->len) : 0;
    }
    case PB_MSG: {
        const void *const *msg = (const void *const *)(const void *)at;
        return *msg ? delimited(f, message_size(f->sub, *msg)) : 0;
    }
    case PB_INTS: {
        const pb_ints *v = (const pb_ints *)(const void *)at;
        return v->len > 0 ? delimited(f, ints_size(v)) : 0;
    }
    case PB_FLOATS:
    case PB_DOUBLES: {
        const pb_numbers *v = (const pb_numbers *)(const void *)at;
        return v->len > 0 ? delimited(f, v->len) : 0;
    }
    case PB_STRS: {
        const pb_spans *v = (const pb_spans *)(const void *)at;
        for (uint32_t i = 0; i < v->len; i++)
            n += delimited(f, v->data[i].len);
        return n;
    }
    case PB_MSGS: {
        const pb_messages *v = (const pb_messages *)(const void *)at;
        for (uint32_t i = 0; i < v->len; i++)
            n += delimited(f, message_size(f->sub, v->data[i]));
        return n;
    }
    }
    return 0;
}

static size_t message_size(const pb_message *m, const void *msg)
{
    const pb_head *head = msg;
    size_t n = 0;
    for (uint32_t i = 0; i < m->n_fields; i++)
        n += field_size(&m->fields[i], (const uint8_t *)msg + m->fields[i].offset,
                        pb_has(head->has, m->fields[i].number));
    for (uint32_t i = 0; i < head->unknown.len; i++)
        n += head->unknown.data[i].len;
    return n;
}

/* --- bytes --- */

static void put_head(out *o, const pb_field *f, size_t len)
{
    put_varint(o, key_of(f));
    put_varint(o, len);
}

static void put_sub(out *o, const pb_field *f, const void *msg)
{
    put_head(o, f, message_size(f->sub, msg));
    put_message(o, f->sub, msg);
}

/* A field whose size is not 0. */
static void put_field(out *o, const pb_field *f, const uint8_t *at)
{
    switch (f->kind) {
    case PB_INT:
        put_varint(o, key_of(f));
        put_varint(o, (uint64_t) * (const int64_t *)(const void *)at);
        return;
    case PB_FLOAT:
        put_varint(o, key_of(f));
        put_bytes(o, at, 4);
        return;
    case PB_STR: {
        const span *s = (const span *)(const void *)at;
        put_head(o, f, s->len);
        put_bytes(o, s->data, s->len);
        return;
    }
    case PB_MSG: put_sub(o, f, *(const void *const *)(const void *)at); return;
    case PB_INTS: {
        const pb_ints *v = (const pb_ints *)(const void *)at;
        put_head(o, f, ints_size(v));
        for (uint32_t i = 0; i < v->len; i++)
            put_varint(o, (uint64_t)v->data[i]);
        return;
    }
    case PB_FLOATS:
    case PB_DOUBLES: {
        const pb_numbers *v = (const pb_numbers *)(const void *)at;
        put_head(o, f, v->len);
        put_bytes(o, v->data, v->len);
        return;
    }
    case PB_STRS: {
        const pb_spans *v = (const pb_spans *)(const void *)at;
        for (uint32_t i = 0; i < v->len; i++) {
            put_head(o, f, v->data[i].len);
            put_bytes(o, v->data[i].data, v->data[i].len);
        }
        return;
    }
    case PB_MSGS: {
        const pb_messages *v = (const pb_messages *)(const void *)at;
        for (uint32_t i = 0; i < v->len; i++)
            put_sub(o, f, v->data[i]);
        return;
    }
    }
}

static void put_message(out *o, const pb_message *m, const void *msg)
{
    const pb_head *head = msg;
    for (uint32_t i = 0; i < m->n_fields; i++) {
        const uint8_t *at = (const uint8_t *)msg + m->fields[i].offset;
        if (field_size(&m->fields[i], at, pb_has(head->has, m->fields[i].number)) > 0)
            put_field(o, &m->fields[i], at);
    }
    for (uint32_t i = 0; i < head->unknown.len; i++)
        put_bytes(o, head->unknown.data[i].data, head->unknown.data[i].len);
}

bool onnx_wire_write(compiler *c, const pb_model *m, span *written)
{
    size_t size = message_size(onnx_message_model(), m);
    *written = (span){0};
    if (size > MOST_BYTES)
        return diag_error(&c->diags, DIAG_UNSUPPORTED, src_loc_none(),
                          "the model would be %zu bytes; a file of ONNX holds less than 2 GiB", size);
    uint8_t *room = arena_try_alloc(&c->mem, size + 1, 64);
    if (!room)
        return diag_error(&c->diags, DIAG_ENVIRONMENT, src_loc_none(), "no memory for a model of %zu bytes", size);
    out o = {.data = room};
    put_message(&o, onnx_message_model(), m);
    *written = (span){room, o.len};
    return true;
}
