/* SPDX-License-Identifier: Apache-2.0 */
/* The driver of passes on programs: rows of PROG_PASSES, verified after each, printed when asked. */
#include "prog/prog.h"

#include <string.h>

typedef struct pass_row {
    const char *name;
    prog_pass_fn run;
    int level;
} pass_row;

static const pass_row rows[] = {
#define X(id, name, fn, level, help) {name, fn, level},
    PROG_PASSES(X)
#undef X
};
#define ROWS (sizeof rows / sizeof *rows)

static bool run_one(compiler *c, prog_module *m, const pass_row *row, bool print, writer *dump)
{
    if (!row->run(c, m))
        return false;
    if (!prog_verify(c, m)) {
        diag_hint(&c->diags, "this is what the pass %s made", row->name);
        return false;
    }
    if (print) {
        w_line(dump, "// after %s", row->name);
        prog_print(dump, m);
    }
    return true;
}

static bool unknown_pass(compiler *c, const char *name, size_t len)
{
    writer w;
    writer_init(&w, &c->mem);
    for (size_t i = 0; i < ROWS; i++)
        w_fmt(&w, "%s%s", i ? ", " : "", rows[i].name);
    (void)diag_error(&c->diags, DIAG_USAGE, src_loc_none(), "unknown pass '%.*s' on programs",
                     (int)(len < 80 ? len : 80), name);
    diag_hint(&c->diags, "passes on programs are: %s", w.data);
    return false;
}

bool prog_run_passes(compiler *c, prog_module *m, const char *names, int opt_level, bool print_after_all, writer *dump)
{
    if (!prog_verify(c, m))
        return false;
    for (size_t i = 0; !names && i < ROWS; i++)
        if (rows[i].level <= opt_level && !run_one(c, m, &rows[i], print_after_all, dump))
            return false;
    for (const char *p = names ? names : ""; *p;) {
        size_t len = strcspn(p, ","), i = 0;
        while (i < ROWS && (strlen(rows[i].name) != len || memcmp(rows[i].name, p, len) != 0))
            i++;
        if (len && i == ROWS)
            return unknown_pass(c, p, len);
        if (len && !run_one(c, m, &rows[i], print_after_all, dump))
            return false;
        p += len + (p[len] == ',');
    }
    return true;
}
