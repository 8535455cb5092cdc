/* SPDX-License-Identifier: Apache-2.0 */
/* From loop IR to the interpreter's program. An expression without loads is computed once, in the prologue of the
 * innermost loop that it depends on; loads are computed where they stand. Statements and loops: interp_stmt.c. */
#include "tir/interp_compile.h"
#include "tir/build.h"
#include "tir/instr.h"

#include <string.h>

/* --- registers --- */

uint32_t ic_reg(ic *k, uint32_t lanes)
{
    size_t bytes = (size_t)lanes * 8 + (lanes > 1 ? 64 : 0); /* the pad keeps strips from sharing cache sets */
    if (k->reg_bytes + bytes > UINT32_MAX / 2) {
        k->ok = false;
        return 0;
    }
    uint32_t at = (uint32_t)k->reg_bytes;
    k->reg_bytes += bytes;
    return at;
}

static ic_value *new_value(ic *k, uint32_t lanes, uint32_t depth, bool stable)
{
    ic_value *v = arena_new(k->mem, ic_value);
    *v = (ic_value){.reg = ic_reg(k, lanes), .lanes = lanes, .depth = depth, .stable = stable};
    return v;
}

instr *ic_emit(ic *k, code_list *to, instr_fn fn, dtype dt, uint32_t lanes)
{
    vec_push(k->mem, &to->list, (instr){.fn = fn, .mask = NO_REG, .dt = dt, .lanes = lanes});
    return &vec_last(&to->list);
}

/* A constant in `lanes` lanes, written into the register image before the run. */
static ic_value *constant(ic *k, tir_expr_ref e, uint32_t lanes)
{
    ic_value *v = new_value(k, lanes, 0, true);
    ic_const konst = {.reg = v->reg, .lanes = lanes, .kind = reg_class_of(e->type.dt)};
    if (e->kind == TIR_INT)
        konst.i = e->u.i;
    else
        konst.f = e->u.f;
    vec_push(k->mem, &k->constants, konst);
    return v;
}

/* Where code that depends on things up to `depth` goes: a prologue when it is stable, else the place at hand. */
static code_list *place(ic *k, uint32_t depth, bool stable)
{
    return stable ? k->levels.data[depth] : k->here;
}

/* --- properties of expressions, remembered --- */

static const char yes = 1, no = 0;

/* Or a call, which must happen where it stands, as often as it stands there. */
static bool has_load(ic *k, tir_expr_ref e)
{
    if (e->kind == TIR_LOAD || e->kind == TIR_EXTERN || e->kind == TIR_INSTR)
        return true;
    if (e->n_args == 0)
        return false;
    const void *known = tir_map_get(&k->loads, e);
    if (known)
        return known == &yes;
    bool found = false;
    for (uint32_t i = 0; i < e->n_args && !found; i++)
        found = has_load(k, e->args[i]);
    tir_map_put(&k->loads, e, found ? &yes : &no);
    return found;
}

/* Whether e differs between the lanes of the strip, or must be read where it stands. */
static bool varies(ic *k, tir_expr_ref e)
{
    if (e->kind == TIR_LOAD)
        return true;
    if (e->kind == TIR_VAR)
        return e->u.var == k->strip->var || tir_map_get(&k->strip->lets, e->u.var);
    if (e->n_args == 0)
        return false;
    const void *known = tir_map_get(&k->strip->varying, e);
    if (known)
        return known == &yes;
    bool found = false;
    for (uint32_t i = 0; i < e->n_args && !found; i++)
        found = varies(k, e->args[i]);
    tir_map_put(&k->strip->varying, e, found ? &yes : &no);
    return found;
}

bool ic_affine(ic *k, tir_expr_ref e, int64_t *out_step)
{
    int64_t x, y;
    *out_step = 0;
    if (!varies(k, e))
        return true;
    if (e->kind == TIR_VAR && e->u.var == k->strip->var) {
        *out_step = 1;
        return true;
    }
    if (e->kind != TIR_BINOP || (e->op != TIR_ADD && e->op != TIR_SUB && e->op != TIR_MUL))
        return false;
    if (e->op == TIR_MUL) {
        bool left = tir_is_int(e->args[0], &x);
        if (!left && !tir_is_int(e->args[1], &x))
            return false;
        return ic_affine(k, e->args[left ? 1 : 0], &y) && i64_mul(x, y, out_step);
    }
    if (!ic_affine(k, e->args[0], &x) || !ic_affine(k, e->args[1], &y))
        return false;
    return e->op == TIR_ADD ? i64_add(x, y, out_step) : !__builtin_sub_overflow(x, y, out_step);
}

