/* SPDX-License-Identifier: Apache-2.0 */
/* Constant weights in the order in which vector kernels read them: blocks of one vector of output channels last. The
 * transform is an operator on a constant; the constant folder that runs next evaluates it. Shapes, contracts:
 * kernel_layout and weight_layout of nn.conv* and nn.matmul in graph_ops.def. */
#include "graph/op/layout.h"
#include "graph/op/nn.h"
#include "graph/pass.h"
#include "graph/pass/pack_steps.h"
#include "type/dot.h"

#include <string.h>

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
    graph_value *v = packed ? packer_transform(p, n, w->rank == 3 ? "OIW" : "OIHW", packed, false) : NULL;
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

/* In blocks of channels, each lane with some inputs side by side; of a single plane these are neighbors in a row.
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
    graph_value *x = !single && row->tile ? packer_border(p, n) : n->inputs[0];
    graph_value *v = x ? packer_transform(p, n, "OIHW", packed, row->needs_proof && !single) : NULL;
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

#define MANY_VECTORS 8 /* of columns, beside which one that is not full takes little time */

/* The same for product n of `units` columns and sums of k numbers. */
static const target_dot *matmul_dot(const packer *p, const graph_node *n, const target_dot *row, int64_t k,
                                    int64_t units, bool *wide)
{
    const shape s = n->outputs[0]->type.shape;
    int64_t rows = 0, all = shape_is_static(s) ? shape_count(s) : 0;
    const bool whole = all > 0 && s.rank >= 2 && dim_is_const(s.dims[s.rank - 2], &rows) &&
                       (units % p->lanes == 0 || units > MANY_VECTORS * (int64_t)p->lanes);
    const target_dot *wider = whole && row->a != DT_I16 ? target_find_wide_dot_for(p->target, row, rows) : NULL;
    const target_dot *tiles = rows > 0 && units >= (int64_t)p->lanes ? target_find_tile_dot(p->target, row, rows, k)
                                                                     : NULL;
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

/* Vectors of a row of columns are added one after the other, each to the sum before: narrower ones take as long as rows
 * that the C compiler adds in lanes. */
#define FEWEST_LANES 8

/* Of a vector of weights for `units` columns: as many as the target has, or the most that so few columns fill. 0: too
 * few columns. */
static int64_t lanes_for(const packer *p, int64_t units)
{
    int64_t lanes = p->lanes;
    while (lanes > units && lanes / 2 >= FEWEST_LANES)
        lanes /= 2;
    return lanes <= units ? lanes : 0;
}

static void pack_integer_matmul(packer *p, graph_node *n)
{
    compiler *c = p->r.c;
    const target_dot *row;
    int64_t columns = 0, inner = 0;
    const shape s = n->outputs[0]->type.shape, x_shape = n->inputs[0]->type.shape;
    if (x_shape.rank > 0 && !dim_is_const(x_shape.dims[x_shape.rank - 1], &inner))
        return; /* only a run knows that it has as many as the weights: steps of four have no end then */
    if (s.rank > 1 && dim_is_const(s.dims[s.rank - 1], &columns))
        widen_weights(p, n, columns);
    bool transposed = graph_attr_int(n, "transpose_b") != 0;
    const tensor_data *w = integer_weights(p, n, transposed ? 1 : 0, &row);
    if (!w || w->rank != 2 || strcmp(graph_attr_string(n, "weight_layout"), "KN") != 0 ||
        graph_attr_int(n, "transpose_a") != 0)
        return;
    bool wide;
    const int64_t k = w->dims[transposed ? 1 : 0], units = w->dims[transposed ? 0 : 1], lanes = lanes_for(p, units);
    if (lanes == 0)
        return;
    row = matmul_dot(p, n, row, k, units, &wide);
    const char *packed = arena_printf(&c->mem, "NK%lldn%uk", (long long)lanes, row->granule);
    graph_value *x = filled_rows(p, n, k, row->granule);
    graph_value *v = x ? packer_transform(p, n, transposed ? "NK" : "KN", packed, row->needs_proof) : NULL;
    if (!v)
        return;
    n->inputs[0] = x;
    n->inputs[1] = v;
    graph_set_attr(p->r.f, n, attr_int(c, "transpose_b", 0));
    graph_set_attr(p->r.f, n, attr_string(c, "weight_layout", packed));
    graph_set_attr(p->r.f, n, attr_int(c, "units", units));
    graph_set_attr(p->r.f, n, attr_int(c, "pairs", row->needs_proof));
    if (wide)
        graph_set_attr(p->r.f, n, attr_int(c, "wide", 1));
}

/* Columns of the right operand, which is no constant, become neighbors: in rows of it lanes would be sums along K,
 * added up for each element of the result, and one row of the left operand is all that such a product can use. For few
 * rows turning takes longer. */
static void turn_columns(packer *p, graph_node *n)
{
    compiler *c = p->r.c;
    const type *a = &n->inputs[0]->type, *b = &n->inputs[1]->type;
    int64_t perm[TYPE_MAX_RANK], rows = PACKER_FEW_ROWS, columns = 0;
    const int32_t rank = b->shape.rank;
    if (graph_constant(n->inputs[1]) || rank < 2 || a->shape.rank < 2 || b->dt != DT_F32 ||
        !dim_is_const(b->shape.dims[rank - 2], &columns) || columns < (int64_t)p->lanes)
        return;
    (void)dim_is_const(a->shape.dims[a->shape.rank - (graph_attr_int(n, "transpose_a") ? 1 : 2)], &rows);
    if (rows < PACKER_FEW_ROWS)
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
    graph_value *v = packer_transform(p, n, transposed ? "NK" : "KN", packed, false);
    if (!v)
        return;
    n->inputs[1] = v;
    graph_set_attr(p->r.f, n, attr_int(c, "transpose_b", 0));
    graph_set_attr(p->r.f, n, attr_string(c, "weight_layout", packed));
    graph_set_attr(p->r.f, n, attr_int(c, "units", units));
}

static bool run(compiler *c, graph_func *f, const pass_options *o)
{
    packer p;
    packer_init(&p, c, o);
    rewrite_begin(&p.r, c, f);
    for (uint32_t i = 0; i < f->nodes.len; i++) {
        graph_node *n = f->nodes.data[i];
        rewrite_operands(n);
        if ((strcmp(n->op->name, "qnn.conv2d") == 0 && pack_steps_conv(&p, n)) ||
            (strcmp(n->op->name, "qnn.matmul") == 0 && pack_steps_matmul(&p, n)))
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
            pack_steps_join_offsets(&p, n);
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
