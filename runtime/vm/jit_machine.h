/* jit_machine.h: what the run-time compiler must know of the machine that the program runs on.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef LATHE_VM_JIT_MACHINE_H
#define LATHE_VM_JIT_MACHINE_H
#include "jit.h"

/* Its name as compilers have it in their targets ("x86_64"), "" when it is none that modules are known for. */
const char *jit_machine_name(void);
/* Its number in ELF files (e_machine), 0 when the name is "". */
uint32_t jit_machine_elf(void);
/* Bits of a vector register where machines of one instruction set differ in it (riscv64); 0 elsewhere and without the
 * V extension. */
uint32_t jit_machine_vlen(void);
/* Processors that this program may use, at least 1. */
uint32_t jit_machine_cores(void);
#endif
