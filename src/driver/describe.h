/* SPDX-License-Identifier: Apache-2.0 */
/* What a compile tells of its model (describe.c). */
#ifndef LATHE_DRIVER_DESCRIBE_H
#define LATHE_DRIVER_DESCRIBE_H
#include "driver/pipeline.h"

/* Before passes change the graph: its nodes, spans of inputs, and the page's picture of it where one is made. */
void describe_model(compiler *c, const compile_options *o, compile_result *r);
/* How the model quantizes that input or output of main; NULL: not at all, or not by one scale. */
const number_end *describe_scale(const compile_result *r, const char *name, bool is_input);
/* Behind them: their remarks, and whether it computes in integers. What stayed in float is counted again where a pass
 * could tell. */
void describe_passes(compiler *c, const compile_options *o, compile_result *r);
#endif
