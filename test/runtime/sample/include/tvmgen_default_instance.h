/* tvmgen_default_instance.h: the storage of one instance of model "default", for programs that run several. The compile
 * needs the folder of tvmrt.h on its include path. Members belong to the package.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef TVMGEN_DEFAULT_INSTANCE_H
#define TVMGEN_DEFAULT_INSTANCE_H

#include "tvmgen_default.h"
#include "tvmrt.h"

#define TVMGEN_DEFAULT_NUM_OPS  6
#define TVMGEN_DEFAULT_NUM_ARGS 18 /* pointers to inputs and outputs of all operators */

struct tvmgen_default_instance {
    tvmrt_context_t context;
    const void *inputs[TVMGEN_DEFAULT_NUM_INPUTS];
    void *outputs[TVMGEN_DEFAULT_NUM_OUTPUTS];
    tvmrt_op_exec_t op_execs[TVMGEN_DEFAULT_NUM_OPS];
    void *args[TVMGEN_DEFAULT_NUM_ARGS];
};

#endif
