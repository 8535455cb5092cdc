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
        *out_last = pairs || n->n_inputs == 0 ? 1 : n->n_inputs - 1;
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
