/* capture.c: streams as constant data. While a context captures, its queue keeps device addresses as usual; at the end
 * they become (binding, offset), bindings being the buffers in order of first use. replay.c runs the result.
 * SPDX-License-Identifier: Apache-2.0 */

#include "context.h"
#include "replay.h"
#include "text.h"

enum { ALIGN = 8 };

vta_status vta_capture_begin(vta_context *c)
{
    vta_status s = vta_context_enter(c);
    if (s != VTA_OK)
        return s;
    if (c->capturing || c->queue.count > 0)
        return vta_context_leave(c, vta_fail(&c->error, VTA_BAD_STATE, "capture_begin: %s",
                                             c->capturing ? "a capture is open"
                                                          : "instructions are queued; synchronize"
                                                            " first"));
    vta_queue_clear(c);
    c->capturing = true;
    return vta_context_leave(c, VTA_OK);
}

/* The live buffer that the transfer at device address `phys` works on. */
static vta_buffer_slot *buffer_at(vta_context *c, uint64_t phys)
{
    for (uint32_t i = 0; i < c->buffers.most; i++) {
        vta_buffer_slot *slot = &c->buffers.slots[i];
        if (slot->live && slot->used == c->queue.serial && phys >= slot->memory.phys &&
            phys - slot->memory.phys < slot->bytes)
            return slot;
    }
    return NULL;
}

/* What is written where; NULL members: only counted. */
typedef struct writer {
    vta_relocation *relocations;
    uint64_t *binding_bytes;
    uint32_t n_relocations, n_bindings;
} writer;

/* The relocation of one transfer, and how far it reaches into its binding. */
static void relocate(vta_context *c, uint32_t insn, const vta_fields *f, writer *w)
{
    uint64_t elem = c->geometry->elem_bytes[f->memory_type], phys = (uint64_t)f->dram_base * elem;
    uint64_t reach = (uint64_t)((f->y_size - 1) * f->x_stride + f->x_size) * elem;
    uint64_t logged = (uint64_t)vta_kernel_logged(c) * VTA_UOP_BYTES, log = c->kernels.memory.phys;
    vta_relocation r = {insn, 0, 0};
    if (f->memory_type == VTA_MEM_UOP && phys >= log && phys - log < logged) {
        r.offset = (uint32_t)((phys - log) / elem);
    } else {
        vta_buffer_slot *slot = buffer_at(c, phys); /* used in this stream, and so not freed: it is there */
        if (slot->binding == 0)
            slot->binding = ++w->n_bindings;
        r.binding = slot->binding;
        r.offset = (uint32_t)((phys - slot->memory.phys) / elem);
        reach += phys - slot->memory.phys;
        if (w->binding_bytes && reach > w->binding_bytes[r.binding - 1])
            w->binding_bytes[r.binding - 1] = reach;
    }
    if (w->relocations)
        w->relocations[w->n_relocations] = r;
    w->n_relocations++;
}

static void relocate_all(vta_context *c, writer *w)
{
    for (uint32_t i = 0; i < c->buffers.most; i++)
        c->buffers.slots[i].binding = 0;
    for (uint32_t i = 0; i < c->queue.count; i++) {
        vta_fields f;
        vta_decode(c->geometry, &c->queue.insns[i], &f);
        if ((f.opcode == VTA_LOAD || f.opcode == VTA_STORE) && f.x_size > 0)
            relocate(c, i, &f, w);
    }
}

static size_t round_up(size_t bytes)
{
    return (bytes + ALIGN - 1) / ALIGN * ALIGN;
}

static size_t bytes_needed(const vta_context *c, const writer *counted)
{
    return round_up((size_t)c->queue.count * sizeof(vta_insn)) +
           round_up((size_t)vta_kernel_logged(c) * VTA_UOP_BYTES) +
           round_up(counted->n_relocations * sizeof(vta_relocation)) + round_up(counted->n_bindings * sizeof(uint64_t));
}

size_t vta_capture_bytes(vta_context *c)
{
    if (vta_context_enter(c) != VTA_OK)
        return 0;
    writer counted = {0};
    if (c->capturing)
        relocate_all(c, &counted);
    size_t bytes = c->capturing ? bytes_needed(c, &counted) : 0;
    vta_context_leave(c, VTA_OK);
    return bytes;
}

/* Fills *out and the arrays behind it from `at` on. */
static void write_capture(vta_context *c, const writer *counted, char *at, vta_capture *out)
{
    vta_insn *insns = (vta_insn *)(void *)at;
    uint32_t *uops = (uint32_t *)(void *)(at + round_up(c->queue.count * sizeof *insns));
    char *relocations = (char *)uops + round_up((size_t)vta_kernel_logged(c) * VTA_UOP_BYTES);
    const vta_field dram_base = vta_replay_field(c->geometry, offsetof(vta_fields, dram_base));
    writer w = {.relocations = (vta_relocation *)(void *)relocations};
    w.binding_bytes = (uint64_t *)(void *)(relocations + round_up(counted->n_relocations * sizeof *w.relocations));
    memset(w.binding_bytes, 0, counted->n_bindings * sizeof *w.binding_bytes);
    memcpy(insns, c->queue.insns, c->queue.count * sizeof *insns);
    memcpy(uops, c->kernels.log, (size_t)vta_kernel_logged(c) * VTA_UOP_BYTES);
    relocate_all(c, &w);
    for (uint32_t i = 0; i < w.n_relocations; i++)
        vta_replay_set_address(&dram_base, &insns[w.relocations[i].insn], 0);
    *out = (vta_capture){c->device->config, insns,           c->queue.count,  uops,        vta_kernel_logged(c),
                         w.relocations,     w.n_relocations, w.binding_bytes, w.n_bindings};
}

