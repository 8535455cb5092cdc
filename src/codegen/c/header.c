/* SPDX-License-Identifier: Apache-2.0 */
/* The headers of a package: the public one, the storage of an instance, and the names that its files share. */
#include "abi/package.h"
#include "codegen/c/package.h"

static void sizes(const package *p, writer *w, const package_io *io, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        if (!package_is_data(&io[i]))
            continue;
        w_fmt(w, "#define %s_%s_SIZE %lluu /* %s: %s ", p->macro, package_upper(&p->c->mem, io[i].c_name),
              (unsigned long long)p->pl->problem->values.data[io[i].value].bytes,
              package_comment(&p->c->mem, io[i].name), dtype_full_name(io[i].type.dt));
        package_shape(w, &io[i].type);
        w_str(w, shape_is_static(io[i].type.shape) ? " */\n" : ", at most */\n");
    }
}

static const char inside_comment[] =
    "\n/* These inputs lie in the workspace, so many bytes from its start, and are gone after a run. Write one there\n"
    " * and give its address in the struct, and nothing is copied; what lies elsewhere is copied there. */\n";

static void inside(const package *p, writer *w)
{
    w_str(w, package_has_inside(p) ? inside_comment : "");
    for (uint32_t i = 0; i < p->n_inputs; i++)
        if (package_is_inside(p, &p->inputs[i]))
            w_fmt(w, "#define %s_%s_OFFSET %lluu\n", p->macro, package_upper(&p->c->mem, p->inputs[i].c_name),
                  (unsigned long long)p->pl->places[p->inputs[i].value].offset);
    if (package_has_inside(p))
        package_template(p, w, "void *@p_get_workspace(void); /* the static one, of @p_run */\n\n");
}

/* Of inputs and outputs that are handed over quantised. */
static void ends(const package *p, writer *w, const package_io *io, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        const codegen_end *end = io[i].end;
        if (!end)
            continue;
        const char *name = package_upper(&p->c->mem, io[i].c_name);
        w_fmt(w, "#define %s_%s_SCALE ((float)%.9g) /* value = scale * (number - zero point) */\n", p->macro, name,
              end->scale);
        w_fmt(w, "#define %s_%s_ZERO_POINT (%lld)\n", p->macro, name, (long long)end->zero_point);
    }
}

/* A string of the model as one of C: what is no letter, digit or common sign stands as a number. */
static void string_literal(writer *w, const char *s)
{
    w_str(w, "\"");
    for (; *s; s++) {
        const unsigned char ch = (unsigned char)*s;
        const bool plain = ch >= ' ' && ch < 127 && ch != '"' && ch != '\\' && ch != '?';
        w_fmt(w, plain ? "%c" : "\\%03o", ch);
    }
    w_str(w, "\"");
}

/* Macros, so that a table takes memory only where a program uses it. */
static void labels(const package *p, writer *w)
{
    for (uint32_t i = 0; i < p->n_outputs; i++) {
        const attr *l = p->outputs[i].labels;
        if (!l)
            continue;
        const char *name = package_upper(&p->c->mem, p->outputs[i].c_name);
        const bool strings = l->kind == ATTR_STRINGS;
        const bool columns = dtype_is_float(p->outputs[i].type.dt) || p->outputs[i].end; /* scores */
        w_fmt(w, "\n/* What the %s of %s %s: static const %s[] = %s_%s_LABELS; */\n", columns ? "columns" : "numbers",
              package_comment(&p->c->mem, p->outputs[i].name), columns ? "are called" : "stand for",
              strings ? "char *const names" : "int64_t names", p->macro, name);
        w_fmt(w, "#define %s_%s_NUM_LABELS %u\n#define %s_%s_LABELS {", p->macro, name, l->n, p->macro, name);
        for (uint32_t k = 0; k < l->n; k++) {
            w_str(w, k ? ", " : "");
            if (strings)
                string_literal(w, l->u.strings[k]);
            else
                w_fmt(w, "%lld", (long long)l->u.ints[k]);
        }
        w_str(w, "}\n");
    }
}

