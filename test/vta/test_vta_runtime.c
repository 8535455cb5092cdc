/* test_vta_runtime.c: the published entry points: default device and VTA_CONFIG, errors and their handler, foreign
 * pointers, the current context of a thread; the device table; threads.
 * SPDX-License-Identifier: Apache-2.0 */
#include "runtime_test.h"

#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#include "vta_runtime.h"

/* What the handler was told. */
typedef struct told {
    int count;
    vta_error last;
} told;

static void keep(const vta_error *e, void *user)
{
    told *t = (told *)user;
    t->count++;
    t->last = *e;
}

static void expect_told(told *t, int count, vta_status status, const char *part)
{
    if (t->count != count || t->last.status != status || !strstr(t->last.text, part))
        fail_msg("%d times, last '%s' (%s); wanted %d, '%s'", t->count, t->last.text, vta_status_text(t->last.status),
                 count, part);
}

/* --- the default device ------------------------------------------------------------------------------------------- */

static int record_add(void *closure)
{
    int32_t imm;
    memcpy(&imm, closure, sizeof imm);
    VTAUopLoopBegin(4, 1, 1, 0);
    VTAUopPush(1, 0, 0, 0, 0, VTA_ALU_ADD, 1, imm);
    VTAUopLoopEnd();
    return 0;
}

/* Four tiles of ones plus imm, through every function that a compiled program calls. */
static void add_on_default(int32_t imm, uint32_t lanes)
{
    static void *slot;
    int32_t in[4 * 64];
    int8_t out[4 * 64];
    for (uint32_t i = 0; i < 4 * lanes; i++)
        in[i] = (int32_t)i % 50;
    VTACommandHandle cmd = VTATLSCommandHandle();
    assert_non_null(cmd);
    void *a = VTABufferAlloc(4 * lanes * 4), *b = VTABufferAlloc(4 * lanes * 4), *c = VTABufferAlloc(4 * lanes);
    VTABufferCopy(in, 0, a, 0, 4 * lanes * 4, 1);
    VTABufferCopy(a, 0, b, 0, 4 * lanes * 4, 3);
    VTAReadBarrier(cmd, b, 32, 0, 4 * lanes);
    VTALoadBuffer2D(cmd, b, 0, 4, 1, 4, 0, 0, 0, 0, 0, VTA_MEM_ACC);
    assert_int_equal(VTAPushALUOp(&slot, record_add, &imm, sizeof imm), 0);
    assert_int_equal(VTADepPush(cmd, 2, 3), 0);
    assert_int_equal(VTADepPop(cmd, 2, 3), 0);
    VTAStoreBuffer2D(cmd, 0, VTA_MEM_OUT, c, 0, 4, 1, 4);
    VTASynchronize(cmd, 1u << 31);
    VTAWriteBarrier(cmd, c, 8, 0, 4 * lanes);
    VTABufferCopy(c, 0, out, 0, 4 * lanes, 2);
    assert_memory_equal(VTABufferCPUPtr(cmd, c), out, 4 * lanes);
    for (uint32_t i = 0; i < 4 * lanes; i++)
        assert_int_equal(out[i], (int8_t)(in[i] + imm));
    VTABufferFree(a);
    VTABufferFree(b);
    VTABufferFree(c);
}

static void makes_the_default_device(void **state)
{
    (void)state;
    unsetenv("VTA_CONFIG");
    add_on_default(3, 16);
    VTACommandHandle first = VTATLSCommandHandle();
    assert_ptr_equal(VTATLSCommandHandle(), first);
    assert_int_equal(vta_context_device((vta_context *)first)->geometry.batch, 1);
    VTARuntimeShutdown();
    VTARuntimeShutdown();
    add_on_default(-3, 16); /* the slot is known from before; the kernel is recorded anew */
    VTARuntimeShutdown();
}

static void reads_its_configuration(void **state)
{
    char path[] = "/tmp/vta_config_XXXXXX";
    static const char json[] = "{\"TARGET\": \"sim\", \"LOG_BATCH\": 2}";
    (void)state;
    setenv("VTA_CONFIG", "2x16_i8w8a32_15_15_18_17", 1);
    add_on_default(1, 32);
    VTARuntimeShutdown();
    int fd = mkstemp(path);
    assert_int_equal(write(fd, json, sizeof json - 1), sizeof json - 1);
    close(fd);
    setenv("VTA_CONFIG", path, 1);
    add_on_default(1, 64);
    VTARuntimeShutdown();
    unlink(path);
    told t = {0, {VTA_OK, ""}};
    vta_set_error_handler(keep, &t);
    assert_null(VTATLSCommandHandle()); /* the file is gone */
    expect_told(&t, 1, t.last.status, "is not a file that can be read, and no preset");
    assert_null(VTABufferAlloc(16));
    VTABufferFree(NULL);
    VTASynchronize(VTATLSCommandHandle(), 1);
    vta_last_error(NULL, NULL);
    vta_set_error_handler(NULL, NULL);
    unsetenv("VTA_CONFIG");
}

