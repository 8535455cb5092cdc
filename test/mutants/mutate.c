/* SPDX-License-Identifier: Apache-2.0 */
/* Each change is a row of `changes`: it looks for a place by chance and does nothing where there is none. Operands stay
 * behind the nodes that make them and attributes of their kind, so that the text can be read back; whether the graph
 * still means something is for the compiler to say. */
#include "mutate.h"

#include <string.h>

#define COUNT(a) (sizeof(a) / sizeof *(a))

typedef struct mutation {
    compiler *c;
    graph_func *f;
    uint64_t *state;
} mutation;

uint32_t chance(uint64_t *state, uint32_t n)
{
    uint64_t z = *state += 0x9e3779b97f4a7c15u; /* splitmix64 */
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return (uint32_t)((z ^ z >> 31) >> 16) % n;
}

static uint32_t pick(mutation *x, uint32_t n)
{
    return chance(x->state, n);
}

static graph_node *some_node(mutation *x)
{
    return x->f->nodes.len > 0 ? x->f->nodes.data[pick(x, x->f->nodes.len)] : NULL;
}

/* --- numbers --- */

static int64_t near_int(mutation *x, int64_t v)
{
    static const int64_t some[] = {0, 1, -1, 2, -2, 3, 4, 7, 16, 1000, INT32_MAX, INT64_MIN, INT64_MAX};
    switch (pick(x, 6)) {
    case 0: return v < INT64_MAX ? v + 1 : v;
    case 1: return v > INT64_MIN ? v - 1 : v;
    case 2: return v > INT64_MIN ? -v : v;
    case 3: return some[pick(x, COUNT(some))];
    default: return some[pick(x, 6)];
    }
}

static double near_float(mutation *x, double v)
{
    static const double some[] = {0.0, 1.0, -1.0, 0.5, 2.0, 1e-7, 1e10, -3.0};
    return pick(x, 3) == 0 ? -v : some[pick(x, COUNT(some))];
}

/* Small, so that what is accepted is soon computed. */
static int64_t some_extent(mutation *x, int64_t v)
{
    static const int64_t some[] = {0, 1, 2, 3, 4, 5, 7, 8, 9, 16, 17, 33};
    if (pick(x, 3) == 0)
        return some[pick(x, COUNT(some))];
    return pick(x, 2) ? v + 1 : v > 0 ? v - 1 : 1;
}

static dtype some_dtype(mutation *x)
{
    for (;;) {
        dtype dt = (dtype)pick(x, DT_COUNT);
        if (dtype_usable(dt))
            return dt;
    }
}

/* --- types --- */

static bool is_static(const type *t)
{
    return t->kind == TYPE_TENSOR && shape_is_static(t->shape) && t->shape.rank <= 6;
}

static graph_value *some_param(mutation *x)
{
    graph_value *v = x->f->params.len > 0 ? x->f->params.data[pick(x, x->f->params.len)] : NULL;
    return v && is_static(&v->type) ? v : NULL;
}

/* One extent; half of the time wherever it stands in the parameters, since extents agree for a reason. */
static void change_extent(mutation *x)
{
    graph_value *v = some_param(x);
    int64_t dims[TYPE_MAX_RANK];
    if (!v || v->type.shape.rank == 0)
        return;
    shape_get(v->type.shape, dims);
    int64_t from = dims[pick(x, (uint32_t)v->type.shape.rank)], to = some_extent(x, from);
    bool everywhere = pick(x, 2) == 0;
    for (uint32_t i = 0; i < x->f->params.len; i++) {
        graph_value *p = x->f->params.data[i];
        if ((p != v && !everywhere) || !is_static(&p->type))
            continue;
        shape_get(p->type.shape, dims);
        for (int32_t k = 0; k < p->type.shape.rank; k++)
            if (dims[k] == from) {
                dims[k] = to;
                if (!everywhere)
                    break;
            }
        p->type = type_static(x->c, p->type.dt, (uint32_t)p->type.shape.rank, dims);
    }
}

static void change_rank(mutation *x)
{
    graph_value *v = some_param(x);
    int64_t dims[TYPE_MAX_RANK];
    if (!v)
        return;
    uint32_t rank = (uint32_t)v->type.shape.rank, at = pick(x, rank + 1u);
    shape_get(v->type.shape, dims);
    if (rank > 0 && pick(x, 2)) {
        at %= rank;
        memmove(dims + at, dims + at + 1, (rank - at - 1) * sizeof *dims);
        rank--;
    } else {
        memmove(dims + at + 1, dims + at, (rank - at) * sizeof *dims);
        dims[at] = pick(x, 2) ? 1 : 2;
        rank++;
    }
    v->type = type_static(x->c, v->type.dt, rank, dims);
}

