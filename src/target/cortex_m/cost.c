/* SPDX-License-Identifier: Apache-2.0 */
/* What kernels of kernel/dsp and kernel/mve cost: instructions of a call, at most, as a function of the
 * symbols of their rows. The numbers are counted in the kernels' own text: loops of assembly exactly, C as gcc and
 * clang make it at -O1 or more; test/py/microcontrollers.py compares them with what emulators count
 * (docs/reference/cli.md). */
#include "target/cortex_m/cost.h"

#include <assert.h>
#include <string.h>

/* Of one run or pixel by one channel and one step of weights, in C: loads, a product, a sum in memory. */
static const double IN_C = 9;
/* What a call takes beside: registers saved, arguments, sums, a choice of tiles. */
static const double CALL = 30, RUN = 14, SUM = 4;

static double of(const tir_intrin_use *use, const char *symbol)
{
    uint32_t i = 0;
    while (i < use->row->n_symbols && strcmp(use->row->symbols[i].name, symbol) != 0)
        i++;
    assert(i < use->row->n_symbols); /* a row and its cost name the same symbols */
    return (double)use->of[i];
}

/* A byte of weights of 4 bits is of two. */
static double channels(const tir_intrin_use *use)
{
    return of(use, "r") * use->row->channels;
}

/* In C weights are widened by less: a load does it. */
static double step_in_c(const tir_intrin_use *use)
{
    return IN_C + use->row->widen - 3;
}

/* A step: four numbers of each of m runs by four of each of r channels; dot_rows.h has assembly for some of them. */
static double rows_step(const tir_intrin_use *use, double m, double r)
{
    const double row = of(use, "a_row");
    const bool tile = (r == 2 && m == 3 && row < (use->words ? 510 : 1020)) ||
                      (r == 2 && m == 2 && row < (use->words ? 510 : 2040)) ||
                      (m == 1 && (r == 2 || r == 4));
    return use->fast && tile ? 3 + 2 * m + use->row->widen * r + 2 * m * r : 4 * m * r * step_in_c(use) + 20;
}

double cortex_m_cost_rows(const tir_intrin_use *use)
{
    const double m = of(use, "m"), r = channels(use), step = of(use, "n") * rows_step(use, m, r);
    return CALL + SUM * m * r + (use->runs > 1 ? use->runs * (RUN + step) : step);
}

double cortex_m_cost_pairs(const tir_intrin_use *use)
{
    const double m = of(use, "m"), r = of(use, "r");
    return CALL + SUM * m * r + of(use, "n") * (use->fast ? 4 + m + r + 2 * m * r : 4 * m * r * IN_C + 20);
}

double cortex_m_cost_bytes(const tir_intrin_use *use)
{
    const double r = channels(use);
    const bool tile = use->fast && (r == 2 || r == 4);
    return CALL + SUM * r + of(use, "n") * (tile ? 6 + (use->row->widen + 2) * r : 4 * r * step_in_c(use) + 20);
}

/* Tiles of windows that taps_tile.inc has in assembly. */
static bool is_taps_tile(double m, double step)
{
    return (step == 1 && m >= 2 && m <= 6) || (step == 2 && (m == 3 || m == 4 || m == 6));
}

/* Taps of three neighbors take two of them in an instruction. */
double cortex_m_cost_taps(const tir_intrin_use *use)
{
    const double m = of(use, "m"), n = of(use, "n");
    const bool near = use->fast && n == 3 && of(use, "a_tap") == 1 && is_taps_tile(m, of(use, "a_step"));
    return CALL + SUM * m + (near ? 5 + use->row->widen + 5 * m : n * (m * step_in_c(use) + 10));
}

/* Data that stays in registers, tiles, or sums one by one. */
double cortex_m_cost_sums(const tir_intrin_use *use)
{
    const double m = of(use, "m"), r = channels(use), h = of(use, "h"), widen = use->row->widen;
    const double v = (double)(((int64_t)of(use, "n") + 15) / 16), by = m == 1 ? 4 : 2;
    const double alone = 10 + h * (12 + (4 + widen) * v);
    if (!use->fast)
        return CALL + m * r * h * of(use, "n") * IN_C;
    if (m * v <= 6 || m + v - 1 <= 6)
        return CALL + h * (20 + 2 * m * v + r * (v * (1 + widen + m) + (2 + widen) * m + 8));
    if (m > 3)
        return CALL + m * r * alone;
    const double tile = h * (14 + v * (m + (1 + widen) * by + m * by + 2));
    return CALL + (r / by + 1) * (2 * SUM * m * by + tile) + by * m * alone;
}

/* The third and the fourth symbol are rows and columns of the window. */
double cortex_m_cost_window(const tir_intrin_use *use)
{
    const double m = of(use, "m"), r = channels(use), window = (double)use->of[2] * (double)use->of[3];
    return CALL + 20 + r * 40 + m * r * (use->fast ? 6 : 4 + window * IN_C);
}

/* 16 channels of a column at a time, else four. */
double cortex_m_cost_words(const tir_intrin_use *use)
{
    const double n = of(use, "n"), columns = of(use, "c");
    if (!use->fast)
        return CALL + n * columns * of(use, "m") * 8;
    return CALL + 30 + columns * (n / 16 + 1) * 16 + (columns + 1) * 4 * 14;
}

/* Four bytes in a step; of each run or row some are left, which are moved one by one. */
static double widened(const tir_intrin_use *use, double n, double rows)
{
    return 2 * CALL + rows * (RUN + 3 * IN_C) + n * (use->fast ? 4 : IN_C);
}

double cortex_m_cost_widen(const tir_intrin_use *use)
{
    return widened(use, (double)use->of[0] * (double)use->of[1], (double)use->of[0] + (double)use->of[1]);
}

double cortex_m_cost_widen_fours(const tir_intrin_use *use)
{
    return widened(use, 4 * of(use, "runs") * of(use, "n"), of(use, "runs"));
}

double cortex_m_cost_bounds(const tir_intrin_use *use)
{
    return CALL + 4 * IN_C + of(use, "n") * (use->fast ? 3 : IN_C);
}

double cortex_m_cost_table(const tir_intrin_use *use)
{
    return CALL + 8 * IN_C + of(use, "n") * (use->fast ? 4 : IN_C);
}

double cortex_m_cost_word(const tir_intrin_use *use)
{
    return use->fast ? 3 : 4 * IN_C;
}

/* A vector takes two slots. */
double cortex_m_cost_lanes(const tir_intrin_use *use)
{
    return use->fast ? 2 : 4 * IN_C;
}

double cortex_m_cost_put_lanes(const tir_intrin_use *use)
{
    return use->fast ? 18 : 4 * 4 * IN_C;
}

/* Small C libraries copy byte after byte. */
double cortex_m_cost_copy(const tir_intrin_use *use)
{
    return CALL + 5 * of(use, "n") * use->row->channels;
}
