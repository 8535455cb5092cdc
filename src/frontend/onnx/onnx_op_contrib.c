/* SPDX-License-Identifier: Apache-2.0 */
/* Importers of operators of the domain com.microsoft that models have beside those of transformers: rows of tables in
 * blocks of few bits, crops of images, inverses, and what there was before ONNX had it. */
#include "frontend/onnx/onnx_import.h"

#include <string.h>

#define MOST_PLACES (1 << 24) /* that an importer lists */

/* --- rows of tables in blocks --- */

graph_value *onnx_halves(onnx_node *n, graph_value *x)
{
    const uint32_t rank = onnx_rank(x);
    const int64_t last = rank;
    dim d[TYPE_MAX_RANK + 1];
    if (rank == 0 || rank >= TYPE_MAX_RANK)
        return onnx_refuse(n, DIAG_TYPE, "codes of %u dimensions", rank);
    for (uint32_t i = 0; i < rank; i++)
        d[i] = onnx_dim(n, x, i);
    d[rank - 1] = dim_mul(n->c, d[rank - 1], dim_const(n->c, 2));
    graph_value *low = onnx_binary(n, "bitwise_and", x, onnx_const_int(n, DT_U8, 15));
    graph_value *high = onnx_binary(n, "right_shift", x, onnx_const_int(n, DT_U8, 4));
    graph_value *both[2] = {onnx_expand_dims(n, low, 1, &last), onnx_expand_dims(n, high, 1, &last)};
    return onnx_reshape(n, onnx_concat(n, 2, both, last), rank, d);
}

static graph_value *rows_at(onnx_node *n, graph_value *table, graph_value *at, int64_t axis)
{
    attr a = attr_int(n->c, "axis", axis);
    return onnx_emit(n, ONNX_ARGS("take", 1, &a, table, at));
}

/* The zero points of the blocks whose scales these are: what is left out is 0, or the middle of unsigned bytes. */
static graph_value *block_zeros(onnx_node *n, graph_value *table, graph_value *at, graph_value *scales, int64_t axis,
                                bool packed, int64_t bits)
{
    const bool bytes = onnx_small_of(n->im, onnx_in(n, 0)) == DT_NONE;
    if (!table)
        return bytes ? onnx_const_int(n, DT_U8, (int64_t)1 << (bits - 1)) : NULL;
    graph_value *z = rows_at(n, table, at, axis);
    if (!packed)
        return z;
    const uint32_t last = onnx_rank(z) - 1;
    return onnx_slice(n, onnx_halves(n, z), last, 0, onnx_static_dim(n, scales, onnx_rank(scales) - 1));
}

/* Only the rows that are taken are decoded. */
bool onnx_op_gather_block_quantized(onnx_node *n)
{
    const dtype small = onnx_small_of(n->im, onnx_in(n, 0));
    graph_value *data = onnx_in(n, 0), *at = onnx_in(n, 1);
    const uint32_t rank = onnx_rank(data), gather = onnx_axis(n, onnx_attr_int(n, "gather_axis", 0), rank);
    const uint32_t axis = onnx_axis(n, onnx_attr_int(n, "quantize_axis", 1), rank);
    const int64_t block = onnx_attr_int(n, "block_size", 128), bits = onnx_attr_int(n, "bits", 4);
    const bool packed = small == DT_NONE && bits == 4;
    if (n->failed)
        return false;
    if (dtype_is_float(small) || (bits != 4 && bits != 8))
        return onnx_fail(n, DIAG_UNSUPPORTED, "codes of floats or of %lld bits are not supported: quantize the table "
                                              "to int4, uint4 or uint8", (long long)bits);
    if (block < 16 || block > INT32_MAX || (block & (block - 1)) != 0)
        return onnx_fail(n, DIAG_FORMAT, "block_size = %lld is no power of two from 16 on", (long long)block);
    if (gather == axis || (packed && axis + 1 != rank))
        return onnx_fail(n, DIAG_FORMAT, "blocks must lie along the last axis, and rows be taken along another");
    graph_value *codes = rows_at(n, data, at, gather), *scales = rows_at(n, onnx_in(n, 2), at, gather);
    graph_value *zeros = block_zeros(n, onnx_optional(n, 3), at, scales, gather, packed, bits);
    const int64_t along = (int64_t)onnx_rank(codes) - (int64_t)(rank - axis);
    if (packed)
        codes = onnx_halves(n, codes);
    if (zeros && onnx_rank(zeros) == 0 && !n->failed) /* one for each scale, as the operator has it */
        zeros = onnx_cast(n, onnx_binary(n, "add", onnx_binary(n, "multiply", scales, onnx_const_like(n, scales, 0)),
                                         onnx_cast(n, zeros, onnx_dtype(scales))), DT_U8);
    attr a[2] = {attr_int(n->c, "axis", along), attr_int(n->c, "block_size", block)};
    onnx_result(n, 0, ONNX_ARGS("qnn.dequantize", 2, a, codes, scales, zeros));
    return !n->failed;
}

