/* SPDX-License-Identifier: Apache-2.0 */
/* Which floats a quantize rounds in the end (rounded.h): from each quantize up, to what computes otherwise. */
#include "graph/pass/rounded.h"

#include <string.h>

static bool is_passed(const graph_node *n)
{
    const bool by_element = n->op->cls == CLASS_ELEMENTWISE || n->op->cls == CLASS_BROADCAST;
    return n->n_outputs == 1 && dtype_is_float(n->outputs[0]->type.dt) &&
           (by_element || (n->op->flags & OPF_MOVES) != 0);
}

void rounded_find(compiler *c, const graph_func *f, ptr_map *out)
{
    ptr_map_init(out, &c->mem);
    for (uint32_t i = f->nodes.len; i-- > 0;) { /* readers stand behind what they read */
        const graph_node *n = f->nodes.data[i];
        const bool is_quantize = strcmp(n->op->name, "qnn.quantize") == 0;
        if (!is_quantize && !rounded_has(out, n))
            continue;
        for (uint32_t k = 0; k < (is_quantize ? 1 : n->n_inputs); k++)
            if (n->inputs[k] && n->inputs[k]->def && is_passed(n->inputs[k]->def))
                ptr_map_set(out, n->inputs[k]->def, 1);
    }
}

bool rounded_has(const ptr_map *rounded, const graph_node *n)
{
    uint32_t ignored;
    return ptr_map_get(rounded, n, &ignored);
}
