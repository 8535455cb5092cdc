/* SPDX-License-Identifier: Apache-2.0 */
/* The C source of a module's kernels. One text holds the variants one behind the other, of which the preprocessor keeps
 * the one for the machine's vectors; each kernel stands in a piece that can be compiled alone. A kernel is a function
 * over bare pointers, which the virtual machine calls by libffi; beside it stand its packed form, for machines without
 * libffi, and a form for hosts that know only tvm-ffi. */
#include "abi/package.h"
#include "codegen/module/module.h"
#include "prog/source.h"
#include "tir/build.h"

#include <ctype.h>
#include <string.h>

/* What the compiler says of the machine that it works for. Where nothing is told from outside, as in TVM's runtime. */
static const char head_text[] =
    "#include <math.h>\n#include <stddef.h>\n#include <stdint.h>\n#include <string.h>\n\n"
    "/* The machine: bytes of a vector register, and how many there are. */\n"
    "#ifndef " MODULE_MACRO_VECTOR_BYTES "\n"
    "#if defined(__AVX512F__) && defined(__AVX512BW__) && defined(__AVX512DQ__) && defined(__AVX512VL__)\n"
    "#define " MODULE_MACRO_VECTOR_BYTES " 64\n#define " MODULE_MACRO_VECTOR_REGS " 32\n"
    "#elif defined(__AVX2__) && defined(__FMA__)\n"
    "#define " MODULE_MACRO_VECTOR_BYTES " 32\n#define " MODULE_MACRO_VECTOR_REGS " 16\n"
    "#elif defined(__riscv_v_min_vlen) && __riscv_v_min_vlen >= 512\n"
    "#define " MODULE_MACRO_VECTOR_BYTES " 64\n#define " MODULE_MACRO_VECTOR_REGS " 32\n"
    "#elif defined(__riscv_v_min_vlen)\n"
    "#define " MODULE_MACRO_VECTOR_BYTES " (__riscv_v_min_vlen / 8)\n#define " MODULE_MACRO_VECTOR_REGS " 32\n"
    "#elif defined(__aarch64__)\n"
    "#define " MODULE_MACRO_VECTOR_BYTES " 16\n#define " MODULE_MACRO_VECTOR_REGS " 32\n"
    "#elif defined(__SSE2__)\n"
    "#define " MODULE_MACRO_VECTOR_BYTES " 16\n#define " MODULE_MACRO_VECTOR_REGS " 16\n"
    "#else\n"
    "#define " MODULE_MACRO_VECTOR_BYTES " 0\n#define " MODULE_MACRO_VECTOR_REGS " 0\n"
    "#endif\n#endif\n\n"
    "/* Pieces: compiled one by one, linked together. */\n"
    "#ifndef " MODULE_MACRO_SHARDS "\n#define " MODULE_MACRO_SHARDS " 1\n#define " MODULE_MACRO_SHARD " 0\n#endif\n"
    "#define LATHE_HAS_PIECE(n) ((n) % " MODULE_MACRO_SHARDS " == " MODULE_MACRO_SHARD ")\n"
    "#if defined(__GNUC__)\n#define LATHE_EXPORT __attribute__((visibility(\"default\")))\n"
    "#define LATHE_WEAK __attribute__((weak))\n#else\n#define LATHE_EXPORT\n#define LATHE_WEAK\n#endif\n\n";

