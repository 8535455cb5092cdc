/* SPDX-License-Identifier: Apache-2.0 */
/* Constant weights in the order in which vector kernels read them: blocks of one vector of output channels last. The
 * transform is an operator on a constant; the constant folder that runs next evaluates it. Shapes, contracts:
 * kernel_layout and weight_layout of nn.conv* and nn.matmul in graph_ops.def. */
#include "graph/op/layout.h"
#include "graph/op/nn.h"
#include "graph/op/steps.h"
#include "graph/pass.h"
#include "graph/pass/rewrite.h"
#include "base/ptr_map.h"
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
/* Measured as attention's (docs/performance.md). */
#define FEW_ROWS 12 /* of a left operand, for which the right one is not turned: that takes longer than sums in lanes */
/* Of AVX-512 with weights of 16 MB, up to 8 rows: lists took 7 to 20 % longer; with 4 MB they took less. */
#define LINE_BYTES 64
#define FAR_PART   4 /* of the last cache, beyond which weights come from memory for each run of a network */

/* Lists of steps of weights that products share. */
typedef struct product_lists {
    bool transposed;
    graph_value *weights, *places; /* NULL: they would be too long */
} product_lists;

typedef struct packed_weights {
    graph_value *v;
    const char *src, *dst; /* layouts */
} packed_weights;

/* Data with a border. */
typedef struct bordered {
    graph_value *v;
    int64_t pads[4];
} bordered;

typedef struct packer {
    rewriter r;
    const struct target *target;
    uint32_t lanes;
    bool no_split;
    arena scratch;
    ptr_map packed; /* weights -> position in `list`: weights that several nodes share are packed once */
    VEC(packed_weights) list;
    ptr_map filled; /* data -> position in `rows`, the same with rows filled up */
    VEC(graph_value *) rows;
    ptr_map framed; /* data -> position in `borders`, the last border that it got */
    VEC(bordered) borders;
    /* data -> position in `pixels`, the same with whole pixels, as it is, as i8, or limited */
    ptr_map turned, turned_signed, limited;
    VEC(graph_value *) pixels;
    ptr_map listed; /* weights of products -> position in `lists` */
    VEC(product_lists) lists;
} packer;

/* Weights worth packing: f32, static, dense (a splat is a literal in the kernel and needs no memory), at least half a
 * vector of output channels. */
static const tensor_data *weights_of(const packer *p, const graph_node *n)
{
    const tensor_data *w = graph_constant(n->inputs[1]);
    return w && w->kind == TENSOR_DENSE && w->dt == DT_F32 && w->count > 0 && p->lanes > 1 ? w : NULL;
}

/* The same for products of integers; *row says how. A row that asks for a proof gets it from the weights. */
static const tensor_data *integer_weights(packer *p, graph_node *n, uint32_t axis, const target_dot **row)
{
    const tensor_data *w = graph_constant(n->inputs[1]);
    if (!w || w->kind != TENSOR_DENSE || w->count == 0 || n->n_inputs > 2 || axis >= w->rank)
        return NULL;
    dtype dt = n->inputs[0]->type.dt;
    const target_dot *proved = target_find_dot(p->target, dt, w->dt, true);
    *row = target_find_dot(p->target, dt, w->dt, false);
    if (*row && proved->needs_proof && nn_pairs_fit(dt, w, axis))
        *row = proved;
    return *row ? w : NULL;
}

/* promised: something will be said of the numbers (graph/op/promise.h), which must be there to be looked at: they are
 * transformed here. */
static graph_value *transform(packer *p, graph_node *n, const char *src, const char *dst, bool promised)
{
    graph_value *w = n->inputs[1];
    compiler *c = p->r.c;
    uint32_t at = 0;
    const bool known = ptr_map_get(&p->packed, w, &at) && strcmp(p->list.data[at].src, src) == 0 &&
                       strcmp(p->list.data[at].dst, dst) == 0;
    if (known && (!promised || graph_constant(p->list.data[at].v)))
        return p->list.data[at].v;
    const attr attrs[2] = {attr_string(c, "src_layout", src), attr_string(c, "dst_layout", dst)};
    graph_value *v = rewrite_emit(&p->r, "layout_transform", 1, &w, 2, attrs, n->loc);
    if (promised)
        v = rewrite_evaluate(&p->r, v);
    if (!v || (promised && !graph_constant(v)))
        return NULL;
    rewrite_take_name(v, w);
    ptr_map_set(&p->packed, w, p->list.len);
    vec_push(&p->scratch, &p->list, ((packed_weights){v, src, dst}));
    return v;
}