/* --- weights of bitsandbytes --- */

static const float bnb_fp4[16] = {0.f,  5.208333333e-03f,  0.66666667f,  1.f,  0.33333333f,  0.5f,  0.16666667f,
                                  0.25f, -0.f, -5.208333333e-03f, -0.66666667f, -1.f, -0.33333333f, -0.5f,
                                  -0.16666667f, -0.25f};
static const float bnb_nf4[16] = {
    -1.0f, -0.6961928009986877f, -0.5250730514526367f, -0.39491748809814453f, -0.28444138169288635f,
    -0.18477343022823334f, -0.09105003625154495f, 0.0f, 0.07958029955625534f, 0.16093020141124725f,
    0.24611230194568634f, 0.33791524171829224f, 0.44070982933044434f, 0.5626170039176941f, 0.7229568362236023f, 1.0f};

/* A by the transpose of weights in blocks of all N * K, two in a byte, the high half first. */
bool onnx_op_matmul_bnb4(onnx_node *n)
{
    const int64_t k = onnx_attr_int(n, "K", 0), cols = onnx_attr_int(n, "N", 0);
    const int64_t kind = onnx_attr_int(n, "quant_type", 0);
    const int64_t block = onnx_attr_int(n, "block_size", 0), turned = onnx_attr_int(n, "transB", 1);
    const tensor_data *b = graph_constant(onnx_in(n, 1)), *most = graph_constant(onnx_in(n, 2));
    int64_t count = 0;
    (void)onnx_attr_int(n, "training_mode", 0);
    if (n->failed || !b || !most)
        return onnx_fail(n, DIAG_UNSUPPORTED, "weights and absmax must be constants");
    if (k < 1 || cols < 1 || block < 1 || kind < 0 || kind > 1 || !i64_mul(k, cols, &count) || count > INT32_MAX ||
        b->dt != DT_U8 || b->count < (count + 1) / 2 || most->count < (count + block - 1) / block)
        return onnx_fail(n, DIAG_FORMAT, "K = %lld, N = %lld, block_size = %lld, quant_type = %lld do not fit",
                         (long long)k, (long long)cols, (long long)block, (long long)kind);
    float *w = arena_array(&n->c->mem, float, (size_t)count);
    for (int64_t i = 0; i < count; i++) {
        const int64_t byte = tensor_get_i64(b, i / 2);
        w[i] = (kind == 0 ? bnb_fp4 : bnb_nf4)[i % 2 ? byte & 15 : byte >> 4] * (float)tensor_get_f64(most, i / block);
    }
    graph_value *x = onnx_in(n, 0), *v;
    v = onnx_constant(n, tensor_dense(n->c, DT_F32, 2, turned ? (int64_t[]){cols, k} : (int64_t[]){k, cols}, w));
    return onnx_alias(n, 0, onnx_matmul(n, x, onnx_cast(n, v, onnx_dtype(x)), false, turned != 0, DT_NONE));
}

/* --- crops of images, each to one size --- */

