/* SPDX-License-Identifier: Apache-2.0 */
/* Patterns of RE2 as automata with choices (Thompson's construction), byte by byte. What RE2 has and this has not:
 * scripts as classes of Unicode (\p{Greek}). */
#include "frontend/onnx/onnx_regex.h"

#include <stdlib.h>
#include <string.h>

#include "frontend/onnx/onnx_import.h"

#define NO_NODE UINT32_MAX

/* Where a part of the pattern begins, and the ends that lead to what follows: a list through `to` or `other` of nodes,
 * by their number twice, and one more for `other`. */
typedef struct fragment {
    uint32_t first, ends;
} fragment;

typedef struct range {
    int32_t first, last;
} range;
typedef VEC(range) ranges;

typedef struct parser {
    arena *a;
    const char *pattern, *s;
    regex_nodes *nodes;
    regex_error *error;
    bool folds, dot_all, lines, lazy; /* flags i, s, m, U */
    bool failed;
    uint32_t depth;
} parser;

static bool fail(parser *p, const char *at, const char *why)
{
    if (!p->failed)
        *p->error = (regex_error){(size_t)(at - p->pattern), why};
    p->failed = true;
    return false;
}

/* --- nodes --- */

static uint32_t add(parser *p, regex_node n)
{
    if (p->nodes->len >= REGEX_MOST_NODES) {
        fail(p, p->s, "the pattern is too large");
        return 0;
    }
    vec_push(p->a, p->nodes, n);
    return p->nodes->len - 1;
}

static uint32_t *end_at(parser *p, uint32_t end)
{
    regex_node *n = &p->nodes->data[end / 2];
    return end % 2 ? &n->other : &n->to;
}

/* All ends lead to that node. */
static void patch(parser *p, uint32_t ends, uint32_t to)
{
    while (!p->failed && ends != NO_NODE) {
        uint32_t *at = end_at(p, ends);
        ends = *at;
        *at = to;
    }
}

static uint32_t joined(parser *p, uint32_t a, uint32_t b)
{
    uint32_t last = a;
    if (a == NO_NODE || p->failed)
        return b;
    while (*end_at(p, last) != NO_NODE)
        last = *end_at(p, last);
    *end_at(p, last) = b;
    return a;
}

static fragment bytes(parser *p, uint8_t first, uint8_t last)
{
    const uint32_t n = add(p, (regex_node){.kind = REGEX_BYTES, .first = first, .last = last, .to = NO_NODE});
    return (fragment){n, 2 * n};
}

static fragment checked(parser *p, regex_check what)
{
    const uint32_t n = add(p, (regex_node){.kind = REGEX_CHECK, .check = what, .to = NO_NODE});
    return (fragment){n, 2 * n};
}

/* Nothing: one way on. */
static fragment nothing(parser *p)
{
    const uint32_t n = add(p, (regex_node){.kind = REGEX_SPLIT, .to = NO_NODE, .other = NO_NODE});
    if (!p->failed)
        p->nodes->data[n].other = n; /* which leads nowhere else */
    return (fragment){n, 2 * n};
}

/* What matches nothing at all. */
static fragment never(parser *p)
{
    const uint32_t n = add(p, (regex_node){.kind = REGEX_SPLIT});
    if (!p->failed)
        p->nodes->data[n].to = p->nodes->data[n].other = n;
    return (fragment){n, NO_NODE};
}

static fragment then(parser *p, fragment a, fragment b)
{
    patch(p, a.ends, b.first);
    return (fragment){a.first, b.ends};
}

static fragment either(parser *p, fragment a, fragment b)
{
    const uint32_t n = add(p, (regex_node){.kind = REGEX_SPLIT, .to = a.first, .other = b.first});
    return (fragment){n, joined(p, a.ends, b.ends)};
}

static fragment maybe(parser *p, fragment a)
{
    const uint32_t n = add(p, (regex_node){.kind = REGEX_SPLIT, .to = a.first, .other = NO_NODE});
    return (fragment){n, joined(p, 2 * n + 1, a.ends)};
}

