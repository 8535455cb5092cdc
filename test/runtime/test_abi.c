/* test_abi.c: the compiler's view of the package format and the runtime's are the same.
 * SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "package.h"
#include "tvmrt.h"

static void constants_agree(void **state)
{
    (void)state;
    assert_int_equal(PACKAGE_ABI_VERSION, TVMRT_ABI_VERSION);
    assert_int_equal(PACKAGE_MAX_LAYER_TASKS, TVMRT_MAX_LAYER_TASKS);
    assert_int_equal(PACKAGE_MAX_WORKERS, TVMRT_MAX_WORKERS);
    assert_int_equal(PACKAGE_STORAGE_INPUT, TVMRT_STORAGE_INPUT);
    assert_int_equal(PACKAGE_STORAGE_OUTPUT, TVMRT_STORAGE_OUTPUT);
    assert_int_equal(PACKAGE_STORAGE_CONSTANT, TVMRT_STORAGE_CONSTANT);
    assert_int_equal(PACKAGE_STORAGE_WORKSPACE, TVMRT_STORAGE_WORKSPACE);
    assert_int_equal(PACKAGE_BACKEND_CPU, TVMRT_BACKEND_CPU);
    assert_int_equal(PACKAGE_BACKEND_VTA, TVMRT_BACKEND_VTA);
    assert_int_equal(PACKAGE_BACKEND_EXTERNAL, TVMRT_BACKEND_EXTERNAL);
    assert_int_equal(PACKAGE_STEP_RUN, TVMRT_STEP_RUN);
    assert_int_equal(PACKAGE_STEP_JUMP, TVMRT_STEP_JUMP);
    assert_int_equal(PACKAGE_STEP_JUMP_IF_ZERO, TVMRT_STEP_JUMP_IF_ZERO);
    assert_int_equal(PACKAGE_STATUS_OK, TVMRT_OK);
    assert_int_equal(PACKAGE_STATUS_SHAPE, TVMRT_E_SHAPE);
    assert_int_equal(PACKAGE_STATUS_INDEX, TVMRT_E_INDEX);
    assert_int_equal(PACKAGE_STATUS_LIBRARY, TVMRT_E_LIBRARY);
    assert_int_equal(PACKAGE_STATUS_EXTENT, TVMRT_E_EXTENT);
#define CHECK_TEXT(name, value, text) assert_string_equal(tvmrt_status_text(value), text);
    PACKAGE_STATUSES(CHECK_TEXT)
#undef CHECK_TEXT
}

static void field_widths_agree(void **state)
{
    tvmrt_schedule_layer_t layer;
    tvmrt_op_desc_t desc;

    (void)state;
    assert_int_equal(PACKAGE_MAX_OPS, (1u << 8 * sizeof(layer.op_ids[0])) - 1);
    assert_int_equal(PACKAGE_MAX_OP_TENSORS, (1u << 8 * sizeof(desc.num_inputs)) - 1);
    assert_int_equal(sizeof(desc.num_outputs), sizeof(desc.num_inputs));
    assert_int_equal(sizeof(struct package_log_record), sizeof(tvmrt_log_record_t));
    assert_int_equal(offsetof(struct package_log_record, code), offsetof(tvmrt_log_record_t, code));
    assert_int_equal(offsetof(struct package_log_record, op_id), offsetof(tvmrt_log_record_t, op_id));
}

static void value_alignment(void **state)
{
    static const uint32_t rows[][2] = {{0, 1}, {1, 1},   {2, 2},   {3, 2},   {4, 4},
                                       {7, 4}, {20, 16}, {63, 32}, {64, 64}, {1000, 64}};
    size_t i;

    (void)state;
    for (i = 0; i < sizeof rows / sizeof rows[0]; i++)
        assert_int_equal(package_value_align(rows[i][0]), rows[i][1]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(constants_agree),
        cmocka_unit_test(field_widths_agree),
        cmocka_unit_test(value_alignment),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
