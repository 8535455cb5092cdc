/* SPDX-License-Identifier: Apache-2.0 */
/* The C back end: collects the files of a package. The runtime's own sources are added by the driver. */
#include "codegen/c/package.h"
#include "codegen/c/template.h"
#include "prog/source.h"

#include <string.h>

static void count(package *p)
{
    const plan_problem *pp = p->pl->problem;
    p->n_sids = pp->values.len;
    for (uint32_t i = 0; i < pp->ops.len; i++) {
        p->n_args += pp->ops.data[i].n_args + pp->ops.data[i].n_scratch;
        p->n_sids += pp->ops.data[i].n_scratch;
        uint64_t stack = package_stack_bytes(package_code(&pp->ops.data[i]));
        p->stack_bytes = stack > p->stack_bytes ? stack : p->stack_bytes;
    }
}

static void add(const package *p, artifact *out, const char *path, const void *data, size_t len, bool binary)
{
    vec_push(&p->c->mem, &out->files, ((artifact_file){path, data, len, binary}));
}

void package_add(const package *p, artifact *out, const char *path, void (*write)(const package *p, writer *w))
{
    writer w;
    writer_init(&w, &p->c->mem);
    write(p, &w);
    add(p, out, path, w.data, w.len, false);
}

static bool add_checked(const package *p, artifact *out, const char *path,
                        bool (*write)(const package *p, writer *w))
{
    writer w;
    writer_init(&w, &p->c->mem);
    if (!write(p, &w))
        return false;
    add(p, out, path, w.data, w.len, false);
    return true;
}

/* A file that could be written only now keeps the place that it has among the others. */
static void fill(artifact *out, uint32_t at, const void *data, size_t len)
{
    out->files.data[at].data = data;
    out->files.data[at].len = len;
}

static bool no_memory(const package *p)
{
    return diag_error(&p->c->diags, DIAG_ENVIRONMENT, src_loc_none(), "no memory for %llu bytes of constants",
                      (unsigned long long)p->pl->constant_bytes);
}

bool package_add_constants(package *p, artifact *out)
{
    size_t len;
    p->constant_data = constants_bytes(p, &len);
    if (!p->constant_data)
        return no_memory(p);
    p->constant_file = arena_printf(&p->c->mem, "src/%s_constants.bin", p->u->module_name);
    if (package_constant_bytes(p) > 0 || p->constants_form == CONSTANTS_BIN)
        add(p, out, p->constant_file, p->constant_data, (size_t)package_constant_bytes(p), true);
    for (uint32_t i = 1; i < p->n_areas; i++) {
        const constant_area *a = &p->areas[i];
        add(p, out, package_area_file(p, i),
            (const uint8_t *)p->constant_data + a->begin, (size_t)(a->end - a->begin), true);
    }
    return true;
}

package package_of(compiler *c, const codegen_unit *u, const char *prefix)
{
    package p = {.c = c, .u = u, .pl = u->plan, .prefix = prefix};
    p.macro = package_upper(&c->mem, prefix);
    p.constants_form = constants_form_of(u);
    constant_area *whole = arena_new(&c->mem, constant_area);
    whole->end = p.pl->constant_bytes;
    p.areas = u->places ? u->places->areas : whole;
    p.n_areas = u->places ? u->places->n_areas : 1;
    package_bind(&p);
    count(&p);
    return p;
}

/* What code generators have written, a file for each. */
static bool add_sources(const package *p, artifact *out)
{
    const prog_module *m = p->u->prog;
    for (uint32_t i = 0; i < m->sources.len; i++) {
        const prog_source *s = &m->sources.data[i];
        const char *object = arena_printf(&p->c->mem, "build/%s.o", s->target->name);
        for (uint32_t k = 0; k < out->made.len; k++)
            if (strcmp(out->made.data[k], object) == 0)
                return diag_error(&p->c->diags, DIAG_USAGE, src_loc_none(),
                                  "the code generator '%s' has the name of a file of packages", s->target->name);
        writer w;
        writer_init(&w, &p->c->mem);
        w_fmt(&w, "/* %s.%s: ", s->target->name, s->suffix);
        package_template(p, &w, "operators of model \"@n\" by the code generator ");
        w_fmt(&w, "%s.\n * SPDX-License-Identifier: Apache-2.0 */\n%s", s->target->name, s->text);
        add(p, out, package_source_file(p, s), w.data, w.len, false);
        vec_push(&p->c->mem, &out->made, object);
        if (!runtime_add_files(p, s, out))
            return false;
    }
    return true;
}

