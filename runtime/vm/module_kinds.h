/* module_kinds.h: the kinds of modules that a file may hold, made from its bytes.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef LATHE_VM_MODULE_KINDS_H
#define LATHE_VM_MODULE_KINDS_H
#include "modules.h"

#define VM_FORBIDDEN "the module has kernels in C source, and no_jit forbids compiling"

/* Each makes a module without imports from `content`, which lies in `file`. */
int32_t vm_executable_module(lathe_runtime *rt, vm_file *file, vm_bytes content, vm_module **out, lathe_error *error);
int32_t vm_source_module(lathe_runtime *rt, vm_file *file, vm_bytes content, vm_module **out, lathe_error *error);
/* The machine code of the file itself; `content` is empty. */
int32_t vm_library_module(lathe_runtime *rt, vm_file *file, vm_bytes content, vm_module **out, lathe_error *error);
/* Constants of other modules: before a function of theirs runs for the first time, they are handed to the module. */
int32_t vm_constants_module(lathe_runtime *rt, vm_file *file, vm_bytes content, vm_module **out, lathe_error *error);

/* The C source of a source module with a zero behind it; NULL: `m` is of another kind, or there is no memory. */
const char *vm_source_text(vm_module *m);
/* Compiles the source, unless that was done; a path by which the code can be opened once more while `m` lives. */
int32_t vm_source_path(vm_module *m, const char **out, lathe_error *error);
/* Loops to interpret where the source cannot be compiled: a string, which is retained. Those of the first machine
 * stay. */
void vm_source_set_loops(vm_module *m, const lathe_value *text);
bool vm_source_has_loops(vm_module *m);
/* The devices whose memory its kernels want, by number, each once; at most VM_DEVICES_MAX. Returns how many. */
uint32_t vm_source_devices(const vm_module *m, int32_t out[VM_DEVICES_MAX]);
extern const vm_module_kind vm_source_kind;
#endif
