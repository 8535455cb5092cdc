/* SPDX-License-Identifier: Apache-2.0 */
/* Programs: making them and asking them simple questions. */
#include "prog/prog.h"

#include "base/ptr_map.h"

#include <string.h>

const char *prog_space_text(prog_space s)
{
    switch (s) {
#define X(id, text) \
    case id: return text;
        PROG_SPACES(X)
#undef X
    }
    return "?";
}

const char *prog_step_text(prog_step_kind k)
{
    switch (k) {
#define X(id, text) \
    case id: return text;
        PROG_STEPS(X)
#undef X
    }
    return "?";
}

prog_module *prog_module_new(compiler *c)
{
    prog_module *m = arena_new(&c->mem, prog_module);
    m->c = c;
    return m;
}

prog_func *prog_find(const prog_module *m, const char *name)
{
    for (uint32_t i = 0; i < m->funcs.len; i++)
        if (strcmp(m->funcs.data[i]->name, name) == 0)
            return m->funcs.data[i];
    return NULL;
}

const char *prog_kernel_base_name(arena *a, const char *kind)
{
    writer w;
    writer_init(&w, a);
    w_str(&w, "fused");
    while (*kind) { /* long lists end where the name would become too long */
        size_t n = strcspn(kind, "+");
        n = n < 63 ? n : 63;
        if (w.len + n < 90) {
            char *part = arena_strndup(a, kind, n);
            for (char *at = strchr(part, '.'); at; at = strchr(at, '.'))
                *at = '_';
            w_fmt(&w, "_%s", part);
        }
        kind += strcspn(kind, "+");
        kind += *kind == '+';
    }
    return w.data;
}

void prog_name_kernels(prog_module *m)
{
    ptr_map taken;
    ptr_map_init(&taken, &m->c->mem);
    for (uint32_t i = 0; i < m->kernels.len; i++) {
        prog_kernel *k = m->kernels.data[i];
        const char *base = k->region ? k->region : prog_kernel_base_name(&m->c->mem, k->kind);
        k->name = intern_unique(m->c->names, &taken, base);
        if (k->plain)
            k->plain->name = k->name;
        if (k->loops)
            k->loops->name = k->name;
    }
}

const tir_func *prog_kernel_meaning(const prog_kernel *k)
{
    return k->plain ? k->plain : k->loops;
}

uint32_t prog_add_value(prog_module *m, prog_func *f, prog_value v)
{
    vec_push(&m->c->mem, &f->values, v);
    return f->values.len - 1;
}

uint32_t prog_root(const prog_func *f, uint32_t v, uint64_t *out_offset)
{
    *out_offset = 0;
    while (f->values.data[v].base != PROG_NONE) {
        *out_offset += f->values.data[v].offset;
        v = f->values.data[v].base;
    }
    return v;
}

void prog_place_results(prog_func *f)
{
    uint64_t start;
    for (uint32_t i = 0; i < f->results.len; i++) {
        prog_value *root = &f->values.data[prog_root(f, f->results.data[i].value, &start)];
        if (root->space != SPACE_WORKSPACE) /* the verifier names it */
            continue;
        root->space = SPACE_OUTPUT;
        root->index = i;
    }
    for (uint32_t v = 0; v < f->values.len; v++) {
        const prog_value *root = &f->values.data[prog_root(f, v, &start)];
        f->values.data[v].space = root->space;
        f->values.data[v].memory = root->memory;
        f->values.data[v].index = root->index;
    }
}

prog_step *prog_next_step(prog_walk *w)
{
    while (w->depth > 0) {
        uint32_t top = w->depth - 1;
        if (w->at[top].block == w->at[top].n) {
            w->depth--;
        } else if (w->at[top].next == w->at[top].blocks[w->at[top].block].len) {
            w->at[top].block++;
            w->at[top].next = 0;
        } else {
            prog_step *s = &w->at[top].blocks[w->at[top].block].data[w->at[top].next++];
            if (s->n_blocks > 0 && w->depth <= PROG_MAX_DEPTH) { /* the verifier refuses what is deeper */
                w->at[w->depth].blocks = s->blocks;
                w->at[w->depth].n = s->n_blocks;
                w->at[w->depth].block = w->at[w->depth].next = 0;
                w->depth++;
            }
            return s;
        }
    }
    return NULL;
}

prog_step *prog_first_step(const prog_func *f, prog_walk *w)
{
    w->at[0].blocks = &f->steps;
    w->at[0].n = 1;
    w->at[0].block = w->at[0].next = 0;
    w->depth = 1;
    return prog_next_step(w);
}

const char *prog_kernel_memory(const prog_kernel *k)
{
    return k->region ? k->target->memory : NULL; /* whoever runs a region that was declined is its target then */
}

