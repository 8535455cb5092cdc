/* SPDX-License-Identifier: Apache-2.0 */
/* The library as a program uses it, by lathe.h alone: models from bytes and files, runs with tensors of any strides,
 * errors, progress that cancels, threads side by side, what is left behind. */
#include "lathe/lathe.h"

#include <dirent.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

/* --- what the tests work with --- */

static const char doubles[] = "func @main(%x: f32[2, 3]) {\n"
                              "  %y = add(%x, %x) : f32[2, 3]\n"
                              "  return %y\n"
                              "}\n";
static const char opens[] = "func @main(%x: f32[n, 2]) where n <= 5 {\n"
                            "  %y = add(%x, %x) : f32[n, 2]\n"
                            "  return %y\n"
                            "}\n";

static char scratch[200]; /* TMPDIR: what is left in it was left behind */

static int count_left(void)
{
    DIR *d = opendir(scratch);
    int n = -2; /* . and .. */
    while (d && readdir(d))
        n++;
    closedir(d);
    return n;
}

static int begin(void **state)
{
    (void)snprintf(scratch, sizeof scratch, "%s/lathe-api-XXXXXX", getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp");
    if (!mkdtemp(scratch) || setenv("TMPDIR", scratch, 1) != 0 || setenv("CFLAGS", "-O0", 1) != 0)
        return -1;
    *state = lathe_context_new();
    return *state ? 0 : -1;
}

static int end(void **state)
{
    lathe_context_free(*state);
    return rmdir(scratch); /* fails when something is left */
}

static void expect_done(const lathe_context *x, int32_t outcome)
{
    const lathe_diagnostic *d = lathe_diagnostic_at(x, 0);
    if (outcome != LATHE_DONE)
        fail_msg("outcome %d: %s", outcome, d ? d->text : "(nothing)");
}

static void expect_error(const lathe_context *x, int32_t outcome, int32_t want, const char *code, const char *text)
{
    const lathe_diagnostic *d = NULL;
    for (uint32_t i = 0; (d = lathe_diagnostic_at(x, i)) && d->severity != LATHE_ERROR; i++)
        ;
    assert_int_equal(outcome, want);
    assert_non_null(d);
    assert_int_equal(d->size, sizeof *d);
    assert_string_equal(d->code, code);
    if (!strstr(d->text, text))
        fail_msg("'%s' is not in '%s'", text, d->text);
}

static lathe_model *read_text(lathe_context *x, const char *text)
{
    lathe_model *m;
    expect_done(x, lathe_read_bytes(x, text, strlen(text), "text", &m));
    return m;
}

static lathe_executable *compile_text(lathe_context *x, const char *text, const char *name, const char *value)
{
    lathe_model *m = read_text(x, text);
    lathe_settings *s;
    lathe_executable *e;
    expect_done(x, lathe_settings_new(x, "compile", &s));
    if (name)
        expect_done(x, lathe_set(x, s, name, value));
    expect_done(x, lathe_compile(x, m, s, &e));
    lathe_settings_free(s);
    lathe_model_free(m);
    return e;
}

static lathe_dltensor matrix(float *data, int64_t *shape, int64_t *strides)
{
    return (lathe_dltensor){
        .data = data, .device = {1, 0}, .ndim = 2, .dtype = {2, 32, 1}, .shape = shape, .strides = strides};
}

/* Runs e on one matrix; the result doubles it. */
static void run_doubles(lathe_context *x, lathe_executable *e, const lathe_dltensor *t)
{
    lathe_managed_tensor *out = NULL;
    expect_done(x, lathe_run(x, e, &t, 1, &out, 1));
    assert_non_null(out);
    const lathe_dltensor *y = &out->dl_tensor;
    assert_int_equal(y->ndim, 2);
    const float *got = y->data;
    const float *base = (const float *)(const void *)((const char *)t->data + t->byte_offset);
    for (int64_t i = 0; i < t->shape[0]; i++)
        for (int64_t k = 0; k < t->shape[1]; k++) {
            const int64_t at = t->strides ? i * t->strides[0] + k * t->strides[1] : i * t->shape[1] + k;
            assert_true(got[i * y->strides[0] + k * y->strides[1]] == 2 * base[at]);
        }
    assert_int_equal(y->shape[0], t->shape[0]);
    out->deleter(out);
}

/* A sum that an executable keeps from run to run. */
static float run_sum(lathe_context *x, lathe_executable *e, float number)
{
    float numbers[6] = {number, 0, 0, 0, 0, 0};
    int64_t shape[] = {2, 3};
    const lathe_dltensor t = matrix(numbers, shape, NULL), *in = &t;
    lathe_managed_tensor *out = NULL;
    expect_done(x, lathe_run(x, e, &in, 1, &out, 1));
    const float got = *(const float *)out->dl_tensor.data;
    out->deleter(out);
    return got;
}

static void test_state(void **state)
{
    static const char sums[] = "func @main(%x: f32[2, 3], %h: f32[2, 3]) {\n"
                               "  %s = add(%x, %h) : f32[2, 3]\n  %y = negative(%s) : f32[2, 3]\n"
                               "  return %y, %s state of %h from splat 10.0\n}\n";
    lathe_context *x = *state;
    static const char *const kinds[] = {"c", "module"};
    for (int i = 0; i < 2; i++) {
        lathe_executable *e = compile_text(x, sums, "emit", kinds[i]), *other;
        other = compile_text(x, sums, "emit", kinds[i]);
        expect_done(x, lathe_reset(x, e)); /* it has not run yet */
        assert_true(run_sum(x, e, 1) == -11 && run_sum(x, other, 5) == -15);
        assert_true(run_sum(x, e, 1) == -12 && run_sum(x, other, 5) == -20);
        expect_done(x, lathe_reset(x, e));
        assert_true(run_sum(x, e, 1) == -11 && run_sum(x, other, 5) == -25);
        lathe_executable_free(e);
        lathe_executable_free(other);
    }
    expect_error(x, lathe_reset(x, NULL), LATHE_BAD_USAGE, "usage", "no executable is given");
    assert_int_equal(count_left(), 0);
}

/* --- models --- */

static void test_model(void **state)
{
    lathe_context *x = *state;
    lathe_model *m = read_text(x, opens);
    const lathe_tensor_info *in = lathe_model_input(m, 0), *out = lathe_model_output(m, 0);
    assert_string_equal(in->name, "x");
    assert_int_equal(in->ndim, 2);
    assert_int_equal(in->shape[0], -1);
    assert_int_equal(in->most[0], 5);
    assert_string_equal(in->symbols[0], "n");
    assert_int_equal(in->shape[1], 2);
    assert_null(in->symbols[1]);
    assert_int_equal(in->dtype.code, 2);
    assert_int_equal(out->shape[1], 2);
    assert_null(lathe_model_input(m, 1));
    assert_null(lathe_model_output(m, 1));
    lathe_model_free(m);
    lathe_model_free(NULL);
}

static void test_bad_models(void **state)
{
    lathe_context *x = *state;
    lathe_model *m = (lathe_model *)(uintptr_t)1;
    expect_error(x, lathe_read(x, "/nonexistent/model.onnx", &m), LATHE_BAD_INPUT, "io", "");
    assert_null(m);
    expect_error(x, lathe_read_bytes(x, "nonsense", 8, NULL, &m), LATHE_BAD_INPUT, "format", "nonsense");
    expect_error(x, lathe_read_bytes(x, NULL, 0, NULL, &m), LATHE_BAD_INPUT, "format", "empty");
    expect_error(x, lathe_read_bytes(x, NULL, 8, NULL, &m), LATHE_BAD_USAGE, "usage", "bytes");
    assert_null(m);
    m = read_text(x, "func @main(%x: f32[2]) {\n  %y = add(%x, %z) : f32[2]\n  return %y\n}\n");
    lathe_executable *e;
    expect_error(x, lathe_compile(x, m, NULL, &e), LATHE_BAD_INPUT, "syntax", "z");
    assert_null(e);
    assert_string_equal(lathe_diagnostic_at(x, 0)->where, "text:2:16");
    lathe_model_free(m);
}

/* --- settings --- */

static void test_settings(void **state)
{
    lathe_context *x = *state;
    lathe_settings *s;
    lathe_executable *e;
    expect_error(x, lathe_settings_new(x, "fry", &s), LATHE_BAD_USAGE, "usage", "fry");
    assert_null(s);
    expect_done(x, lathe_settings_new(x, "compile", &s));
    expect_error(x, lathe_set(x, s, "targt", "native"), LATHE_BAD_USAGE, "usage", "targt");
    assert_non_null(strstr(lathe_diagnostic_at(x, 0)->hint, "--target"));
    expect_error(x, lathe_set(x, s, "output", "out"), LATHE_BAD_USAGE, "usage", "program alone");
    expect_error(x, lathe_set(x, s, "target", NULL), LATHE_BAD_USAGE, "usage", "needs a value");
    expect_error(x, lathe_set(x, s, "no-winograd", "yes"), LATHE_BAD_USAGE, "usage", "switch");
    expect_done(x, lathe_set(x, s, "no-winograd", NULL));
    expect_done(x, lathe_set(x, s, "target", "abacus"));
    lathe_model *m = read_text(x, doubles);
    expect_error(x, lathe_compile(x, m, s, &e), LATHE_BAD_USAGE, "usage", "abacus");
    lathe_settings_free(s);
    expect_done(x, lathe_settings_new(x, "run", &s));
    expect_error(x, lathe_compile(x, m, s, &e), LATHE_BAD_USAGE, "usage", "were made for 'run'");
    lathe_settings_free(s);
    lathe_settings_free(NULL);
    lathe_model_free(m);
}

/* --- runs --- */

static void test_run(void **state)
{
    lathe_context *x = *state;
    float numbers[40] = {0};
    int64_t shape[] = {2, 3}, turned[] = {1, 2}, wide[] = {12, 2}, back[] = {-3, -1}, same[] = {0, 1};
    for (int i = 0; i < 40; i++)
        numbers[i] = (float)i - 7.5f;
    lathe_executable *e = compile_text(x, doubles, "workers", "2");
    assert_string_equal(lathe_executable_kind(e), "package");
    assert_non_null(strstr(lathe_report(e), "\"operators\""));
    assert_string_equal(lathe_executable_output(e, 0)->name, "y");
    const lathe_dltensor ways[] = {matrix(numbers, shape, NULL), matrix(numbers, shape, turned),
                                   matrix(numbers, shape, wide), matrix(numbers + 10, shape, back),
                                   matrix(numbers, shape, same)};
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++)
        run_doubles(x, e, &ways[i]);
    lathe_dltensor later = ways[0];
    later.byte_offset = 4 * sizeof(float);
    run_doubles(x, e, &later);
    lathe_executable_free(e);
    assert_int_equal(count_left(), 0);
}

