/* SPDX-License-Identifier: Apache-2.0 */
/* Computations as files (docs/reference/schedule.md): text with one computation or several, each with a schedule behind
 * a line "--- schedule" or "--- schedule for TARGET", or without; and one of them as a program, which goes the way of
 * every other one. */
#ifndef LATHE_DRIVER_COMPUTATION_H
#define LATHE_DRIVER_COMPUTATION_H
#include "base/file.h"
#include "prog/prog.h"
#include "te/records.h"

/* Text that is read from a file; the lines before it are empty, so that messages tell the right one. */
typedef struct computation {
    const char *file, *schedule_file;
    const char *name;    /* what a remark before it says; NULL: nothing */
    const char *target;  /* that the schedule is for; NULL: any */
    span text, schedule; /* schedule.data NULL: it has none */
} computation;

/* The computation at *at of the file's bytes, and *at behind it. */
computation computation_take(compiler *c, const char *file, span s, size_t *at);
/* The one computation of a file, with the schedule of another file where one is named. Errors: several computations,
 * two schedules. */
bool computation_read(compiler *c, const char *file, span s, const char *schedule_file, computation *out);
/* Says that --schedules is not for a computation; false. */
bool computation_refuses_schedules(compiler *c, const char *file);
/* Adds all computations of a file that have a schedule to the records. Errors: those of te_records_add; there is none;
 * a target that is not there. */
bool computation_read_records(compiler *c, const char *file, te_records *out);
/* Its loops under its schedule and under no other: nothing is inlined or placed by itself. `plain`: without it. */
bool computation_lower(compiler *c, const computation *t, bool plain, const char *name, tir_func **out);
/* The loops of k, whose name is set: plain ones, and those of the schedule where there is one. Errors: as
 * computation_program. */
bool computation_kernel(compiler *c, const computation *t, const struct target *runs, prog_kernel *k);
/* A function main that runs kernels of one computation, one behind the other, on the same operands. */
bool computation_together(compiler *c, uint32_t n, prog_kernel *const *kernels, prog_module **out);
/* A function main of one kernel. Errors: extents that are no numbers. */
bool computation_program(compiler *c, const computation *t, const struct target *runs, prog_module **out);
/* Whether all extents of f are numbers; false after a diagnostic. */
bool computation_has_numbers(compiler *c, const tir_func *f);
/* Passes on f alone: names as tir_run_passes takes them. */
bool computation_passes(compiler *c, tir_func *f, const char *passes);
#endif
