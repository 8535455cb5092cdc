/* SPDX-License-Identifier: Apache-2.0 */
/* Layerings: as soon as the dependencies allow, or along a sequential order with a bound on the live bytes. Segments
 * follow each other and share no layer. */
#include "plan/facts.h"

#define LAYER_WORK 20000000u /* operators looked at in one layering: all tries of a model of 4000 */

void layer_soonest(const plan_facts *f, uint32_t *out_layer)
{
    uint32_t start = 0, end = 0;
    for (uint32_t op = 0; op < f->n_ops; op++) { /* the given order is topological */
        if (op > 0 && f->p->ops.data[op].segment != f->p->ops.data[op - 1].segment)
            start = end;
        out_layer[op] = start;
        for (uint32_t k = 0; k < f->before[op].len; k++) {
            uint32_t after = out_layer[f->before[op].data[k]] + 1;
            out_layer[op] = after > out_layer[op] ? after : out_layer[op];
        }
        end = out_layer[op] + 1 > end ? out_layer[op] + 1 : end;
    }
}

uint32_t layer_count(const plan_facts *f, const uint32_t *layer)
{
    uint32_t n = 0;
    for (uint32_t op = 0; op < f->n_ops; op++)
        n = layer[op] + 1 > n ? layer[op] + 1 : n;
    return n;
}

static bool depends_on_layer(const plan_facts *f, uint32_t op, const uint32_t *layer, uint32_t current)
{
    for (uint32_t k = 0; k < f->before[op].len; k++)
        if (layer[f->before[op].data[k]] == current)
            return true;
    return false;
}

static uint64_t peak(const plan_facts *f, const uint32_t *layer, const uint32_t *parts)
{
    plan_blocks b;
    arena_mark mark = arena_get_mark(f->a);
    blocks_make(f, layer, parts, &b);
    arena_reset(f->a, mark);
    return b.peak;
}

/* Consecutive operators of the order share a layer while they do not depend on each other and the whole layering stays
 * within the limit (or does not get worse). Operators that come later are one to a layer while an earlier one is tried.
 * A try costs time in proportion to the model, so a very large one gets fewer: the operators after the last try stay
 * one to a layer. */
void layer_bounded(const plan_facts *f, const uint32_t *order, const uint32_t *parts, uint64_t limit,
                   uint32_t *out_layer)
{
    for (uint32_t i = 0; i < f->n_ops; i++)
        out_layer[order[i]] = i;
    uint64_t now = peak(f, out_layer, parts), tries = LAYER_WORK / (f->n_ops + 1u);
    for (uint32_t i = 1; i < f->n_ops && tries > 0; i++) {
        uint32_t op = order[i], current = out_layer[order[i - 1]];
        if (f->p->ops.data[op].segment != f->p->ops.data[order[i - 1]].segment)
            continue;
        if (depends_on_layer(f, op, out_layer, current))
            continue;
        tries--;
        for (uint32_t k = i; k < f->n_ops; k++)
            out_layer[order[k]]--;
        uint64_t next = peak(f, out_layer, parts);
        if (next <= limit || next <= now) {
            now = next;
            continue;
        }
        for (uint32_t k = i; k < f->n_ops; k++)
            out_layer[order[k]]++;
    }
}
