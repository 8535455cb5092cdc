/* SPDX-License-Identifier: Apache-2.0 */
/* The loader of source modules for tvm-ffi: see the header. */
#include "loader.h"

#include "abi/sha256.h"
#include "error.h"
#include "jit.h"
#include "module_kinds.h"
#include "values.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

/* Libraries by the hash of the module that they were compiled from. They stay for the life of the process, as
 * libtvm_ffi keeps modules: nothing tells when the last function of one has gone. */
typedef struct loaded {
    struct loaded *next;
    uint8_t hash[SHA256_BYTES];
    lathe_value bytes, module; /* the module reads from the bytes as long as it lives */
    const char *path;
} loaded;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static loaded *all;

static int32_t compile(lathe_runtime *rt, const char *bytes, size_t size, loaded *l, lathe_error *error)
{
    vm_module *module = NULL;
    int32_t status = vm_string_new((vm_bytes){(const uint8_t *)bytes, size}, &l->bytes, error);
    if (status == LATHE_OK)
        status = vm_source_module(rt, NULL, vm_value_text(&l->bytes), &module, error);
    if (status == LATHE_OK)
        status = vm_source_path(module, &l->path, error);
    if (status == LATHE_OK) {
        l->module = vm_value_of(module);
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

/* The library's path; NULL: the error says why. */
static const char *path_of(lathe_runtime *rt, const char *bytes, size_t size, lathe_error *error)
{
    uint8_t hash[SHA256_BYTES];
    sha256 sum;
    sha256_init(&sum);
    sha256_add(&sum, bytes, size);
    sha256_end(&sum, hash);
    const loaded *there = find(hash);
    if (there)
        return there->path;
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
    return l->path;
}

int loader_load(lathe_runtime *rt, const char *bytes, size_t size, TVMFFIAny *result)
{
    static const TVMFFIByteArray name = {"ffi.Module.load_from_file.so", sizeof "ffi.Module.load_from_file.so" - 1};
    TVMFFIAny args[2] = {{.type_index = kTVMFFIRawStr}, {.type_index = kTVMFFIRawStr}};
    TVMFFIObjectHandle f = NULL;
    lathe_error error;
    pthread_mutex_lock(&lock);
    const char *path = path_of(rt, bytes, size, &error);
    pthread_mutex_unlock(&lock);
    if (!path)
        return values_raise(&error);
    if (tvm_ffi()->TVMFFIFunctionGetGlobal(&name, &f) != 0)
        return -1;
    if (!f) {
        error = (lathe_error){LATHE_E_UNSUPPORTED, "this libtvm_ffi has no loader of shared objects"};
        return values_raise(&error);
    }
    args[0].v_c_str = path;
    args[1].v_c_str = "so";
    int rc = tvm_ffi()->TVMFFIFunctionCall(f, args, 2, result);
    tvm_ffi()->TVMFFIObjectDecRef(f);
    return rc;
}
