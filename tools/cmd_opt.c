/* SPDX-License-Identifier: Apache-2.0 */
/* lathe opt: passes on text. The first word tells what the text is: driver/format.def. */
#include "base/file.h"
#include "cli.h"
#include "driver/vta/vta_computation.h"
#include "driver/format.h"
#include "driver/stages.h"
#include "graph/pass.h"
#include "te/lower.h"
#include "te/te.h"
#include "te/text.h"
#include "tir/pass.h"
#include "tir/text.h"
#include "tir/verify.h"
#include "tir/walk.h"
#include "target/vta/vta_text.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

static bool opt_graph(ask *x, const char *file, span s, const compile_options *how, writer *out)
{
    graph_module *m;
    const char *passes;
    stage_fn stage; /* what follows the passes on the graph; NULL: nothing */
    if (!stage_take(x->c, ask_get(x, OPT_PASSES, NULL), &stage, &passes))
        return false;
    pass_options o = {.target = how->target ? how->target : target_default(),
                      .opt_level = how->opt_level,
                      .trees = (graph_trees)how->trees,
                      .no_winograd = how->no_winograd,
                      .no_split_data = how->no_split_data,
                      .offload = how->offload,
                      .no_integers = !how->integers && !passes && !(how->target && how->target->integers),
                      .quantised_ends = how->quantised_ends,
                      .float_ends = how->float_ends,
                      .requant = (graph_requant)how->requant,
                      .print_after_all = ask_has(x, OPT_PRINT_AFTER_ALL),
                      .verify = true,
                      .dump = out};
    if (!graph_parse(x->c, file, (const char *)s.data, s.len, &m))
        return false;
    if (passes && !*passes) { /* --passes "": parse, check and print */
        if (!graph_verify(x->c, m))
            return false;
    } else if (!graph_run_passes(x->c, m, passes, &o)) {
        return false;
    }
    if (stage)
        return stage(x->c, m, o.target, out);
    if (!o.print_after_all)
        graph_print(out, m);
    return true;
}

/* Loop passes by name, those that are disabled left out, with the debug flag. */
static bool loop_passes(ask *x, const char *usual, const char **out)
{
    long flag;
    tir_build_config b = {.passes = ask_get(x, OPT_PASSES, usual), .disabled = ask_get(x, OPT_DISABLE_PASS, NULL)};
    *out = b.passes;
    if (!ask_has(x, OPT_DISABLE_PASS) && !ask_has(x, OPT_DEBUG_FLAG))
        return true;
    if (!ask_number(x, OPT_DEBUG_FLAG, 0, 62, 0, &flag))
        return false;
    b.flags = flag;
    return tir_build_config_passes(x->c, &b, out);
}

static bool opt_loops(ask *x, const char *file, span s, const compile_options *how, writer *out)
{
    tir_module *m;
    bool after_all = ask_has(x, OPT_PRINT_AFTER_ALL);
    const char *passes;
    if (!loop_passes(x, NULL, &passes) || !tir_parse(x->c, file, (const char *)s.data, s.len, &m))
        return false;
    for (uint32_t i = 0; i < m->funcs.len; i++) {
        m->funcs.data[i]->target = how->target;
        if (!tir_verify(x->c, m->funcs.data[i]))
            return false;
    }
    if (!(passes && !*passes) && !tir_run_passes(x->c, m, passes, after_all, out))
        return false;
    if (!after_all)
        tir_print(out, m);
    return true;
}

/* --- computations: one, or what `compile --emit schedule` prints of a model --- */

static bool print_section(ask *x, const computation *t, writer *out)
{
    te_graph *g;
    if (!te_parse(x->c, t->file, (const char *)t->text.data, t->text.len, &g))
        return false;
    te_print(out, g);
    return true;
}

