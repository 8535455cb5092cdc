/* SPDX-License-Identifier: Apache-2.0 */
/* Follows the definitions of integer tensors whose elements are dims. Each value is visited once. What is not
 * understood counts as unknown, which is always right. */
#include "graph/shape_value.h"
#include "base/ptr_map.h"
#include "graph/op.h"

#include <math.h>
#include <string.h>

#define MOST_DEPTH  200u
#define MOST_VALUES 1000u

typedef struct walk {
    compiler *c;
    arena scratch;
    ptr_map seen; /* value -> position in values, with 1 */
    VEC(shape_value *) values;
    uint32_t depth;
} walk;

/* Elements of v; those of what is no small tensor: none. Never NULL. */
static const shape_value *value_of(walk *w, const graph_value *v);

/* --- small tensors --- */

static bool small_dims(const graph_value *v, int64_t *dims)
{
    return v && v->type.kind == TYPE_TENSOR && v->type.shape.rank >= 0 && shape_get(v->type.shape, dims) &&
           shape_count(v->type.shape) >= 0 && shape_count(v->type.shape) <= (int64_t)SHAPE_VALUE_MOST;
}

static dim known_dim(dim d)
{
    return d && !dim_is_unknown(d) ? d : NULL;
}

/* The index whose row-major number is `flat`, and back. */
static void unflatten(int32_t rank, const int64_t *dims, uint32_t flat, int64_t *idx)
{
    for (int32_t i = rank; i-- > 0;) {
        idx[i] = (int64_t)flat % dims[i];
        flat = (uint32_t)((int64_t)flat / dims[i]);
    }
}

static uint32_t flatten(int32_t rank, const int64_t *dims, const int64_t *idx)
{
    int64_t flat = 0;
    for (int32_t i = 0; i < rank; i++)
        flat = flat * dims[i] + idx[i];
    return (uint32_t)flat;
}

/* Element of operand i that broadcasting puts at `flat` of n's result. */
static dim broadcast_at(walk *w, const graph_node *n, uint32_t i, uint32_t flat)
{
    int64_t in[TYPE_MAX_RANK], out[TYPE_MAX_RANK], idx[TYPE_MAX_RANK];
    int32_t rank = n->outputs[0]->type.shape.rank;
    const graph_value *v = n->inputs[i];
    if (!small_dims(v, in) || !shape_get(n->outputs[0]->type.shape, out) || v->type.shape.rank > rank)
        return NULL;
    int32_t lead = rank - v->type.shape.rank;
    unflatten(rank, out, flat, idx);
    for (int32_t a = 0; a < v->type.shape.rank; a++) {
        if (in[a] != 1 && in[a] != out[lead + a])
            return NULL;
        idx[lead + a] = in[a] == 1 ? 0 : idx[lead + a];
    }
    const shape_value *s = value_of(w, v);
    uint32_t at = flatten(v->type.shape.rank, in, idx + lead);
    return at < s->n ? s->at[at] : NULL;
}

/* --- arithmetic --- */

static dim quotient(compiler *c, dim a, dim b, bool floats)
{
    dim zero = dim_const(c, 0), one = dim_const(c, 1);
    if (!dim_never_above(c, one, b))
        return NULL;
    if (!dim_never_above(c, zero, a)) { /* toward zero is down or up */
        dim down = dim_floordiv(c, dim_max(c, a, zero), b);
        dim up = dim_floordiv(c, dim_max(c, dim_sub(c, zero, a), zero), b);
        return floats ? NULL : dim_sub(c, down, up);
    }
    return floats && !dim_is(dim_mod(c, a, b), 0) ? NULL : dim_floordiv(c, a, b);
}

static dim remainder_of(compiler *c, dim a, dim b)
{
    dim zero = dim_const(c, 0); /* by an extent of 0 both give the same, too */
    return dim_never_above(c, zero, a) && dim_never_above(c, zero, b) && !dim_is(b, 0) ? dim_mod(c, a, b) : NULL;
}

/* 1 when a < b, 0 when never; NULL: it depends. */
static dim less(compiler *c, dim a, dim b)
{
    if (dim_never_above(c, dim_add(c, a, dim_const(c, 1)), b))
        return dim_const(c, 1);
    return dim_never_above(c, b, a) ? dim_const(c, 0) : NULL;
}

