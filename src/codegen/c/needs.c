/* SPDX-License-Identifier: Apache-2.0 */
/* The prelude of generated C: every helper function that the kernels use, and no other. Vector helpers have two bodies:
 * a vector expression, or a loop over the lanes in the same order where LATHE_VECTORS is 0. */
#include "codegen/c/family.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

static void write_saturate(arena *a, writer *w, const c_need *n)
{
    const char *from = scalar_type(n->dt), *to = dtype_c_name(n->to);
    bool is_signed = dtype_get_class(n->to) == DTC_INT;
    uint32_t bits = dtype_bits(n->to), power = is_signed ? bits - 1 : bits;
    const char *f = n->dt == DT_F64 ? "" : "f";
    char upper[16], limit[32]; /* in decimal: C++ has no others before 2017 */
    snprintf(upper, sizeof upper, "%sINT%u", is_signed ? "" : "U", bits);
    snprintf(limit, sizeof limit, "%.1f%s", ldexp(1.0, (int)power), f);
    const char *least = bits == 64 ? SCALAR_INT64_MIN : arena_printf(a, "%s_MIN", upper);
    w_fmt(w, "/* Toward zero; what does not fit becomes the nearest end of the range, NaN becomes 0. */\n");
    w_fmt(w, "static inline %s lathe_%s_to_%s(%s x)\n{\n", to, dtype_name(n->dt), dtype_name(n->to), from);
    w_fmt(w, "    if (!(x < %s))\n        return x != x ? 0 : %s_MAX;\n", limit, upper);
    if (is_signed)
        w_fmt(w, "    return x < -%s ? %s : (%s)x;\n}\n\n", limit, least, to);
    else
        w_fmt(w, "    return x <= 0 ? 0 : (%s)x;\n}\n\n", to);
}

/* x86 divides integers one by one, but four doubles at once: the quotient of two numbers of 32 bits is never rounded up
 * to the next integer, from which it is at least 1 / b away. A constant divisor needs no division. */
static void write_division_by_doubles(writer *w)
{
    w_fmt(w, "#if defined(__GNUC__) && defined(__AVX__)\n    if (!__builtin_constant_p(b)) {\n");
    w_fmt(w, "        const int32_t one = (b == 0) | ((b == -1) & (a == INT32_MIN)); /* the least number wraps */\n");
    w_fmt(w, "        const int32_t quotient = (int32_t)((double)a / (double)(one ? 1 : b));\n");
    w_fmt(w, "        return b == 0 ? 0 : quotient;\n    }\n#endif\n");
}

static void write_division(writer *w, const c_need *n, const char *name, const char *ctype)
{
    bool is_signed = dtype_get_class(n->dt) == DTC_INT, mod = n->op == TIR_MOD || n->op == TIR_FLOORMOD;
    bool floor = n->op == TIR_FLOORDIV || n->op == TIR_FLOORMOD;
    const char *wide = dtype_bits(n->dt) > 32 ? "uint64_t" : "uint32_t";
    w_fmt(w, "static inline %s lathe_%s_%s(%s a, %s b)\n{\n", ctype, name, dtype_name(n->dt), ctype, ctype);
    if (n->op == TIR_DIV && n->dt == DT_I32)
        write_division_by_doubles(w);
    w_fmt(w, "    if (b == 0)\n        return 0;\n");
    if (is_signed && mod)
        w_fmt(w, "    if (b == -1)\n        return 0;\n");
    else if (is_signed)
        w_fmt(w,
              "    if (b == -1)\n        return (%s)(0u - (%s)a); /* the least number has no opposite: it wraps */\n",
              ctype, wide);
    if (!is_signed || !floor)
        w_fmt(w, "    return (%s)(a %s b);\n}\n\n", ctype, mod ? "%" : "/");
    else if (mod)
        w_fmt(w, "    return (%s)(a %% b != 0 && (a %% b < 0) != (b < 0) ? a %% b + b : a %% b);\n}\n\n", ctype);
    else
        w_fmt(w, "    return (%s)(a / b - (a %% b != 0 && (a < 0) != (b < 0) ? 1 : 0));\n}\n\n", ctype);
}

static void write_shift(writer *w, const c_need *n, const char *ctype)
{
    uint32_t bits = dtype_bits(n->dt);
    const char *wide = bits > 32 ? "uint64_t" : "uint32_t";
    bool left = n->op == TIR_SHL, is_signed = dtype_get_class(n->dt) == DTC_INT;
    w_fmt(w, "static inline %s lathe_%s_%s(%s a, %s b)\n{\n", ctype, left ? "shl" : "shr", dtype_name(n->dt), ctype,
          ctype);
    w_fmt(w, "    const %s by = (%s)b;\n", wide, wide);
    if (left)
        w_fmt(w, "    return by < %uu ? (%s)((%s)a << by) : (%s)0;\n}\n\n", bits, ctype, wide, ctype);
    else if (is_signed)
        w_fmt(w, "    return (%s)(a >> (by < %uu ? by : %uu));\n}\n\n", ctype, bits, bits - 1);
    else
        w_fmt(w, "    return by < %uu ? (%s)(a >> by) : (%s)0;\n}\n\n", bits, ctype, ctype);
}

/* Of floats NaN when either is. gcc makes vectors of this form, and no jumps, whether or not it minds exceptions. */
static void write_extreme(writer *w, const c_need *n, const char *ctype)
{
    const bool least = n->op == TIR_MIN;
    w_fmt(w, "static inline %s lathe_%s_%s(%s a, %s b)\n{\n", ctype, least ? "min" : "max", dtype_name(n->dt), ctype,
          ctype);
    if (dtype_is_float(n->dt))
        w_fmt(w, "    return ((a %s b) | (b != b)) ? b : a; /* NaN when either is */\n}\n\n", least ? ">=" : "<=");
    else
        w_fmt(w, "    return a %s b ? a : b;\n}\n\n", least ? "<" : ">");
}

