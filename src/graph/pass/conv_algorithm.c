/* SPDX-License-Identifier: Apache-2.0 */
/* choose-conv-algorithm: a convolution of 3 x 3 in blocks of channels becomes a Winograd convolution where an estimate
 * of cycles says so. What counts: multiplications saved, transforms added, tiles that reach beyond the image, and the
 * reading of weights, of which F(4x4) has four times as many (eight times the bytes in integers): a kernel that looks
 * faster alone loses in a network whose weights do not stay in a cache. The weights' transform is an operator on a
 * constant, which the constant folder evaluates. */
#include "graph/op/winograd.h"
#include "graph/pass.h"
#include "graph/pass/rewrite.h"
#include "base/ptr_map.h"
#include "type/dot.h"

#include <math.h>
#include <string.h>

/* Parts of what the processor's row says, reached on a large layer. */
#define DIRECT_MACS    0.9   /* of the multiply-adds */
#define WINOGRAD_MACS  0.875 /* the same in the products of positions, for the image's tiles */
#define SHORT_LANES    0.5   /* of the transforms' cycles where numbers have 16 bits */
#define MOST_OPERATIONS 3    /* vector instructions that end in a cycle, however wide the processor's front end is */
#define HIDDEN         0.5  /* part of the shorter of arithmetic and reading that goes on under the other: an estimate,
                             * whose effect docs/notes/performance.md has under "Second-level caches" */
#define WORTH_CHANGING 0.9  /* of the direct form's cycles; the larger error must bring something */

#define WORTH_TRYING   2    /* times the least cycles: what a record may choose */

#define SLACK 16 /* the workspace may become this part larger */

typedef struct transformed_weights {
    graph_value *value;
    int64_t tile;
} transformed_weights;

typedef struct chooser {
    rewriter r;
    int64_t lanes;
    const target *target;
    const cpu_model *cpu;
    graph_choices *choices;
    double bytes_per_cycle; /* at which weights arrive */
    arena scratch;
    ptr_map transformed; /* weights -> position in `list`: those that several nodes share are transformed once */
    VEC(transformed_weights) list;
} chooser;

typedef struct conv_size {
    double outs, ins, height, width, batch; /* of the result */
    const target_dot *direct, *wide;        /* products of bytes, and of 16 bits; NULL: of floats */
} conv_size;

/* --- estimates --- */

/* Arithmetic and the reading of weights of so many bytes each, which no arithmetic makes shorter. */
static double with_reading(const chooser *v, const conv_size *z, double arithmetic, double positions, double bytes)
{
    double reading = bytes * positions * z->ins * z->outs / v->bytes_per_cycle;
    return arithmetic > reading ? arithmetic + (1 - HIDDEN) * reading : reading + (1 - HIDDEN) * arithmetic;
}

/* Cycles of one multiply-add of a vector; d: of integers, a granule at a time. */
static double product_cycles(const chooser *v, const target_dot *d)
{
    if (!d)
        return 1 / v->cpu->fma;
    double multiplies = d->multiplies / v->cpu->fma, operations = d->operations / MOST_OPERATIONS;
    return (multiplies > operations ? multiplies : operations) / d->granule;
}

static double direct_cycles(const chooser *v, const conv_size *z)
{
    double macs = z->batch * z->height * z->width * z->ins * z->outs * WINOGRAD_KERNEL * WINOGRAD_KERNEL;
    return with_reading(v, z, macs / (double)v->lanes / DIRECT_MACS * product_cycles(v, z->direct),
                        WINOGRAD_KERNEL * WINOGRAD_KERNEL, z->direct ? 1 : 4);
}

static double tiles_along(double extent, int64_t tile)
{
    return (double)(((int64_t)extent + tile - 1) / tile);
}

static double winograd_cycles(const chooser *v, const conv_size *z, int64_t tile)
{
    double side = (double)winograd_form_of(tile)->side, lanes = (double)v->lanes;
    double places = z->batch * tiles_along(z->height, tile) * tiles_along(z->width, tile) * side * side;
    double products = places * z->ins * z->outs / lanes / WINOGRAD_MACS * product_cycles(v, z->wide);
    double transforms = places * v->cpu->transform * (z->ins + z->outs / 2) / lanes;
    if (!z->wide)
        return with_reading(v, z, products + transforms, side * side, 4);
    const double read = 2 * side * side * z->ins * z->outs / v->bytes_per_cycle; /* ahead, under the products */
    return (products > read ? products : read) + SHORT_LANES * transforms;
}

