/* SPDX-License-Identifier: Apache-2.0 */
/* Calls of external functions that the interpreter knows: those of C's library that copy and fill memory, and the
 * decoder of pictures. Their bytes are checked against the buffers. All others are the program's own, and nobody here
 * can say what they do. And instructions: the nest of the row (tir/instr.h) runs over the operands. Those by value are
 * in small arrays; those by address are the caller's memory, as far as that goes. */
#include "tir/interp.h"

#include "kernel/image/decode.h"
#include "kernel/text/number.h"

#include <inttypes.h>
#include <string.h>

/* The address behind an argument, when `bytes` from there on lie inside the buffer. */
static uint8_t *address(frame *f, const char *function, const call_arg *a, int64_t bytes)
{
    const slot *s = a->access->at;
    int64_t first = 0, size = (int64_t)dtype_bytes(s->buffer->dt);
    if (a->access->n > 0 && !interp_locate(f, a->access, &first))
        return NULL;
    if (bytes >= 0 && bytes <= (s->span - first) * size)
        return s->base + first * size;
    (void)diag_error(&f->c->diags, DIAG_INTERNAL, f->func->loc, "%s: %s of %" PRId64 " bytes at '%s' lies outside",
                     f->func->name, function, bytes, s->buffer->name);
    return NULL;
}

static int64_t number(const frame *f, const call_arg *a)
{
    int64_t v;
    memcpy(&v, f->regs + a->reg, sizeof v);
    return v;
}

static bool is_masked(const frame *f, const instr *in)
{
    int64_t on = 1;
    if (in->mask != NO_REG)
        memcpy(&on, f->regs + in->mask, sizeof on);
    return on == 0;
}

/* Gives the call its value, which nobody needs; whether the mask leaves it out. */
static bool is_off(const frame *f, const instr *in)
{
    int64_t value = 0;
    memcpy(f->regs + in->dst, &value, sizeof value);
    return is_masked(f, in);
}

/* A copy whose sides overlap is an error in the program; here it comes out right. */
static bool copy(frame *f, const instr *in, const char *function)
{
    int64_t bytes = number(f, &in->args[2]);
    if (is_off(f, in))
        return true;
    uint8_t *to = address(f, function, &in->args[0], bytes);
    const uint8_t *from = to ? address(f, function, &in->args[1], bytes) : NULL;
    if (from && bytes > 0)
        memmove(to, from, (size_t)bytes);
    return from != NULL;
}

static bool call_memcpy(frame *f, const instr *in, uint32_t n)
{
    (void)n;
    return copy(f, in, "memcpy");
}

static bool call_memmove(frame *f, const instr *in, uint32_t n)
{
    (void)n;
    return copy(f, in, "memmove");
}

static bool call_memset(frame *f, const instr *in, uint32_t n)
{
    (void)n;
    int64_t bytes = number(f, &in->args[2]);
    if (is_off(f, in))
        return true;
    uint8_t *to = address(f, "memset", &in->args[0], bytes);
    if (to && bytes > 0)
        memset(to, (int)number(f, &in->args[1]), (size_t)bytes);
    return to != NULL;
}

static bool call_decode_image(frame *f, const instr *in, uint32_t n)
{
    const call_arg *a = in->args;
    const int64_t len = number(f, &a[1]), height = number(f, &a[3]), width = number(f, &a[4]);
    const int64_t room = 4 * ((height + 15) / 16 * 16) * ((width + 15) / 16 * 16) + height;
    (void)n;
    if (is_off(f, in))
        return true;
    const uint8_t *file = address(f, TIR_DECODE_IMAGE, &a[0], len);
    uint8_t *rgb = address(f, TIR_DECODE_IMAGE, &a[2], 3 * height * width);
    uint8_t *work = address(f, TIR_DECODE_IMAGE, &a[5], room);
    if (!file || !rgb || !work)
        return false;
    const int64_t status = lathe_decode_image(file, len, rgb, height, width, work);
    memcpy(f->regs + in->dst, &status, sizeof status);
    return true;
}

/* Both directions have the same arguments: what is read, count, bytes of a text, kind of numbers, what is written. */
static bool both_sides(frame *f, const instr *in, const char *function, bool reads, uint8_t **from, uint8_t **to)
{
    const call_arg *a = in->args;
    const int64_t count = number(f, &a[1]), text = count * number(f, &a[2]), numbers = 8 * count;
    *from = address(f, function, &a[0], reads ? text : numbers);
    *to = address(f, function, &a[4], reads ? numbers : text);
    return *from && *to;
}

