/* SPDX-License-Identifier: Apache-2.0 */
/* Steps of a program that was built with LATHE_STEPS: how often each basic block ran. At the end they are written to
 * the file that LATHE_STEPS names, a line "COUNT OFFSET" for each block, OFFSET into the program for addr2line.
 * test/py/growth.py compares such counts. This file itself is not instrumented. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#define MAX_BLOCKS 400000u

void __sanitizer_cov_trace_pc_guard_init(uint32_t *start, uint32_t *stop);
void __sanitizer_cov_trace_pc_guard(uint32_t *guard);
extern const char __executable_start[];

static uint64_t counts[MAX_BLOCKS];
static uintptr_t places[MAX_BLOCKS];
static uint32_t n_blocks;

void __sanitizer_cov_trace_pc_guard_init(uint32_t *start, uint32_t *stop)
{
    for (; start < stop && *start == 0; start++)
        *start = ++n_blocks < MAX_BLOCKS ? n_blocks : 0;
}

void __sanitizer_cov_trace_pc_guard(uint32_t *guard)
{
    places[*guard] = (uintptr_t)__builtin_return_address(0);
    counts[*guard]++;
}

__attribute__((destructor)) static void write_counts(void)
{
    const char *path = getenv("LATHE_STEPS");
    FILE *f = path ? fopen(path, "w") : NULL;
    for (uint32_t i = 1; f && i < MAX_BLOCKS; i++)
        if (counts[i])
            fprintf(f, "%" PRIu64 " %#" PRIxPTR "\n", counts[i], places[i] - (uintptr_t)__executable_start);
    if (f)
        fclose(f);
}
