/* SPDX-License-Identifier: Apache-2.0 */
/* Operators between a dequantized value and a quantize that work element by element on this value alone. Any such
 * function of 8 bits is a table of 256 entries. The table is made by running the operators themselves on all 256
 * numbers, and constant folding computes it. So no operator has a second definition here. */
#include "graph/pass/qnn.h"

#include <string.h>

static bool is_number(const graph_value *v)
{
    return rewrite_is_uniform(graph_constant(v), NULL);
}

static bool is_pointwise(const graph_node *n)
{
    return (n->op->cls == CLASS_ELEMENTWISE || n->op->cls == CLASS_BROADCAST) && n->n_outputs == 1 &&
           n->op->effect == EFFECT_PURE && !(n->op->flags & (OPF_SHAPE_ARGS | OPF_CALL)) &&
           strncmp(n->op->name, "qnn.", 4) != 0;
}

static bool holds(const qnn_cone *x, const graph_value *v)
{
    for (uint32_t i = 0; i < x->n_nodes; i++)
        if (x->nodes[i] == v)
            return true;
    return v == x->source;
}

static bool read(graph_value *v, qnn_cone *x, uint32_t depth)
{
    qnn_params p;
    if (holds(x, v))
        return true;
    if (!x->source && qnn_is_quantised(v, &p) && qnn_is_single(&p)) {
        x->source = v;
        x->params = p;
        return true;
    }
    graph_node *n = v->def;
    if (!n || depth == QNN_MAX_NODES || !is_pointwise(n))
        return false;
    for (uint32_t i = 0; i < n->n_inputs; i++)
        if (n->inputs[i] && !is_number(n->inputs[i]) && !read(n->inputs[i], x, depth + 1))
            return false;
    if (x->n_nodes == QNN_MAX_NODES || !x->source || !type_equal(&v->type, &x->source->type))
        return false;
    x->nodes[x->n_nodes++] = v;
    return true;
}

bool qnn_read_cone(graph_value *v, qnn_cone *out)
{
    *out = (qnn_cone){0};
    return read(v, out, 0) && out->source;
}

/* --- tables --- */

/* All numbers of 8 bits, by their bits. */
static graph_value *all_codes(rewriter *r, dtype dt, src_loc loc)
{
    const int64_t count = 256;
    uint8_t *codes = arena_array(&r->c->mem, uint8_t, (size_t)count);
    for (int64_t i = 0; i < count; i++)
        codes[i] = (uint8_t)i;
    return rewrite_constant(r, tensor_dense(r->c, dt, 1, &count, codes), "codes", loc);
}

static graph_value *number(rewriter *r, const graph_value *v, src_loc loc)
{
    const tensor_data *t = graph_constant(v);
    return rewrite_constant(r, tensor_splat(r->c, t->dt, 0, NULL, tensor_element(t, 0)), "number", loc);
}

static graph_value *stand_in(rewriter *r, const qnn_cone *x, graph_value *const *made, const graph_value *v,
                             src_loc loc)
{
    if (!v || v == x->source)
        return v ? made[QNN_MAX_NODES] : NULL;
    for (uint32_t i = 0; i < x->n_nodes; i++)
        if (x->nodes[i] == v)
            return made[i];
    return number(r, v, loc);
}

graph_value *qnn_make_table(rewriter *r, const qnn_cone *x, const graph_node *q)
{
    graph_value *made[QNN_MAX_NODES + 1], *in[8];
    const qnn_params *p = &x->params;
    in[0] = all_codes(r, p->dt, q->loc);
    in[1] = rewrite_constant(r, tensor_scalar_f64(r->c, DT_F32, (double)qnn_scale(p, 0)), "scale", q->loc);
    in[2] = rewrite_constant(r, tensor_scalar_i64(r->c, p->dt, qnn_zero(p, 0)), "zero_point", q->loc);
    graph_value *y = made[QNN_MAX_NODES] = r->failed ? NULL : rewrite_emit(r, "qnn.dequantize", 3, in, 0, NULL, q->loc);
    for (uint32_t i = 0; i < x->n_nodes && y; i++) {
        const graph_node *n = x->nodes[i]->def;
        if (n->n_inputs > 8)
            return NULL;
        for (uint32_t k = 0; k < n->n_inputs; k++)
            in[k] = stand_in(r, x, made, n->inputs[k], n->loc);
        y = made[i] = r->failed ? NULL : rewrite_emit(r, n->op->name, n->n_inputs, in, n->n_attrs, n->attrs, n->loc);
    }
    if (!y)
        return NULL;
    in[0] = y;
    for (uint32_t k = 1; k < q->n_inputs; k++)
        in[k] = q->inputs[k];
    return rewrite_emit(r, "qnn.quantize", q->n_inputs, in, q->n_attrs, q->attrs, q->loc);
}
