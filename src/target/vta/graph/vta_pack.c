/* SPDX-License-Identifier: Apache-2.0 */
/* vta-pack: regions of the VTA accelerator take and give tensors in the device's tiles (docs/explanation/vta.md "Whole
 * models"). Inside of a region nodes behind each parameter and in front of each result go to the plain layout and back,
 * so that the function says what it said before; outside of it the same nodes stand the other way round, those of
 * constants are folded later, and those between two regions cancel. Images, channels of inputs and of outputs are
 * filled up with zeros to whole tiles, by the types of the values alone; so are the kernels of groups that share a
 * block. */
#include "base/ptr_map.h"
#include "graph/op.h"
#include "graph/pass/rewrite.h"
#include "target/vta/graph/vta_layer.h"
#include "target/vta/graph/vta_passes.h"

#include <string.h>

/* What a value at the border of a region is. */
typedef enum border_kind { BORDER_NONE, BORDER_DATA, BORDER_WEIGHTS, BORDER_PRODUCT, BORDER_BIAS } border_kind;

typedef struct border {
    border_kind kind;
    bool transposed; /* BORDER_PRODUCT: N, K instead of K, N; BORDER_WEIGHTS: of a transposed convolution */
    int64_t groups, joined; /* BORDER_WEIGHTS: of the layer, and as the device has them */
    int64_t in, out;        /* BORDER_WEIGHTS: all channels */
    int64_t half;           /* BORDER_BIAS: what is added to each number */
    type plain;
} border;

typedef struct packer {
    rewriter r;
    vta_geometry g;
    src_loc loc;
    arena *scratch;
    ptr_map *packed; /* unpacked value -> position in `from` */
    VEC(graph_value *) from;
} packer;

/* --- nodes --- */

static graph_value *emit(packer *p, const char *op, uint32_t n_in, graph_value *const *in, uint32_t n, const attr *a)
{
    for (uint32_t i = 0; i < n_in; i++)
        if (!in[i])
            return NULL;
    return rewrite_emit(&p->r, op, n_in, in, n, a, p->loc);
}

static graph_value *number(packer *p, int64_t v)
{
    return rewrite_constant(&p->r, tensor_scalar_i64(p->r.c, DT_I32, v), "", p->loc);
}

static graph_value *list(packer *p, uint32_t n, const int64_t *v)
{
    return rewrite_constant(&p->r, tensor_from_i64s(p->r.c, n, v), "", p->loc);
}

static graph_value *transform(packer *p, graph_value *x, const char *src, const char *dst)
{
    attr a[2] = {attr_string(p->r.c, "src_layout", src), attr_string(p->r.c, "dst_layout", dst)};
    return emit(p, "layout_transform", 1, &x, 2, a);
}

static graph_value *shaped(packer *p, const char *op, graph_value *x, uint32_t n, const int64_t *dims)
{
    return emit(p, op, 2, (graph_value *[]){x, list(p, n, dims)}, 0, NULL);
}

static graph_value *as_type(packer *p, graph_value *x, dtype dt)
{
    attr a = attr_dtype(p->r.c, "dtype", dt);
    return emit(p, "cast", 1, &x, 1, &a);
}

static graph_value *with_number(packer *p, const char *op, graph_value *x, int64_t v)
{
    return emit(p, op, 2, (graph_value *[]){x, number(p, v)}, 0, NULL);
}

static graph_value *slice(packer *p, graph_value *x, uint32_t n, const int64_t *from, const int64_t *to,
                          const int64_t *axes, const int64_t *steps)
{
    return rewrite_slice(&p->r, x, n, from, to, axes, steps, p->loc);
}

static int64_t tiles(int64_t extent, int64_t tile)
{
    return (extent + tile - 1) / tile;
}

/* --- kernels of groups, and of transposed convolutions --- */

/* A kernel of the layer is one of `groups`, of `out` by `in` windows; each of the device's `joined` ones has `each` of
 * them on its diagonal, and zeros elsewhere. */
typedef struct kernels {
    int64_t groups, joined, each, out, in, window;
} kernels;

static kernels kernels_of(const packer *p, const border *b, const int64_t d[4])
{
    kernels k = {b->groups, b->joined, b->groups, b->out / b->groups, b->in / b->groups, d[2] * d[3]};
    if (k.joined > 1)
        k.each = tiles(b->in, p->g.block_in) * (int64_t)p->g.block_in / k.joined / k.in;
    return k;
}

