/* SPDX-License-Identifier: Apache-2.0 */
/* The interpreter's run: walks the tree of blocks, binds buffers, executes instructions. Undefined contents are 0xA5,
 * so that a read of what was never written shows. */
#include "tir/interp.h"
#include "tir/interpret.h"
#include "tir/verify.h"

#include "tir/eval.h"

#include <inttypes.h>

static int64_t reg_i64(const frame *f, uint32_t reg)
{
    int64_t v;
    memcpy(&v, f->regs + reg, sizeof v);
    return v;
}

static void set_i64(frame *f, uint32_t reg, int64_t v)
{
    memcpy(f->regs + reg, &v, sizeof v);
}

static bool run_code(frame *f, const code_list *c)
{
    for (uint32_t i = 0; i < c->list.len; i++) {
        const instr *in = &c->list.data[i];
        if (!in->fn(f, in, in->lanes))
            return false;
    }
    return true;
}

static bool run_lanes(frame *f, const code_list *c, uint32_t n)
{
    for (uint32_t i = 0; i < c->list.len; i++) {
        const instr *in = &c->list.data[i];
        if (!in->fn(f, in, n))
            return false;
    }
    return true;
}

/* --- buffers --- */

/* Strides of a row-major buffer, or those given; the span of elements from the address. */
static bool measure(slot *s)
{
    uint32_t rank = s->buffer->rank;
    int64_t count = 1, last = s->offset, reach;
    bool empty = false, ok = s->offset >= 0;
    for (uint32_t i = rank; i > 0 && ok; i--) {
        int64_t n = s->dims[i - 1];
        if (s->stride_regs[i - 1] == NO_REG)
            s->strides[i - 1] = count;
        empty |= n == 0;
        ok = n >= 0 && s->strides[i - 1] >= 0 && i64_mul(count, n > 0 ? n : 1, &count) &&
             i64_mul(s->strides[i - 1], n > 0 ? n - 1 : 0, &reach) && i64_add(last, reach, &last);
    }
    s->span = empty ? 0 : last + 1;
    return ok && last < INT64_MAX;
}

static bool allocate(frame *f, slot *s)
{
    int64_t bytes;
    bool fits = i64_mul(s->span, (int64_t)dtype_bytes(s->buffer->dt), &bytes) && (uint64_t)bytes < SIZE_MAX / 2;
    if (fits && s->base && (size_t)bytes <= s->capacity) {
        memset(s->base, 0xA5, (size_t)bytes);
        return true;
    }
    s->base = fits ? arena_try_alloc(f->mem, (size_t)bytes, 64) : NULL;
    if (!s->base)
        return diag_error(&f->c->diags, DIAG_ENVIRONMENT, f->func->loc, "%s: no memory for buffer '%s'", f->func->name,
                          s->buffer->name);
    s->capacity = (size_t)bytes;
    memset(s->base, 0xA5, s->capacity);
    return true;
}

/* Memory of the caller's that holds less than the buffer: the accesses that lie in it are good. An extent may be past
 * its bound, of which an assertion says more, and rows that grow are declared as many as there could ever be. */
static bool cut(frame *f, slot *s)
{
    const int64_t room = (int64_t)(f->bytes[s->param] / dtype_bytes(s->buffer->dt));
    if (s->span <= room)
        return true;
    if (s->buffer->rank == 0)
        return diag_error(&f->c->diags, DIAG_DATA, f->func->loc, "%s: no memory is given for '%s'", f->func->name,
                          s->buffer->name);
    const bool rows = !s->buffer->strides && !s->buffer->offset;
    s->dims[0] = rows ? room / s->strides[0] : 0;
    s->span = rows ? room : 0;
    return true;
}

