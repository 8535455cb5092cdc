/* SPDX-License-Identifier: Apache-2.0 */
/* convert-rows: on processors without vectors and with pointers of 32 bits, convolutions and products of bytes with
 * constant weights become qnn.conv2d_rows, whose results have their channels last. A walk over each function carries
 * that form from one to the next through what does not care about it, and the way back (a transpose, for matrices a
 * view) stands where a value is needed as the model has it, once for each value. A convolution reads either form. */
#include "graph/op/rows.h"
#include "graph/pass.h"
#include "graph/pass/qnn.h"
#include "graph/pass/twins.h"

#include <string.h>

#define MAX_OPERANDS 16

typedef struct converter {
    twins t; /* the other form: channels last, [N, H, W, C] */
    bool words; /* pairs of products by instructions that take words */
    bool lanes; /* vectors of bytes are multiplied: zero points go into the bias */
    ptr_map folded; /* a sum with the part of the bias that stands for the zero point -> position in parts */
    VEC(const tensor_data *) parts;
} converter;

/* --- values --- */

static int64_t extent(const graph_value *x, uint32_t axis)
{
    int64_t n = 0;
    return dim_is_const(x->type.shape.dims[axis], &n) ? n : 0;
}

/* An image [N, C, H, W], or a matrix [rows, columns], whose form with channels last is [1, 1, rows, columns]. */
static bool is_image(const graph_value *x)
{
    return x && x->type.kind == TYPE_TENSOR && x->type.shape.rank == 4 && shape_is_static(x->type.shape);
}

static bool is_matrix(const graph_value *x)
{
    return x && x->type.kind == TYPE_TENSOR && x->type.shape.rank == 2 && shape_is_static(x->type.shape);
}

static graph_value *reshaped(converter *v, graph_value *x, uint32_t rank, const int64_t *dims, src_loc loc)
{
    graph_value *in[2] = {x, rewrite_constant(&v->t.r, tensor_from_i64s(v->t.r.c, rank, dims), "shape", loc)};
    return rewrite_emit(&v->t.r, "reshape", 2, in, 0, NULL, loc);
}

static graph_value *transposed(converter *v, graph_value *x, const int64_t *axes, src_loc loc)
{
    attr a = attr_ints(v->t.r.c, "perm", 4, axes);
    return rewrite_emit(&v->t.r, "transpose", 1, &x, 1, &a, loc);
}

/* One pixel, or one channel: the same bytes in both forms. */
static bool is_same(const graph_value *x)
{
    return extent(x, 1) == 1 || (extent(x, 2) == 1 && extent(x, 3) == 1);
}

/* Numbers of a byte or two are moved, and dequantised behind that: the floats are several times as many bytes. */
static graph_value *dequantized_plain(converter *v, const graph_node *n)
{
    graph_value *in[MAX_OPERANDS] = {NULL};
    for (uint32_t i = 0; i < n->n_inputs; i++)
        in[i] = n->inputs[i] ? twins_plain(&v->t, n->inputs[i], n->loc) : NULL;
    return in[0] ? rewrite_emit(&v->t.r, n->op->name, n->n_inputs, in, n->n_attrs, n->attrs, n->loc) : NULL;
}

static graph_value *back(twins *t, const graph_value *x, graph_value *other, src_loc loc)
{
    static const int64_t perm[4] = {0, 3, 1, 2};
    converter *v = (converter *)t;
    int64_t dims[4] = {0};
    for (uint32_t i = 0; i < (uint32_t)x->type.shape.rank; i++)
        dims[i] = extent(x, i);
    if (is_matrix(x) || is_same(x))
        return reshaped(v, other, (uint32_t)x->type.shape.rank, dims, loc);
    if (x->def && strcmp(x->def->op->name, "qnn.dequantize") == 0 && x->def->n_inputs <= MAX_OPERANDS)
        return dequantized_plain(v, x->def);
    return transposed(v, other, perm, loc);
}

/* x with its channels last, where that is there or costs nothing; NULL: neither. */
static graph_value *cheap_last(converter *v, graph_value *x, src_loc loc)
{
    twin *t = twins_of(&v->t, x);
    if (t->other)
        return t->other;
    if (is_matrix(x))
        t->other = reshaped(v, x, 4, (int64_t[]){1, 1, extent(x, 0), extent(x, 1)}, loc);
    else if (is_image(x) && is_same(x))
        t->other = reshaped(v, x, 4, (int64_t[]){extent(x, 0), extent(x, 2), extent(x, 3), extent(x, 1)}, loc);
    return twins_of(&v->t, x)->other = t->other;
}

/* --- nodes --- */

/* The zero point where it is known, of lanes and of 16 bits as the buffer has it. */
static bool known_zero(const graph_node *n, bool lanes, int64_t *out)
{
    const graph_value *z = n->n_inputs > 2 ? n->inputs[2] : NULL;
    const tensor_data *t = z ? graph_constant(z) : NULL;
    const dtype dt = n->inputs[0]->type.dt;
    *out = (t ? tensor_get_i64(t, 0) : 0) - (lanes && dt == DT_U8 ? 128 : dt == DT_U16 ? 32768 : 0);
    return !z || t;
}

