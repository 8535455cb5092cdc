/* SPDX-License-Identifier: Apache-2.0 */
/* What a back end generates for: one table of targets. Passes and schedules ask capabilities, never names. */
#ifndef LATHE_TYPE_TARGET_H
#define LATHE_TYPE_TARGET_H
#include "base/compiler.h"

typedef struct target {
    const char *name;       /* "x86-64-v3" */
    const char *cflags;     /* flags for the package's Makefile: "-march=x86-64-v3 -ffp-contract=fast" */
    uint32_t vector_bytes;  /* register width; 0: scalar code only */
    uint32_t vector_regs;   /* registers */
    bool fma;
    uint32_t stack_limit;   /* bytes of locals that one kernel may use */
    uint32_t workers;       /* width of the static schedule */
} target;

/* x86-64-v2, x86-64-v3, x86-64-v4, generic (scalar, any CPU), cortex-m (scalar, small stack), native (resolved on this
 * machine to one of the former). NULL: unknown name. */
const target *target_find(const char *name);
const target *target_default(void); /* x86-64-v3 on x86-64 hosts, generic elsewhere */
const char *target_names(void);     /* "x86-64-v2, ..." for messages */
#endif
