/* SPDX-License-Identifier: Apache-2.0 */
/* Default schedules of qnn.conv2d_rows. Pixels stand outside of channels: a tile of a line of results takes a few
 * pixels, whose windows lie in a small buffer of 16-bit numbers, by two channels, whose weights are read one after the
 * other. Rows that the next line needs again stay in the buffer where one worker makes all lines. */
#include "target/cortex_m/rule/runs.h"
#include "target/cortex_m/units.h"

#include "te/from_graph.h"
#include "te/inline.h"

#include <string.h>

#define DEPTHWISE_ROW 6 /* sums of neighboring pixels of one channel, which share what they read */
#define MOST_ROWS     3 /* of a window that are written out: a depthwise one, or one with short runs */
#define SHORT_RUN     4 /* steps: finding the next row of a window would take as long as its products */
#define MANY_LINES    16 /* of fewer, most are in the rows at once */
#define MOST_PARTS    4 /* of the channels: each runs through all lines */
#define TOGETHER      4 /* elements of a row that are copied one after the other without a loop */

static const char *tap(const te_node *a, uint32_t i)
{
    return a->reduce_axes[i]->var->name;
}

/* Where the window of the next line begins with rows of this one's, and one worker makes both. */
static void place_rows(te_sched *s, const struct target *t, const rows_conv *v, te_node *last, const char *line)
{
    const te_node *rows = te_find_tag(s->g, "pad");
    const nn_window *w = &v->win;
    te_sched_compute_at(s, rows->name, last->name, line);
    if (!t->lines_again && t->workers <= 1 && v->out_extent[0] > 1 &&
        (w->kernel[0] - 1) * w->dilation[0] + 1 > w->stride[0])
        te_sched_rolling_buffer(s, rows->name);
}

/* The largest tile that divides the row, unless that is small: then one that is cut at the end. */
static int64_t depthwise_tile(int64_t width)
{
    for (int64_t n = DEPTHWISE_ROW; n > DEPTHWISE_ROW / 2 - 1; n--)
        if (width % n == 0)
            return n;
    return width < DEPTHWISE_ROW ? width : DEPTHWISE_ROW;
}

/* Copies a few neighboring channels at a time. Pixels stand inside where they are few: then the zeros beside them are
 * no loops of their own. */
static void copy_together(te_sched *s, const struct target *t, const rows_conv *v, const te_node *rows,
                          int64_t channels)
{
    const char *channel = te_axis_name(rows, 2), *column = te_axis_name(rows, 3);
    bool few = v->in / TOGETHER >= 2 * v->extent[1];
    te_sched_reorder(s, rows->name, 2, (const char *[]){column, channel});
    if (channels % TOGETHER != 0 || channels <= TOGETHER || cortex_m_has_words(t))
        return;
    te_sched_split(s, rows->name, channel, TOGETHER, "some", "one");
    if (few)
        te_sched_reorder(s, rows->name, 2, (const char *[]){"some", column});
    te_sched_annotate(s, TE_UNROLL, rows->name, "one");
}

/* For each line again: a few channels at a time, so that few are copied. The loop over these channels. */
static const char *take_channels(te_sched *s, const rows_conv *v, const te_node *last, const te_node *rows)
{
    const char *o = last->name, *channel = te_axis_name(rows, 2);
    te_sched_split(s, o, te_axis_name(last, CHANNEL), v->in % TOGETHER == 0 ? TOGETHER : 1, "channel_o", "channel_i");
    te_sched_reorder(s, o, 4, (const char *[]){"channel_o", "col_o", "channel_i", "col_i"});
    te_sched_compute_at(s, rows->name, o, "channel_o");
    if (!v->planar) {
        te_sched_reorder(s, rows->name, 2, (const char *[]){te_axis_name(rows, 3), channel});
        te_sched_annotate(s, TE_UNROLL, rows->name, channel);
    }
    return "channel_i";
}

/* Parts that the channels are taken in, one after the other through the whole image: where rows of all of them would
 * take more than a third of the data, which the result replaces. */