static graph_value *reshape(packer *p, graph_value *x, uint32_t n, const int64_t *dims)
{
    return x ? shaped(p, "reshape", x, n, dims) : NULL;
}

static graph_value *transpose(packer *p, graph_value *x, uint32_t n, const int64_t *perm)
{
    attr a = attr_ints(p->r.c, "perm", n, perm);
    return emit(p, "transpose", 1, &x, 1, &a);
}

/* `more` slices of zeros behind those of the axis. */
static graph_value *add_zeros(packer *p, graph_value *x, int64_t axis, int64_t more)
{
    static const uint8_t zero[8] = {0};
    int64_t d[TYPE_MAX_RANK];
    attr a = attr_int(p->r.c, "axis", axis);
    if (!x || more == 0 || !shape_get(x->type.shape, d))
        return x;
    d[axis] = more;
    const tensor_data *t = tensor_splat(p->r.c, x->type.dt, (uint32_t)x->type.shape.rank, d, zero);
    return emit(p, "concatenate", 2, (graph_value *[]){x, rewrite_constant(&p->r, t, "", p->loc)}, 1, &a);
}

/* Elements 0, step, ... of the axis, those below `to`. */
static graph_value *every(packer *p, graph_value *x, int64_t axis, int64_t to, int64_t step)
{
    const int64_t from = 0;
    return x ? slice(p, x, 1, &from, &to, &axis, &step) : NULL;
}

/* Rows and columns of windows the other way round. */
static graph_value *reverse(packer *p, graph_value *x)
{
    static const int64_t from[2] = {-1, -1}, to[2] = {INT32_MIN, INT32_MIN}, axes[2] = {2, 3}, steps[2] = {-1, -1};
    return x ? slice(p, x, 2, from, to, axes, steps) : NULL;
}

/* Inputs and outputs of the windows of each group change places. */
static graph_value *swap_channels(packer *p, graph_value *x, int64_t groups, int64_t first, int64_t second,
                                  int64_t window)
{
    static const int64_t perm[4] = {0, 2, 1, 3};
    return transpose(p, reshape(p, x, 4, (const int64_t[]){groups, first, second, window}), 4, perm);
}

static bool is_as_it_lies(const border *b)
{
    return b->kind != BORDER_WEIGHTS || (b->groups == 1 && !b->transposed);
}

/* The kernels as the device has them, outputs first; of rank 4. */
static graph_value *join_groups(packer *p, graph_value *x, const border *b)
{
    int64_t d[TYPE_MAX_RANK];
    if (!x || is_as_it_lies(b) || !shape_get(b->plain.shape, d))
        return x;
    const kernels k = kernels_of(p, b, d);
    const int64_t all = k.joined * k.each, size = k.out * k.in * k.window;
    if (b->transposed)
        x = swap_channels(p, reverse(p, x), k.groups, k.in, k.out, k.window);
    x = reshape(p, x, 2, (const int64_t[]){k.groups, size});
    x = add_zeros(p, x, 0, all - k.groups);
    if (k.each > 1) { /* what was first in a row of each + 1 is on the diagonal of rows of each */
        x = reshape(p, x, 4, (const int64_t[]){k.joined, k.each, 1, size});
        x = reshape(p, add_zeros(p, x, 2, k.each), 3, (const int64_t[]){k.joined, k.each * (k.each + 1), size});
        x = every(p, x, 1, k.each * k.each, 1);
    }
    x = swap_channels(p, x, all, k.each, k.out, k.in * k.window);
    return reshape(p, x, 4, (const int64_t[]){all * k.out, k.each * k.in, d[2], d[3]});
}

/* And back. */
static graph_value *part_groups(packer *p, graph_value *x, const border *b)
{
    int64_t d[TYPE_MAX_RANK];
    if (!x || is_as_it_lies(b) || !shape_get(b->plain.shape, d))
        return x;
    const kernels k = kernels_of(p, b, d);
    const int64_t all = k.joined * k.each, size = k.out * k.in * k.window;
    x = swap_channels(p, x, all, k.out, k.each, k.in * k.window);
    x = reshape(p, x, 3, (const int64_t[]){k.joined, k.each * k.each, size});
    x = k.each > 1 ? every(p, x, 1, k.each * k.each, k.each + 1) : x;
    x = reshape(p, x, 2, (const int64_t[]){all, size});
    x = all > k.groups ? every(p, x, 0, k.groups, 1) : x;
    if (!b->transposed)
        return reshape(p, x, 4, d);
    return reverse(p, reshape(p, swap_channels(p, x, k.groups, k.out, k.in, k.window), 4, d));
}

