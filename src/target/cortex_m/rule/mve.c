/* SPDX-License-Identifier: Apache-2.0 */
/* Schedules of qnn.conv2d_rows for Cortex-M with vectors (Helium), where 16 products of bytes are one instruction that
 * adds them to one sum in a general register. A tile is a few pixels by two channels; its sums stay in a small array
 * until those of a block of channels are there, and then become bytes in lanes of four channels. */
#include "target/cortex_m/rule/runs.h"
#include "target/cortex_m/units.h"

#include <string.h>

#define STILL       6   /* vectors of data that stay in registers while the weights of all channels pass by */
#define TILE_PIXELS 3   /* of longer runs, by two channels: 6 sums, 5 addresses and the count are all registers */
#define KEPT        192 /* sums in the array */
#define VECTOR      16  /* bytes */
#define LANES       4   /* sums in a vector */
#define MOST_TAPS   9   /* rows and runs of a window that are written out */
#define WINDOW      4   /* rows and columns of a depthwise window that one vector holds */

static const char *tap(const te_node *a, uint32_t i)
{
    return a->reduce_axes[i]->var->name;
}

/* Copies neighboring channels as a vector, or as a word or two. */
static void copy_in_vectors(te_sched *s, const te_node *rows, const char *loop, int64_t count)
{
    int64_t lanes = VECTOR;
    while (lanes >= LANES && count % lanes != 0)
        lanes /= 2;
    if (lanes < LANES)
        return;
    te_sched_split(s, rows->name, loop, lanes, "some", "byte");
    te_sched_annotate(s, TE_VECTORIZE, rows->name, "byte");
}

static void make_lines(te_sched *s, const rows_conv *v)
{
    const te_node *rows = te_find_tag(s->g, "pad");
    const nn_window *w = &v->win;
    if (v->patches) {
        te_sched_split(s, rows->name, te_axis_name(rows, 3), w->kernel[1] * v->in, "row", "run");
        if (!v->planar && v->in > 1) {
            te_sched_split(s, rows->name, "run", v->in, "column", "channel");
            copy_in_vectors(s, rows, "channel", v->in);
        }
        return;
    }
    bool pixel = v->line == v->in || (w->kernel[0] == 1 && w->kernel[1] == 1);
    if (pixel && !v->planar && w->stride[1] == 1 && !w->pad_begin[1] && !w->pad_end[1]) {
        copy_in_vectors(s, rows, te_axis_name(rows, 2), v->in);
        return;
    }
    te_sched_split(s, rows->name, te_axis_name(rows, 2), v->in, "column", "channel");
    if (v->planar)
        te_sched_reorder(s, rows->name, 2, (const char *[]){"channel", "column"});
    else
        copy_in_vectors(s, rows, "channel", v->in);
}

/* Pixels of a tile: as many as stay in registers while the weights pass by, or those of a tile of sums. */
static int64_t tile_pixels(const rows_conv *v)
{
    int64_t vectors = (v->run + VECTOR - 1) / VECTOR;
    int64_t rows = v->patches ? 1 : v->win.kernel[0];
    if (!v->patches && v->win.stride[1] * v->in == VECTOR && vectors < STILL) /* they share all vectors but one */
        return STILL - vectors + 1;
    return vectors * 2 <= STILL || (vectors <= STILL && rows == 1) ? STILL / vectors : TILE_PIXELS;
}

/* Channels that are computed together: all of `count`, or as many as divide them; a block that is cut at its end in
 * lanes, too, would leave guards. */
static int64_t channel_block(int64_t count, int64_t most)
{
    int64_t block = most / LANES * LANES;
    if (count <= most)
        return count;
    while (block > LANES && count % block != 0)
        block -= LANES;
    return block > 0 && count % block == 0 ? block : count;
}

