/* SPDX-License-Identifier: Apache-2.0 */
/* Convolutions of planes: lines of pixels in vector lanes, against which the weights of a few output channels, those
 * that read the same input, are broadcast. For layers that do not pay for blocks of channels: few of them, groups,
 * depthwise ones between planes. Sums of a tile, channels by vectors, stay in registers; the end of a line is a
 * narrower tile, as the columns of a product are. */
#include "graph/op/nn.h"
#include "te/rule/rule.h"
#include "type/target.h"

#define WRITTEN    96 /* products of a tile that are written out, all of its taps; else those of one line of them */

typedef struct planes {
    te_sched *s;
    te_node *anchor, *last;
    uint32_t line; /* the axis of neighboring pixels */
    te_tile tile;  /* rows: channels */
    int64_t lanes, lines;
    bool alone;    /* an output channel reads one plane */
    const char *acc;
} planes;

/* Channels, of those that share their input, and vectors of a line that make one tile. */
static bool choose(planes *p, const struct target *t, const graph_node *n)
{
    const te_node *a = p->anchor;
    int64_t channels = te_axis_extent(a, 1), groups = graph_attr_int(n, "groups"), width = te_axis_extent(a, p->line);
    int64_t shared = channels / (groups > 0 ? groups : 1);
    if (p->lanes < LEAST_LINE || width < LEAST_LINE || shared < 1 || !te_reads_lines(a, p->line) ||
        !te_row_fits(p->s, t, a) ||
        !te_row_fits(p->s, t, p->last))
        return false;
    p->tile = te_choose_tile_ragged(t, p->lanes, width, shared);
    while (shared % p->tile.rows != 0)
        p->tile.rows--;
    return true;
}

/* Vectors that a line takes, the shorter ones at its end included. */
static int64_t vectors_of_line(const planes *p)
{
    int64_t width = te_axis_extent(p->anchor, p->line), n = width / p->lanes;
    n = n < p->tile.vectors ? n : p->tile.vectors;
    for (int64_t rest = width % p->lanes; n < p->tile.vectors + 2 && rest > 0; rest &= rest - 1)
        n++;
    return n;
}

/* Lines of a plane that are made together, so that there are sums enough for the units to be busy. */
static int64_t choose_lines(const planes *p, const struct target *t)
{
    int64_t height = te_axis_extent(p->last, 2), each = vectors_of_line(p) * p->tile.rows;
    int64_t n = te_tile_regs(t) / 3 / each;
    if (p->line < 3 || !p->alone || height < 1)
        return 1;
    for (n = n < height ? n : height; n > 1 && height % n != 0;)
        n--;
    return n > 1 ? n : 1;
}

static void mark_tile(const planes *p, const char *stage, const char *channel)
{
    te_sched_annotate(p->s, TE_UNROLL, stage, channel);
    te_sched_annotate(p->s, TE_UNROLL, stage, "lane_m");
    te_sched_annotate(p->s, TE_VECTORIZE, stage, "lane_v");
}

/* Of a plane by itself lines follow each other; else all channels of a line do, and what they read of the padding is
 * made once. The loop that workers share. */
static const char *cut_result(const planes *p)
{
    te_sched *s = p->s;
    const te_node *last = p->last;
    const char **order = arena_array(&s->c->mem, const char *, last->n_axes + 5u), *o = last->name;
    uint32_t n = 0;
    te_sched_split(s, o, te_axis_name(last, 1), p->tile.rows, "channel_o", "channel_i");
    te_sched_split(s, o, te_axis_name(last, p->line), p->tile.vectors * p->lanes, "lane_o", "lane_i");
    te_sched_split(s, o, "lane_i", p->lanes, "lane_m", "lane_v");
    order[n++] = te_axis_name(last, 0);
    if (p->alone)
        order[n++] = "channel_o";
    if (p->lines > 1)
        te_sched_split(s, o, te_axis_name(last, 2), p->lines, "line_o", "line_i");
    for (uint32_t i = 2; i < p->line; i++)
        order[n++] = i == 2 && p->lines > 1 ? "line_o" : te_axis_name(last, i);
    if (!p->alone)
        order[n++] = "channel_o";
    order[n++] = "lane_o";
    if (p->lines > 1)
        order[n++] = "line_i";
    order[n++] = "channel_i";
    order[n++] = "lane_m";
    order[n++] = "lane_v";
    te_sched_reorder(s, o, n, order);
    te_sched_fuse(s, o, order[0], order[1], "part");
    te_sched_annotate(s, TE_PARALLEL, o, "part");
    if (p->lines > 1)
        te_sched_annotate(s, TE_UNROLL, o, "line_i");
    mark_tile(p, o, "channel_i");
    return "part";
}

