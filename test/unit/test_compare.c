/* SPDX-License-Identifier: Apache-2.0 */
/* Which differences of two tensors are within the tolerance: the usual one knows how large floats are. */
#include "driver/run.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

enum { COUNT = 3 };

static int64_t wrong(dtype dt, void *got, const void *want, double atol)
{
    const run_tensor t = {.dt = dt, .count = COUNT, .data = got};
    return compare_tensors(&t, want, COMPARE_RTOL, atol).wrong;
}

/* An element near 0 beside large ones has the rounding errors of their sums. */
static void floats_by_their_size(void **state)
{
    (void)state;
    const float want[COUNT] = {100, -100, 0.25f}, small[COUNT] = {1, -1, 0.25f};
    float near_large[COUNT] = {100, -100, 0.258f}, near_small[COUNT] = {1, -1, 0.258f},
          far[COUNT] = {100, -100, 0.27f}, large_far[COUNT] = {100.2f, -100, 0.25f};
    assert_int_equal(wrong(DT_F32, near_large, want, -1), 0);
    assert_int_equal(wrong(DT_F32, near_large, want, COMPARE_ATOL), 1);
    assert_int_equal(wrong(DT_F32, near_small, small, -1), 1);
    assert_int_equal(wrong(DT_F32, far, want, -1), 1);
    assert_int_equal(wrong(DT_F32, large_far, want, -1), 1);
}

static void integers_are_not(void **state)
{
    (void)state;
    const int32_t want[COUNT] = {100000, -100000, 2};
    int32_t near_large[COUNT] = {100001, -100000, 2}, small[COUNT] = {100000, -100000, 3};
    assert_int_equal(wrong(DT_I32, near_large, want, -1), 0);
    assert_int_equal(wrong(DT_I32, small, want, -1), 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(floats_by_their_size), cmocka_unit_test(integers_are_not)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