static void test_open_extents(void **state)
{
    lathe_context *x = *state;
    static float numbers[2000];
    lathe_executable *package = compile_text(x, opens, NULL, NULL), *module = compile_text(x, opens, "emit", "module");
    for (int i = 0; i < 20; i++)
        numbers[i] = (float)i;
    for (int64_t n = 0; n <= 5; n++) {
        int64_t shape[] = {n, 2};
        const lathe_dltensor t = matrix(numbers, shape, NULL);
        run_doubles(x, package, &t);
        run_doubles(x, module, &t);
    }
    int64_t shape[] = {6, 2};
    const lathe_dltensor t = matrix(numbers, shape, NULL), *one = &t;
    lathe_managed_tensor *out;
    expect_error(x, lathe_run(x, package, &one, 1, &out, 1), LATHE_BAD_INPUT, "data", "at most 5");
    assert_null(out);
    lathe_executable_free(package);
    lathe_executable_free(module);
    assert_int_equal(count_left(), 0);
}

static void test_bad_runs(void **state)
{
    lathe_context *x = *state;
    float numbers[6] = {0};
    int64_t shape[] = {2, 3}, other[] = {3, 2};
    lathe_executable *e = compile_text(x, doubles, NULL, NULL);
    const lathe_dltensor good = matrix(numbers, shape, NULL), wrong = matrix(numbers, other, NULL);
    lathe_dltensor integers = good, away = good;
    integers.dtype = (lathe_dtype){0, 32, 1};
    away.device.type = 2;
    const lathe_dltensor *list[] = {&good, &good};
    lathe_managed_tensor *out[2];
    expect_error(x, lathe_run(x, e, list, 2, out, 1), LATHE_BAD_USAGE, "usage", "takes 1 inputs");
    expect_error(x, lathe_run(x, e, list, 1, out, 2), LATHE_BAD_USAGE, "usage", "gives 1 outputs");
    list[0] = &wrong;
    expect_error(x, lathe_run(x, e, list, 1, out, 1), LATHE_BAD_INPUT, "data",
                 "'x' has the shape [3, 2], and has to have [2, 3]");
    list[0] = &integers;
    expect_error(x, lathe_run(x, e, list, 1, out, 1), LATHE_BAD_INPUT, "data", "'x' is int32, and has to be float32");
    list[0] = &away;
    expect_error(x, lathe_run(x, e, list, 1, out, 1), LATHE_BAD_INPUT, "data", "device 2");
    away = good;
    away.data = NULL;
    expect_error(x, lathe_run(x, e, list, 1, out, 1), LATHE_BAD_INPUT, "data", "'x' has no data");
    away = good;
    away.shape = NULL;
    expect_error(x, lathe_run(x, e, list, 1, out, 1), LATHE_BAD_INPUT, "data", "'x' has the shape ?");
    list[0] = NULL;
    expect_error(x, lathe_run(x, e, list, 1, out, 1), LATHE_BAD_USAGE, "usage", "'x' is not given");
    expect_error(x, lathe_run(x, e, NULL, 1, out, 1), LATHE_BAD_USAGE, "usage", "no list of inputs is given");
    expect_error(x, lathe_run(x, e, list, 1, NULL, 1), LATHE_BAD_USAGE, "usage", "no list of outputs is given");
    run_doubles(x, e, &good);
    lathe_executable_free(e);
    setenv("CC", "/nonexistent/cc", 1);
    e = compile_text(x, doubles, NULL, NULL);
    expect_error(x, lathe_build(x, e), LATHE_BAD_ENVIRONMENT, "environment", "/nonexistent/cc");
    unsetenv("CC");
    run_doubles(x, e, &good);
    lathe_executable_free(e);
    e = compile_text(x, doubles, "target", "rv64gcv");
    expect_error(x, lathe_build(x, e), LATHE_BAD_ENVIRONMENT, "environment", "rv64gcv");
    lathe_executable_free(e);
    e = compile_text(x, doubles, "target", "cortex-m4");
    expect_error(x, lathe_build(x, e), LATHE_BAD_USAGE, "usage", "another system (port baremetal)");
    lathe_executable_free(e);
    assert_int_equal(count_left(), 0);
}

