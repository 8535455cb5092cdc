/* test_hooks.c: hooks before and after every task, on any number of workers; a run that a hook ends; tvmrt_cancel from
 * a hook and between runs, tvmrt_resume; the same bytes as without all that.
 * SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "mesh.h"

enum { HOOK_STATUS = 77, CALM = -1 };

static mesh model;
static mesh_instance instance;
static tvmrt_engine_t engine = TVMRT_ENGINE_INIT;
static uint8_t expected[VALUE];
static uint32_t befores, afters, cycles_seen; /* atomic */
static int32_t end_at = CALM, cancel_at = CALM;

int32_t tvmrt_hook_before(const tvmrt_context_t *context, uint32_t op_id, uint32_t part)
{
    assert_true(context == &instance.context && part < model.descs[op_id].parts);
    tvmrt_atomic_add(&befores, 1);
    if ((int32_t)op_id == cancel_at)
        tvmrt_cancel(&instance.context);
    return (int32_t)op_id == end_at ? HOOK_STATUS : TVMRT_OK;
}

void tvmrt_hook_after(const tvmrt_context_t *context, uint32_t op_id, uint32_t part, int32_t status, uint32_t cycles)
{
    assert_true(context == &instance.context && part < model.descs[op_id].parts && status == TVMRT_OK);
    tvmrt_atomic_add(&afters, 1);
    tvmrt_atomic_add(&cycles_seen, cycles != 0);
}

static uint32_t tasks(uint32_t layers)
{
    uint32_t sum = 0, i;

    for (i = 0; i < layers; i++)
        sum += model.layers[i].num_tasks;
    return sum;
}

static int32_t run(void)
{
    befores = afters = 0;
    memset(instance.output, 0, VALUE);
    return tvmrt_engine_run(&instance.context, &model.schedule);
}

static void expect_record(int32_t status, int32_t op)
{
    tvmrt_log_record_t r;

    assert_true(tvmrt_log_pop(&r));
    assert_int_equal(r.code, status);
    assert_int_equal(r.op_id, op);
    assert_false(tvmrt_log_pop(&r));
}

static void expect_whole_run(void)
{
    assert_int_equal(run(), TVMRT_OK);
    assert_int_equal(befores, tasks(LAYERS));
    assert_int_equal(afters, tasks(LAYERS));
    assert_memory_equal(instance.output, expected, VALUE);
}

static void setup(uint32_t workers)
{
    mesh_make(&model, 5);
    assert_int_equal(mesh_open(&instance, &model, &engine, workers), TVMRT_OK);
    assert_int_equal(tvmrt_engine_init(&engine), TVMRT_OK);
    assert_int_equal(tvmrt_engine_run_single(&instance.context, &model.schedule), TVMRT_OK);
    memcpy(expected, instance.output, VALUE);
    tvmrt_log_clear();
    end_at = cancel_at = CALM;
}

static void every_task_is_seen(void **state)
{
    uint32_t workers;

    (void)state;
    for (workers = 1; workers <= TVMRT_NUM_WORKERS; workers++) {
        setup(workers);
        cycles_seen = 0;
        behaviour.delay = 2000;
        expect_whole_run();
        behaviour.delay = 0;
        assert_true(cycles_seen > 0);
    }
}

/* The layer of the operator runs to its end, none behind it. */
static void a_hook_ends_the_run(void **state)
{
    uint32_t workers;

    (void)state;
    for (workers = 1; workers <= TVMRT_NUM_WORKERS; workers++) {
        setup(workers);
        end_at = WIDTH + 2;
        assert_int_equal(run(), HOOK_STATUS);
        assert_int_equal(befores, tasks(2));
        assert_int_equal(afters, tasks(2) - model.descs[end_at].parts);
        expect_record(HOOK_STATUS, end_at);
        end_at = CALM;
        expect_whole_run();
    }
}

static void cancelled_until_resumed(void **state)
{
    uint32_t workers;

    (void)state;
    for (workers = 1; workers <= TVMRT_NUM_WORKERS; workers++) {
        setup(workers);
        cancel_at = 2 * WIDTH;
        assert_int_equal(run(), TVMRT_E_CANCELLED);
        assert_true(befores <= tasks(3));
        tvmrt_log_clear(); /* which task was the first depends on the threads */
        cancel_at = CALM;
        assert_int_equal(run(), TVMRT_E_CANCELLED);
        assert_int_equal(befores, 0);
        expect_record(TVMRT_E_CANCELLED, model.layer_ops[0][0]);
        tvmrt_resume(&instance.context);
        expect_whole_run();
    }
    assert_string_equal(tvmrt_status_text(TVMRT_E_CANCELLED), "the run was cancelled");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_task_is_seen),
        cmocka_unit_test(a_hook_ends_the_run),
        cmocka_unit_test(cancelled_until_resumed),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