static dim not(compiler * c, dim a)
{
    int64_t v = 0;
    return a && dim_is_const(a, &v) ? dim_const(c, v == 0) : NULL;
}

static dim equal(compiler *c, dim a, dim b)
{
    if (dim_equal(a, b))
        return dim_const(c, 1);
    dim below = less(c, a, b), above = less(c, b, a);
    return (below && dim_is(below, 1)) || (above && dim_is(above, 1)) ? dim_const(c, 0) : NULL;
}

static dim both(compiler *c, dim a, dim b)
{
    int64_t x = 0, y = 0;
    return dim_is_const(a, &x) && dim_is_const(b, &y) ? dim_const(c, x && y) : NULL;
}

typedef enum scalar {
    S_NONE,
    S_ADD,
    S_SUBTRACT,
    S_MULTIPLY,
    S_DIVIDE,
    S_MOD,
    S_MINIMUM,
    S_MAXIMUM,
    S_EQUAL,
    S_NOT_EQUAL,
    S_LESS,
    S_LESS_EQUAL,
    S_GREATER,
    S_GREATER_EQUAL,
    S_AND,
    S_OR
} scalar;

static const struct {
    const char *op;
    scalar kind;
} scalars[] = {{"add", S_ADD},
               {"subtract", S_SUBTRACT},
               {"multiply", S_MULTIPLY},
               {"divide", S_DIVIDE},
               {"mod", S_MOD},
               {"minimum", S_MINIMUM},
               {"maximum", S_MAXIMUM},
               {"equal", S_EQUAL},
               {"not_equal", S_NOT_EQUAL},
               {"less", S_LESS},
               {"less_equal", S_LESS_EQUAL},
               {"greater", S_GREATER},
               {"greater_equal", S_GREATER_EQUAL},
               {"logical_and", S_AND},
               {"logical_or", S_OR}};

static scalar scalar_of(const char *op)
{
    for (size_t i = 0; i < sizeof scalars / sizeof *scalars; i++)
        if (strcmp(scalars[i].op, op) == 0)
            return scalars[i].kind;
    return S_NONE;
}

static dim apply(compiler *c, scalar kind, dim a, dim b, bool floats)
{
    switch (kind) {
    case S_ADD: return dim_add(c, a, b);
    case S_SUBTRACT: return dim_sub(c, a, b);
    case S_MULTIPLY: return dim_mul(c, a, b);
    case S_DIVIDE: return quotient(c, a, b, floats);
    case S_MOD: return remainder_of(c, a, b);
    case S_MINIMUM: return dim_min(c, a, b);
    case S_MAXIMUM: return dim_max(c, a, b);
    case S_EQUAL: return equal(c, a, b);
    case S_NOT_EQUAL: return not(c, equal(c, a, b));
    case S_LESS: return less(c, a, b);
    case S_LESS_EQUAL: return not(c, less(c, b, a));
    case S_GREATER: return less(c, b, a);
    case S_GREATER_EQUAL: return not(c, less(c, a, b));
    case S_AND: return both(c, a, b);
    case S_OR: {
        dim neither = both(c, not(c, a) ? not(c, a) : a, not(c, b) ? not(c, b) : b);
        return not(c, neither);
    }
    case S_NONE: break;
    }
    return NULL;
}

static void elementwise(walk *w, const graph_node *n, scalar kind, shape_value *out)
{
    bool floats = dtype_is_float(n->inputs[0]->type.dt);
    for (uint32_t i = 0; i < out->n; i++) {
        dim a = broadcast_at(w, n, 0, i), b = broadcast_at(w, n, 1, i);
        out->at[i] = a && b ? apply(w->c, kind, a, b, floats) : NULL;
    }
}

static void choose(walk *w, const graph_node *n, shape_value *out)
{
    for (uint32_t i = 0; i < out->n; i++) {
        int64_t v = 0;
        dim cond = broadcast_at(w, n, 0, i);
        if (cond && dim_is_const(cond, &v))
            out->at[i] = broadcast_at(w, n, v ? 1 : 2, i);
    }
}

