/* SPDX-License-Identifier: Apache-2.0 */
/* sink-dequantize: what moves, cuts or gathers a dequantised constant does so with the numbers that are stored, and
 * dequantises what it has moved. A table of which a run reads a few rows stays at its type, and folding, which would
 * make floats of the whole, finds nothing to do; weights behind a transpose or a reshape are weights of the layers
 * that read them. Scales of an axis go with it as far as the operator leaves that axis an axis; gathered themselves,
 * they are one for a block of another axis. Bits do not change: each number is dequantised by its own scale. */
#include "graph/pass.h"
#include "graph/pass/rewrite.h"

#include <string.h>

#define MAX_BYTES ((int64_t)256 << 20) /* as folding has it */

/* A dequantize of constants. */
typedef struct stored {
    const graph_node *n;
    const tensor_data *numbers, *scale, *zero; /* zero NULL: 0 */
    bool single;
    int32_t axis; /* of the scales, or of their blocks */
    int64_t block;
} stored;

/* What stands for n's result: moved numbers, their scales, and where these lie. */
typedef struct moved {
    graph_value *numbers, *scale, *zero;
    int64_t axis, block;
} moved;

static bool has_small_constants(const stored *s)
{
    return s->numbers && s->numbers->kind == TENSOR_DENSE && dtype_bits(s->numbers->dt) <= 16 && s->scale;
}

static bool read_stored(const graph_value *v, stored *out)
{
    if (!rewrite_is_op(v, "qnn.dequantize"))
        return false;
    const graph_node *n = v->def;
    const graph_value *zero = n->n_inputs > 2 ? n->inputs[2] : NULL;
    *out = (stored){.n = n,
                    .numbers = graph_constant(n->inputs[0]),
                    .scale = graph_constant(n->inputs[1]),
                    .zero = graph_constant(zero),
                    .block = graph_attr_int(n, "block_size")};
    if (!has_small_constants(out) || (zero && !out->zero) || !shape_is_static(v->type.shape))
        return false;
    double all = 1;
    if (rewrite_is_uniform(out->zero, &all) && all == 0)
        out->zero = NULL;
    const int64_t axis = graph_attr_int(n, "axis");
    out->single = out->block == 0 && out->scale->count == 1 && (!out->zero || out->zero->count == 1);
    out->axis = (int32_t)(axis < 0 ? axis + v->type.shape.rank : axis);
    return out->single || (out->axis >= 0 && out->axis < v->type.shape.rank &&
                           (!out->zero || out->zero->count == out->scale->count));
}

/* --- operators on numbers --- */

/* A constant, where its operands are and it is not too large. */
static graph_value *computed(rewriter *r, graph_value *y)
{
    const int64_t bytes = y ? type_bytes(&y->type) : -1;
    return bytes >= 0 && bytes <= MAX_BYTES ? rewrite_evaluate(r, y) : y;
}

/* n's operator on x instead of its data. NULL after an error. */
static graph_value *again(rewriter *r, const graph_node *n, graph_value *x)
{
    graph_value **in = arena_array(&r->c->mem, graph_value *, n->n_inputs);
    if (!x || r->failed)
        return NULL;
    memcpy(in, n->inputs, n->n_inputs * sizeof *in);
    in[0] = x;
    return computed(r, rewrite_emit(r, n->op->name, n->n_inputs, in, n->n_attrs, n->attrs, n->loc));
}

/* A part of a constant's axis. */
static graph_value *cut(rewriter *r, graph_value *x, int64_t from, int64_t to, int64_t step, int64_t axis, src_loc loc)
{
    return computed(r, rewrite_slice(r, x, 1, &from, &to, &axis, &step, loc));
}

/* --- where scales go --- */

static bool moved_by_transpose(rewriter *r, const graph_node *n, const stored *x, moved *out)
{
    const int64_t *perm = NULL;
    const int32_t rank = n->inputs[0]->type.shape.rank;
    const uint32_t len = graph_attr_ints(n, "perm", &perm);
    for (int32_t i = 0; i < rank; i++)
        if ((len ? perm[i] : rank - 1 - i) == x->axis)
            out->axis = i;
    if (x->block == 0)
        return true;
    out->scale = again(r, n, out->scale);
    out->zero = again(r, n, out->zero);
    return out->scale && (out->zero || !x->zero);
}

