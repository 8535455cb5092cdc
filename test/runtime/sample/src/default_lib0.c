/* default_lib0.c: memory of model "default": its constants, its static workspace, and the entry that uses both.
 * SPDX-License-Identifier: Apache-2.0 */
#include "default_names.h"

TVMRT_ALIGNED(64) static const struct global_const_workspace {
    float fused_constant_4_let[1]; /* offset 0 */
    float fused_constant_3_let[1]; /* offset 4 */
    float fused_constant_2_let[1]; /* offset 8 */
    float fused_constant_1_let[1]; /* offset 12 */
    float fused_constant_let[1];   /* offset 16 */
} global_const_workspace = {
    {5.0f}, {4.0f}, {3.0f}, {2.0f}, {1.0f},
};

const void *tvmgen_default_get_const_workspace(void)
{
    return &global_const_workspace;
}

#ifndef TVMGEN_DEFAULT_NO_STATIC_WORKSPACE
#ifdef TVMGEN_DEFAULT_WORKSPACE_SECTION
TVMRT_SECTION(TVMGEN_DEFAULT_WORKSPACE_SECTION)
#endif
TVMRT_ALIGNED(TVMGEN_DEFAULT_WORKSPACE_ALIGN) static uint8_t global_workspace[TVMGEN_DEFAULT_WORKSPACE_SIZE];

int32_t tvmgen_default_run(struct tvmgen_default_inputs *inputs, struct tvmgen_default_outputs *outputs)
{
    return tvmgen_default___tvm_main__(inputs, outputs, &global_const_workspace, global_workspace);
}
#endif
