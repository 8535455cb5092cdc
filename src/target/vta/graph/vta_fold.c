/* SPDX-License-Identifier: Apache-2.0 */
/* vta-fold: a convolution with few channels leaves most of the accelerator's lanes empty. So rows, columns or both of
 * its kernel become channels. The CPU makes the image anyway, and puts what a window reads side by side. The weights
 * are constants in the same order. Each sum has the same products, so every bit stays the same. The work and the loads
 * of the device decide whether the pass is done. */
#include "base/ptr_map.h"
#include "graph/op.h"
#include "graph/pass/offload.h"
#include "graph/pass/rewrite.h"
#include "target/vta/graph/vta_layer.h"
#include "target/vta/graph/vta_passes.h"
#include "target/vta/vta_text.h"

#include <math.h>
#include <string.h>

enum { ROWS = 1, COLUMNS = 2, CHOICES = 4 }; /* what becomes channels: any of both */

typedef struct folding {
    rewriter r;
    graph_node *conv;
    vta_layer l;
    int64_t in[4], out[4]; /* images, channels, rows, columns */
    src_loc loc;
} folding;

/* --- the choice --- */

static int64_t blocks(int64_t extent, int64_t block)
{
    return (extent + block - 1) / block;
}

/* Cycles of the tensor products, and those in which inputs and weights arrive once; what follows the sums and the
 * results are the same whatever is folded. An estimate, so a float, which no image is too large for. */
static double cost(const folding *f, int what)
{
    const vta_geometry g = vta_layer_device(f->r.c);
    vta_target board = {.bus_bits = 64};
    int64_t channels = f->in[1], taps = 1; /* of the weights, which are in memory */
    double area = 1;
    (void)vta_target_find(vta_text_config(f->r.c)->target, &board);
    for (int i = 0; i < 2; i++) {
        const bool folded = what & (1 << i);
        channels *= folded ? f->l.kernel[i] : 1;
        taps *= folded ? 1 : f->l.kernel[i];
        area *= (double)(folded ? f->out[2 + i] : f->in[2 + i]);
    }
    const double images = (double)blocks(f->in[0], g.batch), in = (double)blocks(channels, g.block_in);
    const double weights = in * (double)taps * (double)blocks(f->out[1], g.block_out);
    const double bytes = images * in * area * g.elem_bytes[VTA_MEM_INP] + weights * g.elem_bytes[VTA_MEM_WGT];
    return images * (double)f->out[2] * (double)f->out[3] * weights + floor(bytes * 8 / board.bus_bits);
}

/* Rows and columns of blocks that are full already bring nothing. The estimate knows nothing of tiles, so it has to
 * promise a fourth. */
static int choose(const folding *f)
{
    const int64_t block = vta_layer_device(f->r.c).block_in;
    int best = 0;
    for (int what = 1; what < CHOICES && f->in[1] % block; what++) {
        const bool idle = ((what & ROWS) && f->l.kernel[0] == 1) || ((what & COLUMNS) && f->l.kernel[1] == 1);
        const bool full = what == (ROWS | COLUMNS) && f->in[1] * f->l.kernel[1] % block == 0;
        best = !idle && !full && cost(f, what) < cost(f, best) ? what : best;
    }
    return cost(f, best) * 4 <= cost(f, 0) * 3 ? best : 0;
}

/* --- what stands for the operands --- */

/* The image with what a window reads along `axis`, 2 or 3, as channels: the first tap's first. */
static graph_value *fold_image(folding *f, graph_value *x, int64_t axis)
{
    compiler *c = f->r.c;
    const int64_t kernel = f->l.kernel[axis - 2], stride = f->l.stride[axis - 2];
    int64_t pads[8] = {0};
    graph_value **taps = arena_array(&c->mem, graph_value *, (size_t)kernel);
    pads[axis] = f->l.pads[axis - 2];
    pads[4 + axis] = f->l.pads[axis];
    if (pads[axis] || pads[4 + axis])
        x = rewrite_pad(&f->r, x, pads, NULL, f->loc);
    for (int64_t i = 0; i < kernel; i++) {
        const int64_t to = i + (f->out[axis] - 1) * stride + 1;
        if (!(taps[i] = x ? rewrite_slice(&f->r, x, 1, &i, &to, &axis, &stride, f->loc) : NULL))
            return NULL;
    }
    attr channels = attr_int(c, "axis", 1);
    return rewrite_emit(&f->r, "concatenate", (uint32_t)kernel, taps, 1, &channels, f->loc);
}

