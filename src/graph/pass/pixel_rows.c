/* SPDX-License-Identifier: Apache-2.0 */
/* A first layer has few planes, fewer than instructions for products of integers take side by side. If the pixels of a
 * row are stored with all their channels together, a row of the window is one run of numbers. The convolution then has
 * a single plane, which is wider by the number of channels, and its stride along the row is the size of a pixel. The
 * border is added first. A picture that a model has in that form already is read as it is. */
#include "graph/pass/pixel_rows.h"
#include "graph/op/nn.h"

#include <string.h>

typedef struct sizes {
    int64_t images, channels, height, width, outs, out_width, kernel[2];
    int64_t strides[2], dilations[2], pads[4]; /* pads: begin, then end */
} sizes;

static void read_list(const graph_node *n, const char *name, uint32_t len, int64_t *out)
{
    const int64_t *list = NULL;
    uint32_t have = graph_attr_ints(n, name, &list);
    for (uint32_t i = 0; i < len && i < have; i++)
        out[i] = list[i];
}

static bool read_sizes(const graph_node *n, sizes *z)
{
    const tensor_data *w = graph_dense_constant(n->inputs[1], 4);
    const shape x = n->inputs[0]->type.shape, y = n->outputs[0]->type.shape;
    *z = (sizes){.strides = {1, 1}, .dilations = {1, 1}};
    if (!w || (w->dt != DT_I8 && w->dt != DT_I16) || x.rank != 4 || y.rank != 4 || graph_attr_int(n, "groups") != 1)
        return false;
    if (!dim_is_const(x.dims[0], &z->images) || !dim_is_const(x.dims[1], &z->channels) ||
        !dim_is_const(x.dims[2], &z->height) || !dim_is_const(x.dims[3], &z->width) ||
        !dim_is_const(y.dims[3], &z->out_width))
        return false;
    z->outs = w->dims[0];
    z->kernel[0] = w->dims[2];
    z->kernel[1] = w->dims[3];
    read_list(n, "strides", 2, z->strides);
    read_list(n, "dilations", 2, z->dilations);
    read_list(n, "pads", 4, z->pads);
    return z->images > 0 && w->dims[1] == z->channels && z->dilations[1] == 1;
}

static int64_t filled(int64_t n, int64_t piece)
{
    return (n + piece - 1) / piece * piece;
}

bool pixel_rows_pay(const graph_node *n, int64_t granule, int64_t block)
{
    sizes z;
    if (!read_sizes(n, &z))
        return false;
    const int64_t rows = filled(z.kernel[1] * z.channels, granule), blocks = z.kernel[1] * block;
    return rows < blocks || (rows == blocks && z.channels < block); /* C compilers move three planes faster than four */
}

/* What a layer reads, without what only moves it: a border of one number, and a transpose from channels last, which
 * pictures of some models have. */
typedef struct picture {
    graph_value *x, *given; /* given: with all that moves it */
    const tensor_data *fill; /* of the border; NULL: zeros */
    int64_t pads[4];         /* as in sizes */
    bool last;               /* the channels are behind the columns */
} picture;

/* The pads of x, where it is padded by one constant along known axes; NULL: it is not. */
static const tensor_data *constant_pads(const graph_value *x)
{
    const graph_node *n = x->def;
    if (!rewrite_is_op(x, "nn.pad") || graph_operand(n, 3) || strcmp(graph_attr_string(n, "mode"), "constant") != 0)
        return NULL;
    const graph_value *fill = graph_operand(n, 2);
    const tensor_data *pads = graph_constant(n->inputs[1]);
    return pads && pads->count == 8 && (!fill || graph_constant(fill)) ? pads : NULL;
}

/* The border that x has, around rows and columns alone, which is the layer's own then. */
static bool read_border(const sizes *z, picture *p)
{
    static const int64_t none[4] = {0};
    const graph_node *n = p->x->def;
    const tensor_data *pads = constant_pads(p->x);
    if (!pads || memcmp(z->pads, none, sizeof none) != 0)
        return false;
    int64_t all[8];
    for (int i = 0; i < 8; i++) {
        const bool of_plane = i % 4 >= 2; /* pads in front of all axes, then behind them */
        all[i] = tensor_get_i64(pads, i);
        if (of_plane ? all[i] < 0 : all[i] != 0)
            return false;
    }
    p->fill = graph_constant(graph_operand(n, 2));
    memcpy(p->pads, all + 2, 2 * sizeof *all);
    memcpy(p->pads + 2, all + 6, 2 * sizeof *all);
    p->x = n->inputs[0];
    return true;
}

