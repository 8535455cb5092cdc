/* SPDX-License-Identifier: Apache-2.0 */
/* How much work a run is, at most: operations of the loops, and for processors of 32 bits instructions. Compilers
 * decide about the latter: the prices are what gcc and clang make of an operation at -O1 or more where little helps
 * them (an index computed anew for each access, a register saved and loaded again), and of functions of the C library
 * and of arithmetic in software their slow cases (docs/reference/cli.md; test/py/microcontrollers.py compares them with
 * what emulators count). What a kernel takes its row says (such as target/cortex_m/cost.c). */
#include "codegen/c/emit.h"
#include "codegen/c/package.h"

#include <string.h>

#include "tir/build.h"
#include "tir/facts.h"
#include "tir/instr.h"

/* --- instructions of the loop IR --- */

/* What an instruction's row says of its kernel; -1: nothing. Symbols count at most; what is no constant is far: prices
 * are those of the C beside the assembly, then. */
static double of_row(compiler *c, tir_bounds *b, const target *t, tir_expr_ref e)
{
    const tir_intrin *row = e->u.row;
    if (!row->cost)
        return -1;
    tir_intrin_use use = {.row = row,
                          .runs = tir_instr_runs(e),
                          .fast = (t->features & row->features) == row->features,
                          .words = tir_instr_form_of(c, row)->params[0]->align >= 4};
    for (uint32_t i = 0; i < row->n_symbols; i++) {
        tir_expr_ref symbol = tir_instr_arg(e, row->symbols[i].name);
        const tir_range r = symbol ? tir_range_of(b, symbol) : (tir_range){0};
        use.of[i] = r.known_max && r.max < INT32_MAX ? r.max : INT32_MAX;
    }
    return row->cost(&use);
}

static int64_t call_work(const void *ctx, compiler *c, tir_bounds *b, tir_expr_ref e)
{
    const double n = e->kind == TIR_INSTR ? of_row(c, b, ctx, e) : -1;
    return n < 0 || n > 0x1p62 ? -1 : (int64_t)n + 1;
}

/* --- operations --- */

static int64_t expr_operations(const void *ctx, tir_expr_ref e)
{
    (void)ctx;
    return e->n_args > 0 || e->kind == TIR_LOAD;
}

/* A loop compares and counts. */
static int64_t stmt_operations(const void *ctx, const tir_stmt *s)
{
    (void)ctx;
    return s->kind == TIR_FOR ? 2 : 1;
}

/* --- instructions --- */

typedef struct work_prices {
    int64_t step, access, op, multiply, divide, less; /* of 32 bits; less: of a smaller type */
    int64_t wide, wide_multiply, wide_divide;         /* of 64 */
    int64_t number, fused, order, number_divide, convert, root, math; /* of binary32 */
    int64_t far; /* of functions that reduce arguments first, by as many steps as these have exponents */
    int64_t twice, twice_divide, twice_math;                   /* of binary64 */
} work_prices;

/* With a unit for binary32, and without; the latter has no instruction that divides, either. */
static const work_prices with_unit = {
    .step = 4, .access = 1, .op = 1, .multiply = 1, .divide = 12, .less = 1,
    .wide = 4, .wide_multiply = 8, .wide_divide = 500,
    .number = 2, .fused = 2, .order = 5, .number_divide = 3, .convert = 4, .root = 30, .math = 800,
    .far = 2500,
    .twice = 400, .twice_divide = 1000, .twice_math = 30000,
};
static const work_prices in_software = {
    .step = 6, .access = 2, .op = 2, .multiply = 2, .divide = 260, .less = 1,
    .wide = 8, .wide_multiply = 60, .wide_divide = 1600,
    .number = 200, .fused = 900, .order = 70, .number_divide = 600, .convert = 120, .root = 1200, .math = 12000,
    .far = 22000,
    .twice = 500, .twice_divide = 1800, .twice_math = 60000,
};

static const work_prices *prices_of(const target *t)
{
    return (t->features & TARGET_FPU) != 0 ? &with_unit : &in_software;
}

/* How many times an operation on a vector is done. */
static int64_t pieces(const target *t, tir_type of)
{
    int64_t bytes = (int64_t)of.lanes * (int64_t)(dtype_bits(of.dt) < 8 ? 8 : dtype_bits(of.dt)) / 8;
    return of.lanes == 1 ? 1 : (t->features & TARGET_MVE) != 0 ? (bytes + 15) / 16 : 2 * of.lanes;
}

static bool divides(tir_op op)
{
    return op == TIR_DIV || op == TIR_MOD || op == TIR_FLOORDIV || op == TIR_FLOORMOD;
}