/* Bytes between the steps of a part that takes the smallest strip worth having. */
static double least_scratch(const chooser *v, const conv_size *z, int64_t tile)
{
    double side = (double)winograd_form_of(tile)->side,
           tiles = (double)winograd_least_width((int64_t)tiles_along(z->width, tile));
    double blocks = tiles_along(z->ins, v->lanes) + 1;
    return (z->wide ? 2 : 4) * (double)v->lanes * side * (side * tiles * blocks + (double)tile * tiles + 2);
}

static bool comes_out(const graph_node *n, const conv_size *z, int64_t tile)
{
    return !z->wide ||
           winograd_integers_fit(winograd_form_of(tile), graph_constant(n->inputs[1]), n->inputs[0]->type.dt);
}

static const int64_t tiles[] = {0, 2, 4}; /* 0: direct */
enum { N_FORMS = sizeof tiles / sizeof *tiles };

/* Estimates for each form, and which is the least. room: bytes that a part may use between the steps. */
static uint32_t estimate(const chooser *v, const graph_node *n, const conv_size *z, double room, double *cycles)
{
    uint32_t best = 0;
    cycles[0] = direct_cycles(v, z) * WORTH_CHANGING;
    for (uint32_t i = 1; i < N_FORMS; i++) {
        bool fits = least_scratch(v, z, tiles[i]) <= room && comes_out(n, z, tiles[i]);
        cycles[i] = fits ? winograd_cycles(v, z, tiles[i]) : HUGE_VAL;
        best = cycles[i] < cycles[best] ? i : best;
    }
    return best;
}

/* What is estimated not much slower than the best may be chosen by a record. */
static int64_t best_tile(chooser *v, const graph_node *n, const conv_size *z, double room)
{
    static const char *const names[] = {"direct", "winograd 2", "winograd 4"};
    double cycles[N_FORMS];
    uint32_t best = estimate(v, n, z, room, cycles), n_forms = 0, rule = 0;
    const char *forms[N_FORMS];
    int64_t of[N_FORMS];
    for (uint32_t i = 0; i < N_FORMS; i++) {
        if (cycles[i] > cycles[best] * WORTH_TRYING)
            continue;
        rule = i == best ? n_forms : rule;
        of[n_forms] = tiles[i];
        forms[n_forms++] = names[i];
    }
    return of[graph_choose(v->choices, n, v->target, n_forms, forms, rule)];
}

/* --- nodes --- */

static bool all_are(const graph_node *n, const char *name, int64_t want)
{
    const int64_t *v = NULL;
    uint32_t len = graph_attr_ints(n, name, &v);
    for (uint32_t i = 0; i < len; i++)
        if (v[i] != want)
            return false;
    return true;
}

/* Products of the form, and of the direct one, that the target has instructions for; false: it has none. */
static bool find_dots(const chooser *v, const graph_node *n, conv_size *out)
{
    out->wide = target_find_dot(v->target, DT_I16, DT_I16, false);
    out->direct = target_find_dot(v->target, n->inputs[0]->type.dt, DT_I8, false);
    return out->wide && out->direct;
}

/* Of steps of one pixel, in blocks of the target's lanes. */
static bool is_dense_conv(const chooser *v, const graph_node *n)
{
    return graph_attr_int(n, "groups") == 1 && all_are(n, "strides", 1) && all_are(n, "dilations", 1) &&
           nn_data_block(n, "data_layout") == v->lanes && nn_data_block(n, "out_layout") == v->lanes &&
           strcmp(graph_attr_string(n, "kernel_layout"), "OIHW") == 0;
}

/* f32, or u8 or i8 by i8, 3 x 3, stride 1, one group, blocks of one vector on both sides, constant weights in the plain
 * order. */
static bool can_change(const chooser *v, const graph_node *n, conv_size *out)
{
    int64_t d[5];
    bool integers = strcmp(n->op->name, "qnn.conv2d") == 0;
    if ((!integers && strcmp(n->op->name, "nn.conv2d") != 0) || n->n_inputs != 2 || !is_dense_conv(v, n))
        return false;
    const tensor_data *w = graph_constant(n->inputs[1]);
    const type *y = &n->outputs[0]->type;
    if (!w || w->kind != TENSOR_DENSE || w->dt != (integers ? DT_I8 : DT_F32) || w->rank != 4 ||
        w->dims[2] != WINOGRAD_KERNEL || w->dims[3] != WINOGRAD_KERNEL || w->count == 0 || y->shape.rank != 5 ||
        !shape_get(y->shape, d))
        return false;
    *out = (conv_size){(double)w->dims[0], (double)w->dims[1], (double)d[2], (double)d[3], (double)d[0], NULL, NULL};
    return !integers || find_dots(v, n, out);
}