static picture picture_of(const sizes *z, graph_value *x)
{
    static const int64_t second[4] = {0, 3, 1, 2};
    const int64_t *perm = NULL;
    picture p = {.x = x, .given = x};
    memcpy(p.pads, z->pads, sizeof p.pads);
    (void)read_border(z, &p);
    if (rewrite_is_op(p.x, "transpose") && graph_attr_ints(p.x->def, "perm", &perm) == 4 &&
        memcmp(perm, second, sizeof second) == 0) {
        p.last = true;
        p.x = p.x->def->inputs[0];
    }
    return p;
}

/* The picture with its border, and with columns behind it that the last granule of the last window reads. */
static graph_value *bordered(rewriter *r, const graph_node *n, const sizes *z, int64_t reach, const picture *p)
{
    int64_t have = z->pads[1] + z->width + z->pads[3],
            want = filled((z->out_width - 1) * z->strides[1] * z->channels + reach, z->channels) / z->channels;
    int64_t more = want > have ? want - have : 0;
    const uint32_t row = p->last ? 1 : 2;
    int64_t all[8] = {0};
    if (more == 0 && !p->last && p->x != p->given) /* it has the border that is wanted */
        return p->given;
    memcpy(all + row, p->pads, 2 * sizeof *all);
    memcpy(all + 4 + row, p->pads + 2, 2 * sizeof *all);
    all[4 + row + 1] += more;
    for (uint32_t i = 0; i < 8; i++)
        if (all[i] != 0)
            return rewrite_pad(r, p->x, all, p->fill, n->loc);
    return p->x;
}

static graph_value *in_rows(rewriter *r, const graph_node *n, const sizes *z, graph_value *x, bool last)
{
    static const int64_t order[4] = {0, 2, 3, 1};
    compiler *c = r->c;
    int64_t height = 0, width = 0;
    attr perm = attr_ints(c, "perm", 4, order);
    const uint32_t row = last ? 1 : 2;
    graph_value *y = x && z->channels > 1 && !last ? rewrite_emit(r, "transpose", 1, &x, 1, &perm, n->loc) : x;
    if (!y || !dim_is_const(x->type.shape.dims[row], &height) || !dim_is_const(x->type.shape.dims[row + 1], &width))
        return NULL;
    const int64_t dims[4] = {z->images, 1, height, width * z->channels};
    graph_value *in[2] = {y, rewrite_constant(r, tensor_from_i64s(c, 4, dims), "shape", n->loc)};
    return rewrite_emit(r, "reshape", 2, in, 0, NULL, n->loc);
}

/* [O, 1, kh, reach]: a row of the window, pixel by pixel, and zeros. */
static const tensor_data *weights_in_rows(compiler *c, const tensor_data *w, const sizes *z, int64_t reach)
{
    const int64_t dims[4] = {z->outs, 1, z->kernel[0], reach};
    const size_t count = (size_t)(z->outs * z->kernel[0] * reach);
    const size_t size = dtype_bytes(w->dt);
    uint8_t *out = arena_alloc_array(&c->mem, count, size, size); /* zeros */
    for (int64_t i = 0; i < w->count; i++) {
        int64_t col = i % z->kernel[1], row = i / z->kernel[1] % z->kernel[0],
                channel = i / (z->kernel[1] * z->kernel[0]) % z->channels,
                o = i / (z->kernel[1] * z->kernel[0] * z->channels);
        const int64_t at = (o * z->kernel[0] + row) * reach + col * z->channels + channel;
        dtype_store_i64(w->dt, out + (size_t)at * size, tensor_get_i64(w, i));
    }
    return tensor_dense(c, w->dt, 4, dims, out);
}

bool pixel_rows_make(rewriter *r, const graph_node *n, graph_value *x, int64_t granule, pixel_rows *out)
{
    sizes z;
    if (!read_sizes(n, &z))
        return false;
    int64_t reach = filled(z.kernel[1] * z.channels, granule);
    *out = (pixel_rows){.strides = {z.strides[0], z.strides[1] * z.channels}, .dilations = {z.dilations[0], 1}};
    const picture p = picture_of(&z, x);
    out->data = in_rows(r, n, &z, bordered(r, n, &z, reach, &p), p.last);
    const tensor_data *w = weights_in_rows(r->c, graph_constant(n->inputs[1]), &z, reach);
    out->weights = rewrite_constant(r, w, n->inputs[1]->name, n->loc);
    return out->data && out->weights;
}