typedef struct crops {
    onnx_node *n;
    graph_value *rois, *rows; /* rows: channels last, all places of all images one after the other */
    dtype dt;
} crops;

/* Where the lines of crops lie along an axis of `extent`, from column `from` of the boxes to column `to`:
 * [boxes, count]. */
static graph_value *lines(const crops *c, int64_t from, int64_t to, int64_t count, int64_t extent)
{
    onnx_node *n = c->n;
    graph_value *first = onnx_slice(n, c->rois, 1, from, from + 1), *end = onnx_slice(n, c->rois, 1, to, to + 1);
    graph_value *last = onnx_const_float(n, c->dt, (double)(extent - 1));
    if (count == 1) {
        graph_value *middle = onnx_binary(n, "add", first, end);
        middle = onnx_binary(n, "multiply", middle, onnx_const_float(n, c->dt, .5));
        return onnx_binary(n, "multiply", middle, last);
    }
    graph_value *step = onnx_binary(n, "multiply", onnx_binary(n, "subtract", end, first), last);
    step = onnx_binary(n, "divide", step, onnx_const_float(n, c->dt, (double)(count - 1)));
    graph_value *i = onnx_cast(n, onnx_positions(n, count), c->dt);
    return onnx_binary(n, "add", onnx_binary(n, "multiply", first, last), onnx_binary(n, "multiply", i, step));
}

/* Those of [boxes, count] that lie in the image; with an axis of 1 where the other one's lines are. */
static graph_value *inside(const crops *c, graph_value *at, int64_t extent, int64_t axis)
{
    onnx_node *n = c->n;
    graph_value *in = onnx_binary(n, "logical_and", onnx_binary(n, "greater_equal", at, onnx_const_like(n, at, 0)),
                                  onnx_binary(n, "less_equal", at, onnx_const_like(n, at, (double)(extent - 1))));
    return onnx_expand_dims(n, in, 1, &axis);
}

/* op of the lines as places; those outside of the image count as its edge. */
static graph_value *places(const crops *c, const char *op, graph_value *at, int64_t extent)
{
    onnx_node *n = c->n;
    graph_value *v = onnx_emit(n, ONNX_ARGS("clip", 0, NULL, at, onnx_const_like(n, at, 0),
                                            onnx_const_like(n, at, (double)(extent - 1))));
    if (strcmp(op, "nearest") == 0) /* halves away from 0 */
        v = onnx_binary(n, "add", v, onnx_const_like(n, v, .5));
    return onnx_cast(n, onnx_unary(n, strcmp(op, "nearest") == 0 ? "floor" : op, v), DT_I64);
}

/* [boxes, height, width, channels] of lines [boxes, height] and columns [boxes, width]; base: of each box's image. */
static graph_value *pick(const crops *c, graph_value *base, graph_value *y, graph_value *x, int64_t width)
{
    static const int64_t behind = 2, middle = 1, both[2] = {1, 2};
    onnx_node *n = c->n;
    graph_value *at = onnx_binary(n, "multiply", onnx_expand_dims(n, y, 1, &behind), onnx_const_int(n, DT_I64, width));
    at = onnx_binary(n, "add", at, onnx_expand_dims(n, x, 1, &middle));
    return rows_at(n, c->rows, onnx_binary(n, "add", at, onnx_expand_dims(n, base, 2, both)), 0);
}

/* a + (b - a) part, the part [boxes, count] along axis 1 or 2. */
static graph_value *between(const crops *c, graph_value *a, graph_value *b, graph_value *part, int64_t axis)
{
    const int64_t ones[2] = {axis == 1 ? 2 : 1, 3};
    graph_value *p = onnx_expand_dims(c->n, part, 2, ones);
    return onnx_binary(c->n, "add", a, onnx_binary(c->n, "multiply", onnx_binary(c->n, "subtract", b, a), p));
}

