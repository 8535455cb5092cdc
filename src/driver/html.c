/* SPDX-License-Identifier: Apache-2.0 */
/* The page of `lathe inspect --html`: three pictures and a table. */
#include "driver/html.h"

#include <math.h>
#include <string.h>

#include "abi/package.h"
#include "codegen/c/package.h"

enum { BOX_W = 170, BOX_H = 34, GAP_X = 16, GAP_Y = 30, TIME_W = 1100, MAP_W = 1100, MAP_H = 420, ROW_H = 22 };

/* Text from a model, made safe. */
static void escaped(writer *w, const char *s)
{
    for (; s && *s; s++) {
        if (*s == '<' || *s == '>' || *s == '&' || *s == '"')
            w_fmt(w, "&#%d;", *s);
        else
            w_fmt(w, "%c", (unsigned char)*s < 32 || (unsigned char)*s > 126 ? '?' : *s);
    }
}

static void short_name(writer *w, const char *s, size_t most)
{
    char part[64];
    size_t n = strlen(s);
    if (strncmp(s, "fused_", 6) == 0) {
        s += 6;
        n -= 6;
    }
    n = n < most ? n : most;
    memcpy(part, s, n);
    part[n] = '\0';
    escaped(w, part);
}

static int hue(const char *kind)
{
    unsigned h = 7;
    for (; *kind; kind++)
        h = h * 31 + (unsigned char)*kind;
    return (int)(h % 360);
}

static double work_of(const plan_op *op)
{
    return op->work > 0 ? (double)op->work : 1.0;
}

/* --- graph: a row for each layer
 * ------------------------------------------------------------------------------------------ */

static uint32_t place_in_layer(const plan *pl, uint32_t op)
{
    const uint32_t *row = pl->layers[pl->tasks[op].layer];
    uint32_t i = 0;
    while (row[i] != op)
        i++;
    return i;
}

static void box_at(const plan *pl, uint32_t op, int *x, int *y)
{
    *x = 10 + (int)place_in_layer(pl, op) * (BOX_W + GAP_X);
    *y = 10 + (int)pl->tasks[op].layer * (BOX_H + GAP_Y);
}

static bool feeds(const plan_problem *p, uint32_t from, uint32_t to)
{
    const plan_op *a = &p->ops.data[from], *b = &p->ops.data[to];
    uint64_t s, t;
    for (uint32_t i = a->n_inputs; i < a->n_args; i++)
        for (uint32_t k = 0; k < b->n_inputs; k++)
            if (plan_root(p, a->args[i], &s) == plan_root(p, b->args[k], &t))
                return true;
    return false;
}

static void draw_edges(writer *w, const plan *pl)
{
    for (uint32_t b = 0; b < pl->problem->ops.len; b++)
        for (uint32_t a = 0; a < b; a++) {
            int x0, y0, x1, y1;
            if (!feeds(pl->problem, a, b) || pl->tasks[a].layer >= pl->tasks[b].layer)
                continue;
            box_at(pl, a, &x0, &y0);
            box_at(pl, b, &x1, &y1);
            w_fmt(w, "<path d='M%d %d C%d %d %d %d %d %d' class='edge'/>\n", x0 + BOX_W / 2, y0 + BOX_H, x0 + BOX_W / 2,
                  y0 + BOX_H + 14, x1 + BOX_W / 2, y1 - 14, x1 + BOX_W / 2, y1);
        }
}

static void draw_graph(writer *w, const compile_result *r)
{
    const plan *pl = &r->plan;
    uint32_t widest = 1;
    for (uint32_t l = 0; l < pl->n_layers; l++)
        widest = pl->layer_len[l] > widest ? pl->layer_len[l] : widest;
    w_fmt(w,
          "<h2>Graph</h2>\n<p>One row is one layer; its operators run at the same time.</p>\n<div class='scroll'><svg "
          "width='%d' height='%d'>\n",
          20 + (int)widest * (BOX_W + GAP_X), 20 + (int)pl->n_layers * (BOX_H + GAP_Y));
    draw_edges(w, pl);
    for (uint32_t op = 0; op < pl->problem->ops.len; op++) {
        int x, y;
        box_at(pl, op, &x, &y);
        w_fmt(w, "<g><title>%u: ", op);
        escaped(w, r->plan.problem->ops.data[op].step->kernel->kind);
        w_str(w, " (");
        escaped(w, r->plan.problem->ops.data[op].step->source);
        w_fmt(w,
              ")</title><rect x='%d' y='%d' width='%d' height='%d' rx='5' fill='hsl(%d 60%% 85%%)'/><text x='%d' "
              "y='%d'>%u ",
              x, y, BOX_W, BOX_H, hue(r->plan.problem->ops.data[op].step->kernel->kind), x + 6, y + 21, op);
        short_name(w, r->plan.problem->ops.data[op].step->kernel->name, 22);
        w_str(w, "</text></g>\n");
    }
    w_str(w, "</svg></div>\n");
}

