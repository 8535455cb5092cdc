/* SPDX-License-Identifier: Apache-2.0 */
/* Importer of ImageDecoder for pictures that are not compressed: BMP of 24 bits, binary PNM (P6), TIFF of RGB in one
 * strip and Intel's order of bytes. Such a picture is a place in the file, a step from row to row, and an order of
 * colors, so that decoding is a gather; the header decides in each run. A picture of another format, or of another size
 * than the model declares, ends the run with a status. */
#include "frontend/onnx/onnx_import.h"

#include <stdio.h>
#include <string.h>

#define LEAST_BYTES 54 /* of a file: the header of BMP */
#define MOST_TAGS   32 /* of a TIFF */

typedef struct image {
    onnx_node *n;
    graph_value *x; /* the file, u8[len] */
    int64_t len, height, width;
} image;

/* A format's answer, each i32[1]: whether the file is one and fits, where row 0 is, how far it is to the next row. */
typedef struct layout {
    graph_value *fits, *base, *step;
    bool blue_first;
} layout;

static graph_value *number(const image *m, int64_t v)
{
    const int64_t one = 1;
    return onnx_reshape_ints(m->n, onnx_const_int(m->n, DT_I32, v), 1, &one);
}

static graph_value *op2(const image *m, const char *op, graph_value *a, graph_value *b)
{
    return onnx_binary(m->n, op, a, b);
}

static graph_value *is(const image *m, graph_value *v, int64_t k)
{
    return op2(m, "equal", v, number(m, k));
}

static graph_value *both(const image *m, graph_value *a, graph_value *b)
{
    return op2(m, "logical_and", a, b);
}

/* `bytes` from a known place on, the lowest first. */
static graph_value *read_at(const image *m, int64_t at, int64_t bytes)
{
    graph_value *sum = NULL;
    for (int64_t i = 0; i < bytes; i++) {
        graph_value *b = onnx_cast(m->n, onnx_slice(m->n, m->x, 0, at + i, at + i + 1), DT_I32);
        b = i ? op2(m, "multiply", b, number(m, (int64_t)1 << 8 * i)) : b;
        sum = sum ? op2(m, "add", sum, b) : b;
    }
    return sum;
}

/* Whether the file begins with this. */
static graph_value *begins(const image *m, const char *text, int64_t len)
{
    graph_value *all = NULL;
    for (int64_t i = 0; i < len; i++) {
        graph_value *same = is(m, read_at(m, i, 1), (uint8_t)text[i]);
        all = all ? both(m, all, same) : same;
    }
    return all;
}

/* Rows come from below, unless the height is negative, and are filled up to four bytes. */
static layout find_bmp(const image *m)
{
    const int64_t row = (3 * m->width + 3) / 4 * 4;
    graph_value *from = read_at(m, 10, 4), *height = read_at(m, 22, 4), *below = is(m, height, m->height), *fits;
    fits = op2(m, "logical_or", below, is(m, height, -m->height));
    fits = both(m, fits, is(m, read_at(m, 18, 4), m->width));
    fits = both(m, fits, both(m, is(m, read_at(m, 28, 2), 24), is(m, read_at(m, 30, 4), 0)));
    graph_value *last = op2(m, "add", from, number(m, (m->height - 1) * row));
    return (layout){.fits = both(m, begins(m, "BM", 2), fits), .blue_first = true,
                    .base = onnx_where(m->n, below, last, from),
                    .step = onnx_where(m->n, below, number(m, -row), number(m, row))};
}

/* "P6", the size and 255, apart by blanks; the picture is what is left. */
static layout find_pnm(const image *m)
{
    char end[64];
    const int64_t from = m->len - 3 * m->height * m->width;
    const int len = snprintf(end, sizeof end, " %lld %lld 255 ", (long long)m->width, (long long)m->height);
    graph_value *fits = begins(m, "P6", 2);
    if (from < len + 2)
        fits = both(m, fits, onnx_constant(m->n, tensor_scalar_i64(m->n->c, DT_BOOL, 0)));
    for (int i = 0; i < len && from >= len + 2; i++) {
        graph_value *b = read_at(m, from - len + i, 1);
        fits = both(m, fits, end[i] == ' ' ? op2(m, "less_equal", b, number(m, ' ')) : is(m, b, end[i]));
    }
    return (layout){.fits = fits, .base = number(m, from), .step = number(m, 3 * m->width)};
}

/* i32[MOST_TAGS]: the number in `bytes` of each entry of the directory. */
static graph_value *entries(const image *m, graph_value *directory, int64_t at, int64_t bytes)
{
    onnx_node *n = m->n;
    const int64_t many = MOST_TAGS;
    graph_value *sum = NULL;
    for (int64_t i = 0; i < bytes; i++) {
        int32_t *k = arena_array(&n->c->mem, int32_t, MOST_TAGS);
        for (int32_t e = 0; e < MOST_TAGS; e++)
            k[e] = (int32_t)(2 + 12 * e + at + i);
        graph_value *place = op2(m, "add", directory, onnx_constant(n, tensor_dense(n->c, DT_I32, 1, &many, k)));
        place = op2(m, "minimum", op2(m, "maximum", place, number(m, 0)), number(m, m->len - 1));
        attr axis = attr_int(n->c, "axis", 0);
        graph_value *b = onnx_cast(n, onnx_emit(n, ONNX_ARGS("take", 1, &axis, m->x, place)), DT_I32);
        b = i ? op2(m, "multiply", b, number(m, (int64_t)1 << 8 * i)) : b;
        sum = sum ? op2(m, "add", sum, b) : b;
    }
    return sum;
}

