/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of src/base: arenas, growing arrays, diagnostics, the writer, the lexer, files. Mostly tables of cases. */
#include "base/compiler.h"
#include "base/vec.h"

#include <inttypes.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#define COUNT(a) (sizeof(a) / sizeof *(a))

/* --- arenas ------------------------------------------------------------------------------------------------------- */

static void arena_gives_aligned_zeroed_memory(void **state)
{
    (void)state;
    arena a;
    arena_init(&a);
    for (size_t align = 1; align <= 64; align *= 2) {
        for (size_t size = 0; size < 300; size += 7) {
            unsigned char *p = arena_alloc(&a, size, align);
            assert_int_equal((uintptr_t)p % align, 0);
            for (size_t i = 0; i < size; i++)
                assert_int_equal(p[i], 0);
            memset(p, 0xee, size);
        }
    }
    assert_ptr_not_equal(arena_alloc(&a, 0, 1), arena_alloc(&a, 0, 1));
    char *big = arena_alloc(&a, 1 << 20, 64);
    memset(big, 1, 1 << 20);
    assert_true(a.bytes >= 1 << 20);
    arena_free(&a);
    assert_int_equal(a.bytes, 0);
    assert_string_equal(arena_strdup(&a, "usable again"), "usable again");
    arena_free(&a);
}

static void arena_reset_frees_what_came_after_the_mark(void **state)
{
    (void)state;
    arena a;
    arena_init(&a);
    char *kept = arena_strdup(&a, "kept");
    arena_mark mark = arena_get_mark(&a);
    size_t before = a.bytes;
    unsigned char *first = arena_alloc(&a, 100, 8);
    memset(first, 0xff, 100);
    (void)arena_alloc(&a, 1 << 22, 8);
    arena_reset(&a, mark);
    assert_int_equal(a.bytes, before);
    assert_string_equal(kept, "kept");
    unsigned char *again = arena_alloc(&a, 100, 8);
    assert_ptr_equal(again, first);
    for (size_t i = 0; i < 100; i++)
        assert_int_equal(again[i], 0);
    arena_free(&a);

    mark = arena_get_mark(&a); /* of an empty arena */
    (void)arena_alloc(&a, 10, 1);
    arena_reset(&a, mark);
    assert_int_equal(a.bytes, 0);
}

static void arena_texts(void **state)
{
    (void)state;
    arena a;
    arena_init(&a);
    assert_string_equal(arena_strndup(&a, "abcdef", 3), "abc");
    assert_string_equal(arena_printf(&a, "%s-%d", "x", 42), "x-42");
    char *wide = arena_printf(&a, "%0*d", 5000, 1);
    assert_int_equal(strlen(wide), 5000);
    assert_memory_equal(arena_copy(&a, "1234", 4, 4), "1234", 4);
    arena_free(&a);
}

static jmp_buf out_of_memory;
static size_t refused_size;

static void note_out_of_memory(arena *a, size_t size)
{
    (void)a;
    refused_size = size;
    longjmp(out_of_memory, 1);
}

static void arena_refuses_impossible_sizes(void **state)
{
    (void)state;
    arena a;
    arena_init(&a);
    a.out_of_memory = note_out_of_memory;
    static const size_t sizes[] = {SIZE_MAX, SIZE_MAX - 1, SIZE_MAX - 63, SIZE_MAX / 2 + 1, SIZE_MAX / 2 - 4096};
    for (size_t i = 0; i < COUNT(sizes); i++)
        assert_null(arena_try_alloc(&a, sizes[i], 64));
    assert_non_null(arena_try_alloc(&a, 16, 16));

    if (setjmp(out_of_memory) == 0) {
        (void)arena_alloc(&a, SIZE_MAX - 5, 1);
        fail();
    }
    assert_int_equal(refused_size, SIZE_MAX - 5);
    if (setjmp(out_of_memory) == 0) { /* the product wraps to 16 */
        (void)arena_alloc_array(&a, SIZE_MAX / 16 + 2, 16, 8);
        fail();
    }
    assert_string_equal(arena_strdup(&a, "still usable"), "still usable");
    arena_free(&a);
}

static void vectors_grow(void **state)
{
    (void)state;
    arena a;
    arena_init(&a);
    VEC(int) v = {0};
    for (int i = 0; i < 1000; i++)
        vec_push(&a, &v, i * i);
    assert_int_equal(v.len, 1000);
    for (int i = 0; i < 1000; i++)
        assert_int_equal(v.data[i], i * i);
    assert_int_equal(vec_last(&v), 999 * 999);
    assert_int_equal(vec_pop(&v), 999 * 999);
    assert_int_equal(v.len, 999);
    arena_free(&a);
}

/* --- diagnostics -------------------------------------------------------------------------------------------------- */

