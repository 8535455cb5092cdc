/* SPDX-License-Identifier: Apache-2.0 */
/* signed-bytes: if a processor multiplies i8 by i8 with less work than u8 by i8 (type/dot.h), quantized numbers of u8
 * become i8. 128 is subtracted from them and from their zero points, so all sums stay the same. Operators that make or
 * move such numbers are rewritten. A consumer that is not rewritten finds u8 after an addition, and i8 is made from u8
 * for a product whose data comes from elsewhere. Sums and pools that round with their zero point inside have an
 * attribute for such i8 (as_u8). */
#include "graph/op/nn.h"
#include "graph/pass.h"
#include "graph/pass/rewrite.h"
#include "base/ptr_map.h"
#include "type/dot.h"

#include <string.h>

#define OFFSET 128

typedef struct changer {
    rewriter r;
    ptr_map at; /* a value of u8 -> position in `made` */
    VEC(graph_value *) made; /* of i8 */
} changer;

static bool is_u8(const graph_value *v)
{
    return v && v->type.kind == TYPE_TENSOR && v->type.dt == DT_U8;
}

static bool is_one_of(const graph_node *n, const char *const *names)
{
    for (; *names; names++)
        if (strcmp(n->op->name, *names) == 0)
            return true;
    return false;
}

/* A product whose weights are packed for an instruction; of one in blocks of channels they would be, before. */
static bool is_product(const graph_node *n)
{
    static const char *const names[] = {"qnn.conv2d", "qnn.matmul", NULL};
    return is_one_of(n, names) && is_u8(n->inputs[0]) && graph_constant(n->inputs[1]) && !nn_in_blocks(n);
}

static void remember(changer *v, graph_value *of, graph_value *made)
{
    ptr_map_set(&v->at, of, v->made.len);
    vec_push(&v->r.c->mem, &v->made, made);
}

/* NULL: x is not known in i8. */
static graph_value *known(changer *v, graph_value *x)
{
    uint32_t at;
    if (ptr_map_get(&v->at, x, &at))
        return v->made.data[at];
    const tensor_data *t = graph_constant(x);
    if (!t || (t->kind != TENSOR_DENSE && t->count != 1))
        return NULL;
    int8_t *out = arena_array(&v->r.c->mem, int8_t, (size_t)t->count + 1);
    for (int64_t i = 0; i < t->count; i++)
        out[i] = (int8_t)(tensor_get_i64(t, i) - OFFSET);
    graph_value *y = rewrite_constant(&v->r, tensor_dense(v->r.c, DT_I8, t->rank, t->dims, out), "zero", x->def->loc);
    remember(v, x, y);
    return y;
}

static graph_value *as_signed(changer *v, graph_value *x)
{
    graph_value *y = known(v, x);
    if (!y && (y = rewrite_shift(&v->r, x, -OFFSET, DT_I8)))
        remember(v, x, y);
    return y;
}

/* A zero point; one that is left out is 0. */
static graph_value *signed_zero(changer *v, graph_value *x, src_loc loc)
{
    return x ? as_signed(v, x)
             : rewrite_constant(&v->r, tensor_scalar_i64(v->r.c, DT_I8, -OFFSET), "zero", loc);
}

/* n over other operands, of which a zero point says the type. */
static graph_value *again(changer *v, const graph_node *n, uint32_t n_in, graph_value *const *in)
{
    const char *type_name = attr_dtype(v->r.c, "out_dtype", DT_U8).name;
    attr *attrs = arena_array(&v->r.c->mem, attr, n->n_attrs + 1u);
    uint32_t n_attrs = 0;
    for (uint32_t i = 0; i < n_in; i++)
        if (!in[i] && i < n->n_inputs && n->inputs[i])
            return NULL;
    for (uint32_t i = 0; i < n->n_attrs; i++)
        if (n->attrs[i].name != type_name || !is_u8(n->outputs[0]))
            attrs[n_attrs++] = n->attrs[i];
    return rewrite_emit(&v->r, n->op->name, n_in, in, n_attrs, attrs, n->loc);
}

static graph_value *product(changer *v, graph_node *n)
{
    graph_value *in[4] = {as_signed(v, n->inputs[0]), n->inputs[1],
                          signed_zero(v, n->n_inputs > 2 ? n->inputs[2] : NULL, n->loc),
                          n->n_inputs > 3 ? n->inputs[3] : NULL};
    return in[0] && in[2] ? again(v, n, in[3] ? 4 : 3, in) : NULL;
}

/* Operands of such an operator: numbers, and their zero points. */
typedef struct operands {
    const char *op;
    uint32_t data[2], n_data, zeros[3], n_zeros, count;
} operands;

