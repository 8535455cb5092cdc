/* SPDX-License-Identifier: Apache-2.0 */
/* Construction of expressions. Constants fold and cheap identities apply here, so that no pass has to clean up after
 * another; what needs ranges is the simplifier's business. Statements: build_stmt.c. */
#include "tir/build.h"
#include "tir/eval.h"
#include "tir/instr.h"
#include "tir/node.h"

#include <assert.h>

tir_type tir_scalar(dtype dt)
{
    return (tir_type){dt, 1};
}

const tir_var *tir_new_var(compiler *c, const char *name, tir_type t)
{
    tir_var *v = arena_new(&c->mem, tir_var);
    *v = (tir_var){.name = intern(c->names, name), .type = t, .id = c->next_id++};
    return v;
}

const tir_buffer *tir_new_buffer(compiler *c, const char *name, dtype dt, uint32_t rank, tir_expr_ref const *extents,
                                 tir_scope s)
{
    tir_buffer *b = arena_new(&c->mem, tir_buffer);
    *b = (tir_buffer){.name = intern(c->names, name), .dt = dt, .rank = rank, .scope = s, .id = c->next_id++};
    b->shape = arena_copy(&c->mem, extents, rank * sizeof *extents, _Alignof(tir_expr_ref));
    return b;
}

const tir_buffer *tir_buffer_static(compiler *c, const char *name, dtype dt, uint32_t rank, const int64_t *dims,
                                    tir_scope s)
{
    tir_expr_ref extents[TIR_MAX_RANK];
    assert(rank <= TIR_MAX_RANK);
    for (uint32_t i = 0; i < rank; i++)
        extents[i] = tir_i64(c, dims[i]);
    return tir_new_buffer(c, name, dt, rank, extents, s);
}

int64_t tir_buffer_count(const tir_buffer *b)
{
    int64_t n = 1, d;
    for (uint32_t i = 0; i < b->rank; i++)
        if (!tir_is_int(b->shape[i], &d) || d < 0 || !i64_mul(n, d, &n))
            return -1;
    return n;
}

tir_expr *tir_node_expr(compiler *c, tir_expr_kind kind, tir_op op, tir_type t, uint32_t n_args,
                        tir_expr_ref const *args)
{
    tir_expr *e = arena_alloc(&c->mem, sizeof *e + n_args * sizeof *args, _Alignof(tir_expr));
    e->kind = kind;
    e->op = op;
    e->type = t;
    e->n_args = n_args;
    if (n_args)
        memcpy(e->args, args, n_args * sizeof *args);
    return e;
}

tir_expr_ref tir_int(compiler *c, dtype dt, int64_t v)
{
    assert(!dtype_is_float(dt));
    tir_expr *e = tir_node_expr(c, TIR_INT, TIR_OP_NONE, tir_scalar(dt), 0, NULL);
    e->u.i = eval_wrap(dt, v);
    return e;
}

tir_expr_ref tir_i64(compiler *c, int64_t v)
{
    return tir_int(c, DT_I64, v);
}

tir_expr_ref tir_float(compiler *c, dtype dt, double v)
{
    assert(dtype_is_float(dt));
    tir_expr *e = tir_node_expr(c, TIR_FLOAT, TIR_OP_NONE, tir_scalar(dt), 0, NULL);
    e->u.f = tir_eval_round(dt, v);
    return e;
}

tir_expr_ref tir_const(compiler *c, dtype dt, double v)
{
    if (dtype_is_float(dt))
        return tir_float(c, dt, v);
    return tir_int(c, dt, dt == DT_BOOL ? v != 0 : eval_f64_to_int(dt, v));
}

tir_expr_ref tir_varref(compiler *c, const tir_var *v)
{
    tir_expr *e = tir_node_expr(c, TIR_VAR, TIR_OP_NONE, v->type, 0, NULL);
    e->u.var = v;
    return e;
}

