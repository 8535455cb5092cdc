/* SPDX-License-Identifier: Apache-2.0 */
/* A lowered function, executed call by call: arguments are evaluated and the run-time is called. Statements without any
 * call of the run-time are the host's and go to the interpreter, over the host's views of buffers. */
#include "target/vta/code/exec.h"
#include "tir/build.h"
#include "tir/eval.h"
#include "tir/interpret.h"
#include "tir/map.h"
#include "tir/walk.h"

#include <assert.h>
#include <string.h>

enum { MOST_ARGS = 12 };

typedef struct host_view {
    const tir_buffer *b;
    uint8_t *cpu;
} host_view;

typedef struct machine {
    compiler *c;
    const tir_func *f;
    vta_context *x;
    const tir_buffer *const *list;
    const vta_buffer *buffers; /* of list[i] */
    uint32_t n_buffers;
    VEC(host_view) views;
    VEC(const tir_var *) vars;
    VEC(int64_t) values;      /* of vars[i] */
    tir_map device;           /* statements with a call of the run-time in them */
    uint8_t *data;            /* where the view that is allocated next starts */
    tir_stmt *kernel;         /* body of the kernel that is recorded */
    const vta_code_watch *watch; /* NULL: nobody wants to know */
    bool capturing;
    bool *full; /* capturing: what queue and log do not hold is told here and not reported */
    bool ok;
} machine;

static bool fail(machine *m, diag_code code, const char *what)
{
    if (m->ok)
        diag_error(&m->c->diags, code, m->f->loc, "%s: %s", m->f->name, what);
    m->ok = false;
    return false;
}

/* What the run-time refused, in its own words. */
static bool check(machine *m, vta_status s)
{
    vta_error e = {VTA_OK, ""};
    if (s == VTA_OK)
        return m->ok;
    vta_context_last_error(m->x, &e);
    if (m->ok && m->full && s == VTA_NO_MEMORY) {
        *m->full = true;
        m->ok = false;
        return false;
    }
    return fail(m, s == VTA_NO_MEMORY ? DIAG_ENVIRONMENT : DIAG_DATA, *e.text ? e.text : vta_status_text(s));
}

/* --- which statements are the host's --- */

static bool mark_device(machine *m, tir_stmt *s)
{
    bool found = s->kind == TIR_ALLOCATE && s->buffer->scope == SCOPE_GLOBAL;
    if (s->kind == TIR_EVALUATE || s->kind == TIR_ATTR)
        found = found || vta_code_is_call(s->value);
    if (s->body && mark_device(m, s->body))
        found = true;
    if (s->orelse && mark_device(m, s->orelse))
        found = true;
    for (uint32_t i = 0; i < s->n_stmts; i++)
        if (mark_device(m, s->stmts[i]))
            found = true;
    if (found)
        tir_map_put(&m->device, s, s);
    return found;
}

/* --- numbers --- */

static int64_t value_of(machine *m, tir_expr_ref e);

static int64_t load_value(machine *m, tir_expr_ref e)
{
    for (uint32_t i = m->views.len; i-- > 0 && e->n_args == 1;) {
        const host_view *v = &m->views.data[i];
        if (v->b != e->u.buffer)
            continue;
        int64_t at = value_of(m, e->args[0]);
        if (at >= 0 && at < tir_buffer_count(v->b))
            return dtype_load_i64(e->type.dt, v->cpu + (size_t)at * dtype_bytes(e->type.dt));
    }
    fail(m, DIAG_DATA, "an argument of a call is read from outside of a buffer, or from one that the host cannot read");
    return 0;
}

