/* SPDX-License-Identifier: Apache-2.0 */
/* out[j] += a * b[j]: with RISC-V's vectors as many at a time as the machine has. A product of bytes needs 16 bits, so
 * eight registers of sums take two of data: loads of 8-bit elements at LMUL 2, products at 4, sums at 8. Sums wrap. */
#ifndef LATHE_KERNEL_RVV_VWMACC_H
#define LATHE_KERNEL_RVV_VWMACC_H
#include <stddef.h>
#include <stdint.h>
#if defined(__riscv_vector) && __riscv_v_intrinsic >= 11000 /* the intrinsics have the prefix __riscv_ */
#include <riscv_vector.h>
#endif

static void lathe_rvv_vwmacc(int32_t *out, int8_t a, const int8_t *b, int64_t n)
{
#if defined(__riscv_vector) && __riscv_v_intrinsic >= 11000
    while (n > 0) {
        const size_t vl = __riscv_vsetvl_e8m2((size_t)n);
        const vint16m4_t products = __riscv_vwmul_vx_i16m4(__riscv_vle8_v_i8m2(b, vl), a, vl);
        __riscv_vse32_v_i32m8(out, __riscv_vwadd_wv_i32m8(__riscv_vle32_v_i32m8(out, vl), products, vl), vl);
        out += vl;
        b += vl;
        n -= (int64_t)vl;
    }
#else
    int64_t j;
    for (j = 0; j < n; j++)
        out[j] = (int32_t)((uint32_t)out[j] + (uint32_t)((int32_t)a * b[j]));
#endif
}

#endif
