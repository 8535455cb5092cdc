/* SPDX-License-Identifier: Apache-2.0 */
/* Part of the pass use-integers: products by dequantized constants of 4 bits, in blocks or not, become
 * qnn.matmul_nibbles, whose weights stay two in a byte. They are packed here, because constant folding would otherwise
 * make floats of them. */
#include "graph/pass/qnn.h"

#include <string.h>

typedef struct nibble_weights {
    const tensor_data *codes, *scales, *zeros; /* zeros NULL: 0 */
    bool transposed;                           /* codes are [N, K], else [K, N] */
    int64_t k, n, block, blocks;
    int64_t offset; /* from a number to its code in 0..15 */
} nibble_weights;

/* The numbers are codes of 4 bits; *offset makes them 0..15. */
static bool are_nibbles(const tensor_data *t, int64_t *offset)
{
    if (t->dt != DT_U4 && t->dt != DT_I4 && t->dt != DT_U8 && t->dt != DT_I8)
        return false;
    *offset = t->dt == DT_I4 || t->dt == DT_I8 ? 8 : 0;
    for (int64_t i = 0; i < t->count; i++) {
        int64_t v = tensor_get_i64(t, i) + *offset;
        if (v < 0 || v > 15)
            return false;
    }
    return true;
}

/* One number, one for each column, or one for each block along K. */
static bool parameter_fits(const nibble_weights *w, const tensor_data *t, bool blocked, bool on_columns)
{
    if (t->count == 1)
        return true;
    if (!blocked)
        return t->rank == 1 && on_columns && t->count == w->n;
    return t->rank == 2 && t->dims[w->transposed ? 1 : 0] == w->blocks && t->dims[w->transposed ? 0 : 1] == w->n;
}

static int64_t parameter_at(const nibble_weights *w, const tensor_data *t, int64_t column, int64_t b)
{
    if (t->count == 1)
        return 0;
    return t->rank == 1 ? column : w->transposed ? column * w->blocks + b : b * w->n + column;
}

/* What a transpose of two axes turns; NULL: v is none. */
static const graph_value *turned(const graph_value *v)
{
    const bool is_turn = v->type.shape.rank == 2 && rewrite_is_op(v, "transpose");
    const int64_t *perm = NULL;
    const uint32_t count = is_turn ? graph_attr_ints(v->def, "perm", &perm) : 0;
    return is_turn && (count == 0 || perm[0] == 1) ? v->def->inputs[0] : NULL;
}

/* Of f32, by weights that are dequantized as they lie. */
static bool is_product_by(const graph_node *n, const graph_value *b)
{
    return rewrite_is_op(b, "qnn.dequantize") && graph_attr_int(n, "transpose_a") == 0 &&
           strcmp(graph_attr_string(n, "weight_layout"), "KN") == 0 && n->inputs[0]->type.dt == DT_F32 &&
           n->outputs[0]->type.dt == DT_F32 && n->inputs[0]->type.shape.rank >= 2;
}

static bool is_matrix(const tensor_data *codes)
{
    return codes && codes->kind == TENSOR_DENSE && codes->rank == 2 && codes->count > 0;
}

static bool read_weights(const graph_node *n, nibble_weights *out)
{
    if (strcmp(n->op->name, "nn.matmul") != 0)
        return false;
    const graph_value *b = turned(n->inputs[1]);
    const bool is_turned = b != NULL;
    b = b ? b : n->inputs[1];
    if (!is_product_by(n, b))
        return false;
    const graph_node *d = b->def;
    const tensor_data *codes = graph_constant(d->inputs[0]);
    *out = (nibble_weights){.codes = codes, .scales = graph_constant(d->inputs[1])};
    out->zeros = d->n_inputs > 2 ? graph_constant(d->inputs[2]) : NULL;
    if (!is_matrix(codes) || !out->scales || out->scales->dt != DT_F32 ||
        (graph_operand(d, 2) && !out->zeros))
        return false;
    out->transposed = (graph_attr_int(n, "transpose_b") != 0) != is_turned;
    out->n = codes->dims[out->transposed ? 0 : 1];
    out->k = codes->dims[out->transposed ? 1 : 0];
    int64_t axis = graph_attr_int(d, "axis"), block = graph_attr_int(d, "block_size");
    axis = axis < 0 ? axis + 2 : axis;
    const bool blocked = block > 0, on_columns = axis == (out->transposed ? 0 : 1);
    out->block = blocked ? block : (out->k + 7) / 8 * 8;
    out->blocks = (out->k + out->block - 1) / out->block;
    return (!blocked || (!on_columns && block % 8 == 0)) && parameter_fits(out, out->scales, blocked, on_columns) &&
           (!out->zeros || parameter_fits(out, out->zeros, blocked, on_columns)) && are_nibbles(codes, &out->offset);
}

