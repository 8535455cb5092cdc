/* SPDX-License-Identifier: Apache-2.0 */
/* Importers of quantised operators of the domain com.microsoft, which onnxruntime's tools write: the same rows of qnn.*
 * that QDQ patterns become. Functions of one number become tables, which folding computes. */
#include "frontend/onnx/onnx_import.h"
#include "graph/op/nn.h"
#include "graph/op/softmax_table.h"

#include <string.h>

static graph_value *f32(onnx_node *n, uint32_t i)
{
    return onnx_optional(n, i) ? onnx_cast(n, onnx_optional(n, i), DT_F32) : NULL;
}

/* x with its channels behind all spatial axes instead of in front of them, or, back, the other way round. */
static graph_value *channels_moved_always(onnx_node *n, graph_value *x, bool back)
{
    const uint32_t rank = onnx_rank(x);
    int64_t perm[TYPE_MAX_RANK] = {0};
    if (n->failed || rank < 3)
        return x;
    for (uint32_t i = 1; i < rank; i++)
        perm[i] = back ? (i + 1 < rank ? i + 1 : 1) : (i == 1 ? rank - 1 : i - 1);
    return onnx_transpose(n, x, rank, perm);
}

/* The same where the model says that channels are last. */
static graph_value *channels_moved(onnx_node *n, graph_value *x, bool back)
{
    return onnx_attr_int(n, "channels_last", 0) != 0 ? channels_moved_always(n, x, back) : x;
}

/* --- sums, products, pools --- */

/* target: the row; A, its scale and zero point, the same of B and of the result. */
bool onnx_op_qlinear_binary(onnx_node *n)
{
    attr as_u8 = attr_int(n->c, "as_u8", 0);
    onnx_result(n, 0, ONNX_ARGS(n->row->target, 1, &as_u8, onnx_in(n, 0), f32(n, 1), onnx_in(n, 3), f32(n, 4),
                                f32(n, 6), onnx_optional(n, 2), onnx_optional(n, 5), onnx_optional(n, 7)));
    return !n->failed;
}

bool onnx_op_qlinear_average_pool(onnx_node *n)
{
    graph_value *in[5] = {channels_moved(n, onnx_in(n, 0), false), f32(n, 1), f32(n, 3), onnx_optional(n, 2),
                          onnx_optional(n, 4)};
    graph_value *y = onnx_quantised_pool(n, 5, in);
    return onnx_alias(n, 0, channels_moved(n, y, true));
}

/* The mean of pictures [samples, channels, spatial] whose size only a run knows: the sum of integers, by the scale of
 * the data and that of the result times the number of terms. */
static graph_value *mean_of_open(onnx_node *n, graph_value *x)
{
    const uint32_t spatial = onnx_rank(x) - 2;
    int64_t axes[TYPE_MAX_RANK], most[TYPE_MAX_RANK];
    graph_value *count = onnx_const_int(n, DT_I64, 1), *sums = onnx_cast(n, x, DT_I32);
    bool known = true;
    for (uint32_t i = 0; i < spatial; i++) {
        axes[i] = 2 + (int64_t)i;
        most[i] = dim_bound(onnx_dim(n, x, 2 + i));
        known &= most[i] >= 0;
        count = onnx_binary(n, "multiply", count, onnx_extent(n, x, 2 + i));
    }
    if (!known || !nn_sum_fits(onnx_dtype(x), spatial, most))
        return onnx_refuse(n, DIAG_UNSUPPORTED,
                           "the sum of so many elements may not fit into 32 bits; limit the extents with "
                           "--dim 'NAME<=N'");
    count = onnx_binary(n, "maximum", count, onnx_const_int(n, DT_I64, 1));
    if (onnx_optional(n, 2))
        sums = onnx_binary(n, "subtract", sums, onnx_cast(n, onnx_optional(n, 2), DT_I32));
    sums = onnx_reduce(n, "sum", sums, spatial, axes, true);
    graph_value *by = onnx_binary(n, "multiply", f32(n, 3), onnx_cast(n, count, DT_F32));
    const attr out = attr_dtype(n->c, "out_dtype", onnx_dtype(x));
    return onnx_emit(n, ONNX_ARGS("qnn.requantize", 1, &out, sums, f32(n, 1), by, onnx_optional(n, 4)));
}

