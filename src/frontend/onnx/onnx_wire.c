/* SPDX-License-Identifier: Apache-2.0 */
/* Protobuf wire reader: fills the structs of onnx_proto.h by the table onnx_fields.def. It trusts nothing: lengths are
 * checked against the enclosing message, nesting against PB_MAX_DEPTH. Tensor data stays where it is in the file.
 * Wire format: https://protobuf.dev/programming-guides/encoding/ */
#include "frontend/onnx/onnx_table.h"

#include <inttypes.h>
#include <string.h>

typedef struct reader {
    compiler *c;
    const char *path;
    const uint8_t *start; /* of the file: offsets in messages count from here */
    const uint8_t *pos, *end;
    uint32_t depth;
} reader;

static bool fail(reader *r, const char *what, const char *where)
{
    src_loc loc = src_loc_none();
    loc.file = r->path;
    return diag_error(&r->c->diags, DIAG_FORMAT, loc, "not a readable ONNX file: byte %zu: %s in %s",
                      (size_t)(r->pos - r->start), what, where);
}

static bool read_varint(reader *r, const char *where, uint64_t *out)
{
    uint64_t v = 0;
    for (uint32_t shift = 0; shift < 70; shift += 7) {
        if (r->pos == r->end)
            return fail(r, "a number is cut off", where);
        uint8_t b = *r->pos++;
        if (shift < 64)
            v |= (uint64_t)(b & 0x7fu) << shift;
        if (!(b & 0x80u)) {
            *out = v;
            return true;
        }
    }
    return fail(r, "a number has more than ten bytes", where);
}

/* The payload of a length-delimited field. */
static bool read_span(reader *r, const char *where, span *out)
{
    uint64_t len = 0;
    if (!read_varint(r, where, &len))
        return false;
    if (len > (uint64_t)(r->end - r->pos))
        return fail(r, "a length goes beyond the end", where);
    *out = (span){r->pos, (size_t)len};
    r->pos += len;
    return true;
}

static bool skip_bytes(reader *r, size_t n, const char *where)
{
    if ((size_t)(r->end - r->pos) < n)
        return fail(r, "a value is cut off", where);
    r->pos += n;
    return true;
}

static bool skip_field(reader *r, uint32_t wire, const char *where)
{
    uint64_t v = 0;
    span s;
    if (wire == 0)
        return read_varint(r, where, &v);
    if (wire == 1)
        return skip_bytes(r, 8, where);
    if (wire == 2)
        return read_span(r, where, &s);
    if (wire == 5)
        return skip_bytes(r, 4, where);
    return fail(r, wire < 5 ? "a group (ONNX has none)" : "an unknown wire type", where);
}

/* Joins runs of fixed-width numbers: the first run is borrowed from the file, a second one makes a copy that grows. */
static void add_numbers(reader *r, pb_numbers *v, const uint8_t *data, size_t len)
{
    if (v->len == 0) {
        *v = (pb_numbers){data, len};
        return;
    }
    /* Runs that stand next to each other but for their tags are rare (unpacked writers); doubling keeps this linear. */
    size_t room = 16;
    while (room < v->len)
        room *= 2;
    bool in_file = v->data >= r->start && v->data < r->end;
    if (in_file || v->len + len > room) {
        while (room < v->len + len)
            room *= 2;
        uint8_t *copy = arena_alloc(&r->c->mem, room, 8);
        memcpy(copy, v->data, v->len);
        v->data = copy;
    }
    memcpy((uint8_t *)(uintptr_t)v->data + v->len, data, len);
    v->len += len;
}

static bool read_numbers(reader *r, const pb_field *f, uint32_t wire, size_t width, pb_numbers *v)
{
    span s;
    if (wire == 2) {
        if (!read_span(r, f->name, &s))
            return false;
        if (s.len % width != 0)
            return fail(r, "a packed run is not a whole number of elements", f->name);
    } else {
        s = (span){r->pos, width};
        if (!skip_bytes(r, width, f->name))
            return false;
    }
    if (s.len > 0)
        add_numbers(r, v, s.data, s.len);
    return true;
}

static bool read_ints(reader *r, const pb_field *f, uint32_t wire, pb_ints *v)
{
    uint64_t x = 0;
    if (wire == 0) {
        if (!read_varint(r, f->name, &x))
            return false;
        vec_push(&r->c->mem, v, (int64_t)x);
        return true;
    }
    span s;
    if (!read_span(r, f->name, &s))
        return false;
    const uint8_t *end = r->end;
    r->pos = s.data;
    r->end = s.data + s.len;
    bool ok = true;
    while (ok && r->pos < r->end)
        if ((ok = read_varint(r, f->name, &x)))
            vec_push(&r->c->mem, v, (int64_t)x);
    r->end = end;
    return ok;
}

static bool read_message(reader *r, const pb_message *m, void *out);

static bool read_sub(reader *r, const pb_message *m, void *out)
{
    span s = {0};
    if (!read_span(r, m->name, &s))
        return false;
    if (r->depth == PB_MAX_DEPTH)
        return fail(r, "messages are nested too deeply (the limit is 100)", m->name);
    const uint8_t *end = r->end;
    r->pos = s.data;
    r->end = s.data + s.len;
    r->depth++;
    bool ok = read_message(r, m, out);
    r->depth--;
    r->end = end;
    return ok;
}

