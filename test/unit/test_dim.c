/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of dims: their normal form, unknowns, bounds, text, and random expressions compared with plain integers. */
#include "type/dim.h"

#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define COUNT(a) (sizeof(a) / sizeof *(a))

static uint64_t next_random(uint64_t *s)
{
    *s ^= *s << 13;
    *s ^= *s >> 7;
    return *s ^= *s << 17;
}

static uint32_t below(uint64_t *s, uint32_t n)
{
    return (uint32_t)(next_random(s) >> 20) % n;
}

static const char *dim_text(compiler *c, dim d)
{
    writer w;
    writer_init(&w, &c->mem);
    dim_print(&w, d);
    return w.data;
}

static dim parse_dim(compiler *c, const char *text)
{
    lexer l;
    dim d;
    lexer_init(&l, &c->mem, c->names, &c->diags, "t", text, strlen(text));
    if (!dim_parse(c, &l, &d) || l.failed || l.tok.kind != TOK_END)
        fail_msg("%s does not parse: %s", text, diags_print(&c->diags, &c->mem));
    return d;
}

static void dims_have_a_normal_form(void **state)
{
    (void)state;
    static const char *const cases[][2] = {
        {"0", "0"},
        {"b + a", "a + b"},
        {"2*(n + 1) - n", "n + 2"},
        {"n - n", "0"},
        {"0*n", "0"},
        {"1*n", "n"},
        {"(n + m)*(n - m)", "-m*m + n*n"},
        {"n*2*m*3", "6*m*n"},
        {"-n + 3", "-n + 3"},
        {"3 - 2*n", "-2*n + 3"},
        {"- - 5", "5"},
        {"-9223372036854775808", "-9223372036854775808"},
        {"floordiv(7, 2)", "3"},
        {"floordiv(-7, 2)", "-4"},
        {"floordiv(7, -2)", "-4"},
        {"mod(-7, 2)", "1"},
        {"mod(7, -2)", "-1"},
        {"ceildiv(7, 2)", "4"},
        {"ceildiv(-7, 2)", "-3"},
        {"ceildiv(7, -2)", "-3"},
        {"floordiv(n, 1)", "n"},
        {"floordiv(n, -1)", "-n"},
        {"floordiv(n, n)", "1"},
        {"floordiv(0, n)", "0"},
        {"floordiv(5*n + 7, 2)", "2*n + floordiv(n + 1, 2) + 3"},
        {"floordiv(n - 1, 2) + 1", "floordiv(n + 1, 2)"},
        {"ceildiv(n, 2)", "floordiv(n + 1, 2)"},
        {"floordiv(2*n + 1, 4)", "floordiv(n, 2)"},
        {"floordiv(floordiv(n, 2), 3)", "floordiv(n, 6)"},
        {"floordiv(floordiv(n + 1, 2) + 1, 2)", "floordiv(n + 3, 4)"},
        {"floordiv(2*floordiv(n, 3), 4)", "floordiv(n, 6)"},
        {"floordiv(m + floordiv(n, 2), 2)", "floordiv(2*m + n, 4)"},
        {"floordiv(mod(n, 4), 4)", "0"},
        {"floordiv(m*n*64, n*64)", "m"},
        {"floordiv(b*(s + 1)*64, b*(s + 1))", "64"},
        {"floordiv(m*n + k, n)", "m + floordiv(k, n)"},
        {"floordiv(32*a*b, 32*c)", "floordiv(a*b, c)"},
        {"floordiv(6*a*b + 9*a, 3*a*c)", "floordiv(2*b + 3, c)"},
        {"floordiv(6*n + 4, 4*m)", "floordiv(3*n + 2, 2*m)"},
        {"mod(m*n, m)", "0"},
        {"mod(n, 1)", "0"},
        {"mod(4*n + 3, 8)", "4*mod(n, 2) + 3"},
        {"mod(mod(n, 8), 4)", "mod(n, 4)"},
        {"mod(n + 8, 4)", "mod(n, 4)"},
        {"mod(n, 4) + 4*floordiv(n, 4)", "n"},
        {"n - 4*floordiv(n, 4)", "mod(n, 4)"},
        {"n + 1 - 4*floordiv(n + 1, 4)", "mod(n + 1, 4)"},
        {"n + mod(4 - mod(n, 4), 4)", "4*floordiv(n + 3, 4)"},
        {"2*n + 2*mod(3*n + 1, 4)", "8*floordiv(n + 2, 4) + 2"},
        {"m - n + mod(n - m, 8) + 5", "-8*n + 8*floordiv(m + 7*n + 7, 8) + 5"},
        {"n + mod(2*n, 4)", "n + 2*mod(n, 2)"},
        {"min(n, n + 1)", "n"},
        {"max(n, n + 1)", "n + 1"},
        {"max(n, 0)", "n"},
        {"min(n, -3)", "-3"},
        {"max(m, max(n, m))", "max(m, n)"},
        {"max(max(a, b), c) - max(max(c, b), a)", "0"},
        {"min(floordiv(n, 2), n + 3)", "min(n + 3, floordiv(n, 2))"},
        {"\"batch size\" - 1", "\"batch size\" - 1"},
        {"\"max\" + \"a\"", "a + \"max\""},
        {"\"\"", "\"\""},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        compiler c;
        compiler_init(&c);
        dim d = parse_dim(&c, cases[i][0]);
        assert_string_equal(dim_text(&c, d), cases[i][1]);
        assert_ptr_equal(parse_dim(&c, cases[i][1]), d);
        compiler_free(&c);
    }
}

