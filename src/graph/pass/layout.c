/* SPDX-License-Identifier: Apache-2.0 */
/* convert-layout: convolutions work on blocks of one vector of channels ("NCHW16c"), so that lanes are contiguous in
 * loads and stores. A walk over each function carries the layout from convolution to convolution through what does not
 * care about it (element-wise operators, pools, means over the image, concatenations of whole blocks); layout_transform
 * stands where a value is needed in the other layout, once for each value. Channels that do not fill the last block
 * leave lanes that nobody reads. */
#include "graph/op/layout.h"
#include "graph/op/nn.h"
#include "graph/pass.h"
#include "graph/pass/pixel_rows.h"
#include "graph/pass/twins.h"
#include "graph/pass/widen_groups.h"
#include "type/dot.h"

#include <string.h>

#define CHANNELS      1  /* the axis of NCHW */
#define WORTH_PACKING 32 /* multiply-accumulates for each element that must be packed first */
#define NEAR          4  /* times more or less than that: a record may choose */
#define WORTH_EVEN    8  /* the same where output channels end within a vector: plain rows have a branch a lane there */
#define FEW_TAPS      4  /* of a window, too little work to pack a single channel for */
#define WIDE_ROW      20 /* pixels side by side from which on plain rows of one channel are quicker than packing */
#define FEW_PLANES    4  /* of a first layer of integers: no blocks, which would be empty for the most part */
#define MANY_CHANNELS 64 /* of a result, beside which a copy of the pixels that are read is little */
#define MAX_OPERANDS  64

typedef struct converter {
    twins t; /* the other form: blocks of channels */
    const struct target *target;
    graph_choices *choices;
    int64_t lanes;
    const char *blocked; /* "NCHW16c" */
} converter;

/* --- values --- */

static bool is_packed(converter *v, graph_value *x)
{
    return x && twins_of(&v->t, x)->other;
}

static int64_t extent(const graph_value *x, uint32_t axis)
{
    int64_t n = 0;
    return dim_is_const(x->type.shape.dims[axis], &n) ? n : 0;
}

/* The most that an axis has; 0: nobody knows. */
static int64_t most(const graph_value *x, uint32_t axis)
{
    const int64_t n = dim_bound(x->type.shape.dims[axis]);
    return n > 0 ? n : 0;
}

/* Channels are known; how many images there are, a run may say, and of floats their rows and columns, up to a bound. */
static bool is_image(const graph_value *x)
{
    const dtype dt = x ? x->type.dt : DT_NONE;
    const bool integers = dt == DT_U8 || dt == DT_I8 || dt == DT_I32 || dt == DT_I16 || dt == DT_U16;
    if ((dt != DT_F32 && !integers) || x->type.kind != TYPE_TENSOR || x->type.shape.rank != 4)
        return false;
    const bool sized = integers ? extent(x, 2) > 0 && extent(x, 3) > 0 : most(x, 2) > 0 && most(x, 3) > 0;
    return sized && !dim_is(x->type.shape.dims[0], 0) && extent(x, 1) > 0;
}

static graph_value *transform(converter *v, graph_value *x, const char *src, const char *dst, int64_t channels,
                              src_loc loc)
{
    compiler *c = v->t.r.c;
    attr attrs[3] = {attr_string(c, "src_layout", src), attr_string(c, "dst_layout", dst),
                     attr_int(c, "extent", channels)};
    return rewrite_emit(&v->t.r, "layout_transform", 1, &x, 3, attrs, loc);
}

/* A border around rows and columns alone. */
static bool is_border(const graph_node *n)
{
    const tensor_data *t = graph_constant(n->inputs[1]);
    bool border = t && t->count == 8 && (n->n_inputs <= 3 || !n->inputs[3]);
    for (int64_t i = 0; border && i < 8; i++)
        border = i % 4 >= 2 || tensor_get_i64(t, i) == 0;
    return border;
}

