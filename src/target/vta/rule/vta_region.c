/* SPDX-License-Identifier: Apache-2.0 */
/* From a region to calls of VTA's run-time: each layer goes alone through its rule, the loops and the passes for VTA,
 * which leave its tokens in balance; then the layers stand one behind the other. A sum of a convolution's result and of
 * what is there before is part of the convolution. */
#include "target/vta/rule/vta_region.h"

#include "graph/op.h"
#include "target/vta/rule/vta_rule.h"
#include "tir/build.h"
#include "tir/map.h"
#include "tir/node.h"
#include "target/vta/pass/vta.h"
#include "tir/walk.h"

#include <string.h>

/* Where a value of the region is: a parameter of the function, or from one layer to another one. */
typedef struct place {
    const tir_buffer *buffer; /* NULL until it is known */
    int64_t bytes;
    uint32_t last;        /* the layer that reads it last, or else writes it */
    bool negative;        /* a layer makes it, and some of its numbers may be below 0 */
    bool positive;        /* a layer makes it, and none of them is */
    uint32_t maker;       /* the layer, or NOWHERE; set for fuse_sums, as is: */
    uint32_t readers;     /* how often it is an operand or a result of the region */
    uint32_t whole;       /* the place that it is a part of, and 1; 0: none */
    int64_t at;           /* of a part: tiles in front of it */
    uint32_t slot;        /* of a whole that is no part itself, and 1; 0: none yet */
} place;

typedef struct step {
    vta_layer layer; /* its values are those of the pattern's function */
    uint32_t operands[5], n_operands, result; /* places; operands in the order of the rule's parameters */
    vta_layer sum;     /* with `has_sum`: the VTA_LAYER_ADD that follows; operand `own` of it is this layer's result */
    bool has_sum;
    uint32_t own;
    bool positive;  /* no number of its data is below 0 */
    int64_t copied; /* bytes that are copied, and there is no layer; else 0 */
    int64_t from, blocks; /* the blocks of output channels that the step makes; `blocks` 0: all of them */
    const char *name;
    src_loc loc;
} step;

typedef struct slot {
    int64_t bytes;
    uint32_t free_after; /* the layer that reads it last */
    const tir_buffer *buffer;
} slot;

typedef struct lowering {
    compiler *c;
    const graph_func *f;
    const char *name;
    tir_map at; /* value of the region -> number of its place, and 1 */
    VEC(place) places;
    VEC(step) steps;
    VEC(slot) slots;
    const tir_buffer **params;
} lowering;

/* --- numbers --- */

static int64_t whole(int64_t n, int64_t tile)
{
    return (n + tile - 1) / tile * tile;
}

static te_vta_kind kind_of(vta_layer_kind k)
{
    switch (k) {
    case VTA_LAYER_CONV:
    case VTA_LAYER_DENSE: return TE_VTA_CONV;
    case VTA_LAYER_CONV_TRANSPOSE: return TE_VTA_CONV_TRANSPOSE;
    case VTA_LAYER_ADD: return TE_VTA_ADD;
    case VTA_LAYER_MAX_POOL: return TE_VTA_MAX_POOL;
    case VTA_LAYER_AVG_POOL: return TE_VTA_SUM_POOL;
    case VTA_LAYER_UPSAMPLE: return TE_VTA_UPSAMPLING;
    case VTA_LAYER_CLIP:
    case VTA_LAYER_VIEW:
    case VTA_LAYER_CONCAT: break;
    }
    return TE_VTA_ELEMENTWISE;
}

static void set_window(const vta_layer *l, te_vta_layer *out)
{
    const int64_t *stride = l->kind == VTA_LAYER_UPSAMPLE ? l->scale : l->stride;
    out->kernel = l->kernel[0];
    out->kernel_w = l->kernel[1];
    out->stride = stride[0];
    out->stride_w = stride[1];
    out->pad = l->pads[0];
    out->pad_left = l->pads[1];
    out->pad_bottom = l->pads[2] < 0 ? 0 : l->pads[2];
    out->pad_right = l->pads[3] < 0 ? 0 : l->pads[3];
    out->output_pad = out->pad_bottom - l->pads[2];
    out->output_pad_w = out->pad_right - l->pads[3];
}

