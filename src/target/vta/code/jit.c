/* SPDX-License-Identifier: Apache-2.0 */
/* A lowered function as C99 that calls the published run-time (VTALoadBuffer2D, VTAPushGEMMOp, ...). The C back end
 * writes it; here is what it does not know: kernels, which become static functions that record over a closure of the
 * variables around them, and memory. */
#include "codegen/c/emit.h"
#include "target/vta/code/vta_code.h"
#include "target/vta/pass/passes.h"
#include "tir/build.h"
#include "tir/facts.h"
#include "tir/walk.h"
#include "target/vta/vta_text.h"

#include <string.h>

/* The functions that the text may call, in the library's header vta_runtime.h. */
static const struct {
    const char *name, *prototype;
} functions[] = {
    {"VTABufferAlloc", "void *VTABufferAlloc(size_t size);"},
    {"VTABufferFree", "void VTABufferFree(void *buffer);"},
    {"VTABufferCPUPtr", "void *VTABufferCPUPtr(void *cmd, void *buffer);"},
    {"VTAWriteBarrier",
     "void VTAWriteBarrier(void *cmd, void *buffer, uint32_t elem_bits, uint32_t start, uint32_t extent);"},
    {"VTAReadBarrier",
     "void VTAReadBarrier(void *cmd, void *buffer, uint32_t elem_bits, uint32_t start, uint32_t extent);"},
    {"VTATLSCommandHandle", "void *VTATLSCommandHandle(void);"},
    {"VTALoadBuffer2D", "void VTALoadBuffer2D(void *cmd, void *src_dram_addr, uint32_t src_elem_offset, uint32_t "
                        "x_size, uint32_t y_size,\n"
                        "    uint32_t x_stride, uint32_t x_pad_before, uint32_t y_pad_before, uint32_t x_pad_after, "
                        "uint32_t y_pad_after,\n"
                        "    uint32_t dst_sram_index, uint32_t dst_memory_type);"},
    {"VTAStoreBuffer2D",
     "void VTAStoreBuffer2D(void *cmd, uint32_t src_sram_index, uint32_t src_memory_type, void *dst_dram_addr,\n"
     "    uint32_t dst_elem_offset, uint32_t x_size, uint32_t y_size, uint32_t x_stride);"},
    {"VTAUopPush", "void VTAUopPush(uint32_t mode, uint32_t reset_out, uint32_t dst_index, uint32_t src_index,\n"
                   "    uint32_t wgt_index, uint32_t opcode, uint32_t use_imm, int32_t imm_val);"},
    {"VTAUopLoopBegin",
     "void VTAUopLoopBegin(uint32_t extent, uint32_t dst_factor, uint32_t src_factor, uint32_t wgt_factor);"},
    {"VTAUopLoopEnd", "void VTAUopLoopEnd(void);"},
    {"VTAPushGEMMOp", "int VTAPushGEMMOp(void **uop_handle, int (*finit)(void *), void *signature, int nbytes);"},
    {"VTAPushALUOp", "int VTAPushALUOp(void **uop_handle, int (*finit)(void *), void *signature, int nbytes);"},
    {"VTADepPush", "int VTADepPush(void *cmd, int from_qid, int to_qid);"},
    {"VTADepPop", "int VTADepPop(void *cmd, int from_qid, int to_qid);"},
    {"VTASynchronize", "void VTASynchronize(void *cmd, uint32_t wait_cycles);"},
    {"VTASetDebugMode", "void VTASetDebugMode(void *cmd, int debug_flag);"},
};
enum { N_FUNCTIONS = sizeof functions / sizeof *functions };

typedef struct jit {
    compiler *c;
    const char *name;
    const tir_var *cmd;
    const char *data; /* expression for the address of the view that is allocated next */
    writer recorders;
    uint32_t n_kernels;
    bool has_cmd; /* some call takes it */
    bool checks;  /* the text itself asks which configuration the device has */
    bool own;     /* memory of the function's own stands around its body */
    bool used[N_FUNCTIONS];
} jit;

