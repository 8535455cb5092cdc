/* SPDX-License-Identifier: Apache-2.0 */
/* What stands between programs and code generators of targets (target_codegen_fn): the regions that a target has got,
 * and the C source that it writes for them. */
#ifndef LATHE_PROG_SOURCE_H
#define LATHE_PROG_SOURCE_H
#include "prog/prog.h"

typedef struct prog_region {
    const prog_kernel *kernel; /* its `func`, `constants` */
    const char *symbol;        /* the C function that is to be written: operands, results, and scratch if it has any */
    bool declined;             /* nothing was written for it: out */
    uint64_t scratch;          /* bytes that it wants, aligned to 64; 0: no such parameter: out */
} prog_region;

typedef struct prog_source {
    const target *target;
    prog_region *regions;
    uint32_t n_regions;
    const char *text;    /* of the file; NULL: all were declined: out, as what follows */
    const char *suffix;  /* of the file's name: "c" */
    const char *cflags;  /* "": none */
    const char *ldflags;
} prog_source;

#endif
