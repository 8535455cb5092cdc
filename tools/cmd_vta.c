/* SPDX-License-Identifier: Apache-2.0 */
/* lathe vta: programs of the VTA accelerator: assemble, disassemble, run, time. docs/reference/vta-isa.md has the
 * language. */
#include "cmd_vta.h"

#include "base/file.h"
#include "base/json_out.h"
#include "base/nearest.h"
#include "driver/format.h"
#include "target/vta/rule/vta.h"
#include "target/vta/vta_text.h"

#include <stdio.h>
#include <string.h>

/* --- what is surely a slip ---------------------------------------------------------------------------------------- */

/* Why the instruction does nothing; NULL: it does something. One that has no size at all only passes tokens
 * on; so does one without an address. */
static const char *idle_reason(const vta_fields *f, bool has_address)
{
    bool padded = f->y_pad_0 || f->y_pad_1;
    switch ((enum vta_opcode)f->opcode) {
    case VTA_LOAD:
    case VTA_STORE:
        if (f->x_size == 0 && f->y_size == 0)
            return has_address ? "x_size is 0" : NULL;
        return f->x_size == 0 ? "x_size is 0" : f->y_size == 0 && !padded ? "y_size is 0" : NULL;
    case VTA_GEMM:
    case VTA_ALU:
        if (f->iter_out == 0 && f->iter_in == 0 && f->uop_end == 0)
            return NULL;
        return f->uop_end <= f->uop_bgn ? "uop_end is not above uop_bgn"
               : f->iter_out == 0       ? "iter_out is 0"
               : f->iter_in == 0        ? "iter_in is 0"
                                        : NULL;
    case VTA_FINISH: break;
    }
    return NULL;
}

/* Instructions that cannot be meant: 0 is what a field has that was left out. */
static void warn_of_slips(ask *x, const vta_program *p)
{
    vta_geometry g;
    (void)vta_config_check(&p->config, &g, NULL);
    for (uint32_t i = 0, r = 0; i < p->n_insns; i++) {
        char text[400];
        vta_fields f;
        bool has_address = r < p->n_relocations && p->relocations[r].insn == i;
        r += has_address;
        if (!vta_decode(&g, &p->insns[i], &f))
            continue;
        const char *idle = idle_reason(&f, has_address);
        bool load_out = f.opcode == VTA_LOAD && f.memory_type == VTA_MEM_OUT,
             store_other = f.opcode == VTA_STORE && f.memory_type != VTA_MEM_OUT && f.x_size > 0;
        vta_insn_print(&g, &p->insns[i], text, sizeof text);
        if (idle)
            diag_warning(&x->c->diags, DIAG_DATA, src_loc_none(), "instruction %u does nothing, %s: %s", i, idle, text);
        if (load_out || store_other)
            diag_warning(&x->c->diags, DIAG_DATA, src_loc_none(), "instruction %u: %s: %s", i,
                         load_out ? "out cannot be loaded" : "only out can be stored", text);
    }
}

/* --- sub-verbs ---------------------------------------------------------------------------------------------------- */

static bool put_file(ask *x, const char *file, const void *bytes, size_t n)
{
    if (!compiler_write_file(x->c, file, bytes, n))
        return false;
    if (ask_has(x, OPT_JSON)) {
        json_out j = json_out_begin(&x->out, JSON_OUT_LINE);
        json_out_object(&j, NULL);
        json_out_text(&j, "file", file);
        json_out_end(&j);
    }
    return true;
}

static bool vta_asm(ask *x, const vta_program *p)
{
    const char *out = ask_get(x, OPT_OUT, NULL);
    size_t n = vta_program_write(p, NULL, 0);
    char *bytes = arena_array(&x->c->mem, char, n);
    if (!out)
        return ask_usage_error(x, "lathe vta asm FILE -o BIN", "no file for the program: -o BIN");
    vta_program_write(p, bytes, n);
    return put_file(x, out, bytes, n);
}

static bool vta_disasm(ask *x, const vta_program *p)
{
    size_t n = vta_disassemble(p, NULL, 0);
    char *text = arena_array(&x->c->mem, char, n + 1);
    writer w;
    vta_disassemble(p, text, n + 1);
    writer_init(&w, &x->c->mem);
    w_str(&w, text);
    return cli_put_text(x, &w);
}

/* A layer as the computation and schedule that `lathe opt` lowers. */
static bool vta_layer(ask *x, te_vta_kind kind, const char *layer)
{
    compiler *c = x->c;
    te_vta_layer l;
    writer computation, schedule;
    const char *config = ask_get(x, OPT_VTA_CONFIG, NULL), *out = ask_get(x, OPT_OUT, NULL);
    if ((config && !vta_text_set(c, config)) || !te_vta_layer_parse(c, kind, layer, &l) ||
        !te_vta_layer_check(c, &l))
        return false;
    writer_init(&computation, &c->mem);
    writer_init(&schedule, &c->mem);
    te_vta_layer_print(c, &l, &computation, &schedule);
    if (!out) {
        w_fmt(&computation, "--- schedule\n%s", schedule.data);
        return cli_put_text(x, &computation);
    }
    return compiler_write_file(c, arena_printf(&c->mem, "%s.sched", out), schedule.data, schedule.len) &&
           put_file(x, arena_printf(&c->mem, "%s.te", out), computation.data, computation.len);
}