bool onnx_op_qlinear_global_average_pool(onnx_node *n)
{
    graph_value *x = channels_moved(n, onnx_in(n, 0), false), *y;
    int64_t extent = 0;
    bool open = false;
    for (uint32_t i = 2; i < onnx_rank(x); i++)
        open |= !dim_is_const(onnx_dim(n, x, i), &extent);
    if (open)
        y = mean_of_open(n, x);
    else
        y = onnx_emit(n, ONNX_ARGS(n->row->target, 0, NULL, x, f32(n, 1), f32(n, 3), onnx_optional(n, 2),
                                   onnx_optional(n, 4)));
    return onnx_alias(n, 0, channels_moved(n, y, true));
}

bool onnx_op_qlinear_conv_ms(onnx_node *n)
{
    graph_value *in[4] = {channels_moved(n, onnx_in(n, 0), false), onnx_in(n, 3), onnx_in(n, 2), onnx_in(n, 5)};
    graph_value *acc = onnx_conv(n, "qnn.conv", 4, in, onnx_optional(n, 8));
    graph_value *y = onnx_requantize(n, acc, f32(n, 1), f32(n, 4), 1, 6);
    return onnx_alias(n, 0, channels_moved(n, y, true));
}

bool onnx_op_nhwc_max_pool(onnx_node *n)
{
    graph_value *y = onnx_max_pool(n, channels_moved_always(n, onnx_in(n, 0), false));
    return onnx_alias(n, 0, channels_moved_always(n, y, true));
}

/* --- tables --- */

static graph_value *all_codes(onnx_node *n, dtype dt)
{
    const int64_t count = 256;
    uint8_t *codes = arena_array(&n->c->mem, uint8_t, (size_t)count);
    for (int64_t i = 0; i < count; i++)
        codes[i] = (uint8_t)i;
    return onnx_constant(n, tensor_dense(n->c, dt, 1, &count, codes));
}

/* What op (NULL: nothing) makes of x's numbers with these scales and zero points, looked up for each element. */
static graph_value *looked_up(onnx_node *n, const char *op, graph_value *x, graph_value *const *from,
                              graph_value *const *to)
{
    if (n->failed || dtype_bits(onnx_dtype(x)) != 8)
        return onnx_refuse(n, DIAG_TYPE, "data is not an integer of 8 bits");
    attr alpha = attr_float(n->c, "alpha", (float)onnx_attr_float(n, "alpha", 0.01));
    graph_value *y = onnx_emit(n, ONNX_ARGS("qnn.dequantize", 0, NULL, all_codes(n, onnx_dtype(x)), from[0], from[1]));
    if (op)
        y = onnx_emit(n, ONNX_ARGS(op, *n->row->attrs ? 1 : 0, &alpha, y));
    graph_value *zero = to[1] ? to[1] : onnx_const_int(n, onnx_dtype(x), 0);
    y = onnx_emit(n, ONNX_ARGS("qnn.quantize", 0, NULL, y, to[0], zero));
    return onnx_emit(n, ONNX_ARGS("qnn.table", 0, NULL, x, y));
}

bool onnx_op_qlinear_table(onnx_node *n)
{
    graph_value *from[2] = {f32(n, 1), onnx_optional(n, 2)}, *to[2] = {f32(n, 3), onnx_optional(n, 4)};
    return onnx_alias(n, 0, looked_up(n, n->row->target, onnx_in(n, 0), from, to));
}

/* Whether two operands are the same constant number, or both left out. */
static bool same_number(const graph_value *a, const graph_value *b)
{
    double x = 0, y = 0;
    return (!a || onnx_float_of(a, &x)) && (!b || onnx_float_of(b, &y)) && x == y;
}

