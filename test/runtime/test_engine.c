/* test_engine.c: the engine: starting, stopping, statuses, limits, sharing between instances and threads.
 * SPDX-License-Identifier: Apache-2.0 */
#ifdef __linux__
#define _GNU_SOURCE
#endif
#ifndef _POSIX_C_SOURCE
#define _POSIX_C_SOURCE 200809L
#endif
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <pthread.h>
#include <sched.h>
#include <time.h>

#include "mesh.h"

static tvmrt_engine_t engine = TVMRT_ENGINE_INIT;
static mesh model;
static mesh_instance instance;
static uint8_t expected[VALUE];

static void behave(void)
{
    static const mesh_behaviour plain = {0, {-1, -1}, {0, 0}, {0, 0}};

    behaviour = plain;
}

static int open_all(void **state)
{
    (void)state;
    behave();
    mesh_make(&model, 5);
    if (mesh_open(&instance, &model, &engine, TVMRT_NUM_WORKERS) != 0 || tvmrt_engine_init(&engine) != 0)
        return 1;
    if (tvmrt_engine_run_single(&instance.context, &model.schedule) != 0)
        return 1;
    memcpy(expected, instance.output, VALUE);
    tvmrt_log_clear();
    return 0;
}

static int close_all(void **state)
{
    (void)state;
    return tvmrt_engine_shutdown(&engine);
}

static void expect_run(mesh_instance *i)
{
    memset(i->output, 0xEE, VALUE);
    assert_int_equal(tvmrt_engine_run(&i->context, &model.schedule), 0);
    assert_memory_equal(i->output, expected, VALUE);
}

static uint32_t all_tasks(uint32_t layers)
{
    uint32_t n = 0, k;

    for (k = 0; k < layers; k++)
        n += model.layers[k].num_tasks;
    return n;
}

static void runs_every_task_once(void **state)
{
    (void)state;
    kernels_run = 0;
    expect_run(&instance);
    assert_int_equal(kernels_run, all_tasks(LAYERS));
}

static void worker_limits(void **state)
{
    uint32_t limit;

    (void)state;
    for (limit = 0; limit <= TVMRT_NUM_WORKERS + 2; limit++) {
        instance.context.max_workers = limit;
        expect_run(&instance);
    }
}

/* All of the failing layer runs, nothing after it, and the first failure in schedule order is reported: with any number
 * of workers, and always. */
static void statuses_reach_the_caller(void **state)
{
    tvmrt_log_record_t record;
    uint32_t limit, round;

    (void)state;
    model.descs[WIDTH + 1].parts = model.descs[WIDTH + 3].parts = MAX_PARTS;
    model.layers[1].num_tasks = 0;
    for (round = 0; round < WIDTH; round++)
        model.layers[1].num_tasks += model.descs[WIDTH + round].parts;
    behaviour.fail_op[0] = WIDTH + 3;
    behaviour.fail_part[0] = 0;
    behaviour.fail_status[0] = 333;
    behaviour.fail_op[1] = WIDTH + 1;
    behaviour.fail_part[1] = MAX_PARTS - 1;
    behaviour.fail_status[1] = -111;
    behaviour.delay = 2000;
    for (limit = 0; limit <= TVMRT_NUM_WORKERS; limit++) {
        instance.context.max_workers = limit;
        for (round = 0; round < 50; round++) {
            kernels_run = 0;
            assert_int_equal(tvmrt_engine_run(&instance.context, &model.schedule), -111);
            assert_int_equal(kernels_run, all_tasks(2));
            assert_true(tvmrt_log_pop(&record));
            assert_int_equal(record.code, -111);
            assert_int_equal(record.op_id, WIDTH + 1);
            assert_false(tvmrt_log_pop(&record));
        }
    }
    assert_int_equal(tvmrt_engine_run_single(&instance.context, &model.schedule), -111);
    behave();
    assert_int_equal(tvmrt_engine_run(&instance.context, &model.schedule), 0);
}

static void starts_and_stops(void **state)
{
    int i;

    (void)state;
    for (i = 0; i < 20; i++) {
        assert_int_equal(tvmrt_engine_init(&engine), 0);
        assert_int_equal(tvmrt_engine_init(&engine), 0);
        expect_run(&instance);
        assert_int_equal(tvmrt_engine_shutdown(&engine), 0);
        assert_int_equal(tvmrt_engine_shutdown(&engine), 0);
        expect_run(&instance); /* stopped: the caller does the work */
    }
}