static void write_bits(writer *w, const c_need *n)
{
    const char *from = scalar_type(n->dt), *to = scalar_type(tir_op_result(n->op, n->dt));
    w_fmt(w, "static inline %s lathe_%s_%s(%s x)\n{\n", to, dtype_name(n->dt), tir_op_text(n->op), from);
    w_fmt(w, "    union {\n        %s from;\n        %s to;\n    } v;\n    v.from = x;\n    return v.to;\n}\n\n", from,
          to);
}

static void write_scalar(writer *w, const c_need *n)
{
    const char *ctype = scalar_type(n->dt);
    if (n->op == TIR_TO_BITS || n->op == TIR_FROM_BITS) {
        write_bits(w, n);
    } else if (n->op == TIR_MIN || n->op == TIR_MAX) {
        write_extreme(w, n, ctype);
    } else if (n->op == TIR_SHL || n->op == TIR_SHR) {
        write_shift(w, n, ctype);
    } else if (n->op == TIR_FABS) {
        const char *wide = dtype_bits(n->dt) > 32 ? "uint64_t" : "uint32_t";
        w_fmt(w, "static inline %s lathe_abs_%s(%s a, %s b)\n{\n    (void)b;\n", ctype, dtype_name(n->dt), ctype,
              ctype);
        if (dtype_get_class(n->dt) == DTC_INT)
            w_fmt(w, "    return a < 0 ? (%s)(0u - (%s)a) : a;\n}\n\n", ctype, wide);
        else
            w_fmt(w, "    return a;\n}\n\n");
    } else {
        const char *name = n->op == TIR_DIV        ? "div"
                           : n->op == TIR_MOD      ? "mod"
                           : n->op == TIR_FLOORDIV ? "floordiv"
                                                   : "floormod";
        write_division(w, n, name, ctype);
    }
}

/* --- vectors -------------------------------------------------------------------------------------------------------
 */

static uint32_t widest(const c_needs *n)
{
    uint32_t most = 0;
    for (uint32_t i = 0; i < n->list.len; i++) {
        const c_need *need = &n->list.data[i];
        bool vector = need->lanes && need->kind != NEED_KERNEL && need->kind != NEED_FORM;
        uint32_t bytes = vector ? needs_vector_bytes(n->list.data[i].dt, n->list.data[i].lanes) : 0;
        most = bytes > most ? bytes : most;
    }
    return most;
}

/* What a compiler has to say of a processor with vectors of so many bytes. Compilers for RISC-V without V take the
 * types apart, in less than half of the time that they need for lanes. */
static const char *have_vectors(arena *a, uint32_t bytes, const c_needs *n)
{
    const char *have = bytes > 32   ? "defined(__AVX512F__)"
                       : bytes > 16 ? "defined(__AVX__)"
                                    : "defined(__SSE2__) || defined(__ARM_NEON) || defined(__riscv_vector)";
    return arena_printf(a, "%s%s", have, n->riscv                 ? " || defined(__riscv)"
                                         : n->family && bytes <= 16 ? arena_printf(a, " || %s", n->family->vectors)
                                                                 : "");
}

static void write_vector_type(writer *w, const c_need *n, const char *v)
{
    const char *ctype = scalar_type(n->dt);
    uint32_t bytes = needs_vector_bytes(n->dt, n->lanes);
    w_fmt(w, "#if LATHE_VECTORS\ntypedef %s %s __attribute__((vector_size(%u)));\n", ctype, v, bytes);
    w_fmt(w, "typedef %s %s_memory __attribute__((vector_size(%u), aligned(%u), may_alias));\n", ctype, v, bytes,
          needs_vector_bytes(n->dt, 1));
    w_fmt(w, "#else\ntypedef struct %s {\n    %s lane[%u];\n} %s;\n#endif\n\n", v, ctype, n->lanes, v);
}

/* Bodies of a helper, each where its test holds and no one before it did; a loop over the lanes is behind the last. */
#define MOST_FORMS 5
typedef struct c_form {
    const char *test, *body;
} c_form;
typedef struct c_forms {
    c_form of[MOST_FORMS];
    uint32_t n;
} c_forms;

/* One by vector types; `test`: more that it asks for, NULL: nothing. body NULL: there is none. */
static void add_form(arena *a, c_forms *f, const char *test, const char *body)
{
    assert(f->n < MOST_FORMS);
    if (body)
        f->of[f->n++] = (c_form){test ? arena_printf(a, "LATHE_VECTORS && %s", test) : "LATHE_VECTORS", body};
}

static void write_forms(writer *w, const c_forms *f, uint32_t lanes, const char *head, const char *result,
                        const char *lane)
{
    w_fmt(w, "LATHE_INLINE %s\n{\n", head);
    for (uint32_t i = 0; i < f->n; i++) {
        const char *body = f->of[i].body;
        w_fmt(w, "#%s %s\n%s%s\n", i ? "elif" : "if", f->of[i].test,
              *body == '#' || *body == '\n' || *body == ' ' ? "" : "    ", body);
    }
    if (f->n)
        w_str(w, "#else\n");
    if (result)
        w_fmt(w, "    %s r;\n", result);
    w_fmt(w, "    int i;\n    for (i = 0; i < %u; i++)\n        %s\n", lanes, lane);
    if (result)
        w_str(w, "    return r;\n");
    w_str(w, f->n ? "#endif\n}\n\n" : "}\n\n");
}

static void write_lanes(writer *w, uint32_t lanes, const char *head, const char *result, const char *fast,
                        const char *lane)
{
    write_forms(w, &(c_forms){{{"LATHE_VECTORS", fast}}, fast != NULL}, lanes, head, result, lane);
}

/* Minima and maxima, too, choose by a comparison. */
static bool is_float_choice(const c_need *n)
{
    return dtype_is_float(n->dt) && (n->kind != NEED_VOP || n->op == TIR_MIN || n->op == TIR_MAX);
}

