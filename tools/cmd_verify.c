/* SPDX-License-Identifier: Apache-2.0 */
/* lathe verify: what a comparison has found, as text. */
#include "api/verify.h"
#include "shown.h"

static void tell_way(verify_judge *j)
{
    w_fmt(&j->s->x->out, "%s with %s\n", reference_title(j->s->x), j->options);
}

static void tell_output(verify_judge *j, const run_tensor *got, const compare_result *r, const char *op)
{
    ask *x = j->s->x;
    const char *name = cli_shown(x, got->name);
    if (op) /* the tally and the first error say what there is to say */
        return;
    w_fmt(&x->out, "%s: max abs %.3g, max rel %.3g, max ulp %.3g: %s\n", name, r->max_abs, r->max_rel, r->max_ulp,
          r->wrong ? "WRONG" : "ok");
    if (j->ties)
        w_fmt(&x->out, "%s: %lld of %lld elements one step away, where onnxruntime's float is half-way between two\n",
              name, (long long)j->ties, (long long)got->count);
    if (j->other)
        w_fmt(&x->out, "%s: onnxruntime with %s differs from that in %lld of %lld elements, max abs %.3g\n", name,
              j->other, (long long)j->own.wrong, (long long)got->count, j->own.max_abs);
}

static void tell_list(verify_judge *j, const list_io *l, const run_seen *got)
{
    ask *x = j->s->x;
    w_fmt(&x->out, "%s: %s: ok\n", cli_shown(x, l->name), run_list_text(&x->c->mem, l, got->present, got->count));
}

static void tell_tally(verify_judge *j, const verify_tally *t)
{
    writer *w = &j->s->x->out;
    const struct {
        const char *text;
        uint32_t n;
    } left[] = {{" are not the model's own", t->unknown},
                {" are made and carried by branches and loops", t->inside},
                {" are extents", t->extents}};
    const char *sign = "; not compared: ";
    w_fmt(w, "the results of %u operators agree at -O%d", t->agree, j->s->options.opt_level);
    for (size_t i = 0; i < sizeof left / sizeof *left; i++) {
        if (left[i].n == 0)
            continue;
        w_fmt(w, "%s%u%s", sign, left[i].n, left[i].text);
        sign = ", ";
    }
    w_str(w, "\n");
}

static void tell_ways(verify_judge *j)
{
    uint32_t at = 0, n;
    const char *way;
    while (verify_next_way(j, &at, &way, &n))
        w_fmt(&j->s->x->out, "%s with %s: %u %s\n", reference_title(j->s->x), way, n,
              j->s->steps ? "steps" : "samples");
}

static void tell_total(verify_judge *j, const run_tensor *got, const verify_total *t)
{
    const session *s = j->s;
    writer *w = &s->x->out;
    w_fmt(w, "%s: %u %s, max abs %.3g, max rel %.3g, max ulp %.3g", cli_shown(s->x, got->name), s->samples,
          s->steps ? "steps" : "samples",
          t->worst.max_abs, t->worst.max_rel, t->worst.max_ulp);
    if (t->worst.max_abs > 0)
        w_fmt(w, " (%s)", verify_sample_name(s, t->at));
    w_fmt(w, t->wrong ? ": %u WRONG\n" : ": ok\n", t->wrong);
    if (t->ties)
        w_fmt(w, "%s: %lld of %lld elements one step away, where onnxruntime's float is half-way between two\n",
              cli_shown(s->x, got->name), (long long)t->ties, (long long)got->count * s->samples);
}

static const verify_teller text = {tell_way,   tell_output, tell_list,   tell_tally, tell_ways,
                                  tell_total, shown_vta,   shown_board, NULL};

bool cmd_verify(ask *x)
{
    verify_teller json = verify_json;
    json.device = shown_vta; /* which prints nothing then, and draws the timeline */
    return verify(x, ask_has(x, OPT_JSON) ? &json : &text);
}
