/* SPDX-License-Identifier: Apache-2.0 */
/* A compiler context that is ready for use: built-in operators with their compute definitions, and the evaluation of
 * constant nodes, for which the loop-IR interpreter runs the operator's plain loops. */
#include "codegen/byoc/byoc.h"
#include "driver/pipeline.h"
#include "graph/op.h"
#include "type/family.h"
#include "te/from_graph.h"
#include "te/te_op.h"
#include "tir/interpret.h"

/* What is folded depends on the model alone, not on how much memory there is: constants that are not stored as plain
 * bytes are spelled out up to this many bytes a node (a splat of half a gigabyte is cheap only as long as nobody does
 * so), and a result has at most as many, or twice as many as what it is made of. */
static const int64_t most_spelled_out = (int64_t)256 << 20;

static bool result_room(compiler *c, const graph_node *n, uint32_t i, int64_t stored, void **out)
{
    int64_t bytes = type_bytes(&n->outputs[i]->type);
    if (bytes < 0 || (bytes > most_spelled_out && bytes / 2 > stored))
        return false;
    *out = arena_alloc(&c->mem, (size_t)bytes, 64);
    return true;
}

/* out_stored: bytes of the constants that are stored. */
static bool gather_params(compiler *c, const graph_node *n, void **params, uint32_t *count, int64_t *out_stored)
{
    int64_t spelled_out = 0;
    *out_stored = 0;
    for (uint32_t i = 0; i < n->n_inputs; i++) {
        if (!n->inputs[i])
            continue;
        const tensor_data *t = graph_constant(n->inputs[i]);
        int64_t size = t && t->kind != TENSOR_DENSE ? type_bytes(&n->inputs[i]->type) : 0;
        if (size < 0 || size > most_spelled_out - spelled_out)
            return false;
        spelled_out += size;
        if (!t)
            return false;
        *out_stored += t->kind == TENSOR_DENSE ? (int64_t)tensor_size(t) : 0;
        const uint8_t *bytes = tensor_plain_bytes(&c->mem, t);
        if (!bytes)
            arena_refuse(&c->mem, tensor_size(t));
        params[(*count)++] = (void *)(uintptr_t)bytes; /* inputs are only read */
    }
    return true;
}

static bool interpret(compiler *c, const graph_node *n, const tensor_data **out)
{
    void **params = arena_array(&c->mem, void *, n->n_inputs + n->n_outputs + 1u);
    uint32_t count = 0, n_in;
    tir_func *f = NULL;
    int32_t status = 0;
    int64_t stored;
    if (!n->op->te || !gather_params(c, n, params, &count, &stored))
        return false;
    n_in = count;
    for (uint32_t i = 0; i < n->n_outputs; i++)
        if (!result_room(c, n, i, stored, &params[count++]))
            return false;
    if (!te_lower_node(c, n, "folded", NULL, NULL, &f) || !tir_interpret(c, f, params, &status) || status != 0)
        return false;
    for (uint32_t i = 0; i < n->n_outputs; i++) {
        const type *t = &n->outputs[i]->type;
        int64_t dims[TYPE_MAX_RANK] = {0};
        shape_get(t->shape, dims);
        out[i] = tensor_dense(c, t->dt, (uint32_t)t->shape.rank, dims, params[n_in + i]);
    }
    return true;
}

/* Nothing depends on it: a node that cannot be evaluated is computed by the program, and why is nobody's business. For
 * want of memory, though, the same model would give another program. */
static bool evaluate(compiler *c, const graph_node *n, const tensor_data **out)
{
    diags_mark mark = diags_get_mark(&c->diags);
    bool ok = interpret(c, n, out);
    if (!ok && c->diags.last != mark.last && c->diags.last->code == DIAG_ENVIRONMENT)
        arena_refuse(&c->mem, 0);
    diags_reset(&c->diags, mark);
    return ok;
}

void compiler_setup_under(compiler *c, const arena *parent)
{
    compiler_init_under(c, parent);
    graph_register_builtin_ops(c);
    te_register_builtin_ops(c);
#define TARGET_PARTS(name) (void)target_parts_##name(c); /* its name is new */
#include "target/targets.def"
    c->evaluate = evaluate;
    (void)byoc_register_builtin(c); /* names of our own, each once */
}

void compiler_setup(compiler *c)
{
    compiler_setup_under(c, NULL);
}
