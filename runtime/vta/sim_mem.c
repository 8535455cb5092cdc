/* sim_mem.c: LOAD and STORE: rows between DRAM and scratchpads, with padding and bounds; packing and unpacking.
 * SPDX-License-Identifier: Apache-2.0 */
#include "sim.h"

/* --- elements, packed and not --- */

/* Lane i of a packed element: little-endian, the lowest bits first. */
static int32_t get_lane(const uint8_t *in, uint32_t i, uint32_t width)
{
    uint32_t at = i * width, v = in[at / 8];
    if (width == 32)
        v |= (uint32_t)in[at / 8 + 1] << 8 | (uint32_t)in[at / 8 + 2] << 16 | (uint32_t)in[at / 8 + 3] << 24;
    else if (width == 16)
        v |= (uint32_t)in[at / 8 + 1] << 8;
    return vta_sim_wrap(v >> at % 8, width);
}

static void put_lane(uint8_t *out, uint32_t i, uint32_t width, int32_t v)
{
    uint32_t at = i * width, u = (uint32_t)v;
    if (width >= 8) {
        for (uint32_t b = 0; b < width / 8; b++)
            out[at / 8 + b] = (uint8_t)(u >> 8 * b);
        return;
    }
    uint32_t mask = ((1u << width) - 1u) << at % 8;
    out[at / 8] = (uint8_t)((out[at / 8] & ~mask) | (u << at % 8 & mask));
}

static void unpack_inp(vta_sim *s, uint32_t index, const uint8_t *in, uint32_t n)
{
    const uint32_t block = s->g.block_in, row = 4 * s->quads, width = s->g.width[VTA_MEM_INP];
    int16_t *out = s->inp + (size_t)index * s->inp_lanes;
    if (width == 8 && row == block) {
        for (size_t i = 0, all = (size_t)n * s->inp_lanes; i < all; i += 4) {
            out[i] = (int8_t)in[i];
            out[i + 1] = (int8_t)in[i + 2];
            out[i + 2] = (int8_t)in[i + 1];
            out[i + 3] = (int8_t)in[i + 3];
        }
        return;
    }
    for (uint32_t e = 0; e < n; e++, in += s->g.elem_bytes[VTA_MEM_INP], out += s->inp_lanes)
        for (uint32_t i = 0; i < s->g.batch * block; i++)
            out[i / block * row + vta_sim_lane(i % block)] = (int16_t)get_lane(in, i, width);
}

/* Place of weight i (output i / block, input i % block) of an unpacked tile. */
static size_t wgt_lane(const vta_sim *s, uint32_t index, uint32_t i)
{
    const uint32_t block = s->g.block_in, o = i / block, k = i % block;
    return (size_t)index * s->wgt_lanes + (k / 4 * block + o) * 4 + k % 4;
}

static void unpack_wgt(vta_sim *s, uint32_t index, const uint8_t *in, uint32_t n)
{
    const uint32_t block = s->g.block_in, width = s->g.width[VTA_MEM_WGT];
    if (width == 8 && block >= 16 && s->kernels->unpack_wgt) {
        s->kernels->unpack_wgt((int8_t *)s->wgt + wgt_lane(s, index, 0), (const int8_t *)in, n, block);
        return;
    }
    if (width == 8 && block >= 4) {
        for (uint32_t e = 0; e < n; e++, in += s->g.elem_bytes[VTA_MEM_WGT])
            for (uint32_t i = 0; i < block * block; i += 4)
                memcpy((int8_t *)s->wgt + wgt_lane(s, index + e, i), in + i, 4);
        return;
    }
    for (uint32_t e = 0; e < n; e++, in += s->g.elem_bytes[VTA_MEM_WGT])
        for (uint32_t i = 0; i < block * block; i++) {
            int32_t v = get_lane(in, i, width);
            if (s->wide_wgt)
                ((int16_t *)s->wgt)[wgt_lane(s, index + e, i)] = (int16_t)v;
            else
                ((int8_t *)s->wgt)[wgt_lane(s, index + e, i)] = (int8_t)v;
        }
}

static void unpack_acc(vta_sim *s, enum vta_mem m, uint32_t index, const uint8_t *in, uint32_t n)
{
    const uint32_t width = s->g.width[m];
    int32_t *out = s->acc + (size_t)index * s->acc_lanes;
    for (size_t i = 0, all = (size_t)n * s->acc_lanes; i < all; i++)
        out[i] = get_lane(in + i * (width / 8), 0, width);
}