/* The kernel's layout of 2-D weights when its result is in blocks of channels: blocks of outputs last, and under them
 * blocks of inputs when the data has them, so that a step over input channels reads the next vector. NULL: stays. */
static const char *blocked_layout(packer *p, const graph_node *n, const tensor_data *w)
{
    int64_t block = nn_data_block(n, "out_layout"), in_block = nn_data_block(n, "data_layout");
    compiler *c = p->r.c;
    if (block != p->lanes)
        return NULL;
    if (in_block && w->dims[1] > 1)
        return arena_printf(&c->mem, "OIHW%lldi%lldo", (long long)in_block, (long long)block);
    return arena_printf(&c->mem, "OIHW%lldo", (long long)block);
}

/* The layout when the data is plain: one vector of output channels as lanes, no group cuts it. */
static const char *plain_layout(packer *p, const graph_node *n, const tensor_data *w)
{
    int64_t groups = graph_attr_int(n, "groups"), channels = w->dims[0], lanes = p->lanes;
    bool depthwise = groups > 1 && w->dims[1] == 1;
    bool blocks_in_groups = groups == 1 || (groups <= 8 && channels / groups % lanes == 0);
    if (depthwise || !blocks_in_groups || channels * 2 < lanes)
        return NULL;
    return arena_printf(&p->r.c->mem, "%s%uo", w->rank == 3 ? "OIW" : "OIHW", p->lanes);
}

static void pack_conv(packer *p, graph_node *n)
{
    compiler *c = p->r.c;
    const tensor_data *w = weights_of(p, n);
    const char *layout = graph_attr_string(n, "kernel_layout");
    if (!w || (w->rank != 3 && w->rank != 4) || strcmp(layout, "OIHW") != 0)
        return;
    bool blocked = nn_data_block(n, "out_layout") != 0;
    const char *packed = blocked ? blocked_layout(p, n, w) : plain_layout(p, n, w);
    graph_value *v = packed ? transform(p, n, w->rank == 3 ? "OIW" : "OIHW", packed, false) : NULL;
    if (!v)
        return;
    n->inputs[1] = v;
    graph_set_attr(p->r.f, n, attr_string(c, "kernel_layout", packed));
    graph_set_attr(p->r.f, n, attr_int(c, "channels", w->dims[0]));
    if (layout_text_block(packed, 'I'))
        graph_set_attr(p->r.f, n, attr_int(c, "in_channels", w->dims[1]));
}

/* How the products of convolution n are made; block: of its data's channels. *wide: both operands are widened before.
 * NULL: the weights do not come out in such pieces. */
static const target_dot *conv_dot(const packer *p, const graph_node *n, const tensor_data *w, const target_dot *row,
                                  int64_t block, bool *wide)
{
    const shape s = n->outputs[0]->type.shape;
    int64_t height = 0, width = 0, along = block ? block : w->dims[3];
    const bool known = dim_is_const(s.dims[2], &height) && dim_is_const(s.dims[3], &width);
    const target_dot *wider =
        known && graph_attr_int(n, "groups") == 1 ? target_find_wide_dot_for(p->target, row, height * width) : NULL;
    *wide = wider && along % wider->granule == 0;
    if (*wide)
        return wider;
    const target_dot *tiles = known && graph_attr_int(n, "groups") == 1
                                  ? target_find_tile_dot(p->target, row, width, block ? w->dims[1] : along) : NULL;
    const bool pairs = tiles && block * 2 == tiles->granule && (w->dims[1] + block - 1) / block % 2 == 0;
    if (pairs || (tiles && !block && along % tiles->granule == 0))
        return tiles;
    return along % row->granule == 0 ? row : NULL;
}

/* The data of convolution n with its border in it: tiles of pixels have no tests between them. Convolutions with one
 * border read one value. NULL after an error. */
