/* classical.c: calls a package with each row of rows.bin, on the board of an emulator, for classical.py. answer.bin
 * gets the label and the scores of each row, measured.bin the instructions of all calls and the bytes of the deepest
 * stack. OUTPUTS names the fields of the results, LABEL_BYTES and SCORES_BYTES say how long they are.
 * SPDX-License-Identifier: Apache-2.0 */
#include "board.h"
#include "tvmgen_default.h"

enum { PAINTED = 4096, PAINT = 0xA5 };

static int64_t row[ROW_BYTES / 8 + 1], label[LABEL_BYTES / 8 + 1], scores[SCORES_BYTES / 8 + 1];
static int64_t measured[2];

/* What lies below the stack pointer is painted, and what is painted no more has been used. */
static __attribute__((noinline)) int32_t call(struct tvmgen_default_inputs *in, struct tvmgen_default_outputs *out)
{
    char *stack;
    volatile char *p;
    uint64_t start, between;
    int32_t status;

    __asm__ volatile("mov %0, sp" : "=r"(stack));
    for (p = stack - PAINTED; p < stack; p++)
        *p = (char)PAINT;
    start = board_instructions();
    between = board_instructions();
    status = tvmgen_default_run(in, out);
    measured[0] += (int64_t)(board_instructions() - between - (between - start));
    for (p = stack - PAINTED; p < stack && *p == (char)PAINT; p++)
        ;
    if (stack - p > measured[1])
        measured[1] = stack - p;
    return status;
}

int main(void)
{
    struct tvmgen_default_inputs in = {row};
    struct tvmgen_default_outputs out = {OUTPUTS};
    int from = board_open("rows.bin", 0), to = board_open("answer.bin", 1), i;

    for (i = 0; i < ROWS; i++)
        if (!board_read(from, row, ROW_BYTES) || call(&in, &out) != 0 || !board_write(to, label, LABEL_BYTES) ||
            !board_write(to, scores, SCORES_BYTES))
            return 1;
    board_close(to);
    to = board_open("measured.bin", 1);
    return board_write(to, measured, sizeof measured) && board_close(to) ? 0 : 1;
}