/* A reduction to one number. */
static void reduce(walk *w, const graph_node *n, shape_value *out)
{
    const shape_value *x = value_of(w, n->inputs[0]);
    scalar kind = strcmp(n->op->name, "sum") == 0    ? S_ADD
                  : strcmp(n->op->name, "prod") == 0 ? S_MULTIPLY
                  : strcmp(n->op->name, "max") == 0  ? S_MAXIMUM
                                                     : S_MINIMUM;
    dim all = x->n ? x->at[0] : NULL;
    for (uint32_t i = 1; i < x->n && all; i++)
        all = x->at[i] ? apply(w->c, kind, all, x->at[i], false) : NULL;
    if (out->n == 1)
        out->at[0] = all;
}

static void convert(walk *w, const graph_node *n, shape_value *out)
{
    const shape_value *x = value_of(w, n->inputs[0]);
    dtype to = n->outputs[0]->type.dt;
    bool saturates = dtype_is_float(n->inputs[0]->type.dt) && dtype_is_int(to);
    int64_t v = 0;
    for (uint32_t i = 0; i < out->n && i < x->n; i++) {
        out->at[i] = x->at[i];
        if (!x->at[i] || !dim_is_const(x->at[i], &v))
            continue;
        if (to == DT_BOOL)
            out->at[i] = dim_const(w->c, v != 0);
        else if (saturates)
            out->at[i] = dim_min(w->c, dim_max(w->c, x->at[i], dim_const(w->c, dtype_min_int(to))),
                                 dim_const(w->c, dtype_max_int(to)));
    }
}

/* --- what an element type holds --- */

/* Integers up to this one, and down to its negative, are values of the type, and so are all between. */
static int64_t most_exact(dtype dt)
{
    switch (dt) {
    case DT_BF16: return (int64_t)1 << 8;
    case DT_F16: return (int64_t)1 << 11;
    case DT_F32: return (int64_t)1 << 24;
    default: return (int64_t)1 << 53;
    }
}

/* A number as an element of the type: integers wrap, floats would be rounded. */
static dim held_const(compiler *c, dtype dt, int64_t v)
{
    uint64_t element = 0;
    bool whole_range = dt == DT_I64 || (v >= dtype_min_int(dt) && v <= dtype_max_int(dt));
    if (dtype_is_float(dt)) {
        dtype_store_f64(dt, &element, (double)v);
        whole_range = dtype_load_f64(dt, &element) == (double)v && v <= most_exact(DT_F64) && v >= -most_exact(DT_F64);
    } else if (dtype_is_int(dt) && dt != DT_U64 && !whole_range) {
        dtype_store_i64(dt, &element, v);
        return dim_const(c, dtype_load_i64(dt, &element));
    }
    return whole_range ? dim_const(c, v) : NULL;
}

/* d where the type holds it whatever the symbols are; else NULL. A symbol without a bound counts as one that 32 bits
 * hold: before a run it gets a bound, and all this is asked again. */
static dim held(compiler *c, dtype dt, dim d)
{
    int64_t v = 0, most = dtype_is_float(dt) ? most_exact(dt) : dtype_max_int(dt);
    int64_t least = dtype_is_float(dt) ? -most : dtype_min_int(dt);
    if (!d || dt == DT_I64)
        return d;
    if (dim_is_const(d, &v))
        return held_const(c, dt, v);
    bool below = dim_never_above(c, d, dim_const(c, most)) || (dim_bound(d) < 0 && dtype_bits(dt) >= 32);
    return below && dim_never_above(c, dim_const(c, least), d) ? d : NULL;
}

/* --- sources --- */

static void constant(walk *w, const tensor_data *t, shape_value *out)
{
    for (uint32_t i = 0; dtype_usable(t->dt) && i < out->n; i++) {
        double v = dtype_is_float(t->dt) ? tensor_get_f64(t, i) : 0;
        if (!dtype_is_float(t->dt))
            out->at[i] = dim_const(w->c, tensor_get_i64(t, i));
        else if (v == floor(v) && fabs(v) < 9007199254740992.0)
            out->at[i] = dim_const(w->c, (int64_t)v);
    }
}

