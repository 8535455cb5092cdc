/* SPDX-License-Identifier: Apache-2.0 */
/* lathe inspect: what a compile makes of a model: a table, JSON, or a page with pictures. */
#include "base/file.h"
#include "cli.h"
#include "driver/describe.h"
#include "driver/format.h"
#include "driver/groups.h"
#include "driver/html.h"
#include "driver/offload_report.h"
#include "driver/open_model.h"
#include "driver/run_module.h"
#include "driver/summary.h"
#include "table.h"

#include <stdio.h>
#include <string.h>

/* "extent n <= 4" of an extent, else the type. */
static const char *type_text(arena *a, const prog_value *v)
{
    writer w;
    writer_init(&w, a);
    if (v->extent)
        w_fmt(&w, "extent %s <= %lld", dim_symbol_name(v->extent), (long long)dim_bound(v->extent));
    else
        type_print(&w, &v->type);
    return w.data;
}

static uint64_t bytes_of(const compile_result *r, const plan_op *op)
{
    uint64_t sum = 0;
    for (uint32_t i = 0; i < op->n_args; i++)
        sum += r->plan.problem->values.data[op->args[i]].bytes;
    return sum;
}

static const char *name_of(const prog_step *s)
{
    return *s->source ? s->source : s->kernel->name;
}

/* One counter of an operator. */
typedef uint32_t (*count_fn)(const tir_left *left);

#define X(member, key, help)                          \
    static uint32_t count_##member(const tir_left *l) \
    {                                                 \
        return l->member;                             \
    }
TIR_LEFT(X)
#undef X

/* "bounds checks ...: 8 in 3 nn.conv2d (Conv_0, Conv_4, Conv_9)": by what the operators are. */
static void show_count(writer *w, compiler *c, const compile_result *r, count_fn count, const char *help)
{
    const plan_problem *p = r->plan.problem;
    groups all;
    groups_begin(&all, c);
    for (uint32_t i = 0; i < p->ops.len; i++)
        if (count(&p->ops.data[i].func->left) > 0)
            groups_add(&all, i, p->ops.data[i].step->kernel->kind, name_of(p->ops.data[i].step));
    for (uint32_t k = 0; k < all.all.len; k++) {
        const group *g = &all.all.data[k];
        const char *kind = p->ops.data[g->first].step->kernel->kind;
        uint32_t sum = 0;
        for (uint32_t i = g->first; i < p->ops.len; i++)
            sum += strcmp(p->ops.data[i].step->kernel->kind, kind) == 0 ? count(&p->ops.data[i].func->left) : 0;
        w_fmt(w, "%s: %u in %u %s (", help, sum, g->n, kind);
        groups_write_names(w, g);
        w_line(w, ")");
    }
}

/* What passes did not do, where there is something. */
static void show_left(writer *w, compiler *c, const compile_result *r)
{
#define X(member, key, help) show_count(w, c, r, count_##member, help);
    TIR_LEFT(X)
#undef X
}

/* "idle workers: 2 of 4 in 2 nn.conv2d (Conv_3, Conv_7): no loop can be cut ...": of those who have work for more of
 * them. */
static void show_idle(writer *w, compiler *c, const compile_result *r)
{
    groups all;
    groups_begin(&all, c);
    for (uint32_t i = 0; i < r->plan.problem->ops.len; i++) {
        const prog_step *s = r->plan.problem->ops.data[i].step;
        plan_idle_cause why;
        const uint32_t idle = plan_idle_workers(&r->plan, i, &why);
        if (idle > 0)
            groups_add(&all, i, arena_printf(&c->mem, "%s %u %d", s->kernel->kind, idle, (int)why),
                       name_of(s));
    }
    for (uint32_t i = 0; i < all.all.len; i++) {
        const group *g = &all.all.data[i];
        plan_idle_cause why;
        const uint32_t idle = plan_idle_workers(&r->plan, g->first, &why);
        w_fmt(w, "idle workers: %u of %u in %u %s (", idle, r->unit.target->workers, g->n,
              r->plan.problem->ops.data[g->first].step->kernel->kind);
        groups_write_names(w, g);
        w_line(w, "): %s", plan_idle_help(why));
    }
}

