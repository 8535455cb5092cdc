/* SPDX-License-Identifier: Apache-2.0 */
/* Type relations of products by weights of 4 bits that stay packed. */
#include "graph/op/nn.h"

#include <string.h>

/* The extents of operand i, which are known. */
static bool known_dims(compiler *c, const graph_node *n, uint32_t i, int64_t *dims)
{
    return shape_get(infer_in(n, i)->shape, dims) ||
           infer_error(c, n, "the extents of operand %u are not known", i);
}

/* [.., K] -> [.., last]. */
static void with_last(compiler *c, const type *x, int64_t last, type *out)
{
    dim d[TYPE_MAX_RANK];
    memcpy(d, x->shape.dims, (size_t)x->shape.rank * sizeof *d);
    d[x->shape.rank - 1] = dim_const(c, last);
    out[0] = type_tensor(DT_F32, shape_make(c, (uint32_t)x->shape.rank, d));
}

/* Blocks of `block` numbers that hold x's last axis; 0 and an error: they do not fit. */
static int64_t blocks_of(compiler *c, const graph_node *n, int64_t block)
{
    const type *x = infer_in(n, 0);
    int64_t length = 0;
    if (x->shape.rank < 1 || !dim_is_const(x->shape.dims[x->shape.rank - 1], &length) || length < 1 || block < 1)
        return infer_error(c, n, "the data has no last axis of known extent, or block_size is below 1"), 0;
    return length / block + (length % block != 0);
}

/* [.., blocks * step, ..] -> [.., extent, ..], which the last block of 2 * step need not fill. */
bool infer_unpack_nibbles(compiler *c, const graph_node *n, type *out)
{
    const type *x = infer_in(n, 0);
    const int64_t extent = graph_attr_int(n, "extent"), step = graph_attr_int(n, "step"),
                  least = graph_attr_int(n, "least");
    const dtype dt = graph_attr_dtype(n, "dtype");
    int64_t axis = graph_attr_int(n, "axis");
    axis = axis < 0 ? axis + x->shape.rank : axis;
    dim d[TYPE_MAX_RANK];
    if (axis < 0 || axis >= x->shape.rank)
        return infer_error(c, n, "the operand has no such axis");
    if (dt != DT_I8 && dt != DT_U8 && dt != DT_I16)
        return infer_error(c, n, "the numbers become %s; i8, u8 or i16 is needed", dtype_name(dt));
    if (least < (dt == DT_U8 ? 0 : INT8_MIN) || least > INT8_MAX - 15)
        return infer_error(c, n, "%lld and 15 more are not all numbers of %s", (long long)least, dtype_name(dt));
    if (extent < 1 || step < 1 || step > extent || extent > INT64_MAX / 4 ||
        !dim_is(x->shape.dims[axis], (extent + 2 * step - 1) / (2 * step) * step))
        return infer_error(c, n, "%lld numbers, two of a distance of %lld in a byte, do not lie in so many bytes",
                           (long long)extent, (long long)step);
    memcpy(d, x->shape.dims, (size_t)x->shape.rank * sizeof *d);
    d[axis] = dim_const(c, extent);
    out[0] = type_tensor(dt, shape_make(c, (uint32_t)x->shape.rank, d));
    return true;
}

bool nn_nibbles_exceed(const graph_value *v, int64_t most)
{
    if (!v->def || strcmp(v->def->op->name, "unpack_nibbles") != 0)
        return false;
    const int64_t least = graph_attr_int(v->def, "least");
    return least < -most || least + 15 > most;
}

bool infer_block_sums(compiler *c, const graph_node *n, type *out)
{
    int64_t blocks = blocks_of(c, n, graph_attr_int(n, "block_size"));
    const dtype dt = infer_in(n, 0)->dt;
    if (dt != DT_F32 && dt != DT_I8)
        return infer_error(c, n, "the data is %s; f32 or i8 is needed", dtype_name(dt));
    if (blocks > 0)
        with_last(c, infer_in(n, 0), blocks, out);
    return blocks > 0;
}

/* Sums of x's blocks: x's extents but the last. */
static bool sums_fit(const type *x, const type *sums, int64_t blocks)
{
    const int32_t last = x->shape.rank - 1;
    if (sums->shape.rank != x->shape.rank || !dim_is(sums->shape.dims[last], blocks))
        return false;
    for (int32_t i = 0; i < last; i++)
        if (!dim_equal(sums->shape.dims[i], x->shape.dims[i]))
            return false;
    return true;
}

/* Weights [units / lanes, blocks * block / 8, lanes] with scales [units / lanes, blocks, lanes] and, if there are any,
 * zero points like these. */
static bool packed_weights_fit(compiler *c, const graph_node *n, int64_t units, int64_t block, int64_t blocks)
{
    int64_t w[TYPE_MAX_RANK], s[TYPE_MAX_RANK], z[TYPE_MAX_RANK];
    if (!known_dims(c, n, 1, w) || !known_dims(c, n, 2, s))
        return false;
    const int64_t lanes = w[2];
    const bool whole = block % 8 == 0 && units > 0 && lanes > 0;
    const int64_t groups = whole ? units / lanes + (units % lanes != 0) : 0;
    const int64_t packed[3] = {groups, blocks * (block / 8), lanes}, scales[3] = {groups, blocks, lanes};
    if (!whole || memcmp(w, packed, sizeof packed) != 0 || memcmp(s, scales, sizeof scales) != 0)
        return infer_error(c, n, "the packed operand does not hold %lld columns in blocks of %lld", (long long)units,
                           (long long)block);
    if (infer_in(n, 3) && (!known_dims(c, n, 3, z) || memcmp(z, s, sizeof scales) != 0))
        return infer_error(c, n, "there must be one zero point for each scale");
    return true;
}

bool infer_matmul_nibbles(compiler *c, const graph_node *n, type *out)
{
    const int64_t block = graph_attr_int(n, "block_size"), units = graph_attr_int(n, "units"),
                  blocks = blocks_of(c, n, block);
    const type *x = infer_in(n, 0), *sums = infer_in(n, 4), *x_scale = infer_in(n, 5);
    if (blocks == 0)
        return false;
    if (x->shape.rank >= (int32_t)TYPE_MAX_RANK)
        return infer_error(c, n, "data of rank %d; at most %d are supported", x->shape.rank, TYPE_MAX_RANK - 1);
    if (!packed_weights_fit(c, n, units, block, blocks))
        return false;
    if (graph_attr_int(n, "zero") < 0 || graph_attr_int(n, "zero") > UINT8_MAX)
        return infer_error(c, n, "zero is not a number of 8 bits");
    if (sums && !sums_fit(x, sums, blocks))
        return infer_error(c, n, "there must be the sums of %lld blocks", (long long)blocks);
    if (x->dt != (x_scale ? DT_I8 : DT_F32) || (x_scale && (!sums || !sums_fit(x, x_scale, blocks))))
        return infer_error(c, n, "data must be f32, or i8 with the sums and scales of its blocks");
    with_last(c, x, units, out);
    return true;
}