static bool write_report(package *p, artifact *out, uint32_t at)
{
    writer w;
    writer_init(&w, &p->c->mem);
    p->files = out;
    report_write(p, &w);
    fill(out, at, w.data, w.len);
    return true;
}

/* The file with the constants' own text, and the file that is handed over, which know what reads the constants. */
static bool write_constants(package *p, artifact *out, uint32_t first, uint32_t lib0, uint32_t tables, uint32_t ops)
{
    writer w;
    size_t len;
    writer_init(&w, &p->c->mem);
    if (p->constants_form == CONSTANTS_BIN) {
        p->constants_layout = constants_layout(p, &out->files.data[ops], &out->files.data[tables]);
        const void *sealed = constants_sealed(p, &len);
        if (!sealed)
            return no_memory(p);
        fill(out, first, sealed, len);
    }
    lib0_write(p, &w);
    fill(out, lib0, w.data, w.len);
    return true;
}

bool codegen_c_holds(compiler *c, uint32_t operators)
{
    return operators <= UINT16_MAX || diag_error(&c->diags, DIAG_UNSUPPORTED, src_loc_none(),
                                                 "the model has %u operators; a package holds 65535", operators);
}

/* What a package has for each of its functions. constants: their file, where the program hands it over. */
bool package_add_function(package *p, artifact *out, uint32_t constants)
{
    arena *a = &p->c->mem;
    const char *name = p->u->module_name;
    package_add(p, out, arena_printf(a, "include/%s.h", p->prefix), header_write);
    package_add(p, out, arena_printf(a, "include/%s_instance.h", p->prefix), instance_write);
    package_add(p, out, arena_printf(a, "src/%s_names.h", name), names_write);
    const uint32_t lib0 = out->files.len;
    add(p, out, arena_printf(a, "src/%s_lib0.c", name), NULL, 0, false);
    package_add(p, out, arena_printf(a, "src/%s_lib1.c", name), lib1_write);
    package_add(p, out, arena_printf(a, "src/%s", package_file_of(p, "model_data.c")), tables_write);
    const uint32_t ops = out->files.len;
    if (!add_checked(p, out, arena_printf(a, "src/%s", package_file_of(p, "ops.c")), ops_write) ||
        !write_constants(p, out, constants, lib0, ops - 1, ops))
        return false;
    package_add(p, out, arena_printf(a, "src/%s", package_file_of(p, "main.c")), main_write);
    return true;
}

bool codegen_c(compiler *c, const codegen_unit *u, uint32_t n, artifact *out)
{
    arena *a = &c->mem;
    package p = package_of(c, u, arena_printf(a, "tvmgen_%s", u->module_name));
    if (n > 1)
        return diag_error(&c->diags, DIAG_USAGE, src_loc_none(), "a package is made for one target, not for %u", n);
    if (!codegen_c_holds(c, u->plan->problem->ops.len))
        return false;
    if (!package_check_static(&p))
        return false;
    const uint32_t constants = out->files.len;
    if ((p.constants_form != CONSTANTS_C && !package_add_constants(&p, out)) ||
        !package_add_function(&p, out, constants))
        return false;
    package_add(&p, out, "Makefile", makefile_write);
    package_add(&p, out, "CMakeLists.txt", makefile_write_cmake);
    if (u->short_names && !short_names_write(&p, out))
        return false;
    add(&p, out, PACKAGE_REPORT, NULL, 0, false); /* it tells of all others */
    makefile_products(&p, out);
    if (!add_sources(&p, out) || !runtime_add(&p, out) || (u->as && !arrange_for(&p, out)))
        return false;
    uint32_t report = 0;
    while (strcmp(out->files.data[report].path, PACKAGE_REPORT) != 0)
        report++;
    return write_report(&p, out, report);
}
