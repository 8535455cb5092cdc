/* SPDX-License-Identifier: Apache-2.0 */
/* What `lathe schedule` prints. */
#ifndef LATHE_API_SCHEDULE_H
#define LATHE_API_SCHEDULE_H
#include "api/ask.h"

/* Compiles the model as far as schedules and prints them: of the kernel that has that name or runs the node of that
 * name; NULL: of all. False after a diagnostic. */
bool schedule_print(ask *x, const char *path, const compile_options *options, const char *name, writer *w);
#endif
