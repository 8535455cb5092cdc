/* runtime.h: what a runtime holds. A runtime is an object. The objects that were made in it keep it alive.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef LATHE_VM_RUNTIME_H
#define LATHE_VM_RUNTIME_H
#include "error.h"
#include "memory.h"
#include "pool.h"

struct lathe_runtime {
    lathe_object head;
    lathe_options options; /* its texts are the runtime's own copies */
    char *texts[3];
    vm_devices devices;
    vm_pool *pool;
};

/* One line to the log. */
void vm_log(const lathe_runtime *rt, const char *format, ...) VM_FORMAT(2, 3);
/* One line of any length. */
void vm_log_text(const lathe_runtime *rt, const char *line);
#endif