static bool same_code(const graph_value *a, const graph_value *b)
{
    int64_t x = 0, y = 0;
    uint32_t count = 1;
    return (!a || (onnx_ints_of(a, &x, &count) && count == 1)) && (!b || (onnx_ints_of(b, &y, &count) && count == 1)) &&
           x == y;
}

bool onnx_op_qlinear_concat(onnx_node *n)
{
    if (n->n_in < 4 || n->n_in % 3 == 0) /* the last zero point may be left out, as the others */
        return onnx_fail(n, DIAG_FORMAT, "there are %u inputs; needed are a scale and a zero point, and three inputs "
                                         "for each part",
                         n->n_in);
    uint32_t count = (n->n_in - 1) / 3;
    graph_value **parts = arena_array(&n->c->mem, graph_value *, count), *to[2] = {f32(n, 0), onnx_optional(n, 1)};
    for (uint32_t i = 0; i < count; i++) {
        for (uint32_t k = 2 + 3 * i; k < 4 + 3 * i; k++)
            if (!onnx_optional(n, k))
                return onnx_fail(n, DIAG_FORMAT, "input %u is missing", k);
        graph_value *from[2] = {f32(n, 3 + 3 * i), onnx_optional(n, 4 + 3 * i)};
        parts[i] = onnx_optional(n, 2 + 3 * i);
        if (!same_number(from[0], to[0]) || !same_code(from[1], to[1]))
            parts[i] = looked_up(n, NULL, parts[i], from, to);
    }
    if (n->failed)
        return false;
    return onnx_alias(n, 0, onnx_concat(n, count, parts, onnx_attr_int(n, "axis", 0)));
}

/* --- one of two --- */

/* The condition; X, its scale and zero point, the same of Y and of the result. */
bool onnx_op_qlinear_where(onnx_node *n)
{
    graph_value *in[3] = {onnx_in(n, 0)}, *to[2] = {f32(n, 7), onnx_optional(n, 8)};
    for (uint32_t i = 1; i < 3 && !n->failed; i++) {
        graph_value *from[2] = {f32(n, 3 * i - 1), onnx_optional(n, 3 * i)};
        in[i] = onnx_in(n, 3 * i - 2);
        if (!same_number(from[0], to[0]) || !same_code(from[1], to[1]))
            in[i] = looked_up(n, NULL, in[i], from, to);
    }
    return !n->failed && onnx_alias(n, 0, onnx_where(n, in[0], in[1], in[2]));
}

/* --- softmax --- */

/* Below version 13 all axes from `axis` on are one. */
static graph_value *flattened(onnx_node *n, graph_value *x, uint32_t axis)
{
    dim d[2] = {dim_const(n->c, 1), dim_const(n->c, 1)};
    for (uint32_t i = 0; i < onnx_rank(x); i++)
        d[i >= axis] = dim_mul(n->c, d[i >= axis], onnx_dim(n, x, i));
    return onnx_reshape(n, x, 2, d);
}

static graph_value *emit_for_table(void *ctx, const char *op, uint32_t n_in, graph_value *const *in, uint32_t n_attrs,
                                   const attr *attrs)
{
    return onnx_emit(ctx, (onnx_args){op, n_in, in, n_attrs, attrs});
}

static graph_value *constant_for_table(void *ctx, const tensor_data *t)
{
    return onnx_constant(ctx, t);
}

static graph_value *softmax_table(onnx_node *n, graph_value *x, uint32_t axis, float scale)
{
    const graph_maker to = {n->c, n, emit_for_table, constant_for_table};
    int64_t extent = 0;
    if (dim_is_const(onnx_dim(n, x, axis), &extent))
        return onnx_constant(n, graph_softmax_table(n->c, scale, extent));
    return graph_open_softmax_table(&to, x, axis, scale);
}

