/* SPDX-License-Identifier: Apache-2.0 */
/* Constant tensors and their text. */
#include "type/tensor.h"

#include "base/file.h"

#include <string.h>

static tensor_data *make(compiler *c, tensor_kind kind, dtype dt, uint32_t rank, const int64_t *dims)
{
    tensor_data *t = arena_new(&c->mem, tensor_data);
    t->kind = kind;
    t->dt = dt;
    t->rank = rank;
    t->dims = arena_copy(&c->mem, dims, rank * sizeof *dims, _Alignof(int64_t));
    t->count = 1;
    for (uint32_t i = 0; i < rank; i++)
        t->count *= dims[i]; /* callers check the product when it comes from a file */
    return t;
}

const tensor_data *tensor_dense(compiler *c, dtype dt, uint32_t rank, const int64_t *dims, const void *take_data)
{
    tensor_data *t = make(c, TENSOR_DENSE, dt, rank, dims);
    t->data = take_data;
    return t;
}

const tensor_data *tensor_splat(compiler *c, dtype dt, uint32_t rank, const int64_t *dims, const void *element)
{
    tensor_data *t = make(c, TENSOR_SPLAT, dt, rank, dims);
    t->data = arena_copy(&c->mem, element, dtype_bytes(dt), 8);
    return t;
}

const tensor_data *tensor_scalar_f64(compiler *c, dtype dt, double v)
{
    uint8_t b[8] = {0};
    dtype_store_f64(dt, b, v);
    return tensor_splat(c, dt, 0, NULL, b);
}

const tensor_data *tensor_scalar_i64(compiler *c, dtype dt, int64_t v)
{
    uint8_t b[8] = {0};
    dtype_store_i64(dt, b, v);
    return tensor_splat(c, dt, 0, NULL, b);
}

const tensor_data *tensor_from_i64s(compiler *c, uint32_t n, const int64_t *v)
{
    int64_t dims[1] = {n};
    return tensor_dense(c, DT_I64, 1, dims, arena_copy(&c->mem, v, n * sizeof *v, 64));
}

const tensor_data *tensor_reshape(compiler *c, const tensor_data *t, uint32_t rank, const int64_t *dims)
{
    tensor_data *r = arena_new(&c->mem, tensor_data);
    *r = *t;
    r->rank = rank;
    r->dims = arena_copy(&c->mem, dims, rank * sizeof *dims, _Alignof(int64_t));
    return r;
}

const uint8_t *tensor_element(const tensor_data *t, int64_t i)
{
    return t->kind == TENSOR_SPLAT ? t->data : t->data + (size_t)i * dtype_bytes(t->dt);
}

double tensor_get_f64(const tensor_data *t, int64_t i) { return dtype_load_f64(t->dt, tensor_element(t, i)); }
int64_t tensor_get_i64(const tensor_data *t, int64_t i) { return dtype_load_i64(t->dt, tensor_element(t, i)); }
size_t tensor_size(const tensor_data *t) { return (size_t)t->count * dtype_bytes(t->dt); }

const uint8_t *tensor_bytes(arena *a, const tensor_data *t)
{
    size_t size = tensor_size(t), one = dtype_bytes(t->dt);
    if (t->kind == TENSOR_DENSE && (uintptr_t)t->data % 64 == 0)
        return t->data;
    uint8_t *p = arena_try_alloc(a, size, 64);
    if (!p)
        return NULL;
    if (t->kind == TENSOR_DENSE) {
        if (size)
            memcpy(p, t->data, size);
        return p;
    }
    for (size_t i = 0; i < size; i += one)
        memcpy(p + i, t->data, one);
    return p;
}