static fragment repeated(parser *p, fragment a)
{
    const uint32_t n = add(p, (regex_node){.kind = REGEX_SPLIT, .to = a.first, .other = NO_NODE});
    patch(p, a.ends, n);
    return (fragment){n, 2 * n + 1};
}

/* --- code points --- */

static uint32_t put(int32_t code, uint8_t *to)
{
    static const uint8_t first[] = {0, 0, 0xc0, 0xe0, 0xf0};
    const uint32_t len = code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
    for (uint32_t i = len; i-- > 1; code >>= 6)
        to[i] = (uint8_t)(0x80 | (code & 0x3f));
    to[0] = (uint8_t)(first[len] | code);
    return len;
}

/* Sequences of bytes for code points that have equally many, and whose ranges of bytes are independent of each other:
 * RE2's and Russ Cox's way to split ranges. */
static fragment code_range(parser *p, int32_t from, int32_t to)
{
    static const int32_t most[] = {0x7f, 0x7ff, 0xffff};
    uint8_t lo[4], hi[4];
    for (uint32_t i = 0; i < 3; i++)
        if (from <= most[i] && to > most[i])
            return either(p, code_range(p, from, most[i]), code_range(p, most[i] + 1, to));
    if (to <= 0x7f)
        return bytes(p, (uint8_t)from, (uint8_t)to);
    for (uint32_t i = 1; i < 4; i++) {
        const int32_t m = ((int32_t)1 << (6 * i)) - 1;
        if ((from & ~m) == (to & ~m))
            continue;
        if (from & m)
            return either(p, code_range(p, from, from | m), code_range(p, (from | m) + 1, to));
        if ((to & m) != m)
            return either(p, code_range(p, from, (to & ~m) - 1), code_range(p, to & ~m, to));
    }
    const uint32_t len = put(from, lo);
    put(to, hi);
    fragment f = bytes(p, lo[0], hi[0]);
    for (uint32_t i = 1; i < len && !p->failed; i++)
        f = then(p, f, bytes(p, lo[i], hi[i]));
    return f;
}

static int by_first(const void *a, const void *b)
{
    const range *x = a, *y = b;
    return x->first < y->first ? -1 : x->first > y->first;
}

/* Sorted, without overlaps. */
static void tidy(ranges *r)
{
    uint32_t n = 0;
    if (r->len > 1)
        qsort(r->data, r->len, sizeof *r->data, by_first);
    for (uint32_t i = 0; i < r->len; i++) {
        if (n > 0 && r->data[i].first <= r->data[n - 1].last + 1) {
            range *last = &r->data[n - 1];
            last->last = r->data[i].last > last->last ? r->data[i].last : last->last;
        } else {
            r->data[n++] = r->data[i];
        }
    }
    r->len = n;
}

static void add_range(parser *p, ranges *r, int32_t first, int32_t last)
{
    vec_push(p->a, r, ((range){first, last}));
}

static void add_folded(parser *p, ranges *r, int32_t first, int32_t last)
{
    add_range(p, r, first, last);
    for (int32_t k = first; p->folds && k <= last && k < 0x590; k++) {
        const int32_t up = (int32_t)onnx_case_upper((uint32_t)k), low = (int32_t)onnx_case_lower((uint32_t)k);
        const int32_t small = (int32_t)onnx_case_lower((uint32_t)up);
        add_range(p, r, up, up);
        add_range(p, r, low, low);
        add_range(p, r, small, small);
        if (small == 'k' || small == 's' || small == 0xe5) /* the signs for kelvin and angstrom, long s */
            add_range(p, r, small == 's' ? 0x17f : small == 'k' ? 0x212a : 0x212b,
                      small == 's' ? 0x17f : small == 'k' ? 0x212a : 0x212b);
        if (up == 0x3a3)
            add_range(p, r, 0x3c2, 0x3c2);
        if (up == 0x39c)
            add_range(p, r, 0xb5, 0xb5);
    }
}

static void negate(parser *p, ranges *r)
{
    ranges out = {0};
    int32_t at = 0;
    tidy(r);
    for (uint32_t i = 0; i < r->len; i++) {
        if (r->data[i].first > at)
            add_range(p, &out, at, r->data[i].first - 1);
        at = r->data[i].last + 1;
    }
    if (at <= REGEX_MOST_CODE)
        add_range(p, &out, at, REGEX_MOST_CODE);
    *r = out;
}

