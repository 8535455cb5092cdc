/* program.c: programs as bytes, and their addresses. The file says for which configuration it is; all numbers are
 * little-endian:
 *   "VTAPROG1", target[16], the nine bytes of the configuration in the order of VTA_CONFIG_KEYS, 7 bytes of 0,
 *   u32 counts of buffers, relocations, micro-ops, instructions,
 *   buffers (name[32], u64 bytes), relocations (u32 insn, binding, offset), micro-ops (u32), instructions (2 x u64).
 * SPDX-License-Identifier: Apache-2.0 */
#include "sim.h"

#include <stdio.h>
#include <stdlib.h>

static const char magic[8] = {'V', 'T', 'A', 'P', 'R', 'O', 'G', '1'};

enum { HEADER_BYTES = 8 + 16 + 16 + 4 * 4, BUFFER_BYTES = VTA_NAME_BYTES + 8, RELOCATION_BYTES = 12 };

/* Each key's byte in the header. */
static uint8_t *key_bytes(vta_config *c, size_t i)
{
    uint8_t *const all[] = {
#define X(member, key, value, least, most, help) &c->member,
        VTA_CONFIG_KEYS(X)
#undef X
    };
    return i < sizeof all / sizeof *all ? all[i] : NULL;
}

static uint8_t *put_number(uint8_t *out, uint64_t v, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++)
        *out++ = (uint8_t)(v >> 8 * i);
    return out;
}

static uint64_t get_number(const uint8_t **in, size_t bytes)
{
    uint64_t v = 0;
    for (size_t i = 0; i < bytes; i++)
        v |= (uint64_t)*(*in)++ << 8 * i;
    return v;
}

bool vta_program_is_binary(const void *data, size_t len)
{
    return len >= sizeof magic && memcmp(data, magic, sizeof magic) == 0;
}

static size_t length(uint64_t buffers, uint64_t relocations, uint64_t uops, uint64_t insns)
{
    return (size_t)(HEADER_BYTES + buffers * BUFFER_BYTES + relocations * RELOCATION_BYTES + uops * VTA_UOP_BYTES +
                    insns * VTA_INSN_BYTES);
}

size_t vta_program_write(const vta_program *p, void *out, size_t size)
{
    const size_t n = length(p->n_buffers, p->n_relocations, p->n_uops, p->n_insns);
    const uint32_t counts[] = {p->n_buffers, p->n_relocations, p->n_uops, p->n_insns};
    vta_config c = p->config;
    uint8_t *to = out;
    if (size < n)
        return n;
    memset(to, 0, HEADER_BYTES);
    memcpy(to, magic, sizeof magic);
    memcpy(to + 8, c.target, strlen(c.target));
    for (size_t i = 0; key_bytes(&c, i); i++)
        to[24 + i] = *key_bytes(&c, i);
    to += HEADER_BYTES - sizeof counts;
    for (size_t i = 0; i < 4; i++)
        to = put_number(to, counts[i], 4);
    for (uint32_t i = 0; i < p->n_buffers; i++) {
        memcpy(to, p->buffers[i].name, VTA_NAME_BYTES);
        to = put_number(to + VTA_NAME_BYTES, p->buffers[i].bytes, 8);
    }
    for (uint32_t i = 0; i < p->n_relocations; i++) {
        to = put_number(to, p->relocations[i].insn, 4);
        to = put_number(to, p->relocations[i].binding, 4);
        to = put_number(to, p->relocations[i].offset, 4);
    }
    for (uint32_t i = 0; i < p->n_uops; i++)
        to = put_number(to, p->uops[i], 4);
    for (uint32_t i = 0; i < p->n_insns; i++)
        to = put_number(put_number(to, p->insns[i].word[0], 8), p->insns[i].word[1], 8);
    return n;
}

