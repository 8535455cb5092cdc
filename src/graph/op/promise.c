/* SPDX-License-Identifier: Apache-2.0 */
/* What attributes promise of a node's operands: graph/op/promise.h. */
#include "graph/op/promise.h"
#include "graph/op/nn.h"
#include "graph/op/steps.h"

#include <string.h>

bool graph_promises(const graph_node *n, uint32_t *out_first, uint32_t *out_last)
{
    *out_first = *out_last = 0;
    for (uint32_t i = 0; i < n->n_attrs; i++) {
        const bool pairs = strcmp(n->attrs[i].name, "pairs") == 0;
        if (!pairs && strcmp(n->attrs[i].name, "proved") != 0)
            continue;
        *out_first = 1;
        *out_last = pairs || n->n_inputs == 0 ? 1 : n->n_inputs < 3 ? n->n_inputs - 1 : 2; /* weights, places */
        return true;
    }
    return false;
}

bool graph_promises_limit(const graph_node *n, int64_t *out_most)
{
    const bool proved = graph_attr(n, "most") && graph_attr(n, "proved") && graph_attr_int(n, "proved") != 0;
    *out_most = proved ? graph_attr_int(n, "most") : UINT8_MAX;
    return *out_most < UINT8_MAX;
}

/* Whether each element of the result is an element of the first operand. */
static bool moves_elements(const graph_node *n)
{
    static const char *const names[] = {"reshape", "transpose", "copy"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(n->op->name, names[i]) == 0)
            return true;
    return false;
}

/* Where v comes from, behind operators that move elements and calls that return it. */
static const graph_value *origin_of(const graph_value *v)
{
    while (v && v->def) {
        const graph_func *callee = graph_callee(v->def);
        if (callee && v->index < callee->results.len)
            v = callee->results.data[v->index];
        else if (moves_elements(v->def))
            v = v->def->inputs[0];
        else
            break;
    }
    return v;
}

bool graph_is_limited(const graph_value *v, int64_t most)
{
    const graph_node *def = (v = origin_of(v)) ? v->def : NULL;
    for (uint32_t i = 0; def && strcmp(def->op->name, "minimum") == 0 && i < 2; i++) {
        const tensor_data *t = graph_constant(def->inputs[i]);
        if (t && t->count == 1 && tensor_get_i64(t, 0) <= most)
            return true;
    }
    return false;
}

bool graph_promise_kept(compiler *c, const graph_node *n)
{
    uint32_t first = 0, last = 0;
    if (!graph_promises(n, &first, &last))
        return true;
    return operands_check(c, n) && (graph_attr(n, "pairs") ? nn_pairs_kept(c, n) : steps_lists_fit(c, n));
}