/* One of them; never a zero, which no string has. */
static fragment one_of(parser *p, ranges *r)
{
    fragment f = {NO_NODE, NO_NODE};
    tidy(r);
    for (uint32_t i = 0; i < r->len && !p->failed; i++) {
        const int32_t first = r->data[i].first ? r->data[i].first : 1, last = r->data[i].last;
        if (first > last)
            continue;
        fragment one = code_range(p, first, last);
        f = f.first == NO_NODE ? one : either(p, f, one);
    }
    return f.first == NO_NODE ? never(p) : f;
}

/* --- classes --- */

static const struct {
    const char *name, *members; /* pairs of first and last */
} classes[] = {
    {"alnum", "09AZaz"}, {"alpha", "AZaz"},     {"ascii", "\x01\x7f"}, {"blank", "\t\t  "},
    {"digit", "09"},     {"graph", "!~"},       {"lower", "az"},       {"print", " ~"},
    {"space", "\t\r  "}, {"upper", "AZ"},       {"word", "09AZaz__"},  {"xdigit", "09AFaf"},
    {"punct", "!/:@[`{~"}, {"cntrl", "\x01\x1f\x7f\x7f"},
};

static void add_members(parser *p, ranges *r, const char *members, bool negated)
{
    ranges own = {0};
    for (; *members; members += 2)
        add_folded(p, &own, (unsigned char)members[0], (unsigned char)members[1]);
    if (negated)
        negate(p, &own);
    for (uint32_t i = 0; i < own.len; i++)
        add_range(p, r, own.data[i].first, own.data[i].last);
}

/* \d and the like. */
static bool perl_class(parser *p, char letter, ranges *r)
{
    static const struct {
        char letter;
        const char *members;
    } all[] = {{'d', "09"}, {'w', "09AZaz__"}, {'s', "\t\n\f\r  "}};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (all[i].letter == (letter | 0x20)) {
            add_members(p, r, all[i].members, letter != all[i].letter);
            return true;
        }
    return false;
}

/* \pL, \p{Lu}, \p{^Lu}, \PL, from the backslash on. */
static void unicode_class(parser *p, ranges *r)
{
    const char *at = p->s;
    bool negated = p->s[1] == 'P';
    ranges own = {0};
    p->s += 2;
    const bool braces = *p->s == '{', turned = braces && p->s[1] == '^';
    const char *name = p->s + braces + turned;
    const size_t len = braces ? strcspn(name, "}") : *name != '\0';
    const bool any = len == 3 && memcmp(name, "Any", 3) == 0;
    int32_t first, last;
    negated ^= turned;
    for (uint32_t i = 0; len > 0 && len < 3 && regex_category(name, len, &i, &first, &last);)
        add_folded(p, &own, first, last);
    if (any)
        add_range(p, &own, 0, REGEX_MOST_CODE);
    if (own.len == 0 || (braces && name[len] != '}')) {
        fail(p, at, "of classes of Unicode, general categories such as \\pL and \\p{Lu} are supported");
        return;
    }
    p->s = name + len + braces;
    if (negated)
        negate(p, &own);
    for (uint32_t i = 0; i < own.len; i++)
        add_range(p, r, own.data[i].first, own.data[i].last);
}

/* [:alpha:] or [:^alpha:], behind its bracket. */
static bool named_class(parser *p, ranges *r)
{
    const char *s = p->s + 2, *end = strstr(s, ":]");
    const bool negated = *s == '^';
    s += negated;
    for (size_t i = 0; end && i < sizeof classes / sizeof *classes; i++)
        if (strlen(classes[i].name) == (size_t)(end - s) && memcmp(classes[i].name, s, (size_t)(end - s)) == 0) {
            add_members(p, r, classes[i].members, negated);
            p->s = end + 2;
            return true;
        }
    return fail(p, p->s, "this class is not known");
}

