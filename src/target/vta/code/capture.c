/* SPDX-License-Identifier: Apache-2.0 */
/* A lowered function as constant data: executed once on a context that captures, printed as C for vta_replay. */
#include "target/vta/code/exec.h"
#include "target/vta/vta_text.h"

#include <stdlib.h>

enum { FIRST_INSNS = 1 << 16, MOST_INSNS = 1 << 24 };

typedef struct session {
    compiler *c;
    const tir_func *f;
    vta_device device;
    void *memory;
    vta_context *x;
    vta_buffer *handles;
} session;

static bool check(session *s, vta_status status)
{
    vta_error e = {VTA_OK, ""};
    if (status == VTA_OK)
        return true;
    vta_context_last_error(s->x, &e);
    return vta_code_report(s->c, &e);
}

/* A simulator gives addresses; it runs nothing. */
static bool open_session(session *s, uint32_t most)
{
    const vta_sim_options so = {.skip_exec = true, .dram_bytes = (uint64_t)1 << 32};
    const vta_context_options o = {.max_insns = most, .max_uops = most, .left_tokens = VTA_LEFT_IGNORE};
    vta_error e = {VTA_OK, ""};
    vta_sim *sim = NULL;
    if (vta_sim_create(vta_text_config(s->c), &so, &sim, &e) != VTA_OK)
        return vta_code_report(s->c, &e);
    s->device = vta_sim_device(sim);
    size_t bytes = vta_context_bytes(&s->device, &o);
    s->memory = aligned_alloc(64, (bytes + 63) / 64 * 64);
    if (!s->memory)
        return diag_error(&s->c->diags, DIAG_ENVIRONMENT, s->f->loc, "%s: no memory to capture %u instructions",
                          s->f->name, most);
    return vta_context_init(s->memory, bytes, &s->device, &o, &s->x, &e) == VTA_OK || vta_code_report(s->c, &e);
}

static void close_session(session *s)
{
    if (s->x)
        vta_context_destroy(s->x);
    free(s->memory);
    if (s->device.driver)
        vta_device_destroy(&s->device);
}

static bool run_session(session *s, vta_code_captured *out, bool *out_full)
{
    bool ok = true;
    s->handles = arena_array(&s->c->mem, vta_buffer, out->n_buffers + 1u);
    for (uint32_t i = 0; i < out->n_buffers && ok; i++) {
        size_t bytes = vta_code_bytes(out->buffers[i]);
        ok = check(s, vta_buffer_alloc(s->x, bytes ? bytes : 1, &s->handles[i]));
    }
    return ok && check(s, vta_capture_begin(s->x)) && vta_exec_capture(s->c, s->f, s->x, s->handles, out_full);
}

/* The arrays of the capture, and which of our buffers each of its bindings is. */
static bool take_capture(session *s, vta_code_captured *out)
{
    size_t bytes = vta_capture_bytes(s->x);
    void *memory = arena_alloc(&s->c->mem, bytes + 1, 8);
    if (!check(s, vta_capture_end(s->x, memory, bytes, &out->capture)))
        return false;
    uint32_t *binding = arena_array(&s->c->mem, uint32_t, out->capture.n_bindings + 1u);
    for (uint32_t i = 0; i < out->n_buffers; i++) {
        uint32_t n = vta_capture_binding(s->x, s->handles[i]);
        if (n > 0)
            binding[n - 1] = i;
    }
    out->binding = binding;
    return true;
}

bool vta_code_capture(compiler *c, const tir_func *f, vta_code_captured *out)
{
    *out = (vta_code_captured){0};
    out->n_buffers = vta_code_buffers(c, f, &out->buffers);
    for (uint32_t most = FIRST_INSNS;; most *= 4) {
        session s = {.c = c, .f = f};
        bool full = false;
        bool ok = open_session(&s, most) && run_session(&s, out, &full) && take_capture(&s, out);
        close_session(&s);
        if (ok || !full)
            return ok;
        if (most >= MOST_INSNS)
            return diag_error(&c->diags, DIAG_UNSUPPORTED, f->loc,
                              "%s: more than %u instructions or micro-ops, too many for a captured stream", f->name,
                              most);
    }
}

bool vta_code_print_capture(compiler *c, writer *w, const tir_func *f, const char *name)
{
    vta_code_captured k;
    if (!vta_code_capture(c, f, &k))
        return false;
    const char *constant = arena_printf(&c->mem, "%s_capture", name);
    size_t n = vta_capture_print_c(&k.capture, constant, NULL, 0);
    char *text = arena_array(&c->mem, char, n + 1);
    vta_capture_print_c(&k.capture, constant, text, n + 1);
    w_str(w, text);
    w_fmt(w, "\n/* %s over device memory: scratch holds vta_replay_bytes(&%s) bytes; buffers, in bytes:", name,
          constant);
    for (uint32_t i = 0; i < k.n_buffers; i++)
        w_fmt(w, "\n *   %u %s %zu%s", i, k.buffers[i]->name, vta_code_bytes(k.buffers[i]),
              i < f->n_inputs   ? ""
              : i < f->n_params ? ", written"
                                : ", its own");
    w_str(w, " */\n");
    vta_code_print_prototype(w, f, name, true);
    w_str(w, ";\n");
    vta_code_print_prototype(w, f, name, true);
    w_fmt(w, "\n{\n    vta_memory bindings[%u];\n", k.capture.n_bindings ? k.capture.n_bindings : 1);
    for (uint32_t i = 0; i < k.capture.n_bindings; i++)
        w_fmt(w, "    bindings[%u] = buffers[%u];\n", i, k.binding[i]);
    w_fmt(w, "    return (int32_t)vta_replay(device, &%s, scratch, bindings, UINT32_MAX, error);\n}\n", constant);
    return true;
}
