/* SPDX-License-Identifier: Apache-2.0 */
/* Element types: one table. The size is in bits, so that 4-bit types have a row. Codes are TensorProto.DataType's. */
#ifndef LATHE_TYPE_DTYPE_H
#define LATHE_TYPE_DTYPE_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum dtype_class { DTC_NONE, DTC_FLOAT, DTC_INT, DTC_UINT, DTC_BOOL, DTC_STRING } dtype_class;

/* X(id, IR name, full name (NumPy's and TVM's), class, bits, ONNX code, C type in storage, C type of arithmetic,
 *   usable in kernels now) */
#define DTYPES(X)                                                                              \
    X(DT_NONE, "none", "none", DTC_NONE, 0, 0, "void", "void", 0)                              \
    X(DT_F32, "f32", "float32", DTC_FLOAT, 32, 1, "float", "float", 1)                         \
    X(DT_U8, "u8", "uint8", DTC_UINT, 8, 2, "uint8_t", "uint8_t", 1)                           \
    X(DT_I8, "i8", "int8", DTC_INT, 8, 3, "int8_t", "int8_t", 1)                               \
    X(DT_U16, "u16", "uint16", DTC_UINT, 16, 4, "uint16_t", "uint16_t", 1)                     \
    X(DT_I16, "i16", "int16", DTC_INT, 16, 5, "int16_t", "int16_t", 1)                         \
    X(DT_I32, "i32", "int32", DTC_INT, 32, 6, "int32_t", "int32_t", 1)                         \
    X(DT_I64, "i64", "int64", DTC_INT, 64, 7, "int64_t", "int64_t", 1)                         \
    X(DT_STRING, "string", "string", DTC_STRING, 0, 8, "char *", "char *", 0)                  \
    X(DT_BOOL, "bool", "bool", DTC_BOOL, 8, 9, "uint8_t", "uint8_t", 1)                        \
    X(DT_F16, "f16", "float16", DTC_FLOAT, 16, 10, "uint16_t", "float", 1)                     \
    X(DT_F64, "f64", "float64", DTC_FLOAT, 64, 11, "double", "double", 1)                      \
    X(DT_U32, "u32", "uint32", DTC_UINT, 32, 12, "uint32_t", "uint32_t", 1)                    \
    X(DT_U64, "u64", "uint64", DTC_UINT, 64, 13, "uint64_t", "uint64_t", 1)                    \
    X(DT_C64, "c64", "complex64", DTC_NONE, 64, 14, "float", "float", 0)                       \
    X(DT_C128, "c128", "complex128", DTC_NONE, 128, 15, "double", "double", 0)                 \
    X(DT_BF16, "bf16", "bfloat16", DTC_FLOAT, 16, 16, "uint16_t", "float", 1)                  \
    X(DT_F8E4M3FN, "f8e4m3fn", "float8_e4m3fn", DTC_FLOAT, 8, 17, "uint8_t", "float", 0)       \
    X(DT_F8E4M3FNUZ, "f8e4m3fnuz", "float8_e4m3fnuz", DTC_FLOAT, 8, 18, "uint8_t", "float", 0) \
    X(DT_F8E5M2, "f8e5m2", "float8_e5m2", DTC_FLOAT, 8, 19, "uint8_t", "float", 0)             \
    X(DT_F8E5M2FNUZ, "f8e5m2fnuz", "float8_e5m2fnuz", DTC_FLOAT, 8, 20, "uint8_t", "float", 0) \
    X(DT_U4, "u4", "uint4", DTC_UINT, 4, 21, "uint8_t", "uint8_t", 0)                          \
    X(DT_I4, "i4", "int4", DTC_INT, 4, 22, "uint8_t", "int8_t", 0)                             \
    X(DT_F4E2M1, "f4e2m1", "float4_e2m1fn", DTC_FLOAT, 4, 23, "uint8_t", "float", 0)           \
    X(DT_F8E8M0, "f8e8m0", "float8_e8m0fnu", DTC_FLOAT, 8, 24, "uint8_t", "float", 0)          \
    X(DT_U2, "u2", "uint2", DTC_UINT, 2, 25, "uint8_t", "uint8_t", 0)                          \
    X(DT_I2, "i2", "int2", DTC_INT, 2, 26, "uint8_t", "int8_t", 0)                             \
    X(DT_F6E2M3, "f6e2m3", "float6_e2m3fn", DTC_FLOAT, 6, 27, "uint8_t", "float", 0)           \
    X(DT_F6E3M2, "f6e3m2", "float6_e3m2fn", DTC_FLOAT, 6, 28, "uint8_t", "float", 0)           \
    X(DT_HANDLE, "handle", "handle", DTC_NONE, 64, -1, "void *", "void *", 0)

typedef enum dtype {
#define X(id, name, full, cls, bits, onnx, ctype, cacc, usable) id,
    DTYPES(X)
#undef X
        DT_COUNT
} dtype;

const char *dtype_name(dtype t);    /* "f32" */
const char *dtype_full_name(dtype t); /* "float32" */
const char *dtype_c_name(dtype t);  /* storage type in C: "float" */
const char *dtype_c_arith(dtype t); /* type of arithmetic in C */
dtype_class dtype_get_class(dtype t);
uint32_t dtype_bits(dtype t);
size_t dtype_bytes(dtype t); /* of one element; 0 for types below a byte or without size */
int32_t dtype_onnx_code(dtype t);
uint8_t dtype_dlpack_code(dtype t); /* of DLPack's DLDataTypeCode (abi/module.h) */
bool dtype_usable(dtype t); /* kernels can be generated for it */
bool dtype_parse(const char *name, dtype *out);
bool dtype_parse_full(const char *name, size_t len, dtype *out); /* of a full name */
bool dtype_from_onnx(int64_t code, dtype *out);
/* i8 or u8 */
static inline bool dtype_is_byte(dtype t)
{
    return t == DT_I8 || t == DT_U8;
}
static inline bool dtype_is_float(dtype t)
{
    return dtype_get_class(t) == DTC_FLOAT;
}
static inline bool dtype_is_int(dtype t)
{
    return dtype_get_class(t) == DTC_INT || dtype_get_class(t) == DTC_UINT;
}
static inline bool dtype_is_signed(dtype t)
{
    return dtype_get_class(t) == DTC_INT || dtype_get_class(t) == DTC_FLOAT;
}
/* Range of an integer type (bool: 0..1); u64's maximum is given as INT64_MAX. */
int64_t dtype_min_int(dtype t);
int64_t dtype_max_int(dtype t);

/* One element at p (any alignment) as a number, and back. Float types round to nearest even; integer types wrap.
 * f16, bf16 included. For u64 the int64 carries the bit pattern. Only usable types. */
double dtype_load_f64(dtype t, const void *p);
int64_t dtype_load_i64(dtype t, const void *p);   /* floats truncate toward zero, saturating; NaN gives 0 */
void dtype_store_f64(dtype t, void *p, double v); /* integers: truncates, saturating */
void dtype_store_i64(dtype t, void *p, int64_t v);
float dtype_f16_to_f32(uint16_t h);
uint16_t dtype_f32_to_f16(float f);
float dtype_bf16_to_f32(uint16_t h);
uint16_t dtype_f32_to_bf16(float f);
#endif
