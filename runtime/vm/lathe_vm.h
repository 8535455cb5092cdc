/* SPDX-License-Identifier: Apache-2.0 */
/* lathe_vm.h: the virtual machine of portable modules: load a module, initialize it for a device, call its functions.
 * Kernels are compiled from their C source where the module runs (docs/reference/module.md).
 *
 *     lathe_LoadFromFile(runtime, "mobilenet.so", &library, &error);
 *     lathe_start(&library, &vm, &error);
 *     lathe_GetFunction(&vm, "main", &run, &error);
 *     lathe_call(&run, inputs, n, &result, &error);
 *
 * Every function that can fail returns LATHE_OK or another row of LATHE_STATUSES, and explains itself in *error, which
 * may be NULL. There is no global state: runtimes, modules and machines exist side by side. A runtime and what
 * was loaded may be used by several threads at once; one machine runs one call at a time, and others wait.
 * Loading a module and calling it runs its code: load what you trust. With no_jit, no machine code runs: neither that
 * of a file nor that of compiled source. */
#ifndef LATHE_VM_H
#define LATHE_VM_H

#include "lathe_tensor.h"

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define LATHE_VM_VERSION 1

/* X(name, value, text) */
#define LATHE_STATUSES(X)                                                                 \
    X(LATHE_OK, 0, "no error")                                                            \
    X(LATHE_E_ARGUMENT, -1, "a call with the wrong number or kind of arguments")          \
    X(LATHE_E_MEMORY, -2, "no memory")                                                    \
    X(LATHE_E_FILE, -3, "a file cannot be read or written")                               \
    X(LATHE_E_FORMAT, -4, "not a module, or a damaged one")                               \
    X(LATHE_E_UNSUPPORTED, -5, "a module for another version, or of a kind that is not known") \
    X(LATHE_E_NAME, -6, "nothing has that name")                                          \
    X(LATHE_E_SHAPE, -7, "a tensor's shape, type or device is not what the function takes") \
    X(LATHE_E_KERNEL, -8, "a kernel ended with an error")                                 \
    X(LATHE_E_COMPILER, -9, "the kernels could not be compiled")                          \
    X(LATHE_E_REFUSED, -10, "the options forbid it")                                      \
    X(LATHE_E_STOPPED, -11, "the program asked for an end")
enum lathe_status {
#define LATHE_STATUS_ROW(name, value, text) name = value,
    LATHE_STATUSES(LATHE_STATUS_ROW)
#undef LATHE_STATUS_ROW
        LATHE_STATUS_END
};

typedef struct lathe_error {
    int32_t code; /* enum lathe_status */
    char message[1020];
} lathe_error;

/* --- values: the layout and the numbers of TVMFFIAny (Apache tvm-ffi, C ABI 0.1), so that kernels of either make take
 * them --- */
enum lathe_type {
    LATHE_NONE = 0,
    LATHE_INT = 1,
    LATHE_BOOL = 2,
    LATHE_FLOAT = 3,
    LATHE_POINTER = 4,
    LATHE_DTYPE = 5,
    LATHE_DEVICE = 6,
    LATHE_DLTENSOR = 7,   /* borrowed: of a caller, during a call */
    LATHE_RAW_STRING = 8, /* borrowed */
    LATHE_SMALL_STRING = 11, /* up to 7 bytes */
    /* from here on reference-counted objects */
    LATHE_OBJECT = 64,
    LATHE_STRING = 65,
    LATHE_FUNCTION = 68,
    LATHE_SHAPE = 69,
    LATHE_TENSOR = 70,
    LATHE_ARRAY = 71, /* what a function with several results returns */
    LATHE_MODULE = 73
};

typedef struct lathe_value {
    int32_t type; /* enum lathe_type */
    uint32_t small_length;
    union {
        int64_t v_int;
        double v_float;
        void *v_pointer;
        const char *v_string;
        struct lathe_object *v_object;
        lathe_dtype v_dtype;
        lathe_device v_device;
        lathe_dltensor *v_tensor;
        char v_bytes[8];
    } u;
} lathe_value;

/* Gives back what a value holds, and makes the value None. If a function below stores a value, you have to release
 * it. */
