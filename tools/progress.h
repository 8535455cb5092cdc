/* SPDX-License-Identifier: Apache-2.0 */
/* One line on the terminal that says what is being done, for whatever takes longer than a second. */
#ifndef LATHE_TOOLS_PROGRESS_H
#define LATHE_TOOLS_PROGRESS_H
#include "base/compiler.h"

/* Watches `c` (compiler_progress) when standard error is a terminal that can erase a line; else nothing happens here.
 * The line appears after LATHE_PROGRESS_AFTER seconds (default 1). */
void progress_begin(compiler *c);
/* Erases the line, for results follow; it comes back with the next step. */
void progress_hide(compiler *c);
void progress_end(compiler *c);
#endif