static void cut_sums(const planes *p, int64_t taps)
{
    te_sched *s = p->s;
    const te_node *a = p->anchor;
    const char **order = arena_array(&s->c->mem, const char *, a->n_axes + a->n_reduce + 2u), *line;
    int64_t sums = p->lines * p->tile.rows * vectors_of_line(p);
    uint32_t n = 0;
    line = te_axis_name(a, p->line);
    te_sched_split(s, p->acc, line, p->lanes, "lane_m", "lane_v");
    for (uint32_t i = 0; i < a->n_axes; i++)
        if (i != 1 && i != p->line && (i != 2 || p->lines == 1))
            order[n++] = te_axis_name(a, i);
    for (uint32_t i = 0; i < a->n_reduce; i++) {
        int64_t within = i + 1 == a->n_reduce ? te_most(s->g, a->reduce_axes[i]->extent) : taps;
        order[n++] = a->reduce_axes[i]->var->name;
        if (i > 0 && within > 0 && within * sums <= WRITTEN)
            te_sched_annotate(s, TE_UNROLL, p->acc, order[n - 1]);
    }
    if (p->lines > 1) {
        order[n++] = te_axis_name(a, 2);
        te_sched_annotate(s, TE_UNROLL, p->acc, order[n - 1]);
    }
    order[n++] = te_axis_name(a, 1);
    order[n++] = "lane_m";
    order[n++] = "lane_v";
    te_sched_reorder(s, p->acc, n, order);
    mark_tile(p, p->acc, te_axis_name(a, 1));
}

static bool read_planes(const te_case *x, planes *out)
{
    *out = (planes){.s = x->s, .anchor = x->anchor, .last = x->last, .line = x->last->n_axes - 1,
                    .lanes = x->t->vector_bytes / 4};
    return choose(out, x->t, x->n);
}

/* Sums of several lines hide the wait for one another. */
double te_cost_planes(const te_case *x)
{
    planes p;
    const double lanes = x->t->vector_bytes > 4 ? x->t->vector_bytes / 4 : 1;
    if (!read_planes(x, &p))
        return te_cost_one_by_one(x);
    const double reads = (double)(p.tile.vectors + p.tile.rows) / target_cpu(x->t)->loads;
    return (reads + 0.25) / ((double)(p.tile.vectors * p.tile.rows) * lanes);
}

bool te_schedule_planes(const te_case *x)
{
    te_sched *s = x->s;
    const struct target *t = x->t;
    te_node *anchor = x->anchor, *last = x->last;
    planes p;
    const te_node *pad = te_find_tag(s->g, "pad");
    if (!read_planes(x, &p))
        return false;
    int64_t taps = 1, ic = 0;
    for (uint32_t i = 1; i < anchor->n_reduce; i++)
        taps *= te_most(s->g, anchor->reduce_axes[i]->extent);
    p.alone = p.line < 3 || (tir_is_int(anchor->reduce_axes[0]->extent, &ic) && ic == 1);
    p.lines = choose_lines(&p, t);
    p.acc = te_sums_stage(s, anchor, last, "local.reg");
    const char *part = cut_result(&p);
    te_sched_compute_at(s, p.acc, last->name, "lane_o");
    cut_sums(&p, taps);
    if (pad && !te_is_inlined(s, pad))
        te_sched_compute_at(s, pad->name, last->name, part);
    return true;
}
