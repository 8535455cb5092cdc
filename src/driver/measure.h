/* SPDX-License-Identifier: Apache-2.0 */
/* Candidates for one kernel, measured: they become one package, which goes through a pipe to a program that builds it,
 * compares what its kernels compute, and times them in turns. That program is `lathe measure`, here or elsewhere. */
#ifndef LATHE_DRIVER_MEASURE_H
#define LATHE_DRIVER_MEASURE_H
#include "driver/run.h"

/* The package of a computation under each schedule; its first operator has none: what the others are compared with.
 * in_package[i]: the number of schedule i's operator, 0: it cannot be lowered, or the loops have more left undone than
 * those of schedule 0. False after a diagnostic: the computation itself, or schedule 0. */
bool measure_package(compiler *c, const char *computation, const char *const *schedules, uint32_t n,
                     const struct target *t, uint32_t *in_package, artifact *out);
/* As much of it as goes through a pipe, in one piece. */
bool measure_send(const process *p, const artifact *a, uint32_t seconds);
/* Two packages of one network, to be run in turns. */
bool measure_send_networks(const process *p, const artifact *a, const artifact *b, uint32_t seconds);

/* What comes back, one line of JSON. */
typedef struct measure_answer {
    const char *failed;   /* why there are no times; NULL: there are */
    const char *compiler; /* that built the package */
    double *seconds;      /* of one call of each operator on one thread, or of a run of each network: the least;
                           * < 0: its numbers are not those of the first */
    uint32_t n;
} measure_answer;
bool measure_read(compiler *c, const char *line, measure_answer *out);

/* The same numbers for every model of these inputs. */
void measure_fill(run_model *m);
/* Whether a result is what it should be, but for rounding. */
bool measure_agrees(const run_tensor *got, const run_tensor *want);

/* Of the packages `scratch`/0/package and /1/package, the least seconds of a run. */
bool measure_networks(compiler *c, const char *scratch, double seconds[2], const char **out_compiler);

/* The other end: packages from standard input, a line to standard output for each, until the input ends. */
bool measure_serve(compiler *c);
#endif