static vta_status read_header(const char *name, const uint8_t *in, size_t len, vta_program *p, vta_error *e)
{
    vta_geometry g;
    vta_error inner = {VTA_OK, ""};
    if (!vta_program_is_binary(in, len) || len < HEADER_BYTES)
        return vta_fail(e, VTA_BAD_TEXT, "%s: not a VTA program", name);
    if (!memchr(in + 8, 0, sizeof p->config.target))
        return vta_fail(e, VTA_BAD_CONFIG, "%s: the target's name has no end", name);
    memcpy(p->config.target, in + 8, sizeof p->config.target);
    for (size_t i = 0; key_bytes(&p->config, i); i++)
        *key_bytes(&p->config, i) = in[24 + i];
    if (vta_config_check(&p->config, &g, &inner) != VTA_OK)
        return vta_fail(e, inner.status, "%s: %s", name, inner.text);
    in += HEADER_BYTES - 16;
    p->n_buffers = (uint32_t)get_number(&in, 4);
    p->n_relocations = (uint32_t)get_number(&in, 4);
    p->n_uops = (uint32_t)get_number(&in, 4);
    p->n_insns = (uint32_t)get_number(&in, 4);
    if (len != length(p->n_buffers, p->n_relocations, p->n_uops, p->n_insns))
        return vta_fail(e, VTA_BAD_TEXT, "%s: %zu bytes, the header says %zu", name, len,
                        length(p->n_buffers, p->n_relocations, p->n_uops, p->n_insns));
    return VTA_OK;
}

static bool good_name(const char *s)
{
    size_t n = 0;
    if (!memchr(s, 0, VTA_NAME_BYTES) || strcmp(s, "uops") == 0)
        return false;
    for (; s[n]; n++) {
        bool letter = (s[n] >= 'a' && s[n] <= 'z') || (s[n] >= 'A' && s[n] <= 'Z') || s[n] == '_';
        if (!letter && (n == 0 || !((s[n] >= '0' && s[n] <= '9') || s[n] == '.')))
            return false;
    }
    return n > 0;
}

static vta_status check_buffers(const char *name, const vta_program *p, vta_error *e)
{
    for (uint32_t i = 0; i < p->n_buffers; i++) {
        const vta_program_buffer *b = &p->buffers[i];
        if (!good_name(b->name) || b->bytes < 1 || b->bytes > UINT32_MAX)
            return vta_fail(e, VTA_BAD_TEXT, "%s: buffer %u has no proper name or size", name, i);
        for (uint32_t k = 0; k < i; k++)
            if (strcmp(b->name, p->buffers[k].name) == 0)
                return vta_fail(e, VTA_BAD_TEXT, "%s: two buffers have the name '%s'", name, b->name);
    }
    return VTA_OK;
}

/* Relocations lie in order, on transfers, on addresses that are still 0. */
static vta_status check_relocations(const char *name, const vta_program *p, vta_error *e)
{
    vta_geometry g;
    (void)vta_config_check(&p->config, &g, NULL);
    for (uint32_t i = 0; i < p->n_relocations; i++) {
        const vta_relocation *r = &p->relocations[i];
        vta_fields f;
        bool ok = r->insn < p->n_insns && r->binding <= p->n_buffers && (i == 0 || r->insn > r[-1].insn) &&
                  vta_decode(&g, &p->insns[r->insn], &f) && (f.opcode == VTA_LOAD || f.opcode == VTA_STORE) &&
                  f.dram_base == 0 && f.memory_type < VTA_MEM_COUNT && !(p->insns[r->insn].word[0] >> 58);
        if (!ok)
            return vta_fail(e, VTA_BAD_TEXT, "%s: relocation %u fits no instruction", name, i);
    }
    return VTA_OK;
}

enum { MOST_BUFFERS = 4096 }; /* names are compared in pairs */

