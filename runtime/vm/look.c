/* look.c: reads a text that a function of an executable returns from the function's code. Nothing of the module runs.
 * Such a function may return a constant, ask for this machine's vectors, jump, and call another such function.
 * SPDX-License-Identifier: Apache-2.0 */
#include "look.h"

#include "error.h"
#include "jit.h"

#include <string.h>

/* Functions of ours take a few steps; code that goes round is given up. */
enum { MOST_STEPS = 1000 };

struct look {
    const vm_executable *x;
    uint32_t pc;
    int64_t reg, number;     /* the one register that is known, and what it holds: */
    const vm_constant *text; /* a text, or else the number */
};

/* A call of lathe_has_vectors(bytes, registers). */
static bool ask_vectors(struct look *l, const int64_t *words)
{
    const jit_machine here = jit_this_machine();
    for (int i = 4; i < 6; i++)
        if (words[3] != 2 || vm_arg_kind(words[i]) != MODULE_ARG_IMMEDIATE)
            return false;
    l->number = vm_arg_value(words[4]) <= here.vector_bytes && vm_arg_value(words[5]) <= here.vector_regs;
    l->text = NULL;
    return true;
}

static bool copy_text(struct look *l, const int64_t *words)
{
    if (words[3] != 1 || vm_arg_kind(words[4]) != MODULE_ARG_CONSTANT)
        return false;
    l->text = &l->x->constants[vm_arg_value(words[4])];
    return l->text->tag == MODULE_CONST_STRING;
}

/* *out_inner: a function of the executable without arguments, whose result is the caller's. */
static bool step_call(struct look *l, const int64_t *words, const vm_func **out_inner)
{
    const vm_func *f = &l->x->functions[words[2]];
    l->reg = words[1];
    if (f->kind == MODULE_FUNC_VM && words[3] == 0) {
        *out_inner = f;
        return true;
    }
    if (f->kind != MODULE_FUNC_PACKED)
        return false;
    return strcmp(f->name, MODULE_HAS_VECTORS) == 0 ? ask_vectors(l, words)
                                                    : strcmp(f->name, "vm.builtin.copy") == 0 && copy_text(l, words);
}

/* Follows the code from l->pc on. A call of a function of the executable has to be followed by the return of its
 * result, so that nothing is left to do behind it. */
static bool follow(struct look *l)
{
    const vm_func *inner = NULL;
    for (int i = 0; i < MOST_STEPS; i++) {
        const int64_t *words = l->x->code[l->pc];
        switch (words[0]) {
        case MODULE_CALL:
            if (inner || !step_call(l, words, &inner))
                return false;
            l->pc++;
            break;
        case MODULE_RET:
            if (words[1] != l->reg || !inner)
                return words[1] == l->reg && l->text;
            *l = (struct look){.x = l->x, .pc = inner->start, .reg = -1};
            inner = NULL;
            break;
        case MODULE_GOTO: l->pc = (uint32_t)(l->pc + words[1]); break;
        case MODULE_IF:
            if (inner || l->text || words[1] != l->reg)
                return false;
            l->pc = l->number ? l->pc + 1 : (uint32_t)(l->pc + words[2]);
            break;
        default: return false;
        }
    }
    return false;
}

int32_t vm_look(const vm_executable *x, const char *function, vm_bytes *out, lathe_error *error)
{
    const vm_func *f = vm_executable_find(x, function);
    *out = (vm_bytes){0};
    if (!f || f->kind != MODULE_FUNC_VM)
        return vm_fail(error, LATHE_E_NAME, "the module has no function %s", function);
    struct look l = {.x = x, .pc = f->start, .reg = -1};
    if (f->params != 0 || !follow(&l))
        return vm_fail(error, LATHE_E_FORMAT, "%s is not a function that only gives a text", function);
    *out = l.text->u.text;
    return LATHE_OK;
}
