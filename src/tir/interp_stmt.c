/* SPDX-License-Identifier: Apache-2.0 */
/* The interpreter's compiler: statements, and the choice of loops that run in strips. */
#include "tir/build.h"
#include "tir/eval.h"
#include "tir/interp_compile.h"
#include "tir/walk.h"

static void compile(ic *k, tir_stmt *s);

/* --- blocks and levels --- */

static node *add_node(ic *k, node_kind kind)
{
    vec_push(k->mem, &k->block->nodes, (node){.kind = kind});
    return &vec_last(&k->block->nodes);
}

/* Code for the statement at hand: appended to the block's last piece. */
static void open_code(ic *k)
{
    node *last = k->block->nodes.len ? &vec_last(&k->block->nodes) : NULL;
    if (!last || last->kind != NODE_CODE) {
        last = add_node(k, NODE_CODE);
        last->code = arena_new(k->mem, code_list);
    }
    k->here = last->code;
}

typedef struct saved {
    code_block *block;
    code_list *here;
} saved;

static code_block *open_block(ic *k, saved *out, bool is_level)
{
    code_block *b = arena_new(k->mem, code_block);
    *out = (saved){k->block, k->here};
    k->block = b;
    if (is_level)
        vec_push(k->mem, &k->levels, &b->prologue);
    return b;
}

static void close_block(ic *k, const saved *s, bool is_level)
{
    k->block = s->block;
    k->here = s->here;
    if (is_level)
        (void)vec_pop(&k->levels);
}

static uint32_t deepest(const ic *k)
{
    return k->levels.len - 1;
}

static ic_value *bind_var(ic *k, const tir_var *var, uint32_t reg, uint32_t lanes)
{
    ic_value *v = arena_new(k->mem, ic_value);
    *v = (ic_value){.reg = reg, .lanes = lanes, .depth = deepest(k), .stable = true};
    tir_map_put(&k->vars, var, v);
    return v;
}

/* --- buffers --- */

static void bind_buffer(ic *k, const tir_buffer *b, int32_t param)
{
    slot *s = arena_new(k->mem, slot);
    ic_mask m;
    *s = (slot){.buffer = b, .param = param, .offset_reg = NO_REG};
    open_code(k);
    ic_push_mask(k, &m, NO_REG);
    for (uint32_t i = 0; i < b->rank; i++) {
        s->dim_regs[i] = ic_scalar(k, b->shape[i])->reg;
        s->stride_regs[i] = b->strides ? ic_scalar(k, b->strides[i])->reg : NO_REG;
    }
    if (b->offset)
        s->offset_reg = ic_scalar(k, b->offset)->reg;
    ic_pop_mask(k);
    add_node(k, NODE_BIND)->bind = s;
    tir_map_put(&k->slots, b, s);
}

/* --- which loops run in strips --- */

typedef struct strip_scan {
    ic *k;
    VEC(tir_stmt *) stores;
    VEC(tir_expr_ref) loads;
    bool ok;
} strip_scan;

static void scan_expr(void *ctx, tir_expr_ref e)
{
    strip_scan *s = ctx;
    s->ok = s->ok && e->type.lanes == 1 && e->kind != TIR_EXTERN && e->kind != TIR_INSTR && e->kind != TIR_ADDRESS;
    if (e->kind == TIR_LOAD)
        vec_push(s->k->mem, &s->loads, e);
}

static void scan_stmt(void *ctx, tir_stmt *t)
{
    strip_scan *s = ctx;
    s->ok = s->ok && (t->kind == TIR_STORE || t->kind == TIR_LET || t->kind == TIR_IF || t->kind == TIR_SEQ ||
                      t->kind == TIR_ATTR);
    if (t->kind == TIR_STORE)
        vec_push(s->k->mem, &s->stores, t);
}

static bool same_place(uint32_t n, tir_expr_ref const *a, uint32_t m, tir_expr_ref const *b)
{
    for (uint32_t i = 0; i < n && n == m; i++)
        if (!tir_expr_equal(a[i], b[i]))
            return false;
    return n == m;
}

/* Whether different lanes certainly touch different elements; inside the buffer, one moving index is enough. */
static bool moves(ic *k, tir_stmt *store)
{
    int64_t step;
    for (uint32_t i = 0; i < store->n_indices; i++)
        if (ic_affine(k, store->indices[i], &step) && step != 0)
            return true;
    return false;
}

