/* SPDX-License-Identifier: Apache-2.0 */
/* dot_rows.h of `count` runs of data, the rows of a window, whose weights stand one behind the other. Their sums are
 * read and written once for all of them. */
#ifndef LATHE_KERNEL_DSP_DOT_RUNS_H
#define LATHE_KERNEL_DSP_DOT_RUNS_H
#include "kernel/common/rolled.h"
#include "kernel/dsp/dot_rows.h"
#include "kernel/dsp/runs_asm.h"

#if LATHE_ALL_REGISTERS
#define LATHE_NAME(size) lathe_dot_runs_##size
#define LATHE_WEIGHTS    LATHE_BYTE_WEIGHTS
#define LATHE_STEP_BYTES 8
#define LATHE_GET(i)     out[i]
#define LATHE_PUT(i, s)  out[i] = (s)
#include "kernel/dsp/run_tiles.inc"
#endif

static LATHE_ALWAYS void lathe_dot_runs(int32_t *out, const int16_t *const *runs, int count, const int8_t *w,
                                        int m, int r, int n, int row, int step, int words)
{
    int i;
#if LATHE_ALL_REGISTERS
    if (lathe_dot_runs_tile(out, runs, count, w, m, r, n, row, step, words))
        return;
#endif
    LATHE_ROLLED
    for (i = 0; i < count; i++)
        lathe_dot_rows(out, runs[i], w + i * 4 * r * n, m, r, n, row, step, words);
}

#endif
