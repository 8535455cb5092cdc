/* SPDX-License-Identifier: Apache-2.0 */
/* Importers of StringSplit, as onnxruntime splits: at a delimiter, or without one at runs of blanks (the sign ' '
 * alone); an empty string has no pieces; and of Tokenizer, whose pieces are runs of some bytes. Pieces are found by
 * counting: the number of delimiters up to each byte, and from it the place where each piece begins and ends. They have
 * the width of the input. */
#include "frontend/onnx/onnx_ml.h"
#include "frontend/onnx/onnx_regex.h"

#include <string.h>

#define DOT_IS_ALL "(?s)"

typedef struct split {
    onnx_node *n;
    graph_value *x; /* u8[..., width] */
    int64_t width, most; /* pieces that there can be */
    bool limited;        /* by maxsplit: the last piece has the rest */
    const char *delimiter;
    const char *fill; /* of strings with fewer pieces than another; NULL: "" */
    graph_value *begin, *end; /* i32[..., most, 1] */
    graph_value *count;       /* i32[..., 1] */
} split;

static graph_value *number(const split *s, int64_t v)
{
    return onnx_const_int(s->n, DT_I32, v);
}

static graph_value *summed(const split *s, graph_value *flags)
{
    const int64_t axis = (int64_t)onnx_rank(flags) - 1;
    return onnx_emit(s->n, ONNX_ARGS("cumsum", 0, NULL, onnx_cast(s->n, flags, DT_I32),
                                     onnx_const_int(s->n, DT_I64, axis)));
}

static graph_value *over_bytes(const split *s, const char *op, graph_value *x)
{
    const int64_t last = -1;
    return onnx_reduce(s->n, op, x, 1, &last, true);
}

/* i32[..., count, 1]: how many bytes have seen at most as many as the list says. */
static graph_value *places(const split *s, graph_value *seen, int64_t count, int64_t first)
{
    onnx_node *n = s->n;
    int32_t *v = arena_array(&n->c->mem, int32_t, (size_t)count + 1u);
    const int64_t dims[2] = {count, 1}, axis = (int64_t)onnx_rank(seen) - 1;
    for (int64_t i = 0; i < count; i++)
        v[i] = (int32_t)(first + i);
    graph_value *wide = onnx_expand_dims(n, seen, 1, &axis);
    graph_value *below = onnx_binary(n, "less", wide, onnx_constant(n, tensor_dense(n->c, DT_I32, 2, dims, v)));
    return over_bytes(s, "sum", onnx_cast(n, below, DT_I32));
}

static graph_value *is_byte(const split *s, int64_t byte)
{
    return onnx_binary(s->n, "equal", s->x, onnx_const_int(s->n, DT_U8, byte));
}

static graph_value *both(const split *s, graph_value *a, graph_value *b)
{
    return onnx_binary(s->n, "logical_and", a, b);
}

/* bool[..., width]: the first bytes of pieces, and the last ones. */
static void between(split *s, graph_value *first, graph_value *last)
{
    onnx_node *n = s->n;
    graph_value *seen = summed(s, first), *closed = summed(s, last);
    graph_value *all = over_bytes(s, "max", seen);
    s->count = onnx_binary(n, "minimum", all, number(s, s->most));
    s->begin = places(s, seen, s->most, 1);
    s->end = onnx_binary(n, "add", places(s, closed, s->most, 1), number(s, 1));
}

/* --- words: runs of bytes that are inside --- */

static void at_words(split *s, graph_value *inside)
{
    onnx_node *n = s->n;
    graph_value *zero = onnx_const_int(n, DT_U8, 0);
    graph_value *word = onnx_binary(n, "not_equal", inside, zero);
    graph_value *first = both(s, word, onnx_binary(n, "equal", onnx_text_shifted(n, inside, 1), zero));
    graph_value *last = both(s, word, onnx_binary(n, "equal", onnx_text_shifted(n, inside, -1), zero));
    between(s, first, last);
    if (!s->limited)
        return;
    /* the last piece goes to the end of the last word */
    graph_value *at = onnx_where(n, last, onnx_text_steps(n, s->width), number(s, -1));
    const int64_t axis = (int64_t)onnx_rank(s->end) - 2, behind = axis + 1;
    graph_value *rest = onnx_binary(n, "add", over_bytes(s, "max", at), number(s, 1));
    graph_value *parts[2] = {s->most > 1 ? onnx_slice(n, s->end, axis, 0, s->most - 1) : NULL,
                             onnx_expand_dims(n, rest, 1, &behind)};
    s->end = s->most > 1 ? onnx_concat(n, 2, parts, axis) : parts[1];
}