static void test_save_and_load(void **state)
{
    lathe_context *x = *state;
    float numbers[6] = {1, 2, 3, 4, 5, 6};
    int64_t shape[] = {2, 3};
    const lathe_dltensor t = matrix(numbers, shape, NULL);
    char place[300], command[400];
    static const char *const kinds[] = {"c", "module"};
    for (int i = 0; i < 2; i++) {
        lathe_executable *e = compile_text(x, doubles, "emit", kinds[i]), *loaded;
        (void)snprintf(place, sizeof place, "%s/%s", scratch, kinds[i]);
        expect_done(x, lathe_save(x, e, place));
        lathe_executable_free(e);
        expect_done(x, lathe_load(x, place, NULL, &loaded));
        assert_string_equal(lathe_executable_kind(loaded), i ? "module" : "package");
        assert_string_equal(lathe_executable_input(loaded, 0)->name, "x");
        run_doubles(x, loaded, &t);
        lathe_executable_free(loaded);
        (void)snprintf(command, sizeof command, "rm -r '%s'", place);
        assert_int_equal(system(command), 0);
    }
    lathe_executable *none;
    lathe_settings *s;
    lathe_model *m;
    const char *json;
    expect_done(x, lathe_settings_new(x, "compile", &s));
    expect_error(x, lathe_save(x, NULL, scratch), LATHE_BAD_USAGE, "usage", "no executable is given");
    expect_error(x, lathe_build(x, NULL), LATHE_BAD_USAGE, "usage", "no executable is given");
    expect_error(x, lathe_run(x, NULL, NULL, 0, NULL, 0), LATHE_BAD_USAGE, "usage", "no executable is given");
    expect_error(x, lathe_compile(x, NULL, NULL, &none), LATHE_BAD_USAGE, "usage", "no model is given");
    expect_error(x, lathe_inspect(x, NULL, NULL, &json), LATHE_BAD_USAGE, "usage", "no model is given");
    expect_error(x, lathe_set(x, NULL, "target", "native"), LATHE_BAD_USAGE, "usage", "no settings object is given");
    expect_error(x, lathe_set(x, s, NULL, "native"), LATHE_BAD_USAGE, "usage", "no option is given");
    lathe_settings_free(s);
    expect_error(x, lathe_settings_new(x, NULL, &s), LATHE_BAD_USAGE, "usage", "no verb is given");
    expect_error(x, lathe_read(x, NULL, &m), LATHE_BAD_USAGE, "usage", "no path is given");
    expect_error(x, lathe_load(x, NULL, NULL, &none), LATHE_BAD_USAGE, "usage", "no path is given");
    assert_int_equal(lathe_read(NULL, "/nonexistent", &m), LATHE_BAD_USAGE);
    assert_null(m);
    assert_int_equal(lathe_verify(NULL, m, NULL, &json), LATHE_BAD_USAGE);
    assert_null(lathe_diagnostic_at(NULL, 0));
    assert_null(lathe_model_input(NULL, 0));
    assert_null(lathe_executable_output(NULL, 0));
    assert_string_equal(lathe_report(NULL), "");
    expect_error(x, lathe_load(x, "/nonexistent", NULL, &none), LATHE_BAD_INPUT, "io", "/nonexistent");
    expect_error(x, lathe_load(x, "/etc/passwd", NULL, &none), LATHE_BAD_INPUT, "format", "/etc/passwd");
    expect_error(x, lathe_load(x, scratch, NULL, &none), LATHE_BAD_INPUT, "format", "folder");
    assert_int_equal(count_left(), 0);
}

