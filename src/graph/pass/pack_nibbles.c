/* SPDX-License-Identifier: Apache-2.0 */
/* pack-nibbles: constant weights of integer convolutions and products are stored two in a byte, if their numbers have 4
 * bits (they lie within 16 neighboring numbers, wherever these begin). The kernel that reads them splits them
 * (unpack_nibbles). This pass comes after all passes that pack weights, and keeps their order. The two numbers of a
 * byte are whole vectors apart, so that masks and shifts of vectors are enough to split them. */
#include "graph/op/nn.h"
#include "graph/op/layout.h"
#include "graph/op/steps.h"
#include "graph/pass.h"
#include "graph/pass/qnn.h"
#include "graph/pass/rewrite.h"
#include "base/ptr_map.h"

#include <string.h>

/* Where two numbers share a byte. */
typedef struct pairing {
    uint32_t axis;
    int64_t step, extent, bytes; /* bytes: along the axis */
} pairing;

/* A constant as one pairing has it: readers of the same weights may want different ones. */
typedef struct halves {
    pairing at;
    graph_value *v;
    uint32_t before; /* position of another of the same constant, and 1; 0: none */
} halves;

typedef struct halver {
    rewriter r;
    arena scratch;
    ptr_map known; /* constants -> position in `packed` of the last that was made of it */
    VEC(halves) packed;
} halver;

/* Axes at the end that are read as one run of lanes; 0: the weights are not packed. */
static uint32_t run_axes(const graph_node *n)
{
    const char *name = graph_attr(n, "kernel_layout") ? "kernel_layout" : "weight_layout";
    if (strcmp(n->op->name, "qnn.conv2d_steps") == 0)
        return 2;
    tensor_layout l;
    if (!graph_attr(n, name) || !layout_parse(graph_attr_string(n, name), &l) || l.block[l.n - 1] == 0)
        return 0;
    return l.n > 1 && l.block[l.n - 2] != 0 ? 2 : 1;
}

/* Neighbors along the innermost even axis around the run of lanes: whole runs. Where there is none, the halves of the
 * lanes; of weights that are not packed the halves of the last axis, and at last neighbors along the longest one. */
static pairing choose_pairing(const graph_node *n, const tensor_data *w)
{
    const uint32_t run = run_axes(n), lanes = w->rank - (run > 0 ? run : 1);
    uint32_t axis = 0;
    for (uint32_t i = lanes; run > 0 && i-- > 1;)
        if (w->dims[i] % 2 == 0)
            return (pairing){i, 1, w->dims[i], w->dims[i] / 2};
    if (w->dims[lanes] % 2 == 0)
        return (pairing){lanes, w->dims[lanes] / 2, w->dims[lanes], w->dims[lanes] / 2};
    for (uint32_t i = 0; i < w->rank; i++) {
        const bool better = w->dims[i] % 2 != w->dims[axis] % 2 ? w->dims[i] % 2 == 0 : w->dims[i] > w->dims[axis];
        axis = better ? i : axis;
    }
    return (pairing){axis, 1, w->dims[axis], (w->dims[axis] + 1) / 2};
}

static const tensor_data *pack(compiler *c, const tensor_data *w, const pairing *p, int64_t least)
{
    int64_t dims[TYPE_MAX_RANK], inner = 1, outer = 1;
    for (uint32_t i = 0; i < w->rank; i++) {
        dims[i] = i == p->axis ? p->bytes : w->dims[i];
        outer *= i < p->axis ? w->dims[i] : 1;
        inner *= i > p->axis ? w->dims[i] : 1;
    }
    uint8_t *out = arena_array(&c->mem, uint8_t, (size_t)(outer * p->bytes * inner));
    memset(out, 0, (size_t)(outer * p->bytes * inner));
    for (int64_t at = 0; at < w->count; at++) {
        const int64_t i = at % inner, k = at / inner % p->extent, o = at / inner / p->extent;
        const int64_t byte = k / (2 * p->step) * p->step + k % p->step, up = k / p->step % 2 * 4;
        uint8_t *to = &out[(o * p->bytes + byte) * inner + i];
        *to = (uint8_t)(*to | (tensor_get_i64(w, at) - least) << up);
    }
    return tensor_dense(c, DT_U8, w->rank, dims, out);
}

