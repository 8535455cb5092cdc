/* SPDX-License-Identifier: Apache-2.0 */
/* bench --profile as text, or as JSON. */
#include "profile.h"

#include "api/session.h"
#include "driver/groups.h"
#include "table.h"

/* "0.12 0.11" of each worker, where there are several. */
static const char *workers_text(arena *a, const profile *p, const profile_operator *o)
{
    const char *all = "";
    for (uint32_t w = 0; w < p->n_workers; w++)
        all = arena_printf(a, "%s%s%.3g", all, w ? " " : "", 1e3 * o->workers[w]);
    return all;
}

static void print_machine(writer *w, const profile_machine *m)
{
    w_fmt(w, "one core    %.1f GFLOP/s in registers; reads", 1e-9 * m->flops);
    for (uint32_t i = 0; i < PROFILE_SIZES; i++)
        w_fmt(w, "%s %.1f GB/s of %lld KiB", i ? "," : "", 1e-9 * m->reads[i].rate, (long long)m->reads[i].bytes >> 10);
    w_str(w, "\n");
}

static void print_text(writer *w, arena *a, const run_report *r, const profile *p)
{
    table t = table_begin(a, p->n_workers > 1 ? "llrrrrlll" : "llrrrrll");
    static const char *const heads[] = {"operator", "kernel", "ms", "share", "GFLOP/s", "of peak", "bound", "schedule"};
    for (size_t i = 0; i < sizeof heads / sizeof *heads; i++)
        table_add(&t, "%s", heads[i]);
    if (p->n_workers > 1)
        table_add(&t, "ms of each worker");
    for (uint32_t i = 0; i < p->n_operators; i++) {
        const run_operator *op = &r->operators[i];
        const profile_operator *o = &p->operators[i];
        bool by_bytes;
        const double peak = profile_share_of_peak(p, r, i, &by_bytes);
        table_add(&t, "%s", *op->source ? groups_short_names(a, op->source) : op->kind);
        table_add(&t, "%s", op->kernel);
        table_add(&t, "%.3g", 1e3 * o->seconds);
        table_add(&t, "%.1f %%", p->seconds > 0 ? 100 * o->seconds / p->seconds : 0.0);
        table_add(&t, "%.1f", o->seconds > 0 ? 2e-9 * (double)op->macs / o->seconds : 0.0);
        table_add(&t, "%.0f %%", 100 * peak);
        table_add(&t, "%s", by_bytes ? "bytes" : "sums");
        table_add(&t, "%s", op->on ? op->on : op->schedule ? op->schedule : "rule");
        if (p->n_workers > 1)
            table_add(&t, "%s", workers_text(a, p, o));
    }
    table_print(&t, w);
    w_fmt(w, "all         %.4g ms in operators, %u rounds, %u worker%s\n", 1e3 * p->seconds, p->n_rounds, p->n_workers,
          p->n_workers == 1 ? "" : "s");
    print_machine(w, &p->machine);
}

bool bench_profile(session *s, long rounds)
{
    profile p;
    const run_report *r = s->model.report;
    if (!profile_take(s->x->c, &s->model, rounds > 0 ? (uint32_t)rounds : 10, &p))
        return false;
    if (ask_has(s->x, OPT_JSON))
        profile_write_json(&s->x->out, r, &p);
    else
        print_text(&s->x->out, &s->x->c->mem, r, &p);
    return true;
}

bool bench_check_profile(const ask *x)
{
    static const ask_option others[] = {OPT_AGAINST, OPT_REMOTE};
    if (!ask_has(x, OPT_OPERATORS))
        return true;
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (ask_has(x, others[i]))
            return ask_usage_error(x, "use only one of them",
                                   "--profile is for one package that runs here, and --%s is given",
                                   ask_option_name(others[i]));
    return true;
}