static bool stays(ic *k, uint32_t n, tir_expr_ref const *idx)
{
    int64_t step;
    for (uint32_t i = 0; i < n; i++)
        if (!ic_affine(k, idx[i], &step) || step != 0)
            return false;
    return true;
}

static uint32_t count_loads(tir_expr_ref e, const tir_buffer *b)
{
    uint32_t n = e->kind == TIR_LOAD && e->u.buffer == b;
    for (uint32_t i = 0; i < e->n_args && n < 2; i++)
        n += count_loads(e->args[i], b);
    return n;
}

/* b[i] = b[i] op x with an index that stays: *out_acc says which operand is the element. */
static bool is_reduction(ic *k, tir_stmt *s, uint32_t *out_acc)
{
    if (s->value->kind != TIR_BINOP || !interp_reduce(s->buffer->dt, s->value->op) ||
        !stays(k, s->n_indices, s->indices))
        return false;
    for (uint32_t i = 0; i < 2; i++) {
        tir_expr_ref e = s->value->args[i];
        *out_acc = i;
        if (e->kind == TIR_LOAD && e->u.buffer == s->buffer && same_place(s->n_indices, s->indices, e->n_args, e->args))
            return count_loads(s->value, s->buffer) == 1;
    }
    return false;
}

/* Two stores that never meet: an index of theirs is constant and differs. */
static bool apart(tir_stmt *a, tir_stmt *b)
{
    int64_t x, y;
    for (uint32_t i = 0; i < a->n_indices && a->n_indices == b->n_indices && !a->buffer->strides; i++)
        if (tir_is_int(a->indices[i], &x) && tir_is_int(b->indices[i], &y) && x != y)
            return true;
    return false;
}

static bool store_is_fine(strip_scan *s, tir_stmt *store)
{
    uint32_t acc, stores = 0, loads = 0;
    bool same = true, alone = true;
    for (uint32_t i = 0; i < s->stores.len; i++) {
        tir_stmt *t = s->stores.data[i];
        stores += t->buffer == store->buffer;
        alone = alone && (t == store || t->buffer != store->buffer || apart(store, t));
        same = same &&
               (t->buffer != store->buffer || same_place(store->n_indices, store->indices, t->n_indices, t->indices));
    }
    for (uint32_t i = 0; i < s->loads.len; i++) {
        tir_expr_ref e = s->loads.data[i];
        loads += e->u.buffer == store->buffer;
        same =
            same && (e->u.buffer != store->buffer || same_place(store->n_indices, store->indices, e->n_args, e->args));
    }
    if (alone && loads == 0)
        return true; /* lanes are stored in order */
    if (same && moves(s->k, store))
        return true;
    return stores == 1 && loads == 1 && is_reduction(s->k, store, &acc);
}

/* Lets whose value is defined in the strip must be known before indices are judged. */
static void mark_let(void *ctx, tir_stmt *t)
{
    static const ic_value pending = {0};
    ic *k = ctx;
    if (t->kind == TIR_LET)
        tir_map_put(&k->strip->lets, t->var, &pending);
}

static bool can_strip(ic *k, tir_stmt *loop)
{
    strip_scan s = {.k = k, .ok = true};
    tir_visit_stmt(loop->body, scan_stmt, NULL, &s);
    if (!s.ok)
        return false;
    tir_visit_stmt(loop->body, NULL, scan_expr, &s);
    tir_visit_stmt(loop->body, mark_let, NULL, k);
    for (uint32_t i = 0; i < s.stores.len && s.ok; i++)
        s.ok = store_is_fine(&s, s.stores.data[i]);
    return s.ok;
}

/* --- a strip's statements --- */

static void strip_stmt(ic *k, tir_stmt *s);

static void strip_store(ic *k, tir_stmt *s)
{
    ic_mask m;
    uint32_t acc;
    ic_push_mask(k, &m, k->mask->reg); /* loads of this statement are forgotten after it */
    bool reduces = is_reduction(k, s, &acc);
    uint32_t value = ic_lanes(k, reduces ? s->value->args[1 - acc] : s->value)->reg;
    mem_access *x = ic_access(k, s->buffer, s->n_indices, s->indices, STRIP);
    dtype dt = s->buffer->dt;
    instr *in =
        ic_emit(k, k->here, reduces ? interp_reduce(dt, s->value->op) : interp_store(dt, x->per_lane), dt, STRIP);
    x->op = reduces ? s->value->op : TIR_OP_NONE;
    x->acc_right = reduces && acc == 1;
    in->access = x;
    in->a = value;
    in->mask = m.reg;
    ic_pop_mask(k);
}

