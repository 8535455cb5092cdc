/* SPDX-License-Identifier: Apache-2.0 */
/* Runs programs with regions for VTA on simulators. The regions run one after the other, and one report covers all of
 * them. */
#include "driver/vta/vta_model.h"

#include "driver/vta/vta_vectors.h"

#include <string.h>

typedef struct session {
    compiler *c;
    const run_vta_options *o;
    const char *vectors;
    vta_model_report *report;
} session;

static bool run_region(void *ctx, const prog_step *step, void *const *params, bool *out_done)
{
    session *s = ctx;
    compiler *c = s->c;
    const prog_kernel *k = step->kernel;
    const tir_func *f = k->device ? k->device : k->loops;
    if (strcmp(k->target->name, "vta") != 0 || !f || !vta_code_on_device(f))
        return true;
    run_vta_report *r = arena_new(&c->mem, run_vta_report);
    vta_model_region region = {.name = f->name, .first = s->report->stream.sections.len};
    *out_done = true;
    if (s->vectors && !vta_vectors_write(c, f, params, s->vectors))
        return false;
    if (!run_vta_call(c, f, params, s->o, r))
        return false;
    if (s->o->cycle)
        run_vta_join(c, &s->report->stream, &r->cycles, r->insns, r->n_insns);
    region.n_layers = s->report->stream.sections.len - region.first;
    region.cycles = r->cycles.cycles;
    vec_push(&c->mem, &s->report->regions, region);
    return true;
}

bool vta_model_run(compiler *c, const prog_module *m, void *const *in, void *const *out, const run_vta_options *o,
                   const char *vectors, vta_model_report *report)
{
    session s = {.c = c, .o = o, .vectors = vectors, .report = report};
    prog_runner runner = {&s, run_region};
    *report = (vta_model_report){.stream.total.cycles = 0};
    return prog_interpret_by(c, m, in, out, &runner);
}