/* --- what a compile decided, and what its operators take --- */

static void test_profile(void **state)
{
    lathe_context *x = *state;
    float data[6] = {1, 2, 3, 4, 5, 6};
    int64_t shape[2] = {3, 2}, wrong[2] = {2, 3};
    const lathe_dltensor t = matrix(data, shape, NULL), bad = matrix(data, wrong, NULL);
    const lathe_dltensor *inputs[] = {&t}, *bads[] = {&bad};
    const char *json;
    lathe_executable *e = compile_text(x, opens, NULL, NULL);
    expect_done(x, lathe_profile(x, e, NULL, 0, 1, &json));
    assert_non_null(strstr(json, "\"kernel\": \"fused_add\""));
    expect_done(x, lathe_profile(x, e, inputs, 1, 1, &json));
    assert_non_null(strstr(json, "\"rounds\": 1"));
    expect_error(x, lathe_profile(x, e, bads, 1, 1, &json), LATHE_BAD_INPUT, "data", "shape");
    assert_null(json);
    expect_error(x, lathe_profile(x, e, bads, 2, 1, &json), LATHE_BAD_USAGE, "usage", "takes 1 inputs, and 2");
    expect_error(x, lathe_profile(x, e, NULL, 1, 1, &json), LATHE_BAD_USAGE, "usage", "no list of inputs is given");
    expect_error(x, lathe_profile(x, NULL, NULL, 0, 1, &json), LATHE_BAD_USAGE, "usage", "no executable is given");
    lathe_executable_free(e);
    e = compile_text(x, opens, "emit", "module");
    expect_error(x, lathe_profile(x, e, NULL, 0, 1, &json), LATHE_BAD_USAGE, "usage", "a module cannot measure");
    lathe_executable_free(e);
    assert_int_equal(count_left(), 0);
}

