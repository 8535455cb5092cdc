/* SPDX-License-Identifier: Apache-2.0 */
/* nibble_rows.h of `count` runs of data, the rows of a window, whose weights stand one behind the other. Their sums are
 * read and written once for all of them. */
#ifndef LATHE_KERNEL_DSP_NIBBLE_RUNS_H
#define LATHE_KERNEL_DSP_NIBBLE_RUNS_H
#include "kernel/common/rolled.h"
#include "kernel/dsp/nibble_rows.h"
#include "kernel/dsp/runs_asm.h"

#if LATHE_ALL_REGISTERS
#define LATHE_NAME(size) lathe_nibble_runs_##size
#define LATHE_WEIGHTS    LATHE_NIBBLE_WEIGHTS
#define LATHE_STEP_BYTES 4
#define LATHE_GET(i)     0
#define LATHE_PUT(i, s)  out[i] += (s) >> 4
#include "kernel/dsp/run_tiles.inc"
#endif

static LATHE_ALWAYS void lathe_nibble_runs(int32_t *out, const int16_t *const *runs, int count, const int8_t *w,
                                           int m, int r, int n, int row, int step, int words)
{
    int i;
#if LATHE_ALL_REGISTERS
    if (lathe_nibble_runs_tile(out, runs, count, w, m, r, n, row, step, words))
        return;
#endif
    LATHE_ROLLED
    for (i = 0; i < count; i++)
        lathe_nibble_rows(out, runs[i], w + i * 2 * r * n, m, r, n, row, step, words);
}

#endif
