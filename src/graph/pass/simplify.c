/* SPDX-License-Identifier: Apache-2.0 */
/* Rewrites that make a graph smaller and keep its numbers bit for bit: identities, chains of casts, reshapes,
 * transposes. The rules about convolutions are in simplify_nn.c. Rounds go on until nothing changes. */
#include "graph/pass/simplify.h"

#include "graph/pass.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define MAX_ROUNDS 16

static const type *type_of(const graph_value *v)
{
    return &v->type;
}

static bool same_type(const graph_node *n)
{
    return type_equal(type_of(n->inputs[0]), type_of(n->outputs[0]));
}

/* --- identities --- */

static graph_value *first_operand(rewriter *r, graph_node *n)
{
    (void)r;
    return n->inputs[0];
}

/* Of broadcast_to and tile: when the shape stays, every element does. (No rule sees a node whose shape operands are
 * still to be compared when the program runs.) */
static graph_value *same_shape(rewriter *r, graph_node *n)
{
    (void)r;
    return same_type(n) ? n->inputs[0] : NULL;
}

/* The value, which is a constant, is one of the rows. */
static graph_value *expected(rewriter *r, graph_node *n)
{
    (void)r;
    const tensor_data *rows = graph_attr(n, "rows")->u.tensor, *v = graph_constant(n->inputs[1]);
    for (int64_t i = 0, k; i < rows->dims[0]; i++) {
        for (k = 0; k < v->count && tensor_get_i64(v, k) == tensor_get_i64(rows, i * v->count + k); k++)
            ;
        if (k == v->count)
            return n->inputs[0];
    }
    return NULL;
}

static graph_value *only_part(rewriter *r, graph_node *n)
{
    (void)r;
    return (n->n_inputs == 1 || strcmp(n->op->name, "split") == 0) && same_type(n) ? n->inputs[0] : NULL;
}

/* f(f(x)) with f idempotent */
static graph_value *idempotent(rewriter *r, graph_node *n)
{
    (void)r;
    return rewrite_is_op(n->inputs[0], n->op->name) ? n->inputs[0] : NULL;
}

/* f(f(x)) = x */
static graph_value *involution(rewriter *r, graph_node *n)
{
    (void)r;
    return rewrite_is_op(n->inputs[0], n->op->name) ? n->inputs[0]->def->inputs[0] : NULL;
}

/* Floats of type `to` that have all integers of so many bits. */
static bool float_has_integers(uint32_t bits, dtype to)
{
    const uint32_t y = dtype_bits(to);
    return (bits <= 8 && y >= 16 && to != DT_BF16) || (bits <= 16 && y >= 32) || (bits <= 32 && y >= 64);
}

/* Every value of `from` is a value of `to`. */
static bool is_lossless(dtype from, dtype to)
{
    dtype_class a = dtype_get_class(from), b = dtype_get_class(to);
    uint32_t x = dtype_bits(from), y = dtype_bits(to);
    if (from == DT_BOOL)
        return to != DT_BOOL && (dtype_is_int(to) || dtype_is_float(to));
    if (a == DTC_FLOAT)
        return b == DTC_FLOAT && y > x;
    if (b == DTC_FLOAT)
        return float_has_integers(x, to);
    return dtype_is_int(from) && dtype_is_int(to) && y > x && (a == b || a == DTC_UINT);
}

static graph_value *simplify_cast(rewriter *r, graph_node *n)
{
    (void)r;
    graph_value *x = n->inputs[0];
    dtype to = graph_attr_dtype(n, "dtype");
    if (x->type.dt == to)
        return x;
    if (!rewrite_is_op(x, "cast"))
        return NULL;
    graph_value *y = x->def->inputs[0];
    return y->type.dt == to && is_lossless(to, x->type.dt) ? y : NULL;
}

/* A slice of all elements, in order. */
static graph_value *simplify_slice(rewriter *r, graph_node *n)
{
    (void)r;
    int64_t steps[TYPE_MAX_RANK];
    uint32_t len = 0;
    if (!same_type(n) || !shape_is_static(n->outputs[0]->type.shape))
        return NULL;
    if (graph_operand(n, 4) && !graph_constant_ints(n->inputs[4], TYPE_MAX_RANK, steps, &len))
        return NULL;
    for (uint32_t i = 0; i < len; i++)
        if (steps[i] < 0)
            return NULL;
    return n->inputs[0];
}

