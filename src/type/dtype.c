/* SPDX-License-Identifier: Apache-2.0 */
/* The table of element types, and single elements as numbers. Half formats are converted on the bits, so that every
 * host gives the same result; doubles and wide integers reach them in one rounding. */
#include "type/dtype.h"

#include "abi/module.h"

#include <assert.h>
#include <math.h>
#include <string.h>

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "constants are kept little-endian: the host must be as well");

static const struct {
    const char *name, *full, *c_name, *c_arith;
    dtype_class cls;
    uint32_t bits;
    int32_t onnx;
    bool usable;
} table[DT_COUNT] = {
#define X(id, name, full, cls, bits, onnx, ctype, cacc, usable) {name, full, ctype, cacc, cls, bits, onnx, usable},
    DTYPES(X)
#undef X
};

const char *dtype_name(dtype t)
{
    return table[t].name;
}

const char *dtype_full_name(dtype t)
{
    return table[t].full;
}

const char *dtype_c_name(dtype t)
{
    return table[t].c_name;
}

const char *dtype_c_arith(dtype t)
{
    return table[t].c_arith;
}

dtype_class dtype_get_class(dtype t)
{
    return table[t].cls;
}

uint32_t dtype_bits(dtype t)
{
    return table[t].bits;
}

size_t dtype_bytes(dtype t)
{
    return table[t].bits / 8;
}

int32_t dtype_onnx_code(dtype t)
{
    return table[t].onnx;
}

uint8_t dtype_dlpack_code(dtype t)
{
    if (t == DT_BF16)
        return MODULE_DTYPE_BFLOAT;
    if (t == DT_HANDLE)
        return MODULE_DTYPE_HANDLE;
    switch (dtype_get_class(t)) {
    case DTC_FLOAT: return MODULE_DTYPE_FLOAT;
    case DTC_UINT: return MODULE_DTYPE_UINT;
    case DTC_BOOL: return MODULE_DTYPE_BOOL;
    case DTC_NONE:
    case DTC_INT:
    case DTC_STRING: break;
    }
    return MODULE_DTYPE_INT;
}

bool dtype_usable(dtype t)
{
    return table[t].usable;
}

bool dtype_parse_full(const char *name, size_t len, dtype *out)
{
    for (int t = 0; t < DT_COUNT; t++)
        if (strlen(table[t].full) == len && memcmp(table[t].full, name, len) == 0) {
            *out = (dtype)t;
            return true;
        }
    return false;
}

bool dtype_parse(const char *name, dtype *out)
{
    *out = DT_NONE;
    for (int i = 0; i < DT_COUNT; i++) {
        if (strcmp(table[i].name, name) == 0) {
            *out = (dtype)i;
            return true;
        }
    }
    return false;
}

bool dtype_from_onnx(int64_t code, dtype *out)
{
    *out = DT_NONE;
    for (int i = 1; i < DT_COUNT; i++) {
        if (table[i].onnx == code && code > 0) {
            *out = (dtype)i;
            return true;
        }
    }
    return false;
}

int64_t dtype_min_int(dtype t)
{
    if (table[t].cls != DTC_INT)
        return 0;
    return table[t].bits == 64 ? INT64_MIN : -((int64_t)1 << (table[t].bits - 1));
}

int64_t dtype_max_int(dtype t)
{
    uint32_t bits = table[t].bits;
    switch (table[t].cls) {
    case DTC_BOOL: return 1;
    case DTC_INT: return bits == 64 ? INT64_MAX : ((int64_t)1 << (bits - 1)) - 1;
    case DTC_UINT: return bits == 64 ? INT64_MAX : ((int64_t)1 << bits) - 1;
    case DTC_NONE:
    case DTC_FLOAT:
    case DTC_STRING: break;
    }
    return 0;
}

/* --- half precision --- */

static float f32_from_bits(uint32_t u)
{
    float f;
    memcpy(&f, &u, sizeof f);
    return f;
}

static uint32_t f32_bits(float f)
{
    uint32_t u;
    memcpy(&u, &f, sizeof u);
    return u;
}

float dtype_f16_to_f32(uint16_t h)
{
    uint32_t sign = (uint32_t)(h & 0x8000u) << 16, exponent = (h >> 10) & 31u, fraction = h & 1023u;
    if (exponent == 31)
        return f32_from_bits(sign | 0x7f800000u | fraction << 13);
    if (exponent == 0) { /* zero or denormal: fraction * 2^-24 */
        float f = (float)fraction * (1.0f / 16777216.0f);
        return sign ? -f : f;
    }
    return f32_from_bits(sign | (exponent + 112) << 23 | fraction << 13);
}

uint16_t dtype_f32_to_f16(float f)
{
    uint32_t u = f32_bits(f), sign = u >> 16 & 0x8000u, mag = u & 0x7fffffffu, rounded;
    if (mag > 0x7f800000u) { /* NaN keeps what fits of its payload, and stays a NaN */
        uint32_t payload = mag >> 13 & 0x3ffu;
        return (uint16_t)(sign | 0x7c00u | (payload ? payload : 0x200u));
    }
    if (mag >= 0x477ff000u) /* 65520 and up round to infinity */
        return (uint16_t)(sign | 0x7c00u);
    if (mag < 0x38800000u) { /* below 2^-14: multiples of 2^-24; the addition rounds half to even */
        float scaled = f32_from_bits(mag) + 0.5f;
        rounded = f32_bits(scaled) - 0x3f000000u;
    } else {
        uint32_t m = mag - 0x38000000u;
        rounded = (m + 0xfffu + (m >> 13 & 1u)) >> 13;
    }
    return (uint16_t)(sign | rounded);
}