void lathe_release(lathe_value *v);
/* Another reference to the same object. */
lathe_value lathe_retain(const lathe_value *v);
/* The tensor in a value of type LATHE_DLTENSOR or LATHE_TENSOR, valid as long as the value; else NULL. */
const lathe_dltensor *lathe_tensor_of(const lathe_value *v);
/* The text of a string of any kind, valid as long as the value; else NULL. */
const char *lathe_string_of(const lathe_value *v);
/* Elements of an array (LATHE_ARRAY); *out is borrowed. 0 for other values. */
size_t lathe_array_size(const lathe_value *v);
int32_t lathe_array_get(const lathe_value *v, size_t i, lathe_value *out, lathe_error *error);


/* Values to pass to functions. You have to release each of them. An empty list may be NULL. */
/* LATHE_SHAPE, for functions that take extents. */
int32_t lathe_shape_new(const int64_t *dims, size_t n, lathe_value *out, lathe_error *error);
/* Its dimensions, valid as long as the value; NULL and 0 if it is not a shape. */
const int64_t *lathe_shape_of(const lathe_value *v, size_t *out_n);
/* A tuple (LATHE_ARRAY) of n values, which it retains. Borrowed values, LATHE_DLTENSOR and LATHE_RAW_STRING, are
 * refused, because the tuple may live longer than a call. */
int32_t lathe_array_new(const lathe_value *elements, size_t n, lathe_value *out, lathe_error *error);
/* LATHE_TENSOR, without gaps, in memory of its own on a device of the runtime's table. The bytes at `data` are copied;
 * if it is NULL, the tensor has zeros. */
typedef struct lathe_runtime lathe_runtime;
int32_t lathe_tensor_new(lathe_runtime *rt, lathe_device device, lathe_dtype dtype, const int64_t *dims, int32_t ndim,
                         const void *data, lathe_value *out, lathe_error *error);

/* --- the runtime: options, devices, worker threads, the cache of compiled kernels --- */

typedef struct lathe_options {
    size_t size;              /* sizeof(lathe_options): more may follow in later versions */
    uint32_t workers;         /* threads that work on a kernel, the caller among them; 0: as many as the machine has */
    int32_t no_jit;           /* not 0: machine code is refused, source too, or interpreted where it can be */
    int32_t trace;            /* not 0: `log` gets what is compiled and called */
    const char *cache_dir;    /* NULL: $XDG_CACHE_HOME/lathe, else $HOME/.cache/lathe; "": none is kept */
    uint64_t cache_bytes;     /* the oldest entries go when it is larger; 0: 1 GiB */
    const char *keep_sources; /* a folder that gets the C source and the object; NULL: $LATHE_KEEP_SOURCES; "": none */
    const char *compiler;     /* NULL: $TVM_RVV_COMPILER, else $CC, else cc; split at spaces, no shell */
    uint32_t compile_seconds; /* a compiler that takes longer is stopped; 0: $LATHE_COMPILE_SECONDS, else 600 */
    void (*log)(void *user, const char *line); /* NULL: standard error */
    void *user;
    /* For a program that cleans up when a signal ends it: what compiling has outside of the process. That is a folder
     * (`path`, pid 0), or a process that leads a group of its own (pid, path NULL). there: 1 from now on, 0 no longer.
     * Signals of the calling thread wait meanwhile. NULL: nobody is told. */
    void (*outside)(void *user, const char *path, int32_t pid, int32_t there);
    /* Runs a kernel from the text of the module's loops (docs/reference/module.md), if there is no compiler or no_jit
     * forbids one. It may use bytes[i] bytes at data[i]. *out_status is the status of the kernel, 0 for success.
     * Several threads may call it at once. NULL: modules need a compiler. <lathe/loops.h> has such a function. */
    int32_t (*interpret)(void *interpret_user, const char *loops, size_t size, const char *kernel, void *const *data,
                         const size_t *bytes, uint32_t n, int32_t *out_status, lathe_error *error);
    void *interpret_user;
    /* Asked often while compilers run. A result other than 0 ends them, and the call fails with LATHE_E_STOPPED. NULL:
     * nothing ends them. */
    int32_t (*stop)(void *user);
} lathe_options;

