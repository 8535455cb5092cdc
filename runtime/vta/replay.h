/* replay.h: what capture.c needs of replay.c.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef VTA_REPLAY_FIELDS_H
#define VTA_REPLAY_FIELDS_H

#include "vta_replay.h"

/* The field of transfers that fills this member of vta_fields. */
vta_field vta_replay_field(const vta_geometry *g, size_t member);
/* Sets the address of a transfer, in elements. False when the field `dram_base` does not hold it. */
bool vta_replay_set_address(const vta_field *dram_base, vta_insn *insn, uint64_t address);

#endif
