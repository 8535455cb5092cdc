/* SPDX-License-Identifier: Apache-2.0 */
/* lib0 (constants, workspace, entry) and lib1 (connection to the runtime) of a package. Few constants are written out
 * as numbers; many lie in a binary file that the assembler includes, because a C compiler takes minutes for megabytes
 * of text. */
#include "codegen/c/emit.h"
#include "codegen/c/package.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Constants by their place. */
static int by_offset(const void *x, const void *y)
{
    const uint64_t *a = x, *b = y;
    return a[0] < b[0] ? -1 : a[0] > b[0] ? 1 : a[1] < b[1] ? -1 : a[1] > b[1];
}

static uint64_t (*sorted(const package *p))[2]
{
    uint64_t(*keys)[2] = arena_alloc_array(&p->c->mem, p->u->n_constants + 1u, sizeof *keys, 8);
    for (uint32_t i = 0; i < p->u->n_constants; i++) {
        keys[i][0] = p->pl->problem->values.data[p->u->constants[i].value].offset;
        keys[i][1] = i;
    }
    qsort(keys, p->u->n_constants, sizeof *keys, by_offset);
    return keys;
}

void *lib0_constants(const package *p, size_t *out_len)
{
    *out_len = (size_t)p->pl->constant_bytes;
    uint8_t *data = arena_try_alloc(&p->c->mem, *out_len, 64);
    for (uint32_t i = 0; data && i < p->u->n_constants; i++) {
        const tensor_data *t = p->u->constants[i].data;
        uint8_t *to = data + p->pl->problem->values.data[p->u->constants[i].value].offset;
        if (t->kind == TENSOR_DENSE)
            memcpy(to, t->data, tensor_size(t));
        else
            for (int64_t k = 0; k < t->count; k++)
                memcpy(to + (size_t)k * dtype_bytes(t->dt), t->data, dtype_bytes(t->dt));
    }
    return data;
}

static void write_number(const package *p, writer *w, const tensor_data *t, int64_t i)
{
    const uint8_t *at = tensor_element(t, i);
    uint16_t half;
    if (t->dt == DT_F16 || t->dt == DT_BF16) {
        memcpy(&half, at, sizeof half);
        w_fmt(w, "%u", half);
    } else if (dtype_is_float(t->dt)) {
        w_str(w, scalar_float(&p->c->mem, t->dt, tensor_get_f64(t, i)).s);
    } else {
        w_str(w, scalar_int(&p->c->mem, t->dt, tensor_get_i64(t, i)).s);
    }
}

static void write_initialiser(const package *p, writer *w, const tensor_data *t)
{
    w_str(w, "    {");
    for (int64_t i = 0; i < t->count; i++) {
        w_str(w, i == 0 ? "" : i % 12 == 0 ? ",\n     " : ", ");
        write_number(p, w, t, i);
    }
    w_str(w, "},\n");
}

static void write_struct(const package *p, writer *w)
{
    uint64_t(*keys)[2] = sorted(p), at = 0;
    package_template(p, w, "struct global_const_workspace {\n");
    for (uint32_t i = 0; i < p->u->n_constants; i++) {
        const unit_const *k = &p->u->constants[keys[i][1]];
        if (k->data->count == 0)
            continue;
        if (keys[i][0] > at)
            w_fmt(w, "    uint8_t gap_%llu[%llu];\n", (unsigned long long)at, (unsigned long long)(keys[i][0] - at));
        at = keys[i][0] + tensor_size(k->data);
        w_fmt(w, "    %s %s[%lld]; /* offset %llu: %s */\n", dtype_c_name(k->data->dt), k->name,
              (long long)k->data->count, (unsigned long long)keys[i][0], package_comment(&p->c->mem, k->name));
    }
    w_str(w, "}");
}

