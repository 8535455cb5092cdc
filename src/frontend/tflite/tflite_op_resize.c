/* SPDX-License-Identifier: Apache-2.0 */
/* Images at other sizes. Where each result comes from is known while reading, in the arithmetic of the kernels, which
 * is not that of ONNX: so rows and columns are taken by lists of indices, and weighted by lists of factors. */
#include "frontend/tflite/tflite_import.h"

#include <inttypes.h>
#include <math.h>

typedef struct sampler {
    tflite_node *n;
    graph_value *x;
    bool image;
    bool corners, half; /* align_corners, half_pixel_centers */
    int64_t in[2], out[2];
} sampler;

static bool begin(tflite_node *n, bool corners, bool half, sampler *s)
{
    int64_t size[TYPE_MAX_RANK * 2];
    uint32_t count;
    *s = (sampler){.n = n, .corners = corners, .half = half};
    if (!tflite_in_one_form(n, 1, &s->x, &s->image) || !tflite_ints(n, 1, "the size", size, &count))
        return false;
    if (count != 2 || size[0] < 1 || size[1] < 1 || size[0] > 1 << 20 || size[1] > 1 << 20)
        return tflite_fail(n, DIAG_FORMAT, "the size is not two extents above 0");
    if (s->x->type.shape.rank != 4)
        return tflite_fail(n, DIAG_TYPE, "its data has %d dimensions; four are needed", s->x->type.shape.rank);
    for (uint32_t i = 0; i < 2; i++) {
        s->out[i] = size[i];
        if (!tflite_extent(n, s->x, s->image ? 2 + i : 1 + i, &s->in[i]))
            return false;
        if (s->in[i] < 1 || s->in[i] > 1 << 20)
            return tflite_fail(n, DIAG_UNSUPPORTED, "an extent of its data is 0, or too large");
    }
    return true;
}

/* Rows (i = 0) or columns of x at those indices. */
static graph_value *taken(const sampler *s, uint32_t i, graph_value *x, const int32_t *at)
{
    const int64_t count = s->out[i];
    const attr axis = attr_int(s->n->c, "axis", s->image ? 2 + i : 1 + i);
    graph_value *in[2] = {x, tflite_const(s->n, tensor_dense(s->n->c, DT_I32, 1, &count, at), "places")};
    return tflite_emit(s->n, "take", 2, in, 1, &axis);
}

/* Factors of rows or columns, so that they broadcast to the result. */
static graph_value *factors(const sampler *s, uint32_t i, dtype dt, const void *v)
{
    int64_t dims[3] = {1, 1, 1};
    const uint32_t rank = s->image ? 2 - i : 3 - i;
    dims[0] = s->out[i];
    return tflite_const(s->n, tensor_dense(s->n->c, dt, rank, dims, v), "factors");
}

static float step_of(const sampler *s, uint32_t i)
{
    const bool corners = s->corners && s->out[i] > 1;
    return (float)(corners ? s->in[i] - 1 : s->in[i]) / (float)(corners ? s->out[i] - 1 : s->out[i]);
}

bool tflite_op_resize_nearest(tflite_node *n)
{
    const tfl_resize_nearest_options *o = n->options;
    sampler s;
    if (!begin(n, o->align_corners, o->half_pixel_centers, &s))
        return false;
    graph_value *y = s.x;
    for (uint32_t i = 0; i < 2; i++) {
        int32_t *at = arena_array(&n->c->mem, int32_t, (size_t)s.out[i]);
        const float step = step_of(&s, i);
        for (int64_t k = 0; k < s.out[i]; k++) {
            const volatile float place = ((float)k + (s.half ? 0.5f : 0.0f)) * step;
            const int64_t near = (int64_t)(s.corners ? roundf(place) : floorf(place));
            at[k] = (int32_t)(near < 0 ? 0 : near >= s.in[i] ? s.in[i] - 1 : near);
        }
        y = taken(&s, i, y, at);
    }
    return tflite_result_as(n, 0, y, s.image);
}

/* For each result of rows or columns: the two it lies between, and the parts that they have. */
typedef struct between {
    int32_t *low, *high;
    void *of_low, *of_high; /* f32, or i32 in 1024ths */
} between;

