/* SPDX-License-Identifier: Apache-2.0 */
/* A module that can be called: the virtual machine, with the caller's tensors as arguments. A module of Lathe has a
 * report that says what it takes. For other modules this follows from what their functions check and return. */
#include "driver/run_module.h"

#include "abi/module.h"

#include "lathe/loops.h"
#include "lathe_vm.h"

#include <stdlib.h>
#include <string.h>

struct run_module {
    lathe_runtime *rt;
    lathe_loops *loops; /* where there is no compiler */
    lathe_value library, vm, main, result;
    lathe_value *args;
    lathe_dltensor *tensors;
    bool described; /* it has a report: the number of its outputs is known before a run */
};

/* --- types: DLPack's numbers --- */

lathe_dtype run_module_to_dlpack(dtype dt)
{
    return (lathe_dtype){dtype_dlpack_code(dt), (uint8_t)dtype_bits(dt), 1};
}

bool run_module_from_dlpack(lathe_dtype d, dtype *out)
{
    for (int dt = 0; dt < DT_COUNT; dt++) {
        const lathe_dtype k = run_module_to_dlpack((dtype)dt);
        *out = (dtype)dt;
        if (dtype_usable(*out) && k.code == d.code && k.bits == d.bits && d.lanes == 1)
            return true;
    }
    return false;
}

/* --- errors --- */

/* The machine's sentence under the code that the command line has for it. */
static bool failed(compiler *c, const lathe_error *e)
{
    if (c->cancelled) /* which is said already */
        return false;
    diag_code code = DIAG_DATA;
    const char *hint = NULL;
    switch (e->code) {
    case LATHE_E_MEMORY: code = DIAG_ENVIRONMENT; break;
    case LATHE_E_COMPILER:
        code = DIAG_ENVIRONMENT;
        hint = "a C compiler is needed, which CC names; modules that are compiled with --with-interpreter run without";
        break;
    case LATHE_E_FILE: code = DIAG_IO; break;
    case LATHE_E_FORMAT:
        code = DIAG_FORMAT;
        hint = "was the module copied as a whole? 'lathe compile --emit module' makes modules";
        break;
    case LATHE_E_UNSUPPORTED: code = DIAG_UNSUPPORTED; break;
    case LATHE_E_REFUSED:
        code = DIAG_USAGE;
        hint = "leave --no-jit out; modules that are compiled with --with-interpreter run with it";
        break;
    default: break; /* what is wrong with the call, or its data */
    }
    diag_error(&c->diags, code, src_loc_none(), "%s", e->message);
    if (hint)
        diag_hint(&c->diags, "%s", hint);
    return false;
}

/* --- opening --- */

static bool load(compiler *c, struct run_module *m, const char *path)
{
    lathe_error e = {0};
    return lathe_LoadFromFile(m->rt, path, &m->library, &e) == LATHE_OK || failed(c, &e);
}

static bool start(compiler *c, struct run_module *m)
{
    lathe_error e = {0};
    return (lathe_start(&m->library, &m->vm, &e) == LATHE_OK &&
            lathe_GetFunction(&m->vm, "main", &m->main, &e) == LATHE_OK) ||
           failed(c, &e);
}

/* report.json's text, for as long as c lives; NULL: the module has none. */
static bool read_report(compiler *c, struct run_module *m, const char **out)
{
    lathe_value text = {0};
    lathe_error e = {0};
    *out = NULL;
    if (lathe_text(&m->library, "lathe_report", &text, &e) != LATHE_OK)
        return e.code == LATHE_E_NAME || failed(c, &e);
    *out = arena_strdup(&c->mem, lathe_string_of(&text));
    lathe_release(&text);
    return true;
}

static bool take_report(compiler *c, const char *path, struct run_module *m, run_model *out)
{
    const char *text;
    if (!read_report(c, m, &text))
        return false;
    m->described = text != NULL;
    if (!text)
        return true;
    run_report *r = arena_new(&c->mem, run_report);
    if (!run_parse_report(c, path, text, strlen(text), r))
        return false;
    run_take_report(r, out);
    out->report = r;
    return true;
}

