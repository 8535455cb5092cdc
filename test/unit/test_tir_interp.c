/* SPDX-License-Identifier: Apache-2.0 */
/* The interpreter: C semantics by table, accesses outside, assertions, unaligned inputs; random kernels against the
 * naive reading of tir_reference.h, plain and after every pass. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <math.h>
#include <stdio.h>

#include "tir/facts.h"
#include "tir/interpret.h"
#include "tir/pass.h"
#include "tir/text.h"
#include "tir_reference.h"

static tir_module *parse(compiler *c, const char *text)
{
    tir_module *m;
    if (!tir_parse(c, "case", text, strlen(text), &m))
        fail_msg("%s", diags_print(&c->diags, &c->mem));
    return m;
}

/* --- single values --- */

/* One expression over x and y of a type, its result as text of %.9g or a decimal integer. */
static const struct {
    const char *type, *x, *y, *result_type, *expr, *want;
} values[] = {
    {"int8", "127", "1", "int8", "(x + y)", "-128"},
    {"int8", "-128", "-1", "int8", "(x*y)", "-128"},
    {"int8", "-128", "-1", "int8", "(x / y)", "-128"},
    {"uint8", "200", "100", "uint8", "(x + y)", "44"},
    {"uint8", "3", "5", "uint8", "(x - y)", "254"},
    {"uint8", "200", "100", "uint8", "(x / y)", "2"},
    {"int32", "-7", "2", "int32", "(x / y)", "-3"},
    {"int32", "-7", "2", "int32", "(x % y)", "-1"},
    {"int32", "-7", "2", "int32", "floordiv(x, y)", "-4"},
    {"int32", "-7", "2", "int32", "floormod(x, y)", "1"},
    {"int32", "7", "-2", "int32", "floormod(x, y)", "-1"},
    {"int32", "7", "0", "int32", "(x / y)", "0"},
    {"int32", "7", "0", "int32", "floormod(x, y)", "0"},
    {"int32", "-2147483648", "-1", "int32", "(x / y)", "-2147483648"},
    {"int64", "-9223372036854775808", "-1", "int64", "(x / y)", "-9223372036854775808"},
    {"int64", "-9223372036854775808", "-1", "int64", "(x % y)", "0"},
    {"int64", "9223372036854775807", "1", "int64", "(x + y)", "-9223372036854775808"},
    {"uint64", "-1", "1", "bool", "(x > y)", "1"},
    {"uint64", "-1", "2", "uint64", "(x / y)", "9223372036854775807"},
    {"int64", "-1", "1", "bool", "(x > y)", "0"},
    {"int32", "1", "31", "int32", "(x << y)", "-2147483648"},
    {"int32", "1", "32", "int32", "(x << y)", "0"},
    {"int32", "-8", "1", "int32", "(x >> y)", "-4"},
    {"int32", "-8", "40", "int32", "(x >> y)", "-1"},
    {"uint32", "-8", "1", "uint32", "(x >> y)", "2147483644"},
    {"uint8", "255", "8", "uint8", "(x << y)", "0"},
    {"uint8", "15", "0", "uint8", "bitnot(x)", "240"},
    {"int8", "15", "6", "int8", "(x ^ y)", "9"},
    {"float32", "300.7", "0", "uint8", "cast(uint8, x)", "255"},
    {"float32", "-3.9", "0", "int8", "cast(int8, x)", "-3"},
    {"float32", "-3.9", "0", "uint8", "cast(uint8, x)", "0"},
    {"float32", "nan", "0", "int32", "cast(int32, x)", "0"},
    {"float32", "inf", "0", "int32", "cast(int32, x)", "2147483647"},
    {"float64", "-1e300", "0", "int64", "cast(int64, x)", "-9223372036854775808"},
    {"float64", "1e300", "0", "uint64", "cast(uint64, x)", "-1"},
    {"float32", "0.25", "0", "bool", "cast(bool, x)", "1"},
    {"int32", "256", "0", "bool", "cast(bool, x)", "1"},
    {"int32", "300", "0", "uint8", "cast(uint8, x)", "44"},
    {"int32", "16777217", "0", "float32", "cast(float32, x)", "16777216"},
    {"uint64", "-1", "0", "float64", "cast(float64, x)", "1.84467441e+19"},
    {"float16", "2048", "1", "float16", "(x + y)", "2048"},
    {"float16", "60000", "60000", "float16", "(x + y)", "inf"},
    {"float16", "0.1", "0", "float32", "cast(float32, x)", "0.0999755859"},
    {"bfloat16", "1.0", "0.001", "bfloat16", "(x + y)", "1"},
    {"bfloat16", "3.14159", "0", "float32", "cast(float32, x)", "3.140625"},
    {"float32", "nan", "1", "float32", "max(x, y)", "nan"},
    {"float32", "1", "nan", "float32", "min(x, y)", "nan"},
    {"float32", "nan", "nan", "bool", "(x == y)", "0"},
    {"float32", "nan", "1", "bool", "!(x < y)", "1"},
    {"float32", "16777216", "1", "float32", "(x + y)", "16777216"},
    {"float64", "16777216", "1", "float64", "(x + y)", "16777217"},
    {"float32", "2.5", "0", "float32", "rint(x)", "2"},
    {"float32", "-0.5", "0", "float32", "ceil(x)", "-0"},
    {"float32", "7", "-3", "float32", "fmod(x, y)", "1"},
    {"float32", "2", "0.5", "float32", "pow(x, y)", "1.41421354"},
    {"float32", "1.5", "-149", "float32", "ldexp(x, y)", "2.80259693e-45"},
    {"float32", "-1", "5000", "float32", "ldexp(x, y)", "-inf"},
    {"float32", "1", "nan", "float32", "ldexp(x, y)", "nan"},
    {"float32", "0.5", "0", "float32", "erf(x)", "0.520499885"},
    {"float32", "nan", "0", "bool", "isnan(x)", "1"},
    {"float32", "-inf", "0", "bool", "isinf(x)", "1"},
    {"float32", "3", "4", "float32", "fma(x, y, y)", "16"},
    {"float32", "nan", "1", "float32", "above(x, y)", "1"},
    {"float32", "1", "nan", "float32", "below(x, y)", "nan"},
    {"float64", "3", "2", "float64", "above(x, y)", "3"},
    {"float32", "nan", "1", "float32", "at_least(x, y)", "nan"},
    {"float32", "1", "nan", "float32", "at_most(x, y)", "1"},
    {"float32", "-0", "0", "float32", "at_least(x, y)", "0"},
    {"float32", "-0", "0", "float32", "above(x, y)", "0"},
    {"float64", "3", "2", "float64", "at_most(x, y)", "2"},
    {"float32", "1", "0", "float32", "(x / y)", "inf"},
    {"bool", "1", "0", "bool", "(x && y)", "0"},
    {"bool", "1", "0", "bool", "(x || y)", "1"},
    {"bool", "1", "0", "bool", "!x", "0"},
};

