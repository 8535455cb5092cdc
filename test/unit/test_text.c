/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of text in src/base: the writer, interned strings, the lexer. Mostly tables of cases. */
#include "base/compiler.h"
#include "base/json_out.h"

#include <inttypes.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define COUNT(a) (sizeof(a) / sizeof *(a))

/* --- writer --- */

static void writer_indents(void **state)
{
    (void)state;
    arena a;
    writer w;
    arena_init(&a, NULL);
    writer_init(&w, &a);
    assert_string_equal(w.data, "");
    w_open(&w, "for (%s)", "i");
    w_line(&w, "a;");
    w_str(&w, "b;\n\nc;");
    w_str(&w, "\n");
    w_open(&w, "%s", "");
    w_fmt(&w, "%s\n", "d;\ne;");
    w_close(&w, NULL);
    w_close(&w, ";");
    assert_string_equal(w.data, "for (i) {\n  a;\n  b;\n\n  c;\n  {\n    d;\n    e;\n  }\n};\n");
    for (int i = 0; i < 1000; i++)
        w_fmt(&w, "%0*d", i, 0);
    assert_int_equal(strlen(w.data), w.len);
    arena_free(&a);
}

static void writer_quotes(void **state)
{
    (void)state;
    static const struct {
        const char *raw;
        size_t n;
        const char *text;
    } cases[] = {
        {"plain", 5, "\"plain\""},
        {"a\"b\\c\n", 6, "\"a\\\"b\\\\c\\n\""},
        {"\0"
         "1",
         2, "\"\\0001\""}, /* three digits: the 1 stays a 1 */
        {"\x7f\t", 2, "\"\\177\\011\""},
        {"\xc3\xa9\xe6\x97\xa5", 5, "\"\xc3\xa9\xe6\x97\xa5\""},
        {"\xff\xc3", 2, "\"\\377\\303\""},
        {"\xc0\x80", 2, "\"\\300\\200\""},          /* overlong */
        {"\xed\xa0\x80", 3, "\"\\355\\240\\200\""}, /* surrogate */
        {"what?\?!", 7, "\"what?\\?!\""},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        compiler c;
        lexer l;
        writer w;
        compiler_init(&c);
        writer_init(&w, &c.mem);
        w_quoted(&w, cases[i].raw, cases[i].n);
        assert_string_equal(w.data, cases[i].text);
        lexer_init(&l, &c.mem, c.names, &c.diags, "t", w.data, w.len);
        assert_int_equal(l.tok.kind, TOK_STRING);
        assert_int_equal(l.tok.len, cases[i].n);
        assert_memory_equal(l.tok.text, cases[i].raw, cases[i].n);
        compiler_free(&c);
    }
}

/* One line to show: what commands a terminal becomes '?', other text stays. */
static void lines_to_show(void **state)
{
    static const char *const cases[][2] = {
        {"", ""},
        {"conv1/weight:0", "conv1/weight:0"},
        {"two\nlines\tand a tab", "two lines and a tab"},
        {"\033]0;title\007\r\x7f", "?]0;title???"},
        {"caf\xc3\xa9 \xe4\xb8\xad \xf0\x9f\x98\x80", "caf\xc3\xa9 \xe4\xb8\xad \xf0\x9f\x98\x80"},
        {"\xc2\x9b\xc2\xa0\xc2\x80", "?\xc2\xa0?"},
        {"\xd8\x9c\xd8\x9b", "?\xd8\x9b"},
        {"\xe2\x80\x8d\xe2\x80\x8e\xe2\x80\x8f\xe2\x80\x90", "\xe2\x80\x8d??\xe2\x80\x90"},
        {"\xe2\x80\xa7\xe2\x80\xa8\xe2\x80\xae\xe2\x80\xaf", "\xe2\x80\xa7??\xe2\x80\xaf"},
        {"\xe2\x81\xa5\xe2\x81\xa6\xe2\x81\xa9\xe2\x81\xaa", "\xe2\x81\xa5??\xe2\x81\xaa"},
        {"bad \xff\xc3(\xe2\x80", "bad ?\?(??"},
    };
    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        char text[64];
        strcpy(text, cases[i][0]);
        assert_string_equal(text_line(text), cases[i][1]);
    }
    assert_int_equal(utf8_code("\xf0\x9f\x98\x80"), 0x1f600);
}