static void at_blanks(split *s)
{
    graph_value *gap = onnx_binary(s->n, "logical_or", is_byte(s, ' '), is_byte(s, 0));
    at_words(s, onnx_cast(s->n, onnx_unary(s->n, "logical_not", gap), DT_U8));
}

/* --- a delimiter --- */

/* How many bytes of the delimiter are matched behind the one that follows `have` of them. */
static uint32_t matched(const char *d, uint32_t len, uint32_t have, char byte)
{
    have = have == len ? 0 : have; /* what a delimiter has is not used again */
    while (have > 0 && d[have] != byte) {
        uint32_t shorter = have - 1;
        while (shorter > 0 && memcmp(d, d + have - shorter, shorter) != 0)
            shorter--;
        have = shorter;
    }
    return d[have] == byte ? have + 1 : 0;
}

/* bool[..., width]: a delimiter ends there. */
static graph_value *delimiter_ends(const split *s)
{
    const uint32_t len = (uint32_t)strlen(s->delimiter);
    uint32_t *next = arena_array(&s->n->c->mem, uint32_t, (len + 1u) * 256u);
    onnx_automaton a = {.states = len + 1, .next = next};
    if (len == 1)
        return is_byte(s, (unsigned char)*s->delimiter);
    for (uint32_t have = 0; have <= len; have++)
        for (uint32_t b = 1; b < 256; b++)
            next[have * 256u + b] = matched(s->delimiter, len, have, (char)b);
    graph_value *states = onnx_text_automaton(s->n, s->x, &a);
    return onnx_binary(s->n, "equal", states, onnx_const_like(s->n, states, len));
}

static void at_delimiter(split *s)
{
    onnx_node *n = s->n;
    const int64_t len = (int64_t)strlen(s->delimiter), axis = (int64_t)onnx_rank(s->x) - 1, behind = axis;
    graph_value *seen = onnx_binary(n, "minimum", summed(s, delimiter_ends(s)), number(s, s->most - 1));
    graph_value *used = onnx_binary(n, "not_equal", onnx_slice(n, s->x, axis, 0, 1), onnx_const_int(n, DT_U8, 0));
    graph_value *all = onnx_binary(n, "add", over_bytes(s, "max", seen), number(s, 1));
    s->count = onnx_where(n, used, all, number(s, 0));
    graph_value *zero = onnx_binary(n, "multiply", onnx_expand_dims(n, all, 1, &behind), number(s, 0));
    graph_value *whole = onnx_binary(n, "add", zero, number(s, s->width));
    s->begin = zero;
    s->end = whole;
    if (s->most == 1)
        return;
    graph_value *at = places(s, seen, s->most - 1, 1);
    graph_value *next = onnx_binary(n, "add", at, number(s, 1));
    graph_value *stop = onnx_where(n, onnx_binary(n, "less", at, number(s, s->width)),
                                   onnx_binary(n, "add", at, number(s, 1 - len)), number(s, s->width));
    graph_value *begins[2] = {zero, next}, *ends[2] = {stop, whole};
    s->begin = onnx_concat(n, 2, begins, axis);
    s->end = onnx_concat(n, 2, ends, axis);
}

/* --- the pieces --- */

