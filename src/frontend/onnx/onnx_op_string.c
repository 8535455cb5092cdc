/* SPDX-License-Identifier: Apache-2.0 */
/* Importers of operators on strings that only a run knows (onnx_text.c): arithmetic on their bytes. */
#include "frontend/onnx/onnx_ml.h"
#include "frontend/onnx/onnx_regex.h"

#include <string.h>

static const int64_t last_axis = -1;

static graph_value *reduced(onnx_node *n, const char *op, graph_value *x, bool keep)
{
    return onnx_reduce(n, op, x, 1, &last_axis, keep);
}

/* Whether the bytes along the last axis are equal. */
static graph_value *all_equal(onnx_node *n, graph_value *a, graph_value *b)
{
    graph_value *same = onnx_cast(n, onnx_binary(n, "equal", a, b), DT_U8);
    return onnx_cast(n, reduced(n, "min", same, false), DT_BOOL);
}

bool onnx_op_equal(onnx_node *n)
{
    graph_value *a = onnx_in(n, 0), *b = onnx_in(n, 1);
    if (!onnx_is_strings(n->im, a) && !onnx_is_strings(n->im, b))
        return onnx_op_direct(n);
    if (!onnx_is_strings(n->im, a) || !onnx_is_strings(n->im, b))
        return onnx_fail(n, DIAG_TYPE, "strings and numbers cannot be compared");
    a = onnx_text(n, a);
    b = onnx_text(n, b);
    const int64_t width = onnx_text_width(b);
    b = onnx_text_wider(n, b, onnx_text_width(a));
    return onnx_alias(n, 0, all_equal(n, onnx_text_wider(n, a, width), b));
}

/* --- pieces of strings --- */

graph_value *onnx_text_length(onnx_node *n, graph_value *text)
{
    graph_value *used = onnx_binary(n, "not_equal", text, onnx_const_int(n, DT_U8, 0));
    return reduced(n, "sum", onnx_cast(n, used, DT_I32), true);
}

/* i32[count]: 0, 1, 2, ... */
graph_value *onnx_text_steps(onnx_node *n, int64_t count)
{
    int32_t *v = arena_array(&n->c->mem, int32_t, (size_t)count + 1u);
    for (int64_t i = 0; i < count; i++)
        v[i] = (int32_t)i;
    return onnx_constant(n, tensor_dense(n->c, DT_I32, 1, &count, v));
}

/* Bytes of `text` by their places; what is behind the last byte is a zero. */
graph_value *onnx_text_pick(onnx_node *n, graph_value *text, graph_value *places)
{
    const attr axis = attr_int(n->c, "axis", onnx_rank(text) ? (int64_t)onnx_rank(text) - 1 : 0);
    text = onnx_text_wider(n, text, onnx_text_width(text) + 1);
    return onnx_emit(n, ONNX_ARGS("gather_elements", 1, &axis, text, places));
}

/* a, with as many strings as b or more: they broadcast. */
static graph_value *spread(onnx_node *n, graph_value *a, graph_value *b)
{
    if (!n->failed && onnx_rank(a) == onnx_rank(b) && onnx_rank(a) == 1)
        return a;
    graph_value *none = onnx_binary(n, "bitwise_and", onnx_slice(n, b, (int64_t)onnx_rank(b) - 1, 0, 1),
                                    onnx_const_int(n, DT_U8, 0));
    return onnx_binary(n, "bitwise_or", a, none);
}

static bool same_extents(const graph_value *a, const graph_value *b)
{
    bool same = onnx_rank(a) == onnx_rank(b);
    for (uint32_t i = 0; same && i + 1 < onnx_rank(a); i++)
        same = dim_equal(a->type.shape.dims[i], b->type.shape.dims[i]);
    return same;
}

