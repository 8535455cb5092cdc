/* SPDX-License-Identifier: Apache-2.0 */
/* What lies where in the workspace, and when: a block for each value that has bytes of its own, and for the scratch of
 * each kernel. */
#include "driver/html_memory.h"

#include "base/vec.h"

#include <stdlib.h>

typedef struct block {
    const char *name;
    const char *kind; /* "value", "input", "scratch" */
    uint64_t offset, bytes;
    uint32_t first, last; /* layers */
    int64_t maker;        /* the kernel that writes it first; -1: none does */
} block;

typedef struct memory {
    compiler *c;
    const compile_result *r;
    VEC(block) blocks;
} memory;

/* One block for each value of the problem; first > last: nobody uses it. */
static block *find_uses(memory *m)
{
    const plan_problem *p = m->r->plan.problem;
    block *of = arena_array(&m->c->mem, block, p->values.len + 1u);
    for (uint32_t v = 0; v < p->values.len; v++)
        of[v] = (block){.first = p->values.data[v].from_start ? 0 : UINT32_MAX, .maker = -1};
    for (uint32_t op = 0; op < p->ops.len; op++) {
        const uint32_t layer = m->r->plan.tasks[op].layer;
        for (uint32_t i = 0; i < p->ops.data[op].n_args; i++) {
            uint64_t start;
            block *b = &of[plan_root(p, p->ops.data[op].args[i], &start)];
            b->first = layer < b->first ? layer : b->first;
            b->last = layer > b->last ? layer : b->last;
            if (i >= p->ops.data[op].n_inputs && b->maker < 0)
                b->maker = op;
        }
    }
    return of;
}

static void add_values(memory *m)
{
    const plan_problem *p = m->r->plan.problem;
    const block *uses = find_uses(m);
    for (uint32_t v = 0; v < p->values.len; v++) {
        const plan_value *x = &p->values.data[v];
        block b = uses[v];
        if (x->storage != STORE_WORKSPACE || x->parent >= 0 || x->bytes == 0 || b.first > b.last)
            continue;
        b.name = x->name;
        b.kind = x->from_start ? "input" : "value";
        b.offset = m->r->plan.places[v].offset;
        b.bytes = x->bytes;
        vec_push(&m->c->mem, &m->blocks, b);
    }
}

static void add_scratch(memory *m)
{
    const plan_problem *p = m->r->plan.problem;
    for (uint32_t op = 0; op < p->ops.len; op++)
        for (uint32_t k = 0; k < p->ops.data[op].n_scratch; k++) {
            const plan_task *t = &m->r->plan.tasks[op];
            const block b = {.name = p->ops.data[op].scratch[k].buffer->name, .kind = "scratch",
                             .offset = t->scratch_offset[k],
                             .bytes = plan_scratch_bytes(&p->ops.data[op], k, t->parts),
                             .first = t->layer, .last = t->layer, .maker = op};
            if (b.bytes > 0)
                vec_push(&m->c->mem, &m->blocks, b);
        }
}

static int by_offset(const void *x, const void *y)
{
    const block *a = x, *b = y;
    if (a->offset != b->offset)
        return a->offset < b->offset ? -1 : 1;
    return a->first < b->first ? -1 : a->first > b->first;
}

/* Bytes in use in each layer. A result may lie over an operand: bytes that two blocks share count once. */
static uint64_t *used_bytes(memory *m)
{
    const uint32_t n = m->r->plan.n_layers;
    uint64_t *used = arena_array(&m->c->mem, uint64_t, n + 1u), *end = arena_array(&m->c->mem, uint64_t, n + 1u);
    for (uint32_t l = 0; l < n; l++)
        used[l] = end[l] = 0;
    for (uint32_t i = 0; i < m->blocks.len; i++) { /* by rising offset */
        const block *b = &m->blocks.data[i];
        for (uint32_t l = b->first; l <= b->last && l < n; l++) {
            const uint64_t from = b->offset > end[l] ? b->offset : end[l], to = b->offset + b->bytes;
            if (to > from) {
                used[l] += to - from;
                end[l] = to;
            }
        }
    }
    return used;
}

static void write_block(json_out *j, const block *b)
{
    json_out_object(j, NULL);
    json_out_text(j, "name", b->name);
    json_out_text(j, "kind", b->kind);
    json_out_uint(j, "offset", b->offset);
    json_out_uint(j, "bytes", b->bytes);
    json_out_uint(j, "first", b->first);
    json_out_uint(j, "last", b->last);
    if (b->maker >= 0)
        json_out_int(j, "kernel", b->maker);
    json_out_end(j);
}

void html_memory_write(json_out *j, const char *key, compiler *c, const compile_result *r)
{
    memory m = {.c = c, .r = r};
    uint32_t peak = 0;
    add_values(&m);
    add_scratch(&m);
    if (m.blocks.len > 0)
        qsort(m.blocks.data, m.blocks.len, sizeof *m.blocks.data, by_offset);
    const uint64_t *used = used_bytes(&m);
    json_out_object(j, key);
    json_out_uint(j, "bytes", r->plan.workspace_bytes);
    json_out_uint(j, "lower_bound", r->plan.lower_bound_bytes);
    json_out_array(j, "used");
    for (uint32_t l = 0; l < r->plan.n_layers; l++) {
        json_out_uint(j, NULL, used[l]);
        peak = used[l] > used[peak] ? l : peak;
    }
    json_out_end(j);
    json_out_uint(j, "peak_layer", peak);
    json_out_array(j, "blocks");
    for (uint32_t i = 0; i < m.blocks.len; i++)
        write_block(j, &m.blocks.data[i]);
    json_out_end(j);
    json_out_end(j);
}
