/* tvmgen_default.h: what a program needs to run model "default". All memory is static: no function allocates.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef TVMGEN_DEFAULT_H
#define TVMGEN_DEFAULT_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define TVMGEN_DEFAULT_NUM_INPUTS  1
#define TVMGEN_DEFAULT_NUM_OUTPUTS 1

/* Bytes; exact. */
#define TVMGEN_DEFAULT_WORKSPACE_SIZE  8u
#define TVMGEN_DEFAULT_WORKSPACE_ALIGN 64u
#define TVMGEN_DEFAULT_CONST_SIZE      20u
#define TVMGEN_DEFAULT_CONST_ALIGN     64u
#define TVMGEN_DEFAULT_INPUT_SIZE      4u /* input: float32 [1] */
#define TVMGEN_DEFAULT_OUTPUT_SIZE     4u /* output: float32 [1] */

/* Define TVMGEN_DEFAULT_WORKSPACE_SECTION as a section name to place the static workspace, and
 * TVMGEN_DEFAULT_NO_STATIC_WORKSPACE to leave it (and with it tvmgen_default_run) out of the build. */

/* Tensors are dense, row-major, little-endian and aligned to their element. Inputs are only read. */
struct tvmgen_default_inputs {
    void *input;
};

struct tvmgen_default_outputs {
    void *output;
};

/* Runs the model once in the static workspace. One thread at a time. Returns 0 or a status (tvmrt_status_text). */
int32_t tvmgen_default_run(struct tvmgen_default_inputs *inputs, struct tvmgen_default_outputs *outputs);

/* The re-entrant way: tvmgen_default_instance.h defines the struct, so that it can be put anywhere, and its init
 * function. Call init once per instance, then run any number of times; different instances may run at the same time on
 * different threads. */
struct tvmgen_default_instance;
/* At most `max_workers` threads, the caller included, work on a run of this instance; 0: all of the engine's. */
int32_t tvmgen_default_instance_set_workers(struct tvmgen_default_instance *instance, uint32_t max_workers);
int32_t tvmgen_default_run_instance(struct tvmgen_default_instance *instance, struct tvmgen_default_inputs *inputs,
                                    struct tvmgen_default_outputs *outputs);

#ifdef __cplusplus
}
#endif

#endif