static bool read_value(reader *r, const pb_field *f, uint32_t wire, uint8_t *at)
{
    uint64_t v = 0;
    span s;
    switch (f->kind) {
    case PB_INT:
        if (!read_varint(r, f->name, &v))
            return false;
        *(int64_t *)(void *)at = (int64_t)v;
        return true;
    case PB_FLOAT: memcpy(at, r->pos, (size_t)(r->end - r->pos) < 4 ? 0 : 4); return skip_bytes(r, 4, f->name);
    case PB_STR: return read_span(r, f->name, (span *)(void *)at);
    case PB_STRS:
        if (!read_span(r, f->name, &s))
            return false;
        vec_push(&r->c->mem, (pb_spans *)(void *)at, s);
        return true;
    case PB_INTS: return read_ints(r, f, wire, (pb_ints *)(void *)at);
    case PB_FLOATS: return read_numbers(r, f, wire, 4, (pb_numbers *)(void *)at);
    case PB_DOUBLES: return read_numbers(r, f, wire, 8, (pb_numbers *)(void *)at);
    case PB_MSG: {
        void **slot = (void **)(void *)at;
        if (!*slot) /* a second occurrence is merged into the first, as protobuf asks */
            *slot = arena_alloc(&r->c->mem, f->sub->size, 8);
        return read_sub(r, f->sub, *slot);
    }
    case PB_MSGS: {
        void *msg = arena_alloc(&r->c->mem, f->sub->size, 8);
        vec_push(&r->c->mem, (pb_messages *)(void *)at, msg);
        return read_sub(r, f->sub, msg);
    }
    }
    return false;
}

static bool wire_fits(const pb_field *f, uint32_t wire)
{
    switch (f->kind) {
    case PB_INT: return wire == 0;
    case PB_FLOAT: return wire == 5;
    case PB_STR:
    case PB_STRS:
    case PB_MSG:
    case PB_MSGS: return wire == 2;
    case PB_INTS: return wire == 0 || wire == 2;
    case PB_FLOATS: return wire == 5 || wire == 2;
    case PB_DOUBLES: return wire == 1 || wire == 2;
    }
    return false;
}

static const pb_field *find_field(const pb_message *m, uint64_t number)
{
    for (uint32_t i = 0; i < m->n_fields; i++)
        if (m->fields[i].number == number)
            return &m->fields[i];
    return NULL;
}

static bool read_message(reader *r, const pb_message *m, void *out)
{
    pb_head *head = out;
    head->at = (uint64_t)(r->pos - r->start);
    while (r->pos < r->end) {
        const uint8_t *from = r->pos;
        uint64_t key = 0;
        if (!read_varint(r, m->name, &key))
            return false;
        uint32_t wire = (uint32_t)(key & 7u);
        if (key >> 3 == 0 || key >> 3 > 536870911u)
            return fail(r, "a field number that protobuf does not allow", m->name);
        const pb_field *f = find_field(m, key >> 3);
        if (!f) {
            if (!skip_field(r, wire, m->name))
                return false;
            vec_push(&r->c->mem, &head->unknown, ((span){from, (size_t)(r->pos - from)}));
            continue;
        }
        if (!wire_fits(f, wire))
            return fail(r, "a field of the wrong wire type", f->name);
        if (!read_value(r, f, wire, (uint8_t *)out + f->offset))
            return false;
        head->has |= (uint64_t)1 << f->number;
    }
    return true;
}

static void *read_whole(compiler *c, const char *path, span bytes, const pb_message *m)
{
    reader r = {.c = c, .path = path, .start = bytes.data, .pos = bytes.data, .end = bytes.data + bytes.len};
    void *out = arena_alloc(&c->mem, m->size, 8);
    return read_message(&r, m, out) ? out : NULL;
}

bool onnx_wire_model(compiler *c, const char *path, span bytes, pb_model **out)
{
    src_loc loc = src_loc_none();
    loc.file = path;
    *out = NULL;
    if (bytes.len == 0)
        (void)diag_error(&c->diags, DIAG_FORMAT, loc, "the file is empty");
    else
        *out = read_whole(c, path, bytes, onnx_message_model());
    if (!*out)
        diag_hint(&c->diags, "is it an ONNX model, and was it copied as a whole?");
    return *out != NULL;
}

bool onnx_wire_tensor(compiler *c, const char *path, span bytes, pb_tensor **out)
{
    *out = read_whole(c, path, bytes, onnx_message_tensor());
    return *out != NULL;
}

bool onnx_wire_sequence(compiler *c, const char *path, span bytes, pb_sequence **out)
{
    *out = read_whole(c, path, bytes, onnx_message_sequence());
    return *out != NULL;
}

bool onnx_wire_optional(compiler *c, const char *path, span bytes, pb_optional **out)
{
    *out = read_whole(c, path, bytes, onnx_message_optional());
    return *out != NULL;
}

bool onnx_wire_map(compiler *c, const char *path, span bytes, pb_map **out)
{
    *out = read_whole(c, path, bytes, onnx_message_map());
    return *out != NULL;
}
