/* SPDX-License-Identifier: Apache-2.0 */
/* The diagnostic sink and its printed form. */
#include "base/diag.h"

#include "base/text.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static const struct {
    const char *name;
    int status;
} code_table[] = {
#define X(id, name, status) {name, status},
    DIAG_CODES(X)
#undef X
};

void diags_init(diags *d, const arena *parent)
{
    *d = (diags){.limit = 50};
    arena_init(&d->mem, parent);
}

void diags_free(diags *d)
{
    arena_free(&d->mem);
}

/* A diagnostic is a line: text from a model may hold anything, line ends and terminal escapes among it. */
static const char *copy(diags *d, const char *s)
{
    return s ? text_line(arena_strdup(&d->mem, s)) : NULL;
}

/* What the sink keeps of a text: a sentence, cut when it is longer than any sentence. */
static const char *format(diags *d, const char *fmt, va_list ap)
{
    char text[2001];
    (void)vsnprintf(text, sizeof text, fmt, ap);
    return copy(d, text);
}

static void add(diags *d, diag_level level, diag_code code, src_loc loc, const char *fmt, va_list ap)
{
    uint32_t *count = level == DIAG_ERROR ? &d->errors : level == DIAG_WARNING ? &d->warnings : &d->notes;
    d->dropped = (*count)++ >= d->limit;
    if (d->dropped)
        return;
    loc.file = copy(d, loc.file);
    loc.node = copy(d, loc.node);
    loc.op = copy(d, loc.op);
    diag *n = arena_new(&d->mem, diag);
    *n = (diag){.level = level, .code = code, .loc = loc, .text = format(d, fmt, ap)};
    if (d->last)
        d->last->next = n;
    else
        d->first = n;
    d->last = n;
}

bool diag_error(diags *d, diag_code code, src_loc loc, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    add(d, DIAG_ERROR, code, loc, fmt, ap);
    va_end(ap);
    return false;
}

bool diag_note(diags *d, diag_code code, src_loc loc, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    add(d, DIAG_NOTE, code, loc, fmt, ap);
    va_end(ap);
    return false;
}

bool diag_warning(diags *d, diag_code code, src_loc loc, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    add(d, DIAG_WARNING, code, loc, fmt, ap);
    va_end(ap);
    return false;
}

void diag_hint(diags *d, const char *fmt, ...)
{
    va_list ap;
    if (!d->last || d->dropped)
        return;
    va_start(ap, fmt);
    const char *hint = format(d, fmt, ap);
    va_end(ap);
    size_t n = strlen(hint);
    while (n > 0 && hint[n - 1] == ' ') /* of a question alone, see nearest.h */
        n--;
    d->last->hint = arena_strndup(&d->mem, hint, n);
}

diags_mark diags_get_mark(const diags *d)
{
    return (diags_mark){d->last, d->errors, d->warnings, arena_get_mark(&d->mem)};
}

void diags_reset(diags *d, diags_mark mark)
{
    d->last = mark.last;
    if (d->last)
        d->last->next = NULL;
    else
        d->first = NULL;
    d->errors = mark.errors;
    d->warnings = mark.warnings;
    d->dropped = false;
    arena_reset(&d->mem, mark.mem);
}

static const diag *first_error(const diags *d)
{
    const diag *n = d->first;
    while (n && n->level != DIAG_ERROR)
        n = n->next;
    return n;
}

const char *diags_first_error(const diags *d)
{
    const diag *n = first_error(d);
    return n ? n->text : "";
}

bool diags_pass_on(diags *to, const diags *from)
{
    const diag *n = first_error(from);
    if (!n)
        return diag_error(to, DIAG_ENVIRONMENT, src_loc_none(), "no memory for a message");
    (void)diag_error(to, n->code, n->loc, "%s", n->text);
    if (n->hint)
        diag_hint(to, "%s", n->hint);
    return false;
}

void diags_pass_warnings(diags *to, const diags *from)
{
    for (const diag *n = from->first; n; n = n->next) {
        if (n->level != DIAG_WARNING)
            continue;
        (void)diag_warning(to, n->code, n->loc, "%s", n->text);
        if (n->hint)
            diag_hint(to, "%s", n->hint);
    }
}

const char *diag_code_name(diag_code code)
{
    return code_table[code].name;
}

int diag_code_status(diag_code code)
{
    return code_table[code].status;
}

int diags_exit_status(const diags *d)
{
    for (const diag *n = d->first; n; n = n->next)
        if (n->level == DIAG_ERROR)
            return diag_code_status(n->code);
    return d->errors ? 1 : 0;
}

static const char *node_print(src_loc loc, arena *a)
{
    const char *name = loc.node && *loc.node ? arena_printf(a, " '%s'", loc.node) : "";
    const char *op = loc.op ? arena_printf(a, " (%s)", loc.op) : "";
    return arena_printf(a, "node %" PRId32 "%s%s", loc.node_index, name, op);
}

const char *src_loc_print(src_loc loc, arena *a)
{
    const char *file = loc.file ? loc.file : "";
    if (loc.line)
        return arena_printf(a, "%s:%" PRIu32 ":%" PRIu32, *file ? file : "text", loc.line, loc.col);
    if (loc.node_index < 0)
        return file;
    return arena_printf(a, "%s%s%s", file, *file ? ": " : "", node_print(loc, a));
}

char *diags_print(const diags *d, arena *a)
{
    static const char *const levels[] = {"note", "warning", "error"};
    writer w;
    writer_init(&w, a);
    for (const diag *n = d->first; n; n = n->next) {
        const char *at = src_loc_print(n->loc, a);
        w_fmt(&w, "%s: %s%s%s [%s]\n", levels[n->level], at, *at ? ": " : "", n->text, code_table[n->code].name);
        if (n->hint)
            w_fmt(&w, "  hint: %s\n", n->hint);
    }
    if (d->errors > d->limit)
        w_fmt(&w, "note: %" PRIu32 " more errors\n", d->errors - d->limit);
    if (d->warnings > d->limit)
        w_fmt(&w, "note: %" PRIu32 " more warnings\n", d->warnings - d->limit);
    return w.data;
}