/* The border of n around x, which is in blocks; NULL after an error. */
static graph_value *border(converter *v, graph_node *n, graph_value *x)
{
    const tensor_data *t = graph_constant(n->inputs[1]);
    int64_t pads[10] = {0};
    for (int64_t i = 0; i < 8; i++)
        pads[i < 4 ? i : i + 1] = tensor_get_i64(t, i);
    graph_value *in[3] = {x, rewrite_constant(&v->t.r, tensor_from_i64s(v->t.r.c, 10, pads), "pads", n->loc)};
    if (graph_operand(n, 2))
        in[2] = twins_plain(&v->t, n->inputs[2], n->loc);
    return in[1] ? rewrite_emit(&v->t.r, "nn.pad", in[2] ? 3 : 2, in, n->n_attrs, n->attrs, n->loc) : NULL;
}

/* x in blocks of channels; NULL after an error. What has a border gets it in blocks: there it is whole vectors, and
 * rows without it are as long as the image. */
static graph_value *packed(converter *v, graph_value *x, src_loc loc)
{
    if (twins_of(&v->t, x)->other)
        return twins_of(&v->t, x)->other;
    graph_value *plain = twins_of(&v->t, x)->plain, *p = NULL;
    if (rewrite_is_op(plain, "nn.pad") && rewrite_is_read_once(plain) && is_image(plain) && is_border(plain->def)) {
        graph_value *inside = transform(v, plain->def->inputs[0], "NCHW", v->blocked, 0, loc);
        p = inside ? border(v, plain->def, inside) : NULL;
    } else {
        p = transform(v, plain, "NCHW", v->blocked, 0, loc);
    }
    return twins_of(&v->t, x)->other = p;
}

/* One pixel and whole blocks: the same bytes in both layouts. */
static graph_value *show_plain(converter *v, const graph_value *x, graph_value *p, src_loc loc)
{
    compiler *c = v->t.r.c;
    int64_t images = 0, dims[4] = {0, extent(x, 1), extent(x, 2), extent(x, 3)}; /* 0: as many as there are */
    if (dim_is_const(x->type.shape.dims[0], &images))
        dims[0] = images;
    graph_value *in[2] = {p, rewrite_constant(&v->t.r, tensor_from_i64s(c, 4, dims), "shape", loc)};
    return rewrite_emit(&v->t.r, "reshape", 2, in, 0, NULL, loc);
}

static graph_value *back(twins *t, const graph_value *x, graph_value *other, src_loc loc)
{
    converter *v = (converter *)t;
    int64_t channels = extent(x, CHANNELS), rest = channels % v->lanes;
    if (rest == 0 && extent(x, 2) == 1 && extent(x, 3) == 1)
        return show_plain(v, x, other, loc);
    return transform(v, other, v->blocked, "NCHW", rest ? channels : 0, loc);
}

/* --- nodes --- */

/* n on packed data: other operands, other attributes; its result is packed. */
static bool emit_packed(converter *v, graph_node *n, graph_value *const *in, uint32_t n_more, const attr *more)
{
    attr *attrs = arena_array(&v->t.scratch, attr, n->n_attrs + n_more);
    uint32_t count = 0;
    for (uint32_t i = 0; i < n->n_attrs; i++) {
        bool replaced = false;
        for (uint32_t k = 0; k < n_more; k++)
            replaced |= more[k].name == n->attrs[i].name;
        if (!replaced)
            attrs[count++] = n->attrs[i];
    }
    for (uint32_t k = 0; k < n_more; k++)
        attrs[count++] = more[k];
    graph_value *y = rewrite_emit(&v->t.r, n->op->name, n->n_inputs, in, count, attrs, n->loc);
    return twins_set(&v->t, n, y);
}

/* Two thirds of all lanes are filled at least: plain rows take 1.3 to 1.6 times as long as blocks of 17. */
static bool fills_blocks(const converter *v, int64_t channels)
{
    int64_t lanes = (channels + v->lanes - 1) / v->lanes * v->lanes;
    return channels > 0 && lanes * 2 <= channels * 3;
}

