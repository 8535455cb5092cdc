/* SPDX-License-Identifier: Apache-2.0 */
/* The driver of passes, for all levels. */
#include "base/pass.h"

#include "base/nearest.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

/* --- names --- */

/* Whether `name` is the row's, a number in the place of "(N)". */
static bool is_named(const char *row, const char *name, size_t len, int64_t *out_number)
{
    const size_t all = strlen(row), front = all - strlen("N)");
    const bool has_number = all > 3 && strcmp(row + all - 3, "(N)") == 0;
    char *end;
    if (!has_number)
        return all == len && memcmp(row, name, len) == 0;
    if (len < all || memcmp(row, name, front) != 0)
        return false;
    const long long n = strtoll(name + front, &end, 10);
    *out_number = n;
    return end == name + len - 1 && *end == ')' && n >= 0 && n <= INT32_MAX;
}

uint32_t pass_find(const pass_level *l, const char *name, size_t len, int64_t *out_number)
{
    int64_t number = 0;
    uint32_t found = UINT32_MAX;
    const pass_row *row;
    for (uint32_t i = 0; found == UINT32_MAX && (row = l->row(i)); i++)
        if (is_named(row->name, name, len, &number))
            found = i;
    if (out_number)
        *out_number = number;
    return found;
}

bool pass_unknown(compiler *c, const pass_level *l, const char *name, size_t len)
{
    writer w;
    const pass_row *row;
    writer_init(&w, &c->mem);
    for (uint32_t i = 0; (row = l->row(i)); i++)
        w_fmt(&w, "%s%s", i ? ", " : "", row->name);
    name = arena_strndup(&c->mem, name, len < 80 ? len : 80);
    (void)diag_error(&c->diags, DIAG_USAGE, src_loc_none(), "unknown pass '%s' on %s", name, l->on);
    diag_hint(&c->diags, "%spasses on %s are: %s", nearest_in(name, w.data, &c->mem), l->on, w.data);
    return false;
}

typedef struct pass_at {
    const char *name;
    size_t len;
    uint32_t row; /* UINT32_MAX: no row has the name */
    int64_t number;
} pass_at;

/* The pass of the list at *at that the order runs next, *at then being behind it; false: there is none. */
static bool next_pass(const pass_level *l, const pass_order *o, const char **at, pass_at *out)
{
    while (**at) {
        *out = (pass_at){.name = *at, .len = strcspn(*at, ",")};
        *at += out->len + ((*at)[out->len] == ',');
        if (out->len == 0)
            continue;
        out->row = pass_find(l, out->name, out->len, &out->number);
        if (out->row == UINT32_MAX || l->row(out->row)->level <= o->opt_level)
            return true;
    }
    return false;
}

/* --- the check --- */

/* Names of the rows that give `fact`. */
static const char *givers(compiler *c, const pass_level *l, uint32_t fact)
{
    writer w;
    const pass_row *row;
    writer_init(&w, &c->mem);
    for (uint32_t i = 0; (row = l->row(i)); i++)
        if (row->gives & fact)
            w_fmt(&w, "%s%s", w.len ? " or " : "", row->name);
    return w.len ? w.data : NULL;
}

/* breaker: the row that ended the fact; UINT32_MAX: it never held. */
static bool refuse(compiler *c, const pass_level *l, const pass_row *p, uint32_t bit, uint32_t breaker)
{
    const char *from = givers(c, l, 1u << bit), *by = breaker == UINT32_MAX ? NULL : l->row(breaker)->name;
    const char *fact = l->facts[bit];
    if (by)
        (void)diag_error(&c->diags, DIAG_USAGE, src_loc_none(), "pass '%s' needs %s, and '%s' before it ends that",
                         p->name, fact, by);
    else
        (void)diag_error(&c->diags, DIAG_USAGE, src_loc_none(), "pass '%s' needs %s", p->name, fact);
    if (by && from)
        diag_hint(&c->diags, "run %s between them", from);
    else if (by)
        diag_hint(&c->diags, "run %s before %s", p->name, by);
    else
        diag_hint(&c->diags, "run %s before it", from);
    return false;
}

