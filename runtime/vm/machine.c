/* machine.c: runs code that verify.c has passed.
 * SPDX-License-Identifier: Apache-2.0 */
#include "machine.h"

#include "boundary.h"
#include "error.h"

#include <stdlib.h>
#include <string.h>

/* --- memory of a call --- */

/* Registers of a call, all None, and room for the arguments of its calls behind them. */
static int32_t push_frame(vm_machine *m, const vm_func *f, lathe_value **out, lathe_error *error)
{
    if (m->depth == VM_DEPTH_MAX)
        return vm_fail(error, LATHE_E_UNSUPPORTED, "calls of functions are more than %d deep", VM_DEPTH_MAX);
    if (m->depth == m->frame_count) {
        uint32_t count = m->frame_count ? m->frame_count * 2 : 4;
        vm_frame *frames = realloc(m->frames, count * sizeof *frames);
        if (!frames)
            return vm_no_memory(error, count * sizeof *frames);
        memset(frames + m->frame_count, 0, (count - m->frame_count) * sizeof *frames);
        m->frames = frames;
        m->frame_count = count;
    }
    vm_frame *frame = &m->frames[m->depth];
    size_t wanted = (size_t)f->registers + f->most_args + 1;
    if (frame->capacity < wanted) {
        free(frame->slots);
        *frame = (vm_frame){malloc(wanted * sizeof *frame->slots), wanted};
        if (!frame->slots) {
            frame->capacity = 0;
            return vm_no_memory(error, wanted * sizeof *frame->slots);
        }
    }
    memset(frame->slots, 0, f->registers * sizeof *frame->slots);
    m->depth++;
    *out = frame->slots;
    return LATHE_OK;
}

static void pop_frame(vm_machine *m, const vm_func *f, lathe_value *registers)
{
    for (uint32_t i = 0; i < f->registers; i++)
        if (vm_value_is_object(&registers[i]))
            lathe_release(&registers[i]);
    m->depth--;
}

/* Constant i, which is made at its first use: a module holds those of several ways to compute, of which one is used. */
static int32_t constant(vm_machine *m, uint32_t i, lathe_value *out, lathe_error *error)
{
    lathe_value *v = &m->constants[i];
    const vm_constant *c = &m->x->constants[i];
    int32_t status = LATHE_OK;
    int64_t *dims;
    *out = *v;
    if (v->type != LATHE_NONE)
        return LATHE_OK;
    switch (c->tag) {
    case MODULE_CONST_INT: *v = vm_value_int(c->u.v_int); break;
    case MODULE_CONST_FLOAT: *v = (lathe_value){.type = LATHE_FLOAT, .u.v_float = c->u.v_float}; break;
    case MODULE_CONST_DTYPE: *v = (lathe_value){.type = LATHE_DTYPE, .u.v_dtype = c->u.v_dtype}; break;
    case MODULE_CONST_STRING: status = vm_string_new(c->u.text, v, error); break;
    case MODULE_CONST_SHAPE:
        status = vm_shape_new(c->u.shaped.rank, &dims, v, error);
        if (status == LATHE_OK)
            memcpy(dims, c->u.shaped.dims, c->u.shaped.rank * sizeof *dims);
        break;
    case MODULE_CONST_TENSOR:
        status = vm_tensor_from_bytes(&m->module.rt->devices, c->u.shaped.data, c->u.shaped.dims, c->u.shaped.rank,
                                      c->u.shaped.dtype, m->targets[0].allocator, v, error);
        break;
    }
    *out = *v;
    return status;
}

/* --- running --- */

/* An argument. Functions are new references, and given back after the call; the rest is borrowed. */
static int32_t argument(vm_machine *m, const lathe_value *registers, int64_t word, lathe_value *out, lathe_error *error)
{
    int64_t value = vm_arg_value(word);
    *out = (lathe_value){0};
    switch (vm_arg_kind(word)) {
    case MODULE_ARG_REGISTER:
        if (value == MODULE_VM_REGISTER)
            *out = (lathe_value){.type = LATHE_POINTER, .u.v_pointer = m};
        else if (value != MODULE_VOID_REGISTER)
            *out = registers[value];
        return LATHE_OK;
    case MODULE_ARG_IMMEDIATE: *out = vm_value_int(value); return LATHE_OK;
    case MODULE_ARG_CONSTANT: return constant(m, (uint32_t)value, out, error);
    case MODULE_ARG_FUNCTION: return vm_machine_function(m, (uint32_t)value, out, error);
    }
    return LATHE_OK;
}

static int32_t call(vm_machine *m, const vm_func *f, lathe_value *registers, const int64_t *words, lathe_error *error)
{
    lathe_value *args = registers + f->registers, result = {0};
    int64_t n = words[3], made = 0;
    int32_t status = LATHE_OK;
    for (; made < n && status == LATHE_OK; made++)
        status = argument(m, registers, words[4 + made], &args[made], error);
    if (status == LATHE_OK)
        status = vm_machine_call(m, (uint32_t)words[2], args, (int32_t)n, &result, error);
    for (int64_t i = 0; i < made; i++)
        if (vm_arg_kind(words[4 + i]) == MODULE_ARG_FUNCTION)
            lathe_release(&args[i]);
    if (status == LATHE_OK && words[1] != MODULE_VOID_REGISTER)
        vm_value_set(&registers[words[1]], result);
    else
        lathe_release(&result);
    return status;
}

