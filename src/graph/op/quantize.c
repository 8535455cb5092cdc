/* SPDX-License-Identifier: Apache-2.0 */
/* Type relations of quantisation and of the layout transform that packs weights. */
#include "graph/op/nn.h"

#include <string.h>

/* Scale and zero point: one number, one for each entry of the axis, or one for each block of it. */
static bool parameters_fit(compiler *c, const graph_node *n)
{
    shape x = infer_in(n, 0)->shape;
    int64_t block = graph_attr_int(n, "block_size"), a = 0, b = 0;
    int32_t axis = 0;
    for (uint32_t i = 1; i < n->n_inputs && i < 3; i++) {
        const type *t = infer_in(n, i);
        if (!t || t->shape.rank == 0 || (t->shape.rank == 1 && block == 0 && dim_is(t->shape.dims[0], 1)))
            continue;
        bool blocked = t->shape.rank > 1 || block != 0;
        if (!infer_axis(c, n, graph_attr_int(n, "axis"), x.rank, &axis))
            return false;
        if (block < 0 || t->shape.rank != (blocked ? x.rank : 1) || infer_in(n, 1)->shape.rank != t->shape.rank)
            return infer_error(c, n, "operand %u has rank %d for data of rank %d", i, t->shape.rank, x.rank);
        for (int32_t k = 0; k < t->shape.rank; k++) {
            int32_t at = blocked ? k : axis;
            if (!dim_is_const(t->shape.dims[k], &a) || !dim_is_const(x.dims[at], &b))
                continue;
            if (a != (at == axis && block > 0 ? b / block + (b % block != 0) : b))
                return infer_error(c, n, "operand %u has extent %lld on axis %d, which does not fit", i, (long long)a,
                                   k);
        }
    }
    return true;
}

/* Output type: out_dtype, else the zero point's, else u8 (ONNX QuantizeLinear). */
bool infer_quantize(compiler *c, const graph_node *n, type *out)
{
    const type *x = infer_in(n, 0), *zp = infer_in(n, 2);
    dtype dt = graph_attr_dtype(n, "out_dtype");
    if (zp && dt != DT_NONE && zp->dt != dt)
        return infer_error(c, n, "out_dtype %s differs from the zero point's %s", dtype_name(dt), dtype_name(zp->dt));
    if (dt == DT_NONE)
        dt = zp ? zp->dt : DT_U8;
    out[0] = type_tensor(dt, x->shape);
    return parameters_fit(c, n);
}

/* Output type: out_dtype, else the scale's (ONNX DequantizeLinear). */
bool infer_dequantize(compiler *c, const graph_node *n, type *out)
{
    dtype dt = graph_attr_dtype(n, "out_dtype");
    out[0] = type_tensor(dt == DT_NONE ? infer_in(n, 1)->dt : dt, infer_in(n, 0)->shape);
    return parameters_fit(c, n);
}

#define MAX_BLOCK 65536 /* lanes of a packed layout: far above any vector */

/* dst names every axis of src, which are different capitals, once, before its block ("16o"). */
static bool same_letters(const char *src, const char *dst, size_t rank)
{
    if (strlen(dst) < rank + 2 || dst[strlen(dst) - 1] < 'a' || dst[strlen(dst) - 1] > 'z')
        return false;
    for (size_t i = 0; i < rank; i++) {
        if (src[i] < 'A' || src[i] > 'Z' || memchr(src, src[i], rank) != src + i)
            return false;
        if (dst[i] < 'A' || dst[i] > 'Z' || memchr(dst, dst[i], rank) != dst + i || !memchr(src, dst[i], rank))
            return false;
    }
    return strspn(dst + rank, "0123456789") == strlen(dst) - rank - 1;
}

/* dst_layout is src_layout with one axis blocked: "OIHW" -> "OIHW16o" gives [ceil(O/16), I, H, W, 16]; a different
 * order of the capital letters permutes ("NK" -> "KN16n"): [ceil(N/16), K, 16] has the blocked axis first. */
bool infer_layout_transform(compiler *c, const graph_node *n, type *out)
{
    const type *x = infer_in(n, 0);
    const char *src = graph_attr_string(n, "src_layout"), *dst = graph_attr_string(n, "dst_layout");
    int64_t block = nn_layout_block(dst);
    size_t rank = strlen(src), len = strlen(dst);
    if (block < 1 || block > MAX_BLOCK || x->shape.rank != (int32_t)rank || rank > TYPE_MAX_RANK - 1 ||
        !same_letters(src, dst, rank))
        return infer_error(c, n, "cannot go from layout %s to %s at rank %d", src, dst, x->shape.rank);
    char blocked = (char)(dst[len - 1] - 'a' + 'A');
    dim d[TYPE_MAX_RANK];
    uint32_t r = 0;
    const char *at = strchr(src, blocked);
    if (!at)
        return infer_error(c, n, "layout %s has no axis %c", src, blocked);
    d[r++] = dim_ceildiv(c, x->shape.dims[at - src], dim_const(c, block));
    for (size_t i = 0; i < rank; i++) {
        if (dst[i] == blocked)
            continue;
        at = strchr(src, dst[i]);
        if (!at)
            return infer_error(c, n, "layout %s has no axis %c", src, dst[i]);
        d[r++] = x->shape.dims[at - src];
    }
    d[r++] = dim_const(c, block);
    out[0] = type_tensor(x->dt, shape_make(c, r, d));
    return true;
}
