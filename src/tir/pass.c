/* SPDX-License-Identifier: Apache-2.0 */
/* The pass driver: passes are rows of TIR_PASSES; it runs the ones named, verifies after each, and prints when asked.
 */
#include "base/nearest.h"
#include "tir/facts.h"
#include "tir/family.h"
#include "tir/pass.h"
#include "tir/simplify.h"
#include "tir/text.h"
#include "tir/tir.h"
#include "tir/verify.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static const tir_pass_row rows[] = {
#define X(id, name, fn, help) {name, fn, help},
    TIR_PASSES(X)
#undef X
};

static const char *const default_order =
    "simplify-loops,double-buffer,partition-loops,tensorize,hoist,vectorize,round-in-lanes,expand-math,unroll,flatten,"
    "simplify-loops,drop-dead-stores,begin-sums,join-runs,hoist,unswitch-loops,drop-dead-stores,rewrite-storage,"
    "narrow-indices,name-quotients";

const char *const tir_plain_passes =
    "simplify-loops,double-buffer,partition-loops,tensorize,flatten,simplify-loops,reuse-in-place";
static const tir_loops *const devices[] = {
#define TARGET_LOOPS(name) &tir_loops_##name,
#include "target/targets.def"
    NULL};

static const tir_pass_row *row_at(uint32_t i)
{
    if (i < sizeof rows / sizeof *rows)
        return &rows[i];
    i -= (uint32_t)(sizeof rows / sizeof *rows);
    for (const tir_loops *const *d = devices; *d; i -= (*d)->n, d++)
        if (i < (*d)->n)
            return &(*d)->passes[i];
    return NULL;
}

static const tir_pass_row *find(const char *name, size_t len)
{
    const tir_pass_row *row;
    for (uint32_t i = 0; (row = row_at(i)); i++)
        if (strlen(row->name) == len && strncmp(row->name, name, len) == 0)
            return row;
    return NULL;
}

/* The device of a pass with a number, and the number; NULL: `name` is none. */
static const tir_loops *find_numbered(const char *name, size_t len, int64_t *out)
{
    for (const tir_loops *const *d = devices; *d; d++) {
        const char *pass = (*d)->numbered;
        size_t n = pass ? strlen(pass) : 0;
        char *end;
        if (!pass || len < n + 3 || strncmp(pass, name, n) != 0 || name[n] != '(')
            continue;
        *out = strtoll(name + n + 1, &end, 10);
        if (end == name + len - 1 && *end == ')' && *out >= 0 && *out <= INT32_MAX)
            return *d;
    }
    return NULL;
}

static bool unknown_pass(compiler *c, const char *name, size_t len)
{
    writer w;
    writer_init(&w, &c->mem);
    name = arena_strndup(&c->mem, name, len < 80 ? len : 80);
    (void)diag_error(&c->diags, DIAG_USAGE, src_loc_none(), "unknown loop pass '%s'", name);
    const tir_pass_row *row;
    for (uint32_t i = 0; (row = row_at(i)); i++)
        w_fmt(&w, "%s%s", i ? ", " : "", row->name);
    for (const tir_loops *const *d = devices; *d; d++)
        if ((*d)->numbered)
            w_fmt(&w, ", %s(N)", (*d)->numbered);
    diag_hint(&c->diags, "%sloop passes are: %s", nearest_in(name, w.data, &c->mem), w.data);
    return false;
}

static bool run_one(compiler *c, tir_module *m, const char *name, size_t len)
{
    int64_t number = 0;
    const tir_pass_row *row = find(name, len);
    const tir_loops *device = row ? NULL : find_numbered(name, len, &number);
    if (!row && !device)
        return unknown_pass(c, name, len);
    for (uint32_t i = 0; i < m->funcs.len; i++) {
        tir_func *f = m->funcs.data[i];
        if (!(row ? row->run(c, f) : device->run_numbered(c, f, number)))
            return false;
        if (!tir_verify(c, f)) {
            diag_hint(&c->diags, "this is what the loop pass %.*s made", (int)len, name);
            return false;
        }
    }
    return true;
}

const char *tir_device_passes(const char *device)
{
    for (const tir_loops *const *d = devices; *d; d++)
        if (strcmp((*d)->name, device) == 0)
            return (*d)->order;
    return NULL;
}

static const char *expanded(const char *names)
{
    const char *order = names ? tir_device_passes(names) : default_order;
    return order ? order : names;
}

bool tir_run_passes(compiler *c, tir_module *m, const char *names, bool print_after_all, writer *dump)
{
    const char *p = expanded(names);
    while (*p) {
        size_t len = strcspn(p, ",");
        if (len && !run_one(c, m, p, len))
            return false;
        if (len && print_after_all) {
            w_line(dump, "// after %.*s", (int)len, p);
            tir_print(dump, m);
        }
        p += len + (p[len] == ',');
    }
    for (uint32_t i = 0; !names && i < m->funcs.len; i++)
        tir_count_left(c, m->funcs.data[i]);
    return true;
}

/* --- build configurations --- */

static bool is_among(const char *list, const char *name, size_t len)
{
    while (list && *list) {
        size_t n = strcspn(list, ",");
        if (n == len && strncmp(list, name, len) == 0)
            return true;
        list += n + (list[n] == ',');
    }
    return false;
}

static bool check_disabled(compiler *c, const char *all, const char *disabled)
{
    while (disabled && *disabled) {
        size_t n = strcspn(disabled, ",");
        if (n && !find(disabled, n))
            return unknown_pass(c, disabled, n);
        if (n && !is_among(all, disabled, n)) {
            diag_error(&c->diags, DIAG_USAGE, src_loc_none(), "the pass '%.*s' is not among those that would run",
                       (int)n, disabled);
            diag_hint(&c->diags, "these are: %s", all);
            return false;
        }
        disabled += n + (disabled[n] == ',');
    }
    return true;
}

/* The one device whose passes take flags. */
static const tir_loops *device_with_flags(void)
{
    const tir_loops *const *d = devices;
    while (*d && !(*d)->numbered)
        d++;
    return *d;
}

bool tir_build_config_passes(compiler *c, const tir_build_config *b, const char **out)
{
    const tir_loops *device = b->flags != 0 ? device_with_flags() : NULL;
    const char *all = expanded(b->passes);
    writer w;
    *out = NULL;
    if (!check_disabled(c, all, b->disabled))
        return false;
    writer_init(&w, &c->mem);
    for (const char *p = all; *p;) {
        size_t len = strcspn(p, ",");
        if (len && !is_among(b->disabled, p, len))
            w_fmt(&w, "%s%.*s", w.len ? "," : "", (int)len, p);
        if (device && len == strlen(device->numbered_after) && strncmp(p, device->numbered_after, len) == 0) {
            w_fmt(&w, ",%s(%" PRId64 ")", device->numbered, b->flags);
            device = NULL;
        }
        p += len + (p[len] == ',');
    }
    if (device)
        w_fmt(&w, "%s%s(%" PRId64 ")", w.len ? "," : "", device->numbered, b->flags);
    *out = w.len ? w.data : "";
    return true;
}

bool tir_pass_simplify(compiler *c, tir_func *f)
{
    f->body = tir_simplify_stmt(c, f->body);
    return true;
}