/* Extents of the kernels as the device has them, before blocks are filled up: outputs, inputs. */
static void joined_extents(const packer *p, const border *b, int64_t out[2])
{
    const int64_t d[4] = {1, 1, 1, 1};
    const kernels k = kernels_of(p, b, d);
    out[0] = k.joined * k.each * k.out;
    out[1] = k.each * k.in;
}

/* The first two extents cut to those of the plain type, where tiles have more. */
static graph_value *cut(packer *p, graph_value *x, const border *b)
{
    static const int64_t from[2] = {0, 0}, axes[2] = {0, 1}, steps[2] = {1, 1};
    int64_t plain[TYPE_MAX_RANK], all[TYPE_MAX_RANK];
    if (!x || !shape_get(b->plain.shape, plain) || !shape_get(x->type.shape, all))
        return NULL;
    if (b->kind == BORDER_WEIGHTS)
        joined_extents(p, b, plain);
    return plain[0] == all[0] && plain[1] == all[1] ? x : slice(p, x, 2, from, plain, axes, steps);
}

/* --- weights of fewer than 8 bits: several in a byte, the first one lowest --- */

static graph_value *squeeze(packer *p, graph_value *x)
{
    int64_t dims[TYPE_MAX_RANK], bits = p->g.width[VTA_MEM_WGT], per = 8 / bits;
    graph_value *sum = NULL;
    if (!x || per == 1 || !shape_get(x->type.shape, dims))
        return x;
    int64_t last = x->type.shape.rank - 1;
    for (int64_t k = 0; k < per; k++) {
        graph_value *part = as_type(p, slice(p, x, 1, &k, &dims[last], &last, &per), DT_I32);
        part = with_number(p, "multiply", with_number(p, "bitwise_and", part, (1 << bits) - 1), 1 << (k * bits));
        sum = sum ? emit(p, "add", 2, (graph_value *[]){sum, part}, 0, NULL) : part;
    }
    return as_type(p, sum, DT_I8);
}

static graph_value *spread(packer *p, graph_value *x)
{
    int64_t dims[TYPE_MAX_RANK + 1], bits = p->g.width[VTA_MEM_WGT], per = 8 / bits, half = 1 << (bits - 1);
    graph_value *parts[8];
    if (!x || per == 1 || !shape_get(x->type.shape, dims))
        return x;
    uint32_t rank = (uint32_t)x->type.shape.rank;
    dims[rank] = 1;
    graph_value *byte = with_number(p, "bitwise_and", as_type(p, x, DT_I32), 255);
    for (int64_t k = 0; k < per; k++) {
        graph_value *part = k ? with_number(p, "divide", byte, 1 << (k * bits)) : byte;
        part = with_number(p, "bitwise_xor", with_number(p, "bitwise_and", part, (1 << bits) - 1), half);
        parts[k] = shaped(p, "reshape", with_number(p, "subtract", part, half), rank + 1, dims);
    }
    attr axis = attr_int(p->r.c, "axis", rank);
    graph_value *all = emit(p, "concatenate", (uint32_t)per, parts, 1, &axis);
    dims[rank - 1] *= per;
    return as_type(p, shaped(p, "reshape", all, rank, dims), DT_I8);
}

/* --- layouts --- */

typedef struct layouts {
    const char *plain, *tiles;
} layouts;

static layouts layouts_of(packer *p, const border *b)
{
    arena *a = &p->r.c->mem;
    uint32_t images = p->g.batch, in = p->g.block_in, out = p->g.block_out;
    const char *weights = arena_printf(a, "%uo%ui", out, in);
    switch (b->kind) {
    case BORDER_DATA: {
        const char *plain = b->plain.shape.rank == 4 ? "NCHW" : "NC";
        return (layouts){plain, arena_printf(a, "%s%un%uc", plain, images, in)};
    }
    case BORDER_WEIGHTS: return (layouts){"OIHW", arena_printf(a, "OIHW%s", weights)};
    case BORDER_PRODUCT: return (layouts){b->transposed ? "OI" : "IO", arena_printf(a, "OI%s", weights)};
    case BORDER_BIAS: return (layouts){"NC", arena_printf(a, "NC%un%uc", images, out)};
    case BORDER_NONE: break;
    }
    return (layouts){"", ""};
}