bool tensor_equal(const tensor_data *a, const tensor_data *b)
{
    if (a == b)
        return true;
    if (a->dt != b->dt || a->rank != b->rank || (a->rank && memcmp(a->dims, b->dims, a->rank * sizeof *a->dims) != 0))
        return false;
    size_t one = dtype_bytes(a->dt);
    if (a->count == 0)
        return true;
    if (a->kind == TENSOR_SPLAT && b->kind == TENSOR_SPLAT)
        return memcmp(a->data, b->data, one) == 0;
    if (a->kind == TENSOR_DENSE && b->kind == TENSOR_DENSE)
        return a->data == b->data || memcmp(a->data, b->data, tensor_size(a)) == 0;
    for (int64_t i = 0; i < a->count; i++)
        if (memcmp(tensor_element(a, i), tensor_element(b, i), one) != 0)
            return false;
    return true;
}

/* Of type and value, so that a splat and its dense form agree: dense tensors of equal elements are hashed as splats. Large
 * tensors are sampled; equality is what decides. */
uint64_t tensor_hash(const tensor_data *t)
{
    uint64_t h = 14695981039346656037u ^ (uint64_t)t->dt;
    for (uint32_t i = 0; i < t->rank; i++)
        h = (h ^ (uint64_t)t->dims[i]) * 1099511628211u;
    size_t one = dtype_bytes(t->dt);
    int64_t step = t->count > 256 ? t->count / 256 : 1;
    for (int64_t i = 0; i < t->count; i += step)
        for (size_t k = 0; k < one; k++)
            h = (h ^ tensor_element(t, i)[k]) * 1099511628211u;
    return h;
}

type tensor_type(compiler *c, const tensor_data *t) { return type_static(c, t->dt, t->rank, t->dims); }

/* --- text -------------------------------------------------------------------------------------------------------------- */

#define DENSE_TEXT_LIMIT 64

static void print_element(writer *w, const tensor_data *t, int64_t i)
{
    if (dtype_is_float(t->dt))
        w_float(w, tensor_get_f64(t, i), t->dt == DT_F64 ? 64 : 32);
    else if (t->dt == DT_U64)
        w_fmt(w, "%llu", (unsigned long long)tensor_get_i64(t, i));
    else
        w_fmt(w, "%lld", (long long)tensor_get_i64(t, i));
}

static bool has_nan_payload(const tensor_data *t)
{
    for (int64_t i = 0; dtype_is_float(t->dt) && i < t->count; i++) {
        double v = tensor_get_f64(t, i);
        uint8_t canonical[8] = {0};
        dtype_store_f64(t->dt, canonical, v);
        if (v != v && memcmp(canonical, tensor_element(t, i), dtype_bytes(t->dt)) != 0)
            return true;
    }
    return false;
}

static void print_hex(writer *w, const tensor_data *t)
{
    static const char digits[] = "0123456789abcdef";
    size_t n = tensor_size(t);
    char *s = arena_alloc(w->a, 2 * n + 1, 1);
    for (size_t i = 0; i < n; i++) {
        s[2 * i] = digits[t->data[i] >> 4];
        s[2 * i + 1] = digits[t->data[i] & 15];
    }
    w_str(w, "hex \"");
    w_str(w, s);
    w_str(w, "\"");
}

void tensor_print(writer *w, const tensor_data *t)
{
    if (t->kind == TENSOR_SPLAT) {
        w_str(w, "splat ");
        print_element(w, t, 0);
    } else if (t->count <= DENSE_TEXT_LIMIT && dtype_usable(t->dt) && !has_nan_payload(t)) {
        w_str(w, "dense [");
        for (int64_t i = 0; i < t->count; i++) {
            if (i)
                w_str(w, ", ");
            print_element(w, t, i);
        }
        w_str(w, "]");
    } else if (t->file) {
        w_str(w, "file ");
        w_quoted(w, t->file, strlen(t->file));
        w_fmt(w, " %llu", (unsigned long long)t->offset);
    } else {
        print_hex(w, t);
    }
}

static bool parse_element(lexer *l, dtype dt, uint8_t *p)
{
    bool minus = lexer_accept(l, "-");
    if (l->tok.kind != TOK_INT && l->tok.kind != TOK_FLOAT)
        return lexer_error(l, "expected a number");
    if (l->tok.kind == TOK_INT && !dtype_is_float(dt))
        dtype_store_i64(dt, p, minus ? (int64_t)(0 - (uint64_t)l->tok.i) : l->tok.i);
    else
        dtype_store_f64(dt, p, minus ? -l->tok.f : l->tok.f);
    lexer_next(l);
    return true;
}