static void repeat(walk *w, const tensor_data *t, shape_value *out)
{
    shape_value one = {.n = 1};
    constant(w, t, &one);
    for (uint32_t i = 0; i < out->n; i++)
        out->at[i] = one.at[0];
}

static void extents(walk *w, const graph_node *n, shape_value *out)
{
    shape s = n->inputs[0]->type.shape;
    int64_t from = strcmp(n->op->name, "shape_of") == 0 ? graph_attr_int(n, "start") : 0;
    from = from < 0 ? from + s.rank : from;
    from = from < 0 ? 0 : from;
    if (strcmp(n->op->name, "size_of") == 0)
        out->at[0] = known_dim(shape_elements(w->c, s));
    else
        for (uint32_t i = 0; i < out->n && from + i < s.rank; i++)
            out->at[i] = s.dims[from + i];
}

static void range(walk *w, const graph_node *n, shape_value *out)
{
    const shape_value *from = value_of(w, n->inputs[0]), *by = value_of(w, n->inputs[2]);
    for (uint32_t i = 0; i < out->n && from->n == 1 && by->n == 1 && from->at[0] && by->at[0]; i++)
        out->at[i] = dim_add(w->c, from->at[0], dim_mul(w->c, by->at[0], dim_const(w->c, i)));
}

/* --- elements that move --- */

static void same_elements(walk *w, const graph_node *n, shape_value *out)
{
    const shape_value *x = value_of(w, n->inputs[0]);
    if (x->n == out->n)
        memcpy(out->at, x->at, out->n * sizeof *out->at);
}

/* Up to these, floats divide exactly enough; and so they do if a whole number is added to the quotient. */
enum { MOST_EXACT = 1 << 23, MOST_ADDED_TO = 1 << 22, MOST_ADDED = 1 << 11 };

/* Element i of a / by. Where `by` is a power of two, the product with 1 / by has replaced it. */
static dim divided(walk *w, const graph_node *q, uint32_t i, int64_t *by)
{
    const bool product = q && strcmp(q->op->name, "multiply") == 0;
    if (!product && (!q || strcmp(q->op->name, "divide") != 0))
        return NULL;
    if (!product) {
        dim b = broadcast_at(w, q, 1, i);
        return b && dim_is_const(b, by) ? broadcast_at(w, q, 0, i) : NULL;
    }
    for (uint32_t k = 0; k < 2; k++) {
        const tensor_data *t = graph_constant(q->inputs[k]);
        for (*by = 2; t && t->count == 1 && *by < MOST_ADDED; *by *= 2)
            if (tensor_get_f64(t, 0) * (double)*by == 1)
                return broadcast_at(w, q, 1 - k, i);
    }
    return NULL;
}

/* The whole number below or above element i of a quotient of floats, which need not be whole: "sizes that a block
 * divides" are made so. */
static dim rounded_quotient(walk *w, const graph_node *q, uint32_t i, bool up, int64_t most)
{
    int64_t by = 0, largest = most == MOST_EXACT ? most : MOST_ADDED;
    dim a = divided(w, q, i, &by);
    if (!a || by < 1 || by > largest || dim_bound(a) < 0 || dim_bound(a) > most)
        return NULL;
    dim b = dim_const(w->c, by);
    return up ? dim_ceildiv(w->c, a, b) : dim_floordiv(w->c, a, b);
}

/* The same, also behind one more whole number that is added, as in the numbers of windows: both roundings together stay
 * below 1 / b as long as 2 a + b times that number is below 2^24. */
static void rounded(walk *w, const graph_node *n, shape_value *out)
{
    const graph_node *q = n->inputs[0]->def;
    const bool up = strcmp(n->op->name, "ceil") == 0, sum = q && strcmp(q->op->name, "add") == 0;
    same_elements(w, n, out);
    for (uint32_t i = 0; i < out->n; i++) {
        if (!out->at[i])
            out->at[i] = rounded_quotient(w, q, i, up, MOST_EXACT);
        for (uint32_t k = 0; sum && k < 2 && !out->at[i] && shape_count(q->inputs[k]->type.shape) == out->n; k++) {
            int64_t more = 0;
            dim added = broadcast_at(w, q, 1 - k, i);
            dim whole = rounded_quotient(w, q->inputs[k]->def, i, up, MOST_ADDED_TO);
            if (added && whole && dim_is_const(added, &more) && more >= -MOST_ADDED && more <= MOST_ADDED)
                out->at[i] = dim_add(w->c, whole, added);
        }
    }
}

