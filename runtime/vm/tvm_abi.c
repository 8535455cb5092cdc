/* tvm_abi.c: the functions that machine code of stock modules calls by name, exported under their names.
 * SPDX-License-Identifier: Apache-2.0 */
#if defined(__linux__)
#define _GNU_SOURCE /* RTLD_DEFAULT */
#endif
#include "tvm_abi.h"

#include "error.h"
#include "value.h"

#include <dlfcn.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Of one thread: the error that machine code raised, and the threads that it may use. */
static _Thread_local struct {
    bool raised;
    char text[1000];
    vm_pool *pool;
} thread;

struct parallel_env {
    void *sync;
    int32_t tasks;
};
typedef int (*parallel_task)(int task, struct parallel_env *env, void *data);

#define EXPORTED __attribute__((visibility("default")))
EXPORTED void TVMFFIErrorSetRaisedFromCStr(const char *kind, const char *message);
EXPORTED void TVMFFIErrorSetRaisedFromCStrParts(const char *kind, const char **parts, int32_t n);
EXPORTED int TVMFFIFunctionCall(void *function, lathe_value *args, int32_t n, lathe_value *result);
EXPORTED int TVMFFIEnvModLookupFromImports(void *library, const char *name, void **out);
EXPORTED int TVMFFIHandleInitOnce(void **at, int (*init)(void **out));
EXPORTED void *TVMBackendAllocWorkspace(int device, int id, uint64_t bytes, int code, int bits);
EXPORTED int TVMBackendFreeWorkspace(int device, int id, void *p);
EXPORTED int TVMBackendParallelLaunch(parallel_task task, void *data, int tasks);
EXPORTED int TVMBackendParallelBarrier(int task, struct parallel_env *env);

/* --- errors --- */

void TVMFFIErrorSetRaisedFromCStrParts(const char *kind, const char **parts, int32_t n)
{
    size_t at = (size_t)snprintf(thread.text, sizeof thread.text, "%s: ", kind ? kind : "Error");
    for (int32_t i = 0; i < n && at < sizeof thread.text; i++)
        at += (size_t)snprintf(thread.text + at, sizeof thread.text - at, "%s", parts[i] ? parts[i] : "");
    thread.raised = true;
}

void TVMFFIErrorSetRaisedFromCStr(const char *kind, const char *message)
{
    TVMFFIErrorSetRaisedFromCStrParts(kind, &message, 1);
}

int vm_abi_raise(const lathe_error *error)
{
    TVMFFIErrorSetRaisedFromCStr("RuntimeError", error->message);
    return -1;
}

/* Where libtvm_ffi is in the process too, machine code may raise there: its error, in our text. */
static void take_foreign(void)
{
    static const char name[] = "TVMFFIErrorMoveFromRaised";
    void (*move)(lathe_object **out);
    void *address = dlsym(RTLD_DEFAULT, name);
    lathe_object *error = NULL;
    if (!address)
        return;
    memcpy(&move, &address, sizeof move);
    move(&error);
    if (!error)
        return;
    /* The error's cell: kind, message, each data and size. */
    const struct { lathe_object head; const char *kind; size_t kind_size; const char *text; size_t size; } *e =
        (const void *)error;
    (void)snprintf(thread.text, sizeof thread.text, "%.*s: %.*s", (int)(e->kind_size < 100 ? e->kind_size : 100),
                   e->kind, (int)(e->size < sizeof thread.text ? e->size : sizeof thread.text), e->text);
    thread.raised = true;
    vm_object_release(error);
}

int32_t vm_abi_call(vm_safe_call function, void *self, vm_pool *pool, const lathe_value *args, int32_t n,
                    lathe_value *result, lathe_error *error)
{
    vm_pool *before = thread.pool;
    thread.pool = pool;
    thread.raised = false;
    *result = (lathe_value){0};
    int code = function(self, args, n, result);
    thread.pool = before;
    if (code == 0)
        return LATHE_OK;
    lathe_release(result);
    if (!thread.raised)
        take_foreign();
    if (!thread.raised)
        return vm_fail(error, LATHE_E_KERNEL, "ended with code %d and said nothing", code);
    thread.raised = false;
    return vm_fail(error, LATHE_E_KERNEL, "%s", thread.text);
}

/* --- calls --- */