/* Both side by side, and of each string the bytes of the first up to its length, then those of the second. */
bool onnx_op_string_concat(onnx_node *n)
{
    graph_value *a = onnx_text(n, onnx_in(n, 0)), *b = onnx_text(n, onnx_in(n, 1));
    if (!onnx_is_text(n->im, a) || !onnx_is_text(n->im, b))
        return onnx_fail(n, DIAG_TYPE, "both inputs must be strings");
    const int64_t wa = onnx_text_width(a), width = wa + onnx_text_width(b);
    if (width > ONNX_MOST_STRING)
        return onnx_fail(n, DIAG_UNSUPPORTED, "the result has strings of up to %lld bytes; at most %d are supported",
                         (long long)width, ONNX_MOST_STRING);
    if (!same_extents(a, b)) {
        graph_value *wide = spread(n, a, b);
        b = spread(n, b, a);
        a = wide;
    }
    graph_value *parts[2] = {a, b}, *both = onnx_concat(n, 2, parts, (int64_t)onnx_rank(a) - 1);
    graph_value *at = onnx_text_steps(n, width), *len = onnx_text_length(n, a);
    graph_value *second = onnx_binary(n, "add", onnx_binary(n, "subtract", at, len), onnx_const_int(n, DT_I32, wa));
    second = onnx_binary(n, "minimum", second, onnx_const_int(n, DT_I32, width));
    graph_value *places = onnx_where(n, onnx_binary(n, "less", at, len), at, second);
    graph_value *y = onnx_text_pick(n, both, places);
    return onnx_alias(n, 0, onnx_set_text(n->im, y));
}

/* --- looking strings up --- */

/* bool[..., count]: which of the strings each one is. */
static graph_value *compared(onnx_node *n, graph_value *text, uint32_t count, const char *const *strings)
{
    const tensor_data *table = onnx_text_table(n, count, strings);
    if (!table)
        return onnx_nothing(n);
    const int64_t width = onnx_text_width(text), axis = onnx_rank(text) - 1;
    graph_value *rows = onnx_text_wider(n, onnx_constant(n, table), width);
    text = onnx_text_wider(n, text, table->dims[1]);
    return all_equal(n, onnx_expand_dims(n, text, 1, &axis), rows);
}

graph_value *onnx_text_find(onnx_node *n, graph_value *text, uint32_t count, const char *const *strings)
{
    int64_t *weight = arena_array(&n->c->mem, int64_t, count + 1u);
    for (uint32_t i = 0; i < count; i++)
        weight[i] = count - i; /* the first that is equal has the largest */
    if (count == 0)
        return onnx_refuse(n, DIAG_FORMAT, "there are no strings to look up");
    graph_value *found = onnx_where(n, compared(n, text, count, strings), onnx_const_ints(n, count, weight),
                                    onnx_const_int(n, DT_I64, 0));
    return onnx_binary(n, "subtract", onnx_const_int(n, DT_I64, count), reduced(n, "max", found, false));
}

/* --- case --- */

/* Bytes of `text` moved by one place to the end (by > 0) or to the beginning, a zero in their place. */
graph_value *onnx_text_shifted(onnx_node *n, graph_value *text, int by)
{
    const int64_t width = onnx_text_width(text), axis = (int64_t)onnx_rank(text) - 1;
    graph_value *zero = onnx_binary(n, "bitwise_and", onnx_slice(n, text, axis, 0, 1), onnx_const_int(n, DT_U8, 0));
    graph_value *kept = width == 1 ? NULL
                                   : onnx_slice(n, text, axis, by > 0 ? 0 : 1, by > 0 ? width - 1 : width);
    graph_value *parts[2] = {by > 0 ? zero : kept, by > 0 ? kept : zero};
    return kept ? onnx_concat(n, 2, parts, axis) : zero;
}

enum { TWO_BYTES = 0x800 }; /* code points below have two bytes at most */

