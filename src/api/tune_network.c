/* SPDX-License-Identifier: Apache-2.0 */
/* lathe tune, the network as a whole. Single kernels do not show whether an operator's form is good: its cost is spread
 * over several kernels, the layouts between them, and what stays in caches. So each form that a pass could have taken
 * is tried in the network, after its kernels were tuned. It stays if the network becomes faster. This goes on until
 * every kernel and every choice of the network was measured, so a second call has nothing to do. */
#include "api/tune.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"

#define FASTER 0.995 /* what a form has to bring, above what times vary by */

/* A compile that is kept while others are compared with it. */
typedef struct network {
    compiler c;
    compile_result r;
} network;

static void close_network(network *n)
{
    if (n)
        compiler_free(&n->c);
    free(n);
}

/* Its kernels are tuned before it is measured: compiled again with their records, it may have parts, and with these
 * points of choice, that it had not. */
static bool compile_network(tuning *t, network *n, const char *trial, bool by_rule)
{
    const compile_emit emit = t->remote ? EMIT_MODULE : EMIT_C;
    for (;;) {
        const uint32_t tuned = t->tuned;
        if (!tuning_compile(t, &n->c, emit, by_rule, trial, &n->r))
            return false;
        if (!t->counted)
            diags_pass_warnings(&t->x->c->diags, &n->c.diags);
        if (!by_rule && !tuning_kernels(t, &n->c, &n->r))
            return false;
        if (t->tuned == tuned || t->over || t->shards > 1)
            return true;
    }
}

/* NULL after a diagnostic in the tuner's own context. */
static network *open_network(tuning *t, const char *trial, bool by_rule)
{
    network *n = calloc(1, sizeof *n);
    if (!n)
        return diag_error(&t->x->c->diags, DIAG_ENVIRONMENT, src_loc_none(), "no memory for another compile"), NULL;
    compiler_setup_under(&n->c, &t->x->c->mem);
    if (compile_network(t, n, trial, by_rule))
        return n;
    if (n->c.diags.errors > 0)
        (void)diags_pass_on(&t->x->c->diags, &n->c.diags);
    close_network(n);
    return NULL;
}

/* The point with another form, as a file of records. */
static const char *write_trial(tuning *t, const graph_choice_point *p, uint32_t form, const target *runs)
{
    compiler *c = t->x->c;
    const char *file = path_join(&c->mem, t->dir, "trial.schedules");
    const tune_form r = {.model = "", .target = runs->name, .built_by = "", .threads = runs->workers, .node = p->node,
                         .form = p->forms[form]};
    writer w;
    writer_init(&w, &c->mem);
    tune_log_form(&w, &r);
    return file_write(&c->diags, &c->temps, file, w.data, w.len) ? file : NULL;
}

static bool keep_form(tuning *t, const graph_choice_point *p, const target *runs, uint32_t form, double rule,
                      double seconds)
{
    const char *slash = strrchr(t->model, '/');
    const tune_form r = {.model = slash ? slash + 1 : t->model,
                         .target = runs->name,
                         .built_by = t->built_by,
                         .threads = runs->workers,
                         .seconds = seconds,
                         .rule_seconds = rule,
                         .node = p->node,
                         .form = p->forms[form]};
    writer w;
    writer_init(&w, &t->x->c->mem);
    tune_log_form(&w, &r);
    return tuning_keep(t, &w);
}

static bool compare(tuning *t, const network *a, const network *b, measure_answer *out)
{
    if (!tuning_ask(t, t->x->c, &a->r.artifact, &b->r.artifact, out))
        return false;
    if (!out->failed && out->n == 2 && out->seconds[0] > 0)
        return true;
    return diag_warning(&t->x->c->diags, DIAG_ENVIRONMENT, src_loc_none(), "the network was not measured: %.300s",
                        out->failed ? out->failed : "no times came back"),
           out->n = 0, true;
}

static void show_trial(ask *x, const graph_choice_point *p, uint32_t taken, uint32_t other, const double *seconds,
                       bool faster)
{
    if (seconds[1] < 0)
        w_fmt(&x->out, "%s: %s stays, because %s gives other numbers\n", p->node, p->forms[taken], p->forms[other]);
    else
        w_fmt(&x->out, "%s: %s (%.4g ms), not %s (%.4g ms)\n", p->node, p->forms[faster ? other : taken],
              1e3 * seconds[faster], p->forms[faster ? taken : other], 1e3 * seconds[!faster]);
    ask_flush(x);
}

/* Of the forms of one point so far. */
typedef struct standing {
    uint32_t taken;
    double rule, least; /* seconds of the network by the point's first form, and by the one taken; 0: not measured */
    bool whole;         /* all were measured */
} standing;