static bool bind(frame *f, slot *s)
{
    for (uint32_t i = 0; i < s->buffer->rank; i++) {
        s->dims[i] = reg_i64(f, s->dim_regs[i]);
        if (s->param >= 0 && s->dims[i] < 0) /* an operand is too small: an assertion says more */
            s->dims[i] = 0;
        if (s->stride_regs[i] != NO_REG)
            s->strides[i] = reg_i64(f, s->stride_regs[i]);
    }
    s->offset = s->offset_reg == NO_REG ? 0 : reg_i64(f, s->offset_reg);
    if (!measure(s))
        return diag_error(&f->c->diags, DIAG_INTERNAL, f->func->loc, "%s: buffer '%s' has no valid size", f->func->name,
                          s->buffer->name);
    if (s->param < 0)
        return allocate(f, s);
    s->base = f->params[s->param];
    return !f->bytes || cut(f, s);
}

/* --- control --- */

static bool run_block(frame *f, const code_block *b);

static bool run_loop(frame *f, const node *n)
{
    int64_t min = reg_i64(f, n->min), extent = reg_i64(f, n->extent);
    for (int64_t i = 0; i < extent; i++) {
        set_i64(f, n->var, eval_add(min, i));
        if (!run_block(f, n->body))
            return false;
    }
    return true;
}

static bool run_strip(frame *f, const node *n)
{
    int64_t min = reg_i64(f, n->min), extent = reg_i64(f, n->extent);
    if (extent <= 0)
        return true;
    if (!run_lanes(f, n->entry, extent < (int64_t)STRIP ? (uint32_t)extent : STRIP))
        return false;
    for (int64_t i = 0; i < extent; i += STRIP) {
        int64_t left = extent - i;
        set_i64(f, n->var, eval_add(min, i));
        if (!run_code(f, n->scalars) || !run_lanes(f, n->code, left < (int64_t)STRIP ? (uint32_t)left : STRIP))
            return false;
    }
    return true;
}

static bool run_node(frame *f, const node *n)
{
    switch (n->kind) {
    case NODE_CODE: return run_code(f, n->code);
    case NODE_LOOP: return run_loop(f, n);
    case NODE_STRIP: return run_strip(f, n);
    case NODE_IF:
        if (reg_i64(f, n->cond))
            return run_block(f, n->body);
        return !n->orelse || run_block(f, n->orelse);
    case NODE_BLOCK: return run_block(f, n->body);
    case NODE_BIND: return bind(f, n->bind);
    case NODE_ASSERT:
        if (reg_i64(f, n->cond))
            return true;
        f->status = n->status;
        f->stopped = true;
        return false;
    }
    return false;
}

static bool run_block(frame *f, const code_block *b)
{
    if (!run_code(f, &b->prologue))
        return false;
    for (uint32_t i = 0; i < b->nodes.len; i++)
        if (!run_node(f, &b->nodes.data[i]))
            return false;
    return true;
}

bool tir_interpret(compiler *c, const tir_func *func, void *const *params, int32_t *out_status)
{
    return tir_interpret_within(c, func, params, NULL, out_status);
}

/* Verified and compiled, and run where `f` is not NULL. */
static bool compile_and(compiler *c, const tir_func *func, frame *f)
{
    arena mem;
    interp_program program;
    if (!tir_verify(c, func))
        return false;
    arena_init(&mem, &c->mem);
    bool ok = interp_compile(c, &mem, func, 0, NULL, &program);
    if (ok && f) {
        f->mem = &mem;
        f->regs = program.image;
        f->run = run_block;
        ok = run_block(f, program.block) || f->stopped;
    }
    arena_free(&mem);
    return ok;
}

bool tir_can_interpret(compiler *c, const tir_func *func)
{
    return compile_and(c, func, NULL);
}

bool tir_interpret_within(compiler *c, const tir_func *func, void *const *params, const size_t *param_bytes,
                          int32_t *out_status)
{
    frame f = {.c = c, .func = func, .params = params, .bytes = param_bytes};
    bool ok = compile_and(c, func, &f);
    *out_status = f.status;
    return ok;
}
