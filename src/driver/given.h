/* SPDX-License-Identifier: Apache-2.0 */
/* Reports which of the schedules given with a model (te/records.h) matched no kernel, and why. */
#ifndef LATHE_DRIVER_GIVEN_H
#define LATHE_DRIVER_GIVEN_H
#include "driver/pipeline.h"

/* Warns of schedules for other processors than those n, and of schedules whose computation no kernel has, with the
 * nearest one that some kernel has. Records of a tuner may be of forms that were not taken, and of several models: of
 * these it tells only when none fits. */
void given_warn(compiler *c, const compile_options *o, uint32_t n, const struct target *targets,
                const compile_result *r);
/* Streaming made `after` of `before`, whose kernels in chains have schedules of their own now: a schedule that only
 * those had is used no more. */
void given_note_chains(te_records *records, const prog_module *before, const prog_module *after);
#endif
