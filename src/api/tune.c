/* SPDX-License-Identifier: Apache-2.0 */
/* lathe tune, kernel by kernel: the space of each, the side that measures it, and the record that is kept. */
#include "api/tune.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/file.h"
#include "te/from_graph.h"
#include "te/text.h"
#include "tune/space.h"
#include "type/target.h"

enum { LEAST_MACS = 1, MARGIN = 10 /* seconds that an answer may take beyond the limit */ };

/* --- the other side --- */

static bool send(tuning *t, const artifact *a, const artifact *b)
{
    const uint32_t limit = (uint32_t)t->limit;
    return b ? measure_send_networks(&t->measuring, a, b, limit) : measure_send(&t->measuring, a, limit);
}

/* A program that is not there is an error; one that ended, or hangs, has no times for this one and is started again. */
static bool stop(tuning *t, compiler *c, measure_answer *out)
{
    const bool started = t->runs, late = errno == EAGAIN;
    const int status = started ? process_stop(&t->measuring) : 0;
    t->runs = false;
    *out = (measure_answer){.failed = "the measuring program took too long"};
    if (!late)
        out->failed = status == PROCESS_SIGNAL ? "a signal ended the measuring program, perhaps because of --limit"
                                               : arena_printf(&c->mem,
                                                       "the measuring program ended with status %d, without an answer",
                                                       status);
    if (late || !started || status != PROCESS_NOT_FOUND)
        return started;
    diag_error(&c->diags, DIAG_ENVIRONMENT, src_loc_none(), "--measure: there is no program '%.200s'",
               t->command.data[0]);
    diag_hint(&c->diags, "for example --measure 'ssh board lathe measure'");
    return false;
}

const char *tuning_dir(tuning *t)
{
    if (!t->dir)
        t->dir = process_temp_dir(t->x->c);
    return t->dir;
}

/* What was measured in a context that ends. */
static void take_answer(compiler *c, const measure_answer *a, measure_answer *out)
{
    *out = *a;
    out->compiler = a->compiler ? arena_strdup(&c->mem, a->compiler) : NULL;
    out->seconds = arena_array(&c->mem, double, a->n + 1u);
    memcpy(out->seconds, a->seconds, a->n * sizeof *a->seconds);
}

static bool ask_remote(tuning *t, const artifact *a, const artifact *b, measure_answer *out)
{
    compiler own;
    measure_answer there;
    const measure_remote r = {t->remote, tuning_dir(t)};
    compiler_setup_under(&own, &t->x->c->mem);
    const bool ok = r.dir && measure_remote_networks(&own, &r, a, b, &there);
    if (ok)
        take_answer(t->x->c, &there, out);
    else if (r.dir)
        (void)diags_pass_on(&t->x->c->diags, &own.diags); /* what is measured is in the file */
    compiler_free(&own);
    t->built_by = ok ? out->compiler : t->built_by;
    return ok;
}

bool tuning_ask(tuning *t, compiler *c, const artifact *a, const artifact *b, measure_answer *out)
{
    compiler *own = t->x->c; /* what runs outlives c */
    char *line = arena_alloc(&c->mem, TUNING_LINE, 1);
    if (t->remote)
        return ask_remote(t, a, b, out);
    if (tuning_dir(t) && !t->runs && (t->runs = process_start(own, t->command.data, t->dir, &t->measuring)))
        process_limit(&t->measuring, (uint32_t)t->limit + MARGIN);
    errno = 0; /* what was before tells nothing of a limit */
    if (!t->runs || !send(t, a, b) || !process_hear(&t->measuring, line, TUNING_LINE))
        return stop(t, own, out);
    if (!measure_read(own, line, out))
        return false;
    t->built_by = out->compiler ? out->compiler : t->built_by;
    return true;
}

/* --- a kernel --- */

static bool measure_there(tuning *t, compiler *own, const tune_space *s, const char *const *schedules,
                          const struct target *runs, uint32_t *in_answer, measure_answer *out)
{
    measure_answer there;
    const measure_remote r = {t->remote, tuning_dir(t)};
    if (!r.dir)
        return false;
    if (!measure_remote_kernel(own, &r, s->computation, schedules, s->candidates.len, runs, in_answer, &there))
        return diags_pass_on(&t->x->c->diags, &own->diags);
    take_answer(t->x->c, &there, out);
    return true;
}

