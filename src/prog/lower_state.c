/* SPDX-License-Identifier: Apache-2.0 */
/* States: a parameter of main that holds what a result was in the run before. The two are one value of the program. It
 * is written by the operator that makes the result where all that read the old one come before, else by a copy at the
 * end; the pass states-in-place removes those copies whose operators may write over what they read. */
#include "graph/op.h"
#include "prog/lower.h"

static graph_value *param_of(const lowering *l, const graph_state *s)
{
    return l->f->params.data[s->param];
}

static graph_value *next_of(const lowering *l, const graph_state *s)
{
    return l->f->results.data[s->result];
}

/* The caller gets it, too: it has bytes of its own. */
static bool is_result(const lowering *l, const graph_value *v)
{
    const graph_value *base = lower_base(l->c, v);
    bool found = false;
    for (uint32_t i = 0; i < l->results.len; i++)
        found |= lower_base(l->c, l->results.data[i]) == base;
    return found;
}

/* What makes the bytes of the state's next value, when a step can make them in the state itself: all that read the old
 * value come before it. NULL: a copy is needed. */
static const graph_value *made_in_place(const lowering *l, const graph_state *s)
{
    const graph_value *param = param_of(l, s), *base = lower_base(l->c, next_of(l, s));
    uint32_t other;
    if (!base->def || graph_constant(base) || ptr_map_get(&l->into, base, &other) || is_result(l, base) ||
        base->type.dt != param->type.dt || type_bytes(&base->type) != type_bytes(&param->type))
        return NULL;
    const uint32_t made = lower_position(l->f, base->def);
    for (uint32_t i = made; i < l->f->nodes.len; i++)
        for (uint32_t k = 0; k < l->f->nodes.data[i]->n_inputs; k++)
            if (l->f->nodes.data[i]->inputs[k] && lower_base(l->c, l->f->nodes.data[i]->inputs[k]) == param)
                return NULL;
    return lower_last_reader(l->c, l->f, param) == UINT32_MAX ? NULL : base;
}

void lower_states(lowering *l)
{
    for (uint32_t i = 0; i < l->f->states.len; i++) {
        const graph_state *s = &l->f->states.data[i];
        graph_value *param = param_of(l, s);
        const uint32_t v = lower_value_in(l, param, SPACE_STATE, i, NULL);
        l->to->values.data[v].initial = s->initial;
        l->to->n_states++;
    }
    for (uint32_t i = 0; i < l->f->states.len; i++) {
        const graph_state *s = &l->f->states.data[i];
        const graph_value *base = made_in_place(l, s);
        if (base)
            ptr_map_set(&l->into, base, param_of(l, s)->mark - 1);
    }
}

static bool is_written(const lowering *l, const graph_state *s)
{
    uint32_t in;
    return next_of(l, s) == param_of(l, s) || /* it stays */
           (ptr_map_get(&l->into, lower_base(l->c, next_of(l, s)), &in) && in == param_of(l, s)->mark - 1);
}

/* What shows a state as it was is put aside before any of them is written. */
bool lower_write_states(lowering *l)
{
    const uint32_t n = l->f->states.len;
    graph_value **next = arena_array(&l->c->mem, graph_value *, n + 1u);
    const src_loc none = src_loc_none();
    for (uint32_t i = 0; i < n; i++) {
        const graph_state *s = &l->f->states.data[i];
        const graph_value *base = lower_base(l->c, next_of(l, s));
        next[i] = next_of(l, s);
        if (is_written(l, s) || base->def || !graph_state_of_param(l->f, base->index))
            continue;
        next[i] = lower_copy_into(l, next[i], PROG_NONE, none);
        if (!next[i])
            return false;
    }
    for (uint32_t i = 0; i < n; i++) {
        const graph_state *s = &l->f->states.data[i];
        if (!is_written(l, s) && !lower_copy_into(l, next[i], param_of(l, s)->mark - 1,
                                                  next[i]->def ? next[i]->def->loc : none))
            return false;
    }
    return true;
}
