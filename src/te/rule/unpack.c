/* SPDX-License-Identifier: Apache-2.0 */
/* Weights of 4 bits, two in a byte, in schedules: the stage that takes them apart is computed where a part needs some
 * of them, as vectors. Rules that do not place it have it inlined: a number is taken apart wherever it is read. */
#include "te/rule/rule.h"

#include <string.h>

const graph_node *te_unpacked(const te_graph *g, const graph_node *n)
{
    const graph_node *from = graph_operand(n, 1) ? n->inputs[1]->def : NULL;
    const te_node *w = te_find_tag(g, TE_UNPACKED);
    if (!w || !from || n->inputs[0] == n->inputs[1] || strcmp(from->op->name, "unpack_nibbles") != 0)
        return NULL;
    for (uint32_t i = 0; i < g->nodes.len; i++) /* the stage is the weights' own if there is one alone */
        if (g->nodes.data[i] != w && g->nodes.data[i]->tag && strcmp(g->nodes.data[i]->tag, TE_UNPACKED) == 0)
            return NULL;
    return from;
}

bool te_is_taken_apart(const te_graph *g, const graph_node *n)
{
    return te_find_tag(g, TE_UNPACKED) && !te_unpacked(g, n);
}

void te_place_unpacked(te_sched *s, const graph_node *from, const char *consumer, const char *place)
{
    const te_node *w = te_find_tag(s->g, TE_UNPACKED);
    const int64_t given = graph_attr_int(from, "axis");
    const uint32_t rank = w->n_axes, axis = (uint32_t)(given < 0 ? given + rank : given);
    const int64_t step = graph_attr_int(from, "step");
    const char *order[TYPE_MAX_RANK + 1], *name = w->name, *outer = step == 1 ? "pair" : "half",
               *inner = step == 1 ? "half" : "low";
    uint32_t count = 0;
    te_sched_compute_at(s, name, consumer, place);
    te_sched_split(s, name, te_axis_name(w, axis), step == 1 ? 2 : step, outer, inner);
    for (uint32_t i = 0; i < rank; i++) {
        order[count++] = i == axis ? outer : te_axis_name(w, i);
        if (i == axis)
            order[count++] = inner;
    }
    te_sched_reorder(s, name, count, order);
    te_sched_annotate(s, TE_UNROLL, name, "half");
    if (axis + 2 < rank || (axis + 2 == rank && step > 1)) /* one run of bytes, which C compilers make vectors of */
        te_sched_fuse(s, name, order[count - 2], order[count - 1], "run");
}

static bool is_placed(const te_sched *s, const te_node *w)
{
    for (uint32_t i = 0; i < s->prims.len; i++)
        if (strcmp(s->prims.data[i].u.stage, w->name) == 0)
            return true;
    return false;
}

void te_inline_unpacked(te_sched *s)
{
    for (uint32_t i = 0; i < s->g->nodes.len; i++) {
        const te_node *w = s->g->nodes.data[i];
        if (w->tag && strcmp(w->tag, TE_UNPACKED) == 0 && !is_placed(s, w))
            te_sched_compute_inline(s, w->name);
    }
}
