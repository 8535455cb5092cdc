/* SPDX-License-Identifier: Apache-2.0 */
/* When which worker does what, for pages: measured, or estimated from the operations of each kernel. */
#ifndef LATHE_DRIVER_HTML_TIMELINE_H
#define LATHE_DRIVER_HTML_TIMELINE_H
#include "base/json_out.h"
#include "driver/html.h"

/* What a kernel takes, by the numbers of its target. */
typedef struct html_estimate {
    double amount; /* cycles of one core, or instructions where the target has 32 bits */
    double sums, bytes; /* cycles that its multiply-adds, and its bytes, take at least; 0: not known */
} html_estimate;

bool html_counts_instructions(const compile_result *r);
html_estimate html_estimate_of(compiler *c, const compile_result *r, uint32_t op);
/* The timeline as a value of the object that is open. `estimates`: of each operator. */
void html_timeline_write(json_out *j, const char *key, const html_page *p, const html_estimate *estimates);
#endif
