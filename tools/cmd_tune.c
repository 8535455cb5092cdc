/* SPDX-License-Identifier: Apache-2.0 */
/* lathe tune: for each kernel of a model, schedules that were measured; lathe measure: the side that measures. */
#include "api/remote.h"
#include "tune.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"

/* --measure COMMAND, or this program. */
static bool find_command(tuning *t)
{
    compiler *c = t->x->c;
    char self[4096];
    const char *given = ask_get(t->x, OPT_MEASURE, NULL);
    ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
    if (given) {
        process_add_words(c, &t->command, given);
    } else if (n > 0) {
        self[n] = '\0';
        vec_push(&c->mem, &t->command, arena_strdup(&c->mem, self));
        vec_push(&c->mem, &t->command, "measure");
    }
    if (t->command.len == 0)
        return ask_usage_error(t->x, "as in --measure 'ssh board lathe measure'", "--measure: no command");
    vec_push(&c->mem, &t->command, NULL);
    return true;
}

/* --remote, --tracker: a server measures, which names the machine's vectors where --target does not. */
static bool read_remote(tuning *t)
{
    run_remote_options *o = arena_new(&t->x->c->mem, run_remote_options);
    if (!remote_asked(t->x))
        return true;
    if (ask_has(t->x, OPT_MEASURE))
        return ask_usage_error(t->x, "leave one of them out", "--measure and --remote both say who measures");
    if (!ask_has(t->x, OPT_TARGET))
        return ask_usage_error(t->x, "as in --target x86-64-v3",
                               "--remote: say --target, the processor of the machine that measures");
    t->remote = o;
    return remote_options(t->x, o);
}

/* "2/8": the second of eight parts. */
static bool read_shard(tuning *t)
{
    const char *s = ask_get(t->x, OPT_SHARD, "1/1");
    char *end, *last;
    t->shard = strtol(s, &end, 10) - 1;
    t->shards = *end == '/' ? strtol(end + 1, &last, 10) : 0;
    return (t->shards > 0 && *last == '\0' && t->shard >= 0 && t->shard < t->shards) ||
           ask_usage_error(t->x, "as in --shard 2/8: the second of eight parts", "--shard: '%.100s' is no part", s);
}

static bool cut_off(tuning *t, size_t whole)
{
    if (truncate(t->file, (off_t)whole) != 0)
        return diag_error(&t->x->c->diags, DIAG_ENVIRONMENT, src_loc_none(), "'%s' cannot be cut: %s", t->file,
                          strerror(errno));
    return diag_warning(&t->x->c->diags, DIAG_FORMAT, src_loc_none(),
                        "the last record of '%s' was not written to its end, and is dropped", t->file),
           true;
}

/* What the file holds goes on being in it; the next record has a line of its own. */
static bool read_file(tuning *t)
{
    span bytes;
    file_id id;
    t->is_there = false;
    if (access(t->file, F_OK) != 0)
        return true;
    if (!file_read(&t->x->c->diags, t->file, &bytes, &id))
        return false;
    const bool ours = bytes.len == 0 || tune_log_is(bytes);
    const size_t len = bytes.len, whole = ours ? tune_log_whole(bytes) : 0;
    const bool ends = whole < len || len == 0 || bytes.data[len - 1] == '\n';
    t->is_there = whole > 0;
    t->records = tune_log_count((span){bytes.data, whole});
    file_free(bytes);
    if (!ours)
        return ask_usage_error(t->x, "name a file that is not there, or one of the tuner's",
                               "'%.200s' holds no records of the tuner's, and is not replaced", t->file);
    if (whole < len)
        return cut_off(t, whole);
    return ends || file_append(&t->x->c->diags, t->file, "\n", 1);
}

/* Faster kernels make no faster network where they leave less in caches for others. */
static const char *gain_of(const tuning *t)
{
    return t->network_seconds < 0                         ? " (other numbers)"
           : t->network_seconds >= t->network_rule_seconds ? " (no gain: the rules are as good)"
                                                           : "";
}

bool cmd_tune(ask *x)
{
    tuning t = {.x = x, .file = ask_get(x, OPT_OUT, NULL), .built_by = ""};
    long budget;
    ptr_map_init(&t.tried, &x->c->mem);
    t.model = ask_model(x);
    if (!t.model || !ask_compile_options(x, true, &t.options))
        return false;
    if (!t.file || strcmp(t.file, "-") == 0)
        return ask_usage_error(x, "as in: lathe tune model.onnx -o tuned.schedules",
                               "no file for the records is given");
    if (!ask_is_file(x, OPT_OUT) || !read_shard(&t) || !ask_number(x, OPT_BUDGET, 1, 1L << 30, 0, &budget) ||
        !ask_number(x, OPT_CANDIDATES, 1, 1000, 24, &t.most) || !ask_number(x, OPT_LIMIT, 1, 36000, 120, &t.limit) ||
        !read_remote(&t) || !find_command(&t) || !read_file(&t))
        return false;
    t.deadline = budget > 0 ? clock_now() + (double)budget : 0;
    bool ok = tune_network(&t);
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
    if (t.network_rule_seconds > 0)
        w_fmt(&x->out, "network: %.4g ms by rule, %.4g ms tuned%s, %u form%s changed\n", 1e3 * t.network_rule_seconds,
              1e3 * t.network_seconds, gain_of(&t), t.changed, t.changed == 1 ? "" : "s");
    return true;
}

bool cmd_measure(ask *x)
{
    return (x->args.len == 0 || ask_usage_error(x, NULL, "it takes no arguments: packages come from standard input")) &&
           measure_serve(x->c);
}