/* The same of what a comparison of floats chooses. */
static void write_choice(arena *a, writer *w, const c_need *n, const c_family *f, const char *head, const char *result,
                         const c_forms *forms, const char *lane)
{
    const char *body = f ? f->choice(a, n) : NULL;
    const c_forms own = {{{f ? f->takes : "", body}}, body != NULL};
    write_forms(w, f ? &own : forms, n->lanes, head, result, lane);
}

/* x where it is above (TIR_MIN: below) y, else y, is one instruction, which gcc 12 does not find. `with`, which names
 * it LATHE_EXTREME, where the processor and compiler have it, else `without`. */
static void add_extreme(arena *a, const c_need *n, c_forms *f, const char *with, const char *without)
{
    const char *op = n->op == TIR_MAX ? "max" : "min", *test = NULL, *code = NULL;
    if (n->dt == DT_F32 && n->lanes == 16) {
        test = "__AVX512F__";
        code = arena_printf(a, "__builtin_ia32_%sps512_mask(x, y, x, -1, 4)", op);
    } else if (n->dt == DT_F32 && (n->lanes == 8 || n->lanes == 4)) {
        test = n->lanes == 8 ? "__AVX__" : "__SSE__";
        code = arena_printf(a, "__builtin_ia32_%sps%s(x, y)", op, n->lanes == 8 ? "256" : "");
    } else if ((n->dt == DT_U8 || n->dt == DT_I8) && n->lanes == 8) {
        test = n->dt == DT_U8 ? "__SSE2__" : "__SSE4_1__";
        code = arena_printf(a,
                            "__builtin_ia32_p%s%cb128((bytes)(pair){(long long)x, 0}, (bytes)(pair){(long long)y, 0})",
                            op, n->dt == DT_U8 ? 'u' : 's');
    }
    if (code) {
        const char *at = strstr(with, "LATHE_EXTREME");
        add_form(a, f, arena_printf(a, "defined(%s) && !defined(__clang__)", test),
                 arena_printf(a, "%.*s%s%s", (int)(at - with), with, code, at + strlen("LATHE_EXTREME")));
    }
    add_form(a, f, NULL, without);
}

/* Of numbers without a sign. */
static const char *bits_op(arena *a, const c_need *n, const char *v)
{
    const uint32_t width = dtype_bits(n->dt);
    const char *sign = n->op == TIR_BITAND ? "&" : n->op == TIR_BITOR ? "|" : n->op == TIR_BITXOR ? "^" : NULL;
    if (sign)
        return arena_printf(a, "return x %s y;", sign);
    if (n->op == TIR_SHL || n->op == TIR_SHR)
        return arena_printf(a, "return (x %s (y & %uu)) & (%s)(y < %uu);", n->op == TIR_SHL ? "<<" : ">>", width - 1,
                            v, width);
    return NULL;
}

/* Whose operators compute lane by lane what the loop IR says. */
static bool has_operators(dtype dt)
{
    return dt == DT_F32 || dt == DT_F64 || dt == DT_U32 || dt == DT_U64 || dt == DT_U16;
}

/* What vector types can do by themselves with the scalar's meaning. */
static const char *plain_op(arena *a, const c_need *n, const char *v)
{
    bool is_signed = dtype_is_int(n->dt) && dtype_min_int(n->dt) < 0, plain = has_operators(n->dt);
    const char *sign = n->op == TIR_ADD ? "+" : n->op == TIR_SUB ? "-" : n->op == TIR_MUL ? "*" : NULL;
    if (n->op == TIR_DIV && (n->dt == DT_F32 || n->dt == DT_F64))
        sign = "/";
    if (plain && sign)
        return arena_printf(a, "return x %s y;", sign);
    if (is_signed && dtype_bits(n->dt) > 8 && sign && n->op != TIR_DIV)
        return arena_printf(a,
                            "typedef u%s wrap __attribute__((vector_size(%u)));\n"
                            "    return (%s)((wrap)x %s (wrap)y);",
                            dtype_c_name(n->dt), needs_vector_bytes(n->dt, n->lanes), v, sign);
    if (plain && n->op == TIR_FMA)
        return "return x * y + z;";
    if (n->op == TIR_TO_BITS || n->op == TIR_FROM_BITS)
        return arena_printf(a, "return (%s)x;", needs_vector_name(a, n->to, n->lanes));
    if (n->dt == DT_I32 && (n->op == TIR_SHL || n->op == TIR_SHR))
        return arena_printf(a,
                            "typedef uint32_t words __attribute__((vector_size(%u)));\n"
                            "    const words by = (words)y, few = (words)(by < 32u);\n"
                            "    return %s;",
                            needs_vector_bytes(n->dt, n->lanes),
                            n->op == TIR_SHL ? arena_printf(a, "(%s)(((words)x << (by & 31u)) & few)", v)
                                             : arena_printf(a, "x >> (%s)((by & few) | (31u & ~few))", v));
    return n->dt == DT_U32 || n->dt == DT_U64 ? bits_op(a, n, v) : NULL;
}

/* Minima and maxima, of floats NaN when either is. */
static void add_bounds(arena *a, const c_need *n, const char *v, c_forms *f)
{
    const char *less = n->op == TIR_MIN ? "<" : ">";
    if (dtype_is_int(n->dt)) {
        const char *half = "typedef char bytes __attribute__((vector_size(16)));\n" /* 8 bytes, half of a register */
                           "    typedef long long pair __attribute__((vector_size(16)));\n";
        add_extreme(a, n, f, arena_printf(a, "%s    return (%s)((pair)LATHE_EXTREME)[0];", half, v),
                    arena_printf(a, "const %s first = (%s)(x %s y);\n    return (x & first) | (y & ~first);", v, v,
                                 less));
        return;
    }
    const char *mask = arena_printf(a, "typedef %s mask __attribute__((vector_size(%u)));\n    const mask ",
                                    n->dt == DT_F32 ? "int32_t" : "int64_t", needs_vector_bytes(n->dt, n->lanes));
    add_extreme(a, n, f,
                arena_printf(a, "%snan = (mask)(x != x);\n"
                                "    return (%s)(((mask)x & nan) | ((mask)LATHE_EXTREME & ~nan));", mask, v),
                arena_printf(a, "%sfirst = (mask)(x %s y) | (mask)(x != x);\n"
                                "    return (%s)(((mask)x & first) | ((mask)y & ~first));", mask, less, v));
}

