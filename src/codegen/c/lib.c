/* SPDX-License-Identifier: Apache-2.0 */
/* lib0 (constants, workspace, entry) and lib1 (connection to the runtime) of a package. */
#include "codegen/c/package.h"

static const char lib0_text[] =
    "const void *@p_get_const_workspace(void)\n{\n    return GLOBAL_CONSTANTS;\n}\n\n"
    "#ifndef @M_NO_STATIC_WORKSPACE\n#ifdef @M_WORKSPACE_SECTION\n"
    "TVMRT_SECTION(@M_WORKSPACE_SECTION)\n#endif\n"
    "TVMRT_ALIGNED(@M_WORKSPACE_ALIGN) static union {\n    double align;\n"
    "    uint8_t bytes[WORKSPACE_BYTES];\n} global_workspace;\n\n"
    "int32_t @p_run(struct @p_inputs *inputs, struct @p_outputs *outputs)\n{\n"
    "    return @p___tvm_main__(inputs, outputs, GLOBAL_CONSTANTS, &global_workspace);\n}\n#endif\n";

void lib0_write(const package *p, writer *w)
{
    package_template(
        p, w,
        "/* @n_lib0.c: memory of model \"@n\": its constants, its static workspace, and the entry that uses both.\n"
        OUTPUT_LICENCE "#include \"@n_names.h\"\n\n");
    constants_write(p, w);
    package_template(p, w,
                     p->pl->workspace_bytes > 0 ? "#define WORKSPACE_BYTES @M_WORKSPACE_SIZE\n\n"
                                                : "#define WORKSPACE_BYTES 1 /* none is needed; C wants one */\n\n");
    if (p->u->places && p->u->places->workspace && p->u->places->workspace->section)
        w_fmt(w, "#ifndef %s_WORKSPACE_SECTION /* in the memory %s */\n#define %s_WORKSPACE_SECTION \"%s\"\n#endif\n\n",
              p->macro, p->u->places->workspace->name, p->macro, p->u->places->workspace->section);
    package_template(p, w, lib0_text);
    if (package_has_states(p))
        package_template(p, w, "\n#ifndef @M_NO_STATIC_WORKSPACE\nint32_t @p_reset(void)\n{\n"
                               "    @p_set_states(&global_workspace);\n    return 0;\n}\n#endif\n");
    if (package_has_inside(p))
        package_template(p, w, "\n#ifndef @M_NO_STATIC_WORKSPACE\nvoid *@p_get_workspace(void)\n{\n"
                               "    return &global_workspace;\n}\n#endif\n");
}

/* --- lib1
 * -------------------------------------------------------------------------------------------------------------- */

static const char lib1_setup[] =
    "/* @n_lib1.c: connects model \"@n\" to the runtime: fills the operator table and starts the engine.\n"
    OUTPUT_LICENCE "#include \"@n_names.h\"\n\n";

static const char lib1_functions[] =
    "#if defined(TVMRT_WORKER_STACK_BYTES) && TVMRT_NUM_WORKERS > 1\n"
    "/* A negative size: TVMRT_WORKER_STACK_BYTES must hold the kernels' arrays and 1024 bytes for everything else. "
    "*/\n"
    "typedef char worker_stack_is_enough[TVMRT_WORKER_STACK_BYTES >= @M_KERNEL_STACK_BYTES + 1024 ? 1 : -1];\n"
    "#endif\n\n";

static const char lib1_fill[] =
    "/* Functions and arguments of all operators, for the inputs and outputs of this run. */\n"
    "static int32_t init_op_execs(struct @p_instance *instance)\n{\n    return model_fill_args(instance);\n}\n\n";

/* Code for wider registers than the machine's gives wrong numbers, and no fault. Without V there is an illegal
 * instruction. */
static const char lib1_vectors[] =
    "/* What is compiled for vectors of %u bytes gives wrong numbers in narrower registers. */\n"
    "static int32_t check_vectors(void)\n{\n"
    "#if defined(__riscv_vector)\n"
    "    unsigned long bytes;\n\n"
    "    __asm__ volatile(\"csrr %%0, vlenb\" : \"=r\"(bytes));\n"
    "    if (bytes < %u) {\n"
    "        tvmrt_log_push(TVMRT_LOG_ERROR, TVMRT_E_VECTORS, -1);\n"
    "        return TVMRT_E_VECTORS;\n    }\n"
    "#endif\n    return TVMRT_OK;\n}\n\n";

