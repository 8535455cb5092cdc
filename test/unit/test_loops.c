/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels from the text of loops (lathe/loops.h): what they compute, operands that results overwrite, and text that
 * lies about its memory or is none. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lathe/loops.h"
#include "lathe_vm.h"

/* y = x reversed, and its sum; a status where the sum is below 0. */
static const char reversed[] =
    "primfn(n: handle, x: handle, y: handle, s: handle) -> ()\n"
    "  attr = {\"global_symbol\": \"reverse\", \"inputs\": 2}\n"
    "  buffers = {n: Buffer(int64, []), x: Buffer(int32, [(int64*)n[]]), y: Buffer(int32, [(int64*)n[]]),\n"
    "             s: Buffer(int32, [1])} {\n"
    "  assert(((int64*)n[] < 7), -10, \"n\")\n"
    "  s[0] = 0\n"
    "  for (i: int64, 0, (int64*)n[]) {\n"
    "    y[i] = (int32*)x[(((int64*)n[] - i) - 1)]\n"
    "    s[0] = ((int32*)s[0] + (int32*)x[i])\n"
    "  }\n"
    "  assert(((int32*)s[0] >= 0), -12, \"s\")\n"
    "}\n";

typedef struct place {
    lathe_loops *loops;
    int64_t n;
    int32_t x[4], y[4], s;
    void *data[5];
    size_t bytes[5];
    lathe_error e;
} place;

static void begin(place *p)
{
    *p = (place){.n = 4, .x = {1, 2, 3, 4}, .bytes = {8, 16, 16, 4, 0}};
    p->data[0] = &p->n, p->data[1] = p->x, p->data[2] = p->y, p->data[3] = &p->s, p->data[4] = NULL;
    assert_int_equal(lathe_loops_create(NULL, NULL, &p->loops, &p->e), LATHE_OK);
}

static int32_t run(place *p, const char *text, size_t size, const char *kernel, uint32_t n, int32_t *ended)
{
    p->e = (lathe_error){0};
    int32_t status = lathe_loops_interpret(p->loops, text, size, kernel, p->data, p->bytes, n, ended, &p->e);
    assert_int_equal(p->e.code, status);
    assert_true((status == LATHE_OK) == (p->e.message[0] == 0));
    return status;
}

static int32_t reverse(place *p, int32_t *ended)
{
    return run(p, reversed, strlen(reversed), "reverse", 5, ended); /* one address more: scratch */
}

static void test_runs(void **state)
{
    place p;
    int32_t ended = 1;
    const int32_t wanted[] = {4, 3, 2, 1};
    (void)state;
    begin(&p);
    for (int i = 0; i < 3; i++) {
        memset(p.y, 0, sizeof p.y);
        assert_int_equal(reverse(&p, &ended), LATHE_OK);
        assert_int_equal(ended, 0);
        assert_memory_equal(p.y, wanted, sizeof wanted);
        assert_int_equal(p.s, 10);
    }
    p.data[2] = p.x; /* the result lies where the operand does */
    assert_int_equal(reverse(&p, &ended), LATHE_OK);
    assert_memory_equal(p.x, wanted, sizeof wanted);
    p.x[0] = -100;
    assert_int_equal(reverse(&p, &ended), LATHE_OK);
    assert_int_equal(ended, -12);
    lathe_loops_destroy(p.loops);
    lathe_loops_destroy(NULL);
}

/* Memory is what the caller says, not what the text says; an assertion on extents comes first. */
static void test_memory(void **state)
{
    place p;
    int32_t ended;
    (void)state;
    begin(&p);
    p.n = 5;
    assert_int_equal(reverse(&p, &ended), LATHE_E_KERNEL);
    assert_non_null(strstr(p.e.message, "kernel reverse: "));
    assert_non_null(strstr(p.e.message, "lies outside"));
    p.n = 7;
    assert_int_equal(reverse(&p, &ended), LATHE_OK);
    assert_int_equal(ended, -10);
    p.n = INT64_MAX;
    assert_int_equal(reverse(&p, &ended), LATHE_OK);
    assert_int_equal(ended, -10);
    p.n = -1; /* no elements: kernels of models end with -10 here, by an assertion that this one lacks */
    assert_int_equal(reverse(&p, &ended), LATHE_OK);
    assert_int_equal(p.s, 0);
    p.n = 4;
    for (size_t i = 0; i < 4; i++) {
        size_t whole = p.bytes[i];
        p.bytes[i] = whole - 1;
        assert_int_equal(reverse(&p, &ended), LATHE_E_KERNEL);
        p.bytes[i] = whole;
    }
    assert_int_equal(reverse(&p, &ended), LATHE_OK);
    lathe_loops_destroy(p.loops);
}