/* Facts that no pass gives hold of all that is given: only passes end them. */
static uint32_t facts_without_givers(const pass_level *l)
{
    uint32_t given = 0;
    const pass_row *row;
    for (uint32_t i = 0; (row = l->row(i)); i++)
        given |= row->gives;
    return ~given;
}

bool pass_check(compiler *c, const pass_level *l, const pass_order *o)
{
    uint32_t holds = o->holds | facts_without_givers(l), breakers[32];
    pass_at p;
    memset(breakers, 0xff, sizeof breakers);
    for (const char *at = o->names; next_pass(l, o, &at, &p);) {
        if (p.row == UINT32_MAX)
            return pass_unknown(c, l, p.name, p.len);
        const pass_row *row = l->row(p.row);
        for (uint32_t i = 0; i < l->n_facts; i++) {
            if (row->needs & ~holds & 1u << i)
                return refuse(c, l, row, i, breakers[i]);
            if (row->breaks & 1u << i)
                breakers[i] = p.row;
        }
        holds = (holds & ~row->breaks) | row->gives;
    }
    return true;
}

/* --- the run --- */

typedef struct run {
    compiler *c;
    const pass_level *l;
    const pass_order *o;
    void *ir;
    uint32_t step;
    const char *before; /* text before the pass; NULL when nobody wants it */
} run;

static const char *text_of(const run *r)
{
    writer w;
    writer_init(&w, &r->c->mem);
    r->l->print(&w, r->ir);
    return w.data;
}

static bool dump(run *r, const char *name, const char *text)
{
    compiler *c = r->c;
    if (r->o->print_after_all && r->o->dump) {
        w_line(r->o->dump, "// after %s", name);
        w_str(r->o->dump, text);
        w_str(r->o->dump, "\n");
    }
    if (!r->o->dump_dir)
        return true;
    const char *file = arena_printf(&c->mem, "%02u-%s.txt", r->step, name);
    return compiler_write_file(c, path_join(&c->mem, r->o->dump_dir, file), text, strlen(text));
}

static bool dump_if_changed(run *r, const char *name)
{
    if (!r->before)
        return true;
    const char *now = text_of(r);
    const bool changed = strcmp(now, r->before) != 0;
    r->before = now;
    return !changed || dump(r, name, now);
}

static double seconds_since(const struct timespec *start)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)(now.tv_sec - start->tv_sec) + 1e-9 * (double)(now.tv_nsec - start->tv_nsec);
}

static bool run_one(run *r, const pass_at *p)
{
    compiler *c = r->c;
    const char *name = arena_strndup(&c->mem, p->name, p->len);
    struct timespec start;
    if (r->l->tells && c->progress && !compiler_progress(c, arena_printf(&c->mem, "pass %s", name), 0, 0))
        return false;
    (void)clock_gettime(CLOCK_MONOTONIC, &start);
    bool ok = r->l->run(c, r->ir, p->row, p->number, r->o->options);
    if (r->o->times)
        w_line(r->o->times, "%-16s %9.3f ms", name, 1e3 * seconds_since(&start));
    r->step++;
    if (ok && r->o->verify && !r->l->verify(c, r->ir)) {
        diag_hint(&c->diags, "this is what the pass %s made", name);
        ok = false;
    }
    return ok && dump_if_changed(r, name);
}

bool pass_run(compiler *c, const pass_level *l, void *ir, const pass_order *o)
{
    run r = {.c = c, .l = l, .o = o, .ir = ir};
    pass_at p;
    if (!pass_check(c, l, o))
        return false;
    if (o->dump_dir || (o->print_after_all && o->dump))
        r.before = text_of(&r);
    for (const char *at = o->names; next_pass(l, o, &at, &p);)
        if (!run_one(&r, &p))
            return false;
    return true;
}
