/* SPDX-License-Identifier: Apache-2.0 */
/* Devices with memory of their own, as a module has them: by number, in order, in front of the CPU. */
#include "codegen/module/module.h"
#include "prog/source.h"

#include <string.h>

static const struct {
    const char *name;
    int32_t device;
} memories[] = {
#define X(name, device) {name, device},
    MODULE_MEMORIES(X)
#undef X
};
enum { N_MEMORIES = sizeof memories / sizeof *memories };

int32_t memory_device(const char *memory)
{
    for (uint32_t i = 0; memory && i < N_MEMORIES; i++)
        if (strcmp(memories[i].name, memory) == 0)
            return memories[i].device;
    return 0;
}

const int32_t *memory_tags(const package *p, uint32_t op)
{
    const plan_op *o = &p->pl->problem->ops.data[op];
    int32_t *tags = arena_array(&p->c->mem, int32_t, o->n_args + o->n_scratch + 1u);
    bool any = false;
    for (uint32_t i = 0; i < o->n_args; i++) {
        tags[i] = memory_device(p->u->func->values.data[o->args[i]].memory);
        any |= tags[i] != 0;
    }
    return any ? tags : NULL;
}

static bool is_used(const module_variant *variants, uint32_t n, const char *memory)
{
    for (uint32_t v = 0; v < n; v++) {
        const prog_func *f = variants[v].p.u->func;
        for (uint32_t i = 0; i < f->values.len; i++)
            if (f->values.data[i].memory && strcmp(f->values.data[i].memory, memory) == 0)
                return true;
    }
    return false;
}

void memory_collect(module_code *m, const module_variant *variants, uint32_t n)
{
    int32_t *devices = arena_array(&m->c->mem, int32_t, N_MEMORIES);
    for (uint32_t i = 0; i < N_MEMORIES; i++) /* the table is by number */
        if (is_used(variants, n, memories[i].name))
            devices[m->n_devices++] = memories[i].device;
    m->devices = devices;
}

int64_t memory_index(const module_code *m, const char *memory)
{
    for (uint32_t i = 0; i < m->n_devices; i++)
        if (m->devices[i] == memory_device(memory))
            return i + 1;
    return 0;
}

bool memory_is_copy(const package *p, uint32_t op)
{
    return p->pl->problem->ops.data[op].step->kind == STEP_COPY;
}

const char *memory_ready_name(const package *p, uint32_t i)
{
    const prog_source *s = &p->u->prog->sources.data[i];
    return s->ready ? arena_printf(&p->c->mem, "%s_ready_%s", p->prefix, s->target->name) : NULL;
}