static void unpack_uop(vta_sim *s, uint32_t index, const uint8_t *in, uint32_t n)
{
    for (uint32_t e = 0; e < n; e++, in += VTA_UOP_BYTES) {
        uint64_t word = (uint32_t)get_lane(in, 0, 32);
        vta_uop_fields f = {0, 0, 0};
        word &= UINT32_MAX;
        if (s->uop_words[index + e] == (uint32_t)word)
            continue;
        for (uint32_t i = 0; i < s->n_uop_layout; i++)
            vta_field_get(&s->uop_layout[i], &word, &f);
        s->uops[index + e] = (sim_uop){(uint16_t)f.dst, (uint16_t)f.src, (uint16_t)f.wgt};
        s->uop_words[index + e] = (uint32_t)word;
        s->uop_generation++;
    }
}

static void unpack(vta_sim *s, enum vta_mem m, uint32_t index, const uint8_t *in, uint32_t n)
{
    switch (m) {
    case VTA_MEM_UOP: unpack_uop(s, index, in, n); break;
    case VTA_MEM_WGT: unpack_wgt(s, index, in, n); break;
    case VTA_MEM_INP: unpack_inp(s, index, in, n); break;
    case VTA_MEM_ACC:
    case VTA_MEM_ACC_8BIT: unpack_acc(s, m, index, in, n); break;
    case VTA_MEM_OUT:
    case VTA_MEM_COUNT: break;
    }
}

static size_t wgt_bytes(const vta_sim *s)
{
    return s->wide_wgt ? sizeof(int16_t) : sizeof(int8_t);
}

static void clear(vta_sim *s, enum vta_mem m, uint32_t index, uint32_t n)
{
    static const uint8_t zero[VTA_UOP_BYTES];
    switch (m) {
    case VTA_MEM_UOP:
        for (uint32_t i = 0; i < n; i++)
            unpack_uop(s, index + i, zero, 1);
        break;
    case VTA_MEM_WGT:
        memset((char *)s->wgt + (size_t)index * s->wgt_lanes * wgt_bytes(s), 0,
               (size_t)n * s->wgt_lanes * wgt_bytes(s));
        break;
    case VTA_MEM_INP: memset(s->inp + (size_t)index * s->inp_lanes, 0, (size_t)n * s->inp_lanes * 2); break;
    case VTA_MEM_ACC:
    case VTA_MEM_ACC_8BIT: memset(s->acc + (size_t)index * s->acc_lanes, 0, (size_t)n * s->acc_lanes * 4); break;
    case VTA_MEM_OUT:
    case VTA_MEM_COUNT: break;
    }
}

/* Accumulators as bytes of `width` bits; OUT takes them from its own memory where the profile has one. */
static void pack_acc(const vta_sim *s, enum vta_mem m, uint32_t index, uint32_t n, uint8_t *out)
{
    const uint32_t width = s->g.width[m], lanes = s->acc_lanes;
    const size_t first = (size_t)index * lanes, all = (size_t)n * lanes;
    if (width == 8 && !s->out) {
        for (size_t i = 0; i < all; i++)
            out[i] = (uint8_t)s->acc[first + i];
        return;
    }
    for (uint32_t e = 0; e < n; e++, out += s->g.elem_bytes[m])
        for (uint32_t i = 0; i < lanes; i++) {
            size_t at = first + (size_t)e * lanes + i;
            put_lane(out, i, width, m == VTA_MEM_OUT && s->out ? s->out[at] : s->acc[at]);
        }
}

void vta_sim_pack(const vta_sim *s, enum vta_mem m, uint32_t index, uint32_t count, uint8_t *out)
{
    const uint32_t block = s->g.block_in, width = s->g.width[m];
    switch (m) {
    case VTA_MEM_UOP:
        for (uint32_t i = 0; i < count; i++)
            put_lane(out, i, 32, (int32_t)s->uop_words[index + i]);
        break;
    case VTA_MEM_WGT:
        for (uint32_t e = 0; e < count; e++, out += s->g.elem_bytes[m])
            for (uint32_t i = 0; i < block * block; i++) {
                size_t at = wgt_lane(s, index + e, i);
                put_lane(out, i, width, s->wide_wgt ? ((int16_t *)s->wgt)[at] : ((int8_t *)s->wgt)[at]);
            }
        break;
    case VTA_MEM_INP:
        for (uint32_t e = 0; e < count; e++, out += s->g.elem_bytes[m])
            for (uint32_t i = 0; i < s->g.batch * block; i++)
                put_lane(
                    out, i, width,
                    s->inp[(size_t)(index + e) * s->inp_lanes + i / block * 4 * s->quads + vta_sim_lane(i % block)]);
        break;
    case VTA_MEM_ACC:
    case VTA_MEM_OUT: pack_acc(s, m, index, count, out); break;
    case VTA_MEM_ACC_8BIT:
    case VTA_MEM_COUNT: break;
    }
}

/* --- what is allowed --- */

