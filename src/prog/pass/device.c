/* SPDX-License-Identifier: Apache-2.0 */
/* Memory of devices: what a region of a target with a memory of its own makes stays there as long as only such regions
 * read it. Where the host, or another device, wants the bytes, a step copies them, once; what the host has is copied to
 * the device in front of the first region that reads it. Constants and extents stay the host's. */
#include "base/ptr_map.h"
#include "prog/prog.h"

#include <string.h>

#define NO_TWIN UINT32_MAX

/* The value that has the same bytes in another memory, as long as the block lasts that made it. */
typedef struct twin {
    uint32_t of, value;
    uint32_t before; /* the one that `of` had until then, or NO_TWIN */
} twin;

typedef struct placing {
    prog_module *m;
    prog_func *f;
    VEC(twin) twins;
    VEC(uint32_t) newest; /* of each value: its last twin, or NO_TWIN */
    ptr_map names;        /* of values */
    bool *written_again; /* of each value that there was before: by the rounds of a loop, by branches */
    const char **theirs; /* of each of them: the memory of all kernels that touch it; NULL: others do, too */
    uint32_t n_before;
    arena *tmp;
} placing;

static const prog_value *value(const placing *p, uint32_t v)
{
    return &p->f->values.data[v];
}

static bool lies_in(const placing *p, uint32_t v, const char *memory)
{
    const char *own = value(p, v)->memory;
    return !own == !memory && (!own || strcmp(own, memory) == 0);
}

/* The memory in which the kernel of a step works; NULL: the host's, as of steps without a kernel. A device has none for
 * values whose size a run decides. */
static const char *memory_of(const placing *p, const prog_step *s)
{
    const char *memory = s->kernel ? prog_kernel_memory(s->kernel) : NULL;
    for (uint32_t i = 0; i < s->n_args && memory; i++)
        if (!shape_is_static(value(p, s->args[i])->type.shape))
            return NULL;
    return memory ? intern(p->m->c->names, memory) : NULL;
}

/* Operand i of a kernel is in its device's memory: constants, of which its target knows, and extents are not. */
static bool goes_there(const placing *p, const prog_step *s, uint32_t i)
{
    const prog_value *v = value(p, s->args[i]);
    uint64_t start;
    if (s->kernel->constants)
        return !v->extent && !s->kernel->constants[i];
    return !v->extent && value(p, prog_root(p->f, s->args[i], &start))->space != SPACE_CONSTANT;
}

/* A value that blocks make again: its bytes differ from one time to the next. */
static void find_written_again(placing *p)
{
    prog_walk w;
    uint64_t start;
    p->n_before = p->f->values.len;
    p->written_again = arena_array(p->tmp, bool, p->n_before + 1u);
    for (const prog_step *s = prog_first_step(p->f, &w); s; s = prog_next_step(&w))
        for (uint32_t i = s->kind == STEP_LOOP ? 0 : s->n_in; i < s->n_args && s->n_blocks > 0; i++)
            p->written_again[s->args[i]] = true;
    for (uint32_t v = 0; v < p->n_before; v++)
        p->written_again[v] |= p->written_again[prog_root(p->f, v, &start)];
}

/* Which values only kernels of one memory touch, and which memory that is. */
static void find_theirs(placing *p)
{
    prog_walk w;
    bool *others = arena_array(p->tmp, bool, p->n_before + 1u);
    p->theirs = arena_array(p->tmp, const char *, p->n_before + 1u);
    for (const prog_step *s = prog_first_step(p->f, &w); s; s = prog_next_step(&w)) {
        const char *own = memory_of(p, s);
        for (uint32_t i = 0; i < s->n_args; i++) {
            const char **at = &p->theirs[s->args[i]];
            others[s->args[i]] |= !own || (*at && *at != own);
            *at = own;
        }
    }
    for (uint32_t v = 0; v < p->n_before; v++) {
        const prog_value *x = value(p, v);
        if (x->base != PROG_NONE)
            others[x->base] = true;
        others[v] |= x->extent || x->space != SPACE_WORKSPACE || x->base != PROG_NONE || p->written_again[v];
    }
    for (uint32_t v = 0; v < p->n_before; v++)
        p->theirs[v] = others[v] ? NULL : p->theirs[v];
}

/* --- steps --- */

/* v's bytes in `memory` (NULL: the host's), not written yet. */
static uint32_t new_value(placing *p, uint32_t v, const char *memory)
{
    compiler *c = p->m->c;
    const char *want = arena_printf(&c->mem, "%s_%s", value(p, v)->name, memory ? memory : "host");
    vec_push(p->tmp, &p->newest, NO_TWIN);
    return prog_add_value(p->m, p->f,
                          (prog_value){.name = intern_unique(c->names, &p->names, want),
                                       .type = value(p, v)->type,
                                       .space = memory ? SPACE_DEVICE : SPACE_WORKSPACE,
                                       .memory = memory,
                                       .base = PROG_NONE});
}

