/* SPDX-License-Identifier: Apache-2.0 */
/* The plan of a variant as bytecode. All of the workspace is one storage, with a tensor in it for every value at the
 * offset that the plan gave it; kernels run in the order of the layers; branches and loops are jumps. An extent that
 * the caller's tensors state lies in a shape heap of one cell, which is an i64 tensor, so kernels take it as it is. */
#include "codegen/module/module.h"

typedef struct body {
    module_code *m;
    const module_variant *v;
    const plan_problem *pp;
    uint32_t n_regs;
    /* Registers: of storages, of each value of the plan (UINT32_MAX: none yet), of each operator's first scratch. */
    uint32_t workspace, *outputs, *states;
    uint32_t *regs, *scratch;
    /* For what nothing bounds: a number of bytes, a bool, what stands for a moment; of each operator that stacks rows
     * the number of those that there is room for. */
    uint32_t size, flag_cell, extents, storage, flag, moved;
    uint32_t *room;
} body;

/* "v64_main", or "main" where there is one variant. */
static const char *function_name(arena *a, const module_variant *v, uint32_t n, const char *name)
{
    return n > 1 ? arena_printf(a, "%s_%s", v->p.prefix, name) : name;
}

static uint32_t new_register(body *b)
{
    return b->n_regs++;
}

/* Of the host's memory, or of that of a device. */
static uint32_t storage_on(body *b, int64_t device, uint64_t bytes)
{
    const int64_t size = bytes > 0 ? (int64_t)bytes : 1;
    const uint32_t r = new_register(b);
    const module_arg args[] = {code_machine(), code_shape(b->m, 1, &size), code_int(device), code_dtype(b->m, DT_U8),
                               code_text(b->m, "global")};
    code_call(b->m, &r, "vm.builtin.alloc_storage", 5, args);
    return r;
}

static uint32_t storage(body *b, uint64_t bytes)
{
    return storage_on(b, 0, bytes);
}

static uint32_t tensor_at(body *b, uint32_t in, uint64_t offset, module_arg dims, dtype dt)
{
    const uint32_t r = new_register(b);
    const module_arg args[] = {code_reg(in), code_int((int64_t)offset), dims, code_dtype(b->m, dt)};
    code_call(b->m, &r, "vm.builtin.alloc_tensor", 4, args);
    return r;
}

/* Its shape with open dimensions at their bounds: kernels ask addresses only. */
static module_arg shape_at_most(body *b, const type *t)
{
    int64_t dims[TYPE_MAX_RANK];
    for (int32_t i = 0; i < t->shape.rank; i++)
        dims[i] = dim_bound(t->shape.dims[i]);
    return code_shape(b->m, (uint32_t)t->shape.rank, dims);
}

static bool cannot_place(body *b, uint32_t value)
{
    return diag_error(&b->m->c->diags, DIAG_UNSUPPORTED, src_loc_none(),
                      "value '%s' lies in the middle of an input or a constant: a module has no name for it",
                      b->pp->values.data[value].name);
}

/* The register of a value, with a tensor made for it where it lies in a storage. */
static bool place_value(body *b, uint32_t value)
{
    uint64_t start;
    const uint32_t root = plan_root(b->pp, value, &start);
    const plan_value *at = &b->pp->values.data[root];
    const type *t = &b->v->p.u->func->values.data[value].type;
    if (b->regs[value] != UINT32_MAX)
        return true;
    if (at->storage == STORE_CONSTANT || at->storage == STORE_INPUT) {
        b->regs[value] = b->regs[root];
        return start == 0 || cannot_place(b, value);
    }
    if (prog_is_unbounded(&b->v->p.u->func->values.data[root])) { /* made when it is written */
        b->regs[value] = b->regs[root] = b->regs[root] == UINT32_MAX ? new_register(b) : b->regs[root];
        return start == 0 || cannot_place(b, value);
    }
    if (at->storage == STORE_DEVICE) { /* handles have no middle */
        const uint64_t bytes = prog_bytes(&b->v->p.u->func->values.data[value]);
        const int64_t device = memory_index(b->m, b->v->p.u->func->values.data[value].memory);
        b->regs[value] = tensor_at(b, storage_on(b, device, bytes), 0, shape_at_most(b, t), t->dt);
        return true;
    }
    const bool inside = at->storage == STORE_WORKSPACE, state = at->storage == STORE_STATE;
    b->regs[value] = tensor_at(b, inside ? b->workspace : state ? b->states[at->index] : b->outputs[at->index],
                               inside ? b->v->p.pl->places[value].offset : start, shape_at_most(b, t), t->dt);
    return true;
}