/* Minima and maxima of four bytes on AArch64, where gcc has no vectors of 4 bytes and compares one at a time. */
static const char *neon_byte_bound(arena *a, const c_need *n, const char *v)
{
    return arena_printf(a,
                        "int32_t r;\n"
                        "    __asm__(\"%c%s %%0.8b, %%1.8b, %%2.8b\" : \"=w\"(r) : \"w\"((int32_t)x), "
                        "\"w\"((int32_t)y));\n    return (%s)r;",
                        n->dt == DT_U8 ? 'u' : 's', n->op == TIR_MAX ? "max" : "min", v);
}

/* What vectors do with the scalar's meaning. */
static c_forms op_forms(arena *a, const c_need *n, const char *v, bool neon)
{
    c_forms f = {.n = 0};
    const bool is_bound = n->op == TIR_MIN || n->op == TIR_MAX;
    if (is_bound && neon && n->lanes == 4 && (n->dt == DT_U8 || n->dt == DT_I8))
        add_form(a, &f, "defined(__aarch64__) && !defined(__clang__)", neon_byte_bound(a, n, v));
    if (n->op == TIR_LDEXP && n->dt == DT_F32 && n->lanes == 16)
        add_form(a, &f, "defined(__AVX512F__)", "return __builtin_ia32_scalefps512_mask(x, y, x, -1, 4);");
    else if (n->op == TIR_FABS && n->dt == DT_F32)
        add_form(a, &f, NULL,
                 arena_printf(a, "typedef uint32_t words __attribute__((vector_size(%u)));\n"
                                 "    return (%s)((words)x & 0x7fffffffu);", needs_vector_bytes(n->dt, n->lanes), v));
    else if (is_bound && (dtype_is_int(n->dt) || n->dt == DT_F32 || n->dt == DT_F64))
        add_bounds(a, n, v, &f);
    else
        add_form(a, &f, NULL, plain_op(a, n, v));
    return f;
}

static void write_vop(arena *a, writer *w, const c_need *n, const char *v, const c_needs *all)
{
    c_needs ignored = {.a = a};
    uint32_t arity = tir_op_is_binary(n->op) ? 2 : tir_op_arity(n->op);
    c_text args[3] = {
        {"LATHE_LANE(x, i)", PREC_PRIMARY}, {"LATHE_LANE(y, i)", PREC_PRIMARY}, {"LATHE_LANE(z, i)", PREC_PRIMARY}};
    c_text value = tir_op_is_binary(n->op) ? scalar_binary(a, &ignored, n->op, n->dt, args[0], args[1], true)
                                           : scalar_call(a, &ignored, n->op, n->dt, args);
    const char *result = needs_vector_name(a, n->to, n->lanes);
    bool narrow = !dtype_is_float(n->to) && dtype_bits(n->to) < 32;
    const char *lane = narrow ? arena_printf(a, "LATHE_LANE(r, i) = (%s)(%s);", scalar_type(n->to), value.s)
                              : arena_printf(a, "LATHE_LANE(r, i) = %s;", value.s);
    const char *head = arena_printf(a, "%s %s_%s(%s x%s%s%s%s)", result, v, needs_op_name(n->op), v,
                                    arity > 1 ? ", " : "", arity > 1 ? arena_printf(a, "%s y", v) : "",
                                    arity > 2 ? ", " : "", arity > 2 ? arena_printf(a, "%s z", v) : "");
    const c_forms forms = op_forms(a, n, v, all->neon);
    if (is_float_choice(n))
        write_choice(a, w, n, all->family, head, result, &forms, lane);
    else
        write_forms(w, &forms, n->lanes, head, result, lane);
}

/* Lanes of f16, which are floats: read, written, or (NEED_VCAST) rounded from floats by conversions of x86. */
static void add_half(arena *a, const c_need *n, const char *v, c_forms *f)
{
    bool wide = n->lanes == 16, load = n->kind == NEED_VLOAD, store = n->kind == NEED_VSTORE;
    if ((n->kind == NEED_VCAST ? n->to : n->dt) != DT_F16 || (!wide && n->lanes != 8))
        return;
    const char *read = load ? "*(const halves *)(const void *)p" : "h", *body;
    const char *from = arena_printf(a, wide ? "__builtin_ia32_vcvtph2ps512_mask(%s, (%s){0}, -1, 4)"
                                            : "__builtin_ia32_vcvtph2ps256(%s)", read, v);
    const char *to = wide ? "__builtin_ia32_vcvtps2ph512_mask(x, 0, (halves){0}, -1)"
                          : "__builtin_ia32_vcvtps2ph256(x, 0)";
    if (store)
        body = arena_printf(a, "*(halves *)(void *)p = (halves)%s;", to);
    else
        body = load ? arena_printf(a, "return %s;", from)
                    : arena_printf(a, "const halves h = (halves)%s;\n    return %s;", to, from);
    add_form(a, f, wide ? "defined(__AVX512F__)" : "defined(__F16C__)",
             arena_printf(a, "typedef short halves __attribute__((vector_size(%u), aligned(2), may_alias));\n    %s",
                          2 * n->lanes, body));
}

