/* SPDX-License-Identifier: Apache-2.0 */
/* A compiled model that can be called: a package built by the system's C compiler and loaded, or the loops interpreted.
 */
#include "driver/run.h"

#include <dlfcn.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

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

/* NumPy's name or ours. */
static bool parse_dtype(const char *name, dtype *out)
{
    static const struct {
        const char *name;
        dtype dt;
    } names[] = {
        {"float16", DT_F16}, {"bfloat16", DT_BF16}, {"float32", DT_F32}, {"float64", DT_F64}, {"int8", DT_I8},
        {"int16", DT_I16},   {"int32", DT_I32},     {"int64", DT_I64},   {"uint8", DT_U8},    {"uint16", DT_U16},
        {"uint32", DT_U32},  {"uint64", DT_U64},    {"bool", DT_BOOL},
    };
    for (size_t i = 0; name && i < sizeof names / sizeof *names; i++)
        if (strcmp(names[i].name, name) == 0) {
            *out = names[i].dt;
            return true;
        }
    return name && dtype_parse(name, out);
}

static bool read_tensor(compiler *c, const json_t *o, run_tensor *t)
{
    const json_t *dims = json_object_get(o, "shape");
    const char *name = json_string_value(json_object_get(o, "name"));
    *t = (run_tensor){.rank = (uint32_t)json_array_size(dims), .count = 1};
    if (!name || t->rank > TYPE_MAX_RANK || !parse_dtype(json_string_value(json_object_get(o, "dtype")), &t->dt))
        return false;
    t->name = arena_strdup(&c->mem, name);
    for (uint32_t i = 0; i < t->rank; i++) {
        t->dims[i] = json_integer_value(json_array_get(dims, i));
        if (t->dims[i] < 0 || !i64_mul(t->count, t->dims[i], &t->count))
            return false;
    }
    t->bytes = (size_t)t->count * dtype_bytes(t->dt);
    return true;
}

static bool read_tensors(compiler *c, const json_t *list, run_tensor **out, uint32_t *n)
{
    *n = (uint32_t)json_array_size(list);
    *out = arena_array(&c->mem, run_tensor, *n + 1u);
    for (uint32_t i = 0; i < *n; i++)
        if (!read_tensor(c, json_array_get(list, i), &(*out)[i]))
            return false;
    return true;
}

static const char *text_field(compiler *c, const json_t *report, const char *key)
{
    const char *s = json_string_value(json_object_get(report, key));
    return s ? arena_strdup(&c->mem, s) : "";
}

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

static bool build(compiler *c, const char *dir, const char *scratch, const char *module, const char *cflags,
                  int64_t workers, const char *library)
{
    static const char *const sources[] = {"model_data.c", "ops.c", "tvmrt.c", "tvmrt_port_posix.c"};
    const char *cc = getenv("CC"), *src = path_join(&c->mem, dir, "src");
    arguments a = {0};
    add_words(c, &a, cc && *cc ? cc : "cc");
    add_words(c, &a, "-std=c99 -D_POSIX_C_SOURCE=200809L -fPIC -shared -O3 -w");
    add_words(c, &a, cflags);
    vec_push(&c->mem, &a, arena_printf(&c->mem, "-DTVMRT_NUM_WORKERS=%lld", (long long)workers));
    vec_push(&c->mem, &a, arena_printf(&c->mem, "-I%s", src));
    vec_push(&c->mem, &a, arena_printf(&c->mem, "-I%s/include", dir));
    vec_push(&c->mem, &a, arena_printf(&c->mem, "-Wa,-I,%s", src));
    for (int i = 0; i < 2; i++)
        vec_push(&c->mem, &a, arena_printf(&c->mem, "%s/%s_lib%d.c", src, module, i));
    for (size_t i = 0; i < sizeof sources / sizeof *sources; i++)
        vec_push(&c->mem, &a, path_join(&c->mem, src, sources[i]));
    vec_push(&c->mem, &a, "-o");
    vec_push(&c->mem, &a, library);
    add_words(c, &a, "-lm -lpthread");
    vec_push(&c->mem, &a, NULL);
    return process_run(c, a.data, scratch, "building the package",
                       "install a C compiler, or name one in the environment variable CC");
}

static bool load(compiler *c, const char *library, const char *module, run_model *m)
{
    m->library = dlopen(library, RTLD_NOW | RTLD_LOCAL);
    if (!m->library)
        return diag_error(&c->diags, DIAG_ENVIRONMENT, src_loc_none(), "the package cannot be loaded: %s", dlerror());
    void *symbol = dlsym(m->library, arena_printf(&c->mem, "tvmgen_%s_run", module));
    memcpy(&m->call, &symbol, sizeof symbol); /* C has no cast from object to function pointers */
    return symbol ||
           diag_error(&c->diags, DIAG_FORMAT, src_loc_none(), "the package has no function tvmgen_%s_run", module);
}