static int64_t zero_at(const nibble_weights *w, int64_t column, int64_t b)
{
    return (w->zeros ? tensor_get_i64(w->zeros, parameter_at(w, w->zeros, column, b)) : 0) + w->offset;
}

/* Code k of a column; what is not there stands for 0. */
static uint32_t code_at(const nibble_weights *w, int64_t column, int64_t k)
{
    if (column >= w->n || k >= w->k)
        return 0;
    return (uint32_t)(tensor_get_i64(w->codes, w->transposed ? column * w->k + k : k * w->n + column) + w->offset);
}

static const tensor_data *packed_codes(compiler *c, const nibble_weights *w, int64_t lanes)
{
    const int64_t panels = (w->n + lanes - 1) / lanes, words = w->blocks * (w->block / 8);
    const int64_t dims[3] = {panels, words, lanes};
    uint32_t *out = arena_array(&c->mem, uint32_t, (size_t)(panels * words * lanes)), *next = out;
    for (int64_t p = 0; p < panels; p++)
        for (int64_t i = 0; i < words; i++)
            for (int64_t lane = 0; lane < lanes; lane++, next++) {
                *next = 0;
                for (uint32_t k = 0; k < 8; k++)
                    *next |= code_at(w, p * lanes + lane, 8 * i + k) << 4 * (k < 4 ? 2 * k : 2 * k - 7);
            }
    return tensor_dense(c, DT_I32, 3, dims, out);
}

static const tensor_data *packed_scales(compiler *c, const nibble_weights *w, int64_t lanes)
{
    const int64_t dims[3] = {(w->n + lanes - 1) / lanes, w->blocks, lanes};
    float *out = arena_array(&c->mem, float, (size_t)(dims[0] * dims[1] * lanes));
    for (int64_t i = 0; i < dims[0] * dims[1] * lanes; i++) {
        int64_t column = i / (dims[1] * lanes) * lanes + i % lanes, b = i / lanes % dims[1];
        out[i] = column < w->n ? (float)tensor_get_f64(w->scales, parameter_at(w, w->scales, column, b)) : 0;
    }
    return tensor_dense(c, DT_F32, 3, dims, out);
}

/* NULL: there is one for all, *same; or one is no u8, and *same is -1. */
static const tensor_data *packed_zeros(compiler *c, const nibble_weights *w, int64_t lanes, int64_t *same)
{
    const int64_t dims[3] = {(w->n + lanes - 1) / lanes, w->blocks, lanes};
    uint8_t *out = arena_array(&c->mem, uint8_t, (size_t)(dims[0] * dims[1] * lanes));
    bool differ = false;
    *same = zero_at(w, 0, 0);
    for (int64_t i = 0; i < dims[0] * dims[1] * lanes; i++) {
        int64_t column = i / (dims[1] * lanes) * lanes + i % lanes, b = i / lanes % dims[1];
        int64_t zero = zero_at(w, column < w->n ? column : 0, b);
        if (zero < 0 || zero > 255) {
            *same = -1;
            return NULL;
        }
        differ |= zero != *same;
        out[i] = (uint8_t)zero;
    }
    return differ ? tensor_dense(c, DT_U8, 3, dims, out) : NULL;
}

/* x divided by 16^place for each of eight numbers, filled up to whole blocks. */
static graph_value *scaled(rewriter *r, const nibble_weights *w, graph_value *x, src_loc loc)
{
    static const float by[8] = {1, 0x1p-8f, 1, 0x1p-8f, 0x1p-4f, 0x1p-12f, 0x1p-4f, 0x1p-12f};
    const int64_t rank = x->type.shape.rank, more = w->blocks * w->block - w->k;
    float *factors = arena_array(&r->c->mem, float, (size_t)w->k);
    for (int64_t i = 0; i < w->k; i++)
        factors[i] = by[i % 8];
    graph_value *pair[2] = {x, rewrite_constant(r, tensor_dense(r->c, DT_F32, 1, &w->k, factors), "places", loc)};
    x = rewrite_emit(r, "multiply", 2, pair, 0, NULL, loc);
    if (!x || more == 0)
        return x;
    int64_t *pads = arena_array(&r->c->mem, int64_t, (size_t)(2 * rank));
    for (int64_t i = 0; i < 2 * rank; i++)
        pads[i] = i == 2 * rank - 1 ? more : 0;
    graph_value *in[2] = {x, rewrite_constant(r, tensor_from_i64s(r->c, (uint32_t)(2 * rank), pads), "more", loc)};
    return rewrite_emit(r, "nn.pad", 2, in, 0, NULL, loc);
}