static void use(jit *j, const char *name)
{
    for (uint32_t i = 0; i < N_FUNCTIONS; i++)
        j->used[i] |= strcmp(functions[i].name, name) == 0;
}

static void find_use(void *ctx, tir_expr_ref e)
{
    if (e->kind == TIR_EXTERN)
        use(ctx, e->u.name);
}

/* --- kernels --- */

typedef struct free_vars {
    compiler *c;
    VEC(const tir_var *) used;
    tir_map made; /* by loops and lets inside */
    bool loads;
} free_vars;

static void note_made(void *ctx, tir_stmt *s)
{
    free_vars *v = ctx;
    if (s->kind == TIR_FOR || s->kind == TIR_LET)
        tir_map_put(&v->made, s->var, s);
}

static void note_used(void *ctx, tir_expr_ref e)
{
    free_vars *v = ctx;
    v->loads |= tir_is_access(e);
    if (e->kind != TIR_VAR || tir_map_get(&v->made, e->u.var))
        return;
    for (uint32_t i = 0; i < v->used.len; i++)
        if (v->used.data[i] == e->u.var)
            return;
    vec_push(&v->c->mem, &v->used, e->u.var);
}

/* Published run-times take closures of at most 4 bytes, ours of any length. */
static const char *field_type(const c_emit *e, const tir_var *v)
{
    tir_range r = tir_range_of(e->bounds, tir_varref(e->c, v));
    bool small = r.known_min && r.known_max && r.min >= INT32_MIN && r.max <= INT32_MAX;
    return small ? "int32_t" : "int64_t";
}

/* The static function that records the kernel, its slot, and the struct of its closure. */
static void write_recorder(jit *j, c_emit *outer, const tir_stmt *s, const free_vars *v)
{
    writer *w = &j->recorders;
    c_emit e = {.c = j->c,
                .tmp = outer->tmp,
                .w = w,
                .needs = outer->needs,
                .f = outer->f,
                .bounds = outer->bounds,
                .extension = outer->extension};
    tir_map_init(&e.places, outer->tmp);
    if (v->used.len > 0) {
        w_open(w, "struct %s_closure_%u", j->name, j->n_kernels);
        for (uint32_t i = 0; i < v->used.len; i++)
            w_line(w, "%s v%u;", field_type(outer, v->used.data[i]), i);
        w_close(w, ";");
        w_str(w, "\n");
    }
    w_fmt(w, "static void *%s_site_%u;\n\nstatic int %s_record_%u(void *closure)\n{\n", j->name, j->n_kernels, j->name,
          j->n_kernels);
    w->indent++;
    for (uint32_t i = 0; i < v->used.len; i++) {
        const tir_var *var = v->used.data[i];
        w_line(w, "const %s %s = ((const struct %s_closure_%u *)closure)->v%u;", dtype_c_name(var->type.dt),
               names_push(&e, var, var->name, true), j->name, j->n_kernels, i);
    }
    if (v->used.len == 0)
        w_str(w, "(void)closure;\n");
    e.alone = false;
    func_stmt(&e, s->body);
    w_str(w, "return 0;\n");
    w_close(w, "\n");
    outer->failed |= e.failed;
}

static void write_kernel(jit *j, c_emit *e, const tir_stmt *s)
{
    const char *push = s->value->u.name;
    free_vars v = {.c = j->c};
    tir_map_init(&v.made, &j->c->mem);
    tir_visit_stmt(s->body, note_made, NULL, &v);
    tir_visit_stmt(s->body, NULL, note_used, &v);
    if (v.loads) {
        func_refuse(e, "kernels of the accelerator that depend on data");
        return;
    }
    use(j, push);
    write_recorder(j, e, s, &v);
    w_str(e->w, "{\n"); /* the closure's name is its own */
    e->w->indent++;
    const char *closure = "NULL, 0";
    if (v.used.len > 0) {
        w_fmt(e->w, "struct %s_closure_%u closure = {", j->name, j->n_kernels);
        for (uint32_t i = 0; i < v.used.len; i++)
            w_fmt(e->w, "%s(%s)%s", i ? ", " : "", field_type(e, v.used.data[i]), expr_name(e, v.used.data[i]));
        w_str(e->w, "};\n");
        closure = "&closure, (int)sizeof closure";
    }
    w_line(e->w, "const int status = %s(&%s_site_%u, %s_record_%u, %s);", push, j->name, j->n_kernels, j->name,
           j->n_kernels, closure);
    w_str(e->w, "if (status != 0)\n    return status;\n");
    w_close(e->w, "");
    j->n_kernels++;
}