static int32_t condition(const lathe_value *v, bool *out, lathe_error *error)
{
    int64_t i;
    if (!vm_value_to_int(v, &i))
        return vm_fail(error, LATHE_E_FORMAT, "the condition is %s, not a bool", vm_type_name(v->type));
    *out = i != 0;
    return LATHE_OK;
}

/* Runs to the next return, or to an error at *pc. */
static int32_t execute(vm_machine *m, const vm_func *f, lathe_value *registers, lathe_value *result, uint32_t *pc,
                       lathe_error *error)
{
    for (;;) {
        const int64_t *words = m->x->code[*pc];
        int32_t status;
        bool yes = false;
        switch (words[0]) {
        case MODULE_CALL:
            status = call(m, f, registers, words, error);
            if (status != LATHE_OK)
                return status;
            ++*pc;
            break;
        case MODULE_GOTO: *pc = (uint32_t)(*pc + words[1]); break;
        case MODULE_IF:
            status = condition(&registers[words[1]], &yes, error);
            if (status != LATHE_OK)
                return status;
            *pc = (uint32_t)(*pc + (yes ? 1 : words[2]));
            break;
        default: /* a return */
            if (words[1] != MODULE_VOID_REGISTER)
                *result = lathe_retain(&registers[words[1]]);
            return LATHE_OK;
        }
    }
}

/* Says once where an error was: in the innermost function. */
static void place(vm_machine *m, const vm_func *f, uint32_t pc, int32_t status, lathe_error *error)
{
    const int64_t *words = m->x->code[pc];
    if (m->placed)
        return;
    m->placed = true;
    if (words[0] == MODULE_CALL)
        (void)vm_at(error, status, "function %s, instruction %u, %s", f->name, pc - f->start,
                    m->x->functions[words[2]].name);
    else
        (void)vm_at(error, status, "function %s, instruction %u", f->name, pc - f->start);
}

static int32_t run(vm_machine *m, const vm_func *f, const lathe_value *args, lathe_value *result, lathe_error *error)
{
    lathe_value *registers = NULL;
    int32_t status = push_frame(m, f, &registers, error);
    uint32_t pc = f->start;
    if (status != LATHE_OK)
        return status;
    for (uint32_t i = 0; i < f->params; i++)
        registers[i] = lathe_retain(&args[i]);
    status = execute(m, f, registers, result, &pc, error);
    if (status != LATHE_OK)
        place(m, f, pc, status, error);
    pop_frame(m, f, registers);
    return status;
}

int32_t vm_machine_call(vm_machine *m, uint32_t i, const lathe_value *args, int32_t n, lathe_value *result,
                        lathe_error *error)
{
    const vm_callee *c = &m->callees[i];
    if (c->builtin)
        return c->builtin(m, args, n, result, error);
    return c->func ? run(m, c->func, args, result, error) : vm_call(&c->function, args, n, result, error);
}

/* --- functions of a machine as values --- */

struct closure {
    vm_function f;
    uint32_t index;
};

/* From outside: arguments are wrapped, and what is borrowed does not come out again. */
static int32_t call_from_outside(vm_machine *m, uint32_t i, const lathe_value *args, int32_t n, lathe_value *result,
                                 lathe_error *error)
{
    lathe_value few[8], *own = n <= 8 ? few : malloc((size_t)n * sizeof *own);
    int32_t status = LATHE_OK, made = 0;
    if (!own)
        return vm_no_memory(error, (size_t)n * sizeof *own);
    m->placed = false;
    for (; made < n && status == LATHE_OK; made++) {
        own[made] = (lathe_value){0};
        status = vm_boundary_in(m, &args[made], &own[made], error);
        if (status != LATHE_OK)
            (void)vm_at(error, status, "argument %d of %s", made, m->x->functions[i].name);
    }
    if (status == LATHE_OK)
        status = vm_machine_call(m, i, own, n, result, error);
    if (status == LATHE_OK)
        status = vm_boundary_out(m, result, error);
    for (int32_t k = 0; k < made; k++)
        lathe_release(&own[k]);
    if (own != few)
        free(own);
    if (status != LATHE_OK)
        lathe_release(result);
    return status;
}

static int32_t call_closure(vm_function *self, const lathe_value *args, int32_t n, lathe_value *result,
                            lathe_error *error)
{
    const struct closure *c = (struct closure *)(void *)self;
    vm_machine *m = (vm_machine *)(void *)self->owner;
    const vm_func *f = &m->x->functions[c->index];
    int32_t status = LATHE_OK;
    if (f->kind == MODULE_FUNC_VM && n != (int32_t)f->params)
        return vm_fail(error, LATHE_E_ARGUMENT, "%s takes %u arguments, %d are given", f->name, f->params, n);
    pthread_mutex_lock(&m->lock);
    status = m->depth == 0 ? call_from_outside(m, c->index, args, n, result, error)
                           : vm_machine_call(m, c->index, args, n, result, error);
    pthread_mutex_unlock(&m->lock);
    return status;
}

int32_t vm_machine_function(vm_machine *m, uint32_t i, lathe_value *out, lathe_error *error)
{
    const vm_callee *callee = &m->callees[i];
    if (!callee->func && !callee->builtin) {
        *out = lathe_retain(&callee->function);
        return LATHE_OK;
    }
    struct closure *c = vm_function_new(sizeof *c, call_closure, &m->module.head, NULL);
    if (!c)
        return vm_no_memory(error, sizeof *c);
    c->index = i;
    *out = vm_value_of(c);
    return LATHE_OK;
}