static const char *const value_text = "primfn(X: handle, Y: handle, R: handle) -> ()\n"
                                      "  attr = {\"inputs\": 2}\n"
                                      "  buffers = {X: Buffer(%s, [%d]), Y: Buffer(%s, [%d]), R: Buffer(%s, [%d])} {\n"
                                      "  for (i: int64, 0, %d) {\n"
                                      "    let x: %s = (%s*)X[%s];\n"
                                      "    let y: %s = (%s*)Y[i];\n"
                                      "    R[i] = %s\n"
                                      "  }\n"
                                      "}\n";

static dtype type_of(const tir_module *m, uint32_t param)
{
    return m->funcs.data[0]->params[param]->dt;
}

static void fill(dtype dt, uint8_t *p, const char *text, int count)
{
    for (int i = 0; i < count; i++)
        if (dtype_is_float(dt))
            dtype_store_f64(dt, p + (size_t)i * dtype_bytes(dt), strtod(text, NULL));
        else
            dtype_store_i64(dt, p + (size_t)i * dtype_bytes(dt), strtoll(text, NULL, 10));
}

/* In a scalar loop and in strips (300 lanes: a full strip and a partial one), inputs at odd addresses. */
static void single_values(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
        for (int count = 1; count <= 300; count += 299) {
            compiler c;
            char text[1500];
            static uint8_t x[4000], y[4000], r[4000];
            int32_t status;
            compiler_init(&c);
            const char *t = values[i].type;
            (void)snprintf(text, sizeof text, value_text, t, count, t, count, values[i].result_type, count, count, t, t,
                           "i", t, t, values[i].expr);
            tir_module *m = parse(&c, text);
            fill(type_of(m, 0), x + 1, values[i].x, count);
            fill(type_of(m, 1), y + 3, values[i].y, count);
            void *params[] = {x + 1, y + 3, r + 5};
            if (!tir_interpret(&c, m->funcs.data[0], params, &status))
                fail_msg("%s", diags_print(&c.diags, &c.mem));
            dtype dt = type_of(m, 2);
            for (int k = 0; k < count; k++) {
                const uint8_t *p = r + 5 + (size_t)k * dtype_bytes(dt);
                char got[64];
                if (dtype_is_float(dt))
                    (void)snprintf(got, sizeof got, "%.9g", dtype_load_f64(dt, p));
                else
                    (void)snprintf(got, sizeof got, "%lld", (long long)dtype_load_i64(dt, p));
                if (strcmp(got + (strcmp(got, "-nan") == 0), values[i].want) != 0)
                    fail_msg("%s on %s %s, %s: lane %d of %d gives %s, not %s", values[i].expr, t, values[i].x,
                             values[i].y, k, count, got, values[i].want);
            }
            compiler_free(&c);
        }
    }
}