/* Data of 16 bits whose zero point is known, with sums in i32 or i64. */
static bool is_half(const graph_node *n)
{
    const dtype dt = n->inputs[0]->type.dt;
    int64_t zero;
    return (dt == DT_I16 || dt == DT_U16) && known_zero(n, false, &zero);
}

/* Data that weights of i8 have instructions for, with at most one zero point. */
static bool data_fits_bytes(const graph_node *n)
{
    const graph_value *zero = graph_operand(n, 2);
    return (dtype_bits(n->inputs[0]->type.dt) == 8 || is_half(n)) && (!zero || shape_count(zero->type.shape) == 1);
}

/* Constant weights of such a rank as i8 without a zero point; channels of the result are their axis number `axis`. Of
 * one number in more bytes than the target addresses: NULL, they stay a literal. */
static const tensor_data *byte_weights(converter *v, const graph_node *n, uint32_t rank, uint32_t axis)
{
    const tensor_data *w = graph_constant(n->inputs[1]);
    const tensor_data *z = graph_constant(graph_operand(n, 3));
    double zero = 0;
    if (!w || !dtype_is_byte(w->dt) || w->rank != rank || w->count == 0 || w->count > INT32_MAX)
        return NULL;
    if (!data_fits_bytes(n) || (graph_operand(n, 3) && !z))
        return NULL;
    if (w->dt == DT_I8 && (!z || (rewrite_is_uniform(z, &zero) && zero == 0)))
        return w;
    int64_t apart = 1;
    for (uint32_t i = axis + 1; i < rank; i++)
        apart *= w->dims[i];
    const bool fits = !z || z->count == 1 || z->count == w->dims[axis];
    return fits ? qnn_centred(v->t.r.c, DT_I8, w, z, w->dims[axis], apart, NULL) : NULL;
}

/* Where element (channel o, input i, tap) of the weights lies in a convolution's. */
typedef struct source {
    const uint8_t *bytes;
    int64_t o, i, y, x; /* strides */
} source;

/* Place of element e in its step. */
static int64_t place_in_step(const rows_conv *v, int64_t e)
{
    return v->direct ? e : e % 2 * 2 + e / 2;
}

/* Weight k of a run, for channel b of a block. */
static void put_weight(const rows_conv *v, uint8_t *at, int64_t k, int64_t b, uint8_t weight)
{
    const int64_t step = k / ROWS_GRANULE, e = k % ROWS_GRANULE;
    int64_t half = 0;
    if (!v->nibbles) {
        at[(step * v->block + b) * ROWS_GRANULE + place_in_step(v, e)] = weight;
        return;
    }
    at += (step * (v->block / 2) + b / 2) * ROWS_GRANULE + rows_conv_nibble(v, e, b % 2, &half);
    *at = (uint8_t)(*at | (weight & 15) << (half ? 0 : 4));
}

static void pack_block(const rows_conv *v, const source *s, int64_t o, uint8_t *at)
{
    const nn_window *w = &v->win;
    int64_t columns = v->taps > 1 ? 1 : w->kernel[1], step = v->block * ROWS_GRANULE / (v->nibbles ? 2 : 1);
    int64_t rows = v->patches ? 0 : v->steps * step, pixel = v->patches ? v->in : v->pixel;
    for (int64_t y = 0; y < w->kernel[0]; y++)
        for (int64_t t = 0; t < v->taps; t++, at += rows)
            for (int64_t x = 0; x < columns; x++)
                for (int64_t i = 0; i < v->in; i++)
                    for (int64_t b = 0; b < v->block && o + b < v->out; b++)
                        put_weight(v, at, ((v->patches ? y * columns : 0) + x) * pixel + i, b,
                                   s->bytes[(o + b) * s->o + i * s->i + y * s->y + (t + x) * s->x]);
}

/* Of vectors: channel after channel, or pair after pair of them, in each its rows, columns and channels of the data. */
static void pack_plain(const rows_conv *v, const source *s, uint8_t *at)
{
    const int64_t in = v->depthwise ? 1 : v->in, together = v->nibbles ? 2 : 1;
    for (int64_t o = 0; o < v->out; o++) {
        uint8_t *to = at + o / together * v->win.kernel[0] * v->win.kernel[1] * in;
        for (int64_t y = 0; y < v->win.kernel[0]; y++)
            for (int64_t x = 0; x < v->win.kernel[1]; x++)
                for (int64_t i = 0; i < in; i++, to++) {
                    const uint8_t weight = s->bytes[o * s->o + i * s->i + y * s->y + x * s->x];
                    *to = (uint8_t)(!v->nibbles ? weight : *to | (weight & 15) << (o % 2 ? 0 : 4));
                }
    }
}

#define LEAST_NIBBLES 64 /* weights, fewer than which the code that takes them apart outweighs */

