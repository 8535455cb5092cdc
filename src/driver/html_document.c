/* SPDX-License-Identifier: Apache-2.0 */
/* The document of a page: everything that it shows, as JSON. The page itself computes only sums and shares of these
 * numbers. */
#include "driver/html.h"

#include <string.h>

#include "base/json_out.h"
#include "codegen/c/package.h"
#include "codegen/c/placement.h"
#include "driver/html_memory.h"
#include "driver/html_model.h"
#include "driver/html_timeline.h"
#include "driver/summary.h"
#include "plan/stream.h"
#include "prog/source.h"
#include "tir/text.h"

typedef struct document {
    compiler *c;
    json_out j;
    const html_page *p;
    const compile_result *r;
    const html_estimate *estimates; /* of each kernel */
    VEC(const tir_func *) code;     /* loops of kernels, each once */
    ptr_map code_numbers;
} document;

static void write_numbers(json_out *j, const char *key, const uint32_t *list, uint32_t from, uint32_t to)
{
    json_out_array(j, key);
    for (uint32_t i = from; i < to; i++)
        json_out_uint(j, NULL, list[i]);
    json_out_end(j);
}

/* --- the head --- */

static void write_head(document *d)
{
    const char *slash = strrchr(d->p->file, '/');
    json_out_text(&d->j, "generator", "lathe");
    json_out_text(&d->j, "kind", "page");
    json_out_int(&d->j, "format", 1);
    json_out_text(&d->j, "file", slash ? slash + 1 : d->p->file);
}

static void write_target(document *d)
{
    const codegen_unit *u = &d->r->unit;
    json_out_object(&d->j, "target");
    json_out_text(&d->j, "name", u->target->name);
    json_out_text(&d->j, "port", u->port->name);
    json_out_uint(&d->j, "workers", u->target->workers);
    json_out_int(&d->j, "opt_level", u->opt_level);
    json_out_uint(&d->j, "vector_bytes", u->target->vector_bytes);
    json_out_end(&d->j);
}

/* --- the verdict --- */

/* Kernels of which `left` is not 0. */
#define X(member, key, help)                                                           \
    static bool has_##member(const compile_result *r, uint32_t op)                     \
    {                                                                                  \
        return r->plan.problem->ops.data[op].func->left.member > 0;                    \
    }
TIR_LEFT(X)
#undef X

static bool has_idle(const compile_result *r, uint32_t op)
{
    plan_idle_cause why;
    return plan_idle_workers(&r->plan, op, &why) > 0;
}

static void write_slow(document *d, bool (*is)(const compile_result *, uint32_t), const char *key, const char *help)
{
    bool any = false;
    for (uint32_t i = 0; i < d->r->plan.problem->ops.len; i++) {
        if (!is(d->r, i))
            continue;
        if (!any) {
            json_out_object(&d->j, NULL);
            json_out_text(&d->j, "what", key);
            json_out_text(&d->j, "help", help);
            json_out_array(&d->j, "kernels");
        }
        any = true;
        json_out_uint(&d->j, NULL, i);
    }
    if (any) {
        json_out_end(&d->j);
        json_out_end(&d->j);
    }
}

static void write_remarks(document *d)
{
    json_out_array(&d->j, "remarks");
    for (uint32_t i = 0; i < d->r->n_remarks; i++) {
        const codegen_remark *x = &d->r->remarks[i];
        json_out_object(&d->j, NULL);
        json_out_text(&d->j, "pass", x->pass);
        json_out_text(&d->j, "operator", x->op);
        json_out_text(&d->j, "node", x->node);
        json_out_text(&d->j, "value", x->value);
        json_out_text(&d->j, "remark", x->text);
        json_out_end(&d->j);
    }
    json_out_end(&d->j);
}

static void write_work(json_out *j, const package_work *work)
{
    if (work->operations >= 0)
        json_out_int(j, "operations", work->operations);
    if (work->instructions >= 0)
        json_out_int(j, "instructions", work->instructions);
    if (work->why)
        json_out_text(j, "unbounded_because", work->why);
}

static void write_verdict(document *d)
{
    const codegen_unit *u = &d->r->unit;
    const package_work work = package_most_work(d->c, u);
    const uint64_t stack = package_stack_bound(u);
    json_out_object(&d->j, "verdict");
    json_out_uint(&d->j, "workspace_bytes", d->r->plan.workspace_bytes);
    json_out_uint(&d->j, "table_bytes", package_instance_bytes(u));
    json_out_uint(&d->j, "constant_bytes", d->r->plan.constant_bytes);
    json_out_uint(&d->j, "caller_bytes", package_caller_bytes(d->r->plan.problem));
    if (stack > 0)
        json_out_uint(&d->j, "stack_bytes", stack);
    if (d->p->ram > 0)
        json_out_uint(&d->j, "ram_limit", d->p->ram);
    placement_json(&d->j, u->places);
    write_work(&d->j, &work);
    json_out_text(&d->j, "bounds_assume", STACK_ASSUMES);
    json_out_uint(&d->j, "quantized", d->r->quantised);
    json_out_uint(&d->j, "quantized_in_float", d->r->n_quantised);
    json_out_array(&d->j, "slow");
#define X(member, key, help) write_slow(d, has_##member, key, help);
    TIR_LEFT(X)
#undef X
    write_slow(d, has_idle, "workers_idle", "some workers have nothing to do while these run");
    json_out_end(&d->j);
    write_remarks(d);
    if (u->model_sha256)
        json_out_text(&d->j, "model_sha256", u->model_sha256);
    json_out_end(&d->j);
}

