/* SPDX-License-Identifier: Apache-2.0 */
/* What a partition has to tell: regions with what is in them, and every node that stayed, with the reason. */
#include "graph/pass/offload.h"

#include <string.h>

void offload_add_name(writer *w, const char *name)
{
    size_t n = strlen(name);
    if (w->len > 400)
        return;
    for (const char *at = w->len ? strstr(w->data, name) : NULL; at; at = strstr(at + 1, name))
        if ((at == w->data || at[-1] == ' ') && (at[n] == ',' || at[n] == '\0'))
            return;
    w_fmt(w, "%s%s", w->len ? ", " : "", name);
}

static void tell_region(compiler *c, const graph_func *f, offload_log *log)
{
    offload_region r = {.name = f->name, .target = graph_func_text(f, "compiler")};
    writer w;
    writer_init(&w, &c->mem);
    for (uint32_t i = 0; i < f->nodes.len; i++) {
        const graph_node *n = f->nodes.data[i];
        const graph_func *callee = graph_callee(n);
        const char *composite = callee ? graph_func_text(callee, "composite") : NULL;
        if (n->op->infer == infer_constant)
            continue;
        offload_add_name(&w, composite ? composite : n->op->name);
        for (uint32_t k = 0; callee && k < callee->nodes.len; k++)
            r.n_nodes += callee->nodes.data[k]->op->infer != infer_constant;
        r.n_nodes += !callee;
        r.work = graph_work_add(r.work, graph_work(n));
    }
    r.operations = w.data;
    vec_push(&c->mem, &log->regions, r);
}

static const char *no_pattern(compiler *c, const struct offload *o)
{
    writer w;
    writer_init(&w, &c->mem);
    w_str(&w, "no pattern of ");
    for (uint32_t i = 0; i < o->n_targets; i++)
        w_fmt(&w, "%s%s", i == 0 ? "" : i + 1 == o->n_targets ? " or " : ", ", o->targets[i].name);
    w_str(&w, " takes it");
    return w.data;
}

static void tell_node(compiler *c, const graph_node *n, const char *otherwise, offload_log *log)
{
    uint32_t at = 0;
    const char *name = n->loc.node && *n->loc.node ? n->loc.node : n->n_outputs ? n->outputs[0]->name : "";
    bool known = ptr_map_get(&log->reasons, n, &at);
    vec_push(&c->mem, &log->stayed, (offload_stay){name, n->op->name, known ? log->why.data[at] : otherwise});
}

void offload_tell(compiler *c, const graph_module *m, const struct offload *o)
{
    const char *otherwise = no_pattern(c, o);
    o->log->regions.len = o->log->stayed.len = 0;
    for (uint32_t i = 0; i < m->funcs.len; i++) {
        const graph_func *f = m->funcs.data[i];
        if (graph_func_text(f, "compiler"))
            tell_region(c, f, o->log);
        for (uint32_t k = 0; k < f->nodes.len && !graph_is_fixed(f); k++)
            if (!(f->nodes.data[k]->op->flags & OPF_CALL) && f->nodes.data[k]->op->infer != infer_constant)
                tell_node(c, f->nodes.data[k], otherwise, o->log);
    }
}