/* The least number that 15 more reach the largest one from; false: there is none, or w is no such constant. */
static bool least_of(const tensor_data *w, int64_t *least)
{
    int64_t low = INT64_MAX, high = INT64_MIN;
    if (!w || w->kind != TENSOR_DENSE || (w->dt != DT_I8 && w->dt != DT_U8 && w->dt != DT_I16) ||
        w->count < QNN_LEAST_NIBBLES || w->rank < 1)
        return false;
    for (int64_t i = 0; i < w->count && (i == 0 || high - low < 16); i++) {
        const int64_t x = tensor_get_i64(w, i);
        low = x < low ? x : low;
        high = x > high ? x : high;
    }
    /* the range of int4 wherever it holds, so that other numbers in the same model have the same code */
    *least = low >= -8 && high < 8 ? w->dt == DT_U8 ? 0 : -8 : low >= 0 && high < 16 ? 0 : low;
    return high - low < 16 && *least >= INT8_MIN && *least <= INT8_MAX - 15;
}

static bool reads_weights(const graph_node *n)
{
    const char *op = n->op->name;
    return n->n_inputs > 1 && n->inputs[0] != n->inputs[1] &&
           (strcmp(op, "qnn.matmul") == 0 || strcmp(op, "qnn.conv2d_steps") == 0 ||
            (strncmp(op, "qnn.conv", strlen("qnn.conv")) == 0 && graph_attr(n, "kernel_layout")) ||
            (strncmp(op, "qnn.conv", strlen("qnn.conv")) == 0 && strstr(op, "_transpose")));
}

/* Whether what has to be true of n's weights can be seen once they are taken apart: in their range. Steps have room in
 * 16 bits, proved or not. */
static bool keeps_promise(const graph_node *n, int64_t least)
{
    const bool steps = strstr(n->op->name, "_steps") != NULL;
    const int64_t most = steps ? STEPS_EACH : NN_PAIRS_BOUND;
    const bool promised = steps || (graph_attr(n, "pairs") && graph_attr_int(n, "pairs") != 0);
    return !promised || (least >= -most && least + 15 <= most);
}

/* The constant w, value of `from`, in bytes. */
static graph_value *packed_as(halver *v, const graph_value *from, const tensor_data *w, const pairing *p,
                              int64_t least)
{
    uint32_t at = 0, last = 0;
    if (ptr_map_get(&v->known, w, &at))
        last = at + 1;
    for (uint32_t i = last; i > 0; i = v->packed.data[i - 1].before)
        if (v->packed.data[i - 1].at.axis == p->axis && v->packed.data[i - 1].at.step == p->step)
            return v->packed.data[i - 1].v;
    graph_value *made = rewrite_constant(&v->r, pack(v->r.c, w, p, least), from->name, from->def->loc);
    ptr_map_set(&v->known, w, v->packed.len);
    vec_push(&v->scratch, &v->packed, ((halves){*p, made, last}));
    return made;
}

/* n's weights as the kernel takes them apart; NULL: they stay, or an error. */
static graph_value *halved(halver *v, const graph_node *n)
{
    compiler *c = v->r.c;
    const tensor_data *w = graph_constant(n->inputs[1]);
    int64_t least = 0;
    if (!least_of(w, &least) || !keeps_promise(n, least))
        return NULL;
    const pairing p = choose_pairing(n, w);
    graph_value *packed = packed_as(v, n->inputs[1], w, &p, least);
    const attr attrs[5] = {attr_int(c, "axis", p.axis), attr_int(c, "extent", p.extent), attr_int(c, "step", p.step),
                           attr_int(c, "least", least), attr_dtype(c, "dtype", w->dt)};
    return rewrite_emit(&v->r, "unpack_nibbles", 1, &packed, 5, attrs, n->loc);
}

static bool run(compiler *c, graph_func *f)
{
    halver v = {.packed = {0}};
    arena_init(&v.scratch, &c->mem);
    ptr_map_init(&v.known, &v.scratch);
    rewrite_begin(&v.r, c, f);
    for (uint32_t i = 0; i < f->nodes.len && !v.r.failed; i++) {
        graph_node *n = f->nodes.data[i];
        rewrite_operands(n);
        graph_value *w = reads_weights(n) ? halved(&v, n) : NULL;
        if (w)
            n->inputs[1] = w;
        rewrite_keep(&v.r, n);
    }
    rewrite_end(&v.r);
    arena_free(&v.scratch);
    graph_drop_constants(f);
    return !v.r.failed;
}

bool graph_pass_pack_nibbles(compiler *c, graph_module *m, const pass_options *o)
{
    bool ok = true;
    for (uint32_t i = 0; i < m->funcs.len && o->target->vector_bytes > 0; i++)
        if (!graph_is_fixed(m->funcs.data[i]))
            ok &= run(c, m->funcs.data[i]);
    return ok;
}