static graph_value *with_border(packer *p, graph_node *n)
{
    graph_value *x = n->inputs[0];
    const int64_t *pads = NULL;
    uint32_t at = 0;
    if (graph_attr_ints(n, "pads", &pads) != 4 || (!pads[0] && !pads[1] && !pads[2] && !pads[3]))
        return x;
    if (ptr_map_get(&p->framed, x, &at) && memcmp(p->borders.data[at].pads, pads, 4 * sizeof *pads) == 0)
        return p->borders.data[at].v;
    const int64_t all[10] = {0, 0, pads[0], pads[1], 0, 0, 0, pads[2], pads[3], 0};
    const bordered made = {rewrite_pad(&p->r, x, all, NULL, n->loc), {pads[0], pads[1], pads[2], pads[3]}};
    if (made.v) {
        ptr_map_set(&p->framed, x, p->borders.len);
        vec_push(&p->scratch, &p->borders, made);
    }
    return made.v;
}

/* Whether depthwise convolution n is better made of pairs of rows (te/op/row_pairs.c): the target multiplies pairs of
 * 16 bits, and there are two rows of taps, one behind the other. */
static bool takes_row_pairs(const packer *p, const graph_node *n, const tensor_data *w)
{
    const int64_t *dilations = NULL;
    const bool apart = graph_attr_ints(n, "dilations", &dilations) > 0 && dilations[0] != 1;
    const target_dot *words = target_find_dot(p->target, DT_I16, DT_I16, false); /* one instruction for two */
    return words && words->weight_work == 0 && dtype_bits(n->inputs[0]->type.dt) == 8 && n->n_inputs < 4 &&
           w->dims[2] > 1 && !apart && w->dims[0] == graph_attr_int(n, "groups") &&
           nn_data_block(n, "data_layout") == nn_data_block(n, "out_layout");
}

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

/* A constant that is added to sums and their offsets, a bias, is added to the offsets. */
static void join_offsets(packer *p, graph_node *n)
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

/* What the lists of convolution n are made from, for data that will have its border in it, and all channels of a pixel
 * side by side; *size: numbers of an image. false: there are no such lists, or no need for them. */
static bool steps_source_of(packer *p, graph_node *n, steps_source *out, int64_t *size)
{
    const target_dot *row = target_find_dot(p->target, DT_U8, DT_I8, false);
    const int64_t *pads = NULL, *dilations = NULL, block = nn_data_block(n, "data_layout");
    int64_t x[5], y[5];
    const tensor_data *w = row && n->n_inputs == 2 ? graph_constant(n->inputs[1]) : NULL;
    if (!w || w->kind != TENSOR_DENSE || w->count == 0 || w->rank != 4 || w->dt != DT_I8 ||
        n->inputs[0]->type.dt != DT_U8 || block == 0 || block % STEPS_RUN != 0 ||
        nn_data_block(n, "out_layout") != p->lanes || graph_attr_int(n, "groups") != 1 ||
        strcmp(graph_attr_string(n, "kernel_layout"), "OIHW") != 0 || !shape_get(n->inputs[0]->type.shape, x) ||
        !shape_get(n->outputs[0]->type.shape, y) || !target_find_steps_dot(p->target, DT_U8) ||
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
                             "weights too large for short lists of steps (docs/quantize.md): they are widened", n->loc};
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
                                    "its data is split: it takes the longer, the more numbers of that are above %d; "
                                    "--no-split-data has other lists (docs/quantize.md)", STEPS_LIMIT);
    const graph_note note = {"pack-weights", n->op->name, n->outputs[0]->name, text, n->loc};
    vec_push(&p->r.c->mem, &p->r.f->module->notes, note);
    return true;
}

/* Convolution n as lists of steps, where the target would else widen numbers and the lists come out short. false: it
 * stays, or an error. */
static bool pack_steps(packer *p, graph_node *n)
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
    graph_value *image = with_border(p, n), *data = with_whole_pixels(p, image, &from, n->loc);
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
                          split ? transform(p, n, "OIHW", runs, false) : NULL};
    graph_value *sums = in[0] && (!split || in[4])
                            ? rewrite_emit(&p->r, "qnn.conv2d_steps", split ? 5 : 3, in, split ? 7 : 4, attrs, n->loc)
                            : NULL;
    if (from.is_signed)
        sums = with_offsets(p, sums, &lists, n->loc);
    return sums && rewrite_replace(&p->r, n->outputs[0], sums);
}

/* In blocks of channels, each lane with some inputs side by side; of a single plane these are neighbours in a row.
 * Blocks of inputs are full: the weights of what is not there are 0. */