/* Form i against the network so far, which it takes the place of where it is faster. */
static bool try_form(tuning *t, const graph_choice_point *p, uint32_t i, const target *runs, network **best,
                     standing *x)
{
    measure_answer a = {0};
    const char *trial = write_trial(t, p, i, runs);
    network *n = trial ? open_network(t, trial, false) : NULL;
    const bool ok = n && (tuning_is_over(t) || compare(t, *best, n, &a));
    x->whole = a.n == 2;
    if (!ok || !x->whole)
        return close_network(n), ok;
    const bool faster = a.seconds[1] > 0 && a.seconds[1] < FASTER * a.seconds[0];
    show_trial(t->x, p, x->taken, i, a.seconds, faster);
    x->rule = x->rule > 0 ? x->rule : a.seconds[0];
    x->least = x->least > 0 ? x->least : a.seconds[0];
    x->least *= faster ? a.seconds[1] / a.seconds[0] : 1; /* times of other moments count by their ratio */
    x->taken = faster ? i : x->taken;
    close_network(faster ? *best : n);
    *best = faster ? n : *best;
    return true;
}

/* Every form of one point; *best: the network so far. What could not be measured is left to another call, but a form
 * that was taken stays. */
static bool try_point(tuning *t, const graph_choice_point *p, network **best)
{
    target runs = *(*best)->r.unit.target; /* which goes with that network, where another one is faster */
    standing x = {.taken = p->taken, .whole = true};
    runs.name = arena_strdup(&t->x->c->mem, runs.name);
    for (uint32_t i = 0; i < p->n_forms && x.whole; i++)
        if (i != p->taken && !try_form(t, p, i, &runs, best, &x))
            return false;
    t->changed += x.taken != p->taken;
    return (!x.whole && x.taken == p->taken) || keep_form(t, p, &runs, x.taken, x.rule, x.least);
}

/* The first point of the network that no record and no trial of this call was of; copied, since the network goes where
 * another one is faster. */
static bool next_point(tuning *t, const network *best, const ptr_map *tried, graph_choice_point *out)
{
    const graph_choices *forms = &best->r.records->forms;
    arena *mem = &t->x->c->mem;
    for (uint32_t i = 0; i < forms->points.len; i++) {
        *out = forms->points.data[i];
        if (out->recorded || out->n_forms < 2 || tuning_has(t, tried, out->node))
            continue;
        if (!compiler_progress(t->x->c, "trying forms", i + 1, forms->points.len))
            return false;
        out->node = arena_strdup(mem, out->node);
        for (uint32_t k = 0; k < out->n_forms; k++)
            out->forms[k] = arena_strdup(mem, out->forms[k]);
        return true;
    }
    return false;
}

/* A form that was taken brings operators of other types: they are points, too. Each is tried once, so this ends. */
static bool try_all(tuning *t, network **best)
{
    ptr_map tried;
    graph_choice_point p;
    ptr_map_init(&tried, &t->x->c->mem);
    while (!tuning_is_over(t) && next_point(t, *best, &tried, &p)) {
        tuning_add(t, &tried, p.node);
        if (!try_point(t, &p, best))
            return false;
    }
    return true;
}

static bool compare_with_rules(tuning *t, const network *best)
{
    measure_answer a = {0};
    network *rules = open_network(t, NULL, true);
    bool ok = rules && compare(t, rules, best, &a);
    if (ok && a.n == 2) {
        t->network_rule_seconds = a.seconds[0];
        t->network_seconds = a.seconds[1];
    }
    close_network(rules);
    return ok;
}

static bool try_network(tuning *t, network **best)
{
    if (t->shards > 1 || tuning_is_over(t))
        return true;
    return try_all(t, best) && (t->over || (t->tuned == 0 && t->changed == 0) || compare_with_rules(t, *best));
}

/* Each kernel has said why. */
static bool none_measured(tuning *t)
{
    diags *d = &t->x->c->diags;
    diag_error(d, DIAG_ENVIRONMENT, src_loc_none(), "none of %u kernels could be measured", t->failed);
    if (!t->remote && !ask_has(t->x, OPT_MEASURE))
        diag_hint(d, "CC names the C compiler for this machine; to measure on another one, give --remote HOST:PORT or "
                     "--measure COMMAND, for example --measure 'ssh board lathe measure'");
    else if (!t->remote)
        diag_hint(d, "--measure: '%.200s' has to answer as 'lathe measure' does, for example --measure 'ssh board "
                     "lathe measure'", ask_get(t->x, OPT_MEASURE, ""));
    return false;
}

bool tune_network(tuning *t)
{
    network *best = tuning_dir(t) ? open_network(t, NULL, false) : NULL;
    if (!best)
        return false;
    const bool ok = (t->tuned == 0 && t->found == 0 && t->failed > 0)
                        ? none_measured(t)
                        : try_network(t, &best);
    close_network(best);
    return ok;
}
