/* test_log.c: the log ring: order, overflow, callback, and many threads that push and pop at the same time.
 * SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <pthread.h>

#include "tvmrt.h"

static int reset(void **state)
{
    (void)state;
    tvmrt_log_set_callback(NULL);
    tvmrt_log_clear();
    return 0;
}

static void keeps_order_and_fields(void **state)
{
    tvmrt_log_record_t r;

    (void)state;
    assert_false(tvmrt_log_pop(&r));
    tvmrt_log_push(TVMRT_LOG_WARNING, -7, 3);
    tvmrt_log_push(TVMRT_LOG_ERROR, 12, -1);
    assert_int_equal(tvmrt_log_count(), 2);
    assert_true(tvmrt_log_pop(&r));
    assert_int_equal(r.level, TVMRT_LOG_WARNING);
    assert_int_equal(r.code, -7);
    assert_int_equal(r.op_id, 3);
    assert_true(tvmrt_log_pop(&r));
    assert_int_equal(r.level, TVMRT_LOG_ERROR);
    assert_int_equal(r.code, 12);
    assert_false(tvmrt_log_pop(&r));
    assert_int_equal(tvmrt_log_count(), 0);
}

static void drops_the_oldest(void **state)
{
    tvmrt_log_record_t r;
    int32_t i;

    (void)state;
    for (i = 0; i < 3 * TVMRT_LOG_CAPACITY + 5; i++)
        tvmrt_log_push(TVMRT_LOG_INFO, i, i);
    assert_int_equal(tvmrt_log_count(), TVMRT_LOG_CAPACITY);
    assert_int_equal(tvmrt_log_dropped(), 2 * TVMRT_LOG_CAPACITY + 5);
    for (i = 0; i < TVMRT_LOG_CAPACITY; i++) {
        assert_true(tvmrt_log_pop(&r));
        assert_int_equal(r.code, 2 * TVMRT_LOG_CAPACITY + 5 + i);
    }
    assert_false(tvmrt_log_pop(&r));
}

static void clear_empties(void **state)
{
    tvmrt_log_record_t r;
    int32_t i;

    (void)state;
    for (i = 0; i < TVMRT_LOG_CAPACITY + 1; i++)
        tvmrt_log_push(TVMRT_LOG_DEBUG, i, -1);
    tvmrt_log_clear();
    assert_int_equal(tvmrt_log_count(), 0);
    assert_int_equal(tvmrt_log_dropped(), 0);
    assert_false(tvmrt_log_pop(&r));
}

static int32_t seen_sum;
static void on_record(const tvmrt_log_record_t *record)
{
    __atomic_add_fetch(&seen_sum, record->code, __ATOMIC_SEQ_CST);
}

static void callback_sees_every_record(void **state)
{
    int32_t i;

    (void)state;
    seen_sum = 0;
    tvmrt_log_set_callback(on_record);
    for (i = 1; i <= 100; i++)
        tvmrt_log_push(TVMRT_LOG_INFO, i, -1);
    tvmrt_log_set_callback(NULL);
    tvmrt_log_push(TVMRT_LOG_INFO, 1000, -1);
    assert_int_equal(seen_sum, 5050);
}

enum { THREADS = 4, EACH = 20000 };
static uint32_t popped, torn;

static void check(const tvmrt_log_record_t *r)
{
    __atomic_add_fetch(&popped, 1, __ATOMIC_SEQ_CST);
    if (r->op_id != ~r->code)
        __atomic_add_fetch(&torn, 1, __ATOMIC_SEQ_CST);
}

static void *pusher(void *arg)
{
    int32_t base = *(int32_t *)arg, i;
    tvmrt_log_record_t r;

    for (i = 0; i < EACH; i++) {
        tvmrt_log_push(TVMRT_LOG_INFO, base + i, ~(base + i));
        if (i % 3 == 0 && tvmrt_log_pop(&r))
            check(&r);
    }
    return NULL;
}

/* Every record pushed is popped or counted as dropped, and none is torn. */
static void many_threads(void **state)
{
    pthread_t threads[THREADS];
    int32_t base[THREADS];
    tvmrt_log_record_t r;
    int32_t i;

    (void)state;
    popped = torn = 0;
    for (i = 0; i < THREADS; i++) {
        base[i] = i * EACH;
        assert_int_equal(pthread_create(&threads[i], NULL, pusher, &base[i]), 0);
    }
    for (i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    while (tvmrt_log_pop(&r))
        check(&r);
    assert_int_equal(torn, 0);
    assert_int_equal(popped + tvmrt_log_dropped(), THREADS * EACH);
}

static void status_texts(void **state)
{
    (void)state;
    assert_string_equal(tvmrt_status_text(0), "success");
    assert_string_equal(tvmrt_status_text(TVMRT_E_SID), "storage id is not in the tensor map");
    assert_string_equal(tvmrt_status_text(12345), "status of a kernel");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(keeps_order_and_fields, reset),
        cmocka_unit_test_setup(drops_the_oldest, reset),
        cmocka_unit_test_setup(clear_empties, reset),
        cmocka_unit_test_setup(callback_sees_every_record, reset),
        cmocka_unit_test_setup(many_threads, reset),
        cmocka_unit_test(status_texts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