static graph_value *interpolated(const crops *c, graph_value *base, graph_value *y, graph_value *x,
                                 const int64_t size[2])
{
    onnx_node *n = c->n;
    graph_value *top = places(c, "floor", y, size[0]), *bottom = places(c, "ceil", y, size[0]);
    graph_value *left = places(c, "floor", x, size[1]), *right = places(c, "ceil", x, size[1]);
    graph_value *dy = onnx_binary(n, "subtract", y, onnx_cast(n, top, c->dt));
    graph_value *dx = onnx_binary(n, "subtract", x, onnx_cast(n, left, c->dt));
    graph_value *above = between(c, pick(c, base, top, left, size[1]), pick(c, base, top, right, size[1]), dx, 2);
    graph_value *below = between(c, pick(c, base, bottom, left, size[1]), pick(c, base, bottom, right, size[1]), dx, 2);
    return between(c, above, below, dy, 1);
}

bool onnx_op_crop_and_resize(onnx_node *n)
{
    static const int64_t last[4] = {0, 2, 3, 1}, first[4] = {0, 3, 1, 2}, channels = 3;
    graph_value *x = onnx_in(n, 0), *rois = onnx_in(n, 1);
    const char *mode = onnx_attr_string(n, "mode", "bilinear");
    const bool whole = strcmp(mode, "nearest") == 0;
    const double outside = onnx_attr_float(n, "extrapolation_value", 0);
    int64_t crop[2 * TYPE_MAX_RANK] = {0};
    uint32_t len = 0;
    if (!whole && strcmp(mode, "bilinear") != 0)
        return onnx_fail(n, DIAG_FORMAT, "mode '%.40s' is neither bilinear nor nearest", mode);
    if (onnx_rank(x) != 4 || onnx_rank(rois) != 2)
        return onnx_fail(n, DIAG_TYPE, "X must have four dimensions and rois two");
    if (!onnx_need_ints(n, onnx_in(n, 3), "crop_size", crop, &len))
        return false;
    if (len != 2 || crop[0] < 1 || crop[1] < 1 || crop[0] > MOST_PLACES || crop[1] > MOST_PLACES)
        return onnx_fail(n, DIAG_FORMAT, "crop_size must be two numbers from 1 to %d", MOST_PLACES);
    const int64_t size[2] = {onnx_static_dim(n, x, 2), onnx_static_dim(n, x, 3)};
    const dim flat[2] = {dim_mul(n->c, onnx_dim(n, x, 0), dim_const(n->c, size[0] * size[1])), onnx_dim(n, x, 1)};
    crops c = {.n = n, .rois = rois, .dt = onnx_dtype(x)};
    c.rows = onnx_reshape(n, onnx_transpose(n, x, 4, last), 2, flat);
    graph_value *base = onnx_binary(n, "multiply", onnx_cast(n, onnx_in(n, 2), DT_I64),
                                    onnx_const_int(n, DT_I64, size[0] * size[1]));
    graph_value *down = lines(&c, 0, 2, crop[0], size[0]), *across = lines(&c, 1, 3, crop[1], size[1]);
    graph_value *y = whole ? pick(&c, base, places(&c, "nearest", down, size[0]),
                                  places(&c, "nearest", across, size[1]), size[1])
                           : interpolated(&c, base, down, across, size);
    graph_value *in = onnx_binary(n, "logical_and", inside(&c, down, size[0], 2), inside(&c, across, size[1], 1));
    y = onnx_where(n, onnx_expand_dims(n, in, 1, &channels), y, onnx_const_like(n, y, outside));
    return onnx_alias(n, 0, onnx_transpose(n, y, 4, first));
}

/* --- inverses of matrices: by rows, the largest of a column first --- */

