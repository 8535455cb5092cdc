/* SPDX-License-Identifier: Apache-2.0 */
/* Executables: models that are compiled, saved, loaded, and built for this machine. */
#include "api/objects.h"

#include "driver/format.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

static bool make_locks(lathe_executable *e)
{
    pthread_mutexattr_t kind;
    if (pthread_mutexattr_init(&kind) != 0)
        return false;
    bool ok = pthread_mutexattr_settype(&kind, PTHREAD_MUTEX_ERRORCHECK) == 0 &&
              pthread_mutex_init(&e->lock, &kind) == 0;
    (void)pthread_mutexattr_destroy(&kind);
    if (ok && pthread_mutex_init(&e->ends_lock, NULL) != 0) {
        pthread_mutex_destroy(&e->lock);
        ok = false;
    }
    return ok;
}

static lathe_executable *begin(void)
{
    lathe_executable *e = calloc(1, sizeof *e);
    if (!e)
        return NULL;
    if (!make_locks(e)) {
        free(e);
        return NULL;
    }
    border_init_home(&e->at);
    e->workers = -1;
    return e;
}

int32_t executable_call(lathe_context *x, lathe_executable *e, border_work work, void *args)
{
    if (!e)
        return border_refuse_missing(x, "executable");
    if (pthread_mutex_lock(&e->lock) != 0)
        return border_refuse_busy(x, "executable");
    const int32_t outcome = border_call(x, &e->at, work, args);
    pthread_mutex_unlock(&e->lock);
    return outcome;
}

void lathe_executable_free(lathe_executable *e)
{
    if (!e)
        return;
    run_unload(&e->model); /* of one that is built in part, too */
    border_free_home(&e->at);
    pthread_mutex_destroy(&e->lock);
    pthread_mutex_destroy(&e->ends_lock);
    free(e);
}

static int32_t end(int32_t outcome, lathe_executable *e, lathe_executable **out)
{
    *out = outcome == LATHE_DONE ? e : NULL;
    if (outcome != LATHE_DONE)
        lathe_executable_free(e);
    return outcome;
}

/* --- what it takes and gives --- */

static bool take_report(lathe_executable *e, compiler *c, const run_report *r)
{
    e->report = r;
    e->inputs = infos_of_run(c, r->inputs, r->n_inputs);
    e->outputs = infos_of_run(c, r->outputs, r->n_outputs);
    return true;
}

static bool parse_report(lathe_executable *e, compiler *c)
{
    run_report *r = arena_new(&c->mem, run_report);
    for (uint32_t i = 0; i < e->made.files.len; i++) {
        const artifact_file *f = &e->made.files.data[i];
        if (strcmp(f->path, "report.json") == 0)
            return run_parse_report(c, f->path, f->data, f->len, r) && take_report(e, c, r);
    }
    return diag_error(&c->diags, DIAG_INTERNAL, src_loc_none(), "the package has no report");
}

/* The file of a module that was compiled here, in a folder that is due to be removed, even after an error. */
static bool write_module(lathe_executable *e, compiler *c, const char **out_dir, const char **out_file)
{
    const artifact_file *f = &e->made.files.data[0];
    *out_dir = process_temp_dir(c);
    if (!*out_dir)
        return false;
    *out_file = path_join(&c->mem, *out_dir, "module.so");
    return compiler_write_file(c, *out_file, f->data, f->len);
}

/* What a module says of itself; nothing of it runs. */
static bool look_into_module(lathe_executable *e, compiler *c)
{
    const run_module_options look = {.workers = 1, .only_look = true};
    const char *dir = NULL, *file = e->place;
    run_model m = {.inputs = NULL};
    bool ok = (e->place || write_module(e, c, &dir, &file)) && run_open_module(c, file, &look, &m);
    if (ok && m.report)
        ok = take_report(e, c, m.report);
    if (m.module)
        run_close(&m);
    if (dir)
        compiler_remove_temp_dir(c, dir);
    return ok;
}

/* --- compile --- */

typedef struct compile_args {
    const lathe_model *model;
    const lathe_settings *settings;
    lathe_executable *made;
} compile_args;

static void keep_artifact(arena *a, const artifact *from, artifact *to)
{
    to->is_file = from->is_file;
    to->source_bytes = from->source_bytes;
    for (uint32_t i = 0; i < from->files.len; i++) {
        const artifact_file *f = &from->files.data[i];
        vec_push(a, &to->files,
                 ((artifact_file){arena_strdup(a, f->path), arena_copy(a, f->data, f->len, 1), f->len, f->is_binary}));
    }
    for (uint32_t i = 0; i < from->made.len; i++)
        vec_push(a, &to->made, arena_strdup(a, from->made.data[i]));
}