/* u8[..., most, width] */
static graph_value *cut(const split *s)
{
    onnx_node *n = s->n;
    const uint32_t rank = onnx_rank(s->x);
    dim d[TYPE_MAX_RANK];
    for (uint32_t i = 0; i + 1 < rank; i++)
        d[i] = onnx_dim(n, s->x, i);
    graph_value *at = onnx_binary(n, "add", s->begin, onnx_text_steps(n, s->width));
    at = onnx_where(n, onnx_binary(n, "less", at, s->end), at, number(s, s->width));
    d[rank - 1] = dim_const(n->c, s->most * s->width);
    graph_value *y = onnx_text_pick(n, s->x, onnx_reshape(n, at, rank, d));
    d[rank - 1] = dim_const(n->c, s->most);
    d[rank] = dim_const(n->c, s->width);
    return onnx_reshape(n, y, rank + 1, d);
}

/* Strings with fewer pieces than another get the fill in their place. */
static graph_value *filled(const split *s, graph_value *pieces)
{
    onnx_node *n = s->n;
    const tensor_data *fill = s->fill && *s->fill ? onnx_text_table(n, 1, &s->fill) : NULL;
    if (!fill)
        return pieces;
    graph_value *steps = onnx_text_steps(n, s->most);
    steps = onnx_reshape_ints(n, steps, 2, (int64_t[]){s->most, 1});
    const int64_t behind = onnx_rank(s->x);
    graph_value *is_piece = onnx_binary(n, "less", steps, onnx_expand_dims(n, s->count, 1, &behind));
    pieces = onnx_text_wider(n, pieces, fill->dims[1]);
    return onnx_where(n, is_piece, pieces, onnx_text_wider(n, onnx_constant(n, fill), onnx_text_width(pieces)));
}

/* As many of them as the string with the most has. */
static bool give(split *s)
{
    onnx_node *n = s->n;
    const uint32_t rank = onnx_rank(s->x);
    const int64_t zero = 0, axis = rank - 1;
    dim d[TYPE_MAX_RANK];
    for (uint32_t i = 0; i + 1 < rank; i++)
        d[i] = onnx_dim(n, s->x, i);
    graph_value *counts = onnx_reshape(n, onnx_cast(n, s->count, DT_I64), rank - 1, d);
    graph_value *most = onnx_binary(n, "maximum", onnx_reduce(n, "max", counts, 0, NULL, false),
                                    onnx_const_int(n, DT_I64, 0));
    most = onnx_reshape_ints(n, most, 1, (int64_t[]){1});
    graph_value *from = onnx_const_ints(n, 1, &zero), *along = onnx_const_ints(n, 1, &axis);
    graph_value *y = onnx_result(n, 0, ONNX_ARGS("strided_slice", 0, NULL, filled(s, cut(s)), from, most, along));
    return onnx_alias(n, 0, onnx_set_text(n->im, y)) && onnx_alias(n, 1, counts);
}

enum { MOST_BYTES = 1 << 24, /* of all pieces of a string */
       MOST_LEAST = 16,      /* bytes that a token has at least */
       FIRST_LEAD = 0xc2,    /* of the bytes that begin a character of several in UTF-8 */
       LAST_LEAD = 0xf4 };

/* Whether the pieces of a string are not too many for what holds all of them. */
static bool fits(const split *s)
{
    onnx_node *n = s->n;
    if (s->most * s->width <= MOST_BYTES)
        return true;
    onnx_fail(n, DIAG_UNSUPPORTED, "up to %lld pieces of up to %lld bytes are too many", (long long)s->most,
              (long long)s->width);
    diag_hint(&n->c->diags, "--string-bytes N makes the strings of inputs shorter");
    return false;
}

bool onnx_op_string_split(onnx_node *n)
{
    const int64_t maxsplit = onnx_attr_int(n, "maxsplit", -1);
    split s = {.n = n, .x = onnx_text(n, onnx_in(n, 0)), .delimiter = onnx_attr_string(n, "delimiter", "")};
    if (!n->failed && !onnx_is_text(n->im, s.x))
        return onnx_fail(n, DIAG_TYPE, "the input must be strings");
    if (n->failed || onnx_rank(s.x) + 1 > TYPE_MAX_RANK)
        return onnx_fail(n, DIAG_UNSUPPORTED, "strings of too many dimensions");
    const int64_t len = (int64_t)strlen(s.delimiter);
    s.width = onnx_text_width(s.x);
    s.most = len ? s.width / len + 1 : (s.width + 1) / 2;
    s.limited = maxsplit >= 0 && maxsplit + 1 < s.most;
    s.most = s.limited ? maxsplit + 1 : s.most;
    if (!fits(&s))
        return false;
    if (len)
        at_delimiter(&s);
    else
        at_blanks(&s);
    return give(&s);
}

