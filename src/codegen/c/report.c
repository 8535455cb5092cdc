/* SPDX-License-Identifier: Apache-2.0 */
/* report.json of a package: what was compiled, how large it is, and where everything lies. */
#include "codegen/c/package.h"

#include "base/json_out.h"
#include "plan/stream.h"
#include "prog/source.h"

static void write_head(json_out *j, const package *p)
{
    json_out_text(j, "generator", "lathe");
    json_out_int(j, "format", 1);
    json_out_text(j, "module_name", p->u->module_name);
    json_out_text(j, "model", p->u->model_file);
    json_out_text(j, "target", p->u->target->name);
    json_out_text(j, "target_cflags", package_target_flags(p));
    json_out_text(j, "port", p->u->port->name);
    json_out_int(j, "opt_level", p->u->opt_level);
    json_out_uint(j, "workers", p->u->target->workers);
}

static void write_source(json_out *j, const char *file, const char *cflags, const char *ldflags)
{
    json_out_object(j, NULL);
    json_out_text(j, "file", file);
    json_out_text(j, "cflags", cflags);
    json_out_text(j, "ldflags", ldflags);
    json_out_end(j);
}

/* What code generators have written, and what it wants of compiler and linker. */
static void write_sources(json_out *j, const package *p)
{
    const prog_module *m = p->u->prog;
    if (m->sources.len == 0)
        return;
    json_out_array(j, "sources");
    for (uint32_t i = 0; i < m->sources.len; i++) {
        const prog_source *s = &m->sources.data[i];
        write_source(j, package_source_file(p, s), s->cflags, s->ldflags);
        for (uint32_t k = 0; k < s->n_files; k++)
            if (package_file_object(p, s, k))
                write_source(j, package_file(p, s, k), "", "");
    }
    json_out_end(j);
}

/* "shape" has the bounds then; this one is "[1, \"seq\"]". */
static void write_open_shape(json_out *j, const package *p, const shape *s)
{
    json_out_array(j, "open_shape");
    for (int32_t k = 0; k < s->rank; k++) {
        int64_t n;
        writer text;
        writer_init(&text, &p->c->mem);
        dim_print(&text, s->dims[k]);
        if (dim_is_const(s->dims[k], &n))
            json_out_int(j, NULL, n);
        else
            json_out_text(j, NULL, text.data);
    }
    json_out_end(j);
}

/* What the caller states in the struct of the inputs, behind the tensors. */
static void write_extents(json_out *j, const package *p)
{
    if (!package_is_open(p))
        return;
    json_out_array(j, "extents");
    for (uint32_t i = 0; i < p->n_inputs; i++) {
        if (!p->inputs[i].extent)
            continue;
        json_out_object(j, NULL);
        json_out_text(j, "name", dim_symbol_name(p->inputs[i].extent));
        json_out_text(j, "c_name", p->inputs[i].c_name);
        json_out_int(j, "most", dim_bound(p->inputs[i].extent));
        json_out_end(j);
    }
    json_out_end(j);
}

void report_labels(json_out *j, const char *member, const attr *l)
{
    json_out_array(j, member);
    for (uint32_t i = 0; i < l->n; i++) {
        if (l->kind == ATTR_STRINGS)
            json_out_text(j, NULL, l->u.strings[i]);
        else
            json_out_int(j, NULL, l->u.ints[i]);
    }
    json_out_end(j);
}

/* What the numbers or the columns of an output are called. */
static void write_labels(json_out *j, const attr *l)
{
    if (l)
        report_labels(j, "labels", l);
}

static void write_facts(json_out *j, const codegen_unit *u)
{
    json_out_array(j, "about");
    for (uint32_t i = 0; i < u->n_facts; i++) {
        json_out_object(j, NULL);
        json_out_text(j, "name", u->facts[i].name);
        json_out_text(j, "text", u->facts[i].text);
        json_out_end(j);
    }
    json_out_end(j);
}

const char *report_list_kind(const list_io *l)
{
    if (l->is_map)
        return "map";
    if (!l->is_sequence)
        return "optional";
    return l->is_optional ? "optional sequence" : "sequence";
}

