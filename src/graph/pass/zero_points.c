/* SPDX-License-Identifier: Apache-2.0 */
/* fold-zero-points: convolutions and products of quantised numbers with constant weights become plain products of bytes
 * by i8, which processors have instructions for (type/dot.h). The weights' zero points are taken off them where the
 * result fits; what the data's adds is the same for each output channel: its product with the sum of the weights is
 * taken off the bias. A border then has to be there, because it stands for the zero point: a pad puts it in, unless it
 * is 0. Numbers of 16 bits become i16 there, u16 as 32768 less, and so do their weights, whose products with sums in
 * i32 have an instruction. */
#include "graph/op/nn.h"
#include "graph/pass.h"
#include "graph/pass/qnn.h"
#include "base/ptr_map.h"
#include "type/dot.h"

#include <string.h>

typedef struct folder {
    rewriter r;
    const struct target *target;
    ptr_map moved; /* a sum with the part of the bias that is made here -> position in `sums` */
    VEC(graph_value *) sums;
    ptr_map halves; /* data of u16 -> position in `made` of the same as i16 */
    VEC(graph_value *) made;
} folder;

/* A convolution or product: its weights, line by line of the result's channels. */
typedef struct lines {
    graph_node *n;
    bool is_conv;
    const tensor_data *w;
    int64_t count, next; /* lines, and elements from one to the next */
    dtype to;            /* what weights and data become */
} lines;

#define U16_LESS 32768 /* u16 as i16 */

/* Whether the target multiplies numbers of dt, after this pass, by weights of *to, and sums fit. */
static bool has_row(const struct target *t, const graph_node *n, dtype *to)
{
    const dtype dt = n->inputs[0]->type.dt;
    const bool wide = dt == DT_I16 || dt == DT_U16;
    *to = wide ? DT_I16 : DT_I8;
    return n->outputs[0]->type.dt == DT_I32 && target_find_dot(t, wide ? DT_I16 : dt, *to, false);
}

static bool read_lines(const struct target *t, graph_node *n, lines *out)
{
    dtype to;
    *out = (lines){.n = n, .is_conv = strcmp(n->op->name, "qnn.conv2d") == 0};
    if (!out->is_conv && strcmp(n->op->name, "qnn.matmul") != 0)
        return false;
    const tensor_data *w = out->w = graph_dense_constant(n->inputs[1], out->is_conv ? 4 : 2);
    if (!w || !dtype_is_byte(w->dt) || !has_row(t, n, &to))
        return false;
    if (out->is_conv) {
        if (strcmp(graph_attr_string(n, "kernel_layout"), "OIHW") != 0 || nn_in_blocks(n))
            return false;
        *out = (lines){n, true, w, w->dims[0], w->count / w->dims[0], to};
        return true;
    }
    if (strcmp(graph_attr_string(n, "weight_layout"), "KN") != 0 || graph_attr_int(n, "transpose_a") != 0)
        return false;
    bool rows = graph_attr_int(n, "transpose_b") != 0;
    int64_t k = w->dims[rows ? 1 : 0], columns = w->dims[rows ? 0 : 1];
    *out = (lines){n, false, w, columns, rows ? k : 1, to};
    return true;
}

/* A zero point that is constant, one for each line or one for all; `t` NULL: 0. */
static bool read_zeros(const graph_value *v, int64_t count, const tensor_data **t)
{
    *t = v ? graph_constant(v) : NULL;
    return !v || (*t && ((*t)->count == 1 || (*t)->count == count));
}

static int64_t zero_at(const tensor_data *t, int64_t i)
{
    return t ? tensor_get_i64(t, t->count == 1 ? 0 : i) : 0;
}

