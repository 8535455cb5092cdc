/* SPDX-License-Identifier: Apache-2.0 */
/* The VTA run-time as tvm-ffi functions: each row of vta_functions.def is a symbol of this library
 * (`tvm_ffi.load_module`), and a global function once vta_ffi_register has run (`tvm_ffi.get_global_func`), under its
 * bare name and under `vta.`. Functions only translate: what they do is in runtime/vta. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "session.h"
#include "vta_ffi.h"
#include "vta_functions.def"


/* Raises when st is an error. */
static int outcome(const ffi_row *row, session *s, vta_status st)
{
    vta_error e = {.status = st};
    if (st == VTA_OK)
        return 0;
    (void)vta_context_last_error(session_context(s), &e);
    return session_raise(row, NULL, &e);
}

/* Ends a call that used `s`: raises when st is an error. */
static int finish(const ffi_row *row, session *s, vta_status st)
{
    int rc = outcome(row, s, st);
    session_put(s);
    return rc;
}

static int give_up(session *s)
{
    session_put(s);
    return -1;
}

/* --- tensors --- */

/* The scalar type of a memory: signed integers of its width; micro-ops either way; narrower than a byte: packed u8. */
static bool dtype_fits(const vta_geometry *g, enum vta_mem m, DLDataType t)
{
    uint32_t bits = g->width[m];
    if (t.lanes != 1)
        return false;
    if (bits < 8)
        return t.code == kDLUInt && t.bits == 8;
    return t.bits == bits && (t.code == kDLInt || (m == VTA_MEM_UOP && t.code == kDLUInt));
}

static const char *type_name(uint8_t code)
{
    static const char *const names[] = {"int", "uint", "float", "handle", "bfloat", "complex", "bool"};
    return code < sizeof names / sizeof *names ? names[code] : "type ";
}

static bool is_contiguous(const DLTensor *t)
{
    int64_t expected = 1;
    for (int32_t i = t->ndim; t->strides && i-- > 0;) {
        if (t->shape[i] == 0)
            return true;
        if (t->shape[i] != 1 && t->strides[i] != expected)
            return false;
        expected *= t->shape[i];
    }
    return true;
}

/* Layout and place of a tensor argument. */
static int check_tensor(const ffi_row *row, const char *name, const DLTensor *t)
{
    if (t->device.device_type != kDLCPU)
        return ffi_raise(row, "ValueError", "%s lives on device type %d: it must be a CPU tensor or a buffer handle",
                         name, (int)t->device.device_type);
    if (!is_contiguous(t))
        return ffi_raise(row, "ValueError", "%s is not contiguous: copy it first (numpy.ascontiguousarray)", name);
    return 0;
}

static int check_transfer(const ffi_row *row, const char *name, const ffi_arg *a, const vta_geometry *g,
                          const vta_transfer *t)
{
    if ((uint32_t)t->memory >= VTA_MEM_COUNT)
        return ffi_raise(row, "ValueError", "memory type %d: there are 0 uop, 1 wgt, 2 inp, 3 acc, 4 out, 5 acc8",
                         (int)t->memory);
    if (!a->tensor)
        return 0;
    if (check_tensor(row, name, a->tensor) != 0)
        return -1;
    DLDataType dt = a->tensor->dtype;
    uint32_t width = g->width[t->memory];
    if (!dtype_fits(g, t->memory, dt))
        return ffi_raise(row, "ValueError", "%s is a tensor of %s%u: memory type %d takes %s%u", name,
                         type_name(dt.code), (unsigned)dt.bits, (int)t->memory, width < 8 ? "packed uint" : "int",
                         width < 8 ? 8u : width);
    return 0;
}

/* --- transfers --- */

