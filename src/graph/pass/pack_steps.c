/* SPDX-License-Identifier: Apache-2.0 */
/* Convolutions and products of bytes as lists of steps (graph/op/steps.h): which of them get such lists, and the
 * operators that put their data side by side. */
#include "graph/pass/pack_steps.h"
#include "graph/op/nn.h"
#include "graph/op/steps.h"
#include "type/cpu_model.h"
#include "type/dot.h"

#include <stdlib.h>
#include <string.h>

/* Steps of the longest list, in fifths of those that the weights have without a bound on sums. Longer lists took as
 * long as numbers that are widened, and more bytes. */
#define MOST_FIFTHS 7
/* The same by data of i8, whose steps take a fifth more time. */
#define MOST_SIGNED 6
/* By data that is split: the longest list, in tenths; output channels that may share one; weights of which fewer gain
 * less than what looking for large numbers takes. */
#define MOST_SPLIT     13
#define MOST_SHARED    16
#define LEAST_TO_SPLIT (1 << 16)
/* Of AVX-512 with weights of 16 MB, up to 8 rows: lists took 7 to 20 % longer; with 4 MB they took less. */
#define LINE_BYTES 64
#define FAR_PART   4 /* of the last cache, beyond which weights come from memory for each run of a network */

/* Numbers of u8, or `most` where they are more. */
static graph_value *limited(packer *p, graph_value *x, int64_t most, src_loc loc)
{
    graph_value *both[2] = {x, rewrite_constant(&p->r, tensor_scalar_i64(p->r.c, DT_U8, most), "most", loc)};
    return rewrite_emit(&p->r, "minimum", 2, both, 0, NULL, loc);
}

/* Data of u8 in blocks of channels with all channels of a pixel side by side, [N, rows, cols, channels], for such
 * lists: as i8, less 128, or limited. */
static graph_value *with_whole_pixels(packer *p, graph_value *x, const steps_source *from, src_loc loc)
{
    const bool is_signed = from->is_signed, is_limited = !is_signed && from->most < UINT8_MAX;
    static const int64_t perm[5] = {0, 2, 3, 1, 4};
    ptr_map *made = is_signed ? &p->turned_signed : is_limited ? &p->limited : &p->turned;
    uint32_t at = 0;
    if (!x || (!is_signed && !is_limited && dim_is(x->type.shape.dims[1], 1)))
        return x;
    if (ptr_map_get(made, x, &at))
        return p->pixels.data[at];
    const attr order = attr_ints(p->r.c, "perm", 5, perm);
    graph_value *v = rewrite_emit(&p->r, "transpose", 1, &x, 1, &order, loc);
    v = v && is_signed ? rewrite_shift(&p->r, v, -128, DT_I8) : v;
    v = v && is_limited ? limited(p, v, from->most, loc) : v;
    ptr_map_set(made, x, p->pixels.len);
    vec_push(&p->scratch, &p->pixels, v);
    return v;
}

/* Sums of lists by data less 128, with what these leave out. */
static graph_value *with_offsets(packer *p, graph_value *sums, const steps_lists *lists, src_loc loc)
{
    const int64_t dims[4] = {lists->offsets->count / p->lanes, 1, 1, p->lanes};
    const tensor_data *t = tensor_dense(p->r.c, DT_I32, 4, dims, tensor_element(lists->offsets, 0));
    graph_value *in[2] = {sums, rewrite_constant(&p->r, t, "offsets", loc)};
    return sums ? rewrite_emit(&p->r, "add", 2, in, 0, NULL, loc) : NULL;
}

void pack_steps_join_offsets(packer *p, graph_node *n)
{
    for (uint32_t i = 0; i < 2; i++) {
        const graph_node *sum = n->inputs[i]->def, *other = n->inputs[1 - i]->def;
        const graph_node *lists = sum && strcmp(sum->op->name, "add") == 0 ? sum->inputs[0]->def : NULL;
        if (!lists || strcmp(lists->op->name, "qnn.conv2d_steps") != 0 || !graph_constant(sum->inputs[1]) ||
            !shape_equal(n->inputs[1 - i]->type.shape, sum->inputs[1]->type.shape) ||
            !other || !rewrite_reads_constants(other))
            continue;
        graph_value *both[2] = {sum->inputs[1], n->inputs[1 - i]};
        graph_value *bias = rewrite_emit(&p->r, "add", 2, both, 0, NULL, n->loc);
        if (!bias)
            return;
        n->inputs[0] = sum->inputs[0];
        n->inputs[1] = bias;
        return;
    }
}

