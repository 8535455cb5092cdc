/* SPDX-License-Identifier: Apache-2.0 */
/* Warnings behind a compile (warn.c). */
#ifndef LATHE_DRIVER_WARN_H
#define LATHE_DRIVER_WARN_H
#include "driver/pipeline.h"

void warn_of_options(compiler *c, const char *path, const compile_options *o, const compile_result *r);
#endif