/* --- errors ------------------------------------------------------------------------------------------------------- */

static void aborts_by_default(void **state)
{
    (void)state;
    pid_t child = fork();
    if (child == 0) {
        freopen("/dev/null", "w", stderr);
        VTADepPush(VTATLSCommandHandle(), 1, 3);
        _exit(0);
    }
    int status = 0;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
}

static int record_nothing(void *closure)
{
    (void)closure;
    return 0;
}

static int record_wrong(void *closure)
{
    (void)closure;
    VTAUopPush(0, 0, 99999, 0, 0, 0, 0, 0);
    VTAUopPush(0, 0, 0, 0, 0, 0, 0, 0);
    return 0;
}

static int record_nested(void *closure)
{
    return VTAPushGEMMOp((void **)closure, record_nothing, NULL, 0);
}

static void tells_its_handler_once(void **state)
{
    static void *slot, *slot2;
    told t = {0, {VTA_OK, ""}};
    vta_error e;
    (void)state;
    vta_set_error_handler(keep, &t);
    VTACommandHandle cmd = VTATLSCommandHandle();
    assert_int_equal(VTADepPush(cmd, 1, 3), VTA_BAD_ARGUMENT);
    expect_told(&t, 1, VTA_BAD_ARGUMENT, "from stage 1 to 3");
    VTASynchronize(cmd, 10); /* refused because of the first: not told again */
    assert_int_equal(t.count, 1);
    assert_int_equal(vta_last_error(cmd, &e), VTA_BAD_ARGUMENT);
    assert_string_equal(e.text, t.last.text);
    assert_int_equal(vta_last_error(cmd, &e), VTA_OK);
    VTALoadBuffer2D(cmd, &t, 0, 1, 1, 1, 0, 0, 0, 0, 0, 2);
    expect_told(&t, 2, VTA_BAD_HANDLE, "is not a buffer of this device");
    vta_last_error(NULL, &e);
    VTAUopPush(0, 0, 0, 0, 0, 0, 0, 0);
    expect_told(&t, 3, VTA_BAD_STATE, "this thread records no kernel");
    assert_int_equal(vta_last_error(NULL, &e), VTA_BAD_STATE);
    assert_int_equal(VTAPushGEMMOp(&slot, record_wrong, NULL, 0), VTA_BAD_FIELD);
    expect_told(&t, 4, VTA_BAD_FIELD, "dst_index is 99999");
    vta_last_error(NULL, NULL);
    assert_int_equal(VTAPushGEMMOp(&slot, record_nested, &slot2, 0), VTA_BAD_STATE);
    expect_told(&t, 5, VTA_BAD_STATE, "this thread records another kernel");
    vta_last_error(NULL, NULL);
    assert_int_equal(VTAPushALUOp(&slot, record_nothing, NULL, -1), VTA_BAD_ARGUMENT);
    assert_int_equal(VTAPushALUOp(NULL, record_nothing, NULL, 0), VTA_BAD_ARGUMENT);
    VTABufferCopy(&t, 0, &e, 0, 4, 0);
    expect_told(&t, 8, VTA_BAD_ARGUMENT, "kind_mask is 0");
    assert_int_equal(VTADepPop(NULL, 1, 2), VTA_BAD_HANDLE);
    expect_told(&t, 9, VTA_BAD_HANDLE, "the command handle is NULL");
    VTASetDebugMode(NULL, 1);
    assert_int_equal(t.count, 10);
    VTASetDebugMode(cmd, VTA_DEBUG_FORCE_SERIAL);
    assert_int_equal(vta_context_debug((vta_context *)cmd, 0), VTA_DEBUG_FORCE_SERIAL);
    vta_last_error(NULL, NULL);
    vta_set_error_handler(NULL, NULL);
    add_on_default(1, 16); /* it works again */
    VTARuntimeShutdown();
}

/* An error in the middle of a stream: the rest of it must not run. */
static void drops_a_broken_stream(void **state)
{
    told t = {0, {VTA_OK, ""}};
    const vta_insn *insns;
    (void)state;
    vta_set_error_handler(keep, &t);
    VTACommandHandle cmd = VTATLSCommandHandle();
    void *a = VTABufferAlloc(64);
    VTALoadBuffer2D(cmd, a, 0, 1, 1, 1, 0, 0, 0, 0, 0, VTA_MEM_ACC);
    VTALoadBuffer2D(cmd, a, 9, 1, 1, 1, 0, 0, 0, 0, 0, VTA_MEM_ACC);
    VTASynchronize(cmd, 1000);
    expect_told(&t, 1, VTA_BAD_ARGUMENT, "the buffer has 1");
    assert_int_equal(vta_last_error(cmd, NULL), VTA_BAD_ARGUMENT);
    assert_int_equal(vta_queued((vta_context *)cmd, &insns), 0);
    VTABufferFree(a);
    assert_int_equal(t.count, 1);
    vta_set_error_handler(NULL, NULL);
    VTARuntimeShutdown();
}

