/* SPDX-License-Identifier: Apache-2.0 */
/* Forms of operators, from records or by rule. */
#include "graph/choice.h"

#include <string.h>

#include "graph/text.h"
#include "type/target.h"

const char *graph_signature(arena *mem, const graph_node *n)
{
    writer w;
    writer_init(&w, mem);
    graph_print_signature(&w, n);
    return w.data;
}

static graph_choice_point *point_of(graph_choices *x, const char *node, uint32_t n_forms, const char *const *forms)
{
    for (uint32_t i = 0; i < x->points.len; i++)
        if (strcmp(x->points.data[i].node, node) == 0)
            return &x->points.data[i];
    graph_choice_point p = {.node = node, .n_forms = n_forms};
    memcpy(p.forms, forms, n_forms * sizeof *forms);
    vec_push(x->mem, &x->points, p);
    return &x->points.data[x->points.len - 1];
}

/* Position of the record's form among those that can be taken; n_forms: it is for something else. */
static uint32_t form_of(const graph_choice *r, const char *node, const target *t, uint32_t n_forms,
                        const char *const *forms)
{
    uint32_t k = strcmp(r->node, node) == 0 && strcmp(r->target, t->name) == 0 ? 0 : n_forms;
    while (k < n_forms && strcmp(r->form, forms[k]) != 0)
        k++;
    return k;
}

uint32_t graph_choose_named(graph_choices *choices, const char *node, const struct target *t, uint32_t n_forms,
                            const char *const *forms, uint32_t rule)
{
    graph_choice_point *p = point_of(choices, node, n_forms, forms);
    graph_choice *best = NULL;
    p->taken = rule;
    for (uint32_t i = choices->list.len; i-- > 0;) {
        graph_choice *r = &choices->list.data[i];
        const uint32_t k = form_of(r, node, t, n_forms, forms);
        if (k == n_forms || (best && (best->threads == t->workers || r->threads != t->workers)))
            continue;
        best = r;
        p->taken = k;
    }
    p->recorded = best && best->threads == t->workers;
    if (best)
        best->uses++;
    return p->taken;
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