static int run_load_2d(const ffi_row *row, const ffi_arg *a, TVMFFIAny *result)
{
    (void)result;
    session *s = session_enter(row, a[0].i);
    if (!s)
        return -1;
    vta_transfer t = {.memory = (enum vta_mem)a[11].i,
                      .sram_index = (uint32_t)a[10].i,
                      .dram_offset = (uint32_t)a[2].i,
                      .x_size = (uint32_t)a[3].i,
                      .y_size = (uint32_t)a[4].i,
                      .x_stride = (uint32_t)a[5].i,
                      .x_pad_before = (uint32_t)a[6].i,
                      .y_pad_before = (uint32_t)a[7].i,
                      .x_pad_after = (uint32_t)a[8].i,
                      .y_pad_after = (uint32_t)a[9].i};
    int rc = check_transfer(row, "src_dram", &a[1], &session_device(s)->geometry, &t);
    vta_buffer b = rc == 0 ? session_bind(row, s, &a[1], false) : 0;
    rc = b ? outcome(row, s, vta_load(session_context(s), b, &t)) : -1;
    session_leave(s);
    return rc;
}

static int run_store_2d(const ffi_row *row, const ffi_arg *a, TVMFFIAny *result)
{
    (void)result;
    session *s = session_enter(row, a[0].i);
    if (!s)
        return -1;
    vta_transfer t = {.memory = (enum vta_mem)a[2].i,
                      .sram_index = (uint32_t)a[1].i,
                      .dram_offset = (uint32_t)a[4].i,
                      .x_size = (uint32_t)a[5].i,
                      .y_size = (uint32_t)a[6].i,
                      .x_stride = (uint32_t)a[7].i};
    int rc = check_transfer(row, "dst_dram", &a[3], &session_device(s)->geometry, &t);
    if (rc == 0 && a[3].tensor && !a[3].object)
        rc =
            ffi_raise(row, "ValueError", "dst_dram is a borrowed view: a store runs at synchronize and needs a Tensor");
    vta_buffer b = rc == 0 ? session_bind(row, s, &a[3], true) : 0;
    rc = b ? outcome(row, s, vta_store(session_context(s), b, &t)) : -1;
    session_leave(s);
    return rc;
}

static int run_synchronize(const ffi_row *row, const ffi_arg *a, TVMFFIAny *result)
{
    (void)result;
    session *s = session_get(row, a[0].i);
    if (!s)
        return -1;
    int rc = session_synchronize(row, s, (uint32_t)a[1].i);
    session_put(s);
    return rc;
}

/* --- kernels --- */

/* What runs while the library records: one per thread. */
static _Thread_local TVMFFIObject *recorder;
static _Thread_local bool recorder_raised;

static int record(void *closure)
{
    (void)closure;
    TVMFFIAny none = {0};
    int rc = tvm_ffi()->TVMFFIFunctionCall(recorder, NULL, 0, &none);
    recorder_raised = rc != 0;
    if (rc == 0 && none.type_index >= kTVMFFIStaticObjectBegin)
        tvm_ffi()->TVMFFIObjectDecRef(none.v_obj);
    return rc;
}

/* The key as closure bytes: its kind, then its value. */
static char *closure_of(const ffi_arg *key, size_t *size)
{
    size_t n = key->bytes ? key->size : sizeof key->i;
    char *c = malloc(n + 1);
    if (c) {
        *c = key->bytes ? 'b' : 'i';
        memcpy(c + 1, key->bytes ? key->bytes : (const char *)&key->i, n);
        *size = n + 1;
    }
    return c;
}

static int push(const ffi_row *row, const ffi_arg *a, vta_mode mode, TVMFFIAny *result)
{
    static const char sites[2] = {0}; /* their addresses name the two operations */
    session *s = session_get(row, a[0].i);
    if (!s)
        return -1;
    size_t size = 0;
    char *closure = a[2].given ? closure_of(&a[2], &size) : NULL;
    if (a[2].given && !closure) {
        ffi_raise(row, "MemoryError", "no memory for the key");
        return give_up(s);
    }
    TVMFFIObject *outer = recorder;
    recorder = a[1].object;
    recorder_raised = false;
    vta_error e = {.status =
                       vta_push(session_context(s), mode, a[2].given ? &sites[mode] : NULL, record, closure, size)};
    recorder = outer;
    free(closure);
    int rc = e.status == VTA_OK ? ffi_return_int(result, 0) : -1;
    if (rc != 0 && vta_context_last_error(session_context(s), &e) == VTA_OK)
        (void)vta_record_error(&e); /* pushed by a recorder: the kernel that it records is at fault */
    if (rc != 0 && !recorder_raised) /* else the recorder's own error is already raised */
        session_raise(row, NULL, &e);
    session_put(s);
    return rc;
}