static void overflow_gives_unknown_dims(void **state)
{
    (void)state;
    static const char *const cases[] = {
        "9223372036854775807 + 1",
        "9223372036854775807 + n + 9223372036854775807 - 1 + n*0",
        "4611686018427387904*n*2",
        "9223372036854775807*2",
        "-9223372036854775808 - 1",
        "floordiv(n, 0)",
        "mod(n, 0)",
        "ceildiv(5, 0)",
        "floordiv(-9223372036854775808, -1)",
        "a*a*a*a*a*a*a*a*a",
        "floordiv(n, -9223372036854775808)",
        "(3037000500*n)*(3037000500*m)",
    };
    compiler c;
    compiler_init(&c);
    for (size_t i = 0; i < COUNT(cases); i++) {
        dim d = parse_dim(&c, cases[i]);
        assert_non_null(strstr(dim_text(&c, d), "unknown_"));
        assert_int_equal(dim_bound(d), -1);
        assert_ptr_equal(parse_dim(&c, cases[i]), d); /* the same operation is the same unknown */
        assert_ptr_equal(parse_dim(&c, dim_text(&c, d)), d);
        for (size_t k = 0; k < i; k++)
            assert_ptr_not_equal(parse_dim(&c, cases[k]), d); /* others are others */
    }
    dim unknown = parse_dim(&c, "9223372036854775807*2"), zero = dim_const(&c, 0);
    assert_ptr_not_equal(dim_max(&c, unknown, zero), unknown); /* it may be negative, which a symbol is not */
    assert_ptr_equal(dim_add(&c, unknown, zero), unknown);
    dim least = dim_const(&c, INT64_MIN); /* what a Clip without a lower bound has */
    assert_ptr_equal(dim_max(&c, least, dim_const(&c, 8)), dim_const(&c, 8));
    assert_ptr_equal(dim_min(&c, least, dim_const(&c, 8)), least);
    compiler_free(&c);
}

static void extents_divide(void **state)
{
    (void)state;
    compiler c;
    compiler_init(&c);
    dim a = parse_dim(&c, "32*n*max(0, floordiv(m, 10) - 1)"), b = parse_dim(&c, "8*n*floordiv(m, 10) - 8*n");
    assert_string_equal(dim_text(&c, dim_divide_extents(&c, a, b)), "4");
    assert_ptr_equal(dim_divide_extents(&c, parse_dim(&c, "n*m"), parse_dim(&c, "n")), parse_dim(&c, "m"));
    compiler_free(&c);
}

static void dims_read_and_fresh_symbols(void **state)
{
    (void)state;
    compiler c;
    int64_t v = 0;
    compiler_init(&c);
    dim n = dim_symbol(&c, "n", -1);
    assert_ptr_equal(n, dim_symbol(&c, "n", 100));
    assert_int_equal(dim_bound(n), 100);
    (void)dim_symbol(&c, "n", 200); /* the smaller bound stays */
    assert_int_equal(dim_bound(n), 100);
    (void)dim_symbol(&c, "n", 50);
    assert_int_equal(dim_bound(n), 50);
    assert_string_equal(dim_symbol_name(n), "n");
    assert_null(dim_symbol_name(dim_add(&c, n, n)));
    assert_true(dim_is_const(dim_const(&c, -4), &v) && v == -4);
    assert_false(dim_is_const(n, &v));
    assert_true(dim_is(dim_const(&c, 3), 3) && !dim_is(n, 3) && !dim_is(dim_const(&c, 4), 3));

    (void)dim_symbol(&c, "t_1", -1); /* taken before dim_fresh comes to it */
    dim a = dim_fresh(&c, "t", -1), b = dim_fresh(&c, "t", 7);
    assert_ptr_not_equal(a, b);
    assert_string_not_equal(dim_symbol_name(a), "t_1");
    assert_string_not_equal(dim_symbol_name(b), "t_1");
    assert_int_equal(dim_bound(b), 7);

    const dim *ops;
    dim sum = parse_dim(&c, "2*n*m + 1");
    assert_int_equal(dim_get_kind(sum), DIM_ADD);
    assert_int_equal(dim_operands(sum, &ops), 2);
    assert_int_equal(dim_get_kind(ops[0]), DIM_MUL);
    assert_true(dim_is(ops[1], 1));
    assert_int_equal(dim_operands(ops[0], &ops), 3);
    assert_true(dim_is(ops[0], 2));
    assert_int_equal(dim_operands(n, &ops), 0);
    compiler_free(&c);
}

