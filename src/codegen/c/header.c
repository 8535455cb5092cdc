/* SPDX-License-Identifier: Apache-2.0 */
/* The headers of a package: the public one, the storage of an instance, and the names that its files share.
 * src/codegen/c/package has their text; here is what it says of the model. */
#include "abi/package.h"
#include "codegen/c/template.h"

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
        const model_end *end = io[i].end;
        if (!end)
            continue;
        const char *name = package_upper(&p->c->mem, io[i].c_name);
        w_fmt(w, "#define %s_%s_SCALE ((float)%.9g) /* value = scale * (number - zero point) */\n", p->macro, name,
              end->scale);
        w_fmt(w, "#define %s_%s_ZERO_POINT (%lld)\n", p->macro, name, (long long)end->zero_point);
    }
}

/* How long strings may be. */
static void texts(const package *p, writer *w, const package_io *io, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        if (io[i].is_text)
            w_fmt(w, "#define %s_%s_STRING_BYTES %lld /* %s: strings of at most so many bytes, padded with zeros */\n",
                  p->macro, package_upper(&p->c->mem, io[i].c_name), (long long)package_text_bytes(&io[i]),
                  package_comment(&p->c->mem, io[i].name));
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

uint32_t package_area_align(uint64_t bytes)
{
    return bytes > 0 ? PACKAGE_MAX_ALIGN : 1;
}

static void memory(const package *p, writer *w)
{
    w_fmt(w, "#define %s_WORKSPACE_SIZE %lluu\n#define %s_WORKSPACE_ALIGN %uu\n", p->macro,
          (unsigned long long)p->pl->workspace_bytes, p->macro, package_area_align(p->pl->workspace_bytes));
    if (package_has_states(p))
        w_fmt(w, "#define %s_STATES_SIZE %lluu /* of the workspace: keeps its value between runs */\n", p->macro,
              (unsigned long long)p->pl->state_bytes);
    w_fmt(w, "#define %s_CONST_SIZE %lluu\n#define %s_CONST_ALIGN %uu\n", p->macro,
          (unsigned long long)package_placed_bytes(p), p->macro, package_area_align(package_constant_bytes(p)));
    w_fmt(w,
          "/* Arrays on the stack of the thread that runs a kernel, at most; the frame itself comes on top. */\n"
          "#define %s_KERNEL_STACK_BYTES %lluu\n\n/* Bytes of each input and output; %s. */\n",
          p->macro, (unsigned long long)p->stack_bytes,
          package_is_open(p) ? "exact, or with all extents at their bounds" : "exact");
}

/* What the fields of the structs are for, where the model has a sequence or an optional. */
static void lists(const package *p, writer *w)
{
    for (uint32_t i = 0; i < p->u->n_lists; i++) {
        const list_io *l = &p->u->lists[i];
        arena *a = &p->c->mem;
        const char *kind = report_list_kind(l);
        w_fmt(w, "\n/* %s %s: %s %s", l->is_input ? "Input" : "Output", package_comment(a, l->name),
              *kind == 'o' ? "an" : "a", kind);
        w_str(w, l->is_none ? ", none here" : l->n_parts == 0 ? ", empty here" : "");
        for (uint32_t k = 0; k < l->n_parts; k++) {
            w_fmt(w, "%s %s", k ? "," : " of", package_comment(a, l->parts[k].name));
            if (l->parts[k].many)
                w_fmt(w, " (elements along axis 0%s%s)", l->parts[k].sizes ? ", of the sizes in " : "",
                      l->parts[k].sizes ? package_comment(a, l->parts[k].sizes) : "");
        }
        if (l->present)
            w_fmt(w, "; none where %s is 0", package_comment(a, l->present));
        w_str(w, ". */\n");
    }
}

static void tensors(const package *p, writer *w)
{
    sizes(p, w, p->inputs, p->n_inputs);
    sizes(p, w, p->outputs, p->n_outputs);
    inside(p, w);
    ends(p, w, p->inputs, p->n_inputs);
    ends(p, w, p->outputs, p->n_outputs);
    texts(p, w, p->inputs, p->n_inputs);
    texts(p, w, p->outputs, p->n_outputs);
    labels(p, w);
    lists(p, w);
    bounds(p, w);
}

static void operands(const package *p, writer *w)
{
    fields(p, w, "inputs", p->inputs, p->n_inputs);
    fields(p, w, "outputs", p->outputs, p->n_outputs);
}

void header_write(const package *p, writer *w)
{
    static const template_piece pieces[] = {
        {"counts", counts}, {"memory", memory}, {"tensors", tensors}, {"operands", operands}};
    template_file(p, "package.h", pieces, sizeof pieces / sizeof *pieces, w);
}

static void storage(const package *p, writer *w)
{
    w_fmt(w, "#define %s_NUM_OPS %u\n#define %s_NUM_ARGS %u /* pointers to inputs and outputs of all operators */\n\n",
          p->macro, p->pl->problem->ops.len, p->macro, p->n_args);
    w_fmt(w, "struct %s_instance {\n    tvmrt_context_t context;\n", p->prefix);
    const uint32_t n_in = p->n_inputs + p->n_areas - 1; /* constants in other memories are behind the inputs */
    const bool small = package_is_small(p->u);
    w_str(w, small ? "#if !TVMRT_SMALL\n" : "");
    w_fmt(w, "    const void *inputs[%u];\n    void *outputs[%u];\n", n_in ? n_in : 1,
          p->n_outputs ? p->n_outputs : 1);
    w_fmt(w, "    tvmrt_op_exec_t op_execs[%u];\n    void *args[%u];\n%s};\n",
          p->pl->problem->ops.len ? p->pl->problem->ops.len : 1, p->n_args ? p->n_args : 1, small ? "#endif\n" : "");
}

void instance_write(const package *p, writer *w)
{
    static const template_piece pieces[] = {{"storage", storage}};
    template_file(p, "instance.h", pieces, 1, w);
}

/* --- arguments by operator, in packages of -O0: neighbors that take the same have one array */

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

static void kernel_names(const package *p, writer *w)
{
    for (uint32_t i = 0; i < p->pl->problem->ops.len; i++)
        if (package_is_first(p, i))
            w_fmt(w, "#define wrapped_%s %s_wrapped_%s\n", package_kernel(p, i)->name, p->prefix,
                  package_kernel(p, i)->name);
}

static void areas(const package *p, writer *w)
{
    for (uint32_t i = 1; i < p->n_areas; i++)
        w_fmt(w, "const void *%s_get_const_area_%u(void);\n", p->prefix, i);
}

static void kernels(const package *p, writer *w)
{
    if (package_is_small(p->u))
        ops_write_declarations(p, w);
    for (uint32_t i = 0; i < p->pl->problem->ops.len; i++)
        if (package_is_first(p, i))
            w_fmt(w, "int32_t wrapped_%s(const void *args, uint32_t part, uint32_t parts);\n",
                  package_kernel(p, i)->name);
}

void names_write(const package *p, writer *w)
{
    static const template_piece pieces[] = {
        {"names", kernel_names}, {"areas", areas}, {"args", write_args}, {"kernels", kernels}};
    template_file(p, "names.h", pieces, sizeof pieces / sizeof *pieces, w);
}
