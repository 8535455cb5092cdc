/* SPDX-License-Identifier: Apache-2.0 */
/* FlatBuffers reader: fills the structs of tflite_schema.h by the table tflite_fields.def. It trusts nothing. Every
 * position is checked against the file before a byte is read there; bytes are read one by one, so alignment does not
 * matter. A table holds only tables that stand before it in tflite_fields.def, so recursion ends. Several references
 * may lead to one table or list, so that a small file may describe a model without end: tables, and the bytes of lists,
 * are counted as often as they are reached. So whoever walks over what was read does work in proportion to the file.
 * The format: https://flatbuffers.dev/internals/ */
#include "frontend/tflite/tflite_table.h"

#include <string.h>

#define MOST_TABLES 1000000u
#define MOST_SHARED 8u /* times a list may be reached where all are reached as often; writers share some */

typedef struct reader {
    compiler *c;
    span file;
    uint64_t tables, most; /* visited; at most so many */
    uint64_t room;         /* bytes that lists may still have */
    const char *why;       /* what is wrong; NULL: nothing so far */
} reader;

static bool fail(reader *r, uint64_t at, const char *what, const char *where)
{
    r->why = arena_printf(&r->c->mem, "byte %llu: %s in %s", (unsigned long long)at, what, where);
    return false;
}

/* `size` bytes from `at` are in the file. */
static bool is_inside(const reader *r, uint64_t at, uint64_t size)
{
    return at <= r->file.len && size <= r->file.len - at;
}

/* A number of `size` bytes; the caller has asked is_inside. */
static uint64_t read_le(const uint8_t *p, uint32_t size)
{
    uint64_t v = 0;
    for (uint32_t i = 0; i < size; i++)
        v |= (uint64_t)p[i] << 8 * i;
    return v;
}

int32_t flat_i32(flat_numbers v, uint32_t i)
{
    return (int32_t)(uint32_t)read_le(v.data + (size_t)i * 4, 4);
}

int64_t flat_i64(flat_numbers v, uint32_t i)
{
    return (int64_t)read_le(v.data + (size_t)i * 8, 8);
}

float flat_f32(flat_numbers v, uint32_t i)
{
    const uint32_t bits = (uint32_t)read_le(v.data + (size_t)i * 4, 4);
    float f;
    memcpy(&f, &bits, sizeof f);
    return f;
}

/* The place that the reference at `at` leads to. */
static bool follow(reader *r, uint64_t at, const char *where, uint64_t *out)
{
    if (!is_inside(r, at, 4))
        return fail(r, at, "a reference is cut off", where);
    const uint64_t step = read_le(r->file.data + at, 4);
    if (step == 0 || !is_inside(r, at + step, 4))
        return fail(r, at, "a reference leads out of the file", where);
    *out = at + step;
    return true;
}

/* The elements, `width` bytes each, of the vector that the reference at `at` leads to. */
static bool read_vector(reader *r, uint64_t at, uint32_t width, const char *where, flat_numbers *out)
{
    uint64_t to = 0;
    if (!follow(r, at, where, &to))
        return false;
    const uint64_t count = read_le(r->file.data + to, 4);
    if (!is_inside(r, to + 4, count * width))
        return fail(r, to, "a vector goes beyond the end", where);
    if (count * width > r->room)
        return fail(r, at, "the lists have more bytes than a file of this size can hold", where);
    r->room -= count * width;
    *out = (flat_numbers){r->file.data + to + 4, (uint32_t)count};
    return true;
}

static bool read_bytes(reader *r, uint64_t at, bool is_text, const char *where, span *out)
{
    flat_numbers v = {0};
    if (!read_vector(r, at, 1, where, &v))
        return false;
    const uint64_t end = (uint64_t)(v.data - r->file.data) + v.len;
    if (is_text && (!is_inside(r, end, 1) || r->file.data[end] != 0))
        return fail(r, end, "a text has no end", where);
    *out = (span){v.data, v.len};
    return true;
}

static bool read_table(reader *r, uint64_t at, const flat_table *t, void **out);