static const char lib1_instance[] =
    "static int32_t instance_setup(struct @p_instance *instance, tvmrt_engine_t *engine, size_t engine_size,\n"
    "                              const void *const_ws, void *ws, size_t ws_size)\n{\n";

static const char lib1_check_vectors[] =
    "    int32_t status = check_vectors();\n    if (status != TVMRT_OK)\n        return status;\n    status = ";

static const char lib1_semantic[] =
    "tvmrt_semantic_init(&instance->context, model_get_descriptor(), const_ws, ws, ws_size);\n"
    "    if (status != TVMRT_OK)\n        return status;\n"
    "    status = tvmrt_engine_init_sized(engine, engine_size);\n"
    "    if (status != TVMRT_OK) {\n"
    "        instance->context.model = NULL; /* not initialized, as after any other error */\n"
    "        return status;\n    }\n"
    "    instance->context.engine = engine;\n"
    "    instance->context.inputs = instance->inputs;\n"
    "    instance->context.outputs = instance->outputs;\n"
    "    instance->context.op_execs = instance->op_execs;\n";

/* No threads, hence no engine to start. */
static const char lib1_small_semantic[] =
    "tvmrt_semantic_init(&instance->context, model_get_small()->model, const_ws, ws, ws_size);\n"
    "    if (status == TVMRT_OK && engine != NULL && engine_size != sizeof(tvmrt_engine_t)) {\n"
    "        instance->context.model = NULL;\n        status = TVMRT_E_ABI;\n    }\n"
    "    if (status != TVMRT_OK)\n        return status;\n"
    "    instance->context.engine = engine;\n"
    "    instance->context.inputs = instance->inputs;\n"
    "    instance->context.outputs = instance->outputs;\n";

static const char lib1_ready[] = "    return TVMRT_OK;\n}\n";

static const char lib1_ready_states[] = "    @p_set_states(ws);\n    return TVMRT_OK;\n}\n";

static const char lib1_init[] =
    "int32_t @p_instance_init_sized(struct @p_instance *instance, size_t instance_size, tvmrt_engine_t *engine,\n"
    "                               size_t engine_size, void *workspace, size_t workspace_size)\n{\n"
    "    if (instance == NULL)\n        return TVMRT_E_NULL;\n"
    "    if (instance_size != sizeof *instance)\n        return TVMRT_E_ABI; /* nothing of it may be touched */\n"
    "    return instance_setup(instance, engine, engine_size, @p_get_const_workspace(), workspace,\n"
    "                          workspace_size);\n}\n\n"
    "int32_t @p_instance_set_workers(struct @p_instance *instance, uint32_t max_workers)\n{\n"
    "    if (instance == NULL)\n        return TVMRT_E_NULL;\n"
    "    instance->context.max_workers = max_workers;\n    return TVMRT_OK;\n}\n\n"
    "int32_t @p_run_instance(struct @p_instance *instance, struct @p_inputs *inputs,\n"
    "                        struct @p_outputs *outputs)\n{\n";

static const char lib1_check[] =
    "    if (instance == NULL || inputs == NULL || outputs == NULL)\n        return TVMRT_E_NULL;\n";

static const char lib1_run[] =
    "    status = init_op_execs(instance);\n"
    "    if (status != TVMRT_OK)\n        return status;\n"
    "    return tvmrt_engine_run(&instance->context, model_get_schedule());\n";

static const char lib1_no_static[] = "}\n\n#ifndef @M_NO_STATIC_WORKSPACE\n";

static const char lib1_main[] =
    "int32_t @p___tvm_main__(struct @p_inputs *input, struct @p_outputs *output,\n"
    "                        const void *const_ws, void *ws)\n{\n"
    "    static struct @p_instance instance; /* of @p_run, which is not re-entrant */\n\n"
    "    if (instance.context.model == NULL || instance.context.workspace != ws ||\n"
    "        instance.context.const_workspace != const_ws) {\n";

static const char lib1_set_up[] =
    "        int32_t status = instance_setup(&instance, NULL, 0, const_ws, ws, @M_WORKSPACE_SIZE);\n";

static const char lib1_check_set_up[] =
    "        int32_t status = const_ws == @p_get_const_workspace() ? TVMRT_OK\n"
    "                                                              : @p_set_constants(const_ws, @M_CONST_SIZE);\n"
    "        if (status == TVMRT_OK)\n"
    "            status = instance_setup(&instance, NULL, 0, const_ws, ws, @M_WORKSPACE_SIZE);\n";

