/* lowered.c: lowered loop IR, executed call by call; see lowered.h.
 * SPDX-License-Identifier: Apache-2.0 */
#include "lowered.h"

#include "runtime_test.h"
#include "te/lower.h"
#include "tir/eval.h"
#include "tir/pass.h"
#include "type/vta_text.h"

#define MOST_VARS   32
#define MOST_PLACES 24

typedef struct machine {
    compiler *c;
    const tir_func *f;
    board b;
    struct {
        const tir_buffer *b;
        vta_buffer handle; /* of parameters, and of what the program allocates in memory */
        uint8_t *cpu;      /* of the host's views */
    } places[MOST_PLACES];
    uint32_t n_places;
    uint8_t *data; /* where the view that is allocated next starts */
    struct {
        const tir_var *var;
        int64_t value;
    } vars[MOST_VARS];
    uint32_t n_vars;
    tir_stmt *kernel; /* body of the kernel that is recorded */
    uint32_t syncs;
} machine;

/* --- the program, call by call --- */

static uint32_t place_of(machine *m, const tir_buffer *b)
{
    for (uint32_t i = m->n_places; i > 0; i--)
        if (m->places[i - 1].b == b)
            return i - 1;
    fail_msg("'%s' is nowhere", b->name);
    return 0;
}

static uint32_t add_place(machine *m, const tir_buffer *b, vta_buffer handle, uint8_t *cpu)
{
    assert_true(m->n_places < MOST_PLACES);
    m->places[m->n_places].b = b;
    m->places[m->n_places].handle = handle;
    m->places[m->n_places].cpu = cpu;
    return m->n_places++;
}

static int64_t value_of(machine *m, tir_expr_ref e);

/* The element of a view that the host reads or writes. */
static uint8_t *element(machine *m, const tir_buffer *b, uint32_t n, tir_expr_ref const *indices)
{
    uint8_t *cpu = m->places[place_of(m, b)].cpu;
    int64_t at = n == 1 ? value_of(m, indices[0]) : -1;
    assert_non_null(cpu);
    assert_true(at >= 0 && at < tir_buffer_count(b));
    return cpu + (size_t)at * dtype_bytes(b->dt);
}

static int64_t value_of(machine *m, tir_expr_ref e)
{
    switch (e->kind) {
    case TIR_INT: return e->u.i;
    case TIR_VAR:
        for (uint32_t i = m->n_vars; i > 0; i--)
            if (m->vars[i - 1].var == e->u.var)
                return m->vars[i - 1].value;
        break;
    case TIR_BINOP: return tir_eval_int(e->type.dt, e->op, value_of(m, e->args[0]), value_of(m, e->args[1]));
    case TIR_CAST: return tir_eval_int(e->type.dt, TIR_ADD, value_of(m, e->args[0]), 0); /* wraps */
    case TIR_SELECT: return value_of(m, e->args[value_of(m, e->args[0]) ? 1 : 2]);
    case TIR_LOAD: return dtype_load_i64(e->type.dt, element(m, e->u.buffer, e->n_args, e->args));
    case TIR_FLOAT:
    case TIR_NOT:
    case TIR_ADDRESS:
    case TIR_CALL:
    case TIR_EXTERN:
    case TIR_RAMP:
    case TIR_BROADCAST: break;
    }
    fail_msg("an argument is no number");
    return 0;
}

static uint32_t arg(machine *m, tir_expr_ref call, uint32_t i)
{
    int64_t v = value_of(m, call->args[i]);
    assert_true(v >= 0 && v <= UINT32_MAX);
    return (uint32_t)v;
}

static vta_buffer buffer_of(machine *m, tir_expr_ref e)
{
    assert_true(e->kind == TIR_ADDRESS && e->n_args == 0);
    return m->places[place_of(m, e->u.buffer)].handle;
}

static void call_load(machine *m, tir_expr_ref e)
{
    assert_int_equal(e->n_args, 12);
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
    good(&m->b, vta_load(m->b.c, buffer_of(m, e->args[1]), &t));
}