/* --- what is known already --- */

static ic_value *find_unstable(ic *k, tir_expr_ref e)
{
    for (ic_mask *m = k->mask; m; m = m->up) {
        ic_value *v = (ic_value *)(uintptr_t)tir_map_get(&m->values, e);
        if (v)
            return v;
    }
    return NULL;
}

void ic_push_mask(ic *k, ic_mask *m, uint32_t reg)
{
    m->reg = reg;
    m->up = k->mask;
    tir_map_init(&m->values, k->mem);
    k->mask = m;
}

void ic_pop_mask(ic *k)
{
    k->mask = k->mask->up;
}

/* --- emission of one operation --- */

static bool needs_fixup(tir_expr_ref e)
{
    if (e->kind == TIR_CALL)
        return e->op == TIR_BITNOT || dtype_is_float(e->type.dt);
    if (e->kind != TIR_BINOP)
        return false;
    return e->op == TIR_ADD || e->op == TIR_SUB || e->op == TIR_MUL || e->op == TIR_DIV || e->op == TIR_FLOORDIV ||
           e->op == TIR_SHL;
}

static instr_fn fn_of(tir_expr_ref e)
{
    switch (e->kind) {
    case TIR_BINOP: return interp_binary(e->args[0]->type.dt, e->op);
    case TIR_NOT: return interp_not;
    case TIR_CAST: return interp_cast(e->type.dt, e->args[0]->type.dt);
    case TIR_SELECT: return interp_select(e->type.dt);
    case TIR_CALL: return interp_call(e->args[0]->type.dt, e->op);
    case TIR_RAMP: return interp_ramp;
    case TIR_BROADCAST: return interp_splat(e->type.dt);
    case TIR_INT:
    case TIR_FLOAT:
    case TIR_VAR:
    case TIR_LOAD:
    case TIR_ADDRESS:
    case TIR_INSTR:
    case TIR_EXTERN: return NULL;
    }
    return NULL;
}

/* e over operands in registers; `lanes` is the capacity of the result. */
static ic_value *operation(ic *k, code_list *to, tir_expr_ref e, ic_value *const *args, uint32_t lanes, uint32_t depth,
                           bool stable)
{
    instr_fn fn = fn_of(e), fix = needs_fixup(e) ? interp_fixup(e->type.dt) : NULL;
    ic_value *v = new_value(k, lanes, depth, stable);
    if (!fn) {
        const char *what = e->kind == TIR_EXTERN    ? e->u.name
                           : e->kind == TIR_ADDRESS ? arena_printf(k->mem, "&%s", e->u.buffer->name)
                                                    : tir_op_text(e->op);
        k->ok = diag_error(&k->c->diags, DIAG_UNSUPPORTED, k->func->loc, "%s: the interpreter cannot run '%s'",
                           k->func->name, what);
        return v;
    }
    dtype dt = e->kind == TIR_BINOP ? e->args[0]->type.dt
                                    : e->type.dt; /* shifts ask for their width, casts for their target */
    const bool joins = e->kind == TIR_CALL && lanes == 1;
    instr *in = ic_emit(k, to, fn, dt, joins ? e->args[0]->type.lanes : lanes);
    in->dst = v->reg;
    in->a = args[0]->reg;
    in->b = e->n_args > 1 ? args[1]->reg : in->a;
    in->c = e->n_args > 2 ? args[2]->reg : in->a;
    if (!fix)
        return v;
    ic_value *fixed = new_value(k, lanes, depth, stable);
    in = ic_emit(k, to, fix, e->type.dt, lanes);
    in->a = v->reg;
    in->dst = fixed->reg;
    return fixed;
}

static ic_value *splat(ic *k, code_list *to, dtype dt, const ic_value *x, uint32_t lanes, uint32_t depth, bool stable)
{
    ic_value *v = new_value(k, lanes, depth, stable);
    instr *in = ic_emit(k, to, interp_splat(dt), dt, lanes);
    in->a = x->reg;
    in->dst = v->reg;
    return v;
}

/* mask && cond, or mask && !cond; NO_REG is all on. The result has `lanes` lanes. */
uint32_t ic_masked(ic *k, uint32_t mask, uint32_t cond, bool holds, uint32_t lanes)
{
    if (mask == NO_REG && holds)
        return cond;
    ic_value *v = new_value(k, lanes, 0, false);
    instr *in = ic_emit(k, k->here,
                        mask == NO_REG ? interp_not
                        : holds        ? interp_binary(DT_BOOL, TIR_AND)
                                       : interp_and_not,
                        DT_BOOL, lanes);
    in->a = mask == NO_REG ? cond : mask;
    in->b = cond;
    in->dst = v->reg;
    return v->reg;
}

