/* SPDX-License-Identifier: Apache-2.0 */
/* The log of a partition as text. Nodes that stayed for one reason stand together. */
#include "driver/offload_report.h"

#include "driver/groups.h"
#include "type/target.h"

#include <string.h>

static const char *why_declined(const compiler *c, const char *name, const prog_kernel *k)
{
    const target *t = target_lookup(c, name);
    if (k->declined)
        return k->declined;
    const bool able = t && (t->lower || t->codegen);
    return able ? "it cannot compile these nodes" : "it has neither loops nor a code generator";
}

void offload_note_runners(compiler *c, offload_log *log, const prog_module *m)
{
    ptr_map by_name;
    ptr_map_init(&by_name, &c->mem);
    for (uint32_t i = 0; i < log->regions.len; i++)
        ptr_map_set(&by_name, intern(c->names, log->regions.data[i].name), i);
    for (uint32_t i = 0; i < m->kernels.len; i++) {
        const prog_kernel *k = m->kernels.data[i];
        uint32_t at = 0;
        if (!k->region || !ptr_map_get(&by_name, intern(c->names, k->region), &at))
            continue;
        offload_region *r = &log->regions.data[at];
        r->on = k->target->name;
        r->why = strcmp(r->on, r->target) == 0 ? NULL : why_declined(c, r->target, k);
    }
}

/* Names are the model's, and those of its patterns. */
static const char *shown(compiler *c, const char *text)
{
    return text_line(arena_strdup(&c->mem, text));
}

static void show_region(compiler *c, writer *w, const offload_region *r)
{
    w_fmt(w, "  %s on %s: %s; %u nodes, ", r->name, r->on ? r->on : r->target, shown(c, r->operations), r->n_nodes);
    if (r->work == UINT64_MAX)
        w_fmt(w, "work not bounded");
    else
        w_fmt(w, "work %llu", (unsigned long long)r->work);
    if (r->why)
        w_fmt(w, "; %s declines it: %s", r->target, shown(c, r->why));
    w_str(w, "\n");
}

/* "  exp (e1, e2): no pattern of acme takes it" */
static void show_stays(compiler *c, writer *w, const offload_log *log)
{
    groups all;
    groups_begin(&all, c);
    for (uint32_t i = 0; i < log->stayed.len; i++) {
        const offload_stay *s = &log->stayed.data[i];
        groups_add(&all, i, arena_printf(&c->mem, "%s: %s", s->op, s->why), s->node);
    }
    w_str(w, all.all.len ? "stayed:\n" : "");
    for (uint32_t i = 0; i < all.all.len; i++) {
        const group *g = &all.all.data[i];
        const offload_stay *first = &log->stayed.data[g->first];
        w_fmt(w, "  %s (", first->op);
        groups_write_names(w, g);
        w_line(w, "): %s", shown(c, first->why));
    }
}

void offload_show(compiler *c, writer *w, const offload_log *log)
{
    w_line(w, log->regions.len ? "regions:" : "regions: none");
    for (uint32_t i = 0; i < log->regions.len; i++)
        show_region(c, w, &log->regions.data[i]);
    show_stays(c, w, log);
}

/* --- targets that run nothing --- */

static bool runs_some(const struct offload *o, const char *who)
{
    for (uint32_t i = 0; i < o->log->regions.len; i++) {
        const offload_region *r = &o->log->regions.data[i];
        if (strcmp(r->target, who) == 0 && !r->why)
            return true;
    }
    return false;
}

static const char *operators_of(compiler *c, const graph_patterns *all)
{
    writer w;
    writer_init(&w, &c->mem);
    for (uint32_t i = 0; i < all->list.len; i++)
        for (uint32_t k = 0; k < all->list.data[i]->n_nodes; k++)
            for (uint32_t j = 0; j < all->list.data[i]->nodes[k].n_ops; j++)
                offload_add_name(&w, all->list.data[i]->nodes[k].ops[j]->name);
    return w.data;
}

/* A node that a pattern of the target nearly took, or a region that it declined. */
static const char *nearest_reason(compiler *c, const struct offload *o, const char *who)
{
    const size_t n = strlen(who);
    for (uint32_t i = 0; i < o->log->regions.len; i++) {
        const offload_region *r = &o->log->regions.data[i];
        if (strcmp(r->target, who) == 0)
            return arena_printf(&c->mem, "it declines %s (%s)", r->name, r->why);
    }
    for (uint32_t i = 0; i < o->log->stayed.len; i++) {
        const offload_stay *s = &o->log->stayed.data[i];
        if (strncmp(s->why, who, n) == 0 && s->why[n] == '.')
            return arena_printf(&c->mem, "'%s' stays (%s)", s->node, s->why);
    }
    return NULL;
}

void offload_warn(compiler *c, const char *path, const struct offload *o)
{
    for (uint32_t i = 0; i < o->n_targets; i++) {
        const offload_target *t = &o->targets[i];
        if (runs_some(o, t->name))
            continue;
        const char *why = nearest_reason(c, o, t->name);
        diag_warning(&c->diags, DIAG_USAGE, src_loc_none(), "--offload: no part of '%s' runs on %s, which takes %s",
                     path, t->name, operators_of(c, &t->patterns));
        if (t->row && t->row->offload && t->row->offload->advice)
            diag_hint(&c->diags, "%s", t->row->offload->advice);
        else
            diag_hint(&c->diags, "%s%slathe inspect --offload %s says why each operator stays",
                      why ? shown(c, why) : "", why ? "; " : "", t->name);
    }
}

void offload_show_short(writer *w, const offload_log *log)
{
    uint32_t nodes = 0, n_declined = 0;
    for (uint32_t i = 0; i < log->regions.len; i++) {
        nodes += log->regions.data[i].why ? 0 : log->regions.data[i].n_nodes;
        n_declined += log->regions.data[i].why != NULL;
    }
    w_line(w, "offload    regions %u, nodes %u, declined regions %u, nodes that stayed %u (inspect says why)",
           log->regions.len - n_declined, nodes, n_declined, log->stayed.len);
}
