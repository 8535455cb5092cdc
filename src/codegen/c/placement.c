/* SPDX-License-Identifier: Apache-2.0 */
/* Weights and workspace in a board's memories: reads the description of these, and chooses. Objects go in the order of
 * their accesses for each byte, each into the fastest memory that has room for it. */
#include "codegen/c/placement.h"

#include <stdlib.h>
#include <string.h>

#include "tir/facts.h"

enum { AREA_ALIGN = 64, MOST_MEMORIES = 32 };

/* --- the description --- */

typedef struct memory_line {
    char *words[5];
    uint32_t n;
} memory_line;

static memory_line split(char *line)
{
    memory_line l = {.n = 0};
    line[strcspn(line, "#")] = '\0';
    for (char *s = line + strspn(line, " \t\r"); *s; s += strspn(s, " \t\r")) {
        if (l.n < 5)
            l.words[l.n] = s;
        l.n++;
        s += strcspn(s, " \t\r");
        if (*s)
            *s++ = '\0';
    }
    return l;
}

/* "128K" */
static bool read_size(const char *s, uint64_t *out)
{
    char *end;
    const uint64_t most = UINT64_C(1) << 40;
    if (*s < '0' || *s > '9')
        return false;
    unsigned long long n = strtoull(s, &end, 0);
    unsigned shift = *end == 'K' || *end == 'k'   ? 10
                     : *end == 'M' || *end == 'm' ? 20
                     : *end == 'G' || *end == 'g' ? 30
                                                  : 0;
    end += shift > 0;
    *out = (uint64_t)n << shift;
    return *end == '\0' && n <= most >> shift;
}

/* Names go into C, a section's into the assembler as well. */
static bool is_name(const char *s, const char *others)
{
    for (; *s; s++)
        if (!(*s >= 'a' && *s <= 'z') && !(*s >= 'A' && *s <= 'Z') && !(*s >= '0' && *s <= '9') && !strchr(others, *s))
            return false;
    return true;
}

static bool wrong(compiler *c, const char *file, uint32_t line, const char *what)
{
    diag_error(&c->diags, DIAG_SYNTAX, src_loc_none(), "%s:%u: %s", file, line, what);
    diag_hint(&c->diags, "a line is NAME ram|rom SIZE SECTION COST, for example: dtcm ram 128K .dtcm_bss 1; the "
                         "SECTION - means the compiler's default section");
    return false;
}

/* ".bss", or ".bss." and more. */
static bool is_section_of(const char *s, const char *name)
{
    const size_t n = strlen(name);
    return strncmp(s, name, n) == 0 && (s[n] == '\0' || s[n] == '.');
}

/* Sections that compilers know by name hold what is in the file, or what is written: not the other. `.data` may hold
 * constants, which the start-up code copies. NULL: the name says nothing against it. */
static const char *wrong_section(compiler *c, const placement *all, const board_memory *m)
{
    static const char *const of_kind[2][4] = {{".bss", ".sbss", ".tbss", ".noinit"},
                                              {".text", ".rodata", ".tdata", ".tbss"}};
    static const char *const why[2] = {"no numbers from the file, and this is rom",
                                       "nothing that is written, and this is ram"};
    for (size_t i = 0; i < 4; i++)
        if (is_section_of(m->section, of_kind[m->is_ram][i]))
            return arena_printf(&c->mem, "the section %s holds %s", m->section, why[m->is_ram]);
    for (uint32_t i = 0; i < all->n_memories; i++) {
        const board_memory *other = &all->memories[i];
        if (other->is_ram != m->is_ram && other->section && strcmp(other->section, m->section) == 0)
            return arena_printf(&c->mem, "the section %s is the one of '%s', which is %s: a section is of one kind",
                                m->section, other->name, other->is_ram ? "ram" : "rom");
    }
    return NULL;
}

static bool read_memory(compiler *c, const char *file, uint32_t line, const memory_line *l, placement *out)
{
    board_memory *m = &out->memories[out->n_memories];
    uint64_t cost;
    *m = (board_memory){.name = l->words[0], .is_ram = l->n > 1 && strcmp(l->words[1], "ram") == 0};
    if (l->n != 5)
        return wrong(c, file, line, "five words are needed");
    if (!is_name(m->name, "_.-"))
        return wrong(c, file, line, "the first word is not a name of a memory: letters, digits, _, . and -");
    if (!m->is_ram && strcmp(l->words[1], "rom") != 0)
        return wrong(c, file, line, "the second word is ram or rom");
    if (!read_size(l->words[2], &m->bytes))
        return wrong(c, file, line, "the third word is not a size such as 4096, 128K or 8M");
    if (!is_name(l->words[3], "_.") && strcmp(l->words[3], "-") != 0)
        return wrong(c, file, line, "the fourth word is not a name of a section");
    if (!read_size(l->words[4], &cost) || cost > UINT32_MAX)
        return wrong(c, file, line, "the fifth word is not a number");
    for (uint32_t i = 0; i < out->n_memories; i++)
        if (strcmp(out->memories[i].name, m->name) == 0)
            return wrong(c, file, line, "there is a memory of this name already");
    m->section = strcmp(l->words[3], "-") == 0 ? NULL : l->words[3];
    const char *why = m->section ? wrong_section(c, out, m) : NULL;
    if (why)
        return wrong(c, file, line, why);
    m->cost = (uint32_t)cost;
    out->n_memories++;
    return true;
}

