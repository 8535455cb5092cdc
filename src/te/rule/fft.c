/* SPDX-License-Identifier: Apache-2.0 */
/* Default schedule of the fast Fourier transform: transforms in parallel, each step by step. A step's numbers q L + j
 * are cut into q and j; the loops over q and the parts stand inside, written out, so that what they share is computed
 * once. Neighbors along j lie side by side in what is read and written: they are the lanes. */
#include "graph/op/fft.h"
#include "te/rule/rule.h"

#include <string.h>

/* Cuts axis `at` of the stage, numbers of a step behind `done`, into q and j; j into lanes where they fill vectors. The
 * loops: `outer` ones, j, then q, the parts and the lanes, written out. */
static void write_out(te_sched *s, const struct target *t, const te_node *n, const char *at, int64_t done,
                      const char *part, uint32_t n_outer, const char *const *outer, bool side_by_side)
{
    const char *order[8];
    const int64_t lanes = t->vector_bytes / 4;
    const bool cut = side_by_side && lanes > 1 && done % lanes == 0;
    uint32_t k = 0;
    te_sched_split(s, n->name, at, done, "q", "j");
    for (; k < n_outer; k++)
        order[k] = outer[k];
    if (cut)
        te_sched_split(s, n->name, "j", lanes, "vector", "lane");
    order[k++] = cut ? "vector" : "j";
    order[k++] = "q";
    order[k++] = part;
    if (cut)
        order[k++] = "lane";
    te_sched_reorder(s, n->name, k, order);
    te_sched_annotate(s, TE_UNROLL, n->name, "q");
    te_sched_annotate(s, TE_UNROLL, n->name, part);
    if (cut)
        te_sched_annotate(s, TE_VECTORIZE, n->name, "lane");
}

/* A step that is not the last one, [b, part, t, n], or the last one, [b, n, part]. */
static void write_step(te_sched *s, const struct target *t, const te_node *n, const fft_plan *p, int64_t done)
{
    const char *outer[2] = {te_axis_name(n, 0)};
    if (n->n_axes == 4) {
        outer[1] = te_axis_name(n, 2);
        write_out(s, t, n, te_axis_name(n, 3), done, te_axis_name(n, 1), 2, outer, true);
    } else if (p->form == FFT_HALF) {
        te_sched_split(s, n->name, te_axis_name(n, 1), 2, "number", "half");
        write_out(s, t, n, "number", done, "half", 1, outer, false);
    } else {
        write_out(s, t, n, te_axis_name(n, 1), done, te_axis_name(n, 2), 1, outer, false);
    }
}

static bool schedule_fft(const te_case *x)
{
    te_sched *s = x->s;
    const struct target *t = x->t;
    const graph_node *n = x->n;
    te_node *last = x->last;
    const te_graph *g = s->g;
    fft_plan p;
    int64_t done = 1;
    uint32_t step = 0;
    fft_plan_of(n, &p);
    if (g->params.len - g->n_inputs != 1 || last->kind != TE_COMPUTE || last->n_axes != 3)
        return true;
    const char *row = te_axis_name(last, 0);
    for (uint32_t i = 0; i < g->nodes.len; i++) {
        const te_node *stage = g->nodes.data[i];
        bool is_step = stage->tag && strcmp(stage->tag, TE_FFT_STEP) == 0;
        if (stage->kind == TE_PLACEHOLDER || te_is_inlined(s, stage))
            continue;
        if (stage != last && (is_step || stage->n_axes != 3))
            te_sched_compute_at(s, stage->name, last->name, row);
        if (is_step) {
            write_step(s, t, stage, &p, done);
            done *= p.radix[step++];
        } else if (stage->n_axes == 3) { /* the parts of a number share what they read */
            if (stage != last)
                te_sched_compute_at(s, stage->name, last->name, te_axis_name(last, 1));
            te_sched_annotate(s, TE_UNROLL, stage->name, te_axis_name(stage, 2));
        }
    }
    te_sched_annotate(s, TE_PARALLEL, last->name, row);
    return true;
}

/* A step reads and writes both parts of a number. */
static double cost(const te_case *x)
{
    return te_cost_in_c(x->t, 4);
}

static const te_rule rows[] = {
    {"steps of a transform", TE_FFT, "all steps of a row, one behind the other", NULL, cost, schedule_fft},
};
const te_rules te_rules_fft = {rows, sizeof rows / sizeof *rows};
