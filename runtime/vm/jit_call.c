/* SPDX-License-Identifier: Apache-2.0 */
/* Calls of kernels of the bare form, void K(void *, ...), whose number of arguments only the module knows: libffi makes
 * the call. Where the library was built without libffi such kernels are refused. */
#include "jit.h"
#include "jit_util.h"

#include <stdlib.h>

#if defined(LATHE_NO_LIBFFI)

int32_t jit_call_bare(void *function, void *const *addresses, uint32_t n, lathe_error *error)
{
    (void)function, (void)addresses, (void)n;
    return vm_fail(error, LATHE_E_UNSUPPORTED, "kernels without '_packed' need libffi, and this library was built "
                    "without it");
}

#else

#include <ffi.h>

/* Preparing the call again takes less time than a look-up in a table by count would save: for ten pointers about the
 * time of the call itself, and kernels take thousands of times that. */
int32_t jit_call_bare(void *function, void *const *addresses, uint32_t n, lathe_error *error)
{
    enum { FEW = 32 };
    ffi_cif cif;
    ffi_type *few_types[FEW], **types = few_types;
    void *few_values[FEW], **values = few_values, *memory = NULL;
    void (*entry)(void) = NULL;
    if (n > FEW) {
        memory = malloc(n * (sizeof *types + sizeof *values));
        if (!memory)
            return jit_no_memory(error);
        types = memory;
        values = (void **)(types + n);
    }
    for (uint32_t i = 0; i < n; i++) {
        types[i] = &ffi_type_pointer;
        values[i] = (void *)(uintptr_t)&addresses[i];
    }
    int32_t status = LATHE_OK;
    *(void **)&entry = function;
    if (ffi_prep_cif(&cif, FFI_DEFAULT_ABI, n, &ffi_type_void, types) == FFI_OK)
        ffi_call(&cif, entry, NULL, values);
    else
        status = vm_fail(error, LATHE_E_ARGUMENT, "libffi takes no call with %u arguments", (unsigned)n);
    free(memory);
    return status;
}

#endif