/* What the walk does with the data operand of a convolution. */
typedef enum conv_kind { CONV_KEEP, CONV_PLAIN_DATA, CONV_PACKED_DATA, CONV_WIDER_GROUPS } conv_kind;

/* Depthwise: lanes lie along a row, whose neighbors are neighbors in memory. On short rows most lanes are idle, with
 * a stride they are loaded one by one, and an open row ends anywhere: each costs more than packing. Integers have no
 * products in plain rows. */
static bool plain_rows_do(const graph_node *n)
{
    if (n->inputs[0]->type.dt != DT_F32)
        return false;
    const int64_t *strides = NULL;
    uint32_t len = graph_attr_ints(n, "strides", &strides);
    for (uint32_t i = 0; i < len; i++)
        if (strides[i] != 1)
            return false;
    return extent(n->outputs[0], 3) >= WIDE_ROW;
}

/* The weights of a convolution of planes, whose result in blocks would be full enough; NULL: it stays as it is. */
static const tensor_data *weights_for_blocks(const converter *v, const graph_node *n)
{
    const tensor_data *t = graph_dense_constant(n->inputs[1], 4);
    const bool planes = is_image(n->inputs[0]) && is_image(n->outputs[0]) && !nn_in_blocks(n);
    return planes && t && strcmp(graph_attr_string(n, "kernel_layout"), "OIHW") == 0 && fills_blocks(v, t->dims[0])
               ? t
               : NULL;
}

static conv_kind judge_conv(converter *v, const graph_node *n)
{
    graph_value *x = n->inputs[0], *y = n->outputs[0];
    const tensor_data *t = weights_for_blocks(v, n);
    if (!t)
        return CONV_KEEP;
    int64_t groups = graph_attr_int(n, "groups"), ins = t->dims[1], outs = t->dims[0] / groups;
    bool ready = is_packed(v, x);
    if (groups > 1 && ins == 1 && outs == 1)
        return ready || (t->dims[2] * t->dims[3] > FEW_TAPS && !plain_rows_do(n))
                   ? CONV_PACKED_DATA
                   : CONV_KEEP;
    if (groups > 1 && (ins % v->lanes || outs % v->lanes))
        return widen_groups_by(n, v->lanes, ready) ? CONV_WIDER_GROUPS : CONV_KEEP;
    int64_t work = outs * ins * groups * t->dims[2] * t->dims[3] * most(y, 2) * most(y, 3),
            moved = extent(x, CHANNELS) * most(x, 2) * most(x, 3);
    if (!ready && groups == 1 && ins * 2 < v->lanes)
        return CONV_PLAIN_DATA; /* the first layer: a few planes */
    const int64_t worth = outs % v->lanes ? WORTH_EVEN : WORTH_PACKING;
    const bool packs = work / worth >= moved;
    if (ready || work / worth > NEAR * moved || work / worth < moved / NEAR)
        return ready || packs ? CONV_PACKED_DATA : CONV_KEEP;
    static const char *const forms[] = {"planes", "blocks"}; /* a near thing: a record may say */
    return graph_choose(v->choices, n, v->target, 2, forms, packs) ? CONV_PACKED_DATA : CONV_KEEP;
}

/* The weights and the groups of convolution n, where some groups may be one. */
typedef struct wider {
    graph_value *weights; /* NULL after an error */
    int64_t groups;
} wider;

static wider wider_groups(converter *v, const graph_node *n, conv_kind kind)
{
    const int64_t by = kind == CONV_WIDER_GROUPS ? widen_groups_by(n, v->lanes, is_packed(v, n->inputs[0])) : 1;
    return (wider){by > 1 ? widen_groups_weights(&v->t.r, n, by) : n->inputs[1], graph_attr_int(n, "groups") / by};
}