static const operands rows[] = {
    {"qnn.requantize", {0}, 0, {3}, 1, 4},
    {"qnn.add", {0, 2}, 2, {5, 6, 7}, 3, 8},
    {"qnn.mul", {0, 2}, 2, {5, 6, 7}, 3, 8},
    {"qnn.avg_pool1d", {0}, 1, {3, 4}, 2, 5},
    {"qnn.avg_pool2d", {0}, 1, {3, 4}, 2, 5},
    {"qnn.avg_pool3d", {0}, 1, {3, 4}, 2, 5},
    {"qnn.global_avg_pool2d", {0}, 1, {3, 4}, 2, 5},
    {"qnn.dequantize", {0}, 1, {2}, 1, 3},
};

#define MOST 16

/* Arithmetic with zero points. */
static graph_value *arithmetic(changer *v, graph_node *n, const operands *row)
{
    compiler *c = v->r.c;
    graph_value *in[MOST] = {NULL};
    bool any = row->n_data == 0;
    for (uint32_t i = 0; i < n->n_inputs; i++)
        in[i] = n->inputs[i];
    if (n->n_inputs > row->count || (row->n_data == 0 && !is_u8(n->outputs[0])))
        return NULL;
    for (uint32_t i = 0; i < row->n_data; i++) {
        if (!is_u8(in[row->data[i]]))
            return NULL;
        any |= !graph_constant(in[row->data[i]]) && known(v, in[row->data[i]]);
    }
    for (uint32_t i = 0; i < row->n_zeros; i++)
        if (in[row->zeros[i]] && (!graph_constant(in[row->zeros[i]]) || !is_u8(in[row->zeros[i]])))
            return NULL;
    if (!any)
        return NULL;
    for (uint32_t i = 0; i < row->n_data; i++)
        in[row->data[i]] = as_signed(v, in[row->data[i]]);
    for (uint32_t i = 0; i < row->n_zeros; i++)
        in[row->zeros[i]] = signed_zero(v, in[row->zeros[i]], n->loc);
    graph_value *y = again(v, n, row->count, in);
    if (y && graph_attr(n, "as_u8"))
        graph_set_attr(v->r.f, y->def, attr_int(c, "as_u8", 1));
    return y;
}

/* The same operator on other bytes: an order of numbers stays, and what is put beside them changes with them. */
static graph_value *movement(changer *v, graph_node *n)
{
    static const char *const names[] = {"nn.max_pool2d", "concatenate", "reshape", "transpose", "nn.pad",
                                        "strided_slice", NULL};
    graph_value *in[MOST] = {NULL};
    bool pads = strcmp(n->op->name, "nn.pad") == 0, any = false;
    if (!is_one_of(n, names) || n->n_inputs > MOST || (pads && (n->n_inputs < 3 || !n->inputs[2])))
        return NULL;
    for (uint32_t i = 0; i < n->n_inputs; i++) {
        in[i] = n->inputs[i];
        if (!is_u8(in[i]))
            continue;
        any |= !graph_constant(in[i]) && known(v, in[i]);
        if (!known(v, in[i]))
            return NULL;
        in[i] = known(v, in[i]);
    }
    return any ? again(v, n, n->n_inputs, in) : NULL;
}

static graph_value *change(changer *v, graph_node *n)
{
    if (n->n_outputs != 1 || n->n_inputs == 0)
        return NULL;
    if (is_product(n))
        return product(v, n);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (strcmp(n->op->name, rows[i].op) == 0)
            return arithmetic(v, n, &rows[i]);
    return is_u8(n->outputs[0]) ? movement(v, n) : NULL;
}

static bool run(compiler *c, graph_func *f)
{
    changer v = {0};
    ptr_map_init(&v.at, &c->mem);
    rewrite_begin(&v.r, c, f);
    for (uint32_t i = 0; i < f->nodes.len && !v.r.failed; i++) {
        graph_node *n = f->nodes.data[i];
        rewrite_operands(n);
        graph_value *y = change(&v, n), *as_is = y;
        if (y && is_u8(n->outputs[0]) && (as_is = rewrite_shift(&v.r, y, OFFSET, DT_U8)))
            remember(&v, as_is, y);
        if (!as_is || !rewrite_replace(&v.r, n->outputs[0], as_is))
            rewrite_keep(&v.r, n);
        else if (y != as_is)
            rewrite_take_name(y, as_is);
    }
    rewrite_end(&v.r);
    graph_remove_dead(f);
    return !v.r.failed;
}

static bool is_worth_it(const struct target *t, const graph_func *f)
{
    const target_dot *a = target_find_dot(t, DT_U8, DT_I8, true), *b = target_find_dot(t, DT_I8, DT_I8, true);
    if (!b || (a && a->operations <= b->operations) || graph_is_fixed(f))
        return false;
    for (uint32_t i = 0; i < f->nodes.len; i++)
        if (is_product(f->nodes.data[i]))
            return true;
    return false;
}

bool graph_pass_signed_bytes(compiler *c, graph_module *m, const pass_options *o)
{
    bool ok = true;
    for (uint32_t i = 0; i < m->funcs.len; i++)
        if (is_worth_it(o->target, m->funcs.data[i]))
            ok &= run(c, m->funcs.data[i]);
    return ok;
}
