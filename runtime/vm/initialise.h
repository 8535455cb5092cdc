/* initialise.h: from an executable to a machine.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef LATHE_VM_INITIALISE_H
#define LATHE_VM_INITIALISE_H
#include "machine.h"

/* args: triples of device type, device id, kind of allocator, the CPU's last. Finds every function that the executable
 * calls. A machine that cannot be initialised stays as it was. */
int32_t vm_initialise(vm_machine *m, const lathe_value *args, int32_t n, lathe_error *error);
/* Gives back what vm_initialise made. */
void vm_initialise_undo(vm_machine *m);
#endif
