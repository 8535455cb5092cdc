/* module_source.c: kernels in C source. The first call of any of them has the whole source compiled; a call hands the
 * addresses of its tensors to the kernel, part by part on the runtime's threads. Where there is no compiler, and the
 * executable has given loops, those are interpreted.
 * SPDX-License-Identifier: Apache-2.0 */
#include "abi/module.h"
#include "abi/package.h"
#include "error.h"
#include "jit.h"
#include "module_kinds.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_ADDRESSES = 65535, MOST_PARTS = 1 << 20, FEW_ADDRESSES = 32 };

struct kernel_info {
    vm_bytes key; /* its name in bytecode */
    char *symbol; /* in C */
    uint32_t addresses;
    bool shares;      /* its bare form takes part and parts */
    int32_t *devices; /* of each address: whose handle it is, 0 for memory of the host; NULL: all are that */
};

struct source_module {
    vm_module module;
    vm_bytes source;
    struct kernel_info *kernels; /* by key */
    size_t count;
    pthread_mutex_t lock; /* of what follows */
    jit_library *library; /* NULL: not compiled yet */
    lathe_value loops;    /* a string, or None; set once */
    bool interpreted;
    char *text;           /* the source with a zero behind it; NULL: nobody has asked */
};

/* A kernel as a function. */
struct kernel {
    vm_function f;
    const struct kernel_info *info;
    _Atomic(jit_kernel *) code; /* found by the first call; NULL where kernels are interpreted */
};

/* --- compiling --- */

static const char *file_name(const vm_module *m)
{
    const char *name = m->file && m->file->name ? m->file->name : "module", *slash = strrchr(name, '/');
    return slash ? slash + 1 : name;
}

static void log_source(struct source_module *s)
{
    const lathe_runtime *rt = s->module.rt;
    if (rt->options.trace < 1)
        return;
    vm_log(rt, "Data: %s: %zu bytes of C with %zu kernels", file_name(&s->module), s->source.size, s->count);
    if (rt->options.trace < 2)
        return;
    char *text = vm_text_copy(s->source);
    if (text)
        vm_log_text(rt, text);
    free(text);
}

/* Said once, with or without a trace: nobody should wonder why it is slow. */
static void interpret(struct source_module *s, const char *why)
{
    s->interpreted = true;
    vm_log(s->module.rt, "%s: %s: the kernels are interpreted, which is slow", file_name(&s->module), why);
}

static int32_t compile_or_interpret(struct source_module *s, lathe_error *error)
{
    const lathe_options *o = &s->module.rt->options;
    const bool can = o->interpret && s->loops.type != LATHE_NONE;
    if (s->library || s->interpreted)
        return LATHE_OK;
    log_source(s);
    if (can && o->no_jit) {
        interpret(s, "no_jit forbids compiling");
        return LATHE_OK;
    }
    int32_t status = jit_compile(o, file_name(&s->module), (const char *)s->source.data, s->source.size, &s->library,
                                 error);
    if (status != LATHE_E_COMPILER || !can || jit_has_compiler(o))
        return status;
    if (error)
        *error = (lathe_error){0};
    interpret(s, "no C compiler");
    return LATHE_OK;
}

/* *out NULL: the kernels are interpreted. */
static int32_t compile(struct source_module *s, jit_library **out, lathe_error *error)
{
    pthread_mutex_lock(&s->lock);
    int32_t status = compile_or_interpret(s, error);
    *out = s->library;
    pthread_mutex_unlock(&s->lock);
    return status;
}

/* *out NULL: it is interpreted. */
static int32_t resolve(struct kernel *k, const jit_kernel **out, lathe_error *error)
{
    struct source_module *s = (struct source_module *)(void *)k->f.owner;
    jit_library *library;
    jit_kernel *found, *none = NULL;
    *out = atomic_load_explicit(&k->code, memory_order_acquire);
    if (*out)
        return LATHE_OK;
    int32_t status = compile(s, &library, error);
    if (status != LATHE_OK || !library)
        return status;
    status = jit_kernel_find(library, k->info->symbol, k->info->addresses, k->info->shares, &found, error);
    if (status != LATHE_OK)
        return status;
    if (!atomic_compare_exchange_strong(&k->code, &none, found)) { /* another thread was first */
        jit_kernel_free(found);
        found = none;
    }
    *out = found;
    return LATHE_OK;
}

/* --- calling --- */

struct job {
    const jit_kernel *code;
    void *const *addresses;
    uint32_t parts;
    atomic_uint_least64_t failed; /* part + 1 and status of the first part that failed; 0: none */
    atomic_int lacking;           /* a part was not computed: no memory for its call */
};

