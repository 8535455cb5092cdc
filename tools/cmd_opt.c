/* SPDX-License-Identifier: Apache-2.0 */
/* lathe opt: passes on text. The first word tells what the text is: driver/format.def. */
#include "base/file.h"
#include "cli.h"
#include "codegen/vta/vta_code.h"
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

#include <ctype.h>
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

/* --- computations: one, or what `compile --emit schedule` prints of a model --- */

typedef struct section {
    const char *name; /* what a remark before it says; NULL: nothing */
    span computation, schedule; /* schedule.data: NULL: it has none */
} section;

static size_t line_len(span s, size_t at)
{
    const uint8_t *end = memchr(s.data + at, '\n', s.len - at);
    return end ? (size_t)(end - s.data) - at + 1 : s.len - at;
}

static bool has_first_word(span s, size_t at, const char *word)
{
    size_t n = strlen(word);
    return s.len - at > n && memcmp(s.data + at, word, n) == 0 && s.data[at + n] == ' ';
}

static bool begins_computation(span s, size_t at)
{
    return has_first_word(s, at, "placeholder") || has_first_word(s, at, "compute") ||
           has_first_word(s, at, "extern") || has_first_word(s, at, "symbol");
}

/* A part of a text, with as many lines before it as it has there, so that messages tell the right one. */
static span in_place(compiler *c, span s, size_t from, size_t to)
{
    size_t lines = 0;
    for (size_t i = 0; i < from; i++)
        lines += s.data[i] == '\n';
    uint8_t *out = arena_alloc(&c->mem, lines + (to - from) + 1, 1);
    memset(out, '\n', lines);
    memcpy(out + lines, s.data + from, to - from);
    return (span){out, lines + (to - from)};
}

/* The word of a remark: "// fused_add" gives fused_add. */
static const char *remark(compiler *c, span s, size_t at, size_t end)
{
    while (at < end && (s.data[at] == ' ' || s.data[at] == '/'))
        at++;
    size_t n = at;
    while (n < end && (isalnum(s.data[n]) || s.data[n] == '_'))
        n++;
    return n > at ? arena_strndup(&c->mem, (const char *)s.data + at, n - at) : NULL;
}

/* The section at *at, which ends where the next computation begins behind its schedule, with the remarks before that.
 * A schedule stands behind a line "--- schedule", as `vta conv2d` prints it. */
static section take_section(compiler *c, span s, size_t *at)
{
    static const char mark[] = "--- schedule\n";
    section x = {0};
    size_t from = *at, behind = 0, end = from, i = from; /* behind: the schedule; end: its own */
    for (size_t n; i < s.len; i += n) {
        n = line_len(s, i);
        bool is_remark = n > 2 && s.data[i] == '/' && s.data[i + 1] == '/';
        if (behind && begins_computation(s, i))
            break;
        if (!behind && is_remark && !x.name)
            x.name = remark(c, s, i, i + n);
        if (!behind && n == sizeof mark - 1 && memcmp(s.data + i, mark, n) == 0) {
            x.computation = in_place(c, s, from, i);
            behind = i + n;
        }
        if (!behind || !(is_remark || s.data[i] == '\n'))
            end = i + n;
    }
    if (behind)
        x.schedule = in_place(c, s, behind, end);
    else
        x.computation = in_place(c, s, from, end);
    *at = i < s.len ? end : s.len;
    return x;
}

/* The schedule of --schedule, else the text that stood behind the computation. */
static bool read_schedule(cli *x, te_graph *g, const char *file, span s, te_sched **out)
{
    const char *other = cli_get(x, OPT_SCHEDULE, NULL);
    if (other && !compiler_read_file(x->c, other, &s))
        return false;
    return te_sched_parse(g, other ? other : file, (const char *)s.data, s.len, out);
}

/* Without marks the passes leave everything to the host, which is valid, and seldom meant. */
static void warn_of_host(compiler *c, const tir_func *f)
{
    if (vta_code_on_device(f))
        return;
    (void)diag_warning(&c->diags, DIAG_USAGE, f->loc, "%s: nothing here runs on the accelerator", f->name);
    diag_hint(&c->diags, "the schedule marks what does: set_scope, pragma \"dma_copy\" and \"alu\", tensorize "
                         "(docs/vta.md)");
}

/* The loops of a computation under the given schedule, and under no other: nothing is inlined or placed by itself. */
static bool lower_section(cli *x, const char *file, section *t, const char *name, tir_module *m)
{
    te_graph *g;
    te_sched *sched;
    tir_func *f;
    if (!te_parse(x->c, file, (const char *)t->computation.data, t->computation.len, &g) ||
        !read_schedule(x, g, file, t->schedule, &sched) || !te_lower(g, sched, name, &f) || !tir_verify(x->c, f))
        return false;
    f->schedule = NULL; /* the reader has it in a file */
    vec_push(&x->c->mem, &m->funcs, f);
    return true;
}

static bool print_section(cli *x, const char *file, section *t, writer *out)
{
    te_graph *g;
    if (!te_parse(x->c, file, (const char *)t->computation.data, t->computation.len, &g))
        return false;
    te_print(out, g);
    return true;
}

static bool opt_computations(cli *x, const char *file, span s, const compile_options *o, writer *out)
{
    compiler *c = x->c;
    tir_module m = {.c = c};
    const char *how = cli_get(x, OPT_LOWER, NULL);
    bool after_all = cli_has(x, OPT_PRINT_AFTER_ALL), vta = how && strcmp(how, "vta") == 0;
    const char *passes = cli_get(x, OPT_PASSES, vta ? tir_vta_passes : tir_plain_passes);
    if (cli_choice(x, OPT_LOWER, NULL, "plain") < 0)
        return false;
    for (size_t at = 0; at < s.len;) {
        section t = take_section(c, s, &at);
        bool alone = m.funcs.len == 0 && at == s.len;
        if (t.schedule.data && cli_has(x, OPT_SCHEDULE))
            return diag_error(&c->diags, DIAG_USAGE, src_loc_none(),
                              "%s holds a schedule, and --schedule gives another", file);
        if (!how && !cli_has(x, OPT_SCHEDULE) && !t.schedule.data && alone)
            return print_section(x, file, &t, out);
        const char *name = alone ? "main" : t.name ? t.name : arena_printf(&c->mem, "kernel_%u", m.funcs.len);
        if (!lower_section(x, file, &t, name, &m))
            return false;
        m.funcs.data[m.funcs.len - 1]->target = o->target;
    }
    if (after_all)
        tir_print(out, &m);
    if (!tir_run_passes(c, &m, passes, after_all, out))
        return false;
    for (uint32_t i = 0; i < m.funcs.len && vta && !cli_has(x, OPT_PASSES); i++)
        warn_of_host(c, m.funcs.data[i]);
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
    if (!file || !cli_compile_options(x, false, &o) || !cli_is_file(x, OPT_OUT))
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
              : format == FORMAT_COMPUTATION ? opt_computations(x, file, s, &o, &out)
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