/* Of one parameter, or of all that have its dtype. */
static void change_dtype(mutation *x)
{
    graph_value *v = some_param(x);
    if (!v)
        return;
    dtype from = v->type.dt, to = some_dtype(x);
    bool everywhere = pick(x, 2) == 0;
    for (uint32_t i = 0; i < x->f->params.len; i++) {
        graph_value *p = x->f->params.data[i];
        if (p == v || (everywhere && p->type.kind == TYPE_TENSOR && p->type.dt == from))
            p->type.dt = to;
    }
}

/* --- attributes --- */

/* Words that some attribute takes: most fit none, which the compiler must say. */
static const char *some_word(mutation *x)
{
    static const char *const words[] = {
        "none", "tanh", "max", "avg", "constant", "reflect", "edge", "wrap", "nearest", "linear", "cubic", "floor",
        "ceil", "half_pixel", "asymmetric", "align_corners", "pytorch_half_pixel", "tf_crop_and_resize",
        "round_prefer_floor", "round_prefer_ceil", "add", "mul", "min", "forward", "reverse", "bidirectional",
        "bilinear", "bicubic", "zeros", "border", "reflection", "mean", "sum", "DCR", "CRD", "NCHW", "NHWC", "NCHW4c"};
    return words[pick(x, COUNT(words))];
}

static attr changed_list(mutation *x, const attr *old)
{
    int64_t ints[TYPE_MAX_RANK + 1];
    double floats[TYPE_MAX_RANK + 1];
    bool is_int = old->kind == ATTR_INTS;
    uint32_t n = old->n < TYPE_MAX_RANK ? old->n : TYPE_MAX_RANK, at = n > 0 ? pick(x, n) : 0;
    if (n > 0 && is_int)
        memcpy(ints, old->u.ints, n * sizeof *ints);
    else if (n > 0)
        memcpy(floats, old->u.floats, n * sizeof *floats);
    uint32_t how = n == 0 ? 1 : pick(x, 5);
    if (how == 0) {
        n--;
    } else if (how == 1) {
        ints[n] = near_int(x, 1);
        floats[n++] = near_float(x, 1);
    } else if (is_int) {
        ints[at] = near_int(x, ints[at]);
    } else {
        floats[at] = near_float(x, floats[at]);
    }
    return is_int ? attr_ints(x->c, old->name, n, ints) : attr_floats(x->c, old->name, n, floats);
}

static const tensor_data *changed_tensor(mutation *x, const tensor_data *t);

static bool changed_attr(mutation *x, const attr *old, attr *out)
{
    switch (old->kind) {
    case ATTR_INT: *out = attr_int(x->c, old->name, near_int(x, old->u.i)); return true;
    case ATTR_FLOAT: *out = attr_float(x->c, old->name, near_float(x, old->u.f)); return true;
    case ATTR_STRING: *out = attr_string(x->c, old->name, some_word(x)); return true;
    case ATTR_DTYPE: *out = attr_dtype(x->c, old->name, some_dtype(x)); return true;
    case ATTR_INTS:
    case ATTR_FLOATS: *out = changed_list(x, old); return true;
    case ATTR_TENSOR: *out = attr_tensor(x->c, old->name, changed_tensor(x, old->u.tensor)); return true;
    case ATTR_STRINGS:
    case ATTR_FUNC: return false;
    }
    return false;
}

static void change_attr(mutation *x)
{
    graph_node *n = some_node(x);
    attr a;
    if (!n || n->op->n_attrs == 0 || strcmp(n->op->name, "constant") == 0)
        return;
    const attr *old = graph_attr(n, n->op->attrs[pick(x, n->op->n_attrs)].name);
    if (old && changed_attr(x, old, &a))
        graph_set_attr(x->f, n, a);
}

/* --- constants --- */

static void change_element(mutation *x, dtype dt, uint8_t *at)
{
    if (dtype_is_float(dt))
        dtype_store_f64(dt, at, near_float(x, dtype_load_f64(dt, at)));
    else if (dt == DT_BOOL)
        *at ^= 1;
    else
        dtype_store_i64(dt, at, near_int(x, dtype_load_i64(dt, at)));
}

