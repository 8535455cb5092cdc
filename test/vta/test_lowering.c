/* test_lowering.c: what the compiler's VTA passes make is run on the simulator through the run-time, and captured and
 * replayed on another one, and compared with the same computation without a schedule, interpreted. Every case of
 * test/golden/vta that starts from a computation is one, if it is small enough.
 * SPDX-License-Identifier: Apache-2.0 */
#include <dirent.h>

#include "driver/vta/vta_computation.h"
#include "lowered.h"
#include "runtime_test.h"
#include "te/text.h"
#include "tir/interpret.h"
#include "tir/pass.h"
#include "tir/text.h"
#include "target/vta/vta_text.h"

#define MOST_ELEMENTS 3000000 /* of all parameters together */

static size_t elements(const tir_func *f)
{
    size_t n = 0;
    for (uint32_t i = 0; i < f->n_params; i++)
        n += (size_t)tir_buffer_count(f->params[i]);
    return n;
}

static void same(const char *name, const char *how, const tir_func *f, void *const *want, void *const *got)
{
    for (uint32_t i = f->n_inputs; i < f->n_params; i++)
        if (memcmp(want[i], got[i], vta_code_bytes(f->params[i])) != 0)
            fail_msg("%s, %s: '%s' differs from the computation without a schedule", name, how, f->params[i]->name);
}

/* The stream as constant data, on a device that knows no run-time. False: the host computes, too, and it is refused. */
static bool replay(compiler *c, const char *name, const tir_func *f, void *const *params)
{
    const vta_sim_options so = {.seed = 3};
    vta_code_captured k;
    vta_error e = {VTA_OK, ""};
    vta_sim *sim;
    vta_memory scratch, buffers[16], bindings[16];
    if (!vta_code_capture(c, f, &k)) {
        const char *text = diags_print(&c->diags, &c->mem);
        if (!strstr(text, "the host computes something itself"))
            fail_msg("%s: %s", name, text);
        return false;
    }
    assert_int_equal(vta_sim_create(&k.capture.config, &so, &sim, &e), VTA_OK);
    vta_device d = vta_sim_device(sim);
    assert_int_equal(d.driver->alloc(d.self, vta_replay_bytes(&k.capture), true, &scratch, &e), VTA_OK);
    assert_true(k.n_buffers <= 16 && k.capture.n_bindings <= k.n_buffers);
    for (uint32_t i = 0; i < k.n_buffers; i++) {
        const size_t bytes = vta_code_bytes(k.buffers[i]);
        assert_int_equal(d.driver->alloc(d.self, bytes, true, &buffers[i], &e), VTA_OK);
        if (i < f->n_params)
            memcpy(buffers[i].host, params[i], bytes);
    }
    for (uint32_t i = 0; i < k.capture.n_bindings; i++)
        bindings[i] = buffers[k.binding[i]];
    for (int round = 0; round < 2; round++) /* it leaves nothing behind */
        if (vta_replay(&d, &k.capture, &scratch, bindings, UINT32_MAX, &e) != VTA_OK)
            fail_msg("%s: %s", name, e.text);
    for (uint32_t i = f->n_inputs; i < f->n_params; i++)
        memcpy(params[i], buffers[i].host, vta_code_bytes(f->params[i]));
    vta_device_destroy(&d);
    return true;
}

static int replayed;

