/* SPDX-License-Identifier: Apache-2.0 */
/* A module on a remote device. Inputs and outputs cross the wire once a call; calls that are timed run there without
 * it. The module's report lists its inputs. */
#include "driver/run_remote.h"

#include "abi/module.h"
#include "driver/run_module.h"
#include "lathe_rpc.h"
#include "lathe_vm.h"

#include <stdlib.h>
#include <string.h>

enum { MOST_DEVICES = 8 };

typedef struct run_remote {
    lathe_rpc *rpc;
    int32_t devices[MOST_DEVICES]; /* that the module wants beside the first one and the CPU */
    int32_t n_devices;
    uint64_t vm, set_input, invoke, get_output, arity; /* handles */
    lathe_rpc_value *args; /* "main", and the inputs */
    size_t *room;          /* bytes that each input has there */
    uint8_t **out;         /* what outputs lie in */
    uint32_t n_out;
} run_remote;

static const lathe_device cpu = {LATHE_CPU, 0};

static bool failed(compiler *c, const lathe_error *e)
{
    diag_code code = e->code == LATHE_E_FORMAT ? DIAG_FORMAT : e->code == LATHE_E_KERNEL ? DIAG_DATA : DIAG_ENVIRONMENT;
    (void)diag_error(&c->diags, code, src_loc_none(), "remote device: %s", e->message);
    if (e->code == LATHE_E_REFUSED)
        diag_hint(&c->diags, "check that HOST:PORT, --key and --token-file are those of the server or the tracker");
    return false;
}

/* --- opening --- */

/* The file says it; machine code, which is for the machine over there, wants none. */
static void read_devices(run_remote *r, span file)
{
    lathe_runtime *rt = NULL;
    lathe_value library = {0};
    if (lathe_runtime_create(NULL, &rt, NULL) == LATHE_OK &&
        lathe_LoadFromBytes(rt, "module", file.data, file.len, &library, NULL) == LATHE_OK)
        r->n_devices = lathe_module_devices(&library, r->devices, MOST_DEVICES);
    lathe_release(&library);
    lathe_runtime_destroy(rt);
}

static bool send_module(compiler *c, run_remote *r, const char *path, uint64_t *out)
{
    span file;
    lathe_error e = {0};
    lathe_rpc_value name = {.type = LATHE_RAW_STRING, .bytes = "model.so", .size = 8}, module;
    *out = 0;
    if (!compiler_read_file(c, path, &file))
        return false;
    if (lathe_rpc_upload(r->rpc, "model.so", file.data, file.len, &e) != LATHE_OK ||
        lathe_rpc_call_named(r->rpc, "tvm.rpc.server.load_module", &name, 1, &module, &e) != LATHE_OK)
        return failed(c, &e);
    *out = module.u.v_handle;
    read_devices(r, file);
    return module.type == LATHE_MODULE || diag_error(&c->diags, DIAG_FORMAT, src_loc_none(),
                                                     "remote device: the server returned no module");
}

static bool call_method(compiler *c, run_remote *r, uint64_t module, const char *name, const lathe_rpc_value *args,
                        uint32_t n, lathe_rpc_value *result)
{
    uint64_t function;
    lathe_error e = {0};
    return (lathe_rpc_module_get(r->rpc, module, name, &function, &e) == LATHE_OK &&
            lathe_rpc_call(r->rpc, function, args, n, result, &e) == LATHE_OK) ||
           failed(c, &e);
}

/* On a server of ours kernels are for the vectors of its machine; TVM's has the CPU. */
static bool initialise(compiler *c, run_remote *r, uint64_t module)
{
    uint64_t ours;
    lathe_error e = {0};
    lathe_rpc_value vm, none, args[3 * (MOST_DEVICES + 2)];
    int32_t devices[MOST_DEVICES + 2], n = 1;
    int32_t status = lathe_rpc_get(r->rpc, "lathe.rpc.version", &ours, &e);
    if (status != LATHE_OK && status != LATHE_E_NAME)
        return failed(c, &e);
    devices[0] = status == LATHE_OK ? LATHE_MY_DEVICE : LATHE_CPU;
    for (int32_t i = 0; i < r->n_devices && i < MOST_DEVICES; i++)
        devices[n++] = r->devices[i];
    devices[n++] = LATHE_CPU;
    for (int32_t i = 0; i < 3 * n; i++) {
        args[i] = (lathe_rpc_value){.type = LATHE_INT};
        args[i].u.v_int = i % 3 == 0 ? devices[i / 3] : i % 3 == 1 ? 0 : 2;
    }
    if (!call_method(c, r, module, "vm_load_executable", NULL, 0, &vm))
        return false;
    r->vm = vm.u.v_handle;
    return call_method(c, r, r->vm, "vm_initialization", args, (uint32_t)(3 * n), &none);
}

