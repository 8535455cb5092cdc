/* SPDX-License-Identifier: Apache-2.0 */
/* A compiled model that can be called: a package built by the system's C compiler and loaded, or the loops interpreted.
 */
#include "driver/run.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "abi/package.h"
#include "base/file.h"
#include "driver/board.h"
#include "driver/build.h"
#include "driver/emulate.h"
#include "driver/pictures.h"

/* --- tensors
 * ---------------------------------------------------------------------------------------------------------- */

static bool room(compiler *c, run_tensor *t)
{
    t->data = arena_try_alloc(&c->mem, t->most_bytes, 64);
    return t->data || diag_error(&c->diags, DIAG_ENVIRONMENT, src_loc_none(), "no memory for the %zu bytes of '%s'",
                                 t->most_bytes, t->name);
}

/* Of a module, whose inputs may have no bound. */
static bool room_for_run(compiler *c, run_tensor *t)
{
    if (t->data && t->bytes <= t->most_bytes)
        return true;
    t->most_bytes = t->bytes;
    return room(c, t);
}

static bool all_room(compiler *c, run_model *m)
{
    m->in = arena_array(&c->mem, void *, m->n_inputs + m->n_extents + 1u);
    m->out = arena_array(&c->mem, void *, m->n_outputs * (TYPE_MAX_RANK + 1u) + 1u);
    for (uint32_t i = 0; i < m->n_inputs; i++) {
        if (!room(c, &m->inputs[i]))
            return false;
        m->in[i] = m->inputs[i].data;
    }
    for (uint32_t i = 0; i < m->n_outputs; i++) {
        if (!room(c, &m->outputs[i]))
            return false;
        m->out[i] = m->outputs[i].data;
    }
    return true;
}

run_tensor *run_find_input(const run_model *m, const char *name)
{
    for (uint32_t i = 0; i < m->n_inputs; i++)
        if (strcmp(m->inputs[i].name, name) == 0)
            return &m->inputs[i];
    return NULL;
}

/* --- extents
 * ----------------------------------------------------------------------------------------------------------- */

static run_extent *find_extent(run_model *m, const char *name)
{
    for (uint32_t i = 0; name && i < m->n_extents; i++)
        if (strcmp(m->extents[i].name, name) == 0)
            return &m->extents[i];
    return NULL;
}

bool run_bind(compiler *c, run_model *m, const run_tensor *input, uint32_t rank, const int64_t *dims)
{
    diags *d = &c->diags;
    if (rank != input->rank)
        return diag_error(d, DIAG_DATA, src_loc_none(), "input '%s' has %u dimensions, not %u", input->name,
                          input->rank, rank);
    for (uint32_t i = 0; i < rank; i++) {
        run_extent *x = find_extent(m, dim_symbol_name(input->open[i]));
        if (!x)
            continue;
        if (dims[i] < 0 || (x->most >= 0 && dims[i] > x->most))
            return diag_error(d, DIAG_DATA, src_loc_none(),
                              "input '%s' has extent %lld at axis %u, but %s is at most %lld", input->name,
                              (long long)dims[i], i, x->name, (long long)x->most);
        if (x->value >= 0 && x->value != dims[i])
            return diag_error(d, DIAG_DATA, src_loc_none(), "input '%s' has extent %lld at axis %u, but %s is %lld in "
                                                            "another input",
                              input->name, (long long)dims[i], i, x->name, (long long)x->value);
        x->value = dims[i];
    }
    return true;
}

typedef struct lookup {
    compiler *c;
    run_model *m;
} lookup;

static dim extent_of(void *ctx, const char *symbol)
{
    const lookup *l = ctx;
    const run_extent *x = find_extent(l->m, symbol);
    return x ? dim_const(l->c, x->value) : NULL;
}

void run_set_dims(run_tensor *t, const int64_t *dims)
{
    t->count = !t->is_shape;
    for (uint32_t i = 0; i < t->rank; i++) {
        t->dims[i] = dims[i];
        t->count *= t->is_shape ? 0 : dims[i];
    }
    t->bytes = (size_t)t->count * dtype_bytes(t->dt);
}

