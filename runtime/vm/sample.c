/* sample.c: for programs that run modules they do not know: inputs that are made up, and values as text.
 * SPDX-License-Identifier: Apache-2.0 */
#include "error.h"
#include "metadata.h"
#include "module_machine.h"

#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool is_known(lathe_dtype t)
{
    const bool whole = t.bits == 8 || t.bits == 16 || t.bits == 32 || t.bits == 64;
    if (t.lanes != 1)
        return false;
    switch (t.code) {
    case MODULE_DTYPE_INT:
    case MODULE_DTYPE_UINT: return whole;
    case MODULE_DTYPE_FLOAT: return whole && t.bits > 8;
    case MODULE_DTYPE_BFLOAT: return t.bits == 16;
    case MODULE_DTYPE_BOOL: return t.bits == 8;
    default: return false;
    }
}

/* --- inputs --- */

struct sample {
    const lathe_value *module;
    vm_machine *vm;
    lathe_value *out;
    int32_t max, made;
};

static double pattern(size_t i)
{
    return (double)((int)(i % 17) - 8) / 8;
}

/* Exact for what the pattern has. `bits` of exponent, 5 or 8. */
static uint16_t short_float(double v, int bits)
{
    const int mantissa = 15 - bits, bias = (1 << (bits - 1)) - 1;
    uint64_t u;
    memcpy(&u, &v, sizeof u);
    if (v == 0)
        return 0;
    const int exponent = (int)(u >> 52 & 0x7ff) - 1023 + bias;
    return (uint16_t)((u >> 63) << 15 | (uint64_t)exponent << mantissa |
                      (u >> (52 - mantissa) & ((1U << mantissa) - 1)));
}

/* Little numbers that are fit for indices too, where they are no floats. */
static void put(uint8_t *at, lathe_dtype t, size_t i)
{
    const double d = pattern(i);
    const float f = (float)d;
    const uint16_t h = short_float(d, t.code == MODULE_DTYPE_BFLOAT ? 8 : 5);
    const uint64_t u = i % 2;
    if (t.code == MODULE_DTYPE_BFLOAT || (t.code == MODULE_DTYPE_FLOAT && t.bits == 16))
        memcpy(at, &h, sizeof h);
    else if (t.code == MODULE_DTYPE_FLOAT && t.bits == 32)
        memcpy(at, &f, sizeof f);
    else if (t.code == MODULE_DTYPE_FLOAT)
        memcpy(at, &d, sizeof d);
    else if (t.bits == 8)
        *at = (uint8_t)u;
    else if (t.bits == 16)
        memcpy(at, &(uint16_t){(uint16_t)u}, 2);
    else if (t.bits == 32)
        memcpy(at, &(uint32_t){(uint32_t)u}, 4);
    else
        memcpy(at, &u, sizeof u);
}

/* One more input, on the device that the machine was initialised for first. */
static int32_t make(void *user, int32_t i, lathe_dtype dtype, const int64_t *dims, size_t n, lathe_error *error)
{
    struct sample *s = user;
    vm_target target;
    size_t bytes;
    int32_t status = vm_machine_target(s->vm, 0, &target, error);
    if (status != LATHE_OK)
        return status;
    if (i >= s->max)
        return vm_fail(error, LATHE_E_ARGUMENT, "main takes more than %d inputs", s->max);
    int32_t type = LATHE_NONE;
    status = lathe_function_parameter_type(s->module, "main", i, &type, error);
    if (type == LATHE_SHAPE)
        status = lathe_shape_new(dims, n, &s->out[i], error);
    s->made += type == LATHE_SHAPE && status == LATHE_OK;
    if (type == LATHE_SHAPE || status != LATHE_OK)
        return status;
    if (!is_known(dtype))
        return vm_fail(error, LATHE_E_UNSUPPORTED, "input %d: no sample of type %s", i, vm_dtype_name(dtype).text);
    if (!vm_bytes_of(dtype, dims, n, &bytes))
        return vm_fail(error, LATHE_E_SHAPE, "input %d: more than memory can hold: %s", i, vm_dims_name(dims, n).text);
    uint8_t *data = malloc(bytes + 1);
    if (!data)
        return vm_no_memory(error, bytes);
    for (size_t k = 0, each = dtype.bits / 8U; k < bytes / each; k++)
        put(data + k * each, dtype, k);
    status = vm_tensor_from_bytes(&s->vm->module.rt->devices, (vm_bytes){data, bytes}, dims, n, dtype, target.allocator,
                                  &s->out[i], error);
    free(data);
    s->made += status == LATHE_OK;
    return status;
}

