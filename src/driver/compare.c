/* SPDX-License-Identifier: Apache-2.0 */
/* Two tensors of one type, element by element: greatest absolute, relative and ULP difference, how large the elements
 * are, and what is out of bounds. */
#include "driver/run.h"

#include <math.h>
#include <string.h>

/* Units in the last place of the element type between two finite numbers. */
static double ulps(dtype dt, double a, double b)
{
    double big = fmax(fabs(a), fabs(b)), diff = fabs(a - b);
    int digits = dt == DT_F64    ? 53
                 : dt == DT_F16  ? 11
                 : dt == DT_BF16 ? 8
                                 : 24,
        least = dt == DT_F64   ? -1074
                : dt == DT_F16 ? -24
                               : -149,
        e;
    if (!dtype_is_float(dt) || diff == 0)
        return diff;
    frexp(big, &e);
    int exponent = e - digits < least ? least : e - digits;
    return diff / ldexp(1.0, exponent);
}

static void judge(compare_result *r, int64_t i, double got, double want, double rtol, double atol, dtype dt)
{
    bool same = got == want || (isnan(got) && isnan(want)), finite = isfinite(got) && isfinite(want);
    double diff = fabs(got - want);
    if (!same && finite) {
        r->max_abs = fmax(r->max_abs, diff);
        r->max_rel = fmax(r->max_rel, want != 0 ? diff / fabs(want) : INFINITY);
        r->max_ulp = fmax(r->max_ulp, ulps(dt, got, want));
    }
    if (same || (finite && diff <= atol + rtol * fabs(want)))
        return;
    if (!finite)
        r->max_abs = r->max_rel = r->max_ulp = INFINITY;
    if (r->wrong++ == 0) {
        r->first = i;
        r->got = got;
        r->want = want;
    }
}

/* How large elements are: the root of the mean of their squares, without those that are not finite. */
static double root_mean_square(dtype dt, const uint8_t *data, int64_t count)
{
    double sum = 0;
    for (int64_t i = 0; i < count; i++) {
        double v = dtype_load_f64(dt, data + (size_t)i * dtype_bytes(dt));
        sum += isfinite(v) ? v * v : 0;
    }
    return count ? sqrt(sum / (double)count) : 0;
}

/* Two orders of a sum of n products part by at most 12 u sqrt(n) of the sums' root mean square, but for one element in
 * 500 million (Higham and Mary, A New Approach to Probabilistic Rounding Error Analysis, 2019): with f32, by 1e-4 of it
 * for n up to 19,000. An element that happens to be small has the error of the others. */
static double usual_atol(const compare_result *r, dtype dt, double rtol)
{
    return dtype_is_float(dt) ? fmax(COMPARE_ATOL, rtol / 10 * r->rms) : COMPARE_ATOL;
}

compare_result compare_tensors(const run_tensor *got, const uint8_t *want, double rtol, double atol)
{
    compare_result r = {.first = -1, .rms = root_mean_square(got->dt, want, got->count)};
    size_t size = dtype_bytes(got->dt);
    atol = atol < 0 ? usual_atol(&r, got->dt, rtol) : atol;
    for (int64_t i = 0; i < got->count; i++) {
        const uint8_t *a = got->data + (size_t)i * size, *b = want + (size_t)i * size;
        if (memcmp(a, b, size) != 0)
            judge(&r, i, dtype_load_f64(got->dt, a), dtype_load_f64(got->dt, b), rtol, atol, got->dt);
    }
    return r;
}
