/* queue.c: the instruction queue: transfers, dependencies and their merging into instructions, and synchronisation.
 *
 * A pop waits as "pending" until its stage's next instruction takes it; a push goes onto the last instruction of the
 * stream when that is of the right stage, else onto a NOP. The order and the NOPs are those of the published run-time,
 * so that streams come out identical. What does not fit an instruction's fields is split where the parts do the same,
 * and refused otherwise.
 * SPDX-License-Identifier: Apache-2.0 */
#include "context.h"

/* --- instructions ------------------------------------------------------------------------------------------------- */

static const char *opcode_name(int64_t opcode)
{
    switch (opcode) {
#define X(id, code, text) \
    case id: return text;
        VTA_OPCODES(X)
#undef X
    }
    return "instruction";
}

void vta_queue_lay_out(vta_context *c)
{
    for (int64_t opcode = 0; opcode <= VTA_ALU; opcode++)
        c->queue.n_fields[opcode] = vta_insn_layout(c->geometry, opcode, c->queue.fields[opcode]);
}

/* vta_encode with the layouts kept. */
vta_status vta_queue_encode(const vta_context *c, const vta_fields *f, vta_insn *out, vta_error *e)
{
    const vta_field *fields = c->queue.fields[f->opcode];
    vta_field_error bad = {NULL, 0, 0, 0};
    uint32_t i = 0, n = c->queue.n_fields[f->opcode];
    out->word[0] = out->word[1] = 0;
    while (i < n && vta_field_put(&fields[i], f, out->word, &bad))
        i++;
    if (i == n)
        return VTA_OK;
    return vta_fail(e, VTA_BAD_FIELD, "%s: %s is %lld; the field holds %lld to %lld", opcode_name(f->opcode), bad.field,
                    (long long)bad.value, (long long)bad.least, (long long)bad.most);
}

vta_status vta_queue_append(vta_context *c, const vta_fields *f, vta_error *e)
{
    vta_queue *q = &c->queue;
    enum vta_stage stage = vta_stage_of(f);
    vta_insn insn;
    vta_status s = vta_queue_encode(c, f, &insn, e);
    if (s != VTA_OK)
        return s;
    if (q->count >= q->most)
        return vta_fail(e, VTA_NO_MEMORY, "the instruction queue of %u is full", q->most);
    insn.word[0] |= q->pending[stage];
    if (q->pending[stage] & VTA_POP_PREV)
        --*(stage == VTA_STAGE_COMPUTE ? &q->open.l2g : &q->open.g2s);
    if (q->pending[stage] & VTA_POP_NEXT)
        --*(stage == VTA_STAGE_COMPUTE ? &q->open.s2g : &q->open.g2l);
    q->pending[stage] = 0;
    q->insns[q->count++] = insn;
    q->last = f->opcode == VTA_LOAD && f->x_size == 0 ? VTA_STAGE_NONE : stage;
    return VTA_OK;
}

/* An instruction of the stage that does nothing but take pending tokens. */
static vta_status append_nop(vta_context *c, enum vta_stage stage, vta_error *e)
{
    vta_fields f = {0};
    f.opcode = stage == VTA_STAGE_STORE ? VTA_STORE : VTA_LOAD;
    f.memory_type = stage == VTA_STAGE_LOAD ? VTA_MEM_INP : VTA_MEM_UOP;
    return vta_queue_append(c, &f, e);
}

static vta_status commit(vta_context *c, enum vta_stage stage, vta_error *e)
{
    return c->queue.pending[stage] ? append_nop(c, stage, e) : VTA_OK;
}

/* --- dependencies ------------------------------------------------------------------------------------------------- */