/* The number with the other sign, or without one. */
static void signed_alike(walk *w, const graph_node *n, shape_value *out)
{
    const shape_value *x = value_of(w, n->inputs[0]);
    dim zero = dim_const(w->c, 0);
    const bool negative = strcmp(n->op->name, "negative") == 0;
    for (uint32_t i = 0; i < out->n && i < x->n; i++) {
        dim below = x->at[i] ? dim_sub(w->c, zero, x->at[i]) : NULL;
        out->at[i] = below && !negative ? dim_max(w->c, x->at[i], below) : below;
    }
}

static void take(walk *w, const graph_node *n, shape_value *out)
{
    const shape_value *x = value_of(w, n->inputs[0]), *ix = value_of(w, n->inputs[1]);
    int64_t in[TYPE_MAX_RANK], dims[TYPE_MAX_RANK], ixd[TYPE_MAX_RANK], idx[TYPE_MAX_RANK], at[TYPE_MAX_RANK], v = 0;
    int32_t rank = n->inputs[0]->type.shape.rank, ix_rank = n->inputs[1]->type.shape.rank;
    int64_t axis = graph_attr_int(n, "axis");
    axis = axis < 0 ? axis + rank : axis;
    if (!small_dims(n->inputs[0], in) || !small_dims(n->inputs[1], ixd) || !small_dims(n->outputs[0], dims))
        return;
    for (uint32_t i = 0; i < out->n; i++) {
        unflatten(n->outputs[0]->type.shape.rank, dims, i, idx);
        uint32_t which = flatten(ix_rank, ixd, idx + axis);
        if (which >= ix->n || !ix->at[which] || !dim_is_const(ix->at[which], &v))
            continue;
        v = v < 0 ? v + in[axis] : v;
        if (v < 0 || v >= in[axis])
            continue;
        memcpy(at, idx, (size_t)axis * sizeof *at);
        at[axis] = v;
        for (int64_t a = axis + 1; a < rank; a++)
            at[a] = idx[a + ix_rank - 1];
        out->at[i] = x->at[flatten(rank, in, at)];
    }
}

static void concatenate(walk *w, const graph_node *n, shape_value *out)
{
    int64_t in[TYPE_MAX_RANK], dims[TYPE_MAX_RANK], idx[TYPE_MAX_RANK], axis = graph_attr_int(n, "axis"), start = 0;
    int32_t rank = n->outputs[0]->type.shape.rank;
    axis = axis < 0 ? axis + rank : axis;
    for (uint32_t k = 0; k < n->n_inputs; k++) {
        const shape_value *x = value_of(w, n->inputs[k]);
        if (!small_dims(n->inputs[k], in) || !small_dims(n->outputs[0], dims))
            return;
        for (uint32_t i = 0; i < x->n; i++) {
            unflatten(rank, in, i, idx);
            idx[axis] += start;
            out->at[flatten(rank, dims, idx)] = x->at[i];
        }
        start += in[axis];
    }
}

static bool numbers(walk *w, const graph_node *n, uint32_t i, int64_t *out, uint32_t *len)
{
    const shape_value *s = value_of(w, i < n->n_inputs ? n->inputs[i] : NULL);
    *len = s->n;
    for (uint32_t k = 0; k < s->n; k++)
        if (!s->at[k] || !dim_is_const(s->at[k], &out[k]))
            return false;
    return s->n > 0 && s->n <= TYPE_MAX_RANK;
}

/* The constant axes and steps of a slice, with a start each. */
typedef struct cuts {
    uint32_t len;
    int64_t starts[SHAPE_VALUE_MOST], axes[SHAPE_VALUE_MOST], steps[SHAPE_VALUE_MOST];
} cuts;