/* --- tokens --- */

/* A state from which no byte leads to a match. */
static bool is_dead(const regex_automaton *m, uint32_t state)
{
    bool dead = !m->accepts[state];
    for (uint32_t b = 1; b < 256 && dead; b++)
        dead = m->next[state * 256u + b] == state;
    return dead;
}

/* Whether what the expression matches is every run of certain bytes, of at least *least, or, if `single`, one of them
 * alone; in: these bytes. */
static bool matches_runs(const regex_automaton *m, bool single, uint8_t *in, int64_t *least)
{
    uint32_t state = 0;
    *least = -1;
    for (uint32_t b = 0; b < 256; b++)
        in[b] = b > 0 && !is_dead(m, m->next[b]);
    for (int64_t have = 0; have <= MOST_LEAST; have++) {
        const uint32_t *next = m->next + (size_t)state * 256u;
        uint32_t to = state;
        for (uint32_t b = 1; b < 256; b++)
            to = in[b] ? next[b] : to;
        for (uint32_t b = 1; b < 256; b++)
            if (in[b] ? next[b] != to : !is_dead(m, next[b]))
                return false;
        if (*least >= 0 && !m->accepts[state])
            return single && *least == 1 && is_dead(m, state);
        *least = *least < 0 && m->accepts[state] ? have : *least;
        if (to == state)
            return *least > 0;
        state = to;
    }
    return false;
}

/* Whether what the expression matches is each single character of some; in: their bytes. Of those that are no ASCII it
 * matches all or none. */
static bool matches_characters(const regex_automaton *m, uint8_t *in)
{
    const bool wide = !is_dead(m, m->next[FIRST_LEAD]);
    for (uint32_t b = 0; b < 256; b++) {
        const uint32_t to = m->next[b];
        in[b] = b > 0 && (b < 0x80 ? !is_dead(m, to) : wide);
        if (b >= FIRST_LEAD && b <= LAST_LEAD && is_dead(m, to) == wide)
            return false;
        for (uint32_t k = 1; k < 256 && b < 0x80 && in[b]; k++)
            if (!m->accepts[to] || !is_dead(m, m->next[to * 256u + k]))
                return false;
    }
    return !m->accepts[0];
}

/* Each character of bytes that are inside. */
static void at_characters(split *s, graph_value *inside)
{
    onnx_node *n = s->n;
    graph_value *zero = onnx_const_int(n, DT_U8, 0), *bits = onnx_const_int(n, DT_U8, 0xc0);
    graph_value *more = onnx_binary(n, "equal", onnx_binary(n, "bitwise_and", s->x, bits),
                                    onnx_const_int(n, DT_U8, 0x80));
    graph_value *next = onnx_text_shifted(n, onnx_cast(n, more, DT_U8), -1);
    graph_value *used = onnx_binary(n, "not_equal", inside, zero);
    between(s, both(s, used, onnx_unary(n, "logical_not", more)), both(s, used, onnx_binary(n, "equal", next, zero)));
}

/* in: the bytes that `pattern` matches runs of. The longest run is what it finds if there is no choice in it. */
static bool read_runs(onnx_node *n, const char *pattern, bool single, uint8_t *in, int64_t *least)
{
    regex_automaton m;
    regex_error why;
    /* in onnxruntime's tokens a dot is a line feed, too */
    if (!regex_compile(&n->c->mem, arena_printf(&n->c->mem, DOT_IS_ALL "%s", pattern), &m, &why))
        return onnx_fail(n, DIAG_UNSUPPORTED, "'%.200s', character %zu: %s", pattern,
                         why.at - (sizeof DOT_IS_ALL - 1), why.why);
    if (!single && matches_characters(&m, in)) {
        *least = 0;
        return true;
    }
    if (strchr(pattern, '|') || strchr(pattern, '?') || !matches_runs(&m, single, in, least))
        return onnx_fail(n, DIAG_UNSUPPORTED, "'%.200s' is not a run of certain bytes, as '[a-z0-9]+' is", pattern);
    return true;
}