static void strip_if(ic *k, tir_stmt *s)
{
    ic_mask m;
    ic_push_mask(k, &m, k->mask->reg);
    uint32_t cond = ic_lanes(k, s->cond)->reg, outer = m.reg;
    ic_pop_mask(k);
    for (int i = 0; i < 2; i++) {
        tir_stmt *side = i == 0 ? s->body : s->orelse;
        if (!side)
            continue;
        ic_push_mask(k, &m, ic_masked(k, outer, cond, i == 0, STRIP));
        strip_stmt(k, side);
        ic_pop_mask(k);
    }
}

static void strip_let(ic *k, tir_stmt *s)
{
    ic_mask m;
    ic_push_mask(k, &m, k->mask->reg);
    tir_map_put(&k->strip->lets, s->var, ic_lanes(k, s->value));
    ic_pop_mask(k);
    strip_stmt(k, s->body);
}

static void strip_stmt(ic *k, tir_stmt *s)
{
    if (s->kind == TIR_STORE)
        strip_store(k, s);
    else if (s->kind == TIR_IF)
        strip_if(k, s);
    else if (s->kind == TIR_LET)
        strip_let(k, s);
    else if (s->kind == TIR_ATTR)
        strip_stmt(k, s->body);
    for (uint32_t i = 0; i < s->n_stmts; i++)
        strip_stmt(k, s->stmts[i]);
}

static bool compile_strip(ic *k, tir_stmt *s, uint32_t min, uint32_t extent)
{
    ic_strip strip = {.var = s->var};
    ic_mask m;
    saved outer;
    tir_map_init(&strip.lets, k->mem);
    tir_map_init(&strip.uniform, k->mem);
    tir_map_init(&strip.varying, k->mem);
    k->strip = &strip;
    if (!can_strip(k, s)) {
        k->strip = NULL;
        return false;
    }
    code_list *lanes = arena_new(k->mem, code_list), *entry = arena_new(k->mem, code_list),
              *body = arena_new(k->mem, code_list);
    strip.entry = entry;
    strip.lane_prologue = lanes; /* the loop variable's lanes come first: it is a value like any other */
    code_block *b = open_block(k, &outer, true);
    uint32_t var = ic_reg(k, 1);
    (void)bind_var(k, s->var, var, 1);
    k->here = body;
    ic_push_mask(k, &m, NO_REG);
    strip_stmt(k, s->body);
    ic_pop_mask(k);
    close_block(k, &outer, true);
    k->strip = NULL;
    for (uint32_t i = 0; i < body->list.len; i++)
        vec_push(k->mem, &lanes->list, body->list.data[i]);
    node *n = add_node(k, NODE_STRIP);
    n->code = lanes;
    n->entry = entry;
    n->scalars = &b->prologue;
    n->var = var;
    n->min = min;
    n->extent = extent;
    return true;
}

/* --- statements one by one --- */

static void compile_for(ic *k, tir_stmt *s)
{
    ic_mask m;
    saved outer;
    open_code(k);
    ic_push_mask(k, &m, NO_REG);
    uint32_t min = ic_scalar(k, s->min)->reg, extent = ic_scalar(k, s->extent)->reg;
    ic_pop_mask(k);
    if (compile_strip(k, s, min, extent))
        return;
    uint32_t var = ic_reg(k, 1);
    code_block *body = open_block(k, &outer, true);
    (void)bind_var(k, s->var, var, 1);
    compile(k, s->body);
    close_block(k, &outer, true);
    node *n = add_node(k, NODE_LOOP);
    n->body = body;
    n->var = var;
    n->min = min;
    n->extent = extent;
}

static code_block *compile_side(ic *k, tir_stmt *s)
{
    saved outer;
    if (!s)
        return NULL;
    code_block *b = open_block(k, &outer, false);
    compile(k, s);
    close_block(k, &outer, false);
    return b;
}

static uint32_t condition(ic *k, tir_expr_ref e)
{
    ic_mask m;
    open_code(k);
    ic_push_mask(k, &m, NO_REG);
    uint32_t reg = ic_scalar(k, e)->reg;
    ic_pop_mask(k);
    return reg;
}

