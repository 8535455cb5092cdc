/* SPDX-License-Identifier: Apache-2.0 */
/* The `te` parts of the built-in operator rows: compute definition and default schedule of each, from graph_ops.def. */
#include "te/te_op.h"

/* Rows that the pipeline handles itself (constants, calls, regions) have no kernel. */
bool compute_none(te_graph *g, const graph_node *n, te_tensor *const *in, te_tensor **out)
{
    (void)in;
    (void)out;
    return diag_error(&g->c->diags, DIAG_UNSUPPORTED, n->loc, "operator %s has no kernel of its own", n->op->name);
}

typedef struct te_row {
    const char *name;
    te_op te;
} te_row;

typedef struct extent_row {
    const char *name;
    te_extent_hook hook;
} extent_row;

static const te_row rows[] = {
#define GRAPH_OP(id, name, operands, omin, omax, cls, effect, flags, infer, compute, schedule, schema) \
    {name, {compute, schedule, NULL}},
#include "graph/graph_ops.def"
#undef GRAPH_OP
};

static const extent_row extents[] = {
#define X(name, hook) {name, hook},
    TE_EXTENTS(X)
#undef X
    {NULL, NULL}};

void te_register_builtin_ops(compiler *c)
{
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (rows[i].te.compute != compute_none)
            graph_op_set_te(c, rows[i].name, &rows[i].te);
    for (const extent_row *r = extents; r->name; r++) {
        te_op *te = arena_new(&c->mem, te_op);
        *te = *graph_find_op(c, r->name)->te;
        te->extents = r->hook;
        graph_op_set_te(c, r->name, te);
    }
}