/* A constant is an argument of its own, not a register. */
static bool is_constant(const body *b, uint32_t value)
{
    uint64_t start;
    return b->pp->values.data[plan_root(b->pp, value, &start)].storage == STORE_CONSTANT && start == 0;
}

static module_arg value_arg(body *b, uint32_t value)
{
    uint64_t start;
    if (is_constant(b, value))
        return code_tensor(b->m, b->v->p.u->func->values.data[plan_root(b->pp, value, &start)].data);
    return code_reg(b->regs[value]);
}

/* --- inputs --- */

/* A cell for each extent that the caller's tensors state, filled from the first input that has it as a dimension. */
static void read_extents(body *b)
{
    const package *p = &b->v->p;
    uint32_t arg = 0;
    for (uint32_t i = 0; i < p->n_inputs; i++)
        if (p->inputs[i].extent) {
            const uint32_t r = b->regs[i] = new_register(b);
            const module_arg args[] = {code_machine(), code_int(1)};
            code_call(b->m, &r, "vm.builtin.alloc_shape_heap", 2, args);
        }
    for (uint32_t i = 0; i < p->n_inputs; i++)
        if (!p->inputs[i].extent)
            b->regs[i] = arg++;
}

static void match(body *b, uint32_t input, uint32_t cell, enum module_match_code code, uint32_t axis,
                  uint32_t rank)
{
    const package_io *io = &b->v->p.inputs[input];
    module_arg args[3 + 2 * TYPE_MAX_RANK + 1];
    uint32_t n = 0;
    args[n++] = code_reg(b->regs[input]);
    args[n++] = code_reg(cell);
    args[n++] = code_int(rank);
    for (uint32_t k = 0; k < rank; k++) {
        args[n++] = code_int(k == axis ? code : MODULE_MATCH_NOTHING);
        args[n++] = code_int(0);
    }
    args[n++] = code_text(b->m, arena_printf(&b->m->c->mem, "input '%s'", io->name));
    code_call(b->m, NULL, "vm.builtin.match_shape", n, args);
}

static bool match_input(body *b, uint32_t input, bool *seen)
{
    const package *p = &b->v->p;
    const shape *s = &p->inputs[input].type.shape;
    int64_t fixed;
    for (int32_t k = 0; k < s->rank; k++)
        if (!dim_symbol_name(s->dims[k]) && !dim_is_const(s->dims[k], &fixed))
            return diag_error(&b->m->c->diags, DIAG_UNSUPPORTED, src_loc_none(),
                              "axis %d of input '%s' is computed from other extents: a module takes numbers and names",
                              (int)k, p->inputs[input].name);
    for (int32_t k = 0; k < s->rank; k++)
        for (uint32_t e = 0; e < p->n_inputs; e++)
            if (p->inputs[e].extent && p->inputs[e].extent == s->dims[k]) {
                match(b, input, b->regs[e], seen[e] ? MODULE_MATCH_LOADED : MODULE_MATCH_STORE, (uint32_t)k,
                      (uint32_t)s->rank);
                seen[e] = true;
            }
    return true;
}