vta_status vta_capture_end(vta_context *c, void *memory, size_t bytes, vta_capture *out)
{
    memset(out, 0, sizeof *out);
    vta_status s = vta_context_enter(c);
    if (s != VTA_OK)
        return s;
    if (!c->capturing || c->queue.count == 0 || c->queue.run_start != c->queue.count)
        return vta_context_leave(
            c, vta_fail(&c->error, VTA_BAD_STATE, "capture_end: %s",
                        c->capturing ? "the stream does not end with a synchronize" : "no capture is open"));
    vta_tokens t = {0};
    s = vta_check_tokens(c->geometry, c->queue.insns, c->queue.count, &t, &c->error);
    if (s != VTA_OK)
        return vta_context_leave(c, s);
    writer counted = {0};
    relocate_all(c, &counted);
    size_t needed = bytes_needed(c, &counted);
    if (!memory || (uintptr_t)memory % ALIGN || bytes < needed)
        return vta_context_leave(c, vta_fail(&c->error, VTA_BAD_ARGUMENT,
                                             "capture_end: %zu bytes aligned to %d are needed, %zu at %p were given",
                                             needed, ALIGN, bytes, memory));
    write_capture(c, &counted, (char *)memory, out);
    c->capturing = false;
    vta_queue_clear(c);
    return vta_context_leave(c, VTA_OK);
}

uint32_t vta_capture_binding(vta_context *c, vta_buffer b)
{
    if (!c)
        return 0;
    pthread_mutex_lock(&c->lock);
    const vta_buffer_slot *slot = vta_buffer_find(c, b, NULL);
    const uint32_t binding = slot ? slot->binding : 0;
    pthread_mutex_unlock(&c->lock);
    return binding;
}

/* --- as C text ---------------------------------------------------------------------------------------------------- */

/* The members of an array; one without elements is none in C, and NULL stands for it. */
static void put_members(vta_text *to, const char *name, const char *array, uint32_t count)
{
    if (count > 0)
        vta_put(to, "    %s_%s, %uu,\n", name, array, count);
    else
        vta_put(to, "    NULL, 0,\n");
}

static void put_config(vta_text *to, const vta_config *c)
{
    vta_put(to, "    {\"%s\"", c->target);
#define X(member, key, value, least, most, help) vta_put(to, ", %u", c->member);
    VTA_CONFIG_KEYS(X)
#undef X
    vta_put(to, "},\n");
}

static void put_arrays(vta_text *to, const vta_capture *p, const char *name)
{
    vta_put(to, "static const vta_insn %s_insns[] = {\n", name);
    for (uint32_t i = 0; i < p->n_insns; i++)
        vta_put(to, "    {{0x%016llxu, 0x%016llxu}},\n", (unsigned long long)p->insns[i].word[0],
                (unsigned long long)p->insns[i].word[1]);
    vta_put(to, "};\n");
    if (p->n_uops > 0) {
        vta_put(to, "\nstatic const uint32_t %s_uops[] = {", name);
        for (uint32_t i = 0; i < p->n_uops; i++)
            vta_put(to, "%s0x%08xu,", i % 8 ? " " : "\n    ", p->uops[i]);
        vta_put(to, "\n};\n");
    }
    if (p->n_relocations > 0) {
        vta_put(to, "\nstatic const vta_relocation %s_relocations[] = {\n", name);
        for (uint32_t i = 0; i < p->n_relocations; i++)
            vta_put(to, "    {%uu, %uu, %uu},\n", p->relocations[i].insn, p->relocations[i].binding,
                    p->relocations[i].offset);
        vta_put(to, "};\n");
    }
    if (p->n_bindings > 0) {
        vta_put(to, "\nstatic const uint64_t %s_binding_bytes[] = {\n", name);
        for (uint32_t i = 0; i < p->n_bindings; i++)
            vta_put(to, "    %lluu,\n", (unsigned long long)p->binding_bytes[i]);
        vta_put(to, "};\n");
    }
}

size_t vta_capture_print_c(const vta_capture *p, const char *name, char *out, size_t size)
{
    vta_text to = {out, size, 0};
    vta_put(&to,
            "/* %s: a captured stream of %u VTA instructions and %u micro-ops over %u buffers, for vta_replay. */\n",
            name, p->n_insns, p->n_uops, p->n_bindings);
    vta_put(&to, "#include \"vta_replay.h\"\n\n");
    put_arrays(&to, p, name);
    vta_put(&to, "\nconst vta_capture %s = {\n", name);
    put_config(&to, &p->config);
    put_members(&to, name, "insns", p->n_insns);
    put_members(&to, name, "uops", p->n_uops);
    put_members(&to, name, "relocations", p->n_relocations);
    put_members(&to, name, "binding_bytes", p->n_bindings);
    vta_put(&to, "};\n");
    return to.length;
}
