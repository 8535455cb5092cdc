/* SPDX-License-Identifier: Apache-2.0 */
/* From a program's function to what the planner works on: sizes, places in other values, operators with the facts that
 * follow from their loops. */
#include "abi/package.h"
#include "plan/plan.h"
#include "tir/build.h"

/* --- values --- */

static plan_storage storage_of(prog_space s)
{
    switch (s) {
    case SPACE_INPUT: return STORE_INPUT;
    case SPACE_OUTPUT: return STORE_OUTPUT;
    case SPACE_CONSTANT: return STORE_CONSTANT;
    case SPACE_WORKSPACE: return STORE_WORKSPACE;
    case SPACE_STATE: return STORE_STATE;
    case SPACE_DEVICE: return STORE_DEVICE;
    }
    return STORE_WORKSPACE;
}

/* A tensor that some kernel reads, of the caller, in a function that runs straight through. */
static bool may_lie_inside(const prog_func *f, uint32_t input)
{
    const prog_value *v = &f->values.data[input];
    bool read = false;
    for (uint32_t i = 0; i < f->steps.len; i++) {
        const prog_step *s = &f->steps.data[i];
        uint64_t start;
        if (s->kind == STEP_IF || s->kind == STEP_LOOP)
            return false;
        for (uint32_t k = 0; k < s->n_in && s->kind == STEP_KERNEL; k++)
            read |= prog_root(f, s->args[k], &start) == input;
    }
    return read && !v->extent && v->space == SPACE_INPUT && shape_is_static(v->type.shape) && prog_bytes(v) > 0;
}

uint32_t plan_align(const plan_problem *p, uint64_t bytes)
{
    const uint32_t align = package_value_align(bytes);
    return p->most_align > 0 && align > p->most_align ? p->most_align : align;
}

#define ELEMENT_ALIGN 8 /* of the widest elements */

/* Lines of a cache and vectors want more than elements do. Where there are neither, gaps cost memory for nothing. */
static uint32_t most_align(const prog_func *f)
{
    for (uint32_t i = 0; i < f->steps.len; i++) {
        const prog_step *s = &f->steps.data[i];
        const target *t = s->kind == STEP_KERNEL ? s->kernel->target : NULL;
        if (s->kind != STEP_VIEW && s->kind != STEP_JOIN && (!t || !t->small || t->vector_bytes > 0))
            return PACKAGE_MAX_ALIGN;
    }
    return ELEMENT_ALIGN;
}

static void add_values(compiler *c, const prog_func *f, bool inputs_inside, plan_problem *p)
{
    uint32_t constants = 0;
    for (uint32_t i = 0; i < f->values.len; i++) {
        const prog_value *v = &f->values.data[i];
        uint64_t bytes = prog_bytes(v);
        plan_value x = {.name = v->name,
                        .storage = storage_of(v->space),
                        .index = v->data ? constants++ : v->index,
                        .bytes = bytes,
                        .align = plan_align(p, bytes),
                        .parent = v->base == PROG_NONE ? -1 : (int32_t)v->base,
                        .parent_offset = v->offset};
        uint64_t start;
        const uint32_t root = prog_root(f, i, &start);
        if (inputs_inside && x.storage == STORE_INPUT && may_lie_inside(f, root)) {
            x.storage = STORE_WORKSPACE;
            x.from_start = root == i;
        }
        vec_push(&c->mem, &p->values, x);
    }
}

/* --- operator properties --- */

static void find_inplace(compiler *c, const plan_problem *p, plan_op *op)
{
    VEC(plan_pair) pairs = {0};
    for (uint32_t o = op->n_inputs; o < op->n_args; o++)
        for (uint32_t i = 0; i < op->n_inputs; i++) {
            const plan_value *in = &p->values.data[op->args[i]], *out = &p->values.data[op->args[o]];
            if (in->storage == STORE_WORKSPACE && out->storage == STORE_WORKSPACE && in->bytes == out->bytes &&
                in->bytes > 0 &&
                (tir_can_alias(c, op->func, i, o) || tir_can_alias_in_lanes(c, op->func, i, o)))
                vec_push(&c->mem, &pairs, ((plan_pair){o, i}));
        }
    op->inplace = pairs.data;
    op->n_inplace = pairs.len;
}

/* Bytes that are read and written as two types overlap only where one is of characters: C's compiler may take others
 * for apart, and move a store before a load. */
static bool may_share_bytes(const tir_func *f, uint32_t a, uint32_t b)
{
    const dtype x = f->params[a]->dt, y = f->params[b]->dt;
    return x == y || dtype_bits(x) == 8 || dtype_bits(y) == 8;
}

/* On processors without vectors, where memory counts most: elsewhere pointers that may overlap cost time. */
static void find_distances(compiler *c, const plan_problem *p, plan_op *op)
{
    VEC(plan_distance) list = {0};
    if (op->func->target && op->func->target->vector_bytes > 0)
        return;
    for (uint32_t o = op->n_inputs; o < op->n_args; o++)
        for (uint32_t i = 0; i < op->n_inputs; i++) {
            const plan_value *in = &p->values.data[op->args[i]], *out = &p->values.data[op->args[o]];
            tir_distance d;
            if (in->storage == STORE_WORKSPACE && out->storage == STORE_WORKSPACE && in->bytes > 0 && out->bytes > 0 &&
                may_share_bytes(op->func, i, o) && tir_find_distance(c, op->func, i, o, &d))
                vec_push(&c->mem, &list, ((plan_distance){o, i, d.below, d.above}));
        }
    op->distances = list.data;
    op->n_distances = list.len;
}