/* Why weights may not stay two in a byte; NULL: they are numbers of 4 bits that may. Sums of 16 times the products are
 * made, which have room in 32 bits. */
static const char *why_bytes(const rows_conv *v, const source *s)
{
    const int64_t taps = v->win.kernel[0] * v->win.kernel[1], most = INT32_MAX / 16 / (v->halves ? 32768 : 255);
    const int64_t in = v->depthwise ? 1 : v->in, row = v->win.kernel[1];
    if (v->out * in * taps < LEAST_NIBBLES)
        return "less than 64 weights";
    if (v->depthwise && !v->lanes && (row < 3 || row > ROWS_NIBBLES))
        return "a depthwise window of one, two or more than eight columns";
    if ((!v->depthwise || v->lanes) && !rows_conv_has_pairs(v))
        return "an odd number of output channels, which are multiplied in pairs";
    for (int64_t o = 0; o < v->out; o++) {
        int64_t sum = 0;
        for (int64_t k = 0; k < in * taps; k++) {
            const int64_t x = k % v->win.kernel[1], y = k / v->win.kernel[1] % v->win.kernel[0];
            const int8_t w = (int8_t)s->bytes[o * s->o + k / taps * s->i + y * s->y + x * s->x];
            sum += w < 0 ? -w : w;
            if (w < -8 || w > 7)
                return "minus their zero point some weights are not within -8 to 7 (uint4 with zero point 8 is)";
            if (!v->depthwise && sum > most)
                return "16 times the sums might leave 32 bits";
        }
    }
    return NULL;
}

/* Weights of 4 bits that become bytes are told of. */
static bool fit_nibbles(converter *v, const graph_node *n, const rows_conv *r, const source *s)
{
    const char *why = why_bytes(r, s);
    if (why)
        qnn_note_bytes(v->t.r.c, v->t.r.f, n, why);
    return !why;
}

/* The window of each channel, row by row; numbers of 4 bits, a row in a number of `size` bytes. */
static void pack_windows(const rows_conv *v, const source *s, uint8_t *at, size_t size)
{
    const int64_t columns = v->win.kernel[1], rows = v->win.kernel[0];
    for (int64_t k = 0; k < v->out * rows * columns; k++) {
        const int64_t x = k % columns, y = k / columns % rows, o = k / columns / rows;
        const uint8_t weight = s->bytes[o * s->o + y * s->y + x * s->x];
        if (!v->nibbles)
            at[k] = weight;
        else if (size == 2)
            ((uint16_t *)(void *)at)[o * rows + y] |= (uint16_t)((weight & 15) << 4 * x);
        else
            ((uint32_t *)(void *)at)[o * rows + y] |= (uint32_t)(weight & 15) << 4 * x;
    }
}

/* Whether i32 holds the sums of each of so many chunks, whatever the data of 16 bits is. */
static bool chunks_fit(const rows_conv *r, const int8_t *packed, int64_t chunks)
{
    const int64_t step = r->block * ROWS_GRANULE, runs = (r->patches ? 1 : r->win.kernel[0]) * r->taps;
    const int64_t each = r->steps / chunks, most = INT32_MAX / 32768;
    for (int64_t o = 0; o < r->out; o++)
        for (int64_t k = 0; k < chunks; k++) {
            int64_t sum = 0;
            for (int64_t i = 0; i < runs * each; i++) {
                const int8_t *w = packed + o / r->block * runs * r->steps * step +
                                  (i / each * r->steps + k * each + i % each) * step + o % r->block * ROWS_GRANULE;
                for (uint32_t e = 0; e < ROWS_GRANULE; e++)
                    sum += w[e] < 0 ? -w[e] : w[e];
            }
            if (sum > most)
                return false;
        }
    return true;
}

static const uint8_t *pack(converter *v, const rows_conv *r, const source *s)
{
    int64_t dims[6], count = 1;
    uint32_t rank = rows_conv_weights(r, dims);
    const dtype dt = rows_conv_weight_type(r);
    for (uint32_t i = 0; i < rank; i++)
        count *= dims[i];
    uint8_t *bytes = arena_alloc(&v->t.r.c->mem, (size_t)count * dtype_bytes(dt), 64);
    memset(bytes, 0, (size_t)count * dtype_bytes(dt));
    if (r->lanes) {
        pack_plain(r, s, bytes);
    } else if (r->depthwise) {
        pack_windows(r, s, bytes, dtype_bytes(dt));
    } else {
        for (int64_t o = 0; o < r->out; o += r->block)
            pack_block(r, s, o, bytes + o / r->block * (count / dims[0]));
    }
    return bytes;
}

#define MOST_CHUNKS 64 /* of them each adds to sums in memory */

/* The packed weights, and in how many chunks they are summed: the fewest that leave 32 bits to none, where n's sums
 * have 64. NULL: there are no such, or n's sums of 32 bits might wrap. */