static bool read_tables(reader *r, uint64_t at, const flat_field *f, void *out)
{
    struct {
        void **data;
        uint32_t len;
    } list = {0};
    flat_numbers v = {0};
    if (!read_vector(r, at, 4, f->name, &v))
        return false;
    if (v.len > r->most - r->tables)
        return fail(r, at, "there are more tables than a file of this size has", f->name);
    list.data = arena_array(&r->c->mem, void *, (size_t)v.len + 1);
    for (; list.len < v.len; list.len++) {
        const uint64_t slot = (uint64_t)(v.data - r->file.data) + (uint64_t)list.len * 4;
        uint64_t to = 0;
        if (!follow(r, slot, f->name, &to) || !read_table(r, to, f->sub, &list.data[list.len]))
            return false;
    }
    memcpy(out, &list, sizeof list);
    return true;
}

static uint32_t width_of(flat_kind kind)
{
    switch (kind) {
    case FLAT_BOOL:
    case FLAT_I8:
    case FLAT_U8: return 1;
    case FLAT_I64:
    case FLAT_U64: return 8;
    case FLAT_I32:
    case FLAT_U32:
    case FLAT_F32:
    case FLAT_STR:
    case FLAT_BYTES:
    case FLAT_U16S:
    case FLAT_I32S:
    case FLAT_I64S:
    case FLAT_F32S:
    case FLAT_TABLE:
    case FLAT_TABLES:
    case FLAT_UNION: break;
    }
    return 4; /* a number or a reference */
}

static int64_t sign_extended(uint64_t v, uint32_t bytes)
{
    const uint64_t top = (uint64_t)1 << (8 * bytes - 1);
    return (int64_t)((v ^ top) - top);
}

/* The field f, which is there: its number or reference stands at `at`. number: in the union. */
static bool read_value(reader *r, const flat_field *f, uint64_t at, uint64_t number, void *out)
{
    const uint8_t *p = r->file.data + at;
    uint64_t to = 0;
    void *table = NULL;
    switch (f->kind) {
    case FLAT_BOOL: *(int64_t *)out = *p != 0; return true;
    case FLAT_I8: *(int64_t *)out = sign_extended(*p, 1); return true;
    case FLAT_U8: *(int64_t *)out = *p; return true;
    case FLAT_I32: *(int64_t *)out = sign_extended(read_le(p, 4), 4); return true;
    case FLAT_U32: *(int64_t *)out = (int64_t)read_le(p, 4); return true;
    case FLAT_I64: *(int64_t *)out = (int64_t)read_le(p, 8); return true;
    case FLAT_U64: *(uint64_t *)out = read_le(p, 8); return true;
    case FLAT_F32: *(float *)out = flat_f32((flat_numbers){p, 1}, 0); return true;
    case FLAT_STR:
    case FLAT_BYTES: return read_bytes(r, at, f->kind == FLAT_STR, f->name, out);
    case FLAT_U16S: return read_vector(r, at, 2, f->name, out);
    case FLAT_I32S:
    case FLAT_F32S: return read_vector(r, at, 4, f->name, out);
    case FLAT_I64S: return read_vector(r, at, 8, f->name, out);
    case FLAT_TABLES: return read_tables(r, at, f, out);
    case FLAT_UNION:
    case FLAT_TABLE: {
        const flat_table *t = f->kind == FLAT_TABLE ? f->sub : flat_union_table(f->of, number);
        if (!follow(r, at, f->name, &to) || (t && !read_table(r, to, t, &table)))
            return false;
        memcpy(out, &table, sizeof table);
        return true;
    }
    }
    return false;
}

/* The number or reference of field `number` in a table at `at`: *out is 0 where the field is not there. */
static bool find_field(reader *r, uint64_t at, uint64_t vtable, const flat_table *t, uint32_t number, uint32_t width,
                       uint64_t *out)
{
    const uint64_t size = read_le(r->file.data + vtable, 2), slot = 4 + 2 * (uint64_t)number;
    *out = 0;
    if (slot + 2 > size) /* an older writer */
        return true;
    const uint64_t offset = read_le(r->file.data + vtable + slot, 2), room = read_le(r->file.data + vtable + 2, 2);
    if (offset == 0)
        return true;
    if (offset < 4 || offset + width > room)
        return fail(r, vtable + slot, "a field stands outside of its table", t->name);
    *out = at + offset;
    return true;
}

