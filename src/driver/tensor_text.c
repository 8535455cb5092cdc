/* SPDX-License-Identifier: Apache-2.0 */
/* Tensors of strings in files: NumPy's kinds S and U as bytes of one width, padded with zeros. */
#include "driver/tensor_text.h"

#include <stdlib.h>
#include <string.h>

bool tensor_text_descr(const char *descr, bool *out_wide, int64_t *out_bytes)
{
    const char *kind = descr + strspn(descr, "|<=");
    char *end;
    if (*kind != 'S' && *kind != 'U')
        return false;
    *out_wide = *kind == 'U';
    *out_bytes = strtoll(kind + 1, &end, 10) * (*out_wide ? 4 : 1);
    return end > kind + 1 && *out_bytes >= 0 && *out_bytes < INT32_MAX;
}

/* A code point as UTF-8; how many bytes. */
static uint32_t put_utf8(uint32_t code, uint8_t *to)
{
    if (code < 0x80) {
        to[0] = (uint8_t)code;
        return 1;
    }
    const uint32_t more = code < 0x800 ? 1 : code < 0x10000 ? 2 : 3;
    static const uint8_t first[] = {0, 0xc0, 0xe0, 0xf0};
    for (uint32_t i = more; i > 0; i--, code >>= 6)
        to[i] = (uint8_t)(0x80 | (code & 0x3f));
    to[0] = (uint8_t)(first[more] | code);
    return more + 1;
}

/* A string of the file, without the zeros behind it; returns its bytes. */
static size_t take_one(const uint8_t *from, int64_t bytes, bool wide, uint8_t *to)
{
    size_t len = 0, last = 0;
    for (int64_t i = 0; i < bytes; i += wide ? 4 : 1) {
        const uint32_t code = wide ? from[i] | (uint32_t)from[i + 1] << 8 | (uint32_t)from[i + 2] << 16 : from[i];
        len += wide ? put_utf8(code, to + len) : (to[len] = from[i], 1u);
        last = code ? len : last;
    }
    return last;
}

static bool no_memory(compiler *c, const char *path)
{
    return diag_error(&c->diags, DIAG_ENVIRONMENT, src_loc_none(), "no memory for the strings of '%s'", path);
}

/* Rows of `from` bytes as rows of `to`; where they are narrower, only zeros go. */
static bool set_width(compiler *c, const char *path, int64_t count, int64_t from, int64_t to, tensor_content *x)
{
    int64_t bytes = 0;
    uint8_t *out = i64_mul(count, to, &bytes) ? arena_try_alloc(&c->mem, (size_t)bytes + 1, 64) : NULL;
    if (!out)
        return no_memory(c, path);
    memset(out, 0, (size_t)bytes);
    for (int64_t i = 0; i < count; i++)
        memcpy(out + i * to, x->data + i * from, (size_t)(from < to ? from : to));
    x->data = out;
    x->len = (size_t)bytes;
    return true;
}

bool tensor_text_take(compiler *c, const char *path, bool wide, int64_t bytes, tensor_content *x)
{
    int64_t count = 0, all = 0, width = 1;
    if (x->rank == TYPE_MAX_RANK || !tensor_count(x->rank, x->dims, &count) || !i64_mul(count, bytes, &all) ||
        (size_t)all > x->len)
        return diag_error(&c->diags, DIAG_DATA, src_loc_none(), "'%s': the file was cut", path);
    uint8_t *rows = arena_try_alloc(&c->mem, (size_t)all + 1, 64);
    if (!rows)
        return no_memory(c, path);
    memset(rows, 0, (size_t)all + 1);
    for (int64_t i = 0; i < count; i++) {
        uint8_t *row = rows + i * bytes;
        const size_t len = take_one(x->data + i * bytes, bytes, wide, row);
        if (memchr(row, 0, len))
            return diag_error(&c->diags, DIAG_DATA, src_loc_none(),
                              "'%s': string %lld has a zero byte in it, which ends a string here", path, (long long)i);
        width = (int64_t)len > width ? (int64_t)len : width;
    }
    x->data = rows;
    x->dt = DT_U8;
    x->is_text = true;
    x->dims[x->rank++] = width;
    return set_width(c, path, count, bytes, width, x);
}

bool tensor_text_fit(compiler *c, const char *path, const run_tensor *t, tensor_content *x)
{
    int64_t count = 0;
    const int64_t width = x->dims[x->rank - 1], most = t->dims[t->rank - 1];
    if (width > most) {
        diag_error(&c->diags, DIAG_DATA, src_loc_none(), "'%s' has a string of %lld bytes; '%s' takes at most %lld",
                   path, (long long)width, t->name, (long long)most);
        diag_hint(&c->diags, "compile with --string-bytes %lld", (long long)width);
        return false;
    }
    if (!tensor_count(x->rank - 1, x->dims, &count))
        return false;
    x->dims[x->rank - 1] = most;
    return set_width(c, path, count, width, most, x);
}

/* Short, and of few letters, so that some are equal, empty, or have blanks and signs in them. */
void tensor_text_random(run_tensor *t, uint64_t *state, uint64_t (*next)(uint64_t *state))
{
    static const char letters[] = "abcABC12 .-";
    const int64_t width = t->dims[t->rank - 1], most = width < 8 ? width : 8;
    memset(t->data, 0, t->bytes);
    for (int64_t i = 0; i * width < t->count; i++) {
        const int64_t len = (int64_t)(next(state) % (uint64_t)(most + 1));
        for (int64_t k = 0; k < len; k++)
            t->data[i * width + k] = (uint8_t)letters[next(state) % (sizeof letters - 1)];
    }
    t->filled = true;
}