/* The layer in the rule's numbers, without a blocking. */
static const char *describe(compiler *c, const vta_layer *l, te_vta_layer *out)
{
    vta_geometry g = vta_layer_device(c);
    int64_t x[4], y[4];
    if (!vta_layer_image(l->data[0], x) || !vta_layer_image(l->result, y))
        return "its shapes are not known";
    *out = te_vta_layer_new(kind_of(l->kind));
    out->batch = whole(x[0], g.batch);
    out->height = x[2];
    out->width = x[3];
    out->in_channels = whole(x[1], g.block_in);
    out->out_channels = whole(y[1], g.block_out);
    out->groups = vta_layer_groups(&g, x[1], y[1], l->groups);
    set_window(l, out);
    out->positive = l->wants_positive;
    out->bias = l->bias != NULL;
    out->half = vta_layer_half(l) == 0;
    out->mul = l->factor == 1 ? 0 : l->factor;
    out->shift = l->shift;
    out->low = l->low;
    out->high = l->high;
    out->shift_a = l->left[0];
    out->shift_b = l->left[1];
    return NULL;
}

const char *te_vta_region_plan(compiler *c, const vta_layer *l, te_vta_layer *out)
{
    const char *why = describe(c, l, out);
    const bool moves_nothing = l->kind == VTA_LAYER_VIEW || l->kind == VTA_LAYER_CONCAT;
    return why || moves_nothing ? why : te_vta_layer_plan(c, out);
}

static const char *plan_step(compiler *c, const step *s, te_vta_layer *out)
{
    const char *why = describe(c, &s->layer, out);
    out->positive |= s->positive && s->layer.kind == VTA_LAYER_MAX_POOL;
    if (s->blocks)
        out->out_channels = s->blocks * (int64_t)vta_layer_device(c).block_out;
    if (s->has_sum) {
        out->residual = 1;
        out->shift_a = s->sum.left[s->own];
        out->shift_b = s->sum.left[1 - s->own];
        out->sum_shift = s->sum.shift;
        out->sum_low = s->sum.low;
        out->sum_high = s->sum.high;
    }
    return why ? why : te_vta_layer_plan(c, out);
}

/* --- values and places --- */

#define NOWHERE UINT32_MAX

/* NOWHERE: a constant, or what nothing of the device makes. */
static uint32_t place_of(lowering *l, const graph_value *v)
{
    return v ? (uint32_t)(uintptr_t)tir_map_get(&l->at, v) - 1 : NOWHERE;
}

static void put(lowering *l, const graph_value *v, uint32_t at)
{
    tir_map_put(&l->at, v, (const void *)(uintptr_t)(at + 1));
}

static uint32_t add_place(lowering *l, const graph_value *v, const tir_buffer *b)
{
    place p = {.buffer = b, .bytes = type_bytes(&v->type)};
    vec_push(&l->c->mem, &l->places, p);
    put(l, v, l->places.len - 1);
    return l->places.len - 1;
}

static bool refuse(lowering *l, const graph_node *n, const char *kind, const char *why)
{
    diag_error(&l->c->diags, DIAG_UNSUPPORTED, n->loc, "@%s: the %s cannot run on VTA: %s", l->f->name, kind, why);
    diag_hint(&l->c->diags, "leave the operator to the CPU, or choose another device with --vta-config");
    return false;
}

/* Operands in the order that the rule has: data, weights, bias, the other data. */
static bool add_operands(lowering *l, const graph_node *n, step *s)
{
    graph_value *const wanted[4] = {s->layer.data[0], s->layer.weights, s->layer.bias, s->layer.data[1]};
    for (uint32_t i = 0; i < 4; i++) {
        if (!wanted[i])
            continue;
        if (wanted[i]->def)
            return refuse(l, n, vta_layer_text(s->layer.kind), "an operand of it is a constant inside of the pattern");
        uint32_t at = place_of(l, n->inputs[wanted[i]->index]);
        if (at == NOWHERE)
            return refuse(l, n, vta_layer_text(s->layer.kind), "an operand of it is a constant of the region");
        s->operands[s->n_operands++] = at;
    }
    return true;
}