static tir_expr_ref scalar_of(tir_expr_ref e)
{
    return e->kind == TIR_BROADCAST ? e->args[0] : e;
}

bool tir_is_int(tir_expr_ref e, int64_t *out)
{
    e = scalar_of(e);
    if (e->kind != TIR_INT)
        return false;
    *out = e->u.i;
    return true;
}

bool tir_is_const(tir_expr_ref e, int64_t v)
{
    e = scalar_of(e);
    return (e->kind == TIR_INT && e->u.i == v) ||
           (e->kind == TIR_FLOAT && e->u.f == (double)v && !(v == 0 && signbit(e->u.f)));
}

static bool find_extern(tir_expr_ref e)
{
    for (uint32_t i = 0; i < e->n_args; i++)
        if (find_extern(e->args[i]))
            return true;
    return e->kind == TIR_EXTERN || tir_instr_writes(e);
}

bool tir_has_extern(tir_expr_ref e)
{
    return find_extern(e);
}

static tir_type binary_type(tir_op op, tir_type t)
{
    bool is_bool = tir_op_is_compare(op) || op == TIR_AND || op == TIR_OR;
    return (tir_type){is_bool ? DT_BOOL : t.dt, t.lanes};
}

static tir_expr_ref fold_binary(compiler *c, tir_op op, tir_expr_ref a, tir_expr_ref b)
{
    dtype dt = a->type.dt, rt = binary_type(op, a->type).dt;
    if (a->kind == TIR_INT && b->kind == TIR_INT)
        return tir_int(c, rt, tir_eval_int(dt, op, a->u.i, b->u.i));
    if (a->kind != TIR_FLOAT || b->kind != TIR_FLOAT)
        return NULL;
    if (tir_op_is_compare(op))
        return tir_int(c, DT_BOOL, tir_eval_compare(dt, op, a->u.f, b->u.f));
    return tir_float(c, dt, tir_eval_float(dt, op, a->u.f, b->u.f));
}

/* (x + k) + m and (x - k) + m of integers: one constant. */
static tir_expr_ref merge_constants(compiler *c, tir_op op, tir_expr_ref a, tir_expr_ref b)
{
    int64_t k, m;
    dtype dt = a->type.dt;
    bool additive = a->kind == TIR_BINOP && (a->op == TIR_ADD || a->op == TIR_SUB);
    if (!additive || dtype_is_float(dt) || !tir_is_int(b, &m) || !tir_is_int(a->args[1], &k))
        return NULL;
    int64_t sum = eval_wrap(dt, eval_add(a->op == TIR_SUB ? eval_sub(0, k) : k, op == TIR_SUB ? eval_sub(0, m) : m));
    if (sum == 0)
        return a->args[0];
    bool negative = sum < 0 && sum != INT64_MIN;
    tir_expr_ref konst = tir_int(c, dt, negative ? -sum : sum);
    return tir_binary(c, negative ? TIR_SUB : TIR_ADD, a->args[0], konst);
}

static tir_expr_ref identity_add(compiler *c, tir_op op, tir_expr_ref a, tir_expr_ref b)
{
    bool is_float = dtype_is_float(a->type.dt);
    if (is_float) /* x - 0 is exact; x + 0 would turn -0 into 0 */
        return op == TIR_SUB && tir_is_const(b, 0) ? a : NULL;
    if (tir_is_const(b, 0))
        return a;
    if (op == TIR_ADD && tir_is_const(a, 0))
        return b;
    if (op == TIR_SUB && a->kind == TIR_VAR && b->kind == TIR_VAR && a->u.var == b->u.var)
        return tir_broadcast(c, tir_int(c, a->type.dt, 0), a->type.lanes);
    return merge_constants(c, op, a, b);
}

