/* SPDX-License-Identifier: Apache-2.0 */
/* Makes equal kernels one: kernels with the same target and the same loops, names left out. Before kernels have the
 * loops of their target, equal operators with equal plain loops become one, so that fewer kernels are scheduled. Equal
 * constants of a function become one, too. */
#include "graph/graph.h"
#include "base/ptr_map.h"
#include "prog/prog.h"
#include "tir/facts.h"

#include <stdlib.h>
#include <string.h>

typedef struct key {
    uint64_t hash;
    uint32_t index;
} key;

typedef struct sharing {
    prog_module *m;
    prog_func *f;
    arena *tmp;
    VEC(key) keys;
    uint32_t *first; /* of each kernel or value: the first one that equals it */
} sharing;

static int by_hash(const void *x, const void *y)
{
    const key *a = x, *b = y;
    if (a->hash != b->hash)
        return a->hash < b->hash ? -1 : 1;
    return a->index < b->index ? -1 : a->index > b->index;
}

static void find_first(sharing *s, uint32_t n, bool (*equal)(const sharing *s, uint32_t a, uint32_t b))
{
    s->first = arena_array(s->tmp, uint32_t, n);
    for (uint32_t i = 0; i < n; i++)
        s->first[i] = i;
    if (s->keys.len > 0)
        qsort(s->keys.data, s->keys.len, sizeof(key), by_hash);
    for (uint32_t i = 0, run = 0; i < s->keys.len; i++) {
        uint32_t at = s->keys.data[i].index;
        if (s->keys.data[i].hash != s->keys.data[run].hash)
            run = i;
        for (uint32_t k = run; k < i && s->first[at] == at; k++) {
            uint32_t other = s->keys.data[k].index;
            if (s->first[other] == other && equal(s, other, at))
                s->first[at] = other;
        }
    }
}

/* --- kernels --- */

static bool same_node(const graph_node *a, const graph_node *b)
{
    if (a->op != b->op || a->n_attrs != b->n_attrs)
        return false;
    for (uint32_t i = 0; i < a->n_attrs; i++)
        if (!attr_equal(&a->attrs[i], &b->attrs[i]))
            return false;
    return true;
}

/* Attributes of operators steer schedules also where the plain loops do not show them. */
static bool same_operators(const prog_kernel *a, const prog_kernel *b)
{
    if (a->node || b->node)
        return a->node && b->node && same_node(a->node, b->node);
    if (!a->func || !b->func || a->func->nodes.len != b->func->nodes.len)
        return a->func == b->func;
    for (uint32_t i = 0; i < a->func->nodes.len; i++)
        if (!same_node(a->func->nodes.data[i], b->func->nodes.data[i]))
            return false;
    return true;
}

static bool same_kernel(const sharing *s, uint32_t a, uint32_t b)
{
    const prog_kernel *x = s->m->kernels.data[a], *y = s->m->kernels.data[b];
    return x->target == y->target && x->joins == y->joins && x->stacks == y->stacks &&
           strcmp(prog_kernel_base_name(s->tmp, x->kind), prog_kernel_base_name(s->tmp, y->kind)) == 0 &&
           !x->loops == !y->loops && /* scheduled or not, both alike */
           (x->loops ? tir_func_equal(s->m->c, x->loops, y->loops)
                     : same_operators(x, y) && tir_func_equal(s->m->c, x->plain, y->plain));
}

static void share_kernels(prog_module *m, arena *tmp)
{
    sharing s = {.m = m, .tmp = tmp};
    ptr_map number;
    prog_walk w;
    ptr_map_init(&number, tmp);
    for (uint32_t i = 0; i < m->kernels.len; i++) {
        const prog_kernel *k = m->kernels.data[i];
        const tir_func *f = k->loops ? k->loops : k->plain; /* NULL: waits for its target, and stays alone */
        ptr_map_set(&number, k, i);
        if (f && !k->region) /* each of those has a state of its own */
            vec_push(tmp, &s.keys, ((key){tir_hash(m->c, f), i}));
    }
    find_first(&s, m->kernels.len, same_kernel);
    for (uint32_t i = 0; i < m->funcs.len; i++)
        for (prog_step *step = prog_first_step(m->funcs.data[i], &w); step; step = prog_next_step(&w)) {
            uint32_t n;
            if (step->kernel && ptr_map_get(&number, step->kernel, &n))
                step->kernel = m->kernels.data[s.first[n]];
        }
}

/* --- constants --- */

static bool same_constant(const sharing *s, uint32_t a, uint32_t b)
{
    return tensor_equal(s->f->values.data[a].data, s->f->values.data[b].data);
}

static void share_constants(prog_module *m, prog_func *f, arena *tmp)
{
    sharing s = {.m = m, .f = f, .tmp = tmp};
    prog_walk w;
    for (uint32_t i = 0; i < f->values.len; i++)
        if (f->values.data[i].data)
            vec_push(tmp, &s.keys, ((key){tensor_hash(f->values.data[i].data), i}));
    find_first(&s, f->values.len, same_constant);
    for (uint32_t i = 0; i < f->values.len; i++)
        if (f->values.data[i].base != PROG_NONE)
            f->values.data[i].base = s.first[f->values.data[i].base];
    for (prog_step *step = prog_first_step(f, &w); step; step = prog_next_step(&w))
        for (uint32_t k = 0; k < step->n_args; k++)
            step->args[k] = s.first[step->args[k]];
}

bool prog_pass_share(compiler *c, prog_module *m)
{
    arena tmp;
    (void)c;
    arena_init(&tmp, &m->c->mem);
    share_kernels(m, &tmp);
    for (uint32_t i = 0; i < m->funcs.len; i++)
        share_constants(m, m->funcs.data[i], &tmp);
    arena_free(&tmp);
    prog_drop_unused(m);
    return true;
}
