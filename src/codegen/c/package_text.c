/* SPDX-License-Identifier: Apache-2.0 */
/* What the writers of a package's files share: templates, and facts of the package that several of them state. */
#include "codegen/c/package.h"
#include "prog/source.h"
#include "tir/build.h"

#include <ctype.h>
#include <string.h>

void package_template(const package *p, writer *w, const char *text)
{
    const char *at;
    for (; (at = strchr(text, '@')) != NULL; text = at + 2) {
        w_fmt(w, "%.*s", (int)(at - text), text);
        w_fmt(w, "%s%s", at[1] == 'g' ? "tvmgen_" : "",
              at[1] == 'n' ? p->u->module_name : at[1] == 'p' ? p->prefix : at[1] == 'g' ? p->u->group : p->macro);
    }
    w_str(w, text);
}

const char *package_file_of(const package *p, const char *file)
{
    return p->u->group ? arena_printf(&p->c->mem, "%s_%s", p->u->module_name, file) : file;
}

const char *package_source_file(const package *p, const prog_source *s)
{
    return arena_printf(&p->c->mem, "src/%s.%s", s->target->name, s->suffix);
}

const char *package_file(const package *p, const prog_source *s, uint32_t i)
{
    const char *slash = strrchr(s->files[i].name, '/');
    return arena_printf(&p->c->mem, "%s/%s", s->target->name, slash ? slash + 1 : s->files[i].name);
}

const char *package_file_object(const package *p, const prog_source *s, uint32_t i)
{
    const char *file = package_file(p, s, i) + strlen(s->target->name) + 1;
    const size_t n = strlen(file);
    if (n < 3 || strcmp(file + n - 2, ".c") != 0)
        return NULL;
    return arena_printf(&p->c->mem, "build/%s_%.*s.o", s->target->name, (int)n - 2, file);
}

const char *package_libraries(const package *p)
{
    const prog_module *m = p->u->prog;
    const char *all = "";
    for (uint32_t i = 0; i < m->sources.len; i++)
        if (*m->sources.data[i].ldflags)
            all = arena_printf(&p->c->mem, "%s%s%s", all, *all ? " " : "", m->sources.data[i].ldflags);
    return all;
}

const char *package_comment(arena *a, const char *s)
{
    char *out = text_line(arena_strdup(a, s ? s : ""));
    for (char *p = out; *p; p++) {
        if (*p == '?' || *p == '\\')
            *p = '_';
        if (*p == '/' && (p[1] == '*' || (p > out && p[-1] == '*')))
            *p = '|';
    }
    return out;
}

void package_shape(writer *w, const type *t)
{
    w_str(w, "[");
    for (int32_t i = 0; i < t->shape.rank; i++) {
        w_str(w, i ? ", " : "");
        dim_print(w, t->shape.dims[i]);
    }
    w_str(w, "]");
}

bool package_is_inside(const package *p, const package_io *io)
{
    return p->pl->problem->values.data[io->value].from_start;
}

bool package_has_inside(const package *p)
{
    bool any = false;
    for (uint32_t i = 0; i < p->n_inputs; i++)
        any |= package_is_inside(p, &p->inputs[i]);
    return any;
}

bool package_is_data(const package_io *io)
{
    return !io->extent && io->shape_of == PROG_NONE;
}

uint64_t package_constant_bytes(const package *p)
{
    return p->areas[0].end;
}

uint64_t package_placed_bytes(const package *p)
{
    const uint64_t bytes = package_constant_bytes(p);
    return p->constants_form == CONSTANTS_BIN ? (bytes + 7) / 8 * 8 + 16 : bytes;
}

uint32_t package_area(const package *p, uint64_t offset)
{
    uint32_t i = p->n_areas;
    while (i-- > 1)
        if (offset >= p->areas[i].begin)
            return i;
    return 0;
}

const char *package_area_file(const package *p, uint32_t i)
{
    return arena_printf(&p->c->mem, "src/%s_area_%u.bin", p->u->module_name, i);
}

bool package_includes_files(const package *p)
{
    return p->constants_form == CONSTANTS_INCBIN || (p->constants_form == CONSTANTS_BIN && p->n_areas > 1);
}

uint32_t package_extent(const package *p, dim symbol)
{
    uint32_t number = 0;
    for (uint32_t i = 0; i < p->n_inputs; i++) {
        if (p->inputs[i].extent == symbol)
            return number;
        number += p->inputs[i].extent != NULL;
    }
    return UINT32_MAX;
}

const char *package_op_extents(const package *p, uint32_t i)
{
    const tir_func *f = p->pl->problem->ops.data[i].func;
    const char *all = "";
    for (uint32_t k = 0; k < f->n_symbols; k++) {
        dim d = dim_symbol(p->c, f->symbols[k], -1);
        if (package_extent(p, d) == UINT32_MAX)
            all = arena_printf(&p->c->mem, "%s%s%s <= %lld", all, *all ? ", " : "", f->symbols[k],
                               (long long)dim_bound(d));
    }
    return all;
}

bool package_has_extents(const package *p)
{
    for (uint32_t i = 0; i < p->n_inputs; i++)
        if (p->inputs[i].extent)
            return true;
    return false;
}

bool package_tells_shapes(const package *p)
{
    for (uint32_t i = 0; i < p->n_outputs; i++)
        if (p->outputs[i].shape_of != PROG_NONE)
            return true;
    return false;
}

bool package_is_open(const package *p)
{
    return package_has_extents(p) || package_tells_shapes(p);
}

const char *package_upper(arena *a, const char *s)
{
    char *out = arena_strdup(a, s);
    for (char *p = out; *p; p++)
        *p = (char)toupper((unsigned char)*p);
    return out;
}

static uint64_t stack_of(const tir_stmt *s)
{
    uint64_t most = 0, own = 0;
    if (!s)
        return 0;
    for (uint32_t i = 0; s->kind == TIR_SEQ && i < s->n_stmts; i++) {
        uint64_t one = stack_of(s->stmts[i]);
        most = one > most ? one : most;
    }
    if (s->kind == TIR_ALLOCATE && s->buffer->scope == SCOPE_LOCAL) {
        int64_t count = tir_buffer_count(s->buffer);
        own = (uint64_t)(count > 0 ? count : 1) * dtype_bytes(s->buffer->dt);
    }
    const tir_library *called = s->value && s->value->kind == TIR_EXTERN ? tir_library_find(s->value->u.name) : NULL;
    if (called)
        own = called->stack;
    if (s->kind != TIR_SEQ)
        most = stack_of(s->body);
    if (s->kind == TIR_IF) {
        uint64_t other = stack_of(s->orelse);
        most = other > most ? other : most;
    }
    return own + most;
}

const tir_func *package_code(const plan_op *op)
{
    const prog_kernel *k = op->step ? op->step->kernel : NULL;
    return k && k->shape ? k->shape->loops : op->func;
}

uint64_t package_stack_bytes(const tir_func *f)
{
    return stack_of(f->body);
}

uint32_t package_scratch_sid(const package *p, uint32_t op, uint32_t k)
{
    uint32_t sid = p->pl->problem->values.len;
    for (uint32_t i = 0; i < op; i++)
        sid += p->pl->problem->ops.data[i].n_scratch;
    return sid + k;
}
