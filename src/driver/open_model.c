/* SPDX-License-Identifier: Apache-2.0 */
/* What a model with open dimensions has: its nodes by operator, its weights, and the types of its inputs and outputs.
 * No pass has run. */
#include "driver/open_model.h"

#include "base/json_out.h"
#include "graph/op.h"

#include <string.h>

static bool is_known(const open_model *m, const char *symbol)
{
    for (uint32_t i = 0; i < m->n_symbols; i++)
        if (strcmp(m->symbols[i], symbol) == 0)
            return true;
    return false;
}

static uint32_t count_extents(const graph_func *f)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < f->params.len; i++)
        n += f->params.data[i]->type.shape.rank > 0 ? (uint32_t)f->params.data[i]->type.shape.rank : 0;
    return n;
}

/* The symbols of inputs that have no bound. An input of unknown rank is left to the compile, which says what to do. */
static void find_symbols(compiler *c, const graph_func *f, open_model *m)
{
    m->symbols = arena_array(&c->mem, const char *, count_extents(f) + 1u);
    for (uint32_t i = 0; i < f->params.len; i++) {
        const shape *s = &f->params.data[i]->type.shape;
        for (int32_t k = 0; k < s->rank; k++) {
            const char *symbol = dim_symbol_name(s->dims[k]);
            if (symbol && dim_bound(s->dims[k]) < 0 && !is_known(m, symbol))
                m->symbols[m->n_symbols++] = symbol;
        }
    }
}

/* The operator of the model; of graph text the graph's own. */
static const char *kind_of(const graph_node *n)
{
    return n->loc.op && *n->loc.op ? n->loc.op : n->op->name;
}

/* The name of the node, else of its first result. */
static const char *name_of(compiler *c, const graph_node *n)
{
    if (n->loc.node && *n->loc.node)
        return n->loc.node;
    return n->n_outputs > 0 ? arena_printf(&c->mem, "%%%s", n->outputs[0]->name) : "";
}

/* An operator of the model's file may be several nodes here, one after the other. */
static bool same_in_file(const src_loc *a, const src_loc *b)
{
    return a && a->node_index >= 0 && a->node_index == b->node_index && a->op && b->op && strcmp(a->op, b->op) == 0;
}

static void count_nodes(compiler *c, const graph_func *f, open_model *m)
{
    const src_loc *last = NULL;
    for (uint32_t i = 0; i < f->nodes.len; i++) {
        const graph_node *n = f->nodes.data[i];
        if (n->n_outputs > 0 && graph_constant(n->outputs[0])) {
            const int64_t bytes = type_bytes(&n->outputs[0]->type);
            m->constant_bytes += bytes > 0 ? (uint64_t)bytes : 0;
            continue;
        }
        if (!same_in_file(last, &n->loc)) {
            groups_add(&m->kinds, i, kind_of(n), name_of(c, n));
            m->n_nodes++;
        }
        last = &n->loc;
    }
}

bool open_model_read(compiler *c, const char *path, const compile_options *o, open_model *out)
{
    compile_options as_is = *o;
    graph_module *module;
    bool computation;
    compile_set_emit(&as_is, EMIT_GRAPH); /* which leaves dimensions open */
    *out = (open_model){0};
    if (!pipeline_is_computation(c, path, o, &computation))
        return false;
    if (computation)
        return true;
    if (!pipeline_load_inputs(c, path, &as_is, &module))
        return false;
    const graph_func *main = graph_module_find(module, "main");
    if (main)
        find_symbols(c, main, out);
    if (out->n_symbols == 0)
        return true;
    if (!pipeline_load(c, path, &as_is, &module))
        return false;
    out->main = graph_module_find(module, "main");
    groups_begin(&out->kinds, c);
    count_nodes(c, out->main, out);
    return true;
}

const char *open_model_kind(const open_model *m, uint32_t kind)
{
    return kind_of(m->main->nodes.data[m->kinds.all.data[kind].first]);
}

static void put_tensor(json_out *j, arena *a, const graph_value *v)
{
    json_out_object(j, NULL);
    json_out_text(j, "name", v->name);
    json_out_text(j, "dtype", dtype_name(v->type.dt));
    json_out_array(j, "shape");
    for (int32_t k = 0; k < v->type.shape.rank; k++) {
        writer w;
        writer_init(&w, a);
        dim_print(&w, v->type.shape.dims[k]);
        json_out_text(j, NULL, w.data);
    }
    json_out_end(j);
    json_out_end(j);
}

void open_model_json(writer *w, const open_model *m)
{
    json_out j = json_out_begin(w, JSON_OUT_LINES);
    json_out_object(&j, NULL);
    json_out_array(&j, "open");
    for (uint32_t i = 0; i < m->n_symbols; i++)
        json_out_text(&j, NULL, m->symbols[i]);
    json_out_end(&j);
    json_out_array(&j, "inputs");
    for (uint32_t i = 0; i < m->main->params.len; i++)
        put_tensor(&j, w->a, m->main->params.data[i]);
    json_out_end(&j);
    json_out_array(&j, "outputs");
    for (uint32_t i = 0; i < m->main->results.len; i++)
        put_tensor(&j, w->a, m->main->results.data[i]);
    json_out_end(&j);
    json_out_array(&j, "operators");
    for (uint32_t i = 0; i < m->kinds.all.len; i++) {
        json_out_object(&j, NULL);
        json_out_text(&j, "kind", open_model_kind(m, i));
        json_out_uint(&j, "count", m->kinds.all.data[i].n);
        json_out_end(&j);
    }
    json_out_end(&j);
    json_out_uint(&j, "nodes", m->n_nodes);
    json_out_uint(&j, "constant_bytes", m->constant_bytes);
    json_out_end(&j);
    w_str(w, "\n");
}