static void write_constants_text(const package *p, writer *w)
{
    uint64_t(*keys)[2] = sorted(p), at = 0;
    w_str(w, "TVMRT_ALIGNED(64) static const ");
    write_struct(p, w);
    w_str(w, " global_const_workspace = {\n");
    for (uint32_t i = 0; i < p->u->n_constants; i++) {
        const unit_const *k = &p->u->constants[keys[i][1]];
        if (k->data->count == 0)
            continue;
        if (keys[i][0] > at)
            w_str(w, "    {0},\n");
        at = keys[i][0] + tensor_size(k->data);
        write_initialiser(p, w, k->data);
    }
    w_str(w, "};\n\n");
}

/* The file's bytes under a symbol of the type that names the constants. */
static void write_constants_file(const package *p, writer *w)
{
    package_template(p, w, "#define global_const_workspace @p_global_const_workspace\n");
    write_struct(p, w);
    package_template(p, w,
                     ";\nextern const struct global_const_workspace global_const_workspace;\n\n"
                     "/* Looked for on the assembler's include path (-Wa,-Isrc). */\n"
                     "#ifndef @M_CONST_FILE\n#define @M_CONST_FILE \"@n_constants.bin\"\n#endif\n"
                     "__asm__(\".section .rodata\\n\"\n"
                     "        \".balign 64\\n\"\n"
                     "        \".globl @p_global_const_workspace\\n\"\n"
                     "        \".hidden @p_global_const_workspace\\n\"\n"
                     "        \"@p_global_const_workspace:\\n\"\n"
                     "        \".incbin \\\"\" @M_CONST_FILE \"\\\"\\n\"\n"
                     "        \".previous\\n\");\n\n");
}

static const char lib0_text[] =
    "const void *@p_get_const_workspace(void)\n{\n    return GLOBAL_CONSTANTS;\n}\n\n"
    "#ifndef @M_NO_STATIC_WORKSPACE\n#ifdef @M_WORKSPACE_SECTION\n"
    "TVMRT_SECTION(@M_WORKSPACE_SECTION)\n#endif\n"
    "TVMRT_ALIGNED(@M_WORKSPACE_ALIGN) static uint8_t global_workspace[WORKSPACE_BYTES];\n\n"
    "int32_t @p_run(struct @p_inputs *inputs, struct @p_outputs *outputs)\n{\n"
    "    return @p___tvm_main__(inputs, outputs, GLOBAL_CONSTANTS, global_workspace);\n}\n#endif\n";

/* Infinities and NaNs are written by the names that math.h gives them. */
static bool has_non_finite(const package *p)
{
    for (uint32_t i = 0; i < p->u->n_constants; i++) {
        const tensor_data *t = p->u->constants[i].data;
        for (int64_t k = 0; (t->dt == DT_F32 || t->dt == DT_F64) && k < t->count; k++)
            if (!isfinite(tensor_get_f64(t, k)))
                return true;
    }
    return false;
}

void lib0_write(const package *p, writer *w)
{
    bool any = p->pl->constant_bytes > 0;
    package_template(
        p, w,
        "/* @n_lib0.c: memory of model \"@n\": its constants, its static workspace, and the entry that uses both.\n"
        " * SPDX-License-Identifier: Apache-2.0 */\n#include \"@n_names.h\"\n\n");
    if (any && !p->constants_in_file && has_non_finite(p))
        w_str(w, "#include <math.h>\n\n");
    if (any && p->constants_in_file)
        write_constants_file(p, w);
    else if (any)
        write_constants_text(p, w);
    w_str(w, any ? "#define GLOBAL_CONSTANTS (&global_const_workspace)\n"
                 : "#define GLOBAL_CONSTANTS NULL /* there are none */\n");
    package_template(p, w,
                     p->pl->workspace_bytes > 0 ? "#define WORKSPACE_BYTES @M_WORKSPACE_SIZE\n\n"
                                                : "#define WORKSPACE_BYTES 1 /* none is needed; C wants one */\n\n");
    package_template(p, w, lib0_text);
}

/* --- lib1
 * -------------------------------------------------------------------------------------------------------------- */

