/* SPDX-License-Identifier: Apache-2.0 */
/* Generated C against the interpreter: every operator, intrinsic and cast on every element type, over corner values, as
 * scalars and as vectors; built by the system's compiler with and without vector types, under UBSan. All functions are
 * written into one file, so that the compiler runs three times in all. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <dlfcn.h>
#include <math.h>
#include <stdio.h>

#include "base/file.h"
#include "codegen/c/emit.h"
#include "driver/run.h"
#include "tir/build.h"
#include "tir/interpret.h"
#include "tir/pass.h"
#include "tir/text.h"
#include "seeds.h"

enum { N = 64 };

typedef int32_t (*kernel)(const void *a, const void *b, void *out);

typedef struct subject {
    tir_func *scalar, *vector;
    dtype in, out;
    bool inexact; /* library functions: a few units in the last place */
} subject;

typedef struct suite {
    compiler c;
    VEC(subject) list;
    const char *dir;
} suite;

static const dtype types[] = {DT_F32, DT_F64, DT_F16, DT_BF16, DT_I8,  DT_U8,  DT_I16,
                              DT_U16, DT_I32, DT_U32, DT_I64,  DT_U64, DT_BOOL};
#define TYPES (sizeof types / sizeof *types)

/* out[i] = value(a[i], b[i]) */
static tir_func *make(suite *s, const char *name, dtype in, dtype out, tir_for_kind kind, tir_op op, bool cast)
{
    compiler *c = &s->c;
    const int64_t n = N;
    /* Parameters are named by models. */
    static const char *const awkward[] = {"int64_t", "expf", "INT32_MAX", "lathe_max_f32", "f32x8_load", "lathe_cut",
                                          "part",    "for",  "uint32_t",  "memcpy",        "NAN",        "f32x8"};
    const char *first = awkward[s->list.len % (sizeof awkward / sizeof *awkward)];
    const tir_buffer *params[3] = {tir_buffer_static(c, first, in, 1, &n, SCOPE_GLOBAL),
                                   tir_buffer_static(c, "b", in, 1, &n, SCOPE_GLOBAL),
                                   tir_buffer_static(c, "out", out, 1, &n, SCOPE_GLOBAL)};
    const tir_var *i = tir_new_var(c, "i", TIR_I64), *j = tir_new_var(c, "j", TIR_I64);
    bool split = kind == FOR_VECTORIZED;
    tir_expr_ref at = split ? tir_add(c, tir_mul(c, tir_varref(c, j), tir_i64(c, 8)), tir_varref(c, i))
                            : tir_varref(c, i),
                 args[3];
    args[0] = tir_load(c, params[0], 1, &at);
    args[1] = tir_load(c, params[1], 1, &at);
    args[2] = args[0];
    if (op == TIR_SHIFTED && in == DT_I32) /* what these two are for */
        args[1] = tir_binary(c, TIR_BITAND, args[1], tir_int(c, in, 31));
    if (op == TIR_DOUBLED && in == DT_I32)
        args[1] = tir_max(c, args[1], tir_int(c, in, -INT32_MAX));
    tir_expr_ref value = cast                   ? tir_cast(c, out, args[0])
                         : tir_op_is_binary(op) ? tir_binary(c, op, args[0], args[1])
                                                : tir_call(c, op, tir_op_arity(op), args);
    tir_stmt *body =
        tir_for(c, i, tir_i64(c, 0), tir_i64(c, split ? 8 : N), kind, tir_store(c, params[2], 1, &at, value));
    if (split)
        body = tir_for(c, j, tir_i64(c, 0), tir_i64(c, N / 8), FOR_SERIAL, body);
    tir_func *f = arena_new(&c->mem, tir_func);
    *f = (tir_func){.name = name,
                    .params = arena_copy(&c->mem, params, sizeof params, _Alignof(tir_buffer *)),
                    .n_params = 3,
                    .n_inputs = 2,
                    .body = body,
                    .index_type = DT_I64,
                    .loc = src_loc_none()};
    if (split)
        assert_true(tir_pass_vectorize(c, f));
    return f;
}

static void add(suite *s, dtype in, dtype out, tir_op op, bool cast, bool inexact)
{
    subject x = {.in = in, .out = out, .inexact = inexact};
    uint32_t n = s->list.len;
    x.scalar = make(s, arena_printf(&s->c.mem, "s%u", n), in, out, FOR_SERIAL, op, cast);
    x.vector = make(s, arena_printf(&s->c.mem, "v%u", n), in, out, FOR_VECTORIZED, op, cast);
    if (in == DT_F32 && (op == TIR_EXP || op == TIR_DECAY || op == TIR_ERF || op == TIR_TANH)) {
        x.inexact = false; /* as arithmetic: the same bits */
        assert_true(tir_pass_math(&s->c, x.scalar) && tir_pass_math(&s->c, x.vector));
    }
    vec_push(&s->c.mem, &s->list, x);
}