/* Times of the candidates, in a context of its own: their loops go when it ends. */
static bool measure(tuning *t, compiler *c, const tune_space *s, const struct target *runs, uint32_t *in_package,
                    measure_answer *out)
{
    compiler own;
    const char **schedules = arena_array(&c->mem, const char *, s->candidates.len);
    artifact a = {0};
    bool ok = true;
    for (uint32_t i = 0; i < s->candidates.len; i++)
        schedules[i] = s->candidates.data[i].schedule;
    compiler_setup_under(&own, &c->mem);
    if (t->remote)
        ok = measure_there(t, &own, s, schedules, runs, in_package, out);
    else if (measure_package(&own, s->computation, schedules, s->candidates.len, runs, in_package, &a))
        ok = tuning_ask(t, &own, &a, NULL, out);
    else
        *out = (measure_answer){.failed = arena_strdup(&c->mem, diags_first_error(&own.diags))};
    compiler_free(&own);
    return ok;
}

bool tuning_keep(tuning *t, const writer *line)
{
    t->is_there = true;
    return file_append(&t->x->c->diags, t->file, line->data, line->len);
}

static te_record_text text_of(const tuning *t, const char *text)
{
    return (te_record_text){t->file, text, strlen(text)};
}

/* Into the file, and among the records that this compile has: other kernels may compute the same. */
static bool keep(tuning *t, compiler *c, te_records *records, const tune_record *r)
{
    writer line;
    writer_init(&line, &c->mem);
    tune_log_line(&line, r);
    return tuning_keep(t, &line) && te_records_add(c, records, text_of(t, r->computation), text_of(t, r->schedule),
                                                   r->target, r->seconds);
}

/* How many candidates were compiled, and of these came back with the right result. */
typedef struct {
    uint32_t built, right;
} tally;

/* The right one that took the least time. */
static uint32_t best_of(const measure_answer *a, const uint32_t *at, uint32_t n, tally *out)
{
    uint32_t best = 0;
    *out = (tally){0};
    for (uint32_t i = 0; i < n; i++) {
        const double seconds = at[i] > 0 && at[i] < a->n ? a->seconds[at[i]] : -1;
        out->built += at[i] > 0;
        out->right += seconds >= 0;
        best = seconds > 0 && seconds < a->seconds[at[best]] ? i : best;
    }
    return best;
}

/* A wrong result is a fault of the compiler, and never passed over in silence. */
static void show_kernel(ask *x, const tune_record *r, const tally *n, uint32_t candidates)
{
    w_fmt(&x->out, "%s: %.4g ms by rule, %.4g ms tuned, %u candidate%s", r->kernel, 1e3 * r->rule_seconds,
          1e3 * r->seconds, n->right, n->right == 1 ? "" : "s");
    if (n->built < candidates)
        w_fmt(&x->out, ", %u left out (a factor that does not fit, or loops without vectors)", candidates - n->built);
    if (n->right < n->built)
        w_fmt(&x->out, ", %u WRONG", n->built - n->right);
    w_str(&x->out, "\n");
    ask_flush(x);
}

static bool tune(tuning *t, compiler *c, te_records *records, const prog_kernel *k)
{
    tune_space s;
    measure_answer a;
    tally n;
    if (!tune_space_of(c, k, (uint32_t)t->most, &s))
        return false;
    uint32_t *at = arena_array(&c->mem, uint32_t, s.candidates.len);
    tuning_add(t, &t->tried, s.computation);
    if (!measure(t, c, &s, k->target, at, &a))
        return false;
    if (a.failed || a.n <= at[0] || a.seconds[at[0]] <= 0) {
        t->failed++;
        w_fmt(&t->x->out, "%s: not measured: %s\n", k->name,
              a.failed ? a.failed : "the schedule of the rule was not measured");
        ask_flush(t->x);
        return true;
    }
    const uint32_t best = best_of(&a, at, s.candidates.len, &n);
    const tune_record r = {.kernel = k->name,
                           .target = k->target->name,
                           .built_by = a.compiler,
                           .threads = 1,
                           .measured = n.right,
                           .seconds = a.seconds[at[best]],
                           .rule_seconds = a.seconds[at[0]],
                           .computation = s.computation,
                           .schedule = s.candidates.data[best].schedule};
    t->tuned++;
    t->seconds += r.seconds;
    t->rule_seconds += r.rule_seconds;
    show_kernel(t->x, &r, &n, s.candidates.len);
    return keep(t, c, records, &r);
}

/* --- all of them --- */

