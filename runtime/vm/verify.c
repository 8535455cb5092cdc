/* verify.c: checks code before any of it runs: every instruction lies in its words, every index in its table, every
 * jump in its function, and no path runs off a function's end.
 * SPDX-License-Identifier: Apache-2.0 */
#include "error.h"
#include "executable.h"

#include <inttypes.h>
#include <stdio.h>

enum module_arg_kind vm_arg_kind(int64_t word)
{
    return (enum module_arg_kind)((uint64_t)word >> MODULE_ARG_BITS);
}

int64_t vm_arg_value(int64_t word)
{
    uint64_t low = (uint64_t)word & ((UINT64_C(1) << MODULE_ARG_BITS) - 1), sign = UINT64_C(1) << (MODULE_ARG_BITS - 1);
    return (int64_t)((low ^ sign) - sign);
}

struct check {
    vm_executable *x;
    vm_func *f;
    uint32_t pc;
    const int64_t *words;
    int64_t length; /* words up to the next instruction's, or to the end */
    uint32_t used;  /* registers */
    lathe_error *error;
};

/* Says where, then what. */
#define BAD(c, ...)                                                                                                    \
    (vm_fail((c)->error, LATHE_E_FORMAT, __VA_ARGS__),                                                                 \
     vm_at((c)->error, LATHE_E_FORMAT, "function %s, instruction %u", (c)->f->name, (c)->pc - (c)->f->start))

static int32_t check_register(struct check *c, int64_t reg, const char *what)
{
    if (reg < 0 || reg >= c->f->registers)
        return BAD(c, "%s is register %" PRId64 " of %u", what, reg, c->f->registers);
    c->used = reg >= c->used ? (uint32_t)reg + 1 : c->used;
    return LATHE_OK;
}

static int32_t check_argument(struct check *c, int64_t i, int64_t word)
{
    int64_t value = vm_arg_value(word);
    char what[40];
    switch (vm_arg_kind(word)) {
    case MODULE_ARG_REGISTER:
        if (value == MODULE_VOID_REGISTER || value == MODULE_VM_REGISTER)
            return LATHE_OK;
        (void)snprintf(what, sizeof what, "argument %" PRId64, i);
        return check_register(c, value, what);
    case MODULE_ARG_IMMEDIATE: return LATHE_OK;
    case MODULE_ARG_CONSTANT:
        return value >= 0 && value < c->x->constant_count
                   ? LATHE_OK
                   : BAD(c, "argument %" PRId64 " is constant %" PRId64 " of %u", i, value, c->x->constant_count);
    case MODULE_ARG_FUNCTION:
        return value >= 0 && value < c->x->function_count
                   ? LATHE_OK
                   : BAD(c, "argument %" PRId64 " is function %" PRId64 " of %u", i, value, c->x->function_count);
    default: return BAD(c, "argument %" PRId64 " is of kind %u, which is not known", i, (unsigned)vm_arg_kind(word));
    }
}

static int32_t check_length(struct check *c, const char *name, int64_t wanted)
{
    return c->length == wanted ? LATHE_OK
                               : BAD(c, "a %s of %" PRId64 " words stands in %" PRId64, name, wanted, c->length);
}

static int32_t check_call(struct check *c)
{
    if (c->length < 4)
        return check_length(c, "call", 4);
    int64_t to = c->words[1], function = c->words[2], n = c->words[3];
    if (n < 0 || n > INT32_MAX)
        return BAD(c, "a call with %" PRId64 " arguments", n);
    int32_t status = check_length(c, "call", n + 4);
    if (status == LATHE_OK && to != MODULE_VOID_REGISTER)
        status = check_register(c, to, "the destination");
    if (status == LATHE_OK && (function < 0 || function >= c->x->function_count))
        return BAD(c, "a call of function %" PRId64 " of %u", function, c->x->function_count);
    if (status == LATHE_OK && c->x->functions[function].kind == MODULE_FUNC_VM &&
        n != c->x->functions[function].params)
        return BAD(c, "a call of %s with %" PRId64 " arguments, which takes %u", c->x->functions[function].name, n,
                   c->x->functions[function].params);
    for (int64_t i = 0; i < n && status == LATHE_OK; i++)
        status = check_argument(c, i, c->words[4 + i]);
    c->f->most_args = n > c->f->most_args ? (uint32_t)n : c->f->most_args;
    return status;
}

static int32_t check_target(struct check *c, int64_t distance)
{
    int64_t low = (int64_t)c->f->start - c->pc, high = (int64_t)c->f->end - c->pc;
    return distance >= low && distance < high
               ? LATHE_OK
               : BAD(c, "a jump by %" PRId64 " leaves the function, which has %u instructions", distance,
                     c->f->end - c->f->start);
}

/* The next instruction can be reached: it must be there. */
static int32_t check_next(struct check *c)
{
    return c->pc + 1 < c->f->end ? LATHE_OK : BAD(c, "the function goes on behind its last instruction");
}

static int32_t check_instruction(struct check *c)
{
    int32_t status;
    switch (c->words[0]) {
    case MODULE_CALL:
        status = check_call(c);
        return status == LATHE_OK ? check_next(c) : status;
    case MODULE_RET:
        status = check_length(c, "return", 2);
        return status == LATHE_OK && c->words[1] != MODULE_VOID_REGISTER ? check_register(c, c->words[1], "the result")
                                                                        : status;
    case MODULE_GOTO:
        status = check_length(c, "goto", 2);
        return status == LATHE_OK ? check_target(c, c->words[1]) : status;
    case MODULE_IF:
        status = check_length(c, "if", 3);
        if (status == LATHE_OK)
            status = check_register(c, c->words[1], "the condition");
        if (status == LATHE_OK)
            status = check_target(c, c->words[2]);
        return status == LATHE_OK ? check_next(c) : status;
    default: return BAD(c, "operation %" PRId64 " is not known", c->words[0]);
    }
}

static int32_t check_function(vm_executable *x, vm_func *f, lathe_error *error)
{
    struct check c = {.x = x, .f = f, .used = f->params, .error = error};
    if (f->end > x->instructions)
        return vm_fail(error, LATHE_E_FORMAT, "function %s ends at instruction %u of %u", f->name, f->end,
                       x->instructions);
    for (c.pc = f->start; c.pc < f->end; c.pc++) {
        const int64_t *end = c.pc + 1 < x->instructions ? x->code[c.pc + 1] : x->words + x->word_count;
        c.words = x->code[c.pc];
        c.length = end - c.words;
        int32_t status = c.length > 0 ? check_instruction(&c) : BAD(&c, "it begins behind the next one");
        if (status != LATHE_OK)
            return status;
    }
    f->registers = c.used;
    return LATHE_OK;
}

int32_t vm_executable_verify(vm_executable *x, lathe_error *error)
{
    uint64_t total = 0;
    for (uint32_t i = 0; i < x->function_count; i++) {
        vm_func *f = &x->functions[i];
        if (f->kind != MODULE_FUNC_VM)
            continue;
        total += f->end - f->start;
        if (total > x->instructions) /* functions that share code would be checked again and again */
            return vm_fail(error, LATHE_E_FORMAT, "function %s: functions have %" PRIu64 " instructions, the file %u",
                           f->name, total, x->instructions);
        int32_t status = check_function(x, f, error);
        if (status != LATHE_OK)
            return status;
    }
    return LATHE_OK;
}
