/* SPDX-License-Identifier: Apache-2.0 */
/* Arithmetic instructions of the interpreter: one loop over lanes each, chosen when the program is compiled. Registers
 * never overlap (each is written by one instruction), so the loops vectorise. */
#include "tir/eval.h"
#include "tir/interp.h"

#define REG(T, offset) ((T *)(void *)(f->regs + (offset)))

/* --- binary operators --- */

#define BINARY(name, T, R, value)                                                     \
    static bool name(frame *f, const instr *in, uint32_t n)                           \
    {                                                                                 \
        const T *restrict a = REG(const T, in->a), *restrict b = REG(const T, in->b); \
        R *restrict d = REG(R, in->dst);                                              \
        const uint32_t bits = dtype_bits(in->dt);                                     \
        (void)bits;                                                                   \
        for (uint32_t i = 0; i < n; i++) {                                            \
            const T x = a[i], y = b[i];                                               \
            d[i] = value;                                                             \
        }                                                                             \
        return true;                                                                  \
    }

/* X(operator, form on integers, form on u64) */
#define INT_OPS(X)                                         \
    X(TIR_ADD, eval_add(x, y), eval_add(x, y))             \
    X(TIR_SUB, eval_sub(x, y), eval_sub(x, y))             \
    X(TIR_MUL, eval_mul(x, y), eval_mul(x, y))             \
    X(TIR_DIV, eval_div(x, y), eval_udiv(x, y))            \
    X(TIR_MOD, eval_mod(x, y), eval_umod(x, y))            \
    X(TIR_FLOORDIV, eval_floordiv(x, y), eval_udiv(x, y))  \
    X(TIR_FLOORMOD, eval_floormod(x, y), eval_umod(x, y))  \
    X(TIR_MIN, eval_imin(x, y), eval_umin(x, y))           \
    X(TIR_MAX, eval_imax(x, y), eval_umax(x, y))           \
    X(TIR_EQ, x == y, x == y)                              \
    X(TIR_NE, x != y, x != y)                              \
    X(TIR_LT, x < y, (uint64_t)x < (uint64_t)y)            \
    X(TIR_LE, x <= y, (uint64_t)x <= (uint64_t)y)          \
    X(TIR_GT, x > y, (uint64_t)x > (uint64_t)y)            \
    X(TIR_GE, x >= y, (uint64_t)x >= (uint64_t)y)          \
    X(TIR_AND, x &&y, x &&y)                               \
    X(TIR_OR, x || y, x || y)                              \
    X(TIR_BITAND, x &y, x &y)                              \
    X(TIR_BITOR, x | y, x | y)                             \
    X(TIR_BITXOR, x ^ y, x ^ y)                            \
    X(TIR_SHL, eval_shl(bits, x, y), eval_shl(bits, x, y)) \
    X(TIR_SHR, eval_sar(bits, x, y), eval_shr(bits, x, y))

/* X(operator, form, result type): FN is a suffix for min and max of the type at hand */
#define FLOAT_OPS(X, T, MIN, MAX) \
    X(TIR_ADD, x + y, T)          \
    X(TIR_SUB, x - y, T)          \
    X(TIR_MUL, x *y, T)           \
    X(TIR_DIV, x / y, T)          \
    X(TIR_MIN, MIN(x, y), T)      \
    X(TIR_MAX, MAX(x, y), T)      \
    X(TIR_EQ, x == y, int64_t)    \
    X(TIR_NE, x != y, int64_t)    \
    X(TIR_LT, x < y, int64_t)     \
    X(TIR_LE, x <= y, int64_t)    \
    X(TIR_GT, x > y, int64_t)     \
    X(TIR_GE, x >= y, int64_t)

#define X(op, s, u) BINARY(int_##op, int64_t, int64_t, s)
INT_OPS(X)
#undef X
#define X(op, s, u) BINARY(uint_##op, int64_t, int64_t, u)
INT_OPS(X)
#undef X
#define X(op, v, R) BINARY(float_##op, float, R, v)
FLOAT_OPS(X, float, eval_fminf, eval_fmaxf)
#undef X
#define X(op, v, R) BINARY(double_##op, double, R, v)
FLOAT_OPS(X, double, eval_fmin, eval_fmax)
#undef X

static const instr_fn int_ops[TIR_OP_COUNT] = {
#define X(op, s, u) [op] = int_##op,
    INT_OPS(X)
#undef X
};
static const instr_fn uint_ops[TIR_OP_COUNT] = {
#define X(op, s, u) [op] = uint_##op,
    INT_OPS(X)
#undef X
};
static const instr_fn float_ops[TIR_OP_COUNT] = {
#define X(op, v, R) [op] = float_##op,
    FLOAT_OPS(X, float, eval_fminf, eval_fmaxf)
#undef X
};
static const instr_fn double_ops[TIR_OP_COUNT] = {
#define X(op, v, R) [op] = double_##op,
    FLOAT_OPS(X, double, eval_fmin, eval_fmax)
#undef X
};