/* NOPs of LOAD take no push, as in the published run-time: `last` is then VTA_STAGE_NONE. */
static vta_status push_token(vta_context *c, enum vta_stage from, enum vta_stage to, vta_error *e)
{
    vta_queue *q = &c->queue;
    uint32_t flag = from < to ? VTA_PUSH_NEXT : VTA_PUSH_PREV;
    vta_status s = commit(c, from, e);
    if (s == VTA_OK && (q->last != from || q->insns[q->count - 1].word[0] & flag))
        s = append_nop(c, from, e);
    if (s != VTA_OK)
        return s;
    q->insns[q->count - 1].word[0] |= flag;
    if (from == VTA_STAGE_COMPUTE)
        ++*(to == VTA_STAGE_LOAD ? &q->open.g2l : &q->open.g2s);
    else
        ++*(from == VTA_STAGE_LOAD ? &q->open.l2g : &q->open.s2g);
    return VTA_OK;
}

static vta_status pop_token(vta_context *c, enum vta_stage from, enum vta_stage to, vta_error *e)
{
    uint32_t flag = from < to ? VTA_POP_PREV : VTA_POP_NEXT;
    vta_status s = c->queue.pending[to] & flag ? commit(c, to, e) : VTA_OK;
    if (s == VTA_OK)
        c->queue.pending[to] |= flag;
    return s;
}

static vta_status check_pair(enum vta_stage from, enum vta_stage to, vta_error *e)
{
    if ((from == VTA_STAGE_COMPUTE && (to == VTA_STAGE_LOAD || to == VTA_STAGE_STORE)) ||
        (to == VTA_STAGE_COMPUTE && (from == VTA_STAGE_LOAD || from == VTA_STAGE_STORE)))
        return VTA_OK;
    return vta_fail(e, VTA_BAD_ARGUMENT,
                    "no dependency queue leads from stage %d to %d; there are 1 to 2, 2 to 1, 2 to 3 and 3 to 2 "
                    "(1 load, 2 compute, 3 store)",
                    (int)from, (int)to);
}

static vta_status depend(vta_context *c, enum vta_stage from, enum vta_stage to,
                         vta_status (*act)(vta_context *, enum vta_stage, enum vta_stage, vta_error *))
{
    vta_status s = vta_context_enter(c);
    if (s != VTA_OK)
        return s;
    s = check_pair(from, to, &c->error);
    if (s == VTA_OK)
        s = vta_queue_room(c, 2, &c->error);
    if (s == VTA_OK)
        s = act(c, from, to, &c->error);
    return vta_context_leave(c, s);
}

vta_status vta_dep_push(vta_context *c, enum vta_stage from, enum vta_stage to)
{
    return depend(c, from, to, push_token);
}

vta_status vta_dep_pop(vta_context *c, enum vta_stage from, enum vta_stage to)
{
    return depend(c, from, to, pop_token);
}

/* --- transfers ---------------------------------------------------------------------------------------------------- */

/* Queues one part of a transfer; `base` is the buffer's first element in device memory. */
static vta_status append_part(vta_context *c, int64_t opcode, const vta_transfer *t, uint64_t base, uint64_t sram,
                              uint64_t dram, vta_error *e)
{
    vta_fields f = {0};
    f.opcode = opcode;
    f.memory_type = t->memory;
    if (t->x_size > 0 && t->y_size > 0) { /* else a NOP: x_size 0; y_size 0 alone is none */
        f.sram_base = (int64_t)sram;
        f.dram_base = (int64_t)(base + dram);
        f.y_size = t->y_size;
        f.x_size = t->x_size;
        f.x_stride = t->x_stride;
        f.y_pad_0 = t->y_pad_before;
        f.y_pad_1 = t->y_pad_after;
        f.x_pad_0 = t->x_pad_before;
        f.x_pad_1 = t->x_pad_after;
    }
    vta_status s = vta_queue_room(c, 1, e);
    return s == VTA_OK ? vta_queue_append(c, &f, e) : s;
}

static uint32_t least(uint64_t a, uint64_t b)
{
    return (uint32_t)(a < b ? a : b);
}

/* A part that zeroes `rows` rows of `width` elements, and, after or before them, leaves `width` elements of the tile's
 * row `dram` where a later part writes. Pads alone cannot be loaded, and one instruction pads by 15 at most. */