static void run_part(void *context, uint32_t part)
{
    struct job *j = context;
    int32_t status = 0;
    if (jit_kernel_call(j->code, j->addresses, part, j->parts, &status) != LATHE_OK)
        atomic_store(&j->lacking, 1);
    if (status == 0)
        return;
    uint64_t mine = (uint64_t)(part + 1) << 32 | (uint32_t)status, before = j->failed;
    while ((before == 0 || mine < before) && !atomic_compare_exchange_weak(&j->failed, &before, mine))
        continue;
}

static const char *status_text(int32_t status)
{
    switch (status) {
#define ROW(name, value, text)                                        \
    case name: return text;
        PACKAGE_STATUSES(ROW)
#undef ROW
    default: return "a status that is not known";
    }
}

/* What stands behind the addresses: in how many parts, and of which nodes of the model. */
static int32_t take_rest(const struct kernel *k, const lathe_value *args, int32_t n, int64_t *parts, vm_bytes *nodes,
                         lathe_error *error)
{
    uint32_t count = k->info->addresses;
    int32_t status = LATHE_OK;
    *parts = 1;
    *nodes = (vm_bytes){0};
    if (n > (int32_t)count)
        status = vm_want_int(args, (int32_t)count, parts, error);
    if (status == LATHE_OK && n > (int32_t)count + 1)
        status = vm_want_text(args, (int32_t)count + 1, nodes, error);
    if (status == LATHE_OK && (*parts < 1 || *parts > MOST_PARTS))
        return vm_fail(error, LATHE_E_ARGUMENT, "%" PRId64 " parts; 1 to %d are possible", *parts, MOST_PARTS);
    return status;
}

/* A call by libffi takes some 1000 instructions, and small kernels have parts of not many more. The parts cut a loop
 * whose iterations do not depend on each other, so fewer parts give the same bytes: one for a worker that is alone,
 * else enough for all workers to end at about the same time. */
static uint32_t fewer_parts(vm_pool *pool, uint32_t parts)
{
    enum { EACH = 8 };
    const uint32_t workers = vm_pool_workers(pool), enough = workers == 1 ? 1 : EACH * workers;
    return parts < enough ? parts : enough;
}

static int32_t run_parts(struct kernel *k, const jit_kernel *code, void *const *addresses, int64_t parts,
                         int32_t *ended, lathe_error *error)
{
    vm_pool *pool = ((struct source_module *)(void *)k->f.owner)->module.rt->pool;
    struct job j = {.code = code, .addresses = addresses, .parts = (uint32_t)parts};
    j.parts = jit_kernel_is_bare(code) ? fewer_parts(pool, j.parts) : j.parts;
    vm_pool_run(pool, run_part, &j, j.parts);
    *ended = (int32_t)(uint32_t)j.failed;
    return j.lacking ? vm_no_memory(error, k->info->addresses * sizeof *addresses) : LATHE_OK;
}

/* All parts at once, without scratch: the loops have what they need. */
static int32_t run_interpreted(const struct kernel *k, void *const *addresses, const lathe_value *args, int32_t *ended,
                               lathe_error *error)
{
    const struct source_module *s = (const struct source_module *)(const void *)k->f.owner;
    const lathe_options *o = &s->module.rt->options;
    if (k->info->devices)
        return vm_fail(error, LATHE_E_UNSUPPORTED, "kernel %s runs on a device: it cannot be interpreted",
                       k->info->symbol);
    const vm_bytes text = vm_value_text(&s->loops);
    size_t few[FEW_ADDRESSES], *bytes = few;
    if (k->info->addresses > FEW_ADDRESSES && !(bytes = malloc(k->info->addresses * sizeof *bytes)))
        return vm_no_memory(error, k->info->addresses * sizeof *bytes);
    for (uint32_t i = 0; i < k->info->addresses; i++) {
        const lathe_dltensor *t = lathe_tensor_of(&args[i]);
        if (!vm_bytes_of(t->dtype, t->shape, (size_t)t->ndim, &bytes[i]))
            bytes[i] = 0;
    }
    int32_t status = o->interpret(o->interpret_user, (const char *)text.data, text.size, k->info->symbol, addresses,
                                  bytes, k->info->addresses, ended, error);
    if (bytes != few)
        free(bytes);
    return status;
}