static int64_t value_of(machine *m, tir_expr_ref e)
{
    switch (e->kind) {
    case TIR_INT: return e->u.i;
    case TIR_VAR:
        for (uint32_t i = m->vars.len; i-- > 0;)
            if (m->vars.data[i] == e->u.var)
                return m->values.data[i];
        break;
    case TIR_BINOP:
        if (!dtype_is_float(e->args[0]->type.dt))
            return tir_eval_int(e->args[0]->type.dt, e->op, value_of(m, e->args[0]), value_of(m, e->args[1]));
        break;
    case TIR_NOT: return !value_of(m, e->args[0]);
    case TIR_CAST:
        if (!dtype_is_float(e->type.dt) && !dtype_is_float(e->args[0]->type.dt))
            return eval_wrap(e->type.dt, value_of(m, e->args[0]));
        break;
    case TIR_SELECT: return value_of(m, e->args[value_of(m, e->args[0]) ? 1 : 2]);
    case TIR_LOAD:
        if (!dtype_is_float(e->type.dt))
            return load_value(m, e);
        break;
    case TIR_FLOAT:
    case TIR_ADDRESS:
    case TIR_CALL:
    case TIR_EXTERN:
    case TIR_INSTR:
    case TIR_RAMP:
    case TIR_BROADCAST: break;
    }
    fail(m, DIAG_UNSUPPORTED, "an argument of a call of the accelerator is not an integer");
    return 0;
}

static uint32_t arg(machine *m, tir_expr_ref call, uint32_t i)
{
    assert(i < call->n_args); /* as the table of calls counts them */
    int64_t v = value_of(m, call->args[i]);
    if (v < 0 || v > UINT32_MAX)
        fail(m, DIAG_DATA, "an argument of a call of the accelerator is negative, or above 2^32");
    return (uint32_t)v;
}

static vta_buffer buffer_of(machine *m, tir_expr_ref e)
{
    for (uint32_t i = 0; e->kind == TIR_ADDRESS && e->n_args == 0 && i < m->n_buffers; i++)
        if (m->list[i] == e->u.buffer)
            return m->buffers[i];
    fail(m, DIAG_UNSUPPORTED, "a call of the accelerator names no buffer in the device's memory");
    return 0;
}

/* --- calls --- */

static vta_status call_load(machine *m, tir_expr_ref e)
{
    vta_transfer t = {.memory = (enum vta_mem)arg(m, e, 11),
                      .sram_index = arg(m, e, 10),
                      .dram_offset = arg(m, e, 2),
                      .x_size = arg(m, e, 3),
                      .y_size = arg(m, e, 4),
                      .x_stride = arg(m, e, 5),
                      .x_pad_before = arg(m, e, 6),
                      .y_pad_before = arg(m, e, 7),
                      .x_pad_after = arg(m, e, 8),
                      .y_pad_after = arg(m, e, 9)};
    vta_buffer from = buffer_of(m, e->args[1]);
    return m->ok ? vta_load(m->x, from, &t) : VTA_OK;
}

static vta_status call_store(machine *m, tir_expr_ref e)
{
    vta_transfer t = {.memory = (enum vta_mem)arg(m, e, 2),
                      .sram_index = arg(m, e, 1),
                      .dram_offset = arg(m, e, 4),
                      .x_size = arg(m, e, 5),
                      .y_size = arg(m, e, 6),
                      .x_stride = arg(m, e, 7)};
    vta_buffer to = buffer_of(m, e->args[3]);
    return m->ok ? vta_store(m->x, to, &t) : VTA_OK;
}

/* Errors of kernels have no context to keep them. */
static vta_status recorded(machine *m, vta_status s, const vta_error *e)
{
    if (s != VTA_OK)
        fail(m, DIAG_DATA, e->text);
    return VTA_OK;
}

static vta_status call_loop_begin(machine *m, tir_expr_ref e)
{
    vta_error error = {VTA_OK, ""};
    uint32_t a[4];
    for (uint32_t i = 0; i < 4; i++)
        a[i] = arg(m, e, i);
    return m->ok ? recorded(m, vta_uop_loop_begin(a[0], a[1], a[2], a[3], &error), &error) : VTA_OK;
}

static vta_status call_loop_end(machine *m, tir_expr_ref e)
{
    vta_error error = {VTA_OK, ""};
    (void)e;
    return recorded(m, vta_uop_loop_end(&error), &error);
}