static bool match_inputs(body *b)
{
    const package *p = &b->v->p;
    bool *seen = arena_array(&b->m->c->mem, bool, p->n_inputs + 1u);
    for (uint32_t i = 0; i < p->n_inputs; i++)
        if (!p->inputs[i].extent && !match_input(b, i, seen))
            return false;
    for (uint32_t i = 0; i < p->n_inputs; i++)
        if (p->inputs[i].extent && !seen[i])
            return diag_error(&b->m->c->diags, DIAG_UNSUPPORTED, src_loc_none(),
                              "a module cannot find out '%s': no input has it alone as a dimension",
                              dim_symbol_name(p->inputs[i].extent));
    return true;
}

/* --- operators --- */

static bool place_operands(body *b)
{
    const plan *pl = b->v->p.pl;
    for (uint32_t i = 0; i < b->pp->ops.len; i++) {
        const plan_op *op = &b->pp->ops.data[i];
        for (uint32_t k = 0; k < op->n_args; k++)
            if (!is_constant(b, op->args[k]) && !place_value(b, op->args[k]))
                return false;
        b->scratch[i] = b->n_regs;
        for (uint32_t k = 0; k < op->n_scratch; k++) {
            const int64_t bytes = (int64_t)plan_scratch_bytes(op, k, pl->tasks[i].parts);
            if (loops_is_open(&b->v->p, i, op->n_args + k))
                (void)new_register(b);
            else
                (void)tensor_at(b, b->workspace, pl->tasks[i].scratch_offset[k], code_shape(b->m, 1, &bytes), DT_U8);
        }
    }
    return true;
}

/* The cells of the operator's symbols, which are its first operands. */
static uint32_t cell_args(body *b, const plan_op *op, module_arg *args)
{
    for (uint32_t i = 0; i < op->func->n_symbols; i++)
        args[i] = value_arg(b, op->args[i]);
    return op->func->n_symbols;
}

static void call_kernel(body *b, const char *name, uint32_t n, module_arg *args)
{
    args[n] = code_int(1); /* one part, of no node of the model */
    args[n + 1] = code_text(b->m, "");
    code_call(b->m, NULL, name, n + 2, args);
}

/* A storage of as many bytes as b->size says, and a tensor of it. */
static void allocate(body *b, uint32_t storage_to, uint32_t tensor_to)
{
    const module_arg told = code_reg(b->size);
    code_call(b->m, &b->extents, "vm.builtin.tensor_to_shape", 1, &told);
    const module_arg alloc[] = {code_machine(), code_reg(b->extents), code_int(0), code_dtype(b->m, DT_U8),
                                code_text(b->m, "global")};
    code_call(b->m, &storage_to, "vm.builtin.alloc_storage", 5, alloc);
    const module_arg whole[] = {code_reg(storage_to), code_int(0), code_reg(b->extents), code_dtype(b->m, DT_U8)};
    code_call(b->m, &tensor_to, "vm.builtin.alloc_tensor", 4, whole);
}

/* The register of address k of operator i, and that of the storage it lies in. */
static uint32_t open_registers(body *b, uint32_t i, uint32_t k, uint32_t *out_storage)
{
    const plan_op *op = &b->pp->ops.data[i];
    *out_storage = b->storage;
    if (k >= op->n_args)
        return b->scratch[i] + (k - op->n_args);
    const prog_value *v = &b->v->p.u->func->values.data[op->args[k]];
    if (v->space == SPACE_OUTPUT)
        *out_storage = b->outputs[v->index];
    return b->regs[op->args[k]];
}

/* What the operator writes, where nothing bounds it, and its scratch. */
static void allocate_open(body *b, uint32_t i)
{
    const plan_op *op = &b->pp->ops.data[i];
    module_arg *args = arena_array(&b->m->c->mem, module_arg, op->func->n_symbols + 3u);
    for (uint32_t k = op->n_inputs; k < op->n_args + op->n_scratch; k++) {
        uint32_t in;
        if (!loops_is_open(&b->v->p, i, k))
            continue;
        uint32_t n = cell_args(b, op, args);
        args[n++] = code_reg(b->size);
        call_kernel(b, loops_size_name(&b->v->p, i, k), n, args);
        const uint32_t to = open_registers(b, i, k, &in);
        allocate(b, in, to);
    }
}

