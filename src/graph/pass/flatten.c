/* SPDX-License-Identifier: Apache-2.0 */
/* flatten-rows: a product of a tensor [B, L, K] with one matrix becomes a product of B * L rows. It then reads the
 * matrix once, and its tiles of rows do not end with each batch. Element-wise operators after it also work on the rows,
 * so that they stay the product's epilogue. For other readers the result is a view of [B, L, N]. On microcontrollers it
 * is done for quantized numbers, whose kernel with channels last takes a matrix, and there for one batch as well. */
#include "base/ptr_map.h"
#include "graph/op.h"
#include "graph/pass.h"
#include "graph/pass/rewrite.h"
#include "type/target.h"

#include <string.h>

typedef struct flattener {
    rewriter r;
    bool rows_alone; /* for convert-rows: of quantised numbers, and of one batch, too */
    ptr_map rows_of;         /* value -> its number in `rows` */
    VEC(graph_value *) rows; /* the same elements, [B * L, N] */
} flattener;

/* Rows of a tensor of rank 3 or more, whose last axis is a row; NULL: it is none, or has too few batches. */
static dim rows_in(const flattener *f, const graph_value *v)
{
    const shape *s = &v->type.shape;
    int64_t known[TYPE_MAX_RANK], batches = 1, n = 0;
    bool open = false;
    if (v->type.kind != TYPE_TENSOR || s->rank < 3 || (f->rows_alone && !shape_get(*s, known)))
        return NULL;
    for (int32_t i = 0; i + 2 < s->rank; i++) {
        open |= !dim_is_const(s->dims[i], &n);
        if (!open && !i64_mul(batches, n, &batches))
            return NULL;
    }
    const bool enough = open || batches > (f->rows_alone ? 0 : 1);
    return enough && !dim_is(s->dims[s->rank - 1], 0) ? rewrite_rows(f->r.c, &v->type) : NULL;
}

/* NULL: after an error. */
static graph_value *as_rows(flattener *f, graph_value *v, src_loc loc)
{
    uint32_t at = 0;
    if (ptr_map_get(&f->rows_of, v, &at))
        return f->rows.data[at];
    const dim dims[2] = {rows_in(f, v), v->type.shape.dims[v->type.shape.rank - 1]};
    graph_value *x = rewrite_reshape(&f->r, v, 2, dims, loc);
    ptr_map_set(&f->rows_of, v, f->rows.len);
    vec_push(&f->r.c->mem, &f->rows, x);
    return x;
}

/* A kernel makes it, of which a view can be taken; it is no result, of which none can. */
static bool has_views(const graph_value *v)
{
    return v->def && !graph_constant(v);
}

static bool is_result(const graph_node *n)
{
    return (n->outputs[0]->mark & MARK_RESULT) != 0;
}

static bool is_one(const graph_value *v)
{
    return v->type.kind == TYPE_TENSOR && shape_is_static(v->type.shape) && shape_count(v->type.shape) == 1;
}

/* [B, L, K] by one matrix; of quantised numbers without a zero point for each row. */
static bool is_product(const flattener *f, const graph_node *n)
{
    const char *op = n->op->name;
    const bool known = strcmp(op, "qnn.matmul") == 0 || (!f->rows_alone && strcmp(op, "nn.matmul") == 0);
    if (!known || graph_attr_int(n, "transpose_a") != 0 || !(f->rows_alone || has_views(n->inputs[0])) ||
        n->inputs[1]->type.kind != TYPE_TENSOR || n->inputs[1]->type.shape.rank != 2 ||
        !rows_in(f, n->inputs[0]))
        return false;
    for (uint32_t i = 2; i < n->n_inputs; i++)
        if (n->inputs[i] && !is_one(n->inputs[i]) && (i == 2 || n->inputs[i]->type.shape.rank > 2))
            return false;
    return true;
}

/* An operand that is the same for all rows. */
static bool is_of_rows(const graph_value *v)
{
    return v->type.kind == TYPE_TENSOR && (v->type.shape.rank == 0 || v->type.shape.rank == 1);
}

static bool has_shape_of(const graph_value *v, const graph_value *y)
{
    return v->type.kind == TYPE_TENSOR && shape_equal(v->type.shape, y->type.shape);
}