/* The host's functions are weak, so that the virtual machine needs none of them. */
static const char ffi_text[] =
    "/* --- hosts that know only tvm-ffi: TVMFFIAny, DLTensor, and two functions of theirs --- */\n"
    "typedef struct lathe_any {\n    int32_t type;\n    uint32_t small;\n    union {\n        int64_t i;\n"
    "        char *p;\n    } u;\n} lathe_any;\n"
    "typedef struct lathe_tensor {\n    char *data;\n    int32_t device[2], ndim;\n    uint8_t dtype[4];\n"
    "    int64_t *shape, *strides;\n    uint64_t byte_offset;\n} lathe_tensor;\n"
    "typedef int32_t (*lathe_packed)(void *const *data, uint32_t part, uint32_t parts);\n"
    "LATHE_WEAK void TVMFFIErrorSetRaisedFromCStr(const char *kind, const char *message);\n"
    "LATHE_WEAK int TVMBackendParallelLaunch(int (*f)(int, const void *, void *), void *data, int tasks);\n\n"
    "static int lathe_raise(const char *kind, const char *message)\n{\n"
    "    if (TVMFFIErrorSetRaisedFromCStr)\n        TVMFFIErrorSetRaisedFromCStr(kind, message);\n"
    "    return -1;\n}\n\n"
    "typedef struct lathe_job {\n    lathe_packed f;\n    void *const *data;\n    int32_t parts, status;\n"
    "} lathe_job;\n\n"
    "/* group: a handle, then the number of tasks, which the host chose */\n"
    "static int lathe_task(int task, const void *group, void *job)\n{\n"
    "    const int32_t tasks = *(const int32_t *)(const void *)((const char *)group + sizeof(void *));\n"
    "    lathe_job *j = job;\n    int32_t part;\n"
    "    for (part = task; part < j->parts; part += tasks) {\n"
    "        const int32_t status = j->f(j->data, (uint32_t)part, (uint32_t)j->parts);\n"
    "        if (status != 0)\n            j->status = status;\n    }\n    return 0;\n}\n\n";

/* What a kernel of ours cannot compute with, and the call. */
static const char call_text[] =
    "/* Of an argument: the device whose handle it is, 0 for memory of the CPU; the bytes that it has at least. */\n"
    "typedef struct lathe_want {\n    int32_t device;\n    int64_t bytes;\n} lathe_want;\n\n"
    "static int64_t lathe_bytes(const lathe_tensor *t)\n{\n"
    "    int64_t n = 1;\n    int32_t i;\n"
    "    for (i = 0; i < t->ndim; i++)\n        n *= t->shape[i];\n"
    "    return (n * t->dtype[1] * (t->dtype[2] | t->dtype[3] << 8) + 7) / 8;\n}\n\n"
    "/* Elements without gaps; strides of an empty tensor, and of extents of 1, mean nothing. */\n"
    "static int lathe_is_dense(const lathe_tensor *t)\n{\n"
    "    int64_t step = 1;\n    int32_t i;\n"
    "    for (i = t->ndim; t->strides && i-- > 0; step *= t->shape[i])\n"
    "        if (t->shape[i] != 1 && t->strides[i] != step)\n            return lathe_bytes(t) == 0;\n"
    "    return 1;\n}\n\n"
    "static const char *lathe_wrong(const lathe_tensor *t, const lathe_want *want)\n{\n"
    "    if (!t)\n        return \"a kernel's argument is not a tensor\";\n"
    "    if (t->device[0] != (want->device ? want->device : 1) && (want->device || t->device[0] != 101))\n"
    "        return \"a kernel's argument lies on another device than the kernel works on\";\n"
    "    if (lathe_bytes(t) < want->bytes)\n"
    "        return \"a kernel's argument has another shape or other elements than the kernel takes\";\n"
    "    if (lathe_bytes(t) > 0 && !t->data)\n        return \"a kernel's argument has no data\";\n"
    "    if (want->device ? t->byte_offset != 0 : !lathe_is_dense(t))\n"
    "        return \"the elements of a kernel's argument do not lie without gaps: copy the tensor first\";\n"
    "    return 0;\n}\n\n"
    "static int lathe_call(lathe_packed f, const lathe_any *args, int32_t n, void **data, int32_t n_data,\n"
    "                      const lathe_want *want)\n{\n"
    "    const int32_t alone[] = {0, 0, 1, 0}; /* a group of one */\n"
    "    int32_t i;\n    lathe_job job = {f, data, 1, 0};\n"
    "    if (n < n_data)\n        return lathe_raise(\"TypeError\", \"too few arguments for a kernel\");\n"
    "    for (i = 0; i < n_data; i++) {\n"
    "        const int owned = args[i].type == 70; /* an object, with a header in front */\n"
    "        if (!owned && args[i].type != 7)\n"
    "            return lathe_raise(\"TypeError\", \"a kernel's argument is not a tensor\");\n"
    "        const char *at = args[i].u.p && owned ? args[i].u.p + 24 : args[i].u.p;\n"
    "        const lathe_tensor *t = (const lathe_tensor *)(const void *)at;\n"
    "        const char *wrong = lathe_wrong(t, &want[i]);\n"
    "        if (wrong)\n            return lathe_raise(\"ValueError\", wrong);\n"
    "        data[i] = t->data ? t->data + t->byte_offset : 0;\n    }\n"
    "    if (n > n_data && args[n_data].type == 1)\n        job.parts = (int32_t)args[n_data].u.i;\n"
    "    if (job.parts == 1 || !TVMBackendParallelLaunch)\n"
    "        (void)lathe_task(0, alone, &job);\n"
    "    else if (TVMBackendParallelLaunch(lathe_task, &job, 0) != 0)\n"
    "        return -1; /* the host has said why */\n";