/* Arguments, those that a condition guards under a mask of `lanes` lanes. */
typedef ic_value *(*operand_fn)(ic *k, tir_expr_ref e);

static void operands(ic *k, tir_expr_ref e, operand_fn fn, uint32_t lanes, ic_value **out)
{
    bool is_select = e->kind == TIR_SELECT, is_logic = e->kind == TIR_BINOP && (e->op == TIR_AND || e->op == TIR_OR);
    for (uint32_t i = 0; i < e->n_args; i++) {
        bool guarded = i > 0 && (is_select || is_logic) && has_load(k, e->args[i]);
        if (!guarded) {
            out[i] = fn(k, e->args[i]);
            continue;
        }
        ic_mask m;
        uint32_t cond = out[0]->reg, outer = k->mask->reg;
        if (out[0]->lanes == 1 && lanes > 1)
            cond = splat(k, k->here, DT_BOOL, out[0], lanes, 0, false)->reg;
        ic_push_mask(k, &m, ic_masked(k, outer, cond, is_select ? i == 1 : e->op == TIR_AND, lanes));
        out[i] = fn(k, e->args[i]);
        ic_pop_mask(k);
    }
}

/* --- one value, or the lanes of a vector expression --- */

static ic_value *load(ic *k, tir_expr_ref e)
{
    ic_value *v = new_value(k, e->type.lanes, 0, false);
    mem_access *x = ic_access(k, e->u.buffer, e->n_args, e->args, e->type.lanes);
    instr *in = ic_emit(k, k->here, interp_load(e->type.dt, x->per_lane), e->type.dt, e->type.lanes);
    in->access = x;
    in->dst = v->reg;
    in->mask = k->mask->reg;
    return v;
}

static ic_value *call_of(ic *k, tir_expr_ref e, instr_fn fn)
{
    call_arg *args = arena_array(k->mem, call_arg, e->n_args);
    ic_value *v = new_value(k, 1, 0, false);
    for (uint32_t i = 0; i < e->n_args; i++) {
        tir_expr_ref a = e->args[i];
        if (a->kind == TIR_ADDRESS)
            args[i].access = ic_access(k, a->u.buffer, a->n_args, a->args, 1);
        else
            args[i].reg = ic_scalar(k, a)->reg;
    }
    instr *in = ic_emit(k, k->here, fn, DT_I64, 1);
    in->args = args;
    in->dst = v->reg;
    in->mask = k->mask->reg;
    return v;
}

/* --- instructions: a nest is compiled once, with its symbols as variables to which each node gives numbers --- */

static const interp_program *program_of(ic *k, const tir_instr_form *form, const tir_func *nest)
{
    const interp_program *known = tir_map_get(&k->programs, nest);
    if (known)
        return known;
    interp_program *p = arena_new(k->mem, interp_program);
    k->ok &= k->compile(k->c, k->mem, nest, form->row->n_symbols, form->symbols, p);
    tir_map_put(&k->programs, nest, p);
    return p;
}

/* An array of `lanes` elements, and its access from the first one on. */
static mem_access *new_elements(ic *k, dtype dt, uint32_t lanes)
{
    slot *s = arena_new(k->mem, slot);
    mem_access *x = arena_new(k->mem, mem_access);
    tir_expr_ref count = tir_i64(k->c, lanes);
    *s = (slot){.buffer = tir_new_buffer(k->c, "value", dt, 1, &count, SCOPE_LOCAL), .span = lanes, .param = -1};
    s->base = arena_alloc(k->mem, lanes * dtype_bytes(dt), 64);
    *x = (mem_access){.at = s, .is_flat = true, .n = 1};
    x->regs[0] = ic_scalar(k, tir_i64(k->c, 0))->reg;
    x->steps[0] = 1;
    return x;
}

static void emit_access(ic *k, instr_fn fn, dtype dt, const mem_access *x, const ic_value *v)
{
    instr *in = ic_emit(k, k->here, fn, dt, v->lanes);
    in->access = x;
    in->a = in->dst = v->reg;
}

