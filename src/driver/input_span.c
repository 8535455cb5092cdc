/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the range of floats that the first quantize operator behind an input can represent. Random inputs are drawn
 * from this range, so that they reach all of its quantized numbers. */
#include "driver/pipeline.h"

#include "graph/op.h"

#include <string.h>

/* The parameter whose elements v has; NULL: it is computed. */
static const graph_value *moved_from(const graph_value *v)
{
    while (v && v->def && (v->def->op->flags & OPF_MOVES))
        v = v->def->inputs[0];
    return v && !v->def ? v : NULL;
}

static const tensor_data *one_number(const graph_node *n, uint32_t i)
{
    const tensor_data *t = i < n->n_inputs ? graph_constant(n->inputs[i]) : NULL;
    return t && t->count == 1 ? t : NULL;
}

void pipeline_find_spans(compiler *c, const graph_func *f, compile_result *r)
{
    input_span *spans = arena_array(&c->mem, input_span, f->params.len + 1u);
    bool *known = arena_array(&c->mem, bool, f->params.len + 1u); /* by parameter: its span stands in spans */
    for (uint32_t i = 0; i < f->nodes.len; i++) {
        const graph_node *n = f->nodes.data[i];
        if (strcmp(n->op->name, "qnn.quantize") != 0)
            continue;
        const graph_value *x = moved_from(n->inputs[0]);
        const tensor_data *scale = one_number(n, 1), *zero = one_number(n, 2);
        const dtype dt = n->outputs[0]->type.dt != DT_NONE ? n->outputs[0]->type.dt : zero ? zero->dt : DT_U8;
        if (!x || known[x->index] || !scale || !dtype_is_int(dt) || !dtype_is_float(x->type.dt))
            continue;
        const double step = tensor_get_f64(scale, 0), z = zero ? (double)tensor_get_i64(zero, 0) : 0;
        known[x->index] = true;
        spans[r->n_spans++] = (input_span){x->name, step * ((double)dtype_min_int(dt) - z),
                                           step * ((double)dtype_max_int(dt) - z)};
    }
    r->spans = spans;
}