static const char *item_text(arena *a, const char *name)
{
    writer w;
    writer_init(&w, a);
    w_item(&w, name);
    return w.data;
}

/* "stayed in float: 4 nn.conv2d (conv1, conv2, %y, %z): why": by the model's nodes, else by values. */
static void show_remarks(writer *w, compiler *c, const compile_result *r)
{
    groups all;
    groups_begin(&all, c);
    for (uint32_t i = 0; i < r->n_remarks; i++) {
        const codegen_remark *x = &r->remarks[i];
        groups_add(&all, i, arena_printf(&c->mem, "%s %s %s", x->pass, x->op, x->text),
                   item_text(&c->mem, *x->node ? x->node : arena_printf(&c->mem, "%%%s", x->value)));
    }
    for (uint32_t i = 0; i < all.all.len; i++) {
        const group *g = &all.all.data[i];
        const codegen_remark *first = &r->remarks[g->first];
        w_fmt(w, "%s: %u %s (", strcmp(first->pass, "use-integers") == 0 ? "stayed in float" : first->pass, g->n,
              first->op);
        groups_write_names(w, g);
        w_line(w, "): %s", first->text);
    }
}

/* "scale 0.5, zero point -3" of quantized numbers; before it their type, where the end itself has floats. */
static const char *scale_text(arena *a, const number_end *x, dtype dt)
{
    if (!x)
        return "";
    return arena_printf(a, "%s%sscale %.9g, zero point %lld", dtype_is_float(dt) ? dtype_name(x->dt) : "",
                        dtype_is_float(dt) ? " in the model, " : "", x->end.scale, (long long)x->end.zero_point);
}

static void add_tensor(table *t, const char *what, const prog_func *f, uint32_t value, const char *name,
                       const number_end *scale)
{
    table_add(t, "%s", what);
    table_add(t, "%s", type_text(t->a, &f->values.data[value]));
    table_add(t, "%s", name);
    if (t->align[3])
        table_add(t, "%s", scale_text(t->a, scale, f->values.data[value].type.dt));
}

/* Inputs, outputs and states. */
static void show_ends(writer *w, const compile_result *r)
{
    const prog_func *f = r->unit.func;
    table t = table_begin(w->a, r->n_scales > 0 ? "llll" : "lll");
    for (uint32_t i = 0; i < f->n_inputs; i++)
        add_tensor(&t, "input", f, i, f->values.data[i].name, describe_scale(r, f->values.data[i].name, true));
    for (uint32_t i = 0; i < f->results.len; i++)
        add_tensor(&t, "output", f, f->results.data[i].value, f->results.data[i].name,
                   describe_scale(r, f->results.data[i].name, false));
    for (uint32_t i = f->n_inputs; i < f->n_inputs + f->n_states; i++)
        add_tensor(&t, "state", f, i, f->values.data[i].name, NULL);
    table_print(&t, w);
}

static void add_operator(table *t, const compile_result *r, uint32_t i, bool shared)
{
    const plan_op *op = &r->plan.problem->ops.data[i];
    const prog_step *s = op->step;
    table_add(t, "%u", i);
    table_add(t, "%u", r->plan.tasks[i].layer);
    table_add(t, "%u", r->plan.tasks[i].parts);
    table_add(t, "%lld", (long long)op->func->macs);
    table_add(t, "%llu", (unsigned long long)bytes_of(r, op));
    table_add(t, "%s", s->n_args > s->n_in ? type_text(t->a, &r->unit.func->values.data[s->args[s->n_in]]) : "");
    if (shared)
        table_add(t, "%s", op->step->kernel->target->name);
    table_add(t, "%s", op->step->kernel->kind);
    table_add(t, "%s", groups_short_names(t->a, op->step->source));
}

/* Heads in order; without the one of who runs an operator where all run on one target. */
static void add_heads(table *t, const char *const *heads, size_t n, bool shared)
{
    for (size_t i = 0; i < n; i++)
        if (shared || strcmp(heads[i], "on") != 0)
            table_add(t, "%s", heads[i]);
}