static vta_status append_zeros(vta_context *c, const vta_transfer *t, uint64_t base, uint32_t width, uint32_t rows,
                               bool zeros_first, uint64_t sram, uint64_t dram, vta_error *e)
{
    vta_transfer part = {.memory = t->memory, .x_size = width, .y_size = 1, .x_stride = width};
    part.y_pad_before = zeros_first ? rows : 0;
    part.y_pad_after = zeros_first ? 0 : rows;
    return append_part(c, VTA_LOAD, &part, base, sram, dram, e);
}

/* Zeroes from *sram on until at most 15 of *zeros elements are left; each part's own row is overwritten by the next. */
static vta_status append_leading(vta_context *c, const vta_transfer *t, uint64_t base, uint64_t *sram, uint64_t *zeros,
                                 uint64_t dram, vta_error *e)
{
    while (*zeros > VTA_MAX_PAD) {
        uint32_t width = least(least(t->x_size, VTA_MOST_EXTENT), *zeros);
        uint32_t rows = least(VTA_MAX_PAD, *zeros / width);
        vta_status s = append_zeros(c, t, base, width, rows, true, *sram, dram, e);
        if (s != VTA_OK)
            return s;
        *sram += (uint64_t)rows * width;
        *zeros -= (uint64_t)rows * width;
    }
    return VTA_OK;
}

/* The same from the tile's end backwards; comes before the rows, the last of which overwrites what it leaves. */
static vta_status append_trailing(vta_context *c, const vta_transfer *t, uint64_t base, uint64_t end, uint64_t *zeros,
                                  uint64_t dram, vta_error *e)
{
    while (*zeros > VTA_MAX_PAD) {
        uint32_t width = least(least(t->x_size, VTA_MOST_EXTENT), *zeros);
        uint32_t rows = least(VTA_MAX_PAD, *zeros / width);
        vta_status s = append_zeros(c, t, base, width, rows, false, end - (uint64_t)(rows + 1) * width, dram, e);
        if (s != VTA_OK)
            return s;
        end -= (uint64_t)rows * width;
        *zeros -= (uint64_t)rows * width;
    }
    return VTA_OK;
}

/* One row, in parts of at most 65535 elements; the pads are at most 15. */
static vta_status append_row(vta_context *c, int64_t opcode, const vta_transfer *t, uint64_t base, uint64_t sram,
                             uint64_t dram, uint32_t before, uint32_t after, vta_error *e)
{
    for (uint32_t x = 0; x < t->x_size;) {
        vta_transfer part = {.memory = t->memory, .x_size = least(t->x_size - x, VTA_MOST_EXTENT), .y_size = 1};
        part.x_stride = part.x_size;
        part.x_pad_before = x == 0 ? before : 0;
        part.x_pad_after = x + part.x_size == t->x_size ? after : 0;
        vta_status s = append_part(c, opcode, &part, base, sram, dram + x, e);
        if (s != VTA_OK)
            return s;
        sram += part.x_pad_before + part.x_size;
        x += part.x_size;
    }
    return VTA_OK;
}

/* A transfer too large for one instruction, row by row. In the scratchpad rows and pads lie without gaps, so the pads
 * are runs of zeros between rows: before the first, between two, after the last. */
static vta_status append_rows(vta_context *c, int64_t opcode, const vta_transfer *t, uint64_t base, vta_error *e)
{
    uint64_t width = (uint64_t)t->x_pad_before + t->x_size + t->x_pad_after;
    uint64_t between = (uint64_t)t->x_pad_before + t->x_pad_after, sram = t->sram_index;
    uint64_t zeros = t->y_pad_before * width + t->x_pad_before, after = t->y_pad_after * width + t->x_pad_after;
    uint64_t last = t->dram_offset + (uint64_t)(t->y_size - 1) * t->x_stride;
    uint64_t end = sram + width * ((uint64_t)t->y_pad_before + t->y_size + t->y_pad_after);
    vta_status s = append_trailing(c, t, base, end, &after, last, e);
    for (uint32_t y = 0; y < t->y_size && s == VTA_OK; y++) {
        uint64_t dram = t->dram_offset + (uint64_t)y * t->x_stride;
        s = append_leading(c, t, base, &sram, &zeros, dram, e);
        if (s == VTA_OK)
            s = append_row(c, opcode, t, base, sram, dram, (uint32_t)zeros, y + 1 == t->y_size ? (uint32_t)after : 0,
                           e);
        sram += zeros + t->x_size;
        zeros = between;
    }
    return s;
}

