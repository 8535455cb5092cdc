/* SPDX-License-Identifier: Apache-2.0 */
/* lathe vta run and trace: a program on the functional simulator, with its buffers from and to files; and its timing.
 */
#include "cmd_vta.h"
#include "shown.h"
#include "api/session.h"

#include "base/file.h"
#include "base/json_out.h"
#include "driver/vta/run_vta.h"
#include "driver/vta/vta_vectors.h"

#include <stdio.h>
#include <string.h>

bool vta_report(ask *x, const vta_error *e)
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

static bool make_buffers(ask *x, loaded *l)
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
static int64_t find_buffer(ask *x, const loaded *l, const char *option, const char *text, const char **file)
{
    const char *equals = strchr(text, '=');
    for (uint32_t i = 0; equals && i < l->program->n_buffers; i++) {
        const char *name = l->program->buffers[i].name;
        if (strlen(name) == (size_t)(equals - text) && memcmp(name, text, strlen(name)) == 0) {
            *file = equals + 1;
            return i;
        }
    }
    ask_usage_error(x, "for example --dram-in x=x.bin; `buffer` lines in the program name them",
                    "--%s: '%.100s' names no buffer of the program", option, text);
    return -1;
}

static bool read_inputs(ask *x, loaded *l)
{
    const ask_strings *in = &x->values[OPT_DRAM_IN];
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

static bool write_outputs(ask *x, const loaded *l)
{
    const ask_strings *out = &x->values[OPT_DRAM_OUT];
    for (uint32_t i = 0; i < out->len; i++) {
        const char *file;
        int64_t b = find_buffer(x, l, "dram-out", out->data[i], &file);
        if (b < 0 || !compiler_write_file(x->c, file, l->bindings[b + 1].host, (size_t)l->program->buffers[b].bytes))
            return false;
    }
    return true;
}

/* --- vectors ------------------------------------------------------------------------------------------------------ */

static vta_vectors vectors_of(ask *x, const loaded *l)
{
    const vta_program *p = l->program;
    vta_vectors_buffer *all = arena_array(&x->c->mem, vta_vectors_buffer, p->n_buffers + 1u);
    for (uint32_t i = 0; i < p->n_buffers; i++) {
        all[i] = (vta_vectors_buffer){p->buffers[i].name, l->bindings[i + 1]};
        all[i].memory.bytes = (size_t)p->buffers[i].bytes;
    }
    return (vta_vectors){.config = &p->config,
                         .insns = l->insns,
                         .uops = p->uops,
                         .uop_address = l->bindings[0].phys,
                         .buffers = all,
                         .n_insns = p->n_insns,
                         .n_uops = p->n_uops,
                         .n_buffers = p->n_buffers};
}

/* --- run ---------------------------------------------------------------------------------------------------------- */

/* A token that nobody took: the next run would find it, and the instruction that should have waited for it did not. */
static void warn_of_tokens(ask *x, const vta_sim *sim)
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

static bool run_loaded(ask *x, loaded *l)
{
    vta_error e;
    char text[600];
    const char *dir = ask_get(x, OPT_DUMP_VECTORS, NULL);
    if (!make_buffers(x, l) || !read_inputs(x, l))
        return false;
    const vta_vectors v = vectors_of(x, l);
    if (dir && (!vta_vectors_stream(x->c, &v, dir) || !vta_vectors_memory(x->c, &v, dir, ".before.bin")))
        return false;
    if (vta_sim_run(l->sim, l->insns, l->program->n_insns, &e) != VTA_OK)
        return vta_report(x, &e);
    warn_of_tokens(x, l->sim);
    if ((dir && !vta_vectors_memory(x->c, &v, dir, ".after.bin")) || !write_outputs(x, l))
        return false;
    vta_counters_print(vta_sim_counters(l->sim), text, sizeof text);
    w_fmt(&x->out, ask_has(x, OPT_JSON) ? "{\"counters\": %s}\n" : "%s\n", text);
    return true;
}

bool vta_run(ask *x, const vta_program *p)
{
#define X(id, text) text "|"
    int profile = ask_choice(x, OPT_PROFILE, VTA_PROFILES(X), "compatible");
#undef X
    vta_sim_options o = {.dram_bytes = (uint64_t)1 << 32};
    vta_error e;
    loaded l = {.program = p};
    long seed;
    if (profile < 0 || !ask_number(x, OPT_SEED, 0, 2147483647, 0, &seed))
        return false;
    o.profile = (vta_profile)profile;
    o.seed = (uint32_t)seed;
    bool ok = vta_sim_create(&p->config, &o, &l.sim, &e) == VTA_OK ? run_loaded(x, &l) : vta_report(x, &e);
    vta_sim_destroy(l.sim);
    return ok;
}

/* --- trace -------------------------------------------------------------------------------------------------------- */

static void show_trace(ask *x, const vta_cycle_report *r)
{
    if (!ask_has(x, OPT_JSON)) {
        shown_cycles(&x->out, r);
        return;
    }
    json_out j = json_out_begin(&x->out, JSON_OUT_LINE);
    json_out_object(&j, NULL);
    run_vta_cycles_json(&j, r);
    json_out_end(&j);
    w_str(&x->out, "\n");
}

bool vta_trace(ask *x, const vta_program *p)
{
    vta_cycle_options o = {.profile = VTA_CYCLE_CHISEL};
    vta_cycle_report r;
    vta_error e;
    if (!ask_cycle_model(x, &o))
        return false;
    if (vta_cycle_time(&p->config, &o, p->insns, p->n_insns, &r, &e) != VTA_OK)
        return vta_report(x, &e);
    const char *out = ask_get(x, OPT_OUT, NULL);
    bool ok = !out || run_vta_write_timeline(x->c, &p->config, &r, p->insns, out);
    if (ok)
        show_trace(x, &r);
    vta_cycle_release(&r);
    return ok;
}
