/* SPDX-License-Identifier: Apache-2.0 */
/* A package of several functions: one for each signature that was asked for. */
#ifndef LATHE_DRIVER_FUNCTIONS_H
#define LATHE_DRIVER_FUNCTIONS_H
#include "driver/pipeline.h"

/* As pipeline_compile, for o->n_signatures > 1: *out is the first one's result, with the units and the package of all.
 */
bool functions_compile(compiler *c, const char *path, const compile_options *o, compile_result *out);
#endif
