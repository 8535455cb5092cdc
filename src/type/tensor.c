/* SPDX-License-Identifier: Apache-2.0 */
/* Constant tensors and their text. */
#include "type/tensor.h"

#include <stdlib.h>
#include <errno.h>
#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <stddef.h>
#include <string.h>

bool tensor_count(uint32_t rank, const int64_t *dims, int64_t *out)
{
    int64_t n = 1;
    bool ok = true, zero = false;
    for (uint32_t i = 0; i < rank; i++) {
        if (dims[i] < 0)
            return false;
        zero = zero || dims[i] == 0;
        ok = ok && i64_mul(n, dims[i], &n);
    }
    *out = zero ? 0 : n;
    return ok || zero;
}

static tensor_data *make(compiler *c, tensor_kind kind, dtype dt, uint32_t rank, const int64_t *dims)
{
    tensor_data *t = arena_new(&c->mem, tensor_data);
    t->kind = kind;
    t->dt = dt;
    t->rank = rank;
    t->dims = arena_copy(&c->mem, dims, rank * sizeof *dims, _Alignof(int64_t));
    bool fits = tensor_count(rank, dims, &t->count);
    assert(fits);
    (void)fits;
    return t;
}

const tensor_data *tensor_dense(compiler *c, dtype dt, uint32_t rank, const int64_t *dims, const void *take_data)
{
    tensor_data *t = make(c, TENSOR_DENSE, dt, rank, dims);
    t->data = take_data;
    return t;
}

const tensor_data *tensor_nibbles(compiler *c, dtype dt, uint32_t rank, const int64_t *dims, const void *take_data)
{
    tensor_data *t = make(c, TENSOR_DENSE, dt, rank, dims);
    t->data = take_data;
    t->nibbles = true;
    return t;
}

const tensor_data *tensor_splat(compiler *c, dtype dt, uint32_t rank, const int64_t *dims, const void *element)
{
    tensor_data *t = make(c, TENSOR_SPLAT, dt, rank, dims);
    t->data = arena_copy(&c->mem, element, dtype_bytes(dt), _Alignof(max_align_t));
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
    tensor_data *r = make(c, t->kind, t->dt, rank, dims);
    assert(r->count == t->count);
    r->data = t->data;
    r->file = t->file;
    r->offset = t->offset;
    r->nibbles = t->nibbles;
    return r;
}

const uint8_t *tensor_element(const tensor_data *t, int64_t i)
{
    return t->kind == TENSOR_SPLAT ? t->data : t->data + (size_t)i * dtype_bytes(t->dt);
}

double tensor_get_f64(const tensor_data *t, int64_t i)
{
    return dtype_load_f64(t->dt, tensor_element(t, i));
}

int64_t tensor_get_i64(const tensor_data *t, int64_t i)
{
    return dtype_load_i64(t->dt, tensor_element(t, i));
}

bool tensor_range(const tensor_data *t, int64_t *out_least, int64_t *out_most)
{
    const int64_t n = t->kind == TENSOR_SPLAT && t->count > 0 ? 1 : t->count;
    *out_least = INT64_MAX;
    *out_most = INT64_MIN;
    for (int64_t i = 0; i < n; i++) {
        const int64_t v = tensor_get_i64(t, i);
        *out_least = v < *out_least ? v : *out_least;
        *out_most = v > *out_most ? v : *out_most;
    }
    return n > 0;
}

size_t tensor_size(const tensor_data *t)
{
    return (size_t)t->count * dtype_bytes(t->dt);
}

const uint8_t *tensor_bytes(arena *a, const tensor_data *t)
{
    size_t size = tensor_size(t), one = dtype_bytes(t->dt);
    if (t->kind == TENSOR_DENSE && t->data && (uintptr_t)t->data % 64 == 0)
        return t->data;
    uint8_t *p = arena_try_alloc(a, size, 64);
    if (!p)
        return NULL;
    if (t->kind == TENSOR_DENSE) {
        if (size)
            memcpy(p, t->data, size);
        return p;
    }
    if (size)
        memcpy(p, t->data, one);
    for (size_t done = one; done < size; done *= 2) /* each copy doubles what is filled */
        memcpy(p + done, p, done < size - done ? done : size - done);
    return p;
}

