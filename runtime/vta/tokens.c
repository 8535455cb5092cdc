/* tokens.c: the four dependency queues in program order, as a static check of instruction streams.
 * SPDX-License-Identifier: Apache-2.0 */
#include "context.h"
#include "text.h"

/* The queue between two stages: from load (l2g) and store (s2g) to compute, and back (g2l, g2s). Stages at the ends of
 * the pipeline have one neighbor. */
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

/* --- left at the end of a program --------------------------------------------------------------------------------- */

void vta_left_tokens(vta_context *c, vta_tokens *out)
{
    memset(out, 0, sizeof *out);
    if (!c)
        return;
    pthread_mutex_lock(&c->lock);
    *out = c->queue.left;
    pthread_mutex_unlock(&c->lock);
}

/* "2 from load to compute, 1 from compute to store" */
static void put_left(vta_text *t, const vta_tokens *left)
{
    const struct {
        const char *name;
        int32_t left;
    } queues[] = {{"from load to compute", left->l2g},
                  {"from compute to load", left->g2l},
                  {"from store to compute", left->s2g},
                  {"from compute to store", left->g2s}};
    for (size_t i = 0, n = 0; i < sizeof queues / sizeof *queues; i++)
        if (queues[i].left > 0)
            vta_put(t, "%s%d %s", n++ ? ", " : "", queues[i].left, queues[i].name);
}

vta_status vta_tokens_tell_left(vta_context *c, const vta_tokens *left, vta_error *e)
{
    char list[200] = "", line[320];
    vta_text t = {list, sizeof list, 0}, u = {line, sizeof line, 0};
    const bool changed = memcmp(left, &c->queue.left, sizeof *left) != 0;
    put_left(&t, left);
    c->queue.left = *left;
    if (t.length == 0 || c->options.left_tokens == VTA_LEFT_IGNORE)
        return VTA_OK;
    if (c->options.left_tokens == VTA_LEFT_ERROR)
        return vta_fail(e, VTA_BAD_STATE, "synchronize: tokens were pushed and not popped: %s", list);
    vta_put(&u, "vta: warning: synchronize: tokens were pushed and not popped: %s; they stay\n", list);
    if (changed)
        c->options.log(c->options.log_user, line);
    return VTA_OK;
}
