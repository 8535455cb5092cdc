/* SPDX-License-Identifier: Apache-2.0 */
/* The loader of source modules for tvm-ffi: see the header. */
#define _GNU_SOURCE /* dladdr */
#include "loader.h"

#include "abi/sha256.h"
#include "error.h"
#include "jit.h"
#include "module_kinds.h"
#include "values.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Libraries by the hash of the module that they were compiled from. They stay for the life of the process, as
 * libtvm_ffi keeps modules: nothing tells when the last function of one has gone. */
typedef struct loaded {
    struct loaded *next;
    uint8_t hash[SHA256_BYTES];
    lathe_value bytes, module; /* the module reads from the bytes as long as it lives */
    const char *path, *source;
} loaded;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static loaded *all;

/* Said before the loader of the system says that a symbol is missing. */
static int32_t check_devices(const lathe_runtime *rt, const vm_module *module, lathe_error *error)
{
    int32_t types[VM_DEVICES_MAX], status = LATHE_OK;
    lathe_device_api api;
    const uint32_t n = vm_source_devices(module, types);
    for (uint32_t i = 0; i < n && status == LATHE_OK; i++)
        status = vm_devices_get(&rt->devices, types[i], &api, error);
    return status;
}

static int32_t compile(lathe_runtime *rt, const char *bytes, size_t size, loaded *l, lathe_error *error)
{
    vm_module *module = NULL;
    int32_t status = vm_string_new((vm_bytes){(const uint8_t *)bytes, size}, &l->bytes, error);
    if (status == LATHE_OK)
        status = vm_source_module(rt, NULL, vm_value_text(&l->bytes), &module, error);
    if (status == LATHE_OK)
        status = check_devices(rt, module, error);
    if (status == LATHE_OK)
        status = vm_source_path(module, &l->path, error);
    if (status == LATHE_OK) {
        l->module = vm_value_of(module);
        l->source = vm_source_text(module);
        return LATHE_OK;
    }
    if (module)
        vm_object_release(&module->head);
    lathe_release(&l->bytes);
    return status;
}

static const loaded *find(const uint8_t *hash)
{
    const loaded *l = all;
    while (l && memcmp(l->hash, hash, sizeof l->hash) != 0)
        l = l->next;
    return l;
}

/* NULL: the error says why. */
static const loaded *load(lathe_runtime *rt, const char *bytes, size_t size, lathe_error *error)
{
    uint8_t hash[SHA256_BYTES];
    sha256 sum;
    sha256_init(&sum);
    sha256_add(&sum, bytes, size);
    sha256_end(&sum, hash);
    const loaded *there = find(hash);
    if (there)
        return there;
    loaded *l = calloc(1, sizeof *l);
    if (!l) {
        (void)vm_fail(error, LATHE_E_MEMORY, "no memory");
        return NULL;
    }
    if (compile(rt, bytes, size, l, error) != LATHE_OK) {
        free(l);
        return NULL;
    }
    memcpy(l->hash, hash, sizeof hash);
    l->next = all;
    all = l;
    return l;
}

/* --- the module that a host sees (module.cc) --- */

typedef int (*wrap_function)(TVMFFIAny *compiled, const char *bytes, size_t n_bytes, const char *source);

static wrap_function host_wrap; /* NULL: not looked for yet, or there is none; behind `lock` */
static bool looked;

/* Its library, beside this one; NULL: there is none, or it was compiled for classes of another version of tvm-ffi. */
static wrap_function find_wrap(void)
{
    wrap_function wrap = NULL;
    Dl_info self;
    char path[4096];
    const char *slash = dladdr(&all, &self) != 0 ? strrchr(self.dli_fname, '/') : NULL;
    const int n = slash ? snprintf(path, sizeof path, "%.*s/liblathe_ffi_module.so", (int)(slash - self.dli_fname),
                                   self.dli_fname) : 0;
    void *library = n > 0 && (size_t)n < sizeof path ? dlopen(path, RTLD_NOW | RTLD_LOCAL) : NULL;
    const int32_t *made_for = library ? dlsym(library, "lathe_ffi_module_version") : NULL;
    TVMFFIVersion here;
    tvm_ffi()->TVMFFIGetVersion(&here);
    if (made_for && made_for[0] == (int32_t)here.major && made_for[1] == (int32_t)here.minor &&
        made_for[2] == (int32_t)here.patch)
        *(void **)&wrap = dlsym(library, "lathe_ffi_module_wrap");
    else if (library)
        (void)dlclose(library);
    return wrap;
}

static int wrap(const loaded *l, TVMFFIAny *module)
{
    pthread_mutex_lock(&lock);
    if (!looked)
        host_wrap = find_wrap();
    looked = true;
    const wrap_function f = host_wrap;
    pthread_mutex_unlock(&lock);
    const vm_bytes bytes = vm_value_text(&l->bytes);
    return f && l->source ? f(module, (const char *)bytes.data, bytes.size, l->source) : 0;
}

int loader_load(lathe_runtime *rt, const char *bytes, size_t size, TVMFFIAny *result)
{
    static const TVMFFIByteArray name = {"ffi.Module.load_from_file.so", sizeof "ffi.Module.load_from_file.so" - 1};
    TVMFFIAny args[2] = {{.type_index = kTVMFFIRawStr}, {.type_index = kTVMFFIRawStr}};
    TVMFFIObjectHandle f = NULL;
    lathe_error error;
    pthread_mutex_lock(&lock);
    const loaded *l = load(rt, bytes, size, &error);
    pthread_mutex_unlock(&lock);
    if (!l)
        return values_raise(&error);
    if (tvm_ffi()->TVMFFIFunctionGetGlobal(&name, &f) != 0)
        return -1;
    if (!f) {
        error = (lathe_error){LATHE_E_UNSUPPORTED, "this libtvm_ffi has no loader of shared objects"};
        return values_raise(&error);
    }
    args[0].v_c_str = l->path;
    args[1].v_c_str = "so";
    int rc = tvm_ffi()->TVMFFIFunctionCall(f, args, 2, result);
    tvm_ffi()->TVMFFIObjectDecRef(f);
    return rc == 0 ? wrap(l, result) : rc;
}
