/* SPDX-License-Identifier: Apache-2.0 */
/* Portable modules as what run, verify, bench and inspect take (run.h). */
#ifndef LATHE_DRIVER_RUN_MODULE_H
#define LATHE_DRIVER_RUN_MODULE_H
#include "driver/run.h"

typedef struct run_module_options {
    uint32_t workers; /* 0: as many as the machine has */
    bool no_jit, trace;
    const char *keep_sources, *meta; /* NULL: none */
} run_module_options;

/* A module file, loaded and initialised; its kernels are compiled at the first call. run_close is due after success and
 * after failure. */
bool run_open_module(compiler *c, const char *path, const run_module_options *o, run_model *out);
/* Once, on the inputs of m; outputs lie in the machine's memory until the next call. */
bool run_call_module(compiler *c, run_model *m);
bool run_set_module_workers(compiler *c, run_model *m, uint32_t workers);
void run_close_module(run_model *m);
#endif