/* --- control --- */

static const struct {
    const char *body, *error; /* error NULL: runs */
    int32_t status;
} control[] = {
    {"O[0] = 1", NULL, 0},
    {"for (i: int64, 0, n) { O[i] = 1 }", "index 8 of buffer 'O' lies outside dimension 0 of extent 8", 0},
    {"for (i: int64, 0, 8) { O[i] = (int32*)I[((i*n) + 1)] }", "lies outside", 0},
    {"for (i: int64, 0, 8) { O[i] = (int32*)I[(int64*)N[i]] }", "lies outside", 0},
    {"for (i: int64, 0, 8) { O[i] = select((i < 7), (int32*)I[(i + 1)], 0) }", NULL, 0},
    {"for (i: int64, 0, 8) { if (i < 7) { O[i] = (int32*)I[(i + 1)] } }", NULL, 0},
    {"for (i: int64, 0, 8) { if ((i < 7) && ((int32*)I[(i + 1)] > 0)) { O[i] = 5 } }", NULL, 0},
    {"for (i: int64, 0, 8) { if (i < 9) { O[i] = (int32*)I[(i + 1)] } }", "index 8 of buffer 'I'", 0},
    {"assert((n == 9), 7, \"nine\") O[0] = 1", NULL, 0},
    {"assert((n == 8), 7, \"eight\") O[100] = 1", NULL, 7},
    {"for (i: int64, 0, n) { assert((i < 5), 3, \"five\") }", NULL, 3},
    {"@tir.call_extern(\"f\", 1)", "cannot run 'f'", 0},
    {"@tir.call_extern(\"f\", &O[n])", "cannot run 'f'", 0},
    {"@tir.call_extern(\"memcpy\", &O[0], &I[2], 8)", NULL, 0},
    {"@tir.call_extern(\"memcpy\", &O, &I, 32)", NULL, 0},
    {"@tir.call_extern(\"memcpy\", &O[1], &I, 32)", "memcpy of 32 bytes at 'O' lies outside", 0},
    {"@tir.call_extern(\"memcpy\", &O, &I[1], 32)", "memcpy of 32 bytes at 'I' lies outside", 0},
    {"@tir.call_extern(\"memset\", &O, 0, (0 - n))", "memset of -9 bytes at 'O' lies outside", 0},
    {"@tir.call_extern(\"memset\", &O[n], 0, 4)", "index 9 of buffer 'O' lies outside", 0},
    {"@tir.call_extern(\"memset\", &O, 0)", "cannot run 'memset'", 0},
    {"@tir.call_extern(\"memset\", 5, 0, 4)", "cannot run 'memset'", 0},
    {"let p: handle = &O[n]; O[0] = 1", "cannot run '&O'", 0},
    {"for (i: int64, 0, n) { let p: handle = &O[i]; O[i] = 1 }", "cannot run '&O'", 0},
    {"allocate(t, int32, [(0 - n)]); O[0] = (int32*)t[0]", "no valid size", 0},
    {"allocate(t, int32, [(n*1000000000000000000)]); O[0] = (int32*)t[0]", "no ", 0},
    {"O[ramp(0, 1, 8)] = broadcast(3, 8)", NULL, 0},
    {"O[ramp(n, 1, 8)] = broadcast(3, 8)", "lies outside", 0},
};

