/* SPDX-License-Identifier: Apache-2.0 */
/* What the layers of a model take on the accelerator: as a table and as JSON. */
#include "base/json_out.h"
#include "driver/vta/vta_model.h"
#include "target/vta/vta_text.h"

typedef struct layers {
    compiler *c;
    vta_geometry g;
    vta_cycle_report whole;
    const vta_insn *insns;
} layers;

static bool open_layers(compiler *c, const vta_model_report *r, layers *out)
{
    vta_error e = {VTA_OK, ""};
    *out = (layers){.c = c, .whole = run_vta_whole(&r->stream), .insns = r->stream.insns.data};
    return vta_config_check(vta_text_config(c), &out->g, &e) == VTA_OK;
}

static double percent(uint64_t part, uint64_t all)
{
    return all ? 100.0 * (double)part / (double)all : 0;
}

static const char *const unit_names[VTA_STAGE_COUNT] = {"fetch", "load", "compute", "store"};

static uint64_t read_bytes(const vta_section_cycles *s)
{
    uint64_t sum = 0;
    for (int m = 0; m < VTA_MEM_COUNT; m++)
        sum += m == VTA_MEM_OUT ? 0 : s->bytes[m];
    return sum;
}

/* All that a row has, behind the name. Waiting: load for a token of compute, or for the port; and so on. */
static void print_row(writer *w, const char *name, const vta_section_cycles *s)
{
    const uint64_t cycles = s->end - s->start;
    w_fmt(w, "| %s | %llu | %llu | %.1f | %.1f | %.1f | %.1f ", name, (unsigned long long)cycles,
          (unsigned long long)s->gemm, percent(s->busy[VTA_STAGE_LOAD], cycles),
          percent(s->busy[VTA_STAGE_COMPUTE], cycles), percent(s->busy[VTA_STAGE_STORE], cycles),
          percent(s->two, cycles));
    w_fmt(w, "| %.1f, %.1f | %.1f, %.1f, %.1f | %.1f, %.1f ", percent(s->wait_token[VTA_COMPUTE_TO_LOAD], cycles),
          percent(s->wait_port[VTA_STAGE_LOAD], cycles), percent(s->wait_token[VTA_LOAD_TO_COMPUTE], cycles),
          percent(s->wait_token[VTA_STORE_TO_COMPUTE], cycles), percent(s->wait_port[VTA_STAGE_COMPUTE], cycles),
          percent(s->wait_token[VTA_COMPUTE_TO_STORE], cycles), percent(s->wait_port[VTA_STAGE_STORE], cycles));
    w_fmt(w, "| %llu | %llu | %llu | %s, %.0f %% |\n", (unsigned long long)read_bytes(s),
          (unsigned long long)s->bytes[VTA_MEM_OUT], (unsigned long long)s->insns, unit_names[s->bound],
          percent(s->least, cycles));
}

void vta_model_print(compiler *c, const vta_model_report *r, writer *out)
{
    layers l;
    vta_section_cycles s;
    if (!open_layers(c, r, &l))
        return;
    w_str(out, "| layer | cycles | GEMM operations | load % | compute % | store % | two at once % "
               "| load waits for compute, port % | compute waits for load, store, port % "
               "| store waits for compute, port % | bytes read | bytes written | instructions | bound |\n"
               "|---|---|---|---|---|---|---|---|---|---|---|---|---|---|\n");
    for (uint32_t i = 0; i < l.whole.n_sections; i++) {
        vta_cycle_section(&l.g, &l.whole, l.insns, i, &s);
        print_row(out, l.whole.sections[i].name, &s);
    }
    l.whole.n_sections = 0; /* the whole is one */
    vta_cycle_section(&l.g, &l.whole, l.insns, 0, &s);
    print_row(out, "the model", &s);
}

static void put_section(json_out *j, const vta_section_cycles *s)
{
    static const char *const queues[VTA_TOKEN_QUEUES] = {"load_to_compute", "compute_to_load", "compute_to_store",
                                                         "store_to_compute"};
    static const char *const memories[VTA_MEM_COUNT] = {"uop", "wgt", "inp", "acc", "out", "acc8"};
    json_out_uint(j, "start", s->start);
    json_out_uint(j, "cycles", s->end - s->start);
    json_out_uint(j, "instructions", s->insns);
    json_out_uint(j, "gemm_operations", s->gemm);
    json_out_uint(j, "alu_operations", s->alu);
    json_out_object(j, "busy");
    for (int i = VTA_STAGE_LOAD; i < VTA_STAGE_COUNT; i++)
        json_out_uint(j, unit_names[i], s->busy[i]);
    json_out_uint(j, "two_at_once", s->two);
    json_out_end(j);
    json_out_object(j, "wait_token");
    for (int i = 0; i < VTA_TOKEN_QUEUES; i++)
        json_out_uint(j, queues[i], s->wait_token[i]);
    json_out_end(j);
    json_out_object(j, "wait_port");
    for (int i = VTA_STAGE_LOAD; i < VTA_STAGE_COUNT; i++)
        json_out_uint(j, unit_names[i], s->wait_port[i]);
    json_out_end(j);
    json_out_object(j, "bytes");
    for (int i = 0; i < VTA_MEM_COUNT; i++)
        json_out_uint(j, memories[i], s->bytes[i]);
    json_out_end(j);
    json_out_text(j, "bound", unit_names[s->bound]);
    json_out_uint(j, "least_cycles", s->least);
}

void vta_model_json(compiler *c, const vta_model_report *r, const char *file, json_out *j)
{
    layers l;
    vta_section_cycles s;
    if (!open_layers(c, r, &l))
        return;
    json_out_object(j, NULL);
    json_out_text(j, "model", file);
    json_out_text(j, "config", vta_text_name(c));
    json_out_uint(j, "cycles", l.whole.cycles);
    json_out_array(j, "regions");
    for (uint32_t i = 0; i < r->regions.len; i++) {
        const vta_model_region *region = &r->regions.data[i];
        json_out_object(j, NULL);
        json_out_text(j, "name", region->name);
        json_out_uint(j, "cycles", region->cycles);
        json_out_array(j, "layers");
        for (uint32_t k = region->first; k < region->first + region->n_layers; k++) {
            vta_cycle_section(&l.g, &l.whole, l.insns, k, &s);
            json_out_object(j, NULL);
            json_out_text(j, "name", l.whole.sections[k].name);
            put_section(j, &s);
            json_out_end(j);
        }
        json_out_end(j);
        json_out_end(j);
    }
    json_out_end(j);
    json_out_end(j);
}
