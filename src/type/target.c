/* SPDX-License-Identifier: Apache-2.0 */
/* Targets of all families (src/target), and which of them this machine is. */
#include "type/target.h"
#include "type/family.h"

#include <string.h>

const target *target_at(uint32_t i)
{
    for (const target_family *const *f = target_families; *f; i -= (uint32_t)(*f)->n_targets, f++)
        if (i < (*f)->n_targets)
            return &(*f)->targets[i];
    return NULL;
}

static const target *find(const char *name)
{
    const target *t;
    for (uint32_t i = 0; (t = target_at(i)); i++)
        if (strcmp(t->name, name) == 0)
            return t;
    return NULL;
}

/* The family that this machine is of; NULL: none of them. */
static const target_family *family_here(void)
{
    for (const target_family *const *f = target_families; *f; f++)
        if ((*f)->usual)
            return *f;
    return NULL;
}

/* The level of instructions that this machine has, and which of `features`. */
static const target *level_here(uint32_t *features)
{
    const target_family *f = family_here();
    *features = 0;
    const char *name = f ? f->level(features) : NULL;
    return find(name ? name : "generic");
}

const target *target_with_features(const target *level, uint32_t features)
{
    const target *t;
    for (uint32_t i = 0; (t = target_at(i)); i++)
        if (!t->variants && t->cpu && level->cpu && strcmp(t->cpu, level->cpu) == 0 &&
            (t->features & ~(features | level->features)) == 0 &&
            (t->features & level->features) == level->features)
            level = t;
    return level;
}

/* This processor's row, where the machine has all that the row's code needs; else its level's. */
static const target *native(void)
{
    uint32_t features;
    const target *level = level_here(&features);
    const char *name = cpu_model_here();
    const target *own = name ? find(name) : NULL;
    bool fits = own && own->vector_bytes == level->vector_bytes && (own->features & ~features) == 0;
    return fits ? own : target_with_features(level, features);
}

const target *target_find(const char *name)
{
    return strcmp(name, "native") == 0 ? native() : find(name);
}

const cpu_model *target_cpu(const target *t)
{
    return cpu_model_find(t->cpu ? t->cpu : "generic");
}

const char *target_cross_cc(const target *t)
{
    const target_family *f = family_here();
    return t->cc && !(f && strcmp(t->cc, f->cc) == 0) ? t->cc : NULL;
}

const target *target_default(void)
{
    const target_family *f = family_here();
    return find(f ? f->usual : "generic");
}

typedef struct target_list {
    const target *t;
    struct target_list *next;
} target_list;

const target *target_lookup(const compiler *c, const char *name)
{
    for (const target_list *l = c->targets; l; l = l->next)
        if (strcmp(l->t->name, name) == 0)
            return l->t;
    return target_find(name);
}

const char *target_names(compiler *c)
{
    writer w;
    writer_init(&w, &c->mem);
    const target *t;
    for (uint32_t i = 0; (t = target_at(i)); i++)
        w_fmt(&w, "%s, ", t->name);
    for (const target_list *l = c->targets; l; l = l->next)
        if (!l->t->regions_only)
            w_fmt(&w, "%s, ", l->t->name);
    w_str(&w, "native");
    return w.data;
}

static bool takes_regions(const target *t)
{
    return t->regions_only;
}

static bool says_numbers(const target *t)
{
    return t->offload && t->offload->numbers;
}

/* Of the registered targets that `wanted` holds of. */
static const char *names_of(compiler *c, bool (*wanted)(const target *))
{
    writer w;
    writer_init(&w, &c->mem);
    for (const target_list *l = c->targets; l; l = l->next)
        if (wanted(l->t))
            w_fmt(&w, "%s%s", w.len ? ", " : "", l->t->name);
    return w.data ? w.data : "";
}

const char *target_region_names(compiler *c)
{
    return names_of(c, takes_regions);
}

const char *target_numbers_names(compiler *c)
{
    return names_of(c, says_numbers);
}

const target_numbers *target_numbers_of(const compiler *c, const char *name)
{
    const target *t = target_lookup(c, name);
    return t && t->offload ? t->offload->numbers : NULL;
}

bool target_register(compiler *c, const target *t)
{
    if (target_lookup(c, t->name))
        return diag_error(&c->diags, DIAG_USAGE, src_loc_none(), "there is a target '%s' already", t->name);
    target_list *l = arena_new(&c->mem, target_list);
    *l = (target_list){t, c->targets};
    c->targets = l;
    return true;
}

typedef struct target_setting {
    const char *name; /* of the target */
    const void *value;
    struct target_setting *next;
} target_setting;

void target_set(compiler *c, const char *name, const void *settings)
{
    target_setting *s = arena_new(&c->mem, target_setting);
    *s = (target_setting){name, settings, c->settings};
    c->settings = s;
}

const void *target_settings(const compiler *c, const char *name)
{
    for (const target_setting *s = c->settings; s; s = s->next)
        if (strcmp(s->name, name) == 0)
            return s->value;
    return NULL;
}
