/* SPDX-License-Identifier: Apache-2.0 */
/* What the parts of pack-weights make once for all readers of a value: graph/pass/packer.h. */
#include "graph/pass/packer.h"

#include <string.h>

void packer_init(packer *p, compiler *c, const pass_options *o)
{
    *p = (packer){.target = o->target, .lanes = o->target->vector_bytes / 4, .no_split = o->no_split_data};
    arena_init(&p->scratch, &c->mem);
    ptr_map *const maps[] = {&p->packed, &p->filled, &p->framed, &p->turned, &p->turned_signed,
                             &p->limited, &p->listed};
    for (size_t i = 0; i < sizeof maps / sizeof *maps; i++)
        ptr_map_init(maps[i], &p->scratch);
}

graph_value *packer_transform(packer *p, graph_node *n, const char *src, const char *dst, bool promised)
{
    graph_value *w = n->inputs[1];
    compiler *c = p->r.c;
    uint32_t at = 0;
    const bool known = ptr_map_get(&p->packed, w, &at) && strcmp(p->list.data[at].src, src) == 0 &&
                       strcmp(p->list.data[at].dst, dst) == 0;
    if (known && (!promised || graph_constant(p->list.data[at].v)))
        return p->list.data[at].v;
    const attr attrs[2] = {attr_string(c, "src_layout", src), attr_string(c, "dst_layout", dst)};
    graph_value *v = rewrite_emit(&p->r, "layout_transform", 1, &w, 2, attrs, n->loc);
    if (promised)
        v = rewrite_evaluate(&p->r, v);
    if (!v || (promised && !graph_constant(v)))
        return NULL;
    rewrite_take_name(v, w);
    ptr_map_set(&p->packed, w, p->list.len);
    vec_push(&p->scratch, &p->list, ((packed_weights){v, src, dst}));
    return v;
}

graph_value *packer_border(packer *p, graph_node *n)
{
    graph_value *x = n->inputs[0];
    const int64_t *pads = NULL;
    uint32_t at = 0;
    if (graph_attr_ints(n, "pads", &pads) != 4 || (!pads[0] && !pads[1] && !pads[2] && !pads[3]))
        return x;
    if (ptr_map_get(&p->framed, x, &at) && memcmp(p->borders.data[at].pads, pads, 4 * sizeof *pads) == 0)
        return p->borders.data[at].v;
    const int64_t all[10] = {0, 0, pads[0], pads[1], 0, 0, 0, pads[2], pads[3], 0};
    const bordered made = {rewrite_pad(&p->r, x, all, NULL, n->loc), {pads[0], pads[1], pads[2], pads[3]}};
    if (made.v) {
        ptr_map_set(&p->framed, x, p->borders.len);
        vec_push(&p->scratch, &p->borders, made);
    }
    return made.v;
}
