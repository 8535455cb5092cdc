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

/* --- tensors
 * ---------------------------------------------------------------------------------------------------------- */

static bool room(compiler *c, run_tensor *t)
{
    t->data = arena_try_alloc(&c->mem, t->bytes, 64);
    return t->data || diag_error(&c->diags, DIAG_ENVIRONMENT, src_loc_none(), "no memory for the %zu bytes of '%s'",
                                 t->bytes, t->name);
}

static bool all_room(compiler *c, run_model *m)
{
    m->in = arena_array(&c->mem, void *, m->n_inputs + 1u);
    m->out = arena_array(&c->mem, void *, m->n_outputs + 1u);
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

/* --- packages
 * --------------------------------------------------------------------------------------------------------- */

typedef struct arguments {
    const char **data;
    uint32_t len, cap;
} arguments;

static void add_words(compiler *c, arguments *a, const char *words)
{
    while (*words) {
        size_t n = strcspn(words, " \t");
        if (n > 0)
            vec_push(&c->mem, a, arena_strndup(&c->mem, words, n));
        words += n + (words[n] != '\0');
    }
}

#define LIBRARY "package.so"

/* The compiler runs in the scratch folder and knows the package by the name `package`: there are characters in the
 * names of folders that one program or another of a tool chain takes for something else. */
static bool link_package(compiler *c, const char *dir, const char *scratch)
{
    const char *name = path_join(&c->mem, scratch, "package");
    if (file_same(file_identify(name), file_identify(dir)))
        return true;
    char *real = realpath(dir, NULL);
    bool ok = real && symlink(real, name) == 0;
    int why = errno;
    free(real);
    return ok || diag_error(&c->diags, DIAG_ENVIRONMENT, src_loc_none(), "'%s' cannot be linked to '%s': %s", name, dir,
                            strerror(why));
}

/* A word of $CC that names a file from here, for a program that runs elsewhere. */
static const char *from_anywhere(compiler *c, const char *word)
{
    char *real = *word != '-' && *word != '/' && strchr(word, '/') ? realpath(word, NULL) : NULL;
    const char *out = real ? arena_strdup(&c->mem, real) : word;
    free(real);
    return out;
}

static bool build(compiler *c, const char *dir, const char *scratch, const char *module, const char *cflags,
                  int64_t workers)
{
    static const char *const sources[] = {"model_data.c", "ops.c", "tvmrt.c", "tvmrt_port_posix.c"};
    const char *cc = getenv("CC");
    arguments a = {0};
    if (!link_package(c, dir, scratch))
        return false;
    add_words(c, &a, cc && *cc ? cc : "cc");
    for (uint32_t i = 0; i < a.len; i++)
        a.data[i] = from_anywhere(c, a.data[i]);
    add_words(c, &a, "-std=c99 -D_POSIX_C_SOURCE=200809L -fPIC -shared -O3 -w");
    add_words(c, &a, cflags);
    vec_push(&c->mem, &a, arena_printf(&c->mem, "-DTVMRT_NUM_WORKERS=%lld", (long long)workers));
    add_words(c, &a, "-Ipackage/src -Ipackage/include -Wa,-Ipackage/src");
    for (int i = 0; i < 2; i++)
        vec_push(&c->mem, &a, arena_printf(&c->mem, "package/src/%s_lib%d.c", module, i));
    for (size_t i = 0; i < sizeof sources / sizeof *sources; i++)
        vec_push(&c->mem, &a, path_join(&c->mem, "package/src", sources[i]));
    add_words(c, &a, "-o " LIBRARY " -lm -lpthread");
    vec_push(&c->mem, &a, NULL);
    compiler_progress(c, arena_printf(&c->mem, "building the package with %s", a.data[0]), 0, 0);
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
            diag_hint(&c->diags, "to the loader, $ORIGIN, $LIB and $PLATFORM in a name stand for other folders: choose "
                                 "another TMPDIR");
        return false;
    }
    void *symbol = dlsym(m->library, arena_printf(&c->mem, "tvmgen_%s_run", module));
    memcpy(&m->call, &symbol, sizeof symbol); /* C has no cast from object to function pointers */
    void *log = dlsym(m->library, "tvmrt_log_pop");
    memcpy(&m->next_log, &log, sizeof log);
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

bool run_open_package(compiler *c, const char *dir, const char *scratch, int64_t workers, run_model *out)
{
    run_report r;
    const char *library = path_join(&c->mem, scratch, LIBRARY);
    *out = (run_model){0};
    if (!run_read_report(c, dir, &r))
        return false;
    if (strcmp(r.port, "posix") != 0)
        return diag_error(&c->diags, DIAG_USAGE, src_loc_none(),
                          "'%s' is a package for another system (--port); it cannot run here", dir);
    out->inputs = r.inputs;
    out->n_inputs = r.n_inputs;
    out->outputs = r.outputs;
    out->n_outputs = r.n_outputs;
    out->operators = r.operators;
    out->n_operators = r.n_operators;
    const char *contract = strstr(r.cflags, "-ffp-contract") ? "" : " -ffp-contract=off";
    return build(c, dir, scratch, r.module, arena_printf(&c->mem, "%s%s", r.cflags, contract),
                 workers < 0 ? r.workers : workers) &&
           all_room(c, out) && load(c, library, r.module, out) && hand_over(c, out, dir, r.module);
}

/* --- interpreted
 * ------------------------------------------------------------------------------------------------------ */

static void take_io(run_tensor *t, const char *name, const type *of)
{
    *t = (run_tensor){.name = name, .dt = of->dt, .rank = (uint32_t)of->shape.rank, .count = shape_count(of->shape)};
    shape_get(of->shape, t->dims);
    t->bytes = (size_t)type_bytes(of);
}

bool run_open_interpreter(compiler *c, const prog_module *m, run_model *out)
{
    const prog_func *f = prog_find(m, "main");
    *out = (run_model){.n_inputs = f->n_inputs, .n_outputs = f->results.len, .prog = m};
    out->inputs = arena_array(&c->mem, run_tensor, f->n_inputs + 1u);
    out->outputs = arena_array(&c->mem, run_tensor, f->results.len + 1u);
    for (uint32_t i = 0; i < f->n_inputs; i++)
        take_io(&out->inputs[i], f->values.data[i].name, &f->values.data[i].type);
    for (uint32_t i = 0; i < f->results.len; i++)
        take_io(&out->outputs[i], f->results.data[i].name, &f->values.data[f->results.data[i].value].type);
    return all_room(c, out);
}

/* --- both
 * ------------------------------------------------------------------------------------------------------------- */

bool run_call(compiler *c, run_model *m)
{
    if (!m->call)
        return prog_interpret(c, m->prog, m->in, m->out);
    const run_operator *op = NULL;
    struct package_log_record r;
    while (m->next_log && m->next_log(&r)) { /* what an earlier run left would speak for this one */
    }
    int32_t status = m->call(m->in, m->out);
    if (status == 0)
        return true;
    while (!op && m->next_log && m->next_log(&r))
        if (r.code == status && r.op_id >= 0 && (uint32_t)r.op_id < m->n_operators)
            op = &m->operators[r.op_id];
    return prog_failed(c, src_loc_none(), op ? op->kernel : NULL, op ? op->source : "", status);
}

/* The library stays mapped: its worker threads live in it. */
void run_close(run_model *m)
{
    m->call = NULL;
}
