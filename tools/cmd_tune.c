/* SPDX-License-Identifier: Apache-2.0 */
/* lathe tune: for each kernel of a model, schedules that were measured; lathe measure: the side that measures. */
#include "base/clock.h"
#include "base/file.h"
#include "cli.h"
#include "driver/computation.h"
#include "driver/measure.h"
#include "driver/tune_log.h"
#include "te/from_graph.h"
#include "tune/space.h"
#include "type/target.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { LINE = 1 << 16, LEAST_MACS = 1 };

typedef struct tuning {
    cli *x;
    const char *file;    /* of the records */
    writer log;          /* what it holds, as it is and as it becomes */
    te_records *records; /* those that it held */
    long shard, shards, most, limit; /* limit: seconds of a kernel */
    double deadline; /* 0: none */
    process_words command;
    process measuring;
    const char *dir; /* for its temporary files */
    bool runs;       /* measuring */
    uint32_t tuned, found, failed;
    double rule_seconds, seconds; /* of those that were tuned */
} tuning;

/* --- the other side --- */

/* --measure COMMAND, or this program. */
static bool find_command(tuning *t)
{
    compiler *c = t->x->c;
    char self[4096];
    const char *given = cli_get(t->x, OPT_MEASURE, NULL);
    ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
    if (given) {
        process_add_words(c, &t->command, given);
    } else if (n > 0) {
        self[n] = '\0';
        vec_push(&c->mem, &t->command, arena_strdup(&c->mem, self));
        vec_push(&c->mem, &t->command, "measure");
    }
    if (t->command.len == 0)
        return cli_usage_error(t->x, "as in --measure 'ssh board lathe measure'", "--measure: no command");
    vec_push(&c->mem, &t->command, NULL);
    return true;
}

static bool ask(tuning *t, const artifact *a, char *line)
{
    if (!t->dir)
        t->dir = process_temp_dir(t->x->c);
    if (!t->runs)
        t->runs = t->dir && process_start(t->x->c, t->command.data, t->dir, &t->measuring);
    if (t->runs && measure_send(&t->measuring, a, (uint32_t)t->limit) && process_hear(&t->measuring, line, LINE))
        return true;
    if (t->runs)
        (void)process_end(&t->measuring);
    t->runs = false;
    return false;
}

/* --- a kernel --- */

/* Times of the candidates, in a context of its own: their loops go when it ends. */
static bool measure(tuning *t, const tune_space *s, const struct target *runs, uint32_t *in_package,
                    measure_answer *out)
{
    compiler *c = t->x->c, own;
    const char **schedules = arena_array(&c->mem, const char *, s->candidates.len);
    char *line = arena_alloc(&c->mem, LINE, 1);
    artifact a = {0};
    for (uint32_t i = 0; i < s->candidates.len; i++)
        schedules[i] = s->candidates.data[i].schedule;
    compiler_setup_under(&own, &c->mem);
    bool made = measure_package(&own, s->computation, schedules, s->candidates.len, runs, in_package, &a);
    bool answered = made && ask(t, &a, line);
    const char *why = made ? "the measuring side ended, or took too long"
                           : own.diags.first ? arena_strdup(&c->mem, own.diags.first->text) : "";
    compiler_free(&own);
    *out = (measure_answer){.failed = why};
    return !answered || measure_read(c, line, out);
}

static bool keep(tuning *t, const tune_record *r)
{
    tune_log_line(&t->log, r);
    return compiler_write_file(t->x->c, t->file, t->log.data, t->log.len);
}

static bool tune(tuning *t, const prog_kernel *k)
{
    compiler *c = t->x->c;
    tune_space s;
    measure_answer a;
    if (!tune_space_of(c, k, (uint32_t)t->most, &s))
        return false;
    uint32_t *at = arena_array(&c->mem, uint32_t, s.candidates.len), best = 0, right = 0;
    if (!measure(t, &s, k->target, at, &a))
        return false;
    if (a.failed || a.n <= at[0] || a.seconds[at[0]] <= 0) {
        t->failed++;
        printf("%s: not measured: %s\n", k->name,
               a.failed ? a.failed : "the rule's own schedule came back without a time");
        (void)fflush(stdout); /* a kernel takes seconds: what is known is said at once */
        return true;
    }
    for (uint32_t i = 0; i < s.candidates.len; i++) {
        const double seconds = at[i] > 0 && at[i] < a.n ? a.seconds[at[i]] : -1;
        right += seconds >= 0;
        best = seconds > 0 && (a.seconds[at[best]] <= 0 || seconds < a.seconds[at[best]]) ? i : best;
    }
    const tune_record r = {.kernel = k->name,
                           .target = k->target->name,
                           .built_by = a.compiler,
                           .threads = 1,
                           .measured = right,
                           .seconds = a.seconds[at[best]],
                           .rule_seconds = a.seconds[at[0]],
                           .computation = s.computation,
                           .schedule = s.candidates.data[best].schedule};
    t->tuned++;
    t->seconds += r.seconds;
    t->rule_seconds += r.rule_seconds;
    printf("%s: %.4g ms by rule, %.4g ms tuned, %u of %u candidates right\n", k->name, 1e3 * r.rule_seconds,
           1e3 * r.seconds, right, s.candidates.len);
    (void)fflush(stdout);
    return keep(t, &r);
}