static bool takes(tir_op op, dtype dt)
{
    bool floating = dtype_is_float(dt);
    if (op == TIR_TO_BITS || op == TIR_FROM_BITS)
        return tir_op_result(op, dt) != dt && dtype_bits(dt) >= 32 && (dt != DT_I32 && dt != DT_I64) &&
               floating == (op == TIR_TO_BITS);
    if (tir_op_is_fixed(op))
        return dt == DT_I32;
    if (op == TIR_RARE)
        return dt == DT_BOOL;
    if (op == TIR_ANY_SIGN) /* of lanes one number: test_math.c, test/golden/kernel/choices.case */
        return false;
    if (op == TIR_SCALED)
        return dt == DT_I64;
    if (op == TIR_AND || op == TIR_OR)
        return dt == DT_BOOL;
    if (dt == DT_BOOL)
        return op == TIR_EQ || op == TIR_NE || op == TIR_BITAND || op == TIR_BITOR || op == TIR_BITXOR;
    if (op == TIR_MOD || op == TIR_FLOORDIV || op == TIR_FLOORMOD || op == TIR_BITAND || op == TIR_BITOR ||
        op == TIR_BITXOR || op == TIR_BITNOT)
        return !floating;
    if (op == TIR_SHL || op == TIR_SHR)
        return !floating;
    if (op == TIR_FABS)
        return floating;
    return tir_op_is_binary(op) || floating;
}

static bool is_exact(tir_op op)
{
    return tir_op_is_binary(op) || op == TIR_SQRT || op == TIR_FLOOR || op == TIR_CEIL || op == TIR_RINT ||
           op == TIR_TRUNC || op == TIR_FABS || op == TIR_ISNAN || op == TIR_ISINF || op == TIR_BITNOT ||
           op == TIR_TO_BITS || op == TIR_FROM_BITS || op == TIR_SCALED || op == TIR_APART || op == TIR_RARE ||
           tir_op_is_fixed(op);
}

static void add_all(suite *s)
{
    for (size_t t = 0; t < TYPES; t++) {
        for (int op = TIR_OP_NONE + 1; op < TIR_OP_COUNT; op++) {
            bool boolean = tir_op_is_compare((tir_op)op) || op == TIR_AND || op == TIR_OR;
            if (takes((tir_op)op, types[t]))
                add(s, types[t], boolean ? DT_BOOL : tir_op_result((tir_op)op, types[t]), (tir_op)op, false,
                    !is_exact((tir_op)op));
        }
        for (size_t to = 0; to < TYPES; to++)
            if (to != t)
                add(s, types[t], types[to], TIR_OP_NONE, true, false);
    }
}

/* --- values
 * ----------------------------------------------------------------------------------------------------------------- */

static void fill(dtype dt, uint8_t *data, bool second)
{
    /* Two of f64 are just above what lies halfway between numbers of f16. */
    static const double floats[] = {
        0.0,     -0.0,   1.0,      -1.0,      0.5,   -0.5, 1.5,     2.5,          -2.5,          0x1.002p+0 + 0x1p-40,
        0x1p-25 + 0x1p-60,
        127.4,   128.6,  -128.6,   255.5,     256.0, 1e-3, 65504.0, 2147483648.0, -2147483649.0, 4294967296.0, 9.3e18,
        -9.3e18, 1.9e19, INFINITY, -INFINITY, NAN,   1e-7, 6e-8,    0.1,          20.0,          -20.0};
    static const int64_t ints[] = {0,
                                   1,
                                   -1,
                                   2,
                                   -2,
                                   3,
                                   5,
                                   -5,
                                   7,
                                   8,
                                   31,
                                   32,
                                   63,
                                   64,
                                   100,
                                   -100,
                                   127,
                                   128,
                                   -128,
                                   -129,
                                   255,
                                   256,
                                   32767,
                                   32768,
                                   -32768,
                                   65535,
                                   INT32_MAX,
                                   INT32_MIN,
                                   (int64_t)UINT32_MAX,
                                   INT64_MAX,
                                   INT64_MIN,
                                   12345};
    for (uint32_t i = 0; i < N; i++) {
        uint32_t k = second ? (i * 7 + i / 32 * 5 + 3) % 32 : i % 32;
        if (dt == DT_BOOL)
            data[i] = (uint8_t)((k >> (i / 32)) & 1u);
        else if (dtype_is_float(dt))
            dtype_store_f64(dt, data + i * dtype_bytes(dt), floats[k]);
        else
            dtype_store_i64(dt, data + i * dtype_bytes(dt), ints[k]);
    }
}