/* Room for one more row; rows that are there move. */
static void grow_rows(body *b, uint32_t i)
{
    const plan_op *op = &b->pp->ops.data[i];
    module_arg *args = arena_array(&b->m->c->mem, module_arg, op->func->n_symbols + 6u);
    const uint32_t cells = cell_args(b, op, args);
    uint32_t n = cells, in;
    const uint32_t rows = open_registers(b, i, op->n_inputs, &in);
    args[n++] = value_arg(b, op->args[op->n_inputs - 1]);
    args[n++] = code_reg(b->room[i]);
    args[n++] = code_reg(b->size);
    args[n++] = code_reg(b->flag_cell);
    call_kernel(b, loops_grow_name(&b->v->p, i), n, args);
    const module_arg flag = code_reg(b->flag_cell);
    code_call(b->m, &b->flag, "vm.builtin.read_if_cond", 1, &flag);
    const uint32_t enough = code_if(b->m, b->flag);
    allocate(b, in, b->moved);
    n = cells + 1;
    args[n++] = code_reg(rows);
    args[n++] = code_reg(b->moved);
    call_kernel(b, loops_move_name(&b->v->p, i), n, args);
    const module_arg moved = code_reg(b->moved);
    code_call(b->m, &rows, "vm.builtin.copy", 1, &moved);
    code_land(b->m, enough, code_next(b->m));
}

static void run_op(body *b, uint32_t i)
{
    const plan_op *op = &b->pp->ops.data[i];
    if (memory_is_copy(&b->v->p, i)) {
        const module_arg both[] = {value_arg(b, op->args[0]), value_arg(b, op->args[1])};
        code_call(b->m, NULL, MODULE_COPY, 2, both);
        return;
    }
    allocate_open(b, i);
    if (loops_grows(&b->v->p, i))
        grow_rows(b, i);
    module_arg *args = arena_array(&b->m->c->mem, module_arg, op->n_args + op->n_scratch + 2u);
    uint32_t n = 0;
    for (uint32_t k = 0; k < op->n_args; k++)
        args[n++] = value_arg(b, op->args[k]);
    for (uint32_t k = 0; k < op->n_scratch; k++)
        args[n++] = code_reg(b->scratch[i] + k);
    args[n++] = code_int(b->v->p.pl->tasks[i].parts);
    args[n++] = code_text(b->m, op->step->source);
    code_call(b->m, NULL, loops_kernel_name(&b->v->p, i), n, args);
}

static void run_layers(body *b, uint32_t from, uint32_t to)
{
    const plan *pl = b->v->p.pl;
    for (uint32_t l = from; l < to; l++)
        for (uint32_t i = 0; i < pl->layer_len[l]; i++)
            run_op(b, pl->layers[l][i]);
}

static bool run_steps(body *b)
{
    const plan *pl = b->v->p.pl;
    const uint32_t n = b->pp->steps.len;
    uint32_t *starts = arena_array(&b->m->c->mem, uint32_t, n + 1u);
    uint32_t *jumps = arena_array(&b->m->c->mem, uint32_t, n + 1u);
    const uint32_t flag = new_register(b);
    for (uint32_t i = 0; i < n; i++) {
        const plan_step *s = &b->pp->steps.data[i];
        starts[i] = code_next(b->m);
        switch (s->kind) {
        case PLAN_RUN: run_layers(b, pl->segment_layer[s->to], pl->segment_layer[s->to + 1]); break;
        case PLAN_JUMP: jumps[i] = code_jump(b->m); break;
        case PLAN_JUMP_IF_ZERO: {
            if (!is_constant(b, s->value) && !place_value(b, s->value))
                return false;
            /* TVM's runtime reads a condition where the storage of its tensor begins */
            const module_arg condition = value_arg(b, s->value), first = code_reg(flag);
            code_call(b->m, &flag, "vm.builtin.ensure_zero_offset", 1, &condition);
            code_call(b->m, &flag, "vm.builtin.read_if_cond", 1, &first);
            jumps[i] = code_if(b->m, flag);
            break;
        }
        }
    }
    starts[n] = code_next(b->m);
    for (uint32_t i = 0; i < n; i++)
        if (b->pp->steps.data[i].kind != PLAN_RUN)
            code_land(b->m, jumps[i], starts[b->pp->steps.data[i].to]);
    if (n == 0)
        run_layers(b, 0, pl->n_layers);
    return true;
}