/* Weights of i8 that node n multiplies with data of u8, without zero points, where the target has instructions for
 * lists of steps; NULL: there are none. */
static const tensor_data *weights_for_steps(const packer *p, const graph_node *n, uint32_t rank)
{
    const tensor_data *w = n->n_inputs == 2 ? graph_dense_constant(n->inputs[1], rank) : NULL;
    const bool bytes = w && w->dt == DT_I8 && n->inputs[0]->type.dt == DT_U8;
    return bytes && target_find_steps_dot(p->target, DT_U8) ? w : NULL;
}

/* Whether the data of convolution n is in blocks of whole runs, and its result in blocks of the target's lanes. */
static bool has_blocks_of_runs(const packer *p, const graph_node *n)
{
    const int64_t block = nn_data_block(n, "data_layout");
    return block != 0 && block % STEPS_RUN == 0 && nn_data_block(n, "out_layout") == p->lanes;
}

/* What the lists of convolution n are made from, for data that will have its border in it, and all channels of a pixel
 * side by side; *size: numbers of an image. false: there are no such lists, or no need for them. */
static bool steps_source_of(packer *p, graph_node *n, steps_source *out, int64_t *size)
{
    const target_dot *row = target_find_dot(p->target, DT_U8, DT_I8, false);
    const int64_t *pads = NULL, *dilations = NULL, block = nn_data_block(n, "data_layout");
    const tensor_data *w = weights_for_steps(p, n, 4);
    int64_t x[5], y[5];
    if (!row || !w || !has_blocks_of_runs(p, n) || graph_attr_int(n, "groups") != 1 ||
        strcmp(graph_attr_string(n, "kernel_layout"), "OIHW") != 0)
        return false;
    if (!shape_get(n->inputs[0]->type.shape, x) || !shape_get(n->outputs[0]->type.shape, y) ||
        !target_find_wide_dot_for(p->target, row, y[2] * y[3]))
        return false;
    *out = (steps_source){.weights = w, .lanes = p->lanes, .in_block = x[1] * block, .rows = x[2], .cols = x[3],
                          .dilations = {1, 1}, .most = UINT8_MAX};
    if (graph_attr_ints(n, "pads", &pads) == 4) {
        out->rows += pads[0] + pads[2];
        out->cols += pads[1] + pads[3];
    }
    for (uint32_t i = 0; graph_attr_ints(n, "dilations", &dilations) == 2 && i < 2; i++)
        out->dilations[i] = dilations[i];
    return i64_mul(out->in_block, out->rows, size) && i64_mul(*size, out->cols, size) && *size <= INT32_MAX;
}

/* The lists that take the least time. signed_too: the data may become i8; from->is_signed says whether it is to. false:
 * they take as long as numbers that are widened, which is a remark. */
static bool short_lists(packer *p, const graph_node *n, steps_source *from, bool signed_too, steps_lists *out)
{
    graph_module *m = p->r.f->module;
    const int64_t least = steps_least(from);
    bool made = steps_make(p->r.c, from, (least * MOST_FIFTHS + 2) / 5, out);
    if (signed_too && (!made || out->steps * 5 > least * MOST_SIGNED)) {
        steps_source other = *from;
        steps_lists lists;
        other.is_signed = true;
        if (steps_make(p->r.c, &other, made ? out->steps * 5 / MOST_SIGNED : least * MOST_SIGNED / 5, &lists)) {
            *from = other;
            *out = lists;
            made = true;
        }
    }
    if (made)
        return true;
    const graph_note note = {"pack-weights", n->op->name, n->outputs[0]->name,
                             "weights too large for short lists of steps (docs/explanation/quantize.md): "
                             "they are widened",
                             n->loc};
    vec_push(&m->c->mem, &m->notes, note);
    return false;
}

/* A result's zero point, an operand. */
static bool is_zero_based(const graph_node *n, uint32_t operand)
{
    const tensor_data *zero = operand < n->n_inputs && n->inputs[operand] ? graph_constant(n->inputs[operand]) : NULL;
    return operand >= n->n_inputs || !n->inputs[operand] ||
           (zero && zero->count == 1 && tensor_get_i64(zero, 0) == 0);
}

/* Whether few numbers are likely to be large: results of sums, with 0 at the lower end and nothing piled up at the
 * upper one, as behind a ReLU. Calibration leaves room for the largest of all. */
