/* SPDX-License-Identifier: Apache-2.0 */
/* Text out with indentation, and interned strings. */
#include "base/text.h"

#include "base/ptr_map.h"

#include <assert.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void writer_init(writer *w, arena *a)
{
    *w = (writer){.a = a, .step = 2};
    w->cap = 256;
    w->data = arena_alloc(a, w->cap, 1);
}

static void append(writer *w, const char *s, size_t n)
{
    if (w->len + n + 1 > w->cap) {
        size_t cap = w->cap * 2;
        while (w->len + n + 1 > cap)
            cap *= 2;
        char *p = arena_alloc(w->a, cap, 1);
        memcpy(p, w->data, w->len);
        w->data = p;
        w->cap = cap;
    }
    memcpy(w->data + w->len, s, n);
    w->len += n;
    w->data[w->len] = 0;
}

static void start_line(writer *w)
{
    for (uint32_t i = 0; i < w->indent * w->step; i++)
        append(w, " ", 1);
    w->line_started = true;
}

static void put(writer *w, const char *s, size_t n)
{
    const char *end = s + n;
    while (s < end) {
        const char *nl = memchr(s, '\n', (size_t)(end - s));
        const char *stop = nl ? nl : end;
        if (stop > s && !w->line_started)
            start_line(w);
        append(w, s, (size_t)(stop - s));
        if (!nl)
            return;
        append(w, "\n", 1);
        w->line_started = false;
        s = nl + 1;
    }
}

void w_str(writer *w, const char *s)
{
    put(w, s, strlen(s));
}

static void put_format(writer *w, const char *fmt, va_list ap)
{
    char small[512];
    va_list again;
    va_copy(again, ap);
    int n = vsnprintf(small, sizeof small, fmt, ap);
    if (n >= 0 && (size_t)n < sizeof small) {
        put(w, small, (size_t)n);
    } else if (n >= 0) {
        char *big = arena_alloc(w->a, (size_t)n + 1, 1);
        (void)vsnprintf(big, (size_t)n + 1, fmt, again);
        put(w, big, (size_t)n);
    } else {
        arena_refuse(w->a, strlen(fmt)); /* %ls, which nobody uses, apart: no memory */
    }
    va_end(again);
}

void w_fmt(writer *w, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    put_format(w, fmt, ap);
    va_end(ap);
}

void w_line(writer *w, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    put_format(w, fmt, ap);
    va_end(ap);
    put(w, "\n", 1);
}

void w_open(writer *w, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    put_format(w, fmt, ap);
    va_end(ap);
    w_str(w, w->line_started ? " {\n" : "{\n");
    w->indent++;
}

void w_close(writer *w, const char *tail)
{
    assert(w->indent > 0);
    w->indent--;
    put(w, "}", 1);
    w_str(w, tail ? tail : "");
    put(w, "\n", 1);
}

size_t utf8_length(const char *text, size_t n)
{
    const unsigned char *s = (const unsigned char *)text;
    size_t len = s[0] < 0x80 ? 1 : s[0] < 0xc2 ? 0 : s[0] < 0xe0 ? 2 : s[0] < 0xf0 ? 3 : s[0] < 0xf5 ? 4 : 0;
    if (len > n)
        return 0;
    for (size_t i = 1; i < len; i++)
        if ((s[i] & 0xc0) != 0x80)
            return 0;
    bool overlong = (s[0] == 0xe0 && s[1] < 0xa0) || (s[0] == 0xf0 && s[1] < 0x90);
    bool beyond = (s[0] == 0xed && s[1] > 0x9f) || (s[0] == 0xf4 && s[1] > 0x8f);
    return len > 1 && (overlong || beyond) ? 0 : len;
}

uint32_t utf8_code(const char *s)
{
    const unsigned char *at = (const unsigned char *)s;
    uint32_t code = at[0] < 0x80 ? at[0] : at[0] < 0xe0 ? at[0] & 0x1fu : at[0] < 0xf0 ? at[0] & 0xfu : at[0] & 0x7u;
    size_t len = at[0] < 0x80 ? 1 : at[0] < 0xe0 ? 2 : at[0] < 0xf0 ? 3 : 4;
    for (size_t i = 1; i < len; i++)
        code = code << 6 | (at[i] & 0x3fu);
    return code;
}

size_t text_plain_length(const char *s, size_t n)
{
    static const uint16_t commands[][2] = {{0x0, 0x1f},      {0x7f, 0x9f},     {0x61c, 0x61c},
                                           {0x200e, 0x200f}, {0x2028, 0x202e}, {0x2066, 0x2069}};
    size_t len = utf8_length(s, n);
    uint32_t ch = len ? utf8_code(s) : 0;
    for (size_t i = 0; i < sizeof commands / sizeof *commands; i++)
        if (ch >= commands[i][0] && ch <= commands[i][1])
            return 0;
    return len;
}

char *text_line(char *s)
{
    size_t n = strlen(s), to = 0;
    for (size_t i = 0, len; i < n; i += len) {
        size_t plain = text_plain_length(s + i, n - i);
        len = plain ? plain : utf8_length(s + i, n - i);
        len = len ? len : 1;
        if (plain)
            memmove(s + to, s + i, len);
        else
            s[to] = s[i] == '\n' || s[i] == '\t' ? ' ' : '?';
        to += plain ? len : 1;
    }
    s[to] = '\0';
    return s;
}