/* Extents that nothing bounds are the user's, others those of a module's function: their product may be no number. */
static bool tensor_fits(const run_tensor *t, const int64_t *dims)
{
    int64_t count, bytes;
    return tensor_count(t->rank, dims, &count) && i64_mul(count, (int64_t)dtype_bytes(t->dt), &bytes);
}

bool run_size_inputs(compiler *c, run_model *m)
{
    lookup l = {c, m};
    for (uint32_t i = 0; i < m->n_extents; i++)
        if (m->extents[i].value < 0)
            m->extents[i].value = m->extents[i].most < 0 ? 1 : m->extents[i].most;
    for (uint32_t i = 0; i < m->n_inputs; i++) {
        run_tensor *t = &m->inputs[i];
        int64_t dims[TYPE_MAX_RANK];
        for (uint32_t k = 0; t->open && k < t->rank; k++) {
            if (!dim_is_const(dim_substitute(c, t->open[k], extent_of, &l), &dims[k]) || dims[k] < 0 ||
                (t->most[k] >= 0 && dims[k] > t->most[k]))
                return diag_error(&c->diags, DIAG_DATA, src_loc_none(),
                                  "input '%s': axis %u is larger than its limit, %lld",
                                  t->name, k, (long long)t->most[k]);
        }
        if (!t->open)
            memcpy(dims, t->dims, sizeof dims);
        if (!t->is_shape && !tensor_fits(t, dims))
            return diag_error(&c->diags, DIAG_DATA, src_loc_none(), "input '%s' is larger than memory can be", t->name);
        run_set_dims(t, dims);
        if (m->module && !room_for_run(c, t))
            return false;
    }
    return true;
}

/* --- packages
 * --------------------------------------------------------------------------------------------------------- */

#define LIBRARY "package.so"

/* A library that is loaded here, or a program for an emulator. */
static void add_kind(compiler *c, process_words *a, const run_model *m, const char *module)
{
    if (!m->emulator) {
        process_add_words(c, a, "-fPIC -shared -o " LIBRARY);
        return;
    }
    vec_push(&c->mem, a, arena_printf(&c->mem, "-DCALLED=tvmgen_%s_run", module));
    if (m->constants)
        vec_push(&c->mem, a, arena_printf(&c->mem, "-DCONSTANTS=tvmgen_%s_set_constants", module));
    process_add_words(c, a, EMULATE_CALLER ".c -o " EMULATE_CALLER);
}

/* Whether a target's flags name a processor that this machine's own compiler does not have. */
static bool is_foreign(const target *t)
{
#if defined(__riscv)
    if (strstr(t->cflags, "-march=rv64"))
        return false;
#endif
    return target_cross_cc(t) && (strstr(t->cflags, "-march=") || strstr(t->cflags, "-mcpu="));
}

/* Without $CC packages are compiled for this machine. */
static bool check_machine(compiler *c, const run_model *m)
{
    const target *t = target_find(m->report->target);
    if (!t || !is_foreign(t))
        return true;
    const board *b = board_of_target(t->name);
    diag_error(&c->diags, DIAG_ENVIRONMENT, src_loc_none(),
               "the target %s is not this machine, and the variable CC names no compiler for it", t->name);
    diag_hint(&c->diags, "%sset CC='%s%s', and call lathe run or lathe verify with --emulator COMMAND",
              b ? arena_printf(&c->mem, "lathe verify --target %s runs it in an emulator, and counts instructions; for "
                               "another emulator, ", b->name) : "",
              target_cross_cc(t), t->small ? "" : " -static");
    return false;
}

/* gcc before 14 takes the flags for vectors of RISC-V, and makes a loop over each: that is right, and slow. `cc`: the
 * words of the command. The source is one that compilers with vectors refuse. */
