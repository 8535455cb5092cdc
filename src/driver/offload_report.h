/* SPDX-License-Identifier: Apache-2.0 */
/* What is said of a compile in which other targets take parts: who runs what, and why the rest stayed. */
#ifndef LATHE_DRIVER_OFFLOAD_REPORT_H
#define LATHE_DRIVER_OFFLOAD_REPORT_H
#include "graph/pass/offload.h"
#include "prog/prog.h"
#include "type/offload.h"

/* When kernels have their loops: a target may have declined a region. */
void offload_note_runners(compiler *c, offload_log *log, const prog_module *m);
/* Regions, and what stayed with the reason: for a person. */
void offload_show(compiler *c, writer *w, const offload_log *log);
/* Warns of each target that runs nothing of the model: what it takes, and why the rest stayed. */
void offload_warn(compiler *c, const char *path, const struct offload *o);
/* How many of each: a line of the summary. */
void offload_show_short(writer *w, const offload_log *log);
#endif