static const struct {
    const char *name;
    bool (*run)(ask *x, const vta_program *p); /* NULL: takes no program */
    ask_option options[16];                   /* those that mean something to it; OPT_HELP ends the list */
} subverbs[] = {
    {"asm", vta_asm, {OPT_JSON, OPT_CONFIG, OPT_OUT, OPT_HELP}},
    {"disasm", vta_disasm, {OPT_JSON, OPT_CONFIG, OPT_OUT, OPT_HELP}},
    {"run", vta_run, {OPT_JSON, OPT_CONFIG, OPT_PROFILE, OPT_SEED, OPT_DRAM_IN, OPT_DRAM_OUT, OPT_DUMP_VECTORS,
                      OPT_HELP}},
    {"trace", vta_trace, {OPT_JSON, OPT_CONFIG, OPT_PROFILE, OPT_BUS_BITS, OPT_LATENCY, OPT_OUT, OPT_HELP}},
    {"model", NULL, {OPT_OFFLOAD, OPT_VTA_CONFIG, OPT_SEED, OPT_CYCLE, OPT_TIMELINE, OPT_SHAPE, OPT_DIM, OPT_JSON,
                     OPT_PROFILE, OPT_BUS_BITS, OPT_LATENCY, OPT_DUMP_VECTORS, OPT_HELP}},
    {"bench", NULL, {OPT_JSON, OPT_HELP}}, /* these two and layers take no program */
#define X(id, name, help) {name, NULL, {OPT_JSON, OPT_VTA_CONFIG, OPT_OUT, OPT_HELP}},
    TE_VTA_KINDS(X)
#undef X
};

enum { N_SUBVERBS = sizeof subverbs / sizeof *subverbs };

static bool check_options(ask *x, int v)
{
    for (int o = 0; o < OPT_COUNT; o++) {
        bool allowed = o == OPT_HELP;
        for (const ask_option *a = subverbs[v].options; *a != OPT_HELP; a++)
            allowed = allowed || *a == (ask_option)o;
        if (ask_has(x, (ask_option)o) && !allowed)
            return ask_usage_error(x, "see: lathe vta --help", "'lathe vta %s' has no option --%s",
                                   subverbs[v].name, ask_option_name((ask_option)o));
    }
    return true;
}

/* --config: a file with JSON, or a preset. */
static bool read_config(ask *x, vta_config *c)
{
    const char *name = ask_get(x, OPT_CONFIG, NULL);
    vta_error e = {VTA_OK, ""};
    span s;
    *c = vta_config_default();
    if (!name || (!file_exists(name) && vta_config_preset(name, c, &e) == VTA_OK))
        return true;
    if (e.status != VTA_OK && !strchr(name, '/') && !strstr(name, ".json"))
        return vta_report(x, &e);
    if (!compiler_read_file(x->c, name, &s))
        return false;
    return vta_config_parse(name, (const char *)s.data, s.len, c, &e) == VTA_OK || vta_report(x, &e);
}

/* The program in a file, text or binary. --config is where a text starts from, and must agree with what it says. */
static bool read_program(ask *x, const char *file, vta_program *p)
{
    vta_config c;
    vta_error e;
    span s;
    file_format format;
    char ours[80], theirs[80];
    if (!read_config(x, &c) ||
        !format_read(x->c, arena_printf(&x->c->mem, "vta %s", x->args.data[0]), file, &s, &format))
        return false;
    vta_status status = format == FORMAT_VTA_BINARY
                            ? vta_program_read(file, s.data, s.len, p, &e)
                            : vta_assemble(file, (const char *)s.data, s.len, &c, p, &e);
    if (status != VTA_OK)
        return vta_report(x, &e);
    if (!ask_has(x, OPT_CONFIG) || vta_config_equal(&c, &p->config))
        return true;
    vta_config_bitstream(&c, ours, sizeof ours);
    vta_config_bitstream(&p->config, theirs, sizeof theirs);
    vta_program_release(p);
    return diag_error(&x->c->diags, DIAG_DATA, src_loc_none(), "%s is for the configuration %s, not %s", file, theirs,
                      ours);
}

bool cmd_vta(ask *x)
{
    const char *verb = x->args.len > 0 ? x->args.data[0] : "";
    te_vta_kind kind;
    int v = 0;
    while (v < N_SUBVERBS && strcmp(subverbs[v].name, verb) != 0)
        v++;
    if (v == N_SUBVERBS) {
        nearest near = nearest_to(verb, strlen(verb));
        for (v = 0; v < N_SUBVERBS; v++)
            nearest_offer(&near, subverbs[v].name);
        const char *question = nearest_question(&near, "", &x->c->mem);
        const char *hint = arena_printf(&x->c->mem, "%slathe vta %s", question, help_verb_args(x->verb));
        const char *what = x->args.len > 0 ? "'lathe vta' has no '%.100s'" : "'lathe vta' needs to know what to do%s";
        return ask_usage_error(x, hint, what, verb);
    }
    if (!check_options(x, v))
        return false;
    if (te_vta_kind_find(verb, &kind))
        return vta_layer(x, kind, x->args.len > 1 ? x->args.data[1] : "");
    if (strcmp(verb, "model") == 0)
        return vta_model(x);
    if (!subverbs[v].run) {
        vta_error e = {VTA_OK, ""};
        return vta_bench(x, &e) || vta_report(x, &e);
    }
    if (x->args.len != 2)
        return ask_usage_error(x, arena_printf(&x->c->mem, "for example: lathe vta %s program.txt", verb),
                               x->args.len < 2 ? "'lathe vta %s' needs a program to work on%s"
                                               : "'lathe vta %s' takes one file; '%.200s' is one too many",
                               verb, x->args.len < 2 ? "" : x->args.data[2]);
    vta_program p;
    if (!read_program(x, x->args.data[1], &p))
        return false;
    if (subverbs[v].run != vta_disasm)
        warn_of_slips(x, &p);
    bool ok = subverbs[v].run(x, &p);
    vta_program_release(&p);
    return ok;
}