/* --- values and kernels --- */

static void write_ends(document *d)
{
    const prog_func *f = d->r->unit.func;
    json_out_array(&d->j, "inputs");
    for (uint32_t i = 0; i < f->n_inputs; i++)
        json_out_uint(&d->j, NULL, i);
    json_out_end(&d->j);
    json_out_array(&d->j, "outputs");
    for (uint32_t i = 0; i < f->results.len; i++) {
        json_out_object(&d->j, NULL);
        json_out_text(&d->j, "name", f->results.data[i].name);
        json_out_uint(&d->j, "value", f->results.data[i].value);
        json_out_end(&d->j);
    }
    json_out_end(&d->j);
}

static const char *type_text(arena *a, const prog_value *v)
{
    writer w;
    writer_init(&w, a);
    if (v->extent)
        w_fmt(&w, "extent %s", dim_symbol_name(v->extent));
    else
        type_print(&w, &v->type);
    return w.data;
}

/* Those of the program; the plan numbers them alike. */
static void write_values(document *d)
{
    const plan_problem *p = d->r->plan.problem;
    json_out_array(&d->j, "values");
    for (uint32_t i = 0; i < p->values.len; i++) {
        uint64_t start;
        const uint32_t root = plan_root(p, i, &start);
        json_out_object(&d->j, NULL);
        json_out_text(&d->j, "name", p->values.data[i].name);
        json_out_text(&d->j, "type", type_text(&d->c->mem, &d->r->unit.func->values.data[i]));
        json_out_text(&d->j, "storage", plan_storage_text(p->values.data[i].storage));
        json_out_uint(&d->j, "bytes", p->values.data[i].bytes);
        if (root != i)
            json_out_uint(&d->j, "in", root);
        json_out_end(&d->j);
    }
    json_out_end(&d->j);
}

static uint32_t code_of(document *d, const tir_func *f)
{
    uint32_t n;
    if (ptr_map_get(&d->code_numbers, f, &n))
        return n;
    n = d->code.len;
    vec_push(&d->c->mem, &d->code, f);
    ptr_map_set(&d->code_numbers, f, n);
    return n;
}

static void write_nodes(document *d, const prog_step *s)
{
    json_out_array(&d->j, "nodes");
    for (uint32_t i = 0; d->p->model && i < s->n_nodes; i++) {
        const uint32_t n = html_model_find(d->p->model, &s->nodes[i]);
        if (n != UINT32_MAX)
            json_out_uint(&d->j, NULL, n);
    }
    json_out_end(&d->j);
}

static void write_measured(json_out *j, const profile_page *p, uint32_t i)
{
    const profile_row *row = &p->rows[i];
    json_out_object(j, "measured");
    if (p->board) {
        json_out_real(j, "instructions", row->instructions);
    } else {
        json_out_real(j, "ms", row->ms);
        json_out_real(j, "share_of_peak", row->share_of_peak);
        json_out_text(j, "bound", row->bound);
    }
    json_out_end(j);
}

static void write_estimate(json_out *j, const html_estimate *e)
{
    json_out_object(j, "estimate");
    json_out_real(j, "amount", e->amount);
    if (e->sums > 0 || e->bytes > 0) {
        json_out_real(j, "sums", e->sums);
        json_out_real(j, "bytes", e->bytes);
    }
    json_out_end(j);
}

static void write_kernel(document *d, uint32_t i)
{
    const plan_op *op = &d->r->plan.problem->ops.data[i];
    const prog_kernel *k = op->step->kernel;
    json_out *j = &d->j;
    json_out_object(j, NULL);
    json_out_text(j, "kernel", k->name);
    json_out_text(j, "kind", k->kind);
    json_out_text(j, "source", op->step->source);
    if (k->target != d->r->unit.target)
        json_out_text(j, "on", k->target->name);
    if (k->declined)
        json_out_text(j, "declined", k->declined);
    write_nodes(d, op->step);
    write_numbers(j, "inputs", op->args, 0, op->n_inputs);
    write_numbers(j, "outputs", op->args, op->n_inputs, op->n_args);
    json_out_uint(j, "layer", d->r->plan.tasks[i].layer);
    json_out_uint(j, "parts", d->r->plan.tasks[i].parts);
    json_out_int(j, "macs", op->func->macs);
    write_estimate(j, &d->estimates[i]);
    if (d->p->profile)
        write_measured(j, d->p->profile, i);
    if (op->func->schedule) {
        json_out_object(j, "schedule");
        json_out_text(j, "from", op->func->schedule_from ? op->func->schedule_from : "rule");
        json_out_text(j, "text", op->func->schedule);
        json_out_end(j);
    }
    json_out_uint(j, "code", code_of(d, k->device ? k->device : package_code(op)));
    if (k->symbol)
        json_out_text(j, "symbol", k->symbol);
    json_out_end(j);
}