/* A character of the pattern, of UTF-8. */
static int32_t take_code(parser *p)
{
    const unsigned char *s = (const unsigned char *)p->s;
    const uint32_t more = *s < 0x80 ? 0 : *s < 0xe0 ? 1 : *s < 0xf0 ? 2 : 3;
    int32_t code = more ? *s & (0x3f >> more) : *s;
    for (uint32_t i = 1; i <= more; i++) {
        if ((s[i] & 0xc0) != 0x80) {
            fail(p, p->s, "this is not UTF-8");
            return 0;
        }
        code = code << 6 | (s[i] & 0x3f);
    }
    p->s += more + 1;
    return code;
}

static int32_t hex_digit(char c)
{
    return c >= '0' && c <= '9' ? c - '0' : (c | 0x20) >= 'a' && (c | 0x20) <= 'f' ? (c | 0x20) - 'a' + 10 : -1;
}

/* \x41 or \x{10ffff}, behind the x. */
static int32_t take_hex(parser *p, const char *at)
{
    int32_t code = 0;
    const bool braces = *p->s == '{';
    p->s += braces;
    for (uint32_t i = 0; braces ? *p->s && *p->s != '}' && code <= REGEX_MOST_CODE : i < 2; i++, p->s++) {
        const int32_t d = hex_digit(*p->s);
        if (d < 0) {
            fail(p, at, "\\x is followed by two digits of base 16, or by some in braces");
            return 0;
        }
        code = code * 16 + d;
    }
    if (code > REGEX_MOST_CODE || (braces && *p->s != '}'))
        fail(p, at, "this is no code point");
    p->s += braces && *p->s;
    return code;
}

/* \0, \12, \101: up to three digits of base 8. One digit that is not 0 would be a reference to a group. */
static int32_t take_octal(parser *p)
{
    int32_t code = 0;
    p->s++;
    for (uint32_t i = 0; i < 3 && *p->s >= '0' && *p->s <= '7'; i++, p->s++)
        code = code * 8 + (*p->s - '0');
    return code;
}

static bool is_octal(const char *s)
{
    return s[1] == '0' || (s[1] >= '1' && s[1] <= '7' && s[2] >= '0' && s[2] <= '7');
}

/* The character that an escape stands for, from its backslash on. */
static int32_t take_escape(parser *p)
{
    static const char letters[] = "afnrtv", codes[] = "\a\f\n\r\t\v";
    const char *at = p->s, c = p->s[1];
    if (is_octal(at))
        return take_octal(p);
    p->s += c ? 2 : 1;
    const char *letter = c ? strchr(letters, c) : NULL;
    if (letter)
        return (unsigned char)codes[letter - letters];
    if (c == 'x')
        return take_hex(p, at);
    if (c && (unsigned char)c < 0x80 && strchr("!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~ ", c))
        return c;
    fail(p, at, c >= '0' && c <= '9' ? "references to groups are not supported" : "this escape is not known");
    return 0;
}

static int32_t class_code(parser *p)
{
    return *p->s == '\\' ? take_escape(p) : take_code(p);
}

/* One item of a class: a class, a character, or a range of them. */
static void class_item(parser *p, ranges *r)
{
    const char *at = p->s;
    if (p->s[0] == '[' && p->s[1] == ':') {
        named_class(p, r);
        return;
    }
    if (p->s[0] == '\\' && p->s[1] && perl_class(p, p->s[1], r)) {
        p->s += 2;
        return;
    }
    if (p->s[0] == '\\' && (p->s[1] | 0x20) == 'p') {
        unicode_class(p, r);
        return;
    }
    const int32_t first = class_code(p);
    int32_t last = first;
    if (p->s[0] == '-' && p->s[1] && p->s[1] != ']') {
        p->s++;
        last = class_code(p);
    }
    if (last < first)
        fail(p, at, "the range ends before it begins");
    else
        add_folded(p, r, first, last);
}

static fragment char_class(parser *p)
{
    const char *at = p->s++;
    const bool negated = *p->s == '^';
    ranges r = {0};
    p->s += negated;
    for (bool first = true; !p->failed && (*p->s != ']' || first); first = false) {
        if (!*p->s) {
            fail(p, at, "the bracket is not closed");
            break;
        }
        class_item(p, &r);
    }
    p->s += *p->s == ']';
    if (negated)
        negate(p, &r);
    return one_of(p, &r);
}