static graph_value *byte_table(onnx_node *n, bool upper, int which)
{
    const int64_t count = which ? TWO_BYTES : 256;
    uint8_t *v = arena_array(&n->c->mem, uint8_t, (size_t)count);
    for (uint32_t i = 0; i < count; i++) {
        const uint32_t code = !which && i >= 128 ? i : upper ? onnx_case_upper(i) : onnx_case_lower(i);
        v[i] = (uint8_t)(which == 0 ? code : which == 1 ? 0xc0 | code >> 6 : 0x80 | (code & 0x3f));
    }
    return onnx_constant(n, tensor_dense(n->c, DT_U8, 1, &count, v));
}

static graph_value *looked_up(onnx_node *n, graph_value *table, graph_value *at)
{
    const attr axis = attr_int(n->c, "axis", 0);
    return onnx_emit(n, ONNX_ARGS("take", 1, &axis, table, onnx_cast(n, at, DT_I32)));
}

static graph_value *masked_is(onnx_node *n, graph_value *x, int64_t mask, int64_t want)
{
    return onnx_binary(n, "equal", onnx_binary(n, "bitwise_and", x, onnx_const_int(n, DT_U8, mask)),
                       onnx_const_int(n, DT_U8, want));
}

/* The code point of a letter of two bytes. */
static graph_value *code_of(onnx_node *n, graph_value *first, graph_value *second)
{
    graph_value *high = onnx_binary(n, "bitwise_and", onnx_cast(n, first, DT_I32), onnx_const_int(n, DT_I32, 0x1f));
    graph_value *low = onnx_binary(n, "bitwise_and", onnx_cast(n, second, DT_I32), onnx_const_int(n, DT_I32, 0x3f));
    return onnx_binary(n, "add", onnx_binary(n, "multiply", high, onnx_const_int(n, DT_I32, 64)), low);
}

static graph_value *with_case(onnx_node *n, graph_value *x, bool upper, bool ascii)
{
    graph_value *y = looked_up(n, byte_table(n, upper, 0), x);
    if (ascii)
        return onnx_set_text(n->im, y);
    graph_value *next = onnx_text_shifted(n, x, -1), *before = onnx_text_shifted(n, x, 1);
    graph_value *first = onnx_binary(n, "logical_and", masked_is(n, x, 0xe0, 0xc0), masked_is(n, next, 0xc0, 0x80));
    graph_value *second = onnx_binary(n, "logical_and", masked_is(n, before, 0xe0, 0xc0), masked_is(n, x, 0xc0, 0x80));
    graph_value *a = looked_up(n, byte_table(n, upper, 1), code_of(n, x, next));
    graph_value *b = looked_up(n, byte_table(n, upper, 2), code_of(n, before, x));
    return onnx_set_text(n->im, onnx_where(n, first, a, onnx_where(n, second, b, y)));
}

/* The stop words in the case that they are compared in. */
static const char *const *words_with_case(onnx_node *n, const ml_strings *words, bool upper, bool ascii)
{
    const char **out = arena_array(&n->c->mem, const char *, words->n + 1u);
    for (uint32_t i = 0; i < words->n; i++) {
        char *s = arena_strdup(&n->c->mem, words->v[i]);
        for (char *p = s; *p; p++) {
            const unsigned char ch = (unsigned char)p[0], then = (unsigned char)p[1];
            const bool two = (ch & 0xe0) == 0xc0 && (then & 0xc0) == 0x80;
            const uint32_t code = two ? (ch & 0x1fu) << 6 | (then & 0x3fu) : ch;
            const uint32_t to = upper ? onnx_case_upper(code) : onnx_case_lower(code);
            if (ch < 128)
                *p = (char)to;
            if (ch < 128 || !two || ascii)
                continue;
            p[0] = (char)(0xc0 | to >> 6);
            p[1] = (char)(0x80 | (to & 0x3f));
            p++;
        }
        out[i] = s;
    }
    return out;
}

