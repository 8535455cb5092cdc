/* SPDX-License-Identifier: Apache-2.0 */
/* Histograms over a range that doubles when a value lies beyond it: one pass over the data is enough. */
#include "quantize/histogram.h"

#include <float.h>
#include <math.h>
#include <string.h>

#define HALF        (HISTOGRAM_BINS / 2)
#define TRIES       60u  /* shrunken ranges that mse looks at */
#define KL_LEVELS   128u /* of one sign */

void histogram_init(histogram *h, arena *a)
{
    *h = (histogram){.bins = arena_array(a, uint64_t, HISTOGRAM_BINS)};
    memset(h->bins, 0, HISTOGRAM_BINS * sizeof *h->bins);
}

/* Neighboring bins fall together, towards the middle. */
static void widen(histogram *h)
{
    uint64_t wide[HISTOGRAM_BINS] = {0};
    for (uint32_t i = 0; i < HISTOGRAM_BINS; i++)
        wide[i / 2 + HALF / 2] += h->bins[i];
    memcpy(h->bins, wide, sizeof wide);
    h->reach *= 2;
}

void histogram_add(histogram *h, const float *x, int64_t count)
{
    for (int64_t i = 0; i < count; i++) {
        double v = (double)x[i];
        if (!isfinite(v)) {
            h->not_finite++;
            continue;
        }
        if (h->seen == 0)
            h->least = h->greatest = v;
        h->least = v < h->least ? v : h->least;
        h->greatest = v > h->greatest ? v : h->greatest;
        if (h->reach == 0)
            h->reach = v != 0 ? ldexp(1.0, ilogb(fabs(v)) + 1) : (double)FLT_MIN;
        while (v >= h->reach || v < -h->reach)
            widen(h);
        double at = floor((v / h->reach + 1) * HALF);
        h->bins[at >= HISTOGRAM_BINS ? HISTOGRAM_BINS - 1 : (uint32_t)at]++;
        h->seen++;
    }
}

static double middle_of(const histogram *h, uint32_t bin)
{
    return ((double)bin + 0.5 - HALF) / HALF * h->reach;
}

double histogram_outside(const histogram *h, double lo, double hi)
{
    uint64_t n = 0;
    double step = h->reach / HALF / 2;
    for (uint32_t i = 0; i < HISTOGRAM_BINS; i++)
        if (middle_of(h, i) > hi + step || middle_of(h, i) < lo - step)
            n += h->bins[i];
    return h->seen ? (double)n / (double)h->seen : 0;
}

double histogram_error(const histogram *h, double lo, double hi, double steps)
{
    double scale = (hi - lo) / steps, sum = 0;
    for (uint32_t i = 0; i < HISTOGRAM_BINS; i++) {
        if (!h->bins[i])
            continue;
        double v = middle_of(h, i), q = scale > 0 ? rint(v / scale) * scale : 0;
        q = q < lo ? lo : q > hi ? hi : q;
        sum += (double)h->bins[i] * (v - q) * (v - q);
    }
    return h->seen ? sum / (double)h->seen : 0;
}

/* --- methods --- */

static void percentile_range(const histogram *h, double percentile, double *lo, double *hi)
{
    double cut = (100 - percentile) / 100 * (double)h->seen / 2;
    uint64_t sum = 0;
    uint32_t first = 0, last = HISTOGRAM_BINS - 1;
    while (first < last && (double)(sum += h->bins[first]) <= cut)
        first++;
    sum = 0;
    while (last > first && (double)(sum += h->bins[last]) <= cut)
        last--;
    *lo = fmax(*lo, middle_of(h, first) - h->reach / HISTOGRAM_BINS);
    *hi = fmin(*hi, middle_of(h, last) + h->reach / HISTOGRAM_BINS);
}

static void mse_range(const histogram *h, double steps, double *lo, double *hi)
{
    double best = histogram_error(h, *lo, *hi, steps), low = *lo, high = *hi;
    for (uint32_t i = 1; i < TRIES; i++) {
        double part = 1 - (double)i / (TRIES + 10);
        double error = histogram_error(h, low * part, high * part, steps);
        if (error < best) {
            best = error;
            *lo = low * part;
            *hi = high * part;
        }
    }
}

/* Divergence of what `used` bins of magnitudes hold (what lies beyond counts in the last) from their merger into
 * KL_LEVELS levels. */
static double divergence(const double *magnitude, uint32_t used, double total, double beyond)
{
    double sum = 0;
    for (uint32_t level = 0; level < KL_LEVELS; level++) {
        uint32_t from = level * used / KL_LEVELS, to = (level + 1) * used / KL_LEVELS, filled = 0;
        double in_level = 0;
        for (uint32_t i = from; i < to; i++) {
            in_level += magnitude[i];
            filled += magnitude[i] > 0;
        }
        for (uint32_t i = from; i < to; i++) {
            double p = magnitude[i] + (i == used - 1 ? beyond : 0), q = magnitude[i] > 0 ? in_level / filled : 0;
            if (p > 0)
                sum += p / total * log(p / total / (q > 0 ? q / (total - beyond) : 1e-12));
        }
    }
    return sum;
}

static void entropy_range(const histogram *h, double *lo, double *hi)
{
    double magnitude[HALF], total = 0, beyond = 0, best = INFINITY;
    uint32_t last = 0, used;
    for (uint32_t i = 0; i < HALF; i++) {
        magnitude[i] = (double)h->bins[HALF + i] + (double)h->bins[HALF - 1 - i];
        last = magnitude[i] > 0 ? i + 1 : last;
    }
    magnitude[0] = magnitude[1]; /* zeros, of which clips make many, are exact in any range */
    for (uint32_t i = 0; i < HALF; i++)
        total += magnitude[i];
    used = last;
    for (uint32_t n = last; n >= KL_LEVELS; n -= n > 512 ? 16 : 4) {
        beyond = 0;
        for (uint32_t i = n; i < last; i++)
            beyond += magnitude[i];
        double d = beyond < total ? divergence(magnitude, n, total, beyond) : INFINITY;
        if (d < best) {
            best = d;
            used = n;
        }
    }
    double most = (double)used / HALF * h->reach;
    *lo = fmax(*lo, -most);
    *hi = fmin(*hi, most);
}

void histogram_range(const histogram *h, histogram_method method, double percentile, bool symmetric, uint32_t levels,
                     double *lo, double *hi)
{
    *lo = h->seen ? fmin(h->least, 0) : 0;
    *hi = h->seen ? fmax(h->greatest, 0) : 0;
    if (h->seen == 0 || *lo == *hi)
        return;
    switch (method) {
    case HISTOGRAM_MINMAX: break;
    case HISTOGRAM_PERCENTILE: percentile_range(h, percentile, lo, hi); break;
    case HISTOGRAM_ENTROPY: entropy_range(h, lo, hi); break;
    case HISTOGRAM_MSE:
        if (symmetric) {
            *hi = fmax(*hi, -*lo);
            *lo = -*hi;
        }
        mse_range(h, levels - 1, lo, hi);
        break;
    }
    *lo = fmin(*lo, 0);
    *hi = fmax(*hi, 0);
    if (symmetric) {
        *hi = fmax(*hi, -*lo);
        *lo = -*hi;
    }
}