bool onnx_op_qlinear_softmax(onnx_node *n)
{
    double scale = 0;
    graph_value *x = onnx_in(n, 0);
    if (!onnx_float_of(onnx_in(n, 1), &scale) || !(scale > 0))
        return onnx_fail(n, DIAG_UNSUPPORTED, "the scale of the data is not a constant above 0");
    uint32_t rank = onnx_rank(x), axis = onnx_axis(n, onnx_attr_int(n, "axis", -1), rank);
    if (n->failed || rank == 0)
        return onnx_fail(n, DIAG_TYPE, "data is a single number");
    bool flat = onnx_attr_int(n, "opset", 13) < 13;
    dim *dims = arena_array(&n->c->mem, dim, rank);
    for (uint32_t i = 0; i < rank; i++)
        dims[i] = onnx_dim(n, x, i);
    graph_value *y = flat ? flattened(n, x, axis) : x;
    if (n->failed)
        return false;
    const attr along = attr_int(n->c, "axis", flat ? -1 : (int64_t)axis);
    graph_value *table = softmax_table(n, y, flat ? 1 : axis, (float)scale);
    y = onnx_emit(n, ONNX_ARGS("qnn.softmax", 1, &along, y, table, f32(n, 3), onnx_optional(n, 4)));
    return onnx_alias(n, 0, flat ? onnx_reshape(n, y, rank, dims) : y);
}

/* --- products --- */

/* A and B, with their zero points; B's scale and zero point may lie on its last axis. */
static graph_value *product(onnx_node *n, graph_value *a, graph_value *b, graph_value *az, graph_value *bz, bool ta,
                            bool tb)
{
    attr at[2] = {attr_int(n->c, "transpose_a", ta), attr_int(n->c, "transpose_b", tb)};
    return onnx_emit(n, ONNX_ARGS("qnn.matmul", 2, at, a, b, az, bz));
}

/* Without a scale of the result it is in f32; the bias C is in integers either way. */
bool onnx_op_qgemm(onnx_node *n)
{
    double alpha = onnx_attr_float(n, "alpha", 1);
    graph_value *acc = product(n, onnx_in(n, 0), onnx_in(n, 3), onnx_optional(n, 2), onnx_optional(n, 5),
                               onnx_attr_int(n, "transA", 0) != 0, onnx_attr_int(n, "transB", 0) != 0);
    if (onnx_optional(n, 6))
        acc = onnx_binary(n, "add", acc, onnx_optional(n, 6));
    graph_value *sa = f32(n, 1), *sb = f32(n, 4);
    if (alpha != 1) {
        sb = onnx_binary(n, "multiply", sa, sb);
        sa = onnx_const_float(n, DT_F32, alpha);
    }
    if (onnx_optional(n, 7))
        return onnx_alias(n, 0, onnx_requantize(n, acc, sa, sb, -1, 7));
    attr axis = attr_int(n->c, "axis", -1);
    onnx_result(n, 0, ONNX_ARGS("qnn.dequantize", 1, &axis, acc, onnx_binary(n, "multiply", sa, sb)));
    return !n->failed;
}

/* f32(acc) * (sa * sb) + bias, the scales along the last axis; product and sum are rounded each by itself. */
static bool to_float(onnx_node *n, graph_value *acc, graph_value *sa, graph_value *sb, graph_value *bias)
{
    graph_value *scale = onnx_binary(n, "multiply", sa, sb), *y;
    if (n->failed)
        return false;
    attr axis = attr_int(n->c, "axis", -1);
    y = onnx_rank(scale) < 2 ? onnx_emit(n, ONNX_ARGS("qnn.dequantize", 1, &axis, acc, scale))
                             : onnx_binary(n, "multiply", onnx_cast(n, acc, DT_F32), scale);
    return onnx_alias(n, 0, bias ? onnx_binary(n, "add", y, bias) : y);
}