static tir_expr_ref identity_mul(tir_op op, tir_expr_ref a, tir_expr_ref b)
{
    bool is_float = dtype_is_float(a->type.dt);
    if (tir_is_const(b, 1) && op != TIR_MOD && op != TIR_FLOORMOD)
        return a;
    if (op == TIR_MUL && tir_is_const(a, 1))
        return b;
    if (!is_float && op == TIR_MUL && tir_is_const(b, 0) && !tir_has_extern(a))
        return b;
    if (!is_float && op == TIR_MUL && tir_is_const(a, 0) && !tir_has_extern(b))
        return a;
    return NULL;
}

static tir_expr_ref identity_logic(tir_op op, tir_expr_ref a, tir_expr_ref b)
{
    bool is_and = op == TIR_AND;
    if (tir_is_const(a, is_and ? 1 : 0))
        return b;
    if (tir_is_const(b, is_and ? 1 : 0))
        return a;
    if (tir_is_const(a, is_and ? 0 : 1))
        return a;
    return tir_is_const(b, is_and ? 0 : 1) && !tir_has_extern(a) ? b : NULL;
}

/* Sums and multiples of ramps stay ramps, so that the index of a vector access shows its base and stride. */
static tir_expr_ref fold_lanes(compiler *c, tir_op op, tir_expr_ref a, tir_expr_ref b)
{
    uint16_t lanes = a->type.lanes;
    bool ramp_a = a->kind == TIR_RAMP, ramp_b = b->kind == TIR_RAMP, same_a = a->kind == TIR_BROADCAST,
         same_b = b->kind == TIR_BROADCAST, is_sum = op == TIR_ADD || op == TIR_SUB;
    if (same_a && same_b)
        return tir_broadcast(c, tir_binary(c, op, a->args[0], b->args[0]), lanes);
    if (op == TIR_MUL && ramp_a && same_b)
        return tir_ramp(c, tir_mul(c, a->args[0], b->args[0]), tir_mul(c, a->args[1], b->args[0]), lanes);
    if (op == TIR_MUL && same_a && ramp_b)
        return fold_lanes(c, op, b, a);
    if (op == TIR_ADD && same_a && ramp_b)
        return tir_ramp(c, tir_add(c, a->args[0], b->args[0]), b->args[1], lanes);
    if (is_sum && ramp_a && same_b)
        return tir_ramp(c, tir_binary(c, op, a->args[0], b->args[0]), a->args[1], lanes);
    if (is_sum && ramp_a && ramp_b)
        return tir_ramp(c, tir_binary(c, op, a->args[0], b->args[0]), tir_binary(c, op, a->args[1], b->args[1]), lanes);
    return NULL;
}

static tir_expr_ref try_identity(compiler *c, tir_op op, tir_expr_ref a, tir_expr_ref b)
{
    if (op == TIR_ADD || op == TIR_SUB)
        return identity_add(c, op, a, b);
    if (op == TIR_MUL || op == TIR_DIV || op == TIR_FLOORDIV || op == TIR_MOD || op == TIR_FLOORMOD) {
        bool is_mod = op == TIR_MOD || op == TIR_FLOORMOD;
        if (is_mod && tir_is_const(b, 1) && !tir_has_extern(a))
            return tir_broadcast(c, tir_int(c, a->type.dt, 0), a->type.lanes);
        return identity_mul(op, a, b);
    }
    if (op == TIR_AND || op == TIR_OR)
        return identity_logic(op, a, b);
    return NULL;
}

tir_expr_ref tir_binary(compiler *c, tir_op op, tir_expr_ref a, tir_expr_ref b)
{
    assert(tir_op_is_binary(op) && a->type.dt == b->type.dt);
    uint16_t lanes = a->type.lanes > b->type.lanes ? a->type.lanes : b->type.lanes;
    a = tir_broadcast(c, a, lanes);
    b = tir_broadcast(c, b, lanes);
    tir_expr_ref r = fold_binary(c, op, a, b);
    if (!r && lanes > 1 && !dtype_is_float(a->type.dt))
        r = fold_lanes(c, op, a, b);
    if (!r)
        r = try_identity(c, op, a, b);
    if (r)
        return r;
    return tir_node_expr(c, TIR_BINOP, op, binary_type(op, a->type), 2, (tir_expr_ref[]){a, b});
}