static void test_schedule(void **state)
{
    lathe_context *x = *state;
    const char *text;
    lathe_model *m = read_text(x, doubles);
    lathe_settings *s;
    expect_done(x, lathe_settings_new(x, "compile", &s));
    expect_done(x, lathe_set(x, s, "target", "cortex-m4"));
    expect_done(x, lathe_schedule(x, m, s, "fused_add", &text));
    assert_non_null(strstr(text, "--- schedule for cortex-m4"));
    expect_done(x, lathe_schedule(x, m, NULL, NULL, &text));
    assert_non_null(strstr(text, "// fused_add"));
    expect_error(x, lathe_schedule(x, m, s, "fused_ad", &text), LATHE_BAD_USAGE, "usage", "no kernel, and no node");
    assert_null(text);
    expect_error(x, lathe_schedule(x, NULL, s, NULL, &text), LATHE_BAD_USAGE, "usage", "no model is given");
    lathe_settings_free(s);
    lathe_model_free(m);
}

/* --- callbacks --- */

typedef struct watcher {
    char stages[2000];
    const char *last; /* the stage in which it is enough; NULL: none */
    int calls, told;
    int enough; /* calls after which it is; 0: never */
} watcher;

static int watch(void *user, const char *stage, double share)
{
    watcher *w = user;
    assert_true(share < 0 || (share >= 0 && share <= 1));
    w->calls++;
    if (*stage && strlen(w->stages) + strlen(stage) + 2 < sizeof w->stages) {
        strcat(w->stages, stage);
        strcat(w->stages, ";");
    }
    if (w->enough > 0 && --w->enough == 0)
        return 1;
    return w->last && strstr(w->stages, w->last) != NULL;
}

static void tell(void *user, const lathe_diagnostic *d)
{
    watcher *w = user;
    assert_non_null(d->text);
    w->told++;
}

/* One that does not end by itself, nor does what it started. */
static void write_slow_compiler(char *path, size_t size)
{
    (void)snprintf(path, size, "%s/slow", scratch);
    FILE *f = fopen(path, "w");
    fprintf(f, "#!/bin/sh\n[ \"$1\" = -v ] && echo Target: x86_64 && exit 0\n"
               "sleep 1000 & echo $! > %s/pid; wait\n", scratch);
    fclose(f);
    chmod(path, 0700);
}