static void write_kernels(document *d)
{
    json_out_array(&d->j, "kernels");
    for (uint32_t i = 0; i < d->r->plan.problem->ops.len; i++)
        write_kernel(d, i);
    json_out_end(&d->j);
}

/* Loops as text and as C. Those of a device have no C: who wrote code for it wrote a source of its own, below. */
static void write_code(document *d)
{
    json_out_array(&d->j, "code");
    for (uint32_t i = 0; i < d->code.len; i++) {
        const tir_func *f = d->code.data[i];
        writer loops, text;
        writer_init(&loops, &d->c->mem);
        writer_init(&text, &d->c->mem);
        tir_print_func(&loops, f);
        json_out_object(&d->j, NULL);
        json_out_text(&d->j, "name", f->name);
        json_out_text(&d->j, "loops", loops.data);
        const diags_mark mark = diags_get_mark(&d->c->diags);
        if (codegen_c_func_alone(d->c, &text, f, f->name, f->target ? f->target : d->r->unit.target))
            json_out_text(&d->j, "c", text.data);
        else
            diags_reset(&d->c->diags, mark);
        json_out_end(&d->j);
    }
    json_out_end(&d->j);
    json_out_array(&d->j, "sources");
    for (uint32_t i = 0; i < d->r->prog->sources.len; i++) {
        const prog_source *s = &d->r->prog->sources.data[i];
        if (!s->text)
            continue;
        json_out_object(&d->j, NULL);
        json_out_text(&d->j, "target", s->target->name);
        json_out_text(&d->j, "text", s->text);
        json_out_end(&d->j);
    }
    json_out_end(&d->j);
}

/* --- the run --- */

/* How a run goes on where the model branches or loops. */
static void write_steps(document *d)
{
    const plan *pl = &d->r->plan;
    const plan_problem *p = pl->problem;
    if (p->steps.len <= 1)
        return;
    json_out_array(&d->j, "steps");
    for (uint32_t i = 0; i < p->steps.len; i++) {
        const plan_step *s = &p->steps.data[i];
        json_out_object(&d->j, NULL);
        if (s->kind == PLAN_RUN) {
            json_out_uint(&d->j, "first_layer", pl->segment_layer[s->to]);
            json_out_uint(&d->j, "end_layer", pl->segment_layer[s->to + 1]);
        } else {
            json_out_uint(&d->j, "to", s->to);
        }
        if (s->kind == PLAN_JUMP_IF_ZERO)
            json_out_text(&d->j, "unless", p->values.data[s->value].name);
        json_out_end(&d->j);
    }
    json_out_end(&d->j);
}

static void write_regions(document *d)
{
    const offload_log *log = d->r->unit.offload;
    if (!log)
        return;
    json_out_array(&d->j, "stayed");
    for (uint32_t i = 0; i < log->stayed.len; i++) {
        json_out_object(&d->j, NULL);
        json_out_text(&d->j, "node", log->stayed.data[i].node);
        json_out_text(&d->j, "operator", log->stayed.data[i].op);
        json_out_text(&d->j, "why", log->stayed.data[i].why);
        json_out_end(&d->j);
    }
    json_out_end(&d->j);
}

static void write_result(document *d)
{
    const uint32_t n = d->r->plan.problem->ops.len;
    html_estimate *e = arena_array(&d->c->mem, html_estimate, n + 1u);
    for (uint32_t i = 0; i < n; i++)
        e[i] = html_estimate_of(d->c, d->r, i);
    d->estimates = e;
    write_target(d);
    write_verdict(d);
    write_ends(d);
    write_values(d);
    write_kernels(d);
    write_code(d);
    json_out_uint(&d->j, "layers", d->r->plan.n_layers);
    write_steps(d);
    write_regions(d);
    html_memory_write(&d->j, "memory", d->c, d->r);
    html_timeline_write(&d->j, "timeline", d->p, e);
}

/* Why a model has no result: what the compiler said. */
static void write_problems(document *d)
{
    json_out_array(&d->j, "problems");
    for (const diag *x = d->c->diags.first; x; x = x->next) {
        if (x->level != DIAG_ERROR)
            continue;
        json_out_object(&d->j, NULL);
        json_out_text(&d->j, "where", src_loc_print(x->loc, &d->c->mem));
        json_out_text(&d->j, "text", x->text);
        json_out_text(&d->j, "hint", x->hint);
        json_out_end(&d->j);
    }
    json_out_end(&d->j);
}

void html_write_document(compiler *c, writer *w, const html_page *p)
{
    document d = {.c = c, .j = json_out_begin(w, JSON_OUT_LINES), .p = p, .r = p->result};
    ptr_map_init(&d.code_numbers, &c->mem);
    json_out_object(&d.j, NULL);
    write_head(&d);
    if (p->model)
        html_model_write(&d.j, "model", p->model);
    if (p->result)
        write_result(&d);
    else
        write_problems(&d);
    json_out_end(&d.j);
    w_str(w, "\n");
}