static int run_push_gemm_op(const ffi_row *row, const ffi_arg *a, TVMFFIAny *result)
{
    return push(row, a, VTA_MODE_GEMM, result);
}

static int run_push_alu_op(const ffi_row *row, const ffi_arg *a, TVMFFIAny *result)
{
    return push(row, a, VTA_MODE_ALU, result);
}

static int kernel_call(const ffi_row *row, vta_status st, const vta_error *e)
{
    return st == VTA_OK ? 0 : session_raise(row, NULL, e);
}

static int run_uop_push(const ffi_row *row, const ffi_arg *a, TVMFFIAny *result)
{
    (void)result;
    vta_error e;
    vta_uop u = {.mode = (uint32_t)a[0].i,
                 .reset_out = (uint32_t)a[1].i,
                 .dst = (uint32_t)a[2].i,
                 .src = (uint32_t)a[3].i,
                 .wgt = (uint32_t)a[4].i,
                 .alu_opcode = (uint32_t)a[5].i,
                 .use_imm = (uint32_t)a[6].i,
                 .imm = (int32_t)a[7].i};
    return kernel_call(row, vta_uop_push(&u, &e), &e);
}

static int run_uop_loop_begin(const ffi_row *row, const ffi_arg *a, TVMFFIAny *result)
{
    (void)result;
    vta_error e;
    vta_status st = vta_uop_loop_begin((uint32_t)a[0].i, (uint32_t)a[1].i, (uint32_t)a[2].i, (uint32_t)a[3].i, &e);
    return kernel_call(row, st, &e);
}

static int run_uop_loop_end(const ffi_row *row, const ffi_arg *a, TVMFFIAny *result)
{
    (void)a;
    (void)result;
    vta_error e;
    return kernel_call(row, vta_uop_loop_end(&e), &e);
}

/* --- tokens --- */

static int dependency(const ffi_row *row, const ffi_arg *a, TVMFFIAny *result,
                      vta_status (*call)(vta_context *, enum vta_stage, enum vta_stage))
{
    session *s = session_get(row, a[0].i);
    if (!s)
        return -1;
    for (uint32_t i = 1; i <= 2; i++) {
        if (a[i].i < VTA_STAGE_LOAD || a[i].i > VTA_STAGE_STORE) {
            ffi_raise(row, "ValueError", "queue %lld: there are 1 load, 2 compute, 3 store", (long long)a[i].i);
            return give_up(s);
        }
    }
    vta_status st = call(session_context(s), (enum vta_stage)a[1].i, (enum vta_stage)a[2].i);
    (void)ffi_return_int(result, 0);
    return finish(row, s, st);
}

static int run_dep_push(const ffi_row *row, const ffi_arg *a, TVMFFIAny *result)
{
    return dependency(row, a, result, vta_dep_push);
}

static int run_dep_pop(const ffi_row *row, const ffi_arg *a, TVMFFIAny *result)
{
    return dependency(row, a, result, vta_dep_pop);
}

/* --- buffers --- */

static int run_buffer_alloc(const ffi_row *row, const ffi_arg *a, TVMFFIAny *result)
{
    if (a[0].i <= 0)
        return ffi_raise(row, "ValueError", "size is %lld: it must be positive", (long long)a[0].i);
    session *s = session_current(row);
    if (!s)
        return -1;
    vta_buffer b = 0;
    vta_status st = vta_buffer_alloc(session_context(s), (size_t)a[0].i, &b);
    (void)ffi_return_int(result, (int64_t)b);
    return finish(row, s, st);
}

static int run_buffer_free(const ffi_row *row, const ffi_arg *a, TVMFFIAny *result)
{
    (void)result;
    session *s = session_of_buffer(row, a[0].i);
    return s ? finish(row, s, vta_buffer_free(session_context(s), (vta_buffer)a[0].i)) : -1;
}