static void compile_if(ic *k, tir_stmt *s)
{
    uint32_t cond = condition(k, s->cond);
    code_block *body = compile_side(k, s->body), *orelse = compile_side(k, s->orelse);
    node *n = add_node(k, NODE_IF);
    n->cond = cond;
    n->body = body;
    n->orelse = orelse;
}

/* A value that was read where it stands opens a level: what depends on it is made after it. */
static void compile_let(ic *k, tir_stmt *s)
{
    ic_mask m;
    saved outer;
    open_code(k);
    ic_push_mask(k, &m, NO_REG);
    ic_value *v = ic_scalar(k, s->value);
    ic_pop_mask(k);
    if (v->stable) {
        tir_map_put(&k->vars, s->var, v);
        compile(k, s->body);
        return;
    }
    code_block *body = open_block(k, &outer, true);
    (void)bind_var(k, s->var, v->reg, v->lanes);
    compile(k, s->body);
    close_block(k, &outer, true);
    add_node(k, NODE_BLOCK)->body = body;
}

static void compile_store(ic *k, tir_stmt *s)
{
    ic_mask m;
    open_code(k);
    ic_push_mask(k, &m, NO_REG);
    ic_value *v = ic_scalar(k, s->value);
    mem_access *x = ic_access(k, s->buffer, s->n_indices, s->indices, v->lanes);
    instr *in = ic_emit(k, k->here, interp_store(s->buffer->dt, x->per_lane), s->buffer->dt, v->lanes);
    in->access = x;
    in->a = v->reg;
    ic_pop_mask(k);
}

static void compile(ic *k, tir_stmt *s)
{
    if (!k->ok)
        return;
    switch (s->kind) {
    case TIR_FOR: compile_for(k, s); break;
    case TIR_IF: compile_if(k, s); break;
    case TIR_LET: compile_let(k, s); break;
    case TIR_STORE: compile_store(k, s); break;
    case TIR_ALLOCATE:
        bind_buffer(k, s->buffer, -1);
        compile(k, s->body);
        break;
    case TIR_ATTR: compile(k, s->body); break;
    case TIR_EVALUATE: (void)condition(k, s->value); break;
    case TIR_ASSERT: {
        uint32_t cond = condition(k, s->cond);
        node *n = add_node(k, NODE_ASSERT);
        n->cond = cond;
        n->status = s->code;
        break;
    }
    case TIR_SEQ:
        for (uint32_t i = 0; i < s->n_stmts; i++)
            compile(k, s->stmts[i]);
        break;
    }
}

/* --- the whole --- */

static void write_constant(uint8_t *image, const ic_const *v)
{
    for (uint32_t i = 0; i < v->lanes; i++) {
        if (v->kind == REG_I)
            memcpy(image + v->reg + i * sizeof v->i, &v->i, sizeof v->i);
        else if (v->kind == REG_D)
            memcpy(image + v->reg + i * sizeof v->f, &v->f, sizeof v->f);
        else
            memcpy(image + v->reg + i * sizeof(float), &(float){(float)v->f}, sizeof(float));
    }
}

bool interp_compile(compiler *c, arena *mem, const tir_func *f, uint32_t n_given, const tir_var *const *given,
                    interp_program *out)
{
    ic k = {.c = c, .mem = mem, .func = f, .ok = true, .compile = interp_compile};
    saved outer;
    tir_map *maps[] = {&k.vars, &k.values, &k.loads, &k.slots, &k.programs};
    for (size_t i = 0; i < sizeof maps / sizeof *maps; i++)
        tir_map_init(maps[i], mem);
    *out = (interp_program){.block = open_block(&k, &outer, true), .given = arena_array(mem, uint32_t, n_given)};
    for (uint32_t i = 0; i < n_given; i++)
        (void)bind_var(&k, given[i], out->given[i] = ic_reg(&k, 1), 1);
    for (uint32_t i = 0; i < f->n_params && k.ok; i++)
        bind_buffer(&k, f->params[i], (int32_t)i);
    compile(&k, f->body);
    if (k.ok)
        out->image = arena_try_alloc(mem, k.reg_bytes + 64, 64);
    if (!out->image)
        return k.ok && diag_error(&c->diags, DIAG_ENVIRONMENT, f->loc, "%s: no memory for the interpreter's registers",
                                  f->name);
    for (uint32_t i = 0; i < k.constants.len; i++)
        write_constant(out->image, &k.constants.data[i]);
    return true;
}
