/* SPDX-License-Identifier: Apache-2.0 */
/* The targets of a compile (widths.c). */
#ifndef LATHE_DRIVER_WIDTHS_H
#define LATHE_DRIVER_WIDTHS_H
#include "driver/pipeline.h"

/* The target with the schedule's workers that were asked for: schedules cut their work for them. */
const struct target *widths_target(compiler *c, const compile_options *o);
/* What has to be compiled: t, or those that stand for it in a module. How many; 0 after a diagnostic. */
uint32_t widths_of(compiler *c, const compile_options *o, const struct target *t, const struct target **out);
#endif