/* Windows of one tap that skip pixels, without padding. */
static bool skips_pixels(const graph_node *n)
{
    const int64_t *strides = NULL, *pads = NULL;
    const graph_value *x = n->inputs[0];
    const uint32_t count = graph_attr_ints(n, "strides", &strides), n_pads = graph_attr_ints(n, "pads", &pads);
    bool one = count == 2 && extent(x, 2) > 0 && extent(x, 3) > 0 && graph_attr_int(n, "groups") == 1;
    for (uint32_t i = 0; one && i < n_pads; i++)
        one = pads[i] == 0;
    for (uint32_t i = 2; one && i < 4; i++)
        one = extent(n->inputs[1], i) == 1 && extent(n->outputs[0], i) == (extent(x, i) - 1) / strides[i - 2] + 1;
    return one && (strides[0] > 1 || strides[1] > 1);
}

/* The pixels of x, which is in blocks, that such windows read. Those beside them are in the same lines of memory. So
 * they would take up half of the caches, or more, each time that the image is read for some of the channels. */
static graph_value *read_pixels(converter *v, const graph_node *n, graph_value *x)
{
    const int64_t *strides = NULL;
    graph_attr_ints(n, "strides", &strides);
    return rewrite_slice(&v->t.r, x, 2, (const int64_t[]){0, 0},
                         (const int64_t[]){extent(n->inputs[0], 2), extent(n->inputs[0], 3)}, (const int64_t[]){2, 3},
                         strides, n->loc);
}

static bool convert_conv(converter *v, graph_node *n, bool *done)
{
    compiler *c = v->t.r.c;
    conv_kind kind = judge_conv(v, n);
    if (kind == CONV_KEEP)
        return true;
    bool blocks = kind != CONV_PLAIN_DATA;
    graph_value *x = blocks ? packed(v, n->inputs[0], n->loc) : twins_plain(&v->t, n->inputs[0], n->loc);
    *done = true;
    if (x && blocks && extent(n->outputs[0], CHANNELS) >= MANY_CHANNELS && skips_pixels(n)) {
        graph_value *in[2] = {read_pixels(v, n, x), n->inputs[1]};
        const attr more[3] = {attr_string(c, "out_layout", v->blocked), attr_string(c, "data_layout", v->blocked),
                              attr_ints(c, "strides", 2, (const int64_t[]){1, 1})};
        return in[0] && emit_packed(v, n, in, 3, more);
    }
    const wider w = wider_groups(v, n, kind);
    graph_value *in[2] = {x, w.weights};
    attr more[3] = {attr_string(c, "out_layout", v->blocked), attr_string(c, "data_layout", v->blocked),
                    attr_int(c, "groups", w.groups)};
    return in[0] && in[1] && emit_packed(v, n, in, kind == CONV_WIDER_GROUPS ? 3 : blocks ? 2 : 1, more);
}

/* A few planes: as one piece that a lane takes, or in rows of pixels. */
static bool convert_planes(converter *v, graph_node *n, const target_dot *row)
{
    compiler *c = v->t.r.c;
    const target_dot *wide =
        target_find_wide_dot_for(v->target, row, extent(n->outputs[0], 2) * extent(n->outputs[0], 3));
    const target_dot *tiles = target_find_tile_dot(v->target, row, extent(n->outputs[0], 3),
                                                   extent(n->inputs[1], 3) * extent(n->inputs[0], CHANNELS));
    const int64_t granule = wide ? wide->granule : tiles ? tiles->granule : row->granule;
    const char *layout = arena_printf(&c->mem, "NCHW%uc", row->granule);
    graph_value *in[2] = {NULL, n->inputs[1]}, *x = twins_plain(&v->t, n->inputs[0], n->loc);
    pixel_rows rows;
    if (!x)
        return false;
    if (!pixel_rows_pay(n, granule, row->granule)) {
        in[0] = transform(v, x, "NCHW", layout, 0, n->loc);
        attr more[2] = {attr_string(c, "out_layout", v->blocked), attr_string(c, "data_layout", layout)};
        return in[0] && emit_packed(v, n, in, 2, more);
    }
    if (!pixel_rows_make(&v->t.r, n, x, granule, &rows))
        return false;
    attr more[4] = {attr_string(c, "out_layout", v->blocked), attr_ints(c, "strides", 2, rows.strides),
                    attr_ints(c, "dilations", 2, rows.dilations), attr_ints(c, "pads", 0, NULL)};
    return emit_packed(v, n, (graph_value *const[]){rows.data, rows.weights}, 4, more);
}

