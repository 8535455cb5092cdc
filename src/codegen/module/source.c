/* SPDX-License-Identifier: Apache-2.0 */
/* The C source of a module's kernels. One text holds the variants one behind the other, of which the preprocessor keeps
 * the one for the machine's vectors; each kernel stands in a piece that can be compiled alone. Beside a kernel stand
 * its packed form, which the virtual machine calls, and a form for hosts that know only tvm-ffi. */
#include "abi/package.h"
#include "codegen/module/module.h"
#include "tir/build.h"

#include <string.h>

const char *source_kernel_name(const package *p, uint32_t op)
{
    return arena_printf(&p->c->mem, "%s_%s", p->prefix, package_kernel(p, op)->name);
}

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
    "        if (status != 0)\n            j->status = status;\n    }\n    return 0;\n}\n\n"
    "static int lathe_call(lathe_packed f, const lathe_any *args, int32_t n, void **data, int32_t n_data)\n{\n"
    "    const int32_t alone[] = {0, 0, 1, 0}; /* a group of one */\n"
    "    int32_t i;\n    lathe_job job = {f, data, 1, 0};\n"
    "    if (n < n_data)\n        return lathe_raise(\"TypeError\", \"too few arguments for a kernel\");\n"
    "    for (i = 0; i < n_data; i++) {\n"
    "        lathe_tensor *t = (lathe_tensor *)(void *)(args[i].type == 70 ? args[i].u.p + 24 : args[i].u.p);\n"
    "        if (args[i].type != 70 && args[i].type != 7)\n"
    "            return lathe_raise(\"TypeError\", \"a kernel's argument is no tensor\");\n"
    "        data[i] = t->data + t->byte_offset;\n    }\n"
    "    if (n > n_data && args[n_data].type == 1)\n        job.parts = (int32_t)args[n_data].u.i;\n"
    "    if (job.parts == 1 || !TVMBackendParallelLaunch)\n"
    "        (void)lathe_task(0, alone, &job);\n"
    "    else if (TVMBackendParallelLaunch(lathe_task, &job, 0) != 0)\n"
    "        return -1; /* the host has said why */\n";