static graph_value *simplify_pad(rewriter *r, graph_node *n)
{
    (void)r;
    int64_t pads[2 * TYPE_MAX_RANK];
    uint32_t len = 0;
    if (!graph_constant_ints(n->inputs[1], 2 * TYPE_MAX_RANK, pads, &len))
        return NULL;
    for (uint32_t i = 0; i < len; i++)
        if (pads[i] != 0)
            return NULL;
    return n->inputs[0];
}

static graph_value *simplify_where(rewriter *r, graph_node *n)
{
    (void)r;
    double cond = 0;
    if (!rewrite_is_uniform(graph_constant(n->inputs[0]), &cond))
        return NULL;
    return n->inputs[cond != 0 ? 1 : 2];
}

/* --- shapes --- */

static graph_value *emit_reshape(rewriter *r, graph_value *x, const type *to, src_loc loc)
{
    int64_t dims[TYPE_MAX_RANK];
    if (!shape_get(to->shape, dims))
        return NULL;
    graph_value *in[2] = {x, rewrite_constant(r, tensor_from_i64s(r->c, (uint32_t)to->shape.rank, dims), "shape", loc)};
    attr allow = attr_int(r->c, "allowzero", 1); /* extents of 0 are meant */
    return rewrite_emit(r, "reshape", 2, in, shape_count(to->shape) == 0, &allow, loc);
}

static graph_value *simplify_reshape(rewriter *r, graph_node *n)
{
    graph_value *x = n->inputs[0];
    const type *to = type_of(n->outputs[0]);
    int64_t dims[TYPE_MAX_RANK];
    const tensor_data *t = graph_constant(x);
    if (same_type(n))
        return x;
    if (!shape_get(to->shape, dims))
        return NULL;
    if (t && t->count == shape_count(to->shape))
        return rewrite_constant(r, tensor_reshape(r->c, t, (uint32_t)to->shape.rank, dims), x->name, n->loc);
    const bool view = rewrite_is_op(x, "reshape") && graph_is_view(r->c, x->def);
    return view ? emit_reshape(r, x->def->inputs[0], to, n->loc) : NULL;
}

static void read_perm(const graph_node *n, int64_t *out)
{
    const int64_t *perm = NULL;
    int32_t rank = n->inputs[0]->type.shape.rank;
    uint32_t len = graph_attr_ints(n, "perm", &perm);
    for (int32_t i = 0; i < rank; i++)
        out[i] = len == 0 ? rank - 1 - i : perm[i] < 0 ? perm[i] + rank : perm[i];
}

/* Axes of extent 1 may move freely: the bytes stay where they are when the others keep their order. */
static bool moves_nothing(shape in, const int64_t *perm)
{
    int64_t last = -1;
    for (int32_t i = 0; i < in.rank; i++) {
        if (dim_is(in.dims[perm[i]], 1))
            continue;
        if (perm[i] < last)
            return false;
        last = perm[i];
    }
    return true;
}

static graph_value *simplify_transpose(rewriter *r, graph_node *n)
{
    graph_value *x = n->inputs[0];
    int64_t p[TYPE_MAX_RANK], q[TYPE_MAX_RANK];
    int32_t rank = x->type.shape.rank;
    bool identity = true;
    read_perm(n, p);
    for (int32_t i = 0; i < rank; i++)
        identity &= p[i] == i;
    if (identity)
        return x;
    if (moves_nothing(x->type.shape, p))
        return emit_reshape(r, x, type_of(n->outputs[0]), n->loc);
    if (!rewrite_is_op(x, "transpose"))
        return NULL;
    read_perm(x->def, q);
    for (int32_t i = 0; i < rank; i++)
        p[i] = q[p[i]];
    attr perm = attr_ints(r->c, "perm", (uint32_t)rank, p);
    return rewrite_emit(r, "transpose", 1, x->def->inputs, 1, &perm, n->loc);
}

/* --- arithmetic with constants --- */

static bool is_uniform_value(const graph_value *v, double want)
{
    double have = 0;
    return rewrite_is_uniform(graph_constant(v), &have) && have == want && signbit(have) == signbit(want);
}

/* x + 0 is x for integers; for floats only -0.0 leaves a zero's sign alone. */
static bool is_zero_of_add(const graph_value *v)
{
    return is_uniform_value(v, dtype_is_float(v->type.dt) ? -0.0 : 0.0);
}

