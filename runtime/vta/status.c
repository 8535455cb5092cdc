/* status.c: texts of the statuses, and the one way to report an error. The message is formatted here and not by the C
 * library, whose formatting takes memory from the heap on small systems.
 * SPDX-License-Identifier: Apache-2.0 */
#include "vta_replay.h"

#include <stdarg.h>

const char *vta_status_text(vta_status s)
{
    switch (s) {
#define X(id, text) \
    case id: return text;
        VTA_STATUSES(X)
#undef X
    }
    return "unknown status";
}

/* Where the message goes; what does not fit is dropped. */
typedef struct message {
    char *out;
    size_t size, length;
} message;

static void put(message *m, char c)
{
    if (m->length + 1 < m->size)
        m->out[m->length++] = c;
}

/* What stands between % and the letter. */
typedef struct conversion {
    char fill;
    int width, precision; /* precision < 0: none */
    int longs;            /* 1: long, 2: long long, 3: size_t */
} conversion;

static void put_text(message *m, const conversion *v, const char *s)
{
    int length = 0;
    while ((v->precision < 0 || length < v->precision) && s[length])
        length++;
    for (int i = length; i < v->width; i++)
        put(m, ' ');
    for (int i = 0; i < length; i++)
        put(m, s[i]);
}

static void put_number(message *m, const conversion *v, uint64_t n, unsigned base, bool negative)
{
    char digits[24];
    int length = 0;
    do
        digits[length++] = "0123456789abcdef"[n % base];
    while (n /= base);
    if (negative && v->fill == '0')
        put(m, '-');
    for (int i = length + negative; i < v->width; i++)
        put(m, v->fill);
    if (negative && v->fill != '0')
        put(m, '-');
    while (length > 0)
        put(m, digits[--length]);
}

static uint64_t take_unsigned(const conversion *v, va_list *args)
{
    switch (v->longs) {
    case 0: return va_arg(*args, unsigned);
    case 1: return va_arg(*args, unsigned long);
    case 2: return va_arg(*args, unsigned long long);
    default: return va_arg(*args, size_t);
    }
}

static int64_t take_signed(const conversion *v, va_list *args)
{
    switch (v->longs) {
    case 0: return va_arg(*args, int);
    case 1: return va_arg(*args, long);
    case 2: return va_arg(*args, long long);
    default: return (int64_t)va_arg(*args, size_t);
    }
}

/* Reads what stands behind a %; returns the place of its letter. */
static const char *read_conversion(const char *at, conversion *v, va_list *args)
{
    *v = (conversion){' ', 0, -1, 0};
    if (*at == '0')
        v->fill = *at++;
    for (; *at >= '0' && *at <= '9'; at++)
        v->width = 10 * v->width + (*at - '0');
    if (*at == '.') {
        v->precision = 0;
        if (*++at == '*') {
            v->precision = va_arg(*args, int);
            at++;
        }
        for (; *at >= '0' && *at <= '9'; at++)
            v->precision = 10 * v->precision + (*at - '0');
    }
    for (; *at == 'l' || *at == 'z' || *at == 'h'; at++)
        v->longs = *at == 'z' ? 3 : *at == 'l' ? v->longs + 1 : 0;
    return at;
}

static void put_conversion(message *m, const conversion *v, char letter, va_list *args)
{
    char c[2] = {0, 0};
    int64_t n;
    switch (letter) {
    case 's': put_text(m, v, va_arg(*args, const char *)); break;
    case 'c': c[0] = (char)va_arg(*args, int); put_text(m, v, c); break;
    case 'u': put_number(m, v, take_unsigned(v, args), 10, false); break;
    case 'x': put_number(m, v, take_unsigned(v, args), 16, false); break;
    case 'd':
        n = take_signed(v, args);
        put_number(m, v, n < 0 ? 0 - (uint64_t)n : (uint64_t)n, 10, n < 0);
        break;
    case 'p':
        put(m, '0');
        put(m, 'x');
        put_number(m, v, (uintptr_t)va_arg(*args, void *), 16, false);
        break;
    default: put(m, letter); break; /* %% */
    }
}

vta_status vta_fail(vta_error *e, vta_status s, const char *fmt, ...)
{
    if (!e)
        return s;
    message m = {e->text, sizeof e->text, 0};
    va_list args;
    va_start(args, fmt);
    for (const char *at = fmt; *at; at++) {
        conversion v;
        if (*at != '%') {
            put(&m, *at);
            continue;
        }
        at = read_conversion(at + 1, &v, &args);
        if (!*at)
            break;
        put_conversion(&m, &v, *at, &args);
    }
    va_end(args);
    e->status = s;
    e->text[m.length] = 0;
    return s;
}

void vta_device_destroy(vta_device *d)
{
    if (d && d->driver)
        d->driver->destroy(d->self);
    if (d)
        memset(d, 0, sizeof *d);
}