/* Weights of the form in integers, as many inputs as the data's blocks have. */
static graph_value *transform_integers(chooser *v, const graph_node *n, int64_t tile)
{
    const tensor_data *w = graph_constant(n->inputs[1]);
    int64_t ins = (w->dims[1] + v->lanes - 1) / v->lanes * v->lanes;
    const tensor_data *t = winograd_integer_weights(v->r.c, winograd_form_of(tile), w, v->lanes, ins);
    return rewrite_constant(&v->r, t, n->inputs[1]->name, n->loc);
}

static graph_value *transform(chooser *v, const graph_node *n, int64_t tile)
{
    attr attrs[2] = {attr_int(v->r.c, "tile_size", tile), attr_int(v->r.c, "block", v->lanes)};
    graph_value *u =
        rewrite_emit(&v->r, "nn.conv2d_winograd_weight_transform", 1, &n->inputs[1], 2, attrs, n->loc);
    if (u)
        rewrite_take_name(u, n->inputs[1]);
    return u;
}

/* NULL: after an error. */
static graph_value *transformed(chooser *v, const graph_node *n, int64_t tile)
{
    graph_value *w = n->inputs[1];
    uint32_t at = 0;
    if (ptr_map_get(&v->transformed, w, &at) && v->list.data[at].tile == tile)
        return v->list.data[at].value;
    graph_value *u = dtype_is_float(w->type.dt) ? transform(v, n, tile) : transform_integers(v, n, tile);
    if (!u)
        return NULL;
    ptr_map_set(&v->transformed, w, v->list.len);
    vec_push(&v->scratch, &v->list, ((transformed_weights){u, tile}));
    return u;
}

/* false: after an error, or when n must stay. */
static bool change(chooser *v, graph_node *n, int64_t tile, int64_t room)
{
    compiler *c = v->r.c;
    const int64_t *pads = NULL;
    uint32_t n_pads = graph_attr_ints(n, "pads", &pads);
    attr attrs[3] = {attr_int(c, "tile_size", tile), attr_ints(c, "pads", n_pads, pads), attr_int(c, "scratch", room)};
    graph_value *in[2] = {n->inputs[0], transformed(v, n, tile)};
    const char *op = dtype_is_float(n->inputs[1]->type.dt) ? "nn.conv2d_winograd" : "qnn.conv2d_winograd";
    graph_value *y = in[1] ? rewrite_emit(&v->r, op, 2, in, 3, attrs, n->loc) : NULL;
    return y && rewrite_replace(&v->r, n->outputs[0], y);
}

/* --- memory --- */

/* Bytes of the workspace that are in use, by a walk in the order of the list. */
typedef struct liveness {
    int64_t *bytes; /* while each node runs */
    int64_t peak;   /* over the nodes that become kernels of their own */
} liveness;

static int64_t bytes_of(const graph_value *v, bool sums_are_bytes)
{
    bool inside = v->def && !graph_constant(v) && !(v->mark & MARK_RESULT) && v->type.kind == TYPE_TENSOR &&
                  shape_is_static(v->type.shape);
    int64_t n = inside ? type_bytes(&v->type) : 0;
    if (inside && v->type.dt == DT_I32 && sums_are_bytes)
        n /= (int64_t)dtype_bytes(DT_I32);
    return n > 0 && n < (int64_t)1 << 40 ? n : 0;
}

/* Element-wise results will be part of what makes their operands: they are no kernels. `sums_are_bytes`: i32 stands for
 * sums that become bytes where they are made. */
static liveness measure(arena *a, const graph_func *f, bool sums_are_bytes)
{
    uint32_t n = f->nodes.len;
    liveness l = {.bytes = arena_array(a, int64_t, n + 1u)};
    ptr_map last;
    ptr_map_init(&last, a);
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t k = 0; k < f->nodes.data[i]->n_inputs; k++)
            if (f->nodes.data[i]->inputs[k])
                ptr_map_set(&last, f->nodes.data[i]->inputs[k], i);
    for (uint32_t i = 0; i < n; i++) {
        for (uint32_t k = 0; k < f->nodes.data[i]->n_outputs; k++) {
            uint32_t end = i;
            (void)ptr_map_get(&last, f->nodes.data[i]->outputs[k], &end);
            l.bytes[i] += bytes_of(f->nodes.data[i]->outputs[k], sums_are_bytes); /* changes first, sums below */
            l.bytes[end + 1] -= bytes_of(f->nodes.data[i]->outputs[k], sums_are_bytes);
        }
    }
    for (uint32_t i = 0; i < n; i++) {
        l.bytes[i] += i > 0 ? l.bytes[i - 1] : 0;
        if (f->nodes.data[i]->op->cls > CLASS_BROADCAST && l.bytes[i] > l.peak)
            l.peak = l.bytes[i];
    }
    return l;
}