bool onnx_op_matmul_integer_to_float(onnx_node *n)
{
    graph_value *acc = product(n, onnx_in(n, 0), onnx_in(n, 1), onnx_optional(n, 4), onnx_optional(n, 5), false, false);
    return to_float(n, acc, f32(n, 2), f32(n, 3), onnx_optional(n, 6));
}

bool onnx_op_dynamic_quantize_matmul(onnx_node *n)
{
    graph_value *scale, *zero;
    graph_value *a = onnx_quantize_dynamically(n, onnx_in(n, 0), &scale, &zero);
    graph_value *acc = product(n, a, onnx_in(n, 1), zero, onnx_optional(n, 3), false, false);
    return to_float(n, acc, scale, f32(n, 2), onnx_optional(n, 4));
}

/* --- blocks of 4 or 8 bits --- */

/* `rows` of `count` numbers of 4 or 8 bits; of 4, two in a byte, the low one first; rows begin with a byte. The first
 * `kept` of each as u8, one for each number: there is no type of 4 bits in kernels. */
static const tensor_data *unpacked(onnx_node *n, const tensor_data *t, int64_t bits, int64_t rows, int64_t count,
                                   int64_t kept)
{
    const int64_t per_row = (count * bits + 7) / 8, dims[2] = {rows, kept};
    int64_t bytes;
    if (!i64_mul(rows, per_row, &bytes) || t->dt != DT_U8 || t->count != bytes)
        return onnx_fail(n, DIAG_FORMAT, "a constant has %lld bytes; %lld rows of %lld are needed",
                         (long long)t->count, (long long)rows, (long long)per_row), NULL;
    uint8_t *out = arena_array(&n->c->mem, uint8_t, (size_t)(rows * kept));
    for (int64_t i = 0; i < rows; i++)
        for (int64_t k = 0; k < kept; k++) {
            int64_t byte = tensor_get_i64(t, i * per_row + k * bits / 8);
            out[i * kept + k] = (uint8_t)(bits == 8 ? byte : byte >> (k % 2 * 4) & 15);
        }
    return tensor_dense(n->c, DT_U8, 2, dims, out);
}

static bool read_blocks(onnx_node *n, int64_t *k, int64_t *cols, int64_t *bits, int64_t *block)
{
    *k = onnx_attr_int(n, "K", 0);
    *cols = onnx_attr_int(n, "N", 0);
    *bits = onnx_attr_int(n, "bits", 4);
    *block = onnx_attr_int(n, "block_size", 32);
    if (*k < 1 || *cols < 1 || *k > INT32_MAX || *cols > INT32_MAX || *block < 16 ||
        *block > INT32_MAX || (*block & (*block - 1)) != 0)
        return onnx_fail(n, DIAG_FORMAT, "K = %lld, N = %lld, block_size = %lld do not fit", (long long)*k,
                         (long long)*cols, (long long)*block);
    if ((*bits != 4 && *bits != 8) || onnx_optional(n, 4))
        return onnx_fail(n, DIAG_UNSUPPORTED, "%s", onnx_optional(n, 4) ? "g_idx is not supported"
                                                                  : "only 4 and 8 bits are supported");
    return true;
}

#define LEVEL_BYTES   4    /* the accuracy_level that allows data of 8 bits */
#define LONGEST_BLOCK 4096 /* whose sum, of products of 7 and of 4 bits, f32 holds exactly */
#define LEAST_SCALE   1e-30 /* of a block, in place of 0 */

/* x in blocks of its last axis, [.., blocks, block], each rounded to i8 with the scale that makes its farthest number
 * 127, and dequantised: [.., blocks * block]. The steps are onnxruntime's. */