static void diagnostics_print_one_a_line(void **state)
{
    (void)state;
    diags d;
    arena a;
    diags_init(&d);
    arena_init(&a);
    assert_int_equal(diags_exit_status(&d), 0);
    assert_string_equal(diags_print(&d, &a), "");
    src_loc node = {.file = "model.onnx", .node = "conv1", .op = "Conv", .node_index = 3};
    src_loc text = {.file = "a.txt", .line = 3, .col = 5, .node_index = -1};
    src_loc file = {.file = "b.bin", .node_index = -1}, unnamed = {.node = "", .op = "Add", .node_index = 0};
    assert_false(diag_warning(&d, DIAG_DATA, src_loc_none(), "odd"));
    assert_int_equal(diags_exit_status(&d), 0);
    assert_false(diag_error(&d, DIAG_TYPE, node, "channels %d and %d", 1, 2));
    diag_hint(&d, "check %s", "W");
    (void)diag_error(&d, DIAG_ENVIRONMENT, text, "x");
    (void)diag_error(&d, DIAG_IO, file, "y");
    (void)diag_error(&d, DIAG_USAGE, unnamed, "z");
    assert_string_equal(diags_print(&d, &a), "warning: odd [data]\n"
                                             "error: model.onnx: node 3 'conv1' (Conv): channels 1 and 2 [type]\n"
                                             "  hint: check W\n"
                                             "error: a.txt:3:5: x [environment]\n"
                                             "error: b.bin: y [io]\n"
                                             "error: node 0 (Add): z [usage]\n");
    assert_int_equal(diags_exit_status(&d), 1); /* of the first error */
    diags_free(&d);
    diags_init(&d);
    (void)diag_error(&d, DIAG_USAGE, src_loc_none(), "u");
    assert_int_equal(diags_exit_status(&d), 2);
    diags_free(&d);
    arena_free(&a);
}

static void diagnostics_have_a_limit_and_copy_their_texts(void **state)
{
    (void)state;
    diags d;
    arena a;
    diags_init(&d);
    arena_init(&a);
    d.limit = 2;
    char name[] = "evil\n\033[2Jname";
    src_loc loc = {.file = "f", .node = name, .node_index = 1};
    (void)diag_error(&d, DIAG_FORMAT, loc, "line\nend\tand \033 bell\007");
    memset(name, 'x', sizeof name - 1);
    for (int i = 0; i < 4; i++) {
        (void)diag_error(&d, DIAG_FORMAT, src_loc_none(), "%d", i);
        diag_hint(&d, "hint %d", i);
        (void)diag_warning(&d, DIAG_FORMAT, src_loc_none(), "w");
    }
    assert_int_equal(d.errors, 5);
    assert_string_equal(diags_print(&d, &a), "error: f: node 1 'evil ?[2Jname': line end and ? bell? [format]\n"
                                             "error: 0 [format]\n  hint: hint 0\n"
                                             "warning: w [format]\nwarning: w [format]\n"
                                             "note: 3 more errors\nnote: 2 more warnings\n");
    char *huge = arena_printf(&a, "%0*d", 9000, 0);
    diags_free(&d);
    diags_init(&d);
    (void)diag_error(&d, DIAG_FORMAT, src_loc_none(), "%s", huge);
    assert_int_equal(strlen(d.first->text), 2000);
    diags_free(&d);
    arena_free(&a);
}

/* --- writer ------------------------------------------------------------------------------------------------------- */

