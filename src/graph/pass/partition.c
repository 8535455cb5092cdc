/* SPDX-License-Identifier: Apache-2.0 */
/* PartitionGraph: nodes that a target has taken become functions with the attribute `compiler`, one for each region,
 * and calls of them. A region with less work than the target asks for stays, and its composites are inlined again. The
 * log says what runs where, and why the rest stayed. */
#include "graph/pass/offload.h"
#include "graph/pass/outline.h"
#include "graph/pass/rewrite.h"

#include <string.h>

#define NONE   UINT32_MAX
#define LEAVES 1u /* in the mark of a value: somebody outside of its region reads it */

/* Nodes that become one function. */
typedef struct region {
    const char *target;
    uint32_t number; /* as the annotation has it; 0: one node */
    VEC(graph_node *) nodes;
    VEC(graph_value *) results;
    uint64_t work;
    const char *why; /* it stays */
} region;

typedef struct partitioner {
    compiler *c;
    graph_func *f;
    const struct offload *o; /* NULL: nobody said more than the text */
    uint32_t *count;         /* functions made so far, for names */
    arena scratch;
    VEC(region) regions;
} partitioner;

/* --- regions --- */

/* Marks nodes with their region, NONE: of none. Regions of one target and number are found again by that number. */
static void collect(partitioner *p)
{
    ptr_map *numbers = arena_new(&p->scratch, ptr_map); /* "acme 3", interned -> region */
    ptr_map_init(numbers, &p->scratch);
    for (uint32_t i = 0; i < p->f->nodes.len; i++) {
        graph_node *n = p->f->nodes.data[i];
        uint32_t at = p->regions.len;
        n->mark = NONE;
        if (!n->compiler)
            continue;
        const char *key = n->region ? arena_printf(&p->scratch, "%s %u", n->compiler, n->region) : NULL;
        key = key ? intern(p->c->names, key) : NULL;
        if (!key || !ptr_map_get(numbers, key, &at)) {
            vec_push(&p->scratch, &p->regions, (region){.target = n->compiler, .number = n->region});
            if (key)
                ptr_map_set(numbers, key, at);
        }
        n->mark = at;
        vec_push(&p->scratch, &p->regions.data[at].nodes, n);
        p->regions.data[at].work = graph_work_add(p->regions.data[at].work, graph_work(n));
    }
}

static void find_results(partitioner *p)
{
    graph_func *f = p->f;
    for (uint32_t i = 0; i < f->nodes.len; i++)
        for (uint32_t k = 0; k < f->nodes.data[i]->n_outputs; k++)
            f->nodes.data[i]->outputs[k]->mark = 0;
    for (uint32_t i = 0; i < f->nodes.len; i++)
        for (uint32_t k = 0; k < f->nodes.data[i]->n_inputs; k++) {
            graph_value *v = f->nodes.data[i]->inputs[k];
            if (v && v->def && v->def->mark != f->nodes.data[i]->mark)
                v->mark = LEAVES;
        }
    for (uint32_t i = 0; i < f->results.len; i++)
        f->results.data[i]->mark = LEAVES;
    for (uint32_t r = 0; r < p->regions.len; r++)
        for (uint32_t i = 0; i < p->regions.data[r].nodes.len; i++) {
            const graph_node *n = p->regions.data[r].nodes.data[i];
            for (uint32_t k = 0; k < n->n_outputs; k++)
                if (n->outputs[k]->def == n && n->outputs[k]->mark == LEAVES)
                    vec_push(&p->scratch, &p->regions.data[r].results, n->outputs[k]);
        }
}

/* Which regions stay. */
static void judge(partitioner *p)
{
    for (uint32_t i = 0; i < p->regions.len; i++) {
        region *r = &p->regions.data[i];
        const offload_target *t = p->o ? offload_find(p->o, r->target) : NULL;
        if (t && r->work < t->least_work)
            r->why = arena_printf(&p->scratch,
                                  "%s: the region is too small: work %llu is less than %llu (--offload-least)",
                                  r->target, (unsigned long long)r->work, (unsigned long long)t->least_work);
        else if (r->results.len == 0)
            r->why = arena_printf(&p->scratch, "%s: no node reads the results of the region", r->target);
        for (uint32_t k = 0; k < r->nodes.len && r->why; k++) {
            r->nodes.data[k]->compiler = NULL;
            r->nodes.data[k]->region = 0;
        }
    }
}

/* --- what stays --- */

static void refuse(partitioner *p, const graph_node *n, const char *why)
{
    if (p->o && why)
        offload_refuse(p->c, p->o->log, n, why, UINT32_MAX);
}