/* (x op a) op b -> x op (a op b): exact for integers, which wrap. The folder computes a op b. */
static graph_value *regroup(rewriter *r, graph_node *n, uint32_t at)
{
    graph_value *x = n->inputs[1 - at], *b = n->inputs[at];
    if (!dtype_is_int(n->outputs[0]->type.dt) || !graph_constant(b) || graph_constant(x) ||
        !rewrite_is_op(x, n->op->name))
        return NULL;
    if (rewrite_uses(x) != 1)
        return NULL;
    graph_value *const *in = x->def->inputs;
    uint32_t k = graph_constant(in[1]) ? 1 : 0;
    if (!graph_constant(in[k]))
        return NULL;
    graph_value *both[2] = {in[k], b};
    graph_value *sum = rewrite_emit(r, n->op->name, 2, both, 0, NULL, n->loc);
    graph_value *out[2] = {in[1 - k], sum};
    return sum ? rewrite_emit(r, n->op->name, 2, out, 0, NULL, n->loc) : NULL;
}

static graph_value *simplify_add(rewriter *r, graph_node *n)
{
    for (uint32_t i = 0; i < 2; i++) {
        if (is_zero_of_add(n->inputs[i]))
            return n->inputs[1 - i];
        graph_value *v = regroup(r, n, i);
        if (v)
            return v;
    }
    return NULL;
}

/* Whether x is a sum of products of integers, with a bias or without. */
static bool is_sum_of_products(const graph_value *x)
{
    while (rewrite_is_op(x, "add") || rewrite_is_op(x, "subtract"))
        x = x->def->inputs[0]->def ? x->def->inputs[0] : x->def->inputs[1];
    return x->def && (strncmp(x->def->op->name, "qnn.conv", 8) == 0 || strcmp(x->def->op->name, "qnn.matmul") == 0);
}

/* The axis of x that a scale lies along: of its extents all but one are 1. -1: it has one number; -2: another form. */
static int32_t axis_of_scale(const graph_value *x, const graph_value *scale)
{
    const shape s = scale->type.shape;
    int32_t axis = -1, rank = x->type.shape.rank;
    int64_t extent;
    for (int32_t i = 0; i < s.rank; i++) {
        if (dim_is(s.dims[i], 1))
            continue;
        if (axis != -1 || s.rank > rank || !dim_is_const(s.dims[i], &extent))
            return -2;
        axis = rank - s.rank + i;
    }
    return axis;
}

/* cast(f32, sum of products) * scale: a dequantized sum, which is rounded before anything is added to it. */
static graph_value *dequantized_sum(rewriter *r, graph_node *n, uint32_t at)
{
    graph_value *x = n->inputs[at], *scale = n->inputs[1 - at];
    if (!rewrite_is_op(x, "cast") || x->type.dt != DT_F32 || x->def->inputs[0]->type.dt != DT_I32 ||
        !is_sum_of_products(x->def->inputs[0]) || !type_equal(type_of(x), type_of(n->outputs[0])))
        return NULL;
    const int32_t axis = axis_of_scale(x, scale);
    if (axis == -2)
        return NULL;
    if (scale->type.shape.rank > 1) {
        const dim one = axis < 0 ? dim_const(r->c, 1) : x->type.shape.dims[axis];
        const type t = type_tensor(DT_F32, shape_make(r->c, 1, &one));
        scale = emit_reshape(r, scale, &t, n->loc);
    }
    graph_value *in[2] = {x->def->inputs[0], scale};
    attr along = attr_int(r->c, "axis", axis < 0 ? 0 : axis);
    return scale ? rewrite_emit(r, "qnn.dequantize", 2, in, 1, &along, n->loc) : NULL;
}

static graph_value *simplify_multiply(rewriter *r, graph_node *n)
{
    for (uint32_t i = 0; i < 2; i++) {
        if (is_uniform_value(n->inputs[i], 1.0))
            return n->inputs[1 - i];
        graph_value *v = regroup(r, n, i);
        v = v ? v : dequantized_sum(r, n, i);
        if (v)
            return v;
    }
    return NULL;
}

static graph_value *simplify_subtract(rewriter *r, graph_node *n)
{
    (void)r;
    return is_uniform_value(n->inputs[1], 0.0) ? n->inputs[0] : NULL;
}