void w_quoted(writer *w, const char *s, size_t n)
{
    put(w, "\"", 1);
    for (size_t i = 0, len; i < n; i += len) {
        unsigned char ch = (unsigned char)s[i];
        len = text_plain_length(s + i, n - i);
        bool second_mark = ch == '?' && i > 0 && s[i - 1] == '?'; /* C99 reads ??/ and its like as one character */
        if (ch == '"' || ch == '\\' || second_mark)
            w_fmt(w, "\\%c", ch);
        else if (ch == '\n')
            w_str(w, "\\n");
        else if (len == 0) /* byte by byte; octal ends after three digits, C's \x does not */
            w_fmt(w, "\\%03o", ch);
        else
            put(w, s + i, len);
        len = len ? len : 1;
    }
    put(w, "\"", 1);
}

void w_item(writer *w, const char *name)
{
    if (strpbrk(name, ",\""))
        w_quoted(w, name, strlen(name));
    else
        w_str(w, name);
}

void w_name(writer *w, char sigil, const char *name)
{
    bool plain = *name != 0;
    for (const char *s = name; *s; s++)
        plain = plain && (*s == '_' || *s == '.' || (*s >= '0' && *s <= '9') || (*s >= 'A' && *s <= 'Z') ||
                          (*s >= 'a' && *s <= 'z'));
    put(w, &sigil, 1);
    if (plain)
        w_str(w, name);
    else
        w_quoted(w, name, strlen(name));
}

/* Readers of 32-bit floats may go by way of double (the lexer does) or not (C compilers): the text must suit both. */
static bool reads_back(const char *s, double v, uint32_t bits)
{
    if (bits == 32)
        return strtof(s, NULL) == (float)v && (float)strtod(s, NULL) == (float)v;
    return strtod(s, NULL) == v;
}

void w_float(writer *w, double v, uint32_t bits)
{
    char s[40];
    if (bits == 32)
        v = (double)(float)v;
    if (isnan(v) || isinf(v)) {
        w_str(w, isnan(v) ? "nan" : v < 0 ? "-inf" : "inf");
        return;
    }
    if (v == trunc(v) && fabs(v) < 1e6) { /* 100.0 rather than 1e+02 */
        w_fmt(w, "%.1f", v);
        return;
    }
    int most = bits == 32 ? 9 : 17;
    for (int digits = 1; digits <= most; digits++) {
        (void)snprintf(s, sizeof s, "%.*g", digits, v);
        if (reads_back(s, v, bits))
            break;
    }
    w_str(w, s);
    if (!strpbrk(s, ".e"))
        w_str(w, ".0");
}

/* --- interned strings --- */

typedef struct entry {
    struct entry *next;
    size_t len;
    uint64_t hash;
    char text[];
} entry;

struct interner {
    arena *a;
    entry **buckets;
    size_t n_buckets, n; /* n_buckets: a power of two */
};

interner *interner_new(arena *a)
{
    interner *in = arena_new(a, interner);
    in->a = a;
    in->n_buckets = 256;
    in->buckets = arena_array(a, entry *, in->n_buckets);
    return in;
}

static void grow(interner *in)
{
    size_t n = in->n_buckets * 2;
    entry **b = arena_array(in->a, entry *, n);
    for (size_t i = 0; i < in->n_buckets; i++) {
        for (entry *e = in->buckets[i], *next; e; e = next) {
            next = e->next;
            e->next = b[e->hash & (n - 1)];
            b[e->hash & (n - 1)] = e;
        }
    }
    in->buckets = b;
    in->n_buckets = n;
}

const char *intern_n(interner *in, const char *s, size_t n)
{
    uint64_t h = 14695981039346656037u; /* FNV-1a */
    for (size_t i = 0; i < n; i++)
        h = (h ^ (unsigned char)s[i]) * 1099511628211u;
    entry **first = &in->buckets[h & (in->n_buckets - 1)];
    for (entry **at = first; *at; at = &(*at)->next) {
        entry *e = *at;
        if (e->hash != h || e->len != n || (n > 0 && memcmp(e->text, s, n) != 0))
            continue;
        *at = e->next; /* what is asked for often stands first */
        e->next = *first;
        *first = e;
        return e->text;
    }
    if (++in->n > in->n_buckets)
        grow(in);
    entry *e = arena_alloc(in->a, sizeof *e + n + 1, _Alignof(entry));
    e->len = n;
    e->hash = h;
    if (n)
        memcpy(e->text, s, n);
    e->next = in->buckets[h & (in->n_buckets - 1)];
    in->buckets[h & (in->n_buckets - 1)] = e;
    return e->text;
}

const char *intern(interner *in, const char *s)
{
    return intern_n(in, s, strlen(s));
}

const char *intern_unique(interner *in, ptr_map *taken, const char *want)
{
    const char *base = intern(in, want), *name = base;
    uint32_t suffix = 1, unused = 0;
    if (ptr_map_get(taken, base, &suffix)) {
        do
            name = intern(in, arena_printf(in->a, "%s_%u", base, suffix++));
        while (ptr_map_get(taken, name, &unused));
        ptr_map_set(taken, base, suffix);
    }
    ptr_map_set(taken, name, 1);
    return name;
}

const char *text_in_shell(arena *a, const char *text)
{
    writer w;
    if (!text[strcspn(text, " \t\n\"'\\$`&|;<>()*?[]#~!{}")])
        return text;
    writer_init(&w, a);
    w_str(&w, "'");
    for (const char *s = text; *s; s++)
        w_fmt(&w, *s == '\'' ? "'\\''" : "%c", *s);
    w_str(&w, "'");
    return w.data;
}
