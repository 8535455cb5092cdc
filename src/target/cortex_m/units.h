/* SPDX-License-Identifier: Apache-2.0 */
/* What a Cortex-M computes with, for its selections and rules. */
#ifndef LATHE_TARGET_CORTEX_M_UNITS_H
#define LATHE_TARGET_CORTEX_M_UNITS_H
#include "type/target.h"

/* Words of four bytes, or of two numbers of 16 bits (the DSP extension). */
static inline bool cortex_m_has_words(const target *t)
{
    return t && (t->features & TARGET_DSP) != 0;
}

/* Vectors of 16 bytes (Helium). */
static inline bool cortex_m_has_vectors(const target *t)
{
    return t && (t->features & TARGET_MVE) != 0;
}

/* Words are all that takes several bytes at a time. */
static inline bool cortex_m_has_only_words(const target *t)
{
    return cortex_m_has_words(t) && !cortex_m_has_vectors(t);
}
#endif