/* As the module says. */
static int32_t make_all(struct sample *s, const lathe_value *vm, lathe_error *error)
{
    enum { MOST_RANK = 64 };
    int32_t n, rank, type, status = lathe_function_arity(vm, "main", &n, error);
    int64_t dims[MOST_RANK];
    lathe_dtype dtype;
    const char *name;
    for (int32_t i = 0; i < n && status == LATHE_OK; i++) {
        status = lathe_function_parameter(vm, "main", i, &name, &dtype, &rank, dims, MOST_RANK, error);
        if (status == LATHE_OK)
            status = lathe_function_parameter_type(vm, "main", i, &type, error);
        if (status == LATHE_OK && (rank < 0 || rank > MOST_RANK || (type != LATHE_SHAPE && dtype.bits == 0)))
            status = vm_fail(error, LATHE_E_UNSUPPORTED, "input %d (%.80s): the module does not say what it is, and a "
                             "metadata file may", i, name);
        if (status != LATHE_OK)
            break;
        for (int32_t k = 0; k < rank; k++)
            dims[k] = dims[k] < 0 ? 1 : dims[k];
        status = make(s, i, dtype, dims, (size_t)rank, error);
    }
    return status;
}

int32_t lathe_sample_inputs(lathe_runtime *rt, const lathe_value *vm, const char *metadata, lathe_value *out,
                            int32_t max, int32_t *out_n, lathe_error *error)
{
    struct sample s = {.module = vm, .vm = vm_machine_of(vm, error), .out = out, .max = max};
    *out_n = 0;
    for (int32_t i = 0; i < max; i++)
        out[i] = (lathe_value){0};
    if (!s.vm)
        return LATHE_E_ARGUMENT;
    int32_t status = metadata && *metadata ? vm_metadata_read(rt, vm, metadata, make, &s, error)
                                           : make_all(&s, vm, error);
    for (int32_t i = 0; i < s.made && status != LATHE_OK; i++)
        lathe_release(&out[i]);
    if (status == LATHE_OK)
        *out_n = s.made;
    return status;
}

/* --- text --- */

/* Text of any length, cut to the room. */
struct text {
    char *at;
    size_t size, n;
};

static void say(struct text *t, const char *format, ...) VM_FORMAT(2, 3);
static void say(struct text *t, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    const size_t left = t->n < t->size ? t->size - t->n : 0;
    const int n = vsnprintf(left ? t->at + t->n : NULL, left, format, list);
    va_end(list);
    t->n += n > 0 ? (size_t)n : 0;
}

/* An IEEE number of 16 bits, `bits` of them its exponent's. */
static long double short_number(uint16_t h, int bits)
{
    const int mantissa = 15 - bits, most = (1 << bits) - 1, exponent = h >> mantissa & most;
    const int fraction = h & ((1 << mantissa) - 1);
    double v = ldexp(fraction + (exponent ? 1 << mantissa : 0), (exponent ? exponent : 1) - most / 2 - mantissa);
    if (exponent == most)
        v = fraction ? (double)NAN : (double)INFINITY;
    return h >> 15 ? -v : v;
}

