/* SPDX-License-Identifier: Apache-2.0 */
/* Finding libtvm_ffi in the process: see the header. */
#include "tvm_ffi_api.h"

#include <dlfcn.h>
#include <pthread.h>
#include <string.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static tvm_ffi_api api;
static bool found;

/* dlsym gives an object pointer; C has no cast from it to a function pointer. */
static bool find(const char *name, void *slot, size_t size)
{
    void *p = dlsym(RTLD_DEFAULT, name);
    memcpy(slot, &p, size);
    return p != NULL;
}

const tvm_ffi_api *tvm_ffi(void)
{
    pthread_mutex_lock(&lock);
    if (!found) {
        found = true;
#define X(name, result, params) found &= find(#name, &api.name, sizeof api.name);
        TVM_FFI_API(X)
#undef X
    }
    bool ok = found;
    pthread_mutex_unlock(&lock);
    return ok ? &api : NULL;
}
