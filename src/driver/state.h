/* SPDX-License-Identifier: Apache-2.0 */
/* --state OUT=IN: an output of the model that is an input of its next call becomes memory of the instance. */
#ifndef LATHE_DRIVER_STATE_H
#define LATHE_DRIVER_STATE_H
#include "driver/pipeline.h"

/* Marks the states that the options name; false after a diagnostic. out: as many pairs; NULL: nobody asks. */
bool state_mark(compiler *c, graph_module *m, const compile_options *o, const state_pair **out);
#endif
