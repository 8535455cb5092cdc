/* SPDX-License-Identifier: Apache-2.0 */
/* lathe opt: passes on text. The first word tells what the text is: driver/format.def. */
#include "base/file.h"
#include "cli.h"
#include "driver/format.h"
#include "graph/pass.h"
#include "te/lower.h"
#include "te/te.h"
#include "te/text.h"
#include "tir/pass.h"
#include "tir/text.h"
#include "tir/verify.h"
#include "tir/walk.h"
#include "type/vta_text.h"

#include <stdio.h>
#include <string.h>

static bool opt_graph(cli *x, const char *file, span s, const compile_options *how, writer *out)
{
    graph_module *m;
    pass_options o = {.target = how->target ? how->target : target_default(),
                      .opt_level = how->opt_level,
                      .no_winograd = how->no_winograd,
                      .print_after_all = cli_has(x, OPT_PRINT_AFTER_ALL),
                      .verify = true,
                      .dump = out};
    const char *passes = cli_get(x, OPT_PASSES, NULL);
    if (!graph_parse(x->c, file, (const char *)s.data, s.len, &m))
        return false;
    if (passes && !*passes) { /* --passes "": parse, check and print */
        if (!graph_verify(x->c, m))
            return false;
    } else if (!graph_run_passes(x->c, m, passes, &o)) {
        return false;
    }
    if (!o.print_after_all)
        graph_print(out, m);
    return true;
}