/* The same type; some elements differ. */
static const tensor_data *changed_tensor(mutation *x, const tensor_data *t)
{
    if (t->count == 0 || !dtype_usable(t->dt))
        return t;
    size_t size = dtype_bytes(t->dt), n = t->kind == TENSOR_SPLAT ? 1 : (size_t)t->count;
    uint8_t *data = arena_array(&x->c->mem, uint8_t, n * size);
    memcpy(data, t->data, n * size);
    for (uint32_t i = 0, times = 1 + pick(x, 2); i < times; i++)
        change_element(x, t->dt, data + size * pick(x, (uint32_t)n));
    return t->kind == TENSOR_SPLAT ? tensor_splat(x->c, t->dt, t->rank, t->dims, data)
                                   : tensor_dense(x->c, t->dt, t->rank, t->dims, data);
}

static graph_value *some_constant(mutation *x)
{
    for (uint32_t i = 0, at = x->f->nodes.len ? pick(x, x->f->nodes.len) : 0; i < x->f->nodes.len; i++) {
        const graph_node *n = x->f->nodes.data[(at + i) % x->f->nodes.len];
        if (strcmp(n->op->name, "constant") == 0)
            return n->outputs[0];
    }
    return NULL;
}

static void change_constant(mutation *x)
{
    graph_value *v = some_constant(x);
    if (v)
        graph_set_attr(x->f, v->def, attr_tensor(x->c, "value", changed_tensor(x, graph_constant(v))));
}

/* A constant that the program's caller gives from now on. */
static void constant_to_param(mutation *x)
{
    graph_value *v = some_constant(x);
    if (v && graph_constant(v)->count <= 4096)
        graph_replace_uses(x->f, v, graph_add_param(x->f, "given", tensor_type(x->c, graph_constant(v))));
}

/* The other way round: mostly what is small and integer, which is where values decide about shapes. */
static void param_to_constant(mutation *x)
{
    graph_value *v = some_param(x);
    int64_t dims[TYPE_MAX_RANK];
    if (!v || !dtype_usable(v->type.dt) || shape_count(v->type.shape) > 64)
        return;
    shape_get(v->type.shape, dims);
    size_t n = (size_t)shape_count(v->type.shape), size = dtype_bytes(v->type.dt);
    uint8_t *data = arena_array(&x->c->mem, uint8_t, n * size + 1);
    for (size_t i = 0; i < n; i++) {
        dtype_store_i64(v->type.dt, data + i * size, (int64_t)pick(x, 4));
        if (v->type.dt != DT_BOOL && pick(x, 4) == 0)
            change_element(x, v->type.dt, data + i * size);
    }
    const tensor_data *t = tensor_dense(x->c, v->type.dt, (uint32_t)v->type.shape.rank, dims, data);
    graph_value *made = graph_add_constant(x->f, t, "fixed", src_loc_none());
    graph_node *node = made->def;
    memmove(x->f->nodes.data + 1, x->f->nodes.data, (x->f->nodes.len - 1) * sizeof(graph_node *));
    x->f->nodes.data[0] = node; /* before all uses */
    graph_replace_uses(x->f, v, made);
}

/* --- operands and operators --- */

/* A value that node number `end` could read; of the type of `like` when there is one. */
static graph_value *some_value(mutation *x, uint32_t end, const type *like)
{
    graph_value *found = NULL;
    for (uint32_t tries = 0; tries < 12; tries++) {
        uint32_t at = pick(x, x->f->params.len + end + 1u);
        if (at < x->f->params.len) {
            found = x->f->params.data[at];
        } else if (at - x->f->params.len < end) {
            const graph_node *n = x->f->nodes.data[at - x->f->params.len];
            found = n->n_outputs > 0 ? n->outputs[pick(x, n->n_outputs)] : found;
        }
        if (found && like && type_equal(&found->type, like))
            return found;
    }
    return found;
}

static void change_operand(mutation *x)
{
    if (x->f->nodes.len == 0)
        return;
    uint32_t at = pick(x, x->f->nodes.len);
    graph_node *n = x->f->nodes.data[at];
    if (n->n_inputs == 0)
        return;
    graph_value **in = &n->inputs[pick(x, n->n_inputs)];
    graph_value *v = some_value(x, at, pick(x, 4) && *in ? &(*in)->type : NULL);
    *in = pick(x, 12) == 0 ? NULL : v ? v : *in;
}

