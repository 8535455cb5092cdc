/* describe.c: what a function takes. This is read from the checks at the start of its code, for programs that run
 * modules they do not know.
 * SPDX-License-Identifier: Apache-2.0 */
#include "error.h"
#include "module_kinds.h"
#include "module_machine.h"

#include <string.h>

enum { MOST_CALLS = 8, MOST_INSTRUCTIONS = 100000 };

struct parameter {
    lathe_dtype dtype;
    int32_t ndim;
    int64_t *shape;
    int32_t most;
    bool has_dtype;
    int32_t type;  /* LATHE_TENSOR, LATHE_SHAPE, or not known yet */
    uint32_t seen; /* instructions: functions may call each other in many ways */
};

const char *lathe_source(const lathe_value *module)
{
    vm_module *m = vm_module_of(module, NULL);
    vm_machine *machine = m ? vm_machine_of(module, NULL) : NULL;
    vm_module *source = m ? vm_module_of_kind(machine ? machine->source : m, &vm_source_kind) : NULL;
    return source ? vm_source_text(source) : NULL;
}

int32_t lathe_module_devices(const lathe_value *module, int32_t *out, int32_t max)
{
    vm_module *m = vm_module_of(module, NULL);
    vm_machine *machine = m ? vm_machine_of(module, NULL) : NULL;
    vm_module *source = m ? vm_module_of_kind(machine ? machine->source : m, &vm_source_kind) : NULL;
    int32_t all[VM_DEVICES_MAX];
    const int32_t n = source ? (int32_t)vm_source_devices(source, all) : 0;
    for (int32_t i = 0; i < n && i < max; i++)
        out[i] = all[i];
    return n;
}

static int32_t find(const lathe_value *vm, const char *function, const vm_executable **x, const vm_func **out,
                    lathe_error *error)
{
    vm_machine *m = vm_machine_of(vm, error);
    if (!m)
        return LATHE_E_ARGUMENT;
    *x = m->x;
    *out = vm_executable_find(m->x, function);
    if (!*out || (*out)->kind != MODULE_FUNC_VM)
        return vm_fail(error, LATHE_E_NAME, "the module has no function %s", function);
    return LATHE_OK;
}

int32_t lathe_function_arity(const lathe_value *vm, const char *function, int32_t *out, lathe_error *error)
{
    const vm_executable *x;
    const vm_func *f;
    *out = 0;
    int32_t status = find(vm, function, &x, &f, error);
    if (status == LATHE_OK)
        *out = (int32_t)f->params;
    return status;
}

static bool is_immediate(int64_t word)
{
    return vm_arg_kind(word) == MODULE_ARG_IMMEDIATE;
}

static void set_rank(struct parameter *p, int64_t rank)
{
    if (p->ndim != -1 || rank < 0 || rank > INT32_MAX)
        return;
    p->ndim = (int32_t)rank;
    for (int32_t i = 0; i < p->ndim && i < p->most; i++)
        p->shape[i] = -1;
}

/* (value, rank[, dtype], context) */
static void see_check(const vm_executable *x, const int64_t *words, int32_t type, struct parameter *p)
{
    int64_t n = words[3];
    p->type = p->type ? p->type : type;
    if (n >= 3 && is_immediate(words[5]))
        set_rank(p, vm_arg_value(words[5]));
    if (n < 4 || p->has_dtype || vm_arg_kind(words[6]) != MODULE_ARG_CONSTANT)
        return;
    const vm_constant *c = &x->constants[vm_arg_value(words[6])];
    if (c->tag != MODULE_CONST_DTYPE || vm_dtype_is_any(c->u.v_dtype))
        return;
    p->dtype = c->u.v_dtype;
    p->has_dtype = true;
}

/* (value, heap, rank, (code, operand)..., context) */
static void see_match(const int64_t *words, struct parameter *p)
{
    int64_t n = words[3];
    if (n < 4 || !is_immediate(words[6]))
        return;
    int64_t rank = vm_arg_value(words[6]);
    set_rank(p, rank);
    if (n != rank * 2 + 4)
        return;
    for (int64_t i = 0; i < rank && i < p->most; i++) {
        int64_t code = words[7 + 2 * i], operand = words[8 + 2 * i];
        if (is_immediate(code) && is_immediate(operand) && vm_arg_value(code) == MODULE_MATCH_IMMEDIATE)
            p->shape[i] = vm_arg_value(operand);
    }
}

/* Parameter `reg` of f: what its calls say of it until the register gets something else, and what functions say that
 * it is handed to as it is. */
static void see_function(const vm_executable *x, const vm_func *f, int64_t reg, uint32_t depth, struct parameter *p)
{
    for (uint32_t pc = f->start; pc < f->end && p->seen++ < MOST_INSTRUCTIONS; pc++) {
        const int64_t *words = x->code[pc];
        if (words[0] != MODULE_CALL)
            continue;
        const vm_func *callee = &x->functions[words[2]];
        bool first = words[3] > 0 && words[4] == reg;
        if (first && strcmp(callee->name, "vm.builtin.check_tensor_info") == 0)
            see_check(x, words, LATHE_TENSOR, p);
        else if (first && strcmp(callee->name, "vm.builtin.check_shape_info") == 0)
            see_check(x, words, LATHE_SHAPE, p);
        else if (first && strcmp(callee->name, "vm.builtin.match_shape") == 0)
            see_match(words, p);
        for (int64_t i = 0; callee->kind == MODULE_FUNC_VM && depth < MOST_CALLS && i < words[3]; i++)
            if (words[4 + i] == reg && (p->ndim == -1 || p->type == LATHE_NONE))
                see_function(x, callee, i, depth + 1, p);
        if (words[1] == reg)
            return;
    }
}

static int32_t look_at(const lathe_value *vm, const char *function, int32_t i, const vm_func **out,
                       struct parameter *p, lathe_error *error)
{
    const vm_executable *x;
    int32_t status = find(vm, function, &x, out, error);
    if (status != LATHE_OK)
        return status;
    if (i < 0 || i >= (int32_t)(*out)->params)
        return vm_fail(error, LATHE_E_ARGUMENT, "parameter %d of %s, which has %u", i, function, (*out)->params);
    see_function(x, *out, i, 0, p);
    return LATHE_OK;
}

int32_t lathe_function_parameter_type(const lathe_value *vm, const char *function, int32_t i, int32_t *out_type,
                                      lathe_error *error)
{
    const vm_func *f;
    struct parameter p = {.ndim = -1};
    int32_t status = look_at(vm, function, i, &f, &p, error);
    *out_type = status == LATHE_OK ? p.type : LATHE_NONE;
    return status;
}

int32_t lathe_function_parameter(const lathe_value *vm, const char *function, int32_t i, const char **out_name,
                                 lathe_dtype *out_dtype, int32_t *out_ndim, int64_t *out_shape, int32_t max_ndim,
                                 lathe_error *error)
{
    const vm_func *f;
    struct parameter p = {.ndim = -1, .shape = out_shape, .most = max_ndim};
    int32_t status = look_at(vm, function, i, &f, &p, error);
    if (status != LATHE_OK)
        return status;
    *out_name = f->param_names ? f->param_names[i] : "";
    *out_dtype = p.dtype;
    *out_ndim = p.ndim;
    return LATHE_OK;
}
