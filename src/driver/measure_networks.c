/* SPDX-License-Identifier: Apache-2.0 */
/* The side that measures, for whole networks: two packages of one model are built, get the same inputs, are compared,
 * and run in turns. */
#include "base/clock.h"
#include "base/file.h"
#include "driver/measure.h"
#include "driver/profile.h"

enum { ROUNDS = 12 };
#define TURN 0.1 /* seconds */

static bool open_network(compiler *c, const char *scratch, uint32_t number, run_model *m)
{
    const char *dir = arena_printf(&c->mem, "%s/%u", scratch, number);
    if (!run_open_package(c, path_join(&c->mem, dir, "package"), NULL, m) || !run_size_inputs(c, m))
        return false;
    measure_fill(m);
    return profile_prepare_compiler(c, dir, m) && run_build(c, dir, -1, m) && run_call(c, m);
}

static bool same_results(const run_model *a, const run_model *b)
{
    bool same = a->n_outputs == b->n_outputs;
    for (uint32_t i = 0; same && i < a->n_outputs; i++)
        same = a->outputs[i].count == b->outputs[i].count && measure_agrees(&b->outputs[i], &a->outputs[i]);
    return same;
}

static bool time_calls(compiler *c, run_model *m, long calls, double *least)
{
    for (long i = 0; i < calls; i++) {
        const double start = clock_now();
        if (!run_call(c, m))
            return false;
        const double each = clock_now() - start;
        *least = *least <= 0 || each < *least ? each : *least;
    }
    return true;
}

/* A call that is not timed brings caches and threads back from the other one's turn. */
static bool run_in_turns(compiler *c, run_model m[2], double seconds[2])
{
    long calls[2];
    for (uint32_t i = 0; i < 2; i++) {
        seconds[i] = 0;
        if (!time_calls(c, &m[i], 1, &seconds[i]))
            return false;
        calls[i] = (long)(TURN / (seconds[i] + 1e-9)) + 1;
    }
    for (uint32_t round = 0; round < ROUNDS; round++)
        for (uint32_t i = 0; i < 2; i++)
            if (!run_call(c, &m[i]) || !time_calls(c, &m[i], calls[i], &seconds[i]))
                return false;
    return true;
}

bool measure_networks(compiler *c, const char *scratch, double seconds[2], const char **out_compiler)
{
    run_model m[2] = {{0}, {0}};
    bool ok = open_network(c, scratch, 0, &m[0]) && open_network(c, scratch, 1, &m[1]) &&
              run_in_turns(c, m, seconds);
    ok = ok && (*out_compiler = profile_compiler(c, &m[0]));
    if (ok && !same_results(&m[0], &m[1]))
        seconds[1] = -1;
    run_close(&m[0]);
    run_close(&m[1]);
    return ok;
}
