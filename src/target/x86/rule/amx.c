/* SPDX-License-Identifier: Apache-2.0 */
/* Default schedules of packed products of bytes on a processor with registers of 16 rows (AMX). A panel of one or two
 * blocks of columns serves some rows, whose sums an instruction makes over the whole reduction (kernel/x86/amx.h) into
 * the first cache, where the end of the operator finds them. */
#include "graph/op/nn.h"
#include "te/rule/rule.h"
#include "type/target.h"

#define COLUMNS     16 /* of a block */
#define STEP        4  /* numbers side by side */
#define LEAST_STEPS 16 /* an instruction takes so many */
#define LEAST_ROWS  8  /* below, VNNI reads weights as fast, and nothing is copied into registers */
#define MOST_ROWS   64 /* their sums are half of what a kernel may have of the stack */

/* The row for these operands; NULL: there is none. */
static const char *instruction(dtype a, dtype b)
{
    return b != DT_I8 ? NULL : a == DT_U8 ? "amx_u8s8" : a == DT_I8 ? "amx_s8s8" : NULL;
}

static void cut_result(te_sched *s, const te_node *last, int64_t columns, int64_t rows)
{
    const char *o = last->name, **order = arena_array(&s->c->mem, const char *, last->n_axes + 4u), *part = "lane_o";
    const uint32_t row = last->n_axes - 2, lane = last->n_axes - 1;
    uint32_t n = 0;
    te_sched_split(s, o, te_axis_name(last, lane), columns, "lane_o", "lane_i");
    te_sched_split(s, o, "lane_i", COLUMNS, "lane_m", "lane_v");
    te_sched_split(s, o, te_axis_name(last, row), rows, "row_o", "row_i");
    for (; n < row; n++)
        order[n] = te_axis_name(last, n);
    const char *const inner[] = {"lane_o", "row_o", "row_i", "lane_m", "lane_v"};
    for (uint32_t i = 0; i < sizeof inner / sizeof *inner; i++)
        order[n++] = inner[i];
    te_sched_reorder(s, o, n, order);
    te_sched_annotate(s, TE_VECTORIZE, o, "lane_v");
    for (uint32_t i = row; i-- > 0;) {
        const char *fused = arena_printf(&s->c->mem, "part%u", i);
        te_sched_fuse(s, o, order[i], part, fused);
        part = fused;
    }
    te_sched_annotate(s, TE_PARALLEL, o, part);
}

static bool schedule_amx(const te_case *x)
{
    te_sched *s = x->s;
    const graph_node *n = x->n;
    te_node *anchor = x->anchor, *last = x->last;
    int64_t lanes, granule;
    nn_weight_blocks(n, &lanes, &granule);
    const char *row = instruction(te_in_type(n, 0)->dt, te_in_type(n, 1)->dt);
    const uint32_t rank = anchor->n_axes;
    if (!row || lanes != COLUMNS || granule != STEP || rank < 2 ||
        anchor->n_reduce != 1 || te_is_taken_apart(s->g, n) || te_unpacked(s->g, n))
        return false;
    const int64_t units = te_axis_extent(anchor, rank - 1), rows = te_axis_extent(anchor, rank - 2),
                  products = te_reduce_most(s->g, anchor);
    if (units < COLUMNS || units % COLUMNS != 0 || rows < LEAST_ROWS || products < LEAST_STEPS * STEP ||
        products % STEP != 0)
        return false;
    const int64_t columns = units % (2 * COLUMNS) == 0 ? 2 * COLUMNS : COLUMNS;
    const char *acc = te_sums_stage(s, anchor, last, "local"), **order;
    order = arena_array(&s->c->mem, const char *, rank + 3u);
    cut_result(s, last, columns, rows < MOST_ROWS ? rows : MOST_ROWS);
    te_sched_compute_at(s, acc, last->name, "row_o");
    te_sched_split(s, acc, te_axis_name(anchor, rank - 1), COLUMNS, "lane_m", "lane_v");
    te_sched_split(s, acc, anchor->reduce_axes[0]->var->name, STEP, "k_m", "k_g");
    uint32_t count = 0;
    for (; count + 1 < rank; count++)
        order[count] = te_axis_name(anchor, count);
    const char *const inner[] = {"lane_m", "lane_v", "k_m", "k_g"};
    for (uint32_t i = 0; i < sizeof inner / sizeof *inner; i++)
        order[count++] = inner[i];
    te_sched_reorder(s, acc, count, order);
    te_sched_tensorize(s, acc, te_axis_name(anchor, rank - 2), row);
    return true;
}

static bool takes(const te_case *x)
{
    return (x->t->features & TARGET_AMX) != 0 && x->anchor->n_axes > 0 && !te_find_tag(x->s->g, "wide_data") &&
           te_is_one_nest(x->s, x->anchor, x->last, NULL);
}

/* 16 rows by 16 columns by 64 products in 16 cycles. */
static double cost(const te_case *x)
{
    (void)x;
    return 16.0 / (16 * 16 * 64);
}

static const te_rule rows[] = {
    {"registers of 16 rows", TE_PRODUCT, "blocks of 16 columns, whose sums an instruction makes over the reduction",
     takes, cost, schedule_amx},
};
const te_rules te_rules_amx = {rows, sizeof rows / sizeof *rows};
