/* SPDX-License-Identifier: Apache-2.0 */
/* The table of element types, and single elements as numbers. */
#include "type/dtype.h"

#include <math.h>
#include <string.h>

static const struct {
    const char *name, *c_name, *c_arith;
    dtype_class cls;
    uint32_t bits;
    int32_t onnx;
    bool usable;
} table[DT_COUNT] = {
#define X(id, name, cls, bits, onnx, ctype, cacc, usable) {name, ctype, cacc, cls, bits, onnx, usable},
    DTYPES(X)
#undef X
};

const char *dtype_name(dtype t) { return table[t].name; }
const char *dtype_c_name(dtype t) { return table[t].c_name; }
const char *dtype_c_arith(dtype t) { return table[t].c_arith; }
dtype_class dtype_get_class(dtype t) { return table[t].cls; }
uint32_t dtype_bits(dtype t) { return table[t].bits; }
size_t dtype_bytes(dtype t) { return table[t].bits / 8; }
int32_t dtype_onnx_code(dtype t) { return table[t].onnx; }
bool dtype_usable(dtype t) { return table[t].usable; }

bool dtype_parse(const char *name, dtype *out)
{
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
    if (table[t].cls == DTC_BOOL)
        return 1;
    if (table[t].cls == DTC_INT)
        return bits == 64 ? INT64_MAX : ((int64_t)1 << (bits - 1)) - 1;
    return bits >= 63 ? INT64_MAX : ((int64_t)1 << bits) - 1;
}

/* --- half precision --------------------------------------------------------------------------------------------------- */

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
    if (mag > 0x7f800000u)
        return (uint16_t)(sign | 0x7e00u); /* quiet NaN */
    if (mag >= 0x477ff000u)                /* 65520 and up round to infinity */
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

float dtype_bf16_to_f32(uint16_t h) { return f32_from_bits((uint32_t)h << 16); }

uint16_t dtype_f32_to_bf16(float f)
{
    uint32_t u = f32_bits(f);
    if ((u & 0x7fffffffu) > 0x7f800000u)
        return (uint16_t)(u >> 16 | 0x40u);
    return (uint16_t)((u + 0x7fffu + (u >> 16 & 1u)) >> 16);
}

/* --- elements ------------------------------------------------------------------------------------------------------------ */

int64_t dtype_load_i64(dtype t, const void *p)
{
    uint64_t u = 0;
    if (table[t].cls == DTC_FLOAT) {
        double v = dtype_load_f64(t, p);
        if (isnan(v))
            return 0;
        return v >= 9223372036854775807.0 ? INT64_MAX : v <= -9223372036854775808.0 ? INT64_MIN : (int64_t)v;
    }
    size_t bytes = table[t].bits / 8;
    memcpy(&u, p, bytes); /* little-endian host, as the files are */
    if (table[t].cls == DTC_INT && bytes < 8) {
        uint64_t sign = (uint64_t)1 << (bytes * 8 - 1);
        u = (u ^ sign) - sign;
    }
    int64_t v;
    memcpy(&v, &u, sizeof v);
    return v;
}

double dtype_load_f64(dtype t, const void *p)
{
    if (t == DT_F32) {
        float f;
        memcpy(&f, p, sizeof f);
        return (double)f;
    }
    if (t == DT_F64) {
        double d;
        memcpy(&d, p, sizeof d);
        return d;
    }
    if (t == DT_F16 || t == DT_BF16) {
        uint16_t h;
        memcpy(&h, p, sizeof h);
        return (double)(t == DT_F16 ? dtype_f16_to_f32(h) : dtype_bf16_to_f32(h));
    }
    int64_t v = dtype_load_i64(t, p);
    return t == DT_U64 ? (double)(uint64_t)v : (double)v;
}

void dtype_store_i64(dtype t, void *p, int64_t v)
{
    if (table[t].cls == DTC_FLOAT) {
        dtype_store_f64(t, p, (double)v);
        return;
    }
    if (table[t].cls == DTC_BOOL)
        v = v != 0;
    memcpy(p, &v, table[t].bits / 8);
}

/* f64 to f32 to half would round twice; going to odd in f32 first keeps the second rounding exact. */
static float to_f32_odd(double v)
{
    float f = (float)v;
    if (isnan(v) || isinf(f) || (double)f == v)
        return f;
    uint32_t u = f32_bits(f);
    if (fabs((double)f) > fabs(v))
        u--;
    return f32_from_bits(u | 1u);
}

void dtype_store_f64(dtype t, void *p, double v)
{
    if (t == DT_F32) {
        float f = (float)v;
        memcpy(p, &f, sizeof f);
    } else if (t == DT_F64) {
        memcpy(p, &v, sizeof v);
    } else if (t == DT_F16 || t == DT_BF16) {
        float f = to_f32_odd(v);
        uint16_t h = t == DT_F16 ? dtype_f32_to_f16(f) : dtype_f32_to_bf16(f);
        memcpy(p, &h, sizeof h);
    } else if (table[t].cls == DTC_BOOL) {
        *(uint8_t *)p = v != 0.0;
    } else if (t == DT_U64) {
        uint64_t u = isnan(v) || v <= 0 ? 0 : v >= 18446744073709551615.0 ? UINT64_MAX : (uint64_t)v;
        memcpy(p, &u, sizeof u);
    } else {
        double lo = (double)dtype_min_int(t), hi = (double)dtype_max_int(t);
        int64_t i = isnan(v) ? 0 : v <= lo ? dtype_min_int(t) : v >= hi ? dtype_max_int(t) : (int64_t)v;
        dtype_store_i64(t, p, i);
    }
}