/* A sequence, an optional or a map of the model: the tensors that are taken or given for it. */
void report_list(json_out *j, const list_io *l)
{
    json_out_object(j, NULL);
    json_out_text(j, "name", l->name);
    json_out_text(j, "kind", report_list_kind(l));
    json_out_text(j, "of", l->is_input ? "inputs" : "outputs");
    json_out_uint(j, "place", l->place);
    json_out_array(j, "parts");
    for (uint32_t k = 0; k < l->n_parts; k++) {
        json_out_object(j, NULL);
        json_out_text(j, "name", l->parts[k].name);
        json_out_text(j, "holds", l->parts[k].many ? "elements" : "element");
        if (l->parts[k].sizes)
            json_out_text(j, "sizes", l->parts[k].sizes);
        json_out_end(j);
    }
    json_out_end(j);
    if (l->is_none)
        json_out_int(j, "none", 1);
    if (l->present)
        json_out_text(j, "present", l->present);
    json_out_end(j);
}

static void write_lists(json_out *j, const codegen_unit *u)
{
    json_out_array(j, "lists");
    for (uint32_t i = 0; i < u->n_lists; i++)
        report_list(j, &u->lists[i]);
    json_out_end(j);
}

static void write_tensors(json_out *j, const char *key, const package *p, const package_io *io, uint32_t n)
{
    json_out_array(j, key);
    for (uint32_t i = 0; i < n; i++) {
        const shape *s = &io[i].type.shape;
        if (!package_is_data(&io[i]))
            continue;
        json_out_object(j, NULL);
        json_out_text(j, "name", io[i].name);
        json_out_text(j, "c_name", io[i].c_name);
        json_out_text(j, "dtype", dtype_full_name(io[i].type.dt));
        json_out_array(j, "shape");
        for (int32_t k = 0; k < s->rank; k++)
            json_out_int(j, NULL, dim_bound(s->dims[k]));
        json_out_end(j);
        if (!shape_is_static(*s))
            write_open_shape(j, p, s);
        if (io[i].shape != PROG_NONE)
            json_out_text(j, "shape_c_name", io[io[i].shape].c_name);
        json_out_uint(j, "bytes", p->pl->problem->values.data[io[i].value].bytes);
        const model_end *end = io[i].end;
        if (end) {
            json_out_real(j, "scale", end->scale);
            json_out_int(j, "zero_point", end->zero_point);
        }
        if (io[i].is_text)
            json_out_int(j, "string_bytes", package_text_bytes(&io[i]));
        write_labels(j, io[i].labels);
        json_out_end(j);
    }
    json_out_end(j);
}

static void write_numbers(json_out *j, const char *key, const uint32_t *numbers, uint32_t from, uint32_t to)
{
    json_out_array(j, key);
    for (uint32_t i = from; i < to; i++)
        json_out_uint(j, NULL, numbers[i]);
    json_out_end(j);
}

static void write_left(json_out *j, tir_left left)
{
#define X(member, key, help) json_out_uint(j, key, left.member);
    TIR_LEFT(X)
#undef X
}

/* Workers that an operator leaves without work, and why. */
static void write_idle(json_out *j, const plan *pl, uint32_t op)
{
    plan_idle_cause why;
    const uint32_t idle = plan_idle_workers(pl, op, &why);
    json_out_uint(j, "workers_idle", idle);
    if (idle > 0)
        json_out_text(j, "workers_idle_because", plan_idle_text(why));
}

/* What passes on the graph had to tell. */
static void write_remarks(json_out *j, const codegen_unit *u)
{
    json_out_array(j, "remarks");
    for (uint32_t i = 0; i < u->n_remarks; i++) {
        json_out_object(j, NULL);
        json_out_text(j, "pass", u->remarks[i].pass);
        json_out_text(j, "operator", u->remarks[i].op);
        if (*u->remarks[i].node)
            json_out_text(j, "node", u->remarks[i].node);
        else
            json_out_null(j, "node");
        json_out_text(j, "value", u->remarks[i].value);
        json_out_text(j, "remark", u->remarks[i].text);
        json_out_end(j);
    }
    json_out_end(j);
}

/* What row streaming found, and made of it where --ram or --minimize asked for it. */
static void write_bounds(json_out *j, const stream_bounds *b)
{
    if (!b)
        return;
    json_out_object(j, "streaming");
    json_out_uint(j, "one_by_one_bytes", b->one_by_one);
    json_out_uint(j, "overlapped_bytes", b->overlapped);
    json_out_uint(j, "streamed_bytes", b->streamed);
    json_out_uint(j, "reached_bytes", b->reached);
    json_out_uint(j, "chains", b->chains);
    json_out_uint(j, "kernels", b->links);
    json_out_uint(j, "macs_again", 0);
    json_out_uint(j, "copied_again_bytes", (uint64_t)b->copied_again);
    json_out_end(j);
}

