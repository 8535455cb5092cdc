/* SPDX-License-Identifier: Apache-2.0 */
/* The register tile of sums of products of bytes, as tile.c for floats: what one step costs on a target whose
 * instructions for it are those of a row of type/dot.h. */
#include "te/rule/rule.h"
#include "type/cpu_model.h"
#include "type/dot.h"

#define MOST_VECTORS 4

static double larger(double a, double b)
{
    return a > b ? a : b;
}

/* Rows of sums that are made for so many. */
static int64_t filled(const target_dot *d, int64_t rows)
{
    return d->tile ? (rows + d->tile - 1) / d->tile * d->tile : rows;
}

double te_dot_step_cost(const struct target *t, const target_dot *d, int64_t vectors, int64_t rows)
{
    const cpu_model *m = target_cpu(t);
    double v = (double)vectors, r = (double)rows, weights = v * (double)target_dot_weights(d),
           products = v * (double)filled(d, rows);
    double c = larger(products * d->multiplies / m->fma, (weights + r) / m->loads);
    c = larger(c, (products * d->operations + weights + v * d->weight_work + r * (1 + d->data_work)) / m->issue);
    return larger(c, m->latency) + 0.25;
}

double te_cost_of_dot(const struct target *t, const target_dot *d, te_tile x)
{
    const double sums = (double)(x.vectors * x.rows * (int64_t)(t->vector_bytes / 4));
    return te_dot_step_cost(t, d, x.vectors, x.rows) / (sums * d->granule);
}

bool te_dot_tile_fits(const struct target *t, const target_dot *d, int64_t vectors, int64_t rows)
{
    int64_t regs = vectors * filled(d, rows) + vectors * d->weight_regs + d->spare_regs;
    return vectors * rows == 1 || regs <= te_tile_regs(t);
}

double te_dot_tile_cost(const struct target *t, const target_dot *d, te_tile x, int64_t width)
{
    double c = (double)(width / x.rows) * te_dot_step_cost(t, d, x.vectors, x.rows);
    if (width % x.rows)
        c += te_dot_step_cost(t, d, x.vectors, width % x.rows);
    return c / (double)x.vectors;
}

bool te_dot_rows_outside(const target_dot *d, te_tile x, int64_t lanes)
{
    return filled(d, x.rows) >= x.vectors * lanes;
}

int64_t te_choose_dot_rows(const struct target *t, const target_dot *d, int64_t vectors, int64_t width)
{
    int64_t best = 1;
    double least = 0;
    for (int64_t r = 1; r <= width; r++) {
        const bool fits = vectors > 1 ? 2 * vectors * r <= (int64_t)t->vector_regs : te_dot_tile_fits(t, d, vectors, r);
        const double c = te_dot_tile_cost(t, d, (te_tile){vectors, r}, width);
        if (!fits)
            break;
        if (least == 0 || c < least) {
            least = c;
            best = r;
        }
    }
    return best;
}

te_tile te_choose_dot_tile(const struct target *t, const target_dot *d, int64_t blocks, int64_t width, int64_t most)
{
    te_tile best = {1, 1};
    double least = 0;
    for (int64_t v = 1; v <= most && v <= MOST_VECTORS; v++) {
        for (int64_t r = 1; blocks % v == 0 && r <= width; r++) {
            if (!te_dot_tile_fits(t, d, v, r))
                break;
            if (d->tile && r % d->tile != 0 && r != width) /* what is left of whole tiles is the end of a row */
                continue;
            double c = te_dot_tile_cost(t, d, (te_tile){v, r}, width);
            if (least == 0 || c < least) {
                least = c;
                best = (te_tile){v, r};
            }
        }
    }
    return best;
}