/* Registers hold narrower unsigned values zero-extended: only shifts right of them and all of u64 need other forms. */
instr_fn interp_binary(dtype dt, tir_op op)
{
    if (dt == DT_F64)
        return double_ops[op];
    if (dtype_is_float(dt))
        return float_ops[op];
    return dt == DT_U64 ? uint_ops[op] : int_ops[op];
}

/* --- unary --- */

#define UNARY(name, T, R, value)                            \
    static bool name(frame *f, const instr *in, uint32_t n) \
    {                                                       \
        const T *restrict a = REG(const T, in->a);          \
        R *restrict d = REG(R, in->dst);                    \
        const dtype dt = in->dt;                            \
        (void)dt;                                           \
        for (uint32_t i = 0; i < n; i++) {                  \
            const T x = a[i];                               \
            d[i] = value;                                   \
        }                                                   \
        return true;                                        \
    }

UNARY(wrap_bool, int64_t, int64_t, x != 0)
UNARY(wrap_i8, int64_t, int64_t, (int8_t)x)
UNARY(wrap_u8, int64_t, int64_t, (uint8_t)x)
UNARY(wrap_i16, int64_t, int64_t, (int16_t)x)
UNARY(wrap_u16, int64_t, int64_t, (uint16_t)x)
UNARY(wrap_i32, int64_t, int64_t, (int32_t)x)
UNARY(wrap_u32, int64_t, int64_t, (int64_t)(uint32_t)x)
UNARY(copy_int, int64_t, int64_t, x)
UNARY(round_f16, float, float, eval_round_f16(x))
UNARY(round_bf16, float, float, eval_round_bf16(x))
UNARY(copy_float, float, float, x)

instr_fn interp_fixup(dtype dt)
{
    switch (dtype_bits(dt)) {
    case 8: return dt == DT_BOOL ? NULL : dt == DT_I8 ? wrap_i8 : wrap_u8;
    case 16: return dt == DT_F16 ? round_f16 : dt == DT_BF16 ? round_bf16 : dt == DT_I16 ? wrap_i16 : wrap_u16;
    case 32: return dt == DT_F32 ? NULL : dt == DT_I32 ? wrap_i32 : wrap_u32;
    default: return NULL;
    }
}

UNARY(int_to_float, int64_t, float, (float)x)
UNARY(int_to_half, int64_t, float, (float)tir_eval_round(dt, (double)(float)x))
UNARY(int_to_double, int64_t, double, (double)x)
UNARY(u64_to_float, int64_t, float, (float)(uint64_t)x)
UNARY(u64_to_half, int64_t, float, (float)tir_eval_round(dt, (double)(float)(uint64_t)x))
UNARY(u64_to_double, int64_t, double, (double)(uint64_t)x)
UNARY(float_to_double, float, double, (double)x)
UNARY(double_to_float, double, float, (float)x)
UNARY(double_to_half, double, float, (float)tir_eval_float_to_float(dt, x))
UNARY(float_to_bool, float, int64_t, x != 0)
UNARY(double_to_bool, double, int64_t, x != 0)
UNARY(float_to_int, float, int64_t, eval_f64_to_int(dt, (double)x))
UNARY(double_to_int, double, int64_t, eval_f64_to_int(dt, x))

static instr_fn cast_from_int(dtype to, dtype from)
{
    bool u64 = from == DT_U64;
    if (to == DT_F64)
        return u64 ? u64_to_double : int_to_double;
    if (to == DT_F32)
        return u64 ? u64_to_float : int_to_float;
    if (dtype_is_float(to))
        return u64 ? u64_to_half : int_to_half;
    if (to == DT_BOOL)
        return wrap_bool;
    instr_fn wrap = interp_fixup(to);
    return wrap ? wrap : copy_int;
}

instr_fn interp_cast(dtype to, dtype from)
{
    if (!dtype_is_float(from))
        return cast_from_int(to, from);
    bool is_double = from == DT_F64;
    if (to == DT_BOOL)
        return is_double ? double_to_bool : float_to_bool;
    if (!dtype_is_float(to))
        return is_double ? double_to_int : float_to_int;
    if (is_double)
        return to == DT_F32 ? double_to_float : double_to_half;
    if (to == DT_F64)
        return float_to_double;
    return to == DT_F16 ? round_f16 : to == DT_BF16 ? round_bf16 : copy_float;
}

/* --- intrinsics --- */

#define CALL(name, T, R, value)                                                               \
    static bool name(frame *f, const instr *in, uint32_t n)                                   \
    {                                                                                         \
        const T *a = REG(const T, in->a), *b = REG(const T, in->b), *c = REG(const T, in->c); \
        R *restrict d = REG(R, in->dst);                                                      \
        for (uint32_t i = 0; i < n; i++) {                                                    \
            const T x[3] = {a[i], b[i], c[i]};                                                \
            d[i] = value;                                                                     \
        }                                                                                     \
        return true;                                                                          \
    }