static bool tell_of_vectors(compiler *c, const target *t, const process_words *cc, const char *scratch)
{
    static const char source[] = "#if !defined(__riscv_vector) || defined(__riscv_v_intrinsic)\n#error\n#endif\n";
    process_words a = {0};
    bool has_none = false;
    if (!t || t->vlen == 0)
        return true;
    for (uint32_t i = 0; i < cc->len; i++)
        vec_push(&c->mem, &a, cc->data[i]);
    process_add_words(c, &a, t->cflags);
    process_add_words(c, &a, "-fsyntax-only vectors.c");
    vec_push(&c->mem, &a, NULL);
    if (!compiler_write_file(c, path_join(&c->mem, scratch, "vectors.c"), source, sizeof source - 1) ||
        !process_try(c, &(process_task){.argv = a.data, .dir = scratch, .what = "asking the compiler for vectors"},
                     &has_none))
        return false;
    if (has_none) {
        diag_warning(&c->diags, DIAG_ENVIRONMENT, src_loc_none(),
                     "%s makes no vector code for RISC-V: the numbers are right, but the code is slow", a.data[0]);
        diag_hint(&c->diags, "gcc makes it from version 14 on; or set CC='%s -static'", target_cross_cc(t));
    }
    return true;
}

static bool build(compiler *c, const run_model *m, const char *scratch, int64_t workers)
{
    const char *dir = m->dir, *module = m->report->module;
    static const char *const sources[] = {"model_data.c", "ops.c", "tvmrt.c", "tvmrt_port_posix.c"};
    const char *cc = getenv("CC");
    process_words a = {0};
    if (!(cc && *cc) && !check_machine(c, m))
        return false;
    if (!build_link_package(c, dir, scratch))
        return false;
    process_add_words(c, &a, cc && *cc ? cc : "cc");
    for (uint32_t i = 0; i < a.len; i++)
        a.data[i] = build_word_from_anywhere(c, a.data[i]);
    if (!tell_of_vectors(c, target_find(m->report->target), &a, scratch))
        return false;
    build_add_flags(c, m, workers, &a);
    for (int i = 0; i < 2; i++)
        vec_push(&c->mem, &a, arena_printf(&c->mem, "package/src/%s_lib%d.c", module, i));
    for (size_t i = 0; i < sizeof sources / sizeof *sources; i++)
        vec_push(&c->mem, &a, path_join(&c->mem, "package/src", sources[i]));
    if (!build_add_sources(c, m, scratch, &a) || !pictures_add_decoders(c, m, scratch, &a))
        return false;
    add_kind(c, &a, m, module);
    if (m->profile_flags)
        process_add_words(c, &a, m->profile_flags);
    for (uint32_t i = 0; i < m->report->n_sources; i++)
        process_add_words(c, &a, m->report->sources[i].ldflags);
    process_add_words(c, &a, "-lm -lpthread");
    vec_push(&c->mem, &a, NULL);
    if (!compiler_progress(c, arena_printf(&c->mem, "building the package with %s", a.data[0]), 0, 0))
        return false;
    const char *kept = strncmp(dir, scratch, strlen(scratch)) == 0 ? "DIR" : dir;
    const char *whole_log = arena_printf(&c->mem, "the whole log: %smake -C %s lib%s%s%s",
                                         kept != dir ? "run this again with --keep DIR, then " : "", kept,
                                         cc && *cc ? " CC='" : "", cc && *cc ? cc : "", cc && *cc ? "'" : "");
    return process_run(c, &(process_task){.argv = a.data,
                                          .dir = scratch,
                                          .what = "building the package",
                                          .hint = "install a C compiler, or name one in the environment variable CC",
                                          .whole_log = whole_log,
                                          .name = "package",
                                          .path = dir});
}