static void write_memory(arena *a, writer *w, const c_need *n, const char *v)
{
    c_needs ignored = {.a = a};
    const char *st = dtype_c_name(n->dt);
    bool direct = n->dt != DT_F16 && n->dt != DT_BF16;
    bool load = n->kind == NEED_VLOAD || n->kind == NEED_VGATHER,
         strided = n->kind == NEED_VGATHER || n->kind == NEED_VSCATTER;
    const char *at = strided ? "p[i * stride]" : "p[i]", *head, *lane, *fast = NULL;
    c_text value = {"LATHE_LANE(x, i)", PREC_PRIMARY};
    if (load) {
        head = arena_printf(a, "%s %s_%s(const %s *p%s)", v, v, strided ? "gather" : "load", st,
                            strided ? ", int64_t stride" : "");
        lane = arena_printf(a, "LATHE_LANE(r, i) = %s;", scalar_load(a, &ignored, n->dt, at));
        fast = direct && !strided ? arena_printf(a, "return (%s)*(const %s_memory *)(const void *)p;", v, v) : NULL;
    } else {
        head = arena_printf(a, "void %s_%s(%s *p%s, %s x)", v, strided ? "scatter" : "store", st,
                            strided ? ", int64_t stride" : "", v);
        lane = arena_printf(a, "%s = %s;", at, scalar_store(a, &ignored, n->dt, value));
        fast = direct && !strided ? arena_printf(a, "*(%s_memory *)(void *)p = (%s_memory)x;", v, v) : NULL;
    }
    c_forms forms = {.n = 0};
    add_form(a, &forms, NULL, fast);
    if (!direct && !strided)
        add_half(a, n, v, &forms);
    write_forms(w, &forms, n->lanes, head, load ? v : NULL, lane);
}

/* Bytes as integers of 16 or 32 bits and back, which gcc takes apart where the processor has one instruction or two;
 * out_feature: what it has to say then. NULL: a conversion that compilers do well. */
static const char *byte_cast(arena *a, const c_need *n, const char *into, const char **out_feature)
{
    const bool from_byte = dtype_bits(n->dt) == 8, widens = from_byte && n->to == DT_I32, to_half = n->to == DT_I16;
    const uint32_t lanes = n->lanes;
    const char *sign = n->dt == DT_U8 ? "z" : "s";
    *out_feature = lanes == 16 && !to_half ? "__AVX512F__" : lanes == (to_half ? 16u : 8u) ? "__AVX2__" : "__SSE4_1__";
    if (from_byte && to_half && lanes == 16)
        return arena_printf(a, "return __builtin_ia32_pmov%sxbw256((bytes)x);", sign);
    if (from_byte && to_half && lanes == 8)
        return arena_printf(a, "return __builtin_ia32_pmov%sxbw128((bytes)(longs){(int64_t)x, 0});", sign);
    if (widens && lanes == 16)
        return arena_printf(a, "return __builtin_ia32_pmov%sxbd512_mask((bytes)x, (%s){0}, 0xffff);", sign, into);
    if (widens && (lanes == 8 || lanes == 4))
        return arena_printf(a, "return __builtin_ia32_pmov%sxbd%u((bytes)(longs){(int%u_t)x, 0});", sign, lanes * 32,
                            lanes * 8);
    if (dtype_bits(n->to) != 8 || dtype_bits(n->dt) != 32)
        return NULL;
    if (lanes == 16)
        return arena_printf(a, "typedef int32_t word __attribute__((vector_size(64)));\n"
                               "    return (%s)__builtin_ia32_pmovdb512_mask((word)x, (bytes){0}, 0xffff);", into);
    if (lanes == 4)
        *out_feature = "__SSSE3__";
    return lanes == 8 || lanes == 4 ? arena_printf(a, "return (%s)lathe_x86_narrow_%u((lathe_words_%u)x);", into, lanes,
                                                   lanes)
                                    : NULL;
}

/* The same for four of them on AArch64, where gcc has no vectors of 4 bytes. NULL: another conversion. */
static const char *neon_byte_cast(arena *a, const c_need *n, const char *into)
{
    if (n->lanes != 4 || (dtype_bits(n->dt) != 8 && dtype_bits(n->to) != 8))
        return NULL;
    if (dtype_bits(n->dt) == 8 && n->to == DT_I32)
        return arena_printf(a,
                            "%s r;\n"
                            "    __asm__(\"%cxtl %%0.8h, %%1.8b\\n\\t%cxtl %%0.4s, %%0.4h\" : \"=w\"(r) : "
                            "\"w\"((int32_t)x));\n    return r;",
                            into, n->dt == DT_U8 ? 'u' : 's', n->dt == DT_U8 ? 'u' : 's');
    if (dtype_bits(n->dt) != 32 || dtype_is_float(n->dt))
        return NULL;
    return arena_printf(a,
                        "int32_t r;\n"
                        "    __asm__(\"xtn %%0.4h, %%1.4s\\n\\txtn %%0.8b, %%0.8h\" : \"=w\"(r) : \"w\"(x));\n"
                        "    return (%s)r;",
                        into);
}

static bool is_exact(const c_need *n)
{
    return dtype_is_int(n->dt) && (dtype_is_int(n->to) || n->to == DT_F32 || n->to == DT_F64);
}

