/* SPDX-License-Identifier: Apache-2.0 */
/* What a comparison has found, as one object of JSON. Outputs come one by one, and what else there is to tell between
 * them: they are kept until the end. */
#include "api/verify.h"

#include <math.h>

/* The next output. */
static json_out *begin(verify_judge *j)
{
    verify_record *r = &j->record;
    if (!r->begun) {
        writer_init(&r->text, &j->s->x->c->mem);
        r->outputs = json_out_begin(&r->text, JSON_OUT_LINE);
        json_out_array(&r->outputs, NULL);
        r->begun = true;
    }
    json_out_object(&r->outputs, NULL);
    return &r->outputs;
}

static void tell_way(verify_judge *j)
{
    (void)j; /* each output says it */
}

static void tell_errors(json_out *out, const compare_result *r)
{
    json_out_real(out, "max_abs", fmin(r->max_abs, 1e300));
    json_out_real(out, "max_rel", fmin(r->max_rel, 1e300));
    json_out_real(out, "max_ulp", fmin(r->max_ulp, 1e300));
}

static void tell_output(verify_judge *j, const run_tensor *got, const compare_result *r, const char *op)
{
    json_out *out = begin(j);
    json_out_text(out, "name", got->name);
    if (op)
        json_out_text(out, "operator", op);
    tell_errors(out, r);
    json_out_real(out, "rms", fmin(r->rms, 1e300));
    json_out_int(out, "wrong", r->wrong);
    json_out_int(out, "count", got->count);
    if (!op && j->ties)
        json_out_int(out, "ties", j->ties);
    if (j->options)
        json_out_text(out, "options", j->options);
    if (j->other) {
        json_out_text(out, "other_session", j->other);
        json_out_int(out, "other_session_wrong", j->own.wrong);
        json_out_real(out, "other_session_max_abs", fmin(j->own.max_abs, 1e300));
    }
    json_out_end(out);
}

static void tell_tally(verify_judge *j, const verify_tally *t)
{
    j->record.has_tally = true;
    j->record.tally = *t;
}

static void tell_ways(verify_judge *j)
{
    (void)j; /* the end has them */
}

static void tell_total(verify_judge *j, const run_tensor *got, const verify_total *t)
{
    const session *s = j->s;
    json_out *out = begin(j);
    json_out_text(out, "name", got->name);
    json_out_uint(out, "samples", s->samples);
    json_out_uint(out, "wrong_samples", t->wrong);
    json_out_text(out, "worst", verify_sample_name(s, t->at));
    tell_errors(out, &t->worst);
    json_out_int(out, "wrong", t->worst.wrong);
    json_out_int(out, "count", got->count);
    json_out_int(out, "ties", t->ties);
    json_out_end(out);
}

static bool tell_device(session *s)
{
    (void)s; /* the end has it */
    return true;
}

static bool tell_run(const session *s)
{
    (void)s; /* the end has it */
    return true;
}

static void write_tally(json_out *out, const verify_tally *t)
{
    json_out_object(out, "compared");
    json_out_uint(out, "agree", t->agree);
    json_out_uint(out, "not_the_models", t->unknown);
    json_out_uint(out, "inside_blocks", t->inside);
    json_out_uint(out, "extents", t->extents);
    json_out_end(out);
}

static void write_ways(json_out *out, const verify_judge *j)
{
    uint32_t at = 0, n;
    const char *way;
    json_out_array(out, "ways");
    while (verify_next_way(j, &at, &way, &n)) {
        json_out_object(out, NULL);
        json_out_text(out, "options", way);
        json_out_uint(out, "samples", n);
        json_out_end(out);
    }
    json_out_end(out);
}

static bool tell_end(verify_judge *j)
{
    const session *s = j->s;
    verify_record *r = &j->record;
    writer whole;
    if (!r->begun)
        return true;
    json_out_end(&r->outputs);
    writer_init(&whole, &s->x->c->mem);
    json_out out = json_out_begin(&whole, JSON_OUT_LINE);
    json_out_object(&out, NULL);
    json_out_text(&out, "against", ask_get(s->x, OPT_AGAINST, "data"));
    json_out_written(&out, "outputs", r->text.data, r->text.len);
    if (r->has_tally)
        write_tally(&out, &r->tally);
    if (j->ways)
        write_ways(&out, j);
    if (!session_write_measured(&out, s))
        return false;
    json_out_end(&out);
    w_line(&s->x->out, "%s", whole.data);
    return true;
}

const verify_teller verify_json = {tell_way,  tell_output, NULL, tell_tally, tell_ways,
                                   tell_total, tell_device, tell_run,  tell_end};