/* Those that the caller has to know: of tensors, and of extents, which it states. */
static void counts(const package *p, writer *w)
{
    uint32_t tensors = 0, extents = 0, results = 0;
    for (uint32_t i = 0; i < p->n_inputs; i++) {
        tensors += package_is_data(&p->inputs[i]);
        extents += p->inputs[i].extent != NULL;
    }
    for (uint32_t i = 0; i < p->n_outputs; i++)
        results += package_is_data(&p->outputs[i]);
    w_fmt(w, "#define %s_NUM_INPUTS %u\n#define %s_NUM_OUTPUTS %u\n", p->macro, p->n_inputs, p->macro, p->n_outputs);
    w_fmt(w, "/* Of these, tensors, and extents that the caller states; other outputs are shapes. */\n"
             "#define %s_NUM_INPUT_TENSORS %u\n#define %s_NUM_EXTENTS %u\n#define %s_NUM_OUTPUT_TENSORS %u\n",
          p->macro, tensors, p->macro, extents, p->macro, results);
}

/* The extents that a caller states, and those of outputs that the data decides. */
static void bounds(const package *p, writer *w)
{
    if (package_has_extents(p))
        w_fmt(w, "#define %s_EMPTY (%d) /* an extent of 0, as a caller states it */\n", p->macro, PACKAGE_EMPTY);
    for (uint32_t i = 0; i < p->n_inputs; i++)
        if (p->inputs[i].extent)
            w_fmt(w, "#define %s_%s_MAX %lld /* the most that %s may be */\n", p->macro,
                  package_upper(&p->c->mem, p->inputs[i].c_name), (long long)dim_bound(p->inputs[i].extent),
                  package_comment(&p->c->mem, p->inputs[i].name));
    for (uint32_t i = 0; i < p->n_bounds; i++)
        w_fmt(w, "#define %s_%s_MAX %lld /* the most that %s, which the data decides, can be */\n", p->macro,
              package_upper(&p->c->mem, p->bounds[i].c_name), (long long)p->bounds[i].most,
              package_comment(&p->c->mem, p->bounds[i].name));
}

static void fields(const package *p, writer *w, const char *kind, const package_io *io, uint32_t n)
{
    bool is_input = io == p->inputs;
    w_fmt(w, "struct %s_%s {\n", p->prefix, kind);
    for (uint32_t i = 0; i < n; i++) {
        if (io[i].extent)
            w_fmt(w, "    int64_t %s; /* set it: this extent of the other inputs, in this run */\n", io[i].c_name);
        else if (io[i].shape_of != PROG_NONE)
            w_fmt(w, "    int64_t %s[%d]; /* written by the run: the shape of %s */\n", io[i].c_name,
                  p->outputs[io[i].shape_of].type.shape.rank, p->outputs[io[i].shape_of].c_name);
        else
            w_fmt(w, "    %s%s *%s;\n", is_input ? "const " : "", dtype_c_name(io[i].type.dt), io[i].c_name);
    }
    if (n == 0)
        w_fmt(w, "    void *none; /* the model has no %s */\n", kind);
    w_str(w, "};\n\n");
}

static uint32_t area_align(uint64_t bytes)
{
    return bytes > 0 ? PACKAGE_MAX_ALIGN : 1;
}

static const char extents_comment[] =
    "/* Numbers among the inputs are extents: set every one before each run, from 1 to its ..._MAX, or to @M_EMPTY\n"
    " * for an extent of 0. A run that finds 0 there returns TVMRT_E_EXTENT (-16): it was forgotten. */\n";
static const char open_comment[] =
    "/* Tensors have no gaps at the extents of the run; shapes of outputs tell theirs. */\n";

static void states(const package *p, writer *w)
{
    if (package_has_states(p))
        package_template(p, w,
                         "/* The model has states: memory at the beginning of its workspace that keeps its value from "
                         "run to run. They\n * begin anew with the first run, with an init, and here: for the static "
                         "workspace, and for an instance. */\n"
                         "int32_t @p_reset(void);\n"
                         "int32_t @p_instance_reset(struct @p_instance *instance);\n");
}