static bool find_functions(compiler *c, run_remote *r)
{
    const struct {
        const char *name;
        uint64_t *at;
    } wanted[] = {{"set_input", &r->set_input},
                  {"invoke_stateful", &r->invoke},
                  {"get_output", &r->get_output},
                  {"get_output_arity", &r->arity}};
    lathe_error e = {0};
    for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++)
        if (lathe_rpc_module_get(r->rpc, r->vm, wanted[i].name, wanted[i].at, &e) != LATHE_OK)
            return failed(c, &e);
    return true;
}

static bool describe(compiler *c, run_remote *r, const char *path, run_model *out)
{
    uint64_t function;
    lathe_rpc_value text;
    lathe_error e = {0};
    int32_t status = lathe_rpc_module_get(r->rpc, r->vm, "lathe_report", &function, &e);
    if (status == LATHE_E_NAME)
        return diag_error(&c->diags, DIAG_UNSUPPORTED, src_loc_none(),
                          "'%s' does not list its inputs, as modules of other compilers do not; call it from a program",
                          path);
    if (status != LATHE_OK || lathe_rpc_call(r->rpc, function, NULL, 0, &text, &e) != LATHE_OK)
        return failed(c, &e);
    run_report *report = arena_new(&c->mem, run_report);
    const char *copy = arena_strndup(&c->mem, text.bytes ? (const char *)text.bytes : "", text.size);
    if (!run_parse_report(c, path, copy, text.size, report))
        return false;
    run_take_report(report, out);
    out->report = report;
    return true;
}

/* --- calling --- */

/* Has a result of these dimensions a size that memory can have? */
static bool fits(const lathe_rpc_tensor *t)
{
    enum { MOST_BYTES = 16 }; /* of an element */
    int64_t count, bytes;
    return t->ndim >= 0 && t->ndim <= (int32_t)TYPE_MAX_RANK && tensor_count((uint32_t)t->ndim, t->shape, &count) &&
           i64_mul(count, MOST_BYTES, &bytes);
}

/* Input i lies there in memory that is as large as this run needs. */
static bool send_input(compiler *c, run_remote *r, const run_tensor *t, uint32_t i)
{
    lathe_rpc_value *v = &r->args[i + 1];
    const lathe_dtype dt = run_module_to_dlpack(t->dt);
    lathe_error e = {0};
    int32_t status = LATHE_OK;
    if (v->type == LATHE_NONE || r->room[i] != t->bytes) {
        if (v->type != LATHE_NONE)
            status = lathe_rpc_free_data(r->rpc, cpu, v->tensor.data, &e);
        v->type = LATHE_NONE;
        if (status == LATHE_OK)
            status = lathe_rpc_alloc(r->rpc, cpu, dt, t->dims, (int32_t)t->rank, &v->tensor.data, &e);
        r->room[i] = t->bytes;
    }
    if (status == LATHE_OK) {
        v->type = LATHE_DLTENSOR;
        v->tensor = (lathe_rpc_tensor){v->tensor.data, 0, cpu, dt, (int32_t)t->rank, t->dims};
        status = lathe_rpc_write(r->rpc, &v->tensor, t->data, t->bytes, &e);
    }
    return status == LATHE_OK || failed(c, &e);
}

static bool send_inputs(compiler *c, run_model *m)
{
    run_remote *r = m->module;
    lathe_rpc_value none;
    lathe_error e = {0};
    for (uint32_t i = 0; i < m->n_inputs; i++)
        if (!send_input(c, r, &m->inputs[i], i))
            return false;
    return lathe_rpc_call(r->rpc, r->set_input, r->args, m->n_inputs + 1, &none, &e) == LATHE_OK || failed(c, &e);
}

static bool take_output(compiler *c, run_remote *r, run_tensor *out, uint32_t i, const lathe_rpc_value *v)
{
    lathe_error e = {0};
    if (v->type != LATHE_TENSOR || !fits(&v->tensor) || !run_module_from_dlpack(v->tensor.dtype, &out->dt))
        return diag_error(&c->diags, DIAG_UNSUPPORTED, src_loc_none(),
                          "result %u of main is not a tensor of a known type: call the module from a program", i);
    out->rank = (uint32_t)v->tensor.ndim;
    run_set_dims(out, v->tensor.shape);
    uint8_t *room = realloc(r->out[i], out->bytes ? out->bytes : 1);
    if (!room)
        return diag_error(&c->diags, DIAG_ENVIRONMENT, src_loc_none(), "no memory for result %u of main", i);
    out->data = r->out[i] = room;
    const uint64_t handle = v->u.v_handle;
    return (lathe_rpc_read(r->rpc, &v->tensor, room, out->bytes, &e) == LATHE_OK &&
            lathe_rpc_free(r->rpc, handle, &e) == LATHE_OK) ||
           failed(c, &e);
}

