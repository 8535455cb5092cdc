/* default_lib1.c: connects model "default" to the runtime: fills the operator table and starts the engine.
 * SPDX-License-Identifier: Apache-2.0 */
#include "default_names.h"

/* Functions and arguments of all operators, for the inputs and outputs of this run. */
static int32_t init_op_execs(struct tvmgen_default_instance *instance)
{
    return model_fill_args(instance);
}

static int32_t instance_setup(struct tvmgen_default_instance *instance, tvmrt_engine_t *engine, size_t engine_size,
                              const void *const_ws, void *ws, size_t ws_size)
{
    int32_t status = tvmrt_semantic_init(&instance->context, model_get_descriptor(), const_ws, ws, ws_size);
    if (status != TVMRT_OK)
        return status;
    status = tvmrt_engine_init_sized(engine, engine_size);
    if (status != TVMRT_OK) {
        instance->context.model = NULL; /* not initialized, as after any other error */
        return status;
    }
    instance->context.engine = engine;
    instance->context.inputs = instance->inputs;
    instance->context.outputs = instance->outputs;
    instance->context.op_execs = instance->op_execs;
    return TVMRT_OK;
}

int32_t tvmgen_default_instance_init_sized(struct tvmgen_default_instance *instance, size_t instance_size,
                                           tvmrt_engine_t *engine, size_t engine_size, void *workspace,
                                           size_t workspace_size)
{
    if (instance == NULL)
        return TVMRT_E_NULL;
    if (instance_size != sizeof *instance)
        return TVMRT_E_ABI; /* nothing of it may be touched */
    return instance_setup(instance, engine, engine_size, tvmgen_default_get_const_workspace(), workspace,
                          workspace_size);
}

int32_t tvmgen_default_instance_set_workers(struct tvmgen_default_instance *instance, uint32_t max_workers)
{
    if (instance == NULL)
        return TVMRT_E_NULL;
    instance->context.max_workers = max_workers;
    return TVMRT_OK;
}

int32_t tvmgen_default_run_instance(struct tvmgen_default_instance *instance, struct tvmgen_default_inputs *inputs,
                                    struct tvmgen_default_outputs *outputs)
{
    int32_t status;

    if (instance == NULL || inputs == NULL || outputs == NULL)
        return TVMRT_E_NULL;
    instance->inputs[0] = inputs->input;
    instance->outputs[0] = outputs->output;
    status = init_op_execs(instance);
    if (status != TVMRT_OK)
        return status;
    return tvmrt_engine_run(&instance->context, model_get_schedule());
}

#ifndef TVMGEN_DEFAULT_NO_STATIC_WORKSPACE
int32_t tvmgen_default___tvm_main__(struct tvmgen_default_inputs *input, struct tvmgen_default_outputs *output,
                                    const void *const_ws, void *ws)
{
    static struct tvmgen_default_instance instance; /* of tvmgen_default_run, which is not re-entrant */

    if (instance.context.model == NULL || instance.context.workspace != ws ||
        instance.context.const_workspace != const_ws) {
        int32_t status = instance_setup(&instance, NULL, 0, const_ws, ws, TVMGEN_DEFAULT_WORKSPACE_SIZE);
        if (status != TVMRT_OK)
            return status;
    }
    return tvmgen_default_run_instance(&instance, input, output);
}
#endif
