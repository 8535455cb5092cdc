/* boundary.h: values that enter and leave a machine. A value that is borrowed from a caller is wrapped on the way in,
 * and copied before it would come out again.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef LATHE_VM_BOUNDARY_H
#define LATHE_VM_BOUNDARY_H
#include "machine.h"

/* An argument of a call, as a value that the machine owns during the call. */
int32_t vm_boundary_in(vm_machine *m, const lathe_value *arg, lathe_value *out, lathe_error *error);
/* The same for a value that stays behind the call: borrowed tensors are copied. */
int32_t vm_boundary_keep(vm_machine *m, const lathe_value *arg, lathe_value *out, lathe_error *error);
/* Makes a result the caller's own. */
int32_t vm_boundary_out(vm_machine *m, lathe_value *v, lathe_error *error);
#endif