static void control_flow(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof control / sizeof *control; i++) {
        compiler c;
        int32_t status, in[8] = {1, 2, 3, 4, 5, 6, 7, 8}, out[8] = {0};
        int64_t n[8] = {9, 1, 2, 3, 4, 5, 6, -1};
        void *params[] = {in, n, out};
        compiler_init(&c);
        char *text =
            arena_printf(&c.mem,
                         "primfn(I: handle, N: handle, O: handle) -> ()\n  attr = {\"inputs\": 2}\n"
                         "  buffers = {I: Buffer(int32, [8]), N: Buffer(int64, [8]), O: Buffer(int32, [8])} {\n"
                         "  let n: int64 = (int64*)N[0] {\n %s\n }\n}\n",
                         control[i].body);
        bool ok = tir_interpret(&c, parse(&c, text)->funcs.data[0], params, &status);
        const char *said = diags_print(&c.diags, &c.mem);
        if (ok != (control[i].error == NULL) || (control[i].error && !strstr(said, control[i].error)))
            fail_msg("%s: %s", control[i].body, said);
        assert_int_equal(status, control[i].status);
        compiler_free(&c);
    }
}

/* Functions of C's library, in the order in which they are called, each time that they are called. */
static void calls_of_the_library(void **state)
{
    (void)state;
    compiler c;
    compiler_init(&c);
    int32_t status, in[4] = {1, 2, 3, 4}, out[6];
    void *params[] = {in, out};
    const char *text = "primfn(I: handle, O: handle) -> ()\n  attr = {\"inputs\": 1}\n"
                       "  buffers = {I: Buffer(int32, [4]), O: Buffer(int32, [6])} {\n"
                       "  @tir.call_extern(\"memset\", &O, 0, 24)\n"
                       "  for (i: int64, 0, 2) {\n"
                       "    @tir.call_extern(\"memcpy\", &O[(i*2)], &I[i], 8)\n"
                       "    @tir.call_extern(\"memmove\", &O[1], &O[0], 12)\n"
                       "  }\n  O[5] = ((int32*)O[1] + 10)\n}\n";
    if (!tir_interpret(&c, parse(&c, text)->funcs.data[0], params, &status))
        fail_msg("%s", diags_print(&c.diags, &c.mem));
    const int32_t want[6] = {1, 1, 1, 2, 0, 11};
    assert_memory_equal(out, want, sizeof want);
    compiler_free(&c);
}

static void undefined_contents_show(void **state)
{
    (void)state;
    compiler c;
    int32_t status, out[2] = {0, 0};
    void *params[] = {out};
    compiler_init(&c);
    tir_module *m =
        parse(&c, "primfn(O: handle) -> ()\n attr = {\"inputs\": 0}\n buffers = {O: Buffer(int32, [2])} {\n"
                  "for (i: int64, 0, 2) { allocate(t, int32, [4]) { O[i] = (int32*)t[i]\n t[i] = 7\n t[1] = 7 } } }\n");
    assert_true(tir_interpret(&c, m->funcs.data[0], params, &status));
    assert_int_equal((uint32_t)out[0], 0xA5A5A5A5u);
    assert_int_equal((uint32_t)out[1], 0xA5A5A5A5u); /* what the first iteration wrote is gone */
    compiler_free(&c);
}

/* Several stores into one buffer run in strips only where they never meet: here the last iteration to come to an
 * element decides, whatever the order of the statements. */