/* How a run goes on where the model branches or loops. */
static void draw_steps(writer *w, const plan *pl)
{
    const plan_problem *p = pl->problem;
    if (p->steps.len <= 1)
        return;
    w_str(w, "<h2>Steps</h2>\n<p>A run walks these; the pictures show each layer once.</p>\n<ol start='0'>\n");
    for (uint32_t i = 0; i < p->steps.len; i++) {
        const plan_step *s = &p->steps.data[i];
        if (s->kind == PLAN_RUN)
            w_fmt(w, "<li>layers %u to %u", pl->segment_layer[s->to], pl->segment_layer[s->to + 1] - 1);
        else
            w_fmt(w, "<li>%s step %u", s->to <= i ? "back to" : "on to", s->to);
        if (s->kind == PLAN_JUMP_IF_ZERO) {
            w_str(w, " unless ");
            escaped(w, p->values.data[s->value].name);
        }
        w_str(w, "</li>\n");
    }
    w_str(w, "</ol>\n");
}

/* --- timeline: parts go to whichever worker is free first
 * -------------------------------------------------------------------- */

typedef struct timeline {
    double busy[128];
    uint32_t workers;
} timeline;

static double layer_end(const timeline *t)
{
    double end = 0;
    for (uint32_t i = 0; i < t->workers; i++)
        end = t->busy[i] > end ? t->busy[i] : end;
    return end;
}

/* Runs one layer; draws when scale > 0. */
static void run_layer(writer *w, const compile_result *r, uint32_t layer, timeline *t, double scale)
{
    double start = layer_end(t);
    for (uint32_t i = 0; i < t->workers; i++)
        t->busy[i] = start;
    for (uint32_t i = 0; i < r->plan.layer_len[layer]; i++) {
        uint32_t n = r->plan.layers[layer][i];
        const plan_op *op = &r->plan.problem->ops.data[n];
        const plan_task *task = &r->plan.tasks[n];
        for (uint32_t part = 0; part < task->parts; part++) {
            uint32_t first = 0;
            for (uint32_t k = 1; k < t->workers; k++)
                first = t->busy[k] < t->busy[first] ? k : first;
            double length = work_of(op) / task->parts;
            if (scale > 0) {
                w_fmt(w,
                      "<rect x='%.2f' y='%u' width='%.2f' height='%d' fill='hsl(%d 60%% 70%%)' "
                      "class='task'><title>layer %u, operator %u, part %u of %u: ",
                      60 + t->busy[first] * scale, 6 + first * ROW_H, fmax(length * scale, 0.3), ROW_H - 4,
                      hue(op->step->kernel->kind), layer, n, part + 1, task->parts);
                escaped(w, op->step->kernel->kind);
                w_str(w, "</title></rect>\n");
            }
            t->busy[first] += length;
        }
    }
}

static void draw_timeline(writer *w, const compile_result *r)
{
    const uint32_t workers = r->unit.target->workers;
    timeline t = {.workers = workers < PACKAGE_MAX_WORKERS ? workers : PACKAGE_MAX_WORKERS};
    double sum = 0;
    for (uint32_t l = 0; l < r->plan.n_layers; l++)
        run_layer(w, r, l, &t, 0);
    double total = layer_end(&t);
    for (uint32_t op = 0; op < r->plan.problem->ops.len; op++)
        sum += work_of(&r->plan.problem->ops.data[op]);
    w_fmt(w,
          "<h2>Timeline</h2>\n<p>Layers on %u workers, by estimated work; %.0f %% of the workers' time is used.</p>\n",
          t.workers, total > 0 ? 100 * sum / (total * t.workers) : 100.0);
    w_fmt(w, "<div class='scroll'><svg width='%d' height='%u'>\n", TIME_W + 80, 12 + t.workers * ROW_H);
    for (uint32_t k = 0; k < t.workers; k++)
        w_fmt(w, "<text x='0' y='%u'>worker %u</text>\n", 20 + k * ROW_H, k);
    memset(t.busy, 0, sizeof t.busy);
    for (uint32_t l = 0; l < r->plan.n_layers; l++)
        run_layer(w, r, l, &t, total > 0 ? (double)TIME_W / total : 1);
    w_str(w, "</svg></div>\n");
}

