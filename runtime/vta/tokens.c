/* tokens.c: the four dependency queues in program order, as a static check of instruction streams.
 * SPDX-License-Identifier: Apache-2.0 */
#include "context.h"

/* The queue between two stages: from load (l2g) and store (s2g) to compute, and back (g2l, g2s). Stages at the ends of
 * the pipeline have one neighbour. */
static int32_t *queue_of(vta_tokens *t, enum vta_stage stage, uint32_t flag, const char **name)
{
    bool next = flag & (VTA_POP_NEXT | VTA_PUSH_NEXT), pop = flag & (VTA_POP_PREV | VTA_POP_NEXT);
    bool load = stage == VTA_STAGE_LOAD || (stage == VTA_STAGE_COMPUTE && !next);
    bool to_compute = (stage == VTA_STAGE_COMPUTE) == pop;
    *name = load ? (to_compute ? "l2g" : "g2l") : (to_compute ? "s2g" : "g2s");
    return load ? (to_compute ? &t->l2g : &t->g2l) : (to_compute ? &t->s2g : &t->g2s);
}

const char *vta_tokens_step(const vta_geometry *g, const vta_insn *insn, vta_tokens *t)
{
    static const uint32_t flags[] = {VTA_POP_PREV, VTA_POP_NEXT, VTA_PUSH_PREV, VTA_PUSH_NEXT};
    vta_fields f;
    vta_decode(g, insn, &f);
    const char *name, *empty = NULL;
    for (size_t i = 0; i < sizeof flags / sizeof *flags; i++) {
        if (!(insn->word[0] & flags[i]))
            continue;
        int32_t *queue = queue_of(t, vta_stage_of(&f), flags[i], &name);
        *queue += i < 2 ? -1 : 1;
        if (*queue < 0 && !empty)
            empty = name;
    }
    return empty;
}

vta_status vta_check_tokens(const vta_geometry *g, const vta_insn *insns, uint32_t count, vta_tokens *t, vta_error *e)
{
    for (uint32_t i = 0; i < count; i++) {
        const char *empty = vta_tokens_step(g, &insns[i], t);
        if (empty)
            return vta_fail(e, VTA_DEADLOCK, "instruction %u takes a token from %s, and none before it gave one", i,
                            empty);
    }
    const struct {
        const char *name;
        int32_t left;
    } queues[] = {{"l2g", t->l2g}, {"g2l", t->g2l}, {"s2g", t->s2g}, {"g2s", t->g2s}};
    for (size_t i = 0; i < sizeof queues / sizeof *queues; i++)
        if (queues[i].left != 0)
            return vta_fail(e, VTA_DEADLOCK, "%d tokens are left in %s at the end", queues[i].left, queues[i].name);
    return VTA_OK;
}