static void write_vcast(arena *a, writer *w, const c_need *n, const char *v, bool neon)
{
    c_needs ignored = {.a = a};
    const char *into = needs_vector_name(a, n->to, n->lanes);
    c_text value = scalar_cast(a, &ignored, n->dt, n->to, (c_text){"LATHE_LANE(x, i)", PREC_PRIMARY});
    const char *lane = arena_printf(a, "LATHE_LANE(r, i) = (%s)(%s);", scalar_type(n->to), value.s), *feature;
    c_forms forms = {.n = 0};
    const bool exact = is_exact(n);
    const char *bytes = exact ? byte_cast(a, n, into, &feature) : NULL;
    if (bytes) {
        const uint32_t word = n->lanes == 4 ? 32 : 64;
        add_form(a, &forms, arena_printf(a, "defined(%s) && !defined(__clang__)", feature),
                 arena_printf(a, "typedef char bytes __attribute__((vector_size(16), unused));\n"
                                 "    typedef int%u_t longs __attribute__((vector_size(16), unused));\n    %s",
                              word, bytes));
        if (neon)
            add_form(a, &forms, "defined(__aarch64__) && !defined(__clang__)", neon_byte_cast(a, n, into));
    }
    if (exact && dtype_bits(n->to) > dtype_bits(n->dt) && dtype_bits(n->to) * n->lanes > 512)
        /* gcc 12 has no instruction for it where it does not optimize, and ends */
        add_form(a, &forms, "(defined(__OPTIMIZE__) || defined(__clang__))",
                 arena_printf(a, "return __builtin_convertvector(x, %s);", into));
    else if (exact)
        add_form(a, &forms, NULL, arena_printf(a, "return __builtin_convertvector(x, %s);", into));
    if (n->to == DT_F16 && n->dt == DT_F32)
        add_half(a, n, into, &forms);
    if ((n->dt == DT_F16 || n->dt == DT_BF16) && n->to == DT_F32)
        add_form(a, &forms, NULL, "return x;");
    write_forms(w, &forms, n->lanes, arena_printf(a, "%s %s_to_%s(%s x)", into, v, into, v), into, lane);
}

static void write_vsplat(arena *a, writer *w, const c_need *n, const char *v)
{
    const char *list = "x", *ctype = scalar_type(n->dt);
    for (uint32_t i = 1; i < n->lanes; i++)
        list = arena_printf(a, "%s, x", list);
    write_lanes(w, n->lanes, arena_printf(a, "%s %s_splat(%s x)", v, v, ctype), v,
                arena_printf(a, "const %s r = {%s};\n    return r;", v, list), "LATHE_LANE(r, i) = x;");
}

/* x where a compares with b, else y: the comparison's mask stays in a register. */
static void write_vchoose(arena *a, writer *w, const c_need *n, const char *v, const c_family *f)
{
    c_needs ignored = {.a = a};
    const char *m = n->dt == DT_F32 ? "int32_t" : "int64_t", *op = needs_op_name(n->op);
    c_text l = {"LATHE_LANE(a, i)", PREC_PRIMARY}, r = {"LATHE_LANE(b, i)", PREC_PRIMARY};
    const char *test = scalar_binary(a, &ignored, n->op, n->dt, l, r, true).s;
    c_forms forms = {.n = 0};
    add_form(a, &forms, NULL,
             arena_printf(a, "typedef %s mask __attribute__((vector_size(%u)));\n"
                             "    const mask first = (mask)(a %s b);\n"
                             "    return (%s)(((mask)x & first) | ((mask)y & ~first));",
                          m, needs_vector_bytes(n->dt, n->lanes), tir_op_text(n->op), v));
    write_choice(a, w, n, f, arena_printf(a, "%s %s_choose_%s(%s a, %s b, %s x, %s y)", v, v, op, v, v, v, v), v,
                 &forms, arena_printf(a, "LATHE_LANE(r, i) = %s ? LATHE_LANE(x, i) : LATHE_LANE(y, i);", test));
}

/* x where it is above (below) y, else y: no NaN of x comes through. */
static void write_vextreme(arena *a, writer *w, const c_need *n, const char *v, const c_family *f)
{
    const char *m = n->dt == DT_F32 ? "int32_t" : "int64_t", *op = n->op == TIR_MAX ? ">" : "<";
    const char *masked = arena_printf(a,
                                      "typedef %s mask __attribute__((vector_size(%u)));\n"
                                      "    const mask first = (mask)(x %s y);\n"
                                      "    return (%s)(((mask)x & first) | ((mask)y & ~first));",
                                      m, needs_vector_bytes(n->dt, n->lanes), op, v);
    c_forms forms = {.n = 0};
    add_extreme(a, n, &forms, "return LATHE_EXTREME;", masked);
    write_choice(a, w, n, f,
                 arena_printf(a, "%s %s_%s(%s x, %s y)", v, v, n->op == TIR_MAX ? "above" : "below", v, v), v, &forms,
                 arena_printf(a, "LATHE_LANE(r, i) = LATHE_LANE(x, i) %s LATHE_LANE(y, i) ? LATHE_LANE(x, i) : "
                                 "LATHE_LANE(y, i);", op));
}

/* x, but not below (above) y, which is a number: a NaN compares with nothing and stays. */
static void write_vbound(arena *a, writer *w, const c_need *n, const char *v, const c_family *f)
{
    const char *m = n->dt == DT_F32 ? "int32_t" : "int64_t", *op = n->op == TIR_MAX ? "<=" : ">=";
    c_forms forms = {.n = 0};
    add_form(a, &forms, NULL,
             arena_printf(a, "typedef %s mask __attribute__((vector_size(%u)));\n"
                             "    const mask out = (mask)(x %s y);\n"
                             "    return (%s)(((mask)y & out) | ((mask)x & ~out));",
                          m, needs_vector_bytes(n->dt, n->lanes), op, v));
    write_choice(
        a, w, n, f, arena_printf(a, "%s %s_%s(%s x, %s y)", v, v, n->op == TIR_MAX ? "at_least" : "at_most", v, v), v,
        &forms,
        arena_printf(
            a, "LATHE_LANE(r, i) = LATHE_LANE(x, i) %s LATHE_LANE(y, i) ? LATHE_LANE(y, i) : LATHE_LANE(x, i);", op));
}