static void every_byte_is_quoted_and_read_back(void **state)
{
    (void)state;
    compiler c;
    compiler_init(&c);
    for (int first = 0; first < 256; first++) {
        for (int second = 0; second < 256; second++) {
            char raw[2] = {(char)first, (char)second};
            lexer l;
            writer w;
            writer_init(&w, &c.mem);
            w_quoted(&w, raw, 2);
            lexer_init(&l, &c.mem, c.names, &c.diags, "t", w.data, w.len);
            if (l.tok.kind != TOK_STRING || l.tok.len != 2 || memcmp(l.tok.text, raw, 2) != 0)
                fail_msg("bytes %d %d came back otherwise from %s", first, second, w.data);
        }
    }
    compiler_free(&c);
}

static void writer_names(void **state)
{
    (void)state;
    static const char *const cases[][2] = {{"x", "%x"},         {"12", "%12"}, {"a.b_1", "%a.b_1"},
                                           {"a/b", "%\"a/b\""}, {"", "%\"\""}, {"a\"b", "%\"a\\\"b\""}};
    for (size_t i = 0; i < COUNT(cases); i++) {
        compiler c;
        lexer l;
        writer w;
        compiler_init(&c);
        writer_init(&w, &c.mem);
        w_name(&w, '%', cases[i][0]);
        assert_string_equal(w.data, cases[i][1]);
        lexer_init(&l, &c.mem, c.names, &c.diags, "t", w.data, w.len);
        assert_int_equal(l.tok.kind, TOK_VAR);
        assert_string_equal(l.tok.text, cases[i][0]);
        compiler_free(&c);
    }
}

static void writer_floats(void **state)
{
    (void)state;
    static const struct {
        double v;
        uint32_t bits;
        const char *text;
    } cases[] = {
        {0.0, 32, "0.0"},
        {-0.0, 32, "-0.0"},
        {1.0, 64, "1.0"},
        {100.0, 32, "100.0"},
        {-999999.0, 64, "-999999.0"},
        {16777216.0, 32, "16777216.0"},
        {1e20, 64, "1e+20"},
        {(double)0.1f, 32, "0.1"},
        {(double)0.1f, 64, "0.10000000149011612"},
        {0.1, 64, "0.1"},
        {0.1, 32, "0.1"},
        {1.0 / 3.0, 64, "0.3333333333333333"},
        {3.4028234663852886e38, 32, "3.4028235e+38"},
        {1.401298464324817e-45, 32, "1e-45"},
        {4.9406564584124654e-324, 64, "5e-324"},
        {(double)INFINITY, 32, "inf"},
        {-(double)INFINITY, 64, "-inf"},
        {1e300, 32, "inf"},
        {(double)NAN, 32, "nan"},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        arena a;
        writer w;
        arena_init(&a, NULL);
        writer_init(&w, &a);
        w_float(&w, cases[i].v, cases[i].bits);
        assert_string_equal(w.data, cases[i].text);
        arena_free(&a);
    }
}

static uint64_t next_random(uint64_t *s)
{
    *s ^= *s << 13;
    *s ^= *s >> 7;
    return *s ^= *s << 17;
}

static void random_floats_read_back(void **state)
{
    (void)state;
    compiler c;
    uint64_t seed = 88172645463325252u;
    compiler_init(&c);
    for (int i = 0; i < 40000; i++) {
        uint32_t bits = i % 2 ? 32 : 64, narrow = (uint32_t)next_random(&seed);
        uint64_t wide = next_random(&seed);
        float f;
        double v, back = 0;
        memcpy(&f, &narrow, sizeof f);
        memcpy(&v, &wide, sizeof v);
        v = bits == 32 ? (double)f : v;
        if (isnan(v))
            continue;
        arena_mark mark = arena_get_mark(&c.mem);
        interner *names = interner_new(&c.mem);
        writer w;
        lexer l;
        writer_init(&w, &c.mem);
        w_float(&w, v, bits);
        lexer_init(&l, &c.mem, names, &c.diags, "t", w.data, w.len);
        if (!lexer_float(&l, &back) || (bits == 32 ? (float)back != f : back != v) || signbit(back) != signbit(v))
            fail_msg("%a came back as %a from %s", v, back, w.data);
        assert_true(!isfinite(v) || strpbrk(w.data, ".e"));
        arena_reset(&c.mem, mark);
    }
    compiler_free(&c);
}