static void default_engine(void **state)
{
    (void)state;
    instance.context.engine = NULL;
    assert_int_equal(tvmrt_engine_init(NULL), 0);
    expect_run(&instance);
    assert_int_equal(tvmrt_engine_shutdown(tvmrt_engine_default()), 0);
}

static void other_configuration_is_refused(void **state)
{
    static tvmrt_engine_t foreign;

    (void)state;
    assert_int_equal(tvmrt_engine_init_sized(&foreign, sizeof foreign + 8), TVMRT_E_ABI);
    assert_int_equal(tvmrt_engine_init_sized(NULL, 0), TVMRT_OK); /* the default engine's layout concerns nobody else */
    assert_int_equal(tvmrt_engine_shutdown(NULL), TVMRT_OK);
}

static void null_arguments(void **state)
{
    (void)state;
    assert_int_equal(tvmrt_engine_run(NULL, &model.schedule), TVMRT_E_NULL);
    assert_int_equal(tvmrt_engine_run(&instance.context, NULL), TVMRT_E_NULL);
    instance.context.op_execs = NULL;
    assert_int_equal(tvmrt_engine_run_single(&instance.context, &model.schedule), TVMRT_E_STATE);
}

static void empty_schedule_and_layers(void **state)
{
    static const tvmrt_schedule_layer_t nothing[2] = {{NULL, 0, 0}, {NULL, 0, 0}};
    static const tvmrt_schedule_desc_t none = {NULL, 0, NULL, 0}, empty = {nothing, 2, NULL, 0};

    (void)state;
    assert_int_equal(tvmrt_engine_run(&instance.context, &none), 0);
    assert_int_equal(tvmrt_engine_run(&instance.context, &empty), 0);
}

enum { RUNS = 300 };
static uint32_t wrong;

static void *run_many(void *arg)
{
    mesh_instance *i = (mesh_instance *)arg;
    int k;

    for (k = 0; k < RUNS; k++) {
        memset(i->output, 0xEE, VALUE);
        if (tvmrt_engine_run(&i->context, &model.schedule) != 0 || memcmp(i->output, expected, VALUE) != 0)
            __atomic_add_fetch(&wrong, 1, __ATOMIC_SEQ_CST);
    }
    return NULL;
}

/* Instances of one model on one engine, from several threads at once. */
static void instances_on_threads(void **state)
{
    static mesh_instance instances[3];
    pthread_t threads[3];
    int k;

    (void)state;
    wrong = 0;
    behaviour.delay = 300;
    for (k = 0; k < 3; k++)
        assert_int_equal(mesh_open(&instances[k], &model, &engine, TVMRT_NUM_WORKERS), 0);
    for (k = 0; k < 3; k++)
        assert_int_equal(pthread_create(&threads[k], NULL, run_many, &instances[k]), 0);
    for (k = 0; k < 3; k++)
        pthread_join(threads[k], NULL);
    assert_int_equal(wrong, 0);
}

static void *init_run(void *arg)
{
    mesh_instance *i = (mesh_instance *)arg;

    if (tvmrt_engine_init(i->context.engine) != 0)
        __atomic_add_fetch(&wrong, 1, __ATOMIC_SEQ_CST);
    if (tvmrt_engine_run(&i->context, &model.schedule) != 0 || memcmp(i->output, expected, VALUE) != 0)
        __atomic_add_fetch(&wrong, 1, __ATOMIC_SEQ_CST);
    return NULL;
}

/* The first init from several threads at once starts the workers once. */
static void concurrent_init(void **state)
{
    static mesh_instance instances[3];
    pthread_t threads[3];
    int k, round;

    (void)state;
    wrong = 0;
    for (k = 0; k < 3; k++)
        assert_int_equal(mesh_open(&instances[k], &model, &engine, TVMRT_NUM_WORKERS), 0);
    for (round = 0; round < 30; round++) {
        assert_int_equal(tvmrt_engine_shutdown(&engine), 0);
        for (k = 0; k < 3; k++)
            assert_int_equal(pthread_create(&threads[k], NULL, init_run, &instances[k]), 0);
        for (k = 0; k < 3; k++)
            pthread_join(threads[k], NULL);
    }
    assert_int_equal(wrong, 0);
}

