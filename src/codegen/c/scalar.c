/* SPDX-License-Identifier: Apache-2.0 */
/* C text of operators on scalars: literals, arithmetic with the loop IR's exact meaning, casts, library calls. Integer
 * arithmetic on values goes through unsigned types, so that it wraps; indices stay plain. Types below 32 bits come back
 * from C's promotion by a cast. f16 and bf16 are computed as float and rounded after every operation. */
#include "codegen/c/emit.h"

#include <math.h>
#include <string.h>

/* What reads, writes or rounds a float of 16 bits. */
static const char *half(const c_needs *n, dtype dt, const char *what)
{
    return arena_printf(n->a, "kernel/half/%s_%s.h", dtype_name(dt), what);
}

const char *scalar_type(dtype dt)
{
    return dtype_c_arith(dt);
}

const char *scalar_at(arena *a, c_text t, c_prec least)
{
    return t.prec >= least ? t.s : arena_printf(a, "(%s)", t.s);
}

static bool is_half(dtype dt)
{
    return dt == DT_F16 || dt == DT_BF16;
}

c_text scalar_int(arena *a, dtype dt, int64_t v)
{
    c_prec prec = v < 0 ? PREC_LOW : PREC_PRIMARY;
    if (dt == DT_I64 && v == INT64_MIN)
        return (c_text){SCALAR_INT64_MIN, PREC_PRIMARY};
    if (dt == DT_I32 && v == INT32_MIN)
        return (c_text){"INT32_MIN", PREC_PRIMARY};
    if (dt == DT_U64)
        return (c_text){arena_printf(a, "UINT64_C(%llu)", (unsigned long long)v), PREC_PRIMARY};
    if (dt == DT_U32)
        return (c_text){arena_printf(a, "%lluu", (unsigned long long)(uint32_t)v), PREC_PRIMARY};
    if (dt == DT_I64 && (v > INT32_MAX || v < INT32_MIN))
        return (c_text){arena_printf(a, "INT64_C(%lld)", (long long)v), PREC_PRIMARY};
    return (c_text){arena_printf(a, "%lld", (long long)v), prec};
}

c_text scalar_float(arena *a, dtype dt, double v)
{
    bool single = dt != DT_F64;
    c_prec prec = signbit(v) ? PREC_LOW : PREC_PRIMARY;
    if (isnan(v))
        return (c_text){single ? "NAN" : "(double)NAN", PREC_PRIMARY};
    if (isinf(v))
        return (c_text){v > 0 ? (single ? "INFINITY" : "HUGE_VAL") : (single ? "-INFINITY" : "-HUGE_VAL"), prec};
    writer w;
    writer_init(&w, a);
    w_float(&w, v, single ? 32 : 64);
    const char *dot = strpbrk(w.data, ".e") ? "" : ".0";
    return (c_text){arena_printf(a, "%s%s%s", w.data, dot, single ? "f" : ""), prec};
}

static c_text rounded(arena *a, c_needs *n, dtype dt, c_text x)
{
    if (!is_half(dt))
        return x;
    scalar_load(a, n, dt, scalar_store(a, n, dt, x)); /* its body calls both */
    needs_add_kernel(n, half(n, dt, "round"));
    return (c_text){arena_printf(a, "lathe_%s_round(%s)", dtype_name(dt), x.s), PREC_PRIMARY};
}

static c_text infix(arena *a, const char *op, c_prec prec, c_text x, c_text y)
{
    const char *left = scalar_at(a, x, prec), *right = scalar_at(a, y, prec == PREC_MUL ? PREC_PRIMARY : PREC_MUL);
    return (c_text){arena_printf(a, "%s %s %s", left, op, right), prec};
}

static c_text compare(arena *a, const char *op, c_text x, c_text y)
{
    return (c_text){arena_printf(a, "%s %s %s", scalar_at(a, x, PREC_ADD), op, scalar_at(a, y, PREC_ADD)), PREC_LOW};
}