/* The strings along `axis` that are kept; "" where none is. */
static graph_value *kept_strings(onnx_node *n, graph_value *text, graph_value *drop, int64_t axis)
{
    const int64_t zero = 0, one[1] = {1};
    graph_value *keep = onnx_unary(n, "logical_not", drop);
    keep = onnx_reshape_ints(n, keep, 1, (int64_t[]){-1});
    graph_value *any = onnx_reduce(n, "max", onnx_cast(n, keep, DT_U8), 1, &zero, true);
    graph_value *none = onnx_binary(n, "equal", any, onnx_const_int(n, DT_U8, 0));
    graph_value *keeps[2] = {keep, onnx_reshape_ints(n, none, 1, one)};
    graph_value *empty = onnx_binary(n, "bitwise_and", onnx_slice(n, text, axis, 0, 1), onnx_const_int(n, DT_U8, 0));
    graph_value *all[2] = {text, empty};
    const attr at = attr_int(n->c, "axis", axis);
    return onnx_result(n, 0, ONNX_ARGS("compress", 1, &at, onnx_concat(n, 2, all, axis), onnx_concat(n, 2, keeps, 0)));
}

bool onnx_op_string_normalizer(onnx_node *n)
{
    const char *action = onnx_attr_string(n, "case_change_action", "NONE");
    const char *locale = onnx_attr_string(n, "locale", "en_US");
    const bool sensitive = onnx_attr_int(n, "is_case_sensitive", 0) != 0;
    const bool upper = strcmp(action, "UPPER") == 0, changes = upper || strcmp(action, "LOWER") == 0;
    const bool ascii = strcmp(locale, "C") == 0 || strcmp(locale, "POSIX") == 0;
    const ml_strings words = ml_attr_strings(n, "stopwords");
    graph_value *x = onnx_text(n, onnx_in(n, 0));
    const uint32_t rank = onnx_rank(x);
    if (!changes && strcmp(action, "NONE") != 0)
        return onnx_fail(n, DIAG_FORMAT, "case_change_action is '%s'; it may be NONE, LOWER or UPPER", action);
    if (!onnx_is_text(n->im, x) || rank < 2 || rank > 3 || (rank == 3 && onnx_static_dim(n, x, 0) != 1))
        return onnx_fail(n, DIAG_TYPE, "the input must be strings of shape [n] or [1, n]");
    graph_value *y = changes ? with_case(n, x, upper, ascii) : x;
    if (words.n == 0)
        return onnx_alias(n, 0, y);
    graph_value *by = sensitive ? x : changes ? y : with_case(n, x, upper, ascii);
    graph_value *found = onnx_text_find(n, by, words.n,
                                        sensitive ? words.v : words_with_case(n, &words, upper, ascii));
    graph_value *drop = onnx_binary(n, "less", found, onnx_const_int(n, DT_I64, words.n));
    return onnx_alias(n, 0, onnx_set_text(n->im, kept_strings(n, y, drop, (int64_t)rank - 2)));
}

/* --- numbers --- */

/* A type of which text is made, and the most bytes of that text. */
typedef struct written {
    dtype dt;
    int64_t width;
} written;

static written written_as(dtype dt)
{
    static const uint8_t digits[2][4] = {{3, 5, 10, 20}, {4, 6, 11, 20}}; /* of 8 to 64 bits; with a sign */
    const uint32_t bits = dtype_bits(dt);
    if (dtype_is_float(dt))
        return (written){DT_F64, 15};
    if (dt == DT_BOOL)
        return (written){DT_U64, 1};
    const bool has_sign = dtype_is_signed(dt);
    return (written){has_sign ? DT_I64 : DT_U64, digits[has_sign][bits == 8 ? 0 : bits == 16 ? 1 : bits == 32 ? 2 : 3]};
}

graph_value *onnx_number_text(onnx_node *n, graph_value *x)
{
    const written w = written_as(onnx_dtype(x));
    const attr width = attr_int(n->c, "width", w.width);
    return onnx_set_text(n->im, onnx_emit(n, ONNX_ARGS("write_numbers", 1, &width, onnx_cast(n, x, w.dt))));
}

