/* SPDX-License-Identifier: Apache-2.0 */
/* Portable modules without a C compiler: runs the kernels of modules that were compiled with --with-interpreter from
 * the loops in them (docs/reference/module.md). A program that embeds the virtual machine (lathe_vm.h) links
 * lathe_loops beside lathe_vm, and says so to the runtime:
 *
 *     lathe_loops *loops;
 *     lathe_loops_create(NULL, NULL, &loops, &error);
 *     options.interpret = lathe_loops_interpret;
 *     options.interpret_user = loops;
 *     lathe_runtime_create(&options, &runtime, &error); */
#ifndef LATHE_LOOPS_H
#define LATHE_LOOPS_H
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct lathe_error; /* lathe_vm.h */

/* The loops that were read so far. Several runtimes may share one, and several threads use it at once. */
typedef struct lathe_loops lathe_loops;

/* Returns LATHE_OK or LATHE_E_MEMORY. Small pieces of memory that later calls need are not asked for one by one: when
 * there are none, `out_of_memory` is called, which must not return; NULL: the program ends with a message (abort). */
int32_t lathe_loops_create(void (*out_of_memory)(void *context, size_t size), void *context, lathe_loops **out,
                           struct lathe_error *error);
/* After the runtimes that use it. May be NULL. */
void lathe_loops_destroy(lathe_loops *loops);

/* lathe_options.interpret. `text` is read when it comes for the first time. Returns LATHE_OK, with what the kernel
 * ended with in *out_status; LATHE_E_FORMAT: the text is damaged; LATHE_E_NAME: it has no such kernel;
 * LATHE_E_ARGUMENT; LATHE_E_KERNEL: the loops leave the memory that they got; LATHE_E_MEMORY. */
int32_t lathe_loops_interpret(void *loops, const char *text, size_t size, const char *kernel, void *const *data,
                              const size_t *bytes, uint32_t n, int32_t *out_status, struct lathe_error *error);

#ifdef __cplusplus
}
#endif
#endif
