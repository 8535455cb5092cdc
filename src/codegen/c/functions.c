/* SPDX-License-Identifier: Apache-2.0 */
/* A package of several functions, one for each signature of a model. Each function has the files of a package of its
 * own; constants and the static workspace are theirs together, and so are runtime, Makefile and report. */
#include "codegen/c/package.h"
#include "codegen/c/template.h"

#include <string.h>

static void write_includes(const package *p, writer *w)
{
    w_fmt(w, "#ifdef %s_NO_STATIC_WORKSPACE\n", p->macro);
    for (uint32_t i = 0; i < p->n_functions; i++)
        w_fmt(w, "#ifndef %s_NO_STATIC_WORKSPACE\n#define %s_NO_STATIC_WORKSPACE\n#endif\n", p->functions[i].macro,
              p->functions[i].macro);
    w_str(w, "#endif\n\n");
    for (uint32_t i = 0; i < p->n_functions; i++)
        w_fmt(w, "#include \"%s.h\" /* signature %s */\n", p->functions[i].prefix,
              package_comment(&p->c->mem, p->functions[i].u->signature));
}

static void write_memory(const package *p, writer *w)
{
    const uint64_t workspace = p->pl->workspace_bytes, constants = p->pl->constant_bytes;
    w_fmt(w, "#define %s_WORKSPACE_SIZE %lluu\n#define %s_WORKSPACE_ALIGN %uu\n", p->macro,
          (unsigned long long)workspace, p->macro, package_area_align(workspace));
    w_fmt(w, "#define %s_CONST_SIZE %lluu\n#define %s_CONST_ALIGN %uu\n", p->macro, (unsigned long long)constants,
          p->macro, package_area_align(constants));
}

static void write_header(const package *p, writer *w)
{
    static const template_piece pieces[] = {{"functions", write_includes}, {"memory", write_memory}};
    template_file(p, "functions.h", pieces, sizeof pieces / sizeof *pieces, w);
}

static void write_lib0(const package *p, writer *w)
{
    static const template_piece pieces[] = {{"constants", constants_write}};
    template_file(p, "functions_lib0.c", pieces, 1, w);
}

/* --- the constants of all: one at each place --- */

typedef struct constant_list {
    VEC(package_const) all;
    VEC(plan_place) places;
    ptr_map names, at; /* interned; of offsets, as texts */
} constant_list;

static void add_constant(compiler *c, constant_list *l, const package *f, const package_const *k)
{
    const uint64_t offset = f->pl->places[k->value].offset;
    const char *place = intern(c->names, arena_printf(&c->mem, "%llu", (unsigned long long)offset));
    const char *name = intern(c->names, k->name);
    uint32_t there;
    if (k->data->count == 0 || ptr_map_get(&l->at, place, &there))
        return;
    ptr_map_set(&l->at, place, 1);
    for (uint32_t again = 2; ptr_map_get(&l->names, name, &there); again++)
        name = intern(c->names, arena_printf(&c->mem, "%s_of_%u", k->name, again));
    ptr_map_set(&l->names, name, 1);
    const uint32_t value = l->places.len;
    vec_push(&c->mem, &l->all, ((package_const){name, k->data, value, k->label}));
    vec_push(&c->mem, &l->places, ((plan_place){.offset = offset}));
}

/* What stands for all functions: their constants, and the largest of their workspaces. */
static package package_of_all(compiler *c, const package *functions, uint32_t n)
{
    codegen_unit *u = arena_new(&c->mem, codegen_unit);
    plan *pl = arena_new(&c->mem, plan);
    constant_area *whole = arena_new(&c->mem, constant_area);
    constant_list l = {0};
    ptr_map_init(&l.names, &c->mem);
    ptr_map_init(&l.at, &c->mem);
    *u = *functions[0].u;
    u->module_name = u->group;
    u->group = u->signature = NULL;
    for (uint32_t i = 0; i < n; i++) {
        for (uint32_t k = 0; k < functions[i].n_constants; k++)
            add_constant(c, &l, &functions[i], &functions[i].constants[k]);
        if (functions[i].pl->workspace_bytes > pl->workspace_bytes)
            pl->workspace_bytes = functions[i].pl->workspace_bytes;
    }
    pl->problem = arena_new(&c->mem, plan_problem);
    pl->places = l.places.data;
    pl->constant_bytes = whole->end = functions[0].pl->constant_bytes;
    u->plan = pl;
    const char *prefix = arena_printf(&c->mem, "tvmgen_%s", u->module_name);
    return (package){.c = c, .u = u, .pl = pl, .prefix = prefix, .macro = package_upper(&c->mem, prefix),
                     .constants_form = constants_form_of(u), .areas = whole, .n_areas = 1,
                     .constants = l.all.data, .n_constants = l.all.len, .functions = functions, .n_functions = n};
}

bool codegen_c_functions(compiler *c, const codegen_unit *units, uint32_t n, artifact *out)
{
    package *functions = arena_array(&c->mem, package, n);
    for (uint32_t i = 0; i < n; i++)
        functions[i] = package_of(c, &units[i], arena_printf(&c->mem, "tvmgen_%s", units[i].module_name));
    package p = package_of_all(c, functions, n);
    for (uint32_t i = 0; i < n; i++)
        if (!codegen_c_holds(c, units[i].plan->problem->ops.len) || !package_check_static(&functions[i]))
            return false;
    if (p.constants_form != CONSTANTS_C && !package_add_constants(&p, out))
        return false;
    package_add(&p, out, arena_printf(&c->mem, "include/%s.h", p.prefix), write_header);
    package_add(&p, out, arena_printf(&c->mem, "src/%s_lib0.c", p.u->module_name), write_lib0);
    for (uint32_t i = 0; i < n; i++)
        if (!package_add_function(&functions[i], out, 0))
            return false;
    package_add(&p, out, "Makefile", makefile_write);
    package_add(&p, out, "CMakeLists.txt", makefile_write_cmake);
    makefile_products(&p, out);
    if (!runtime_add(&p, out))
        return false;
    for (uint32_t i = 0; i < n; i++)
        functions[i].files = out;
    package_add(&p, out, PACKAGE_REPORT, report_write_functions);
    return true;
}