static int64_t work_of(const plan_problem *p, const plan_op *op)
{
    uint64_t most = 0;
    for (uint32_t i = 0; i < op->n_args; i++) {
        uint64_t bytes = p->values.data[op->args[i]].bytes;
        most = bytes > most ? bytes : most;
    }
    int64_t moved = most > INT64_MAX / 4 ? INT64_MAX / 4 : (int64_t)(most / 4);
    return op->func->macs > moved ? op->func->macs : moved;
}

/* What writes a state over the operand that holds the old one may be bound to do that from the start to the end. */
static bool has_one_part(compiler *c, const plan_problem *p, const plan_op *op)
{
    uint64_t at;
    for (uint32_t o = op->n_inputs; o < op->n_args; o++)
        for (uint32_t i = 0; i < op->n_inputs; i++)
            if (p->values.data[op->args[o]].storage == STORE_STATE &&
                plan_root(p, op->args[i], &at) == plan_root(p, op->args[o], &at) &&
                prog_writes_over(c, op->step->kernel, i, o) == PROG_OVER_IN_ONE_PART)
                return true;
    return false;
}

static void find_properties(compiler *c, const plan_problem *p, plan_op *op)
{
    op->workers = has_one_part(c, p, op) ? 1 : 0;
    op->extent = tir_parallel_extent(c, op->func);
    op->work = work_of(p, op);
    op->n_scratch = tir_find_scratch(c, op->func, &op->scratch);
    find_inplace(c, p, op);
    find_distances(c, p, op);
}

/* --- the problem --- */

static void add_kernel(compiler *c, plan_flow *flow, const prog_step *s)
{
    plan_op op = {.name = s->kernel->name,
                  .step = s,
                  .func = s->kernel->loops,
                  .args = s->args,
                  .n_args = s->n_args,
                  .n_inputs = s->n_in};
    find_properties(c, flow->p, &op);
    flow_op(flow, op);
}

/* A copy between memories is an operator like others: its loops say what it costs, and that nothing lies in place. */
static void add_copy(compiler *c, plan_flow *flow, const prog_func *f, const prog_step *s)
{
    const prog_value *from = &f->values.data[s->args[0]], *to = &f->values.data[s->args[1]];
    const int64_t bytes = (int64_t)prog_bytes(from);
    const tir_buffer **params = arena_array(&c->mem, const tir_buffer *, 2);
    const tir_var *i = tir_new_var(c, "i", TIR_I64);
    tir_expr_ref at = tir_varref(c, i);
    tir_func *loops = arena_new(&c->mem, tir_func);
    prog_kernel *k = arena_new(&c->mem, prog_kernel);
    prog_step *step = arena_new(&c->mem, prog_step);
    params[0] = tir_buffer_static(c, "from", DT_U8, 1, &bytes, SCOPE_GLOBAL);
    params[1] = tir_buffer_static(c, "to", DT_U8, 1, &bytes, SCOPE_GLOBAL);
    *loops = (tir_func){.name = "copy", .params = params, .n_params = 2, .n_inputs = 1, .index_type = DT_I64};
    loops->body = tir_for(c, i, tir_i64(c, 0), tir_i64(c, bytes), FOR_SERIAL,
                          tir_store(c, params[1], 1, &at, tir_load(c, params[0], 1, &at)));
    k->kind = arena_printf(&c->mem, "copy_%s", to->memory ? to->memory : "host");
    k->name = prog_kernel_base_name(&c->mem, k->kind);
    k->target = target_find("generic");
    k->plain = k->loops = loops;
    *step = *s;
    step->kernel = k;
    add_kernel(c, flow, step);
}

/* Views and joins are places of values. The verifier of programs has bounded the depth. */
static void add_block(compiler *c, plan_flow *flow, const prog_func *f, const prog_block *b)
{
    for (uint32_t i = 0; i < b->len; i++) {
        const prog_step *s = &b->data[i];
        uint32_t jump;
        switch (s->kind) {
        case STEP_KERNEL: add_kernel(c, flow, s); break;
        case STEP_COPY: add_copy(c, flow, f, s); break;
        case STEP_VIEW:
        case STEP_JOIN: break;
        case STEP_IF:
            jump = flow_if(flow, s->args[0]);
            add_block(c, flow, f, &s->blocks[0]);
            jump = flow_else(flow, jump);
            add_block(c, flow, f, &s->blocks[1]);
            flow_end_if(flow, jump);
            break;
        case STEP_LOOP:
            jump = flow_loop(flow, s->args[0]);
            add_block(c, flow, f, &s->blocks[0]);
            flow_end_loop(flow, jump);
            break;
        }
    }
}

plan_problem *plan_problem_of(compiler *c, const prog_func *f, bool inputs_inside)
{
    plan_problem *p = arena_new(&c->mem, plan_problem);
    plan_flow flow = {.a = &c->mem, .p = p};
    p->most_align = most_align(f);
    add_values(c, f, inputs_inside, p);
    add_block(c, &flow, f, &f->steps);
    return p;
}