/* Elements in a row of a bias, for each image of a tile. */
static graph_value *bias_rows(packer *p, graph_value *x, int64_t rows)
{
    if (!x)
        return NULL;
    int64_t dims[2] = {1, shape_count(x->type.shape)};
    x = shaped(p, "reshape", x, 2, dims);
    dims[0] = rows;
    return rows == 1 ? x : shaped(p, "broadcast_to", x, 2, dims);
}

static graph_value *pack(packer *p, graph_value *x, const border *b)
{
    layouts l = layouts_of(p, b);
    if (b->kind == BORDER_NONE)
        return x;
    if (b->kind == BORDER_BIAS && b->half)
        x = with_number(p, "add", x, b->half);
    x = b->kind == BORDER_BIAS ? bias_rows(p, x, p->g.batch) : join_groups(p, x, b);
    x = transform(p, x, l.plain, l.tiles);
    return b->kind == BORDER_WEIGHTS || b->kind == BORDER_PRODUCT ? squeeze(p, x) : x;
}

static graph_value *unpack(packer *p, graph_value *x, const border *b)
{
    layouts l = layouts_of(p, b);
    int64_t dims[TYPE_MAX_RANK];
    if (b->kind == BORDER_NONE)
        return x;
    if (b->kind == BORDER_WEIGHTS || b->kind == BORDER_PRODUCT)
        x = spread(p, x);
    x = transform(p, x, l.tiles, l.plain);
    if (b->kind != BORDER_BIAS || !x || !shape_get(b->plain.shape, dims))
        return part_groups(p, cut(p, x, b), b);
    const int64_t from[2] = {0, 0}, to[2] = {1, shape_count(b->plain.shape)}, axes[2] = {0, 1}, steps[2] = {1, 1};
    x = shaped(p, "reshape", slice(p, x, 2, from, to, axes, steps), (uint32_t)b->plain.shape.rank, dims);
    return b->half ? with_number(p, "subtract", x, b->half) : x;
}

/* --- what the values of a region are --- */

static border border_of(const packer *p, const vta_layer *l, const graph_value *inner)
{
    border b = {.plain = inner->type, .groups = 1, .joined = 1};
    int64_t x[4], y[4];
    if (inner == l->weights)
        b.kind = l->kind == VTA_LAYER_DENSE ? BORDER_PRODUCT : BORDER_WEIGHTS;
    else if (inner == l->bias)
        b.kind = BORDER_BIAS, b.half = vta_layer_half(l);
    for (uint32_t i = 0; i < VTA_LAYER_DATA; i++)
        if (inner == l->data[i])
            b.kind = BORDER_DATA;
    b.transposed = l->transposed || l->kind == VTA_LAYER_CONV_TRANSPOSE;
    if (b.kind == BORDER_WEIGHTS && vta_layer_image(l->data[0], x) && vta_layer_image(l->result, y)) {
        b.in = x[1];
        b.out = y[1];
        b.groups = l->groups;
        b.joined = vta_layer_groups(&p->g, b.in, b.out, b.groups);
    }
    return b;
}

static void add_operand(compiler *c, graph_node *n, graph_value *v)
{
    graph_value **in = arena_array(&c->mem, graph_value *, n->n_inputs + 1u);
    memcpy(in, n->inputs, n->n_inputs * sizeof *in);
    in[n->n_inputs++] = v;
    n->inputs = in;
}

/* The constant, made again in front of the call. */
static void add_constant_operand(compiler *c, graph_func *caller, graph_node *call, const graph_value *inner)
{
    add_operand(c, call, graph_add_constant(caller, graph_constant(inner), inner->name, call->loc));
    graph_node *made = caller->nodes.data[--caller->nodes.len];
    graph_insert_before(caller, call, made);
}

/* A parameter of the region and, in all calls of it, the operand: the one of parameter `like`, or where that is
 * PARAM_NONE the constant. */