/* --- results --- */

/* Where the data decided the shape, the same bytes with the shape that a kernel told. */
static uint32_t result_register(body *b, uint32_t i)
{
    const package_io *io = &b->v->p.outputs[i];
    const prog_func *f = b->v->p.u->func;
    if (io->shape == PROG_NONE)
        return b->regs[f->results.data[i].value];
    const uint32_t extents = new_register(b);
    const module_arg told = code_reg(b->regs[f->results.data[io->shape].value]);
    code_call(b->m, &extents, "vm.builtin.tensor_to_shape", 1, &told);
    return tensor_at(b, b->outputs[i], 0, code_reg(extents), io->type.dt);
}

static void make_outputs(body *b)
{
    const prog_func *f = b->v->p.u->func;
    for (uint32_t i = 0; i < f->results.len; i++) {
        uint64_t start;
        const uint32_t root = prog_root(f, f->results.data[i].value, &start);
        b->outputs[i] = storage(b, prog_bytes(&f->values.data[root])); /* another one where nothing bounds it */
    }
}

static void give_results(body *b)
{
    const package *p = &b->v->p;
    module_arg *args = arena_array(&b->m->c->mem, module_arg, p->n_outputs + 1u);
    uint32_t n = 0, last = 0;
    for (uint32_t i = 0; i < p->n_outputs; i++)
        if (p->outputs[i].shape_of == PROG_NONE)
            args[n++] = code_reg(last = result_register(b, i));
    if (n != 1) {
        last = new_register(b);
        code_call(b->m, &last, "vm.builtin.make_tuple", n, args);
    }
    code_ret(b->m, last);
}

static bool place_results(body *b)
{
    const prog_func *f = b->v->p.u->func;
    for (uint32_t i = 0; i < f->results.len; i++)
        if (!place_value(b, f->results.data[i].value))
            return false;
    return true;
}

static const char *const *parameter_names(arena *a, const package *p, uint32_t *out_n)
{
    const char **names = arena_array(a, const char *, p->n_inputs + 1u);
    *out_n = 0;
    for (uint32_t i = 0; i < p->n_inputs; i++)
        if (!p->inputs[i].extent)
            names[(*out_n)++] = p->inputs[i].name;
    return names;
}

/* What every input has to be, without the extents that it states. */
static void check_inputs(module_code *m, const package *p)
{
    uint32_t r = 0;
    for (uint32_t i = 0; i < p->n_inputs; i++) {
        const type *t = &p->inputs[i].type;
        module_arg args[4 + 2 * TYPE_MAX_RANK];
        uint32_t n = 0;
        if (p->inputs[i].extent)
            continue;
        const module_arg what = code_text(m, arena_printf(&m->c->mem, "input '%s'", p->inputs[i].name));
        const module_arg kind[] = {code_reg(r), code_int(t->shape.rank), code_dtype(m, t->dt), what};
        code_call(m, NULL, "vm.builtin.check_tensor_info", 4, kind);
        args[n++] = code_reg(r++);
        args[n++] = code_none();
        args[n++] = code_int(t->shape.rank);
        for (int32_t k = 0; k < t->shape.rank; k++) {
            int64_t extent = 0;
            bool fixed = dim_is_const(t->shape.dims[k], &extent);
            args[n++] = code_int(fixed ? MODULE_MATCH_IMMEDIATE : MODULE_MATCH_NOTHING);
            args[n++] = code_int(extent);
        }
        args[n++] = what;
        code_call(m, NULL, "vm.builtin.match_shape", n, args);
    }
}

