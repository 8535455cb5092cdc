/* SPDX-License-Identifier: Apache-2.0 */
/* reciprocals: division by a constant becomes multiplication by its reciprocal. A vector division takes as long as some
 * thirty multiplications, and attention and GELU divide every element. The reciprocal is rounded once more, so a
 * quotient may be one unit in the last place off: a pass of its own, for the highest level only. A single quotient
 * stays: it costs nothing, and is a scale at times, by which a whole tensor is rounded. So does one that a quantize
 * rounds in the end, and one of an input: features are scaled so before trees compare them, or before distances to
 * points that the exporter has divided. */
#include "graph/pass.h"
#include "graph/pass/rewrite.h"
#include "graph/pass/rounded.h"

#include <math.h>
#include <string.h>

/* x * (1 / c); NULL: the divisor is no constant of one value, or it has no normal reciprocal. */
/* Whether to multiply by the reciprocal of v gives the very quotient. */
static bool is_power_of_two(double v)
{
    int e;
    return fabs(frexp(v, &e)) <= 0.5; /* it is from 0.5 to below 1 */
}

static graph_value *product_of(rewriter *r, const graph_node *n)
{
    double v = 0;
    const graph_value *by = n->inputs[1];
    const tensor_data *t = graph_constant(by);
    if (!t || t->dt != DT_F32 || shape_count(n->outputs[0]->type.shape) == 1 || !rewrite_is_uniform(t, &v) ||
        !isnormal((float)v) || !isnormal((float)(1.0 / v)))
        return NULL;
    if (!n->inputs[0]->def && !is_power_of_two(v))
        return NULL;
    uint8_t element[8] = {0};
    dtype_store_f64(t->dt, element, 1.0 / v);
    graph_value *in[2] = {n->inputs[0], NULL};
    in[1] = rewrite_constant(r, tensor_splat(r->c, t->dt, t->rank, t->dims, element), by->name, n->loc);
    return rewrite_emit(r, "multiply", 2, in, 0, NULL, n->loc);
}

static bool run(compiler *c, graph_func *f)
{
    rewriter r;
    ptr_map rounded;
    rounded_find(c, f, &rounded);
    rewrite_begin(&r, c, f);
    for (uint32_t i = 0; i < f->nodes.len; i++) {
        graph_node *n = f->nodes.data[i];
        rewrite_operands(n);
        const bool changes = strcmp(n->op->name, "divide") == 0 && !rounded_has(&rounded, n);
        graph_value *product = changes ? product_of(&r, n) : NULL;
        if (!product || !rewrite_replace(&r, n->outputs[0], product))
            rewrite_keep(&r, n);
    }
    rewrite_end(&r);
    return !r.failed;
}

bool graph_pass_reciprocal(compiler *c, graph_module *m, const pass_options *o)
{
    (void)o;
    bool ok = true;
    for (uint32_t i = 0; i < m->funcs.len; i++)
        if (!graph_is_fixed(m->funcs.data[i]))
            ok &= run(c, m->funcs.data[i]);
    return ok;
}