/* The data of a convolution or product of 16 bits as i16: the same numbers, or 32768 less. */
static graph_value *as_signed(folder *v, graph_value *x, src_loc loc)
{
    compiler *c = v->r.c;
    uint32_t at = 0;
    if (x->type.dt != DT_U16)
        return x;
    if (ptr_map_get(&v->halves, x, &at))
        return v->made.data[at];
    attr wide = attr_dtype(c, "dtype", DT_I32), narrow = attr_dtype(c, "dtype", DT_I16);
    graph_value *pair[2] = {rewrite_emit(&v->r, "cast", 1, &x, 1, &wide, loc),
                            rewrite_constant(&v->r, tensor_scalar_i64(c, DT_I32, U16_LESS), "less", loc)};
    graph_value *y = pair[0] && pair[1] ? rewrite_emit(&v->r, "subtract", 2, pair, 0, NULL, loc) : NULL;
    y = y ? rewrite_emit(&v->r, "cast", 1, &y, 1, &narrow, loc) : NULL;
    if (y) {
        ptr_map_set(&v->halves, x, v->made.len);
        vec_push(&c->mem, &v->made, y);
    }
    return y;
}

/* A constant for each line, in the shape that the result adds. */
static graph_value *line_constant(folder *v, const lines *l, const int32_t *numbers)
{
    const int64_t dims[3] = {l->count, 1, 1};
    const tensor_data *t = tensor_dense(v->r.c, DT_I32, l->is_conv ? 3 : 1, dims, numbers);
    return rewrite_constant(&v->r, t, "bias", l->n->loc);
}

/* x, the data of the convolution n, with its border, `fill` in it. */
static graph_value *bordered(folder *v, const graph_node *n, graph_value *x, int64_t fill)
{
    const int64_t *p = NULL;
    graph_attr_ints(n, "pads", &p);
    const int64_t all[8] = {0, 0, p[0], p[1], 0, 0, p[2], p[3]};
    return rewrite_pad(&v->r, x, all, tensor_scalar_i64(v->r.c, x->type.dt, fill), n->loc);
}

/* What the data's zero point, which a run computes, adds to each line. */
static graph_value *computed_part(folder *v, const lines *l, graph_value *zero, const int64_t *sums)
{
    compiler *c = v->r.c;
    int32_t *numbers = arena_array(&c->mem, int32_t, (size_t)l->count);
    for (int64_t i = 0; i < l->count; i++)
        numbers[i] = (int32_t)sums[i];
    attr to = attr_dtype(c, "dtype", DT_I32);
    graph_value *wide = rewrite_emit(&v->r, "cast", 1, &zero, 1, &to, l->n->loc);
    graph_value *in[2] = {wide, line_constant(v, l, numbers)};
    return wide ? rewrite_emit(&v->r, "multiply", 2, in, 0, NULL, l->n->loc) : NULL;
}

/* n of these operands, without zero points; a border that the data has already is no attribute. */
static graph_value *emit_plain(folder *v, const graph_node *n, graph_value *const in[2], bool has_border)
{
    compiler *c = v->r.c;
    attr *attrs = arena_array(&c->mem, attr, n->n_attrs);
    uint32_t n_attrs = 0;
    for (uint32_t i = 0; i < n->n_attrs; i++)
        if (!has_border || n->attrs[i].name != attr_ints(c, "pads", 0, NULL).name)
            attrs[n_attrs++] = n->attrs[i];
    return in[0] ? rewrite_emit(&v->r, n->op->name, 2, in, n_attrs, attrs, n->loc) : NULL;
}

/* Whether the zero points are such as this pass takes off; *computed: a run finds that of the data. */
static bool may_fold(const graph_node *n, const lines *l, const tensor_data **x_zero, const tensor_data **w_zero,
                     bool *computed)
{
    const graph_value *of_x = graph_operand(n, 2), *of_w = graph_operand(n, 3);
    *computed = !read_zeros(of_x, 1, x_zero);
    if ((!of_x && !of_w && l->to == DT_I8) || !read_zeros(of_w, l->count, w_zero))
        return false;
    return !*computed || (!l->is_conv && l->to == DT_I8 && shape_count(of_x->type.shape) == 1);
}