static const char lib1_setup[] =
    "/* @n_lib1.c: connects model \"@n\" to the runtime: fills the operator table and starts the engine.\n"
    " * SPDX-License-Identifier: Apache-2.0 */\n#include \"@n_names.h\"\n\n"
    "#if defined(TVMRT_PORT_FREERTOS) && TVMRT_NUM_WORKERS > 1\n"
    "/* A negative size: TVMRT_WORKER_STACK_BYTES must hold the kernels' arrays and 1024 bytes for everything else. "
    "*/\n"
    "typedef char worker_stack_is_enough[TVMRT_WORKER_STACK_BYTES >= @M_KERNEL_STACK_BYTES + 1024 ? 1 : -1];\n"
    "#endif\n\n"
    "/* Functions and arguments of all operators, for the inputs and outputs of this run. */\n"
    "static int32_t init_op_execs(struct @p_instance *instance)\n{\n    return model_fill_args(instance);\n}\n\n"
    "static int32_t instance_setup(struct @p_instance *instance, tvmrt_engine_t *engine, const void *const_ws,\n"
    "                              void *ws, size_t ws_size)\n{\n"
    "    int32_t status = tvmrt_semantic_init(&instance->context, model_get_descriptor(), const_ws, ws, ws_size);\n"
    "    if (status != TVMRT_OK)\n        return status;\n"
    "    status = tvmrt_engine_init(engine);\n"
    "    if (status != TVMRT_OK)\n        return status;\n"
    "    instance->context.engine = engine;\n"
    "    instance->context.inputs = instance->inputs;\n"
    "    instance->context.outputs = instance->outputs;\n"
    "    instance->context.op_execs = instance->op_execs;\n"
    "    return TVMRT_OK;\n}\n\n"
    "int32_t @p_instance_init(struct @p_instance *instance, tvmrt_engine_t *engine, void *workspace,\n"
    "                         size_t workspace_size)\n{\n"
    "    if (instance == NULL)\n        return TVMRT_E_NULL;\n"
    "    return instance_setup(instance, engine, @p_get_const_workspace(), workspace, workspace_size);\n}\n\n"
    "int32_t @p_instance_set_workers(struct @p_instance *instance, uint32_t max_workers)\n{\n"
    "    if (instance == NULL)\n        return TVMRT_E_NULL;\n"
    "    instance->context.max_workers = max_workers;\n    return TVMRT_OK;\n}\n\n"
    "int32_t @p_run_instance(struct @p_instance *instance, struct @p_inputs *inputs,\n"
    "                        struct @p_outputs *outputs)\n{\n    int32_t status;\n\n"
    "    if (instance == NULL || inputs == NULL || outputs == NULL)\n        return TVMRT_E_NULL;\n";

static const char lib1_run[] =
    "    status = init_op_execs(instance);\n"
    "    if (status != TVMRT_OK)\n        return status;\n"
    "    return tvmrt_engine_run(&instance->context, model_get_schedule());\n}\n\n"
    "#ifndef @M_NO_STATIC_WORKSPACE\n"
    "int32_t @p___tvm_main__(struct @p_inputs *input, struct @p_outputs *output,\n"
    "                        const void *const_ws, void *ws)\n{\n"
    "    static struct @p_instance instance; /* of @p_run, which is not re-entrant */\n\n"
    "    if (instance.context.workspace != ws || instance.context.model == NULL) {\n"
    "        int32_t status = instance_setup(&instance, NULL, const_ws, ws, @M_WORKSPACE_SIZE);\n"
    "        if (status != TVMRT_OK)\n            return status;\n    }\n"
    "    return @p_run_instance(&instance, input, output);\n}\n#endif\n";

void lib1_write(const package *p, writer *w)
{
    package_template(p, w, lib1_setup);
    for (uint32_t i = 0; i < p->u->n_inputs; i++)
        w_fmt(w, "    instance->inputs[%u] = inputs->%s;\n", i, p->u->inputs[i].c_name);
    for (uint32_t i = 0; i < p->u->n_outputs; i++)
        w_fmt(w, "    instance->outputs[%u] = outputs->%s;\n", i, p->u->outputs[i].c_name);
    package_template(p, w, lib1_run);
}
