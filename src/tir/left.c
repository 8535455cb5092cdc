/* SPDX-License-Identifier: Apache-2.0 */
/* What innermost loops have left undone, for reports (TIR_LEFT): conditions on indices, products without lanes,
 * what C compilers make no vectors of, calls of functions for one number at a time, more vectors than the target has
 * registers. */
#include "tir/build.h"
#include "tir/clone.h"
#include "tir/facts.h"
#include "tir/pass.h"
#include "tir/walk.h"
#include "type/target.h"

/* --- what innermost loops test --- */

static void find_value(void *ctx, tir_expr_ref e)
{
    *(bool *)ctx |= e->kind == TIR_LOAD || e->kind == TIR_EXTERN || dtype_is_float(e->type.dt);
}

static bool on_indices(tir_expr_ref cond)
{
    bool values = false;
    tir_visit_expr(cond, find_value, &values);
    return !values && cond->kind != TIR_INT;
}

static void count_select(void *ctx, tir_expr_ref e)
{
    *(uint32_t *)ctx += e->kind == TIR_SELECT && on_indices(e->args[0]);
}

/* Statements of a tile that make a test in front of them free. */
#define TILE_OF_TEST 16

static void count_if(void *ctx, tir_stmt *s)
{
    *(uint32_t *)ctx += s->kind == TIR_IF && on_indices(s->cond);
}

static void find_loop(void *ctx, tir_stmt *s)
{
    *(bool *)ctx |= s->kind == TIR_FOR;
}

/* --- functions of the C library, which takes one number at a time --- */

static bool is_library_function(tir_op op)
{
    switch (op) {
    case TIR_EXP:
    case TIR_DECAY:
    case TIR_LOG:
    case TIR_SIN:
    case TIR_COS:
    case TIR_TAN:
    case TIR_ASIN:
    case TIR_ACOS:
    case TIR_ATAN:
    case TIR_SINH:
    case TIR_COSH:
    case TIR_TANH:
    case TIR_ASINH:
    case TIR_ACOSH:
    case TIR_ATANH:
    case TIR_ERF:
    case TIR_POW:
    case TIR_FMOD:
    case TIR_LOG1P:
    case TIR_EXPM1: return true;
    default: return false;
    }
}

static void count_call(void *ctx, tir_expr_ref e)
{
    *(uint32_t *)ctx += e->kind == TIR_CALL && e->type.lanes == 1 && is_library_function(e->op);
}

/* --- products and registers of innermost loops --- */

#define LEAST_TRIPS 4 /* of a loop for which lanes are worth having */

typedef struct vector_scan {
    compiler *c;
    VEC(tir_stmt *) sums; /* one store for each vector of sums in a register */
    bool product;         /* a scalar one is added to a sum */
} vector_scan;

typedef struct self_scan {
    tir_stmt *store;
    bool adds, multiplies;
} self_scan;

static bool is_same_place(tir_stmt *s, const tir_buffer *b, uint32_t n, tir_expr_ref const *idx)
{
    for (uint32_t i = 0; i < n && s->buffer == b && n == s->n_indices; i++)
        if (!tir_expr_equal(s->indices[i], idx[i]))
            return false;
    return s->buffer == b && n == s->n_indices;
}

static void look_for_self(void *ctx, tir_expr_ref e)
{
    self_scan *x = ctx;
    x->adds |= e->kind == TIR_LOAD && is_same_place(x->store, e->u.buffer, e->n_args, e->args);
    x->multiplies |= tir_is_binary(e, TIR_MUL) && dtype_is_float(e->type.dt);
}

static void scan_store(void *ctx, tir_stmt *s)
{
    vector_scan *v = ctx;
    self_scan x = {.store = s};
    if (s->kind != TIR_STORE || !dtype_is_float(s->value->type.dt))
        return;
    tir_visit_expr(s->value, look_for_self, &x);
    v->product |= x.adds && x.multiplies && s->value->type.lanes == 1;
    for (uint32_t i = 0; i < v->sums.len; i++)
        x.adds &= !is_same_place(v->sums.data[i], s->buffer, s->n_indices, s->indices);
    if (x.adds && s->value->type.lanes > 1 && s->buffer->scope == SCOPE_REG)
        vec_push(&v->c->mem, &v->sums, s);
}

static uint32_t registers_of(tir_expr_ref e, const target *t)
{
    return (e->type.lanes * (uint32_t)dtype_bytes(e->type.dt) + t->vector_bytes - 1) / t->vector_bytes;
}

/* Registers that the largest tile surely takes: its sums, and two operands of a multiply-add. */
static uint32_t count_registers(const vector_scan *v, const target *t)
{
    uint32_t most = 0;
    for (uint32_t i = 0; i < v->sums.len; i++) {
        uint32_t n = 2;
        for (uint32_t k = 0; k < v->sums.len; k++)
            if (v->sums.data[k]->buffer == v->sums.data[i]->buffer)
                n += registers_of(v->sums.data[k]->value, t);
        most = n > most ? n : most;
    }
    return most;
}

