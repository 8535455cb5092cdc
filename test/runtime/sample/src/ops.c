/* ops.c: the operators of model "default", and the wrappers through which the engine calls them.
 * SPDX-License-Identifier: Apache-2.0 */
#include "default_names.h"

/* Arguments as the engine hands them over: the pointers of an operator's inputs, then of its outputs. */
typedef struct FusedAddArgs {
    void *input;
    void *constant;
    void *output;
} FusedAddArgs;

typedef struct FusedAdd3Args {
    void *sid_2;
    void *sid_5;
    void *output;
} FusedAdd3Args;

/* add: float32 [1] + constant [1] */
static void tvmgen_default_fused_add(const float *input, const float *constant, float *output)
{
    output[0] = input[0] + constant[0];
}

/* subtract: float32 [1] - constant [1] */
static void tvmgen_default_fused_subtract(const float *input, const float *constant, float *output)
{
    output[0] = input[0] - constant[0];
}

/* add: float32 [1] + constant [1] */
static void tvmgen_default_fused_add_1(const float *input, const float *constant, float *output)
{
    output[0] = input[0] + constant[0];
}

/* subtract: float32 [1] - constant [1] */
static void tvmgen_default_fused_subtract_1(const float *input, const float *constant, float *output)
{
    output[0] = input[0] - constant[0];
}

/* add: float32 [1] + constant [1] */
static void tvmgen_default_fused_add_2(const float *input, const float *constant, float *output)
{
    output[0] = input[0] + constant[0];
}

/* add: float32 [1] + float32 [1] */
static void tvmgen_default_fused_add_3(const float *sid_2, const float *sid_5, float *output)
{
    output[0] = sid_2[0] + sid_5[0];
}

int32_t wrapped_fused_add(const void *args, uint32_t part, uint32_t parts)
{
    const FusedAddArgs *a = (const FusedAddArgs *)args;
    (void)part;
    (void)parts;
    tvmgen_default_fused_add((const float *)a->input, (const float *)a->constant, (float *)a->output);
    return 0;
}

int32_t wrapped_fused_subtract(const void *args, uint32_t part, uint32_t parts)
{
    const FusedAddArgs *a = (const FusedAddArgs *)args;
    (void)part;
    (void)parts;
    tvmgen_default_fused_subtract((const float *)a->input, (const float *)a->constant, (float *)a->output);
    return 0;
}

int32_t wrapped_fused_add_1(const void *args, uint32_t part, uint32_t parts)
{
    const FusedAddArgs *a = (const FusedAddArgs *)args;
    (void)part;
    (void)parts;
    tvmgen_default_fused_add_1((const float *)a->input, (const float *)a->constant, (float *)a->output);
    return 0;
}

int32_t wrapped_fused_subtract_1(const void *args, uint32_t part, uint32_t parts)
{
    const FusedAddArgs *a = (const FusedAddArgs *)args;
    (void)part;
    (void)parts;
    tvmgen_default_fused_subtract_1((const float *)a->input, (const float *)a->constant, (float *)a->output);
    return 0;
}

int32_t wrapped_fused_add_2(const void *args, uint32_t part, uint32_t parts)
{
    const FusedAddArgs *a = (const FusedAddArgs *)args;
    (void)part;
    (void)parts;
    tvmgen_default_fused_add_2((const float *)a->input, (const float *)a->constant, (float *)a->output);
    return 0;
}

int32_t wrapped_fused_add_3(const void *args, uint32_t part, uint32_t parts)
{
    const FusedAdd3Args *a = (const FusedAdd3Args *)args;
    (void)part;
    (void)parts;
    tvmgen_default_fused_add_3((const float *)a->sid_2, (const float *)a->sid_5, (float *)a->output);
    return 0;
}