static const uint8_t *pack_in_chunks(converter *v, const graph_node *n, rows_conv *r, const source *s)
{
    const bool packed_otherwise = r->depthwise || r->nibbles;
    if (n->outputs[0]->type.dt != DT_I64) {
        const uint8_t *bytes = pack(v, r, s);
        return !r->halves || packed_otherwise || chunks_fit(r, (const int8_t *)bytes, 1) ? bytes : NULL;
    }
    for (r->chunks = 1; r->chunks <= MOST_CHUNKS && !packed_otherwise; r->chunks++) {
        if (!rows_conv_derive(r))
            return NULL;
        const arena_mark mark = arena_get_mark(&v->t.r.c->mem);
        const uint8_t *bytes = pack(v, r, s);
        if (chunks_fit(r, (const int8_t *)bytes, r->chunks))
            return bytes;
        arena_reset(&v->t.r.c->mem, mark);
    }
    return NULL;
}

/* --- zero points that go into the bias --- */

/* One pixel whose zero point is known. */
static bool is_direct(const graph_node *n, const rows_conv *r)
{
    int64_t zero;
    return !r->lanes && known_zero(n, false, &zero) && rows_conv_can_be_direct(r);
}

/* Numbers for each channel, in i32 modulo 2^32. */
static const tensor_data *bias_of(converter *v, dtype dt, int64_t count, const int64_t *numbers)
{
    compiler *c = v->t.r.c;
    if (dt == DT_I64)
        return tensor_dense(c, DT_I64, 1, &count, numbers);
    int32_t *words = arena_array(&c->mem, int32_t, (size_t)count);
    for (int64_t i = 0; i < count; i++)
        words[i] = (int32_t)(uint32_t)numbers[i];
    return tensor_dense(c, DT_I32, 1, &count, words);
}

/* y with what the zero point adds to each channel taken off. */
static graph_value *less_zero(converter *v, const graph_node *n, graph_value *y, const rows_conv *r, const source *s)
{
    int64_t zero = 0, taps = r->win.kernel[0] * r->win.kernel[1] * (r->depthwise ? 1 : r->in);
    if (!y || (!r->lanes && !r->direct && !r->halves) || !known_zero(n, r->lanes, &zero) || zero == 0)
        return y;
    int64_t *part = arena_array(&v->t.r.c->mem, int64_t, (size_t)r->out);
    for (int64_t o = 0; o < r->out; o++) {
        int64_t sum = 0, columns = r->win.kernel[1];
        for (int64_t k = 0; k < taps; k++)
            sum += (int8_t)s->bytes[o * s->o + k % columns * s->x + k / columns % r->win.kernel[0] * s->y +
                                    k / columns / r->win.kernel[0] * s->i];
        part[o] = -(zero * sum);
    }
    const tensor_data *t = bias_of(v, y->type.dt, r->out, part);
    graph_value *in[2] = {y, rewrite_constant(&v->t.r, t, "bias", n->loc)};
    y = rewrite_emit(&v->t.r, "add", 2, in, 0, NULL, n->loc);
    if (y) {
        ptr_map_set(&v->folded, y, v->parts.len);
        vec_push(&v->t.scratch, &v->parts, t);
    }
    return y;
}

/* The model's own bias behind such a sum: both in one. */
static void join_bias(converter *v, const graph_node *n, graph_value **in)
{
    uint32_t at = 0;
    for (uint32_t i = 0; i < 2 && strcmp(n->op->name, "add") == 0; i++) {
        const tensor_data *own = graph_constant(in[1 - i]), *part;
        if (!ptr_map_get(&v->folded, in[i], &at) || !own)
            continue;
        part = v->parts.data[at];
        if (own->count != 1 && own->count != part->count)
            return;
        int64_t *both = arena_array(&v->t.r.c->mem, int64_t, (size_t)part->count);
        for (int64_t k = 0; k < part->count; k++)
            both[k] = tensor_get_i64(part, k) + tensor_get_i64(own, own->count == 1 ? 0 : k);
        in[i] = in[i]->def->inputs[0];
        in[1 - i] = rewrite_constant(&v->t.r, bias_of(v, part->dt, part->count, both), "bias", n->loc);
        return;
    }
}