/* Bytes of a host tensor from `offset` on, or NULL: raised. */
static char *host_side(const ffi_row *row, const char *name, const ffi_arg *a, int64_t offset, int64_t size)
{
    if (!a->tensor) {
        ffi_raise(row, "ValueError", "%s is an integer, but kind_mask says that it is not a buffer: give a "
                                     "Tensor", name);
        return NULL;
    }
    if (check_tensor(row, name, a->tensor) != 0)
        return NULL;
    int64_t count = 1;
    for (int32_t i = 0; i < a->tensor->ndim; i++)
        count *= a->tensor->shape[i];
    int64_t bytes = (count * a->tensor->dtype.bits * a->tensor->dtype.lanes + 7) / 8;
    if (offset > bytes || size > bytes - offset) {
        ffi_raise(row, "ValueError", "%s has %lld bytes: %lld at %lld do not lie inside", name, (long long)bytes,
                  (long long)size, (long long)offset);
        return NULL;
    }
    return (char *)a->tensor->data + a->tensor->byte_offset + offset;
}

static int run_buffer_copy(const ffi_row *row, const ffi_arg *a, TVMFFIAny *result)
{
    (void)result;
    int64_t from_offset = a[1].i, to_offset = a[3].i, size = a[4].i, mask = a[5].i;
    if (from_offset < 0 || to_offset < 0 || size < 0)
        return ffi_raise(row, "ValueError", "offsets and size must not be negative");
    if (mask < 1 || mask > 3)
        return ffi_raise(row, "ValueError", "kind_mask is %lld: 1 host to device, 2 device to host, 3 device to device",
                         (long long)mask);
    if (((mask & 2) && a[0].tensor) || ((mask & 1) && a[2].tensor))
        return ffi_raise(row, "ValueError", "kind_mask is %lld, but a side that it calls a buffer is a Tensor",
                         (long long)mask);
    char *host = mask == 1   ? host_side(row, "from", &a[0], from_offset, size)
                 : mask == 2 ? host_side(row, "to", &a[2], to_offset, size)
                             : NULL;
    if (mask != 3 && !host)
        return -1;
    session *s = session_of_buffer(row, mask == 1 ? a[2].i : a[0].i);
    if (!s)
        return -1;
    vta_context *c = session_context(s);
    vta_status st;
    if (mask == 1)
        st = vta_buffer_write(c, (vta_buffer)a[2].i, (size_t)to_offset, host, (size_t)size);
    else if (mask == 2)
        st = vta_buffer_read(c, (vta_buffer)a[0].i, (size_t)from_offset, host, (size_t)size);
    else
        st = vta_buffer_copy(c, (vta_buffer)a[0].i, (size_t)from_offset, (vta_buffer)a[2].i, (size_t)to_offset,
                             (size_t)size);
    return finish(row, s, st);
}

static int run_buffer_cpu_ptr(const ffi_row *row, const ffi_arg *a, TVMFFIAny *result)
{
    session *s = session_get(row, a[0].i);
    if (!s)
        return -1;
    void *p = NULL;
    if (a[1].tensor)
        p = (char *)a[1].tensor->data + a[1].tensor->byte_offset;
    else if (session_bind(row, s, &a[1], false))
        p = vta_buffer_cpu_ptr(session_context(s), (vta_buffer)a[1].i);
    session_put(s);
    return p ? ffi_return_int(result, (int64_t)(intptr_t)p) : -1;
}

static int barrier(const ffi_row *row, const ffi_arg *a,
                   vta_status (*call)(vta_context *, vta_buffer, uint32_t, uint32_t, uint32_t))
{
    session *s = session_get(row, a[0].i);
    if (!s)
        return -1;
    if (a[1].tensor) { /* host memory: staged or mapped anew at every transfer */
        session_put(s);
        return 0;
    }
    if (!session_bind(row, s, &a[1], false))
        return give_up(s);
    return finish(row, s,
                  call(session_context(s), (vta_buffer)a[1].i, (uint32_t)a[2].i, (uint32_t)a[3].i, (uint32_t)a[4].i));
}

static int run_write_barrier(const ffi_row *row, const ffi_arg *a, TVMFFIAny *result)
{
    (void)result;
    return barrier(row, a, vta_write_barrier);
}

static int run_read_barrier(const ffi_row *row, const ffi_arg *a, TVMFFIAny *result)
{
    (void)result;
    return barrier(row, a, vta_read_barrier);
}

/* --- devices --- */

