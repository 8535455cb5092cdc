/* SPDX-License-Identifier: Apache-2.0 */
/* Schedules of sums of floats for Cortex-M with a floating-point unit and without vectors. The sums of a few columns
 * stay in its registers, so that a number of the left operand is loaded once for all of them: two instructions a
 * product and what the loop takes, where a sum at a time takes five, and a row of sums in an array four. Other sums,
 * such as distances to vectors, share the loop as well. */
#include "te/rule/rule.h"
#include "type/target.h"

#define MOST_COLUMNS  10  /* of a tile: their sums, weights and one more number have room in 32 registers */
#define LEAST_COLUMNS 3
#define MOST_SUMS     4   /* of other sums: more save little of the loop, and what follows a sum is written for each */
#define FEW_SUMS      2   /* if that calls functions, which are long */
#define LOOP          3.0 /* instructions: a step, a comparison, a branch */

/* Columns of a tile: as many as divide all of them; 1: too few do. */
static int64_t tile_of(const te_case *x, int64_t most)
{
    const int64_t columns = te_axis_extent(x->last, x->last->n_axes - 1u);
    int64_t tile = most;
    while (tile > 1 && columns % tile != 0)
        tile--;
    return columns > 0 ? tile : 1;
}

static int64_t tile_of_product(const te_case *x)
{
    const int64_t tile = tile_of(x, MOST_COLUMNS);
    return tile < LEAST_COLUMNS ? 1 : tile;
}

static int64_t tile_of_sums(const te_case *x)
{
    return tile_of(x, te_calls_functions(x->s, x->anchor, x->last) ? FEW_SUMS : MOST_SUMS);
}

static bool takes(const te_case *x)
{
    const struct target *t = x->t;
    return (t->features & TARGET_FPU) && !(t->features & TARGET_MVE) && t->vector_bytes == 0 && t->address_bits == 32 &&
           x->anchor->outputs[0]->dt == DT_F32 && x->anchor->n_outputs == 1 && x->anchor->n_axes > 0 &&
           x->anchor->n_reduce == 1 && x->last->n_axes == x->anchor->n_axes &&
           te_is_one_nest(x->s, x->anchor, x->last, NULL);
}

static bool takes_product(const te_case *x)
{
    return takes(x) && tile_of_product(x) > 1;
}

static bool takes_sums(const te_case *x)
{
    return takes(x) && tile_of_sums(x) > 1;
}

static double cost(const te_case *x, int64_t tile)
{
    return te_cost_in_c(x->t, 1 + (1 + LOOP) / (double)tile);
}

static double cost_product(const te_case *x)
{
    return cost(x, tile_of_product(x));
}

static double cost_sums(const te_case *x)
{
    return cost(x, tile_of_sums(x));
}

static bool schedule(const te_case *x, int64_t tile)
{
    te_sched *s = x->s;
    const uint32_t column = x->last->n_axes - 1u;
    const char *o = x->last->name, *acc = te_sums_stage(s, x->anchor, x->last, "local.reg");
    te_sched_split(s, o, te_axis_name(x->last, column), tile, "column_o", "column_i");
    te_sched_annotate(s, TE_UNROLL, o, "column_i");
    te_sched_compute_at(s, acc, o, "column_o");
    const char *each = te_axis_name(x->anchor, column), *step = x->anchor->reduce_axes[0]->var->name;
    te_sched_reorder(s, acc, 2, (const char *[]){step, each});
    te_sched_annotate(s, TE_UNROLL, acc, each);
    return true;
}

static bool schedule_product(const te_case *x)
{
    return schedule(x, tile_of_product(x));
}

static bool schedule_sums(const te_case *x)
{
    return schedule(x, tile_of_sums(x));
}

static const te_rule rows[] = {
    {"columns in registers", TE_PRODUCT, "the sums of a few columns in registers, a number of the row for all of them",
     takes_product, cost_product, schedule_product},
    {"results in registers", TE_REDUCTION, "the sums of a few results in registers, one loop for all of them",
     takes_sums, cost_sums, schedule_sums},
};
const te_rules te_rules_floats = {rows, sizeof rows / sizeof *rows};