static vta_status check_memory(const vta_sim *s, const sim_at *at)
{
    const vta_fields *f = at->f;
    if (f->opcode == VTA_STORE) {
        if (f->memory_type != VTA_MEM_OUT && f->x_size > 0) /* a NOP of the run-time says uop */
            return vta_sim_fault(at, VTA_FAULT, "memory type %d cannot be stored, only out (4)", (int)f->memory_type);
        if (f->y_pad_0 || f->y_pad_1 || f->x_pad_0 || f->x_pad_1)
            return vta_sim_fault(at, VTA_FAULT, "a store has no padding");
    } else if (f->memory_type == VTA_MEM_OUT || f->memory_type >= VTA_MEM_COUNT) {
        return vta_sim_fault(at, VTA_FAULT, "memory type %d cannot be loaded", (int)f->memory_type);
    } else if (f->memory_type == VTA_MEM_ACC_8BIT && (s->g.width[VTA_MEM_ACC] != 32 || s->g.width[VTA_MEM_INP] != 8)) {
        return vta_sim_fault(at, VTA_FAULT, "needs accumulators of 32 bits and inputs of 8");
    }
    return VTA_OK;
}

/* What the profile's hardware would do in another way. */
static vta_status check_caps(const vta_sim *s, const sim_at *at)
{
    const vta_fields *f = at->f;
    const sim_caps *c = s->caps;
    bool padded = f->y_pad_0 || f->y_pad_1 || f->x_pad_0 || f->x_pad_1;
    if (!c->strict)
        return VTA_OK;
    if (f->y_size == 0)
        return vta_sim_fault(at, VTA_FAULT, "y_size is 0 and x_size is not");
    if (f->opcode == VTA_STORE)
        return VTA_OK;
    if (f->memory_type == VTA_MEM_ACC_8BIT && !c->acc8)
        return vta_sim_fault(at, VTA_FAULT, "this hardware loads no 8-bit accumulators");
    if (f->memory_type == VTA_MEM_WGT && padded && !c->pad_wgt)
        return vta_sim_fault(at, VTA_FAULT, "this hardware ignores padding of weights");
    if ((f->memory_type == VTA_MEM_ACC || f->memory_type == VTA_MEM_ACC_8BIT) && padded && !c->pad_acc)
        return vta_sim_fault(at, VTA_FAULT, "this hardware ignores padding of accumulators");
    if (f->memory_type == VTA_MEM_UOP && (padded || f->y_size != 1) && !c->uop_2d)
        return vta_sim_fault(at, VTA_FAULT, "this hardware loads micro-ops as one row without padding");
    return VTA_OK;
}

static vta_status check_room(const vta_sim *s, const sim_at *at, uint64_t elements)
{
    enum vta_mem m = (enum vta_mem)at->f->memory_type;
    uint32_t depth = s->g.depth[m];
    if (m == VTA_MEM_UOP && s->caps->uop_depth && s->caps->uop_depth < depth)
        depth = s->caps->uop_depth;
    if ((uint64_t)at->f->sram_base + elements > depth)
        return vta_sim_fault(at, VTA_FAULT, "elements %lld to %llu of a scratchpad of %u", (long long)at->f->sram_base,
                             (unsigned long long)((uint64_t)at->f->sram_base + elements), depth);
    return VTA_OK;
}

/* --- execution --- */

/* Host address of a row, NULL with a message when it is no one's. */
static uint8_t *row_at(vta_sim *s, const sim_at *at, int64_t y)
{
    const vta_fields *f = at->f;
    uint32_t eb = s->g.elem_bytes[f->memory_type];
    uint64_t phys = (uint64_t)(f->dram_base + y * f->x_stride) * eb;
    uint8_t *host = vta_dram_at(s->dram, phys, (size_t)f->x_size * eb);
    if (!host)
        vta_sim_fault(at, VTA_FAULT, "row %lld: bytes 0x%llx to 0x%llx of DRAM lie in no one allocation", (long long)y,
                      (unsigned long long)phys, (unsigned long long)(phys + (uint64_t)f->x_size * eb));
    return host;
}

/* All rows at once: the host address of the first when one allocation holds them all, else NULL. */
static uint8_t *rows_at(vta_sim *s, const vta_fields *f)
{
    uint64_t eb = s->g.elem_bytes[f->memory_type];
    uint64_t elements = (uint64_t)(f->y_size - 1) * (uint64_t)f->x_stride + (uint64_t)f->x_size;
    return f->y_size > 0 ? vta_dram_at(s->dram, (uint64_t)f->dram_base * eb, (size_t)(elements * eb)) : NULL;
}

