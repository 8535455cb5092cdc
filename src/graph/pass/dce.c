/* SPDX-License-Identifier: Apache-2.0 */
/* Dead code: pure nodes without uses, and functions that main does not reach. */
#include "graph/pass.h"

static void reach(graph_func *f)
{
    if (f->mark)
        return;
    f->mark = 1;
    for (uint32_t i = 0; i < f->nodes.len; i++)
        for (uint32_t k = 0; k < f->nodes.data[i]->n_attrs; k++)
            if (f->nodes.data[i]->attrs[k].kind == ATTR_FUNC)
                reach(f->nodes.data[i]->attrs[k].u.func);
}

bool graph_pass_dce(compiler *c, graph_module *m, const pass_options *o)
{
    (void)o;
    (void)c;
    graph_func *entry = graph_module_find(m, "main");
    for (uint32_t i = 0; i < m->funcs.len; i++) {
        graph_remove_dead(m->funcs.data[i]);
        m->funcs.data[i]->mark = 0;
    }
    if (!entry) /* a fragment: each function may be an entry */
        return true;
    reach(entry);
    uint32_t kept = 0;
    for (uint32_t i = 0; i < m->funcs.len; i++)
        if (m->funcs.data[i]->mark)
            m->funcs.data[kept++] = m->funcs.data[i];
    m->funcs.len = kept;
    return true;
}
