/* SPDX-License-Identifier: Apache-2.0 */
/* Warnings behind a compile: options that had no effect, and libraries or build systems for another kind of machine. */
#include "driver/warn.h"

#include "driver/format.h"
#include "driver/offload_report.h"
#include "driver/widths.h"
#include "graph/pass.h"
#include "graph/pass/offload.h"
#include "prog/source.h"

#include <string.h>

static bool has_region(const graph_module *m, const char *who)
{
    bool found = false;
    for (uint32_t i = 0; i < m->funcs.len; i++) {
        const char *taken_by = graph_func_text(m->funcs.data[i], "compiler");
        found |= taken_by && strcmp(taken_by, who) == 0;
    }
    return found;
}

/* Libraries with threads of an operating system, and build systems of microcontrollers, beside a target that is for the
 * other kind of machine. */
static void warn_of_machine(compiler *c, const compile_options *o, const compile_result *r)
{
    const target *t = widths_target(c, o);
    for (uint32_t i = 0; r->prog && t->address_bits == 32 && i < r->prog->sources.len; i++) {
        const prog_source *s = &r->prog->sources.data[i];
        if (!s->text || !s->ldflags || !strstr(s->ldflags, "-lpthread"))
            continue;
        diag_warning(&c->diags, DIAG_USAGE, src_loc_none(),
                     "--offload %s: its library needs threads of an operating system, and %s is a microcontroller",
                     s->target->name, t->name);
        diag_hint(&c->diags, "leave it out, or take --target native; cmsis_nn is for Cortex-M");
    }
    if (!o->as || o->as->takes_files || t->address_bits == 32 || t->vector_bytes == 0 || strstr(o->as->ports, "posix"))
        return;
    diag_warning(&c->diags, DIAG_USAGE, src_loc_none(), "--as %s is for microcontrollers, and the code is for %s",
                 o->as->name, t->name);
    diag_hint(&c->diags, "add --target cortex-m4, for example, or --target generic; 'lathe targets' lists all");
}

static bool has_operator(const graph_module *m, const char *begin)
{
    bool found = false;
    for (uint32_t i = 0; i < m->funcs.len; i++)
        for (uint32_t k = 0; k < m->funcs.data[i]->nodes.len; k++)
            found |= strncmp(m->funcs.data[i]->nodes.data[k]->op->name, begin, strlen(begin)) == 0;
    return found;
}

/* Options that change nothing of this model. */
static void warn_of_nothing(compiler *c, const char *path, const compile_options *o, const compile_result *r)
{
    const frontend *front = format_frontend_of(c, path);
    const bool fixed = r->quantised && !r->rounds && front && strcmp(front->reference, "tflm") == 0;
    const char *is_so = "it computes in integers already, with the numbers of TensorFlow Lite Micro";
    const struct {
        bool is_given;
        const char *option, *why;
    } list[] = {
        {o->quantised_ends && r->quantised && !r->float_ends, "--quantized-io", "no input or output is of floats"},
        {fixed && o->integers && o->requant == REQUANT_EXACT && !o->quantised_ends,
         o->names_requant ? "--requant exact" : "--integers", is_so},
        {fixed && o->requant == REQUANT_TFLITE, "--requant tflite", is_so},
        {o->string_bytes > 0 && r->graph->texts.len == 0, "--string-bytes", "it has no strings"},
        {o->trees != 0 && !has_operator(r->graph, "tree_"), "--trees", "it has no decision trees"},
    };
    for (size_t i = 0; i < sizeof list / sizeof *list; i++)
        if (list[i].is_given)
            diag_warning(&c->diags, DIAG_USAGE, src_loc_none(), "%s has no effect on '%s': %s", list[i].option, path,
                         list[i].why);
}

void warn_of_options(compiler *c, const char *path, const compile_options *o, const compile_result *r)
{
    if (o->integers && r->graph && !r->quantised) {
        diag_warning(&c->diags, DIAG_USAGE, src_loc_none(), "nothing in '%s' is quantized, so %s has no effect", path,
                     o->quantised_ends  ? "--quantized-io"
                     : o->names_requant ? "--requant"
                                        : "--integers");
        diag_hint(&c->diags, "lathe quantize makes a quantized model");
    }
    if (r->graph)
        warn_of_nothing(c, path, o, r);
    if (o->offload && r->prog)
        offload_warn(c, path, o->offload);
    warn_of_machine(c, o, r);
    if (target_settings(c, "vta") && r->graph && !has_region(r->graph, "vta"))
        diag_warning(&c->diags, DIAG_USAGE, src_loc_none(),
                     "no part of '%s' runs on the accelerator, so --vta-config has no effect", path);
}