#define PARAM_NONE UINT32_MAX
static graph_value *lift_to_callers(compiler *c, graph_func *region, const graph_value *inner, uint32_t like)
{
    graph_module *m = region->module;
    for (uint32_t f = 0; f < m->funcs.len; f++)
        for (uint32_t k = 0; k < m->funcs.data[f]->nodes.len; k++) {
            graph_func *caller = m->funcs.data[f];
            graph_node *call = caller->nodes.data[k];
            if (graph_callee(call) != region)
                continue;
            if (like != PARAM_NONE)
                add_operand(c, call, call->inputs[like]);
            else
                add_constant_operand(c, caller, call, inner), k++;
        }
    return graph_add_param(region, inner->name, inner->type);
}

static bool is_plain_region(const graph_func *f)
{
    const char *who = graph_func_text(f, "compiler");
    return who && strcmp(who, "vta") == 0 && !graph_func_attr(f, "tiles");
}

/* The constant v of f becomes a parameter, in all calls of f an operand: one of the region where that calls it. */
static void lift_constant(compiler *c, graph_func *f, graph_value *v)
{
    graph_module *m = f->module;
    for (uint32_t i = 0; i < m->funcs.len; i++) {
        graph_func *caller = m->funcs.data[i];
        graph_value *param = NULL;
        for (uint32_t k = 0; k < caller->nodes.len; k++) {
            graph_node *call = caller->nodes.data[k];
            if (graph_callee(call) != f)
                continue;
            if (!is_plain_region(caller)) {
                add_constant_operand(c, caller, call, v);
                k++;
                continue;
            }
            param = param ? param : lift_to_callers(c, caller, v, PARAM_NONE);
            add_operand(c, call, param);
        }
    }
    graph_replace_uses(f, v, graph_add_param(f, v->name, v->type));
}

/* Weights and biases that a pattern has bound, for all their numbers are one, become operands: the device reads them
 * from memory. */
static void lift_constants(compiler *c, const graph_node *call)
{
    graph_func *f = graph_callee(call);
    vta_layer l;
    const char *why;
    if (!f || !vta_layer_of(c, f, &l, &why))
        return; /* the lowering will say why */
    graph_value *const wanted[2] = {l.weights, l.bias};
    for (uint32_t i = 0; i < 2; i++)
        if (wanted[i] && graph_constant(wanted[i]))
            lift_constant(c, f, wanted[i]);
    graph_remove_dead(f);
}

/* A max pool that pads with zeros reads what is not below 0, in all calls of the region. */
static bool check_signs(compiler *c, const graph_func *region, const graph_node *n)
{
    const graph_func *f = graph_callee(n);
    vta_layer l;
    const char *why;
    if (!f || !vta_layer_of(c, f, &l, &why) || !l.wants_positive || l.data[0]->def)
        return true;
    const graph_value *x = n->inputs[l.data[0]->index];
    for (uint32_t i = 0; i < region->module->funcs.len; i++) {
        const graph_func *caller = region->module->funcs.data[i];
        for (uint32_t k = 0; k < caller->nodes.len; k++)
            if (graph_callee(caller->nodes.data[k]) == region && !vta_layer_is_positive(x, caller->nodes.data[k])) {
                diag_error(&c->diags, DIAG_UNSUPPORTED, n->loc,
                           "@%s: a max pool pads with zeros, and %%%s may be below 0", region->name, x->name);
                return diag_hint(&c->diags, "put a nn.relu before it, or leave the pool to the CPU"), false;
            }
    }
    return true;
}

static bool same_border(const border *a, const border *b)
{
    return a->kind == b->kind && a->transposed == b->transposed && a->groups == b->groups && a->out == b->out &&
           a->half == b->half;
}

/* The borders of parameters as `n` has them; a parameter that another node has otherwise becomes two. */
static void note_borders(packer *p, graph_func *region, graph_node *n, border *all, uint32_t most)
{
    compiler *c = p->r.c;
    const graph_func *f = graph_callee(n);
    vta_layer l;
    const char *why;
    if (!f || !vta_layer_of(c, f, &l, &why))
        return;
    for (uint32_t k = 0; k < n->n_inputs; k++) {
        graph_value *v = n->inputs[k];
        if (!v || v->def)
            continue;
        border b = border_of(p, &l, f->params.data[k]);
        if (all[v->index].kind == BORDER_NONE)
            all[v->index] = b;
        if (same_border(&all[v->index], &b) || b.kind == BORDER_NONE || region->params.len == most)
            continue;
        n->inputs[k] = lift_to_callers(c, region, v, v->index);
        all[n->inputs[k]->index] = b;
    }
}

