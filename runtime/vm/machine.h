/* machine.h: a machine: an executable that is initialised for devices, and what a running call needs. It is a module
 * too: its functions are those of the executable.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef LATHE_VM_MACHINE_H
#define LATHE_VM_MACHINE_H
#include "executable.h"
#include "modules.h"

#include <pthread.h>

enum { VM_DEPTH_MAX = 2048 };

typedef struct vm_machine vm_machine;

/* A function of the machine itself: what a row of builtins.def does. */
typedef int32_t (*vm_builtin)(vm_machine *m, const lathe_value *args, int32_t n, lathe_value *result,
                              lathe_error *error);

/* Who answers a call of function i of the executable: one of the three. */
typedef struct vm_callee {
    const vm_func *func;
    vm_builtin builtin;
    lathe_value function;
} vm_callee;

/* Registers and arguments of one call, kept for the next one at this depth. */
typedef struct vm_frame {
    lathe_value *slots;
    size_t capacity;
} vm_frame;

/* What set_input, invoke_stateful and get_output keep for a function. */
typedef struct vm_state {
    lathe_value inputs, output; /* inputs: an array, or None */
} vm_state;

/* A function with its arguments, which save_function gave a name. */
typedef struct vm_saved {
    struct vm_saved *next;
    lathe_value inputs; /* an array */
    uint32_t function;
    bool returns;
    char name[];
} vm_saved;

/* Memory that keeps its value between calls (builtin_state.c). */
typedef struct vm_kept {
    lathe_value storage; /* None until it is wanted */
    int64_t bytes;
    bool begun; /* it holds what a call left, or begins with */
} vm_kept;

typedef struct vm_target {
    lathe_device device;
    vm_allocator *allocator;
} vm_target;

struct vm_machine {
    vm_module module;
    vm_module *source; /* of the executable */
    const vm_executable *x;
    pthread_mutex_t lock; /* one call at a time; a thread may call again from within */
    vm_target *targets;   /* the CPU is the last one; NULL until the machine is initialised */
    uint32_t target_count;
    vm_callee *callees;
    lathe_value *constants; /* None until they are wanted */
    vm_state *states;
    vm_saved *saved;
    vm_kept *kept;
    uint32_t kept_count;
    vm_frame *frames;
    uint32_t frame_count, depth;
    bool placed; /* the error says where it was */
};

/* The allocator of a device by its number in vm_initialization; -1 is the CPU. LATHE_E_FORMAT. */
int32_t vm_machine_target(vm_machine *m, int64_t index, vm_target *out, lathe_error *error);
vm_allocator *vm_machine_host(vm_machine *m);
/* The allocator of a device; NULL: the machine was not initialised for it. */
vm_allocator *vm_machine_allocator(vm_machine *m, lathe_device device);

/* Runs function i; args are values of this machine. */
int32_t vm_machine_call(vm_machine *m, uint32_t i, const lathe_value *args, int32_t n, lathe_value *result,
                        lathe_error *error);
/* Function i as a value, which keeps the machine. Calls of it from outside of the machine copy what they must. */
int32_t vm_machine_function(vm_machine *m, uint32_t i, lathe_value *out, lathe_error *error);
#endif
