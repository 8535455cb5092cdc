/* SPDX-License-Identifier: Apache-2.0 */
/* Lowered functions on simulated devices. Between the run-time and the device stands a driver that keeps each stream
 * with its timing, so that a call with several synchronisations has one timeline. */
#include "driver/vta/run_vta.h"

#include "base/file.h"
#include "target/vta/vta_text.h"

#include <stdlib.h>
#include <string.h>

/* --- a device that remembers --- */

typedef struct recorder {
    compiler *c;
    vta_device inner, device;
    uint32_t runs;
    VEC(vta_memory) memories;
    run_vta_stream all;
} recorder;

static void add_stages(vta_cycle_report *to, const vta_cycle_report *r)
{
    for (int i = 0; i < VTA_STAGE_COUNT; i++) {
        to->stage[i].busy += r->stage[i].busy;
        to->stage[i].wait_token += r->stage[i].wait_token;
        to->stage[i].wait_dram += r->stage[i].wait_dram;
        to->stage[i].wait_fetch += r->stage[i].wait_fetch;
        to->stage[i].idle += r->stage[i].idle;
    }
    to->dram_beats += r->dram_beats;
    to->lost_tokens += r->lost_tokens;
}

void run_vta_join(compiler *c, run_vta_stream *to, const vta_cycle_report *r, const vta_insn *insns, uint32_t count)
{
    const uint32_t before = to->insns.len;
    const uint64_t start = to->total.cycles;
    for (uint32_t i = 0; i < count; i++)
        vec_push(&c->mem, &to->insns, insns[i]);
    for (uint32_t i = 0; i < r->n_spans; i++) {
        vta_span s = r->spans[i];
        s.insn += before;
        s.ready += start;
        s.start += start;
        s.end += start;
        vec_push(&c->mem, &to->spans, s);
    }
    for (uint32_t i = 0; i < r->n_sections; i++)
        vec_push(&c->mem, &to->sections, ((vta_section){r->sections[i].name, r->sections[i].first + before}));
    add_stages(&to->total, r);
    to->total.cycles += r->cycles;
}

vta_cycle_report run_vta_whole(const run_vta_stream *s)
{
    vta_cycle_report r = s->total;
    r.spans = s->spans.data;
    r.n_spans = s->spans.len;
    r.sections = s->sections.data;
    r.n_sections = s->sections.len;
    return r;
}

/* The stream that ran last goes behind those before it, in instructions and in time. */
static void keep(recorder *k, const vta_insn *insns, uint32_t count)
{
    const vta_cycle_report *r = vta_cycle_last(&k->inner);
    if (r)
        run_vta_join(k->c, &k->all, r, insns, count);
}

static vta_status recorder_alloc(void *self, size_t bytes, bool cached, vta_memory *out, vta_error *e)
{
    recorder *k = self;
    vta_status s = k->inner.driver->alloc(k->inner.self, bytes, cached, out, e);
    if (s == VTA_OK)
        vec_push(&k->c->mem, &k->memories, *out);
    return s;
}

static void recorder_free(void *self, const vta_memory *m)
{
    recorder *k = self;
    for (uint32_t i = 0; i < k->memories.len; i++)
        if (k->memories.data[i].phys == m->phys) {
            k->memories.data[i] = vec_last(&k->memories);
            k->memories.len--;
            break;
        }
    k->inner.driver->free(k->inner.self, m);
}

static void recorder_reset(void *self)
{
    recorder *k = self;
    if (k->inner.driver->reset)
        k->inner.driver->reset(k->inner.self);
}

static vta_status recorder_run(void *self, uint64_t phys, uint32_t count, uint32_t wait_cycles, vta_error *e)
{
    recorder *k = self;
    vta_status s = k->inner.driver->run(k->inner.self, phys, count, wait_cycles, e);
    if (s != VTA_OK)
        return s;
    k->runs++;
    for (uint32_t i = 0; i < k->memories.len; i++) {
        const vta_memory *m = &k->memories.data[i];
        if (phys >= m->phys && phys - m->phys < m->bytes)
            keep(k, (const vta_insn *)(const void *)((const char *)m->host + (phys - m->phys)), count);
    }
    return VTA_OK;
}

