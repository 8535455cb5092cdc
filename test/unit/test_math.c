/* SPDX-License-Identifier: Apache-2.0 */
/* exp, log, sin, asin, sinh and their kind as arithmetic (expand-math), in vectors of 8, against the C library in
 * double precision: the errors that the pass states, and the values at the ends. The C that is made of them is compared
 * bit by bit in test_codegen.c. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <math.h>
#include <stdio.h>

#include "tir/interpret.h"
#include "tir/pass.h"
#include "tir/text.h"
#include "tir/tir.h"

enum { N = 1 << 16 };

static float in[N], out[N];

/* out = fn(in), by the interpreter, after the pass. */
static void evaluate(const char *fn)
{
    char text[512];
    compiler c;
    tir_module *m;
    int32_t status = 0;
    void *params[2] = {in, out};
    snprintf(text, sizeof text,
             "primfn(A: handle, O: handle) -> ()\n  attr = {\"global_symbol\": \"f\", \"inputs\": 1}\n"
             "  buffers = {A: Buffer(float32, [%d]), O: Buffer(float32, [%d])} {\n"
             "  for (i: int64, 0, %d) {\n    for (v: int64, 0, 8) \"vectorized\" {\n"
             "      O[((i*8) + v)] = %s((float32*)A[((i*8) + v)])\n    }\n  }\n}\n",
             N, N, N / 8, fn);
    compiler_init(&c);
    if (!tir_parse(&c, "case", text, strlen(text), &m) ||
        !tir_run_passes(&c, m, "vectorize,expand-math,flatten", false, NULL) ||
        !tir_interpret(&c, m->funcs.data[0], params, &status))
        fail_msg("%s", diags_print(&c.diags, &c.mem));
    compiler_free(&c);
}

/* Distance in units of the last place of the exact value's float. */
static double error_of(float got, double exact)
{
    float near = (float)exact;
    if (!isfinite(near) || near == 0)
        return got == near ? 0 : INFINITY;
    double unit = (double)nextafterf(fabsf(near), INFINITY) - fabs((double)near);
    return fabs((double)got - exact) / unit;
}