static void write_totals(json_out *j, const package *p)
{
    uint64_t macs = 0, tasks = 0, idle = 0;
    tir_left left = {0};
    for (uint32_t i = 0; i < p->pl->problem->ops.len; i++) {
        macs += (uint64_t)p->pl->problem->ops.data[i].func->macs;
#define X(member, key, help) left.member += p->pl->problem->ops.data[i].func->left.member;
        TIR_LEFT(X)
#undef X
        plan_idle_cause why;
        idle += plan_idle_workers(p->pl, i, &why);
    }
    for (uint32_t l = 0; l < p->pl->n_layers; l++)
        for (uint32_t i = 0; i < p->pl->layer_len[l]; i++)
            tasks += p->pl->tasks[p->pl->layers[l][i]].parts;
    json_out_uint(j, "workspace_bytes", p->pl->workspace_bytes);
    json_out_uint(j, "workspace_lower_bound_bytes", p->pl->lower_bound_bytes);
    states_report(j, p);
    write_bounds(j, p->u->bounds);
    json_out_uint(j, "constant_bytes", p->pl->constant_bytes);
    if (p->constants_form == CONSTANTS_BIN)
        json_out_text(j, "constants_layout",
                      arena_printf(&p->c->mem, "%016llx", (unsigned long long)p->constants_layout));
    json_out_uint(j, "kernel_stack_bytes", p->stack_bytes);
    json_out_text(j, "constants", constants_form_name(p->constants_form));
    if (p->constant_file)
        json_out_text(j, "constant_file", p->constant_file);
    else
        json_out_null(j, "constant_file");
    json_out_uint(j, "macs", macs);
    write_left(j, left);
    json_out_uint(j, "workers_idle", idle);
    json_out_uint(j, "tasks", tasks);
    json_out_object(j, "plan");
    json_out_text(j, "order", p->pl->order);
    json_out_text(j, "placement", p->pl->heuristic);
    json_out_end(j);
    write_remarks(j, p->u);
}

static void write_layers(json_out *j, const plan *pl)
{
    json_out_array(j, "layers");
    for (uint32_t l = 0; l < pl->n_layers; l++)
        write_numbers(j, NULL, pl->layers[l], 0, pl->layer_len[l]);
    json_out_end(j);
}

/* How a run goes on where the model branches or loops; else there are no steps. */
static void write_steps(json_out *j, const plan *pl)
{
    static const char *const kinds[] = {"run", "jump", "jump_if_zero"};
    const plan_problem *p = pl->problem;
    if (p->steps.len <= 1)
        return;
    json_out_array(j, "steps");
    for (uint32_t i = 0; i < p->steps.len; i++) {
        const plan_step *s = &p->steps.data[i];
        json_out_object(j, NULL);
        json_out_text(j, "kind", kinds[s->kind]);
        if (s->kind == PLAN_RUN) {
            json_out_uint(j, "first_layer", pl->segment_layer[s->to]);
            json_out_uint(j, "layers", pl->segment_layer[s->to + 1] - pl->segment_layer[s->to]);
        } else {
            json_out_uint(j, "to", s->to);
        }
        if (s->kind == PLAN_JUMP_IF_ZERO)
            json_out_uint(j, "value", s->value);
        json_out_end(j);
    }
    json_out_end(j);
}

static uint64_t scratch_bytes(const plan_op *op, const plan_task *t)
{
    uint64_t sum = 0;
    for (uint32_t k = 0; k < op->n_scratch; k++)
        sum += plan_scratch_bytes(op, k, t->parts);
    return sum;
}