static void sums(te_sched *s, const struct target *t, const rows_conv *v, te_node *anchor, te_node *last)
{
    const char *o = last->name, *acc = te_sums_stage(s, anchor, last, "local"), *line = te_cut_lines(s, t, last);
    const te_node *rows = te_find_tag(s->g, "pad");
    const nn_window *w = &v->win;
    int64_t pixels = tile_pixels(v), block = channel_block(v->out, KEPT / pixels);
    if (pixels * block > KEPT)
        pixels = 1;
    te_sched_split(s, o, te_axis_name(last, COLUMN), pixels, "col_o", "col_i");
    te_sched_split(s, o, te_axis_name(last, CHANNEL), block, "channel_o", "channel_i");
    te_sched_split(s, o, "channel_i", LANES, "channel_m", "lane");
    te_sched_reorder(s, o, 5, (const char *[]){"col_o", "channel_o", "channel_m", "col_i", "lane"});
    te_sched_annotate(s, TE_VECTORIZE, o, "lane");
    te_sched_compute_at(s, acc, o, "channel_o");
    const char *x = te_axis_name(anchor, COLUMN), *c = te_axis_name(anchor, CHANNEL);
    if (v->taps == 1) /* the intrinsic begins the sums */
        te_sched_reorder(s, acc, 5, (const char *[]){x, c, tap(anchor, 0), tap(anchor, 1), tap(anchor, 2)});
    else
        te_sched_reorder(s, acc, 5, (const char *[]){tap(anchor, 1), x, c, tap(anchor, 0), tap(anchor, 2)});
    if (v->nibbles)
        te_sched_split(s, acc, c, 2, "pair_of_channels", "channel");
    te_sched_tensorize(s, acc, x, v->nibbles ? "mve_nibbles" : "mve_dot");
    if (v->taps <= MOST_TAPS)
        te_sched_annotate(s, TE_UNROLL, acc, tap(anchor, 1));
    make_lines(s, v);
    te_sched_compute_at(s, rows->name, o,
                        v->patches || (w->kernel[0] == 1 && w->kernel[1] == 1) ? "col_o" : line);
}

static te_node *words_of(const te_graph *g)
{
    const te_node *rows = te_find_tag(g, "pad");
    for (uint32_t i = 0; i < g->nodes.len; i++)
        if (g->nodes.data[i] != rows && g->nodes.data[i]->tag && strcmp(g->nodes.data[i]->tag, "pad") == 0)
            return g->nodes.data[i];
    return NULL;
}

static void depthwise(te_sched *s, const struct target *t, const rows_conv *v, te_node *anchor, te_node *last)
{
    const char *o = last->name, *acc = te_sums_stage(s, anchor, last, "local"), *line = te_cut_lines(s, t, last);
    const te_node *rows = te_find_tag(s->g, "pad"), *words = words_of(s->g);
    te_sched_split(s, o, te_axis_name(last, CHANNEL), channel_block(v->in, VECTOR), "channel_o", "channel_i");
    te_sched_split(s, o, "channel_i", LANES, "channel_m", "lane");
    te_sched_reorder(s, o, 4, (const char *[]){"channel_o", "channel_m", te_axis_name(last, COLUMN), "lane"});
    te_sched_annotate(s, TE_VECTORIZE, o, "lane");
    te_sched_compute_at(s, acc, o, "channel_m");
    const char *order[6] = {NULL}, *taps[2] = {tap(anchor, 0), tap(anchor, 1)};
    uint32_t n = 0;
    for (uint32_t i = 0; i < 2; i++)
        if (v->win.kernel[i] > WINDOW) {
            const char *inner = i ? "kw_i" : "kh_i";
            order[n] = i ? "kw_o" : "kh_o";
            te_sched_split(s, acc, taps[i], WINDOW, order[n++], inner);
            taps[i] = inner;
        }
    order[n++] = te_axis_name(anchor, COLUMN);
    order[n++] = te_axis_name(anchor, CHANNEL);
    order[n++] = taps[0];
    order[n++] = taps[1];
    te_sched_reorder(s, acc, n, order);
    if (v->nibbles)
        te_sched_split(s, acc, te_axis_name(anchor, CHANNEL), 2, "pair_of_channels", "channel");
    te_sched_tensorize(s, acc, te_axis_name(anchor, COLUMN), v->nibbles ? "mve_window_nibbles" : "mve_window");
    te_sched_compute_at(s, words->name, o, "channel_o");
    te_sched_storage_align(s, words->name, te_axis_name(words, 4), ROWS_WORD, 0);
    te_sched_tensorize(s, words->name, te_axis_name(words, 3), "mve_words");
    make_lines(s, v);
    te_sched_compute_at(s, rows->name, o, line);
}