static bool close_enough(dtype dt, const uint8_t *got, const uint8_t *want, bool inexact)
{
    size_t size = dtype_bytes(dt);
    if (memcmp(got, want, size) == 0)
        return true;
    if (!dtype_is_float(dt))
        return false;
    double a = dtype_load_f64(dt, got), b = dtype_load_f64(dt, want);
    if ((isnan(a) && isnan(b)) || (a == 0 && b == 0 && inexact))
        return true;
    double unit = dt == DT_F64 ? 1e-15 : dt == DT_F32 ? 1e-6 : dt == DT_F16 ? 2e-3 : 1.6e-2;
    return inexact && isfinite(a) && isfinite(b) &&
           fabs(a - b) <= unit * fmax(fabs(a), fabs(b)) + (dt == DT_F16 ? 1e-7 : 1e-37);
}

/* --- building
 * --------------------------------------------------------------------------------------------------------------- */

static void write_one(suite *s, writer *w, c_needs *needs, const tir_func *f)
{
    assert_true(func_write(&s->c, w, needs, f, "static ", arena_printf(&s->c.mem, "k_%s", f->name)));
    const char *in = dtype_c_name(f->params[0]->dt), *out = dtype_c_name(f->params[2]->dt);
    w_fmt(w,
          "int32_t %s(const void *a, const void *b, void *out);\nint32_t %s(const void *a, const void *b, void "
          "*out)\n{\n",
          f->name, f->name);
    w_fmt(w, "return k_%s((const %s *)a, (const %s *)b, (%s *)out, 0, 1);\n}\n", f->name, in, in, out);
}

static void write_file(suite *s)
{
    c_needs needs = {.a = &s->c.mem};
    writer body, all;
    writer_init(&body, &s->c.mem);
    writer_init(&all, &s->c.mem);
    for (uint32_t i = 0; i < s->list.len; i++) {
        write_one(s, &body, &needs, s->list.data[i].scalar);
        write_one(s, &body, &needs, s->list.data[i].vector);
    }
    w_str(&all, "#include <math.h>\n#include <stddef.h>\n#include <stdint.h>\n");
    needs_write(&s->c.mem, &all, &needs);
    w_str(&all, body.data);
    assert_true(compiler_write_file(&s->c, path_join(&s->c.mem, s->dir, "all.c"), all.data, all.len));
}

static void *build(suite *s, const char *name, const char *flag, const char *warnings, const char *level)
{
    const char *cc = getenv("CC"), *out = path_join(&s->c.mem, s->dir, name);
    const char *argv[] = {cc && *cc ? cc : "cc",
                          "-std=c99",
                          level,
                          "-Wall",
                          "-Wextra",
                          "-Wconversion",
                          "-Wshadow",
                          "-pedantic",
                          "-Werror",
                          "-Wno-psabi", /* the vectors here are wider than this processor's */
                          "-ffp-contract=off",
                          "-fsanitize-undefined-trap-on-error", /* clang links no runtime of it into libraries */
                          "-fPIC",
                          "-shared",
                          flag,
                          warnings,
                          path_join(&s->c.mem, s->dir, "all.c"),
                          "-o",
                          out,
                          "-lm",
                          NULL};
    const process_task task = {argv, s->dir, "building", "no compiler", "none", "package", s->dir};
    if (!process_run(&s->c, &task))
        fail_msg("%s", diags_print(&s->c.diags, &s->c.mem));
    void *library = dlopen(out, RTLD_NOW);
    if (!library)
        fail_msg("%s", dlerror());
    return library;
}

static void compare(suite *s, const subject *x, const tir_func *f, void *library, const char *how)
{
    static uint8_t a[N * 8], b[N * 8], want[N * 8], got[N * 8];
    void *params[3] = {a, b, want}, *symbol = dlsym(library, f->name);
    int32_t status = 0;
    kernel run;
    memcpy(&run, &symbol, sizeof run);
    assert_non_null(symbol);
    fill(x->in, a, false);
    fill(x->in, b, true);
    if (!tir_interpret(&s->c, x->scalar, params, &status))
        fail_msg("%s", diags_print(&s->c.diags, &s->c.mem));
    assert_int_equal(run(a, b, got), 0);
    for (uint32_t i = 0; i < N; i++) {
        size_t size = dtype_bytes(x->out);
        if (close_enough(x->out, got + i * size, want + i * size, x->inexact))
            continue;
        writer w;
        writer_init(&w, &s->c.mem);
        tir_print_func(&w, f);
        fail_msg("%s, element %u: %.17g (%s), %.17g and %.17g give %.17g, the interpreter says %.17g\n%s", how, i,
                 dtype_load_f64(x->in, a + i * dtype_bytes(x->in)), dtype_name(x->in),
                 dtype_load_f64(x->in, a + i * dtype_bytes(x->in)), dtype_load_f64(x->in, b + i * dtype_bytes(x->in)),
                 dtype_load_f64(x->out, got + i * size), dtype_load_f64(x->out, want + i * size), w.data);
    }
}