/* The nodes of a composite in place of its call; its results keep their names. */
static bool inline_call(rewriter *r, const graph_node *n, const graph_func *f)
{
    graph_value **results = arena_array(&r->c->mem, graph_value *, f->results.len + 1u);
    rewrite_inline(r, f, n->inputs, results);
    for (uint32_t i = 0; i < n->n_outputs; i++) {
        if (results[i]->def)
            rewrite_take_name(results[i], n->outputs[i]);
        if (!rewrite_stand_for(r, n->outputs[i], results[i], n->loc))
            return false;
    }
    return true;
}

/* Calls of composites that no target has give way to the nodes in them. */
static bool dissolve(partitioner *p)
{
    rewriter r;
    bool ok = true;
    rewrite_begin(&r, p->c, p->f);
    for (uint32_t i = 0; i < p->f->nodes.len && ok; i++) {
        graph_node *n = p->f->nodes.data[i];
        const char *why = n->mark == NONE ? NULL : p->regions.data[n->mark].why;
        const graph_func *callee = n->compiler ? NULL : graph_callee(n);
        uint32_t from = r.nodes.len;
        rewrite_operands(n);
        if (callee && graph_func_text(callee, "composite"))
            ok = inline_call(&r, n, callee);
        else
            rewrite_keep(&r, n);
        for (uint32_t k = from; k < r.nodes.len; k++) {
            r.nodes.data[k]->mark = n->compiler ? n->mark : NONE;
            refuse(p, r.nodes.data[k], why);
        }
    }
    rewrite_end(&r);
    return ok;
}

/* --- functions --- */

static bool takes(const void *bind, const graph_node *n, uint32_t i)
{
    return *(const bool *)bind || offload_is_literal(n, i);
}

static graph_node *make_call(partitioner *p, const region *r)
{
    compiler *c = p->c;
    const offload_target *t = p->o ? offload_find(p->o, r->target) : NULL;
    const bool bind = t && t->binds_constants;
    const attr owner = attr_string(c, "compiler", r->target);
    const outline_spec s = {
        .name = offload_c_name(c, arena_printf(&p->scratch, "%s_%u", r->target, (*p->count)++)),
        .nodes = r->nodes.data,
        .n_nodes = r->nodes.len,
        .results = r->results.data,
        .n_results = r->results.len,
        .attrs = &owner,
        .n_attrs = 1,
        .takes = takes,
        .context = &bind,
        .loc = r->nodes.data[0]->loc};
    graph_node *call = graph_outline(c, p->f, &s);
    graph_func *callee = call->attrs[0].u.func;
    vec_push(&c->mem, &callee->attrs, attr_string(c, "global_symbol", callee->name));
    return call;
}

/* The calls that wait for one another. */
static bool refuse_cycle(partitioner *p)
{
    writer w;
    writer_init(&w, &p->scratch);
    for (uint32_t i = 0; i < p->f->nodes.len && w.len < 300; i++) {
        const graph_node *n = p->f->nodes.data[i];
        const graph_func *callee = n->mark == 1 ? graph_callee(n) : NULL;
        if (callee && graph_func_text(callee, "compiler"))
            w_fmt(&w, "%s@%s", w.len ? ", " : "", callee->name);
    }
    diag_error(&p->c->diags, DIAG_VERIFY, src_loc_none(),
               "@%s: as one function, this region would form a cycle: its result goes through other nodes and comes "
               "back (%s)", p->f->name, w.data);
    diag_hint(&p->c->diags, "MergeCompilerRegions numbers regions without cycles");
    return false;
}

static bool outline(partitioner *p)
{
    VEC(graph_node *) list = {0};
    graph_func *f = p->f;
    for (uint32_t i = 0; i < f->nodes.len; i++) {
        graph_node *n = f->nodes.data[i];
        const region *r = n->compiler ? &p->regions.data[n->mark] : NULL;
        if (!r)
            vec_push(&p->c->mem, &list, n);
        else if (r->nodes.data[r->nodes.len - 1] == n)
            vec_push(&p->c->mem, &list, make_call(p, r));
    }
    f->nodes.data = list.data;
    f->nodes.len = list.len;
    f->nodes.cap = list.cap;
    graph_drop_constants(f);
    return graph_sort(f) || refuse_cycle(p);
}

static bool partition(compiler *c, graph_func *f, const struct offload *o, uint32_t *count)
{
    partitioner p = {.c = c, .f = f, .o = o, .count = count};
    arena_init(&p.scratch, &c->mem);
    collect(&p);
    find_results(&p);
    judge(&p);
    bool ok = dissolve(&p);
    ok = ok && outline(&p);
    arena_free(&p.scratch);
    return ok;
}

bool graph_pass_partition(compiler *c, graph_module *m, const pass_options *o)
{
    uint32_t count = m->funcs.len, made = 0; /* those that are added are regions */
    for (uint32_t i = 0; i < count; i++)
        if (!graph_is_fixed(m->funcs.data[i]) && !partition(c, m->funcs.data[i], o->offload, &made))
            return false;
    offload_drop_composites(m);
    if (o->offload)
        offload_tell(c, m, o->offload);
    return true;
}