static int run_command_handle(const ffi_row *row, const ffi_arg *a, TVMFFIAny *result)
{
    (void)a;
    session *s = session_current(row);
    if (!s)
        return -1;
    (void)ffi_return_int(result, session_handle(s));
    session_put(s);
    return 0;
}

static int run_device_create(const ffi_row *row, const ffi_arg *a, TVMFFIAny *result)
{
    int64_t handle = 0;
    return session_create(row, &a[0], &a[1], &handle) == 0 ? ffi_return_int(result, handle) : -1;
}

static int run_make_current(const ffi_row *row, const ffi_arg *a, TVMFFIAny *result)
{
    (void)result;
    return session_make_current(row, a[0].i);
}

static int run_shutdown(const ffi_row *row, const ffi_arg *a, TVMFFIAny *result)
{
    (void)result;
    return session_shutdown(row, &a[0]);
}

static int run_set_debug_mode(const ffi_row *row, const ffi_arg *a, TVMFFIAny *result)
{
    session *s = session_get(row, a[0].i);
    if (!s)
        return -1;
    (void)ffi_return_int(result, (int64_t)vta_context_debug(session_context(s), (uint32_t)a[1].i));
    session_put(s);
    return 0;
}

/* Counters of the session's device as text; leaves it. */
static int give_counters(const ffi_row *row, session *s, TVMFFIAny *result)
{
    char text[1024];
    const size_t n = vta_context_counters(session_context(s), text, sizeof text);
    session_leave(s);
    if (n == 0 || n >= sizeof text)
        return ffi_raise(row, "RuntimeError", "the device has no counters");
    return ffi_return_str(row, result, text, n);
}

static int run_counters(const ffi_row *row, const ffi_arg *a, TVMFFIAny *result)
{
    session *s = session_enter(row, a[0].i);
    return s ? give_counters(row, s, result) : -1;
}

static int run_profiler_status(const ffi_row *row, const ffi_arg *a, TVMFFIAny *result)
{
    (void)a;
    session *s = session_enter_current(row);
    return s ? give_counters(row, s, result) : -1;
}

static int run_profiler_clear(const ffi_row *row, const ffi_arg *a, TVMFFIAny *result)
{
    (void)a;
    (void)result;
    session *s = session_enter_current(row);
    if (!s)
        return -1;
    vta_context_clear_counters(session_context(s));
    session_leave(s);
    return 0;
}

static int run_profiler_debug_mode(const ffi_row *row, const ffi_arg *a, TVMFFIAny *result)
{
    (void)result;
    session *s = session_enter_current(row);
    if (!s)
        return -1;
    const vta_device *d = session_device(s);
    bool known = d->driver->skip_exec != NULL;
    if (known)
        d->driver->skip_exec(d->self, (a[0].i & 1) != 0);
    session_leave(s);
    return known ? 0 : ffi_raise(row, "RuntimeError", "the device is not a simulator");
}

/* --- scratchpads --- */

/* A tensor of our own: everything in one block. */
typedef struct owned_tensor {
    DLManagedTensorVersioned managed;
    int64_t shape[3], strides[3];
    _Alignas(64) char data[];
} owned_tensor;

static void delete_tensor(DLManagedTensorVersioned *m)
{
    free(m->manager_ctx);
}

static owned_tensor *new_tensor(const vta_geometry *g, enum vta_mem m, uint32_t count)
{
    uint32_t rows = m == VTA_MEM_UOP ? 1 : m == VTA_MEM_WGT ? g->block_out : g->batch, lanes = g->lanes[m] / rows;
    bool packed = g->width[m] < 8;
    size_t bytes = (size_t)count * g->elem_bytes[m], size = (sizeof(owned_tensor) + bytes + 63) / 64 * 64;
    owned_tensor *t = aligned_alloc(64, size);
    if (!t)
        return NULL;
    memset(t, 0, sizeof *t);
    t->shape[0] = count;
    t->shape[1] = rows;
    t->shape[2] = packed ? (int64_t)(g->elem_bytes[m] / rows) : (int64_t)lanes;
    t->strides[2] = 1;
    t->strides[1] = t->shape[2];
    t->strides[0] = t->shape[1] * t->shape[2];
    t->managed.version = (DLPackVersion){1, 0};
    t->managed.manager_ctx = t;
    t->managed.deleter = delete_tensor;
    DLTensor *d = &t->managed.dl_tensor;
    d->data = t->data;
    d->device = (DLDevice){kDLCPU, 0};
    d->ndim = 3;
    d->dtype.code = packed || m == VTA_MEM_UOP ? kDLUInt : kDLInt;
    d->dtype.bits = (uint8_t)(packed ? 8 : g->width[m]);
    d->dtype.lanes = 1;
    d->shape = t->shape;
    d->strides = t->strides;
    return t;
}

