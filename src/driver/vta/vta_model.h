/* SPDX-License-Identifier: Apache-2.0 */
/* A program with regions of VTA on a simulated accelerator: what belongs to the CPU is interpreted. */
#ifndef LATHE_DRIVER_VTA_MODEL_H
#define LATHE_DRIVER_VTA_MODEL_H
#include "base/json_out.h"
#include "driver/vta/run_vta.h"
#include "prog/prog.h"

/* A region that ran: its layers are the stream's sections from `first` on. */
typedef struct vta_model_region {
    const char *name;
    uint32_t first, n_layers;
    uint64_t cycles;
} vta_model_region;

typedef struct vta_model_report {
    VEC(vta_model_region) regions;
    run_vta_stream stream; /* of all regions; with `cycle` */
} vta_model_report;

/* Runs m's main; in and out as prog_interpret. Each kernel of the target `vta` runs on a simulator of its own. With
 * `vectors` not NULL each leaves its stream, and what its memory holds before and behind it, in a folder there. */
bool vta_model_run(compiler *c, const prog_module *m, void *const *in, void *const *out, const run_vta_options *o,
                   const char *vectors, vta_model_report *report);

/* What each layer takes, for the device of c: a table, and an object of JSON in an open array. */
void vta_model_print(compiler *c, const vta_model_report *r, writer *out);
void vta_model_json(compiler *c, const vta_model_report *r, const char *file, json_out *j);
#endif