/* --- memory --- */

/* The host's view of a buffer: a pointer that the run-time gave. */
static void write_view(jit *j, c_emit *e, const tir_stmt *s)
{
    const uint32_t depth = e->names.len;
    w_str(e->w, "{\n");
    e->w->indent++;
    w_line(e->w, "%s *const %s = %s;", dtype_c_name(s->buffer->dt), names_push(e, s->buffer, s->buffer->name, false),
           j->data);
    func_stmt(e, s->body);
    w_close(e->w, "");
    e->names.len = depth;
}

static bool write_own(void *ctx, c_emit *e, const tir_stmt *s)
{
    jit *j = ctx;
    if (s->kind == TIR_ATTR && strcmp(s->key, "coproc_uop_scope") == 0) {
        write_kernel(j, e, s);
        return true;
    }
    if (s->kind == TIR_EVALUATE && s->value->kind == TIR_EXTERN) {
        w_line(e->w, "%s;", expr_text(e, s->value).s);
        return true;
    }
    if (s->kind == TIR_ATTR && strcmp(s->key, "buffer_data") == 0) {
        j->data = expr_text(e, s->value).s;
        func_stmt(e, s->body);
        return true;
    }
    if (s->kind != TIR_ALLOCATE || s->buffer->scope != SCOPE_CUSTOM)
        return false;
    if (strcmp(s->buffer->scope_name, "vta.cpu") == 0 && j->data)
        write_view(j, e, s);
    else
        func_refuse(e, "buffers in scratchpads that are left");
    return true;
}

/* The instructions are right for one configuration. On another device they would run as well and give other numbers. */
static void write_check(const jit *j, writer *w)
{
    if (!j->checks)
        return;
    w_str(w, "{\n"); /* the status's name is its own */
    w->indent++;
    w_line(w, "const int status = vta_want_config ? vta_want_config(\"%s\") : 0;", vta_text_name(j->c));
    w_str(w, "if (status != 0)\n    return status;\n");
    w_close(w, "");
}

static void write_opening(void *ctx, c_emit *e)
{
    jit *j = ctx;
    const char *name = names_push(e, j->cmd, "cmd", false);
    if (!j->own)
        write_check(j, e->w);
    if (j->has_cmd)
        w_line(e->w, "void *const %s = VTATLSCommandHandle();", name);
}

/* --- the text --- */

static tir_expr_ref take_handle(tir_rewriter *r, tir_expr_ref e)
{
    jit *j = r->ctx;
    if (e->kind != TIR_EXTERN || strcmp(e->u.name, "VTATLSCommandHandle") != 0)
        return e;
    j->has_cmd = true;
    return tir_varref(r->c, j->cmd);
}

/* Calls of the run-time by their names, over one handle of the queue. */
static tir_func *prepare(jit *j, const tir_func *f)
{
    tir_func *copy = arena_new(&j->c->mem, tir_func);
    *copy = *f;
    if (!tir_pass_lower_intrin(j->c, copy))
        return NULL;
    tir_rewriter r = {.c = j->c, .ctx = j, .expr = take_handle};
    copy->body = tir_rewrite_stmt(&r, copy->body);
    tir_visit_stmt(copy->body, NULL, find_use, j);
    if (j->has_cmd)
        use(j, "VTATLSCommandHandle");
    return copy;
}