static void stores_that_meet(void **state)
{
    (void)state;
    enum { N = 300 };
    static int32_t rows[3 * N], one[N + 1];
    void *params[] = {rows, one};
    compiler c;
    int32_t status;
    compiler_init(&c);
    tir_module *m =
        parse(&c, "primfn(R: handle, O: handle) -> ()\n attr = {\"inputs\": 0}\n"
                  " buffers = {R: Buffer(int32, [3, 300]), O: Buffer(int32, [301])} {\n"
                  "for (i: int64, 0, 300) { R[0, i] = cast(int32, i)\n R[2, i] = (0 - cast(int32, i))\n"
                  " R[1, i] = (2*cast(int32, i)) }\n"
                  "for (i: int64, 0, 300) { O[(i + 1)] = cast(int32, i)\n O[i] = (1000 + cast(int32, i)) } }\n");
    assert_true(tir_interpret(&c, m->funcs.data[0], params, &status));
    for (int32_t i = 0; i < N; i++) {
        assert_int_equal(rows[i], i);
        assert_int_equal(rows[N + i], 2 * i);
        assert_int_equal(rows[2 * N + i], -i);
        assert_int_equal(one[i], 1000 + i);
    }
    assert_int_equal(one[N], N - 1);
    compiler_free(&c);
}

/* --- random kernels --- */

typedef struct gen {
    compiler *c;
    uint64_t seed;
    const tir_buffer *in, *wide, *out, *tmp;
    tir_expr_ref vars[8];
    uint32_t n_vars;
    bool may_allocate;
} gen;

static uint32_t pick(gen *g, uint32_t n)
{
    g->seed = g->seed * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(g->seed >> 33) % n;
}

/* Mostly affine, always inside: every index is taken modulo its extent unless it obviously fits. */
static tir_expr_ref random_index(gen *g, int64_t extent)
{
    tir_expr_ref e = tir_i64(g->c, pick(g, 4));
    for (uint32_t i = 0; i < g->n_vars; i++)
        if (pick(g, 2))
            e = tir_add(g->c, e, tir_mul(g->c, g->vars[i], tir_i64(g->c, 1 + pick(g, 3))));
    if (pick(g, 4) == 0)
        e = tir_floordiv(g->c, e, tir_i64(g->c, 2));
    return tir_floormod(g->c, e, tir_i64(g->c, extent));
}

static tir_expr_ref random_value(gen *g, int depth);

static tir_expr_ref load_of(gen *g, const tir_buffer *b)
{
    tir_expr_ref idx[2];
    int64_t extent;
    for (uint32_t i = 0; i < b->rank; i++) {
        (void)tir_is_int(b->shape[i], &extent);
        idx[i] = random_index(g, extent);
        if (i + 1 == b->rank && g->n_vars && pick(g, 2))
            idx[i] =
                g->vars[g->n_vars - 1]; /* plain, as kernels have it: extents of loops are below those of buffers */
    }
    return tir_load(g->c, b, b->rank, idx);
}

static tir_expr_ref guarded(gen *g, int depth)
{
    tir_expr_ref v = g->n_vars ? g->vars[pick(g, g->n_vars)] : tir_i64(g->c, 3);
    tir_expr_ref cond = tir_binary(g->c, pick(g, 2) ? TIR_LT : TIR_GE, v, tir_i64(g->c, pick(g, 20)));
    /* the load lies outside wherever the guard is needed: the guard must work */
    tir_expr_ref at = tir_add(g->c, v, tir_i64(g->c, 300)), flat = tir_i64(g->c, 0);
    tir_expr_ref far = tir_select(g->c, tir_binary(g->c, TIR_LT, at, tir_i64(g->c, 0)), tir_load(g->c, g->wide, 1, &at),
                                  tir_load(g->c, g->wide, 1, &flat));
    return tir_select(g->c, cond, random_value(g, depth - 1), pick(g, 2) ? far : random_value(g, depth - 1));
}

static tir_expr_ref random_value(gen *g, int depth)
{
    static const tir_op ops[] = {TIR_ADD, TIR_SUB, TIR_MUL, TIR_MAX, TIR_MIN, TIR_BITXOR, TIR_DIV, TIR_SHR};
    uint32_t what = pick(g, depth <= 0 ? 4 : 8);
    if (what == 0)
        return tir_int(g->c, DT_I32, (int64_t)pick(g, 100) - 50);
    if (what == 1 && g->n_vars)
        return tir_cast(g->c, DT_I32, g->vars[pick(g, g->n_vars)]);
    if (what < 4) {
        const tir_buffer *b = pick(g, 5) == 0             ? g->out
                              : pick(g, 3) == 0 && g->tmp ? g->tmp
                              : pick(g, 2)                ? g->wide
                                                          : g->in;
        return tir_cast(g->c, DT_I32, load_of(g, b));
    }
    if (what == 4)
        return guarded(g, depth);
    if (what == 5)
        return tir_cast(g->c, DT_I32, tir_cast(g->c, DT_F32, random_value(g, depth - 1)));
    tir_expr_ref x = random_value(g, depth - 1);
    return tir_binary(g->c, ops[pick(g, 8)], x, random_value(g, depth - 1));
}

