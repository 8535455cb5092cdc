/* SPDX-License-Identifier: Apache-2.0 */
/* The simplifier: written forms that other parts rely on, as a table; and thousands of random expressions whose value
 * must not change anywhere in the range of their variables. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "tir/simplify.h"
#include "tir/text.h"
#include "tir_reference.h"

/* Variables of the table: i in [0, 16), j in [0, 16), k in [-8, 8), n and m unknown, f in [0, 256), p in [0, n). */
typedef struct scope {
    compiler c;
    tir_module *m;
    tir_bounds *b;
    tir_stmt *leaf;
} scope;

static const char *const frame_text =
    "primfn(A: handle, V: handle, N: handle) -> ()\n"
    "  attr = {\"inputs\": 1}\n"
    "  buffers = {A: Buffer(int32, [1000]), V: Buffer(int64, [1]), N: Buffer(int64, [2])} {\n"
    "  let n: int64 = (int64*)N[0];\n"
    "  let m: int64 = (int64*)N[1];\n"
    "  for (i: int64, 0, 16) { for (j: int64, 0, 16) { for (k: int64, -8, 16) { for (f: int64, 0, 256) { for (p: "
    "int64, 0, n) {\n"
    "    V[0] = cast(int64, %s)\n"
    "  } } } } } }\n";

static void enter(scope *s, tir_stmt *t)
{
    while (t->kind == TIR_LET || t->kind == TIR_FOR) {
        if (t->kind == TIR_FOR)
            tir_bounds_push(s->b, t->var, t->min, t->extent);
        t = t->body;
    }
    s->leaf = t;
}

static void open_scope(scope *s, const char *text)
{
    compiler_init(&s->c);
    char *source = arena_printf(&s->c.mem, frame_text, text);
    bool ok = tir_parse(&s->c, "case", source, strlen(source), &s->m);
    if (!ok)
        fail_msg("%s: %s", text, diags_print(&s->c.diags, &s->c.mem));
    s->b = tir_bounds_new(&s->c);
    enter(s, s->m->funcs.data[0]->body);
}

static const struct {
    const char *in, *out;
} table[] = {
    {"(j + (i*16))", "((i*16) + j)"},
    {"((16*i) + (j + 0))", "((i*16) + j)"},
    {"floordiv(((i*16) + j), 16)", "i"},
    {"floormod(((i*16) + j), 16)", "j"},
    {"floordiv((((i*16) + j) + 16), 16)", "(i + 1)"},
    {"((floordiv(f, 16)*16) + floormod(f, 16))", "f"},
    {"((floordiv(f, 64)*64) + ((floormod(floordiv(f, 8), 8)*8) + floormod(f, 8)))", "f"},
    {"floordiv(floordiv(f, 4), 8)", "floordiv(f, 32)"},
    {"floordiv(floormod(f, 64), 16)", "floormod(floordiv(f, 16), 4)"},
    {"floormod(floormod(f, 64), 16)", "floormod(f, 16)"},
    {"floordiv(((i*8) + 4), 16)", "floordiv(i, 2)"},
    {"floormod(((i*8) + 4), 16)", "((floormod(i, 2)*8) + 4)"},
    {"floordiv(k, 8)", "floordiv(k, 8)"},
    {"floordiv((k - 8), 16)", "-1"},
    {"floormod(f, 256)", "f"},
    {"floordiv(f, 256)", "0"},
    {"min(i, 20)", "i"},
    {"max(i, (j - 16))", "i"},
    {"min((i + 3), (i + 5))", "(i + 3)"},
    {"(i < 16)", "True"},
    {"(i < 0)", "False"},
    {"((i*16) < 40)", "(i < 3)"},
    {"(1 <= i)", "(i >= 1)"},
    {"((i + 2) > 4)", "(i >= 3)"},
    {"(((i*4) + j) < n)", "(((i*4) + j) < n)"},
    {"((i + n) < (j + n))", "(i < j)"},
    {"((i*2) == 5)", "False"},
    {"(i == (i + 1))", "False"},
    {"(i != i)", "False"},
    {"select((i < 8), select((i < 10), 1, 2), 3)", "select((i < 8), 1, 3)"},
    {"select((i < 8), floordiv(i, 8), 7)", "select((i < 8), 0, 7)"},
    {"((i < 4) && (i < 8))", "(i < 4)"},
    {"((i < 8) || (i < 100))", "True"},
    {"(15 - i)", "(15 - i)"},
    {"((j - (i*3)) - 4)", "((j - (i*3)) - 4)"},
    {"floordiv(((i*n) + p), n)", "i"},
    {"floormod(((i*n) + p), n)", "p"},
    {"(p < n)", "True"},
    {"((n - p) > 0)", "True"},
    {"((p*4) <= ((n*4) - 4))", "True"},
    {"(((i*n)*m) + (n*(m*3)))", "(((i*n)*m) + ((n*m)*3))"},
    {"cast(int64, cast(int32, f))", "f"},
    {"floordiv((i + 5), 0)", "0"},
    /* values of loads may be anything: what wraps must not be cancelled */
    {"(((int32*)A[i] + 1) < (int32*)A[i])", "(((int32*)A[i] + 1) < (int32*)A[i])"},
    {"(((int32*)A[i]*2) < int32(8))", "(((int32*)A[i]*2) < 8)"},
};

