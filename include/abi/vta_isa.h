/* vta_isa.h: encoding and decoding of VTA instructions and micro-ops, from the field tables of vta_isa.def. A value
 * that does not fit its field is an error that names the field, never truncated. All instructions are two little-endian
 * 64-bit words. Nothing here allocates or keeps state.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef ABI_VTA_ISA_H
#define ABI_VTA_ISA_H

#include "vta_config.h"
#include "vta_isa.def"

#ifdef __cplusplus
extern "C" {
#endif

enum vta_opcode {
#define X(id, code, text) id = code,
    VTA_OPCODES(X)
#undef X
};

enum vta_alu_opcode {
#define X(id, code, text) id = code,
    VTA_ALU_OPCODES(X)
#undef X
};

/* Pipeline stages, by the queue ids of the run-time's interface. */
enum vta_stage {
    VTA_STAGE_NONE = 0,
    VTA_STAGE_LOAD = 1,
    VTA_STAGE_COMPUTE = 2,
    VTA_STAGE_STORE = 3,
    VTA_STAGE_COUNT = 4
};

typedef struct vta_insn {
    uint64_t word[2];
} vta_insn;

/* An instruction's fields; those of other opcodes are 0. Names are the hardware's. */
typedef struct vta_fields {
    int64_t opcode, pop_prev_dep, pop_next_dep, push_prev_dep, push_next_dep;
    /* LOAD, STORE */
    int64_t memory_type, sram_base, dram_base, y_size, x_size, x_stride, y_pad_0, y_pad_1, x_pad_0, x_pad_1;
    /* GEMM, ALU */
    int64_t reset_reg, uop_bgn, uop_end, iter_out, iter_in;
    int64_t dst_factor_out, dst_factor_in, src_factor_out, src_factor_in, wgt_factor_out, wgt_factor_in;
    int64_t alu_opcode, use_imm, imm;
} vta_fields;

typedef struct vta_uop_fields {
    int64_t dst, src, wgt;
} vta_uop_fields;

/* What did not fit. */
typedef struct vta_field_error {
    const char *field;
    int64_t value, least, most;
} vta_field_error;

/* One row of a field table, its width resolved. */
typedef struct vta_field {
    const char *name;
    size_t member; /* offset in vta_fields or vta_uop_fields */
    uint8_t word, bit, bits;
    bool is_signed;
} vta_field;

enum { VTA_MAX_FIELDS = 24 };

/* The fields of instructions with this opcode, from the lowest bit up. Returns their number; 0: no such opcode. */
static inline uint32_t vta_insn_layout(const vta_geometry *g, int64_t opcode, vta_field out[VTA_MAX_FIELDS])
{
    const uint32_t A = (uint32_t)g->log_depth[VTA_MEM_ACC], I = (uint32_t)g->log_depth[VTA_MEM_INP],
                   W = (uint32_t)g->log_depth[VTA_MEM_WGT], U = (uint32_t)g->log_depth[VTA_MEM_UOP];
    uint32_t n = 0, at = 0, word = 0;
    vta_field f;
#define X(name_, bits_, signed_)            \
    if (at + (uint32_t)(bits_) > 64) {      \
        word++;                             \
        at = 0;                             \
    }                                       \
    f.name = #name_;                        \
    f.member = offsetof(vta_fields, name_); \
    f.word = (uint8_t)word;                 \
    f.bit = (uint8_t)(at % 64);             \
    f.bits = (uint8_t)(bits_);              \
    f.is_signed = (signed_);                \
    out[n++] = f;                           \
    at += (uint32_t)(bits_);
    VTA_HEAD_FIELDS(X)
    if (opcode == VTA_LOAD || opcode == VTA_STORE) {
        VTA_MEM_FIELDS(X)
    } else if (opcode == VTA_GEMM) {
        VTA_LOOP_FIELDS(X)
        VTA_GEMM_FIELDS(X)
    } else if (opcode == VTA_ALU) {
        VTA_LOOP_FIELDS(X)
        VTA_ALU_FIELDS(X)
    } else if (opcode != VTA_FINISH) {
        return 0;
    }
#undef X
    return n;
}