static void call_store(machine *m, tir_expr_ref e)
{
    assert_int_equal(e->n_args, 8);
    vta_transfer t = {.memory = (enum vta_mem)arg(m, e, 2),
                      .sram_index = arg(m, e, 1),
                      .dram_offset = arg(m, e, 4),
                      .x_size = arg(m, e, 5),
                      .y_size = arg(m, e, 6),
                      .x_stride = arg(m, e, 7)};
    good(&m->b, vta_store(m->b.c, buffer_of(m, e->args[3]), &t));
}

static void push_uop(machine *m, tir_expr_ref e)
{
    assert_int_equal(e->n_args, 8);
    vta_uop u = {arg(m, e, 0), arg(m, e, 1), arg(m, e, 2), arg(m, e, 3),
                 arg(m, e, 4), arg(m, e, 5), arg(m, e, 6), (int32_t)value_of(m, e->args[7])};
    vta_error error = {VTA_OK, ""};
    if (vta_uop_push(&u, &error) != VTA_OK)
        fail_msg("%s", error.text);
}

static void call(machine *m, tir_expr_ref e)
{
    const char *name = e->u.name;
    assert_int_equal(e->kind, TIR_EXTERN);
    if (strcmp(name, "VTALoadBuffer2D") == 0)
        call_load(m, e);
    else if (strcmp(name, "VTAStoreBuffer2D") == 0)
        call_store(m, e);
    else if (strcmp(name, "VTAUopLoopBegin") == 0)
        assert_int_equal(vta_uop_loop_begin(arg(m, e, 0), arg(m, e, 1), arg(m, e, 2), arg(m, e, 3), NULL), VTA_OK);
    else if (strcmp(name, "VTAUopLoopEnd") == 0)
        assert_int_equal(vta_uop_loop_end(NULL), VTA_OK);
    else if (strcmp(name, "tir.vta.uop_push") == 0)
        push_uop(m, e);
    else if (strcmp(name, "tir.vta.coproc_dep_push") == 0)
        good(&m->b, vta_dep_push(m->b.c, (enum vta_stage)arg(m, e, 0), (enum vta_stage)arg(m, e, 1)));
    else if (strcmp(name, "tir.vta.coproc_dep_pop") == 0)
        good(&m->b, vta_dep_pop(m->b.c, (enum vta_stage)arg(m, e, 0), (enum vta_stage)arg(m, e, 1)));
    else if (strcmp(name, "tir.vta.coproc_sync") == 0)
        good(&m->b, (m->syncs++, vta_synchronize(m->b.c, UINT32_MAX)));
    else if (strcmp(name, "tir.vta.coproc_read_barrier") == 0)
        good(&m->b, vta_read_barrier(m->b.c, buffer_of(m, e->args[0]), arg(m, e, 1), arg(m, e, 2), arg(m, e, 3)));
    else if (strcmp(name, "tir.vta.coproc_write_barrier") == 0)
        good(&m->b, vta_write_barrier(m->b.c, buffer_of(m, e->args[0]), arg(m, e, 1), arg(m, e, 2), arg(m, e, 3)));
    else
        fail_msg("a call of %s", name);
}

static void execute(machine *m, tir_stmt *s);

static int record(void *closure)
{
    machine *m = (machine *)closure;
    execute(m, m->kernel);
    return 0;
}

static void attribute(machine *m, tir_stmt *s)
{
    if (strcmp(s->key, "buffer_data") == 0) {
        assert_string_equal(s->value->u.name, "VTABufferCPUPtr");
        m->data = (uint8_t *)vta_buffer_cpu_ptr(m->b.c, buffer_of(m, s->value->args[1]));
    }
    if (strcmp(s->key, "coproc_uop_scope") != 0) {
        execute(m, s->body);
        return;
    }
    vta_mode mode = strcmp(s->value->u.name, "VTAPushGEMMOp") == 0 ? VTA_MODE_GEMM : VTA_MODE_ALU;
    m->kernel = s->body;
    good(&m->b, vta_push(m->b.c, mode, NULL, record, m, sizeof *m));
}

static void loop(machine *m, tir_stmt *s)
{
    int64_t min = value_of(m, s->min), extent = value_of(m, s->extent);
    assert_true(m->n_vars < MOST_VARS);
    uint32_t at = m->n_vars++;
    m->vars[at].var = s->var;
    for (int64_t i = 0; i < extent; i++) {
        m->vars[at].value = min + i;
        execute(m, s->body);
    }
    m->n_vars--;
}