static int64_t parts_of_channels(const struct target *t, const rows_conv *v)
{
    const nn_window *w = &v->win;
    int64_t width = (v->out_extent[1] - 1) * w->stride[1] + (w->kernel[1] - 1) * w->dilation[1] + 1,
            rows = 2 * ((w->kernel[0] - 1) * w->dilation[0] + 1) * width, parts = 1;
    if (t->workers > 1 || t->line_axis != 0 || v->planar || v->images != 1 || v->out_extent[0] != v->extent[0] ||
        v->out_extent[1] != v->extent[1] || v->extent[0] < MANY_LINES)
        return 1;
    while (3 * rows > parts * v->extent[0] * v->extent[1] && v->in % (2 * parts * TOGETHER) == 0 && parts < MOST_PARTS)
        parts *= 2;
    return parts;
}

static const char *part_channels(te_sched *s, const rows_conv *v, const char *o, const char *line, int64_t parts,
                                 const char *channels)
{
    te_sched_split(s, o, channels, v->in / parts, "part_of_channels", "channel");
    te_sched_reorder(s, o, 5, (const char *[]){"part_of_channels", line, "col_o", "channel", "col_i"});
    return "channel";
}

/* A loop over the results of a tile. What makes 16 bits of a sum is long: there it stays a loop. */
static void write_out(te_sched *s, const rows_conv *v, const char *stage, const char *loop)
{
    if (!v->halves)
        te_sched_annotate(s, TE_UNROLL, stage, loop);
}

static void depthwise(const te_case *x, const rows_conv *v)
{
    te_sched *s = x->s;
    const struct target *t = x->t;
    te_node *anchor = x->anchor, *last = x->last;
    const char *o = last->name, *acc = te_sums_stage(s, anchor, last, "local"), *line = te_cut_lines(s, t, last);
    const te_node *rows = te_find_tag(s->g, "pad");
    te_sched_split(s, o, te_axis_name(last, COLUMN), depthwise_tile(v->out_extent[1]), "col_o", "col_i");
    const char *channels = te_axis_name(last, CHANNEL);
    const int64_t parts = parts_of_channels(t, v);
    if (t->lines_again)
        channels = take_channels(s, v, last, rows);
    else if (parts > 1)
        channels = part_channels(s, v, o, line, parts, channels);
    else
        te_sched_reorder(s, o, 2, (const char *[]){channels, "col_i"});
    write_out(s, v, o, "col_i");
    te_sched_compute_at(s, acc, o, channels);
    te_sched_reorder(s, acc, 3, (const char *[]){tap(anchor, 0), te_axis_name(anchor, COLUMN), tap(anchor, 1)});
    const bool is_short = rows_conv_weight_type(v) == DT_I16;
    te_sched_tensorize(s, acc, te_axis_name(anchor, COLUMN),
                       !v->nibbles ? "taps_row" : is_short ? "nibble_taps" : "nibble_taps_i32");
    if (v->win.kernel[0] <= MOST_ROWS)
        te_sched_annotate(s, TE_UNROLL, acc, tap(anchor, 0));
    if (t->lines_again)
        return;
    if (!v->planar)
        copy_together(s, t, v, rows, v->in / parts);
    place_rows(s, t, v, last, line);
}

/* Two loads at once want that every window of a tile begins at an even element. */
static bool begins_at_words(const rows_conv *v)
{
    return v->patches || v->tiled || v->pixel % 2 == 0 || (v->win.stride[1] % 2 == 0 && v->line % 2 == 0);
}

/* The stage of products in i32: that of the sums, or, of sums in i64, a chunk of them at a time. */
static const te_node *products_stage(te_sched *s, const rows_conv *v, const te_node *anchor, const char *acc,
                                     const char **out_name)
{
    const te_node *chunk = v->chunks > 1 ? te_find_tag(s->g, ROWS_CHUNKS) : NULL;
    *out_name = chunk ? chunk->name : acc;
    if (!chunk)
        return anchor;
    te_sched_reorder(s, acc, 3, (const char *[]){tap(anchor, 0), te_axis_name(anchor, COLUMN),
                                                 te_axis_name(anchor, CHANNEL)});
    te_sched_set_scope(s, chunk->name, "local");
    te_sched_compute_at(s, chunk->name, acc, tap(anchor, 0));
    return chunk;
}