void header_write(const package *p, writer *w)
{
    package_template(p, w,
                     "/* @p.h: what a program needs to run model \"@n\". All memory is static: no function allocates.\n"
                     OUTPUT_LICENCE
                     "#ifndef @M_H\n#define @M_H\n\n#include <stddef.h>\n#include <stdint.h>\n\n"
                     "#ifdef __cplusplus\nextern \"C\" {\n#endif\n\n");
    counts(p, w);
    w_str(w, "\n/* Bytes; exact. */\n");
    w_fmt(w, "#define %s_WORKSPACE_SIZE %lluu\n#define %s_WORKSPACE_ALIGN %uu\n", p->macro,
          (unsigned long long)p->pl->workspace_bytes, p->macro, area_align(p->pl->workspace_bytes));
    if (package_has_states(p))
        w_fmt(w, "#define %s_STATES_SIZE %lluu /* of the workspace: keeps its value between runs */\n", p->macro,
              (unsigned long long)p->pl->state_bytes);
    w_fmt(w, "#define %s_CONST_SIZE %lluu\n#define %s_CONST_ALIGN %uu\n", p->macro,
          (unsigned long long)package_placed_bytes(p), p->macro, area_align(package_constant_bytes(p)));
    w_fmt(w,
          "/* Arrays on the stack of the thread that runs a kernel, at most; the frame itself comes on top. */\n"
          "#define %s_KERNEL_STACK_BYTES %lluu\n\n/* Bytes of each input and output; %s. */\n",
          p->macro, (unsigned long long)p->stack_bytes,
          package_is_open(p) ? "exact, or with all extents at their bounds" : "exact");
    sizes(p, w, p->inputs, p->n_inputs);
    sizes(p, w, p->outputs, p->n_outputs);
    inside(p, w);
    ends(p, w, p->inputs, p->n_inputs);
    ends(p, w, p->outputs, p->n_outputs);
    labels(p, w);
    bounds(p, w);
    package_template(p, w,
                     "\n/* Define @M_WORKSPACE_SECTION as a section name to place the static workspace, and\n"
                     " * @M_NO_STATIC_WORKSPACE to leave it (and with it @p_run) out of the build. */\n\n"
                     "/* Tensors are dense, row-major, in the byte order of the machine and aligned to their element. "
                     "Inputs are only\n"
                     " * read; inputs and outputs must not overlap. */\n");
    package_template(p, w, package_has_extents(p) ? extents_comment : "");
    w_str(w, package_is_open(p) ? open_comment : "");
    fields(p, w, "inputs", p->inputs, p->n_inputs);
    fields(p, w, "outputs", p->outputs, p->n_outputs);
    if (p->constants_form == CONSTANTS_BIN)
        package_template(
            p, w,
            "/* Hands over the bytes of src/@n_constants.bin, loaded or mapped by the program and aligned to\n"
            " * @M_CONST_ALIGN: once, before the first run or init; they stay in use. TVMRT_E_CONSTANTS: not that\n"
            " * file, by size or content, or a machine that is not little-endian. */\n"
            "int32_t @p_set_constants(const void *data, size_t size);\n\n");
    package_template(
        p, w,
        "/* Runs the model once in the static workspace. One thread at a time. Returns 0 or a status "
        "(tvmrt_status_text). */\n"
        "int32_t @p_run(struct @p_inputs *inputs, struct @p_outputs *outputs);\n\n"
        "/* The re-entrant way: @p_instance.h defines the struct, so that it can be put anywhere, and its init "
        "function.\n"
        " * Call init once per instance, then run any number of times; different instances may run at the same time "
        "on\n"
        " * different threads. */\n"
        "struct @p_instance;\n");
    states(p, w);
    package_template(
        p, w,
        "/* At most `max_workers` threads, the caller included, work on a run of this instance; 0: all of the "
        "engine's. */\n"
        "int32_t @p_instance_set_workers(struct @p_instance *instance, uint32_t max_workers);\n"
        "int32_t @p_run_instance(struct @p_instance *instance, struct @p_inputs *inputs,\n"
        "                        struct @p_outputs *outputs);\n\n"
        "#ifdef __cplusplus\n}\n#endif\n\n#endif\n");
}

