/* error.h: how functions of the virtual machine fail: a code, a sentence, and the place in front of it.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef LATHE_VM_ERROR_H
#define LATHE_VM_ERROR_H
#include "lathe_vm.h"

#if defined(__GNUC__)
#define VM_FORMAT(at, from) __attribute__((format(printf, at, from)))
#else
#define VM_FORMAT(at, from)
#endif

/* Returns `code`; error may be NULL. */
int32_t vm_fail(lathe_error *error, int32_t code, const char *format, ...) VM_FORMAT(3, 4);
/* LATHE_E_MEMORY: bytes that could not be had. */
int32_t vm_no_memory(lathe_error *error, size_t bytes);
/* Puts "place: " in front of an error's sentence, and returns its code. */
int32_t vm_at(lathe_error *error, int32_t code, const char *format, ...) VM_FORMAT(3, 4);
#endif