/* code NULL: it is interpreted. */
static int32_t run(struct kernel *k, const jit_kernel *code, void *const *addresses, const lathe_value *args, int32_t n,
                   lathe_error *error)
{
    vm_bytes nodes;
    int64_t parts;
    int32_t ended = 0, status = take_rest(k, args, n, &parts, &nodes, error);
    if (status != LATHE_OK)
        return status;
    status = code ? run_parts(k, code, addresses, parts, &ended, error)
                  : run_interpreted(k, addresses, args, &ended, error);
    if (status != LATHE_OK || ended == 0)
        return status;
    return vm_fail(error, LATHE_E_KERNEL, "kernel %s (%.*s) ended with status %d: %s", k->info->symbol,
                   nodes.size < 400 ? (int)nodes.size : 400, nodes.data ? (const char *)nodes.data : "", ended,
                   status_text(ended));
}

static int32_t handle_of(const lathe_dltensor *t, int32_t i, int32_t device, void **out, lathe_error *error)
{
    if (t->device.type != device)
        return vm_fail(error, LATHE_E_SHAPE, "argument %d lies on %s; the kernel takes memory of %s", i,
                       vm_device_name(t->device).text, vm_device_name((lathe_device){device, 0}).text);
    if (t->byte_offset != 0)
        return vm_fail(error, LATHE_E_SHAPE, "argument %d begins inside of its storage on %s", i,
                       vm_device_name(t->device).text);
    *out = t->data;
    return LATHE_OK;
}

static int32_t address_of(const struct kernel_info *k, const lathe_value *args, int32_t i, void **out,
                          lathe_error *error)
{
    const lathe_dltensor *t;
    int32_t status = vm_want_tensor(args, i, &t, error);
    if (status != LATHE_OK)
        return status;
    if (k->devices && k->devices[i] != 0)
        return handle_of(t, i, k->devices[i], out, error);
    if (!vm_device_is_host(t->device.type))
        return vm_fail(error, LATHE_E_SHAPE, "argument %d lies on %s; kernels from source take memory of the CPU", i,
                       vm_device_name(t->device).text);
    if (!vm_tensor_is_dense(t))
        return vm_fail(error, LATHE_E_SHAPE, "the elements of argument %d do not lie without gaps", i);
    *out = vm_tensor_data(t);
    return LATHE_OK;
}

static int32_t call_kernel(vm_function *self, const lathe_value *args, int32_t n, lathe_value *result,
                           lathe_error *error)
{
    struct kernel *k = (struct kernel *)(void *)self;
    int32_t count = (int32_t)k->info->addresses;
    const jit_kernel *code;
    void *few[FEW_ADDRESSES], **addresses = few;
    const lathe_runtime *rt = ((struct source_module *)(void *)self->owner)->module.rt;
    (void)result;
    int32_t status = resolve(k, &code, error);
    if (status != LATHE_OK)
        return status;
    status = vm_want_count(n, count, code && !jit_kernel_shares(code) ? count : count + 2, error);
    if (status != LATHE_OK)
        return status;
    if (count > FEW_ADDRESSES && !(addresses = malloc((size_t)count * sizeof *addresses)))
        return vm_no_memory(error, (size_t)count * sizeof *addresses);
    for (int32_t i = 0; i < count && status == LATHE_OK; i++)
        status = address_of(k->info, args, i, &addresses[i], error);
    if (status == LATHE_OK && rt->options.trace > 0)
        vm_log(rt, "call: %s%s", k->info->symbol, code && jit_kernel_is_bare(code) ? " by libffi" : "");
    if (status == LATHE_OK)
        status = run(k, code, addresses, args, n, error);
    if (addresses != few)
        free(addresses);
    return status;
}

/* --- the module --- */

static int compare_kernels(const void *a, const void *b)
{
    const struct kernel_info *x = a, *y = b;
    return vm_text_compare(x->key, y->key);
}

static void destroy_kernel(void *self)
{
    struct kernel *k = self;
    jit_kernel_free(atomic_load_explicit(&k->code, memory_order_acquire));
    vm_function_destroy(self);
}

static int32_t find_in_source(vm_module *m, const char *name, lathe_value *out, lathe_error *error)
{
    struct source_module *s = (struct source_module *)(void *)m;
    struct kernel_info wanted = {.key = {(const uint8_t *)name, strlen(name)}}, *found;
    found = bsearch(&wanted, s->kernels, s->count, sizeof *s->kernels, compare_kernels);
    if (!found)
        return LATHE_OK;
    struct kernel *k = vm_function_new(sizeof *k, call_kernel, &m->head, destroy_kernel);
    if (!k)
        return vm_no_memory(error, sizeof *k);
    k->info = found;
    *out = vm_value_of(k);
    if (m->rt->options.trace > 0)
        vm_log(m->rt, "GetFunction %s: found, %u arguments", name, (unsigned)found->addresses);
    return LATHE_OK;
}