static between make_between(const sampler *s, uint32_t i, dtype dt)
{
    compiler *c = s->n->c;
    const size_t count = (size_t)s->out[i];
    between b = {arena_array(&c->mem, int32_t, count), arena_array(&c->mem, int32_t, count),
                 arena_array(&c->mem, int32_t, count), arena_array(&c->mem, int32_t, count)};
    const int64_t in = s->in[i], out = s->out[i];
    const bool corners = s->corners && out > 1;
    const int64_t fixed = corners ? (1024 * (in - 1) + (out - 1) / 2) / (out - 1) : (1024 * in + out / 2) / out;
    const float step = step_of(s, i);
    for (int64_t k = 0; k < out; k++) {
        int64_t low, high;
        if (dt == DT_F32) {
            const volatile float scaled = (float)k * step, middle = ((float)k + 0.5f) * step;
            const volatile float place = s->half ? middle - 0.5f : scaled;
            low = (int64_t)floorf(place);
            high = (int64_t)ceilf(place);
            low = low < 0 ? 0 : low;
            high = high >= in ? in - 1 : high;
            const volatile float part = place - (float)low, rest = 1.0f - part;
            ((float *)b.of_high)[k] = part;
            ((float *)b.of_low)[k] = rest;
        } else {
            const int64_t place = k * fixed + (s->half ? fixed / 2 - 512 : 0);
            low = place / 1024 < 0 ? 0 : place / 1024;
            high = (place + 1023) / 1024;
            high = high >= in ? in - 1 : high;
            ((int32_t *)b.of_high)[k] = (int32_t)(place - 1024 * low);
            ((int32_t *)b.of_low)[k] = (int32_t)(1024 - (place - 1024 * low));
        }
        low = low >= in ? in - 1 : low;
        high = high < 0 ? 0 : high;
        b.low[k] = (int32_t)low;
        b.high[k] = (int32_t)high;
    }
    return b;
}

bool tflite_op_resize_bilinear(tflite_node *n)
{
    const tfl_resize_bilinear_options *o = n->options;
    sampler s;
    if (o->align_corners && o->half_pixel_centers)
        return tflite_fail(n, DIAG_FORMAT, "align_corners and half_pixel_centers exclude each other");
    if (!begin(n, o->align_corners, o->half_pixel_centers, &s))
        return false;
    const dtype dt = tflite_operand(n, 0)->type.dt, by = dt == DT_I8 || dt == DT_I16 ? DT_I32 : DT_F32;
    const dtype wide = dt == DT_I16 ? DT_I64 : by; /* 16 bits by two factors of 11 */
    const between rows = make_between(&s, 0, by), columns = make_between(&s, 1, by);
    const int32_t *const row_at[2] = {rows.low, rows.high}, *const column_at[2] = {columns.low, columns.high};
    void *const row_by[2] = {rows.of_low, rows.of_high}, *const column_by[2] = {columns.of_low, columns.of_high};
    graph_value *sum = NULL;
    for (uint32_t i = 0; i < 4; i++) { /* the rows turn first, as in the kernels of floats */
        graph_value *part = taken(&s, 1, taken(&s, 0, s.x, row_at[i & 1]), column_at[i >> 1]);
        part = tflite_cast(n, part, wide);
        part = tflite_binary(n, "multiply", part, tflite_cast(n, factors(&s, 0, by, row_by[i & 1]), wide));
        part = tflite_binary(n, "multiply", part, tflite_cast(n, factors(&s, 1, by, column_by[i >> 1]), wide));
        sum = sum ? tflite_binary(n, "add", sum, part) : part;
    }
    if (by == DT_I32) { /* halves away from 0 */
        graph_value *half = tflite_number(n, wide, 1 << 19), *below = tflite_unary(n, "negative", half);
        graph_value *in[3] = {tflite_binary(n, "greater", sum, tflite_number(n, wide, 0)), half, below};
        sum = tflite_binary(n, "add", sum, tflite_emit(n, "where", 3, in, 0, NULL));
        sum = tflite_binary(n, "divide", sum, tflite_number(n, wide, 1 << 20));
    } else if (dt == DT_U8) {
        sum = tflite_binary(n, "add", sum, tflite_number(n, DT_F32, 0.5));
    }
    return tflite_result_as(n, 0, tflite_cast(n, sum, dt), s.image);
}
