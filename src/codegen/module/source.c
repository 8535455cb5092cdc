/* SPDX-License-Identifier: Apache-2.0 */
/* The C source of a module's kernels. One text holds the variants one behind the other, of which the preprocessor keeps
 * the one for the machine's vectors; each kernel stands in a piece that can be compiled alone. A kernel is a function
 * over bare pointers, which the virtual machine calls by libffi; beside it stand its packed form, for machines without
 * libffi, and a form for hosts that know only tvm-ffi. */
#include "abi/package.h"
#include "codegen/embedded.h"
#include "codegen/module/module.h"
#include "prog/source.h"
#include "tir/build.h"

#include <ctype.h>
#include <string.h>

/* What the compiler says of the machine that it works for. Where nothing is told from outside, as in TVM's runtime. */
/* The host's functions are weak, so that the virtual machine needs none of them. */
/* What a kernel of ours cannot compute with, and the call. */
static void write_status(writer *w)
{
    w_str(w, embedded_text("src/codegen/module/text/ffi.c.in"));
    w_str(w, embedded_text("src/codegen/module/text/call.c.in"));
    w_str(w, "    switch (job.status) {\n    case 0: return 0;\n");
#define ROW(name, value, text) \
    w_fmt(w, "    case %d: return lathe_raise(\"%sError\", \"%s\");\n", value,                       \
          (value) == PACKAGE_STATUS_LIBRARY ? "Runtime" : "Value", text);
    PACKAGE_STATUSES(ROW)
#undef ROW
    w_str(w, "    }\n    return lathe_raise(\"RuntimeError\", \"a kernel failed\");\n}\n\n");
}

/* --- kernels --- */

/* In front of a kernel, which libffi calls. */
#define BARE "LATHE_EXPORT "

/* The form for who has no libffi; what the function returns follows. */
static void write_packed_head(writer *w, const char *name)
{
    w_fmt(w, "LATHE_EXPORT int32_t %s" MODULE_PACKED_SUFFIX "(void *const *a, uint32_t part, uint32_t parts)\n{\n    ",
          name);
}

/* For hosts that know only tvm-ffi, of arguments of which nothing is known but that they are memory of the CPU, or of
 * which least and tags say more. */
static void write_host_form(writer *w, const char *name, uint32_t n, const int64_t *least, const int32_t *tags)
{
    w_fmt(w, "LATHE_EXPORT int __tvm_ffi_%s(void *self, const lathe_any *args, int32_t n, lathe_any *result)\n{\n",
          name);
    w_fmt(w, "    static const lathe_want want[%u] = {", n > 0 ? n : 1);
    for (uint32_t i = 0; i < n; i++)
        w_fmt(w, "%s{%d, %lld}", i ? ", " : "", tags ? tags[i] : 0, least ? (long long)least[i] : 0);
    w_fmt(w, "%s};\n    void *data[%u];\n    (void)self;\n    (void)result;\n", n ? "" : "{0, 0}", n > 0 ? n : 1);
    w_fmt(w, "    return lathe_call(%s" MODULE_PACKED_SUFFIX ", args, n, data, %u, want);\n}\n", name, n);
}

/* The bytes that each argument has at least; 0 where a run decides. Scratch depends on the parts. */
static const int64_t *least_bytes(const package *p, uint32_t i)
{
    const plan_op *op = &p->pl->problem->ops.data[i];
    int64_t *least = arena_array(&p->c->mem, int64_t, op->n_args + op->n_scratch + 1u);
    for (uint32_t k = 0; k < op->n_args && !loops_grows(p, i); k++) {
        const tir_buffer *b = loops_buffer(op, k);
        const int64_t count = tir_buffer_count(b);
        least[k] = count < 0 || count > INT64_MAX / 128 ? 0 : count * dtype_bits(b->dt) / 8;
    }
    return least;
}

static void write_packed(const package *p, writer *w, uint32_t i)
{
    const plan_op *op = &p->pl->problem->ops.data[i];
    const char *name = loops_kernel_name(p, i);
    const uint32_t n = op->n_args + op->n_scratch;
    write_packed_head(w, name);
    ops_write_call(p, w, i);
    w_str(w, "}\n\n");
    write_host_form(w, name, n, least_bytes(p, i), memory_tags(p, i));
}

/* --- sizes --- */