/* One border for each parameter, then for each result. */
static border *borders_of(packer *p, graph_func *region)
{
    compiler *c = p->r.c;
    uint32_t most = region->params.len;
    for (uint32_t i = 0; i < region->nodes.len; i++)
        most += region->nodes.data[i]->n_inputs;
    border *all = arena_array(&c->mem, border, most + region->results.len + 1u);
    for (uint32_t i = 0; i < region->nodes.len; i++)
        note_borders(p, region, region->nodes.data[i], all, most);
    for (uint32_t i = 0; i < region->results.len; i++)
        all[region->params.len + i] = (border){.kind = BORDER_DATA, .plain = region->results.data[i]->type};
    return all;
}

/* A region is calls of patterns' functions, constants aside: other nodes would be taken for ways between
 * layouts. */
static bool check_region(compiler *c, const graph_func *region)
{
    for (uint32_t i = 0; i < region->nodes.len; i++) {
        const graph_node *n = region->nodes.data[i];
        const graph_func *f = graph_callee(n);
        if ((f && graph_func_text(f, "composite")) || strcmp(n->op->name, "constant") == 0)
            continue;
        diag_error(&c->diags, DIAG_UNSUPPORTED, n->loc, "@%s: the region has a %s that no pattern of VTA matches",
                   region->name, n->op->name);
        diag_hint(&c->diags, "a region is calls of functions with the attribute composite "
                                      "(docs/reference/partition.md)");
        return false;
    }
    return true;
}

/* --- inside of regions --- */

/* What a value of the border's plain type is in tiles. */
static type packed_type(packer *p, const border *b)
{
    int64_t d[TYPE_MAX_RANK], n = p->g.batch, in = p->g.block_in, out = p->g.block_out, rank = b->plain.shape.rank;
    bool swapped = b->kind == BORDER_PRODUCT && !b->transposed; /* K, N */
    if (b->kind == BORDER_NONE || !shape_get(b->plain.shape, d))
        return b->plain;
    if (b->kind == BORDER_BIAS) {
        const int64_t dims[4] = {1, tiles(shape_count(b->plain.shape), out), n, out};
        return type_static(p->r.c, b->plain.dt, 4, dims);
    }
    if (b->kind == BORDER_DATA) {
        d[0] = tiles(d[0], n);
        d[1] = tiles(d[1], in);
        d[rank] = n;
        d[rank + 1] = in;
    } else {
        int64_t outs = d[swapped ? 1 : 0], ins = d[swapped ? 0 : 1];
        int64_t joined[2] = {outs, ins};
        if (b->kind == BORDER_WEIGHTS)
            joined_extents(p, b, joined);
        d[0] = tiles(joined[0], out);
        d[1] = tiles(joined[1], in);
        d[rank] = out;
        d[rank + 1] = in * p->g.width[VTA_MEM_WGT] / 8;
    }
    return type_static(p->r.c, b->plain.dt, (uint32_t)rank + 2, d);
}

/* A parameter in tiles takes the place of the one at i; the plain value is made of it. */
static bool replace_param(packer *p, graph_func *region, uint32_t i, const border *b)
{
    graph_value *old = region->params.data[i], *param = arena_new(&p->r.c->mem, graph_value);
    if (b->kind == BORDER_NONE)
        return true;
    *param = (graph_value){.name = old->name, .index = i, .type = packed_type(p, b)};
    old->name = graph_new_name(region, old->name);
    region->params.data[i] = param;
    graph_value *plain = unpack(p, param, b);
    return plain && rewrite_replace(&p->r, old, plain);
}

static bool pack_inside(packer *p, graph_func *region, const border *all)
{
    bool ok = true;
    rewrite_begin(&p->r, p->r.c, region);
    p->loc = src_loc_none();
    for (uint32_t i = 0; ok && i < region->params.len; i++)
        ok = replace_param(p, region, i, &all[i]);
    for (uint32_t i = 0; i < region->nodes.len; i++) {
        rewrite_operands(region->nodes.data[i]);
        rewrite_keep(&p->r, region->nodes.data[i]);
    }
    for (uint32_t i = 0; ok && i < region->results.len; i++) {
        graph_value *made = pack(p, region->results.data[i], &all[region->params.len + i]);
        ok = made != NULL;
        region->results.data[i] = ok ? made : region->results.data[i];
    }
    rewrite_end(&p->r);
    return ok && !p->r.failed;
}

