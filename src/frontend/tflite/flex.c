/* SPDX-License-Identifier: Apache-2.0 */
/* FlexBuffers: the last byte has the width of the root, the byte before its type, and references lead backwards. Every
 * place is checked against the bytes before one is read there; bytes are read one by one, so alignment does not
 * matter. */
#include "frontend/tflite/flex.h"

#include <string.h>

#define MOST_DEPTH 16u

/* FlexBuffers' numbers of types. Those of vectors whose elements have one type, and so no types behind them, follow. */
enum {
    T_NULL = 0, T_INT = 1, T_UINT = 2, T_FLOAT = 3, T_KEY = 4, T_STRING = 5, T_INDIRECT_INT = 6, T_INDIRECT_UINT = 7,
    T_INDIRECT_FLOAT = 8, T_MAP = 9, T_VECTOR = 10, T_VECTOR_INT = 11, T_VECTOR_STRING = 15, T_VECTOR_INT2 = 16,
    T_VECTOR_FLOAT4 = 24, T_BLOB = 25, T_BOOL = 26, T_VECTOR_BOOL = 36
};

static bool is_inside(span whole, uint64_t at, uint64_t size)
{
    return at <= whole.len && size <= whole.len - at;
}

/* A number of `width` bytes at a place that the caller has asked is_inside for. */
static uint64_t read_le(span whole, uint64_t at, uint32_t width)
{
    uint64_t v = 0;
    for (uint32_t i = 0; i < width; i++)
        v |= (uint64_t)whole.data[at + i] << 8 * i;
    return v;
}

static bool is_reference(uint32_t type)
{
    return type >= T_KEY && type != T_BOOL;
}

/* The type of the elements of such a vector; T_NULL: they have types of their own. */
static uint32_t element_type(uint32_t type)
{
    if (type >= T_VECTOR_INT && type <= T_VECTOR_STRING)
        return type - T_VECTOR_INT + T_INT;
    if (type >= T_VECTOR_INT2 && type <= T_VECTOR_FLOAT4)
        return (type - T_VECTOR_INT2) % 3 + T_INT;
    return type == T_VECTOR_BOOL ? T_BOOL : T_NULL;
}

/* Elements that the type tells, of vectors that do not say how long they are; 0: they do. */
static uint64_t fixed_count(uint32_t type)
{
    return type >= T_VECTOR_INT2 && type <= T_VECTOR_FLOAT4 ? (type - T_VECTOR_INT2) / 3 + 2 : 0;
}

/* What stands in the `width` bytes at `at`: a number, or a reference, which is followed. packed: type and width. */
static bool value_at(span whole, uint64_t at, uint32_t width, uint32_t packed, uint32_t depth, flex_value *out)
{
    *out = (flex_value){.whole = whole};
    if (depth > MOST_DEPTH || !is_inside(whole, at, width))
        return false;
    flex_value v = {whole, at, width, packed >> 2, depth};
    if (is_reference(v.type)) {
        const uint64_t back = read_le(whole, at, width);
        if (back == 0 || back > at)
            return false;
        v.at = at - back;
        v.width = 1u << (packed & 3);
    }
    *out = v;
    return true;
}

bool flex_root(span whole, flex_value *out)
{
    *out = (flex_value){.whole = whole};
    if (whole.len < 3)
        return false;
    const uint32_t width = whole.data[whole.len - 1];
    const bool is_width = width == 1 || width == 2 || width == 4 || width == 8;
    return is_width && width <= whole.len - 2 &&
           value_at(whole, whole.len - 2 - width, width, whole.data[whole.len - 2], 0, out);
}

flex_kind flex_kind_of(const flex_value *v)
{
    switch (v->type) {
    case T_INT:
    case T_UINT:
    case T_INDIRECT_INT:
    case T_INDIRECT_UINT: return FLEX_INT;
    case T_FLOAT:
    case T_INDIRECT_FLOAT: return FLEX_FLOAT;
    case T_BOOL: return FLEX_BOOL;
    case T_KEY:
    case T_STRING:
    case T_BLOB: return FLEX_TEXT;
    case T_MAP: return FLEX_MAP;
    case T_VECTOR: return FLEX_VECTOR;
    default: return element_type(v->type) != T_NULL ? FLEX_VECTOR : FLEX_NULL;
    }
}