static c_text narrowed(arena *a, dtype dt, c_text x)
{
    return (c_text){arena_printf(a, "(%s)(%s)", scalar_type(dt), x.s), PREC_PRIMARY};
}

/* Through the unsigned type of at least 32 bits. */
static c_text wrapping(arena *a, const char *op, c_prec prec, dtype dt, c_text x, c_text y)
{
    const char *u = dtype_bits(dt) > 32 ? "uint64_t" : "uint32_t";
    c_text l = {arena_printf(a, "(%s)%s", u, scalar_at(a, x, PREC_PRIMARY)), PREC_PRIMARY};
    c_text r = {arena_printf(a, "(%s)%s", u, scalar_at(a, y, PREC_PRIMARY)), PREC_PRIMARY};
    if (dt == DT_U32 || dt == DT_U64)
        return infix(a, op, prec, x, y);
    return narrowed(a, dt, infix(a, op, prec, l, r));
}

static c_text helper(arena *a, c_needs *n, tir_op op, const char *name, dtype dt, c_text x, c_text y)
{
    needs_add(n, (c_need){.kind = NEED_OP, .op = op, .dt = dt});
    return (c_text){arena_printf(a, "lathe_%s_%s(%s, %s)", name, dtype_name(dt), x.s, y.s), PREC_PRIMARY};
}

static c_text arithmetic(arena *a, c_needs *n, tir_op op, dtype dt, c_text x, c_text y, bool wrap)
{
    const char *sign = op == TIR_ADD ? "+" : op == TIR_SUB ? "-" : "*";
    c_prec prec = op == TIR_MUL ? PREC_MUL : PREC_ADD;
    if (dtype_is_float(dt))
        return rounded(a, n, dt, infix(a, sign, prec, x, y));
    return wrap ? wrapping(a, sign, prec, dt, x, y) : infix(a, sign, prec, x, y);
}

static c_text divide(arena *a, c_needs *n, tir_op op, dtype dt, c_text x, c_text y)
{
    if (op == TIR_DIV)
        return dtype_is_float(dt) ? rounded(a, n, dt, infix(a, "/", PREC_MUL, x, y))
                                  : helper(a, n, op, "div", dt, x, y);
    if (dtype_is_float(dt)) {
        const char *fn = dt == DT_F64 ? "fmod" : "fmodf";
        return rounded(a, n, dt, (c_text){arena_printf(a, "%s(%s, %s)", fn, x.s, y.s), PREC_PRIMARY});
    }
    return helper(a, n, op, "mod", dt, x, y);
}

static c_text bits(arena *a, const char *op, dtype dt, c_text x, c_text y)
{
    c_text t = {arena_printf(a, "%s %s %s", scalar_at(a, x, PREC_PRIMARY), op, scalar_at(a, y, PREC_PRIMARY)),
                PREC_LOW};
    return dtype_bits(dt) < 32 ? narrowed(a, dt, t) : t;
}

static c_text logical(arena *a, const char *op, c_text x, c_text y)
{
    return (c_text){arena_printf(a, "%s %s %s", scalar_at(a, x, PREC_ADD), op, scalar_at(a, y, PREC_ADD)), PREC_LOW};
}