bool run_open_package(compiler *c, const char *dir, const char *scratch, int64_t workers, run_model *out)
{
    json_error_t why;
    const char *path = path_join(&c->mem, dir, "report.json"), *library = path_join(&c->mem, scratch, "package.so");
    json_t *report = json_load_file(path, 0, &why);
    *out = (run_model){0};
    if (!report) {
        diag_error(&c->diags, DIAG_IO, src_loc_none(), "'%s' is no package: report.json: %s", dir, why.text);
        diag_hint(&c->diags, "a package is what 'lathe compile' writes");
        return false;
    }
    const char *module = text_field(c, report, "module_name"), *cflags = text_field(c, report, "target_cflags");
    bool posix = strcmp(text_field(c, report, "port"), "posix") == 0;
    if (workers < 0)
        workers = json_integer_value(json_object_get(report, "workers"));
    bool ok = read_tensors(c, json_object_get(report, "inputs"), &out->inputs, &out->n_inputs) &&
              read_tensors(c, json_object_get(report, "outputs"), &out->outputs, &out->n_outputs);
    json_decref(report);
    if (!ok)
        return diag_error(&c->diags, DIAG_FORMAT, src_loc_none(), "'%s' is broken", path);
    if (!posix)
        return diag_error(&c->diags, DIAG_USAGE, src_loc_none(),
                          "'%s' is a package for another system (--port); it cannot run here", dir);
    const char *contract = strstr(cflags, "-ffp-contract") ? "" : " -ffp-contract=off";
    return build(c, dir, scratch, module, arena_printf(&c->mem, "%s%s", cflags, contract), workers, library) &&
           all_room(c, out) && load(c, library, module, out);
}

/* --- interpreted
 * ------------------------------------------------------------------------------------------------------ */

static void take_io(run_tensor *t, const unit_io *io)
{
    *t = (run_tensor){.name = io->name,
                      .dt = io->type.dt,
                      .rank = (uint32_t)io->type.shape.rank,
                      .count = shape_count(io->type.shape)};
    shape_get(io->type.shape, t->dims);
    t->bytes = (size_t)type_bytes(&io->type);
}

bool run_open_interpreter(compiler *c, const compile_result *r, run_model *out)
{
    const codegen_unit *u = &r->unit;
    *out = (run_model){.n_inputs = u->n_inputs, .n_outputs = u->n_outputs, .result = r};
    out->inputs = arena_array(&c->mem, run_tensor, u->n_inputs + 1u);
    out->outputs = arena_array(&c->mem, run_tensor, u->n_outputs + 1u);
    for (uint32_t i = 0; i < u->n_inputs; i++)
        take_io(&out->inputs[i], &u->inputs[i]);
    for (uint32_t i = 0; i < u->n_outputs; i++)
        take_io(&out->outputs[i], &u->outputs[i]);
    return all_room(c, out);
}

static const uint8_t *constant_at(compiler *c, const codegen_unit *u, uint32_t index)
{
    const tensor_data *t = u->constants[index].data;
    return t->kind == TENSOR_DENSE ? t->data : tensor_bytes(&c->mem, t);
}

static void *address(compiler *c, const run_model *m, uint8_t *workspace, uint32_t value)
{
    const plan_value *v = &m->result->plan.problem->values.data[value];
    uint64_t start;
    plan_root(m->result->plan.problem, value, &start);
    switch (v->storage) {
    case STORE_INPUT: return m->inputs[v->index].data + start;
    case STORE_OUTPUT: return m->outputs[v->index].data + start;
    case STORE_CONSTANT: return (void *)(uintptr_t)(constant_at(c, &m->result->unit, v->index) + start);
    case STORE_WORKSPACE: return workspace + v->offset;
    }
    return NULL;
}

static bool interpret(compiler *c, run_model *m)
{
    const plan *pl = &m->result->plan;
    uint8_t *workspace = arena_try_alloc(&c->mem, (size_t)pl->workspace_bytes, 64);
    if (!workspace)
        return diag_error(&c->diags, DIAG_ENVIRONMENT, src_loc_none(), "no memory for the workspace");
    for (uint32_t l = 0; l < pl->n_layers; l++)
        for (uint32_t i = 0; i < pl->layer_len[l]; i++) {
            const plan_op *op = &pl->problem->ops.data[pl->layers[l][i]];
            void **params = arena_array(&c->mem, void *, op->n_args);
            int32_t status = 0;
            for (uint32_t k = 0; k < op->n_args; k++)
                params[k] = address(c, m, workspace, op->args[k]);
            if (!tir_interpret(c, op->func, params, &status))
                return false;
            if (status != 0)
                return diag_error(&c->diags, DIAG_DATA, src_loc_none(), "operator %s ended with status %d", op->name,
                                  (int)status);
        }
    return true;
}

/* --- both
 * ------------------------------------------------------------------------------------------------------------- */

bool run_call(compiler *c, run_model *m)
{
    if (!m->call)
        return interpret(c, m);
    int32_t status = m->call(m->in, m->out);
    if (status == 0)
        return true;
    return diag_error(&c->diags, DIAG_DATA, src_loc_none(), "the run ended with status %d", (int)status);
}

/* The library stays mapped: its worker threads live in it. */
void run_close(run_model *m)
{
    m->call = NULL;
}