static const char lib1_end[] =
    "        if (status != TVMRT_OK)\n            return status;\n    }\n"
    "    return @p_run_instance(&instance, input, output);\n}\n#endif\n";

/* An extent of the run. 0 is one that was forgotten: an empty tensor is asked for by a number of its own. */
static void bring_extent(const package *p, writer *w, uint32_t i)
{
    const char *name = p->inputs[i].c_name;
    w_fmt(w, "    if (inputs->%s == 0)\n        return TVMRT_E_EXTENT;\n", name);
    w_fmt(w, "    instance->inputs[%u] = inputs->%s == %s_EMPTY ? &no_elements : &inputs->%s;\n", i, name, p->macro,
          name);
}

static void bring_inside(const package *p, writer *w, const package_io *io)
{
    const char *name = package_upper(&p->c->mem, io->c_name);
    w_fmt(w, "    if (inputs->%s == NULL || instance->context.workspace == NULL)\n        return TVMRT_E_NULL;\n",
          io->c_name);
    w_fmt(w, "    if (inputs->%s != (const void *)((uint8_t *)instance->context.workspace + %s_%s_OFFSET))\n",
          io->c_name, p->macro, name);
    w_fmt(w, "        memcpy((uint8_t *)instance->context.workspace + %s_%s_OFFSET, inputs->%s, %s_%s_SIZE);\n",
          p->macro, name, io->c_name, p->macro, name);
}

/* Two forms of a piece, where there are two. */
static void either(const package *p, writer *w, const char *small, const char *other)
{
    if (package_is_small(p->u)) {
        w_str(w, *small ? "#if TVMRT_SMALL\n" : "#if !TVMRT_SMALL\n");
        package_template(p, w, small);
        w_str(w, *small ? "#else\n" : "");
    }
    package_template(p, w, other);
    w_str(w, package_is_small(p->u) ? "#endif\n" : "");
}

static void write_setup(const package *p, writer *w)
{
    const target *t = p->u->target;
    bool checked = t->vlen > 128; /* which is the least of V */
    const char *status = checked ? lib1_check_vectors : "    int32_t status = ";
    if (checked)
        w_fmt(w, lib1_vectors, t->vlen / 8, t->vlen / 8);
    package_template(p, w, lib1_instance);
    const char *ready = package_has_states(p) ? lib1_ready_states : lib1_ready;
    either(p, w, arena_printf(&p->c->mem, "%s%s%s", status, lib1_small_semantic, ready),
           arena_printf(&p->c->mem, "%s%s%s\n", status, lib1_semantic, ready));
    w_str(w, package_is_small(p->u) ? "\n" : "");
    package_template(p, w, lib1_init);
}

void lib1_write(const package *p, writer *w)
{
    const char *room = arena_printf(&p->c->mem, "    void *args[%u]; /* of one operator */\n\n", small_most_args(p));
    package_template(p, w, lib1_setup);
    w_str(w, package_has_inside(p) || package_has_states(p) ? "#include <string.h>\n\n" : "");
    w_str(w, package_has_extents(p) ? "static const int64_t no_elements = 0;\n\n" : "");
    package_template(p, w, lib1_functions);
    states_write(p, w);
    either(p, w, "", lib1_fill);
    write_setup(p, w);
    either(p, w, room, "    int32_t status;\n\n");
    package_template(p, w, lib1_check);
    for (uint32_t i = 0; i < p->n_inputs; i++)
        if (package_is_inside(p, &p->inputs[i]))
            bring_inside(p, w, &p->inputs[i]);
        else if (p->inputs[i].extent)
            bring_extent(p, w, i);
        else
            w_fmt(w, "    instance->inputs[%u] = inputs->%s;\n", i, p->inputs[i].c_name);
    for (uint32_t i = 1; i < p->n_areas; i++)
        w_fmt(w, "    instance->inputs[%u] = %s_get_const_area_%u();\n", p->n_inputs + i - 1, p->prefix, i);
    for (uint32_t i = 0; i < p->n_outputs; i++)
        w_fmt(w, "    instance->outputs[%u] = outputs->%s;\n", i, p->outputs[i].c_name);
    either(p, w, "    return tvmrt_small_run(&instance->context, model_get_small(), args);\n", lib1_run);
    package_template(p, w, lib1_no_static);
    package_template(p, w, lib1_main);
    package_template(p, w, p->constants_form == CONSTANTS_BIN ? lib1_check_set_up : lib1_set_up);
    package_template(p, w, lib1_end);
}