/* Operand i, which has as many numbers as there are starts; the numbers in `out` stay if it is not given. */
static bool numbers_for_cuts(walk *w, const graph_node *n, uint32_t i, uint32_t len, int64_t *out)
{
    uint32_t n_out = 0;
    return !graph_operand(n, i) || (numbers(w, n, i, out, &n_out) && n_out == len);
}

/* false: one is not known, an axis does not exist, or a step is far. */
static bool read_cuts(walk *w, const graph_node *n, cuts *out)
{
    const int64_t rank = n->inputs[0]->type.shape.rank, far = SHAPE_VALUE_MOST;
    for (uint32_t k = 0; k < SHAPE_VALUE_MOST; k++) {
        out->axes[k] = k;
        out->steps[k] = 1;
    }
    if (!numbers(w, n, 1, out->starts, &out->len) || !numbers_for_cuts(w, n, 3, out->len, out->axes) ||
        !numbers_for_cuts(w, n, 4, out->len, out->steps))
        return false;
    for (uint32_t k = 0; k < out->len; k++) {
        int64_t *axis = &out->axes[k];
        *axis += *axis < 0 ? rank : 0;
        if (*axis < 0 || *axis >= rank || out->steps[k] < -far || out->steps[k] > far)
            return false;
    }
    return true;
}

/* Where the slice starts along an axis of that extent. */
static int64_t first_of(int64_t start, int64_t step, int64_t extent)
{
    int64_t at = start < -extent ? -extent : start > extent ? extent : start;
    at = at < 0 ? at + extent : at;
    return step < 0 && at >= extent ? extent - 1 : at;
}

/* Of constant starts and steps: where it ends, the result's type knows. */
static void slice(walk *w, const graph_node *n, shape_value *out)
{
    int64_t in[TYPE_MAX_RANK], dims[TYPE_MAX_RANK], idx[TYPE_MAX_RANK];
    int32_t rank = n->inputs[0]->type.shape.rank;
    const shape_value *x = value_of(w, n->inputs[0]);
    cuts cut;
    if (!read_cuts(w, n, &cut) || !small_dims(n->inputs[0], in) || !small_dims(n->outputs[0], dims))
        return;
    for (uint32_t i = 0; i < out->n; i++) {
        unflatten(rank, dims, i, idx);
        bool inside = true;
        for (uint32_t k = 0; k < cut.len; k++) {
            const int64_t a = cut.axes[k], step = cut.steps[k];
            idx[a] = first_of(cut.starts[k], step, in[a]) + idx[a] * step;
            inside &= idx[a] >= 0 && idx[a] < in[a];
        }
        uint32_t from = inside ? flatten(rank, in, idx) : x->n;
        out->at[i] = from < x->n ? x->at[from] : NULL;
    }
}

static void part(walk *w, const graph_node *n, uint32_t which, shape_value *out)
{
    int64_t in[TYPE_MAX_RANK], dims[TYPE_MAX_RANK], idx[TYPE_MAX_RANK], axis = graph_attr_int(n, "axis"), start = 0;
    int32_t rank = n->inputs[0]->type.shape.rank;
    const shape_value *x = value_of(w, n->inputs[0]);
    axis = axis < 0 ? axis + rank : axis;
    for (uint32_t k = 0; k < which; k++) {
        if (!small_dims(n->outputs[k], dims))
            return;
        start += dims[axis];
    }
    if (!small_dims(n->inputs[0], in) || !small_dims(n->outputs[which], dims))
        return;
    for (uint32_t i = 0; i < out->n; i++) {
        unflatten(rank, dims, i, idx);
        idx[axis] += start;
        uint32_t from = idx[axis] < in[axis] ? flatten(rank, in, idx) : x->n;
        out->at[i] = from < x->n ? x->at[from] : NULL;
    }
}

