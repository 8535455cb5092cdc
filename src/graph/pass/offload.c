/* SPDX-License-Identifier: Apache-2.0 */
/* The targets of a partition with their patterns, what a node costs, and what is kept for the report. */
#include "graph/pass/offload.h"

#include "base/nearest.h"
#include "base/ptr_map.h"
#include "graph/pass/outline.h"

#include <ctype.h>
#include <string.h>

const offload_target *offload_find(const struct offload *o, const char *name)
{
    for (uint32_t i = 0; i < o->n_targets; i++)
        if (strcmp(o->targets[i].name, name) == 0)
            return &o->targets[i];
    return NULL;
}

static bool no_patterns(compiler *c, const char *name, const struct target *row)
{
    if (row) {
        diag_error(&c->diags, DIAG_USAGE, src_loc_none(), "--offload: the target %s cannot take parts of a model",
                   name);
        diag_hint(&c->diags, "it has no patterns; --patterns FILE gives some (docs/reference/partition.md)");
        return false;
    }
    diag_error(&c->diags, DIAG_USAGE, src_loc_none(), "--offload: '%.100s' is unknown", name);
    const char *known = target_region_names(c);
    diag_hint(&c->diags, "%s%s%s%s--load-codegen FILE adds a target of your own (docs/how-to/add-a-back-end.md)",
              nearest_in(name, known, &c->mem), *known ? "it takes " : "", known, *known ? "; " : "");
    return false;
}

static bool open_target(compiler *c, const offload_spec *s, const graph_patterns *own, offload_target *t)
{
    static const target_offload nothing = {0};
    t->row = target_lookup(c, t->name);
    const target_offload *says = t->row && t->row->offload ? t->row->offload : &nothing;
    const char *text = says->patterns ? says->patterns : "";
    for (uint32_t i = 0; i < own->list.len; i++)
        if (own->list.data[i]->target == t->name)
            vec_push(&c->mem, &t->patterns.list, own->list.data[i]);
    if (!graph_patterns_parse(c, arena_printf(&c->mem, "patterns of target %s", t->name), text, strlen(text), t->name,
                              &t->patterns))
        return false;
    if (t->patterns.list.len == 0)
        return no_patterns(c, t->name, t->row);
    t->least_work = s->least_work >= 0 ? (uint64_t)s->least_work : says->least_work;
    t->binds_constants = s->bind_constants || says->binds_constants;
    return true;
}

/* Patterns of targets that nobody asked for do nothing: said once for each target. */
static void warn_of_strangers(compiler *c, const struct offload *o, const graph_patterns *own)
{
    ptr_map said;
    uint32_t unused = 0;
    ptr_map_init(&said, &c->mem);
    for (uint32_t i = 0; i < own->list.len; i++) {
        const graph_pattern *p = own->list.data[i];
        if (offload_find(o, p->target) || ptr_map_get(&said, p->target, &unused))
            continue;
        ptr_map_set(&said, p->target, 1);
        (void)diag_warning(&c->diags, DIAG_USAGE, p->loc,
                           "--patterns: '%.100s' is of target %.100s, which --offload does not name", p->name,
                           p->target);
        diag_hint(&c->diags, "its patterns are not used; --offload names the targets that take parts");
    }
}

static bool read_texts(compiler *c, const offload_spec *s, const struct offload *o, graph_patterns *out)
{
    for (uint32_t i = 0; i < s->n_texts; i++)
        if (!graph_patterns_parse(c, s->texts[i].file, s->texts[i].text, s->texts[i].len, NULL, out))
            return false;
    warn_of_strangers(c, o, out);
    return true;
}

static bool split_names(compiler *c, const char *names, offload_target *list, uint32_t *n)
{
    if (!*names)
        return diag_error(&c->diags, DIAG_USAGE, src_loc_none(), "--offload names no target");
    for (const char *at = names;; at++) {
        size_t len = strcspn(at, ",");
        const char *name = intern_n(c->names, at, len);
        if (len == 0)
            return diag_error(&c->diags, DIAG_USAGE, src_loc_none(), "--offload: a name is missing in '%.100s'", names);
        for (uint32_t i = 0; i < *n; i++)
            if (list[i].name == name)
                return diag_error(&c->diags, DIAG_USAGE, src_loc_none(), "--offload: '%.100s' is given twice", name);
        list[(*n)++] = (offload_target){.name = name};
        at += len;
        if (!*at)
            return true;
    }
}

bool offload_open(compiler *c, const offload_spec *s, const struct offload **out)
{
    struct offload *o = arena_new(&c->mem, struct offload);
    offload_target *list = arena_array(&c->mem, offload_target, strlen(s->targets) / 2 + 1);
    graph_patterns own = {0};
    o->targets = list;
    o->log = arena_new(&c->mem, offload_log);
    ptr_map_init(&o->log->reasons, &c->mem);
    if (!split_names(c, s->targets, list, &o->n_targets))
        return false;
    if (!read_texts(c, s, o, &own))
        return false;
    for (uint32_t i = 0; i < o->n_targets; i++)
        if (!open_target(c, s, &own, &list[i]))
            return false;
    *out = o;
    return true;
}