/* --- interned strings --- */

static void equal_texts_are_one_pointer(void **state)
{
    (void)state;
    arena a;
    arena_init(&a, NULL);
    interner *in = interner_new(&a);
    const char *seen[3000];
    for (int i = 0; i < 3000; i++)
        seen[i] = intern(in, arena_printf(&a, "name%d", i));
    for (int i = 0; i < 3000; i++) {
        const char *text = arena_printf(&a, "name%d", i);
        assert_ptr_equal(intern(in, text), seen[i]);
        assert_string_equal(seen[i], text);
    }
    assert_ptr_equal(intern_n(in, "name12x", 6), seen[12]);
    assert_ptr_equal(intern_n(in, NULL, 0), intern(in, ""));
    assert_ptr_not_equal(intern_n(in, "a\0b", 3), intern_n(in, "a\0c", 3));
    assert_ptr_not_equal(intern_n(in, "a\0b", 3), intern(in, "a"));
    arena_free(&a);
}

/* --- lexer --- */

/* Kinds as letters, so that a row of a table is a text and what it falls into. */
static char letter(const lexer *l)
{
    switch (l->tok.kind) {
    case TOK_END: return 'E';
    case TOK_IDENT: return 'i';
    case TOK_VAR: return 'v';
    case TOK_SYMBOL: return 's';
    case TOK_INT: return 'n';
    case TOK_UINT: return 'u';
    case TOK_FLOAT: return 'f';
    case TOK_STRING: return 'q';
    case TOK_PUNCT: return 'p';
    }
    return '?';
}

static void lexer_tokens(void **state)
{
    (void)state;
    static const struct {
        const char *text, *kinds, *words; /* words: joined by one space */
    } cases[] = {
        {"", "E", ""},
        {" \t\r\n // only a comment", "E", ""},
        {"a // b\nc", "iiE", "a c"},
        {"nn.conv2d _x9", "iiE", "nn.conv2d _x9"},
        {"%x %\"a b\" @main @\"q\" %3", "vvssvE", "x a b main q 3"},
        {"a % b @ c", "ipipiE", "a % b @ c"},
        {"%inf inf nan infx", "vffiE", "inf inf nan infx"},
        {"0 42 9223372036854775807 9223372036854775808 0xff", "nnnunE",
         "0 42 9223372036854775807 9223372036854775808 0xff"},
        {"1.5 1e3 1E-3 2.e+1 0.0", "fffffE", "1.5 1e3 1E-3 2.e+1 0.0"},
        {"1-2 1e-2-3", "npnfpnE", "1 - 2 1e-2 - 3"},
        {"->==!=<=>=&&||<<>>", "pppppppppE", "-> == != <= >= && || << >>"},
        {"<a>->b", "pippiE", "< a > -> b"},
        {"(){}[]<>,:;=+-*/%!&|^?~@", "ppppppppppppppppppppppppE", "( ) { } [ ] < > , : ; = + - * / % ! & | ^ ? ~ @"},
        {"\"a\\tb\" \"\\x41\\102\\?\\\\\"", "qqE", "a\tb AB?\\"},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        compiler c;
        lexer l;
        writer kinds, words;
        compiler_init(&c);
        writer_init(&kinds, &c.mem);
        writer_init(&words, &c.mem);
        lexer_init(&l, &c.mem, c.names, &c.diags, "t", cases[i].text, strlen(cases[i].text));
        for (bool first = true; l.tok.kind != TOK_END; first = false) {
            w_fmt(&kinds, "%c", letter(&l));
            w_fmt(&words, "%s%s", first ? "" : " ", l.tok.text);
            lexer_next(&l);
        }
        w_fmt(&kinds, "%c", letter(&l));
        assert_string_equal(diags_print(&c.diags, &c.mem), "");
        assert_string_equal(kinds.data, cases[i].kinds);
        assert_string_equal(words.data, cases[i].words);
        compiler_free(&c);
    }
}