static void transpose(walk *w, const graph_node *n, shape_value *out)
{
    int64_t in[TYPE_MAX_RANK], dims[TYPE_MAX_RANK], idx[TYPE_MAX_RANK], at[TYPE_MAX_RANK];
    const int64_t *perm = NULL;
    uint32_t len = graph_attr_ints(n, "perm", &perm);
    int32_t rank = n->inputs[0]->type.shape.rank;
    const shape_value *x = value_of(w, n->inputs[0]);
    if (!small_dims(n->inputs[0], in) || !small_dims(n->outputs[0], dims))
        return;
    for (uint32_t i = 0; i < out->n && x->n == out->n; i++) {
        unflatten(rank, dims, i, idx);
        for (int32_t a = 0; a < rank; a++) {
            int64_t p = len ? perm[a] : rank - 1 - a;
            at[p < 0 ? p + rank : p] = idx[a];
        }
        out->at[i] = x->at[flatten(rank, in, at)];
    }
}

/* --- the walk --- */

static bool is_one_of(const char *name, const char *list)
{
    const char *at = strstr(list, name);
    size_t len = strlen(name);
    return at && (at == list || at[-1] == ' ') && (at[len] == ' ' || at[len] == 0);
}

static void define(walk *w, const graph_value *v, shape_value *out)
{
    const graph_node *n = v->def;
    const char *op = n->op->name;
    scalar kind = scalar_of(op);
    if (graph_constant(v))
        constant(w, graph_constant(v), out);
    else if (kind != S_NONE)
        elementwise(w, n, kind, out);
    else if (is_one_of(op, "shape_of size_of"))
        extents(w, n, out);
    else if (is_one_of(op, "negative abs"))
        signed_alike(w, n, out);
    else if (is_one_of(op, "floor ceil"))
        rounded(w, n, out);
    else if (is_one_of(op, "reshape copy round expect"))
        same_elements(w, n, out);
    else if (strcmp(op, "cast") == 0)
        convert(w, n, out);
    else if (strcmp(op, "take") == 0)
        take(w, n, out);
    else if (strcmp(op, "concatenate") == 0)
        concatenate(w, n, out);
    else if (strcmp(op, "strided_slice") == 0)
        slice(w, n, out);
    else if (strcmp(op, "split") == 0)
        part(w, n, v->index, out);
    else if (strcmp(op, "transpose") == 0)
        transpose(w, n, out);
    else if (strcmp(op, "where") == 0)
        choose(w, n, out);
    else if (is_one_of(op, "sum prod max min"))
        reduce(w, n, out);
    else if (strcmp(op, "arange") == 0)
        range(w, n, out);
    else if (strcmp(op, "full") == 0)
        repeat(w, graph_attr(n, "value")->u.tensor, out);
    else if (strcmp(op, "broadcast_to") == 0)
        for (uint32_t i = 0; i < out->n; i++)
            out->at[i] = broadcast_at(w, n, 0, i);
}

static const shape_value *value_of(walk *w, const graph_value *v)
{
    static const shape_value nothing = {.n = 0};
    int64_t dims[TYPE_MAX_RANK];
    uint32_t at = 0;
    if (!small_dims(v, dims) || !v->def || w->depth == MOST_DEPTH || w->values.len == MOST_VALUES)
        return &nothing;
    if (ptr_map_get(&w->seen, v, &at))
        return w->values.data[at];
    shape_value *s = arena_new(&w->scratch, shape_value);
    s->n = (uint32_t)shape_count(v->type.shape);
    ptr_map_set(&w->seen, v, w->values.len);
    vec_push(&w->scratch, &w->values, s);
    w->depth++;
    define(w, v, s);
    w->depth--;
    for (uint32_t i = 0; i < s->n; i++)
        s->at[i] = held(w->c, v->type.dt, known_dim(s->at[i]));
    return s;
}

bool graph_shape_value(compiler *c, const graph_value *v, shape_value *out)
{
    walk w = {.c = c};
    *out = (shape_value){0};
    int64_t dims[TYPE_MAX_RANK];
    if (!small_dims(v, dims) || !v->def)
        return false;
    arena_init(&w.scratch, &c->mem);
    ptr_map_init(&w.seen, &w.scratch);
    *out = *value_of(&w, v);
    arena_free(&w.scratch);
    bool any = out->n == 0;
    for (uint32_t i = 0; i < out->n; i++)
        any |= out->at[i] != NULL;
    return any;
}

bool shape_value_is_known(const shape_value *s)
{
    for (uint32_t i = 0; i < s->n; i++)
        if (!s->at[i])
            return false;
    return true;
}
