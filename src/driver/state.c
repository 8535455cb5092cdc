/* SPDX-License-Identifier: Apache-2.0 */
/* --state OUT=IN: an output of the model that is an input of its next call becomes memory of the instance. Both leave
 * the signature of the model. */
#include "driver/state.h"

#include "base/nearest.h"

#include <string.h>

static uint32_t find(graph_value *const *list, uint32_t n, const char *name, size_t len)
{
    for (uint32_t i = 0; i < n; i++)
        if (strlen(list[i]->name) == len && memcmp(list[i]->name, name, len) == 0)
            return i;
    return UINT32_MAX;
}

static const char *names_of(compiler *c, graph_value *const *list, uint32_t n)
{
    writer w;
    writer_init(&w, &c->mem);
    for (uint32_t i = 0; i < n && w.len < 300; i++)
        w_fmt(&w, "%s%s", i ? ", " : "", list[i]->name);
    return w.data ? w.data : "none";
}

static bool no_such(compiler *c, const char *given, const char *what, graph_value *const *list, uint32_t n,
                    const char *name)
{
    const char *names = names_of(c, list, n);
    diag_error(&c->diags, DIAG_USAGE, src_loc_none(), "--state %.200s: the model has no %s '%s'", given, what, name);
    diag_hint(&c->diags, "%sits %ss are: %s", nearest_in(name, names, &c->mem), what, names);
    return false;
}

/* Names may have a '=' themselves: the place where both sides are names counts, else the first. */
static bool find_pair(compiler *c, const graph_func *f, const char *given, graph_state *out)
{
    const char *first = strchr(given, '=');
    for (const char *at = first; at; at = strchr(at + 1, '=')) {
        out->result = find(f->results.data, f->results.len, given, (size_t)(at - given));
        out->param = find(f->params.data, f->params.len, at + 1, strlen(at + 1));
        if (out->result != UINT32_MAX && out->param != UINT32_MAX)
            return true;
    }
    const char *name = arena_strndup(&c->mem, given, (size_t)(first - given));
    if (find(f->results.data, f->results.len, name, strlen(name)) == UINT32_MAX)
        return no_such(c, given, "output", f->results.data, f->results.len, name);
    return no_such(c, given, "input", f->params.data, f->params.len, first + 1);
}

static bool check_pair(compiler *c, const graph_func *f, const char *given, const graph_state *s)
{
    const graph_value *from = f->results.data[s->result], *to = f->params.data[s->param];
    writer w, v;
    if (graph_state_of_param(f, s->param) || graph_state_of_result(f, s->result)) {
        diag_error(&c->diags, DIAG_USAGE, src_loc_none(), "--state %.200s: '%s' is a state already", given,
                   graph_state_of_param(f, s->param) ? to->name : from->name);
        diag_hint(&c->diags, "an output is the next value of one input, and an input has one output");
        return false;
    }
    writer_init(&w, &c->mem);
    writer_init(&v, &c->mem);
    type_print(&w, &from->type);
    type_print(&v, &to->type);
    if (from->type.kind != TYPE_TENSOR || !type_equal(&from->type, &to->type)) {
        diag_error(&c->diags, DIAG_USAGE, src_loc_none(),
                   "--state %.200s: the output has type %s, the input %s; a state has one type", given, w.data, v.data);
        diag_hint(&c->diags, "fix their shapes with --shape %s=... or --dim, or choose another pair", to->name);
        return false;
    }
    if (shape_is_static(to->type.shape))
        return true;
    diag_error(&c->diags, DIAG_USAGE, src_loc_none(), "--state %.200s: the shape of type %s is not fixed", given,
               v.data);
    diag_hint(&c->diags, "give --dim NAME=N: the memory of a state has one size");
    return false;
}

bool state_mark(compiler *c, graph_module *m, const compile_options *o, const state_pair **out)
{
    graph_func *f = graph_module_find(m, "main");
    state_pair *list = arena_array(&c->mem, state_pair, o->n_states + 1u);
    for (uint32_t i = 0; f && i < o->n_states; i++) {
        graph_state s = {0};
        if (!find_pair(c, f, o->states[i], &s) || !check_pair(c, f, o->states[i], &s))
            return false;
        graph_add_state(f, s);
        const graph_value *to = f->params.data[s.param];
        list[i] = (state_pair){f->results.data[s.result]->name, to->name, to->type};
    }
    if (out)
        *out = list;
    return true;
}