/* The function that callers see, where memory of its own stands around the body. */
static void write_outer(jit *j, writer *w, const tir_func *f)
{
    const tir_buffer *const *all;
    uint32_t n = vta_code_buffers(j->c, f, &all);
    w_str(w, "\n");
    vta_code_print_prototype(w, f, j->name, false);
    w_str(w, "\n{\n");
    w->indent++;
    write_check(j, w);
    w->indent--;
    w_fmt(w, "    int32_t status = %d;\n", (int)VTA_NO_MEMORY);
    for (uint32_t i = f->n_params; i < n; i++)
        w_fmt(w, "    void *const b%u = VTABufferAlloc(%zu);\n", i, vta_code_bytes(all[i]));
    w_str(w, "    if (");
    for (uint32_t i = f->n_params; i < n; i++)
        w_fmt(w, "%sb%u", i > f->n_params ? " && " : "", i);
    w_fmt(w, ")\n        status = %s_body(", j->name);
    for (uint32_t i = 0; i < n; i++)
        w_fmt(w, "%sb%u", i ? ", " : "", i);
    w_str(w, ");\n");
    for (uint32_t i = n; i-- > f->n_params;)
        w_fmt(w, "    if (b%u)\n        VTABufferFree(b%u);\n", i, i);
    w_str(w, "    return status;\n}\n");
}

static void write_head(jit *j, writer *w, const tir_func *f)
{
    const tir_buffer *const *all;
    (void)vta_code_buffers(j->c, f, &all);
    w_fmt(w,
          "/* %s: host code that queues the work of a VTA accelerator and waits for it. Arguments are buffer handles\n"
          " * (VTABufferAlloc), in bytes:",
          j->name);
    for (uint32_t i = 0; i < f->n_params; i++)
        w_fmt(w, "\n *   %s %zu%s", all[i]->name, vta_code_bytes(all[i]), i < f->n_inputs ? "" : ", written");
    if (j->checks)
        w_fmt(w, "\n * The device is a %s. libvta returns a status on any other one.", vta_text_name(j->c));
    w_str(w, "\n * Link it with libvta, or load it where libvta is.\n"
             " * SPDX-License-Identifier: Apache-2.0 */\n#include <stddef.h>\n#include <stdint.h>\n\n");
    for (uint32_t i = 0; i < N_FUNCTIONS; i++)
        if (j->used[i])
            w_fmt(w, "%s\n", functions[i].prototype);
    if (j->checks)
        w_str(w, "#if defined(__GNUC__) /* a run-time that is compiled for one configuration has no such function */\n"
                 "__attribute__((weak))\n#endif\nint vta_want_config(const char *name);\n");
    w_str(w, "\n");
}

bool vta_code_print_jit(compiler *c, writer *w, const tir_func *f, const char *name, bool checks)
{
    jit j = {.c = c, .name = name, .checks = checks};
    c_needs needs = {.a = &c->mem};
    writer body;
    writer_init(&body, &c->mem);
    writer_init(&j.recorders, &c->mem);
    j.recorders.step = 4;
    j.cmd = tir_new_var(c, "cmd", tir_scalar(DT_HANDLE));
    if (!vta_code_check(c, f))
        return false;
    const tir_func *ready = prepare(&j, f);
    const tir_scratch *scratch;
    const bool own = j.own = ready && tir_find_scratch(c, ready, &scratch) > 0;
    const c_extension extension = {
        .ctx = &j, .open = write_opening, .stmt = write_own, .linkage = own ? "static " : ""};
    const char *inner = own ? arena_printf(&c->mem, "%s_body", name) : name;
    if (!ready || !func_write_extended(c, &body, &needs, ready, inner, &extension))
        return false;
    if (own) {
        use(&j, "VTABufferAlloc");
        use(&j, "VTABufferFree");
    }
    write_head(&j, w, ready);
    needs_write(&c->mem, w, &needs);
    w_str(w, j.recorders.data ? j.recorders.data : "");
    vta_code_print_prototype(w, f, name, false);
    w_str(w, ";\n\n");
    w_str(w, body.data);
    if (own)
        write_outer(&j, w, ready);
    return true;
}
