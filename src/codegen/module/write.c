/* SPDX-License-Identifier: Apache-2.0 */
/* The module back end: the parts of a module, from executable and source to the container and the file around it. */
#include "codegen/module/module.h"

#include <stdlib.h>
#include <string.h>

typedef struct module_parts {
    module_code code;
    const char *source;
    const module_variant *variants;
    uint32_t n_variants;
} module_parts;

typedef struct kernel_rows {
    module_bytes *b; /* NULL: count */
    uint64_t n;
} kernel_rows;

/* A row of fmap: what a kernel takes. */
static void put_kernel(void *ctx, const char *name, uint32_t n_args, const int32_t *tags)
{
    kernel_rows *rows = ctx;
    rows->n++;
    if (!rows->b)
        return;
    bytes_str(rows->b, name);
    bytes_str(rows->b, name);
    bytes_u64(rows->b, n_args + 2u);
    for (uint32_t k = 0; k < n_args; k++)
        bytes_u32(rows->b, (uint32_t)MODULE_DTYPE_HANDLE | 64u << 8 | 1u << 16);
    for (uint32_t k = 0; k < 2; k++) /* part, parts */
        bytes_u32(rows->b, (uint32_t)MODULE_DTYPE_UINT | 32u << 8 | 1u << 16);
    bytes_u64(rows->b, 0);
    bytes_u64(rows->b, tags ? n_args : 0);
    for (uint32_t k = 0; k < n_args && tags; k++)
        bytes_u32(rows->b, (uint32_t)tags[k]);
}

static uint64_t put_kernels(const module_parts *m, module_bytes *b)
{
    kernel_rows rows = {.b = b};
    for (uint32_t v = 0; v < m->n_variants; v++)
        source_each(&m->variants[v].p, put_kernel, &rows);
    return rows.n;
}

static void put_source(const module_parts *m, module_bytes *b)
{
    bytes_str(b, "c");
    bytes_u64(b, put_kernels(m, NULL));
    (void)put_kernels(m, b);
    bytes_str(b, m->source);
}

/* Length first, then what it counts. */
static void put_sized(const module_parts *m, module_bytes *b, void (*put)(const module_parts *m, module_bytes *b))
{
    module_bytes count = {0};
    put(m, &count);
    bytes_u64(b, count.len);
    if (b->data)
        put(m, b);
    else
        b->len += count.len;
}

static void put_executable(const module_parts *m, module_bytes *b)
{
    code_write(&m->code, b);
}

/* Module 0, the executable, has one child, the source. */
static void put_tree(const module_parts *m, module_bytes *b)
{
    const uint64_t rows[] = {0, 1, 1};
    bytes_u64(b, 3);
    for (size_t i = 0; i < 3; i++)
        bytes_u64(b, rows[i]);
    bytes_u64(b, 1);
    bytes_u64(b, 1);
    bytes_str(b, MODULE_KIND_EXECUTABLE);
    put_sized(m, b, put_executable);
    bytes_str(b, MODULE_KIND_SOURCE);
    put_sized(m, b, put_source);
}

static void put_blob(const void *ctx, module_bytes *b)
{
    put_sized(ctx, b, put_tree);
}

static const char *report_text(compiler *c, const package *p)
{
    writer w;
    writer_init(&w, &c->mem);
    report_write(p, &w);
    return w.data;
}

/* NULL after a diagnostic. */
static const char *loops_text(compiler *c, const package *p)
{
    writer w;
    writer_init(&w, &c->mem);
    return loops_write(p, &w) ? w.data : NULL;
}

/* The widest vectors first; of the same width, more registers. */
static int wider_first(const void *x, const void *y)
{
    const target *a = (*(const codegen_unit *const *)x)->target, *b = (*(const codegen_unit *const *)y)->target;
    uint32_t first = a->vector_bytes != b->vector_bytes ? b->vector_bytes : b->vector_regs;
    uint32_t second = a->vector_bytes != b->vector_bytes ? a->vector_bytes : a->vector_regs;
    return first < second ? -1 : first > second;
}

static module_variant *make_variants(compiler *c, const codegen_unit *units, uint32_t n)
{
    module_variant *v = arena_array(&c->mem, module_variant, n);
    const codegen_unit **order = arena_array(&c->mem, const codegen_unit *, n);
    for (uint32_t i = 0; i < n; i++)
        order[i] = &units[i];
    qsort(order, n, sizeof *order, wider_first);
    for (uint32_t i = 0; i < n; i++) {
        v[i].p = package_of(c, order[i], arena_printf(&c->mem, "v%u", order[i]->target->vector_bytes));
        v[i].report = report_text(c, &v[i].p);
    }
    return v;
}

static bool add_loops(compiler *c, module_variant *v, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        if (v[i].p.u->with_interpreter && !(v[i].loops = loops_text(c, &v[i].p)))
            return false;
    return true;
}

static bool check_widths(compiler *c, const module_variant *v, uint32_t n)
{
    for (uint32_t i = 1; i < n; i++)
        if (v[i].p.u->target->vector_bytes == v[i - 1].p.u->target->vector_bytes)
            return diag_error(&c->diags, DIAG_USAGE, src_loc_none(),
                              "a module cannot hold both %s and %s: it chooses by the width of vectors, which is "
                              "the same",
                              v[i - 1].p.u->target->name, v[i].p.u->target->name);
    return true;
}

bool codegen_module(compiler *c, const codegen_unit *units, uint32_t n, artifact *out)
{
    module_variant *variants = make_variants(c, units, n);
    module_parts m = {.variants = variants, .n_variants = n};
    module_bytes b = {0};
    writer source;
    writer_init(&source, &c->mem);
    code_init(&m.code, c);
    memory_collect(&m.code, variants, n);
    if (!check_widths(c, m.variants, n) || !add_loops(c, variants, n) || !source_write(c, &source, m.variants, n) ||
        !body_write_entries(&m.code, m.variants, n))
        return false;
    m.source = source.data;
    elf_write(&b, units[0].host, put_blob, &m);
    b.data = arena_try_alloc(&c->mem, b.len, 64);
    if (!b.data)
        return diag_error(&c->diags, DIAG_ENVIRONMENT, src_loc_none(), "no memory for a module of %zu bytes", b.len);
    const size_t size = b.len;
    b.len = 0;
    elf_write(&b, units[0].host, put_blob, &m);
    vec_push(&c->mem, &out->files, ((artifact_file){"", b.data, size, true}));
    out->is_file = true;
    out->source_bytes = source.len;
    return true;
}
