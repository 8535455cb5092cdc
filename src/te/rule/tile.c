/* SPDX-License-Identifier: Apache-2.0 */
/* The register tile of convolutions and matrix products: a count of cycles for every tile that the registers hold. */
#include "te/rule/rule.h"
#include "type/target.h"

#define MOST_VECTORS 4
/* The same over one row: each vector's weights are a stream, and several of them fill the way to memory. */
#define MOST_STREAMS 6
#define FEW_PANELS   8 /* panels that do not keep workers busy: no wider ones then */
/* Cycles of a step for its loop and prefetch, which decide where tiles are near: of 0.5, 0.6 and 0.75 what made five
 * networks fastest on Zen 5. */
#define BESIDE 0.5
#define WORTH_A_TAIL 0.97 /* of the cycles of tiles that divide: a narrower panel at the end is code of its own */

double te_step_cost(const struct target *t, int64_t vectors, int64_t rows)
{
    const cpu_model *m = target_cpu(t);
    double products = (double)(vectors * rows), reads = (double)(vectors + rows), fma = products / m->fma,
           loads = reads / m->loads, issue = (products + reads) / m->issue;
    double c = fma > loads ? fma : loads;
    c = c > issue ? c : issue;
    return (c > m->latency ? c : m->latency) + 0.25;
}

double te_cost_of_tile(const struct target *t, te_tile x)
{
    const double lanes = t->vector_bytes > 4 ? t->vector_bytes / 4 : 1;
    return te_step_cost(t, x.vectors, x.rows) / ((double)(x.vectors * x.rows) * lanes);
}

int64_t te_tile_regs(const struct target *t)
{
    int64_t regs = target_cpu(t)->tile_regs < t->vector_regs ? target_cpu(t)->tile_regs : t->vector_regs;
    return regs > 2 ? regs : 4;
}

/* The same with what stands beside the sums. */
static double whole_step(const struct target *t, int64_t vectors, int64_t rows)
{
    return te_step_cost(t, vectors, rows) + BESIDE;
}

/* The same over `width` elements and for one vector of lanes, with a narrower tile at the end. */
static double cost_over(const struct target *t, int64_t vectors, int64_t rows, int64_t width)
{
    double cycles = (double)(width / rows) * whole_step(t, vectors, rows);
    if (width % rows)
        cycles += whole_step(t, vectors, width % rows);
    return cycles / (double)vectors;
}

double te_tile_cost(const struct target *t, te_tile x, int64_t width)
{
    return cost_over(t, x.vectors, x.rows, width);
}

te_tile te_choose_tile(const struct target *t, int64_t blocks, int64_t width)
{
    return te_choose_tile_within(t, blocks, width, MOST_VECTORS);
}

/* What the tuner asks for, where the registers hold it. */
static bool asked_tile(const struct target *t, int64_t width, te_tile *out)
{
    const int64_t v = t->tile_vectors, r = t->tile_rows;
    *out = (te_tile){v, r < width ? r : width};
    return v > 0 && r > 0 && v * out->rows + v + 1 <= t->vector_regs;
}

te_tile te_choose_tile_within(const struct target *t, int64_t blocks, int64_t width, int64_t most)
{
    te_tile asked;
    if (asked_tile(t, width, &asked) && asked.vectors <= most && blocks % asked.vectors == 0)
        return asked;
    te_tile best = {1, 1};
    int64_t regs = te_tile_regs(t);
    double least = cost_over(t, 1, 1, width);
    for (int64_t v = 1; v <= most && v <= MOST_VECTORS; v++) {
        for (int64_t r = 1; blocks % v == 0 && v * r + v + 1 <= regs && r <= width; r++) {
            double c = cost_over(t, v, r, width);
            if (c < least) {
                least = c;
                best = (te_tile){v, r};
            }
        }
    }
    return best;
}

/* Vectors that are left behind whole panels: those of fewer lanes at the end are powers of two. */
static int64_t tail_vectors(int64_t left, int64_t lanes)
{
    int64_t n = left / lanes;
    for (int64_t rest = left % lanes; rest > 0; rest &= rest - 1)
        n++;
    return n;
}