typedef struct tags {
    graph_value *here, *tag, *count, *value;
} tags;

static graph_value *tag_of(const image *m, const tags *t, int64_t tag, graph_value *of)
{
    const int64_t axis = 0;
    graph_value *hit = both(m, t->here, is(m, t->tag, tag));
    return onnx_reduce(m->n, "sum", onnx_where(m->n, hit, of, number(m, 0)), 1, &axis, true);
}

static layout find_tiff(const image *m)
{
    onnx_node *n = m->n;
    const int64_t many = MOST_TAGS;
    int32_t *k = arena_array(&n->c->mem, int32_t, MOST_TAGS);
    for (int32_t i = 0; i < MOST_TAGS; i++)
        k[i] = i;
    graph_value *directory = read_at(m, 4, 4), *before = op2(m, "subtract", directory, number(m, 2));
    graph_value *count = onnx_slice(n, entries(m, before, 0, 2), 0, 0, 1);
    tags t = {.tag = entries(m, directory, 0, 2), .count = entries(m, directory, 4, 4),
              .value = entries(m, directory, 8, 4)};
    t.here = op2(m, "less", onnx_constant(n, tensor_dense(n->c, DT_I32, 1, &many, k)), count);
    graph_value *fits = both(m, begins(m, "II*\0", 4), is(m, tag_of(m, &t, 256, t.value), m->width));
    fits = both(m, fits, is(m, tag_of(m, &t, 257, t.value), m->height));
    fits = both(m, fits, is(m, tag_of(m, &t, 259, t.value), 1)); /* not compressed */
    fits = both(m, fits, is(m, tag_of(m, &t, 262, t.value), 2)); /* RGB */
    fits = both(m, fits, is(m, tag_of(m, &t, 273, t.count), 1)); /* one strip */
    fits = both(m, fits, is(m, tag_of(m, &t, 277, t.value), 3));
    return (layout){.fits = fits, .base = tag_of(m, &t, 273, t.value), .step = number(m, 3 * m->width)};
}

/* i32[height, 1, 1], [1, width, 1] or [1, 1, 3]: 0, 1, 2, ... times `by`, behind `from`. */
static graph_value *ramp(const image *m, uint32_t axis, int64_t extent, int64_t from, int64_t by)
{
    int64_t d[3] = {1, 1, 1};
    int32_t *k = arena_array(&m->n->c->mem, int32_t, (uint32_t)extent);
    for (int64_t i = 0; i < extent; i++)
        k[i] = (int32_t)(from + by * i);
    d[axis] = extent;
    return onnx_constant(m->n, tensor_dense(m->n->c, DT_I32, 3, d, k));
}

static graph_value *decode(const image *m, bool blue_first)
{
    onnx_node *n = m->n;
    const layout formats[3] = {find_bmp(m), find_pnm(m), find_tiff(m)};
    graph_value *base = number(m, 0), *step = base, *any = NULL;
    graph_value *colors = ramp(m, 2, 3, 0, 1), *back = ramp(m, 2, 3, 2, -1);
    graph_value *swap = onnx_constant(n, tensor_scalar_i64(n->c, DT_BOOL, blue_first));
    for (uint32_t i = 0; i < 3; i++) {
        const layout *f = &formats[i];
        base = onnx_where(n, f->fits, f->base, base);
        step = onnx_where(n, f->fits, f->step, step);
        swap = f->blue_first ? op2(m, "not_equal", swap, f->fits) : swap;
        any = any ? op2(m, "logical_or", any, f->fits) : f->fits;
    }
    const int64_t yes = 1;
    base = onnx_expect(n, base, onnx_cast(n, any, DT_I64), 1, 1, &yes);
    graph_value *at = op2(m, "add", base, op2(m, "multiply", ramp(m, 0, m->height, 0, 1), step));
    at = op2(m, "add", at, ramp(m, 1, m->width, 0, 3));
    at = op2(m, "add", at, onnx_where(n, swap, back, colors));
    attr axis = attr_int(n->c, "axis", 0);
    return onnx_result(n, 0, ONNX_ARGS("take", 1, &axis, m->x, at));
}

bool onnx_op_image_decoder(onnx_node *n)
{
    image m = {.n = n, .x = onnx_in(n, 0)};
    const char *pixels = onnx_attr_string(n, "pixel_format", "RGB");
    const type *t = onnx_declared(n, 0);
    int64_t d[TYPE_MAX_RANK] = {0};
    if (onnx_rank(m.x) != 1 || onnx_dtype(m.x) != DT_U8)
        return onnx_fail(n, DIAG_TYPE, "the file must be a vector of bytes");
    m.len = onnx_static_dim(n, m.x, 0);
    if (n->failed || m.len < LEAST_BYTES)
        return !n->failed && onnx_fail(n, DIAG_TYPE, "%lld bytes are no file of a picture", (long long)m.len);
    if (!t || t->shape.rank != 3 || !shape_get(t->shape, d) || d[2] != 3)
        return onnx_fail(n, DIAG_UNSUPPORTED, "the result must be declared with its size and three colors");
    if (strcmp(pixels, "RGB") != 0 && strcmp(pixels, "BGR") != 0)
        return onnx_fail(n, DIAG_UNSUPPORTED, "pixel_format '%.40s' is not supported yet", pixels);
    m.height = d[0];
    m.width = d[1];
    if (m.height < 1 || m.width < 1 || m.height > 1 << 14 || m.width > 1 << 14)
        return onnx_fail(n, DIAG_UNSUPPORTED, "a picture of %lld by %lld", (long long)m.width, (long long)m.height);
    (void)decode(&m, strcmp(pixels, "BGR") == 0);
    return !n->failed;
}
