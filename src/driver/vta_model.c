/* SPDX-License-Identifier: Apache-2.0 */
/* Programs with regions of VTA on simulators, and what their layers take there. */
#include "driver/vta_model.h"

#include "tir/build.h"
#include "tir/facts.h"
#include "tir/walk.h"

#include <stdlib.h>
#include <string.h>

typedef struct session {
    compiler *c;
    const run_vta_options *o;
    const char *timeline;
    uint64_t largest; /* cycles of the region whose timeline is written */
    vta_model_report *report;
} session;

/* --- what a stream took --- */

static int by_time(const void *a, const void *b)
{
    const int64_t *x = a, *y = b;
    return x[0] != y[0] ? (x[0] > y[0]) - (x[0] < y[0]) : (x[1] > y[1]) - (x[1] < y[1]);
}

/* Cycles in which two units at least are at work: their spans as beginnings and ends in order. */
static uint64_t overlap_of(compiler *c, const vta_cycle_report *r)
{
    int64_t depth = 0, since = 0;
    int64_t(*events)[2] = (int64_t(*)[2])arena_array(&c->mem, int64_t, 4 * (size_t)r->n_spans + 2);
    size_t n = 0;
    uint64_t sum = 0;
    for (uint32_t i = 0; i < r->n_spans; i++) {
        const vta_span *s = &r->spans[i];
        if (s->stage == 0 || s->end <= s->start)
            continue;
        events[n][0] = (int64_t)s->start, events[n++][1] = 1;
        events[n][0] = (int64_t)s->end, events[n++][1] = -1;
    }
    qsort(events, n, sizeof *events, by_time);
    for (size_t i = 0; i < n; i++) {
        sum += depth >= 2 ? (uint64_t)(events[i][0] - since) : 0;
        since = events[i][0];
        depth += events[i][1];
    }
    return sum;
}

static uint64_t counter(const run_vta_report *r, const char *name)
{
    const char *at = strstr(r->counters, name);
    return at ? strtoull(at + strlen(name) + strspn(at + strlen(name), "\": "), NULL, 10) : 0;
}

static void add_busy(const vta_cycle_report *r, uint64_t busy[3])
{
    for (int i = 0; i < 3; i++)
        busy[i] += r->stage[1 + i].busy;
}

/* --- layers alone --- */

typedef struct layer_search {
    compiler *c;
    VEC(tir_stmt *) found;
} layer_search;

static void find_layer(void *ctx, tir_stmt *s)
{
    layer_search *l = ctx;
    if (s->kind == TIR_ATTR && strcmp(s->key, "vta_layer") == 0)
        vec_push(&l->c->mem, &l->found, s);
}

/* f with one layer of it in all of its memory. */
static tir_func *layer_alone(compiler *c, const tir_func *f, tir_stmt *layer)
{
    const tir_scratch *scratch = NULL;
    uint32_t n = tir_find_scratch(c, f, &scratch);
    tir_func *alone = arena_new(&c->mem, tir_func);
    tir_stmt *sync = tir_evaluate(c, tir_extern(c, "tir.vta.coproc_sync", tir_scalar(DT_I32), 0, NULL));
    *alone = *f;
    alone->body = tir_seq(c, 2, (tir_stmt *const[]){layer->body, sync});
    for (uint32_t i = n; i-- > 0;)
        alone->body = tir_allocate(c, scratch[i].buffer, alone->body);
    return alone;
}

static bool measure_layers(session *s, const tir_func *f, void *const *params)
{
    compiler *c = s->c;
    layer_search l = {.c = c};
    void **copies = arena_array(&c->mem, void *, f->n_params + 1u);
    for (uint32_t i = 0; i < f->n_params; i++) { /* results of the layers alone are nothing that anyone reads */
        size_t bytes = vta_code_bytes(f->params[i]);
        copies[i] = i < f->n_inputs ? params[i] : arena_alloc(&c->mem, bytes + 1, 64);
    }
    tir_visit_stmt(f->body, find_layer, NULL, &l);
    for (uint32_t i = 0; i < l.found.len; i++) {
        run_vta_report *r = arena_new(&c->mem, run_vta_report);
        if (!run_vta_call(c, layer_alone(c, f, l.found.data[i]), copies, s->o, r))
            return false;
        vta_model_layer layer = {.region = f->name, .name = l.found.data[i]->node};
        layer.cycles = r->cycles.cycles;
        layer.gemm = counter(r, "gemm_counter");
        layer.overlapped = overlap_of(c, &r->cycles);
        add_busy(&r->cycles, layer.busy);
        vec_push(&c->mem, &s->report->layers, layer);
    }
    return true;
}

/* --- the model --- */

static bool run_region(void *ctx, const prog_step *step, void *const *params, bool *out_done)
{
    session *s = ctx;
    const prog_kernel *k = step->kernel;
    const tir_func *f = k->device ? k->device : k->loops;
    if (strcmp(k->target->name, "vta") != 0 || !f || !vta_code_on_device(f))
        return true;
    run_vta_report *r = arena_new(&s->c->mem, run_vta_report);
    *out_done = true;
    s->report->regions++;
    if (!run_vta_call(s->c, f, params, s->o, r))
        return false;
    if (!s->o->cycle)
        return true;
    s->report->cycles += r->cycles.cycles;
    s->report->overlapped += overlap_of(s->c, &r->cycles);
    add_busy(&r->cycles, s->report->busy);
    if (s->timeline && r->cycles.cycles >= s->largest) {
        s->largest = r->cycles.cycles;
        if (!run_vta_timeline(s->c, r, s->timeline))
            return false;
    }
    return measure_layers(s, f, params);
}

bool vta_model_run(compiler *c, const prog_module *m, void *const *in, void *const *out, const run_vta_options *o,
                   const char *timeline, vta_model_report *report)
{
    session s = {.c = c, .o = o, .timeline = timeline, .report = report};
    prog_runner runner = {&s, run_region};
    *report = (vta_model_report){.regions = 0};
    return prog_interpret_by(c, m, in, out, &runner);
}