c_text scalar_binary(arena *a, c_needs *n, tir_op op, dtype dt, c_text x, c_text y, bool wrap)
{
    switch (op) {
    case TIR_ADD:
    case TIR_SUB:
    case TIR_MUL: return arithmetic(a, n, op, dt, x, y, wrap);
    case TIR_DIV:
    case TIR_MOD: return divide(a, n, op, dt, x, y);
    case TIR_FLOORDIV: return helper(a, n, op, "floordiv", dt, x, y);
    case TIR_FLOORMOD: return helper(a, n, op, "floormod", dt, x, y);
    case TIR_MIN: return helper(a, n, op, "min", dt, x, y);
    case TIR_MAX: return helper(a, n, op, "max", dt, x, y);
    case TIR_EQ: return compare(a, "==", x, y);
    case TIR_NE: return compare(a, "!=", x, y);
    case TIR_LT: return compare(a, "<", x, y);
    case TIR_LE: return compare(a, "<=", x, y);
    case TIR_GT: return compare(a, ">", x, y);
    case TIR_GE: return compare(a, ">=", x, y);
    case TIR_AND: return logical(a, "&&", x, y);
    case TIR_OR: return logical(a, "||", x, y);
    case TIR_BITAND: return bits(a, "&", dt, x, y);
    case TIR_BITOR: return bits(a, "|", dt, x, y);
    case TIR_BITXOR: return bits(a, "^", dt, x, y);
    case TIR_SHL: return helper(a, n, op, "shl", dt, x, y);
    case TIR_SHR: return helper(a, n, op, "shr", dt, x, y);
    default: return x; /* intrinsics go to scalar_call */
    }
}

c_text scalar_call(arena *a, c_needs *n, tir_op op, dtype dt, const c_text *args)
{
    const char *suffix = dt == DT_F64 ? "" : "f";
    if (op == TIR_ISNAN || op == TIR_ISINF)
        return (c_text){arena_printf(a, "(%s(%s) ? 1 : 0)", tir_op_text(op), args[0].s), PREC_PRIMARY};
    if (op == TIR_BITNOT) {
        c_text t = {arena_printf(a, "~%s", scalar_at(a, args[0], PREC_PRIMARY)), PREC_PRIMARY};
        return dt == DT_BOOL ? (c_text){arena_printf(a, "!%s", scalar_at(a, args[0], PREC_PRIMARY)), PREC_PRIMARY}
               : dtype_bits(dt) < 32 ? narrowed(a, dt, t)
                                     : t;
    }
    if (op == TIR_RARE) {
        needs_add_kernel(n, "kernel/common/rare.h");
        return (c_text){arena_printf(a, "LATHE_RARE(%s)", args[0].s), PREC_PRIMARY};
    }
    if (op == TIR_ANY_SIGN)
        return (c_text){arena_printf(a, "(%s >> 31 != 0)", scalar_at(a, args[0], PREC_PRIMARY)), PREC_PRIMARY};
    if (op == TIR_SCALED) {
        needs_add(n, (c_need){.kind = NEED_OP, .op = op, .dt = dt});
        return (c_text){arena_printf(a, "lathe_%s(%s, %s, %s)", tir_op_text(op), args[0].s, args[1].s, args[2].s),
                        PREC_PRIMARY};
    }
    if (tir_op_is_fixed(op)) {
        needs_add(n, (c_need){.kind = NEED_OP, .op = op, .dt = dt});
        return (c_text){arena_printf(a, "lathe_%s(%s, %s)", tir_op_text(op), args[0].s, args[1].s), PREC_PRIMARY};
    }
    if (tir_op_is_extreme(op)) {
        static const struct {
            const char *test;
            bool first;
        } by[] = {{">", true}, {"<", true}, {"<=", false}, {">=", false}}; /* in the order of the operators */
        const char *x = scalar_at(a, args[0], PREC_ADD), *y = scalar_at(a, args[1], PREC_ADD);
        const bool first = by[op - TIR_ABOVE].first;
        return (c_text){arena_printf(a, "(%s %s %s ? %s : %s)", x, by[op - TIR_ABOVE].test, y, first ? x : y,
                                     first ? y : x),
                        PREC_PRIMARY};
    }
    if (op == TIR_APART) {
        if (is_half(dt)) /* computed in f32 and rounded: a step by itself */
            return args[0];
        needs_add(n, (c_need){.kind = NEED_OP, .op = op, .dt = dt});
        return (c_text){arena_printf(a, "lathe_apart_%s(%s)", dtype_name(dt), args[0].s), PREC_PRIMARY};
    }
    if (op == TIR_FMA && (dt == DT_F32 || dt == DT_F64))
        return (c_text){arena_printf(a, "fma%s(%s, %s, %s)", suffix, args[0].s, args[1].s, args[2].s), PREC_PRIMARY};
    if (op == TIR_FMA) {
        bool wrap = !dtype_is_float(dt);
        c_text product = arithmetic(a, n, TIR_MUL, is_half(dt) ? DT_F32 : dt, args[0], args[1], wrap);
        return arithmetic(a, n, TIR_ADD, dt, product, args[2], wrap);
    }
    if (op == TIR_TO_BITS || op == TIR_FROM_BITS) {
        needs_add(n, (c_need){.kind = NEED_OP, .op = op, .dt = dt});
        return (c_text){arena_printf(a, "lathe_%s_%s(%s)", dtype_name(dt), tir_op_text(op), args[0].s), PREC_PRIMARY};
    }
    if (op == TIR_LDEXP) {
        const char *by = scalar_at(a, args[1], PREC_PRIMARY), *x = suffix;
        const char *whole = arena_printf(a, "(int)fmin%s(fmax%s(floor%s(%s), -4000.0%s), 4000.0%s)", x, x, x, by, x, x);
        const char *text = arena_printf(a, "(%s != %s ? %s : ldexp%s(%s, %s))", by, by, by, x, args[0].s, whole);
        return rounded(a, n, dt, (c_text){text, PREC_PRIMARY});
    }
    if (op == TIR_FABS && !dtype_is_float(dt))
        return helper(a, n, op, "abs", dt, args[0], args[0]);
    if (op == TIR_DECAY)
        op = TIR_EXP;
    if (tir_op_arity(op) == 2)
        return rounded(
            a, n, dt,
            (c_text){arena_printf(a, "%s%s(%s, %s)", tir_op_text(op), suffix, args[0].s, args[1].s), PREC_PRIMARY});
    return rounded(a, n, dt, (c_text){arena_printf(a, "%s%s(%s)", tir_op_text(op), suffix, args[0].s), PREC_PRIMARY});
}

