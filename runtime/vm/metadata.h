/* metadata.h: what else reads the file that says what a module's inputs are.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef LATHE_VM_METADATA_H
#define LATHE_VM_METADATA_H
#include "lathe_vm.h"

/* Gets input i as the file has it; a status other than LATHE_OK ends the reading. */
typedef int32_t (*vm_metadata_take)(void *user, int32_t i, lathe_dtype dtype, const int64_t *dims, size_t n,
                                    lathe_error *error);
/* lathe_check_metadata; each input goes to `take` as soon as it is compared. take may be NULL. */
int32_t vm_metadata_read(lathe_runtime *rt, const lathe_value *vm, const char *path, vm_metadata_take take, void *user,
                         lathe_error *error);
#endif