static int64_t float_work(const work_prices *p, tir_op op, bool is_double)
{
    if (op == TIR_MIN || op == TIR_MAX || tir_op_is_compare(op))
        return is_double ? p->twice : p->order;
    if (divides(op) || op == TIR_SQRT)
        return is_double ? p->twice_divide : op == TIR_SQRT ? p->root : p->number_divide;
    return is_double ? p->twice : p->number;
}

static int64_t integer_work(const work_prices *p, tir_op op, dtype dt)
{
    int64_t more = op == TIR_MIN || op == TIR_MAX || tir_op_is_compare(op) || op == TIR_SHL || op == TIR_SHR ? 3 : 1;
    if (dtype_bits(dt) > 32)
        return divides(op) ? p->wide_divide : op == TIR_MUL ? p->wide_multiply : more * p->wide;
    return (divides(op) ? p->divide : op == TIR_MUL ? p->multiply : more * p->op) + (dtype_bits(dt) < 32 ? p->less : 0);
}

static int64_t function_work(const work_prices *p, tir_expr_ref e)
{
    const bool is_double = e->args[0]->type.dt == DT_F64;
    switch (e->op) {
    case TIR_TO_BITS:
    case TIR_FROM_BITS:
    case TIR_ANY_SIGN:
    case TIR_BITNOT: return 2 * p->op;
    case TIR_ABOVE:
    case TIR_BELOW:
    case TIR_AT_LEAST:
    case TIR_AT_MOST: return float_work(p, TIR_MIN, is_double);
    case TIR_FABS:
    case TIR_ISNAN:
    case TIR_ISINF: return 2 * p->order;
    case TIR_SQRT: return float_work(p, e->op, is_double);
    case TIR_RINT:
    case TIR_FLOOR:
    case TIR_CEIL:
    case TIR_TRUNC:
    case TIR_LDEXP: return is_double ? p->twice : p->convert + 4 * p->order;
    case TIR_APART:
    case TIR_RARE: return 0;
    case TIR_HIGH: return p->wide_multiply;
    case TIR_DOUBLED: return p->wide_multiply + p->wide;
    case TIR_SHIFTED: return 10 * p->op;
    case TIR_SCALED: return 4 * p->wide_multiply + 40 * p->wide; /* products of words, shifts of 64 bits */
    case TIR_FMA: return is_double ? 6 * p->twice : p->fused; /* in software wider, and rounded once */
    case TIR_SIN:
    case TIR_COS:
    case TIR_TAN:
    case TIR_FMOD: return is_double ? p->twice_math : p->far;
    default: return is_double ? p->twice_math : p->math;
    }
}

static int64_t cast_work(const work_prices *p, tir_expr_ref e)
{
    const dtype from = e->args[0]->type.dt, to = e->type.dt;
    if (from == DT_F64 || to == DT_F64)
        return 2 * p->twice;
    if (dtype_is_float(from) || dtype_is_float(to)) /* what is out of range and no number is told apart first */
        return (dtype_bits(from) > 32 || dtype_bits(to) > 32 ? 2 * p->convert + 60 : p->convert) +
               (dtype_is_float(from) ? 2 * p->order : 0);
    return dtype_bits(to) > 32 ? 2 * p->op : p->op;
}

static int64_t binary_work(const work_prices *p, tir_expr_ref e)
{
    const dtype dt = e->args[0]->type.dt;
    return dtype_is_float(dt) ? float_work(p, e->op, dt == DT_F64) : integer_work(p, e->op, dt);
}

static bool is_half(dtype dt)
{
    return dtype_is_float(dt) && dtype_bits(dt) == 16;
}

static int64_t scalar_work(const work_prices *p, tir_expr_ref e)
{
    const int64_t words = dtype_bits(e->type.dt) > 32 ? 2 : 1;
    switch (e->kind) {
    case TIR_INT:
    case TIR_FLOAT:
    case TIR_VAR: return 0;
    case TIR_LOAD: return words * p->access + (is_half(e->type.dt) ? p->convert + 20 : 0);
    case TIR_BINOP: return binary_work(p, e);
    case TIR_NOT: return p->op;
    case TIR_CAST: return cast_work(p, e);
    case TIR_SELECT: return 3 * words * p->op;
    case TIR_CALL: return function_work(p, e);
    case TIR_ADDRESS: return 2 * p->op;
    case TIR_RAMP:
    case TIR_BROADCAST: return p->op;
    case TIR_INSTR:
    case TIR_EXTERN: break;
    }
    return 0;
}

static int64_t expr_instructions(const void *ctx, tir_expr_ref e)
{
    const target *t = ctx;
    return pieces(t, e->type) * scalar_work(prices_of(t), e);
}

static int64_t stmt_instructions(const void *ctx, const tir_stmt *s)
{
    const target *t = ctx;
    const work_prices *p = prices_of(t);
    if (s->kind == TIR_STORE)
        return pieces(t, s->value->type) * ((dtype_bits(s->value->type.dt) > 32 ? 2 : 1) * p->access + p->less);
    return s->kind == TIR_FOR ? p->step : 2 * p->op;
}