static void passes_foreign_pointers(void **state)
{
    int x = 0;
    told t = {0, {VTA_OK, ""}};
    (void)state;
    vta_set_error_handler(keep, &t);
    VTACommandHandle cmd = VTATLSCommandHandle();
    assert_ptr_equal(VTABufferCPUPtr(cmd, &x), &x);
    assert_null(VTABufferCPUPtr(cmd, NULL));
    void *a = VTABufferAlloc(64);
    assert_ptr_not_equal(VTABufferCPUPtr(cmd, a), a);
    VTABufferFree(a);
    assert_int_equal(t.count, 0);
    assert_null(VTABufferCPUPtr(cmd, a)); /* nobody may follow a handle */
    expect_told(&t, 1, VTA_BAD_HANDLE, "was freed");
    vta_last_error(NULL, NULL);
    VTAWriteBarrier(cmd, &x, 32, 0, 1);
    expect_told(&t, 2, VTA_BAD_HANDLE, "is not a buffer");
    vta_last_error(NULL, NULL);
    vta_set_error_handler(NULL, NULL);
    VTARuntimeShutdown();
}

/* --- device table ------------------------------------------------------------------------------------------------- */

/* The published test of run-time arrays: there and back. */
static void copies_through_the_device_table(void **state)
{
    enum { N = 100 * 100 };
    static float x[N], y[N];
    const vta_device_api *api = vta_ext_dev_api();
    void *a, *c;
    uint32_t seed = 1;
    rig b;
    (void)state;
    board_open(&b, "sim", NULL);
    assert_string_equal(api->name, "ext_dev");
    assert_true(api->exist == 1 && api->device_type == 12);
    for (int i = 0; i < N; i++)
        x[i] = (float)next_random(&seed) / 7;
    good(&b, api->alloc(b.c, sizeof x, 128, &a));
    good(&b, api->alloc(b.c, sizeof x, 64, &c));
    good(&b, api->copy(b.c, x, 0, VTA_SIDE_HOST, a, 0, VTA_SIDE_DEVICE, sizeof x));
    good(&b, api->copy(b.c, a, 4, VTA_SIDE_DEVICE, c, 0, VTA_SIDE_DEVICE, sizeof x - 4));
    good(&b, api->sync(b.c));
    good(&b, api->copy(b.c, c, 0, VTA_SIDE_DEVICE, y, 4, VTA_SIDE_HOST, sizeof x - 4));
    assert_memory_equal(x + 1, y + 1, sizeof x - 4);
    refused(&b, api->copy(b.c, x, 0, VTA_SIDE_HOST, y, 0, VTA_SIDE_HOST, 4), VTA_BAD_ARGUMENT, "use memcpy");
    refused(&b, api->alloc(b.c, 4, 8192, &a), VTA_BAD_ARGUMENT, "aligned to 4096");
    assert_null(a);
    push(&b, VTA_STAGE_COMPUTE, VTA_STAGE_LOAD);
    pop(&b, VTA_STAGE_COMPUTE, VTA_STAGE_LOAD);
    good(&b, api->sync(b.c)); /* runs what is queued */
    const vta_insn *insns;
    assert_int_equal(vta_queued(b.c, &insns), 0);
    good(&b, api->free(b.c, c));
    refused(&b, api->free(b.c, c), VTA_BAD_HANDLE, "was freed");
    board_close(&b);
}

/* --- threads ------------------------------------------------------------------------------------------------------ */

/* Each thread: its own device and context as current, the published functions. */
static void *work_alone(void *user)
{
    const char *preset = (const char *)user;
    vta_config config;
    vta_sim *sim;
    vta_context *c;
    const vta_sim_options so = {.seed = 3};
    if (vta_config_preset(preset, &config, NULL) != VTA_OK || vta_sim_create(&config, &so, &sim, NULL) != VTA_OK)
        return user;
    vta_device d = vta_sim_device(sim);
    size_t bytes = vta_context_bytes(&d, NULL);
    void *memory = aligned_alloc(64, bytes);
    if (vta_context_init(memory, bytes, &d, NULL, &c, NULL) != VTA_OK)
        return user;
    vta_make_current(c);
    for (int32_t i = 0; i < 30; i++)
        add_on_default(i, d.geometry.lanes[VTA_MEM_ACC]);
    vta_make_current(NULL);
    vta_context_destroy(c);
    free(memory);
    vta_device_destroy(&d);
    return NULL;
}