/* Where the vtable of the table at `at` stands; both are in the file as a whole. */
static bool find_vtable(reader *r, uint64_t at, const flat_table *t, uint64_t *out)
{
    const int64_t back = is_inside(r, at, 4) ? sign_extended(read_le(r->file.data + at, 4), 4) : INT64_MIN;
    const int64_t vtable = back == INT64_MIN ? -1 : (int64_t)at - back;
    if (vtable < 0 || !is_inside(r, (uint64_t)vtable, 4))
        return fail(r, at, "a table has no description", t->name);
    *out = (uint64_t)vtable;
    const uint64_t size = read_le(r->file.data + vtable, 2), room = read_le(r->file.data + vtable + 2, 2);
    if (size < 4 || size % 2 != 0 || !is_inside(r, *out, size))
        return fail(r, *out, "a table's description is cut off", t->name);
    return (room >= 4 && is_inside(r, at, room)) || fail(r, at, "a table is cut off", t->name);
}

static bool read_table(reader *r, uint64_t at, const flat_table *t, void **out)
{
    uint64_t vtable = 0, place = 0, last = 0;
    struct {
        uint64_t at, has;
    } head = {.at = at};
    if (r->tables++ >= r->most)
        return fail(r, at, "there are more tables than a file of this size has", t->name);
    if (!find_vtable(r, at, t, &vtable))
        return false;
    uint8_t *table = arena_alloc(&r->c->mem, t->size, 8);
    for (uint32_t i = 0; i < t->n_fields; i++) {
        const flat_field *f = &t->fields[i];
        if (!find_field(r, at, vtable, t, f->number, width_of(f->kind), &place))
            return false;
        if (place && !read_value(r, f, place, last, table + f->offset))
            return false;
        if (place)
            head.has |= (uint64_t)1 << f->number;
        else if (f->value)
            memcpy(table + f->offset, &f->value, sizeof f->value); /* of whole numbers: only these have defaults */
        last = f->kind == FLAT_U8 ? (uint64_t)*(int64_t *)(void *)(table + f->offset) : 0;
    }
    memcpy(table, &head, sizeof head);
    *out = table;
    return true;
}

const void *flat_default_options(compiler *c, uint32_t number)
{
    const flat_table *t = flat_union_table("builtin_options", number);
    uint8_t *table = t ? arena_alloc(&c->mem, t->size, 8) : NULL;
    for (uint32_t i = 0; t && i < t->n_fields; i++)
        if (t->fields[i].value)
            memcpy(table + t->fields[i].offset, &t->fields[i].value, sizeof t->fields[i].value);
    return table;
}

/* The table at the root of `bytes`; NULL: *why says what is wrong. */
static const void *read_root(compiler *c, span bytes, const char *mark, const flat_table *t, const char **why)
{
    /* Each table has a reference of four bytes, and four of its own at least. */
    reader r = {.c = c, .file = bytes, .most = bytes.len / 4, .room = MOST_SHARED * (uint64_t)bytes.len};
    uint64_t root = 0;
    void *table = NULL;
    r.most = r.most < MOST_TABLES ? r.most : MOST_TABLES;
    bool ok = bytes.len >= 8 && memcmp(bytes.data + 4, mark, 4) == 0;
    if (!ok)
        (void)fail(&r, 0, arena_printf(&c->mem, "the mark %s is missing", mark), "the file");
    ok = ok && follow(&r, 0, "the file", &root) && read_table(&r, root, t, &table);
    *why = r.why;
    return ok ? table : NULL;
}

bool flat_read_model(compiler *c, const char *path, span bytes, const tfl_model **out)
{
    src_loc loc = src_loc_none();
    const char *why = NULL;
    loc.file = path;
    *out = read_root(c, bytes, "TFL3", flat_model_table(), &why);
    if (*out)
        return true;
    (void)diag_error(&c->diags, DIAG_FORMAT, loc, "not a readable TensorFlow Lite file: %s", why);
    diag_hint(&c->diags, "is it a TensorFlow Lite model, and was it copied as a whole?");
    return false;
}

const tfl_model_about *flat_read_about(compiler *c, span bytes, const char **why)
{
    return read_root(c, bytes, "M001", flat_about_table(), why);
}