static const vta_driver recorder_driver = {
    .name = "recorder", .alloc = recorder_alloc, .free = recorder_free, .run = recorder_run, .reset = recorder_reset};

static bool open_device(recorder *k, const run_vta_options *o)
{
    vta_error e = {VTA_OK, ""};
    vta_sim *sim = NULL;
    const vta_config *config = vta_text_config(k->c);
    vta_sim_options so = o->sim;
    if (so.dram_bytes == 0)
        so.dram_bytes = (uint64_t)1 << 32;
    vta_status s =
        o->cycle ? vta_cycle_device(config, &so, &o->model, &k->inner, &e) : vta_sim_create(config, &so, &sim, &e);
    if (s != VTA_OK)
        return vta_code_report(k->c, &e);
    if (!o->cycle)
        k->inner = vta_sim_device(sim);
    k->device = k->inner;
    k->device.driver = &recorder_driver;
    k->device.self = k;
    return true;
}

/* --- a call --- */

typedef struct vta_call {
    compiler *c;
    const tir_func *f;
    vta_context *x;
    vta_buffer *handles;
    recorder *device;
} vta_call;

static bool check(vta_call *r, vta_status s)
{
    vta_error e = {VTA_OK, ""};
    if (s == VTA_OK)
        return true;
    vta_context_last_error(r->x, &e);
    return vta_code_report(r->c, &e);
}

static void note_layer(void *ctx, const char *name, uint32_t queued)
{
    recorder *k = ctx;
    vec_push(&k->c->mem, &k->all.sections, ((vta_section){name, k->all.insns.len + queued}));
}

static bool run_function(vta_call *r, void *const *params)
{
    const tir_buffer *const *list;
    const uint32_t n = vta_code_buffers(r->c, r->f, &list);
    bool ok = true;
    r->handles = arena_array(&r->c->mem, vta_buffer, n + 1u);
    for (uint32_t i = 0; i < n && ok; i++) {
        const size_t bytes = vta_code_bytes(list[i]);
        ok = check(r, vta_buffer_alloc(r->x, bytes ? bytes : 1, &r->handles[i]));
        if (ok && i < r->f->n_params && bytes > 0) /* results too: what is not written stays as it is */
            ok = check(r, vta_buffer_write(r->x, r->handles[i], 0, params[i], bytes));
    }
    const vta_code_watch watch = {r->device, note_layer};
    ok = ok && vta_code_execute(r->c, r->f, r->x, r->handles, &watch);
    for (uint32_t i = r->f->n_inputs; i < r->f->n_params && ok; i++)
        ok = vta_code_bytes(list[i]) == 0 ||
             check(r, vta_buffer_read(r->x, r->handles[i], 0, params[i], vta_code_bytes(list[i])));
    return ok;
}

/* Tokens may cross a wait of the host's in the middle; at the end somebody forgot them. */
static void warn_of_tokens(vta_call *r)
{
    vta_tokens t;
    vta_left_tokens(r->x, &t);
    if (t.l2g || t.g2l || t.s2g || t.g2s)
        (void)diag_warning(&r->c->diags, DIAG_DATA, r->f->loc,
                           "%s: tokens are left at the end: %d from load and %d from store to compute, %d from compute "
                           "to load, %d to store",
                           r->f->name, (int)t.l2g, (int)t.s2g, (int)t.g2l, (int)t.g2s);
}

static bool run_context(recorder *k, const tir_func *f, void *const *params)
{
    const vta_context_options o = {.left_tokens = VTA_LEFT_IGNORE};
    vta_call r = {.c = k->c, .f = f, .device = k};
    vta_error e = {VTA_OK, ""};
    const size_t bytes = vta_context_bytes(&k->device, &o);
    void *memory = aligned_alloc(64, (bytes + 63) / 64 * 64);
    if (!memory)
        return diag_error(&k->c->diags, DIAG_ENVIRONMENT, f->loc, "%s: no memory for the accelerator's queue", f->name);
    bool ok = vta_context_init(memory, bytes, &k->device, &o, &r.x, &e) == VTA_OK || vta_code_report(k->c, &e);
    ok = ok && run_function(&r, params);
    if (ok)
        warn_of_tokens(&r);
    if (r.x)
        vta_context_destroy(r.x);
    free(memory);
    return ok;
}