static bool emit_conv(converter *v, graph_node *n, graph_value *x, const rows_conv *r, const source *s,
                      const uint8_t *packed)
{
    compiler *c = v->t.r.c;
    const nn_window *w = &r->win;
    int64_t pads[4] = {w->pad_begin[0], w->pad_begin[1], w->pad_end[0], w->pad_end[1]};
    attr attrs[11] = {attr_int(c, "channels", r->out),
                      attr_ints(c, "kernel", 2, w->kernel),
                      attr_ints(c, "strides", 2, w->stride),
                      attr_ints(c, "pads", 4, pads),
                      attr_ints(c, "dilations", 2, w->dilation),
                      attr_int(c, "depthwise", r->depthwise),
                      attr_int(c, "direct", r->direct),
                      attr_string(c, "data_layout", r->planar ? "NCHW" : "NHWC")};
    uint32_t n_attrs = 8;
    if (r->lanes || r->words)
        attrs[n_attrs++] = attr_int(c, r->lanes ? "lanes" : "words", 1);
    if (r->nibbles)
        attrs[n_attrs++] = attr_int(c, "nibbles", 1);
    if (r->chunks > 1)
        attrs[n_attrs++] = attr_int(c, "chunks", r->chunks);
    int64_t dims[6];
    const uint32_t rank = rows_conv_weights(r, dims);
    const tensor_data *w_data = tensor_dense(c, rows_conv_weight_type(r), rank, dims, packed);
    graph_value *in[3] = {x, rewrite_constant(&v->t.r, w_data, n->inputs[1]->name, n->loc), NULL};
    if (!r->direct && graph_operand(n, 2))
        in[2] = twins_plain(&v->t, n->inputs[2], n->loc);
    graph_value *y = rewrite_emit(&v->t.r, "qnn.conv2d_rows", in[2] ? 3 : 2, in, n_attrs, attrs, n->loc);
    const attr to = attr_dtype(c, "dtype", DT_I64);
    if (y && r->chunks == 1) /* 32 bits hold the sums, which the model adds to in 64 */
        y = rewrite_emit(&v->t.r, "cast", 1, &y, 1, &to, n->loc);
    return twins_set(&v->t, n, less_zero(v, n, y, r, s));
}

static const uint8_t *bytes_of(converter *v, const tensor_data *w)
{
    const uint8_t *bytes = tensor_plain_bytes(&v->t.r.c->mem, w);
    if (!bytes)
        arena_refuse(&v->t.r.c->mem, tensor_size(w));
    return bytes;
}

static bool convert_conv(converter *v, graph_node *n, bool *done)
{
    const tensor_data *w = byte_weights(v, n, 4, 0);
    int64_t zero;
    const bool halves = is_half(n);
    rows_conv r = {.planar = true, .words = v->words, .halves = halves,
                   .lanes = v->lanes && !halves && known_zero(n, true, &zero)};
    if (!w || !is_image(n->inputs[0]) || strcmp(graph_attr_string(n, "kernel_layout"), "OIHW") != 0)
        return true;
    int64_t groups = graph_attr_int(n, "groups");
    graph_value *x = n->inputs[0];
    r.images = extent(x, 0);
    r.in = extent(x, 1);
    r.out = w->dims[0];
    r.depthwise = groups > 1 && groups == r.in && groups == r.out;
    if ((groups > 1 && !r.depthwise) || !nn_window_read(v->t.r.c, n, 2, &r.win))
        return groups > 1 && !r.depthwise;
    for (uint32_t i = 0; i < 2; i++) {
        r.extent[i] = extent(x, 2 + i);
        r.win.kernel[i] = w->dims[2 + i];
    }
    graph_value *last = cheap_last(v, x, n->loc);
    r.planar = !last;
    if (!rows_conv_derive(&r))
        return true;
    r.direct = is_direct(n, &r);
    int64_t area = w->dims[2] * w->dims[3];
    source s = {bytes_of(v, w), w->dims[1] * area, area, w->dims[3], 1};
    r.nibbles = fit_nibbles(v, n, &r, &s);
    const uint8_t *packed = pack_in_chunks(v, n, &r, &s);
    *done = packed != NULL;
    return !packed || emit_conv(v, n, last ? last : twins_plain(&v->t, x, n->loc), &r, &s, packed);
}

/* A product of a matrix with constant weights is a convolution of one line of pixels. */
static bool convert_matmul(converter *v, graph_node *n, bool *done)
{
    bool rows = graph_attr_int(n, "transpose_b") != 0;
    const tensor_data *w = byte_weights(v, n, 2, rows ? 0 : 1);
    graph_value *x = n->inputs[0];
    if (!w || !is_matrix(x) || graph_attr_int(n, "transpose_a") != 0 ||
        strcmp(graph_attr_string(n, "weight_layout"), "KN") != 0)
        return true;
    int64_t zero;
    rows_conv r = {.images = 1, .extent = {1, extent(x, 0)}, .in = extent(x, 1), .out = w->dims[rows ? 0 : 1],
                   .words = v->words, .halves = is_half(n)};
    r.lanes = v->lanes && !r.halves && known_zero(n, true, &zero);
    r.win = (nn_window){.n = 2, .kernel = {1, 1}, .stride = {1, 1}, .dilation = {1, 1}};
    if (!rows_conv_derive(&r))
        return true;
    r.direct = is_direct(n, &r);
    source s = {bytes_of(v, w), rows ? r.in : 1, rows ? 1 : r.out, 0, 0};
    r.nibbles = fit_nibbles(v, n, &r, &s);
    graph_value *last = cheap_last(v, x, n->loc);
    const uint8_t *packed = pack_in_chunks(v, n, &r, &s);
    *done = packed != NULL;
    return last && (!packed || emit_conv(v, n, last, &r, &s, packed));
}

/* The operand of an element-wise node whose result is an image of so many channels: with its channels last, one number,
 * or one number for each channel as a vector. NULL: none of them. */