enum { WORKERS = TVMRT_NUM_WORKERS > 0 ? TVMRT_NUM_WORKERS : 1 };

static uint32_t met, begun; /* atomic */

/* Ends only when as many kernels as there are workers run at the same time: a wake-up that is lost hangs here, until
 * the time limit of the test ends it. */
static int32_t meet(const void *args, uint32_t part, uint32_t parts)
{
    (void)args;
    (void)part;
    __atomic_add_fetch(&met, 1, __ATOMIC_SEQ_CST);
    while (__atomic_load_n(&met, __ATOMIC_SEQ_CST) < parts)
        sched_yield();
    return 0;
}

/* A layer of one operator in `parts` parts, run `rounds` times; workers fall asleep before every other one. */
static void run_alone(tvmrt_op_func_t func, uint32_t parts, int rounds, void (*check)(void))
{
    static const uint16_t op_ids[] = {0};
    const tvmrt_op_exec_t exec = {func, NULL};
    tvmrt_op_desc_t desc = model.descs[0];
    tvmrt_model_desc_t meeting = model.model;
    tvmrt_context_t context = instance.context;
    const tvmrt_schedule_layer_t layer = {op_ids, 1, parts};
    const tvmrt_schedule_desc_t schedule = {&layer, 1, NULL, 0};
    const struct timespec pause = {0, 3000000};
    int round;

    desc.parts = parts;
    meeting.op_descs = &desc;
    meeting.num_ops = 1;
    context.model = &meeting;
    context.op_execs = &exec;
    for (round = 0; round < rounds; round++) {
        met = begun = 0;
        if (round % 2 == 0)
            nanosleep(&pause, NULL);
        assert_int_equal(tvmrt_engine_run(&context, &schedule), 0);
        check();
    }
}

static void check_nothing(void)
{
}

/* As many tasks as workers: the chain of wake-ups must reach every one of them, asleep or awake. */
static void every_worker_is_woken(void **state)
{
    (void)state;
    run_alone(meet, WORKERS, 40, check_nothing);
}

/* The first task of each worker; nobody gets a second one before all have begun. */
static int32_t begin(const void *args, uint32_t part, uint32_t parts)
{
    (void)args;
    (void)parts;
    if (__atomic_add_fetch(&met, 1, __ATOMIC_SEQ_CST) <= WORKERS)
        __atomic_fetch_or(&begun, 1u << part, __ATOMIC_SEQ_CST);
    while (__atomic_load_n(&met, __ATOMIC_SEQ_CST) < WORKERS)
        sched_yield();
    return 0;
}

static void check_begun(void)
{
    uint32_t expected_begun = 0, k;

    for (k = 0; k < WORKERS; k++)
        expected_begun |= 1u << 3 * k;
    assert_int_equal(begun, expected_begun);
    assert_int_equal(met, 3 * WORKERS);
}

/* Each works on a share of its own first, the same in every layer. */
static void workers_begin_with_their_shares(void **state)
{
    (void)state;
    run_alone(begin, 3 * WORKERS, 40, check_begun);
}

#if defined(__linux__) && !defined(TVMRT_PORT_RTOS)
static pthread_barrier_t asked;
static cpu_set_t allowed;

static void go_to(size_t processor)
{
    cpu_set_t set;

    CPU_ZERO(&set);
    CPU_SET(processor, &set);
    assert_int_equal(sched_setaffinity(0, sizeof set, &set), 0);
}

#define ASKED 3

/* Says as often where it may run; `placed`: where the program puts it before that, no processor: it leaves it. */
static void answer(void *arg)
{
    const cpu_set_t *placed = (const cpu_set_t *)arg;
    int k;

    for (k = 0; k < ASKED; k++) {
        if (CPU_COUNT(&placed[k]) > 0)
            assert_int_equal(sched_setaffinity(0, sizeof placed[k], &placed[k]), 0);
        pthread_barrier_wait(&asked);
        pthread_barrier_wait(&asked);
        assert_int_equal(sched_getaffinity(0, sizeof allowed, &allowed), 0);
        pthread_barrier_wait(&asked);
    }
}

