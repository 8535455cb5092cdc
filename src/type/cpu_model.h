/* SPDX-License-Identifier: Apache-2.0 */
/* What the rules have to know of a processor: how many vectors it multiplies and loads in a cycle, how long a sum takes
 * to come back, which registers the compiler can use, how large its caches are. One row for each processor that a
 * target names and for each level of instructions; docs/reference/targets.md says where the numbers come from. */
#ifndef LATHE_TYPE_CPU_MODEL_H
#define LATHE_TYPE_CPU_MODEL_H
#include <stdbool.h>
#include <stdint.h>

typedef struct cpu_model {
    const char *name;      /* "znver3"; of a level of instructions: the target's */
    double fma;            /* multiply-adds of one vector of the target's width that begin in a cycle */
    double loads;          /* vectors, or elements to be broadcast, loaded in a cycle */
    double issue;          /* instructions that begin in a cycle, in all */
    uint32_t latency;      /* cycles until the sum of a multiply-add can be added to */
    uint32_t tile_regs;    /* vector registers that a register tile may take, operands included: a compiler that has one
                            * more than that in use begins to store sums in its innermost loop */
    uint32_t l1_bytes;     /* data, of one core */
    uint32_t l2_bytes;     /* of the second-level cache that one worker has to itself */
    uint32_t l3_bytes;     /* of the last cache, which all workers share */
    double far_bytes;      /* bytes a cycle from beyond the second-level cache */
    double memory_bytes;   /* from memory */
    double transform;      /* cycles of Winograd's transform of one position of a tile and one vector of channels,
                            * copying included; the way back takes half of it */
} cpu_model;

/* NULL: unknown name. */
const cpu_model *cpu_model_find(const char *name);
/* The name of the row that this machine's identification leads to; NULL: none of them. What the machine can do is a
 * question of its own: a hypervisor may hide features. */
const char *cpu_model_here(void);
#endif
