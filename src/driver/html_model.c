/* SPDX-License-Identifier: Apache-2.0 */
/* A model as it was read: nodes, values, weights, copied out of the graph. */
#include "driver/html_model.h"

#include "base/ptr_map.h"
#include "graph/op.h"

#include <string.h>

/* Where a node stands in its model: its number in the list, or its line in a text; -1: nobody knows. */
static int32_t place_of(const src_loc *loc)
{
    return loc->node_index >= 0 ? loc->node_index : loc->line > 0 && loc->line <= INT32_MAX ? (int32_t)loc->line : -1;
}

typedef struct reading {
    compiler *c;
    const graph_func *f;
    html_model *m;
    ptr_map values; /* graph_value -> number */
} reading;

static uint32_t value_of(reading *r, const graph_value *v)
{
    uint32_t n;
    if (ptr_map_get(&r->values, v, &n))
        return n;
    n = r->m->values.len;
    vec_push(&r->c->mem, &r->m->values, ((html_model_value){v->name, v->type}));
    ptr_map_set(&r->values, v, n);
    return n;
}

/* One node of the model may have become several of the graph, which stand one behind the other. */
static bool is_same_node(const src_loc *a, const src_loc *b)
{
    return a->node_index >= 0 && a->node_index == b->node_index && a->node == b->node;
}

/* Numbers of nodes, by the value's mark. */
typedef struct life {
    uint32_t made, last_read; /* UINT32_MAX: a result */
} life;

static bool is_between(const graph_value *v, uint32_t first, uint32_t end, const life *lives)
{
    return v->def && lives[v->mark].made >= first && lives[v->mark].made < end;
}

static bool has(const uint32_t *list, uint32_t n, uint32_t x)
{
    for (uint32_t i = 0; i < n; i++)
        if (list[i] == x)
            return true;
    return false;
}

static void add_input(reading *r, html_model_node *to, const graph_value *v)
{
    const tensor_data *data = graph_constant(v);
    if (data) {
        vec_push(&r->c->mem, &to->weights, ((html_model_value){v->name, v->type}));
        return;
    }
    const uint32_t n = value_of(r, v);
    if (!has(to->inputs.data, to->inputs.len, n))
        vec_push(&r->c->mem, &to->inputs, n);
}

/* Nodes `first` to `end` of the function, which are one of the model. A value that only they read stays inside. */
static void add_group(reading *r, uint32_t first, uint32_t end, const life *lives)
{
    const graph_node *head = r->f->nodes.data[first];
    html_model_node to = {.place = place_of(&head->loc)};
    writer text;
    writer_init(&text, &r->c->mem);
    for (uint32_t i = first; i < end; i++) {
        const graph_node *n = r->f->nodes.data[i];
        if (n->n_outputs > 0 && graph_constant(n->outputs[0]))
            continue;
        for (uint32_t k = 0; k < n->n_inputs; k++)
            if (n->inputs[k] && (graph_constant(n->inputs[k]) || !is_between(n->inputs[k], first, end, lives)))
                add_input(r, &to, n->inputs[k]);
        for (uint32_t k = 0; k < n->n_outputs; k++)
            if (lives[n->outputs[k]->mark].last_read >= end)
                vec_push(&r->c->mem, &to.outputs, value_of(r, n->outputs[k]));
        w_str(&text, text.len ? "\n" : "");
        to.unread = n->op == &graph_op_unknown || n->op == &graph_op_unread ? n->op->name : to.unread;
        if (to.unread)
            w_str(&text, to.unread);
        else
            graph_print_call(&text, n);
    }
    if (text.len == 0)
        return;
    to.name = head->loc.node ? head->loc.node : "";
    to.op = head->loc.op && *head->loc.op ? head->loc.op : head->op->name;
    to.text = text.data;
    vec_push(&r->c->mem, &r->m->nodes, to);
}

static life *find_lives(compiler *c, const graph_func *f)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < f->nodes.len; i++)
        n += f->nodes.data[i]->n_outputs;
    life *lives = arena_array(&c->mem, life, n + 1u);
    n = 0;
    for (uint32_t i = 0; i < f->nodes.len; i++)
        for (uint32_t k = 0; k < f->nodes.data[i]->n_outputs; k++) {
            lives[n] = (life){i, i};
            f->nodes.data[i]->outputs[k]->mark = n++;
        }
    for (uint32_t i = 0; i < f->nodes.len; i++)
        for (uint32_t k = 0; k < f->nodes.data[i]->n_inputs; k++) {
            const graph_value *v = f->nodes.data[i]->inputs[k];
            if (v && v->def)
                lives[v->mark].last_read = i;
        }
    for (uint32_t i = 0; i < f->results.len; i++)
        if (f->results.data[i]->def)
            lives[f->results.data[i]->mark].last_read = UINT32_MAX;
    return lives;
}

