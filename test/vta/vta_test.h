/* vta_test.h: what the VTA tests share: the configurations that are tested, random numbers, instructions by field.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef VTA_TEST_H
#define VTA_TEST_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>

#include "vta.h"

#define N(array) (sizeof(array) / sizeof *(array))

/* The default, two rows, four rows, a smaller block, weights of four bits, narrow accumulators with a tiny block,
 * blocks of 1 and 32, accumulators of eight bits; then blocks of 8 and 32, two rows with four bits.
 * In 4x4 and 8x1 factors lie in the first word of GEMM and ALU. */
static const char *const test_configs[] = {
    "1x16_i8w8a32_15_15_18_17", "2x16_i8w8a32_15_15_18_17", "4x16_i8w8a32_15_15_18_17", "4x8_i8w8a32_15_16_16_18",
    "1x16_i8w4a32_15_15_17_17", "4x4_i4w2a16_12_12_12_12",  "8x1_i8w16a32_10_10_10_12", "1x32_i16w8a32_13_13_15_14",
    "2x4_i8w8a8_13_13_13_13",   "1x8_i8w8a32_15_14_16_16",  "2x8_i8w8a32_15_15_16_17",  "2x32_i8w8a32_15_15_18_17",
    "2x16_i8w4a32_15_15_17_17",
};

static inline vta_config test_config(const char *name)
{
    vta_config c;
    vta_error e = {VTA_OK, ""};
    if (vta_config_preset(name, &c, &e) != VTA_OK)
        fail_msg("%s", e.text);
    return c;
}

static inline uint32_t test_random(uint64_t *state)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    uint32_t x = (uint32_t)(*state >> 33);
    return x ^ x >> 15;
}

/* 0 to n - 1 */
static inline uint32_t test_below(uint64_t *state, uint32_t n)
{
    return n ? test_random(state) % n : 0;
}

static inline vta_insn test_encode(const vta_geometry *g, vta_fields f)
{
    vta_insn insn = {{0, 0}};
    vta_field_error e = {NULL, 0, 0, 0};
    if (!vta_encode(g, &f, &insn, &e))
        fail_msg("%s = %lld does not fit", e.field, (long long)e.value);
    return insn;
}

static inline uint32_t test_uop(const vta_geometry *g, int64_t dst, int64_t src, int64_t wgt)
{
    const vta_uop_fields f = {dst, src, wgt};
    uint32_t word = 0;
    vta_field_error e = {NULL, 0, 0, 0};
    if (!vta_uop_encode(g, &f, &word, &e))
        fail_msg("%s = %lld does not fit", e.field, (long long)e.value);
    return word;
}

static inline vta_sim *test_sim(const vta_config *c, const vta_sim_options *o)
{
    vta_sim *s = NULL;
    vta_error e = {VTA_OK, ""};
    if (vta_sim_create(c, o, &s, &e) != VTA_OK)
        fail_msg("%s", e.text);
    return s;
}

#endif
