/* SPDX-License-Identifier: Apache-2.0 */
/* Files for a hardware test bench. The stream of a region is its captured form; a simulator gives addresses and runs
 * it, so that what is written is what a device with the same memory map has to give. */
#include "driver/vta/vta_vectors.h"

#include "base/file.h"
#include "base/json_out.h"
#include "codegen/backend.h"
#include "target/vta/vta_text.h"

#include <string.h>
#include <sys/stat.h>

#include <errno.h>

static bool put(compiler *c, const char *dir, const char *name, const char *suffix, const void *data, size_t bytes)
{
    return compiler_write_file(c, arena_printf(&c->mem, "%s/%s%s", dir, name, suffix), data, bytes);
}

bool vta_vectors_memory(compiler *c, const vta_vectors *v, const char *dir, const char *suffix)
{
    for (uint32_t i = 0; i < v->n_buffers; i++)
        if (!put(c, dir, v->buffers[i].name, suffix, v->buffers[i].memory.host, v->buffers[i].memory.bytes))
            return false;
    return true;
}

bool vta_vectors_stream(compiler *c, const vta_vectors *v, const char *dir)
{
    char bitstream[80];
    writer w;
    vta_config_bitstream(v->config, bitstream, sizeof bitstream);
    writer_init(&w, &c->mem);
    json_out j = json_out_begin(&w, JSON_OUT_LINE);
    json_out_object(&j, NULL);
    json_out_text(&j, "config", arena_printf(&c->mem, "%s_%s", v->config->target, bitstream));
    json_out_object(&j, "instructions");
    json_out_text(&j, "file", "instructions.bin");
    json_out_uint(&j, "count", v->n_insns);
    json_out_end(&j);
    json_out_object(&j, "micro_ops");
    json_out_text(&j, "file", "micro_ops.bin");
    json_out_uint(&j, "address", v->uop_address);
    json_out_uint(&j, "count", v->n_uops);
    json_out_end(&j);
    json_out_array(&j, "buffers");
    for (uint32_t i = 0; i < v->n_buffers; i++) {
        json_out_object(&j, NULL);
        json_out_text(&j, "name", v->buffers[i].name);
        json_out_uint(&j, "address", v->buffers[i].memory.phys);
        json_out_uint(&j, "bytes", v->buffers[i].memory.bytes);
        json_out_end(&j);
    }
    json_out_end(&j);
    json_out_end(&j);
    w_str(&w, "\n");
    return put(c, dir, "instructions", ".bin", v->insns, v->n_insns * sizeof *v->insns) &&
           put(c, dir, "micro_ops", ".bin", v->uops, v->n_uops * sizeof *v->uops) &&
           put(c, dir, "vectors", ".json", w.data, w.len);
}

/* --- of a lowered function --- */

typedef struct session {
    compiler *c;
    const tir_func *f;
    vta_code_captured k;
    vta_device device;
    vta_memory scratch;
    vta_vectors_buffer *buffers;
    vta_memory *bindings;
} session;

static bool check(session *s, vta_status status, const vta_error *e)
{
    return status == VTA_OK || vta_code_report(s->c, e);
}

/* Names become those of files: letters, digits and _, with the number in front, so that no two are the same. */
static const char *file_name(session *s, uint32_t i)
{
    return arena_printf(&s->c->mem, "%u_%s", i, codegen_c_identifier(&s->c->mem, s->k.buffers[i]->name));
}

static bool place(session *s, void *const *params)
{
    vta_error e = {VTA_OK, ""};
    vta_sim *sim = NULL;
    const vta_sim_options so = {.dram_bytes = (uint64_t)1 << 32};
    if (!check(s, vta_sim_create(&s->k.capture.config, &so, &sim, &e), &e))
        return false;
    s->device = vta_sim_device(sim);
    const vta_driver *d = s->device.driver;
    bool ok = check(s, d->alloc(s->device.self, vta_replay_bytes(&s->k.capture), true, &s->scratch, &e), &e);
    s->buffers = arena_array(&s->c->mem, vta_vectors_buffer, s->k.n_buffers + 1u);
    s->bindings = arena_array(&s->c->mem, vta_memory, s->k.capture.n_bindings + 1u);
    for (uint32_t i = 0; i < s->k.n_buffers && ok; i++) {
        const size_t bytes = vta_code_bytes(s->k.buffers[i]);
        vta_memory *m = &s->buffers[i].memory;
        s->buffers[i].name = file_name(s, i);
        ok = check(s, d->alloc(s->device.self, bytes ? bytes : 1, true, m, &e), &e);
        m->bytes = bytes;
        if (ok && bytes > 0)
            memset(m->host, 0, bytes);
        if (ok && i < s->f->n_inputs && bytes > 0)
            memcpy(m->host, params[i], bytes);
    }
    for (uint32_t i = 0; i < s->k.capture.n_bindings && ok; i++)
        s->bindings[i] = s->buffers[s->k.binding[i]].memory;
    return ok;
}

/* Behind the run the scratch memory holds the stream with its addresses. */
static bool write_all(session *s, const char *dir)
{
    vta_error e = {VTA_OK, ""};
    const vta_capture *k = &s->k.capture;
    const vta_vectors v = {.config = &k->config,
                           .insns = (const vta_insn *)s->scratch.host,
                           .uops = k->uops,
                           .uop_address = s->scratch.phys + vta_replay_bytes(k) - (uint64_t)k->n_uops * VTA_UOP_BYTES,
                           .buffers = s->buffers,
                           .n_insns = k->n_insns,
                           .n_uops = k->n_uops,
                           .n_buffers = s->k.n_buffers};
    return vta_vectors_memory(s->c, &v, dir, ".before.bin") &&
           check(s, vta_replay(&s->device, k, &s->scratch, s->bindings, UINT32_MAX, &e), &e) &&
           vta_vectors_memory(s->c, &v, dir, ".after.bin") && vta_vectors_stream(s->c, &v, dir);
}

bool vta_vectors_write(compiler *c, const tir_func *f, void *const *params, const char *dir)
{
    session s = {.c = c, .f = f};
    const char *folder = arena_printf(&c->mem, "%s/%s", dir, codegen_c_identifier(&c->mem, f->name));
    if (mkdir(folder, 0777) != 0 && errno != EEXIST)
        return diag_error(&c->diags, DIAG_ENVIRONMENT, src_loc_none(), "cannot make the folder %s: %s", folder,
                          strerror(errno));
    bool ok = vta_code_capture(c, f, &s.k) && place(&s, params) && write_all(&s, folder);
    if (s.device.driver)
        vta_device_destroy(&s.device);
    return ok;
}