static void lexer_errors_have_places(void **state)
{
    (void)state;
    static const struct {
        const char *text, *message;
    } cases[] = {
        {"a\n  $", "error: t:2:3: unexpected character '$' [syntax]\n"},
        {"\x01", "error: t:1:1: unexpected byte 0x01 [syntax]\n"},
        {"x \xc3\xa9", "error: t:1:3: unexpected byte 0xc3 [syntax]\n"},
        {"'a'", "error: t:1:1: unexpected character ''' [syntax]\n"},
        {" \"abc", "error: t:1:2: the string has no closing quote on its line [syntax]\n"},
        {"\"ab\nc\"", "error: t:1:1: the string has no closing quote on its line [syntax]\n"},
        {"%\"abc", "error: t:1:1: the string has no closing quote on its line [syntax]\n"},
        {"\"ab\\", "error: t:1:1: the string has no closing quote on its line [syntax]\n"},
        {"\"ab\\\"", "error: t:1:1: the string has no closing quote on its line [syntax]\n"},
        {"18446744073709551616", "error: t:1:1: 18446744073709551616 does not fit into 64 bits [syntax]\n"},
        {"0x10000000000000000", "error: t:1:1: 0x10000000000000000 does not fit into 64 bits [syntax]\n"},
        {"1e999", "error: t:1:1: 1e999 is larger than the largest double; write inf for infinity [syntax]\n"},
        {"12ab", "error: t:1:1: 12ab is not a number [syntax]\n"},
        {"0x", "error: t:1:1: 0x is not a number [syntax]\n"},
        {"0x1p3", "error: t:1:1: 0x1p3 is not a number [syntax]\n"},
        {"1.2.3", "error: t:1:1: 1.2.3 is not a number [syntax]\n"},
        {"1e+", "error: t:1:1: 1e+ is not a number [syntax]\n"},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        compiler c;
        lexer l;
        compiler_init(&c);
        lexer_init(&l, &c.mem, c.names, &c.diags, "t", cases[i].text, strlen(cases[i].text));
        for (int guard = 0; l.tok.kind != TOK_END && guard < 100; guard++)
            lexer_next(&l);
        assert_true(l.failed);
        assert_string_equal(diags_print(&c.diags, &c.mem), cases[i].message);
        lexer_next(&l);
        assert_int_equal(l.tok.kind, TOK_END);
        assert_false(lexer_error(&l, "more"));
        assert_int_equal(c.diags.errors, 1);
        compiler_free(&c);
    }
}

static void lexer_escape_errors(void **state)
{
    (void)state;
    static const char *const cases[] = {"\"a\\q\"", "\"a\\x1\"", "\"a\\xzz\"", "\"a\\400\"", "\"a\\x\""};
    for (size_t i = 0; i < COUNT(cases); i++) {
        compiler c;
        lexer l;
        compiler_init(&c);
        lexer_init(&l, &c.mem, c.names, &c.diags, "t", cases[i], strlen(cases[i]));
        assert_true(l.failed);
        assert_non_null(strstr(diags_print(&c.diags, &c.mem), "no such escape"));
        compiler_free(&c);
    }
}

static void lexer_text_ends_where_it_is_said(void **state)
{
    (void)state;
    static const char *const texts[] = {"abc", "%a", "%\"ab\"", "\"a\\x41\"", "1e-3", "0xff", "->", "a// b", "@", "/"};
    for (size_t i = 0; i < COUNT(texts); i++) {
        for (size_t n = 0; n <= strlen(texts[i]);
             n++) { /* of exactly n bytes, so that sanitizers see a byte too many */
            char *exact = malloc(n ? n : 1);
            compiler c;
            lexer l;
            assert_non_null(exact);
            memcpy(exact, texts[i], n);
            compiler_init(&c);
            lexer_init(&l, &c.mem, c.names, &c.diags, "t", exact, n);
            for (int guard = 0; l.tok.kind != TOK_END; guard++) {
                assert_true(guard < 10);
                lexer_next(&l);
            }
            compiler_free(&c);
            free(exact);
        }
    }
}