static void conv(const te_case *x, const rows_conv *v)
{
    if (v->depthwise)
        depthwise(x->s, x->t, v, x->anchor, x->last);
    else
        sums(x->s, x->t, v, x->anchor, x->last);
}

/* All channels are one block: lanes of it. */
static bool pool_in_lanes(const te_case *x, int64_t lanes)
{
    te_sched *s = x->s;
    te_node *anchor = x->anchor, *last = x->last;
    const uint32_t lane = last->n_axes - 1u;
    const char *acc = te_sums_stage(s, anchor, last, "local.reg");
    te_sched_split(s, last->name, te_axis_name(last, lane), lanes, "channel_o", "lane");
    te_sched_annotate(s, TE_VECTORIZE, last->name, "lane");
    te_sched_compute_at(s, acc, last->name, "channel_o");
    te_sched_reorder(s, acc, 3, (const char *[]){tap(anchor, 0), tap(anchor, 1), te_axis_name(anchor, lane)});
    te_sched_annotate(s, TE_VECTORIZE, acc, te_axis_name(anchor, lane));
    return true;
}

static bool pool_bytes(const te_case *x)
{
    return pool_in_lanes(x, VECTOR);
}

static bool pool_sums(const te_case *x)
{
    return pool_in_lanes(x, LANES);
}

/* --- rules --- */

static bool takes_conv(const te_case *x)
{
    return runs_read(x).lanes;
}

/* A pool of bytes in one block of at least a word. */
static bool takes_block(const te_case *x)
{
    const te_node *anchor = x->anchor, *last = x->last;
    const uint32_t lane = last->n_axes - 1u;
    return cortex_m_has_vectors(x->t) && anchor && last->n_axes == 5 && anchor->n_reduce == 2 &&
           te_axis_extent(last, lane) >= LANES && te_axis_extent(last, lane) == nn_data_block(x->n, "data_layout") &&
           dtype_bits(te_in_type(x->n, 0)->dt) == 8 && te_is_one_nest(x->s, anchor, last, NULL);
}

/* What a window becomes is a byte, too: an extreme. Compilers take vectors apart that do not fill a register. */
static bool keeps_bytes(const te_case *x)
{
    return takes_block(x) && dtype_bits(x->anchor->body[0]->type.dt) == 8;
}

static bool takes_bytes(const te_case *x)
{
    return keeps_bytes(x) && te_axis_extent(x->last, x->last->n_axes - 1u) % VECTOR == 0;
}

static bool takes_words(const te_case *x)
{
    return keeps_bytes(x) && !takes_bytes(x);
}

static bool takes_sums(const te_case *x)
{
    return takes_block(x) && !keeps_bytes(x);
}

/* A vector of data by one of weights: two loads and a product for 16. */
static double cost_conv(const te_case *x)
{
    (void)x;
    return 3.0 / VECTOR;
}

static double cost_bytes(const te_case *x)
{
    (void)x;
    return 2.0 / VECTOR;
}

static double cost_lanes(const te_case *x)
{
    (void)x;
    return 2.0 / LANES;
}

static bool schedule_conv(const te_case *x)
{
    return runs_schedule(x, conv, "channel_o");
}

static const te_rule rows[] = {
    {"vectors of bytes", TE_RUNS, "a few pixels by all channels, 16 products in an instruction", takes_conv, cost_conv,
     schedule_conv},
    {"bytes of channels", TE_POOL, "16 channels of a block, bytes in lanes", takes_bytes, cost_bytes, pool_bytes},
    {"words of channels", TE_POOL, "the extreme of each window in a register, four of them in a word", takes_words,
     cost_lanes, te_one_by_one},
    {"lanes of channels", TE_POOL, "four channels of a block in lanes", takes_sums, cost_lanes, pool_sums},
};
const te_rules te_rules_mve = {rows, sizeof rows / sizeof *rows};
