/* SPDX-License-Identifier: Apache-2.0 */
/* For shifted.inc: an instruction that shifts and saturates has the number of bits in itself. */
#ifndef LATHE_KERNEL_ROUND_SHIFTED_RIGHT_H
#define LATHE_KERNEL_ROUND_SHIFTED_RIGHT_H
#include "kernel/common/always.h"
#include "kernel/dsp/dsp.h"

#define LATHE_RIGHT(saturate, n)                                                    \
    case n:                                                                         \
        __asm__(saturate " %0, #8, %0, asr #" #n : "+r"(x));                        \
        return x;
#define LATHE_EACH_RIGHT(saturate)                                                                            \
    LATHE_RIGHT(saturate, 2) LATHE_RIGHT(saturate, 3) LATHE_RIGHT(saturate, 4) LATHE_RIGHT(saturate, 5)       \
    LATHE_RIGHT(saturate, 6) LATHE_RIGHT(saturate, 7) LATHE_RIGHT(saturate, 8) LATHE_RIGHT(saturate, 9)       \
    LATHE_RIGHT(saturate, 10) LATHE_RIGHT(saturate, 11) LATHE_RIGHT(saturate, 12) LATHE_RIGHT(saturate, 13)   \
    LATHE_RIGHT(saturate, 14) LATHE_RIGHT(saturate, 15) LATHE_RIGHT(saturate, 16) LATHE_RIGHT(saturate, 17)   \
    LATHE_RIGHT(saturate, 18) LATHE_RIGHT(saturate, 19) LATHE_RIGHT(saturate, 20) LATHE_RIGHT(saturate, 21)   \
    LATHE_RIGHT(saturate, 22)

#endif