/* The bytes of the result in tiles. */
static int64_t tiled_bytes(lowering *l, const graph_value *v)
{
    vta_geometry g = vta_layer_device(l->c);
    int64_t d[4] = {0};
    (void)vta_layer_image(v, d);
    return whole(d[0], g.batch) * whole(d[1], g.block_out) * d[2] * d[3];
}

/* What it makes is not negative where its data is not. */
static bool keeps_sign(vta_layer_kind k)
{
    return k == VTA_LAYER_MAX_POOL || k == VTA_LAYER_AVG_POOL || k == VTA_LAYER_UPSAMPLE || k == VTA_LAYER_CLIP;
}

/* A value that is there already is copied: by limits that change nothing. */
static uint32_t copy_place(lowering *l, uint32_t from)
{
    const uint32_t at = l->places.len;
    place p = l->places.data[from];
    p.buffer = NULL;
    p.whole = 0;
    vec_push(&l->c->mem, &l->places, p);
    step s = {.operands = {from}, .n_operands = 1, .result = at, .name = "copy", .copied = p.bytes};
    vec_push(&l->c->mem, &l->steps, s);
    return at;
}

static bool add_concat(lowering *l, const graph_node *n, const vta_layer *layer)
{
    const vta_geometry g = vta_layer_device(l->c);
    int64_t image[4], before = 0;
    const uint32_t whole = add_place(l, n->outputs[0], NULL);
    l->places.data[whole].bytes = tiled_bytes(l, layer->result);
    l->places.data[whole].positive = true;
    for (uint32_t i = 0; i < VTA_LAYER_DATA && layer->data[i]; i++) {
        uint32_t at = layer->data[i]->def ? NOWHERE : place_of(l, n->inputs[layer->data[i]->index]);
        if (at == NOWHERE)
            return refuse(l, n, vta_layer_text(layer->kind), "an operand of it is a constant of the region");
        if (l->places.data[at].buffer || l->places.data[at].whole)
            at = copy_place(l, at);
        (void)vta_layer_image(layer->data[i], image);
        l->places.data[at].whole = whole + 1;
        l->places.data[at].at = before;
        l->places.data[whole].negative |= l->places.data[at].negative;
        l->places.data[whole].positive &= l->places.data[at].positive;
        before += image[1] / (int64_t)g.block_out * image[2] * image[3];
    }
    return true;
}

/* An odd number of channel blocks over an odd number of rows gives two virtual threads nothing to share. Most of the
 * blocks go to them then, an even number, and a few are left for a step of their own: so many that both parts together
 * move the fewest bytes. 0: that costs more than it gives. */
static int64_t shared_blocks(lowering *l, const step *s, const te_vta_layer *plan)
{
    enum { LEAST_BLOCKS = 5, MOST_LEFT = 4 }; /* a fourth of the blocks at most is left */
    const vta_geometry g = vta_layer_device(l->c);
    const int64_t blocks = plan->out_channels / (int64_t)g.block_out;
    int64_t best = 0, most = vta_blocks_bytes(l->c, plan) * 3 / 2;
    if (plan->oc_threads > 1 || plan->h_threads > 1 || plan->kind != TE_VTA_CONV || plan->groups > 1 ||
        plan->batch > (int64_t)g.batch || blocks % 2 == 0 || blocks < LEAST_BLOCKS)
        return 0;
    for (int64_t left = 1; left * MOST_LEFT <= blocks; left += 2) {
        step first = *s, last = *s;
        te_vta_layer a, b;
        first.blocks = blocks - left;
        last.blocks = left;
        if (plan_step(l->c, &first, &a) || a.oc_threads < 2 || plan_step(l->c, &last, &b))
            continue;
        const int64_t bytes = vta_blocks_bytes(l->c, &a) + vta_blocks_bytes(l->c, &b);
        best = bytes < most ? blocks - left : best;
        most = bytes < most ? bytes : most;
    }
    return best;
}