static void writer_indents(void **state)
{
    (void)state;
    arena a;
    writer w;
    arena_init(&a);
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
        {"\0" "1", 2, "\"\\0001\""}, /* three digits: the 1 stays a 1 */
        {"\x7f\t", 2, "\"\\177\\011\""},
        {"\xc3\xa9\xe6\x97\xa5", 5, "\"\xc3\xa9\xe6\x97\xa5\""},
        {"\xff\xc3", 2, "\"\\377\\303\""},
        {"\xc0\x80", 2, "\"\\300\\200\""},         /* overlong */
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
    static const char *const cases[][2] = {{"x", "%x"},           {"12", "%12"},           {"a.b_1", "%a.b_1"},
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
        arena_init(&a);
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

/* --- interned strings --------------------------------------------------------------------------------------------- */

static void equal_texts_are_one_pointer(void **state)
{
    (void)state;
    arena a;
    arena_init(&a);
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

/* --- lexer -------------------------------------------------------------------------------------------------------- */

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
        {" \"abc", "error: t:1:2: this string has no closing quote on its line [syntax]\n"},
        {"\"ab\nc\"", "error: t:1:1: this string has no closing quote on its line [syntax]\n"},
        {"%\"abc", "error: t:1:1: this string has no closing quote on its line [syntax]\n"},
        {"\"ab\\", "error: t:1:1: this string has no closing quote on its line [syntax]\n"},
        {"\"ab\\\"", "error: t:1:1: this string has no closing quote on its line [syntax]\n"},
        {"18446744073709551616", "error: t:1:1: 18446744073709551616 does not fit into 64 bits [syntax]\n"},
        {"0x10000000000000000", "error: t:1:1: 0x10000000000000000 does not fit into 64 bits [syntax]\n"},
        {"1e999", "error: t:1:1: 1e999 is above the largest double; write inf for infinity [syntax]\n"},
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
        for (size_t n = 0; n <= strlen(texts[i]); n++) { /* of exactly n bytes, so that sanitizers see a byte too many */
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
        arena_init(&a);
        diags_init(&d);
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
    arena_init(&a);
    arena_init(&text);
    diags_init(&d);
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

/* --- files -------------------------------------------------------------------------------------------------------- */

typedef struct folder {
    arena a;
    diags d;
    char path[32];
} folder;

static int open_folder(void **state)
{
    folder *f = calloc(1, sizeof *f);
    assert_non_null(f);
    arena_init(&f->a);
    diags_init(&f->d);
    strcpy(f->path, "/tmp/lathe-test-XXXXXX");
    assert_non_null(mkdtemp(f->path));
    *state = f;
    return 0;
}

static int close_folder(void **state)
{
    folder *f = *state;
    assert_true(file_remove_tree(&f->d, f->path));
    assert_false(file_exists(f->path));
    arena_free(&f->a);
    diags_free(&f->d);
    free(f);
    return 0;
}

static void files_are_written_whole(void **state)
{
    folder *f = *state;
    const char *path = path_join(&f->a, f->path, "a/b/c.bin");
    span s;
    assert_false(file_exists(path));
    assert_true(file_write(&f->d, path, "first", 5));
    assert_true(file_write(&f->d, path, "second", 6)); /* replaces */
    assert_true(file_exists(path));
    assert_false(file_is_dir(path));
    assert_true(file_is_dir(path_dir(&f->a, path)));
    assert_true(file_map(&f->d, &f->a, path, &s));
    assert_int_equal(s.len, 6);
    assert_memory_equal(s.data, "second", 6);
    file_unmap(s);
    struct stat st;
    assert_int_equal(stat(path, &st), 0);
    mode_t mask = umask(0);
    (void)umask(mask);
    assert_int_equal(st.st_mode & 0777, 0666 & ~mask);
    /* nothing but the file is left in the folder: removing it empties the folder */
    assert_int_equal(unlink(path), 0);
    assert_int_equal(rmdir(path_dir(&f->a, path)), 0);
    assert_true(file_write(&f->d, "/dev/null", "x", 1));
    assert_int_equal(f->d.errors, 0);
}

static void empty_files_and_streams_are_read(void **state)
{
    folder *f = *state;
    span s = {NULL, 7};
    const char *path = path_join(&f->a, f->path, "empty");
    assert_true(file_write(&f->d, path, NULL, 0));
    assert_true(file_map(&f->d, &f->a, path, &s));
    assert_int_equal(s.len, 0);
    file_unmap(s);
    assert_true(file_map(&f->d, &f->a, "/dev/null", &s));
    assert_int_equal(s.len, 0);
    assert_true(file_map(&f->d, &f->a, "/proc/self/status", &s)); /* says that it has 0 bytes */
    assert_true(s.len > 100);
    for (int i = 0; i < 100; i++) { /* read, not mapped: unmapping leaves it alone, wherever it lies */
        assert_true(file_map(&f->d, &f->a, "/proc/self/status", &s));
        file_unmap(s);
        assert_true(s.data[0] == 'N');
    }
    assert_int_equal(f->d.errors, 0);
}

static void pipes_are_read_to_their_end(void **state)
{
    folder *f = *state;
    int ends[2], saved = dup(STDIN_FILENO);
    span s;
    assert_int_equal(pipe(ends), 0);
    pid_t child = fork();
    if (child == 0) {
        char block[1000];
        memset(block, 'x', sizeof block);
        for (int i = 0; i < 500; i++)
            if (write(ends[1], block, sizeof block) != sizeof block)
                _exit(1);
        _exit(0);
    }
    (void)close(ends[1]);
    assert_true(dup2(ends[0], STDIN_FILENO) == STDIN_FILENO);
    assert_true(file_map(&f->d, &f->a, "-", &s));
    assert_int_equal(s.len, 500000);
    for (size_t i = 0; i < s.len; i++)
        assert_true(s.data[i] == 'x');
    (void)dup2(saved, STDIN_FILENO);
    (void)close(saved);
    (void)close(ends[0]);
}

static void file_errors_say_what(void **state)
{
    folder *f = *state;
    span s;
    assert_false(file_map(&f->d, &f->a, path_join(&f->a, f->path, "none"), &s));
    assert_non_null(strstr(f->d.last->text, "No such file"));
    assert_int_equal(f->d.last->code, DIAG_IO);
    assert_false(file_map(&f->d, &f->a, f->path, &s));
    assert_non_null(strstr(f->d.last->text, "directory"));
    const char *file = path_join(&f->a, f->path, "file");
    assert_true(file_write(&f->d, file, "x", 1));
    assert_false(file_write(&f->d, path_join(&f->a, file, "below"), "x", 1));
    assert_non_null(strstr(f->d.last->text, "Not a directory"));
    assert_int_equal(f->d.last->code, DIAG_ENVIRONMENT);
    assert_false(file_write(&f->d, f->path, "x", 1)); /* a folder is not replaced */
    assert_true(file_is_dir(f->path));
    assert_int_equal(f->d.errors, 4);
}

static void trees_are_removed_links_not_followed(void **state)
{
    folder *f = *state;
    const char *outside = path_join(&f->a, f->path, "outside/file"), *tree = path_join(&f->a, f->path, "tree");
    assert_true(file_write(&f->d, outside, "x", 1));
    assert_true(file_write(&f->d, path_join(&f->a, tree, "a/b/c"), "x", 1));
    assert_int_equal(symlink(path_dir(&f->a, outside), path_join(&f->a, tree, "link")), 0);
    assert_true(file_remove_tree(&f->d, tree));
    assert_false(file_exists(tree));
    assert_true(file_exists(outside));
    assert_true(file_remove_tree(&f->d, tree)); /* what is not there is removed already */
}

static void mapped_files_are_shared(void **state)
{
    folder *f = *state;
    compiler c;
    span a, b;
    const char *path = path_join(&f->a, f->path, "w.bin");
    assert_true(file_write(&f->d, path, "weights", 7));
    compiler_init(&c);
    assert_true(compiler_map_file(&c, path, &a));
    assert_true(compiler_map_file(&c, path, &b));
    assert_ptr_equal(a.data, b.data);
    assert_false(compiler_map_file(&c, path_join(&f->a, f->path, "none"), &a));
    assert_int_equal(c.diags.errors, 1);
    compiler_free(&c);
}

static void paths(void **state)
{
    folder *f = *state;
    static const char *const joined[][3] = {
        {"a", "b", "a/b"}, {"a/", "b", "a/b"}, {"", "b", "b"}, {"a", "/b", "/b"}, {"/", "b", "/b"}};
    static const char *const folders[][2] = {{"a/b", "a"}, {"b", "."}, {"/b", "/"}, {"/a/b/c", "/a/b"}};
    for (size_t i = 0; i < COUNT(joined); i++)
        assert_string_equal(path_join(&f->a, joined[i][0], joined[i][1]), joined[i][2]);
    for (size_t i = 0; i < COUNT(folders); i++)
        assert_string_equal(path_dir(&f->a, folders[i][0]), folders[i][1]);
}

static void sizes_are_checked(void **state)
{
    (void)state;
    size_t s;
    int64_t i;
    assert_true(size_mul(3, 4, &s) && s == 12);
    assert_false(size_mul(SIZE_MAX, 2, &s));
    assert_false(size_add(SIZE_MAX, 1, &s));
    assert_true(i64_add(INT64_MAX, INT64_MIN, &i) && i == -1);
    assert_false(i64_add(INT64_MAX, 1, &i));
    assert_false(i64_mul(INT64_MIN, -1, &i));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(arena_gives_aligned_zeroed_memory),
        cmocka_unit_test(arena_reset_frees_what_came_after_the_mark),
        cmocka_unit_test(arena_texts),
        cmocka_unit_test(arena_refuses_impossible_sizes),
        cmocka_unit_test(vectors_grow),
        cmocka_unit_test(diagnostics_print_one_a_line),
        cmocka_unit_test(diagnostics_have_a_limit_and_copy_their_texts),
        cmocka_unit_test(writer_indents),
        cmocka_unit_test(writer_quotes),
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
        cmocka_unit_test_setup_teardown(files_are_written_whole, open_folder, close_folder),
        cmocka_unit_test_setup_teardown(empty_files_and_streams_are_read, open_folder, close_folder),
        cmocka_unit_test_setup_teardown(pipes_are_read_to_their_end, open_folder, close_folder),
        cmocka_unit_test_setup_teardown(file_errors_say_what, open_folder, close_folder),
        cmocka_unit_test_setup_teardown(trees_are_removed_links_not_followed, open_folder, close_folder),
        cmocka_unit_test_setup_teardown(mapped_files_are_shared, open_folder, close_folder),
        cmocka_unit_test_setup_teardown(paths, open_folder, close_folder),
        cmocka_unit_test(sizes_are_checked),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