const uint8_t *tensor_plain_bytes(arena *a, const tensor_data *t)
{
    return t->kind == TENSOR_DENSE && t->count > 0 ? t->data : tensor_bytes(a, t);
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

/* Of type and value, so that a splat and its dense form agree: dense tensors of equal elements are hashed as splats.
 * Large tensors are sampled; equality is what decides. */
uint64_t tensor_hash(const tensor_data *t)
{
    uint64_t h = 14695981039346656037u ^ (uint64_t)t->dt;
    for (uint32_t i = 0; i < t->rank; i++)
        h = (h ^ (uint64_t)t->dims[i]) * 1099511628211u;
    size_t one = dtype_bytes(t->dt);
    int64_t samples = t->count < 256 ? t->count : 256, step = samples ? t->count / samples : 0;
    for (int64_t i = 0; i < samples; i++)
        for (size_t k = 0; k < one; k++)
            h = (h ^ tensor_element(t, i * step)[k]) * 1099511628211u;
    return h;
}

type tensor_type(compiler *c, const tensor_data *t)
{
    return type_static(c, t->dt, t->rank, t->dims);
}

/* --- text --- */

#define DENSE_TEXT_LIMIT 64

static void print_element(writer *w, const tensor_data *t, int64_t i)
{
    if (dtype_is_float(t->dt))
        w_float(w, tensor_get_f64(t, i), t->dt == DT_F64 ? 64 : 32);
    else if (t->dt == DT_U64)
        w_fmt(w, "%" PRIu64, (uint64_t)tensor_get_i64(t, i));
    else
        w_fmt(w, "%" PRId64, tensor_get_i64(t, i));
}

/* Whether numbers tell the elements' bytes: not when there is a NaN with a payload or a sign, or a bool that is not 0
 * or 1, and not for types that have no numbers here. */
static bool has_numbers(const tensor_data *t)
{
    bool ok = dtype_usable(t->dt);
    int64_t n = t->kind == TENSOR_SPLAT ? 1 : t->count;
    for (int64_t i = 0; ok && i < n; i++) {
        uint8_t again[16] = {0};
        if (dtype_is_float(t->dt))
            dtype_store_f64(t->dt, again, isnan(tensor_get_f64(t, i)) ? (double)NAN : tensor_get_f64(t, i));
        else
            dtype_store_i64(t->dt, again, tensor_get_i64(t, i));
        ok = memcmp(again, tensor_element(t, i), dtype_bytes(t->dt)) == 0;
    }
    return ok;
}

static void print_hex(writer *w, const uint8_t *data, size_t n)
{
    static const char digits[] = "0123456789abcdef";
    char piece[129];
    w_str(w, "hex \"");
    for (size_t i = 0, k = 0; i < n; i++) {
        piece[k++] = digits[data[i] >> 4];
        piece[k++] = digits[data[i] & 15];
        piece[k] = 0;
        if (k == sizeof piece - 1 || i + 1 == n) {
            w_str(w, piece);
            k = 0;
        }
    }
    w_str(w, "\"");
}

static void print_dense(writer *w, const tensor_data *t)
{
    w_str(w, "dense [");
    for (int64_t i = 0; i < t->count; i++) {
        w_str(w, i ? ", " : "");
        print_element(w, t, i);
    }
    w_str(w, "]");
}

void tensor_print(writer *w, const tensor_data *t)
{
    if (t->kind == TENSOR_SPLAT) {
        w_str(w, "splat ");
        if (has_numbers(t))
            print_element(w, t, 0);
        else
            print_hex(w, t->data, dtype_bytes(t->dt));
    } else if (t->count <= DENSE_TEXT_LIMIT && has_numbers(t)) {
        print_dense(w, t);
    } else if (t->file) {
        w_str(w, "file ");
        w_quoted(w, t->file, strlen(t->file));
        w_fmt(w, " %" PRIu64, t->offset);
    } else {
        print_hex(w, t->data, tensor_size(t));
    }
}

/* An integer that the type can hold, 0 or 1 for bool, the whole unsigned range for u64. */
static bool parse_integer(lexer *l, dtype dt, uint8_t *p)
{
    int64_t v;
    const token at = l->tok;
    if (dt == DT_U64 && l->tok.kind == TOK_UINT) {
        dtype_store_i64(dt, p, l->tok.i);
        lexer_next(l);
        return !l->failed;
    }
    if (!lexer_int(l, &v))
        return false;
    if (v < dtype_min_int(dt) || v > dtype_max_int(dt)) {
        l->tok = at;
        return lexer_error(l, "%" PRId64 " does not fit into %s", v, dtype_name(dt));
    }
    dtype_store_i64(dt, p, v);
    return true;
}

static bool parse_element(lexer *l, dtype dt, uint8_t *p)
{
    double v;
    if (!dtype_usable(dt))
        return lexer_error(l, "numbers of type %s cannot be written as text; write hex", dtype_name(dt));
    if (!dtype_is_float(dt))
        return parse_integer(l, dt, p);
    if (!lexer_float(l, &v))
        return false;
    dtype_store_f64(dt, p, v);
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

static int nibble(char ch)
{
    return ch >= '0' && ch <= '9' ? ch - '0' : ch >= 'a' && ch <= 'f' ? ch - 'a' + 10 : -1;
}

static bool parse_hex(lexer *l, size_t size, uint8_t *p)
{
    if (l->tok.kind != TOK_STRING || l->tok.len != 2 * size)
        return lexer_error(l, "expected %zu hexadecimal digits in quotes", 2 * size);
    for (size_t i = 0; i < size; i++) {
        int hi = nibble(l->tok.text[2 * i]), lo = nibble(l->tok.text[2 * i + 1]);
        if (hi < 0 || lo < 0)
            return lexer_error(l, "byte %zu of the constant is not two lower-case hexadecimal digits", i);
        p[i] = (uint8_t)(hi * 16 + lo);
    }
    lexer_next(l);
    return !l->failed;
}

static bool parse_file(compiler *c, lexer *l, tensor_data *t, size_t size)
{
    span s;
    int64_t offset;
    const token at = l->tok;
    if (!lexer_name(l, TOK_STRING, &t->file))
        return false;
    const char *path = path_join(&c->mem, path_dir(&c->mem, l->file ? l->file : "."), t->file);
    if (!lexer_int(l, &offset) || !compiler_read_file(c, path, &s))
        return false;
    if (offset < 0 || (uint64_t)offset > s.len || size > s.len - (uint64_t)offset) {
        l->tok = at;
        return lexer_error(l, "%s has %zu bytes: %zu bytes from %" PRId64 " on end beyond it", path, s.len, size,
                           offset);
    }
    t->offset = (uint64_t)offset;
    t->data = s.data ? s.data + offset : NULL;
    return true;
}

static bool parse_splat(compiler *c, lexer *l, const type *t, const int64_t *dims, const tensor_data **out)
{
    uint8_t one[16] = {0};
    bool hex = lexer_accept(l, "hex");
    if (!(hex ? parse_hex(l, dtype_bytes(t->dt), one) : parse_element(l, t->dt, one)))
        return false;
    *out = tensor_splat(c, t->dt, (uint32_t)t->shape.rank, dims, one);
    return true;
}

/* dense or hex: `size` bytes into new memory */
static bool parse_values(compiler *c, lexer *l, tensor_data *t, size_t size)
{
    bool hex = lexer_is(l, "hex");
    if (!hex && !lexer_is(l, "dense"))
        return lexer_error(l, "expected splat, dense, hex or file");
    if (size / 8 >
        (size_t)(l->end - l->pos)) /* refused before memory is asked for: an element takes a character or more */
        return lexer_error(l, "the type has more elements than the text");
    uint8_t *p = arena_alloc(&c->mem, size, 64);
    t->data = p;
    lexer_next(l);
    return hex ? parse_hex(l, size, p) : parse_dense(l, t->dt, t->count, p);
}

bool tensor_parse(compiler *c, lexer *l, const type *t, const tensor_data **out)
{
    int64_t dims[TYPE_MAX_RANK], bytes = type_bytes(t);
    *out = NULL;
    if (bytes < 0 || !shape_get(t->shape, dims) || dtype_bytes(t->dt) == 0)
        return lexer_error(l, "a constant needs the type of a static tensor of numbers");
    if (lexer_accept(l, "splat"))
        return parse_splat(c, l, t, dims, out);
    tensor_data *r = make(c, TENSOR_DENSE, t->dt, (uint32_t)t->shape.rank, dims);
    if (!(lexer_accept(l, "file") ? parse_file(c, l, r, (size_t)bytes) : parse_values(c, l, r, (size_t)bytes)))
        return false;
    *out = r;
    return true;
}

/* --- numbers of a command line --- */

static bool read_number(dtype dt, const char **text, uint8_t *out)
{
    char *end = NULL;
    errno = 0;
    if (dtype_is_float(dt)) {
        dtype_store_f64(dt, out, strtod(*text, &end));
    } else {
        long long v = strtoll(*text, &end, 10);
        dtype_store_i64(dt, out, v);
        if (dtype_load_i64(dt, out) != v)
            return false;
    }
    bool ok = end != *text && errno == 0 && (*end == '\0' || *end == ',');
    *text = end + (*end == ',');
    return ok;
}

bool tensor_from_numbers(compiler *c, const type *t, const char *name, const char *text, const tensor_data **out)
{
    int64_t dims[TYPE_MAX_RANK] = {0}, count = shape_count(t->shape), n = 0;
    uint32_t rank = (uint32_t)t->shape.rank;
    size_t size = dtype_bytes(t->dt), commas = 0;
    for (const char *s = text; *s; s++)
        commas += *s == ',';
    if (count < 0 || !dtype_usable(t->dt) || !shape_get(t->shape, dims))
        return diag_error(&c->diags, DIAG_USAGE, src_loc_none(), "'%s' has no shape to fill with numbers yet", name);
    uint8_t *bytes = arena_alloc(&c->mem, size * (commas + 1), 8);
    for (const char *at = text; *at; n++)
        if (!read_number(t->dt, &at, bytes + (size_t)n * size))
            return diag_error(&c->diags, DIAG_USAGE, src_loc_none(), "'%s': '%.100s' is not a list of %s", name, text,
                              dtype_name(t->dt));
    if (n != count && n != 1) {
        diag_error(&c->diags, DIAG_USAGE, src_loc_none(), "'%s' has %lld elements; %lld numbers are given", name,
                   (long long)count, (long long)n);
        diag_hint(&c->diags, "give %lld numbers, or one for all elements", (long long)count);
        return false;
    }
    *out = n == count ? tensor_dense(c, t->dt, rank, dims, bytes) : tensor_splat(c, t->dt, rank, dims, bytes);
    return true;
}