static void lexer_takes_any_bytes(void **state)
{
    (void)state;
    static const char alphabet[] = "ab0x9.e+-%@\"\\n/<>&|= \n\t\0\x80\xff(){}";
    uint64_t seed = 42;
    for (int round = 0; round < 20000; round++) {
        char text[40];
        size_t n = next_random(&seed) % sizeof text;
        for (size_t i = 0; i < n; i++)
            text[i] = alphabet[next_random(&seed) % (sizeof alphabet - 1)];
        arena a;
        diags d;
        lexer l;
        arena_init(&a, NULL);
        diags_init(&d, NULL);
        lexer_init(&l, &a, interner_new(&a), &d, "t", text, n);
        size_t tokens = 0;
        for (; l.tok.kind != TOK_END; lexer_next(&l))
            assert_true(tokens++ <= n && l.tok.loc.line > 0 && l.tok.loc.col > 0);
        assert_int_equal(d.errors, l.failed);
        diags_free(&d);
        arena_free(&a);
    }
}

static void lexer_helpers(void **state)
{
    (void)state;
    compiler c;
    lexer l;
    int64_t i = 1;
    double f = 1;
    const char *name = NULL, *text = "-9223372036854775808 -5 7 -inf -3 2.5 18446744073709551615 %v >> ( rest";
    compiler_init(&c);
    lexer_init(&l, &c.mem, c.names, &c.diags, "t", text, strlen(text));
    assert_true(lexer_int(&l, &i) && i == INT64_MIN);
    assert_true(lexer_int(&l, &i) && i == -5);
    assert_true(lexer_int(&l, &i) && i == 7);
    assert_true(lexer_float(&l, &f) && isinf(f) && f < 0);
    assert_true(lexer_float(&l, &f) && f == -3.0);
    assert_true(lexer_float(&l, &f) && f == 2.5);
    assert_true(lexer_float(&l, &f) && f == 18446744073709551615.0);
    assert_true(lexer_name(&l, TOK_VAR, &name));
    assert_string_equal(name, "v");
    assert_false(lexer_is(&l, ">"));
    assert_true(lexer_expect(&l, ">"));
    assert_int_equal(l.tok.loc.col, 1 + strlen(text) - strlen("> ( rest"));
    assert_true(lexer_expect(&l, ">"));
    assert_true(lexer_is(&l, "(") && lexer_accept(&l, "(") && !lexer_accept(&l, "("));
    assert_true(lexer_is(&l, "rest"));
    for (uint32_t k = 0; k < LEXER_MAX_DEPTH; k++)
        assert_true(lexer_enter(&l));
    lexer_leave(&l);
    assert_true(lexer_enter(&l));
    assert_false(lexer_enter(&l));
    assert_string_equal(diags_print(&c.diags, &c.mem), "error: t:1:68: nested more than 200 levels deep [syntax]\n");
    compiler_free(&c);
}

static bool expect_paren(lexer *l)
{
    return lexer_expect(l, ")");
}

static bool expect_int(lexer *l)
{
    int64_t v;
    return lexer_int(l, &v);
}

static bool expect_float(lexer *l)
{
    double v;
    return lexer_float(l, &v);
}

static bool expect_symbol(lexer *l)
{
    const char *v;
    return lexer_name(l, TOK_SYMBOL, &v);
}

static void lexer_helper_errors(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        bool (*ask)(lexer *l);
        const char *message;
    } cases[] = {
        {"a", expect_paren, "error: t:1:1: expected ')' before 'a' [syntax]\n"},
        {"\n %a", expect_paren, "error: t:2:2: expected ')' before '%a' [syntax]\n"},
        {"\"x\"", expect_paren, "error: t:1:1: expected ')' before a string [syntax]\n"},
        {"", expect_paren, "error: t:1:1: expected ')' before the end of the text [syntax]\n"},
        {"1.5", expect_int, "error: t:1:1: expected an integer before '1.5' [syntax]\n"},
        {"- x", expect_int, "error: t:1:3: expected an integer before 'x' [syntax]\n"},
        {"9223372036854775808", expect_int,
         "error: t:1:1: 9223372036854775808 does not fit into a signed 64-bit integer [syntax]\n"},
        {"-9223372036854775809", expect_int,
         "error: t:1:2: -9223372036854775809 does not fit into a signed 64-bit integer [syntax]\n"},
        {"[", expect_float, "error: t:1:1: expected a number before '[' [syntax]\n"},
        {"%a", expect_symbol, "error: t:1:1: expected an @name before '%a' [syntax]\n"},
        {"1 $", expect_int, "error: t:1:3: unexpected character '$' [syntax]\n"},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        compiler c;
        lexer l;
        compiler_init(&c);
        lexer_init(&l, &c.mem, c.names, &c.diags, "t", cases[i].text, strlen(cases[i].text));
        assert_false(cases[i].ask(&l));
        assert_string_equal(diags_print(&c.diags, &c.mem), cases[i].message);
        compiler_free(&c);
    }
}

