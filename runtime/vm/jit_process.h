/* jit_process.h: compilers as child processes: no shell, a process group each, a time limit, several at once.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef LATHE_VM_JIT_PROCESS_H
#define LATHE_VM_JIT_PROCESS_H
#include "lathe_vm.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum jit_ended {
    JIT_WAITING = 0,
    JIT_RUNNING,
    JIT_ENDED,       /* with `number` as its exit code */
    JIT_KILLED,      /* by the signal `number` */
    JIT_NOT_STARTED, /* `number`: errno */
    JIT_TOO_LONG,
    JIT_STOPPED, /* the program asked for it */
    JIT_GIVEN_UP /* because another one failed */
};

typedef struct jit_process {
    const char *path;        /* the program */
    char *const *argv;       /* ends with NULL */
    const char *log;         /* a new file: what it says, up to the first byte of 0 */
    const char *product;     /* the file that it is to make: where a program has its children waited for elsewhere, that
                              * file stands for their exit code; NULL: none */
    enum jit_ended how;
    int number;
    pid_t pid;
} jit_process;

/* Runs n processes, `at_once` of them at a time, for `seconds` in all; `folder` is for their temporary files.
 * True: all ended with 0. Processes that run when one fails or the time is over are killed with their groups.
 * options->outside is told of each of them. */
bool jit_processes_run(const lathe_options *options, jit_process *list, size_t n, size_t at_once, uint32_t seconds,
                       const char *folder);
#endif
