/* SPDX-License-Identifier: Apache-2.0 */
/* --against: another way of running what is at hand; for run, a computation's outputs compared with what it gives. */
#include "session.h"

#include <string.h>

#include "base/file.h"

/* A quantised model computes in integers from -O1 on. */
static int plain_level(const session *s)
{
    return s->result.quantised && s->options.opt_level > 0 ? 1 : 0;
}

bool session_run_as_c(session *s, run_model *out)
{
    compiler *c = s->x->c;
    compile_options o = s->options;
    compile_result r;
    const char *dir = path_join(&c->mem, s->scratch, "against"), *package = path_join(&c->mem, dir, "package");
    o.vta = false;
    o.schedule = NULL;
    o.emit = "c";
    o.opt_level = plain_level(s);
    o.workers = 1;
    o.offload = NULL;
    o.unscheduled = true;
    o.port = "posix";
    o.board = NULL;
    o.memories = NULL;
    o.integers |= o.target && o.target->integers; /* what the target says by itself is said of the reference */
    o.target = s->is_computation ? o.target : target_find("generic");
    if (!pipeline_compile(c, s->path, &o, &r) || !file_make_dirs(&c->diags, dir) ||
        !artifact_write(c, &r.artifact, package, false) || !run_open_package(c, package, NULL, out))
        return false;
    for (uint32_t i = 0; i < s->model.n_inputs; i++)
        out->in[i] = s->model.inputs[i].data;
    for (uint32_t i = 0; i < s->model.n_extents; i++)
        out->extents[i].value = s->model.extents[i].value;
    return run_build(c, dir, 1, out) && run_call(c, out);
}

static bool compare_output(session *s, uint32_t i, const run_model *other, const char *way)
{
    const run_tensor *got = &s->model.outputs[i];
    const bool exact = !dtype_is_float(got->dt);
    const compare_result r = compare_tensors(got, other->outputs[i].data, exact ? 0 : COMPARE_RTOL, exact ? 0 : -1);
    if (r.wrong == 0) {
        if (!cli_has(s->x, OPT_JSON))
            w_fmt(&s->x->out, "%s: %s what %s gives\n", cli_shown(s->x, got->name), exact ? "equal to" : "near", way);
        return true;
    }
    return diag_error(&s->x->c->diags, DIAG_MISMATCH, src_loc_none(),
                      "output '%s': %lld of %lld elements differ from what %s gives; element %lld is %.9g, %.9g is "
                      "expected",
                      got->name, (long long)r.wrong, (long long)got->count, way, (long long)r.first, r.got, r.want);
}

bool session_compare(session *s)
{
    run_model other;
    if (!cli_has(s->x, OPT_AGAINST))
        return true;
    const int which = cli_choice(s->x, OPT_AGAINST, "interpreter|c", "c");
    if (which < 0)
        return false;
    if (!s->is_computation)
        return cli_usage_error(s->x, "lathe verify compares what a model gives", "run --against is for computations");
    if (which == 0 && cli_has(s->x, OPT_INTERPRET))
        return cli_usage_error(s->x, "leave --interpret out", "the interpreter would be compared with itself");
    if (which == 0 ? !session_interpret(s, &other) : !session_run_as_c(s, &other))
        return false;
    bool ok = true;
    for (uint32_t i = 0; i < s->model.n_outputs; i++)
        ok &= compare_output(s, i, &other, which == 0 ? "the interpreter" : "C without the schedule");
    run_close(&other);
    return ok;
}