/* Products of integers: data in blocks of channels, where a lane takes some at a time. */
static bool convert_integer_conv(converter *v, graph_node *n, bool *done)
{
    compiler *c = v->t.r.c;
    const target_dot *row = n->n_inputs > 2 ? NULL
                                            : target_find_dot(v->target, n->inputs[0]->type.dt,
                                                              n->inputs[1]->type.dt, false);
    conv_kind kind = row && v->lanes % row->granule == 0 ? judge_conv(v, n) : CONV_KEEP;
    if (kind == CONV_KEEP)
        return true;
    *done = true;
    const bool few = kind == CONV_PLAIN_DATA || (!is_packed(v, n->inputs[0]) && graph_attr_int(n, "groups") == 1);
    if (few && extent(n->inputs[0], CHANNELS) <= FEW_PLANES)
        return convert_planes(v, n, row);
    graph_value *x = packed(v, n->inputs[0], n->loc);
    const wider w = wider_groups(v, n, kind);
    graph_value *in[2] = {x, w.weights};
    attr more[3] = {attr_string(c, "out_layout", v->blocked), attr_string(c, "data_layout", v->blocked),
                    attr_int(c, "groups", w.groups)};
    return in[0] && in[1] && emit_packed(v, n, in, 3, more);
}

/* A number for each channel in blocks; lanes behind the last channel have its number, so that they are scales, too. */
static graph_value *in_blocks(converter *v, const tensor_data *t, src_loc loc)
{
    const int64_t dims[4] = {(t->count + v->lanes - 1) / v->lanes, 1, 1, v->lanes}, count = dims[0] * v->lanes;
    const size_t size = dtype_bytes(t->dt);
    uint8_t *out = arena_alloc_array(&v->t.r.c->mem, (size_t)count, size, size);
    for (int64_t i = 0; i < count; i++)
        dtype_store_f64(t->dt, out + (size_t)i * size, tensor_get_f64(t, i < t->count ? i : t->count - 1));
    return rewrite_constant(&v->t.r, tensor_dense(v->t.r.c, t->dt, 4, dims, out), "scale", loc);
}

/* Operand i is a list of numbers for the channels. */
static bool is_list(const graph_node *n, uint32_t i)
{
    return n->inputs[i] && shape_count(n->inputs[i]->type.shape) != 1;
}

/* Scales, or multipliers and shifts, for each channel get the layout of the sums: operands 1 to `lists`. */
static bool convert_requantize(converter *v, graph_node *n, uint32_t lists, bool *done)
{
    graph_value *x = n->inputs[0], *in[4] = {NULL};
    if (!is_packed(v, x) || n->n_inputs > 4)
        return true;
    for (uint32_t i = 1; i <= lists; i++) {
        const tensor_data *scale = graph_constant(n->inputs[i]);
        if (is_list(n, i) && (!scale || scale->rank != 1 || graph_attr_int(n, "axis") != 1))
            return true;
    }
    *done = true;
    for (uint32_t i = 0; i < n->n_inputs; i++) {
        in[i] = i == 0 ? twins_of(&v->t, x)->other : n->inputs[i];
        if (i > 0 && i <= lists && is_list(n, i))
            in[i] = in_blocks(v, graph_constant(n->inputs[i]), n->loc);
        else if (i > 0 && in[i])
            in[i] = twins_plain(&v->t, in[i], n->loc);
    }
    return emit_packed(v, n, in, 0, NULL);
}

