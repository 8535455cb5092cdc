/* SPDX-License-Identifier: Apache-2.0 */
/* Summarizes a compile in five lines or one JSON object: operators, memory, what stayed slow, where the result is. */
#ifndef LATHE_DRIVER_SUMMARY_H
#define LATHE_DRIVER_SUMMARY_H
#include "driver/pipeline.h"

/* What passes did not do, over all operators. */
tir_left summary_left(const compile_result *r);
/* `place` is the folder of the package. */
void summary_print(compiler *c, writer *w, const compile_result *r, const char *place);
/* Of a module, whose file is `place`. */
/* What row streaming found: bytes of workspace side by side, overlapping, in chains, and what these cost; b may be
 * NULL. */
void summary_print_bounds(writer *w, const struct stream_bounds *b);
void summary_print_module(compiler *c, writer *w, const compile_result *r, const char *place);
void summary_print_json(compiler *c, writer *w, const compile_result *r, const char *place);
#endif