/* Cycles over all columns and `width` elements. */
static double panels_cost(const struct target *t, te_tile x, int64_t lanes, int64_t units, int64_t width)
{
    int64_t panels = units / (x.vectors * lanes), tail = tail_vectors(units % (x.vectors * lanes), lanes);
    double c = (double)(panels * x.vectors) * cost_over(t, x.vectors, x.rows, width);
    return c + (tail > 0 ? (double)tail * cost_over(t, tail, x.rows, width) : 0);
}

te_tile te_choose_tile_ragged(const struct target *t, int64_t lanes, int64_t units, int64_t width)
{
    te_tile best = {1, 1};
    int64_t regs = te_tile_regs(t), most = width == 1 ? MOST_STREAMS : MOST_VECTORS;
    double least = 0;
    for (int64_t v = 1; v <= most; v++) {
        int64_t panels = units / (v * lanes), tail = tail_vectors(units % (v * lanes), lanes),
                widest = panels == 0 || tail > v ? tail : v;
        if (v > MOST_VECTORS && panels < FEW_PANELS)
            break;
        for (int64_t r = 1; widest * r + widest + 1 <= regs && r <= width; r++) {
            double c = panels_cost(t, (te_tile){v, r}, lanes, units, width);
            if (least == 0 || c < least) {
                least = c;
                best = (te_tile){v, r};
            }
        }
    }
    return best;
}

te_tile te_choose_tile_panels(const struct target *t, int64_t blocks, int64_t width)
{
    te_tile asked, even = te_choose_tile(t, blocks, width), any = te_choose_tile_ragged(t, 1, blocks, width);
    if (asked_tile(t, width, &asked) && blocks % asked.vectors == 0)
        return asked;
    return panels_cost(t, any, 1, blocks, width) < WORTH_A_TAIL * panels_cost(t, even, 1, blocks, width) ? any : even;
}

/* --- extents that each run says --- */

#define FEWEST 17 /* elements from where on a run should cost what one compiled for its extent does */

double te_tile_cover(int64_t size, int64_t most)
{
    double sum = 0;
    int64_t from = most < FEWEST ? 1 : FEWEST, step = (most - from) / 256 + 1, count = 0;
    for (int64_t n = from; n <= most; n += step, count++)
        sum += (double)((n + size - 1) / size * size) / (double)n;
    return sum / (double)count;
}

te_tile te_choose_tile_open(const struct target *t, int64_t blocks, bool blocks_open, int64_t width, bool width_open)
{
    te_tile asked;
    if (asked_tile(t, width, &asked) && (blocks_open || blocks % asked.vectors == 0))
        return asked;
    te_tile best = {1, 1};
    int64_t regs = te_tile_regs(t);
    double least = 0;
    for (int64_t v = 1; v <= MOST_VECTORS; v++) {
        for (int64_t r = 1; (blocks_open || blocks % v == 0) && v * r + v + 1 <= regs && r <= width; r++) {
            double rows = width_open ? te_tile_cover(r, width) * whole_step(t, v, r) / (double)r / (double)v
                                     : cost_over(t, v, r, width) / (double)width;
            double c = rows * (blocks_open ? te_tile_cover(v, blocks) : 1);
            if (least == 0 || c < least) {
                least = c;
                best = (te_tile){v, r};
            }
        }
    }
    return best;
}

/* --- rows of an image that are walked as one --- */

#define WORTH_MERGING    0.98         /* of a pixel's cycles in the rows of the image: longer ones have other numbers */
#define NEAR_BEST        1.01         /* of the cycles in the best rows: shorter ones stay in the first cache */
#define LONGEST_ROW      1024         /* pixels */

int64_t te_rows_to_merge(int64_t height, int64_t width, te_pixel_cost cost, const void *ctx)
{
    if (height < 2 || width < 1) /* or one is open */
        return 1;
    double alone = cost(ctx, width), best = alone;
    for (int64_t k = 2; k <= height && k * width <= LONGEST_ROW; k++)
        if (height % k == 0 && cost(ctx, k * width) < best)
            best = cost(ctx, k * width);
    if (best > WORTH_MERGING * alone)
        return 1;
    int64_t rows = 2;
    while (height % rows != 0 || cost(ctx, rows * width) > NEAR_BEST * best)
        rows++;
    return rows;
}