static bool few_are_large(const graph_value *x)
{
    static const char *const movers[] = {"nn.pad", "nn.relu", "nn.max_pool2d", "layout_transform", "reshape",
                                         "transpose"};
    for (const graph_node *n = x->def; n; n = n->inputs[0]->def) {
        const bool sum = strcmp(n->op->name, "qnn.add") == 0;
        bool moves = false;
        for (size_t i = 0; i < sizeof movers / sizeof *movers; i++)
            moves |= strcmp(n->op->name, movers[i]) == 0;
        if (sum || strcmp(n->op->name, "qnn.requantize") == 0)
            return graph_attr_int(n, "piled") == 0 && is_zero_based(n, sum ? 7 : 3);
        if (!moves)
            return false;
    }
    return false;
}

/* Whether any four weights may meet in 16 bits: lists are as short as they can be by whatever data, and weights of 4
 * bits, which are packed later, stay so. */
static bool any_four_meet(const tensor_data *w)
{
    for (int64_t i = 0; i < w->count; i++)
        if (llabs((long long)tensor_get_i64(w, i)) > STEPS_EACH)
            return false;
    return true;
}

/* Lists by data that is split, where that is likely to pay. */
static bool split_lists(packer *p, const graph_node *n, steps_source *from, steps_lists *out)
{
    int64_t blocks = 0;
    steps_source split = *from;
    split.most = STEPS_LIMIT;
    if (dim_is_const(n->outputs[0]->type.shape.dims[1], &blocks) && blocks % 2 == 0 && split.lanes * 2 <= MOST_SHARED)
        split.lanes *= 2;
    if (p->no_split || from->weights->count < LEAST_TO_SPLIT || any_four_meet(from->weights) ||
        !few_are_large(n->inputs[0]) || !steps_make(p->r.c, &split, (steps_least(from) * MOST_SPLIT + 9) / 10, out))
        return false;
    *from = split;
    const char *text = arena_printf(&p->r.c->mem,
                                    "its data is split: the more of its values are above %d, the longer it takes; "
                                    "--no-split-data avoids this (docs/explanation/quantize.md)", STEPS_LIMIT);
    const graph_note note = {"pack-weights", n->op->name, n->outputs[0]->name, text, n->loc};
    vec_push(&p->r.c->mem, &p->r.f->module->notes, note);
    return true;
}

bool pack_steps_conv(packer *p, graph_node *n)
{
    compiler *c = p->r.c;
    const int64_t *given = NULL;
    int64_t y[5], size = 0, strides[2] = {1, 1};
    steps_source from;
    steps_lists lists;
    if (!steps_source_of(p, n, &from, &size))
        return false;
    const bool split = split_lists(p, n, &from, &lists);
    if (!split && !short_lists(p, n, &from, from.weights->count / from.weights->dims[0] <= STEPS_MOST, &lists))
        return false;
    (void)shape_get(n->outputs[0]->type.shape, y);
    for (uint32_t i = 0; graph_attr_ints(n, "strides", &given) == 2 && i < 2; i++)
        strides[i] = given[i];
    graph_value *image = packer_border(p, n), *data = with_whole_pixels(p, image, &from, n->loc);
    const int64_t flat[2] = {y[0], size}, out[2] = {y[2], y[3]},
                  taps = from.weights->dims[2] * from.weights->dims[3],
                  apart[2] = {strides[0] * from.cols * from.in_block, strides[1] * from.in_block};
    const attr attrs[7] = {attr_ints(c, "out", 2, out), attr_ints(c, "strides", 2, apart),
                           attr_int(c, "products", from.weights->dims[1] * taps), attr_int(c, "proved", 1),
                           attr_int(c, "lanes", p->lanes), attr_int(c, "most", from.most),
                           attr_ints(c, "dilations", 2, from.dilations)};
    const char *runs = arena_printf(&c->mem, "IHW%lldiO%uo%di",
                                    (long long)nn_data_block(n, "data_layout") / STEPS_RUN, p->lanes, STEPS_RUN);
    graph_value *shaped[2] = {data, rewrite_constant(&p->r, tensor_from_i64s(c, 2, flat), "shape", n->loc)};
    graph_value *in[5] = {data ? rewrite_emit(&p->r, "reshape", 2, shaped, 0, NULL, n->loc) : NULL,
                          rewrite_constant(&p->r, lists.weights, n->inputs[1]->name, n->loc),
                          rewrite_constant(&p->r, lists.places, "places", n->loc), image,
                          split ? packer_transform(p, n, "OIHW", runs, false) : NULL};
    graph_value *sums = in[0] && (!split || in[4])
                            ? rewrite_emit(&p->r, "qnn.conv2d_steps", split ? 5 : 3, in, split ? 7 : 4, attrs, n->loc)
                            : NULL;
    if (from.is_signed)
        sums = with_offsets(p, sums, &lists, n->loc);
    return sums && rewrite_replace(&p->r, n->outputs[0], sums);
}

