/* SPDX-License-Identifier: Apache-2.0 */
/* Seconds, for what measures: from any fixed moment on, never back; and their order, for medians. */
#ifndef LATHE_BASE_CLOCK_H
#define LATHE_BASE_CLOCK_H
#include <time.h>

static inline double clock_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* For qsort of doubles. */
static inline int clock_rising(const void *x, const void *y)
{
    const double *a = (const double *)x, *b = (const double *)y;
    return *a < *b ? -1 : *a > *b;
}
#endif