/* Helpers that are templates of a file each: of f64 those that compare in pieces. */
static const char *file_of(const c_need *n, const c_needs *all)
{
    if (n->kind == NEED_VOP && (n->dt == DT_F32 || n->dt == DT_F64))
        return n->op == TIR_FMA     ? "kernel/lanes/fma.inc"
               : n->op == TIR_SQRT  ? "kernel/lanes/root.inc"
               : n->op == TIR_APART ? "kernel/lanes/apart.inc"
                                    : NULL;
    if (n->dt != DT_F64)
        return NULL;
    if (n->kind == NEED_VCAST)
        return n->to == DT_I32 ? "kernel/lanes/whole_f64.inc" : NULL;
    return all->family                ? NULL
           : n->kind == NEED_VEXTREME ? "kernel/lanes/extreme_f64.inc"
           : n->kind == NEED_VBOUND   ? "kernel/lanes/bound_f64.inc"
                                      : NULL;
}

static void write_file(kernel_paste *k, writer *w, const c_need *n, const char *v, const char *file)
{
    const char *into = needs_vector_name(k->a, n->kind == NEED_VCAST ? n->to : n->dt, n->lanes);
    const bool most = n->op == TIR_MAX, bound = n->kind == NEED_VBOUND;
    const char *name = n->kind == NEED_VCAST ? arena_printf(k->a, "%s_to_%s", v, into)
                       : n->kind == NEED_VOP ? arena_printf(k->a, "%s_%s", v, needs_op_name(n->op))
                                             : arena_printf(k->a, "%s_%s", v, bound ? (most ? "at_least" : "at_most")
                                                                                    : (most ? "above" : "below"));
    const kernel_word words[] = {
        {"LATHE_V", v},
        {"LATHE_INTO", into},
        {"LATHE_NAME", name},
        {"LATHE_LANES", arena_printf(k->a, "%u", n->lanes)},
        {"LATHE_BYTES", arena_printf(k->a, "%u", needs_vector_bytes(n->dt, n->lanes))},
        {"LATHE_DOUBLE", n->dt == DT_F64 ? "1" : "0"},
        {"LATHE_IS", bound ? (most ? "<=" : ">=") : (most ? ">" : "<")},
        {"LATHE_BUILTIN", most ? "__builtin_ia32_max@" : "__builtin_ia32_min@"},
    };
    kernel_write(k, w, file, &(kernel_words){words, sizeof words / sizeof *words}, NULL);
}

static void write_vector(kernel_paste *k, writer *w, const c_need *n, const c_needs *all)
{
    arena *a = k->a;
    const char *file = file_of(n, all);
    const char *v = needs_vector_name(a, n->dt, n->lanes), *ctype = scalar_type(n->dt);
    if (file) {
        write_file(k, w, n, v, file);
        return;
    }
    switch (n->kind) {
    case NEED_VECTOR: write_vector_type(w, n, v); return;
    case NEED_VSPLAT: write_vsplat(a, w, n, v); return;
    case NEED_VLOAD:
    case NEED_VSTORE:
    case NEED_VGATHER:
    case NEED_VSCATTER: write_memory(a, w, n, v); return;
    case NEED_VINDEX: {
        const char *ix = needs_vector_name(a, n->to, n->lanes);
        c_needs ignored = {.a = a};
        write_lanes(
            w, n->lanes,
            arena_printf(a, "%s %s_index_%s(const %s *p, %s at)", v, v, dtype_name(n->to), dtype_c_name(n->dt), ix), v,
            NULL, arena_printf(a, "LATHE_LANE(r, i) = %s;", scalar_load(a, &ignored, n->dt, "p[LATHE_LANE(at, i)]")));
        return;
    }
    case NEED_VRAMP:
        write_lanes(w, n->lanes, arena_printf(a, "%s %s_ramp(%s base, %s stride)", v, v, ctype, ctype), v, NULL,
                    arena_printf(a, "LATHE_LANE(r, i) = (%s)(base + (%s)i * stride);", ctype, ctype));
        return;
    case NEED_VOP: write_vop(a, w, n, v, all); return;
    case NEED_VNOT:
        write_lanes(w, n->lanes, arena_printf(a, "%s %s_not(%s x)", v, v, v), v, NULL,
                    "LATHE_LANE(r, i) = LATHE_LANE(x, i) == 0;");
        return;
    case NEED_VCAST: write_vcast(a, w, n, v, all->neon); return;
    case NEED_VSELECT: {
        const char *b = needs_vector_name(a, DT_BOOL, n->lanes);
        write_lanes(
            w, n->lanes, arena_printf(a, "%s %s_select(%s c, %s x, %s y)", v, v, b, v, v), v, NULL,
            arena_printf(a, "LATHE_LANE(r, i) = (%s)(LATHE_LANE(c, i) ? LATHE_LANE(x, i) : LATHE_LANE(y, i));", ctype));
        return;
    }
    case NEED_VCHOOSE: write_vchoose(a, w, n, v, all->family); return;
    case NEED_VBOUND: write_vbound(a, w, n, v, all->family); return;
    case NEED_VEXTREME: write_vextreme(a, w, n, v, all->family); return;
    case NEED_KERNEL:
    case NEED_FORM:
    case NEED_OP:
    case NEED_SATURATE: return;
    }
}

/* What one lane after the other needs. */
static void add_scalars(c_needs *n, const c_need *need)
{
    c_text x = {"x", PREC_PRIMARY}, args[3] = {x, x, x};
    if (need->kind == NEED_VOP && tir_op_is_binary(need->op))
        scalar_binary(n->a, n, need->op, need->dt, x, x, true);
    else if (need->kind == NEED_VOP)
        scalar_call(n->a, n, need->op, need->dt, args);
    else if (need->kind == NEED_VCAST)
        scalar_cast(n->a, n, need->dt, need->to, x);
    else if (need->kind == NEED_VLOAD || need->kind == NEED_VGATHER || need->kind == NEED_VINDEX)
        scalar_load(n->a, n, need->dt, "x");
    else if (need->kind == NEED_VSTORE || need->kind == NEED_VSCATTER)
        scalar_store(n->a, n, need->dt, x);
}