static void strings_cost_what_they_are_long(void **state)
{
    (void)state;
    arena a, text;
    diags d;
    lexer l;
    writer w;
    arena_init(&a, NULL);
    arena_init(&text, NULL);
    diags_init(&d, NULL);
    writer_init(&w, &text);
    for (int i = 0; i < 20000; i++)
        w_fmt(&w, "\"s%d\" ", i);
    lexer_init(&l, &a, interner_new(&a), &d, "t", w.data, w.len);
    while (l.tok.kind != TOK_END)
        lexer_next(&l);
    assert_false(l.failed);
    assert_true(a.bytes < 8u << 20);
    diags_free(&d);
    arena_free(&text);
    arena_free(&a);
}

static void write_json(json_out *j)
{
    json_out_object(j, NULL);
    json_out_text(j, "a\"b", "\x01\n\xc3\xa9\xff\\ \x7f");
    json_out_array(j, "list");
    json_out_int(j, NULL, INT64_MIN);
    json_out_uint(j, NULL, UINT64_MAX);
    json_out_object(j, NULL);
    json_out_end(j);
    json_out_end(j);
    json_out_array(j, "none");
    json_out_end(j);
    json_out_real(j, "x", 0.1);
    json_out_real(j, "y", -INFINITY);
    json_out_null(j, "z");
    json_out_text(j, "t", NULL);
    json_out_end(j);
}

static void json_in_three_styles(void **state)
{
    static const char *const wanted[] = {
        "{\n \"a\\\"b\": \"\\u0001\\u000a\xc3\xa9?\\\\ \\u007f\",\n \"list\": [\n  -9223372036854775808,\n  "
        "18446744073709551615,\n  {}\n ],\n \"none\": [],\n \"x\": 0.1,\n \"y\": \"-inf\",\n \"z\": null,\n \"t\": "
        "\"\"\n}",
        "{\"a\\\"b\": \"\\u0001\\u000a\xc3\xa9?\\\\ \\u007f\", \"list\": [-9223372036854775808, 18446744073709551615, "
        "{}], \"none\": [], \"x\": 0.1, \"y\": \"-inf\", \"z\": null, \"t\": \"\"}",
        "{\"a\\\"b\":\"\\u0001\\u000a\xc3\xa9?\\\\ \\u007f\",\"list\":[-9223372036854775808,18446744073709551615,{}],"
        "\"none\":[],\"x\":0.1,\"y\":\"-inf\",\"z\":null,\"t\":\"\"}",
    };
    (void)state;
    for (int style = JSON_OUT_LINES; style <= JSON_OUT_DENSE; style++) {
        arena a;
        writer w;
        arena_init(&a, NULL);
        writer_init(&w, &a);
        json_out j = json_out_begin(&w, (json_out_style)style);
        write_json(&j);
        assert_string_equal(w.data, wanted[style]);
        arena_free(&a);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(writer_indents),
        cmocka_unit_test(writer_quotes),
        cmocka_unit_test(lines_to_show),
        cmocka_unit_test(every_byte_is_quoted_and_read_back),
        cmocka_unit_test(writer_names),
        cmocka_unit_test(writer_floats),
        cmocka_unit_test(random_floats_read_back),
        cmocka_unit_test(equal_texts_are_one_pointer),
        cmocka_unit_test(lexer_tokens),
        cmocka_unit_test(lexer_errors_have_places),
        cmocka_unit_test(lexer_escape_errors),
        cmocka_unit_test(lexer_text_ends_where_it_is_said),
        cmocka_unit_test(lexer_takes_any_bytes),
        cmocka_unit_test(lexer_helpers),
        cmocka_unit_test(lexer_helper_errors),
        cmocka_unit_test(strings_cost_what_they_are_long),
        cmocka_unit_test(json_in_three_styles),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
