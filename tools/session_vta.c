/* SPDX-License-Identifier: Apache-2.0 */
/* Computations on the accelerator (--target vta), and compared with other ways to run them. */
#include "cmd_vta.h"
#include "session.h"

#include "base/file.h"
#include "driver/computation.h"

#include <string.h>

/* --- options --- */

static bool check_without(const session *s)
{
    static const struct {
        cli_option option;
        const char *name;
    } only[] = {{OPT_CYCLE, "cycle"}, {OPT_TIMELINE, "timeline"}, {OPT_PROFILE, "profile"},
                {OPT_BUS_BITS, "bus-bits"}, {OPT_LATENCY, "latency"}};
    for (size_t i = 0; i < sizeof only / sizeof *only; i++)
        if (cli_has(s->x, only[i].option))
            return cli_usage_error(s->x,
                                   "add --target vta to a computation; 'lathe vta model' is for a model's regions",
                                   "--%s is for the accelerator", only[i].name);
    return true;
}

static bool check_with(const session *s)
{
    static const struct {
        cli_option option;
        const char *name, *why;
    } none[] = {{OPT_INTERPRET, "interpret", "the interpreter is another way to run it"},
                {OPT_EMULATOR, "emulator", "the accelerator is simulated here"},
                {OPT_EMIT, "emit", "nothing is compiled"},
                {OPT_KEEP, "keep", "no package is built"}};
    for (size_t i = 0; i < sizeof none / sizeof *none; i++)
        if (cli_has(s->x, none[i].option))
            return cli_usage_error(s->x, "leave one of them out", "--target vta and --%s: %s", none[i].name,
                                   none[i].why);
    return s->x->verb != VERB_BENCH ||
           cli_usage_error(s->x, "lathe run FILE --target vta --cycle says how many cycles it takes",
                           "bench --target vta: the time of a simulator says nothing of the accelerator");
}

bool session_check_vta(session *s)
{
    const char *timeline = cli_get(s->x, OPT_TIMELINE, NULL);
    if (!s->options.vta)
        return check_without(s);
    long seed;
    if (!cli_number(s->x, OPT_SEED, 0, 2147483647, 0, &seed))
        return false;
    s->device.sim.seed = (uint32_t)seed; /* the order of the stages, too: results do not depend on it */
    if (!cli_cycle_model(s->x, &s->device.model) || !check_with(s) || !cli_is_file(s->x, OPT_TIMELINE))
        return false;
    if (timeline && !strstr(timeline, ".svg") && !strstr(timeline, ".json"))
        return cli_usage_error(s->x, "as in --timeline timeline.svg",
                               "--timeline: '%.200s' ends in neither .svg nor .json", timeline);
    s->device.cycle = cli_has(s->x, OPT_CYCLE) || timeline;
    return s->device.cycle ||
           !(cli_has(s->x, OPT_PROFILE) || cli_has(s->x, OPT_BUS_BITS) || cli_has(s->x, OPT_LATENCY)) ||
           cli_usage_error(s->x, "add --cycle, or leave it out", "--%s is for the cycle model",
                           cli_has(s->x, OPT_PROFILE)    ? "profile"
                           : cli_has(s->x, OPT_BUS_BITS) ? "bus-bits"
                                                         : "latency");
}

/* --- the device --- */

bool session_open_vta(session *s)
{
    compiler *c = s->x->c;
    computation t;
    tir_func *f;
    span bytes;
    if (s->options.n_schedules > 0)
        return computation_refuses_schedules(c, s->path);
    if (!compiler_read_file(c, s->path, &bytes) || !computation_read(c, s->path, bytes, s->options.schedule, &t) ||
        !computation_lower_vta(c, &t, "main", &f))
        return false;
    t.schedule = (span){NULL, 0}; /* what the outputs are compared with */
    return computation_program(c, &t, s->options.target, &s->result.prog) &&
           run_open_vta(c, s->result.prog, f, &s->device, &s->ran, &s->model);
}

static void show_cycles(writer *w, const vta_cycle_report *r)
{
    static const char *const stages[] = {"fetch", "load", "compute", "store"};
    w_fmt(w, "cycles: %llu", (unsigned long long)r->cycles);
    for (int i = 1; i < VTA_STAGE_COUNT; i++)
        w_fmt(w, ", %s busy %llu", stages[i], (unsigned long long)r->stage[i].busy);
    w_str(w, "\n");
}

bool session_show_vta(session *s)
{
    const char *timeline = cli_get(s->x, OPT_TIMELINE, NULL);
    if (!s->options.vta)
        return true;
    if (!cli_has(s->x, OPT_JSON)) {
        w_fmt(&s->x->out, "counters: %s\n", s->ran.counters);
        if (s->device.cycle)
            show_cycles(&s->x->out, &s->ran.cycles);
    }
    return !timeline || run_vta_timeline(s->x->c, &s->ran, timeline);
}
