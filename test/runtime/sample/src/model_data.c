/* model_data.c: tables of model "default": where its tensors are, what its operators are, in which layers they run.
 * SPDX-License-Identifier: Apache-2.0 */
#include "default_names.h"

static const tvmrt_tensor_map_entry_t g_tensor_map[] = {
    /* sid, kind, index, offset, size */
    {0, TVMRT_STORAGE_INPUT, 0, 0, 4},     /* input */
    {1, TVMRT_STORAGE_WORKSPACE, 0, 0, 4}, /* sid_1 = input + 1 */
    {2, TVMRT_STORAGE_WORKSPACE, 0, 0, 4}, /* sid_2 = sid_1 - 2, in place */
    {3, TVMRT_STORAGE_WORKSPACE, 0, 4, 4}, /* sid_3 = input + 3 */
    {4, TVMRT_STORAGE_WORKSPACE, 0, 4, 4}, /* sid_4 = sid_3 - 4, in place */
    {5, TVMRT_STORAGE_WORKSPACE, 0, 4, 4}, /* sid_5 = sid_4 + 5, in place */
    {6, TVMRT_STORAGE_OUTPUT, 0, 0, 4},    /* output = sid_2 + sid_5 */
    {7, TVMRT_STORAGE_CONSTANT, 0, 16, 4}, /* fused_constant_let */
    {8, TVMRT_STORAGE_CONSTANT, 0, 12, 4}, /* fused_constant_1_let */
    {9, TVMRT_STORAGE_CONSTANT, 0, 8, 4},  /* fused_constant_2_let */
    {10, TVMRT_STORAGE_CONSTANT, 0, 4, 4}, /* fused_constant_3_let */
    {11, TVMRT_STORAGE_CONSTANT, 0, 0, 4}, /* fused_constant_4_let */
};

static const int32_t g_op_0_inputs[] = {0, 7}, g_op_0_outputs[] = {1};
static const int32_t g_op_1_inputs[] = {1, 8}, g_op_1_outputs[] = {2};
static const int32_t g_op_2_inputs[] = {0, 9}, g_op_2_outputs[] = {3};
static const int32_t g_op_3_inputs[] = {3, 10}, g_op_3_outputs[] = {4};
static const int32_t g_op_4_inputs[] = {4, 11}, g_op_4_outputs[] = {5};
static const int32_t g_op_5_inputs[] = {2, 5}, g_op_5_outputs[] = {6};

static const tvmrt_op_desc_t g_op_descs[] = {
    /* name, backend, input sids, output sids, inputs, outputs, parts */
    {"tvmgen_default_fused_add", TVMRT_BACKEND_CPU, g_op_0_inputs, g_op_0_outputs, 2, 1, 1},
    {"tvmgen_default_fused_subtract", TVMRT_BACKEND_CPU, g_op_1_inputs, g_op_1_outputs, 2, 1, 1},
    {"tvmgen_default_fused_add_1", TVMRT_BACKEND_CPU, g_op_2_inputs, g_op_2_outputs, 2, 1, 1},
    {"tvmgen_default_fused_subtract_1", TVMRT_BACKEND_CPU, g_op_3_inputs, g_op_3_outputs, 2, 1, 1},
    {"tvmgen_default_fused_add_2", TVMRT_BACKEND_CPU, g_op_4_inputs, g_op_4_outputs, 2, 1, 1},
    {"tvmgen_default_fused_add_3", TVMRT_BACKEND_CPU, g_op_5_inputs, g_op_5_outputs, 2, 1, 1},
};

static const tvmrt_op_func_t g_cpu_func_table[] = {
    wrapped_fused_add,        wrapped_fused_subtract, wrapped_fused_add_1,
    wrapped_fused_subtract_1, wrapped_fused_add_2,    wrapped_fused_add_3,
};

static const uint16_t g_layer_0_ops[] = {0, 2};
static const uint16_t g_layer_1_ops[] = {1, 3};
static const uint16_t g_layer_2_ops[] = {4};
static const uint16_t g_layer_3_ops[] = {5};

static const tvmrt_schedule_layer_t g_schedule_layers[] = {
    /* operators, count, tasks */
    {g_layer_0_ops, 2, 2},
    {g_layer_1_ops, 2, 2},
    {g_layer_2_ops, 1, 1},
    {g_layer_3_ops, 1, 1},
};

static const tvmrt_schedule_desc_t g_schedule = {g_schedule_layers, 4, NULL, 0};

static const tvmrt_model_desc_t g_model = {
    3u, /* TVMRT_ABI_VERSION of these tables */
    "default",
    TVMGEN_DEFAULT_NUM_INPUTS,
    TVMGEN_DEFAULT_NUM_OUTPUTS,
    12,
    TVMGEN_DEFAULT_NUM_OPS,
    g_tensor_map,
    g_op_descs,
    g_cpu_func_table,
    &g_schedule,
    TVMGEN_DEFAULT_CONST_SIZE,
    TVMGEN_DEFAULT_CONST_ALIGN,
    TVMGEN_DEFAULT_WORKSPACE_SIZE,
    TVMGEN_DEFAULT_WORKSPACE_ALIGN,
};

const tvmrt_model_desc_t *model_get_descriptor(void)
{
    return &g_model;
}

const tvmrt_tensor_map_entry_t *model_get_tensor_map(void)
{
    return g_tensor_map;
}

const tvmrt_op_desc_t *model_get_op_descs(void)
{
    return g_op_descs;
}

const tvmrt_schedule_desc_t *model_get_schedule(void)
{
    return &g_schedule;
}

int32_t model_fill_args(struct tvmgen_default_instance *instance)
{
    return tvmrt_semantic_fill_args(&instance->context, instance->args, TVMGEN_DEFAULT_NUM_ARGS, instance->op_execs);
}

const void *model_get_op_args(const struct tvmgen_default_instance *instance, uint32_t op_id)
{
    return op_id < TVMGEN_DEFAULT_NUM_OPS ? instance->op_execs[op_id].args : NULL;
}