void instance_write(const package *p, writer *w)
{
    package_template(
        p, w,
        "/* @p_instance.h: the storage of one instance of model \"@n\", for programs that run several. Members\n"
        " * belong to the package.\n"
        OUTPUT_LICENCE
        "#ifndef @M_INSTANCE_H\n#define @M_INSTANCE_H\n\n#include \"@p.h\"\n#include \"tvmrt.h\"\n\n");
    w_fmt(w, "#define %s_NUM_OPS %u\n#define %s_NUM_ARGS %u /* pointers to inputs and outputs of all operators */\n\n",
          p->macro, p->pl->problem->ops.len, p->macro, p->n_args);
    w_fmt(w, "struct %s_instance {\n    tvmrt_context_t context;\n", p->prefix);
    const uint32_t n_in = p->n_inputs + p->n_areas - 1; /* constants in other memories are behind the inputs */
    w_fmt(w, "    const void *inputs[%u];\n    void *outputs[%u];\n", n_in ? n_in : 1,
          p->n_outputs ? p->n_outputs : 1);
    const bool small = package_is_small(p->u);
    w_str(w, small ? "#if !TVMRT_SMALL\n" : "");
    w_fmt(w, "    tvmrt_op_exec_t op_execs[%u];\n    void *args[%u];\n%s};\n\n",
          p->pl->problem->ops.len ? p->pl->problem->ops.len : 1, p->n_args ? p->n_args : 1, small ? "#endif\n" : "");
    package_template(
        p, w,
        "#ifdef __cplusplus\nextern \"C\" {\n#endif\n\n"
        "/* `engine` may be NULL: the program's default engine. `workspace` has `workspace_size` >= @M_WORKSPACE_SIZE\n"
        " * bytes, aligned to @M_WORKSPACE_ALIGN; it belongs to the instance until the instance is no longer used.\n"
        " * Both have the size that TVMRT_ macros give them, so the caller states the sizes of its own: TVMRT_E_ABI\n"
        " * when the package was compiled with others. After an error init can be called again. */\n"
        "int32_t @p_instance_init_sized(struct @p_instance *instance, size_t instance_size, tvmrt_engine_t *engine,\n"
        "                               size_t engine_size, void *workspace, size_t workspace_size);\n"
        "static inline int32_t @p_instance_init(struct @p_instance *instance, tvmrt_engine_t *engine,\n"
        "                                       void *workspace, size_t workspace_size)\n{\n"
        "    return @p_instance_init_sized(instance, sizeof *instance, engine, sizeof(tvmrt_engine_t), workspace,\n"
        "                                  workspace_size);\n}\n\n"
        "#ifdef __cplusplus\n}\n#endif\n\n#endif\n");
}

/* --- arguments by operator, in packages of -O0: neighbours that take the same have one array */

typedef struct args_row {
    uint32_t op, count;               /* operators from `op` on */
    uint32_t inputs, constants, outputs; /* pointers of each: variable inputs, constants, results and scratch */
} args_row;

static args_row args_of(const package *p, uint32_t i)
{
    const plan_op *op = &p->pl->problem->ops.data[i];
    args_row r = {.op = i, .count = 1, .outputs = op->n_args - op->n_inputs + op->n_scratch};
    for (uint32_t k = 0; k < op->n_inputs; k++) {
        bool constant = p->pl->problem->values.data[op->args[k]].storage == STORE_CONSTANT;
        r.constants += constant;
        r.inputs += !constant;
    }
    return r;
}

/* "fused_add_3" -> "FusedAdd3", or "fused_add3" */
static const char *args_name(const package *p, uint32_t op, bool camel)
{
    char *out = arena_strdup(&p->c->mem, package_kernel(p, op)->name), *to = out;
    for (const char *s = out, *start = out; *s; s++) {
        const bool gap = s > start && s[-1] == '_';
        const bool digit = s[1] >= '0' && s[1] <= '9';
        if (*s == '_' && (camel || digit))
            continue;
        *to++ = camel && (s == start || gap) && *s >= 'a' && *s <= 'z' ? (char)(*s - 'a' + 'A') : *s;
    }
    *to = '\0';
    return out;
}

static void write_args_row(const package *p, writer *w, const args_row *r, ptr_map *used)
{
    const char *name = intern(p->c->names, args_name(p, r->op, false));
    uint32_t again = 0;
    if (ptr_map_get(used, name, &again)) /* the kernel runs in several places */
        name = intern(p->c->names, arena_printf(&p->c->mem, "%s_at_%u", name, r->op));
    ptr_map_set(used, name, 1);
    w_fmt(w, "    struct %s%sArgs {\n", args_name(p, r->op, true),
          again ? arena_printf(&p->c->mem, "At%u", r->op) : "");
    if (r->inputs + r->constants > 0)
        w_fmt(w, "        void *inputs[%u]; /* %u of them constants */\n", r->inputs + r->constants, r->constants);
    if (r->outputs > 0)
        w_fmt(w, "        void *outputs[%u];\n", r->outputs);
    w_fmt(w, "    } g_%s_args", name);
    if (r->count > 1)
        w_fmt(w, "[%u]", r->count);
    w_fmt(w, "; /* operators %u to %u */\n", r->op, r->op + r->count - 1);
}

