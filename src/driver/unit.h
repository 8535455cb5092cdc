/* SPDX-License-Identifier: Apache-2.0 */
/* What back ends get, and their call (unit.c). */
#ifndef LATHE_DRIVER_UNIT_H
#define LATHE_DRIVER_UNIT_H
#include "driver/pipeline.h"

/* Whether names in generated C may begin so; else an error. */
bool unit_check_name(compiler *c, const char *name);
/* out->unit and out->plan, of out->prog. path: the model's file. Errors: the memory that it takes. */
bool unit_make(compiler *c, const char *path, const compile_options *o, const struct target *t, compile_result *out);
/* The artifact of r->units. */
bool unit_write(compiler *c, const compile_options *o, compile_result *r);
#endif