static int by_cost(const void *x, const void *y)
{
    const board_memory *a = x, *b = y;
    return a->cost != b->cost ? (a->cost < b->cost ? -1 : 1) : strcmp(a->name, b->name);
}

bool placement_parse(compiler *c, const char *file, const char *text, size_t len, placement *out)
{
    char *at = arena_strndup(&c->mem, text, len);
    *out = (placement){.memories = arena_array(&c->mem, board_memory, MOST_MEMORIES)};
    for (uint32_t line = 1; *at; line++) {
        char *end = at + strcspn(at, "\n"), *next = end + (*end == '\n');
        *end = '\0';
        memory_line l = split(at);
        if (l.n > 0 && out->n_memories == MOST_MEMORIES)
            return wrong(c, file, line, "there are too many memories");
        if (l.n > 0 && !read_memory(c, file, line, &l, out))
            return false;
        at = next;
    }
    qsort(out->memories, out->n_memories, sizeof *out->memories, by_cost);
    return out->n_memories > 0 || wrong(c, file, 1, "no memory is described");
}

/* --- the choice --- */

/* The workspace, or a constant that lies in no other one. */
typedef struct object {
    uint32_t value; /* UINT32_MAX: the workspace */
    uint64_t bytes, align;
    double accesses;
    board_memory *memory;
} object;

#define WORKSPACE UINT32_MAX

/* Where code is called on operands, its instructions read what the plain loops of the kernel do. */
static void count_params(compiler *c, const plan_op *op, double *params, double *scratch)
{
    const prog_kernel *k = op->step ? op->step->kernel : NULL;
    const tir_func *meaning = k ? prog_kernel_meaning(k) : NULL;
    double unused = 0;
    if (tir_count_accesses(c, op->func, params, scratch) || !meaning || meaning->n_params != op->n_args)
        return;
    memset(params, 0, op->n_args * sizeof *params);
    tir_count_accesses(c, meaning, params, &unused);
}

/* Elements that a run reads and writes: of each value's root, and of the workspace with its scratch. */
static double count_uses(compiler *c, const plan_problem *p, double *of_roots)
{
    double workspace = 0;
    for (uint32_t i = 0; i < p->ops.len; i++) {
        const plan_op *op = &p->ops.data[i];
        const uint32_t n = op->n_args > op->func->n_params ? op->n_args : op->func->n_params;
        double *params = arena_array(&c->mem, double, n + 1u);
        count_params(c, op, params, &workspace);
        for (uint32_t k = 0; k < op->n_args; k++) {
            uint64_t at;
            const uint32_t root = plan_root(p, op->args[k], &at);
            of_roots[root] += params[k];
            workspace += p->values.data[root].storage == STORE_WORKSPACE ? params[k] : 0;
        }
    }
    return workspace;
}

static int by_use(const void *x, const void *y)
{
    const object *a = x, *b = y;
    const double p = a->accesses * (double)b->bytes, q = b->accesses * (double)a->bytes;
    return p != q ? (p > q ? -1 : 1) : a->value < b->value ? -1 : a->value > b->value;
}

static uint64_t align_up(uint64_t v, uint64_t align)
{
    return (v + align - 1) / align * align;
}

/* Bytes that lack in the memory of the kind that has most left. */
static uint64_t missing(const placement *all, const object *o)
{
    uint64_t most = 0;
    for (uint32_t i = 0; i < all->n_memories; i++) {
        const board_memory *m = &all->memories[i];
        const uint64_t left = m->bytes - m->used;
        most = m->is_ram == (o->value == WORKSPACE) && left > most ? left : most;
    }
    return o->bytes > most ? o->bytes - most : o->align;
}

static const char *names_of(compiler *c, const placement *all, bool ram)
{
    const char *text = "";
    for (uint32_t i = 0; i < all->n_memories; i++) {
        const board_memory *m = &all->memories[i];
        if (m->is_ram == ram)
            text = arena_printf(&c->mem, "%s%s%s has %llu of %llu left", text, *text ? ", " : "", m->name,
                                (unsigned long long)(m->bytes - m->used), (unsigned long long)m->bytes);
    }
    return *text ? text : ram ? "no RAM is described" : "no ROM is described";
}

/* Of constants from o to the end, which is the first that found no room: bytes that lack for all of them together. */
static uint64_t missing_for_all(const placement *all, const object *o, const object *end)
{
    const uint64_t first = missing(all, o);
    uint64_t left = 0, need = 0;
    for (uint32_t i = 0; i < all->n_memories; i++)
        left += all->memories[i].is_ram ? 0 : all->memories[i].bytes - all->memories[i].used;
    for (; o < end; o++)
        need += o->value == WORKSPACE ? 0 : align_up(o->bytes, o->align);
    return need > left && need - left > first ? need - left : first;
}