bool flex_count(const flex_value *v, uint64_t *out)
{
    const flex_kind kind = flex_kind_of(v);
    uint64_t end = v->at;
    *out = 0;
    if (v->type == T_KEY) {
        while (end < v->whole.len && v->whole.data[end])
            end++;
        *out = end - v->at;
        return end < v->whole.len;
    }
    if (kind != FLEX_VECTOR && kind != FLEX_MAP && kind != FLEX_TEXT)
        return false;
    *out = fixed_count(v->type);
    if (*out == 0 && v->at < v->width)
        return false;
    *out = *out ? *out : read_le(v->whole, v->at - v->width, v->width);
    const uint64_t each = kind == FLEX_TEXT ? 1 : v->width, types = v->type == T_VECTOR || v->type == T_MAP;
    return *out <= v->whole.len && is_inside(v->whole, v->at, *out * (each + types));
}

bool flex_element(const flex_value *v, uint64_t i, flex_value *out)
{
    const uint32_t type = element_type(v->type);
    uint64_t count = 0;
    *out = (flex_value){.whole = v->whole};
    if (flex_kind_of(v) == FLEX_TEXT || !flex_count(v, &count) || i >= count)
        return false;
    /* strings in such a vector have sizes of its width, as the format's first version has it */
    const uint32_t log2_width = v->width == 1 ? 0 : v->width == 2 ? 1 : v->width == 4 ? 2 : 3;
    const uint32_t packed = type != T_NULL ? type << 2 | log2_width : v->whole.data[v->at + count * v->width + i];
    return value_at(v->whole, v->at + i * v->width, v->width, packed, v->depth + 1, out);
}

/* The vector of a map's keys: a reference, and its width, stand before the size. */
static bool keys_of(const flex_value *map, flex_value *out)
{
    const uint32_t w = map->width;
    *out = (flex_value){.whole = map->whole};
    if (map->type != T_MAP || map->at < 3 * (uint64_t)w)
        return false;
    const uint64_t width = read_le(map->whole, map->at - 2 * w, w);
    if ((width != 1 && width != 2 && width != 4 && width != 8) ||
        !value_at(map->whole, map->at - 3 * (uint64_t)w, w, (T_VECTOR_INT + T_KEY - T_INT) << 2, map->depth + 1, out))
        return false;
    out->width = (uint32_t)width;
    return true;
}

bool flex_find(const flex_value *map, const char *key, flex_value *out)
{
    flex_value keys, one;
    uint64_t n_keys = 0, count = 0;
    span text;
    *out = (flex_value){.whole = map->whole};
    if (!flex_count(map, &count) || !keys_of(map, &keys) || !flex_count(&keys, &n_keys))
        return false;
    for (uint64_t i = 0; i < n_keys && i < count; i++)
        if (flex_element(&keys, i, &one) && flex_text(&one, &text) && text.len == strlen(key) &&
            memcmp(text.data, key, text.len) == 0)
            return flex_element(map, i, out);
    return false;
}

bool flex_text(const flex_value *v, span *out)
{
    uint64_t len = 0;
    *out = (span){v->whole.data, 0};
    if (flex_kind_of(v) != FLEX_TEXT || !flex_count(v, &len))
        return false;
    *out = (span){v->whole.data + v->at, (size_t)len};
    return true;
}

bool flex_float(const flex_value *v, double *out)
{
    int64_t whole = 0;
    *out = 0;
    if (flex_kind_of(v) != FLEX_FLOAT) {
        const bool ok = flex_int(v, &whole);
        *out = (double)whole;
        return ok;
    }
    if (!is_inside(v->whole, v->at, v->width) || v->width < 4)
        return false;
    const uint64_t bits = read_le(v->whole, v->at, v->width);
    const uint32_t low = (uint32_t)bits;
    float f;
    memcpy(&f, &low, sizeof f);
    memcpy(out, &bits, sizeof *out);
    *out = v->width == 4 ? (double)f : *out;
    return true;
}

bool flex_int(const flex_value *v, int64_t *out)
{
    const flex_kind kind = flex_kind_of(v);
    const bool has_sign = v->type == T_INT || v->type == T_INDIRECT_INT;
    double real = 0;
    *out = 0;
    if (kind == FLEX_FLOAT) {
        if (!flex_float(v, &real) || !(real >= -0x1p53 && real <= 0x1p53) || (double)(int64_t)real != real)
            return false;
        *out = (int64_t)real;
        return true;
    }
    if ((kind != FLEX_INT && kind != FLEX_BOOL) || !is_inside(v->whole, v->at, v->width))
        return false;
    const uint64_t bits = read_le(v->whole, v->at, v->width), top = (uint64_t)1 << (8 * v->width - 1);
    *out = has_sign ? (int64_t)((bits ^ top) - top) : (int64_t)bits;
    return has_sign || *out >= 0;
}
