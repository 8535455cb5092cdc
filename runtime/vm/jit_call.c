/* SPDX-License-Identifier: Apache-2.0 */
/* Calls of kernels over bare pointers, whose number only the module knows: libffi makes the call. A library that was
 * built without libffi (LATHE_NO_LIBFFI) calls the packed form, which the source has for each kernel. */
#include "jit.h"
#include "jit_util.h"

#include "abi/module.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#if defined(LATHE_NO_LIBFFI)
enum { HAS_LIBFFI = 0 };
#else
#include <ffi.h>
enum { HAS_LIBFFI = 1 };
#endif

enum { MOST = 1 << 20 }; /* arguments; a module has 65535 at most */

typedef int32_t (*packed_function)(void *const *addresses, uint32_t part, uint32_t parts);

struct jit_kernel {
    packed_function packed; /* or NULL */
    bool shares;
#if !defined(LATHE_NO_LIBFFI)
    void (*bare)(void);
    uint32_t n;
    ffi_cif cif;
    ffi_type *types[]; /* n pointers, part, parts */
#endif
};

#if defined(LATHE_NO_LIBFFI)

static int32_t prepare(void *function, uint32_t n, bool shares, jit_kernel **out, lathe_error *error)
{
    (void)function, (void)n, (void)shares, (void)out;
    return vm_fail(error, LATHE_E_UNSUPPORTED, "kernels without '" MODULE_PACKED_SUFFIX "' need libffi, and this "
                    "library was built without it");
}

static int32_t call_bare(const jit_kernel *k, void *const *addresses, uint32_t part, uint32_t parts, int32_t *ended)
{
    (void)k, (void)addresses, (void)part, (void)parts, (void)ended;
    return LATHE_E_UNSUPPORTED;
}

#else

static int32_t prepare(void *function, uint32_t n, bool shares, jit_kernel **out, lathe_error *error)
{
    if (n > MOST)
        return vm_fail(error, LATHE_E_ARGUMENT, "a kernel has %u arguments, and at most %u are passed", (unsigned)n,
                       (unsigned)MOST);
    const uint32_t all = n + (shares ? 2 : 0);
    jit_kernel *k = malloc(sizeof *k + (all ? all : 1) * sizeof *k->types);
    if (!k)
        return jit_no_memory(error);
    k->packed = NULL;
    k->shares = shares;
    k->n = n;
    *(void **)&k->bare = function;
    for (uint32_t i = 0; i < all; i++)
        k->types[i] = i < n ? &ffi_type_pointer : &ffi_type_uint32;
    if (ffi_prep_cif(&k->cif, FFI_DEFAULT_ABI, all, shares ? &ffi_type_sint32 : &ffi_type_void, k->types) != FFI_OK) {
        free(k);
        return vm_fail(error, LATHE_E_ARGUMENT, "libffi takes no call with %u arguments", (unsigned)all);
    }
    *out = k;
    return LATHE_OK;
}

static int32_t call_bare(const jit_kernel *k, void *const *addresses, uint32_t part, uint32_t parts, int32_t *ended)
{
    enum { FEW = 64 };
    void *few[FEW + 2], **values = few;
    ffi_arg result = 0; /* libffi writes a whole register, however short the result is */
    if (k->n > FEW && !(values = malloc((k->n + 2) * sizeof *values)))
        return LATHE_E_MEMORY;
    for (uint32_t i = 0; i < k->n; i++)
        values[i] = (void *)(uintptr_t)&addresses[i];
    values[k->n] = &part;
    values[k->n + 1] = &parts;
    ffi_call((ffi_cif *)(uintptr_t)&k->cif, k->bare, k->shares ? &result : NULL, values);
    *ended = (int32_t)(uint32_t)result;
    if (values != few)
        free(values);
    return LATHE_OK;
}

#endif

static int32_t use_packed(void *function, jit_kernel **out, lathe_error *error)
{
    jit_kernel *k = calloc(1, sizeof *k);
    if (!k)
        return jit_no_memory(error);
    *(void **)&k->packed = function;
    k->shares = true;
    *out = k;
    return LATHE_OK;
}

int32_t jit_kernel_find(const jit_library *library, const char *symbol, uint32_t n, bool shares, jit_kernel **out,
                        lathe_error *error)
{
    char name[512];
    *out = NULL;
    if ((size_t)snprintf(name, sizeof name, "%s" MODULE_PACKED_SUFFIX, symbol) >= sizeof name)
        return vm_fail(error, LATHE_E_FORMAT, "the name of a kernel has %zu bytes, and at most %zu are taken: %.40s...",
                       strlen(symbol), sizeof name - sizeof MODULE_PACKED_SUFFIX, symbol);
    void *packed = jit_symbol(library, name), *bare = jit_symbol(library, symbol);
    if (bare && (!packed || (shares && HAS_LIBFFI)))
        return prepare(bare, n, shares, out, error);
    if (packed)
        return use_packed(packed, out, error);
    return vm_fail(error, LATHE_E_FORMAT, "the source defines neither %s nor %s", name, symbol);
}

bool jit_kernel_shares(const jit_kernel *k)
{
    return k->shares;
}

bool jit_kernel_is_bare(const jit_kernel *k)
{
    return !k->packed;
}

int32_t jit_kernel_call(const jit_kernel *k, void *const *addresses, uint32_t part, uint32_t parts, int32_t *ended)
{
    if (!k->packed)
        return call_bare(k, addresses, part, parts, ended);
    *ended = k->packed(addresses, part, parts);
    return LATHE_OK;
}

void jit_kernel_free(jit_kernel *k)
{
    free(k);
}
