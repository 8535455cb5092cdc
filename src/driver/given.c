/* SPDX-License-Identifier: Apache-2.0 */
/* Reports which of the schedules given with a model matched no kernel, and why. */
#include "driver/given.h"

#include "te/from_graph.h"
#include "te/text.h"
#include "type/target.h"

#include <string.h>

static bool is_for(const te_record *x, uint32_t n, const target *targets)
{
    bool found = !x->target;
    for (uint32_t i = 0; i < n; i++)
        found |= x->target && strcmp(x->target, targets[i].name) == 0;
    return found;
}

/* --target was forgotten. */
static void warn_of_other_targets(compiler *c, const te_records *all, const target *here)
{
    const char *other = all->list.data[all->list.len - 1]->target;
    diag_warning(&c->diags, DIAG_USAGE, src_loc_none(),
                 "none of the %u given schedules is for %s: they are for %s", all->list.len, here->name,
                 other);
    diag_hint(&c->diags, "--target %s compiles for that", other);
}

/* --- the nearest computation --- */

typedef struct difference {
    const prog_kernel *kernel; /* NULL: none is near */
    uint32_t lines;            /* that differ */
    const char *here, *there;  /* the first of them: the kernel's, the record's */
} difference;

static const char *text_of(compiler *c, const te_graph *g)
{
    writer w;
    writer_init(&w, &c->mem);
    te_print(&w, g);
    return w.data;
}

/* What is around the first bytes that differ: lines of computations are long. */
static const char *around(compiler *c, const char *line, size_t len, size_t at)
{
    enum { BEFORE = 24, MOST = 64 };
    size_t from = at > BEFORE ? at - BEFORE : 0;
    while (from > 0 && line[from - 1] != ' ')
        from--;
    const bool to_end = len - from <= MOST;
    return arena_printf(&c->mem, "%s%.*s%s", from > 0 ? "... " : "", (int)(to_end ? len - from : MOST), line + from,
                        to_end ? "" : " ...");
}

/* Texts of equally many lines; false: these have not. */
static bool compare(compiler *c, const char *here, const char *there, difference *out)
{
    for (size_t n, m; *here && *there; here += n + (here[n] != '\0'), there += m + (there[m] != '\0')) {
        n = strcspn(here, "\n");
        m = strcspn(there, "\n");
        if (n == m && memcmp(here, there, n) == 0)
            continue;
        if (out->lines++ > 0)
            continue;
        size_t at = 0;
        while (at < n && at < m && here[at] == there[at])
            at++;
        out->here = around(c, here, n, at);
        out->there = around(c, there, m, at);
    }
    return *here == *there;
}

/* Of the kernels that a schedule can be for. At least half of the lines are to be the same. */
static difference nearest_kernel(compiler *c, const prog_module *m, const te_record *x)
{
    const char *there = text_of(c, x->g);
    difference best = {.lines = x->g->nodes.len / 2 + 1};
    for (uint32_t i = 0; i < m->kernels.len; i++) {
        const prog_kernel *k = m->kernels.data[i];
        difference d = {.kernel = k};
        te_sched *s;
        if (k->by_target || !k->loops || !(k->func || k->node))
            continue;
        if (!te_schedule_graph(c, k->func, k->node, k->target, NULL, &s))
            break;
        if (compare(c, text_of(c, s->g), there, &d) && d.lines > 0 && d.lines < best.lines)
            best = d;
    }
    return best;
}

/* --- what fits no kernel --- */

static void hint_at_nearest(compiler *c, const prog_module *m, const te_record *x)
{
    const difference d = nearest_kernel(c, m, x);
    if (!d.kernel)
        diag_hint(&c->diags, "'lathe schedule MODEL' prints what its kernels compute");
    else
        diag_hint(&c->diags, "the most similar kernel is %s; it has '%s', and the schedule is for "
                             "'%s'%s", d.kernel->name, d.here,
                  d.there, d.lines > 1 ? ", and other lines differ, too" : "");
}

static void warn_of_misfits(compiler *c, const te_records *all, bool measured, uint32_t n, const target *targets,
                            const prog_module *m)
{
    const te_record *first = NULL;
    uint32_t given = 0, misfits = 0;
    for (uint32_t i = 0; i < all->list.len; i++) {
        const te_record *x = all->list.data[i];
        if ((x->seconds > 0) != measured || !is_for(x, n, targets))
            continue;
        given++;
        misfits += !x->fits;
        first = first || x->fits ? first : x;
    }
    if (misfits == 0 || (measured && misfits < given))
        return;
    if (given == 1)
        diag_warning(&c->diags, DIAG_USAGE, first->g->loc,
                     "no kernel of the model computes this, so its schedule is not used");
    else
        diag_warning(&c->diags, DIAG_USAGE, first->g->loc,
                     "%u of %u schedules fit no kernel of the model and are not used: this is the first one", misfits,
                     given);
    hint_at_nearest(c, m, first);
}

void given_warn(compiler *c, const compile_options *o, uint32_t n, const target *targets, const compile_result *r)
{
    const te_records *all = r->records;
    bool some = false;
    if (all->list.len == 0 || o->unscheduled || o->stop < STOP_SCHEDULE)
        return; /* nobody asked for a schedule */
    for (uint32_t i = 0; i < all->list.len; i++)
        some |= is_for(all->list.data[i], n, targets);
    if (!some)
        warn_of_other_targets(c, all, &targets[0]);
    warn_of_misfits(c, all, false, n, targets, r->prog);
    warn_of_misfits(c, all, true, n, targets, r->prog);
}

/* --- chains --- */

static bool takes(const prog_module *m, const te_record *x)
{
    bool found = false;
    for (uint32_t i = 0; i < m->kernels.len && !found; i++) {
        const tir_func *f = m->kernels.data[i]->loops;
        found = f && f->schedule_from && strcmp(f->schedule_from, x->origin) == 0;
    }
    return found;
}

void given_note_chains(te_records *records, const prog_module *before, const prog_module *after)
{
    for (uint32_t i = 0; i < records->list.len; i++) {
        te_record *x = records->list.data[i];
        if (takes(before, x) && !takes(after, x))
            x->uses = 0;
    }
}