static void count_weights(html_model *m, const graph_func *f)
{
    for (uint32_t i = 0; i < f->nodes.len; i++) {
        const graph_node *n = f->nodes.data[i];
        if (n->n_outputs > 0 && graph_constant(n->outputs[0]))
            m->weight_bytes += tensor_size(graph_constant(n->outputs[0]));
    }
}

/* For html_model_find, which is asked for every node of every kernel. */
static void sort_by_place(compiler *c, html_model *m)
{
    for (uint32_t i = 0; i < m->nodes.len; i++)
        if (m->nodes.data[i].place >= (int32_t)m->n_places)
            m->n_places = (uint32_t)m->nodes.data[i].place + 1;
    m->by_place = arena_array(&c->mem, uint32_t, m->n_places + 1u);
    memset(m->by_place, 0xff, m->n_places * sizeof *m->by_place);
    for (uint32_t i = m->nodes.len; i-- > 0;)
        if (m->nodes.data[i].place >= 0)
            m->by_place[m->nodes.data[i].place] = i;
}

html_model *html_model_of(compiler *c, const graph_module *graph)
{
    reading r = {.c = c, .f = graph_module_find(graph, "main"), .m = arena_new(&c->mem, html_model)};
    ptr_map_init(&r.values, &c->mem);
    if (!r.f)
        return r.m;
    for (uint32_t i = 0; i < r.f->params.len; i++)
        vec_push(&c->mem, &r.m->inputs, value_of(&r, r.f->params.data[i]));
    const life *lives = find_lives(c, r.f);
    for (uint32_t i = 0, end; i < r.f->nodes.len; i = end) {
        end = i + 1;
        while (end < r.f->nodes.len && is_same_node(&r.f->nodes.data[i]->loc, &r.f->nodes.data[end]->loc))
            end++;
        add_group(&r, i, end, lives);
    }
    for (uint32_t i = 0; i < r.f->results.len; i++)
        if (!graph_constant(r.f->results.data[i]))
            vec_push(&c->mem, &r.m->outputs, value_of(&r, r.f->results.data[i]));
    count_weights(r.m, r.f);
    sort_by_place(c, r.m);
    return r.m;
}

uint32_t html_model_find(const html_model *m, const src_loc *loc)
{
    const int32_t place = place_of(loc);
    if (place < 0 || place >= (int32_t)m->n_places)
        return UINT32_MAX;
    const uint32_t i = m->by_place[place];
    /* the body of a branch has a list of its own, with other names */
    return i < m->nodes.len && strcmp(m->nodes.data[i].name, loc->node ? loc->node : "") == 0 ? i : UINT32_MAX;
}

/* --- JSON --- */

static void write_value(json_out *j, const html_model_value *v)
{
    writer text;
    writer_init(&text, j->w->a);
    type_print(&text, &v->type);
    json_out_object(j, NULL);
    json_out_text(j, "name", v->name);
    json_out_text(j, "type", text.data);
    json_out_end(j);
}

static void write_numbers(json_out *j, const char *key, const uint32_t *list, uint32_t n)
{
    json_out_array(j, key);
    for (uint32_t i = 0; i < n; i++)
        json_out_uint(j, NULL, list[i]);
    json_out_end(j);
}

static void write_node(json_out *j, const html_model_node *n)
{
    json_out_object(j, NULL);
    json_out_text(j, "name", n->name);
    json_out_text(j, "op", n->op);
    write_numbers(j, "inputs", n->inputs.data, n->inputs.len);
    write_numbers(j, "outputs", n->outputs.data, n->outputs.len);
    json_out_array(j, "weights");
    for (uint32_t i = 0; i < n->weights.len; i++)
        write_value(j, &n->weights.data[i]);
    json_out_end(j);
    json_out_text(j, "text", n->text);
    if (n->unread)
        json_out_text(j, "unread", n->unread);
    json_out_end(j);
}

void html_model_write(json_out *j, const char *key, const html_model *m)
{
    json_out_object(j, key);
    json_out_array(j, "values");
    for (uint32_t i = 0; i < m->values.len; i++)
        write_value(j, &m->values.data[i]);
    json_out_end(j);
    write_numbers(j, "inputs", m->inputs.data, m->inputs.len);
    write_numbers(j, "outputs", m->outputs.data, m->outputs.len);
    json_out_uint(j, "weight_bytes", m->weight_bytes);
    json_out_array(j, "nodes");
    for (uint32_t i = 0; i < m->nodes.len; i++)
        write_node(j, &m->nodes.data[i]);
    json_out_end(j);
    json_out_end(j);
}
