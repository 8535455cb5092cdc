/* SPDX-License-Identifier: Apache-2.0 */
/* Part of the pass use-integers for numbers of 16 bits. A sum of products that may not fit into i32 is added in i64,
 * from sums over a few channels each, which fit into i32 for these weights. So the multiplications are the same as in
 * any other layer: packed, tiled, with the processor's instructions for pairs of 16 bits. */
#include "graph/pass/qnn.h"

#include <stdlib.h>
#include <string.h>

#define MOST_PARTS 8
#define MOST_ALIKE (1 << 20) /* weights that are one number, which would be counted one by one: no layer has more */
#define BLOCK      16 /* channels that lie together on hosts */

/* A layer that is cut: weights, with the axis of outputs and that of the inputs, which is summed over. */
typedef struct cut {
    const tensor_data *w;
    const qnn_params *of_w;
    int64_t reach; /* of the data */
    int32_t line, axis;
    int64_t *sums, *more; /* for each output: of the part so far, and of one channel more */
} cut;

static int64_t step_of(const tensor_data *t, int32_t axis)
{
    int64_t step = 1;
    for (uint32_t i = (uint32_t)axis + 1; i < t->rank; i++)
        step *= t->dims[i];
    return step;
}

/* Sums of absolute weights of that channel, for each output. */
static void read_channel(cut *k, int64_t channel)
{
    const tensor_data *w = k->w;
    const int64_t line_step = step_of(w, k->line), step = step_of(w, k->axis);
    const int64_t outer = w->count / (step * w->dims[k->axis]);
    memset(k->more, 0, (size_t)w->dims[k->line] * sizeof *k->more);
    for (int64_t o = 0; o < outer; o++)
        for (int64_t i = 0; i < step; i++) {
            const int64_t at = (o * w->dims[k->axis] + channel) * step + i;
            const int64_t line = at / line_step % w->dims[k->line];
            k->more[line] += llabs(tensor_get_i64(w, at) - qnn_zero(k->of_w, line));
        }
}

/* Whether the part holds that channel, too; it is counted, in the part or in a new one. */
static bool add_channel(cut *k)
{
    const int64_t lines = k->w->dims[k->line], room = INT32_MAX / k->reach;
    bool fits = true;
    for (int64_t i = 0; i < lines; i++)
        fits &= k->sums[i] + k->more[i] <= room;
    for (int64_t i = 0; i < lines; i++)
        k->sums[i] = k->more[i] + (fits ? k->sums[i] : 0);
    return fits;
}

/* Parts have sums in memory of their own, which only hosts have plenty of; one that a bias alone takes beyond i32 has
 * none. */
uint32_t qnn_most_parts(const pass_options *o)
{
    return o->target->vector_bytes > 0 ? MOST_PARTS : 1;
}

/* Where parts end; 0: there are more than `most`. */
static uint32_t find_ends(cut *k, int64_t *ends, uint32_t most)
{
    const int64_t channels = k->w->dims[k->axis], room = INT32_MAX / k->reach;
    uint32_t n = 0;
    for (int64_t c = 0; c < channels; c++) {
        read_channel(k, c);
        for (int64_t i = 0; i < k->w->dims[k->line]; i++)
            if (k->more[i] > room)
                return 0;
        if (add_channel(k))
            continue;
        if (n + 1 == most)
            return 0;
        ends[n++] = c;
    }
    ends[n++] = channels;
    return n;
}

static bool fits_evenly(cut *k, int64_t each)
{
    for (int64_t c = 0; c < k->w->dims[k->axis]; c++) {
        read_channel(k, c);
        if (c % each == 0)
            memset(k->sums, 0, (size_t)k->w->dims[k->line] * sizeof *k->sums);
        if (!add_channel(k))
            return false;
    }
    return true;
}

/* Parts of equal size where that takes no more of them, blocks of channels whole if it can be. */
static void even_out(cut *k, int64_t *ends, uint32_t n)
{
    const int64_t channels = k->w->dims[k->axis], least = (channels + n - 1) / n;
    const int64_t sizes[] = {(least + BLOCK - 1) / BLOCK * BLOCK, least};
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
        const int64_t each = sizes[s];
        if ((channels + each - 1) / each != n || !fits_evenly(k, each))
            continue;
        for (uint32_t i = 0; i < n; i++)
            ends[i] = (i + 1) * each < channels ? (i + 1) * each : channels;
        return;
    }
}

graph_value *qnn_sum_in_parts(rewriter *r, const graph_node *n, const char *op, graph_value *const *in,
                              const qnn_params *x, const qnn_params *w, int32_t line, uint32_t most)
{
    compiler *c = r->c;
    const bool conv = strncmp(n->op->name, "nn.conv", 7) == 0;
    cut k = {.w = graph_constant(in[1]), .of_w = w, .reach = qnn_reach(x), .line = line};
    if (!k.w || (k.w->kind == TENSOR_SPLAT && k.w->count > MOST_ALIKE) ||
        (conv && (graph_attr_int(n, "groups") != 1 || strstr(op, "transpose"))) || (!conv && k.w->rank != 2))
        return NULL;
    k.axis = conv ? 1 : 1 - line;
    k.sums = arena_array(&c->mem, int64_t, (size_t)k.w->dims[line]);
    k.more = arena_array(&c->mem, int64_t, (size_t)k.w->dims[line]);
    memset(k.sums, 0, (size_t)k.w->dims[line] * sizeof *k.sums);
    int64_t ends[MOST_PARTS];
    const uint32_t parts = find_ends(&k, ends, most);
    if (parts == 0)
        return NULL;
    even_out(&k, ends, parts);
    const int64_t w_axis = k.axis;
    const int64_t axis = conv ? 1 : in[0]->type.shape.rank - (graph_attr_int(n, "transpose_a") ? 2 : 1);
    const uint32_t n_in = in[3] ? 4 : in[2] ? 3 : 2;
    const attr to = attr_dtype(c, "dtype", DT_I64);
    graph_value *all = NULL;
    for (uint32_t i = 0; i < parts; i++) {
        const int64_t from = i > 0 ? ends[i - 1] : 0;
        graph_value *part[4] = {in[0], in[1], in[2], in[3]};
        if (parts > 1) {
            part[0] = rewrite_slice(r, in[0], 1, &from, &ends[i], &axis, NULL, n->loc);
            part[1] = rewrite_slice(r, in[1], 1, &from, &ends[i], &w_axis, NULL, n->loc);
        }
        graph_value *sum = part[0] && part[1] ? rewrite_emit(r, op, n_in, part, n->n_attrs, n->attrs, n->loc) : NULL;
        sum = sum ? rewrite_emit(r, "cast", 1, &sum, 1, &to, n->loc) : NULL;
        graph_value *pair[2] = {all, sum};
        all = sum && all ? rewrite_emit(r, "add", 2, pair, 0, NULL, n->loc) : sum;
        if (!all)
            return NULL;
    }
    return all;
}
