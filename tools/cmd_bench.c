/* SPDX-License-Identifier: Apache-2.0 */
/* lathe bench: median, tenth percentile and minimum of the time of a run; in turns with another runtime when asked to,
 * or, where targets of --offload take parts of the model, with the same model without them. */
#include "profile.h"
#include "cli.h"
#include "api/session.h"

#include "base/clock.h"
#include "base/file.h"
#include "base/json_out.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { MOST_ROUNDS = 10000, LEAST_ROUNDS = 10 };
#define TURN 0.25 /* seconds */
#define MOST_GAP 10000 /* milliseconds */

typedef struct series {
    double *seconds;
    long n;
} series;

/* Between two rounds in proportion, so that few rounds have a tenth percentile as well. */
static double at(const series *s, double share)
{
    const double place = share * (double)(s->n - 1);
    const long below = (long)place;
    const double low = s->seconds[below], high = s->seconds[below + 1 < s->n ? below + 1 : below];
    return low + (place - (double)below) * (high - low);
}

/* To the nanosecond. */
static double milliseconds(double seconds)
{
    return round(1e9 * seconds) / 1e6;
}

/* " at seq=8, past=3": the extents of the runs. */
static const char *extents_text(ask *x, const run_model *m)
{
    const char *all = "";
    for (uint32_t i = 0; i < m->n_extents; i++)
        all = arena_printf(&x->c->mem, "%s%s%s=%lld", all, i ? ", " : " at ", cli_shown(x, m->extents[i].name),
                           (long long)m->extents[i].value);
    return all;
}

/* The members of a run's object. */
static void write_run(json_out *j, const run_model *m, const char *who, const char *options, const series *s)
{
    json_out_object(j, NULL);
    json_out_text(j, "who", who);
    json_out_real(j, "median_ms", milliseconds(at(s, 0.5)));
    json_out_real(j, "p10_ms", milliseconds(at(s, 0.1)));
    json_out_real(j, "min_ms", milliseconds(at(s, 0)));
    json_out_int(j, "rounds", s->n);
    if (options)
        json_out_text(j, "options", options);
    json_out_array(j, "extents");
    for (uint32_t i = 0; i < m->n_extents; i++) {
        json_out_object(j, NULL);
        json_out_text(j, "name", m->extents[i].name);
        json_out_int(j, "value", m->extents[i].value);
        json_out_end(j);
    }
    json_out_end(j);
    json_out_end(j);
}

/* options: that a runtime runs with, in words; NULL: nothing to tell. */
static void show(ask *x, json_out *j, const run_model *m, const char *who, const char *options, series *s)
{
    qsort(s->seconds, (size_t)s->n, sizeof *s->seconds, clock_rising);
    if (ask_has(x, OPT_JSON))
        write_run(j, m, who, options, s);
    else
        w_fmt(&x->out, "%-12s median %.4f ms, p10 %.4f ms, min %.4f ms (%ld rounds)%s%s%s\n", who, 1e3 * at(s, 0.5),
              1e3 * at(s, 0.1), 1e3 * at(s, 0), s->n, extents_text(x, m), options ? ", with " : "",
              options ? options : "");
}

/* Who runs in turns with us: one of these. */
typedef struct rival {
    process *process; /* another runtime */
    run_model *model; /* the same without --offload and --schedules */
} rival;

static void rest(double seconds)
{
    const struct timespec t = {(time_t)seconds, (long)(1e9 * (seconds - (double)(time_t)seconds))};
    (void)nanosleep(&t, NULL);
}

/* How long, and how often: `inner` calls in a row, or each behind `gap` seconds in which nothing runs, so that threads
 * sleep and the processor rests. */
typedef struct turn {
    long inner;
    double gap;
} turn;

static bool time_apart(session *s, run_model *m, const turn *t, double *out)
{
    double sum = 0;
    for (long i = 0; i < t->inner; i++) {
        rest(t->gap);
        const double start = clock_now();
        if (!run_call(s->x->c, m))
            return false;
        sum += clock_now() - start;
    }
    *out = sum / (double)t->inner;
    return true;
}

static bool time_model(session *s, run_model *m, const turn *t, double *out)
{
    const long inner = t->inner;
    if (!run_call(s->x->c, m))
        return false;
    if (t->gap > 0)
        return time_apart(s, m, t, out);
    if (s->model.time_module)
        return s->model.time_module(s->x->c, &s->model, inner, out);
    double start = clock_now();
    for (long i = 0; i < inner; i++)
        if (!run_call(s->x->c, m))
            return false;
    *out = (clock_now() - start) / (double)inner;
    return true;
}