static bool takes(const graph_op *op, const graph_node *n)
{
    bool fits = (op->flags & OPF_CALL) == 0 && strcmp(op->name, "constant") != 0 &&
                op->min_in <= (int32_t)n->n_inputs && (op->max_in < 0 || (int32_t)n->n_inputs <= op->max_in) &&
                op->min_out <= (int32_t)n->n_outputs && (op->max_out < 0 || (int32_t)n->n_outputs <= op->max_out);
    for (uint32_t i = 0; fits && i < op->n_attrs; i++)
        fits = op->defaults[i].name != NULL || graph_attr(n, op->attrs[i].name) != NULL;
    return fits;
}

/* Another operator of the same arity, of the same class three times in four; attributes that it knows too stay. */
static void change_operator(mutation *x)
{
    graph_node *n = some_node(x);
    if (!n || (n->op->flags & OPF_CALL) != 0)
        return;
    bool same_class = pick(x, 4) != 0;
    for (uint32_t i = 0, count = graph_op_count(x->c), at = pick(x, count); i < count; i++) {
        const graph_op *op = graph_op_at(x->c, (at + i) % count);
        if (op == n->op || !takes(op, n) || (same_class && op->cls != n->op->cls))
            continue;
        const attr *attrs = n->attrs;
        uint32_t n_attrs = n->n_attrs;
        n->op = op;
        n->attrs = NULL;
        n->n_attrs = 0;
        for (uint32_t k = 0; k < n_attrs; k++)
            for (uint32_t d = 0; d < op->n_attrs; d++)
                if (strcmp(op->attrs[d].name, attrs[k].name) == 0 && op->attrs[d].kind == attrs[k].kind)
                    graph_set_attr(x->f, n, attrs[k]);
        return;
    }
}

/* One more node behind the others, whose result is a result of the program. */
static void add_operator(mutation *x)
{
    graph_value *in[3];
    for (uint32_t i = 0, count = graph_op_count(x->c), at = pick(x, count); i < count; i++) {
        const graph_op *op = graph_op_at(x->c, (at + i) % count);
        uint32_t n_in = op->min_in > 0 ? (uint32_t)op->min_in : 1;
        graph_node like = {.op = op, .n_inputs = n_in, .n_outputs = 1};
        if (n_in > COUNT(in) || (op->max_in >= 0 && (int32_t)n_in > op->max_in) || !takes(op, &like))
            continue;
        for (uint32_t k = 0; k < n_in; k++)
            if (!(in[k] = some_value(x, x->f->nodes.len, k > 0 ? &in[0]->type : NULL)))
                return;
        const char *names[] = {"more"};
        graph_node *n = graph_add_node(x->f, op, n_in, in, 0, NULL, 1, names, src_loc_none());
        graph_add_result(x->f, n->outputs[0]);
        return;
    }
}

static void add_result(mutation *x)
{
    graph_node *n = some_node(x);
    if (n && n->n_outputs > 0)
        graph_add_result(x->f, n->outputs[pick(x, n->n_outputs)]);
}

/* --- all of it --- */

static const struct {
    void (*apply)(mutation *x);
    uint32_t weight;
} changes[] = {
    {change_attr, 6},       {change_extent, 6},     {change_rank, 1},    {change_dtype, 3},    {change_constant, 4},
    {constant_to_param, 2}, {param_to_constant, 2}, {change_operand, 3}, {change_operator, 3}, {add_operator, 3},
    {add_result, 1},
};

/* What was inferred no longer holds. What the model declares stays half of the time, right or wrong. */
static void forget_types(mutation *x)
{
    bool keeps = pick(x, 2) == 0;
    for (uint32_t i = 0; i < x->f->nodes.len; i++) {
        const graph_node *n = x->f->nodes.data[i];
        for (uint32_t k = 0; k < n->n_outputs && strcmp(n->op->name, "constant") != 0; k++) {
            n->outputs[k]->type = (type){0};
            if (!keeps)
                n->outputs[k]->declared = (type){0};
        }
    }
}

void mutate(graph_module *m, uint64_t *state)
{
    mutation x = {m->c, graph_module_find(m, "main"), state};
    uint32_t sum = 0;
    if (!x.f)
        return;
    for (size_t i = 0; i < COUNT(changes); i++)
        sum += changes[i].weight;
    for (uint32_t i = 0, times = 1 + pick(&x, 4); i < times; i++) {
        uint32_t at = pick(&x, sum), k = 0;
        for (; at >= changes[k].weight; k++)
            at -= changes[k].weight;
        changes[k].apply(&x);
    }
    forget_types(&x);
}