static void copy(placing *p, prog_block *to, uint32_t from, uint32_t into, src_loc loc)
{
    prog_step s = {.kind = STEP_COPY, .source = "", .loc = loc, .n_in = 1, .n_args = 2};
    s.args = arena_array(&p->m->c->mem, uint32_t, 2);
    s.args[0] = from;
    s.args[1] = into;
    vec_push(&p->m->c->mem, to, s);
}

static uint32_t find_twin(const placing *p, uint32_t v, const char *memory)
{
    for (uint32_t i = p->newest.data[v]; i != NO_TWIN; i = p->twins.data[i].before)
        if (lies_in(p, p->twins.data[i].value, memory))
            return p->twins.data[i].value;
    return PROG_NONE;
}

static void add_twin(placing *p, uint32_t of, uint32_t v)
{
    vec_push(p->tmp, &p->twins, ((twin){of, v, p->newest.data[of]}));
    p->newest.data[of] = p->twins.len - 1;
}

/* The twins of a block are gone behind it. */
static void drop_twins(placing *p, uint32_t n)
{
    while (p->twins.len > n) {
        const twin t = vec_pop(&p->twins);
        p->newest.data[t.of] = t.before;
    }
}

/* v, or its bytes in `memory`, copied where they are not there yet. */
static uint32_t bring(placing *p, prog_block *to, uint32_t v, const char *memory, src_loc loc)
{
    if (lies_in(p, v, memory))
        return v;
    uint32_t there = find_twin(p, v, memory);
    if (there != PROG_NONE)
        return there;
    if (value(p, v)->memory && memory) { /* devices know the host, not each other */
        const uint32_t host = bring(p, to, v, NULL, loc);
        return bring(p, to, host, memory, loc);
    }
    there = new_value(p, v, memory);
    copy(p, to, v, there, loc);
    if (v >= p->n_before || !p->written_again[v])
        add_twin(p, v, there);
    return there;
}

static void place_kernel(placing *p, prog_block *to, prog_step *s, const char *memory)
{
    for (uint32_t i = 0; i < s->n_in; i++)
        if (goes_there(p, s, i))
            s->args[i] = bring(p, to, s->args[i], memory, s->loc);
    vec_push(&p->m->c->mem, to, *s); /* its arguments are those of s */
    for (uint32_t i = s->n_in; i < s->n_args; i++) {
        const uint32_t v = s->args[i];
        if (lies_in(p, v, memory) || value(p, v)->extent)
            continue;
        if (p->theirs[v]) {
            p->f->values.data[v].space = SPACE_DEVICE;
            p->f->values.data[v].memory = memory;
            continue;
        }
        s->args[i] = new_value(p, v, memory);
        copy(p, to, s->args[i], v, s->loc);
        if (!p->written_again[v])
            add_twin(p, v, s->args[i]);
    }
}

static void place_block(placing *p, prog_block *b)
{
    const prog_block old = *b;
    const uint32_t n_twins = p->twins.len;
    *b = (prog_block){0};
    for (uint32_t i = 0; i < old.len; i++) {
        prog_step *s = &old.data[i];
        const char *memory = memory_of(p, s);
        for (uint32_t k = 0; k < s->n_blocks; k++)
            place_block(p, &s->blocks[k]);
        if (memory)
            place_kernel(p, b, s, memory);
        else
            vec_push(&p->m->c->mem, b, *s);
    }
    drop_twins(p, n_twins);
}

static void note_values(placing *p)
{
    ptr_map_init(&p->names, p->tmp);
    for (uint32_t v = 0; v < p->f->values.len; v++) {
        ptr_map_set(&p->names, intern(p->m->c->names, value(p, v)->name), 1);
        vec_push(p->tmp, &p->newest, NO_TWIN);
    }
}

static bool has_memory(const prog_module *m)
{
    for (uint32_t i = 0; i < m->kernels.len; i++)
        if (prog_kernel_memory(m->kernels.data[i]))
            return true;
    return false;
}

bool prog_pass_device(compiler *c, prog_module *m)
{
    arena tmp;
    if (!has_memory(m))
        return true;
    arena_init(&tmp, &c->mem);
    for (uint32_t i = 0; i < m->funcs.len; i++) {
        placing p = {.m = m, .f = m->funcs.data[i], .tmp = &tmp};
        note_values(&p);
        find_written_again(&p);
        find_theirs(&p);
        place_block(&p, &p.f->steps);
        prog_number_values(m, p.f);
    }
    arena_free(&tmp);
    return true;
}