/* Not all operators run on the target of the compile. */
static bool is_shared(const compile_result *r)
{
    bool shared = false;
    for (uint32_t i = 0; i < r->plan.problem->ops.len; i++)
        shared |= r->plan.problem->ops.data[i].step->kernel->target != r->unit.target;
    return shared;
}

/* What the model says of itself. */
static void show_facts(writer *w, const compile_result *r)
{
    table t = table_begin(w->a, "ll");
    for (uint32_t i = 0; r->graph && i < r->graph->facts.len; i++) {
        table_add(&t, "%s", text_line(arena_strdup(w->a, r->graph->facts.data[i].name)));
        table_add(&t, "%s", text_line(arena_strdup(w->a, r->graph->facts.data[i].text)));
    }
    if (r->graph && r->graph->facts.len > 0) {
        table_print(&t, w);
        w_str(w, "\n");
    }
}

static void show_table(writer *w, const compile_result *r, bool by_default)
{
    static const char *const heads[] = {"op", "layer", "parts", "MACs", "bytes", "result",
                                        "on", "operators", "of the model"};
    uint64_t macs = 0;
    const bool shared = is_shared(r);
    table t = table_begin(w->a, shared ? "rrrrrllll" : "rrrrrlll");
    add_heads(&t, heads, sizeof heads / sizeof *heads, shared);
    for (uint32_t i = 0; i < r->plan.problem->ops.len; i++) {
        add_operator(&t, r, i, shared);
        macs += (uint64_t)r->plan.problem->ops.data[i].func->macs;
    }
    show_facts(w, r);
    show_ends(w, r);
    w_str(w, "\n");
    table_print(&t, w);
    w_fmt(w, "\n%u operator%s in %u layer%s, %s%llu MACs, target %s%s\n", r->plan.problem->ops.len,
          r->plan.problem->ops.len == 1 ? "" : "s", r->plan.n_layers, r->plan.n_layers == 1 ? "" : "s",
          r->graph && r->graph->n_operators > 0 ? arena_printf(w->a, "from %u of the model, ", r->n_nodes) : "",
          (unsigned long long)macs, r->unit.target->name,
          by_default ? " (the default; --target takes others, such as cortex-m4)" : "");
    w_fmt(w, "workspace %llu bytes (lower bound %llu; order %s, placement %s), constants %llu bytes\n",
           (unsigned long long)r->plan.workspace_bytes, (unsigned long long)r->plan.lower_bound_bytes, r->plan.order,
           r->plan.heuristic, (unsigned long long)r->plan.constant_bytes);
    summary_print_bounds(w, r->bounds);
    show_left(w, r->prog->c, r);
    show_idle(w, r->prog->c, r);
    show_remarks(w, r->prog->c, r);
    if (r->unit.offload)
        offload_show(r->prog->c, w, r->unit.offload);
}

static void show_json(writer *w, const compile_result *r)
{
    for (uint32_t i = 0; i < r->artifact.files.len; i++)
        if (strcmp(r->artifact.files.data[i].path, "report.json") == 0)
            w_fmt(w, "%.*s", (int)r->artifact.files.data[i].len, (const char *)r->artifact.files.data[i].data);
}

/* "input  image: f32[1, 1, 8, 8]" for each of them; extents that a run decides by their names. */
static void list_tensors(ask *x, const char *kind, const run_tensor *list, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        w_fmt(&x->out, "%s %s: %s[", kind, cli_shown(x, list[i].name), dtype_name(list[i].dt));
        for (uint32_t k = 0; k < list[i].rank; k++) {
            w_str(&x->out, k ? ", " : "");
            if (list[i].open)
                dim_print(&x->out, list[i].open[k]);
            else
                w_fmt(&x->out, "%lld", (long long)list[i].dims[k]);
        }
        w_str(&x->out, "]");
        if (list[i].is_quantized)
            w_fmt(&x->out, ", scale %.9g, zero point %lld", list[i].scale, (long long)list[i].zero_point);
        w_str(&x->out, "\n");
    }
}