uint64_t prog_bytes(const prog_value *v)
{
    int64_t bytes = type_most_bytes(&v->type);
    return bytes > 0 ? (uint64_t)bytes : 0;
}

bool prog_is_unbounded(const prog_value *v)
{
    return type_most_bytes(&v->type) < 0;
}

uint32_t prog_find_extent(const prog_func *f, const char *symbol)
{
    for (uint32_t i = 0; i < f->values.len; i++)
        if (f->values.data[i].extent && strcmp(dim_symbol_name(f->values.data[i].extent), symbol) == 0)
            return i;
    return PROG_NONE;
}

uint64_t prog_most_bytes(const struct target *t)
{
    return (uint64_t)1 << (t->address_bits == 32 ? 31 : 40);
}

/* --- numbers --- */

/* Everything that names values has their new numbers. */
static void use_numbers(prog_func *f, const uint32_t *number)
{
    prog_walk w;
    for (uint32_t i = 0; i < f->values.len; i++)
        if (f->values.data[i].base != PROG_NONE)
            f->values.data[i].base = number[f->values.data[i].base];
    for (prog_step *s = prog_first_step(f, &w); s; s = prog_next_step(&w))
        for (uint32_t k = 0; k < s->n_args; k++)
            s->args[k] = number[s->args[k]];
    for (uint32_t i = 0; i < f->results.len; i++)
        f->results.data[i].value = number[f->results.data[i].value];
}

void prog_number_values(prog_module *m, prog_func *f)
{
    const uint32_t first = f->n_inputs + f->n_states; /* what has its number by what it is */
    uint32_t n = f->values.len, next = first;
    arena tmp;
    prog_walk w;
    arena_init(&tmp, &m->c->mem);
    uint32_t *number = arena_array(&tmp, uint32_t, n + 1u);
    prog_value *moved = arena_array(&tmp, prog_value, n + 1u);
    for (uint32_t i = 0; i < n; i++)
        number[i] = i < first ? i : PROG_NONE;
    for (const prog_step *s = prog_first_step(f, &w); s; s = prog_next_step(&w))
        for (uint32_t k = 0; k < s->n_args; k++)
            if (number[s->args[k]] == PROG_NONE)
                number[s->args[k]] = next++;
    for (uint32_t i = 0; i < n; i++)
        number[i] = number[i] == PROG_NONE ? next++ : number[i];
    for (uint32_t i = 0; i < n; i++)
        moved[number[i]] = f->values.data[i];
    for (uint32_t i = 0; i < n; i++)
        f->values.data[i] = moved[i];
    use_numbers(f, number);
    arena_free(&tmp);
}

/* --- dropping --- */

static void drop_from(prog_func *f, arena *a)
{
    uint32_t *number = arena_array(a, uint32_t, f->values.len), kept = 0;
    bool *used = arena_array(a, bool, f->values.len);
    for (uint32_t i = 0; i < f->n_inputs + f->n_states; i++)
        used[i] = true;
    for (uint32_t i = 0; i < f->results.len; i++)
        used[f->results.data[i].value] = true;
    prog_walk w;
    for (const prog_step *s = prog_first_step(f, &w); s; s = prog_next_step(&w))
        for (uint32_t k = 0; k < s->n_args; k++)
            used[s->args[k]] = true;
    for (bool more = true; more;) { /* what another one lies in; bases may come behind */
        more = false;
        for (uint32_t i = 0; i < f->values.len; i++) {
            const uint32_t base = f->values.data[i].base;
            more |= used[i] && base != PROG_NONE && !used[base];
            if (used[i] && base != PROG_NONE)
                used[base] = true;
        }
    }
    for (uint32_t i = 0; i < f->values.len; i++) {
        number[i] = kept;
        if (used[i])
            f->values.data[kept++] = f->values.data[i];
    }
    f->values.len = kept;
    use_numbers(f, number);
}

static void drop_kernels(prog_module *m, arena *a)
{
    uint32_t kept = 0, ignored;
    ptr_map used;
    prog_walk w;
    ptr_map_init(&used, a);
    for (uint32_t i = 0; i < m->funcs.len; i++)
        for (const prog_step *s = prog_first_step(m->funcs.data[i], &w); s; s = prog_next_step(&w))
            if (s->kernel)
                ptr_map_set(&used, s->kernel, 1);
    for (uint32_t i = 0; i < m->kernels.len; i++)
        if (ptr_map_get(&used, m->kernels.data[i], &ignored))
            m->kernels.data[kept++] = m->kernels.data[i];
    m->kernels.len = kept;
    prog_name_kernels(m);
}

void prog_drop_unused(prog_module *m)
{
    arena tmp;
    arena_init(&tmp, &m->c->mem);
    for (uint32_t i = 0; i < m->funcs.len; i++)
        drop_from(m->funcs.data[i], &tmp);
    drop_kernels(m, &tmp);
    arena_free(&tmp);
}