static void dim_bounds(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int64_t bound;
    } cases[] = {
        {"5", 5},
        {"-5", 0},
        {"n", 10},
        {"u", -1},
        {"2*n + 3", 23},
        {"3 - n", 3},
        {"n - u", 10},
        {"u - n", -1},
        {"n*m", 40},
        {"n*u", -1},
        {"0*u", 0},
        {"floordiv(n, 3)", 3},
        {"floordiv(u, 3)", -1},
        {"mod(u, 8)", 7},
        {"mod(n, 100)", 10},
        {"min(u, n)", 10},
        {"max(n, m)", 10},
        {"max(n, u)", -1},
        {"floordiv(n, m)", 10},
        {"floordiv(n, m - 2)", 10},
        {"floordiv(u, m)", -1},
        {"mod(u, m)", 3},
        {"mod(u, m - 2)", -1},
        {"-n", 0},
        {"9223372036854775807*n", -1},
        {"floordiv(n, m + 1)", 10},
        {"mod(u, m + 1)", 4},
    };
    compiler c;
    compiler_init(&c);
    (void)dim_symbol(&c, "n", 10);
    (void)dim_symbol(&c, "m", 4);
    for (size_t i = 0; i < COUNT(cases); i++)
        if (dim_bound(parse_dim(&c, cases[i].text)) != cases[i].bound)
            fail_msg("%s: %" PRId64, cases[i].text, dim_bound(parse_dim(&c, cases[i].text)));
    compiler_free(&c);
}

#define SYMBOLS 3u

/* A random expression twice: as a dim, and as its value for given symbols. `known` is cleared when the arithmetic
 * leaves the numbers (division by zero). */
typedef struct sample {
    compiler *c;
    uint64_t seed;
    int64_t values[SYMBOLS];
    bool known;
} sample;

static int64_t floor_quotient(int64_t a, int64_t b)
{
    return a / b - (a % b != 0 && (a < 0) != (b < 0));
}

static int64_t divide(sample *s, int64_t a, int64_t b)
{
    s->known = s->known && b != 0;
    return s->known ? floor_quotient(a, b) : 0;
}

static dim random_leaf(sample *s, int64_t *value)
{
    static const char *const names[SYMBOLS] = {"p", "q", "a.b"};
    if (below(&s->seed, 3) == 0) {
        *value = (int64_t)below(&s->seed, 13) - 4;
        return dim_const(s->c, *value);
    }
    uint32_t i = below(&s->seed, SYMBOLS);
    *value = s->values[i];
    return dim_symbol(s->c, names[i], 20);
}

static dim random_dim(sample *s, uint32_t depth, int64_t *value)
{
    if (depth == 0 || below(&s->seed, 6) == 0)
        return random_leaf(s, value);
    int64_t x, y;
    dim a = random_dim(s, depth - 1, &x), b = random_dim(s, depth - 1, &y);
    if (below(&s->seed, 2) && depth < 3) { /* constant divisors are what shapes have */
        y = (int64_t)below(&s->seed, 11) - 3;
        b = dim_const(s->c, y);
    }
    switch (below(&s->seed, 8)) {
    case 0: *value = x - y; return dim_sub(s->c, a, b);
    case 1: *value = x * y; return dim_mul(s->c, a, b);
    case 2: *value = divide(s, x, y); return dim_floordiv(s->c, a, b);
    case 3: *value = x - y * divide(s, x, y); return dim_mod(s->c, a, b);
    case 4: *value = x < y ? x : y; return dim_min(s->c, a, b);
    case 5: *value = x > y ? x : y; return dim_max(s->c, a, b);
    case 6:
        s->known = s->known && y > 0; /* the contract of symbolic divisors */
        *value = -divide(s, -x, y);
        return dim_ceildiv(s->c, a, b);
    default: *value = x + y; return dim_add(s->c, a, b);
    }
}

static dim to_constant(void *ctx, const char *symbol)
{
    sample *s = ctx;
    if (strncmp(symbol, "unknown", 7) == 0)
        s->known = false;
    return dim_const(s->c, s->values[symbol[0] == 'p' ? 0 : symbol[0] == 'q' ? 1 : 2]);
}

