/* SPDX-License-Identifier: Apache-2.0 */
/* A compiler context that is ready for use: built-in operators with their compute definitions, and the evaluation of
 * constant nodes, for which the loop-IR interpreter runs the operator's plain loops. */
#include "driver/pipeline.h"
#include "graph/op.h"
#include "te/te_op.h"

static bool result_room(compiler *c, const graph_node *n, uint32_t i, void **out)
{
    int64_t bytes = type_bytes(&n->outputs[i]->type);
    *out = bytes < 0 ? NULL : arena_try_alloc(&c->mem, (size_t)bytes, 64);
    return *out != NULL;
}

/* Constants that are not stored as plain bytes are spelled out for folding up to this many bytes a node: a splat of
 * half a gigabyte is cheap only as long as nobody does so. */
static const int64_t most_spelled_out = (int64_t)256 << 20;

static bool gather_params(compiler *c, const graph_node *n, void **params, uint32_t *count)
{
    int64_t spelled_out = 0;
    for (uint32_t i = 0; i < n->n_inputs; i++) {
        if (!n->inputs[i])
            continue;
        const tensor_data *t = graph_constant(n->inputs[i]);
        int64_t size = t && t->kind != TENSOR_DENSE ? type_bytes(&n->inputs[i]->type) : 0;
        if (size < 0 || size > most_spelled_out - spelled_out)
            return false;
        spelled_out += size;
        const uint8_t *bytes = t ? t->kind == TENSOR_DENSE ? t->data : tensor_bytes(&c->mem, t) : NULL;
        if (!bytes)
            return false;
        params[(*count)++] = (void *)(uintptr_t)bytes; /* inputs are only read */
    }
    return true;
}

static bool evaluate(compiler *c, const graph_node *n, const tensor_data **out)
{
    void **params = arena_array(&c->mem, void *, n->n_inputs + n->n_outputs + 1u);
    uint32_t count = 0, n_in;
    tir_func *f = NULL;
    int32_t status = 0;
    if (!n->op->te || !gather_params(c, n, params, &count))
        return false;
    n_in = count;
    for (uint32_t i = 0; i < n->n_outputs; i++)
        if (!result_room(c, n, i, &params[count++]))
            return false;
    if (!te_lower_node(c, n, "folded", true, &f) || !tir_interpret(c, f, params, &status) || status != 0)
        return false;
    for (uint32_t i = 0; i < n->n_outputs; i++) {
        const type *t = &n->outputs[i]->type;
        int64_t dims[TYPE_MAX_RANK] = {0};
        shape_get(t->shape, dims);
        out[i] = tensor_dense(c, t->dt, (uint32_t)t->shape.rank, dims, params[n_in + i]);
    }
    return true;
}

void compiler_setup(compiler *c)
{
    compiler_init(c);
    graph_register_builtin_ops(c);
    te_register_builtin_ops(c);
    c->evaluate = evaluate;
    c->target = target_default();
}