/* --- workspace
 * -------------------------------------------------------------------------------------------------------------- */

static void map_rect(writer *w, const compile_result *r, const char *name, uint64_t offset, uint64_t bytes,
                     uint32_t first, uint32_t last)
{
    double x = (double)MAP_W / (double)r->plan.n_layers,
           y = (double)MAP_H / (double)(r->plan.workspace_bytes ? r->plan.workspace_bytes : 1);
    w_fmt(w, "<g><title>");
    escaped(w, name);
    w_fmt(w,
          ": %llu bytes at %llu, layers %u to %u</title><rect x='%.2f' y='%.2f' width='%.2f' height='%.2f' "
          "class='task' fill='hsl(%d 55%% 75%%)'/></g>\n",
          (unsigned long long)bytes, (unsigned long long)offset, first, last, 60 + first * x, 6 + (double)offset * y,
          (last - first + 1) * x, fmax((double)bytes * y, 0.4), hue(name));
}

static void draw_value(writer *w, const compile_result *r, uint32_t v)
{
    const plan_problem *p = r->plan.problem;
    uint32_t first = UINT32_MAX, last = 0;
    uint64_t start;
    for (uint32_t op = 0; op < p->ops.len; op++)
        for (uint32_t i = 0; i < p->ops.data[op].n_args; i++)
            if (plan_root(p, p->ops.data[op].args[i], &start) == v) {
                uint32_t layer = r->plan.tasks[op].layer;
                first = layer < first ? layer : first;
                last = layer > last ? layer : last;
            }
    if (first != UINT32_MAX)
        map_rect(w, r, p->values.data[v].name, r->plan.places[v].offset, p->values.data[v].bytes, first, last);
}

static void draw_map(writer *w, const compile_result *r)
{
    const plan_problem *p = r->plan.problem;
    w_fmt(w,
          "<h2>Workspace</h2>\n<p>%llu bytes; the lower bound is %llu. Layers run from left to right, addresses from "
          "top to bottom.</p>\n",
          (unsigned long long)r->plan.workspace_bytes, (unsigned long long)r->plan.lower_bound_bytes);
    w_fmt(
        w,
        "<div class='scroll'><svg width='%d' height='%d'>\n<rect x='60' y='6' width='%d' height='%d' class='frame'/>\n",
        MAP_W + 80, MAP_H + 30, MAP_W, MAP_H);
    w_fmt(w, "<text x='0' y='16'>0</text><text x='0' y='%d'>%llu</text>\n", MAP_H + 6,
          (unsigned long long)r->plan.workspace_bytes);
    for (uint32_t v = 0; v < p->values.len; v++)
        if (p->values.data[v].storage == STORE_WORKSPACE && p->values.data[v].parent < 0 && p->values.data[v].bytes > 0)
            draw_value(w, r, v);
    for (uint32_t op = 0; op < p->ops.len; op++)
        for (uint32_t k = 0; k < p->ops.data[op].n_scratch; k++) {
            const plan_task *t = &r->plan.tasks[op];
            map_rect(w, r, "scratch", t->scratch_offset[k], plan_scratch_bytes(&p->ops.data[op], k, t->parts), t->layer,
                     t->layer);
        }
    w_str(w, "</svg></div>\n");
}

/* --- table
 * ------------------------------------------------------------------------------------------------------------------ */

/* Where the schedule comes from, and, to be opened, its text. */
static void draw_schedule(writer *w, const tir_func *f)
{
    if (!f->schedule) {
        w_str(w, "<td></td>");
        return;
    }
    w_str(w, "<td><details><summary>");
    escaped(w, f->schedule_from ? f->schedule_from : "rule");
    w_str(w, "</summary><pre>");
    escaped(w, f->schedule);
    w_str(w, "</pre></details></td>");
}

static void draw_row(writer *w, const compile_result *r, uint32_t i, const profile_page *p)
{
    const plan_op *op = &r->plan.problem->ops.data[i];
    const plan_task *task = &r->plan.tasks[i];
    w_fmt(w, "<tr><td>%u</td><td>%u</td><td>", i, task->layer);
    escaped(w, op->step->kernel->name);
    w_str(w, "</td><td>");
    escaped(w, op->step->kernel->kind);
    w_str(w, "</td><td>");
    escaped(w, op->step->source);
    w_fmt(w, "</td><td>%lld</td><td>%u</td>", (long long)op->func->macs, task->parts);
    if (p) {
        w_fmt(w, "<td>%.3g</td><td>%.0f %% ", p->rows[i].ms, 100 * p->rows[i].share_of_peak);
        escaped(w, p->rows[i].bound);
        w_fmt(w, "</td><td>%s</td>", p->rows[i].workers);
    }
    draw_schedule(w, op->func);
    w_str(w, "</tr>\n");
}

