/* SPDX-License-Identifier: Apache-2.0 */
/* Operators on single values, chosen by number: for constant folding, and as the definition that the interpreter's
 * loops are tested against. Also the table of operators. */
#include "tir/eval.h"

#include "tir/node.h"

#include <assert.h>

static const struct {
    const char *text;
    uint32_t arity;
    bool is_binary;
} table[TIR_OP_COUNT] = {
#define X(id, text) [id] = {text, 2, true},
    TIR_BINARY(X)
#undef X
#define X(id, text, args) [id] = {text, args, false},
        TIR_INTRINSICS(X)
#undef X
};

const char *tir_op_text(tir_op op)
{
    return op == TIR_OP_NONE ? "" : table[op].text;
}
bool tir_op_is_binary(tir_op op)
{
    return table[op].is_binary;
}
bool tir_op_is_compare(tir_op op)
{
    return op >= TIR_EQ && op <= TIR_GE;
}
bool tir_op_is_fixed(tir_op op)
{
    return op == TIR_HIGH || op == TIR_DOUBLED || op == TIR_SHIFTED;
}
bool tir_op_is_extreme(tir_op op)
{
    return op >= TIR_ABOVE && op <= TIR_AT_MOST;
}
uint32_t tir_op_arity(tir_op op)
{
    return table[op].arity;
}
uint16_t tir_op_lanes(tir_op op, uint16_t lanes)
{
    return op == TIR_ANY_SIGN ? 1 : lanes;
}

dtype tir_op_result(tir_op op, dtype dt)
{
    if (op == TIR_ISNAN || op == TIR_ISINF || op == TIR_ANY_SIGN)
        return DT_BOOL;
    if (op == TIR_TO_BITS)
        return dt == DT_F64 ? DT_U64 : DT_U32;
    if (op == TIR_FROM_BITS)
        return dt == DT_U64 ? DT_F64 : DT_F32;
    return dt;
}

static bool fits(tir_op op, dtype dt)
{
    bool is_int = dtype_is_int(dt), is_float = dtype_is_float(dt);
    switch (op) {
    case TIR_ADD:
    case TIR_SUB:
    case TIR_MUL:
    case TIR_DIV:
    case TIR_MIN:
    case TIR_MAX: return is_int || is_float;
    case TIR_MOD:
    case TIR_FLOORDIV:
    case TIR_FLOORMOD:
    case TIR_SHL:
    case TIR_SHR: return is_int;
    case TIR_AND:
    case TIR_OR: return dt == DT_BOOL;
    case TIR_BITAND:
    case TIR_BITOR:
    case TIR_BITXOR:
    case TIR_BITNOT: return is_int || dt == DT_BOOL;
    case TIR_TO_BITS: return dt == DT_F32 || dt == DT_F64;
    case TIR_FROM_BITS: return dt == DT_U32 || dt == DT_U64;
    case TIR_RARE: return dt == DT_BOOL;
    case TIR_ANY_SIGN: return dt == DT_U32;
    case TIR_SCALED: return dt == DT_I64;
    case TIR_HIGH:
    case TIR_DOUBLED:
    case TIR_SHIFTED: return dt == DT_I32;
    default: return tir_op_is_compare(op) ? is_int || is_float || dt == DT_BOOL : is_float;
    }
}

bool tir_op_fits(tir_op op, dtype dt)
{
    return dtype_usable(dt) && fits(op, dt);
}

static bool compare_int(dtype t, tir_op op, int64_t a, int64_t b)
{
    bool less = t == DT_U64 ? (uint64_t)a < (uint64_t)b : a < b;
    if (op == TIR_EQ || op == TIR_NE)
        return (a == b) == (op == TIR_EQ);
    if (op == TIR_LT || op == TIR_GE)
        return less == (op == TIR_LT);
    return (less || a == b) == (op == TIR_LE);
}

static int64_t eval_unsigned(tir_op op, int64_t a, int64_t b)
{
    if (op == TIR_DIV || op == TIR_FLOORDIV)
        return eval_udiv(a, b);
    if (op == TIR_MOD || op == TIR_FLOORMOD)
        return eval_umod(a, b);
    return op == TIR_MIN ? eval_umin(a, b) : eval_umax(a, b);
}