/* --- halves of the slots in which a processor with vectors starts instructions, for estimates --- */

enum { DIVISION_SLOTS = 10, FUNCTION_SLOTS = 20, FIXED_SLOTS = 8 };

/* Compilers keep register tiles in registers, and take the arithmetic of indices out of loops or into addresses. */
static int64_t expr_slots(const void *ctx, tir_expr_ref e)
{
    const target *t = ctx;
    const int64_t vector = t->vector_bytes > 0 ? t->vector_bytes : 8;
    const int64_t bytes = (int64_t)e->type.lanes * (int64_t)dtype_bytes(e->type.dt);
    const int64_t n = e->type.lanes == 1 ? 1 : (bytes + vector - 1) / vector;
    if (e->kind == TIR_LOAD)
        return e->u.buffer->scope == SCOPE_REG ? 0 : 2 * n;
    if (e->n_args == 0 || e->kind == TIR_RAMP || e->kind == TIR_BROADCAST)
        return 0;
    if (e->kind == TIR_CALL)
        return e->op == TIR_FMA ? 2 * n : tir_op_is_fixed(e->op) ? FIXED_SLOTS * n : FUNCTION_SLOTS * n;
    if (e->type.lanes == 1 && !dtype_is_float(e->type.dt))
        return 0;
    return tir_is_binary(e, TIR_DIV) ? DIVISION_SLOTS * n : n;
}

static int64_t stmt_slots(const void *ctx, const tir_stmt *s)
{
    if (s->kind == TIR_FOR)
        return s->for_kind == FOR_UNROLLED ? 0 : 2;
    if (s->kind != TIR_STORE || s->buffer->scope == SCOPE_REG)
        return 0;
    const target *t = ctx;
    const int64_t vector = t->vector_bytes > 0 ? t->vector_bytes : 8;
    const int64_t bytes = (int64_t)s->value->type.lanes * (int64_t)dtype_bytes(s->value->type.dt);
    return s->value->type.lanes == 1 ? 2 : 2 * ((bytes + vector - 1) / vector);
}

double package_operator_slots(compiler *c, const codegen_unit *u, uint32_t op)
{
    const tir_func *f = u->plan->problem->ops.data[op].func;
    const target *t = f->target ? f->target : u->target;
    const tir_prices slots = {t, expr_slots, stmt_slots, call_work};
    const char *why;
    const int64_t halves = tir_most_operations(c, f, &slots, &why);
    return halves < 0 ? -1 : (double)halves / 2;
}

/* --- of a package --- */

/* The run-time, with hooks before and after each operator; each call of a kernel: registers, arguments, its share. */
enum { ONE_RUN = 3000, ONE_OPERATOR = 600, ONE_PART = 150 };

package_work package_operator_work(compiler *c, const codegen_unit *u, uint32_t op)
{
    const tir_func *f = u->plan->problem->ops.data[op].func;
    const target *t = f->target ? f->target : u->target;
    const tir_prices operations = {t, expr_operations, stmt_operations, call_work};
    const tir_prices instructions = {t, expr_instructions, stmt_instructions, call_work};
    const int64_t parts = u->plan->tasks[op].parts;
    const char *why;
    package_work x = {.instructions = -1};
    x.operations = tir_most_operations(c, f, &operations, &why);
    if (x.operations < 0)
        return (package_work){-1, -1, arena_printf(&c->mem, "%s: %s", f->name, why ? why : "too many")};
    if (u->target->address_bits == 32)
        x.instructions = tir_most_operations(c, f, &instructions, &why);
    if (x.instructions < 0 || !i64_add(x.instructions, ONE_OPERATOR + ONE_PART * parts, &x.instructions))
        x.instructions = -1;
    return x;
}

package_work package_most_work(compiler *c, const codegen_unit *u)
{
    const plan_problem *p = u->plan->problem;
    package_work sum = {.instructions = u->target->address_bits == 32 ? ONE_RUN : -1};
    if (p->steps.len > 1)
        return (package_work){-1, -1, "the model branches or loops"};
    for (uint32_t i = 0; i < p->ops.len; i++) {
        const package_work x = package_operator_work(c, u, i);
        if (x.operations < 0)
            return x;
        if (!i64_add(sum.operations, x.operations, &sum.operations))
            return (package_work){-1, -1, arena_printf(&c->mem, "%s: too many", p->ops.data[i].func->name)};
        if (sum.instructions < 0 || x.instructions < 0 ||
            !i64_add(sum.instructions, x.instructions, &sum.instructions))
            sum.instructions = -1;
    }
    return sum;
}
