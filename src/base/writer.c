/* SPDX-License-Identifier: Apache-2.0 */
/* Text out with indentation, and interned strings. */
#include "base/text.h"

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

void w_str(writer *w, const char *s) { put(w, s, strlen(s)); }

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
    put(w, " {\n", 3);
    w->indent++;
}

void w_close(writer *w, const char *tail)
{
    w->indent--;
    put(w, "}", 1);
    w_str(w, tail);
    put(w, "\n", 1);
}

void w_quoted(writer *w, const char *s, size_t n)
{
    put(w, "\"", 1);
    for (size_t i = 0; i < n; i++) {
        unsigned char ch = (unsigned char)s[i];
        if (ch == '"' || ch == '\\')
            w_fmt(w, "\\%c", ch);
        else if (ch == '\n')
            w_str(w, "\\n");
        else if (ch < 32 || ch == 127)
            w_fmt(w, "\\x%02x", ch);
        else
            put(w, (const char *)&s[i], 1);
    }
    put(w, "\"", 1);
}

void w_float(writer *w, double v, uint32_t bits)
{
    char s[40];
    if (isnan(v) || isinf(v)) {
        w_str(w, isnan(v) ? "nan" : v < 0 ? "-inf" : "inf");
        return;
    }
    int most = bits == 32 ? 9 : 17;
    for (int digits = 1; digits <= most; digits++) {
        (void)snprintf(s, sizeof s, "%.*g", digits, v);
        if (bits == 32 ? strtof(s, NULL) == (float)v : strtod(s, NULL) == v)
            break;
    }
    w_str(w, s);
    if (!strpbrk(s, ".e"))
        w_str(w, ".0");
}

/* --- interned strings --------------------------------------------------------------------------------------------- */

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
    for (entry *e = in->buckets[h & (in->n_buckets - 1)]; e; e = e->next)
        if (e->hash == h && e->len == n && memcmp(e->text, s, n) == 0)
            return e->text;
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

const char *intern(interner *in, const char *s) { return intern_n(in, s, strlen(s)); }