static vta_status load_rows(vta_sim *s, const sim_at *at)
{
    const vta_fields *f = at->f;
    enum vta_mem m = (enum vta_mem)f->memory_type;
    const uint32_t x = (uint32_t)f->x_size, before = (uint32_t)f->x_pad_0, after = (uint32_t)f->x_pad_1;
    const int64_t rows = f->y_pad_0 + f->y_size + f->y_pad_1;
    uint8_t *all = rows_at(s, f);
    uint32_t sram = (uint32_t)f->sram_base;
    for (int64_t r = 0; r < rows; r++, sram += before + x + after) {
        int64_t y = r - f->y_pad_0;
        if (y < 0 || y >= f->y_size) {
            clear(s, m, sram, before + x + after);
            continue;
        }
        const uint8_t *in = all ? all + (size_t)(y * f->x_stride) * s->g.elem_bytes[m] : row_at(s, at, y);
        if (!in)
            return VTA_FAULT;
        clear(s, m, sram, before);
        unpack(s, m, sram + before, in, x);
        clear(s, m, sram + before + x, after);
    }
    return VTA_OK;
}

/* Hardware stores what the last ALU or GEMM operation left in OUT; the simulator would store the accumulator. */
static vta_status check_out(const vta_sim *s, const sim_at *at, uint32_t index, uint32_t n)
{
    for (uint32_t i = index; s->out && i < index + n; i++) {
        const size_t at_row = (size_t)i * s->acc_lanes;
        if (!s->out_valid[i])
            return vta_sim_fault(at, VTA_FAULT, "element %u of OUT was never written by ALU or GEMM", i);
        for (uint32_t k = 0; k < s->acc_lanes; k++)
            if (s->out[at_row + k] != vta_sim_wrap(s->acc[at_row + k], s->g.width[VTA_MEM_OUT]))
                return vta_sim_fault(at, VTA_FAULT,
                                     "element %u, lane %u: OUT holds %d, the accumulator %d: it changed after the "
                                     "last ALU or GEMM operation on it",
                                     i, k, s->out[at_row + k], s->acc[at_row + k]);
    }
    return VTA_OK;
}

static vta_status store_rows(vta_sim *s, const sim_at *at)
{
    const vta_fields *f = at->f;
    const uint32_t x = (uint32_t)f->x_size;
    uint8_t *all = rows_at(s, f);
    uint32_t sram = (uint32_t)f->sram_base;
    for (int64_t y = 0; y < f->y_size; y++, sram += x) {
        uint8_t *out = all ? all + (size_t)(y * f->x_stride) * s->g.elem_bytes[VTA_MEM_OUT] : row_at(s, at, y);
        if (!out || check_out(s, at, sram, x) != VTA_OK)
            return VTA_FAULT;
        vta_sim_pack(s, VTA_MEM_OUT, sram, x, out);
    }
    return VTA_OK;
}

static void count_bytes(vta_sim *s, const vta_fields *f)
{
    uint64_t n = (uint64_t)f->x_size * (uint64_t)f->y_size;
    const uint32_t *eb = s->g.elem_bytes;
    switch ((enum vta_mem)f->memory_type) {
    case VTA_MEM_UOP: s->counters.uop_load_nbytes += n * eb[VTA_MEM_UOP]; break;
    case VTA_MEM_WGT: s->counters.wgt_load_nbytes += n * eb[VTA_MEM_WGT]; break;
    case VTA_MEM_INP: s->counters.inp_load_nbytes += n * eb[VTA_MEM_INP]; break;
    case VTA_MEM_ACC: s->counters.acc_load_nbytes += n * eb[VTA_MEM_ACC]; break;
    case VTA_MEM_ACC_8BIT: /* as published: as if it were ACC; the true bytes beside */
        s->counters.acc_load_nbytes += n * eb[VTA_MEM_ACC];
        s->counters.acc8_load_nbytes += n * eb[VTA_MEM_ACC_8BIT];
        break;
    case VTA_MEM_OUT: s->counters.out_store_nbytes += n * eb[VTA_MEM_OUT]; break;
    case VTA_MEM_COUNT: break;
    }
}

vta_status vta_sim_transfer(vta_sim *s, const sim_at *at)
{
    const vta_fields *f = at->f;
    vta_status status = check_memory(s, at);
    if (status != VTA_OK || f->x_size == 0)
        return status;
    uint64_t elements =
        (uint64_t)(f->x_pad_0 + f->x_size + f->x_pad_1) * (uint64_t)(f->y_pad_0 + f->y_size + f->y_pad_1);
    if ((status = check_caps(s, at)) != VTA_OK || (status = check_room(s, at, elements)) != VTA_OK)
        return status;
    count_bytes(s, f);
    if (s->o.skip_exec && f->memory_type != VTA_MEM_UOP)
        return VTA_OK;
    return f->opcode == VTA_STORE ? store_rows(s, at) : load_rows(s, at);
}