/* Data of 8 bits: blocks [.., blocks, block] of codes, the last axis of the product's data, and a scale for each. */
typedef struct byte_data {
    graph_value *codes, *scales;
} byte_data;

/* Where the data of product n is such blocks, dequantised, of the length that the weights' have. */
static bool read_bytes(const graph_node *n, const nibble_weights *w, byte_data *out)
{
    const graph_value *x = n->inputs[0];
    if (!rewrite_is_op(x, "reshape") || !rewrite_is_op(x->def->inputs[0], "qnn.dequantize"))
        return false;
    const graph_node *d = x->def->inputs[0]->def;
    const shape codes = d->inputs[0]->type.shape, scales = d->inputs[1]->type.shape;
    const int32_t last = codes.rank - 1;
    int64_t axis = graph_attr_int(d, "axis");
    *out = (byte_data){d->inputs[0], d->inputs[1]};
    axis = axis < 0 ? axis + codes.rank : axis;
    return out->codes->type.dt == DT_I8 && out->scales->type.dt == DT_F32 && d->n_inputs == 2 && last >= 1 &&
           axis == last && scales.rank == codes.rank && dim_is(codes.dims[last], w->block) &&
           dim_is(codes.dims[last - 1], w->blocks) && dim_is(scales.dims[last], 1) &&
           dim_is(scales.dims[last - 1], w->blocks) && w->blocks * w->block == w->k;
}

/* v in the extents of the data x, but the last. */
static graph_value *in_rows(rewriter *r, const graph_value *x, graph_value *v, int64_t last, src_loc loc)
{
    dim dims[TYPE_MAX_RANK];
    int64_t extents[TYPE_MAX_RANK];
    uint32_t open = 0;
    const uint32_t rank = (uint32_t)x->type.shape.rank;
    memcpy(dims, x->type.shape.dims, rank * sizeof *dims);
    dims[rank - 1] = dim_const(r->c, last);
    for (uint32_t i = 0; i < rank; i++)
        if (!dim_is_const(dims[i], &extents[i])) {
            extents[i] = -1;
            open++;
        }
    const int64_t count = rank;
    graph_value *in[2] = {v, rewrite_constant(r, tensor_from_i64s(r->c, (uint32_t)count, extents), "shape", loc)};
    return open < 2 && in[1] ? rewrite_emit(r, "reshape", 2, in, 0, NULL, loc) : NULL;
}

static graph_value *convert_bytes(rewriter *r, graph_node *n, const nibble_weights *w, const byte_data *x,
                                  graph_value **in, uint32_t n_attrs, const attr *attrs)
{
    attr block = attr_int(r->c, "block_size", w->block);
    graph_value *data = n->inputs[0];
    in[0] = in_rows(r, data, x->codes, w->k, n->loc);
    in[5] = in_rows(r, data, x->scales, w->blocks, n->loc);
    in[4] = in[0] ? rewrite_emit(r, "block_sums", 1, in, 1, &block, n->loc) : NULL;
    return in[4] && in[5] ? rewrite_emit(r, "qnn.matmul_nibbles", 6, in, n_attrs, attrs, n->loc) : NULL;
}

static graph_value *convert(rewriter *r, graph_node *n, const nibble_weights *w, int64_t lanes)
{
    int64_t zero;
    lanes = w->n >= lanes && lanes > 1 ? lanes : 1;
    const tensor_data *zeros = packed_zeros(r->c, w, lanes, &zero);
    if (!zeros && zero < 0)
        return NULL;
    byte_data x;
    graph_value *in[6] = {n->inputs[0], rewrite_constant(r, packed_codes(r->c, w, lanes), "weights", n->loc),
                          rewrite_constant(r, packed_scales(r->c, w, lanes), "scales", n->loc),
                          zeros ? rewrite_constant(r, zeros, "zero_points", n->loc) : NULL};
    uint32_t count = zeros ? 4 : 3;
    const attr attrs[3] = {attr_int(r->c, "units", w->n), attr_int(r->c, "block_size", w->block),
                           attr_int(r->c, "zero", zeros ? 0 : zero)};
    if (read_bytes(n, w, &x))
        return convert_bytes(r, n, w, &x, in, 3, attrs);
    if (lanes > 1) {
        attr block = attr_int(r->c, "block_size", w->block);
        in[4] = rewrite_emit(r, "block_sums", 1, in, 1, &block, n->loc);
        in[0] = scaled(r, w, in[0], n->loc);
        count = 5;
    }
    return in[0] && (count < 5 || in[4]) ? rewrite_emit(r, "qnn.matmul_nibbles", count, in, 3, attrs, n->loc) : NULL;
}

