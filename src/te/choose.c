/* SPDX-License-Identifier: Apache-2.0 */
/* The rules of all files and folders, and which of them a computation gets. */
#include "te/choose.h"

#include <assert.h>

static const te_rules *const sets[] = {
    &te_rules_conv,    &te_rules_blocked,   &te_rules_wide, &te_rules_pairs, &te_rules_winograd,
    &te_rules_product, &te_rules_attention, &te_rules_fft,  &te_rules_lines, &te_rules_plain,
#define TARGET_RULES(name) &te_rules_##name,
#include "target/targets.def"
};

/* The rules that take x, with their costs. */
static void find_rules(const te_case *x, te_family family)
{
    for (size_t k = 0; k < sizeof sets / sizeof *sets; k++)
        for (const te_rule *r = sets[k]->rows; r < sets[k]->rows + sets[k]->n; r++)
            if ((r->family == family || r->family == TE_ANY) && (!r->takes || r->takes(x)))
                vec_push(&x->s->c->mem, &x->s->tried, ((te_tried){r, r->cost(x), false}));
}

/* The cheapest one that was not refused; of equals the first. */
static te_tried *cheapest(const te_sched *s)
{
    te_tried *best = NULL;
    for (size_t i = 0; i < s->tried.len; i++) {
        te_tried *k = &s->tried.data[i];
        if (!k->refused && (!best || k->cost < best->cost))
            best = k;
    }
    return best;
}

bool te_choose(const te_case *x, te_family family)
{
    const uint32_t errors = x->s->c->diags.errors;
    assert(x->t && x->last);
    find_rules(x, family);
    for (te_tried *k; x->s->c->diags.errors == errors && (k = cheapest(x->s)) != NULL; k->refused = true)
        if (k->rule->schedule(x))
            return true;
    return false;
}

#define X(id, hook, own_lines)                                                                                     \
    bool hook(te_sched *s, const struct target *t, const graph_node *n, te_node *anchor, te_node *last)            \
    {                                                                                                              \
        return te_choose(&(te_case){s, t, n, anchor, last}, id);                                                   \
    }
TE_FAMILIES(X)
#undef X

te_family te_family_of(te_schedule_hook hook)
{
#define X(id, name, own_lines) \
    if (hook == name)          \
        return id;
    TE_FAMILIES(X)
#undef X
    return TE_ANY;
}

bool te_keeps_lines(te_family family)
{
    static const bool keeps[] = {
        [TE_ANY] = false,
#define X(id, name, own_lines) [id] = own_lines,
        TE_FAMILIES(X)
#undef X
    };
    return keeps[family];
}

void te_print_tried(writer *w, const te_sched *s)
{
    const te_tried *chosen = cheapest(s);
    if (s->origin)
        w_fmt(w, "  // from %s\n", s->origin);
    else if (chosen)
        w_fmt(w, "  // rule: %s, %.3g cycles: %s\n", chosen->rule->name, chosen->cost, chosen->rule->help);
    for (size_t i = 0; i < s->tried.len; i++) {
        const te_tried *k = &s->tried.data[i];
        if (k != chosen)
            w_fmt(w, "  // not: %s, %.3g cycles%s: %s\n", k->rule->name, k->cost, k->refused ? ", does not fit" : "",
                  k->rule->help);
    }
}
