/* SPDX-License-Identifier: Apache-2.0 */
/* Where the time of a package goes: each operator's, by worker, beside what one core of this machine can do at most. */
#ifndef LATHE_DRIVER_PROFILE_H
#define LATHE_DRIVER_PROFILE_H
#include "driver/run.h"

enum { PROFILE_SIZES = 4 }; /* buffers of which the reading is timed: one for each level of caches, and memory */

typedef struct profile_machine {
    double flops; /* floating-point operations of a second in registers, one core */
    struct {
        int64_t bytes;
        double rate; /* bytes that one core reads in a second, of a buffer of so many */
    } reads[PROFILE_SIZES];
} profile_machine;

typedef struct profile_operator {
    double seconds;  /* of a run, the busiest worker's: the median of the rounds */
    double *workers; /* of each worker: the mean over all rounds */
    double *rounds;
} profile_operator;

typedef struct profile {
    profile_machine machine;
    profile_operator *operators; /* those of the report, in its order */
    uint32_t n_operators, n_workers, n_rounds;
    double seconds; /* of a run, all operators together */
} profile;

/* Before run_build: the package is built with hooks, and with runtime/profile/profile.c, which lies in `scratch`. */
bool profile_prepare(compiler *c, const char *scratch, uint32_t workers, run_model *m);
/* Before run_build: the package tells the compiler that builds it, once it runs. */
bool profile_prepare_compiler(compiler *c, const char *scratch, run_model *m);
/* Of a package that is loaded; NULL after a diagnostic. */
const char *profile_compiler(compiler *c, const run_model *m);
/* Times of m, which is built: `rounds` of a quarter of a second each, or of one call where that takes longer. False
 * after a diagnostic: a run failed. */
bool profile_take(compiler *c, run_model *m, uint32_t rounds, profile *out);
/* What `bench --profile --json` wrote, or `verify --json` on a board of an emulator, for the page of inspect: one row
 * for each operator, in order. */
typedef struct profile_row {
    const char *kernel, *bound;
    double ms, share_of_peak;
    double instructions; /* on a board; the rest of the numbers is 0 then */
    const double *worker_ms;
    uint32_t n_workers;
} profile_row;
typedef struct profile_page {
    profile_row *rows;
    uint32_t n;
    const char *board; /* that instructions were counted on; NULL: times were measured */
} profile_page;
/* Errors: the file cannot be read, or holds neither. */
bool profile_read(compiler *c, const char *file, profile_page *out);
/* The least time that an operator's work takes on one core, in seconds: its sums, or its bytes at the rate of the
 * smallest buffer that holds them, whichever is more. */
double profile_least(const profile_machine *m, const run_operator *op, bool *out_by_bytes);
/* The share of what its workers could do that operator i of the report reached. */
double profile_share_of_peak(const profile *p, const run_report *r, uint32_t i, bool *out_by_bytes);
/* One object, an operator a line: the result of `bench --profile --json` (docs/reference/report.md). */
void profile_write_json(writer *w, const run_report *r, const profile *p);
#endif