/* Loops that are no operator's, with all forms of their call. */
static bool write_own(c_needs *needs, writer *w, compiler *c, const tir_func *f)
{
    if (!func_write(c, w, needs, f, BARE, f->name))
        return false;
    w_str(w, "\n");
    write_packed_head(w, f->name);
    w_fmt(w, "return %s(", f->name);
    for (uint32_t i = 0; i < f->n_params; i++)
        w_fmt(w, "(%s%s *)a[%u], ", i < f->n_inputs ? "const " : "", dtype_c_name(f->params[i]->dt), i);
    w_str(w, "part, parts);\n}\n\n");
    write_host_form(w, f->name, f->n_params, NULL, NULL);
    w_str(w, "\n");
    return true;
}

static bool write_sizes(const package *p, c_needs *needs, writer *w)
{
    writer all;
    writer_init(&all, &p->c->mem);
    for (uint32_t i = 0; i < p->pl->problem->ops.len; i++) {
        const plan_op *op = &p->pl->problem->ops.data[i];
        for (uint32_t k = op->n_inputs; k < op->n_args + op->n_scratch; k++)
            if (loops_is_open(p, i, k) && !write_own(needs, &all, p->c, loops_size(p, i, k)))
                return false;
        if (loops_grows(p, i) && (!write_own(needs, &all, p->c, loops_grow(p, i)) ||
                                   !write_own(needs, &all, p->c, loops_move(p, i))))
            return false;
    }
    if (all.len > 0)
        w_fmt(w, "#if LATHE_HAS_PIECE(0)\n%s#endif\n\n", all.data);
    return true;
}

void source_each(const package *p, source_kernel_fn fn, void *ctx)
{
    for (uint32_t i = 0; i < p->pl->problem->ops.len; i++) {
        const plan_op *op = &p->pl->problem->ops.data[i];
        const uint32_t n = op->func->n_symbols;
        if (memory_is_copy(p, i))
            continue;
        if (package_is_first(p, i))
            fn(ctx, loops_kernel_name(p, i), op->n_args + op->n_scratch, memory_tags(p, i));
        for (uint32_t k = op->n_inputs; k < op->n_args + op->n_scratch; k++)
            if (loops_is_open(p, i, k))
                fn(ctx, loops_size_name(p, i, k), n + 1, NULL);
        if (!loops_grows(p, i))
            continue;
        fn(ctx, loops_grow_name(p, i), n + 4, NULL);
        fn(ctx, loops_move_name(p, i), n + 3, NULL);
    }
    for (uint32_t i = 0; i < p->u->prog->sources.len; i++)
        if (memory_ready_name(p, i))
            fn(ctx, memory_ready_name(p, i), 0, NULL);
}

/* The piece with the least text so far gets the kernel: pieces take about the same time to compile. */
static uint32_t next_piece(size_t *sizes, size_t size)
{
    uint32_t least = 0;
    for (uint32_t i = 1; i < MODULE_SHARDS; i++)
        least = sizes[i] < sizes[least] ? i : least;
    sizes[least] += size;
    return least;
}

/* --- what code generators have written --- */

static bool check_library(compiler *c, const prog_source *s, const char *word, size_t n)
{
    bool good = n > 2 && strncmp(word, "-l", 2) == 0;
    for (size_t i = 2; i < n; i++)
        good &= (isalnum((unsigned char)word[i]) && (unsigned char)word[i] < 128) || strchr("_+.-", word[i]);
    if (good)
        return true;
    diag_error(&c->diags, DIAG_UNSUPPORTED, src_loc_none(),
               "the code generator %s wants '%.*s' from the linker: a module names libraries by -lNAME alone",
               s->target->name, (int)(n < 100 ? n : 100), word);
    diag_hint(&c->diags, "--emit c takes any flags");
    return false;
}

static bool check_source(compiler *c, const prog_source *s)
{
    bool is_c = strcmp(s->suffix, "c") == 0;
    for (const char *word = s->ldflags; *word; word += strspn(word, " ")) {
        const size_t n = strcspn(word, " ");
        if (n > 0 && !check_library(c, s, word, n))
            return false;
        word += n;
    }
    if (is_c && !*s->cflags)
        return true;
    diag_error(&c->diags, DIAG_UNSUPPORTED, src_loc_none(),
               "the code generator %s writes %s, which a module cannot hold", s->target->name,
               is_c ? "C that wants compiler flags" : "something else than C");
    diag_hint(&c->diags, "--emit c makes a package");
    return false;
}

static bool check_sources(compiler *c, const module_variant *variants, uint32_t n)
{
    for (uint32_t v = 0; v < n; v++)
        for (uint32_t i = 0; i < variants[v].p.u->prog->sources.len; i++)
            if (!check_source(c, &variants[v].p.u->prog->sources.data[i]))
                return false;
    return true;
}