/* options may be NULL. */
int32_t lathe_runtime_create(const lathe_options *options, lathe_runtime **out, lathe_error *error);
/* Call it after all values that came from the runtime were released. */
void lathe_runtime_destroy(lathe_runtime *rt);
/* Threads that work on a kernel from the next call on. */
int32_t lathe_set_workers(lathe_runtime *rt, uint32_t workers, lathe_error *error);

/* Device types of DLPack, and one of Lathe: X(name, number). The CPU and my_device have a row in the device table from
 * the beginning. ext_dev has one if a program registers it, else the row of the process, if a library such as libvta
 * has the function const lathe_device_api *lathe_device_api_ext_dev(void). */
#define LATHE_DEVICES(X)        \
    X(LATHE_CPU, 1)             \
    X(LATHE_EXT_DEV, 12)        \
    X(LATHE_MY_DEVICE, 101) /* kernels from source on this machine's processor; its memory is the CPU's */
enum lathe_device_type {
#define LATHE_DEVICE_ROW(name, number) name = number,
    LATHE_DEVICES(LATHE_DEVICE_ROW)
#undef LATHE_DEVICE_ROW
        LATHE_DEVICE_END
};

/* A device's memory. Functions return 0, or an enum lathe_status. `user` is handed to each of them. */
typedef struct lathe_device_api {
    const char *name;
    int32_t type;
    void *user;
    int32_t (*alloc)(void *user, int32_t id, size_t bytes, size_t align, void **out);
    void (*free)(void *user, int32_t id, void *p);
    /* Between the device and the CPU, or within either. */
    int32_t (*copy)(void *user, const void *from, size_t from_offset, lathe_device from_device, void *to,
                    size_t to_offset, lathe_device to_device, size_t bytes);
    int32_t (*sync)(void *user, int32_t id); /* NULL: nothing to wait for */
    /* Is p, which nobody has freed, still memory of the device? Pooled allocators ask before they use it again, because
     * a device may have been made anew. 0: no, and nobody needs to free it. NULL: it always is. */
    int32_t (*alive)(void *user, int32_t id, const void *p);
} lathe_device_api;
/* Adds a row to the device table. The row is copied. It replaces another row of the same type. Call it before modules
 * are initialized. */
int32_t lathe_device_register(lathe_runtime *rt, const lathe_device_api *device, lathe_error *error);
/* The type of a device by name, or LATHE_E_NAME. */
int32_t lathe_device_find(const lathe_runtime *rt, const char *name, int32_t *out_type);

/* --- modules and functions --- */
/* Loads a module file: one of Lathe (for any machine), one of Apache TVM 0.22 and later (for this machine, if it holds
 * machine code), or a shared object of this machine with functions of tvm-ffi's C ABI (__tvm_ffi_NAME). A file with
 * such functions goes to the system's loader under its own name, and the loader runs its constructors. Other files are
 * only read. *out is of type LATHE_MODULE. */
int32_t lathe_LoadFromFile(lathe_runtime *rt, const char *path, lathe_value *out, lathe_error *error);
/* The same from memory, which is copied. `name` is for messages. No machine code. */
int32_t lathe_LoadFromBytes(lathe_runtime *rt, const char *name, const void *bytes, size_t size, lathe_value *out,
                            lathe_error *error);
/* A function of a module, or of its imports if the module has none of that name; else LATHE_E_NAME. The function keeps
 * the module alive. A library has "vm_load_executable". What this returns has "vm_initialization", which takes triples
 * of ints (device type, device id, allocator: 1 naive, 2 pooled): a first device, those of lathe_module_devices, the
 * CPU. After that it has the functions of the model, "main" first of all, and "set_input", "invoke_stateful",
 * "get_output", "get_output_arity", "get_function_arity", "get_function_param_name", "save_function". Source modules
 * have their kernels. */
int32_t lathe_GetFunction(const lathe_value *module, const char *name, lathe_value *out, lathe_error *error);
/* args: n borrowed values. You have to release *result. */
int32_t lathe_call(const lathe_value *function, const lathe_value *args, int32_t n, lathe_value *result,
                   lathe_error *error);
/* lathe_GetFunction and lathe_call in one: looks the function up, calls it, and gives it back. *result is None after an
 * error. */
