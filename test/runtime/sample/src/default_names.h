/* default_names.h: what the files of this package share with each other. Names without the module's name get it here,
 * so that several packages can be linked into one program.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef TVMGEN_DEFAULT_NAMES_H
#define TVMGEN_DEFAULT_NAMES_H

#include "tvmgen_default.h"
#include "tvmgen_default_instance.h"
#include "tvmrt.h"

#define model_get_descriptor     tvmgen_default_model_get_descriptor
#define model_get_tensor_map     tvmgen_default_model_get_tensor_map
#define model_get_op_descs       tvmgen_default_model_get_op_descs
#define model_get_schedule       tvmgen_default_model_get_schedule
#define model_fill_args          tvmgen_default_model_fill_args
#define model_get_op_args        tvmgen_default_model_get_op_args
#define wrapped_fused_add        tvmgen_default_wrapped_fused_add
#define wrapped_fused_add_1      tvmgen_default_wrapped_fused_add_1
#define wrapped_fused_add_2      tvmgen_default_wrapped_fused_add_2
#define wrapped_fused_add_3      tvmgen_default_wrapped_fused_add_3
#define wrapped_fused_subtract   tvmgen_default_wrapped_fused_subtract
#define wrapped_fused_subtract_1 tvmgen_default_wrapped_fused_subtract_1

/* default_lib0.c */
const void *tvmgen_default_get_const_workspace(void);

/* default_lib1.c */
int32_t tvmgen_default___tvm_main__(struct tvmgen_default_inputs *input, struct tvmgen_default_outputs *output,
                                    const void *const_ws, void *ws);

/* model_data.c */
const tvmrt_model_desc_t *model_get_descriptor(void);
const tvmrt_tensor_map_entry_t *model_get_tensor_map(void);
const tvmrt_op_desc_t *model_get_op_descs(void);
const tvmrt_schedule_desc_t *model_get_schedule(void);
int32_t model_fill_args(struct tvmgen_default_instance *instance);
const void *model_get_op_args(const struct tvmgen_default_instance *instance, uint32_t op_id);

/* ops.c */
int32_t wrapped_fused_add(const void *args, uint32_t part, uint32_t parts);
int32_t wrapped_fused_add_1(const void *args, uint32_t part, uint32_t parts);
int32_t wrapped_fused_add_2(const void *args, uint32_t part, uint32_t parts);
int32_t wrapped_fused_add_3(const void *args, uint32_t part, uint32_t parts);
int32_t wrapped_fused_subtract(const void *args, uint32_t part, uint32_t parts);
int32_t wrapped_fused_subtract_1(const void *args, uint32_t part, uint32_t parts);

#endif
