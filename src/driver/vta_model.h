/* SPDX-License-Identifier: Apache-2.0 */
/* A program with regions of VTA on a simulated accelerator: what belongs to the CPU is interpreted. */
#ifndef LATHE_DRIVER_VTA_MODEL_H
#define LATHE_DRIVER_VTA_MODEL_H
#include "driver/run_vta.h"
#include "prog/prog.h"

/* A layer of a region, on the cycle model. */
typedef struct vta_model_layer {
    const char *region, *name;
    uint64_t cycles;     /* of the layer alone, with a synchronisation of its own */
    uint64_t gemm;       /* operations of the matrix unit, one a cycle at best */
    uint64_t busy[3];    /* cycles in which load, compute, store worked */
    uint64_t overlapped; /* in which two of them did */
} vta_model_layer;

typedef struct vta_model_report {
    VEC(vta_model_layer) layers; /* with `cycle` */
    uint64_t cycles;             /* of all regions as they run; with `cycle` */
    uint64_t busy[3], overlapped;
    uint32_t regions;
} vta_model_report;

/* Runs m's main; in and out as prog_interpret. Each kernel of the target `vta` runs on a simulator of its own; with
 * o->cycle each of its layers once more alone. With `timeline` not NULL that of the largest region is written there. */
bool vta_model_run(compiler *c, const prog_module *m, void *const *in, void *const *out, const run_vta_options *o,
                   const char *timeline, vta_model_report *report);
#endif
