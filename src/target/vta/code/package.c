/* SPDX-License-Identifier: Apache-2.0 */
/* The file of a package that runs its regions on the accelerator. */
#include "codegen/embedded.h"
#include "target/vta/code/vta_package.h"
#include "target/vta/rule/vta_region.h"
#include "target/vta/vta_text.h"
#include "type/family.h"

#include <string.h>

/* Buffers begin at pages: no element is larger. */
static uint64_t page_up(uint64_t bytes)
{
    return (bytes + VTA_PAGE_BYTES - 1) / VTA_PAGE_BYTES * VTA_PAGE_BYTES;
}

typedef struct region {
    prog_region *r;
    tir_func *f;
    vta_code_captured k;
    uint64_t *offset; /* of each buffer in the device's memory */
} region;

typedef struct generator {
    compiler *c;
    prog_source *out;
    region *regions;
    uint32_t n;
    uint64_t bytes; /* of the device's memory */
} generator;

static bool capture_regions(generator *g)
{
    for (uint32_t i = 0; i < g->out->n_regions; i++) {
        prog_region *r = &g->out->regions[i];
        region *to = &g->regions[g->n];
        if (!vta_region_lower(g->c, g->out, r, &to->k))
            return false;
        if (r->declined)
            continue;
        g->n++;
        to->r = r;
        to->f = r->device;
        to->offset = arena_array(&g->c->mem, uint64_t, to->k.n_buffers + 1u);
    }
    return true;
}

/* What lives for one call starts behind the stream, at the same place for all; constants have places of their own. */
static void place(generator *g)
{
    uint64_t stream = 0, most = 0;
    for (uint32_t i = 0; i < g->n; i++)
        stream = page_up(vta_replay_bytes(&g->regions[i].k.capture)) > stream
                     ? page_up(vta_replay_bytes(&g->regions[i].k.capture))
                     : stream;
    for (uint32_t i = 0; i < g->n; i++) {
        region *to = &g->regions[i];
        uint64_t at = stream;
        for (uint32_t b = 0; b < to->k.n_buffers; b++) {
            if (vta_region_is_constant(to->r, to->f, b))
                continue;
            to->offset[b] = at;
            at += page_up(vta_code_bytes(to->k.buffers[b]) + 1);
        }
        most = at > most ? at : most;
    }
    g->bytes = most > stream ? most : stream;
    for (uint32_t i = 0; i < g->n; i++) {
        region *to = &g->regions[i];
        for (uint32_t b = 0; b < to->k.n_buffers; b++)
            if (vta_region_is_constant(to->r, to->f, b)) {
                to->offset[b] = g->bytes;
                g->bytes += page_up(vta_code_bytes(to->k.buffers[b]) + 1);
            }
    }
}

/* --- text --- */

static void write_head(const generator *g, writer *w)
{
    const char *text = embedded_text("src/target/vta/code/text/package.c.in"), *hole = strchr(text, '@');
    w_fmt(w, "%.*s%llu%s", (int)(hole - text), text, (unsigned long long)g->bytes, hole + 1);
}

static void write_copies(writer *w, const region *to, bool constants)
{
    for (uint32_t i = 0; i < to->f->n_inputs; i++)
        if (vta_region_is_constant(to->r, to->f, i) == constants)
            w_fmt(w, "%sput(&r, %lluu, p%u, %zuu);\n", constants ? "            " : "        ",
                  (unsigned long long)to->offset[i], i, vta_code_bytes(to->f->params[i]));
}