static void write_args(const package *p, writer *w)
{
    const uint32_t n = p->pl->problem->ops.len;
    ptr_map used;
    ptr_map_init(&used, &p->c->mem);
    if (p->u->opt_level > 0 || p->n_args == 0)
        return;
    package_template(p, w, "/* An instance's table of arguments, as model_fill_args fills it, by operators. */\n"
                           "struct model_args {\n");
    for (uint32_t i = 0; i < n;) {
        args_row r = args_of(p, i), next;
        while (i + r.count < n && (next = args_of(p, i + r.count), next.inputs == r.inputs) &&
               next.constants == r.constants && next.outputs == r.outputs)
            r.count++;
        write_args_row(p, w, &r, &used);
        i += r.count;
    }
    w_str(w, "};\nconst struct model_args *model_get_args(const struct ");
    package_template(p, w, "@p_instance *instance);\n");
}

void names_write(const package *p, writer *w)
{
    static const char *const shared[] = {"model_get_descriptor", "model_get_tensor_map", "model_get_op_descs",
                                         "model_get_schedule",   "model_fill_args",      "model_get_op_args"};
    package_template(p, w,
                     "/* @n_names.h: what the files of this package share with each other. Names without the module's "
                     "name get it here, so\n"
                     " * that several packages can be linked into one program.\n"
                     OUTPUT_LICENCE
                     "#ifndef @M_NAMES_H\n#define @M_NAMES_H\n\n#include \"@p.h\"\n#include "
                     "\"@p_instance.h\"\n#include \"tvmrt.h\"\n\n");
    for (size_t i = 0; i < sizeof shared / sizeof *shared; i++)
        w_fmt(w, "#define %s %s_%s\n", shared[i], p->prefix, shared[i]);
    const bool small = package_is_small(p->u);
    if (small)
        w_fmt(w, "#define model_get_small %s_model_get_small\n", p->prefix);
    if (p->u->opt_level == 0)
        w_fmt(w, "#define model_args %s_model_args\n#define model_get_args %s_model_get_args\n", p->prefix, p->prefix);
    for (uint32_t i = 0; i < p->pl->problem->ops.len; i++)
        if (package_is_first(p, i))
            w_fmt(w, "#define wrapped_%s %s_wrapped_%s\n", package_kernel(p, i)->name, p->prefix,
                  package_kernel(p, i)->name);
    package_template(
        p, w,
        "\n/* @n_lib0.c */\nconst void *@p_get_const_workspace(void);\n");
    for (uint32_t i = 1; i < p->n_areas; i++)
        w_fmt(w, "const void *%s_get_const_area_%u(void);\n", p->prefix, i);
    package_template(
        p, w,
        "\n/* @n_lib1.c */\n"
        "int32_t @p___tvm_main__(struct @p_inputs *input, struct @p_outputs *output,\n"
        "                        const void *const_ws, void *ws);\n");
    package_template(p, w, package_has_states(p) ? "void @p_set_states(void *workspace);\n" : "");
    package_template(
        p, w,
        "\n/* model_data.c */\n"
        "const tvmrt_model_desc_t *model_get_descriptor(void);\n"
        "const tvmrt_tensor_map_entry_t *model_get_tensor_map(void);\n"
        "const tvmrt_op_desc_t *model_get_op_descs(void);\n"
        "const tvmrt_schedule_desc_t *model_get_schedule(void);\n"
        "int32_t model_fill_args(struct @p_instance *instance);\n"
        "const void *model_get_op_args(const struct @p_instance *instance, uint32_t op_id);\n");
    w_str(w, small ? "#if TVMRT_SMALL\nconst tvmrt_small_t *model_get_small(void);\n#endif\n" : "");
    write_args(p, w);
    w_str(w, "\n/* ops.c */\n");
    for (uint32_t i = 0; i < p->pl->problem->ops.len; i++)
        if (package_is_first(p, i))
            w_fmt(w, "int32_t wrapped_%s(const void *args, uint32_t part, uint32_t parts);\n",
                  package_kernel(p, i)->name);
    w_str(w, "\n#endif\n");
}
