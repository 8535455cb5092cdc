/* replay.c: running captured streams: copies the stream to device memory, fills the addresses in and runs it, one run
 * per FINISH. Needs no context, no allocator, no threads and no other file of the library but status.c, so that a
 * program without a heap can have it (vta_replay.h).
 * SPDX-License-Identifier: Apache-2.0 */
#include "replay.h"

enum { UOP_ALIGN = 64 };

vta_field vta_replay_field(const vta_geometry *g, size_t member)
{
    vta_field layout[VTA_MAX_FIELDS];
    uint32_t i = vta_insn_layout(g, VTA_LOAD, layout);
    while (--i > 0 && layout[i].member != member)
        ;
    return layout[i];
}

bool vta_replay_set_address(const vta_field *dram_base, vta_insn *insn, uint64_t address)
{
    vta_fields f;
    vta_field_error bad;
    f.dram_base = (int64_t)address;
    insn->word[dram_base->word] &= ~(((UINT64_C(1) << dram_base->bits) - 1) << dram_base->bit);
    return address <= INT64_MAX && vta_field_put(dram_base, &f, insn->word, &bad);
}

static size_t uops_at(const vta_capture *p)
{
    return ((size_t)p->n_insns * VTA_INSN_BYTES + UOP_ALIGN - 1) / UOP_ALIGN * UOP_ALIGN;
}

size_t vta_replay_bytes(const vta_capture *p)
{
    return uops_at(p) + (size_t)p->n_uops * VTA_UOP_BYTES;
}

static vta_status check_replay(const vta_device *d, const vta_capture *p, const vta_memory *scratch,
                               const vta_memory *bindings, vta_error *e)
{
    if (!vta_config_equal(&d->config, &p->config))
        return vta_fail(e, VTA_BAD_CONFIG, "replay: the stream was captured for a device of another configuration");
    if (scratch->bytes < vta_replay_bytes(p))
        return vta_fail(e, VTA_NO_MEMORY, "replay: %zu bytes of scratch are needed, %zu were given",
                        vta_replay_bytes(p), scratch->bytes);
    for (uint32_t i = 0; i < p->n_bindings; i++)
        if (bindings[i].bytes < p->binding_bytes[i])
            return vta_fail(e, VTA_BAD_ARGUMENT, "replay: the stream reaches %llu bytes of binding %u, which has %zu",
                            (unsigned long long)p->binding_bytes[i], (unsigned)i + 1, bindings[i].bytes);
    return VTA_OK;
}

/* Fills in the addresses of the stream's copy in scratch memory. */
static vta_status bind(const vta_device *d, const vta_capture *p, const vta_memory *scratch, const vta_memory *bindings,
                       vta_error *e)
{
    const vta_field memory = vta_replay_field(&d->geometry, offsetof(vta_fields, memory_type));
    const vta_field dram_base = vta_replay_field(&d->geometry, offsetof(vta_fields, dram_base));
    vta_insn *insns = (vta_insn *)scratch->host;
    for (uint32_t i = 0; i < p->n_relocations; i++) {
        const vta_relocation *r = &p->relocations[i];
        vta_fields f;
        if (r->insn >= p->n_insns || r->binding > p->n_bindings)
            return vta_fail(e, VTA_BAD_ARGUMENT, "replay: relocation %u names instruction %u and binding %u",
                            (unsigned)i, (unsigned)r->insn, (unsigned)r->binding);
        vta_field_get(&memory, insns[r->insn].word, &f);
        uint64_t phys = r->binding ? bindings[r->binding - 1].phys : scratch->phys + uops_at(p);
        uint64_t elem = f.memory_type < VTA_MEM_COUNT ? d->geometry.elem_bytes[f.memory_type] : 1;
        if (phys % elem != 0 || !vta_replay_set_address(&dram_base, &insns[r->insn], phys / elem + r->offset))
            return vta_fail(e, VTA_BAD_FIELD,
                            "replay: device address 0x%llx of binding %u is not aligned to elements of "
                            "%llu bytes, or too high",
                            (unsigned long long)phys, (unsigned)r->binding, (unsigned long long)elem);
    }
    return VTA_OK;
}

vta_status vta_replay(vta_device *d, const vta_capture *p, const vta_memory *scratch, const vta_memory *bindings,
                      uint32_t wait_cycles, vta_error *e)
{
    vta_status s = check_replay(d, p, scratch, bindings, e);
    if (s != VTA_OK)
        return s;
    memcpy(scratch->host, p->insns, (size_t)p->n_insns * VTA_INSN_BYTES);
    if (p->n_uops > 0)
        memcpy((char *)scratch->host + uops_at(p), p->uops, (size_t)p->n_uops * VTA_UOP_BYTES);
    s = bind(d, p, scratch, bindings, e);
    if (s == VTA_OK)
        vta_device_flush(d, scratch, 0, vta_replay_bytes(p));
    for (uint32_t i = 0, start = 0; i < p->n_insns && s == VTA_OK; i++) {
        if ((p->insns[i].word[0] & 7u) != VTA_FINISH)
            continue;
        s = d->driver->run(d->self, scratch->phys + (uint64_t)start * VTA_INSN_BYTES, i + 1 - start, wait_cycles, e);
        start = i + 1;
    }
    if (s != VTA_OK && d->driver->reset)
        d->driver->reset(d->self);
    return s;
}
