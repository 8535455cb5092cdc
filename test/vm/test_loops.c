/* SPDX-License-Identifier: Apache-2.0 */
/* Modules that hold their loops: when the machine hands them to the program that interprets, and what it makes of the
 * answer. The interpreter here is the test's own: the machine knows no loops. */
#include "machine_test.h"

typedef struct heard {
    lathe_options options;
    lathe_runtime *rt;
    lathe_value library, vm;
    int calls, lines;
    int32_t answer, ended;
    char line[400], cache[400];
} heard;

static int32_t add(void *user, const char *loops, size_t size, const char *kernel, void *const *data,
                   const size_t *bytes, uint32_t n, int32_t *out_status, lathe_error *error)
{
    heard *h = user;
    h->calls++;
    assert_int_equal(size, strlen("the loops of add"));
    assert_memory_equal(loops, "the loops of add", size);
    assert_string_equal(kernel, "add");
    assert_int_equal(n, 3);
    for (uint32_t i = 0; i < n; i++)
        assert_int_equal(bytes[i], 16);
    for (int i = 0; i < 4; i++)
        ((float *)data[2])[i] = ((float *)data[0])[i] + ((float *)data[1])[i];
    *out_status = h->ended;
    if (h->answer != LATHE_OK)
        *error = (lathe_error){h->answer, "the loops are wrong"};
    return h->answer;
}

static void hear(void *user, const char *line)
{
    heard *h = user;
    h->lines++;
    (void)snprintf(h->line, sizeof h->line, "%s", line);
}

/* A machine for the module `name`, as far as it comes. */
static int32_t start(heard *h, const char *name, lathe_error *e)
{
    char path[400];
    h->options.log = hear;
    h->options.user = h;
    h->options.interpret_user = h;
    h->library = h->vm = (lathe_value){0};
    assert_int_equal(lathe_runtime_create(&h->options, &h->rt, e), LATHE_OK);
    int32_t status = lathe_LoadFromFile(h->rt, module_path(name, path), &h->library, e);
    return status == LATHE_OK ? make_machine(&h->library, LATHE_CPU, 2, &h->vm, e) : status;
}

static int32_t run(heard *h, lathe_error *e)
{
    four x, y;
    lathe_value args[2], result;
    four_set(&x, 1);
    four_set(&y, 10);
    args[0] = x.value, args[1] = y.value;
    int32_t status = lathe_call_named(&h->vm, "main", args, 2, &result, e);
    for (size_t i = 0; i < 4 && status == LATHE_OK; i++)
        assert_true(element(&result, i) == 11 + 2 * (float)i);
    lathe_release(&result);
    return status;
}

static void stop(heard *h)
{
    lathe_release(&h->vm);
    lathe_release(&h->library);
    lathe_runtime_destroy(h->rt);
}

static heard without_compiler(void)
{
    return (heard){.options = {.size = sizeof(lathe_options), .workers = 2, .cache_dir = "",
                               .compiler = "/nonexistent/cc", .interpret = add}};
}

static void test_no_compiler(void **state)
{
    heard h = without_compiler();
    lathe_error e = {0};
    (void)state;
    must(start(&h, "loops", &e));
    for (int i = 1; i <= 3; i++) {
        must(run(&h, &e));
        assert_int_equal(h.calls, i);
        assert_int_equal(h.lines, 1); /* said once */
    }
    assert_non_null(strstr(h.line, "no C compiler: the kernels are interpreted, which is slow"));
    stop(&h);
}

static void test_compiler(void **state)
{
    heard h = {.lines = 0};
    lathe_error e = {0};
    (void)state;
    h.options = test_options(2, h.cache);
    h.options.interpret = add;
    must(start(&h, "loops", &e));
    must(run(&h, &e));
    assert_int_equal(h.calls, 0);
    assert_int_equal(h.lines, 0);
    stop(&h);
}

/* A compiler that is there and fails is an error of its own. */
static void test_bad_compiler(void **state)
{
    heard h = without_compiler();
    lathe_error e = {0};
    (void)state;
    h.options.compiler = "false";
    must(start(&h, "loops", &e));
    assert_int_equal(run(&h, &e), LATHE_E_COMPILER);
    assert_int_equal(h.calls, 0);
    stop(&h);
}

static void test_no_jit(void **state)
{
    heard h = without_compiler();
    lathe_error e = {0};
    (void)state;
    h.options.no_jit = 1;
    must(start(&h, "loops", &e));
    must(run(&h, &e));
    assert_int_equal(h.calls, 1);
    assert_non_null(strstr(h.line, "no_jit forbids compiling: the kernels are interpreted"));
    stop(&h);
    assert_int_equal(start(&h, "straight", &e), LATHE_E_REFUSED); /* it has none */
    stop(&h);
    h.options.interpret = NULL;
    assert_int_equal(start(&h, "loops", &e), LATHE_E_REFUSED); /* nobody runs them */
    stop(&h);
}

static void test_nothing_to_interpret(void **state)
{
    heard h = without_compiler();
    lathe_error e = {0};
    (void)state;
    must(start(&h, "straight", &e));
    assert_int_equal(run(&h, &e), LATHE_E_COMPILER);
    stop(&h);
    h.options.interpret = NULL;
    must(start(&h, "loops", &e));
    assert_int_equal(run(&h, &e), LATHE_E_COMPILER);
    assert_non_null(strstr(e.message, "there is no compiler '/nonexistent/cc'"));
    assert_int_equal(h.calls, 0);
    stop(&h);
}

/* What a kernel ends with is said as for compiled ones; errors of the interpreter come through. */
static void test_answers(void **state)
{
    heard h = without_compiler();
    lathe_error e = {0};
    (void)state;
    must(start(&h, "loops", &e));
    h.ended = -12;
    assert_int_equal(run(&h, &e), LATHE_E_KERNEL);
    assert_non_null(strstr(e.message, "add: kernel add (Add a) ended with status -12: an index"));
    h.ended = 0;
    h.answer = LATHE_E_FORMAT;
    assert_int_equal(run(&h, &e), LATHE_E_FORMAT);
    assert_non_null(strstr(e.message, "instruction 2, add: the loops are wrong"));
    h.answer = LATHE_OK;
    must(run(&h, &e));
    stop(&h);
}

/* Options of a program from before. */
static void test_older_options(void **state)
{
    heard h = without_compiler();
    lathe_error e = {0};
    (void)state;
    h.options.size = offsetof(lathe_options, interpret);
    must(start(&h, "loops", &e));
    assert_int_equal(run(&h, &e), LATHE_E_COMPILER);
    assert_int_equal(h.calls, 0);
    stop(&h);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_no_compiler), cmocka_unit_test(test_compiler),
        cmocka_unit_test(test_bad_compiler), cmocka_unit_test(test_no_jit),
        cmocka_unit_test(test_nothing_to_interpret), cmocka_unit_test(test_answers),
        cmocka_unit_test(test_older_options),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
