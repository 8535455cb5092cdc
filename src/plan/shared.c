/* SPDX-License-Identifier: Apache-2.0 */
/* The functions of one package have their constants in one memory: what two of them read alike lies there once. Each
 * plan was made alone; here its constants get other places, and nothing else changes. */
#include "abi/sha256.h"
#include "base/ptr_map.h"
#include "plan/plan.h"

#include <string.h>

typedef struct pool {
    plan_problem all;  /* the constants, each once */
    ptr_map by_digest; /* interned: number in all.values */
} pool;

/* Constants of the same bytes have the same one; shapes do not count. */
static const char *digest(compiler *c, const tensor_data *t)
{
    const uint64_t head[3] = {(uint64_t)t->kind, dtype_bytes(t->dt), (uint64_t)t->count};
    const size_t bytes = t->kind == TENSOR_DENSE ? tensor_size(t) : dtype_bytes(t->dt);
    char text[SHA256_TEXT];
    sha256 s;
    sha256_init(&s);
    sha256_add(&s, head, sizeof head);
    if (t->count > 0)
        sha256_add(&s, t->data, bytes);
    sha256_end_text(&s, text);
    return intern(c->names, text);
}

static uint32_t add(compiler *c, pool *p, const tensor_data *t, const plan_value *v)
{
    const char *key = digest(c, t);
    uint32_t at = p->all.values.len;
    if (!ptr_map_get(&p->by_digest, key, &at)) {
        ptr_map_set(&p->by_digest, key, at);
        vec_push(&c->mem, &p->all.values, *v);
    }
    plan_value *there = &p->all.values.data[at];
    there->align = v->align > there->align ? v->align : there->align;
    return at;
}

/* Those that are parts of others follow them. */
static void move(const plan *pl, const uint32_t *at, const plan_place *to)
{
    const plan_problem *p = pl->problem;
    for (uint32_t v = 0; v < p->values.len; v++) {
        uint64_t offset = 0;
        if (p->values.data[v].storage != STORE_CONSTANT)
            continue;
        const uint32_t root = plan_root(p, v, &offset);
        pl->places[v].offset = to[at[root]].offset + offset;
    }
}

void plan_share_constants(compiler *c, uint32_t n, const prog_func *const *funcs, plan *const *plans)
{
    pool p = {0};
    uint32_t **at = arena_array(&c->mem, uint32_t *, n + 1u);
    ptr_map_init(&p.by_digest, &c->mem);
    for (uint32_t i = 0; i < n; i++) {
        const plan_problem *own = plans[i]->problem;
        at[i] = arena_array(&c->mem, uint32_t, own->values.len + 1u);
        for (uint32_t v = 0; v < own->values.len; v++)
            if (own->values.data[v].storage == STORE_CONSTANT && own->values.data[v].parent < 0)
                at[i][v] = add(c, &p, funcs[i]->values.data[v].data, &own->values.data[v]);
    }
    plan_place *to = arena_array(&c->mem, plan_place, p.all.values.len + 1u);
    const uint64_t bytes = plan_place_apart(&c->mem, &p.all, STORE_CONSTANT, to);
    for (uint32_t i = 0; i < n; i++) {
        move(plans[i], at[i], to);
        plans[i]->constant_bytes = bytes;
    }
}