static bool convert_pool(converter *v, graph_node *n, bool *done)
{
    attr layout = attr_string(v->t.r.c, "data_layout", v->blocked);
    if (!is_packed(v, n->inputs[0]))
        return true;
    *done = true;
    return emit_packed(v, n, &twins_of(&v->t, n->inputs[0])->other, 1, &layout);
}

static bool convert_scaled_pool(converter *v, graph_node *n, bool *done)
{
    attr layout = attr_string(v->t.r.c, "data_layout", v->blocked);
    graph_value *in[MAX_OPERANDS] = {NULL};
    if (!is_packed(v, n->inputs[0]))
        return true;
    *done = true;
    in[0] = twins_of(&v->t, n->inputs[0])->other;
    for (uint32_t i = 1; i < n->n_inputs; i++)
        in[i] = n->inputs[i] ? twins_plain(&v->t, n->inputs[i], n->loc) : NULL;
    return emit_packed(v, n, in, 1, &layout);
}

/* A reduction over the image, whose extents stay as ones. */
static bool convert_reduce(converter *v, graph_node *n, bool *done)
{
    static const int64_t image[2] = {2, 3};
    const int64_t *axes = NULL;
    uint32_t len = graph_attr_ints(n, "axes", &axes);
    if (!is_packed(v, n->inputs[0]) || len != 2 || graph_attr_int(n, "keepdims") == 0)
        return true;
    int64_t a = axes[0] < 0 ? axes[0] + 4 : axes[0], b = axes[1] < 0 ? axes[1] + 4 : axes[1];
    if (a + b != 5 || a < 2 || b < 2)
        return true;
    attr both = attr_ints(v->t.r.c, "axes", 2, image);
    *done = true;
    return emit_packed(v, n, &twins_of(&v->t, n->inputs[0])->other, 1, &both);
}

static bool convert_pad(converter *v, graph_node *n, bool *done)
{
    graph_value *y = NULL;
    if (!is_packed(v, n->inputs[0]) || !is_border(n))
        return true;
    *done = true;
    y = border(v, n, twins_of(&v->t, n->inputs[0])->other);
    return twins_set(&v->t, n, y);
}

static bool convert_concat(converter *v, graph_node *n, bool *done)
{
    int64_t axis = graph_attr_int(n, "axis");
    if ((axis < 0 ? axis + 4 : axis) != CHANNELS || n->n_inputs > MAX_OPERANDS)
        return true;
    graph_value *in[MAX_OPERANDS];
    for (uint32_t i = 0; i < n->n_inputs; i++) {
        if (!is_packed(v, n->inputs[i]) || extent(n->inputs[i], CHANNELS) % v->lanes)
            return true;
        in[i] = twins_of(&v->t, n->inputs[i])->other;
    }
    attr channels = attr_int(v->t.r.c, "axis", CHANNELS);
    *done = true;
    return emit_packed(v, n, in, 1, &channels);
}

/* An operand of an element-wise node whose other operands are packed: an image of as many channels, one number, or a
 * number for each channel ("CHW", "NCHW"). NULL: none of them. */
static const char *operand_layout(const graph_value *x, int64_t channels)
{
    int32_t rank = x->type.kind == TYPE_TENSOR ? x->type.shape.rank : -1;
    if (shape_count(x->type.shape) == 1)
        return "";
    if (rank < 3 || rank > 4 || extent(x, (uint32_t)rank - 3) != channels ||
        (!shape_is_static(x->type.shape) && !is_image(x)))
        return NULL;
    return rank == 3 ? "CHW" : "NCHW";
}