static bool fits(const vta_transfer *t)
{
    if (t->x_size == 0 || t->y_size == 0)
        return true;
    return t->x_size <= VTA_MOST_EXTENT && t->y_size <= VTA_MOST_EXTENT && t->x_stride <= VTA_MOST_EXTENT &&
           t->x_pad_before <= VTA_MAX_PAD && t->x_pad_after <= VTA_MAX_PAD && t->y_pad_before <= VTA_MAX_PAD &&
           t->y_pad_after <= VTA_MAX_PAD;
}

static const char *memory_name(enum vta_mem m)
{
    static const char *const names[] = {
#define X(code, text) [code] = text,
        VTA_MEMORIES(X)
#undef X
    };
    return (unsigned)m < VTA_MEM_COUNT ? names[m] : "?";
}

/* The transfer against memory, scratchpad and buffer. */
static vta_status check_transfer(const vta_context *c, int64_t opcode, const vta_transfer *t,
                                 const vta_buffer_slot *slot, vta_error *e)
{
    const char *verb = opcode_name(opcode), *name = memory_name(t->memory);
    if ((unsigned)t->memory >= VTA_MEM_COUNT || (opcode == VTA_STORE) != (t->memory == VTA_MEM_OUT))
        return vta_fail(e, VTA_BAD_ARGUMENT, "%s: memory type %d; %s", verb, (int)t->memory,
                        opcode == VTA_STORE ? "only OUT (4) is stored"
                                            : "UOP (0), WGT (1), INP (2), ACC (3) and ACC_8BIT (5) are loaded");
    uint64_t pads = (uint64_t)t->x_pad_before + t->x_pad_after + t->y_pad_before + t->y_pad_after;
    if (pads > 0 && (opcode == VTA_STORE || t->x_size == 0 || t->y_size == 0))
        return vta_fail(e, VTA_BAD_ARGUMENT, "%s %s: padding %s", verb, name,
                        opcode == VTA_STORE ? "belongs to loads" : "needs at least one element beside it");
    if (t->memory == VTA_MEM_UOP && pads > 0)
        return vta_fail(e, VTA_BAD_ARGUMENT, "%s uop: micro-ops are loaded without padding", verb);
    if (t->x_size == 0 || t->y_size == 0)
        return VTA_OK;
    uint64_t width = (uint64_t)t->x_pad_before + t->x_size + t->x_pad_after;
    uint64_t height = (uint64_t)t->y_pad_before + t->y_size + t->y_pad_after, depth = c->geometry->depth[t->memory];
    if (width > depth || height > depth || t->sram_index > depth || width * height > depth - t->sram_index)
        return vta_fail(e, VTA_BAD_ARGUMENT, "%s %s: %llu x %llu elements from index %u; the scratchpad holds %llu",
                        verb, name, (unsigned long long)height, (unsigned long long)width, t->sram_index,
                        (unsigned long long)depth);
    uint64_t elem = c->geometry->elem_bytes[t->memory], held = slot->bytes / elem;
    uint64_t last = t->dram_offset + (uint64_t)(t->y_size - 1) * t->x_stride + t->x_size;
    if (last > held)
        return vta_fail(e, VTA_BAD_ARGUMENT,
                        "%s %s: reaches element %llu (%llu bytes each); the buffer has %llu of them", verb, name,
                        (unsigned long long)last - 1, (unsigned long long)elem, (unsigned long long)held);
    if (slot->memory.phys / elem + last > UINT32_MAX)
        return vta_fail(e, VTA_BAD_FIELD, "%s %s: dram_base above %u elements does not fit its field", verb, name,
                        UINT32_MAX);
    return VTA_OK;
}

