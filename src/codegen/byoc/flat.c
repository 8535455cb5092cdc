/* SPDX-License-Identifier: Apache-2.0 */
/* A region as a list of operators. */
#include "codegen/byoc/flat.h"

#include <string.h>

const graph_value *flat_value(const flat_list *l, const graph_value *v)
{
    for (uint32_t at; v && ptr_map_get(&l->outer, v, &at);)
        v = l->values.data[at];
    return v;
}

static void stands_for(flat_list *l, const graph_value *inner, const graph_value *outer)
{
    ptr_map_set(&l->outer, inner, l->values.len);
    vec_push(l->a, &l->values, outer);
}

static bool add_op(flat_list *l, const graph_node *n)
{
    flat_op op = {.node = n, .n_in = n->n_inputs};
    if (n->n_inputs > FLAT_MOST_INPUTS || n->n_outputs < 1)
        return false;
    for (uint32_t i = 0; i < n->n_inputs; i++)
        op.in[i] = n->inputs[i] ? flat_value(l, n->inputs[i]) : NULL;
    op.out = flat_value(l, n->outputs[0]);
    vec_push(l->a, &l->ops, op);
    return true;
}

static bool add_nodes(flat_list *l, const graph_func *f, const graph_node **out_bad)
{
    for (uint32_t i = 0; i < f->nodes.len; i++) {
        const graph_node *n = f->nodes.data[i];
        const graph_func *inner = lathe_node_composite(n);
        for (uint32_t k = 0; inner && k < inner->params.len; k++)
            if (n->inputs[k])
                stands_for(l, inner->params.data[k], flat_value(l, n->inputs[k]));
        for (uint32_t k = 0; inner && k < inner->results.len; k++)
            stands_for(l, inner->results.data[k], n->outputs[k]);
        bool constant = strcmp(lathe_node_op(n), "constant") == 0;
        if (inner ? !add_nodes(l, inner, out_bad) : !constant && !add_op(l, n)) {
            *out_bad = *out_bad ? *out_bad : n;
            return false;
        }
    }
    return true;
}

/* Operators whose results nobody reads go: a library may have no memory for what it makes only for them, or end the
 * program, as XNNPACK does. Composites can hold such ones after all passes: of several results some may be unread. */
static void drop_dead(flat_list *l, const graph_func *f)
{
    ptr_map read;
    uint32_t unused, kept = 0;
    ptr_map_init(&read, l->a);
    bool *live = arena_array(l->a, bool, l->ops.len + 1u);
    for (uint32_t i = 0; i < f->results.len; i++)
        ptr_map_set(&read, flat_value(l, f->results.data[i]), 1);
    for (uint32_t i = l->ops.len; i-- > 0;) {
        const flat_op *op = &l->ops.data[i];
        for (uint32_t k = 0; k < op->node->n_outputs && !live[i]; k++)
            live[i] = ptr_map_get(&read, flat_value(l, op->node->outputs[k]), &unused);
        for (uint32_t k = 0; k < op->n_in && live[i]; k++)
            if (op->in[k])
                ptr_map_set(&read, op->in[k], 1);
    }
    for (uint32_t i = 0; i < l->ops.len; i++)
        if (live[i])
            l->ops.data[kept++] = l->ops.data[i];
    l->ops.len = kept;
}

bool flat_make(arena *a, const graph_func *f, flat_list *out, const graph_node **out_bad)
{
    *out = (flat_list){.a = a};
    *out_bad = NULL;
    ptr_map_init(&out->outer, a);
    if (!add_nodes(out, f, out_bad))
        return false;
    drop_dead(out, f);
    return true;
}

int64_t flat_number(const graph_node *n, const char *attribute, uint32_t i, int64_t otherwise)
{
    uint32_t count;
    const int64_t *list = lathe_node_ints(n, attribute, &count);
    return i < count ? list[i] : otherwise;
}

bool flat_is_image(const graph_value *v)
{
    return lathe_value_rank(v) == 4;
}

flat_op *flat_reader(flat_list *l, const graph_func *f, const graph_value *v)
{
    flat_op *found = NULL;
    for (uint32_t i = 0; i < f->results.len; i++)
        if (flat_value(l, f->results.data[i]) == v)
            return NULL;
    for (uint32_t i = 0; i < l->ops.len; i++)
        for (uint32_t k = 0; k < l->ops.data[i].n_in; k++) {
            if (l->ops.data[i].in[k] != v)
                continue;
            if (found)
                return NULL;
            found = &l->ops.data[i];
        }
    return found;
}
