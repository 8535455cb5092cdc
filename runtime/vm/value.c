/* value.c: reference counts, and the objects that values hold: strings, shapes, arrays, tensors.
 * SPDX-License-Identifier: Apache-2.0 */
#include "value.h"

#include "abi/module.h"
#include "error.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PREFIX = 32, STRONG = 1, WEAK = 2 };
#define ONE_WEAK (UINT64_C(1) << 32)

_Static_assert(sizeof(lathe_value) == 16 && sizeof(lathe_object) == 24, "the layout of tvm-ffi");
_Static_assert(offsetof(vm_tensor, t) == 24 && offsetof(vm_array, data) == 24, "the layout of tvm-ffi");

/* --- objects --- */

/* The deleter of every object of ours finds in front of it what gives back its parts. */
struct prefix {
    void (*destroy)(void *self);
    void *unused, *reserved[2]; /* tvm-ffi may look at the 16 bytes in front of the object */
};

static void delete_object(void *self, int32_t flags)
{
    struct prefix *p = (struct prefix *)(void *)((char *)self - PREFIX);
    if ((flags & STRONG) && p->destroy)
        p->destroy(self);
    if (flags & WEAK)
        free(p);
}

void *vm_object_new(size_t size, int32_t type, void (*destroy)(void *self))
{
    _Static_assert(sizeof(struct prefix) <= PREFIX, "four pointers");
    struct prefix *p = size <= SIZE_MAX - PREFIX ? calloc(1, size + PREFIX) : NULL;
    if (!p)
        return NULL;
    p->destroy = destroy;
    lathe_object *o = (lathe_object *)(void *)((char *)p + PREFIX);
    o->counts = ONE_WEAK | 1;
    o->type = type;
    o->deleter.call = delete_object;
    return o;
}

bool vm_object_is(const lathe_object *o, void (*destroy)(void *self))
{
    return o->deleter.call == delete_object &&
           ((const struct prefix *)(const void *)((const char *)o - PREFIX))->destroy == destroy;
}

void vm_object_retain(lathe_object *o)
{
    (void)__atomic_fetch_add(&o->counts, 1, __ATOMIC_RELAXED);
}

void vm_object_release(lathe_object *o)
{
    if (!o)
        return;
    uint64_t before = __atomic_fetch_sub(&o->counts, 1, __ATOMIC_RELEASE);
    if ((uint32_t)before != 1)
        return;
    __atomic_thread_fence(__ATOMIC_ACQUIRE);
    void (*deleter)(void *, int32_t) = o->deleter.call;
    if (before == (ONE_WEAK | 1)) {
        if (deleter)
            deleter(o, STRONG | WEAK);
        return;
    }
    if (deleter)
        deleter(o, STRONG);
    if (__atomic_fetch_sub(&o->counts, ONE_WEAK, __ATOMIC_ACQ_REL) == ONE_WEAK && deleter)
        deleter(o, WEAK);
}

/* --- values --- */

bool vm_value_is_object(const lathe_value *v)
{
    return v->type >= LATHE_OBJECT;
}

void lathe_release(lathe_value *v)
{
    if (!v)
        return;
    if (vm_value_is_object(v))
        vm_object_release(v->u.v_object);
    *v = (lathe_value){0};
}

lathe_value lathe_retain(const lathe_value *v)
{
    if (vm_value_is_object(v))
        vm_object_retain(v->u.v_object);
    return *v;
}

lathe_value vm_value_of(void *object)
{
    lathe_value v = {.type = ((lathe_object *)object)->type};
    v.u.v_object = object;
    return v;
}

lathe_value vm_value_int(int64_t i)
{
    return (lathe_value){.type = LATHE_INT, .u.v_int = i};
}

void vm_value_set(lathe_value *at, lathe_value v)
{
    lathe_value old = *at;
    *at = v;
    lathe_release(&old);
}

const char *lathe_string_of(const lathe_value *v)
{
    return (const char *)vm_value_text(v).data;
}

vm_bytes vm_value_text(const lathe_value *v)
{
    switch (v->type) {
    case LATHE_RAW_STRING: return (vm_bytes){(const uint8_t *)v->u.v_string, v->u.v_string ? strlen(v->u.v_string) : 0};
    case LATHE_SMALL_STRING:
        return (vm_bytes){(const uint8_t *)v->u.v_bytes, v->small_length < 7 ? v->small_length : 7};
    case LATHE_STRING: {
        const vm_string *s = (const vm_string *)(const void *)v->u.v_object;
        return (vm_bytes){(const uint8_t *)s->data, s->size};
    }
    default: return (vm_bytes){0};
    }
}

