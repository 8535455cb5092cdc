/* SPDX-License-Identifier: Apache-2.0 */
/* One self-contained page about a compile: bounds, operators, graph, timeline of layers and workers, map of the
 * workspace. */
#ifndef LATHE_DRIVER_HTML_H
#define LATHE_DRIVER_HTML_H
#include "driver/pipeline.h"
#include "driver/profile.h"

/* Pictures are inline SVG; nothing is loaded from elsewhere. Times of the timeline are estimates from the work of each
 * operator; those of the table are measured, where p (NULL: nothing was) has a row for each. */
void html_write(compiler *c, writer *w, const compile_result *r, const profile_page *p);
#endif
