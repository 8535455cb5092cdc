/* SPDX-License-Identifier: Apache-2.0 */
/* lathe run --against: a computation's outputs compared with what another way gives. */
#include "shown.h"

static bool compare_output(session *s, uint32_t i, const run_model *other, const char *way)
{
    const run_tensor *got = &s->model.outputs[i];
    const bool exact = !dtype_is_float(got->dt);
    const compare_result r = compare_tensors(got, other->outputs[i].data, exact ? 0 : COMPARE_RTOL, exact ? 0 : -1);
    if (r.wrong == 0) {
        if (!ask_has(s->x, OPT_JSON))
            w_fmt(&s->x->out, "%s: ok, %s what %s gives\n", cli_shown(s->x, got->name), exact ? "equal to" : "near",
                  way);
        return true;
    }
    return diag_error(&s->x->c->diags, DIAG_MISMATCH, src_loc_none(),
                      "output '%s': %lld of %lld elements differ from what %s gives; element %lld is %.9g, %.9g is "
                      "expected",
                      got->name, (long long)r.wrong, (long long)got->count, way, (long long)r.first, r.got, r.want);
}

bool shown_compare(session *s)
{
    run_model other;
    if (!ask_has(s->x, OPT_AGAINST))
        return true;
    const int which = ask_choice(s->x, OPT_AGAINST, ask_values(OPT_AGAINST, s->x->verb), "c");
    if (which < 0)
        return false;
    if (!s->is_computation)
        return ask_usage_error(s->x, "lathe verify compares what a model gives", "run --against is for computations");
    if (which == 0 && ask_has(s->x, OPT_INTERPRET))
        return ask_usage_error(s->x, "leave --interpret out", "the interpreter would be compared with itself");
    if (which == 0 ? !session_interpret(s, &other) : !session_run_as_c(s, &other))
        return false;
    bool ok = true;
    for (uint32_t i = 0; i < s->model.n_outputs; i++)
        ok &= compare_output(s, i, &other, which == 0 ? "the interpreter" : "C without the schedule");
    run_close(&other);
    return ok;
}