static int64_t eval_arith(dtype t, tir_op op, int64_t a, int64_t b)
{
    if (op == TIR_ADD)
        return eval_add(a, b);
    if (op == TIR_SUB)
        return eval_sub(a, b);
    if (op == TIR_MUL)
        return eval_mul(a, b);
    if (t == DT_U64)
        return eval_unsigned(op, a, b);
    if (op == TIR_DIV)
        return eval_div(a, b);
    if (op == TIR_MOD)
        return eval_mod(a, b);
    if (op == TIR_FLOORDIV)
        return eval_floordiv(a, b);
    if (op == TIR_FLOORMOD)
        return eval_floormod(a, b);
    return op == TIR_MIN ? eval_imin(a, b) : eval_imax(a, b);
}

static int64_t eval_bits(dtype t, tir_op op, int64_t a, int64_t b)
{
    if (op == TIR_BITAND)
        return a & b;
    if (op == TIR_BITOR)
        return a | b;
    if (op == TIR_BITXOR)
        return a ^ b;
    if (op == TIR_SHL)
        return eval_shl(dtype_bits(t), a, b);
    return dtype_is_signed(t) ? eval_sar(dtype_bits(t), a, b) : eval_shr(dtype_bits(t), a, b);
}

int64_t tir_eval_int(dtype t, tir_op op, int64_t a, int64_t b)
{
    assert(tir_op_is_binary(op));
    if (tir_op_is_compare(op))
        return compare_int(t, op, a, b);
    if (op == TIR_AND)
        return a && b;
    if (op == TIR_OR)
        return a || b;
    return eval_wrap(t, op <= TIR_MAX ? eval_arith(t, op, a, b) : eval_bits(t, op, a, b));
}

int64_t tir_eval_fixed(tir_op op, int64_t a, int64_t b)
{
    const int64_t x[2] = {a, b};
#define X(fixed, value) \
    if (op == (fixed))  \
        return value;
    EVAL_FIXED_CALLS(X)
#undef X
    return 0;
}

double tir_eval_round(dtype t, double v)
{
    unsigned char bytes[8] = {0};
    if (t == DT_F64)
        return v;
    dtype_store_f64(t, bytes, v);
    return dtype_load_f64(t, bytes);
}

double tir_eval_int_to_float(dtype to, dtype from, int64_t v)
{
    if (to == DT_F64)
        return eval_int_to_f64(from, v);
    return tir_eval_round(to, (double)eval_int_to_f32(from, v));
}

double tir_eval_float_to_float(dtype to, double v)
{
    return to == DT_F64 ? v : tir_eval_round(to, (double)(float)v);
}

double tir_eval_float(dtype t, tir_op op, double a, double b)
{
    if (op == TIR_MIN)
        return eval_fmin(a, b);
    if (op == TIR_MAX)
        return eval_fmax(a, b);
    if (t == DT_F64)
        return op == TIR_ADD ? a + b : op == TIR_SUB ? a - b : op == TIR_MUL ? a * b : a / b;
    float x = (float)a, y = (float)b;
    float r = op == TIR_ADD ? x + y : op == TIR_SUB ? x - y : op == TIR_MUL ? x * y : x / y;
    return tir_eval_round(t, (double)r);
}

bool tir_eval_compare(dtype t, tir_op op, double a, double b)
{
    (void)t;
    switch (op) {
    case TIR_EQ: return a == b;
    case TIR_NE: return a != b;
    case TIR_LT: return a < b;
    case TIR_LE: return a <= b;
    case TIR_GT: return a > b;
    default: return a >= b;
    }
}

static float call_f32(tir_op op, const float *x)
{
    switch (op) {
#define X(id, f32, f64) \
    case id: return f32;
        EVAL_FLOAT_CALLS(X)
#undef X
    default: return 0; /* those that give no float are answered by the callers */
    }
}

static double call_f64(tir_op op, const double *x)
{
    switch (op) {
#define X(id, f32, f64) \
    case id: return f64;
        EVAL_FLOAT_CALLS(X)
#undef X
    default: return 0; /* those that give no float are answered by the callers */
    }
}

double tir_eval_call(dtype t, tir_op op, const double *args)
{
    float x[3] = {0, 0, 0};
    if (op == TIR_ISNAN)
        return isnan(args[0]);
    if (op == TIR_ISINF)
        return isinf(args[0]) != 0;
    if (t == DT_F64)
        return call_f64(op, args);
    for (uint32_t i = 0; i < tir_op_arity(op); i++)
        x[i] = (float)args[i];
    return tir_eval_round(t, (double)call_f32(op, x));
}
