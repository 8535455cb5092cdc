/* SPDX-License-Identifier: Apache-2.0 */
/* What lies where in the workspace, and when, for pages. */
#ifndef LATHE_DRIVER_HTML_MEMORY_H
#define LATHE_DRIVER_HTML_MEMORY_H
#include "base/json_out.h"
#include "driver/pipeline.h"

/* The workspace as a value of the object that is open: its blocks, the bytes in use in each layer, the peak. */
void html_memory_write(json_out *j, const char *key, compiler *c, const compile_result *r);
#endif