static void add_step(lowering *l, const step *s, const te_vta_layer *plan)
{
    const int64_t shared = shared_blocks(l, s, plan);
    step part = *s;
    part.blocks = shared;
    vec_push(&l->c->mem, &l->steps, part);
    if (shared == 0)
        return;
    part.from = shared;
    part.blocks = plan->out_channels / (int64_t)vta_layer_device(l->c).block_out - shared;
    part.name = arena_printf(&l->c->mem, "%s, the last channels", s->name);
    vec_push(&l->c->mem, &l->steps, part);
}

static bool add_layer(lowering *l, graph_node *n, const graph_func *f)
{
    step s = {.loc = n->loc, .name = n->loc.node && *n->loc.node ? n->loc.node : n->outputs[0]->name};
    const char *why = NULL;
    te_vta_layer plan;
    if (!vta_layer_of(l->c, f, &s.layer, &why))
        return refuse(l, n, "pattern", why);
    if (s.layer.kind == VTA_LAYER_VIEW && !s.layer.data[0]->def) {
        uint32_t at = place_of(l, n->inputs[s.layer.data[0]->index]);
        if (at == NOWHERE)
            return refuse(l, n, "view", "its operand is a constant of the region");
        put(l, n->outputs[0], at);
        return true;
    }
    if (s.layer.kind == VTA_LAYER_CONCAT)
        return add_concat(l, n, &s.layer);
    why = te_vta_region_plan(l->c, &s.layer, &plan);
    if (why)
        return refuse(l, n, vta_layer_text(s.layer.kind), why);
    if (!add_operands(l, n, &s))
        return false;
    bool negative = l->places.data[s.operands[0]].negative;
    if (s.layer.wants_positive && negative)
        return refuse(l, n, vta_layer_text(s.layer.kind), "it pads with zeros, and its data may be negative");
    s.positive = l->places.data[s.operands[0]].positive;
    s.result = add_place(l, n->outputs[0], NULL);
    l->places.data[s.result].positive = s.layer.low >= 0 || (s.positive && keeps_sign(s.layer.kind));
    l->places.data[s.result].negative = s.layer.low < 0 && (negative || !keeps_sign(s.layer.kind));
    l->places.data[s.result].bytes = tiled_bytes(l, s.layer.result);
    add_step(l, &s, &plan);
    return true;
}

/* What goes from tiles to the plain layout and back is the device's own tensor all the way. */
static bool add_node(lowering *l, graph_node *n)
{
    const graph_func *f = graph_callee(n);
    if (f)
        return add_layer(l, n, f);
    uint32_t at = n->n_inputs > 0 ? place_of(l, n->inputs[0]) : NOWHERE;
    if (at != NOWHERE)
        put(l, n->outputs[0], at);
    return true;
}

/* --- sums that follow a convolution --- */

/* Who makes and reads each place: the step (NOWHERE: none does), and how often, as a result of the region too. */
static void find_readers(lowering *l)
{
    for (uint32_t i = 0; i < l->places.len; i++) {
        l->places.data[i].maker = NOWHERE;
        l->places.data[i].readers = 0;
    }
    for (uint32_t i = 0; i < l->steps.len; i++) {
        const step *s = &l->steps.data[i];
        l->places.data[s->result].maker = i;
        for (uint32_t k = 0; k < s->n_operands; k++)
            l->places.data[s->operands[k]].readers++;
    }
    for (uint32_t i = 0; i < l->f->results.len; i++) {
        const uint32_t at = place_of(l, l->f->results.data[i]);
        if (at != NOWHERE)
            l->places.data[at].readers++;
    }
    for (bool grown = true; grown;) { /* a whole is there when its last part is, and who reads it reads them all */
        grown = false;
        for (uint32_t i = 0; i < l->places.len; i++) {
            const place *p = &l->places.data[i];
            place *whole = p->whole ? &l->places.data[p->whole - 1] : NULL;
            if (!whole || p->maker == NOWHERE || (whole->maker != NOWHERE && whole->maker >= p->maker))
                continue;
            whole->maker = p->maker;
            grown = true;
        }
    }
    for (uint32_t i = 0; i < l->places.len; i++)
        l->places.data[i].readers += l->places.data[i].whole > 0;
}