static void two_devices_in_two_threads(void **state)
{
    static char presets[4][32] = {"sim", "4x16_i8w8a32_15_15_18_17", "2x16_i8w8a32_15_15_18_17", "sim"};
    pthread_t threads[4];
    (void)state;
    for (int i = 0; i < 4; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, work_alone, presets[i]), 0);
    for (int i = 0; i < 4; i++) {
        void *failed;
        pthread_join(threads[i], &failed);
        assert_null(failed);
    }
}

/* Threads on one context: each records and queues kernels without order, and adds to accumulators of its own. */
typedef struct share {
    rig *b;
    uint32_t row;
    bool failed;
} share;

static int record_row(void *closure)
{
    const uint32_t *k = (const uint32_t *)closure;
    return vta_uop_push(&(vta_uop){VTA_MODE_ALU, 0, k[0], k[0], 0, VTA_ALU_ADD, 1, (int32_t)k[1]}, NULL) != VTA_OK;
}

static void *work_shared(void *user)
{
    static const char site = 0;
    share *s = (share *)user;
    for (uint32_t i = 0; i < 500; i++) {
        uint32_t k[2] = {s->row, i % 5};
        vta_buffer h;
        s->failed |= vta_push(s->b->c, VTA_MODE_ALU, i % 2 ? &site : NULL, record_row, k, sizeof k) != VTA_OK;
        s->failed |= vta_buffer_alloc(s->b->c, 64, &h) != VTA_OK || vta_buffer_free(s->b->c, h) != VTA_OK;
        if (i % 100 == 50)
            s->failed |= vta_synchronize(s->b->c, 1000) != VTA_OK;
    }
    return NULL;
}

static void one_context_in_four_threads(void **state)
{
    const vta_context_options small = {.max_insns = 256, .max_uops = 64, .max_kernels = 8};
    share shares[4];
    pthread_t threads[4];
    int32_t got[4 * 16];
    vta_error e;
    rig b;
    (void)state;
    board_open(&b, "sim", &small);
    vta_buffer zeros = buffer(&b, 4 * 64);
    load(&b, VTA_MEM_ACC, zeros, 0, 0, 4, 1, 4);
    for (uint32_t i = 0; i < 4; i++) {
        shares[i] = (share){&b, i, false};
        assert_int_equal(pthread_create(&threads[i], NULL, work_shared, &shares[i]), 0);
    }
    for (int i = 0; i < 4; i++) {
        pthread_join(threads[i], NULL);
        assert_false(shares[i].failed);
    }
    good(&b, vta_synchronize(b.c, 1000));
    assert_int_equal(b.device.driver->scratchpad(b.device.self, VTA_MEM_ACC, 0, 4, got, &e), VTA_OK);
    for (int i = 0; i < 4 * 16; i++)
        assert_int_equal(got[i], 1000);
    board_close(&b);
}

/* Buffers that a program keeps: made once for each device, given back at its end. */
static void keeps_buffers_of_programs(void **state)
{
    static const size_t bytes[2] = {64, 5000};
    void *buffers[2] = {NULL, NULL}, *before;
    vta_context *c;
    vta_error e;
    (void)state;
    VTARuntimeShutdown();
    vta_drop_buffers(buffers, 2); /* there is no device, and none is made */
    assert_int_equal(vta_keep_buffers(buffers, bytes, 2), 2);
    before = buffers[0];
    assert_int_equal(vta_keep_buffers(buffers, bytes, 2), 0);
    assert_ptr_equal(buffers[0], before);
    VTABufferFree(buffers[1]);
    assert_int_equal(vta_keep_buffers(buffers, bytes, 2), 1);
    VTARuntimeShutdown();
    vta_drop_buffers(buffers, 2);
    assert_null(buffers[0]);
    assert_int_equal(vta_keep_buffers(buffers, bytes, 2), 2);
    VTARuntimeShutdown();
    assert_int_equal(vta_keep_buffers(buffers, bytes, 2), 2); /* of another device */
    assert_int_equal(vta_default_context(&c, &e), VTA_OK);
    const vta_buffer b = vta_buffer_from_pointer(buffers[1]);
    assert_true(vta_buffer_bytes(c, b) > 0);
    vta_drop_buffers(buffers, 2);
    assert_int_equal(vta_buffer_bytes(c, b), 0);
    VTARuntimeShutdown();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(aborts_by_default),
        cmocka_unit_test(makes_the_default_device),
        cmocka_unit_test(reads_its_configuration),
        cmocka_unit_test(tells_its_handler_once),
        cmocka_unit_test(drops_a_broken_stream),
        cmocka_unit_test(passes_foreign_pointers),
        cmocka_unit_test(copies_through_the_device_table),
        cmocka_unit_test(two_devices_in_two_threads),
        cmocka_unit_test(one_context_in_four_threads),
        cmocka_unit_test(keeps_buffers_of_programs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
