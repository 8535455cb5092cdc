/* SPDX-License-Identifier: Apache-2.0 */
/* The end of a quantization in Helium's lanes of four: to the nearest integers, ties to even, plus the zero point, to
 * the nearest that the byte has. VCVTN and VQADD, then narrowing through 16 bits, which saturates. Narrowing is
 * assembly because compilers would keep a copy of what it narrows. Bytes that stay in lanes of i32 saturate in a shift
 * to the left: assembly, too, of four lines, because gcc counts lines and would unroll a loop of fewer. */
#ifndef LATHE_KERNEL_MVE_ROUND_H
#define LATHE_KERNEL_MVE_ROUND_H
#include "kernel/mve/mve.h"
#include <stdint.h>

#if LATHE_MVE == 2
/* v is no NaN. */
static LATHE_HERE int32x4_t lathe_mve_rounded_number(float32x4_t v, int32_t zero)
{
    return vqaddq_n_s32(vcvtnq_s32_f32(v), zero);
}

/* 0 of a NaN. */
static LATHE_HERE int32x4_t lathe_mve_rounded(float32x4_t v, int32_t zero)
{
    int32x4_t q = vqaddq_n_s32(vcvtnq_s32_f32(v), zero);
    __asm__("vcmp.f32 ne, %q1, %q1\n vpsel %q0, %q2, %q0"
            : "+w"(q) : "w"(v), "w"(vdupq_n_s32(0)) : LATHE_PREDICATE);
    return q;
}

/* acc * k, both as binary32. */
static LATHE_HERE int32x4_t lathe_mve_scaled(int32x4_t acc, float32x4_t k, int32_t zero)
{
    return vqaddq_n_s32(vcvtnq_s32_f32(vmulq_f32(vcvtq_f32_s32(acc), k)), zero);
}

static LATHE_HERE void lathe_mve_store_i8(int8_t *p, int32x4_t q)
{
    __asm__("vqmovnb.s32 %q0, %q0\n vqmovnb.s16 %q0, %q0" : "+w"(q));
    vstrbq_s32(p, q);
}

static LATHE_HERE int32x4_t lathe_mve_lanes_i8(int32x4_t q)
{
    __asm__("vqshl.s32 %q0, %q0, #24\n vshr.s32 %q0, %q0, #24\n\n" : "+w"(q));
    return q;
}

static LATHE_HERE void lathe_mve_store_u8(uint8_t *p, int32x4_t q)
{
    __asm__("vqmovnb.s32 %q0, %q0\n vqmovunb.s16 %q0, %q0" : "+w"(q));
    vstrbq_u32(p, vreinterpretq_u32_s32(q));
}

static LATHE_HERE int32x4_t lathe_mve_lanes_u8(int32x4_t q)
{
    __asm__("vqshlu.s32 %q0, %q0, #24\n vshr.u32 %q0, %q0, #24\n\n" : "+w"(q));
    return q;
}
#endif

#endif
