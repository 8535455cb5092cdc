/* SPDX-License-Identifier: Apache-2.0 */
/* bench --profile as text, and as one JSON object: an operator a line. */
#include "profile.h"

#include "base/json_out.h"
#include "api/session.h"
#include "table.h"

/* Of what the workers that it has tasks for can do. */
static double share_of_peak(const profile *p, const run_operator *op, const profile_operator *o, bool *out_by_bytes)
{
    const double workers = op->tasks < p->n_workers ? (double)op->tasks : (double)p->n_workers;
    const double least = profile_least(&p->machine, op, out_by_bytes);
    return o->seconds > 0 && workers > 0 ? least / workers / o->seconds : 0;
}

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
        const double peak = share_of_peak(p, op, o, &by_bytes);
        table_add(&t, "%s", *op->source ? op->source : op->kind);
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

static void print_json(writer *w, const run_report *r, const profile *p)
{
    json_out j = json_out_begin(w, JSON_OUT_LINES);
    json_out_object(&j, NULL);
    json_out_uint(&j, "workers", p->n_workers);
    json_out_uint(&j, "rounds", p->n_rounds);
    json_out_real(&j, "ms", 1e3 * p->seconds);
    json_out_real(&j, "core_gflops", 1e-9 * p->machine.flops);
    json_out_array(&j, "core_reads");
    for (uint32_t i = 0; i < PROFILE_SIZES; i++) {
        json_out_object(&j, NULL);
        json_out_int(&j, "bytes", p->machine.reads[i].bytes);
        json_out_real(&j, "gb_per_s", 1e-9 * p->machine.reads[i].rate);
        json_out_end(&j);
    }
    json_out_end(&j);
    json_out_array(&j, "operators");
    for (uint32_t i = 0; i < p->n_operators; i++) {
        const run_operator *op = &r->operators[i];
        const profile_operator *o = &p->operators[i];
        bool by_bytes;
        const double peak = share_of_peak(p, op, o, &by_bytes);
        json_out_object(&j, NULL);
        json_out_text(&j, "source", op->source);
        json_out_text(&j, "kernel", op->kernel);
        json_out_text(&j, "kind", op->kind);
        json_out_real(&j, "ms", 1e3 * o->seconds);
        json_out_array(&j, "worker_ms");
        for (uint32_t k = 0; k < p->n_workers; k++)
            json_out_real(&j, NULL, 1e3 * o->workers[k]);
        json_out_end(&j);
        json_out_int(&j, "macs", op->macs);
        json_out_int(&j, "bytes", op->bytes);
        json_out_real(&j, "share_of_peak", peak);
        json_out_text(&j, "bound", by_bytes ? "bytes" : "sums");
        json_out_text(&j, "schedule", op->on ? op->on : op->schedule ? op->schedule : "rule");
        json_out_end(&j);
    }
    json_out_end(&j);
    json_out_end(&j);
    w_str(w, "\n");
}

bool bench_profile(session *s, long rounds)
{
    profile p;
    const run_report *r = s->model.report;
    if (!profile_take(s->x->c, &s->model, rounds > 0 ? (uint32_t)rounds : 10, &p))
        return false;
    if (ask_has(s->x, OPT_JSON))
        print_json(&s->x->out, r, &p);
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
            return ask_usage_error(x, "leave one of them out", "--profile tells of one package that runs here, and "
                                   "--%s is given", ask_option_name(others[i]));
    return true;
}