static bool opt_computations(ask *x, const char *file, span s, const compile_options *o, writer *out)
{
    compiler *c = x->c;
    tir_module m = {.c = c};
    const char *how = ask_get(x, OPT_LOWER, NULL), *other = ask_get(x, OPT_SCHEDULE, NULL);
    bool after_all = ask_has(x, OPT_PRINT_AFTER_ALL);
    const char *passes, *device = how ? tir_device_passes(how) : NULL, *usual = device ? device : tir_plain_passes;
    if (ask_choice(x, OPT_LOWER, NULL, "plain") < 0 || !loop_passes(x, usual, &passes))
        return false;
    for (size_t at = 0; at < s.len;) {
        computation t = computation_take(c, file, s, &at);
        tir_func *f;
        bool alone = m.funcs.len == 0 && at == s.len;
        if (t.schedule.data && ask_has(x, OPT_SCHEDULE))
            return diag_error(&c->diags, DIAG_USAGE, src_loc_none(),
                              "%s holds a schedule, and --schedule gives another", file);
        if (!how && !ask_has(x, OPT_SCHEDULE) && !t.schedule.data && alone)
            return print_section(x, &t, out);
        const char *name = alone ? "main" : t.name ? t.name : arena_printf(&c->mem, "kernel_%u", m.funcs.len);
        if (other)
            t.schedule_file = other;
        if ((other && !compiler_read_file(c, other, &t.schedule)) || !computation_lower(c, &t, false, name, &f))
            return false;
        f->target = o->target;
        vec_push(&c->mem, &m.funcs, f);
    }
    if (after_all)
        tir_print(out, &m);
    if (!tir_run_passes(c, &m, passes, after_all, out))
        return false;
    for (uint32_t i = 0; i < m.funcs.len && device && !ask_has(x, OPT_PASSES); i++)
        vta_computation_warn(c, m.funcs.data[i]);
    if (!after_all)
        tir_print(out, &m);
    return true;
}

static bool opt_program(ask *x, const char *file, span s, const compile_options *how, writer *out)
{
    prog_module *m;
    bool after_all = ask_has(x, OPT_PRINT_AFTER_ALL);
    const char *passes = ask_get(x, OPT_PASSES, NULL);
    if (!prog_parse(x->c, file, (const char *)s.data, s.len, &m) ||
        !prog_run_passes(x->c, m, passes, how->opt_level, after_all, out))
        return false;
    if (!after_all)
        prog_print(out, m);
    return true;
}

static bool opt_plan(ask *x, const char *file, span s, writer *out)
{
    plan_problem *p;
    plan made;
    if (!plan_parse(x->c, file, (const char *)s.data, s.len, &p) || !plan_memory(x->c, p, &made) ||
        !plan_verify(x->c, &made))
        return false;
    plan_print(out, &made);
    return true;
}

bool cmd_opt(ask *x)
{
    const char *file = ask_model(x);
    compile_options o;
    span s;
    file_format format;
    writer out;
    if (!file || !ask_compile_options(x, false, &o) || !ask_is_file(x, OPT_OUT))
        return false;
    if (!format_read(x->c, o.verb, file, &s, &format))
        return false;
    writer_init(&out, &x->c->mem);
    if (format != FORMAT_COMPUTATION && (ask_has(x, OPT_SCHEDULE) || ask_has(x, OPT_LOWER))) {
        diag_error(&x->c->diags, DIAG_USAGE, src_loc_none(),
                   "--schedule and --lower are for computations, and %s starts with no placeholder, compute or symbol",
                   file);
        diag_hint(&x->c->diags, "lathe opt COMPUTATION --schedule SCHEDULE");
        return false;
    }
    bool loops = format == FORMAT_COMPUTATION || format == FORMAT_LOOPS;
    if (!loops && (ask_has(x, OPT_DISABLE_PASS) || ask_has(x, OPT_DEBUG_FLAG)))
        return diag_error(&x->c->diags, DIAG_USAGE, src_loc_none(),
                          "--disable-pass and --debug-flag are for passes on loops, and %s holds none", file);
    bool ok = format == FORMAT_LOOPS         ? opt_loops(x, file, s, &o, &out)
              : format == FORMAT_COMPUTATION ? opt_computations(x, file, s, &o, &out)
              : format == FORMAT_PROGRAM     ? opt_program(x, file, s, &o, &out)
              : format == FORMAT_PLAN        ? opt_plan(x, file, s, &out)
                                             : opt_graph(x, file, s, &o, &out);
    if (ok)
        return cli_put_text(x, &out);
    if (!x->documents) /* of --print-after-all, up to the pass that failed */
        w_str(&x->out, out.data);
    return false;
}
