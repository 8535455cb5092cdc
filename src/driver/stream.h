/* SPDX-License-Identifier: Apache-2.0 */
/* --ram and --minimize: the program with the chains that its memory asks for (plan/stream.h). */
#ifndef LATHE_DRIVER_STREAM_H
#define LATHE_DRIVER_STREAM_H
#include "driver/pipeline.h"

/* r->prog, scheduled, becomes one that meets what the options ask for, if anything; r->bounds say what was found.
 * false after a diagnostic. */
bool stream_program(compiler *c, const compile_options *o, const struct target *t, compile_result *r);
/* When the plan is made: what it takes, beside the bounds. */
void stream_note_plan(compile_result *r);
#endif