/* Hardware loads micro-ops as one row: rows that lie one behind the other are one, others are loads of their own. */
static vta_status append_transfer(vta_context *c, int64_t opcode, const vta_transfer *t, uint64_t base, vta_error *e)
{
    vta_transfer row = *t;
    if (t->memory == VTA_MEM_UOP && t->y_size > 1 && t->x_size > 0) {
        if (t->x_stride != t->x_size)
            return append_rows(c, opcode, t, base, e);
        row.x_stride = row.x_size = t->x_size * t->y_size;
        row.y_size = 1;
    }
    return fits(&row) ? append_part(c, opcode, &row, base, t->sram_index, t->dram_offset, e)
                      : append_rows(c, opcode, t, base, e);
}

static vta_status transfer(vta_context *c, int64_t opcode, vta_buffer b, const vta_transfer *t)
{
    vta_status s = vta_context_enter(c);
    if (s != VTA_OK)
        return s;
    vta_buffer_slot *slot = vta_buffer_find(c, b, &c->error);
    if (!slot)
        return vta_context_leave(c, VTA_BAD_HANDLE);
    s = check_transfer(c, opcode, t, slot, &c->error);
    if (s != VTA_OK)
        return vta_context_leave(c, s);
    uint64_t base = slot->memory.phys / c->geometry->elem_bytes[t->memory];
    s = append_transfer(c, opcode, t, base, &c->error);
    if (t->memory == VTA_MEM_UOP)
        vta_kernel_evict_all(c);
    slot->used = c->queue.serial;
    if (opcode == VTA_STORE)
        slot->written = c->queue.serial;
    return vta_context_leave(c, s);
}

vta_status vta_load(vta_context *c, vta_buffer from, const vta_transfer *t)
{
    return transfer(c, VTA_LOAD, from, t);
}

vta_status vta_store(vta_context *c, vta_buffer to, const vta_transfer *t)
{
    return transfer(c, VTA_STORE, to, t);
}

/* --- synchronisation ---------------------------------------------------------------------------------------------- */

static void start_run(vta_queue *q)
{
    q->run_start = q->count;
    q->last = VTA_STAGE_NONE;
    memset(q->pending, 0, sizeof q->pending);
    memset(&q->open, 0, sizeof q->open);
}

void vta_queue_clear(vta_context *c)
{
    c->queue.count = 0;
    c->queue.serial++;
    start_run(&c->queue);
    vta_kernel_evict_all(c);
    vta_kernel_clear_log(c);
}

vta_status vta_queue_room(vta_context *c, uint32_t count, vta_error *e)
{
    vta_queue *q = &c->queue;
    if (q->count + count + VTA_TAIL_INSNS <= q->most)
        return VTA_OK;
    if (c->capturing)
        return vta_fail(e, VTA_NO_MEMORY,
                        "the captured stream does not fit a queue of %u instructions; raise max_insns", q->most);
    return vta_queue_synchronize(c, c->options.wait_cycles, e);
}

/* Makes FINISH wait for the last load and the last store. */
static vta_status append_tail(vta_context *c, vta_error *e)
{
    vta_status s = push_token(c, VTA_STAGE_STORE, VTA_STAGE_COMPUTE, e);
    if (s == VTA_OK)
        s = push_token(c, VTA_STAGE_LOAD, VTA_STAGE_COMPUTE, e);
    if (s == VTA_OK)
        s = pop_token(c, VTA_STAGE_STORE, VTA_STAGE_COMPUTE, e);
    if (s == VTA_OK)
        s = pop_token(c, VTA_STAGE_LOAD, VTA_STAGE_COMPUTE, e);
    return s == VTA_OK ? commit(c, VTA_STAGE_COMPUTE, e) : s;
}

/* A run closed in the middle of a program (the queue was full) may leave tokens for instructions to come. The tail's
 * pops would take those, which are older, and not wait for the last load and store. So compute takes all, and
 * append_left gives them again at the start of the next run. */