/* Those behind o up to `end` come later. */
static bool put(compiler *c, const plan_problem *p, placement *all, object *o, const object *end)
{
    const bool ram = o->value == WORKSPACE;
    for (uint32_t i = 0; i < all->n_memories && !o->memory; i++) {
        board_memory *m = &all->memories[i];
        const uint64_t at = align_up(m->used, o->align);
        if (m->is_ram != ram || at > m->bytes || m->bytes - at < o->bytes)
            continue;
        m->used = at + o->bytes;
        o->memory = m;
    }
    if (o->memory)
        return true;
    diag_error(&c->diags, DIAG_UNSUPPORTED, src_loc_none(),
               "%s of %llu bytes does not fit into the board's memories, %llu are missing%s: %s",
               ram ? "the workspace" : arena_printf(&c->mem, "constant '%s'", p->values.data[o->value].name),
               (unsigned long long)o->bytes, (unsigned long long)(ram ? missing(all, o) : missing_for_all(all, o, end)),
               ram ? "" : " for all constants together", names_of(c, all, ram));
    if (ram)
        diag_hint(&c->diags, "%sa smaller model, %sor a larger RAM",
                  all->streams ? "--minimize ram, or --ram BYTES, runs kernels row by row; or " : "",
                  all->quantised ? "" : "quantized values, ");
    else
        diag_hint(&c->diags, "%s, or describe an external flash",
                  all->quantised ? "a smaller model" : "quantize the model");
    return false;
}

/* The areas, area 0 first, and the constants' offsets in them. */
static void lay_out(compiler *c, placement *all, plan *pl, const object *objects, uint32_t n)
{
    uint64_t at = 0;
    all->areas = arena_array(&c->mem, constant_area, all->n_memories + 1u);
    all->n_areas = 1;
    for (int named = 0; named < 2; named++)
        for (uint32_t m = 0; m < all->n_memories; m++) {
            const board_memory *memory = &all->memories[m];
            constant_area *area = &all->areas[named ? all->n_areas : 0];
            if (memory->is_ram || (memory->section != NULL) != named || memory->used == 0)
                continue;
            if (named)
                *area = (constant_area){memory, align_up(at, AREA_ALIGN), 0};
            at = named ? area->begin : at;
            for (uint32_t i = 0; i < n; i++) {
                if (objects[i].memory != memory || objects[i].value == WORKSPACE)
                    continue;
                at = align_up(at, objects[i].align);
                pl->places[objects[i].value].offset = at;
                at += objects[i].bytes;
            }
            area->memory = memory;
            area->end = at;
            all->n_areas += (uint32_t)named;
        }
    for (uint32_t v = 0; v < pl->problem->values.len; v++) {
        uint64_t inside;
        const uint32_t root = plan_root(pl->problem, v, &inside);
        if (root != v && pl->problem->values.data[root].storage == STORE_CONSTANT)
            pl->places[v].offset = pl->places[root].offset + inside;
    }
    pl->constant_bytes = at;
}

bool placement_choose(compiler *c, placement *out, plan *pl)
{
    const plan_problem *p = pl->problem;
    double *uses = arena_array(&c->mem, double, p->values.len + 1u);
    object *objects = arena_array(&c->mem, object, p->values.len + 1u);
    uint32_t n = 0;
    const double of_workspace = count_uses(c, p, uses);
    if (pl->workspace_bytes > 0)
        objects[n++] = (object){WORKSPACE, pl->workspace_bytes, AREA_ALIGN, of_workspace, NULL};
    for (uint32_t v = 0; v < p->values.len; v++)
        if (p->values.data[v].storage == STORE_CONSTANT && p->values.data[v].parent < 0 && p->values.data[v].bytes > 0)
            objects[n++] = (object){v, p->values.data[v].bytes, p->values.data[v].align, uses[v], NULL};
    qsort(objects, n, sizeof *objects, by_use);
    for (uint32_t i = 0; i < n; i++)
        if (!put(c, p, out, &objects[i], objects + n))
            return false;
    for (uint32_t i = 0; i < n; i++)
        if (objects[i].value == WORKSPACE)
            out->workspace = objects[i].memory;
    lay_out(c, out, pl, objects, n);
    return true;
}

void placement_json(json_out *j, const placement *p)
{
    if (!p)
        return;
    json_out_array(j, "memories");
    for (uint32_t i = 0; i < p->n_memories; i++) {
        json_out_object(j, NULL);
        json_out_text(j, "name", p->memories[i].name);
        json_out_uint(j, "bytes", p->memories[i].bytes);
        json_out_uint(j, "used", p->memories[i].used);
        json_out_end(j);
    }
    json_out_end(j);
}