/* --- their calls --- */

/* The operand in tiles: the one that another region gave, or a node that makes it. */
static graph_value *packed_operand(packer *p, graph_value *x, const border *b)
{
    uint32_t at = 0;
    if (b->kind == BORDER_DATA && ptr_map_get(p->packed, x, &at))
        return p->from.data[at];
    return pack(p, x, b);
}

static bool pack_call(packer *p, graph_node *call, const border *all)
{
    const graph_func *region = graph_callee(call);
    p->loc = call->loc;
    for (uint32_t i = 0; i < call->n_inputs; i++)
        if (!(call->inputs[i] = packed_operand(p, call->inputs[i], &all[i])))
            return false;
    rewrite_keep(&p->r, call);
    for (uint32_t i = 0; i < call->n_outputs; i++) {
        graph_value *y = call->outputs[i];
        y->type = region->results.data[i]->type;
        y->declared = (struct type){0};
        graph_value *plain = unpack(p, y, &all[call->n_inputs + i]);
        if (!plain || !rewrite_replace(&p->r, y, plain))
            return false;
        ptr_map_set(p->packed, plain, p->from.len);
        vec_push(p->scratch, &p->from, y);
    }
    return true;
}

static const border *borders_in(const graph_func *f, const border *const *of_funcs)
{
    return f ? of_funcs[f->mark] : NULL;
}

static bool pack_outside(packer *p, graph_func *f, const border *const *of_funcs)
{
    bool ok = true;
    ptr_map map;
    ptr_map_init(&map, p->scratch);
    p->packed = &map;
    p->from.len = 0;
    rewrite_begin(&p->r, p->r.c, f);
    for (uint32_t i = 0; ok && i < f->nodes.len; i++) {
        graph_node *n = f->nodes.data[i];
        const border *all = borders_in(graph_callee(n), of_funcs);
        rewrite_operands(n);
        if (all)
            ok = pack_call(p, n, all);
        else
            rewrite_keep(&p->r, n);
    }
    if (ok)
        rewrite_end(&p->r);
    graph_remove_dead(f);
    return ok && !p->r.failed;
}

/* --- the pass --- */

/* Regions are calls of layers whose operands are parameters. */
static bool prepare_regions(compiler *c, graph_module *m)
{
    for (uint32_t i = 0; i < m->funcs.len; i++) {
        graph_func *f = m->funcs.data[i];
        f->mark = i;
        if (!is_plain_region(f))
            continue;
        if (!check_region(c, f))
            return false;
        for (uint32_t k = 0; k < f->nodes.len; k++) {
            if (!check_signs(c, f, f->nodes.data[k]))
                return false;
            lift_constants(c, f->nodes.data[k]);
        }
    }
    return true;
}

static bool pack_regions(packer *p, graph_module *m, const border **of_funcs, bool *out_any)
{
    compiler *c = p->r.c;
    if (!prepare_regions(c, m))
        return false;
    for (uint32_t i = 0; i < m->funcs.len; i++) {
        graph_func *f = m->funcs.data[i];
        if (!is_plain_region(f))
            continue;
        border *all = borders_of(p, f);
        if (!pack_inside(p, f, all))
            return false;
        of_funcs[i] = all;
        *out_any = true;
        vec_push(&c->mem, &f->attrs, attr_int(c, "tiles", 1)); /* once is enough */
    }
    return true;
}

bool graph_pass_vta_pack(compiler *c, graph_module *m, const pass_options *o)
{
    (void)o;
    arena scratch;
    packer p = {.r = {.c = c}, .g = vta_layer_device(c), .scratch = &scratch};
    const border **of_funcs = arena_array(&c->mem, const border *, m->funcs.len + 1u);
    arena_init(&scratch, &c->mem);
    bool any = false, ok = pack_regions(&p, m, of_funcs, &any);
    for (uint32_t i = 0; ok && any && i < m->funcs.len; i++)
        if (!graph_is_fixed(m->funcs.data[i]))
            ok = pack_outside(&p, m->funcs.data[i], of_funcs);
    arena_free(&scratch);
    return ok;
}
