/* SPDX-License-Identifier: Apache-2.0 */
/* When which worker does what. A layer begins when the one before it has ended; in it, parts go to whichever worker is
 * free first. A profile already has the measured times of each worker. */
#include "driver/html_timeline.h"

#include "abi/package.h"
#include "codegen/c/package.h"

#include <math.h>

bool html_counts_instructions(const compile_result *r)
{
    return r->unit.target->address_bits == 32;
}

/* Of a table, a gather reads the rows that it takes: not more bytes than loads say. */
static uint64_t bytes_of(compiler *c, const compile_result *r, const plan_op *op)
{
    uint64_t sum = 0;
    double *times = arena_array(&c->mem, double, op->func->n_params + 1u), scratch = 0;
    for (uint32_t i = 0; i < op->func->n_params; i++)
        times[i] = 0;
    const bool counted = tir_count_accesses(c, op->func, times, &scratch) && op->func->n_params == op->n_args;
    for (uint32_t i = 0; i < op->n_args; i++) {
        const uint64_t bytes = r->plan.problem->values.data[op->args[i]].bytes;
        const double moved = counted ? times[i] * (double)dtype_bytes(op->func->params[i]->dt) : (double)bytes;
        sum += moved < (double)bytes ? (uint64_t)moved : bytes;
    }
    return sum;
}

/* Bytes a cycle that one core reads of so many. */
static double reading_rate(const target *t, const cpu_model *m, uint64_t bytes)
{
    const double near = m->loads * (t->vector_bytes > 0 ? t->vector_bytes : 4);
    return bytes <= m->l2_bytes ? near : bytes <= m->l3_bytes ? m->far_bytes : m->memory_bytes;
}

/* Products that one unit adds in a cycle: of floats one for each lane; of bytes two, or four where an instruction does
 * that. */
static double lanes_of(const target *t, const plan_op *op)
{
    const uint32_t fours = TARGET_AVX_VNNI | TARGET_AVX512_VNNI | TARGET_DOTPROD | TARGET_I8MM;
    const double lanes = t->vector_bytes > 0 ? t->vector_bytes / 4.0 : 1;
    for (uint32_t i = 0; i < op->func->n_inputs; i++)
        if (dtype_bits(op->func->params[i]->dt) <= 8)
            return lanes * ((t->features & fours) != 0 ? 4 : 2);
    return lanes;
}

html_estimate html_estimate_of(compiler *c, const compile_result *r, uint32_t i)
{
    const plan_op *op = &r->plan.problem->ops.data[i];
    const target *t = r->unit.target;
    const cpu_model *m = target_cpu(t);
    html_estimate e = {0};
    if (html_counts_instructions(r)) {
        const package_work work = package_operator_work(c, &r->unit, i);
        e.amount = work.instructions >= 0 ? (double)work.instructions : (double)op->work;
        return e;
    }
    const uint64_t bytes = bytes_of(c, r, op);
    e.sums = (double)op->func->macs / (m->fma * lanes_of(t, op));
    e.bytes = (double)bytes / reading_rate(t, m, bytes);
    e.amount = fmax(e.sums, e.bytes);
    e.amount = fmax(package_operator_slots(c, &r->unit, i) / m->issue, e.amount);
    return e;
}

typedef struct hand_out {
    json_out *j;
    const html_page *p;
    const html_estimate *estimates;
    double busy[PACKAGE_MAX_WORKERS + 1], used; /* until when each worker has work; the sum of all work */
    uint32_t workers;
} hand_out;

static double layer_end(const hand_out *h)
{
    double end = 0;
    for (uint32_t i = 0; i < h->workers; i++)
        end = fmax(end, h->busy[i]);
    return end;
}

static void add_task(hand_out *h, uint32_t worker, double length, uint32_t op)
{
    json_out_array(h->j, NULL);
    json_out_uint(h->j, NULL, worker);
    json_out_real(h->j, NULL, h->busy[worker]);
    json_out_real(h->j, NULL, length);
    json_out_uint(h->j, NULL, op);
    json_out_end(h->j);
    h->busy[worker] += length;
    h->used += length;
}

static void add_measured(hand_out *h, uint32_t op)
{
    const profile_row *row = &h->p->profile->rows[op];
    if (h->p->profile->board)
        add_task(h, 0, row->instructions, op);
    for (uint32_t k = 0; k < row->n_workers && k < h->workers; k++)
        if (row->worker_ms[k] > 0)
            add_task(h, k, row->worker_ms[k], op);
}

static void add_estimated(hand_out *h, uint32_t op)
{
    const uint32_t parts = h->p->result->plan.tasks[op].parts;
    for (uint32_t part = 0; part < parts; part++) {
        uint32_t first = 0;
        for (uint32_t k = 1; k < h->workers; k++)
            first = h->busy[k] < h->busy[first] ? k : first;
        add_task(h, first, h->estimates[op].amount / parts, op);
    }
}

static void add_layer(hand_out *h, uint32_t layer)
{
    const plan *pl = &h->p->result->plan;
    const double start = layer_end(h);
    for (uint32_t i = 0; i < h->workers; i++)
        h->busy[i] = start;
    for (uint32_t i = 0; i < pl->layer_len[layer]; i++)
        if (h->p->profile)
            add_measured(h, pl->layers[layer][i]);
        else
            add_estimated(h, pl->layers[layer][i]);
}

static uint32_t workers_of(const html_page *p)
{
    uint32_t n = p->result->unit.target->workers;
    for (uint32_t i = 0; p->profile && i < p->profile->n; i++)
        n = p->profile->rows[i].n_workers > n ? p->profile->rows[i].n_workers : n;
    n = n > 0 ? n : 1;
    return n < PACKAGE_MAX_WORKERS ? n : PACKAGE_MAX_WORKERS;
}

void html_timeline_write(json_out *j, const char *key, const html_page *p, const html_estimate *estimates)
{
    hand_out h = {.j = j, .p = p, .estimates = estimates, .workers = workers_of(p)};
    json_out_object(j, key);
    const bool counted = p->profile && p->profile->board;
    json_out_text(j, "how", counted ? "counted" : p->profile ? "measured" : "estimated");
    if (counted)
        json_out_text(j, "counted_by", p->profile->board);
    json_out_text(j, "unit", counted || (!p->profile && html_counts_instructions(p->result)) ? "instructions"
                             : p->profile                                                     ? "ms"
                                                                                              : "cycles");
    json_out_uint(j, "workers", h.workers);
    json_out_array(j, "tasks"); /* worker, start, length, kernel */
    for (uint32_t l = 0; l < p->result->plan.n_layers; l++)
        add_layer(&h, l);
    json_out_end(j);
    json_out_real(j, "length", layer_end(&h));
    json_out_real(j, "used", h.used);
    json_out_end(j);
}