bool vm_value_to_int(const lathe_value *v, int64_t *out)
{
    *out = v->u.v_int;
    return v->type == LATHE_INT || v->type == LATHE_BOOL;
}

const char *vm_type_name(int32_t type)
{
    switch (type) {
    case LATHE_NONE: return "nothing";
    case LATHE_INT: return "an int";
    case LATHE_BOOL: return "a bool";
    case LATHE_FLOAT: return "a float";
    case LATHE_POINTER: return "a pointer";
    case LATHE_DTYPE: return "a dtype";
    case LATHE_DEVICE: return "a device";
    case LATHE_DLTENSOR:
    case LATHE_TENSOR: return "a tensor";
    case LATHE_RAW_STRING:
    case LATHE_SMALL_STRING:
    case LATHE_STRING: return "a string";
    case LATHE_FUNCTION: return "a function";
    case LATHE_SHAPE: return "a shape";
    case LATHE_ARRAY: return "a tuple";
    case LATHE_MODULE: return "a module";
    default: return "an object";
    }
}

/* --- strings, shapes, arrays --- */

int32_t vm_string_new(vm_bytes text, lathe_value *out, lathe_error *error)
{
    if (text.size <= 7) {
        *out = (lathe_value){.type = LATHE_SMALL_STRING, .small_length = (uint32_t)text.size};
        if (text.size > 0)
            memcpy(out->u.v_bytes, text.data, text.size);
        return LATHE_OK;
    }
    vm_string *s = vm_object_new(sizeof *s + text.size + 1, LATHE_STRING, NULL);
    if (!s)
        return vm_no_memory(error, text.size);
    char *copy = (char *)(s + 1);
    memcpy(copy, text.data, text.size);
    s->data = copy;
    s->size = text.size;
    *out = vm_value_of(s);
    return LATHE_OK;
}

int32_t vm_shape_new(size_t n, int64_t **out_dims, lathe_value *out, lathe_error *error)
{
    vm_shape *s = n < SIZE_MAX / 16 ? vm_object_new(sizeof *s + n * sizeof(int64_t), LATHE_SHAPE, NULL) : NULL;
    if (!s)
        return vm_no_memory(error, n);
    *out_dims = (int64_t *)(void *)(s + 1);
    s->data = *out_dims;
    s->size = n;
    *out = vm_value_of(s);
    return LATHE_OK;
}

static void destroy_array(void *self)
{
    vm_array *a = self;
    for (int64_t i = 0; i < a->size; i++)
        lathe_release(&a->data[i]);
}

int32_t vm_array_new(const lathe_value *values, size_t n, lathe_value *out, lathe_error *error)
{
    vm_array *a = n < SIZE_MAX / 32 ? vm_object_new(sizeof *a + n * sizeof *a->data, LATHE_ARRAY, destroy_array) : NULL;
    if (!a)
        return vm_no_memory(error, n);
    a->data = (lathe_value *)(void *)(a + 1);
    a->size = a->capacity = (int64_t)n;
    for (size_t i = 0; i < n; i++)
        a->data[i] = lathe_retain(&values[i]);
    *out = vm_value_of(a);
    return LATHE_OK;
}

size_t lathe_array_size(const lathe_value *v)
{
    return v->type == LATHE_ARRAY ? (size_t)((const vm_array *)(const void *)v->u.v_object)->size : 0;
}

int32_t lathe_array_get(const lathe_value *v, size_t i, lathe_value *out, lathe_error *error)
{
    *out = (lathe_value){0};
    if (v->type != LATHE_ARRAY)
        return vm_fail(error, LATHE_E_ARGUMENT, "%s has no elements", vm_type_name(v->type));
    if (i >= lathe_array_size(v))
        return vm_fail(error, LATHE_E_ARGUMENT, "element %zu of a tuple of %zu", i, lathe_array_size(v));
    *out = ((const vm_array *)(const void *)v->u.v_object)->data[i];
    return LATHE_OK;
}

/* --- tensors --- */

static void destroy_tensor(void *self)
{
    vm_object_release(((vm_tensor *)self)->keeps);
}

int32_t vm_tensor_new(void *data, lathe_device device, lathe_dtype dtype, const int64_t *dims, size_t n,
                      lathe_object *keeps, vm_tensor **out, lathe_error *error)
{
    vm_tensor *t = n < INT32_MAX / 16 ? vm_object_new(sizeof *t + 2 * n * sizeof(int64_t), LATHE_TENSOR, destroy_tensor)
                                      : NULL;
    *out = t;
    if (!t)
        return vm_no_memory(error, n);
    int64_t *shape = (int64_t *)(void *)(t + 1), *strides = shape + n, step = 1;
    for (size_t i = n; i-- > 0;) {
        shape[i] = dims[i];
        strides[i] = step;
        step *= dims[i]; /* 0 in front of an empty dimension: kernels of TVM compare with that */
    }
    t->t = (lathe_dltensor){data, device, (int32_t)n, dtype, shape, strides, 0};
    t->keeps = keeps;
    if (keeps)
        vm_object_retain(keeps);
    return LATHE_OK;
}