bool offload_is_literal(const graph_node *n, uint32_t i)
{
    const tensor_data *t = graph_constant(n->inputs[i]);
    return t && ((t->count == 1 && t->rank <= 1) || graph_is_shape_arg(n, i));
}

const char *offload_c_name(compiler *c, const char *name)
{
    char *s = arena_strdup(&c->mem, name);
    for (char *at = s; *at; at++)
        if (!isalnum((unsigned char)*at) || (unsigned char)*at > 127)
            *at = '_';
    return s;
}

void offload_drop_composites(graph_module *m)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < m->funcs.len; i++)
        m->funcs.data[i]->mark = 0;
    for (uint32_t i = 0; i < m->funcs.len; i++)
        for (uint32_t k = 0; k < m->funcs.data[i]->nodes.len; k++) {
            graph_func *callee = graph_callee(m->funcs.data[i]->nodes.data[k]);
            if (callee)
                callee->mark = 1;
        }
    for (uint32_t i = 0; i < m->funcs.len; i++)
        if (m->funcs.data[i]->mark || !graph_func_text(m->funcs.data[i], "composite"))
            m->funcs.data[kept++] = m->funcs.data[i];
    m->funcs.len = kept;
}

/* --- the log --- */

void offload_refuse(compiler *c, offload_log *log, const graph_node *n, const char *why, uint32_t fitted)
{
    uint32_t at = 0;
    bool known = ptr_map_get(&log->reasons, n, &at);
    if (known && log->fitted.data[at] >= fitted)
        return;
    why = arena_strdup(&c->mem, why);
    if (known) {
        log->why.data[at] = why;
        log->fitted.data[at] = fitted;
        return;
    }
    ptr_map_set(&log->reasons, n, log->why.len);
    vec_push(&c->mem, &log->why, why);
    vec_push(&c->mem, &log->fitted, fitted);
}

/* --- work --- */

static uint64_t times(uint64_t a, uint64_t b)
{
    uint64_t out;
    return a == UINT64_MAX || b == UINT64_MAX || __builtin_mul_overflow(a, b, &out) ? UINT64_MAX : out;
}

uint64_t graph_work_add(uint64_t a, uint64_t b)
{
    uint64_t out;
    return a == UINT64_MAX || b == UINT64_MAX || __builtin_add_overflow(a, b, &out) ? UINT64_MAX : out;
}

static uint64_t extent(dim d)
{
    int64_t n = dim_bound(d);
    return n < 0 ? UINT64_MAX : (uint64_t)n;
}

static uint64_t elements(const graph_value *v)
{
    uint64_t n = 1;
    if (!v || v->type.kind != TYPE_TENSOR || v->type.shape.rank < 0)
        return UINT64_MAX;
    for (int32_t i = 0; i < v->type.shape.rank; i++)
        n = times(n, extent(v->type.shape.dims[i]));
    return n;
}

/* Elements for one index of an axis, counted from the end when negative. */
static uint64_t elements_of_one(const graph_value *v, int32_t axis)
{
    uint64_t n = elements(v);
    const shape s = v->type.shape;
    axis += axis < 0 ? s.rank : 0;
    if (n == UINT64_MAX || axis < 0 || axis >= s.rank)
        return n;
    uint64_t d = extent(s.dims[axis]);
    return d ? n / d : 0;
}

/* By the attributes that only convolutions, or only products, have. */
static uint64_t node_work(const graph_node *n)
{
    uint64_t most = 0;
    bool transposed = graph_attr(n, "output_padding") != NULL, conv = transposed || graph_attr(n, "kernel_layout");
    if (conv && n->n_inputs >= 2 && n->inputs[1] && n->n_outputs) {
        return times(elements(transposed ? n->inputs[0] : n->outputs[0]), elements_of_one(n->inputs[1], 0));
    }
    if (n->n_inputs >= 2 && n->inputs[0] && n->n_outputs && graph_attr(n, "transpose_a")) {
        const shape a = n->inputs[0]->type.shape;
        int32_t axis = a.rank - 1 - (graph_attr_int(n, "transpose_a") != 0 && a.rank > 1);
        return a.rank < 1 ? UINT64_MAX : times(elements(n->outputs[0]), extent(a.dims[axis]));
    }
    for (uint32_t i = 0; i < n->n_inputs + n->n_outputs; i++) {
        const graph_value *v = i < n->n_inputs ? n->inputs[i] : n->outputs[i - n->n_inputs];
        uint64_t count = v && !graph_constant(v) ? elements(v) : 0;
        most = count > most ? count : most;
    }
    return most;
}

uint64_t graph_work(const graph_node *n)
{
    const graph_func *callee = graph_callee(n);
    uint64_t sum = 0;
    if (n->op->infer == infer_constant)
        return 0;
    if (!callee)
        return node_work(n);
    for (uint32_t i = 0; i < callee->nodes.len; i++)
        sum = graph_work_add(sum, graph_work(callee->nodes.data[i]));
    return sum;
}