/* --- loops of which a C compiler makes no vectors --- */

#define LEAST_PLAIN 16 /* rounds, or a loop is no time; bytes of the shortest vector */

typedef struct plain_scan {
    const target *t;
    const tir_stmt *loop;
    tir_stmt *store; /* that is looked at */
    int64_t rounds;
    bool lanes; /* vectors of ours, or other code */
    bool plain;
} plain_scan;

static void find_lanes(void *ctx, tir_expr_ref e)
{
    plain_scan *x = ctx;
    x->lanes |= e->type.lanes > 1 || e->kind == TIR_INSTR || e->kind == TIR_EXTERN;
}

static void find_arithmetic(void *ctx, tir_expr_ref e)
{
    *(bool *)ctx |= e->kind == TIR_BINOP && dtype_is_float(e->type.dt) && e->op != TIR_MIN && e->op != TIR_MAX;
}

typedef struct read_search {
    const tir_var *v;
    bool found; /* an element of another place in each round */
} read_search;

static void find_read(void *ctx, tir_expr_ref e)
{
    read_search *x = ctx;
    x->found |= e->kind == TIR_LOAD && tir_uses_var(e, x->v);
}

static void find_byte(void *ctx, tir_expr_ref e)
{
    *(bool *)ctx |= e->kind == TIR_LOAD && dtype_bits(e->type.dt) == 8;
}

/* Is an element read whose place another element says? Bytes of tables are looked up by vectors (kernel/lanes). */
static bool follows_data(const plain_scan *x, tir_expr_ref e)
{
    const bool tables = x->t->vector_bytes > LEAST_PLAIN || (x->t->features & TARGET_NEON) != 0;
    read_search r = {.v = x->loop->var};
    if (e->kind != TIR_LOAD || x->store->buffer->scope == SCOPE_REG || (tables && dtype_bits(e->type.dt) == 8))
        return false;
    for (uint32_t i = 0; i < e->n_args; i++)
        tir_visit_expr(e->args[i], find_read, &r);
    return r.found;
}

/* Arithmetic of floats that happens or not, as values are: both at once might raise flags. */
static bool chooses_sums(tir_expr_ref e)
{
    bool sums = false;
    if (e->kind != TIR_SELECT || !dtype_is_float(e->type.dt) || on_indices(e->args[0]))
        return false;
    for (uint32_t i = 1; i < 3; i++)
        tir_visit_expr(e->args[i], find_arithmetic, &sums);
    return sums;
}

/* Does a byte choose among wider numbers? On AArch64 gcc makes no masks of such ones. */
static bool chooses_by_bytes(const plain_scan *x, tir_expr_ref e)
{
    bool bytes = false;
    if (e->kind == TIR_SELECT && (x->t->features & TARGET_NEON) != 0 && dtype_bits(e->type.dt) > 8)
        tir_visit_expr(e->args[0], find_byte, &bytes);
    return bytes;
}

/* The instructions of x86 that round raise no flags, which gcc wants to see. */
static bool rounds(const plain_scan *x, tir_expr_ref e)
{
    return e->kind == TIR_CALL && (x->t->features & TARGET_MADD) != 0 &&
           (e->op == TIR_CEIL || e->op == TIR_FLOOR || e->op == TIR_TRUNC);
}

typedef struct reset_search {
    const tir_buffer *b;
    bool read, found;
} reset_search;

static void find_own_read(void *ctx, tir_expr_ref e)
{
    reset_search *x = ctx;
    x->read |= e->kind == TIR_LOAD && e->u.buffer == x->b;
}

static void find_reset(void *ctx, tir_stmt *s)
{
    reset_search *x = ctx;
    if (s->kind != TIR_STORE || s->buffer != x->b)
        return;
    x->read = false;
    tir_visit_expr(s->value, find_own_read, x);
    x->found |= !x->read;
}

/* A sum begins anew in each round. */
static bool is_reset(const plain_scan *x)
{
    reset_search r = {.b = x->store->buffer};
    tir_visit_stmt(x->loop->body, find_reset, NULL, &r);
    return r.found;
}

/* Is what an earlier round has stored read? Sums of floats have an order, and few bytes fill no vector. */
static bool is_carried(const plain_scan *x, tir_expr_ref e)
{
    bool bytes = false;
    if (e->kind != TIR_LOAD || e->u.buffer != x->store->buffer)
        return false;
    if (!is_same_place(x->store, e->u.buffer, e->n_args, e->args))
        return x->store->buffer->scope != SCOPE_REG;
    for (uint32_t i = 0; i < e->n_args; i++)
        if (tir_uses_var(e->args[i], x->loop->var))
            return false;
    if (!dtype_is_float(e->type.dt))
        tir_visit_expr(x->store->value, find_byte, &bytes);
    return (dtype_is_float(e->type.dt) || (bytes && x->rounds < LEAST_PLAIN)) && !is_reset(x);
}