static void remove_slow_compiler(char *path, size_t size)
{
    int pid = 0;
    unlink(path);
    (void)snprintf(path, size, "%s/pid", scratch);
    FILE *f = fopen(path, "r");
    if (!f)
        return;
    assert_int_equal(fscanf(f, "%d", &pid), 1);
    fclose(f);
    unlink(path);
    const struct timespec moment = {.tv_nsec = 10000000};
    for (int i = 0; i < 1000 && kill(pid, 0) == 0; i++)
        (void)nanosleep(&moment, NULL);
    assert_int_not_equal(kill(pid, 0), 0);
}

static void test_progress(void **state)
{
    lathe_context *x = *state;
    watcher w = {"", NULL, 0, 0, 0};
    char slow[300];
    lathe_on_progress(x, watch, &w);
    lathe_on_diagnostic(x, tell, &w);
    lathe_executable *e = compile_text(x, doubles, NULL, NULL);
    assert_non_null(strstr(w.stages, "reading;"));
    assert_non_null(strstr(w.stages, "planning;"));
    assert_int_equal(w.told, 0);
    /* a compiler that never ends is ended, and so is what it started */
    write_slow_compiler(slow, sizeof slow);
    setenv("CC", slow, 1);
    w.last = "building";
    w.stages[0] = '\0';
    expect_error(x, lathe_build(x, e), LATHE_CANCELLED, "cancelled", "cancelled");
    assert_int_equal(w.told, 1);
    unsetenv("CC");
    remove_slow_compiler(slow, sizeof slow);
    assert_int_equal(count_left(), 0);
    w.last = NULL;
    expect_done(x, lathe_build(x, e));
    lathe_executable_free(e);
    /* the compilers of a module, which run at the first call */
    float numbers[6] = {0};
    int64_t shape[] = {2, 3};
    const lathe_dltensor t = matrix(numbers, shape, NULL), *one = &t;
    lathe_managed_tensor *out;
    w.last = NULL;
    e = compile_text(x, doubles, "emit", "module");
    write_slow_compiler(slow, sizeof slow);
    setenv("XDG_CACHE_HOME", scratch, 1);
    setenv("CC", slow, 1);
    w.enough = 50;
    expect_error(x, lathe_run(x, e, &one, 1, &out, 1), LATHE_CANCELLED, "cancelled", "cancelled");
    unsetenv("CC");
    unsetenv("XDG_CACHE_HOME");
    w.enough = 0;
    lathe_executable_free(e);
    remove_slow_compiler(slow, sizeof slow);
    (void)snprintf(slow, sizeof slow, "rm -rf '%s/lathe'", scratch);
    assert_int_equal(system(slow), 0);
    assert_int_equal(count_left(), 0);
    /* in every stage of a compile */
    lathe_model *m = read_text(x, doubles);
    static const char *const stages[] = {"reading", "pass ", "kernels", "planning", "writing C"};
    for (size_t i = 0; i < sizeof stages / sizeof *stages; i++) {
        w.last = stages[i];
        w.stages[0] = '\0';
        expect_error(x, lathe_compile(x, m, NULL, &e), LATHE_CANCELLED, "cancelled", "cancelled");
        assert_null(e);
    }
    lathe_model_free(m);
    lathe_on_progress(x, NULL, NULL);
    lathe_on_diagnostic(x, NULL, NULL);
}

/* --- how often rows are planned --- */

static int count_plans(void *user, const char *stage, double share)
{
    int *plans = user;
    (void)share;
    *plans += strcmp(stage, "streaming") == 0;
    return 0;
}

/* Blocks that widen their channels, and one value that lives to the end: the planner needs a few bytes more than the
 * best cut is thought to. */
static const char blocks[] =
    "func @main(%x: f32[1, 4, 17, 11]) {\n"
    "  %a = constant f32[24, 4, 1, 1] splat 0.1\n  %b = constant f32[24, 1, 3, 3] splat 0.1\n"
    "  %c = constant f32[4, 24, 1, 1] splat 0.1\n"
    "  %a0 = nn.conv2d(%x, %a)\n  %b0 = nn.conv2d(%a0, %b) {pads = [1, 1, 1, 1], groups = 24}\n"
    "  %c0 = nn.conv2d(%b0, %c)\n  %r0 = add(%c0, %x)\n"
    "  %a1 = nn.conv2d(%r0, %a)\n  %b1 = nn.conv2d(%a1, %b) {pads = [1, 1, 1, 1], groups = 24}\n"
    "  %c1 = nn.conv2d(%b1, %c)\n  %r1 = add(%c1, %r0)\n"
    "  %a2 = nn.conv2d(%r1, %a)\n  %b2 = nn.conv2d(%a2, %b) {pads = [1, 1, 1, 1], groups = 24}\n"
    "  %c2 = nn.conv2d(%b2, %c)\n  %r2 = add(%c2, %r1)\n"
    "  %y = add(%r2, %r1)\n  return %y\n}\n";