/* --- the pattern --- */

static fragment alternatives(parser *p);

static fragment literal(parser *p, int32_t code)
{
    ranges r = {0};
    add_folded(p, &r, code, code);
    return one_of(p, &r);
}

static fragment any_character(parser *p)
{
    ranges r = {0};
    if (p->dot_all) {
        add_range(p, &r, 1, REGEX_MOST_CODE);
    } else {
        add_range(p, &r, '\n', '\n');
        negate(p, &r);
    }
    return one_of(p, &r);
}

/* Letters between "(?" and ":" or ")": true where they stand for the rest of the group around. */
static bool flags(parser *p)
{
    bool on = true;
    for (; *p->s && *p->s != ':' && *p->s != ')'; p->s++) {
        bool *flag = *p->s == 'i'   ? &p->folds
                     : *p->s == 's' ? &p->dot_all
                     : *p->s == 'm' ? &p->lines
                     : *p->s == 'U' ? &p->lazy
                                    : NULL;
        if (*p->s == '-' && on)
            on = false;
        else if (flag)
            *flag = on;
        else
            return fail(p, p->s, "this kind of group is not supported");
    }
    return *p->s == ')';
}

/* Whether what stands behind "(?" is a name, which is passed over. */
static bool group_name(parser *p)
{
    const char *s = p->s + (*p->s == 'P');
    const char *end = *s == '<' ? strchr(s, '>') : NULL;
    if (!end)
        return false;
    p->s = end + 1;
    return true;
}

static fragment group(parser *p)
{
    const char *at = p->s++;
    const parser before = *p;
    if (++p->depth > REGEX_MOST_DEPTH)
        fail(p, at, "groups are nested too deep");
    if (*p->s == '?') {
        p->s++;
        if (!group_name(p)) {
            if (flags(p) && !p->failed) { /* (?i): they hold up to the end of the group around */
                p->s++;
                p->depth--;
                return nothing(p);
            }
            p->s += *p->s == ':';
        }
    }
    fragment f = p->failed ? (fragment){0, NO_NODE} : alternatives(p);
    if (*p->s != ')')
        fail(p, at, "the group is not closed");
    p->s += *p->s == ')';
    p->folds = before.folds;
    p->dot_all = before.dot_all;
    p->lines = before.lines;
    p->lazy = before.lazy;
    p->depth--;
    return f;
}

/* \Q...\E, behind the Q: the characters as they are. */
static fragment quoted(parser *p)
{
    fragment f = nothing(p);
    while (*p->s && !p->failed && strncmp(p->s, "\\E", 2) != 0)
        f = then(p, f, literal(p, take_code(p)));
    p->s += *p->s ? 2 : 0;
    return f;
}

static fragment escaped(parser *p)
{
    static const struct {
        char letter;
        regex_check check;
    } checks[] = {{'A', REGEX_TEXT_BEGIN}, {'z', REGEX_TEXT_END}, {'b', REGEX_WORD}, {'B', REGEX_NO_WORD}};
    ranges r = {0};
    for (size_t i = 0; i < sizeof checks / sizeof *checks; i++)
        if (p->s[1] == checks[i].letter) {
            p->s += 2;
            return checked(p, checks[i].check);
        }
    if (p->s[1] == 'Q') {
        p->s += 2;
        return quoted(p);
    }
    if (p->s[1] == 'C') {
        p->s += 2;
        return bytes(p, 1, 0xff);
    }
    if ((p->s[1] | 0x20) == 'p') {
        unicode_class(p, &r);
        return one_of(p, &r);
    }
    if (p->s[1] && perl_class(p, p->s[1], &r)) {
        p->s += 2;
        return one_of(p, &r);
    }
    return literal(p, take_escape(p));
}