static graph_value *operand(converter *v, graph_value *x, const graph_value *y, src_loc loc)
{
    int64_t channels = extent(y, 1);
    if (shape_count(x->type.shape) == 1)
        return twins_plain(&v->t, x, loc);
    if (x->type.shape.rank == y->type.shape.rank && twins_of(&v->t, x)->other)
        return twins_of(&v->t, x)->other;
    const tensor_data *t = graph_constant(x);
    if (!t || t->kind != TENSOR_DENSE || t->count != channels || t->rank == 0)
        return NULL;
    uint32_t axis = is_matrix(y) ? t->rank - 1 : t->rank - 3;
    if ((is_image(y) && t->rank < 3) || t->dims[axis] != channels)
        return NULL;
    return rewrite_constant(&v->t.r, tensor_reshape(v->t.r.c, t, 1, &channels), x->name, loc);
}

/* Scales and zero points are vectors along an axis, or one number. */
static bool has_axis(const graph_node *n)
{
    return graph_attr(n, "axis") != NULL;
}

static bool axis_is_channels(const graph_node *n, const graph_value *y)
{
    int64_t axis = graph_attr_int(n, "axis"), rank = y->type.shape.rank;
    return (axis < 0 ? axis + rank : axis) == 1;
}

static bool is_quantised_arithmetic(const graph_node *n)
{
    static const char *const names[] = {"qnn.requantize", "qnn.rescale", "qnn.quantize",
                                        "qnn.dequantize", "qnn.add",     "qnn.mul"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(n->op->name, names[i]) == 0)
            return true;
    return false;
}

static bool is_table(const graph_node *n)
{
    return strcmp(n->op->name, "qnn.table") == 0;
}

/* Operands that every element of the result is made of; those behind them are scales and zero points, or a table. */
static bool is_data(const graph_node *n, uint32_t i)
{
    if (is_table(n))
        return i == 0;
    if (!is_quantised_arithmetic(n))
        return true;
    return i == 0 || (i == 2 && !has_axis(n)); /* of sums and products, whose scales are single numbers */
}

static bool scale_fits(const graph_node *n, uint32_t i, const graph_value *y)
{
    const type *t = &n->inputs[i]->type;
    if (shape_count(t->shape) == 1 || is_table(n))
        return true;
    return has_axis(n) && t->shape.rank == 1 && axis_is_channels(n, y) &&
           (!graph_attr(n, "block_size") || graph_attr_int(n, "block_size") == 0);
}

static bool emit_elementwise(converter *v, graph_node *n, graph_value *const *in)
{
    attr *attrs = arena_array(&v->t.scratch, attr, n->n_attrs + 1);
    /* What C has a function for that does the same in integers; by scales of f64 there is none. */
    bool scales = strcmp(n->op->name, "qnn.requantize") == 0 && dtype_bits(n->outputs[0]->type.dt) == 8 &&
                  n->inputs[1]->type.dt == DT_F32 && strcmp(graph_attr_string(n, "method"), "integer") == 0;
    const attr method = attr_string(v->t.r.c, "method", "float");
    uint32_t count = 0;
    for (uint32_t i = 0; i < n->n_attrs; i++)
        if (strcmp(n->attrs[i].name, "axis") != 0)
            attrs[count++] = scales && strcmp(n->attrs[i].name, "method") == 0 ? method : n->attrs[i];
    if (has_axis(n))
        attrs[count++] = attr_int(v->t.r.c, "axis", 3);
    return twins_set(&v->t, n, rewrite_emit(&v->t.r, n->op->name, n->n_inputs, in, count, attrs, n->loc));
}

static bool convert_elementwise(converter *v, graph_node *n, bool *done)
{
    graph_value *in[MAX_OPERANDS] = {NULL}, *y = n->outputs[0];
    bool any = false, ok = n->n_inputs <= MAX_OPERANDS && (is_image(y) || is_matrix(y));
    for (uint32_t i = 0; ok && i < n->n_inputs; i++)
        any |= n->inputs[i] && is_data(n, i) && twins_of(&v->t, n->inputs[i])->other &&
               n->inputs[i]->type.shape.rank == y->type.shape.rank;
    for (uint32_t i = 0; ok && any && i < n->n_inputs; i++) {
        if (!n->inputs[i])
            continue;
        in[i] = is_data(n, i) ? operand(v, n->inputs[i], y, n->loc) : twins_plain(&v->t, n->inputs[i], n->loc);
        ok = in[i] && (is_data(n, i) || scale_fits(n, i, y));
    }
    if (!ok || !any)
        return !v->t.r.failed;
    *done = true;
    if (n->n_inputs == 2)
        join_bias(v, n, in);
    return emit_elementwise(v, n, in);
}

/* --- pools --- */

/* The attributes of n with another data_layout. */
static attr *with_layout(converter *v, const graph_node *n, const char *layout, uint32_t *out_count)
{
    attr *attrs = arena_array(&v->t.scratch, attr, n->n_attrs + 1);
    uint32_t count = 0;
    for (uint32_t i = 0; i < n->n_attrs; i++)
        if (strcmp(n->attrs[i].name, "data_layout") != 0)
            attrs[count++] = n->attrs[i];
    attrs[count++] = attr_string(v->t.r.c, "data_layout", layout);
    *out_count = count;
    return attrs;
}