/* n without zero points; the part of the bias that stands for them is added. NULL: it stays, or an error. */
static graph_value *fold_node(folder *v, graph_node *n)
{
    compiler *c = v->r.c;
    lines l;
    const tensor_data *x_zero, *w_zero;
    bool computed;
    if (!read_lines(v->target, n, &l) || !may_fold(n, &l, &x_zero, &w_zero, &computed))
        return NULL;
    int64_t *sums = arena_array(&c->mem, int64_t, (size_t)l.count), zx = zero_at(x_zero, 0);
    const tensor_data *w = qnn_centred(c, l.to, l.w, w_zero, l.count, l.next, sums);
    graph_value *in[2] = {w ? as_signed(v, n->inputs[0], n->loc) : NULL, n->inputs[1]};
    if (!in[0])
        return NULL;
    zx -= n->inputs[0]->type.dt == DT_U16 ? U16_LESS : 0;
    bool border = zx != 0 && l.is_conv && nn_has_border(n);
    if (border)
        in[0] = bordered(v, n, in[0], zx);
    if (w_zero || l.w->dt != l.to)
        in[1] = rewrite_constant(&v->r, w, "weights", n->loc);
    graph_value *acc = emit_plain(v, n, in, border);
    if (!acc || (!computed && zx == 0))
        return acc;
    if (computed) {
        graph_value *pair[2] = {acc, computed_part(v, &l, n->inputs[2], sums)};
        return pair[1] ? rewrite_emit(&v->r, "subtract", 2, pair, 0, NULL, n->loc) : NULL;
    }
    int32_t *part = arena_array(&c->mem, int32_t, (size_t)l.count);
    for (int64_t i = 0; i < l.count; i++)
        part[i] = (int32_t)(uint32_t)-(zx * sums[i]);
    graph_value *pair[2] = {acc, line_constant(v, &l, part)}, *y = rewrite_emit(&v->r, "add", 2, pair, 0, NULL, n->loc);
    if (y) {
        ptr_map_set(&v->moved, y, v->sums.len);
        vec_push(&c->mem, &v->sums, y);
    }
    return y;
}

/* The model's own bias behind such a sum: both in one. */
static graph_value *join_bias(folder *v, graph_node *n)
{
    compiler *c = v->r.c;
    uint32_t at = 0;
    if (strcmp(n->op->name, "add") != 0)
        return NULL;
    for (uint32_t i = 0; i < 2; i++) {
        graph_value *sum = n->inputs[i];
        const tensor_data *own = graph_constant(n->inputs[1 - i]);
        if (!ptr_map_get(&v->moved, sum, &at) || rewrite_uses(sum) != 1 || !own)
            continue;
        const tensor_data *part = graph_constant(sum->def->inputs[1]);
        bool same = own->count == part->count && own->rank == part->rank && own->dims[0] == part->dims[0];
        if (own->count != 1 && !same)
            return NULL;
        int32_t *both = arena_array(&c->mem, int32_t, (size_t)part->count);
        for (int64_t k = 0; k < part->count; k++)
            both[k] = (int32_t)(uint32_t)(tensor_get_i64(part, k) + tensor_get_i64(own, own->count == 1 ? 0 : k));
        const tensor_data *t = tensor_dense(c, DT_I32, part->rank, part->dims, both);
        graph_value *in[2] = {sum->def->inputs[0], rewrite_constant(&v->r, t, "bias", n->loc)};
        return rewrite_emit(&v->r, "add", 2, in, 0, NULL, n->loc);
    }
    return NULL;
}

static bool run(compiler *c, graph_func *f, const struct target *t)
{
    folder v = {.target = t};
    ptr_map_init(&v.moved, &c->mem);
    ptr_map_init(&v.halves, &c->mem);
    rewrite_begin(&v.r, c, f);
    for (uint32_t i = 0; i < f->nodes.len && !v.r.failed; i++) {
        graph_node *n = f->nodes.data[i];
        rewrite_operands(n);
        graph_value *y = n->n_outputs == 1 ? join_bias(&v, n) : NULL;
        if (!y && n->n_outputs == 1)
            y = fold_node(&v, n);
        if (y && type_equal(&y->type, &n->outputs[0]->type) && rewrite_replace(&v.r, n->outputs[0], y))
            continue;
        rewrite_keep(&v.r, n);
    }
    rewrite_end(&v.r);
    graph_remove_dead(f);
    return !v.r.failed;
}

bool graph_pass_zero_points(compiler *c, graph_module *m, const pass_options *o)
{
    bool ok = true;
    for (uint32_t i = 0; i < m->funcs.len; i++)
        if (!graph_is_fixed(m->funcs.data[i]))
            ok &= run(c, m->funcs.data[i], o->target);
    return ok;
}
