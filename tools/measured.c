/* SPDX-License-Identifier: Apache-2.0 */
/* What a run took: on a board of an emulator RAM, flash by section, instructions, and those of each operator; on the
 * simulated accelerator its counters and cycles. */
#include "shown.h"

#include <string.h>

#include "driver/groups.h"
#include "table.h"

static void show_operators(const session *s, const board_measure *m)
{
    ask *x = s->x;
    table t = table_begin(&x->c->mem, "rlrl");
    const char *const head[] = {"op", "operator", "instructions", "nodes"};
    for (size_t i = 0; i < sizeof head / sizeof *head; i++)
        table_add(&t, "%s", head[i]);
    for (uint32_t i = 0; i < m->n_operators; i++) {
        const run_operator *op = &s->model.report->operators[i];
        table_add(&t, "%u", i);
        table_add(&t, "%s", op->kernel);
        table_add(&t, "%lld", (long long)m->operators[i]);
        table_add(&t, "%s", groups_short_names(t.a, op->source));
    }
    table_print(&t, &x->out);
}

static void show_text(const session *s, const board_measure *m)
{
    const run_report *r = s->model.report;
    const board *b = s->model.board;
    writer *w = &s->x->out;
    unsigned long long fixed = m->data + m->bss;
    const char *options = strstr(b->emulator, " -display");
    const size_t machine = options ? (size_t)(options - b->emulator) : strlen(b->emulator);
    w_fmt(w, "board         %s: %sgcc, %.*s\n", b->name, b->tools, (int)machine, b->emulator);
    if (s->options.show_values) /* its outputs are all values: nobody builds a program like that */
        return;
    w_fmt(w, "RAM           %llu bytes: .data %llu, .bss %llu (workspace %lld), deepest stack %llu\n", fixed + m->stack,
          (unsigned long long)m->data, (unsigned long long)m->bss, (long long)r->workspace_bytes,
          (unsigned long long)m->stack);
    w_fmt(w, "flash         %llu bytes: .text %llu, .rodata %llu (constants %lld), .data %llu\n",
          (unsigned long long)(m->text + m->rodata + m->data), (unsigned long long)m->text,
          (unsigned long long)m->rodata, (long long)(s->model.constants ? 0 : r->constant_bytes),
          (unsigned long long)m->data);
    if (m->operators)
        w_fmt(w, "instructions  %lld (%s; the counting itself is included)\n", (long long)m->instructions, b->count);
    else
        w_fmt(w, "instructions  not counted: %s\n", s->model.uncounted);
    if (m->operators)
        show_operators(s, m);
}

bool shown_board(const session *s)
{
    board_measure m;
    if (!s->model.board)
        return true;
    if (!board_measured(s->x->c, &s->model, &m))
        return false;
    show_text(s, &m);
    return true;
}

void shown_cycles(writer *w, const vta_cycle_report *r)
{
    static const char *const stages[] = {"fetch", "load", "compute", "store"};
    w_fmt(w, "cycles: %llu", (unsigned long long)r->cycles);
    for (int i = 1; i < VTA_STAGE_COUNT; i++)
        w_fmt(w, ", %s busy %llu", stages[i], (unsigned long long)r->stage[i].busy);
    w_str(w, "\n");
}

bool shown_vta(session *s)
{
    const char *timeline = ask_get(s->x, OPT_TIMELINE, NULL);
    if (!s->options.device)
        return true;
    if (!ask_has(s->x, OPT_JSON)) {
        w_fmt(&s->x->out, "counters: %s\n", s->ran.counters);
        if (s->device.cycle)
            shown_cycles(&s->x->out, &s->ran.cycles);
    }
    return !timeline || run_vta_timeline(s->x->c, &s->ran, timeline);
}