/* Channels last are one block of all channels, behind an axis of one: the same bytes. */
static bool convert_pool(converter *v, graph_node *n, bool *done)
{
    graph_value *x = n->inputs[0], *y = n->outputs[0], *in[MAX_OPERANDS] = {NULL};
    graph_value *last = is_image(x) && is_image(y) && n->n_inputs <= MAX_OPERANDS ? twins_of(&v->t, x)->other : NULL;
    uint32_t count = 0;
    if (!last)
        return true;
    *done = true;
    int64_t channels = extent(x, 1), ends[4] = {extent(y, 0), extent(y, 2), extent(y, 3), channels};
    const char *layout = arena_printf(&v->t.r.c->mem, "NCHW%lldc", (long long)channels);
    const attr *attrs = with_layout(v, n, layout, &count);
    in[0] = reshaped(v, last, 5, (int64_t[]){extent(x, 0), 1, extent(x, 2), extent(x, 3), channels}, n->loc);
    for (uint32_t i = 1; i < n->n_inputs; i++)
        in[i] = n->inputs[i] ? twins_plain(&v->t, n->inputs[i], n->loc) : NULL;
    graph_value *pooled = in[0] ? rewrite_emit(&v->t.r, n->op->name, n->n_inputs, in, count, attrs, n->loc) : NULL;
    return pooled && twins_set(&v->t, n, reshaped(v, pooled, 4, ends, n->loc));
}

static bool is_pool(const char *op)
{
    static const char *const names[] = {"qnn.avg_pool2d", "qnn.global_avg_pool2d", "nn.max_pool2d", "nn.avg_pool2d"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(op, names[i]) == 0)
            return true;
    return false;
}

/* A transpose from channels last: what it is of has the other form. */
static void kept(twins *t, const graph_node *n)
{
    static const int64_t forth[4] = {0, 3, 1, 2};
    const int64_t *axes = NULL;
    if (strcmp(n->op->name, "transpose") != 0 || !is_image(n->inputs[0]) ||
        graph_attr_ints(n, "perm", &axes) != 4 || memcmp(axes, forth, sizeof forth) != 0)
        return;
    graph_value *x = twins_of(t, n->inputs[0])->plain;
    if (x)
        twins_of(t, n->outputs[0])->other = x;
}

/* By kind of operator; operands of others are as the model has them. */
static bool convert(twins *t, graph_node *n, bool *done)
{
    converter *v = (converter *)t;
    const char *op = n->op->name;
    if (n->n_outputs != 1 || n->op->effect != EFFECT_PURE)
        return true;
    if (strcmp(op, "qnn.conv2d") == 0)
        return convert_conv(v, n, done);
    if (strcmp(op, "qnn.matmul") == 0)
        return convert_matmul(v, n, done);
    if (is_pool(op))
        return convert_pool(v, n, done);
    bool shapeless = !(n->op->flags & (OPF_SHAPE_ARGS | OPF_MOVES)) && n->op->cls <= CLASS_BROADCAST;
    if (shapeless && (is_quantised_arithmetic(n) || n->op->cls == CLASS_ELEMENTWISE || n->op->n_attrs == 0))
        return convert_elementwise(v, n, done);
    return true;
}

/* Why a sum of quantised numbers has no channels last; NULL: n is none. */
static const char *why_plain(converter *v, const graph_node *n)
{
    const char *op = n->op->name;
    const bool is_product = strcmp(op, "qnn.matmul") == 0, is_conv = strcmp(op, "qnn.conv2d") == 0;
    if (strcmp(op, "qnn.matmul_nibbles") == 0 && (v->lanes || (v->words && n->inputs[0]->type.dt == DT_I8)))
        return "weights of 4 bits in blocks are multiplied one by one";
    if (!is_product && strncmp(op, "qnn.conv", strlen("qnn.conv")) != 0)
        return NULL;
    if (strcmp(op, "qnn.conv2d_rows") == 0)
        return NULL;
    if (strstr(op, "_transpose"))
        return "transposed convolutions have no kernel with channels last";
    if (!is_product && !is_conv)
        return "only convolutions over two axes have a kernel with channels last";
    if (is_product && graph_attr_int(n, "wide") != 0)
        return NULL;
    if (!graph_constant(n->inputs[1]))
        return "its weights are not constants";
    if (dtype_bits(n->inputs[1]->type.dt) != 8)
        return "its weights have 16 bits";
    if (is_conv ? !is_image(n->inputs[0]) : !is_matrix(n->inputs[0]))
        return "its extents are open, or not those of an image or a matrix";
    const bool turned = is_product && graph_attr_int(n, "transpose_b") != 0;
    if (!byte_weights(v, n, is_conv ? 4 : 2, is_product && !turned ? 1 : 0))
        return "weights minus their zero points do not fit into 8 bits; quantize weights symmetrically";
    const int64_t groups = is_conv ? graph_attr_int(n, "groups") : 1;
    if (groups > 1 && groups != extent(n->inputs[0], 1))
        return "its groups are neither one nor a channel each";
    return "the layer has a form that kernels with channels last do not take";
}