/* The same of all variants: they call the same libraries. */
static void write_libraries(writer *w, const package *p)
{
    const char *all = package_libraries(p);
    if (*all)
        w_fmt(w, MODULE_LIBRARIES " %s */\n", all);
}

/* All forms of the call that makes a source's device ready. */
static void write_ready(writer *w, const prog_source *s, const char *name)
{
    w_fmt(w, "\nint32_t %s(void);\n" BARE "int32_t %s(uint32_t part, uint32_t parts)\n{\n", s->ready, name);
    w_fmt(w, "    (void)part;\n    (void)parts;\n    return %s();\n}\n\n", s->ready);
    write_packed_head(w, name);
    w_fmt(w, "(void)a;\n    return %s(part, parts);\n}\n\n", name);
    write_host_form(w, name, 0, NULL, NULL);
}

static void write_sources(const package *p, writer *w, size_t *sizes)
{
    for (uint32_t i = 0; i < p->u->prog->sources.len; i++) {
        const prog_source *s = &p->u->prog->sources.data[i];
        w_fmt(w, "#if LATHE_HAS_PIECE(%u)\n/* %s */\n", next_piece(sizes, strlen(s->text)), s->target->name);
        w_str(w, s->text);
        if (s->ready)
            write_ready(w, s, memory_ready_name(p, i));
        w_str(w, "#endif\n\n");
    }
}

static bool write_variant(writer *w, const module_variant *v)
{
    const package *p = &v->p;
    const plan_problem *pp = p->pl->problem;
    c_needs needs = {.a = &p->c->mem, .riscv = true, .neon = true};
    size_t sizes[MODULE_SHARDS] = {0};
    writer kernels;
    writer_init(&kernels, &p->c->mem);
    for (uint32_t i = 0; i < pp->ops.len; i++) {
        writer one;
        if (memory_is_copy(p, i) || !package_is_first(p, i))
            continue;
        writer_init(&one, &p->c->mem);
        if (!ops_write_kernel(p, &needs, &one, i, BARE))
            return false;
        w_str(&one, "\n");
        write_packed(p, &one, i);
        w_fmt(&kernels, "#if LATHE_HAS_PIECE(%u)\n", next_piece(sizes, one.len));
        w_str(&kernels, one.data);
        w_str(&kernels, "#endif\n\n");
    }
    if (!write_sizes(p, &needs, &kernels))
        return false;
    write_sources(p, &kernels, sizes);
    needs_write(&p->c->mem, w, &needs);
    w_str(w, kernels.data ? kernels.data : "");
    return true;
}

/* A host that knows only tvm-ffi looks for every name of the bytecode before it runs any of it. */
static void write_absent(void *ctx, const char *name, uint32_t n_args, const int32_t *tags)
{
    (void)n_args;
    (void)tags;
    w_fmt(ctx, "LATHE_ABSENT(%s)\n", name);
}

bool source_write(compiler *c, writer *w, const module_variant *variants, uint32_t n)
{
    if (!check_sources(c, variants, n))
        return false;
    w_fmt(w, "/* The kernels of module \"%s\", of %s. */\n", variants[0].p.u->module_name,
          package_comment(&c->mem, variants[0].p.u->model_file));
    write_libraries(w, &variants[0].p);
    w_str(w, embedded_text("src/codegen/module/text/head.c.in"));
    write_status(w);
    w_str(w, embedded_text("src/codegen/module/text/has_vectors.c.in"));
    for (uint32_t i = 0; i < n; i++) {
        const target *t = variants[i].p.u->target;
        if (n > 1 && i + 1 < n)
            w_fmt(w,
                  "#%s " MODULE_MACRO_VECTOR_BYTES " >= %u && " MODULE_MACRO_VECTOR_REGS
                  " >= %u /* as for %s */\n\n",
                  i == 0 ? "if" : "elif", t->vector_bytes, t->vector_regs, t->name);
        else if (n > 1)
            w_fmt(w, "#else /* as for %s */\n\n", t->name);
        if (n > 1)
            w_fmt(w, "#define LATHE_VARIANT %u\n\n", t->vector_bytes);
        if (!write_variant(w, &variants[i]))
            return false;
    }
    w_str(w, n > 1 ? "#endif\n\n" : "");
    w_str(w, n > 1 ? embedded_text("src/codegen/module/text/absent.c.in") : "");
    for (uint32_t i = 0; n > 1 && i < n; i++) {
        w_fmt(w, "#if LATHE_VARIANT != %u && LATHE_HAS_PIECE(0)\n", variants[i].p.u->target->vector_bytes);
        source_each(&variants[i].p, write_absent, w);
        w_str(w, "#endif\n\n");
    }
    return true;
}
