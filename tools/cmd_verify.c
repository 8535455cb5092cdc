/* SPDX-License-Identifier: Apache-2.0 */
/* lathe verify: outputs against stored ones or onnxruntime's, with the greatest errors of each. */
#include "session.h"

#include <math.h>
#include <string.h>

#include "base/file.h"
#include "base/json_out.h"

/* options: the reference's; NULL: stored outputs */
static void show(cli *x, const run_tensor *got, const compare_result *r, const char *options)
{
    if (!cli_has(x, OPT_JSON)) {
        w_fmt(&x->out, "%s: max abs %.3g, max rel %.3g, max ulp %.3g: %s\n", cli_shown(x, got->name), r->max_abs,
              r->max_rel, r->max_ulp, r->wrong ? "WRONG" : "ok");
        return;
    }
    json_out j = json_out_begin(&x->out, JSON_OUT_LINE);
    json_out_object(&j, NULL);
    json_out_text(&j, "output", got->name);
    json_out_real(&j, "max_abs", fmin(r->max_abs, 1e300));
    json_out_real(&j, "max_rel", fmin(r->max_rel, 1e300));
    json_out_real(&j, "max_ulp", fmin(r->max_ulp, 1e300));
    json_out_int(&j, "wrong", r->wrong);
    json_out_int(&j, "count", got->count);
    if (options)
        json_out_text(&j, "onnxruntime", options);
    json_out_end(&j);
    w_str(&x->out, "\n");
}

static bool judge(session *s, const run_tensor *got, const char *file, const char *options, double rtol, double atol)
{
    compiler *c = s->x->c;
    run_tensor want = *got;
    want.data = arena_try_alloc(&c->mem, want.bytes, 64);
    if (!want.data)
        return diag_error(&c->diags, DIAG_ENVIRONMENT, src_loc_none(), "no memory for output '%s'", got->name);
    if (!tensor_file_read(c, file, &want))
        return false;
    compare_result r = compare_tensors(got, want.data, rtol, atol);
    show(s->x, got, &r, options);
    if (r.wrong == 0)
        return true;
    return diag_error(
        &c->diags, DIAG_MISMATCH, src_loc_none(),
        "output '%s': %lld of %lld elements are outside of the tolerance; element %lld is %.9g, %.9g is expected",
        got->name, (long long)r.wrong, (long long)got->count, (long long)r.first, r.got, r.want);
}

static bool with_data(session *s, double rtol, double atol)
{
    bool ok = true;
    for (uint32_t i = 0; i < s->model.n_outputs; i++) {
        const char *file = session_data_file(s, "output", i);
        if (!file)
            return diag_error(&s->x->c->diags, DIAG_DATA, src_loc_none(), "'%s' has no output_%u.pb", s->data, i);
        ok &= judge(s, &s->model.outputs[i], file, NULL, rtol, atol);
    }
    return ok;
}

static bool with_reference(session *s, double rtol, double atol)
{
    process p;
    bool ok = true;
    if (!reference_start(s, "once", 1, &p))
        return false;
    process_end(&p);
    const char *options = reference_options(s);
    if (!cli_has(s->x, OPT_JSON))
        w_fmt(&s->x->out, "onnxruntime with %s\n", options);
    for (uint32_t i = 0; i < s->model.n_outputs; i++)
        ok &= judge(s, &s->model.outputs[i], reference_output(s, i), options, rtol, atol);
    return ok;
}

bool cmd_verify(cli *x)
{
    session s = {.x = x};
    double rtol, atol;
    bool against = cli_has(x, OPT_AGAINST);
    if (!reference_check(x) || !cli_real(x, OPT_RTOL, 1e-3, &rtol) || !cli_real(x, OPT_ATOL, 1e-5, &atol))
        return false;
    if (!against && !cli_has(x, OPT_DATA))
        return cli_usage_error(x, "give --data DIR or --against onnxruntime", "nothing to compare with");
    bool ok = session_open(x, &s) && session_call(&s);
    ok = ok && (against ? with_reference(&s, rtol, atol) : with_data(&s, rtol, atol));
    session_close(&s);
    return ok;
}
