/* SPDX-License-Identifier: Apache-2.0 */
/* A lowered function (target/vta/code/vta_code.h) on a simulated accelerator of its own: data in, data out, what it
 * took. */
#ifndef LATHE_DRIVER_RUN_VTA_H
#define LATHE_DRIVER_RUN_VTA_H
#include "base/json_out.h"
#include "target/vta/code/vta_code.h"
#include "driver/run.h"

typedef struct run_vta_options {
    bool cycle; /* on the cycle model, too */
    vta_sim_options sim;
    vta_cycle_options model;
} run_vta_options;

/* Of all synchronisations of a call, one behind the other. */
typedef struct run_vta_report {
    char counters[1024]; /* JSON, the published keys first */
    uint32_t runs;       /* synchronisations that ran something */
    uint32_t n_insns;
    vta_insn *insns;         /* with `cycle`: what ran; in the compiler's memory, as the spans */
    vta_cycle_report cycles; /* with `cycle`; not to be released */
} run_vta_report;

/* Streams that ran, one behind the other, with the layers in them. */
typedef struct run_vta_stream {
    VEC(vta_insn) insns;
    VEC(vta_span) spans;
    VEC(vta_section) sections;
    vta_cycle_report total; /* without spans and sections */
} run_vta_stream;

/* Puts a stream behind those before it, in instructions and in time. */
void run_vta_join(compiler *c, run_vta_stream *to, const vta_cycle_report *r, const vta_insn *insns, uint32_t count);
/* One report of them all; it holds on to s, and is not to be released. */
vta_cycle_report run_vta_whole(const run_vta_stream *s);

/* params[i]: bytes of parameter i of f; inputs are read, the others are written. `out` may be NULL. */
bool run_vta_call(compiler *c, const tir_func *f, void *const *params, const run_vta_options *o, run_vta_report *out);
/* f, whose parameters are the inputs and results of p's main, as what run and verify call; the report is of the last
 * call. */
bool run_open_vta(compiler *c, const prog_module *p, const tir_func *f, const run_vta_options *o,
                  run_vta_report *report, run_model *out);
/* The timeline of a report with cycles: a picture where the name ends in .svg, else Chrome trace events. */
bool run_vta_timeline(compiler *c, const run_vta_report *r, const char *path);
/* The same of any stream's report. */
bool run_vta_write_timeline(compiler *c, const vta_config *config, const vta_cycle_report *r, const vta_insn *insns,
                            const char *path);
/* The cycles of each unit, as members of the open object. */
void run_vta_cycles_json(json_out *j, const vta_cycle_report *r);
#endif