static inline uint32_t vta_uop_layout(const vta_geometry *g, vta_field out[VTA_MAX_FIELDS])
{
    const uint32_t A = (uint32_t)g->log_depth[VTA_MEM_ACC], I = (uint32_t)g->log_depth[VTA_MEM_INP],
                   W = (uint32_t)g->log_depth[VTA_MEM_WGT];
    uint32_t n = 0, at = 0;
    vta_field f;
#define X(name_, bits_, signed_)                \
    f.name = #name_;                            \
    f.member = offsetof(vta_uop_fields, name_); \
    f.word = 0;                                 \
    f.bit = (uint8_t)at;                        \
    f.bits = (uint8_t)(bits_);                  \
    f.is_signed = (signed_);                    \
    out[n++] = f;                               \
    at += (uint32_t)(bits_);
    VTA_UOP_FIELDS(X)
#undef X
    (void)at;
    return n;
}

static inline int64_t vta_field_least(const vta_field *f)
{
    return f->is_signed ? -((int64_t)1 << (f->bits - 1)) : 0;
}

static inline int64_t vta_field_most(const vta_field *f)
{
    return ((int64_t)1 << (f->is_signed ? f->bits - 1 : f->bits)) - 1;
}

static inline bool vta_field_put(const vta_field *f, const void *fields, uint64_t *words, vta_field_error *e)
{
    int64_t v;
    memcpy(&v, (const char *)fields + f->member, sizeof v);
    if (v < vta_field_least(f) || v > vta_field_most(f)) {
        e->field = f->name;
        e->value = v;
        e->least = vta_field_least(f);
        e->most = vta_field_most(f);
        return false;
    }
    words[f->word] |= ((uint64_t)v & (((uint64_t)1 << f->bits) - 1)) << f->bit;
    return true;
}

static inline void vta_field_get(const vta_field *f, const uint64_t *words, void *fields)
{
    uint64_t raw = (words[f->word] >> f->bit) & (((uint64_t)1 << f->bits) - 1);
    int64_t v = (int64_t)raw;
    if (f->is_signed && raw >> (f->bits - 1))
        v -= (int64_t)1 << f->bits;
    memcpy((char *)fields + f->member, &v, sizeof v);
}

/* Encodes *in. false: *e names the field that does not fit ("opcode" when there is no such instruction). */
static inline bool vta_encode(const vta_geometry *g, const vta_fields *in, vta_insn *out, vta_field_error *e)
{
    vta_field layout[VTA_MAX_FIELDS];
    uint32_t n = vta_insn_layout(g, in->opcode, layout);
    out->word[0] = out->word[1] = 0;
    if (n == 0) {
        e->field = "opcode";
        e->value = in->opcode;
        e->least = 0;
        e->most = VTA_ALU;
        return false;
    }
    for (uint32_t i = 0; i < n; i++)
        if (!vta_field_put(&layout[i], in, out->word, e))
            return false;
    return true;
}

/* Decodes *in; bits of no field are ignored. false: there is no such opcode (out->opcode holds it). */
static inline bool vta_decode(const vta_geometry *g, const vta_insn *in, vta_fields *out)
{
    vta_field layout[VTA_MAX_FIELDS];
    memset(out, 0, sizeof *out);
    out->opcode = (int64_t)(in->word[0] & 7u);
    uint32_t n = vta_insn_layout(g, out->opcode, layout);
    for (uint32_t i = 0; i < n; i++)
        vta_field_get(&layout[i], in->word, out);
    return n > 0;
}

static inline bool vta_uop_encode(const vta_geometry *g, const vta_uop_fields *in, uint32_t *out, vta_field_error *e)
{
    vta_field layout[VTA_MAX_FIELDS];
    uint64_t word = 0;
    uint32_t n = vta_uop_layout(g, layout);
    for (uint32_t i = 0; i < n; i++)
        if (!vta_field_put(&layout[i], in, &word, e))
            return false;
    *out = (uint32_t)word;
    return true;
}

static inline void vta_uop_decode(const vta_geometry *g, uint32_t in, vta_uop_fields *out)
{
    vta_field layout[VTA_MAX_FIELDS];
    uint64_t word = in;
    uint32_t n = vta_uop_layout(g, layout);
    for (uint32_t i = 0; i < n; i++)
        vta_field_get(&layout[i], &word, out);
}

/* The stage that executes it: LOAD INP and WGT: load; LOAD UOP, ACC, ACC_8BIT, GEMM, ALU, FINISH: compute; STORE. */
static inline enum vta_stage vta_stage_of(const vta_fields *f)
{
    if (f->opcode == VTA_STORE)
        return VTA_STAGE_STORE;
    if (f->opcode == VTA_LOAD && (f->memory_type == VTA_MEM_INP || f->memory_type == VTA_MEM_WGT))
        return VTA_STAGE_LOAD;
    return VTA_STAGE_COMPUTE;
}

#ifdef __cplusplus
}
#endif
#endif