static void random_dims_mean_what_integers_mean(void **state)
{
    (void)state;
    uint64_t seed = 0x1234567, compared = 0;
    for (int round = 0; round < 60000; round++) {
        compiler c, other;
        compiler_init(&c);
        compiler_init(&other);
        sample s = {.c = &c, .seed = seed + (uint64_t)round * 77777, .known = true};
        int64_t want, got = 0;
        for (int i = 0; i < 5; i++)
            (void)next_random(&s.seed);
        for (uint32_t i = 0; i < SYMBOLS; i++)
            s.values[i] = below(&s.seed, 21);
        dim d = random_dim(&s, 4, &want);
        const char *text = dim_text(&c, d);
        dim replaced = dim_substitute(&c, d, to_constant, &s);
        if (s.known && (!dim_is_const(replaced, &got) || got != want))
            fail_msg("round %d: %s is %" PRId64 ", wanted %" PRId64, round, text, got, want);
        if (s.known && dim_bound(d) >= 0 && dim_bound(d) < want)
            fail_msg("round %d: %s is %" PRId64 ", above its bound", round, text, want);
        if (parse_dim(&c, text) != d)
            fail_msg("round %d: %s comes back as %s", round, text, dim_text(&c, parse_dim(&c, text)));
        assert_string_equal(dim_text(&other, parse_dim(&other, text)), text); /* no trace of the order of making */
        compared += s.known;
        compiler_free(&other);
        compiler_free(&c);
    }
    assert_true(compared > 30000);
}

static void large_dims_stay_small(void **state)
{
    (void)state;
    compiler c;
    compiler_init(&c);
    dim m = dim_symbol(&c, "m", -1), d = dim_symbol(&c, "n", -1);
    for (int i = 0; i < 2000; i++) { /* as a tree it would double every time */
        d = dim_floordiv(&c, dim_mul(&c, dim_add(&c, d, dim_mod(&c, d, m)), dim_add(&c, d, m)), dim_const(&c, 3));
        assert_true(strlen(dim_text(&c, d)) < 100000);
    }
    dim chain = dim_const(&c, 0), sum = dim_const(&c, 0);
    for (int i = 0; i < 500; i++) {
        dim s = dim_symbol(&c, arena_printf(&c.mem, "s%d", i), -1);
        chain = dim_max(&c, dim_mod(&c, chain, m), s);
        sum = dim_add(&c, sum, s);
        assert_ptr_equal(parse_dim(&c, dim_text(&c, chain)), chain);
    }
    assert_true(strlen(dim_text(&c, chain)) < 100000);
    assert_true(strlen(dim_text(&c, sum)) < 100000);
    compiler_free(&c);
}

static void dim_syntax_errors(void **state)
{
    (void)state;
    static const char *const cases[] = {
        "",   "n +",    "floordiv(n)",          "floordiv(n, 2",      "mod n", "(n", "*", "1.5", "n * ",
        "%n", "max(,)", "18446744073709551616", "9223372036854775808"};
    for (size_t i = 0; i < COUNT(cases); i++) {
        compiler c;
        lexer l;
        dim d = NULL;
        compiler_init(&c);
        lexer_init(&l, &c.mem, c.names, &c.diags, "t", cases[i], strlen(cases[i]));
        assert_false(dim_parse(&c, &l, &d));
        assert_int_equal(c.diags.errors, 1);
        assert_int_equal(c.diags.first->code, DIAG_SYNTAX);
        assert_non_null(d); /* callers may go on with it */
        compiler_free(&c);
    }
    compiler c;
    lexer l;
    dim d;
    compiler_init(&c);
    char *deep = arena_alloc(&c.mem, 100001, 1);
    memset(deep, '(', 100000);
    lexer_init(&l, &c.mem, c.names, &c.diags, "t", deep, 100000);
    assert_false(dim_parse(&c, &l, &d));
    assert_non_null(strstr(c.diags.first->text, "nested more than"));
    memset(deep, '-', 100000);
    lexer_init(&l, &c.mem, c.names, &c.diags, "t", deep, 100000);
    assert_false(dim_parse(&c, &l, &d));
    compiler_free(&c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(dims_have_a_normal_form),
        cmocka_unit_test(overflow_gives_unknown_dims),
        cmocka_unit_test(extents_divide),
        cmocka_unit_test(dims_read_and_fresh_symbols),
        cmocka_unit_test(dim_bounds),
        cmocka_unit_test(random_dims_mean_what_integers_mean),
        cmocka_unit_test(large_dims_stay_small),
        cmocka_unit_test(dim_syntax_errors),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