static void write_status(writer *w)
{
    w_str(w, ffi_text);
    w_str(w, call_text);
    w_str(w, "    switch (job.status) {\n    case 0: return 0;\n");
#define ROW(name, value, text) \
    w_fmt(w, "    case %d: return lathe_raise(\"%sError\", \"%s\");\n", value,                       \
          (value) == PACKAGE_STATUS_LIBRARY ? "Runtime" : "Value", text);
    PACKAGE_STATUSES(ROW)
#undef ROW
    w_str(w, "    }\n    return lathe_raise(\"RuntimeError\", \"a kernel failed\");\n}\n\n");
}

static void write_has_vectors(writer *w)
{
    w_str(w, "#if LATHE_HAS_PIECE(0)\n"
             "LATHE_EXPORT int __tvm_ffi_" MODULE_HAS_VECTORS
             "(void *self, const lathe_any *args, int32_t n, lathe_any *result)\n{\n    (void)self;\n"
             "    if (n != 2)\n        return lathe_raise(\"TypeError\", \"" MODULE_HAS_VECTORS
             " takes bytes and registers\");\n    result->type = 1;\n    result->small = 0;\n"
             "    result->u.i = args[0].u.i <= " MODULE_MACRO_VECTOR_BYTES
             " && args[1].u.i <= " MODULE_MACRO_VECTOR_REGS ";\n    return 0;\n}\n#endif\n\n");
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
    if (!func_write(c, w, needs, f, BARE, f->name, NULL))
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

static const char absent_text[] =
    "/* Kernels for other vectors than this machine's. */\n"
    "#define LATHE_ABSENT(name) \\\n"
    "    LATHE_EXPORT int __tvm_ffi_##name(void *self, const lathe_any *args, int32_t n, lathe_any *result) \\\n"
    "    { \\\n        (void)self, (void)args, (void)n, (void)result; \\\n"
    "        return lathe_raise(\"RuntimeError\", #name \" is for another machine\"); \\\n    }\n\n";

bool source_write(compiler *c, writer *w, const module_variant *variants, uint32_t n)
{
    if (!check_sources(c, variants, n))
        return false;
    w_fmt(w, "/* The kernels of module \"%s\", of %s. */\n", variants[0].p.u->module_name,
          package_comment(&c->mem, variants[0].p.u->model_file));
    write_libraries(w, &variants[0].p);
    w_str(w, head_text);
    write_status(w);
    write_has_vectors(w);
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
    w_str(w, n > 1 ? absent_text : "");
    for (uint32_t i = 0; n > 1 && i < n; i++) {
        w_fmt(w, "#if LATHE_VARIANT != %u && LATHE_HAS_PIECE(0)\n", variants[i].p.u->target->vector_bytes);
        source_each(&variants[i].p, write_absent, w);
        w_str(w, "#endif\n\n");
    }
    return true;
}
