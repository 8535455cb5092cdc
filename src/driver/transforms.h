/* SPDX-License-Identifier: Apache-2.0 */
/* Which layout transforms of a compiled model are dear beside the layer that they serve, by the estimates of pages. */
#ifndef LATHE_DRIVER_TRANSFORMS_H
#define LATHE_DRIVER_TRANSFORMS_H
#include "driver/pipeline.h"

typedef struct transforms_found {
    uint32_t n;
    double share;      /* of the work of a run: 0 to 1 */
    const char *names; /* of their operators, each with its share; "": there are none */
} transforms_found;

/* Those that cost more than a tenth of their layer. In a graph that was read as a program nobody knows them. */
transforms_found transforms_dear(compiler *c, const compile_result *r);
#endif