float dtype_bf16_to_f32(uint16_t h)
{
    return f32_from_bits((uint32_t)h << 16);
}

uint16_t dtype_f32_to_bf16(float f)
{
    uint32_t u = f32_bits(f);
    if ((u & 0x7fffffffu) > 0x7f800000u)
        return (uint16_t)(u >> 16 | (u >> 16 & 0x7fu ? 0u : 0x40u));
    return (uint16_t)((u + 0x7fffu + (u >> 16 & 1u)) >> 16);
}

/* --- elements --- */

static uint64_t load_bits(dtype t, const void *p)
{
    uint64_t u = 0;
    assert(dtype_usable(t));
    memcpy(&u, p, dtype_bytes(t));
    return u;
}

static void store_bits(dtype t, void *p, uint64_t u)
{
    assert(dtype_usable(t));
    memcpy(p, &u, dtype_bytes(t));
}

static double load_float(dtype t, const void *p)
{
    uint64_t u = load_bits(t, p);
    double d;
    if (t == DT_F32)
        return (double)f32_from_bits((uint32_t)u);
    if (t == DT_F16)
        return (double)dtype_f16_to_f32((uint16_t)u);
    if (t == DT_BF16)
        return (double)dtype_bf16_to_f32((uint16_t)u);
    memcpy(&d, &u, sizeof d);
    return d;
}

/* The double as a float whose last bit is set when it is inexact: rounding that again, to fewer bits, gives what one
 * rounding of the double would have given. */
static float to_f32_odd(double v)
{
    float f = (float)v;
    uint32_t u = f32_bits(f);
    if (isnan(v) || (double)f == v || (u & 1u))
        return f;
    return f32_from_bits(fabs((double)f) < fabs(v) ? u + 1 : u - 1);
}

/* The same for an integer: the bits that do not fit into the double are folded into its last one. */
static double to_f64_sticky(int64_t v)
{
    uint64_t m = v < 0 ? 0 - (uint64_t)v : (uint64_t)v;
    if (m >> 53)
        return (double)(m >> 11 | ((m & 0x7ffu) != 0)) * (v < 0 ? -2048.0 : 2048.0);
    return (double)v;
}

static void store_float(dtype t, void *p, double v)
{
    uint64_t u;
    if (t == DT_F32)
        u = f32_bits((float)v);
    else if (t == DT_F16)
        u = dtype_f32_to_f16(to_f32_odd(v));
    else if (t == DT_BF16)
        u = dtype_f32_to_bf16(to_f32_odd(v));
    else
        memcpy(&u, &v, sizeof u);
    store_bits(t, p, u);
}

/* Truncated toward zero and held within [low, high]; NaN gives 0. */
static int64_t saturate(double v, int64_t low, int64_t high)
{
    if (isnan(v))
        return 0;
    if (v >= (double)high) /* INT64_MAX rounds up to 2^63, which nothing that fits reaches */
        return high;
    return v <= (double)low ? low : (int64_t)v;
}

static uint64_t saturate_u64(double v)
{
    if (!(v > 0.0)) /* NaN too */
        return 0;
    return v >= 18446744073709551616.0 ? UINT64_MAX : (uint64_t)v;
}

int64_t dtype_load_i64(dtype t, const void *p)
{
    if (dtype_is_float(t))
        return saturate(load_float(t, p), INT64_MIN, INT64_MAX);
    uint64_t u = load_bits(t, p);
    if (dtype_get_class(t) == DTC_BOOL)
        return u != 0;
    if (dtype_get_class(t) == DTC_INT) {
        uint64_t sign = (uint64_t)1 << (dtype_bits(t) - 1);
        u = (u ^ sign) - sign;
    }
    int64_t v;
    memcpy(&v, &u, sizeof v);
    return v;
}

double dtype_load_f64(dtype t, const void *p)
{
    if (dtype_is_float(t))
        return load_float(t, p);
    if (t == DT_U64)
        return (double)load_bits(t, p);
    return (double)dtype_load_i64(t, p);
}

void dtype_store_i64(dtype t, void *p, int64_t v)
{
    if (t == DT_F32)
        store_bits(t, p, f32_bits((float)v)); /* one rounding: not by way of double */
    else if (t == DT_F64)
        store_float(t, p, (double)v);
    else if (dtype_is_float(t))
        store_float(t, p, to_f64_sticky(v));
    else
        store_bits(t, p, dtype_get_class(t) == DTC_BOOL ? v != 0 : (uint64_t)v);
}

void dtype_store_f64(dtype t, void *p, double v)
{
    if (dtype_is_float(t))
        store_float(t, p, v);
    else if (dtype_get_class(t) == DTC_BOOL)
        store_bits(t, p, v != 0.0);
    else if (t == DT_U64)
        store_bits(t, p, saturate_u64(v));
    else
        store_bits(t, p, (uint64_t)saturate(v, dtype_min_int(t), dtype_max_int(t)));
}