static vta_status append_drain(vta_context *c, vta_tokens *left, vta_error *e)
{
    left->l2g = c->queue.open.l2g;
    left->s2g = c->queue.open.s2g;
    if (left->l2g > VTA_MOST_LEFT_TOKENS || left->s2g > VTA_MOST_LEFT_TOKENS)
        return vta_fail(e, VTA_BAD_STATE,
                        "%d tokens from load and %d from store were pushed and not popped; at most %d", left->l2g,
                        left->s2g, VTA_MOST_LEFT_TOKENS);
    vta_status s = VTA_OK;
    for (int32_t i = 0; (i < left->l2g || i < left->s2g) && s == VTA_OK; i++) {
        c->queue.pending[VTA_STAGE_COMPUTE] = (i < left->l2g ? VTA_POP_PREV : 0u) | (i < left->s2g ? VTA_POP_NEXT : 0u);
        s = commit(c, VTA_STAGE_COMPUTE, e);
    }
    return s;
}

static vta_status append_left(vta_context *c, const vta_tokens *left, vta_error *e)
{
    vta_status s = VTA_OK;
    for (int32_t i = 0; i < left->l2g && s == VTA_OK; i++)
        s = push_token(c, VTA_STAGE_LOAD, VTA_STAGE_COMPUTE, e);
    for (int32_t i = 0; i < left->s2g && s == VTA_OK; i++)
        s = push_token(c, VTA_STAGE_STORE, VTA_STAGE_COMPUTE, e);
    return s;
}

/* Rewrites all flags so that each instruction waits for the one before it, wherever a dependency queue connects their
 * stages (none connects load and store). */
static void serialise(vta_context *c)
{
    enum vta_stage before = VTA_STAGE_NONE;
    for (uint32_t i = c->queue.run_start; i < c->queue.count; i++) {
        vta_insn *insn = &c->queue.insns[i];
        vta_fields f;
        vta_decode(c->geometry, insn, &f);
        enum vta_stage stage = vta_stage_of(&f);
        insn->word[0] &= ~(uint64_t)VTA_DEP_FLAGS;
        if (before != VTA_STAGE_NONE && (before == VTA_STAGE_COMPUTE) != (stage == VTA_STAGE_COMPUTE)) {
            insn[-1].word[0] |= before < stage ? VTA_PUSH_NEXT : VTA_PUSH_PREV;
            insn->word[0] |= before < stage ? VTA_POP_PREV : VTA_POP_NEXT;
        }
        before = stage;
    }
}

/* Appends a NOP with the flags given. */
static vta_status append_flags(vta_context *c, enum vta_stage stage, uint32_t flags, vta_error *e)
{
    c->queue.pending[stage] = 0;
    vta_status s = append_nop(c, stage, e);
    if (s == VTA_OK)
        c->queue.insns[c->queue.count - 1].word[0] |= flags;
    return s;
}

/* The published order of force-serial mode: the last store, then all loads, then FINISH. */
static vta_status append_serial_tail(vta_context *c, vta_error *e)
{
    vta_queue *q = &c->queue;
    serialise(c);
    memset(&q->open, 0, sizeof q->open);
    vta_fields f = {0};
    if (q->count > q->run_start)
        vta_decode(c->geometry, &q->insns[q->count - 1], &f);
    vta_status s = VTA_OK;
    if (q->count > q->run_start && f.opcode == VTA_STORE) {
        q->insns[q->count - 1].word[0] |= VTA_PUSH_PREV;
        s = append_flags(c, VTA_STAGE_COMPUTE, VTA_POP_NEXT, e);
    }
    if (s == VTA_OK)
        s = append_flags(c, VTA_STAGE_COMPUTE, VTA_PUSH_PREV, e);
    if (s == VTA_OK)
        s = append_flags(c, VTA_STAGE_LOAD, VTA_POP_NEXT, e);
    if (s == VTA_OK)
        s = append_flags(c, VTA_STAGE_LOAD, VTA_PUSH_NEXT, e);
    return s == VTA_OK ? append_flags(c, VTA_STAGE_COMPUTE, VTA_POP_PREV, e) : s;
}

