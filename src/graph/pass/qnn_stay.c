/* SPDX-License-Identifier: Apache-2.0 */
/* What use-integers leaves in float. When it has ended, each operator that reads dequantized numbers gets a note with
 * the reason: the one that the pass found, or one that follows from the operator itself. */
#include "graph/pass/qnn.h"

#include <string.h>

void qnn_set_reason(compiler *c, qnn_reasons *r, const graph_node *n, const char *why)
{
    vec_push(&c->mem, &r->texts, why);
    ptr_map_set(&r->of, n, r->texts.len - 1);
}

/* Directly or reshaped. A reshape computes nothing itself. */
static bool reads_dequantised(const graph_node *n)
{
    if (strcmp(n->op->name, "reshape") == 0)
        return false;
    for (uint32_t i = 0; i < n->n_inputs; i++) {
        const graph_value *x = n->inputs[i];
        while (x && x->def && strcmp(x->def->op->name, "reshape") == 0)
            x = x->def->inputs[0];
        if (x && rewrite_is_op(x, "qnn.dequantize") && x->def->inputs[0]->type.dt != DT_I32)
            return true;
    }
    return false;
}

/* What a table is made of, 256 numbers: folding computes it. */
static bool makes_table(const graph_node *n, uint32_t depth)
{
    for (uint32_t i = 0; i < n->n_inputs && depth > 0; i++) {
        const graph_value *x = n->inputs[i];
        if (x && !graph_constant(x) && !(x->def && makes_table(x->def, depth - 1)))
            return false;
    }
    return depth > 0 && n->n_inputs > 0;
}

void qnn_note_floats(compiler *c, const graph_func *f, const qnn_reasons *r, bool integers)
{
    for (uint32_t i = 0; i < f->nodes.len; i++) {
        const graph_node *n = f->nodes.data[i];
        uint32_t at = 0;
        if (!reads_dequantised(n) || makes_table(n, QNN_MAX_NODES + 1))
            continue;
        const char *why = "on this target, integers that round halves to even are slower; --integers asks for them";
        if (strcmp(n->op->name, "qnn.quantize") == 0)
            why = "its scale, zero point or type changes";
        else if (integers)
            why = "its result is not quantized, or it has no integer form";
        if (ptr_map_get(&r->of, n, &at))
            why = r->texts.data[at];
        graph_note note = {"use-integers", n->op->name, n->n_outputs ? n->outputs[0]->name : "", why, n->loc};
        vec_push(&c->mem, &f->module->notes, note);
    }
}