static bool parse_dense(lexer *l, dtype dt, int64_t count, uint8_t *p)
{
    if (!lexer_expect(l, "["))
        return false;
    for (int64_t i = 0; i < count; i++)
        if ((i && !lexer_expect(l, ",")) || !parse_element(l, dt, p + (size_t)i * dtype_bytes(dt)))
            return false;
    return lexer_expect(l, "]");
}

static int nibble(char ch) { return ch >= '0' && ch <= '9' ? ch - '0' : ch >= 'a' && ch <= 'f' ? ch - 'a' + 10 : -1; }

static bool parse_hex(lexer *l, size_t size, uint8_t *p)
{
    if (l->tok.kind != TOK_STRING || l->tok.len != 2 * size)
        return lexer_error(l, "expected %zu hexadecimal digits in quotes", 2 * size);
    for (size_t i = 0; i < size; i++) {
        int hi = nibble(l->tok.text[2 * i]), lo = nibble(l->tok.text[2 * i + 1]);
        if (hi < 0 || lo < 0)
            return lexer_error(l, "'%c%c' is not a hexadecimal byte", l->tok.text[2 * i], l->tok.text[2 * i + 1]);
        p[i] = (uint8_t)(hi * 16 + lo);
    }
    lexer_next(l);
    return true;
}

static bool parse_file(compiler *c, lexer *l, tensor_data *t, size_t size)
{
    if (l->tok.kind != TOK_STRING)
        return lexer_error(l, "expected a file name");
    t->file = l->tok.text;
    const char *path = path_join(&c->mem, path_dir(&c->mem, l->file ? l->file : "."), t->file);
    lexer_next(l);
    if (l->tok.kind != TOK_INT || l->tok.i < 0)
        return lexer_error(l, "expected an offset");
    t->offset = (uint64_t)l->tok.i;
    span s;
    if (!file_map(&c->diags, &c->mem, path, &s))
        return false;
    if (t->offset > s.len || size > s.len - t->offset)
        return lexer_error(l, "%s has %zu bytes; the range ends beyond", path, s.len);
    t->data = s.data + t->offset; /* stays mapped: constants live as long as the compile */
    lexer_next(l);
    return true;
}

bool tensor_parse(compiler *c, lexer *l, const type *t, const tensor_data **out)
{
    int64_t dims[TYPE_MAX_RANK], bytes = type_bytes(t);
    *out = NULL;
    if (t->kind != TYPE_TENSOR || bytes < 0 || !shape_get(t->shape, dims) || dtype_bytes(t->dt) == 0)
        return lexer_error(l, "a constant needs a static tensor type");
    if (lexer_accept(l, "splat")) {
        uint8_t one[16] = {0};
        if (!parse_element(l, t->dt, one))
            return false;
        *out = tensor_splat(c, t->dt, (uint32_t)t->shape.rank, dims, one);
        return true;
    }
    tensor_data *r = make(c, TENSOR_DENSE, t->dt, (uint32_t)t->shape.rank, dims);
    *out = r;
    if (lexer_accept(l, "file"))
        return parse_file(c, l, r, (size_t)bytes);
    bool hex = lexer_is(l, "hex");
    if (!hex && !lexer_is(l, "dense"))
        return lexer_error(l, "expected splat, dense, hex or file");
    size_t left = (size_t)(l->end - l->pos);
    if ((size_t)bytes / 8 > left) /* text cannot hold so many elements: refuse before allocating */
        return lexer_error(l, "the type has more elements than the text");
    uint8_t *p = arena_try_alloc(&c->mem, (size_t)bytes, 64);
    if (!p)
        return lexer_error(l, "out of memory for %lld bytes", (long long)bytes);
    r->data = p;
    lexer_next(l);
    return hex ? parse_hex(l, (size_t)bytes, p) : parse_dense(l, t->dt, shape_count(t->shape), p);
}