static void errors(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        double (*exact)(double);
        float low, high;
        double most;
    } cases[] = {{"exp", exp, -103.0f, 88.7f, 1.1},  {"exp", exp, -1.0f, 1.0f, 1.1},
                 {"decay", exp, -104.0f, 0.0f, 1.1}, {"decay", exp, -1.0f, 0.0f, 1.1},
                 {"erf", erf, -4.5f, 4.5f, 4.7},     {"erf", erf, -1.2f, 1.2f, 4.7},
                 {"tanh", tanh, -11.0f, 11.0f, 4.5}, {"tanh", tanh, -1.0f, 1.0f, 4.5},
                 {"log", log, 1e-30f, 4.0f, 1.0},    {"log", log, 0.6f, 1.5f, 1.0},
                 {"log", log, 0x1p-149f, 0x1p-120f, 1.0}, {"log", log, 4.0f, 3e38f, 1.0},
                 {"expm1", expm1, -18.5f, 0.0f, 1.0}, {"expm1", expm1, 0.0f, 88.7f, 1.8},
                 {"expm1", expm1, -1.5f, 1.5f, 1.8},
                 {"expm1", expm1, -1e-3f, 1e-3f, 1.5}, {"expm1", expm1, -0x1p-120f, 0x1p-149f, 1.0},
                 {"log1p", log1p, -0.99999f, 4.0f, 1.3}, {"log1p", log1p, -1e-3f, 1e-3f, 1.3},
                 {"log1p", log1p, 0x1p-149f, 0x1p-120f, 1.0}, {"log1p", log1p, 4.0f, 3.4e38f, 1.3},
                 {"sin", sin, -10.0f, 10.0f, 1.0},   {"cos", cos, -10.0f, 10.0f, 1.0},
                 {"sin", sin, -1e6f, 1e6f, 1.0},     {"cos", cos, -1e6f, 1e6f, 1.0},
                 {"sin", sin, -1.5e38f, 1.5e38f, 1.0},   {"cos", cos, -1.5e38f, 1.5e38f, 1.0},
                 {"sin", sin, 0x1p47f, 0x1p49f, 1.0}, {"cos", cos, 0x1p71f, 0x1p73f, 1.0},
                 {"sin", sin, -2060.0f, 2060.0f, 1.0}, {"cos", cos, 2030.0f, 2060.0f, 1.0}, /* near and far */
                 {"tan", tan, 2030.0f, 2060.0f, 2.0},
                 {"tan", tan, -10.0f, 10.0f, 2.0},   {"tan", tan, -1e6f, 1e6f, 2.0},
                 {"asin", asin, -1.0f, 1.0f, 1.8},   {"acos", acos, -1.0f, 1.0f, 1.3},
                 {"atan", atan, -9.0f, 9.0f, 1.6},   {"sinh", sinh, -2.0f, 2.0f, 1.9},
                 {"sinh", sinh, -89.5f, 89.5f, 1.9}, {"cosh", cosh, -89.5f, 89.5f, 2.4},
                 {"cosh", cosh, -2.0f, 2.0f, 2.4},   {"asinh", asinh, -9.0f, 9.0f, 2.2},
                 {"acosh", acosh, 1.0f, 3.0f, 2.6},  {"atanh", atanh, -0.99999f, 0.99999f, 2.6}};
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        for (int i = 0; i < N; i++)
            in[i] = cases[k].low + (cases[k].high - cases[k].low) * ((float)i / (float)N);
        evaluate(cases[k].name);
        for (int i = 0; i < N; i++) {
            double e = error_of(out[i], cases[k].exact((double)in[i]));
            if (!(e <= cases[k].most))
                fail_msg("%s(%.9g) gives %.9g, %.3g units off", cases[k].name, (double)in[i], (double)out[i], e);
        }
    }
}

/* Floats of all magnitudes: their bits in steps. */
static void all_magnitudes(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        double (*exact)(double);
        double most;
    } cases[] = {{"erf", erf, 4.7},     {"tanh", tanh, 4.5},
                 {"expm1", expm1, 1.8}, {"log", log, 1.0}, {"log1p", log1p, 1.3}, {"sin", sin, 1.0}, {"cos", cos, 1.0},
                 {"tan", tan, 2.0},     {"asin", asin, 1.8},   {"acos", acos, 1.3},   {"atan", atan, 1.6},
                 {"sinh", sinh, 1.9},   {"cosh", cosh, 2.4},   {"asinh", asinh, 2.2}, {"acosh", acosh, 2.6},
                 {"atanh", atanh, 2.6}};
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        for (uint32_t i = 0; i < N; i++) {
            uint32_t bits = i * 65536u + i * 40503u % 65536u;
            memcpy(&in[i], &bits, sizeof bits);
        }
        evaluate(cases[k].name);
        for (int i = 0; i < N; i++) {
            double exact = cases[k].exact((double)in[i]), e = isnan(exact) ? 0 : error_of(out[i], exact);
            if (!(e <= cases[k].most) || isnan(exact) != isnan(out[i]))
                fail_msg("%s(%.9g) gives %.9g, %.3g units off", cases[k].name, (double)in[i], (double)out[i], e);
        }
    }
}

static void check(const char *fn, float x, float want)
{
    in[0] = x;
    evaluate(fn);
    bool same = isnan(want) ? isnan(out[0]) : out[0] == want && signbit(out[0]) == signbit(want);
    if (!same)
        fail_msg("%s(%.9g) gives %.9g, not %.9g", fn, (double)x, (double)out[0], (double)want);
}

