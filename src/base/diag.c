/* SPDX-License-Identifier: Apache-2.0 */
/* The diagnostic sink and its printed form. */
#include "base/diag.h"

#include "base/text.h"

#include <stdarg.h>
#include <stdio.h>

static const struct {
    const char *name;
    int status;
} code_table[] = {
#define X(id, name, status) {name, status},
    DIAG_CODES(X)
#undef X
};

void diags_init(diags *d)
{
    *d = (diags){.limit = 50};
    arena_init(&d->mem);
}

void diags_free(diags *d) { arena_free(&d->mem); }

static void add(diags *d, diag_level level, diag_code code, src_loc loc, const char *fmt, va_list ap)
{
    if (level == DIAG_ERROR && d->errors++ >= d->limit)
        return;
    char text[2048]; /* a sentence; longer ones are cut */
    (void)vsnprintf(text, sizeof text, fmt, ap);
    diag *n = arena_new(&d->mem, diag);
    *n = (diag){.level = level, .code = code, .loc = loc, .text = arena_strdup(&d->mem, text)};
    if (loc.file)
        n->loc.file = arena_strdup(&d->mem, loc.file);
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
    char text[2048];
    va_list ap;
    if (!d->last || d->errors > d->limit)
        return;
    va_start(ap, fmt);
    (void)vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    d->last->hint = arena_strdup(&d->mem, text);
}

int diags_exit_status(const diags *d)
{
    for (const diag *n = d->first; n; n = n->next)
        if (n->level == DIAG_ERROR)
            return code_table[n->code].status;
    return d->errors ? 1 : 0;
}

const char *src_loc_print(src_loc loc, arena *a)
{
    const char *file = loc.file ? loc.file : "";
    if (loc.line)
        return arena_printf(a, "%s:%u:%u", file, loc.line, loc.col);
    if (loc.node_index < 0)
        return file;
    const char *sep = loc.file ? ": " : "", *name = loc.node && *loc.node ? loc.node : NULL;
    const char *quoted = name ? arena_printf(a, " '%s'", name) : "", *op = loc.op ? arena_printf(a, " (%s)", loc.op) : "";
    return arena_printf(a, "%s%snode %d%s%s", file, sep, loc.node_index, quoted, op);
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
        w_fmt(&w, "note: %u more errors\n", d->errors - d->limit);
    return w.data;
}