bool qnn_keep_nibbles(compiler *c, graph_func *f, const pass_options *o)
{
    const int64_t lanes = o->target ? o->target->vector_bytes / 4 : 1;
    rewriter r;
    rewrite_begin(&r, c, f);
    for (uint32_t i = 0; i < f->nodes.len && !r.failed; i++) {
        graph_node *n = f->nodes.data[i];
        nibble_weights w;
        rewrite_operands(n);
        graph_value *y = read_weights(n, &w) ? convert(&r, n, &w, lanes) : NULL;
        if (y && type_equal(&y->type, &n->outputs[0]->type) && rewrite_replace(&r, n->outputs[0], y))
            continue;
        rewrite_keep(&r, n);
    }
    rewrite_end(&r);
    graph_remove_dead(f);
    return !r.failed;
}

/* --- those that become bytes --- */

void qnn_note_bytes(compiler *c, graph_func *f, const graph_node *n, const char *why)
{
    const graph_value *w = turned(n->inputs[1]);
    const tensor_data *t = graph_constant(w ? w : n->inputs[1]);
    if (!t || !t->nibbles)
        return;
    const graph_note note = {"convert-rows", n->op->name, n->outputs[0]->name,
                             arena_printf(&c->mem, QNN_NOTE_BYTES ": %s", why), n->loc};
    vec_push(&c->mem, &f->module->notes, note);
}

/* Convolutions of any rank, transposed ones, and products, but for those whose weights are packed. */
static bool is_sum(const graph_node *n)
{
    return strcmp(n->op->name, "qnn.matmul") == 0 || strncmp(n->op->name, "qnn.conv", strlen("qnn.conv")) == 0;
}

void qnn_note_all_bytes(compiler *c, graph_func *f, const char *why)
{
    for (uint32_t i = 0; i < f->nodes.len; i++)
        if (is_sum(f->nodes.data[i]))
            qnn_note_bytes(c, f, f->nodes.data[i], why);
}

/* Whether the weights less the zero points of their channels, which differ, are further apart than codes are. */
static bool are_wide(const graph_node *n, const tensor_data *w, const tensor_data *zeros)
{
    const bool is_product = strcmp(n->op->name, "qnn.matmul") == 0;
    const uint32_t axis = is_product && graph_attr_int(n, "transpose_b") == 0 ? w->rank - 1
                          : strstr(n->op->name, "_transpose")                 ? 1
                                                                              : 0;
    int64_t apart = 1, low = INT64_MAX, high = INT64_MIN;
    for (uint32_t i = axis + 1; i < w->rank; i++)
        apart *= w->dims[i];
    for (int64_t i = 0; i < w->count; i++) {
        const int64_t x = tensor_get_i64(w, i) - tensor_get_i64(zeros, i / apart % w->dims[axis] % zeros->count);
        low = x < low ? x : low;
        high = x > high ? x : high;
    }
    return high - low > 15;
}

void qnn_note_wide_nibbles(compiler *c, graph_func *f)
{
    for (uint32_t i = 0; i < f->nodes.len; i++) {
        const graph_node *n = f->nodes.data[i];
        const tensor_data *w = is_sum(n) ? graph_constant(n->inputs[1]) : NULL;
        const tensor_data *zeros = w ? graph_constant(graph_operand(n, 3)) : NULL;
        if (w && w->count < QNN_LEAST_NIBBLES)
            qnn_note_bytes(c, f, n, "less than 64 weights");
        else if (w && w->nibbles && w->rank > 0 && zeros && zeros->count > 1 && are_wide(n, w, zeros))
            qnn_note_bytes(c, f, n, "minus their zero points, which differ, the weights are not within 16 neighboring "
                                    "numbers");
    }
}