static bool take_outputs(compiler *c, run_model *m)
{
    run_remote *r = m->module;
    lathe_rpc_value args[2] = {r->args[0], {.type = LATHE_INT}}, v;
    lathe_error e = {0};
    if (lathe_rpc_call(r->rpc, r->arity, args, 1, &v, &e) != LATHE_OK)
        return failed(c, &e);
    const bool several = v.u.v_int >= 0;
    if ((several ? (uint64_t)v.u.v_int : 1) != m->n_outputs)
        return diag_error(&c->diags, DIAG_FORMAT, src_loc_none(),
                          "main returned %lld results, but the module's report lists %u", (long long)v.u.v_int,
                          m->n_outputs);
    for (uint32_t i = 0; i < m->n_outputs; i++) {
        args[1].u.v_int = i;
        if (lathe_rpc_call(r->rpc, r->get_output, args, several ? 2 : 1, &v, &e) != LATHE_OK)
            return failed(c, &e);
        int64_t dims[TYPE_MAX_RANK]; /* what the answer has goes with the next one */
        for (int32_t k = 0; v.type == LATHE_TENSOR && k < v.tensor.ndim && k < (int32_t)TYPE_MAX_RANK; k++)
            dims[k] = v.tensor.shape[k];
        v.tensor.shape = dims;
        if (!take_output(c, r, &m->outputs[i], i, &v))
            return false;
    }
    return true;
}

static bool call_remote(compiler *c, run_model *m)
{
    run_remote *r = m->module;
    lathe_rpc_value none;
    lathe_error e = {0};
    if (!send_inputs(c, m))
        return false;
    if (lathe_rpc_call(r->rpc, r->invoke, r->args, 1, &none, &e) != LATHE_OK)
        return failed(c, &e);
    return take_outputs(c, m);
}

/* A module without states has no such function. */
static bool reset_remote(compiler *c, run_model *m)
{
    run_remote *r = m->module;
    uint64_t reset;
    lathe_rpc_value none;
    lathe_error e = {0};
    const int32_t status = lathe_rpc_module_get(r->rpc, r->vm, MODULE_RESET, &reset, &e);
    if (status == LATHE_E_NAME)
        return true;
    return (status == LATHE_OK && lathe_rpc_call(r->rpc, reset, NULL, 0, &none, &e) == LATHE_OK) || failed(c, &e);
}

/* The inputs are there from the call before. */
static bool time_remote(compiler *c, run_model *m, long calls, double *out_seconds)
{
    run_remote *r = m->module;
    lathe_error e = {0};
    return lathe_rpc_time(r->rpc, r->vm, "invoke_stateful", cpu, calls, 1, r->args, 1, out_seconds, &e) == LATHE_OK ||
           failed(c, &e);
}

static void close_remote(run_model *m)
{
    run_remote *r = m->module;
    lathe_rpc_close(r->rpc);
    r->rpc = NULL;
    for (uint32_t i = 0; i < r->n_out; i++) {
        free(r->out[i]);
        r->out[i] = NULL;
    }
}

bool run_open_remote(compiler *c, const char *path, const run_remote_options *o, run_model *out)
{
    run_remote *r = arena_new(&c->mem, run_remote);
    const lathe_rpc_client_options client = {.size = sizeof client,
                                             .host = o->host,
                                             .port = o->port,
                                             .by_tracker = o->by_tracker,
                                             .key = o->key,
                                             .token = o->token,
                                             .waiting = o->waiting,
                                             .user = o->user};
    lathe_error e = {0};
    uint64_t module = 0;
    *r = (run_remote){.rpc = NULL};
    *out = (run_model){
        .module = r, .call_module = call_remote, .close_module = close_remote, .time_module = time_remote,
        .reset_module = reset_remote};
    if (lathe_rpc_connect(&client, &r->rpc, &e) != LATHE_OK) {
        (void)failed(c, &e);
        if (e.code == LATHE_E_FILE)
            diag_hint(&c->diags, "does 'lathe rpc-server' run there? (docs/how-to/rpc.md)");
        return false;
    }
    if (!send_module(c, r, path, &module) || !initialise(c, r, module) || !find_functions(c, r) ||
        !describe(c, r, path, out))
        return false;
    r->args = arena_array(&c->mem, lathe_rpc_value, out->n_inputs + 1u);
    r->room = arena_array(&c->mem, size_t, out->n_inputs + 1u);
    r->out = arena_array(&c->mem, uint8_t *, out->n_outputs + 1u);
    r->n_out = out->n_outputs;
    memset(r->args, 0, (out->n_inputs + 1u) * sizeof *r->args);
    memset(r->out, 0, (out->n_outputs + 1u) * sizeof *r->out);
    r->args[0] = (lathe_rpc_value){.type = LATHE_RAW_STRING, .bytes = "main", .size = 4};
    return true;
}
