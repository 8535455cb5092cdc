/* cycle.h: what the files of the cycle model share besides vta.h: timing with tokens left over from an earlier run, and
 * the kinds of work that timelines tell apart.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef VTA_CYCLE_H
#define VTA_CYCLE_H

#include "vta.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The dependency flags of an instruction, as bits and as columns of vta_token_queue_of. */
enum vta_dep_flag { VTA_POP_PREV, VTA_POP_NEXT, VTA_PUSH_PREV, VTA_PUSH_NEXT, VTA_DEP_FLAGS };

/* The queue that a flag of an instruction in `stage` means; -1: that stage has no such neighbor. */
int vta_token_queue_of(enum vta_stage stage, enum vta_dep_flag flag);
/* The instruction's flags as bits 1 << vta_dep_flag. */
unsigned vta_dep_flags(const vta_fields *f);

/* vta_cycle_time that begins with `tokens` in the queues and leaves there what the stream left; unchanged on errors. */
vta_status vta_cycle_time_from(const vta_config *c, const vta_cycle_options *o, const vta_insn *insns, uint32_t count,
                               uint64_t tokens[VTA_TOKEN_QUEUES], vta_cycle_report *out, vta_error *e);

#ifdef __cplusplus
}
#endif
#endif