static bool time_theirs(session *s, process *p, const turn *t, double *out)
{
    char line[64], *end;
    snprintf(line, sizeof line, "%ld %ld", t->inner, (long)(1e6 * t->gap));
    if (!process_say(p, line) || !process_hear(p, line, sizeof line))
        return diag_error(&s->x->c->diags, DIAG_ENVIRONMENT, src_loc_none(), "%s ended before it gave a time",
                          reference_title(s->x));
    *out = strtod(line, &end);
    return (end != line && *end == '\0' && *out > 0) ||
           diag_error(&s->x->c->diags, DIAG_ENVIRONMENT, src_loc_none(), "%s gave '%s' instead of a time",
                      reference_title(s->x), line);
}

/* Turns by rounds. A round is one call that is not timed, which brings caches, clock and threads back from the other
 * side's turn, and then calls for TURN seconds, of which the mean counts. */
static bool time_rival(session *s, const rival *r, const turn *t, double *out)
{
    return r->process ? time_theirs(s, r->process, t, out) : !r->model || time_model(s, r->model, t, out);
}

/* The calls that fill a turn, if one takes that many seconds. */
static long calls_of_turn(double once, double gap)
{
    return once + gap < TURN ? (long)(TURN / (once + gap + 1e-9)) + 1 : 1;
}

/* Each side fills its own turns: of a model that takes us a tenth of a microsecond, another runtime may need ten for
 * the call alone. */
static bool measure(session *s, long rounds, double gap, const rival *other_one, series *ours, series *theirs)
{
    double once, other = 0;
    turn t = {1, gap}, their_turn = t;
    if (!time_model(s, &s->model, &t, &once) || !time_model(s, &s->model, &t, &once) ||
        !time_rival(s, other_one, &their_turn, &other) || !time_rival(s, other_one, &their_turn, &other))
        return false;
    t.inner = calls_of_turn(once, gap);
    their_turn.inner = calls_of_turn(other, gap);
    double deadline = clock_now() + (other_one->process || other_one->model ? 4.0 : 2.0);
    for (long r = 0; r < MOST_ROUNDS && (rounds > 0 ? r < rounds : r < LEAST_ROUNDS || clock_now() < deadline); r++) {
        if (!compiler_progress(s->x->c, "running round", (uint32_t)r + 1, (uint32_t)rounds))
            return false;
        if (!time_model(s, &s->model, &t, &once) || !time_rival(s, other_one, &their_turn, &other))
            return false;
        ours->seconds[ours->n++] = once;
        theirs->seconds[theirs->n++] = other;
    }
    return true;
}

/* Where no line of progress is drawn, a log tells what takes its time. */
static void tell(const ask *x, const char *what)
{
    if (!x->c->progress)
        fprintf(stderr, "bench: %s\n", what);
}

/* The model again, without --offload and --schedules, built beside the first. */
static bool open_plain(session *s, long workers, run_model *out)
{
    compiler *c = s->x->c;
    compile_options o = s->options;
    compile_result r;
    const char *dir = path_join(&c->mem, s->scratch, "against"), *package = path_join(&c->mem, dir, "package");
    o.offload = NULL;
    o.n_schedules = 0;
    compile_set_emit(&o, EMIT_C);
    if (!pipeline_compile(c, s->path, &o, &r) || !file_make_dirs(&c->diags, dir) ||
        !artifact_write(c, &r.artifact, package, false) || !run_open_package(c, package, NULL, out))
        return false;
    memcpy(out->in, s->model.in, s->model.n_inputs * sizeof *out->in);
    return run_build(c, dir, workers, out);
}

static bool open_rival(session *s, long workers, rival *out, process *p)
{
    *out = (rival){0};
    if (!ask_has(s->x, OPT_AGAINST))
        return true;
    if (reference_title(s->x)) {
        tell(s->x, arena_printf(&s->x->c->mem, "starting %s", reference_title(s->x)));
        out->process = p;
        return reference_start(s, reference_is(s->x, REFERENCE_EXACT) ? "exact" : "bench", workers, p);
    }
    out->model = arena_new(&s->x->c->mem, run_model);
    return open_plain(s, workers, out->model);
}

