/* SPDX-License-Identifier: Apache-2.0 */
/* Computations on the accelerator (--target vta), and compared with other ways to run them. */
#include "api/session.h"

#include "base/file.h"
#include "driver/vta/vta_computation.h"

#include <string.h>

/* --- options --- */

bool ask_cycle_model(const ask *x, vta_cycle_options *out)
{
    const int profile = ask_choice(x, OPT_PROFILE, "chisel|hls", "chisel");
    long bus = 0, latency = 0;
    if (profile < 0 || !ask_number(x, OPT_BUS_BITS, 8, 4096, 0, &bus) ||
        !ask_number(x, OPT_LATENCY, 1, 1000000, 0, &latency))
        return false;
    out->profile = profile == 0 ? VTA_CYCLE_CHISEL : VTA_CYCLE_HLS;
    out->bus_bits = (uint32_t)bus;
    out->latency = (uint32_t)latency;
    return true;
}

static bool check_without(const session *s)
{
    static const struct {
        ask_option option;
        const char *name;
    } only[] = {{OPT_CYCLE, "cycle"}, {OPT_TIMELINE, "timeline"}, {OPT_PROFILE, "profile"},
                {OPT_BUS_BITS, "bus-bits"}, {OPT_LATENCY, "latency"}};
    for (size_t i = 0; i < sizeof only / sizeof *only; i++)
        if (ask_has(s->x, only[i].option))
            return ask_usage_error(s->x,
                                   "add --target vta to a computation; 'lathe vta model' is for a model's regions",
                                   "--%s is for the accelerator", only[i].name);
    return true;
}

static bool check_with(const session *s)
{
    static const struct {
        ask_option option;
        const char *name, *why;
    } none[] = {{OPT_INTERPRET, "interpret", "the interpreter is another way to run it"},
                {OPT_EMULATOR, "emulator", "the accelerator is simulated here"},
                {OPT_EMIT, "emit", "nothing is compiled"},
                {OPT_KEEP, "keep", "no package is built"}};
    for (size_t i = 0; i < sizeof none / sizeof *none; i++)
        if (ask_has(s->x, none[i].option))
            return ask_usage_error(s->x, "use only one of them", "--target vta and --%s: %s", none[i].name,
                                   none[i].why);
    return s->x->verb != VERB_BENCH ||
           ask_usage_error(s->x, "lathe run FILE --target vta --cycle counts its cycles",
                           "bench --target vta: the time of a simulator does not tell the time of the accelerator");
}

bool session_check_vta(session *s)
{
    const char *timeline = ask_get(s->x, OPT_TIMELINE, NULL);
    if (!s->options.device)
        return check_without(s);
    long seed;
    if (!ask_number(s->x, OPT_SEED, 0, 2147483647, 0, &seed))
        return false;
    s->device.sim.seed = (uint32_t)seed; /* the order of the stages, too: results do not depend on it */
    if (!ask_cycle_model(s->x, &s->device.model) || !check_with(s) || !ask_is_file(s->x, OPT_TIMELINE))
        return false;
    if (timeline && !strstr(timeline, ".svg") && !strstr(timeline, ".json"))
        return ask_usage_error(s->x, "for example --timeline timeline.svg",
                               "--timeline: '%.200s' ends in neither .svg nor .json", timeline);
    s->device.cycle = ask_has(s->x, OPT_CYCLE) || timeline;
    return s->device.cycle ||
           !(ask_has(s->x, OPT_PROFILE) || ask_has(s->x, OPT_BUS_BITS) || ask_has(s->x, OPT_LATENCY)) ||
           ask_usage_error(s->x, "add --cycle, or leave it out", "--%s is for the cycle model",
                           ask_has(s->x, OPT_PROFILE)    ? "profile"
                           : ask_has(s->x, OPT_BUS_BITS) ? "bus-bits"
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
        !vta_computation_lower(c, &t, "main", &f))
        return false;
    t.schedule = (span){NULL, 0}; /* what the outputs are compared with */
    return computation_program(c, &t, s->options.target, &s->result.prog) &&
           run_open_vta(c, s->result.prog, f, &s->device, &s->ran, &s->model);
}