/* Registers and cells for what nothing bounds. Rows are there before the first round. */
static void make_cells(body *b)
{
    const int64_t one = 1;
    bool any = false;
    for (uint32_t i = 0; i < b->pp->values.len; i++)
        any |= prog_is_unbounded(&b->v->p.u->func->values.data[i]);
    for (uint32_t i = 0; i < b->pp->ops.len; i++)
        for (uint32_t k = 0; k < b->pp->ops.data[i].n_scratch; k++)
            any |= loops_is_open(&b->v->p, i, b->pp->ops.data[i].n_args + k);
    if (!any)
        return;
    b->size = tensor_at(b, storage(b, 8), 0, code_shape(b->m, 1, &one), DT_I64);
    b->flag_cell = tensor_at(b, storage(b, 1), 0, code_shape(b->m, 0, NULL), DT_BOOL);
    b->extents = new_register(b);
    b->storage = new_register(b);
    b->flag = new_register(b);
    b->moved = new_register(b);
}

static void make_rows(body *b)
{
    const int64_t one = 1;
    for (uint32_t i = 0; i < b->pp->ops.len; i++) {
        uint32_t in;
        if (!loops_grows(&b->v->p, i))
            continue;
        const uint32_t rows = open_registers(b, i, b->pp->ops.data[i].n_inputs, &in);
        const module_arg args[] = {code_reg(storage(b, 1)), code_int(0), code_shape(b->m, 1, &one),
                                   code_dtype(b->m, DT_U8)};
        code_call(b->m, &rows, "vm.builtin.alloc_tensor", 4, args);
        b->room[i] = tensor_at(b, storage(b, 8), 0, code_shape(b->m, 1, &one), DT_I64);
    }
}

/* Devices, before memory of them is asked for. */
static void make_ready(body *b)
{
    const package *p = &b->v->p;
    module_arg args[2];
    for (uint32_t i = 0; i < p->u->prog->sources.len; i++)
        if (memory_ready_name(p, i))
            call_kernel(b, memory_ready_name(p, i), 0, args);
}

/* What the machine keeps from the call before. */
static void take_states(body *b)
{
    const prog_func *f = b->v->p.u->func;
    for (uint32_t i = 0; i < f->n_states; i++) {
        const prog_value *v = &f->values.data[f->n_inputs + i];
        const int64_t bytes = (int64_t)prog_bytes(v);
        const module_arg args[] = {code_machine(), code_int(i), code_shape(b->m, 1, &bytes),
                                   v->initial ? code_tensor(b->m, v->initial) : code_none()};
        b->states[i] = new_register(b);
        code_call(b->m, &b->states[i], MODULE_STATE, 4, args);
    }
}

static bool write_steps(body *b)
{
    read_extents(b);
    if (!match_inputs(b))
        return false;
    make_ready(b);
    take_states(b);
    b->workspace = storage(b, b->v->p.pl->workspace_bytes);
    make_outputs(b);
    make_cells(b);
    if (!place_operands(b) || !place_results(b))
        return false;
    make_rows(b);
    if (!run_steps(b))
        return false;
    give_results(b);
    return true;
}