static bool bench(session *s, long rounds, double gap, long workers)
{
    arena *a = &s->x->c->mem;
    series ours = {arena_array(a, double, MOST_ROUNDS), 0}, theirs = {arena_array(a, double, MOST_ROUNDS), 0};
    process p;
    rival r;
    bool against = ask_has(s->x, OPT_AGAINST);
    if (!open_rival(s, workers, &r, &p))
        return false;
    const char *first = r.model ? arena_printf(a, "lathe+%s", ask_get(s->x, OPT_OFFLOAD, "schedules")) : "lathe";
    const char *second = r.model ? "lathe" : ask_get(s->x, OPT_AGAINST, ""),
               *options = r.process ? reference_bench_options(s) : NULL;
    if (against)
        tell(s->x, rounds > 0 ? "running in turns" : "running in turns, 4 s or 10 rounds at least");
    bool ok = measure(s, rounds, gap, &r, &ours, &theirs);
    if (r.process)
        process_end(&p);
    if (!ok)
        return false;
    json_out j = json_out_begin(&s->x->out, JSON_OUT_LINE);
    if (ask_has(s->x, OPT_JSON)) {
        json_out_object(&j, NULL);
        json_out_array(&j, "runs");
    }
    show(s->x, &j, &s->model, first, NULL, &ours);
    if (against)
        show(s->x, &j, &s->model, second, options, &theirs);
    if (ask_has(s->x, OPT_JSON)) {
        json_out_end(&j);
        if (against)
            json_out_real(&j, "ratio", at(&theirs, 0.5) / at(&ours, 0.5));
        json_out_end(&j);
        w_str(&s->x->out, "\n");
    } else if (against) {
        w_fmt(&s->x->out, "ratio %.3f (%s / %s, medians)\n", at(&theirs, 0.5) / at(&ours, 0.5), second, first);
    }
    if (r.process && s->result.graph && !s->result.quantised && reference_is(s->x, REFERENCE_EXACT))
        diag_note(&s->x->c->diags, DIAG_DATA, src_loc_none(),
                  "the model quantizes nothing: onnxruntime-exact is the same as onnxruntime");
    return true;
}

/* What runs in turns can be had. */
static bool check_rival(const ask *x)
{
    if (reference_is(x, "tflm"))
        return ask_usage_error(x, "give --against litert, or count instructions: lathe verify MODEL --target qemu-m4 "
                               "--against tflm",
                               "--against tflm: TensorFlow Lite Micro's Python package has only its reference kernels, "
                               "and their time says nothing of a device");
    if (!reference_check(x))
        return false;
    if (!ask_has(x, OPT_AGAINST) || reference_title(x))
        return true;
    return ask_has(x, OPT_OFFLOAD) || ask_has(x, OPT_SCHEDULES) ||
           ask_usage_error(x, "for example --offload xnnpack --against lathe, or --schedules FILE --against lathe",
                           "--against lathe compares with the same model without --offload and --schedules");
}

/* Calls with pauses between them are timed one by one, here. */
static bool read_gap(const ask *x, double *out)
{
    static const ask_option others[] = {OPT_OPERATORS, OPT_REMOTE};
    long ms;
    for (size_t i = 0; ask_has(x, OPT_GAP) && i < sizeof others / sizeof *others; i++)
        if (ask_has(x, others[i]))
            return ask_usage_error(x, "use only one of them", "--gap and --%s cannot be combined: --gap times whole "
                                                              "calls on this machine", ask_option_name(others[i]));
    if (!ask_number(x, OPT_GAP, 1, MOST_GAP, 0, &ms))
        return false;
    *out = 1e-3 * (double)ms;
    return true;
}

/* Threads that wait for a processor, not for each other, make times that say little of the model. */
static void tell_shared_processors(const ask *x, long workers)
{
    const long processors = sysconf(_SC_NPROCESSORS_ONLN);
    if (processors > 0 && workers > processors)
        diag_warning(&x->c->diags, DIAG_ENVIRONMENT, src_loc_none(),
                     "%ld workers share %ld processor%s; --workers %ld gives each worker its own", workers, processors,
                     processors == 1 ? "" : "s", processors);
}

bool cmd_bench(ask *x)
{
    session s = {.x = x};
    long rounds, workers;
    double gap = 0;
    if (!check_rival(x) || !bench_check_profile(x) || !read_gap(x, &gap) ||
        !ask_number(x, OPT_REPEAT, 1, MOST_ROUNDS, 0, &rounds) || !ask_workers(x, &workers))
        return false;
    if (ask_has(x, OPT_AGAINST))
        tell(x, "compiling the model and building its package");
    bool ok = session_open(x, &s);
    if (ok && workers < 0)
        workers = s.result.unit.target ? (long)s.result.unit.target->workers : 1;
    if (ok)
        tell_shared_processors(x, workers);
    ok = ok && (ask_has(x, OPT_OPERATORS) ? bench_profile(&s, rounds)
                                            : bench(&s, rounds, gap, workers > 0 ? workers : 1));
    session_close(&s);
    return ok;
}