static void everything(void **state)
{
    suite *s = *state;
    const bool long_tier = seeds(0, 0, 1);
    const struct {
        const char *name, *flag, *warnings, *level;
    } builds[] = {
        {"vectors.so", "-DLATHE_VECTORS=1", "-Wall", "-O1"},
        {"lanes.so", "-DLATHE_VECTORS=0", "-Wall", "-O0"},
#ifdef __x86_64__
        {"native.so", "-march=native", "-Wall", long_tier ? "-O1" : "-O0"}, /* instructions that C has no word for */
#endif
        {"checked.so", "-fsanitize=undefined,float-cast-overflow", "-w", "-O0"}}; /* sanitizers make false warnings */
#ifdef __SANITIZE_ADDRESS__
    const size_t count = 1; /* the sanitizers of this program see the writer and the interpreter, not what is built */
#else
    const size_t count = seeds(1, sizeof builds / sizeof *builds, sizeof builds / sizeof *builds);
#endif
    write_file(s);
    for (size_t k = 0; k < count; k++) {
        const char *level = seeds(0, 1, 1) ? builds[k].level : "-O0"; /* optimised code is for `make test` */
        void *library = build(s, builds[k].name, builds[k].flag, builds[k].warnings, level);
        for (uint32_t i = 0; i < s->list.len; i++) {
            compare(s, &s->list.data[i], s->list.data[i].scalar, library, builds[k].name);
            compare(s, &s->list.data[i], s->list.data[i].vector, library, builds[k].name);
        }
    }
}

/* --- texts
 * -------------------------------------------------------------------------------------------------------------------
 */

static void literals(void **state)
{
    suite *s = *state;
    arena *a = &s->c.mem;
    assert_string_equal(scalar_float(a, DT_F32, 1.0).s, "1.0f");
    assert_string_equal(scalar_float(a, DT_F32, (double)0.1f).s, "0.1f");
    assert_string_equal(scalar_float(a, DT_F64, 0.1).s, "0.1");
    assert_string_equal(scalar_float(a, DT_F32, (double)INFINITY).s, "INFINITY");
    assert_string_equal(scalar_int(a, DT_I32, INT32_MIN).s, "INT32_MIN");
    assert_string_equal(scalar_int(a, DT_I64, INT64_MIN).s, "(-INT64_MAX - 1)");
    assert_string_equal(scalar_int(a, DT_I64, 5000000000).s, "INT64_C(5000000000)");
    assert_string_equal(scalar_int(a, DT_U64, -1).s, "UINT64_C(18446744073709551615)");
    assert_string_equal(codegen_c_identifier(a, "conv/1:0"), "conv_1_0");
    assert_string_equal(codegen_c_identifier(a, "3x"), "v3x");
    static const char *const awkward[] = {"for",    "int64_t", "uint32_t", "expf", "INT32_MAX", "lathe_max_f32",
                                          "f32x16", "part",    "parts",    "main", "printf",    "tvmgen_default_run",
                                          "memcpy", "NAN",     "class",    "fmaxl"};
    for (size_t i = 0; i < sizeof awkward / sizeof *awkward; i++)
        assert_string_equal(codegen_c_identifier(a, awkward[i]), arena_printf(a, "v_%s", awkward[i]));
    static const char *const plain[] = {"x", "X", "T_add", "input", "conv1", "expert", "logits", "f32", "t", "F1"};
    for (size_t i = 0; i < sizeof plain / sizeof *plain; i++)
        assert_string_equal(codegen_c_identifier(a, plain[i]), plain[i]);
}

/* What has no C form is refused, never left out. */
static void refused(void **state)
{
    suite *s = *state;
    writer w;
    writer_init(&w, &s->c.mem);
    tir_func *f = make(s, "threads", DT_F32, DT_F32, FOR_VTHREAD, TIR_ADD, false);
    uint32_t before = s->c.diags.errors;
    assert_false(codegen_c_func(&s->c, &w, f, "threads", NULL));
    assert_true(s->c.diags.errors > before);
}

static int setup(void **state)
{
    suite *s = calloc(1, sizeof *s);
    compiler_setup(&s->c);
    s->dir = process_temp_dir(&s->c);
    add_all(s);
    *state = s;
    return s->dir ? 0 : -1;
}

static int teardown(void **state)
{
    suite *s = *state;
    compiler_remove_temp_dir(&s->c, s->dir);
    compiler_free(&s->c);
    free(s);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(literals), cmocka_unit_test(everything),
                                       cmocka_unit_test(refused)};
    return cmocka_run_group_tests(tests, setup, teardown);
}