/* The cuts that are planned for a budget; *least: what an error says is the least. */
static int plans_for(lathe_context *x, unsigned long ram, unsigned long *least)
{
    int plans = 0;
    char text[32];
    lathe_model *m = read_text(x, blocks);
    lathe_settings *s;
    lathe_executable *e;
    (void)snprintf(text, sizeof text, "%lu", ram);
    expect_done(x, lathe_settings_new(x, "compile", &s));
    expect_done(x, lathe_set(x, s, "target", "cortex-m4"));
    expect_done(x, lathe_set(x, s, "ram", text));
    lathe_on_progress(x, count_plans, &plans);
    if (lathe_compile(x, m, s, &e) == LATHE_DONE)
        lathe_executable_free(e);
    else
        assert_int_equal(sscanf(lathe_diagnostic_at(x, 0)->text,
                                "--ram %*u: the smallest plan that was found needs %lu bytes", least), 1);
    lathe_on_progress(x, NULL, NULL);
    lathe_settings_free(s);
    lathe_model_free(m);
    return plans;
}

/* A budget that cannot be met is refused with as few plans as the search for the least takes: limits that lead to the
 * same chains need no plan again. */
static void test_plans_for_a_budget(void **state)
{
    enum { MOST = 6 };
    unsigned long least = 0, again = 0;
    const int little = plans_for(*state, 100, &least), below = plans_for(*state, least - 1, &again);
    if (little > MOST || below > MOST || again != least)
        fail_msg("%d plans for 100 bytes, %d for one below %lu", little, below, least);
    again = 0;
    (void)plans_for(*state, least, &again);
    assert_int_equal(again, 0);
}

/* A function of a context that uses what the call that it belongs to works on. */
typedef struct meddler {
    lathe_context *own, *other;
    lathe_executable *executable;
    int refused, wrong;
} meddler;

static int meddle(void *user, const char *stage, double share)
{
    meddler *m = user;
    lathe_model *model = NULL;
    lathe_managed_tensor *out = NULL;
    (void)stage;
    (void)share;
    if (lathe_read(m->own, "/nonexistent", &model) == LATHE_BAD_USAGE && !model)
        m->refused++;
    else
        m->wrong++;
    if (!m->executable)
        return 0;
    const int32_t outcome = lathe_run(m->other, m->executable, NULL, 0, &out, 1);
    const lathe_diagnostic *d = lathe_diagnostic_at(m->other, 0);
    if (outcome == LATHE_BAD_USAGE && d && strstr(d->text, "the executable is in use by the call"))
        m->refused++;
    else
        m->wrong++;
    return 0;
}

static void meddle_when_told(void *user, const lathe_diagnostic *d)
{
    (void)d;
    (void)meddle(user, "", 0);
}

static void test_calls_of_callbacks(void **state)
{
    lathe_context *x = *state;
    lathe_executable *e = compile_text(x, doubles, NULL, NULL);
    meddler m = {x, lathe_context_new(), e, 0, 0};
    lathe_on_progress(x, meddle, &m);
    lathe_on_diagnostic(x, meddle_when_told, &m);
    expect_done(x, lathe_build(x, e));
    assert_true(m.refused > 0);
    m.refused = 0;
    expect_error(x, lathe_run(x, e, NULL, 0, NULL, 0), LATHE_BAD_USAGE, "usage", "takes 1 inputs");
    assert_int_equal(m.refused, 2);
    m.executable = NULL;
    lathe_model *model = read_text(x, doubles);
    assert_true(m.refused > 2);
    assert_int_equal(m.wrong, 0);
    lathe_on_progress(x, NULL, NULL);
    lathe_on_diagnostic(x, NULL, NULL);
    lathe_context_free(m.other);
    lathe_model_free(model);
    lathe_executable_free(e);
}

/* --- side by side --- */

typedef struct worker {
    pthread_t thread;
    const lathe_model *model;
    lathe_executable *shared;
    const char *emit;
} worker;