/* An argument of a function that has no report, by what the function checks. */
static bool describe_input(compiler *c, const struct run_module *m, int32_t i, run_model *out)
{
    lathe_error e = {0};
    lathe_dtype dt;
    int32_t rank, kind;
    int64_t dims[TYPE_MAX_RANK];
    const char *name = "";
    run_tensor *t = &out->inputs[i];
    if (lathe_function_parameter(&m->vm, "main", i, &name, &dt, &rank, dims, TYPE_MAX_RANK, &e) != LATHE_OK ||
        lathe_function_parameter_type(&m->vm, "main", i, &kind, &e) != LATHE_OK)
        return failed(c, &e);
    *t = (run_tensor){.name = arena_strdup(&c->mem, name), .dt = DT_I64, .rank = (uint32_t)(rank < 0 ? 0 : rank),
                      .is_shape = kind == LATHE_SHAPE};
    if (rank < 0 || rank > (int32_t)TYPE_MAX_RANK || (!t->is_shape && !run_module_from_dlpack(dt, &t->dt)))
        return diag_error(&c->diags, DIAG_UNSUPPORTED, src_loc_none(),
                          "argument %d of main ('%s') is neither a tensor of a known type nor a shape: call the module "
                          "from a program", i, name);
    t->count = !t->is_shape;
    dim *open = arena_array(&c->mem, dim, t->rank + 1u);
    for (uint32_t k = 0; k < t->rank; k++) {
        const char *symbol = arena_printf(&c->mem, "%s_%u", t->name, k);
        open[k] = dims[k] < 0 ? dim_symbol(c, symbol, -1) : dim_const(c, dims[k]);
        t->most[k] = t->dims[k] = dims[k];
        if (dims[k] >= 0)
            continue;
        t->open = open;
        out->extents[out->n_extents++] = (run_extent){symbol, -1, -1};
    }
    return true;
}

static bool describe(compiler *c, const struct run_module *m, run_model *out)
{
    lathe_error e = {0};
    int32_t n = 0;
    if (lathe_function_arity(&m->vm, "main", &n, &e) != LATHE_OK)
        return failed(c, &e);
    out->inputs = arena_array(&c->mem, run_tensor, (size_t)n + 1u);
    out->extents = arena_array(&c->mem, run_extent, (size_t)n * TYPE_MAX_RANK + 1u);
    out->n_inputs = (uint32_t)n;
    for (int32_t i = 0; i < n; i++)
        if (!describe_input(c, m, i, out))
            return false;
    return true;
}

/* --- calling --- */

static bool fill_args(compiler *c, run_model *m)
{
    struct run_module *v = m->module;
    lathe_error e = {0};
    for (uint32_t i = 0; i < m->n_inputs; i++) {
        run_tensor *t = &m->inputs[i];
        lathe_release(&v->args[i]); /* a shape of the call before */
        if (t->is_shape && lathe_shape_new(t->dims, t->rank, &v->args[i], &e) != LATHE_OK)
            return failed(c, &e);
        if (t->is_shape)
            continue;
        v->tensors[i] = (lathe_dltensor){.data = t->data,
                                         .device = {LATHE_CPU, 0},
                                         .ndim = (int32_t)t->rank,
                                         .dtype = run_module_to_dlpack(t->dt),
                                         .shape = t->dims};
        v->args[i] = (lathe_value){.type = LATHE_DLTENSOR};
        v->args[i].u.v_tensor = &v->tensors[i];
    }
    return true;
}

/* A result as a tensor of ours; the bytes are the machine's, until the next call. */
static bool take_output(compiler *c, run_model *m, uint32_t i, const lathe_value *value)
{
    const lathe_dltensor *t = lathe_tensor_of(value);
    run_tensor *out = &m->outputs[i];
    if (!t || t->ndim > (int32_t)TYPE_MAX_RANK || !run_module_from_dlpack(t->dtype, &out->dt))
        return diag_error(&c->diags, DIAG_UNSUPPORTED, src_loc_none(),
                          "result %u of main is not a tensor of a known type: call the module from a program", i);
    out->rank = (uint32_t)t->ndim;
    run_set_dims(out, t->shape);
    out->data = (uint8_t *)t->data + t->byte_offset;
    return true;
}

static bool take_outputs(compiler *c, run_model *m)
{
    struct run_module *v = m->module;
    const bool several = v->result.type == LATHE_ARRAY;
    const size_t n = several ? lathe_array_size(&v->result) : 1;
    if (v->described && n != m->n_outputs)
        return diag_error(&c->diags, DIAG_FORMAT, src_loc_none(),
                          "main returned %zu results, but the module's report lists %u", n, m->n_outputs);
    if (!v->described && !m->outputs) {
        m->outputs = arena_array(&c->mem, run_tensor, n + 1);
        m->n_outputs = (uint32_t)n;
        for (size_t i = 0; i < n; i++)
            m->outputs[i].name = arena_printf(&c->mem, "output%zu", i);
    }
    for (uint32_t i = 0; i < m->n_outputs; i++) {
        lathe_value one = v->result;
        lathe_error e = {0};
        if (several && lathe_array_get(&v->result, i, &one, &e) != LATHE_OK)
            return failed(c, &e);
        if (!take_output(c, m, i, &one))
            return false;
    }
    return true;
}