/* The sum, layer i, by the layer that makes operand `own` of it, where nobody else reads that, and the other one is
 * there before. */
static bool fuse_sum(lowering *l, uint32_t i, uint32_t own)
{
    const step *s = &l->steps.data[i];
    const uint32_t mine = s->operands[own], other = s->operands[1 - own];
    const uint32_t at = l->places.data[mine].maker, before = l->places.data[other].maker;
    te_vta_layer plan;
    if (at == NOWHERE || l->places.data[mine].readers != 1 || (before != NOWHERE && before >= at))
        return false;
    step made = l->steps.data[at];
    if (!vta_is_sum(kind_of(made.layer.kind)) || made.has_sum || made.copied || made.blocks)
        return false;
    made.sum = s->layer;
    made.has_sum = true;
    made.own = own;
    made.operands[made.n_operands++] = other;
    made.result = s->result;
    made.name = arena_printf(&l->c->mem, "%s+%s", made.name, s->name);
    if (plan_step(l->c, &made, &plan))
        return false;
    l->steps.data[at] = made;
    l->places.data[made.result].maker = at;
    return true;
}

static void fuse_sums(lowering *l)
{
    uint32_t kept = 0;
    find_readers(l);
    for (uint32_t i = 0; i < l->steps.len; i++) {
        if (l->steps.data[i].layer.kind == VTA_LAYER_ADD && (fuse_sum(l, i, 0) || fuse_sum(l, i, 1)))
            continue;
        l->places.data[l->steps.data[i].result].maker = kept;
        l->steps.data[kept++] = l->steps.data[i];
    }
    l->steps.len = kept;
}

static uint32_t root_of(const lowering *l, uint32_t at)
{
    while (l->places.data[at].whole)
        at = l->places.data[at].whole - 1;
    return at;
}

static void find_lives(lowering *l)
{
    for (uint32_t i = 0; i < l->steps.len; i++) {
        const step *s = &l->steps.data[i];
        for (uint32_t k = 0; k < s->n_operands; k++)
            l->places.data[s->operands[k]].last = i;
        l->places.data[s->result].last = i;
    }
    for (uint32_t i = 0; i < l->places.len; i++) {
        place *root = &l->places.data[root_of(l, i)];
        root->last = l->places.data[i].last > root->last ? l->places.data[i].last : root->last;
    }
}

/* --- memory --- */

static const tir_buffer *bytes_buffer(lowering *l, const char *name, dtype dt, int64_t count)
{
    return tir_buffer_static(l->c, name, dt, 1, &count, SCOPE_GLOBAL);
}

/* The smallest slot that is free and has room, else the largest free one, which grows, else a new one. */
static uint32_t find_slot(lowering *l, uint32_t layer, int64_t bytes)
{
    uint32_t best = UINT32_MAX;
    for (uint32_t i = 0; i < l->slots.len; i++) {
        const slot *s = &l->slots.data[i], *b = best == UINT32_MAX ? NULL : &l->slots.data[best];
        if (s->free_after >= layer)
            continue;
        bool fits = s->bytes >= bytes, best_fits = b && b->bytes >= bytes;
        if (!b || (fits && (!best_fits || s->bytes < b->bytes)) || (!fits && !best_fits && s->bytes > b->bytes))
            best = i;
    }
    if (best == UINT32_MAX) {
        best = l->slots.len;
        vec_push(&l->c->mem, &l->slots, ((slot){0}));
    }
    return best;
}

