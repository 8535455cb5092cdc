/* SPDX-License-Identifier: Apache-2.0 */
/* The register tile of convolutions and matrix products: a count of cycles for every tile that the registers hold. */
#include "te/rule/rule.h"
#include "type/target.h"

#define MOST_VECTORS 4

/* Two fused multiply-adds and two loads a cycle, four cycles of latency. */
double te_step_cost(int64_t vectors, int64_t rows)
{
    double fma = (double)(vectors * rows) / 2, loads = (double)(vectors + rows) / 2,
           issue = (double)(vectors * rows + vectors + rows) / 4;
    double c = fma > loads ? fma : loads;
    c = c > issue ? c : issue;
    return (c > 4 ? c : 4) + 0.25;
}

/* The same over `width` elements and for one vector of lanes, with a narrower tile at the end. */
static double tile_cost(int64_t vectors, int64_t rows, int64_t width)
{
    double cycles = (double)(width / rows) * te_step_cost(vectors, rows);
    if (width % rows)
        cycles += te_step_cost(vectors, width % rows);
    return cycles / (double)vectors;
}

te_tile te_choose_tile(const struct target *t, int64_t blocks, int64_t width)
{
    return te_choose_tile_within(t, blocks, width, MOST_VECTORS);
}

te_tile te_choose_tile_within(const struct target *t, int64_t blocks, int64_t width, int64_t most)
{
    te_tile best = {1, 1};
    int64_t regs = t->vector_regs > 2 ? t->vector_regs : 4;
    double least = tile_cost(1, 1, width);
    for (int64_t v = 1; v <= most && v <= MOST_VECTORS; v++) {
        for (int64_t r = 1; blocks % v == 0 && v * r + v + 1 <= regs && r <= width; r++) {
            double c = tile_cost(v, r, width);
            if (c < least) {
                least = c;
                best = (te_tile){v, r};
            }
        }
    }
    return best;
}
