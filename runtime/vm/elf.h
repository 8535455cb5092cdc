/* elf.h: one data symbol out of an ELF file of any 64-bit little-endian machine, without loading it.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef LATHE_VM_ELF_H
#define LATHE_VM_ELF_H
#include "reader.h"

/* The bytes from the dynamic symbol `name` on to the end of the segment's file content: the symbol's own size may be
 * 0. LATHE_E_NAME: the file has a table of dynamic symbols, and none of that name. */
int32_t vm_elf_symbol(vm_bytes file, const char *name, vm_bytes *out, lathe_error *error);
/* Does it define a function, in a segment of machine code, whose dynamic symbol begins with `prefix`? The tree of
 * modules is none. */
bool vm_elf_has_function(vm_bytes file, const char *prefix);
/* A shared object whose tables and segments lie in the file, one behind the other in memory. The system's loader looks
 * at none of that: a file that was cut off or whose header was changed ends the process there. */
bool vm_elf_is_whole(vm_bytes file);
/* The e_machine of the file; 0: not an ELF file. */
uint16_t vm_elf_machine(vm_bytes file);
#endif