static bool opt_loops(cli *x, const char *file, span s, const compile_options *how, writer *out)
{
    tir_module *m;
    bool after_all = cli_has(x, OPT_PRINT_AFTER_ALL);
    const char *passes = cli_get(x, OPT_PASSES, NULL);
    if (!tir_parse(x->c, file, (const char *)s.data, s.len, &m))
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

/* Takes a schedule off the end of a computation: what stands behind a line "--- schedule", as `vta conv2d` prints it.
 */
static span cut_schedule(span *s)
{
    static const char line[] = "\n--- schedule\n";
    const size_t n = sizeof line - 1;
    for (size_t i = 0; i + n <= s->len; i++) {
        if (memcmp(s->data + i, line, n) != 0)
            continue;
        span tail = {s->data + i + n, s->len - i - n};
        s->len = i + 1;
        return tail;
    }
    return (span){0};
}

/* The schedule of --schedule, else the text that stood behind the computation. */
static bool read_schedule(cli *x, te_graph *g, span s, te_sched **out)
{
    const char *file = cli_get(x, OPT_SCHEDULE, NULL);
    if (file && !compiler_read_file(x->c, file, &s))
        return false;
    return te_sched_parse(g, file ? file : "schedule", (const char *)s.data, s.len, out);
}

static void find_call(void *ctx, tir_expr_ref e)
{
    *(bool *)ctx |= e->kind == TIR_EXTERN && e->type.dt != DT_STRING &&
                    (strncmp(e->u.name, "tir.vta.", 8) == 0 || strncmp(e->u.name, "VTA", 3) == 0);
}

/* Without marks the passes leave everything to the host, which is valid, and seldom meant. */
static void warn_of_host(compiler *c, const tir_func *f)
{
    bool found = false;
    tir_visit_stmt(f->body, NULL, find_call, &found);
    if (found)
        return;
    (void)diag_warning(&c->diags, DIAG_USAGE, f->loc, "%s: nothing here runs on the accelerator", f->name);
    diag_hint(&c->diags, "the schedule marks what does: set_scope, pragma \"dma_copy\" and \"alu\", tensorize "
                         "(docs/vta.md)");
}

/* The loops of a computation under the given schedule, and under no other: nothing is inlined or placed by itself. */
static bool opt_computation(cli *x, const char *file, span s, const compile_options *o, writer *out)
{
    compiler *c = x->c;
    te_graph *g;
    te_sched *sched;
    tir_func *f;
    const char *how = cli_get(x, OPT_LOWER, NULL);
    bool after_all = cli_has(x, OPT_PRINT_AFTER_ALL), vta = how && strcmp(how, "vta") == 0;
    const char *passes = cli_get(x, OPT_PASSES, vta ? tir_vta_passes : tir_plain_passes);
    span schedule = cut_schedule(&s);
    if (schedule.data && cli_has(x, OPT_SCHEDULE))
        return diag_error(&c->diags, DIAG_USAGE, src_loc_none(), "%s holds a schedule, and --schedule gives another",
                          file);
    if (cli_choice(x, OPT_LOWER, NULL, "plain") < 0)
        return false;
    if (!te_parse(c, file, (const char *)s.data, s.len, &g))
        return false;
    if (!how && !cli_has(x, OPT_SCHEDULE) && !schedule.data) {
        te_print(out, g);
        return true;
    }
    if (!read_schedule(x, g, schedule, &sched) || !te_lower(g, sched, "main", &f) || !tir_verify(c, f))
        return false;
    f->schedule = NULL; /* the reader has it in a file */
    tir_module m = {.c = c};
    f->target = o->target;
    vec_push(&c->mem, &m.funcs, f);
    if (after_all)
        tir_print(out, &m);
    if (!tir_run_passes(c, &m, passes, after_all, out))
        return false;
    if (vta && !cli_has(x, OPT_PASSES))
        warn_of_host(c, m.funcs.data[0]);
    if (!after_all)
        tir_print(out, &m);
    return true;
}

static bool opt_program(cli *x, const char *file, span s, const compile_options *how, writer *out)
{
    prog_module *m;
    bool after_all = cli_has(x, OPT_PRINT_AFTER_ALL);
    const char *passes = cli_get(x, OPT_PASSES, NULL);
    if (!prog_parse(x->c, file, (const char *)s.data, s.len, &m) ||
        !prog_run_passes(x->c, m, passes, how->opt_level, after_all, out))
        return false;
    if (!after_all)
        prog_print(out, m);
    return true;
}

static bool opt_plan(cli *x, const char *file, span s, writer *out)
{
    plan_problem *p;
    plan made;
    if (!plan_parse(x->c, file, (const char *)s.data, s.len, &p) || !plan_memory(x->c, p, &made) ||
        !plan_verify(x->c, &made))
        return false;
    plan_print(out, &made);
    return true;
}

bool cmd_opt(cli *x)
{
    const char *file = cli_model(x);
    compile_options o;
    span s;
    file_format format;
    writer out;
    if (!file || !cli_compile_options(x, false, &o))
        return false;
    if (cli_has(x, OPT_VTA_CONFIG) && !vta_text_parse(x->c, cli_get(x, OPT_VTA_CONFIG, ""), &x->c->vta))
        return false;
    if (!format_read(x->c, o.verb, file, &s, &format))
        return false;
    writer_init(&out, &x->c->mem);
    if (format != FORMAT_COMPUTATION && (cli_has(x, OPT_SCHEDULE) || cli_has(x, OPT_LOWER))) {
        diag_error(&x->c->diags, DIAG_USAGE, src_loc_none(),
                   "--schedule and --lower are for computations, and %s starts with no placeholder, compute or symbol",
                   file);
        diag_hint(&x->c->diags, "lathe opt COMPUTATION --schedule SCHEDULE");
        return false;
    }
    bool ok = format == FORMAT_LOOPS         ? opt_loops(x, file, s, &o, &out)
              : format == FORMAT_COMPUTATION ? opt_computation(x, file, s, &o, &out)
              : format == FORMAT_PROGRAM     ? opt_program(x, file, s, &o, &out)
              : format == FORMAT_PLAN        ? opt_plan(x, file, s, &out)
                                             : opt_graph(x, file, s, &o, &out);
    const char *to = cli_get(x, OPT_OUT, NULL);
    if (ok && to)
        ok = compiler_write_file(x->c, to, out.data, out.len);
    else
        w_str(&x->out, out.data);
    return ok;
}
