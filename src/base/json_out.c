/* SPDX-License-Identifier: Apache-2.0 */
/* JSON out. */
#include "base/json_out.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>

json_out json_out_begin(writer *w, json_out_style style)
{
    return (json_out){.w = w, .style = style};
}

static void new_line(json_out *j)
{
    w_fmt(j->w, "\n%*s", (int)j->depth, "");
}

static void quoted(writer *w, const char *s)
{
    size_t n = strlen(s);
    w_str(w, "\"");
    for (size_t i = 0, len; i < n; i += len) {
        unsigned char ch = (unsigned char)s[i];
        len = utf8_length(s + i, n - i);
        if (ch == '"' || ch == '\\')
            w_fmt(w, "\\%c", ch);
        else if (len == 0)
            w_str(w, "?");
        else if (text_plain_length(s + i, n - i) == 0)
            w_fmt(w, "\\u%04x", utf8_code(s + i));
        else
            w_fmt(w, "%.*s", (int)len, s + i);
        len = len ? len : 1;
    }
    w_str(w, "\"");
}

/* What stands before a value. */
static writer *lead(json_out *j, const char *key)
{
    if (j->follows)
        w_str(j->w, j->style == JSON_OUT_LINE ? ", " : ",");
    if (j->style == JSON_OUT_LINES && j->depth > 0)
        new_line(j);
    j->follows = true;
    if (key) {
        quoted(j->w, key);
        w_str(j->w, j->style == JSON_OUT_DENSE ? ":" : ": ");
    }
    return j->w;
}

static void open(json_out *j, const char *key, const char *bracket, char closing)
{
    assert(j->depth < JSON_OUT_DEPTH);
    w_str(lead(j, key), bracket);
    j->closing[j->depth++] = closing;
    j->follows = false;
}

void json_out_object(json_out *j, const char *key)
{
    open(j, key, "{", '}');
}

void json_out_array(json_out *j, const char *key)
{
    open(j, key, "[", ']');
}

void json_out_end(json_out *j)
{
    assert(j->depth > 0);
    j->depth--;
    if (j->style == JSON_OUT_LINES && j->follows)
        new_line(j);
    w_fmt(j->w, "%c", j->closing[j->depth]);
    j->follows = true;
}

void json_out_text(json_out *j, const char *key, const char *s)
{
    quoted(lead(j, key), s ? s : "");
}

void json_out_int(json_out *j, const char *key, int64_t v)
{
    w_fmt(lead(j, key), "%" PRId64, v);
}

void json_out_uint(json_out *j, const char *key, uint64_t v)
{
    w_fmt(lead(j, key), "%" PRIu64, v);
}

void json_out_real(json_out *j, const char *key, double v)
{
    writer *w = lead(j, key);
    const char *quote = isfinite(v) ? "" : "\"";
    w_str(w, quote);
    w_float(w, v, 64);
    w_str(w, quote);
}

void json_out_null(json_out *j, const char *key)
{
    w_str(lead(j, key), "null");
}

void json_out_text_or_null(json_out *j, const char *key, const char *s)
{
    if (s)
        json_out_text(j, key, s);
    else
        json_out_null(j, key);
}

void json_out_written(json_out *j, const char *key, const char *text, size_t len)
{
    static const char blanks[] = " \t\r\n";
    while (len > 0 && strchr(blanks, text[len - 1]))
        len--;
    while (len > 0 && strchr(blanks, *text)) {
        text++;
        len--;
    }
    writer *w = lead(j, key);
    for (const char *end = text + len; text < end;) { /* a line end in JSON is never part of a text */
        const char *next = memchr(text, '\n', (size_t)(end - text));
        const size_t n = next ? (size_t)(next - text) : (size_t)(end - text);
        w_fmt(w, "%.*s", (int)n, text);
        if (next && j->style == JSON_OUT_LINES)
            new_line(j);
        text += n + (next != NULL);
    }
}
