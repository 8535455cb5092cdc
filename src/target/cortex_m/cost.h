/* SPDX-License-Identifier: Apache-2.0 */
/* What calls of Cortex-M's kernels cost, for rows of instructions (tir/intrin.h). */
#ifndef LATHE_TARGET_CORTEX_M_COST_H
#define LATHE_TARGET_CORTEX_M_COST_H
#include "tir/intrin.h"

double cortex_m_cost_rows(const tir_intrin_use *use);   /* kernel/dsp/dot_rows.h, nibble_rows.h */
double cortex_m_cost_pairs(const tir_intrin_use *use);  /* kernel/dsp/dot_pairs.h */
double cortex_m_cost_bytes(const tir_intrin_use *use);  /* kernel/dsp/dot_bytes.h, nibble_bytes.h */
double cortex_m_cost_taps(const tir_intrin_use *use);   /* kernel/dsp/taps_row.h, nibble_taps.h */
double cortex_m_cost_sums(const tir_intrin_use *use);   /* kernel/mve/dot.h, nibbles.h */
double cortex_m_cost_window(const tir_intrin_use *use); /* kernel/mve/window.h, window_nibbles.h */
double cortex_m_cost_words(const tir_intrin_use *use);  /* kernel/mve/words.h */
double cortex_m_cost_widen(const tir_intrin_use *use);  /* kernel/dsp/widen_runs.inc, widen_planes.inc */
double cortex_m_cost_widen_fours(const tir_intrin_use *use); /* the former, by fours */
double cortex_m_cost_bounds(const tir_intrin_use *use); /* kernel/dsp/bounds.inc */
double cortex_m_cost_table(const tir_intrin_use *use);  /* kernel/dsp/table.h */
double cortex_m_cost_word(const tir_intrin_use *use);   /* kernel/dsp/words.h, sum_words.h */
double cortex_m_cost_lanes(const tir_intrin_use *use);  /* kernel/mve/lanes.inc, load.inc */
double cortex_m_cost_put_lanes(const tir_intrin_use *use); /* kernel/mve/rounded.inc, twice.inc */
double cortex_m_cost_copy(const tir_intrin_use *use);   /* memcpy */
#endif