/* One column of [batch, n, 2 n]: the row with the largest number of those below goes up, and out of all others. */
static void eliminate(onnx_node *n, onnx_region *r, const graph_value *first, int64_t count)
{
    static const int64_t second = 1, third = 2;
    graph_value *k = graph_add_param(r->f, "column", type_static(n->c, DT_I64, 0, NULL));
    graph_value *m = graph_add_param(r->f, "matrix", first->type);
    graph_value *go = graph_add_constant(r->f, tensor_scalar_i64(n->c, DT_BOOL, 1), "go", n->loc);
    onnx_node in = onnx_region_node(r);
    const int64_t wide[3] = {1, 1, 2 * count};
    graph_value *rows = onnx_positions(&in, count), *here = onnx_binary(&in, "equal", rows, k);
    graph_value *sizes = onnx_unary(&in, "abs", rows_at(&in, m, k, 2));
    sizes = onnx_where(&in, onnx_binary(&in, "greater_equal", rows, k), sizes, onnx_const_like(&in, sizes, -1));
    attr at[2] = {attr_int(n->c, "axis", 1), attr_int(n->c, "keepdims", 1)};
    graph_value *largest = onnx_emit(&in, ONNX_ARGS("argmax", 2, at, sizes));
    graph_value *from = onnx_where(&in, onnx_binary(&in, "equal", rows, largest), k, rows);
    from = onnx_expand_dims(&in, onnx_where(&in, here, largest, from), 1, &third);
    from = onnx_binary(&in, "add", from, onnx_constant(&in, tensor_splat(n->c, DT_I64, 3, wide, &(uint64_t){0})));
    m = onnx_emit(&in, ONNX_ARGS("gather_elements", 1, at, m, from));
    graph_value *row = rows_at(&in, m, k, 1);
    row = onnx_binary(&in, "divide", row, onnx_expand_dims(&in, rows_at(&in, row, k, 1), 1, &second));
    row = onnx_expand_dims(&in, row, 1, &second);
    graph_value *by = onnx_expand_dims(&in, rows_at(&in, m, k, 2), 1, &third);
    graph_value *rest = onnx_binary(&in, "subtract", m, onnx_binary(&in, "multiply", by, row));
    m = onnx_where(&in, onnx_expand_dims(&in, here, 1, &second), row, rest);
    n->failed |= in.failed;
    graph_add_result(r->f, go);
    graph_add_result(r->f, m);
}

bool onnx_op_inverse(onnx_node *n)
{
    graph_value *x = onnx_in(n, 0), *both[2];
    const uint32_t rank = onnx_rank(x);
    const dtype dt = onnx_dtype(x), wide = dt == DT_F64 ? DT_F64 : DT_F32;
    onnx_region r;
    if (rank < 2)
        return onnx_fail(n, DIAG_TYPE, "the input must be matrices");
    const int64_t count = onnx_static_dim(n, x, rank - 1);
    dim d[3] = {dim_const(n->c, 1), dim_const(n->c, count), dim_const(n->c, count)};
    if (n->failed || onnx_static_dim(n, x, rank - 2) != count || count < 1 || count > 2048)
        return onnx_fail(n, DIAG_TYPE, "the matrices must have as many rows as columns, 1 to 2048");
    for (uint32_t i = 0; i + 2 < rank; i++)
        d[0] = dim_mul(n->c, d[0], onnx_dim(n, x, i));
    float *one = arena_array(&n->c->mem, float, (size_t)(count * count));
    for (int64_t i = 0; i < count * count; i++)
        one[i] = i % (count + 1) == 0 ? 1.f : 0.f;
    both[0] = onnx_reshape(n, onnx_cast(n, x, wide), 3, d);
    both[1] = onnx_constant(n, tensor_dense(n->c, DT_F32, 2, (int64_t[]){count, count}, one));
    both[1] = onnx_binary(n, "add", onnx_binary(n, "multiply", both[0], onnx_const_like(n, both[0], 0)),
                          onnx_cast(n, both[1], wide));
    graph_value *first = onnx_concat(n, 2, both, 2);
    if (n->failed)
        return false;
    onnx_region_open(&r, n, NULL, "column");
    eliminate(n, &r, first, count);
    onnx_loop l = {.trips = onnx_const_int(n, DT_I64, count), .carried = &first, .n_carried = 1};
    graph_node *loop = n->failed ? NULL : onnx_emit_loop(n, n->f, &l, &r);
    if (!loop)
        return false;
    graph_value *y = onnx_cast(n, onnx_slice(n, loop->outputs[0], 2, count, 2 * count), dt);
    return onnx_alias(n, 0, onnx_reshape(n, y, rank, x->type.shape.dims));
}