/* A module without states has no such function. */
static bool reset_module(compiler *c, run_model *m)
{
    struct run_module *v = m->module;
    lathe_value reset = {0}, none = {0};
    lathe_error e = {0};
    if (lathe_GetFunction(&v->vm, MODULE_RESET, &reset, &e) != LATHE_OK)
        return e.code == LATHE_E_NAME || failed(c, &e);
    const int32_t status = lathe_call(&reset, NULL, 0, &none, &e);
    lathe_release(&none);
    lathe_release(&reset);
    return status == LATHE_OK || failed(c, &e);
}

static bool call_module(compiler *c, run_model *m)
{
    struct run_module *v = m->module;
    lathe_error e = {0};
    lathe_release(&v->result);
    if (!fill_args(c, m))
        return false;
    if (lathe_call(&v->main, v->args, (int32_t)m->n_inputs, &v->result, &e) != LATHE_OK) {
        if (e.code == LATHE_E_FILE)
            e.code = LATHE_E_COMPILER; /* the run-time compiler's files are no input */
        return failed(c, &e);
    }
    return take_outputs(c, m);
}

static void close_module(run_model *m)
{
    struct run_module *v = m->module;
    lathe_value *const held[] = {&v->result, &v->main, &v->vm, &v->library};
    for (size_t i = 0; i < sizeof held / sizeof *held; i++)
        lathe_release(held[i]);
    for (uint32_t i = 0; v->args && i < m->n_inputs; i++)
        lathe_release(&v->args[i]);
    lathe_runtime_destroy(v->rt);
    lathe_loops_destroy(v->loops);
    v->rt = NULL;
    v->loops = NULL;
}

/* Without a trace there are two things to say: that the kernels are interpreted, and what the run-time compiler warns
 * of. */
static void note(void *user, const char *line)
{
    static const char warning[] = "warning: ";
    compiler *c = user;
    if (strncmp(line, warning, sizeof warning - 1) == 0)
        (void)diag_warning(&c->diags, DIAG_ENVIRONMENT, src_loc_none(), "%s", line + sizeof warning - 1);
    else
        (void)diag_note(&c->diags, DIAG_ENVIRONMENT, src_loc_none(), "%s", line);
}

/* What the run-time compiler has in $TMPDIR, and its compilers, go when a signal ends the program. */
static void note_outside(void *user, const char *path, int32_t pid, int32_t there)
{
    temps *t = &((compiler *)user)->temps;
    if (path && there)
        temps_note(t, path);
    else if (path)
        temps_forget(t, path);
    else if (there)
        temps_note_child(t, pid);
    else
        temps_forget_child(t, pid);
}

static int32_t stop(void *user)
{
    return !compiler_goes_on(user);
}

bool run_open_module(compiler *c, const char *path, const run_module_options *o, run_model *out)
{
    struct run_module *m = arena_new(&c->mem, struct run_module);
    lathe_error e = {0};
    *out = (run_model){.module = m, .call_module = call_module, .reset_module = reset_module,
                        .close_module = close_module};
    if (lathe_loops_create(c->mem.out_of_memory, c->mem.context, &m->loops, &e) != LATHE_OK)
        return failed(c, &e);
    const lathe_options options = {.size = sizeof options,
                                   .workers = o->workers,
                                   .no_jit = o->no_jit || o->only_look,
                                   .trace = o->trace,
                                   .keep_sources = o->keep_sources,
                                   .outside = note_outside,
                                   .stop = stop,
                                   .log = o->trace ? NULL : note,
                                   .user = c,
                                   .interpret = lathe_loops_interpret,
                                   .interpret_user = m->loops};
    if (lathe_runtime_create(&options, &m->rt, &e) != LATHE_OK)
        return failed(c, &e);
    if (!load(c, m, path) || !take_report(c, path, m, out))
        return false;
    if (o->only_look)
        return true;
    if (!start(c, m) || (!m->described && !describe(c, m, out)))
        return false;
    if (o->meta && lathe_check_metadata(m->rt, &m->vm, o->meta, &e) != LATHE_OK)
        return failed(c, &e);
    m->args = arena_array(&c->mem, lathe_value, out->n_inputs + 1u);
    m->tensors = arena_array(&c->mem, lathe_dltensor, out->n_inputs + 1u);
    return true;
}
