/* SPDX-License-Identifier: Apache-2.0 */
/* The byte of a table for each of n bytes: 16 of them are one gathering load. The last ones are behind a predicate. */
#ifndef LATHE_KERNEL_MVE_TABLE_H
#define LATHE_KERNEL_MVE_TABLE_H
#include "kernel/common/shared.h"
#include "kernel/mve/mve.h"
#include <stdint.h>

static LATHE_SHARED void lathe_gathered_bytes_of_table(uint8_t *to, const uint8_t *from, const uint8_t *table,
                                                       int32_t n)
{
#if LATHE_MVE > 0
    for (; n > 0; n -= 16, from += 16, to += 16) {
        const mve_pred16_t in = vctp8q((uint32_t)n);
        vstrbq_p_u8(to, vldrbq_gather_offset_z_u8(table, vldrbq_z_u8(from, in), in), in);
    }
#else
    for (; n > 0; n--)
        *to++ = table[*from++];
#endif
}

#endif
