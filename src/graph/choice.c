/* SPDX-License-Identifier: Apache-2.0 */
/* Forms of operators, from records or by rule. */
#include "graph/choice.h"

#include <string.h>

#include "graph/text.h"
#include "type/target.h"

void graph_choices_init(graph_choices *x, compiler *c)
{
    *x = (graph_choices){.mem = &c->mem, .names = c->names};
    ptr_map_init(&x->point_of, &c->mem);
}

const char *graph_signature(arena *mem, const graph_node *n)
{
    writer w;
    writer_init(&w, mem);
    graph_print_signature(&w, n);
    return w.data;
}

/* Nodes of one signature may differ in what memory leaves to them: the point has the forms of the one with the most. */
static void note_point(graph_choices *x, graph_choice_point p)
{
    uint32_t i;
    p.node = intern(x->names, p.node);
    if (ptr_map_get(&x->point_of, p.node, &i)) {
        if (p.n_forms >= x->points.data[i].n_forms)
            x->points.data[i] = p;
        return;
    }
    ptr_map_set(&x->point_of, p.node, x->points.len);
    vec_push(x->mem, &x->points, p);
}

/* Position of the record's form among those that can be taken; n_forms: it is another one. */
static uint32_t form_of(const graph_choice *r, uint32_t n_forms, const char *const *forms)
{
    uint32_t k = 0;
    while (k < n_forms && strcmp(r->form, forms[k]) != 0)
        k++;
    return k;
}

uint32_t graph_choose_named(graph_choices *choices, const char *node, const struct target *t, uint32_t n_forms,
                            const char *const *forms, uint32_t rule)
{
    graph_choice_point p = {.node = node, .n_forms = n_forms, .taken = rule};
    graph_choice *best = NULL;
    memcpy(p.forms, forms, n_forms * sizeof *forms);
    for (uint32_t i = choices->list.len; i-- > 0;) {
        graph_choice *r = &choices->list.data[i];
        if (strcmp(r->node, node) != 0 || strcmp(r->target, t->name) != 0)
            continue;
        p.recorded |= r->threads == t->workers;
        const uint32_t k = form_of(r, n_forms, forms);
        if (k == n_forms || (best && (best->threads == t->workers || r->threads != t->workers)))
            continue;
        best = r;
        p.taken = k;
    }
    if (best)
        best->uses++;
    note_point(choices, p);
    return p.taken;
}

uint32_t graph_choose(graph_choices *choices, const graph_node *n, const struct target *t, uint32_t n_forms,
                      const char *const *forms, uint32_t rule)
{
    if (!choices)
        return rule;
    return graph_choose_named(choices, graph_signature(choices->mem, n), t, n_forms, forms, rule);
}

uint32_t graph_choices_used(const graph_choices *x)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < x->list.len; i++)
        n += x->list.data[i].uses > 0;
    return n;
}