static void write_region(generator *g, writer *w, region *to)
{
    const char *name = arena_printf(&g->c->mem, "%s_capture", to->r->symbol);
    const size_t n = vta_capture_print_c(&to->k.capture, name, NULL, 0);
    char *text = arena_array(&g->c->mem, char, n + 1);
    vta_capture_print_c(&to->k.capture, name, text, n + 1);
    w_fmt(w, "\n%s\n", text);
    vta_region_print_prototype(w, to->r, to->f);
    w_str(w, ";\n");
    vta_region_print_prototype(w, to->r, to->f);
    w_fmt(w,
          "\n{\n    static bool ready; /* the constants are in their places */\n    run r;\n"
          "    vta_memory scratch, bindings[%u];\n    if (open_run(&r, &%s.config)) {\n",
          to->k.capture.n_bindings + (to->k.capture.n_bindings == 0), name);
    w_str(w, "        if (!ready) {\n");
    write_copies(w, to, true);
    w_str(w, "            ready = true;\n        }\n");
    write_copies(w, to, false);
    w_fmt(w, "        scratch = part(&r, 0, %zuu);\n", vta_replay_bytes(&to->k.capture));
    for (uint32_t i = 0; i < to->k.capture.n_bindings; i++) {
        const uint32_t b = to->k.binding[i];
        w_fmt(w, "        bindings[%u] = part(&r, %lluu, %zuu);\n", i, (unsigned long long)to->offset[b],
              vta_code_bytes(to->k.buffers[b]));
    }
    w_fmt(w, "        (void)vta_replay(r.device, &%s, &scratch, bindings, UINT32_MAX, &r.error);\n", name);
    for (uint32_t i = to->f->n_inputs; i < to->f->n_params; i++)
        w_fmt(w, "        get(&r, %lluu, p%u, %zuu);\n", (unsigned long long)to->offset[i], i,
              vta_code_bytes(to->f->params[i]));
    w_str(w, "    }\n    return close_run(&r);\n}\n");
}

/* What the text needs of the library, copied into packages: replay for every machine, the simulator for hosts. */
static const prog_file files[] = {
    {"include/abi/vta_config.def", false}, {"include/abi/vta_config.h", false}, {"include/abi/vta_isa.def", false},
    {"include/abi/vta_isa.h", false},      {"runtime/vta/vta_replay.h", false}, {"runtime/vta/replay.h", false},
    {"runtime/vta/replay.c", false},       {"runtime/vta/status.c", false},     {"runtime/vta/config_check.c", false},
    {"runtime/vta/mmio.c", false},         {"runtime/vta/vta.h", true},         {"runtime/vta/sim.h", true},
    {"runtime/vta/sim_simd.h", true},      {"runtime/vta/text.h", true},        {"runtime/vta/dram.c", true},
    {"runtime/vta/sim.c", true},           {"runtime/vta/sim_compute.c", true}, {"runtime/vta/sim_fault.c", true},
    {"runtime/vta/sim_insn.c", true},      {"runtime/vta/sim_level.c", true},   {"runtime/vta/sim_mem.c", true},
    {"runtime/vta/sim_run.c", true},       {"runtime/vta/sim_scalar.c", true},  {"runtime/vta/sim_x86.c", true},
    {"runtime/vta/text.c", true},          {"runtime/vta/vta_host.c", true},
};

bool vta_package_codegen(compiler *c, const struct target *t, struct prog_source *out)
{
    generator g = {.c = c, .out = out};
    writer w;
    (void)t;
    if (out->for_module)
        return vta_module_codegen(c, out);
    writer_init(&w, &c->mem);
    g.regions = arena_array(&c->mem, region, out->n_regions + 1u);
    if (!capture_regions(&g))
        return false;
    out->suffix = "c";
    out->cflags = out->ldflags = "";
    if (g.n == 0)
        return true;
    place(&g);
    if (g.bytes >= (uint64_t)1 << 31)
        return diag_error(
            &c->diags, DIAG_UNSUPPORTED, src_loc_none(),
            "the regions on the accelerator want %llu bytes of its memory; a package gives less than 2^31",
            (unsigned long long)g.bytes);
    write_head(&g, &w);
    for (uint32_t i = 0; i < g.n; i++)
        write_region(&g, &w, &g.regions[i]);
    out->text = w.data;
    out->files = files;
    out->n_files = sizeof files / sizeof *files;
    out->backend = PACKAGE_BACKEND_VTA;
    return true;
}

bool target_parts_vta(compiler *c)
{
    return te_vta_region_register(c, vta_package_codegen);
}