/* A whole gets its place when the first of its parts is written. */
static void place_intermediates(lowering *l)
{
    for (uint32_t i = 0; i < l->steps.len; i++) {
        place *p = &l->places.data[root_of(l, l->steps.data[i].result)];
        if (p->buffer || p->slot)
            continue;
        p->slot = find_slot(l, i, p->bytes) + 1;
        slot *s = &l->slots.data[p->slot - 1];
        s->bytes = p->bytes > s->bytes ? p->bytes : s->bytes;
        s->free_after = p->last;
    }
    for (uint32_t i = 0; i < l->slots.len; i++)
        l->slots.data[i].buffer =
            bytes_buffer(l, arena_printf(&l->c->mem, "between_%u", i), DT_I8, l->slots.data[i].bytes);
    for (uint32_t i = 0; i < l->places.len; i++)
        if (l->places.data[i].slot)
            l->places.data[i].buffer = l->slots.data[l->places.data[i].slot - 1].buffer;
}

/* Each result is written by a layer, which writes no other one. */
static bool place_results(lowering *l)
{
    for (uint32_t i = 0; i < l->f->results.len; i++) {
        graph_value *v = l->f->results.data[i];
        uint32_t at = place_of(l, v);
        if (at == NOWHERE)
            return diag_error(&l->c->diags, DIAG_UNSUPPORTED, src_loc_none(),
                              "@%s: the device does not compute result %u", l->f->name, i);
        if (l->places.data[at].buffer || l->places.data[at].whole) /* an operand, another result, a part */
            at = copy_place(l, at);
        l->places.data[at].buffer = l->params[l->f->params.len + i] =
            bytes_buffer(l, arena_printf(&l->c->mem, "out_%u", i), v->type.dt, shape_count(v->type.shape));
    }
    return true;
}

/* --- statements --- */

typedef struct substitution {
    uint32_t n;
    const tir_buffer *const *from;
    const tir_buffer **to;
    const int64_t *at; /* tiles in front of what is there */
} substitution;

/* A transfer from or to a buffer of the layer's: its offset counts tiles, too. */
static tir_expr_ref substitute_transfer(tir_rewriter *r, tir_expr_ref e, uint32_t dram, uint32_t offset)
{
    const substitution *s = r->ctx;
    for (uint32_t i = 0; i < s->n; i++)
        if (tir_is_access(e->args[dram]) && e->args[dram]->u.buffer == s->from[i]) {
            tir_expr_ref *args = arena_copy(&r->c->mem, e->args, e->n_args * sizeof *args, _Alignof(tir_expr_ref));
            tir_expr_ref there = args[dram];
            args[dram] = tir_node_access(r->c, there, s->to[i], there->n_args, there->args);
            args[offset] = tir_add(r->c, args[offset], tir_int(r->c, args[offset]->type.dt, s->at[i]));
            return tir_extern(r->c, e->u.name, e->type, e->n_args, args);
        }
    return e;
}

static tir_expr_ref substitute(tir_rewriter *r, tir_expr_ref e)
{
    if (vta_is_call(e, "VTALoadBuffer2D"))
        return substitute_transfer(r, e, VTA_LOAD_DRAM, VTA_LOAD_OFFSET);
    if (vta_is_call(e, "VTAStoreBuffer2D"))
        return substitute_transfer(r, e, VTA_STORE_DRAM, VTA_STORE_OFFSET);
    return e;
}

/* The last synchronisation of a layer goes: the function has one. */
static tir_stmt *drop_sync(tir_rewriter *r, tir_stmt *s)
{
    bool sync = s->kind == TIR_EVALUATE && vta_is_call(s->value, "tir.vta.coproc_sync");
    return sync ? tir_seq(r->c, 0, NULL) : s;
}

static tir_stmt *call(compiler *c, const char *name, uint32_t n, const int64_t *numbers)
{
    tir_expr_ref args[2];
    for (uint32_t i = 0; i < n; i++)
        args[i] = tir_i64(c, numbers[i]);
    return tir_evaluate(c, tir_extern(c, name, tir_scalar(DT_I32), n, args));
}

/* What the layer behind it loads has been stored, and the scratchpads are free. */
static tir_stmt *fence(compiler *c)
{
    static const int64_t back[2] = {VTA_QUEUE_STORE, VTA_QUEUE_COMPUTE}, on[2] = {VTA_QUEUE_COMPUTE, VTA_QUEUE_LOAD};
    tir_stmt *const all[4] = {
        call(c, "tir.vta.coproc_dep_push", 2, back), call(c, "tir.vta.coproc_dep_pop", 2, back),
        call(c, "tir.vta.coproc_dep_push", 2, on), call(c, "tir.vta.coproc_dep_pop", 2, on)};
    return tir_seq(c, 4, all);
}