/* Copies log and stream to the device and runs them. */
static vta_status run(vta_context *c, uint32_t wait_cycles, vta_error *e)
{
    const vta_device *d = c->device;
    const vta_queue *q = &c->queue;
    size_t uop_bytes = (size_t)vta_kernel_logged(c) * VTA_UOP_BYTES, bytes = (size_t)q->count * VTA_INSN_BYTES;
    memcpy(c->kernels.memory.host, c->kernels.log, uop_bytes);
    memcpy(q->memory.host, q->insns, bytes);
    if (d->driver->flush) {
        if (uop_bytes > 0)
            d->driver->flush(d->self, &c->kernels.memory, 0, uop_bytes);
        d->driver->flush(d->self, &q->memory, 0, bytes);
    }
    vta_status s = d->driver->run(d->self, q->memory.phys, q->count, wait_cycles, e);
    if (s != VTA_OK && d->driver->reset)
        d->driver->reset(d->self);
    return s;
}

/* What is left where the caller says that its program ends; a capture is checked as a whole. */
static vta_status tell_left(vta_context *c, const vta_tokens *drained, vta_error *e)
{
    const vta_tokens *o = &c->queue.open, *h = &c->queue.held;
    const vta_tokens left = {drained->l2g, o->g2l + h->g2l, drained->s2g, o->g2s + h->g2s};
    return c->capturing ? VTA_OK : vta_tokens_tell_left(c, &left, e);
}

/* Closes the run that is being built: tail, drain, FINISH. `ends`: the caller asked for it. */
static vta_status close_run(vta_context *c, bool ends, vta_tokens *left, vta_error *e)
{
    memset(left, 0, sizeof *left);
    vta_status s;
    if (c->debug & VTA_DEBUG_FORCE_SERIAL) {
        s = append_serial_tail(c, e);
    } else {
        s = append_tail(c, e);
        if (s == VTA_OK)
            s = append_drain(c, left, e);
        if (s == VTA_OK && ends)
            s = tell_left(c, left, e);
    }
    vta_fields finish = {.opcode = VTA_FINISH};
    return s == VTA_OK ? vta_queue_append(c, &finish, e) : s;
}

/* Tokens for load and store stay on the device from run to run; a run that failed leaves none. */
static void keep_held(vta_queue *q, vta_status s)
{
    if (s == VTA_OK) {
        q->held.g2l += q->open.g2l;
        q->held.g2s += q->open.g2s;
    } else {
        memset(&q->held, 0, sizeof q->held);
    }
}

static vta_status synchronize(vta_context *c, uint32_t wait_cycles, bool ends, vta_error *e)
{
    vta_queue *q = &c->queue;
    vta_tokens left;
    vta_status s = close_run(c, ends, &left, e);
    if (s == VTA_OK && c->debug & VTA_DEBUG_DUMP_UOP)
        vta_dump_uops(c);
    if (s == VTA_OK && c->debug & VTA_DEBUG_DUMP_INSN)
        vta_dump_insns(c, q->insns + q->run_start, q->count - q->run_start);
    if (s == VTA_OK && c->capturing) {
        start_run(q);
        vta_kernel_evict_all(c);
    } else {
        if (s == VTA_OK) {
            s = run(c, wait_cycles, e);
            keep_held(q, s);
        }
        vta_queue_clear(c);
    }
    return s == VTA_OK ? append_left(c, &left, e) : s;
}

vta_status vta_queue_synchronize(vta_context *c, uint32_t wait_cycles, vta_error *e)
{
    return synchronize(c, wait_cycles, false, e);
}

vta_status vta_synchronize(vta_context *c, uint32_t wait_cycles)
{
    vta_status s = vta_context_enter(c);
    if (s != VTA_OK)
        return s;
    if (c->capturing && c->queue.count + VTA_TAIL_INSNS > c->queue.most)
        return vta_context_leave(c, vta_queue_room(c, 0, &c->error));
    return vta_context_leave(c, synchronize(c, wait_cycles, true, &c->error));
}

uint32_t vta_queued(const vta_context *c, const vta_insn **out)
{
    *out = c ? c->queue.insns : NULL;
    return c ? c->queue.count : 0;
}
