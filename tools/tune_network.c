/* SPDX-License-Identifier: Apache-2.0 */
/* lathe tune, the network as a whole: choices that kernels alone cannot tell. What an operator's form costs lies in
 * several kernels, in layouts between them, and in what stays in caches; so each form that a pass might have taken is
 * tried in the network, with the kernels that it brings tuned first, and stays where the network becomes faster. */
#include "tune.h"

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

/* The kernels that a form brings are tuned first. Where they were, the network is compiled once more, with their
 * records. */
static bool compile_network(tuning *t, network *n, const char *trial, bool by_rule)
{
    const char *emit = t->remote ? "module" : "c";
    const uint32_t found = t->found, tuned = t->tuned; /* found: those of the rest of the network do not count */
    if (!tuning_compile(t, &n->c, emit, by_rule, trial, &n->r))
        return false;
    if (!trial)
        return true;
    const bool ok = tuning_kernels(t, &n->c, &n->r);
    t->found = found;
    return ok && (t->tuned == tuned || tuning_compile(t, &n->c, emit, by_rule, trial, &n->r));
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

/* Every form of one point; *best: the network so far. */
static bool try_point(tuning *t, const graph_choice_point *p, network **best)
{
    target runs = *(*best)->r.unit.target; /* which goes with that network, where another one is faster */
    runs.name = arena_strdup(&t->x->c->mem, runs.name);
    double rule = 0, least = 0;
    uint32_t taken = p->taken;
    for (uint32_t i = 0; i < p->n_forms; i++) {
        measure_answer a;
        if (i == p->taken)
            continue;
        if (tuning_is_over(t))
            break;
        const char *trial = write_trial(t, p, i, &runs);
        network *n = trial ? open_network(t, trial, false) : NULL;
        if (!n || !compare(t, *best, n, &a))
            return close_network(n), false;
        if (a.n == 0)
            return close_network(n), true;
        rule = rule > 0 ? rule : a.seconds[0];
        least = least > 0 ? least : a.seconds[0];
        const bool faster = a.seconds[1] > 0 && a.seconds[1] < FASTER * a.seconds[0];
        if (a.seconds[1] < 0)
            printf("%s: %s stays, %s gives other numbers\n", p->node, p->forms[taken], p->forms[i]);
        else
            printf("%s: %s (%.4g ms), not %s (%.4g ms)\n", p->node, p->forms[faster ? i : taken],
                   1e3 * a.seconds[faster], p->forms[faster ? taken : i], 1e3 * a.seconds[!faster]);
        (void)fflush(stdout);
        taken = faster ? i : taken;
        least *= faster ? a.seconds[1] / a.seconds[0] : 1; /* times of other moments count by their ratio */
        close_network(faster ? *best : n);
        *best = faster ? n : *best;
    }
    t->changed += taken != p->taken;
    if (t->over && taken == p->taken)
        return true; /* other forms are still to be tried */
    return rule <= 0 || keep_form(t, p, &runs, taken, rule, least);
}

static bool try_all(tuning *t, network **best)
{
    const graph_choices *forms = &(*best)->r.records->forms;
    const uint32_t n = forms->points.len;
    graph_choice_point *points = arena_array(&t->x->c->mem, graph_choice_point, n + 1u);
    for (uint32_t i = 0; i < n; i++) { /* they outlive the network that showed them */
        points[i] = forms->points.data[i];
        points[i].node = arena_strdup(&t->x->c->mem, points[i].node);
        for (uint32_t k = 0; k < points[i].n_forms; k++)
            points[i].forms[k] = arena_strdup(&t->x->c->mem, points[i].forms[k]);
    }
    for (uint32_t i = 0; i < n && !tuning_is_over(t); i++) {
        compiler_progress(t->x->c, "trying forms", i + 1, n);
        if (!points[i].recorded && points[i].n_forms > 1 && !try_point(t, &points[i], best))
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

bool tune_network(tuning *t)
{
    const uint32_t tuned = t->tuned;
    if (tuning_is_over(t))
        return true;
    if (!tuning_dir(t))
        return false;
    network *best = open_network(t, NULL, false);
    bool ok = best && try_all(t, &best);
    if (ok && (tuned > 0 || t->tuned > 0 || t->changed > 0) && !t->over)
        ok = compare_with_rules(t, best);
    close_network(best);
    return ok;
}