static bool load(compiler *c, const char *library, const char *module, run_model *m)
{
    m->library = dlopen(library, RTLD_NOW | RTLD_LOCAL);
    if (!m->library) {
        diag_error(&c->diags, DIAG_ENVIRONMENT, src_loc_none(), "the package cannot be loaded: %s", dlerror());
        if (strchr(library, '$'))
            diag_hint(&c->diags, "choose another TMPDIR: the loader of libraries replaces $ORIGIN, $LIB and $PLATFORM "
                                 "in a path");
        return false;
    }
    void *symbol = dlsym(m->library, arena_printf(&c->mem, "tvmgen_%s_run", module));
    memcpy(&m->call, &symbol, sizeof symbol); /* C has no cast from object to function pointers */
    void *reset = dlsym(m->library, arena_printf(&c->mem, "tvmgen_%s_reset", module));
    memcpy(&m->reset, &reset, sizeof reset);
    void *log = dlsym(m->library, "tvmrt_log_pop");
    memcpy(&m->next_log, &log, sizeof log);
    void *text = dlsym(m->library, "tvmrt_status_text");
    memcpy(&m->status_text, &text, sizeof text);
    return symbol ||
           diag_error(&c->diags, DIAG_FORMAT, src_loc_none(), "the package has no function tvmgen_%s_run", module);
}

/* A package that does not hold its constants gets them from its file, which stays in memory. */
static bool hand_over(compiler *c, const run_model *m, const char *dir, const char *module)
{
    const char *file = arena_printf(&c->mem, "%s/src/%s_constants.bin", dir, module);
    int32_t (*set)(const void *, size_t) = NULL;
    span bytes;
    void *symbol = dlsym(m->library, arena_printf(&c->mem, "tvmgen_%s_set_constants", module));
    memcpy(&set, &symbol, sizeof symbol);
    if (!symbol)
        return true;
    if (!compiler_read_file(c, file, &bytes))
        return false;
    return set(bytes.data, bytes.len) == 0 ||
           diag_error(&c->diags, DIAG_DATA, src_loc_none(), "'%s' does not hold the constants of this package", file);
}

void run_take_report(const run_report *r, run_model *out)
{
    out->inputs = r->inputs;
    out->n_inputs = r->n_inputs;
    out->outputs = r->outputs;
    out->n_outputs = r->n_outputs;
    out->lists = r->lists;
    out->n_lists = r->n_lists;
    out->extents = r->extents;
    out->n_extents = r->n_extents;
}

static void mark_text(run_tensor *list, uint32_t n, const char *name)
{
    for (uint32_t i = 0; i < n; i++)
        list[i].is_text |= strcmp(list[i].name, name) == 0;
}

void run_mark_texts(run_model *m, const graph_module *g)
{
    for (uint32_t i = 0; i < g->texts.len; i++) {
        const model_text *t = &g->texts.data[i];
        if (t->is_input)
            mark_text(m->inputs, m->n_inputs, t->name);
        else
            mark_text(m->outputs, m->n_outputs, t->name);
    }
}

/* A package runs where its port is: here, or on that board. */
static bool check_port(compiler *c, const run_report *r, const char *dir, const board *b)
{
    if (strcmp(r->port, b ? b->port : port_default()->name) == 0)
        return true;
    diag_error(&c->diags, DIAG_USAGE, src_loc_none(),
               "'%s' is a package for another system (--port %s); it cannot run %s", dir, r->port,
               b ? arena_printf(&c->mem, "on %s", b->name) : "here");
    if (!b && board_of_port(r->port))
        diag_hint(&c->diags, "in an emulator: lathe verify --target with one of %s", board_names(c));
    return false;
}

bool run_open_package(compiler *c, const char *dir, const board *b, run_model *out)
{
    run_report *r = arena_new(&c->mem, run_report);
    *out = (run_model){.dir = dir, .report = r, .board = b, .emulator = b ? b->emulator : NULL};
    if (!run_read_report(c, dir, r) || !check_port(c, r, dir, b))
        return false;
    run_take_report(r, out);
    return all_room(c, out);
}