static void sums(const te_case *x, const rows_conv *v)
{
    te_sched *s = x->s;
    const struct target *t = x->t;
    te_node *anchor = x->anchor, *last = x->last;
    const char *o = last->name, *all = te_sums_stage(s, anchor, last, "local"), *line = te_cut_lines(s, t, last);
    const te_node *rows = te_find_tag(s->g, "pad");
    te_sched_split(s, o, te_axis_name(last, COLUMN), ROWS_TILE, "col_o", "col_i");
    te_sched_split(s, o, te_axis_name(last, CHANNEL), v->block, "channel_o", "channel_i");
    const bool by_word = te_find_tag(s->g, "rescale_word") != NULL; /* a channel's three numbers stay in registers */
    te_sched_reorder(s, o, 4, (const char *[]){"col_o", "channel_o", by_word ? "channel_i" : "col_i",
                                               by_word ? "col_i" : "channel_i"});
    if (v->whole)
        te_sched_pragma(s, o, "col_o", "whole", 1);
    write_out(s, v, o, "col_i");
    write_out(s, v, o, "channel_i");
    te_sched_compute_at(s, all, o, "channel_o");
    const char *acc;
    const te_node *made = products_stage(s, v, anchor, all, &acc);
    te_sched_reorder(s, acc, 7,
                     (const char *[]){tap(made, 0), tap(made, 1), te_axis_name(made, COLUMN),
                                      te_axis_name(made, CHANNEL), tap(made, 2), tap(made, 3), tap(made, 4)});
    if (v->nibbles)
        te_sched_split(s, acc, te_axis_name(made, CHANNEL), 2, "pair_of_channels", "channel");
    const char *const codes[] = {"dot_rows_anywhere", "dot_rows", "nibble_rows_anywhere", "nibble_rows"};
    te_sched_tensorize(s, acc, te_axis_name(made, COLUMN), codes[2 * v->nibbles + begins_at_words(v)]);
    if (!cortex_m_has_words(t) && !v->patches && v->win.kernel[0] <= MOST_ROWS && v->steps <= SHORT_RUN)
        te_sched_annotate(s, TE_UNROLL, acc, tap(made, 0));
    if (v->tiled) {
        te_sched_reorder(s, rows->name, 2, (const char *[]){te_axis_name(rows, 3), te_axis_name(rows, 2)});
        if (!cortex_m_has_words(t))
            te_sched_annotate(s, TE_UNROLL, rows->name, te_axis_name(rows, 4));
    } else if (v->patches) {
        te_sched_split(s, rows->name, te_axis_name(rows, 3), v->win.kernel[1] * v->in, "row", "run");
    } else {
        te_sched_split(s, rows->name, te_axis_name(rows, 2), v->pixel, "column", "channel");
        if (v->planar && v->pixel <= TOGETHER && cortex_m_has_words(t))
            te_sched_annotate(s, TE_UNROLL, rows->name, "channel");
        else if (v->planar)
            te_sched_reorder(s, rows->name, 2, (const char *[]){"channel", "column"});
    }
    if (v->patches || v->tiled || (v->win.kernel[0] == 1 && v->win.kernel[1] == 1))
        te_sched_compute_at(s, rows->name, o, "col_o");
    else
        place_rows(s, t, v, last, line);
}

/* One pixel, a few channels at a time. */
static void direct(const te_case *x, const rows_conv *v)
{
    te_sched *s = x->s;
    te_node *anchor = x->anchor, *last = x->last;
    const char *o = last->name, *acc = te_sums_stage(s, anchor, last, "local");
    te_sched_split(s, o, te_axis_name(last, CHANNEL), v->block, "channel_o", "channel_i");
    te_sched_annotate(s, TE_UNROLL, o, "channel_i");
    te_sched_compute_at(s, acc, o, "channel_o");
    te_sched_reorder(s, acc, 3, (const char *[]){tap(anchor, 0), te_axis_name(anchor, CHANNEL), tap(anchor, 2)});
    const bool is_u8 = x->n->inputs[0]->type.dt == DT_U8;
    if (v->nibbles)
        te_sched_split(s, acc, te_axis_name(anchor, CHANNEL), 2, "pair_of_channels", "channel");
    const char *const codes[] = {"dot_bytes", "dot_bytes_u8", "nibble_bytes", "nibble_bytes_u8"};
    te_sched_tensorize(s, acc, v->nibbles ? "pair_of_channels" : te_axis_name(anchor, CHANNEL),
                       codes[2 * v->nibbles + is_u8]);
}

#define MOST_BETWEEN 1000 /* operations that one stage may become by being made again for each read */
#define MOST_STAGES  16

/* What stands between the sums and the result is made where it is read, but for what would become too much. The number
 * of such stages; more than there is room for: MOST_STAGES. */
