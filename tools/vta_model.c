/* SPDX-License-Identifier: Apache-2.0 */
/* lathe vta model: quantised models on the simulated accelerator, the CPU's part interpreted, compared bit for bit with
 * the interpreter, and what their layers take. */
#include "cmd_vta.h"

#include "base/json_out.h"
#include "driver/vta/vta_model.h"
#include "api/session.h"
#include "target/vta/vta_text.h"

#include <stdlib.h>
#include <string.h>

/* Integers of all values, floats near 0. */
static void fill(run_tensor *t, uint64_t *state)
{
    tensor_file_random(t, state, 255);
    for (int64_t i = 0; dtype_is_float(t->dt) && i < t->count; i++)
        dtype_store_f64(t->dt, t->data + (size_t)i * dtype_bytes(t->dt),
                        dtype_load_f64(t->dt, t->data + (size_t)i * dtype_bytes(t->dt)) * 2);
}

/* Where nothing ran on the accelerator, nothing was compared. */
static bool has_regions(ask *x, const char *file, const vta_model_report *r)
{
    bool offered = ask_has(x, OPT_OFFLOAD);
    if (r->regions.len > 0)
        return true;
    diag_error(&x->c->diags, offered ? DIAG_UNSUPPORTED : DIAG_USAGE, src_loc_none(), "%s: no part of it runs on VTA",
               file);
    if (offered)
        diag_hint(&x->c->diags, "it takes quantized layers with scales that are powers of two: lathe quantize %s "
                                "--for vta; lathe inspect with the same options says why the rest stayed", file);
    else
        diag_hint(&x->c->diags, "--offload vta gives it the parts that it can run");
    return false;
}

/* What the accelerator gave beside what the interpreter gives, bit for bit. */
static bool compare(ask *x, const char *file, const run_model *m, uint8_t *const *got, const vta_model_report *r)
{
    for (uint32_t i = 0; i < m->n_outputs; i++) {
        const run_tensor *t = &m->outputs[i];
        size_t size = dtype_bytes(t->dt);
        for (int64_t k = 0; k < t->count; k++) {
            const uint8_t *want = t->data + (size_t)k * size;
            if (memcmp(want, got[i] + (size_t)k * size, size) == 0)
                continue;
            return diag_error(&x->c->diags, DIAG_DATA, src_loc_none(),
                              "%s: element %lld of '%s' is %g on the accelerator and %g by the interpreter", file,
                              (long long)k, t->name, dtype_load_f64(t->dt, got[i] + (size_t)k * size),
                              dtype_load_f64(t->dt, want));
        }
    }
    if (ask_has(x, OPT_JSON))
        return true;
    const uint64_t cycles = r->stream.total.cycles;
    w_fmt(&x->out, "%s: %u region%s on VTA, all outputs equal", file, r->regions.len, r->regions.len == 1 ? "" : "s");
    w_fmt(&x->out, cycles ? ", %llu cycles\n" : "\n", (unsigned long long)cycles);
    return true;
}

static bool run_model_on(ask *x, const char *file, run_model *m, const prog_module *p, uint64_t *state,
                         json_out *models)
{
    compiler *c = x->c;
    const char *timeline = ask_get(x, OPT_TIMELINE, NULL);
    run_vta_options o = {.cycle = ask_has(x, OPT_CYCLE) || timeline || ask_has(x, OPT_JSON)};
    vta_model_report report;
    void **in = arena_array(&c->mem, void *, m->n_inputs + 1u), **out = arena_array(&c->mem, void *, m->n_outputs + 1u);
    for (uint32_t i = 0; i < m->n_inputs; i++) {
        fill(&m->inputs[i], state);
        in[i] = m->inputs[i].data;
    }
    for (uint32_t i = 0; i < m->n_outputs; i++)
        out[i] = arena_alloc(&c->mem, m->outputs[i].bytes + 1, 64);
    if (!ask_cycle_model(x, &o.model) ||
        !vta_model_run(c, p, in, out, &o, ask_get(x, OPT_DUMP_VECTORS, NULL), &report) || !run_call(c, m) ||
        !has_regions(x, file, &report) || !compare(x, file, m, (uint8_t *const *)(void *)out, &report))
        return false;
    if (ask_has(x, OPT_JSON))
        vta_model_json(c, &report, file, models);
    else if (ask_has(x, OPT_CYCLE))
        vta_model_print(c, &report, &x->out);
    const vta_cycle_report whole = run_vta_whole(&report.stream);
    return !timeline || run_vta_write_timeline(c, vta_text_config(c), &whole, report.stream.insns.data, timeline);
}

static bool on_file(ask *x, const char *file, uint64_t *state, json_out *models)
{
    compile_options o;
    compile_result r;
    run_model m = {0};
    if (!ask_compile_options(x, true, &o))
        return false;
    o.verb = "vta model";
    compile_set_emit(&o, EMIT_LOOPS);
    if (!pipeline_compile(x->c, file, &o, &r))
        return false;
    bool ok = run_open_interpreter(x->c, r.prog, &m) && run_size_inputs(x->c, &m);
    if (ok && m.n_extents > 0)
        ok = diag_error(&x->c->diags, DIAG_UNSUPPORTED, src_loc_none(), "%s has extents that a run states; fix them "
                        "with --shape or --dim", file);
    ok = ok && run_model_on(x, file, &m, r.prog, state, models);
    run_close(&m);
    return ok;
}

bool vta_model(ask *x)
{
    long seed = 0;
    bool ok = true;
    if (x->args.len < 2)
        return ask_usage_error(x, "for example: lathe vta model q.onnx --offload vta",
                               "'lathe vta model' needs a model");
    if (!ask_number(x, OPT_SEED, 0, 2147483647, 0, &seed))
        return false;
    const bool timed = ask_has(x, OPT_CYCLE) || ask_has(x, OPT_TIMELINE) || ask_has(x, OPT_JSON);
    if (!timed && (ask_has(x, OPT_PROFILE) || ask_has(x, OPT_BUS_BITS) || ask_has(x, OPT_LATENCY)))
        return ask_usage_error(x, "add --cycle, --json or --timeline",
                               "--profile, --bus-bits and --latency are for the cycle model");
    writer text;
    writer_init(&text, &x->c->mem);
    json_out j = json_out_begin(&text, JSON_OUT_LINE);
    json_out_object(&j, NULL);
    json_out_array(&j, "models");
    for (uint32_t i = 1; i < x->args.len; i++) {
        uint64_t state = (uint64_t)seed + 1;
        ok = on_file(x, x->args.data[i], &state, &j) && ok;
    }
    json_out_end(&j);
    json_out_end(&j);
    if (ask_has(x, OPT_JSON))
        w_line(&x->out, "%s", text.data);
    return ok;
}