bool run_build(compiler *c, const char *scratch, int64_t workers, run_model *m)
{
    const run_report *r = m->report;
    if (!r || m->module)
        return true;
    const char *file = arena_printf(&c->mem, "package/src/%s_constants.bin", r->module);
    m->scratch = scratch;
    if (m->emulator && !emulate_write_caller(c, scratch))
        return false;
    if (m->emulator && r->hands_over)
        m->constants = file;
    if (m->board)
        return board_build(c, m, workers);
    return build(c, m, scratch, workers < 0 ? r->workers : workers) &&
           (m->emulator || (load(c, path_join(&c->mem, scratch, LIBRARY), r->module, m) &&
                            hand_over(c, m, m->dir, r->module)));
}

/* --- interpreted
 * ------------------------------------------------------------------------------------------------------ */

static void take_io(run_tensor *t, const char *name, const type *of)
{
    int64_t dims[TYPE_MAX_RANK];
    *t = (run_tensor){.name = name, .dt = of->dt, .rank = (uint32_t)of->shape.rank};
    t->open = shape_is_static(of->shape) ? NULL : of->shape.dims;
    for (uint32_t i = 0; i < t->rank; i++)
        dims[i] = dim_bound(of->shape.dims[i]);
    run_set_dims(t, dims);
    memcpy(t->most, t->dims, sizeof t->most);
    t->most_bytes = t->bytes;
}

bool run_open_interpreter(compiler *c, const prog_module *m, run_model *out)
{
    const prog_func *f = prog_find(m, "main");
    *out = (run_model){.prog = m};
    out->inputs = arena_array(&c->mem, run_tensor, f->n_inputs + 1u);
    out->extents = arena_array(&c->mem, run_extent, f->n_inputs + 1u);
    out->outputs = arena_array(&c->mem, run_tensor, f->results.len + 1u);
    for (uint32_t i = 0; i < f->n_inputs; i++) {
        const prog_value *v = &f->values.data[i];
        if (v->extent)
            out->extents[out->n_extents++] = (run_extent){dim_symbol_name(v->extent), dim_bound(v->extent), -1};
        else
            take_io(&out->inputs[out->n_inputs++], v->name, &v->type);
    }
    for (uint32_t i = 0; i < f->results.len && f->results.data[i].shape_of == PROG_NONE; i++, out->n_outputs++)
        take_io(&out->outputs[i], f->results.data[i].name, &f->values.data[f->results.data[i].value].type);
    out->states = prog_new_states(c, m);
    return out->states && all_room(c, out);
}

/* --- both
 * ------------------------------------------------------------------------------------------------------------- */

/* The shapes that a run wrote behind its outputs; false where one cannot be, which is a kernel's fault. */
static bool size_outputs(compiler *c, run_model *m, const int64_t *shapes)
{
    for (uint32_t i = 0; i < m->n_outputs; i++) {
        run_tensor *t = &m->outputs[i];
        if (!t->open)
            continue;
        for (uint32_t k = 0; k < t->rank; k++)
            if (shapes[k] < 0 || shapes[k] > t->most[k])
                return diag_error(&c->diags, DIAG_INTERNAL, src_loc_none(), "output '%s' has extent %lld at axis %u",
                                  t->name, (long long)shapes[k], k);
        run_set_dims(t, shapes);
        shapes += t->rank;
    }
    return true;
}

static bool interpret(compiler *c, run_model *m)
{
    void **in = arena_array(&c->mem, void *, m->n_inputs + m->n_extents + 1u),
         **out = arena_array(&c->mem, void *, 2u * m->n_outputs + 1u);
    int64_t *shapes = arena_array(&c->mem, int64_t, m->n_outputs * TYPE_MAX_RANK + 1u), *next = shapes;
    uint32_t n = m->n_outputs;
    memcpy(in, m->in, m->n_inputs * sizeof *in);
    memcpy(out, m->out, m->n_outputs * sizeof *out);
    for (uint32_t i = 0; i < m->n_extents; i++)
        in[m->n_inputs + i] = &m->extents[i].value;
    for (uint32_t i = 0; i < m->n_outputs; i++)
        if (m->outputs[i].open) {
            out[n++] = next;
            next += m->outputs[i].rank;
        }
    return prog_interpret_next(c, m->prog, m->states, in, out) && size_outputs(c, m, shapes);
}