static uint32_t inline_between(te_sched *s, const te_node *anchor, const te_node *last, const te_node **out_kept)
{
    uint32_t n_kept = 0;
    tir_map inlined;
    tir_map_init(&inlined, &s->c->mem);
    for (uint32_t i = 0; i < s->g->nodes.len && n_kept < MOST_STAGES; i++) {
        const te_node *n = s->g->nodes.data[i];
        bool rows = n->tag && strcmp(n->tag, "pad") == 0;
        if (n->kind != TE_COMPUTE || n == anchor || n == last || n->reducer || rows || n->n_outputs != 1)
            continue;
        const te_operations o = te_count_operations(s->g, n, &inlined);
        const uint32_t uses = te_uses_of(s->g, n);
        if (!te_is_inlined(s, n) && uses > 1 && o.whole > MOST_BETWEEN / uses) {
            out_kept[n_kept++] = n;
            continue;
        }
        if (!te_is_inlined(s, n))
            te_sched_compute_inline(s, n->name);
        te_note_inlined(&inlined, n, o);
    }
    return n_kept;
}

rows_conv runs_read(const te_case *x)
{
    rows_conv v;
    if (!rows_conv_read(x->s->c, x->n, &v))
        v = (rows_conv){.images = 0};
    return v;
}

bool runs_schedule(const te_case *x, runs_loops loops, const char *each)
{
    te_sched *s = x->s;
    const graph_node *n = x->n;
    const rows_conv v = runs_read(x);
    const te_node *kept[MOST_STAGES + 1];
    uint32_t n_kept = 0;
    if (s->g->params.len - s->g->n_inputs == 1 && x->last->kind == TE_COMPUTE)
        n_kept = inline_between(s, x->anchor, x->last, kept);
    kept[n_kept] = te_find_tag(s->g, ROWS_CHUNKS); /* placed with the sums */
    /* A single weight is a number in the expression of the sums, not a load: no intrinsic multiplies by that. */
    const bool literal = graph_constant(n->inputs[1]) && !te_is_data(n->inputs[1]);
    if (n_kept == MOST_STAGES || literal || !te_is_one_nest_with(s, x->anchor, x->last, "pad", n_kept + 1, kept))
        return false;
    for (uint32_t i = 0; i < n_kept; i++)
        te_sched_set_scope(s, kept[i]->name, "local");
    loops(x, &v);
    for (uint32_t i = 0; i < n_kept; i++)
        te_sched_compute_at(s, kept[i]->name, x->last->name, each ? each : te_axis_name(x->last, CHANNEL));
    return true;
}

/* --- rules --- */

static bool takes_direct(const te_case *x)
{
    const rows_conv v = runs_read(x);
    return !v.lanes && v.direct;
}

static bool takes_depthwise(const te_case *x)
{
    const rows_conv v = runs_read(x);
    return !v.lanes && !v.direct && v.depthwise;
}

static bool takes_sums(const te_case *x)
{
    const rows_conv v = runs_read(x);
    return !v.lanes && !v.direct && !v.depthwise;
}

/* Instructions of the kernels of kernel/dsp, as cost.c counts them for each call: of a run by two channels, of six
 * neighbors under three taps, of a tile of three runs by two channels. */
static double cost_direct(const te_case *x)
{
    (void)x;
    return (6 + 5 * 2) / 8.0;
}

static double cost_depthwise(const te_case *x)
{
    (void)x;
    return (5 + 3 + 5 * 6) / 18.0;
}

static double cost_sums(const te_case *x)
{
    (void)x;
    return (3 + 2 * 3 + 3 * 2 + 2 * 3 * 2) / 24.0;
}

static bool schedule_direct(const te_case *x)
{
    return runs_schedule(x, direct, "channel_o");
}

static bool schedule_depthwise(const te_case *x)
{
    return runs_schedule(x, depthwise, NULL);
}

static bool schedule_sums(const te_case *x)
{
    return runs_schedule(x, sums, "channel_o");
}

static const te_rule rows[] = {
    {"one pixel", TE_RUNS, "a run of bytes as it is by a few channels", takes_direct, cost_direct, schedule_direct},
    {"taps of a row", TE_RUNS, "neighbors of one channel under each row of its window", takes_depthwise,
     cost_depthwise, schedule_depthwise},
    {"runs", TE_RUNS, "a few pixels, whose windows are runs of 16-bit numbers, by two channels", takes_sums, cost_sums,
     schedule_sums},
};
const te_rules te_rules_runs = {rows, sizeof rows / sizeof *rows};