static void write_status(writer *w)
{
    w_str(w, ffi_text);
    w_str(w, "    switch (job.status) {\n    case 0: return 0;\n");
#define ROW(name, value, text) \
    w_fmt(w, "    case %d: return lathe_raise(\"ValueError\", \"%s\");\n", value, text);
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

/* For hosts that know only tvm-ffi. */
static void write_host_form(writer *w, const char *name, uint32_t n)
{
    w_fmt(w, "LATHE_EXPORT int __tvm_ffi_%s(void *self, const lathe_any *args, int32_t n, lathe_any *result)\n{\n",
          name);
    w_fmt(w, "    void *data[%u];\n    (void)self;\n    (void)result;\n", n > 0 ? n : 1);
    w_fmt(w, "    return lathe_call(%s" MODULE_PACKED_SUFFIX ", args, n, data, %u);\n}\n", name, n);
}

static void write_packed(const package *p, writer *w, uint32_t i)
{
    const plan_op *op = &p->pl->problem->ops.data[i];
    const char *name = source_kernel_name(p, i);
    const uint32_t n = op->n_args + op->n_scratch;
    w_fmt(w, "LATHE_EXPORT int32_t %s" MODULE_PACKED_SUFFIX "(void *const *a, uint32_t part, uint32_t parts)\n{\n",
          name);
    w_str(w, "    ");
    ops_write_call(p, w, i);
    w_str(w, "}\n\n");
    write_host_form(w, name, n);
}

/* --- sizes --- */

/* What the operator has at address k, as its loops know it. */
static const tir_buffer *buffer_at(const plan_op *op, uint32_t k)
{
    return k < op->n_args ? op->func->params[k] : op->scratch[k - op->n_args].buffer;
}

bool source_grows(const package *p, uint32_t op)
{
    const plan_op *o = &p->pl->problem->ops.data[op];
    return package_kernel(p, op)->stacks &&
           prog_is_unbounded(&p->u->func->values.data[prog_root(p->u->func, o->args[o->n_inputs], &(uint64_t){0})]);
}

bool source_is_open(const package *p, uint32_t op, uint32_t k)
{
    const plan_op *o = &p->pl->problem->ops.data[op];
    if (k >= o->n_args)
        return tir_buffer_count(buffer_at(o, k)) < 0;
    const prog_value *v = &p->u->func->values.data[o->args[k]];
    return k >= o->n_inputs && v->base == PROG_NONE && prog_is_unbounded(v) && !source_grows(p, op);
}

/* Kernels are shared by operators, and scratch has as many parts as each of them. */
const char *source_size_name(const package *p, uint32_t op, uint32_t k)
{
    return arena_printf(&p->c->mem, "%s_bytes_%u_%u", p->prefix, op, k);
}

const char *source_grow_name(const package *p, uint32_t op)
{
    return arena_printf(&p->c->mem, "%s_grow_%u", p->prefix, op);
}

const char *source_move_name(const package *p, uint32_t op)
{
    return arena_printf(&p->c->mem, "%s_move_%u", p->prefix, op);
}

/* The variables that hold the symbols, around a store of the size. */
static tir_stmt *with_symbols(compiler *c, const tir_stmt *at, tir_stmt *body)
{
    for (; at && at->kind == TIR_LET; at = at->body)
        if (at->value->kind == TIR_LOAD)
            body = tir_let(c, at->var, at->value, body);
    return body;
}

/* The store of bytes[n] * b->shape[first..]. What has no number is the largest one: no allocator gives as much. */
static tir_stmt *store_size(compiler *c, const tir_buffer *bytes, const tir_buffer *b, uint32_t first, int64_t size)
{
    tir_expr_ref zero = tir_i64(c, 0), one = tir_i64(c, 1), most = tir_i64(c, INT64_MAX), sum = tir_i64(c, size);
    const tir_var *extents[TYPE_MAX_RANK], *sums[TYPE_MAX_RANK];
    tir_expr_ref products[TYPE_MAX_RANK];
    for (uint32_t i = first; i < b->rank; i++) {
        extents[i] = tir_new_var(c, "extent", TIR_I64);
        sums[i] = tir_new_var(c, "size", TIR_I64);
        const tir_expr_ref extent = tir_varref(c, extents[i]);
        const tir_expr_ref fits = tir_binary(c, TIR_LE, sum, tir_floordiv(c, most, tir_max(c, one, extent)));
        products[i] = tir_select(c, fits, tir_mul(c, sum, extent), most);
        sum = tir_varref(c, sums[i]);
    }
    tir_stmt *body = tir_store(c, bytes, 1, &zero, sum);
    for (uint32_t i = b->rank; i-- > first;) {
        body = tir_let(c, sums[i], products[i], body);
        body = tir_let(c, extents[i], tir_max(c, zero, tir_cast(c, DT_I64, b->shape[i])), body);
    }
    return body;
}

/* A function of the loop IR that computes bytes from the expressions of a buffer's extents, from axis `first` on. */
static bool write_bytes(const package *p, c_needs *needs, writer *w, const char *name, const plan_op *o,
                        const tir_buffer *b, uint32_t first, uint32_t times)
{
    compiler *c = p->c;
    const uint32_t n = o->func->n_symbols;
    const int64_t size = (int64_t)dtype_bytes(b->dt) * times;
    tir_expr_ref one = tir_i64(c, 1);
    const tir_buffer **params = arena_array(&c->mem, const tir_buffer *, n + 1u);
    memcpy(params, o->func->params, n * sizeof *params);
    params[n] = tir_new_buffer(c, "bytes", DT_I64, 1, &one, SCOPE_GLOBAL);
    const tir_func f = {.name = name,
                        .params = params,
                        .n_params = n + 1,
                        .n_inputs = n,
                        .body = with_symbols(c, o->func->body, store_size(c, params[n], b, first, size)),
                        .index_type = DT_I64};
    return func_write(c, w, needs, &f, name, NULL);
}

/* Its call, with the cells first among the addresses. */
static void write_bytes_call(writer *w, const char *name, uint32_t n_cells, const char *to)
{
    w_fmt(w, "%s(", name);
    for (uint32_t i = 0; i < n_cells; i++)
        w_fmt(w, "(const int64_t *)a[%u], ", i);
    w_fmt(w, "%s, part, parts)", to);
}

static void open_packed(writer *w, const char *name)
{
    w_fmt(w, "\nLATHE_EXPORT int32_t %s" MODULE_PACKED_SUFFIX "(void *const *a, uint32_t part, uint32_t parts)\n{\n",
          name);
}

static bool write_size(const package *p, c_needs *needs, writer *w, uint32_t op, uint32_t k)
{
    const plan_op *o = &p->pl->problem->ops.data[op];
    const char *name = source_size_name(p, op, k);
    const uint32_t n = o->func->n_symbols;
    const bool shared = k < o->n_args || !o->scratch[k - o->n_args].per_part;
    if (!write_bytes(p, needs, w, name, o, buffer_at(o, k), 0, shared ? 1 : p->pl->tasks[op].parts))
        return false;
    open_packed(w, name);
    w_str(w, "    return ");
    write_bytes_call(w, name, n, arena_printf(&p->c->mem, "(int64_t *)a[%u]", n));
    w_str(w, ";\n}\n\n");
    write_host_form(w, name, n + 1);
    w_str(w, "\n");
    return true;
}

/* Twice as many rows whenever there is no room for one more. */
static bool write_growth(const package *p, c_needs *needs, writer *w, uint32_t op)
{
    const plan_op *o = &p->pl->problem->ops.data[op];
    const char *grow = source_grow_name(p, op), *move = source_move_name(p, op);
    const char *row = arena_printf(&p->c->mem, "%s_row_%u", p->prefix, op);
    const uint32_t n = o->func->n_symbols;
    if (!write_bytes(p, needs, w, row, o, buffer_at(o, o->n_inputs), 1, 1))
        return false;
    open_packed(w, grow);
    w_str(w, "    int64_t row[1];\n    const int32_t status = ");
    write_bytes_call(w, row, n, "row");
    w_fmt(w,
          ";\n    const int64_t round = *(const int64_t *)a[%u];\n    int64_t *room = a[%u], *bytes = a[%u];\n"
          "    const int64_t rows = round == 0 ? 0 : *room;\n    uint8_t *needed = a[%u];\n"
          "    *needed = round >= rows;\n    *bytes = 0;\n    if (!*needed)\n        return status;\n"
          "    *room = round < 2 ? 4 : 2 * round;\n"
          "    *bytes = row[0] > INT64_MAX / *room ? INT64_MAX : *room * row[0];\n    return status;\n}\n\n",
          n, n + 1, n + 2, n + 3);
    write_host_form(w, grow, n + 4);
    open_packed(w, move);
    w_str(w, "    int64_t row[1];\n    const int32_t status = ");
    write_bytes_call(w, row, n, "row");
    w_fmt(w, ";\n    memcpy(a[%u], a[%u], (size_t)(*(const int64_t *)a[%u] * row[0]));\n    return status;\n}\n\n",
          n + 2, n + 1, n);
    write_host_form(w, move, n + 3);
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
            if (source_is_open(p, i, k) && !write_size(p, needs, &all, i, k))
                return false;
        if (source_grows(p, i) && !write_growth(p, needs, &all, i))
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
        if (package_is_first(p, i))
            fn(ctx, source_kernel_name(p, i), op->n_args + op->n_scratch);
        for (uint32_t k = op->n_inputs; k < op->n_args + op->n_scratch; k++)
            if (source_is_open(p, i, k))
                fn(ctx, source_size_name(p, i, k), n + 1);
        if (!source_grows(p, i))
            continue;
        fn(ctx, source_grow_name(p, i), n + 4);
        fn(ctx, source_move_name(p, i), n + 3);
    }
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

static bool write_variant(writer *w, const module_variant *v)
{
    const package *p = &v->p;
    const plan_problem *pp = p->pl->problem;
    c_needs needs = {.a = &p->c->mem, .riscv = true};
    size_t sizes[MODULE_SHARDS] = {0};
    writer kernels;
    writer_init(&kernels, &p->c->mem);
    for (uint32_t i = 0; i < pp->ops.len; i++) {
        writer one;
        if (!package_is_first(p, i))
            continue;
        writer_init(&one, &p->c->mem);
        if (!ops_write_kernel(p, &needs, &one, i))
            return false;
        w_str(&one, "\n");
        write_packed(p, &one, i);
        w_fmt(&kernels, "#if LATHE_HAS_PIECE(%u)\n", next_piece(sizes, one.len));
        w_str(&kernels, one.data);
        w_str(&kernels, "#endif\n\n");
    }
    if (!write_sizes(p, &needs, &kernels))
        return false;
    needs_write(&p->c->mem, w, &needs);
    w_str(w, kernels.data ? kernels.data : "");
    return true;
}

/* A host that knows only tvm-ffi looks for every name of the bytecode before it runs any of it. */
static void write_absent(void *ctx, const char *name, uint32_t n_args)
{
    (void)n_args;
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
    w_fmt(w, "/* The kernels of module \"%s\", of %s. */\n", variants[0].p.u->module_name,
          package_comment(&c->mem, variants[0].p.u->model_file));
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