/* Further first operands, and how far the second one is behind for each. */
static void add_runs(ic *k, tir_expr_ref e, struct instr_run *x)
{
    const mem_access **runs = arena_array(k->mem, const mem_access *, e->n_args);
    for (uint32_t i = 1; i < tir_instr_runs(e); i++) {
        tir_expr_ref a = tir_instr_run(e, i);
        runs[x->n_runs++] = ic_access(k, a->u.buffer, a->n_args, a->args, 1);
    }
    if (x->n_runs == 0)
        return;
    x->runs = runs;
    x->second = (uint32_t)dtype_bytes(e->args[2]->u.buffer->dt);
    x->follows = tir_instr_elements(k->c, e, 1);
    if (x->follows < 0)
        k->ok = diag_error(&k->c->diags, DIAG_UNSUPPORTED, k->func->loc,
                           "%s: the interpreter cannot run '%s' with sizes that a run decides", k->func->name,
                           e->u.row->name);
}

static ic_value *instr_of(ic *k, tir_expr_ref e)
{
    const tir_intrin *row = e->u.row;
    const tir_instr_form *form = tir_instr_form_of(k->c, row);
    struct instr_run *x = arena_new(k->mem, struct instr_run);
    const bool gives = tir_instr_gives_value(row), makes = tir_instr_makes_value(row);
    mem_access *result = NULL;
    *x = (struct instr_run){.nest = e->op == TIR_ADD ? form->update : form->whole, .n_operands = form->n_operands,
                            .n_symbols = row->n_symbols, .guarded = row->guarded};
    x->program = program_of(k, form, x->nest);
    for (uint32_t i = 0; i < tir_instr_operands(row); i++) {
        tir_expr_ref a = e->args[i];
        instr_operand *o = &x->operands[tir_instr_param(row, i)];
        if (tir_instr_by_address(row, i)) {
            o->at = ic_access(k, a->u.buffer, a->n_args, a->args, 1);
            continue;
        }
        mem_access *m = new_elements(k, a->type.dt, a->type.lanes);
        emit_access(k, interp_store(a->type.dt, false), a->type.dt, m, ic_scalar(k, a));
        o->elements = m->at;
        result = i == 0 ? m : result;
    }
    if (makes) {
        result = new_elements(k, e->type.dt, e->type.lanes);
        x->operands[form->n_operands - 1].elements = result->at;
    }
    if (gives && !makes && row->n_symbols > 0)
        x->symbols[0] = ic_scalar(k, tir_i64(k->c, tir_instr_units(form, e->type.lanes)))->reg;
    add_runs(k, e, x);
    for (uint32_t i = tir_instr_operands(row); i < tir_instr_args(row); i++)
        x->symbols[tir_instr_symbol(row, i) - row->symbols] = ic_scalar(k, e->args[i])->reg;
    ic_value *v = gives ? new_value(k, e->type.lanes, 0, false) : ic_scalar(k, tir_int(k->c, DT_I32, 0));
    instr *in = ic_emit(k, k->here, interp_instr, e->type.dt, 1);
    in->run = x;
    in->mask = k->mask->reg;
    if (gives)
        emit_access(k, interp_load(e->type.dt, false), e->type.dt, result, v);
    return v;
}

/* --- values --- */

static ic_value *scalar_op(ic *k, tir_expr_ref e)
{
    ic_value *args[3];
    instr_fn known = e->kind == TIR_EXTERN ? interp_extern(e) : NULL;
    if (known)
        return call_of(k, e, known);
    uint32_t depth = 0, lanes = e->type.lanes;
    bool stable = !has_load(k, e);
    if (e->kind == TIR_EXTERN || e->kind == TIR_ADDRESS || e->n_args > 3) {
        static const ic_value none = {0};
        args[0] = (ic_value *)(uintptr_t)&none;
        return operation(k, k->here, e, args, 1, 0, false);
    }
    operands(k, e, ic_scalar, lanes, args);
    for (uint32_t i = 0; i < e->n_args; i++)
        depth = args[i]->depth > depth ? args[i]->depth : depth;
    if (e->kind == TIR_SELECT && args[0]->lanes == 1 && lanes > 1)
        args[0] = splat(k, place(k, args[0]->depth, args[0]->stable), DT_BOOL, args[0], lanes, args[0]->depth,
                        args[0]->stable);
    return operation(k, place(k, depth, stable), e, args, lanes, depth, stable);
}

