/* test_steps.c: schedules with jumps: a loop around shared layers with a branch in it, on any number of workers; errors
 * inside; steps that name what is not there.
 * SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "tvmrt.h"

/* go = count < limit; odd = count % 2; sum[k] += count, or in odd rounds twice that; count += 1. */
enum { START, TEST, ODD, ADD, ADD_TWICE, NEXT, LAST, OPS, PARTS = 8, WIDTH = 64 };
enum { S_LIMIT, S_OUT, S_COUNT, S_GO, S_ODD, S_SUM, SIDS };

typedef struct memory {
    uint32_t count;
    uint8_t go, odd, unused[2];
    uint32_t sum[WIDTH];
} memory;

static uint32_t fail_at = UINT32_MAX;

static int32_t start(const void *args, uint32_t part, uint32_t parts)
{
    void *const *a = (void *const *)args;

    (void)part;
    (void)parts;
    *(uint32_t *)a[0] = 0;
    memset(a[1], 0, WIDTH * sizeof(uint32_t));
    return 0;
}

static int32_t test(const void *args, uint32_t part, uint32_t parts)
{
    void *const *a = (void *const *)args;

    (void)part;
    (void)parts;
    *(uint8_t *)a[2] = *(const uint32_t *)a[0] < *(const uint32_t *)a[1];
    return 0;
}

static int32_t odd(const void *args, uint32_t part, uint32_t parts)
{
    void *const *a = (void *const *)args;

    (void)part;
    (void)parts;
    *(uint8_t *)a[1] = *(const uint32_t *)a[0] % 2;
    return 0;
}

static int32_t add_times(const void *args, uint32_t part, uint32_t parts, uint32_t times)
{
    void *const *a = (void *const *)args;
    const uint32_t count = *(const uint32_t *)a[0];
    uint32_t *sum = (uint32_t *)a[1], k;

    for (k = part * WIDTH / parts; k < (part + 1) * WIDTH / parts; k++)
        sum[k] += (count + k) * times;
    return count == fail_at && part >= 3 ? (int32_t)part : 0;
}

static int32_t add(const void *args, uint32_t part, uint32_t parts)
{
    return add_times(args, part, parts, 1);
}

static int32_t add_twice(const void *args, uint32_t part, uint32_t parts)
{
    return add_times(args, part, parts, 2);
}

static int32_t next(const void *args, uint32_t part, uint32_t parts)
{
    void *const *a = (void *const *)args;

    (void)part;
    (void)parts;
    ++*(uint32_t *)a[0];
    return 0;
}

static int32_t last(const void *args, uint32_t part, uint32_t parts)
{
    void *const *a = (void *const *)args;

    (void)part;
    (void)parts;
    memcpy(a[1], a[0], WIDTH * sizeof(uint32_t));
    return 0;
}

static const tvmrt_tensor_map_entry_t map[SIDS] = {
    {S_LIMIT, TVMRT_STORAGE_INPUT, 0, 0, 4},
    {S_OUT, TVMRT_STORAGE_OUTPUT, 0, 0, sizeof(uint32_t) * WIDTH},
    {S_COUNT, TVMRT_STORAGE_WORKSPACE, 0, offsetof(memory, count), 4},
    {S_GO, TVMRT_STORAGE_WORKSPACE, 0, offsetof(memory, go), 1},
    {S_ODD, TVMRT_STORAGE_WORKSPACE, 0, offsetof(memory, odd), 1},
    {S_SUM, TVMRT_STORAGE_WORKSPACE, 0, offsetof(memory, sum), sizeof(uint32_t) * WIDTH},
};
static const int32_t count_sum[] = {S_COUNT, S_SUM}, count_limit[] = {S_COUNT, S_LIMIT}, go[] = {S_GO},
                     odds[] = {S_ODD}, sum_out[] = {S_SUM, S_OUT};
