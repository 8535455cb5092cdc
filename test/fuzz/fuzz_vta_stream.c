/* SPDX-License-Identifier: Apache-2.0 */
/* Any words as an instruction stream, on a small simulator: no crash, no hang. Then the same instructions one after the
 * other, at this level of inner loops and in plain C: same faults, same state.
 * Byte 0: profile, level, configuration; byte 1: seed. Then instructions; DRAM holds the same bytes. */
#include <stdint.h>
#include <stdlib.h>

#include "vta.h"

enum { DRAM_BYTES = 16384, MOST_INSNS = 64 };

static const char *const configs[] = {"1x16_i8w8a32_10_10_13_12", "4x8_i8w8a32_9_10_11_12", "2x4_i4w2a16_9_9_9_10",
                                      "1x32_i16w8a32_9_10_13_12"};

static vta_sim *make(const vta_config *c, const vta_sim_options *o, const uint8_t *data, size_t size, vta_memory *m)
{
    vta_sim *s;
    vta_error e;
    if (vta_sim_create(c, o, &s, &e) != VTA_OK)
        return NULL;
    if (vta_dram_alloc(vta_sim_dram(s), DRAM_BYTES, m, &e) != VTA_OK)
        abort();
    for (size_t i = 0; size > 0 && i < DRAM_BYTES; i++)
        ((uint8_t *)m->host)[i] = data[i % size];
    return s;
}

/* The instructions, with addresses and micro-op ranges brought to where something is, most of the time. */
static uint32_t read_stream(const vta_geometry *g, const vta_memory *m, const uint8_t *data, size_t size, vta_insn *out)
{
    uint32_t n = 0;
    for (; size >= VTA_INSN_BYTES && n < MOST_INSNS; data += VTA_INSN_BYTES, size -= VTA_INSN_BYTES, n++) {
        vta_fields f;
        vta_field_error e;
        memcpy(&out[n], data, VTA_INSN_BYTES);
        if (!vta_decode(g, &out[n], &f) || f.memory_type >= VTA_MEM_COUNT)
            continue;
        if ((f.opcode == VTA_LOAD || f.opcode == VTA_STORE) && (f.dram_base & 0xf0000000) != 0xf0000000)
            f.dram_base = (f.dram_base & 0xff) + (int64_t)(m->phys / g->elem_bytes[f.memory_type]);
        if (!vta_encode(g, &f, &out[n], &e))
            abort();
    }
    vta_field_error e;
    const vta_fields finish = {.opcode = VTA_FINISH};
    if (!vta_encode(g, &finish, &out[n], &e))
        abort();
    return n + 1;
}

static void compare(vta_sim *a, vta_sim *b, const vta_memory *x, const vta_memory *y)
{
    const vta_geometry *g = vta_sim_geometry(a);
    if (memcmp(x->host, y->host, DRAM_BYTES) != 0)
        abort();
    for (int mem = VTA_MEM_UOP; mem <= VTA_MEM_OUT; mem++) {
        size_t bytes = (size_t)g->depth[mem] * g->elem_bytes[mem];
        uint8_t *p = malloc(bytes), *q = malloc(bytes);
        if (!p || !q || vta_sim_scratchpad(a, (enum vta_mem)mem, 0, g->depth[mem], p, NULL) != VTA_OK ||
            vta_sim_scratchpad(b, (enum vta_mem)mem, 0, g->depth[mem], q, NULL) != VTA_OK || memcmp(p, q, bytes) != 0)
            abort();
        free(p);
        free(q);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    vta_insn insns[MOST_INSNS + 1];
    vta_memory m, n;
    vta_error e;
    if (size < 2)
        return 0;
    const uint8_t head = data[0];
    vta_config c = vta_config_default();
    if (vta_config_preset(configs[head >> 5 & 3], &c, &e) != VTA_OK)
        abort();
    vta_sim_options o = {.profile = (vta_profile)(head & 3),
                         .level = (vta_sim_level)((head >> 2 & 7) % (VTA_SIM_VNNI + 1)),
                         .seed = data[1],
                         .acc_distance = head >> 7,
                         .dram_bytes = 1 << 20,
                         .most_operations = 2000};
    vta_sim *s = make(&c, &o, data + 2, size - 2, &m);
    if (!s)
        return 0;
    uint32_t count = read_stream(vta_sim_geometry(s), &m, data + 2, size - 2, insns);
    (void)vta_sim_run(s, insns, count, &e);
    vta_sim_reset(s);
    o.level = VTA_SIM_SCALAR; /* one instruction after the other, at both levels */
    vta_sim *plain = make(&c, &o, data + 2, size - 2, &n);
    if (!plain)
        abort();
    memcpy(m.host, n.host, DRAM_BYTES);
    for (uint32_t i = 0; i < count && m.phys == n.phys; i++)
        if (vta_sim_execute(s, &insns[i], i, NULL) != vta_sim_execute(plain, &insns[i], i, NULL))
            abort();
    compare(s, plain, &m, &n);
    vta_sim_destroy(plain);
    vta_sim_destroy(s);
    return 0;
}