static void written_forms(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        scope s;
        writer w;
        open_scope(&s, table[i].in);
        writer_init(&w, &s.c.mem);
        tir_expr_ref e = s.leaf->value;
        tir_expr_ref out = tir_simplify(s.b, e->kind == TIR_CAST ? e->args[0] : e);
        tir_print_expr(&w, out);
        if (strcmp(w.data, table[i].out) != 0)
            fail_msg("%s: expected %s, got %s", table[i].in, table[i].out, w.data);
        compiler_free(&s.c);
    }
}

static void proofs(void **state)
{
    static const char *const holds[] = {"(i < 16)", "((i + j) <= 30)",      "(((i*16) + j) < 256)",
                                        "(p >= 0)", "(floormod(k, 8) < 8)", "(min(i, n) <= 15)"};
    static const char *const open[] = {"(i < 15)", "(m > 0)", "((i + k) >= 0)", "(p < m)",
                                       "((int32*)A[0] < 2147483647)"};
    (void)state;
    for (int kind = 0; kind < 2; kind++) {
        size_t n = kind ? sizeof open / sizeof *open : sizeof holds / sizeof *holds;
        for (size_t i = 0; i < n; i++) {
            scope s;
            open_scope(&s, kind ? open[i] : holds[i]);
            if (tir_prove(s.b, s.leaf->value->args[0]) != (kind == 0))
                fail_msg("%s: %s", kind ? open[i] : holds[i], kind ? "proved" : "not proved");
            compiler_free(&s.c);
        }
    }
}

/* --- random expressions --- */

typedef struct gen {
    compiler *c;
    uint64_t seed;
    const tir_var *vars[3];
    int64_t min[3], extent[3];
    dtype dt;
} gen;

static uint32_t pick(gen *g, uint32_t n)
{
    g->seed = g->seed * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(g->seed >> 33) % n;
}

static tir_expr_ref random_cond(gen *g, int depth);