static void find_plain(void *ctx, tir_expr_ref e)
{
    plain_scan *x = ctx;
    const bool is_long = x->rounds >= LEAST_PLAIN;
    x->plain |= is_carried(x, e) && (is_long || !dtype_is_float(e->type.dt));
    x->plain |= is_long && (follows_data(x, e) || chooses_sums(e) || chooses_by_bytes(x, e) || rounds(x, e));
}

static void find_jump(void *ctx, tir_stmt *s)
{
    plain_scan *x = ctx;
    x->plain |= s->kind == TIR_IF && !on_indices(s->cond) && x->rounds >= LEAST_PLAIN;
}

static void find_stored(void *ctx, tir_stmt *s)
{
    plain_scan *x = ctx;
    if (s->kind != TIR_STORE)
        return;
    x->store = s;
    tir_visit_expr(s->value, find_plain, x);
}

static void find_long_loop(void *ctx, tir_stmt *s)
{
    int64_t n = 0;
    *(bool *)ctx |= s->kind == TIR_FOR && (!tir_is_int(s->extent, &n) || n >= LEAST_TRIPS);
}

/* Of a loop with short ones inside only the jumps are looked at: what these carry begins anew in each round. */
static bool is_plain(const target *t, tir_stmt *loop, bool outer)
{
    plain_scan x = {.t = t, .loop = loop, .rounds = LEAST_PLAIN};
    bool inner = false;
    (void)tir_is_int(loop->extent, &x.rounds);
    tir_visit_stmt(loop->body, find_long_loop, NULL, &inner);
    if (inner || x.rounds < LEAST_TRIPS)
        return false;
    tir_visit_stmt(loop->body, NULL, find_lanes, &x);
    tir_visit_stmt(loop->body, find_jump, NULL, &x);
    if (!outer)
        tir_visit_stmt(loop->body, find_stored, NULL, &x);
    return x.plain && !x.lanes;
}

typedef struct left_count {
    compiler *c;
    const target *t;
    tir_left *left;
} left_count;

static void count_in_loop(void *ctx, tir_stmt *s)
{
    left_count *k = ctx;
    bool outer = false;
    int64_t trips = LEAST_TRIPS;
    if (s->kind != TIR_FOR)
        return;
    tir_visit_stmt(s->body, find_loop, NULL, &outer);
    k->left->plain += k->t->vector_bytes > 0 && is_plain(k->t, s, outer);
    if (outer)
        return;
    uint32_t tests = 0;
    tir_visit_stmt(s->body, count_if, count_select, &tests);
    k->left->guards += tests * TILE_OF_TEST > tir_count_stmts(s->body) ? tests : 0;
    if (k->t->vector_bytes == 0)
        return;
    vector_scan v = {.c = k->c};
    tir_visit_stmt(s->body, scan_store, NULL, &v);
    (void)tir_is_int(s->extent, &trips);
    k->left->scalar += v.product && trips >= LEAST_TRIPS;
    if (trips >= LEAST_TRIPS)
        tir_visit_stmt(s->body, NULL, count_call, &k->left->calls);
    uint32_t used = v.sums.len > 0 ? count_registers(&v, k->t) : 0;
    k->left->beyond += used > k->t->vector_regs ? used - k->t->vector_regs : 0;
}

void tir_count_left(compiler *c, tir_func *f)
{
    left_count k = {c, f->target ? f->target : target_default(), &f->left};
    f->left.guards = f->left.scalar = f->left.plain = f->left.calls = f->left.beyond = 0;
    tir_visit_stmt(f->body, count_in_loop, NULL, &k);
}

/* --- few steps --- */

#define FEW_STEPS 5000 /* of all loops: what they take does not count beside their code */

static int64_t steps_of(const tir_stmt *s)
{
    int64_t n = 1, inner = 0;
    if (!s || (s->kind == TIR_FOR && !tir_is_int(s->extent, &n)))
        return s ? FEW_STEPS + 1 : 0;
    for (uint32_t i = 0; i < s->n_stmts && inner <= FEW_STEPS; i++)
        inner += steps_of(s->stmts[i]);
    inner += steps_of(s->body) + steps_of(s->orelse);
    inner = inner > 0 ? inner : 1;
    return n <= FEW_STEPS && inner <= FEW_STEPS ? n * inner : FEW_STEPS + 1;
}

static void find_floats(void *ctx, tir_expr_ref x)
{
    const dtype dt = x->kind == TIR_ADDRESS ? x->u.buffer->dt : x->type.dt;
    *(bool *)ctx |= dtype_is_float(dt);
}

bool tir_takes_few_steps(const tir_func *f)
{
    bool floats = false;
    tir_visit_stmt(f->body, NULL, find_floats, &floats);
    return f->macs == 0 && floats && steps_of(f->body) <= FEW_STEPS;
}
