/* SPDX-License-Identifier: Apache-2.0 */
/* model_data.c of a package: tensor map, operator descriptors, functions, schedule layers. */
#include "abi/package.h"
#include "codegen/c/package.h"
#include "codegen/embedded.h"

static const char *const kinds[] = {[STORE_INPUT] = "TVMRT_STORAGE_INPUT",
                                    [STORE_OUTPUT] = "TVMRT_STORAGE_OUTPUT",
                                    [STORE_CONSTANT] = "TVMRT_STORAGE_CONSTANT",
                                    [STORE_WORKSPACE] = "TVMRT_STORAGE_WORKSPACE",
                                    [STORE_STATE] = "TVMRT_STORAGE_WORKSPACE"};

static void row(writer *w, uint32_t sid, plan_storage kind, uint32_t index, uint64_t offset, uint64_t bytes,
                const char *name)
{
    w_fmt(w, "    {%u, %s, %u, %llu, %llu}, /* %s */\n", sid, kinds[kind], index, (unsigned long long)offset,
          (unsigned long long)bytes, name);
}

static void tensor_map(const package *p, writer *w)
{
    const plan_problem *pp = p->pl->problem;
    w_str(w, "static const tvmrt_tensor_map_entry_t g_tensor_map[] = {\n    /* sid, kind, index, offset, size */\n");
    for (uint32_t v = 0; v < pp->values.len; v++) {
        const plan_value *x = &pp->values.data[v];
        bool outside = x->storage == STORE_INPUT || x->storage == STORE_OUTPUT;
        const uint64_t at = p->pl->places[v].offset;
        const uint32_t area = x->storage == STORE_CONSTANT ? package_area(p, at) : 0;
        const char *name = package_comment(&p->c->mem, x->name);
        if (area > 0) /* found as inputs are: lib1 binds the area */
            row(w, v, STORE_INPUT, p->n_inputs + area - 1, at - p->areas[area].begin, x->bytes, name);
        else
            row(w, v, x->storage, outside ? x->index : 0, at, x->bytes, name);
    }
    for (uint32_t i = 0; i < pp->ops.len; i++)
        for (uint32_t k = 0; k < pp->ops.data[i].n_scratch; k++) {
            const plan_op *op = &pp->ops.data[i];
            const plan_task *t = &p->pl->tasks[i];
            row(w, package_scratch_sid(p, i, k), STORE_WORKSPACE, 0, t->scratch_offset[k],
                plan_scratch_bytes(op, k, t->parts),
                arena_printf(&p->c->mem, "scratch of operator %u", i));
        }
    if (p->n_sids == 0)
        w_str(w, "    {0, TVMRT_STORAGE_WORKSPACE, 0, 0, 0}, /* the model has no tensors */\n");
    w_str(w, "};\n\n");
}

static void sid_list(writer *w, uint32_t op, const char *what, const uint32_t *sids, uint32_t n)
{
    w_fmt(w, "static const int32_t g_op_%u_%s[] = {", op, what);
    for (uint32_t i = 0; i < n; i++)
        w_fmt(w, "%s%u", i ? ", " : "", sids[i]);
    w_str(w, n ? "};\n" : "0};\n");
}

static const char *const backends[] = {
#define X(name, value) [PACKAGE_BACKEND_##name] = "TVMRT_BACKEND_" #name,
    PACKAGE_BACKENDS(X)
#undef X
};

static void op_descs(const package *p, writer *w)
{
    const plan_problem *pp = p->pl->problem;
    for (uint32_t i = 0; i < pp->ops.len; i++) {
        const plan_op *op = &pp->ops.data[i];
        VEC(uint32_t) outs = {0};
        for (uint32_t k = op->n_inputs; k < op->n_args; k++)
            vec_push(&p->c->mem, &outs, op->args[k]);
        for (uint32_t k = 0; k < op->n_scratch; k++)
            vec_push(&p->c->mem, &outs, package_scratch_sid(p, i, k));
        sid_list(w, i, "inputs", op->args, op->n_inputs);
        sid_list(w, i, "outputs", outs.data, outs.len);
    }
    w_str(w, "\nstatic const tvmrt_op_desc_t g_op_descs[] = {\n"
             "    /* name, backend, input sids, output sids (scratch last), inputs, outputs, parts */\n");
    for (uint32_t i = 0; i < pp->ops.len; i++) {
        const plan_op *op = &pp->ops.data[i];
        w_fmt(w, "    {\"%s_%s\", %s, g_op_%u_inputs, g_op_%u_outputs, %u, %u, %u},\n", p->prefix,
              package_kernel(p, i)->name, backends[package_kernel(p, i)->backend], i, i, op->n_inputs,
              op->n_args - op->n_inputs + op->n_scratch,
              p->pl->tasks[i].parts);
    }
    w_str(w, pp->ops.len ? "};\n\n" : "    {\"none\", TVMRT_BACKEND_CPU, NULL, NULL, 0, 0, 1},\n};\n\n");
    w_str(w, "static const tvmrt_op_func_t g_cpu_func_table[] = {\n");
    for (uint32_t i = 0; i < pp->ops.len; i++)
        w_fmt(w, "    wrapped_%s,\n", package_kernel(p, i)->name);
    w_str(w, pp->ops.len ? "};\n\n" : "    NULL,\n};\n\n");
}

