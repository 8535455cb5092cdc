/* SPDX-License-Identifier: Apache-2.0 */
/* What is known of the values of a tensor, and the range that its quantised numbers should span: least and greatest, a
 * percentile, the least squared error, the least loss of information (Kullback-Leibler divergence). */
#ifndef LATHE_QUANTIZE_HISTOGRAM_H
#define LATHE_QUANTIZE_HISTOGRAM_H
#include "base/compiler.h"

#define HISTOGRAM_BINS 4096u /* even; over [-reach, reach) */

/* X(id, "--method name") */
#define HISTOGRAM_METHODS(X)           \
    X(HISTOGRAM_MINMAX, "minmax")      \
    X(HISTOGRAM_PERCENTILE, "percentile") \
    X(HISTOGRAM_MSE, "mse")            \
    X(HISTOGRAM_ENTROPY, "entropy")

typedef enum histogram_method {
#define X(id, name) id,
    HISTOGRAM_METHODS(X)
#undef X
} histogram_method;

typedef struct histogram {
    double reach; /* a power of two; 0: nothing was seen */
    double least, greatest;
    uint64_t seen, not_finite;
    uint64_t *bins;
} histogram;

void histogram_init(histogram *h, arena *a);
void histogram_add(histogram *h, const float *x, int64_t count);
/* The part of what was seen that lies outside of [lo, hi]. */
double histogram_outside(const histogram *h, double lo, double hi);
/* The mean squared error when [lo, hi] is divided into `steps` equal steps and what lies outside goes to the ends. */
double histogram_error(const histogram *h, double lo, double hi, double steps);
/* The range by that method, which holds 0. symmetric: hi = -lo. levels: of the quantised numbers, 255 or 256. */
void histogram_range(const histogram *h, histogram_method method, double percentile, bool symmetric, uint32_t levels,
                     double *lo, double *hi);
#endif
