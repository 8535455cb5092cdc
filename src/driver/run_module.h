/* SPDX-License-Identifier: Apache-2.0 */
/* Portable modules as what run, verify, bench and inspect take (run.h). */
#ifndef LATHE_DRIVER_RUN_MODULE_H
#define LATHE_DRIVER_RUN_MODULE_H
#include "driver/run.h"
#include "lathe_vm.h"

typedef struct run_module_options {
    uint32_t workers; /* 0: as many as the machine has */
    bool no_jit, trace;
    bool only_look; /* the report is read, and nothing runs: the module cannot be called */
    const char *keep_sources, *meta; /* NULL: none */
} run_module_options;

/* A module file, loaded and initialised; its kernels are compiled at the first call. Outputs of a call lie in the
 * machine's memory until the next one. run_close is due after success and after failure. */
bool run_open_module(compiler *c, const char *path, const run_module_options *o, run_model *out);
/* Types of elements as DLPack counts them; false: one that is not known. */
lathe_dtype run_module_to_dlpack(dtype dt);
bool run_module_from_dlpack(lathe_dtype d, dtype *out);
#endif