/* The graph, the program and the plan are gone when this is over; the files stay. */
static bool compile(lathe_context *x, home *h, void *args)
{
    const compile_args *a = args;
    lathe_executable *e = a->made;
    compiler *brief = border_begin_brief(x, h);
    compile_options o;
    compile_result r;
    ask q;
    long workers;
    model_give(brief, a->model);
    if (!settings_ask(brief, a->settings, VERB_COMPILE, &q) || !ask_load_ops(&q, brief) ||
        !ask_compile_options(&q, true, &o) || !ask_workers(&q, &workers))
        return false;
    o.proof = true;
    e->is_module = compile_makes(&o, BACKEND_MODULE);
    if (!e->is_module && !compile_makes(&o, BACKEND_C))
        return ask_usage_error(&q, "use c or module", "emit: %s makes nothing that can be run",
                               compile_emit_name(&o));
    if (o.n_signatures > 1)
        return ask_usage_error(&q, "make an executable of each", "signature: an executable has one");
    if (o.device)
        return ask_usage_error(&q, "--offload vta gives it the parts that it can run",
                               "target: vta is for computations");
    if (!pipeline_compile(brief, a->model->path, &o, &r))
        return false;
    keep_artifact(&h->c.mem, &r.artifact, &e->made);
    border_end_brief(x, h);
    e->options.workers = workers < 0 ? 0 : workers == 0 ? 1 : (uint32_t)workers;
    return e->is_module ? look_into_module(e, &h->c) : parse_report(e, &h->c);
}

int32_t lathe_compile(lathe_context *x, const lathe_model *model, const lathe_settings *settings,
                      lathe_executable **out)
{
    *out = NULL;
    if (!model)
        return border_refuse_missing(x, "model");
    compile_args a = {model, settings, begin()};
    return a.made ? end(border_call(x, &a.made->at, compile, &a), a.made, out) : LATHE_BAD_ENVIRONMENT;
}

/* --- save and load --- */

typedef struct place_args {
    lathe_executable *executable;
    const lathe_settings *settings;
    const char *path;
} place_args;

static bool save(lathe_context *x, home *h, void *args)
{
    const place_args *a = args;
    const lathe_executable *e = a->executable;
    span bytes;
    (void)x;
    if (e->place && !e->is_module) {
        diag_error(&h->c.diags, DIAG_USAGE, src_loc_none(), "a package that was loaded from '%s' cannot be saved again",
                   e->place);
        diag_hint(&h->c.diags, "copy the folder");
        return false;
    }
    if (e->place)
        return compiler_read_file(&h->c, e->place, &bytes) &&
               compiler_write_file(&h->c, a->path, bytes.data, bytes.len);
    if (e->is_module)
        return compiler_write_file(&h->c, a->path, e->made.files.data[0].data, e->made.files.data[0].len);
    return artifact_check_place(&h->c, a->path, "") && artifact_write(&h->c, &e->made, a->path, true);
}

int32_t lathe_save(lathe_context *x, lathe_executable *executable, const char *path)
{
    place_args a = {executable, NULL, path};
    return path ? executable_call(x, executable, save, &a) : border_refuse_missing(x, "path");
}

static bool load(lathe_context *x, home *h, void *args)
{
    const place_args *a = args;
    compiler *c = &h->c;
    lathe_executable *e = a->executable;
    long workers;
    bool object;
    ask q;
    (void)x;
    if (!settings_ask(c, a->settings, VERB_RUN, &q) || !ask_workers(&q, &workers))
        return false;
    const ask_option early = ask_find_early(&q, 0);
    char *real = arena_alloc(&c->mem, PATH_MAX, 1); /* whoever runs it may be elsewhere by then */
    e->place = realpath(a->path, real) ? real : arena_strdup(&c->mem, a->path);
    e->workers = workers;
    e->options = (run_module_options){.workers = workers < 0 ? 0 : workers == 0 ? 1 : (uint32_t)workers,
                                      .no_jit = ask_has(&q, OPT_NO_JIT),
                                      .trace = ask_has(&q, OPT_TRACE),
                                      .keep_sources = ask_get(&q, OPT_KEEP_SOURCES, NULL),
                                      .meta = ask_get(&q, OPT_META, NULL)};
    if (early != OPT_COUNT)
        return ask_usage_error(&q, "use it when you compile",
                               "'%s' is an option for compiling, and '%s' is already compiled",
                               ask_option_name(early), a->path);
    if (file_is_dir(a->path)) {
        run_report *r = arena_new(&c->mem, run_report);
        return format_folder(c, "run", a->path) && run_read_report(c, e->place, r) && take_report(e, c, r);
    }
    if (!format_is_object(c, a->path, &object))
        return false;
    e->is_module = object;
    if (object)
        return look_into_module(e, c);
    diag_error(&c->diags, file_exists(a->path) ? DIAG_FORMAT : DIAG_IO, src_loc_none(), "'%s' is %s", a->path,
               file_exists(a->path) ? "neither a package nor a module" : "not there");
    diag_hint(&c->diags, "compile the model first");
    return false;
}