#define X(op, f32, f64) CALL(call_f32_##op, float, float, f32) CALL(call_f64_##op, double, double, f64)
EVAL_FLOAT_CALLS(X)
#undef X
#define X(op, value) CALL(call_##op, int64_t, int64_t, value)
EVAL_FIXED_CALLS(X)
#undef X
CALL(scaled_int, int64_t, int64_t, eval_scaled(x[0], x[1], x[2]))
UNARY(isnan_float, float, int64_t, isnan(x))
UNARY(isnan_double, double, int64_t, isnan(x))
UNARY(isinf_float, float, int64_t, isinf(x) != 0)
UNARY(isinf_double, double, int64_t, isinf(x) != 0)
UNARY(same_int, int64_t, int64_t, x)
UNARY(bitnot_int, int64_t, int64_t, ~x)

/* One value of n lanes. */
static bool any_sign(frame *f, const instr *in, uint32_t n)
{
    const int64_t *x = REG(const int64_t, in->a);
    int64_t any = 0;
    for (uint32_t i = 0; i < n; i++)
        any |= x[i] >> 31 & 1;
    *REG(int64_t, in->dst) = any;
    return true;
}
UNARY(bits_of_float, float, int64_t, eval_f32_bits(x))
UNARY(bits_of_double, double, int64_t, eval_f64_bits(x))
UNARY(float_of_bits, int64_t, float, eval_bits_f32(x))
UNARY(double_of_bits, int64_t, double, eval_bits_f64(x))

static const struct {
    tir_op op;
    instr_fn f32, f64;
} calls[] = {
#define X(op, f32, f64) {op, call_f32_##op, call_f64_##op},
    EVAL_FLOAT_CALLS(X)
#undef X
        {TIR_ISNAN, isnan_float, isnan_double},
    {TIR_ISINF, isinf_float, isinf_double},
    {TIR_TO_BITS, bits_of_float, bits_of_double},
};

instr_fn interp_call(dtype dt, tir_op op)
{
    if (op == TIR_BITNOT)
        return dt == DT_BOOL ? interp_not : bitnot_int;
    if (op == TIR_RARE)
        return same_int;
    if (op == TIR_ANY_SIGN)
        return any_sign;
    if (op == TIR_SCALED)
        return scaled_int;
#define X(fixed, value) \
    if (op == (fixed))   \
        return call_##fixed;
    EVAL_FIXED_CALLS(X)
#undef X
    if (op == TIR_FROM_BITS)
        return dt == DT_U64 ? double_of_bits : float_of_bits;
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++)
        if (calls[i].op == op)
            return dt == DT_F64 ? calls[i].f64 : calls[i].f32;
    return NULL;
}

/* --- choice and lanes --- */

#define LANES(suffix, T)                                                              \
    static bool select_##suffix(frame *f, const instr *in, uint32_t n)                \
    {                                                                                 \
        const int64_t *restrict cond = REG(const int64_t, in->a);                     \
        const T *restrict x = REG(const T, in->b), *restrict y = REG(const T, in->c); \
        T *restrict d = REG(T, in->dst);                                              \
        for (uint32_t i = 0; i < n; i++)                                              \
            d[i] = cond[i] ? x[i] : y[i];                                             \
        return true;                                                                  \
    }                                                                                 \
    static bool splat_##suffix(frame *f, const instr *in, uint32_t n)                 \
    {                                                                                 \
        const T x = *REG(const T, in->a);                                             \
        T *d = REG(T, in->dst);                                                       \
        for (uint32_t i = 0; i < n; i++)                                              \
            d[i] = x;                                                                 \
        return true;                                                                  \
    }
LANES(int, int64_t)
LANES(float, float)
LANES(double, double)

instr_fn interp_select(dtype dt)
{
    reg_class k = reg_class_of(dt);
    return k == REG_I ? select_int : k == REG_F ? select_float : select_double;
}

instr_fn interp_splat(dtype dt)
{
    reg_class k = reg_class_of(dt);
    return k == REG_I ? splat_int : k == REG_F ? splat_float : splat_double;
}

bool interp_not(frame *f, const instr *in, uint32_t n)
{
    const int64_t *a = REG(const int64_t, in->a);
    int64_t *d = REG(int64_t, in->dst);
    for (uint32_t i = 0; i < n; i++)
        d[i] = !a[i];
    return true;
}

bool interp_and_not(frame *f, const instr *in, uint32_t n)
{
    const int64_t *a = REG(const int64_t, in->a), *b = REG(const int64_t, in->b);
    int64_t *d = REG(int64_t, in->dst);
    for (uint32_t i = 0; i < n; i++)
        d[i] = a[i] && !b[i];
    return true;
}

bool interp_iota(frame *f, const instr *in, uint32_t n)
{
    const int64_t x = *REG(const int64_t, in->a);
    int64_t *d = REG(int64_t, in->dst);
    for (uint32_t i = 0; i < n; i++)
        d[i] = eval_add(x, (int64_t)i);
    return true;
}

bool interp_ramp(frame *f, const instr *in, uint32_t n)
{
    const int64_t x = *REG(const int64_t, in->a), step = *REG(const int64_t, in->b);
    int64_t *d = REG(int64_t, in->dst);
    for (uint32_t i = 0; i < n; i++)
        d[i] = eval_wrap(in->dt, eval_add(x, eval_mul(step, (int64_t)i)));
    return true;
}