static void draw_table(writer *w, const compile_result *r, const profile_page *p)
{
    w_str(w, "<h2>Operators</h2>\n<div "
             "class='scroll'><table>\n<tr><th>#</th><th>layer</th><th>kernel</th><th>operators</th><th>nodes</"
             "th><th>MACs</th><th>parts</th>");
    if (p)
        w_str(w, "<th>ms</th><th>of peak</th><th>ms of each worker</th>");
    w_str(w, "<th>schedule</th></tr>\n");
    for (uint32_t i = 0; i < r->plan.problem->ops.len; i++)
        draw_row(w, r, i, p);
    w_str(w, "</table></div>\n");
}

static void proof_row(writer *w, const char *what, uint64_t n, const char *unit)
{
    w_fmt(w, "<tr><td>%s</td><td>%llu%s</td></tr>\n", what, (unsigned long long)n, unit);
}

/* The numbers of report.json's proof sheet. */
static void draw_proof(writer *w, compiler *c, const compile_result *r)
{
    const package_work work = package_most_work(c, &r->unit);
    const uint64_t stack = package_stack_bound(&r->unit);
    w_str(w, "<h2>Bounds</h2>\n<table>\n");
    proof_row(w, "workspace", r->plan.workspace_bytes, " bytes of RAM");
    proof_row(w, "tables of an instance", package_instance_bytes(&r->unit), " bytes of RAM");
    proof_row(w, "inputs and outputs, the caller's", package_caller_bytes(r->plan.problem), " bytes of RAM");
    proof_row(w, "constants", r->plan.constant_bytes, " bytes of flash");
    if (stack > 0)
        proof_row(w, "stack, at most, compiled with " STACK_ASSUMES, stack, " bytes");
    if (work.operations >= 0)
        proof_row(w, "operations of a run, at most", (uint64_t)work.operations, "");
    if (work.instructions >= 0)
        proof_row(w, "instructions of a run, at most, compiled with " STACK_ASSUMES, (uint64_t)work.instructions, "");
    if (work.why)
        w_fmt(w, "<tr><td>operations of a run</td><td>no bound: %s</td></tr>\n", work.why);
    if (r->unit.model_sha256)
        w_fmt(w, "<tr><td>SHA-256 of the model</td><td>%s</td></tr>\n", r->unit.model_sha256);
    w_str(w, "</table>\n");
}

static const char head[] =
    "<!DOCTYPE html>\n<html lang='en'>\n<head>\n<meta charset='utf-8'>\n<title>";

static const char style[] =
    ": lathe</title>\n<style>\n"
    "body { font: 14px/1.4 sans-serif; margin: 24px; color: #222; }\nsvg text { font: 11px sans-serif; }\n"
    ".scroll { overflow: auto; max-height: 640px; border: 1px solid #ccc; padding: 4px; }\n"
    ".edge { fill: none; stroke: #888; }\n.task { stroke: #fff; stroke-width: 0.3; }\n.frame { fill: #f6f6f6; stroke: "
    "#999; }\n"
    "rect { stroke: #999; stroke-width: 0.5; }\ntable { border-collapse: collapse; font-size: 12px; }\n"
    "td, th { padding: 2px 8px; border-bottom: 1px solid #ddd; text-align: left; }\n</style>\n</head>\n<body>\n<h1>";

void html_write(compiler *c, writer *w, const compile_result *r, const profile_page *p)
{
    w->step = 0;
    w_str(w, head);
    escaped(w, r->unit.model_file);
    w_str(w, style);
    escaped(w, r->unit.model_file);
    w_fmt(w, "</h1>\n<p>target %s, %u operators in %u layers, constants %llu bytes</p>\n", r->unit.target->name,
          r->plan.problem->ops.len, r->plan.n_layers, (unsigned long long)r->plan.constant_bytes);
    draw_proof(w, c, r);
    draw_graph(w, r);
    draw_steps(w, &r->plan);
    draw_timeline(w, r);
    draw_map(w, r);
    draw_table(w, r, p);
    w_str(w, "</body>\n</html>\n");
}
