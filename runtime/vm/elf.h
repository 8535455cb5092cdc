/* elf.h: one data symbol out of an ELF file of any 64-bit little-endian machine, without loading it.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef LATHE_VM_ELF_H
#define LATHE_VM_ELF_H
#include "reader.h"

/* The bytes from the dynamic symbol `name` on to the end of the segment's file content: the symbol's own size may be
 * 0. */
int32_t vm_elf_symbol(vm_bytes file, const char *name, vm_bytes *out, lathe_error *error);
/* Does it define a dynamic symbol that begins with `prefix`? */
bool vm_elf_has_prefix(vm_bytes file, const char *prefix);
/* The e_machine of the file; 0: not an ELF file. */
uint16_t vm_elf_machine(vm_bytes file);
#endif