bool vm_tensor_is_borrowed(const lathe_value *v)
{
    return v->type == LATHE_TENSOR && vm_object_is(v->u.v_object, destroy_tensor) &&
           ((const vm_tensor *)(const void *)v->u.v_object)->borrowed;
}

const lathe_dltensor *lathe_tensor_of(const lathe_value *v)
{
    if (v->type == LATHE_DLTENSOR)
        return v->u.v_tensor;
    return v->type == LATHE_TENSOR ? &((const vm_tensor *)(const void *)v->u.v_object)->t : NULL;
}

bool vm_value_dims(const lathe_value *v, const int64_t **dims, size_t *n)
{
    const lathe_dltensor *t = lathe_tensor_of(v);
    if (t && t->ndim >= 0) {
        *dims = t->shape;
        *n = (size_t)t->ndim;
        return true;
    }
    if (v->type != LATHE_SHAPE)
        return false;
    const vm_shape *s = (const vm_shape *)(const void *)v->u.v_object;
    *dims = s->data;
    *n = s->size;
    return true;
}

bool vm_bytes_of(lathe_dtype dtype, const int64_t *dims, size_t n, size_t *out)
{
    uint64_t count = 1;
    bool none = false;
    for (size_t i = 0; i < n; i++) {
        if (dims[i] < 0)
            return false;
        none |= dims[i] == 0;
        /* Strides are products of the dimensions above 0: these must fit even where a tensor is empty. */
        if (dims[i] > 0 && __builtin_mul_overflow(count, (uint64_t)dims[i], &count))
            return false;
    }
    uint64_t bits;
    if (__builtin_mul_overflow(count, (uint64_t)dtype.bits * dtype.lanes, &bits) || bits > INT64_MAX - 7 ||
        count > INT64_MAX || (bits + 7) / 8 > SIZE_MAX / 2)
        return false;
    *out = none ? 0 : (size_t)((bits + 7) / 8);
    return true;
}

bool vm_tensor_is_dense(const lathe_dltensor *t)
{
    uint64_t step = 1;
    if (!t->strides)
        return true;
    for (int32_t i = 0; i < t->ndim; i++)
        if (t->shape[i] == 0)
            return true;
    for (int32_t i = t->ndim; i-- > 0;) {
        if (t->shape[i] != 1 && (uint64_t)t->strides[i] != step)
            return false;
        step *= (uint64_t)t->shape[i];
    }
    return true;
}

char *vm_tensor_data(const lathe_dltensor *t)
{
    return t->data ? (char *)t->data + t->byte_offset : NULL;
}

bool vm_dtype_is(lathe_dtype a, lathe_dtype b)
{
    return a.code == b.code && a.bits == b.bits && a.lanes == b.lanes;
}

bool vm_dtype_is_any(lathe_dtype t)
{
    return t.code == MODULE_DTYPE_HANDLE && t.bits == 0;
}

vm_name vm_dtype_name(lathe_dtype t)
{
    static const char *const codes[] = {"int", "uint", "float", "handle", "bfloat", "complex", "bool"};
    vm_name name;
    char lanes[16] = "";
    if (t.lanes != 1)
        (void)snprintf(lanes, sizeof lanes, "x%d", t.lanes);
    if (t.code == MODULE_DTYPE_BOOL && t.bits == 8)
        (void)snprintf(name.text, sizeof name.text, "bool%s", lanes);
    else if (t.code < sizeof codes / sizeof *codes)
        (void)snprintf(name.text, sizeof name.text, "%s%d%s", codes[t.code], t.bits, lanes);
    else
        (void)snprintf(name.text, sizeof name.text, "type code %d, %d bits%s", t.code, t.bits, lanes);
    return name;
}

vm_name vm_dims_name(const int64_t *dims, size_t n)
{
    vm_name name = {"["};
    size_t at = 1;
    for (size_t i = 0; i < n; i++) {
        if (at + 32 > sizeof name.text) {
            at += (size_t)snprintf(name.text + at, sizeof name.text - at, ", ...");
            break;
        }
        at += (size_t)snprintf(name.text + at, sizeof name.text - at, "%s%" PRId64, i ? ", " : "", dims[i]);
    }
    (void)snprintf(name.text + at, sizeof name.text - at, "]");
    return name;
}