/* A package or a module: what its report says. */
static bool inspect_report(ask *x, const run_report *r)
{
    static const char *const heads[] = {"op", "layer", "tasks", "on", "operators"};
    if (ask_has(x, OPT_HTML))
        return ask_usage_error(x, arena_printf(&x->c->mem, "name the model that it was made of: lathe inspect MODEL "
                                               "--target %s --html %.200s", r->target, ask_get(x, OPT_HTML, "")),
                               "--html: '%.200s' is compiled already, and has neither the graph of the model nor the "
                               "schedules of its kernels", x->args.data[0]);
    if (ask_has(x, OPT_JSON)) {
        w_str(&x->out, r->text);
        return true;
    }
    bool shared = false;
    for (uint32_t i = 0; i < r->n_operators; i++)
        shared |= r->operators[i].on && strcmp(r->operators[i].on, r->target) != 0;
    table t = table_begin(&x->c->mem, shared ? "rrrll" : "rrrl");
    add_heads(&t, heads, sizeof heads / sizeof *heads, shared);
    for (uint32_t i = 0; i < r->n_operators; i++) {
        table_add(&t, "%u", i);
        table_add(&t, "%lld", (long long)r->operators[i].layer);
        table_add(&t, "%lld", (long long)r->operators[i].tasks);
        if (shared)
            table_add(&t, "%s", cli_shown(x, r->operators[i].on ? r->operators[i].on : r->target));
        table_add(&t, "%s", r->operators[i].kind);
    }
    table_print(&t, &x->out);
    w_str(&x->out, "\n");
    list_tensors(x, "input ", r->inputs, r->n_inputs);
    list_tensors(x, "output", r->outputs, r->n_outputs);
    for (uint32_t i = 0; i < r->n_extents; i++)
        if (r->extents[i].most >= 0)
            w_fmt(&x->out, "extent %s <= %lld\n", cli_shown(x, r->extents[i].name), (long long)r->extents[i].most);
    w_fmt(&x->out, "workspace %lld bytes (lower bound %lld), constants %lld bytes\n", (long long)r->workspace_bytes,
          (long long)r->lower_bound_bytes, (long long)r->constant_bytes);
    return true;
}

static bool inspect_module(ask *x, const char *path)
{
    run_model m;
    const run_module_options o = {.workers = 1, .only_look = true};
    bool ok = run_open_module(x->c, path, &o, &m);
    if (ok && !m.report)
        ok = diag_error(&x->c->diags, DIAG_UNSUPPORTED, src_loc_none(), "'%s' has no report of its operators", path);
    ok = ok && inspect_report(x, m.report);
    run_close(&m);
    return ok;
}

/* A profile belongs to the operators that this compile has: the same model, target and options. */
static bool fits(ask *x, const profile_page *p, const compile_result *r)
{
    bool same = p->n == r->plan.problem->ops.len;
    for (uint32_t i = 0; same && i < p->n; i++)
        same = strcmp(p->rows[i].kernel, r->plan.problem->ops.data[i].step->kernel->name) == 0;
    return same || ask_usage_error(x, "profile it with the options of this command",
                                   "--profile: '%.200s' was measured on other operators",
                                   ask_get(x, OPT_PAGE_PROFILE, ""));
}

static bool write_page(ask *x, const compile_options *o, const compile_result *r, const char *html)
{
    const char *file = ask_get(x, OPT_PAGE_PROFILE, NULL), *loss = ask_get(x, OPT_PAGE_LOSS, NULL);
    const char *other = ask_get(x, OPT_PAGE_COMPARE, NULL);
    profile_page p;
    html_page page = {.file = r->unit.model_file, .model = r->model, .result = r, .ram = o->ram};
    if (file && (!profile_read(x->c, file, &p) || !fits(x, &p, r)))
        return false;
    page.profile = file ? &p : NULL;
    if ((loss && !html_read_loss(x->c, loss, &page.loss)) || (other && !html_read_document(x->c, other, &page.other)))
        return false;
    return html_write_file(x->c, html, &page);
}