/* Division by a power of two is multiplication by its reciprocal, exactly, as long as that is a normal number. */
static graph_value *simplify_divide(rewriter *r, graph_node *n)
{
    double v = 0;
    int exponent = 0;
    graph_value *by = n->inputs[1];
    const tensor_data *t = graph_constant(by);
    if (!rewrite_is_uniform(t, &v))
        return NULL;
    if (v == 1.0)
        return n->inputs[0];
    if ((t->dt != DT_F32 && t->dt != DT_F64) || v == 0 || !isfinite(v) || fabs(frexp(v, &exponent)) != 0.5 ||
        abs(exponent) > 120)
        return NULL;
    uint8_t element[8] = {0};
    dtype_store_f64(t->dt, element, 1.0 / v);
    graph_value *in[2] = {n->inputs[0]};
    in[1] = rewrite_constant(r, tensor_splat(r->c, t->dt, t->rank, t->dims, element), by->name, n->loc);
    return rewrite_emit(r, "multiply", 2, in, 0, NULL, n->loc);
}

static graph_value *simplify_power(rewriter *r, graph_node *n)
{
    (void)r;
    return is_uniform_value(n->inputs[1], 1.0) ? n->inputs[0] : NULL;
}

/* --- the walk --- */

static const struct {
    const char *op;
    simplify_rule rule;
} rules[] = {
    {"copy", first_operand},
    {"cast", simplify_cast},
    {"broadcast_to", same_shape},
    {"tile", same_shape},
    {"expect", expected},
    {"concatenate", only_part},
    {"split", only_part},
    {"strided_slice", simplify_slice},
    {"nn.pad", simplify_pad},
    {"where", simplify_where},
    {"reshape", simplify_reshape},
    {"transpose", simplify_transpose},
    {"nn.relu", idempotent},
    {"abs", idempotent},
    {"floor", idempotent},
    {"ceil", idempotent},
    {"round", idempotent},
    {"negative", involution},
    {"logical_not", involution},
    {"bitwise_not", involution},
    {"add", simplify_add},
    {"subtract", simplify_subtract},
    {"multiply", simplify_multiply},
    {"divide", simplify_divide},
    {"power", simplify_power},
    {"einsum", simplify_einsum},
    {"nn.batch_norm", simplify_batch_norm},
    {"nn.conv1d", simplify_conv_pad},
    {"nn.conv2d", simplify_conv_pad},
    {"nn.conv3d", simplify_conv_pad},
    {"nn.avg_pool1d", simplify_avg_pool_pad},
    {"nn.avg_pool2d", simplify_avg_pool_pad},
    {"nn.avg_pool3d", simplify_avg_pool_pad},
    {"nn.max_pool1d", simplify_max_pool_pad},
    {"nn.max_pool2d", simplify_max_pool_pad},
    {"nn.max_pool3d", simplify_max_pool_pad},
};

static simplify_rule rule_for(const graph_node *n)
{
    if (n->n_outputs != 1 || !graph_shape_args_known(n))
        return NULL;
    for (size_t i = 0; i < sizeof rules / sizeof *rules; i++)
        if (strcmp(rules[i].op, n->op->name) == 0)
            return rules[i].rule;
    return NULL;
}

/* Where a result of the function would become a parameter or another result, a copy remains. */
static void leave_copy(rewriter *r, graph_node *n, graph_value *v)
{
    const graph_op *copy = graph_find_op(r->c, "copy");
    if (n->op != copy) {
        n->op = copy;
        n->inputs = arena_copy(&r->c->mem, &v, sizeof v, _Alignof(graph_value *));
        n->n_inputs = 1;
        n->n_attrs = 0;
        r->changed = true;
    }
    rewrite_keep(r, n);
}

static void visit(rewriter *r, graph_node *n)
{
    rewrite_operands(n);
    simplify_leave_out_shape(r, n);
    simplify_rule rule = rule_for(n);
    graph_value *v = rule ? rule(r, n) : NULL;
    if (!v || !type_equal(&v->type, &n->outputs[0]->type))
        rewrite_keep(r, n);
    else if (!rewrite_replace(r, n->outputs[0], v))
        leave_copy(r, n, v);
}

static bool simplify_once(compiler *c, graph_func *f, bool folds, bool *changed)
{
    rewriter r;
    rewrite_begin(&r, c, f);
    r.folds = folds;
    for (uint32_t i = 0; i < f->nodes.len; i++)
        visit(&r, f->nodes.data[i]);
    rewrite_end(&r);
    graph_remove_dead(f);
    *changed = r.changed;
    return !r.failed;
}

bool graph_pass_simplify(compiler *c, graph_module *m, const pass_options *o)
{
    for (uint32_t i = 0; i < m->funcs.len; i++) {
        bool changed = !graph_is_fixed(m->funcs.data[i]);
        for (int round = 0; changed && round < MAX_ROUNDS; round++)
            if (!simplify_once(c, m->funcs.data[i], o->opt_level >= 2, &changed))
                return false;
    }
    return true;
}
