/* SPDX-License-Identifier: Apache-2.0 */
/* What a comparison has found, as lines of JSON. */
#include "api/verify.h"

#include "base/json_out.h"

#include <math.h>

/* An object that is a line of its own. */
static json_out begin(const session *s)
{
    json_out out = json_out_begin(&s->x->out, JSON_OUT_LINE);
    json_out_object(&out, NULL);
    return out;
}

static void end(const session *s, json_out *out)
{
    json_out_end(out);
    w_str(&s->x->out, "\n");
}

static void tell_way(const verify_judge *j)
{
    (void)j; /* each output says it */
}

static void tell_errors(json_out *out, const compare_result *r)
{
    json_out_real(out, "max_abs", fmin(r->max_abs, 1e300));
    json_out_real(out, "max_rel", fmin(r->max_rel, 1e300));
    json_out_real(out, "max_ulp", fmin(r->max_ulp, 1e300));
}

static void tell_output(const verify_judge *j, const run_tensor *got, const compare_result *r, const char *op)
{
    json_out out = begin(j->s);
    json_out_text(&out, "output", got->name);
    if (op)
        json_out_text(&out, "operator", op);
    tell_errors(&out, r);
    json_out_real(&out, "rms", fmin(r->rms, 1e300));
    json_out_int(&out, "wrong", r->wrong);
    json_out_int(&out, "count", got->count);
    if (!op && j->ties)
        json_out_int(&out, "ties", j->ties);
    if (j->options)
        json_out_text(&out, ask_get(j->s->x, OPT_AGAINST, "onnxruntime"), j->options);
    if (j->other) {
        json_out_text(&out, "other_session", j->other);
        json_out_int(&out, "other_session_wrong", j->own.wrong);
        json_out_real(&out, "other_session_max_abs", fmin(j->own.max_abs, 1e300));
    }
    end(j->s, &out);
}

static void tell_tally(const verify_judge *j, const verify_tally *t)
{
    json_out out = begin(j->s);
    json_out_uint(&out, "agree", t->agree);
    json_out_uint(&out, "not_the_models", t->unknown);
    json_out_uint(&out, "inside_blocks", t->inside);
    json_out_uint(&out, "extents", t->extents);
    end(j->s, &out);
}

static void tell_ways(const verify_judge *j)
{
    (void)j; /* each total says it */
}

static void tell_total(const verify_judge *j, const run_tensor *got, const verify_total *t)
{
    session *s = j->s;
    json_out out = begin(s);
    json_out_text(&out, "output", got->name);
    json_out_uint(&out, "samples", s->samples);
    json_out_uint(&out, "wrong_samples", t->wrong);
    json_out_text(&out, "worst", verify_sample_name(s, t->at));
    tell_errors(&out, &t->worst);
    json_out_int(&out, "wrong", t->worst.wrong);
    json_out_int(&out, "count", got->count);
    json_out_int(&out, "ties", t->ties);
    if (j->ways) {
        uint32_t at = 0, n;
        const char *way;
        json_out_object(&out, ask_get(j->s->x, OPT_AGAINST, "onnxruntime"));
        while (verify_next_way(j, &at, &way, &n))
            json_out_uint(&out, way, n);
        json_out_end(&out);
    }
    end(s, &out);
}

static bool tell_device(session *s)
{
    (void)s;
    return true;
}

static bool tell_run(const session *s)
{
    board_measure m;
    if (!s->model.board)
        return true;
    if (!board_measured(s->x->c, &s->model, &m))
        return false;
    json_out out = begin(s);
    json_out_text(&out, "board", s->model.board->name);
    json_out_uint(&out, "text", m.text);
    json_out_uint(&out, "rodata", m.rodata);
    json_out_uint(&out, "data", m.data);
    json_out_uint(&out, "bss", m.bss);
    json_out_uint(&out, "stack", m.stack);
    if (m.operators) {
        json_out_int(&out, "instructions", m.instructions);
        json_out_array(&out, "operators");
        for (uint32_t i = 0; i < m.n_operators; i++)
            json_out_int(&out, NULL, m.operators[i]);
        json_out_end(&out);
    }
    end(s, &out);
    return true;
}

const verify_teller verify_json = {tell_way,  tell_output, tell_tally, tell_ways,
                                   tell_total, tell_device, tell_run};
