/* SPDX-License-Identifier: Apache-2.0 */
/* Machines of emulators that a package is built for, run on and measured on: --target qemu-m4 and its like. */
#ifndef LATHE_DRIVER_BOARD_H
#define LATHE_DRIVER_BOARD_H
#include "base/compiler.h"

typedef struct board {
    const char *name;             /* "qemu-m4" */
    const char *target, *port;    /* of the package */
    const char *stands_for;       /* a target without a core of its own, whose example runs there; NULL: none */
    const char *tools;            /* begins the names of compiler and objdump */
    const char *cflags, *ldflags; /* beside the target's */
    const char *script, *startup; /* files of runtime/board; NULL: a program of Linux */
    const char *emulator;         /* the command, up to the program's name */
    const char *compiler_packages, *emulator_package; /* of Debian and Ubuntu */
    const char *count;            /* where the number of instructions comes from */
    const char *plugin;           /* of the emulator, which counts: a file of runtime/board without its end; or NULL */
} board;

const board *board_find(const char *name); /* NULL: there is none of that name */
const board *board_of_target(const char *name); /* the first that has it; NULL: none */
const board *board_of_example(const char *name); /* that, or the one that stands for it; NULL: none */
const board *board_of_port(const char *name);   /* the first without an operating system that has it; NULL: none */
const board *board_at(uint32_t i);         /* the table's rows in order; NULL behind the last */
const char *board_names(compiler *c);      /* "qemu-m4, ..." */
bool board_is_hosted(const board *b);      /* it runs programs of Linux */

/* Bytes of a package and of tvmrt, without the C library, the caller and its tensors; what one call took. */
typedef struct board_measure {
    uint64_t text, rodata, data, bss; /* static sections; the constants are in rodata */
    uint64_t stack;                   /* the deepest, of the calling thread */
    int64_t instructions;             /* -1: not counted, run_model's `uncounted` says why */
    const int64_t *operators;         /* instructions of each; NULL: no count */
    int64_t counting;                 /* about how many instructions the counting of operators took */
    uint32_t n_operators;
} board_measure;

struct run_model;
/* After a run on m->board. False after a diagnostic. */
bool board_measured(compiler *c, const struct run_model *m, board_measure *out);
#endif