/* --- what there was before ONNX had it --- */

/* Different elements as they come; which of them each element is; how many there are of each. */
bool onnx_op_unique_ms(onnx_node *n)
{
    attr a[2] = {attr_int(n->c, "axis", 0), attr_int(n->c, "sorted", 0)};
    graph_value *x = onnx_in(n, 0), *all[4];
    if (onnx_rank(x) != 1)
        return onnx_fail(n, DIAG_TYPE, "the input must have one dimension");
    onnx_emit_all(n, ONNX_ARGS("unique", 2, a, x), 4, all);
    return onnx_alias(n, 0, all[0]) && onnx_alias(n, 1, all[2]) && onnx_alias(n, 2, all[3]);
}

bool onnx_op_range_ms(onnx_node *n)
{
    graph_value *by = onnx_optional(n, 2) ? onnx_optional(n, 2) : onnx_const_like(n, onnx_in(n, 0), 1);
    onnx_result(n, 0, ONNX_ARGS("arange", 0, NULL, onnx_in(n, 0), onnx_in(n, 1), by));
    return !n->failed;
}

bool onnx_op_expand_dims_ms(onnx_node *n)
{
    int64_t at[2 * TYPE_MAX_RANK] = {0};
    uint32_t len = 0;
    if (!onnx_need_ints(n, onnx_in(n, 1), "axis", at, &len))
        return false;
    if (len != 1)
        return onnx_fail(n, DIAG_FORMAT, "axis must be one number");
    const int64_t axis = onnx_axis(n, at[0], onnx_rank(onnx_in(n, 0)) + 1);
    return onnx_alias(n, 0, onnx_expand_dims(n, onnx_in(n, 0), 1, &axis));
}

/* Sums of products of 16 bits in i32, which wrap. */
bool onnx_op_matmul_integer16(onnx_node *n)
{
    graph_value *a = onnx_cast(n, onnx_in(n, 0), DT_I32), *b = onnx_cast(n, onnx_in(n, 1), DT_I32);
    return onnx_alias(n, 0, onnx_matmul(n, a, b, false, false, DT_I32));
}

/* Windows of `size` along an axis, every `step`: they become a new last axis. */
bool onnx_op_unfold_tensor(onnx_node *n)
{
    graph_value *x = onnx_in(n, 0);
    const uint32_t rank = onnx_rank(x), axis = onnx_axis(n, onnx_attr_int(n, "dim", -1), rank);
    const int64_t size = onnx_attr_int(n, "size", 0), step = onnx_attr_int(n, "step", 1);
    const int64_t extent = onnx_static_dim(n, x, axis);
    int64_t perm[TYPE_MAX_RANK + 1];
    if (n->failed || size < 1 || size > extent || step < 1 || rank >= TYPE_MAX_RANK ||
        (extent - size) / step >= MOST_PLACES / size)
        return onnx_fail(n, DIAG_FORMAT, "windows of %lld every %lld do not fit an extent of %lld", (long long)size,
                         (long long)step, (long long)extent);
    const int64_t count = (extent - size) / step + 1, dims[2] = {count, size};
    int64_t *at = arena_array(&n->c->mem, int64_t, (size_t)(count * size));
    for (int64_t i = 0; i < count * size; i++)
        at[i] = i / size * step + i % size;
    graph_value *y = rows_at(n, x, onnx_constant(n, tensor_dense(n->c, DT_I64, 2, dims, at)), axis);
    for (uint32_t i = 0; i < rank; i++)
        perm[i] = i <= axis ? i : i + 1;
    perm[rank] = axis + 1;
    return onnx_alias(n, 0, axis + 1 < rank ? onnx_transpose(n, y, rank + 1, perm) : y);
}