void needs_add_vector(c_needs *n, c_need need)
{
    const char *v = needs_vector_name(n->a, need.dt, need.lanes);
    const bool choice = n->family && is_float_choice(&need) && n->family->choice(n->a, &need);
    if (choice)
        needs_add_kernel(n, n->family->setup);
    const bool has_forms = need.kind == NEED_VOP && !choice && need.op != TIR_LDEXP;
    n->fallback = choice || file_of(&need, n) || (has_forms && op_forms(n->a, &need, v, n->neon).n > 0);
    add_scalars(n, &need);
    n->fallback = false;
    if (need.kind == NEED_VCAST && dtype_is_int(need.dt) && dtype_bits(need.dt) == 32 && dtype_bits(need.to) == 8 &&
        (need.lanes == 8 || need.lanes == 4))
        needs_add_kernel(n, "kernel/x86/narrow.h");
    needs_add(n, need);
}

/* What the words of templates in lanes stand for. */
static void write_lanes_kernel(kernel_paste *k, writer *w, const c_need *n, const c_needs *all)
{
    const uint32_t bytes = needs_vector_bytes(n->dt, n->lanes);
    const char *v = needs_vector_name(k->a, n->dt, n->lanes);
    const kernel_word words[] = {
        {"LATHE_V", v},
        {"LATHE_OF", arena_printf(k->a, "%s_@", v)},
        {"LATHE_LANES", arena_printf(k->a, "%u", n->lanes)},
        {"LATHE_BYTES", arena_printf(k->a, "%u", bytes)},
        {"LATHE_WIDTH", arena_printf(k->a, "@%u", 8 * bytes)},
        {"LATHE_RISCV", all->riscv ? "1" : "0"},
        {"LATHE_HELIUM", all->family ? "1" : "0"},
        {"LATHE_INT", dtype_c_name(n->to)},
        {"LATHE_SIGNED", dtype_get_class(n->to) == DTC_INT ? "1" : "0"},
        {"LATHE_OF_INT", arena_printf(k->a, "%s_@_%s", v, dtype_name(n->to))},
        {"LATHE_TO", arena_printf(k->a, "@_%s", dtype_name(n->to))},
        {"LATHE_X4", arena_printf(k->a, "lathe_%sx4_@", dtype_name(n->to))},
    };
    kernel_write(k, w, n->file, &(kernel_words){words, sizeof words / sizeof *words}, NULL);
}

/* An operation that is a file; NULL: it is written here. */
static const char *op_file(const c_need *n)
{
    static const struct {
        tir_op op;
        dtype dt;
        const char *file;
    } files[] = {
        {TIR_SCALED, DT_I64, "kernel/round/product.h"},
        {TIR_APART, DT_F32, "kernel/round/apart_f32.h"},
        {TIR_APART, DT_F64, "kernel/round/apart_f64.h"},
        {TIR_HIGH, DT_I32, "kernel/round/high_product.h"},
        {TIR_DOUBLED, DT_I32, "kernel/round/doubled_product.h"},
        {TIR_SHIFTED, DT_I32, "kernel/round/rounded_shift.h"},
    };
    for (size_t i = 0; i < sizeof files / sizeof *files; i++)
        if (files[i].op == n->op && files[i].dt == n->dt)
            return files[i].file;
    return NULL;
}

/* Where a function for one lane is called at all; NULL: everywhere. A family's own text leaves it to compilers
 * that do not take that. */
static const char *where_called(const c_need *need, const c_needs *n)
{
    const bool choice = n->family && dtype_is_float(need->dt) && (need->op == TIR_MIN || need->op == TIR_MAX);
    if (!need->fallback)
        return NULL;
    return n->family && (choice || need->kind == NEED_KERNEL) ? n->family->takes_not : "!LATHE_VECTORS";
}

void needs_write(arena *a, writer *w, const c_needs *n)
{
    uint32_t bytes = widest(n);
    kernel_paste kernels = {.a = a};
    if (n->vector_bytes && bytes > n->vector_bytes)
        bytes = n->vector_bytes;
    const kernel_word have = {"LATHE_HAVE", have_vectors(a, bytes, n)};
    if (bytes > 0)
        kernel_write(&kernels, w, "kernel/lanes/vectors.inc", &(kernel_words){&have, 1}, NULL);
    for (uint32_t i = 0; i < n->list.len; i++) {
        const c_need *need = &n->list.data[i];
        switch (need->kind) {
        case NEED_KERNEL:
            if (need->lanes)
                write_lanes_kernel(&kernels, w, need, n);
            else
                kernel_write(&kernels, w, need->file, NULL, where_called(need, n));
            break;
        case NEED_FORM: need->form(a, w, need->lanes); break;
        case NEED_OP:
            if (op_file(need)) {
                kernel_write(&kernels, w, op_file(need), NULL, where_called(need, n));
                break;
            }
            if (need->op == TIR_SHR && dtype_get_class(need->dt) == DTC_INT)
                kernel_write(&kernels, w, "kernel/common/shifts.h", NULL, NULL);
            if (where_called(need, n))
                w_fmt(w, "#if %s\n", where_called(need, n));
            write_scalar(w, need);
            w_str(w, need->fallback ? "#endif\n\n" : "");
            break;
        case NEED_SATURATE:
            w_str(w, need->fallback ? "#if !LATHE_VECTORS\n" : "");
            write_saturate(a, w, need);
            w_str(w, need->fallback ? "#endif\n\n" : "");
            break;
        case NEED_VECTOR:
        case NEED_VSPLAT:
        case NEED_VLOAD:
        case NEED_VSTORE:
        case NEED_VGATHER:
        case NEED_VSCATTER:
        case NEED_VINDEX:
        case NEED_VRAMP:
        case NEED_VOP:
        case NEED_VNOT:
        case NEED_VCAST:
        case NEED_VSELECT:
        case NEED_VCHOOSE:
        case NEED_VBOUND:
        case NEED_VEXTREME: write_vector(&kernels, w, need, n); break;
        }
    }
}