/* --- all of them --- */

/* What no schedule steers, and what a run decides, stays. */
static bool is_tunable(const prog_kernel *k)
{
    return !k->by_target && (k->func || k->node) && k->loops && k->loops->n_symbols == 0 &&
           k->loops->macs >= LEAST_MACS;
}

/* Whether the file has it not yet. */
static bool is_due(tuning *t, const prog_kernel *k, bool *out)
{
    te_sched *s = NULL;
    if (!te_schedule_graph(t->x->c, k->func, k->node, k->target, t->records, &s))
        return false;
    *out = !s->origin;
    t->found += s->origin != NULL;
    return true;
}

static bool tune_all(tuning *t, const prog_module *m)
{
    long number = 0;
    for (uint32_t i = 0; i < m->kernels.len; i++) {
        const prog_kernel *k = m->kernels.data[i];
        bool due;
        if (t->deadline > 0 && clock_now() > t->deadline)
            return diag_warning(&t->x->c->diags, DIAG_USAGE, src_loc_none(),
                                "--budget is spent; the same command goes on from here"), true;
        compiler_progress(t->x->c, "tuning", i + 1, m->kernels.len);
        if (!is_tunable(k) || number++ % t->shards != t->shard)
            continue;
        if (!is_due(t, k, &due) || (due && !tune(t, k)))
            return false;
    }
    return true;
}

/* "2/8": the second of eight parts. */
static bool read_shard(tuning *t)
{
    const char *s = cli_get(t->x, OPT_SHARD, "1/1");
    char *end, *last;
    t->shard = strtol(s, &end, 10) - 1;
    t->shards = *end == '/' ? strtol(end + 1, &last, 10) : 0;
    return (t->shards > 0 && *last == '\0' && t->shard >= 0 && t->shard < t->shards) ||
           cli_usage_error(t->x, "as in --shard 2/8: the second of eight parts", "--shard: '%.100s' is no part", s);
}

/* What the file holds goes on being in it: it is no input that must stay as it is. */
static bool read_file(tuning *t)
{
    span bytes;
    file_id id;
    writer_init(&t->log, &t->x->c->mem);
    if (access(t->file, F_OK) != 0)
        return true;
    if (!file_read(&t->x->c->diags, t->file, &bytes, &id))
        return false;
    const bool ours = bytes.len == 0 || tune_log_is(bytes);
    const char *text = arena_strndup(&t->x->c->mem, (const char *)bytes.data, ours ? bytes.len : 0);
    file_free(bytes);
    if (!ours)
        return cli_usage_error(t->x, "name a file that is not there, or one of the tuner's",
                               "'%.200s' holds no records of the tuner's, and is not replaced", t->file);
    w_str(&t->log, text);
    if (*text && text[strlen(text) - 1] != '\n')
        w_str(&t->log, "\n"); /* the next record has a line of its own */
    return tune_log_read(t->x->c, t->file, (span){(const uint8_t *)text, strlen(text)}, t->records);
}

bool cmd_tune(cli *x)
{
    tuning t = {.x = x, .file = cli_get(x, OPT_OUT, NULL), .records = arena_new(&x->c->mem, te_records)};
    compile_options o;
    compile_result r;
    long budget;
    const char *model = cli_model(x);
    if (!model || !cli_compile_options(x, true, &o))
        return false;
    if (!t.file || strcmp(t.file, "-") == 0)
        return cli_usage_error(x, "as in: lathe tune model.onnx -o tuned.schedules",
                               "no file for the records is given");
    if (!cli_is_file(x, OPT_OUT) || !read_shard(&t) || !cli_number(x, OPT_BUDGET, 1, 1L << 30, 0, &budget) ||
        !cli_number(x, OPT_CANDIDATES, 1, 1000, 24, &t.most) || !cli_number(x, OPT_LIMIT, 1, 36000, 120, &t.limit) ||
        !find_command(&t) || !read_file(&t))
        return false;
    t.deadline = budget > 0 ? clock_now() + (double)budget : 0;
    o.emit = "schedule";
    bool ok = pipeline_compile(x->c, model, &o, &r) && tune_all(&t, r.prog);
    if (t.runs)
        (void)process_end(&t.measuring);
    if (t.dir)
        compiler_remove_temp_dir(x->c, t.dir);
    if (!ok)
        return false;
    w_fmt(&x->out, "tuned %u kernels, %u were in the file already, %u could not be measured", t.tuned, t.found,
          t.failed);
    if (t.tuned > 0)
        w_fmt(&x->out, "; %.4g ms by rule, %.4g ms tuned", 1e3 * t.rule_seconds, 1e3 * t.seconds);
    w_str(&x->out, "\n");
    return true;
}

bool cmd_measure(cli *x)
{
    return (x->args.len == 0 || cli_usage_error(x, NULL, "it takes no arguments: packages come from standard input")) &&
           measure_serve(x->c);
}
