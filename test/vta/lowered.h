/* lowered.h: what the compiler's VTA passes make, run on a simulated device.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef VTA_TEST_LOWERED_H
#define VTA_TEST_LOWERED_H
#include "driver/run_vta.h"
#include "te/te.h"

/* Applies the schedule (text) and runs passes ("vta", or tir_plain_passes). false after a diagnostic. */
bool lowered_make(te_graph *g, const char *schedule, const char *passes, tir_func **out);
/* Parameters of f in c's memory: inputs hold numbers that are the same every time, outputs a pattern. */
void **lowered_params(compiler *c, const tir_func *f);
size_t lowered_bytes(const tir_buffer *b);
/* Runs f on a device of c's configuration: inputs from params, outputs into them. With a report the cycle model runs
 * as well. Fails the test when a call is refused. */
void lowered_run(compiler *c, const tir_func *f, void *const *params, run_vta_report *report);
#endif