static tir_stmt *random_stmt(gen *g, int depth);

static tir_stmt *random_store(gen *g)
{
    const tir_buffer *b = g->tmp && pick(g, 3) == 0 ? g->tmp : g->out;
    tir_expr_ref place = load_of(g, b), value = random_value(g, 3);
    if (pick(g, 3) == 0) /* accumulate */
        value = tir_binary(g->c, pick(g, 2) ? TIR_ADD : TIR_MAX, place, value);
    return tir_store(g->c, b, place->n_args, place->args, value);
}

static tir_stmt *random_loop(gen *g, int depth)
{
    static const int64_t extents[] = {0, 1, 2, 4, 8, 8, 16, 16};
    static const tir_for_kind kinds[] = {FOR_SERIAL, FOR_SERIAL, FOR_SERIAL, FOR_VECTORIZED, FOR_UNROLLED};
    const tir_var *v = tir_new_var(g->c, "i", TIR_I64);
    tir_for_kind kind = kinds[pick(g, 5)];
    int64_t extent = extents[pick(g, 8)];
    g->vars[g->n_vars++] = tir_varref(g->c, v);
    tir_stmt *body = random_stmt(g, depth - 1);
    g->n_vars--;
    return tir_for(g->c, v, tir_i64(g->c, 0), tir_i64(g->c, extent), kind, body);
}

static tir_stmt *random_let(gen *g, int depth)
{
    bool index = pick(g, 2) && g->n_vars;
    tir_expr_ref value = index ? tir_cast(g->c, DT_I64, random_value(g, 1)) : random_index(g, 16);
    value = tir_floormod(g->c, value, tir_i64(g->c, 16));
    const tir_var *v = tir_new_var(g->c, "t", TIR_I64);
    g->vars[g->n_vars++] = tir_varref(g->c, v);
    tir_stmt *body = random_stmt(g, depth - 1);
    g->n_vars--;
    return tir_let(g->c, v, value, body);
}

static tir_stmt *random_if(gen *g, int depth)
{
    tir_expr_ref v = g->n_vars ? g->vars[pick(g, g->n_vars)] : tir_i64(g->c, 3);
    tir_expr_ref cond = tir_binary(g->c, (tir_op)(TIR_EQ + pick(g, 6)), tir_mul(g->c, v, tir_i64(g->c, 1 + pick(g, 3))),
                                   tir_i64(g->c, pick(g, 20)));
    if (pick(g, 2))
        cond = tir_and(g->c, cond, tir_binary(g->c, TIR_LT, random_value(g, 1), tir_int(g->c, DT_I32, 10)));
    tir_stmt *body = random_stmt(g, depth - 1), *orelse = pick(g, 2) ? random_stmt(g, depth - 1) : NULL;
    return tir_if(g->c, cond, body, orelse);
}

static tir_stmt *random_stmt(gen *g, int depth)
{
    uint32_t what = pick(g, depth <= 0 || g->n_vars >= 6 ? 2 : 9);
    if (what < 2)
        return random_store(g);
    if (what < 6)
        return random_loop(g, depth);
    if (what == 6)
        return random_if(g, depth);
    if (what == 7)
        return random_let(g, depth);
    tir_stmt *two[] = {random_stmt(g, depth - 1), random_stmt(g, depth - 1)};
    return tir_seq(g->c, 2, two);
}

#define IN_DIM 17
#define WIDE   300

typedef struct memory {
    int8_t in[IN_DIM][IN_DIM];
    int32_t wide[WIDE], out[IN_DIM][IN_DIM];
} memory;

static void init_memory(memory *m)
{
    for (int i = 0; i < IN_DIM * IN_DIM; i++) {
        m->in[i / IN_DIM][i % IN_DIM] = (int8_t)(i * 37);
        m->out[i / IN_DIM][i % IN_DIM] = i * 1000003;
    }
    for (int i = 0; i < WIDE; i++)
        m->wide[i] = i * 7919 - 100000;
}

