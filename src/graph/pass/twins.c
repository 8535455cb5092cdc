/* SPDX-License-Identifier: Apache-2.0 */
/* Values in two forms, and the walk that converts nodes between them. */
#include "graph/pass/twins.h"

void twins_begin(twins *t, compiler *c, graph_func *f)
{
    arena_init(&t->scratch, &c->mem);
    ptr_map_init(&t->index, &t->scratch);
    rewrite_begin(&t->r, c, f);
}

twin *twins_of(twins *t, graph_value *x)
{
    uint32_t at = 0;
    if (!ptr_map_get(&t->index, x, &at)) {
        at = t->list.len;
        ptr_map_set(&t->index, x, at);
        vec_push(&t->scratch, &t->list, ((twin){.plain = x}));
    }
    return &t->list.data[at];
}

/* p stands for x, and has its name if it is a result. */
static graph_value *set_plain(twins *t, graph_value *x, graph_value *p)
{
    if (p && (x->mark & MARK_RESULT)) {
        const char *name = p->name;
        p->name = x->name;
        x->name = name;
    }
    return twins_of(t, x)->plain = p;
}

graph_value *twins_plain(twins *t, graph_value *x, src_loc loc)
{
    const twin known = *twins_of(t, x);
    return known.plain ? known.plain : set_plain(t, x, t->back(t, x, known.other, loc));
}

bool twins_set(twins *t, graph_node *n, graph_value *y)
{
    if (!y)
        return false;
    rewrite_take_name(y, n->outputs[0]);
    *twins_of(t, n->outputs[0]) = (twin){.other = y};
    return true;
}

bool twins_set_plain(twins *t, graph_node *n, graph_value *y)
{
    if (!y)
        return false;
    rewrite_take_name(y, n->outputs[0]);
    (void)set_plain(t, n->outputs[0], y);
    return true;
}

/* Its operands as the model has them. */
static bool keep(twins *t, graph_node *n)
{
    for (uint32_t k = 0; k < n->n_inputs; k++)
        if (n->inputs[k] && !(n->inputs[k] = twins_plain(t, n->inputs[k], n->loc)))
            return false;
    rewrite_keep(&t->r, n);
    if (t->kept)
        t->kept(t, n);
    return true;
}

bool twins_walk(twins *t)
{
    graph_func *f = t->r.f;
    for (uint32_t i = 0; i < f->nodes.len; i++) {
        graph_node *n = f->nodes.data[i];
        bool done = false;
        if (!t->convert(t, n, &done) || (!done && !keep(t, n)))
            return false;
    }
    for (uint32_t i = 0; i < f->results.len; i++) {
        graph_value *y = f->results.data[i];
        if (!(f->results.data[i] = twins_plain(t, y, y->def ? y->def->loc : src_loc_none())))
            return false;
    }
    return true;
}

bool twins_end(twins *t, bool ok)
{
    rewrite_end(&t->r);
    arena_free(&t->scratch);
    return ok && !t->r.failed;
}