/* What its status may mean beside what the text says. */
static const char *hint_of(const run_operator *op, int32_t status)
{
    if (!op || status != PACKAGE_STATUS_SHAPE)
        return NULL;
    if (strstr(op->kind, "read_numbers"))
        return "a string that becomes a number must begin with one, in base 10, which fits into the type";
    return pictures_are_decoded(op) ? PICTURES_HINT : NULL;
}

/* op: which ended it; NULL: none is known. */
static bool failed(compiler *c, const run_operator *op, int32_t status, const char *text)
{
    const char *more = op && op->extents && status == PACKAGE_STATUS_SHAPE
                           ? arena_printf(&c->mem, "; its data must give %s", op->extents)
                           : "";
    (void)prog_failed(c, src_loc_none(), op ? op->kernel : NULL, op ? op->source : "", status, text, more);
    const char *hint = hint_of(op, status);
    if (hint)
        diag_hint(&c->diags, "%s", hint);
    return false;
}

static bool call_emulated(compiler *c, run_model *m)
{
    emulate_answer a;
    if (!emulate_call(c, m, &a))
        return false;
    if (a.status == 0)
        return size_outputs(c, m, (const int64_t *)(const void *)&m->out[m->n_outputs]);
    bool known = a.op >= 0 && (uint32_t)a.op < m->report->n_operators;
    return failed(c, known ? &m->report->operators[a.op] : NULL, a.status, NULL);
}

bool run_call(compiler *c, run_model *m)
{
    if (!run_size_inputs(c, m))
        return false;
    if (m->prog)
        return interpret(c, m);
    if (m->module)
        return m->call_module(c, m);
    if (m->device)
        return m->call_device(c, m);
    if (m->emulator)
        return call_emulated(c, m);
    const run_operator *op = NULL;
    struct package_log_record r;
    while (m->next_log && m->next_log(&r)) { /* what an earlier run left would speak for this one */
    }
    if (m->n_extents > 0 && sizeof(void *) != sizeof(int64_t))
        return diag_error(&c->diags, DIAG_UNSUPPORTED, src_loc_none(), "open extents need a 64-bit machine here");
    for (uint32_t i = 0; i < m->n_extents; i++) {
        const int64_t stated = run_extent_stated(&m->extents[i]);
        memcpy(&m->in[m->n_inputs + i], &stated, sizeof stated);
    }
    int32_t status = m->call(m->in, m->out);
    if (status == 0)
        return size_outputs(c, m, (const int64_t *)(const void *)&m->out[m->n_outputs]);
    while (!op && m->next_log && m->next_log(&r))
        if (r.code == status && r.op_id >= 0 && (uint32_t)r.op_id < m->report->n_operators)
            op = &m->report->operators[r.op_id];
    return failed(c, op, status, m->status_text ? m->status_text(status) : NULL);
}

bool run_reset(compiler *c, run_model *m)
{
    if (m->prog)
        prog_reset_states(m->prog, m->states);
    if (m->module && m->reset_module && !m->reset_module(c, m))
        return false;
    const int32_t status = m->reset ? m->reset() : 0;
    return status == 0 || failed(c, NULL, status, m->status_text ? m->status_text(status) : NULL);
}

/* The library stays mapped: its worker threads live in it. */
void run_close(run_model *m)
{
    if (m->module)
        m->close_module(m);
    m->call = NULL;
}

void run_unload(run_model *m)
{
    int32_t (*shut_down)(void *engine, size_t size) = NULL;
    run_close(m);
    if (!m->library)
        return;
    void *symbol = dlsym(m->library, "tvmrt_engine_shutdown_sized");
    memcpy(&shut_down, &symbol, sizeof symbol);
    /* With threads of the package's own engine in it, it stays; so it does with another's code, which may have some. */
    if (shut_down && shut_down(NULL, 0) == 0 && m->report->n_sources == 0)
        (void)dlclose(m->library);
    m->library = NULL;
}
