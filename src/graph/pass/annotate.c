/* SPDX-License-Identifier: Apache-2.0 */
/* AnnotateTarget: calls of a target's composites, and operators that it takes as they are, say which target has them.
 * Where several take an operator, the first in order of preference does. */
#include "graph/pass/offload.h"

#include <string.h>

/* The target whose composite n calls; NULL: none that is asked for. */
static const offload_target *target_of_call(const struct offload *o, const graph_node *n)
{
    const graph_func *callee = graph_callee(n);
    const char *composite = callee ? graph_func_text(callee, "composite") : NULL;
    const char *dot = composite ? strchr(composite, '.') : NULL;
    for (uint32_t i = 0; dot && i < o->n_targets; i++) {
        size_t len = strlen(o->targets[i].name);
        if ((size_t)(dot - composite) == len && memcmp(composite, o->targets[i].name, len) == 0)
            return &o->targets[i];
    }
    return NULL;
}

static bool takes(compiler *c, arena *scratch, const struct offload *o, const offload_target *t, graph_node *n,
                  graph_match *match)
{
    for (uint32_t i = 0; i < t->patterns.list.len; i++) {
        const graph_pattern *p = t->patterns.list.data[i];
        const char *own[1];
        if (!p->is_operator)
            continue;
        if (graph_pattern_match(c, scratch, p, NULL, n, match) && graph_is_pure(n) && graph_own_symbols(n, 1, own) == 0)
            return true;
        if (match->why && o->log)
            offload_refuse(c, o->log, n, match->why, match->why_matched);
    }
    return false;
}

static const offload_target *target_of_operator(compiler *c, arena *scratch, const struct offload *o, graph_node *n,
                                                graph_match *match)
{
    if ((n->op->flags & OPF_CALL) || n->op->infer == infer_constant)
        return NULL;
    for (uint32_t i = 0; i < o->n_targets; i++)
        if (takes(c, scratch, o, &o->targets[i], n, match))
            return &o->targets[i];
    return NULL;
}

static void annotate(compiler *c, graph_func *f, const struct offload *o)
{
    arena scratch;
    arena_init(&scratch, &c->mem);
    graph_match *match = arena_new(&scratch, graph_match);
    for (uint32_t i = 0; i < f->nodes.len; i++) {
        graph_node *n = f->nodes.data[i];
        arena_mark before = arena_get_mark(&scratch);
        const offload_target *t = target_of_call(o, n);
        t = t ? t : target_of_operator(c, &scratch, o, n, match);
        n->compiler = t ? t->name : n->compiler;
        arena_reset(&scratch, before);
    }
    arena_free(&scratch);
}

bool graph_pass_annotate_target(compiler *c, graph_module *m, const pass_options *o)
{
    for (uint32_t i = 0; i < m->funcs.len && o->offload; i++)
        if (!graph_is_fixed(m->funcs.data[i]))
            annotate(c, m->funcs.data[i], o->offload);
    return true;
}