/* Options that say what a page shows beside the compile. */
static bool check_page_options(ask *x)
{
    static const ask_option options[] = {OPT_PAGE_PROFILE, OPT_PAGE_LOSS, OPT_PAGE_COMPARE};
    for (size_t i = 0; i < sizeof options / sizeof *options; i++)
        if (ask_has(x, options[i]) && !ask_has(x, OPT_HTML))
            return ask_usage_error(x, "add --html page.html", "--%s needs --html", ask_option_name(options[i]));
    return true;
}

static void add_value(table *t, const char *what, const graph_value *v)
{
    writer w;
    writer_init(&w, t->a);
    type_print(&w, &v->type);
    table_add(t, "%s", what);
    table_add(t, "%s", w.data);
    table_add(t, "%s", v->name);
}

/* A model with open dimensions: what does not depend on them. */
static void show_open(ask *x, const open_model *m)
{
    table io = table_begin(&x->c->mem, "lll"), t = table_begin(&x->c->mem, "rll");
    for (uint32_t i = 0; i < m->main->params.len; i++)
        add_value(&io, "input", m->main->params.data[i]);
    for (uint32_t i = 0; i < m->main->results.len; i++)
        add_value(&io, "output", m->main->results.data[i]);
    table_add(&t, "nodes");
    table_add(&t, "operator");
    table_add(&t, "names");
    for (uint32_t i = 0; i < m->kinds.all.len; i++) {
        writer names;
        writer_init(&names, &x->c->mem);
        groups_write_names(&names, &m->kinds.all.data[i]);
        table_add(&t, "%u", m->kinds.all.data[i].n);
        table_add(&t, "%s", open_model_kind(m, i));
        table_add(&t, "%s", names.data);
    }
    table_print(&io, &x->out);
    w_str(&x->out, "\n");
    table_print(&t, &x->out);
    w_fmt(&x->out, "\n%u node%s, constants %llu bytes\n", m->n_nodes, m->n_nodes == 1 ? "" : "s",
          (unsigned long long)m->constant_bytes);
    w_str(&x->out, "open dimensions:");
    for (uint32_t i = 0; i < m->n_symbols; i++)
        w_fmt(&x->out, "%s %s", i ? "," : "", cli_shown(x, m->symbols[i]));
    w_fmt(&x->out, "\nMemory and work depend on them. To see these, give a value, for example --dim %s=1, or an upper "
                   "limit, for example --dim '%s<=64'.\n", cli_shown(x, m->symbols[0]), cli_shown(x, m->symbols[0]));
}

/* True when the model was shown as it stands, or after a diagnostic, which *ok tells. */
static bool inspect_open(ask *x, const char *model, const compile_options *o, bool *ok)
{
    open_model m;
    *ok = ask_has(x, OPT_HTML) || open_model_read(x->c, model, o, &m);
    if (!*ok || ask_has(x, OPT_HTML) || !m.main)
        return !*ok;
    if (ask_has(x, OPT_JSON))
        open_model_json(&x->out, &m);
    else
        show_open(x, &m);
    return true;
}

bool cmd_inspect(ask *x)
{
    const char *model = ask_model(x), *html = ask_get(x, OPT_HTML, NULL);
    compile_options o;
    compile_result r;
    run_report report;
    bool module;
    if (!model || !ask_compile_options(x, false, &o) || !ask_is_file(x, OPT_HTML))
        return false;
    if (!check_page_options(x))
        return false;
    o.page = html != NULL;
    if (file_is_dir(model))
        return format_folder(x->c, o.verb, model) && run_read_report(x->c, model, &report) &&
               inspect_report(x, &report);
    if (!format_is_object(x->c, model, &module))
        return false;
    if (module)
        return inspect_module(x, model);
    bool ok = true;
    if (inspect_open(x, model, &o, &ok))
        return ok;
    if (!pipeline_compile(x->c, model, &o, &r))
        return false;
    if (ask_has(x, OPT_JSON))
        show_json(&x->out, &r);
    else if (!html)
        show_table(&x->out, &r, !ask_has(x, OPT_TARGET));
    if (!html)
        return true;
    return write_page(x, &o, &r, html);
}