int32_t lathe_load(lathe_context *x, const char *path, const lathe_settings *settings, lathe_executable **out)
{
    *out = NULL;
    if (!path)
        return border_refuse_missing(x, "path");
    place_args a = {begin(), settings, path};
    return a.executable ? end(border_call(x, &a.executable->at, load, &a), a.executable, out) : LATHE_BAD_ENVIRONMENT;
}

/* --- build --- */

bool executable_open_package(lathe_executable *e, compiler *c, const char *scratch, run_model *out)
{
    const char *dir = e->place;
    if (strcmp(e->report->port, port_default()->name) != 0) {
        diag_error(&c->diags, DIAG_USAGE, src_loc_none(), "this package is for another system (port %s)",
                   e->report->port);
        diag_hint(&c->diags, "save it, and build it for that system with its Makefile");
        return false;
    }
    if (!dir) {
        dir = path_join(&c->mem, scratch, "files");
        if (!artifact_write(c, &e->made, dir, false))
            return false;
    }
    return run_open_package(c, dir, NULL, out);
}

static bool build_package(lathe_executable *e, compiler *c)
{
    const char *scratch = process_temp_dir(c);
    if (!scratch)
        return false;
    const bool ok =
        executable_open_package(e, c, scratch, &e->model) && run_build(c, scratch, e->workers, &e->model);
    compiler_remove_temp_dir(c, scratch);
    return ok;
}

static bool build_module(lathe_executable *e, compiler *c)
{
    const char *dir = NULL, *file = e->place;
    bool ok = (e->place || write_module(e, c, &dir, &file)) && run_open_module(c, file, &e->options, &e->model);
    if (dir)
        compiler_remove_temp_dir(c, dir);
    if (ok && !e->report) { /* now that it is known */
        const tensor_infos in = infos_of_run(c, e->model.inputs, e->model.n_inputs);
        const tensor_infos results = infos_of_run(c, e->model.outputs, e->model.n_outputs);
        pthread_mutex_lock(&e->ends_lock);
        e->inputs = in;
        e->outputs = results;
        pthread_mutex_unlock(&e->ends_lock);
    }
    return ok;
}

bool executable_build(lathe_executable *e, compiler *c)
{
    if (e->is_built)
        return true;
    e->model = (run_model){.inputs = NULL};
    e->is_built = e->is_module ? build_module(e, c) : build_package(e, c);
    e->own = arena_array(&c->mem, uint8_t *, e->model.n_inputs + 1u);
    for (uint32_t i = 0; i < e->model.n_inputs; i++)
        e->own[i] = e->model.inputs[i].data;
    e->at.settled = e->is_built;
    if (!e->is_built) {
        run_unload(&e->model);
        e->model = (run_model){.inputs = NULL};
    }
    return e->is_built;
}

static bool build(lathe_context *x, home *h, void *args)
{
    (void)x;
    return executable_build(args, &h->c);
}

int32_t lathe_build(lathe_context *x, lathe_executable *executable)
{
    return executable_call(x, executable, build, executable);
}

/* --- what it is --- */

const char *lathe_executable_kind(const lathe_executable *e)
{
    return !e ? "" : e->is_module ? "module" : "package";
}

/* Another thread may be in the first run. */
static const lathe_tensor_info *end_at(const lathe_executable *e, const tensor_infos *ends, uint32_t index)
{
    pthread_mutex_t *lock = (pthread_mutex_t *)(uintptr_t)&e->ends_lock;
    pthread_mutex_lock(lock);
    const tensor_infos now = *ends;
    pthread_mutex_unlock(lock);
    return infos_at(&now, index);
}

const lathe_tensor_info *lathe_executable_input(const lathe_executable *e, uint32_t index)
{
    return e ? end_at(e, &e->inputs, index) : NULL;
}

const lathe_tensor_info *lathe_executable_output(const lathe_executable *e, uint32_t index)
{
    return e ? end_at(e, &e->outputs, index) : NULL;
}

const char *lathe_report(const lathe_executable *e)
{
    return e && e->report ? e->report->text : "";
}