int32_t lathe_call_named(const lathe_value *module, const char *name, const lathe_value *args, int32_t n,
                         lathe_value *result, lathe_error *error);

/* A machine of a loaded library, initialized for all devices that it needs: my_device (the CPU if the library has
 * machine code), lathe_module_devices, the CPU. Each keeps its memory for the next call. */
int32_t lathe_start(const lathe_value *library, lathe_value *out_vm, lathe_error *error);

/* What a function of an initialized machine takes, for programs that run modules they do not know: the number of
 * arguments, their names, and the type and shape that the function checks. A dimension that it does not fix is -1.
 * LATHE_E_NAME: there is no such function. A dtype of {0, 0, 0} and ndim -1 mean that the function does not say. If
 * *out_ndim is more than max_ndim, out_shape has only the first ones. */
int32_t lathe_function_arity(const lathe_value *vm, const char *function, int32_t *out, lathe_error *error);
int32_t lathe_function_parameter(const lathe_value *vm, const char *function, int32_t i, const char **out_name,
                                 lathe_dtype *out_dtype, int32_t *out_ndim, int64_t *out_shape, int32_t max_ndim,
                                 lathe_error *error);
/* The kind of that argument: LATHE_TENSOR; LATHE_SHAPE, whose dimensions are then *out_ndim and out_shape; or
 * LATHE_NONE if the function does not say. */
int32_t lathe_function_parameter_type(const lathe_value *vm, const char *function, int32_t i, int32_t *out_type,
                                      lathe_error *error);
/* Devices, apart from the first one and the CPU, in whose memory kernels of a module work. Their types go to `out`, at
 * most `max` of them, in the order in which vm_initialization takes them between these two. Returns how many there are.
 * Each needs a row of the device table. */
int32_t lathe_module_devices(const lathe_value *module, int32_t *out, int32_t max);
/* The C source of a source module, or of the first one among the imports; NULL if there is none. Valid as long as the
 * module. */
const char *lathe_source(const lathe_value *module);

/* The text that a function without arguments returns, such as lathe_report. It is read from the code of the module's
 * executable, and nothing of it runs. *out is a string. LATHE_E_NAME: there is no such function. LATHE_E_FORMAT: it is
 * not a function that only returns a text. */
int32_t lathe_text(const lathe_value *module, const char *function, lathe_value *out, lathe_error *error);

/* Compares a metadata file, {"inputs": [{"name", "shape", "dtype", "device"}, ...]}, with what "main" takes: number,
 * names, types and shapes, as far as the module says. Devices must be in the runtime's table ("device" may be missing).
 * LATHE_E_FORMAT, LATHE_E_NAME, LATHE_E_SHAPE. */
int32_t lathe_check_metadata(lathe_runtime *rt, const lathe_value *vm, const char *path, lathe_error *error);

/* --- for programs that run modules they do not know --- */
/* Makes inputs for main: tensors without gaps on the first device of the machine. Types and shapes are those of the
 * module. An extent that the module leaves open comes from the metadata file (NULL or "": it is 1). If the module says
 * nothing about an input, the file must. Floats are -1, -0.875 ... 1 and again, other types 0, 1, 0, 1. At most `max`
 * values go to `out`, *out_n of them, and you have to release them. The others are None, and all are after an error.
 * LATHE_E_UNSUPPORTED: a type that is not a number, or an input that neither the module nor the file describes. Also
 * the errors of lathe_check_metadata. */
int32_t lathe_sample_inputs(lathe_runtime *rt, const lathe_value *vm, const char *metadata, lathe_value *out,
                            int32_t max, int32_t *out_n, lathe_error *error);
/* A value as text, with a line for each element of an array. For a tensor it has the type, the shape, the range without
 * NaN, and the first 8 values ("float32[1, 10], 0.01 to 0.9: 0.1 0.2 ..."). Values in memory of other devices are not
 * read. The text is cut to `size` with its zero, as snprintf does, and the length that it would have is returned. */
size_t lathe_describe(const lathe_value *value, char *text, size_t size);

const char *lathe_status_text(int32_t status);

#ifdef __cplusplus
}
#endif
#endif
