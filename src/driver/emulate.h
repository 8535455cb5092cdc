/* SPDX-License-Identifier: Apache-2.0 */
/* Packages for other machines, run by an emulator; the inside of run.c. */
#ifndef LATHE_DRIVER_EMULATE_H
#define LATHE_DRIVER_EMULATE_H
#include "driver/run.h"

#define EMULATE_CALLER "caller"

/* What a run came to: its status, and the operator that ended it, -1 where none is known. */
typedef struct emulate_answer {
    int32_t status, op;
} emulate_answer;

/* EMULATE_CALLER.c and its header in `scratch`: a program that is linked with the package (runtime/board/caller.c);
 * macros CALLED and, for a package that does not hold its constants, CONSTANTS name the package's functions. */
bool emulate_write_caller(compiler *c, const char *scratch);
/* One run of m; its outputs and their shapes are those of the run when the status is 0. false after a diagnostic. */
bool emulate_call(compiler *c, const run_model *m, emulate_answer *out);

/* board.c's: the objects of the package, and its program for the board. */
bool board_build(compiler *c, run_model *m, int64_t workers);
#endif