static vta_status call_uop_push(machine *m, tir_expr_ref e)
{
    vta_error error = {VTA_OK, ""};
    vta_uop u = {arg(m, e, 0), arg(m, e, 1), arg(m, e, 2), arg(m, e, 3),
                 arg(m, e, 4), arg(m, e, 5), arg(m, e, 6), (int32_t)value_of(m, e->args[7])};
    return m->ok ? recorded(m, vta_uop_push(&u, &error), &error) : VTA_OK;
}

static vta_status call_dep_push(machine *m, tir_expr_ref e)
{
    enum vta_stage from = (enum vta_stage)arg(m, e, 0), to = (enum vta_stage)arg(m, e, 1);
    return m->ok ? vta_dep_push(m->x, from, to) : VTA_OK;
}

static vta_status call_dep_pop(machine *m, tir_expr_ref e)
{
    enum vta_stage from = (enum vta_stage)arg(m, e, 0), to = (enum vta_stage)arg(m, e, 1);
    return m->ok ? vta_dep_pop(m->x, from, to) : VTA_OK;
}

static vta_status call_sync(machine *m, tir_expr_ref e)
{
    (void)e;
    return vta_synchronize(m->x, UINT32_MAX);
}

static vta_status call_debug(machine *m, tir_expr_ref e)
{
    (void)vta_context_debug(m->x, arg(m, e, 0));
    return VTA_OK;
}

static vta_status call_read_barrier(machine *m, tir_expr_ref e)
{
    vta_buffer b = buffer_of(m, e->args[0]);
    uint32_t bits = arg(m, e, 1), start = arg(m, e, 2), extent = arg(m, e, 3);
    return m->ok ? vta_read_barrier(m->x, b, bits, start, extent) : VTA_OK;
}

static vta_status call_write_barrier(machine *m, tir_expr_ref e)
{
    vta_buffer b = buffer_of(m, e->args[0]);
    uint32_t bits = arg(m, e, 1), start = arg(m, e, 2), extent = arg(m, e, 3);
    return m->ok ? vta_write_barrier(m->x, b, bits, start, extent) : VTA_OK;
}

static const struct {
    const char *name;
    uint32_t n_args;
    vta_status (*fn)(machine *m, tir_expr_ref e);
} calls[] = {
    {"VTALoadBuffer2D", 12, call_load},
    {"VTAStoreBuffer2D", 8, call_store},
    {"VTAUopLoopBegin", 4, call_loop_begin},
    {"VTAUopLoopEnd", 0, call_loop_end},
    {"tir.vta.uop_push", 8, call_uop_push},
    {"tir.vta.coproc_dep_push", 2, call_dep_push},
    {"tir.vta.coproc_dep_pop", 2, call_dep_pop},
    {"tir.vta.coproc_sync", 0, call_sync},
    {"tir.vta.set_debug_mode", 1, call_debug},
    {"tir.vta.coproc_read_barrier", 4, call_read_barrier},
    {"tir.vta.coproc_write_barrier", 4, call_write_barrier},
};

/* --- what no pass of ours makes: a computation may hold calls of its own --- */

typedef struct checker {
    compiler *c;
    const tir_func *f;
    bool ok;
} checker;

static void refuse(checker *k, const char *what)
{
    if (k->ok)
        diag_error(&k->c->diags, DIAG_UNSUPPORTED, k->f->loc, "%s: %s", k->f->name, what);
    k->ok = false;
}

static void check_call(void *ctx, tir_expr_ref e)
{
    checker *k = ctx;
    if (e->kind != TIR_EXTERN || e->type.dt == DT_STRING || !vta_code_is_call_itself(e))
        return;
    bool known = (strcmp(e->u.name, "tir.vta.command_handle") == 0 && e->n_args == 0) ||
                 (strcmp(e->u.name, "VTABufferCPUPtr") == 0 && e->n_args == 2);
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++)
        known |= strcmp(e->u.name, calls[i].name) == 0 && e->n_args == calls[i].n_args;
    if (!known)
        refuse(k, arena_printf(&k->c->mem, "a call of '%s' with %u arguments is not one of the accelerator's run-time",
                               e->u.name, e->n_args));
}

