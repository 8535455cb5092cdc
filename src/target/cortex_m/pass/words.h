/* SPDX-License-Identifier: Apache-2.0 */
/* Loops over bytes of Cortex-M. */
#ifndef LATHE_TARGET_CORTEX_M_PASS_WORDS_H
#define LATHE_TARGET_CORTEX_M_PASS_WORDS_H
#include "tir/pass/bytes.h"

bool words_fit(const struct target *t); /* it has instructions on four bytes in a register */
#endif