static void ask(tvmrt_thread_t *thread)
{
    pthread_barrier_wait(&asked);
    tvmrt_thread_keep_off(thread);
    pthread_barrier_wait(&asked);
    pthread_barrier_wait(&asked);
}

static void assert_all_but(const cpu_set_t *all, size_t processor)
{
    cpu_set_t set = *all;

    if (CPU_COUNT(all) > 1)
        CPU_CLR(processor, &set);
    assert_true(CPU_EQUAL(&allowed, &set));
}

/* Where this program may run, and the first and the last of these. */
static void find_processors(cpu_set_t *all, size_t *first, size_t *last)
{
    assert_int_equal(sched_getaffinity(0, sizeof *all, all), 0);
    for (*first = 0; !CPU_ISSET(*first, all);)
        ++*first;
    for (*last = CPU_SETSIZE - 1; !CPU_ISSET(*last, all);)
        --*last;
    assert_int_equal(pthread_barrier_init(&asked, NULL, 2), 0);
}

static void join_answering(tvmrt_thread_t *thread, const cpu_set_t *all)
{
    assert_int_equal(tvmrt_thread_join(thread), 0);
    assert_int_equal(sched_setaffinity(0, sizeof *all, all), 0);
    pthread_barrier_destroy(&asked);
}

/* A thread that is woken may run on every processor of the program but the one of the thread that wakes it, and on none
 * that the program took from it since. */
static void woken_threads_keep_off(void **state)
{
    cpu_set_t all, placed[ASKED];
    tvmrt_thread_t thread;
    size_t here, there;

    (void)state;
    find_processors(&all, &here, &there);
    memset(placed, 0, sizeof placed);
    CPU_SET(there, &placed[2]);
    assert_int_equal(tvmrt_thread_create(&thread, answer, placed), 0);
    go_to(here);
    ask(&thread);
    assert_all_but(&all, here);
    go_to(there);
    ask(&thread);
    assert_all_but(&all, there);
    go_to(here);
    ask(&thread);
    assert_true(CPU_EQUAL(&allowed, &placed[2]));
    join_answering(&thread, &all);
}

/* A thread that the program has placed since it was made stays where it was put. */
static void placed_threads_stay(void **state)
{
    cpu_set_t all, placed[ASKED];
    tvmrt_thread_t thread;
    size_t here, there;

    (void)state;
    find_processors(&all, &here, &there);
    memset(placed, 0, sizeof placed);
    placed[0] = all;
    CPU_SET(here, &placed[2]);
    go_to(there);
    assert_int_equal(tvmrt_thread_create(&thread, answer, placed), 0);
    ask(&thread);
    assert_true(CPU_EQUAL(&allowed, &all));
    go_to(here);
    ask(&thread);
    assert_true(CPU_EQUAL(&allowed, &all));
    ask(&thread);
    assert_true(CPU_EQUAL(&allowed, &placed[2]));
    join_answering(&thread, &all);
}
#endif

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(runs_every_task_once, open_all, close_all),
        cmocka_unit_test_setup_teardown(worker_limits, open_all, close_all),
        cmocka_unit_test_setup_teardown(statuses_reach_the_caller, open_all, close_all),
        cmocka_unit_test_setup_teardown(starts_and_stops, open_all, close_all),
        cmocka_unit_test_setup_teardown(default_engine, open_all, close_all),
        cmocka_unit_test_setup_teardown(other_configuration_is_refused, open_all, close_all),
        cmocka_unit_test_setup_teardown(null_arguments, open_all, close_all),
        cmocka_unit_test_setup_teardown(empty_schedule_and_layers, open_all, close_all),
        cmocka_unit_test_setup_teardown(instances_on_threads, open_all, close_all),
        cmocka_unit_test_setup_teardown(concurrent_init, open_all, close_all),
        cmocka_unit_test_setup_teardown(every_worker_is_woken, open_all, close_all),
        cmocka_unit_test_setup_teardown(workers_begin_with_their_shares, open_all, close_all),
#if defined(__linux__) && !defined(TVMRT_PORT_RTOS)
        cmocka_unit_test(woken_threads_keep_off),
        cmocka_unit_test(placed_threads_stay),
#endif
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