static void pack_integer_conv(packer *p, graph_node *n)
{
    compiler *c = p->r.c;
    const target_dot *row;
    int64_t block = nn_data_block(n, "out_layout"), in_block = nn_data_block(n, "data_layout");
    const tensor_data *w = integer_weights(p, n, in_block ? 1 : 3, &row);
    if (!w || w->rank != 4 || block != p->lanes || strcmp(graph_attr_string(n, "kernel_layout"), "OIHW") != 0)
        return;
    const bool single = w->dims[1] == 1 && graph_attr_int(n, "groups") > 1, plane = !in_block && w->dims[1] == 1;
    bool wide = false;
    if (!single && ((!in_block && !plane) || !(row = conv_dot(p, n, w, row, in_block, &wide))))
        return;
    const char *packed = arena_printf(&c->mem, "OIHW%lldo", (long long)block);
    if (!single && plane)
        packed = arena_printf(&c->mem, "OIHW%lldo%uw", (long long)block, row->granule);
    else if (!single) {
        in_block = row->tile ? row->granule : in_block;
        packed = arena_printf(&c->mem, "OIHW%lldi%lldo%ui", (long long)(in_block / row->granule), (long long)block,
                              row->granule);
    }
    graph_value *x = !single && row->tile ? with_border(p, n) : n->inputs[0];
    graph_value *v = x ? transform(p, n, "OIHW", packed, row->needs_proof && !single) : NULL;
    if (!v)
        return;
    if (x != n->inputs[0])
        graph_set_attr(p->r.f, n, attr_ints(c, "pads", 0, NULL));
    n->inputs[0] = x;
    n->inputs[1] = v;
    graph_set_attr(p->r.f, n, attr_string(c, "kernel_layout", packed));
    graph_set_attr(p->r.f, n, attr_int(c, "channels", w->dims[0]));
    if (single) {
        if (takes_row_pairs(p, n, w))
            graph_set_attr(p->r.f, n, attr_int(c, "wide", 1));
        return;
    }
    if (in_block)
        graph_set_attr(p->r.f, n, attr_int(c, "in_channels", (w->dims[1] + in_block - 1) / in_block * in_block));
    graph_set_attr(p->r.f, n, attr_int(c, "pairs", row->needs_proof));
    if (wide)
        graph_set_attr(p->r.f, n, attr_int(c, "wide", 1));
}

/* The same for product n of `units` columns and sums of k numbers. */
static const target_dot *matmul_dot(const packer *p, const graph_node *n, const target_dot *row, int64_t k,
                                    int64_t units, bool *wide)
{
    const shape s = n->outputs[0]->type.shape;
    int64_t rows = 0, all = shape_is_static(s) ? shape_count(s) : 0;
    const bool whole = all > 0 && s.rank >= 2 && dim_is_const(s.dims[s.rank - 2], &rows) && units % p->lanes == 0;
    const target_dot *wider = whole && row->a != DT_I16 ? target_find_wide_dot_for(p->target, row, rows) : NULL;
    const target_dot *tiles = rows > 0 ? target_find_tile_dot(p->target, row, rows, k) : NULL;
    *wide = wider != NULL;
    return wider ? wider : tiles ? tiles : row;
}

/* The left operand of product n of sums of k numbers, with zeros behind them where its granules are not full: those of
 * the packed weights are zeros there. */
static graph_value *filled_rows(packer *p, const graph_node *n, int64_t k, int64_t granule)
{
    graph_value *a = n->inputs[0];
    const int32_t rank = a->type.shape.rank;
    int64_t have = 0, pads[2 * TYPE_MAX_RANK] = {0};
    const int64_t more = (granule - k % granule) % granule;
    uint32_t at = 0;
    if (more == 0)
        return a;
    if (!dim_is_const(a->type.shape.dims[rank - 1], &have) || have != k)
        return NULL;
    if (ptr_map_get(&p->filled, a, &at) && dim_is(p->rows.data[at]->type.shape.dims[rank - 1], k + more))
        return p->rows.data[at];
    pads[2 * rank - 1] = more;
    graph_value *x = rewrite_pad(&p->r, a, pads, NULL, n->loc);
    if (x) {
        ptr_map_set(&p->filled, a, p->rows.len);
        vec_push(&p->scratch, &p->rows, x);
    }
    return x;
}

