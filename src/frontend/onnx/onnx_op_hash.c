/* SPDX-License-Identifier: Apache-2.0 */
/* Importer of MurmurHash3 (com.microsoft), 32 bits on x86: of the bytes of a string, or of an integer. Blocks of four
 * bytes are mixed side by side; then the state goes through them one after the other. A block that a string fills in
 * part is mixed as its end is, whose missing bytes are zeros, and one behind its end changes nothing. */
#include "frontend/onnx/onnx_ml.h"

typedef struct hash {
    onnx_node *n;
    graph_value *blocks; /* u32[..., count] */
    graph_value *length; /* u32[..., 1]: bytes; NULL: all blocks are full */
    int64_t count;
} hash;

static graph_value *number(const hash *h, int64_t v)
{
    return onnx_const_int(h->n, DT_U32, v);
}

static graph_value *op2(const hash *h, const char *op, graph_value *a, graph_value *b)
{
    return onnx_binary(h->n, op, a, b);
}

static graph_value *times(const hash *h, graph_value *x, int64_t k)
{
    return op2(h, "multiply", x, number(h, k));
}

static graph_value *turned(const hash *h, graph_value *x, int64_t bits)
{
    return op2(h, "bitwise_or", op2(h, "left_shift", x, number(h, bits)),
               op2(h, "right_shift", x, number(h, 32 - bits)));
}

/* x ^ (x >> bits) */
static graph_value *folded(const hash *h, graph_value *x, int64_t bits)
{
    return op2(h, "bitwise_xor", x, op2(h, "right_shift", x, number(h, bits)));
}

static void read_text(hash *h, graph_value *text)
{
    onnx_node *n = h->n;
    static const uint32_t weight[4] = {1, 1 << 8, 1 << 16, 1 << 24};
    const int64_t last = -1, four = 4;
    const uint32_t rank = onnx_rank(text);
    dim d[TYPE_MAX_RANK];
    h->count = (onnx_text_width(text) + 3) / 4;
    text = onnx_text_wider(n, text, 4 * h->count);
    if (rank + 1 > TYPE_MAX_RANK) {
        onnx_fail(n, DIAG_UNSUPPORTED, "strings of too many dimensions");
        return;
    }
    for (uint32_t i = 0; i + 1 < rank; i++)
        d[i] = onnx_dim(n, text, i);
    d[rank - 1] = dim_const(n->c, h->count);
    d[rank] = dim_const(n->c, 4);
    graph_value *bytes = onnx_cast(n, onnx_reshape(n, text, rank + 1, d), DT_U32);
    bytes = op2(h, "multiply", bytes, onnx_constant(n, tensor_dense(n->c, DT_U32, 1, &four, weight)));
    h->blocks = onnx_reduce(n, "sum", bytes, 1, &last, false);
    h->length = onnx_cast(n, onnx_text_length(n, text), DT_U32);
}

static void read_integers(hash *h, graph_value *x)
{
    onnx_node *n = h->n;
    const int64_t behind = onnx_rank(x);
    const bool wide = dtype_bytes(x->type.dt) == 8;
    graph_value *part[2] = {onnx_expand_dims(n, onnx_cast(n, x, wide ? DT_U64 : DT_U32), 1, &behind), NULL};
    h->count = 1;
    if (wide) {
        part[1] = onnx_cast(n, op2(h, "right_shift", part[0], onnx_const_int(n, DT_U64, 32)), DT_U32);
        part[0] = onnx_cast(n, op2(h, "bitwise_and", part[0], onnx_const_int(n, DT_U64, UINT32_MAX)), DT_U32);
        h->count = 2;
    }
    h->blocks = h->count > 1 ? onnx_concat(n, 2, part, behind) : part[0];
}

/* u32[..., 1] */
static graph_value *hashed(const hash *h, int64_t seed)
{
    onnx_node *n = h->n;
    const int64_t axis = (int64_t)onnx_rank(h->blocks) - 1;
    graph_value *mixed = times(h, turned(h, times(h, h->blocks, 0xcc9e2d51), 15), 0x1b873593);
    graph_value *state = number(h, seed), *length = h->length ? h->length : number(h, 4 * h->count);
    for (int64_t i = 0; i < h->count; i++) {
        graph_value *part = op2(h, "bitwise_xor", state, onnx_slice(n, mixed, axis, i, i + 1));
        graph_value *full = op2(h, "add", times(h, turned(h, part, 13), 5), number(h, 0xe6546b64));
        if (h->length) {
            part = onnx_where(n, op2(h, "less", number(h, 4 * i), length), part, state);
            full = onnx_where(n, op2(h, "less", number(h, 4 * i + 3), length), full, part);
        }
        state = full;
    }
    state = op2(h, "bitwise_xor", state, length);
    state = folded(h, times(h, folded(h, state, 16), 0x85ebca6b), 13);
    return folded(h, times(h, state, 0xc2b2ae35), 16);
}

bool onnx_op_murmur_hash3(onnx_node *n)
{
    const int64_t seed = onnx_attr_int(n, "seed", 0), positive = onnx_attr_int(n, "positive", 1);
    graph_value *x = onnx_in(n, 0);
    hash h = {.n = n};
    if (n->failed)
        return false;
    if (onnx_is_strings(n->im, x))
        read_text(&h, onnx_text(n, x));
    else if (dtype_is_int(x->type.dt) && dtype_bytes(x->type.dt) >= 4)
        read_integers(&h, x);
    else
        return onnx_fail(n, DIAG_UNSUPPORTED, "a hash of %s is not supported yet", dtype_name(x->type.dt));
    if (n->failed || onnx_rank(h.blocks) > TYPE_MAX_RANK)
        return false;
    dim d[TYPE_MAX_RANK];
    const uint32_t rank = onnx_rank(h.blocks) - 1;
    for (uint32_t i = 0; i < rank; i++)
        d[i] = onnx_dim(n, h.blocks, i);
    graph_value *y = onnx_reshape(n, hashed(&h, seed), rank, d);
    return onnx_alias(n, 0, positive ? y : onnx_cast(n, y, DT_I32));
}