static void *work(void *arg)
{
    const worker *w = arg;
    float numbers[6] = {6, 5, 4, 3, 2, 1};
    int64_t shape[] = {2, 3};
    const lathe_dltensor t = matrix(numbers, shape, NULL);
    lathe_context *x = lathe_context_new();
    lathe_settings *s;
    lathe_executable *e;
    for (int i = 0; i < 2; i++) {
        expect_done(x, lathe_settings_new(x, "compile", &s));
        expect_done(x, lathe_set(x, s, "emit", w->emit));
        expect_done(x, lathe_set(x, s, "target", "generic"));
        expect_done(x, lathe_compile(x, w->model, s, &e));
        run_doubles(x, e, &t);
        run_doubles(x, w->shared, &t);
        lathe_executable_free(e);
        lathe_settings_free(s);
    }
    lathe_context_free(x);
    return NULL;
}

static void test_threads(void **state)
{
    lathe_context *x = *state;
    lathe_model *m = read_text(x, doubles);
    lathe_executable *shared = compile_text(x, doubles, NULL, NULL);
    worker list[3];
    for (int i = 0; i < 3; i++) {
        list[i] = (worker){.model = m, .shared = shared, .emit = i == 0 ? "module" : "c"};
        assert_int_equal(pthread_create(&list[i].thread, NULL, work, &list[i]), 0);
    }
    for (int i = 0; i < 3; i++)
        pthread_join(list[i].thread, NULL);
    lathe_executable_free(shared);
    lathe_model_free(m);
    assert_int_equal(count_left(), 0);
}

/* --- without memory: every block that an arena asks for is refused once --- */

static long allowed = -1; /* blocks that are still given; below 0: all */

void *__real_aligned_alloc(size_t align, size_t size);
void *__wrap_aligned_alloc(size_t align, size_t size);
void *__wrap_aligned_alloc(size_t align, size_t size)
{
    if (allowed == 0)
        return NULL;
    if (allowed > 0) /* threads only read it */
        allowed--;
    return __real_aligned_alloc(align, size);
}

typedef int32_t (*attempt)(lathe_context *x, void *arg);

/* Until nothing is lacking any more. */
static void refuse_each(lathe_context *x, attempt try, void *arg)
{
    int32_t outcome = LATHE_BAD_ENVIRONMENT;
    for (long n = 0; outcome != LATHE_DONE; n++) {
        allowed = n;
        outcome = try(x, arg);
        const bool lacked = allowed == 0;
        allowed = -1;
        if (outcome != LATHE_DONE)
            expect_error(x, outcome, LATHE_BAD_ENVIRONMENT, "environment", "memory");
        assert_true(lacked || outcome == LATHE_DONE);
        assert_int_equal(count_left(), 0);
    }
}

static int32_t try_read(lathe_context *x, void *arg)
{
    lathe_model *m;
    const int32_t outcome = lathe_read_bytes(x, arg, strlen(arg), "text", &m);
    lathe_model_free(m);
    return outcome;
}

static int32_t try_compile(lathe_context *x, void *arg)
{
    lathe_executable *e;
    const int32_t outcome = lathe_compile(x, arg, NULL, &e);
    lathe_executable_free(e);
    return outcome;
}

static int32_t try_run(lathe_context *x, void *arg)
{
    float numbers[6] = {0};
    int64_t shape[] = {2, 3};
    const lathe_dltensor t = matrix(numbers, shape, NULL), *one = &t;
    lathe_managed_tensor *out;
    const int32_t outcome = lathe_run(x, arg, &one, 1, &out, 1);
    if (out)
        out->deleter(out);
    return outcome;
}

static void test_memory(void **state)
{
    lathe_context *x = *state;
    refuse_each(x, try_read, (void *)(uintptr_t)doubles);
    lathe_model *m = read_text(x, doubles);
    refuse_each(x, try_compile, m);
    lathe_model_free(m);
    lathe_executable *e = compile_text(x, doubles, NULL, NULL);
    expect_done(x, lathe_build(x, e));
    refuse_each(x, try_run, e);
    lathe_executable_free(e);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_model),    cmocka_unit_test(test_bad_models),    cmocka_unit_test(test_settings),
        cmocka_unit_test(test_run),      cmocka_unit_test(test_open_extents),  cmocka_unit_test(test_bad_runs),
        cmocka_unit_test(test_state),
        cmocka_unit_test(test_save_and_load), cmocka_unit_test(test_progress), cmocka_unit_test(test_threads),
        cmocka_unit_test(test_plans_for_a_budget),
        cmocka_unit_test(test_calls_of_callbacks), cmocka_unit_test(test_memory),
        cmocka_unit_test(test_profile),  cmocka_unit_test(test_schedule)};
    return cmocka_run_group_tests(tests, begin, end);
}
