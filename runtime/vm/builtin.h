/* builtin.h: the machine's own functions. builtins.def has the list.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef LATHE_VM_BUILTIN_H
#define LATHE_VM_BUILTIN_H
#include "machine.h"

/* NULL: there is none of that name. */
vm_builtin vm_builtin_find(const char *name);

/* A check failed, and the error says how: puts the context that the check was written with behind it. LATHE_E_SHAPE. */
int32_t vm_builtin_wrong(const lathe_value *context, lathe_error *error);

#define X(name, function)                                                                                              \
    int32_t vm_builtin_##function(vm_machine *m, const lathe_value *args, int32_t n, lathe_value *result,             \
                                  lathe_error *error);
#include "builtins.def"
#undef X
#endif
