/* SPDX-License-Identifier: Apache-2.0 */
/* The library in a process without libtvm_ffi: its functions by symbol, errors by text, and the published C interface
 * beside them. */
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
#include <tvm/ffi/c_api.h>

typedef int (*ffi_function)(void *, const TVMFFIAny *, int32_t, TVMFFIAny *);

int main(int argc, char **argv)
{
    void *lib = argc == 2 ? dlopen(argv[1], RTLD_NOW | RTLD_GLOBAL) : NULL;
    if (!lib) {
        fprintf(stderr, argc == 2 ? "%s\n" : "usage: without_tvm_ffi LIBRARY\n", argc == 2 ? dlerror() : "");
        return 2;
    }
    ffi_function command_handle, synchronize;
    const char *(*last_error)(void);
    int (*register_again)(void);
    *(void **)&command_handle = dlsym(lib, "__tvm_ffi_command_handle");
    *(void **)&synchronize = dlsym(lib, "__tvm_ffi_synchronize");
    *(void **)&last_error = dlsym(lib, "vta_ffi_last_error");
    *(void **)&register_again = dlsym(lib, "vta_ffi_register");
    TVMFFIAny cmd, args[2];
    memset(&cmd, 0, sizeof cmd);
    memset(args, 0, sizeof args);
    if (command_handle(NULL, NULL, 0, &cmd) != 0 || cmd.type_index != kTVMFFIInt)
        return 1;
    args[0] = cmd;
    args[1].type_index = kTVMFFIInt;
    args[1].v_int64 = 1 << 20;
    TVMFFIAny none = {0};
    if (synchronize(NULL, args, 2, &none) != 0)
        return 1;
    args[0].v_int64 += 1000; /* no such queue */
    if (synchronize(NULL, args, 2, &none) == 0 || !strstr(last_error(), "not a command queue"))
        return 1;
    if (register_again() == 0) /* nothing to register with */
        return 1;
    if (!dlsym(lib, "VTADepPush"))
        return 1;
    printf("works without libtvm_ffi; its message: %s\n", last_error());
    return 0;
}