static graph_value *rounded_blocks(onnx_node *n, graph_value *x, int64_t k, int64_t block)
{
    const uint32_t rank = onnx_rank(x);
    const int64_t blocks = (k + block - 1) / block, last = rank;
    int64_t pads[2 * TYPE_MAX_RANK] = {0};
    dim dims[TYPE_MAX_RANK];
    if (rank < 1 || rank >= TYPE_MAX_RANK)
        return onnx_refuse(n, DIAG_TYPE, "data of %u dimensions; 1 to %u are supported", rank, TYPE_MAX_RANK - 1);
    pads[2 * rank - 1] = blocks * block - k;
    if (blocks * block > k)
        x = onnx_binary(n, "nn.pad", x, onnx_const_ints(n, 2 * rank, pads));
    for (uint32_t i = 0; i + 1 < rank; i++)
        dims[i] = onnx_dim(n, x, i);
    dims[rank - 1] = dim_const(n->c, blocks);
    dims[rank] = dim_const(n->c, block);
    x = onnx_reshape(n, x, rank + 1, dims);
    graph_value *most = onnx_reduce(n, "max", onnx_unary(n, "abs", x), 1, &last, true);
    most = onnx_binary(n, "maximum", most, onnx_const_float(n, DT_F32, LEAST_SCALE));
    graph_value *by = onnx_binary(n, "divide", onnx_const_float(n, DT_F32, INT8_MAX), most);
    graph_value *scale = onnx_binary(n, "divide", most, onnx_const_float(n, DT_F32, INT8_MAX));
    graph_value *codes = onnx_cast(n, onnx_unary(n, "round", onnx_binary(n, "multiply", x, by)), DT_I8);
    attr at[2] = {attr_int(n->c, "axis", last), attr_int(n->c, "block_size", block)};
    x = onnx_emit(n, ONNX_ARGS("qnn.dequantize", 2, at, codes, scale));
    dims[rank - 1] = dim_const(n->c, blocks * block);
    return onnx_reshape(n, x, rank, dims);
}

/* Weights [N, blocks, bytes], dequantised by their blocks of K; use-integers packs those of 4 bits again, and makes
 * products of integers where the data is rounded to blocks of 8 bits. */
bool onnx_op_matmul_nbits(onnx_node *n)
{
    int64_t k, cols, bits, block;
    if (!read_blocks(n, &k, &cols, &bits, &block))
        return false;
    const int64_t blocks = (k + block - 1) / block, grid[2] = {cols, blocks};
    const bool in_bytes = onnx_attr_int(n, "accuracy_level", 0) == LEVEL_BYTES && bits == 4 &&
                          block <= LONGEST_BLOCK && onnx_dtype(onnx_in(n, 0)) == DT_F32;
    const graph_value *given = onnx_optional(n, 3);
    const tensor_data *w = graph_constant(onnx_in(n, 1)), *z = given ? graph_constant(given) : NULL;
    if (!w || (given && (!z || z->dt != DT_U8)))
        return onnx_fail(n, DIAG_UNSUPPORTED, "weights and zero points must be constants of integers");
    const tensor_data *codes = unpacked(n, w, bits, cols, blocks * block, in_bytes ? blocks * block : k);
    const tensor_data *zeros = z ? unpacked(n, z, bits, cols, blocks, blocks) : NULL;
    if (n->failed || !codes)
        return false;
    const uint8_t middle = bits == 4 ? 8 : 128;
    if (!z)
        zeros = tensor_splat(n->c, DT_U8, 2, grid, &middle);
    attr at[2] = {attr_int(n->c, "axis", 1), attr_int(n->c, "block_size", block)};
    graph_value *scales = onnx_reshape_ints(n, f32(n, 2), 2, grid);
    graph_value *b = onnx_emit(n, ONNX_ARGS("qnn.dequantize", 2, at, onnx_constant(n, codes), scales,
                                            onnx_constant(n, zeros)));
    graph_value *x = in_bytes ? rounded_blocks(n, onnx_in(n, 0), k, block) : onnx_in(n, 0);
    graph_value *y = onnx_matmul(n, x, b, false, true, DT_NONE);
    return onnx_alias(n, 0, onnx_optional(n, 5) ? onnx_binary(n, "add", y, onnx_optional(n, 5)) : y);
}