static void destroy_source(vm_module *m)
{
    struct source_module *s = (struct source_module *)(void *)m;
    if (s->library)
        jit_unload(s->library);
    lathe_release(&s->loops);
    for (size_t i = 0; i < s->count; i++) {
        free(s->kernels[i].symbol);
        free(s->kernels[i].devices);
    }
    free(s->kernels);
    free(s->text);
    pthread_mutex_destroy(&s->lock);
}

const vm_module_kind vm_source_kind = {"source module", find_in_source, destroy_source};

static int32_t damaged(lathe_error *error)
{
    return vm_fail(error, LATHE_E_FORMAT, "the source module is damaged: it ends in its kernels");
}

static bool is_identifier(vm_bytes text)
{
    for (size_t i = 0; i < text.size; i++) {
        uint8_t c = text.data[i];
        if (!(c == '_' || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (i > 0 && c >= '0' && c <= '9')))
            return false;
    }
    return text.size > 0 && text.size < 400;
}

/* One number for each address, or none. */
static int32_t read_devices(vm_reader *r, struct kernel_info *k, vm_bytes symbol, lathe_error *error)
{
    const uint64_t n = vm_read_count(r, 4);
    if (!r->ok)
        return damaged(error);
    if (n == 0)
        return LATHE_OK;
    if (n != k->addresses)
        return vm_fail(error, LATHE_E_FORMAT, "kernel %.*s has %u arguments, and the devices of %" PRIu64,
                       vm_text_shown(symbol), (const char *)symbol.data, k->addresses, n);
    k->devices = calloc((size_t)n, sizeof *k->devices);
    if (!k->devices)
        return vm_no_memory(error, (size_t)n * sizeof *k->devices);
    for (uint64_t i = 0; i < n; i++) {
        k->devices[i] = vm_read_i32(r);
        if (k->devices[i] < 0 || vm_device_is_host(k->devices[i]))
            return vm_fail(error, LATHE_E_FORMAT, "argument %" PRIu64 " of kernel %.*s is on device type %d", i,
                           vm_text_shown(symbol), (const char *)symbol.data, k->devices[i]);
    }
    return LATHE_OK;
}

/* Addresses, and behind them part and parts, both or neither. */
static int32_t read_types(vm_reader *r, struct kernel_info *k, uint32_t n, vm_bytes symbol, lathe_error *error)
{
    uint32_t shares = 0;
    for (uint32_t i = 0; i < n; i++) {
        const lathe_dtype t = vm_read_dtype(r);
        if (t.code == MODULE_DTYPE_UINT && t.bits == 32 && t.lanes == 1 && i + 2 >= n) {
            shares++;
        } else if (t.code != MODULE_DTYPE_HANDLE || shares > 0) {
            return vm_fail(error, LATHE_E_UNSUPPORTED, "argument %u of kernel %.*s is not a tensor; only tensors, and "
                           "two of uint32 behind them, are supported", i, vm_text_shown(symbol),
                           (const char *)symbol.data);
        }
    }
    if (shares == 1)
        return vm_fail(error, LATHE_E_FORMAT, "kernel %.*s takes one uint32: part and parts are two",
                       vm_text_shown(symbol), (const char *)symbol.data);
    k->shares = shares == 2;
    k->addresses = n - shares;
    return LATHE_OK;
}

static int32_t read_kernel(vm_reader *r, struct kernel_info *k, lathe_error *error)
{
    k->key = vm_read_text(r);
    vm_bytes symbol = vm_read_text(r);
    uint64_t n = vm_read_count(r, 4);
    if (!r->ok)
        return damaged(error);
    if (!is_identifier(symbol))
        return vm_fail(error, LATHE_E_FORMAT, "%.*s cannot be the name of a kernel in C", vm_text_shown(symbol),
                       (const char *)symbol.data);
    if (n > MOST_ADDRESSES)
        return vm_fail(error, LATHE_E_FORMAT, "kernel %.*s has %" PRIu64 " arguments; at most %d are possible",
                       vm_text_shown(symbol), (const char *)symbol.data, n, MOST_ADDRESSES);
    int32_t status = read_types(r, k, (uint32_t)n, symbol, error);
    if (status != LATHE_OK)
        return status;
    for (uint64_t tags = vm_read_count(r, 8); tags > 0 && r->ok; tags--)
        (void)vm_read_text(r);
    status = read_devices(r, k, symbol, error);
    if (status != LATHE_OK || !r->ok)
        return status != LATHE_OK ? status : damaged(error);
    k->symbol = vm_text_copy(symbol);
    return k->symbol ? LATHE_OK : vm_no_memory(error, symbol.size);
}