/* `checks`: nobody has looked at the arguments yet. */
static bool write_main(module_code *m, const module_variant *v, const char *name, bool checks)
{
    arena *a = &m->c->mem;
    const plan_problem *pp = v->p.pl->problem;
    body b = {.m = m, .v = v, .pp = pp, .regs = arena_array(a, uint32_t, pp->values.len + 1u)};
    uint32_t n_args;
    for (uint32_t i = 0; i < pp->values.len; i++)
        b.regs[i] = UINT32_MAX;
    b.outputs = arena_array(a, uint32_t, v->p.n_outputs + 1u);
    b.states = arena_array(a, uint32_t, v->p.u->func->n_states + 1u);
    b.scratch = arena_array(a, uint32_t, pp->ops.len + 1u);
    b.room = arena_array(a, uint32_t, pp->ops.len + 1u);
    const char *const *names = parameter_names(a, &v->p, &n_args);
    const uint32_t func = code_begin(m, name, n_args, names);
    b.n_regs = n_args;
    if (checks)
        check_inputs(m, &v->p);
    if (!write_steps(&b))
        return false;
    code_end(m, func, b.n_regs);
    return true;
}

/* --- entries --- */

/* r = 1 where the machine has the vectors of v. */
static void ask_vectors(module_code *m, const module_variant *v, uint32_t r)
{
    const target *t = v->p.u->target;
    const module_arg args[] = {code_int(t->vector_bytes), code_int(t->vector_regs)};
    code_call(m, &r, MODULE_HAS_VECTORS, 2, args);
}

/* A function that calls the variant's `name`, by the machine's vectors. */
static void write_choice(module_code *m, const module_variant *variants, uint32_t n, const char *name, uint32_t n_args,
                         const char *const *params)
{
    const uint32_t func = code_begin(m, name, n_args, params), r = n_args;
    module_arg *args = arena_array(&m->c->mem, module_arg, n_args + 1u);
    if (n_args > 0)
        check_inputs(m, &variants[0].p);
    for (uint32_t i = 0; i < n_args; i++)
        args[i] = code_reg(i);
    for (uint32_t i = 0; i < n; i++) {
        uint32_t miss = 0;
        if (i + 1 < n) {
            ask_vectors(m, &variants[i], r);
            miss = code_if(m, r);
        }
        code_call(m, &r, function_name(&m->c->mem, &variants[i], n, name), n_args, args);
        code_ret(m, r);
        if (i + 1 < n)
            code_land(m, miss, code_next(m));
    }
    code_end(m, func, n_args + 1);
}

/* A function that gives a text. */
static void write_text(module_code *m, const char *name, const char *s)
{
    const uint32_t func = code_begin(m, name, 0, NULL), r = 0;
    const module_arg text = code_text(m, s);
    code_call(m, &r, "vm.builtin.copy", 1, &text);
    code_ret(m, r);
    code_end(m, func, 1);
}

static void write_reset(module_code *m)
{
    const uint32_t func = code_begin(m, MODULE_RESET, 0, NULL), r = 0;
    const module_arg machine = code_machine();
    code_call(m, &r, MODULE_STATE_RESET, 1, &machine);
    code_ret(m, r);
    code_end(m, func, 1);
}

bool body_write_entries(module_code *m, const module_variant *variants, uint32_t n)
{
    arena *a = &m->c->mem;
    uint32_t n_args;
    const char *const *names = parameter_names(a, &variants[0].p, &n_args);
    for (uint32_t i = 0; i < n; i++) {
        if (!write_main(m, &variants[i], function_name(a, &variants[i], n, "main"), n == 1))
            return false;
        write_text(m, function_name(a, &variants[i], n, "lathe_report"), variants[i].report);
        if (variants[i].loops)
            write_text(m, function_name(a, &variants[i], n, MODULE_LOOPS), variants[i].loops);
    }
    if (package_has_states(&variants[0].p))
        write_reset(m);
    if (n == 1)
        return true;
    write_choice(m, variants, n, "main", n_args, names);
    write_choice(m, variants, n, "lathe_report", 0, NULL);
    if (variants[0].loops)
        write_choice(m, variants, n, MODULE_LOOPS, 0, NULL);
    return true;
}