static void check_attr(void *ctx, tir_stmt *s)
{
    checker *k = ctx;
    if (s->kind != TIR_ATTR)
        return;
    const char *text = s->value->kind == TIR_EXTERN ? s->value->u.name : "";
    if (strcmp(s->key, "coproc_uop_scope") == 0 && strcmp(text, "VTAPushGEMMOp") != 0 &&
        strcmp(text, "VTAPushALUOp") != 0)
        refuse(k, "a kernel is neither for GEMM nor for ALU: coproc_uop_scope is \"VTAPushGEMMOp\" or "
                  "\"VTAPushALUOp\"");
    if (strcmp(s->key, "buffer_data") == 0 && strcmp(text, "VTABufferCPUPtr") != 0)
        refuse(k, "buffer_data is what VTABufferCPUPtr gives");
}

bool vta_code_check(compiler *c, const tir_func *f)
{
    checker k = {c, f, true};
    if (f->n_symbols > 0)
        refuse(&k, "the accelerator runs computations whose extents are numbers");
    tir_visit_stmt(f->body, check_attr, check_call, &k);
    return k.ok;
}

static void call(machine *m, tir_expr_ref e)
{
    for (size_t i = 0; e->kind == TIR_EXTERN && i < sizeof calls / sizeof *calls; i++)
        if (strcmp(e->u.name, calls[i].name) == 0 && e->n_args == calls[i].n_args) {
            check(m, calls[i].fn(m, e));
            return;
        }
    fail(m, DIAG_UNSUPPORTED, "a statement is not a call of the accelerator's run-time");
}

/* --- statements --- */

static void execute(machine *m, tir_stmt *s);

/* A statement of the host's: a function over the views, the variables around it being numbers. */
static void run_host(machine *m, tir_stmt *s)
{
    compiler *c = m->c;
    if (m->capturing) {
        fail(m, DIAG_UNSUPPORTED, "the host computes something itself, and a captured stream cannot contain that");
        diag_hint(&c->diags,
                  "use the form with recorders, or give every stage to the accelerator in the schedule");
        return;
    }
    const arena_mark mark = arena_get_mark(&c->mem); /* what a round of a loop takes is given back */
    const tir_buffer **params = arena_array(&c->mem, const tir_buffer *, m->views.len + 1u);
    tir_expr_ref *values = arena_array(&c->mem, tir_expr_ref, m->vars.len + 1u);
    void **data = arena_array(&c->mem, void *, m->views.len + 1u);
    for (uint32_t i = 0; i < m->vars.len; i++)
        values[i] = tir_int(c, m->vars.data[i]->type.dt, m->values.data[i]);
    for (uint32_t i = 0; i < m->views.len; i++) {
        params[i] = m->views.data[i].b;
        data[i] = m->views.data[i].cpu;
    }
    tir_func f = *m->f;
    int32_t status = 0;
    f.params = params;
    f.n_params = m->views.len;
    f.n_inputs = 0;
    f.n_symbols = 0;
    f.body = tir_substitute_stmt(c, s, m->vars.len, m->vars.data, values);
    if (!tir_interpret(c, &f, data, &status))
        m->ok = false;
    else if (status != 0)
        fail(m, DIAG_DATA, arena_printf(&c->mem, "an assertion of the host's does not hold: status %d", (int)status));
    arena_reset(&c->mem, mark);
}

static int record(void *closure)
{
    machine *m = *(machine **)closure; /* the run-time hands a copy of the closure */
    execute(m, m->kernel);
    return m->ok ? 0 : 1;
}

static void push_kernel(machine *m, tir_stmt *s)
{
    const bool gemm = s->value->kind == TIR_EXTERN && strcmp(s->value->u.name, "VTAPushGEMMOp") == 0;
    tir_stmt *around = m->kernel;
    m->kernel = s->body;
    vta_status status = vta_push(m->x, gemm ? VTA_MODE_GEMM : VTA_MODE_ALU, NULL, record, &m, sizeof m);
    m->kernel = around;
    if (m->ok)
        check(m, status);
}

