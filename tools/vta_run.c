/* SPDX-License-Identifier: Apache-2.0 */
/* lathe vta run and trace: a program on the functional simulator, with its buffers from and to files; and its timing.
 */
#include "cmd_vta.h"

#include "base/file.h"
#include "base/json_out.h"
#include "driver/run_vta.h"

#include <stdio.h>
#include <string.h>

bool vta_report(cli *x, const vta_error *e)
{
    return vta_code_report(x->c, e);
}

/* A program on a simulator: bindings[0] is the micro-op image, then the buffers. */
typedef struct loaded {
    const vta_program *program;
    vta_sim *sim;
    vta_memory *bindings;
    vta_insn *insns;
} loaded;

static bool make_buffers(cli *x, loaded *l)
{
    const vta_program *p = l->program;
    vta_dram *dram = vta_sim_dram(l->sim);
    vta_error e;
    l->bindings = arena_array(&x->c->mem, vta_memory, p->n_buffers + 1u);
    l->insns = arena_array(&x->c->mem, vta_insn, p->n_insns + 1u);
    for (uint32_t i = 0; i <= p->n_buffers; i++) {
        size_t bytes = i > 0 ? (size_t)p->buffers[i - 1].bytes : p->n_uops * sizeof *p->uops;
        if (vta_dram_alloc(dram, bytes ? bytes : 1, &l->bindings[i], &e) != VTA_OK)
            return vta_report(x, &e);
    }
    if (p->n_uops > 0)
        memcpy(l->bindings[0].host, p->uops, p->n_uops * sizeof *p->uops);
    return vta_program_link(p, l->bindings, l->insns, &e) == VTA_OK || vta_report(x, &e);
}

/* "NAME=FILE": the buffer's number, and where the file's name begins; -1 with an error. */
static int64_t find_buffer(cli *x, const loaded *l, const char *option, const char *text, const char **file)
{
    const char *equals = strchr(text, '=');
    for (uint32_t i = 0; equals && i < l->program->n_buffers; i++) {
        const char *name = l->program->buffers[i].name;
        if (strlen(name) == (size_t)(equals - text) && memcmp(name, text, strlen(name)) == 0) {
            *file = equals + 1;
            return i;
        }
    }
    cli_usage_error(x, "as in --dram-in x=x.bin; `buffer` lines in the program name them",
                    "--%s: '%.100s' names no buffer of the program", option, text);
    return -1;
}

static bool read_inputs(cli *x, loaded *l)
{
    const cli_strings *in = &x->values[OPT_DRAM_IN];
    for (uint32_t i = 0; i < in->len; i++) {
        const char *file;
        span s;
        int64_t b = find_buffer(x, l, "dram-in", in->data[i], &file);
        if (b < 0 || !compiler_read_file(x->c, file, &s))
            return false;
        if (s.len != l->program->buffers[b].bytes)
            return diag_error(&x->c->diags, DIAG_DATA, src_loc_none(), "%s has %zu bytes, buffer '%s' has %llu", file,
                              s.len, l->program->buffers[b].name, (unsigned long long)l->program->buffers[b].bytes);
        memcpy(l->bindings[b + 1].host, s.data, s.len);
    }
    return true;
}

static bool write_outputs(cli *x, const loaded *l)
{
    const cli_strings *out = &x->values[OPT_DRAM_OUT];
    for (uint32_t i = 0; i < out->len; i++) {
        const char *file;
        int64_t b = find_buffer(x, l, "dram-out", out->data[i], &file);
        if (b < 0 || !compiler_write_file(x->c, file, l->bindings[b + 1].host, (size_t)l->program->buffers[b].bytes))
            return false;
    }
    return true;
}

/* --- vectors: what a hardware test bench needs to repeat the run -------------------------------------------------- */

static bool dump(cli *x, const char *dir, const char *name, const char *suffix, const void *data, size_t bytes)
{
    const char *file = arena_printf(&x->c->mem, "%s/%s%s", dir, name, suffix);
    return compiler_write_file(x->c, file, data, bytes);
}

static bool dump_buffers(cli *x, const loaded *l, const char *suffix)
{
    const char *dir = cli_get(x, OPT_DUMP_VECTORS, NULL);
    for (uint32_t i = 0; dir && i < l->program->n_buffers; i++)
        if (!dump(x, dir, l->program->buffers[i].name, suffix, l->bindings[i + 1].host,
                  (size_t)l->program->buffers[i].bytes))
            return false;
    return true;
}