#define FEW_ROWS 4 /* for which widening the right operand takes longer than it saves */
#define MOST_PAIRED (INT32_MAX / (255 * 255)) /* products of two bytes less their zero points that 32 bits hold */

static bool is_known_matrix(const type *t)
{
    return t->shape.rank >= 2 && shape_is_static(t->shape);
}

/* Products of two operands that only the run knows: by pairs of 16 bits, where the processor has those. Vectors of
 * bytes would want both operands in rows, and the zero point taken out of the sums. */
static bool is_product_of_pairs(const graph_node *n)
{
    if (strcmp(n->op->name, "qnn.matmul") != 0 || graph_constant(n->inputs[1]) || graph_constant(n->inputs[0]))
        return false;
    const type *a = &n->inputs[0]->type, *b = &n->inputs[1]->type, *y = &n->outputs[0]->type;
    if (!is_known_matrix(a) || !is_known_matrix(b) || !is_known_matrix(y))
        return false;
    const uint32_t along = (uint32_t)a->shape.rank - (graph_attr_int(n, "transpose_a") ? 2 : 1);
    bool fits = dtype_bits(a->dt) == 8 && dtype_bits(b->dt) == 8 && y->dt == DT_I32 &&
                extent(n->outputs[0], (uint32_t)y->shape.rank - 2) >= FEW_ROWS &&
                extent(n->inputs[0], along) <= MOST_PAIRED;
    for (uint32_t i = 2; i < n->n_inputs; i++)
        fits = fits && (!n->inputs[i] || shape_count(n->inputs[i]->type.shape) == 1);
    return fits;
}

/* What x is the transpose of, the last two axes for each other; NULL: it is none. */
static graph_value *turned(const graph_value *x)
{
    const int64_t *perm = NULL;
    const int32_t rank = x->type.shape.rank;
    if (!rewrite_is_op(x, "transpose") || graph_attr_ints(x->def, "perm", &perm) != (uint32_t)rank)
        return NULL;
    for (int32_t i = 0; i < rank; i++)
        if (perm[i] != (i < rank - 2 ? i : 2 * rank - 3 - i))
            return NULL;
    return x->def->inputs[0];
}

static void mark_products(converter *v)
{
    compiler *c = v->t.r.c;
    graph_func *f = v->t.r.f;
    bool found = false;
    for (uint32_t i = 0; i < f->nodes.len; i++) {
        graph_node *n = f->nodes.data[i];
        if (!is_product_of_pairs(n))
            continue;
        graph_value *b = turned(n->inputs[1]);
        if (b) { /* rows of it are what is multiplied */
            n->inputs[1] = b;
            graph_set_attr(f, n, attr_int(c, "transpose_b", graph_attr_int(n, "transpose_b") == 0));
            found = true;
        }
        graph_set_attr(f, n, attr_int(c, "wide", 1));
    }
    if (found)
        graph_remove_dead(f);
}

/* What is several times as slow as it might be is told of. */
static void note_plain(converter *v)
{
    compiler *c = v->t.r.c;
    graph_func *f = v->t.r.f;
    for (uint32_t i = 0; i < f->nodes.len; i++) {
        const graph_node *n = f->nodes.data[i];
        const char *why = why_plain(v, n);
        if (!why)
            continue;
        const graph_note note = {"convert-rows", n->op->name, n->outputs[0]->name,
                                 arena_printf(&c->mem, QNN_NOTE_PLAIN ": %s", why), n->loc};
        vec_push(&c->mem, &f->module->notes, note);
    }
}

static bool run(compiler *c, graph_func *f, bool words, bool lanes)
{
    converter v = {.t = {.back = back, .convert = convert, .kept = kept}, .words = words, .lanes = lanes};
    twins_begin(&v.t, c, f);
    ptr_map_init(&v.folded, &v.t.scratch);
    bool ok = twins_end(&v.t, twins_walk(&v.t));
    if (lanes)
        graph_remove_dead(f);
    if (words)
        mark_products(&v);
    note_plain(&v);
    qnn_note_all_bytes(c, f, "no kernel with channels last fits the layer");
    return ok;
}

bool graph_pass_rows_takes(const target *t)
{
    return t->vector_bytes == 0 && t->address_bits == 32;
}

bool graph_pass_rows(compiler *c, graph_module *m, const pass_options *o)
{
    bool ok = true, small = graph_pass_rows_takes(o->target);
    for (uint32_t i = 0; i < m->funcs.len && small; i++)
        if (!graph_is_fixed(m->funcs.data[i]))
            ok &= run(c, m->funcs.data[i], (o->target->features & TARGET_DSP) != 0,
                      (o->target->features & TARGET_MVE) != 0);
    return ok;
}