/* Floats with six digits behind the point. */
graph_value *onnx_number_fixed(onnx_node *n, graph_value *x)
{
    const attr a[2] = {attr_int(n->c, "width", 47), attr_int(n->c, "fixed", 1)}; /* 39 digits, a sign, six behind */
    return onnx_set_text(n->im, onnx_emit(n, ONNX_ARGS("write_numbers", 2, a, onnx_cast(n, x, DT_F64))));
}

/* As onnxruntime: floats are read in 64 bits, and integers wrap. */
graph_value *onnx_text_number(onnx_node *n, graph_value *text, dtype to)
{
    const bool floats = dtype_is_float(to);
    const dtype dt = floats ? DT_F64 : to == DT_BOOL || !dtype_is_signed(to) ? DT_U64 : DT_I64;
    const attr a = attr_dtype(n->c, "dtype", dt);
    graph_value *x = onnx_emit(n, ONNX_ARGS("read_numbers", 1, &a, text));
    return floats && to != DT_F64 ? onnx_cast(n, x, DT_F32) : x;
}

/* --- automata --- */

/* Bytes by the column of `next` that they share; the columns, one for each kind: u8[256], u16[states, kinds]. */
graph_value *onnx_text_automaton(onnx_node *n, graph_value *text, const onnx_automaton *a)
{
    uint8_t *kind_of = arena_array(&n->c->mem, uint8_t, 256);
    uint32_t kinds = 0, first[256];
    for (uint32_t b = 0; b < 256; b++) {
        uint32_t k = 0, s = 0;
        for (; k < kinds && s < a->states; k += s < a->states)
            for (s = 0; s < a->states && a->next[s * 256u + b] == a->next[s * 256u + first[k]];)
                s++;
        if (k == kinds)
            first[kinds++] = b;
        kind_of[b] = (uint8_t)k;
    }
    const int64_t all = 256, dims[2] = {a->states, kinds};
    uint16_t *next = arena_array(&n->c->mem, uint16_t, (size_t)a->states * kinds);
    for (uint32_t s = 0; s < a->states; s++)
        for (uint32_t k = 0; k < kinds; k++)
            next[s * kinds + k] = (uint16_t)a->next[s * 256u + first[k]];
    graph_value *table = onnx_constant(n, tensor_dense(n->c, DT_U16, 2, dims, next));
    graph_value *by = onnx_constant(n, tensor_dense(n->c, DT_U8, 1, &all, kind_of));
    return onnx_emit(n, ONNX_ARGS("automaton", 0, NULL, text, by, table));
}

bool onnx_op_regex_full_match(onnx_node *n)
{
    const char *pattern = onnx_attr_string(n, "pattern", "");
    graph_value *x = onnx_text(n, onnx_in(n, 0));
    regex_automaton m;
    regex_error why;
    if (n->failed || !onnx_is_text(n->im, x))
        return onnx_fail(n, DIAG_TYPE, "the input must be strings");
    if (!regex_compile(&n->c->mem, pattern, &m, &why))
        return onnx_fail(n, DIAG_UNSUPPORTED, "pattern '%.200s', character %zu: %s", pattern, why.at, why.why);
    const onnx_automaton a = {m.states, m.next};
    const int64_t width = onnx_text_width(x), axis = (int64_t)onnx_rank(x) - 1, count = m.states;
    graph_value *last = onnx_slice(n, onnx_text_automaton(n, x, &a), axis, width - 1, width);
    dim d[TYPE_MAX_RANK];
    for (int64_t i = 0; i < axis; i++)
        d[i] = onnx_dim(n, x, (uint32_t)i);
    last = onnx_cast(n, onnx_reshape(n, last, (uint32_t)axis, d), DT_I32);
    const attr at = attr_int(n->c, "axis", 0);
    graph_value *accepts = onnx_constant(n, tensor_dense(n->c, DT_BOOL, 1, &count, m.accepts));
    (void)onnx_result(n, 0, ONNX_ARGS("take", 1, &at, accepts, last));
    return !n->failed;
}