static const tvmrt_op_desc_t descs[OPS] = {
    {"start", TVMRT_BACKEND_CPU, NULL, count_sum, 0, 2, 1},
    {"test", TVMRT_BACKEND_CPU, count_limit, go, 2, 1, 1},
    {"odd", TVMRT_BACKEND_CPU, count_sum, odds, 1, 1, 1},
    {"add", TVMRT_BACKEND_CPU, count_sum, count_sum + 1, 1, 1, PARTS},
    {"add_twice", TVMRT_BACKEND_CPU, count_sum, count_sum + 1, 1, 1, PARTS},
    {"next", TVMRT_BACKEND_CPU, NULL, count_sum, 0, 1, 1},
    {"last", TVMRT_BACKEND_CPU, sum_out, sum_out + 1, 1, 1, 1},
};
static const tvmrt_op_func_t funcs[OPS] = {start, test, odd, add, add_twice, next, last};
static const uint16_t ids[OPS] = {START, TEST, ODD, ADD, ADD_TWICE, NEXT, LAST};
static const tvmrt_schedule_layer_t layers[OPS] = {{ids, 1, 1},         {ids + 1, 1, 1},     {ids + 2, 1, 1},
                                                   {ids + 3, 1, PARTS}, {ids + 4, 1, PARTS}, {ids + 5, 1, 1},
                                                   {ids + 6, 1, 1}};
static const tvmrt_schedule_step_t steps[] = {
    {TVMRT_STEP_RUN, 0, 2, 0},              /* start, test */
    {TVMRT_STEP_JUMP_IF_ZERO, 10, 0, S_GO}, /* the loop */
    {TVMRT_STEP_RUN, 2, 1, 0},              /* odd */
    {TVMRT_STEP_JUMP_IF_ZERO, 6, 0, S_ODD}, /* the branch */
    {TVMRT_STEP_RUN, 4, 1, 0},              /* add_twice */
    {TVMRT_STEP_JUMP, 7, 0, 0},
    {TVMRT_STEP_RUN, 3, 1, 0}, /* add */
    {TVMRT_STEP_RUN, 5, 1, 0}, /* next */
    {TVMRT_STEP_RUN, 1, 1, 0}, /* test */
    {TVMRT_STEP_JUMP, 1, 0, 0},
    {TVMRT_STEP_RUN, 6, 1, 0}, /* last */
};
enum { STEPS = sizeof steps / sizeof *steps };
static tvmrt_schedule_step_t changed[STEPS];
static tvmrt_schedule_desc_t schedule = {layers, OPS, steps, STEPS};
static const tvmrt_model_desc_t model = {
    TVMRT_ABI_VERSION, "steps", 1, 1, SIDS, OPS, map, descs, funcs, &schedule, 0, 1, sizeof(memory), 4};

static memory workspace;
static uint32_t limit, output[WIDTH];
static const void *inputs[] = {&limit};
static void *outputs[] = {output}, *arguments[14];
static tvmrt_op_exec_t execs[OPS];
static tvmrt_context_t context;
static tvmrt_engine_t engine = TVMRT_ENGINE_INIT;

static void bind(void)
{
    assert_int_equal(tvmrt_semantic_init(&context, &model, NULL, &workspace, sizeof workspace), 0);
    context.inputs = inputs;
    context.outputs = outputs;
    context.op_execs = execs;
    context.engine = &engine;
    assert_int_equal(tvmrt_semantic_fill_args(&context, arguments, 14, execs), 0);
}

static uint32_t expected(uint32_t rounds, uint32_t k)
{
    uint32_t sum = 0, i;

    for (i = 0; i < rounds; i++)
        sum += (i + k) * (i % 2 ? 2 : 1);
    return sum;
}

static void loops_and_branches(void **state)
{
    uint32_t k, workers;

    (void)state;
    bind();
    for (workers = 0; workers <= TVMRT_NUM_WORKERS + 1; workers++)
        for (limit = 0; limit < 40; limit += 13) {
            context.max_workers = workers;
            memset(output, 0xEE, sizeof output);
            assert_int_equal(workers ? tvmrt_engine_run(&context, &schedule)
                                     : tvmrt_engine_run_single(&context, &schedule),
                             0);
            for (k = 0; k < WIDTH; k++)
                assert_int_equal(output[k], expected(limit, k));
            assert_int_equal(workspace.count, limit);
        }
}