/* Some operand has a number for each index of an axis that rows do not keep. */
static bool counts_axes(const graph_node *n)
{
    if (!graph_attr(n, "axis"))
        return strcmp(n->op->name, "nn.batch_norm") == 0;
    const int32_t rank = n->outputs[0]->type.shape.rank;
    const int64_t axis = graph_attr_int(n, "axis");
    bool each = false;
    for (uint32_t i = 0; i < n->n_inputs; i++)
        each |= n->inputs[i] && !is_one(n->inputs[i]) && is_of_rows(n->inputs[i]);
    return each && axis != -1 && axis != rank - 1;
}

/* Element by element, behind something that is rows already. */
static bool is_epilogue(const flattener *f, const graph_node *n)
{
    bool any = false;
    uint32_t at = 0;
    bool plain = n->op->cls <= CLASS_BROADCAST && n->op->effect == EFFECT_PURE && n->n_outputs == 1 &&
                 (n->op->flags & ~(OPF_COMMUTATIVE | OPF_SUM)) == 0;
    if (!plain || counts_axes(n) || !rows_in(f, n->outputs[0]))
        return false;
    for (uint32_t i = 0; i < n->n_inputs; i++) {
        const graph_value *v = n->inputs[i];
        bool same = v && has_shape_of(v, n->outputs[0]);
        if (v && !(same ? has_views(v) : is_of_rows(v)))
            return false;
        any |= same && ptr_map_get(&f->rows_of, v, &at);
    }
    return any;
}

/* n on rows, and a view of the result in n's shape. */
static graph_value *on_rows(flattener *f, const graph_node *n)
{
    rewriter *r = &f->r;
    graph_value **in = arena_array(&r->c->mem, graph_value *, n->n_inputs), *y = n->outputs[0];
    bool product = is_product(f, n);
    for (uint32_t i = 0; i < n->n_inputs; i++) {
        bool rows = n->inputs[i] && (product ? i == 0 : has_shape_of(n->inputs[i], y));
        in[i] = rows ? as_rows(f, n->inputs[i], n->loc) : n->inputs[i];
        if (n->inputs[i] && !in[i])
            return NULL;
    }
    const uint32_t n_attrs = n->n_attrs;
    attr *attrs = arena_copy(&r->c->mem, n->attrs, n_attrs * sizeof *attrs, _Alignof(attr));
    for (uint32_t i = 0; i < n_attrs; i++)
        if (attrs[i].name == attr_int(r->c, "axis", 1).name)
            attrs[i] = attr_int(r->c, "axis", 1);
    graph_value *x = rewrite_emit(r, n->op->name, n->n_inputs, in, n_attrs, attrs, n->loc);
    const shape *whole = &y->type.shape;
    graph_value *out = x ? rewrite_reshape(r, x, (uint32_t)whole->rank, whole->dims, n->loc) : NULL;
    if (!out)
        return NULL;
    ptr_map_set(&f->rows_of, out, f->rows.len);
    vec_push(&r->c->mem, &f->rows, x);
    return out;
}

static bool run(compiler *c, graph_func *func, bool rows_alone)
{
    flattener f = {.rows_alone = rows_alone};
    rewrite_begin(&f.r, c, func);
    ptr_map_init(&f.rows_of, &c->mem);
    for (uint32_t i = 0; i < func->nodes.len && !f.r.failed; i++) {
        graph_node *n = func->nodes.data[i];
        rewrite_operands(n);
        bool rows = n->n_outputs > 0 && (f.rows_alone || !is_result(n)) && (is_product(&f, n) || is_epilogue(&f, n));
        graph_value *y = rows ? on_rows(&f, n) : NULL;
        if (!y || !rewrite_replace(&f.r, n->outputs[0], y))
            rewrite_keep(&f.r, n);
    }
    rewrite_end(&f.r);
    return !f.r.failed;
}

bool graph_pass_flatten(compiler *c, graph_module *m, const pass_options *o)
{
    bool ok = true, lanes = o->target->vector_bytes > 0, small = graph_pass_rows_takes(o->target);
    for (uint32_t i = 0; i < m->funcs.len && (lanes || small); i++)
        if (!graph_is_fixed(m->funcs.data[i]))
            ok &= run(c, m->funcs.data[i], small);
    return ok;
}
