/* SPDX-License-Identifier: Apache-2.0 */
/* What a compile begins with (read_model.c); pipeline_load and its kin, of pipeline.h, read without compiling. */
#ifndef LATHE_DRIVER_READ_MODEL_H
#define LATHE_DRIVER_READ_MODEL_H
#include "driver/pipeline.h"

/* The graph of a model or of graph text, with bounds and states as the options say; r gets the states, too, and the
 * hash of the file where that is asked for. */
bool read_graph(compiler *c, const char *path, const compile_options *o, compile_result *r);
/* The program of a computation. Errors: options that are for models. */
bool read_computation(compiler *c, const char *path, const compile_options *o, const struct target *t,
                      prog_module **out);
#endif