static tir_func *random_func(gen *g)
{
    static const int64_t square[] = {IN_DIM, IN_DIM}, line[] = {WIDE};
    compiler *c = g->c;
    g->in = tir_buffer_static(c, "A", DT_I8, 2, square, SCOPE_GLOBAL);
    g->wide = tir_buffer_static(c, "W", DT_I32, 1, line, SCOPE_GLOBAL);
    g->out = tir_buffer_static(c, "O", DT_I32, 2, square, SCOPE_GLOBAL);
    g->tmp = pick(g, 2) ? tir_buffer_static(c, "T", DT_I32, 2, square, SCOPE_GLOBAL) : NULL;
    tir_stmt *body = random_stmt(g, 5);
    tir_func *f = arena_new(&c->mem, tir_func);
    const tir_buffer *params[] = {g->in, g->wide, g->out};
    *f = (tir_func){.name = "f", .n_params = 3, .n_inputs = 2, .index_type = DT_I64, .loc = src_loc_none()};
    f->params = arena_copy(&c->mem, params, sizeof params, _Alignof(tir_buffer *));
    f->body = g->tmp ? tir_allocate(c, g->tmp, body) : body;
    return f;
}

static const char *text_of(compiler *c, const tir_func *f)
{
    writer w;
    writer_init(&w, &c->mem);
    tir_print_func(&w, f);
    return w.data;
}

static void run_interpreter(compiler *c, const tir_func *f, memory *m, int seed, const char *when)
{
    int32_t status;
    void *params[] = {m->in, m->wide, m->out};
    init_memory(m);
    if (!tir_interpret(c, f, params, &status))
        fail_msg("seed %d %s: %s\n%s", seed, when, diags_print(&c->diags, &c->mem), text_of(c, f));
}

/* A vectorized loop promises independent lanes; random ones do not keep that promise, so the reference runs what the
 * pass made of it elsewhere: loops are made serial here when lanes touch each other. The pass checks by itself. */
static void random_kernels(void **state)
{
    static memory want, got;
    int compared = 0;
    (void)state;
    for (int seed = 0; seed < 3000; seed++) {
        compiler c;
        compiler_init(&c);
        gen g = {.c = &c, .seed = (uint64_t)seed * 7717 + 3};
        tir_func *f = random_func(&g);
        ref_env env = {
            .n_mem = 3,
            .mem = {{g.in, (uint8_t *)want.in}, {g.wide, (uint8_t *)want.wide}, {g.out, (uint8_t *)want.out}}};
        init_memory(&want);
        ref_run(&env, f->body);
        assert_false(env.failed);
        run_interpreter(&c, f, &got, seed, "plain");
        if (memcmp(want.out, got.out, sizeof want.out) != 0)
            fail_msg("seed %d: the interpreter differs\n%s", seed, text_of(&c, f));
        const char *plain = text_of(&c, f);
        tir_module m = {.c = &c};
        vec_push(&c.mem, &m.funcs, f);
        if (!tir_run_passes(&c, &m, NULL, false, NULL))
            fail_msg("seed %d: %s\n%s\n%s", seed, diags_print(&c.diags, &c.mem), plain, text_of(&c, f));
        run_interpreter(&c, f, &got, seed, "after all passes");
        if (memcmp(want.out, got.out, sizeof want.out) != 0)
            fail_msg("seed %d: passes change the result\n%s\n%s", seed, plain, text_of(&c, f));
        tir_module *again = parse(&c, text_of(&c, f));
        assert_string_equal(text_of(&c, f), text_of(&c, again->funcs.data[0]));
        assert_true(tir_func_equal(&c, f, again->funcs.data[0]) &&
                    tir_hash(&c, f) == tir_hash(&c, again->funcs.data[0]));
        compared++;
        compiler_free(&c);
    }
    assert_int_equal(compared, 3000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(single_values),    cmocka_unit_test(control_flow),   cmocka_unit_test(calls_of_the_library),
        cmocka_unit_test(undefined_contents_show),
        cmocka_unit_test(stores_that_meet), cmocka_unit_test(random_kernels),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