c_text scalar_cast(arena *a, c_needs *n, dtype from, dtype to, c_text x)
{
    if (from == to)
        return x;
    if (to == DT_BOOL)
        return (c_text){arena_printf(a, "%s != 0", scalar_at(a, x, PREC_ADD)), PREC_LOW};
    if (dtype_is_float(from) && !dtype_is_float(to)) {
        dtype src = is_half(from) ? DT_F32 : from;
        needs_add(n, (c_need){.kind = NEED_SATURATE, .dt = src, .to = to});
        return (c_text){arena_printf(a, "lathe_%s_to_%s(%s)", dtype_name(src), dtype_name(to), x.s), PREC_PRIMARY};
    }
    c_text cast = {arena_printf(a, "(%s)%s", scalar_type(to), scalar_at(a, x, PREC_PRIMARY)), PREC_PRIMARY};
    if (is_half(from) && to == DT_F32)
        return x;
    return is_half(to) ? rounded(a, n, to, is_half(from) || from == DT_F32 ? x : cast) : cast;
}

const char *scalar_load(arena *a, c_needs *n, dtype dt, const char *lvalue)
{
    if (!is_half(dt))
        return lvalue;
    needs_add_kernel(n, half(n, dt, "load"));
    return arena_printf(a, "lathe_%s_load(%s)", dtype_name(dt), lvalue);
}

const char *scalar_store(arena *a, c_needs *n, dtype dt, c_text value)
{
    if (is_half(dt)) {
        needs_add_kernel(n, half(n, dt, "store"));
        return arena_printf(a, "lathe_%s_store(%s)", dtype_name(dt), value.s);
    }
    if (!dtype_is_float(dt) && dtype_bits(dt) < 32) {
        const char *cast = arena_printf(a, "(%s)", scalar_type(dt));
        bool has = strncmp(value.s, cast, strlen(cast)) == 0 && value.prec == PREC_PRIMARY;
        return has ? value.s : arena_printf(a, "%s%s", cast, scalar_at(a, value, PREC_PRIMARY));
    }
    return value.s;
}