static uint32_t tasks_of(const plan *pl, uint32_t layer)
{
    uint32_t tasks = 0;
    for (uint32_t i = 0; i < pl->layer_len[layer]; i++)
        tasks += pl->tasks[pl->layers[layer][i]].parts;
    return tasks;
}

/* Where the model branches or loops. */
static void schedule_steps(const package *p, writer *w)
{
    const plan *pl = p->pl;
    w_str(w, "};\n\nstatic const tvmrt_schedule_step_t g_schedule_steps[] = {\n"
             "    /* kind, layer or step, layers, sid */\n");
    for (uint32_t i = 0; i < pl->problem->steps.len; i++) {
        const plan_step *s = &pl->problem->steps.data[i];
        switch (s->kind) {
        case PLAN_RUN:
            w_fmt(w, "    {TVMRT_STEP_RUN, %u, %u, 0},\n", pl->segment_layer[s->to],
                  pl->segment_layer[s->to + 1] - pl->segment_layer[s->to]);
            break;
        case PLAN_JUMP: w_fmt(w, "    {TVMRT_STEP_JUMP, %u, 0, 0},\n", s->to); break;
        case PLAN_JUMP_IF_ZERO: w_fmt(w, "    {TVMRT_STEP_JUMP_IF_ZERO, %u, 0, %u},\n", s->to, s->value); break;
        }
    }
}

static void schedule(const package *p, writer *w)
{
    uint32_t steps = p->pl->problem->steps.len;
    const plan *pl = p->pl;
    for (uint32_t l = 0; l < pl->n_layers; l++) {
        w_fmt(w, "static const uint16_t g_layer_%u_ops[] = {", l);
        for (uint32_t i = 0; i < pl->layer_len[l]; i++)
            w_fmt(w, "%s%u", i ? ", " : "", pl->layers[l][i]);
        w_str(w, "};\n");
    }
    w_str(w, "\nstatic const tvmrt_schedule_layer_t g_schedule_layers[] = {\n    /* operators, count, tasks */\n");
    for (uint32_t l = 0; l < pl->n_layers; l++)
        w_fmt(w, "    {g_layer_%u_ops, %u, %u},\n", l, pl->layer_len[l], tasks_of(pl, l));
    if (pl->n_layers == 0)
        w_str(w, "    {NULL, 0, 0},\n");
    if (steps > 1)
        schedule_steps(p, w);
    w_fmt(w, "};\n\nstatic const tvmrt_schedule_desc_t g_schedule = {g_schedule_layers, %u, ", pl->n_layers);
    w_fmt(w, steps > 1 ? "g_schedule_steps, %u};\n\n" : "NULL, 0};\n\n", steps);
}

static const char fill_args[] =
    "int32_t model_fill_args(struct @p_instance *instance)\n{\n"
    "    return tvmrt_semantic_fill_args(&instance->context, instance->args, @M_NUM_ARGS, instance->op_execs);\n}\n\n";

static const char op_args[] = "const void *model_get_op_args(const struct @p_instance *instance, uint32_t op_id)\n{\n"
                              "    return op_id < @M_NUM_OPS ? instance->op_execs[op_id].args : NULL;\n}\n";

static const char no_op_args[] =
    "const void *model_get_op_args(const struct @p_instance *instance, uint32_t op_id)\n{\n"
    "    (void)instance;\n    (void)op_id;\n    return NULL;\n}\n";

void tables_write(const package *p, writer *w)
{
    package_template(p, w,
                     "/* model_data.c: tables of model \"@n\": where its tensors are, what its operators are, in which "
                     "layers they run.\n"
                     OUTPUT_LICENCE "#include \"@n_names.h\"\n\n");
    tensor_map(p, w);
    op_descs(p, w);
    schedule(p, w);
    w_fmt(w, "static const tvmrt_model_desc_t g_model = {\n    %uu, /* TVMRT_ABI_VERSION of these tables */\n",
          PACKAGE_ABI_VERSION);
    package_template(p, w, "    \"@n\",\n    @M_NUM_INPUTS");
    if (p->n_areas > 1)
        w_fmt(w, " + %u /* constants in memories of their own */", p->n_areas - 1);
    package_template(p, w, ",\n    @M_NUM_OUTPUTS,\n");
    w_fmt(w, "    %u,\n", p->n_sids);
    package_template(p, w,
                     "    @M_NUM_OPS,\n    g_tensor_map,\n    g_op_descs,\n    g_cpu_func_table,\n"
                     "    &g_schedule,\n    @M_CONST_SIZE,\n    @M_CONST_ALIGN,\n"
                     "    @M_WORKSPACE_SIZE,\n    @M_WORKSPACE_ALIGN,\n};\n\n");
    w_str(w, embedded_text("src/codegen/c/text/accessors.c.in"));
    const bool small = package_is_small(p->u);
    if (small) {
        small_write_tables(p, w);
        w_str(w, "#if !TVMRT_SMALL\n");
    }
    package_template(p, w, fill_args);
    package_template(p, w, p->pl->problem->ops.len ? op_args : no_op_args);
    w_str(w, small ? "#endif\n" : "");
    if (p->u->opt_level == 0 && p->n_args > 0)
        package_template(p, w, embedded_text("src/codegen/c/text/named_args.c.in"));
}