int TVMFFIFunctionCall(void *function, lathe_value *args, int32_t n, lathe_value *result)
{
    vm_safe_call call;
    memcpy(&call, (const char *)function + sizeof(lathe_object), sizeof call);
    return call(function, args, n, result);
}

int TVMFFIEnvModLookupFromImports(void *library, const char *name, void **out)
{
    vm_abi_library *l = library;
    *out = l ? l->lookup(l, name) : NULL;
    if (*out)
        return 0;
    const char *parts[] = {"no imported module has a function ", name};
    TVMFFIErrorSetRaisedFromCStrParts("RuntimeError", parts, 2);
    return -1;
}

/* What `init` gives is borrowed, so two threads may both ask for it. */
int TVMFFIHandleInitOnce(void **at, int (*init)(void **out))
{
    void *found = __atomic_load_n(at, __ATOMIC_ACQUIRE), *none = NULL;
    if (found)
        return 0;
    int code = init(&found);
    if (code == 0)
        (void)__atomic_compare_exchange_n(at, &none, found, 0, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE);
    return code;
}

/* --- memory and threads --- */

void *TVMBackendAllocWorkspace(int device, int id, uint64_t bytes, int code, int bits)
{
    (void)device, (void)id, (void)code, (void)bits;
    return bytes > SIZE_MAX - 64 ? NULL : aligned_alloc(64, ((size_t)bytes + 63 + (bytes == 0)) / 64 * 64);
}

int TVMBackendFreeWorkspace(int device, int id, void *p)
{
    (void)device, (void)id;
    free(p);
    return 0;
}

struct launch {
    parallel_task task;
    void *data;
    struct parallel_env env;
    vm_pool *pool;
    atomic_flag failed; /* by the task whose text is kept */
    int code;
    bool raised;
    char text[sizeof thread.text];
};

/* On any thread of the pool. What it raises there would be lost. */
static void run_task(void *context, uint32_t part)
{
    struct launch *l = context;
    vm_pool *before = thread.pool;
    thread.pool = l->pool;
    thread.raised = false;
    int code = l->task((int)part, &l->env, l->data);
    thread.pool = before;
    if (code == 0 || atomic_flag_test_and_set(&l->failed))
        return;
    l->code = code;
    l->raised = thread.raised;
    memcpy(l->text, thread.text, sizeof l->text);
}

int TVMBackendParallelLaunch(parallel_task task, void *data, int tasks)
{
    struct launch l = {.task = task, .data = data, .pool = thread.pool, .failed = ATOMIC_FLAG_INIT};
    if (tasks <= 0)
        tasks = l.pool ? (int)vm_pool_workers(l.pool) : 1;
    l.env.tasks = tasks;
    if (l.pool)
        vm_pool_run(l.pool, run_task, &l, (uint32_t)tasks);
    else
        for (int i = 0; i < tasks; i++)
            run_task(&l, (uint32_t)i);
    if (l.code != 0 && l.raised) {
        thread.raised = true;
        memcpy(thread.text, l.text, sizeof thread.text);
    }
    return l.code;
}

/* Tasks share threads, so none can wait for another. */
int TVMBackendParallelBarrier(int task, struct parallel_env *env)
{
    if (env && env->tasks <= 1)
        return 0;
    (void)task;
    TVMFFIErrorSetRaisedFromCStr("RuntimeError", "a barrier between parallel tasks is not supported");
    return -1;
}

const char *vm_abi_variable(size_t i, void **out_address)
{
    typedef void (*any_function)(void);
    static const struct {
        const char *name;
        any_function function;
    } rows[] = {
#define ROW(f) {"__" #f, (any_function)f}
        ROW(TVMFFIErrorSetRaisedFromCStr), ROW(TVMFFIErrorSetRaisedFromCStrParts), ROW(TVMFFIFunctionCall),
        ROW(TVMFFIEnvModLookupFromImports), ROW(TVMFFIHandleInitOnce), ROW(TVMBackendAllocWorkspace),
        ROW(TVMBackendFreeWorkspace), ROW(TVMBackendParallelLaunch), ROW(TVMBackendParallelBarrier),
#undef ROW
    };
    if (i >= sizeof rows / sizeof *rows)
        return NULL;
    memcpy(out_address, &rows[i].function, sizeof *out_address);
    return rows[i].name;
}
