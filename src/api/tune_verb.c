/* SPDX-License-Identifier: Apache-2.0 */
/* lathe tune: its options, the machine that measures, the file of records, which a later call continues, and the
 * summary. */
#include "api/remote.h"
#include "api/tune.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/json_out.h"
#include "driver/board.h"
#include "type/target.h"

/* --measure COMMAND, or the program lathe. */
static bool find_command(tuning *t)
{
    compiler *c = t->x->c;
    const char *given = ask_get(t->x, OPT_MEASURE, NULL);
    if (given) {
        process_add_words(c, &t->command, given);
    } else {
        vec_push(&c->mem, &t->command, t->x->program ? t->x->program : "lathe");
        vec_push(&c->mem, &t->command, "measure");
    }
    if (t->command.len == 0)
        return ask_usage_error(t->x, "for example --measure 'ssh board lathe measure'", "--measure: no command");
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
        return ask_usage_error(t->x, "use only one of them",
                               "--measure and --remote both choose the machine that measures");
    if (!ask_has(t->x, OPT_TARGET))
        return ask_usage_error(t->x, "for example --target x86-64-v3",
                               "--remote needs --target, the processor of the machine that measures");
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
           ask_usage_error(t->x, "for example --shard 2/8: the second of eight parts",
                           "--shard: '%.100s' is not a part", s);
}

static bool cut_off(tuning *t, size_t whole)
{
    if (truncate(t->file, (off_t)whole) != 0)
        return diag_error(&t->x->c->diags, DIAG_ENVIRONMENT, src_loc_none(), "'%s' cannot be made shorter: %s", t->file,
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
        return ask_usage_error(t->x, "give a file that does not exist, or one that lathe tune has written",
                               "'%.200s' is not a file of lathe tune, so it is not overwritten", t->file);
    if (whole < len)
        return cut_off(t, whole);
    return ends || file_append(&t->x->c->diags, t->file, "\n", 1);
}

/* Microcontrollers do not run the compiler, and their emulators count instructions but have no times. */
static bool runs_lathe(const tuning *t)
{
    const struct target *to = t->options.target;
    const board *b = to && to->small ? board_of_target(to->name) : NULL;
    if (!to || !to->small)
        return true;
    return ask_usage_error(t->x,
                           arena_printf(&t->x->c->mem,
                                        "by hand: lathe schedule prints the schedules as text, and %s shows what a "
                                        "change gains",
                                        b ? arena_printf(&t->x->c->mem, "lathe verify --target %s --schedules FILE",
                                                         b->name)
                                          : "lathe compile --schedules FILE, on the board,"),
                           "lathe tune measures where lathe runs, and the target %s cannot run it", to->name);
}

bool tune_verb(ask *x, tuning *t)
{
    *t = (tuning){.x = x, .file = ask_get(x, OPT_OUT, NULL), .built_by = ""};
    long budget;
    ptr_map_init(&t->tried, &x->c->mem);
    t->model = ask_model(x);
    if (!t->model || !ask_compile_options(x, true, &t->options) || !runs_lathe(t))
        return false;
    if (!t->file || strcmp(t->file, "-") == 0)
        return ask_usage_error(x, "for example: lathe tune model.onnx -o tuned.schedules",
                               "no file for the schedules is given");
    if (!ask_is_file(x, OPT_OUT) || !read_shard(t) || !ask_number(x, OPT_BUDGET, 1, 1L << 30, 0, &budget) ||
        !ask_number(x, OPT_CANDIDATES, 1, 1000, 24, &t->most) || !ask_number(x, OPT_LIMIT, 1, 36000, 120, &t->limit) ||
        !read_remote(t) || !find_command(t) || !read_file(t))
        return false;
    t->deadline = budget > 0 ? clock_now() + (double)budget : 0;
    bool ok = tune_network(t);
    if (t->runs)
        (void)process_end(&t->measuring);
    if (t->dir)
        compiler_remove_temp_dir(x->c, t->dir);
    return ok;
}

void tune_verb_write_json(const tuning *t, writer *w)
{
    json_out j = json_out_begin(w, JSON_OUT_LINES);
    json_out_object(&j, NULL);
    json_out_uint(&j, "tuned", t->tuned);
    json_out_uint(&j, "found", t->found);
    json_out_uint(&j, "failed", t->failed);
    json_out_real(&j, "kernels_by_rule_seconds", t->rule_seconds);
    json_out_real(&j, "kernels_tuned_seconds", t->seconds);
    if (t->network_rule_seconds > 0) {
        json_out_real(&j, "network_by_rule_seconds", t->network_rule_seconds);
        json_out_real(&j, "network_tuned_seconds", t->network_seconds);
        json_out_uint(&j, "forms_changed", t->changed);
    }
    json_out_end(&j);
    w_str(w, "\n");
}