/* A view of the host, or memory of the program's own. */
static void allocate(machine *m, tir_stmt *s)
{
    bool view = s->buffer->scope == SCOPE_CUSTOM;
    vta_buffer made = 0;
    if (!view)
        good(&m->b, vta_buffer_alloc(m->b.c, lowered_bytes(s->buffer), &made));
    (void)add_place(m, s->buffer, made, view ? m->data : NULL);
    execute(m, s->body);
    m->n_places--;
    if (!view)
        good(&m->b, vta_buffer_free(m->b.c, made));
}

static void execute(machine *m, tir_stmt *s)
{
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
    case TIR_STORE:
        dtype_store_i64(s->buffer->dt, element(m, s->buffer, s->n_indices, s->indices), value_of(m, s->value));
        break;
    case TIR_ALLOCATE: allocate(m, s); break;
    case TIR_LET:
    case TIR_ASSERT: fail_msg("a statement that no pass makes here"); break;
    }
}

/* --- whole functions --- */

size_t lowered_bytes(const tir_buffer *b)
{
    return (size_t)tir_buffer_count(b) * dtype_bytes(b->dt);
}

void **lowered_params(compiler *c, const tir_func *f)
{
    void **params = arena_array(&c->mem, void *, f->n_params);
    uint32_t state = 12345;
    for (uint32_t i = 0; i < f->n_params; i++) {
        uint8_t *at = arena_alloc(&c->mem, lowered_bytes(f->params[i]) + 1, 64);
        memset(at, 0x55, lowered_bytes(f->params[i]));
        for (size_t k = 0; i < f->n_inputs && k < lowered_bytes(f->params[i]); k++) {
            state = state * 1664525u + 1013904223u;
            at[k] = (uint8_t)(state >> 24);
        }
        params[i] = at;
    }
    return params;
}

static void open_board(machine *m, bool cycles)
{
    vta_error e = {VTA_OK, ""};
    vta_sim_options so = {.seed = 7};
    const vta_config *config = vta_text_config(m->c);
    vta_status s;
    if (cycles) {
        s = vta_cycle_device(config, &so, NULL, &m->b.device, &e);
    } else {
        s = vta_sim_create(config, &so, &m->b.sim, &e);
        m->b.device = s == VTA_OK ? vta_sim_device(m->b.sim) : m->b.device;
    }
    if (s != VTA_OK)
        fail_msg("%s", e.text);
    size_t bytes = vta_context_bytes(&m->b.device, NULL);
    m->b.memory = aligned_alloc(64, bytes);
    assert_int_equal(vta_context_init(m->b.memory, bytes, &m->b.device, NULL, &m->b.c, &e), VTA_OK);
}

void lowered_run(compiler *c, const tir_func *f, void *const *params, lowered_report *report)
{
    machine m = {.c = c, .f = f};
    open_board(&m, report != NULL);
    for (uint32_t i = 0; i < f->n_params; i++) {
        vta_buffer made;
        good(&m.b, vta_buffer_alloc(m.b.c, lowered_bytes(f->params[i]), &made));
        good(&m.b, vta_buffer_write(m.b.c, made, 0, params[i], lowered_bytes(f->params[i])));
        (void)add_place(&m, f->params[i], made, NULL);
    }
    execute(&m, f->body);
    assert_true(m.syncs > 0);
    for (uint32_t i = f->n_inputs; i < f->n_params; i++)
        good(&m.b, vta_buffer_read(m.b.c, m.places[i].handle, 0, params[i], lowered_bytes(f->params[i])));
    if (report) {
        report->cycles = vta_cycle_last(&m.b.device)->cycles;
        m.b.device.driver->counters(m.b.device.self, report->counters, sizeof report->counters);
    }
    board_close(&m.b);
}

bool lowered_make(te_graph *g, const char *schedule, const char *passes, tir_func **out)
{
    te_sched *s = NULL;
    compiler *c = g->c;
    tir_module m = {.c = c};
    if (!te_sched_parse(g, "schedule", schedule, strlen(schedule), &s) || !te_lower(g, s, "main", out))
        return false;
    vec_push(&c->mem, &m.funcs, *out);
    return tir_run_passes(c, &m, passes, false, NULL);
}