static tir_expr_ref random_int(gen *g, int depth)
{
    static const tir_op ops[] = {TIR_ADD, TIR_SUB, TIR_MUL, TIR_MIN, TIR_MAX, TIR_ADD, TIR_ADD};
    static const int64_t divisors[] = {1, 2, 3, 4, 4, 5, 8, 16, 0, -2};
    uint32_t what = pick(g, depth <= 0 ? 3 : 10);
    if (what < 2)
        return tir_varref(g->c, g->vars[pick(g, 3)]);
    if (what == 2)
        return tir_int(g->c, g->dt, (int64_t)pick(g, 41) - 20);
    if (what < 6) {
        tir_expr_ref x = random_int(g, depth - 1);
        tir_op op = pick(g, 2) ? TIR_FLOORDIV : TIR_FLOORMOD;
        return tir_binary(g->c, op, x, tir_int(g->c, g->dt, divisors[pick(g, 10)]));
    }
    if (what == 6)
        return tir_select(g->c, random_cond(g, depth - 1), random_int(g, depth - 1), random_int(g, depth - 1));
    if (what == 7)
        return tir_mul(g->c, random_int(g, depth - 1), tir_int(g->c, g->dt, (int64_t)pick(g, 17) - 4));
    tir_expr_ref x = random_int(g, depth - 1);
    return tir_binary(g->c, ops[pick(g, 7)], x, random_int(g, depth - 1));
}

static tir_expr_ref random_cond(gen *g, int depth)
{
    uint32_t what = pick(g, depth <= 0 ? 6 : 9);
    if (what < 6) {
        tir_expr_ref x = random_int(g, depth - 1);
        return tir_binary(g->c, (tir_op)(TIR_EQ + what), x, random_int(g, depth - 1));
    }
    if (what == 6)
        return tir_not(g->c, random_cond(g, depth - 1));
    tir_expr_ref x = random_cond(g, depth - 1);
    return tir_binary(g->c, what == 7 ? TIR_AND : TIR_OR, x, random_cond(g, depth - 1));
}

static void check_everywhere(gen *g, tir_expr_ref e, tir_expr_ref simple, tir_range r, int seed)
{
    for (int64_t n = 0; n < g->extent[0] * g->extent[1] * g->extent[2]; n++) {
        ref_env env = {.n_vars = 3};
        int64_t at[3] = {n % g->extent[0], n / g->extent[0] % g->extent[1], n / g->extent[0] / g->extent[1]};
        for (int i = 0; i < 3; i++)
            env.vars[i] = (ref_binding){g->vars[i], {g->min[i] + at[i], 0}};
        int64_t want = ref_eval(&env, e).i, got = ref_eval(&env, simple).i;
        bool inside = (!r.known_min || r.min <= want) && (!r.known_max || want <= r.max);
        if (want != got || !inside) {
            writer w;
            writer_init(&w, &g->c->mem);
            tir_print_expr(&w, e);
            w_str(&w, "  =>  ");
            tir_print_expr(&w, simple);
            fail_msg("seed %d: %lld became %lld, range %lld..%lld: %s", seed, (long long)want, (long long)got,
                     (long long)r.min, (long long)r.max, w.data);
        }
    }
}

static void random_expressions(void **state)
{
    (void)state;
    for (int seed = 0; seed < 6000; seed++) {
        compiler c;
        compiler_init(&c);
        gen g = {.c = &c, .seed = (uint64_t)seed * 977 + 5, .dt = seed % 4 == 3 ? DT_I32 : DT_I64};
        tir_bounds *b = tir_bounds_new(&c);
        for (int i = 0; i < 3; i++) {
            g.vars[i] = tir_new_var(&c, (const char *[]){"x", "y", "z"}[i], tir_scalar(g.dt));
            g.min[i] = (int64_t)pick(&g, 9) - 4;
            g.extent[i] = 1 + pick(&g, 16);
            tir_bounds_push(b, g.vars[i], tir_int(&c, g.dt, g.min[i]), tir_int(&c, g.dt, g.extent[i]));
        }
        tir_expr_ref e = seed % 3 ? random_int(&g, 4) : random_cond(&g, 3), simple = tir_simplify(b, e);
        check_everywhere(&g, e, simple, tir_range_of(b, e), seed);
        assert_ptr_equal(e->type.dt == simple->type.dt ? e : NULL, e);
        compiler_free(&c);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(written_forms),
        cmocka_unit_test(proofs),
        cmocka_unit_test(random_expressions),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