/* The axis is still one where as many elements lie in front of it and behind it. */
static bool moved_by_reshape(const graph_node *n, const stored *x, moved *out)
{
    int64_t from[TYPE_MAX_RANK], to[TYPE_MAX_RANK], before = 1, now = 1;
    if (x->block != 0 || !shape_get(n->inputs[0]->type.shape, from) || !shape_get(n->outputs[0]->type.shape, to))
        return false;
    for (int32_t i = 0; i < x->axis; i++)
        before *= from[i];
    for (int32_t i = 0; i < n->outputs[0]->type.shape.rank; now *= to[i++])
        if (now == before && to[i] == from[x->axis]) {
            out->axis = i;
            return true;
        }
    return false;
}

static bool moved_by_slice(rewriter *r, const graph_node *n, const stored *x, moved *out)
{
    int64_t list[4][TYPE_MAX_RANK]; /* from, to, axes, steps */
    uint32_t count = 0;
    if (x->block != 0)
        return false;
    for (uint32_t i = 0; i < 4; i++) {
        const graph_value *v = i + 1 < n->n_inputs ? n->inputs[i + 1] : NULL;
        uint32_t len = count;
        for (uint32_t k = 0; k < count && !v; k++)
            list[i][k] = i == 2 ? k : 1;
        if (v && (!graph_constant_ints(v, TYPE_MAX_RANK, list[i], &len) || (i > 0 && len != count)))
            return false;
        count = len;
    }
    for (uint32_t k = 0; k < count; k++) {
        if ((list[2][k] < 0 ? list[2][k] + n->inputs[0]->type.shape.rank : list[2][k]) != x->axis)
            continue;
        out->scale = cut(r, out->scale, list[0][k], list[1][k], list[3][k], 0, n->loc);
        out->zero = out->zero ? cut(r, out->zero, list[0][k], list[1][k], list[3][k], 0, n->loc) : NULL;
    }
    return out->scale && (out->zero || !x->zero);
}

/* One number for each row, or each column, of a matrix as one for each block of the other axis. */
static graph_value *as_blocks(rewriter *r, const tensor_data *t, int32_t axis, src_loc loc)
{
    const int64_t dims[2] = {axis == 0 ? t->count : 1, axis == 0 ? 1 : t->count};
    return rewrite_constant(r, tensor_reshape(r->c, t, 2, dims), "scales", loc);
}

static bool moved_by_take(rewriter *r, const graph_node *n, const stored *x, moved *out)
{
    const int32_t rank = n->inputs[0]->type.shape.rank, more = n->inputs[1]->type.shape.rank - 1;
    int64_t at = graph_attr_int(n, "axis"), blocked = x->axis;
    at = at < 0 ? at + rank : at;
    if (more < -1) /* of unknown rank */
        return false;
    if (at == x->axis && (rank != 2 || x->block != 0))
        return false;
    if (at == x->axis) {
        blocked = 1 - at;
        if (!dim_is_const(n->inputs[0]->type.shape.dims[blocked], &out->block) || out->block == 0)
            return false;
        out->scale = as_blocks(r, x->scale, x->axis, n->loc);
        out->zero = x->zero ? as_blocks(r, x->zero, x->axis, n->loc) : NULL;
    }
    if (out->block != 0) {
        out->scale = again(r, n, out->scale);
        out->zero = x->zero ? again(r, n, out->zero) : NULL;
    }
    out->axis = blocked < at ? blocked : blocked + more;
    return out->scale && (out->zero || !x->zero);
}

static bool place_scales(rewriter *r, const graph_node *n, const stored *x, moved *out)
{
    const char *op = n->op->name;
    if (x->single)
        return true;
    if (strcmp(op, "transpose") == 0)
        return moved_by_transpose(r, n, x, out);
    if (strcmp(op, "reshape") == 0)
        return moved_by_reshape(n, x, out);
    if (strcmp(op, "strided_slice") == 0)
        return moved_by_slice(r, n, x, out);
    return strcmp(op, "take") == 0 && moved_by_take(r, n, x, out);
}