/* Limits that change nothing, of so many numbers as rows of tiles. */
static te_vta_layer copy_layer(compiler *c, int64_t bytes)
{
    vta_geometry g = vta_layer_device(c);
    te_vta_layer l = te_vta_layer_new(TE_VTA_ELEMENTWISE);
    l.batch = g.batch;
    l.height = bytes / (int64_t)(g.batch * g.block_out);
    l.width = 1;
    l.in_channels = l.out_channels = g.block_out;
    l.bias = l.shift = 0;
    return l;
}

/* The buffer that holds a place, and the tiles in front of it there. */
static void find_place(const lowering *l, uint32_t i, const tir_buffer **out, int64_t *out_at)
{
    *out_at = 0;
    for (; l->places.data[i].whole; i = l->places.data[i].whole - 1)
        *out_at += l->places.data[i].at;
    *out = l->places.data[i].buffer;
}

/* Tiles of a convolution's weights (parameter 1), bias and result, which all begin with the blocks of its outputs. */
static int64_t tiles_of(compiler *c, const tir_buffer *b, uint32_t param)
{
    const vta_geometry g = vta_layer_device(c);
    const enum vta_mem m = param == 1 ? VTA_MEM_WGT : b->dt == DT_I32 ? VTA_MEM_ACC : VTA_MEM_OUT;
    return tir_buffer_count(b) * (int64_t)dtype_bytes(b->dt) / (int64_t)g.elem_bytes[m];
}

static bool lower_layer(lowering *l, uint32_t number, tir_stmt **out)
{
    compiler *c = l->c;
    const step *s = &l->steps.data[number];
    const tir_buffer *to[5];
    int64_t at[5];
    te_vta_layer plan;
    tir_func *f = NULL;
    if (s->copied)
        plan = copy_layer(c, s->copied);
    else
        (void)plan_step(c, s, &plan);
    if (!te_vta_layer_lower(c, &plan, arena_printf(&c->mem, "%s_%u", l->name, number), &f))
        return diag_hint(&c->diags, "layer %u of @%s, '%s'", number, l->f->name, s->name), false;
    for (uint32_t i = 0; i <= s->n_operands; i++)
        find_place(l, i < s->n_operands ? s->operands[i] : s->result, &to[i], &at[i]);
    if (f->n_params != s->n_operands + 1)
        return diag_error(&c->diags, DIAG_INTERNAL, s->loc, "the rule for a %s has %u operands, not %u",
                          vta_layer_text(s->layer.kind), f->n_params - 1, s->n_operands);
    for (uint32_t i = 1; i < f->n_params && s->from > 0; i++)
        at[i] += s->from * tiles_of(c, f->params[i], i) / s->blocks;
    substitution sub = {f->n_params, f->params, to, at};
    tir_rewriter r = {.c = c, .ctx = &sub, .expr = substitute, .stmt = drop_sync};
    *out = tir_attr(c, s->name, "vta_layer", tir_i64(c, number), tir_rewrite_stmt(&r, f->body));
    return true;
}

static bool join_layers(lowering *l, tir_stmt **out)
{
    compiler *c = l->c;
    tir_stmt **all = arena_array(&c->mem, tir_stmt *, 2 * l->steps.len + 2u);
    uint32_t n = 0;
    for (uint32_t i = 0; i < l->steps.len; i++) {
        if (i > 0)
            all[n++] = fence(c);
        if (!lower_layer(l, i, &all[n++]))
            return false;
    }
    all[n++] = call(c, "tir.vta.coproc_sync", 0, NULL);
    *out = tir_seq(c, n, all);
    for (uint32_t i = l->slots.len; i-- > 0;)
        *out = tir_allocate(c, l->slots.data[i].buffer, *out);
    return true;
}

