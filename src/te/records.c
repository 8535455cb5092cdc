/* SPDX-License-Identifier: Apache-2.0 */
/* Schedules beside a model: a table from what is computed to how. The key is the loops without a schedule, compared as
 * structures, so that one record fits every layer of its shape. */
#include "te/records.h"
#include "te/lower.h"
#include "te/text.h"
#include "tir/facts.h"
#include "type/target.h"

#include <string.h>

static bool lower_plain(te_graph *g, const tir_func **out)
{
    tir_func *f = NULL;
    bool ok = te_lower(g, te_sched_new(g), "key", &f);
    *out = f;
    return ok;
}

/* Lines before the first that is not empty. */
static uint32_t first_line(te_record_text t)
{
    uint32_t line = 1;
    for (size_t i = 0; i < t.len && t.text[i] == '\n'; i++)
        line++;
    return line;
}

te_records *te_records_new(compiler *c)
{
    te_records *r = arena_new(&c->mem, te_records);
    graph_choices_init(&r->forms, c);
    return r;
}

bool te_records_add(compiler *c, te_records *r, te_record_text computation, te_record_text schedule,
                    const char *for_target, double seconds)
{
    te_record *x = arena_new(&c->mem, te_record);
    te_sched *s = NULL;
    tir_func *scheduled = NULL;
    *x = (te_record){.target = for_target, .schedule = schedule, .seconds = seconds,
                     .origin = arena_printf(&c->mem, "%s:%u", schedule.file, first_line(schedule))};
    if (!te_parse(c, computation.file, computation.text, computation.len, &x->g))
        return false;
    x->g->unbounded = true; /* what has to have bounds is told when a model is compiled */
    if (!lower_plain(x->g, &x->plain) || !te_sched_parse(x->g, schedule.file, schedule.text, schedule.len, &s) ||
        !te_lower(x->g, s, "checked", &scheduled))
        return false;
    x->hash = tir_hash(c, x->plain);
    vec_push(&c->mem, &r->list, x);
    return true;
}

static bool same_name(const te_record *x, const char *there, const char *here, compiler *c)
{
    if (strcmp(there, here) == 0)
        return true;
    diag_error(&c->diags, DIAG_FORMAT, x->g->loc, "what is '%s' here is called '%s' in the model's kernel", there,
               here);
    diag_hint(&c->diags, "'lathe schedule MODEL' prints computations with the names that the model's kernels have");
    return false;
}

static bool same_axes(const te_record *x, uint32_t n, te_axis *const *there, te_axis *const *here, compiler *c)
{
    for (uint32_t i = 0; i < n; i++)
        if (!same_name(x, there[i]->var->name, here[i]->var->name, c))
            return false;
    return true;
}

/* Schedules speak of stages and axes by name. */
static bool same_names(const te_record *x, const te_graph *g)
{
    compiler *c = g->c;
    for (uint32_t i = 0; i < g->nodes.len; i++) {
        const te_node *there = x->g->nodes.data[i], *here = g->nodes.data[i];
        if (!same_name(x, there->name, here->name, c) || !same_axes(x, here->n_axes, there->axes, here->axes, c) ||
            !same_axes(x, here->n_reduce, there->reduce_axes, here->reduce_axes, c))
            return false;
    }
    return true;
}

/* The same as a question. */
static bool names_agree(const te_record *x, const te_graph *g)
{
    const diags_mark mark = diags_get_mark(&g->c->diags);
    const bool same = same_names(x, g);
    diags_reset(&g->c->diags, mark);
    return same;
}

/* Equal loops come of equal stages, but for those that loops do not show. */
static bool same_stages(const te_graph *a, const te_graph *b)
{
    bool same = a->nodes.len == b->nodes.len;
    for (uint32_t i = 0; same && i < a->nodes.len; i++) {
        const te_node *x = a->nodes.data[i], *y = b->nodes.data[i];
        same = x->kind == y->kind && x->n_axes == y->n_axes && x->n_reduce == y->n_reduce;
    }
    return same;
}

/* x was added before the other one. */
static bool is_better(const te_record *x, const te_record *other)
{
    return !other || (x->seconds > 0 && other->seconds > 0 && x->seconds < other->seconds);
}

/* g is what it was written for; `plain`: g's loops, with their hash. */
static bool is_of(const te_record *x, const te_graph *g, const tir_func *plain, uint64_t hash, const struct target *t)
{
    return x->hash == hash && (!x->target || strcmp(x->target, t->name) == 0) && same_stages(x->g, g) &&
           (x->seconds <= 0 || names_agree(x, g)) && tir_func_equal(g->c, x->plain, plain);
}

bool te_records_find(te_records *r, te_graph *g, const struct target *t, te_sched **out)
{
    const tir_func *plain = NULL;
    *out = NULL;
    if (r->list.len == 0)
        return true;
    if (!lower_plain(g, &plain))
        return false;
    const uint64_t hash = tir_hash(g->c, plain);
    te_record *best = NULL;
    for (uint32_t i = r->list.len; i-- > 0;) {
        te_record *x = r->list.data[i];
        if (!is_of(x, g, plain, hash, t))
            continue;
        x->fits = true;
        best = is_better(x, best) ? x : best;
    }
    if (!best)
        return true;
    best->uses++;
    if (!same_names(best, g) || !te_sched_parse(g, best->schedule.file, best->schedule.text, best->schedule.len, out))
        return false;
    (*out)->origin = best->origin;
    return true;
}

uint32_t te_records_used(const te_records *r)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < r->list.len; i++)
        n += r->list.data[i]->uses > 0;
    return n;
}