static int32_t read_source(vm_reader *r, struct source_module *s, lathe_error *error)
{
    vm_bytes format = vm_read_text(r);
    if (r->ok && !vm_text_is(format, "c"))
        return vm_fail(error, LATHE_E_UNSUPPORTED, "a source module in the format %.*s; only c is supported",
                       vm_text_shown(format), (const char *)format.data);
    uint64_t n = vm_read_count(r, 40);
    if (!r->ok)
        return damaged(error);
    s->kernels = calloc(n ? (size_t)n : 1, sizeof *s->kernels);
    if (!s->kernels)
        return vm_no_memory(error, (size_t)n * sizeof *s->kernels);
    while (s->count < n) {
        int32_t status = read_kernel(r, &s->kernels[s->count++], error);
        if (status != LATHE_OK)
            return status;
    }
    s->source = vm_read_text(r);
    if (!r->ok || vm_reader_left(r) != 0)
        return r->ok ? vm_fail(error, LATHE_E_FORMAT, "the source module is damaged: bytes follow its source")
                     : damaged(error);
    qsort(s->kernels, s->count, sizeof *s->kernels, compare_kernels);
    for (size_t i = 1; i < s->count; i++)
        if (compare_kernels(&s->kernels[i - 1], &s->kernels[i]) == 0)
            return vm_fail(error, LATHE_E_FORMAT, "the source module has the kernel %s twice", s->kernels[i].symbol);
    return LATHE_OK;
}

int32_t vm_source_module(lathe_runtime *rt, vm_file *file, vm_bytes content, vm_module **out, lathe_error *error)
{
    vm_reader r = vm_reader_of(content);
    if (rt->options.no_jit && !rt->options.interpret) /* else the executable may have loops */
        return vm_fail(error, LATHE_E_REFUSED, VM_FORBIDDEN);
    struct source_module *s = vm_module_new(sizeof *s, &vm_source_kind, rt, file, error);
    if (!s)
        return LATHE_E_MEMORY;
    pthread_mutex_init(&s->lock, NULL);
    int32_t status = read_source(&r, s, error);
    if (status != LATHE_OK)
        vm_object_release(&s->module.head);
    else
        *out = &s->module;
    return status;
}

const char *vm_source_text(vm_module *m)
{
    if (m->kind != &vm_source_kind)
        return NULL;
    struct source_module *s = (struct source_module *)(void *)m;
    pthread_mutex_lock(&s->lock);
    if (!s->text)
        s->text = vm_text_copy(s->source);
    pthread_mutex_unlock(&s->lock);
    return s->text;
}

int32_t vm_source_path(vm_module *m, const char **out, lathe_error *error)
{
    jit_library *library = NULL;
    int32_t status = compile((struct source_module *)(void *)m, &library, error);
    *out = status == LATHE_OK && library ? jit_path(library) : NULL;
    return status != LATHE_OK || library ? status
                                         : vm_fail(error, LATHE_E_COMPILER, "the kernels are interpreted");
}

void vm_source_set_loops(vm_module *m, const lathe_value *text)
{
    struct source_module *s = (struct source_module *)(void *)m;
    pthread_mutex_lock(&s->lock);
    if (s->loops.type == LATHE_NONE)
        s->loops = lathe_retain(text);
    pthread_mutex_unlock(&s->lock);
}

uint32_t vm_source_devices(const vm_module *m, int32_t out[VM_DEVICES_MAX])
{
    const struct source_module *s = (const struct source_module *)(const void *)m;
    uint32_t n = 0;
    for (size_t i = 0; i < s->count; i++)
        for (uint32_t k = 0; s->kernels[i].devices && k < s->kernels[i].addresses; k++) {
            const int32_t device = s->kernels[i].devices[k];
            uint32_t at = 0;
            while (at < n && out[at] < device)
                at++;
            if (device == 0 || (at < n && out[at] == device) || n == VM_DEVICES_MAX)
                continue;
            memmove(out + at + 1, out + at, (n - at) * sizeof *out);
            out[at] = device;
            n++;
        }
    return n;
}

bool vm_source_has_loops(vm_module *m)
{
    struct source_module *s = (struct source_module *)(void *)m;
    pthread_mutex_lock(&s->lock);
    bool has = s->loops.type != LATHE_NONE;
    pthread_mutex_unlock(&s->lock);
    return has;
}