/* in: the bytes of tokens, by `tokenexp`, or those of no separator. *least: 0 where tokens are single characters. */
static bool read_token_bytes(onnx_node *n, const char *pattern, uint8_t *in, int64_t *least)
{
    const ml_strings separators = ml_attr_strings(n, "separators");
    uint8_t one[256];
    if (n->failed || *pattern)
        return !n->failed && read_runs(n, pattern, false, in, least);
    for (uint32_t b = 0; b < 256; b++)
        in[b] = b > 0;
    for (uint32_t i = 0; i < separators.n; i++) {
        if (!read_runs(n, separators.v[i], true, one, least))
            return false;
        for (uint32_t b = 0; b < 256; b++)
            in[b] = in[b] && !one[b];
    }
    *least = 1;
    return separators.n > 0 || onnx_fail(n, DIAG_FORMAT, "tokenexp or separators is missing");
}

/* u8[..., width]: 1 for bytes in runs of at least `least` bytes that are inside. */
static graph_value *long_runs(onnx_node *n, graph_value *inside, int64_t least)
{
    graph_value *begins = inside, *y, *next = inside;
    for (int64_t i = 1; i < least; i++) {
        next = onnx_text_shifted(n, next, -1);
        begins = onnx_binary(n, "bitwise_and", begins, next);
    }
    y = next = begins;
    for (int64_t i = 1; i < least; i++) {
        next = onnx_text_shifted(n, next, 1);
        y = onnx_binary(n, "bitwise_or", y, next);
    }
    return y;
}

/* onnxruntime's: tokens are the longest matches of `tokenexp`, one behind another, or what stands between separators.
 * Those of fewer than `mincharnum` characters are left out. */
bool onnx_op_tokenizer(onnx_node *n)
{
    const char *pattern = onnx_attr_string(n, "tokenexp", "");
    const int64_t characters = onnx_attr_int(n, "mincharnum", 1), all = 256;
    split s = {.n = n, .x = onnx_text(n, onnx_in(n, 0)), .fill = onnx_attr_string(n, "pad_value", "")};
    uint8_t *in = arena_array(&n->c->mem, uint8_t, 256);
    int64_t least = 0;
    if (!n->failed && !onnx_is_text(n->im, s.x))
        return onnx_fail(n, DIAG_TYPE, "the input must be strings");
    if (n->failed || onnx_attr_int(n, "mark", 0) != 0 || onnx_rank(s.x) + 1 > TYPE_MAX_RANK || characters < 1 ||
        characters > (*pattern ? MOST_LEAST : 1))
        return onnx_fail(n, DIAG_UNSUPPORTED, "marks, and a mincharnum above %d (1 with separators), are not supported",
                         MOST_LEAST);
    if (!read_token_bytes(n, pattern, in, &least)) {
        diag_hint(&n->c->diags, "handle texts in your program, and cut the model after them");
        return false;
    }
    const bool single = least == 0;
    if (single && characters > 1)
        return onnx_fail(n, DIAG_UNSUPPORTED, "'%.200s' matches single characters, and mincharnum asks for more",
                         pattern);
    least = characters > least ? characters : least;
    s.width = onnx_text_width(s.x);
    s.most = single ? s.width : (s.width + 1) / (least + 1);
    s.most = s.most > 0 ? s.most : 1;
    if (!fits(&s))
        return false;
    const attr axis = attr_int(n->c, "axis", 0);
    graph_value *table = onnx_constant(n, tensor_dense(n->c, DT_U8, 1, &all, in));
    graph_value *inside = onnx_emit(n, ONNX_ARGS("take", 1, &axis, table, onnx_cast(n, s.x, DT_I32)));
    if (single)
        at_characters(&s, inside);
    else
        at_words(&s, long_runs(n, inside, least));
    return give(&s);
}