static void write_operators(json_out *j, const package *p)
{
    json_out_array(j, "operators");
    for (uint32_t i = 0; i < p->pl->problem->ops.len; i++) {
        const plan_op *op = &p->pl->problem->ops.data[i];
        const plan_task *t = &p->pl->tasks[i];
        const prog_kernel *k = op->step->kernel;
        json_out_object(j, NULL);
        json_out_text(j, "name", prog_kernel_base_name(&p->c->mem, k->kind));
        json_out_text(j, "kernel", k->name);
        if (k->shape)
            json_out_text(j, "code", k->shape->name);
        json_out_text(j, "kind", k->kind);
        json_out_text(j, "source", op->step->source);
        if (k->region)
            json_out_text(j, "on", k->target->name);
        if (*package_op_extents(p, i))
            json_out_text(j, "extents", package_op_extents(p, i));
        json_out_int(j, "macs", op->func->macs);
        if (op->func->schedule_from)
            json_out_text(j, "schedule", op->func->schedule_from);
        write_left(j, op->func->left);
        write_idle(j, p->pl, i);
        json_out_uint(j, "tasks", t->parts);
        json_out_uint(j, "layer", t->layer);
        write_numbers(j, "inputs", op->args, 0, op->n_inputs);
        write_numbers(j, "outputs", op->args, op->n_inputs, op->n_args);
        json_out_uint(j, "scratch_bytes", scratch_bytes(op, t));
        json_out_uint(j, "stack_bytes", package_stack_bytes(package_code(op)));
        json_out_end(j);
    }
    json_out_end(j);
}

/* Who runs which part, and why the rest stayed. */
static void write_offload(json_out *j, const offload_log *log)
{
    if (!log)
        return;
    json_out_object(j, "offload");
    json_out_array(j, "regions");
    for (uint32_t i = 0; i < log->regions.len; i++) {
        const offload_region *r = &log->regions.data[i];
        json_out_object(j, NULL);
        json_out_text(j, "name", r->name);
        json_out_text(j, "target", r->target);
        json_out_text(j, "on", r->on ? r->on : r->target);
        if (r->why)
            json_out_text(j, "declined", r->why);
        json_out_text(j, "operations", r->operations);
        json_out_uint(j, "nodes", r->n_nodes);
        json_out_uint(j, "work", r->work);
        json_out_end(j);
    }
    json_out_end(j);
    json_out_array(j, "stayed");
    for (uint32_t i = 0; i < log->stayed.len; i++) {
        json_out_object(j, NULL);
        json_out_text(j, "node", log->stayed.data[i].node);
        json_out_text(j, "operator", log->stayed.data[i].op);
        json_out_text(j, "why", log->stayed.data[i].why);
        json_out_end(j);
    }
    json_out_end(j);
    json_out_end(j);
}

static void write_values(json_out *j, const package *p)
{
    json_out_array(j, "values");
    for (uint32_t i = 0; i < p->pl->problem->values.len; i++) {
        const plan_value *v = &p->pl->problem->values.data[i];
        json_out_object(j, NULL);
        json_out_text(j, "name", v->name);
        json_out_text(j, "storage", plan_storage_text(v->storage));
        if (p->u->func->values.data[i].memory)
            json_out_text(j, "memory", p->u->func->values.data[i].memory);
        json_out_uint(j, "offset", p->pl->places[i].offset);
        json_out_uint(j, "bytes", v->bytes);
        if (v->parent >= 0)
            json_out_int(j, "in", v->parent);
        json_out_end(j);
    }
    json_out_end(j);
}

static void write_members(json_out *j, const package *p)
{
    write_head(j, p);
    write_sources(j, p);
    write_tensors(j, "inputs", p, p->inputs, p->n_inputs);
    write_tensors(j, "outputs", p, p->outputs, p->n_outputs);
    if (p->u->n_lists > 0)
        write_lists(j, p->u);
    if (p->u->n_facts > 0)
        write_facts(j, p->u);
    write_extents(j, p);
    write_totals(j, p);
    write_layers(j, p->pl);
    write_steps(j, p->pl);
    write_operators(j, p);
    proof_write(j, p);
    write_offload(j, p->u->offload);
    write_values(j, p);
}

void report_write(const package *p, writer *w)
{
    json_out j = json_out_begin(w, JSON_OUT_LINES);
    json_out_object(&j, NULL);
    write_members(&j, p);
    json_out_end(&j);
    w_str(w, "\n");
}

void report_write_functions(const package *p, writer *w)
{
    json_out j = json_out_begin(w, JSON_OUT_LINES);
    json_out_object(&j, NULL);
    json_out_text(&j, "module", p->u->module_name);
    json_out_uint(&j, "workspace_bytes", p->pl->workspace_bytes);
    json_out_uint(&j, "constant_bytes", p->pl->constant_bytes);
    json_out_array(&j, "functions");
    for (uint32_t i = 0; i < p->n_functions; i++) {
        json_out_object(&j, NULL);
        json_out_text(&j, "signature", p->functions[i].u->signature);
        write_members(&j, &p->functions[i]);
        json_out_end(&j);
    }
    json_out_end(&j);
    json_out_end(&j);
    w_str(w, "\n");
}