static bool check(const char *name, const char *config, const char *text, const char *schedule)
{
    const computation t = {.file = name, .schedule_file = "schedule", .text = {(const uint8_t *)text, strlen(text)},
                           .schedule = {(const uint8_t *)schedule, strlen(schedule)}};
    compiler c;
    tir_func *plain = NULL;
    int32_t status = 0;
    compiler_init(&c);
    tir_func *lowered = NULL;
    bool ok = (!config || vta_text_set(&c, config)) &&
              computation_lower(&c, &t, true, "main", &plain) && vta_computation_lower(&c, &t, "main", &lowered);
    if (!ok)
        fail_msg("%s: %s", name, diags_print(&c.diags, &c.mem));
    bool small = elements(plain) <= MOST_ELEMENTS;
    if (small) {
        void **want = lowered_params(&c, plain), **got = lowered_params(&c, lowered);
        assert_true(tir_interpret(&c, plain, want, &status));
        lowered_run(&c, lowered, got, NULL);
        same(name, "executed", plain, want, got);
        void **again = lowered_params(&c, lowered);
        if (replay(&c, name, lowered, again)) {
            same(name, "replayed", plain, want, again);
            replayed++;
        }
    }
    compiler_free(&c);
    return small;
}

/* --- cases --- */

static char *read_text(const char *path)
{
    FILE *f = fopen(path, "rb");
    assert_non_null(f);
    char *text = calloc(1, 65536);
    assert_non_null(text);
    assert_true(fread(text, 1, 65535, f) < 65535);
    fclose(f);
    return text;
}

/* The word behind the option in the case's first line, cut out of `line`. */
static char *option(char *line, const char *name)
{
    char *at = strstr(line, name);
    if (!at)
        return NULL;
    at += strlen(name);
    at[strcspn(at, " \n")] = 0;
    return at;
}

static void goldens_give_their_numbers(void **state)
{
    DIR *dir = opendir("test/golden/vta");
    struct dirent *d;
    int checked = 0;
    (void)state;
    assert_non_null(dir);
    while ((d = readdir(dir))) {
        char path[512], first[256];
        snprintf(path, sizeof path, "test/golden/vta/%s", d->d_name);
        if (!strstr(d->d_name, ".case"))
            continue;
        char *text = read_text(path), *mark = strstr(text, "--- schedule\n"), *end = strstr(text, "\n---\n");
        if (mark && end && strstr(text, "--lower vta") && !strstr(text, "# exit: 1")) {
            snprintf(first, sizeof first, "%.*s", (int)strcspn(text, "\n"), text);
            char *body = text;
            while (*body == '#')
                body = strchr(body, '\n') + 1;
            *mark = end[1] = 0;
            checked += check(d->d_name, option(first, "--vta-config "), body, mark + strlen("--- schedule\n"));
        }
        free(text);
    }
    closedir(dir);
    assert_true(checked >= 10);
    assert_true(replayed >= 9 && replayed < checked); /* one has work for the host */
}

/* The compiler's memory does not grow with the rounds of a loop. */
static void captures_in_little_memory(void **state)
{
    static const char text[] =
        "primfn(A: handle, C: handle) -> ()\n"
        "  attr = {\"global_symbol\": \"main\", \"inputs\": 1}\n"
        "  buffers = {A: Buffer(int8, [16]),\n             C: Buffer(int8, [16])} {\n"
        "  for (i: int64, 0, 1000000) {\n"
        "    if ((i < 1)) {\n"
        "      @tir.call_extern(\"VTALoadBuffer2D\", @tir.vta.command_handle(dtype=handle), &A, i, 1, 1, 1, 0, 0, 0, "
        "0, 0, 2)\n"
        "    }\n  }\n"
        "  @tir.vta.coproc_sync()\n}\n";
    compiler c;
    tir_module *m = NULL;
    vta_code_captured k;
    (void)state;
    compiler_init(&c);
    assert_true(vta_text_set(&c, "sim"));
    if (!tir_parse(&c, "text", text, sizeof text - 1, &m))
        fail_msg("%s", diags_print(&c.diags, &c.mem));
    const size_t before = c.mem.bytes;
    assert_true(vta_code_capture(&c, m->funcs.data[0], &k));
    assert_int_equal(k.capture.n_bindings, 1);
    assert_true(c.mem.bytes - before < 1 << 20);
    compiler_free(&c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(goldens_give_their_numbers),
                                       cmocka_unit_test(captures_in_little_memory)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