static bool is_static(const graph_func *f)
{
    bool all = true;
    for (uint32_t i = 0; i < f->params.len; i++)
        all &= f->params.data[i]->type.kind == TYPE_TENSOR && shape_is_static(f->params.data[i]->type.shape);
    for (uint32_t i = 0; i < f->results.len; i++)
        all &= f->results.data[i]->type.kind == TYPE_TENSOR && shape_is_static(f->results.data[i]->type.shape);
    return all;
}

static void add_params(lowering *l)
{
    for (uint32_t i = 0; i < l->f->params.len; i++) {
        const graph_value *v = l->f->params.data[i];
        l->params[i] = bytes_buffer(l, v->name, v->type.dt, shape_count(v->type.shape));
        (void)add_place(l, v, l->params[i]);
    }
}

bool te_vta_region_lower(compiler *c, const graph_func *f, const char *name, tir_func **out)
{
    lowering l = {.c = c, .f = f, .name = name};
    tir_stmt *body = NULL;
    *out = NULL;
    if (!graph_func_attr(f, "tiles"))
        return diag_error(&c->diags, DIAG_VERIFY, src_loc_none(), "@%s is not in the tiles of VTA", f->name),
               diag_hint(&c->diags, "the pass vta-pack comes before it"), false;
    if (!is_static(f))
        return diag_error(&c->diags, DIAG_UNSUPPORTED, src_loc_none(), "@%s: VTA needs extents that are numbers",
                          f->name);
    tir_map_init(&l.at, &c->mem);
    l.params = arena_array(&c->mem, const tir_buffer *, f->params.len + f->results.len + 1u);
    add_params(&l);
    for (uint32_t i = 0; i < f->nodes.len; i++)
        if (!add_node(&l, f->nodes.data[i]))
            return false;
    fuse_sums(&l);
    if (!place_results(&l))
        return false;
    find_lives(&l);
    place_intermediates(&l);
    if (!join_layers(&l, &body))
        return false;
    tir_func *made = arena_new(&c->mem, tir_func);
    *made = (tir_func){.name = name,
                       .n_params = f->params.len + f->results.len,
                       .n_inputs = f->params.len,
                       .params = l.params,
                       .body = body,
                       .index_type = DT_I64,
                       .loc = src_loc_none(),
                       .target = target_lookup(c, "vta")};
    *out = made;
    return true;
}

/* --- the target --- */

static const char *planned(compiler *c, bool ok, const vta_layer *l, const char *why)
{
    te_vta_layer plan;
    return ok ? te_vta_region_plan(c, l, &plan) : why;
}

/* vta_layer(%y): the nodes up to %y are a layer of the device */
static const char *check_layer(compiler *c, uint32_t n, graph_value *const *v)
{
    vta_layer l;
    const char *why = "vta_layer takes one value";
    bool ok = n == 1 && v[0] && vta_layer_read(c, v[0], &l, &why);
    return planned(c, ok, &l, why);
}

/* vta_limits(%y): the same of one ReLU or clip */
static const char *check_limits(compiler *c, uint32_t n, graph_value *const *v)
{
    vta_layer l;
    const char *why = "vta_limits takes one value";
    bool ok = n == 1 && v[0] && vta_layer_limits(c, v[0], &l, &why);
    return planned(c, ok, &l, why);
}

static const target_check checks[] = {{"vta_layer", check_layer}, {"vta_limits", check_limits}, {NULL, NULL}};
static const target_numbers numbers = {.with_sign = true, .one_scale = true, .powers = true};
static const target_offload offload = {
    .patterns = vta_patterns,
    .checks = checks,
    .numbers = &numbers,
    .advice = "vta takes quantized layers of i8 whose scales are powers of two: lathe quantize MODEL --for vta makes "
              "them"};
static const target row = {.name = "vta", .cflags = "", .regions_only = true, .computations = true, .workers = 1,
                           .address_bits = 64, .lower = te_vta_region_lower, .memory = "ext_dev",
                           .offload = &offload};

bool te_vta_region_register(compiler *c, target_codegen_fn codegen)
{
    target *t = arena_new(&c->mem, target);
    *t = row;
    t->codegen = codegen;
    return target_register(c, t);
}