static void test_wrong(void **state)
{
    static const char head[] =
        "primfn(x: handle) -> () attr = {\"global_symbol\": \"k\", \"inputs\": 0} buffers = {x: ";
    static const struct {
        const char *rest, *said;
        int32_t status;
    } rows[] = {
        {"Buffer(int64, [1])} { x[0] = 5 }", "", LATHE_OK},
        {"Buffer(int64, [1])} { x[1] = 5 }", "outside", LATHE_E_FORMAT},
        {"Buffer(int64, [4])} { for (i: int64, 0, 4) { x[i] = i } }", "0 of extent 1", LATHE_E_KERNEL},
        {"Buffer(int64, [1, 1], strides=[9, 9], offset=1)} { x[0, 0] = 5 }", "outside", LATHE_E_KERNEL},
        {"Buffer(int64, [1])} { allocate(b, int8, [4611686018427387904]) { b[0] = 1 } }", "no memory", LATHE_E_MEMORY},
        {"Buffer(int64, [1])} { evaluate(@tir.call_extern(\"system\", 1)) }", "system", LATHE_E_KERNEL},
        {"Buffer(int64, [1])} { evaluate(@tir.call_extern(\"memset\", &x[0], 0, 9)) }", "outside", LATHE_E_KERNEL},
        {"Buffer(float33, [1])} { }", "loops:1:", LATHE_E_FORMAT},
        {"Buffer(int64, [1])} { y[0] = 1 }", "y", LATHE_E_FORMAT},
        {"", "loops:1:", LATHE_E_FORMAT},
    };
    place p;
    char text[400];
    int32_t ended;
    (void)state;
    begin(&p);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        (void)snprintf(text, sizeof text, "%s%s", head, rows[i].rest);
        int32_t status = run(&p, text, strlen(text), "k", 1, &ended);
        if (status != rows[i].status || !strstr(p.e.message, rows[i].said))
            fail_msg("%s: %d %s", rows[i].rest, (int)status, p.e.message);
    }
    assert_int_equal(run(&p, reversed, strlen(reversed), "reverse", 3, &ended), LATHE_E_ARGUMENT);
    assert_int_equal(run(&p, reversed, strlen(reversed), "other", 5, &ended), LATHE_E_NAME);
    assert_int_equal(run(&p, "", 0, "reverse", 5, &ended), LATHE_E_NAME);
    lathe_loops_destroy(p.loops);
}

/* The text cut at every byte, and with every byte changed: an answer each time. */
static void test_damaged(void **state)
{
    static const char others[] = "9-(,\"\xff";
    place p;
    char text[sizeof reversed];
    int32_t ended;
    (void)state;
    begin(&p);
    for (size_t n = 0; n < strlen(reversed); n++) {
        char *cut = malloc(n + 1); /* exact: a read beyond the end is seen by the sanitizer */
        assert_non_null(cut);
        memcpy(cut, reversed, n);
        (void)run(&p, cut, n, "reverse", 5, &ended);
        free(cut);
        memcpy(text, reversed, sizeof reversed);
        for (const char *o = others; *o; o++) {
            text[n] = *o;
            (void)run(&p, text, strlen(text), "reverse", 5, &ended);
        }
    }
    assert_int_equal(reverse(&p, &ended), LATHE_OK);
    lathe_loops_destroy(p.loops);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_runs),
        cmocka_unit_test(test_memory),
        cmocka_unit_test(test_wrong),
        cmocka_unit_test(test_damaged),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
