/* SPDX-License-Identifier: Apache-2.0 */
/* Columns on a screen: a character of East Asian scripts takes two, one that is drawn on its predecessor none. */
#include "table.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static size_t columns_of(uint32_t code)
{
    static const struct {
        uint32_t first, last;
        size_t columns;
    } ranges[] = {{0x0300, 0x036f, 0},   {0x1100, 0x115f, 2},   {0x200b, 0x200f, 0},   {0x2e80, 0x303e, 2},
                  {0x3041, 0xa4cf, 2},   {0xac00, 0xd7a3, 2},   {0xf900, 0xfaff, 2},   {0xfe00, 0xfe0f, 0},
                  {0xfe30, 0xfe6f, 2},   {0xff00, 0xff60, 2},   {0xffe0, 0xffe6, 2},   {0x1f300, 0x1f64f, 2},
                  {0x1f900, 0x1f9ff, 2}, {0x20000, 0x3fffd, 2}};
    for (size_t i = 0; i < sizeof ranges / sizeof *ranges; i++)
        if (code >= ranges[i].first && code <= ranges[i].last)
            return ranges[i].columns;
    return 1;
}

/* Columns of a text; *out_fit is how many of its bytes fit into `most` columns. */
static size_t measure(const char *s, size_t most, size_t *out_fit)
{
    size_t columns = 0, len = strlen(s);
    *out_fit = 0;
    for (size_t i = 0; i < len;) {
        size_t n = utf8_length(s + i, len - i);
        columns += n == 0 ? 1 : columns_of(utf8_code(s + i));
        i += n == 0 ? 1 : n;
        *out_fit = columns <= most ? i : *out_fit;
    }
    return columns;
}

table table_begin(arena *a, const char *align)
{
    assert(strlen(align) <= TABLE_COLUMNS);
    return (table){.a = a, .align = align};
}

void table_add(table *t, const char *fmt, ...)
{
    va_list args;
    char text[1000];
    va_start(args, fmt);
    (void)vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    vec_push(t->a, &t->cells, text_line(arena_strdup(t->a, text)));
}

static void put_cell(const table *t, writer *w, uint32_t column, const char *cell, size_t width)
{
    size_t fit, columns = measure(cell, TABLE_WIDEST, &fit);
    bool last = !t->align[column + 1], right = t->align[column] == 'r';
    if (columns > TABLE_WIDEST && !last) {
        columns = measure(cell, TABLE_WIDEST - 2, &fit);
        cell = arena_printf(t->a, "%.*s..", (int)fit, cell);
        columns = measure(cell, TABLE_WIDEST, &fit);
    }
    int gap = columns < width ? (int)(width - columns) : 0;
    w_fmt(w, "%*s%s%*s", right ? gap : 0, "", cell, right || last ? 0 : gap, "");
    while (last && w->len > 0 && w->data[w->len - 1] == ' ')
        w->data[--w->len] = '\0';
    w_str(w, last ? "\n" : "  ");
}

void table_print(const table *t, writer *w)
{
    size_t widths[TABLE_COLUMNS] = {0};
    const uint32_t n = (uint32_t)strlen(t->align);
    for (uint32_t i = 0; i < t->cells.len; i++) {
        size_t fit, columns = measure(t->cells.data[i], 0, &fit);
        columns = columns < TABLE_WIDEST ? columns : TABLE_WIDEST;
        widths[i % n] = columns > widths[i % n] ? columns : widths[i % n];
    }
    for (uint32_t i = 0; i < t->cells.len; i++)
        put_cell(t, w, i % n, t->cells.data[i], widths[i % n]);
}