static void a_failure_ends_the_loop(void **state)
{
    uint32_t workers;

    (void)state;
    bind();
    limit = 9;
    fail_at = 5;
    for (workers = 0; workers <= TVMRT_NUM_WORKERS; workers++) {
        context.max_workers = workers;
        assert_int_equal(tvmrt_engine_run(&context, &schedule), 3);
        assert_int_equal(workspace.count, 5);
    }
    fail_at = UINT32_MAX;
    context.max_workers = 0;
    assert_int_equal(tvmrt_engine_run(&context, &schedule), 0);
    tvmrt_log_clear();
}

static void refuse(uint32_t step, tvmrt_schedule_step_t wrong)
{
    memcpy(changed, steps, sizeof steps);
    changed[step] = wrong;
    schedule.steps = changed;
    assert_int_equal(tvmrt_semantic_init(&context, &model, NULL, &workspace, sizeof workspace), TVMRT_E_ABI);
    assert_null(context.model);
    schedule.steps = steps;
}

static void steps_name_what_is_there(void **state)
{
    static const tvmrt_schedule_step_t wrong[] = {{TVMRT_STEP_RUN, 0, OPS + 1, 0},
                                                  {TVMRT_STEP_RUN, OPS + 1, 0, 0},
                                                  {TVMRT_STEP_RUN, 2, UINT32_MAX, 0},
                                                  {TVMRT_STEP_JUMP, STEPS + 1, 0, 0},
                                                  {TVMRT_STEP_JUMP_IF_ZERO, STEPS + 1, 0, S_GO},
                                                  {TVMRT_STEP_JUMP_IF_ZERO, 0, 0, SIDS},
                                                  {TVMRT_STEP_JUMP_IF_ZERO, 0, 0, -1},
                                                  {(tvmrt_step_kind_t)3, 0, 0, 0}};
    uint32_t i;

    (void)state;
    for (i = 0; i < sizeof wrong / sizeof *wrong; i++)
        refuse(i, wrong[i]);
    bind();
    tvmrt_log_clear();
}

/* A condition without bytes ends the run with a record that names the value. */
static void a_condition_without_bytes(void **state)
{
    static const tvmrt_schedule_step_t one[] = {{TVMRT_STEP_JUMP_IF_ZERO, 1, 0, S_LIMIT}};
    tvmrt_schedule_desc_t jump = {layers, OPS, one, 1};
    tvmrt_tensor_map_entry_t empty[SIDS];
    tvmrt_model_desc_t hollow = model;
    tvmrt_log_record_t record;

    (void)state;
    bind();
    memcpy(empty, map, sizeof empty);
    empty[S_LIMIT].size = 0;
    hollow.tensor_map = empty;
    context.model = &hollow;
    context.inputs = NULL;
    tvmrt_log_clear();
    assert_int_equal(tvmrt_engine_run(&context, &jump), TVMRT_E_NULL);
    assert_true(tvmrt_log_pop(&record));
    assert_int_equal(record.code, TVMRT_E_NULL);
    assert_int_equal(record.op_id, S_LIMIT);
    assert_false(tvmrt_log_pop(&record));
    bind();
}

static int open_engine(void **state)
{
    (void)state;
    return tvmrt_engine_init(&engine);
}

static int close_engine(void **state)
{
    (void)state;
    return tvmrt_engine_shutdown(&engine);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(loops_and_branches), cmocka_unit_test(a_failure_ends_the_loop),
                                       cmocka_unit_test(a_condition_without_bytes),
                                       cmocka_unit_test(steps_name_what_is_there)};

    return cmocka_run_group_tests(tests, open_engine, close_engine);
}