static void take_report(recorder *k, run_vta_report *out)
{
    k->inner.driver->counters(k->inner.self, out->counters, sizeof out->counters);
    out->runs = k->runs;
    out->insns = k->all.insns.data;
    out->n_insns = k->all.insns.len;
    out->cycles = run_vta_whole(&k->all);
}

bool run_vta_call(compiler *c, const tir_func *f, void *const *params, const run_vta_options *o, run_vta_report *out)
{
    recorder k = {.c = c};
    if (out)
        *out = (run_vta_report){0};
    if (!open_device(&k, o))
        return false;
    bool ok = run_context(&k, f, params);
    if (ok && out)
        take_report(&k, out);
    vta_device_destroy(&k.inner);
    return ok;
}

/* --- as a model --- */

struct run_vta {
    const tir_func *f;
    const run_vta_options *options;
    run_vta_report *report;
};

static bool call_model(compiler *c, run_model *m)
{
    const struct run_vta *own = m->device;
    const tir_func *f = own->f;
    void **params = arena_array(&c->mem, void *, f->n_params + 1u);
    for (uint32_t i = 0; i < f->n_params; i++)
        params[i] = i < m->n_inputs ? m->in[i] : m->out[i - m->n_inputs];
    return run_vta_call(c, f, params, own->options, own->report);
}

bool run_open_vta(compiler *c, const prog_module *p, const tir_func *f, const run_vta_options *o,
                  run_vta_report *report, run_model *out)
{
    if (!run_open_interpreter(c, p, out))
        return false;
    out->prog = NULL;
    out->call_device = call_model;
    struct run_vta *own = arena_new(&c->mem, struct run_vta);
    *own = (struct run_vta){f, o, report};
    out->device = own;
    return true;
}

/* --- the timeline --- */

bool run_vta_write_timeline(compiler *c, const vta_config *config, const vta_cycle_report *r, const vta_insn *insns,
                            const char *path)
{
    vta_geometry g;
    vta_error e = {VTA_OK, ""};
    if (vta_config_check(config, &g, &e) != VTA_OK)
        return vta_code_report(c, &e);
    const size_t end = strlen(path);
    const bool svg = end >= 4 && strcmp(path + end - 4, ".svg") == 0;
    size_t (*const print)(const vta_geometry *, const vta_cycle_report *, const vta_insn *, char *, size_t) =
        svg ? vta_cycle_svg : vta_cycle_chrome_trace;
    const size_t n = print(&g, r, insns, NULL, 0);
    char *text = arena_array(&c->mem, char, n + 1);
    print(&g, r, insns, text, n + 1);
    return compiler_write_file(c, path, text, n);
}

bool run_vta_timeline(compiler *c, const run_vta_report *r, const char *path)
{
    return run_vta_write_timeline(c, vta_text_config(c), &r->cycles, r->insns, path);
}

void run_vta_cycles_json(json_out *j, const vta_cycle_report *r)
{
    static const char *const units[VTA_STAGE_COUNT] = {"fetch", "load", "compute", "store"};
    json_out_uint(j, "cycles", r->cycles);
    json_out_uint(j, "dram_beats", r->dram_beats);
    json_out_uint(j, "lost_tokens", r->lost_tokens);
    for (int i = 0; i < VTA_STAGE_COUNT; i++) {
        const vta_stage_cycles *s = &r->stage[i];
        json_out_object(j, units[i]);
        json_out_uint(j, "busy", s->busy);
        json_out_uint(j, "wait_token", s->wait_token);
        json_out_uint(j, "wait_dram", s->wait_dram);
        json_out_uint(j, "wait_fetch", s->wait_fetch);
        json_out_uint(j, "idle", s->idle);
        json_out_end(j);
    }
}