static int read_scratchpad(const ffi_row *row, const vta_device *d, const ffi_arg *a, TVMFFIAny *result)
{
    enum vta_mem m = (enum vta_mem)a[1].i;
    if (a[1].i > VTA_MEM_OUT)
        return ffi_raise(row, "ValueError", "memory type %lld: there are 0 uop, 1 wgt, 2 inp, 3 acc, 4 out",
                         (long long)a[1].i);
    if (a[2].i + a[3].i > d->geometry.depth[m])
        return ffi_raise(row, "ValueError", "elements %lld to %lld: the scratchpad has %u", (long long)a[2].i,
                         (long long)(a[2].i + a[3].i), d->geometry.depth[m]);
    if (!d->driver->scratchpad || !tvm_ffi())
        return ffi_raise(row, "RuntimeError",
                         tvm_ffi() ? "the device does not show its scratchpads"
                                   : "returning a tensor needs libtvm_ffi in the process");
    owned_tensor *t = new_tensor(&d->geometry, m, (uint32_t)a[3].i);
    if (!t)
        return ffi_raise(row, "MemoryError", "no memory for %lld elements", (long long)a[3].i);
    vta_error e;
    TVMFFIObjectHandle handle = NULL;
    if (d->driver->scratchpad(d->self, m, (uint32_t)a[2].i, (uint32_t)a[3].i, t->data, &e) != VTA_OK) {
        free(t);
        return session_raise(row, NULL, &e);
    }
    if (tvm_ffi()->TVMFFITensorFromDLPackVersioned(&t->managed, 0, 0, &handle) != 0) {
        free(t);
        return -1;
    }
    *result = (TVMFFIAny){.type_index = kTVMFFITensor};
    result->v_obj = handle;
    return 0;
}

static int run_scratchpad_read(const ffi_row *row, const ffi_arg *a, TVMFFIAny *result)
{
    session *s = session_enter(row, a[0].i);
    if (!s)
        return -1;
    int rc = read_scratchpad(row, session_device(s), a, result);
    session_leave(s);
    return rc;
}

/* --- exports --- */

#define ROW(id, result_, args_, doc_) {#id, result_, args_, doc_, run_##id},
static const ffi_row rows[] = {VTA_FUNCTIONS(ROW)};
static const ffi_row simulator_rows[] = {VTA_SIMULATOR_FUNCTIONS(ROW)};
enum row_index {
#define X(id, result_, args_, doc_) ROW_##id,
    VTA_FUNCTIONS(X)
#undef X
};

#define X(id, result_, args_, doc_) FFI_DEFINE(id, &rows[ROW_##id])
VTA_FUNCTIONS(X)
#undef X

FFI_EXPORT int vta_ffi_register(void)
{
    int rc = tvm_ffi() ? 0 : -1;
    for (size_t i = 0; rc == 0 && i < sizeof rows / sizeof *rows; i++) {
        rc = ffi_register("", &rows[i]);
        rc = rc ? rc : ffi_register("vta.", &rows[i]);
    }
    for (size_t i = 0; rc == 0 && i < sizeof simulator_rows / sizeof *simulator_rows; i++)
        rc = ffi_register("vta.simulator.", &simulator_rows[i]);
    return rc;
}

FFI_EXPORT const char *vta_ffi_last_error(void)
{
    return ffi_last_error();
}

/* `tvm_ffi.load_module` alone registers the globals, when libtvm_ffi is there first. */
__attribute__((constructor)) static void register_on_load(void)
{
    if (tvm_ffi())
        (void)vta_ffi_register();
}
