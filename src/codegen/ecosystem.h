/* SPDX-License-Identifier: Apache-2.0 */
/* Build systems of firmware that a package can be made for, as rows of one table (ecosystem.def). */
#ifndef LATHE_CODEGEN_ECOSYSTEM_H
#define LATHE_CODEGEN_ECOSYSTEM_H
#include <stdbool.h>
#include <stdint.h>

typedef struct ecosystem {
    const char *name, *brief;
    const char *ports;             /* "baremetal|posix": those that fit, the usual one first */
    const char *headers, *sources; /* folders of the package's own files */
    bool takes_files;              /* its build lets the assembler include files of constants */
} ecosystem;

/* The emulator's machine that an example is built for and runs on (compile --example). */
typedef struct ecosystem_board {
    const char *name, *tools, *cflags, *ldflags, *script, *startup, *emulator;
} ecosystem_board;

const ecosystem *ecosystem_at(uint32_t i); /* the table's rows in order; NULL behind the last */
const ecosystem *ecosystem_example(void);  /* a package with a program for an emulator's machine beside it */
extern const char ecosystem_names[];       /* "|zephyr|esp-idf|...": the values of --as */
#define ECOSYSTEM_NAMES (ecosystem_names + 1)
#endif
