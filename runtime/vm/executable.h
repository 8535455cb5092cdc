/* executable.h: a Relax VM executable, read and checked: whatever it holds, the machine can run it without looking
 * again. Its constants stay in the file until a machine wants them.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef LATHE_VM_EXECUTABLE_H
#define LATHE_VM_EXECUTABLE_H
#include "reader.h"

#include "abi/module.h"

typedef struct vm_func {
    enum module_function_kind kind;
    char *name;
    uint32_t start, end; /* instructions */
    uint32_t params, registers; /* registers: those that are used */
    uint32_t most_args; /* of its calls */
    char **param_names; /* NULL: it has none */
} vm_func;

typedef struct vm_constant {
    enum module_constant_tag tag;
    union {
        int64_t v_int;
        double v_float;
        lathe_dtype v_dtype;
        vm_bytes text;
        struct {
            const int64_t *dims; /* in vm_executable.dims */
            size_t rank;
            lathe_dtype dtype;
            vm_bytes data;
        } shaped; /* shape, and tensor */
    } u;
} vm_constant;

typedef struct vm_executable {
    vm_func *functions;
    uint32_t function_count;
    vm_constant *constants;
    uint32_t constant_count;
    const int64_t **code; /* the words of each instruction */
    uint32_t instructions;
    int64_t *words;
    size_t word_count;
    int64_t *dims;
    char **names; /* of functions and parameters: memory of the executable */
    size_t name_count;
} vm_executable;

/* The bytes must stay as long as the executable. */
int32_t vm_executable_read(vm_bytes bytes, vm_executable *out, lathe_error *error);
void vm_executable_free(vm_executable *x);
/* NULL: none. */
const vm_func *vm_executable_find(const vm_executable *x, const char *name);

/* An argument of an instruction, taken apart. */
enum module_arg_kind vm_arg_kind(int64_t word);
int64_t vm_arg_value(int64_t word);

/* verify.c: checks all code, and counts registers and arguments. */
int32_t vm_executable_verify(vm_executable *x, lathe_error *error);
#endif
