/* SPDX-License-Identifier: Apache-2.0 */
/* Times of an executable's operators. Its package is built a second time, with hooks, in a folder that goes when the
 * call ends; the executable itself stays as fast as it was. */
#include "api/objects.h"

#include "driver/profile.h"

#include <string.h>

enum { ROUNDS = 10, MOST_ROUNDS = 10000 };

typedef struct profile_args {
    lathe_executable *executable;
    const lathe_dltensor *const *inputs; /* NULL: random ones */
    uint32_t n_inputs, rounds;
} profile_args;

static bool check(compiler *c, const profile_args *a)
{
    const lathe_executable *e = a->executable;
    if (e->is_module) {
        diag_error(&c->diags, DIAG_USAGE, src_loc_none(), "a module cannot measure its operators");
        diag_hint(&c->diags, "compile the model as a package");
        return false;
    }
    if (a->rounds > MOST_ROUNDS)
        return diag_error(&c->diags, DIAG_USAGE, src_loc_none(), "%u rounds are too many: at most %d", a->rounds,
                          MOST_ROUNDS);
    if (a->inputs && a->n_inputs != e->inputs.n)
        return diag_error(&c->diags, DIAG_USAGE, src_loc_none(), "the model takes %u inputs, and %u are given",
                          e->inputs.n, a->n_inputs);
    return true;
}

static bool fill(compiler *c, run_model *m, const profile_args *a)
{
    uint64_t state = 0;
    uint8_t **own = arena_array(&c->mem, uint8_t *, m->n_inputs + 1u);
    if (a->inputs)
        return executable_inputs(c, m, a->inputs, own);
    if (!run_size_inputs(c, m))
        return false;
    for (uint32_t i = 0; i < m->n_inputs; i++)
        tensor_file_random(&m->inputs[i], &state, tensor_file_random_most(m->inputs[i].dt));
    return true;
}

static bool profile_within(lathe_context *x, compiler *c, const char *scratch, const profile_args *a, run_model *m)
{
    const lathe_executable *e = a->executable;
    profile p;
    writer w;
    if (!executable_open_package(a->executable, c, scratch, m) || !fill(c, m, a))
        return false;
    const int64_t workers = e->workers < 0 ? (int64_t)m->report->workers : e->workers;
    if (!profile_prepare(c, scratch, (uint32_t)workers, m) || !run_build(c, scratch, e->workers, m) ||
        !profile_take(c, m, a->rounds > 0 ? a->rounds : ROUNDS, &p))
        return false;
    writer_init(&w, &x->mem);
    profile_write_json(&w, m->report, &p);
    x->json = w.data;
    return true;
}

static bool profile_work(lathe_context *x, home *h, void *args)
{
    const profile_args *a = args;
    run_model m = {.inputs = NULL};
    compiler *c = border_begin_brief(x, h);
    const char *scratch = check(c, a) ? process_temp_dir(c) : NULL;
    if (!scratch)
        return false;
    const bool ok = profile_within(x, c, scratch, a, &m);
    run_unload(&m);
    compiler_remove_temp_dir(c, scratch);
    return ok;
}

int32_t lathe_profile(lathe_context *x, lathe_executable *executable, const lathe_dltensor *const *inputs,
                      uint32_t n_inputs, uint32_t rounds, const char **out_json)
{
    profile_args a = {executable, inputs, n_inputs, rounds};
    *out_json = NULL;
    if (n_inputs > 0 && !inputs)
        return border_refuse_missing(x, "list of inputs");
    const int32_t outcome = executable_call(x, executable, profile_work, &a);
    *out_json = outcome == LATHE_DONE ? x->json : NULL;
    return outcome;
}