static graph_value *packed_operand(converter *v, graph_value *x, const char *layout, src_loc loc)
{
    if (!*layout || is_packed(v, x) || strcmp(layout, "NCHW") == 0)
        return *layout ? packed(v, x, loc) : twins_plain(&v->t, x, loc);
    const char *dst = arena_printf(&v->t.r.c->mem, "%s%lldc", layout, (long long)v->lanes);
    return transform(v, twins_plain(&v->t, x, loc), layout, dst, 0, loc);
}

static bool convert_elementwise(converter *v, graph_node *n, bool *done)
{
    graph_value *in[MAX_OPERANDS] = {NULL}, *y = n->outputs[0];
    const char *layouts[MAX_OPERANDS] = {NULL};
    bool any = false;
    if (n->n_inputs > MAX_OPERANDS || !is_image(y))
        return true;
    for (uint32_t i = 0; i < n->n_inputs; i++) {
        any |= is_packed(v, n->inputs[i]);
        if (n->inputs[i] && !(layouts[i] = operand_layout(n->inputs[i], extent(y, CHANNELS))))
            return true;
    }
    if (!any)
        return true;
    *done = true;
    for (uint32_t i = 0; i < n->n_inputs; i++)
        if (n->inputs[i] && !(in[i] = packed_operand(v, n->inputs[i], layouts[i], n->loc)))
            return false;
    return emit_packed(v, n, in, 0, NULL);
}

/* By kind of operator; operands of others are made plain. */
static bool convert(twins *t, graph_node *n, bool *done)
{
    converter *v = (converter *)t;
    const char *op = n->op->name;
    if (n->n_outputs != 1 || n->op->effect != EFFECT_PURE)
        return true;
    if (strcmp(op, "nn.conv2d") == 0)
        return convert_conv(v, n, done);
    if (strcmp(op, "qnn.conv2d") == 0)
        return convert_integer_conv(v, n, done);
    if (strcmp(op, "qnn.requantize") == 0)
        return convert_requantize(v, n, 1, done);
    if (strcmp(op, "qnn.rescale") == 0)
        return convert_requantize(v, n, 2, done);
    if (strcmp(op, "qnn.avg_pool2d") == 0 || strcmp(op, "qnn.global_avg_pool2d") == 0)
        return convert_scaled_pool(v, n, done);
    if (strcmp(op, "nn.max_pool2d") == 0 || strcmp(op, "nn.avg_pool2d") == 0 || strcmp(op, "nn.lp_pool2d") == 0)
        return convert_pool(v, n, done);
    if (n->op->infer == infer_reduce)
        return convert_reduce(v, n, done);
    if (strcmp(op, "concatenate") == 0)
        return convert_concat(v, n, done);
    if (strcmp(op, "nn.pad") == 0)
        return convert_pad(v, n, done);
    bool shapeless = !(n->op->flags & (OPF_SHAPE_ARGS | OPF_NO_FUSE | OPF_MOVES));
    if (n->op->cls == CLASS_ELEMENTWISE || strcmp(op, "qnn.add") == 0 ||
        (n->op->cls == CLASS_BROADCAST && shapeless && n->op->n_attrs == 0))
        return convert_elementwise(v, n, done);
    return true;
}

static bool run(compiler *c, graph_func *f, const pass_options *o)
{
    const struct target *t = o->target;
    int64_t lanes = t->vector_bytes / 4;
    converter v = {.t = {.back = back, .convert = convert},
                   .target = t,
                   .choices = o->choices,
                   .lanes = lanes,
                   .blocked = arena_printf(&c->mem, "NCHW%lldc", (long long)lanes)};
    twins_begin(&v.t, c, f);
    return twins_end(&v.t, twins_walk(&v.t));
}

bool graph_pass_layout(compiler *c, graph_module *m, const pass_options *o)
{
    int64_t lanes = o->target->vector_bytes / 4;
    bool ok = true;
    for (uint32_t i = 0; i < m->funcs.len && lanes > 1; i++)
        if (!graph_is_fixed(m->funcs.data[i]))
            ok &= run(c, m->funcs.data[i], o);
    return ok;
}