static bool call_read_numbers(frame *f, const instr *in, uint32_t n)
{
    uint8_t *from, *to;
    (void)n;
    if (is_off(f, in))
        return true;
    if (!both_sides(f, in, TIR_READ_NUMBERS, true, &from, &to))
        return false;
    const int64_t status = lathe_read_numbers(from, number(f, &in->args[1]), number(f, &in->args[2]),
                                              (int32_t)number(f, &in->args[3]), to);
    memcpy(f->regs + in->dst, &status, sizeof status);
    return true;
}

static bool call_write_numbers(frame *f, const instr *in, uint32_t n)
{
    uint8_t *from, *to;
    (void)n;
    if (is_off(f, in))
        return true;
    if (!both_sides(f, in, TIR_WRITE_NUMBERS, false, &from, &to))
        return false;
    lathe_write_numbers(from, number(f, &in->args[1]), number(f, &in->args[2]), (int32_t)number(f, &in->args[3]), to);
    return true;
}

instr_fn interp_extern(tir_expr_ref e)
{
    static const struct {
        const char *name, *args; /* a: an address, i: an integer */
        instr_fn fn;
    } known[] = {{"memcpy", "aai", call_memcpy}, {"memmove", "aai", call_memmove}, {"memset", "aii", call_memset},
#define X(name, file, stack, args, fn) {name, args, fn},
                 TIR_LIBRARY(X)
#undef X
    };
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        bool fits = strcmp(known[i].name, e->u.name) == 0 && strlen(known[i].args) == e->n_args;
        for (uint32_t k = 0; k < e->n_args && fits; k++)
            fits = e->args[k]->kind == TIR_ADDRESS ? known[i].args[k] == 'a'
                                                   : known[i].args[k] == 'i' && dtype_is_int(e->args[k]->type.dt);
        if (fits)
            return known[i].fn;
    }
    return NULL;
}

/* --- instructions --- */

/* Memory from the access on, and how many bytes there are. guarded: there may be none, which is no fault of a nest that
 * reads none. */
static bool point_at(frame *f, const mem_access *x, bool guarded, void **out, size_t *bytes)
{
    const slot *s = x->at;
    const size_t size = dtype_bytes(s->buffer->dt);
    int64_t first = 0;
    if (guarded && !interp_lies_inside(f, x)) {
        *out = s->base;
        *bytes = 0;
        return true;
    }
    if (x->n > 0 && !interp_locate(f, x, &first))
        return false;
    *out = s->base + (size_t)first * size;
    *bytes = (size_t)(s->span - first) * size;
    return true;
}

bool interp_instr(frame *f, const instr *in, uint32_t n)
{
    const struct instr_run *x = in->run;
    void *params[TIR_INTRIN_OPERANDS];
    size_t bytes[TIR_INTRIN_OPERANDS];
    (void)n;
    if (is_masked(f, in))
        return true;
    for (uint32_t i = 0; i < x->n_operands; i++) {
        const slot *s = x->operands[i].elements;
        if (s) {
            params[i] = s->base;
            bytes[i] = (size_t)s->span * dtype_bytes(s->buffer->dt);
        } else if (!point_at(f, x->operands[i].at, x->guarded, &params[i], &bytes[i])) {
            return false;
        }
    }
    for (uint32_t i = 0; i < x->n_symbols; i++)
        memcpy(x->program->image + x->program->given[i], f->regs + x->symbols[i], sizeof(int64_t));
    frame inner = {.c = f->c, .func = x->nest, .mem = f->mem, .regs = x->program->image, .params = params,
                   .bytes = bytes, .run = f->run};
    bool ok = f->run(&inner, x->program->block);
    for (uint32_t i = 0; i < x->n_runs && ok; i++) {
        const size_t step = (size_t)x->follows * x->second;
        ok = step <= bytes[1] && point_at(f, x->runs[i], false, &params[0], &bytes[0]);
        params[1] = (uint8_t *)params[1] + step;
        bytes[1] -= step;
        ok = ok && f->run(&inner, x->program->block);
    }
    return ok;
}
