/* start.c: a machine that is initialised for what its module wants, in one call.
 * SPDX-License-Identifier: Apache-2.0 */
#include "memory.h"

int32_t lathe_start(const lathe_value *library, lathe_value *out_vm, lathe_error *error)
{
    lathe_value args[3 * (VM_DEVICES_MAX + 2)], none = {0};
    int32_t devices[VM_DEVICES_MAX + 2];
    int32_t n = 1 + lathe_module_devices(library, devices + 1, VM_DEVICES_MAX);
    devices[0] = lathe_source(library) ? LATHE_MY_DEVICE : LATHE_CPU; /* what machine code asks for */
    devices[n++] = LATHE_CPU;
    for (int32_t i = 0; i < 3 * n; i++)
        args[i] = vm_value_int(i % 3 == 0 ? devices[i / 3] : i % 3 == 1 ? 0 : VM_ALLOCATE_POOLED);
    int32_t status = lathe_call_named(library, "vm_load_executable", NULL, 0, out_vm, error);
    if (status != LATHE_OK)
        return status;
    status = lathe_call_named(out_vm, "vm_initialization", args, 3 * n, &none, error);
    if (status != LATHE_OK)
        lathe_release(out_vm);
    return status;
}
