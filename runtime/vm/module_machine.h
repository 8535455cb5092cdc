/* module_machine.h: machines as modules, with the functions that hosts call by name.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef LATHE_VM_MODULE_MACHINE_H
#define LATHE_VM_MODULE_MACHINE_H
#include "machine.h"

/* A machine for an executable that `source` holds; not yet initialised. */
int32_t vm_machine_new(vm_module *source, const vm_executable *x, lathe_value *out, lathe_error *error);
/* The machine in a value; NULL: it is none, and the error says so. */
vm_machine *vm_machine_of(const lathe_value *v, lathe_error *error);
#endif
