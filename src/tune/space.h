/* SPDX-License-Identifier: Apache-2.0 */
/* What the tuner tries for one kernel: schedules as texts. The space is what the rule of its operator gives for every
 * register tile that the processor holds, and, beside the rule's own choice, other factors of the splits that no tile
 * decides. */
#ifndef LATHE_TUNE_SPACE_H
#define LATHE_TUNE_SPACE_H
#include "prog/prog.h"

typedef struct tune_candidate {
    const char *schedule;
    double cost; /* cycles of a product by the count that the rules choose by; the rule's own choice: 0 */
} tune_candidate;

typedef struct tune_space {
    const char *computation; /* text */
    VEC(tune_candidate) candidates; /* by rising cost; the first is the rule's choice */
} tune_space;

/* Of a kernel that has a schedule, not loops of a target's hook. At most `most` candidates, at least the first. */
bool tune_space_of(compiler *c, const prog_kernel *k, uint32_t most, tune_space *out);
#endif