/* The stream with its addresses, micro-ops, and vectors.json, which says where each file lies in DRAM. */
static bool dump_stream(cli *x, const loaded *l)
{
    const char *dir = cli_get(x, OPT_DUMP_VECTORS, NULL);
    const vta_program *p = l->program;
    char bitstream[80];
    writer w;
    if (!dir)
        return true;
    vta_config_bitstream(&p->config, bitstream, sizeof bitstream);
    writer_init(&w, &x->c->mem);
    json_out j = json_out_begin(&w, JSON_OUT_LINE);
    json_out_object(&j, NULL);
    json_out_text(&j, "config", arena_printf(&x->c->mem, "%s_%s", p->config.target, bitstream));
    json_out_object(&j, "instructions");
    json_out_text(&j, "file", "instructions.bin");
    json_out_uint(&j, "count", p->n_insns);
    json_out_end(&j);
    json_out_object(&j, "micro_ops");
    json_out_text(&j, "file", "micro_ops.bin");
    json_out_uint(&j, "address", l->bindings[0].phys);
    json_out_uint(&j, "count", p->n_uops);
    json_out_end(&j);
    json_out_array(&j, "buffers");
    for (uint32_t i = 0; i < p->n_buffers; i++) {
        json_out_object(&j, NULL);
        json_out_text(&j, "name", p->buffers[i].name);
        json_out_uint(&j, "address", l->bindings[i + 1].phys);
        json_out_uint(&j, "bytes", p->buffers[i].bytes);
        json_out_end(&j);
    }
    json_out_end(&j);
    json_out_end(&j);
    w_str(&w, "\n");
    return dump(x, dir, "instructions", ".bin", l->insns, p->n_insns * sizeof *l->insns) &&
           dump(x, dir, "micro_ops", ".bin", p->uops, p->n_uops * sizeof *p->uops) &&
           dump(x, dir, "vectors", ".json", w.data, w.len);
}

/* --- run ---------------------------------------------------------------------------------------------------------- */

/* A token that nobody took: the next run would find it, and the instruction that should have waited for it did not. */
static void warn_of_tokens(cli *x, const vta_sim *sim)
{
    vta_tokens t;
    vta_sim_tokens(sim, &t);
    const struct {
        int32_t left;
        const char *from, *to;
    } queues[] = {{t.l2g, "load", "compute"},
                  {t.g2l, "compute", "load"},
                  {t.g2s, "compute", "store"},
                  {t.s2g, "store", "compute"}};
    for (size_t i = 0; i < sizeof queues / sizeof *queues; i++)
        if (queues[i].left > 0)
            diag_warning(&x->c->diags, DIAG_DATA, src_loc_none(),
                         "%d token%s left from %s to %s: is a pop missing in an instruction of %s?",
                         (int)queues[i].left, queues[i].left == 1 ? "" : "s", queues[i].from, queues[i].to,
                         queues[i].to);
}

static bool run_loaded(cli *x, loaded *l)
{
    vta_error e;
    char text[600];
    if (!make_buffers(x, l) || !read_inputs(x, l) || !dump_stream(x, l) || !dump_buffers(x, l, ".before.bin"))
        return false;
    if (vta_sim_run(l->sim, l->insns, l->program->n_insns, &e) != VTA_OK)
        return vta_report(x, &e);
    warn_of_tokens(x, l->sim);
    if (!dump_buffers(x, l, ".after.bin") || !write_outputs(x, l))
        return false;
    vta_counters_print(vta_sim_counters(l->sim), text, sizeof text);
    w_fmt(&x->out, "%s\n", text);
    return true;
}

bool vta_run(cli *x, const vta_program *p)
{
#define X(id, text) text "|"
    int profile = cli_choice(x, OPT_PROFILE, VTA_PROFILES(X), "compatible");
#undef X
    vta_sim_options o = {.dram_bytes = (uint64_t)1 << 32};
    vta_error e;
    loaded l = {.program = p};
    long seed;
    if (profile < 0 || !cli_number(x, OPT_SEED, 0, 2147483647, 0, &seed))
        return false;
    o.profile = (vta_profile)profile;
    o.seed = (uint32_t)seed;
    bool ok = vta_sim_create(&p->config, &o, &l.sim, &e) == VTA_OK ? run_loaded(x, &l) : vta_report(x, &e);
    vta_sim_destroy(l.sim);
    return ok;
}

/* --- trace -------------------------------------------------------------------------------------------------------- */

static void print_report(writer *w, const vta_cycle_report *r)
{
    static const char *const stages[] = {"fetch", "load", "compute", "store"};
    json_out j = json_out_begin(w, JSON_OUT_LINE);
    json_out_object(&j, NULL);
    json_out_uint(&j, "cycles", r->cycles);
    json_out_uint(&j, "dram_beats", r->dram_beats);
    json_out_uint(&j, "lost_tokens", r->lost_tokens);
    for (int i = 0; i < VTA_STAGE_COUNT; i++) {
        const vta_stage_cycles *s = &r->stage[i];
        json_out_object(&j, stages[i]);
        json_out_uint(&j, "busy", s->busy);
        json_out_uint(&j, "wait_token", s->wait_token);
        json_out_uint(&j, "wait_dram", s->wait_dram);
        json_out_uint(&j, "wait_fetch", s->wait_fetch);
        json_out_uint(&j, "idle", s->idle);
        json_out_end(&j);
    }
    json_out_end(&j);
    w_str(w, "\n");
}

bool vta_trace(cli *x, const vta_program *p)
{
    int profile = cli_choice(x, OPT_PROFILE, "chisel|hls", "chisel");
    vta_cycle_options o = {.profile = VTA_CYCLE_CHISEL};
    vta_cycle_report r;
    vta_error e;
    if (profile < 0)
        return false;
    o.profile = profile == 0 ? VTA_CYCLE_CHISEL : VTA_CYCLE_HLS;
    if (vta_cycle_time(&p->config, &o, p->insns, p->n_insns, &r, &e) != VTA_OK)
        return vta_report(x, &e);
    const char *out = cli_get(x, OPT_OUT, NULL);
    bool ok = !out || run_vta_write_timeline(x->c, &p->config, &r, p->insns, out);
    if (ok)
        print_report(&x->out, &r);
    vta_cycle_release(&r);
    return ok;
}
