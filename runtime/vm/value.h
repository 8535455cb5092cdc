/* value.h: the objects behind values, laid out as tvm-ffi's C ABI 0.1 has them, so that kernels of stock modules take
 * and count them: a header of 24 bytes, then what the type has; in front of it 16 bytes that tvm-ffi reserves.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef LATHE_VM_VALUE_H
#define LATHE_VM_VALUE_H
#include "reader.h"

typedef struct lathe_object {
    uint64_t counts; /* references, and in the upper half weak ones: one for all references together */
    int32_t type;
    uint32_t padding;
    union {
        void (*call)(void *self, int32_t flags);
        uint64_t bytes;
    } deleter;
} lathe_object;

/* --- what stands behind the header --- */
typedef struct vm_string {
    lathe_object head;
    const char *data; /* a zero follows */
    size_t size;
} vm_string;

typedef struct vm_shape {
    lathe_object head;
    const int64_t *data;
    size_t size;
} vm_shape;

typedef struct vm_array {
    lathe_object head;
    lathe_value *data;
    int64_t size, capacity;
    void (*data_deleter)(void *data);
} vm_array;

/* What is behind t only tensors of ours have: a value of type LATHE_TENSOR may be of another make. */
typedef struct vm_tensor {
    lathe_object head;
    lathe_dltensor t; /* strides are never NULL where there are dimensions */
    lathe_object *keeps; /* what owns the data */
    bool borrowed;       /* the data is a caller's: what a function returns is copied */
} vm_tensor;

/* An object of `size` bytes, all 0 but the header, with one reference; `destroy` gives back what it holds, and may be
 * NULL. NULL: no memory. */
void *vm_object_new(size_t size, int32_t type, void (*destroy)(void *self));
/* Was it made with that `destroy`? This tells objects apart that have no type of their own. */
bool vm_object_is(const lathe_object *o, void (*destroy)(void *self));
void vm_object_retain(lathe_object *o);
void vm_object_release(lathe_object *o); /* may be NULL */

/* The value of an object; takes over the caller's reference. */
lathe_value vm_value_of(void *object);
lathe_value vm_value_int(int64_t v);
bool vm_value_is_object(const lathe_value *v);
/* Puts `v` in the place of what *at held. */
void vm_value_set(lathe_value *at, lathe_value v);

/* The bytes of a string of any kind; data is NULL for other values. Lives as long as *v. */
vm_bytes vm_value_text(const lathe_value *v);
/* Int and bool. */
bool vm_value_to_int(const lathe_value *v, int64_t *out);
const char *vm_type_name(int32_t type);

/* Strings of up to 7 bytes lie in the value. */
int32_t vm_string_new(vm_bytes text, lathe_value *out, lathe_error *error);
/* Room for n dimensions, which the caller fills before anybody else sees the shape. */
int32_t vm_shape_new(size_t n, int64_t **out_dims, lathe_value *out, lathe_error *error);
/* An array of n values, which are retained. */
int32_t vm_array_new(const lathe_value *values, size_t n, lathe_value *out, lathe_error *error);
/* A tensor without gaps over memory that `keeps` owns (retained; may be NULL). */
int32_t vm_tensor_new(void *data, lathe_device device, lathe_dtype dtype, const int64_t *dims, size_t n,
                      lathe_object *keeps, vm_tensor **out, lathe_error *error);

/* A tensor of ours whose data is a caller's. */
bool vm_tensor_is_borrowed(const lathe_value *v);
/* The dimensions of a shape, or those of a tensor. */
bool vm_value_dims(const lathe_value *v, const int64_t **dims, size_t *n);
/* Bytes of a tensor without gaps; false: more than memory can have, or a dimension below 0. */
bool vm_bytes_of(lathe_dtype dtype, const int64_t *dims, size_t n, size_t *out);
bool vm_tensor_is_dense(const lathe_dltensor *t);
char *vm_tensor_data(const lathe_dltensor *t); /* with its byte offset */
bool vm_dtype_is(lathe_dtype a, lathe_dtype b);
/* Does it stand for any type? */
bool vm_dtype_is_any(lathe_dtype t);
/* "float32", "int8x4"; for messages. */
typedef struct vm_name {
    char text[160];
} vm_name;
vm_name vm_dtype_name(lathe_dtype t);
/* "[1, 3, 224]"; long ones end in "...". */
vm_name vm_dims_name(const int64_t *dims, size_t n);
#endif