/* --- the walk --- */

static graph_value *dequantized(rewriter *r, const stored *x, const moved *m, src_loc loc)
{
    graph_value *in[3] = {m->numbers, m->scale, m->zero};
    const attr attrs[3] = {attr_int(r->c, "axis", x->single ? 1 : m->axis), attr_int(r->c, "block_size", m->block),
                           attr_dtype(r->c, "out_dtype", graph_attr_dtype(x->n, "out_dtype"))};
    return m->numbers && !r->failed ? rewrite_emit(r, "qnn.dequantize", m->zero ? 3 : 2, in, 3, attrs, loc) : NULL;
}

/* NULL: n stays. */
static graph_value *sunk(rewriter *r, const graph_node *n)
{
    stored x;
    if (n->n_outputs != 1 || !(n->op->flags & OPF_MOVES) || !read_stored(n->inputs[0], &x))
        return NULL;
    for (uint32_t i = 1; i < n->n_inputs; i++)
        if (n->inputs[i] == n->inputs[0])
            return NULL;
    moved m = {.scale = x.n->inputs[1], .zero = x.zero ? x.n->inputs[2] : NULL, .axis = x.axis, .block = x.block};
    if (!place_scales(r, n, &x, &m))
        return NULL;
    m.numbers = again(r, n, x.n->inputs[0]);
    return dequantized(r, &x, &m, n->loc);
}

/* The parts of a split by its first axis of scales or any other: as slices. */
static bool sunk_split(rewriter *r, const graph_node *n)
{
    stored x;
    int64_t from = 0, extent = 0;
    if (strcmp(n->op->name, "split") != 0 || !read_stored(n->inputs[0], &x) || x.block != 0)
        return false;
    int64_t axis = graph_attr_int(n, "axis");
    axis = axis < 0 ? axis + n->inputs[0]->type.shape.rank : axis;
    for (uint32_t i = 0; i < n->n_outputs; i++)
        if (!shape_is_static(n->outputs[i]->type.shape))
            return false;
    for (uint32_t i = 0; i < n->n_outputs && !r->failed; i++, from += extent) {
        moved m = {.scale = x.n->inputs[1], .zero = x.zero ? x.n->inputs[2] : NULL, .axis = x.axis};
        (void)dim_is_const(n->outputs[i]->type.shape.dims[axis], &extent);
        m.numbers = cut(r, x.n->inputs[0], from, from + extent, 1, axis, n->loc);
        if (!x.single && axis == x.axis) {
            m.scale = cut(r, m.scale, from, from + extent, 1, 0, n->loc);
            m.zero = m.zero ? cut(r, m.zero, from, from + extent, 1, 0, n->loc) : NULL;
        }
        graph_value *y = dequantized(r, &x, &m, n->loc);
        if (!rewrite_stand_for(r, n->outputs[i], y, n->loc))
            return false;
    }
    return true;
}

static bool run(compiler *c, graph_func *f)
{
    rewriter r = {0};
    rewrite_begin(&r, c, f);
    for (uint32_t i = 0; i < f->nodes.len && !r.failed; i++) {
        graph_node *n = f->nodes.data[i];
        rewrite_operands(n);
        if (sunk_split(&r, n))
            continue;
        graph_value *y = sunk(&r, n);
        if (!y || !type_equal(&y->type, &n->outputs[0]->type) || !rewrite_replace(&r, n->outputs[0], y))
            rewrite_keep(&r, n);
    }
    rewrite_end(&r);
    graph_remove_dead(f);
    return !r.failed;
}

bool graph_pass_sink(compiler *c, graph_module *m, const pass_options *o)
{
    (void)o;
    for (uint32_t i = 0; i < m->funcs.len; i++)
        if (!graph_is_fixed(m->funcs.data[i]) && !run(c, m->funcs.data[i]))
            return false;
    return true;
}