static void attribute(machine *m, tir_stmt *s)
{
    if (strcmp(s->key, "coproc_uop_scope") == 0) {
        push_kernel(m, s);
        return;
    }
    const vta_insn *queued;
    if (m->watch && strcmp(s->key, "vta_layer") == 0)
        m->watch->layer(m->watch->ctx, s->node, vta_queued(m->x, &queued));
    if (strcmp(s->key, "buffer_data") == 0 && s->value->kind == TIR_EXTERN && s->value->n_args == 2)
        m->data = vta_buffer_cpu_ptr(m->x, buffer_of(m, s->value->args[1]));
    execute(m, s->body);
}

static void bind(machine *m, const tir_var *v, int64_t value)
{
    vec_push(&m->c->mem, &m->vars, v);
    vec_push(&m->c->mem, &m->values, eval_wrap(v->type.dt, value));
}

static void unbind(machine *m)
{
    m->vars.len--;
    m->values.len--;
}

static void loop(machine *m, tir_stmt *s)
{
    int64_t min = value_of(m, s->min), extent = value_of(m, s->extent);
    for (int64_t i = 0; i < extent && m->ok; i++) {
        bind(m, s->var, min + i);
        execute(m, s->body);
        unbind(m);
    }
}

/* Memory of the device's, which the caller gave; a view of it; or the host's own, used between calls. */
static void allocate(machine *m, tir_stmt *s)
{
    const tir_buffer *b = s->buffer;
    const uint32_t depth = m->views.len;
    uint8_t *cpu = NULL;
    if (b->scope == SCOPE_CUSTOM)
        cpu = strcmp(b->scope_name, "vta.cpu") == 0 ? m->data : NULL;
    else if (b->scope != SCOPE_GLOBAL)
        cpu = arena_alloc(&m->c->mem, vta_code_bytes(b) + 1, 64);
    if (!cpu && b->scope != SCOPE_GLOBAL)
        fail(m, DIAG_UNSUPPORTED, arena_printf(&m->c->mem, "buffer '%s' is in no memory of the host's", b->name));
    if (cpu)
        vec_push(&m->c->mem, &m->views, ((host_view){b, cpu}));
    execute(m, s->body);
    m->views.len = depth;
}

static void execute(machine *m, tir_stmt *s)
{
    if (!m->ok)
        return;
    if (!tir_map_get(&m->device, s) && s->kind != TIR_SEQ) {
        run_host(m, s);
        return;
    }
    switch (s->kind) {
    case TIR_FOR: loop(m, s); break;
    case TIR_ATTR: attribute(m, s); break;
    case TIR_EVALUATE: call(m, s->value); break;
    case TIR_SEQ:
        for (uint32_t i = 0; i < s->n_stmts; i++)
            execute(m, s->stmts[i]);
        break;
    case TIR_IF:
        if (value_of(m, s->cond))
            execute(m, s->body);
        else if (s->orelse)
            execute(m, s->orelse);
        break;
    case TIR_LET:
        bind(m, s->var, value_of(m, s->value));
        execute(m, s->body);
        unbind(m);
        break;
    case TIR_ALLOCATE: allocate(m, s); break;
    case TIR_STORE:
    case TIR_ASSERT: break; /* never with a call in them */
    }
}

static bool run(machine *m)
{
    if (!vta_code_check(m->c, m->f))
        return false;
    m->n_buffers = vta_code_buffers(m->c, m->f, &m->list);
    tir_map_init(&m->device, &m->c->mem);
    mark_device(m, m->f->body);
    execute(m, m->f->body);
    if (!m->ok)
        vta_discard(m->x);
    return m->ok;
}

bool vta_code_execute(compiler *c, const tir_func *f, vta_context *x, const vta_buffer *buffers,
                      const vta_code_watch *watch)
{
    machine m = {.c = c, .f = f, .x = x, .buffers = buffers, .watch = watch, .ok = true};
    return run(&m);
}

bool vta_exec_capture(compiler *c, const tir_func *f, vta_context *x, const vta_buffer *buffers, bool *out_full)
{
    machine m = {.c = c, .f = f, .x = x, .buffers = buffers, .capturing = true, .full = out_full, .ok = true};
    *out_full = false;
    return run(&m);
}
