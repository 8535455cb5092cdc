/* tvmgen_default_instance.h: the storage of one instance of model "default", for programs that run several. Members
 * belong to the package.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef TVMGEN_DEFAULT_INSTANCE_H
#define TVMGEN_DEFAULT_INSTANCE_H

#include "tvmgen_default.h"
#include "tvmrt.h"

#define TVMGEN_DEFAULT_NUM_OPS  6
#define TVMGEN_DEFAULT_NUM_ARGS 18 /* pointers to inputs and outputs of all operators */

struct tvmgen_default_instance {
    tvmrt_context_t context;
    const void *inputs[TVMGEN_DEFAULT_NUM_INPUTS];
    void *outputs[TVMGEN_DEFAULT_NUM_OUTPUTS];
    tvmrt_op_exec_t op_execs[TVMGEN_DEFAULT_NUM_OPS];
    void *args[TVMGEN_DEFAULT_NUM_ARGS];
};

#ifdef __cplusplus
extern "C" {
#endif

/* `engine` may be NULL: the program's default engine. `workspace` has `workspace_size` >= TVMGEN_DEFAULT_WORKSPACE_SIZE
 * bytes, aligned to TVMGEN_DEFAULT_WORKSPACE_ALIGN; it belongs to the instance until the instance is no longer used.
 * Both have the size that TVMRT_ macros give them, so the caller states the sizes of its own: TVMRT_E_ABI
 * when the package was compiled with others. After an error init can be called again. */
int32_t tvmgen_default_instance_init_sized(struct tvmgen_default_instance *instance, size_t instance_size,
                                           tvmrt_engine_t *engine, size_t engine_size, void *workspace,
                                           size_t workspace_size);
static inline int32_t tvmgen_default_instance_init(struct tvmgen_default_instance *instance, tvmrt_engine_t *engine,
                                                   void *workspace, size_t workspace_size)
{
    return tvmgen_default_instance_init_sized(instance, sizeof *instance, engine, sizeof(tvmrt_engine_t), workspace,
                                              workspace_size);
}

#ifdef __cplusplus
}
#endif

#endif
