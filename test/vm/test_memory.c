/* SPDX-License-Identifier: Apache-2.0 */
/* Every allocation of a whole story fails once: a runtime, a module, a machine, calls, metadata. What fails says
 * so; nothing is lost and nothing breaks, and the same machine answers the next call. The linker replaces
 * the allocator's functions (test/CMakeLists.txt). */
#include "machine_test.h"

#include <errno.h>
#include <stdbool.h>
#include <unistd.h>

static long count, fail_at; /* of allocations while `counting` */
static bool counting;

static bool fails(void)
{
    if (!counting || ++count != fail_at)
        return false;
    errno = ENOMEM;
    return true;
}

void *__real_malloc(size_t size);
void *__real_calloc(size_t n, size_t size);
void *__real_realloc(void *p, size_t size);
void *__real_aligned_alloc(size_t align, size_t size);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_realloc(void *p, size_t size);
void *__wrap_aligned_alloc(size_t align, size_t size);

void *__wrap_malloc(size_t size)
{
    return fails() ? NULL : __real_malloc(size);
}

void *__wrap_calloc(size_t n, size_t size)
{
    return fails() ? NULL : __real_calloc(n, size);
}

void *__wrap_realloc(void *p, size_t size)
{
    return fails() ? NULL : __real_realloc(p, size);
}

void *__wrap_aligned_alloc(size_t align, size_t size)
{
    return fails() ? NULL : __real_aligned_alloc(align, size);
}

typedef struct story {
    const char *module, *function;
    lathe_value args[2];
    int32_t n;
    const char *metadata; /* of samples that are made, too */
} story;

static int32_t tell(const story *s, lathe_error *e)
{
    char path[400], cache[400];
    lathe_options options = test_options(1, cache);
    lathe_runtime *rt = NULL;
    lathe_value library = {0}, vm = {0}, result = {0}, function = {0}, samples[2];
    int32_t n = 0;
    options.keep_sources = NULL;
    int32_t status = lathe_runtime_create(&options, &rt, e);
    if (status == LATHE_OK)
        status = lathe_LoadFromFile(rt, module_path(s->module, path), &library, e);
    if (status == LATHE_OK)
        status = make_machine(&library, LATHE_MY_DEVICE, 2, &vm, e);
    if (status == LATHE_OK && s->metadata)
        status = lathe_sample_inputs(rt, &vm, s->metadata, samples, 2, &n, e);
    for (int32_t i = 0; i < n; i++)
        lathe_release(&samples[i]);
    if (status == LATHE_OK)
        status = lathe_GetFunction(&vm, s->function, &function, e);
    for (int i = 0; i < 2 && status == LATHE_OK; i++) {
        lathe_release(&result);
        status = lathe_call(&function, s->args, s->n, &result, e);
    }
    bool was_counting = counting;
    counting = false;
    if (function.type == LATHE_FUNCTION && status != LATHE_OK) { /* the next call is none the worse for it */
        lathe_error again = {0};
        lathe_value second;
        if (lathe_call(&function, s->args, s->n, &second, &again) != LATHE_OK)
            fail_msg("after allocation %ld: %s", fail_at, again.message);
        lathe_release(&second);
    }
    counting = was_counting;
    lathe_release(&result);
    lathe_release(&function);
    lathe_release(&vm);
    lathe_release(&library);
    lathe_runtime_destroy(rt);
    return status;
}

static void fail_each(const story *s)
{
    lathe_error e = {0};
    long refused = 0;
    counting = false;
    if (tell(s, &e) != LATHE_OK) /* and the kernels are compiled */
        fail_msg("%s", e.message);
    for (fail_at = 1;; fail_at++) {
        e = (lathe_error){0};
        count = 0;
        counting = true;
        int32_t status = tell(s, &e);
        counting = false;
        if (count < fail_at)
            break;
        /* The system's functions ask for memory too, and their errors are those of files. */
        if (status != LATHE_OK && (e.code != status || !strstr(e.message, "memory")))
            fail_msg("allocation %ld: %d: %s", fail_at, status, e.message);
        refused += status != LATHE_OK;
    }
    assert_true(refused > 20);
    assert_true(refused * 10 > (fail_at - 1) * 9); /* few are made good for: a note that is not kept, a log line */
}

static void test_kernels(void **state)
{
    four x, y;
    (void)state;
    four_set(&x, 1);
    four_set(&y, 2);
    fail_each(&(story){"straight", "main", {x.value, y.value}, 2, NULL});
}

static void test_values(void **state)
{
    (void)state;
    fail_each(&(story){"tuples", "closure", {integer(7)}, 1, NULL});
    fail_each(&(story){"tuples", "dyn", {integer(7)}, 1, NULL});
    fail_each(&(story){"tuples", "item", {integer(2)}, 1, NULL});
}

static void test_tensors(void **state)
{
    four x;
    (void)state;
    four_set(&x, 1);
    fail_each(&(story){"memory", "zero", {x.value}, 1, NULL});
    fail_each(&(story){"memory", "fits", {integer(4)}, 1, NULL});
    fail_each(&(story){"straight", "same", {{.type = LATHE_RAW_STRING, .u.v_string = "a text that is long"}}, 1, NULL});
}

static void test_samples(void **state)
{
    static const char text[] = "{\"inputs\": [{\"name\": \"x\", \"shape\": [4], \"dtype\": \"float32\"},"
                               " {\"name\": \"y\", \"shape\": [4], \"dtype\": \"float32\"}]}";
    char path[] = "/tmp/lathe-metadata-XXXXXX";
    (void)state;
    int file = mkstemp(path);
    assert_true(file >= 0 && write(file, text, sizeof text - 1) == (ssize_t)sizeof text - 1);
    (void)close(file);
    fail_each(&(story){"straight", "nothing", {{0}}, 0, path});
    (void)remove(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_kernels),
        cmocka_unit_test(test_values),
        cmocka_unit_test(test_tensors),
        cmocka_unit_test(test_samples),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