/* Scratch for node i that leaves the workspace nearly as it is. */
static int64_t room_for(const liveness *l, uint32_t i)
{
    return l->peak + l->peak / SLACK - l->bytes[i];
}

/* What each part should keep to: the form must not depend on the width, as results would, but the cut may. */
static int64_t share_of(const target *t, int64_t room, double least)
{
    int64_t share = room / (t->workers > 1 ? t->workers : 1);
    return share > (int64_t)least ? share : (int64_t)least;
}

/* --- functions --- */

/* Whether the last cache does not hold all constants, the weights of each layer in the form that looks best: that has
 * no fewer bytes than they have, so that the walk ends where there are too many. */
static bool come_from_memory(chooser *v, const graph_func *f, const liveness *l)
{
    double bytes = 0, cycles[N_FORMS];
    ptr_map seen; /* weights that several nodes share */
    ptr_map_init(&seen, &v->scratch);
    for (uint32_t i = 0; i < f->nodes.len && bytes <= v->cpu->l3_bytes; i++) {
        const graph_node *n = f->nodes.data[i];
        const tensor_data *t = n->n_outputs == 1 ? graph_constant(n->outputs[0]) : NULL;
        conv_size z;
        uint32_t first;
        if (t && t->kind == TENSOR_DENSE && t->count > 0)
            bytes += (double)t->count * (double)dtype_bytes(t->dt);
        if (!can_change(v, n, &z) || ptr_map_get(&seen, n->inputs[1], &first))
            continue;
        const uint32_t best = estimate(v, n, &z, (double)room_for(l, i), cycles);
        if (best > 0) {
            ptr_map_set(&seen, n->inputs[1], i);
            double side = (double)winograd_form_of(tiles[best])->side,
                   each = (z.wide ? 2 : 4) * side * side - (z.wide ? 1 : 4) * WINOGRAD_KERNEL * WINOGRAD_KERNEL;
            bytes += each * z.ins * z.outs;
        }
    }
    return bytes > v->cpu->l3_bytes;
}

static bool run(compiler *c, graph_func *f, const pass_options *o)
{
    const target *t = o->target;
    chooser v = {.lanes = t->vector_bytes / 4,
                 .target = t,
                 .cpu = target_cpu(t),
                 .choices = o->choices,
                 .bytes_per_cycle = target_cpu(t)->far_bytes};
    arena_init(&v.scratch, &c->mem);
    ptr_map_init(&v.transformed, &v.scratch);
    rewrite_begin(&v.r, c, f);
    liveness l = measure(&v.scratch, f, false), bytes = measure(&v.scratch, f, true);
    if (come_from_memory(&v, f, &l)) /* in every run */
        v.bytes_per_cycle = v.cpu->memory_bytes;
    for (uint32_t i = 0; i < f->nodes.len && !v.r.failed; i++) {
        graph_node *n = f->nodes.data[i];
        conv_size z;
        rewrite_operands(n);
        int64_t room = room_for(&l, i), tile = can_change(&v, n, &z) ? best_tile(&v, n, &z, (double)room) : 0;
        room = tile != 0 && z.wide ? room_for(&bytes, i) : room;
        if (tile == 0 || !change(&v, n, tile, share_of(t, room, least_scratch(&v, &z, tile))))
            rewrite_keep(&v.r, n);
    }
    rewrite_end(&v.r);
    arena_free(&v.scratch);
    return !v.r.failed;
}

bool graph_pass_conv_algorithm(compiler *c, graph_module *m, const pass_options *o)
{
    bool ok = true;
    if (o->target->vector_bytes < 8 || o->no_winograd)
        return true;
    for (uint32_t i = 0; i < m->funcs.len; i++)
        if (!graph_is_fixed(m->funcs.data[i]))
            ok &= run(c, m->funcs.data[i], o);
    return ok;
}