static fragment atom(parser *p)
{
    switch (*p->s) {
    case '(': return group(p);
    case '[': return char_class(p);
    case '\\': return escaped(p);
    case '.': p->s++; return any_character(p);
    case '^': p->s++; return checked(p, p->lines ? REGEX_LINE_BEGIN : REGEX_TEXT_BEGIN);
    case '$': p->s++; return checked(p, p->lines ? REGEX_LINE_END : REGEX_TEXT_END);
    case '*':
    case '+':
    case '?': fail(p, p->s, "there is nothing to repeat"); return (fragment){0, NO_NODE};
    default: return literal(p, take_code(p));
    }
}

/* "{2}", "{2,}" or "{2,3}": whether it is one; most -1: no limit. */
static bool counts(const char **s, int64_t *least, int64_t *most)
{
    const char *at = *s + 1;
    char *end;
    if (**s != '{' || *at < '0' || *at > '9')
        return false;
    *least = *most = strtol(at, &end, 10);
    if (*end == ',') {
        at = end + 1;
        *most = -1;
        end = (char *)(uintptr_t)at;
        if (*at >= '0' && *at <= '9')
            *most = strtol(at, &end, 10);
    }
    if (*end != '}')
        return false;
    *s = end + 1;
    return true;
}

/* The part from `from` on once more, for parts that are repeated are read again. */
static fragment again(parser *p, const parser *from)
{
    const char *behind = p->s;
    p->s = from->s;
    fragment f = atom(p);
    p->s = behind;
    return f;
}

/* What was read from `from` on, from least to most times; f is the first of these. */
static fragment counted(parser *p, const parser *from, fragment f, int64_t least, int64_t most)
{
    fragment all = least > 0 ? f : nothing(p);
    int64_t have = least > 0 ? 1 : 0;
    for (; have < least && !p->failed; have++)
        all = then(p, all, again(p, from));
    if (most < 0)
        return then(p, all, repeated(p, again(p, from)));
    fragment rest = {NO_NODE, NO_NODE};
    for (int64_t i = have; i < most && !p->failed; i++) { /* from the last one on: (x(x(x)?)?)? */
        fragment one = again(p, from);
        rest = maybe(p, rest.first == NO_NODE ? one : then(p, one, rest));
    }
    return rest.first == NO_NODE || p->failed ? all : then(p, all, rest);
}

/* Of a group, flags inside do not reach the second reading: they are those from before the first. */
static fragment with_repeats(parser *p)
{
    const parser from = *p;
    fragment f = atom(p);
    bool done = false;
    while (!p->failed) {
        const char *at = p->s;
        int64_t least = 0, most = 0;
        const bool sign = *p->s == '*' || *p->s == '+' || *p->s == '?';
        if (!sign && !counts(&p->s, &least, &most))
            return f;
        if (done) {
            fail(p, at, "a repeat of a repeat");
        } else if (sign) {
            p->s++;
            f = *at == '?' ? maybe(p, f) : *at == '*' ? repeated(p, f) : then(p, f, repeated(p, again(p, &from)));
        } else if (least > REGEX_MOST_REPEAT || most > REGEX_MOST_REPEAT || (most >= 0 && most < least)) {
            fail(p, at, "the number of repeats is out of range");
        } else {
            f = counted(p, &from, f, least, most);
        }
        p->s += *p->s == '?'; /* which match is preferred does not matter here */
        done = true;
    }
    return f;
}

static fragment sequence(parser *p)
{
    fragment f = nothing(p);
    while (*p->s && *p->s != '|' && *p->s != ')' && !p->failed)
        f = then(p, f, with_repeats(p));
    return f;
}

static fragment alternatives(parser *p)
{
    fragment f = sequence(p);
    while (*p->s == '|' && !p->failed) {
        p->s++;
        f = either(p, f, sequence(p));
    }
    return f;
}

bool regex_parse(arena *a, const char *pattern, regex_nodes *out, uint32_t *out_first, regex_error *out_error)
{
    parser p = {.a = a, .pattern = pattern, .s = pattern, .nodes = out, .error = out_error};
    fragment f = alternatives(&p);
    if (!p.failed && *p.s)
        fail(&p, p.s, "this bracket closes no group");
    const uint32_t match = add(&p, (regex_node){.kind = REGEX_MATCH});
    patch(&p, f.ends, match);
    *out_first = f.first;
    return !p.failed;
}