tir_expr_ref tir_add(compiler *c, tir_expr_ref a, tir_expr_ref b)
{
    return tir_binary(c, TIR_ADD, a, b);
}
tir_expr_ref tir_sub(compiler *c, tir_expr_ref a, tir_expr_ref b)
{
    return tir_binary(c, TIR_SUB, a, b);
}
tir_expr_ref tir_mul(compiler *c, tir_expr_ref a, tir_expr_ref b)
{
    return tir_binary(c, TIR_MUL, a, b);
}
tir_expr_ref tir_floordiv(compiler *c, tir_expr_ref a, tir_expr_ref b)
{
    return tir_binary(c, TIR_FLOORDIV, a, b);
}
tir_expr_ref tir_floormod(compiler *c, tir_expr_ref a, tir_expr_ref b)
{
    return tir_binary(c, TIR_FLOORMOD, a, b);
}
tir_expr_ref tir_min(compiler *c, tir_expr_ref a, tir_expr_ref b)
{
    return tir_binary(c, TIR_MIN, a, b);
}
tir_expr_ref tir_max(compiler *c, tir_expr_ref a, tir_expr_ref b)
{
    return tir_binary(c, TIR_MAX, a, b);
}

tir_expr_ref tir_and(compiler *c, tir_expr_ref a, tir_expr_ref b)
{
    if (!a || !b)
        return a ? a : b;
    return tir_binary(c, TIR_AND, a, b);
}

static tir_op negated_compare(tir_op op)
{
    switch (op) {
    case TIR_EQ: return TIR_NE;
    case TIR_NE: return TIR_EQ;
    case TIR_LT: return TIR_GE;
    case TIR_LE: return TIR_GT;
    case TIR_GT: return TIR_LE;
    case TIR_GE: return TIR_LT;
    default: return TIR_OP_NONE;
    }
}

tir_expr_ref tir_not(compiler *c, tir_expr_ref a)
{
    int64_t v;
    assert(a->type.dt == DT_BOOL);
    if (a->kind == TIR_INT && tir_is_int(a, &v))
        return tir_int(c, DT_BOOL, !v);
    if (a->kind == TIR_NOT)
        return a->args[0];
    tir_op op = a->kind == TIR_BINOP ? negated_compare(a->op) : TIR_OP_NONE;
    bool exact = op == TIR_EQ || op == TIR_NE; /* an ordered comparison of NaN is false both ways */
    if (op != TIR_OP_NONE && (exact || !dtype_is_float(a->args[0]->type.dt)))
        return tir_binary(c, op, a->args[0], a->args[1]);
    return tir_node_expr(c, TIR_NOT, TIR_OP_NONE, a->type, 1, &a);
}

static tir_expr_ref fold_cast(compiler *c, dtype dt, tir_expr_ref a)
{
    bool to_float = dtype_is_float(dt);
    if (a->kind == TIR_INT && to_float)
        return tir_float(c, dt, tir_eval_int_to_float(dt, a->type.dt, a->u.i));
    if (a->kind == TIR_INT)
        return tir_int(c, dt, a->u.i);
    if (a->kind == TIR_FLOAT && to_float)
        return tir_float(c, dt, tir_eval_float_to_float(dt, a->u.f));
    if (a->kind == TIR_FLOAT)
        return tir_int(c, dt, dt == DT_BOOL ? a->u.f != 0 : eval_f64_to_int(dt, a->u.f));
    return NULL;
}