/* Weights of 8 bits by data of 16, summed in i32: both are 16 where there is an instruction for that. */
static void widen_weights(packer *p, graph_node *n, int64_t columns)
{
    const tensor_data *w = graph_constant(n->inputs[1]);
    if (!w || w->kind != TENSOR_DENSE || w->dt != DT_I8 || n->inputs[0]->type.dt != DT_I16 || n->n_inputs > 2 ||
        n->outputs[0]->type.dt != DT_I32 || columns < (int64_t)p->lanes ||
        !target_find_dot(p->target, DT_I16, DT_I16, false))
        return;
    int16_t *wide = arena_array(&p->r.c->mem, int16_t, (size_t)w->count);
    for (int64_t i = 0; i < w->count; i++)
        wide[i] = (int16_t)tensor_get_i64(w, i);
    graph_value *v = rewrite_constant(&p->r, tensor_dense(p->r.c, DT_I16, w->rank, w->dims, wide), n->inputs[1]->name,
                                      n->loc);
    if (v)
        n->inputs[1] = v;
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
    const bool few = a.rank < 2 || (dim_is_const(a.dims[a.rank - 2], &rows) && rows < FEW_ROWS);
    return few && p->lanes * STEPS_RUN * STEPS_RUNS > LINE_BYTES &&
           w->count > target_cpu(p->target)->l3_bytes / FAR_PART;
}