/* The weights in the same order; a constant. */
static graph_value *fold_weights(folding *f, int what)
{
    static const int64_t orders[CHOICES][4] = {
        [ROWS] = {0, 2, 1, 3}, [COLUMNS] = {0, 3, 1, 2}, [ROWS | COLUMNS] = {0, 2, 3, 1}};
    compiler *c = f->r.c;
    int64_t dims[4] = {f->out[1], f->in[1], f->l.kernel[0], f->l.kernel[1]};
    attr perm = attr_ints(c, "perm", 4, orders[what]);
    graph_value *w = rewrite_emit(&f->r, "transpose", 1, &f->l.weights, 1, &perm, f->loc);
    for (int i = 0; i < 2; i++)
        if (what & (1 << i)) {
            dims[1] *= dims[2 + i];
            dims[2 + i] = 1;
        }
    dim to[4];
    for (int i = 0; i < 4; i++)
        to[i] = dim_const(c, dims[i]);
    w = w ? rewrite_reshape(&f->r, rewrite_evaluate(&f->r, w), 4, to, f->loc) : NULL;
    return rewrite_evaluate(&f->r, w);
}

/* The convolution n by another one; it stays where nobody evaluates the weights. */
static void fold_conv(folding *f, graph_node *n, int what)
{
    graph_value *w = fold_weights(f, what), *x = n->inputs[0];
    if (!w || !graph_constant(w))
        return;
    int64_t strides[2], pads[4];
    memcpy(strides, f->l.stride, sizeof strides);
    memcpy(pads, f->l.pads, sizeof pads);
    for (int i = 1; i >= 0; i--) /* columns first: their channels are the inner ones */
        if (what & (1 << i)) {
            x = x ? fold_image(f, x, 2 + i) : NULL;
            strides[i] = 1;
            pads[i] = pads[2 + i] = 0;
        }
    if (!x)
        return;
    graph_value **in = arena_copy(&f->r.c->mem, n->inputs, n->n_inputs * sizeof *in, _Alignof(graph_value *));
    in[0] = x;
    in[1] = w;
    n->inputs = in;
    graph_set_attr(f->r.f, n, attr_ints(f->r.c, "strides", 2, strides));
    graph_set_attr(f->r.f, n, attr_ints(f->r.c, "pads", 4, pads));
    f->r.changed = true;
}

/* --- the walk --- */

/* Whether VTA takes the convolution that `result` is requantised from, while the CPU makes its image. Fills f. */
static bool read_conv(folding *f, graph_value *result)
{
    vta_layer image;
    const char *why;
    return vta_layer_read(f->r.c, result, &f->l, &why) && f->l.kind == VTA_LAYER_CONV && f->l.groups == 1 &&
           graph_constant(f->l.weights) && !vta_layer_read(f->r.c, f->l.data[0], &image, &why) &&
           vta_layer_image(f->l.data[0], f->in) && vta_layer_image(f->l.anchor->outputs[0], f->out);
}

static bool fold_func(compiler *c, graph_func *func)
{
    ptr_map layers; /* an anchor -> the number of the value that its layer makes */
    VEC(graph_value *) results = {0};
    folding f = {.r = {.c = c}};
    uint32_t at;
    ptr_map_init(&layers, &c->mem);
    for (uint32_t i = 0; i < func->nodes.len; i++) {
        graph_node *n = func->nodes.data[i];
        if (strcmp(n->op->name, "qnn.requantize") != 0 || !read_conv(&f, n->outputs[0]))
            continue;
        ptr_map_set(&layers, f.l.anchor, results.len);
        vec_push(&c->mem, &results, n->outputs[0]);
    }
    if (results.len == 0)
        return true;
    rewrite_begin(&f.r, c, func);
    for (uint32_t i = 0; i < func->nodes.len; i++) {
        graph_node *n = func->nodes.data[i];
        if (ptr_map_get(&layers, n, &at) && read_conv(&f, results.data[at])) {
            f.loc = n->loc;
            const int what = choose(&f);
            if (what)
                fold_conv(&f, n, what);
        }
        rewrite_keep(&f.r, n);
    }
    rewrite_end(&f.r);
    if (f.r.changed)
        graph_remove_dead(func);
    return !f.r.failed;
}

bool graph_pass_vta_fold(compiler *c, graph_module *m, const pass_options *o)
{
    if (!o->offload || !offload_find(o->offload, "vta"))
        return true;
    for (uint32_t i = 0; i < m->funcs.len; i++)
        if (!graph_is_fixed(m->funcs.data[i]) && !fold_func(c, m->funcs.data[i]))
            return false;
    return true;
}
