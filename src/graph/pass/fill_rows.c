/* SPDX-License-Identifier: Apache-2.0 */
/* fill-rows: softmax along many rows whose length is not a multiple of the vector works on rows that are filled up. The
 * ends of the sums of several rows then run side by side. No bit of a result changes. It is for vectors that hold all
 * partial sums of a row: with narrower vectors the copy costs more than it saves. */
#include "graph/op.h"
#include "graph/pass.h"
#include "graph/pass/rewrite.h"
#include "type/target.h"

#include <string.h>

#define LANES       16   /* partial sums of a row, which has twice as many elements at least (te/rule/lanes.c) */
#define MOST        1024 /* elements of rows that are worked on together (te/rule/rows.c) */
#define ENOUGH_ROWS 128

static bool is_worth_it(const graph_node *n)
{
    int64_t dims[TYPE_MAX_RANK], rows = 1, axis;
    if (strcmp(n->op->name, "nn.softmax") != 0 || graph_attr_int(n, "lanes") != 1)
        return false;
    const type *t = &n->inputs[0]->type;
    int32_t rank = t->shape.rank;
    axis = graph_attr_int(n, "axis");
    if (t->dt != DT_F32 || rank < 2 || !shape_get(t->shape, dims) || (axis != -1 && axis + 1 != rank))
        return false;
    for (int32_t i = 0; i + 1 < rank; i++)
        if (!i64_mul(rows, dims[i], &rows))
            return false;
    int64_t length = dims[rank - 1];
    return rows >= ENOUGH_ROWS && length >= 2 * LANES && length <= MOST && length % LANES != 0;
}

static graph_value *filled(rewriter *r, const graph_node *n)
{
    if (!is_worth_it(n))
        return NULL;
    const attr attrs[2] = {attr_int(r->c, "axis", graph_attr_int(n, "axis")), attr_int(r->c, "lanes", LANES)};
    return rewrite_emit(r, n->op->name, 1, n->inputs, 2, attrs, n->loc);
}

bool graph_pass_fill_rows(compiler *c, graph_module *m, const pass_options *o)
{
    bool ok = true;
    const target *t = o->target;
    if (t->vector_bytes < LANES * 4)
        return true;
    for (uint32_t i = 0; i < m->funcs.len; i++)
        if (!graph_is_fixed(m->funcs.data[i]))
            ok &= rewrite_each(c, m->funcs.data[i], filled);
    return ok;
}