/* Product n as lists of steps, as pack_steps of convolutions: a row of the data is an image of one pixel. */
static bool pack_matmul_steps(packer *p, graph_node *n)
{
    const tensor_data *w = n->n_inputs == 2 ? graph_constant(n->inputs[1]) : NULL;
    const bool transposed = graph_attr_int(n, "transpose_b") != 0;
    const shape a = n->inputs[0]->type.shape;
    if (!w || w->kind != TENSOR_DENSE || w->count == 0 || w->rank != 2 || w->dt != DT_I8 || a.rank < 1 ||
        n->inputs[0]->type.dt != DT_U8 || n->outputs[0]->type.dt != DT_I32 || graph_attr_int(n, "transpose_a") != 0 ||
        strcmp(graph_attr_string(n, "weight_layout"), "KN") != 0 || !target_find_steps_dot(p->target, DT_U8) ||
        waits_for_memory(p, n, w) || are_small(w))
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

static void pack_integer_matmul(packer *p, graph_node *n)
{
    compiler *c = p->r.c;
    const target_dot *row;
    int64_t columns = 0;
    const shape s = n->outputs[0]->type.shape;
    if (s.rank > 1 && dim_is_const(s.dims[s.rank - 1], &columns))
        widen_weights(p, n, columns);
    bool transposed = graph_attr_int(n, "transpose_b") != 0;
    const tensor_data *w = integer_weights(p, n, transposed ? 1 : 0, &row);
    if (!w || w->rank != 2 || strcmp(graph_attr_string(n, "weight_layout"), "KN") != 0 ||
        graph_attr_int(n, "transpose_a") != 0 || w->dims[transposed ? 0 : 1] < (int64_t)p->lanes)
        return;
    bool wide;
    row = matmul_dot(p, n, row, w->dims[transposed ? 1 : 0], w->dims[transposed ? 0 : 1], &wide);
    const char *packed = arena_printf(&c->mem, "NK%un%uk", p->lanes, row->granule);
    graph_value *x = filled_rows(p, n, w->dims[transposed ? 1 : 0], row->granule);
    graph_value *v = x ? transform(p, n, transposed ? "NK" : "KN", packed, row->needs_proof) : NULL;
    if (!v)
        return;
    n->inputs[0] = x;
    n->inputs[1] = v;
    graph_set_attr(p->r.f, n, attr_int(c, "transpose_b", 0));
    graph_set_attr(p->r.f, n, attr_string(c, "weight_layout", packed));
    graph_set_attr(p->r.f, n, attr_int(c, "units", w->dims[transposed ? 0 : 1]));
    graph_set_attr(p->r.f, n, attr_int(c, "pairs", row->needs_proof));
    if (wide)
        graph_set_attr(p->r.f, n, attr_int(c, "wide", 1));
}

/* Columns of the right operand, which is no constant, become neighbours: in rows of it lanes would be sums along K,
 * added up for each element of the result, and one row of the left operand is all that such a product can use. */
static void turn_columns(packer *p, graph_node *n)
{
    compiler *c = p->r.c;
    const type *a = &n->inputs[0]->type, *b = &n->inputs[1]->type;
    int64_t perm[TYPE_MAX_RANK], rows = FEW_ROWS, columns = 0;
    const int32_t rank = b->shape.rank;
    if (graph_constant(n->inputs[1]) || rank < 2 || a->shape.rank < 2 || b->dt != DT_F32 ||
        !dim_is_const(b->shape.dims[rank - 2], &columns) || columns < (int64_t)p->lanes)
        return;
    (void)dim_is_const(a->shape.dims[a->shape.rank - (graph_attr_int(n, "transpose_a") ? 1 : 2)], &rows);
    if (rows < FEW_ROWS)
        return;
    for (int32_t i = 0; i < rank; i++)
        perm[i] = i < rank - 2 ? i : 2 * rank - 3 - i;
    attr order = attr_ints(c, "perm", (uint32_t)rank, perm);
    graph_value *v = rewrite_emit(&p->r, "transpose", 1, &n->inputs[1], 1, &order, n->loc);
    if (!v)
        return;
    n->inputs[1] = v;
    graph_set_attr(p->r.f, n, attr_int(c, "transpose_b", 0));
}

static void pack_matmul(packer *p, graph_node *n)
{
    compiler *c = p->r.c;
    const tensor_data *w = weights_of(p, n);
    bool transposed = graph_attr_int(n, "transpose_b") != 0;
    if (transposed)
        turn_columns(p, n);
    if (!w || w->rank != 2 || strcmp(graph_attr_string(n, "weight_layout"), "KN") != 0)
        return;
    int64_t units = w->dims[transposed ? 0 : 1];
    if (units * 2 < (int64_t)p->lanes)
        return;
    const char *packed = arena_printf(&c->mem, "NK%un", p->lanes);
    graph_value *v = transform(p, n, transposed ? "NK" : "KN", packed, false);
    if (!v)
        return;
    n->inputs[1] = v;
    graph_set_attr(p->r.f, n, attr_int(c, "transpose_b", 0));
    graph_set_attr(p->r.f, n, attr_string(c, "weight_layout", packed));
    graph_set_attr(p->r.f, n, attr_int(c, "units", units));
}

static bool run(compiler *c, graph_func *f, const pass_options *o)
{
    packer p = {.target = o->target, .lanes = o->target->vector_bytes / 4, .no_split = o->no_split_data};
    arena_init(&p.scratch, &c->mem);
    ptr_map_init(&p.packed, &p.scratch);
    ptr_map_init(&p.filled, &p.scratch);
    ptr_map_init(&p.framed, &p.scratch);
    ptr_map_init(&p.turned, &p.scratch);
    ptr_map_init(&p.turned_signed, &p.scratch);
    ptr_map_init(&p.limited, &p.scratch);
    ptr_map_init(&p.listed, &p.scratch);
    rewrite_begin(&p.r, c, f);
    for (uint32_t i = 0; i < f->nodes.len; i++) {
        graph_node *n = f->nodes.data[i];
        rewrite_operands(n);
        if ((strcmp(n->op->name, "qnn.conv2d") == 0 && pack_steps(&p, n)) ||
            (strcmp(n->op->name, "qnn.matmul") == 0 && pack_matmul_steps(&p, n)))
            continue;
        if (strcmp(n->op->name, "nn.conv2d") == 0 || strcmp(n->op->name, "nn.conv1d") == 0)
            pack_conv(&p, n);
        else if (strcmp(n->op->name, "nn.matmul") == 0)
            pack_matmul(&p, n);
        else if (strcmp(n->op->name, "qnn.conv2d") == 0)
            pack_integer_conv(&p, n);
        else if (strcmp(n->op->name, "qnn.matmul") == 0)
            pack_integer_matmul(&p, n);
        else if (strcmp(n->op->name, "add") == 0)
            join_offsets(&p, n);
        rewrite_keep(&p.r, n);
    }
    rewrite_end(&p.r);
    arena_free(&p.scratch);
    return !p.r.failed;
}

bool graph_pass_pack(compiler *c, graph_module *m, const pass_options *o)
{
    uint32_t lanes = o->target->vector_bytes / 4;
    bool ok = true;
    for (uint32_t i = 0; i < m->funcs.len && lanes > 1; i++)
        if (!graph_is_fixed(m->funcs.data[i]))
            ok &= run(c, m->funcs.data[i], o);
    return ok;
}