/* Weights [K, N], or transposed [N, K], as those of a convolution [N, K, 1, 1]. */
static const tensor_data *as_channels(compiler *c, const tensor_data *w, bool transposed)
{
    const int64_t units = w->dims[transposed ? 0 : 1], k = w->dims[transposed ? 1 : 0], dims[4] = {units, k, 1, 1};
    int8_t *to = arena_array(&c->mem, int8_t, (size_t)w->count);
    for (int64_t i = 0; i < w->count; i++)
        to[i] = (int8_t)tensor_get_i64(w, transposed ? i : i % k * units + i / k);
    return tensor_dense(c, DT_I8, 4, dims, to);
}

/* The lists of product n; weights NULL: they would be too long, or an error. */
static product_lists lists_of(packer *p, const graph_node *n, const tensor_data *w, bool transposed)
{
    graph_value *v = n->inputs[1];
    uint32_t at = 0;
    steps_lists lists;
    product_lists made = {.transposed = transposed};
    if (ptr_map_get(&p->listed, v, &at) && p->lists.data[at].transposed == transposed)
        return p->lists.data[at];
    const int64_t k = w->dims[transposed ? 1 : 0];
    steps_source from = {.weights = as_channels(p->r.c, w, transposed), .lanes = p->lanes, .in_block = k,
                               .rows = 1, .cols = 1, .dilations = {1, 1}, .most = UINT8_MAX};
    if (short_lists(p, n, &from, false, &lists)) {
        made.weights = rewrite_constant(&p->r, lists.weights, v->name, n->loc);
        made.places = rewrite_constant(&p->r, lists.places, "places", n->loc);
    }
    ptr_map_set(&p->listed, v, p->lists.len);
    vec_push(&p->scratch, &p->lists, made);
    return made;
}

/* Of such weights any runs fit together, and those of 4 bits stay two in a byte: neither needs lists. */
static bool are_small(const tensor_data *w)
{
    int64_t low = INT8_MAX, high = INT8_MIN;
    for (int64_t i = 0; i < w->count; i++) {
        const int64_t x = tensor_get_i64(w, i);
        low = x < low ? x : low;
        high = x > high ? x : high;
    }
    return high - low < 16 || (low >= -STEPS_EACH && high <= STEPS_EACH);
}

/* Weights that come from memory for a few rows: lists have a tenth more bytes, and steps longer than a line are not
 * fetched ahead. */
static bool waits_for_memory(const packer *p, const graph_node *n, const tensor_data *w)
{
    const shape a = n->inputs[0]->type.shape;
    int64_t rows = 1;
    const bool few = a.rank < 2 || (dim_is_const(a.dims[a.rank - 2], &rows) && rows < PACKER_FEW_ROWS);
    return few && p->lanes * STEPS_RUN * STEPS_RUNS > LINE_BYTES &&
           w->count > target_cpu(p->target)->l3_bytes / FAR_PART;
}

bool pack_steps_matmul(packer *p, graph_node *n)
{
    const tensor_data *w = weights_for_steps(p, n, 2);
    const bool transposed = graph_attr_int(n, "transpose_b") != 0;
    const shape a = n->inputs[0]->type.shape;
    if (!w || a.rank < 1 || n->outputs[0]->type.dt != DT_I32 || graph_attr_int(n, "transpose_a") != 0 ||
        strcmp(graph_attr_string(n, "weight_layout"), "KN") != 0)
        return false;
    if (waits_for_memory(p, n, w) || are_small(w))
        return false;
    const int64_t units = w->dims[transposed ? 0 : 1], k = w->dims[transposed ? 1 : 0];
    if (units < (int64_t)p->lanes || k < STEPS_RUN * STEPS_RUNS || k > INT32_MAX || !dim_is(a.dims[a.rank - 1], k))
        return false;
    const product_lists lists = lists_of(p, n, w, transposed);
    graph_value *in[3] = {n->inputs[0], lists.weights, lists.places};
    const attr attrs[2] = {attr_int(p->r.c, "units", units), attr_int(p->r.c, "proved", 1)};
    graph_value *sums = in[1] && in[2] ? rewrite_emit(&p->r, "qnn.matmul_steps", 3, in, 2, attrs, n->loc) : NULL;
    return sums && rewrite_replace(&p->r, n->outputs[0], sums);
}