/* What no schedule steers, and what a run decides, stays. */
static bool is_tunable(const prog_kernel *k)
{
    return !k->by_target && (k->func || k->node) && k->loops && k->loops->n_symbols == 0 &&
           k->loops->macs >= LEAST_MACS;
}

bool tuning_has(const tuning *t, const ptr_map *texts, const char *text)
{
    uint32_t any;
    return ptr_map_get(texts, intern(t->x->c->names, text), &any);
}

void tuning_add(tuning *t, ptr_map *texts, const char *text)
{
    ptr_map_set(texts, intern(t->x->c->names, text), 0);
}

/* The computation where the file has it not yet, and this call did not try it, else NULL; false after a diagnostic. */
static bool find_due(const tuning *t, compiler *c, te_records *records, const prog_kernel *k, const char **out)
{
    te_sched *s = NULL;
    *out = NULL;
    if (!te_schedule_graph(c, k->func, k->node, k->target, records, &s))
        return false;
    if (s->origin)
        return true;
    writer w;
    writer_init(&w, &c->mem);
    te_print(&w, s->g);
    *out = tuning_has(t, &t->tried, w.data) ? NULL : w.data;
    return true;
}

bool tuning_is_over(tuning *t)
{
    if (t->deadline <= 0 || clock_now() <= t->deadline)
        return false;
    if (!t->over)
        diag_warning(&t->x->c->diags, DIAG_USAGE, src_loc_none(),
                     "--budget is used up; run the same command again to continue");
    return t->over = true;
}

typedef VEC(const prog_kernel *) kernel_list;

/* The tunable ones of this call's part. */
static kernel_list kernels_of(const tuning *t, compiler *c, const prog_module *m)
{
    kernel_list out = {0};
    long number = 0;
    for (uint32_t i = 0; i < m->kernels.len; i++)
        if (is_tunable(m->kernels.data[i]) && number++ % t->shards == t->shard)
            vec_push(&c->mem, &out, m->kernels.data[i]);
    return out;
}

/* Points of choice that no record is of. */
static bool forms_left(const graph_choices *all)
{
    bool left = false;
    for (uint32_t i = 0; i < all->points.len; i++)
        left |= !all->points.data[i].recorded && all->points.data[i].n_forms > 1;
    return left;
}

/* What the file gives is counted before anything is measured; a call that goes on where another stopped says so. */
static bool count_found(tuning *t, compiler *c, const compile_result *r, const kernel_list *kernels)
{
    ptr_map left;
    ptr_map_init(&left, &c->mem);
    t->counted = true;
    for (uint32_t i = 0; i < kernels->len; i++) {
        const char *due;
        if (!find_due(t, c, r->records, kernels->data[i], &due))
            return false;
        t->found += !due;
        if (due)
            tuning_add(t, &left, due);
    }
    if (t->records > 0)
        w_fmt(&t->x->out, "continuing %s: %u record%s found, %u kernel%s left%s\n", t->file, t->records,
              t->records == 1 ? "" : "s", left.len, left.len == 1 ? "" : "s",
              t->shards == 1 && forms_left(&r->records->forms)
                  ? "; after that, other forms are tried, with their kernels"
                  : "");
    ask_flush(t->x);
    return true;
}

bool tuning_kernels(tuning *t, compiler *c, const compile_result *r)
{
    const kernel_list kernels = kernels_of(t, c, r->prog);
    if (!t->counted && !count_found(t, c, r, &kernels))
        return false;
    for (uint32_t i = 0; i < kernels.len; i++) {
        const char *due;
        if (tuning_is_over(t))
            return true;
        if (!compiler_progress(t->x->c, "tuning", i + 1, kernels.len))
            return false;
        if (!find_due(t, c, r->records, kernels.data[i], &due) ||
            (due && !tune(t, c, r->records, kernels.data[i])))
            return false;
    }
    return true;
}

bool tuning_compile(const tuning *t, compiler *c, compile_emit emit, bool by_rule, const char *trial,
                    compile_result *r)
{
    compile_options o = t->options;
    const char **files = arena_array(&c->mem, const char *, o.n_schedules + 2u);
    if (o.n_schedules > 0)
        memcpy(files, o.schedules, o.n_schedules * sizeof *files);
    if (t->is_there && !by_rule)
        files[o.n_schedules++] = t->file;
    if (trial)
        files[o.n_schedules++] = trial;
    o.schedules = files;
    compile_set_emit(&o, emit);
    return pipeline_compile(c, t->model, &o, r);
}
