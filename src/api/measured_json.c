/* SPDX-License-Identifier: Apache-2.0 */
/* The time, instructions and memory of a run, as members of the JSON result of run and verify. */
#include "api/session.h"

#include <string.h>

static void write_operators(json_out *j, const session *s, const board_measure *m)
{
    json_out_int(j, "instructions", m->instructions);
    json_out_int(j, "counting", m->counting);
    json_out_array(j, "operators");
    for (uint32_t i = 0; i < m->n_operators; i++) {
        const run_operator *op = &s->model.report->operators[i];
        json_out_object(j, NULL);
        json_out_text(j, "kernel", op->kernel);
        json_out_text(j, "source", op->source);
        json_out_int(j, "instructions", m->operators[i]);
        json_out_end(j);
    }
    json_out_end(j);
}

/* On an emulator's board. */
static bool write_board(json_out *j, const session *s)
{
    board_measure m;
    if (!board_measured(s->x->c, &s->model, &m))
        return false;
    json_out_object(j, "board");
    json_out_text(j, "name", s->model.board->name);
    json_out_uint(j, "text", m.text);
    json_out_uint(j, "rodata", m.rodata);
    json_out_uint(j, "data", m.data);
    json_out_uint(j, "bss", m.bss);
    json_out_uint(j, "stack", m.stack);
    if (m.operators)
        write_operators(j, s, &m);
    json_out_end(j);
    return true;
}

/* On the simulated accelerator. */
static void write_accelerator(json_out *j, const session *s)
{
    json_out_object(j, "accelerator");
    json_out_written(j, "counters", s->ran.counters, strlen(s->ran.counters));
    if (s->device.cycle) {
        json_out_object(j, "cycle_model");
        run_vta_cycles_json(j, &s->ran.cycles);
        json_out_end(j);
    }
    json_out_end(j);
}

bool session_write_measured(json_out *j, const session *s)
{
    if (s->options.device)
        write_accelerator(j, s);
    return !s->model.board || write_board(j, s);
}