tir_expr_ref tir_cast(compiler *c, dtype dt, tir_expr_ref a)
{
    if (a->type.dt == dt)
        return a;
    if (a->kind == TIR_BROADCAST)
        return tir_broadcast(c, tir_cast(c, dt, a->args[0]), a->type.lanes);
    tir_expr_ref r = dtype_usable(dt) ? fold_cast(c, dt, a) : NULL;
    return r ? r : tir_node_expr(c, TIR_CAST, TIR_OP_NONE, (tir_type){dt, a->type.lanes}, 1, &a);
}

bool tir_is_widening(tir_expr_ref e)
{
    if (e->kind != TIR_CAST)
        return false;
    const dtype from = e->args[0]->type.dt, to = e->type.dt;
    return dtype_is_int(from) && dtype_is_int(to) && dtype_min_int(to) <= dtype_min_int(from) &&
           dtype_max_int(to) >= dtype_max_int(from);
}

/* The condition may stay scalar when the sides are vectors: one choice for all lanes. */
tir_expr_ref tir_select(compiler *c, tir_expr_ref cond, tir_expr_ref a, tir_expr_ref b)
{
    int64_t v;
    assert(cond->type.dt == DT_BOOL && a->type.dt == b->type.dt);
    if (cond->kind == TIR_BROADCAST)
        cond = cond->args[0];
    uint16_t lanes = a->type.lanes > b->type.lanes ? a->type.lanes : b->type.lanes;
    lanes = lanes > cond->type.lanes ? lanes : cond->type.lanes;
    a = tir_broadcast(c, a, lanes);
    b = tir_broadcast(c, b, lanes);
    if (tir_is_int(cond, &v))
        return v ? a : b;
    return tir_node_expr(c, TIR_SELECT, TIR_OP_NONE, a->type, 3, (tir_expr_ref[]){cond, a, b});
}

tir_expr_ref tir_load(compiler *c, const tir_buffer *b, uint32_t n, tir_expr_ref const *indices)
{
    uint16_t lanes = 1;
    assert(n == b->rank || n == 1);
    for (uint32_t i = 0; i < n; i++)
        lanes = indices[i]->type.lanes > lanes ? indices[i]->type.lanes : lanes;
    tir_expr *e = tir_node_expr(c, TIR_LOAD, TIR_OP_NONE, (tir_type){b->dt, lanes}, n, indices);
    e->u.buffer = b;
    return e;
}

tir_expr_ref tir_address(compiler *c, const tir_buffer *b, uint32_t n, tir_expr_ref const *indices)
{
    assert(n == b->rank || n <= 1);
    tir_expr *e = tir_node_expr(c, TIR_ADDRESS, TIR_OP_NONE, tir_scalar(DT_HANDLE), n, indices);
    e->u.buffer = b;
    return e;
}

tir_expr_ref tir_node_access(compiler *c, tir_expr_ref e, const tir_buffer *b, uint32_t n, tir_expr_ref const *indices)
{
    return e->kind == TIR_LOAD ? tir_load(c, b, n, indices) : tir_address(c, b, n, indices);
}

/* Only what every host computes alike is folded: no transcendental functions. */
static bool is_exact(tir_op op)
{
    return op == TIR_SQRT || op == TIR_FLOOR || op == TIR_CEIL || op == TIR_RINT || op == TIR_TRUNC || op == TIR_FABS ||
           op == TIR_ISNAN || op == TIR_ISINF || op == TIR_APART;
}

