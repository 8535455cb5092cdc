/* SPDX-License-Identifier: Apache-2.0 */
/* The tuner's measurements on a server of docs/how-to/rpc.md: each candidate goes there as a module of its own, in a
 * session of its own, since servers of TVM have one at a time. So they do not run in turns: each runs several times,
 * and the least counts. */
#ifndef LATHE_DRIVER_MEASURE_REMOTE_H
#define LATHE_DRIVER_MEASURE_REMOTE_H
#include "driver/measure.h"
#include "driver/run_remote.h"

typedef struct measure_remote {
    const run_remote_options *where;
    const char *dir; /* for modules on their way */
} measure_remote;

/* The computation of a text under each schedule, compared with what it gives without any. in_answer as in_package of
 * measure_package. False after a diagnostic: the computation itself, schedule 0, or the server. */
bool measure_remote_kernel(compiler *c, const measure_remote *r, const char *text, const char *const *schedules,
                           uint32_t n, const struct target *t, uint32_t *in_answer, measure_answer *out);
/* Modules of one network, the second compared with the first. */
bool measure_remote_networks(compiler *c, const measure_remote *r, const artifact *a, const artifact *b,
                             measure_answer *out);
#endif