static void ends(void **state)
{
    (void)state;
    static const char *const odd_functions[] = {"sin", "tan", "asin", "atan", "sinh", "tanh", "asinh", "atanh"};
    static const float odd[][2] = {{INFINITY, 1}, {-INFINITY, -1}, {0, 0}, {-0.0f, -0.0f}, {NAN, NAN}, {1e30f, 1}};
    for (size_t k = 0; k < sizeof odd / sizeof *odd; k++) {
        check("erf", odd[k][0], odd[k][1]);
        check("tanh", odd[k][0], odd[k][1]);
        check("expm1", odd[k][0], odd[k][0] > 0 ? INFINITY : odd[k][1]);
    }
    check("exp", INFINITY, INFINITY);
    check("exp", -INFINITY, 0);
    check("exp", NAN, NAN);
    check("exp", 0, 1);
    check("exp", 88.7229f, INFINITY);
    check("exp", -103.97f, 0x1p-149f);
    check("exp", -104.1f, 0);
    check("exp", 1e30f, INFINITY);
    check("exp", -1e30f, 0);
    check("log", 0, -INFINITY);
    check("log", -0.0f, -INFINITY);
    check("log", 1, 0);
    check("log", -1, NAN);
    check("log", -INFINITY, NAN);
    check("log", INFINITY, INFINITY);
    check("log", NAN, NAN);
    check("log", 0x1p-149f, (float)log(0x1p-149));
    check("expm1", -1e30f, -1);
    check("expm1", 88.7229f, INFINITY);
    check("expm1", -0x1p-149f, -0x1p-149f);
    check("log1p", 0, 0);
    check("log1p", -0.0f, -0.0f);
    check("log1p", -1, -INFINITY);
    check("log1p", -1.5f, NAN);
    check("log1p", -INFINITY, NAN);
    check("log1p", INFINITY, INFINITY);
    check("log1p", NAN, NAN);
    check("log1p", -0x1p-149f, -0x1p-149f);
    check("log1p", 3e38f, (float)log1p((double)3e38f));
    check("sin", -0.0f, -0.0f);
    check("sin", 0x1p-149f, 0x1p-149f);
    check("sin", INFINITY, NAN);
    check("sin", NAN, NAN);
    check("cos", -0.0f, 1);
    check("cos", -INFINITY, NAN);
    for (size_t k = 0; k < sizeof odd_functions / sizeof *odd_functions; k++) {
        check(odd_functions[k], -0.0f, -0.0f);
        check(odd_functions[k], 0, 0);
        check(odd_functions[k], -0x1p-149f, -0x1p-149f);
        check(odd_functions[k], NAN, NAN);
    }
    check("tan", INFINITY, NAN);
    check("asin", 1.0000001f, NAN);
    check("asin", -1, -(float)asin(1));
    check("acos", 1, 0);
    check("acos", -1, (float)acos(-1));
    check("acos", -0.0f, (float)acos(0));
    check("acos", INFINITY, NAN);
    check("atan", -INFINITY, -(float)asin(1));
    check("sinh", -INFINITY, -INFINITY);
    check("sinh", 89.4159f, (float)sinh((double)89.4159f));
    check("sinh", 89.416f, INFINITY);
    check("cosh", -INFINITY, INFINITY);
    check("cosh", NAN, NAN);
    check("cosh", -0.0f, 1);
    check("asinh", -INFINITY, -INFINITY);
    check("acosh", 1, 0);
    check("acosh", INFINITY, INFINITY);
    check("acosh", 0.99999994f, NAN);
    check("acosh", -INFINITY, NAN);
    check("atanh", 1, INFINITY);
    check("atanh", -1, -INFINITY);
    check("atanh", 1.0000001f, NAN);
    check("atanh", INFINITY, NAN);
    check("decay", -INFINITY, 0);
    check("decay", NAN, NAN);
    check("decay", 0, 1);
    check("decay", -0.0f, 1);
    check("decay", -87.5f, (float)exp(-87.5));
    check("decay", -103.97f, 0x1p-149f);
    check("decay", -104.1f, 0);
    check("decay", -1e30f, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(errors), cmocka_unit_test(all_magnitudes),
                                       cmocka_unit_test(ends)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
