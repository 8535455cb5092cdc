/* SPDX-License-Identifier: Apache-2.0 */
/* What a partition has to tell of itself: which regions run on which target, and why every other operator stayed. */
#ifndef LATHE_TYPE_OFFLOAD_H
#define LATHE_TYPE_OFFLOAD_H
#include "base/ptr_map.h"
#include "base/vec.h"

/* A function that a target makes. */
typedef struct offload_region {
    const char *name, *target;
    const char *on; /* who runs it in the end: another one where the target declined its code; NULL: not known yet */
    const char *why;        /* the target declined; NULL: it did not */
    const char *operations; /* its patterns and operators: "acme.conv2d_relu, acme.add" */
    uint32_t n_nodes;       /* of the graph */
    uint64_t work;          /* multiply-adds, or elements where nothing is multiplied; UINT64_MAX: nobody knows */
} offload_region;

typedef struct offload_stay {
    const char *node, *op; /* its name in the model, or of its result; its operator */
    const char *why;
} offload_stay;

typedef struct offload_log {
    VEC(offload_region) regions;
    VEC(offload_stay) stayed;
    ptr_map reasons; /* nodes that a pattern refused -> position in `why` */
    VEC(const char *) why;
    VEC(uint32_t) fitted; /* how many nodes had fitted until then: the best one counts */
} offload_log;
#endif