static vta_status read_arrays(const char *name, const uint8_t *in, vta_program *p, vta_error *e)
{
    if (p->n_buffers > MOST_BUFFERS)
        return vta_fail(e, VTA_BAD_TEXT, "%s: %u buffers, %d are allowed", name, p->n_buffers, MOST_BUFFERS);
    p->buffers = calloc(p->n_buffers + 1u, sizeof *p->buffers);
    p->relocations = calloc(p->n_relocations + 1u, sizeof *p->relocations);
    p->uops = calloc(p->n_uops + 1u, sizeof *p->uops);
    p->insns = calloc(p->n_insns + 1u, sizeof *p->insns);
    if (!p->buffers || !p->relocations || !p->uops || !p->insns)
        return vta_fail(e, VTA_NO_MEMORY, "%s: no memory for the program", name);
    for (uint32_t i = 0; i < p->n_buffers; i++) {
        memcpy(p->buffers[i].name, in, VTA_NAME_BYTES);
        in += VTA_NAME_BYTES;
        p->buffers[i].bytes = get_number(&in, 8);
    }
    for (uint32_t i = 0; i < p->n_relocations; i++) {
        p->relocations[i].insn = (uint32_t)get_number(&in, 4);
        p->relocations[i].binding = (uint32_t)get_number(&in, 4);
        p->relocations[i].offset = (uint32_t)get_number(&in, 4);
    }
    for (uint32_t i = 0; i < p->n_uops; i++)
        p->uops[i] = (uint32_t)get_number(&in, 4);
    for (uint32_t i = 0; i < p->n_insns; i++) {
        p->insns[i].word[0] = get_number(&in, 8);
        p->insns[i].word[1] = get_number(&in, 8);
    }
    vta_status s = check_buffers(name, p, e);
    return s != VTA_OK ? s : check_relocations(name, p, e);
}

vta_status vta_program_read(const char *name, const void *data, size_t len, vta_program *out, vta_error *e)
{
    memset(out, 0, sizeof *out);
    vta_status s = read_header(name, data, len, out, e);
    if (s == VTA_OK)
        s = read_arrays(name, (const uint8_t *)data + HEADER_BYTES, out, e);
    if (s != VTA_OK)
        vta_program_release(out);
    return s;
}

/* Rows lie in the binding that their address names. */
static vta_status check_rows(const vta_program *p, const vta_relocation *r, const vta_fields *f, uint64_t elem_bytes,
                             uint64_t bytes, vta_error *e)
{
    char binding[VTA_NAME_BYTES + 16] = "the micro-op image";
    uint64_t room = bytes / elem_bytes, first = r->offset + (uint64_t)f->x_size, stride = (uint64_t)f->x_stride;
    if (f->x_size == 0 || f->y_size == 0 || first + (uint64_t)(f->y_size - 1) * stride <= room)
        return VTA_OK;
    uint64_t row = first > room ? 0 : (room - first) / stride + 1;
    if (r->binding > 0)
        snprintf(binding, sizeof binding, "buffer '%s'", p->buffers[r->binding - 1].name);
    return vta_fail(e, VTA_FAULT,
                    "instruction %u (%s): %s has %llu elements of %llu bytes, row %llu ends at element %llu", r->insn,
                    vta_sim_insn_name(f), binding, (unsigned long long)room, (unsigned long long)elem_bytes,
                    (unsigned long long)row, (unsigned long long)(first + row * stride));
}

vta_status vta_program_link(const vta_program *p, const vta_memory *bindings, vta_insn *out, vta_error *e)
{
    vta_geometry g;
    vta_field_error fe;
    vta_status s = vta_config_check(&p->config, &g, e);
    if (s != VTA_OK)
        return s;
    if (p->n_insns > 0)
        memcpy(out, p->insns, p->n_insns * sizeof *out);
    for (uint32_t i = 0; i < p->n_relocations; i++) {
        const vta_relocation *r = &p->relocations[i];
        vta_fields f;
        vta_decode(&g, &p->insns[r->insn], &f);
        s = check_rows(p, r, &f, g.elem_bytes[f.memory_type], bindings[r->binding].bytes, e);
        if (s != VTA_OK)
            return s;
        f.dram_base = (int64_t)(bindings[r->binding].phys / g.elem_bytes[f.memory_type] + r->offset);
        if (!vta_encode(&g, &f, &out[r->insn], &fe))
            return vta_fail(e, VTA_BAD_FIELD, "instruction %u: %s is %lld, %lld to %lld fit", r->insn, fe.field,
                            (long long)fe.value, (long long)fe.least, (long long)fe.most);
    }
    return VTA_OK;
}

void vta_program_release(vta_program *p)
{
    free(p->insns);
    free(p->uops);
    free(p->buffers);
    free(p->relocations);
    memset(p, 0, sizeof *p);
}
