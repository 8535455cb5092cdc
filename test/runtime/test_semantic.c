/* test_semantic.c: storage ids become addresses; what is wrong becomes a status and a log record.
 * SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "mesh.h"

static mesh model;
static mesh_instance instance;

static int open_model(void **state)
{
    (void)state;
    mesh_make(&model, 1);
    tvmrt_log_clear();
    return mesh_open(&instance, &model, NULL, 0);
}

/* The call gave `status`, and the newest record says so about `id`. */
static void expect_logged(int32_t got, int32_t status, int32_t id)
{
    tvmrt_log_record_t r = {TVMRT_LOG_DEBUG, 0, 0};

    assert_int_equal(got, status);
    while (tvmrt_log_pop(&r))
        ;
    assert_int_equal(r.level, TVMRT_LOG_ERROR);
    assert_int_equal(r.code, status);
    assert_int_equal(r.op_id, id);
}

static void resolves_all_kinds(void **state)
{
    void *p = NULL;

    (void)state;
    assert_int_equal(tvmrt_semantic_resolve_sid(&instance.context, 0, &p), TVMRT_OK);
    assert_ptr_equal(p, instance.input);
    assert_int_equal(tvmrt_semantic_resolve_sid(&instance.context, SIDS - 1, &p), TVMRT_OK);
    assert_ptr_equal(p, instance.output);
    assert_int_equal(tvmrt_semantic_resolve_sid(&instance.context, 3, &p), TVMRT_OK);
    assert_ptr_equal(p, instance.workspace + 2 * VALUE);
    assert_int_equal(tvmrt_semantic_resolve_sid(&instance.context, 1 + OPS + 4, &p), TVMRT_OK);
    assert_ptr_equal(p, &model.constants[4]);
    assert_int_equal(tvmrt_log_count(), 0);
}

static void refuses_bad_ids(void **state)
{
    void *p = &p;

    (void)state;
    expect_logged(tvmrt_semantic_resolve_sid(&instance.context, -1, &p), TVMRT_E_SID, -1);
    assert_null(p);
    expect_logged(tvmrt_semantic_resolve_sid(&instance.context, SIDS, &p), TVMRT_E_SID, SIDS);
    model.map[5].sid = 6;
    expect_logged(tvmrt_semantic_resolve_sid(&instance.context, 5, &p), TVMRT_E_SID, 5);
    model.map[6].offset = sizeof instance.workspace - VALUE + 1;
    expect_logged(tvmrt_semantic_resolve_sid(&instance.context, 6, &p), TVMRT_E_SID, 6);
    model.map[6].offset = SIZE_MAX;
    expect_logged(tvmrt_semantic_resolve_sid(&instance.context, 6, &p), TVMRT_E_SID, 6);
    model.map[1 + OPS].offset = sizeof model.constants;
    expect_logged(tvmrt_semantic_resolve_sid(&instance.context, 1 + OPS, &p), TVMRT_E_SID, 1 + OPS);
    model.map[0].index = 1;
    expect_logged(tvmrt_semantic_resolve_sid(&instance.context, 0, &p), TVMRT_E_SID, 0);
    model.map[SIDS - 1].index = 1;
    expect_logged(tvmrt_semantic_resolve_sid(&instance.context, SIDS - 1, &p), TVMRT_E_SID, SIDS - 1);
}

static void refuses_null_buffers(void **state)
{
    void *p = NULL;

    (void)state;
    instance.inputs[0] = NULL;
    expect_logged(tvmrt_semantic_resolve_sid(&instance.context, 0, &p), TVMRT_E_NULL, 0);
    model.map[0].size = 0;
    assert_int_equal(tvmrt_semantic_resolve_sid(&instance.context, 0, &p), TVMRT_OK);
    assert_null(p);
    instance.context.outputs = NULL;
    expect_logged(tvmrt_semantic_fill_args(&instance.context, instance.args, ARGS, instance.execs), TVMRT_E_NULL,
                  SIDS - 1);
}

static void init_checks_its_arguments(void **state)
{
    tvmrt_context_t c;
    uint8_t *ws = instance.workspace;
    const size_t size = sizeof instance.workspace;

    (void)state;
    expect_logged(tvmrt_semantic_init(NULL, &model.model, model.constants, ws, size), TVMRT_E_NULL, -1);
    expect_logged(tvmrt_semantic_init(&c, NULL, model.constants, ws, size), TVMRT_E_NULL, -1);
    expect_logged(tvmrt_semantic_init(&c, &model.model, NULL, ws, size), TVMRT_E_NULL, -1);
    expect_logged(tvmrt_semantic_init(&c, &model.model, (uint8_t *)model.constants + 2, ws, size), TVMRT_E_ALIGNMENT,
                  -1);
    expect_logged(tvmrt_semantic_init(&c, &model.model, model.constants, NULL, size), TVMRT_E_NULL, -1);
    expect_logged(tvmrt_semantic_init(&c, &model.model, model.constants, ws, size - 1), TVMRT_E_WORKSPACE, -1);
    expect_logged(tvmrt_semantic_init(&c, &model.model, model.constants, ws + 32, size), TVMRT_E_ALIGNMENT, -1);
    model.model.abi_version++;
    expect_logged(tvmrt_semantic_init(&c, &model.model, model.constants, ws, size), TVMRT_E_ABI, -1);
    expect_logged(tvmrt_engine_run(&c, &model.schedule), TVMRT_E_STATE, -1);
    model.model.abi_version--;
    model.model.workspace_bytes = 0;
    model.model.const_bytes = 0;
    assert_int_equal(tvmrt_semantic_init(&c, &model.model, NULL, NULL, 0), TVMRT_OK);
}

static void fill_args_in_order(void **state)
{
    uint32_t op, k;
    void *p;

    (void)state;
    for (op = 0; op < OPS; op++) {
        assert_ptr_equal(instance.execs[op].func, mesh_kernel);
        assert_ptr_equal(instance.execs[op].args, &instance.args[4 * op]);
        for (k = 0; k < 4; k++) {
            int32_t sid = k < 3 ? model.in[op][k] : model.out[op][0];
            assert_int_equal(tvmrt_semantic_resolve_sid(&instance.context, sid, &p), TVMRT_OK);
            assert_ptr_equal(instance.args[4 * op + k], p);
        }
    }
    expect_logged(tvmrt_semantic_fill_args(&instance.context, instance.args, ARGS - 1, instance.execs), TVMRT_E_SID,
                  SIDS - 1);
    expect_logged(tvmrt_semantic_fill_args(&instance.context, instance.args, ARGS + 1, instance.execs), TVMRT_E_SID,
                  -1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(resolves_all_kinds, open_model),
        cmocka_unit_test_setup(refuses_bad_ids, open_model),
        cmocka_unit_test_setup(refuses_null_buffers, open_model),
        cmocka_unit_test_setup(init_checks_its_arguments, open_model),
        cmocka_unit_test_setup(fill_args_in_order, open_model),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
