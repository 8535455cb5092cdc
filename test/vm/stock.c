/* stock.c: machine code as stock modules have it, for test/py/vm.py: functions by tvm-ffi's calling convention, which
 * call the runtime by name, by pointers that the loader fills, and by their imports. The container is included from the
 * file CONTAINER.
 * SPDX-License-Identifier: Apache-2.0 */
#include <stddef.h>
#include <stdint.h>

typedef struct any {
    int32_t type;
    uint32_t zero;
    union {
        int64_t i;
        double f;
        void *p;
    } u;
} any;

typedef struct tensor {
    void *data;
    int32_t device_type, device_id, ndim;
    uint8_t code, bits;
    uint16_t lanes;
    int64_t *shape, *strides;
    uint64_t byte_offset;
} tensor;

struct env {
    void *sync;
    int32_t tasks;
};

void TVMFFIErrorSetRaisedFromCStrParts(const char *kind, const char **parts, int32_t n);
void TVMFFIErrorSetRaisedFromCStr(const char *kind, const char *message);
int TVMFFIFunctionCall(void *function, any *args, int32_t n, any *result);
int TVMFFIEnvModLookupFromImports(void *library, const char *name, void **out);
void *TVMBackendAllocWorkspace(int device, int id, uint64_t bytes, int code, int bits);
int TVMBackendFreeWorkspace(int device, int id, void *p);

void *__tvm_ffi__library_ctx;
int (*__TVMBackendParallelLaunch)(int (*task)(int, struct env *, void *), void *data, int tasks);
int (*__TVMFFIHandleInitOnce)(void **at, int (*init)(void **out));

__asm__(".section .rodata\n.globl __tvm_ffi__library_bin\n.type __tvm_ffi__library_bin, %object\n"
        "__tvm_ffi__library_bin:\n.incbin \"" CONTAINER "\"\n.size __tvm_ffi__library_bin, . - __tvm_ffi__library_bin\n"
        ".previous\n");

static float *floats(const any *a)
{
    const tensor *t = a->type == 70 ? (const tensor *)((const char *)a->u.p + 24) : a->u.p;
    return (float *)((char *)t->data + t->byte_offset);
}

/* (x, y): y = 2 x for 4 numbers. */
int __tvm_ffi_twice(void *self, const any *args, int32_t n, any *result)
{
    if (n != 2) {
        const char *parts[] = {"twice takes ", "2", " arguments", NULL};
        TVMFFIErrorSetRaisedFromCStrParts("TypeError", parts, 4);
        return -1;
    }
    float *work = TVMBackendAllocWorkspace(1, 0, 16, 2, 32);
    if (!work || (uintptr_t)work % 64 != 0)
        return -1;
    for (int i = 0; i < 4; i++)
        work[i] = 2 * floats(&args[0])[i];
    for (int i = 0; i < 4; i++)
        floats(&args[1])[i] = work[i];
    return TVMBackendFreeWorkspace(1, 0, work);
}

int __tvm_ffi_silent(void *self, const any *args, int32_t n, any *result)
{
    return 7;
}

/* (n) -> n + 1, and what it raises stays no error when it ends well. */
int __tvm_ffi_next_int(void *self, const any *args, int32_t n, any *result)
{
    TVMFFIErrorSetRaisedFromCStr("ValueError", "this was handled");
    *result = (any){1, 0, {args[0].u.i + 1}};
    return 0;
}

static int mark(int task, struct env *env, void *data)
{
    ((float *)data)[task] = (float)(task + env->tasks);
    if (env->tasks == 3 && task == 2) {
        TVMFFIErrorSetRaisedFromCStr("ValueError", "task 2 of 3");
        return -1;
    }
    return 0;
}

/* (x, tasks) */
int __tvm_ffi_parallel(void *self, const any *args, int32_t n, any *result)
{
    return __TVMBackendParallelLaunch(mark, floats(&args[0]), (int)args[1].u.i);
}

static int look(void **out)
{
    return TVMFFIEnvModLookupFromImports(__tvm_ffi__library_ctx, "triple", out);
}

/* (x, y): by a kernel of an import, which is C source. */
int __tvm_ffi_imported(void *self, const any *args, int32_t n, any *result)
{
    static void *handle;
    if (__TVMFFIHandleInitOnce(&handle, look) != 0)
        return -1;
    return TVMFFIFunctionCall(handle, (any *)args, n, result);
}

int __tvm_ffi_lost(void *self, const any *args, int32_t n, any *result)
{
    void *handle;
    return TVMFFIEnvModLookupFromImports(__tvm_ffi__library_ctx, "nobody", &handle);
}

/* Constants of a const_loader: init gets them before get is called for the first time. */
static const any *constants;
static int64_t count;

int __tvm_ffi___init_get_constant(void *self, const any *args, int32_t n, any *result)
{
    const char *cell = (const char *)args[0].u.p + 24;
    static any kept[4];
    count = ((const int64_t *)(const void *)cell)[1];
    for (int64_t i = 0; i < count && i < 4; i++)
        kept[i] = (*(any *const *)(const void *)cell)[i];
    constants = kept;
    return 0;
}

/* (i, y): constant i to y. */
int __tvm_ffi_get_constant(void *self, const any *args, int32_t n, any *result)
{
    if (!constants || args[0].u.i >= count) {
        TVMFFIErrorSetRaisedFromCStr("ValueError", "no such constant");
        return -1;
    }
    for (int i = 0; i < 4; i++)
        floats(&args[1])[i] = floats(&constants[args[0].u.i])[i];
    return 0;
}