/* Holds every number of 64 bits on the machines that kernels are compiled on. */
static long double number(const char *at, lathe_dtype t)
{
    union {
        uint8_t bytes[8];
        int8_t i8;
        int16_t i16;
        int32_t i32;
        int64_t i64;
        uint8_t u8;
        uint16_t u16;
        uint32_t u32;
        uint64_t u64;
        float f32;
        double f64;
    } v;
    const bool sign = t.code == MODULE_DTYPE_INT;
    memcpy(v.bytes, at, t.bits / 8U);
    if (t.code == MODULE_DTYPE_BFLOAT)
        return short_number(v.u16, 8);
    if (t.code == MODULE_DTYPE_FLOAT)
        return t.bits == 16 ? short_number(v.u16, 5) : t.bits == 32 ? (long double)v.f32 : (long double)v.f64;
    switch (t.bits) {
    case 8: return sign ? v.i8 : v.u8;
    case 16: return sign ? v.i16 : v.u16;
    case 32: return sign ? (long double)v.i32 : (long double)v.u32;
    default: return sign ? (long double)v.i64 : (long double)v.u64;
    }
}

static void say_number(struct text *text, long double v, lathe_dtype t)
{
    if (t.code == MODULE_DTYPE_BOOL)
        say(text, v != 0 ? "true" : "false");
    else
        say(text, t.code == MODULE_DTYPE_FLOAT || t.code == MODULE_DTYPE_BFLOAT ? "%.6Lg" : "%.0Lf", v);
}

/* Range and first values of n elements. */
static void say_numbers(struct text *text, const char *data, lathe_dtype t, size_t n)
{
    enum { FIRST = 8 };
    const size_t each = t.bits / 8U;
    long double least = 0, most = 0;
    bool any = false;
    for (size_t i = 0; i < n; i++) {
        const long double v = number(data + i * each, t);
        least = v < least || (!any && v == v) ? v : least;
        most = v > most || (!any && v == v) ? v : most;
        any |= v == v;
    }
    say(text, any ? ", " : ", no number");
    if (any) {
        say_number(text, least, t);
        say(text, " to ");
        say_number(text, most, t);
    }
    for (size_t i = 0; i < n && i < FIRST; i++) {
        say(text, i ? " " : ": ");
        say_number(text, number(data + i * each, t), t);
    }
    say(text, n > FIRST ? " ..." : "");
}

static void say_tensor(struct text *text, const lathe_dltensor *t)
{
    const size_t rank = (size_t)t->ndim;
    size_t bytes = 0;
    say(text, "%s%s", vm_dtype_name(t->dtype).text, vm_dims_name(t->shape, rank).text);
    if (!vm_device_is_host(t->device.type))
        say(text, " on %s", vm_device_name(t->device).text);
    else if (is_known(t->dtype) && vm_tensor_is_dense(t) && vm_bytes_of(t->dtype, t->shape, rank, &bytes) && bytes)
        say_numbers(text, vm_tensor_data(t), t->dtype, bytes / (t->dtype.bits / 8U));
}

/* Each value in a line; those of arrays with their numbers in front, as deep as functions return them. */
static void say_value(struct text *text, const lathe_value *v, int depth)
{
    enum { DEPTH = 16 };
    size_t n_dims;
    const int64_t *dims = lathe_shape_of(v, &n_dims);
    const lathe_dltensor *t = lathe_tensor_of(v);
    const vm_bytes string = vm_value_text(v);
    const size_t elements = depth < DEPTH ? lathe_array_size(v) : 0;
    lathe_value element;
    for (size_t i = 0; i < elements && lathe_array_get(v, i, &element, NULL) == LATHE_OK; i++) {
        say(text, "%s%zu: ", i ? "\n" : "", i);
        say_value(text, &element, depth + 1);
    }
    if (t)
        say_tensor(text, t);
    else if (v->type == LATHE_SHAPE)
        say(text, "shape%s", vm_dims_name(dims, n_dims).text);
    else if (v->type == LATHE_INT)
        say(text, "%" PRId64, v->u.v_int);
    else if (v->type == LATHE_BOOL)
        say(text, v->u.v_int ? "true" : "false");
    else if (v->type == LATHE_FLOAT)
        say(text, "%g", v->u.v_float);
    else if (string.data)
        say(text, "%.*s", string.size < INT_MAX ? (int)string.size : INT_MAX, (const char *)string.data);
    else if (elements == 0)
        say(text, "%s", vm_type_name(v->type));
}

size_t lathe_describe(const lathe_value *value, char *text, size_t size)
{
    struct text t = {.at = text, .size = size};
    say_value(&t, value, 0);
    return t.n;
}