tir_expr_ref tir_call(compiler *c, tir_op op, uint32_t n, tir_expr_ref const *args)
{
    assert(n == tir_op_arity(op) && n > 0 && n <= 3);
    tir_expr_ref a[3] = {NULL};
    tir_type t = args[0]->type;
    for (uint32_t i = 1; i < n; i++)
        t.lanes = args[i]->type.lanes > t.lanes ? args[i]->type.lanes : t.lanes;
    for (uint32_t i = 0; i < n; i++)
        a[i] = tir_broadcast(c, args[i], t.lanes);
    if (op == TIR_BITNOT && a[0]->kind == TIR_INT)
        return tir_int(c, t.dt, t.dt == DT_BOOL ? !a[0]->u.i : ~a[0]->u.i);
    if (op == TIR_RARE && a[0]->kind == TIR_INT)
        return a[0];
    if (tir_op_is_fixed(op) && a[0]->kind == TIR_INT && a[1]->kind == TIR_INT)
        return tir_int(c, t.dt, tir_eval_fixed(op, a[0]->u.i, a[1]->u.i));
    dtype result = tir_op_result(op, t.dt);
    if (is_exact(op) && a[0]->kind == TIR_FLOAT)
        return tir_const(c, result, tir_eval_call(t.dt, op, &a[0]->u.f));
    t = (tir_type){result, tir_op_lanes(op, t.lanes)};
    return tir_node_expr(c, TIR_CALL, op, t, n, a);
}

tir_expr_ref tir_call1(compiler *c, tir_op op, tir_expr_ref a)
{
    return tir_call(c, op, 1, &a);
}

tir_expr_ref tir_extern(compiler *c, const char *name, tir_type t, uint32_t n, tir_expr_ref const *args)
{
    tir_expr *e = tir_node_expr(c, TIR_EXTERN, TIR_OP_NONE, t, n, args);
    e->u.name = intern(c->names, name);
    return e;
}

tir_expr_ref tir_instr(compiler *c, const tir_intrin *row, tir_op op, uint32_t n, tir_expr_ref const *args)
{
    tir_type t = tir_instr_type(row, n, args);
    tir_expr *e = tir_node_expr(c, TIR_INSTR, op, t, n, args);
    e->u.row = row;
    return e;
}

tir_expr_ref tir_string(compiler *c, const char *text)
{
    return tir_extern(c, text, tir_scalar(DT_STRING), 0, NULL);
}

tir_expr_ref tir_ramp(compiler *c, tir_expr_ref base, tir_expr_ref stride, uint16_t lanes)
{
    assert(base->type.dt == stride->type.dt && base->type.lanes == 1 && stride->type.lanes == 1);
    if (lanes == 1)
        return base;
    if (tir_is_const(stride, 0))
        return tir_broadcast(c, base, lanes);
    return tir_node_expr(c, TIR_RAMP, TIR_OP_NONE, (tir_type){base->type.dt, lanes}, 2, (tir_expr_ref[]){base, stride});
}

tir_expr_ref tir_broadcast(compiler *c, tir_expr_ref a, uint16_t lanes)
{
    assert(a->type.lanes == 1 || a->type.lanes == lanes || lanes == 1);
    if (a->type.lanes == lanes || lanes == 1)
        return a;
    return tir_node_expr(c, TIR_BROADCAST, TIR_OP_NONE, (tir_type){a->type.dt, lanes}, 1, &a);
}

tir_expr_ref tir_node_rebuild(compiler *c, tir_expr_ref e, tir_expr_ref const *args)
{
    switch (e->kind) {
    case TIR_INT:
    case TIR_FLOAT:
    case TIR_VAR: return e;
    case TIR_BINOP: return tir_binary(c, e->op, args[0], args[1]);
    case TIR_NOT: return tir_not(c, args[0]);
    case TIR_CAST: return tir_cast(c, e->type.dt, args[0]);
    case TIR_SELECT: return tir_select(c, args[0], args[1], args[2]);
    case TIR_LOAD:
    case TIR_ADDRESS: return tir_node_access(c, e, e->u.buffer, e->n_args, args);
    case TIR_CALL: return tir_call(c, e->op, e->n_args, args);
    case TIR_EXTERN: return tir_extern(c, e->u.name, e->type, e->n_args, args);
    case TIR_INSTR: return tir_instr(c, e->u.row, e->op, e->n_args, args);
    case TIR_RAMP: return tir_ramp(c, args[0], args[1], e->type.lanes);
    case TIR_BROADCAST: return tir_broadcast(c, args[0], e->type.lanes);
    }
    return e;
}