ic_value *ic_scalar(ic *k, tir_expr_ref e)
{
    bool stable = !has_load(k, e);
    ic_value *v = e->kind == TIR_VAR ? (ic_value *)(uintptr_t)tir_map_get(&k->vars, e->u.var)
                  : stable           ? (ic_value *)(uintptr_t)tir_map_get(&k->values, e)
                                     : find_unstable(k, e);
    if (v)
        return v;
    if (e->kind == TIR_INT || e->kind == TIR_FLOAT)
        v = constant(k, e, 1);
    else
        v = e->kind == TIR_LOAD ? load(k, e) : e->kind == TIR_INSTR ? instr_of(k, e) : scalar_op(k, e);
    if (v->lanes > 1 && v->depth == 0 && stable)
        v->depth = 0;
    tir_map_put(stable ? &k->values : &k->mask->values, e, v);
    return v;
}

/* --- lanes of a strip --- */

/* Something that all lanes share, spread when the loop is entered. */
static ic_value *lane_uniform(ic *k, tir_expr_ref e)
{
    if (e->kind == TIR_INT || e->kind == TIR_FLOAT)
        return constant(k, e, STRIP);
    return splat(k, k->strip->entry, e->type.dt, ic_scalar(k, e), STRIP, 0, true);
}

static ic_value *lane_var(ic *k, tir_expr_ref e)
{
    if (e->u.var != k->strip->var)
        return (ic_value *)(uintptr_t)tir_map_get(&k->strip->lets, e->u.var);
    ic_value *v = new_value(k, STRIP, 0, true);
    instr *in = ic_emit(k, k->strip->lane_prologue, interp_iota, e->type.dt, STRIP);
    in->a = ic_scalar(k, e)->reg;
    in->dst = v->reg;
    return v;
}

static ic_value *lane_load(ic *k, tir_expr_ref e)
{
    ic_value *v = new_value(k, STRIP, 0, false);
    mem_access *x = ic_access(k, e->u.buffer, e->n_args, e->args, STRIP);
    instr *in = ic_emit(k, k->here, interp_load(e->type.dt, x->per_lane), e->type.dt, STRIP);
    in->access = x;
    in->dst = v->reg;
    in->mask = k->mask->reg;
    return v;
}

ic_value *ic_lanes(ic *k, tir_expr_ref e)
{
    bool shared = !varies(k, e);
    ic_value *v = shared ? (ic_value *)(uintptr_t)tir_map_get(&k->strip->uniform, e) : find_unstable(k, e), *args[3];
    if (v)
        return v;
    if (shared) {
        v = lane_uniform(k, e);
    } else if (e->kind == TIR_VAR) {
        v = lane_var(k, e);
    } else if (e->kind == TIR_LOAD) {
        v = lane_load(k, e);
    } else {
        operands(k, e, ic_lanes, STRIP, args);
        v = operation(k, k->here, e, args, STRIP, 0, false);
    }
    tir_map_put(shared ? &k->strip->uniform : &k->mask->values, e, v);
    return v;
}

/* --- accesses --- */

/* Lanes of an index in a vector access: spread when it is the same for all. */
static uint32_t index_lanes(ic *k, tir_expr_ref e, uint32_t lanes)
{
    if (k->strip)
        return ic_lanes(k, e)->reg;
    ic_value *v = ic_scalar(k, e);
    return v->lanes == 1 && lanes > 1 ? splat(k, k->here, e->type.dt, v, lanes, 0, false)->reg : v->reg;
}

static bool even_index(ic *k, tir_expr_ref e, tir_expr_ref *out_base, int64_t *out_step)
{
    *out_base = e;
    *out_step = 0;
    if (k->strip)
        return ic_affine(k, e, out_step);
    if (e->type.lanes == 1)
        return true;
    if (e->kind == TIR_BROADCAST || (e->kind == TIR_RAMP && tir_is_int(e->args[1], out_step))) {
        *out_base = e->args[0];
        return true;
    }
    return false;
}

slot *ic_slot(ic *k, const tir_buffer *b)
{
    return (slot *)(uintptr_t)tir_map_get(&k->slots, b);
}

mem_access *ic_access(ic *k, const tir_buffer *b, uint32_t n, tir_expr_ref const *idx, uint32_t lanes)
{
    mem_access *x = arena_new(k->mem, mem_access);
    tir_expr_ref base[TIR_MAX_RANK];
    x->at = ic_slot(k, b);
    x->n = n;
    x->is_flat = tir_access_is_flat(b, n);
    for (uint32_t i = 0; i < n; i++)
        x->per_lane |= !even_index(k, idx[i], &base[i], &x->steps[i]);
    for (uint32_t i = 0; i < n; i++)
        x->regs[i] = x->per_lane ? index_lanes(k, idx[i], lanes) : ic_scalar(k, base[i])->reg;
    return x;
}
